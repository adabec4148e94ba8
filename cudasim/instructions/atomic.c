/* Atomics (PTX ISA 9.7.13.5-6): atom and red on global and shared memory.
 *
 * Lanes act one after the other, in their order.  Shared memory belongs to one host thread; global memory is updated by compare and
 * swap of the access's width, so that clusters on other host threads see each update whole. */
#include "instructions/families.h"
#include "instructions/memory.h"
#include "instructions/real.h"
#include "machine/checks.h"

enum operation { ADD, MIN, MAX, INC, DEC, AND, OR, XOR, EXCH, CAS };

static uint64_t add_float(enum ptx_type type, bool ftz, uint64_t a, uint64_t b)
{
    const struct real_format *f = real_format_of(type);
    const struct real x = real_unpack(f, a, ftz), y = real_unpack(f, b, ftz);
    const struct real r = real_add(&x, &y, ROUND_RN);
    return real_pack(f, &r, ROUND_RN, ftz);
}

/* f16, bf16 minimum and maximum: the other operand where one is NaN. */
static uint64_t pick_half(enum ptx_type type, uint64_t a, uint64_t b, bool largest)
{
    const uint64_t infinity = type == T_F16 || type == T_F16X2 ? 0x7c00 : 0x7f80;
    const bool nan_a = (a & 0x7fff) > infinity, nan_b = (b & 0x7fff) > infinity;
    if (nan_a && nan_b) return 0x7fff;
    if (nan_a) return b;
    if (nan_b) return a;
    const int32_t x = (a & 0x8000) != 0 ? -1 - (int32_t)(a & 0x7fff) : (int32_t)a,
                  y = (b & 0x8000) != 0 ? -1 - (int32_t)(b & 0x7fff) : (int32_t)b;
    return (x < y) != largest ? a : b;
}

static uint64_t float_operation(enum operation operation, enum ptx_type type, uint64_t a, uint64_t b)
{

    if (type == T_F16X2 || type == T_BF16X2) {
        const enum ptx_type half = type == T_F16X2 ? T_F16 : T_BF16;
        return float_operation(operation, half, a & 0xffff, b & 0xffff) |
               float_operation(operation, half, a >> 16 & 0xffff, b >> 16 & 0xffff) << 16;
    }
    if (operation == ADD) return add_float(type, false, a, b);
    return pick_half(type, a, b, operation == MAX);
}

/* old, operand (and for cas the new value): what is stored. */
static uint64_t result_of(const struct insn *in, uint64_t old, uint64_t b, uint64_t c)
{
    const enum ptx_type type = (enum ptx_type)in->type[0];
    const uint32_t bits = type_bits(type);
    const bool is_signed = type_kind(type) == 's';
    const enum operation operation = (enum operation)in->detail;
    if (type_kind(type) == 'f') return float_operation(operation, type, old, b);
    switch (operation) {
    case ADD: return old + b;
    case MIN: return (is_signed ? sign_extend(old, bits) < sign_extend(b, bits) : old < b) ? old : b;
    case MAX: return (is_signed ? sign_extend(old, bits) > sign_extend(b, bits) : old > b) ? old : b;
    case INC: return old >= b ? 0 : old + 1;
    case DEC: return old == 0 || old > b ? b : old - 1;
    case AND: return old & b;
    case OR: return old | b;
    case XOR: return old ^ b;
    case EXCH: return b;
    default: return old == b ? c : old;
    }
}

static uint64_t update(const struct insn *in, uint8_t *host, uint32_t bytes, uint64_t b, uint64_t c)
{
    uint64_t old = load_bytes(host, bytes);
    for (;;) {
        const uint64_t wanted = result_of(in, old, b, c) & bits_mask(8 * bytes);
        bool done;
        if (bytes == 2) {
            uint16_t seen = (uint16_t)old;
            done = __atomic_compare_exchange_n((uint16_t *)(void *)host, &seen, (uint16_t)wanted, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST);
            if (!done) old = seen;
        } else if (bytes == 4) {
            uint32_t seen = (uint32_t)old;
            done = __atomic_compare_exchange_n((uint32_t *)(void *)host, &seen, (uint32_t)wanted, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST);
            if (!done) old = seen;
        } else {
            done = __atomic_compare_exchange_n((uint64_t *)(void *)host, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        }
        if (done) return old;
    }
}

static trap resolve(struct warp *w, const struct insn *in, uint32_t lanes, const struct operand *address, struct access *a)
{
    a->space = (enum space)in->space;
    a->bytes = type_bytes((enum ptx_type)in->type[0]) * in->vector;
    a->writes = a->reads = a->strong = true;
    address_lanes(w, address, lanes, a->address);
    const trap t = memory_access(w, in, lanes, a);
    if (t == TRAP_NONE) checks_ordered(w, lanes, a, (enum semantics)in->semantics);
    return t;
}

/* b or c: the operand, or element i of the vector */
static const uint64_t *part(const struct warp *w, const struct operand *o, uint32_t i, uint32_t count)
{
    return source_row(w, count == 1 ? o : &o->element[i]);
}

static trap run(struct warp *w, const struct insn *in, uint32_t lanes, const struct operand *d, int first)
{
    struct access a;
    const trap t = resolve(w, in, lanes, &in->operand[first], &a);
    if (t != TRAP_NONE) return t;
    const uint32_t bytes = type_bytes((enum ptx_type)in->type[0]), count = in->vector;
    const bool is_cas = in->detail == CAS;
    FOR_LANES(l, lanes)
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t *b = part(w, &in->operand[first + 1], i, count), *c = is_cas ? source(w, in, first + 2) : b;
            const uint64_t old = update(in, a.host[l] + i * bytes, bytes, b[l] & in->mask, c[l] & in->mask);
            if (d == NULL) continue;
            uint64_t *row = register_row(w, count == 1 ? d->slot : d->element[i].slot);
            row[l] = old;
        }
    cluster_event(w->cta->cluster);
    return TRAP_NONE;
}

/* atom.op d, [a], b   d = [a]; [a] = op(d, b), at once */
static trap op_atom(struct warp *w, const struct insn *in, uint32_t lanes) { return run(w, in, lanes, &in->operand[0], 1); }
/* red.op [a], b   the same without a result */
static trap op_red(struct warp *w, const struct insn *in, uint32_t lanes) { return run(w, in, lanes, NULL, 0); }

static trap op_atom_b128(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct access a;
    const trap t = resolve(w, in, lanes, &in->operand[1], &a);
    if (t != TRAP_NONE) return t;
    uint64_t *d = destination(w, in, 0);
    const bool is_cas = in->detail == CAS;
    const uint64_t *b = source(w, in, 2), *c = is_cas ? source(w, in, 3) : b;
    /* one lock for all 16-byte atomics of the machine: they are rare */
    struct machine *machine = w->cta->cluster->grid->machine;
    while (atomic_flag_test_and_set_explicit(&machine->wide_lock, memory_order_acquire)) { }
    FOR_LANES(l, lanes) {
        const uint64_t low = load_bytes(a.host[l], 8), high = load_bytes(a.host[l] + 8, 8);
        if (!is_cas || (low == b[l] && high == b[l + LANES])) {
            store_bytes(a.host[l], 8, c[l]);
            store_bytes(a.host[l] + 8, 8, c[l + LANES]);
        }
        d[l] = low, d[l + LANES] = high;
    }
    atomic_flag_clear_explicit(&machine->wide_lock, memory_order_release);
    cluster_event(w->cta->cluster);
    return TRAP_NONE;
}

static const char *prepare(struct module *module, struct insn *in)
{
    static const struct { const char *word; enum operation operation; } words[] = {
        { ".add", ADD }, { ".min", MIN }, { ".max", MAX }, { ".inc", INC }, { ".dec", DEC }, { ".and", AND }, { ".or", OR },
        { ".xor", XOR }, { ".exch", EXCH }, { ".cas", CAS },
    };
    (void)module;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (insn_has(in, words[i].word)) in->detail = words[i].operation;
    if (in->type[0] == T_B128) in->run = op_atom_b128;
    return NULL;
}

#define HOW "{.relaxed|.acquire|.release|.acq_rel}{.cta|.cluster|.gpu|.sys}{.global|.shared|.shared::cta|.shared::cluster}"
#define HOW_RED "{.relaxed|.release}{.cta|.cluster|.gpu|.sys}{.global|.shared|.shared::cta|.shared::cluster}"
#define VECTOR "{.relaxed|.acquire|.release|.acq_rel}{.cta|.cluster|.gpu|.sys}{.global}"
#define VECTOR_RED "{.relaxed|.release}{.cta|.cluster|.gpu|.sys}{.global}"
#define HINT "{.L2::cache_hint}"
#define ATOM(operation, types, since, targets) \
    { "atom" HOW operation HINT ".$1", types, "d_:1 a s:1 (.L2::cache_hint)s:b64", since, targets, 0, op_atom, prepare, \
      "9.7.13.5 atom" }, \
    { "red" HOW_RED operation HINT ".$1", types, "a s:1 (.L2::cache_hint)s:b64", since, targets, 0, op_red, prepare, \
      "9.7.13.6 red" }
static const struct row rows[] = {
    ATOM(".add", "u32 s32 u64 f32 f64", 12, ""),
    ATOM(".add.noftz", "f16 f16x2 bf16 bf16x2", 62, "sm_70+"),
    ATOM("(.min|.max)", "u32 u64 s32 s64", 12, ""),
    ATOM("(.inc|.dec)", "u32", 12, ""),
    ATOM("(.and|.or|.xor)", "b32 b64", 12, ""),
    { "atom" HOW ".exch" HINT ".$1", "b32 b64 u32 u64 s32 s64 f32", "d_:1 a s:1 (.L2::cache_hint)s:b64", 12, "", 0, op_atom,
      prepare, "9.7.13.5 atom" },
    { "atom" HOW ".cas" HINT ".$1", "b16 b32 b64 u32 u64 s32 s64", "d_:1 a s:1 s:1 (.L2::cache_hint)s:b64", 12, "", 0, op_atom,
      prepare, "9.7.13.5 atom" },
    { "atom" HOW ".exch" HINT ".$1", "b128", "d:1 a r:1 (.L2::cache_hint)s:b64", 83, "sm_90+", 0, op_atom, prepare,
      "9.7.13.5 atom" },
    { "atom" HOW ".cas" HINT ".$1", "b128", "d:1 a r:1 r:1 (.L2::cache_hint)s:b64", 83, "sm_90+", 0, op_atom, prepare,
      "9.7.13.5 atom" },
    { "atom" VECTOR ".add" HINT "(.v2|.v4).$1", "f32", "d_:1* a s:1* (.L2::cache_hint)s:b64", 81, "sm_90+", 0, op_atom, prepare,
      "9.7.13.5 atom" },
    { "red" VECTOR_RED ".add" HINT "(.v2|.v4).$1", "f32", "a s:1* (.L2::cache_hint)s:b64", 81, "sm_90+", 0, op_red, prepare,
      "9.7.13.6 red" },
    { "atom" VECTOR "(.add|.min|.max).noftz" HINT "(.v2|.v4|.v8).$1", "f16 bf16", "d_:1* a s:1* (.L2::cache_hint)s:b64", 81,
      "sm_90+", 0, op_atom, prepare, "9.7.13.5 atom" },
    { "red" VECTOR_RED "(.add|.min|.max).noftz" HINT "(.v2|.v4|.v8).$1", "f16 bf16", "a s:1* (.L2::cache_hint)s:b64", 81, "sm_90+",
      0, op_red, prepare, "9.7.13.6 red" },
    { "atom" VECTOR "(.add|.min|.max).noftz" HINT "(.v2|.v4).$1", "f16x2 bf16x2", "d_:1* a s:1* (.L2::cache_hint)s:b64", 81,
      "sm_90+", 0, op_atom, prepare, "9.7.13.5 atom" },
    { "red" VECTOR_RED "(.add|.min|.max).noftz" HINT "(.v2|.v4).$1", "f16x2 bf16x2", "a s:1* (.L2::cache_hint)s:b64", 81, "sm_90+",
      0, op_red, prepare, "9.7.13.6 red" },
};

const struct family family_atomic = FAMILY("atomics", rows);

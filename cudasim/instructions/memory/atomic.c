/* Atomics (PTX ISA 9.7.13.5-6): atom and red on global and shared memory.
 *
 * Lanes act one after the other, in their order. */
#include "instructions/table/families.h"
#include "memory.h"
#include "reduction.h"
#include "machine/check/checks.h"
#include "machine/memory/access.h"

static trap resolve(struct warp *w, const struct insn *in, uint32_t lanes, const struct operand *address,
                    struct access *a)
{
    a->space = (enum space)in->space;
    a->bytes = type_bytes((enum ptx_type)in->type[0]) * in->vector;
    a->writes = a->reads = a->strong = true;
    a->mbarrier = a->locates = false, a->stored = NULL;
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
    const bool is_cas = in->detail == REDUCE_CAS;
    FOR_LANES(l, lanes) {
        /* f32 sums in global memory flush subnormals (9.7.13.5) */
        const bool shared = a.owner[l] != NULL;
        const struct reducer reducer = { (enum reduction)in->detail, (enum ptx_type)in->type[0],
                                         !shared && in->type[0] == T_F32, shared };
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t *b = part(w, &in->operand[first + 1], i, count), *c = is_cas ? source(w, in, first + 2) : b;
            const uint64_t old = reduction_update(reducer, a.host[l] + i * bytes, b[l] & in->mask, c[l] & in->mask);
            if (d == NULL) continue;
            uint64_t *row = register_row(w, count == 1 ? d->slot : d->element[i].slot);
            row[l] = old;
        }
    }
    checks_observed(w, lanes, &a, (enum semantics)in->semantics);
    cluster_event(w->cta->cluster);
    return TRAP_NONE;
}

/* atom.op d, [a], b   d = [a]; [a] = op(d, b), at once */
static trap op_atom(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return run(w, in, lanes, &in->operand[0], 1);
}
/* red.op [a], b   the same without a result */
static trap op_red(struct warp *w, const struct insn *in, uint32_t lanes) { return run(w, in, lanes, NULL, 0); }

static trap op_atom_b128(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct access a;
    const trap t = resolve(w, in, lanes, &in->operand[1], &a);
    if (t != TRAP_NONE) return t;
    uint64_t *d = destination(w, in, 0);
    const bool is_cas = in->detail == REDUCE_CAS;
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
    checks_observed(w, lanes, &a, (enum semantics)in->semantics);
    cluster_event(w->cta->cluster);
    return TRAP_NONE;
}

static const char *prepare(struct module *module, struct insn *in)
{
    in->detail = reduction_of(in);
    if (in->type[0] == T_B128) in->run = op_atom_b128;
    if (in->type[0] == T_B128 && in->scope == SCOPE_SYS && module->version < 84)
        return "the type .b128 with .sys needs PTX 8.4";
    if (in->space != SPACE_GENERIC && in->space != SPACE_GLOBAL && insn_has(in, ".L2::cache_hint"))
        return "a cache hint is for .global and generic addresses";
    return NULL;
}

#define HOW \
    "{.relaxed|.acquire|.release|.acq_rel}{.cta|.cluster|.gpu|.sys}{.global|.shared|.shared::cta|.shared::cluster}"
#define HOW_RED "{.relaxed|.release}{.cta|.cluster|.gpu|.sys}{.global|.shared|.shared::cta|.shared::cluster}"
#define VECTOR "{.relaxed|.acquire|.release|.acq_rel}{.cta|.cluster|.gpu|.sys}{.global}"
#define VECTOR_RED "{.relaxed|.release}{.cta|.cluster|.gpu|.sys}{.global}"
#define HINT "{.L2::cache_hint}"
#define ATOM(operation, types, since, targets) \
    { "atom" HOW operation HINT ".$1", \
      types, \
      "d_:1 a s:1 (.L2::cache_hint)s:b64", \
      since, \
      targets, \
      0, \
      op_atom, \
      prepare, \
      "9.7.13.5 atom" }, \
    { \
        "red" HOW_RED operation HINT ".$1", types, "a s:1 (.L2::cache_hint)s:b64", since, targets, 0, op_red, prepare, \
            "9.7.13.6 red" \
    }
static const struct row rows[] = {
    ATOM(".add", "u32 s32 u64 f32 f64", 12, ""),
    ATOM(".add.noftz", "f16 f16x2 bf16 bf16x2", 62, "sm_70+"),
    ATOM("(.min|.max)", "u32 u64 s32 s64", 12, ""),
    ATOM("(.inc|.dec)", "u32", 12, ""),
    ATOM("(.and|.or|.xor)", "b32 b64", 12, ""),
    { "atom" HOW ".exch" HINT ".$1", "b32 b64", "d_:1 a s:1 (.L2::cache_hint)s:b64", 12, "", 0, op_atom, prepare,
      "9.7.13.5 atom" },
    { "atom" HOW ".cas.$1", "b16 b32 b64", "d_:1 a s:1 s:1", 12, "", 0, op_atom, prepare, "9.7.13.5 atom" },
    { "atom" HOW ".exch" HINT ".$1", "b128", "d:1 a r:1 (.L2::cache_hint)s:b64", 83, "sm_90+", 0, op_atom, prepare,
      "9.7.13.5 atom" },
    { "atom" HOW ".cas.$1", "b128", "d:1 a r:1 r:1", 83, "sm_90+", 0, op_atom, prepare, "9.7.13.5 atom" },
    { "atom" VECTOR ".add" HINT "(.v2|.v4).$1", "f32", "d_:1* a s:1* (.L2::cache_hint)s:b64", 81, "sm_90+", 0, op_atom,
      prepare, "9.7.13.5 atom" },
    { "red" VECTOR_RED ".add" HINT "(.v2|.v4).$1", "f32", "a s:1* (.L2::cache_hint)s:b64", 81, "sm_90+", 0, op_red,
      prepare, "9.7.13.6 red" },
    { "atom" VECTOR "(.add|.min|.max).noftz" HINT "(.v2|.v4|.v8).$1", "f16 bf16", "d_:1* a s:1* (.L2::cache_hint)s:b64",
      81, "sm_90+", 0, op_atom, prepare, "9.7.13.5 atom" },
    { "red" VECTOR_RED "(.add|.min|.max).noftz" HINT "(.v2|.v4|.v8).$1", "f16 bf16", "a s:1* (.L2::cache_hint)s:b64",
      81, "sm_90+", 0, op_red, prepare, "9.7.13.6 red" },
    { "atom" VECTOR "(.add|.min|.max).noftz" HINT "(.v2|.v4).$1", "f16x2 bf16x2", "d_:1* a s:1* (.L2::cache_hint)s:b64",
      81, "sm_90+", 0, op_atom, prepare, "9.7.13.5 atom" },
    { "red" VECTOR_RED "(.add|.min|.max).noftz" HINT "(.v2|.v4).$1", "f16x2 bf16x2", "a s:1* (.L2::cache_hint)s:b64",
      81, "sm_90+", 0, op_red, prepare, "9.7.13.6 red" },
};

const struct family family_atomic = FAMILY("atomics", rows);

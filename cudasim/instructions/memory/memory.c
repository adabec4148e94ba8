/* Loads and stores (PTX ISA 9.7.9): ld, st, ldu, prefetch, with all spaces, orders, widths and cache hints. */
#include "memory.h"
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"
#include "machine/check/checks.h"
#include "machine/memory/access.h"

/* What a register holds of a loaded value: sign-extended to its own width where the type is signed. */
static uint64_t extend(uint64_t value, enum ptx_type type, enum ptx_type declared)
{
    if (type_kind(type) != 's') return value;
    return (uint64_t)sign_extend(value, type_bits(type)) & bits_mask(type_bits(declared));
}

static trap resolve(struct warp *w, const struct insn *in, uint32_t lanes, const struct operand *address,
                    struct access *a, const struct operand *stored)
{
    const bool writes = stored != NULL;
    a->space = (enum space)in->space;
    a->bytes = type_bytes((enum ptx_type)in->type[0]) * in->vector;
    a->writes = writes;
    a->reads = !writes;
    a->strong = in->semantics >= ORDER_VOLATILE;
    a->mbarrier = a->locates = false;
    a->stored = writes && a->bytes <= 8 && in->vector == 1 ? source_row(w, stored) : NULL;
    address_lanes(w, address, lanes, a->address);
    const trap t = memory_access(w, in, lanes, a);
    if (t == TRAP_NONE && a->strong) checks_ordered(w, lanes, a, (enum semantics)in->semantics);
    return t;
}

/* Order of memory: a host thread runs a whole cluster, other clusters see relaxed accesses of full width; fences cost
 * nothing here. */
static void order_after(const struct insn *in)
{
    if (in->semantics == ORDER_ACQUIRE) atomic_thread_fence(memory_order_acquire);
}
static void order_before(const struct insn *in)
{
    if (in->semantics == ORDER_RELEASE) atomic_thread_fence(memory_order_release);
}

/* ld d, [a]   d (or each element of the vector d) = memory at a */
static trap op_ld(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct access a;
    const trap t = resolve(w, in, lanes, &in->operand[1], &a, NULL);
    if (t != TRAP_NONE) return t;
    const enum ptx_type type = (enum ptx_type)in->type[0];
    const struct operand *d = &in->operand[0];
    const uint32_t bytes = type_bytes(type), count = in->vector;
    for (uint32_t i = 0; i < count; i++) {
        const struct operand *o = count == 1 ? d : &d->element[i];
        uint64_t *row = register_row(w, o->slot);
        if (bytes == 16) {
            FOR_LANES(l, lanes)
                row[l] = load_bytes(a.host[l] + 16 * i, 8), row[l + LANES] = load_bytes(a.host[l] + 16 * i + 8, 8);
            continue;
        }
        FOR_LANES(l, lanes)
            row[l] = extend(load_bytes(a.host[l] + i * bytes, bytes), type,
                            (enum ptx_type)(o->kind == OPERAND_SINK ? type : o->type));
    }
    order_after(in);
    if (a.strong) checks_observed(w, lanes, &a, (enum semantics)in->semantics);
    return TRAP_NONE;
}

/* st [a], b */
static trap op_st(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct access a;
    const trap t = resolve(w, in, lanes, &in->operand[0], &a, &in->operand[1]);
    if (t != TRAP_NONE) return t;
    const uint32_t bytes = type_bytes((enum ptx_type)in->type[0]), count = in->vector;
    const struct operand *b = &in->operand[1];
    order_before(in);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t *row = source_row(w, count == 1 ? b : &b->element[i]);
        FOR_LANES(l, lanes) {
            if (bytes == 16) store_bytes(a.host[l] + 16 * i + 8, 8, row[l + LANES]);
            store_bytes(a.host[l] + i * bytes, bytes > 8 ? 8 : bytes, row[l]);
        }
    }
    return TRAP_NONE;
}

/* prefetch: no effect; the address is not looked at. */
static trap op_prefetch(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)w, (void)in, (void)lanes;
    return TRAP_NONE;
}

/* Hints change nothing here, but only global memory has them. */
static const char *check_hints(const struct insn *in, uint32_t bytes)
{
    static const char *const hints[] = { ".L1::evict_normal", ".L1::evict_unchanged",
                                         ".L1::evict_first",  ".L1::evict_last",
                                         ".L1::no_allocate",  ".L2::cache_hint",
                                         ".L2::64B",          ".L2::128B",
                                         ".L2::256B" };
    static const char *const wide[] = { ".L2::evict_normal", ".L2::evict_first", ".L2::evict_last" };
    if (in->space != SPACE_GENERIC && in->space != SPACE_GLOBAL)
        for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
            if (insn_has(in, hints[i])) return "this hint is for .global and generic addresses";
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (bytes != 32 && insn_has(in, wide[i])) return "this hint is for accesses of 32 bytes: .v8.b32, .v4.b64";
    return NULL;
}

static const char *check_access(struct module *module, struct insn *in)
{
    const uint32_t bytes = type_bytes((enum ptx_type)in->type[0]) * in->vector;
    if (in->vector == 8 && bytes != 32) return ".v8 takes 32-bit types";
    if (in->vector > 1 && in->type[0] == T_B128) return "an element of a vector has at most 64 bits";
    if (bytes > 32 || (bytes == 32 && in->space != SPACE_GLOBAL))
        return "an access has at most 16 bytes (32 in .global)";
    if (bytes == 32 && module->sm < 100) return "an access of 32 bytes needs sm_100 or later";
    if (bytes == 32 && module->version < 88) return "an access of 32 bytes needs PTX 8.8";
    if (in->type[0] == T_B128 && module->version < 83) return "the type .b128 needs PTX 8.3";
    if (module->version < 83 && (insn_has(in, ".param::entry") || insn_has(in, ".param::func")))
        return ".param::entry and .param::func need PTX 8.3";
    const bool ordered =
        in->semantics == ORDER_RELAXED || in->semantics == ORDER_ACQUIRE || in->semantics == ORDER_RELEASE;
    if (ordered && (in->space == SPACE_LOCAL || in->space == SPACE_PARAM || in->space == SPACE_CONST))
        return "this space has no ordered accesses";
    if (in->semantics == ORDER_VOLATILE
        && (in->space == SPACE_LOCAL || in->space == SPACE_PARAM || in->space == SPACE_CONST))
        return "this space has no volatile accesses";
    return check_hints(in, bytes);
}

static const char *check_ldu(struct module *module, struct insn *in)
{
    if (type_bytes((enum ptx_type)in->type[0]) * in->vector > 16) return "ldu reads at most 16 bytes";
    return check_access(module, in);
}

#define TYPES "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
#define SPACES "{.const|.global|.local|.param|.param::entry|.param::func|.shared|.shared::cta|.shared::cluster}"
#define STORES "{.global|.local|.param|.param::func|.shared|.shared::cta|.shared::cluster}"
#define CACHES "{.ca|.cg|.cs|.lu|.cv}"
#define WRITES "{.wb|.cg|.cs|.wt}"
#define EVICT "{.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate}"
#define EVICT2 "{.L2::evict_normal|.L2::evict_first|.L2::evict_last}"
#define HINTS "{.L2::cache_hint}{.L2::64B|.L2::128B|.L2::256B}"
#define VECTORS "{.v2|.v4|.v8}"

static const struct row rows[] = {
    { "ld{.weak}" SPACES CACHES HINTS VECTORS ".$1", TYPES, "d_:1+* a (.L2::cache_hint)s:b64", 10, "", 0, op_ld,
      check_access, "9.7.9.8 ld" },
    { "ld{.weak}" SPACES EVICT EVICT2 HINTS VECTORS ".$1", TYPES, "d_:1+* a (.L2::cache_hint)s:b64", 74, "sm_70+", 0,
      op_ld, check_access, "9.7.9.8 ld" },
    { "ld.volatile" SPACES "{.L2::64B|.L2::128B|.L2::256B}" VECTORS ".$1", TYPES, "d_:1+* a", 10, "", 0, op_ld,
      check_access, "9.7.9.8 ld" },
    { "ld(.relaxed|.acquire)(.cta|.cluster|.gpu|.sys)" SPACES EVICT EVICT2 HINTS VECTORS ".$1", TYPES,
      "d_:1+* a (.L2::cache_hint)s:b64", 60, "sm_70+", 0, op_ld, check_access, "9.7.9.8 ld" },
    { "ld.mmio.relaxed.sys{.global}.$1", TYPES, "d:1+ a", 82, "sm_70+", 0, op_ld, check_access, "9.7.9.8 ld" },
    { "ld.global{.ca|.cg|.cs}.nc" HINTS VECTORS ".$1", TYPES, "d_:1+* a (.L2::cache_hint)s:b64", 31, "", 0, op_ld,
      check_access, "9.7.9.9 ld.global.nc" },
    { "ld.global.nc" EVICT EVICT2 HINTS VECTORS ".$1", TYPES, "d_:1+* a (.L2::cache_hint)s:b64", 74, "sm_70+", 0, op_ld,
      check_access, "9.7.9.9 ld.global.nc" },
    { "ldu{.global}{.v2|.v4}.$1", TYPES, "d:1+* a", 20, "", 0, op_ld, check_ldu, "9.7.9.10 ldu" },
    { "st{.weak}" STORES WRITES "{.L2::cache_hint}" VECTORS ".$1", TYPES, "a s:1+* (.L2::cache_hint)s:b64", 10, "", 0,
      op_st, check_access, "9.7.9.11 st" },
    { "st{.weak}" STORES EVICT EVICT2 "{.L2::cache_hint}" VECTORS ".$1", TYPES, "a s:1+* (.L2::cache_hint)s:b64", 74,
      "sm_70+", 0, op_st, check_access, "9.7.9.11 st" },
    { "st.volatile" STORES VECTORS ".$1", TYPES, "a s:1+*", 10, "", 0, op_st, check_access, "9.7.9.11 st" },
    { "st(.relaxed|.release)(.cta|.cluster|.gpu|.sys)" STORES EVICT EVICT2 "{.L2::cache_hint}" VECTORS ".$1", TYPES,
      "a s:1+* (.L2::cache_hint)s:b64", 60, "sm_70+", 0, op_st, check_access, "9.7.9.11 st" },
    { "st.mmio.relaxed.sys{.global}.$1", TYPES, "a s:1+", 82, "sm_70+", 0, op_st, check_access, "9.7.9.11 st" },
    { "prefetch{.global|.local}(.L1|.L2)", NULL, "a", 20, "", 0, op_prefetch, NULL, "9.7.9.15 prefetch" },
    { "prefetch.global(.L2::evict_last|.L2::evict_normal)", NULL, "a", 74, "sm_80+", 0, op_prefetch, NULL,
      "9.7.9.15 prefetch" },
    { "prefetchu.L1", NULL, "a", 20, "", 0, op_prefetch, NULL, "9.7.9.15 prefetch" },
};

const struct family family_memory = FAMILY("loads and stores", rows);

/* Moves (PTX ISA 9.7.9): mov of registers, addresses, vectors; cvta, isspacep, mapa, getctarank. */
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"
#include "machine/core/global_memory.h"
#include "machine/core/report.h"

#include <string.h>

/* mov d, a */
static trap op_mov(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(a); }

static trap op_mov_pred(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint32_t set = predicate_lanes(w, &in->operand[1], lanes);
    FOR_LANES(l, lanes) d[l] = set >> l & 1;
    return TRAP_NONE;
}

/* mov d, %clock: registers that change while a thread runs. */
static trap op_mov_special(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = special_value(w, l, (enum special)in->operand[1].value) & in->mask;
    return TRAP_NONE;
}

static const char *prepare_mov_special(struct module *module, struct insn *in)
{
    (void)module;
    const enum ptx_type have = (enum ptx_type)in->operand[1].type;
    return type_bits(have) == insn_bits(in) ? NULL : "this special register has another width";
}

/* mov.b128 d, a   two rows each */
static trap op_mov_b128(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) d[l] = a[l], d[l + LANES] = a[l + LANES];
    return TRAP_NONE;
}

/* mov.b32 d, {a, b}   a in the low bits */
static trap op_pack(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct operand *vector = &in->operand[1];
    const uint32_t bits = insn_bits(in) / vector->count;
    uint64_t value[LANES] = { 0 };
    for (uint32_t i = 0; i < vector->count; i++) {
        const uint64_t *a = source_row(w, &vector->element[i]);
        FOR_LANES(l, lanes) value[l] |= (a[l] & bits_mask(bits)) << (i * bits);
    }
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = value[l];
    return TRAP_NONE;
}

/* mov.b32 {d, e}, a */
static trap op_unpack(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct operand *vector = &in->operand[0];
    const uint32_t bits = insn_bits(in) / vector->count;
    const uint64_t *a = source(w, in, 1);
    uint64_t value[LANES];
    FOR_LANES(l, lanes) value[l] = a[l];
    for (uint32_t i = 0; i < vector->count; i++) {
        uint64_t *d = register_row(w, vector->element[i].slot);
        FOR_LANES(l, lanes) d[l] = value[l] >> (i * bits) & bits_mask(bits);
    }
    return TRAP_NONE;
}

static trap op_pack_b128(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source_row(w, &in->operand[1].element[0]), *b = source_row(w, &in->operand[1].element[1]);
    FOR_LANES(l, lanes) d[l] = a[l], d[l + LANES] = b[l];
    return TRAP_NONE;
}

static trap op_unpack_b128(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = register_row(w, in->operand[0].element[0].slot), *e = register_row(w, in->operand[0].element[1].slot);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) {
        const uint64_t high = a[l + LANES];
        d[l] = a[l], e[l] = high;
    }
    return TRAP_NONE;
}

static uint64_t window_of(enum space space)
{
    switch (space) {
    case SPACE_SHARED: case SPACE_SHARED_CLUSTER: return SHARED_WINDOW;
    case SPACE_LOCAL: return LOCAL_WINDOW;
    default: return 0;                    /* global, const and kernel parameters have their generic addresses */
    }
}

/* cvta.space d, a   an address of the space becomes a generic one; cvta.to.space the other way. */
static trap op_cvta(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t window = window_of((enum space)in->space);
    UNARY(a + window);
}

static trap op_cvta_to(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t window = window_of((enum space)in->space);
    UNARY(a - window);
}

static bool in_const(const struct warp *w, uint64_t a)
{
    const struct allocation *found = global_find(&w->cta->cluster->grid->machine->memory, a);
    return found != NULL && found->read_only;
}

static bool is_in(enum space space, const struct warp *w, uint64_t a)
{
    switch (space) {
    case SPACE_SHARED:
        return a - SHARED_WINDOW < WINDOW_BYTES && (a - SHARED_WINDOW) >> SHARED_RANK_SHIFT == w->cta->rank;
    case SPACE_SHARED_CLUSTER:
        return a - SHARED_WINDOW < WINDOW_BYTES && (a - SHARED_WINDOW) >> SHARED_RANK_SHIFT < w->cta->cluster->ctas;
    case SPACE_LOCAL: return a - LOCAL_WINDOW < WINDOW_BYTES;
    case SPACE_PARAM: return a - PARAM_WINDOW < PARAMETER_LIMIT;
    case SPACE_CONST: return in_const(w, a);
    default: return a < SHARED_WINDOW && !in_const(w, a);
    }
}

/* isspacep.space p, a   whether a generic address lies in the space */
static trap op_isspacep(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) d[l] = is_in((enum space)in->space, w, a[l]);
    return TRAP_NONE;
}

/* mapa d, a, b   the shared::cluster address of a in CTA b of the cluster.  Of a rank that the cluster has not it is an
 * address of nobody's, and whoever uses that is reported: CUTLASS maps for all lanes what few of them use. */
static trap op_mapa(struct warp *w, const struct insn *in, uint32_t lanes)
{
    enum { NO_RANK = 255 };
    const uint64_t window = in->space == SPACE_SHARED_CLUSTER ? 0 : SHARED_WINDOW;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2);
    FOR_LANES(l, lanes) {
        const uint64_t offset = a[l] - window;
        if (offset > UINT32_MAX)
            return warp_fault(w, in, l, REPORT_OUT_OF_BOUNDS, "maps 0x%llx, which is no shared address",
                              (unsigned long long)a[l]);
        const uint64_t rank = (uint32_t)b[l] < NO_RANK ? (uint32_t)b[l] : NO_RANK;
        d[l] = window + (rank << SHARED_RANK_SHIFT | (offset & ((1u << SHARED_RANK_SHIFT) - 1)));
    }
    return TRAP_NONE;
}

/* getctarank d, a   the rank of the CTA that owns a shared::cluster address */
static trap op_getctarank(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t window = in->space == SPACE_SHARED_CLUSTER ? 0 : SHARED_WINDOW;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) d[l] = (uint32_t)((a[l] - window) >> SHARED_RANK_SHIFT);
    return TRAP_NONE;
}

#define VECTOR_MOVES(type, element, count) \
    { "mov." type, type, "d:" type " s:" element "{" count "}", 10, "", MOVES, NULL, prepare_pack, "9.7.9.3 mov" }, \
    { "mov." type, type, "d_:" element "{" count "} s:" type, 10, "", MOVES, NULL, prepare_unpack, "9.7.9.3 mov" }

static void set_type(struct insn *in)
{
    in->type[0] = (uint8_t)type_named(in->row->types, strlen(in->row->types));
    in->mask = bits_mask(insn_bits(in));
}
static const char *prepare_pack(struct module *module, struct insn *in)
{
    set_type(in);
    if (in->type[0] == T_B128 && module->version < 83) return "the type .b128 needs PTX 8.3";
    in->run = in->type[0] == T_B128 ? op_pack_b128 : op_pack;
    return NULL;
}
static const char *prepare_unpack(struct module *module, struct insn *in)
{
    set_type(in);
    if (in->type[0] == T_B128 && module->version < 83) return "the type .b128 needs PTX 8.3";
    in->run = in->type[0] == T_B128 ? op_unpack_b128 : op_unpack;
    return NULL;
}

static const char *prepare_entry(struct module *module, struct insn *in)
{
    return module->version < 83 && insn_has(in, ".param::entry") ? ".param::entry needs PTX 8.3" : NULL;
}

static const struct row rows[] = {
    { "mov.$1", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", "d:1 s:1", 10, "", MOVES, op_mov, NULL, "9.7.9.3 mov" },
    { "mov.$1", "b32 b64 u32 u64 s32 s64", "d:1 q:1", 10, "", 0, op_mov_special, prepare_mov_special, "9.7.9.3 mov" },
    { "mov.pred", NULL, "d:pred p", 10, "", 0, op_mov_pred, NULL, "9.7.9.3 mov" },
    { "mov.b128", NULL, "d:b128 r:b128", 83, "sm_70+", MOVES, op_mov_b128, NULL, "9.7.9.3 mov" },
    VECTOR_MOVES("b16", "b8", "2"),
    VECTOR_MOVES("b32", "b16", "2"),
    VECTOR_MOVES("b32", "b8", "4"),
    VECTOR_MOVES("b64", "b32", "2"),
    VECTOR_MOVES("b64", "b16", "4"),
    VECTOR_MOVES("b128", "b64", "2"),
    { "cvta(.const|.global|.local|.shared|.shared::cta|.shared::cluster|.param|.param::entry).$1", "u64", "d:1 s:1", 20,
      "", 0, op_cvta, prepare_entry, "9.7.9.20 cvta" },
    { "cvta.to(.const|.global|.local|.shared|.shared::cta|.shared::cluster|.param|.param::entry).$1", "u64", "d:1 s:1",
      20, "", 0, op_cvta_to, prepare_entry, "9.7.9.20 cvta" },
    { "isspacep(.const|.global|.local|.shared|.shared::cta|.shared::cluster|.param|.param::entry)", NULL, "P s:u64", 20,
      "", 0, op_isspacep, prepare_entry, "9.7.9.19 isspacep" },
    { "mapa.shared::cluster.$1", "u32", "d:1 s:1 s:u32", 78, "sm_90+", 0, op_mapa, NULL, "9.7.9.23 mapa" },
    { "mapa.$1", "u64", "d:1 s:1 s:u32", 78, "sm_90+", 0, op_mapa, NULL, "9.7.9.23 mapa" },
    { "getctarank.shared::cluster.$1", "u32", "d:u32 s:1", 78, "sm_90+", 0, op_getctarank, NULL,
      "9.7.9.24 getctarank" },
    { "getctarank.$1", "u64", "d:u32 s:1", 78, "sm_90+", 0, op_getctarank, NULL, "9.7.9.24 getctarank" },
};

const struct family family_move = FAMILY("moves", rows);

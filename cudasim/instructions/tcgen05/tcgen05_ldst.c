/* tcgen05.ld, st, wait and fence (PTX ISA 9.7.16): between tensor memory and the registers of a warp.
 *
 * Data move when the instruction is issued; the checks see to it that nobody can tell.  .pack::16b and .unpack::16b
 * follow CuTe's layouts: register r of the form without them holds one column, with them the low halves of two; the
 * second half of .16x32bx2 begins as many columns on as the instruction says, packed or not.  A reduction is over the
 * registers of each thread, in .16x32bx2, too; its NaN is 0x7fffffff (public tests that ran on a B200 and a B300). */
#include "instructions/table/families.h"
#include "instructions/mma/fragment.h"
#include "machine/tensor/tensor_pipe.h"
#include "machine/mma/wgmma.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"
#include "machine/mma/row_use.h"

#include <string.h>

enum shape { SHAPE_32X32B = 1, SHAPE_16X64B, SHAPE_16X128B, SHAPE_16X256B, SHAPE_16X32BX2 };
enum { PACKED = 8, MAXIMUM = 16, ABSOLUTE = 32, NAN_WINS = 64 }; /* of in->detail; below them the shape */

/* Where register r of thread t lies, from the address (of a second half: its own) on. */
static void place_of(uint32_t shape, uint32_t t, uint32_t r, uint32_t *lane, uint32_t *column)
{
    switch (shape) {
    case SHAPE_32X32B: *lane = t, *column = r; break;
    case SHAPE_16X64B: *lane = t / 4 + 8 * (t & 1), *column = 2 * r + (t >> 1 & 1); break;
    case SHAPE_16X128B: *lane = t / 4 + 8 * (r & 1), *column = 4 * (r >> 1) + (t & 3); break;
    case SHAPE_16X256B: *lane = t / 4 + 8 * (r >> 1 & 1), *column = 8 * (r >> 2) + 2 * (t & 3) + (r & 1); break;
    default: *lane = t & 15, *column = r; break;
    }
}

/* The address of the whole warp, in its own quarter of the lanes: which quarter the address names, hardware ignores. */
static trap read_address(struct warp *w, const struct insn *in, uint32_t lanes, const struct operand *o, uint32_t *lane,
                         uint32_t *column)
{
    uint64_t address[LANES];
    if (tensor_memory_of(w, in) == NULL) return TRAP_FAULT;
    address_lanes(w, o, lanes, address);
    for (uint32_t l = 1; l < LANES; l++)
        if ((uint32_t)address[l] != (uint32_t)address[0])
            return warp_fault(w, in, l, REPORT_ILLEGAL, "has an address that is not the same in all lanes");
    const uint32_t first = w->index % TENSOR_QUARTERS * LANES, named = (uint32_t)address[0] >> 16;
    const bool halves = (in->detail & 7) != SHAPE_32X32B,
               aligned = named % LANES == 0 || (halves && named % LANES == 16);
    static const char sentence[] =
        "has lane %u in its address; warp %u accesses lanes %u to %u of tensor memory, from %s";
    const char *from = halves ? "the first or the 17th" : "the first";
    *lane = first + named % LANES;
    *column = (uint32_t)address[0] & 0xffff;
    if (!aligned || named >= TENSOR_LANES)
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, sentence, named, w->index, first, first + LANES - 1, from);
    if (named == *lane) return TRAP_NONE;
    return warp_breaks(w, in, NO_LANE, RULE_TENSOR_LANES, sentence, named, w->index, first, first + LANES - 1, from);
}

static trap no_memory(struct warp *w, const struct insn *in)
{
    return warp_fault(w, in, NO_LANE, REPORT_RESOURCES, "finds no host memory");
}

struct transfer { enum tensor_direction direction; uint32_t lane, column, second; const struct operand *registers; };

/* One half or all of a cell. */
static trap move_cell(struct warp *w, const struct insn *in, const struct transfer *x, uint32_t lane, uint32_t column,
                      uint32_t shift, uint64_t *value)
{
    const bool packed = (in->detail & PACKED) != 0;
    const uint32_t mask = packed ? 0xffff : UINT32_MAX, halves = packed ? HALF_LOW : HALF_BOTH;
    const trap t = tensor_touch(w, in, x->direction, lane, column);
    if (t != TRAP_NONE) return t;
    uint32_t *cell = &w->cta->sm->tensor->value[lane * TENSOR_COLUMNS + column];
    uint8_t *valid = &w->cta->sm->tensor->valid[lane * TENSOR_COLUMNS + column];
    if (x->direction == TENSOR_STORE) { /* nothing says what becomes of the upper half */
        *cell = (uint32_t)(*value >> shift) & mask;
        *valid = (uint8_t)halves;
        return TRAP_NONE;
    }
    if (w->cta->cluster->grid->machine->options.check_uninitialised && (*valid & halves) != halves)
        return warp_fault(w, in, NO_LANE, REPORT_UNINITIALISED,
                          "reads lane %u, column %u of tensor memory, which has not been written%s", lane, column,
                          *valid != 0 ? " in its upper half" : "");
    *value |= (uint64_t)(*cell & mask) << shift;
    return TRAP_NONE;
}

/* The cells of the whole instruction, against the operations of the tensor pipe. */
static trap order(struct warp *w, const struct insn *in, const struct transfer *x)
{
    const uint32_t shape = in->detail & 7, wide = (in->detail & PACKED) != 0 ? 2 : 1, count = x->registers->count;
    const bool two_columns =
        shape == SHAPE_16X64B || shape == SHAPE_16X128B || shape == SHAPE_16X256B; /* a register, of 16
                                                                                      lanes */
    struct tensor_area area =
        tensor_lanes(x->lane, shape == SHAPE_32X32B ? 32 : 16, x->column, wide * count * (two_columns ? 2 : 1));
    const trap t = tensor_order(w, in, &area, x->direction);
    if (t != TRAP_NONE || shape != SHAPE_16X32BX2) return t;
    area.column += x->second;
    return tensor_order(w, in, &area, x->direction);
}

static trap transfer(struct warp *w, const struct insn *in, const struct transfer *x)
{
    const bool packed = (in->detail & PACKED) != 0;
    if (!tensor_implied_after(w, w->cta->sm->tensor, w->live)) return no_memory(w, in);
    const trap ordered = order(w, in, x);
    if (ordered != TRAP_NONE) return ordered;
    for (uint32_t r = 0; r < x->registers->count; r++) {
        const uint64_t *from = x->direction == TENSOR_STORE ? source_row(w, &x->registers->element[r]) : NULL;
        uint64_t value[LANES] = { 0 };
        for (uint32_t l = 0; l < LANES; l++) {
            uint32_t lane, column;
            place_of(in->detail & 7, l, r, &lane, &column);
            if (from != NULL) value[l] = from[l];
            const uint32_t at = x->column + (packed ? 2 * column : column) + (l < 16 ? 0 : x->second);
            trap t = move_cell(w, in, x, x->lane + lane, at, 0, &value[l]);
            if (t == TRAP_NONE && packed) t = move_cell(w, in, x, x->lane + lane, at + 1, 16, &value[l]);
            if (t != TRAP_NONE) return t;
        }
        if (from == NULL) memcpy(register_row(w, x->registers->element[r].slot), value, sizeof value);
    }
    w->cta->sm->tensor->warp[w->index].accesses++;
    return TRAP_NONE;
}

/* tcgen05.ld d, [a]{, second}   d = cells; the registers are the warp's after wait::ld */
static trap op_ld(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct transfer x = { .direction = TENSOR_LOAD, .registers = &in->operand[0] };
    trap t = read_address(w, in, lanes, &in->operand[1], &x.lane, &x.column);
    if ((in->detail & 7) == SHAPE_16X32BX2) x.second = (uint32_t)in->operand[2].value;
    if (t == TRAP_NONE) t = transfer(w, in, &x);
    return t == TRAP_NONE ? rows_load(w, in, x.registers) : t;
}

/* ---- reductions ---- */

static bool is_nan(const struct insn *in, uint32_t value)
{
    return in->type[0] == T_F32 && (value & 0x7fffffff) > 0x7f800000;
}

/* Numbers whose order is that of the values: -0 below +0. */
static uint32_t rank_of(const struct insn *in, uint32_t value)
{
    if (in->type[0] == T_U32) return value;
    if (in->type[0] == T_S32) return value ^ 0x80000000;
    return value >> 31 != 0 ? ~value : value | 0x80000000;
}

static uint32_t reduced(struct warp *w, const struct insn *in, const struct operand *registers, uint32_t lane)
{
    uint32_t best = 0x7fffffff;
    bool any = false;
    for (uint32_t r = 0; r < registers->count; r++) {
        uint32_t value = (uint32_t)register_row(w, registers->element[r].slot)[lane];
        if (is_nan(in, value)) {
            if ((in->detail & NAN_WINS) != 0) return 0x7fffffff;
            continue;
        }
        if ((in->detail & ABSOLUTE) != 0) value &= 0x7fffffff;
        const uint32_t rank = rank_of(in, value), least = rank_of(in, best);
        if (!any || ((in->detail & MAXIMUM) != 0 ? rank > least : rank < least)) best = value;
        any = true;
    }
    return best;
}

/* tcgen05.ld.red d, e, [a]{, second}   d = cells, e = the least or the largest of each thread's; the warp's after
 * wait::ld */
static trap op_ld_red(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct transfer x = { .direction = TENSOR_LOAD, .registers = &in->operand[0] };
    const struct operand one = { .kind = OPERAND_VECTOR, .count = 1, .element = &in->operand[1] };
    uint64_t value[LANES];
    trap t = read_address(w, in, lanes, &in->operand[2], &x.lane, &x.column);
    if ((in->detail & 7) == SHAPE_16X32BX2) x.second = (uint32_t)in->operand[3].value;
    if (t == TRAP_NONE) t = transfer(w, in, &x);
    if (t != TRAP_NONE) return t;
    for (uint32_t l = 0; l < LANES; l++) value[l] = reduced(w, in, x.registers, l);
    memcpy(destination(w, in, 1), value, sizeof value);
    t = rows_load(w, in, x.registers);
    return t == TRAP_NONE ? rows_load(w, in, &one) : t;
}

/* tcgen05.st [a]{, second}, b   cells = b; others may read them after wait::st */
static trap op_st(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const bool split = (in->detail & 7) == SHAPE_16X32BX2;
    struct transfer x = { .direction = TENSOR_STORE, .registers = &in->operand[split ? 2 : 1] };
    const trap t = read_address(w, in, lanes, &in->operand[0], &x.lane, &x.column);
    if (split) x.second = (uint32_t)in->operand[1].value;
    return t == TRAP_NONE ? transfer(w, in, &x) : t;
}

static trap wait_for(struct warp *w, const struct insn *in, uint32_t lanes, enum tensor_direction direction)
{
    struct tensor_memory *m = tensor_memory_of(w, in);
    if (m == NULL) return TRAP_FAULT;
    return tensor_wait(w, m, direction) && tensor_implied_before(w, m, lanes) ? TRAP_NONE : no_memory(w, in);
}

/* tcgen05.wait::ld   until the warp's tcgen05.ld are complete */
static trap op_wait_ld(struct warp *w, const struct insn *in, uint32_t lanes)
{
    rows_loaded(w);
    return wait_for(w, in, lanes, TENSOR_LOAD);
}

/* tcgen05.wait::st   until the warp's tcgen05.st are complete */
static trap op_wait_st(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return wait_for(w, in, lanes, TENSOR_STORE);
}

/* tcgen05.fence::before_thread_sync   orders the accesses before it before the synchronisation that follows */
static trap op_before(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct tensor_memory *m = tensor_memory_of(w, in);
    if (m == NULL) return TRAP_FAULT;
    return tensor_fence_before(w, m, lanes) ? TRAP_NONE : no_memory(w, in);
}

/* tcgen05.fence::after_thread_sync   orders the accesses behind it behind the synchronisation before it */
static trap op_after(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct tensor_memory *m = tensor_memory_of(w, in);
    if (m == NULL) return TRAP_FAULT;
    return tensor_fence_after(w, m, lanes) ? TRAP_NONE : no_memory(w, in);
}

/* ---- forms ---- */

static const char *prepare_shape(struct insn *in, const struct operand *address, uint32_t shape, uint32_t per_repeat,
                                 uint32_t count)
{
    const uint32_t n = in->number[0];
    if (!address->based || type_bits((enum ptx_type)address->type) != 32)
        return "the address of tensor memory is a register of 32 bits";
    in->detail = shape | (insn_has(in, ".pack::16b") || insn_has(in, ".unpack::16b") ? PACKED : 0);
    if (n == 0 || (n & (n - 1)) != 0 || n * per_repeat > 128)
        return per_repeat == 1   ? "the count is a power of two from .x1 to .x128"
               : per_repeat == 2 ? "the count is a power of two from .x1 to .x64"
                                 : "the count is a power of two from .x1 to .x32";
    return count == n * per_repeat ? NULL : "the vector has not as many registers as the shape and the count say";
}
#define PREPARE(name, shape, per_repeat) \
    static const char *prepare_ld_##name(struct module *m, struct insn *in) \
    { \
        (void)m; \
        return prepare_shape(in, &in->operand[1], shape, per_repeat, in->operand[0].count); \
    } \
    static const char *prepare_st_##name(struct module *m, struct insn *in) \
    { \
        (void)m; \
        return prepare_shape(in, &in->operand[0], shape, per_repeat, \
                             in->operand[shape == SHAPE_16X32BX2 ? 2 : 1].count); \
    }
PREPARE(32x32b, SHAPE_32X32B, 1)
PREPARE(16x64b, SHAPE_16X64B, 1)
PREPARE(16x128b, SHAPE_16X128B, 2)
PREPARE(16x256b, SHAPE_16X256B, 4)
PREPARE(16x32bx2, SHAPE_16X32BX2, 1)

static const char *prepare_red(struct module *m, struct insn *in)
{
    (void)m;
    const uint32_t shape = insn_has(in, ".16x32bx2") ? SHAPE_16X32BX2 : SHAPE_32X32B;
    const char *why = prepare_shape(in, &in->operand[2], shape, 1, in->operand[0].count);
    if (insn_has(in, ".max")) in->detail |= MAXIMUM;
    if (insn_has(in, ".abs")) in->detail |= ABSOLUTE;
    if (insn_has(in, ".NaN")) in->detail |= NAN_WINS;
    return why == NULL && in->number[0] < 2 ? "the count is a power of two from .x2 to .x128" : why;
}

static const char *prepare_fence(struct module *m, struct insn *in)
{
    (void)in;
    m->tensor_fences = true;
    return NULL;
}

#define BOTH(shape) \
    { "tcgen05.ld.sync.aligned." #shape ".x#{.pack::16b}.b32", \
      NULL, \
      "d:b32{} a", \
      86, \
      "sm_100f", \
      DEMANDS_WHOLE_WARP, \
      op_ld, \
      prepare_ld_##shape, \
      "9.7.16 tcgen05.ld" }, \
    { \
        "tcgen05.st.sync.aligned." #shape ".x#{.unpack::16b}.b32", NULL, "a s:b32{}", 86, "sm_100f", \
            DEMANDS_WHOLE_WARP, op_st, prepare_st_##shape, "9.7.16 tcgen05.st" \
    }
/* The manual writes the type last in its syntax, before the operation in its example; ptxas takes both. */
#define REDUCTION(words, types, operands) \
    { \
        "tcgen05.ld.red.sync.aligned" words, types, "d:b32{} d:b32 a" operands, 88, "sm_103f", DEMANDS_WHOLE_WARP, \
            op_ld_red, prepare_red, "9.7.16 tcgen05.ld" \
    }
#define REDUCTIONS(shape, operands) \
    REDUCTION(shape ".x#(.min|.max){.abs}{.NaN}.f32", NULL, operands), \
        REDUCTION(shape ".x#(.min|.max).$1", "u32 s32", operands), \
        REDUCTION(shape ".x#.f32(.min|.max){.abs}{.NaN}", NULL, operands), \
        REDUCTION(shape ".x#.$1(.min|.max)", "u32 s32", operands)

static const struct row rows[] = {
    REDUCTIONS(".32x32b", ""),
    REDUCTIONS(".16x32bx2", " i:s32"),
    BOTH(32x32b),
    BOTH(16x64b),
    BOTH(16x128b),
    BOTH(16x256b),
    { "tcgen05.ld.sync.aligned.16x32bx2.x#{.pack::16b}.b32", NULL, "d:b32{} a i:s32", 86, "sm_100f", DEMANDS_WHOLE_WARP,
      op_ld, prepare_ld_16x32bx2, "9.7.16 tcgen05.ld" },
    { "tcgen05.st.sync.aligned.16x32bx2.x#{.unpack::16b}.b32", NULL, "a i:s32 s:b32{}", 86, "sm_100f",
      DEMANDS_WHOLE_WARP, op_st, prepare_st_16x32bx2, "9.7.16 tcgen05.st" },
    { "tcgen05.wait::ld.sync.aligned", NULL, "", 86, "sm_100f", DEMANDS_WHOLE_WARP, op_wait_ld, NULL,
      "9.7.16 tcgen05.wait" },
    { "tcgen05.wait::st.sync.aligned", NULL, "", 86, "sm_100f", DEMANDS_WHOLE_WARP, op_wait_st, NULL,
      "9.7.16 tcgen05.wait" },
    { "tcgen05.fence::before_thread_sync", NULL, "", 86, "sm_100f", 0, op_before, prepare_fence,
      "9.7.16 tcgen05.fence" },
    { "tcgen05.fence::after_thread_sync", NULL, "", 86, "sm_100f", 0, op_after, prepare_fence, "9.7.16 tcgen05.fence" },
};

const struct family family_tcgen05_ldst = FAMILY("tensor memory and registers", rows);

/* tcgen05.cp and tcgen05.shift (PTX ISA 9.7.16.9): asynchronous operations of one thread on tensor memory, of its CTA
 * or of its CTA pair.
 *
 * With cta_group::2 a copy writes the tensor memory of both CTAs, each from its own shared memory at the same offsets,
 * as CUTLASS relies upon.  A shift moves every quarter of 32 lanes by one: lane i gets what lane i + 1 had, and the
 * last keeps what it has; so a B200 was seen to do (public measurements); the manual says only that rows go down by
 * one, except the last. */
#include "instructions/table/families.h"
#include "machine/mma/matrix_descriptor.h"
#include "machine/tensor/tcgen05_copy.h"
#include "machine/tensor/tensor_pipe.h"
#include "machine/profile/watch.h"
#include "machine/core/random.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

#include <string.h>

enum { SHIFT_COLUMNS = 8, QUARTER_LANES = TENSOR_LANES / TENSOR_QUARTERS };

/* insn.detail of a copy. */
static enum copy_shape shape_of(const struct insn *in) { return (enum copy_shape)(in->detail & 15); }
static enum copy_format format_of(const struct insn *in) { return (enum copy_format)(in->detail >> 4 & 15); }
static uint32_t group_of(const struct insn *in) { return (uint32_t)(in->detail >> 8); }

struct work {
    struct tensor_operation pipe;
    struct cta *cta[2];    /* of the pair; the second may be NULL */
    uint32_t lane, column; /* of the address */
    struct matrix_layout source;
    uint32_t done, batch; /* rows, of all CTAs one behind the other */
};

/* The address in tensor memory; above the lane its bits mean nothing. */
static void take_address(struct work *o, struct warp *w, const struct insn *in, uint32_t lane)
{
    uint64_t address[LANES];
    address_lanes(w, &in->operand[0], 1u << lane, address);
    o->lane = (uint32_t)address[lane] >> 16 & (TENSOR_LANES - 1);
    o->column = (uint32_t)address[lane] & 0xffff;
}

static trap take_ctas(struct work *o, struct warp *w, const struct insn *in)
{
    o->cta[0] = w->cta;
    if (o->pipe.group == 1) return TRAP_NONE;
    o->cta[1] = tensor_peer(w, in);
    return o->cta[1] == NULL ? TRAP_FAULT : TRAP_NONE;
}

static trap check_alive(const struct work *o, const struct cta *cta)
{
    if (cta->live_threads != 0) return TRAP_NONE;
    const struct agent_operation *a = &o->pipe.operation;
    return warp_fault(a->warp, a->in, a->lane, REPORT_ASYNC,
                      "writes tensor memory of CTA rank %u, all of whose threads have exited without waiting for it",
                      cta->rank);
}

/* Issues what `issue` fills in. */
static trap begin(struct warp *w, const struct insn *in, uint32_t lane, const struct agent_kind *kind,
                  enum tensor_work work,
                  trap (*issue)(struct work *o, struct warp *w, const struct insn *in, uint32_t lane))
{
    struct work *o = tensor_begin(w, in, lane, sizeof *o, kind, work, group_of(in));
    if (o == NULL) return TRAP_FAULT;
    take_address(o, w, in, lane);
    trap t = take_ctas(o, w, in);
    if (t == TRAP_NONE) t = issue(o, w, in, lane);
    if (t == TRAP_NONE) tensor_start(&o->pipe);
    else tensor_abandon(&o->pipe);
    return t;
}

/* ---- copies ---- */

static struct tensor_area area_of(const struct work *o, enum copy_shape shape)
{
    const uint32_t columns = copy_shapes[shape].chunks * COPY_COLUMNS_OF_CHUNK;
    if (shape != COPY_4X256B) return tensor_lanes(0, TENSOR_LANES, o->column, columns);
    struct tensor_area area = tensor_lanes(0, 0, o->column, columns);
    for (uint32_t q = 0; q < TENSOR_QUARTERS; q++) area.lanes[q] = 1u << o->lane;
    return area;
}

/* Chunks that lie behind each other are told to the checks together. */
static trap read_source(struct work *o, struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta)
{
    const struct copy_shape_info *shape = &copy_shapes[shape_of(in)];
    const uint32_t bytes = copy_chunk_bytes(format_of(in)),
                   lowest = cta->cluster->grid->machine->device->shared_reserved;
    uint32_t run = 0, run_bytes = 0;
    for (uint32_t i = 0; i < shape->rows * shape->chunks; i++) {
        const uint32_t row = i / shape->chunks, at = matrix_chunk(&o->source, i % shape->chunks, row);
        if (at < lowest || at + COPY_CHUNK > cta->shared_bytes)
            return warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                              "reads 16 bytes of row %u at shared address 0x%x; the CTA's shared memory lies from 0x%x "
                              "to 0x%x",
                              row, at, lowest, cta->shared_bytes);
        if (at == run + run_bytes && run_bytes != 0) {
            run_bytes += bytes;
            continue;
        }
        const trap t = run_bytes == 0 ? TRAP_NONE : async_reads(tensor_token(&o->pipe), cta, run, run_bytes);
        if (t != TRAP_NONE) return t;
        run = at, run_bytes = bytes;
    }
    return async_reads(tensor_token(&o->pipe), cta, run, run_bytes);
}

static trap issue_copy(struct work *o, struct warp *w, const struct insn *in, uint32_t lane)
{
    char why[256];
    const enum copy_shape shape = shape_of(in);
    const uint64_t descriptor = source(w, in, 1)[lane];
    if (!matrix_of_tcgen05(descriptor, false, 8, w->cta->cluster->grid->machine->device->sm, &o->source, why,
                           sizeof why))
        return warp_fault(w, in, lane, REPORT_ILLEGAL, "takes its source by the descriptor 0x%llx, which %s",
                          (unsigned long long)descriptor, why);
    if (o->lane != 0 && (shape != COPY_4X256B || o->lane >= QUARTER_LANES))
        return warp_fault(w, in, lane, REPORT_ILLEGAL, "has lane %u in its address; it is %s", o->lane,
                          shape == COPY_4X256B ? "0 to 31, the row in each quarter of the lanes" : "0");
    for (int i = 0; i < 2 && o->cta[i] != NULL; i++) {
        trap t = tensor_uses(&o->pipe, o->cta[i], area_of(o, shape), TENSOR_WRITES);
        if (t == TRAP_NONE) t = read_source(o, w, in, lane, o->cta[i]);
        if (t != TRAP_NONE) return t;
    }
    o->batch = copy_shapes[shape].rows * (o->cta[1] == NULL ? 1 : 2);
    if (w->cta->cluster->grid->machine->options.schedule == SCHEDULE_RANDOM)
        o->batch = (o->batch + 3) / (1 + (uint32_t)(cluster_random(w->cta->cluster) % 4));
    return TRAP_NONE;
}

static void copy_row(const struct work *o, const struct cta *cta, uint32_t row)
{
    const struct insn *in = o->pipe.operation.in;
    const enum copy_shape shape = shape_of(in);
    uint32_t lanes[COPY_MOST_LANES];
    const uint32_t count = copy_lanes(shape, row, lanes);
    watch_moved(&o->pipe.operation, MOVED_FROM_SHARED, copy_shapes[shape].chunks * copy_chunk_bytes(format_of(in)));
    for (uint32_t chunk = 0; chunk < copy_shapes[shape].chunks; chunk++) {
        uint8_t expanded[COPY_CHUNK];
        copy_expand(format_of(in), cta->shared + matrix_chunk(&o->source, chunk, row), expanded);
        const uint32_t column = o->column + chunk * COPY_COLUMNS_OF_CHUNK;
        for (uint32_t i = 0; i < count; i++) {
            memcpy(tensor_value(cta, o->lane + lanes[i], column), expanded, COPY_CHUNK);
            memset(tensor_valid(cta, o->lane + lanes[i], column), HALF_BOTH, COPY_COLUMNS_OF_CHUNK);
        }
    }
}

static trap step_copy(struct agent_operation *operation, bool *done)
{
    struct work *o = (struct work *)operation;
    const uint32_t rows = copy_shapes[shape_of(operation->in)].rows, all = rows * (o->cta[1] == NULL ? 1 : 2);
    for (uint32_t left = o->batch; left != 0 && o->done < all; left--, o->done++) {
        const trap t = check_alive(o, o->cta[o->done / rows]);
        if (t != TRAP_NONE) return t;
        copy_row(o, o->cta[o->done / rows], o->done % rows);
    }
    *done = o->done == all;
    return TRAP_NONE;
}

static const struct agent_kind copy_kind = { .name = "tcgen05.cp",
                                             .engine = ENGINE_TENSOR,
                                             .may_complete = tensor_may_complete,
                                             .step = step_copy,
                                             .complete = tensor_complete,
                                             .drop = tensor_drop };

/* tcgen05.cp [a], d   rows of the matrix that d describes to lanes of tensor memory */
static trap op_cp(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const enum tensor_work work = shape_of(in) == COPY_4X256B ? TENSOR_CP_4X256B : TENSOR_CP;
    trap t = TRAP_NONE;
    FOR_LANES(l, lanes) if (t == TRAP_NONE) t = begin(w, in, l, &copy_kind, work, issue_copy);
    return t;
}

/* ---- shifts ---- */

static trap issue_shift(struct work *o, struct warp *w, const struct insn *in, uint32_t lane)
{
    if (o->lane != 0)
        return warp_fault(w, in, lane, REPORT_ILLEGAL, "has lane %u in its address; %s", o->lane,
                          o->lane % QUARTER_LANES != 0 ? "it is a multiple of 32"
                                                       : "no source says which lanes a shift moves from another than "
                                                         "lane 0 on");
    trap t = TRAP_NONE;
    for (int i = 0; i < 2 && o->cta[i] != NULL && t == TRAP_NONE; i++)
        t = tensor_uses(&o->pipe, o->cta[i], tensor_lanes(0, TENSOR_LANES, o->column, SHIFT_COLUMNS), TENSOR_WRITES);
    return t;
}

static void shift_quarter(const struct cta *cta, uint32_t first, uint32_t column)
{
    for (uint32_t lane = first; lane + 1 < first + QUARTER_LANES; lane++) {
        memcpy(tensor_value(cta, lane, column), tensor_value(cta, lane + 1, column), SHIFT_COLUMNS * sizeof(uint32_t));
        memcpy(tensor_valid(cta, lane, column), tensor_valid(cta, lane + 1, column), SHIFT_COLUMNS);
    }
}

static trap step_shift(struct agent_operation *operation, bool *done)
{
    struct work *o = (struct work *)operation;
    for (int i = 0; i < 2 && o->cta[i] != NULL; i++) {
        const trap t = check_alive(o, o->cta[i]);
        if (t != TRAP_NONE) return t;
        for (uint32_t q = 0; q < TENSOR_QUARTERS; q++) shift_quarter(o->cta[i], q * QUARTER_LANES, o->column);
    }
    *done = true;
    return TRAP_NONE;
}

static const struct agent_kind shift_kind = { .name = "tcgen05.shift",
                                              .engine = ENGINE_TENSOR,
                                              .may_complete = tensor_may_complete,
                                              .step = step_shift,
                                              .complete = tensor_complete,
                                              .drop = tensor_drop };

/* tcgen05.shift.down [a]   8 columns of each lane get what the next lane of their quarter had */
static trap op_shift(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t = TRAP_NONE;
    FOR_LANES(l, lanes) if (t == TRAP_NONE) t = begin(w, in, l, &shift_kind, TENSOR_SHIFT, issue_shift);
    return t;
}

/* ---- rows ---- */

static const char *check_address(const struct insn *in)
{
    const struct operand *address = &in->operand[0];
    return address->based && type_bits((enum ptx_type)address->type) == 32
               ? NULL
               : "the address of tensor memory is a register of 32 bits";
}

static const char *prepare_shift(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = (insn_has(in, ".cta_group::2") ? 2u : 1u) << 8;
    return check_address(in);
}

static const char *prepare_cp(struct module *module, struct insn *in)
{
    const uint64_t format = insn_has(in, ".b4x16_p64")   ? COPY_B4X16_P64
                            : insn_has(in, ".b6x16_p32") ? COPY_B6X16_P32
                                                         : COPY_PLAIN;
    const uint64_t shape = insn_has(in, ".128x256b")        ? COPY_128X256B
                           : insn_has(in, ".128x128b")      ? COPY_128X128B
                           : insn_has(in, ".warpx2::02_13") ? COPY_64X128B_02_13
                           : insn_has(in, ".warpx2::01_23") ? COPY_64X128B_01_23
                           : insn_has(in, ".32x128b")       ? COPY_32X128B
                                                            : COPY_4X256B;
    const char *why = prepare_shift(module, in);
    in->detail |= shape | format << 4;
    return why;
}

/* ptxas takes the words in any order; here are those that the manual and the compilers write. */
#define SHAPES      "(.128x256b|.128x128b|.4x256b)"
#define MULTICASTS  "(.64x128b.warpx2::02_13|.64x128b.warpx2::01_23|.32x128b.warpx4)"
#define SHAPES_LAST "(.warpx2::02_13.64x128b|.warpx2::01_23.64x128b|.warpx4.32x128b)"
#define FORMAT      ".b8x16.b6x16_p32|.b8x16.b4x16_p64"
#define GROUP       "(.cta_group::1|.cta_group::2)"
#define CP(words) \
    { \
        "tcgen05.cp" GROUP words, NULL, "a s:b64", 86, "sm_100f", 0, op_cp, prepare_cp, "9.7.16.9.2 tcgen05.cp" \
    }
#define SHIFT(words) \
    { \
        "tcgen05.shift" words, NULL, "a", 86, "sm_100a sm_103a", 0, op_shift, prepare_shift, \
            "9.7.16.9.3 tcgen05.shift" \
    }

static const struct row rows[] = {
    CP(SHAPES "{" FORMAT "}"),      CP("(" FORMAT ")" SHAPES),     CP(MULTICASTS "{" FORMAT "}"),
    CP(SHAPES_LAST "{" FORMAT "}"), CP("(" FORMAT ")" MULTICASTS), SHIFT(GROUP ".down"),
    SHIFT(".down" GROUP),
};

const struct family family_tcgen05_copy = FAMILY("copies to tensor memory, shifts", rows);

/* MXFP4 times MXFP4 as int8 rows, where all rows fit, which the device finds; else as rows of bf16: launches for both
 * follow each other, and one of them does nothing. */
#include "cuda/driver/matrix.h"
#include "lowering.h"

const char *bsmi_int8_rule(const struct bsmi_matrix *m)
{
    const bool aligned =
        (uintptr_t)m->data % 8 == 0 && m->row_bytes % 8 == 0 && (m->batch == 1 || m->batch_bytes % 8 == 0);
    if (m->format != BSM_MXFP4) return "it multiplies MXFP4 by MXFP4";
    if (m->packing != BSM_PACKING_LOW_FIRST && m->packing != BSM_PACKING_HIGH_FIRST)
        return "it wants codes packed two a byte";
    if (m->columns % 32 != 0 || m->columns > BSMI_MOST_INT8_COLUMNS)
        return "it wants K a multiple of 32, at most 2^20";
    return aligned ? NULL : "it wants operands whose data and rows are aligned to 8 bytes";
}

static bsm_status describe(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    c->a = bsmi_cuda_describe_rows(&p->a), c->b = bsmi_cuda_describe_rows(&p->b);
    return BSM_OK;
}

static bool place_operand(const struct bsmi_matrix *m, struct bsmi_int8_operand *o, int64_t *end)
{
    int64_t bytes;
    o->padded_columns = bsmi_round_up(m->columns, BSMI_INT8_K_STEP);
    return bsmi_mul_overflows(m->rows, o->padded_columns, &o->batch_pitch)
           || bsmi_mul_overflows(o->batch_pitch, m->batch, &bytes) || bsmi_cuda_place(bytes, 1, &o->rows_at, end);
}

static bool place(const struct bsmi_product *p, struct bsmi_cuda_multiply *c, int64_t *end)
{
    return bsmi_cuda_place_rows(&p->a, &c->a, end) || bsmi_cuda_place_rows(&p->b, &c->b, end)
           || place_operand(&p->a, &c->a.int8, end) || place_operand(&p->b, &c->b.int8, end)
           || bsmi_cuda_place(BSMI_MOST_UNFIT_FLAGS, (int64_t)sizeof(uint32_t), &c->unfit_at, end);
}

struct bsmi_condition bsmi_cuda_int8_condition(const struct bsmi_cuda_run *run, enum bsmi_gemm_condition when)
{
    if (run->multiply->int8_fallback < 0) return (struct bsmi_condition){ NULL, 0, 0 };
    return (struct bsmi_condition){ bsmi_cuda_at(run, run->multiply->unfit_at), run->unfit_flags,
                                    when == BSMI_RUNS_UNLESS_INT8_FITS };
}

static struct bsmi_int8_rows_operand operand_of(const struct bsmi_cuda_run *run, const struct bsmi_matrix *m,
                                               const struct bsmi_cuda_operand *o)
{
    const struct bsmi_int8_operand *i = &o->int8;
    return (struct bsmi_int8_rows_operand){ bsmi_cuda_matrix(m), bsmi_cuda_at(run, i->rows_at),
                                           i->padded_columns,   i->batch_pitch,
                                           i->padded_columns,   bsmi_cuda_exponents(run, o) };
}

static bsm_status check_alignment(const char *name, const struct bsmi_matrix *m)
{
    if (bsmi_int8_rule(m) == NULL) return BSM_OK;
    return bsmi_fail(BSM_EALIGN, "%s->data=%p is not aligned to 8 bytes, as that of the plan was: make a plan for it",
                     name, (void *)m->data);
}

/* CTAs for the rows of A and of B, which say in flags whether one of their rows does not fit. */
static bsm_status make_rows(struct bsmi_cuda_run *run)
{
    const struct bsmi_matrix *a = &run->product->a, *b = &run->product->b;
    const struct bsmi_cuda_multiply *c = run->multiply;
    const int64_t rows_of_a = a->rows * a->batch, rows_of_b = b->rows * b->batch,
                  rows_of_cta = BSMI_INT8_ROWS_THREADS / 32;
    const int64_t most = (int64_t)run->queue.gpu->sm_count * bsmi_cuda_kernels[BSMI_KERNEL_INT8_ROWS].most;
    const int64_t ctas =
        BSMI_MAX(2, BSMI_MIN(bsmi_ceil_div(rows_of_a + rows_of_b, rows_of_cta), BSMI_MIN(most, BSMI_MOST_UNFIT_FLAGS)));
    const double share = (double)rows_of_a / (double)(rows_of_a + rows_of_b);
    const int64_t of_a = BSMI_MAX(1, BSMI_MIN(ctas - 1, (int64_t)(share * (double)ctas + 0.5)));
    const struct bsmi_int8_rows_parameters parameters = { .operands = { operand_of(run, a, &c->a),
                                                                       operand_of(run, b, &c->b) },
                                                         .first_ctas = (int32_t)of_a,
                                                         .unfit = bsmi_cuda_at(run, c->unfit_at) };
    run->unfit_flags = (int32_t)ctas;
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_INT8_ROWS, ctas, &parameters);
}

static bsm_status enqueue(struct bsmi_cuda_run *run)
{
    bsm_status status = check_alignment("a", &run->product->a);
    if (status == BSM_OK) status = check_alignment("b", &run->product->b);
    if (status == BSM_OK) status = make_rows(run);
    if (status == BSM_OK) status = bsmi_cuda_run_gemm(run, run->multiply->gemm, run->multiply->lowering);
    return status == BSM_OK ? bsmi_cuda_enqueue_rows(run) : status;
}

/* As numbers of 16 bits: two integers each. */
static bsm_status map_operand(const struct bsmi_cuda_run *run, const struct bsmi_matrix *m,
                              const struct bsmi_int8_operand *o, int box_rows, struct bsmi_tensor_map *map)
{
    const struct bsmi_cuda_rows rows = { bsmi_cuda_at(run, o->rows_at),
                                         CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                         o->padded_columns / 2,
                                         m->rows,
                                         m->batch,
                                         o->padded_columns,
                                         o->batch_pitch };
    return bsmi_cuda_map(run->queue.gpu, &rows, BSMI_INT8_K_STEP / 2, box_rows, CU_TENSOR_MAP_SWIZZLE_128B, map);
}

static bsm_status fill(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g, union bsmi_gemm_launch *to)
{
    const struct bsmi_int8_operand *a = &run->multiply->a.int8, *b = &run->multiply->b.int8;
    to->shared_memory.condition = bsmi_cuda_int8_condition(run, g->condition);
    to->gemm.segments[to->gemm.segment_count++] =
        (struct bsmi_segment){ 0, 0, (int32_t)(a->padded_columns / BSMI_INT8_K_STEP) };
    const bsm_status status = map_operand(run, &run->product->a, a, g->a_box_rows, &to->gemm.a);
    return status == BSM_OK ? map_operand(run, &run->product->b, b, g->b_box_rows, &to->gemm.b) : status;
}

const struct bsmi_lowering bsmi_lowering_int8 = { describe, place, enqueue, fill };

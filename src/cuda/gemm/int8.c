/* Rows of MXFP4 as integers of 8 bits: which operands, where they lie, and the launch that makes them. */
#include "int8.h"
#include "cuda/driver/matrix.h"

const char *bsmi_integers_rule(const struct bsmi_matrix *m)
{
    const bool aligned = (uintptr_t)m->data % 8 == 0 && m->row_bytes % 8 == 0 && (m->batch == 1 || m->batch_bytes % 8 == 0);
    if (m->format != BSM_MXFP4) return "it multiplies MXFP4 by MXFP4";
    if (m->packing != BSM_PACKING_LOW_FIRST && m->packing != BSM_PACKING_HIGH_FIRST)
        return "it wants codes packed two a byte";
    if (m->columns % 32 != 0 || m->columns > BSMI_MOST_INTEGER_COLUMNS)
        return "it wants K a multiple of 32, at most 2^20";
    return aligned ? NULL : "it wants operands whose data and rows are aligned to 8 bytes";
}

int64_t bsmi_integers_bytes(const struct bsmi_matrix *m, struct bsmi_integers *integers)
{
    int64_t bytes;
    integers->padded_columns = bsmi_round_up(m->columns, BSMI_INTEGER_K_STEP);
    if (bsmi_mul_overflows(m->rows, integers->padded_columns, &integers->batch_pitch)) return -1;
    return bsmi_mul_overflows(integers->batch_pitch, m->batch, &bytes) ? -1 : bytes;
}

static struct bsmi_integers_operand operand(const struct bsmi_integers_of *of)
{
    const struct bsmi_integers *i = of->integers;
    return (struct bsmi_integers_operand){
        bsmi_cuda_matrix(of->matrix), of->rows, i->padded_columns, i->batch_pitch, i->padded_columns, of->exponents
    };
}

static bsm_status check_alignment(const struct bsmi_integers_of *of)
{
    if (bsmi_integers_rule(of->matrix) == NULL) return BSM_OK;
    return bsmi_fail(BSM_EALIGN, "%s->data=%p is not aligned to 8 bytes, as that of the plan was: make a plan for it", of->name,
                     (void *)of->matrix->data);
}

bsm_status bsmi_integers_make(struct bsmi_cuda_queue *queue, const struct bsmi_integers_of *a, const struct bsmi_integers_of *b,
                              uint32_t *unfit, int32_t *flags)
{
    bsm_status status = check_alignment(a);
    if (status == BSM_OK) status = check_alignment(b);
    if (status != BSM_OK) return status;
    const int64_t rows_of_a = a->matrix->rows * a->matrix->batch, rows_of_b = b->matrix->rows * b->matrix->batch,
                  rows_of_cta = BSMI_INTEGERS_THREADS / 32;
    const int64_t most = (int64_t)queue->gpu->multiprocessors * bsmi_cuda_kernels[BSMI_KERNEL_INTEGERS].most;
    const int64_t ctas =
        BSMI_MAX(2, BSMI_MIN(bsmi_ceil_div(rows_of_a + rows_of_b, rows_of_cta), BSMI_MIN(most, BSMI_MOST_UNFIT_FLAGS)));
    const double share = (double)rows_of_a / (double)(rows_of_a + rows_of_b);
    const int64_t of_a = BSMI_MAX(1, BSMI_MIN(ctas - 1, (int64_t)(share * (double)ctas + 0.5)));
    const struct bsmi_integers_parameters parameters = { .operands = { operand(a), operand(b) },
                                                         .first_ctas = (int32_t)of_a,
                                                         .unfit = unfit };
    *flags = (int32_t)ctas;
    return bsmi_cuda_launch(queue, BSMI_KERNEL_INTEGERS, ctas, &parameters);
}

bsm_status bsmi_integers_map(const struct bsmi_cuda_gpu *gpu, const struct bsmi_integers_of *of, int box_rows,
                             struct bsmi_tensor_map *map)
{
    const struct bsmi_integers *i = of->integers;
    const struct bsmi_cuda_rows rows = { of->rows,
                                         CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                         i->padded_columns / 2,
                                         of->matrix->rows,
                                         of->matrix->batch,
                                         i->padded_columns,
                                         i->batch_pitch };
    return bsmi_cuda_map(gpu, &rows, BSMI_INTEGER_K_STEP / 2, box_rows, CU_TENSOR_MAP_SWIZZLE_128B, map);
}

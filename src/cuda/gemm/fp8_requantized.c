/* Products of refolded operands: what lies in the workspace, and the launch that makes it. */
#include "fp8_requantized.h"
#include "cuda/driver/matrix.h"

static bool is_folded(bsm_format format)
{
    switch (format) {
    case BSM_MXFP8_E4M3:
    case BSM_MXFP8_E5M2:
    case BSM_MXFP6_E2M3:
    case BSM_MXFP6_E3M2:
    case BSM_MXFP4: return true;
    default: return false;
    }
}

/* MXFP4 with itself has no rounding to gain from. */
bool bsmi_fast_serves(bsm_format a, bsm_format b) { return is_folded(a) && is_folded(b) && !(a == BSM_MXFP4 && b == BSM_MXFP4); }

struct bsmi_fast_operand bsmi_fast_describe(const struct bsmi_matrix *m)
{
    struct bsmi_fast_operand o = { .row_bytes = bsmi_round_up(m->columns, BSMI_FAST_COLUMNS) };
    if (bsmi_mul_overflows(o.row_bytes, m->rows, &o.batch_bytes)) o.batch_bytes = -1;
    return o;
}

int64_t bsmi_fast_codes_bytes(const struct bsmi_matrix *m, const struct bsmi_fast_operand *o)
{
    int64_t bytes;
    return o->batch_bytes < 0 || bsmi_mul_overflows(o->batch_bytes, m->batch, &bytes) ? -1 : bytes;
}

static struct bsmi_refold_operand operand_of(const struct bsmi_matrix *m, const struct bsmi_fast_operand *o, unsigned char *workspace)
{
    return (struct bsmi_refold_operand){
        .source = bsmi_cuda_matrix(m), .codes = workspace + o->codes_at, .row_bytes = o->row_bytes, .batch_bytes = o->batch_bytes,
        .exponents = (int32_t *)(void *)(workspace + o->exponents_at),
    };
}

bsm_status bsmi_fast_refold(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *a, const struct bsmi_fast_operand *folded_a,
                            const struct bsmi_matrix *b, const struct bsmi_fast_operand *folded_b, unsigned char *workspace)
{
    const struct bsmi_refold_parameters p = { { operand_of(a, folded_a, workspace), operand_of(b, folded_b, workspace) } };
    const int64_t bands = bsmi_ceil_div(a->rows, BSMI_REFOLD_ROWS) * a->batch + bsmi_ceil_div(b->rows, BSMI_REFOLD_ROWS) * b->batch;
    return bsmi_cuda_launch(queue, BSMI_KERNEL_REFOLD, bsmi_ceil_div(bands, BSMI_REFOLD_THREADS / 32), &p);
}

/* As rows of numbers of 16 bits, which the producer knows. */
static bsm_status map_codes(const struct bsmi_cuda_gpu *gpu, const struct bsmi_matrix *m, const struct bsmi_fast_operand *o,
                            unsigned char *workspace, int box_rows, struct bsmi_tensor_map *map)
{
    const struct bsmi_cuda_rows rows = {
        workspace + o->codes_at, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, o->row_bytes / 2, m->rows, m->batch, o->row_bytes, o->batch_bytes
    };
    return bsmi_cuda_map(gpu, &rows, BSMI_K_STEP, box_rows, CU_TENSOR_MAP_SWIZZLE_128B, map);
}

bsm_status bsmi_fast_map(const struct bsmi_cuda_gpu *gpu, const struct bsmi_gemm_instance *instance, const struct bsmi_matrix *a,
                         const struct bsmi_fast_operand *folded_a, const struct bsmi_matrix *b,
                         const struct bsmi_fast_operand *folded_b, unsigned char *workspace, struct bsmi_gemm_parameters *p)
{
    p->segments[p->segment_count++] = (struct bsmi_segment){ 0, 0, (int32_t)(folded_a->row_bytes / 2 / BSMI_K_STEP) };
    const bsm_status status = map_codes(gpu, a, folded_a, workspace, instance->a_box_rows, &p->a);
    return status == BSM_OK ? map_codes(gpu, b, folded_b, workspace, instance->b_box_rows, &p->b) : status;
}

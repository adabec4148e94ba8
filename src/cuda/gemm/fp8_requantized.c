/* FP8 requantization: e4m3 codes of both operands with an exponent for each row, made in the workspace by one
 * launch. */
#include "cuda/driver/matrix.h"
#include "lowering.h"

static bool can_be_requantized(bsm_format format)
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
bool bsmi_fp8_serves(bsm_format a, bsm_format b)
{
    return can_be_requantized(a) && can_be_requantized(b) && !(a == BSM_MXFP4 && b == BSM_MXFP4);
}

static struct bsmi_cuda_operand describe_operand(const struct bsmi_matrix *m)
{
    struct bsmi_fp8_operand o = { .row_bytes = bsmi_round_up(m->columns, BSMI_FAST_COLUMNS) };
    if (bsmi_mul_overflows(o.row_bytes, m->rows, &o.batch_bytes)) o.batch_bytes = -1;
    return (struct bsmi_cuda_operand){ .form = BSMI_FORM_REQUANTIZED, .terms = 1, .has_exponents = true, .fp8 = o };
}

static bsm_status describe(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    c->a = describe_operand(&p->a), c->b = describe_operand(&p->b);
    return BSM_OK;
}

static bool place_operand(const struct bsmi_matrix *m, struct bsmi_cuda_operand *o, int64_t *end)
{
    int64_t codes;
    return o->fp8.batch_bytes < 0 || bsmi_mul_overflows(o->fp8.batch_bytes, m->batch, &codes)
           || bsmi_cuda_place(codes, 1, &o->fp8.codes_at, end)
           || bsmi_cuda_place(m->rows * m->batch, (int64_t)sizeof(int32_t), &o->exponents_at, end);
}

static bool place(const struct bsmi_product *p, struct bsmi_cuda_multiply *c, int64_t *end)
{
    return place_operand(&p->a, &c->a, end) || place_operand(&p->b, &c->b, end);
}

static struct bsmi_requantize_fp8_operand operand_into(const struct bsmi_matrix *m, const struct bsmi_fp8_operand *o,
                                                       unsigned char *codes, int32_t *exponents)
{
    return (struct bsmi_requantize_fp8_operand){
        .source = bsmi_cuda_matrix(m), .codes = codes, .row_bytes = o->row_bytes, .batch_bytes = o->batch_bytes,
        .exponents = exponents,
    };
}

static struct bsmi_requantize_fp8_operand operand_of(const struct bsmi_cuda_run *run, const struct bsmi_matrix *m,
                                                     const struct bsmi_cuda_operand *o)
{
    return operand_into(m, &o->fp8, bsmi_cuda_at(run, o->fp8.codes_at), bsmi_cuda_exponents(run, o));
}

static bsm_status requantize(struct bsmi_cuda_queue *queue, const struct bsmi_requantize_fp8_parameters *p)
{
    int64_t bands = 0;
    for (int i = 0; i < 2; i++)
        bands += bsmi_ceil_div(p->operands[i].source.rows, BSMI_REQUANTIZE_FP8_ROWS) * p->operands[i].source.batch;
    return bsmi_cuda_launch(queue, BSMI_KERNEL_REQUANTIZE_FP8, bsmi_ceil_div(bands, BSMI_REQUANTIZE_FP8_THREADS / 32),
                            p);
}

/* The kernel takes two operands: the second is one without rows. */
static bsm_status requantize_one(struct bsmi_cuda_queue *queue, const struct bsmi_requantize_fp8_operand *operand)
{
    struct bsmi_requantize_fp8_parameters p = { { *operand, *operand } };
    p.operands[1].source.rows = 0;
    return requantize(queue, &p);
}

bsm_status bsmi_cuda_requantize_one(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *m,
                                    const struct bsmi_fp8_operand *o, unsigned char *codes, int32_t *exponents)
{
    const struct bsmi_requantize_fp8_operand operand = operand_into(m, o, codes, exponents);
    return requantize_one(queue, &operand);
}

static bsm_status enqueue(struct bsmi_cuda_run *run)
{
    const struct bsmi_matrix *a = &run->product->a, *b = &run->product->b;
    const struct bsmi_cuda_multiply *c = run->multiply;
    const struct bsmi_requantize_fp8_operand of_a = operand_of(run, a, &c->a), of_b = operand_of(run, b, &c->b);
    const struct bsmi_requantize_fp8_parameters both = { { of_a, of_b } };
    const bsm_status status = c->keeps_b ? requantize_one(&run->queue, &of_a) : requantize(&run->queue, &both);
    return status == BSM_OK ? bsmi_cuda_run_gemm(run, c->gemm, c->lowering) : status;
}

/* As rows of numbers of 16 bits, which the producer knows. */
static bsm_status map_operand(const struct bsmi_cuda_run *run, const struct bsmi_matrix *m, const unsigned char *codes,
                              const struct bsmi_fp8_operand *o, int box_rows, struct bsmi_tensor_map *map)
{
    const struct bsmi_cuda_rows rows = { codes,
                                         CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                         o->row_bytes / 2,
                                         m->rows,
                                         m->batch,
                                         o->row_bytes,
                                         o->batch_bytes };
    return bsmi_cuda_map(run->queue.gpu, &rows, BSMI_K_STEP, box_rows, CU_TENSOR_MAP_SWIZZLE_128B, map);
}

static bsm_status fill(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g, union bsmi_gemm_launch *to)
{
    const struct bsmi_fp8_operand *a = &run->multiply->a.fp8, *b = &run->multiply->b.fp8;
    to->gemm.segments[to->gemm.segment_count++] =
        (struct bsmi_segment){ 0, 0, (int32_t)(a->row_bytes / 2 / BSMI_K_STEP) };
    const unsigned char *of_b =
        run->multiply->keeps_b ? bsmi_cuda_kept_codes(run->product) : bsmi_cuda_at(run, b->codes_at);
    const bsm_status status =
        map_operand(run, &run->product->a, bsmi_cuda_at(run, a->codes_at), a, g->a_box_rows, &to->gemm.a);
    return status == BSM_OK ? map_operand(run, &run->product->b, of_b, b, g->b_box_rows, &to->gemm.b) : status;
}

const struct bsmi_lowering bsmi_lowering_fp8_requantized = { describe, place, enqueue, fill };

/* An operand whose codes a GEMM kernel decodes itself: which it can be, and where its scales lie. */
#include "fused_dequantization.h"

bool bsmi_cuda_decodes(enum bsmi_gemm_codes decodes, bsm_format format)
{
    switch (format) {
    case BSM_MXFP4: return decodes == BSMI_CODES_MXFP4;
    case BSM_NVFP4: return decodes == BSMI_CODES_NVFP4;
    case BSM_MXFP6_E2M3:
    case BSM_MXFP6_E3M2: return decodes == BSMI_CODES_BYTES || decodes == BSMI_CODES_STREAM;
    case BSM_MXFP8_E4M3:
    case BSM_MXFP8_E5M2:
    case BSM_MXINT8: return decodes == BSMI_CODES_BYTES;
    default: return false;
    }
}

struct bsmi_cuda_rows bsmi_cuda_code_rows(const struct bsmi_matrix *m)
{
    const int64_t bytes = m->packing == BSM_PACKING_BIT_STREAM ? bsmi_ceil_div(m->columns * m->bits, 8)
                          : m->bits == 4                       ? bsmi_ceil_div(m->columns, 2)
                                                               : m->columns;
    return (
        struct bsmi_cuda_rows){ m->data, CU_TENSOR_MAP_DATA_TYPE_UINT8, bytes, m->rows, m->batch, m->row_bytes, m->batch_bytes };
}

/* As the kernels want codes: a stream, two a byte, or a byte each. */
static bool is_packed(enum bsmi_gemm_codes decodes, const struct bsmi_matrix *m)
{
    if (decodes == BSMI_CODES_STREAM) return m->packing == BSM_PACKING_BIT_STREAM;
    return m->bits == 4 ? m->packing == BSM_PACKING_LOW_FIRST
                        : m->packing == BSM_PACKING_BYTES || m->packing == BSM_PACKING_DEFAULT;
}

bool bsmi_cuda_gemm_serves(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *p, const char **sentence)
{
    const char *rule = NULL;
    const struct bsmi_cuda_rows rows = bsmi_cuda_code_rows(&p->b);
    if (gemm->operands == BSMI_OPERANDS_INT8) {
        rule = bsmi_integers_rule(&p->a);
        if (rule == NULL) rule = bsmi_integers_rule(&p->b);
    } else if (gemm->operands != BSMI_OPERANDS_BF16 && gemm->tile_rows < 32 && (p->m > gemm->tile_rows || p->groups > 0))
        rule = "it wants no groups, and no more rows of A than its tile has";
    else if (gemm->codes == BSMI_CODES_NONE) return true;
    else if (!bsmi_cuda_decodes(gemm->codes, p->b.format)) rule = "it does not decode B's format";
    else if (!is_packed(gemm->codes, &p->b))
        rule = gemm->codes == BSMI_CODES_STREAM
                   ? "it wants B's codes of 6 bits as a stream"
                   : "it wants B's codes of 4 bits packed two a byte, the first in the low half, "
                     "6 and 8 bits in a byte each";
    else if (bsmi_gemm_reads_any_scales(gemm) && (p->k > gemm->most_columns || p->a.element == BSM_FP16))
        rule = "it wants a smaller K, and A other than fp16";
    else if (p->b.bits == 4 && p->k % 2 != 0) rule = "it wants rows of B in whole bytes: an even K";
    else if (!bsmi_gemm_reads_prepacked(gemm) && !bsmi_cuda_can_map(&rows)) rule = "it wants B's rows, their pitch and b->data in multiples of 16 bytes";
    if (rule != NULL && sentence != NULL) *sentence = rule;
    return rule == NULL;
}

/* The caller's scales can be read as they lie: no exponents to take out, and no padding, which may hold NaN, within a step of K. */
static bool scales_serve(const struct bsmi_matrix *m)
{
    return m->scale == BSM_UE4M3 && m->map.layout.kind == BSM_LAYOUT_128X4 && m->columns % BSMI_K_STEP == 0 &&
           (uintptr_t)m->scales % 16 == 0 && (m->batch == 1 || m->scale_batch_bytes % 16 == 0);
}

void bsmi_cuda_describe_codes(const struct bsmi_matrix *m, bool any_scales, struct bsmi_cuda_operand *o)
{
    o->way = BSMI_WAY_IN_KERNEL;
    o->any_scales = any_scales;
    o->own_scales = any_scales || scales_serve(m);
    if (any_scales) o->has_exponents = false;
    o->scale_band_bytes = bsmi_ceil_div(m->scale_columns, 4) * 512;
    o->scale_batch_bytes = o->own_scales ? m->scale_batch_bytes : bsmi_ceil_div(m->rows, 128) * o->scale_band_bytes;
}

/* Codes of B that the GEMM kernel dequantizes itself, in shared memory (fused), in registers or into tensor memory
 * (mixed input): which it can be, and where its scales lie. */
#include "cuda/driver/matrix.h"
#include "cuda/ptx/descriptors.h"
#include "cuda/sm90/kernels/fused_dequantization_instances.h"
#include "lowering.h"

bool bsmi_cuda_dequantizes(enum bsmi_gemm_codes codes, bsm_format format)
{
    switch (format) {
    case BSM_MXFP4: return codes == BSMI_CODES_MXFP4;
    case BSM_NVFP4: return codes == BSMI_CODES_NVFP4;
    case BSM_MXFP6_E2M3:
    case BSM_MXFP6_E3M2: return codes == BSMI_CODES_BYTES || codes == BSMI_CODES_STREAM;
    case BSM_MXFP8_E4M3:
    case BSM_MXFP8_E5M2:
    case BSM_MXINT8: return codes == BSMI_CODES_BYTES;
    default: return false;
    }
}

/* Its rows as bytes. */
static struct bsmi_cuda_rows code_rows(const struct bsmi_matrix *m)
{
    const int64_t bytes = m->packing == BSM_PACKING_BIT_STREAM ? bsmi_ceil_div(m->columns * m->bits, 8)
                          : m->bits == 4                       ? bsmi_ceil_div(m->columns, 2)
                                                               : m->columns;
    return (struct bsmi_cuda_rows){
        m->data, CU_TENSOR_MAP_DATA_TYPE_UINT8, bytes, m->rows, m->batch, m->row_bytes, m->batch_bytes
    };
}

/* As the kernels want codes: a stream, two a byte, or a byte each. */
static bool is_packed(enum bsmi_gemm_codes codes, const struct bsmi_matrix *m)
{
    if (codes == BSMI_CODES_STREAM) return m->packing == BSM_PACKING_BIT_STREAM;
    return m->bits == 4 ? m->packing == BSM_PACKING_LOW_FIRST
                        : m->packing == BSM_PACKING_BYTES || m->packing == BSM_PACKING_DEFAULT;
}

static bool reads_majors(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *p)
{
    return (p->a.major == BSM_MAJOR_K || bsmi_cuda_reads_mn_major(gemm, p, &p->a, gemm->a_box_rows))
           && (p->b.major == BSM_MAJOR_K || bsmi_cuda_reads_mn_major(gemm, p, &p->b, gemm->b_box_rows));
}

static bool reads_stored_codes(const struct bsmi_gemm_instance *gemm)
{
    return !bsmi_gemm_reads_prepacked(gemm) || bsmi_gemm_decodes_to_tensor_memory(gemm);
}

bool bsmi_cuda_gemm_serves(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *p, const char **sentence)
{
    const char *rule = NULL;
    const struct bsmi_cuda_rows rows = code_rows(&p->b);
    if (!reads_majors(gemm, p)) rule = "it reads no MN-major operand of this form as it is stored";
    else if (p->column_groups > 0 && !gemm->column_groups) rule = "it sums all of K, not groups along it";
    else if (p->column_groups > 0 && !bsmi_cuda_column_groups_fit(p))
        rule = "32-bit coordinates cannot tell the columns of these groups";
    else if (gemm->operands == BSMI_OPERANDS_INT8) {
        rule = bsmi_int8_rule(&p->a);
        if (rule == NULL) rule = bsmi_int8_rule(&p->b);
    } else if (bsmi_gemm_is_swapped(gemm) && gemm->operands != BSMI_OPERANDS_BF16 && gemm->tile_rows < 32
               && (p->m > gemm->tile_rows || p->groups > 0))
        rule = "it wants no groups, and no more rows of A than its tile has";
    else if (gemm->codes == BSMI_CODES_NONE) return true;
    else if (!bsmi_cuda_dequantizes(gemm->codes, p->b.format)) rule = "it does not dequantize B's format";
    else if (!is_packed(gemm->codes, &p->b))
        rule = gemm->codes == BSMI_CODES_STREAM
                   ? "it wants B's codes of 6 bits as a stream"
                   : "it wants B's codes of 4 bits packed two a byte, the first in the low half, "
                     "6 and 8 bits in a byte each";
    else if (bsmi_gemm_reads_any_scales(gemm) && (p->k > gemm->most_columns || p->a.element == BSM_FP16))
        rule = "it wants a smaller K, and A other than fp16";
    else if (p->b.bits == 4 && p->k % 2 != 0) rule = "it wants rows of B in whole bytes: an even K";
    else if (bsmi_gemm_has_k_parts(gemm) && !bsmi_cuda_has_split_k_order(p))
        rule = "it sums two parts of K: it wants K of more than 768, no groups, and A other than MXFP4 where B is";
    else if (gemm->adds_up_groups && p->groups > BSMI_MOST_GROUPS_IN_KERNEL) rule = "it wants 512 groups or less";
    else if (reads_stored_codes(gemm) && !bsmi_cuda_can_map(&rows))
        rule = "it wants B's rows, their pitch and b->data in multiples of 16 bytes";
    if (rule != NULL && sentence != NULL) *sentence = rule;
    return rule == NULL;
}

/* The caller's scales can be read as they lie: no exponents to take out, and no padding, which may hold NaN, within a
 * step of K. */
static bool scales_serve(const struct bsmi_matrix *m)
{
    return m->scale == BSM_UE4M3 && m->map.layout.kind == BSM_LAYOUT_128X4 && m->columns % BSMI_K_STEP == 0 &&
           (uintptr_t)m->scales % 16 == 0 && (m->batch == 1 || m->scale_batch_bytes % 16 == 0);
}

/* B's own form, beside rows of A. */
static void describe_operands(const struct bsmi_product *p, bool any_scales, struct bsmi_cuda_multiply *c)
{
    const struct bsmi_matrix *m = &p->b;
    struct bsmi_cuda_operand *o = &c->b;
    c->a = bsmi_cuda_describe_rows(&p->a), c->b = bsmi_cuda_describe_rows(&p->b);
    o->form = BSMI_FORM_IN_KERNEL;
    o->any_scales = any_scales;
    o->own_scales = any_scales || scales_serve(m);
    if (any_scales) o->has_exponents = false;
    o->scale_band_bytes = bsmi_ceil_div(m->scale_columns, 4) * 512;
    o->scale_batch_bytes = o->own_scales ? m->scale_batch_bytes : bsmi_ceil_div(m->rows, 128) * o->scale_band_bytes;
}

static bool place(const struct bsmi_product *p, struct bsmi_cuda_multiply *c, int64_t *end)
{
    return bsmi_cuda_place_rows(&p->a, &c->a, end) || bsmi_cuda_place_rows(&p->b, &c->b, end);
}

/* B's codes as bytes, and rows of A in boxes of so many rows. */
static bsm_status map_operands(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g, int a_box_rows,
                               const void *scales, struct bsmi_gemm_parameters *to)
{
    enum { BOX_BYTES = 128 };             /* of a row of codes */
    const bool stream = g->codes == BSMI_CODES_STREAM;
    const struct bsmi_matrix *m = &run->product->b;
    const struct bsmi_cuda_rows rows = code_rows(m);
    const bsm_status status = bsmi_cuda_map_rows(run, "a", &run->product->a, &run->multiply->a, a_box_rows, &to->a);
    if (status != BSM_OK || !reads_stored_codes(g)) return status;
    if (!bsmi_cuda_can_map(&rows) || (uintptr_t)scales % 16 != 0)
        return bsmi_fail(BSM_EALIGN, "b->data=%p, b->scales=%p: not aligned to 16 bytes, as those of the plan were: "
                                     "make a plan for them",
                         (void *)m->data, (void *)m->scales);
    return bsmi_cuda_map(run->queue.gpu, &rows, stream ? BSMI_STREAM_BOX_BYTES : BOX_BYTES, g->b_box_rows,
                         stream ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B, &to->b);
}

/* Fused dequantization, scales as BSM_LAYOUT_128X4 ----------------------------------------------------------------- */

static bsm_status describe_fused(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    describe_operands(p, false, c);
    return BSM_OK;
}

static bsm_status fill_fused(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g,
                             union bsmi_gemm_launch *to)
{
    const struct bsmi_cuda_operand *o = &run->multiply->b;
    struct bsmi_fused_parameters *f = &to->fused;
    bsmi_cuda_fill_segments(run->multiply, &f->gemm);
    f->code_scales = o->own_scales ? run->product->b.scales : bsmi_cuda_at(run, o->scales_at);
    f->code_band_bytes = o->scale_band_bytes, f->code_batch_bytes = o->scale_batch_bytes;
    f->code_element = (int32_t)run->product->b.element;
    return map_operands(run, g, g->a_box_rows, f->code_scales, &f->gemm);
}

const struct bsmi_lowering bsmi_lowering_fused = { describe_fused, place, bsmi_cuda_enqueue_rows, fill_fused };

/* Mixed input, scales in any layout; or prepacked weights ---------------------------------------------------------- */

static bsm_status describe_mixed_input(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    describe_operands(p, true, c);
    return BSM_OK;
}

/* Boxes that reach beyond the last row take Hopper's TMA longer than those that do not. */
static int a_box_rows(const struct bsmi_product *p, const struct bsmi_gemm_instance *g)
{
    const bool fits = g->main_loop == BSMI_MAIN_LOOP_MIXED_INPUT
                      && (g->schedule == BSMI_SCHEDULE_K_INTERLEAVED || bsmi_gemm_reads_prepacked(g));
    return fits ? (int)BSMI_MIN(p->m, (int64_t)g->a_box_rows) : g->a_box_rows;
}

/* Where the last round of tiles would leave half of the SMs idle, its tiles come in halves. */
static void fill_tiles(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g,
                       struct bsmi_mixed_input_parameters *m)
{
    const bool grouped = run->product->groups > 0;
    const int64_t tiles = m->gemm.tiles, clusters = run->queue.gpu->gemm_clusters[g - bsmi_gemm_instances],
                  in_halves = grouped ? 0 : bsmi_gemm_tiles_in_halves(g, run->product->m, tiles, clusters);
    m->whole_tiles = grouped ? INT64_MAX : tiles - in_halves;
    m->gemm.tiles = tiles + in_halves;
    m->a_box_rows = in_halves > 0 ? g->tile_rows / 2 : a_box_rows(run->product, g);
}

static bsm_status fill_mixed_input(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g,
                                   union bsmi_gemm_launch *to)
{
    const struct bsmi_product *p = run->product;
    struct bsmi_mixed_input_parameters *m = &to->mixed_input;
    bsmi_cuda_fill_segments(run->multiply, &m->gemm);
    const struct bsmi_matrix b = p->b_alone ? bsmi_cuda_without_codes(p) : p->b;
    m->a_source = bsmi_cuda_matrix(&p->a), m->b_source = bsmi_cuda_matrix(&b), m->k = p->k;
    m->only_exponent_zero = bsmi_cuda_is_bf16(&run->multiply->a);
    m->first_of_call = run->queue.behind == 0;
    fill_tiles(run, g, m);
    m->group_rows = p->group_rows;
    if (bsmi_gemm_reads_prepacked(g)) bsmi_cuda_fill_prepacked(p, m);
    return map_operands(run, g, m->a_box_rows, NULL, &m->gemm);
}

const struct bsmi_lowering bsmi_lowering_mixed_input = { describe_mixed_input, place, bsmi_cuda_enqueue_rows,
                                                         fill_mixed_input };

/* Into tensor memory, scales as BSM_LAYOUT_128X4, which prepacked weights are -------------------------------------- */

/* Packed scales are read like the caller's own. */
static bsm_status describe_tensor_mixed_input(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    struct bsmi_cuda_operand *o = &c->b;
    describe_operands(p, false, c);
    if (!bsmi_cuda_wants_prepacked(c)) return BSM_OK;
    o->own_scales = true;
    o->scale_batch_bytes = bsmi_ceil_div(p->b.rows, 128) * o->scale_band_bytes;
    return BSM_OK;
}

static bool place_tensor_mixed_input(const struct bsmi_product *p, struct bsmi_cuda_multiply *c, int64_t *end)
{
    if (!bsmi_cuda_wants_prepacked(c)) return place(p, c, end);
    return bsmi_cuda_place_rows(&p->a, &c->a, end);
}

static bsm_status fill_tensor_mixed_input(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g,
                                          union bsmi_gemm_launch *to)
{
    const struct bsmi_cuda_operand *o = &run->multiply->b;
    struct bsmi_tensor_mixed_input_parameters *t = &to->tensor_mixed_input;
    bsmi_cuda_fill_segments(run->multiply, &t->blackwell.gemm);
    t->blackwell.instruction = mma_instruction_descriptor((struct mma_instruction){
        .kind = MMA_F16, .a = MMA_BF16, .b = MMA_BF16, .m = (uint32_t)g->tile_columns, .n = (uint32_t)g->tile_rows,
        .d = MMA_D_F32 });
    t->tile_rows = g->tile_rows;
    t->code_scales = bsmi_gemm_reads_prepacked(g) ? bsmi_cuda_packed_scales(run->product)
                     : o->own_scales              ? run->product->b.scales
                                                  : bsmi_cuda_at(run, o->scales_at);
    t->code_band_bytes = o->scale_band_bytes, t->code_batch_bytes = o->scale_batch_bytes;
    return map_operands(run, g, g->a_box_rows, t->code_scales, &t->blackwell.gemm);
}

const struct bsmi_lowering bsmi_lowering_tensor_mixed_input = { describe_tensor_mixed_input, place_tensor_mixed_input,
                                                                bsmi_cuda_enqueue_rows, fill_tensor_mixed_input };

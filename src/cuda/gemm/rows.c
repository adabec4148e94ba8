/* Plain dequantization in front: both operands as rows of bf16, which the caller has, or which one launch makes in the
 * workspace. */
#include "cuda/driver/matrix.h"
#include "lowering.h"
#include "plain_dequantization.h"

int bsmi_cuda_terms(const struct bsmi_matrix *m) { return m->element == BSM_FP16 ? 2 : 1; }

bsm_element bsmi_cuda_multiplied_element(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *a,
                                         const struct bsmi_matrix *b)
{
    const bool as_they_are = bsmi_gemm_has_tensor_memory(gemm) && gemm->operands == BSMI_OPERANDS_BF16
                             && a->element == b->element && (a->element == BSM_FP16 || a->element == BSM_FP32);
    return as_they_are ? a->element : BSM_BF16;
}

/* As everything in front of the GEMM kernel takes it: numbers of 16 bits that are moved as they are, two for an
 * fp32. */
static struct bsmi_matrix moved(const struct bsmi_matrix *m, bool as_it_is)
{
    struct bsmi_matrix as = *m;
    if (!as_it_is) return as;
    as.columns = m->columns * m->bits / 16;
    as.format = BSM_FORMAT_BF16, as.element = BSM_BF16, as.bits = 16;
    return as;
}

static struct bsmi_cuda_rows plain_rows(const struct bsmi_matrix *m)
{
    return (struct bsmi_cuda_rows){
        m->data, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, m->columns, m->rows, m->batch, m->row_bytes, m->batch_bytes
    };
}

/* Describing and placing ------------------------------------------------------------------------------------------- */

struct bsmi_cuda_operand bsmi_cuda_describe_rows(const struct bsmi_matrix *m)
{
    struct bsmi_cuda_operand o = { .form = BSMI_FORM_DEQUANTIZED, .terms = bsmi_cuda_terms(m),
                                   .has_exponents = m->scale == BSM_E8M0 };
    const struct bsmi_cuda_rows rows = plain_rows(m);
    if (m->format == BSM_FORMAT_BF16)             /* an MN-major one that cannot be read so has been copied */
        o.form = m->major == BSM_MAJOR_MN || bsmi_cuda_can_load(&rows) ? BSMI_FORM_AS_STORED : BSMI_FORM_REPACKED;
    o.padded_columns = bsmi_round_up(m->columns, BSMI_K_STEP);
    o.pitch = o.padded_columns * o.terms;
    return o;
}

/* Of CTAs that load the operand: each has a row of it, or several rows of a band of 128. */
static int64_t most_flags(const struct bsmi_matrix *m)
{
    return BSMI_MIN(BSMI_MOST_PLAIN_FLAGS, bsmi_round_up(m->rows, 128) * m->batch);
}

bool bsmi_cuda_place_rows(const struct bsmi_matrix *m, struct bsmi_cuda_operand *o, int64_t *end)
{
    int64_t elements;
    if (o->form == BSMI_FORM_AS_STORED) return false;
    if (o->form == BSMI_FORM_IN_KERNEL) {
        if (!o->own_scales && bsmi_cuda_place(m->batch, o->scale_batch_bytes, &o->scales_at, end)) return true;
    } else if (bsmi_mul_overflows(m->rows, o->pitch, &o->batch_pitch)
               || bsmi_mul_overflows(o->batch_pitch, m->batch, &elements)
               || bsmi_cuda_place(elements, 2, &o->rows_at, end)) {
        return true;
    }
    return o->has_exponents && (bsmi_cuda_place(m->rows * m->batch, (int64_t)sizeof(int32_t), &o->exponents_at, end)
                                || bsmi_cuda_place(most_flags(m), (int64_t)sizeof(uint32_t), &o->fallback_at, end));
}

static struct bsmi_cuda_operand describe_one(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m,
                                             bool as_it_is)
{
    const struct bsmi_matrix as = moved(m, as_it_is);
    struct bsmi_cuda_operand o = bsmi_cuda_describe_rows(&as);
    o.as_it_is = as_it_is;
    if (o.form != BSMI_FORM_REPACKED) return o;
    o.copy_size = bsmi_cuda_copy_size(gemm, m);
    if (o.copy_size > 0) o.form = BSMI_FORM_AS_STORED;
    return o;
}

static bsm_status describe(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    const struct bsmi_gemm_instance *gemm = &bsmi_gemm_instances[c->gemm];
    const bool as_they_are = bsmi_cuda_multiplied_element(gemm, &p->a, &p->b) != BSM_BF16;
    c->a = describe_one(gemm, &p->a, as_they_are), c->b = describe_one(gemm, &p->b, as_they_are);
    return BSM_OK;
}

static bool place(const struct bsmi_product *p, struct bsmi_cuda_multiply *c, int64_t *end)
{
    return bsmi_cuda_place_rows(&p->a, &c->a, end) || bsmi_cuda_place_rows(&p->b, &c->b, end)
           || bsmi_cuda_place_late_rows(p, c, end);
}

/* Loading ---------------------------------------------------------------------------------------------------------- */

/* CTAs of the kernel on an SM: rows of large operands are dequantized fastest by fewer than there is room for. */
enum { MOST_ROWS = 3, MOST_WITH_SCALES = 4 };

static uint32_t *fallback_flags(const struct bsmi_cuda_run *run, const struct bsmi_cuda_operand *o)
{
    return o->has_exponents ? bsmi_cuda_at(run, o->fallback_at) : NULL;
}

static struct bsmi_decode_operand decoded_operand(const struct bsmi_cuda_run *run, const struct bsmi_matrix *m,
                                                  const struct bsmi_cuda_operand *o,
                                                  const struct bsmi_cuda_operand *other)
{
    const struct bsmi_matrix as = moved(m, o->as_it_is);
    return (struct bsmi_decode_operand){
        .source = bsmi_cuda_matrix(&as), .decoded = bsmi_cuda_at(run, o->rows_at), .pitch = o->pitch,
        .batch_pitch = o->batch_pitch,
        .padded_columns = o->padded_columns, .only_exponent_zero = bsmi_cuda_is_bf16(other),
        .exponents = bsmi_cuda_exponents(run, o),
        .fallback = fallback_flags(run, o),
    };
}

static struct bsmi_row_scales_parameters loaded_scales(const struct bsmi_cuda_run *run, const struct bsmi_matrix *m,
                                                       const struct bsmi_cuda_operand *o,
                                                       const struct bsmi_cuda_operand *other)
{
    return (struct bsmi_row_scales_parameters){
        .source = bsmi_cuda_matrix(m), .scales = bsmi_cuda_at(run, o->scales_at), .band_bytes = o->scale_band_bytes,
        .batch_bytes = o->scale_batch_bytes, .only_exponent_zero = bsmi_cuda_is_bf16(other),
        .exponents = bsmi_cuda_exponents(run, o),
        .fallback = fallback_flags(run, o),
    };
}

/* What the launch has to do for an operand: pieces for a CTA each, and what they move. */
struct loading { int64_t pieces; double bytes; };

static struct loading loading_of(const struct bsmi_matrix *m, const struct bsmi_cuda_operand *o)
{
    const int64_t rows = m->rows * m->batch;
    if (bsmi_cuda_becomes_rows(o))
        return (struct loading){ rows, (double)rows * (double)m->columns * (m->bits / 8.0 + 2 * o->terms) };
    if (o->form != BSMI_FORM_IN_KERNEL || o->own_scales) return (struct loading){ 0, 0 };
    return (struct loading){ bsmi_ceil_div(bsmi_round_up(m->rows, 128) * m->batch, BSMI_ROW_SCALES_ROWS),
                             2.0 * (double)o->scale_batch_bytes * (double)m->batch };
}

/* Where an operand lies otherwise than plainly: two share a grid that strides, as they share the bytes that are
 * moved. */
static bsm_status load_generally(struct bsmi_cuda_run *run, const struct bsmi_decode_parameters *parameters,
                                 const struct loading *of_a, const struct loading *of_b)
{
    struct bsmi_conditional_decode_parameters given = { .condition =
                                                            bsmi_cuda_int8_condition(run, BSMI_RUNS_UNLESS_INT8_FITS),
                                                        .decode = *parameters };
    const int64_t most =
        (int64_t)run->queue.gpu->sm_count * (parameters->loads_scales ? MOST_WITH_SCALES : MOST_ROWS);
    const int64_t all = BSMI_MIN(of_a->pieces + of_b->pieces, BSMI_MIN(most, BSMI_MOST_FALLBACK_FLAGS));
    const double share = of_a->bytes / (of_a->bytes + of_b->bytes);
    int64_t a_ctas = of_a->pieces == 0   ? 0
                     : of_b->pieces == 0 ? all
                                         : BSMI_MAX(1, BSMI_MIN(all - 1, (int64_t)(share * (double)all + 0.5)));
    a_ctas = BSMI_MIN(BSMI_MAX(a_ctas, all - of_b->pieces), of_a->pieces);
    given.decode.first_ctas = (int32_t)a_ctas;
    run->a_flags = (int32_t)a_ctas, run->b_flags = (int32_t)(all - a_ctas);
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_DECODE, all, &given);
}

/* A kernel that reads prepacked weights loads them before it waits, so that neither it nor what dequantizes A in front
 * of it need wait for what is in front of the call in order to begin.  Where each SM has about one tile that is slower,
 * measured (docs/design/hopper.md): they are all taken until the end. */
static bool begins_with_weights(const struct bsmi_cuda_run *run)
{
    if (!bsmi_cuda_wants_prepacked(run->multiply)) return false;
    const int64_t tiles = bsmi_cuda_tiles(&bsmi_gemm_instances[run->multiply->gemm], run->product),
                  sm_count = run->queue.gpu->sm_count;
    return 4 * tiles <= 3 * sm_count || tiles > sm_count;
}

bsm_status bsmi_cuda_load_operands(struct bsmi_cuda_run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_operand *a = &run->multiply->a, *b = &run->multiply->b;
    const struct loading of_a = loading_of(&p->a, a), of_b = loading_of(&p->b, b);
    if (of_a.pieces + of_b.pieces == 0) return BSM_OK;
    struct bsmi_decode_parameters general = { .loads_scales = b->form == BSMI_FORM_IN_KERNEL && of_b.pieces > 0 };
    if (of_a.pieces > 0) general.operands[0] = decoded_operand(run, &p->a, a, b);
    if (general.loads_scales) general.scales = loaded_scales(run, &p->b, b, a);
    else if (of_b.pieces > 0) general.operands[1] = decoded_operand(run, &p->b, b, a);
    struct bsmi_decode_plain_parameters plain = { .first_ctas = 0 };
    int64_t ctas[2];
    const bool conditional = run->multiply->int8_fallback >= 0;
    if (conditional
        || !bsmi_cuda_decode_plainly(&general, of_a.pieces > 0, of_b.pieces > 0, run->queue.gpu->sm_count,
                                     &plain, ctas))
        return load_generally(run, &general, &of_a, &of_b);
    run->a_flags = (int32_t)ctas[0], run->b_flags = (int32_t)ctas[1];
    if (run->multiply->late_rows[0] + run->multiply->late_rows[1] > 0) return bsmi_cuda_decode_early(run, &plain, ctas);
    plain.dependents_first = begins_with_weights(run);
    return (plain.dependents_first ? bsmi_cuda_launch_early : bsmi_cuda_launch)(&run->queue, BSMI_KERNEL_DECODE_PLAIN,
                                                                                 ctas[0] + ctas[1], &plain);
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

bsm_status bsmi_cuda_map_rows(const struct bsmi_cuda_run *run, const char *name, const struct bsmi_matrix *m,
                              const struct bsmi_cuda_operand *o, int box_rows, struct bsmi_tensor_map *map)
{
    const struct bsmi_matrix as = moved(m, o->as_it_is);
    struct bsmi_cuda_rows rows = plain_rows(&as);
    if (o->form != BSMI_FORM_AS_STORED) {
        rows.data = bsmi_cuda_at(run, o->rows_at);
        rows.columns = o->pitch, rows.row_bytes = o->pitch * 2, rows.batch_bytes = o->batch_pitch * 2;
    }
    if (!bsmi_cuda_can_load(&rows))
        return bsmi_fail(BSM_EALIGN,
                         "%s->data=%p is not aligned to 16 bytes, as that of the plan was: make a plan for it", name,
                         rows.data);
    return bsmi_cuda_map(run->queue.gpu, &rows, BSMI_K_STEP, box_rows, CU_TENSOR_MAP_SWIZZLE_128B, map);
}

/* Every term of A with every term of B, each along the whole of K. */
void bsmi_cuda_fill_segments(const struct bsmi_cuda_multiply *c, struct bsmi_gemm_parameters *g)
{
    for (int i = 0; i < c->a.terms; i++)
        for (int j = 0; j < c->b.terms; j++)
            g->segments[g->segment_count++] =
                (struct bsmi_segment){ (int32_t)(i * c->a.padded_columns), (int32_t)(j * c->b.padded_columns),
                                       (int32_t)(c->a.padded_columns / BSMI_K_STEP) };
}

/* By TMA, K-major or as it is stored, or by cp.async. */
static bsm_status map_operand(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g, const char *name,
                              const struct bsmi_matrix *m, const struct bsmi_cuda_operand *o, int box_rows,
                              struct bsmi_tensor_map *map, struct bsmi_copied_rows *copied)
{
    if (o->copy_size > 0) return bsmi_cuda_fill_copied(name, m, o->copy_size, copied);
    if (m->major == BSM_MAJOR_MN) return bsmi_cuda_map_mn_major(run->queue.gpu, g, name, m, box_rows, map);
    return bsmi_cuda_map_rows(run, name, m, o, box_rows, map);
}

static bsm_status fill(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g, union bsmi_gemm_launch *to)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    struct bsmi_shared_memory_parameters *s = &to->shared_memory;
    bsmi_cuda_fill_segments(c, &to->gemm);
    if (c->late_rows[0] + c->late_rows[1] > 0) bsmi_cuda_fill_late_rows(run, &to->late_rows);
    if (bsmi_gemm_is_of_blackwell(g)) bsmi_codes_fill(g, &p->a, &p->b, &to->blackwell);
    else s->condition = bsmi_cuda_int8_condition(run, g->condition);
    if (g->fallback == BSMI_FALLBACK_IN_KERNEL)
        s->a_source = bsmi_cuda_matrix(&p->a), s->b_source = bsmi_cuda_matrix(&p->b), s->k = p->k;
    const bsm_status status =
        map_operand(run, g, "a", &p->a, &c->a, g->a_box_rows, &to->gemm.a, &to->blackwell.a_copied);
    if (status != BSM_OK) return status;
    return map_operand(run, g, "b", &p->b, &c->b, g->b_box_rows, &to->gemm.b, &to->blackwell.b_copied);
}

bsm_status bsmi_cuda_enqueue_rows(struct bsmi_cuda_run *run)
{
    const struct bsmi_cuda_multiply *c = run->multiply;
    const bool int8 = c->int8_fallback >= 0, has_exponents = c->a.has_exponents || c->b.has_exponents;
    const int gemm = int8 ? c->int8_fallback : c->gemm;
    bsm_status status = bsmi_cuda_load_operands(run);
    if (status == BSM_OK) status = bsmi_cuda_run_gemm(run, gemm, int8 ? &bsmi_lowering_rows : c->lowering);
    if (status != BSM_OK || !has_exponents || bsmi_gemm_instances[gemm].fallback == BSMI_FALLBACK_IN_KERNEL)
        return status;
    return bsmi_cuda_run_sums(run, true);
}

const struct bsmi_lowering bsmi_lowering_rows = { describe, place, bsmi_cuda_enqueue_rows, fill };

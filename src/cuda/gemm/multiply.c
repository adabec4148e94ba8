/* A product on a GPU: its launches in their order. */
#include "multiply.h"
#include "fused_dequantization.h"
#include "int8.h"
#include "cuda/driver/launch.h"
#include "cuda/driver/matrix.h"
#include "plain_dequantization.h"
#include "cuda/sm90/kernels/fused_dequantization_instances.h"

struct run {
    struct bsmi_cuda_queue queue;
    const struct bsmi_cuda_multiply *multiply;
    const struct bsmi_product *product;
    unsigned char *workspace;
    struct bsmi_epilogue_parameters epilogue;
    int32_t a_flags, b_flags;             /* CTAs that bring the operands, and set flags of rows left out */
    int32_t unfit_flags;                  /* the same of rows that do not fit integers */
};

static void *at(const struct run *run, size_t offset) { return run->workspace + offset; }

static int64_t matrices(const struct bsmi_product *p) { return p->groups > 0 ? p->groups : p->batch; }

static int32_t *exponents(const struct run *run, const struct bsmi_cuda_operand *o)
{
    return o->has_exponents ? at(run, o->exponents_at) : NULL;
}

static const int64_t *group_starts(const struct run *run)
{
    return run->product->groups > 0 ? at(run, run->multiply->tables_at) : NULL;
}

static const int64_t *group_tiles(const struct run *run)
{
    return run->product->groups > 0 ? group_starts(run) + run->product->groups + 1 : NULL;
}

/* Where codes are multiplied, a tile of swapped instances reads one block of 128 rows of scales, from a multiple of 32 rows on: the tiles
 * of a group begin at such a multiple that none of them reaches into a second block.  Other tiles are whole blocks. */
static int32_t row_alignment(const struct bsmi_cuda_multiply *c)
{
    if (c->road != BSMI_ROAD_CODES) return 0;
    const struct bsmi_gemm_instance *gemm = &bsmi_gemm_instances[c->gemm];
    return bsmi_gemm_is_swapped(gemm) ? BSMI_MAX(32, gemm->tile_rows) : 128;
}

static bsm_status make_group_tables(struct run *run)
{
    const struct bsmi_product *p = run->product;
    if (p->groups == 0) return BSM_OK;
    const struct bsmi_gemm_instance *gemm = run->multiply->gemm < 0 ? NULL : &bsmi_gemm_instances[run->multiply->gemm];
    const struct bsmi_group_tables_parameters parameters = {
        .group_rows = p->group_rows,
        .groups = p->groups,
        .m = p->m,
        .tile_rows = gemm != NULL ? gemm->tile_rows * gemm->cluster_rows : BSMI_SUMS_ROWS,
        .row_alignment = row_alignment(run->multiply),
        .column_tiles = gemm != NULL ? run->multiply->column_tiles : bsmi_ceil_div(p->n, BSMI_SUMS_COLUMNS),
        .group_starts = at(run, run->multiply->tables_at),
        .group_tiles = (int64_t *)at(run, run->multiply->tables_at) + p->groups + 1,
    };
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_GROUP_TABLES, 1, &parameters);
}

static uint32_t *left_out(const struct run *run, const struct bsmi_cuda_operand *o)
{
    return o->has_exponents ? at(run, o->left_out_at) : NULL;
}

/* Numbers of any size, which no row's exponent may move further. */
static bool is_plain(const struct bsmi_cuda_operand *o) { return o->way == BSMI_WAY_AS_IT_IS || o->way == BSMI_WAY_REPACKED; }

static struct bsmi_decode_operand decoded_operand(const struct run *run, const struct bsmi_matrix *m, const struct bsmi_cuda_operand *o,
                                                  const struct bsmi_cuda_operand *other)
{
    return (struct bsmi_decode_operand){
        .source = bsmi_cuda_matrix(m), .decoded = at(run, o->rows_at), .pitch = o->pitch, .batch_pitch = o->batch_pitch,
        .padded_columns = o->padded_columns, .only_exponent_zero = is_plain(other), .exponents = exponents(run, o),
        .left_out = left_out(run, o),
    };
}

/* For a kernel of a product of integers that works if a row does not fit, or if all do. */
static struct bsmi_condition condition_of(const struct run *run, bool unfit)
{
    if (run->multiply->rest < 0) return (struct bsmi_condition){ NULL, 0, 0 };
    return (struct bsmi_condition){ at(run, run->multiply->unfit_at), run->unfit_flags, unfit };
}

static struct bsmi_row_scales_parameters brought_scales(const struct run *run, const struct bsmi_matrix *m, const struct bsmi_cuda_operand *o,
                                                       const struct bsmi_cuda_operand *other)
{
    return (struct bsmi_row_scales_parameters){
        .source = bsmi_cuda_matrix(m), .scales = at(run, o->scales_at), .band_bytes = o->scale_band_bytes,
        .batch_bytes = o->scale_batch_bytes, .only_exponent_zero = is_plain(other), .exponents = exponents(run, o),
        .left_out = left_out(run, o),
    };
}

/* CTAs of the kernel on a multiprocessor: rows of large operands are decoded fastest by fewer than there is room for. */
enum { MOST_ROWS = 3, MOST_WITH_SCALES = 4 };

/* Of a launch that brings operands: CTAs that have something to do, and what they move. */
struct bringing { int64_t pieces; double bytes; };

static struct bringing bringing_of(const struct bsmi_matrix *m, const struct bsmi_cuda_operand *o)
{
    const int64_t rows = m->rows * m->batch;
    if (bsmi_cuda_goes_into_rows(o)) return (struct bringing){ rows, (double)rows * (double)m->columns * (m->bits / 8.0 + 2 * o->terms) };
    if (o->way != BSMI_WAY_IN_KERNEL || o->own_scales) return (struct bringing){ 0, 0 };
    return (struct bringing){ bsmi_ceil_div(bsmi_round_up(m->rows, 128) * m->batch, BSMI_ROW_SCALES_ROWS), 2.0 * (double)o->scale_batch_bytes * (double)m->batch };
}

/* Where an operand lies otherwise than plainly: two share a grid that strides, as they share the bytes that are moved. */
static bsm_status bring_generally(struct run *run, const struct bsmi_decode_parameters *parameters, const struct bringing *of_a,
                                  const struct bringing *of_b)
{
    struct bsmi_conditional_decode_parameters given = { .condition = condition_of(run, true), .decode = *parameters };
    const int64_t most = (int64_t)run->queue.gpu->multiprocessors * (parameters->brings_scales ? MOST_WITH_SCALES : MOST_ROWS);
    const int64_t all = BSMI_MIN(of_a->pieces + of_b->pieces, BSMI_MIN(most, BSMI_MOST_LEFT_OUT_FLAGS));
    const double share = of_a->bytes / (of_a->bytes + of_b->bytes);
    int64_t a_ctas = of_a->pieces == 0 ? 0 : of_b->pieces == 0 ? all : BSMI_MAX(1, BSMI_MIN(all - 1, (int64_t)(share * (double)all + 0.5)));
    a_ctas = BSMI_MIN(BSMI_MAX(a_ctas, all - of_b->pieces), of_a->pieces);
    given.decode.first_ctas = (int32_t)a_ctas;
    run->a_flags = (int32_t)a_ctas, run->b_flags = (int32_t)(all - a_ctas);
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_DECODE, all, &given);
}

/* A kernel that reads panels loads them before it waits, so that neither it nor what decodes A in front of it need wait for what is in front of
 * the call in order to begin.  Where each multiprocessor has about one tile that is slower, measured (docs/design/hopper.md): they are all taken
 * until the end. */
static bool begins_with_panels(const struct run *run)
{
    if (!bsmi_cuda_wants_panels(run->multiply)) return false;
    const int64_t tiles = bsmi_cuda_tiles(&bsmi_gemm_instances[run->multiply->gemm], run->product), multiprocessors = run->queue.gpu->multiprocessors;
    return 4 * tiles <= 3 * multiprocessors || tiles > multiprocessors;
}

/* By one launch, operands in the form in which the GEMM kernel wants them: decoded into rows, or B's scales alone. */
static bsm_status bring_operands(struct run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_operand *a = &run->multiply->a, *b = &run->multiply->b;
    const struct bringing of_a = bringing_of(&p->a, a), of_b = bringing_of(&p->b, b);
    if (of_a.pieces + of_b.pieces == 0) return BSM_OK;
    struct bsmi_decode_parameters general = { .brings_scales = b->way == BSMI_WAY_IN_KERNEL && of_b.pieces > 0 };
    if (of_a.pieces > 0) general.operands[0] = decoded_operand(run, &p->a, a, b);
    if (general.brings_scales) general.scales = brought_scales(run, &p->b, b, a);
    else if (of_b.pieces > 0) general.operands[1] = decoded_operand(run, &p->b, b, a);
    struct bsmi_decode_plain_parameters plain = { .first_ctas = 0 };
    int64_t ctas[2];
    const bool conditional = run->multiply->rest >= 0;
    if (conditional || !bsmi_cuda_decode_plainly(&general, of_a.pieces > 0, of_b.pieces > 0, run->queue.gpu->multiprocessors, &plain, ctas))
        return bring_generally(run, &general, &of_a, &of_b);
    run->a_flags = (int32_t)ctas[0], run->b_flags = (int32_t)ctas[1];
    plain.dependents_first = begins_with_panels(run);
    return (plain.dependents_first ? bsmi_cuda_launch_early : bsmi_cuda_launch)(&run->queue, BSMI_KERNEL_DECODE_PLAIN, ctas[0] + ctas[1], &plain);
}

static bsm_status map_operand(const struct run *run, const char *name, const struct bsmi_matrix *m,
                              const struct bsmi_cuda_operand *o, int box_rows, struct bsmi_tensor_map *map)
{
    struct bsmi_cuda_rows rows = bsmi_cuda_plain_rows(m);
    if (o->way != BSMI_WAY_AS_IT_IS) {
        rows.data = at(run, o->rows_at);
        rows.columns = o->pitch, rows.row_bytes = o->pitch * 2, rows.batch_bytes = o->batch_pitch * 2;
    }
    if (!bsmi_cuda_can_map(&rows))
        return bsmi_fail(BSM_EALIGN, "%s->data=%p is not aligned to 16 bytes, as that of the plan was: make a plan for it", name,
                         rows.data);
    return bsmi_cuda_map(run->queue.gpu, &rows, BSMI_K_STEP, box_rows, CU_TENSOR_MAP_SWIZZLE_128B, map);
}

/* Of D as plain numbers, if TMA can store them. */
static bsm_status map_d(const struct run *run, const struct bsmi_gemm_instance *instance, struct bsmi_gemm_parameters *g)
{
    const struct bsmi_matrix *d = &run->product->d;
    if (!run->multiply->direct || instance->d_box_rows == 0 || d->block != 0) return BSM_OK;
    const int type = d->element == BSM_FP32   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                     : d->element == BSM_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                              : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    const struct bsmi_cuda_rows rows = { d->data, type, d->columns, d->rows, d->batch, d->row_bytes, d->batch_bytes };
    if (!bsmi_cuda_can_map(&rows)) return BSM_OK;
    const int swizzle = instance->d_box_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                        : instance->d_box_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                      : CU_TENSOR_MAP_SWIZZLE_32B;
    g->has_d_map = 1;
    return bsmi_cuda_map(run->queue.gpu, &rows, instance->d_box_bytes / (d->bits / 8), instance->d_box_rows,
                         swizzle, &g->d);
}

/* Every term of A with every term of B, each along the whole of K. */
static void fill_segments(const struct bsmi_cuda_multiply *c, struct bsmi_gemm_parameters *g)
{
    for (int i = 0; i < c->a.terms; i++)
        for (int j = 0; j < c->b.terms; j++)
            g->segments[g->segment_count++] =
                (struct bsmi_segment){ (int32_t)(i * c->a.padded_columns), (int32_t)(j * c->b.padded_columns),
                                       (int32_t)(c->a.padded_columns / BSMI_K_STEP) };
}

static bsm_status map_codes(const struct run *run, const struct bsmi_gemm_instance *instance, struct bsmi_tensor_memory_parameters *t)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    const struct bsmi_cuda_gpu *gpu = run->queue.gpu;
    const bsm_status status = bsmi_codes_map(gpu, instance->operands, "a", &p->a, &c->a.codes, run->workspace, instance->a_box_rows, &t->gemm.a, &t->a_scales);
    if (status != BSM_OK) return status;
    return bsmi_codes_map(gpu, instance->operands, "b", &p->b, &c->b.codes, run->workspace, instance->b_box_rows, &t->gemm.b, &t->b_scales);
}

/* B's codes, as bytes. */
static bsm_status map_bytes(const struct run *run, const struct bsmi_gemm_instance *instance, const void *scales, bool scales_by_tma,
                            struct bsmi_tensor_map *map)
{
    const bool stream = instance->codes == BSMI_CODES_STREAM;
    const struct bsmi_matrix *m = &run->product->b;
    const struct bsmi_cuda_rows rows = bsmi_cuda_code_rows(m);
    if (!bsmi_cuda_can_map(&rows) || (scales_by_tma && (uintptr_t)scales % 16 != 0))
        return bsmi_fail(BSM_EALIGN, "b->data=%p, b->scales=%p: not aligned to 16 bytes, as those of the plan were: make a plan for them",
                         (void *)m->data, (void *)m->scales);
    return bsmi_cuda_map(run->queue.gpu, &rows, stream ? BSMI_STREAM_BOX_BYTES : BSMI_CODES_BOX_BYTES, instance->b_box_rows,
                         stream ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B, map);
}

/* Boxes that reach beyond the last row take TMA longer than those that do not. */
static int a_box_rows(const struct run *run, const struct bsmi_gemm_instance *instance)
{
    const struct bsmi_product *p = run->product;
    return instance->schedule == BSMI_SCHEDULE_K_INTERLEAVED && p->groups == 0 ? (int)BSMI_MIN(p->m, (int64_t)instance->a_box_rows) : instance->a_box_rows;
}

static bsm_status map_a(const struct run *run, int box_rows, struct bsmi_gemm_parameters *g)
{
    return map_operand(run, "a", &run->product->a, &run->multiply->a, box_rows, &g->a);
}

static bsm_status fill_fused(const struct run *run, const struct bsmi_gemm_instance *instance, struct bsmi_fused_parameters *f)
{
    const struct bsmi_cuda_operand *o = &run->multiply->b;
    f->code_scales = o->own_scales ? run->product->b.scales : at(run, o->scales_at);
    f->code_band_bytes = o->scale_band_bytes, f->code_batch_bytes = o->scale_batch_bytes;
    f->code_element = (int32_t)run->product->b.element;
    const bsm_status status = map_a(run, instance->a_box_rows, &f->gemm);
    return status == BSM_OK ? map_bytes(run, instance, f->code_scales, true, &f->gemm.b) : status;
}

static bsm_status fill_mixed_input(const struct run *run, const struct bsmi_gemm_instance *instance, struct bsmi_mixed_input_parameters *m)
{
    const struct bsmi_product *p = run->product;
    m->a_source = bsmi_cuda_matrix(&p->a), m->b_source = bsmi_cuda_matrix(&p->b), m->k = p->k;
    m->only_exponent_zero = is_plain(&run->multiply->a);
    m->first_of_call = run->queue.behind == 0;
    m->a_box_rows = a_box_rows(run, instance);
    const bsm_status status = map_a(run, m->a_box_rows, &m->gemm);
    if (status != BSM_OK || !bsmi_gemm_reads_prepacked(instance)) return status == BSM_OK ? map_bytes(run, instance, p->b.scales, false, &m->gemm.b) : status;
    bsmi_cuda_give_panels(p, m);
    return BSM_OK;
}

static bsm_status map_rows(const struct run *run, const struct bsmi_gemm_instance *instance, struct bsmi_gemm_parameters *g)
{
    const bsm_status status = map_a(run, instance->a_box_rows, g);
    return status == BSM_OK ? map_operand(run, "b", &run->product->b, &run->multiply->b, instance->b_box_rows, &g->b) : status;
}

static struct bsmi_integers_of integers_of(const struct run *run, const char *name, const struct bsmi_matrix *m, const struct bsmi_cuda_operand *o)
{
    return (struct bsmi_integers_of){ name, m, &o->integers, at(run, o->integers.rows_at), exponents(run, o) };
}

static bsm_status map_integers(const struct run *run, const struct bsmi_gemm_instance *instance, struct bsmi_gemm_parameters *g)
{
    const struct bsmi_cuda_multiply *c = run->multiply;
    const struct bsmi_integers_of a = integers_of(run, "a", &run->product->a, &c->a), b = integers_of(run, "b", &run->product->b, &c->b);
    g->segments[g->segment_count++] = (struct bsmi_segment){ 0, 0, (int32_t)(a.integers->padded_columns / BSMI_INTEGER_K_STEP) };
    const bsm_status status = bsmi_integers_map(run->queue.gpu, &a, instance->a_box_rows, &g->a);
    return status == BSM_OK ? bsmi_integers_map(run->queue.gpu, &b, instance->b_box_rows, &g->b) : status;
}

/* What GEMM kernels are launched with: all begin with the same. */
union launched {
    struct bsmi_gemm_parameters gemm;
    struct bsmi_shared_memory_parameters shared_memory;
    struct bsmi_fused_parameters fused;
    struct bsmi_mixed_input_parameters mixed_input;
    struct bsmi_tensor_memory_parameters tensor_memory;
};

static bsm_status map_fast(const struct run *run, const struct bsmi_gemm_instance *instance, struct bsmi_gemm_parameters *parameters)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    return bsmi_fast_map(run->queue.gpu, instance, &p->a, &c->a.fast, &p->b, &c->b.fast, run->workspace, parameters);
}

static bsm_status fill_shared_memory(const struct run *run, const struct bsmi_gemm_instance *instance, struct bsmi_shared_memory_parameters *s)
{
    const struct bsmi_product *p = run->product;
    if (instance->operands == BSMI_OPERANDS_FP8) return map_fast(run, instance, &s->gemm);
    s->condition = condition_of(run, instance->operands != BSMI_OPERANDS_INT8);
    if (instance->operands == BSMI_OPERANDS_INT8) return map_integers(run, instance, &s->gemm);
    fill_segments(run->multiply, &s->gemm);
    if (instance->fallback == BSMI_FALLBACK_IN_KERNEL) s->a_source = bsmi_cuda_matrix(&p->a), s->b_source = bsmi_cuda_matrix(&p->b), s->k = p->k;
    return map_rows(run, instance, &s->gemm);
}

static bsm_status fill_tensor_memory(const struct run *run, const struct bsmi_gemm_instance *instance, struct bsmi_tensor_memory_parameters *t)
{
    const struct bsmi_cuda_multiply *c = run->multiply;
    t->spread = c->spread, t->kept = c->kept > 0 ? at(run, c->kept_at) : NULL;
    bsmi_codes_fill(instance, &run->product->a, &run->product->b, t);
    if (c->road == BSMI_ROAD_CODES) return map_codes(run, instance, t);
    fill_segments(c, &t->gemm);
    return map_rows(run, instance, &t->gemm);
}

/* What the kernel multiplies, as its main loop wants it. */
static bsm_status give_operands(const struct run *run, const struct bsmi_gemm_instance *instance, union launched *parameters)
{
    if (bsmi_gemm_has_tensor_memory(instance)) return fill_tensor_memory(run, instance, &parameters->tensor_memory);
    if (instance->codes == BSMI_CODES_NONE) return fill_shared_memory(run, instance, &parameters->shared_memory);
    fill_segments(run->multiply, &parameters->gemm);
    if (bsmi_gemm_reads_any_scales(instance)) return fill_mixed_input(run, instance, &parameters->mixed_input);
    return fill_fused(run, instance, &parameters->fused);
}

static bsm_status run_gemm(struct run *run, int gemm)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    const struct bsmi_gemm_instance *instance = &bsmi_gemm_instances[gemm];
    union launched given = { .gemm = {
        .a_batch_step = p->a.batch > 1, .b_batch_step = p->b.batch > 1, .direct = c->direct, .row_tiles = c->row_tiles,
        .column_tiles = c->column_tiles, .group_tiles = group_tiles(run), .epilogue = run->epilogue,
        .row_alignment = row_alignment(c),
        .last_row = p->groups > 0 ? 0 : bsmi_gemm_last_row(instance, p->m),
        .band_rows = bsmi_gemm_band(instance, run->queue.gpu->gemm_clusters[gemm], p->groups > 0 ? 0 : c->row_tiles),
    } };
    struct bsmi_gemm_parameters *g = &given.gemm;
    g->tiles = bsmi_cuda_tiles(instance, p);
    bsm_status status = give_operands(run, instance, &given);
    if (status == BSM_OK) status = map_d(run, instance, g);
    return status == BSM_OK ? bsmi_cuda_launch_gemm(&run->queue, gemm, c->spread ? g->tiles * c->parts : g->tiles, &given) : status;
}

static struct bsmi_left_out flags_of(const struct run *run, const struct bsmi_cuda_operand *o, int32_t ctas)
{
    return (struct bsmi_left_out){ left_out(run, o), o->has_exponents ? ctas : 0 };
}

/* All of S, or the rows and columns that a decoder left out. */
static bsm_status run_sums(struct run *run, bool only_left_out)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_sums_parameters parameters = {
        .a = bsmi_cuda_matrix(&p->a),
        .b = bsmi_cuda_matrix(&p->b),
        .k = p->k,
        .a_batch_step = p->a.batch > 1,
        .b_batch_step = p->b.batch > 1,
        .only_left_out = only_left_out,
        .direct = run->multiply->direct,
        .a_left_out = flags_of(run, &run->multiply->a, run->a_flags),
        .b_left_out = flags_of(run, &run->multiply->b, run->b_flags),
        .group_tiles = group_tiles(run),
        .epilogue = run->epilogue,
    };
    const int64_t row_tiles = bsmi_ceil_div(p->m, BSMI_SUMS_ROWS) + p->groups,
                  column_tiles = bsmi_ceil_div(p->n, BSMI_SUMS_COLUMNS);
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_SUMS, only_left_out ? run->queue.gpu->multiprocessors : row_tiles * column_tiles * p->batch,
                            &parameters);
}

static bsm_status finish(struct run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_finish_parameters parameters = { run->epilogue };
    if (run->multiply->direct) return BSM_OK;
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_FINISH, p->m * p->batch * bsmi_ceil_div(p->n, 1024), &parameters);
}

/* Sums of integers, if all rows fit; what follows does nothing then. */
static bsm_status run_integers(struct run *run)
{
    const struct bsmi_cuda_multiply *c = run->multiply;
    const struct bsmi_integers_of a = integers_of(run, "a", &run->product->a, &c->a), b = integers_of(run, "b", &run->product->b, &c->b);
    const bsm_status status = bsmi_integers_make(&run->queue, &a, &b, at(run, c->unfit_at), &run->unfit_flags);
    return status == BSM_OK ? run_gemm(run, c->gemm) : status;
}

static bsm_status run_tensor(struct run *run)
{
    const struct bsmi_cuda_multiply *c = run->multiply;
    const int gemm = c->rest >= 0 ? c->rest : c->gemm;
    bsm_status status = c->rest >= 0 ? run_integers(run) : BSM_OK;
    if (status == BSM_OK) status = bring_operands(run);
    if (status == BSM_OK) status = run_gemm(run, gemm);
    if (status == BSM_OK && bsmi_cuda_leaves_out(c) && bsmi_gemm_instances[gemm].fallback == BSMI_FALLBACK_BY_SUMS) status = run_sums(run, true);
    return status;
}

static bsm_status run_codes(struct run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    bsm_status status = bsmi_codes_prepare(&run->queue, &p->a, &c->a.codes, run->workspace);
    if (status == BSM_OK) status = bsmi_codes_prepare(&run->queue, &p->b, &c->b.codes, run->workspace);
    return status == BSM_OK ? run_gemm(run, c->gemm) : status;
}

static bsm_status run_fast(struct run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    const bsm_status status = bsmi_fast_refold(&run->queue, &p->a, &c->a.fast, &p->b, &c->b.fast, run->workspace);
    return status == BSM_OK ? run_gemm(run, c->gemm) : status;
}

static bsm_status make_sums(struct run *run)
{
    switch (run->multiply->road) {
    case BSMI_ROAD_TENSOR: return run_tensor(run);
    case BSMI_ROAD_CODES: return run_codes(run);
    case BSMI_ROAD_FAST: return run_fast(run);
    default: return run_sums(run, false);
    }
}

/* Where D is finished decides where S lies. */
static bsm_status check_direct(const struct run *run)
{
    if (run->multiply->direct == (bsmi_cuda_finishes_directly(run->product, run->multiply->road) && !run->multiply->spread)) return BSM_OK;
    return bsmi_fail(
        BSM_EINVAL,
        "amax or d->tensor_scale is NULL in one and given in the other of the plan's description and this one: on a GPU "
        "make another plan");
}

static bsm_status run_entered(struct run *run)
{
    const struct bsmi_product *p = run->product;
    bsm_status status = check_direct(run);
    if (status == BSM_OK) status = bsmi_cuda_clear_amax(&run->queue, run->product);
    if (status != BSM_OK || p->m == 0 || p->n == 0 || matrices(p) == 0) return status;
    bsmi_cuda_fill_epilogue(run->multiply, p, run->workspace, &run->epilogue);
    if (bsmi_cuda_wants_panels(run->multiply)) run->epilogue.b_exponents = p->b_panels;      /* they begin with them */
    status = bsmi_cuda_clear_padding(&run->queue, p);
    if (status == BSM_OK) status = make_group_tables(run);
    if (status == BSM_OK) status = make_sums(run);
    return status == BSM_OK ? finish(run) : status;
}

static CUstream stream_of(const struct bsmi_cuda_device *device, const struct bsmi_product *p)
{
    return p->stream != NULL ? p->stream : device->stream;
}

static bsm_status run_here(const struct bsmi_cuda_device *device, const struct bsmi_cuda_multiply *c, const struct bsmi_product *p,
                           void *workspace)
{
    struct run run = { .queue = { device->gpu, stream_of(device, p), 0 }, .multiply = c, .product = p, .workspace = workspace };
    return run_entered(&run);
}

bsm_status bsmi_cuda_run(bsm_context *context, const struct bsmi_cuda_multiply *c, const struct bsmi_product *p, void *workspace)
{
    const struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    const bsm_status status = bsmi_cuda_enter(device->gpu);
    return status != BSM_OK ? status : bsmi_cuda_leave(device->gpu, run_here(device, c, p, workspace));
}

static bsm_status multiply_entered(struct bsmi_cuda_device *device, const struct bsmi_cuda_multiply *c,
                                   const struct bsmi_product *p)
{
    const CUstream stream = stream_of(device, p);
    CUdeviceptr workspace;
    if (c->workspace_bytes == 0) return run_here(device, c, p, NULL);
    const bsm_status status = bsmi_cuda_workspace_lock(device, stream, c->workspace_bytes, &workspace);
    if (status != BSM_OK) return status;
    return bsmi_cuda_workspace_unlock(device, stream, run_here(device, c, p, (void *)(uintptr_t)workspace));
}

bsm_status bsmi_cuda_multiply(bsm_context *context, const struct bsmi_cuda_multiply *c, const struct bsmi_product *p)
{
    struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    const bsm_status status = bsmi_cuda_enter(device->gpu);
    return status != BSM_OK ? status : bsmi_cuda_leave(device->gpu, multiply_entered(device, c, p));
}

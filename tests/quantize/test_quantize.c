/* bsm_quantize: every destination, every way a source can lie, threads, floating-point modes, tensor scales,
 * statistics. */
#include "blockscale.h"
#include "matrices.h"
#include "oracle_block.h"
#include "quantize/block/block.h"

#include "../format/fp_mode.h"
#include "../format/oracle.h"

#include <float.h>
#include <stdlib.h>

static bsm_context *context_of(int threads, bool portable)
{
    const bsm_context_options options = {
        .struct_size = sizeof options, .threads = threads, .portable_only = portable
    };
    bsm_context *context = NULL;
    if (bsm_context_create(&options, &context) != BSM_OK) abort();
    return context;
}

static bsm_context *context_with(int threads) { return context_of(threads, false); }

static void fill_normal(struct test *t, struct numbers *n, float factor)
{
    for (int64_t i = 0; i < numbers_count(n); i++) n->values[i] = factor * (float)rnd_normal(t);
}

/* What the matrix must become: blocks through the function that test_block proves, other elements by search. */
static struct coded expected(const struct numbers *n, const bsm_matrix *m, const bsm_quantize_options *o,
                             float tensor_scale)
{
    const bsm_format_info *info = bsm_format_get((int)m->format);
    struct coded want = coded_make(m);
    struct bsmi_block_quantizer quantizer;
    if (info->block > 0 && bsmi_block_quantizer_make("recipe", m->format, o->recipe, o->rounding, o->seed, o->nonfinite,
                                                     tensor_scale, m->tensor_scale_use, &quantizer) != BSM_OK)
        abort();
    for (int64_t row = 0; row < n->batch * n->rows; row++)
        for (int64_t c = 0; c < n->columns; c += info->block > 0 ? info->block : 1) {
            const int64_t first = row * n->columns + c;
            if (info->block == 0) {
                const double x = (double)n->values[first];
                const bool saturate = info->bits_per_element == 8 && !o->no_saturate;
                struct exact above = exact_of(isfinite(x) ? fabs(x) : 0), below = exact_of((double)tensor_scale);
                if (m->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES)
                    above = exact_times(above, below), below = exact_of(1);
                want.codes[first] = isfinite(x) ? oracle_round(info->element, signbit(x) != 0, above, below, saturate)
                                                : oracle_encode(info->element, x, saturate);
                continue;
            }
            uint8_t codes[32];
            const int count = (int)(n->columns - c < info->block ? n->columns - c : info->block);
            want.scales[row * want.scale_columns + c / info->block] =
                bsmi_quantize_block(&quantizer, n->values + first, count, (uint64_t)first, codes, NULL);
            for (int i = 0; i < count; i++) want.codes[first + i] = codes[i];
        }
    return want;
}

/* Quantizes into a fresh target and compares. */
static void check_road(struct test *t, bsm_context *context, const struct numbers *n, const struct strided *source,
                       bsm_matrix description, const bsm_quantize_options *options, float tensor_scale, bool with_stats)
{
    struct target target;
    description.rows = n->rows, description.columns = n->columns, description.batch = n->batch;
    if (!target_make(t, &target, description, tensor_scale)) return;
    bsm_quantize_stats stats = { .struct_size = sizeof stats };
    if (bsm_quantize(context, &source->matrix, options, &target.matrix, with_stats ? &stats : NULL) != BSM_OK)
        FAIL(t, "%s", bsm_last_error());
    CHECK(t, !with_stats || stats.elements == numbers_count(n));
    CHECK(t, !with_stats || stats.blocks == n->batch * n->rows * bsm_matrix_scale_columns(&target.matrix));
    struct coded want = expected(n, &target.matrix, options, tensor_scale != 0 ? tensor_scale : 1);
    check_target(t, &target, &want);
    coded_free(&want);
    target_free(&target);
}

static void check_quantize(struct test *t, bsm_context *context, struct numbers *n, bsm_real type, enum lie lie,
                           bsm_matrix description, bsm_quantize_options options, float tensor_scale)
{
    struct strided source = strided_make(type, lie, n);
    options.struct_size = sizeof options;
    check_road(t, context, n, &source, description, &options, tensor_scale, false);
    if (rnd_below(t, 4) == 0) check_road(t, context, n, &source, description, &options, tensor_scale, true);
    strided_free(&source);
}

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR },
    { .kind = BSM_LAYOUT_LINEAR, .pitch = 97 },
    { .kind = BSM_LAYOUT_128X4 },
    { .kind = BSM_LAYOUT_8X4 },
    { .kind = BSM_LAYOUT_TILES, .tile_rows = 4, .tile_columns = 2 },
    { .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 },
    { .kind = BSM_LAYOUT_CDNA4_16 },
    { .kind = BSM_LAYOUT_CDNA4_32 },
    { .kind = BSM_LAYOUT_AITER },
    { .kind = BSM_LAYOUT_DEEPGEMM },
    { .kind = BSM_LAYOUT_GGUF_MXFP4 },
    { .kind = BSM_LAYOUT_GGUF_NVFP4 },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* Short last blocks (1, 17, 33, 50), whole ones, rows beyond one tile of every layout. */
static void every_format_packing_and_layout(struct test *t)
{
    static const struct {
        int64_t rows, columns;
    } shapes[] = { { 1, 1 }, { 2, 17 }, { 3, 33 }, { 9, 50 }, { 33, 64 }, { 130, 300 } };
    bsm_context *context = context_with(1);
    int combinations = 0;
    for (int format = BSM_MXFP8_E4M3; format < BSM_FORMAT_COUNT; format++)
        for (int packing = 0; packing < BSM_PACKING_COUNT; packing++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                const bsm_matrix m = { .format = (bsm_format)format,
                                       .packing = (bsm_packing)packing,
                                       .scale_layout = layouts[layout] };
                if (!goes_together(m.format, m.packing, m.scale_layout)) continue;
                if (bsm_format_get(format)->block == 0 && layout > 0) continue;
                combinations++;
                for (int s = 0; s < 6; s++) {
                    if (s == 5 && (combinations + packing) % 3 != 0) continue;
                    struct numbers n = numbers_make(shapes[s].rows, shapes[s].columns, 1);
                    fill_normal(t, &n, 1);
                    check_quantize(t, context, &n, BSM_REAL_FP32, LIE_PADDED, m, (bsm_quantize_options){ 0 }, 0);
                    free(n.values);
                }
            }
    CHECK(t, combinations > 150);
    bsm_context_destroy(context);
}

static void every_way_a_source_can_lie(struct test *t)
{
    static const bsm_format formats[] = { BSM_MXFP8_E4M3,  BSM_MXFP6_E2M3,  BSM_NVFP4,      BSM_MXINT8,
                                          BSM_FORMAT_E5M2, BSM_FORMAT_BF16, BSM_FORMAT_FP32 };
    static const bsm_real types[] = { BSM_REAL_FP32, BSM_REAL_FP16, BSM_REAL_BF16 };
    bsm_context *context = context_with(1);
    for (int f = 0; f < 7; f++)
        for (int type = 0; type < 3; type++)
            for (int lie = 0; lie < LIE_COUNT; lie++)
                for (int batch = 1; batch <= 3; batch += 2) {
                    struct numbers n = numbers_make(19, 70, batch);
                    fill_normal(t, &n, 2);
                    bsm_matrix m = { .format = formats[f],
                                     .pitch = batch == 1 ? 0 : 80,
                                     .batch_pitch = batch == 1 ? 0 : 19 * 80 + 16,
                                     .scale_layout = { .kind = BSM_LAYOUT_8X4 } };
                    if (bsm_format_get((int)formats[f])->block > 0) m.scale_batch_pitch = 1000;
                    check_quantize(t, context, &n, types[type], (enum lie)lie, m, (bsm_quantize_options){ 0 }, 0);
                    free(n.values);
                }
    bsm_context_destroy(context);
}

/* Shapes that are cut into several pieces, spans and tasks. */
static void large_shapes(struct test *t)
{
    static const struct {
        int64_t rows, columns, batch;
    } shapes[] = { { 3, 17000, 1 }, { 20, 8200, 1 }, { 1100, 20, 1 }, { 1, 17, 1025 } };
    static const bsm_format formats[] = { BSM_MXFP6_E2M3, BSM_NVFP4, BSM_FORMAT_E4M3, BSM_FORMAT_FP32 };
    bsm_context *context = context_with(2);
    for (int s = 0; s < 4; s++)
        for (int f = 0; f < 4; f++) {
            struct numbers n = numbers_make(shapes[s].rows, shapes[s].columns, shapes[s].batch);
            fill_normal(t, &n, 1);
            const bsm_matrix m = { .format = formats[f], .scale_layout = { .kind = BSM_LAYOUT_128X4 } };
            check_quantize(t, context, &n, BSM_REAL_FP32, s % 2 ? LIE_TRANSPOSED : LIE_TIGHT, m,
                           (bsm_quantize_options){ 0 }, 0.25f);
            free(n.values);
        }
    bsm_context_destroy(context);
}

/* Strides of 0 repeat a row, a column or a matrix. */
static void broadcast_sources(struct test *t)
{
    bsm_context *context = context_with(1);
    for (int which = 0; which < 3; which++) {
        struct numbers n = numbers_make(5, 40, 3), lying = numbers_make(5, 40, 3);
        fill_normal(t, &lying, 1);
        struct strided source = strided_make(BSM_REAL_FP32, LIE_TIGHT, &lying);
        if (which == 0) source.matrix.row_stride = 0;
        if (which == 1) source.matrix.column_stride = 0;
        if (which == 2) source.matrix.batch_stride = 0;
        for (int64_t b = 0, i = 0; b < 3; b++)
            for (int64_t r = 0; r < 5; r++)
                for (int64_t c = 0; c < 40; c++, i++)
                    n.values[i] =
                        lying.values[(which == 2 ? 0 : b) * 200 + (which == 0 ? 0 : r) * 40 + (which == 1 ? 0 : c)];
        struct target target;
        if (target_make(t, &target, (bsm_matrix){ .format = BSM_MXFP4, .rows = 5, .columns = 40, .batch = 3 }, 0)) {
            CHECK(t, bsm_quantize(context, &source.matrix, NULL, &target.matrix, NULL) == BSM_OK);
            const bsm_quantize_options options = { .struct_size = sizeof options };
            struct coded want = expected(&n, &target.matrix, &options, 1);
            check_target(t, &target, &want);
            coded_free(&want);
            target_free(&target);
        }
        strided_free(&source);
        free(n.values);
        free(lying.values);
    }
    bsm_context_destroy(context);
}

/* Options of every kind in one call: recipe, rounding, policy, tensor scale.  Stochastic rounding is numbered by the
 * element's place in the matrix, whatever lies where. */
static void every_option(struct test *t)
{
    bsm_context *context = context_with(1);
    for (int i = 0; i < 300; i++) {
        const bsm_format format = (bsm_format)rnd_between(t, BSM_MXFP8_E4M3, BSM_NVFP4);
        const bsm_quantize_options options = { .recipe = format == BSM_NVFP4 ? BSM_RECIPE_NEAREST
                                                                             : (bsm_recipe)rnd_between(
                                                                                 t, BSM_RECIPE_FLOOR, BSM_RECIPE_EVEN),
                                               .rounding = (bsm_rounding)rnd_below(t, 2),
                                               .seed = rnd(t),
                                               .nonfinite = (bsm_nonfinite)rnd_below(t, 2) };
        struct numbers n = numbers_make(rnd_between(t, 1, 20), rnd_between(t, 1, 600), rnd_between(t, 1, 3));
        fill_normal(t, &n, 1);
        for (int64_t j = 0; j < numbers_count(&n); j += 1 + rnd_below(t, 200))
            n.values[j] = j % 3 == 0 ? NAN : j % 3 == 1 ? INFINITY : 0;
        const bsm_matrix m = { .format = format,
                               .tensor_scale_use = (bsm_tensor_scale_use)rnd_below(t, 2),
                               .scale_layout = layouts[rnd_between(t, 2, 9)] };
        check_quantize(t, context, &n, BSM_REAL_FP32, (enum lie)rnd_below(t, LIE_COUNT), m, options,
                       i % 2 ? (float)rnd_between(t, 1, 1000) / 333 : 0);
        free(n.values);
    }
    bsm_context_destroy(context);
}

static void unscaled_destinations(struct test *t)
{
    bsm_context *context = context_with(1);
    for (int format = BSM_FORMAT_E4M3; format < BSM_FORMAT_COUNT; format++)
        for (int i = 0; i < 24; i++) {
            struct numbers n = numbers_make(7, 101, 1);
            for (int64_t j = 0; j < numbers_count(&n); j++)
                n.values[j] = j % 4 == 0 ? bsmi_float_from_bits((uint32_t)rnd(t))
                                         : ldexpf((float)rnd_between(t, -4095, 4095), (int)rnd_between(t, -24, 8));
            const bsm_matrix m = { .format = (bsm_format)format,
                                   .pitch = i % 2 ? 120 : 0,
                                   .tensor_scale_use = (bsm_tensor_scale_use)(i / 2 % 2) };
            const bsm_quantize_options options = { .no_saturate = format <= BSM_FORMAT_E5M2 && i % 3 == 0 };
            static const float scales[] = { 0, 3, 0.1f, 0x1p-140f };
            check_quantize(t, context, &n, i % 5 == 4 ? BSM_REAL_BF16 : BSM_REAL_FP32, LIE_PADDED, m, options,
                           scales[i / 4 % 4]);
            free(n.values);
        }
    bsm_context_destroy(context);
}

/* The tensor scale ------------------------------------------------------------------------------------------------- */

static float want_tensor_scale(double amax, double largest, bool divides)
{
    if (amax == 0) return 1;
    const struct exact a = exact_of(amax), l = exact_of(largest);
    const float t = bsm_element_decode(BSM_FP32, oracle_round(BSM_FP32, false, divides ? l : a, divides ? a : l, true));
    return t < 0x1p-126f ? 0x1p-126f : t;
}

static void check_computed(struct test *t, bsm_context *context, bsm_format format, double largest, bool divides,
                           float amax)
{
    struct numbers n = numbers_make(4, 50, 2);
    for (int64_t i = 0; i < numbers_count(&n); i++) n.values[i] = amax * (float)rnd_between(t, -1000, 1000) / 1024;
    n.values[rnd_below(t, numbers_count(&n) - 4)] = rnd_below(t, 2) ? amax : -amax;
    n.values[numbers_count(&n) - 1] = INFINITY;           /* neither counts */
    n.values[numbers_count(&n) - 2] = NAN;
    struct strided source = strided_make(BSM_REAL_FP32, LIE_TRANSPOSED, &n);
    struct target target;
    if (target_make(
            t, &target,
            (bsm_matrix){ .format = format,
                          .rows = 4,
                          .columns = 50,
                          .batch = 2,
                          .tensor_scale_use = divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES },
            123)) {
        const bsm_quantize_options options = { .struct_size = sizeof options,
                                               .tensor_scale = BSM_TENSOR_SCALE_COMPUTED };
        CHECK(t, bsm_quantize(context, &source.matrix, &options, &target.matrix, NULL) == BSM_OK);
        const float want = want_tensor_scale((double)amax, largest, divides);
        if (bsmi_float_bits(target.tensor_scale) != bsmi_float_bits(want))
            FAIL(t, "%s: tensor scale of amax %a is %a, want %a", bsm_format_get((int)format)->name, (double)amax,
                 (double)target.tensor_scale, (double)want);
        struct coded codes = expected(&n, &target.matrix, &options, target.tensor_scale);
        check_target(t, &target, &codes);
        coded_free(&codes);
        target_free(&target);
    }
    strided_free(&source);
    free(n.values);
}

static void computed_tensor_scales(struct test *t)
{
    bsm_context *const contexts[] = { context_of(1, false), context_of(1, true) };
    static const float amaxes[] = { 0,         1,         2688,        448,    57344,  28672, 1e-23f,          FLT_MAX,
                                    0x1p-126f, 0x1p-149f, 0x1.8p-130f, 1e-38f, 3e-36f, 0.1f,  0x1.fffffep-118f };
    for (int kind = 0; kind < 4; kind++) {
        bsm_context *context = contexts[kind / 2];
        const int divides = kind % 2;
        for (int i = 0; i < 15; i++) {
            check_computed(t, context, BSM_NVFP4, 448 * 6, divides, amaxes[i]);
            check_computed(t, context, BSM_FORMAT_E4M3, 448, divides, amaxes[i]);
            check_computed(t, context, BSM_FORMAT_E5M2, 57344, divides, amaxes[i]);
        }
        for (int i = 0; i < 200; i++)
            check_computed(t, context, BSM_NVFP4, 448 * 6, divides,
                           bsmi_float_from_bits((uint32_t)rnd_between(t, 1, 0x7f7fffff)));
    }
    bsm_context_destroy(contexts[0]), bsm_context_destroy(contexts[1]);
}

/* Zero tensors, rows and blocks with a computed scale: no NaN scale, nothing infinite, everything comes back as
 * zero. */
static void zeros_with_a_computed_scale(struct test *t)
{
    bsm_context *context = context_with(1);
    for (int kind = 0; kind < 6; kind++) {
        struct numbers n = numbers_make(6, 48, 1);
        if (kind / 2 > 0) fill_normal(t, &n, kind / 2 == 1 ? 1 : 1e-23f);
        for (int64_t c = 0; c < 48; c++) n.values[48 + c] = 0;             /* a row */
        for (int64_t c = 16; c < 32; c++) n.values[c] = 0;                 /* a block */
        struct strided source = strided_make(BSM_REAL_FP32, LIE_TIGHT, &n);
        struct target target;
        if (!target_make(
                t, &target,
                (bsm_matrix){ .format = BSM_NVFP4, .rows = 6, .columns = 48,
                              .tensor_scale_use = (bsm_tensor_scale_use)(kind % 2) },
                1))
            continue;
        const bsm_quantize_options options = { .struct_size = sizeof options,
                                               .tensor_scale = BSM_TENSOR_SCALE_COMPUTED };
        bsm_quantize_stats stats = { .struct_size = sizeof stats };
        CHECK(t, bsm_quantize(context, &source.matrix, &options, &target.matrix, &stats) == BSM_OK);
        CHECK(t, isfinite(target.tensor_scale) && target.tensor_scale > 0);
        if (kind / 2 == 0) CHECK(t, target.tensor_scale == 1);
        CHECK(t, stats.nan_blocks == 0 && stats.scale_histogram[0x7f] == 0
                     && stats.scale_histogram[0] == (kind / 2 == 0 ? 18 : 4));
        CHECK(t, kind / 2 == 0 ? isinf(stats.snr_db) != 0 : stats.snr_db > 15);
        target_free(&target);
        strided_free(&source);
        free(n.values);
    }
    bsm_context_destroy(context);
}

/* Threads, modes --------------------------------------------------------------------------------------------------- */

struct outcome { struct target target; bsm_quantize_stats stats; };

enum { PLAIN_MODE = -1 };

/* The call alone runs in the mode. */
static void run_outcome(struct test *t, bsm_context *context, const struct strided *source, bsm_format format, int mode,
                        struct outcome *outcome)
{
    const bool scaled = format == BSM_NVFP4 || format == BSM_FORMAT_E4M3;
    const bsm_matrix m = { .format = format,
                           .rows = source->matrix.rows,
                           .columns = source->matrix.columns,
                           .scale_layout = { .kind = BSM_LAYOUT_128X4 } };
    const bsm_quantize_options options = { .struct_size = sizeof options,
                                           .rounding = BSM_ROUND_STOCHASTIC,
                                           .seed = 5,
                                           .tensor_scale =
                                               scaled ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN };
    memset(outcome, 0, sizeof *outcome);
    outcome->stats.struct_size = sizeof outcome->stats;
    if (!target_make(t, &outcome->target, m, scaled ? 1 : 0x1.8p-140f)) return;
    struct fp_mode_state before;
    memset(&before, 0, sizeof before);
    if (mode != PLAIN_MODE) before = fp_mode_enter(mode);
    const int direction = fegetround();
    const bsm_status status =
        bsm_quantize(context, &source->matrix, &options, &outcome->target.matrix, &outcome->stats);
    const int direction_after = fegetround();
    if (mode != PLAIN_MODE) fp_mode_leave(before);
    if (status != BSM_OK) FAIL(t, "%s", bsm_last_error());
    CHECK(t, direction == direction_after);
}

static bool same_outcome(const struct outcome *a, const struct outcome *b)
{
    return memcmp(a->target.matrix.data, b->target.matrix.data, (size_t)a->target.data_bytes) == 0 &&
           (a->target.scale_bytes == 0 ||
            memcmp(a->target.matrix.scales, b->target.matrix.scales, (size_t)a->target.scale_bytes) == 0) &&
           memcmp(&a->target.tensor_scale, &b->target.tensor_scale, sizeof(float)) == 0 &&
           memcmp(&a->stats, &b->stats, sizeof a->stats) == 0;
}

/* Enough rows and columns for many tasks, subnormals among them. */
static struct strided many_numbers(struct test *t, struct numbers *n)
{
    *n = numbers_make(70, 9001, 1);
    for (int64_t i = 0; i < numbers_count(n); i++)
        n->values[i] = i % 7 == 0 ? (float)rnd_normal(t) * 0x1p-130f : (float)rnd_normal(t);
    for (int64_t i = 0; i < 9001; i++) n->values[i] *= 0x1p-128f;         /* a row of subnormals */
    return strided_make(BSM_REAL_FP32, LIE_PADDED, n);
}

static const bsm_format varied_formats[] = { BSM_MXFP8_E4M3, BSM_NVFP4, BSM_MXFP6_E3M2, BSM_FORMAT_E4M3,
                                             BSM_FORMAT_BF16 };

static void any_number_of_threads(struct test *t)
{
    struct numbers n;
    struct strided source = many_numbers(t, &n);
    for (int f = 0; f < 5; f++) {
        struct outcome one, many;
        bsm_context *context = context_with(1);
        run_outcome(t, context, &source, varied_formats[f], PLAIN_MODE, &one);
        static const int threads[] = { 2, 7, 64 };
        for (int i = 0; i < 3; i++) {
            bsm_context_set_threads(context, threads[i]);
            run_outcome(t, context, &source, varied_formats[f], PLAIN_MODE, &many);
            if (!same_outcome(&one, &many))
                FAIL(t, "%s differs with %d threads", bsm_format_get((int)varied_formats[f])->name, threads[i]);
            target_free(&many.target);
        }
        target_free(&one.target);
        bsm_context_destroy(context);
    }
    strided_free(&source);
    free(n.values);
}

static void any_mode_of_the_caller(struct test *t)
{
    struct numbers n;
    struct strided source = many_numbers(t, &n);
    for (int threads = 1; threads <= 2; threads++)
        for (int f = 0; f < 5; f++) {
            struct outcome plain, other;
            bsm_context *context = context_with(threads);
            run_outcome(t, context, &source, varied_formats[f], PLAIN_MODE, &plain);
            for (int mode = 0; mode < fp_mode_count; mode++) {
                run_outcome(t, context, &source, varied_formats[f], mode, &other);
                if (!same_outcome(&plain, &other))
                    FAIL(t, "%s differs in mode %s", bsm_format_get((int)varied_formats[f])->name, fp_mode_name(mode));
                target_free(&other.target);
            }
            target_free(&plain.target);
            bsm_context_destroy(context);
        }
    strided_free(&source);
    free(n.values);
}

/* Row r alone becomes what it becomes among others, in any batch. */
static void rows_do_not_see_each_other(struct test *t)
{
    bsm_context *context = context_with(2);
    struct numbers all = numbers_make(40, 100, 1);
    fill_normal(t, &all, 1);
    struct strided source = strided_make(BSM_REAL_FP32, LIE_TIGHT, &all);
    struct target whole, single;
    if (target_make(t, &whole, (bsm_matrix){ .format = BSM_NVFP4, .rows = 40, .columns = 100 }, 0.01f)) {
        CHECK(t, bsm_quantize(context, &source.matrix, NULL, &whole.matrix, NULL) == BSM_OK);
        for (int64_t r = 0; r < 40; r++) {
            bsm_real_matrix one = source.matrix;
            one.rows = 1, one.data = (float *)source.matrix.data + r * 100;
            if (!target_make(t, &single, (bsm_matrix){ .format = BSM_NVFP4, .rows = 1, .columns = 100 }, 0.01f)) return;
            CHECK(t, bsm_quantize(context, &one, NULL, &single.matrix, NULL) == BSM_OK);
            CHECK(t, memcmp(single.matrix.data, (unsigned char *)whole.matrix.data + r * 50, 50) == 0);
            CHECK(t, memcmp(single.matrix.scales, (unsigned char *)whole.matrix.scales + r * 7, 7) == 0);
            target_free(&single);
        }
        target_free(&whole);
    }
    strided_free(&source);
    free(all.values);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(every_format_packing_and_layout),
        TEST(every_way_a_source_can_lie),
        TEST(large_shapes),
        TEST(broadcast_sources),
        TEST(every_option),
        TEST(unscaled_destinations),
        TEST(computed_tensor_scales),
        TEST(zeros_with_a_computed_scale),
        TEST(any_number_of_threads),
        TEST(any_mode_of_the_caller),
        TEST(rows_do_not_see_each_other),
    };
    return TEST_MAIN(argc, argv, cases);
}

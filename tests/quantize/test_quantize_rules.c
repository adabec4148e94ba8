/* bsm_quantize and bsm_dequantize: sentences of what is refused, sizes of 0, struct versions, and statistics of a
 * matrix. */
#include "blockscale.h"
#include "format/format.h"
#include "quantize/block/block.h"
#include "test.h"

#include <stdlib.h>

enum { ROWS = 3, COLUMNS = 40, POISON = 0xa5 };

/* A call that is right, for tests to break in one place. */
struct call {
    bsm_context *context;
    float x[ROWS * COLUMNS], back[ROWS * COLUMNS];
    unsigned char data[ROWS * COLUMNS * 4], scales[4096];
    float tensor_scale;
    bsm_real_matrix source, real_destination;
    bsm_matrix destination;
    bsm_quantize_options options;
    bsm_quantize_stats stats;
};

static void call_make(struct call *c, bsm_format format)
{
    memset(c, 0, sizeof *c);
    if (bsm_context_create(NULL, &c->context) != BSM_OK) abort();
    memset(c->data, POISON, sizeof c->data);
    memset(c->scales, POISON, sizeof c->scales);
    memset(c->back, POISON, sizeof c->back);
    for (int i = 0; i < ROWS * COLUMNS; i++) c->x[i] = (float)(i % 13) - 6;
    c->tensor_scale = 2;
    c->source = (bsm_real_matrix){
        .struct_size = sizeof c->source, .rows = ROWS, .columns = COLUMNS, .data = c->x, .row_stride = COLUMNS,
        .column_stride = 1
    };
    c->real_destination = c->source;
    c->real_destination.data = c->back;
    c->destination = (bsm_matrix){ .struct_size = sizeof c->destination,
                                   .format = format,
                                   .rows = ROWS,
                                   .columns = COLUMNS,
                                   .data = c->data,
                                   .tensor_scale = &c->tensor_scale };
    if (bsm_format_get((int)format)->block > 0) c->destination.scales = c->scales;
    c->options.struct_size = sizeof c->options;
    c->stats.struct_size = sizeof c->stats;
}

static void call_free(struct call *c) { bsm_context_destroy(c->context); }

static void expect_start(struct test *t, int line, bsm_status got, const char *start)
{
    if (got != BSM_EINVAL || strncmp(bsm_last_error(), start, strlen(start)) != 0
        || strstr(bsm_last_error(), " overlaps ") == NULL)
        test_fail(t, __FILE__, line, "status %d, \"%s\"", (int)got, bsm_last_error());
}

static bool bytes_are(const void *bytes, size_t count, unsigned char value)
{
    for (size_t i = 0; i < count; i++)
        if (((const unsigned char *)bytes)[i] != value) return false;
    return true;
}

static void expect_sentence(struct test *t, int line, bsm_status got, bsm_status want, const char *sentence)
{
    if (got != want) test_fail(t, __FILE__, line, "status %d, want %d", (int)got, (int)want);
    else if (strcmp(bsm_last_error(), sentence) != 0)
        test_fail(t, __FILE__, line, "the sentence is \"%s\"", bsm_last_error());
}

/* Breaks one thing in a call on `format`: the status, the whole sentence, and nothing written. */
#define REFUSED(format, change, status, sentence) \
    do { \
        struct call c; \
        call_make(&c, format); \
        change; \
        const float tensor_scale = c.tensor_scale; \
        expect_sentence(t, __LINE__, bsm_quantize(c.context, &c.source, &c.options, &c.destination, &c.stats), status, \
                        sentence); \
        CHECK(t, bytes_are(c.data, sizeof c.data, POISON) && bytes_are(c.scales, sizeof c.scales, POISON)); \
        CHECK(t, memcmp(&c.tensor_scale, &tensor_scale, sizeof tensor_scale) == 0 && c.stats.elements == 0); \
        call_free(&c); \
    } while (0)

static void quantize_refuses_by_name(struct test *t)
{
    REFUSED(BSM_NVFP4, (c.source.type = BSM_REAL_FP64, c.options.preset = BSM_PRESET_MODELOPT), BSM_EUNSUPPORTED,
            "source->type=fp64: options->preset=modelopt is for fp32, fp16 and bf16; round to fp32 first");
    REFUSED(BSM_MXFP4, c.source.type = BSM_REAL_COUNT, BSM_EINVAL,
            "source->type=4 is no type of reals: use one of enum bsm_real");
    REFUSED(BSM_MXFP4, c.source.rows = 2, BSM_EINVAL, "source->rows=2, destination->rows=3: the shapes must be equal");
    REFUSED(BSM_MXFP4, c.source.columns = 39, BSM_EINVAL,
            "source->columns=39, destination->columns=40: the shapes must be equal");
    REFUSED(BSM_MXFP4, c.source.batch = 2, BSM_EINVAL,
            "source->batch=2, destination->batch=1: the shapes must be equal");
    REFUSED(BSM_MXFP4, c.source.data = NULL, BSM_EINVAL, "source->data is NULL");
    REFUSED(BSM_MXFP4, c.destination.data = NULL, BSM_EINVAL, "destination->data is NULL");
    REFUSED(BSM_MXFP4, c.destination.pitch = 41, BSM_EALIGN,
            "destination->pitch=41: with packing low_first it must be a multiple of 2 elements, so that a row starts "
            "on a byte");
    REFUSED(BSM_MXFP4, c.options.struct_size = 4, BSM_EINVAL,
            "options->struct_size is 4: set it to the sizeof of the struct");
    REFUSED(BSM_MXFP4, c.options.recipe = BSM_RECIPE_COUNT, BSM_EINVAL, "options->recipe=8: choices are 0 to 7");
    REFUSED(BSM_MXFP4, c.options.rounding = (bsm_rounding)2, BSM_EINVAL, "options->rounding=2: choices are 0 to 1");
    REFUSED(BSM_MXFP4, c.options.nonfinite = (bsm_nonfinite)-1, BSM_EINVAL,
            "options->nonfinite=-1: choices are 0 to 1");
    REFUSED(BSM_MXFP4, c.options.tensor_scale = (bsm_tensor_scale_source)2, BSM_EINVAL,
            "options->tensor_scale=2: choices are 0 to 1");
    REFUSED(BSM_MXFP4, c.options.recipe = BSM_RECIPE_NEAREST, BSM_EINVAL,
            "options->recipe=nearest gives ue4m3 scales, and mxfp4 has e8m0: take floor, rceil, ceil, even, mse");
    REFUSED(BSM_NVFP4, c.options.recipe = BSM_RECIPE_RCEIL, BSM_EINVAL,
            "options->recipe=rceil gives e8m0 scales, and nvfp4 has ue4m3: take nearest, four_over_six");
    REFUSED(BSM_FORMAT_E4M3, c.options.recipe = BSM_RECIPE_FLOOR, BSM_EINVAL,
            "options->recipe=floor: e4m3 has no block scales; leave the recipe at default");
    REFUSED(BSM_NVFP4, c.options.no_saturate = true, BSM_EINVAL,
            "options->no_saturate is for e4m3 and e5m2 without scales, not for nvfp4: block formats always saturate, "
            "and 16- and 32-bit "
            "floats never do");
    REFUSED(
        BSM_FORMAT_FP16, c.options.no_saturate = true, BSM_EINVAL,
        "options->no_saturate is for e4m3 and e5m2 without scales, not for fp16: block formats always saturate, and "
        "16- and 32-bit floats never do");
    REFUSED(BSM_NVFP4, (c.options.tensor_scale = BSM_TENSOR_SCALE_COMPUTED, c.destination.tensor_scale = NULL),
            BSM_EINVAL, "destination->tensor_scale is NULL: options->tensor_scale=COMPUTED writes the scale there");
    static const struct { bsm_format format; const char *name; } refusing[] = {
        { BSM_MXFP8_E4M3, "mxfp8_e4m3" }, { BSM_MXFP4, "mxfp4" }, { BSM_MXINT8, "mxint8" },
        { BSM_FORMAT_BF16, "bf16" }, { BSM_FORMAT_FP16, "fp16" }, { BSM_FORMAT_FP32, "fp32" } };
    for (int i = 0; i < 6; i++) {
        char sentence[256];
        snprintf(sentence, sizeof sentence,
                 "options->tensor_scale=COMPUTED: %s has the range of fp32 or 16-bit numbers and takes a GIVEN "
                 "tensor scale alone; nvfp4 and unscaled fp8, fp6 and fp4 compute one",
                 refusing[i].name);
        REFUSED(refusing[i].format, c.options.tensor_scale = BSM_TENSOR_SCALE_COMPUTED, BSM_EINVAL, sentence);
    }
    REFUSED(BSM_NVFP4, c.tensor_scale = 0, BSM_EINVAL,
            "*destination->tensor_scale=0: a tensor scale is finite and > 0");
    REFUSED(BSM_NVFP4, c.tensor_scale = -1, BSM_EINVAL,
            "*destination->tensor_scale=-1: a tensor scale is finite and > 0");
    REFUSED(BSM_NVFP4, c.tensor_scale = INFINITY, BSM_EINVAL,
            "*destination->tensor_scale=inf: a tensor scale is finite and > 0");
    REFUSED(BSM_NVFP4, c.stats.struct_size = 0, BSM_EINVAL,
            "stats->struct_size is 0: set it to the sizeof of the struct");
    struct call c;
    call_make(&c, BSM_MXFP4);
    expect_sentence(t, __LINE__, bsm_quantize(NULL, &c.source, NULL, &c.destination, NULL), BSM_EINVAL,
                    "context is NULL");
    expect_sentence(t, __LINE__, bsm_quantize(c.context, NULL, NULL, &c.destination, NULL), BSM_EINVAL,
                    "source is NULL");
    expect_sentence(t, __LINE__, bsm_quantize(c.context, &c.source, NULL, NULL, NULL), BSM_EINVAL,
                    "destination is NULL");
    call_free(&c);
}

#define DEQUANTIZE_REFUSED(change, status, sentence) \
    do { \
        struct call c; \
        call_make(&c, BSM_NVFP4); \
        change; \
        expect_sentence(t, __LINE__, bsm_dequantize(c.context, &c.destination, &c.real_destination), status, \
                        sentence); \
        CHECK(t, bytes_are(c.back, sizeof c.back, POISON)); \
        call_free(&c); \
    } while (0)

static void dequantize_refuses_by_name(struct test *t)
{
    DEQUANTIZE_REFUSED(c.real_destination.rows = 4, BSM_EINVAL,
                       "source->rows=3, destination->rows=4: the shapes must be equal");
    DEQUANTIZE_REFUSED(c.real_destination.row_stride = 0, BSM_EINVAL,
                       "destination->row_stride: elements that are written would lie on one another; "
                       "let each dimension step over those within it");
    DEQUANTIZE_REFUSED(c.real_destination.column_stride = 0, BSM_EINVAL,
                       "destination->column_stride: elements that are written would lie on one another; "
                       "let each dimension step over those within it");
    DEQUANTIZE_REFUSED((c.real_destination.batch = 2, c.destination.batch = 2), BSM_EINVAL,
                       "destination->batch_stride: elements that are written would lie on one another; "
                       "let each dimension step over those within it");
    DEQUANTIZE_REFUSED(c.tensor_scale = NAN, BSM_EINVAL, "*source->tensor_scale=nan: a tensor scale is finite and > 0");
    DEQUANTIZE_REFUSED(c.destination.scales = NULL, BSM_EINVAL,
                       "source->scales is NULL, but nvfp4 has a scale per 16 elements");
    DEQUANTIZE_REFUSED(c.real_destination.type = (bsm_real)9, BSM_EINVAL,
                       "destination->type=9 is no type of reals: use one of enum bsm_real");
    struct call c;
    call_make(&c, BSM_MXFP4);
    expect_sentence(t, __LINE__, bsm_dequantize(NULL, &c.destination, &c.real_destination), BSM_EINVAL,
                    "context is NULL");
    call_free(&c);
}

static void sizes_of_zero(struct test *t)
{
    for (int format = BSM_MXFP8_E4M3; format < BSM_FORMAT_COUNT; format++)
        for (int kind = 0; kind < 8; kind++) {
            struct call c;
            call_make(&c, (bsm_format)format);
            if (kind % 4 == 0) c.source.rows = c.destination.rows = c.real_destination.rows = 0;
            if (kind % 4 == 1) c.source.columns = c.destination.columns = c.real_destination.columns = 0;
            if (kind % 4 == 2)
                c.source.columns = c.destination.columns = c.real_destination.columns = c.source.rows =
                    c.destination.rows = c.real_destination.rows = 0;
            if (kind % 4 == 3) {         /* huge, and nothing */
                c.source.rows = c.destination.rows = c.real_destination.rows = (int64_t)1 << 62;
                c.source.columns = c.destination.columns = c.real_destination.columns = 0;
                c.source.batch = c.destination.batch = c.real_destination.batch = (int64_t)1 << 61;
            }
            if (kind >= 4) c.source.data = c.real_destination.data = c.destination.data = c.destination.scales = NULL;
            const bool plain = bsm_format_get(format)->block == 0 && bsm_format_get(format)->bits_per_element <= 8;
            const bool computed = format == BSM_NVFP4 || plain;
            if (computed) c.options.tensor_scale = BSM_TENSOR_SCALE_COMPUTED;
            if (bsm_quantize(c.context, &c.source, &c.options, &c.destination, &c.stats) != BSM_OK)
                FAIL(t, "%s", bsm_last_error());
            CHECK(t, c.tensor_scale == (computed ? 1 : 2));
            CHECK(t, c.stats.elements == 0 && c.stats.blocks == 0 && isinf(c.stats.snr_db) && c.stats.amax == 0);
            if (bsm_dequantize(c.context, &c.destination, &c.real_destination) != BSM_OK)
                FAIL(t, "%s", bsm_last_error());
            CHECK(t, bytes_are(c.data, sizeof c.data, POISON) && bytes_are(c.scales, sizeof c.scales, POISON));
            CHECK(t, bytes_are(c.back, sizeof c.back, POISON));
            call_free(&c);
        }
}

/* Exactly what overlaps is refused; what lies between the rows of the other is not. */
static void sources_that_overlap_destinations(struct test *t)
{
    struct call c;
    call_make(&c, BSM_MXFP4);
    static float buffer[2 * ROWS * COLUMNS];
    c.source.data = c.real_destination.data = buffer;
    c.destination.data = buffer;
    expect_start(t, __LINE__, bsm_quantize(c.context, &c.source, NULL, &c.destination, NULL), "destination->data=");
    expect_start(t, __LINE__, bsm_dequantize(c.context, &c.destination, &c.real_destination), "destination->data=");
    c.destination.data = c.data, c.destination.scales = buffer + ROWS * COLUMNS - 1;
    expect_start(t, __LINE__, bsm_quantize(c.context, &c.source, NULL, &c.destination, NULL), "destination->scales=");
    c.destination.scales = buffer + ROWS * COLUMNS;
    CHECK(t, bsm_quantize(c.context, &c.source, NULL, &c.destination, NULL) == BSM_OK);
    c.destination.scales = c.data;
    expect_start(t, __LINE__, bsm_quantize(c.context, &c.source, NULL, &c.destination, NULL), "destination->scales=");
    c.destination.scales = c.scales;
    /* codes between the rows of the source, upwards and downwards */
    c.source.row_stride = 2 * COLUMNS;
    c.destination.data = buffer + COLUMNS;
    c.destination.pitch = 16 * COLUMNS;
    CHECK(t, bsm_quantize(c.context, &c.source, NULL, &c.destination, NULL) == BSM_OK);
    c.source.data = buffer + 4 * COLUMNS, c.source.row_stride = -2 * COLUMNS;
    CHECK(t, bsm_quantize(c.context, &c.source, NULL, &c.destination, NULL) == BSM_OK);
    c.destination.data = buffer + COLUMNS - 1;
    expect_start(t, __LINE__, bsm_quantize(c.context, &c.source, NULL, &c.destination, NULL), "destination->data=");
    call_free(&c);
}

/* A caller compiled with an older header gives shorter structs; fields it does not know have their defaults. */
static void shorter_and_longer_structs(struct test *t)
{
    struct call c;
    call_make(&c, BSM_MXFP4);
    c.options.recipe = BSM_RECIPE_FLOOR;
    c.options.rounding = BSM_ROUND_STOCHASTIC;            /* beyond the shorter struct: not seen */
    c.options.struct_size = offsetof(bsm_quantize_options, rounding);
    c.stats.struct_size = offsetof(bsm_quantize_stats, saturated_elements);
    c.stats.saturated_elements = -77;
    unsigned char nearest[sizeof c.data];
    CHECK(t, bsm_quantize(c.context, &c.source, &c.options, &c.destination, &c.stats) == BSM_OK);
    CHECK(t, c.stats.elements == ROWS * COLUMNS && c.stats.blocks == ROWS * 2 && c.stats.saturated_elements == -77);
    CHECK(t, c.stats.struct_size == offsetof(bsm_quantize_stats, saturated_elements));
    memcpy(nearest, c.data, sizeof nearest);
    bsm_quantize_options plain = { .struct_size = sizeof plain, .recipe = BSM_RECIPE_FLOOR };
    CHECK(t, bsm_quantize(c.context, &c.source, &plain, &c.destination, NULL) == BSM_OK);
    CHECK(t, memcmp(nearest, c.data, sizeof nearest) == 0);

    struct { bsm_quantize_stats known; int64_t later[2], behind; } longer = { .later = { 5, 5 }, .behind = 6 };
    longer.known.struct_size = sizeof longer.known + sizeof longer.later;
    CHECK(t, bsm_quantize(c.context, &c.source, &plain, &c.destination, &longer.known) == BSM_OK);
    CHECK(t, longer.known.blocks == ROWS * 2 && longer.later[0] == 0 && longer.later[1] == 0 && longer.behind == 6);

    struct { bsm_quantize_options known; int64_t later; } options = { .known = plain, .later = 1 };
    options.known.struct_size = sizeof options;
    CHECK(t, bsm_quantize(c.context, &c.source, &options.known, &c.destination, NULL) == BSM_EINVAL);
    options.later = 0;
    CHECK(t, bsm_quantize(c.context, &c.source, &options.known, &c.destination, NULL) == BSM_OK);
    call_free(&c);
}

/* The statistics of a matrix are those of its blocks. */
static void statistics_are_those_of_the_blocks(struct test *t)
{
    enum { R = 37, C = 1000 };
    static float x[R * C];
    static unsigned char data[R * C], scales[R * C];
    struct call c;
    call_make(&c, BSM_NVFP4);
    for (int i = 0; i < R * C; i++) x[i] = (float)rnd_normal(t) * (i % C / 16 % 50 == 7 ? 1e-6f : 1);
    for (int i = 0; i < 20; i++) x[rnd_below(t, R * C)] = i % 2 ? NAN : -INFINITY;
    c.source = (bsm_real_matrix){
        .struct_size = sizeof c.source, .rows = R, .columns = C, .data = x, .row_stride = C, .column_stride = 1
    };
    for (int format = BSM_MXFP8_E4M3; format <= BSM_NVFP4; format++)
        for (int policy = 0; policy < 2; policy++) {
            c.destination = (bsm_matrix){ .struct_size = sizeof c.destination,
                                          .format = (bsm_format)format,
                                          .rows = R,
                                          .columns = C,
                                          .data = data,
                                          .scales = scales };
            c.options.nonfinite = (bsm_nonfinite)policy;
            c.options.recipe = format == BSM_NVFP4 ? BSM_RECIPE_NEAREST : BSM_RECIPE_FLOOR;
            CHECK(t, bsm_quantize(c.context, &c.source, &c.options, &c.destination, &c.stats) == BSM_OK);
            struct bsmi_block_quantizer quantizer;
            struct bsmi_block_stats sum = { 0 };
            CHECK(t, bsmi_block_quantizer_make("r", (bsm_format)format, c.options.recipe, BSM_ROUND_NEAREST_EVEN, 0,
                                               (bsm_nonfinite)policy, 1, BSM_TENSOR_SCALE_MULTIPLIES, &quantizer)
                         == BSM_OK);
            const int block = bsm_format_get(format)->block;
            uint8_t codes[32];
            for (int r = 0; r < R; r++)
                for (int k = 0; k < C; k += block)
                    bsmi_quantize_block(&quantizer, x + r * C + k, C - k < block ? C - k : block, 0, codes, &sum);
            CHECK(t, c.stats.elements == R * C && c.stats.blocks == R * ((C + block - 1) / block)
                         && c.stats.blocks == sum.blocks);
            CHECK(t,
                  c.stats.saturated_elements == sum.saturated_elements && c.stats.flushed_blocks == sum.flushed_blocks);
            CHECK(t, c.stats.nan_blocks == sum.nan_blocks && (policy == 0) == (c.stats.nan_blocks > 0));
            CHECK(t, memcmp(c.stats.scale_histogram, sum.scale_histogram, sizeof sum.scale_histogram) == 0);
            CHECK(t, c.stats.amax == sum.amax);
            CHECK(t, fabs(c.stats.signal - sum.signal) <= 1e-12 * sum.signal
                         && fabs(c.stats.noise - sum.noise) <= 1e-12 * sum.noise);
            CHECK(t, fabs(c.stats.snr_db - 10 * log10(sum.signal / sum.noise)) <= 1e-9);
            if (format == BSM_NVFP4) CHECK(t, c.stats.flushed_blocks > 30);
            if (format == BSM_MXFP4) CHECK(t, c.stats.saturated_elements > 0);
        }
    call_free(&c);
}

static void statistics_of_unscaled_destinations(struct test *t)
{
    struct call c;
    call_make(&c, BSM_FORMAT_E4M3);
    for (int i = 0; i < ROWS * COLUMNS; i++) c.x[i] = (float)i;
    c.x[5] = NAN, c.x[6] = INFINITY, c.x[7] = 2000, c.x[8] = 899, c.x[9] = -930;      /* under 2: 1000 and 449.5, 465 */
    for (int no_saturate = 0; no_saturate < 2; no_saturate++) {
        c.options.no_saturate = no_saturate;
        CHECK(t, bsm_quantize(c.context, &c.source, &c.options, &c.destination, &c.stats) == BSM_OK);
        CHECK(t, c.stats.elements == ROWS * COLUMNS && c.stats.blocks == 0 && c.stats.nan_blocks == 0
                     && c.stats.flushed_blocks == 0);
        CHECK(t, c.stats.saturated_elements == (no_saturate ? 1 : 3));
        CHECK(t, c.stats.amax == 2000);
        CHECK(t, bytes_are(c.stats.scale_histogram, sizeof c.stats.scale_histogram, 0));
        double signal = 0, noise = 0;
        CHECK(t, bsm_dequantize(c.context, &c.destination, &c.real_destination) == BSM_OK);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            if (!isfinite(c.x[i]) || !isfinite(c.back[i])) continue;
            signal += (double)c.x[i] * (double)c.x[i];
            noise += ((double)c.x[i] - (double)c.back[i]) * ((double)c.x[i] - (double)c.back[i]);
        }
        CHECK(t, fabs(c.stats.signal - signal) <= 1e-12 * signal && fabs(c.stats.noise - noise) <= 1e-12 * noise
                     && noise > 0);
    }
    call_free(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(quantize_refuses_by_name),
        TEST(dequantize_refuses_by_name),
        TEST(sizes_of_zero),
        TEST(sources_that_overlap_destinations),
        TEST(shorter_and_longer_structs),
        TEST(statistics_are_those_of_the_blocks),
        TEST(statistics_of_unscaled_destinations),
    };
    return TEST_MAIN(argc, argv, cases);
}

/* bsm_dequantize: every code under every scale, against exact fractions; every source; and the way there and back. */
#include "blockscale.h"
#include "matrices.h"
#include "matrix/rows.h"
#include "oracle_block.h"

#include "../format/fp_mode.h"
#include "../format/oracle.h"

#include <float.h>
#include <stdlib.h>

static bsm_context *context_with(int threads)
{
    const bsm_context_options options = { .struct_size = sizeof options, .threads = threads };
    bsm_context *context = NULL;
    if (bsm_context_create(&options, &context) != BSM_OK) abort();
    return context;
}

static const bsm_element elements_of_reals[] = {
    [BSM_REAL_FP32] = BSM_FP32, [BSM_REAL_FP16] = BSM_FP16, [BSM_REAL_BF16] = BSM_BF16
};
static const uint32_t canonical_nan[] = {
    [BSM_REAL_FP32] = 0x7fc00000, [BSM_REAL_FP16] = 0x7e00, [BSM_REAL_BF16] = 0x7fc0
};

/* Whether the double is the one nearest to numerator / denominator, a tie being even. */
static bool is_nearest_double(double value, struct exact numerator, struct exact denominator)
{
    if (value == 0) return numerator.n == 0;
    const double above = (nextafter(value, (double)INFINITY) - value) / 2, below = (value - nextafter(value, 0)) / 2;
    /* Midpoints have 54 bits: value is shifted by one before half a step is added, in integers. */
    struct exact up = exact_of(value), step = exact_of(above), down = up, back = exact_of(below);
    up = (struct exact){ (up.n << (up.e - step.e)) + 1, step.e };
    down = (struct exact){ (down.n << (down.e - back.e)) - 1, back.e };
    const int side_up = exact_compare(numerator, exact_times(exact_normal(up.n, up.e), denominator));
    const int side_down = exact_compare(numerator, exact_times(exact_normal(down.n, down.e), denominator));
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits % 2 == 0 ? side_up <= 0 && side_down >= 0 : side_up < 0 && side_down > 0;
}

/* What lies at data[index] must be element * scale, * or / tensor scale, rounded once. */
static void check_number(struct test *t, bsm_real type, const void *data, int64_t index, double element, double scale,
                         float tensor_scale, bool divides)
{
    if (type == BSM_REAL_FP64) {
        const double got = ((const double *)data)[index];
        uint64_t bits;
        memcpy(&bits, &got, sizeof bits);
        if (isnan(element) || isnan(scale)) CHECK(t, bits == (uint64_t)0x7ff8 << 48);
        else if (isinf(element)) CHECK(t, got == (scale == 0 ? (double)NAN : element));
        else {
            struct exact above, below;
            oracle_value(element, scale, tensor_scale, divides, &above, &below);
            CHECK(t, (signbit(got) != 0) == (signbit(element) != 0));
            if (!is_nearest_double(fabs(got), above, below))
                FAIL(t, "%a * %a by %a became %a", element, scale, (double)tensor_scale, got);
        }
        return;
    }
    const uint32_t got = type == BSM_REAL_FP32 ? ((const uint32_t *)data)[index] : ((const uint16_t *)data)[index];
    uint32_t want;
    if (isnan(element) || isnan(scale)) want = canonical_nan[type];
    else if (isinf(element)) want = oracle_encode(elements_of_reals[type], element, false);
    else {
        struct exact above, below;
        oracle_value(element, scale, tensor_scale, divides, &above, &below);
        want = oracle_round(elements_of_reals[type], signbit(element) != 0, above, below, false);
    }
    if (got != want)
        FAIL(t, "%a * %a %s %a as %s: 0x%x, want 0x%x", element, scale, divides ? "/" : "*", (double)tensor_scale,
             bsm_real_name((int)type), got, want);
}

static const float tensor_scales[] = { 1, 3, 0.1f, 0x1.fffffep-127f, 0x1p-149f, 0x1.8p127f, 0x1.000002p0f, 7e-4f };
enum { TENSOR_SCALES = 8 };

/* Row s has scale code s in every block and holds every code. */
static void check_all_codes(struct test *t, bsm_context *context, bsm_format format, bsm_real type, float tensor_scale,
                            bool divides, int scale_step)
{
    const bsm_format_info *info = bsm_format_get((int)format);
    const int codes = 1 << bsm_element_get((int)info->element)->bits,
              columns = codes < info->block ? info->block : codes;
    static unsigned char data[256 * 256], scales[256 * 16];
    static double results[256 * 256];
    for (int s = 0; s < 256; s++) {
        memset(scales + s * (columns / info->block), s, (size_t)(columns / info->block));
        /* bits above the width are ignored */
        for (int c = 0; c < columns; c++) data[s * columns + c] = (unsigned char)c;
    }
    const bsm_matrix m = { .struct_size = sizeof m,
                           .format = format,
                           .packing = codes == 256 ? BSM_PACKING_DEFAULT : BSM_PACKING_BYTES,
                           .rows = 256,
                           .columns = columns,
                           .data = data,
                           .scales = scales,
                           .tensor_scale = &tensor_scale,
                           .tensor_scale_use = divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES };
    const bsm_real_matrix to = { .struct_size = sizeof to,
                                 .type = type,
                                 .rows = 256,
                                 .columns = columns,
                                 .data = results,
                                 .row_stride = columns,
                                 .column_stride = 1 };
    if (bsm_dequantize(context, &m, &to) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    for (int s = 0; s < 256; s += scale_step) {
        const double scale = info->scale == BSM_UE4M3 ? oracle_decode(BSM_E4M3, (uint32_t)s & 0x7f)
                             : s == 255               ? (double)NAN
                                                      : ldexp(1, s - 127);
        for (int c = 0; c < columns; c++)
            check_number(t, type, results, s * columns + c, oracle_decode(info->element, (uint32_t)c), scale,
                         tensor_scale, divides);
    }
}

static void every_code_under_every_scale(struct test *t)
{
    bsm_context *context = context_with(1);
    for (int format = BSM_MXFP8_E4M3; format <= BSM_NVFP4; format++) {
        for (int type = 0; type < BSM_REAL_COUNT; type++) {
            const int step = format <= BSM_MXFP8_E5M2 && type != BSM_REAL_FP32 ? 5 : 1;
            check_all_codes(t, context, (bsm_format)format, (bsm_real)type, 1, false, step);
            for (int s = 1; s < TENSOR_SCALES; s++)
                for (int divides = 0; divides < 2; divides++)
                    check_all_codes(t, context, (bsm_format)format, (bsm_real)type, tensor_scales[s], divides,
                                    format == BSM_NVFP4 ? 11 : 85);
        }
    }
    bsm_context_destroy(context);
}

/* Unscaled codes over random tensor scales; fp16 and bf16 must not be rounded through fp32. */
static void unscaled_sources(struct test *t)
{
    bsm_context *context = context_with(1);
    enum { COUNT = 2000 };
    static uint32_t codes[COUNT];
    static double results[COUNT];
    int traps = 0;
    for (int format = BSM_FORMAT_E4M3; format < BSM_FORMAT_COUNT; format++)
        for (int type = 0; type < BSM_REAL_COUNT; type++)
            for (int i = 0; i < 4; i++) {
                const bsm_element element = bsm_format_get(format)->element;
                const int bits = bsm_element_get((int)element)->bits;
                const float tensor_scale = i == 0 ? 1 : (float)rnd_between(t, 1, 4095) * (i == 1 ? 0x1p-9f : 0x1p-13f);
                for (int j = 0; j < COUNT; j++) {
                    uint32_t code = (uint32_t)rnd(t);
                    if (j % 2 == 0) code = bsm_element_encode(element, rnd_normal(t), BSM_ROUND_NEAREST_EVEN, true, 0);
                    if (bits == 32 && i > 0 && j % 5 == 0 && type != BSM_REAL_FP32 && type != BSM_REAL_FP64) {
                        /* The fp32 number whose value comes nearest to a midpoint of the destination. */
                        const uint32_t low = (uint32_t)rnd_between(t, 0x3000, 0x4000);
                        const double middle = (oracle_decode(elements_of_reals[type], low)
                                               + oracle_decode(elements_of_reals[type], low + 1))
                                              / 2;
                        code = bsmi_float_bits(
                            (float)(i % 2 != 0 ? middle * (double)tensor_scale : middle / (double)tensor_scale));
                    }
                    if (bits == 32) codes[j] = code;
                    else if (bits == 16) ((uint16_t *)codes)[j] = (uint16_t)code;
                    else ((uint8_t *)codes)[j] = (uint8_t)code;
                }
                float t_scale = tensor_scale;
                const bool divides = i % 2 != 0;
                const bsm_matrix m = { .struct_size = sizeof m,
                                       .format = (bsm_format)format,
                                       .rows = 1,
                                       .columns = COUNT,
                                       .data = codes,
                                       .packing = bits < 8 ? BSM_PACKING_BYTES : BSM_PACKING_DEFAULT,
                                       .tensor_scale = i == 0 ? NULL : &t_scale,
                                       .tensor_scale_use = (bsm_tensor_scale_use)divides };
                const bsm_real_matrix to = { .struct_size = sizeof to,
                                             .type = (bsm_real)type,
                                             .rows = 1,
                                             .columns = COUNT,
                                             .data = results,
                                             .column_stride = 1 };
                if (bsm_dequantize(context, &m, &to) != BSM_OK) FAIL(t, "%s", bsm_last_error());
                for (int j = 0; j < COUNT; j++) {
                    const uint32_t code = bits == 32   ? codes[j]
                                          : bits == 16 ? ((uint16_t *)codes)[j]
                                                       : ((uint8_t *)codes)[j];
                    const double value = oracle_decode(element, code);
                    check_number(t, (bsm_real)type, results, j, value, 1, tensor_scale, divides);
                    if (!isfinite(value) || type == BSM_REAL_FP64 || type == BSM_REAL_FP32) continue;
                    const double exact = divides ? value / (double)tensor_scale : value * (double)tensor_scale;
                    traps += oracle_encode(elements_of_reals[type], exact, false) !=
                             oracle_encode(elements_of_reals[type], (double)(float)exact, false);
                }
            }
    CHECK(t, traps > 100);                 /* numbers that the way through fp32 gets wrong were among them */
    bsm_context_destroy(context);
}

/* The double-rounding trap, by construction: just above a midpoint of bf16, and of fp16. */
static void never_through_fp32(struct test *t)
{
    bsm_context *context = context_with(1);
    const float code = 0x1.010004p0f;                     /* times 0x1.fffff8p-1: 1.01 hex and a bit beyond fp32 */
    float tensor_scale = 0x1.fffffap-1f;
    const bsm_matrix m = { .struct_size = sizeof m,
                           .format = BSM_FORMAT_FP32,
                           .rows = 1,
                           .columns = 1,
                           .data = (void *)(uintptr_t)&code,
                           .tensor_scale = &tensor_scale };
    const double exact = (double)code * (double)tensor_scale;
    CHECK(t, exact > 0x1.01p0 && (double)(float)exact >= 0x1.01p0);
    uint16_t bf16 = 0;
    const bsm_real_matrix to = { .struct_size = sizeof to, .type = BSM_REAL_BF16, .rows = 1, .columns = 1,
                                 .data = &bf16 };
    CHECK(t, bsm_dequantize(context, &m, &to) == BSM_OK && bf16 == 0x3f81);
    tensor_scale = 0x1.fffff4p-1f;        /* and just below it */
    CHECK(t, (double)code * (double)tensor_scale < 0x1.01p0);
    CHECK(t, bsm_dequantize(context, &m, &to) == BSM_OK && bf16 == 0x3f80);
    bsm_context_destroy(context);
}

/* The same trap in NVFP4: tensor scales that bring one of its numbers so near to a midpoint of 16 bits that fp32 does
 * not tell them apart; of bf16's subnormal numbers, too, where what is left of a product is below fp32's least. */
static void never_through_fp32_in_blocks(struct test *t)
{
    bsm_context *context = context_with(1);
    int traps = 0;
    for (int repeat = 0; repeat < 4000; repeat++) {
        const bsm_real type = repeat % 2 == 0 ? BSM_REAL_BF16 : BSM_REAL_FP16;
        const bool divides = repeat % 4 < 2;
        const bool subnormal = repeat % 4 == 2;
        unsigned char codes[16], scale = (unsigned char)rnd_between(t, 1, subnormal ? 8 : 126);
        for (int i = 0; i < 16; i++) codes[i] = (unsigned char)i;
        const uint32_t code = (uint32_t)rnd_between(t, 1, 7);
        const double unit = oracle_decode(BSM_E4M3, scale), number = unit * oracle_decode(BSM_E2M1, code);
        const int bits = type == BSM_REAL_BF16 ? 8 : 11;
        const double of_normal = ldexp((double)rnd_between(t, 1 << (bits - 1), (1 << bits) - 1) + 0.5,
                                       (int)rnd_between(t, -12, 3) - bits),
                     midpoint = subnormal ? ldexp((double)rnd_between(t, 1, 127) + 0.5, -133) : of_normal;
        float tensor_scale = (float)(divides ? number / midpoint : midpoint / number);
        const double near = divides ? number / (double)tensor_scale : number * (double)tensor_scale;
        traps += (double)(float)near == midpoint && near != midpoint;
        uint16_t values[16];
        const bsm_matrix m = { .struct_size = sizeof m,
                               .format = BSM_NVFP4,
                               .packing = BSM_PACKING_BYTES,
                               .rows = 1,
                               .columns = 16,
                               .data = codes,
                               .scales = &scale,
                               .tensor_scale = &tensor_scale,
                               .tensor_scale_use = divides ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES };
        const bsm_real_matrix to = { .struct_size = sizeof to, .type = type, .rows = 1, .columns = 16, .data = values,
                                     .row_stride = 16, .column_stride = 1 };
        CHECK_OR_RETURN(t, bsm_dequantize(context, &m, &to) == BSM_OK);
        for (int i = 0; i < 16; i++)
            check_number(t, type, values, i, oracle_decode(BSM_E2M1, (uint32_t)i), unit, tensor_scale, divides);
    }
    CHECK(t, traps > 1000);
    bsm_context_destroy(context);
}

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR, .pitch = 40 },
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
    { .kind = BSM_LAYOUT_LINEAR },
};

/* Numbers that the format holds exactly come back as they were, through every packing and layout, into every way a
 * destination can lie; padding that was overwritten with 0xff does not matter. */
static void there_and_back(struct test *t)
{
    bsm_context *context = context_with(2);
    int done = 0;
    for (int format = BSM_MXFP8_E4M3; format < BSM_FORMAT_COUNT; format++)
        for (int packing = 0; packing < BSM_PACKING_COUNT; packing++)
            for (int layout = 0; layout < 12; layout++) {
                const bsm_format_info *info = bsm_format_get(format);
                if (!goes_together((bsm_format)format, (bsm_packing)packing, layouts[layout])
                    || (info->block == 0 && layout > 0))
                    continue;
                struct numbers n = numbers_make(rnd_between(t, 1, 40), rnd_between(t, 1, 140), rnd_between(t, 1, 2));
                for (int64_t i = 0; i < numbers_count(&n); i++) {
                    /* Every block starts with the largest value, so that its scale is 4. */
                    const bool first = info->block > 0 && i % n.columns % info->block == 0;
                    const uint32_t code = first ? bsm_element_get((int)info->element)->max_code : (uint32_t)rnd(t);
                    n.values[i] = 4 * bsm_element_decode(info->element, code);
                    if (!isfinite(n.values[i]) || (info->element == BSM_INT8 && (code & 0xff) == 0x80))
                        n.values[i] = info->element == BSM_INT8 ? 0 : -0.0f;
                    if (info->block == 0) n.values[i] = isfinite(n.values[i] / 4) ? n.values[i] / 4 : 0;
                }
                struct numbers kept = numbers_make(n.rows, n.columns, n.batch);
                memcpy(kept.values, n.values, (size_t)numbers_count(&n) * sizeof(float));
                struct target target;
                const bsm_matrix m = { .format = (bsm_format)format,
                                       .packing = (bsm_packing)packing,
                                       .scale_layout = layouts[layout],
                                       .rows = n.rows,
                                       .columns = n.columns,
                                       .batch = n.batch };
                if (!target_make(t, &target, m, 0)) return;
                struct strided source = strided_make(BSM_REAL_FP32, LIE_TIGHT, &n);
                for (int64_t i = 0; i < numbers_count(&n); i++) n.values[i] = 12345;
                struct strided back = strided_make(BSM_REAL_FP32, (enum lie)(done % LIE_COUNT), &n);
                CHECK(t, bsm_quantize(context, &source.matrix, NULL, &target.matrix, NULL) == BSM_OK);
                CHECK(t, bsm_dequantize(context, &target.matrix, &back.matrix) == BSM_OK);
                for (int64_t b = 0, i = 0; b < n.batch; b++)
                    for (int64_t r = 0; r < n.rows; r++)
                        for (int64_t c = 0; c < n.columns; c++, i++) {
                            const float got = (float)strided_get(&back, b, r, c), want = kept.values[i];
                            const bool int8_zero = info->element == BSM_INT8 && want == 0 && got == 0;
                            if (bsmi_float_bits(got) != bsmi_float_bits(want) && !int8_zero)
                                FAIL(t, "%s packing %d layout %d: %a came back as %a", info->name, packing, layout,
                                     (double)want, (double)got);
                        }
                CHECK(t, strided_rest_is_poison(&back));
                strided_free(&back);
                strided_free(&source);
                target_free(&target);
                free(kept.values);
                free(n.values);
                done++;
            }
    CHECK(t, done > 150);
    bsm_context_destroy(context);
}

/* The very bits, of NaN too. */
static bool is_float(const struct strided *s, int64_t batch, int64_t row, int64_t column, float want)
{
    const bsm_real_matrix *m = &s->matrix;
    const float *numbers = m->data;
    const float *at = numbers + batch * m->batch_stride + row * m->row_stride + column * m->column_stride;
    return bsmi_float_bits(*at) == bsmi_float_bits(want);
}

/* Any codes under any scales, a different one for each block, in shapes that are cut into several pieces and tasks. */
static void every_block_has_its_own_scale(struct test *t)
{
    static const struct {
        int64_t rows, columns, batch;
    } shapes[] = { { 3, 8700, 1 }, { 37, 300, 2 }, { 1, 17, 1 }, { 1, 17, 1025 } };
    bsm_context *context = context_with(2);
    for (int format = BSM_MXFP8_E4M3; format <= BSM_NVFP4; format++)
        for (int s = 0; s < 4; s++) {
            const bsm_matrix m = { .format = (bsm_format)format,
                                   .scale_layout = layouts[1 + (format + s) % 8],
                                   .rows = shapes[s].rows,
                                   .columns = shapes[s].columns,
                                   .batch = shapes[s].batch };
            struct target source;
            struct bsmi_matrix resolved;
            if (!target_make(t, &source, m, 0)) return;
            for (int64_t i = 0; i < source.data_bytes; i++)
                ((unsigned char *)source.matrix.data)[i] = (unsigned char)rnd(t);
            for (int64_t i = 0; i < source.scale_bytes; i++)
                ((unsigned char *)source.matrix.scales)[i] = (unsigned char)rnd(t);
            CHECK_OR_RETURN(t, bsmi_matrix_resolve("source", &source.matrix, &resolved) == BSM_OK);
            struct numbers n = numbers_make(m.rows, m.columns, m.batch);
            struct strided back = strided_make(BSM_REAL_FP32, LIE_TRANSPOSED, &n),
                           rows = strided_make(BSM_REAL_FP32, LIE_PADDED, &n);
            CHECK(t, bsm_dequantize(context, &source.matrix, &back.matrix) == BSM_OK);
            CHECK(t, bsm_dequantize(context, &source.matrix, &rows.matrix) == BSM_OK);
            const bsm_format_info *info = bsm_format_get(format);
            for (int64_t b = 0; b < n.batch; b++)
                for (int64_t r = 0; r < n.rows; r++)
                    for (int64_t c = 0; c < n.columns; c++) {
                        uint8_t code;
                        bsmi_row_codes(&resolved, b, r, c, 1, &code);
                        const uint8_t scale_code = *bsmi_scale_pointer(&resolved, b, r, c / info->block);
                        const double element = oracle_decode(info->element, code);
                        const double scale = info->scale == BSM_UE4M3
                                                 ? oracle_decode(BSM_E4M3, scale_code & 0x7f)
                                                 : (scale_code == 255 ? (double)NAN : ldexp(1, scale_code - 127));
                        const float product = (float)(element * scale),
                                    want = isnan(product) ? bsmi_float_from_bits(0x7fc00000) : product;
                        if (!is_float(&back, b, r, c, want) || !is_float(&rows, b, r, c, want))
                            FAIL(t, "%s row %" PRId64 " column %" PRId64 ": %a and %a, want %a", info->name, r, c,
                                 strided_get(&back, b, r, c), strided_get(&rows, b, r, c), (double)want);
                    }
            strided_free(&back), strided_free(&rows);
            target_free(&source);
            free(n.values);
        }
    bsm_context_destroy(context);
}

/* Rewrites everything that is padding with 0xff: the numbers stay. */
static void padding_is_not_read(struct test *t)
{
    bsm_context *context = context_with(1);
    for (int layout = 1; layout < 9; layout++) {
        struct numbers n = numbers_make(35, 83, 1);
        for (int64_t i = 0; i < numbers_count(&n); i++) n.values[i] = (float)rnd_normal(t);
        struct target target;
        if (!target_make(
                t, &target,
                (bsm_matrix){ .format = BSM_NVFP4, .scale_layout = layouts[layout], .rows = 35, .columns = 83,
                              .pitch = 96 }, 0))
            return;
        struct strided source = strided_make(BSM_REAL_FP32, LIE_TIGHT, &n),
                       first = strided_make(BSM_REAL_FP32, LIE_TIGHT, &n),
                       second = strided_make(BSM_REAL_FP32, LIE_TIGHT, &n);
        CHECK(t, bsm_quantize(context, &source.matrix, NULL, &target.matrix, NULL) == BSM_OK);
        CHECK(t, bsm_dequantize(context, &target.matrix, &first.matrix) == BSM_OK);
        unsigned char *scales = target.matrix.scales, *data = target.matrix.data;
        unsigned char *kept = malloc((size_t)target.scale_bytes);
        if (kept == NULL) abort();
        memset(kept, 0xff, (size_t)target.scale_bytes);
        for (int64_t r = 0; r < 35; r++)
            for (int64_t s = 0; s < 6; s++) {
                int64_t offset;
                CHECK(t, bsm_scale_offset(&layouts[layout], 35, 6, r, s, &offset) == BSM_OK);
                kept[offset] = scales[offset];
            }
        memcpy(scales, kept, (size_t)target.scale_bytes);
        for (int64_t r = 0; r < 35; r++) {
            data[r * 48 + 41] |= 0xf0;
            if (r < 34) memset(data + r * 48 + 42, 0xff, 6);
        }
        CHECK(t, bsm_dequantize(context, &target.matrix, &second.matrix) == BSM_OK);
        CHECK(t, memcmp(first.memory, second.memory, first.bytes) == 0);
        free(kept);
        strided_free(&second);
        strided_free(&first);
        strided_free(&source);
        target_free(&target);
        free(n.values);
    }
    bsm_context_destroy(context);
}

/* Any number of threads, any mode of the caller: the same bits, subnormals included. */
static void threads_and_modes(struct test *t)
{
    enum { R = 50, C = 9000 };
    static unsigned char data[R * C / 2], scales[R * (C / 16 + 1)];
    static float plain[R * C], other[R * C];
    for (int i = 0; i < R * C / 2; i++) data[i] = (unsigned char)rnd(t);
    for (int i = 0; i < R * (C / 16 + 1); i++) scales[i] = (unsigned char)rnd(t);
    float tensor_scale = 0x1.234568p-133f;
    const bsm_matrix m = { .struct_size = sizeof m,
                           .format = BSM_NVFP4,
                           .rows = R,
                           .columns = C,
                           .data = data,
                           .scales = scales,
                           .tensor_scale = &tensor_scale };
    bsm_real_matrix to = { .struct_size = sizeof to, .rows = R, .columns = C, .data = plain, .row_stride = C,
                           .column_stride = 1 };
    bsm_context *context = context_with(1);
    CHECK(t, bsm_dequantize(context, &m, &to) == BSM_OK);
    to.data = other;
    for (int threads = 1; threads <= 8; threads += 3)
        for (int mode = -1; mode < fp_mode_count; mode++) {
            memset(other, 0xee, sizeof other);
            bsm_context_set_threads(context, threads);
            struct fp_mode_state before;
            memset(&before, 0, sizeof before);
            if (mode >= 0) before = fp_mode_enter(mode);
            const bsm_status status = bsm_dequantize(context, &m, &to);
            if (mode >= 0) fp_mode_leave(before);
            CHECK(t, status == BSM_OK);
            if (memcmp(plain, other, sizeof plain) != 0) FAIL(t, "%d threads, mode %d differ", threads, mode);
        }
    bsm_context_destroy(context);
}

/* So many numbers that they are written past the caches: the bits of each row alone, which is not. */
static void many_numbers(struct test *t)
{
    enum { R = 2, C = 1100035, PITCH = 1100064, GUARD = 16 };
    static const bsm_format formats[] = { BSM_MXFP4, BSM_NVFP4, BSM_MXFP8_E4M3, BSM_MXINT8 };
    const size_t floats = (size_t)R * PITCH + GUARD;
    unsigned char *const data = malloc(R * C), *const scales = malloc(R * (C / 16 + 1));
    float *const memory = aligned_alloc(64, floats * sizeof *memory), *const want =
                                                                          aligned_alloc(64, floats * sizeof *want);
    bsm_context *context = context_with(1);
    CHECK_OR_RETURN(t, data != NULL && scales != NULL && memory != NULL && want != NULL);
    for (int i = 0; i < R * C; i++) data[i] = (unsigned char)rnd(t);
    for (int i = 0; i < R * (C / 16 + 1); i++) scales[i] = (unsigned char)rnd(t);
    for (int f = 0; f < 4; f++)
        for (int offset = 0; offset < 9; offset += 4) {       /* floats, before the first of them */
            bsm_matrix m = { .struct_size = sizeof m, .format = formats[f], .rows = R, .columns = C, .data = data,
                             .scales = scales };
            bsm_real_matrix to = { .struct_size = sizeof to, .rows = R, .columns = C, .row_stride = PITCH,
                                   .column_stride = 1 };
            int64_t bytes = 0, scale_bytes = 0;
            memset(memory, 0xee, floats * sizeof *memory), memset(want, 0xee, floats * sizeof *want);
            to.data = memory + offset;
            CHECK(t, bsm_dequantize(context, &m, &to) == BSM_OK);
            m.rows = to.rows = 1;
            CHECK(t, bsm_matrix_data_bytes(&m, &bytes) == BSM_OK && bsm_matrix_scale_bytes(&m, &scale_bytes) == BSM_OK);
            for (int r = 0; r < R; r++) {
                m.data = data + r * bytes, m.scales = scales + r * scale_bytes, to.data = want + offset + r * PITCH;
                CHECK(t, bsm_dequantize(context, &m, &to) == BSM_OK);
            }
            if (memcmp(memory, want, floats * sizeof *memory) != 0)
                FAIL(t, "%s from float %d on: other bits", bsm_format_get((int)formats[f])->name, offset);
        }
    free(data), free(scales), free(memory), free(want);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(every_code_under_every_scale), TEST(unscaled_sources), TEST(never_through_fp32),
        TEST(never_through_fp32_in_blocks), TEST(there_and_back),
        TEST(every_block_has_its_own_scale), TEST(padding_is_not_read), TEST(threads_and_modes), TEST(many_numbers),
    };
    return TEST_MAIN(argc, argv, cases);
}

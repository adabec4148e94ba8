/* Presets: the bits that other projects give, and what is refused. */
#include "blockscale.h"
#include "test.h"

#include <string.h>

struct golden {
    bsm_preset preset;
    bsm_format format;
    bsm_real type;                        /* of the source */
    int row;
    uint32_t tensor_scale;                /* its bits; 0: none */
    const char *scales, *codes;           /* in hexadecimal: two digits a code, one for elements of 4 bits */
};

#include "golden_presets.h"

/* Inputs: those of make_golden_presets.py -------------------------------------------------------------------------- */

static uint64_t random_bits(uint64_t index)
{
    uint64_t x = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint32_t input_bits(uint32_t row, uint32_t column)
{
    static const uint32_t largest[4] = { 0x40c00000, 0x43e00000, 0x40f00000, 0x41e00000 };
    static const uint32_t middles[8] = { 0x3e800000, 0x3f400000, 0x3fa00000, 0x3fe00000,
                                         0x40200000, 0x40600000, 0x40a00000, 0x41880000 };
    const uint64_t bits = random_bits((uint64_t)row * GOLDEN_COLUMNS + column);
    const uint32_t sign = (uint32_t)(bits >> 63) << 31, fraction = (uint32_t)(bits >> 8) & 0x7fffff,
                   small = (uint32_t)bits & 0xff;
    switch (row % GOLDEN_KINDS) {
    case 0: return sign | (124 + small % 6) << 23 | fraction;
    case 1: return sign | (124 + small % 4) << 23 | (fraction & 0x780000);
    case 2: return sign | (100 + small % 50) << 23 | fraction;
    case 3: return sign | (small % 12) << 23 | fraction;
    case 4: return sign | (239 + small % 15) << 23 | fraction;
    case 5:
        if (column % 16 == 3)
            return sign
                   | (largest[column / 16 % 4] + (row * 5 % 60 << 23) - (30u << 23)
                      + (column / 16 + row / GOLDEN_KINDS) % 5 - 2);
        return sign | (98 + row * 5 % 60 - 4 + small % 3) << 23 | fraction;
    case 6: return sign | (small % 5 == 0 ? (120 + small % 8) << 23 | fraction : 0);
    case 7: return sign | (column < 48 ? (column < 16 ? 128 : 100 + column / 16) << 23 | fraction : 0);
    case 8: return sign | (115 + (uint32_t)__builtin_ctz(small | 0x80)) << 23 | fraction;
    case 9: return sign | (column % 32 == 0 ? 110 + small % 40 : small % 28) << 23 | fraction;
    default: return sign | (column % 32 == 0 ? largest[row % 2] : middles[small % 8] + fraction % 3 - 1);
    }
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

struct row {
    float x[GOLDEN_COLUMNS], tensor_scale;
    uint16_t halves[GOLDEN_COLUMNS];      /* x in a type of 16 bits */
    bsm_real type;
    uint8_t scales[GOLDEN_COLUMNS], codes[GOLDEN_COLUMNS];
    int scale_count;
};

static bool divides(bsm_preset preset)
{
    return preset == BSM_PRESET_TRANSFORMER_ENGINE || preset == BSM_PRESET_COMPRESSED_TENSORS
           || preset == BSM_PRESET_FLASHINFER;
}

static bsm_status quantize_row(bsm_context *context, bsm_preset preset, bsm_format format, bool scaled, struct row *row)
{
    const bsm_real_matrix source = { .struct_size = sizeof source, .type = row->type, .rows = 1,
                                     .columns = GOLDEN_COLUMNS,
                                     .data = row->type == BSM_REAL_FP32 ? (void *)row->x : (void *)row->halves,
                                     .row_stride = GOLDEN_COLUMNS, .column_stride = 1 };
    const bool wide = format == BSM_MXFP8_E4M3 || format == BSM_MXFP8_E5M2;
    const bsm_matrix destination = { .struct_size = sizeof destination,
                                     .format = format,
                                     .rows = 1,
                                     .columns = GOLDEN_COLUMNS,
                                     .packing = wide ? BSM_PACKING_DEFAULT : BSM_PACKING_BYTES,
                                     .data = row->codes,
                                     .scales = row->scales,
                                     .tensor_scale = scaled ? &row->tensor_scale : NULL,
                                     .tensor_scale_use =
                                         divides(preset) ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES };
    const bsm_quantize_options options = { .struct_size = sizeof options,
                                           .preset = preset,
                                           .tensor_scale =
                                               scaled ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN };
    row->scale_count = (int)bsm_matrix_scale_columns(&destination);
    return bsm_quantize(context, &source, &options, &destination, NULL);
}

static void put(struct row *row, int column, float x)
{
    const bsm_element element = row->type == BSM_REAL_FP16 ? BSM_FP16 : BSM_BF16;
    row->x[column] = x;
    row->halves[column] = (uint16_t)bsm_element_encode(element, (double)x, BSM_ROUND_NEAREST_EVEN, false, 0);
}

static void make_input(struct row *row, int number, bsm_real type)
{
    row->type = type;
    for (int c = 0; c < GOLDEN_COLUMNS; c++) {
        const uint32_t bits = input_bits((uint32_t)number, (uint32_t)c);
        float x;
        memcpy(&x, &bits, sizeof x);
        put(row, c, x);
    }
}

static int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

/* Code i of a text with as many digits as codes, or twice as many. */
static int from_hex(const char *text, int i, int count)
{
    const bool one = strlen(text) == (size_t)count;
    return one ? digit(text[i]) : digit(text[2 * i]) << 4 | digit(text[2 * i + 1]);
}

static void compare(struct test *t, const struct golden *golden, const struct row *row)
{
    const char *name = bsm_preset_name((int)golden->preset), *format = bsm_format_get((int)golden->format)->name;
    const char *type = bsm_real_name((int)golden->type);
    uint32_t bits;
    memcpy(&bits, &row->tensor_scale, sizeof bits);
    if (golden->tensor_scale != 0 && bits != golden->tensor_scale)
        FAIL(t, "%s %s %s row %d: tensor scale %08x, not %08x", name, format, type, golden->row, bits,
             golden->tensor_scale);
    for (int i = 0; i < row->scale_count; i++)
        if (row->scales[i] != from_hex(golden->scales, i, 0))
            FAIL(t, "%s %s %s row %d: scale %d is %02x, not %02x", name, format, type, golden->row, i, row->scales[i],
                 from_hex(golden->scales, i, 0));
    for (int i = 0; i < GOLDEN_COLUMNS; i++)
        if (row->codes[i] != from_hex(golden->codes, i, GOLDEN_COLUMNS))
            FAIL(t, "%s %s %s row %d: code %d of %a is %02x, not %02x", name, format, type, golden->row, i,
                 (double)row->x[i], row->codes[i], from_hex(golden->codes, i, GOLDEN_COLUMNS));
}

static void bits_of_the_projects(struct test *t)
{
    bsm_context *context;
    struct row row = { .tensor_scale = 0 };
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        make_input(&row, goldens[i].row, goldens[i].type);
        CHECK(t, quantize_row(context, goldens[i].preset, goldens[i].format, goldens[i].tensor_scale != 0, &row)
                     == BSM_OK);
        compare(t, &goldens[i], &row);
    }
    bsm_context_destroy(context);
}

/* What the projects whose code needs a GPU say of a block, in figures worked out by hand. */
static void from_the_source_alone(struct test *t)
{
    static const struct { bsm_preset preset; bsm_format format; float x[2]; int scale, codes[2]; } rows[] = {
        { BSM_PRESET_OCP, BSM_MXFP4, { 7, -1 }, 127, { 7, 10 } },                            /* 7 > 6: cut */
        { BSM_PRESET_OCP, BSM_MXFP8_E4M3, { 460, -0x1p-9f }, 127, { 0x7e, 0x81 } },
        { BSM_PRESET_TRANSFORMER_ENGINE, BSM_MXFP8_E4M3, { 480, 448 }, 128, { 0x77, 0x76 } },  /* 240 and 224 */
        { BSM_PRESET_TRANSFORMER_ENGINE, BSM_MXFP8_E5M2, { 57344, -0.0f }, 127, { 0x7b, 0x80 } },
        { BSM_PRESET_TRANSFORMER_ENGINE, BSM_MXFP8_E4M3, { 448 * 0x1p-127f, 0x1p-127f }, 0, { 0x7e, 0x38 } },
        { BSM_PRESET_FLASHINFER, BSM_NVFP4, { 6, -1.25f }, 0x38, { 7, 10 } },
        /* scale 0: infinite factor, NaN */
        { BSM_PRESET_FLASHINFER, BSM_NVFP4, { 0x1p-20f, 0 }, 0, { 7, 7 } },
        { BSM_PRESET_FLASHINFER, BSM_NVFP4, { -0.0f, 0 }, 0, { 8, 0 } },
    };
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct row row = { .x = { rows[i].x[0], rows[i].x[1] } };
        CHECK(t, quantize_row(context, rows[i].preset, rows[i].format, false, &row) == BSM_OK);
        if (row.scales[0] != rows[i].scale || row.codes[0] != rows[i].codes[0] || row.codes[1] != rows[i].codes[1])
            FAIL(t, "case %zu: %02x, %02x %02x", i, row.scales[0], row.codes[0], row.codes[1]);
    }
    bsm_context_destroy(context);
}

/* compressed-tensors' blocks of 1.5 * 2^-15 and the number below, as it gives them: in fp16 they round to 2^-14, and to
 * 0, whose scale is taken as 1. */
static void subnormal_in_fp16(struct test *t)
{
    static const struct { bsm_real type; float x; int scale, code;
    } rows[] = { { BSM_REAL_FP16, 0x1.8p-15f, 111, 5 },
                 { BSM_REAL_FP16, 0x1.7f8p-15f, 127, 0 },
                 { BSM_REAL_BF16, 0x1.8p-15f, 110, 7 } };
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct row row = { .type = rows[i].type };
        put(&row, 0, rows[i].x);
        CHECK(t, quantize_row(context, BSM_PRESET_COMPRESSED_TENSORS, BSM_MXFP4, false, &row) == BSM_OK);
        if (row.scales[0] != rows[i].scale || row.codes[0] != rows[i].code)
            FAIL(t, "case %zu: %02x, %02x", i, row.scales[0], row.codes[0]);
    }
    bsm_context_destroy(context);
}

static void names(struct test *t)
{
    for (int i = 0; i < BSM_PRESET_COUNT; i++)
        CHECK(t, bsm_preset_from_name(bsm_preset_name(i)) == i && bsm_preset_checked(i)[0] != '\0');
    CHECK(t, bsm_preset_from_name("TorchAO") == BSM_PRESET_TORCHAO && bsm_preset_from_name("nothing") == -1
                 && bsm_preset_from_name(NULL) == -1);
    CHECK(t, bsm_preset_name(-1) == NULL && bsm_preset_name(BSM_PRESET_COUNT) == NULL
                 && bsm_preset_checked(BSM_PRESET_COUNT) == NULL);
}

/* What does not go with a preset; the destination is left alone. */
static void refused(struct test *t)
{
    float tensor_scale = 1;
    static const struct {
        bsm_quantize_options options;
        bsm_format format;
        bool scaled, divides;
        const char *words;
    } cases[] = {
        { { .preset = BSM_PRESET_COUNT }, BSM_MXFP4, false, false, "options->preset=8: choices are 0 to 7" },
        { { .preset = BSM_PRESET_GGML },
          BSM_MXFP8_E4M3,
          false,
          false,
          "options->preset=ggml: has no mxfp8_e4m3; take one of mxfp4, nvfp4" },
        { { .preset = BSM_PRESET_OCP }, BSM_FORMAT_E4M3, false, false, "options->preset=ocp: has no e4m3" },
        { { .preset = BSM_PRESET_OCP, .recipe = BSM_RECIPE_CEIL }, BSM_MXFP4, false, false, "has a recipe of its own" },
        { { .preset = BSM_PRESET_OCP, .rounding = BSM_ROUND_STOCHASTIC },
          BSM_MXFP4,
          false,
          false,
          "leave options->rounding at nearest" },
        { { .preset = BSM_PRESET_OCP, .nonfinite = BSM_NONFINITE_SATURATE },
          BSM_MXFP4,
          false,
          false,
          "leave options->nonfinite" },
        { { .preset = BSM_PRESET_GGML }, BSM_NVFP4, true, false, "has no tensor scale for nvfp4" },
        { { .preset = BSM_PRESET_MODELOPT }, BSM_NVFP4, true, true, "its tensor scale multiplies" },
        { { .preset = BSM_PRESET_COMPRESSED_TENSORS }, BSM_NVFP4, true, false, "its tensor scale divides" },
    };
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float x[32] = { 1 };
        uint8_t codes[32] = { 0x77 }, scales[2] = { 0x77, 0x77 };
        bsm_quantize_options options = cases[i].options;
        options.struct_size = sizeof options;
        const bsm_real_matrix source = { .struct_size = sizeof source, .rows = 1, .columns = 32, .data = x,
                                         .row_stride = 32, .column_stride = 1 };
        const bsm_matrix destination = { .struct_size = sizeof destination,
                                         .format = cases[i].format,
                                         .rows = 1,
                                         .columns = 32,
                                         .data = codes,
                                         .scales = cases[i].format == BSM_FORMAT_E4M3 ? NULL : scales,
                                         .tensor_scale = cases[i].scaled ? &tensor_scale : NULL,
                                         .tensor_scale_use = cases[i].divides ? BSM_TENSOR_SCALE_DIVIDES
                                                                              : BSM_TENSOR_SCALE_MULTIPLIES };
        CHECK(t, bsm_quantize(context, &source, &options, &destination, NULL) == BSM_EINVAL);
        if (strstr(bsm_last_error(), cases[i].words) == NULL) FAIL(t, "case %zu: %s", i, bsm_last_error());
        CHECK(t, codes[0] == 0x77 && scales[0] == 0x77);
    }
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(bits_of_the_projects), TEST(from_the_source_alone),
                                              TEST(subnormal_in_fp16), TEST(names), TEST(refused) };
    return TEST_MAIN(argc, argv, cases);
}

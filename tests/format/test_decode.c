/* Codes to values: every code, the tables' facts recomputed from the codes, and names. */
#include "format/format.h"
#include "oracle.h"
#include "test.h"

#include <limits.h>

static const double e2m1_values[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
static const double e2m3_values[32] = {
    0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875,
    2, 2.25, 2.5, 2.75, 3, 3.25, 3.5, 3.75, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5 };
static const double e3m2_values[32] = {
    0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, 0.5, 0.625, 0.75, 0.875, 1, 1.25, 1.5, 1.75,
    2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28 };

static bool same_bits(float a, float b) { return bsmi_float_bits(a) == bsmi_float_bits(b); }

/* Equal bits, or both NaN. */
static bool same_value(float got, double want) { return isnan(want) ? isnan(got) != 0 : same_bits(got, (float)want); }

static void check_literals(struct test *t, bsm_element element, const double *values, uint32_t count)
{
    for (uint32_t code = 0; code < count; code++) {
        const float positive = bsm_element_decode(element, code), negative = bsm_element_decode(element, code + count);
        if (!same_bits(positive, (float)values[code]))
            FAIL(t, "code 0x%x is %g, want %g", code, (double)positive, values[code]);
        if (!same_bits(negative, -(float)values[code]))
            FAIL(t, "code 0x%x is %g, want -%g", code + count, (double)negative, values[code]);
    }
}

static void literal_values(struct test *t)
{
    check_literals(t, BSM_E2M1, e2m1_values, 8);
    check_literals(t, BSM_E2M3, e2m3_values, 32);
    check_literals(t, BSM_E3M2, e3m2_values, 32);
}

static void every_code(struct test *t)
{
    for (int element = 0; element < BSM_ELEMENT_COUNT; element++) {
        if (oracle_elements[element].bits > 16) continue;
        for (uint32_t code = 0; code < (uint32_t)1 << oracle_elements[element].bits; code++) {
            const float got = bsm_element_decode((bsm_element)element, code);
            const double want = oracle_decode((bsm_element)element, code);
            if (!same_value(got, want))
                FAIL(t, "element %d code 0x%x is %a, want %a", element, code, (double)got, want);
        }
    }
}

static void fp32_codes_are_their_bits(struct test *t)
{
    for (uint64_t code = 0; code <= UINT32_MAX; code += 65521) {
        const float got = bsm_element_decode(BSM_FP32, (uint32_t)code);
        if (bsmi_float_bits(got) != code) FAIL(t, "code 0x%" PRIx64 " changed", code);
        if (!same_value(got, oracle_decode(BSM_FP32, (uint32_t)code)))
            FAIL(t, "code 0x%" PRIx64 " is %a", code, (double)got);
    }
}

/* Exactly these codes are no numbers. */
static void special_codes(struct test *t)
{
    for (uint32_t code = 0; code < 256; code++) {
        const float e4m3 = bsm_element_decode(BSM_E4M3, code), e5m2 = bsm_element_decode(BSM_E5M2, code);
        CHECK(t, (isnan(e4m3) != 0) == (code == 0x7f || code == 0xff));
        CHECK(t, !isinf(e4m3));
        CHECK(t, (isinf(e5m2) != 0) == (code == 0x7c || code == 0xfc));
        CHECK(t, (isnan(e5m2) != 0) == ((code & 0x7f) >= 0x7d));
        CHECK(t, isfinite(bsm_element_decode(BSM_E3M2, code)) && isfinite(bsm_element_decode(BSM_E2M3, code)));
        CHECK(t, isfinite(bsm_element_decode(BSM_E2M1, code)) && isfinite(bsm_element_decode(BSM_INT8, code)));
    }
    CHECK(t, same_bits(bsm_element_decode(BSM_E5M2, 0xfc), -INFINITY));
    CHECK(t, same_bits(bsm_element_decode(BSM_INT8, 0x80), -2.0f));
    CHECK(t, same_bits(bsm_element_decode(BSM_INT8, 0x81), -1.984375f));
    CHECK(t, same_bits(bsm_element_decode(BSM_E4M3, 0x80), -0.0f));
}

static void bits_above_the_width_are_ignored(struct test *t)
{
    for (int element = 0; element < BSM_ELEMENT_COUNT; element++) {
        const int bits = oracle_elements[element].bits;
        if (bits == 32) continue;
        for (uint32_t code = 0; code < (uint32_t)1 << bits; code += bits == 16 ? 251 : 1) {
            const uint32_t dirty = code | (uint32_t)rnd(t) << bits;
            const float clean_value = bsm_element_decode((bsm_element)element, code);
            CHECK(t, same_bits(bsm_element_decode((bsm_element)element, dirty), clean_value));
        }
    }
}

/* The facts of the tables, recomputed by walking the codes. */
static void facts_follow_from_the_codes(struct test *t)
{
    for (int i = 0; i < BSM_ELEMENT_COUNT; i++) {
        const bsm_element element = (bsm_element)i;
        const bsm_element_info *info = bsm_element_get(i);
        CHECK_OR_RETURN(t, info != NULL);
        CHECK(t, info->bits == oracle_elements[i].bits && info->exponent_bits == oracle_elements[i].exponent_bits);
        CHECK(t, info->mantissa_bits == oracle_elements[i].mantissa_bits && info->bias == oracle_elements[i].bias);
        CHECK(t, (double)bsm_element_decode(element, info->max_code) == info->max_value);
        if (info->nan_codes > 0) CHECK(t, isnan(bsm_element_decode(element, info->nan_code)));
        if (info->bits > 16) continue;
        int nans = 0, infinities = 0;
        double largest = 0;
        for (uint32_t code = 0; code < (uint32_t)1 << info->bits; code++) {
            const double value = bsm_element_decode(element, code);
            nans += isnan(value) != 0;
            infinities += isinf(value) != 0;
            if (isfinite(value)) largest = fmax(largest, value);
        }
        CHECK(t, nans == info->nan_codes);
        CHECK(t, infinities == (info->has_infinity ? 2 : 0));
        CHECK(t, largest == info->max_value);
        if (nans == 0) CHECK(t, info->nan_code == (i == BSM_INT8 ? 0 : info->max_code));
    }
    CHECK(t, bsm_element_get(BSM_FP32)->nan_codes == 2 * ((1 << 23) - 1));
}

/* grid: the fewest halvings that make every finite value an integer; integer_bits: of the largest such integer, up to
 * 8. */
static void integer_facts_follow_from_the_codes(struct test *t)
{
    for (int i = 0; i < BSM_ELEMENT_COUNT; i++) {
        const bsm_element element = (bsm_element)i;
        if (oracle_elements[i].bits > 16) continue;
        int grid = 0, integer_bits = 0;
        double largest = 0;
        for (uint32_t code = 0; code < (uint32_t)1 << oracle_elements[i].bits; code++) {
            const double value = fabs((double)bsm_element_decode(element, code));
            if (!isfinite(value)) continue;
            while (ldexp(value, grid) != floor(ldexp(value, grid))) grid++;
            largest = fmax(largest, value);
        }
        while (ldexp(1, integer_bits) <= ldexp(largest, grid)) integer_bits++;
        CHECK(t, bsmi_element_grid(element) == grid);
        CHECK(t, bsmi_element_integer_bits(element) == (integer_bits <= 8 ? integer_bits : 0));
    }
    CHECK(t, bsmi_element_grid(BSM_FP32) == 149 && bsmi_element_integer_bits(BSM_FP32) == 0);
}

static void scale_codes(struct test *t)
{
    for (int c = 0; c < 256; c++) {
        const uint8_t code = (uint8_t)c;
        const float e8m0 = bsm_scale_decode(BSM_E8M0, code), ue4m3 = bsm_scale_decode(BSM_UE4M3, code);
        CHECK(t, (isnan(e8m0) != 0) == (c == 0xff));
        CHECK(t, (isnan(ue4m3) != 0) == (c == 0x7f || c == 0xff));
        if (c != 0xff) CHECK(t, (double)e8m0 == ldexp(1, c - 127));
        if (!isnan(ue4m3)) CHECK(t, same_value(ue4m3, oracle_decode(BSM_E4M3, (uint32_t)c & 0x7f)));
        CHECK(t, bsmi_scale_is_nan(BSM_E8M0, code) == (c == 0xff));
        CHECK(t, bsmi_scale_is_nan(BSM_UE4M3, code) == (c == 0x7f || c == 0xff));
        CHECK(t, !bsmi_scale_is_nan(BSM_UNSCALED, code));
        CHECK(t, same_bits(bsm_scale_decode(BSM_UNSCALED, code), 1));
    }
    CHECK(t, same_bits(bsm_scale_decode(BSM_UE4M3, 0x80), 0.0f));
    CHECK(t, bsm_scale_decode(BSM_UE4M3, 0x01) == 0x1p-9f && bsm_scale_decode(BSM_UE4M3, 0x7e) == 448);
}

static void helpers_are_exact(struct test *t)
{
    for (int e = -149; e <= 127; e++) CHECK(t, (double)bsmi_float_power_of_two(e) == ldexp(1, e));
    for (int e = -1022; e <= 1023; e++) CHECK(t, bsmi_double_power_of_two(e) == ldexp(1, e));
    for (uint32_t code = 0; code < 65536; code++) {
        CHECK(t, same_value(bsmi_fp16_to_float((uint16_t)code), oracle_decode(BSM_FP16, code)));
        CHECK(t, same_value(bsmi_bf16_to_float((uint16_t)code), oracle_decode(BSM_BF16, code)));
    }
    for (int i = BSM_E4M3; i <= BSM_INT8; i++) {
        const uint32_t codes = (uint32_t)1 << oracle_elements[i].bits;
        float table[257];
        table[codes] = 12345;
        bsmi_element_table((bsm_element)i, table);
        for (uint32_t code = 0; code < codes; code++)
            CHECK(t, same_value(table[code], oracle_decode((bsm_element)i, code)));
        CHECK(t, table[codes] == 12345);
    }
}

static void unknown_numbers(struct test *t)
{
    const int numbers[] = { -1, INT_MIN, INT_MAX, BSM_ELEMENT_COUNT, BSM_FORMAT_COUNT, BSM_SCALE_COUNT };
    for (int i = 0; i < 6; i++) {
        const int n = numbers[i];
        if (n < 0 || n >= BSM_ELEMENT_COUNT) {
            CHECK(t, bsm_element_get(n) == NULL);
            CHECK(t, isnan(bsm_element_decode((bsm_element)n, 0)));
            CHECK(t, bsm_element_encode((bsm_element)n, 1, BSM_ROUND_NEAREST_EVEN, true, 0) == 0);
        }
        if (n < 0 || n >= BSM_FORMAT_COUNT) CHECK(t, bsm_format_get(n) == NULL);
        if (n < 0 || n >= BSM_SCALE_COUNT) CHECK(t, bsm_scale_name(n) == NULL);
    }
    CHECK(t, bsm_format_get(BSM_FORMAT_NONE) == NULL);
}

/* Every format, stated once more. */
static const struct {
    bsm_format format;
    const char *name;
    bsm_element element;
    bsm_scale scale;
    int block;
    double bits;
} formats[] = {
    { BSM_MXFP8_E4M3, "mxfp8_e4m3", BSM_E4M3, BSM_E8M0, 32, 8.25 },
    { BSM_MXFP8_E5M2, "mxfp8_e5m2", BSM_E5M2, BSM_E8M0, 32, 8.25 },
    { BSM_MXFP6_E3M2, "mxfp6_e3m2", BSM_E3M2, BSM_E8M0, 32, 6.25 },
    { BSM_MXFP6_E2M3, "mxfp6_e2m3", BSM_E2M3, BSM_E8M0, 32, 6.25 },
    { BSM_MXFP4, "mxfp4", BSM_E2M1, BSM_E8M0, 32, 4.25 },
    { BSM_MXFP4_BLOCK16, "mxfp4_block16", BSM_E2M1, BSM_E8M0, 16, 4.5 },
    { BSM_MXINT8, "mxint8", BSM_INT8, BSM_E8M0, 32, 8.25 },
    { BSM_NVFP4, "nvfp4", BSM_E2M1, BSM_UE4M3, 16, 4.5 },
    { BSM_FORMAT_E4M3, "e4m3", BSM_E4M3, BSM_UNSCALED, 0, 8 },
    { BSM_FORMAT_E5M2, "e5m2", BSM_E5M2, BSM_UNSCALED, 0, 8 },
    { BSM_FORMAT_BF16, "bf16", BSM_BF16, BSM_UNSCALED, 0, 16 },
    { BSM_FORMAT_FP16, "fp16", BSM_FP16, BSM_UNSCALED, 0, 16 },
    { BSM_FORMAT_FP32, "fp32", BSM_FP32, BSM_UNSCALED, 0, 32 },
    { BSM_FORMAT_E3M2, "e3m2", BSM_E3M2, BSM_UNSCALED, 0, 6 },
    { BSM_FORMAT_E2M3, "e2m3", BSM_E2M3, BSM_UNSCALED, 0, 6 },
    { BSM_FORMAT_E2M1, "e2m1", BSM_E2M1, BSM_UNSCALED, 0, 4 },
};

static void every_format(struct test *t)
{
    CHECK(t, sizeof formats / sizeof formats[0] == BSM_FORMAT_COUNT - 1);
    for (int i = 0; i < BSM_FORMAT_COUNT - 1; i++) {
        const bsm_format_info *info = bsm_format_get((int)formats[i].format);
        CHECK_OR_RETURN(t, info != NULL);
        CHECK(t, strcmp(info->name, formats[i].name) == 0);
        CHECK(t, info->element == formats[i].element && info->scale == formats[i].scale
                     && info->block == formats[i].block);
        CHECK(t, info->bits_per_element == formats[i].bits);
        CHECK(t, bsm_format_from_name(info->name) == formats[i].format);
    }
}

static void names_and_aliases(struct test *t)
{
    static const char *const elements[] = { "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "int8", "bf16", "fp16", "fp32" };
    for (int i = 0; i < BSM_ELEMENT_COUNT; i++) {
        CHECK(t, strcmp(bsm_element_get(i)->name, elements[i]) == 0);
        CHECK(t, bsm_element_from_name(elements[i]) == i);
    }
    static const struct { const char *alias; bsm_format format; } format_aliases[] = {
        { "mxfp8", BSM_MXFP8_E4M3 }, { "mxfp6", BSM_MXFP6_E2M3 }, { "MXFP4", BSM_MXFP4 }, { "NVFP4", BSM_NVFP4 },
        { "bfloat16", BSM_FORMAT_BF16 }, { "float16", BSM_FORMAT_FP16 }, { "half", BSM_FORMAT_FP16 },
        { "float32", BSM_FORMAT_FP32 }, { "float", BSM_FORMAT_FP32 }, { "fp8_e4m3", BSM_FORMAT_E4M3 },
        { "fp8_e5m2", BSM_FORMAT_E5M2 }, { "mxfp4_16", BSM_MXFP4_BLOCK16 },
        { "", BSM_FORMAT_NONE }, { "mxfp", BSM_FORMAT_NONE }, { "mxfp4 ", BSM_FORMAT_NONE },
          { "nvfp44", BSM_FORMAT_NONE },
        { NULL, BSM_FORMAT_NONE },
    };
    for (size_t i = 0; i < sizeof format_aliases / sizeof format_aliases[0]; i++)
        if (bsm_format_from_name(format_aliases[i].alias) != format_aliases[i].format)
            FAIL(t, "format %s", format_aliases[i].alias);
    static const struct { const char *alias; int element; } element_aliases[] = {
        { "float8_e4m3fn", BSM_E4M3 },
        { "float8_e5m2", BSM_E5M2 },
        { "float6_e3m2fn", BSM_E3M2 },
        { "float6_e2m3fn", BSM_E2M3 },
        { "float4_e2m1fn", BSM_E2M1 },
        { "bfloat16", BSM_BF16 },
        { "float16", BSM_FP16 },
        { "float32", BSM_FP32 },
        { "E2M1", BSM_E2M1 },
        { "", -1 },
        { "e4m3fnuz", -1 },
        { "e2m", -1 },
        { NULL, -1 },
    };
    for (size_t i = 0; i < sizeof element_aliases / sizeof element_aliases[0]; i++)
        if (bsm_element_from_name(element_aliases[i].alias) != element_aliases[i].element)
            FAIL(t, "element %s", element_aliases[i].alias);
    CHECK(t, strcmp(bsm_scale_name(BSM_UNSCALED), "unscaled") == 0);
    CHECK(t, strcmp(bsm_scale_name(BSM_E8M0), "e8m0") == 0 && strcmp(bsm_scale_name(BSM_UE4M3), "ue4m3") == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(literal_values),
        TEST(every_code),
        TEST(fp32_codes_are_their_bits),
        TEST(special_codes),
        TEST(bits_above_the_width_are_ignored),
        TEST(facts_follow_from_the_codes),
        TEST(integer_facts_follow_from_the_codes),
        TEST(scale_codes),
        TEST(helpers_are_exact),
        TEST(unknown_numbers),
        TEST(every_format),
        TEST(names_and_aliases),
    };
    return TEST_MAIN(argc, argv, cases);
}

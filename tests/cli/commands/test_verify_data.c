/* The data of verify: it reaches every code that it promises, and its integers have exact sums. */
#include "test.h"
#include "cli/commands/verify/verify.h"

#include <math.h>

static struct operand filled(struct test *t, int format, enum verify_kind kind, int64_t rows, int64_t columns)
{
    struct operand operand;
    struct cli cli = { .seed = t->seed };
    if (operand_create_plain(&cli, &operand, (bsm_format)format, rows, columns) != CLI_DONE) FAIL(t, "no operand");
    if (verify_fill(&operand, kind, t->seed, 3) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    return operand;
}

static uint32_t code_at(const struct operand *operand, int64_t row, int64_t column)
{
    uint32_t code = 0;
    bsm_matrix_get_code(&operand->matrix, 0, row, column, &code);
    return code;
}

static uint8_t scale_at(const struct operand *operand, int64_t row, int64_t column)
{
    uint8_t code = 0;
    bsm_matrix_get_scale(&operand->matrix, 0, row, column, &code);
    return code;
}

static double value_at(const struct operand *operand, int64_t row, int64_t column)
{
    const bsm_format_info *info = bsm_format_get((int)operand->matrix.format);
    const float scale =
        info->block == 0 ? 1 : bsm_scale_decode(info->scale, scale_at(operand, row, column / info->block));
    return (double)bsm_element_decode(info->element, code_at(operand, row, column)) * (double)scale;
}

/* Values are integers times a power of two that is the format's, and so small that the longest sum stays below 2^24
 * units. */
static void integers_have_exact_sums(struct test *t)
{
    double largest[BSM_FORMAT_COUNT] = { 0 }, unit[BSM_FORMAT_COUNT];
    int64_t longest = 0;
    for (int i = 0; i < verify_case_count; i++)
        if (verify_cases[i].kind == VERIFY_INTEGERS && verify_cases[i].k > longest) longest = verify_cases[i].k;
    for (int f = 1; f < BSM_FORMAT_COUNT; f++) {
        struct operand operand = filled(t, f, VERIFY_INTEGERS, 50, 200);
        const bsm_format_info *info = bsm_format_get(f);
        unit[f] = (info->element == BSM_INT8 ? 0x1p-6 : 1) * (info->scale == BSM_UE4M3 ? 0.25 : 1);
        for (int64_t r = 0; r < 50; r++)
            for (int64_t c = 0; c < 200; c++) {
                const double units = value_at(&operand, r, c) / unit[f];
                if (units != floor(units)) FAIL(t, "%s: %g units are no integer", info->name, units);
                largest[f] = fmax(largest[f], fabs(units));
            }
        operand_free(&operand);
    }
    for (int a = 1; a < BSM_FORMAT_COUNT; a++)
        for (int b = 1; b < BSM_FORMAT_COUNT; b++)
            if (!(largest[a] >= 4 && largest[a] * largest[b] * (double)longest < 0x1p24))
                FAIL(t, "%s x %s: %g x %g over %d terms", bsm_format_get(a)->name, bsm_format_get(b)->name, largest[a],
                     largest[b], (int)longest);
}

static void check_finite_data(struct test *t, enum verify_kind kind)
{
    for (int f = 1; f < BSM_FORMAT_COUNT; f++) {
        struct operand operand = filled(t, f, kind, 400, 100);
        const bsm_format_info *info = bsm_format_get(f);
        const bsm_element_info *element = bsm_element_get((int)info->element);
        bool seen[256] = { false };
        int codes = 0, finite = 0;
        for (int64_t r = 0; r < 400; r++)
            for (int64_t c = 0; c < 100; c++) {
                if (!isfinite(value_at(&operand, r, c)))
                    FAIL(t, "%s: code 0x%x is not finite", info->name, code_at(&operand, r, c));
                if (element->bits <= 8) seen[code_at(&operand, r, c)] = true;
            }
        for (uint32_t code = 0; element->bits <= 8 && code < (uint32_t)1 << element->bits; code++) {
            codes += seen[code];
            finite += (bool)isfinite(bsm_element_decode(info->element, code));
        }
        if (codes != finite) FAIL(t, "%s: %d of %d finite codes", info->name, codes, finite);
        operand_free(&operand);
    }
}

static void finite_data_is_finite_and_reaches_every_code(struct test *t)
{
    check_finite_data(t, VERIFY_CODES);
    check_finite_data(t, VERIFY_FAR_SCALES);
    check_finite_data(t, VERIFY_ANY_CODES);
}

static int scale_codes_seen(const struct operand *operand, int *lowest)
{
    bool seen[256] = { false };
    int count = 0;
    for (int64_t r = 0; r < operand->matrix.rows; r++)
        for (int64_t c = 0; c < bsm_matrix_scale_columns(&operand->matrix); c++) seen[scale_at(operand, r, c)] = true;
    for (int code = 255; code >= 0; code--)
        if (seen[code]) count++, *lowest = code;
    return count;
}

/* Over many seeds: high, low and between, together near 1, tiny and large. */
static void far_scales_reach_everywhere(struct test *t)
{
    bool lowest_seen[256] = { false };
    int together[3] = { 0 }, distinct = 0;
    struct cli cli = { .seed = 1 };
    for (uint64_t seed = 0; seed < 400; seed++) {
        int lowest[2] = { -1, -1 };
        for (uint64_t stream = 0; stream < 2; stream++) {
            struct operand operand;
            operand_create_plain(&cli, &operand, BSM_MXFP4, 30, 320);
            CHECK(t, verify_fill(&operand, VERIFY_FAR_SCALES, seed, stream) == BSM_OK);
            if (scale_codes_seen(&operand, &lowest[stream]) > 21)
                FAIL(t, "seed %d: more than 21 scale codes", (int)seed);
            lowest_seen[lowest[stream]] = true;
            operand_free(&operand);
        }
        const int sum = lowest[0] + lowest[1] - 2 * 117;
        if (sum == 0) together[0]++;
        else together[sum < 0 ? 1 : 2]++;
    }
    for (int code = 0; code < 256; code++) distinct += lowest_seen[code];
    CHECK(t, distinct > 100 && lowest_seen[0] && lowest_seen[234]);
    CHECK(t, together[0] > 100 && together[1] > 50 && together[2] > 50);
}

static void scales_are_near_or_any(struct test *t)
{
    struct operand near = filled(t, BSM_MXFP4, VERIFY_CODES, 100, 640);
    struct operand any = filled(t, BSM_MXFP4, VERIFY_ANY_CODES, 200, 640),
                   nvfp4 = filled(t, BSM_NVFP4, VERIFY_ANY_CODES, 200, 640);
    int lowest = -1;
    CHECK(t, scale_codes_seen(&near, &lowest) == 21 && lowest == 117);
    CHECK(t, scale_codes_seen(&any, &lowest) == 255 && lowest == 0);
    CHECK(t, scale_codes_seen(&nvfp4, &lowest) == 254);
    operand_free(&near), operand_free(&any), operand_free(&nvfp4);
}

static void some_codes_are_not_finite(struct test *t)
{
    for (int f = 1; f < BSM_FORMAT_COUNT; f++) {
        struct operand operand = filled(t, f, VERIFY_NOT_FINITE, 100, 100);
        const bsm_format_info *info = bsm_format_get(f);
        const bsm_element_info *element = bsm_element_get((int)info->element);
        int nans = 0, infinities = 0, nan_scales = 0;
        for (int64_t r = 0; r < 100; r++)
            for (int64_t c = 0; c < 100; c++) {
                const float value = bsm_element_decode(info->element, code_at(&operand, r, c));
                nans += (bool)isnan(value), infinities += (bool)isinf(value);
            }
        for (int64_t r = 0; r < 100; r++)
            for (int64_t c = 0; c < bsm_matrix_scale_columns(&operand.matrix); c++)
                nan_scales += (bool)isnan(bsm_scale_decode(info->scale, scale_at(&operand, r, c)));
        CHECK(t, (nans > 0) == (element->nan_codes > 0) && nans < 500);
        CHECK(t, (infinities > 0) == element->has_infinity);
        CHECK(t, (nan_scales > 0) == (info->block != 0));
        operand_free(&operand);
    }
}

/* One row a code, so that the product of two has every pair. */
static void one_term_data_has_every_code(struct test *t)
{
    for (int f = 1; f < BSM_FORMAT_COUNT; f++) {
        const bsm_format_info *info = bsm_format_get(f);
        const int bits = bsm_element_get((int)info->element)->bits;
        struct operand scales = filled(t, f, VERIFY_SCALE_CODES, 256, 1),
                       elements = filled(t, f, VERIFY_ELEMENT_CODES, 256, 1);
        int not_finite = 0;
        for (int64_t r = 0; r < 256; r++) {
            if (info->block != 0 && scale_at(&scales, r, 0) != r) FAIL(t, "%s: scale of row %d", info->name, (int)r);
            if (bits <= 8 && code_at(&elements, r, 0) != (uint32_t)(r % (1 << bits)))
                FAIL(t, "%s: element of row %d", info->name, (int)r);
            if (!isfinite(bsm_element_decode(info->element, code_at(&elements, r, 0)))) not_finite++;
        }
        CHECK(t, (not_finite > 0) == (bsm_element_get((int)info->element)->nan_codes > 0));
        operand_free(&scales), operand_free(&elements);
    }
}

static void every_kind_has_a_case_and_quick_is_less(struct test *t)
{
    int kinds[VERIFY_KINDS] = { 0 }, quick = 0;
    for (int i = 0; i < verify_case_count; i++) kinds[verify_cases[i].kind]++, quick += verify_cases[i].quick;
    for (int kind = 0; kind < VERIFY_KINDS; kind++)
        CHECK(t, kinds[kind] > 0 && verify_kind_name((enum verify_kind)kind) != NULL);
    CHECK(t, quick > 0 && quick < verify_case_count);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(integers_have_exact_sums), TEST(finite_data_is_finite_and_reaches_every_code),
        TEST(far_scales_reach_everywhere), TEST(scales_are_near_or_any), TEST(some_codes_are_not_finite),
        TEST(one_term_data_has_every_code), TEST(every_kind_has_a_case_and_quick_is_less),
    };
    return TEST_MAIN(argc, argv, cases);
}

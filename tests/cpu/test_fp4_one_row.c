/* One row by mxfp4 as int8 against tiles of bf16, bit for bit: slices of A that are integers of three digits
 * and slices that are not, and rows of B that this way is not for. */
#include "two_kernels.h"

#include "core/core.h"

#include <math.h>

enum { USUAL = 127, SLICE = 32, ONE_HALF = 1, ONE = 2, ONE_AND_A_HALF = 3, SIX = 7, MINUS_ZERO = 8 };

static bool skipped(struct test *t)
{
    if (kernel_named("fp4_one_row_vnni") != NULL) return false;
    test_skip(t, "this machine has no AMX");
    return true;
}

/* Operands --------------------------------------------------------------------------------------------------------- */

static struct operand plain_b(struct test *t, const struct shape *shape)
{
    struct operand b = operand_make(shape, 0xff);
    operand_fill(t, &b, false);
    return b;
}

static struct operand mxfp4(struct test *t, int64_t rows, int64_t k)
{
    return plain_b(t, &(struct shape){ .format = BSM_MXFP4, .rows = rows, .columns = k });
}

/* One row of bf16, all zeros. */
static struct operand zeros(int64_t k)
{
    return operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = 1, .columns = k }, 0);
}

static void set_number(struct test *t, struct operand *a, int64_t k, double number)
{
    set_code(t, a, 0, k, bsm_element_encode(BSM_BF16, number, BSM_ROUND_NEAREST_EVEN, false, 0));
}

/* Normal numbers; of every third slice one is smaller by some binades, so that most of those have no integers. */
static struct operand normal_row(struct test *t, int64_t k)
{
    struct operand a = zeros(k);
    for (int64_t i = 0; i < k; i++) set_number(t, &a, i, rnd_normal(t));
    for (int64_t i = 0; i < k; i += 3 * SLICE)
        set_number(t, &a, i + rnd_below(t, BSMI_MIN(SLICE, k - i)), ldexp(rnd_normal(t), -(int)rnd_between(t, 4, 24)));
    return a;
}

static void compare(struct test *t, struct operand *a, struct operand *b, struct where at, bool as_integers)
{
    const enum way way = compare_kernels(t, "bf16_tiles_amx", "fp4_one_row_vnni", a, b, at);
    if (as_integers && way == AS_BF16)
        FAIL(t, "%s, K=%lld: went by tiles of bf16", bsm_format_get((int)a->m.format)->name, (long long)a->m.columns);
    operand_free(a), operand_free(b);
}

/* Cases ------------------------------------------------------------------------------------------------------------ */

/* bf16 by B ragged everywhere, in any packing and layout, of any chunk and group. */
static void every_shape(struct test *t)
{
    static const bsm_scale_layout layouts[] = { { .kind = BSM_LAYOUT_LINEAR }, { .kind = BSM_LAYOUT_128X4 } };
    static const int64_t depths[] = { 1,   2,   31,  32,  33,  63,   64,   65,   96,   127,  128,  129,
                                      160, 255, 256, 512, 576, 2048, 2049, 2080, 2112, 2176, 4096, 4100 };
    if (skipped(t)) return;
    for (int i = 0; i < 120; i++) {
        const int64_t k = depths[i % 24];
        struct where at = { .first_column = rnd_below(t, 2) * 2 };
        struct shape of_b = { .format = BSM_MXFP4, .rows = at.first_column + rnd_between(t, 1, 70), .columns = k };
        shape_in_any_way(t, &of_b, layouts, 2);
        if (rnd_below(t, 3) == 0) of_b.rows += of_b.rows % 2, at.split = of_b.rows / 2;
        struct operand a = normal_row(t, k), b = plain_b(t, &of_b);
        compare(t, &a, &b, at, true);
    }
}

/* A of every format: those with scales have them near 1, and among the numbers of all are some without integers. */
static void every_format_of_a(struct test *t)
{
    if (skipped(t)) return;
    for (int f = 0; f < BSM_FORMAT_COUNT; f++)
        for (int i = 0; i < 6; i++) {
            if (bsm_format_get(f) == NULL || f == (int)BSM_FORMAT_BF16
                || !kernel_named("fp4_one_row_vnni")->serves((bsm_format)f, BSM_MXFP4))
                continue;
            const int64_t k = 32 * rnd_between(t, 1, 20);
            struct operand a = operand_make(&(struct shape){ .format = (bsm_format)f, .rows = 1, .columns = k }, 0xff),
                           b = mxfp4(t, 37, k);
            operand_fill(t, &a, i < 2);
            compare(t, &a, &b, (struct where){ 0 }, bsm_format_get(f)->block != 0);
        }
}

/* More columns of K than the digits of a row are made of at once. */
static void several_stretches(struct test *t)
{
    if (skipped(t)) return;
    struct operand a = normal_row(t, 16384 + 2048 + 160), b = mxfp4(t, 33, 16384 + 2048 + 160);
    compare(t, &a, &b, (struct where){ 0 }, true);
}

/* Products of one sign, so that sums of a slice come close to 2^24 of their unit, and beyond it: two numbers are less
 * than the others by as many binades as make the unit too small.  The first product is an odd number of units, the
 * second, twice an odd one, comes when the sum is beyond 2^24: rounding at the end would give something else. */
static void largest_sums(struct test *t)
{
    if (skipped(t)) return;
    for (int binades = 0; binades < 20; binades++)
        for (int odd = 0; odd < 2; odd++) {
            struct operand a = zeros(4 * SLICE), b = mxfp4(t, 40, 4 * SLICE);
            for (int64_t i = odd; i < 4 * SLICE; i += 2) set_number(t, &a, i, 2 - (double)rnd_between(t, 1, 32) / 128);
            for (int s = 0; s < 4; s++) {
                const int64_t small = s * SLICE + 2 * rnd_below(t, 8) + odd, late = s * SLICE + 26 + odd;
                set_number(t, &a, small, ldexp(1 + 1 / 128.0, -binades));
                set_number(t, &a, late, ldexp(1 + 1 / 128.0, -binades));
                for (int64_t r = 0; r < 40; r++) {
                    fill_block(t, &b, r, s, SIX);
                    for (int n = 0; n < r % 4; n++)
                        set_code(t, &b, r, s * SLICE + rnd_below(t, SLICE), 1 + (uint32_t)(r % 7));
                    set_code(t, &b, r, small, r % 2 == 0 ? ONE_HALF : ONE_AND_A_HALF);
                    set_code(t, &b, r, late, ONE);
                }
            }
            compare(t, &a, &b, (struct where){ 0 }, true);
        }
}

/* Rows of B with scales at the ends of what needs no exponent and beyond it, with NaN, and with blocks of zeros of any
 * scale. */
static void scales_of_b(struct test *t)
{
    static const int codes[] = { 0, 1, 87, 88, 89, 165, 166, 254, 255 };
    if (skipped(t)) return;
    for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++)
        for (int zero = 0; zero < 2; zero++) {
            struct operand a = normal_row(t, 608), b = mxfp4(t, 70, 608);
            for (int64_t row = rnd_below(t, 40); row < 70; row += 1 + rnd_below(t, 8))
                for (int64_t s = rnd_below(t, 3); s < blocks_of(&b); s += codes[c] == 255 ? 100 : 1 + rnd_below(t, 6)) {
                    fill_block(t, &b, row, s, zero ? (s % 2 == 0 ? 0 : MINUS_ZERO) : SIX);
                    set_scale(t, &b, row, s, codes[c]);
                }
            compare(t, &a, &b, (struct where){ 0 }, zero ? codes[c] != 255 : codes[c] >= 88 && codes[c] <= 165);
        }
}

/* Numbers of A that no slice may have: all of the row goes as bf16. */
static void numbers_out_of_range(struct test *t)
{
    static const double numbers[] = { 0x1p60, 0x1.02p60, 0x1p127, 0x1p-60, 0x1.fep-61, 0x1p-133, 0, INFINITY, NAN };
    if (skipped(t)) return;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        for (int sign = -1; sign < 2; sign += 2) {
            struct operand a = normal_row(t, 192), b = mxfp4(t, 35, 192);
            set_number(t, &a, rnd_below(t, 192), sign * numbers[i]);
            compare(t, &a, &b, (struct where){ 0 }, false);
        }
}

/* Slices of zeros alone, of either sign; and a row of them. */
static void zeros_of_a(struct test *t)
{
    if (skipped(t)) return;
    for (int all = 0; all < 2; all++) {
        struct operand a = normal_row(t, 300), b = mxfp4(t, 35, 300);
        for (int64_t i = all ? 0 : 64; i < (all ? 300 : 96); i++) set_code(t, &a, 0, i, i % 3 == 0 ? 0x8000 : 0);
        compare(t, &a, &b, (struct where){ 0 }, true);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_shape),  TEST(every_format_of_a),   TEST(several_stretches),
                                              TEST(largest_sums), TEST(scales_of_b),         TEST(numbers_out_of_range),
                                              TEST(zeros_of_a) };
    return TEST_MAIN(argc, argv, cases);
}

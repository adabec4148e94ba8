/* Sums, through every kernel: bit for bit in the order that matmul.h defines, by a model of its own; and within the
 * error bound of fp32 sums, against the exact product.
 *
 * The model of the portable order works with exact doubles: a term, and the sum of an exact block times its scales, has
 * at most 53 bits and lies within 2^+-320.  fp32 + double is rounded once to fp32: TwoSum gives the double's rounding
 * error, with which the double is rounded to odd; 53 bits to odd and then 24 to nearest is one rounding to nearest
 * (Boldo and Melquiond, 2008). */
#include "exact/exact_help.h"
#include "rare_pairs.h"
#include "unit_sums.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { M = 7, N = 21, MOST_DEPTH = 700 };

static float add_once(float sum, double term)
{
    const double s = (double)sum + term;
    if (!isfinite(s)) return (float)s;
    const double part = s - (double)sum, error = ((double)sum - (s - part)) + (term - part);
    uint64_t bits;
    double odd = s;
    memcpy(&bits, &s, sizeof bits);
    if (error != 0 && bits % 2 == 0) odd = nextafter(s, error > 0 ? INFINITY : -INFINITY);
    return (float)odd;
}

static bool small_integers(bsm_format format)
{
    const bsm_element element = bsm_format_get((int)format)->element;
    return element == BSM_E2M1 || element == BSM_E2M3 || element == BSM_INT8;
}

static float sum_of_chain(const struct operand *a, int64_t i, const struct operand *b, int64_t j)
{
    const int64_t depth = a->matrix.columns;
    float sum = 0;
    for (int64_t k = 0; k < depth; k++) sum = add_once(sum, a->values[i * depth + k] * b->values[j * depth + k]);
    return sum;
}

/* The values of a row's elements alone, and the scale of each element, 1 where there is none. */
struct plain_row { double elements[MOST_DEPTH], scales[MOST_DEPTH]; };

static void read_plain_row(const struct operand *o, int64_t row, struct plain_row *plain)
{
    const bsm_format_info *info = bsm_format_get((int)o->matrix.format);
    for (int64_t k = 0; k < o->matrix.columns; k++) {
        uint32_t code;
        uint8_t scale;
        if (bsm_matrix_get_code(&o->matrix, 0, row, k, &code) != BSM_OK) abort();
        plain->elements[k] = element_value(info->element, code);
        plain->scales[k] = 1;
        if (info->block == 0) continue;
        if (bsm_matrix_get_scale(&o->matrix, 0, row, k / info->block, &scale) != BSM_OK) abort();
        plain->scales[k] = scale_value(info->scale, scale);
    }
}

static float sum_of_exact_blocks(const struct plain_row *a, const struct plain_row *b, int64_t depth,
                                 int64_t exact_block)
{
    float sum = 0;
    for (int64_t first = 0; first < depth; first += exact_block) {
        double of_block = 0;
        for (int64_t k = first; k < first + exact_block && k < depth; k++) of_block += a->elements[k] * b->elements[k];
        sum = add_once(sum, of_block * (a->scales[first] * b->scales[first]));
    }
    return sum;
}

static uint32_t canonical_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? 0x7fc00000 : bits;
}

/* want: M x N, in the portable order. */
static void model(const struct operand *a, const struct operand *b, uint32_t *want)
{
    static struct plain_row plain_a[M], plain_b[N];
    const int block_a = bsm_format_get((int)a->matrix.format)->block,
              block_b = bsm_format_get((int)b->matrix.format)->block;
    const bool exact = block_a != 0 && block_b != 0 && small_integers(a->matrix.format)
                       && small_integers(b->matrix.format);
    for (int64_t i = 0; i < M && exact; i++) read_plain_row(a, i, &plain_a[i]);
    for (int64_t j = 0; j < N && exact; j++) read_plain_row(b, j, &plain_b[j]);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            const float sum = exact ? sum_of_exact_blocks(&plain_a[i], &plain_b[j], a->matrix.columns,
                                                          block_a < block_b ? block_a : block_b)
                                    : sum_of_chain(a, i, b, j);
            want[i * N + j] = canonical_bits(sum);
        }
}

static struct unit_rows rows_for_units(const struct operand *o, bsm_format other)
{
    const int64_t rows = o->matrix.rows, depth = o->matrix.columns;
    double *elements = malloc((size_t)(rows * depth + 1) * 8), *scales = malloc((size_t)(rows * depth + 1) * 8);
    static struct plain_row plain;
    for (int64_t r = 0; r < rows; r++) {
        read_plain_row(o, r, &plain);
        memcpy(elements + r * depth, plain.elements, (size_t)depth * 8);
        memcpy(scales + r * depth, plain.scales, (size_t)depth * 8);
    }
    const struct unit_rows made =
        unit_rows_make(o->matrix.format, rows, depth, elements, scales, other == BSM_FORMAT_BF16);
    free(elements), free(scales);
    return made;
}

/* The same in a unit's order; fallback rows have the portable one. */
static void model_of_unit(enum unit_order order, const struct operand *a, const struct operand *b,
                          const uint32_t *portable, uint32_t *want)
{
    struct unit_rows x = rows_for_units(a, b->matrix.format), y = rows_for_units(b, a->matrix.format);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++)
            want[i * N + j] = unit_falls_back(&x, i, &y, j) ? portable[i * N + j]
                                                            : canonical_bits(unit_sum(order, &x, i, &y, j));
    unit_rows_free(&x), unit_rows_free(&y);
}

/* Every kernel ----------------------------------------------------------------------------------------------------- */

typedef void judge(struct test *t, const char *kernel, enum unit_order order, const struct operand *a,
                   const struct operand *b, void *want, const uint32_t *got);

static void through_every_kernel(struct test *t, bsm_context *context, const struct operand *a, const struct operand *b,
                                 judge *judge, void *want)
{
    uint32_t got[M * N];
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = M, .columns = N, .data = got };
    const bsm_matmul product = { .struct_size = sizeof product, .a = &a->matrix, .b = &b->matrix, .d = &d };
    int kernels = 0;
    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
        if (!bsm_kernel_serves(context, kernel, a->matrix.format, b->matrix.format)) continue;
        memset(got, 0xff, sizeof got);
        CHECK(t, bsm_context_force_kernel(context, kernel) == BSM_OK);
        if (bsm_multiply(context, &product) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        judge(t, bsm_kernel_name(kernel), unit_order_of(context, &product), a, b, want, got);
        kernels++;
    }
    CHECK(t, kernels > 0);
}

static const char *format_name(const struct operand *o) { return bsm_format_get((int)o->matrix.format)->name; }

/* The sums in each order, made when a kernel has it. */
struct wanted { bool made[UNIT_ORDERS]; uint32_t bits[UNIT_ORDERS][M * N]; };

static void judge_bits(struct test *t, const char *kernel, enum unit_order order, const struct operand *a,
                       const struct operand *b, void *want, const uint32_t *got)
{
    struct wanted *all = want;
    if (!all->made[order]) model_of_unit(order, a, b, all->bits[UNIT_NONE], all->bits[order]);
    all->made[order] = true;
    const uint32_t *wanted = all->bits[order];
    for (int i = 0; i < M * N; i++)
        if (got[i] != wanted[i]) {
            FAIL(t, "%s: %s x %s, K=%d: (%d, %d) is %08x, wanted %08x", kernel, format_name(a), format_name(b),
                 (int)a->matrix.columns, i / N, i % N, (unsigned)got[i], (unsigned)wanted[i]);
            return;
        }
}

static void check_bits(struct test *t, bsm_context *context, struct operand *a, struct operand *b)
{
    struct wanted want = { .made = { [UNIT_NONE] = true } };
    operand_decode(a), operand_decode(b);
    model(a, b, want.bits[UNIT_NONE]);
    through_every_kernel(t, context, a, b, judge_bits, &want);
}

/* Codes of a choice of scales around 1, at the ends of their range, or over all of it; NaN scales only where asked
 * for. */
enum spread { NEAR, LOW, HIGH, ENDS, ALL, WITH_NAN, SPREADS };

static void fill(struct test *t, struct operand *o, enum spread spread)
{
    const bool e8m0 = bsm_format_get((int)o->matrix.format)->scale == BSM_E8M0;
    const int top = e8m0 ? 254 : 126;
    operand_fill(t, o, spread != WITH_NAN, e8m0 ? 124 : 0x34, e8m0 ? 130 : 0x3c);
    for (int64_t r = 0; r < o->matrix.rows; r++)
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->matrix); s++) {
            const int near_end = (int)rnd_below(t, 6);
            int code;
            switch (spread) {
            case LOW: code = near_end; break;
            case HIGH: code = top - near_end; break;
            case ENDS: code = rnd_below(t, 2) != 0 ? near_end : top - near_end; break;
            case ALL: code = (int)rnd_below(t, top + 1); break;
            case WITH_NAN: code = rnd_below(t, 40) == 0 ? 255 : (int)rnd_below(t, top + 1); break;
            default: continue;
            }
            operand_set_scale(o, r, s, (uint8_t)code);
        }
}

static void order_of_sums(struct test *t)
{
    static const int64_t depths[] = { 1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 65, 96, 129, 255, 256, 257, 300 };
    bsm_context *context = context_or_stop(1);
    for (int fa = 1; fa < BSM_FORMAT_COUNT; fa++)
        for (int fb = 1; fb < BSM_FORMAT_COUNT; fb++)
            for (int spread = pair_is_rare(fa, fb) ? SPREADS : 0; spread < SPREADS; spread++) {
                const int64_t depth = spread == WITH_NAN ? rnd_between(t, 1, 40) : depths[rnd_below(t, 17)];
                /* every other time the two sides' scales pull in opposite directions, so that sums stay within fp32 */
                const enum spread opposite = spread == LOW ? HIGH : spread == HIGH ? LOW : NEAR;
                const enum spread other = rnd_below(t, 2) != 0 ? (enum spread)spread : opposite;
                struct operand a = operand_make((bsm_format)fa, M, depth), b = operand_make((bsm_format)fb, N, depth);
                fill(t, &a, (enum spread)spread), fill(t, &b, other);
                check_bits(t, context, &a, &b);
                operand_free(&a), operand_free(&b);
            }
    bsm_context_destroy(context);
}

/* One scale for each side, so that the exponents of a whole tile lie together just within, or just beyond, what fp32
 * holds: there a kernel changes paths.  e8m0 is 2^exponent; beside it ue4m3 is its largest or smallest. */
struct scale_pair { uint8_t a, b; };

static int scales_near_the_guards(struct test *t, bsm_scale a, bsm_scale b, struct scale_pair *pairs)
{
    int count = 0;
    if (a == BSM_E8M0 && b == BSM_E8M0)
        for (int exponent = -154; exponent <= 132; exponent++) {
            if (exponent > -146 && exponent < 122) continue;
            const int high = exponent > 0,
                      first = (int)rnd_between(t, high ? exponent - 127 : -127, high ? 127 : exponent + 127);
            pairs[count++] = (struct scale_pair){ (uint8_t)(first + 127), (uint8_t)(exponent - first + 127) };
        }
    else if (a == BSM_E8M0)
        for (int exponent = -127; exponent <= 127; exponent++) {
            if (exponent > -120 && exponent < 108) continue;
            pairs[count++] = (struct scale_pair){ (uint8_t)(exponent + 127), exponent > 0 ? 126 : 1 };
        }
    return count;
}

static void set_all_scales(struct operand *o, uint8_t code)
{
    for (int64_t r = 0; r < o->matrix.rows; r++)
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->matrix); s++) operand_set_scale(o, r, s, code);
}

static void scales_at_the_guards(struct test *t)
{
    bsm_context *context = context_or_stop(1);
    for (int fa = 1; fa < BSM_FORMAT_COUNT; fa++)
        for (int fb = 1; fb < BSM_FORMAT_COUNT; fb++) {
            if (pair_is_rare(fa, fb)) continue;
            struct scale_pair pairs[64];
            const bsm_scale first = bsm_format_get(fa)->scale, second = bsm_format_get(fb)->scale;
            const bool turned = first != BSM_E8M0;
            const int count = scales_near_the_guards(t, turned ? second : first, turned ? first : second, pairs);
            struct operand a = operand_make((bsm_format)fa, M, 33), b = operand_make((bsm_format)fb, N, 33);
            operand_fill(t, &a, true, 0, 100), operand_fill(t, &b, true, 0, 100);
            for (int i = 0; i < count; i++) {
                set_all_scales(&a, turned ? pairs[i].b : pairs[i].a),
                    set_all_scales(&b, turned ? pairs[i].a : pairs[i].b);
                check_bits(t, context, &a, &b);
            }
            operand_free(&a), operand_free(&b);
        }
    bsm_context_destroy(context);
}

/* Error ------------------------------------------------------------------------------------------------------------ */

struct reference { double sum[M * N], magnitude[M * N]; };

/* K fused multiply-adds: K relative errors of 2^-24 on partial sums that stay below the magnitude times (1 + gamma),
 * and, where a partial sum is subnormal, an absolute one of 2^-150 each; the exact sum itself was rounded to fp64.
 * Units: as many as their order has.  No operand here is a fallback row, or has numbers that a unit flushes. */
static void judge_error(struct test *t, const char *kernel, enum unit_order order, const struct operand *a,
                        const struct operand *b, void *want, const uint32_t *got)
{
    const struct reference *reference = want;
    const int64_t roundings = unit_roundings(order, a->matrix.format, b->matrix.format, a->matrix.columns);
    const double nu = (double)roundings * 0x1p-24, gamma = nu / (1 - nu);
    for (int i = 0; i < M * N; i++) {
        float value;
        memcpy(&value, &got[i], sizeof value);
        const double error = fabs((double)value - reference->sum[i]);
        const double bound = (gamma + 0x1p-52) * reference->magnitude[i] + (double)a->matrix.columns * 0x1p-149;
        if (!(error <= bound))
            FAIL(t, "%s: %s x %s, K=%d: (%d, %d) is %a, exactly %a: beyond %a", kernel, format_name(a), format_name(b),
                 (int)a->matrix.columns, i / N, i % N, (double)value, reference->sum[i], bound);
    }
}

/* Wide elements are cut so that no sum leaves fp32's range. */
static void cut(struct operand *o)
{
    if (o->matrix.format != BSM_FORMAT_FP32 && o->matrix.format != BSM_FORMAT_BF16) return;
    const bool single = o->matrix.format == BSM_FORMAT_FP32;
    for (int64_t i = 0; i < o->matrix.rows; i++)
        for (int64_t k = 0; k < o->matrix.columns; k++) {
            uint32_t code;
            if (bsm_matrix_get_code(&o->matrix, 0, i, k, &code) != BSM_OK) abort();
            const int shift = single ? 23 : 7;
            const uint32_t exponent = (code >> shift) & 255, kept = 112 + exponent % 32;
            operand_set(o, i, k, (code & ~((uint32_t)255 << shift)) | kept << shift);
        }
}

static void error_bound(struct test *t)
{
    bsm_context *context = context_or_stop(1);
    for (int fa = 1; fa < BSM_FORMAT_COUNT; fa++)
        for (int fb = 1; fb < BSM_FORMAT_COUNT; fb++) {
            if (pair_is_rare(fa, fb)) continue;
            const int64_t depth = rnd_between(t, 1, MOST_DEPTH);
            struct operand a = operand_make((bsm_format)fa, M, depth), b = operand_make((bsm_format)fb, N, depth);
            struct reference reference;
            const bsm_real_matrix sum = result_of(BSM_REAL_FP64, M, N, reference.sum);
            const bsm_real_matrix magnitude = result_of(BSM_REAL_FP64, M, N, reference.magnitude);
            fill(t, &a, NEAR), fill(t, &b, NEAR);
            cut(&a), cut(&b);
            CHECK(t, bsm_matmul_exact(context, &a.matrix, &b.matrix, &sum, &magnitude) == BSM_OK);
            int zeros = 0;
            for (int i = 0; i < M * N; i++) {
                zeros += reference.magnitude[i] == 0;
                CHECK(t, reference.magnitude[i] >= 0 && reference.magnitude[i] < FLT_MAX / 2);
            }
            CHECK(t, zeros < M * N);
            through_every_kernel(t, context, &a, &b, judge_error, &reference);
            operand_free(&a), operand_free(&b);
        }
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(order_of_sums), TEST(scales_at_the_guards), TEST(error_bound) };
    return TEST_MAIN(argc, argv, cases);
}

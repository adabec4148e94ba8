/* Sums: the accumulator alone, random operands of every pair of formats against counters, cancellation, ties, and
 * depths beyond what carries may wait for. */
#include "exact_help.h"

#include "exact/accumulator.h"

#include <math.h>
#include <stdlib.h>

/* The accumulator -------------------------------------------------------------------------------------------------- */

enum { LIMBS = 12 };

/* As many terms as may come between two settles, at the bounds of a term: the sum is the same as that of few wide
 * terms. */
static void accumulator_holds_its_terms(struct test *t)
{
    const int64_t narrow = ((int64_t)1 << BSMI_NARROW_BITS) - 1;
    const bsmi_int128 wide = ((bsmi_int128)1 << 94) - 1 + ((bsmi_int128)1 << 94);     /* 2^95 - 1 */
    for (int position = 0; position < 70; position++)
        for (int sign = -1; sign <= 1; sign += 2) {
            int64_t narrow_limbs[LIMBS] = { 0 }, wide_limbs[LIMBS] = { 0 }, want_narrow[LIMBS] = { 0 },
                    want_wide[LIMBS] = { 0 };
            for (int i = 0; i < BSMI_TERMS_BETWEEN_SETTLES; i++) {
                bsmi_limbs_add_narrow(narrow_limbs, sign * narrow, position);
                bsmi_limbs_add_wide(wide_limbs, sign * wide, position);
            }
            bsmi_limbs_add_wide(want_narrow, sign * narrow, position + 15);
            bsmi_limbs_add_wide(want_wide, sign * wide, position + 15);
            bsmi_limbs_settle(narrow_limbs, LIMBS), bsmi_limbs_settle(wide_limbs, LIMBS);
            bsmi_limbs_settle(want_narrow, LIMBS), bsmi_limbs_settle(want_wide, LIMBS);
            CHECK(t, memcmp(narrow_limbs, want_narrow, sizeof want_narrow) == 0);
            CHECK(t, memcmp(wide_limbs, want_wide, sizeof want_wide) == 0);
        }
}

/* Random limbs, also ones that have not been settled. */
static void accumulator_rounds(struct test *t)
{
    for (int round = 0; round < 20000; round++) {
        int64_t limbs[LIMBS] = { 0 };
        struct counters sum = { { 0 } };
        const int lowest = (int)rnd_between(t, -300, 0);
        for (int64_t terms = rnd_between(t, 1, 4); terms > 0; terms--) {
            const int position = (int)rnd_between(t, 0, 250);
            const int64_t value = (int64_t)(rnd(t) >> rnd_between(t, 16, 63)) * (rnd_below(t, 2) != 0 ? 1 : -1);
            bsmi_limbs_add_narrow(limbs, value, position);
            counters_add(&sum, ldexp((double)value, lowest + position), 1);
        }
        const bsm_real type = (bsm_real)rnd_below(t, BSM_REAL_COUNT);
        const uint64_t bits = bsmi_limbs_round(limbs, LIMBS, lowest, type);
        if (!rounded_rightly(&sum, type, bits))
            FAIL(t, "round %d: %s %016" PRIx64, round, bsm_real_name((int)type), bits);
    }
}

/* The numbers of a type and the midpoints between them, and each a hair up and down: every code of fp16 and bf16. */
static void accumulator_rounds_around_every_code(struct test *t)
{
    static const bsm_real narrow_types[] = { BSM_REAL_FP16, BSM_REAL_BF16 };
    for (int which = 0; which < 2; which++) {
        const bsm_real type = narrow_types[which];
        const bsm_element element = type == BSM_REAL_FP16 ? BSM_FP16 : BSM_BF16;
        const int lowest = -150;
        for (uint64_t code = 0; code < infinity_bits(type, false); code++) {
            const double here = element_value(element, (uint32_t)code),
                         behind_last = type == BSM_REAL_FP16 ? 65536 : 0x1p128;
            const double next =
                code + 1 == infinity_bits(type, false) ? behind_last : element_value(element, (uint32_t)code + 1);
            for (int pick = 0; pick < 5; pick++) {            /* the number; the midpoint, a hair below and above; below
                                                                 the next */
                const double value = pick == 0 ? here : pick == 4 ? next : here / 2 + next / 2;
                const int hair = pick == 1 || pick == 4 ? -1 : pick == 3 ? 1 : 0;
                const uint64_t want = pick == 0 || pick == 1 ? code : pick == 2 ? code + code % 2 : code + 1;
                int64_t limbs[LIMBS] = { 0 };
                int exponent;
                const int64_t integer = (int64_t)ldexp(frexp(value, &exponent), 20);
                if (integer != 0) bsmi_limbs_add_narrow(limbs, integer, exponent - 20 - lowest + 32);
                bsmi_limbs_add_narrow(limbs, hair, 0);
                if (value == 0 && hair < 0) continue;
                const uint64_t got = bsmi_limbs_round(limbs, LIMBS, lowest - 32, type);
                if (got != want)
                    FAIL(t, "%s code %04x pick %d: %04x wanted %04x", bsm_real_name((int)type), (unsigned)code, pick,
                         (unsigned)got, (unsigned)want);
            }
        }
    }
}

/* Products --------------------------------------------------------------------------------------------------------- */

static void check_product(struct test *t, bsm_context *context, struct operand *a, struct operand *b, bsm_real type)
{
    const int64_t rows = a->matrix.rows, columns = b->matrix.rows;
    uint64_t sums[64], magnitudes[64];
    const bsm_real_matrix sum = result_of(type, rows, columns, sums),
                          magnitude = result_of(type, rows, columns, magnitudes);
    CHECK_OR_RETURN(t, rows * columns <= 64);
    operand_decode(a), operand_decode(b);
    CHECK(t, bsm_matmul_exact(context, &a->matrix, &b->matrix, &sum, &magnitude) == BSM_OK);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            if (!product_is_right(a, i, b, j, false, type, load_bits(type, sums, i * columns + j))
                || !product_is_right(a, i, b, j, true, type, load_bits(type, magnitudes, i * columns + j)))
                FAIL(t, "%s x %s, K=%d, %s, (%d, %d): %016" PRIx64 ", magnitude %016" PRIx64,
                     bsm_format_get((int)a->matrix.format)->name, bsm_format_get((int)b->matrix.format)->name,
                     (int)a->matrix.columns, bsm_real_name((int)type), (int)i, (int)j,
                     load_bits(type, sums, i * columns + j), load_bits(type, magnitudes, i * columns + j));
}

/* Scales near 1, or anything but NaN. */
static void fill_finite(struct test *t, struct operand *o, bool extreme)
{
    const bool e8m0 = bsm_format_get((int)o->matrix.format)->scale == BSM_E8M0;
    if (extreme) operand_fill(t, o, true, 0, e8m0 ? 254 : 126);
    else operand_fill(t, o, true, e8m0 ? 122 : 0x30, e8m0 ? 132 : 0x40);
}

static void random_operands(struct test *t)
{
    static const int64_t depths[] = { 1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 65, 255, 256, 257, 300 };
    bsm_context *context = context_or_stop(1);
    for (int fa = 1; fa < BSM_FORMAT_COUNT; fa++)
        for (int fb = 1; fb < BSM_FORMAT_COUNT; fb++)
            for (int round = 0; round < 4; round++) {
                const int64_t depth = depths[rnd_below(t, 15)];
                struct operand a = operand_make((bsm_format)fa, 2, depth), b = operand_make((bsm_format)fb, 3, depth);
                fill_finite(t, &a, round % 2 != 0), fill_finite(t, &b, round % 2 != 0);
                check_product(t, context, &a, &b, (bsm_real)((fa + fb + round) % BSM_REAL_COUNT));
                operand_free(&a), operand_free(&b);
            }
    bsm_context_destroy(context);
}

/* A few codes and scales replaced by any, NaN and infinity among them; the others zero or finite. */
static void random_nonfinite(struct test *t)
{
    bsm_context *context = context_or_stop(1);
    for (int fa = 1; fa < BSM_FORMAT_COUNT; fa++)
        for (int fb = 1; fb < BSM_FORMAT_COUNT; fb++)
            for (int round = 0; round < 3; round++) {
                const int64_t depth = rnd_between(t, 1, 6);
                struct operand a = operand_make((bsm_format)fa, 3, depth), b = operand_make((bsm_format)fb, 3, depth);
                struct operand *both[2] = { &a, &b };
                for (int which = 0; which < 2; which++) {
                    const bsm_element_info *e =
                        bsm_element_get((int)bsm_format_get((int)both[which]->matrix.format)->element);
                    const uint32_t infinity = e->has_infinity ? e->max_code + 1 : 0, sign = 1u << (e->bits - 1);
                    if (round > 0) fill_finite(t, both[which], true);
                    for (int64_t i = 0; i < 3 * depth; i++) {
                        const int64_t pick = rnd_below(t, 12);
                        if (pick < 2)
                            operand_set(both[which], i / depth, i % depth, pick == 0 ? infinity : infinity | sign);
                        if (pick == 2) operand_set(both[which], i / depth, i % depth, pick % 2 == 0 ? 0 : sign);
                        if (pick == 3 && rnd_below(t, 4) == 0)
                            operand_set(both[which], i / depth, i % depth, e->nan_code);
                    }
                    if (bsm_format_get((int)both[which]->matrix.format)->scale != BSM_UNSCALED && rnd_below(t, 3) == 0)
                        operand_set_scale(both[which], rnd_below(t, 3), 0, rnd_below(t, 2) != 0 ? 255 : 0);
                }
                check_product(t, context, &a, &b, (bsm_real)((fa + fb + round) % BSM_REAL_COUNT));
                operand_free(&a), operand_free(&b);
            }
    bsm_context_destroy(context);
}

/* x - x + tiny: the largest value of each pair cancels, the smallest stays. */
static void cancellation(struct test *t)
{
    bsm_context *context = context_or_stop(1);
    for (int fa = 1; fa < BSM_FORMAT_COUNT; fa++)
        for (int fb = 1; fb < BSM_FORMAT_COUNT; fb++) {
            struct operand a = operand_make((bsm_format)fa, 1, 96), b = operand_make((bsm_format)fb, 1, 96);
            struct operand *both[2] = { &a, &b };
            for (int which = 0; which < 2; which++) {
                const bsm_format_info *info = bsm_format_get((int)both[which]->matrix.format);
                const bsm_element_info *e = bsm_element_get((int)info->element);
                operand_set(both[which], 0, 5, e->max_code);
                operand_set(both[which], 0, 40, 1);
                /* two's complement has no sign bit */
                const uint32_t negative =
                    info->element == BSM_INT8 ? 256 - e->max_code : e->max_code | 1u << (e->bits - 1);
                operand_set(both[which], 0, 70, which == 1 ? e->max_code : negative);
                for (int64_t s = 0; s < bsm_matrix_scale_columns(&both[which]->matrix); s++) {
                    const bool middle = s * info->block >= 32 && s * info->block < 64;
                    operand_set_scale(both[which], 0, s,
                                      info->scale == BSM_E8M0 ? (middle ? 0 : 254)
                                      : middle                ? 1
                                                              : 126);
                }
            }
            for (int type = 0; type < BSM_REAL_COUNT; type++) check_product(t, context, &a, &b, (bsm_real)type);
            operand_free(&a), operand_free(&b);
        }
    bsm_context_destroy(context);
}

/* Fills a row with one code. */
static void fill_row(struct operand *o, uint32_t code)
{
    const int bits = bsm_element_get((int)bsm_format_get((int)o->matrix.format)->element)->bits;
    for (int64_t k = 0; k < o->matrix.columns; k++) {
        if (bits == 32) ((uint32_t *)o->matrix.data)[k] = code;
        else if (bits == 16) ((uint16_t *)o->matrix.data)[k] = (uint16_t)code;
        else if (bits == 8) ((uint8_t *)o->matrix.data)[k] = (uint8_t)code;
        else ((uint8_t *)o->matrix.data)[k / 2] = (uint8_t)(code << 4 | code);
    }
}

static void check_full_rows(struct test *t, bsm_context *context, struct operand *a, struct operand *b)
{
    uint64_t bits;
    const bsm_real_matrix sum = result_of(BSM_REAL_FP64, 1, 1, &bits);
    operand_decode(a), operand_decode(b);
    CHECK(t, bsm_matmul_exact(context, &a->matrix, &b->matrix, &sum, NULL) == BSM_OK);
    if (!product_is_right(a, 0, b, 0, false, BSM_REAL_FP64, bits))
        FAIL(t, "%s x %s, K=%d, first codes' values %a and %a: %016" PRIx64,
             bsm_format_get((int)a->matrix.format)->name, bsm_format_get((int)b->matrix.format)->name,
             (int)a->matrix.columns, a->values[0], b->values[0], bits);
}

/* More equal terms than may come between two settles.  The exponents of fp32 and bf16 put them at each of the 32 bits
 * of a limb, one of which fills it fastest.  One tiny term is with them. */
static void deep_sums(struct test *t)
{
    static const bsm_format formats[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_FP16,
                                          BSM_MXFP8_E5M2,  BSM_MXFP8_E4M3,  BSM_NVFP4 };
    const int64_t depth = 70000;
    bsm_context *context = context_or_stop(1);
    for (int f = 0; f < 6; f++) {
        const bsm_element_info *e = bsm_element_get((int)bsm_format_get((int)formats[f])->element);
        struct operand a = operand_make(formats[f], 1, depth), b = operand_make(formats[f], 1, depth);
        for (uint32_t shift = 0; shift < (f < 2 ? 32 : 1); shift++) {
            fill_row(&a, e->max_code - (shift / 2 << e->mantissa_bits));
            fill_row(&b, e->max_code - ((shift + 1) / 2 << e->mantissa_bits));
            operand_set(&a, 0, 77, 1), operand_set(&b, 0, 77, 1);
            check_full_rows(t, context, &a, &b);
        }
        operand_free(&a), operand_free(&b);
    }
    bsm_context_destroy(context);
}

/* The same for exact blocks whose sums have more than 48 bits: the largest codes, under scales that put them at each
 * bit of a limb. */
static void deep_runs(struct test *t)
{
    static const struct { bsm_format a, b; int64_t depth; } pairs[] = {
        { BSM_MXFP8_E4M3, BSM_FORMAT_FP16, 2000 },  { BSM_MXFP8_E5M2, BSM_FORMAT_FP16, 2000 },
        { BSM_MXFP8_E5M2, BSM_MXFP8_E5M2, 2000 },   { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, 20000 },
        { BSM_MXINT8, BSM_FORMAT_FP16, 20000 },
    };
    bsm_context *context = context_or_stop(1);
    for (int p = 0; p < 5; p++) {
        const bsm_element first = bsm_format_get((int)pairs[p].a)->element,
                          second = bsm_format_get((int)pairs[p].b)->element;
        struct operand a = operand_make(pairs[p].a, 1, pairs[p].depth), b = operand_make(pairs[p].b, 1, pairs[p].depth);
        fill_row(&a, first == BSM_INT8 ? 0x80 : bsm_element_get((int)first)->max_code);
        fill_row(&b, bsm_element_get((int)second)->max_code);
        for (uint8_t scale = 110; scale < 142; scale++) {
            for (int64_t s = 0; s < bsm_matrix_scale_columns(&a.matrix); s++) operand_set_scale(&a, 0, s, scale);
            check_full_rows(t, context, &a, &b);
        }
        operand_free(&a), operand_free(&b);
    }
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(accumulator_holds_its_terms), TEST(accumulator_rounds), TEST(accumulator_rounds_around_every_code),
        TEST(random_operands), TEST(random_nonfinite), TEST(cancellation), TEST(deep_sums), TEST(deep_runs),
    };
    return TEST_MAIN(argc, argv, cases);
}

/* Values to codes: all 16-bit sources, midpoints and their neighbours, overflow, NaN, stochastic rounding, and the
 * floating-point mode of the caller. */
#include "format/format.h"
#include "fp_mode.h"
#include "oracle.h"
#include "test.h"

#include <float.h>

static uint32_t encode(bsm_element element, double value, bool saturate)
{
    return bsm_element_encode(element, value, BSM_ROUND_NEAREST_EVEN, saturate, 0xffffffff);
}

/* Compares with the search, both signs, saturating and not. */
static void check_value(struct test *t, bsm_element element, double value)
{
    for (int sign = 0; sign < 2; sign++)
        for (int saturate = 0; saturate < 2; saturate++) {
            const double signed_value = sign ? -value : value;
            const uint32_t got = encode(element, signed_value, saturate),
                           want = oracle_encode(element, signed_value, saturate);
            if (got != want)
                FAIL(t, "%s of %a, saturate %d: code 0x%x, want 0x%x", bsm_element_get((int)element)->name,
                     signed_value, saturate, got, want);
        }
}

static void all_16_bit_sources(struct test *t)
{
    for (int element = 0; element < BSM_ELEMENT_COUNT; element++)
        for (uint32_t bits = 0; bits < 65536; bits++)
            for (int saturate = 0; saturate < 2; saturate++) {
                const double bf16 = bsmi_bf16_to_float((uint16_t)bits), fp16 = bsmi_fp16_to_float((uint16_t)bits);
                const uint32_t from_bf16 = encode((bsm_element)element, bf16, saturate);
                const uint32_t from_fp16 = encode((bsm_element)element, fp16, saturate);
                if (from_bf16 != oracle_encode((bsm_element)element, bf16, saturate))
                    FAIL(t, "element %d bf16 0x%x", element, bits);
                if (from_fp16 != oracle_encode((bsm_element)element, fp16, saturate))
                    FAIL(t, "element %d fp16 0x%x", element, bits);
            }
}

static void every_code_comes_back(struct test *t)
{
    for (int element = 0; element < BSM_ELEMENT_COUNT; element++) {
        const int bits = oracle_elements[element].bits;
        const uint64_t step = bits == 32 ? 65521 : 1;
        for (uint64_t code = 0; code < (uint64_t)1 << bits; code += step) {
            const double value = oracle_decode((bsm_element)element, (uint32_t)code);
            if (isnan(value) || (element == BSM_INT8 && code == 0x80)) continue;
            const uint32_t back = encode((bsm_element)element, value, false);
            if (back != code) FAIL(t, "element %d code 0x%" PRIx64 " came back as 0x%x", element, code, back);
        }
    }
}

/* One step of fp32, or of double, away from every midpoint of neighbours, the one above the largest code included.  The
 * steps of double are the double-rounding trap: through fp32 they would become the midpoint itself. */
static void around_midpoints(struct test *t)
{
    int traps = 0;
    for (int i = 0; i < BSM_ELEMENT_COUNT; i++) {
        const bsm_element element = (bsm_element)i;
        const uint32_t largest = oracle_elements[i].largest;
        for (uint64_t code = 0; code <= largest; code += oracle_elements[i].bits == 32 ? 65521 : 1) {
            const double below = oracle_decode(element, (uint32_t)code);
            const double step =
                below - (code > 0 ? oracle_decode(element, (uint32_t)code - 1) : -oracle_decode(element, 1));
            const double above = code < largest ? oracle_decode(element, (uint32_t)code + 1) : below + step;
            const double middle = (below + above) / 2;
            check_value(t, element, middle);
            check_value(t, element, nextafter(middle, 0));
            check_value(t, element, nextafter(middle, DBL_MAX));
            check_value(t, element, nextafter(below, 0));
            check_value(t, element, nextafter(below, DBL_MAX));
            if (fabs(middle) > (double)FLT_MAX) continue;
            check_value(t, element, (double)nextafterf((float)middle, 0));
            check_value(t, element, (double)nextafterf((float)middle, FLT_MAX));
            traps += (double)(float)nextafter(middle, DBL_MAX) == middle;
        }
    }
    CHECK(t, traps > 1000);
}

static void random_doubles(struct test *t)
{
    for (int i = 0; i < 20000; i++) {
        const double value = bsmi_double_from_bits(rnd(t));
        for (int element = 0; element < BSM_ELEMENT_COUNT; element++) {
            if (isnan(value)) continue;
            check_value(t, (bsm_element)element, value);
            check_value(t, (bsm_element)element,
                        ldexp(1 + (double)(rnd(t) >> 12) * 0x1p-52, (int)rnd_between(t, -20, 20)));
        }
    }
}

static void what_is_no_finite_number(struct test *t)
{
    static const struct {
        bsm_element element;
        uint32_t nan, saturated, negative_saturated, infinity, negative_infinity;
    } rows[] = {
        { BSM_E4M3, 0x7f, 0x7e, 0xfe, 0x7f, 0x7f },
        { BSM_E5M2, 0x7f, 0x7b, 0xfb, 0x7c, 0xfc },
        { BSM_E3M2, 0x1f, 0x1f, 0x3f, 0x1f, 0x3f },
        { BSM_E2M3, 0x1f, 0x1f, 0x3f, 0x1f, 0x3f },
        { BSM_E2M1, 0x07, 0x07, 0x0f, 0x07, 0x0f },
        { BSM_INT8, 0x00, 0x7f, 0x81, 0x7f, 0x81 },
        { BSM_BF16, 0x7fc0, 0x7f7f, 0xff7f, 0x7f80, 0xff80 },
        { BSM_FP16, 0x7e00, 0x7bff, 0xfbff, 0x7c00, 0xfc00 },
        { BSM_FP32, 0x7fc00000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000 },
    };
    for (int i = 0; i < BSM_ELEMENT_COUNT; i++) {
        const bsm_element element = rows[i].element;
        const double huge[] = { (double)INFINITY, DBL_MAX, 1e300 };
        for (int rounding = 0; rounding < 2; rounding++) {
            const bsm_rounding r = (bsm_rounding)rounding;
            for (int saturate = 0; saturate < 2; saturate++)
                for (int payload = 0; payload < 4; payload++) {
                    const uint64_t bits =
                        (uint64_t)0x7ff << 52 | (uint64_t)(payload & 1) << 63 | (payload < 2 ? 1 : (uint64_t)1 << 51);
                    CHECK(t, bsm_element_encode(element, bsmi_double_from_bits(bits), r, saturate, 0x80000000)
                                 == rows[i].nan);
                }
            for (int j = 0; j < 3; j++) {
                CHECK(t, bsm_element_encode(element, huge[j], r, true, 1) == rows[i].saturated);
                CHECK(t, bsm_element_encode(element, -huge[j], r, true, 1) == rows[i].negative_saturated);
                CHECK(t, bsm_element_encode(element, huge[j], r, false, 1) == rows[i].infinity);
                CHECK(t, bsm_element_encode(element, -huge[j], r, false, 1) == rows[i].negative_infinity);
            }
            const uint32_t sign = element == BSM_INT8 ? 0 : (uint32_t)1 << (oracle_elements[element].bits - 1);
            CHECK(t, bsm_element_encode(element, -0.0, r, true, 0xffffffff) == sign);
            CHECK(t, bsm_element_encode(element, 0.0, r, true, 0xffffffff) == 0);
            CHECK(t, bsm_element_encode(element, -DBL_TRUE_MIN, r, false, 0xffffffff) == sign);
        }
    }
    CHECK(t, encode(BSM_INT8, -2, false) == 0x81 && encode(BSM_INT8, -2, true) == 0x81);        /* never 0x80 */
}

static void ue4m3_codes(struct test *t)
{
    for (uint32_t bits = 0; bits < 0x8000; bits++) {
        const double magnitudes[] = { bsmi_bf16_to_float((uint16_t)bits), bsmi_fp16_to_float((uint16_t)bits) };
        for (int i = 0; i < 2; i++)
            if (bsmi_ue4m3_encode(magnitudes[i]) != oracle_encode(BSM_E4M3, magnitudes[i], true))
                FAIL(t, "ue4m3 of %a", magnitudes[i]);
    }
    CHECK(t, bsmi_ue4m3_encode(0x1p-10) == 0 && bsmi_ue4m3_encode(nextafter(0x1p-10, 1)) == 1);
    CHECK(t, bsmi_ue4m3_encode(464) == 0x7e && bsmi_ue4m3_encode((double)INFINITY) == 0x7e);
    CHECK(t, bsmi_ue4m3_encode((double)NAN) == 0x7f);
}

/* The many-at-once encoder is the single one, to nearest and saturating: 16-bit sources, midpoints of all elements, any
 * double. */
static void many_at_once(struct test *t)
{
    enum { COUNT = 65536 * 2 + 20000 };
    static double values[COUNT];
    static uint8_t codes[COUNT + 1];
    int count = 0;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        values[count++] = (double)bsmi_bf16_to_float((uint16_t)bits);
        values[count++] = (double)bsmi_fp16_to_float((uint16_t)bits);
    }
    for (; count < COUNT; count++)
        values[count] = count % 2 ? bsmi_double_from_bits(rnd(t))
                                  : ldexp((double)rnd_between(t, -4095, 4095), (int)rnd_between(t, -30, 6));
    for (int element = BSM_E4M3; element <= BSM_INT8; element++) {
        codes[COUNT] = 0xa5;
        bsmi_element_encode_nearest((bsm_element)element, values, COUNT, codes);
        for (int i = 0; i < COUNT; i++)
            if (codes[i] != encode((bsm_element)element, values[i], true))
                FAIL(t, "element %d of %a: 0x%x", element, values[i], codes[i]);
        CHECK(t, codes[COUNT] == 0xa5);
    }
}

/* Of 2^bits random values, evenly spaced, as many round up as the fraction says: spaced from 0 its floor, from the last
 * value of each interval its ceiling, and both are the same where the fraction is a multiple of 2^-bits. */
static void check_round_ups(struct test *t, bsm_element element, double value, int bits)
{
    const double magnitude = fabs(value);
    const uint32_t low = oracle_floor_code(element, magnitude), largest = oracle_elements[element].largest;
    if (low >= largest) return;
    const double low_value = oracle_decode(element, low), step = oracle_decode(element, low + 1) - low_value;
    const double expected = ldexp((magnitude - low_value) / step, bits);
    const uint32_t down = value < 0 ? oracle_negative(element, low) : low,
                   up = value < 0 ? oracle_negative(element, low + 1) : low + 1;
    for (int end = 0; end < 2; end++) {
        int64_t ups = 0;
        for (uint32_t i = 0; i < (uint32_t)1 << bits; i++) {
            const uint32_t random = i << (32 - bits) | (end ? ((uint32_t)1 << (32 - bits)) - 1 : 0);
            const uint32_t code = bsm_element_encode(element, value, BSM_ROUND_STOCHASTIC, true, random);
            if (code != down && code != up) FAIL(t, "element %d of %a gave 0x%x", (int)element, value, code);
            ups += code == up;
        }
        /* What is below 2^-32 of the step is cut. */
        const double cut = floor(ldexp(expected, 32 - bits)) * ldexp(1, bits - 32);
        const double want = end ? ceil(cut) : floor(cut);
        if ((double)ups != want)
            FAIL(t, "element %d of %a: %" PRId64 " round up of 2^%d, want %g", (int)element, value, ups, bits, want);
    }
}

static void stochastic_counts(struct test *t)
{
    for (int element = BSM_E4M3; element <= BSM_INT8; element++) {
        for (uint32_t code = (uint32_t)element; code < 65536; code += 11) {
            const double value = bsmi_bf16_to_float((uint16_t)code);
            if (isfinite(value)) check_round_ups(t, (bsm_element)element, value, 8);
        }
        for (int i = 0; i < 300; i++)
            check_round_ups(t, (bsm_element)element, bsmi_bf16_to_float((uint16_t)rnd_between(t, 0x3000, 0x4200)), 12);
    }
    for (uint32_t code = 0; code < 65536; code += 97)
        check_round_ups(t, BSM_BF16, bsmi_fp16_to_float((uint16_t)(code & 0xfbff)), 11);
}

static void stochastic_extremes(struct test *t)
{
    for (uint32_t code = 0; code < 0x7e; code++) {
        const double value = oracle_decode(BSM_E4M3, code), next = oracle_decode(BSM_E4M3, code + 1);
        /* exact: never up */
        CHECK(t, bsm_element_encode(BSM_E4M3, value, BSM_ROUND_STOCHASTIC, true, 0xffffffff) == code);
        const double almost = next - (next - value) * 0x1p-33;
        CHECK(t, bsm_element_encode(BSM_E4M3, almost, BSM_ROUND_STOCHASTIC, true, 0) == code);
        CHECK(t, bsm_element_encode(BSM_E4M3, almost, BSM_ROUND_STOCHASTIC, true, 1) == code + 1);
    }
    CHECK(t, bsm_element_encode(BSM_E4M3, 0x1p-9 * 0x1p-32, BSM_ROUND_STOCHASTIC, true, 0xffffffff) == 1);
    CHECK(t, bsm_element_encode(BSM_E4M3, 0x1p-9 * 0x1.8p-33, BSM_ROUND_STOCHASTIC, true, 0xffffffff) == 0);
    for (int e = -1074; e < -41; e++)
        CHECK(t, bsm_element_encode(BSM_E4M3, ldexp(1, e), BSM_ROUND_STOCHASTIC, true, 0xffffffff) == 0);
    CHECK(t, bsm_element_encode(BSM_E4M3, 479, BSM_ROUND_STOCHASTIC, true, 0xffffffff) == 0x7e);
    CHECK(t, bsm_element_encode(BSM_E4M3, 479, BSM_ROUND_STOCHASTIC, false, 0xffffffff) == 0x7f);
    CHECK(t, bsm_element_encode(BSM_E4M3, 479, BSM_ROUND_STOCHASTIC, false, 0) == 0x7e);
    CHECK(t, bsm_element_encode(BSM_E5M2, -65535, BSM_ROUND_STOCHASTIC, false, 0xffffffff) == 0xfc);
}

/* splitmix64 from seed 1234567: the published sequence, its upper halves. */
static void random_bits_are_splitmix64(struct test *t)
{
    const uint64_t sequence[] = { 6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                  4593380528125082431u, 16408922859458223821u };
    for (uint64_t i = 0; i < 5; i++) CHECK(t, bsm_random_bits(1234567, i) == sequence[i] >> 32);
    CHECK(t, bsm_random_bits(0, 0) == 0xe220a839);
    CHECK(t, bsm_random_bits(7, (uint64_t)1 << 40) != bsm_random_bits(7, 0));
}

/* A double and a tail below half of its last place, rounded once. */
static void sums_round_once(struct test *t)
{
    for (int i = 0; i < 50000; i++) {
        const uint32_t bits = (uint32_t)rnd(t) & 0x7fffffff;
        const float low = bsmi_float_from_bits(bits);
        if (bits >= 0x7f7fffff) continue;
        const float high = bsmi_float_from_bits(bits + 1);
        const double middle = ((double)low + (double)high) / 2, tiny = middle * 0x1p-60;
        const float even = bits % 2 == 0 ? low : high;
        CHECK(t, bsmi_float_bits(bsmi_round_sum_to_float(middle, 0)) == bsmi_float_bits(even));
        CHECK(t, bsmi_round_sum_to_float(middle, tiny) == high);
        CHECK(t, bsmi_round_sum_to_float(middle, -tiny) == low);
        CHECK(t, bsmi_round_sum_to_float(-middle, tiny) == -low);
        CHECK(t, bsmi_round_sum_to_float(-middle, -tiny) == -high);
        CHECK(t, bsmi_round_sum_to_float(nextafter(middle, 0), tiny) == low);
        CHECK(t, bsmi_round_sum_to_float(nextafter(middle, DBL_MAX), -tiny) == high);
        CHECK(t, bsmi_round_sum_to_float((double)low, tiny * 0x1p-5) == low);
    }
    CHECK(t, isinf(bsmi_round_sum_to_float((double)FLT_MAX + 0x1p103, 0)));
    CHECK(t, bsmi_round_sum_to_float((double)FLT_MAX + 0x1p103, -1) == FLT_MAX);
    CHECK(t, isinf(bsmi_round_sum_to_float((double)INFINITY, 0)) && isnan(bsmi_round_sum_to_float((double)NAN, 0)));
}

/* Codes and values, computed in every mode that a caller's thread can be in. */
enum { MODE_VALUES = 4096 };
struct mode_results {
    uint32_t codes[BSM_ELEMENT_COUNT][MODE_VALUES], stochastic[BSM_ELEMENT_COUNT][MODE_VALUES], values[65536];
};

static void compute_in_mode(const double *values, struct mode_results *results)
{
    for (int element = 0; element < BSM_ELEMENT_COUNT; element++)
        for (int i = 0; i < MODE_VALUES; i++) {
            results->codes[element][i] = encode((bsm_element)element, values[i], i % 2 != 0);
            results->stochastic[element][i] = bsm_element_encode((bsm_element)element, values[i], BSM_ROUND_STOCHASTIC,
                                                                 i % 2 != 0, (uint32_t)i * 0x9e3779b9u);
        }
    for (uint32_t code = 0; code < 65536; code++) {
        const uint32_t scales = bsmi_float_bits(bsm_scale_decode(BSM_E8M0, (uint8_t)code)) ^
                                bsmi_float_bits(bsm_scale_decode(BSM_UE4M3, (uint8_t)code));
        results->values[code] = scales;
        for (int element = 0; element < BSM_ELEMENT_COUNT; element++)
            results->values[code] =
                results->values[code] * 31 + bsmi_float_bits(bsm_element_decode((bsm_element)element, code));
    }
}

static void the_callers_mode_does_not_matter(struct test *t)
{
    static double values[MODE_VALUES];
    static struct mode_results plain, other;
    for (int i = 0; i < MODE_VALUES; i++)
        values[i] = i % 3 == 0   ? ldexp(rnd_normal(t), (int)rnd_between(t, -12, 10))
                    : i % 3 == 1 ? bsmi_double_from_bits(rnd(t))
                                 : ldexp((double)rnd_between(t, -31, 31), (int)rnd_between(t, -12, 5));
    compute_in_mode(values, &plain);
    for (int mode = 0; mode < fp_mode_count; mode++) {
        memset(&other, 0xee, sizeof other);
        const struct fp_mode_state before = fp_mode_enter(mode);
        compute_in_mode(values, &other);
        fp_mode_leave(before);
        if (memcmp(&plain, &other, sizeof plain) != 0) FAIL(t, "results differ in mode %s", fp_mode_name(mode));
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(all_16_bit_sources),
        TEST(every_code_comes_back),
        TEST(around_midpoints),
        TEST(random_doubles),
        TEST(what_is_no_finite_number),
        TEST(ue4m3_codes),
        TEST(many_at_once),
        TEST(stochastic_counts),
        TEST(stochastic_extremes),
        TEST(random_bits_are_splitmix64),
        TEST(sums_round_once),
        TEST(the_callers_mode_does_not_matter),
    };
    return TEST_MAIN(argc, argv, cases);
}

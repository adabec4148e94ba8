/* Settling carries, and the one rounding of an exact sum. */
#include "accumulator.h"

/* The sum of up to 2^63 terms, each below 2^(term_bits + highest_position) units, is below 2^(32 count - 1): the last
 * limb, settled, is within +-2^31.  At least 64 bits lie above the highest position for narrow terms, and 64 + 49 for
 * wide ones, so the two (four) limbs that a term touches exist. */
int bsmi_limbs_count(int term_bits, int highest_position) { return (1 + 63 + term_bits + highest_position + 31) / 32; }

void bsmi_limbs_settle(int64_t *limbs, int count)
{
    for (int i = 0; i + 1 < count; i++) {
        const int64_t carry = limbs[i] >> 32;                 /* floor: the rest is not negative */
        limbs[i] &= 0xffffffff;
        limbs[i + 1] += carry;
    }
}

static const struct { int fraction_bits, bias, bits; } shapes[BSM_REAL_COUNT] = {
    [BSM_REAL_FP32] = { 23, 127, 32 },
    [BSM_REAL_FP16] = { 10, 15, 16 },
    [BSM_REAL_BF16] = { 7, 127, 16 },
    [BSM_REAL_FP64] = { 52, 1023, 64 },
};

uint64_t bsmi_real_infinity_bits(bsm_real type, bool negative)
{
    const uint64_t infinity = (uint64_t)(2 * shapes[type].bias + 1) << shapes[type].fraction_bits;
    return infinity | (uint64_t)negative << (shapes[type].bits - 1);
}

uint64_t bsmi_real_nan_bits(bsm_real type)
{
    return bsmi_real_infinity_bits(type, false) | (uint64_t)1 << (shapes[type].fraction_bits - 1);
}

/* A magnitude: leading bit of `significand` set and worth 2^exponent; `more`: something nonzero below its last bit. */
struct magnitude { uint64_t significand; int exponent; bool more; };

static struct magnitude leading_bits(const int64_t *limbs, int top, int lowest)
{
    bsmi_uint128 bits = (bsmi_uint128)(uint64_t)limbs[top] << 64;
    if (top >= 1) bits |= (uint64_t)limbs[top - 1] << 32;
    if (top >= 2) bits |= (uint64_t)limbs[top - 2];
    const int leading = 63 - __builtin_clzll((uint64_t)limbs[top]);         /* 0 .. 31 */
    const int below = leading + 1;                                          /* bits of `bits` under the 64 that are
                                                                               kept */
    struct magnitude m = { (uint64_t)(bits >> below), lowest + 32 * top + leading,
                           (uint32_t)bits << (32 - below) != 0 };
    for (int i = top - 3; i >= 0 && !m.more; i--) m.more = limbs[i] != 0;
    return m;
}

/* The code of a positive number.  In units of the last place of the result the number is significand / 2^shift. */
static uint64_t round_magnitude(struct magnitude m, bsm_real type)
{
    const int least_exponent = 1 - shapes[type].bias;         /* subnormals have the last place of this exponent */
    const int exponent = m.exponent > least_exponent ? m.exponent : least_exponent;
    const int shift = 63 - shapes[type].fraction_bits + (exponent - m.exponent);
    if (shift > 64) return 0;                                 /* less than half of the smallest subnormal */
    const uint64_t whole = shift < 64 ? m.significand >> shift : 0;
    const uint64_t rest = m.significand << (64 - shift);      /* in 2^-64 of the last place; shift >= 11 */
    const uint64_t half = (uint64_t)1 << 63;
    const bool up = rest > half || (rest == half && (m.more || (whole & 1) != 0));

    const uint64_t infinity = bsmi_real_infinity_bits(type, false);
    if (exponent > shapes[type].bias) return infinity;
    /* The leading bit of a normal number adds 1 to the exponent field, also when rounding carries into it, up to
     * infinity. */
    return ((uint64_t)(exponent - least_exponent) << shapes[type].fraction_bits) + whole + up;
}

uint64_t bsmi_limbs_round(int64_t *limbs, int count, int lowest, bsm_real type)
{
    bsmi_limbs_settle(limbs, count);
    const bool negative = limbs[count - 1] < 0;
    if (negative) {
        for (int i = 0; i < count; i++) limbs[i] = -limbs[i];
        bsmi_limbs_settle(limbs, count);
    }
    int top = count - 1;
    while (top >= 0 && limbs[top] == 0) top--;
    if (top < 0) return 0;
    return round_magnitude(leading_bits(limbs, top, lowest), type) | (uint64_t)negative << (shapes[type].bits - 1);
}

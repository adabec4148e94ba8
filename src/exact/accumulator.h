/* A wide fixed-point number: where the exact sums are kept.
 *
 * It is an array of limbs; limb i, an int64_t, counts units of 2^(lowest + 32 i), and the number is the sum of its
 * limbs.  A term is an integer times 2^(lowest + position), position >= 0.  Adding it never rounds and moves no carry:
 * a limb takes at most 2^47 (in magnitude) per term, and is 64 bits wide, so carries may wait for 2^15 terms.
 *
 *   After bsmi_limbs_settle    every limb but the last lies in [0, 2^32), and the last within +-2^31 (bsmi_limbs_count
 *                              makes the array long enough for 2^63 terms, see there).
 *   2^15 terms later           a limb is within 2^32 + 2^15 * 2^47 < 2^63: none has overflowed.
 *   While settling             the carry into a limb is below 2^31: still none overflows.
 *
 * So the sum is exact for every K that an int64_t counts, if bsmi_limbs_settle is called at least every
 * BSMI_TERMS_BETWEEN_SETTLES terms. */
#ifndef BSMI_ACCUMULATOR_H
#define BSMI_ACCUMULATOR_H

#include "blockscale/matrix.h"

__extension__ typedef __int128 bsmi_int128;
__extension__ typedef unsigned __int128 bsmi_uint128;

enum {
    BSMI_TERMS_BETWEEN_SETTLES = 1 << 15,
    BSMI_NARROW_BITS = 48,                /* a narrow term is an integer below 2^48 in magnitude */
    BSMI_WIDE_BITS = 95                   /* a wide one below 2^95 */
};

/* Adds value * 2^(lowest + position), |value| < 2^48: the low 32 bits of the shifted value go to one limb, the rest,
 * which is floor(value / 2^(32 - shift)) and within +-2^47, to the next. */
static inline void bsmi_limbs_add_narrow(int64_t *limbs, int64_t value, int position)
{
    int64_t *limb = limbs + (position >> 5);
    const int shift = position & 31;
    limb[0] += (uint32_t)((uint64_t)value << shift);
    limb[1] += value >> (32 - shift);
}

/* The same for |value| < 2^95: shifted by at most 31 it stays within 126 bits, of which the last limb takes 30. */
static inline void bsmi_limbs_add_wide(int64_t *limbs, bsmi_int128 value, int position)
{
    int64_t *limb = limbs + (position >> 5);
    const bsmi_uint128 shifted = (bsmi_uint128)value << (position & 31);
    limb[0] += (uint32_t)shifted;
    limb[1] += (uint32_t)(shifted >> 32);
    limb[2] += (uint32_t)(shifted >> 64);
    limb[3] += (int32_t)(uint32_t)(shifted >> 96);
}

/* Limbs for sums of up to 2^63 terms of `term_bits` bits at positions 0 .. highest_position. */
int bsmi_limbs_count(int term_bits, int highest_position);

/* Moves the carries upwards; the number stays the same. */
void bsmi_limbs_settle(int64_t *limbs, int count);

/* The bits of the number, rounded once to `type`: to nearest, ties to even, subnormals kept, overflow to infinity, +0
 * for zero.  Changes the limbs. */
uint64_t bsmi_limbs_round(int64_t *limbs, int count, int lowest, bsm_real type);

/* The bits of an infinity and of the canonical NaN of a type. */
uint64_t bsmi_real_infinity_bits(bsm_real type, bool negative);
uint64_t bsmi_real_nan_bits(bsm_real type);

#endif

/* The narrowest sums that cannot overflow, and the loops over a piece of two rows. */
#include "pair.h"
#include "accumulator.h"
#include "core/core.h"

enum { BLOCK_BITS = 5 };
_Static_assert(BSMI_EXACT_BLOCK == 1 << BLOCK_BITS, "an exact block of 2^5 products adds 5 bits");

/* |sum of an exact block| < 2^(bits a + bits b + 5), so a signed integer of one bit more holds it and all partial
 * sums. */
static void choose_sum_kind(const bsm_element a, const bsm_element b, struct bsmi_exact_pair *pair,
                            enum bsmi_significand *kind)
{
    if (!bsmi_exact_is_integer(a) || !bsmi_exact_is_integer(b)) {
        pair->sum_kind = BSMI_SUM_FLOATS;
        *kind = BSMI_FLOATS;
        return;
    }
    const int bits_a = bsmi_exact_integer_bits(a), bits_b = bsmi_exact_integer_bits(b),
              sum_bits = bits_a + bits_b + BLOCK_BITS;
    const bool small = bits_a < 16 && bits_b < 16 && sum_bits < 32;
    pair->sum_kind = small ? BSMI_SUM_32 : sum_bits < 64 ? BSMI_SUM_64 : BSMI_SUM_128;
    *kind = small ? BSMI_INTEGERS_16 : BSMI_INTEGERS_64;
}

/* Bits of a term: the sum of an exact block (or one product of floats) times both scales' significands.  The widest are
 * fp16 x fp16, 40 + 40 + 5 = 85 bits, and e5m2 x e5m2, 32 + 32 + 5, which BSMI_WIDE_BITS covers; of floats fp32 x fp32,
 * 24 + 24 = 48 bits, which is just narrow, and fp32 x e2m1 under ue4m3, 24 + 8 + 4. */
void bsmi_exact_pair_make(const struct bsmi_matrix *a, const struct bsmi_matrix *b, bool magnitude,
                          struct bsmi_exact_pair *pair)
{
    enum bsmi_significand kind;
    choose_sum_kind(a->element, b->element, pair, &kind);
    bsmi_exact_operand_make(a, kind, magnitude, &pair->a);
    bsmi_exact_operand_make(b, kind, magnitude, &pair->b);

    const int most = BSMI_EXACT_BLOCK, of_a = a->block != 0 ? a->block : most, of_b = b->block != 0 ? b->block : most;
    pair->exact_block = BSMI_MIN(most, BSMI_MIN(of_a, of_b));
    const int term_bits = pair->a.bits + pair->a.scale_bits + pair->b.bits + pair->b.scale_bits
                          + (pair->sum_kind == BSMI_SUM_FLOATS ? 0 : BLOCK_BITS);
    pair->narrow = term_bits <= BSMI_NARROW_BITS;
    pair->lowest = pair->a.lowest + pair->b.lowest;
    pair->limbs = bsmi_limbs_count(term_bits, pair->a.highest_position + pair->b.highest_position);
}

/* What one exact block adds. */
static inline void add_run(bool narrow, bsmi_int128 sum, struct bsmi_scaled_integer scale_a,
                           struct bsmi_scaled_integer scale_b, int64_t *limbs)
{
    const int32_t significand = scale_a.significand * scale_b.significand;
    const int position = scale_a.position + scale_b.position;
    if (narrow) bsmi_limbs_add_narrow(limbs, (int64_t)sum * significand, position);
    else bsmi_limbs_add_wide(limbs, sum * significand, position);
}

static inline int32_t sum_32(const int16_t *a, const int16_t *b, int count)
{
    int32_t sum = 0;
    for (int k = 0; k < count; k++) sum += a[k] * b[k];
    return sum;
}

static inline int64_t sum_64(const int64_t *a, const int64_t *b, int count)
{
    int64_t sum = 0;
    for (int k = 0; k < count; k++) sum += a[k] * b[k];
    return sum;
}

static inline bsmi_int128 sum_128(const int64_t *a, const int64_t *b, int count)
{
    bsmi_int128 sum = 0;
    for (int k = 0; k < count; k++) sum += (bsmi_int128)a[k] * b[k];
    return sum;
}

static void add_floats(const struct bsmi_scaled_integer *a, const struct bsmi_scaled_integer *b, int count,
                       int64_t *limbs)
{
    for (int k = 0; k < count; k++)
        bsmi_limbs_add_narrow(limbs, (int64_t)a[k].significand * b[k].significand, a[k].position + b[k].position);
}

void bsmi_exact_add(const struct bsmi_exact_pair *pair, const struct bsmi_exact_rows *a, int i,
                    const struct bsmi_exact_rows *b, int j, int count, int64_t *limbs)
{
    if (pair->sum_kind == BSMI_SUM_FLOATS) {
        add_floats(a->floats[i], b->floats[j], count, limbs);
        return;
    }
    for (int first = 0, r = 0; first < count; first += pair->exact_block, r++) {
        const int length = BSMI_MIN(pair->exact_block, count - first);
        bsmi_int128 sum;
        switch (pair->sum_kind) {
        case BSMI_SUM_32: sum = sum_32(a->integers_16[i] + first, b->integers_16[j] + first, length); break;
        case BSMI_SUM_64: sum = sum_64(a->integers_64[i] + first, b->integers_64[j] + first, length); break;
        default: sum = sum_128(a->integers_64[i] + first, b->integers_64[j] + first, length); break;
        }
        add_run(pair->narrow, sum, a->scales[i][r], b->scales[j][r], limbs);
    }
}

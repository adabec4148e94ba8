/* Blocks into codes and scales, a vector of fp32 numbers at a time.  A file that includes this once first defines
 *
 *     BSMI_QUANTIZE(name)   the name with the instantiation's suffix
 *     BSMI_TARGET           a function attribute that allows the instructions it uses
 *     LANES                 numbers of a vector: 4, 8 or 16
 *     floats, words         vectors of LANES floats and int32_t
 *     fused(a, b, c)        a b + c, rounded once
 *     larger, smaller       of words
 *     least(q, limit)       the smaller of |q| and limit, both as words
 *     block_maxima(v)       LANES vectors into one: lane i is the largest of vector i
 *     block_sums(v)         the same of sums, by bounded_sum
 *     any(v)                whether some word is not 0
 *     bytes, narrow(v)      16 bytes, and the last bytes of 16 words in 16 / LANES vectors
 *     store_bytes, store_nibbles, store_stream    16 codes as a packing has them
 *     rounded(v)            to whole numbers, 0x80000000 where there are none
 *     smaller_unsigned      of words
 *     all_bytes             as many bytes as four vectors have words
 *     narrow_four(v)        four vectors into one, with signed saturation, in an order of its own
 *     entries(table, v)     of each byte of v, at most 15, the table's
 *     store_narrowed        the codes of narrow_four as store_nibbles does it
 *     of_bf16, of_fp16      LANES numbers of 16 bits from any place
 *
 * and afterwards has bsmi_quantize_blocks.
 *
 * An element in [2^e, 2^(e + 1)) has steps of 2^(e - mantissa bits), from the smallest binade downward those of the
 * smallest.  Adding P = 2^(e + shift), whose last bit is worth one step, rounds to a whole number n of steps, which are
 * then the last bits of the sum.  It rounds as the element does, ties to even included.
 *
 * Exact quotients (e8m0 scales alone): x times a power of two is exact unless it is subnormal, and then its code is 0.
 *
 * Quotients x / d (tensor scales, ue4m3 scales) are about right, to less than 2^-21 of themselves.  Where a quotient
 * 2^-20 larger and one 2^-20 smaller have the same code, it is the code.  Blocks with another number take
 * compared_code: the sum of the quotient less half a step gives a number n whose value is the quotient's lower
 * neighbour among the codes, or on a code either neighbour.  x is then compared with d times the midpoint m above n.  d
 * is the sum of two floats, and the sign of (x - m d1) - m d2, with fused multiply-adds, is the exact one: x - m d1 is
 * exact where it is small, because both are multiples of the last bit of m d1 or x, and where it is not the second part
 * does not change the sign.  A dividing tensor scale t needs x t - m s alone, m s is exact.  In both nothing underflows
 * for tensor scales of 2^-96 to 2^96. */
#include "table.h"

#include <stddef.h>

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE BSMI_TARGET __attribute__((always_inline, unused)) static inline

enum { AHEAD = 8192 };                    /* bytes: asked for while earlier ones are computed */

typedef uint32_t unsigned_words __attribute__((vector_size(4 * LANES)));

INLINE words all(int32_t value) { return (words){ 0 } + value; }
INLINE words bits_of(float value) { return all((int32_t)bsmi_float_bits(value)); }
INLINE floats every(float value) { return (floats)bits_of(value); }
INLINE words magnitude(words v) { return v & 0x7fffffff; }
INLINE words choose(words mask, words yes, words no) { return (mask & yes) | (~mask & no); }
/* Modulo 2^32: what comes of infinity and NaN may be anything. */
INLINE words plus(words a, words b) { return (words)((unsigned_words)a + (unsigned_words)b); }
INLINE floats load(const float *from) { floats v; memcpy(&v, from, sizeof v); return v; }

/* The power of two that begins the binade of a magnitude, as bits. */
INLINE words binade(const struct bsmi_grid *grid, words m) { return larger(m & 0x7f800000, all(grid->smallest)); }

/* What is added to a magnitude: P, and as many steps as make the code the last 8 bits of code_of_sum (an even
 * number). */
INLINE floats step_adder(const struct bsmi_grid *grid, words m) { return (floats)(binade(grid, m) + grid->adder); }

/* (exponent << mantissa bits) + n: a binade has as many codes as steps. */
INLINE words code_of_sum(const struct bsmi_grid *grid, floats sum)
{
    return plus((words)((unsigned_words)sum >> (unsigned_words)all(grid->shift)), (words)sum);
}

/* What x is divided by: d1 + d2, or where t divides, x t by s. */
struct divisor { floats first, second; };

INLINE floats above_midpoint(bool divides, floats x, floats midpoint, struct divisor by)
{
    if (divides) return fused(x, by.first, -(midpoint * by.second));
    return fused(-midpoint, by.second, fused(-midpoint, by.first, x));
}

/* Of x >= 0 over the divisor, `quotient` about that.  value: what the code stands for. */
INLINE words compared_code(const struct bsmi_grid *grid, bool divides, floats x, floats quotient, struct divisor by,
                           floats *value)
{
    const words m = larger(smaller((words)quotient, bits_of(grid->last_midpoint)), bits_of(grid->first_midpoint));
    const floats adder = (floats)(binade(grid, m) + (grid->shift << 23)), half_step = adder * 0x1p-24f;
    const floats sum = ((floats)m - half_step) + adder, below = sum - adder;
    const words side = (words)above_midpoint(divides, x, below + half_step, by);
    const words odd = (words)sum & 1;
    const words up = plus(side, odd) > 0;      /* beyond the midpoint, or on it and n is odd: +0 is 0, and below it is
                                                  negative */
    *value = below + (floats)(up & (words)(half_step + half_step));
    return plus(code_of_sum(grid, sum), grid->adder - up);
}

/* In the last 8 bits. */
INLINE words with_sign(const struct bsmi_grid *grid, bool complement, words code, words x)
{
    const words negative = x >> 31;
    if (complement) return plus(code ^ negative, negative & 1);
    return choose(all(1 << (grid->bits - 1)), (words)((unsigned_words)x >> (unsigned_words)all(32 - grid->bits)), code);
}

/* Scales ----------------------------------------------------------------------------------------------------------- */

INLINE words e8m0_codes(const struct bsmi_block_coding *c, words amax)
{
    const words code = (plus(amax, all(c->scale_bias)) >> 23) + c->scale_offset;
    return smaller(larger(code, all(0)), all(254)) & ~(amax == 0);
}

/* 2^(127 - code); 2^-127 is subnormal. */
INLINE words e8m0_inverses(words codes) { return larger((254 - codes) << 23, all(0x00400000)); }

/* more_error_below of recipes.c, in units of 2^-25.  For e2m1 a number q >= 0 counts 1/4 - q from 1/4 to 1/2 and q -
 * 3/4 from there to 3/4, the same one higher up, 4 q - 28 from 7 to 8, and else nothing.  All steps are exact where
 * they matter. */
INLINE words more_error_below(floats q)
{
    const floats half = (floats)magnitude((words)(q - 0.5f)), whole = (floats)magnitude((words)(q - 1.5f));
    const words nearest = smaller((words)half, (words)whole);      /* of numbers >= 0, as their bits */
    const floats below = (floats)nearest - 0.25f, above = fused(q, every(4), every(-28));
    const floats few = (floats)((words)below & (words)(below < 0)), many = (floats)((words)above & (words)(above > 0));
    return rounded((few + many) * 0x1p25f);
}

/* A block's sum is above -2^28, for at most 31 of its numbers count as -2^23: a part that reached 2^28 may stay
 * there. */
INLINE words bounded_sum(words a, words b) { return smaller(plus(a, b), all(1 << 28)); }

/* Codes whose scale, halved, has less error, halved.  A block with equal scales may find anything. */
INLINE words searched_codes(const struct bsmi_block_coding *c, const float *x, int block, int blocks, words amax,
                            words codes)
{
    const words low = smaller(larger((amax >> 23) + c->scale_offset, all(0)), all(254));
    const floats inverses = (floats)e8m0_inverses(low);
    float inverse[LANES];
    words more[LANES];
    memcpy(inverse, &inverses, sizeof inverse);
    UNROLL for (int b = 0; b < LANES; b++) {
        more[b] = all(0);
        if (b >= blocks) continue;
        UNROLL for (int i = 0; i < block; i += LANES)
            more[b] = plus(more[b], more_error_below((floats)magnitude((words)load(x + b * block + i)) * inverse[b]));
    }
    return choose(block_sums(more) < 0, low, codes);
}

/* What a group of blocks is divided by, a lane for each. */
struct group_divisor { floats inverse; struct divisor by; };

/* Scales of 0 divide by infinity: every code is +-0. */
INLINE words ue4m3_codes(const struct bsmi_block_coding *c, bool divides, words amax, struct group_divisor *group)
{
    const struct divisor by = { every(c->divisor), every(c->divisor_rest) };
    floats scale;
    const words codes = compared_code(&c->scale, divides, (floats)amax, (floats)amax * c->scale_factor, by, &scale);
    const words zero = (words)scale == 0;
    if (divides) {
        group->by.second = (floats)((words)scale | (zero & 0x7f800000));
        group->by.first = every(c->tensor_scale);
        group->inverse = group->by.first / group->by.second;
    } else {
        const floats t = every(c->tensor_scale), product = scale * t;
        group->by.first = (floats)((words)product | (zero & 0x7f800000));
        group->by.second = fused(scale, t, -product);
        group->inverse = every(1) / group->by.first;
    }
    return codes;
}

/* A group's numbers, and what is asked for while they are computed. */
struct numbers {
    const float *x;
    const char *ahead;
    int step;                             /* bytes of 16 numbers where they are stored */
};

INLINE void prefetch(struct numbers *n, int count)
{
    UNROLL for (int i = 0; i < count; i += 16) {
        __builtin_prefetch(n->ahead);
        n->ahead += n->step;
    }
}

BSMI_TARGET __attribute__((noinline)) static void widen(bsm_real type, const char *from, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i += 16)
        UNROLL for (int j = 0; j < 16; j += LANES) {
            const floats v = type == BSM_REAL_BF16 ? of_bf16(from + 2 * (i + j)) : of_fp16(from + 2 * (i + j));
            memcpy(to + i + j, &v, sizeof v);
        }
}

/* Of some blocks of a row; numbers of 16 bits are widened into `copy`. */
INLINE struct numbers group_numbers(const struct bsmi_block_row *row, int64_t first, int64_t count, float *copy)
{
    const int bytes = row->type == BSM_REAL_FP32 ? 4 : 2;
    const char *from = (const char *)row->x + first * bytes;
    if (row->type == BSM_REAL_FP32) return (struct numbers){ (const float *)(const void *)from, from + AHEAD, 64 };
    widen(row->type, from, count, copy);
    return (struct numbers){ copy, from + AHEAD, 32 };
}

/* Blocks ----------------------------------------------------------------------------------------------------------- */

/* The vector in memory, from where each lane is broadcast: compilers would take it out of registers of integers. */
#define IN_MEMORY(array, vector) \
    do { \
        memcpy(array, &(vector), sizeof(array)); \
        __asm__("" : "+m"(array)); \
    } while (0)

/* How elements become codes. */
enum method { E8M0, E8M0_TENSOR_SCALE, UE4M3 };

/* A divisor of a block, as numbers. */
struct block_divisor { float inverse, first, second; };

/* Those of a group. */
struct divisors { _Alignas(4 * LANES) float inverse[LANES], first[LANES], second[LANES]; };

/* unsure: where x / d is too near to a midpoint for a quotient that is about right. */
INLINE words quick_codes(const struct bsmi_block_coding *c, enum method method, bool complement, floats x,
                         float inverse, words *unsure)
{
    const struct bsmi_grid *grid = &c->element;
    const floats power = x * inverse, quotient = method == E8M0_TENSOR_SCALE ? power * c->inverse : power;
    const words m = least(quotient, bits_of(grid->largest));
    const floats adder = step_adder(grid, m);
    if (method == E8M0) return with_sign(grid, complement, code_of_sum(grid, (floats)m + adder), (words)x);
    const floats sum = fused((floats)m, every(1 + 0x1p-20f), adder),
                 least_sum = fused((floats)m, every(1 - 0x1p-20f), adder);
    *unsure |= (words)sum ^ (words)least_sum;
    return with_sign(grid, complement, code_of_sum(grid, sum), (words)x);
}

INLINE words sure_codes(const struct bsmi_block_coding *c, enum method method, bool divides, bool complement, floats x,
                        const struct block_divisor *by)
{
    const floats quotient = (floats)magnitude((words)(x * by->inverse));
    const struct divisor t = { every(c->tensor_scale), every(divides ? 1 : 0) };
    const struct divisor d = method == UE4M3 ? (struct divisor){ every(by->first), every(by->second) } : t;
    const floats numerator = method == UE4M3 ? (floats)magnitude((words)x) : quotient;
    floats value;
    const words code =
        compared_code(&c->element, divides, numerator, method == UE4M3 ? quotient : quotient * c->inverse, d, &value);
    return with_sign(&c->element, complement, code, (words)x);
}

INLINE words block_amax(const float *x, int count)
{
    words amax = magnitude((words)load(x));
    UNROLL for (int i = LANES; i < count; i += LANES) amax = larger(amax, magnitude((words)load(x + i)));
    return amax;
}

INLINE unsigned char *store_codes(bsm_packing packing, bytes codes, unsigned char *to)
{
    switch (packing) {
    case BSM_PACKING_LOW_FIRST: store_nibbles(codes, false, to); return to + 8;
    case BSM_PACKING_HIGH_FIRST: store_nibbles(codes, true, to); return to + 8;
    case BSM_PACKING_BIT_STREAM: store_stream(codes, to); return to + 12;
    default: store_bytes(codes, to); return to + 16;
    }
}

/* Codes of e2m1 under ue4m3 scales, four vectors at a time.  Its midpoints are 1, 3, 5, 7, 10, 14 and 20 quarters.  Of
 * the quotient in units of 2^-20 the upper bits count quarters; the lower 18, moved up, show how near to a whole one it
 * is.  The quotient is wrong by less than 2^-21 of itself, below 8 by less than 4 units, and two roundings add less
 * than 2: NEAR units are more than that. */
enum { QUARTER_BITS = 18, NEAR = 8 };
static const int32_t nearest_quotient = 2 * NEAR << (32 - QUARTER_BITS);

/* Of |x|; NEAR units larger. */
INLINE words quarter_units(words x, float inverse)
{
    return rounded(fused((floats)magnitude(x), every(inverse), every(NEAR)));
}

/* Near is what has at most 2 NEAR in its lower bits: the least of all is kept. */
INLINE void e2m1_codes(const float *x, const float *inverses, bool high_first, unsigned char *to, words *nearest)
{
    static const int8_t table[16] = { 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5, 6, 6 };
    words v[4], quarters[4];
    UNROLL for (int j = 0; j < 4; j++) {
        v[j] = (words)load(x + j * LANES);
        const words units = quarter_units(v[j], inverses[j * LANES / 16]);
        *nearest = smaller_unsigned(*nearest, (words)((unsigned_words)units << (32 - QUARTER_BITS)));
        quarters[j] = (words)((unsigned_words)units >> QUARTER_BITS);
    }
    const all_bytes n = narrow_four(quarters), above_five = n > 19;
    const all_bytes code = entries(table, n) - above_five, sign = narrow_four(v) < 0;
    store_narrowed(code | (sign & 8), high_first, to);
}

/* A block whose quotients lie near midpoints, once more. */
BSMI_TARGET __attribute__((noinline)) static void sure_block(const struct bsmi_block_coding *c, enum method method,
                                                             bool divides, bool complement, const float *x,
                                                             const struct block_divisor *by, bsm_packing packing,
                                                             unsigned char *to)
{
    for (int i = 0; i < c->block; i += 16) {
        words v[16 / LANES];
        UNROLL for (int j = 0; j < 16 / LANES; j++) v[j] =
            sure_codes(c, method, divides, complement, load(x + i + j * LANES), by);
        to = store_codes(packing, narrow(v), to);
    }
}

/* Codes of e2m1 without doubt.  k: quarters, a whole number next to the quotient, which is k, less or more as the sign
 * of a remainder says, exact as that of above_midpoint.  `below` has the code just below k, and the one above begins
 * where the sign is larger than `last`. */
INLINE void compared_e2m1_codes(const struct bsmi_block_coding *c, enum method method, int block, bool divides,
                                const float *x, const struct divisors *by, int first, bool high_first,
                                unsigned char *to)
{
    static const int8_t below[16] = { 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5, 6 };
    static const int8_t last[16] = { 127, 0, 127, -1, 127, 0, 127, -1, 127, 127, 0, 127, 127, 127, -1, 127 };
    const floats to_quarters = every(0x1.8p21f);
    words v[4], quarters[4], sides[4];
    UNROLL for (int j = 0; j < 4; j++) {
        const int b = first + j * LANES / block;
        v[j] = (words)load(x + j * LANES);
        const floats m = (floats)magnitude(v[j]), inverse = every(by->inverse[b]);
        const floats sum = fused(m, inverse, to_quarters), quotient = sum - to_quarters;
        quarters[j] = plus((words)sum, -(words)to_quarters);
        if (method == E8M0) sides[j] = (words)(m * inverse - quotient);
        else if (divides) sides[j] = (words)fused(m, every(c->tensor_scale), -(quotient * by->second[b]));
        else sides[j] = (words)fused(-quotient, every(by->second[b]), fused(-quotient, every(by->first[b]), m));
    }
    const all_bytes k = narrow_four(quarters), side = narrow_four(sides), negative = narrow_four(v) < 0;
    const all_bytes above_five = k > 20 + (side > 0);
    const all_bytes code = entries(below, k) - (side > entries(last, k)) - above_five;
    store_narrowed(code | (negative & 8), high_first, to);
}

/* LANES blocks, whole.  Where numbers have few bits, as those that were bf16, many quotients are midpoints: after one
 * near to them a row's groups (`compares`) are compared at once. */
INLINE void e2m1_group(const struct bsmi_block_coding *c, enum method method, int block, bool divides,
                       struct numbers *n, const struct group_divisor *group, bool high_first, unsigned char *to,
                       bool *compares)
{
    struct divisors by;
    floats scaled = group->inverse * 0x1p20f;
    words nearest = all(-1);
    if (method == UE4M3 && !*compares) {
        IN_MEMORY(by.inverse, scaled);
        UNROLL for (int b = 0; b < LANES; b += LANES / 4) {
            prefetch(n, 4 * LANES);
            e2m1_codes(n->x + b * 16, by.inverse + b, high_first, to + b * 8, &nearest);
        }
        *compares = any((words)((unsigned_words)nearest <= (uint32_t)nearest_quotient));
        if (!*compares) return;
    }
    IN_MEMORY(by.inverse, group->inverse);
    if (method == UE4M3) {
        IN_MEMORY(by.first, group->by.first);
        IN_MEMORY(by.second, group->by.second);
    }
    UNROLL for (int i = 0; i < LANES * block; i += 4 * LANES) {
        prefetch(n, 4 * LANES);
        compared_e2m1_codes(c, method, block, divides, n->x + i, &by, i / block, high_first, to + i / 2);
    }
}

/* Scales of LANES blocks, or of what is left of them, and what their numbers are divided by. */
INLINE void group_scales(const struct bsmi_block_coding *c, enum method method, int block, bool divides, bool searches,
                         const float *x, int blocks, uint8_t *scales, struct group_divisor *group, words *not_plain)
{
    words maxima[LANES], codes[16 / LANES] = { { 0 } };
    UNROLL for (int b = 0; b < LANES; b++) maxima[b] = b < blocks ? block_amax(x + b * block, block) : all(0);

    const words amax = block_maxima(maxima);
    *not_plain |= amax >= 0x7f800000;
    if (method == UE4M3) {
        codes[0] = ue4m3_codes(c, divides, amax, group);
    } else {
        codes[0] = e8m0_codes(c, amax);
        if (searches) codes[0] = searched_codes(c, x, block, blocks, amax, codes[0]);
        group->inverse = (floats)e8m0_inverses(codes[0]);
        *not_plain |= (amax < 0x00800000) & (amax > 0);
    }
    const bytes scale_bytes = narrow(codes);
    memcpy(scales, &scale_bytes, blocks < LANES ? (size_t)blocks : LANES);
}

/* Codes of those blocks, one after the other. */
INLINE unsigned char *group_codes(const struct bsmi_block_coding *c, enum method method, int block, bool divides,
                                  bool complement, struct numbers *n, int blocks,
                                  const struct group_divisor *group, bsm_packing packing, unsigned char *to,
                                  bool *compares)
{
    _Alignas(4 * LANES) float inverse[LANES];
    if (method != E8M0_TENSOR_SCALE && blocks == LANES && c->element.bits == 4 && packing != BSM_PACKING_BYTES) {
        e2m1_group(c, method, block, divides, n, group, packing == BSM_PACKING_HIGH_FIRST, to, compares);
        return to + LANES * block / 2;
    }
    IN_MEMORY(inverse, group->inverse);
    for (int b = 0; b < blocks; b++) {
        const float *x = n->x + b * block;
        const float by = inverse[b];
        words unsure = all(0);
        unsigned char *const start = to;
        UNROLL for (int i = 0; i < block; i += 16) {
            words v[16 / LANES];
            prefetch(n, 16);
            UNROLL for (int j = 0; j < 16 / LANES; j++) v[j] =
                quick_codes(c, method, complement, load(x + i + j * LANES), by, &unsure);
            to = store_codes(packing, narrow(v), to);
        }
        if (method != E8M0 && any(unsure)) {
            const struct block_divisor exactly = { by, method == UE4M3 ? group->by.first[b] : 0,
                                                   method == UE4M3 ? group->by.second[b] : 0 };
            sure_block(c, method, divides, complement, x, &exactly, packing, start);
        }
    }
    return to;
}

/* A group's scales are a long chain of instructions, each of which waits for the last: those of several groups are made
 * at a time, which run beside one another. */
enum { GROUPS = 4 };

INLINE bool quantize_row(const struct bsmi_block_coding *coding, enum method method, int block, bool divides,
                         bool complement, bool searches, const struct bsmi_block_row *row)
{
    struct bsmi_block_coding c;           /* where no store to codes could change it; bf16's steps are not used here */
    memcpy(&c, coding, offsetof(struct bsmi_block_coding, bf16_steps));
    const int count = LANES * block;
    unsigned char *to = row->codes;
    words not_plain = all(0);
    bool compares = false;
    float copy[GROUPS * LANES * 32];
    struct group_divisor groups[GROUPS];
    for (int64_t b = 0; b < row->blocks; b += GROUPS * LANES) {
        const int blocks = (int)BSMI_MIN(row->blocks - b, GROUPS * LANES);
        const int whole = blocks / LANES, left = blocks % LANES;
        struct numbers n = group_numbers(row, b * block, blocks * block, copy);
        uint8_t *const scales = row->scales + b;
        const float *x = n.x;
        for (int g = 0; g < whole; g++)
            group_scales(&c, method, block, divides, searches, x + g * count, LANES, scales + g * LANES, &groups[g],
                         &not_plain);
        if (left > 0)
            group_scales(&c, method, block, divides, searches, x + whole * count, left, scales + whole * LANES,
                         &groups[whole], &not_plain);
        for (int g = 0; g < whole; g++, n.x += count)
            to = group_codes(&c, method, block, divides, complement, &n, LANES, &groups[g], row->packing, to,
                             &compares);
        if (left > 0)
            to = group_codes(&c, method, block, divides, complement, &n, left, &groups[whole], row->packing, to,
                             &compares);
    }
    return !any(not_plain);
}

/* One inner loop for each method: what is constant in it is no branch. */
#define BSMI_ROAD(name, method, block, divides, complement, searches) \
    BSMI_TARGET static bool name(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row) \
    { \
        return quantize_row(coding, method, block, divides, complement, searches, row); \
    }
BSMI_ROAD(floats_32, E8M0, 32, false, false, false)
BSMI_ROAD(floats_32_over_t, E8M0_TENSOR_SCALE, 32, false, false, false)
BSMI_ROAD(floats_32_times_t, E8M0_TENSOR_SCALE, 32, true, false, false)
BSMI_ROAD(integers_32, E8M0, 32, false, true, false)
BSMI_ROAD(integers_32_over_t, E8M0_TENSOR_SCALE, 32, false, true, false)
BSMI_ROAD(integers_32_times_t, E8M0_TENSOR_SCALE, 32, true, true, false)
BSMI_ROAD(floats_16, E8M0, 16, false, false, false)
BSMI_ROAD(floats_16_over_t, E8M0_TENSOR_SCALE, 16, false, false, false)
BSMI_ROAD(floats_16_times_t, E8M0_TENSOR_SCALE, 16, true, false, false)
BSMI_ROAD(searched_32, E8M0, 32, false, false, true)
BSMI_ROAD(searched_16, E8M0, 16, false, false, true)
BSMI_ROAD(ue4m3_16_over_t, UE4M3, 16, false, false, false)
BSMI_ROAD(ue4m3_16_times_t, UE4M3, 16, true, false, false)

bool BSMI_QUANTIZE(bsmi_quantize_blocks)(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row)
{
    typedef bool quantize_rows(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row);
    enum { NO_T, OVER_T, TIMES_T };
    static quantize_rows *const ue4m3[] = { ue4m3_16_over_t, ue4m3_16_over_t, ue4m3_16_times_t };
    static quantize_rows *const floats_of_16[] = { floats_16, floats_16_over_t, floats_16_times_t };
    static quantize_rows *const floats_of_32[] = { floats_32, floats_32_over_t, floats_32_times_t };
    static quantize_rows *const integers_of_32[] = { integers_32, integers_32_over_t, integers_32_times_t };
    const int use = coding->divides ? TIMES_T : coding->tensor_scale == 1 ? NO_T : OVER_T;
    if (coding->ue4m3) return ue4m3[use](coding, row);
    if (coding->searches) return (coding->block == 16 ? searched_16 : searched_32)(coding, row);
    if (coding->complement) return integers_of_32[use](coding, row);
    return (coding->block == 16 ? floats_of_16 : floats_of_32)[use](coding, row);
}

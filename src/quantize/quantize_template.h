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
 *     any(v)                whether some word is not 0
 *     bytes, narrow(v)      16 bytes, and the last bytes of 16 words in 16 / LANES vectors
 *     store_bytes, store_nibbles, store_stream    16 codes as a packing has them
 *
 * and afterwards has bsmi_quantize_blocks.
 *
 * An element in [2^e, 2^(e + 1)) has steps of 2^(e - mantissa bits), from the smallest binade downward those of the smallest.  Adding
 * P = 2^(e + shift), whose last bit is worth one step, rounds to a whole number n of steps, which are then the last bits of the sum.  It
 * rounds as the element does, ties to even included.
 *
 * Exact quotients (e8m0 scales alone): x times a power of two is exact unless it is subnormal, and then its code is 0.
 *
 * Quotients x / d (tensor scales, ue4m3 scales) are about right, to less than 2^-21 of themselves.  Where a quotient 2^-20 larger and one
 * 2^-20 smaller have the same code, it is the code.  Blocks with another number take compared_code: the sum of the quotient less half a
 * step gives a number n whose value is the quotient's lower neighbour among the codes, or on a code either neighbour.  x is then compared
 * with d times the midpoint m above n.  d is the sum of two floats, and the sign of (x - m d1) - m d2, with fused multiply-adds, is the
 * exact one: x - m d1 is exact where it is small, because both are multiples of the last bit of m d1 or x, and where it is not the
 * second part does not change the sign.  A dividing tensor scale t needs x t - m s alone, m s is exact.  In both nothing underflows for
 * tensor scales of 2^-96 to 2^96. */
#include "quantize/kernels.h"

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE BSMI_TARGET __attribute__((always_inline, unused)) static inline

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

/* What is added to a magnitude: P, and as many steps as make the code the last 8 bits of code_of_sum (an even number). */
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
INLINE words compared_code(const struct bsmi_grid *grid, bool divides, floats x, floats quotient, struct divisor by, floats *value)
{
    const words m = larger(smaller((words)quotient, bits_of(grid->last_midpoint)), bits_of(grid->first_midpoint));
    const floats adder = (floats)(binade(grid, m) + (grid->shift << 23)), half_step = adder * 0x1p-24f;
    const floats sum = ((floats)m - half_step) + adder, below = sum - adder;
    const words side = (words)above_midpoint(divides, x, below + half_step, by);
    const words odd = (words)sum & 1;
    const words up = plus(side, odd) > 0;      /* beyond the midpoint, or on it and n is odd: +0 is 0, and below it is negative */
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

/* Scales ---------------------------------------------------------------------------------------------------------------- */

INLINE words e8m0_codes(const struct bsmi_block_coding *c, words amax)
{
    const words code = (plus(amax, all(c->scale_bias)) >> 23) + c->scale_offset;
    return smaller(larger(code, all(0)), all(254)) & ~(amax == 0);
}

/* 2^(127 - code); 2^-127 is subnormal. */
INLINE words e8m0_inverses(words codes) { return larger((254 - codes) << 23, all(0x00400000)); }

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

/* Blocks ------------------------------------------------------------------------------------------------------------------ */

/* How elements become codes. */
enum method { E8M0, E8M0_TENSOR_SCALE, UE4M3 };

/* A divisor of a block, as numbers. */
struct block_divisor { float inverse, first, second; };

/* unsure: where x / d is too near to a midpoint for a quotient that is about right. */
INLINE words quick_codes(const struct bsmi_block_coding *c, enum method method, bool complement, floats x, float inverse, words *unsure)
{
    const struct bsmi_grid *grid = &c->element;
    const floats power = x * inverse, quotient = method == E8M0_TENSOR_SCALE ? power * c->inverse : power;
    const words m = least(quotient, bits_of(grid->largest));
    const floats adder = step_adder(grid, m);
    if (method == E8M0) return with_sign(grid, complement, code_of_sum(grid, (floats)m + adder), (words)x);
    const floats sum = fused((floats)m, every(1 + 0x1p-20f), adder), least_sum = fused((floats)m, every(1 - 0x1p-20f), adder);
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
    const words code = compared_code(&c->element, divides, numerator, method == UE4M3 ? quotient : quotient * c->inverse, d, &value);
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

/* A block whose quotients lie near midpoints, once more. */
BSMI_TARGET __attribute__((noinline))
static void sure_block(const struct bsmi_block_coding *c, enum method method, bool divides, bool complement, const float *x,
                       const struct block_divisor *by, bsm_packing packing, unsigned char *to)
{
    for (int i = 0; i < c->block; i += 16) {
        words v[16 / LANES];
        UNROLL for (int j = 0; j < 16 / LANES; j++) v[j] = sure_codes(c, method, divides, complement, load(x + i + j * LANES), by);
        to = store_codes(packing, narrow(v), to);
    }
}

enum { AHEAD = 2048 };                     /* numbers: asked for while earlier ones are computed */

/* LANES blocks, or what is left of them: their scales together, then one after the other. */
INLINE unsigned char *quantize_group(const struct bsmi_block_coding *c, enum method method, int block, bool divides, bool complement,
                                     const float *x, int blocks, uint8_t *scales, bsm_packing packing, unsigned char *to, words *not_plain)
{
    words maxima[LANES], codes[16 / LANES] = { { 0 } };
    struct group_divisor group = { .inverse = { 0 } };
    float inverse[LANES], first[LANES], second[LANES];
    UNROLL for (int b = 0; b < LANES; b++) maxima[b] = b < blocks ? block_amax(x + b * block, block) : all(0);

    const words amax = block_maxima(maxima);
    *not_plain |= amax >= 0x7f800000;
    if (method == UE4M3) {
        codes[0] = ue4m3_codes(c, divides, amax, &group);
        memcpy(first, &group.by.first, sizeof first), memcpy(second, &group.by.second, sizeof second);
    } else {
        codes[0] = e8m0_codes(c, amax);
        group.inverse = (floats)e8m0_inverses(codes[0]);
        *not_plain |= (amax < 0x00800000) & (amax > 0);
    }
    memcpy(inverse, &group.inverse, sizeof inverse);
    const bytes scale_bytes = narrow(codes);
    memcpy(scales, &scale_bytes, blocks < LANES ? (size_t)blocks : LANES);

    for (int b = 0; b < blocks; b++, x += block) {
        const float by = inverse[b];
        words unsure = all(0);
        unsigned char *const start = to;
        UNROLL for (int i = 0; i < block; i += 16) {
            words v[16 / LANES];
            __builtin_prefetch(x + i + AHEAD);
            UNROLL for (int j = 0; j < 16 / LANES; j++) v[j] = quick_codes(c, method, complement, load(x + i + j * LANES), by, &unsure);
            to = store_codes(packing, narrow(v), to);
        }
        if (method != E8M0 && any(unsure)) {
            const struct block_divisor exactly = { by, method == UE4M3 ? first[b] : 0, method == UE4M3 ? second[b] : 0 };
            sure_block(c, method, divides, complement, x, &exactly, packing, start);
        }
    }
    return to;
}

INLINE bool quantize_row(const struct bsmi_block_coding *coding, enum method method, int block, bool divides, bool complement,
                         const struct bsmi_block_row *row)
{
    const struct bsmi_block_coding c = *coding;
    const bsm_packing packing = row->packing;
    const float *x = row->x;
    uint8_t *scales = row->scales;
    unsigned char *to = row->codes;
    words not_plain = all(0);
    int64_t left = row->blocks;
    for (; left >= LANES; left -= LANES, x += LANES * block, scales += LANES)
        to = quantize_group(&c, method, block, divides, complement, x, LANES, scales, packing, to, &not_plain);
    if (left > 0) quantize_group(&c, method, block, divides, complement, x, (int)left, scales, packing, to, &not_plain);
    for (int i = 0; i < LANES; i++)
        if (not_plain[i] != 0) return false;
    return true;
}

/* One inner loop for each method: what is constant in it is no branch. */
#define BSMI_ROAD(name, method, block, divides, complement) \
    BSMI_TARGET static bool name(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row) \
    { \
        return quantize_row(coding, method, block, divides, complement, row); \
    }
BSMI_ROAD(floats_32, E8M0, 32, false, false)
BSMI_ROAD(floats_32_over_t, E8M0_TENSOR_SCALE, 32, false, false)
BSMI_ROAD(floats_32_times_t, E8M0_TENSOR_SCALE, 32, true, false)
BSMI_ROAD(integers_32, E8M0, 32, false, true)
BSMI_ROAD(integers_32_over_t, E8M0_TENSOR_SCALE, 32, false, true)
BSMI_ROAD(integers_32_times_t, E8M0_TENSOR_SCALE, 32, true, true)
BSMI_ROAD(floats_16, E8M0, 16, false, false)
BSMI_ROAD(floats_16_over_t, E8M0_TENSOR_SCALE, 16, false, false)
BSMI_ROAD(floats_16_times_t, E8M0_TENSOR_SCALE, 16, true, false)
BSMI_ROAD(ue4m3_16_over_t, UE4M3, 16, false, false)
BSMI_ROAD(ue4m3_16_times_t, UE4M3, 16, true, false)

bool BSMI_QUANTIZE(bsmi_quantize_blocks)(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row)
{
    typedef bool road(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row);
    enum { NO_T, OVER_T, TIMES_T };
    static road *const ue4m3[] = { ue4m3_16_over_t, ue4m3_16_over_t, ue4m3_16_times_t };
    static road *const floats_of_16[] = { floats_16, floats_16_over_t, floats_16_times_t };
    static road *const floats_of_32[] = { floats_32, floats_32_over_t, floats_32_times_t };
    static road *const integers_of_32[] = { integers_32, integers_32_over_t, integers_32_times_t };
    const int use = coding->divides ? TIMES_T : coding->tensor_scale == 1 ? NO_T : OVER_T;
    if (coding->ue4m3) return ue4m3[use](coding, row);
    if (coding->complement) return integers_of_32[use](coding, row);
    return (coding->block == 16 ? floats_of_16 : floats_of_32)[use](coding, row);
}

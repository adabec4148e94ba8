/* Quantizing a block, by one thread: the arithmetic of src/quantize (block.c, recipes.c), by the code that it shares.
 * Numbers are asked for one by one and as often as they are needed, so that no thread keeps an array. */
#ifndef BSMI_HIP_BLOCKS_H
#define BSMI_HIP_BLOCKS_H

#include "numbers.h"
#include "quantize/block/clamp.h"
#include "quantize/block/scale_code.h"

/* What blocks of a matrix are quantized by. */
struct quantizer {
    const struct bsmi_device_matrix *m;
    int recipe, rounding, nonfinite;
    uint64_t seed;
    double tensor_scale;
    bool divides;
};

/* Number k of a row that the caller knows: always inlined. */
typedef float load_number(const void *row, int64_t k);

static inline uint32_t scale_code(const struct quantizer *q, float amax)
{
    const bsm_element_info *element = element_of(q->m->element);
    const struct bsmi_fraction r = bsmi_scaled_amax(amax, q->tensor_scale, q->divides);
    switch (q->recipe) {
    case BSM_RECIPE_FLOOR: return bsmi_floor_code(element, r);
    case BSM_RECIPE_CEIL: return bsmi_ceil_code(element, r);
    case BSM_RECIPE_EVEN: return bsmi_even_code(element, r);
    case BSM_RECIPE_NEAREST: return bsmi_nearest_code(element, element_of(BSM_E4M3), r);
    default: return bsmi_rceil_code(element, r);
    }
}

static inline struct bsmi_division division_of(const struct quantizer *q, uint32_t code)
{
    return bsmi_division_of((double)decode_scale(q->m->scale, code), q->tensor_scale, q->divides);
}

struct magnitudes { uint32_t largest, largest_finite; };

static inline void raise_magnitudes(struct magnitudes *all, float x)
{
    const uint32_t bits = bsmi_float_bits(x) & 0x7fffffff;
    all->largest = larger_word(all->largest, bits);
    all->largest_finite = larger_word(all->largest_finite, bits < 0x7f800000 ? bits : 0);
}

/* How many numbers of a row lie in block `block`; of GGUF's last blocks none may. */
static inline int count_of(const struct bsmi_device_matrix *m, int64_t block)
{
    return (int)smaller(at_least_zero(m->columns - block * m->block), m->block);
}

/* Blocks of a row that are stored, those that fill up GGUF's last one among them. */
static inline int64_t stored_blocks(const struct bsmi_device_matrix *m)
{
    const int64_t unit = m->packing == BSM_PACKING_GGUF && m->scale == BSM_UE4M3 ? 64 : m->block;
    return divided_up(m->columns, unit) * (unit == 64 ? 4 : 1);
}

/* Up to eight codes of a row, a byte each, from number `first` on.  index: of the row's first number, for stochastic
 * rounding. */
static __attribute__((always_inline)) inline uint64_t octet_codes(const struct quantizer *q, load_number *load,
                                                                  const void *row, int64_t first, int count,
                                                                  struct bsmi_division by, uint64_t index)
{
    uint64_t codes = 0;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const float x = load(row, first + i);
        const double value = isfinite(x) ? (double)x * by.factor / by.divisor : (double)x;
        const uint32_t random =
            q->rounding == BSM_ROUND_STOCHASTIC ? bsmi_random_bits(q->seed, index + (uint64_t)(first + i)) : 0;
        codes |= (uint64_t)encode_element(q->m->element, value, q->rounding, true, random) << 8 * i;
    }
    return codes;
}

/* The codes of block `block` into the row at `to`; NaN blocks have codes of 0. */
static __attribute__((always_inline)) inline void store_block(const struct quantizer *q, load_number *load,
                                                              const void *row, int64_t block, unsigned char *to,
                                                              bool is_nan, uint32_t code, uint64_t index)
{
    const struct bsmi_device_matrix *m = q->m;
    const int octets = m->block / 8, count = count_of(m, block);
    const struct bsmi_division by = division_of(q, code);
    const bool gguf = m->packing == BSM_PACKING_GGUF;
    const int pairs = gguf ? octets / 2 : octets;       /* of GGUF: an octet of low nibbles and one of high ones */
#pragma unroll 1
    for (int i = 0; i < pairs; i++) {
        uint64_t codes[2] = { 0, 0 };
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int number = half == 0 ? i : i + pairs, left = count - number * 8;
            if ((half == 0 || gguf) && left > 0 && !is_nan)
                codes[half] = octet_codes(q, load, row, block * m->block + number * 8, left < 8 ? left : 8, by, index);
        }
        if (gguf) store_gguf(to, m->scale == BSM_E8M0, block * m->block + i * 8, codes[0], codes[1]);
        else if (count > i * 8)
            store_octet(m, to, block * octets + i, codes[0], count - i * 8 < 8 ? count - i * 8 : 8);
    }
}

static inline uint32_t nan_scale(const struct bsmi_device_matrix *m) { return m->scale == BSM_E8M0 ? 0xff : 0x7f; }

static inline unsigned char *scale_at(const struct bsmi_device_matrix *m, int64_t batch, int64_t row, int64_t block)
{
    return m->scales + batch * m->scale_batch_bytes + scale_place(&m->layout, row, block);
}

#endif

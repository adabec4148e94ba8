/* Kernels that quantize whole blocks of a row: one table, best first, the last row for everything.
 *
 * A kernel promises the bits of block.c.  To add one: a file with its `quantize` function, a row in kernels.c above the
 * rows it beats; tests/quantize/test_quantize_kernels covers it by itself. */
#ifndef BSMI_QUANTIZE_KERNELS_H
#define BSMI_QUANTIZE_KERNELS_H

#include "bf16_steps.h"
#include "quantize/block/block.h"

/* The codes of an element in the terms of fp32 bits.  Steps between numbers are those of their binade, and of the
 * smallest normal one below it; int8, with its steps of 2^-6, is all below. */
struct bsmi_grid {
    int bits, shift;                      /* shift: 23 less the mantissa's bits */
    int32_t smallest;                     /* bits of the power of two that begins the smallest binade */
    int32_t adder;                        /* see step_adder of quantize_template.h */
    float largest, first_midpoint, last_midpoint;
};

/* A quantizer in numbers that vectors take. */
struct bsmi_block_coding {
    struct bsmi_grid element, scale;      /* scale: e4m3, of ue4m3 scales alone */
    int block;
    bool complement;                      /* negative elements are two's complements */
    bool ue4m3, divides;
    bool searches;                        /* of the code and the one below, half the scale, the one with less squared
                                             error */
    /* e8m0: the code is ((bits of amax + bias) >> 23) + offset, cut to 0 .. 254.  Every recipe's is, see kernels.c. */
    int32_t scale_bias, scale_offset;
    float tensor_scale, inverse;          /* inverse: of what the tensor scale does, about; exact if it is 1 */
    float divisor, divisor_rest;          /* ue4m3: 6 t, exactly the sum of both, if t multiplies; t and 6 if it
                                             divides */
    float scale_factor;                   /* ue4m3: r / 6 is about amax times this */
    struct bsmi_bf16_steps bf16_steps;    /* ue4m3 and a source of bf16 alone */
};

/* Whole blocks that follow one another. */
struct bsmi_block_row {
    bsm_real type;                        /* of x: fp32, fp16 or bf16 */
    const void *x;
    int64_t blocks;
    uint8_t *scales;                      /* one code a block */
    unsigned char *codes;                 /* as `packing` has them */
    bsm_packing packing;                  /* DEFAULT, BYTES, LOW_FIRST, HIGH_FIRST or BIT_STREAM */
};

/* Whole blocks that were quantized, for counting. */
enum { BSMI_COUNTED = 256 };              /* numbers at most */
struct bsmi_quantized_row {
    const float *x, *elements;            /* elements: what codes are worth, without scales */
    const uint8_t *codes;                 /* one a byte */
    const double *scales, *most;          /* for each block: its scale; |x| factor above `most` was cut */
    int64_t blocks;
    int block, bits;                      /* 16 or 32; of a code */
    double factor, tensor_scale;
    bool divides;                         /* the tensor scale */
};

/* What was counted so far; sums are in the order of the numbers. */
struct bsmi_row_counts {
    double signal, noise;
    int64_t saturated, flushed;
    int32_t amax_bits[16];                /* the largest of them */
};

struct bsmi_quantize_kernel {
    const char *name;
    uint32_t needs;                       /* BSM_CPU_ bits */
    /* Returns false if some block does not take the fast path (bsmi_block_takes_fast_path): what was written for such
     * blocks means nothing.  NULL: block.c, one block after the other.  Default floating-point mode. */
    bool (*quantize)(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row);
    /* count numbers of 16 bits (BSM_REAL_FP16, BSM_REAL_BF16) as floats. */
    void (*widen)(bsm_real type, const void *from, int64_t count, float *to);
    /* Adds a row's counts; returns false, and adds nothing, if some x is not finite.  NULL where quantize is. */
    bool (*count)(const struct bsmi_quantized_row *row, struct bsmi_row_counts *counts);
    /* The largest finite magnitude of count numbers (fp32, fp16 or bf16), as bits of their type. */
    uint32_t (*largest_finite)(bsm_real type, const void *numbers, int64_t count);
};

extern const struct bsmi_quantize_kernel bsmi_quantize_kernels[];
extern const int bsmi_quantize_kernel_count;

/* The first of the table that these features run. */
const struct bsmi_quantize_kernel *bsmi_quantize_kernel_of(uint32_t features);

/* The first of the table that these features run, and that serves the quantizer and the destination: rounding to
 * nearest, a recipe that kernels compute, without clamps or a preset, and a tensor scale of 2^-96 to 2^96, in any
 * packing.  coding is filled in unless the row is the last. */
const struct bsmi_quantize_kernel *bsmi_quantize_kernel_choose(uint32_t features,
                                                               const struct bsmi_block_quantizer *quantizer,
                                                               const struct bsmi_matrix *destination,
                                                               struct bsmi_block_coding *coding);

/* Whether kernels quantize a block with this largest magnitude, NaN and infinity included: not those, and where scales
 * are e8m0 no subnormal number, whose exponent its bits do not show. */
static inline bool bsmi_block_takes_fast_path(const struct bsmi_block_coding *coding, uint32_t amax_bits)
{
    return amax_bits < 0x7f800000 && (coding->ue4m3 || amax_bits >= 0x00800000 || amax_bits == 0);
}

#if defined(__x86_64__)
bool bsmi_quantize_blocks_avx2(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row);
void bsmi_widen_reals_avx2(bsm_real type, const void *from, int64_t count, float *to);
bool bsmi_count_blocks_avx2(const struct bsmi_quantized_row *row, struct bsmi_row_counts *counts);
uint32_t bsmi_largest_finite_avx2(bsm_real type, const void *numbers, int64_t count);
bool bsmi_quantize_blocks_avx512(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row);
bool bsmi_quantize_rows_avx512(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row);
void bsmi_widen_reals_avx512(bsm_real type, const void *from, int64_t count, float *to);
bool bsmi_count_blocks_avx512(const struct bsmi_quantized_row *row, struct bsmi_row_counts *counts);
uint32_t bsmi_largest_finite_avx512(bsm_real type, const void *numbers, int64_t count);
#endif

#endif

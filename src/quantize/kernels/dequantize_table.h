/* Kernels that dequantize: one table, best first, the last row for everything.  They promise the bits of
 * dequantize.c. */
#ifndef BSMI_DEQUANTIZE_TABLE_H
#define BSMI_DEQUANTIZE_TABLE_H

#include "matrix/matrix.h"
#include "matrix/reals.h"

/* A format in the numbers that a kernel takes.  All elements but int8 have the form of fp16 with fewer bits: a code's
 * magnitude, moved to the place of fp16's, is the element times 2^-exponent. */
struct bsmi_block_decoding {
    bsm_real type;                        /* FP32, FP16 or BF16 */
    bsm_packing packing;                  /* LOW_FIRST or HIGH_FIRST: as the matrix has them; else BYTES: one code in
                                             each byte */
    int block, sign_bit, shift;
    bool integer;                         /* int8 */
    int nan_magnitude;                    /* e4m3's, which would be a number of fp16; else none has it */
    float factor;                         /* 2^exponent */
    float tensor_scale;                   /* 1: none */
    bool divides;
    bool streamed;                        /* fp32 numbers are written past the caches, where they begin at a multiple of
                                             32 bytes */
};

struct bsmi_dequantize_kernel {
    const char *name;
    uint32_t needs;                       /* BSM_CPU_ bits */
    /* count codes, a multiple of 16, times their scales, one for each block.  NULL: number by number. */
    void (*dequantize)(const struct bsmi_block_decoding *decoding, const uint8_t *codes, const float *scales,
                       int64_t count, void *to);
};

extern const struct bsmi_dequantize_kernel bsmi_dequantize_kernels[];
extern const int bsmi_dequantize_kernel_count;

/* The first that these features run and that serves: block formats into rows of fp32, fp16 or bf16 that follow one
 * another; e8m0 scales without a tensor scale, whose products are exact in fp32, and ue4m3 scales, with any into fp32,
 * with one of 2^-96 to 2^96 into 16 bits. */
const struct bsmi_dequantize_kernel *bsmi_dequantize_kernel_choose(uint32_t features, const struct bsmi_matrix *source,
                                                                   float tensor_scale,
                                                                   const struct bsmi_reals *destination,
                                                                   struct bsmi_block_decoding *decoding);

#if defined(__x86_64__)
void bsmi_dequantize_blocks_avx2(const struct bsmi_block_decoding *decoding, const uint8_t *codes, const float *scales,
                                 int64_t count, void *to);
#endif

#endif

/* Products of e2m1's codes and scales as bf16 numbers, to be looked up. */
#ifndef BSMI_BF16_TABLES_H
#define BSMI_BF16_TABLES_H

#include <stdint.h>

/* Of e8m0, entry n has the scale 2^(BSMI_FP4_LIFT - n): n is what bsmi_bf16_rows has as n << 7, the entry's place.  Its
 * 0xffff, of rows that are missing, is the place of zeros. */
enum { BSMI_FP4_LIFT = 64, BSMI_FP4_SCALES = 511, BSMI_PRODUCT_BYTES = 32, BSMI_FP4_STRIDE = 1 << 7 };

/* [scale]: the numbers of all codes, in words; or as bytes, the lower halves of all and then the upper ones, as
 * permutations of bytes want them.  Of e8m0, -0 is +0. */
struct bsmi_bf16_tables {
    _Alignas(64) uint16_t nvfp4[128][16];
    _Alignas(64) uint8_t nvfp4_bytes[128][BSMI_PRODUCT_BYTES];
    _Alignas(64) uint8_t fp4_bytes[BSMI_FP4_SCALES + 2][BSMI_FP4_STRIDE];
};

const struct bsmi_bf16_tables *bsmi_bf16_tables(void);

#endif

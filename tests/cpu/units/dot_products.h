/* Instructions that sum dot products in vector registers: VDPBF16PS of x86, BFMMLA and SMMLA of Arm. */
#ifndef DOT_PRODUCTS_H
#define DOT_PRODUCTS_H

#include <stdint.h>

/* One lane of VDPBF16PS (Intel's manual, volume 2C): the pairs' second product first. */
float emulated_vdpbf16ps(float sum, const uint16_t a[2], const uint16_t b[2]);

/* All 16 lanes of 512 bits; a and b in the order of memory. */
void emulated_vdpbf16ps_512(float sums[16], const void *a, const void *b);

/* sums[2][2] += a[2][4] times b[2][4] transposed (Arm's manual, BFMatMulAdd and MatMulAdd): of a row of 4 bf16 two sums
 * of two products each; of 8 bytes all. */
void emulated_bfmmla(float sums[4], const uint16_t a[8], const uint16_t b[8]);
void emulated_smmla(int32_t sums[4], const int8_t a[16], const int8_t b[16]);

#endif

/* The single steps of which matrix units are made, in plain C: what an fp32 addition, a fused multiply-add and a
 * rounding give there. */
#ifndef FLOAT_STEPS_H
#define FLOAT_STEPS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of_fp32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float fp32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* bf16 is the upper half of an fp32 number. */
static inline float fp32_of_bf16(uint16_t x) { return fp32_of_bits((uint32_t)x << 16); }

/* x; where it is subnormal, the zero of its sign. */
float flushed(float x);

/* a * b + c and a + b in fp32, rounded once to nearest even; subnormal numbers that come in are zeros, and so is a sum
 * that is below 2^-126 *after* it was rounded to 24 bits: Intel's and AMD's units see underflow there (Intel's manual,
 * volume 1, section 4.9.1.5, says so of SSE). */
float flushing_fma(float a, float b, float c);
float flushing_add(float a, float b);

/* Arm's BFMul and BFAdd (Architecture Reference Manual, shared pseudocode): fp32, rounded to odd; subnormal numbers
 * that come in are zeros, and so is what is below 2^-126 *before* it is rounded; overflow gives infinity. */
float odd_product(float a, float b);
float odd_sum(float a, float b);

#endif

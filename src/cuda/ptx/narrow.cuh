/* Codes of 8 bits and halves, two at a time: one function an instruction. */
#pragma once

#include <stdint.h>

/* Two products of halves, each rounded to nearest even, subnormals kept (9.7.4.3 mul). */
__device__ static inline uint32_t ptx_mul_f16x2(uint32_t a, uint32_t b)
{
    uint32_t d;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

/* Two codes into two halves, exactly, and two halves into two codes, to nearest even, saturating (9.7.9.21 cvt). */
__device__ static inline uint32_t ptx_cvt_f16x2_e4m3x2(uint16_t codes)
{
    uint32_t d;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(d) : "h"(codes));
    return d;
}

__device__ static inline uint32_t ptx_cvt_f16x2_e5m2x2(uint16_t codes)
{
    uint32_t d;
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(d) : "h"(codes));
    return d;
}

__device__ static inline uint32_t ptx_cvt_e4m3x2_f16x2(uint32_t halves)
{
    uint16_t d;
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(d) : "r"(halves));
    return d;
}

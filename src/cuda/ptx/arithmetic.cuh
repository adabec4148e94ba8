/* Instructions that CUDA C has no operator for, one function each. */
#ifndef BSMI_PTX_ARITHMETIC_CUH
#define BSMI_PTX_ARITHMETIC_CUH

#include <stdint.h>

/* Two products of bf16, each rounded to nearest even, subnormals kept (PTX ISA, 9.7.4.3 mul). */
__device__ static inline uint32_t ptx_mul_bf16x2(uint32_t a, uint32_t b)
{
    uint32_t d;
    asm("mul.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

/* a b + c of two bf16 or two halves, each rounded once (9.7.4.4 fma). */
__device__ static inline uint32_t ptx_fma_bf16x2(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

__device__ static inline uint32_t ptx_fma_f16x2(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* The larger magnitude of two bf16 each; NaN if one of them is (9.7.4.6 abs, 9.7.4.8 max). */
__device__ static inline uint32_t ptx_max_nan_abs_bf16x2(uint32_t a, uint32_t b)
{
    uint32_t d;
    asm("{ .reg .b32 x, y; abs.bf16x2 x, %1; abs.bf16x2 y, %2; max.NaN.bf16x2 %0, x, y; }" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

/* The larger magnitude of two bf16 each, NaN if one of them is; its sign is that of their product. */
__device__ static inline uint32_t ptx_max_nan_xorsign_abs_bf16x2(uint32_t a, uint32_t b)
{
    uint32_t d;
    asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

/* The smaller magnitude of two bf16 each; its sign is that of their product (9.7.4.7 min). */
__device__ static inline uint32_t ptx_min_xorsign_abs_bf16x2(uint32_t a, uint32_t b)
{
    uint32_t d;
    asm("min.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

/* Magnitudes of two bf16 (9.7.4.6 abs). */
__device__ static inline uint32_t ptx_abs_bf16x2(uint32_t a)
{
    uint32_t d;
    asm("abs.bf16x2 %0, %1;" : "=r"(d) : "r"(a));
    return d;
}

/* a - b of two bf16 (9.7.4.2 sub). */
__device__ static inline uint32_t ptx_sub_bf16x2(uint32_t a, uint32_t b)
{
    uint32_t d;
    asm("sub.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

/* Bytes of two words by the nibbles of a selector; one with its highest bit set gives the highest bit of the byte eight
 * times, which __byte_perm does not (9.7.9.7 prmt). */
__device__ static inline uint32_t ptx_prmt(uint32_t a, uint32_t b, uint32_t selector)
{
    uint32_t d;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
    return d;
}

/* Two floats into two codes, to nearest even, saturating; `low` goes into bits 0-7 (9.7.9.21 cvt). */
__device__ static inline uint32_t ptx_cvt_e4m3x2(float high, float low)
{
    uint16_t d;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(high), "f"(low));
    return d;
}

__device__ static inline uint32_t ptx_cvt_e5m2x2(float high, float low)
{
    uint16_t d;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(d) : "f"(high), "f"(low));
    return d;
}

/* Two floats into two halves, to nearest even; `low` goes into bits 0-15. */
__device__ static inline uint32_t ptx_cvt_f16x2(float high, float low)
{
    uint32_t d;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
    return d;
}

/* The same, towards zero. */
__device__ static inline uint32_t ptx_cvt_rz_f16x2(float high, float low)
{
    uint32_t d;
    asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
    return d;
}

/* 2^x and 1/x, each within 2^-22 of it (9.7.3.21 ex2, 9.7.3.13 rcp). */
__device__ static inline float ptx_ex2_approx(float x)
{
    float d;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
    return d;
}

__device__ static inline float ptx_rcp_approx(float x)
{
    float d;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
    return d;
}

/* All `threads` threads of the barrier have arrived; true if the condition holds for one of them (9.7.13.1 barrier). */
__device__ static inline bool ptx_barrier_or(int barrier, int threads, bool condition)
{
    uint32_t any;
    asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %3, 0; barrier.cta.red.or.pred q, %1, %2, p; selp.u32 %0, 1, 0, q; "
                 "}"
                 : "=r"(any) : "r"(barrier), "r"(threads), "r"((uint32_t)condition) : "memory");
    return any != 0;
}

__device__ static inline void ptx_barrier(int barrier, int threads)
{
    asm volatile("barrier.cta.sync %0, %1;" :: "r"(barrier), "r"(threads) : "memory");
}

/* What the kernel before this one in the stream wrote is visible (9.7.13.13 griddepcontrol). */
__device__ static inline void ptx_griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/* Loads through the read-only path, and stores (9.7.9.8 ld, 9.7.9.11 st).  An assignment of a uint4 whose parts are
 * computed may be compiled into four stores. */
__device__ static inline uint4 ptx_load_16(const void *from)
{
    uint4 v;
    asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
    return v;
}

__device__ static inline void ptx_store_16(void *to, uint4 v)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

__device__ static inline void ptx_store_8(void *to, uint32_t low, uint32_t high)
{
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" :: "l"(to), "r"(low), "r"(high) : "memory");
}

__device__ static inline void ptx_store_4(void *to, uint32_t v)
{
    asm volatile("st.global.u32 [%0], %1;" :: "l"(to), "r"(v) : "memory");
}

__device__ static inline void ptx_store_1(void *to, uint32_t v)
{
    asm volatile("st.global.u8 [%0], %1;" :: "l"(to), "r"(v) : "memory");
}

/* Four matrices of 8 x 8 words of 16 bits from shared memory, transposed: lane l gives the address of row l % 8 of
 * matrix l / 8 and gets rows 2 (l % 4) and the next of column l / 4 of each (9.7.15.5.15 ldmatrix). */
__device__ static inline void ptx_ldmatrix_x4_trans(uint32_t address, uint32_t *x)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(address) : "memory");
}

/* A word that other CTAs may read and write at the same time. */
__device__ static inline uint32_t ptx_load_relaxed(const uint32_t *from)
{
    uint32_t v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    return v;
}

__device__ static inline void ptx_store_relaxed(uint32_t *to, uint32_t v)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(to), "r"(v) : "memory");
}

#endif

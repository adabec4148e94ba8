/* Dot products of pairs of bf16 (vdpbf16ps), for the kernels that have its order of sums. */
#ifndef BSMI_BF16_DOT_AVX512_H
#define BSMI_BF16_DOT_AVX512_H

#include "bf16_tiles_avx512.h"

#include <immintrin.h>
#include <string.h>

#define DOT __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define DOT_INLINE DOT __attribute__((always_inline, unused)) static inline

#ifdef BSMI_EMULATED_UNITS
#include BSMI_EMULATED_UNITS
DOT_INLINE void add_pairs(__m512 *sums, __m512i b, __m512i a)
{
    float kept[16];
    uint16_t x[32], y[32];
    _mm512_storeu_ps(kept, *sums);
    _mm512_storeu_si512(x, a), _mm512_storeu_si512(y, b);
    emulated_vdpbf16ps_512(kept, x, y);
    *sums = _mm512_loadu_ps(kept);
}
#else
/* sums += b * a, of each pair the odd k first.  In assembly, because compilers copy and spill accumulators in place of
 * adding to them. */
DOT_INLINE void add_pairs(__m512 *sums, __m512i b, __m512i a)
{
    __asm__("vdpbf16ps %[a], %[b], %[sums]" : [sums] "+v"(*sums) : [a] "v"(a), [b] "v"(b));
}
#endif

/* Of one row, for all columns. */
DOT_INLINE __m512i broadcast_pair(const uint16_t *numbers)
{
    int32_t pair;
    memcpy(&pair, numbers, sizeof pair);
    return _mm512_set1_epi32(pair);
}

#endif

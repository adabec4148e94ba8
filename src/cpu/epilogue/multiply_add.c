/* Rows of fp32 numbers, multiplied and added with one rounding.  Where the compiler may not use the CPU's own
 * instruction, fmaf is a function of libm, called for each number. */
#include "multiply_add.h"

#include "core/core.h"

#include <math.h>

__attribute__((always_inline)) static inline void multiply_add(const float *factors, float factor,
                                                               const float *numbers, const float *addends,
                                                               int64_t count, float *to)
{
    if (factors != NULL) for (int64_t j = 0; j < count; j++) to[j] = fmaf(factors[j], numbers[j], addends[j]);
    else for (int64_t j = 0; j < count; j++) to[j] = fmaf(factor, numbers[j], addends[j]);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void multiply_add_fma(const float *factors, float factor,
                                                                 const float *numbers, const float *addends,
                                                                 int64_t count, float *to)
{
    multiply_add(factors, factor, numbers, addends, count, to);
}
#endif

void bsmi_multiply_add(uint32_t features, const float *factors, float factor, const float *numbers,
                       const float *addends, int64_t count, float *to)
{
#if defined(__x86_64__)
    const uint32_t needed = BSM_CPU_FMA | BSM_CPU_AVX2;
    if ((features & needed) == needed) {
        multiply_add_fma(factors, factor, numbers, addends, count, to);
        return;
    }
#else
    (void)features;
#endif
    multiply_add(factors, factor, numbers, addends, count, to);
}

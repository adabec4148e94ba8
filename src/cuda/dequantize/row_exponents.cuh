/* The exponent of a row of block-scaled numbers, which bf16 holds relative to it: the rules that the head of decode.cu
 * gives the reasons for. */
#ifndef BSMI_ROW_EXPONENTS_CUH
#define BSMI_ROW_EXPONENTS_CUH

#include "elements.cuh"

enum { LEAST_EXPONENT = -40, MOST_EXPONENT = 40 };

/* Exponents of the smallest nonzero and of the largest magnitude of an element. */
__device__ static inline void element_range(int element, int *least, int *most)
{
    *least = 1 - byte_of(bias_of_each, element) - byte_of(mantissa_bits_of_each, element);
    *most = byte_of(exponent_of_each, element);
    if (element == BSM_INT8) *least = -6, *most = 1;       /* -2 is a code */
}

/* e8m0 codes with which no element leaves the range: least .. least + span. */
struct scale_bounds { uint32_t least, span; };

__device__ static inline scale_bounds scale_bounds_of(int element)
{
    int least, most;
    element_range(element, &least, &most);
    const uint32_t first = (uint32_t)(127 + LEAST_EXPONENT - least);
    return { first, (uint32_t)(127 + MOST_EXPONENT - most) - first };
}

/* The middle of the range of a row whose scales are least .. most, if it spans little enough and may be other than
 * 0. */
__device__ static inline int exponent_of_range(int element, int least_scale, int most_scale, bool only_zero)
{
    int least, most;
    element_range(element, &least, &most);
    least += least_scale - 127, most += most_scale - 127;
    return most - least > MOST_EXPONENT - LEAST_EXPONENT || only_zero ? BSMI_ROW_FALLBACK : (least + most) >> 1;
}

#endif

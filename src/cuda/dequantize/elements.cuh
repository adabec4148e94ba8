/* The table of elements on the device, and the exact conversions by it: src/format's arithmetic. */
#ifndef BSMI_ELEMENTS_CUH
#define BSMI_ELEMENTS_CUH

#include "blockscale/matrix.h"
#include "cuda/params/kernels.h"
#include "format/rounding.h"

#define X(id, name, bits, exp, man, bias, max_code, inf, nan_code, nans, grid, integer_bits, max_value) \
    { nullptr, bits, exp, man, bias, max_code, inf, nan_code, nans, max_value },
constexpr bsm_element_info all_elements[BSM_ELEMENT_COUNT] = { BSMI_ELEMENTS(X) };

/* The table lies within a function, so that kernels that ask for no element have no bank of constants of their own:
 * launches of a kernel that has one overlap less with the kernel in front, even if it reads nothing there. */
__device__ static inline const bsm_element_info &element_of(int element)
{
    static __constant__ const bsm_element_info elements[BSM_ELEMENT_COUNT] = { BSMI_ELEMENTS(X) };
    return elements[element];
}
#undef X

/* For kernels in front of products, which are better without one: numbers of elements of at most 16 bits as
 * immediates, a byte each. */
template <class OF> constexpr uint64_t byte_of_each(OF of)
{
    uint64_t bytes = 0;
    for (int i = 0; i < 8; i++) bytes |= (uint64_t)(of(all_elements[i]) & 0xff) << 8 * i;
    return bytes;
}
constexpr int exponent_of(double number) { return number < 2 ? 0 : 1 + exponent_of(number / 2); }

constexpr uint64_t bits_of_each = byte_of_each([](const bsm_element_info &e) { return e.bits; });
constexpr uint64_t mantissa_bits_of_each = byte_of_each([](const bsm_element_info &e) { return e.mantissa_bits; });
constexpr uint64_t bias_of_each = byte_of_each([](const bsm_element_info &e) { return e.bias; });
constexpr uint64_t exponent_of_each = byte_of_each([](const bsm_element_info &e) { return exponent_of(e.max_value); });
constexpr uint64_t max_code_of_each = byte_of_each([](const bsm_element_info &e) { return (int)e.max_code; });

__device__ static inline int byte_of(uint64_t bytes, int element) { return (int)(bytes >> 8 * element & 0xff); }

/* The bits, of four codes in bytes, that tell what is not zero: all but signs; of int8 all. */
__device__ static inline uint32_t magnitude_mask(int element)
{
    if (element == BSM_INT8) return 0xffffffff;
    return ((1u << (byte_of(bits_of_each, element) - 1)) - 1) * 0x01010101;
}

/* Any element, rounded once; out of line, since many kernels need it somewhere and none in its inner loop. */
__device__ __noinline__ static uint32_t encode_element(int element, double value, int rounding, bool saturate,
                                                       uint32_t random)
{
    return bsmi_encode(&element_of(element), value, (bsm_rounding)rounding, saturate, random);
}

__device__ static inline float decode_element(int element, uint32_t code)
{
    switch (element) {
    case BSM_FP32: return __uint_as_float(code);
    case BSM_BF16: return bsmi_bf16_to_float((uint16_t)code);
    case BSM_FP16: return bsmi_fp16_to_float((uint16_t)code);
    case BSM_INT8: return bsmi_decode_int8(code);
    default: return bsmi_decode_small(&element_of(element), code);
    }
}

__device__ static inline float decode_scale(int scale, uint32_t code)
{
    return scale == BSM_E8M0    ? bsmi_e8m0_to_float((uint8_t)code)
           : scale == BSM_UE4M3 ? bsmi_ue4m3_to_float((uint8_t)code)
                                : 1;
}

/* Reals, as bsmi_real_load and bsmi_real_store. */
__device__ static inline double load_real(int type, const void *data, int64_t index)
{
    switch (type) {
    case BSM_REAL_FP16: return (double)bsmi_fp16_to_float(((const uint16_t *)data)[index]);
    case BSM_REAL_BF16: return (double)bsmi_bf16_to_float(((const uint16_t *)data)[index]);
    case BSM_REAL_FP64: return ((const double *)data)[index];
    default: return (double)((const float *)data)[index];
    }
}

__device__ static inline void store_real(int type, void *data, int64_t index, double value)
{
    switch (type) {
    case BSM_REAL_FP16:
        ((uint16_t *)data)[index] = (uint16_t)encode_element(BSM_FP16, value, BSM_ROUND_NEAREST_EVEN, false, 0);
        break;
    case BSM_REAL_BF16:
        ((uint16_t *)data)[index] = (uint16_t)encode_element(BSM_BF16, value, BSM_ROUND_NEAREST_EVEN, false, 0);
        break;
    case BSM_REAL_FP64:
        ((double *)data)[index] = isnan(value) ? bsmi_double_from_bits((uint64_t)0x7ff8 << 48) : value;
        break;
    default: ((float *)data)[index] = isnan(value) ? bsmi_float_from_bits(0x7fc00000) : __double2float_rn(value); break;
    }
}

#endif

/* Codes of a byte each as pairs of bf16, by instructions for one element: which it is, the kernels find out before
 * their loops. */
#pragma once

#include "cuda/dequantize/small_floats.cuh"

template <int ELEMENT_> struct element_tag { static constexpr int ELEMENT = ELEMENT_; };

/* work(element_tag<...>) for the element that is at hand; codes tell which there can be. */
template <class CODES, class WORK> __device__ static inline void with_element(int32_t element, WORK work)
{
    if (CODES::NIBBLES) return work(element_tag<BSM_E2M1>());
    if (CODES::STREAM) return element == BSM_E2M3 ? work(element_tag<BSM_E2M3>()) : work(element_tag<BSM_E3M2>());
    switch (element) {
    case BSM_E4M3: return work(element_tag<BSM_E4M3>());
    case BSM_E5M2: return work(element_tag<BSM_E5M2>());
    case BSM_E2M3: return work(element_tag<BSM_E2M3>());
    case BSM_E3M2: return work(element_tag<BSM_E3M2>());
    default: return work(element_tag<BSM_INT8>());
    }
}

struct element_bits { int bits, mantissa_bits, bias; };
template <int ELEMENT> __device__ constexpr element_bits bits_of()
{
    switch (ELEMENT) {
#define X(id, name, bits, exp, man, bias, max_code, inf, nan_code, nans, grid, integer_bits, max_value) \
    case BSM_##id: return { bits, man, bias };
        BSMI_ELEMENTS(X)
#undef X
    default: return {};
    }
}

/* Selectors for prmt that put two bytes of a word where decode_bytes wants them: into the high bytes of two
 * halves, so that signs are where bf16 has them, or into the low ones. */
template <int ELEMENT> __device__ constexpr bool wants_high_bytes()
{
    return ELEMENT == BSM_E4M3 || ELEMENT == BSM_E5M2;
}
template <int ELEMENT> __device__ constexpr uint32_t first_bytes()
{
    return wants_high_bytes<ELEMENT>() ? 0x1404 : 0x4140;
}
template <int ELEMENT> __device__ constexpr uint32_t last_bytes()
{
    return wants_high_bytes<ELEMENT>() ? 0x3424 : 0x4342;
}

/* Two codes without their scales; NaN and infinity as if they were numbers: decode_pair of small_floats.cuh says
 * how. */
template <int ELEMENT> __device__ static inline uint32_t decode_bytes(uint32_t codes)
{
    constexpr element_bits OF = bits_of<ELEMENT>();
    constexpr uint32_t MAGNITUDE = (((1u << (OF.bits - 1)) - 1) << (7 - OF.mantissa_bits)) * 0x00010001,
                       SIGN = 0x80008000;
    constexpr uint32_t MEND = (uint32_t)((254 - OF.bias) << 7) * 0x00010001;
    if (ELEMENT == BSM_INT8) return decode_int8_pair(codes);
    const uint32_t magnitude =
        wants_high_bytes<ELEMENT>() ? codes >> (1 + OF.mantissa_bits) : codes << (7 - OF.mantissa_bits);
    const uint32_t sign = wants_high_bytes<ELEMENT>() ? codes : codes << (16 - OF.bits);
    return ptx_mul_bf16x2((magnitude & MAGNITUDE) | (sign & SIGN), MEND);
}

/* Whether one of the four codes is NaN or infinity, as bits of which one is set. */
template <int ELEMENT> __device__ static inline uint32_t special_bits(uint32_t four)
{
    if (!wants_high_bytes<ELEMENT>()) return 0;
    return ((four & 0x7f7f7f7f) + (ELEMENT == BSM_E4M3 ? 0x01010101 : 0x04040404)) & 0x80808080;
}

/* decode_bytes made them of these codes: NaN and infinity among them become what they are. */
template <int ELEMENT> __device__ static inline uint32_t mend_bytes(uint32_t codes, uint32_t decoded)
{
    return mend_special_pair(ELEMENT, wants_high_bytes<ELEMENT>() ? codes >> 8 : codes, decoded);
}

/* Any operand as rows of bf16, exactly: number * 2^-(exponent of the row); and codes as the GEMM kernels read them.
 *
 * A row's exponent is 0 if its numbers lie within [2^-40, 2^41), or may: the range is told from the scales of blocks
 * that are not all zeros and from the range of the element.  Else it is the middle of the row's range, if that spans
 * at most 2^80.  Two such rows have products within [2^-80, 2^82) whose last bits are 2^-94 or above: no product is
 * flushed or rounded by an fp32 sum's range, and 2^45 of them do not overflow it.  Rows that span more are fallback
 * rows, for the kernel without matrix instructions.
 *
 * A wave takes a row at a time; its lanes take blocks to find the range, then pairs of numbers. */
#include "functions.h"
#include "hip/params/kernels.h"
#include "numbers.h"

enum { LEAST_EXPONENT = -40, MOST_EXPONENT = 40 };

/* Exponents of the smallest nonzero and of the largest magnitude of an element. */
static inline void element_range(int element, int *least, int *most)
{
    const bsm_element_info *info = element_of(element);
    *least = 1 - info->bias - info->mantissa_bits;
    *most = (int)(bsmi_double_bits(info->max_value) >> 52) - 1023;
    if (element == BSM_INT8) *least = -6, *most = 1;       /* -2 is a code */
}

/* By a wave: the least and the largest word of its lanes. */
static inline int least_of_wave(int value)
{
    for (int apart = WAVE / 2; apart > 0; apart /= 2) {
        const int other = __builtin_amdgcn_ds_bpermute((int)((thread_number() % WAVE) ^ (uint32_t)apart) * 4, value);
        value = other < value ? other : value;
    }
    return value;
}

/* The exponent of a row, by a wave. */
static inline int32_t row_exponent(const struct bsmi_hip_decode_parameters *p, int64_t batch, int64_t row)
{
    const struct bsmi_device_matrix *m = &p->source;
    const unsigned char *codes = row_of(m, batch, row);
    const int64_t blocks = divided_up(m->columns, m->block);
    const uint32_t magnitude = m->element == BSM_INT8 ? 0xff : (1u << (element_of(m->element)->bits - 1)) - 1;
    int lowest = 255, highest = 0, least, most;
    for (int64_t b = thread_number() % WAVE; b < blocks; b += WAVE) {
        const int scale = (int)load_scale(m, batch, row, b);
        uint32_t any = 0;
        for (int64_t k = b * m->block; k < smaller((b + 1) * m->block, m->columns); k++) any |= load_code(m, codes, k);
        if ((any & magnitude) == 0 || scale == 255) continue;
        lowest = scale < lowest ? scale : lowest;
        highest = scale > highest ? scale : highest;
    }
    lowest = least_of_wave(lowest), highest = -least_of_wave(-highest);
    element_range(m->element, &least, &most);
    least += lowest - 127, most += highest - 127;
    if (lowest == 255 || (least >= LEAST_EXPONENT && most <= MOST_EXPONENT)) return 0;
    return most - least > MOST_EXPONENT - LEAST_EXPONENT || p->only_exponent_zero ? BSMI_ROW_FALLBACK
                                                                                  : (least + most) >> 1;
}

/* Element k of a row as bf16; that is exact. */
static inline uint32_t scaled_bf16(const struct bsmi_device_matrix *m, const unsigned char *codes, int64_t batch,
                                   int64_t row, int64_t k, int32_t exponent)
{
    float x = decode_element(m->element, load_code(m, codes, k));
    if (m->block != 0) {
        const uint32_t scale = load_scale(m, batch, row, block_of(m, k));
        if (bsmi_scale_is_nan((bsm_scale)m->scale, (uint8_t)scale)) return 0x7fc0;
        if (m->scale == BSM_UE4M3) x *= decode_scale(m->scale, scale);
        else if (x != 0) x *= bsmi_float_power_of_two((int)scale - 127 - exponent);
    }
    return bsmi_float_bits(x) >> 16;
}

/* One of two terms of an fp16 number, of the same sign, both zero or neither: infinity times their sum needs no care.
 * The first has the leading 8 bits, the second the rest; or each the half. */
static inline uint32_t half_term(uint32_t code, int term)
{
    const float x = bsmi_fp16_to_float((uint16_t)code);
    const float high = bsmi_float_from_bits(bsmi_float_bits(x) & 0xffff0000), rest = x - high;
    const float first = rest == 0 ? x / 2 : high, second = rest == 0 ? x / 2 : rest;
    if (!isfinite(x)) return isnan(x) ? 0x7fc0 : bsmi_float_bits(x) >> 16;
    return bsmi_float_bits(term == 0 ? first : second) >> 16;
}

static inline uint32_t decoded(const struct bsmi_device_matrix *m, const unsigned char *codes, int64_t batch,
                               int64_t row, int64_t k, int32_t exponent, int term)
{
    if (k >= m->columns || exponent == BSMI_ROW_FALLBACK) return 0;
    if (m->element == BSM_BF16) return load_code(m, codes, k);
    if (m->element == BSM_FP16) return half_term(load_code(m, codes, k), term);
    return scaled_bf16(m, codes, batch, row, k, exponent);
}

KERNEL(BSMI_HIP_THREADS) bsmi_decode(struct bsmi_hip_decode_parameters p, uint32_t groups)
{
    const struct bsmi_device_matrix *m = &p.source;
    const uint32_t lane = thread_number() % WAVE;
    for (int64_t line = (int64_t)group_number() * (BSMI_HIP_THREADS / WAVE) + thread_number() / WAVE;
         line < m->batch * m->rows; line += groups * (BSMI_HIP_THREADS / WAVE)) {
        const int64_t batch = quotient(line, m->rows), row = line - batch * m->rows;
        const int32_t exponent = m->scale == BSM_E8M0 ? row_exponent(&p, batch, row) : 0;
        const unsigned char *codes = row_of(m, batch, row);
        if (p.exponents != NULL && lane == 0) p.exponents[line] = exponent;
        uint16_t *to = p.decoded + batch * p.batch_pitch + row * p.row_pitch;
        for (int stretch = 0; stretch < p.stretches; stretch++, to += p.padded_columns) {
            const int term = stretch / p.repeat & 1;
            for (int64_t k = lane * 2; k < p.padded_columns; k += WAVE * 2)
                *(uint32_t *)(void *)(to + k) = decoded(m, codes, batch, row, k, exponent, term)
                                                | decoded(m, codes, batch, row, k + 1, exponent, term) << 16;
        }
    }
}

/* A thread an octet. */
KERNEL(BSMI_HIP_THREADS) bsmi_repack(struct bsmi_hip_repack_parameters p, uint32_t groups)
{
    const struct bsmi_device_matrix *m = &p.source;
    const int64_t octets = p.padded_columns >> 3;
    struct bsmi_device_matrix to = *m;
    to.packing = m->bits == 4 ? BSM_PACKING_LOW_FIRST : m->bits == 6 ? BSM_PACKING_BIT_STREAM : BSM_PACKING_DEFAULT;
    for (int64_t i = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number(); i < m->batch * m->rows * octets;
         i += (int64_t)groups * BSMI_HIP_THREADS) {
        const int64_t line = quotient(i, octets), number = i - line * octets, batch = quotient(line, m->rows),
                      row = line - batch * m->rows;
        const unsigned char *codes = row_of(m, batch, row);
        uint64_t eight = 0;
#pragma unroll 1
        for (int64_t k = number * 8; k < smaller(number * 8 + 8, m->columns); k++)
            eight |= (uint64_t)load_code(m, codes, k) << 8 * (k & 7);
        store_octet(&to, p.to + batch * p.batch_bytes + row * p.row_bytes, number, eight, 8);
    }
}

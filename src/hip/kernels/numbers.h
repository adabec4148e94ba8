/* Elements and scales of a matrix wherever they lie, and reals: the arithmetic of src/format, one number a time. */
#ifndef BSMI_HIP_NUMBERS_H
#define BSMI_HIP_NUMBERS_H

#include "blockscale/quantize.h"
#include "blockscale/scale_layout.h"
#include "device.h"
#include "device/parameters.h"
#include "format/rounding.h"

static inline const bsm_element_info *element_of(int element)
{
#define X(id, name, bits, exp, man, bias, max_code, inf, nan_code, nans, grid, integer_bits, max_value) \
    { NULL, bits, exp, man, bias, max_code, inf, nan_code, nans, max_value },
    static const bsm_element_info elements[BSM_ELEMENT_COUNT] = { BSMI_ELEMENTS(X) };
#undef X
    return &elements[element];
}

static inline float decode_element(int element, uint32_t code)
{
    switch (element) {
    case BSM_FP32: return bsmi_float_from_bits(code);
    case BSM_BF16: return bsmi_bf16_to_float((uint16_t)code);
    case BSM_FP16: return bsmi_fp16_to_float((uint16_t)code);
    case BSM_INT8: return bsmi_decode_int8(code);
    default: return bsmi_decode_small(element_of(element), code);
    }
}

/* Rounded once; out of line, since it is long. */
static __attribute__((noinline)) uint32_t encode_element(int element, double value, int rounding, bool saturate,
                                                         uint32_t random)
{
    return bsmi_encode(element_of(element), value, (bsm_rounding)rounding, saturate, random);
}

static inline float decode_scale(int scale, uint32_t code)
{
    return scale == BSM_E8M0    ? bsmi_e8m0_to_float((uint8_t)code)
           : scale == BSM_UE4M3 ? bsmi_ue4m3_to_float((uint8_t)code)
                                : 1;
}

/* Byte in the row and shift of a nibble in GGUF blocks (packing.c). */
struct gguf_nibble { int64_t byte; int shift; };

static inline struct gguf_nibble gguf_place(bool mxfp4, int64_t k)
{
    if (mxfp4) {
        const int j = (int)(k & 31);
        return (struct gguf_nibble){ (k >> 5) * 17 + 1 + (j & 15), j < 16 ? 0 : 4 };
    }
    const int sub_block = (int)(k & 63) >> 4, j = (int)(k & 15);
    return (struct gguf_nibble){ (k >> 6) * 36 + 4 + sub_block * 8 + (j & 7), j < 8 ? 0 : 4 };
}

/* The code of element k of a row, in any packing. */
static inline uint32_t load_code(const struct bsmi_device_matrix *m, const unsigned char *row, int64_t k)
{
    switch (m->packing) {
    case BSM_PACKING_LOW_FIRST: return row[k >> 1] >> ((k & 1) * 4) & 15;
    case BSM_PACKING_HIGH_FIRST: return row[k >> 1] >> (4 - (k & 1) * 4) & 15;
    case BSM_PACKING_BIT_STREAM: {
        const int64_t byte = k * 6 >> 3;
        const int shift = (int)(k * 6 & 7);
        const uint32_t next = shift > 2 ? row[byte + 1] : 0;
        return (row[byte] | next << 8) >> shift & 63;
    }
    case BSM_PACKING_GGUF: {
        const struct gguf_nibble at = gguf_place(m->scale == BSM_E8M0, k);
        return row[at.byte] >> at.shift & 15;
    }
    default: break;
    }
    if (m->bits <= 8) return row[k] & ((1u << m->bits) - 1);
    return m->bits == 16 ? ((const uint16_t *)(const void *)row)[k] : ((const uint32_t *)(const void *)row)[k];
}

static inline void store_code_bytes(unsigned char *to, uint64_t bytes, int count)
{
    for (int i = 0; i < count; i++) to[i] = (unsigned char)(bytes >> 8 * i);
}

/* Eight codes, a byte each, from element 8 number of a row on; count of them are the row's, the others are 0, and the
 * rest of the last byte, too.  Not of GGUF. */
static inline void store_octet(const struct bsmi_device_matrix *m, unsigned char *row, int64_t number, uint64_t codes,
                               int count)
{
    uint64_t packed = 0;
    if (m->bits == 8 || m->packing == BSM_PACKING_DEFAULT || m->packing == BSM_PACKING_BYTES) {
        store_code_bytes(row + number * 8, codes, count);
        return;
    }
    if (m->packing == BSM_PACKING_BIT_STREAM) {
        for (int i = 0; i < 8; i++) packed |= (codes >> 8 * i & 63) << 6 * i;
        store_code_bytes(row + number * 6, packed, (count * 6 + 7) / 8);
        return;
    }
    const int first = m->packing == BSM_PACKING_HIGH_FIRST;
    for (int i = 0; i < 8; i++) packed |= (codes >> 8 * i & 15) << 4 * (i ^ first);
    store_code_bytes(row + number * 4, packed, (count + 1) / 2);
}

/* GGUF: the octet of low nibbles and the one of high nibbles, into the same eight bytes. */
static inline void store_gguf(unsigned char *row, bool mxfp4, int64_t first_of_low, uint64_t low, uint64_t high)
{
    store_code_bytes(row + gguf_place(mxfp4, first_of_low).byte, low | high << 4, 8);
}

/* docs/guide/layouts.md. */
static inline int64_t scale_place(const struct bsmi_device_layout *l, int64_t r, int64_t s)
{
    const int64_t by_4 = (l->columns + 3) >> 2, by_8 = (l->columns + 7) >> 3;
    switch (l->kind) {
    case BSM_LAYOUT_128X4: return ((r >> 7) * by_4 + (s >> 2)) * 512 + (r & 31) * 16 + (r >> 5 & 3) * 4 + (s & 3);
    case BSM_LAYOUT_8X4: return ((r >> 3) * by_4 + (s >> 2)) * 32 + (r & 7) * 4 + (s & 3);
    case BSM_LAYOUT_TILES: {
        const int64_t height = l->tile_rows, width = l->tile_columns, down = quotient(r, height),
                      across = quotient(s, width);
        return ((down * divided_up(l->columns, width) + across) * height + (r - down * height)) * width
               + (s - across * width);
    }
    case BSM_LAYOUT_CDNA4_16:
    case BSM_LAYOUT_AITER:
        return ((r >> 5) * by_8 + (s >> 3)) * 256 + (s & 3) * 64 + (r & 15) * 4 + (s >> 2 & 1) * 2 + (r >> 4 & 1);
    case BSM_LAYOUT_CDNA4_32:
        return ((r >> 5) * by_8 + (s >> 3)) * 256 + (s & 1) * 128 + (r & 31) * 4 + (s >> 1 & 3);
    case BSM_LAYOUT_DEEPGEMM: return ((s >> 2) * 4 * ((l->rows + 3) >> 2) + r) * 4 + (s & 3);
    case BSM_LAYOUT_GGUF_MXFP4: return r * l->pitch + s * 17;
    case BSM_LAYOUT_GGUF_NVFP4: return r * l->pitch + (s >> 2) * 36 + (s & 3);
    default: return r * l->pitch + s;
    }
}

/* The number of the block that element k lies in: blocks have 16 or 32. */
static inline int64_t block_of(const struct bsmi_device_matrix *m, int64_t k)
{
    return m->block == 16 ? k >> 4 : k >> 5;
}

static inline uint32_t load_scale(const struct bsmi_device_matrix *m, int64_t batch, int64_t row, int64_t column)
{
    return m->scales[batch * m->scale_batch_bytes + scale_place(&m->layout, row, column)];
}

static inline const unsigned char *row_of(const struct bsmi_device_matrix *m, int64_t batch, int64_t row)
{
    return m->data + batch * m->batch_bytes + row * m->row_bytes;
}

/* Reals, as bsmi_real_load and bsmi_real_store. */
static inline double load_real(int type, const void *data, int64_t index)
{
    switch (type) {
    case BSM_REAL_FP16: return (double)bsmi_fp16_to_float(((const uint16_t *)data)[index]);
    case BSM_REAL_BF16: return (double)bsmi_bf16_to_float(((const uint16_t *)data)[index]);
    case BSM_REAL_FP64: return ((const double *)data)[index];
    default: return (double)((const float *)data)[index];
    }
}

static inline uint32_t fp32_code(double value) { return isnan(value) ? 0x7fc00000 : bsmi_float_bits((float)value); }

static inline void store_real(int type, void *data, int64_t index, double value)
{
    switch (type) {
    case BSM_REAL_FP16:
    case BSM_REAL_BF16:
        ((uint16_t *)data)[index] = (uint16_t)encode_element(type == BSM_REAL_FP16 ? BSM_FP16 : BSM_BF16, value,
                                                             BSM_ROUND_NEAREST_EVEN, false, 0);
        break;
    case BSM_REAL_FP64:
        ((uint64_t *)data)[index] = isnan(value) ? (uint64_t)0x7ff8 << 48 : bsmi_double_bits(value);
        break;
    default: ((uint32_t *)data)[index] = fp32_code(value); break;
    }
}

#endif

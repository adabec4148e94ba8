/* Converting scale layouts 16 bytes a time, from registers to registers.
 *
 * In a layout of rows, 16 neighbouring columns of a row are 16 neighbouring bytes (a unit).  In a layout of columns,
 * four neighbouring columns of four rows are: of rows r + 32 i (128x4) or r + i.  So a thread that takes four rows of
 * 16 columns has four units of either, and transposes 4 x 4 words between them.  CDNA4's layouts mix bytes of more rows
 * or columns; they are written so, not read.
 * A CTA takes 128 rows x 128 columns a step, a thread 64 bytes of it. */
#ifndef BSMI_SCALE_UNITS_CUH
#define BSMI_SCALE_UNITS_CUH

#include "cuda/ptx/arithmetic.cuh"
#include "cuda/dequantize/octets.cuh"
#include "scale_places.cuh"

enum unit_kind { UNITS_NONE, UNITS_ROWS, UNITS_COLUMNS_32, UNITS_COLUMNS_1, UNITS_CDNA4_16, UNITS_CDNA4_32 };
enum { UNIT_ROWS = 128, UNIT_COLUMNS = 128 };

__device__ static inline unit_kind unit_kind_of(const bsmi_device_layout &layout, const unsigned char *data)
{
    if (!aligned_to(data, 16) || layout.columns % 16 != 0) return UNITS_NONE;
    switch (layout.kind) {
    case BSM_LAYOUT_LINEAR: return layout.pitch % 16 == 0 ? UNITS_ROWS : UNITS_NONE;
    case BSM_LAYOUT_128X4: return UNITS_COLUMNS_32;
    case BSM_LAYOUT_8X4:
    case BSM_LAYOUT_DEEPGEMM: return UNITS_COLUMNS_1;
    case BSM_LAYOUT_CDNA4_16:
    case BSM_LAYOUT_AITER: return UNITS_CDNA4_16;
    case BSM_LAYOUT_CDNA4_32: return UNITS_CDNA4_32;
    default: return UNITS_NONE;
    }
}

struct unit_path {
    unit_kind from, to;
    int row_step;
}; /* from UNITS_NONE: there is none */

__device__ static inline unit_path unit_path_of(const bsmi_convert_scales_parameters &p)
{
    unit_path w = { unit_kind_of(p.from_layout, p.from), unit_kind_of(p.to_layout, p.to), 1 };
    const bool reads = w.from == UNITS_ROWS && w.to != UNITS_NONE;
    const bool writes = w.to == UNITS_ROWS && (w.from == UNITS_COLUMNS_32 || w.from == UNITS_COLUMNS_1);
    if (p.to_layout.padded_columns != p.from_layout.columns || (!reads && !writes)) w.from = UNITS_NONE;
    if (w.from == UNITS_COLUMNS_32 || w.to == UNITS_COLUMNS_32 || w.from == w.to) w.row_step = 32;
    return w;
}

/* Bytes of four units: from the first one's, `apart` from one to the next. */
struct units {
    const unsigned char *first;
    int64_t apart;
};

__device__ static inline units units_of(const unsigned char *data, const scale_places &places, unit_kind kind,
                                        int64_t row, int64_t column, int row_step)
{
    return { data + place_in_shifted(places.row, row) + place_in_shifted(places.column, column),
             kind == UNITS_ROWS ? place_in_shifted(places.row, row_step) : place_in_shifted(places.column, 4) };
}

__device__ static inline void transpose(uint4 *v)
{
    const uint4 a = v[0], b = v[1], c = v[2], d = v[3];
    v[0] = make_uint4(a.x, b.x, c.x, d.x), v[1] = make_uint4(a.y, b.y, c.y, d.y);
    v[2] = make_uint4(a.z, b.z, c.z, d.z), v[3] = make_uint4(a.w, b.w, c.w, d.w);
}

/* Four rows of 16 columns; of a row, columns 8 g + j, + 2, + 4, + 6 are a word. */
__device__ static inline void store_cdna4_32(unsigned char *to, const scale_places &places, const uint4 *v)
{
#pragma unroll
    for (int g = 0; g < 2; g++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint32_t low = g == 0 ? v[i].x : v[i].z, high = g == 0 ? v[i].y : v[i].w;
                words[i] = __byte_perm(low, high, j == 0 ? 0x6420 : 0x7531);
            }
            ptx_store_16(to + place_in_shifted(places.column, 8 * g + j),
                         make_uint4(words[0], words[1], words[2], words[3]));
        }
}

/* Eight columns of rows r + i and r + 16 + i, i < 4: columns j and j + 4 of both are a word. */
__device__ static inline void convert_cdna4_16(const unsigned char *from, int64_t row_bytes, unsigned char *to,
                                               const scale_places &places)
{
    uint2 first[4], second[4];
    uint32_t words[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        first[i] = __ldg((const uint2 *)(from + i * row_bytes));
        second[i] = __ldg((const uint2 *)(from + (16 + i) * row_bytes));
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t a = __byte_perm(first[i].x, second[i].x, 0x5140),
                       b = __byte_perm(first[i].y, second[i].y, 0x5140);
        const uint32_t c = __byte_perm(first[i].x, second[i].x, 0x7362),
                       d = __byte_perm(first[i].y, second[i].y, 0x7362);
        words[0][i] = __byte_perm(a, b, 0x5410), words[1][i] = __byte_perm(a, b, 0x7632);
        words[2][i] = __byte_perm(c, d, 0x5410), words[3][i] = __byte_perm(c, d, 0x7632);
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        ptx_store_16(to + place_in_shifted(places.column, j),
                     make_uint4(words[j][0], words[j][1], words[j][2], words[j][3]));
}

/* This thread's part of 128 rows from `row` on and 128 columns from `column` on, or what there is of them. */
__device__ static inline void convert_units(const bsmi_convert_scales_parameters &p, const unit_path &w,
                                            const scale_places &from_places, const scale_places &to_places, int64_t row,
                                            int64_t column)
{
    const int t = (int)threadIdx.x;
    if (w.to == UNITS_CDNA4_16) {
        const int64_t c = column + (t & 15) * 8, r = row + (t >> 6) * 32 + (t >> 4 & 3) * 4;
        if (c >= p.from_layout.columns) return;
        convert_cdna4_16(p.from + place_in_shifted(from_places.row, r) + place_in_shifted(from_places.column, c),
                         place_in_shifted(from_places.row, 1),
                         p.to + place_in_shifted(to_places.row, r) + place_in_shifted(to_places.column, c), to_places);
        return;
    }
    const int64_t c = column + (t & 7) * 16, r = row + (w.row_step == 32 ? t >> 3 : (t >> 3) * 4);
    if (c >= p.from_layout.columns) return;
    const units from = units_of(p.from, from_places, w.from, r, c, w.row_step);
    uint4 v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = ptx_load_16(from.first + i * from.apart);
    if (w.to == UNITS_CDNA4_32) {
        store_cdna4_32(p.to + place_in_shifted(to_places.row, r) + place_in_shifted(to_places.column, c), to_places, v);
        return;
    }
    if (w.from != w.to) transpose(v);
    const units to = units_of(p.to, to_places, w.to, r, c, w.row_step);
#pragma unroll
    for (int i = 0; i < 4; i++) ptx_store_16((unsigned char *)to.first + i * to.apart, v[i]);
}

#endif

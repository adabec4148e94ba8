/* Scales of a tile's rows of B, from where the caller has them to shared memory, and what must be known of them
 * beforehand: exponents of rows, by the rules of decode.cu, and whether there is any NaN.
 *
 * Each warp loads those of some rows, all of them before the tile's first step, while the tile before is multiplied if
 * there is room.  Rows of the linear layout are copied in words, or 16 bytes at a time, from the multiple of four at or
 * before their first byte.  Of other layouts threads load the words byte by byte. */
#pragma once

#include "cuda/dequantize/octets.cuh"
#include "cuda/dequantize/row_exponents.cuh"
#include "cuda/ptx/async_copy.cuh"
#include "cuda/scales/scale_places.cuh"
#include "e2m1_registers.cuh"

/* Rows of scales, from one of the tile's on. */
struct scale_rows {
    const unsigned char *scales;          /* of the first row; linear only */
    int32_t first_row, rows, count;       /* rows that there are from the first one on, perhaps none; scales of a row */
    uint32_t to;                          /* their part of shared memory */
    bool linear, sixteen;                 /* rows begin at multiples of 16 bytes */
};

/* What a warp has found: whether there is any NaN or a sign, which takes more care, and whether rows have exponents
 * other than 0. */
struct scale_findings { bool special, exponents; };

/* in_tile: the first of the rows in the tile. */
template <class CONFIG>
__device__ static inline scale_rows scale_rows_of(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                                  uint32_t scales_at, int32_t in_tile)
{
    const bsmi_device_matrix &m = p.b_source;
    const int32_t first = tile.column + in_tile, count = (int32_t)((m.columns + CONFIG::BLOCK - 1) / CONFIG::BLOCK);
    const unsigned char *scales = m.scales + tile.matrix * p.b_batch_step * m.scale_batch_bytes;
    const uint32_t bits = (uint32_t)(uint64_t)scales | (uint32_t)m.layout.pitch;
    return { scales + first * m.layout.pitch,
             first,
             (int32_t)m.rows - first,
             count,
             scales_at + in_tile * CONFIG::SCALE_PITCH,
             m.layout.kind == BSM_LAYOUT_LINEAR && (bits % 4 == 0 || !CONFIG::CODES::MICRO),
             bits % 16 == 0 };
}

/* Those which this warp loads. */
template <class CONFIG>
__device__ static inline scale_rows own_scale_rows(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                                   uint32_t shared)
{
    return scale_rows_of<CONFIG>(p, tile, shared + CONFIG::AT_SCALES, (int32_t)(threadIdx.x / 32) * CONFIG::WARP_ROWS);
}

/* A row behind the last is the last one again: its sums are not stored. */
__device__ static inline const unsigned char *scales_of_row(const bsmi_mixed_input_parameters &p, const scale_rows &s,
                                                            int32_t row)
{
    return s.scales + min(row, s.rows - 1) * p.b_source.layout.pitch;
}

/* Bytes of a row's first word that are not its own. */
__device__ static inline uint32_t shift_of_row(const bsmi_mixed_input_parameters &p, const scale_rows &s, int32_t row)
{
    return s.linear ? (uint32_t)(uint64_t)scales_of_row(p, s, row) % 4 : 0;
}

/* Loading ---------------------------------------------------------------------------------------------------------- */

template <class CONFIG>
__device__ __noinline__ static void load_by_bytes(const bsmi_mixed_input_parameters &p, int32_t matrix,
                                                  int32_t first_row, uint32_t to)
{
    const bsmi_device_matrix &m = p.b_source;
    const scale_places places = make_places(m.layout);
    const int32_t count = (int32_t)((m.columns + CONFIG::BLOCK - 1) / CONFIG::BLOCK);
    for (int32_t row = 0; row < CONFIG::WARP_ROWS; row++) {
        const unsigned char *from =
            m.scales + matrix * m.scale_batch_bytes + place_in(places.row, min((int64_t)first_row + row, m.rows - 1));
        for (int32_t column = threadIdx.x % 32 * 4; column < count; column += 128) {
            uint32_t word = 0;
            for (int32_t i = 0; i < 4; i++)
                if (column + i < count) word |= (uint32_t)from[place_in(places.column, column + i)] << 8 * i;
            store_shared(to + row * CONFIG::SCALE_PITCH + column, word);
        }
    }
}

/* Of a matrix with linear scales: the first byte, and the one behind the last. */
struct scale_bytes { const unsigned char *first, *end; };

__device__ static inline scale_bytes scale_bytes_of(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                                    const scale_rows &s)
{
    const bsmi_device_matrix &m = p.b_source;
    const unsigned char *first = m.scales + tile.matrix * p.b_batch_step * m.scale_batch_bytes;
    return { first, first + (m.rows - 1) * m.layout.pitch + s.count };
}

/* Bytes behind a row's end may be the next row's; not those outside the matrix. */
template <int BYTES>
__device__ static inline void load_bytes(uint32_t to, const unsigned char *from, const scale_bytes &all)
{
    if (from >= all.first && from + BYTES <= all.end) {
        if constexpr (BYTES == 16) cp_async_16(to, from, 16);
        else cp_async<BYTES>(to, from, BYTES);
        return;
    }
#pragma unroll 1
    for (int32_t at = 0; at < BYTES; at += 4) {
        uint32_t word = 0;
        for (int32_t i = 0; i < 4; i++)
            if (from + at + i >= all.first && from + at + i < all.end) word |= (uint32_t)from[at + i] << 8 * i;
        store_shared(to + at, word);
    }
}

template <class CONFIG>
__device__ static inline void begin_scales(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                           const scale_rows &s)
{
    const uint32_t lane = threadIdx.x % 32;
    if (!s.linear) {
        load_by_bytes<CONFIG>(p, tile.matrix * p.b_batch_step, s.first_row, s.to);
        return;
    }
    const int32_t row = (int32_t)lane / CONFIG::ROW_LANES, part = (int32_t)lane % CONFIG::ROW_LANES;
    const uint32_t shift = shift_of_row(p, s, row), bytes = shift + (uint32_t)s.count,
                   to = s.to + row * CONFIG::SCALE_PITCH;
    const unsigned char *from = scales_of_row(p, s, row) - shift;
    const scale_bytes all = scale_bytes_of(p, tile, s);
    if (s.sixteen)
        for (uint32_t at = part * 16; at < bytes; at += 16 * CONFIG::ROW_LANES) load_bytes<16>(to + at, from + at, all);
    else
        for (uint32_t at = part * 4; at < bytes; at += 4 * CONFIG::ROW_LANES) load_bytes<4>(to + at, from + at, all);
    cp_async_commit_group();
}

/* Steps may reach behind the last scale, and 16 bytes are read at a time: any finite scale does there, but for the code
 * 0 of e8m0. */
template <class CONFIG>
__device__ static inline void fill_tails(const bsmi_mixed_input_parameters &p, const scale_rows &s, int32_t end)
{
    const uint32_t row = threadIdx.x % 32 / CONFIG::ROW_LANES, filler = CONFIG::CODES::MICRO ? 0 : 0x7f7f7f7f;
    const int32_t used = (int32_t)shift_of_row(p, s, (int32_t)row) + s.count;
    uint32_t at = s.to + row * CONFIG::SCALE_PITCH + used / 4 * 4;
    if (threadIdx.x % CONFIG::ROW_LANES != 0) return;
    if (used % 4 != 0) {
        const uint32_t mask = 0xffffffff << used % 4 * 8;
        store_shared(at, (load_shared(at) & ~mask) | (filler & mask));
        at += 4;
    }
#pragma unroll 1
    for (; at < s.to + row * CONFIG::SCALE_PITCH + (uint32_t)(end + 16) / 16 * 16; at += 4) store_shared(at, filler);
}

/* Exponents -------------------------------------------------------------------------------------------------------- */

/* Whether 32 codes are other than zeros. */
__device__ static inline bool block_is_nonzero(const bsmi_mixed_input_parameters &p, const unsigned char *codes,
                                               int32_t column)
{
    uint32_t any = 0;
    if (column * (int64_t)16 < p.b_source.columns / 2) {
        const uint4 v = ptx_load_16(codes + column * (int64_t)16);
        any = v.x | v.y | v.z | v.w;
    }
    return (any & 0x77777777) != 0;
}

/* The exponent of a row of which a scale may lie outside the middle of the range; its scales less that, and those of
 * blocks of zeros brought to where 192 times a scale is finite. */
template <class CONFIG>
__device__ static int32_t settle_row(const bsmi_mixed_input_parameters &p, const scale_rows &s, int32_t matrix,
                                     int32_t row, bool *special)
{
    const bsmi_device_matrix &m = p.b_source;
    const int32_t lane = threadIdx.x % 32, shift = (int32_t)shift_of_row(p, s, row), bytes = shift + s.count;
    const uint32_t of_row = s.to + row * CONFIG::SCALE_PITCH;
    const unsigned char *codes = m.data + matrix * m.batch_bytes + (s.first_row + min(row, s.rows - 1)) * m.row_bytes;
    const scale_bounds bounds = scale_bounds_of(BSM_E2M1);
    int least = 255, most = -1, exponent = 0;
    bool outside = false;
    for (int32_t at = shift + lane; at < bytes; at += 32) {
        const uint32_t code = load_shared(of_row + at / 4 * 4) >> at % 4 * 8 & 0xff;
        if (code == 255) *special = true;
        if (code == 255 || !block_is_nonzero(p, codes, at - shift)) continue;
        outside |= code - bounds.least > bounds.span;
        least = min(least, (int)code), most = max(most, (int)code);
    }
    least = __reduce_min_sync(0xffffffff, least), most = __reduce_max_sync(0xffffffff, most);
    if (__any_sync(0xffffffff, outside)) exponent = exponent_of_range(BSM_E2M1, least, most, p.only_exponent_zero);
    __syncwarp();
    for (int32_t at = lane * 4; at < bytes; at += 128) {
        const uint32_t word = load_shared(of_row + at);
        uint32_t settled = 0;
        for (int i = 0; i < 4; i++) {
            const int code = (int)(word >> 8 * i & 0xff);
            const int moved = exponent == BSMI_ROW_FALLBACK ? 127 : min(max(code - exponent, 60), 200);
            settled |= (uint32_t)(code == 255 ? 255 : moved) << 8 * i;
        }
        store_shared(of_row + at, settled);
    }
    return exponent;
}

/* Of e8m0.  exponents: the table of the warp's rows. */
template <class CONFIG>
__device__ __noinline__ static scale_findings settle_rows(const bsmi_mixed_input_parameters &p, scale_rows s,
                                                          int32_t matrix, uint32_t exponents)
{
    scale_findings found = { false, false };
    for (int32_t row = 0; row < CONFIG::WARP_ROWS; row++) {
        const int32_t exponent = settle_row<CONFIG>(p, s, matrix, row, &found.special);
        if (exponent == 0) continue;
        found.exponents = true;
        if (threadIdx.x % 32 == 0) store_shared(exponents + 4 * row, (uint32_t)exponent);
    }
    found.special = __any_sync(0xffffffff, found.special);
    __syncwarp();
    return found;
}

/* Four scales of which one takes more care. */
template <class CONFIG> __device__ static inline bool is_rare(uint32_t four, uint32_t least, uint32_t span)
{
    if (CONFIG::CODES::MICRO) return ((((four & 0x7f7f7f7f) + 0x01010101) | four) & 0x80808080) != 0;
    return __vcmpgtu4(__vsub4(four, least), span) != 0;
}

/* Whether any of the warp's takes more care. */
template <class CONFIG>
__device__ static inline bool any_is_rare(const bsmi_mixed_input_parameters &p, const scale_rows &s, int32_t end)
{
    const scale_bounds bounds = scale_bounds_of(BSM_E2M1);
    const uint32_t least = bounds.least * 0x01010101, span = bounds.span * 0x01010101,
                   row = threadIdx.x % 32 / CONFIG::ROW_LANES;
    bool rare = false;
#pragma unroll 2
    for (int32_t at = threadIdx.x % CONFIG::ROW_LANES * 16; at < end; at += 16 * CONFIG::ROW_LANES) {
        const uint4 v = load_shared_v4(s.to + row * CONFIG::SCALE_PITCH + at);
        const uint32_t words[4] = { v.x, v.y, v.z, v.w };
#pragma unroll
        for (int i = 0; i < 4; i++) rare |= is_rare<CONFIG>(words[i], least, span);
    }
    return __any_sync(0xffffffff, rare);
}

/* Once they have come; so many steps read them.  exponents: the table of the warp's rows. */
template <class CONFIG>
__device__ static inline scale_findings end_scales(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                                   const scale_rows &s, uint32_t exponents, int32_t steps)
{
    const int32_t end = steps * (BSMI_K_STEP / CONFIG::BLOCK);
    scale_findings found = { false, false };
    cp_async_wait_group<0>();
    __syncwarp();
    fill_tails<CONFIG>(p, s, end);
    if (threadIdx.x % 32 < CONFIG::WARP_ROWS) store_shared(exponents + threadIdx.x % 32 * 4, 0);
    __syncwarp();
    if (!any_is_rare<CONFIG>(p, s, end)) return found;
    if (CONFIG::CODES::MICRO) found.special = true;
    else found = settle_rows<CONFIG>(p, s, tile.matrix * p.b_batch_step, exponents);
    return found;
}

/* Reading ---------------------------------------------------------------------------------------------------------- */

/* How a thread reads the scales of its two rows. */
struct scale_reader {
    uint32_t scales;                      /* address of the first row's */
    uint32_t shift[2];                    /* MXFP4: four scales of either row out of two words, for prmt */
};

/* s: the warp's 16 rows. */
template <class CONFIG>
__device__ static inline void set_scale_reader(const bsmi_mixed_input_parameters &p, const scale_rows &s,
                                               scale_reader &reader)
{
    const int32_t row = (int32_t)(threadIdx.x % 32 / 4 * 2);
    reader.scales = s.to + row * CONFIG::SCALE_PITCH;
#pragma unroll
    for (int i = 0; i < 2 && !CONFIG::CODES::MICRO; i++)
        reader.shift[i] = 0x3210 + 0x1111 * shift_of_row(p, s, row + i);
}

/* Scales of two steps, of both rows: of NVFP4 a word for each, of MXFP4 one word. */
template <class CODES> struct step_scales { uint32_t words[2][CODES::MICRO ? 2 : 1]; };

template <class CONFIG>
__device__ static inline step_scales<typename CONFIG::CODES> read_scales(const scale_reader &reader, int32_t step)
{
    constexpr int WORDS = CONFIG::CODES::MICRO ? 2 : 1;
    step_scales<typename CONFIG::CODES> scales;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const uint32_t from = reader.scales + row * CONFIG::SCALE_PITCH + step * (BSMI_K_STEP / CONFIG::BLOCK);
#pragma unroll
        for (int word = 0; word < WORDS; word++) scales.words[row][word] = load_shared(from + 4 * word);
        if (!CONFIG::CODES::MICRO)
            scales.words[row][0] = ptx_prmt(scales.words[row][0], load_shared(from + 4), reader.shift[row]);
    }
    return scales;
}

/* Two scales of a row and a step, each in half of a word. */
template <class CODES, int STEP>
__device__ static inline uint32_t codes_of_scales(const step_scales<CODES> &scales, int row, int i)
{
    const uint32_t word = scales.words[row][CODES::MICRO ? STEP : 0];
    return CODES::MICRO ? word >> 8 * i & 0x00ff00ff : ptx_prmt(word, 0, STEP == 0 ? 0x4140 : 0x4342);
}

/* NaN among them; of ue4m3 perhaps signs, too. */
template <class CODES> __device__ static inline uint32_t special_half(uint32_t codes, uint32_t half)
{
    constexpr uint32_t NAN_CODE = CODES::MICRO ? 0x7f : 0xff;
    if (CODES::MICRO) half = half_of_scales<CODES>(codes & 0x007f007f);
    if ((codes & NAN_CODE) == NAN_CODE) half = (half & 0xffff0000) | 0x7fc0;
    if ((codes >> 16 & NAN_CODE) == NAN_CODE) half = (half & 0xffff) | 0x7fc00000;
    return half;
}

/* STEP: 0 or 1 of the two that the scales are of.  SPECIAL: there may be NaN. */
template <class CODES, int STEP, bool SPECIAL>
__device__ static inline scale_halves<CODES> halves_of(const step_scales<CODES> &scales)
{
    scale_halves<CODES> halves;
#pragma unroll
    for (int i = 0; i < 2 * halves.WORDS; i++) {
        const uint32_t codes = codes_of_scales<CODES, STEP>(scales, i / halves.WORDS, i % halves.WORDS);
        uint32_t &half = halves.of[i / halves.WORDS][i % halves.WORDS];
        half = half_of_scales<CODES>(codes);
        if (SPECIAL) half = special_half<CODES>(codes, half);
    }
    set_offsets(halves);
    return halves;
}

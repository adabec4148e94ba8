/* Tiles of bf16, in rows and in columns, into codes and scales: what the kernels of bsm_quantize_both have in common.
 *
 * A CTA loads tiles of 64 rows and 128 columns into shared memory, the next one while it works on this.  A lane takes
 * 16 neighbours at a time, of a row or of a column, as eight pairs along K: those of a row by two loads of 16 bytes,
 * those of a column by ldmatrix, which transposes as it loads.  A block of 32 lies in two neighbouring lanes.  Lanes
 * that are neighbours have what lies together in memory, so that they store whole sectors of 32 bytes.  Everything that
 * blocks need once is done for two of them in the halves of a word.
 *
 * Eight lanes ask each bank of shared memory once, both ways: see place_in_tile.
 *
 * Rare blocks (NaN, infinity, scales at the ends of e8m0) are told by the extremes of magnitudes that a lane has seen
 * in a tile; it does all of its blocks there again, the exact path. */
#ifndef BSMI_ROW_AND_COLUMN_TILE_CUH
#define BSMI_ROW_AND_COLUMN_TILE_CUH

#include "cuda/params/row_and_column.h"
#include "exact_blocks.cuh"
#include "fast_path_bf16.cuh"
#include "fast_path_rows.cuh"

/* BAND: tiles above one another that are done before those beside them; what is written of a row of the transpose goes
 * to memory together. */
enum { ROW_OCTETS = BSMI_ROW_AND_COLUMN_COLUMNS / 8, TILE_OCTETS = BSMI_ROW_AND_COLUMN_ROWS * ROW_OCTETS, BAND = 16,
       UNITS = 4 };

/* NVFP4 whose tensor scale has so few bits that a quotient may be the middle of two codes, but is no power of two. */
constexpr int NVFP4_SHORT = BF16_NVFP4 + 1;

template <int path> constexpr bool has_bytes = path == BF16_E4M3 || path == BF16_E5M2;
template <int path> constexpr bool has_sixteen = path == BF16_NVFP4 || path == BF16_NVFP4_POWER || path == NVFP4_SHORT;
static_assert(BSMI_ROW_AND_COLUMN_THREADS == BSMI_QUANTIZE_THREADS, "make_factors is for so many threads");
static_assert(BSMI_ROW_AND_COLUMN_THREADS == 128 && BSMI_ROW_AND_COLUMN_ROWS == 64
                  && BSMI_ROW_AND_COLUMN_COLUMNS == 128,
              "a lane has four units along rows and four along columns");

/* E2M1 whose numbers may be larger than 6 scales. */
constexpr int E2M1_BEYOND = BF16_NVFP4 + 2;

/* bf16_constants, as they are used here.  offset, signs, four: see nibbles_by_sums.  least, most: magnitudes of a block
 * that is not odd, less 1 and as it is, twice. */
struct both_constants {
    uint32_t round_up, zero, exponent_of_one, emax;
    uint32_t least, most, signs, four;
    uint32_t even, odd, offset;
    float amax_factor;
};

/* Where a tile lies, in rows and columns of the source. */
struct both_tile { uint32_t row, column; };

/* Of a destination whose lines are the source's rows or columns: the first code of the tile. */
__device__ static inline unsigned char *codes_of_tile(const bsmi_device_matrix &m, uint32_t line, uint32_t column)
{
    return m.data + (uint64_t)line * (uint32_t)m.row_bytes + (m.bits == 8 ? column : column / 2);
}

__device__ static inline const unsigned char *source_of_tile(const bsmi_device_reals &s, both_tile at)
{
    return s.data + ((int64_t)at.row * s.row_stride + at.column) * 2;
}

/* Of octet o of row r, in a row of 16.  Bit 0 of r and bits 4 and 5, on which the place depends, are another in each of
 * the eight rows that ldmatrix reads at a time; along a row, eight lanes read every second octet of a half of it and of
 * the next row's. */
__device__ static inline uint32_t place_bits(uint32_t row) { return (row & 1) | (row >> 4 & 3) << 1; }
__device__ static inline uint32_t place_in_tile(uint32_t row, uint32_t octet)
{
    return row * ROW_OCTETS + (octet ^ place_bits(row));
}

/* Two units: pairs along K, codes, codes of scales; largest magnitudes of their blocks in the halves of a word.  Codes
 * of 8 bits have four words, those of 4 bits two. */
struct two_units { uint32_t x[2][8], words[2][4], scales[2], amax; };

__device__ static inline uint32_t amax_of_unit(const uint32_t *x)
{
    const uint32_t low = ptx_max_nan_xorsign_abs_bf16x2(ptx_max_nan_xorsign_abs_bf16x2(x[0], x[1]),
                                                        ptx_max_nan_xorsign_abs_bf16x2(x[2], x[3]));
    const uint32_t high = ptx_max_nan_xorsign_abs_bf16x2(ptx_max_nan_xorsign_abs_bf16x2(x[4], x[5]),
                                                         ptx_max_nan_xorsign_abs_bf16x2(x[6], x[7]));
    return ptx_max_nan_xorsign_abs_bf16x2(low, high);
}

/* Of both units, in the halves of a word. */
template <bool of_two_lanes> __device__ static inline uint32_t amax_of_two(const two_units &u)
{
    const uint32_t first = amax_of_unit(u.x[0]), second = amax_of_unit(u.x[1]);
    uint32_t amax =
        ptx_max_nan_xorsign_abs_bf16x2(__byte_perm(first, second, 0x5410), __byte_perm(first, second, 0x7632));
    if (of_two_lanes) amax = ptx_max_nan_xorsign_abs_bf16x2(amax, __shfl_xor_sync(0xffffffff, amax, 1));
    return amax & 0x7fff7fff;
}

template <int path> __device__ static inline uint32_t two_bytes(uint32_t pair)
{
    const float low = __uint_as_float(pair << 16), high = __uint_as_float(pair & 0xffff0000);
    return path == BF16_E4M3 ? ptx_cvt_e4m3x2(high, low) : ptx_cvt_e5m2x2(high, low);
}

/* Pairs of a byte that is always the same, which c.offset takes off, and a nibble. */
__device__ static inline uint32_t nibbles_together(const both_constants &c, const uint32_t *sums)
{
    const uint32_t first = sums[0] + sums[1] * 256, second = sums[2] + sums[3] * 256;
    return __byte_perm(first, second, 0x7632) * c.odd + (__byte_perm(first, second, 0x5410) * c.even + c.offset);
}

/* power_nibbles, with fewer operations of the pipe that has the integers.  Constants come from memory where ptxas would
 * take an expression apart for those it knows. */
template <bool beyond>
__device__ static inline uint32_t nibbles_by_sums(const both_constants &c, const uint32_t *x,
                                                  const uint32_t *magnitudes, uint32_t twice, uint32_t inverse,
                                                  uint32_t half)
{
    uint32_t sums[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t sum = __vimin3_u16x2(ptx_fma_bf16x2(magnitudes[i], twice, 0x43044304),
                                      ptx_fma_bf16x2(magnitudes[i], inverse, 0x43064306),
                                      ptx_fma_bf16x2(magnitudes[i], half, 0x43084308));
        if (beyond) sum = __vminu2(sum, 0x430b430b);
        sums[i] = ptx_sub_bf16x2(sum, (x[i] & c.signs) | c.four);
    }
    return nibbles_together(c, sums);
}

/* 1 / scale of two units, as exponents.  scales[0]: of the unit whose number is the lane's last bit. */
__device__ static inline uint32_t two_powers_of(const both_constants &c, two_units *u)
{
    const uint32_t exponents = (__vmaxu2(u->amax, c.zero) + c.round_up) & 0xff80ff80;
    u->scales[0] = (__byte_perm(exponents, 0, threadIdx.x & 1 ? 0x4432 : 0x4410) >> 7) - c.emax;
    return c.exponent_of_one - exponents;
}

template <int path> __device__ static inline void quantize_bytes(const both_constants &c, two_units *u)
{
    u->amax = amax_of_two<true>(*u);
    const uint32_t inverses = two_powers_of(c, u);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t inverse = __byte_perm(inverses, 0, i == 0 ? 0x1010 : 0x3232);
#pragma unroll
        for (int j = 0; j < 4; j++)
            u->words[i][j] = two_bytes<path>(ptx_mul_bf16x2(u->x[i][2 * j], inverse)) |
                             two_bytes<path>(ptx_mul_bf16x2(u->x[i][2 * j + 1], inverse)) << 16;
    }
}

template <bool beyond> __device__ static inline void quantize_nibbles(const both_constants &c, two_units *u)
{
    uint32_t magnitudes[2][8], amax[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < 8; j++) magnitudes[i][j] = ptx_abs_bf16x2(u->x[i][j]);
        const uint32_t *m = magnitudes[i];
        amax[i] =
            __vimax3_u16x2(__vimax3_u16x2(m[0], m[1], m[2]), __vimax3_u16x2(m[3], m[4], m[5]), __vmaxu2(m[6], m[7]));
    }
    const uint32_t both = __vmaxu2(__byte_perm(amax[0], amax[1], 0x5410), __byte_perm(amax[0], amax[1], 0x7632));
    u->amax = __vmaxu2(both, __shfl_xor_sync(0xffffffff, both, 1));
    const uint32_t inverses = two_powers_of(c, u);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t inverse = __byte_perm(inverses, 0, i == 0 ? 0x1010 : 0x3232);
        /* zeros: no infinity */
        const uint32_t twice = __viaddmin_u16x2(inverse, 0x00800080, 0x7f007f00), half = inverse - 0x00800080;
#pragma unroll
        for (int j = 0; j < 2; j++)
            u->words[i][j] = nibbles_by_sums<beyond>(c, u->x[i] + 4 * j, magnitudes[i] + 4 * j, twice, inverse, half);
    }
}

/* Quotients by scales in ue4m3: products with 1 / divisor 2^-14 become halves, towards zero, whose leading bits are
 * codes (fast_bf16.cuh).  Of each half the upper byte suffices: sign, three zeros, code, and the bit that rounds. */

/* Bytes of four even and four odd elements, or odd and even ones, as they are packed; rounded. */
struct code_bytes { uint32_t low, high; };

/* ups: numbers that are less by one place go up behind odd codes. */
template <bool ups>
__device__ static inline code_bytes bytes_of_quotients(const both_constants &c, const uint32_t *x, float factor)
{
    uint32_t h[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        h[i] = ptx_cvt_rz_f16x2(__uint_as_float(x[i] & 0xffff0000) * factor, __uint_as_float(x[i] << 16) * factor);
        if (ups) h[i] += (h[i] & 0x02000200) >> 9;
    }
    const uint32_t first = __byte_perm(h[0], h[1], 0x7351), second = __byte_perm(h[2], h[3], 0x7351);
    return { __byte_perm(first, second, c.even) + 0x01010101, __byte_perm(first, second, c.odd) + 0x01010101 };
}

__device__ static inline uint32_t nibbles_of_bytes(code_bytes b)
{
    const uint32_t low = (b.low >> 1 & 0x07070707) | (b.low >> 4 & 0xf8f8f8f8),
                   high = (b.high << 3 & 0x70707070) | (b.high & 0x8f8f8f8f);
    return (low & 0x0f0f0f0f) | (high & 0xf0f0f0f0);
}

/* Of the codes below and above the middle that a quotient is, the even one; all others are the same twice. */
__device__ static inline uint32_t even_codes(uint32_t below, uint32_t above)
{
    return above & ~((above ^ below) & 0x02020202);
}

/* Tensor scales that are powers of two: a number of 8 bits and a middle times the divisor are equal or differ by 2^-8
 * of themselves.  By a factor that is less by 2^-13 middles become the half below, and go up again if they are to be
 * rounded up; nothing else crosses a middle. Others of at most 8 bits: equal or different by 2^-16.  What is multiplied
 * with a factor that is less by 2^-19, and with one that is more, has both codes of a middle. */
template <int path>
__device__ static inline uint32_t nibbles_of_quotients(const both_constants &c, const uint32_t *x, float factor)
{
    if (path == BF16_NVFP4) return nibbles_of_bytes(bytes_of_quotients<false>(c, x, factor));
    if (path == BF16_NVFP4_POWER) return nibbles_of_bytes(bytes_of_quotients<true>(c, x, factor * (1 - 0x1p-13f)));
    const code_bytes below = bytes_of_quotients<false>(c, x, factor * (1 - 0x1p-19f)),
                     above = bytes_of_quotients<false>(c, x, factor * (1 + 0x1p-19f));
    return nibbles_of_bytes({ even_codes(below.low, above.low), even_codes(below.high, above.high) });
}

__device__ static inline float to_32_places(float x) { return __uint_as_float((__float_as_uint(x) + 16) & ~31u); }

/* Quotients of 7 and more would have no code.  Only by the largest scale, or one of the least, which may be much
 * smaller than a block wants, are there any: numbers become those that have the code of 6. */
__device__ static inline void limit_unit(uint32_t *x, float factor)
{
    const uint32_t most = __float_as_uint(__fdividef(6 * 0x1p-14f, factor));
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = ptx_min_xorsign_abs_bf16x2(x[i], __byte_perm(most, most, 0x3232));
}

/* Scales in ue4m3. */
template <int path>
__device__ static inline void quantize_quotients(const both_constants &c, const float *factors, two_units *u)
{
    const uint32_t amax = u->amax = amax_of_two<false>(*u);
    float first = __uint_as_float(amax << 16) * c.amax_factor,
          second = __uint_as_float(amax & 0xffff0000) * c.amax_factor;
    if (path != BF16_NVFP4) first = to_32_places(first), second = to_32_places(second);
    const uint32_t pair = ptx_cvt_e4m3x2(second, first);
    u->scales[0] = pair & 0x7f, u->scales[1] = pair >> 8 & 0x7f;          /* of NaN the sign may be left */
    const float of_first = factors[u->scales[0]], of_second = factors[u->scales[1]];
    if (u->scales[0] - 4 > 0x79 || u->scales[1] - 4 > 0x79)               /* codes 0 to 3, 0x7e and that of NaN */
        limit_unit(u->x[0], of_first), limit_unit(u->x[1], of_second);
#pragma unroll
    for (int j = 0; j < 2; j++) {
        u->words[0][j] = nibbles_of_quotients<path>(c, u->x[0] + 4 * j, of_first);
        u->words[1][j] = nibbles_of_quotients<path>(c, u->x[1] + 4 * j, of_second);
    }
}

/* A lane's units of a tile, in rows of the destination: from `row` on, and in it from number 16 `sixteenth` on; the
 * second of two units lies `apart` rows further, the second two units `further` rows. */
struct unit_places { uint32_t row, sixteenth, apart, further; };

__device__ static inline unit_places units_of_rows()
{
    const uint32_t lane = threadIdx.x % 32;                      /* a warp has 16 rows, four at a time; eight lanes have
                                                                    a row */
    return { threadIdx.x / 32 * 16 + lane / 16 * 2 + lane / 4 % 2, lane / 8 % 2 * 4 + lane % 4, 4, 8 };
}

__device__ static inline unit_places units_of_columns()
{
    /* a warp has 8 columns at a time */
    return { threadIdx.x / 32 * 8 + threadIdx.x % 32 / 4, threadIdx.x % 4, 64, 32 };
}

/* Units with odd blocks: bits. */
__device__ static inline uint32_t odd_units(const both_constants &c, bool powers, uint32_t first, uint32_t second)
{
    const uint32_t most = __vmaxu2(__vmaxu2(first, second), c.most);
    /* less 1: zeros are not odd */
    const uint32_t least = __viaddmin_u16x2(second, 0xffffffff, __viaddmin_u16x2(first, 0xffffffff, c.least));
    if (most == c.most && (!powers || least == c.least)) return 0;
    uint32_t units = 0;
    for (uint32_t i = 0; i < UNITS; i++) {
        const uint32_t amax = (i < 2 ? first : second) >> 16 * (i & 1) & 0xffff;
        if (amax > (c.most & 0xffff) || (powers && (amax - 1 & 0xffff) < (c.least & 0xffff))) units |= 1u << i;
    }
    return units;
}

__device__ static inline void copy_tile(const bsmi_device_reals &s, uint32_t tile, const unsigned char *first)
{
    const uint32_t octet = threadIdx.x % ROW_OCTETS, row = threadIdx.x / 16 % 2 + threadIdx.x / 32 * 16;
    const unsigned char *from = first + (row * s.row_stride * 2 + octet * 16);
    const uint32_t to = tile + 16 * place_in_tile(row, octet);
#pragma unroll
    for (uint32_t i = 0; i < BSMI_ROW_AND_COLUMN_ROWS / 8; i++)
        cp_async_16(to + i * 2 * ROW_OCTETS * 16, from + i * 4 * s.row_stride, 16);
}

/* which: 0 for rows, 1 for columns.  JOB, KNOWN: what the kernel knows of the destination, and of the tile's places in
 * memory; a job that is ALWAYS_STAGED knows no places of scales.  LOAD: loads two units, the first or the second two.
 * The result: odd_units. */
template <int path, int which, class JOB, class KNOWN, class LOAD>
__device__ static inline uint32_t quantize_units(const bsmi_quantize_parameters &p, const JOB &job,
                                                 const unit_places &at, const KNOWN &tile, unsigned char *stage,
                                                 const LOAD &load)
{
    constexpr uint32_t PER_BLOCK = has_sixteen<path> ? 1 : 2, UNIT_BYTES = has_bytes<path> ? 16 : 8;
    const uint32_t row_bytes = (uint32_t)p.destination.row_bytes;
    const both_constants c = job.constants;
    unsigned char *codes = tile.codes[which] + (uint64_t)at.row * row_bytes + at.sixteenth * UNIT_BYTES;
    unsigned char *scales = nullptr;
    const uint32_t *places = nullptr;
    bool staged = true;
    if constexpr (!JOB::ALWAYS_STAGED) {
        scales = tile.scales[which] + job.block_places[at.sixteenth / PER_BLOCK];
        places = job.row_places + at.row;
        staged = which == 1 && job.staged;
    }
    stage += at.row * 16 + at.sixteenth / PER_BLOCK;
    uint32_t amax[2] = {};
    /* short code for what is rare */
    constexpr int AT_ONCE = path == NVFP4_SHORT || path == BF16_E5M2 || path == E2M1_BEYOND ? 1 : 2;
#pragma unroll AT_ONCE
    for (uint32_t i = 0; i < UNITS / 2; i++) {
        two_units u;
        load(i, &u);
        if constexpr (has_sixteen<path>) quantize_quotients<path>(c, job.bf16.factors, &u);
        else if constexpr (has_bytes<path>) quantize_bytes<path>(c, &u);
        else quantize_nibbles<path == E2M1_BEYOND>(c, &u);
        amax[0] = amax[1], amax[1] = u.amax;
        unsigned char *second = codes + (uint64_t)at.apart * row_bytes;
        if constexpr (has_bytes<path>) {
            ptx_store_16(codes, make_uint4(u.words[0][0], u.words[0][1], u.words[0][2], u.words[0][3]));
            ptx_store_16(second, make_uint4(u.words[1][0], u.words[1][1], u.words[1][2], u.words[1][3]));
        } else {
            ptx_store_8(codes, u.words[0][0], u.words[0][1]);
            ptx_store_8(second, u.words[1][0], u.words[1][1]);
        }
        if (staged) {
            if constexpr (has_sixteen<path>)
                stage[0] = (unsigned char)u.scales[0], stage[at.apart * 16] = (unsigned char)u.scales[1];
            else stage[threadIdx.x & 1 ? at.apart * 16 : 0] = (unsigned char)u.scales[0];
        } else if constexpr (has_sixteen<path>) {
            ptx_store_1(scales + places[0], u.scales[0]), ptx_store_1(scales + places[at.apart], u.scales[1]);
        } else {
            ptx_store_1(scales + places[threadIdx.x & 1 ? at.apart : 0], u.scales[0]);
        }
        codes += (uint64_t)at.further * row_bytes, stage += at.further * 16;
        if constexpr (!JOB::ALWAYS_STAGED) places += at.further;
    }
    return odd_units(c, !has_sixteen<path>, amax[0], amax[1]);
}

__device__ static inline void load_unit(const uint4 *from, uint32_t to_second, uint32_t *x)
{
    const uint4 v = from[0], w = from[to_second];
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w, x[4] = w.x, x[5] = w.y, x[6] = w.z, x[7] = w.w;
}

template <int path, class JOB, class KNOWN>
__device__ static inline uint32_t quantize_rows_of(const bsmi_quantize_parameters &p, const JOB &job, const uint4 *tile,
                                                   const KNOWN &places, unsigned char *stage)
{
    const unit_places at = units_of_rows();
    const uint4 *first = tile + place_in_tile(at.row, 2 * at.sixteenth),
                *second = tile + place_in_tile(at.row, 2 * at.sixteenth + 1);
    return quantize_units<path, 0>(p, job, at, places, stage, [&](uint32_t i, two_units *u) {
#pragma unroll
        for (uint32_t j = 0; j < 2; j++)
            load_unit(first + (8 * i + 4 * j) * ROW_OCTETS, (uint32_t)(second - first), u->x[j]);
    });
}

/* A lane has 16 rows of a column: of pairs i of the four lanes of a column, ldmatrix brings four i. */
template <int path, class JOB, class KNOWN>
__device__ static inline uint32_t quantize_columns_of(const bsmi_quantize_parameters &p, const JOB &job,
                                                      const uint4 *tile, const KNOWN &places, unsigned char *stage)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 2 % 4 * 16 + lane / 8 * 2 + lane % 2;
    const uint32_t first = shared_address(tile + place_in_tile(row, warp)),
                   second = shared_address(tile + place_in_tile(row, warp + 4));
    return quantize_units<path, 1>(p, job, units_of_columns(), places, stage, [&](uint32_t i, two_units *u) {
#pragma unroll
        for (uint32_t j = 0; j < 2; j++) {
            const uint32_t address = (i == 0 ? first : second) + j * 8 * 16;
            ptx_ldmatrix_x4_trans(address, u->x[j]), ptx_ldmatrix_x4_trans(address + 8 * ROW_OCTETS * 16, u->x[j] + 4);
        }
    });
}

template <int path, bool ROWS, class JOB, class KNOWN>
__device__ static inline uint32_t quantize_one_path(const bsmi_quantize_parameters &p, const JOB &job,
                                                    const uint4 *tile, const KNOWN &at, unsigned char *stage)
{
    return ROWS ? quantize_rows_of<path>(p, job, tile, at, stage) : quantize_columns_of<path>(p, job, tile, at, stage);
}

#endif

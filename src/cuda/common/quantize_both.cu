/* A matrix of bf16 and its transpose into codes and scales from one read: the bits of bsmi_quantize of both.
 *
 * A CTA brings tiles of 64 rows and 128 columns to shared memory, the next one while it works on this.  There threads find blocks along the
 * rows, and along the columns two of them side by side: words with a number of each column, sorted into pairs along K.  Lanes that are
 * neighbours have what lies together in memory, so that they store whole sectors of 32 bytes: the halves of a block of bytes, or two blocks of
 * nibbles.
 *
 * Eight lanes that load 16 bytes of rows, or 32 that load words of columns, ask each bank of shared memory once: see place_in_tile. */
#include "cuda/both_parameters.h"
#include "exact_blocks.cuh"
#include "quick_bf16.cuh"
#include "quick_rows.cuh"
#include "tensor_scale.cuh"

/* BAND: tiles above one another that are done before those beside them; what is written of a row of the transpose goes to memory together. */
enum { ROW_OCTETS = BSMI_BOTH_COLUMNS / 8, TILE_OCTETS = BSMI_BOTH_ROWS * ROW_OCTETS, BAND = 16 };

/* A way that bsmi_quantize has as a quick_way: NVFP4 whose tensor scale has so few bits that a quotient may be the middle of two codes. */
constexpr int NVFP4_SHORT = BF16_NVFP4 + 1;

template <int way> constexpr bool has_bytes = way == BF16_E4M3 || way == BF16_E5M2;
template <int way> constexpr bool has_sixteen = way == BF16_NVFP4_POWER || way == BF16_NVFP4 || way == NVFP4_SHORT;
static_assert(BSMI_BOTH_THREADS == BSMI_QUANTIZE_THREADS, "make_factors is for so many threads");

/* What a CTA knows of one destination.  way: a bf16_way, BF16_NONE for the exact one, or NVFP4_SHORT. */
struct both_job { block_quantizer q; bf16_job bf16; int way; };

/* Of octet o of row r, in a row of 16: along a row, o and o + 8 are told apart by bit 0 and neighbouring rows by bit 1; along columns, rows 16
 * and 32 apart by bits 1 and 2. */
__device__ static inline uint32_t place_in_tile(uint32_t row, uint32_t octet)
{
    return row * ROW_OCTETS + (octet ^ (octet >> 3 & 1) ^ ((row ^ row >> 4) & 1) << 1 ^ (row >> 5 & 1) << 2);
}

/* Two blocks of 16 of a thread by block.cuh's way; *odd: they must be done the exact way.  Loops: short code for what is rare. */
__device__ static inline bf16_quantized quantize_short(const both_job &job, const uint32_t *x, bool *odd)
{
    bf16_quantized result = {};
    uint32_t words[4];
#pragma unroll 1
    for (int i = 0; i < 2; i++) {
        const uint32_t amax = both_halves(bf16_amax<8>(x + 8 * i)) & 0xffff0000;
        const uint32_t code = amax == 0 || amax >= 0x7f800000 ? 0 : nvfp4_scale_code(job.q, __uint_as_float(amax));
        *odd |= amax >= 0x7f800000;
        result.scale_codes[i] = code;
#pragma unroll 1
        for (int j = 0; j < 2; j++) {
            const uint32_t *of_octet = x + 8 * i + 4 * j;
            bool doubtful;
            const uint32_t nibbles = nvfp4_codes(job.q, widen<SOURCE_BF16>({ make_uint4(of_octet[0], of_octet[1], of_octet[2], of_octet[3]), {} }),
                                                 code, &doubtful);
            words[2 * i + j] = job.bf16.constants.even == 1 ? nibbles : (nibbles >> 4 & 0x0f0f0f0f) | (nibbles & 0x0f0f0f0f) << 4;
            *odd |= doubtful;
        }
    }
    result.codes[0] = make_uint4(words[0], words[1], words[2], words[3]);
    return result;
}

template <int way> __device__ static inline bf16_quantized quantize_numbers(const both_job &job, const uint32_t *x, bool *odd)
{
    if constexpr (way == NVFP4_SHORT) return quantize_short(job, x, odd);
    else return quantize_bf16<(bf16_way)way>(job.bf16.constants, job.bf16.factors, x, odd);
}

/* Bytes.  x: halves of two blocks of 32, those of even lanes the first, of odd lanes the second ones.  Block i lies in row rows[i] of the
 * destination and is number blocks[i] there. */
template <int way>
__device__ static inline void quantize_halves(const bsmi_quantize_parameters &p, const both_job &job, const uint32_t (&rows)[2],
                                              const uint32_t (&blocks)[2], const uint32_t *x)
{
    const bsmi_device_matrix &m = p.destination;
    const uint32_t half = threadIdx.x & 1;
    bool odd = false;
    const bf16_quantized v = quantize_numbers<way>(job, x, &odd);
    const uint32_t row = half ? rows[1] : rows[0], block = half ? blocks[1] : blocks[0];
    if (odd) {                                              /* both lanes know, and take a block each */
        quantize_exactly_at(p, job.q, job.bf16.places, { 0, row, block, 1 });
        return;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) ptx_store_16(m.data + (int64_t)rows[i] * m.row_bytes + blocks[i] * 32 + half * 16, v.codes[i]);
    m.scales[place_of(job.bf16.row, row) + place_of(job.bf16.column, block)] = (unsigned char)(half ? v.scale_codes[1] : v.scale_codes[0]);
}

/* Nibbles: 32 numbers of a row of the destination, from number 32 `block` on. */
template <int way>
__device__ static inline void quantize_whole(const bsmi_quantize_parameters &p, const both_job &job, uint32_t row, uint32_t block, const uint32_t *x)
{
    constexpr uint32_t BLOCKS = has_sixteen<way> ? 2 : 1;
    const bsmi_device_matrix &m = p.destination;
    bool odd = false;
    const bf16_quantized v = quantize_numbers<way>(job, x, &odd);
    if (odd) {
        for (uint32_t i = 0; i < BLOCKS; i++) quantize_exactly_at(p, job.q, job.bf16.places, { 0, row, BLOCKS * block + i, 1 });
        return;
    }
    ptx_store_16(m.data + (int64_t)row * m.row_bytes + block * 16, v.codes[0]);
    unsigned char *scales = m.scales + place_of(job.bf16.row, row);
#pragma unroll
    for (uint32_t i = 0; i < BLOCKS; i++) scales[place_of(job.bf16.column, BLOCKS * block + i)] = (unsigned char)v.scale_codes[i];
}

/* Where a tile lies, in rows and columns of the source. */
struct both_tile { uint32_t row, column; };

__device__ static inline void load_octet(const uint4 *tile, uint32_t row, uint32_t octet, uint32_t *x)
{
    const uint4 v = tile[place_in_tile(row, octet)];
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}

template <int way>
__device__ static inline void quantize_rows_of(const bsmi_quantize_parameters &p, const both_job &job, const uint4 *tile, both_tile at)
{
    constexpr uint32_t ACROSS = BSMI_BOTH_COLUMNS / 32, BLOCKS = BSMI_BOTH_ROWS * ACROSS;
#pragma unroll 1
    for (uint32_t first = 0; first < BLOCKS; first += BSMI_BOTH_THREADS) {
        uint32_t x[16];
        if constexpr (has_bytes<way>) {
            uint32_t rows[2], blocks[2];
#pragma unroll
            for (uint32_t i = 0; i < 2; i++) {
                const uint32_t number = first + i * (BSMI_BOTH_THREADS / 2) + threadIdx.x / 2, row = number / ACROSS, block = number % ACROSS;
                rows[i] = at.row + row, blocks[i] = at.column / 32 + block;
                load_octet(tile, row, block * 4 + threadIdx.x % 2 * 2, x + 8 * i);
                load_octet(tile, row, block * 4 + threadIdx.x % 2 * 2 + 1, x + 8 * i + 4);
            }
            quantize_halves<way>(p, job, rows, blocks, x);
        } else {
            const uint32_t number = first + threadIdx.x, row = number / ACROSS, block = number % ACROSS;
#pragma unroll
            for (uint32_t i = 0; i < 4; i++) load_octet(tile, row, block * 4 + i, x + 4 * i);
            quantize_whole<way>(p, job, at.row + row, at.column / 32 + block, x);
        }
    }
}

/* Numbers of COUNT rows from `row` on of columns 2 pair and 2 pair + 1. */
template <uint32_t COUNT>
__device__ static inline void load_columns(const uint4 *tile, uint32_t row, uint32_t pair, uint32_t *first, uint32_t *second)
{
    const uint32_t *words = (const uint32_t *)tile + pair % 4;
#pragma unroll
    for (uint32_t i = 0; i < COUNT / 2; i++) {
        const uint32_t even = words[4 * place_in_tile(row + 2 * i, pair / 4)], odd = words[4 * place_in_tile(row + 2 * i + 1, pair / 4)];
        first[i] = __byte_perm(even, odd, 0x5410), second[i] = __byte_perm(even, odd, 0x7632);
    }
}

template <int way>
__device__ static inline void quantize_columns_of(const bsmi_quantize_parameters &p, const both_job &job, const uint4 *tile, both_tile at)
{
    constexpr uint32_t COUNT = has_bytes<way> ? 16 : 32, PARTS = BSMI_BOTH_ROWS / COUNT;      /* numbers of a column in a thread */
#pragma unroll 1
    for (uint32_t task = threadIdx.x; task < PARTS * BSMI_BOTH_COLUMNS / 2; task += BSMI_BOTH_THREADS) {
        const uint32_t part = task % PARTS, pair = task / PARTS, row = at.column + 2 * pair, block = at.row / 32 + part * COUNT / 32;
        uint32_t x[COUNT];
        load_columns<COUNT>(tile, part * COUNT, pair, x, x + COUNT / 2);
        if constexpr (has_bytes<way>) {
            quantize_halves<way>(p, job, { row, row + 1 }, { block, block }, x);
        } else {
            quantize_whole<way>(p, job, row, block, x);
            quantize_whole<way>(p, job, row + 1, block, x + 16);
        }
    }
}

/* Tensor scales that the quick ways do not serve. */
__device__ __noinline__ static void quantize_tile_exactly(const bsmi_quantize_parameters &p, const both_job &job, uint32_t first_row, uint32_t rows,
                                                          uint32_t first_column, uint32_t columns)
{
    const uint32_t length = (uint32_t)p.destination.block, blocks = columns / length;
    for (uint32_t task = threadIdx.x; task < rows * blocks; task += BSMI_BOTH_THREADS)
        quantize_exactly_at(p, job.q, job.bf16.places, { 0, first_row + task / blocks, (int64_t)first_column / length + task % blocks, 1 });
}

template <bool ROWS>
__device__ static inline void quantize_tile(const bsmi_quantize_parameters &p, const both_job &job, const uint4 *tile, both_tile at)
{
    switch (job.way) {
#define WAY(way)                                                                                                                         \
    case way:                                                                                                                            \
        if (ROWS) quantize_rows_of<way>(p, job, tile, at);                                                                               \
        else quantize_columns_of<way>(p, job, tile, at);                                                                                 \
        break;
        WAY(BF16_E4M3)
        WAY(BF16_E5M2)
        WAY(BF16_E2M1)
        WAY(BF16_NVFP4_POWER)
        WAY(BF16_NVFP4)
        WAY(NVFP4_SHORT)
#undef WAY
    default:
        if (ROWS) quantize_tile_exactly(p, job, at.row, BSMI_BOTH_ROWS, at.column, BSMI_BOTH_COLUMNS);
        else quantize_tile_exactly(p, job, at.column, BSMI_BOTH_COLUMNS, at.row, BSMI_BOTH_ROWS);
        break;
    }
}

/* By all threads; what one thread makes is there behind the next barrier. */
__device__ static inline void make_both_job(const bsmi_quantize_parameters &p, float t, uint32_t thread, both_job &job)
{
    const bsmi_device_matrix &m = p.destination;
    factor_nudges nudges = {};
    if (m.scale == BSM_UE4M3) nudges = make_factors((double)t, m.tensor_scale_divides != 0, &job.bf16);
    if (threadIdx.x != thread) return;
    job.bf16.places = make_places(m.layout);
    job.q = make_quantizer(m, t, p.recipe, p.rounding, p.nonfinite, p.seed, true);
    make_bf16_job(m, job.q, nudges, &job.bf16);
    job.way = job.bf16.way == BF16_NONE && job.q.way == WAY_NVFP4 ? NVFP4_SHORT : (int)job.bf16.way;
}

/* Tiles in bands of BAND of them above one another. */
__device__ static inline both_tile tile_at(uint32_t number, uint32_t down, uint32_t across)
{
    const uint32_t band = number / (BAND * across), first = band * BAND, height = min(BAND, down - first), rest = number - first * across;
    return { (first + rest % height) * BSMI_BOTH_ROWS, rest / height * BSMI_BOTH_COLUMNS };
}

__device__ static inline void copy_tile(const bsmi_device_reals &s, uint32_t tile, both_tile at)
{
    const uint32_t row = threadIdx.x / ROW_OCTETS, octet = threadIdx.x % ROW_OCTETS;
    constexpr uint32_t ROWS = BSMI_BOTH_THREADS / ROW_OCTETS;
    const unsigned char *from = s.data + ((int64_t)(at.row + row) * s.row_stride + at.column) * 2 + octet * 16;
#pragma unroll
    for (uint32_t i = 0; i < BSMI_BOTH_ROWS / ROWS; i++)
        cp_async_16(tile + 16 * place_in_tile(row + i * ROWS, octet), from + i * ROWS * s.row_stride * 2, 16);
}

extern "C" __global__ void __launch_bounds__(BSMI_BOTH_THREADS, 5) bsmi_quantize_both(const __grid_constant__ bsmi_both_parameters p)
{
    __shared__ __align__(128) uint4 tiles[2][TILE_OCTETS];
    __shared__ both_job rows, columns;
    const uint32_t down = (uint32_t)(p.rows.source.rows / BSMI_BOTH_ROWS), across = (uint32_t)(p.rows.source.columns / BSMI_BOTH_COLUMNS);
    const uint32_t all = down * across;
    both_tile at = {};
    /* Memory is at work while threads think.  What the kernel in front of this one writes, if there is one, is the amax alone. */
    if (blockIdx.x < all) copy_tile(p.rows.source, shared_address(tiles[0]), at = tile_at(blockIdx.x, down, across));
    cp_async_commit_group();
    ptx_griddepcontrol_wait();
    const bool computed = p.columns.computed != nullptr;
    const float of_rows = find_tensor_scale(p.rows, { 0, 0 }), of_columns = computed ? of_rows : find_tensor_scale(p.columns, { 0, 0 });
    if (computed && blockIdx.x == 0 && threadIdx.x == 0) ptx_store_relaxed(p.columns.computed, __float_as_uint(of_columns));
    make_both_job(p.rows, of_rows, 0, rows);
    make_both_job(p.columns, of_columns, 32, columns);
    uint32_t stage = 0;
    for (uint32_t number = blockIdx.x; number < all; number += gridDim.x, stage ^= 1) {
        both_tile next = {};
        if (number + gridDim.x < all)
            copy_tile(p.rows.source, shared_address(tiles[stage ^ 1]), next = tile_at(number + gridDim.x, down, across));
        cp_async_commit_group();
        cp_async_wait_group<1>();
        __syncthreads();
        quantize_tile<true>(p.rows, rows, tiles[stage], at);
        quantize_tile<false>(p.columns, columns, tiles[stage], at);
        __syncthreads();                  /* the tile is free */
        at = next;
    }
    cp_async_wait_group<0>();
}

/* Kernels bsmi_quantize_row_and_column_powers and bsmi_order_scales: a matrix of bf16 and its transpose into MXFP8 of
 * E4M3 and MXFP4 with linear scales. They begin more quickly than bsmi_quantize_row_and_column, and store whole sectors
 * of scales.
 *
 * A tile has four scales of each row and two of each column.  Stored where they belong, each few bytes would cross to
 * the other half of the second-level cache by themselves, which is what bounds bsmi_quantize_row_and_column
 * (docs/design/memory-bound.md).  So they are left in the order of tiles first: a region is the tiles whose scales of
 * one line (a row of the destination) are 128 bytes, or 64 or 32 where there are not so many; in the memory of its
 * lines lie the scales of its first tile, line by line, then those of the next.  bsmi_order_scales puts each region in
 * order.
 *
 * A CTA has two tiles below one another, which come to shared memory at the same time; CTAs begin in the order of
 * memory. */
#ifndef BSMI_ROW_AND_COLUMN_POWERS_CUH
#define BSMI_ROW_AND_COLUMN_POWERS_CUH

#include "row_and_column_tile.cuh"
#include "cuda/ptx/kept_store.cuh"

/* What a CTA knows of one destination. */
struct powers_job {
    static constexpr bool ALWAYS_STAGED = true;
    static constexpr uint32_t LENGTH = 32;                       /* of a block */
    both_constants constants;
    int path;
};

/* Where a tile lies in memory: its numbers, codes of both destinations, and its scales in the order of tiles. */
struct powers_places { const unsigned char *source; unsigned char *codes[2], *scales[2]; both_tile at; };

/* Scales of a tile's rows and columns: four and two of each.  One warp writes all of a line. */
struct powers_stage { unsigned char lines[2][BSMI_ROW_AND_COLUMN_COLUMNS][16]; };

/* Of a destination: lines of a tile, scales of each where blocks are of LENGTH. */
template <int which> constexpr uint32_t LINES = which == 0 ? BSMI_ROW_AND_COLUMN_ROWS : BSMI_ROW_AND_COLUMN_COLUMNS;
template <int which, uint32_t LENGTH>
constexpr uint32_t PER_LINE = (which == 0 ? BSMI_ROW_AND_COLUMN_COLUMNS : BSMI_ROW_AND_COLUMN_ROWS) / LENGTH;

/* By one thread. */
__device__ static inline void make_powers_job(const bsmi_quantize_parameters &p, powers_job *job)
{
    const bsmi_device_matrix &m = p.destination;
    const bsm_element_info &element = element_of(m.element);
    const uint32_t round_up = (round_up_of(p.recipe, element) >> 16) * 0x00010001,
                   emax = (uint32_t)(__double2hiint(element.max_value) >> 20) - 1023;
    const uint32_t even = m.packing == BSM_PACKING_HIGH_FIRST ? 16 : 1, odd = 17 - even;
    const bool beyond = (round_up & 0xffff) < 0x3f;              /* 1.5 is the largest */
    job->constants = { round_up,
                       emax * 0x00800080,
                       (254 + emax) * 0x00800080,
                       emax,
                       (((emax + 3) << 7) - 1) * 0x00010001,
                       (252u << 7) * 0x00010001,
                       0x80008000,
                       0x40804080,
                       even,
                       odd,
                       0 - 0x43 * (0x01000100 * even + 0x01010101 * odd),
                       0 };
    job->path = m.element == BSM_E4M3 ? BF16_E4M3 : beyond ? E2M1_BEYOND : BF16_E2M1;
}

/* Chunks in bands of BAND tiles above one another; a CTA does every so many of them.  If there are more CTAs than
 * chunks, there are two for each of the last chunks, from `halves` on: the end of the kernel waits for shorter ones. */
struct powers_order { uint32_t down, across, halves; };

__device__ static inline powers_order make_order(const bsmi_device_reals &s)
{
    const uint32_t down = (uint32_t)s.rows / (BSMI_ROW_AND_COLUMN_ROWS * BSMI_ROW_AND_COLUMN_CHUNK),
                   across = (uint32_t)s.columns / BSMI_ROW_AND_COLUMN_COLUMNS, chunks = down * across;
    return { down, across, chunks - min(max(gridDim.x, chunks) - chunks, chunks) };
}

/* Tiles are counted chunk by chunk. */
__device__ static inline uint32_t tile_number(const powers_order &o, uint32_t turn)
{
    if (blockIdx.x < o.halves)
        return (blockIdx.x + turn / BSMI_ROW_AND_COLUMN_CHUNK * gridDim.x) * BSMI_ROW_AND_COLUMN_CHUNK
               + turn % BSMI_ROW_AND_COLUMN_CHUNK;
    return o.halves + blockIdx.x + turn * BSMI_ROW_AND_COLUMN_CHUNK * o.down * o.across;
}

__device__ static inline bool has_turn(const powers_order &o, uint32_t turn)
{
    return tile_number(o, turn) < BSMI_ROW_AND_COLUMN_CHUNK * o.down * o.across;
}

/* Bands are whole: there are 16 tiles in 1024 rows. */
static_assert(BAND * BSMI_ROW_AND_COLUMN_ROWS == BSMI_ROW_AND_COLUMN_POWERS && BAND % BSMI_ROW_AND_COLUMN_CHUNK == 0
                  && BSMI_ROW_AND_COLUMN_CHUNK == 2,
              "no last band is lower than the others");
__device__ static inline both_tile tile_at(const powers_order &o, uint32_t turn)
{
    constexpr uint32_t HEIGHT = BAND / BSMI_ROW_AND_COLUMN_CHUNK;
    const uint32_t number = tile_number(o, turn), chunk = number / BSMI_ROW_AND_COLUMN_CHUNK,
                   band = chunk / (HEIGHT * o.across), rest = chunk - band * HEIGHT * o.across;
    return { ((band * HEIGHT + rest % HEIGHT) * BSMI_ROW_AND_COLUMN_CHUNK + number % BSMI_ROW_AND_COLUMN_CHUNK)
                 * BSMI_ROW_AND_COLUMN_ROWS,
             rest / HEIGHT * BSMI_ROW_AND_COLUMN_COLUMNS };
}

/* Of a line in its region: 1 << this bytes. */
__device__ static inline uint32_t width_shift(const bsmi_device_matrix &m)
{
    return 31 - __clz((int)bsmi_row_and_column_width(m.layout.columns));
}

/* line, block: the tile's first.  Its number in the region is that of its first block there / PER_LINE, and it has
 * LINES * PER_LINE bytes. */
template <int which>
__device__ static inline unsigned char *scales_of_tile(const bsmi_device_matrix &m, uint32_t line, uint32_t block)
{
    const uint32_t shift = width_shift(m), in_region = block & (1u << shift) - 1;
    return m.scales
           + ((uint64_t)(line + (in_region * LINES<which> >> shift)) * (uint32_t)m.layout.pitch + (block - in_region));
}

/* By one thread. */
template <uint32_t LENGTH>
__device__ static inline void find_places(const bsmi_row_and_column_parameters &p, both_tile at, powers_places *places)
{
    const bsmi_device_matrix &rows = p.rows.destination, &columns = p.columns.destination;
    places->source = source_of_tile(p.rows.source, at);
    places->codes[0] = codes_of_tile(rows, at.row, at.column),
    places->codes[1] = codes_of_tile(columns, at.column, at.row);
    places->scales[0] = scales_of_tile<0>(rows, at.row, at.column / LENGTH),
    places->scales[1] = scales_of_tile<1>(columns, at.column, at.row / LENGTH);
    places->at = at;
}

template <bool ROWS>
__device__ static inline uint32_t quantize_tile(const bsmi_quantize_parameters &p, const powers_job &job,
                                                const uint4 *tile, const powers_places &at, unsigned char *stage)
{
    switch (job.path) {
    case BF16_E4M3: return quantize_one_path<BF16_E4M3, ROWS>(p, job, tile, at, stage);
    case BF16_E2M1: return quantize_one_path<BF16_E2M1, ROWS>(p, job, tile, at, stage);
    default: return quantize_one_path<E2M1_BEYOND, ROWS>(p, job, tile, at, stage);
    }
}

__device__ static inline float given_tensor_scale(const bsmi_device_matrix &m)
{
    return m.tensor_scale == nullptr ? 1 : *m.tensor_scale;
}

/* Of blocks that two lanes share, one does it. */
template <uint32_t LENGTH>
__device__ static inline void quantize_again(const bsmi_quantize_parameters &p, uint32_t units, const unit_places &at,
                                             uint32_t row, uint32_t column, unsigned char *stage)
{
    constexpr uint32_t SHARE = LENGTH / 16;
    if (units == 0) return;
    const block_quantizer q = make_quantizer(p.destination, given_tensor_scale(p.destination), p.recipe, p.rounding,
                                             p.nonfinite, p.seed, true);
#pragma unroll 1
    for (uint32_t i = 0; i < UNITS; i++) {
        if ((units >> i & 1) == 0 || (SHARE == 2 && (i & 1) != (threadIdx.x & 1))) continue;
        const uint32_t line = at.row + (i & 1) * at.apart + i / 2 * at.further;
        stage[line * 16 + at.sixteenth / SHARE] =
            quantize_block_exactly(p, q, { 0, row + line, (column / 16 + at.sixteenth) / SHARE, 1 });
    }
}

/* units: of rows, and of columns in bits 4 to 7. */
template <uint32_t LENGTH>
__device__ __noinline__ static void quantize_odd(const bsmi_row_and_column_parameters &p, both_tile at, uint32_t units,
                                                 powers_stage &stage)
{
    __syncwarp();                         /* what is written again was written by two lanes */
    quantize_again<LENGTH>(p.rows, units & 15, units_of_rows(), at.row, at.column, stage.lines[0][0]);
    quantize_again<LENGTH>(p.columns, units >> 4, units_of_columns(), at.column, at.row, stage.lines[1][0]);
}

/* What a warp has staged, 16 bytes a lane: of 16 rows, or of 8 columns in four places.  L2 keeps it for
 * bsmi_order_scales. */
template <int which, uint32_t LENGTH>
__device__ static inline void store_stage(const bsmi_device_matrix &m, unsigned char *scales, const powers_stage &stage)
{
    constexpr uint32_t OF_LINE = PER_LINE<which, LENGTH>, OF_PIECE = 16 / OF_LINE,
                       RUN = (which == 0 ? 16 : 8) / OF_PIECE, RUNS = which == 0 ? 1 : 4;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32,
                   piece = lane / RUN * (4 * RUN) + warp * RUN + lane % RUN;
    if (lane >= RUN * RUNS) return;
    const unsigned char *from = stage.lines[which][piece * OF_PIECE];
    uint32_t words[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        words[i] = OF_LINE == 8 ? *(const uint32_t *)(from + 16 * (i / 2) + 4 * (i % 2))
                   : OF_LINE == 4
                       ? *(const uint32_t *)(from + 16 * i)
                       : *(const uint16_t *)(from + 32 * i) | (uint32_t) * (const uint16_t *)(from + 32 * i + 16) << 16;
    const uint32_t shift = width_shift(m) - 4, of_line = piece & (1u << shift) - 1;
    ptx_store_16_evict_last(scales + ((uint64_t)((piece >> shift) * (uint32_t)m.layout.pitch) + of_line * 16),
                            make_uint4(words[0], words[1], words[2], words[3]));
}

/* By one thread for each destination.  read_early: a tensor scale, which nothing in front of this kernel computes. */
__device__ static inline float read_early(const bsmi_quantize_parameters &, const powers_job *) { return 1; }
__device__ static inline void make_jobs(const bsmi_row_and_column_parameters &p, float, float, powers_job *jobs)
{
    if (threadIdx.x % 32 == 0 && threadIdx.x < 64)
        make_powers_job(threadIdx.x == 0 ? p.rows : p.columns, &jobs[threadIdx.x / 32]);
}

template <class JOB> __device__ static inline void quantize_chunks(const bsmi_row_and_column_parameters &p)
{
    __shared__ __align__(128) uint4 tiles[2][TILE_OCTETS];
    __shared__ JOB jobs[2];
    __shared__ powers_places places[4];
    __shared__ __align__(16) powers_stage stage;
    const bsmi_device_reals &s = p.rows.source;
    const powers_order order = make_order(s);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float t_of_rows = read_early(p.rows, jobs), t_of_columns = read_early(p.columns, jobs);
    const both_tile first = tile_at(order, 0);
    if (has_turn(order, 0)) copy_tile(s, shared_address(tiles[0]), source_of_tile(s, first));
    cp_async_commit_group();
    if (has_turn(order, 1))
        copy_tile(s, shared_address(tiles[1]),
                  source_of_tile(s, { first.row + BSMI_ROW_AND_COLUMN_ROWS, first.column }));
    cp_async_commit_group();
    make_jobs(p, t_of_rows, t_of_columns, jobs);
    if (lane == 0 && warp >= 2)
        find_places<JOB::LENGTH>(p, { first.row + (warp - 2) * BSMI_ROW_AND_COLUMN_ROWS, first.column },
                                 &places[warp - 2]);
    ptx_griddepcontrol_wait();
    for (uint32_t turn = 0; has_turn(order, turn); turn++) {
        if (turn == 0) cp_async_wait_group<1>();
        else cp_async_wait_group<0>();
        __syncthreads();                  /* the tile has come, and the other one is free but at first, when it is on
                                             its way too */
        if (turn > 0 && has_turn(order, turn + 1))
            copy_tile(s, shared_address(tiles[(turn + 1) % 2]), places[(turn + 1) % 4].source);
        cp_async_commit_group();
        if (threadIdx.x == turn % 4 * 32 && has_turn(order, turn + 2))
            find_places<JOB::LENGTH>(p, tile_at(order, turn + 2), &places[(turn + 2) % 4]);
        const powers_places &here = places[turn % 4];
        const uint32_t of_rows = quantize_tile<true>(p.rows, jobs[0], tiles[turn % 2], here, stage.lines[0][0]);
        const uint32_t of_columns = quantize_tile<false>(p.columns, jobs[1], tiles[turn % 2], here, stage.lines[1][0]);
        const uint32_t odd = of_rows | of_columns << 4;
        if (__any_sync(0xffffffff, odd != 0)) quantize_odd<JOB::LENGTH>(p, here.at, odd, stage);
        __syncwarp();
        store_stage<0, JOB::LENGTH>(p.rows.destination, here.scales[0], stage);
        store_stage<1, JOB::LENGTH>(p.columns.destination, here.scales[1], stage);
    }
    griddepcontrol_launch_dependents();
}

extern "C" __global__ void __launch_bounds__(BSMI_ROW_AND_COLUMN_THREADS, 4)
    bsmi_quantize_row_and_column_powers(const __grid_constant__ bsmi_row_and_column_parameters p)
{
    quantize_chunks<powers_job>(p);
}

/* Regions of 128 lines, all that lie above one another there, in the order of lines, 16 bytes of a line at a time.
 * Those of LINES lines in front of a tile's next 16 bytes lie 16 bytes further apart in shared memory: threads that
 * have neighbouring 16 bytes of a line meet in few banks. */
enum { MOST_PIECES = 8 };                 /* of a line */
template <int which, uint32_t LENGTH>
__device__ static inline void order_regions(const bsmi_device_matrix &m, uint32_t number, unsigned char *bytes)
{
    constexpr uint32_t UNIT = PER_LINE<which, LENGTH>, HEIGHT = BSMI_ROW_AND_COLUMN_COLUMNS,
                       APART = LINES<which> * 16 + 16;
    const uint32_t shift = width_shift(m) - 4, pieces = 1u << shift, across = (uint32_t)m.layout.columns >> shift >> 4,
                   pitch = (uint32_t)m.layout.pitch;
    const uint32_t piece = threadIdx.x & pieces - 1, line = threadIdx.x >> shift,
                   lines = BSMI_ROW_AND_COLUMN_THREADS >> shift;
    unsigned char *first =
        m.scales + ((uint64_t)(number / across * HEIGHT + line) * pitch + (number % across * pieces + piece) * 16);
    const uint64_t further = (uint64_t)lines * pitch;
    uint4 loaded[MOST_PIECES];
#pragma unroll
    for (uint32_t i = 0; i < MOST_PIECES; i++)
        if (i < pieces) loaded[i] = ptx_load_16(first + i * further);
#pragma unroll
    for (uint32_t i = 0; i < MOST_PIECES; i++) {
        const uint32_t at = i * BSMI_ROW_AND_COLUMN_THREADS + threadIdx.x;
        if (i < pieces) *(uint4 *)(bytes + at * 16 + at / LINES<which> * 16) = loaded[i];
    }
    __syncthreads();
#pragma unroll 2
    for (uint32_t i = 0; i < pieces; i++) {
        const uint32_t here = line + i * lines;
        const unsigned char *of_piece = bytes + (here / LINES<which> * pieces + piece) * APART;
        uint32_t words[4];
#pragma unroll
        for (uint32_t j = 0; j < 4; j++) {                       /* byte b of a line is byte b % UNIT of that line of
                                                                    tile b / UNIT */
            const unsigned char *from =
                of_piece + (4 * j / UNIT * LINES<which> + here % LINES<which>)*UNIT + 4 * j % UNIT;
            words[j] =
                UNIT >= 4 ? *(const uint32_t *)from
                          : *(const uint16_t *)from | (uint32_t) * (const uint16_t *)(from + LINES<which> * UNIT) << 16;
        }
        ptx_store_16(first + i * further, make_uint4(words[0], words[1], words[2], words[3]));
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_ROW_AND_COLUMN_THREADS)
    bsmi_order_scales(const __grid_constant__ bsmi_row_and_column_parameters p)
{
    __shared__ __align__(16) unsigned char bytes[MOST_PIECES * (BSMI_ROW_AND_COLUMN_THREADS * 16 + 32)];
    const bsmi_device_matrix &rows = p.rows.destination, &columns = p.columns.destination;
    const uint32_t of_rows = (uint32_t)bsmi_row_and_column_regions(&rows.layout);
    ptx_griddepcontrol_wait();
    const bool sixteen = rows.block == 16;
    if (blockIdx.x < of_rows)
        sixteen ? order_regions<0, 16>(rows, blockIdx.x, bytes) : order_regions<0, 32>(rows, blockIdx.x, bytes);
    else
        sixteen ? order_regions<1, 16>(columns, blockIdx.x - of_rows, bytes)
                : order_regions<1, 32>(columns, blockIdx.x - of_rows, bytes);
}

#endif

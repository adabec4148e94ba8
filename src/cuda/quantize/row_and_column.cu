/* A matrix of bf16 and its transpose into codes and scales from one read: the bits of bsmi_quantize of both.
 * both_tile.cuh says how. */
#include "row_and_column_quotients.cuh"
#include "tensor_scale.cuh"

/* What a CTA knows of one destination. path: a bf16_path, BF16_NONE for the exact one, or one of the above.  places: of
 * the scales of a tile's rows and blocks, from that of its first on. */
struct both_job {
    static constexpr bool ALWAYS_STAGED = false;
    both_constants constants;
    block_quantizer q;
    bf16_job bf16;
    int path;
    bool staged;                          /* scales of columns go to memory in words of four, by way of both_stage */
    uint32_t row_places[BSMI_ROW_AND_COLUMN_COLUMNS], block_places[16];
};

/* Tiles below one another that a CTA does one behind the other, where there are many. */
enum { CHUNK = 2 };

/* Scales of a chunk's columns.  As bytes of one block each they would touch half as many sectors as MXFP4's codes do.
 * One warp writes all of a column. */
struct both_stage { unsigned char columns[BSMI_ROW_AND_COLUMN_COLUMNS][16]; };

/* The same in memory: its first numbers, codes and scales of both destinations, and the scales of its columns from its
 * chunk's first row on. One thread finds those of the tile after the next. */
struct both_places { const unsigned char *source; unsigned char *codes[2], *scales[2], *column_scales; both_tile at; };
enum { PLACES = 4 };

/* Of blocks that two lanes share, one does it. */
__device__ static void quantize_again(const bsmi_quantize_parameters &p, const both_job &job, uint32_t units,
                                      const unit_places &at, uint32_t row, uint32_t column, unsigned char *stage)
{
    const uint32_t halves = p.destination.block == 16 ? 1 : 2, block = (column / 16 + at.sixteenth) / halves;
    for (uint32_t i = 0; i < UNITS; i++) {
        if ((units >> i & 1) == 0 || (halves == 2 && (i & 1) != (threadIdx.x & 1))) continue;
        const uint32_t of_tile = at.row + (i & 1) * at.apart + i / 2 * at.further;
        quantize_exactly_at(p, job.q, job.bf16.places, { 0, row + of_tile, block, 1 });
        const uint32_t place = place_of(job.bf16.row, row + of_tile) + place_of(job.bf16.column, block);
        if (stage != nullptr) stage[of_tile * 16 + at.sixteenth / halves] = p.destination.scales[place];
    }
}

/* Where the scale of a tile's first column lies in the stage: turn counts tiles. */
__device__ static inline unsigned char *in_stage(both_stage &stage, const both_job &job, uint32_t turn)
{
    return stage.columns[0] + turn % CHUNK * (job.q.is_nvfp4 ? 4 : 2);
}

/* units: of rows, and of columns in bits 4 to 7. */
__device__ __noinline__ static void quantize_odd(const bsmi_row_and_column_parameters &p, const both_job *jobs,
                                                 const both_places &tile, uint32_t units, both_stage &stage,
                                                 uint32_t turn)
{
    __syncwarp();                         /* what is written again was written by two lanes */
    quantize_again(p.rows, jobs[0], units & 15, units_of_rows(), tile.at.row, tile.at.column, nullptr);
    quantize_again(p.columns, jobs[1], units >> 4, units_of_columns(), tile.at.column, tile.at.row,
                   in_stage(stage, jobs[1], turn));
}

/* Tensor scales that the fast paths do not serve. */
template <bool ROWS>
__device__ __noinline__ static uint32_t quantize_tile_slowly(const bsmi_quantize_parameters &p, const both_job &job,
                                                             both_tile at)
{
    const uint32_t rows = ROWS ? BSMI_ROW_AND_COLUMN_ROWS : BSMI_ROW_AND_COLUMN_COLUMNS,
                   columns = ROWS ? BSMI_ROW_AND_COLUMN_COLUMNS : BSMI_ROW_AND_COLUMN_ROWS;
    const uint32_t first_row = ROWS ? at.row : at.column, first_column = ROWS ? at.column : at.row;
    const uint32_t length = (uint32_t)p.destination.block, blocks = columns / length;
    for (uint32_t task = threadIdx.x; task < rows * blocks; task += BSMI_ROW_AND_COLUMN_THREADS)
        quantize_exactly_at(p, job.q, job.bf16.places,
                            { 0, first_row + task / blocks, (int64_t)first_column / length + task % blocks, 1 });
    return 0;
}

template <bool ROWS>
__device__ static inline uint32_t quantize_tile(const bsmi_quantize_parameters &p, const both_job &job,
                                                const uint4 *tile, const both_places &at, unsigned char *stage)
{
    switch (job.path) {
    case BF16_E4M3: return quantize_one_path<BF16_E4M3, ROWS>(p, job, tile, at, stage);
    case BF16_E5M2: return quantize_one_path<BF16_E5M2, ROWS>(p, job, tile, at, stage);
    case BF16_E2M1: return quantize_one_path<BF16_E2M1, ROWS>(p, job, tile, at, stage);
    case E2M1_BEYOND: return quantize_one_path<E2M1_BEYOND, ROWS>(p, job, tile, at, stage);
    case BF16_NVFP4: return quantize_one_path<BF16_NVFP4, ROWS>(p, job, tile, at, stage);
    case BF16_NVFP4_POWER: return quantize_one_path<BF16_NVFP4_POWER, ROWS>(p, job, tile, at, stage);
    case NVFP4_SHORT: return quantize_one_path<NVFP4_SHORT, ROWS>(p, job, tile, at, stage);
    default: return quantize_tile_slowly<ROWS>(p, job, at.at);
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
    const bf16_constants &c = job.bf16.constants;
    const bool sixteen = job.q.is_nvfp4 != 0, within = (c.round_up & 0xffff) >= 0x3f;  /* 1.5 is the largest */
    job.path = job.bf16.path == BF16_NONE && job.q.path == PATH_NVFP4 ? NVFP4_SHORT
              : job.bf16.path == BF16_E2M1 && !within ? E2M1_BEYOND : (int)job.bf16.path;
    job.constants = { c.round_up,
                      (uint32_t)c.emax * 0x00800080,
                      c.exponent_of_one,
                      (uint32_t)c.emax,
                      (c.least - 1) * 0x00010001,
                      sixteen ? 0x7f7f7f7f : (c.least + c.span) * 0x00010001,
                      0x80008000,
                      0x40804080,
                      sixteen ? c.low_nibbles : c.even,
                      sixteen ? c.high_nibbles : c.odd,
                      0 - 0x43 * (0x01000100 * c.even + 0x01010101 * c.odd),
                      c.amax_factor };
}

/* By all threads, behind a barrier. */
__device__ static inline void make_places(both_job &job, const bsmi_device_matrix &m, bool staged)
{
    /* places are sums over the bits of both numbers */
    const uint32_t bit = 1u << threadIdx.x % 32, place = place_of(job.bf16.column, bit);
    const bool in_words =
        place_of(job.bf16.row, bit) % 4 == 0 && (bit < 4 ? place == bit : place % 4 == 0) && aligned_to(m.scales, 4);
    const bool all_in_words = __all_sync(0xffffffff, in_words);
    if (threadIdx.x == 0) job.staged = staged && all_in_words && job.path != BF16_NONE;
    job.row_places[threadIdx.x] = place_of(job.bf16.row, threadIdx.x);
    if (threadIdx.x < 16) job.block_places[threadIdx.x] = place_of(job.bf16.column, threadIdx.x);
}

/* The order of tiles: chunks of `tall`, in bands of BAND tiles above one another; a CTA does every so many of them. */
struct both_order { uint32_t down, across, tall; };

/* 16 columns of NVFP4's tiles of scales lie together anyway, and chunks take longer there
 * (docs/design/memory-bound.md). */
__device__ static inline both_order make_order(const bsmi_device_reals &s, const bsmi_device_matrix &columns)
{
    const uint32_t down = (uint32_t)(s.rows / BSMI_ROW_AND_COLUMN_ROWS),
                   across = (uint32_t)(s.columns / BSMI_ROW_AND_COLUMN_COLUMNS);
    const bool apart = columns.block == 32 || columns.layout.kind == BSM_LAYOUT_LINEAR;
    const uint32_t tall = apart && down % CHUNK == 0 && down * across >= CHUNK * gridDim.x ? CHUNK : 1;
    return { down / tall, across, tall };
}

__device__ static inline uint32_t chunk_of(const both_order &o, uint32_t turn)
{
    return blockIdx.x + (o.tall == CHUNK ? turn / CHUNK : turn) * gridDim.x;
}
__device__ static inline bool has_turn(const both_order &o, uint32_t turn)
{
    return chunk_of(o, turn) < o.down * o.across;
}

__device__ static inline both_tile tile_at(const both_order &o, uint32_t turn)
{
    const uint32_t chunk = chunk_of(o, turn), most = o.tall == CHUNK ? BAND / CHUNK : BAND;
    const uint32_t band = chunk / (most * o.across), first = band * most;
    const uint32_t height = min(most, o.down - first), rest = chunk - first * o.across;
    return { ((first + rest % height) * o.tall + (o.tall == CHUNK ? turn % CHUNK : 0)) * BSMI_ROW_AND_COLUMN_ROWS,
             rest / height * BSMI_ROW_AND_COLUMN_COLUMNS };
}

/* By one thread. */
__device__ static inline void find_places(const bsmi_row_and_column_parameters &p, const both_job *jobs, both_tile at,
                                          both_places *places)
{
    places->source = source_of_tile(p.rows.source, at);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const bsmi_device_matrix &m = i == 0 ? p.rows.destination : p.columns.destination;
        const uint32_t row = i == 0 ? at.row : at.column, column = i == 0 ? at.column : at.row;
        places->codes[i] = codes_of_tile(m, row, column);
        const uint32_t length = m.block == 16 ? 16 : 32, place = place_of(jobs[i].bf16.row, row);
        places->scales[i] = m.scales + (place + place_of(jobs[i].bf16.column, column / length));
        const uint32_t of_chunk =
            column / (CHUNK * BSMI_ROW_AND_COLUMN_ROWS) * (CHUNK * BSMI_ROW_AND_COLUMN_ROWS / length);
        if (i == 1) places->column_scales = m.scales + (place + place_of(jobs[i].bf16.column, of_chunk));
    }
    places->at = at;
}

/* Words of the stage that a warp has written. */
__device__ static inline void store_stage(const both_job &job, unsigned char *scales, const both_stage &stage)
{
    const uint32_t shift = job.q.is_nvfp4 ? CHUNK / 2 : CHUNK / 4;       /* words of a column: 1 << shift */
#pragma unroll 1
    for (uint32_t i = threadIdx.x % 32; i < 32u << shift; i += 32) {
        const uint32_t column = threadIdx.x / 32 * 8 + (i >> shift) % 8 + (i >> shift) / 8 * 32,
                       word = (i & (1u << shift) - 1) * 4;
        ptx_store_4(scales + (job.row_places[column] + job.block_places[word]),
                    *(const uint32_t *)&stage.columns[column][word]);
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_ROW_AND_COLUMN_THREADS, 4)
    bsmi_quantize_row_and_column(const __grid_constant__ bsmi_row_and_column_parameters p)
{
    __shared__ __align__(128) uint4 tiles[2][TILE_OCTETS];
    __shared__ both_job jobs[2];
    __shared__ both_places places[PLACES];
    __shared__ __align__(16) both_stage stage;
    const both_order order = make_order(p.rows.source, p.columns.destination);
    /* Memory is at work while threads think.  What the kernel in front of this one writes, if there is one, is the amax
     * alone. */
    if (has_turn(order, 0))
        copy_tile(p.rows.source, shared_address(tiles[0]), source_of_tile(p.rows.source, tile_at(order, 0)));
    cp_async_commit_group();
    ptx_griddepcontrol_wait();
    const bool computed = p.columns.computed != nullptr;
    const float scale_of_rows = find_tensor_scale(p.rows, { 0, 0 });
    const float scale_of_columns = computed ? scale_of_rows : find_tensor_scale(p.columns, { 0, 0 });
    if (computed && blockIdx.x == 0 && threadIdx.x == 0)
        ptx_store_relaxed(p.columns.computed, __float_as_uint(scale_of_columns));
    make_both_job(p.rows, scale_of_rows, 0, jobs[0]);
    make_both_job(p.columns, scale_of_columns, 32, jobs[1]);
    __syncthreads();
    make_places(jobs[0], p.rows.destination, false), make_places(jobs[1], p.columns.destination, order.tall == CHUNK);
    if (threadIdx.x % 64 == 0 && has_turn(order, threadIdx.x / 64))
        find_places(p, jobs, tile_at(order, threadIdx.x / 64), &places[threadIdx.x / 64]);
    for (uint32_t turn = 0; has_turn(order, turn); turn++) {
        cp_async_wait_group<0>();
        __syncthreads();                  /* the tile has come, and the other one is free */
        if (has_turn(order, turn + 1))
            copy_tile(p.rows.source, shared_address(tiles[(turn + 1) % 2]), places[(turn + 1) % PLACES].source);
        cp_async_commit_group();
        if (threadIdx.x == turn % 4 * 32 && has_turn(order, turn + 2))
            find_places(p, jobs, tile_at(order, turn + 2), &places[(turn + 2) % PLACES]);
        const both_places &here = places[turn % PLACES];
        const uint32_t of_rows = quantize_tile<true>(p.rows, jobs[0], tiles[turn % 2], here, nullptr);
        const uint32_t of_columns =
            quantize_tile<false>(p.columns, jobs[1], tiles[turn % 2], here, in_stage(stage, jobs[1], turn));
        const uint32_t odd = of_rows | of_columns << 4;
        if (__any_sync(0xffffffff, odd != 0)) quantize_odd(p, jobs, here, odd, stage, turn);
        if (!jobs[1].staged || turn % CHUNK != CHUNK - 1) continue;
        __syncwarp();
        store_stage(jobs[1], here.column_scales, stage);
    }
}

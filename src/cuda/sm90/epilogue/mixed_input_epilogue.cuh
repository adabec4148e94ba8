/* Finishing a tile of the mixed-input kernels: by way of transposed.cuh, and then elements that bf16 cannot
 * hold; with prepacked weights straight out of registers where a factor is all there is to it. */
#pragma once

#include "cuda/sm90/mainloop/mixed_input_config.cuh"
#include "transposed.cuh"
#include "fallback_rows.cuh"

/* Of an interleaved schedule, in which one warpgroup finishes at a time: there is one place for chunks. */
template <class CONFIG>
__device__ static inline transposed_tile
interleaved_tile_of(const bsmi_mixed_input_parameters &p, const gemm_tile &tile, const consumer_thread &at, bool scaled)
{
    transposed_tile d = transposed_tile_of<CONFIG>(p, tile, at.shared, at.group, scaled);
    d.chunk -= at.group * 4 * CONFIG::CHUNK * CONFIG::CHUNK_PITCH;
    return d;
}

/* Behind finishing, where sums went to D. */
template <class CONFIG>
__device__ static inline void compute_interleaved_fallback(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                                           const consumer_thread &at)
{
    const uint32_t tables = tables_of<CONFIG>(at.shared, at.group);
    static_assert(sizeof(fallback_memory) <= CONFIG::AT_FULL - CONFIG::AT_CHUNKS, "lies where sums went to D");
    compute_fallback(p, tile, (fallback_memory *)__cvta_shared_to_generic(at.shared + CONFIG::AT_CHUNKS), CONFIG::ROWS,
                     64, tables, tables + CONFIG::ROW_TABLE_BYTES, 1 + at.group);
}

/* Stored weights, interleaved -------------------------------------------------------------------------------------- */

/* exponent: of the tile's column whose number is this thread's in the warpgroup.  True if there is any but 0. */
template <class CONFIG>
__device__ static inline bool fill_all_tables(const bsmi_mixed_input_parameters &p, const gemm_finish &finish,
                                              const gemm_tile &tile, const consumer_thread &at, bool exponents,
                                              uint32_t exponent)
{
    const bool scaled = fill_tables<CONFIG>(p, finish, tile, at.shared, at.group);
    const uint32_t thread = threadIdx.x % 128, to = tables_of<CONFIG>(at.shared, at.group) + CONFIG::ROW_TABLE_BYTES;
    if (exponents && thread < CONFIG::COLUMNS) store_shared(to + thread * 4, exponent);
    barrier_sync(1 + at.group, 128);
    return scaled || exponents;
}

template <class CONFIG>
__device__ static inline void finish_stored_tile(const bsmi_mixed_input_parameters &p, const gemm_finish &finish,
                                                 const gemm_tile &tile, const consumer_thread &at, bool scaled,
                                                 const transposed_sums<CONFIG> &sums)
{
    finish_transposed_tile<CONFIG>(p, finish, tile, interleaved_tile_of<CONFIG>(p, tile, at, scaled), sums);
    if (scaled) compute_interleaved_fallback<CONFIG>(p, tile, at);
}

/* Prepacked weights ------------------------------------------------------------------------------------------------ */

/* What is read in front of a tile's first slice. */
struct prepacked_finish {
    bool plain;                           /* a factor for all is all that D asks for; else the tables are filled */
    uint32_t exponents;                   /* not 0: there are others than 0; of a plain tile what this thread knows of
                                             it, as read from memory: it is looked at behind the products */
};

/* Whether D is the sums times one factor, but for exponents. */
__device__ static inline bool is_plain(const bsmi_mixed_input_parameters &p)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    return p.direct && e.c == nullptr && e.bias == nullptr && (e.alpha == nullptr || e.alpha_per == BSM_PER_TENSOR);
}

/* The thread's column.  Exponents of columns come with prepacked weights, which no kernel in front makes. */
template <class CONFIG>
__device__ static inline uint32_t exponent_of_column(const bsmi_mixed_input_parameters &p, const gemm_tile &tile)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const int32_t thread = (int32_t)(threadIdx.x % 128), column = tile.column + thread;
    if (thread >= 64 || column >= e.n) return 0;
    return (uint32_t)e.b_exponents[tile.matrix * e.b_exponent_step + column];
}

template <class CONFIG>
__device__ static inline prepacked_finish begin_prepacked_finish(const bsmi_mixed_input_parameters &p,
                                                                 const gemm_tile &tile, const consumer_thread &at)
{
    if (is_plain(p)) return { true, exponent_of_column<CONFIG>(p, tile) };
    griddepcontrol_wait();
    return { false, fill_tables<CONFIG>(p, gemm_finish_of(p), tile, at.shared, at.group) ? 1u : 0u };
}

/* In front of the tile's last slice, whose products hide how long that takes: the thread's row, which a kernel in front
 * may have decoded. */
template <class CONFIG>
__device__ static inline void read_row_exponents(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                                 prepacked_finish &f)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const int32_t thread = (int32_t)(threadIdx.x % 128), row = tile.row + thread;
    if (!f.plain || e.a_exponents == nullptr) return;
    griddepcontrol_wait();
    for (int32_t i = 0; thread + i < CONFIG::ROWS && row + i < tile.row_end; i += 128)
        f.exponents |= (uint32_t)e.a_exponents[tile.matrix * e.a_exponent_step + row + i];
}

/* The same bits as finish_octet: a thread has two neighbouring columns of each row. */
template <class CONFIG>
__device__ static inline void store_plainly(const bsmi_mixed_input_parameters &p, float factor, const gemm_tile &tile,
                                            const float (&sums)[CONFIG::PRODUCT_SUMS])
{
    const gemm_output output = gemm_output_of(p, tile.matrix);
    const int32_t lane = (int32_t)(threadIdx.x % 32),
                  column = tile.column + (int32_t)(threadIdx.x % 128 / 32) * 16 + lane / 4 * 2,
                  first = tile.row + lane % 4 * 2;
    const bool has[2] = { column < p.epilogue.n, column + 1 < p.epilogue.n };
    unsigned char *to = output.data + first * output.row_bytes + (int64_t)column * (output.element == BSM_FP32 ? 4 : 2);
#pragma unroll
    for (int i = 0; i < CONFIG::ROWS / 4; i++) {
        const int in_octet = i % 2, row = i / 2 * 8 + in_octet;
        float v[2] = { sums[i / 2 * 4 + in_octet] * factor, sums[i / 2 * 4 + 2 + in_octet] * factor };
#pragma unroll
        for (int j = 0; j < 2; j++)
            if (isnan(v[j])) v[j] = __int_as_float(0x7fc00000);
        if (has_row(tile, first + row))
            store_pair(to + row * output.row_bytes, output.element, v[0], v[1], has[0], has[1]);
    }
}

/* Behind the tile's products: rows of A were waited for, and with them all that kernels in front do. */
template <class CONFIG>
__device__ static inline void finish_prepacked_tile(const bsmi_mixed_input_parameters &p, prepacked_finish f,
                                                    const gemm_tile &tile, const consumer_thread &at,
                                                    const transposed_sums<CONFIG> &sums)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    bool scaled = f.exponents != 0;
    if (f.plain) {
        const bool is_one = e.alpha == nullptr && e.tensor_scale_a == nullptr && e.tensor_scale_b == nullptr;
        if (!barrier_or(1 + at.group, 128, scaled)) {
            store_plainly<CONFIG>(p, is_one ? 1 : gemm_finish_of(p).f, tile, sums[0]);
            return;
        }
        scaled = fill_tables<CONFIG>(p, gemm_finish_of(p), tile, at.shared, at.group);
    }
    finish_columns<CONFIG>(p, gemm_finish_of(p), tile, interleaved_tile_of<CONFIG>(p, tile, at, scaled), sums);
    if (!scaled) return;
    barrier_sync(1 + at.group, 128);         /* sums have gone to D from there */
    compute_interleaved_fallback<CONFIG>(p, tile, at);
}

/* What finish_columns_by_fast_path makes, of many rows: numbers go to shared memory as bf16, two neighbours together,
 * 48 bytes a row, and each chunk of 32 rows has code of its own, since latencies add up to more than the fetching of
 * it. */
template <class CONFIG>
__device__ static inline void finish_rows_by_fast_path(float factor, const gemm_tile &tile, const transposed_tile &d,
                                                       const transposed_sums<CONFIG> &sums)
{
    constexpr int PITCH = 48;
    static_assert(CONFIG::CHUNK == 32 && PITCH <= CONFIG::CHUNK_PITCH, "a chunk has its place");
    const uint32_t lane = threadIdx.x % 32, memory = d.chunk - lane % 2 * 32,
                   from = memory + lane % 4 * 2 * PITCH + lane / 4 * 4, at = memory + lane / 2 * PITCH + lane % 2 * 16;
    const int64_t row_bytes = d.place.output.row_bytes;
    const int32_t row = tile.row + (int32_t)(lane / 2);
    unsigned char *to = d.place.output.data + row * row_bytes + (int64_t)d.place.column * 2;
#pragma unroll
    for (int chunk = 0; chunk < CONFIG::ROWS / 32; chunk++) {
        uint32_t pairs[2][4];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float *of = &sums[0][chunk * 16 + half * 8];
            float v[8] = { of[0], of[2], of[1], of[3], of[4], of[6], of[5], of[7] }, all = 0;
#pragma unroll
            for (int j = 0; j < 8; j++) v[j] *= factor, all += v[j];
            convert_pairs<BSM_BF16, 4, 0>(pairs[half], v, isnan(all));
        }
        __syncwarp();                     /* the chunk before is read */
#pragma unroll
        for (int i = 0; i < 8; i++) store_shared(from + (i / 2 * 8 + i % 2) * PITCH, pairs[i / 4][i % 4]);
        __syncwarp();
        const uint4 first = load_shared_v4(at), second = load_shared_v4(at + 16 * PITCH);
        if (has_row(tile, row + chunk * 32)) ptx_store_16(to, first);
        if (has_row(tile, row + chunk * 32 + 16)) ptx_store_16(to + 16 * row_bytes, second);
        to += 32 * row_bytes;
    }
}

/* A warpgroup's chunks have a place of their own, which may be larger than they are. */
template <class CONFIG>
__device__ static inline transposed_tile rows_tile_of(const bsmi_mixed_input_parameters &p, const gemm_tile &tile,
                                                      const consumer_thread &at, bool scaled)
{
    transposed_tile d = transposed_tile_of<CONFIG>(p, tile, at.shared, at.group, scaled);
    d.chunk += at.group * (CONFIG::CHUNK_BYTES - 4 * CONFIG::CHUNK * CONFIG::CHUNK_PITCH);
    return d;
}

/* Rows of prepacked weights, whose warpgroups each have chunks of their own, and more rows of A than are stored fastest
 * out of registers.  chunks: those that the group has rows in. */
template <class CONFIG>
__device__ static inline void finish_rows_tile(const bsmi_mixed_input_parameters &p, prepacked_finish f,
                                               const gemm_tile &tile, const consumer_thread &at,
                                               const transposed_sums<CONFIG> &sums,
                                               int32_t chunks = CONFIG::ROWS / CONFIG::CHUNK)
{
    const gemm_finish finish = gemm_finish_of(p);
    bool scaled = f.exponents != 0;
    if (f.plain) {
        scaled = barrier_or(1 + at.group, 128, scaled);
        const transposed_tile d = rows_tile_of<CONFIG>(p, tile, at, scaled);
        if (finishes_by_fast_path<CONFIG>(p, finish, tile, d)) {
            if constexpr (CONFIG::CODE_OF_EACH_CHUNK) finish_rows_by_fast_path<CONFIG>(finish.f, tile, d, sums);
            else finish_columns_by_fast_path<CONFIG>(finish.f, tile, d, sums, chunks);
            return;
        }
        scaled = fill_tables<CONFIG>(p, finish, tile, at.shared, at.group);
    }
    finish_columns<CONFIG>(p, finish, tile, rows_tile_of<CONFIG>(p, tile, at, scaled), sums, chunks);
    if (!scaled) return;
    static_assert(sizeof(fallback_memory) <= CONFIG::CHUNK_BYTES, "lies where sums went to D");
    barrier_sync(1 + at.group, 128);      /* sums have gone to D from there */
    const uint32_t tables = tables_of<CONFIG>(at.shared, at.group);
    compute_fallback(p, tile,
                     (fallback_memory *)__cvta_shared_to_generic(at.shared + CONFIG::AT_CHUNKS
                                                                 + at.group * CONFIG::CHUNK_BYTES),
                     CONFIG::ROWS, 64, tables, tables + CONFIG::ROW_TABLE_BYTES, 1 + at.group);
}

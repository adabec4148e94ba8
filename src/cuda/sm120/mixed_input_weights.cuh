/* Weights of the mixed-input kernels by mma.sync: from a stage of shared memory to registers, and on to mma.sync's
 * first operand, whose registers are those of a warp's 16 rows of wgmma's.
 *
 * Each of the three sources has
 *
 *     stage           what a warp keeps of a stage of codes, which is then free
 *     begin_tile      before the tile's first step
 *     read            a stage, of whose steps so many are K's
 *     is_rare         whether the stage takes more care: the same for all lanes
 *     decode<RARE>    step STEP of it
 *     end_tile        finishes and stores the tile */
#pragma once

#include "cuda/sm90/epilogue/mixed_input_epilogue.cuh"
#include "cuda/sm90/mainloop/mixed_input_two.cuh"
#include "cuda/sm90/operand/prepacked_registers.cuh"
#include "cuda/sm90/operand/tile_scales.cuh"
#include "mixed_input_config.cuh"

/* Codes of a stage as they are stored, a word for each product of either row. */
struct stored_codes { e2m1_words of[4]; };

template <class CONFIG>
__device__ static inline stored_codes read_codes(const e2m1_reader &reader, uint32_t stage)
{
    stored_codes codes;
#pragma unroll
    for (int i = 0; i < 4; i++) codes.of[i] = gather_words(reader, read_rows<CONFIG>(reader, i, stage));
    return codes;
}

/* Scales as stored ------------------------------------------------------------------------------------------------- */

template <class CONFIG> struct weights_as_stored {
    using CODES = typename CONFIG::CODES;
    using PARAMETERS = typename CONFIG::PARAMETERS;
    static constexpr uint32_t EXPONENTS = CONFIG::AT_TABLES + CONFIG::ROW_TABLE_BYTES;
    struct stage { stored_codes codes; step_scales<CODES> scales[2]; };
    consumer_thread at;
    e2m1_reader codes;
    scale_reader scales;
    scale_findings found;
    gemm_finish finish;
    bool scaled;

    __device__ inline weights_as_stored(const consumer_thread &thread)
        : at(thread), codes(e2m1_reader_of(thread.shared + CONFIG::AT_CODES)), scales{ 0, { 0x3210, 0x3210 } }
    {
    }

    /* Each warp loads the scales that it will read; exponents of its columns go into their table. */
    __device__ inline void begin_tile(const PARAMETERS &p, const gemm_tile &tile)
    {
        const int32_t stages = (p.segments[0].blocks + CONFIG::STEPS - 1) / CONFIG::STEPS;
        const scale_rows rows = own_scale_rows<CONFIG>(p, tile, at.shared);
        __syncwarp();                     /* those of the tile before are read */
        begin_scales<CONFIG>(p, tile, rows);
        set_scale_reader<CONFIG>(p, rows, scales);
        finish = gemm_finish_of(p);
        scaled = fill_tables<CONFIG>(p, finish, tile, at.shared, 0);
        found = end_scales<CONFIG>(p, tile, rows, at.shared + EXPONENTS + at.warp * 64, stages * CONFIG::STEPS);
        scaled |= found.exponents;
    }

    __device__ inline stage read(uint32_t number, int32_t step, int32_t) const
    {
        return { read_codes<CONFIG>(codes, number),
                 { read_scales<CONFIG>(scales, step), read_scales<CONFIG>(scales, step + 2) } };
    }
    __device__ inline bool is_rare(const stage &) const { return false; }

    template <bool RARE, int STEP> __device__ inline void decode(const stage &s, step_operand &operand) const
    {
        scale_halves<CODES> halves = halves_of<CODES, STEP % 2, false>(s.scales[STEP / 2]);
        if (__builtin_expect(found.special, 0)) halves = halves_of<CODES, STEP % 2, true>(s.scales[STEP / 2]);
        decode_step<CODES>(codes, s.codes.of[STEP], halves, operand);
    }

    __device__ inline void end_tile(const PARAMETERS &p, const gemm_tile &tile, const transposed_sums<CONFIG> &sums)
    {
        static_assert(sizeof(fallback_memory) <= 64 * CONFIG::SCALE_PITCH && CONFIG::AT_SCALES % 8 == 0,
                      "lies where scales were");
        finish_transposed_tile<CONFIG>(p, finish, tile, transposed_tile_of<CONFIG>(p, tile, at.shared, 0, scaled),
                                       sums);
        if ((!CODES::MICRO || p.epilogue.a_exponents != nullptr) && barrier_or(1, 128, scaled))
            compute_fallback(p, tile,
                             (fallback_memory *)__cvta_shared_to_generic(at.shared + CONFIG::AT_SCALES), CONFIG::ROWS,
                             64, at.shared + CONFIG::AT_TABLES, at.shared + EXPONENTS, 1);
    }
};

/* Scales in layout 128x4, less the exponents of rows --------------------------------------------------------------- */

template <class CONFIG> struct weights_128x4 {
    using CODES = typename CONFIG::CODES;
    using PARAMETERS = typename CONFIG::PARAMETERS;
    struct stage { stored_codes codes; piece_scales scales[CONFIG::PIECES]; };
    consumer_thread at;
    e2m1_reader codes;
    uint32_t scales;                      /* address of the first row's, in stage 0; the second row's are 16 bytes
                                             behind */
    gemm_finish finish;
    bool scaled;

    __device__ inline weights_128x4(const consumer_thread &thread)
        : at(thread), codes(e2m1_reader_of(thread.shared + CONFIG::AT_CODES + thread.group * 64 * 128))
    {
    }

    /* tile.column: of the group. */
    __device__ inline void begin_tile(const PARAMETERS &p, const gemm_tile &tile)
    {
        const uint32_t row = (uint32_t)tile.column % 128 + at.warp * 16 + at.lane / 4 * 2;
        scales = at.shared + CONFIG::AT_SCALES + row % 32 * 16 + row / 32 * 4;
        finish = gemm_finish_of(p);
        scaled = fill_tables<CONFIG>(p, finish, tile, at.shared, at.group);
    }

    /* Pieces behind K do not come. */
    __device__ inline stage read(uint32_t number, int32_t, int32_t steps) const
    {
        stage s = { read_codes<CONFIG>(codes, number), {} };
#pragma unroll
        for (int i = 0; i < CONFIG::PIECES; i++) {
            const uint32_t from = scales + number * CONFIG::SCALE_BYTES + i * CONFIG::PIECE_BYTES;
            if (i * CONFIG::PIECE_COLUMNS < steps * BSMI_K_STEP)
                s.scales[i] = { { load_shared(from), load_shared(from + 16) } };
        }
        return s;
    }
    __device__ inline bool is_rare(const stage &) const { return false; }

    template <bool RARE, int STEP> __device__ inline void decode(const stage &s, step_operand &operand) const
    {
        constexpr int SHIFT = CODES::MICRO ? 0 : STEP % 2 * 16;
        const piece_scales &piece = s.scales[CODES::MICRO ? STEP : STEP / 2];
        decode_step<CODES>(codes, s.codes.of[STEP],
                           halves_of_piece<CODES>({ { piece.of[0] >> SHIFT, piece.of[1] >> SHIFT } }), operand);
    }

    __device__ inline void end_tile(const PARAMETERS &p, const gemm_tile &tile, const transposed_sums<CONFIG> &sums)
    {
        finish_transposed_tile<CONFIG>(p, finish, tile,
                                       transposed_tile_of<CONFIG>(p, tile, at.shared, at.group, scaled), sums);
    }
};

/* Prepacked -------------------------------------------------------------------------------------------------------- */

template <class CONFIG> struct weights_prepacked {
    using CODES = typename CONFIG::CODES;
    using PARAMETERS = typename CONFIG::PARAMETERS;
    struct stage { uint4 codes[CONFIG::STEPS]; prepacked_scales<CODES> scales; };
    consumer_thread at;
    uint32_t codes, scales;               /* addresses of this thread's in stage 0 */
    prepacked_finish finish;

    __device__ inline weights_prepacked(const consumer_thread &thread) : at(thread)
    {
        constexpr uint32_t OF_TWO_ROWS = 2 * BSMI_PREPACKED_COLUMNS / CONFIG::BLOCK;
        codes = at.shared + CONFIG::AT_CODES + (at.warp * 32 + at.lane) * 16;
        scales = at.shared + CONFIG::AT_CODES + BSMI_PREPACKED_CODE_BYTES + (at.warp * 8 + at.lane / 4) * OF_TWO_ROWS;
    }

    __device__ inline void begin_tile(const PARAMETERS &p, const gemm_tile &tile)
    {
        finish = begin_prepacked_finish<CONFIG>(p, tile, at);
    }

    __device__ inline stage read(uint32_t number, int32_t, int32_t) const
    {
        stage s;
#pragma unroll
        for (int step = 0; step < CONFIG::STEPS; step++)
            s.codes[step] = load_shared_v4(codes + number * CONFIG::CODE_BYTES + step * 2048);
        s.scales = read_prepacked_scales<CODES>(scales + number * CONFIG::CODE_BYTES);
        return s;
    }
    __device__ inline bool is_rare(const stage &s) const { return are_large(s.scales); }

    template <bool RARE, int STEP> __device__ inline void decode(const stage &s, step_operand &operand) const
    {
#pragma unroll
        for (int row = 0; row < 2; row++)
            decode_prepacked_row<CODES, RARE ? PREPACKED_LARGE : PREPACKED_SMALL>(s.codes[STEP], s.scales.words[STEP],
                                                                                  row, operand);
    }

    /* Fallback rows are looked for 16 at a time. */
    __device__ inline void end_tile(const PARAMETERS &p, gemm_tile tile, const transposed_sums<CONFIG> &sums)
    {
        if (CONFIG::ROWS < 16) tile.row_end = min(tile.row_end, tile.row + CONFIG::ROWS);
        read_row_exponents<CONFIG>(p, tile, finish);
        finish_prepacked_tile<CONFIG>(p, finish, tile, at, sums);
    }
};

template <class CONFIG, bool STORED = CONFIG::STORED, bool PREPACKED = CONFIG::PREPACKED> struct weights_of {
    using type = weights_128x4<CONFIG>;
};
template <class CONFIG> struct weights_of<CONFIG, true, false> { using type = weights_as_stored<CONFIG>; };
template <class CONFIG> struct weights_of<CONFIG, false, true> { using type = weights_prepacked<CONFIG>; };

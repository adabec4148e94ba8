/* What one instance of fused dequantization consists of: sizes, and places in shared memory. */
#pragma once

#include "cuda/sm90/kernels/fused_dequantization_instances.h"
#include "cuda/sm90/operand/codes.cuh"
#include "shared_memory_config.cuh"

/* The parameters are columns of the table in fused_dequantization_instances.h. */
template <class CODES_, int ROWS_, int CLUSTER_COLUMNS_, int DECODERS_, int STAGES_, int CODE_STAGES>
struct fused_config {
    using CODES = CODES_;
    static constexpr int ROWS = ROWS_, COLUMNS = 64, STAGES = STAGES_, DECODERS = DECODERS_;
    static constexpr int CLUSTER_ROWS = 1, CLUSTER_COLUMNS = CLUSTER_COLUMNS_, CLUSTER = CLUSTER_COLUMNS;

    /* The consumer warpgroup has 64 rows of B, each thread two of them with ROWS / 4 sums each, by products of at most
     * 128 rows of A: those of 256 need more registers than ptxas grants a kernel of so many threads, whatever
     * setmaxnreg says. */
    static constexpr int PRODUCT_ROWS = ROWS < 128 ? ROWS : 128, PRODUCTS = ROWS / PRODUCT_ROWS,
                         PRODUCT_SUMS = PRODUCT_ROWS / 2;
    static constexpr int WARPGROUPS = 2 + DECODERS, THREADS = 128 * WARPGROUPS;

    /* The registers of an SM are dealt out evenly at first; sums of many rows need more than that. */
    static constexpr int EVEN = 65536 / THREADS / 8 * 8;
    static constexpr int PRODUCER = 24, CONSUMER = ROWS < 64 ? 96 : ROWS / 2 + 56, DECODER = 72;

    /* A stage: rows of A, and B's as bf16. */
    static constexpr int A_BOX_ROWS = ROWS / CLUSTER_COLUMNS, K_BYTES = BSMI_K_STEP * 2, A_BYTES = ROWS * K_BYTES,
                         B_BYTES = COLUMNS * K_BYTES;

    /* A stage of codes: 128 bytes of each row, and the scales that they need.  Of a stream, two boxes of 48 bytes of
     * each row, which are a step each: rows so far apart begin in 16 bytes that differ from those of their neighbours,
     * without swizzle. */
    static constexpr int CODE_COLUMNS = CODES::NIBBLES ? 256 : 128, CODE_STEPS = CODE_COLUMNS / BSMI_K_STEP;
    static constexpr int PIECE_COLUMNS = 4 * (CODES::MICRO ? 16 : 32), PIECES = CODE_COLUMNS / PIECE_COLUMNS,
                         PIECE_BYTES = 512;
    static constexpr int STREAM_BOX_BYTES = COLUMNS * BSMI_STREAM_BOX_BYTES,
                         CODE_BYTES = CODES::STREAM ? CODE_STEPS * STREAM_BOX_BYTES : COLUMNS * 128,
                         SCALE_BYTES = PIECES * PIECE_BYTES;

    /* Three numbers for each row of A and for each column of D; and sums on their way to D, of some
     * rows and each warp's 16 columns. */
    static constexpr int ROW_TABLE_BYTES = 3 * 4 * ROWS, TABLE_BYTES = ROW_TABLE_BYTES + 3 * 4 * COLUMNS;
    static constexpr int CHUNK = ROWS < 32 ? ROWS : 32, CHUNK_PITCH = 16 * 4 + 16;

    /* Shared memory, from its beginning. */
    static constexpr int AT_A = 0, AT_B = AT_A + STAGES * A_BYTES, AT_CODES = AT_B + STAGES * B_BYTES,
                         AT_SCALES = AT_CODES + CODE_STAGES * CODE_BYTES,
                         AT_TABLES = AT_SCALES + CODE_STAGES * SCALE_BYTES,
                         AT_CHUNKS = AT_TABLES + TABLE_BYTES, AT_FULL = AT_CHUNKS + 4 * CHUNK * CHUNK_PITCH,
                         AT_EMPTY = AT_FULL + STAGES * 8, AT_CODES_FULL = AT_EMPTY + STAGES * 8,
                         AT_CODES_EMPTY = AT_CODES_FULL + CODE_STAGES * 8,
                         SHARED_BYTES = AT_CODES_EMPTY + CODE_STAGES * 8;

    /* The second ring, for gemm_ring and the functions of barriers. */
    struct codes_ring {
        static constexpr int STAGES = CODE_STAGES, AT_FULL = AT_CODES_FULL, AT_EMPTY = AT_CODES_EMPTY;
    };

    static_assert(ROWS % PRODUCT_ROWS == 0 && PRODUCT_ROWS * K_BYTES % 1024 == 0,
                  "swizzle patterns begin at multiples of 1024 bytes");
    static_assert(ROWS % CHUNK == 0 && CHUNK % 16 == 0, "a warp finishes 16 rows at a time");
    static_assert(A_BOX_ROWS % 8 == 0 && A_BOX_ROWS <= 256, "boxes are whole swizzle patterns of at most 256 rows");
    static_assert(PRODUCER + CONSUMER + DECODERS * DECODER <= WARPGROUPS * EVEN, "registers of an SM");
    static_assert(DECODER <= EVEN && CONSUMER >= EVEN, "decoders give registers to consumers");
    /* A decoder waits for codes by the parity of a phase, and by the stage that it takes them from others come by, not
     * it, the time before. It has written step s - DECODERS when it takes those of s + DECODERS, so all up to s -
     * DECODERS - STAGES are multiplied: had those of the stage's time before not all come by then, it would take the
     * phase before that one for its own. */
    static_assert(CODE_STEPS * CODE_STAGES >= STAGES + 2 * DECODERS,
                  "no decoder is a whole turn of the ring of codes ahead");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};

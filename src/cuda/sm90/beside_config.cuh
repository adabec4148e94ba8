/* What one instance of the kernels that decode B beside the products consists of: sizes, shared memory, barriers. */
#pragma once

#include "beside_instances.h"
#include "cuda/sm90/kernels/decoding_config.cuh"

/* The parameters are columns of the table in beside_instances.h.  A CTA loads for itself alone, and so it has the ring of one without a cluster. */
template <class CODES_, int ROWS_, int COLUMNS_, int GROUPS_, int CTAS_, int STAGES_, int D_BOX_BYTES_>
struct beside_config : gemm_config<ROWS_, COLUMNS_, GROUPS_, 1, 1, STAGES_, D_BOX_BYTES_> {
    using CODES = CODES_;
    using BASE = gemm_config<ROWS_, COLUMNS_, GROUPS_, 1, 1, STAGES_, D_BOX_BYTES_>;
    using BASE::COLUMNS;
    using BASE::GROUPS;
    static constexpr int CTAS = CTAS_, DECODERS = BSMI_BESIDE_DECODERS, WARPGROUPS = 1 + GROUPS + DECODERS / 4, THREADS = 128 * WARPGROUPS;

    /* The registers of an SM are dealt out evenly at first. */
    static constexpr int EVEN = 65536 / THREADS / 8 * 8, PRODUCER = 24, DECODER = 72, CONSUMER = GROUPS == 1 ? 152 : 120;

    /* setmaxnreg gives each role its registers, and a call makes nothing slower. */
    static constexpr bool CALLS = true;

    /* Rows of B that a CTA decodes; a warp has two of them, in chunks of columns of which each thread has some octets of a row, 128 columns apart. */
    static constexpr int SHARE = COLUMNS / CTAS, WARP_ROWS = 2, CHUNK_STEPS = BSMI_BESIDE_CHUNK / BSMI_K_STEP, OCTETS = BSMI_BESIDE_CHUNK / 128;
    static constexpr int CHUNKS = BSMI_BESIDE_MOST_COLUMNS / BSMI_BESIDE_CHUNK;

    /* Scales of the share, all of them: a row's bytes, and 16 so that rows lie in banks of their own. */
    static constexpr int BLOCK = CODES::MICRO ? 16 : 32, SCALE_PITCH = BSMI_BESIDE_MOST_COLUMNS / BLOCK + 16;

    /* Shared memory, behind that of the ring and of D's boxes. */
    static constexpr int AT_SCALES = BASE::SHARED_BYTES, AT_EXPONENTS = AT_SCALES + SHARE * SCALE_PITCH, AT_LEFT_OUT = AT_EXPONENTS + COLUMNS * 4,
                         AT_DECODED = AT_LEFT_OUT + GROUPS * BSMI_BESIDE_LEFT_OUT_BYTES, AT_WRITTEN = AT_DECODED + CHUNKS * 8,
                         SHARED_BYTES = AT_WRITTEN + CHUNKS * 8;

    static_assert(!CODES::STREAM, "octets are words");
    static_assert(SHARE == DECODERS * WARP_ROWS, "each warp has rows of its own");
    static_assert(AT_SCALES % 16 == 0 && SCALE_PITCH % 16 == 0 && AT_LEFT_OUT % 16 == 0 && AT_DECODED % 8 == 0, "aligned");
    static_assert(BASE::BLOCKS == 1, "a warpgroup has 64 rows");
    static_assert(PRODUCER + GROUPS * CONSUMER + DECODERS / 4 * DECODER <= WARPGROUPS * EVEN, "registers of an SM");
    static_assert(DECODER <= EVEN && CONSUMER >= EVEN, "decoders give registers to consumers");
    static_assert(SHARED_BYTES <= 232448, "shared memory of a CTA");
};

/* Of a chunk of B's rows: an arrival of each CTA of the cluster, when its share is there for all of them. */
template <class CONFIG> __device__ static inline uint32_t decoded_barrier(uint32_t shared, uint32_t chunk)
{
    return shared + CONFIG::AT_DECODED + chunk * 8;
}

/* Of a chunk of the CTA's own share: an arrival of each warp that has written its part. */
template <class CONFIG> __device__ static inline uint32_t written_barrier(uint32_t shared, uint32_t chunk)
{
    return shared + CONFIG::AT_WRITTEN + chunk * 8;
}

template <class CONFIG> __device__ static inline uint32_t chunks_of(const bsmi_gemm_parameters &p)
{
    return ((uint32_t)p.segments[0].blocks + CONFIG::CHUNK_STEPS - 1) / CONFIG::CHUNK_STEPS;
}

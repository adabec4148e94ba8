/* The decoders: warps that write a CTA's share of B's rows as bf16 to memory, from where all CTAs of the cluster load them by way of the L2
 * cache.  First they bring the scales of the share, all of them, and find what exponents its rows have. */
#pragma once

#include "beside_config.cuh"
#include "cuda/ptx/cluster_store.cuh"
#include "cuda/sm90/operand/decoding_codes.cuh"
#include "cuda/sm90/operand/register_scales.cuh"

/* A thread's part: octets of one row, 16 threads a row. */
template <class CONFIG> struct beside_row {
    const unsigned char *codes;           /* of its first octet */
    uint16_t *to;
    uint32_t octets, padded_octets;       /* of the row, from its first one on */
    uint32_t scales;                      /* address of the row's */
    static constexpr int OCTET_BYTES = CONFIG::CODES::NIBBLES ? 4 : 8;
};

/* Codes on their way: one chunk's. */
template <class CONFIG> struct beside_codes { uint2 octets[CONFIG::OCTETS]; };

/* in_tile: the row. */
template <class CONFIG>
__device__ static inline beside_row<CONFIG> beside_row_of(const bsmi_gemm_parameters &p, const gemm_tile &tile, int32_t in_tile)
{
    const bsmi_device_matrix &m = p.b_source;
    const int32_t row = tile.column + in_tile, lane = (int32_t)threadIdx.x % 16;
    const int32_t octets = row < m.rows ? (int32_t)(m.columns / 8) : 0, padded = row < m.rows ? p.segments[0].blocks * (BSMI_K_STEP / 8) : 0;
    return { m.data + row * m.row_bytes + lane * beside_row<CONFIG>::OCTET_BYTES, p.decoded + row * p.decoded_pitch + lane * 8,
             (uint32_t)max(0, octets - lane), (uint32_t)max(0, padded - lane), 0 };
}

/* Zeros behind the last. */
template <class CONFIG> __device__ static inline beside_codes<CONFIG> load_octets(const beside_row<CONFIG> &row, uint32_t chunk)
{
    beside_codes<CONFIG> codes;
#pragma unroll
    for (uint32_t i = 0; i < CONFIG::OCTETS; i++) {
        const uint32_t number = (chunk * CONFIG::OCTETS + i) * 16;
        codes.octets[i] = make_uint2(0, 0);
        if (number >= row.octets) continue;
        const unsigned char *from = row.codes + number * row.OCTET_BYTES;
        if (CONFIG::CODES::NIBBLES) codes.octets[i].x = __ldg((const uint32_t *)from);
        else codes.octets[i] = __ldg((const uint2 *)from);
    }
    return codes;
}

template <class CODES, int ELEMENT> __device__ static inline uint4 decode_eight(uint2 codes, uint32_t scale)
{
    const uint32_t twice = scale_of_octet<CODES>(scale, 0);
    if constexpr (CODES::NIBBLES) return multiply(decode_nibbles(codes.x), twice);
    constexpr uint32_t FIRST = first_bytes<ELEMENT>(), LAST = last_bytes<ELEMENT>();
    const uint4 both[2] = { make_uint4(codes.x, codes.y, 0, 0), {} };
    uint4 v = decode_octet<ELEMENT>(both, 0);
    if ((special_bits<ELEMENT>(codes.x) | special_bits<ELEMENT>(codes.y)) != 0)
        v = make_uint4(mend_bytes<ELEMENT>(__byte_perm(codes.x, 0, FIRST), v.x), mend_bytes<ELEMENT>(__byte_perm(codes.x, 0, LAST), v.y),
                       mend_bytes<ELEMENT>(__byte_perm(codes.y, 0, FIRST), v.z), mend_bytes<ELEMENT>(__byte_perm(codes.y, 0, LAST), v.w));
    return multiply(v, twice);
}

/* All of them, or those that the row has. */
template <class CONFIG, int ELEMENT, bool ALL>
__device__ static inline void write_octets(const beside_row<CONFIG> &row, uint32_t chunk, const beside_codes<CONFIG> &codes)
{
    const uint32_t first = chunk * CONFIG::OCTETS * 16, of_first = row.scales + (first + threadIdx.x % 16) / (CONFIG::BLOCK / 8);
    uint32_t scales[CONFIG::OCTETS];
#pragma unroll
    for (uint32_t i = 0; i < CONFIG::OCTETS; i++)
        scales[i] = !ALL && first + i * 16 >= row.padded_octets ? 0 : load_shared_u8(of_first + i * (128 / CONFIG::BLOCK));
#pragma unroll
    for (uint32_t i = 0; i < CONFIG::OCTETS; i++) {
        const uint32_t number = first + i * 16;
        if (ALL || number < row.padded_octets)
            ptx_store_16(row.to + number * 8, decode_eight<typename CONFIG::CODES, ELEMENT>(codes.octets[i], scales[i]));
    }
}

/* Of the warp's rows.  exponents: their part of the table, which it fills. */
template <class CONFIG>
__device__ static inline bool bring_beside_scales(const bsmi_gemm_parameters &p, const gemm_tile &tile, register_source &source, uint32_t exponents)
{
    begin_scales<CONFIG>(p, tile, source);
    return end_scales<CONFIG>(p, tile, source, exponents, (p.segments[0].blocks + 1) & ~1).exponents;
}

/* The exponents of the warp's rows, from its own table to those of all CTAs of the cluster. */
template <class CONFIG> __device__ static inline void send_exponents(uint32_t exponents)
{
    const uint32_t lane = threadIdx.x % 32, at = exponents + 4 * (lane % CONFIG::WARP_ROWS);
    const uint32_t exponent = load_shared(at);
    __syncwarp();                         /* one of the CTAs is this one */
    if (lane < CONFIG::WARP_ROWS * CONFIG::CTAS) store_shared_cluster(mapa_shared_cluster(at, lane / CONFIG::WARP_ROWS), exponent);
    __syncwarp();
}

/* Behind what all threads of the warp have written. */
template <class CONFIG> __device__ static inline void has_written(uint32_t shared, uint32_t chunk)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(written_barrier<CONFIG>(shared, chunk));
}

/* One thread of the CTA: tells all CTAs of the cluster of each chunk that is written, of several together where they are.  The fences take
 * longer than decoding a chunk: the decoders do not wait for them. */
template <class CONFIG> __device__ static inline void tell_of_chunks(const bsmi_gemm_parameters &p, uint32_t shared)
{
    const uint32_t chunks = chunks_of<CONFIG>(p);
    for (uint32_t chunk = 0, told = 0; told < chunks;) {
        mbarrier_wait_parity(written_barrier<CONFIG>(shared, chunk++), 0);
        while (chunk < chunks && mbarrier_test_wait_parity(written_barrier<CONFIG>(shared, chunk), 0)) chunk++;
        fence_proxy_async();              /* what was written by ordinary stores, the copy engine reads */
        fence_acq_rel_cluster();
        for (; told < chunk; told++)
            for (uint32_t rank = 0; rank < CONFIG::CTAS; rank++)
                mbarrier_arrive_relaxed_cluster(mapa_shared_cluster(decoded_barrier<CONFIG>(shared, told), rank));
    }
}

/* The first codes are on their way while scales come; B may be read, see beside.cuh.  warp: of the decoders. */
template <class CONFIG, int ELEMENT>
__device__ static inline void decode_share(const bsmi_gemm_parameters &p, uint32_t shared, const gemm_tile &tile, uint32_t rank, uint32_t warp)
{
    const int32_t in_tile = (int32_t)(rank * CONFIG::SHARE + warp * CONFIG::WARP_ROWS), of_warp = (int32_t)threadIdx.x % 32 / 16;
    const uint32_t exponents = shared + CONFIG::AT_EXPONENTS + 4 * in_tile;
    register_source source = register_source_of<CONFIG>(p, tile, 0, in_tile);
    beside_row<CONFIG> row = beside_row_of<CONFIG>(p, tile, in_tile + of_warp);
    beside_codes<CONFIG> codes = load_octets<CONFIG>(row, 0);
    source.to = shared + CONFIG::AT_SCALES + warp * CONFIG::WARP_ROWS * CONFIG::SCALE_PITCH;
    row.scales = source.to + of_warp * CONFIG::SCALE_PITCH + shift_of_row(p, source, of_warp);
    const bool found = bring_beside_scales<CONFIG>(p, tile, source, exponents);
    barrier_cluster_wait();
    if (found) send_exponents<CONFIG>(exponents);
    for (uint32_t chunk = 0; chunk < chunks_of<CONFIG>(p); chunk++) {
        const beside_codes<CONFIG> next = load_octets<CONFIG>(row, chunk + 1);
        if ((chunk + 1) * CONFIG::OCTETS * 16 <= row.padded_octets) write_octets<CONFIG, ELEMENT, true>(row, chunk, codes);
        else write_octets<CONFIG, ELEMENT, false>(row, chunk, codes);
        has_written<CONFIG>(shared, chunk);
        codes = next;
    }
}

/* Octets of rows that lie well, read ahead of what is done with them: codes by asynchronous copies into a ring of two
 * stages, each thread its own, so that no barrier is needed; scales in registers.  What decoding and dequantizing have
 * in common besides the octets.
 *
 * A group of 32 .. 256 threads takes a row, a warp 128 neighbouring octets of it at a time, octet 32 i + lane in step
 * i. */
#ifndef BSMI_OCTET_READER_CUH
#define BSMI_OCTET_READER_CUH

#include "cuda/ptx/mbarrier.cuh"
#include "fast_path_octets.cuh"
#include "row_walk.cuh"

enum { STEPS_AT_ONCE = 4, READER_THREADS = 256 };
enum { STEP_BYTES = READER_THREADS * 8, STAGE_BYTES = STEPS_AT_ONCE * STEP_BYTES };

/* Threads a row: about STEPS_AT_ONCE octets each. */
__device__ static inline int threads_of_row(int64_t octets)
{
    int threads = 32;
    while (threads < READER_THREADS && (int64_t)threads * STEPS_AT_ONCE < octets) threads *= 2;
    return threads;
}

/* Everything about a matrix that its rows share: in shared memory. */
struct octet_rows {
    scale_places places;
    fast_places<STEPS_AT_ONCE> fast;
    int octets_per_block_shift;
    int path, end;                        /* path 0: all octets by bytes; else the first `end` of a row by the fast
                                             path */
    fast_step step;
    int64_t codes_apart;                  /* bytes from a row to the group's next one in the same matrix */
};

__device__ static inline octet_rows make_octet_rows(const bsmi_device_matrix &m, int64_t rows_apart)
{
    octet_rows s = {};
    if (m.block != 0) s.places = make_places(m.layout);
    s.octets_per_block_shift = m.block == 16 ? 1 : 2;
    s.path = m.rows * m.batch < (int64_t)1 << 31 ? fast_path_of(m) : 0;
    s.end = fast_end(m);
    if (s.end == 0 || (m.block != 0 && !make_fast_places(s.places.column, s.octets_per_block_shift, &s.fast)))
        s.path = 0;
    if (s.path == 0) {
        s.end = 0;
        return s;
    }
    s.step = make_fast_step((int)m.rows, (int)rows_apart);
    s.codes_apart = m.row_bytes * rows_apart;
    return s;
}

struct octet_reader {
    fast_walk w;
    int base, first, apart;               /* of the warp's stretch in the row; the thread's octet in it; to the next
                                             stretch */
    uint32_t ring;                        /* this thread's place of step 0 in the stage that comes next */
    const unsigned char *codes, *scales;  /* of the row; of the matrix */
    uint32_t scale_codes[STEPS_AT_ONCE];
};

__device__ static inline void point_to_row(const bsmi_device_matrix &m, octet_reader *o)
{
    o->codes = m.data + o->w.matrix * m.batch_bytes + o->w.r * m.row_bytes;
    o->scales = m.scales + o->w.matrix * m.scale_batch_bytes;
}

/* ring: of two stages, aligned to both. */
__device__ static inline octet_reader begin_octets(const bsmi_device_matrix &m, const uint2 *ring, const fast_walk &w,
                                                   int thread, int threads)
{
    octet_reader o = { w, 0, (thread & ~31) * STEPS_AT_ONCE + (thread & 31), threads * STEPS_AT_ONCE,
                       shared_address(ring + threadIdx.x), nullptr, nullptr, {} };
    point_to_row(m, &o);
    return o;
}

/* The next stretch.  scale_kind: BSM_UNSCALED has none, and 127 in its place. */
template <fast_packing packing, int scale_kind>
__device__ static inline void read_octets(const bsmi_device_matrix &m, const octet_rows &s,
                                          const fast_places<STEPS_AT_ONCE> &places, octet_reader *o)
{
    const int first = o->base + o->first, end = o->w.left > 0 ? s.end : 0;
    const unsigned char *codes =
        o->codes + (int64_t)(first & ~31) * bytes_of_octet<packing>() + lane_place<packing>(first & 31);
    const unsigned char *scales = o->scales;
    if (scale_kind != BSM_UNSCALED)
        scales += column_place(s.places.row, (uint32_t)o->w.r)
                  + column_place(s.places.column, (uint32_t)first >> s.octets_per_block_shift);
#pragma unroll
    for (int i = 0; i < STEPS_AT_ONCE; i++) {
        o->scale_codes[i] = 127;
        if (first + 32 * i >= end) continue;
        copy_fast<packing>(o->ring + i * STEP_BYTES, codes, i);
        if (scale_kind != BSM_UNSCALED) o->scale_codes[i] = __ldg(scales + places.step[i]);
    }
    cp_async_commit_group();
    o->ring ^= STAGE_BYTES;
    o->base += o->apart;
    if (o->base < s.end || o->w.left == 0) return;
    o->base = 0;
    o->codes += s.codes_apart;
    if (!fast_next(s.step, &o->w)) point_to_row(m, o);
}

template <fast_packing packing>
__device__ static inline octet read_octet(const uint2 *octets, int step)
{
    if (packing == FAST_NIBBLES) return { *(const uint32_t *)(octets + step * READER_THREADS), 0 };
    const uint2 codes = octets[step * READER_THREADS];
    return { codes.x, codes.y };
}

#endif

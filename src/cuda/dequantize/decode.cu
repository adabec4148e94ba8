/* Any operand as rows of bf16, exactly: number * 2^-(exponent of the row).
 *
 * A row's exponent is 0 if its numbers lie within [2^-40, 2^41), or may: the range is told from the scales of blocks
 * that are not all zeros and from the range of the element.  Else it is the middle of the row's range, if that spans at
 * most 2^80. Two such rows have products within [2^-80, 2^82) whose last bits are 2^-94 or above: no product is flushed
 * or rounded by an fp32 sum's range, and 2^45 of them do not overflow it.  Rows that span more are fallback rows, for
 * the exact kernel.
 *
 * CTA: 256 threads, in groups of 32 .. 256 threads that take a row each, eight elements ("octet") a thread and step.
 * Rows with e8m0 scales are written as if their exponent were 0, and once more in the rare case that it is not: one
 * barrier a row. */
#include "cuda/ptx/threads.cuh"
#include "cuda/scheduler/condition.cuh"
#include "decoded_rows.cuh"
#include "octet_reader.cuh"
#include "wide_octets.cuh"
#include "cuda/scales/row_scales.cuh"

/* Rows ------------------------------------------------------------------------------------------------------------- */

/* Everything about an operand that its rows share: in shared memory. */
struct matrix_job {
    octet_rows rows;
    decoding d;
    int64_t decoded_apart;                /* numbers from a row to the group's next one in the same matrix */
};

__device__ __noinline__ static void write_wide(const bsmi_decode_operand &p, const row_job j)
{
    for (int number = j.thread; number < j.padded_octets; number += j.threads) {
        const int count = count_in(j, number);
        uint4 v = make_uint4(0, 0, 0, 0), second;
        if (count > 0) v = load_halves(j.codes, number, count);
        if (p.source.element == BSM_FP16) {
            split_octet(v, &v, &second);
            ptx_store_16(j.to + p.padded_columns + (int64_t)number * 8, second);
        }
        ptx_store_16(j.to + (int64_t)number * 8, v);
    }
}

/* Rows, the fast path ---------------------------------------------------------------------------------------------- */

/* In exponents[], for the group's first thread itself: this row is to be written again. */
enum { WRITE_AGAIN = BSMI_ROW_FALLBACK + 1 };

/* The octets in front of s.rows.end of a group's rows.  No call of a function is in it, for which registers would be
 * kept free.  True if a row is to be written again. */
template <fast_packing packing, int element, int scale_kind>
__device__ static inline bool fast_rows(const bsmi_decode_operand &p, const matrix_job &s, const uint2 *ring,
                                         octet_reader reader, const row_job &j, int barrier, int64_t row,
                                         int64_t rows_apart)
{
    const bsmi_device_matrix &m = p.source;
    const bool high_first = m.packing == BSM_PACKING_HIGH_FIRST;
    const int mine = reader.first, apart = reader.apart, end = s.rows.end;
    const uint32_t least = s.d.least, span = s.d.span;
    const fast_places<STEPS_AT_ONCE> places = s.rows.fast;
    bool outside = false, again = false;
    fast_walk w = reader.w;
    if (w.left == 0) return false;
    uint16_t *to = p.decoded + w.matrix * p.batch_pitch + w.r * p.pitch;
    read_octets<packing, scale_kind>(m, s.rows, places, &reader);
    for (int base = 0, n = 0; w.left > 0; n ^= 1) {
        const uint2 *octets = ring + n * (STAGE_BYTES / 8) + threadIdx.x;
        const int now = base + mine;
        uint32_t scales[STEPS_AT_ONCE];
#pragma unroll
        for (int i = 0; i < STEPS_AT_ONCE; i++) scales[i] = reader.scale_codes[i];
        read_octets<packing, scale_kind>(m, s.rows, places, &reader);
        cp_async_wait_group<1>();
#pragma unroll
        for (int i = 0; i < STEPS_AT_ONCE; i++) {
            if (now + 32 * i >= end) break;
            const loaded_octet l = { read_octet<packing>(octets, i), scales[i] };
            ptx_store_16(to + (int64_t)now * 8 + 32 * 8 * i,
                         scaled_octet<packing, element, scale_kind>(l, now, high_first, least, span, &outside));
        }
        base += apart;
        if (base < end) continue;
        base = 0;
        if (scale_kind == BSM_E8M0) outside = ptx_barrier_or(barrier, j.threads, outside);
        if (p.exponents != nullptr && j.thread == 0) p.exponents[row] = outside ? (int)WRITE_AGAIN : 0;
        again |= outside, outside = false;
        row += rows_apart, to += s.decoded_apart;
        if (!fast_next(s.rows.step, &w)) to = p.decoded + w.matrix * p.batch_pitch + w.r * p.pitch;
    }
    cp_async_wait_group<0>();
    return again;
}

/* What fast_rows leaves; path 0: everything.  True if a row is a fallback row. */
__device__ static inline bool other_rows(const bsmi_decode_operand &p, const matrix_job &s, row_job j, int barrier,
                                         int *range, int64_t first, int64_t apart)
{
    const bsmi_device_matrix &m = p.source;
    bool fallback = false;
    for (row_walk w = walk_to(m.rows, first); w.row < m.rows * m.batch; w = walk_to(m.rows, w.row + apart)) {
        point_to_row(p, w.matrix, w.r, m.block != 0 ? place_in(s.rows.places.row, w.r) : 0, &j);
        bool outside =
            s.rows.path != 0 && p.exponents != nullptr && j.thread == 0 && p.exponents[w.row] == (int)WRITE_AGAIN;
        if (m.bits > 8) write_wide(p, j);
        else if (m.block != 0) outside |= write_rest<true>(m, s.rows.places.column, s.d, j, s.rows.end);
        else write_rest<false>(m, s.rows.places.column, s.d, j, s.rows.end);
        if (m.scale == BSM_E8M0 && ptx_barrier_or(barrier, j.threads, outside))
            fallback |= write_again(p, s.rows.places.column, s.d, j, w.row, barrier, range);
        else if (p.exponents != nullptr && j.thread == 0) p.exponents[w.row] = 0;
    }
    return fallback;
}

__device__ static void make_matrix_job(const bsmi_decode_operand &p, int64_t rows_apart, matrix_job &s)
{
    const bsmi_device_matrix &m = p.source;
    s = {};
    if (m.bits > 8) return;
    s.rows = make_octet_rows(m, rows_apart);
    s.d.f = small_float_of(m.element);
    const scale_bounds bounds = scale_bounds_of(m.element);
    s.d.least = bounds.least;
    s.d.span = m.scale == BSM_E8M0 ? bounds.span : 0xffffffff;
    s.decoded_apart = p.pitch * rows_apart;
}

extern "C" __global__ void __launch_bounds__(BSMI_DECODE_THREADS, 4)
    bsmi_decode(const __grid_constant__ bsmi_conditional_decode_parameters given)
{
    const bsmi_decode_parameters &p = given.decode;
    __shared__ matrix_job s;
    __shared__ __align__(2 * STAGE_BYTES) uint2 ring[2 * STAGE_BYTES / 8];
    __shared__ int ranges[BSMI_DECODE_THREADS / 32][2];
    static_assert(BSMI_DECODE_THREADS == READER_THREADS, "the ring has a place for each thread");
    const bool second = blockIdx.x >= (uint32_t)p.first_ctas;
    const int all_ctas = (int)gridDim.x, of_first = min(p.first_ctas, all_ctas);
    const int cta = (int)blockIdx.x - (second ? of_first : 0), ctas = second ? all_ctas - of_first : of_first;
    if (second && p.loads_scales != 0) {
        ptx_griddepcontrol_wait();
        griddepcontrol_launch_dependents();
        load_scales(p.scales, cta, ctas);
        return;
    }
    const bsmi_decode_operand &o = p.operands[second];
    const bsmi_device_matrix &m = o.source;
    row_job j;
    j.octets = (int)((m.columns + 7) / 8), j.padded_octets = (int)(o.padded_columns / 8);
    j.last_count = (int)(m.columns - (int64_t)(j.octets - 1) * 8);
    j.threads = threads_of_row(j.padded_octets);
    const int groups = BSMI_DECODE_THREADS / j.threads, group = (int)threadIdx.x / j.threads;
    const int barrier = group + 1;                                   /* 0 is the CTA's */
    j.thread = (int)threadIdx.x % j.threads;
    const int64_t all = m.rows * m.batch, row = (int64_t)cta * groups + group, apart = (int64_t)ctas * groups;
    if (threadIdx.x == 0) make_matrix_job(o, apart, s);
    __syncthreads();
    ptx_griddepcontrol_wait();
    griddepcontrol_launch_dependents();                              /* the next kernel's CTAs may begin wherever these
                                                                        end */
    if (!condition_holds(given.condition)) {
        if (m.scale == BSM_E8M0 && threadIdx.x == 0) o.fallback[cta] = 0;
        return;
    }

    bool again = s.rows.end < j.padded_octets, fallback = false;
    const fast_walk w = s.rows.path == 0 ? fast_walk{} : begin_fast_walk((int)m.rows, (int)all, (int)row, (int)apart);
    switch (s.rows.path) {
#define WAY(packing, element, scale) \
    case fast_path(packing, element, scale): \
        again |= fast_rows<packing, element, scale>(o, s, ring, begin_octets(m, ring, w, j.thread, j.threads), j, \
                                                     barrier, row, apart); \
        break;
        FAST_PATHS(WAY)
#undef WAY
    default: break;
    }
    if (again) fallback = other_rows(o, s, j, barrier, ranges[group], row, apart);
    if (m.scale != BSM_E8M0) return;
    fallback = __syncthreads_or(fallback) != 0;
    if (threadIdx.x == 0) o.fallback[cta] = fallback;
}

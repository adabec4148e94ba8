/* Both operands of a product with groups along K as rows of bf16, with the bits of bsmi_decode of each group's columns;
 * and the tables of the groups.
 *
 * A CTA takes a row at a time, eight columns ("octet") a thread and step, by the table of steps: how large groups are
 * makes no difference.  Rows are written as if all exponents were 0; where a scale of any group is far out, such groups
 * are written again. */
#include "cuda/params/column_groups.h"
#include "cuda/ptx/threads.cuh"
#include "decoded_rows.cuh"
#include "wide_octets.cuh"

enum { THREADS = BSMI_DECODE_COLUMNS_THREADS, AT_ONCE = 3, STEP_OCTETS = 8 };

/* Tables ----------------------------------------------------------------------------------------------------------- */

/* The sum of this lane's number and those of the lanes below. */
__device__ static inline int64_t sum_up_to(int64_t number)
{
    const int lane = (int)threadIdx.x & 31;
    for (int apart = 1; apart < 32; apart *= 2) {
        const int64_t below = __shfl_up_sync(0xffffffff, number, apart);
        if (lane >= apart) number += below;
    }
    return number;
}

/* By one warp, 32 groups at a time. */
__device__ static void write_table(const bsmi_column_tables_parameters &p)
{
    const int lane = (int)threadIdx.x & 31;
    int64_t column = 0, step = 0;
    for (int64_t base = 0; base < p.groups; base += 32) {
        const int64_t g = base + lane, given = g < p.groups ? max((int64_t)0, min(p.group_columns[g], p.k)) : 0;
        const int64_t rounded = (given + p.unit - 1) / p.unit * p.unit, behind = sum_up_to(rounded);
        const int64_t first = min(p.k, column + behind - rounded), columns = min(given, p.k - first);
        const int64_t steps = (columns + BSMI_COLUMN_STEP - 1) / BSMI_COLUMN_STEP, steps_behind = sum_up_to(steps);
        if (g < p.groups) p.table[g] = { first, columns, (int32_t)(step + steps_behind - steps), (int32_t)steps };
        column += __shfl_sync(0xffffffff, behind, 31);
        step += __shfl_sync(0xffffffff, steps_behind, 31);
    }
    if (lane == 0) p.table[p.groups] = { p.k, 0, (int32_t)step, 0 };
}

__device__ static void write_steps(const bsmi_column_tables_parameters &p)
{
    for (int64_t g = threadIdx.x / 32; g < p.groups; g += BSMI_COLUMN_TABLES_THREADS / 32) {
        const bsmi_column_group of = p.table[g];
        for (int32_t s = (int32_t)threadIdx.x % 32; s < of.steps; s += 32) {
            const int64_t before = (int64_t)s * BSMI_COLUMN_STEP;
            p.steps[of.step + s] = { (int32_t)(of.first + before),
                                     (int32_t)min((int64_t)BSMI_COLUMN_STEP, of.columns - before) };
        }
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_COLUMN_TABLES_THREADS)
    bsmi_column_tables(const __grid_constant__ bsmi_column_tables_parameters p)
{
    const int64_t apart = (int64_t)gridDim.x * BSMI_COLUMN_TABLES_THREADS,
                  number = (int64_t)blockIdx.x * BSMI_COLUMN_TABLES_THREADS + threadIdx.x;
    ptx_griddepcontrol_wait();
    for (int i = 0; i < 2; i++)
        for (int64_t at = number; at < p.exponents[i].count; at += apart) p.exponents[i].first[at] = 0;
    if (blockIdx.x != 0) return;
    if (threadIdx.x < 32) write_table(p);
    __syncthreads();
    if (p.steps != nullptr) write_steps(p);
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

/* Everything about an operand that its rows share: in shared memory. */
struct columns_job {
    scale_places places;
    decoding d;
    int path, end;                        /* as of octet_rows: the octets that a fast path does */
    int octets_per_block_shift, octets;   /* octets: of a row in the workspace */
};

/* One row of it. */
struct columns_row {
    const unsigned char *codes, *scales;
    uint16_t *to;
};

/* What an octet of a row in the workspace is made of: an octet of the operand, of which `count` columns are there. */
struct source_octet { int number, count; };

__device__ static inline source_octet source_of(const bsmi_column_step *steps, int octet)
{
    const bsmi_column_step step = steps[octet / STEP_OCTETS];
    const int in_step = octet % STEP_OCTETS;
    return { step.first / 8 + in_step, min(8, step.columns - in_step * 8) };
}

/* Any packing, any place.  *outside: it is not all zeros and has a scale that is flagged. */
__device__ __noinline__ static uint4 any_octet(const bsmi_device_matrix &m, const columns_job &s, decoding d,
                                               columns_row row, source_octet source, bool *outside)
{
    if (source.count <= 0) return make_uint4(0, 0, 0, 0);
    const octet o = load_octet(m, row.codes, source.number, source.count);
    uint4 v = decode_codes(m.element, d.f, o);
    if (m.block != 0) {
        const uint32_t scale = __ldg(row.scales + place_in(s.places.column, source.number >> s.octets_per_block_shift));
        v = multiply(v, scale_pair(m.scale, scale, d.exponent));
        *outside |= scale - d.least > d.span && scale != 255 && has_nonzero(m.element, o);
    }
    return keep_first(v, source.count);
}

__device__ static inline bool write_any(const bsmi_device_matrix &m, const bsmi_column_step *steps,
                                        const columns_job &s, const columns_row &row)
{
    bool outside = false;
    for (int at = (int)threadIdx.x; at < s.octets; at += THREADS)
        ptx_store_16(row.to + (int64_t)at * 8, any_octet(m, s, s.d, row, source_of(steps, at), &outside));
    return outside;
}

__device__ static inline bool write_wide(const bsmi_decode_operand &p, const bsmi_column_step *steps,
                                         const columns_job &s, const columns_row &row)
{
    for (int at = (int)threadIdx.x; at < s.octets; at += THREADS) {
        const source_octet source = source_of(steps, at);
        uint4 v = make_uint4(0, 0, 0, 0), second;
        if (source.count > 0) v = load_halves(row.codes, source.number, source.count);
        if (p.source.element == BSM_FP16) {
            split_octet(v, &v, &second);
            ptx_store_16(row.to + p.padded_columns + (int64_t)at * 8, second);
        }
        ptx_store_16(row.to + (int64_t)at * 8, v);
    }
    return false;
}

template <fast_packing packing>
__device__ static inline octet load_fast(const unsigned char *codes, int number)
{
    if (packing == FAST_NIBBLES) return { __ldg((const uint32_t *)codes + number), 0 };
    if (packing == FAST_BYTES) {
        const uint2 two = __ldg((const uint2 *)codes + number);
        return { two.x, two.y };
    }
    const uint32_t *words = (const uint32_t *)codes + (number * 3 >> 1);
    return { __ldg(words), __ldg(words + 1) };
}

/* What the fast path leaves as zeros: the end of a short row.  Each thread writes its own octets. */
__device__ __noinline__ static bool write_rest_of_row(const bsmi_device_matrix &m, const bsmi_column_step *steps,
                                                      const columns_job &s, const columns_row row)
{
    bool outside = false;
    for (int at = (int)threadIdx.x; at < s.octets; at += THREADS) {
        const source_octet source = source_of(steps, at);
        if (source.count > 0 && (source.count < 8 || source.number >= s.end))
            ptx_store_16(row.to + (int64_t)at * 8, any_octet(m, s, s.d, row, source, &outside));
    }
    return outside;
}

template <fast_packing packing, int element, int scale_kind>
__device__ static inline bool write_fast(const bsmi_device_matrix &m, const bsmi_column_step *steps,
                                         const columns_job &s, const columns_row &row)
{
    const bool high_first = m.packing == BSM_PACKING_HIGH_FIRST;
    const scale_part columns = s.places.column;
    const int octets = s.octets, end = s.end, shift = s.octets_per_block_shift;
    const uint32_t least = s.d.least, span = s.d.span;
    bool outside = false, rest = false;
    for (int base = (int)threadIdx.x; base < octets; base += THREADS * AT_ONCE) {
        loaded_octet loaded[AT_ONCE];
        int numbers[AT_ONCE];             /* -1: zeros, or one of the rest */
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            numbers[i] = -1;
            if (base + THREADS * i >= octets) continue;
            const source_octet source = source_of(steps, base + THREADS * i);
            if (source.count == 8 && source.number < end) numbers[i] = source.number;
            else rest |= source.count > 0;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            if (numbers[i] < 0) continue;
            loaded[i].codes = load_fast<packing>(row.codes, numbers[i]);
            loaded[i].scale = scale_kind == BSM_UNSCALED
                                  ? 127
                                  : __ldg(row.scales + column_place(columns, (uint32_t)numbers[i] >> shift));
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int at = base + THREADS * i;
            if (at >= octets) break;
            uint4 v = make_uint4(0, 0, 0, 0);
            if (numbers[i] >= 0)
                v = scaled_octet<packing, element, scale_kind>(loaded[i], numbers[i], high_first, least, span,
                                                               &outside);
            ptx_store_16(row.to + (int64_t)at * 8, v);
        }
    }
    if (rest) outside |= write_rest_of_row(m, steps, s, row);
    return outside;
}

__device__ static inline bool write_row(const bsmi_decode_operand &p, const bsmi_column_step *steps,
                                        const columns_job &s, const columns_row &row)
{
    if (p.source.bits > 8) return write_wide(p, steps, s, row);
    switch (s.path) {
#define WAY(packing, element, scale) \
    case fast_path(packing, element, scale): return write_fast<packing, element, scale>(p.source, steps, s, row);
        FAST_PATHS(WAY)
#undef WAY
    default: return write_any(p.source, steps, s, row);
    }
}

/* Groups that do not fit 2^0, by the whole CTA: the range of a group's scales, then its columns once more.  True if its
 * part of the row is left to the exact kernel. */
__device__ static bool write_group_again(const bsmi_decode_columns_parameters &p, const bsmi_decode_operand &o,
                                         const columns_job &s, const columns_row &row, int64_t r, int64_t g, int *range)
{
    const bsmi_device_matrix &m = o.source;
    const bsmi_column_group of = p.table[g];
    const int first = of.step * STEP_OCTETS, end = first + of.steps * STEP_OCTETS;
    int least = 255, most = -1;
    __syncthreads();                      /* range is read */
    if (threadIdx.x == 0) range[0] = 255, range[1] = -1;
    __syncthreads();
    for (int at = first + (int)threadIdx.x; at < end; at += THREADS) {
        const source_octet source = source_of(p.steps, at);
        if (source.count <= 0) continue;
        const int code = __ldg(row.scales + place_in(s.places.column, source.number >> s.octets_per_block_shift));
        if (code == 255 || !has_nonzero(m.element, load_octet(m, row.codes, source.number, source.count))) continue;
        least = min(least, code), most = max(most, code);
    }
    atomicMin(&range[0], least);
    atomicMax(&range[1], most);
    __syncthreads();
    least = range[0], most = range[1];
    if (most < 0 || (least >= (int)s.d.least && most <= (int)(s.d.least + s.d.span))) return false;
    decoding d = s.d;
    d.exponent = exponent_of_range(m.element, least, most, o.only_exponent_zero);
    const bool fallback = d.exponent == BSMI_ROW_FALLBACK;
    bool ignored = false;
    for (int at = first + (int)threadIdx.x; at < end; at += THREADS)
        ptx_store_16(row.to + (int64_t)at * 8, fallback ? make_uint4(0, 0, 0, 0)
                                                        : any_octet(m, s, d, row, source_of(p.steps, at), &ignored));
    if (threadIdx.x == 0) o.exponents[g * m.rows + r] = d.exponent;
    return fallback;
}

__device__ static void make_job(const bsmi_device_matrix &m, columns_job &s)
{
    s = {};
    s.path = m.bits > 8 ? 0 : fast_path_of(m);
    s.end = fast_end(m);
    s.octets_per_block_shift = m.block == 16 ? 1 : 2;
    if (m.block != 0) s.places = make_places(m.layout);
    if (m.block != 0 && s.places.column.tile != 0) s.path = 0;
    if (m.bits > 8) return;
    const scale_bounds bounds = scale_bounds_of(m.element);
    s.d = { small_float_of(m.element), 0, bounds.least, m.scale == BSM_E8M0 ? bounds.span : 0xffffffff };
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
    bsmi_decode_columns(const __grid_constant__ bsmi_decode_columns_parameters p)
{
    __shared__ columns_job s;
    __shared__ int range[2];
    const bool second = blockIdx.x >= (uint32_t)p.first_ctas;
    const bsmi_decode_operand &o = p.operands[second];
    const bsmi_device_matrix &m = o.source;
    const int64_t cta = (int64_t)blockIdx.x - (second ? p.first_ctas : 0),
                  ctas = second ? (int64_t)gridDim.x - p.first_ctas : p.first_ctas;
    if (threadIdx.x == 0) make_job(m, s);
    ptx_griddepcontrol_wait();
    griddepcontrol_launch_dependents();
    if (threadIdx.x == 0) s.octets = p.table[p.groups].step * STEP_OCTETS;
    __syncthreads();
    bool fallback = false;
    for (int64_t r = cta; r < m.rows; r += ctas) {
        const columns_row row = { m.data + r * m.row_bytes,
                                  m.block == 0 ? nullptr : m.scales + place_in(s.places.row, r),
                                  o.decoded + r * o.pitch };
        const bool outside = write_row(o, p.steps, s, row);
        if (m.scale != BSM_E8M0 || __syncthreads_or(outside) == 0) continue;
        for (int64_t g = 0; g < p.groups; g++) fallback |= write_group_again(p, o, s, row, r, g, range);
    }
    if (m.scale == BSM_E8M0 && threadIdx.x == 0) o.fallback[cta] = fallback;
}

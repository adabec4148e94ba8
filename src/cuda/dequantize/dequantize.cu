/* Codes and scales into real numbers: the bits of bsm_dequantize, and its reasons why rounding through double rounds
 * once (dequantize.c).  Where there is no tensor scale, fp32 holds element times scale exactly, and so does bf16 unless
 * an e8m0 scale leads beyond its normal numbers: elements and scales have 8 and 4 bits at most.
 *
 * Whole octets of rows that lie well become bf16 at the speed of memory.  NVFP4 does so with any tensor scale: a scale
 * code leaves eight magnitudes, powers of two times 1 and times 1.5, so that two numbers are rounded for each of 128
 * codes, once a CTA.
 *
 * CTA: 256 threads, in groups of 32 .. 256 threads that take a row each, eight elements a thread and step. */
#include "blockscale/quantize.h"
#include "cuda/ptx/arithmetic.cuh"
#include "octet_reader.cuh"
#include "quantize/block/scale_code.h"

struct row_work {
    int thread, threads, octets, last_count;
    const unsigned char *codes, *scales;
    int64_t first;                        /* index of the row's first number in the destination */
};

/* Exact, without scales. */
__device__ static inline void load_elements(const bsmi_device_matrix &m, const row_work &w, int number, int count,
                                            float *x)
{
    if (m.bits <= 8) {
        const octet o = load_octet(m, w.codes, number, count);
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = decode_element(m.element, (i < 4 ? o.low : o.high) >> 8 * (i & 3) & 0xff);
        return;
    }
    for (int i = 0; i < count; i++) {
        const int64_t k = (int64_t)number * 8 + i;
        x[i] =
            decode_element(m.element, m.bits == 16 ? ((const uint16_t *)w.codes)[k] : ((const uint32_t *)w.codes)[k]);
    }
}

/* A finite or infinite fp32 number, or NaN, rounded to a real of 16 or 32 bits. */
__device__ static inline uint32_t real_code(int type, float x)
{
    const uint32_t bits = __float_as_uint(x);
    if (type == BSM_REAL_BF16) return isnan(x) ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    if (type == BSM_REAL_FP16) return isnan(x) ? 0x7e00 : ptx_cvt_f16x2(0, x) & 0xffff;
    return isnan(x) ? 0x7fc00000 : bits;
}

__device__ static inline void store_numbers(const bsmi_device_reals &d, int64_t index, int count, const float *x)
{
    uint32_t codes[8];
#pragma unroll
    for (int i = 0; i < 8; i++) codes[i] = real_code(d.type, x[i]);
    const bool wide = d.type == BSM_REAL_FP32;
    unsigned char *to = d.data + index * (wide ? 4 : 2);
    if (count == 8 && d.column_stride == 1 && aligned_to(to, 16)) {
        if (wide) {
            ((uint4 *)to)[0] = make_uint4(codes[0], codes[1], codes[2], codes[3]);
            ((uint4 *)to)[1] = make_uint4(codes[4], codes[5], codes[6], codes[7]);
        } else {
            *(uint4 *)to = make_uint4(codes[0] | codes[1] << 16, codes[2] | codes[3] << 16, codes[4] | codes[5] << 16,
                                      codes[6] | codes[7] << 16);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (i >= count) continue;
        if (wide) ((uint32_t *)to)[i * d.column_stride] = codes[i];
        else ((uint16_t *)to)[i * d.column_stride] = (uint16_t)codes[i];
    }
}

/* e8m0 codes with which every element stays a normal bf16 number: 2^-16 * 2^-110 and 2^16 * 2^110 are. */
enum { LEAST_FAST_CODE = 127 - 110, MOST_FAST_CODE = 127 + 110 };

/* NaN as the canonical one of bf16. */
__device__ static inline uint32_t canonical_pair(uint32_t pair)
{
    if ((((pair & 0x7fff7fff) + 0x007f007f) & 0x80008000) == 0) return pair;       /* neither is above infinity */
    const uint32_t low = (pair & 0x7fff) > 0x7f80 ? 0x7fc0 : pair & 0xffff,
                   high = (pair >> 16 & 0x7fff) > 0x7f80 ? 0x7fc0 : pair >> 16;
    return low | high << 16;
}

/* Whole octets, the fast path -------------------------------------------------------------------------------------- */

/* Of NVFP4: what a magnitude of e2m1 becomes, by scale codes. */
struct bf16_table { uint4 of_code[128]; };

/* A positive normal number rounded to bf16 once: to odd in between, which keeps two bits more. */
__device__ static inline uint32_t bf16_of_double(double x)
{
    const float toward_zero = __double2float_rz(x);
    const uint32_t bits = __float_as_uint(toward_zero) | (uint32_t)((double)toward_zero != x);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* The bf16 of 0, .5, 1, 1.5, 2, 3, 4, 6 times the scale: halves and doubles of two of them, exactly.  The scale 0 makes
 * zeros. */
__device__ static inline uint4 magnitudes_of(uint32_t code, double t, bool divides)
{
    const double scale = (double)bsmi_ue4m3_to_float((uint8_t)code);
    if (code == 0 || code == 0x7f) return make_uint4(0, 0, 0, 0);
    const uint32_t one = bf16_of_double(bsmi_scaled_value(1, scale, t, divides)),
                   more = bf16_of_double(bsmi_scaled_value(1.5, scale, t, divides));
    const uint32_t n[8] = { 0, one - 0x80, one, more, one + 0x80, more + 0x80, one + 0x100, more + 0x100 };
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        words[i] = __byte_perm(__byte_perm(n[i % 2 * 4], n[i % 2 * 4 + 1], i < 2 ? 0x0040 : 0x0051),
                               __byte_perm(n[i % 2 * 4 + 2], n[i % 2 * 4 + 3], i < 2 ? 0x0040 : 0x0051), 0x5410);
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* The path of a matrix, or 0. */
__device__ static inline int bf16_path_of(const bsmi_device_matrix &m, const bsmi_device_reals &d, int path, float t)
{
    const bool nvfp4 = path == fast_path(FAST_NIBBLES, BSM_E2M1, BSM_UE4M3);
    if (d.type != BSM_REAL_BF16 || d.column_stride != 1 || !aligned_to(d.data, 16) || d.row_stride % 8 != 0
        || d.batch_stride % 8 != 0)
        return 0;
    if (nvfp4) return t > 0x1p-100f && t < 0x1p100f ? path : 0;
    return m.tensor_scale != nullptr || m.scale == BSM_UE4M3 ? 0 : path;
}

template <fast_packing packing, int element, int scale_kind>
__device__ static inline uint4 dequantized_octet(const loaded_octet &l, int number, bool high_first,
                                                 const bf16_table &table, bool *again)
{
    bool special;
    if (scale_kind == BSM_UE4M3) {
        const uint32_t code = l.scale & 0x7f;
        const uint4 v = nibbles_by_table(high_first ? swap_nibbles(l.codes.low) : l.codes.low, table.of_code[code]);
        return code == 0x7f ? make_uint4(0x7fc07fc0, 0x7fc07fc0, 0x7fc07fc0, 0x7fc07fc0) : v;
    }
    uint4 v = decode_fast<packing, element>(l.codes, number, high_first, &special);
    if (special) v = mend_special<element>(l.codes, v);
    if (scale_kind == BSM_E8M0) {
        v = multiply(v, l.scale * 0x00800080);                       /* 2^(code - 127), twice */
        *again |= l.scale - LEAST_FAST_CODE > MOST_FAST_CODE - LEAST_FAST_CODE;
    }
    if (special) v = make_uint4(canonical_pair(v.x), canonical_pair(v.y), canonical_pair(v.z), canonical_pair(v.w));
    return v;
}

/* again: as quantize_bf16_rows has it. */
template <fast_packing packing, int element, int scale_kind>
__device__ static inline void dequantize_octets(const bsmi_dequantize_parameters &p, const octet_rows &s,
                                                const bf16_table &table, const uint2 *ring, octet_reader reader,
                                                uint64_t *again)
{
    const bsmi_device_reals &d = p.destination;
    const bool high_first = p.source.packing == BSM_PACKING_HIGH_FIRST;
    const fast_places<STEPS_AT_ONCE> places = s.fast;
    const int mine = reader.first, apart = reader.apart, end = s.end;
    fast_walk w = reader.w;
    if (w.left == 0) return;
    read_octets<packing, scale_kind>(p.source, s, places, &reader);
    for (int base = 0, n = 0; w.left > 0; n++) {
        const uint2 *octets = ring + (n & 1) * (STAGE_BYTES / 8) + threadIdx.x;
        const int now = base + mine;
        uint16_t *to = (uint16_t *)d.data + w.matrix * d.batch_stride + w.r * d.row_stride + (int64_t)now * 8;
        uint32_t scales[STEPS_AT_ONCE];
        bool odd = false;
#pragma unroll
        for (int i = 0; i < STEPS_AT_ONCE; i++) scales[i] = reader.scale_codes[i];
        read_octets<packing, scale_kind>(p.source, s, places, &reader);
        cp_async_wait_group<1>();
#pragma unroll
        for (int i = 0; i < STEPS_AT_ONCE; i++) {
            if (now + 32 * i >= end) break;
            const loaded_octet l = { read_octet<packing>(octets, i), scales[i] };
            ptx_store_16(to + 32 * 8 * i,
                         dequantized_octet<packing, element, scale_kind>(l, now, high_first, table, &odd));
        }
        if (scale_kind == BSM_E8M0 && __any_sync(0xffffffff, odd) && (threadIdx.x & 31) == 0)
            again[threadIdx.x / 32] |= (uint64_t)1 << (n & 63);
        base += apart;
        if (base < end) continue;
        base = 0;
        fast_next(s.step, &w);
    }
    cp_async_wait_group<0>();
}

/* Any other path ------------------------------------------------------------------------------------------------ */

/* What rows share. */
struct slow_job { bool fast; double tensor_scale; scale_places places; };

/* Octets begin .. end - 1 of a row, a thread's apart by `apart`. */
__device__ static void dequantize_slowly(const bsmi_dequantize_parameters &p, const slow_job &job, const row_work &w,
                                         int begin, int end, int apart)
{
    const bsmi_device_matrix &m = p.source;
    const bsmi_device_reals &d = p.destination;
    const int shift = m.block == 16 ? 1 : 2;
    for (int number = begin; number < end; number += apart) {
        const int count = number == w.octets - 1 ? w.last_count : 8;
        const int64_t index = w.first + (int64_t)number * 8 * d.column_stride;
        const float scale =
            m.block != 0 ? decode_scale(m.scale, __ldg(w.scales + place_in(job.places.column, number >> shift))) : 1;
        float x[8] = {};
        load_elements(m, w, number, count, x);
        if (job.fast) {
#pragma unroll
            for (int i = 0; i < 8; i++) x[i] *= scale;
            store_numbers(d, index, count, x);
            continue;
        }
        for (int i = 0; i < count; i++)
            store_real(d.type, d.data, index + i * d.column_stride,
                       bsmi_scaled_value((double)x[i], (double)scale, job.tensor_scale, m.tensor_scale_divides != 0));
    }
}

/* Octets of rows from `end` on, and stretches in front of it that are to be done again. */
__device__ __noinline__ static void dequantize_rest(const bsmi_dequantize_parameters &p, row_work w, int end,
                                                    uint64_t again)
{
    enum { STRETCH = 32 * STEPS_AT_ONCE };
    const bsmi_device_matrix &m = p.source;
    const bsmi_device_reals &d = p.destination;
    const int groups = BSMI_DEQUANTIZE_THREADS / w.threads, lane = w.thread % 32, warp = w.thread / 32;
    const int64_t apart = (int64_t)gridDim.x * groups,
                  row = (int64_t)blockIdx.x * groups + (int)threadIdx.x / w.threads;
    slow_job job = { m.tensor_scale == nullptr && d.type != BSM_REAL_FP64 && m.bits <= 8,
                     m.tensor_scale == nullptr ? 1 : (double)*m.tensor_scale, {} };
    if (m.block != 0) job.places = make_places(m.layout);
    row_walk walk = walk_to(m.rows, row);
    for (int n = 0; walk.row < m.rows * m.batch; walk = walk_to(m.rows, walk.row + apart)) {
        w.codes = m.data + walk.matrix * m.batch_bytes + walk.r * m.row_bytes;
        w.first = walk.matrix * d.batch_stride + walk.r * d.row_stride;
        if (m.block != 0) w.scales = m.scales + walk.matrix * m.scale_batch_bytes + place_in(job.places.row, walk.r);
        for (int base = 0; base < end; base += w.threads * STEPS_AT_ONCE, n++) {
            const int first = base + warp * STRETCH;
            if ((again >> (n & 63) & 1) != 0) dequantize_slowly(p, job, w, first + lane, min(end, first + STRETCH), 32);
        }
        dequantize_slowly(p, job, w, end + w.thread, w.octets, w.threads);
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_DEQUANTIZE_THREADS, 4)
    bsmi_dequantize(const __grid_constant__ bsmi_dequantize_parameters p)
{
    __shared__ octet_rows s;
    __shared__ bf16_table table;
    __shared__ __align__(2 * STAGE_BYTES) uint2 ring[2 * STAGE_BYTES / 8];
    __shared__ uint64_t warps_again[BSMI_DEQUANTIZE_THREADS / 32];
    static_assert(BSMI_DEQUANTIZE_THREADS == READER_THREADS, "the ring has a place for each thread");
    const bsmi_device_matrix &m = p.source;
    row_work w = {};
    w.octets = (int)((m.columns + 7) / 8), w.last_count = (int)(m.columns - (int64_t)(w.octets - 1) * 8);
    w.threads = threads_of_row(w.octets);
    w.thread = (int)threadIdx.x % w.threads;
    const int groups = BSMI_DEQUANTIZE_THREADS / w.threads, group = (int)threadIdx.x / w.threads;
    const int64_t all = m.columns == 0 ? 0 : m.rows * m.batch, apart = (int64_t)gridDim.x * groups;
    ptx_griddepcontrol_wait();
    if (all == 0) return;
    const float t = m.tensor_scale == nullptr ? 1 : *m.tensor_scale;
    if (threadIdx.x % 32 == 0) warps_again[threadIdx.x / 32] = 0;
    if (threadIdx.x == 0) {
        s = make_octet_rows(m, apart);
        s.path = bf16_path_of(m, p.destination, s.path, t);
        if (s.path == 0) s.end = 0;
    }
    if (m.scale == BSM_UE4M3 && threadIdx.x < 128)
        table.of_code[threadIdx.x] = magnitudes_of(threadIdx.x, (double)t, m.tensor_scale_divides != 0);
    __syncthreads();
    const int64_t row = (int64_t)blockIdx.x * groups + group;
    const fast_walk walk = s.path == 0 ? fast_walk{} : begin_fast_walk((int)m.rows, (int)all, (int)row, (int)apart);
    switch (s.path) {
#define WAY(packing, element, scale) \
    case fast_path(packing, element, scale): \
        dequantize_octets<packing, element, scale>(p, s, table, ring, \
                                                   begin_octets(m, ring, walk, w.thread, w.threads), warps_again); \
        break;
        FAST_PATHS(WAY)
#undef WAY
    default: break;
    }
    __syncwarp();
    const uint64_t again = warps_again[threadIdx.x / 32];
    if (again != 0 || s.end < w.octets) dequantize_rest(p, w, s.end, again);
}

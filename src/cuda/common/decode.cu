/* Any operand as rows of bf16, exactly: number * 2^-(exponent of the row).
 *
 * A row's exponent is 0 if its numbers lie within [2^-40, 2^41), or may: the range is told from the scales of blocks that are
 * not all zeros and from the range of the element.  Else it is the middle of the row's range, if that spans at most 2^80.
 * Two such rows have products within [2^-80, 2^82) whose last bits are 2^-94 or above: no product is flushed or rounded by
 * an fp32 sum's range, and 2^45 of them do not overflow it.  Rows that span more are left out, for the exact kernel.
 *
 * CTA: 256 threads, in groups of 32 .. 256 threads that take a row each, eight elements ("octet") a thread and step.  Rows
 * with e8m0 scales are written as if their exponent were 0, and once more in the rare case that it is not: one barrier a row. */
#include "cuda/ptx/arithmetic.cuh"
#include "octets.cuh"
#include "scale_places.cuh"
#include "small_floats.cuh"

enum { LEAST_EXPONENT = -40, MOST_EXPONENT = 40, STEPS_AT_ONCE = 4 };

/* Exponents of the smallest nonzero and of the largest magnitude of an element. */
__device__ static inline void element_range(int element, int *least, int *most)
{
    const bsm_element_info &info = elements[element];
    *least = 1 - info.bias - info.mantissa_bits;
    *most = (__double2hiint(info.max_value) >> 20) - 1023;
    if (element == BSM_INT8) *least = -6, *most = 1;       /* -2 is a code */
}

__device__ static inline bool has_nonzero(int element, octet o)
{
    const uint32_t magnitude = element == BSM_INT8 ? 0xffffffff : ((1u << (elements[element].bits - 1)) - 1) * 0x01010101;
    return ((o.low | o.high) & magnitude) != 0;
}

/* Wide elements ----------------------------------------------------------------------------------------------------------- */

__device__ static inline uint32_t load_half(const uint16_t *from, int i, int count) { return i < count ? __ldg(from + i) : 0; }

__device__ static inline uint4 load_halves(const unsigned char *row, int64_t number, int count)
{
    const uint16_t *from = (const uint16_t *)row + number * 8;
    if (count == 8 && aligned_to(from, 16)) return ptx_load_16(from);
    if (count == 8 && aligned_to(from, 4)) {
        const uint32_t *words = (const uint32_t *)from;
        return make_uint4(__ldg(words), __ldg(words + 1), __ldg(words + 2), __ldg(words + 3));
    }
    uint32_t w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = load_half(from, 2 * i, count) | load_half(from, 2 * i + 1, count) << 16;
    return make_uint4(w[0], w[1], w[2], w[3]);
}

/* An fp16 as two bf16 of the same sign whose sum it is: its first eight significant bits and the rest, or where there is no
 * rest two equal halves.  Neither part of a number that is not zero is zero, so that infinity times it stays infinite. */
__device__ static inline uint32_t split_fp16(uint32_t code)
{
    const uint32_t bits = __float_as_uint(bsmi_fp16_to_float((uint16_t)code));
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc07fc0;
    if ((bits & 0xffff) == 0) return (__float_as_uint(__uint_as_float(bits) * 0.5f) >> 16) * 0x00010001;
    const float first = __uint_as_float(bits & 0xffff0000);
    return bits >> 16 | (__float_as_uint(__uint_as_float(bits) - first) & 0xffff0000);
}

__device__ static inline void split_octet(uint4 halves, uint4 *first, uint4 *second)
{
    const uint32_t words[4] = { halves.x, halves.y, halves.z, halves.w };
    uint32_t a[4], b[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t even = split_fp16(words[i] & 0xffff), odd = split_fp16(words[i] >> 16);
        a[i] = __byte_perm(even, odd, 0x5410), b[i] = __byte_perm(even, odd, 0x7632);
    }
    *first = make_uint4(a[0], a[1], a[2], a[3]), *second = make_uint4(b[0], b[1], b[2], b[3]);
}

/* Rows ----------------------------------------------------------------------------------------------------------------------- */

struct row_job {
    const unsigned char *codes;
    const unsigned char *scales;          /* of the row's first scale column */
    uint16_t *to;
    int octets, padded_octets;            /* fewer than 2^31: rows of fewer than 2^34 elements */
    int last_count;                       /* codes in the last octet */
    int thread, threads;                  /* of the group */
    int octets_per_block_shift;
};

__device__ static inline int count_in(const row_job &j, int number)
{
    return number < j.octets - 1 ? 8 : number == j.octets - 1 ? j.last_count : 0;
}

/* How full octets are loaded: nibbles as words, bytes as pairs of words, or anything by its bytes. */
enum load_kind { LOAD_NIBBLES, LOAD_BYTES, LOAD_ANY };

template <load_kind kind>
__device__ static inline octet load(const bsmi_device_matrix &m, const row_job &j, int number)
{
    if (kind == LOAD_NIBBLES) return { __ldg((const uint32_t *)j.codes + number), 0 };
    if (kind == LOAD_BYTES) {
        const uint2 two = __ldg((const uint2 *)j.codes + number);
        return { two.x, two.y };
    }
    return load_octet(m, j.codes, number, count_in(j, number));
}

template <load_kind kind>
__device__ static inline uint4 decode(const bsmi_device_matrix &m, const small_float &f, octet o)
{
    return kind == LOAD_NIBBLES ? decode_nibbles(m.packing == BSM_PACKING_HIGH_FIRST ? swap_nibbles(o.low) : o.low)
                                : decode_codes(m.element, f, o);
}

template <load_kind kind>
__device__ static inline bool is_nonzero(const bsmi_device_matrix &m, octet o)
{
    return kind == LOAD_NIBBLES ? (o.low & 0x77777777) != 0 : has_nonzero(m.element, o);
}

/* A NaN scale must not reach the padding. */
__device__ static inline uint4 keep_first(uint4 v, int count)
{
    const uint64_t low = count >= 4 ? ~(uint64_t)0 : ((uint64_t)1 << 16 * count) - 1;
    const uint64_t high = count <= 4 ? 0 : count == 8 ? ~(uint64_t)0 : ((uint64_t)1 << 16 * (count - 4)) - 1;
    return make_uint4(v.x & (uint32_t)low, v.y & (uint32_t)(low >> 32), v.z & (uint32_t)high, v.w & (uint32_t)(high >> 32));
}

/* What a row is decoded with.  Scale codes outside [least, least + span] are told of. */
struct decoding { small_float f; int exponent; uint32_t least, span; };

/* Octets [first, end) of the row.  True if one that is not all zeros has a scale that is told of. */
template <load_kind kind, bool scaled, int steps>
__device__ static inline bool write_octets(const bsmi_device_matrix &m, const scale_part &columns, const decoding &d,
                                           const row_job &j, int first, int end)
{
    bool outside = false;
    for (int base = first + j.thread; base < end; base += j.threads * steps) {
        octet o[steps];
        uint32_t scale[steps];
#pragma unroll
        for (int i = 0; i < steps; i++) {
            const int number = base + i * j.threads;
            o[i] = { 0, 0 }, scale[i] = 127;
            if (number >= end || (kind == LOAD_ANY && number >= j.octets)) continue;
            o[i] = load<kind>(m, j, number);
            if (scaled) scale[i] = __ldg(j.scales + place_in(columns, number >> j.octets_per_block_shift));
        }
#pragma unroll
        for (int i = 0; i < steps; i++) {
            const int number = base + i * j.threads;
            if (number >= end) break;
            uint4 v = decode<kind>(m, d.f, o[i]);
            if (scaled) {
                v = multiply(v, scale_pair(m.scale, scale[i], d.exponent));
                outside |= scale[i] - d.least > d.span && scale[i] != 255 && is_nonzero<kind>(m, o[i]);
            }
            if (kind == LOAD_ANY) v = keep_first(v, count_in(j, number));
            *(uint4 *)(j.to + (int64_t)number * 8) = v;
        }
    }
    return outside;
}

/* Full octets the quick way, the rest and the padding by bytes. */
template <bool scaled>
__device__ static bool write_small(const bsmi_device_matrix &m, const scale_part &columns, const decoding &d, const row_job &j)
{
    const int full = (int)(m.columns / 8);
    const bool nibbles = m.packing == BSM_PACKING_LOW_FIRST || m.packing == BSM_PACKING_HIGH_FIRST;
    bool outside = false;
    int done = 0;
    if (scaled && nibbles && aligned_to(j.codes, 4)) {
        outside = write_octets<LOAD_NIBBLES, scaled, STEPS_AT_ONCE>(m, columns, d, j, 0, full);
        done = full;
    } else if (m.bits == 8 && aligned_to(j.codes, 8)) {
        outside = write_octets<LOAD_BYTES, scaled, STEPS_AT_ONCE>(m, columns, d, j, 0, full);
        done = full;
    }
    return outside | write_octets<LOAD_ANY, scaled, 1>(m, columns, d, j, done, j.padded_octets);
}

__device__ static void write_zeros(const row_job &j)
{
    for (int number = j.thread; number < j.padded_octets; number += j.threads)
        *(uint4 *)(j.to + (int64_t)number * 8) = make_uint4(0, 0, 0, 0);
}

/* The codes of the smallest and the largest scale of blocks that are not all zeros; least > most if there are none. */
__device__ static void scale_range(const bsmi_device_matrix &m, const scale_part &columns, const row_job &j, int *range)
{
    int least = 255, most = -1;
    for (int number = j.thread; number < j.octets; number += j.threads) {
        const int code = __ldg(j.scales + place_in(columns, number >> j.octets_per_block_shift));
        if (code == 255 || !has_nonzero(m.element, load_octet(m, j.codes, number, count_in(j, number)))) continue;
        least = min(least, code), most = max(most, code);
    }
    atomicMin(&range[0], least);
    atomicMax(&range[1], most);
}

__device__ static void leave_out(const bsmi_decode_parameters &p, int64_t row)
{
    p.exponents[row] = BSMI_ROW_LEFT_OUT;
    p.left_out_rows[atomicAdd(p.left_out_count, 1u)] = row;
}

/* A row that does not fit 2^0. */
__device__ static void write_again(const bsmi_decode_parameters &p, const scale_part &columns, decoding d, const row_job &j,
                                   int64_t row, int barrier, int *range)
{
    const bsmi_device_matrix &m = p.source;
    int least, most;
    if (j.thread == 0) range[0] = 255, range[1] = -1;
    ptx_barrier(barrier, j.threads);
    scale_range(m, columns, j, range);
    ptx_barrier(barrier, j.threads);
    element_range(m.element, &least, &most);
    least += range[0] - 127, most += range[1] - 127;
    const bool left_out = most - least > MOST_EXPONENT - LEAST_EXPONENT || p.only_exponent_zero;
    const int exponent = (least + most) >> 1;
    if (left_out) write_zeros(j);
    else {
        d.exponent = exponent;
        write_small<true>(m, columns, d, j);
    }
    if (j.thread == 0) {
        if (left_out) leave_out(p, row);
        else p.exponents[row] = exponent;
    }
    ptx_barrier(barrier, j.threads);                 /* range is free again */
}

__device__ static void write_wide(const bsmi_decode_parameters &p, const row_job &j)
{
    for (int number = j.thread; number < j.padded_octets; number += j.threads) {
        const int count = count_in(j, number);
        uint4 v = make_uint4(0, 0, 0, 0), second;
        if (count > 0) v = load_halves(j.codes, number, count);
        uint4 *to = (uint4 *)(j.to + (int64_t)number * 8);
        if (p.source.element == BSM_FP16) {
            split_octet(v, &v, &second);
            *(uint4 *)(j.to + p.padded_columns + (int64_t)number * 8) = second;
        }
        *to = v;
    }
}

/* Threads a row: about STEPS_AT_ONCE octets each. */
__device__ static inline int threads_of_row(int64_t octets)
{
    int threads = 32;
    while (threads < BSMI_DECODE_THREADS && (int64_t)threads * STEPS_AT_ONCE < octets) threads *= 2;
    return threads;
}

extern "C" __global__ void __launch_bounds__(BSMI_DECODE_THREADS, 4) bsmi_decode(const __grid_constant__ bsmi_decode_parameters p)
{
    __shared__ int ranges[BSMI_DECODE_THREADS / 32][2];
    ptx_griddepcontrol_wait();
    const bsmi_device_matrix &m = p.source;
    row_job j;
    j.octets = (int)((m.columns + 7) / 8), j.padded_octets = (int)(p.padded_columns / 8);
    j.last_count = (int)(m.columns - (int64_t)(j.octets - 1) * 8);
    j.threads = threads_of_row(j.padded_octets);
    const int groups = BSMI_DECODE_THREADS / j.threads, group = (int)threadIdx.x / j.threads;
    j.thread = (int)threadIdx.x % j.threads;
    j.octets_per_block_shift = m.block == 16 ? 1 : 2;

    const bool wide = m.bits > 8, scaled = m.block != 0;
    const scale_places places = make_places(m.layout);
    decoding d = {};
    if (!wide) d.f = small_float_of(m.element);
    int least, most;
    element_range(m.element, &least, &most);
    /* Scale codes with which no element leaves the range. */
    d.least = 127 + LEAST_EXPONENT - least;
    d.span = m.scale == BSM_E8M0 ? 127 + MOST_EXPONENT - most - d.least : 0xffffffff;

    for (int64_t row = (int64_t)blockIdx.x * groups + group; row < m.rows * m.batch; row += (int64_t)gridDim.x * groups) {
        const int64_t matrix = row / m.rows, r = row - matrix * m.rows;
        j.codes = m.data + matrix * m.batch_bytes + r * m.row_bytes;
        j.to = p.decoded + matrix * p.batch_pitch + r * p.pitch;
        if (scaled) j.scales = m.scales + matrix * m.scale_batch_bytes + place_in(places.row, r);
        if (wide) write_wide(p, j);
        else if (!scaled) write_small<false>(m, places.column, d, j);
        else {
            const bool outside = write_small<true>(m, places.column, d, j);
            if (m.scale == BSM_E8M0 && ptx_barrier_or(group, j.threads, outside)) {
                write_again(p, places.column, d, j, row, group, ranges[group]);
                continue;
            }
        }
        if (p.exponents != nullptr && j.thread == 0) p.exponents[row] = 0;
    }
}

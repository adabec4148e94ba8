/* Rows of an operand as bf16, octet by octet: what the kernels that decode operands have in common.  decode.cu says
 * what a row's exponent is. */
#ifndef BSMI_DECODED_ROWS_CUH
#define BSMI_DECODED_ROWS_CUH

#include "cuda/ptx/arithmetic.cuh"
#include "fast_path_octets.cuh"
#include "row_exponents.cuh"

__device__ static inline bool has_nonzero(int element, octet o)
{
    return ((o.low | o.high) & magnitude_mask(element)) != 0;
}

struct row_job {
    const unsigned char *codes;
    const unsigned char *scales;          /* of the row's first scale column */
    uint16_t *to;
    int octets, padded_octets;            /* fewer than 2^31: rows of fewer than 2^34 elements */
    int last_count;                       /* codes in the last octet */
    int thread, threads;                  /* of the group */
};

__device__ static inline int count_in(const row_job &j, int number)
{
    return number < j.octets - 1 ? 8 : number == j.octets - 1 ? j.last_count : 0;
}

/* A NaN scale must not reach the padding. */
__device__ static inline uint4 keep_first(uint4 v, int count)
{
    const uint64_t low = count >= 4 ? ~(uint64_t)0 : ((uint64_t)1 << 16 * count) - 1;
    const uint64_t high = count <= 4 ? 0 : count == 8 ? ~(uint64_t)0 : ((uint64_t)1 << 16 * (count - 4)) - 1;
    return make_uint4(v.x & (uint32_t)low, v.y & (uint32_t)(low >> 32), v.z & (uint32_t)high,
                      v.w & (uint32_t)(high >> 32));
}

/* What a row is decoded with.  Scale codes outside [least, least + span] are flagged. */
struct decoding { small_float f; int exponent; uint32_t least, span; };

/* Octets from `first` on, and the padding, by bytes: any packing, any place.  True if one that is not all zeros has a
 * scale that is flagged. */
template <bool scaled>
__device__ __noinline__ static bool write_rest(const bsmi_device_matrix &m, const scale_part &columns,
                                               const decoding &d, const row_job j, int first)
{
    const int shift = m.block == 16 ? 1 : 2;
    bool outside = false;
    for (int number = first + j.thread; number < j.padded_octets; number += j.threads) {
        const int count = count_in(j, number);
        uint4 v = make_uint4(0, 0, 0, 0);
        if (count > 0) {
            const octet o = load_octet(m, j.codes, number, count);
            v = decode_codes(m.element, d.f, o);
            if (scaled) {
                const uint32_t scale = __ldg(j.scales + place_in(columns, number >> shift));
                v = multiply(v, scale_pair(m.scale, scale, d.exponent));
                outside |= scale - d.least > d.span && scale != 255 && has_nonzero(m.element, o);
            }
            v = keep_first(v, count);
        }
        ptx_store_16(j.to + (int64_t)number * 8, v);
    }
    return outside;
}

__device__ static void write_zeros(const row_job &j)
{
    for (int number = j.thread; number < j.padded_octets; number += j.threads)
        ptx_store_16(j.to + (int64_t)number * 8, make_uint4(0, 0, 0, 0));
}

/* The codes of the smallest and the largest scale of blocks that are not all zeros; least > most if there are none. */
__device__ static void find_scale_range(const bsmi_device_matrix &m, const scale_part &columns, const row_job &j,
                                        int *range)
{
    const int shift = m.block == 16 ? 1 : 2;
    int least = 255, most = -1;
    for (int number = j.thread; number < j.octets; number += j.threads) {
        const int code = __ldg(j.scales + place_in(columns, number >> shift));
        if (code == 255 || !has_nonzero(m.element, load_octet(m, j.codes, number, count_in(j, number)))) continue;
        least = min(least, code), most = max(most, code);
    }
    atomicMin(&range[0], least);
    atomicMax(&range[1], most);
}

/* A row that does not fit 2^0.  True if it is a fallback row. */
__device__ __noinline__ static bool write_again(const bsmi_decode_operand &p, const scale_part &columns, decoding d,
                                                const row_job j, int64_t row, int barrier, int *range)
{
    const bsmi_device_matrix &m = p.source;
    if (j.thread == 0) range[0] = 255, range[1] = -1;
    ptx_barrier(barrier, j.threads);
    find_scale_range(m, columns, j, range);
    ptx_barrier(barrier, j.threads);
    const int exponent = exponent_of_range(m.element, range[0], range[1], p.only_exponent_zero);
    const bool fallback = exponent == BSMI_ROW_FALLBACK;
    if (fallback) write_zeros(j);
    else {
        d.exponent = exponent;
        write_rest<true>(m, columns, d, j, 0);
    }
    if (j.thread == 0) p.exponents[row] = exponent;
    ptx_barrier(barrier, j.threads);                 /* range is free again */
    return fallback;
}

__device__ static inline void point_to_row(const bsmi_decode_operand &p, int64_t matrix, int64_t r,
                                           int64_t place_of_scales, row_job *j)
{
    const bsmi_device_matrix &m = p.source;
    j->codes = m.data + matrix * m.batch_bytes + r * m.row_bytes;
    j->to = p.decoded + matrix * p.batch_pitch + r * p.pitch;
    if (m.block != 0) j->scales = m.scales + matrix * m.scale_batch_bytes + place_of_scales;
}

/* *outside: it is not all zeros and has a scale that is flagged. */
template <fast_packing packing, int element, int scale_kind>
__device__ static inline uint4 scaled_octet(const loaded_octet &l, int number, bool high_first, uint32_t least,
                                            uint32_t span, bool *outside)
{
    bool special;
    uint4 v = decode_fast<packing, element>(l.codes, number, high_first, &special);
    if (special) v = mend_special<element>(l.codes, v);
    if (scale_kind == BSM_UNSCALED) return v;
    uint32_t pair = l.scale * 0x00800080; /* 2^(code - 127) twice, if it is a normal number */
    if (scale_kind == BSM_UE4M3) pair = scale_pair(BSM_UE4M3, l.scale, 0);
    if (scale_kind == BSM_E8M0 && l.scale - least > span) {
        pair = scale_pair(BSM_E8M0, l.scale, 0);
        *outside |= l.scale != 255 && has_nonzero_fast<packing, element>(l.codes, number);
    }
    return multiply(v, pair);
}

#endif

/* Quantizing whole blocks of bf16 that lie well, at the speed of memory: every number costs two or three of the
 * operations of which an SM of compute capability 9.0 does 64 a cycle.  No function is called in here.  Blocks that
 * need more thought (NaN, infinity, scales at the ends of e8m0) are flagged, and done again by block.cuh.
 *
 * A warp takes stretches of 256 neighbouring octets, half of it at a time.  They come to shared memory in the order of
 * memory, and go from there to the threads by whole or half blocks: what a block needs once, a thread or two compute,
 * and 16 bytes of codes are stored at a time.
 *
 * Power-of-two scales: e2m1 codes are sums: with a = |x| / scale, code = min(2 a, a + 2, a / 2 + 4, 7), rounded to
 * even.  Each term is one fma of the bf16 itself whose result, 128 + 4 + code, has 1 as its last place: scaled, added
 * and rounded once.
 *
 * ue4m3 scales: e2m1's code leads the bits of a half of q 2^-14, subnormals included; what is behind it rounds.  q = x
 * * r in fp32, where r is 1 / divisor, off by less than 2^-24 of itself, and so q by less than 2^-23.  The divisor is
 * scale times t, or scale over t. Where t is a power of two, x and a middle of two codes times the divisor have 8 and 7
 * bits, so they are equal or differ by 2^-8: q rounded to a half (11 bits, or of 2^-10 as a subnormal) is the middle,
 * or on the right side of it. For any other t, numbers x of 8 bits may come as close to a middle times the divisor as
 * 24 bits let them; a tensor scale that was computed from an amax of 8 bits does that to many.  If they are within
 * 2^-18 of it, x over the middle is the same number for all of them: two such fractions have numerators and
 * denominators of 8 and 3 bits, and if they differed, would do so by 2^-14.  So all x of 8 bits that are close to a
 * middle times this divisor lie on the same side, by the same part of themselves: r is moved 2^-22 to 2^-21 to that
 * side, which leaves q there, and leaves it where it was for all that are further away.  q cut to a half then lies
 * below a middle only if x does.  Exact middles need t of at most 8 bits: then and only then all this does not serve
 * (`nudges`). The same holds for amax / (6 t) or amax t / 6 and e4m3, whose middles have 5 bits. */
#ifndef BSMI_FAST_PATH_BF16_CUH
#define BSMI_FAST_PATH_BF16_CUH

#include "block.cuh"
#include "cuda/ptx/async_copy.cuh"
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/threads.cuh"
#include "cuda/dequantize/row_walk.cuh"

enum bf16_path { BF16_NONE, BF16_E4M3, BF16_E5M2, BF16_E2M1, BF16_E2M1_BLOCK16, BF16_NVFP4_POWER, BF16_NVFP4 };
enum { BF16_STEPS = 8, BF16_HALF = 128, BF16_STRETCH = 2 * BF16_HALF };     /* octets of a thread in a stretch; of a
                                                                               warp */

/* Factors of ue4m3 scales ------------------------------------------------------------------------------------------ */

/* The number of 8 bits that is next to number * t (or number / t): 1 if it lies above and close, -1 below and close, 0
 * not close. */
enum { CLOSE_EQUAL = 2 };
__device__ static inline int side_of_short(double number, double t, bool divides)
{
    const double there = divides ? number / t : number * t;
    const uint64_t bits = (uint64_t)__double_as_longlong(there), half = (uint64_t)1 << 44;
    const double near = __longlong_as_double((long long)((bits + half) & ~(2 * half - 1)));
    const double gap = divides ? near * t - number : near - number * t;      /* both products are exact, and close */
    if (fabs(near - there) > there * 0x1p-18) return 0;
    return gap > 0 ? 1 : gap < 0 ? -1 : CLOSE_EQUAL;
}

/* Which way factors are moved.  up, down: bits 4 i .. 4 i + 3 for the significand 8 + i of a scale.  serves: no exact
 * middles. */
struct factor_nudges { uint32_t up, down; int of_amax; bool serves; };

/* Called by a whole warp.  Odd middles of e2m1 times significands of ue4m3, and odd middles of e4m3 times 6. */
__device__ static inline factor_nudges find_nudges(double t, bool divides, int lane)
{
    const int element = side_of_short((double)((lane & 3) * 2 + 1) * (double)(8 + (lane >> 2)), t, divides);
    const int scale = side_of_short((double)((lane & 15) * 2 + 1) * 6, t, divides);
    const bool up = __any_sync(0xffffffff, scale == 1), down = __any_sync(0xffffffff, scale == -1);
    return { __ballot_sync(0xffffffff, element == 1), __ballot_sync(0xffffffff, element == -1), (int)up - (int)down,
             !__any_sync(0xffffffff, element == CLOSE_EQUAL || scale == CLOSE_EQUAL) };
}

__device__ static inline float nudged(double factor, int nudge)
{
    return __uint_as_float(__float_as_uint((float)factor) + (uint32_t)(4 * nudge));
}

/* What numbers with this scale are multiplied by, and 2^-14; 0 for the scale 0. */
__device__ static inline float factor_of_code(uint32_t code, double t, bool divides, const factor_nudges &n)
{
    const double scale = (double)bsmi_ue4m3_to_float((uint8_t)code);
    const int at = (int)(__double2hiint(scale) >> 17 & 7) * 4;        /* 8 + the three bits behind its leading one */
    if (code == 0) return 0;
    return 0x1p-14f
           * nudged(divides ? t / scale : 1 / (scale * t),
                    (int)((n.up >> at & 15) != 0) - (int)((n.down >> at & 15) != 0));
}

/* Octets ----------------------------------------------------------------------------------------------------------- */

/* Everything about a matrix that octets share, twice in the halves of words where numbers are pairs. */
struct bf16_constants {
    uint32_t round_up, least, span,
        exponent_of_one; /* amax from `least` to least + span; exponent field of 1 / scale plus amax's */
    int emax;
    float amax_factor;
    uint32_t even, odd; /* nibbles of even and odd elements are multiplied with 1 and 16, or 16 and 1 */
    uint32_t low_nibbles, high_nibbles; /* which bytes of two words they are: selectors of __byte_perm */
};

/* In both halves: the largest magnitude of a block's pairs.  NaN is larger than infinity. */
template <int words> __device__ static inline uint32_t bf16_amax(const uint32_t *x)
{
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < words; i += 2) most = __vimax3_u16x2(most, x[i] & 0x7fff7fff, x[i + 1] & 0x7fff7fff);
    return most;
}

/* The same, without a use of the magnitudes in sight: signs are dropped by the instruction itself.  NaN is the
 * canonical one. */
template <int words> __device__ static inline uint32_t bf16_amax_of_signed(const uint32_t *x)
{
    uint32_t most = ptx_max_nan_abs_bf16x2(x[0], x[1]);
#pragma unroll
    for (int i = 2; i < words; i += 2) most = ptx_max_nan_abs_bf16x2(most, ptx_max_nan_abs_bf16x2(x[i], x[i + 1]));
    return most;
}

__device__ static inline uint32_t both_halves(uint32_t amax) { return __vmaxu2(amax, __byte_perm(amax, 0, 0x1032)); }

/* Pairs 4 + code + a number with a last place of 1 become nibbles, with the signs of x. */
__device__ static inline uint32_t nibbles_of_sums(const bf16_constants &c, const uint32_t *nibbles)
{
    const uint32_t x = __byte_perm(nibbles[0], nibbles[1], 0x6240), y = __byte_perm(nibbles[2], nibbles[3], 0x6240);
    return __byte_perm(x, y, 0x5410) * c.even + __byte_perm(x, y, 0x7632) * c.odd;
}

__device__ static inline uint32_t power_nibbles(const bf16_constants &c, const uint32_t *x, uint32_t inverse)
{
    const uint32_t twice = inverse + 0x00800080, half = inverse - 0x00800080;
    uint32_t nibbles[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t magnitude = x[i] & 0x7fff7fff;
        const uint32_t sum =
            __vimin3_u16x2(ptx_fma_bf16x2(magnitude, twice, 0x43044304), ptx_fma_bf16x2(magnitude, inverse, 0x43064306),
                           ptx_fma_bf16x2(magnitude, half, 0x43084308));
        /* less 4, or 4 more: bit 3 */
        nibbles[i] = ptx_sub_bf16x2(__vminu2(sum, 0x430b430b), (x[i] & 0x80008000) | 0x40804080);
    }
    return nibbles_of_sums(c, nibbles);
}

/* Pairs of halves, codes in bits 9 - 11, signs in bit 15, become nibbles. */
__device__ static inline uint32_t nibbles_of_halves(const bf16_constants &c, const uint32_t *halves)
{
    const uint32_t x = __byte_perm(halves[0], halves[1], 0x7351), y = __byte_perm(halves[2], halves[3], 0x7351);
    const uint32_t low = __byte_perm(x, y, c.low_nibbles), high = __byte_perm(x, y, c.high_nibbles);
    const uint32_t of_low = (low >> 1 & 0x07070707) | (low >> 4 & 0xf8f8f8f8),
                   of_high = (high << 3 & 0x70707070) | (high & 0x8f8f8f8f);
    return (of_low & 0x0f0f0f0f) | (of_high & 0xf0f0f0f0);
}

/* factor: with 2^-14 in it. */
template <bool power_of_two>
__device__ static inline uint32_t quotient_nibbles(const bf16_constants &c, const uint32_t *x, float factor)
{
    uint32_t signed_codes[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float low = fabsf(__uint_as_float(x[i] << 16)) * factor,
                    high = fabsf(__uint_as_float(x[i] & 0xffff0000)) * factor;
        uint32_t halves = power_of_two ? ptx_cvt_f16x2(high, low) : ptx_cvt_rz_f16x2(high, low);
        halves += power_of_two ? 0x00ff00ff + (halves >> 9 & 0x00010001) : 0x01000100;
        signed_codes[i] = __vminu2(halves, 0x0fff0fff) | (x[i] & 0x80008000);
    }
    return nibbles_of_halves(c, signed_codes);
}

/* A power of two: its code, and what numbers are multiplied with, in both halves. */
struct power_scale { uint32_t code, inverse; };

__device__ static inline power_scale power_scale_of(const bf16_constants &c, uint32_t amax, bool *again)
{
    /* of scale * 2^emax; zeros: any */
    const uint32_t exponent = ((amax == 0 ? 0x3f803f80 : amax) + c.round_up) & 0xff80ff80;
    *again |= (amax >> 16) - c.least > c.span && amax != 0;
    return { amax == 0 ? 0 : (exponent >> 23) - (uint32_t)c.emax, c.exponent_of_one - exponent };
}

/* What a thread makes of its octets of half a stretch.  Codes of 8 bits: halves of two blocks, 16 bytes each; e2m1: one
 * block of 32 or two of 16, 16 bytes in all. */
struct bf16_quantized {
    uint4 codes[2];
    uint32_t scale_codes[2];
};

__device__ static inline uint4 codes_of_half(bool e4m3, const uint32_t *x, float factor)
{
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        eight scaled;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            scaled.x[2 * j] = __uint_as_float(x[4 * i + j] << 16) * factor;
            scaled.x[2 * j + 1] = __uint_as_float(x[4 * i + j] & 0xffff0000) * factor;
        }
        const octet codes = codes_of(e4m3 ? BSM_E4M3 : BSM_E5M2, scaled);
        words[2 * i] = codes.low, words[2 * i + 1] = codes.high;
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* Called by whole warps.  *again: a block needs more thought.  factors: of ue4m3 codes. */
template <bf16_path path>
__device__ static inline bf16_quantized quantize_bf16(const bf16_constants &c, const float *factors, const uint32_t *x,
                                                      bool *again)
{
    bf16_quantized result = {};
    uint32_t words[4];
    if (path == BF16_E4M3 || path == BF16_E5M2) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t half = bf16_amax<8>(x + 8 * i);
            const power_scale scale =
                power_scale_of(c, both_halves(__vmaxu2(half, __shfl_xor_sync(0xffffffff, half, 1))), again);
            result.codes[i] = codes_of_half(path == BF16_E4M3, x + 8 * i, __uint_as_float(scale.inverse & 0xffff0000));
            result.scale_codes[i] = scale.code;
        }
        return result;
    }
    if (path == BF16_E2M1) {
        const power_scale scale = power_scale_of(c, both_halves(bf16_amax<16>(x)), again);
#pragma unroll
        for (int i = 0; i < 4; i++) words[i] = power_nibbles(c, x + 4 * i, scale.inverse);
        result.scale_codes[0] = scale.code;
    } else if (path == BF16_E2M1_BLOCK16) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const power_scale scale = power_scale_of(c, both_halves(bf16_amax<8>(x + 8 * i)), again);
            words[2 * i] = power_nibbles(c, x + 8 * i, scale.inverse);
            words[2 * i + 1] = power_nibbles(c, x + 8 * i + 4, scale.inverse);
            result.scale_codes[i] = scale.code;
        }
    } else {
        const uint32_t first = both_halves(bf16_amax_of_signed<8>(x)),
                       second = both_halves(bf16_amax_of_signed<8>(x + 8));
        const uint32_t pair = ptx_cvt_e4m3x2(__uint_as_float(second & 0xffff0000) * c.amax_factor,
                                             __uint_as_float(first & 0xffff0000) * c.amax_factor);
        *again |= __vmaxu2(first, second) >= 0x7f800000;
        result.scale_codes[0] = pair & 0xff, result.scale_codes[1] = pair >> 8;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float factor = factors[result.scale_codes[i] & 0x7f];
            words[2 * i] = quotient_nibbles<path == BF16_NVFP4_POWER>(c, x + 8 * i, factor);
            words[2 * i + 1] = quotient_nibbles<path == BF16_NVFP4_POWER>(c, x + 8 * i + 4, factor);
        }
    }
    result.codes[0] = make_uint4(words[0], words[1], words[2], words[3]);
    return result;
}

/* Matrices --------------------------------------------------------------------------------------------------------- */

/* A part of the place of a scale, in 32 bits. */
struct fast_part { uint32_t stride, shift, stride1, shift1, mask1, stride2, shift2, mask2; };

__device__ static inline fast_part make_fast_part(const scale_part &p)
{
    return { (uint32_t)p.stride, p.shift, (uint32_t)p.stride1, p.shift1, p.mask1, p.stride2, p.shift2, p.mask2 };
}

__device__ static inline uint32_t place_of(const fast_part &p, uint32_t x)
{
    return (x >> p.shift) * p.stride + (x >> p.shift1 & p.mask1) * p.stride1 + (x >> p.shift2 & p.mask2) * p.stride2;
}

/* What is known of a matrix before its tensor scale: every thread's own. */
struct bf16_rows {
    int end;                              /* octets of a row's whole blocks */
    int mine, apart;                      /* the warp's first octet of a row; to its next stretch */
    fast_step step;
    int first_row, first_matrix, sign;    /* rows are taken from there, forward (1) or backward (-1) */
};

/* The rest, in shared memory. */
struct bf16_job {
    bf16_path path;
    fast_part row, column;
    uint32_t second_scale, half_scale;    /* from a thread's first scale to its second, and from one half to the other:
                                             bytes */
    bool wide_codes, wide_scales;         /* 16 bytes of codes, two scales may be stored at once */
    scale_places places;
    bf16_constants constants;
    float factors[128];
};

/* Whether rows can be loaded by 16 bytes, and lie within 2^31 bytes of each other. */
__device__ static inline bool source_serves(const bsmi_quantize_parameters &p)
{
    const bsmi_device_reals &s = p.source;
    const int64_t most = (int64_t)1 << 30;
    return s.type == BSM_REAL_BF16 && s.column_stride == 1 && aligned_to(s.data, 16) && (s.row_stride & 7) == 0
           && (s.batch_stride & 7) == 0 && s.rows * s.batch < most && s.row_stride < most
           && p.destination.row_bytes < most && p.destination.scale_batch_bytes < most;
}

__device__ static inline bf16_rows make_bf16_rows(const bsmi_quantize_parameters &p, int rows_apart, int thread,
                                                  int threads)
{
    const bsmi_device_matrix &m = p.destination;
    const bool backward = p.backward != 0;
    return { (int)(m.columns >> (m.block == 16 ? 4 : 5)) * (m.block / 8),
             thread / 32 * BF16_STRETCH,
             threads * BF16_STEPS,
             make_fast_step((int)m.rows, rows_apart),
             backward ? (int)m.rows - 1 : 0,
             backward ? (int)m.batch - 1 : 0,
             backward ? -1 : 1 };
}

__device__ static inline bf16_constants make_bf16_constants(const bsmi_device_matrix &m, const block_quantizer &q,
                                                            float amax_factor)
{
    bf16_constants c = {};
    c.round_up = (q.round_up >> 16) * 0x00010001;
    c.emax = q.emax;
    /* Scale codes 3 .. 252 and amax below infinity, so that scales, their inverses and twice and half of those are
     * normal. */
    c.least = (uint32_t)(q.emax + 3) << 7, c.span = (252u << 7) - c.least;
    c.exponent_of_one = (uint32_t)(254 + q.emax) * 0x00800080;
    c.amax_factor = amax_factor;
    c.even = m.packing == BSM_PACKING_HIGH_FIRST ? 16 : 1, c.odd = 17 - c.even;
    c.low_nibbles = c.even == 1 ? 0x5410 : 0x7632, c.high_nibbles = c.even == 1 ? 0x7632 : 0x5410;
    return c;
}

__device__ static inline bf16_path bf16_path_of(const bsmi_device_matrix &m, const block_quantizer &q,
                                              const factor_nudges &n)
{
    const int64_t step = m.bits == 8 ? 8 : 4;
    if (!aligned_to(m.data, (uint32_t)step) || (m.row_bytes & (step - 1)) != 0 || (m.batch_bytes & (step - 1)) != 0)
        return BF16_NONE;
    if (q.path == PATH_POWER_OF_TWO && m.element == BSM_E4M3) return BF16_E4M3;
    if (q.path == PATH_POWER_OF_TWO && m.element == BSM_E5M2) return BF16_E5M2;
    if (m.packing != BSM_PACKING_LOW_FIRST && m.packing != BSM_PACKING_HIGH_FIRST) return BF16_NONE;
    if (q.path == PATH_POWER_OF_TWO && m.element == BSM_E2M1) return q.lanes == 4 ? BF16_E2M1 : BF16_E2M1_BLOCK16;
    if (!q.is_nvfp4) return BF16_NONE;
    return (__float_as_uint((float)q.tensor_scale) & 0x7fffff) == 0 ? BF16_NVFP4_POWER
           : n.serves                                               ? BF16_NVFP4
                                                                    : BF16_NONE;
}

/* By one thread. */
__device__ static inline void make_bf16_job(const bsmi_device_matrix &m, const block_quantizer &q,
                                            const factor_nudges &n, bf16_job *s)
{
    const bf16_path path = bf16_path_of(m, q, n);
    const double over = q.divides ? q.tensor_scale / 6 : 1 / (6 * q.tensor_scale);
    s->path = s->places.row.tile != 0 || s->places.column.tile != 0 ? BF16_NONE : path;
    s->row = make_fast_part(s->places.row), s->column = make_fast_part(s->places.column);
    s->constants = make_bf16_constants(m, q, q.is_nvfp4 ? nudged(over, path == BF16_NVFP4 ? n.of_amax : 0) : 0);
    s->second_scale = place_of(s->column, m.bits == 8 ? BF16_HALF / 8 : 1);
    s->half_scale = place_of(s->column, m.block == 16 ? BF16_HALF / 2 : BF16_HALF / 4);
    s->wide_codes = aligned_to(m.data, 16) && (m.row_bytes & 15) == 0 && (m.batch_bytes & 15) == 0;
    s->wide_scales = s->second_scale == 1 && aligned_to(m.scales, 2) && (m.scale_batch_bytes & 1) == 0 &&
                     (m.layout.kind != BSM_LAYOUT_LINEAR || (m.layout.pitch & 1) == 0);
}

/* By all threads: the way of factors, and the table of them. */
__device__ static inline factor_nudges make_factors(double t, bool divides, bf16_job *s)
{
    const bool power = (__double_as_longlong(t) & (((long long)1 << 52) - 1)) == 0;
    const factor_nudges found = find_nudges(t, divides, (int)threadIdx.x & 31), n = power ? factor_nudges{} : found;
    for (uint32_t code = threadIdx.x; code < 128; code += BSMI_QUANTIZE_THREADS)
        s->factors[code] = factor_of_code(code, t, divides, n);
    return n;
}

/* A stretch: where it lies.  octet -1: none. */
struct bf16_stretch { int matrix, row, octet; };

enum { BF16_HALF_BYTES = BF16_HALF * 16, BF16_STRETCH_BYTES = BF16_STRETCH * 16, BF16_STAGES = 2,
       BF16_RING_BYTES = BF16_STAGES * BF16_STRETCH_BYTES * BSMI_QUANTIZE_THREADS / 32 };

/* What is read, as many stretches ahead of what is written as the ring has stages.  Octet o of half a stretch lies in
 * place o ^ (o / 8 % 8): no bank of shared memory is asked twice, neither by copies of eight neighbouring octets nor by
 * eight threads that load every second or fourth. */
struct bf16_reader {
    fast_walk w;
    int octet;                            /* of the stretch that comes next */
    uint32_t even, odd, stage;            /* this thread's places of steps 0 and 1; 0 or BF16_STRETCH_BYTES */
    bf16_stretch ahead[BF16_STAGES];      /* what lies in the ring, the oldest first */
};

__device__ static inline bf16_stretch stretch_at(const bf16_rows &r, const bf16_reader &o)
{
    return { r.first_matrix + r.sign * o.w.matrix, r.first_row + r.sign * o.w.r, o.w.left > 0 ? o.octet : -1 };
}

/* Zeros behind the whole blocks of a row. */
__device__ static inline void copy_stretch(const bsmi_quantize_parameters &p, const bf16_rows &r, bf16_reader *o)
{
    const bf16_stretch s = stretch_at(r, *o);
    const int lane = (int)threadIdx.x & 31;
    o->ahead[0] = o->ahead[1], o->ahead[1] = s;
    if (s.octet >= 0) {
        const unsigned char *from = p.source.data + s.matrix * p.source.batch_stride * 2
                                    + (int64_t)s.row * ((int)p.source.row_stride * 2) + (int64_t)(s.octet + lane) * 16;
        const uint32_t even = o->even + o->stage, odd = o->odd + o->stage;
        if (s.octet + BF16_STRETCH <= r.end) {
#pragma unroll
            for (int i = 0; i < BF16_STEPS; i++) cp_async_16((i & 1 ? odd : even) + i * 512, from + 512 * i, 16);
        } else {
            for (int i = 0; i < BF16_STEPS; i++) {
                const bool there = s.octet + lane + 32 * i < r.end;
                cp_async_16((i & 1 ? odd : even) + i * 512, there ? from + 512 * i : p.source.data, there ? 16 : 0);
            }
        }
        o->octet += r.apart;
        if (o->octet >= r.end) o->octet = r.mine, (void)fast_next(r.step, &o->w);
    }
    cp_async_commit_group();
    o->stage ^= BF16_STRETCH_BYTES;
}

/* ring: aligned to 128 bytes.  Fills it, so that memory is at work before anything else is known. */
__device__ static inline bf16_reader begin_reading(const bsmi_quantize_parameters &p, const bf16_rows &r,
                                                   const uint4 *ring, const fast_walk &w)
{
    static_assert(BF16_STAGES == 2, "stages are told apart by one bit");
    const uint32_t lane = threadIdx.x & 31,
                   of_warp = shared_address(ring) + threadIdx.x / 32 * (BF16_STAGES * BF16_STRETCH_BYTES);
    const uint32_t place = (lane ^ lane >> 3) * 16;
    bf16_reader o = { w, r.mine, of_warp + place, of_warp + (place ^ 64), 0, {} };
    if (r.mine >= r.end) o.w.left = 0;
    for (int i = 0; i < BF16_STAGES; i++) copy_stretch(p, r, &o);
    return o;
}

__device__ static inline void store_codes(unsigned char *to, uint4 codes, bool wide)
{
    if (wide) {
        ptx_store_16(to, codes);
        return;
    }
    uint32_t *words = (uint32_t *)to;
    words[0] = codes.x, words[1] = codes.y, words[2] = codes.z, words[3] = codes.w;
}

/* octet: the thread's first of half a stretch; to, scales: where it is put, and its first scale. */
template <bf16_path path>
__device__ static inline void store_bf16(const bf16_job &s, const bf16_quantized &v, unsigned char *to,
                                         unsigned char *scales, int octet, int end)
{
    const bool bytes = path == BF16_E4M3 || path == BF16_E5M2;
    if (bytes) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (octet + BF16_HALF / 2 * i >= end) continue;
            store_codes(to + BF16_HALF / 2 * 8 * i, v.codes[i], s.wide_codes);
            if ((threadIdx.x & 1) == 0) scales[i * s.second_scale] = (unsigned char)v.scale_codes[i];
        }
        return;
    }
    if (octet >= end) return;
    if (octet + 4 > end) {                /* the last block of 16 */
        ((uint32_t *)to)[0] = v.codes[0].x, ((uint32_t *)to)[1] = v.codes[0].y;
        scales[0] = (unsigned char)v.scale_codes[0];
        return;
    }
    store_codes(to, v.codes[0], s.wide_codes);
    if (path == BF16_E2M1) scales[0] = (unsigned char)v.scale_codes[0];
    else if (s.wide_scales) *(uint16_t *)scales = (uint16_t)(v.scale_codes[0] | v.scale_codes[1] << 8);
    else scales[0] = (unsigned char)v.scale_codes[0], scales[s.second_scale] = (unsigned char)v.scale_codes[1];
}

/* again: of a warp's stretches, counted in the order in which it comes to them: bit n & 63 says that stretch n is to be
 * done again; one a warp, zeros at first. */
template <bf16_path path>
__device__ static inline void quantize_bf16_rows(const bsmi_quantize_parameters &p, const bf16_rows &r,
                                                 const bf16_job &s, const uint4 *ring, bf16_reader reader,
                                                 uint64_t *again)
{
    const bsmi_device_matrix &m = p.destination;
    const bool bytes = path == BF16_E4M3 || path == BF16_E5M2;
    const int block_shift = bytes || path == BF16_E2M1 ? 2 : 1, lane = (int)threadIdx.x & 31,
              of_lane = bytes ? lane * 2 : lane * 4;
    const bf16_constants c = s.constants;                            /* in registers */
    const unsigned char *stages = (const unsigned char *)ring + threadIdx.x / 32 * (BF16_STAGES * BF16_STRETCH_BYTES);
    const int first_place = of_lane ^ (of_lane >> 3 & 7);            /* of the thread's octets, this is one of the first
                                                                        two or four */
    int column_octet = -1;
    uint32_t column_place = 0;
    for (int n = 0; reader.ahead[0].octet >= 0; n++) {
        const bf16_stretch at = reader.ahead[0];
        const int octet = at.octet + of_lane;
        if (octet != column_octet)
            column_octet = octet, column_place = place_of(s.column, (uint32_t)octet >> block_shift);
        unsigned char *codes =
            m.data + at.matrix * m.batch_bytes + (int64_t)at.row * (int)m.row_bytes + (int64_t)octet * (bytes ? 8 : 4);
        unsigned char *scales =
            m.scales + at.matrix * m.scale_batch_bytes + (place_of(s.row, (uint32_t)at.row) + column_place);
        bool odd = false;
        cp_async_wait_group<BF16_STAGES - 1>();
        __syncwarp();
#pragma unroll 1
        for (int half = 0; half < 2 && at.octet + half * BF16_HALF < r.end; half++) {
            const unsigned char *stage = stages + (n & 1) * BF16_STRETCH_BYTES + half * BF16_HALF_BYTES;
            uint32_t x[16];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int place = bytes ? (first_place ^ (i & 1)) + i / 2 * (BF16_HALF / 2) : first_place ^ i;
                const uint4 v = *(const uint4 *)(stage + place * 16);
                x[4 * i] = v.x, x[4 * i + 1] = v.y, x[4 * i + 2] = v.z, x[4 * i + 3] = v.w;
            }
            const bf16_quantized v = quantize_bf16<path>(c, s.factors, x, &odd);
            store_bf16<path>(s, v, codes, scales, octet + half * BF16_HALF, r.end);
            codes += BF16_HALF * (bytes ? 8 : 4), scales += s.half_scale;
        }
        __syncwarp();                                                /* the stage is free */
        copy_stretch(p, r, &reader);
        if (__any_sync(0xffffffff, odd) && lane == 0) again[threadIdx.x / 32] |= (uint64_t)1 << (n & 63);
    }
}

#endif

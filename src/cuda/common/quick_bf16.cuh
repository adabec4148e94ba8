/* Quantizing whole blocks of bf16 that lie well, at the speed of memory: every number costs two or three of the operations of
 * which an SM of compute capability 9.0 does 64 a cycle.  No function is called in here.  Blocks that need more thought (NaN,
 * infinity, scales at the ends of e8m0) are told of, and done again by block.cuh.
 *
 * e2m1 codes are sums: with a = |x| / scale, code = min(2 a, a + 2, a / 2 + 4, 7), rounded to even.  Each term is one fma whose
 * result, 128 + 4 + code as bf16 or 1024 + 4 + code as half, has 1 as its last place: scaled, added and rounded once.
 *
 * Power-of-two scales: the fma takes the bf16 itself.
 * ue4m3 scales: q = x * (1 / (scale t)) in fp32 is off by less than 2^-21.  Where t is a power of two, x and a middle of two codes
 * times the scale have 8 and 7 bits, so they are equal or differ by 2^-8: q rounded to a half (11 bits) is the middle, or on the
 * right side of it.  Any other t serves if no middle times scale times t is within 2^-21 of a number of 8 bits (few do not,
 * `serves`): then q is on the right side of every middle, and so is q cut to a half with its last bit set.  The same holds for
 * amax / (6 t) and e4m3. */
#ifndef BSMI_QUICK_BF16_CUH
#define BSMI_QUICK_BF16_CUH

#include "block.cuh"
#include "cuda/ptx/async_copy.cuh"
#include "cuda/ptx/mbarrier.cuh"
#include "row_walk.cuh"

enum bf16_way { BF16_NONE, BF16_E4M3, BF16_E5M2, BF16_E2M1, BF16_E2M1_BLOCK16, BF16_NVFP4_POWER, BF16_NVFP4 };
enum { BF16_STEPS = 4 };

/* Whether `exact` is no further than 2^-21 from a number of 8 bits. */
__device__ static inline bool near_short(double exact)
{
    const uint64_t bits = (uint64_t)__double_as_longlong(exact), one = (uint64_t)1 << 45, rest = bits & (one - 1);
    return rest <= (uint64_t)1 << 32 || one - rest <= (uint64_t)1 << 32;
}

/* Called by a whole warp.  Odd middles of e2m1 times significands of ue4m3, and odd middles of e4m3 times 6. */
__device__ static inline bool serves(float t, int lane)
{
    const double of_element = (double)((lane & 3) * 2 + 1) * (double)(8 + (lane >> 2)) * (double)t;
    const double of_scale = (double)((lane & 15) * 2 + 1) * 6 * (double)t;
    return __all_sync(0xffffffff, !near_short(of_element) && !near_short(of_scale));
}

/* Called by a whole warp. */
__device__ static inline bf16_way bf16_way_of(const bsmi_device_matrix &m, const bsmi_device_reals &source,
                                              const block_quantizer &q, int lane)
{
    const uint32_t step = m.bits == 8 ? 8 : 4;
    if (source.type != BSM_REAL_BF16 || source.column_stride != 1 || !aligned_to(source.data, 16) || source.row_stride % 8 != 0 ||
        source.batch_stride % 8 != 0)
        return BF16_NONE;
    if (!aligned_to(m.data, step) || m.row_bytes % step != 0 || m.batch_bytes % step != 0) return BF16_NONE;
    if (q.way == WAY_POWER_OF_TWO && m.element == BSM_E4M3) return BF16_E4M3;
    if (q.way == WAY_POWER_OF_TWO && m.element == BSM_E5M2) return BF16_E5M2;
    if (m.packing != BSM_PACKING_LOW_FIRST && m.packing != BSM_PACKING_HIGH_FIRST) return BF16_NONE;
    if (q.way == WAY_POWER_OF_TWO && m.element == BSM_E2M1) return q.lanes == 4 ? BF16_E2M1 : BF16_E2M1_BLOCK16;
    if (q.way != WAY_NVFP4) return BF16_NONE;
    const float t = (float)q.tensor_scale;
    if ((__float_as_uint(t) & 0x7fffff) == 0) return BF16_NVFP4_POWER;
    return serves(t, lane) ? BF16_NVFP4 : BF16_NONE;
}

/* Everything about a matrix that octets share, twice in the halves of words where numbers are pairs. */
struct bf16_constants {
    uint32_t round_up, least, span,
        exponent_of_one; /* amax from `least` to least + span; exponent field of 1 / scale plus amax's */
    int emax;
    float amax_factor, factor;
    uint32_t even, odd; /* nibbles of even and odd elements are multiplied with 1 and 16, or 16 and 1 */
};

__device__ static inline bf16_constants make_bf16_constants(const bsmi_device_matrix &m, const block_quantizer &q)
{
    bf16_constants c = {};
    c.round_up = (q.round_up >> 16) * 0x00010001;
    c.emax = q.emax;
    /* Scale codes 3 .. 252 and amax below infinity, so that scales, their inverses and twice and half of those are normal. */
    c.least = (uint32_t)(q.emax + 3) << 7, c.span = (252u << 7) - c.least;
    c.exponent_of_one = (uint32_t)(254 + q.emax) * 0x00800080;
    c.amax_factor = q.amax_factor, c.factor = q.factor;
    c.even = m.packing == BSM_PACKING_HIGH_FIRST ? 16 : 1, c.odd = 17 - c.even;
    return c;
}

/* The largest magnitude of a block, in both halves.  NaN is larger than infinity. */
template <int lanes> __device__ static inline uint32_t bf16_amax(const uint32_t *magnitudes)
{
    uint32_t most = __vmaxu2(__vimax3_u16x2(magnitudes[0], magnitudes[1], magnitudes[2]), magnitudes[3]);
    most = __vmaxu2(most, __shfl_xor_sync(0xffffffff, most, 1));
    if (lanes == 4) most = __vmaxu2(most, __shfl_xor_sync(0xffffffff, most, 2));
    return __vmaxu2(most, __byte_perm(most, 0, 0x1032));
}

/* Pairs 4 + code + a number with a last place of 1 become nibbles, with the signs of x. */
__device__ static inline uint32_t nibbles_of_sums(const bf16_constants &c, const uint32_t *nibbles)
{
    const uint32_t x = __byte_perm(nibbles[0], nibbles[1], 0x6240), y = __byte_perm(nibbles[2], nibbles[3], 0x6240);
    return __byte_perm(x, y, 0x5410) * c.even + __byte_perm(x, y, 0x7632) * c.odd;
}

__device__ static inline uint32_t power_nibbles(const bf16_constants &c, const uint32_t *x, const uint32_t *magnitudes,
                                                uint32_t inverse)
{
    const uint32_t twice = inverse + 0x00800080, half = inverse - 0x00800080;
    uint32_t nibbles[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t sum =
            __vimin3_u16x2(ptx_fma_bf16x2(magnitudes[i], twice, 0x43044304), ptx_fma_bf16x2(magnitudes[i], inverse, 0x43064306),
                           ptx_fma_bf16x2(magnitudes[i], half, 0x43084308));
        /* less 4, or 4 more: bit 3 */
        nibbles[i] = ptx_sub_bf16x2(__vminu2(sum, 0x430b430b), (x[i] & 0x80008000) | 0x40804080);
    }
    return nibbles_of_sums(c, nibbles);
}

template <bool power_of_two>
__device__ static inline uint32_t quotient_nibbles(const bf16_constants &c, const uint32_t *x, const uint32_t *magnitudes,
                                                   float reciprocal)
{
    uint32_t nibbles[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float low = __uint_as_float(magnitudes[i] << 16) * reciprocal,
                    high = __uint_as_float(magnitudes[i] & 0xffff0000) * reciprocal;
        const uint32_t halves = power_of_two ? ptx_cvt_f16x2(high, low) : ptx_cvt_rz_f16x2(high, low) | 0x00010001;
        const uint32_t sum =
            __vimin3_u16x2(ptx_fma_f16x2(halves, 0x40004000, 0x64046404), ptx_fma_f16x2(halves, 0x3c003c00, 0x64066406),
                           ptx_fma_f16x2(halves, 0x38003800, 0x64086408));
        nibbles[i] = ptx_sub_f16x2(__vminu2(sum, 0x640b640b), (x[i] & 0x80008000) | 0x44004400);
    }
    return nibbles_of_sums(c, nibbles);
}

struct bf16_quantized {
    uint32_t low, high, scale_code;
    bool again;
};

/* Called by whole warps. */
template <bf16_way way> __device__ static inline bf16_quantized quantize_bf16(const bf16_constants &c, uint4 v)
{
    const bool nvfp4 = way == BF16_NVFP4 || way == BF16_NVFP4_POWER;
    const uint32_t x[4] = { v.x, v.y, v.z, v.w };
    uint32_t magnitudes[4];
#pragma unroll
    for (int i = 0; i < 4; i++) magnitudes[i] = x[i] & 0x7fff7fff;
    const uint32_t amax = bf16_amax < nvfp4 || way == BF16_E2M1_BLOCK16 ? 2 : 4 > (magnitudes);
    bf16_quantized result = {};
    if (nvfp4) {
        result.again = amax >= 0x7f800000;
        result.scale_code = ptx_cvt_e4m3x2(0, __uint_as_float(amax & 0xffff0000) * c.amax_factor);
        const float scale = __uint_as_float(result.scale_code << 20) * 0x1p120f;
        const float reciprocal = result.scale_code == 0 ? 0 : ptx_rcp_approx(scale) * c.factor;
        result.low = quotient_nibbles<way == BF16_NVFP4_POWER>(c, x, magnitudes, reciprocal);
        return result;
    }
    const uint32_t exponent = ((amax == 0 ? 0x3f803f80 : amax) + c.round_up) & 0xff80ff80; /* of scale * 2^emax; zeros: any */
    result.again = (amax >> 16) - c.least > c.span && amax != 0;
    result.scale_code = amax == 0 ? 0 : (exponent >> 23) - (uint32_t)c.emax;
    const uint32_t inverse = c.exponent_of_one - exponent;
    if (way == BF16_E2M1 || way == BF16_E2M1_BLOCK16) {
        result.low = power_nibbles(c, x, magnitudes, inverse);
        return result;
    }
    const float factor = __uint_as_float(inverse & 0xffff0000);
    eight scaled;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        scaled.x[2 * i] = __uint_as_float(x[i] << 16) * factor, scaled.x[2 * i + 1] = __uint_as_float(x[i] & 0xffff0000) * factor;
    }
    const octet codes = codes_of(way == BF16_E4M3 ? BSM_E4M3 : BSM_E5M2, scaled);
    result.low = codes.low, result.high = codes.high;
    return result;
}

/* Rows ------------------------------------------------------------------------------------------------------------------------ */

/* A stretch of 32 * BF16_STEPS octets is a warp's; octet 32 i + lane is a thread's in step i. */
struct bf16_job {
    scale_places places;
    quick_places<BF16_STEPS> quick;
    bf16_constants constants;
    bf16_way way;
    int end; /* octets of a row's whole blocks */
    quick_step step;
    int64_t source_apart, codes_apart; /* bytes from a row to the group's next one in the same matrix */
};

/* Where a warp is: its stretch of a row, as this thread's octet of step 0. */
struct bf16_place {
    quick_walk w;
    int octet;
};

enum bf16_move { SAME_ROW, NEXT_ROW, ANOTHER_MATRIX };

__device__ static inline bf16_move next_stretch(const bf16_job &s, int mine, int apart, bf16_place *at)
{
    at->octet += apart;
    if (at->octet - mine < s.end) return SAME_ROW;
    at->octet = mine;
    return quick_next(s.step, &at->w) ? NEXT_ROW : ANOTHER_MATRIX;
}

/* What is read: it runs ahead of what is written by as many stretches as the ring has stages.  Threads read what they copied
 * themselves, so that no barrier is needed. */
struct bf16_reader {
    bf16_place at;
    const unsigned char *row;
    uint32_t ring; /* this thread's place of step 0 in the stage that comes next */
};

enum { BF16_STEP_BYTES = BSMI_QUANTIZE_THREADS * 16, BF16_STAGE_BYTES = BF16_STEPS * BF16_STEP_BYTES, BF16_STAGES = 2 };

__device__ static inline const unsigned char *source_row(const bsmi_quantize_parameters &p, const quick_walk &w)
{
    return p.source.data + (w.matrix * p.source.batch_stride + w.r * p.source.row_stride) * 2;
}

/* Zeros behind the whole blocks of a row, and behind the last row. */
__device__ static inline void copy_stretch(const bsmi_quantize_parameters &p, const bf16_job &s, int mine, int apart,
                                           bf16_reader *r)
{
    const int end = r->at.w.left > 0 ? s.end : 0;
    const unsigned char *from = r->row + (int64_t)r->at.octet * 16;
#pragma unroll
    for (int i = 0; i < BF16_STEPS; i++) {
        const bool there = r->at.octet + 32 * i < end;
        cp_async_16(r->ring + i * BF16_STEP_BYTES, there ? from + 512 * i : p.source.data, there ? 16 : 0);
    }
    cp_async_commit_group();
    r->ring ^= BF16_STAGE_BYTES;
    if (r->at.w.left == 0) return;
    const bf16_move move = next_stretch(s, mine, apart, &r->at);
    if (move == NEXT_ROW) r->row += s.source_apart;
    if (move == ANOTHER_MATRIX) r->row = source_row(p, r->at.w);
}

struct bf16_row {
    unsigned char *codes, *matrix_scales;
};

__device__ static inline bf16_row written_row(const bsmi_device_matrix &m, const quick_walk &w)
{
    return { m.data + w.matrix * m.batch_bytes + w.r * m.row_bytes, m.scales + w.matrix * m.scale_batch_bytes };
}

/* ring: aligned to its 32 KB.  again: of a warp's stretches, counted in the order in which it comes to them: bit n & 63 says that
 * stretch n is to be done again; one a warp, zeros at first. */
template <bf16_way way>
__device__ static inline void quantize_bf16_rows(const bsmi_quantize_parameters &p, const bf16_job &s, const uint4 *ring,
                                                 quick_walk w, int thread, int threads, uint64_t *again)
{
    static_assert(BF16_STAGES == 2, "stages are told apart by one bit of their address");
    const bsmi_device_matrix &m = p.destination;
    const int block_shift = way == BF16_E4M3 || way == BF16_E5M2 || way == BF16_E2M1 ? 2 : 1;
    const bool bytes = way == BF16_E4M3 || way == BF16_E5M2, stores_scale = (thread & ((1 << block_shift) - 1)) == 0;
    const int mine = (thread & ~31) * BF16_STEPS + (thread & 31), apart = threads * BF16_STEPS;
    const bf16_constants c = s.constants; /* in registers */
    const quick_places<BF16_STEPS> places = s.quick;
    if (w.left == 0) return;
    bf16_place at = { w, mine };
    bf16_reader reader = { at, source_row(p, w), shared_address(ring + threadIdx.x) };
    bf16_row row = written_row(m, w);
    for (int i = 0; i < BF16_STAGES; i++) copy_stretch(p, s, mine, apart, &reader);
    for (int n = 0; at.w.left > 0; n++) {
        const uint4 *octets = ring + (n & 1) * (BF16_STAGE_BYTES / 16) + threadIdx.x;
        unsigned char *codes = row.codes + (int64_t)at.octet * (bytes ? 8 : 4);
        unsigned char *scales = row.matrix_scales + column_place(s.places.row, (uint32_t)at.w.r) +
                                column_place(s.places.column, (uint32_t)at.octet >> block_shift);
        bool odd = false;
        cp_async_wait_group<BF16_STAGES - 1>();
#pragma unroll
        for (int i = 0; i < BF16_STEPS; i++) {
            const bf16_quantized result = quantize_bf16<way>(c, octets[i * BSMI_QUANTIZE_THREADS]);
            odd |= result.again;
            if (at.octet + 32 * i >= s.end) continue;
            if (bytes) *(uint2 *)(codes + 256 * i) = make_uint2(result.low, result.high);
            else *(uint32_t *)(codes + 128 * i) = result.low;
            if (stores_scale) scales[places.step[i]] = (unsigned char)result.scale_code;
        }
        copy_stretch(p, s, mine, apart, &reader);
        if (__any_sync(0xffffffff, odd) && (threadIdx.x & 31) == 0) again[threadIdx.x / 32] |= (uint64_t)1 << (n & 63);
        const bf16_move move = next_stretch(s, mine, apart, &at);
        if (move == NEXT_ROW) row.codes += s.codes_apart;
        if (move == ANOTHER_MATRIX) row = written_row(m, at.w);
    }
    cp_async_wait_group<0>();
}

#endif

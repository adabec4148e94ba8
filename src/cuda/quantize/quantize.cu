/* Real numbers into codes and scales: the bits of bsm_quantize.
 *
 * CTA: 128 threads, in groups of 32 .. 128 threads that take a row each, eight numbers a thread and step. */
#include "cuda/ptx/arithmetic.cuh"
#include "fast_path_bf16.cuh"
#include "fast_path_rows.cuh"
#include "tensor_scale.cuh"

enum { STEPS = 2 };

__device__ static inline bool is_fast(const bsmi_device_reals &s)
{
    const int64_t rest = s.type == BSM_REAL_FP32 ? 3 : 7;            /* of elements of 16 bytes */
    return s.column_stride == 1 && aligned_to(s.data, 16) && (s.row_stride & rest) == 0 && (s.batch_stride & rest) == 0;
}

__device__ static inline source_kind kind_of(const bsmi_device_reals &s)
{
    if (!is_fast(s)) return SOURCE_ANY;
    return s.type == BSM_REAL_FP32 ? SOURCE_FP32 : s.type == BSM_REAL_FP16 ? SOURCE_FP16 : SOURCE_BF16;
}

/* One by one: any strides, or the last of a row. */
__device__ __noinline__ static eight gather(const bsmi_device_reals &s, int64_t first, int number, int count)
{
    eight v;
#pragma unroll 1
    for (int i = 0; i < 8; i++)
        v.x[i] = i < count ? (float)load_real(s.type, s.data, first + ((int64_t)number * 8 + i) * s.column_stride) : 0;
    return v;
}

struct row_work {
    int thread, threads;                  /* of the group */
    int octets, padded_octets;            /* with the rest of the last block */
    int begin;                            /* octets in front of it are done */
    int last_count;
    int64_t first;                        /* index of the row's first number in the source */
    uint64_t index;                       /* for stochastic rounding */
    unsigned char *codes, *scales;
};

__device__ static inline int count_in(const row_work &w, int number)
{
    if (number >= w.padded_octets) return 0;             /* of the row, but behind the stretch that is done again */
    return number < w.octets - 1 ? 8 : number == w.octets - 1 ? w.last_count : 0;
}

/* The octets of a row from w.begin on, any way. */
template <source_kind kind, block_path path>
__device__ static inline void quantize_row(const bsmi_quantize_parameters &p, const block_quantizer &q,
                                           const scale_part &columns, const row_work &w)
{
    const int64_t bytes = kind == SOURCE_FP32 ? 4 : 2;
    const unsigned char *row = p.source.data + w.first * bytes;
    for (int base = w.begin; base < w.padded_octets; base += w.threads * STEPS) {      /* whole warps go together */
        loaded raw[STEPS];
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            const int number = base + w.thread + i * w.threads;
            if (kind != SOURCE_ANY && count_in(w, number) == 8) raw[i] = load_numbers<kind>(row, number);
        }
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            const int number = base + w.thread + i * w.threads, count = count_in(w, number);
            if (base + i * w.threads >= w.padded_octets) break;
            eight v = {};
            if (kind != SOURCE_ANY && count == 8) v = widen<kind>(raw[i]);
            else if (count > 0) v = gather(p.source, w.first, number, count);
            const quantized result = quantize_eight<path>(q, v, w.index + (uint64_t)number * 8, kind == SOURCE_BF16);
            store_quantized(p.destination, columns, w.codes, w.scales, number, count, w.padded_octets, q, result);
        }
    }
}

template <source_kind kind, fast_path path>
__device__ static void quantize_whole_blocks(const bsmi_quantize_parameters &p, const block_quantizer &q,
                                             const scale_part &columns, row_work &w)
{
    const int64_t bytes = kind == SOURCE_FP32 ? 4 : 2;
    const int end = (int)(p.destination.columns / p.destination.block) * q.lanes;
    const fast_row r = { p.source.data + w.first * bytes, w.codes, w.scales, end, w.thread, w.threads, w.index };
    quantize_fast_row<kind, path, STEPS>(p.destination, q, columns, r);
    w.begin = end;
}

template <source_kind kind>
__device__ static void quantize_by_fast_path(fast_path path, const bsmi_quantize_parameters &p,
                                             const block_quantizer &q, const scale_part &columns, row_work &w)
{
    switch (path) {
    case FAST_E4M3: quantize_whole_blocks<kind, FAST_E4M3>(p, q, columns, w); break;
    case FAST_E5M2: quantize_whole_blocks<kind, FAST_E5M2>(p, q, columns, w); break;
    case FAST_NVFP4_SHORT:
        if (kind != SOURCE_FP32)
            quantize_whole_blocks<kind == SOURCE_FP32 ? SOURCE_BF16 : kind, FAST_NVFP4_SHORT>(p, q, columns, w);
        break;
    default: quantize_whole_blocks<kind, FAST_NVFP4>(p, q, columns, w); break;
    }
}

/* What the fast paths leave: other elements, other packings, the end of a row. */
template <block_path path>
__device__ static void quantize_rest(source_kind kind, const bsmi_quantize_parameters &p, const block_quantizer &q,
                                     const scale_part &columns, const row_work &w)
{
    switch (kind) {
    case SOURCE_BF16: quantize_row<SOURCE_BF16, path>(p, q, columns, w); break;
    default: quantize_row<SOURCE_ANY, path>(p, q, columns, w); break;
    }
}

/* Unscaled destinations: number by number, as convert_row.c. */
__device__ static void convert_row(const bsmi_quantize_parameters &p, double tensor_scale, const row_work &w)
{
    const bsmi_device_matrix &m = p.destination;
    const bool saturate = m.bits == 8 && !p.no_saturate;
    for (int64_t k = w.thread; k < m.columns; k += w.threads) {
        const double x = load_real(p.source.type, p.source.data, w.first + k * p.source.column_stride);
        const double quotient = m.tensor_scale_divides ? x * tensor_scale : x / tensor_scale;
        const uint32_t random = p.rounding == BSM_ROUND_STOCHASTIC ? bsmi_random_bits(p.seed, w.index + k) : 0;
        const uint32_t code = encode_element(m.element, quotient, p.rounding, saturate, random);
        if (m.bits == 8) w.codes[k] = (unsigned char)code;
        else if (m.bits == 16) ((uint16_t *)w.codes)[k] = (uint16_t)code;
        else ((uint32_t *)w.codes)[k] = code;
    }
}

__device__ static inline int threads_of_row(int octets, int steps)
{
    int threads = 32;
    while (threads < BSMI_QUANTIZE_THREADS && threads * steps < octets) threads *= 2;
    return threads;
}

__device__ static inline int padded_octets_of(const bsmi_device_matrix &m)
{
    const int unit = m.packing != BSM_PACKING_GGUF ? m.block / 8 : m.scale == BSM_E8M0 ? 4 : 8;
    return (int)((m.columns + unit * 8 - 1) / (unit * 8)) * unit;
}

/* A row of blocks, from w.begin on. */
__device__ __noinline__ static void quantize_blocks(source_kind kind, const bsmi_quantize_parameters &p,
                                                    const block_quantizer &q, const scale_part &columns,
                                                    const row_work w)
{
    switch (q.path) {
    case PATH_POWER_OF_TWO: quantize_rest<PATH_POWER_OF_TWO>(kind, p, q, columns, w); break;
    case PATH_NVFP4: quantize_rest<PATH_NVFP4>(kind, p, q, columns, w); break;
    default: quantize_row<SOURCE_ANY, PATH_EXACT>(p, q, columns, w); break;
    }
}

/* What quantize_bf16_rows leaves of a row: stretches to be done again, whose number is *n at first, and octets from
 * r.end on. */
__device__ static void quantize_left(const bsmi_quantize_parameters &p, const block_quantizer &q, const bf16_rows &r,
                                     const scale_part &columns, row_work w, uint64_t again, int *n)
{
    for (int first = r.mine; first < r.end; first += r.apart, ++*n) {
        row_work stretch = w;
        if ((again >> (*n & 63) & 1) == 0) continue;
        stretch.thread = w.thread % 32, stretch.threads = 32;
        stretch.begin = first, stretch.padded_octets = min(r.end, first + BF16_STRETCH);
        quantize_blocks(SOURCE_BF16, p, q, columns, stretch);
    }
    w.begin = r.end;
    if (r.end < w.padded_octets) quantize_blocks(SOURCE_BF16, p, q, columns, w);
}

__device__ static void quantize_bf16_matrix(const bsmi_quantize_parameters &p, const bf16_rows &r, const bf16_job &s,
                                            const uint4 *ring, const bf16_reader &reader, uint64_t *again)
{
    switch (s.path) {
    case BF16_E4M3: quantize_bf16_rows<BF16_E4M3>(p, r, s, ring, reader, again); break;
    case BF16_E5M2: quantize_bf16_rows<BF16_E5M2>(p, r, s, ring, reader, again); break;
    case BF16_E2M1: quantize_bf16_rows<BF16_E2M1>(p, r, s, ring, reader, again); break;
    case BF16_E2M1_BLOCK16: quantize_bf16_rows<BF16_E2M1_BLOCK16>(p, r, s, ring, reader, again); break;
    case BF16_NVFP4_POWER: quantize_bf16_rows<BF16_NVFP4_POWER>(p, r, s, ring, reader, again); break;
    default: quantize_bf16_rows<BF16_NVFP4>(p, r, s, ring, reader, again); break;
    }
}

/* The group's row number n of all, as matrix and row within it. */
__device__ static row_walk walk_of(const bsmi_quantize_parameters &p, int64_t n)
{
    const int64_t rows = p.destination.rows, all = rows * p.destination.batch;
    row_walk walk = walk_to(rows, p.backward && n < all ? all - 1 - n : n);
    walk.row = n;
    return walk;
}

/* What a CTA knows of its matrix: in shared memory. */
struct quantize_job {
    block_quantizer q;
    bf16_job bf16;
    float tensor_scale;
    uint64_t again[BSMI_QUANTIZE_THREADS / 32];
};

/* Everything but the whole blocks of bf16 that lie well; of those, what `again` says. */
__device__ static inline void quantize_rows(const bsmi_quantize_parameters &p, const quantize_job &job,
                                            const bf16_rows &r)
{
    const bsmi_device_matrix &m = p.destination;
    const source_kind kind = kind_of(p.source);
    row_work w;
    w.octets = (int)((m.columns + 7) / 8), w.padded_octets = m.block != 0 ? padded_octets_of(m) : w.octets;
    w.last_count = (int)(m.columns - (int64_t)(w.octets - 1) * 8);
    w.begin = 0;
    w.threads = r.apart != 0 ? r.apart / BF16_STEPS : threads_of_row(w.padded_octets, STEPS);
    w.thread = (int)threadIdx.x % w.threads;
    const bool blocks = m.block != 0, bf16 = job.bf16.path != BF16_NONE;
    const uint64_t again = job.again[threadIdx.x / 32];
    const fast_path fast = blocks && !bf16 ? fast_path_of(m, job.q, kind) : FAST_NONE;
    const int groups = BSMI_QUANTIZE_THREADS / w.threads, group = (int)threadIdx.x / w.threads;
    const int64_t all = m.rows * m.batch, apart = (int64_t)gridDim.x * groups;
    row_walk walk = walk_of(p, (int64_t)blockIdx.x * groups + group);
    for (int n = 0; walk.row < all; walk = walk_of(p, walk.row + apart)) {
        w.first = walk.matrix * p.source.batch_stride + walk.r * p.source.row_stride;
        w.index = (uint64_t)(walk.matrix * m.rows + walk.r) * (uint64_t)m.columns;
        w.codes = m.data + walk.matrix * m.batch_bytes + walk.r * m.row_bytes;
        if (!blocks) {
            convert_row(p, (double)job.tensor_scale, w);
            continue;
        }
        w.scales = m.scales + walk.matrix * m.scale_batch_bytes + place_in(job.bf16.places.row, walk.r);
        w.begin = 0;
        if (bf16) {
            quantize_left(p, job.q, r, job.bf16.places.column, w, again, &n);
            continue;
        }
        if (fast != FAST_NONE) {
            switch (kind) {
            case SOURCE_FP32: quantize_by_fast_path<SOURCE_FP32>(fast, p, job.q, job.bf16.places.column, w); break;
            case SOURCE_FP16: quantize_by_fast_path<SOURCE_FP16>(fast, p, job.q, job.bf16.places.column, w); break;
            default: quantize_by_fast_path<SOURCE_BF16>(fast, p, job.q, job.bf16.places.column, w); break;
            }
        }
        if (w.begin < w.padded_octets) quantize_blocks(kind, p, job.q, job.bf16.places.column, w);
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_QUANTIZE_THREADS, 6)
    bsmi_quantize(const __grid_constant__ bsmi_quantize_parameters p)
{
    __shared__ __align__(128) uint4 ring[BF16_RING_BYTES / 16];
    __shared__ quantize_job job;
    const bsmi_device_matrix &m = p.destination;
    const int64_t all = m.columns == 0 ? 0 : m.rows * m.batch;
    /* Memory is at work while one thread thinks.  What the kernel in front of this one writes, if there is one, is the
     * amax alone: the source was there before that began. */
    bf16_rows r = {};
    bf16_reader reader = {};
    if (all > 0 && m.block != 0 && source_serves(p)) {
        const int threads = threads_of_row((int)(m.columns >> 3), BF16_STEPS), groups = BSMI_QUANTIZE_THREADS / threads;
        const int apart = (int)gridDim.x * groups, row = (int)blockIdx.x * groups + (int)threadIdx.x / threads;
        r = make_bf16_rows(p, apart, (int)threadIdx.x & (threads - 1), threads);
        reader = begin_reading(p, r, ring, begin_fast_walk((int)m.rows, (int)all, row, apart));
    }
    const bool reads = r.apart != 0;
    ptx_griddepcontrol_wait();
    const float t = find_tensor_scale(p, { 0, 0 });
    factor_nudges nudges = {};
    if (reads && m.scale == BSM_UE4M3) nudges = make_factors((double)t, m.tensor_scale_divides != 0, &job.bf16);
    if (threadIdx.x % 32 == 0) job.again[threadIdx.x / 32] = 0;
    if (threadIdx.x == 0) {
        job.tensor_scale = t, job.bf16.path = BF16_NONE;
        if (m.block != 0) {
            job.bf16.places = make_places(m.layout);
            job.q = make_quantizer(m, t, p.recipe, p.rounding, p.nonfinite, p.seed, p.source.type != BSM_REAL_FP32);
            if (reads) make_bf16_job(m, job.q, nudges, &job.bf16);
        }
    }
    __syncthreads();
    if (all == 0) return;
    const bool bf16 = job.bf16.path != BF16_NONE;
    if (bf16) quantize_bf16_matrix(p, r, job.bf16, ring, reader, job.again);
    cp_async_wait_group<0>();
    __syncwarp();
    if (!bf16 || job.again[threadIdx.x / 32] != 0 || r.end < (m.columns + 7) >> 3) quantize_rows(p, job, r);
}

/* The largest magnitude -------------------------------------------------------------------------------------------- */

__device__ static inline uint32_t raise_largest(uint32_t largest, const eight &v)
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const uint32_t magnitude = __float_as_uint(v.x[i]) & 0x7fffffff;
        largest = max(largest, magnitude < 0x7f800000 ? magnitude : 0);
    }
    return largest;
}

enum { AMAX_STEPS = 4 };

/* Full octets of a row, four at a time, the last of them rather twice; NaN and infinity are rare. */
__device__ static inline uint32_t largest_of_bf16(const unsigned char *row, int octets, int thread, int threads,
                                                  uint32_t largest)
{
    for (int first = thread; first < octets; first += threads * AMAX_STEPS) {
        uint32_t x[4 * AMAX_STEPS];
#pragma unroll
        for (int i = 0; i < AMAX_STEPS; i++) {
            const uint4 v = ptx_load_16(row + (int64_t)min(first + i * threads, octets - 1) * 16);
            x[4 * i] = v.x, x[4 * i + 1] = v.y, x[4 * i + 2] = v.z, x[4 * i + 3] = v.w;
        }
        const uint32_t most = both_halves(bf16_amax<4 * AMAX_STEPS>(x)) & 0xffff0000;
        if (most < 0x7f800000) {
            largest = max(largest, most);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 4 * AMAX_STEPS; i += 4)
            largest =
                raise_largest(largest, widen<SOURCE_BF16>({ make_uint4(x[i], x[i + 1], x[i + 2], x[i + 3]), {} }));
    }
    return largest;
}

extern "C" __global__ void __launch_bounds__(BSMI_AMAX_THREADS, 12)
    bsmi_amax(const __grid_constant__ bsmi_amax_parameters p)
{
    ptx_griddepcontrol_wait();
    griddepcontrol_launch_dependents();
    const bsmi_device_reals &s = p.source;
    if (s.columns == 0) return;
    const bool fast = is_fast(s), bf16 = fast && s.type == BSM_REAL_BF16;
    const int octets = (int)((s.columns + 7) / 8), full = bf16 ? (int)(s.columns / 8) : 0;
    const int threads = threads_of_row(octets, bf16 ? AMAX_STEPS : STEPS), thread = (int)threadIdx.x % threads;
    const int groups = BSMI_AMAX_THREADS / threads, group = (int)threadIdx.x / threads;
    uint32_t largest = 0;
    for (int64_t row = (int64_t)blockIdx.x * groups + group; row < s.rows * s.batch;
         row += (int64_t)gridDim.x * groups) {
        const row_walk walk = walk_to(s.rows, row);
        const int64_t first = walk.matrix * s.batch_stride + walk.r * s.row_stride;
        if (bf16) largest = largest_of_bf16(s.data + first * 2, full, thread, threads, largest);
        for (int number = full + thread; number < octets; number += threads) {
            const int count = (int)(s.columns - (int64_t)number * 8 < 8 ? s.columns - (int64_t)number * 8 : 8);
            eight v;
            if (!fast || count < 8) v = gather(s, first, number, count);
            else if (s.type == BSM_REAL_FP32)
                v = widen<SOURCE_FP32>(load_numbers<SOURCE_FP32>(s.data + first * 4, number));
            else v = widen<SOURCE_FP16>(load_numbers<SOURCE_FP16>(s.data + first * 2, number));
            largest = raise_largest(largest, v);
        }
    }
    largest = __reduce_max_sync(0xffffffff, largest);
    if (threadIdx.x % 32 == 0 && largest > 0) atomicMax(p.amax, 0x80000000 | largest);
}

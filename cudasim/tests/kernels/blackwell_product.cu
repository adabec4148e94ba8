// One tile, D[M][N] = A[M][K] * B[N][K]^T, by every kind of tcgen05.mma: M is 128 for each CTA, N 64 for each CTA.  A
// CTA alone, or a pair of which each holds half of A and half of B; A through shared memory or written to tensor
// memory; block scales copied by tcgen05.cp or written by tcgen05.st.  One stage: all threads wait for the products of
// 128 bytes of K before the next are loaded.
//
// Host: A and B are row-major in the containers of the kind, maps of bytes with boxes of 128 bytes (A: 128 rows, B: 64
// rows), swizzled by 128 bytes; the scales lie in blocks of 128 x 4, seen as rows of 256 bytes, two rows a block, in
// boxes of the blocks of 128 bytes of K; shape: the instruction descriptor without its scale ids; bytes: what the boxes
// of a CTA load, packed.
#include "blackwell_ptx.cuh"

constexpr int ROWS = 128, COLUMNS = 64, ROW_BYTES = 128, STEPS = 4;
constexpr int A_BYTES = ROWS * ROW_BYTES, B_BYTES = COLUMNS * ROW_BYTES, BLOCK_BYTES = 512;
constexpr int MOST_BLOCKS = 4;
constexpr int AT_B = A_BYTES, AT_SCALES_A = AT_B + B_BYTES, AT_SCALES_B = AT_SCALES_A + MOST_BLOCKS * BLOCK_BYTES;
constexpr int D_COLUMN = 0, A_COLUMN = 128, SCALES_A_COLUMN = 160, SCALES_B_COLUMN = 176, TENSOR_COLUMNS = 256;

template <kind KIND> constexpr bool scaled = KIND >= MXF8F6F4;
// Blocks of 4 scales for 128 bytes of K: one scale a step, two, or four.
template <kind KIND> constexpr int blocks = KIND == MXF8F6F4 ? 1 : KIND == MXF4NVF4_4X ? 4 : 2;

struct arguments {
    const tensor_map *a, *b, *scales_a, *scales_b;
    const u8 *rows_a, *words_a, *words_b; // the same operands, for threads that write them to tensor memory
    u32 *d;
    int k_tiles;
    u32 shape, bytes;
};

// The step's scales: their columns, and which byte of a cell comes first.
template <kind KIND> __device__ __forceinline__ u32 step_shape(u32 shape, int step)
{
    const u32 id = KIND == MXF8F6F4 ? step : KIND == MXF4NVF4_4X ? 0 : step % 2 * 2;
    return scaled<KIND> ? shape | id << 29 | id << 4 : shape;
}
template <kind KIND> __device__ __forceinline__ u32 step_column(int step)
{
    return KIND == MXF8F6F4 ? 0 : KIND == MXF4NVF4_4X ? 4 * step : step / 2 * 4;
}

template <int G> __device__ __forceinline__ void sync_all()
{
    if (G == 1) __syncthreads();
    else cluster_sync();
}

template <kind KIND, int G, bool A_STORED, bool SCALES_STORED>
__device__ __forceinline__ void load(const arguments &x, u32 shared, u32 full, int tile, u32 rank)
{
    const int k = tile * ROW_BYTES, n = rank * COLUMNS;
    if (rank == 0) mbarrier_expect(full, x.bytes * G);
    if (!A_STORED) tma_load_of<G>(shared, x.a, full, k, rank * ROWS);
    tma_load_of<G>(shared + AT_B, x.b, full, k, n);
    if (!scaled<KIND> || SCALES_STORED) return;
    tma_load_of<G>(shared + AT_SCALES_A, x.scales_a, full, 0, (rank * x.k_tiles + tile) * 2 * blocks<KIND>);
    tma_load_of<G>(shared + AT_SCALES_B, x.scales_b, full, 0, tile * 2 * blocks<KIND>);
}

// By all threads: what this CTA's tensor memory needs besides what is copied.
template <kind KIND, bool A_STORED, bool SCALES_STORED>
__device__ __forceinline__ void store(const arguments &x, u32 tensor, int tile, u32 rank)
{
    const int row = threadIdx.x, lane = row % 32;
    const u32 own = tensor + ((u32)row / 32 << 21); // the warp's quarter of the lanes
    if (A_STORED) {
        u32 words[32];
        const u32 *from = (const u32 *)(x.rows_a + ((size_t)(rank * ROWS + row) * x.k_tiles + tile) * ROW_BYTES);
#pragma unroll
        for (int i = 0; i < 32; i++) words[i] = from[i];
        tensor_store_32(own + A_COLUMN, words);
    }
    if (scaled<KIND> && SCALES_STORED)
        for (int i = 0; i < blocks<KIND>; i++) { // every quarter holds a copy of all 128 rows' scales
            const int a = (rank * x.k_tiles + tile) * blocks<KIND> + i, b = tile * blocks<KIND> + i;
            tensor_store_4(own + SCALES_A_COLUMN + 4 * i, *(const uint4 *)(x.words_a + a * BLOCK_BYTES + lane * 16));
            tensor_store_4(own + SCALES_B_COLUMN + 4 * i, *(const uint4 *)(x.words_b + b * BLOCK_BYTES + lane * 16));
        }
    if (A_STORED || (scaled<KIND> && SCALES_STORED)) tensor_wait_store();
}

template <kind KIND, int G, bool A_STORED, bool SCALES_STORED>
__device__ __forceinline__ void multiply(const arguments &x, u32 shared, u32 tensor, bool first)
{
    if (scaled<KIND> && !SCALES_STORED)
        for (int i = 0; i < blocks<KIND>; i++) {
            tensor_copy_scales<G>(tensor + SCALES_A_COLUMN + 4 * i, shared + AT_SCALES_A + i * BLOCK_BYTES);
            tensor_copy_scales<G>(tensor + SCALES_B_COLUMN + 4 * i, shared + AT_SCALES_B + i * BLOCK_BYTES);
        }
#pragma unroll
    for (int step = 0; step < STEPS; step++) { // 32 bytes of K each
        const u64 a = A_STORED ? tensor + A_COLUMN + 8 * step : tensor_descriptor(shared) + 2 * step;
        const u32 column = step_column<KIND>(step);
        tensor_mma<KIND, G, A_STORED>(tensor + D_COLUMN, a, tensor_descriptor(shared + AT_B) + 2 * step,
                                      step_shape<KIND>(x.shape, step), tensor + SCALES_A_COLUMN + column,
                                      tensor + SCALES_B_COLUMN + column, !first || step != 0);
    }
}

// D of 32 bits, or (HALVES) of f16, which lies in the low half of each cell.
template <int G, bool HALVES> __device__ __forceinline__ void store_d(u32 *d, u32 tensor, u32 rank)
{
    constexpr int EACH = HALVES ? 64 : 32; // columns in 32 registers
    const int row = threadIdx.x, n = G * COLUMNS;
    u32 *to = d + (size_t)(rank * ROWS + row) * (HALVES ? n / 2 : n);
    for (int first = 0; first < n; first += EACH, to += 32) {
        u32 r[32];
        const u32 from = tensor + D_COLUMN + first + ((u32)row / 32 << 21);
        if constexpr (HALVES) tensor_load_halves(r, from);
        else tensor_load_32(r, from);
        tensor_wait_load();
#pragma unroll
        for (int i = 0; i < 32; i += 4) *(uint4 *)(to + i) = make_uint4(r[i], r[i + 1], r[i + 2], r[i + 3]);
    }
}

template <kind KIND, int G, bool A_STORED, bool SCALES_STORED, bool HALVES>
__device__ __forceinline__ void product(const arguments &x)
{
    extern __shared__ __align__(1024) u8 memory[];
    __shared__ u64 barriers[2];
    __shared__ u32 address;
    const u32 shared = shared_address(memory), rank = G == 1 ? 0 : cluster_rank();
    const u32 full = shared_address(&barriers[0]), done = shared_address(&barriers[1]);
    const bool first_warp = threadIdx.x < 32;
    if (first_warp) tensor_alloc<G, TENSOR_COLUMNS>(shared_address(&address));
    if (threadIdx.x == 0) {
        mbarrier_init(full, 1);
        mbarrier_init(done, 1);
        if (G > 1) fence_mbarrier_init();
    }
    sync_all<G>();
    const u32 tensor = address;
    for (int tile = 0; tile < x.k_tiles; tile++) {
        if (A_STORED || (scaled<KIND> && SCALES_STORED)) {
            store<KIND, A_STORED, SCALES_STORED>(x, tensor, tile, rank);
            tensor_fence_before();
            sync_all<G>();
            tensor_fence_after();
        }
        if (first_warp && elect()) {
            load<KIND, G, A_STORED, SCALES_STORED>(x, shared, full, tile, rank);
            if (rank == 0) {
                mbarrier_wait<(G > 1)>(full, tile & 1);
                multiply<KIND, G, A_STORED, SCALES_STORED>(x, shared, tensor, tile == 0);
                tensor_commit<G>(done);
            }
        }
        __syncwarp();
        mbarrier_wait<(G > 1)>(done, tile & 1);
        tensor_fence_after();
    }
    store_d<G, HALVES>(x.d, tensor, rank);
    sync_all<G>();
    if (first_warp) tensor_dealloc<G, TENSOR_COLUMNS>(tensor);
}

#define KERNEL(name, KIND, G, A_STORED, SCALES_STORED, HALVES, ...) \
    extern "C" __global__ void __launch_bounds__(128) __VA_ARGS__ name( \
        const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b, \
        const __grid_constant__ tensor_map scales_a, const __grid_constant__ tensor_map scales_b, const u8 *rows_a, \
        const u8 *words_a, const u8 *words_b, u32 *d, int k_tiles, u32 shape, u32 bytes) \
    { \
        product<KIND, G, A_STORED, SCALES_STORED, HALVES>( \
            { &a, &b, &scales_a, &scales_b, rows_a, words_a, words_b, d, k_tiles, shape, bytes }); \
    }
#define PLAIN(name, KIND) \
    KERNEL(name, KIND, 1, false, false, false) \
    KERNEL(name##_a_stored, KIND, 1, true, false, false) \
    KERNEL(name##_pair, KIND, 2, false, false, false, __cluster_dims__(2, 1, 1)) \
    KERNEL(name##_pair_a_stored, KIND, 2, true, false, false, __cluster_dims__(2, 1, 1))
#define HALVES(name, KIND) \
    KERNEL(name, KIND, 1, false, false, true) \
    KERNEL(name##_pair, KIND, 2, false, false, true, __cluster_dims__(2, 1, 1))
#define SCALED(name, KIND) \
    KERNEL(name, KIND, 1, false, false, false) \
    KERNEL(name##_stored, KIND, 1, true, true, false) \
    KERNEL(name##_pair, KIND, 2, false, false, false, __cluster_dims__(2, 1, 1)) \
    KERNEL(name##_pair_stored, KIND, 2, true, true, false, __cluster_dims__(2, 1, 1))
PLAIN(f16, F16)
PLAIN(tf32, TF32)
PLAIN(i8, I8)
PLAIN(f8f6f4, F8F6F4)
HALVES(f16_to_f16, F16)
HALVES(f8f6f4_to_f16, F8F6F4)
SCALED(mxf8f6f4, MXF8F6F4)
SCALED(mxf4, MXF4)
SCALED(mxf4nvf4_2x, MXF4NVF4_2X)
SCALED(mxf4nvf4_4x, MXF4NVF4_4X)

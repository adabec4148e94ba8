// A product by one kernel of ThunderKittens, whose source thunder_kittens.py has put into kernel.cuh up to its host
// code: an instance of the kernel, and a program on the driver API that launches it on whole numbers, whose product is
// exact.  KERNEL: 1 mxfp8 (sm_100a), 2 nvfp4 (sm_100a), 3 fp8 with a scale a row (sm_90a), 4 bf16 (sm_90a).
//
//     thunder_kittens KERNEL.ptx M N K      exit status 0: right; 1: not; 2: a call fails
#include "kernel.cuh"

#include <cuda.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if KERNEL == 1
using config = mxfp8_gemm::config<COLUMNS, 4, 4, 4, 2, true>;
using globals = mxfp8_gemm::globals<config>;
extern "C" __global__ void __launch_bounds__(config::NUM_THREADS, 1) product(const __grid_constant__ globals g)
{
    mxfp8_gemm::kernel<config>(g);
}
#elif KERNEL == 2
using config = nvfp4_gemm::config<COLUMNS, 4, 4, 4, 2, true>;
using globals = nvfp4_gemm::globals<config>;
extern "C" __global__ void __launch_bounds__(config::NUM_THREADS, 1) product(const __grid_constant__ globals g)
{
    nvfp4_gemm::kernel<config>(g);
}
#elif KERNEL == 3
using globals = matmul_layout::globals;
void *instance() { return reinterpret_cast<void *>(&prototype::lcf::kernel<matmul_template<8>>); }
#else
using globals = matmul_globals;
#endif

enum { SMS = 2, BLOCK = KERNEL == 1 ? 32 : 16 };
static constexpr bool FP4 = KERNEL == 2, ROWS = KERNEL == 3, BF16 = KERNEL == 4, BLOCKS = !ROWS && !BF16;

static uint64_t state = 1;
static int random_below(int bound)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return static_cast<int>((z ^ z >> 31) % static_cast<uint64_t>(bound));
}

static void call(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS) return;
    fprintf(stderr, "%s gives %d\n", what, static_cast<int>(result));
    exit(2);
}
#define OK(c) call(c, #c)

static CUdeviceptr buffer(const void *bytes, size_t size)
{
    CUdeviceptr at;
    OK(cuMemAlloc(&at, size));
    OK(cuMemcpyHtoD(at, bytes, size));
    return at;
}

// Numbers from -2 to 2, and powers of two as scales: of blocks along K, of rows, or none.
struct operand {
    std::vector<double> number;
    CUdeviceptr codes, scales;
};

// across: columns of K lie behind each other.
static operand make(size_t rows, size_t k, bool across)
{
    static const uint8_t e4m3[] = { 0x00, 0x38, 0xb8, 0x40, 0xc0 }, e2m1[] = { 0, 2, 10, 4, 12 };
    static const uint16_t bf16s[] = { 0, 0x3f80, 0xbf80, 0x4000, 0xc000 };
    static const double values[] = { 0, 1, -1, 2, -2 };
    operand o{ std::vector<double>(rows * k), 0, 0 };
    std::vector<uint8_t> codes(rows * k * (BF16 ? 2 : 1) / (FP4 ? 2 : 1)), scales(rows * k / BLOCK);
    std::vector<float> row_scales(rows);
    for (size_t r = 0; r < rows; r++) {
        row_scales[r] = ldexpf(1, random_below(3) - 1);
        for (size_t b = 0; b < k / BLOCK; b++) {
            const int exponent = random_below(3) - 1;
            const size_t group = (r / 128 * (k / BLOCK / 4) + b / 4) * 512;
            if (BLOCKS)
                scales[group + r % 32 * 16 + r / 32 % 4 * 4 + b % 4] =
                    static_cast<uint8_t>(FP4 ? (exponent + 7) << 3 : exponent + 127);
            for (size_t i = r * k + b * BLOCK; i < r * k + (b + 1) * BLOCK; i++) {
                const int n = random_below(5);
                const size_t at = across ? i % k * rows + r : i;
                if (FP4) codes[i / 2] |= static_cast<uint8_t>(e2m1[n] << (i % 2 * 4));
                else if (BF16) memcpy(&codes[2 * at], &bf16s[n], 2);
                else codes[i] = e4m3[n];
                o.number[i] = values[n] * (ROWS ? row_scales[r] : BF16 ? 1 : ldexp(1, exponent));
            }
        }
    }
    o.codes = buffer(codes.data(), codes.size());
    o.scales = ROWS ? buffer(row_scales.data(), rows * sizeof(float)) : buffer(scales.data(), scales.size());
    return o;
}

static void launch(CUfunction f, const operand &a, const operand &b, CUdeviceptr d, size_t m, size_t n, size_t k)
{
    CUlaunchAttribute cluster{};
    CUlaunchConfig c{};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
#if KERNEL == 1
    const globals::A_gl ag{ reinterpret_cast<fp8e4m3 *>(a.codes), nullptr, nullptr, m, k };
    const globals::A_sc_gl asg{ reinterpret_cast<fp8e8m0 *>(a.scales), m / 128, k / 128, nullptr, nullptr };
    const globals::B_gl bg{ reinterpret_cast<fp8e4m3 *>(b.codes), nullptr, nullptr, n, k };
    const globals::B_sc_gl bsg{ reinterpret_cast<fp8e8m0 *>(b.scales), n / 128, k / 128, nullptr, nullptr };
    const globals::D_gl dg{ reinterpret_cast<bf16 *>(d), nullptr, nullptr, m, n };
    globals g{ ag, asg, bg, bsg, dg };
#elif KERNEL == 2
    static const float one = 1;
    const CUdeviceptr whole = buffer(&one, sizeof one);
    const globals::A_fp4x2_gl ag{ reinterpret_cast<fp4e2m1_2 *>(a.codes), nullptr, nullptr, m, k / 2 };
    const globals::A_sc_gl asg{ reinterpret_cast<half *>(a.scales), nullptr, m / 128, k / 64, nullptr };
    const globals::A_sc_global_gl awg{ reinterpret_cast<float *>(whole), nullptr, nullptr, nullptr, nullptr };
    const globals::B_fp4x2_gl bg{ reinterpret_cast<fp4e2m1_2 *>(b.codes), nullptr, nullptr, n, k / 2 };
    const globals::B_sc_gl bsg{ reinterpret_cast<half *>(b.scales), nullptr, n / 128, k / 64, nullptr };
    const globals::B_sc_global_gl bwg{ reinterpret_cast<float *>(whole), nullptr, nullptr, nullptr, nullptr };
    const globals::D_gl dg{ reinterpret_cast<bf16 *>(d), nullptr, nullptr, m, n };
    globals g{ ag, asg, awg, bg, bsg, bwg, dg };
#elif KERNEL == 4
    const globals::tile_gl ag{ reinterpret_cast<bf16 *>(a.codes), nullptr, nullptr, m, k };
    const globals::tile_gl bg{ reinterpret_cast<bf16 *>(b.codes), nullptr, nullptr, k, n };
    const globals::tile_gl dg{ reinterpret_cast<bf16 *>(d), nullptr, nullptr, m, n };
    globals g{ ag, bg, dg, static_cast<int>(k) };
#else
    const matmul_layout::a_layout ag{ reinterpret_cast<fp8e4m3 *>(a.codes), nullptr, nullptr, m, k };
    const matmul_layout::b_layout bg{ reinterpret_cast<fp8e4m3 *>(b.codes), nullptr, nullptr, n, k };
    const matmul_layout::c_layout dg{ reinterpret_cast<float *>(d), nullptr, nullptr, m, n };
    const matmul_layout::scale_a_layout sa{ reinterpret_cast<float *>(a.scales), nullptr, nullptr, nullptr, m };
    const matmul_layout::scale_b_layout sb{ reinterpret_cast<float *>(b.scales), nullptr, nullptr, nullptr, n };
    globals g{ ag, bg, dg, sa, sb };
#endif
    c.gridDimX = SMS;
    c.gridDimY = c.gridDimZ = c.blockDimY = c.blockDimZ = 1;
#if KERNEL == 4
    cluster.value.clusterDim.x = 1;
    c.gridDimX = static_cast<unsigned>(n / (BLOCK_SIZE * N_BLOCK));
    c.gridDimY = static_cast<unsigned>(m / (BLOCK_SIZE * M_BLOCK));
    c.blockDimX = NUM_THREADS;
    c.sharedMemBytes = 200000;
#elif KERNEL == 3
    cluster.value.clusterDim.x = 1;
    c.blockDimX = prototype::detail::NUM_THREADS_v<matmul_template<8>>;
    c.sharedMemBytes = MAX_SHARED_MEMORY - 1024;
#else
    cluster.value.clusterDim.x = config::CLUSTER_SIZE;
    c.blockDimX = config::NUM_THREADS;
    c.sharedMemBytes = static_cast<unsigned>(g.dynamic_shared_memory());
#endif
    c.attrs = &cluster;
    c.numAttrs = 1;
    void *parameters[] = { &g };
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(c.sharedMemBytes)));
    OK(cuLaunchKernelEx(&c, f, parameters, nullptr));
    OK(cuCtxSynchronize());
}

static double rounded(double exact)
{
    if (ROWS) return exact;
    const float f = static_cast<float>(exact);
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    float r;
    memcpy(&r, &bits, sizeof r);
    return r;
}

static bool is_right(const operand &a, const operand &b, CUdeviceptr d, size_t m, size_t n, size_t k)
{
    const size_t element = ROWS ? 4 : 2;
    std::vector<uint8_t> bytes(m * n * element);
    OK(cuMemcpyDtoH(bytes.data(), d, bytes.size()));
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < k; l++) sum += a.number[i * k + l] * b.number[j * k + l];
            uint32_t bits = 0;
            float got;
            memcpy(&bits, &bytes[(i * n + j) * element], element);
            if (!ROWS) bits <<= 16;
            memcpy(&got, &bits, sizeof got);
            if (got == rounded(sum)) continue;
            fprintf(stderr, "D[%zu][%zu] is %g, not %g\n", i, j, got, rounded(sum));
            return false;
        }
    return true;
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    CUfunction f;
    unsigned count = 0;
    if (argc != 5) return 2;
    const size_t m = strtoul(argv[2], nullptr, 10), n = strtoul(argv[3], nullptr, 10),
                 k = strtoul(argv[4], nullptr, 10);
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoad(&module, argv[1]));
    if (!BLOCKS) {                        // the only kernel of its module
        OK(cuModuleGetFunctionCount(&count, module));
        if (count != 1) return 2;
        OK(cuModuleEnumerateFunctions(&f, 1, module));
    } else {
        OK(cuModuleGetFunction(&f, module, "product"));
    }
    const operand a = make(m, k, false), b = make(n, k, BF16);
    const std::vector<uint8_t> nothing(m * n * 4, 0xee);
    const CUdeviceptr d = buffer(nothing.data(), m * n * (ROWS ? 4 : 2));
    launch(f, a, b, d, m, n, k);
    return is_right(a, b, d, m, n, k) ? 0 : 1;
}

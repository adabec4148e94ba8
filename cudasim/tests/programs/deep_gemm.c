/* A product by one kernel of DeepGEMM: the PTX that nvcc made of an instance (deep_gemm.py), its operands, and the
 * result as the host computes it.  Not in the list of `make test`: the sources lie elsewhere.
 *
 *     deep_gemm KERNEL.ptx KIND B M N K BLOCK_M BLOCK_N CLUSTER MULTICAST THREADS SHARED GRANULARITY
 *
 * KIND: 1d2d, 1d1d (sm_90a: scales are fp32, A's by 1 x 128, B's by 128 x 128 or 1 x 128; D is bf16, or fp32 and added
 * to), mx, mx-swapped (sm_100a: UE8M0 scales of GRANULARITY elements of K, D is bf16).  B: e4m3 or e2m1.  MULTICAST: a
 * or b, the operand of which the CTAs of a cluster have halves.  Each product runs on whole numbers, whose result is
 * exact, and on wide ones, whose error is bounded.  Exit status 0: right; 1: not; 2: a call fails, or the words are
 * wrong. */
#include <math.h>
#include <stdlib.h>

#include "tests/reference/scaled_product.h"
#include "tests/support/driver_api.h"

#define CALLS(X) \
    X(cuCtxSynchronize, (void)) X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
    X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
    X(cuModuleLoad, (CUmodule *, const char *)) X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
    X(cuModuleGetFunctionCount, (unsigned *, CUmodule)) \
    X(cuModuleEnumerateFunctions, (CUfunction *, unsigned, CUmodule)) X(cuFuncSetAttribute, (CUfunction, int, int)) \
    X(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **)) \
    X(cuTensorMapEncodeTiled, (CUtensorMap *, int, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, \
                               const cuuint32_t *, const cuuint32_t *, int, int, int, int))
DRIVER_CALLS(CALLS)

enum { BLOCK_K = 128, SMS = 2, BEYOND = 16 };            /* columns of D behind N, which must stay as they were */
enum { UINT8 = 0, INT32 = 3, FLOAT32 = 7, BFLOAT16 = 9, FP4_SPREAD = 14, NO_SWIZZLE = 0, SWIZZLE_128B = 3 };

static struct {
    const char *kind;
    bool scales_are_floats, adds, swapped, by_block, b_is_fp4, multicast_a;
    uint32_t m, n, k, block_m, block_n, cluster, threads, shared, granularity;
} is;

/* An operand: codes by row, and a scale of each granularity elements (or, of B, each 128 x 128). */
struct operand {
    uint32_t rows, groups;
    enum element type;
    uint8_t *code;
    double *scale;
};

static double value(const struct operand *o, uint32_t row, uint32_t k)
{
    return element_value(o->type, o->code[(size_t)row * is.k + k]);
}

static double scale(const struct operand *o, uint32_t row, uint32_t k)
{
    return o->scale[(size_t)row * o->groups + k / is.granularity];
}

static uint8_t random_code(struct test *t, enum element type, bool whole)
{
    static const uint8_t e4m3[] = { 0x00, 0x38, 0xb8, 0x40, 0xc0 }, e2m1[] = { 0, 2, 10, 4, 12 }; /* 0, 1, -1, 2, -2 */
    if (whole) return type == E_E4M3 ? e4m3[rnd_below(t, 5)] : e2m1[rnd_below(t, 5)];
    if (type == E_E2M1) return (uint8_t)rnd_below(t, 16);
    const uint8_t code = (uint8_t)rnd_below(t, 256);
    return (code & 0x7f) == 0x7f ? 0x7e : code;                                /* no NaN */
}

static struct operand operand(struct test *t, uint32_t rows, enum element type, bool by_block, bool whole)
{
    struct operand o = { .rows = rows, .groups = (is.k + is.granularity - 1) / is.granularity, .type = type };
    o.code = malloc((size_t)rows * is.k);
    o.scale = malloc((size_t)rows * o.groups * sizeof *o.scale);
    for (size_t i = 0; i < (size_t)rows * is.k; i++) o.code[i] = random_code(t, type, whole);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t g = 0; g < o.groups; g++) {
            double s = ldexp(1, (int)rnd_between(t, whole ? -1 : -6, whole ? 1 : 6));
            if (!whole && is.scales_are_floats) s = (float)(s * (1 + (double)rnd_below(t, 1 << 20) / (1 << 20)));
            o.scale[(size_t)r * o.groups + g] = by_block && r % 128 != 0 ? o.scale[(size_t)(r - 1) * o.groups + g] : s;
        }
    return o;
}

/* ---- on the device ---- */

static CUdeviceptr buffer(struct test *t, const void *bytes, size_t size)
{
    CUdeviceptr at = 0;
    OK(t, cuMemAlloc_v2(&at, size));
    OK(t, cuMemcpyHtoD_v2(at, bytes, size));
    return at;
}

static CUtensorMap map(struct test *t, CUdeviceptr at, int type, uint64_t columns, uint64_t rows, uint64_t pitch,
                       uint32_t box_columns, uint32_t box_rows, int swizzle)
{
    CUtensorMap made = { { 0 } };
    OK(t, cuTensorMapEncodeTiled(&made, type, 2, (void *)(uintptr_t)at, (cuuint64_t[]){ columns, rows }, &pitch,
                                 (cuuint32_t[]){ box_columns, box_rows }, (cuuint32_t[]){ 1, 1 }, 0, swizzle, 3, 0));
    if (!is.scales_are_floats) made.opaque[1] &= ~(UINT64_C(1) << 21);  /* Blackwell; bit 85: docs/design.md */
    return made;
}

static CUtensorMap codes(struct test *t, const struct operand *o, uint32_t box_rows)
{
    const bool fp4 = o->type == E_E2M1;
    const size_t row = fp4 ? is.k / 2 : is.k;
    uint8_t *packed = calloc(o->rows, row);
    for (uint32_t r = 0; r < o->rows; r++)
        for (uint32_t k = 0; k < is.k; k++) {
            const uint8_t code = o->code[(size_t)r * is.k + k];
            packed[r * row + (fp4 ? k / 2 : k)] |= (uint8_t)(fp4 && k % 2 != 0 ? code << 4 : code);
        }
    const CUtensorMap made = map(t, buffer(t, packed, o->rows * row), fp4 ? FP4_SPREAD : UINT8, is.k, o->rows, row,
                                 BLOCK_K, box_rows, SWIZZLE_128B);
    free(packed);
    return made;
}

static uint32_t up_to_4(uint32_t rows) { return (rows + 3) / 4 * 4; }

/* Groups of K by rows: floats, or four scales of one row in a word. */
static CUtensorMap scales(struct test *t, const struct operand *o, uint32_t box_rows)
{
    const uint32_t pitch = up_to_4(o->rows), lines = is.scales_are_floats ? o->groups : (o->groups + 3) / 4;
    uint32_t *words = calloc((size_t)pitch * lines, sizeof *words);
    for (uint32_t r = 0; r < o->rows; r++)
        for (uint32_t g = 0; g < o->groups; g++) {
            const float s = (float)o->scale[(size_t)r * o->groups + g];
            if (is.scales_are_floats) memcpy(&words[(size_t)g * pitch + r], &s, sizeof s);
            else words[(size_t)(g / 4) * pitch + r] |= (uint32_t)(ilogbf(s) + 127) << 8 * (g % 4);
        }
    const CUdeviceptr at = buffer(t, words, (size_t)pitch * lines * 4);
    free(words);
    return map(t, at, is.scales_are_floats ? FLOAT32 : INT32, pitch, lines, 4 * (uint64_t)pitch, box_rows, 1,
               NO_SWIZZLE);
}

/* B's scales of 128 x 128, rows of them by K. */
static CUdeviceptr block_scales(struct test *t, const struct operand *o)
{
    const uint32_t rows = (o->rows + 127) / 128;
    float *s = malloc((size_t)rows * o->groups * sizeof *s);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t g = 0; g < o->groups; g++)
            s[(size_t)r * o->groups + g] = (float)o->scale[(size_t)r * 128 * o->groups + g];
    const CUdeviceptr at = buffer(t, s, (size_t)rows * o->groups * sizeof *s);
    free(s);
    return at;
}

/* The widest swizzle that divides a row of so many bytes, as DeepGEMM chooses it. */
static uint32_t swizzle_of(uint32_t bytes)
{
    uint32_t s = 128;
    while (bytes % s != 0) s /= 2;
    return s;
}

static CUtensorMap result(struct test *t, CUdeviceptr d, uint32_t element)
{
    const uint64_t pitch = (uint64_t)(is.n + BEYOND) * element;
    const uint32_t swizzle = swizzle_of(is.block_n * element);
    if (is.scales_are_floats && element == 4)
        return map(t, d, FLOAT32, is.n, is.m, pitch, is.block_n, 64, NO_SWIZZLE);
    return map(t, d, BFLOAT16, is.n, is.m, pitch, swizzle / 2, is.swapped ? 16 : is.block_m < 128 ? is.block_m : 128,
               swizzle == 128 ? 3 : swizzle == 64 ? 2 : swizzle == 32 ? 1 : 0);
}

static void launch(struct test *t, CUfunction f, const struct operand *a, const struct operand *b, CUdeviceptr d,
                   uint32_t element)
{
    const uint32_t halves_a = is.kind[0] == 'm' && is.multicast_a ? is.cluster : 1,
                   halves_b = is.kind[0] == 'm' && !is.multicast_a ? is.cluster : 1;
    CUtensorMap map_a = codes(t, a, is.block_m / halves_a), map_b = codes(t, b, is.block_n / halves_b),
                map_d = result(t, d, element), map_sa = scales(t, a, is.block_m), map_sb;
    CUdeviceptr sb = 0, none = 0;
    if (is.by_block) sb = block_scales(t, b);
    else map_sb = scales(t, b, is.block_n);
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
    attribute.value.clusterDim.x = is.cluster;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    const CUlaunchConfig c = { SMS, 1, 1, is.threads, 1, 1, is.shared, NULL, &attribute, 1 };
    void *by_block[] = { &sb, &none, &is.m, &is.n, &is.k, &map_a, &map_b, &map_d, &map_sa },
         *adding[] = { &none, &none, &none, &none, &is.m, &is.n, &is.k, &map_a, &map_b, &map_sa, &map_sb, &map_d },
         *scaled[] = { &none, &is.m, &is.n, &is.k, &map_a, &map_b, &map_sa, &map_sb, &map_d };
    OK(t, cuLaunchKernelEx(&c, f, is.by_block ? by_block : is.adds ? adding : scaled, NULL));
    OK(t, cuCtxSynchronize());
}

/* ---- on the host ---- */

static double bf16_value(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return f;
}

static double round_bf16(double exact)
{
    const float f = (float)exact;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bf16_value((uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

struct sum { double exact, bound; };

/* An element of the product, and how far a kernel may be off.  A tensor core adds 32 products and what it has so far
 * aligned to the largest of them, and keeps 13 bits behind its leading one at least (Hopper, fp8).  Kernels whose
 * scales are floats begin anew each 128 of K, and add in fp32, as the rest is. */
static struct sum product_at(const struct operand *a, const struct operand *b, uint32_t i, uint32_t j)
{
    struct sum s = { 0, 0 };
    double part = 0, lost = 0, magnitude = 0;
    for (uint32_t k = 0; k < is.k; k += 32) {
        if (is.scales_are_floats && k % BLOCK_K == 0) s.bound += lost, part = lost = 0;
        double largest = fabs(part) + lost;
        for (uint32_t l = k; l < k + 32; l++) {
            const double term = value(a, i, l) * scale(a, i, l) * value(b, j, l) * scale(b, j, l);
            if (fabs(term) > largest) largest = fabs(term);
            part += term, s.exact += term, magnitude += fabs(term);
        }
        lost += ldexp(33 * largest, -13);
    }
    s.bound += lost + ldexp(magnitude, -20);
    return s;
}

/* Whole numbers are exact, and rounded once to D's type; c: what D held. */
static bool is_right(struct test *t, const struct operand *a, const struct operand *b, bool whole, const float *c,
                     const uint8_t *d, uint32_t element)
{
    const size_t pitch = is.n + BEYOND;
    for (uint32_t i = 0; i < is.m; i++)
        for (uint32_t j = 0; j < pitch; j++) {
            uint32_t bits = 0;
            float wide;
            memcpy(&bits, d + (i * pitch + j) * element, element);
            memcpy(&wide, &bits, sizeof wide);
            const double got = element == 2 ? bf16_value((uint16_t)bits) : wide, before = c[i * pitch + j];
            struct sum s = { before, 0 };
            if (j < is.n) s = product_at(a, b, i, j);
            if (j < is.n && is.adds) s.exact += before;
            if (element == 2 && j < is.n) {
                s.bound += ldexp(fabs(s.exact) + s.bound, -9);
                if (whole) s.exact = round_bf16(s.exact);
            }
            if (fabs(got - s.exact) <= (whole || j >= is.n ? 0 : s.bound)) continue;
            FAIL(t, "D[%u][%u] is %g, not %g within %g", i, j, got, s.exact, whole ? 0 : s.bound);
            return false;
        }
    return true;
}

static bool run(struct test *t, CUfunction f, bool whole)
{
    const struct operand a = operand(t, is.m, E_E4M3, false, whole),
                         b = operand(t, is.n, is.b_is_fp4 ? E_E2M1 : E_E4M3, is.by_block, whole);
    const uint32_t element = is.adds ? 4 : 2;
    const size_t count = (size_t)is.m * (is.n + BEYOND);
    float *c = malloc(count * sizeof *c);
    uint8_t *d = malloc(count * element);
    for (size_t i = 0; i < count; i++) {
        c[i] = (float)rnd_between(t, -9, 9);
        uint32_t bits;
        memcpy(&bits, &c[i], sizeof bits);
        if (element == 2) bits >>= 16;
        memcpy(d + i * element, &bits, element);
    }
    const CUdeviceptr at = buffer(t, d, count * element);
    launch(t, f, &a, &b, at, element);
    if (t->failures == 0) OK(t, cuMemcpyDtoH_v2(d, at, count * element));
    const bool right = t->failures == 0 && is_right(t, &a, &b, whole, c, d, element);
    free(c), free(d), free(a.code), free(a.scale), free(b.code), free(b.scale);
    return right;
}

static bool read_words(char **word)
{
    uint32_t *const numbers[] = { &is.m, &is.n, &is.k, &is.block_m, &is.block_n, &is.cluster };
    is.kind = word[0];
    is.by_block = strcmp(is.kind, "1d2d") == 0;
    is.adds = strcmp(is.kind, "1d1d") == 0;
    is.swapped = strcmp(is.kind, "mx-swapped") == 0;
    is.scales_are_floats = is.by_block || is.adds;
    is.b_is_fp4 = strcmp(word[1], "e2m1") == 0;
    for (int i = 0; i < 6; i++) *numbers[i] = (uint32_t)strtoul(word[2 + i], NULL, 10);
    is.multicast_a = word[8][0] == 'a';
    is.threads = (uint32_t)strtoul(word[9], NULL, 10);
    is.shared = (uint32_t)strtoul(word[10], NULL, 10);
    is.granularity = (uint32_t)strtoul(word[11], NULL, 10);
    return is.m != 0 && is.n != 0 && is.k != 0 && is.block_m != 0 && is.block_n != 0 && is.cluster != 0
           && is.threads != 0 && is.granularity != 0 && (is.scales_are_floats || strncmp(is.kind, "mx", 2) == 0);
}

int main(int argc, char **argv)
{
    struct test t = { .name = "deep_gemm", .seed = 1, .state = 1 };
    CUmodule module = NULL;
    CUfunction f = NULL;
    unsigned count = 0;
    if (argc != 14 || !read_words(argv + 2)) return 2;
    driver_begin(&t);
    find_calls(&t);
    OK(&t, cuModuleLoad(&module, argv[1]));
    if (t.failures == 0) OK(&t, cuModuleGetFunctionCount(&count, module));
    if (count != 1) FAIL(&t, "%s has %u kernels", argv[1], count);
    else OK(&t, cuModuleEnumerateFunctions(&f, 1, module));
    if (f != NULL) OK(&t, cuFuncSetAttribute(f, 8, (int)is.shared));
    if (t.failures != 0) return 2;
    const bool whole = run(&t, f, true), wide = whole && run(&t, f, false);
    return wide ? 0 : 1;
}

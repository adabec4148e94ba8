/* The model by which plans choose among kernels for Blackwell's tensor memory: beside figures that others measured, and
 * whether each kernel is worth its place by it. */
#include "cuda/driver/device.h"
#include "plan/cuda_cost.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

enum { SMS = 148, MOST_INSTANCES = 16 };

/* A B200 as far as the model looks at it: a CTA's 512 columns of tensor memory leave no room for a second one. */
static struct bsmi_cuda_gpu *b200(void)
{
    struct bsmi_cuda_gpu *gpu = calloc(1, sizeof *gpu);
    if (gpu == NULL) abort();
    gpu->sm_count = SMS;
    for (int i = 0; i < bsmi_gemm_instance_count; i++)
        gpu->gemm_clusters[i] = SMS / bsmi_gemm_cluster(&bsmi_gemm_instances[i]);
    return gpu;
}

static struct bsmi_product product_of(bsm_format a, bsm_format b, int64_t m, int64_t n, int64_t k, int64_t groups)
{
    struct bsmi_product p = { .m = m, .n = n, .k = k, .batch = 1, .groups = groups };
    p.a.format = a, p.b.format = b;
    p.a.rows = m, p.b.rows = n;
    p.a.columns = p.b.columns = k;
    p.a.batch = 1, p.b.batch = groups > 0 ? groups : 1;
    return p;
}

static int instance(struct test *t, const char *name)
{
    for (int i = 0; i < bsmi_gemm_instance_count; i++)
        if (strcmp(bsmi_gemm_instances[i].name, name) == 0) return i;
    FAIL(t, "there is no kernel %s", name);
    return 0;
}

/* Triton's Gluon tutorial on a B200, 8192 x 8192 x 8192, specialized warps: tiles of 128 x 256, one CTA. */
static void figures_of_others(struct test *t)
{
    static const struct { bsm_format a, b; const char *kernel; double teraflops; } others[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, "cuda_tcgen05_mxf8f6f4_128x256", 2378 },
        { BSM_MXFP4, BSM_MXFP4, "cuda_tcgen05_mxf4_128x256", 4871 },
        { BSM_MXFP8_E4M3, BSM_MXFP4, "cuda_tcgen05_mxf8f6f4_128x256", 2616 },
        { BSM_NVFP4, BSM_NVFP4, "cuda_tcgen05_mxf4nvf4_128x256", 4847 },
    };
    struct bsmi_cuda_gpu *gpu = b200();
    double squares = 0;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const struct bsmi_product p = product_of(others[i].a, others[i].b, 8192, 8192, 8192, 0);
        const double told = 2e-3 * 8192 * 8192 * 8192 / bsmi_cuda_cost(gpu, instance(t, others[i].kernel), &p),
                     error = told / others[i].teraflops - 1;
        squares += error * error;
        if (fabs(error) > 0.08) FAIL(t, "%s: %.0f TFLOP/s for %.0f", others[i].kernel, told, others[i].teraflops);
    }
    CHECK(t, sqrt(squares / 4) < 0.06);
    free(gpu);
}

/* Codes in tiles of fewer than 32 rows: products with no more rows, and no groups. */
static bool serves(const struct bsmi_gemm_instance *g, const struct bsmi_product *p)
{
    return g->operands == BSMI_OPERANDS_BF16 || g->tile_rows >= 32 || (p->groups == 0 && p->m <= g->tile_rows);
}

/* How much longer the product takes without the instance that is best for it. */
static void look_at(const struct bsmi_cuda_gpu *gpu, const int *kernels, int count, const struct bsmi_product *p,
                    double *loss)
{
    double least = INFINITY, second = INFINITY;
    int best = -1;
    for (int i = 0; i < count; i++) {
        if (!serves(&bsmi_gemm_instances[kernels[i]], p)) continue;
        const double time = bsmi_cuda_cost(gpu, kernels[i], p);
        if (time < least) second = least, least = time, best = i;
        else if (time < second) second = time;
    }
    loss[best] = fmax(loss[best], second / least - 1);
}

/* By the model each instance saves 4 % at least somewhere. */
static void each_instance_is_worth_its_place(struct test *t)
{
    static const struct { bsm_format format; const char *kind; } kinds[] = { { BSM_MXFP8_E4M3, "mxf8f6f4" },
                                                                             { BSM_MXFP4, "mxf4" },
                                                                             { BSM_NVFP4, "mxf4nvf4" },
                                                                             { BSM_FORMAT_BF16, "f16" } };
    static const int64_t ms[] = { 1, 8, 9, 16, 17, 32, 33, 64, 65, 128, 256, 384, 512, 1024, 2048, 8192 },
                         ns[] = { 64, 128, 512, 1024, 2560, 2880, 4096, 5120, 7168, 8192, 11008, 18432, 53248 },
                         ks[] = { 512, 2048, 7168, 53248 }, groups[] = { 0, 8, 128 };
    struct bsmi_cuda_gpu *gpu = b200();
    for (int kind = 0; kind < 4; kind++) {
        int kernels[MOST_INSTANCES], count = 0;
        double loss[MOST_INSTANCES] = { 0 };
        char prefix[64];
        snprintf(prefix, sizeof prefix, "cuda_tcgen05_%s_", kinds[kind].kind);
        for (int i = 0; i < bsmi_gemm_instance_count && count < MOST_INSTANCES; i++)
            if (strncmp(bsmi_gemm_instances[i].name, prefix, strlen(prefix)) == 0) kernels[count++] = i;
        CHECK(t, count == (kind == 3 ? 8 : 9));
        for (size_t m = 0; m < sizeof ms / sizeof *ms; m++)
            for (size_t n = 0; n < sizeof ns / sizeof *ns; n++)
                for (size_t k = 0; k < sizeof ks / sizeof *ks; k++)
                    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
                        const struct bsmi_product p = product_of(kinds[kind].format, kinds[kind].format, ms[m], ns[n],
                                                                 ks[k], groups[g]);
                        look_at(gpu, kernels, count, &p, loss);
                    }
        for (int i = 0; i < count; i++)
            if (loss[i] < 0.04)
                FAIL(t, "without %s no product takes more than %.1f %% longer", bsmi_gemm_instances[kernels[i]].name,
                     100 * loss[i]);
    }
    free(gpu);
}

/* Weights of 4 bits beside rows of bf16: decoded into tensor memory where rows are few, in front of the kernel where
 * they are many; prepacked they are never slower. */
static void weights_are_decoded_where_it_pays(struct test *t)
{
    static const int64_t ms[] = { 1, 16, 17, 64, 128, 256, 8192, 32768 };
    static const bsm_format formats[] = { BSM_MXFP4, BSM_NVFP4 };
    struct bsmi_cuda_gpu *gpu = b200();
    for (int f = 0; f < 2; f++)
        for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
            struct bsmi_product p = product_of(BSM_FORMAT_BF16, formats[f], ms[i], 7168, 7168, 0);
            double rows = INFINITY, decoded = INFINITY, packed = INFINITY;
            p.b.block = f == 0 ? 32 : 16;
            for (int g = 0; g < bsmi_gemm_instance_count; g++) {
                const struct bsmi_gemm_instance *of = &bsmi_gemm_instances[g];
                const bool mxfp4 = of->codes == BSMI_CODES_MXFP4;
                double *least = &decoded;
                if (strncmp(of->name, "cuda_tcgen05_f16_", 17) == 0) least = &rows;
                else if (!bsmi_gemm_decodes_to_tensor_memory(of) || mxfp4 != (f == 0)) continue;
                else if (bsmi_gemm_reads_prepacked(of)) least = &packed;
                *least = fmin(*least, bsmi_cuda_cost(gpu, g, &p));
            }
            if ((decoded < rows) != (ms[i] <= 256) || packed > decoded)
                FAIL(t, "%lld rows: %.0f ns decoded in front, %.0f in the kernel, %.0f prepacked",
                     (long long)ms[i], rows, decoded, packed);
        }
    free(gpu);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(figures_of_others), TEST(each_instance_is_worth_its_place),
                                              TEST(weights_are_decoded_where_it_pays) };
    return TEST_MAIN(argc, argv, cases);
}

/* cuBLASLt, see cublas_lt.h. */
#include "cublas_lt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of cublasLt.h, cublas_api.h and library_types.h. */
enum { TYPE_FP32 = 0, TYPE_BF16 = 14, TYPE_E4M3 = 28, TYPE_E5M2 = 29, TYPE_E2M1 = 33, SUMS_FP32 = 68, TRANSPOSE = 1 };
enum { TRANSPOSE_A = 3, A_SCALES = 17, B_SCALES = 18, FAST_SUMS = 25, A_SCALE_MODE = 31, B_SCALE_MODE = 32, MOST_WORKSPACE = 1 };
enum { SCALES_OF_16_UE4M3 = 1, SCALES_OF_32_UE8M0 = 2 };
static const size_t workspace_bytes = (size_t)64 << 20;

struct answer {
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

struct functions {
    int (*create)(void **handle);
    size_t (*version)(void);
    int (*describe)(void **product, int sums, int scale);
    int (*layout)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t pitch);
    int (*wish)(void **wishes), (*set_wish)(void *wishes, int attribute, const void *value, size_t bytes);
    int (*ask)(void *handle, void *product, void *a, void *b, void *c, void *d, void *wishes, int wanted, struct answer *answers,
               int *count);
};

static void *open_library(char *why, size_t room)
{
    static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                         "/usr/local/cuda/lib64/libcublasLt.so" };
    const char *given = getenv("BENCH_CUBLASLT");
    void *library = given != NULL ? dlopen(given, RTLD_NOW) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && given == NULL && library == NULL; i++) library = dlopen(names[i], RTLD_NOW);
    if (library == NULL)
        snprintf(why, room, "no %s could be opened (BENCH_CUBLASLT may name it)", given != NULL ? given : "libcublasLt");
    return library;
}

static bool find_functions(void *library, struct functions *f, struct cublas_lt *lt)
{
    return gpu_symbol(library, "cublasLtCreate", &f->create) && gpu_symbol(library, "cublasLtGetVersion", &f->version) &&
           gpu_symbol(library, "cublasLtMatmulDescCreate", &f->describe) &&
           gpu_symbol(library, "cublasLtMatrixLayoutCreate", &f->layout) &&
           gpu_symbol(library, "cublasLtMatmulPreferenceCreate", &f->wish) &&
           gpu_symbol(library, "cublasLtMatmulPreferenceSetAttribute", &f->set_wish) &&
           gpu_symbol(library, "cublasLtMatmulAlgoGetHeuristic", &f->ask) &&
           gpu_symbol(library, "cublasLtMatmulDescSetAttribute", &lt->set) && gpu_symbol(library, "cublasLtMatmul", &lt->multiply);
}

static int type_of(bsm_format format)
{
    const bsm_element element = bsm_format_get((int)format)->element;
    return element == BSM_E4M3 ? TYPE_E4M3 : element == BSM_E5M2 ? TYPE_E5M2 : element == BSM_E2M1 ? TYPE_E2M1 : -1;
}

static int mode_of(bsm_format format)
{
    return bsm_format_get((int)format)->scale == BSM_UE4M3 ? SCALES_OF_16_UE4M3 : SCALES_OF_32_UE8M0;
}

/* Rows of ours are columns of cuBLAS: D' = B A', with B transposed. */
static bool describe(const struct functions *f, struct cublas_lt *lt, bsm_format a, bsm_format b, int64_t m, int64_t n, int64_t k)
{
    const int a_type = type_of(a), b_type = type_of(b), a_mode = mode_of(a), b_mode = mode_of(b), transpose = TRANSPOSE;
    const int8_t fast_sums = 1;
    return a_type >= 0 && b_type >= 0 && f->describe(&lt->product, SUMS_FP32, TYPE_FP32) == 0 &&
           lt->set(lt->product, TRANSPOSE_A, &transpose, sizeof transpose) == 0 &&
           (lt->one_scale ? lt->set(lt->product, FAST_SUMS, &fast_sums, sizeof fast_sums) == 0
                          : lt->set(lt->product, A_SCALE_MODE, &b_mode, sizeof b_mode) == 0 &&
                                lt->set(lt->product, B_SCALE_MODE, &a_mode, sizeof a_mode) == 0) &&
           f->layout(&lt->a, b_type, (uint64_t)k, (uint64_t)n, k) == 0 && f->layout(&lt->b, a_type, (uint64_t)k, (uint64_t)m, k) == 0 &&
           f->layout(&lt->d, TYPE_BF16, (uint64_t)n, (uint64_t)m, n) == 0;
}

static bool ask(const struct functions *f, struct cublas_lt *lt)
{
    struct answer answer;
    void *wishes = NULL;
    int count = 0;
    memset(&answer, 0, sizeof answer);
    if (f->wish(&wishes) != 0 || f->set_wish(wishes, MOST_WORKSPACE, &workspace_bytes, sizeof workspace_bytes) != 0) return false;
    if (f->ask(lt->handle, lt->product, lt->a, lt->b, lt->d, lt->d, wishes, 1, &answer, &count) != 0 || count < 1) return false;
    memcpy(lt->algorithm, answer.algorithm, sizeof lt->algorithm);
    return true;
}

static void prepare(struct gpu *gpu, bsm_format a, bsm_format b, int64_t m, int64_t n, int64_t k, struct cublas_lt *lt)
{
    struct functions f;
    void *library = open_library(lt->why, sizeof lt->why);
    if (library == NULL) return;
    if (!find_functions(library, &f, lt)) {
        snprintf(lt->why, sizeof lt->why, "libcublasLt lacks a function that is needed");
        return;
    }
    const size_t version = f.version();
    snprintf(lt->name, sizeof lt->name, "cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
    lt->workspace = gpu_take(gpu, (int64_t)workspace_bytes);
    if (f.create(&lt->handle) != 0) snprintf(lt->why, sizeof lt->why, "%s could not be started on this GPU", lt->name);
    else if (!describe(&f, lt, a, b, m, n, k) || !ask(&f, lt))
        snprintf(lt->why, sizeof lt->why, "%s has no %s%s%s product of this shape on this GPU", lt->name,
                 bsm_format_get((int)a)->name, a == b ? "" : " x ", a == b ? "" : bsm_format_get((int)b)->name);
}

void cublas_lt_prepare(struct gpu *gpu, bsm_format a, bsm_format b, int64_t m, int64_t n, int64_t k, float alpha,
                       struct cublas_lt *lt)
{
    *lt = (struct cublas_lt){ .alpha = alpha };
    prepare(gpu, a, b, m, n, k, lt);
}

void cublas_lt_prepare_one_scale(struct gpu *gpu, bsm_format a, bsm_format b, int64_t m, int64_t n, int64_t k, struct cublas_lt *lt)
{
    *lt = (struct cublas_lt){ .one_scale = true, .alpha = 1 };
    prepare(gpu, a, b, m, n, k, lt);
}

void cublas_lt_run(const struct gpu *gpu, struct cublas_lt *lt, const bsm_matrix *a, const bsm_matrix *b, void *d)
{
    const float zero = 0;
    const void *a_scales = a->scales, *b_scales = b->scales;
    int status = lt->one_scale ? 0 : lt->set(lt->product, A_SCALES, &b_scales, sizeof b_scales);
    if (status == 0 && !lt->one_scale) status = lt->set(lt->product, B_SCALES, &a_scales, sizeof a_scales);
    if (status == 0)
        status = lt->multiply(lt->handle, lt->product, &lt->alpha, b->data, lt->a, a->data, lt->b, &zero, d, lt->d, d, lt->d,
                              lt->algorithm, lt->workspace, workspace_bytes, gpu->stream);
    if (status != 0) gpu_stop("cublasLtMatmul: status %d", status);
}

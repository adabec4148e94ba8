/* cblas_sgemm out of a BLAS library, see blas_peer.h. */
#include "blas_peer.h"
#include "cli/cli.h"

#include "blockscale/context.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The names of the C interface of BLAS (netlib.org/blas, cblas.h). */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };
typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void sgemv_function(int order, int transpose, int m, int n, float alpha, const float *a, int lda,
                            const float *x, int x_step, float beta, float *y, int y_step);

/* POSIX lets dlsym's data pointer be a function; ISO C has no cast for it. */
static void (*find(void *library, const char *name))(void)
{
    void *symbol = dlsym(library, name);
    void (*function)(void) = NULL;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* The CPU whose kernels OpenBLAS takes; NULL of other libraries. */
static const char *core_of(void *library)
{
    void (*core)(void) = find(library, "openblas_get_corename");
    return core != NULL ? ((const char *(*)(void))core)() : NULL;
}

/* OpenBLAS asks once which CPU this is, when it is loaded. */
static void *open_library(const char *name, uint32_t features)
{
    const char *const known = features & BSM_CPU_AVX512 ? "SkylakeX" : features & BSM_CPU_AVX2 ? "Haswell" : NULL;
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *const core = library != NULL ? core_of(library) : NULL;
    if (core == NULL || strcmp(core, "Prescott") != 0 || known == NULL || getenv("OPENBLAS_CORETYPE") != NULL)
        return library;
    dlclose(library);
    setenv("OPENBLAS_CORETYPE", known, 1);
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/* libblas.so.3 is often another library behind a link: the file it really is says more. */
static void find_file(const struct blas_peer *peer, const char *asked, char *name, size_t bytes)
{
    void *symbol = NULL;
    char path[PATH_MAX];
    Dl_info info;
    memcpy(&symbol, &peer->sgemm, sizeof symbol);
    const char *file = asked;
    if (dladdr(symbol, &info) != 0 && info.dli_fname != NULL && realpath(info.dli_fname, path) != NULL) file = path;
    const char *slash = strrchr(file, '/');
    snprintf(name, bytes, "%.80s", slash != NULL ? slash + 1 : file);
}

static void name_library(struct blas_peer *peer, const char *asked)
{
    char file[81];
    const char *of = core_of(peer->library);
    find_file(peer, asked, file, sizeof file);
    snprintf(peer->name, sizeof peer->name, "cblas_sgemm of %s%s%.20s%s", file, of != NULL ? " (" : "",
             of != NULL ? of : "", of != NULL ? ")" : "");
}

/* Seconds of processor time of a product of 192 x 192 x 192, the better of two. */
static double small_product_seconds(const struct blas_peer *peer)
{
    enum { SIZE = 192 };
    static float a[SIZE * SIZE], d[SIZE * SIZE];
    double best = 0;
    for (int i = 0; i < SIZE * SIZE; i++) a[i] = 1;                       /* zeros may be skipped */
    for (int i = 0; i < 2; i++) {
        const double before = cli_processor_seconds();
        blas_peer_multiply(peer, SIZE, SIZE, SIZE, a, a, d);
        const double seconds = cli_processor_seconds() - before;
        if (i == 0 || seconds < best) best = seconds;
    }
    return best;
}

/* Libraries with kernels of their own say who they are.  netlib's has nothing but the names of BLAS, and runs at the
 * pace of its three loops: some 1 to 3 GFLOP/s, a twentieth of what a core with SSE can. */
static bool is_reference(const struct blas_peer *peer)
{
    static const char *const makers[] = {
        "openblas_get_config", "MKL_Get_Version", "mkl_get_version", "bli_info_get_version_str", "ATL_buildinfo",
        "flexiblas_info", "armplversion", "nvpl_blas_get_version", "essl_version",
    };
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
        if (find(peer->library, makers[i]) != NULL) return false;
    return small_product_seconds(peer) > 2.0 * 192 * 192 * 192 / 6e9;
}

static void set_threads(void *library, int threads)
{
    void (*set)(void) = find(library, "openblas_set_num_threads");
    if (set != NULL) ((void (*)(int))set)(threads);
}

bool blas_peer_open(struct blas_peer *peer, int threads, uint32_t features)
{
    char reference[sizeof peer->reference] = "";
    static const char *const names[] = { "libopenblas.so.0", "libmkl_rt.so.2", "libblis.so.4", "libblas.so.3",
                                         "libcblas.so.3" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        *peer = (struct blas_peer) { .library = open_library(names[i], features) };
        if (peer->library == NULL) continue;
        peer->sgemm = find(peer->library, "cblas_sgemm");
        peer->sgemv = find(peer->library, "cblas_sgemv");
        if (peer->sgemm != NULL && is_reference(peer)) {
            if (reference[0] == '\0') find_file(peer, names[i], reference, sizeof reference);
        } else if (peer->sgemm != NULL) {
            set_threads(peer->library, threads);
            name_library(peer, names[i]);
            memcpy(peer->reference, reference, sizeof reference);
            return true;
        }
        dlclose(peer->library);
    }
    *peer = (struct blas_peer) { .library = NULL };
    memcpy(peer->reference, reference, sizeof reference);
    return false;
}

void blas_peer_multiply(const struct blas_peer *peer, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                        float *d)
{
    sgemm_function *const sgemm = (sgemm_function *)peer->sgemm;
    sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, (int)m, (int)n, (int)k, 1, a, (int)k, b, (int)k, 0, d, (int)n);
}

void blas_peer_multiply_vector(const struct blas_peer *peer, int64_t n, int64_t k, const float *b, const float *a,
                               float *d)
{
    sgemv_function *const sgemv = (sgemv_function *)peer->sgemv;
    if (sgemv == NULL) blas_peer_multiply(peer, 1, n, k, a, b, d);
    else sgemv(ROW_MAJOR, NO_TRANSPOSE, (int)n, (int)k, 1, b, (int)k, a, 1, 0, d, 1);
}

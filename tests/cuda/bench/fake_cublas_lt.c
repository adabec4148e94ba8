/* A libcublasLt for bench_blocks on cudasim: looks at what it is asked, and computes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { WRONG = 7, TYPE_BF16 = 14, TYPE_E4M3 = 28, TYPE_E2M1 = 33, SUMS_FP32 = 68, TRANSPOSE_A = 3, A_SCALES = 17,
       B_SCALES = 18, FAST_SUMS = 25 };
enum { A_SCALE_MODE = 31, B_SCALE_MODE = 32, ALGORITHM_BYTES = 64 };

struct product { int transpose_a, a_mode, b_mode; signed char fast_sums; const void *a_scales, *b_scales; };
struct layout { int type; uint64_t rows, columns; int64_t pitch; };
struct answer { unsigned char algorithm[ALGORITHM_BYTES]; size_t workspace; int status; float waves; int reserved[4]; };

EXPORT int cublasLtCreate(void **handle);
EXPORT size_t cublasLtGetVersion(void);
EXPORT int cublasLtMatmulDescCreate(void **product, int sums, int scale);
EXPORT int cublasLtMatmulDescSetAttribute(void *product, int attribute, const void *value, size_t bytes);
EXPORT int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t pitch);
EXPORT int cublasLtMatmulPreferenceCreate(void **wishes);
EXPORT int cublasLtMatmulPreferenceSetAttribute(void *wishes, int attribute, const void *value, size_t bytes);
EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d, void *wishes,
                                          int wanted, struct answer *answers, int *count);
EXPORT int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *a, void *a_layout, const void *b,
                          void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                          const void *algorithm, void *workspace, size_t workspace_bytes, void *stream);

static char the_handle, the_wishes;

int cublasLtCreate(void **handle)
{
    *handle = &the_handle;
    return 0;
}

size_t cublasLtGetVersion(void) { return 130100; }

int cublasLtMatmulDescCreate(void **product, int sums, int scale)
{
    *product = calloc(1, sizeof(struct product));
    return *product != NULL && sums == SUMS_FP32 && scale == 0 ? 0 : WRONG;
}

int cublasLtMatmulDescSetAttribute(void *product, int attribute, const void *value, size_t bytes)
{
    struct product *p = product;
    void *to = attribute == TRANSPOSE_A    ? (void *)&p->transpose_a
               : attribute == A_SCALE_MODE ? (void *)&p->a_mode
               : attribute == B_SCALE_MODE ? (void *)&p->b_mode
               : attribute == FAST_SUMS    ? (void *)&p->fast_sums
               : attribute == A_SCALES     ? (void *)&p->a_scales
               : attribute == B_SCALES     ? (void *)&p->b_scales
                                           : NULL;
    const size_t size = attribute == A_SCALES || attribute == B_SCALES ? sizeof(void *)
                        : attribute == FAST_SUMS                        ? sizeof(signed char)
                                                                        : sizeof(int);
    if (to == NULL || bytes != size) return WRONG;
    memcpy(to, value, bytes);
    return 0;
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t pitch)
{
    struct layout *l = malloc(sizeof *l);
    if (l == NULL) return WRONG;
    *l = (struct layout){ type, rows, columns, pitch };
    *layout = l;
    return 0;
}

int cublasLtMatmulPreferenceCreate(void **wishes)
{
    *wishes = &the_wishes;
    return 0;
}

int cublasLtMatmulPreferenceSetAttribute(void *wishes, int attribute, const void *value, size_t bytes)
{
    return wishes == &the_wishes && attribute == 1 && value != NULL && bytes == sizeof(size_t) ? 0 : WRONG;
}

/* As a library that has MXFP8 and NVFP4, but not MXFP4. */
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d, void *wishes,
                                   int wanted, struct answer *answers, int *count)
{
    const struct product *p = product;
    const struct layout *la = a, *lb = b, *ld = d;
    const int fits =
        la->pitch == (int64_t)la->rows && la->rows == lb->rows && ld->rows == la->columns && ld->columns == lb->columns;
    const int mode = p->fast_sums == 1 ? 0 : la->type == TYPE_E2M1 ? 1 : 2;        /* 0: one scale for all */
    *count = 0;
    if (handle != &the_handle || wishes != &the_wishes || c != d || wanted != 1 || !fits || p->transpose_a != 1)
        return WRONG;
    if (la->type != lb->type || ld->type != TYPE_BF16 || p->a_mode != mode || p->b_mode != mode) return WRONG;
    memset(answers[0].algorithm, 0x5a, ALGORITHM_BYTES);
    *count = 1;
    return 0;
}

int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *a, void *a_layout, const void *b,
                   void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                   const void *algorithm, void *workspace, size_t workspace_bytes, void *stream)
{
    const struct product *p = product;
    unsigned char wanted[ALGORITHM_BYTES];
    memset(wanted, 0x5a, sizeof wanted);
    const int pointers = *(const float *)alpha > 0 && *(const float *)beta == 0 && a != NULL && b != NULL && c == d
                         && d != NULL && a_layout != b_layout && c_layout == d_layout && workspace != NULL
                         && workspace_bytes > 0 && stream != NULL;
    const int scales = p->fast_sums == 1 ? p->a_scales == NULL && p->b_scales == NULL
                                         : p->a_scales != NULL && p->b_scales != NULL && p->a_scales != p->b_scales;
    return handle == &the_handle && pointers && scales
                   && memcmp(algorithm, wanted, sizeof wanted) == 0
               ? 0
               : WRONG;
}

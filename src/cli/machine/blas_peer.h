/* Somebody else's fp32 product, if this machine has one: cblas_sgemm out of a BLAS library that is opened at run
 * time. */
#ifndef CLI_BLAS_PEER_H
#define CLI_BLAS_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct blas_peer {
    void *library;
    void (*sgemm)(void);                  /* cblas_sgemm, cast where it is called */
    void (*sgemv)(void);                  /* cblas_sgemv; NULL where a library lacks it */
    char name[128];                       /* "cblas_sgemm of libopenblas.so.0 (Haswell)": OpenBLAS says for which CPU */
    char reference[96];                   /* file of a reference BLAS that was found and skipped, or empty */
};

/* Opens the first library that has cblas_sgemm, and sets its number of threads where it has a function for that.
 * features: BSM_CPU_ bits.  An OpenBLAS that does not know this CPU would run kernels for SSE: it is set to the core
 * type whose features this CPU has, unless OPENBLAS_CORETYPE names one.  netlib's reference BLAS shows what a product
 * is, not how fast it can be, and is skipped.  false: there is no other library. */
bool blas_peer_open(struct blas_peer *peer, int threads, uint32_t features);

/* d[m][n] = a[m][k] x b[n][k]^T, tight.  Sizes must fit an int. */
void blas_peer_multiply(const struct blas_peer *peer, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                        float *d);

/* d[n] = b[n][k] x a[k]: cblas_sgemv where there is one, which libraries make faster than a product of one row. */
void blas_peer_multiply_vector(const struct blas_peer *peer, int64_t n, int64_t k, const float *b, const float *a,
                               float *d);

#endif

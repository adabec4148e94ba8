/* One product in device memory, and the ways to compute it. */
#ifndef BENCH_GPU_PRODUCT_H
#define BENCH_GPU_PRODUCT_H

#include "operands.h"
#include "products.h"

/* Operands in several places, and where D goes. */
struct places {
    struct shape shape;
    struct pair pair;
    int count;
    struct coded a[GPU_MOST_PLACES], b[GPU_MOST_PLACES];
    void *d[GPU_MOST_PLACES];
    float alpha;                          /* both tensor scales, as the library multiplies them */
};

/* Through the library. */
struct own {
    struct bench *bench;
    const struct places *places;
    bsm_plan *plan;
    bsm_matmul calls[GPU_MOST_PLACES];
    bsm_matrix d[GPU_MOST_PLACES];
    void *workspace;
    int next;
    char kernel[64];
};

/* Through cuBLAS.  Operands that are no bf16 are dequantized first, into a_values and b_values. */
struct through_cublas {
    struct bench *bench;
    const struct places *places;
    bool by_guest;                        /* who dequantizes */
    void *a_values, *b_values;
    int next;
};

struct places *places_take(struct bench *bench, const struct pair *pair, const struct shape *shape, bsm_format d);
/* The same values in bf16: what cuBLAS is given "beforehand". */
struct places *places_dequantized(struct bench *bench, const struct places *places);
void own_make(struct bench *bench, const struct places *places, bsm_format d, bsm_compute compute, struct own *own);
/* With prepacked weights of every B; false, and nothing made, where the plan has none. */
bool own_make_prepacked(struct bench *bench, const struct places *places, bsm_format d, struct own *own);
void own_free(struct own *own);
bool own_run(void *own);
bool cublas_run(void *through_cublas);

#endif

/* What a program that loads this one as a library can bring: other libraries' ways to do the same (bench_gpu.py: PyTorch, Triton).
 * Pointers are device memory; everything goes into `stream`. */
#ifndef BENCH_GPU_GUEST_H
#define BENCH_GPU_GUEST_H

#include <stdint.h>

enum guest_way {
    GUEST_MULTIPLY,                       /* D = alpha A B' from codes and scales, D in bf16 */
    GUEST_DEQUANTIZE,                     /* A and B, each unless it is bf16, into a_values and b_values: bf16, tight rows */
    GUEST_WAYS
};

struct guest_product {
    int64_t m, n, k, places;
    const char *a_format, *b_format;      /* as the library names them; scales are linear, elements packed in its default way */
    const void *const *a, *const *a_scales, *const *b, *const *b_scales;     /* one for every place */
    void *const *d;
    void *a_values, *b_values;
    void *stream;
    float alpha;                          /* both tensor scales */
    int32_t quick;                        /* fewer variants are tried */
};

struct guest {
    const char *name;                     /* "PyTorch 2.11.0, Triton 3.6.0" */
    /* 1 and a name if the way serves this product; 0 and the reason if it does not.  text: `room` bytes. */
    int (*prepare)(int way, const struct guest_product *product, char *text, int64_t room);
    /* 0 if the place's work is in the stream. */
    int (*run)(int way, int64_t place);
};

#endif

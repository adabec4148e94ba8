/* Operands in device memory: random normal numbers quantized by the library, in several places that are used in turn. */
#ifndef BENCH_GPU_OPERANDS_H
#define BENCH_GPU_OPERANDS_H

#include "gpu.h"

struct coded {
    bsm_matrix matrix;
    int64_t bytes;                        /* of codes and scales */
    float tensor_scale;                   /* 1 where the format has none */
};

/* rows x columns of the pool's numbers from number `first` on, in a format; bf16 is copied.  Linear scales. */
struct coded coded_take(struct gpu *gpu, bsm_format format, int64_t rows, int64_t columns, int64_t first);
/* The same with scales in another layout. */
struct coded coded_take_in(struct gpu *gpu, bsm_format format, bsm_layout layout, int64_t rows, int64_t columns, int64_t first);
int64_t coded_bytes(bsm_format format, int64_t rows, int64_t columns);

bsm_real_matrix bf16_rows(void *data, int64_t rows, int64_t columns);
bsm_matrix plain_rows(bsm_format format, void *data, int64_t rows, int64_t columns);
/* The values of a coded matrix without its tensor scale: every one of them is a bf16 number. */
void coded_dequantize(const struct gpu *gpu, const struct coded *coded, void *to);

#endif

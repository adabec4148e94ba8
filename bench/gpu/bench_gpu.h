/* The whole program as a function: what main calls, and bench_gpu.py with a guest. */
#ifndef BENCH_GPU_BENCH_GPU_H
#define BENCH_GPU_BENCH_GPU_H

#include "guest.h"

__attribute__((visibility("default"))) int bench_gpu(int count, char **arguments, const struct guest *guest);

#endif

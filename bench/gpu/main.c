/* bench_gpu without guests, see bench_gpu.c. */
#include "bench_gpu.h"

#include <stddef.h>

int main(int argc, char **argv) { return bench_gpu(argc, argv, NULL); }

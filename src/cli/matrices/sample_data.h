/* Random matrices with the statistics that real ones have.  A pure function of the seed: the same numbers on every
 * run. */
#ifndef CLI_SAMPLE_DATA_H
#define CLI_SAMPLE_DATA_H

#include <stdint.h>

/* 64 random bits, and a number in [0, 1), for element number `index` of stream `stream` under `seed`. */
uint64_t sample_bits(uint64_t seed, uint64_t stream, uint64_t index);
double sample_uniform(uint64_t seed, uint64_t stream, uint64_t index);
/* Mean 0, variance 1. */
double sample_normal(uint64_t seed, uint64_t stream, uint64_t index);

/* Weights of a linear layer: Gaussian with standard deviation 1 / sqrt(columns), rows x columns. */
void sample_weights(uint64_t seed, int64_t rows, int64_t columns, float *data);

/* Activations of a transformer: a heavy tail (Student's t with 5 degrees of freedom), and about one channel in 100 that
 * is 20 to 60 times as large in every row: the outlier channels that block scales were made for. */
void sample_activations(uint64_t seed, int64_t rows, int64_t columns, float *data);

#endif

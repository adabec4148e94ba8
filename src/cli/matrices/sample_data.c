/* Random matrices with the statistics that real ones have, see sample_data.h. */
#include "sample_data.h"

#include <math.h>

enum { STREAM_WEIGHTS = 1, STREAM_ACTIVATIONS, STREAM_TAIL, STREAM_CHANNEL, STREAM_FACTOR };

static uint64_t mix(uint64_t z)           /* the finalizer of splitmix64 (Steele, Lea, Flood 2014) */
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t sample_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    const uint64_t step = 0x9e3779b97f4a7c15u;
    return mix(mix(mix(seed + step) + (stream + 1) * step) + (index + 1) * step);
}

double sample_uniform(uint64_t seed, uint64_t stream, uint64_t index)
{
    return (double)(sample_bits(seed, stream, index) >> 11) * 0x1p-53;
}

/* Box and Muller's transform; half of it is thrown away, so that every element stands alone. */
double sample_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    const double u = sample_uniform(seed, stream, 2 * index) + 0x1p-54, v = sample_uniform(seed, stream, 2 * index + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

void sample_weights(uint64_t seed, int64_t rows, int64_t columns, float *data)
{
    const double deviation = columns > 0 ? 1 / sqrt((double)columns) : 1;
    for (int64_t i = 0; i < rows * columns; i++)
        data[i] = (float)(deviation * sample_normal(seed, STREAM_WEIGHTS, (uint64_t)i));
}

/* Student's t: a normal number over the root of a mean of `degrees` squared ones. */
static double heavy_tail(uint64_t seed, uint64_t index)
{
    enum { DEGREES = 5 };
    double squares = 0;
    for (uint64_t i = 0; i < DEGREES; i++) {
        const double z = sample_normal(seed, STREAM_TAIL, index * DEGREES + i);
        squares += z * z;
    }
    return sample_normal(seed, STREAM_ACTIVATIONS, index) / sqrt(squares / DEGREES);
}

/* Column 5 is always an outlier, so that small matrices have one too. */
static double channel_factor(uint64_t seed, uint64_t column)
{
    const int outlier = column == 5 || sample_uniform(seed, STREAM_CHANNEL, column) < 0.01;
    return outlier ? 20 + 40 * sample_uniform(seed, STREAM_FACTOR, column) : 1;
}

void sample_activations(uint64_t seed, int64_t rows, int64_t columns, float *data)
{
    for (int64_t c = 0; c < columns; c++) {
        const double factor = channel_factor(seed, (uint64_t)c);
        for (int64_t r = 0; r < rows; r++)
            data[r * columns + c] = (float)(factor * heavy_tail(seed, (uint64_t)(r * columns + c)));
    }
}

/* Read bandwidth: every byte of a memory is loaded once. */
#include "bench.h"

uint64_t read_all(const void *memory, size_t bytes)
{
    const uint64_t *words = memory;
    uint64_t sums[16] = { 0 }, sum = 0;
    for (size_t i = 0; i < bytes / 8; i += 16)
        for (int j = 0; j < 16; j++) sums[j] += words[i + (size_t)j];
    for (int j = 0; j < 16; j++) sum += sums[j];
    return sum;
}

/* Read bandwidth: every byte of a memory is loaded once, by the widest loads that the CPU has: a Xeon reads a third
 * more by 64 bytes than by 16. */
#include "bench.h"

#ifdef __x86_64__
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
uint64_t
read_all(const void *memory, size_t bytes)
{
    const uint64_t *words = memory;
    uint64_t sums[32] = { 0 }, sum = 0;
    for (size_t i = 0; i < bytes / 8; i += 32)
        for (int j = 0; j < 32; j++) sums[j] += words[i + (size_t)j];
    for (int j = 0; j < 32; j++) sum += sums[j];
    return sum;
}

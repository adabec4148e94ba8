/* The swizzles of 32, 64 and 128 bytes of tensor maps (PTX ISA 5.5.7). */
#pragma once

#include <stdint.h>

/* The place of a byte in a box whose rows are so long, as a tensor map with a swizzle of that many bytes has it. */
__device__ static inline uint32_t swizzled(uint32_t at, uint32_t row_bytes)
{
    return at ^ ((at >> 7 & (row_bytes / 16 - 1)) << 4);
}

/* Descriptors of matrices in shared memory: see matrix_descriptor.h. */
#include "machine/matrix_descriptor.h"

#include <stdio.h>

/* Each of the three fields holds 14 bits of a byte offset in units of 16. */
static uint32_t field(uint64_t descriptor, uint32_t at) { return (uint32_t)(descriptor >> at & 0x3fff) << 4; }

bool matrix_of_wgmma(uint64_t descriptor, bool mn_major, struct matrix_layout *layout, char *sentence, size_t size)
{
    static const enum matrix_swizzle swizzles[] = { MATRIX_PLAIN, MATRIX_SWIZZLE_128, MATRIX_SWIZZLE_64, MATRIX_SWIZZLE_32 };
    const uint64_t fields =
        UINT64_C(0x3fff) | UINT64_C(0x3fff) << 16 | UINT64_C(0x3fff) << 32 | UINT64_C(7) << 49 | UINT64_C(3) << 62;
    if ((descriptor & ~fields) != 0) {
        snprintf(sentence, size, "has bits set that belong to no field (0x%llx)", (unsigned long long)(descriptor & ~fields));
        return false;
    }
    *layout = (struct matrix_layout){ .start = field(descriptor, 0),
                                      .leading = field(descriptor, 16),
                                      .stride = field(descriptor, 32),
                                      .base_offset = (uint32_t)(descriptor >> 49 & 7),
                                      .swizzle = swizzles[descriptor >> 62],
                                      .mn_major = mn_major };
    if (layout->swizzle == MATRIX_PLAIN && layout->base_offset != 0) {
        snprintf(sentence, size, "has a base offset (%u) but no swizzle", layout->base_offset);
        return false;
    }
    return true;
}

uint32_t matrix_span(const struct matrix_layout *layout) { return (uint32_t)CHUNK_BYTES << layout->swizzle; }

/* K-major: 8 lines share a pattern, `stride` lies between groups of 8; without a swizzle `leading` lies between chunks. MN-
 * major: 8 lines (of k) share a pattern; swizzled, `stride` lies between groups of 8 and `leading` between spans; without a
 * swizzle the two change places. */
static uint32_t before_swizzle(const struct matrix_layout *m, uint32_t chunk, uint32_t line)
{
    const uint32_t span = matrix_span(m), chunks = span / CHUNK_BYTES;
    const uint32_t inside = line % 8 * span, group = line / 8;
    if (m->swizzle == MATRIX_PLAIN)
        return inside + (m->mn_major ? chunk * m->stride + group * m->leading : chunk * m->leading + group * m->stride);
    if (!m->mn_major) return inside + group * m->stride + chunk * CHUNK_BYTES;
    return inside + group * m->stride + chunk % chunks * CHUNK_BYTES + chunk / chunks * m->leading;
}

uint32_t matrix_chunk(const struct matrix_layout *m, uint32_t chunk, uint32_t line)
{
    const uint32_t address = m->start + before_swizzle(m, chunk, line);
    const uint32_t row = (address - 128 * m->base_offset) >> 7; /* of 128 bytes, from where the pattern begins */
    const uint32_t exchanged = row & ((1u << m->swizzle) - 1);
    return (address ^ exchanged << 4) & MATRIX_ADDRESS_MASK;
}

/* Descriptors of matrices in shared memory: see matrix_descriptor.h. */
#include "matrix_descriptor.h"

#include <stdio.h>

/* Each of the three fields holds 14 bits of a byte offset in units of 16. */
static uint32_t field(uint64_t descriptor, uint32_t at) { return (uint32_t)(descriptor >> at & 0x3fff) << 4; }

bool matrix_of_wgmma(uint64_t descriptor, bool mn_major, struct matrix_layout *layout, char *sentence, size_t size)
{
    static const enum matrix_swizzle swizzles[] = { MATRIX_PLAIN, MATRIX_SWIZZLE_128, MATRIX_SWIZZLE_64,
                                                    MATRIX_SWIZZLE_32 };
    const uint64_t fields =
        UINT64_C(0x3fff) | UINT64_C(0x3fff) << 16 | UINT64_C(0x3fff) << 32 | UINT64_C(7) << 49 | UINT64_C(3) << 62;
    if ((descriptor & ~fields) != 0) {
        snprintf(sentence, size, "has bits set that belong to no field (0x%llx)",
                 (unsigned long long)(descriptor & ~fields));
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

/* What the manual says of each mode and major-ness (table "Valid combinations of type-size, major-ness and
 * swizzling"). */
static const char *mode_refusal(const struct matrix_layout *layout, uint32_t bits)
{
    const bool atoms = layout->swizzle == MATRIX_ATOMS_32;
    if (layout->mn_major && bits == 32 && !atoms)
        return "has an MN-major matrix of 32-bit elements in another layout than the 128-byte swizzle with 32-byte "
               "atoms (1 in bits 63..61)";
    if (layout->mn_major && bits < 32 && atoms)
        return "has 1 in bits 63..61 (128-byte swizzle with 32-byte atoms); MN-major matrices have it for 32-bit "
               "elements alone";
    if (!layout->mn_major && atoms)
        return "has 1 in bits 63..61 (128-byte swizzle with 32-byte atoms) for a K-major matrix, of which the manual "
               "and CUTLASS say different things";
    return NULL;
}

bool matrix_of_tcgen05(uint64_t descriptor, bool mn_major, uint32_t bits, uint32_t sm, struct matrix_layout *layout,
                       char *sentence, size_t size)
{
    static const enum matrix_swizzle swizzles[] = {
        [1] = MATRIX_ATOMS_32, [2] = MATRIX_SWIZZLE_128, [4] = MATRIX_SWIZZLE_64, [6] = MATRIX_SWIZZLE_32
    };
    const uint32_t mode = (uint32_t)(descriptor >> 61), constant = (uint32_t)(descriptor >> 46 & 7);
    const uint64_t unused = descriptor & (UINT64_C(3) << 14 | UINT64_C(3) << 30 | UINT64_C(0xff) << 53);
    if (unused != 0) {
        snprintf(sentence, size, "has bits set that belong to no field (0x%llx)", (unsigned long long)unused);
        return false;
    }
    if (constant != 1) {
        snprintf(sentence, size, "has %u in bits 48..46, which are 1 in every descriptor of tcgen05", constant);
        return false;
    }
    if ((descriptor >> 52 & 1) != 0) {
        snprintf(sentence, size, "has 1 in bit 52 (absolute leading address); %s",
                 sm == 103 ? "it belongs to K = 96, whose scale layout no source gives"
                           : "the device has no such mode");
        return false;
    }
    if (mode == 3 || mode == 5 || mode == 7) {
        snprintf(sentence, size, "has %u in bits 63..61 (swizzle), which takes 0, 1, 2, 4 or 6", mode);
        return false;
    }
    *layout = (struct matrix_layout){ .start = field(descriptor, 0),
                                      .leading = field(descriptor, 16),
                                      .stride = field(descriptor, 32),
                                      .base_offset = (uint32_t)(descriptor >> 49 & 7),
                                      .swizzle = swizzles[mode],
                                      .mn_major = mn_major };
    const char *why = mode_refusal(layout, bits);
    if (layout->swizzle == MATRIX_PLAIN) layout->base_offset = 0; /* of a pattern that there is none of: Gluon gives the
                                                                     address's */
    if (why == NULL) return true;
    snprintf(sentence, size, "%s", why);
    return false;
}

uint32_t matrix_span(const struct matrix_layout *layout)
{
    return layout->swizzle == MATRIX_ATOMS_32 ? 128 : (uint32_t)CHUNK_BYTES << layout->swizzle;
}

/* K-major: 8 lines share a pattern, `stride` lies between groups of 8; without a swizzle `leading` lies between chunks.
 * MN- major: 8 lines (of k; 4 with 32-byte atoms) share a pattern; swizzled, `stride` lies between groups of them and
 * `leading` between spans; without a swizzle the two change places. */
static uint32_t before_swizzle(const struct matrix_layout *m, uint32_t chunk, uint32_t line)
{
    const uint32_t span = matrix_span(m), chunks = span / CHUNK_BYTES;
    const uint32_t lines = m->mn_major && m->swizzle == MATRIX_ATOMS_32 ? 4 : 8;
    const uint32_t inside = line % lines * span, group = line / lines;
    if (m->swizzle == MATRIX_PLAIN)
        return inside + (m->mn_major ? chunk * m->stride + group * m->leading : chunk * m->leading + group * m->stride);
    if (!m->mn_major) return inside + group * m->stride + chunk * CHUNK_BYTES;
    return inside + group * m->stride + chunk % chunks * CHUNK_BYTES + chunk / chunks * m->leading;
}

uint32_t matrix_chunk(const struct matrix_layout *m, uint32_t chunk, uint32_t line)
{
    const uint32_t address = m->start + before_swizzle(m, chunk, line);
    const uint32_t row = (address - 128 * m->base_offset) >> 7; /* of 128 bytes, from where the pattern begins */
    if (m->swizzle == MATRIX_ATOMS_32) return (address ^ (row & 3) << 5) & MATRIX_ADDRESS_MASK;
    const uint32_t exchanged = row & ((1u << m->swizzle) - 1);
    return (address ^ exchanged << 4) & MATRIX_ADDRESS_MASK;
}

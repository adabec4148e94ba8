#include "tcgen05_copy.h"

#include <string.h>

enum { QUARTER = 32 };

const struct copy_shape_info copy_shapes[COPY_SHAPES] = {
    [COPY_128X256B] = { ".128x256b", 128, 2 },
    [COPY_128X128B] = { ".128x128b", 128, 1 },
    [COPY_64X128B_02_13] = { ".64x128b.warpx2::02_13", 64, 1 },
    [COPY_64X128B_01_23] = { ".64x128b.warpx2::01_23", 64, 1 },
    [COPY_32X128B] = { ".32x128b.warpx4", 32, 1 },
    [COPY_4X256B] = { ".4x256b", 4, 2 },
};

uint32_t copy_lanes(enum copy_shape shape, uint32_t row, uint32_t lanes[COPY_MOST_LANES])
{
    const uint32_t half = row / QUARTER, inside = row % QUARTER;
    switch (shape) {
    case COPY_64X128B_02_13: lanes[0] = row, lanes[1] = row + 2 * QUARTER; return 2;
    case COPY_64X128B_01_23: lanes[0] = 2 * half * QUARTER + inside, lanes[1] = lanes[0] + QUARTER; return 2;
    case COPY_32X128B:
        for (uint32_t i = 0; i < 4; i++) lanes[i] = row + i * QUARTER;
        return 4;
    case COPY_4X256B: lanes[0] = row * QUARTER; return 1;
    default: lanes[0] = row; return 1;
    }
}

uint32_t copy_chunk_bytes(enum copy_format format)
{
    return format == COPY_B4X16_P64 ? 8 : format == COPY_B6X16_P32 ? 12 : COPY_CHUNK;
}

void copy_expand(enum copy_format format, const uint8_t *chunk, uint8_t expanded[COPY_CHUNK])
{
    if (format == COPY_PLAIN) {
        memcpy(expanded, chunk, COPY_CHUNK);
        return;
    }
    for (uint32_t i = 0; i < COPY_CHUNK; i++) {
        if (format == COPY_B4X16_P64) {
            expanded[i] = (uint8_t)((chunk[i / 2] >> 4 * (i % 2) & 15) << 2);
            continue;
        }
        const uint32_t at = 6 * i / 8, above = at + 1 < 12 ? chunk[at + 1] : 0;
        expanded[i] = (uint8_t)((chunk[at] | above << 8) >> 6 * i % 8 & 63);
    }
}

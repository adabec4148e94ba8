/* Operands into panels. */
#include "pack.h"
#include "core/core.h"
#include "matrix/rows.h"

_Static_assert(BSMI_CHUNK % 64 == 0, "half a chunk is a multiple of every block");

#define BSMI_ALWAYS_INLINE __attribute__((always_inline)) static inline

enum { MOST_WIDTH = 32 };

/* The scales of the part in row r, one per block; how many.  Unscaled: one, 1. */
static int row_scales(const struct bsmi_part *part, int64_t r, float *scales)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    scales[0] = 1;
    if (m->block == 0) return 1;
    uint8_t codes[BSMI_CHUNK_BLOCKS];
    const int count = (int)bsmi_ceil_div(part->length, m->block);
    bsmi_row_scales(m, part->batch, bsmi_source_column(part->first + r, part->split), part->k / m->block, count, codes);
    for (int s = 0; s < count; s++)
        scales[s] = m->scale == BSM_E8M0 ? bsmi_e8m0_to_float(codes[s]) : bsmi_ue4m3_to_float(codes[s]);
    return count;
}

struct bsmi_scale_range bsmi_part_scale_range(const struct bsmi_part *part)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    if (m->scale == BSM_UE4M3) return (struct bsmi_scale_range){ -9, 8 };
    if (m->scale != BSM_E8M0) return (struct bsmi_scale_range){ 0, 0 };
    const int count = (int)bsmi_ceil_div(part->length, m->block);
    int smallest = 255, largest = 0;
    for (int64_t r = 0; r < part->count; r++) {
        uint8_t codes[BSMI_CHUNK_BLOCKS];
        bsmi_row_scales(m, part->batch, bsmi_source_column(part->first + r, part->split), part->k / m->block, count,
                        codes);
        for (int s = 0; s < count; s++) {
            if (codes[s] == 255) continue;           /* NaN is NaN on every path */
            smallest = BSMI_MIN(smallest, codes[s]);
            largest = BSMI_MAX(largest, codes[s]);
        }
    }
    return (struct bsmi_scale_range){ smallest - 127, largest - 127 };
}

/* The smallest element of each format times the smallest scale is at least 2^-143: only the largest can leave fp32. */
bool bsmi_scaled_elements_fit(const struct bsmi_operand *operand, struct bsmi_scale_range range)
{
    static const int highest[BSM_ELEMENT_COUNT] = { [BSM_E4M3] = 8, [BSM_E5M2] = 15, [BSM_E3M2] = 4, [BSM_E2M3] = 2,
                                                    [BSM_E2M1] = 2, [BSM_INT8] = 1 };
    return operand->matrix->block == 0 || range.highest + highest[operand->matrix->element] <= 127;
}

/* Row r of the part, decoded, without scales. */
static void row_elements(const struct bsmi_part *part, int64_t r, float *values)
{
    bsmi_row_elements(part->operand.matrix, part->operand.values, part->batch,
                      bsmi_source_column(part->first + r, part->split), part->k, part->length, values);
}

/* Panels of rows of elements whose code is a byte: decoded on the way into the panel. */
BSMI_ALWAYS_INLINE void decode_panel(int width, const uint8_t (*codes)[BSMI_CHUNK], const float *values, int64_t length,
                                     float *panel)
{
    for (int64_t k = 0; k < length; k++)
        for (int r = 0; r < width; r++) panel[k * width + r] = values[codes[r][k]];
}

BSMI_ALWAYS_INLINE void transpose_panel(int width, const float (*rows)[BSMI_CHUNK], int64_t length, float *panel)
{
    for (int64_t k = 0; k < length; k++)
        for (int r = 0; r < width; r++) panel[k * width + r] = rows[r][k];
}

/* The widths that kernels have are constants in the inner loops. */
#define BY_WIDTH(width, function, ...) \
    switch (width) { \
    case 4: function(4, __VA_ARGS__); break; \
    case 6: function(6, __VA_ARGS__); break; \
    case 8: function(8, __VA_ARGS__); break; \
    case 16: function(16, __VA_ARGS__); break; \
    default: function(width, __VA_ARGS__); break; \
    }

static void pack_codes(const struct bsmi_part *part, int width, int64_t first, float *panel)
{
    uint8_t codes[MOST_WIDTH][BSMI_CHUNK];
    const int rows = (int)BSMI_MIN(width, part->count - first);
    for (int r = 0; r < rows; r++)
        bsmi_row_codes(part->operand.matrix, part->batch, bsmi_source_column(part->first + first + r, part->split),
                       part->k, part->length, codes[r]);
    /* Rows that are missing repeat the first; what is computed of them is never looked at. */
    for (int r = rows; r < width; r++) memcpy(codes[r], codes[0], (size_t)part->length);
    const uint8_t (*const read)[BSMI_CHUNK] = (const uint8_t (*)[BSMI_CHUNK])codes;
    BY_WIDTH(width, decode_panel, read, part->operand.values, part->length, panel)
}

static void pack_wide_elements(const struct bsmi_part *part, int width, int64_t first, float *panel)
{
    float values[MOST_WIDTH][BSMI_CHUNK];
    const int rows = (int)BSMI_MIN(width, part->count - first);
    for (int r = 0; r < rows; r++) row_elements(part, first + r, values[r]);
    for (int r = rows; r < width; r++) memcpy(values[r], values[0], (size_t)part->length * sizeof(float));
    const float (*const read)[BSMI_CHUNK] = (const float (*)[BSMI_CHUNK])values;
    BY_WIDTH(width, transpose_panel, read, part->length, panel)
}

void bsmi_pack_elements(const struct bsmi_part *part, int width, float *panels)
{
    for (int64_t first = 0; first < part->count; first += width) {
        float *panel = panels + first * part->length;
        if (part->operand.matrix->bits <= 8) pack_codes(part, width, first, panel);
        else pack_wide_elements(part, width, first, panel);
    }
}

BSMI_ALWAYS_INLINE void scale_panel(int width, const float *scales, int64_t block, int64_t length, float *panel)
{
    for (int64_t first = 0; first < length; first += block, scales += width)
        for (int64_t k = first; k < BSMI_MIN(first + block, length); k++)
            for (int r = 0; r < width; r++) panel[k * width + r] *= scales[r];
}

void bsmi_pack_scaled(const struct bsmi_part *part, int width, float *panels)
{
    const int block = part->operand.matrix->block;
    bsmi_pack_elements(part, width, panels);
    if (block == 0) return;
    for (int64_t first = 0; first < part->count; first += width) {
        float scales[BSMI_CHUNK_BLOCKS * MOST_WIDTH];
        const struct bsmi_part rows = { part->operand, part->batch, part->first + first,
                                        BSMI_MIN(width, part->count - first), part->split, part->k, part->length,
                                        NULL };
        bsmi_pack_scales(&rows, block, width, scales);
        BY_WIDTH(width, scale_panel, scales, block, part->length, panels + first * part->length)
    }
}

/* Magnitudes below this one, as bits less 1, so that zero is the largest. */
static uint32_t least_magnitude(const float *values, int64_t count)
{
    uint32_t least = UINT32_MAX;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = (bsmi_float_bits(values[i]) & 0x7fffffff) - 1;
        least = BSMI_MIN(least, magnitude);
    }
    return least;
}

int bsmi_pack_scaled_wide(const struct bsmi_part *part, int width, double *panels)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    const int64_t block = m->block == 0 ? BSMI_CHUNK : m->block;
    uint32_t least = UINT32_MAX;
    for (int64_t row = 0; row < bsmi_round_up(part->count, width); row++) {
        double *panel = panels + row / width * width * part->length + row % width;
        float values[BSMI_CHUNK] = { 0 }, scales[BSMI_CHUNK_BLOCKS] = { 0 };
        if (row < part->count) {
            row_elements(part, row, values);
            row_scales(part, row, scales);
            if (m->bits > 8) least = BSMI_MIN(least, least_magnitude(values, part->length));
        }
        for (int64_t first = 0, s = 0; first < part->length; first += block, s++)
            for (int64_t k = first; k < BSMI_MIN(first + block, part->length); k++)
                panel[k * width] = (double)values[k] * (double)scales[s];
    }
    /* Every element is a multiple of its grid; a wide one also of the last of the 24 bits of the least magnitude. */
    const int grid = -bsmi_element_grid(m->element), exponent = BSMI_MAX(1, (int)((least + 1) >> 23)) - 127;
    return (m->bits > 8 && least != UINT32_MAX ? BSMI_MAX(grid, exponent - 23) : grid)
           + bsmi_part_scale_range(part).lowest;
}

void bsmi_pack_scales(const struct bsmi_part *part, int exact_block, int width, float *panels)
{
    const int64_t exact_blocks = bsmi_ceil_div(part->length, exact_block),
                  exact_blocks_per_scale = part->operand.matrix->block / exact_block;
    for (int64_t row = 0; row < bsmi_round_up(part->count, width); row++) {
        float *panel = panels + row / width * width * exact_blocks + row % width;
        float scales[BSMI_CHUNK_BLOCKS] = { 0 };
        if (row < part->count) row_scales(part, row, scales);
        for (int64_t first = 0, block = 0; first < exact_blocks; first += exact_blocks_per_scale, block++)
            for (int64_t s = first; s < BSMI_MIN(first + exact_blocks_per_scale, exact_blocks); s++)
                panel[s * width] = scales[block];
    }
}

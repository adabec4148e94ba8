/* Operands into panels. */
#include "pack.h"
#include "core/core.h"

_Static_assert(BSMI_CHUNK % 64 == 0, "half a chunk is a multiple of every block");

enum { MOST_WIDTH = 32 };

/* The scales of the part in row r, one per block; how many.  Unscaled: one, 1. */
static int row_scales(const struct bsmi_part *part, int64_t r, float *scales)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    scales[0] = 1;
    if (m->block == 0) return 1;
    uint8_t codes[BSMI_CHUNK_RUNS];
    const int count = (int)bsmi_ceil_div(part->length, m->block);
    bsmi_row_scales(m, part->batch, bsmi_source_column(part->first + r, part->split), part->k / m->block, count, codes);
    for (int s = 0; s < count; s++) scales[s] = m->scale == BSM_E8M0 ? bsmi_e8m0_to_float(codes[s]) : bsmi_ue4m3_to_float(codes[s]);
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
        uint8_t codes[BSMI_CHUNK_RUNS];
        bsmi_row_scales(m, part->batch, bsmi_source_column(part->first + r, part->split), part->k / m->block, count, codes);
        for (int s = 0; s < count; s++) {
            if (codes[s] == 255) continue;           /* NaN is NaN on every road */
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

static void row_scaled(const struct bsmi_part *part, int64_t r, float *values)
{
    const int64_t block = part->operand.matrix->block;
    row_elements(part, r, values);
    if (block == 0) return;
    float scales[BSMI_CHUNK_RUNS];
    const int count = row_scales(part, r, scales);
    for (int s = 0; s < count; s++) {
        const int64_t end = BSMI_MIN((s + 1) * block, part->length);
        for (int64_t i = s * block; i < end; i++) values[i] *= scales[s];
    }
}

/* rows[r][k] into panel[k][r]. */
static void transpose(const float (*rows)[BSMI_CHUNK], int64_t length, int width, float *panel)
{
    for (int64_t k = 0; k < length; k++)
        for (int r = 0; r < width; r++) panel[k * width + r] = rows[r][k];
}

static void pack(const struct bsmi_part *part, int width, void (*read)(const struct bsmi_part *, int64_t, float *), float *panels)
{
    float rows[MOST_WIDTH][BSMI_CHUNK];
    for (int64_t first = 0; first < part->count; first += width) {
        for (int r = 0; r < width; r++) {
            if (first + r < part->count) read(part, first + r, rows[r]);
            else memset(rows[r], 0, (size_t)part->length * sizeof(float));
        }
        transpose((const float (*)[BSMI_CHUNK])rows, part->length, width, panels + first * part->length);
    }
}

void bsmi_pack_elements(const struct bsmi_part *part, int width, float *panels) { pack(part, width, row_elements, panels); }
void bsmi_pack_scaled(const struct bsmi_part *part, int width, float *panels) { pack(part, width, row_scaled, panels); }

void bsmi_pack_scaled_wide(const struct bsmi_part *part, int width, double *panels)
{
    const int64_t block = part->operand.matrix->block == 0 ? BSMI_CHUNK : part->operand.matrix->block;
    for (int64_t row = 0; row < bsmi_round_up(part->count, width); row++) {
        double *panel = panels + row / width * width * part->length + row % width;
        float values[BSMI_CHUNK] = { 0 }, scales[BSMI_CHUNK_RUNS] = { 0 };
        if (row < part->count) {
            row_elements(part, row, values);
            row_scales(part, row, scales);
        }
        for (int64_t k = 0; k < part->length; k++) panel[k * width] = (double)values[k] * (double)scales[k / block];
    }
}

void bsmi_pack_scales(const struct bsmi_part *part, int run, int width, float *panels)
{
    const int64_t runs = bsmi_ceil_div(part->length, run), runs_per_block = part->operand.matrix->block / run;
    for (int64_t row = 0; row < bsmi_round_up(part->count, width); row++) {
        float *panel = panels + row / width * width * runs + row % width;
        float scales[BSMI_CHUNK_RUNS] = { 0 };
        if (row < part->count) row_scales(part, row, scales);
        for (int64_t s = 0; s < runs; s++) panel[s * width] = scales[s / runs_per_block];
    }
}

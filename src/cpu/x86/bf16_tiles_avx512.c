#if defined(__x86_64__)
#include "bf16_tiles_avx512.h"

#include "core/core.h"
#include "cpu/code_rows.h"
#include "matrix/rows.h"

static uint16_t upper_half(float x) { return (uint16_t)(bsmi_float_bits(x) >> 16); }

static void split_fp16(float x, uint16_t *high, uint16_t *low)
{
    const float first = bsmi_float_from_bits(bsmi_float_bits(x) & 0xffff0000);
    *high = upper_half(first == x ? x * 0.5F : first);
    *low = upper_half(first == x ? x * 0.5F : x - first);
}

static void pack(const struct bsmi_part *part, int sixteens, int terms, bool columns, uint16_t *tiles)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    memset(tiles, 0, bsmi_bf16_panel_bytes(sixteens, terms, part->length));
    for (int64_t r = 0; r < part->count; r++) {
        float values[BSMI_ROW_CHUNK];
        uint8_t scales[BSMI_ROW_CHUNK / BSMI_SHORTEST_BLOCK];
        const int64_t row = bsmi_source_column(part->first + r, part->split);
        const int exponent = part->exponents == NULL ? 0 : part->exponents[r];
        if (exponent == BSMI_FALLBACK_ROW && m->block != 0) continue;
        bsmi_row_elements(m, part->operand.values, part->batch, row, part->k, part->length, values);
        if (m->block != 0)
            bsmi_row_scales(m, part->batch, row, part->k / m->block, bsmi_ceil_div(part->length, m->block), scales);
        for (int64_t k = 0; k < part->length; k++) {
            uint16_t pair[2];
            if (m->block != 0)
                values[k] = (float)((double)values[k] * (double)part->operand.scales[scales[k / m->block]]
                                    * bsmi_double_power_of_two(-exponent));
            pair[0] = upper_half(values[k]);
            if (terms == 2) split_fp16(values[k], &pair[0], &pair[1]);
            for (int t = 0; t < terms; t++) {
                const int64_t i = k % BSMI_SLICE, j = r % BSMI_TILE_ROWS;
                tiles[((k / BSMI_SLICE * terms + t) * sixteens + r / BSMI_TILE_ROWS) * BSMI_TILE_NUMBERS
                      + (columns ? i / 2 * 32 + j * 2 + i % 2 : j * 32 + i)] = pair[t];
            }
        }
    }
}

void bsmi_bf16_row_tiles_avx512(const struct bsmi_part *part, int sixteens, int terms, uint16_t *tiles)
{
    pack(part, sixteens, terms, false, tiles);
}

void bsmi_bf16_column_tiles_avx512(const struct bsmi_part *part, int sixteens, int terms, uint16_t *tiles)
{
    pack(part, sixteens, terms, true, tiles);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

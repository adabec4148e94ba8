/* Rows of codes and of scales for packers. */
#include "code_rows.h"
#include "core/core.h"
#include "matrix/rows.h"

static void swap_nibbles(const uint8_t *from, int64_t count, uint8_t *to)
{
    for (int64_t i = 0; i < count; i++) to[i] = (uint8_t)(from[i] << 4 | from[i] >> 4);
}

static void pair_codes(const struct bsmi_part *part, int64_t row, uint8_t *to)
{
    uint8_t codes[BSMI_ROW_CHUNK + 1] = { 0 };
    bsmi_row_codes(part->operand.matrix, part->batch, row, part->k, part->length, codes);
    for (int64_t i = 0; i < part->length; i += 2) to[i / 2] = (uint8_t)(codes[i] | codes[i + 1] << 4);
}

/* Copies of row `row`, filled up. */
static void copy_nibbles(const struct bsmi_part *part, int64_t row, uint8_t *to)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    const uint8_t *from = bsmi_row(m, part->batch, row) + part->k / 2;
    const int64_t bytes = (part->length + 1) / 2;
    memset(to, 0, (size_t)bsmi_round_up(bytes, BSMI_NIBBLE_GROUP / 2));
    switch (m->packing) {
    case BSM_PACKING_LOW_FIRST: memcpy(to, from, (size_t)bytes); break;
    case BSM_PACKING_HIGH_FIRST: swap_nibbles(from, bytes, to); break;
    default: pair_codes(part, row, to); break;
    }
    if (part->length % 2 != 0) to[bytes - 1] &= 15;
}

static void copy_bytes(const struct bsmi_part *part, int64_t row, uint8_t *to)
{
    bsmi_row_codes(part->operand.matrix, part->batch, row, part->k, part->length, to);
    memset(to + part->length, 0, (size_t)(bsmi_round_up(part->length, BSMI_BYTE_GROUP) - part->length));
}

static void copy_stream(const struct bsmi_part *part, int64_t row, uint8_t *to)
{
    uint8_t codes[BSMI_ROW_CHUNK] = { 0 };
    bsmi_row_codes(part->operand.matrix, part->batch, row, part->k, part->length, codes);
    for (int64_t i = 0; i < bsmi_round_up(part->length, BSMI_BYTE_GROUP); i += 4, to += 3) {
        to[0] = (uint8_t)(codes[i] | codes[i + 1] << 6);
        to[1] = (uint8_t)(codes[i + 1] >> 2 | codes[i + 2] << 4);
        to[2] = (uint8_t)(codes[i + 2] >> 4 | codes[i + 3] << 2);
    }
}

/* Where rows are: in the matrix, from a byte of the row on, if its own bytes will do; or copied, so many bytes
 * apart. */
struct places {
    bool own;
    int64_t first_byte;
    void (*copy)(const struct bsmi_part *part, int64_t row, uint8_t *to);
    uint8_t *copies;
    int64_t step;
};

static void find_rows(const struct bsmi_part *part, int width, const struct places *places, const uint8_t **rows)
{
    for (int r = 0; r < width; r++) {
        if (r >= part->count) {
            rows[r] = rows[r - 1];
            continue;
        }
        const int64_t row = bsmi_source_column(part->first + r, part->split);
        uint8_t *copy = places->copies + r * places->step;
        rows[r] = places->own ? bsmi_row(part->operand.matrix, part->batch, row) + places->first_byte : copy;
        if (!places->own) places->copy(part, row, copy);
    }
}

void bsmi_nibble_rows(const struct bsmi_part *part, int width, struct bsmi_nibble_rows *n)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    const bool own = m->packing == BSM_PACKING_LOW_FIRST && part->length % BSMI_NIBBLE_GROUP == 0;
    const struct places places = { own, part->k / 2, copy_nibbles, n->copies[0], sizeof n->copies[0] };
    find_rows(part, width, &places, n->rows);
}

void bsmi_byte_rows(const struct bsmi_part *part, int width, struct bsmi_byte_rows *b)
{
    const bool own = part->operand.matrix->bits == 8 && part->length % BSMI_BYTE_GROUP == 0;
    const struct places places = { own, part->k, copy_bytes, b->copies[0], sizeof b->copies[0] };
    find_rows(part, width, &places, b->rows);
}

void bsmi_stream_rows(const struct bsmi_part *part, int width, struct bsmi_byte_rows *s)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    const bool own = m->packing == BSM_PACKING_BIT_STREAM && part->length % BSMI_BYTE_GROUP == 0;
    const struct places places = { own, part->k / 4 * 3, copy_stream, s->copies[0], sizeof s->copies[0] };
    find_rows(part, width, &places, s->rows);
}

int64_t bsmi_scale_code_rows(const struct bsmi_part *part, int width, struct bsmi_scale_code_rows *c)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    const int64_t blocks = bsmi_ceil_div(part->length, m->block), first = part->k / m->block;
    const bool own = m->map.layout.kind == BSM_LAYOUT_LINEAR && blocks % BSMI_SCALE_GROUP == 0;
    const uint8_t *const first_row = own ? bsmi_scale_pointer(m, part->batch, 0, first) : NULL;
    for (int r = 0; r < width; r++) {
        if (r >= part->count) {
            c->rows[r] = c->rows[r - 1];
            continue;
        }
        const int64_t row = bsmi_source_column(part->first + r, part->split);
        c->rows[r] = own ? first_row + row * m->map.layout.pitch : c->copies[r];
        if (!own) bsmi_row_scales(m, part->batch, row, first, blocks, c->copies[r]);
    }
    return blocks;
}

void bsmi_scale_rows(const struct bsmi_part *part, int exact_block, int width, float *scales)
{
    struct bsmi_scale_code_rows codes;
    const int64_t exact_blocks = bsmi_ceil_div(part->length, exact_block),
                  exact_blocks_per_scale = part->operand.matrix->block / exact_block;
    bsmi_scale_code_rows(part, width, &codes);
    for (int64_t s = 0; s < exact_blocks; s++)
        for (int r = 0; r < width; r++)
            scales[s * width + r] = part->operand.scales[codes.rows[r][exact_blocks_per_scale == 1 ? s : s / 2]];
}

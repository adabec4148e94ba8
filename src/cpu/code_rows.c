/* Rows of codes and of scales for packers. */
#include "code_rows.h"
#include "core/core.h"
#include "matrix/rows.h"

/* Eight bytes at a time: words are read and written where bytes lie, whatever the order of a word's bytes is. */
enum { WORD = 8 };
static const uint64_t low_nibbles = 0x0f0f0f0f0f0f0f0f;

static uint64_t load_word(const uint8_t *from) { uint64_t word; memcpy(&word, from, sizeof word); return word; }
static void store_word(uint8_t *to, uint64_t word) { memcpy(to, &word, sizeof word); }

static void swap_nibbles(const uint8_t *from, int64_t count, uint8_t *to)
{
    int64_t i = 0;
    for (; i + WORD <= count; i += WORD) {
        const uint64_t word = load_word(from + i);
        store_word(to + i, (word & low_nibbles) << 4 | ((word >> 4) & low_nibbles));
    }
    for (; i < count; i++) to[i] = (uint8_t)(from[i] << 4 | from[i] >> 4);
}

/* Codes in the low nibbles of eight bytes: two a byte, in four. */
static uint32_t join_nibbles(uint64_t codes)
{
    const uint64_t pairs = (codes | codes >> 4) & 0x00ff00ff00ff00ff, fours = (pairs | pairs >> 8) & 0x0000ffff0000ffff;
    return (uint32_t)(fours | fours >> 16);
}

/* `half` bytes of GGUF's, whose low nibbles are the codes of the first `half` columns and whose high ones the next. */
static void join_gguf_halves(const uint8_t *from, int half, uint8_t *to)
{
    for (int i = 0; i < half; i += WORD) {
        const uint64_t bytes = load_word(from + i);
        const uint32_t low = join_nibbles(bytes & low_nibbles), high = join_nibbles((bytes >> 4) & low_nibbles);
        memcpy(to + i / 2, &low, sizeof low);
        memcpy(to + i / 2 + half / 2, &high, sizeof high);
    }
}

/* GGUF's blocks (matrix/rows.c) as far as they are whole; returns how many codes. */
static int64_t copy_gguf(const struct bsmi_part *part, int64_t row, uint8_t *to)
{
    const bool mxfp4 = part->operand.matrix->format == BSM_MXFP4;
    const int64_t codes = mxfp4 ? 32 : 64, bytes = mxfp4 ? 17 : 36;
    const uint8_t *from = bsmi_row(part->operand.matrix, part->batch, row) + part->k / codes * bytes;
    int64_t done = 0;
    if (part->k % codes != 0) return 0;
    for (; done + codes <= part->length; done += codes, from += bytes, to += codes / 2) {
        if (mxfp4) join_gguf_halves(from + 1, 16, to);
        else for (int s = 0; s < 4; s++) join_gguf_halves(from + 4 + 8 * s, 8, to + 8 * s);
    }
    return done;
}

/* Codes from column `first` of the part on, a multiple of 2. */
static void pair_codes(const struct bsmi_part *part, int64_t row, int64_t first, uint8_t *to)
{
    const int64_t count = part->length - first;
    uint8_t codes[BSMI_ROW_CHUNK + 1];
    codes[count] = 0;
    bsmi_row_codes(part->operand.matrix, part->batch, row, part->k + first, count, codes);
    for (int64_t i = 0; i < count; i += 2) to[(first + i) / 2] = (uint8_t)(codes[i] | codes[i + 1] << 4);
}

/* Copies of row `row`, filled up. */
static void copy_nibbles(const struct bsmi_part *part, int64_t row, uint8_t *to)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    const uint8_t *from = bsmi_row(m, part->batch, row) + part->k / 2;          /* of two codes a byte in order */
    const int64_t bytes = (part->length + 1) / 2;
    memset(to, 0, (size_t)bsmi_round_up(bytes, BSMI_NIBBLE_GROUP / 2));
    switch (m->packing) {
    case BSM_PACKING_LOW_FIRST: memcpy(to, from, (size_t)bytes); break;
    case BSM_PACKING_HIGH_FIRST: swap_nibbles(from, bytes, to); break;
    case BSM_PACKING_GGUF: pair_codes(part, row, copy_gguf(part, row, to), to); break;
    default: pair_codes(part, row, 0, to); break;
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

/* Scales of a row in any layout: offset(row, s) = offset(row, 0) + offset(0, s), and the second is the same for all
 * rows. */
static void find_scale_columns(const struct bsmi_matrix *m, int64_t first, int64_t blocks, int64_t *offsets)
{
    for (int64_t s = 0; s < blocks; s++) offsets[s] = bsmi_scale_at(&m->map, 0, m->first_scale + first + s);
}

static void copy_scales(const uint8_t *row, const int64_t *offsets, int64_t blocks, uint8_t *to)
{
    for (int64_t s = 0; s < blocks; s++) to[s] = row[offsets[s]];
}

int64_t bsmi_scale_code_rows(const struct bsmi_part *part, int width, struct bsmi_scale_code_rows *c)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    const int64_t blocks = bsmi_ceil_div(part->length, m->block), first = part->k / m->block;
    const bool linear = m->map.layout.kind == BSM_LAYOUT_LINEAR, own = linear && blocks % BSMI_SCALE_GROUP == 0;
    const uint8_t *const scales = m->scales + part->batch * m->scale_batch_bytes;
    int64_t offsets[BSMI_SCALE_CODES];
    if (!linear) find_scale_columns(m, first, blocks, offsets);
    for (int r = 0; r < width; r++) {
        if (r >= part->count) {
            c->rows[r] = c->rows[r - 1];
            continue;
        }
        const int64_t row = bsmi_source_column(part->first + r, part->split);
        const uint8_t *const linear_row = scales + row * m->map.layout.pitch + m->first_scale + first;
        c->rows[r] = own ? linear_row : c->copies[r];
        if (own) continue;
        if (linear) memcpy(c->copies[r], linear_row, (size_t)blocks);
        else copy_scales(scales + bsmi_scale_at(&m->map, row, 0), offsets, blocks, c->copies[r]);
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

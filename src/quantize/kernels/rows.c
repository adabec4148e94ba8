/* Rows of blocks through a kernel: where numbers come from, where scales go, and what the kernel leaves to block.c. */
#include "rows.h"

#include "core/core.h"
#include "matrix/rows.h"

enum { SMALLEST_BLOCK = 16, SPAN_BLOCKS = BSMI_WALK_SPAN / SMALLEST_BLOCK };

/* Where the scales of a span lie: offsets of a row and of a column add up (layout.h). */
struct scale_places {
    bool linear;
    int64_t columns[SPAN_BLOCKS];         /* from a row's first scale; unused where they follow one another */
};

static void find_scale_places(const struct bsmi_matrix *m, int64_t first, int64_t count, struct scale_places *places)
{
    places->linear = m->map.layout.kind == BSM_LAYOUT_LINEAR;
    for (int64_t s = 0; s < count && !places->linear; s++) places->columns[s] = bsmi_scale_at(&m->map, 0, first + s);
}

/* Scales [first, first + count) of the span whose first scale is `span`. */
static void store_scales(const struct bsmi_matrix *m, const struct scale_places *places, const struct bsmi_piece *piece,
                         int64_t span, int64_t count, const uint8_t *codes)
{
    const int64_t first = piece->k / m->block;
    if (places->linear) {
        memcpy(bsmi_scale_pointer(m, piece->batch, piece->row, first), codes, (size_t)count);
        return;
    }
    unsigned char *row = bsmi_scale_pointer(m, piece->batch, piece->row, 0);
    for (int64_t s = 0; s < count; s++) row[places->columns[first - span + s]] = codes[s];
}

/* Where column k of a row begins, k a multiple of 16. */
static unsigned char *code_pointer(const struct bsmi_matrix *m, const struct bsmi_piece *piece)
{
    unsigned char *row = bsmi_row(m, piece->batch, piece->row);
    switch (m->packing) {
    case BSM_PACKING_LOW_FIRST:
    case BSM_PACKING_HIGH_FIRST: return row + piece->k / 2;
    case BSM_PACKING_BIT_STREAM: return row + piece->k / 4 * 3;
    default: return row + piece->k;
    }
}

/* Blocks of x one after the other: those that the kernel cannot do, and the short one that ends a row. */
static void quantize_left_over(const struct bsmi_block_rows *rows, const struct bsmi_piece *piece, const float *x,
                               int64_t whole)
{
    const struct bsmi_matrix *m = rows->destination;
    for (int64_t i = 0; i < piece->count; i += m->block) {
        const int count = (int)BSMI_MIN(piece->count - i, m->block);
        struct bsmi_block_scan scan = { 0, false };
        uint8_t codes[32];
        double wide[32];
        for (int j = 0; j < count; j++) wide[j] = (double)x[i + j];
        bsmi_scan_block(wide, count, &scan);
        const uint32_t amax_bits = bsmi_float_bits((float)scan.amax);
        if (i < whole && !scan.nonfinite && bsmi_block_takes_fast_path(&rows->coding, amax_bits)) continue;
        *bsmi_scale_pointer(m, piece->batch, piece->row, (piece->k + i) / m->block) =
            bsmi_quantize_scanned_block(rows->quantizer, wide, count, &scan, 0, codes, NULL);
        bsmi_row_store_codes(m, piece->batch, piece->row, piece->k + i, count, codes);
    }
}

const float *bsmi_piece_numbers(const struct bsmi_block_rows *rows, const struct bsmi_piece *piece, float *copy)
{
    const struct bsmi_reals *source = rows->source;
    const int64_t first = bsmi_real_index(source, piece->batch, piece->row, piece->k);
    const bool in_order = source->column_stride == 1;
    if (in_order && source->type == BSM_REAL_FP32) return (const float *)(const void *)source->data + first;
    if (in_order)
        rows->kernel->widen(source->type, source->data + first * (int64_t)sizeof(uint16_t), piece->count, copy);
    else bsmi_reals_row(source, piece->batch, piece->row, piece->k, piece->count, copy);
    return copy;
}

/* What a kernel reads where it lies. */
static bool in_order(const struct bsmi_reals *source)
{
    return source->column_stride == 1 && source->type != BSM_REAL_FP64;
}

/* The numbers of a piece of a row, a few at a time. */
static void quantize_what_is_left(const struct bsmi_block_rows *rows, const struct bsmi_piece *piece, int64_t first)
{
    const int64_t end = piece->k + piece->count, whole = piece->count / rows->destination->block;
    float copy[BSMI_PIECE];
    for (int64_t k = piece->k + first; k < end; k += BSMI_PIECE) {
        const struct bsmi_piece part = { piece->batch, piece->row, k, BSMI_MIN(BSMI_PIECE, end - k) };
        const int64_t whole_here = piece->k + whole * rows->destination->block - k;
        quantize_left_over(rows, &part, bsmi_piece_numbers(rows, &part, copy), whole_here);
    }
}

static void quantize_run(const struct bsmi_block_rows *rows, const struct scale_places *places, int64_t span,
                         const struct bsmi_piece *piece)
{
    const struct bsmi_matrix *m = rows->destination;
    const struct bsmi_reals *source = rows->source;
    const int64_t blocks = piece->count / m->block;
    const bool gguf = m->packing == BSM_PACKING_GGUF;     /* whose blocks are filled from codes that lie one a byte */
    uint8_t scales[SPAN_BLOCKS], codes[BSMI_WALK_SPAN];
    float copy[BSMI_PIECE];
    struct bsmi_block_row row = { BSM_REAL_FP32, copy, blocks, scales, gguf ? codes : code_pointer(m, piece),
                                  gguf ? BSM_PACKING_BYTES : m->packing };
    if (in_order(source)) {
        const int64_t first = bsmi_real_index(source, piece->batch, piece->row, piece->k);
        row.type = source->type, row.x = source->data + first * (int64_t)bsm_real_bytes((int)source->type);
    } else {
        bsmi_reals_row(source, piece->batch, piece->row, piece->k, piece->count, copy);
    }
    const bool fast = rows->kernel->quantize(&rows->coding, &row);
    if (gguf) bsmi_row_store_codes(m, piece->batch, piece->row, piece->k, blocks * m->block, codes);
    store_scales(m, places, piece, span, blocks, scales);
    if (!fast) quantize_what_is_left(rows, piece, 0);
    else if (blocks * m->block < piece->count)
        quantize_what_is_left(rows, piece, piece->count / BSMI_PIECE * BSMI_PIECE);
}

/* Rows go through a span one after the other where a kernel reads them, and else piece by piece together, so that
 * columns of a transposed source stay in the cache. */
void bsmi_quantize_area(const struct bsmi_block_rows *rows, const struct bsmi_walk_area *area)
{
    const struct bsmi_matrix *m = rows->destination;
    const int64_t step = in_order(rows->source) ? BSMI_WALK_SPAN : BSMI_PIECE;
    const int64_t span = area->k / m->block, end = area->k + area->columns;
    struct scale_places places;
    find_scale_places(m, span, bsmi_ceil_div(area->columns, m->block), &places);
    for (int64_t k = area->k; k < end; k += step)
        for (int64_t row = area->row; row < area->row + area->rows; row++) {
            const struct bsmi_piece piece = { area->batch, row, k, BSMI_MIN(step, end - k) };
            quantize_run(rows, &places, span, &piece);
        }
}

/* Codes of MN-major matrices, K-major: squares of codes, one per byte, are turned where the first-level cache has
 * them. */
#include "transpose.h"

#include "core/core.h"
#include "rows.h"

enum { SIDE = BSMI_TRANSPOSED_ROWS };

struct square { int64_t batch, row, k; int rows, columns; };

static void turn_codes(const struct bsmi_matrix *stored, const struct bsmi_matrix *to, const struct square *s)
{
    uint8_t codes[SIDE][SIDE], row[SIDE];
    for (int i = 0; i < s->columns; i++) bsmi_row_codes(stored, s->batch, s->k + i, s->row, s->rows, codes[i]);
    for (int r = 0; r < s->rows; r++) {
        for (int i = 0; i < s->columns; i++) row[i] = codes[i][r];
        bsmi_row_store_codes(to, s->batch, s->row + r, s->k, s->columns, row);
    }
}

/* Elements of 16 and 32 bits, `bytes` each. */
static void turn_wide(const struct bsmi_matrix *stored, const struct bsmi_matrix *to, const struct square *s,
                      size_t bytes)
{
    for (int i = 0; i < s->columns; i++) {
        const unsigned char *from = bsmi_row(stored, s->batch, s->k + i) + (size_t)s->row * bytes;
        for (int r = 0; r < s->rows; r++)
            memcpy(bsmi_row(to, s->batch, s->row + r) + (size_t)(s->k + i) * bytes, from + (size_t)r * bytes, bytes);
    }
}

int64_t bsmi_transpose_pieces(const struct bsmi_matrix *from)
{
    return from->batch * bsmi_ceil_div(from->rows, BSMI_TRANSPOSED_ROWS)
           * bsmi_ceil_div(from->columns, BSMI_TRANSPOSED_COLUMNS);
}

void bsmi_transpose_piece(const struct bsmi_matrix *from, const struct bsmi_matrix *to, int64_t piece)
{
    const int64_t of_columns = bsmi_ceil_div(from->columns, BSMI_TRANSPOSED_COLUMNS),
                  of_rows = bsmi_ceil_div(from->rows, BSMI_TRANSPOSED_ROWS), band = piece / of_columns,
                  first = piece % of_columns * BSMI_TRANSPOSED_COLUMNS,
                  end = BSMI_MIN(first + BSMI_TRANSPOSED_COLUMNS, from->columns);
    const struct bsmi_matrix stored = bsmi_matrix_stored(from);
    struct square s = { .batch = band / of_rows, .row = band % of_rows * BSMI_TRANSPOSED_ROWS };
    s.rows = (int)BSMI_MIN(from->rows - s.row, SIDE);
    for (s.k = first; s.k < end; s.k += SIDE) {
        s.columns = (int)BSMI_MIN(end - s.k, SIDE);
        if (from->bits <= 8) turn_codes(&stored, to, &s);
        else turn_wide(&stored, to, &s, (size_t)from->bits / 8);
    }
}

/* Exponents of rows put back into sums, and the sums of fallback rows. */
#include "bf16_sums.h"

#include "core/core.h"
#include "kernels.h"
#include "row_exponents.h"

/* Sums of fallback rows are made in pieces of the tile, beside it: kernels write whole register tiles. */
enum { PIECE_ROWS = 56, PIECE_COLUMNS = 256, PIECE_PITCH = PIECE_COLUMNS + 16 };

size_t bsmi_bf16_exponents_bytes(int64_t rows, int64_t columns)
{
    return (size_t)bsmi_round_up((rows + columns) * (int64_t)sizeof(int16_t), BSMI_ALIGNMENT);
}

static bool all_zero(const int16_t *exponents, int64_t count)
{
    int any = 0;
    for (int64_t i = 0; i < count; i++) any |= exponents[i];
    return any == 0;
}

struct bsmi_bf16_exponents bsmi_bf16_find_exponents(const struct bsmi_tile *tile, void *memory)
{
    int16_t *const a = memory, *const b = a + tile->rows;
    const bool a_is_bf16 = tile->a.matrix->element == BSM_BF16, b_is_bf16 = tile->b.matrix->element == BSM_BF16;
    bsmi_row_exponents(&tile->a, b_is_bf16, tile->a_batch, tile->row, tile->rows, 0, tile->k, a);
    bsmi_row_exponents(&tile->b, a_is_bf16, tile->b_batch, tile->column, tile->columns, tile->split, tile->k, b);
    return (struct bsmi_bf16_exponents){ all_zero(a, tile->rows) ? NULL : a, all_zero(b, tile->columns) ? NULL : b };
}

/* The portable order ----------------------------------------------------------------------------------------------- */

static bool sums_exact_blocks(const struct bsmi_tile *tile)
{
    return bsmi_sums_exact_blocks(tile->a.matrix->format, tile->b.matrix->format);
}

#if defined(__x86_64__)
/* Machines with units of bf16 numbers have what these need: the table's rows of such kernels ask for it. */
static const struct bsmi_microkernel *portable_order(const struct bsmi_tile *tile)
{
    return sums_exact_blocks(tile) ? &bsmi_int8_dot_vnni : &bsmi_fp32_chains_avx512;
}

static void sum_in_portable_order(const struct bsmi_tile *tile, void *scratch)
{
    bsmi_microkernel_sum(portable_order(tile), tile, scratch);
}

static size_t portable_scratch_bytes(int64_t rows, int64_t columns)
{
    return BSMI_MAX(bsmi_microkernel_scratch_bytes(&bsmi_int8_dot_vnni, rows, columns),
                    bsmi_microkernel_scratch_bytes(&bsmi_fp32_chains_avx512, rows, columns));
}
#else
static void sum_in_portable_order(const struct bsmi_tile *tile, void *scratch)
{
    if (sums_exact_blocks(tile)) bsmi_tile_exact_blocks_portable(tile, scratch);
    else bsmi_tile_fp32_chains_portable(tile, scratch);
}

static size_t portable_scratch_bytes(int64_t rows, int64_t columns)
{
    return bsmi_tile_scratch_portable(rows, columns);
}
#endif

/* Fallback rows ---------------------------------------------------------------------------------------------------- */

enum { PIECE_BYTES = PIECE_ROWS * PIECE_PITCH * sizeof(float) };

size_t bsmi_bf16_finish_scratch_bytes(int64_t rows, int64_t columns)
{
    return PIECE_BYTES + portable_scratch_bytes(BSMI_MIN(rows, PIECE_ROWS), BSMI_MIN(columns, PIECE_COLUMNS));
}

/* From the first to behind the last fallback row of some; empty: 0 and 0. */
struct range { int64_t first, end; };

static struct range fallback_rows(const int16_t *exponents, int64_t first, int64_t count)
{
    struct range found = { 0, 0 };
    for (int64_t i = first; exponents != NULL && i < first + count; i++) {
        if (exponents[i] != BSMI_FALLBACK_ROW) continue;
        if (found.end == 0) found.first = i;
        found.end = i + 1;
    }
    return found;
}

static bool is_fallback(const int16_t *exponents, int64_t i)
{
    return exponents != NULL && exponents[i] == BSMI_FALLBACK_ROW;
}

/* Rows x columns of the tile once more, of which those of fallback rows are taken. */
static void replace(const struct bsmi_tile *tile, const struct bsmi_bf16_exponents *e, const struct range *rows,
                    const struct range *columns, void *scratch)
{
    struct bsmi_tile piece = *tile;
    piece.row += rows->first, piece.rows = rows->end - rows->first;
    piece.column += columns->first, piece.columns = columns->end - columns->first;
    piece.prepacked_b = NULL;
    piece.sums = scratch, piece.sums_pitch = PIECE_PITCH, piece.sums_columns = 0;
    sum_in_portable_order(&piece, (unsigned char *)scratch + PIECE_BYTES);
    for (int64_t i = 0; i < piece.rows; i++)
        for (int64_t j = 0; j < piece.columns; j++)
            if (is_fallback(e->a, rows->first + i) || is_fallback(e->b, columns->first + j))
                tile->sums[(rows->first + i) * tile->sums_pitch + columns->first + j] =
                    piece.sums[i * PIECE_PITCH + j];
}

static void replace_in_piece(const struct bsmi_tile *tile, const struct bsmi_bf16_exponents *e, int64_t row,
                             int64_t column, void *scratch)
{
    const struct range all_rows = { row, BSMI_MIN(row + PIECE_ROWS, tile->rows) },
                       all_columns = { column, BSMI_MIN(column + PIECE_COLUMNS, tile->columns) },
                       rows = fallback_rows(e->a, row, all_rows.end - row),
                       columns = fallback_rows(e->b, column, all_columns.end - column);
    if (rows.end == 0 && columns.end == 0) return;
    replace(tile, e, columns.end == 0 ? &rows : &all_rows, rows.end == 0 ? &columns : &all_columns, scratch);
}

/* Exponents -------------------------------------------------------------------------------------------------------- */

/* A fallback row's is anything: its sums are replaced. */
static int known(const int16_t *exponents, int64_t i)
{
    return exponents == NULL || exponents[i] == BSMI_FALLBACK_ROW ? 0 : exponents[i];
}

static void scale_row(float *sums, int64_t count, int a, const int16_t *b)
{
    for (int64_t j = 0; j < count; j++)
        sums[j] = (float)((double)sums[j] * bsmi_double_power_of_two(a + known(b, j)));
}

static void finish_columns(const struct bsmi_tile *tile, const struct bsmi_bf16_exponents *e, void *scratch)
{
    for (int64_t i = 0; i < tile->rows; i++)
        if (known(e->a, i) != 0 || e->b != NULL)
            scale_row(tile->sums + i * tile->sums_pitch, tile->columns, known(e->a, i), e->b);
    for (int64_t i = 0; i < tile->rows; i += PIECE_ROWS)
        for (int64_t j = 0; j < tile->columns; j += PIECE_COLUMNS) replace_in_piece(tile, e, i, j, scratch);
}

void bsmi_bf16_finish(const struct bsmi_tile *tile, const struct bsmi_bf16_exponents *e, void *scratch)
{
    const int64_t columns = tile->sums_columns == 0 ? tile->columns : tile->sums_columns;
    if (e->a == NULL && e->b == NULL) return;
    for (int64_t j = 0; j < tile->columns; j += columns) {
        struct bsmi_tile part = *tile;
        const struct bsmi_bf16_exponents of_part = { e->a, bsmi_exponents_from(e->b, j) };
        part.column += j, part.columns = BSMI_MIN(columns, tile->columns - j);
        part.sums = bsmi_sums_at(tile, 0, j), part.sums_columns = 0;
        finish_columns(&part, &of_part, scratch);
    }
}

/* Microkernels ----------------------------------------------------------------------------------------------------- */

size_t bsmi_bf16_microkernel_scratch_bytes(const struct bsmi_microkernel *micro, int64_t rows, int64_t columns)
{
    return bsmi_bf16_exponents_bytes(rows, columns) + BSMI_MAX(bsmi_microkernel_scratch_bytes(micro, rows, columns),
                                                               bsmi_bf16_finish_scratch_bytes(rows, columns));
}

void bsmi_bf16_microkernel_sum(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile, void *memory)
{
    const struct bsmi_bf16_exponents exponents = bsmi_bf16_find_exponents(tile, memory);
    void *const scratch = (unsigned char *)memory + bsmi_bf16_exponents_bytes(tile->rows, tile->columns);
    bsmi_microkernel_sum_rows(micro, tile, &exponents, scratch);
    bsmi_bf16_finish(tile, &exponents, scratch);
}

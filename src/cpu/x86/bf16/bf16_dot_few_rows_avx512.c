/* Up to 16 rows of A by vdpbf16ps, in the order of bf16_dot_avx512.c: B is read as it is stored, once.
 *
 * 128 columns by two or four slices of K are decoded into column tiles in the first-level cache, and multiplied from
 * there: for a single row so many columns at once that the sums do not wait for one another.  A cache line of codes is
 * read whole before the next row's, since rows often lie so that few of their lines fit the cache together.  While 16
 * columns are decoded, as many bytes of what comes next are asked for, row by row as memory likes it. */
#if defined(__x86_64__)
#include "bf16_columns_avx512.h"
#include "bf16_dot_avx512.h"
#include "core/core.h"
#include "cpu/kernels.h"

enum {
    ROWS = 16, SIXTEENS = 8, COLUMNS = SIXTEENS * BSMI_TILE_ROWS, CHUNK = BSMI_ROW_CHUNK, SLICES = CHUNK / BSMI_SLICE,
    PIECE = 512,                          /* columns of K of A packed at a time */
};

/* [slice][row][column]; of few rows 1, 2, 4 or 8 lie side by side. */
struct a_panel { _Alignas(64) uint16_t numbers[SLICES * ROWS * BSMI_SLICE]; };

/* Bytes to be asked for: rows of codes, one after the other. */
struct ahead {
    struct bsmi_part part;                /* of no rows: nothing */
    int64_t first_byte, row_bytes;
};

struct b_panel {
    struct bsmi_bf16_rows sixteens[SIXTEENS];
    struct ahead ahead;
    int count;                            /* of sixteens */
};

/* Packing ---------------------------------------------------------------------------------------------------------- */

static int width_of(int64_t rows) { return rows > 8 ? 16 : rows > 4 ? 8 : rows > 2 ? 4 : (int)rows; }

DOT static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
{
    struct a_panel *const panel = memory;
    const size_t width = (size_t)width_of(part->count) * BSMI_SLICE;
    _Alignas(64) uint16_t tiles[PIECE / BSMI_SLICE][BSMI_TILE_NUMBERS];
    uint16_t *to = panel->numbers;
    (void)b, (void)exact_block;
    for (int64_t k = 0; k < part->length; k += PIECE) {
        struct bsmi_part piece = *part;
        piece.k += k, piece.length = BSMI_MIN(PIECE, part->length - k);
        bsmi_bf16_row_tiles_avx512(&piece, 1, 1, tiles[0]);
        for (int64_t s = 0; s * BSMI_SLICE < piece.length; s++, to += width)
            memcpy(to, tiles[s], width * sizeof *to);
    }
}

/* Of the same columns the next chunk of K, else the next columns from the beginning on. */
static struct ahead find_ahead(const struct bsmi_part *part)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    struct ahead ahead = { *part, 0, 0 };
    const int64_t k = part->k + part->length, all = part->split == 0 ? m->rows : 2 * part->split;
    if (k < m->columns) {
        ahead.first_byte = k * m->bits / 8;
        ahead.row_bytes = BSMI_MIN(CHUNK, m->columns - k) * m->bits / 8;
    } else {
        ahead.part.first += COLUMNS;
        ahead.part.count = BSMI_MAX(0, BSMI_MIN(COLUMNS, all - ahead.part.first));
        ahead.row_bytes = BSMI_MIN(CHUNK, m->columns) * m->bits / 8;
    }
    return ahead;
}

DOT static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    struct b_panel *const panel = memory;
    (void)exact_block;
    panel->count = (int)bsmi_ceil_div(part->count, BSMI_TILE_ROWS);
    panel->ahead = find_ahead(part);
    for (int i = 0; i < panel->count; i++) bsmi_bf16_rows_make(part, i * BSMI_TILE_ROWS, true, &panel->sixteens[i]);
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

/* Where asking has come to. */
struct asked { int64_t row, byte; };

DOT_INLINE void ask_for(const struct ahead *ahead, struct asked *asked, int64_t bytes)
{
    if (asked->row >= ahead->part.count) return;
    const int64_t row = bsmi_source_column(ahead->part.first + asked->row, ahead->part.split);
    const uint8_t *const from = bsmi_row(ahead->part.operand.matrix, ahead->part.batch, row) + ahead->first_byte;
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)(asked->byte + i)), 0, 2);
    asked->byte += bytes;
    if (asked->byte >= ahead->row_bytes) asked->byte = 0, asked->row++;
}

typedef uint16_t decoded_tiles[SIXTEENS][BSMI_MOST_SLICES][BSMI_TILE_NUMBERS];

/* sums[row][16 * sixteens] += a[slice][row][32] times column tiles. */
DOT_INLINE void multiply_tiles(int rows, int sixteens, int slices, const uint16_t *a,
                               uint16_t (*tiles)[BSMI_MOST_SLICES][BSMI_TILE_NUMBERS], float *sums, int64_t pitch)
{
    __m512 acc[ROWS][SIXTEENS];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < sixteens; c++) acc[r][c] = _mm512_load_ps(sums + r * pitch + c * BSMI_TILE_ROWS);
    for (int s = 0; s < slices; s++, a += rows * BSMI_SLICE)
#pragma GCC unroll 2
        for (int k = 0; k < BSMI_SLICE; k += 2) {
            __m512i b[SIXTEENS];
#pragma GCC unroll 8
            for (int c = 0; c < sixteens; c++) b[c] = _mm512_load_si512(tiles[c][s] + k * BSMI_TILE_ROWS);
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++) {
                const __m512i pair = broadcast_pair(a + r * BSMI_SLICE + k);
#pragma GCC unroll 8
                for (int c = 0; c < sixteens; c++) add_pairs(&acc[r][c], b[c], pair);
            }
        }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < sixteens; c++) _mm512_store_ps(sums + r * pitch + c * BSMI_TILE_ROWS, acc[r][c]);
}

/* Of so many columns at once that there are 16 sums, of a single row 8. */
DOT static void multiply_all(int width, int slices, const uint16_t *a, decoded_tiles tiles, float *sums,
                             int64_t pitch)
{
#define BY(rows, sixteens) \
    for (int c = 0; c < SIXTEENS; c += (sixteens)) \
        multiply_tiles(rows, sixteens, slices, a, tiles + c, sums + c * BSMI_TILE_ROWS, pitch)
    switch (width) {
    case 1: BY(1, 8); break;
    case 2: BY(2, 8); break;
    case 4: BY(4, 4); break;
    case 8: BY(8, 2); break;
    default: BY(16, 1); break;
    }
#undef BY
}

DOT_INLINE void multiply_slices(enum bsmi_bf16_kind kind, int width, int64_t slices, const uint16_t *a,
                                const struct b_panel *b, float *sums, int64_t pitch)
{
    _Alignas(64) decoded_tiles tiles;
    struct bsmi_bf16_lines lines;
    const int at_once = bf16_slices_of_lines(kind);
    struct asked asked = { 0, 0 };
    memset(tiles[b->count], 0, (size_t)(SIXTEENS - b->count) * sizeof tiles[0]);
    for (int64_t s = 0; s < slices; s += at_once, a += at_once * width * BSMI_SLICE) {
        const int some = (int)BSMI_MIN(at_once, slices - s);
        for (int c = 0; c < b->count; c++) {
            ask_for(&b->ahead, &asked, some * bf16_slice_bytes(kind) * BSMI_TILE_ROWS);
            bsmi_bf16_read_lines(kind, &b->sixteens[c], s, some, &lines);
            for (int i = 0; i < some; i++)
                bsmi_bf16_decode_columns(kind, &b->sixteens[c], s + i, &lines, i, tiles[c][i]);
        }
        multiply_all(width, some, a, tiles, sums, pitch);
    }
}

DOT static void multiply(int64_t rows, int64_t length, int exact_block, const void *left, const void *right,
                         float *sums, int64_t pitch)
{
    const struct a_panel *const a = left;
    const struct b_panel *const b = right;
    const int64_t slices = bsmi_ceil_div(length, BSMI_SLICE);
    (void)exact_block;
    BSMI_BY_BF16_KIND(b->sixteens[0].kind, multiply_slices, width_of(rows), slices, a->numbers, b, sums, pitch)
}

_Static_assert(sizeof(struct a_panel) % 64 == 0 && sizeof(struct b_panel) % 64 == 0,
               "panels follow one another at vectors' alignment");

const struct bsmi_microkernel bsmi_bf16_dot_few_rows_avx512 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel), .row_exponents = true,
    .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

/* Rows of MXFP4 that int8 holds: their scales, but for those of blocks of zeros, span at most three powers of two, and
 * the squares of their integers add up to at most 2^24 (docs/design/hopper.md). */
#include "int8_rows.h"

#include <stdio.h>

enum { BLOCK = 32, MOST_SHIFT = 3, NAN_SCALE = 255, MOST_SQUARES = 1 << 24, MOST_IN_BLOCK = BLOCK * 12 * 12 };
enum reason { FITS, HAS_NAN, SPANS, SUMS, REASONS };

static int scale_at(const bsm_matrix *m, int64_t row, int64_t block)
{
    uint8_t scale = 0;
    (void)bsm_matrix_get_scale(m, 0, row, block, &scale);
    return scale;
}

static bool is_zero(const bsm_matrix *m, int64_t row, int64_t block)
{
    uint32_t code = 0, magnitudes = 0;
    for (int64_t k = block * BLOCK; k < (block + 1) * BLOCK && k < m->columns; k++) {
        (void)bsm_matrix_get_code(m, 0, row, k, &code);
        magnitudes |= code & 7;
    }
    return magnitudes == 0;
}

/* Of a block's doubled elements. */
static int64_t squares_in(const bsm_matrix *m, int64_t row, int64_t block)
{
    static const int64_t squares_of_codes[] = { 0, 1, 4, 9, 16, 36, 64, 144 };
    int64_t squares = 0;
    for (int64_t k = block * BLOCK; k < (block + 1) * BLOCK && k < m->columns; k++) {
        uint32_t code = 0;
        (void)bsm_matrix_get_code(m, 0, row, k, &code);
        squares += squares_of_codes[code & 7];
    }
    return squares;
}

/* Of a row whose least scale this is; codes are looked at only if the largest ones would be too many. */
static bool squares_fit(const bsm_matrix *m, int64_t row, int64_t blocks, int least)
{
    for (int looks = 0; looks < 2; looks++) {
        int64_t squares = 0;
        for (int64_t block = 0; block < blocks; block++) {
            const int above = scale_at(m, row, block) - least, shift = above < 0            ? 0
                                                                       : above > MOST_SHIFT ? MOST_SHIFT
                                                                                            : above;
            squares += (looks ? squares_in(m, row, block) : MOST_IN_BLOCK) << 2 * shift;
        }
        if (squares <= MOST_SQUARES) return true;
    }
    return false;
}

static enum reason reason_of(const bsm_matrix *m, int64_t row, int64_t blocks)
{
    int least = NAN_SCALE, most = -1;
    for (int64_t block = 0; block < blocks; block++) {
        const int scale = scale_at(m, row, block);
        if (scale == NAN_SCALE) return HAS_NAN;
        if ((scale >= least && scale <= most) || is_zero(m, row, block)) continue;
        least = scale < least ? scale : least, most = scale > most ? scale : most;
    }
    if (most - least > MOST_SHIFT) return SPANS;
    return most < 0 || squares_fit(m, row, blocks, least) ? FITS : SUMS;
}

bool int8_rows_describe(const char *name, const bsm_matrix *m, char *text, size_t bytes)
{
    int64_t rows[REASONS] = { 0 };
    const int64_t blocks = bsm_matrix_scale_columns(m);
    for (int64_t row = 0; row < m->rows; row++) rows[reason_of(m, row, blocks)]++;
    snprintf(text, bytes,
             "%s: %lld of %lld rows fit int8; %lld do not because their scales span more than 3 powers of "
             "two, %lld for the size of sums, %lld for NaN",
             name, (long long)rows[FITS], (long long)m->rows, (long long)rows[SPANS], (long long)rows[SUMS],
             (long long)rows[HAS_NAN]);
    return rows[FITS] == m->rows;
}

/* Counting of quantized pieces, see count.h.
 *
 * Sums of squares are added number after number, in the order of block.c: here for blocks with numbers that are not
 * finite and for short ones, by the kernel for all others. */
#include "count.h"

#include "core/core.h"
#include "matrix/rows.h"
#include "quantize/block/scale_code.h"
#include "quantize/walk/stats.h"

enum { SMALLEST_BLOCK = 16, PIECE_BLOCKS = BSMI_PIECE / SMALLEST_BLOCK };
_Static_assert((int)BSMI_PIECE <= (int)BSMI_COUNTED, "a kernel counts a piece at once");

/* A piece with its codes and what they are worth. */
struct piece {
    const float *x;
    int count;
    uint8_t scale_codes[PIECE_BLOCKS], codes[BSMI_PIECE];
    double scales[PIECE_BLOCKS], most[PIECE_BLOCKS];
    double factor; /* |x| factor above `most`: x was cut */
};

void bsmi_count_prepare(struct bsmi_block_rows *rows)
{
    bsmi_element_table(rows->quantizer->element, rows->values.elements);
    for (int code = 0; code < 256; code++)
        rows->values.scales[code] = bsm_scale_decode(rows->quantizer->scale, (uint8_t)code);
}

/* x / divisor lies beyond the largest code.  Both products are exact, and differ by 2^-48 of themselves if at all:
 * the quotient, rounded to a double, lies as far on the same side.  A scale of 0 divides by infinity, which cuts
 * nothing. */
static void find_limits(const struct bsmi_block_quantizer *quantizer, int blocks, struct piece *p)
{
    const double max = bsm_element_get((int)quantizer->element)->max_value, t = quantizer->tensor_scale;
    p->factor = quantizer->tensor_scale_divides ? t : 1;
    for (int b = 0; b < blocks; b++)
        p->most[b] = max * bsmi_division_of(p->scales[b], t, quantizer->tensor_scale_divides).divisor;
}

static void read_piece(const struct bsmi_block_rows *rows, const struct bsmi_piece *piece, float *copy, struct piece *p)
{
    const struct bsmi_matrix *m = rows->destination;
    const int blocks = (int)bsmi_ceil_div(piece->count, m->block);
    p->x = bsmi_piece_numbers(rows, piece, copy);
    p->count = (int)piece->count;
    bsmi_row_codes(m, piece->batch, piece->row, piece->k, piece->count, p->codes);
    bsmi_row_scales(m, piece->batch, piece->row, piece->k / m->block, blocks, p->scale_codes);
    for (int b = 0; b < blocks; b++) p->scales[b] = (double)rows->values.scales[p->scale_codes[b]];
    find_limits(rows->quantizer, blocks, p);
}

/* Block by block --------------------------------------------------------------------------------------------------- */

static double largest_finite(const float *x, int count, bool *nonfinite)
{
    uint32_t largest = 0;
    *nonfinite = false;
    for (int i = 0; i < count; i++) {
        const uint32_t magnitude = bsmi_float_bits(x[i]) & 0x7fffffff;
        *nonfinite |= magnitude >= 0x7f800000;
        largest = magnitude < 0x7f800000 ? BSMI_MAX(largest, magnitude) : largest;
    }
    return bsmi_widen(bsmi_float_from_bits(largest));
}

/* Blocks that may have numbers that are not finite, and the short one that ends a row. */
static void count_block(const struct bsmi_block_rows *rows, const struct piece *p, int block, int b,
                        struct bsmi_block_stats *stats)
{
    const struct bsmi_block_quantizer *q = rows->quantizer;
    const int first = b * block, count = BSMI_MIN(p->count - first, block);
    bool nonfinite, nonzero = false, nonzero_back = false;
    stats->amax = BSMI_MAX(stats->amax, largest_finite(p->x + first, count, &nonfinite));
    if (nonfinite && q->nonfinite == BSM_NONFINITE_PROPAGATE) {
        stats->nan_blocks++;
        return;
    }
    for (int i = first; i < first + count; i++) {
        const double x = bsmi_widen(p->x[i]);
        const double element = (double)rows->values.elements[p->codes[i]];
        const double back = bsmi_scaled_value(element, p->scales[b], q->tensor_scale, q->tensor_scale_divides);
        nonzero |= x != 0;
        nonzero_back |= back != 0;
        bsmi_count_element(stats, x, back, fabs(x) * p->factor > p->most[b]);
    }
    stats->flushed_blocks += nonzero && !nonzero_back;
}

/* Through the kernel ----------------------------------------------------------------------------------------------- */

static void start_counts(const struct bsmi_block_stats *stats, struct bsmi_row_counts *counts)
{
    *counts = (struct bsmi_row_counts){ .signal = stats->signal, .noise = stats->noise };
}

static void end_counts(const struct bsmi_row_counts *counts, struct bsmi_block_stats *stats)
{
    stats->signal = counts->signal;
    stats->noise = counts->noise;
    stats->saturated_elements += counts->saturated;
    stats->flushed_blocks += counts->flushed;
    for (int i = 0; i < 16; i++)
        stats->amax = BSMI_MAX(stats->amax, bsmi_widen(bsmi_float_from_bits((uint32_t)counts->amax_bits[i])));
}

/* Whole blocks; false if some number is not finite. */
static bool count_whole(const struct bsmi_block_rows *rows, const struct piece *p, int block,
                        struct bsmi_row_counts *counts)
{
    const struct bsmi_block_quantizer *q = rows->quantizer;
    const struct bsmi_quantized_row row = {
        p->x, rows->values.elements, p->codes, p->scales, p->most, p->count / block, block, rows->destination->bits,
        p->factor, q->tensor_scale, q->tensor_scale_divides
    };
    return rows->kernel->count(&row, counts);
}

static void count_piece(const struct bsmi_block_rows *rows, const struct bsmi_piece *piece,
                        struct bsmi_row_counts *counts, struct bsmi_block_stats *stats)
{
    const int block = rows->destination->block, blocks = (int)bsmi_ceil_div(piece->count, block);
    float copy[BSMI_PIECE];
    struct piece p;
    read_piece(rows, piece, copy, &p);
    stats->elements += p.count;
    stats->blocks += blocks;
    for (int b = 0; b < blocks; b++) stats->scale_histogram[p.scale_codes[b]]++;
    int counted = count_whole(rows, &p, block, counts) ? p.count / block : 0;
    if (counted == blocks) return;
    end_counts(counts, stats);
    for (; counted < blocks; counted++) count_block(rows, &p, block, counted, stats);
    start_counts(stats, counts);
}

void bsmi_count_unit(const struct bsmi_block_rows *rows, const struct bsmi_walk *walk, int64_t unit,
                     struct bsmi_block_stats *stats)
{
    struct bsmi_walk_place place = { unit, unit + 1, 0 };
    struct bsmi_piece piece;
    struct bsmi_row_counts counts;
    start_counts(stats, &counts);
    while (bsmi_walk_next(walk, &place, &piece)) count_piece(rows, &piece, &counts, stats);
    end_counts(&counts, stats);
}

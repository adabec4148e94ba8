/* From memory to LDS: halves of A's and B's rows, and the scales of a step, one stage at a time.
 *
 * A row of a stage has 128, 96 or 64 bytes; which lane fetches which 16 of them is chosen so that 16 lanes that read 16
 * rows, or 32 lanes that read 8 bytes each, meet in no bank of LDS (64 banks of 4 bytes).  Eight, six or four lanes in
 * turn fetch from one row. */
#ifndef BSMI_GFX950_GEMM_LOADS_H
#define BSMI_GFX950_GEMM_LOADS_H

#include "gemm_order.h"

/* The place in a row of its 16 bytes number `chunk`. */
INLINE int32_t swizzled(int32_t row_bytes, int32_t row, int32_t chunk)
{
    if (row_bytes == 128) return chunk ^ (row >> 1 & 7);
    if (row_bytes == 64) return chunk ^ (row >> 2 & 3);
    return (chunk + (row >> 3 & 1)) % 6;
}
/* And which one lies at a place. */
INLINE int32_t unswizzled(int32_t row_bytes, int32_t row, int32_t place)
{
    return row_bytes == 96 ? (place + 6 - (row >> 3 & 1)) % 6 : swizzled(row_bytes, row, place);
}

/* Offsets that lie outside of every buffer; a sum of two does not wrap. */
enum { OUTSIDE = 0x40000000 };

/* The most loads of a half. */
enum { MOST_LOADS = A_LOADS > B_LOADS ? A_LOADS : B_LOADS };

/* Where a wave loads one operand from. */
struct gemm_source {
    __amdgpu_buffer_rsrc_t codes;
    int32_t lane_offset[MOST_LOADS];      /* of a lane's 16 bytes in the first half */
    int32_t half_offset;                  /* of the second half */
};

INLINE struct gemm_source source_of(const unsigned char *codes, int64_t rows, int32_t row_bytes, int64_t data_bytes,
                                    int32_t tile_rows, int32_t wave_rows, int32_t step_bytes, int32_t loads)
{
    struct gemm_source source;
    const int32_t thread = thread_of(THREADS), of_row = step_bytes / 16;
    const int64_t most = rows < tile_rows ? rows : tile_rows;
    source.codes = buffer_of(codes, (most - 1) * row_bytes + (data_bytes + 3) / 4 * 4);
    source.half_offset = wave_rows / 2 * row_bytes;
    UNROLL for (int32_t i = 0; i < loads; i++) {
        const int32_t number = i * THREADS + thread, row = number / of_row, place = number % of_row;
        const int32_t of_tile = row / (wave_rows / 2) * wave_rows + row % (wave_rows / 2);
        source.lane_offset[i] =
            row < tile_rows / 2 ? of_tile * row_bytes + unswizzled(step_bytes, row, place) * 16 : OUTSIDE;
    }
    return source;
}

/* The wave's unit of scales; a wave that has none loads zeros. */
struct gemm_scale_source { __amdgpu_buffer_rsrc_t scales; int32_t lane_offset; };

INLINE struct gemm_scale_source scale_source_of(const unsigned char *scales, int64_t rows, int32_t row_bytes,
                                                int64_t row_data, int32_t unit)
{
    struct gemm_scale_source source;
    const int32_t lane = __builtin_amdgcn_workitem_id_x() % 64;
    source.scales = buffer_of(scales, ((rows + 31) / 32 - 1) * row_bytes + row_data);
    source.lane_offset = (unit * 4 + lane / 16) * row_bytes + lane % 16 * 16;
    return source;
}

/* All that a wave loads from. */
struct gemm_sources {
    struct gemm_source a, b;
    struct gemm_scale_source scales;
    int32_t wave;
};

INLINE struct gemm_sources sources_of(const struct bsmi_hip_gemm_parameters *p, const struct gemm_tile *tile)
{
    struct gemm_sources s;
    const int64_t a_matrix = p->group_starts != 0 ? 0 : tile->matrix, rows_left = tile->end_row - tile->row,
                  columns_left = p->n - tile->column;
    s.wave = uniform(thread_of(THREADS) / 64);
    s.a = source_of(p->a.codes + a_matrix * p->a.batch_bytes + tile->row * p->a.row_bytes, rows_left,
                    (int32_t)p->a.row_bytes, (p->k * A_BITS + 7) / 8, ROWS, WAVE_ROWS, A_ROW_BYTES, A_LOADS);
    if (!PREPACKED)
        s.b = source_of(p->b.codes + tile->matrix * p->b.batch_bytes + tile->column * p->b.row_bytes, columns_left,
                        (int32_t)p->b.row_bytes, (p->k * B_BITS + 7) / 8, COLUMNS, WAVE_COLUMNS, B_ROW_BYTES, B_LOADS);
    if (!SCALED) return s;
    const bool of_a = PREPACKED || s.wave < A_UNITS;
    const struct bsmi_hip_gemm_operand *operand = of_a ? &p->a : &p->b;
    const int64_t row = of_a ? tile->row : tile->column, rows = of_a ? rows_left : columns_left,
                  matrix = of_a ? a_matrix : tile->matrix;
    s.scales = scale_source_of(operand->scales + matrix * operand->scale_batch_bytes
                                   + row / 32 * operand->scale_row_bytes,
                               rows, (int32_t)operand->scale_row_bytes, (p->k + 255) / 256 * 256,
                               of_a ? s.wave : s.wave - A_UNITS);
    if (s.wave >= A_UNITS + B_UNITS) s.scales.lane_offset = OUTSIDE;
    return s;
}

/* The steps of K in their order.  What is left of K behind whole steps comes first, as step `rest`; with steps of half
 * a block of scales an empty step follows, so that a block's halves keep their turns.  Behind the last come empty
 * ones: zeros.  The sum is that of whole steps, ascending, behind the rest. */
struct gemm_steps {
    int32_t whole, ahead;                 /* whole steps; steps in front of them */
    int32_t count;                        /* all, an even number */
};

INLINE struct gemm_steps steps_of(int64_t k)
{
    struct gemm_steps steps;
    steps.whole = uniform((int32_t)(k / STEP));
    steps.ahead = ((int32_t)(k % STEP) + STEP - 1) / STEP * (STEP == 128 ? 2 : 1);
    steps.count = (steps.whole + steps.ahead + 1) / 2 * 2;
    return steps;
}

/* The place in K of a step, in units of steps; -1: it is empty. */
INLINE int32_t place_of_step(const struct gemm_steps *steps, int32_t step)
{
    if (step == 0 && steps->ahead != 0) return steps->whole;
    const int32_t place = step - steps->ahead;
    return place >= 0 && place < steps->whole ? place : -1;
}

/* Loads are numbered so that the main loop can put them between its products: those of A's half, of B's, and with the
 * first half the scales. */
INLINE void load_one(const struct gemm_sources *s, int32_t place, int32_t stage, int32_t half, int32_t i)
{
    LDS unsigned char *to = memory + s->wave * 1024;
    if (i < A_LOADS)
        load_to_lds(s->a.codes, s->a.lane_offset[i],
                    place < 0 ? OUTSIDE : place * A_ROW_BYTES + half * s->a.half_offset,
                    to + (2 * stage + half) * A_HALF_BYTES + i * LOADED);
    else if (i < A_LOADS + B_LOADS)
        load_to_lds(s->b.codes, s->b.lane_offset[i - A_LOADS],
                    place < 0 ? OUTSIDE : place * B_ROW_BYTES + half * s->b.half_offset,
                    to + AT_B + (2 * stage + half) * B_HALF_BYTES + (i - A_LOADS) * LOADED);
    else load_to_lds(s->scales.scales, s->scales.lane_offset, place < 0 ? OUTSIDE : (place * STEP) & ~255,
                     to + AT_SCALES + stage * LOADED);
}

INLINE void load_half(const struct gemm_sources *s, int32_t place, int32_t stage, int32_t half)
{
    UNROLL for (int32_t i = 0; i < (half == 0 ? FIRST_LOADS : SECOND_LOADS); i++) load_one(s, place, stage, half, i);
}

/* ---- the rest of K ---- */

/* 16 bytes of which the first `bits` count.  Without a branch: each would bring a wait for what is read. */
INLINE words4 first_bits(words4 words, int32_t bits)
{
    UNROLL for (int i = 0; i < 4; i++) {
        const int32_t left = bits - 32 * i, kept = left < 0 ? 0 : left < 32 ? left : 32;
        words[i] &= (int32_t)((UINT64_C(1) << kept) - 1);
    }
    return words;
}

INLINE void clear_codes(LDS unsigned char *half_at, int32_t row_bytes, int32_t loads, int32_t bits)
{
    const int32_t thread = thread_of(THREADS), of_row = row_bytes / 16;
    _Pragma("nounroll") for (int32_t i = 0; i < loads; i++) {
        const int32_t number = i * THREADS + thread, row = number / of_row, place = number % of_row;
        LDS words4 *at = (LDS words4 *)(half_at + number * 16);
        *at = first_bits(*at, bits - unswizzled(row_bytes, row, place) * 128);
    }
}

/* Scales of blocks that K does not have become 0, which is 2^-127: their codes are zeros, and no scale is a NaN.  The
 * place of a step within a block of scales: its half comes to where the first half's scales lie. */
INLINE void clear_scales(LDS unsigned char *unit_at, int32_t first, int32_t count)
{
    const int32_t lane = __builtin_amdgcn_workitem_id_x() % 64, chunk = lane % 16;
    LDS words4 *at = (LDS words4 *)(unit_at + lane * 16);
    uint32_t mask = 0;
    UNROLL for (int32_t byte = 0; byte < 4; byte++) {
        const int32_t number = DIM == 16 ? byte / 2 * 4 + chunk / 4 : byte * 2 + chunk / 8;
        if (number >= first && number < first + count) mask |= 0xffu << 8 * byte;
    }
    words4 words = *at;
    UNROLL for (int i = 0; i < 4; i++)
        words[i] = (int32_t)(((uint32_t)words[i] & mask) >> (first == 4 ? 16 : 0));
    *at = words;
}

/* Of step 0, which has `left` columns of K: every wave clears what it has loaded, behind WAIT. */
INLINE void clear_behind(const struct gemm_sources *s, int32_t place, int32_t left)
{
    _Pragma("nounroll") for (int32_t half = 0; half < 2; half++) {
        clear_codes(memory + half * A_HALF_BYTES, A_ROW_BYTES, A_LOADS, left * A_BITS);
        if (!PREPACKED) clear_codes(memory + AT_B + half * B_HALF_BYTES, B_ROW_BYTES, B_LOADS, left * B_BITS);
    }
    if (SCALED) clear_scales(memory + AT_SCALES + s->wave * 1024, STEP == 128 ? place % 2 * 4 : 0, (left + 31) / 32);
}

#endif

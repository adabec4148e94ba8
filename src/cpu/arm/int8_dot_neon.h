/* Products of small integers in blocks (mxfp4, nvfp4, mxfp6_e2m3, mxint8 with each other) for Arm: what the kernels
 * with dot products (int8_dot_dotprod.c) and with matrix multiplications (int8_dot_i8mm.c) share.
 *
 *     r[i][j] = sum over an exact block of a[i][k] * b[j][k]        S[i][j] = fma(r * sA[i], sB[j], S[i][j])
 *
 * Elements are signed bytes: e2m1 doubled, e2m3 in eighths, int8 as it is; an exact block sums in lanes of 32 bits,
 * exactly.  A's scales hold the power of two, at least 2^-12, that takes the grids off again.  r has at most 20 bits, a
 * scale at most 4, and it is at least 2^-127: r * sA is exact, unless sA is above 2^105, where it might overflow: such
 * chunks take the guarded path.  What is rounded is the one fma, whose product is exact whatever sB is.
 *
 * A panel of A and one of B are alike: 8 rows, codes[k / group][row][k % group]. */
#ifndef BSMI_INTEGERS_NEON_H
#define BSMI_INTEGERS_NEON_H

#include "cpu/code_rows.h"
#include "cpu/microkernel.h"
#include "core/core.h"

#include <arm_neon.h>

#define NEON_INLINE __attribute__((always_inline, unused)) static inline
/* gcc leaves it to the assembler whether an instruction in inline assembly may be used, clang asks the function. */
#if defined(__clang__)
#define NEON_TARGET(features) __attribute__((target(features)))
#else
#define NEON_TARGET(features)
#endif

enum { ROWS = 8, COLUMNS = 8, CHUNK = 512, EXACT_BLOCKS = CHUNK / BSMI_SHORTEST_BLOCK, CODES = 64 };

struct panel {
    _Alignas(64) float scales[EXACT_BLOCKS][ROWS];
    int8_t codes[CHUNK * ROWS];
};

/* Packing ---------------------------------------------------------------------------------------------------------- */

/* The integer of each code of at most 6 bits. */
static inline void make_table(const struct bsmi_operand *operand, int8_t table[64])
{
    const int codes = 1 << operand->matrix->bits;
    const float grid = (float)(1 << bsmi_element_grid(operand->matrix->element));
    for (int c = 0; c < 64; c++) table[c] = (int8_t)(operand->values[c % codes] * grid);
}

NEON_INLINE void decode_nibbles(const uint8_t *row, int8x16_t table, int64_t length, int8_t *values)
{
    for (int64_t k = 0; k < length; k += 32, row += 16) {
        const uint8x16_t bytes = vld1q_u8(row);
        const int8x16_t even = vqtbl1q_s8(table, vandq_u8(bytes, vdupq_n_u8(15))),
                        odd = vqtbl1q_s8(table, vshrq_n_u8(bytes, 4));
        vst1q_s8(values + k, vzip1q_s8(even, odd));
        vst1q_s8(values + k + 16, vzip2q_s8(even, odd));
    }
}

NEON_INLINE void decode_bytes(const uint8_t *row, const int8_t *table, int64_t length, int8_t *values)
{
    const int8x16x4_t tables = vld1q_s8_x4(table);
    for (int64_t k = 0; k < length; k += 16) vst1q_s8(values + k, vqtbl4q_s8(tables, vld1q_u8(row + k)));
}

/* The part's rows as integers, up to a whole group of codes; what fills it up is 0. */
static inline void decode_rows(const struct bsmi_part *part, int8_t (*values)[CHUNK])
{
    struct { struct bsmi_nibble_rows nibbles; struct bsmi_byte_rows bytes; } rows;
    const int64_t length = bsmi_round_up(part->length, CODES);
    const int bits = part->operand.matrix->bits;
    int8_t table[64];
    if (bits == 4) bsmi_nibble_rows(part, ROWS, &rows.nibbles);
    else bsmi_byte_rows(part, ROWS, &rows.bytes);
    if (bits < 8) make_table(&part->operand, table);
    for (int r = 0; r < ROWS; r++) {
        if (bits == 4) decode_nibbles(rows.nibbles.rows[r], vld1q_s8(table), length, values[r]);
        else if (bits < 8) decode_bytes(rows.bytes.rows[r], table, length, values[r]);
        else memcpy(values[r], rows.bytes.rows[r], (size_t)length);
    }
}

NEON_INLINE void pack(const struct bsmi_part *part, int exact_block, int group, struct panel *panel)
{
    int8_t values[ROWS][CHUNK], *to = panel->codes;
    bsmi_scale_rows(part, exact_block, ROWS, panel->scales[0]);
    decode_rows(part, values);
    for (int64_t k = 0; k < bsmi_round_up(part->length, exact_block); k += group)
        for (int r = 0; r < ROWS; r++, to += group) memcpy(to, values[r] + k, (size_t)group);
}

/* The same of A, whose scales hold the grids of both. */
NEON_INLINE void pack_left(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, int group,
                           struct panel *panel)
{
    const int grids = bsmi_element_grid(part->operand.matrix->element) + bsmi_element_grid(b->matrix->element);
    const float unit = 1 / (float)(1 << grids);
    pack(part, exact_block, group, panel);
    for (int64_t i = 0; i < bsmi_ceil_div(part->length, exact_block) * ROWS; i++) panel->scales[0][i] *= unit;
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

/* sums[4] += block_sums * scale * b_scales. */
NEON_INLINE void add_exact_block(int32x4_t block_sums, float scale, float32x4_t b_scales, float *sums)
{
    const float32x4_t t = vmulq_n_f32(vcvtq_f32_s32(block_sums), scale);
    vst1q_f32(sums, vfmaq_f32(vld1q_f32(sums), t, b_scales));
}

_Static_assert(sizeof(struct panel) % 64 == 0, "panels follow one another at vectors' alignment");

#endif

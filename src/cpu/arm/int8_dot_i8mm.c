/* Products of small integers in blocks, for Arm with matrix multiplications of bytes (FEAT_I8MM); int8_dot_neon.h says
 * why they are exact.
 *
 * Register tile: 8 rows x 8 columns; 16 accumulators of 2 rows x 2 columns, 4 vectors of A (8 k of 2 rows each), 4 of
 * B. */
#if defined(__aarch64__)
#include "int8_dot_neon.h"
#include "cpu/kernels.h"

enum { EIGHT = 8, PAIRS = 4 };

static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *panel)
{
    pack_left(part, b, exact_block, EIGHT, panel);
}

static void pack_b(const struct bsmi_part *part, int exact_block, void *panel)
{
    pack(part, exact_block, EIGHT, panel);
}

/* sums[2][2] += a[2][8] * b[2][8].  In assembly: not every compiler has the intrinsic where only one function may use
 * it. */
NEON_TARGET("i8mm") NEON_INLINE int32x4_t add_square(int32x4_t sums, int8x16_t a, int8x16_t b)
{
    __asm__(".arch armv8.2-a+i8mm\n\tsmmla %[sums].4s, %[a].16b, %[b].16b"
            : [sums] "+w"(sums)
            : [a] "w"(a), [b] "w"(b));
    return sums;
}

/* The first row of two squares side by side, and the second. */
NEON_INLINE int32x4_t first_row(int32x4_t left, int32x4_t right)
{
    return vcombine_s32(vget_low_s32(left), vget_low_s32(right));
}

NEON_INLINE int32x4_t second_row(int32x4_t left, int32x4_t right)
{
    return vcombine_s32(vget_high_s32(left), vget_high_s32(right));
}

NEON_TARGET("i8mm")
static void multiply(int64_t rows, int64_t length, int exact_block, const void *left, const void *right, float *sums,
                     int64_t pitch)
{
    const struct panel *a = left, *b = right;
    const int8_t *rows_of_a = a->codes, *rows_of_b = b->codes;
    (void)rows;
    for (int64_t s = 0; s * exact_block < length; s++) {
        int32x4_t acc[PAIRS][PAIRS];
#pragma GCC unroll 16
        for (int i = 0; i < PAIRS * PAIRS; i++) acc[i / PAIRS][i % PAIRS] = vdupq_n_s32(0);
        for (int e = 0; e < exact_block / EIGHT; e++, rows_of_a += EIGHT * ROWS, rows_of_b += EIGHT * COLUMNS) {
            int8x16_t columns[PAIRS];
#pragma GCC unroll 4
            for (int j = 0; j < PAIRS; j++) columns[j] = vld1q_s8(rows_of_b + 16 * j);
#pragma GCC unroll 4
            for (int i = 0; i < PAIRS; i++) {
                const int8x16_t two = vld1q_s8(rows_of_a + 16 * i);
#pragma GCC unroll 4
                for (int j = 0; j < PAIRS; j++) acc[i][j] = add_square(acc[i][j], two, columns[j]);
            }
        }
        const float32x4_t b0 = vld1q_f32(b->scales[s]), b1 = vld1q_f32(b->scales[s] + 4);
#pragma GCC unroll 4
        for (int i = 0; i < PAIRS; i++) {
            const float first = a->scales[s][2 * i], second = a->scales[s][2 * i + 1];
            float *to = sums + 2 * i * pitch;
            add_exact_block(first_row(acc[i][0], acc[i][1]), first, b0, to);
            add_exact_block(first_row(acc[i][2], acc[i][3]), first, b1, to + 4);
            add_exact_block(second_row(acc[i][0], acc[i][1]), second, b0, to + pitch);
            add_exact_block(second_row(acc[i][2], acc[i][3]), second, b1, to + pitch + 4);
        }
    }
}

const struct bsmi_microkernel bsmi_int8_dot_i8mm = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct panel), .b_bytes = sizeof(struct panel),
    .prepacks_b = true,
    .fits = bsmi_exact_blocks_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_exact_blocks_portable, .guarded_scratch_bytes = bsmi_tile_scratch_portable,
};
#else
typedef int bsmi_not_aarch64;             /* a translation unit needs a declaration */
#endif

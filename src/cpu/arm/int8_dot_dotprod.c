/* Products of small integers in blocks, for Arm with dot products (FEAT_DotProd); int8_dot_neon.h says why they are
 * exact.
 *
 * Register tile: 8 rows x 8 columns; 16 accumulators of 4 columns, 2 vectors of A (4 k of 4 rows each), 2 of B (4 k of
 * 4 columns). */
#if defined(__aarch64__)
#include "int8_dot_neon.h"
#include "cpu/kernels.h"

enum { QUAD = 4 };

static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *panel)
{
    pack_left(part, b, exact_block, QUAD, panel);
}

static void pack_b(const struct bsmi_part *part, int exact_block, void *panel) { pack(part, exact_block, QUAD, panel); }

/* sums[4] += four columns of b times row `lane` of a.  In assembly: not every compiler has the intrinsic where only one
 * function may use it. */
#define ADD_ROW(sums, b, a, lane) \
    __asm__(".arch armv8.2-a+dotprod\n\tsdot %[s].4s, %[left].16b, %[right].4b[" #lane "]" \
            : [s] "+w"(sums) : [left] "w"(b), [right] "w"(a))

NEON_TARGET("dotprod") NEON_INLINE void add_rows(int32x4_t (*sums)[2], int8x16_t a, int8x16_t b0, int8x16_t b1)
{
    ADD_ROW(sums[0][0], b0, a, 0);
    ADD_ROW(sums[0][1], b1, a, 0);
    ADD_ROW(sums[1][0], b0, a, 1);
    ADD_ROW(sums[1][1], b1, a, 1);
    ADD_ROW(sums[2][0], b0, a, 2);
    ADD_ROW(sums[2][1], b1, a, 2);
    ADD_ROW(sums[3][0], b0, a, 3);
    ADD_ROW(sums[3][1], b1, a, 3);
}

NEON_TARGET("dotprod")
static void multiply(int64_t rows, int64_t length, int exact_block, const void *left, const void *right, float *sums,
                     int64_t pitch)
{
    const struct panel *a = left, *b = right;
    const int8_t *rows_of_a = a->codes, *rows_of_b = b->codes;
    (void)rows;
    for (int64_t s = 0; s * exact_block < length; s++) {
        int32x4_t acc[ROWS][2];
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) acc[i][0] = acc[i][1] = vdupq_n_s32(0);
        for (int q = 0; q < exact_block / QUAD; q++, rows_of_a += QUAD * ROWS, rows_of_b += QUAD * COLUMNS) {
            const int8x16_t b0 = vld1q_s8(rows_of_b), b1 = vld1q_s8(rows_of_b + 16);
            add_rows(acc, vld1q_s8(rows_of_a), b0, b1);
            add_rows(acc + 4, vld1q_s8(rows_of_a + 16), b0, b1);
        }
        const float32x4_t b0 = vld1q_f32(b->scales[s]), b1 = vld1q_f32(b->scales[s] + 4);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            add_exact_block(acc[i][0], a->scales[s][i], b0, sums + i * pitch);
            add_exact_block(acc[i][1], a->scales[s][i], b1, sums + i * pitch + 4);
        }
    }
}

const struct bsmi_microkernel bsmi_int8_dot_dotprod = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct panel), .b_bytes = sizeof(struct panel),
    .prepacks_b = true,
    .fits = bsmi_exact_blocks_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_exact_blocks_portable, .guarded_scratch_bytes = bsmi_tile_scratch_portable,
};
#else
typedef int bsmi_not_aarch64;             /* a translation unit needs a declaration */
#endif

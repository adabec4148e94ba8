/* Products of bf16 rows, for Arm with matrix multiplications of bf16 (FEAT_BF16): BFMMLA adds to 2 rows x 2 columns of
 * sums the products of 4 k.  In which order and with which roundings docs/guide/numerics.md says: those of FPCR.EBF =
 * 0, which is what processes begin with.
 *
 * Panels of both operands are 8 rows: for each 4 of K four squares of 2 rows x 4 k.  Rows are numbers times powers of
 * two of their own (row_exponents.h); K is filled up with zeros to whole slices of 32.
 *
 * Register tile: 8 rows x 8 columns; 16 accumulators of 2 x 2, 4 vectors of A, 4 of B. */
#if defined(__aarch64__)
#include "core/core.h"
#include "cpu/code_rows.h"
#include "cpu/kernels.h"
#include "matrix/rows.h"

#include <arm_neon.h>

#define BF16_INLINE __attribute__((always_inline)) static inline

enum { EIGHT = 8, PAIRS = EIGHT / 2, FOUR = 4, SLICE = 32, CHUNK = 512 };

struct panel { _Alignas(64) uint16_t squares[CHUNK / FOUR][PAIRS][2][FOUR]; };

/* Packing ---------------------------------------------------------------------------------------------------------- */

static uint16_t upper_half(float x) { return (uint16_t)(bsmi_float_bits(x) >> 16); }

/* Numbers of row r of the part, zeros behind its end; false: it has none, or is a fallback row. */
static bool row_numbers(const struct bsmi_part *part, int64_t r, float *numbers)
{
    const struct bsmi_operand *o = &part->operand;
    const struct bsmi_matrix *m = o->matrix;
    const int exponent = part->exponents == NULL || r >= part->count ? 0 : part->exponents[r];
    if (r >= part->count || exponent == BSMI_FALLBACK_ROW) return false;
    const int64_t row = bsmi_source_column(part->first + r, part->split);
    memset(numbers, 0, CHUNK * sizeof *numbers);
    bsmi_row_elements(m, o->values, part->batch, row, part->k, part->length, numbers);
    if (m->block == 0) return true;
    uint8_t codes[CHUNK / BSMI_SHORTEST_BLOCK];
    bsmi_row_scales(m, part->batch, row, part->k / m->block, bsmi_ceil_div(part->length, m->block), codes);
    for (int64_t first = 0; first < part->length; first += m->block) {
        const double factor = (double)o->scales[codes[first / m->block]] * bsmi_double_power_of_two(-exponent);
        for (int64_t k = first; k < BSMI_MIN(first + m->block, part->length); k++)
            numbers[k] = (float)((double)numbers[k] * factor);
    }
    return true;
}

static void pack(const struct bsmi_part *part, struct panel *panel)
{
    const int64_t fours = bsmi_round_up(part->length, SLICE) / FOUR;
    for (int64_t r = 0; r < EIGHT; r++) {
        float numbers[CHUNK];
        const bool there = row_numbers(part, r, numbers);
        for (int64_t f = 0; f < fours; f++)
            for (int i = 0; i < FOUR; i++)
                panel->squares[f][r / 2][r % 2][i] = there ? upper_half(numbers[f * FOUR + i]) : 0;
    }
}

static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
{
    (void)b, (void)exact_block;
    pack(part, memory);
}

static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    (void)exact_block;
    pack(part, memory);
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

/* sums[2][2] += a[2][4] * b[2][4].  In assembly: not every compiler has the intrinsic where only one function may use
 * it. */
BF16_INLINE void add_square(float32x4_t *sums, uint16x8_t a, uint16x8_t b)
{
    __asm__(".arch armv8.2-a+bf16\n\tbfmmla %[sums].4s, %[a].8h, %[b].8h"
            : [sums] "+w"(*sums)
            : [a] "w"(a), [b] "w"(b));
}

BF16_INLINE float32x4_t load_square(const float *sums, int64_t pitch)
{
    return vcombine_f32(vld1_f32(sums), vld1_f32(sums + pitch));
}

BF16_INLINE void store_square(float *sums, int64_t pitch, float32x4_t square)
{
    vst1_f32(sums, vget_low_f32(square));
    vst1_f32(sums + pitch, vget_high_f32(square));
}

static void multiply(int64_t rows, int64_t length, int exact_block, const void *left, const void *right, float *sums,
                     int64_t pitch)
{
    const struct panel *a = left, *b = right;
    float32x4_t acc[PAIRS][PAIRS];
    (void)rows, (void)exact_block;
#pragma GCC unroll 4
    for (int i = 0; i < PAIRS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < PAIRS; j++) acc[i][j] = load_square(sums + 2 * i * pitch + 2 * j, pitch);
    for (int64_t f = 0; f < bsmi_round_up(length, SLICE) / FOUR; f++) {
        uint16x8_t of_b[PAIRS];
#pragma GCC unroll 4
        for (int j = 0; j < PAIRS; j++) of_b[j] = vld1q_u16(b->squares[f][j][0]);
#pragma GCC unroll 4
        for (int i = 0; i < PAIRS; i++) {
            const uint16x8_t of_a = vld1q_u16(a->squares[f][i][0]);
#pragma GCC unroll 4
            for (int j = 0; j < PAIRS; j++) add_square(&acc[i][j], of_a, of_b[j]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < PAIRS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < PAIRS; j++) store_square(sums + 2 * i * pitch + 2 * j, pitch, acc[i][j]);
}

const struct bsmi_microkernel bsmi_bf16_mmla = {
    .rows = EIGHT, .columns = EIGHT, .chunk = CHUNK, .a_bytes = sizeof(struct panel), .b_bytes = sizeof(struct panel),
    .prepacks_b = true, .row_exponents = true,
    .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
};
#else
typedef int bsmi_not_aarch64;             /* a translation unit needs a declaration */
#endif

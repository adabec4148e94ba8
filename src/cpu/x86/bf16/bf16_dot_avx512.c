/* Products of bf16 rows by vdpbf16ps: a pair of k at a time.
 *
 *     S[i][j] = fma(a[i][2p], b[j][2p], fma(a[i][2p + 1], b[j][2p + 1], S[i][j])), p ascending
 *
 * The instruction rounds each fused multiply-add to nearest even, takes subnormal inputs for zeros and flushes
 * subnormal results, whatever MXCSR says (Intel SDM, VDPBF16PS).  K is filled up with zeros to whole slices of 32.
 *
 * A's panel is 16 rows as row tiles, of which pairs are broadcast; B's is 32 columns as column tiles, pairs of k side
 * by side (bf16_tiles_avx512.h).  Register tile: 8 rows x 32 columns.  Its 16 sums are more than the latency of 6
 * cycles times 2 a cycle needs. */
#if defined(__x86_64__)
#include "bf16_dot_avx512.h"
#include "core/core.h"
#include "cpu/kernels.h"

enum { ROWS = BSMI_TILE_ROWS, HALF = 8, SIXTEENS = 2, COLUMNS = SIXTEENS * BSMI_TILE_ROWS, CHUNK = 512 };

struct a_panel { _Alignas(64) uint16_t tiles[CHUNK / BSMI_SLICE][BSMI_TILE_NUMBERS]; };
struct b_panel { _Alignas(64) uint16_t tiles[CHUNK / BSMI_SLICE][SIXTEENS][BSMI_TILE_NUMBERS]; };

static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *panel)
{
    (void)b, (void)exact_block;
    bsmi_bf16_row_tiles_avx512(part, 1, 1, panel);
}

static void pack_b(const struct bsmi_part *part, int exact_block, void *panel)
{
    (void)exact_block;
    bsmi_bf16_column_tiles_avx512(part, SIXTEENS, 1, panel);
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

DOT_INLINE void multiply_rows(int rows, int64_t slices, const uint16_t *a, const struct b_panel *b, float *sums,
                              int64_t pitch)
{
    __m512 acc[HALF][2];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        acc[i][0] = _mm512_load_ps(sums + i * pitch);
        acc[i][1] = _mm512_load_ps(sums + i * pitch + 16);
    }
    for (int64_t s = 0; s < slices; s++, a += BSMI_TILE_NUMBERS) {
        const uint16_t *const left = b->tiles[s][0], *const right = b->tiles[s][1];
#pragma GCC unroll 4
        for (int k = 0; k < BSMI_SLICE; k += 2) {
            const __m512i b0 = _mm512_load_si512(left + k * 16), b1 = _mm512_load_si512(right + k * 16);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
                const __m512i pair = broadcast_pair(a + i * BSMI_SLICE + k);
                add_pairs(&acc[i][0], b0, pair);
                add_pairs(&acc[i][1], b1, pair);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        _mm512_store_ps(sums + i * pitch, acc[i][0]);
        _mm512_store_ps(sums + i * pitch + 16, acc[i][1]);
    }
}

DOT static void multiply(int64_t rows, int64_t length, int exact_block, const void *left, const void *b, float *sums,
                         int64_t pitch)
{
    const struct a_panel *const panel = left;
    const uint16_t *a = panel->tiles[0];
    const int64_t slices = bsmi_ceil_div(length, BSMI_SLICE);
    (void)exact_block;
    for (; rows > 4; rows -= HALF, a += HALF * BSMI_SLICE, sums += HALF * pitch)
        multiply_rows(HALF, slices, a, b, sums, pitch);
    if (rows > 2) multiply_rows(4, slices, a, b, sums, pitch);
    else if (rows > 0) multiply_rows(2, slices, a, b, sums, pitch);
}

_Static_assert(sizeof(struct a_panel) % 64 == 0 && sizeof(struct b_panel) % 64 == 0,
               "panels follow one another at vectors' alignment");

const struct bsmi_microkernel bsmi_bf16_dot_avx512 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel),
    .prepacks_b = true, .prepacked_from = 33, .row_exponents = true,
    .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

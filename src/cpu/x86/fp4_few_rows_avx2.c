/* e2m1 times e2m1 in blocks for a few rows of A, with AVX2 and FMA: B is read as it is stored, once, and decoded in
 * registers.
 *
 *     r[i][j] = sum over an exact block of 2a[i][k] * 2b[j][k]        S[i][j] = fma(r / 4 * sA[i], sB[j], S[i][j])
 *
 * 32 bytes of a row of B are 64 k, one vector: even k in the low nibbles, odd k in the high ones, and A's rows are
 * decoded in the same order.  B is decoded to 2b + 12 (0 .. 24) and 12 * sum(2a) is taken off again (fp4_avx2.c, where
 * the exactness is argued).  A lane of 16 bits holds two pairs of k, at most 4 * 24 * 12 = 1,152; vphaddw adds lanes
 * side by side, at most 9,216 in the end.  Two stages leave two lanes of each of four columns in each half (32 k): two
 * exact blocks of 16, or parts of an exact block of 32.  Halves of twice four columns are then exchanged, so that the 8
 * columns of a step lie in order, first of the lower 32 k, then of the upper.  The exponent that makes an fp32 number
 * of a sum is that of 1.5 * 2^23 over 32 bits (exact blocks of 32), or of 2^23 over 2^15 + r in 16 bits (exact blocks
 * of 16). */
#if defined(__x86_64__)
#include "cpu/kernels.h"
#include "lanes_avx2.h"

enum {
    ROWS = 4, COLUMNS = 32, STEP = 8, CHUNK = BSMI_ROW_CHUNK, EXACT_BLOCKS = CHUNK / BSMI_SHORTEST_BLOCK, GROUP = 32,
    GROUPS = CHUNK / GROUP,
    PAIRS = GROUPS / 2, PAIR_BYTES = 32, OFFSET = 12, BITS_OF_BIAS = 0x4b400000, HALF_BIAS = 0x8000,
    AHEAD = 512,                          /* bytes of a row that are prefetched */
};

struct a_panel {
    _Alignas(64) uint8_t codes[PAIRS][ROWS][2][PAIR_BYTES];    /* signed, of a pair of groups; even k, then odd k */
    int32_t starts[GROUPS][ROWS];                              /* of an exact block of 32; of two exact blocks of 16, 16
                                                                  bits each */
    float scales[EXACT_BLOCKS][ROWS], minuends[EXACT_BLOCKS][ROWS];
    int64_t rows;
};

struct b_panel {
    _Alignas(64) float scales[EXACT_BLOCKS][COLUMNS];
    struct bsmi_nibble_rows nibbles;                           /* pointers to the matrix's own bytes, if it is packed
                                                                  like this */
    uint8_t table[16];
};

static void make_table(const float *values, int offset, uint8_t *table)
{
    for (int c = 0; c < 16; c++) table[c] = (uint8_t)((int)(2 * values[c]) + offset);
}

/* A vector, decoded: elements of even and of odd k. */
struct codes { __m256i even, odd; };

AVX2_INLINE struct codes decode(const uint8_t *from, __m256i table)
{
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)from), mask = _mm256_set1_epi8(15);
    return (struct codes){ _mm256_shuffle_epi8(table, _mm256_and_si256(bytes, mask)),
                           _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask)) };
}

AVX2_INLINE __m256i load_table(const uint8_t *table)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
}

/* What the accumulator of one group starts from; sums: of the doubled elements of A, of a quarter of the group each. */
static int32_t start_of(int exact_block, const int32_t *sums)
{
    const int32_t low = OFFSET * (sums[0] + sums[1]), high = OFFSET * (sums[2] + sums[3]);
    return exact_block == 32 ? BITS_OF_BIAS - low - high
                             : (int32_t)((uint32_t)(HALF_BIAS - low) | (uint32_t)(HALF_BIAS - high) << 16);
}

AVX2 static void pack_a_row(const uint8_t *nibbles, int64_t groups, int exact_block, const uint8_t *table, int64_t r,
                            struct a_panel *panel)
{
    const __m256i ones = _mm256_set1_epi8(1);
    for (int64_t p = 0; 2 * p < groups; p++) {
        const struct codes c = decode(nibbles + PAIR_BYTES * p, load_table(table));
        const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(ones, c.even), _mm256_maddubs_epi16(ones, c.odd));
        int32_t sums[8];
        _mm256_storeu_si256((__m256i *)(void *)sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        _mm256_store_si256((__m256i *)(void *)panel->codes[p][r][0], c.even);
        _mm256_store_si256((__m256i *)(void *)panel->codes[p][r][1], c.odd);
        for (int i = 0; i < 2; i++) panel->starts[2 * p + i][r] = start_of(exact_block, sums + 4 * i);
    }
}

static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
{
    struct a_panel *panel = memory;
    struct bsmi_nibble_rows nibbles;
    uint8_t table[16];
    const int64_t groups = bsmi_ceil_div(part->length, GROUP), exact_blocks = bsmi_ceil_div(part->length, exact_block);
    const float bias = exact_block == 32 ? 0x1.8p23F : 0x808000p0F;
    (void)b;
    make_table(part->operand.values, 0, table);
    panel->rows = part->count;
    bsmi_nibble_rows(part, ROWS, &nibbles);
    bsmi_scale_rows(part, exact_block, ROWS, panel->scales[0]);
    for (int64_t r = 0; r < part->count; r++) pack_a_row(nibbles.rows[r], groups, exact_block, table, r, panel);
    for (int64_t i = 0; i < exact_blocks; i++)
        for (int r = 0; r < ROWS; r++) {
            panel->scales[i][r] *= 0.25F;
            panel->minuends[i][r] = -bias * panel->scales[i][r];
        }
}

AVX2 static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    struct b_panel *panel = memory;
    make_table(part->operand.values, OFFSET, panel->table);
    bsmi_nibble_rows(part, COLUMNS, &panel->nibbles);
    pack_scales_by_column(part, exact_block, panel->scales);
}

/* The sums of one row of A with four columns, in lanes of 16 bits: in each half twice for each column. */
AVX2_INLINE __m256i sum_columns(const uint8_t (*row)[PAIR_BYTES], const struct codes b[4])
{
    const __m256i even = _mm256_load_si256((const __m256i *)(const void *)row[0]),
                  odd = _mm256_load_si256((const __m256i *)(const void *)row[1]);
    __m256i v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        v[i] = _mm256_add_epi16(_mm256_maddubs_epi16(b[i].even, even), _mm256_maddubs_epi16(b[i].odd, odd));
    return _mm256_hadd_epi16(_mm256_hadd_epi16(v[0], v[1]), _mm256_hadd_epi16(v[2], v[3]));
}

AVX2_INLINE __m256 add_exact_block(__m256i biased, float scale, float minuend, const float *b_scales, __m256 total)
{
    const __m256 t = _mm256_fmadd_ps(_mm256_castsi256_ps(biased), _mm256_set1_ps(scale), _mm256_set1_ps(minuend));
    return _mm256_fmadd_ps(t, _mm256_load_ps(b_scales), total);
}

/* One group of 32 k with 8 columns; second: its second exact block of 16 is there. */
AVX2_INLINE __m256 add_group(int exact_block, bool second, const struct a_panel *a, __m256i sums, int64_t g, int64_t r,
                             const float *b_scales, __m256 total)
{
    const __m256i start = _mm256_set1_epi32(a->starts[g][r]);
    if (exact_block == 32) {
        const __m256i biased = _mm256_add_epi32(_mm256_madd_epi16(sums, _mm256_set1_epi16(1)), start);
        return add_exact_block(biased, a->scales[g][r], a->minuends[g][r], b_scales, total);
    }
    const __m256i exponent = _mm256_set1_epi32(0x4b000000), biased = _mm256_add_epi16(sums, start);
    total = add_exact_block(_mm256_blend_epi16(exponent, biased, 0x55), a->scales[2 * g][r], a->minuends[2 * g][r],
                            b_scales, total);
    if (!second) return total;
    return add_exact_block(_mm256_or_si256(_mm256_srli_epi32(biased, 16), exponent), a->scales[2 * g + 1][r],
                           a->minuends[2 * g + 1][r], b_scales + COLUMNS, total);
}

/* What comes `ahead` bytes on: in the same rows, behind them in those of the next step. */
AVX2_INLINE void prefetch(const uint8_t *const *from, int column, int64_t bytes, int64_t ahead)
{
    const bool same = ahead < bytes || column + STEP == COLUMNS;
    const uint8_t *const *rows = same ? from : from + STEP;
    const int64_t at = same ? ahead : ahead - bytes;
#pragma GCC unroll 8
    for (int i = 0; i < STEP; i++) __builtin_prefetch((const void *)((uintptr_t)rows[i] + (uintptr_t)at));
}

AVX2_INLINE void multiply_step(int rows, int exact_block, int64_t exact_blocks, const struct a_panel *a,
                               const struct b_panel *b, int column, float *sums, int64_t pitch)
{
    const __m256i table = load_table(b->table);
    const uint8_t *const *from = b->nibbles.rows + column;
    const float *b_scales = b->scales[0] + column;
    const int64_t per_group = GROUP / exact_block, groups = bsmi_ceil_div(exact_blocks, per_group);
    __m256 totals[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) totals[r] = _mm256_load_ps(sums + r * pitch);
    for (int64_t g = 0; g < groups; g += 2, b_scales += 2 * per_group * COLUMNS) {
        __m256i four[2][ROWS];
        if (g % 4 == 0) prefetch(from, column, groups * (GROUP / 2), g * (GROUP / 2) + AHEAD);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            struct codes codes[4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) codes[i] = decode(from[4 * half + i] + g * (GROUP / 2), table);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                four[half][r] = sum_columns((const uint8_t(*)[PAIR_BYTES])a->codes[g / 2][r], codes);
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const __m256i lower = _mm256_permute2x128_si256(four[0][r], four[1][r], 0x20);
            const __m256i upper = _mm256_permute2x128_si256(four[0][r], four[1][r], 0x31);
            const float *next_scales = b_scales + per_group * COLUMNS;
            totals[r] = add_group(exact_block, 2 * g + 1 < exact_blocks, a, lower, g, r, b_scales, totals[r]);
            if (g + 1 < groups)
                totals[r] =
                    add_group(exact_block, 2 * g + 3 < exact_blocks, a, upper, g + 1, r, next_scales, totals[r]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) _mm256_store_ps(sums + r * pitch, totals[r]);
}

AVX2_INLINE void multiply_exact_block(int exact_block, int64_t exact_blocks, const struct a_panel *a,
                                      const struct b_panel *b, float *sums, int64_t pitch)
{
    for (int column = 0; column < COLUMNS; column += STEP, sums += STEP)
        switch (a->rows) {
        case 1: multiply_step(1, exact_block, exact_blocks, a, b, column, sums, pitch); break;
        case 2: multiply_step(2, exact_block, exact_blocks, a, b, column, sums, pitch); break;
        case 3: multiply_step(3, exact_block, exact_blocks, a, b, column, sums, pitch); break;
        default: multiply_step(4, exact_block, exact_blocks, a, b, column, sums, pitch);
        }
}

AVX2 static void multiply(int64_t rows, int64_t length, int exact_block, const void *a, const void *b, float *sums,
                          int64_t pitch)
{
    (void)rows;
    if (exact_block == 16) multiply_exact_block(16, bsmi_ceil_div(length, 16), a, b, sums, pitch);
    else multiply_exact_block(32, bsmi_ceil_div(length, 32), a, b, sums, pitch);
}

_Static_assert(sizeof(struct a_panel) % 64 == 0 && sizeof(struct b_panel) % 64 == 0,
               "panels follow one another at vectors' alignment");

const struct bsmi_microkernel bsmi_fp4_few_rows_avx2 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel),
    .fits = bsmi_exact_blocks_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_exact_blocks_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

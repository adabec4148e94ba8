/* e2m1 times e2m1 in blocks (mxfp4, mxfp4_block16, nvfp4), with AVX2 and FMA: sums of an exact block in 16-bit
 * integers.
 *
 *     r[i][j] = sum over an exact block of 2a[i][k] * 2b[j][k]        S[i][j] = fma(r / 4 * sA[i], sB[j], S[i][j])
 *
 * Register tile: 4 rows x 32 columns; 8 accumulators of 16 lanes, 2 vectors of B, 1 of A, 1 product: 12 of 16
 * registers.
 *
 * Why it is exact.  A doubled element is an integer of at most 12.  vpmaddubsw multiplies unsigned by signed bytes, so
 * B is stored as 2b + 12 (0 .. 24) and 12 * sum(2a) is taken off again: the accumulators start from it.  A lane holds
 * one column and adds pairs of k, each at most 2 * 24 * 12 = 576; an exact block of 32 at most 16 * 576 = 9,216 and r
 * itself at most 32 * 144 = 4,608, so that 2^15 + r fits 16 unsigned bits.  Under 0x4b00 that is the fp32 number 2^23 +
 * 2^15 + r, and
 *
 *     t = fma(2^23 + 2^15 + r, sA / 4, -(2^23 + 2^15) * sA / 4) = r * sA / 4
 *
 * is exact: r has 13 bits and a scale at most 4, and 2^23 + 2^15 has 9.  What is rounded is the one fma(t, sB, S),
 * whose product is exact whatever sB is.  sA / 4 is at least 2^-129, an fp32 number; 2^24 * sA / 4 overflows where sA >
 * 2^105: such chunks take the guarded path.  sB may be any scale. */
#if defined(__x86_64__)
#include "cpu/kernels.h"
#include "lanes_avx2.h"

enum {
    ROWS = 4, COLUMNS = 32, CHUNK = 512, EXACT_BLOCKS = CHUNK / BSMI_SHORTEST_BLOCK, GROUP = 32,
    OFFSET = 12,                          /* what is added to doubled elements of B */
};

struct a_panel {
    float scales[EXACT_BLOCKS][ROWS];             /* sA / 4 */
    float minuends[EXACT_BLOCKS][ROWS];           /* -(2^23 + 2^15) sA / 4 */
    int32_t starts[EXACT_BLOCKS][ROWS];           /* 2^15 - 12 sum(2a), in both halves */
    /* In the order of B's panel, each pair twice, for vpbroadcastd; 16 more keep the rows in different sets of a
     * cache. */
    int16_t pairs[ROWS][CHUNK + 32];
};

/* Pairs of k as decoding two bytes of codes gives them: first 0 and 2, then 1 and 3 of each four.  Bytes of a pair:
 * accumulator by accumulator, 16 columns of two k each.  vpunpck takes lanes 0-3 and 8-11 of an accumulator first; for
 * them to be columns 0-7, its lanes are columns 0-3, 8-11, 4-7, 12-15. */
struct b_panel {
    float scales[EXACT_BLOCKS][COLUMNS];
    uint8_t pairs[CHUNK / 2][2 * COLUMNS];
};

/* Packing ---------------------------------------------------------------------------------------------------------- */

/* 2 * element + offset for the 16 codes, twice. */
AVX2_INLINE __m256i byte_table(const float *values, int offset)
{
    uint8_t table[16];
#pragma GCC unroll 16
    for (int c = 0; c < 16; c++) table[c] = (uint8_t)((int)(2 * values[c]) + offset);
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
}

/* The codes of a vector of bytes, decoded: of the low nibbles (even k) and of the high ones. */
struct halves { __m256i even, odd; };
AVX2_INLINE struct halves decode(__m256i bytes, __m256i table)
{
    const __m256i mask = _mm256_set1_epi8(15);
    return (struct halves){ _mm256_shuffle_epi8(table, _mm256_and_si256(bytes, mask)),
                            _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask)) };
}

/* The sums of 8 decoded pairs (one exact block of 16, or half of one of 32) in each half of a vector. */
AVX2_INLINE __m256i sum_halves(__m256i pairs)
{
    __m256i sums = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), pairs), _mm256_set1_epi16(1));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
    return _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
}

AVX2 static void pack_a_row(const uint8_t *row, int64_t groups, __m256i table, int16_t *pairs, int32_t *sums16)
{
    for (int64_t g = 0; g < groups; g++, row += 16, pairs += 32, sums16 += 2) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)row);
        const struct halves h = decode(_mm256_permute4x64_epi64(_mm256_castsi128_si256(bytes), 0x50), table);
        const __m256i in_order = _mm256_unpacklo_epi16(h.even, h.odd);                /* 16 of K in each half */
        const __m256i low = _mm256_unpacklo_epi16(in_order, in_order), high = _mm256_unpackhi_epi16(in_order, in_order);
        _mm256_storeu_si256((__m256i *)(void *)pairs, _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(pairs + 16), _mm256_permute2x128_si256(low, high, 0x31));
        const __m256i sums = sum_halves(in_order);
        sums16[0] = _mm_cvtsi128_si32(_mm256_castsi256_si128(sums));
        sums16[1] = _mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1));
    }
}

AVX2 static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
{
    (void)b;
    struct a_panel *panel = memory;
    struct bsmi_nibble_rows nibbles;
    const int64_t groups = bsmi_ceil_div(part->length, GROUP), exact_blocks = bsmi_ceil_div(part->length, exact_block);
    const __m256i table = byte_table(part->operand.values, 0);
    bsmi_nibble_rows(part, ROWS, &nibbles);
    bsmi_scale_rows(part, exact_block, ROWS, panel->scales[0]);
    for (int r = 0; r < ROWS; r++) {
        int32_t sums[EXACT_BLOCKS];
        pack_a_row(nibbles.rows[r], groups, table, panel->pairs[r], sums);
        for (int64_t s = 0; s < exact_blocks; s++) {
            const int32_t sum = exact_block == 16 ? sums[s] : sums[2 * s] + sums[2 * s + 1],
                          start = 0x8000 - OFFSET * sum;
            const float scale = panel->scales[s][r] * 0.25F;
            panel->starts[s][r] = (int32_t)((uint32_t)start * 0x10001);
            panel->scales[s][r] = scale;
            panel->minuends[s][r] = -0x808000p0F * scale;
        }
    }
}

/* 32 of K of 16 columns. */
AVX2_INLINE void pack_columns(const uint8_t *const *rows, int64_t byte, __m256i table, uint8_t (*pairs)[2 * COLUMNS])
{
    __m256i v[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) v[i] = load_two(rows[i / 4 * 8 + i % 4] + byte, rows[i / 4 * 8 + i % 4 + 4] + byte);
    transpose_eight(v);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const struct halves h = decode(v[i], table);
        _mm256_store_si256((__m256i *)(void *)pairs[2 * i], h.even);
        _mm256_store_si256((__m256i *)(void *)pairs[2 * i + 1], h.odd);
    }
}

AVX2 static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    struct b_panel *panel = memory;
    struct bsmi_nibble_rows nibbles;
    const int64_t groups = bsmi_ceil_div(part->length, GROUP);
    const __m256i table = byte_table(part->operand.values, OFFSET);
    bsmi_nibble_rows(part, COLUMNS, &nibbles);
    pack_scales_by_column(part, exact_block, panel->scales);
    for (int half = 0; half < 2; half++)
        for (int64_t g = 0; g < groups; g++)
            pack_columns(nibbles.rows + 16 * half, g * (GROUP / 2), table,
                         (uint8_t (*)[2 * COLUMNS])(panel->pairs[g * (GROUP / 2)] + 32 * half));
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

/* sums += b * a by pairs.  In assembly, because compilers copy and spill accumulators in place of adding to them. */
AVX2_INLINE void add_pairs(__m256i *sums, __m256i b, __m256i a)
{
    __m256i products;
    __asm__("vpmaddubsw %[a], %[b], %[products]\n\tvpaddw %[products], %[sums], %[sums]"
            : [sums] "+x"(*sums), [products] "=&x"(products) : [a] "x"(a), [b] "x"(b));
}

/* sums[8] += exact block * scale * b_scales, of biased exact blocks under their exponent. */
AVX2_INLINE void add_exact_blocks(__m256i biased, __m256 scale, __m256 minuend, __m256 b_scales, float *sums)
{
    const __m256 t = _mm256_fmadd_ps(_mm256_castsi256_ps(biased), scale, minuend);
    _mm256_store_ps(sums, _mm256_fmadd_ps(t, b_scales, _mm256_load_ps(sums)));
}

AVX2_INLINE void multiply_exact_blocks(int pairs, int64_t exact_blocks, const struct a_panel *a,
                                       const struct b_panel *b, float *sums, int64_t pitch)
{
    const __m256i exponent = _mm256_set1_epi16(0x4b00);
    const uint8_t *codes = b->pairs[0];
    const int16_t *rows = a->pairs[0];
    for (int64_t s = 0; s < exact_blocks; s++) {
        __m256i acc[ROWS][2];
#pragma GCC unroll 4
        for (int i = 0; i < ROWS; i++) acc[i][0] = acc[i][1] = _mm256_set1_epi32(a->starts[s][i]);
#pragma GCC unroll 16
        for (int p = 0; p < pairs; p++, codes += 2 * COLUMNS, rows += 2) {
            const __m256i left = _mm256_load_si256((const __m256i *)(const void *)codes);
            const __m256i right = _mm256_load_si256((const __m256i *)(const void *)(codes + 32));
#pragma GCC unroll 4
            for (int i = 0; i < ROWS; i++) {
                int32_t twice;
                memcpy(&twice, rows + i * (CHUNK + 32), sizeof twice);
                const __m256i pair = _mm256_set1_epi32(twice);
                add_pairs(&acc[i][0], left, pair);
                add_pairs(&acc[i][1], right, pair);
            }
        }
        const __m256 b0 = _mm256_load_ps(b->scales[s]), b1 = _mm256_load_ps(b->scales[s] + 8);
        const __m256 b2 = _mm256_load_ps(b->scales[s] + 16), b3 = _mm256_load_ps(b->scales[s] + 24);
#pragma GCC unroll 4
        for (int i = 0; i < ROWS; i++) {
            const __m256 scale = _mm256_set1_ps(a->scales[s][i]), minuend = _mm256_set1_ps(a->minuends[s][i]);
            float *at = sums + i * pitch;
            add_exact_blocks(_mm256_unpacklo_epi16(acc[i][0], exponent), scale, minuend, b0, at);
            add_exact_blocks(_mm256_unpackhi_epi16(acc[i][0], exponent), scale, minuend, b1, at + 8);
            add_exact_blocks(_mm256_unpacklo_epi16(acc[i][1], exponent), scale, minuend, b2, at + 16);
            add_exact_blocks(_mm256_unpackhi_epi16(acc[i][1], exponent), scale, minuend, b3, at + 24);
        }
    }
}

AVX2 static void multiply(int64_t rows, int64_t length, int exact_block, const void *a, const void *b, float *sums,
                          int64_t pitch)
{
    (void)rows;
    if (exact_block == 16) multiply_exact_blocks(8, bsmi_ceil_div(length, 16), a, b, sums, pitch);
    else multiply_exact_blocks(16, bsmi_ceil_div(length, 32), a, b, sums, pitch);
}

_Static_assert(sizeof(struct a_panel) % 64 == 0 && sizeof(struct b_panel) % 64 == 0,
               "panels follow one another at vectors' alignment");

const struct bsmi_microkernel bsmi_fp4_avx2 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel),
    .prepacks_b = true, .prepacked_from = 33,
    .fits = bsmi_exact_blocks_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_exact_blocks_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

/* Elements that are small integers (e2m1, e2m3, int8) in blocks, with AVX2 and FMA: sums of an exact block in 32-bit
 * integers.
 *
 *     r[i][j] = sum over an exact block of a[i][k] * b[j][k], as integers
 *     S[i][j] = fma(r * unit * sA[i], sB[j], S[i][j])
 *
 * unit is 2^-(grid of a + grid of b).  Panels hold integers of 16 bits; vpmaddwd multiplies pairs of them and adds both
 * products in 32 bits, exactly.  Register tile: 4 rows x 16 columns, twice for a panel of 32; 8 accumulators of 8
 * lanes, 2 vectors of B, 1 of A, 1 of products.  Accumulators start from the bits of 1.5 * 2^23; why what follows is
 * exact, and which scales of A are too large for it, stands in int8_dot_vnni.c. */
#if defined(__x86_64__)
#include "cpu/kernels.h"
#include "lanes_avx2.h"

enum {
    ROWS = 4, COLUMNS = 32, STEP = 16, CHUNK = BSMI_CHUNK, EXACT_BLOCKS = CHUNK / BSMI_SHORTEST_BLOCK, GROUP = 32,
    BITS_OF_BIAS = 0x4b400000,            /* of 1.5 * 2^23 */
};
static const float bias = 0x1.8p23F;

/* Pairs of k are 0 and 2, then 1 and 3 of each four: as even and odd bytes of a vector give them. */
struct a_panel {
    float scales[EXACT_BLOCKS][ROWS];             /* unit * sA */
    float minuends[EXACT_BLOCKS][ROWS];           /* -1.5 * 2^23 * unit * sA */
    int16_t pairs[ROWS][CHUNK + 32];      /* 32 more keep the rows of a panel in different sets of a cache */
};

struct b_panel {
    float scales[EXACT_BLOCKS][COLUMNS];
    int16_t pairs[CHUNK / 2][COLUMNS][2];
};

/* Packing ---------------------------------------------------------------------------------------------------------- */

/* Codes into integers: those of e2m1 (16) and magnitudes of e2m3 (32) by vpshufb, or int8 as it is. */
struct decoder { __m256i low, high; };

AVX2 static struct decoder make_decoder(const struct bsmi_operand *o)
{
    const bsm_element element = o->matrix->element;
    const float per_unit = (float)(1 << bsmi_element_grid(element));
    const int codes = element == BSM_E2M1 ? 16 : element == BSM_E2M3 ? 32 : 0;
    int8_t table[32] = { 0 };
    struct decoder d;
    for (int c = 0; c < codes; c++) table[c] = (int8_t)(o->values[c] * per_unit);
    d.low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
    d.high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table + 16)));
    return d;
}

AVX2_INLINE __m256i decode(bsm_element element, const struct decoder *d, __m256i codes)
{
    if (element == BSM_INT8) return codes;
    if (element == BSM_E2M1) return _mm256_shuffle_epi8(d->low, codes);
    const __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi8(31));
    const __m256i low = _mm256_shuffle_epi8(d->low, magnitude), high = _mm256_shuffle_epi8(d->high, magnitude);
    /* a byte's highest bit chooses */
    const __m256i value = _mm256_blendv_epi8(low, high, _mm256_slli_epi16(magnitude, 3));
    return _mm256_sign_epi8(value, _mm256_or_si256(_mm256_slli_epi16(codes, 2), _mm256_set1_epi8(1)));
}

/* Even and odd bytes as integers of 16 bits. */
struct halves { __m256i even, odd; };
AVX2_INLINE struct halves widen(__m256i bytes)
{
    return (struct halves){ _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8) };
}

/* One copy of a loop for each element. */
#define BY_INTEGER(element, function, ...) \
    switch (element) { \
    case BSM_E2M1: function(BSM_E2M1, __VA_ARGS__); break; \
    case BSM_E2M3: function(BSM_E2M3, __VA_ARGS__); break; \
    default: function(BSM_INT8, __VA_ARGS__); break; \
    }

AVX2_INLINE void pack_row(bsm_element element, const struct decoder *decoder, const uint8_t *row, int64_t length,
                          int16_t *pairs)
{
    for (int64_t k = 0; k < length; k += GROUP) {
        const struct halves h =
            widen(decode(element, decoder, _mm256_loadu_si256((const __m256i *)(const void *)(row + k))));
        const __m256i low = _mm256_unpacklo_epi32(h.even, h.odd), high = _mm256_unpackhi_epi32(h.even, h.odd);
        _mm256_storeu_si256((__m256i *)(void *)(pairs + k), _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(pairs + k + 16), _mm256_permute2x128_si256(low, high, 0x31));
    }
}

AVX2 static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
{
    struct a_panel *panel = memory;
    struct bsmi_byte_rows bytes;
    const struct decoder decoder = make_decoder(&part->operand);
    const float unit = bsmi_float_power_of_two(-bsmi_element_grid(part->operand.matrix->element)
                                               - bsmi_element_grid(b->matrix->element));
    const int64_t exact_blocks = bsmi_ceil_div(part->length, exact_block);
    bsmi_byte_rows(part, ROWS, &bytes);
    bsmi_scale_rows(part, exact_block, ROWS, panel->scales[0]);
    for (int64_t s = 0; s < exact_blocks; s++)
        for (int r = 0; r < ROWS; r++) {
            panel->scales[s][r] *= unit;
            panel->minuends[s][r] = -bias * panel->scales[s][r];
        }
    for (int r = 0; r < ROWS; r++) {
        BY_INTEGER(part->operand.matrix->element, pack_row, &decoder, bytes.rows[r], part->length, panel->pairs[r])
    }
}

/* 16 of K of 8 columns: 4 x 4 words of four bytes are transposed in each half. */
AVX2_INLINE void pack_sixteen(bsm_element element, const struct decoder *decoder, const uint8_t *const *rows, int64_t k,
                              int16_t (*pairs)[COLUMNS][2])
{
    __m256i v[4], w[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) v[i] = decode(element, decoder, load_two(rows[i] + k, rows[i + 4] + k));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        w[2 * i] = _mm256_unpacklo_epi32(v[i], v[i + 2]);
        w[2 * i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 2]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        v[2 * i] = _mm256_unpacklo_epi32(w[i], w[i + 2]);
        v[2 * i + 1] = _mm256_unpackhi_epi32(w[i], w[i + 2]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const struct halves h = widen(v[i]);
        _mm256_store_si256((__m256i *)(void *)pairs[2 * i], h.even);
        _mm256_store_si256((__m256i *)(void *)pairs[2 * i + 1], h.odd);
    }
}

AVX2_INLINE void pack_columns(bsm_element element, const struct decoder *decoder, const uint8_t *const *rows,
                              int64_t length, struct b_panel *panel)
{
    for (int c = 0; c < COLUMNS; c += 8)
        for (int64_t k = 0; k < length; k += 16)
            pack_sixteen(element, decoder, rows + c, k, (int16_t (*)[COLUMNS][2])&panel->pairs[k / 2][c]);
}

AVX2 static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    struct b_panel *panel = memory;
    struct bsmi_byte_rows bytes;
    const struct decoder decoder = make_decoder(&part->operand);
    const int64_t length = bsmi_round_up(part->length, GROUP);
    bsmi_byte_rows(part, COLUMNS, &bytes);
    pack_scales_by_column(part, exact_block, panel->scales);
    BY_INTEGER(part->operand.matrix->element, pack_columns, &decoder, bytes.rows, length, panel)
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

/* sums += b * a by pairs.  In assembly, because compilers copy and spill accumulators in place of adding to them. */
AVX2_INLINE void add_pairs(__m256i *sums, __m256i b, __m256i a)
{
    __m256i products;
    __asm__("vpmaddwd %[a], %[b], %[products]\n\tvpaddd %[products], %[sums], %[sums]"
            : [sums] "+x"(*sums), [products] "=&x"(products) : [a] "x"(a), [b] "x"(b));
}

/* sums[8] += exact block * scale * b_scales, of biased exact blocks whose bits are fp32 numbers. */
AVX2_INLINE void add_exact_blocks(__m256i biased, __m256 scale, __m256 minuend, __m256 b_scales, float *sums)
{
    const __m256 t = _mm256_fmadd_ps(_mm256_castsi256_ps(biased), scale, minuend);
    _mm256_store_ps(sums, _mm256_fmadd_ps(t, b_scales, _mm256_load_ps(sums)));
}

AVX2_INLINE void multiply_exact_blocks(int pairs, int64_t exact_blocks, const struct a_panel *a,
                                       const struct b_panel *b, int column, float *sums, int64_t pitch)
{
    const int16_t *codes = b->pairs[0][column], *rows = a->pairs[0];
    for (int64_t s = 0; s < exact_blocks; s++) {
        __m256i acc[ROWS][2];
#pragma GCC unroll 4
        for (int i = 0; i < ROWS; i++) acc[i][0] = acc[i][1] = _mm256_set1_epi32(BITS_OF_BIAS);
#pragma GCC unroll 16
        for (int p = 0; p < pairs; p++, codes += 2 * COLUMNS, rows += 2) {
            const __m256i left = _mm256_load_si256((const __m256i *)(const void *)codes);
            const __m256i right = _mm256_load_si256((const __m256i *)(const void *)(codes + STEP));
#pragma GCC unroll 4
            for (int i = 0; i < ROWS; i++) {
                int32_t two;
                memcpy(&two, rows + i * (CHUNK + 32), sizeof two);
                const __m256i pair = _mm256_set1_epi32(two);
                add_pairs(&acc[i][0], left, pair);
                add_pairs(&acc[i][1], right, pair);
            }
        }
        const __m256 b0 = _mm256_load_ps(b->scales[s] + column), b1 = _mm256_load_ps(b->scales[s] + column + 8);
#pragma GCC unroll 4
        for (int i = 0; i < ROWS; i++) {
            const __m256 scale = _mm256_set1_ps(a->scales[s][i]), minuend = _mm256_set1_ps(a->minuends[s][i]);
            add_exact_blocks(acc[i][0], scale, minuend, b0, sums + i * pitch);
            add_exact_blocks(acc[i][1], scale, minuend, b1, sums + i * pitch + 8);
        }
    }
}

AVX2 static void multiply(int64_t rows, int64_t length, int exact_block, const void *a, const void *b, float *sums,
                          int64_t pitch)
{
    (void)rows;
    for (int column = 0; column < COLUMNS; column += STEP)
        if (exact_block == 16) multiply_exact_blocks(8, bsmi_ceil_div(length, 16), a, b, column, sums + column, pitch);
        else multiply_exact_blocks(16, bsmi_ceil_div(length, 32), a, b, column, sums + column, pitch);
}

_Static_assert(sizeof(struct a_panel) % 64 == 0 && sizeof(struct b_panel) % 64 == 0,
               "panels follow one another at vectors' alignment");

const struct bsmi_microkernel bsmi_int8_dot_avx2 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel),
    .prepacks_b = true,
    .fits = bsmi_exact_blocks_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_exact_blocks_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

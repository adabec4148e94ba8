/* Elements that are small integers (e2m1, e2m3, int8) in blocks, with AVX-512 VNNI: sums of an exact block in 32-bit
 * integers.
 *
 *     r[i][j] = sum over an exact block of a[i][k] * b[j][k], as integers
 *     S[i][j] = fma(r * unit * sA[i], sB[j], S[i][j])
 *
 * unit is 2^-(grid of a + grid of b).  Register tile: 8 rows x 32 columns; 16 accumulators of 16 lanes, 2 of B, 1 of A.
 *
 * Why it is exact.  vpdpbusd multiplies unsigned by signed bytes and adds four products to a lane of 32 bits without
 * saturation.  B is stored with an offset that makes it unsigned (12, 60, 128), and offset * sum(a) is taken off again:
 * the accumulators start from it.  They also start from the bits of 1.5 * 2^23, so that at the end of an exact block,
 * |r| <= 2^19 (docs/design/cpu.md), their bits are the fp32 number 1.5 * 2^23 + r, and
 *
 *     t = fma(1.5 * 2^23 + r, unit * sA, -1.5 * 2^23 * unit * sA) = r * unit * sA
 *
 * is exact: r has 20 bits with e8m0 scales, which are one bit, and 17 with those of nvfp4, which are four.  What is
 * rounded is the one fma(t, sB, S), whose product is exact whatever sB is.  unit * sA is at least 2^-139, an fp32
 * number; 1.5 * 2^23 * unit * sA overflows where sA > 2^105 (unit = 1/4): such chunks take the guarded path.  sB may be
 * any scale. */
#if defined(__x86_64__)
#include "cpu/kernels.h"
#include "words_avx512.h"

#define VNNI __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define VNNI_INLINE VNNI __attribute__((always_inline)) static inline

enum {
    ROWS = 8, COLUMNS = 32, CHUNK = 512, EXACT_BLOCKS = CHUNK / BSMI_SHORTEST_BLOCK, GROUP = BSMI_BYTE_GROUP, QUAD = 4,
    BITS_OF_BIAS = 0x4b400000,            /* of 1.5 * 2^23 */
};
static const float bias = 0x1.8p23F;

struct a_panel {
    float scales[EXACT_BLOCKS][ROWS];             /* unit * sA */
    float minuends[EXACT_BLOCKS][ROWS];           /* -1.5 * 2^23 * unit * sA */
    int32_t starts[EXACT_BLOCKS][ROWS];
    int8_t codes[ROWS][CHUNK + 64];       /* 64 more keep the rows of a panel in different sets of a cache */
};

struct b_panel {
    float scales[EXACT_BLOCKS][COLUMNS];
    uint8_t codes[CHUNK / QUAD][COLUMNS][QUAD];
};

/* Packing ---------------------------------------------------------------------------------------------------------- */

/* Codes into integers, times their grid, with the offset: e2m1 (4 bits) by one vpshufb; the magnitudes of e2m3 (6) by
 * two, then the sign; int8 as it is.  The number of bits is a constant where these are called. */
struct decoder { __m512i low, high; uint8_t offset; };

VNNI static struct decoder make_decoder(const struct bsmi_operand *o, bool unsigned_bytes)
{
    static const uint8_t offsets[BSM_ELEMENT_COUNT] = { [BSM_E2M1] = 12, [BSM_E2M3] = 60, [BSM_INT8] = 128 };
    const bsm_element element = o->matrix->element;
    struct decoder d = { .offset = unsigned_bytes ? offsets[element] : 0 };
    uint8_t table[32] = { 0 };
    const float per_unit = (float)(1 << bsmi_element_grid(element));
    for (int c = 0; element == BSM_E2M1 && c < 16; c++) table[c] = (uint8_t)(d.offset + (int)(o->values[c] * per_unit));
    for (int c = 0; element == BSM_E2M3 && c < 32; c++) table[c] = (uint8_t)(o->values[c] * per_unit);
    d.low = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table));
    d.high = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)(table + 16)));
    return d;
}

VNNI_INLINE __m512i decode(int bits, const struct decoder *d, __m512i codes)
{
    const __m512i offset = _mm512_set1_epi8((char)d->offset);
    if (bits == 8) return _mm512_add_epi8(codes, offset);
    if (bits == 4) return _mm512_shuffle_epi8(d->low, codes);
    /* The sign is moved up to the highest bit of its byte; what comes from the byte below lies lower. */
    const __mmask64 negative = _mm512_movepi8_mask(_mm512_slli_epi16(codes, 2));
    const __m512i magnitude = _mm512_and_si512(codes, _mm512_set1_epi8(31));
    const __mmask64 upper = _mm512_test_epi8_mask(magnitude, _mm512_set1_epi8(16));
    const __m512i value = _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(d->low, magnitude), upper, d->high, magnitude);
    return _mm512_mask_sub_epi8(_mm512_add_epi8(offset, value), negative, offset, value);
}

/* One copy of a loop for each number of bits. */
#define BY_BITS(bits, function, ...) \
    switch (bits) { \
    case 4: function(4, __VA_ARGS__); break; \
    case 6: function(6, __VA_ARGS__); break; \
    default: function(8, __VA_ARGS__); break; \
    }

/* 64 codes of a row from k on, as they are stored, one a byte. */
VNNI_INLINE __m512i load_group(int bits, const uint8_t *row, int64_t k)
{
    if (bits == 8) return _mm512_loadu_si512(row + k);
    if (bits == 4) {
        const __m512i words = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(row + k / 2)));
        return _mm512_and_si512(_mm512_or_si512(words, _mm512_slli_epi16(words, 4)), _mm512_set1_epi8(15));
    }
    /* Words of two codes each, every other of which begins at bit 4. */
    const __m512i words = _mm512_srlv_epi16(load_wide(BSM_E2M3, row + k / 4 * 3), _mm512_set1_epi32(4 << 16));
    const __m512i first = _mm512_and_si512(words, _mm512_set1_epi16(0x3f));
    return _mm512_or_si512(first, _mm512_and_si512(_mm512_slli_epi16(words, 2), _mm512_set1_epi16(0x3f00)));
}

/* Of eight rows' sums of four k, [exact_block][four] each, those of the exact blocks: of exact block i and row r word 8
 * i + r. */
struct two_blocks { __m512i first, second; };
VNNI_INLINE struct two_blocks sum_fours(const __m512i v[ROWS])
{
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                  high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    __m512i pairs[4], fours[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        pairs[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                                    _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(pairs[2 * i], pairs[2 * i + 1]),
                                    _mm512_unpackhi_epi64(pairs[2 * i], pairs[2 * i + 1]));
    return (struct two_blocks){ _mm512_permutex2var_epi64(fours[0], low, fours[1]),
                              _mm512_permutex2var_epi64(fours[0], high, fours[1]) };
}

/* Two exact blocks of 16 are one of 32. */
VNNI_INLINE __m256i sum_halves(__m512i v)
{
    return _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
}

/* Codes, and what accumulators start from: the bias less offset * sum(a). */
VNNI_INLINE void pack_rows(int bits, const uint8_t *const *rows, int64_t length, const struct decoder *decoder,
                           uint8_t offset, int exact_block, struct a_panel *panel)
{
    const __m512i bias_bits = _mm512_set1_epi32(BITS_OF_BIAS);
    for (int64_t k = 0; k < length; k += GROUP) {
        __m512i v[ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++) {
            const __m512i values = decode(bits, decoder, load_group(bits, rows[r], k));
            _mm512_storeu_si512(panel->codes[r] + k, values);
            v[r] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8((char)offset), values);
        }
        const struct two_blocks sums = sum_fours(v);
        int32_t *const to = panel->starts[k / exact_block];
        if (exact_block == 16) {
            _mm512_storeu_si512(to, _mm512_sub_epi32(bias_bits, sums.first));
            _mm512_storeu_si512(to + 16, _mm512_sub_epi32(bias_bits, sums.second));
        } else {
            const __m512i both =
                _mm512_inserti64x4(_mm512_castsi256_si512(sum_halves(sums.first)), sum_halves(sums.second), 1);
            _mm512_storeu_si512(to, _mm512_sub_epi32(bias_bits, both));
        }
    }
}

/* A needs the offset and the grid of B: what the tile gives beside the part. */
VNNI static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
{
    struct a_panel *panel = memory;
    const struct decoder decoder = make_decoder(&part->operand, false);
    const uint8_t offset = make_decoder(b, true).offset;
    const float unit = bsmi_float_power_of_two(-bsmi_element_grid(part->operand.matrix->element)
                                               - bsmi_element_grid(b->matrix->element));
    const int64_t exact_blocks = bsmi_ceil_div(part->length, exact_block);
    bsmi_scale_rows(part, exact_block, ROWS, panel->scales[0]);
    for (int64_t s = 0; s < exact_blocks; s += 16 / ROWS) {          /* of an odd number of exact blocks one more, of
                                                                        anything */
        const __m512 scales = _mm512_mul_ps(_mm512_load_ps(panel->scales[s]), _mm512_set1_ps(unit));
        _mm512_store_ps(panel->scales[s], scales);
        _mm512_store_ps(panel->minuends[s], _mm512_mul_ps(scales, _mm512_set1_ps(-bias)));
    }
    struct bsmi_element_rows rows;
    bsmi_element_rows(part, ROWS, &rows);
    BY_BITS(rows.bits, pack_rows, bsmi_row_pointers(&rows), part->length, &decoder, offset, exact_block, panel)
}

/* 16 x 16 words of 32 bits: interleaving the first eight vectors with the last eight four times (lanes_avx2.h), words
 * within halves of a vector by vpermt2d. */
VNNI_INLINE void transpose_fours(__m512i v[16])
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#pragma GCC unroll 4
    for (int stage = 0; stage < 4; stage++) {
        __m512i w[16];
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            w[2 * i] = _mm512_permutex2var_epi32(v[i], low, v[i + 8]);
            w[2 * i + 1] = _mm512_permutex2var_epi32(v[i], high, v[i + 8]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) v[i] = w[i];
    }
}

VNNI_INLINE void pack_columns(int bits, const uint8_t *const *rows, int64_t length, const struct decoder *decoder,
                              struct b_panel *panel)
{
    for (int64_t g = 0; g * GROUP < length; g++)
        for (int half = 0; half < 2; half++) {
            __m512i v[16];
#pragma GCC unroll 16
            for (int c = 0; c < 16; c++) v[c] = decode(bits, decoder, load_group(bits, rows[16 * half + c], g * GROUP));
            transpose_fours(v);
#pragma GCC unroll 16
            for (int q = 0; q < 16; q++) _mm512_store_si512(panel->codes[g * 16 + q][16 * half], v[q]);
        }
}

VNNI static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    struct b_panel *panel = memory;
    struct bsmi_element_rows rows;
    const struct decoder decoder = make_decoder(&part->operand, true);
    bsmi_element_rows(part, COLUMNS, &rows);
    pack_scales_by_column(part, exact_block, panel->scales);
    BY_BITS(rows.bits, pack_columns, bsmi_row_pointers(&rows), part->length, &decoder, panel)
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

/* sums += b * a by fours.  In assembly, because compilers copy and spill accumulators in place of adding to them. */
VNNI_INLINE void add_quads(__m512i *sums, __m512i b, __m512i a)
{
    __asm__("vpdpbusd %[a], %[b], %[sums]" : [sums] "+v"(*sums) : [a] "v"(a), [b] "v"(b));
}

/* sums[16] += exact block * scale * b_scales, of biased exact blocks whose bits are fp32 numbers. */
VNNI_INLINE void add_exact_blocks(__m512i biased, __m512 scale, __m512 minuend, __m512 b_scales, float *sums)
{
    const __m512 t = _mm512_fmadd_ps(_mm512_castsi512_ps(biased), scale, minuend);
    _mm512_storeu_ps(sums, _mm512_fmadd_ps(t, b_scales, _mm512_loadu_ps(sums)));
}

VNNI_INLINE void multiply_exact_blocks(int quads, int64_t exact_blocks, const struct a_panel *a,
                                       const struct b_panel *b, float *sums, int64_t pitch)
{
    const uint8_t *codes = b->codes[0][0];
    const int8_t *rows = a->codes[0];
    for (int64_t s = 0; s < exact_blocks; s++) {
        __m512i acc[ROWS][2];
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) acc[i][0] = acc[i][1] = _mm512_set1_epi32(a->starts[s][i]);
#pragma GCC unroll 4
        for (int q = 0; q < quads; q++, codes += QUAD * COLUMNS, rows += QUAD) {
            const __m512i left = _mm512_load_si512(codes), right = _mm512_load_si512(codes + 64);
#pragma GCC unroll 8
            for (int i = 0; i < ROWS; i++) {
                int32_t four;
                memcpy(&four, rows + i * (CHUNK + 64), sizeof four);
                const __m512i quad = _mm512_set1_epi32(four);
                add_quads(&acc[i][0], left, quad);
                add_quads(&acc[i][1], right, quad);
            }
        }
        const __m512 b0 = _mm512_load_ps(b->scales[s]), b1 = _mm512_load_ps(b->scales[s] + 16);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            const __m512 scale = _mm512_set1_ps(a->scales[s][i]), minuend = _mm512_set1_ps(a->minuends[s][i]);
            add_exact_blocks(acc[i][0], scale, minuend, b0, sums + i * pitch);
            add_exact_blocks(acc[i][1], scale, minuend, b1, sums + i * pitch + 16);
        }
    }
}

VNNI static void multiply(int64_t rows, int64_t length, int exact_block, const void *a, const void *b, float *sums,
                          int64_t pitch)
{
    (void)rows;
    if (exact_block == 16) multiply_exact_blocks(4, bsmi_ceil_div(length, 16), a, b, sums, pitch);
    else multiply_exact_blocks(8, bsmi_ceil_div(length, 32), a, b, sums, pitch);
}

_Static_assert(sizeof(struct a_panel) % 64 == 0 && sizeof(struct b_panel) % 64 == 0,
               "panels follow one another at vectors' alignment");

const struct bsmi_microkernel bsmi_int8_dot_vnni = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel),
    .prepacks_b = true, .prepacked_from = 33,
    .fits = bsmi_exact_blocks_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_exact_blocks_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

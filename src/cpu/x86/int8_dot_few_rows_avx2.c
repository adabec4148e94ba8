/* A few rows times blocks of int8 or e2m3 with AVX2 and FMA: B is read as it is stored, once.
 *
 *     r[i][j] = sum over an exact block of 32 of a[i][k] * b[j][k], as integers
 *     S[i][j] = fma(r * unit * sA[i], sB[j], S[i][j])
 *
 * unit is 2^-(grid of a + grid of b).  An exact block of int8, with int8, e2m3 or e2m1 in blocks of 32, is 32 bytes,
 * widened to 16 bits, multiplied and added in pairs to 32 bits.  An exact block of e2m3, with e2m3 or e2m1, is 24
 * bytes, made bytes of magnitudes in registers; A gets the signs, and of a pair at most 2 * 60 * 60 fits 16 bits.
 * vphaddd then adds the lanes of eight columns.  |r| <= 2^19 (docs/design/cpu.md), so that r and r * unit * sA are
 * exact in fp32: unit * sA is one bit of at least 2^-139, and at most 2^105. */
#if defined(__x86_64__)
#include "cpu/kernels.h"
#include "lanes_avx2.h"

enum {
    ROWS = 4, COLUMNS = 32, STEP = 8, EXACT_BLOCK = 32, CHUNK = BSMI_ROW_CHUNK, EXACT_BLOCKS = CHUNK / EXACT_BLOCK,
    AHEAD = 512,                          /* bytes of a row that are prefetched */
};

struct a_panel {
    _Alignas(64) int16_t values[ROWS][CHUNK];            /* for int8 */
    int8_t swapped[ROWS][CHUNK];          /* for e2m3: k = 1, 0, 3, 2, .. */
    float scales[EXACT_BLOCKS][ROWS];             /* unit * sA */
    int64_t rows;
};

struct b_panel {
    _Alignas(64) float scales[EXACT_BLOCKS][COLUMNS];
    struct bsmi_byte_rows bytes;          /* pointers to the matrix's own bytes or streams, if they fill whole groups */
    bsm_element element;
};

static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
{
    struct a_panel *panel = memory;
    struct bsmi_byte_rows bytes;
    const int grid = bsmi_element_grid(part->operand.matrix->element),
              exact_blocks = (int)bsmi_ceil_div(part->length, EXACT_BLOCK);
    const float per_unit = (float)(1 << grid),
                unit = bsmi_float_power_of_two(-grid - bsmi_element_grid(b->matrix->element));
    panel->rows = part->count;
    bsmi_byte_rows(part, ROWS, &bytes);
    bsmi_scale_rows(part, exact_block, ROWS, panel->scales[0]);
    const bool swapped = b->matrix->element == BSM_E2M3;
    for (int64_t r = 0; r < part->count; r++)
        for (int64_t k = 0; k < (int64_t)exact_blocks * EXACT_BLOCK; k++) {
            const int value = (int)(part->operand.values[bytes.rows[r][k]] * per_unit);
            if (swapped) panel->swapped[r][k ^ 1] = (int8_t)value;
            else panel->values[r][k] = (int16_t)value;
        }
    for (int i = 0; i < exact_blocks; i++)
        for (int r = 0; r < ROWS; r++) panel->scales[i][r] *= unit;
}

AVX2 static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    struct b_panel *panel = memory;
    panel->element = part->operand.matrix->element;
    if (panel->element == BSM_E2M3) bsmi_stream_rows(part, COLUMNS, &panel->bytes);
    else bsmi_byte_rows(part, COLUMNS, &panel->bytes);
    pack_scales_by_column(part, exact_block, panel->scales);
}

/* 32 codes of e2m3 out of a stream, a byte each, in the order of a_panel's `swapped`: of two that lie in 16 bits, one
 * multiplication moves the first to the upper byte, another one the second to the lower. */
AVX2_INLINE __m256i bytes_of_e2m3(const uint8_t *exact_block)
{
    const __m256i places = _mm256_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11,
                                            4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15);
    const __m128i first = _mm_loadu_si128((const __m128i *)(const void *)exact_block),
                  last = _mm_loadu_si128((const __m128i *)(const void *)(exact_block + 8));
    const __m256i words = _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(first), last, 1), places);
    const __m256i upper =
        _mm256_mullo_epi16(_mm256_and_si256(words, _mm256_set1_epi32(0x03f0003f)), _mm256_set1_epi32(0x00100100));
    const __m256i lower =
        _mm256_mulhi_epu16(_mm256_and_si256(words, _mm256_set1_epi32((int)0xfc000fc0)), _mm256_set1_epi32(0x00400400));
    return _mm256_or_si256(upper, lower);
}

/* In eighths. */
AVX2_INLINE __m256i magnitudes_of_e2m3(__m256i codes)
{
    const __m256i below_two =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    const __m256i others =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 44, 48, 52, 56, 60));
    const __m256i unsigned_codes = _mm256_and_si256(codes, _mm256_set1_epi8(31));
    /* 0 from code 16 on */
    const __m256i low = _mm256_shuffle_epi8(below_two, _mm256_add_epi8(unsigned_codes, _mm256_set1_epi8(112)));
    return _mm256_or_si256(low, _mm256_shuffle_epi8(others, _mm256_sub_epi8(unsigned_codes, _mm256_set1_epi8(16))));
}

AVX2_INLINE void add_e2m3_block(int rows, const uint8_t *exact_block, int64_t s, const struct a_panel *a,
                                __m256i sums[ROWS][STEP], int c)
{
    const __m256i codes = bytes_of_e2m3(exact_block), magnitudes = magnitudes_of_e2m3(codes),
                  signs = _mm256_slli_epi16(codes, 2);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        const __m256i values = _mm256_load_si256((const __m256i *)(const void *)(a->swapped[r] + s * EXACT_BLOCK));
        const __m256i pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(values, signs));
        sums[r][c] = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    }
}

AVX2_INLINE void add_int8_block(int rows, const uint8_t *exact_block, int64_t s, const struct a_panel *a,
                                __m256i sums[ROWS][STEP], int c)
{
    const __m128i *const bytes = (const __m128i *)(const void *)exact_block;
    const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes)),
                  high = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes + 1));
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        const __m256i *const values = (const __m256i *)(const void *)(a->values[r] + s * EXACT_BLOCK);
        sums[r][c] = _mm256_add_epi32(_mm256_madd_epi16(low, _mm256_load_si256(values)),
                                      _mm256_madd_epi16(high, _mm256_load_si256(values + 1)));
    }
}

AVX2_INLINE int bytes_of_block(bsm_element element) { return element == BSM_E2M3 ? EXACT_BLOCK / 4 * 3 : EXACT_BLOCK; }

/* An exact block of eight columns with each row of A. */
AVX2_INLINE void add_exact_block(bsm_element element, int rows, const uint8_t *const *from, int64_t s,
                                 const struct a_panel *a, __m256i sums[ROWS][STEP])
{
#pragma GCC unroll 8
    for (int c = 0; c < STEP; c++) {
        const uint8_t *const exact_block = from[c] + s * bytes_of_block(element);
        if (element == BSM_E2M3) add_e2m3_block(rows, exact_block, s, a, sums, c);
        else add_int8_block(rows, exact_block, s, a, sums, c);
    }
}

/* The sums of the lanes of eight vectors. */
AVX2_INLINE __m256i add_lanes(const __m256i v[STEP])
{
    const __m256i first = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i second = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20),
                            _mm256_permute2x128_si256(first, second, 0x31));
}

AVX2_INLINE void multiply_step(bsm_element element, int rows, int64_t exact_blocks, const struct a_panel *a,
                               const struct b_panel *b, int column, float *sums, int64_t pitch)
{
    const uint8_t *const *const from = b->bytes.rows + column;
    __m256 totals[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) totals[r] = _mm256_load_ps(sums + r * pitch);
    for (int64_t s = 0; s < exact_blocks; s++) {
        __m256i lanes[ROWS][STEP];
        if (s % 2 == 0) bsmi_prefetch_rows(from, STEP, s * bytes_of_block(element) + AHEAD);
        add_exact_block(element, rows, from, s, a, lanes);
        const __m256 b_scales = _mm256_load_ps(b->scales[s] + column);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const __m256 t = _mm256_mul_ps(_mm256_cvtepi32_ps(add_lanes(lanes[r])), _mm256_set1_ps(a->scales[s][r]));
            totals[r] = _mm256_fmadd_ps(t, b_scales, totals[r]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) _mm256_store_ps(sums + r * pitch, totals[r]);
}

AVX2_INLINE void multiply_element(bsm_element element, int64_t exact_blocks, const struct a_panel *a,
                                  const struct b_panel *b, float *sums, int64_t pitch)
{
    for (int column = 0; column < COLUMNS; column += STEP, sums += STEP)
        switch (a->rows) {
        case 1: multiply_step(element, 1, exact_blocks, a, b, column, sums, pitch); break;
        case 2: multiply_step(element, 2, exact_blocks, a, b, column, sums, pitch); break;
        case 3: multiply_step(element, 3, exact_blocks, a, b, column, sums, pitch); break;
        default: multiply_step(element, 4, exact_blocks, a, b, column, sums, pitch);
        }
}

AVX2 static void multiply(int64_t rows, int64_t length, int exact_block, const void *a, const void *right, float *sums,
                          int64_t pitch)
{
    const struct b_panel *b = right;
    const int64_t exact_blocks = bsmi_ceil_div(length, EXACT_BLOCK);
    (void)exact_block, (void)rows;
    if (b->element == BSM_E2M3) multiply_element(BSM_E2M3, exact_blocks, a, b, sums, pitch);
    else multiply_element(BSM_INT8, exact_blocks, a, b, sums, pitch);
}

_Static_assert(sizeof(struct a_panel) % 64 == 0 && sizeof(struct b_panel) % 64 == 0,
               "panels follow one another at vectors' alignment");

const struct bsmi_microkernel bsmi_int8_dot_few_rows_avx2 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel),
    .fits = bsmi_exact_blocks_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_exact_blocks_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

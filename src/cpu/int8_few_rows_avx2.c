/* Blocks of int8 for B and a few rows of int8, e2m3 or e2m1 in blocks of 32, with AVX2 and FMA: B is read as it is stored, once.
 *
 *     r[i][j] = sum over a run of 32 of a[i][k] * b[j][k], as integers        S[i][j] = fma(r * unit * sA[i], sB[j], S[i][j])
 *
 * unit is 2^-(grid of a + grid of b).  32 bytes of a row of B are a run: widened to 16 bits, multiplied and added in pairs to 32
 * bits; vphaddd then adds the lanes of eight columns.  |r| <= 2^19 (docs/cpu.md), so that r and r * unit * sA are exact in fp32:
 * unit * sA is one bit of at least 2^-139, and at most 2^105. */
#if defined(__x86_64__)
#include "lanes_avx2.h"
#include "panels.h"

enum {
    ROWS = 4, COLUMNS = 32, STEP = 8, RUN = 32, CHUNK = BSMI_ROW_CHUNK, RUNS = CHUNK / RUN, MOST_A_SCALE = 105 + 127,
    AHEAD = 512,                          /* bytes of a row that are asked for before their turn */
};

struct a_panel {
    _Alignas(64) int16_t values[ROWS][CHUNK];
    float scales[RUNS][ROWS];             /* unit * sA */
    int64_t rows;
};

struct b_panel {
    _Alignas(64) float scales[RUNS][COLUMNS];
    struct bsmi_byte_rows bytes;          /* pointers to the matrix's own bytes, if they fill whole groups */
};

static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int run, void *memory)
{
    struct a_panel *panel = memory;
    struct bsmi_byte_rows bytes;
    const int grid = bsmi_element_grid(part->operand.matrix->element), runs = (int)bsmi_ceil_div(part->length, RUN);
    const float per_unit = (float)(1 << grid), unit = bsmi_float_power_of_two(-grid - bsmi_element_grid(b->matrix->element));
    panel->rows = part->count;
    bsmi_byte_rows(part, ROWS, &bytes);
    bsmi_scale_rows(part, run, ROWS, panel->scales[0]);
    for (int64_t r = 0; r < part->count; r++)
        for (int64_t k = 0; k < (int64_t)runs * RUN; k++)
            panel->values[r][k] = (int16_t)(part->operand.values[bytes.rows[r][k]] * per_unit);
    for (int i = 0; i < runs; i++)
        for (int r = 0; r < ROWS; r++) panel->scales[i][r] *= unit;
}

AVX2 static void pack_b(const struct bsmi_part *part, int run, void *memory)
{
    struct b_panel *panel = memory;
    bsmi_byte_rows(part, COLUMNS, &panel->bytes);
    pack_scales_by_column(part, run, panel->scales);
}

/* A run of eight columns with each row of A. */
AVX2_INLINE void add_run(int rows, const uint8_t *const *from, int64_t s, const struct a_panel *a, __m256i sums[ROWS][STEP])
{
#pragma GCC unroll 8
    for (int c = 0; c < STEP; c++) {
        const __m128i *const bytes = (const __m128i *)(const void *)(from[c] + s * RUN);
        const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes)), high = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes + 1));
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const __m256i *const values = (const __m256i *)(const void *)(a->values[r] + s * RUN);
            sums[r][c] = _mm256_add_epi32(_mm256_madd_epi16(low, _mm256_load_si256(values)),
                                          _mm256_madd_epi16(high, _mm256_load_si256(values + 1)));
        }
    }
}

/* The sums of the lanes of eight vectors. */
AVX2_INLINE __m256i add_lanes(const __m256i v[STEP])
{
    const __m256i first = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i second = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20), _mm256_permute2x128_si256(first, second, 0x31));
}

AVX2_INLINE void multiply_step(int rows, int64_t runs, const struct a_panel *a, const struct b_panel *b, int column, float *sums,
                               int64_t pitch)
{
    const uint8_t *const *const from = b->bytes.rows + column;
    __m256 totals[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) totals[r] = _mm256_load_ps(sums + r * pitch);
    for (int64_t s = 0; s < runs; s++) {
        __m256i lanes[ROWS][STEP];
        if (s % 2 == 0) bsmi_prefetch_rows(from, STEP, s * RUN + AHEAD);
        add_run(rows, from, s, a, lanes);
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

AVX2 static void multiply(int64_t rows, int64_t length, int run, const void *left, const void *right, float *sums, int64_t pitch)
{
    const struct a_panel *a = left;
    const struct b_panel *b = right;
    const int64_t runs = bsmi_ceil_div(length, RUN);
    (void)run, (void)rows;
    for (int column = 0; column < COLUMNS; column += STEP, sums += STEP)
        switch (a->rows) {
        case 1: multiply_step(1, runs, a, b, column, sums, pitch); break;
        case 2: multiply_step(2, runs, a, b, column, sums, pitch); break;
        case 3: multiply_step(3, runs, a, b, column, sums, pitch); break;
        default: multiply_step(4, runs, a, b, column, sums, pitch);
        }
}

static bool fits(const struct bsmi_part *a, const struct bsmi_part *b)
{
    (void)b;
    return bsmi_part_e8m0_at_most(a, MOST_A_SCALE);
}

_Static_assert(sizeof(struct a_panel) % 64 == 0 && sizeof(struct b_panel) % 64 == 0,
               "panels follow one another at vectors' alignment");

const struct bsmi_panels bsmi_few_int8_panels_avx2 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel), .b_bytes = sizeof(struct b_panel),
    .fits = fits, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_runs_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

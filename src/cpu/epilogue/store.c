/* The last step: fp32 values into D, rounded once, or quantized in blocks. */
#include "store.h"

#include "core/core.h"
#include "core/stream.h"
#include "matrix/reals.h"
#include "matrix/rows.h"

static void store_blocks(const struct bsmi_destination *to, int64_t batch, int64_t row, int64_t column, int64_t count,
                         const float *t)
{
    const struct bsmi_matrix *d = to->matrix;
    uint8_t codes[32];
    for (int64_t j = 0; j < count; j += d->block) {
        const int length = (int)BSMI_MIN(d->block, count - j);
        const uint64_t index = (uint64_t)(batch * d->rows + row) * (uint64_t)d->columns + (uint64_t)(column + j);
        *bsmi_scale_pointer(d, batch, row, (column + j) / d->block) =
            bsmi_quantize_block(&to->quantizer, t + j, length, index, codes, NULL);
        bsmi_row_store_codes(d, batch, row, column + j, length, codes);
    }
}

/* t / tensor_scale, or t * tensor_scale where it divides.  A product of two fp32 numbers is exact in double; their
 * quotient cannot come so close to a midpoint of fp32 (25 bits) that rounding it to double first changes the result. */
static double unscaled(const struct bsmi_destination *to, float t)
{
    if (to->matrix->tensor_scale == NULL) return (double)t;
    const double scale = (double)to->tensor_scale;
    return to->matrix->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES ? (double)t * scale : (double)t / scale;
}

static void store_bytes(const struct bsmi_destination *to, unsigned char *row, int64_t column, int64_t count,
                        const float *t)
{
    for (int64_t j = 0; j < count; j++)
        row[column + j] = (unsigned char)bsm_element_encode(to->matrix->element, unscaled(to, t[j]),
                                                            BSM_ROUND_NEAREST_EVEN, to->saturate, 0);
}

bool bsmi_stores_reals(const struct bsmi_matrix *d) { return d->bits >= 16 && d->tensor_scale == NULL; }

static void store_fp32(float *restrict row, int64_t count, float factor, const float *restrict t)
{
    for (int64_t j = 0; j < count; j++) {
        const float value = factor * t[j];
        row[j] = isnan(value) ? bsmi_float_from_bits(0x7fc00000) : value;
    }
}

#if defined(__x86_64__)
/* Whole lines, past the caches. */
static void stream_lines(float *row, int64_t lines, float factor, const float *t)
{
    const __m128 factors = _mm_set1_ps(factor), nan = _mm_castsi128_ps(_mm_set1_epi32(0x7fc00000));
    for (int64_t j = 0; j < lines * BSMI_LINE / (int64_t)sizeof *row; j += 4) {
        const __m128 value = _mm_mul_ps(factors, _mm_loadu_ps(t + j)), is_nan = _mm_cmpunord_ps(value, value);
        _mm_stream_ps(row + j, _mm_or_ps(_mm_andnot_ps(is_nan, value), _mm_and_ps(is_nan, nan)));
    }
}
#else
static void stream_lines(float *row, int64_t lines, float factor, const float *t)
{
    store_fp32(row, lines * BSMI_LINE / (int64_t)sizeof *row, factor, t);
}
#endif

bool bsmi_is_stored_past_caches(const struct bsmi_matrix *d)
{
    return bsmi_is_streamed(d->batch, d->rows, d->columns / (32 / d->bits));
}

static void store_lines(bool past_caches, int64_t count, float factor, const float *sums, float *to)
{
    if (past_caches && (uintptr_t)to % BSMI_LINE == 0) {
        const int64_t lines = count * (int64_t)sizeof *to / BSMI_LINE, whole = lines * BSMI_LINE / (int64_t)sizeof *to;
        stream_lines(to, lines, factor, sums);
        to += whole, sums += whole, count -= whole;
    }
    store_fp32(to, count, factor, sums);
}

/* Rounded as integers: half of the last place is added, or one less where the number is even. */
static void store_bf16(uint16_t *restrict row, int64_t count, float factor, const float *restrict t)
{
    for (int64_t j = 0; j < count; j++) {
        const float value = factor * t[j];
        const uint32_t bits = bsmi_float_bits(value);
        row[j] = isnan(value) ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

void bsmi_store_scaled(const struct bsmi_destination *to, int64_t batch, int64_t row, int64_t column, int64_t count,
                       float factor, const float *sums)
{
    const struct bsmi_matrix *d = to->matrix;
    const bool past_caches = bsmi_is_stored_past_caches(d);
    unsigned char *const numbers = bsmi_row(d, batch, row) + column * (d->bits / 8);
#if defined(__x86_64__)
    if ((to->features & BSM_CPU_AVX512) != 0) {
        bsmi_store_scaled_avx512(d->element, past_caches, count, factor, sums, numbers);
        return;
    }
#endif
    if (d->element == BSM_FP32) store_lines(past_caches, count, factor, sums, (float *)(void *)numbers);
    else if (d->element == BSM_BF16) store_bf16((uint16_t *)(void *)numbers, count, factor, sums);
    else for (int64_t j = 0; j < count; j++) bsmi_real_store(BSM_REAL_FP16, numbers, j, (double)(factor * sums[j]));
}

void bsmi_store_row(const struct bsmi_destination *to, int64_t batch, int64_t row, int64_t column, int64_t count,
                    const float *t)
{
    const struct bsmi_matrix *d = to->matrix;
    if (d->block != 0) {
        store_blocks(to, batch, row, column, count, t);
        return;
    }
    if (bsmi_stores_reals(d)) {
        bsmi_store_scaled(to, batch, row, column, count, 1, t);
        return;
    }
    unsigned char *codes = bsmi_row(d, batch, row);
    if (d->bits == 8) {
        store_bytes(to, codes, column, count, t);
        return;
    }
    const bsm_real type = d->element == BSM_FP32   ? BSM_REAL_FP32
                          : d->element == BSM_BF16 ? BSM_REAL_BF16
                                                   : BSM_REAL_FP16;
    for (int64_t j = 0; j < count; j++) bsmi_real_store(type, codes, column + j, unscaled(to, t[j]));
}

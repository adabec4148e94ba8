/* From sums to D: each wave for itself, DIM rows of its sums at a time.  They go through LDS, so that a lane gets eight
 * columns of a row, and one short loop does for all of them. */
#ifndef BSMI_GFX950_GEMM_EPILOGUE_H
#define BSMI_GFX950_GEMM_EPILOGUE_H

#include "gemm_fragments.h"
#include "gemm_order.h"
#include <blockscale/matmul.h>

#define NO_UNROLL _Pragma("nounroll")

/* What is the same for the whole tile. */
struct gemm_finish { float factor, beta; bool changes; };

INLINE struct gemm_finish finish_of(const struct bsmi_hip_gemm_finish *f, int32_t matrix)
{
    struct gemm_finish finish = { 1, 0, false };
    if (!f->direct) return finish;
    if (f->factor != 0 && f->factor_per == BSM_PER_TENSOR) finish.factor = *f->factor;
    if (f->factor != 0 && f->factor_per == BSM_PER_BATCH) finish.factor = f->factor[matrix];
    if (f->beta != 0 && f->c != 0) finish.beta = *f->beta;
    finish.changes = f->factor != 0 || finish.beta != 0 || f->bias != 0;
    return finish;
}

INLINE float load_number(const unsigned char *at, bool is_fp32, bool is_bf16)
{
    if (is_fp32) return *(GLOBAL const float *)at;
    const uint16_t bits = *(GLOBAL const uint16_t *)at;
    return is_bf16 ? __builtin_bit_cast(float, (uint32_t)bits << 16) : (float)__builtin_bit_cast(_Float16, bits);
}

INLINE float load_bias(const struct bsmi_hip_gemm_finish *f, int64_t index)
{
    const bool is_fp32 = f->bias_type == BSM_REAL_FP32;
    return load_number(f->bias + index * (is_fp32 ? 4 : 2), is_fp32, f->bias_type == BSM_REAL_BF16);
}

/* t = f S + (beta C + bias), absent terms as numbers that change nothing. */
INLINE float finished(const struct bsmi_hip_gemm_parameters *p, const struct gemm_finish *finish, int32_t matrix,
                      int32_t row, int32_t column, float sum)
{
    const struct bsmi_hip_gemm_finish *f = &p->finish;
    const int64_t of_c = p->group_starts != 0 ? 0 : matrix;
    float factor = finish->factor, addend = -0.0f;
    if (f->factor != 0 && f->factor_per == BSM_PER_ROW) factor = ((GLOBAL const float *)f->factor)[row];
    if (f->factor != 0 && f->factor_per == BSM_PER_COLUMN) factor = ((GLOBAL const float *)f->factor)[column];
    if (f->bias != 0)
        addend = load_bias(f, f->bias_per == BSM_PER_ROW ? of_c * f->bias_batch_pitch + row
                                                         : matrix * f->bias_batch_pitch + column);
    if (finish->beta != 0) {
        const bool is_fp32 = f->c_element == BSM_FP32;
        addend = __builtin_fmaf(finish->beta,
                                load_number(f->c + of_c * f->c_batch_bytes + row * f->c_row_bytes
                                                + (int64_t)column * (is_fp32 ? 4 : 2),
                                            is_fp32, f->c_element == BSM_BF16),
                                addend);
    }
    return __builtin_fmaf(factor, sum, addend);
}

/* S = sum 2^exponent, rounded once. */
INLINE float scaled_sum(const struct bsmi_hip_gemm_parameters *p, int32_t matrix, int32_t row, int32_t column,
                        float sum)
{
    const struct bsmi_hip_gemm_finish *f = &p->finish;
    int32_t exponent = 0;
    if (f->a_exponents != 0)
        exponent = ((GLOBAL const int32_t *)
                        f->a_exponents)[(p->group_starts != 0 ? 0 : matrix) * f->a_exponent_step + row];
    if (f->b_exponents != 0)
        exponent += ((GLOBAL const int32_t *)f->b_exponents)[matrix * f->b_exponent_step + column];
    return __builtin_ldexpf(sum, exponent);
}

INLINE uint32_t bf16_bits(float x) { return __builtin_bit_cast(uint16_t, (__bf16)x); }
INLINE uint32_t fp16_bits(float x) { return __builtin_bit_cast(uint16_t, (_Float16)x); }

INLINE void store_one(unsigned char *to, int32_t element, float t)
{
    if (element == BSM_FP32) *(GLOBAL float *)to = t;
    else *(GLOBAL uint16_t *)to = (uint16_t)(element == BSM_BF16 ? bf16_bits(t) : fp16_bits(t));
}

/* All eight, at a multiple of 16 bytes. */
INLINE void store_eight(unsigned char *to, int32_t element, const float *t)
{
    if (element == BSM_FP32) {
        ((GLOBAL floats4 *)to)[0] = (floats4){ t[0], t[1], t[2], t[3] };
        ((GLOBAL floats4 *)to)[1] = (floats4){ t[4], t[5], t[6], t[7] };
        return;
    }
    words4 pairs;
    UNROLL for (int i = 0; i < 4; i++)
        pairs[i] = (int32_t)(element == BSM_BF16 ? bf16_bits(t[2 * i]) | bf16_bits(t[2 * i + 1]) << 16
                                                 : fp16_bits(t[2 * i]) | fp16_bits(t[2 * i + 1]) << 16);
    *(GLOBAL words4 *)to = pairs;
}

/* Four neighbours of a row, number i of a lane's in a part. */
OVERLOADED floats4 four_of(floats4 sums, int32_t i) { return (void)i, sums; }
OVERLOADED floats4 four_of(floats16 sums, int32_t i)
{
    return i == 0   ? __builtin_shufflevector(sums, sums, 0, 1, 2, 3)
           : i == 1 ? __builtin_shufflevector(sums, sums, 4, 5, 6, 7)
           : i == 2 ? __builtin_shufflevector(sums, sums, 8, 9, 10, 11)
                    : __builtin_shufflevector(sums, sums, 12, 13, 14, 15);
}

/* DIM rows of the wave's sums, number `part`, to its piece of LDS. */
INLINE void put_piece(gemm_sums sums, int32_t part, LDS unsigned char *piece)
{
    const int32_t lane = __builtin_amdgcn_workitem_id_x() % 64;
    LDS unsigned char *at = piece + lane % DIM * PITCH + lane / DIM * 16;
    UNROLL for (int32_t i = 0; i < ROW_PARTS; i++) {
        if (i != part) continue;
        UNROLL for (int32_t j = 0; j < COLUMN_PARTS; j++)
            UNROLL for (int32_t k = 0; k < DIM * DIM / 256; k++)
                *(LDS floats4 *)(at + (j * DIM + k * 4 * LANES_K) * 4) = four_of(sums[i][j], k);
    }
}

/* Which of the eight numbers are NaN because of a scale. */
INLINE uint32_t nans_of(const struct bsmi_hip_gemm_parameters *p, int32_t matrix, int32_t row, int32_t column)
{
    const struct bsmi_hip_gemm_finish *f = &p->finish;
    const int64_t a_matrix = p->group_starts != 0 ? 0 : matrix;
    uint32_t nans = 0;
    if (f->a_nans != 0)
        nans = -(((GLOBAL const uint32_t *)f->a_nans)[a_matrix * f->a_nan_words + row / 32] >> row % 32 & 1);
    if (f->b_nans != 0)
        nans |= ((GLOBAL const uint32_t *)f->b_nans)[matrix * f->b_nan_words + column / 32] >> column % 32;
    return nans;
}

/* Eight columns of a row. */
INLINE void store_octet(const struct bsmi_hip_gemm_parameters *p, const struct gemm_finish *finish,
                        const struct gemm_tile *tile, int32_t row, int32_t column, LDS const unsigned char *from)
{
    const struct bsmi_hip_gemm_finish *f = &p->finish;
    const floats4 low = ((LDS const floats4 *)from)[0], high = ((LDS const floats4 *)from)[1];
    float t[8] = { low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3] };
    const int32_t left = (int32_t)p->n - column, bytes = f->d_element == BSM_FP32 ? 4 : 2;
    if (row < tile->first_row || row >= tile->end_row || left <= 0) return;
    if (SCALED) {
        const uint32_t nans = nans_of(p, tile->matrix, row, column);
        UNROLL for (int32_t i = 0; i < 8; i++)
            if ((nans >> i & 1) != 0) t[i] = __builtin_bit_cast(float, 0x7fc00000);
    }
    if (f->direct) {
        UNROLL for (int32_t i = 0; i < 8; i++) {
            if (i >= left) continue;
            if (!SCALED) t[i] = scaled_sum(p, tile->matrix, row, column + i, t[i]);
            if (finish->changes) t[i] = finished(p, finish, tile->matrix, row, column + i, t[i]);
            if (f->relu) t[i] = t[i] <= 0 ? 0 : t[i];
            if (t[i] != t[i]) t[i] = __builtin_bit_cast(float, 0x7fc00000);
        }
    }
    unsigned char *to = f->d + (p->group_starts != 0 ? 0 : tile->matrix * f->d_batch_bytes) + row * f->d_row_bytes
                        + (int64_t)column * bytes;
    if (left >= 8 && (uint64_t)to % 16 == 0) {
        store_eight(to, f->d_element, t);
        return;
    }
    UNROLL for (int32_t i = 0; i < 8; i++)
        if (i < left) store_one(to + i * bytes, f->d_element, t[i]);
}

/* The waves have read what they need of the stages. */
INLINE void store_tile(const struct bsmi_hip_gemm_parameters *p, const struct gemm_tile *tile, int32_t wave,
                       gemm_sums sums)
{
    enum { LANES = WAVE_COLUMNS / 8, ROWS_AT_ONCE = 64 / LANES };
    const struct gemm_finish finish = finish_of(&p->finish, tile->matrix);
    const int32_t lane = __builtin_amdgcn_workitem_id_x() % 64, of_lane = lane / LANES;
    const int32_t row = tile->row + wave / ALONG_N * WAVE_ROWS,
                  column = tile->column + wave % ALONG_N * WAVE_COLUMNS + lane % LANES * 8;
    LDS unsigned char *piece = memory + wave * PIECE_BYTES;
    NO_UNROLL for (int32_t part = 0; part < ROW_PARTS; part++) {
        put_piece(sums, part, piece);
        NO_UNROLL for (int32_t i = 0; i < DIM; i += ROWS_AT_ONCE)
            store_octet(p, &finish, tile, row + part * DIM + i + of_lane, column,
                        piece + (i + of_lane) * PITCH + lane % LANES * 32);
    }
}

#endif

/* From sums to D: each wave for itself, DIM rows of its sums at a time.  They go through LDS, so that a lane gets four
 * columns of a row, and one short loop does for all of them; quantized D takes a second one, a block a lane. */
#ifndef BSMI_GFX950_GEMM_EPILOGUE_H
#define BSMI_GFX950_GEMM_EPILOGUE_H

#include "gemm_fragments.h"
#include "gemm_order.h"
#include "gemm_quantized.h"
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

/* Four neighbouring columns of a row, `left` of which (and of what is behind them) D has: at least one. */
struct gemm_quad { int32_t matrix, row, column, left; };

INLINE int64_t bytes_of(int32_t element) { return element == BSM_FP32 ? 4 : 2; }

/* Numbers of `element` at row[index], row[index + 1], ...; those that the row has not are its last one. */
INLINE floats4 load_four(const unsigned char *row, int32_t element, int64_t index, int32_t left)
{
    floats4 four;
    uint32_t bits[4];
    if (element == BSM_FP32) {
        UNROLL for (int32_t i = 0; i < 4; i++)
            four[i] = ((GLOBAL const float *)row)[index + (i < left ? i : left - 1)];
        return four;
    }
    UNROLL for (int32_t i = 0; i < 4; i++)
        bits[i] = ((GLOBAL const uint16_t *)row)[index + (i < left ? i : left - 1)];
    UNROLL for (int32_t i = 0; i < 4; i++)
        four[i] = element == BSM_BF16 ? __builtin_bit_cast(float, bits[i] << 16)
                                      : (float)__builtin_bit_cast(_Float16, (uint16_t)bits[i]);
    return four;
}

/* t = f S + (beta C + bias), absent terms as numbers that change nothing. */
INLINE floats4 finished(const struct bsmi_hip_gemm_parameters *p, const struct gemm_finish *finish,
                        const struct gemm_quad *q, floats4 sums)
{
    const struct bsmi_hip_gemm_finish *f = &p->finish;
    const int64_t of_c = p->group_starts != 0 ? 0 : q->matrix;
    floats4 factor = finish->factor, addend = -0.0f;
    if (f->factor != 0 && f->factor_per == BSM_PER_ROW) factor = ((GLOBAL const float *)f->factor)[q->row];
    if (f->factor != 0 && f->factor_per == BSM_PER_COLUMN)
        factor = load_four((const unsigned char *)f->factor, BSM_FP32, q->column, q->left);
    if (f->bias != 0) {
        const bool per_row = f->bias_per == BSM_PER_ROW;
        addend = load_four(f->bias, f->bias_element,
                           (per_row ? of_c : q->matrix) * f->bias_batch_pitch + (per_row ? q->row : q->column),
                           per_row ? 1 : q->left);
    }
    if (finish->beta != 0)
        addend = __builtin_elementwise_fma((floats4)finish->beta,
                                           load_four(f->c + of_c * f->c_batch_bytes + q->row * f->c_row_bytes,
                                                     f->c_element, q->column, q->left),
                                           addend);
    return __builtin_elementwise_fma(factor, sums, addend);
}

INLINE uint32_t bf16_bits(float x) { return __builtin_bit_cast(uint16_t, (__bf16)x); }
INLINE uint32_t fp16_bits(float x) { return __builtin_bit_cast(uint16_t, (_Float16)x); }

/* Stores of several numbers ask for no more alignment than one of them. */
typedef floats4 __attribute__((aligned(4))) stored_floats4;
typedef words2 __attribute__((aligned(2))) stored_words2;

INLINE uint32_t narrow_bits(int32_t element, float x) { return element == BSM_BF16 ? bf16_bits(x) : fp16_bits(x); }

INLINE void store_four(unsigned char *to, int32_t element, floats4 t)
{
    if (element == BSM_FP32) {
        *(GLOBAL stored_floats4 *)to = t;
        return;
    }
    *(GLOBAL stored_words2 *)to = (words2){
        (int32_t)(narrow_bits(element, t[0]) | narrow_bits(element, t[1]) << 16),
        (int32_t)(narrow_bits(element, t[2]) | narrow_bits(element, t[3]) << 16)
    };
}

/* At the edge of D, from LDS. */
INLINE void store_few(unsigned char *to, int32_t element, int32_t left, LDS const float *from)
{
    NO_UNROLL for (int32_t i = 0; i < left; i++) {
        if (element == BSM_FP32) ((GLOBAL float *)to)[i] = from[i];
        else ((GLOBAL uint16_t *)to)[i] = (uint16_t)narrow_bits(element, from[i]);
    }
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

/* Which of the four numbers are NaN because of a scale. */
INLINE uint32_t nans_of(const struct bsmi_hip_gemm_parameters *p, const struct gemm_quad *q)
{
    const struct bsmi_hip_gemm_finish *f = &p->finish;
    const int64_t a_matrix = p->group_starts != 0 ? 0 : q->matrix;
    uint32_t nans = 0;
    if (f->a_nans != 0)
        nans = -(((GLOBAL const uint32_t *)f->a_nans)[a_matrix * f->a_nan_words + q->row / 32] >> q->row % 32 & 1);
    if (f->b_nans != 0)
        nans |= ((GLOBAL const uint32_t *)f->b_nans)[q->matrix * f->b_nan_words + q->column / 32] >> q->column % 32;
    return nans;
}

/* A quad from LDS to D, or where D is quantized back to LDS.  *amax: raised to magnitude_of. */
INLINE void finish_quad(const struct bsmi_hip_gemm_parameters *p, const struct gemm_finish *finish,
                        const struct gemm_quad *q, LDS floats4 *at, uint32_t *amax)
{
    const struct bsmi_hip_gemm_finish *f = &p->finish;
    const float nan = __builtin_bit_cast(float, 0x7fc00000);
    const bool quantized = f->direct && f->d_scales != 0;
    floats4 t = *at;
    if (SCALED) {
        const uint32_t nans = nans_of(p, q);
        UNROLL for (int32_t i = 0; i < 4; i++) t[i] = (nans >> i & 1) != 0 ? nan : t[i];
    }
    if (f->direct) {
        if (finish->changes) t = finished(p, finish, q, t);
        if (f->relu)
            UNROLL for (int32_t i = 0; i < 4; i++) t[i] = t[i] <= 0 ? 0 : t[i];
        UNROLL for (int32_t i = 0; i < 4; i++) {
            t[i] = t[i] != t[i] ? nan : t[i];
            const uint32_t magnitude = i < q->left ? magnitude_of(t[i]) : 0;
            *amax = *amax > magnitude ? *amax : magnitude;
        }
    }
    if (quantized || q->left < 4) *at = t;
    if (quantized) return;
    unsigned char *to = f->d + (p->group_starts != 0 ? 0 : q->matrix * f->d_batch_bytes) + q->row * f->d_row_bytes
                        + q->column * bytes_of(f->d_element);
    if (q->left >= 4) store_four(to, f->d_element, t);
    else store_few(to, f->d_element, q->left, (LDS const float *)at);
}

/* The wave's largest magnitude, raised by one lane. */
INLINE void raise_amax(uint32_t *to, uint32_t magnitude)
{
    const uint32_t largest = __builtin_amdgcn_wave_reduce_max_u32(magnitude, 0) / 2;
    if (largest != 0 && __builtin_amdgcn_workitem_id_x() % 64 == 0)
        __scoped_atomic_fetch_max((GLOBAL uint32_t *)to, largest, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

/* The kernel's parameter as memory that the compiler knows nothing of: what is read from it takes no registers
 * before. */
INLINE CONSTANT const struct bsmi_hip_gemm_parameters *loaded_again(void)
{
    CONSTANT const void *p = __builtin_amdgcn_kernarg_segment_ptr();
    __asm__ volatile("" : "+s"(p));
    return (CONSTANT const struct bsmi_hip_gemm_parameters *)p;
}

/* The waves have read what they need of the stages. */
INLINE void store_tile(const struct bsmi_hip_gemm_parameters *p, const struct gemm_tile *tile, int32_t wave,
                       gemm_sums sums)
{
    enum { LANES = WAVE_COLUMNS / 4, ROWS_AT_ONCE = 64 / LANES, BLOCKS = DIM * WAVE_COLUMNS / 32 };
    const struct gemm_finish finish = finish_of(&p->finish, tile->matrix);
    const int32_t lane = __builtin_amdgcn_workitem_id_x() % 64, first_row = tile->row + wave / ALONG_N * WAVE_ROWS,
                  first_column = tile->column + wave % ALONG_N * WAVE_COLUMNS;
    LDS unsigned char *piece = memory + wave * PIECE_BYTES;
    uint32_t amax = 0;
    NO_UNROLL for (int32_t part = 0; part < ROW_PARTS; part++) {
        put_piece(sums, part, piece);
        NO_UNROLL for (int32_t i = lane / LANES; i < DIM; i += ROWS_AT_ONCE) {
            const int32_t column = first_column + lane % LANES * 4;
            const struct gemm_quad quad = { tile->matrix, first_row + part * DIM + i, column, (int32_t)p->n - column };
            if (quad.row >= tile->first_row && quad.row < tile->end_row && quad.left > 0)
                finish_quad(p, &finish, &quad, (LDS floats4 *)(piece + i * PITCH + lane % LANES * 16), &amax);
        }
        if (!p->finish.direct || p->finish.d_scales == 0) continue;
        CONSTANT const struct bsmi_hip_gemm_finish *f = &loaded_again()->finish;
        NO_UNROLL for (int32_t i = lane; i < BLOCKS; i += 64) {
            const int32_t row = first_row + part * DIM + i % DIM, column = first_column + i / DIM * 32;
            if (row >= tile->first_row && row < tile->end_row && column < p->n)
                store_block(f, p->group_starts != 0 ? 0 : tile->matrix, row, column,
                            (LDS const floats4 *)(piece + i % DIM * PITCH + i / DIM * 128));
        }
    }
    if (p->finish.direct && p->finish.amax != 0) raise_amax(p->finish.amax, amax);
}

#endif

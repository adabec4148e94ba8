/* B prepacked: halves of a step straight to registers, a step ahead; A as ever.
 *
 *     quarter      multiplies  reads                       loads
 *     1            A0 B0       A1                          B0 of the next step, second half of its A
 *     2            A0 B1
 *     3            A1 B1       A0 of the next step         B1 of the next step, first half of the step after it of A
 *     4            A1 B0
 *
 * Each step's B has registers of its own beside the next one's: the loop has two steps. */
#ifndef BSMI_GFX950_GEMM_PREPACKED_H
#define BSMI_GFX950_GEMM_PREPACKED_H

#include "gemm_fragments.h"

/* What the wave's columns lie in: 16 rows of B a part. */
struct gemm_packed_source {
    __amdgpu_buffer_rsrc_t codes, scales;
    int32_t row_bytes, scale_row_bytes, first_part, first_group;
    int32_t lane;
};

INLINE struct gemm_packed_source packed_source_of(const struct bsmi_hip_gemm_parameters *p,
                                                  const struct gemm_tile *tile, int32_t wave)
{
    struct gemm_packed_source s;
    const int64_t left = p->n - tile->column;
    s.codes = buffer_of(p->b.codes + tile->matrix * p->b.batch_bytes + tile->column / 16 * p->b.row_bytes,
                        ((left < COLUMNS ? left : COLUMNS) + 15) / 16 * p->b.row_bytes);
    s.scales = buffer_of(p->b.scales + tile->matrix * p->b.scale_batch_bytes
                             + tile->column / 32 * p->b.scale_row_bytes,
                         ((left < COLUMNS ? left : COLUMNS) + 31) / 32 * p->b.scale_row_bytes);
    s.row_bytes = (int32_t)p->b.row_bytes, s.scale_row_bytes = (int32_t)p->b.scale_row_bytes;
    s.first_part = wave % ALONG_N * COLUMN_PARTS, s.first_group = wave % ALONG_N * WAVE_COLUMNS / 32;
    s.lane = (int32_t)__builtin_amdgcn_workitem_id_x() % 64;
    return s;
}

INLINE words4 load_packed_16(const struct gemm_packed_source *s, int32_t offset, int32_t inside)
{
    return __builtin_bit_cast(words4,
                              __builtin_amdgcn_raw_buffer_load_b128(s->codes, s->lane * 16 + inside, offset, 0));
}

OVERLOADED void load_packed(words4 *f, const struct gemm_packed_source *s, int32_t offset, int32_t product)
{
    *f = load_packed_16(s, offset, product * 1024);
}
OVERLOADED void load_packed(words8 *f, const struct gemm_packed_source *s, int32_t offset, int32_t product)
{
    const words4 x = load_packed_16(s, offset, product * 2048), y = load_packed_16(s, offset, product * 2048 + 1024);
    *f = __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7);
}
OVERLOADED void load_packed(words6 *f, const struct gemm_packed_source *s, int32_t offset, int32_t product)
{
    const words4 x = load_packed_16(s, offset, product * 1536);
    const words2 y = __builtin_bit_cast(
        words2, __builtin_amdgcn_raw_buffer_load_b64(s->codes, s->lane * 8 + product * 1536 + 1024, offset, 0));
    *f = (words6){ x[0], x[1], x[2], x[3], y[0], y[1] };
}

/* Loads of a half, numbered as read_b's; instructions that they are. */
enum { PACKED_LOADS = B_SCALES + HALF_COLUMNS * PRODUCTS * (B_BITS == 4 ? 1 : 2), PACKED_NUMBERS = B_READS };

INLINE void load_b(const struct gemm_packed_source *s, int32_t place, int32_t half, int32_t i, struct b_half *b)
{
    const int32_t number = i - B_SCALES, part = number % HALF_COLUMNS, product = number / HALF_COLUMNS;
    if (i < B_SCALES) {
        const int32_t group = s->first_group + (half * WAVE_COLUMNS / 2 + i * 32) / 32;
        b->scales[i] = (int32_t)__builtin_amdgcn_raw_buffer_load_b32(
            s->scales, s->lane * 4, place < 0 ? OUTSIDE : group * s->scale_row_bytes + ((place * STEP) & ~255), 0);
    } else {
        const int32_t of_b = s->first_part + half * HALF_COLUMNS + part;
        load_packed(&b->part[part][product], s,
                    place < 0 ? OUTSIDE : of_b * s->row_bytes + place * (STEP * 2 * B_BITS), product);
    }
}

/* Loads between two waits. */
enum { FIRST_BETWEEN = PACKED_LOADS + FIRST_LOADS, SECOND_BETWEEN = PACKED_LOADS + SECOND_LOADS };

#endif

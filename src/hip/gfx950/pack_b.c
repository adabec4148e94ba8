/* Prepacked weights: B once in the order in which lanes multiply it (params/gemm.h). */
#include "../params/gemm.h"
#include "device.h"

/* The four bytes of a row from bit `first` on, of which the row has `left` bits. */
INLINE int32_t word_of(GLOBAL const unsigned char *row, int64_t byte, int64_t left)
{
    if (left <= 0) return 0;
    const int32_t word = *(GLOBAL const int32_t *)(row + byte);
    return left >= 32 ? word : word & (int32_t)((1u << left) - 1);
}

/* Byte `at` of a unit of 128 columns: the row, and the byte in it. */
struct place { uint32_t row, byte; };
INLINE struct place place_of(int32_t bits, uint32_t at)
{
    const uint32_t lane = at / 16 % 64;
    if (bits == 4) return (struct place){ lane % 16, lane / 16 * 16 + at % 16 };
    if (bits == 8) return (struct place){ lane % 16, at / 1024 * 64 + lane / 16 * 16 + at % 16 };
    if (at < 1024) return (struct place){ lane % 16, lane / 16 * 24 + at % 16 };
    const uint32_t behind = (at - 1024) / 8;
    return (struct place){ behind % 16, behind / 16 * 24 + 16 + at % 8 };
}

INLINE void pack_codes(const struct bsmi_hip_pack_b_parameters *p, int64_t matrix, int64_t first, int64_t step)
{
    const int64_t row_bytes = BSMI_HIP_PACKED_ROW_BYTES(p->k, p->bits), total = (p->rows + 15) / 16 * row_bytes;
    const uint32_t unit = 256 * (uint32_t)p->bits;
    for (int64_t at = first * 4; at < total; at += step * 4) {
        const uint32_t part = (uint32_t)(at / row_bytes), inside = (uint32_t)(at % row_bytes);
        const struct place place = place_of(p->bits, inside % unit);
        const int64_t row = (int64_t)part * 16 + place.row,
                      byte = (int64_t)(inside / unit) * (16 * p->bits) + place.byte;
        GLOBAL const unsigned char *from =
            (GLOBAL const unsigned char *)(p->from.codes + matrix * p->from.batch_bytes + row * p->from.row_bytes);
        *(GLOBAL int32_t *)(p->codes + matrix * p->batch_bytes + at) =
            row < p->rows ? word_of(from, byte, p->k * p->bits - byte * 8) : 0;
    }
}

/* Four scales of a lane: rows 16 apart, columns 4 apart. */
INLINE void pack_scales(const struct bsmi_hip_pack_b_parameters *p, int64_t matrix, int64_t first, int64_t step)
{
    const int64_t row_bytes = BSMI_HIP_PACKED_SCALE_BYTES(p->k), total = (p->rows + 31) / 32 * row_bytes,
                  columns = (p->k + 31) / 32;
    for (int64_t at = first * 4; at < total; at += step * 4) {
        const uint32_t group = (uint32_t)(at / row_bytes), inside = (uint32_t)(at % row_bytes);
        const int64_t column = inside / 256 * 8 + inside % 256 / 64;
        const uint32_t mask = (column < columns ? 0xffffu : 0) | (column + 4 < columns ? 0xffff0000u : 0);
        const uint32_t word = *(GLOBAL const uint32_t *)(p->from.scales + matrix * p->from.scale_batch_bytes
                                                         + group * p->from.scale_row_bytes + inside);
        *(GLOBAL uint32_t *)(p->scales + matrix * p->scale_batch_bytes + at) = word & mask;
    }
}

KERNEL(BSMI_PACK_B_THREADS, 1) void bsmi_pack_b_gfx950(const struct bsmi_hip_pack_b_parameters p)
{
    const int64_t first = (int64_t)__builtin_amdgcn_workgroup_id_x() * BSMI_PACK_B_THREADS
                          + __builtin_amdgcn_workitem_id_x(), step = (int64_t)p.workgroups * BSMI_PACK_B_THREADS;
    for (int64_t matrix = 0; matrix < p.matrices; matrix++) {
        pack_codes(&p, matrix, first, step);
        pack_scales(&p, matrix, first, step);
    }
}

/* Prepacked weights: B once in the order in which lanes multiply it (params/gemm.h), from any packing and any layout of
 * scales. */
#include "functions.h"
#include "hip/params/gemm.h"
#include "hip/params/kernels.h"
#include "numbers.h"

/* Byte `at` of a unit of 128 columns: the row, and the byte in it. */
struct place { uint32_t row, byte; };
static inline struct place place_of(int bits, uint32_t at)
{
    const uint32_t lane = at / 16 % 64;
    if (bits == 4) return (struct place){ lane % 16, lane / 16 * 16 + at % 16 };
    if (bits == 8) return (struct place){ lane % 16, at / 1024 * 64 + lane / 16 * 16 + at % 16 };
    if (at < 1024) return (struct place){ lane % 16, lane / 16 * 24 + at % 16 };
    const uint32_t behind = (at - 1024) / 8;
    return (struct place){ behind % 16, behind / 16 * 24 + 16 + at % 8 };
}

/* The four bytes from `byte` on of a row whose codes lie one behind another from the lowest bit on; behind K: zeros. */
static inline uint32_t word_of(const struct bsmi_device_matrix *m, const unsigned char *row, int64_t byte)
{
    const int64_t first = byte * 8;
    uint32_t word = 0;
#pragma unroll 1
    for (int64_t k = quotient(first, m->bits); k < m->columns && k * m->bits < first + 32; k++) {
        const uint32_t code = load_code(m, row, k);
        const int at = (int)(k * m->bits - first);
        word |= at < 0 ? code >> -at : code << at;
    }
    return word;
}

static inline void pack_codes(const struct bsmi_hip_pack_b_parameters *p, int64_t first, int64_t step)
{
    const struct bsmi_device_matrix *m = &p->source;
    const int64_t row_bytes = BSMI_HIP_PACKED_ROW_BYTES(m->columns, m->bits),
                  of_matrix = divided_up(m->rows, BSMI_HIP_PACKED_ROWS) * row_bytes;
    const uint32_t unit = 256 * (uint32_t)m->bits;
    for (int64_t at = first * 4; at < m->batch * of_matrix; at += step * 4) {
        const int64_t part = quotient(at, row_bytes), parts = quotient(of_matrix, row_bytes),
                      batch = quotient(part, parts);
        const uint32_t inside = (uint32_t)(at - part * row_bytes);
        const struct place place = place_of(m->bits, inside % unit);
        const int64_t row = (part - batch * parts) * BSMI_HIP_PACKED_ROWS + place.row,
                      byte = (int64_t)(inside / unit) * (16 * m->bits) + place.byte;
        *(uint32_t *)(void *)(p->codes + at) = row < m->rows ? word_of(m, row_of(m, batch, row), byte) : 0;
    }
}

/* Scales of 1 where B has none; those of no row and no column are 0. */
static inline void pack_scales(const struct bsmi_hip_pack_b_parameters *p, int64_t first, int64_t step)
{
    const struct bsmi_device_matrix *m = &p->source;
    const int64_t row_bytes = BSMI_HIP_PACKED_SCALE_BYTES(m->columns), groups = divided_up(m->rows, 32),
                  columns = divided_up(m->columns, 32);
    for (int64_t at = first; at < m->batch * groups * row_bytes; at += step) {
        const int64_t group = quotient(at, row_bytes), batch = quotient(group, groups);
        const uint32_t inside = (uint32_t)(at - group * row_bytes), lane = inside / 4 % 64;
        const int64_t row = (group - batch * groups) * 32 + lane % 16 + inside % 2 * 16,
                      column = inside / 256 * 8 + lane / 16 + inside / 2 % 2 * 4;
        uint32_t scale = 0;
        if (row < m->rows && column < columns) scale = m->block == 0 ? 127 : load_scale(m, batch, row, column);
        p->scales[at] = (unsigned char)scale;
    }
}

KERNEL(BSMI_HIP_THREADS) bsmi_pack_b(struct bsmi_hip_pack_b_parameters p, uint32_t groups)
{
    const int64_t first = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number(),
                  step = (int64_t)groups * BSMI_HIP_THREADS;
    pack_codes(&p, first, step);
    pack_scales(&p, first, step);
}

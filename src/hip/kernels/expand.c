/* Codes of sparse operands with their zeros: a thread an octet. */
#include "hip/params/kernels.h"
#include "numbers.h"

/* The four bits of a group. */
static inline uint32_t places_of(const struct bsmi_expand_parameters *p, int64_t batch, int64_t row, int64_t group)
{
    return p->metadata[batch * p->metadata_batch_bytes + row * p->metadata_row_bytes + (group >> 1)]
           >> 4 * (group & 1) & 15;
}

KERNEL(BSMI_HIP_THREADS) bsmi_expand(struct bsmi_expand_parameters p, uint32_t groups)
{
    const int64_t rows = p.to.rows, octets = divided_up(p.to.columns, 8);
    for (int64_t i = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number(); i < p.to.batch * rows * octets;
         i += (int64_t)groups * BSMI_HIP_THREADS) {
        const int64_t line = quotient(i, octets), number = i - line * octets, batch = quotient(line, rows),
                      row = line - batch * rows, count = smaller(8, p.to.columns - number * 8);
        const unsigned char *from = row_of(&p.stored, batch, row);
        unsigned char *to = p.to.data + batch * p.to.batch_bytes + row * p.to.row_bytes;
        uint64_t eight = 0, other = 0;    /* of 16 bits: the first four, and the others */
#pragma unroll 1
        for (int64_t j = 0; 2 * j < count; j++) {
            const int64_t group = p.unit == 2 ? number : number * 2 + (j >> 1);
            const int second = (int)(p.unit == 2 ? j >> 1 : j & 1);
            const uint64_t code = load_code(&p.stored, from, number * 4 + j),
                           place = places_of(&p, batch, row, group) >> 2 * second & 3;
            if (p.unit == 2) eight |= code << 8 * (2 * place + (j & 1));
            else if (p.to.bits <= 8) eight |= code << 8 * (place + 4 * (j >> 1));
            else if (j < 2) eight |= code << 16 * place;
            else other |= code << 16 * place;
        }
        if (p.to.bits <= 8) {
            store_octet(&p.to, to, number, eight, (int)count);
            continue;
        }
        ((uint64_t *)(void *)to)[number * 2] = eight;
        if (count > 4) ((uint64_t *)(void *)to)[number * 2 + 1] = other;
    }
}

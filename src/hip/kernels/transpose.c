/* Codes of MN-major operands, K-major: a thread an octet, neighbouring threads neighbouring rows, which lie beside one
 * another in what is stored. */
#include "hip/params/kernels.h"
#include "numbers.h"

KERNEL(BSMI_HIP_THREADS) bsmi_transpose(struct bsmi_transpose_parameters p, uint32_t groups)
{
    const int64_t rows = p.to.rows, octets = divided_up(p.to.columns, 8);
    for (int64_t i = (int64_t)group_number() * BSMI_HIP_THREADS + thread_number(); i < p.to.batch * octets * rows;
         i += (int64_t)groups * BSMI_HIP_THREADS) {
        const int64_t band = quotient(i, rows), row = i - band * rows, batch = quotient(band, octets),
                      number = band - batch * octets, count = smaller(8, p.to.columns - number * 8);
        unsigned char *to = p.to.data + batch * p.to.batch_bytes + row * p.to.row_bytes;
        uint64_t eight = 0;
#pragma unroll 1
        for (int64_t j = 0; j < count; j++) {
            const uint32_t code = load_code(&p.stored, row_of(&p.stored, batch, number * 8 + j), row);
            if (p.to.bits <= 8) eight |= (uint64_t)code << 8 * j;
            else ((uint16_t *)(void *)to)[number * 8 + j] = (uint16_t)code;
        }
        if (p.to.bits <= 8) store_octet(&p.to, to, number, eight, (int)count);
    }
}

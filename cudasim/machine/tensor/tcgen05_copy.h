/* What tcgen05.cp moves where (PTX ISA 9.7.16.9.2): rows of a K-major matrix in shared memory to lanes of tensor
 * memory, in chunks of 16 bytes, which are four columns.
 *
 * Packed elements of 4 or 6 bits become a byte each, an element of 4 bits in bits 5..2, one of 6 bits in bits 5..0.
 * The figures of the manual are in no source at hand; the lanes, the bits and their order are those that public tests
 * of TVM compare with a B200. */
#ifndef CUDASIM_MACHINE_TENSOR_TCGEN05_COPY_H
#define CUDASIM_MACHINE_TENSOR_TCGEN05_COPY_H

#include <stdint.h>

enum copy_shape { COPY_128X256B, COPY_128X128B, COPY_64X128B_02_13, COPY_64X128B_01_23, COPY_32X128B, COPY_4X256B,
                  COPY_SHAPES };
enum copy_format { COPY_PLAIN, COPY_B4X16_P64, COPY_B6X16_P32, COPY_FORMATS };
enum { COPY_CHUNK = 16, COPY_COLUMNS_OF_CHUNK = 4, COPY_MOST_LANES = 4 };

struct copy_shape_info {
    const char *name;
    uint32_t rows, chunks;
};
extern const struct copy_shape_info copy_shapes[COPY_SHAPES];

/* The lanes that a row goes to, counted from the one in the address; their number. */
uint32_t copy_lanes(enum copy_shape shape, uint32_t row, uint32_t lanes[COPY_MOST_LANES]);
/* Bytes of a chunk that hold elements; the rest is padding. */
uint32_t copy_chunk_bytes(enum copy_format format);
/* From those bytes to the 16 that tensor memory gets. */
void copy_expand(enum copy_format format, const uint8_t *chunk, uint8_t expanded[COPY_CHUNK]);

#endif

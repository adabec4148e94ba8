/* Matrices of the tensor cores in shared memory: what a 64-bit descriptor says, and where an element lies.
 *
 * The matrix is read in chunks of 16 bytes along its major dimension: K (rows of A, columns of B are contiguous in K)
 * or MN (the transposed ones).  The layouts are the canonical ones of PTX ISA 9.7.15.5.1.2 "Strides"; the swizzles
 * exchange chunks by bits of the absolute shared address.  wgmma and tcgen05 share the layouts and write them in
 * different descriptors: a function decodes each. */
#ifndef CUDASIM_MACHINE_MMA_MATRIX_DESCRIPTOR_H
#define CUDASIM_MACHINE_MMA_MATRIX_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MATRIX_ATOMS_32: 128 bytes in which 32 bytes, not 16, stay together (tcgen05). */
enum matrix_swizzle { MATRIX_PLAIN, MATRIX_SWIZZLE_32, MATRIX_SWIZZLE_64, MATRIX_SWIZZLE_128, MATRIX_ATOMS_32 };

enum { CHUNK_BYTES = 16, MATRIX_ADDRESS_MASK = 0x3ffff };

struct matrix_layout {
    uint32_t start, leading, stride;      /* bytes; start: offset in the CTA's shared memory */
    uint32_t base_offset;                 /* in units of 128 bytes: where the swizzle's pattern begins */
    enum matrix_swizzle swizzle;
    bool mn_major;
};

/* wgmma's descriptor (9.7.15.5.1.2.2).  False: illegal, and why. */
bool matrix_of_wgmma(uint64_t descriptor, bool mn_major, struct matrix_layout *layout, char *sentence, size_t size);

/* tcgen05's descriptor (9.7.16.4.1) of a matrix whose elements are stored in containers of `bits` bits.  False:
 * illegal, and why. */
bool matrix_of_tcgen05(uint64_t descriptor, bool mn_major, uint32_t bits, uint32_t sm, struct matrix_layout *layout,
                       char *sentence, size_t size);

/* Bytes of the major dimension that lie together before a swizzled pattern repeats; 16 without a swizzle. */
uint32_t matrix_span(const struct matrix_layout *layout);

/* The shared offset of a chunk: `chunk` counts 16 bytes along the major dimension, `line` counts along the other. */
uint32_t matrix_chunk(const struct matrix_layout *layout, uint32_t chunk, uint32_t line);

#endif

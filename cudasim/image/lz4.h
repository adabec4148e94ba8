/* Blocks of LZ4, unpacked. */
#ifndef CUDASIM_IMAGE_LZ4_H
#define CUDASIM_IMAGE_LZ4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the block is one that unpacks to exactly so many bytes; those are written, and none beside them. */
bool lz4_unpack(const uint8_t *from, size_t from_bytes, uint8_t *to, size_t to_bytes);

#endif

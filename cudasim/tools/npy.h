/* Files of numpy arrays (numpy.lib.format, versions 1.0 to 3.0): C order, little endian, numbers and plain bytes. */
#ifndef CUDASIM_TOOLS_NPY_H
#define CUDASIM_TOOLS_NPY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { NPY_RANK = 8 };

struct npy {
    char kind; /* b i u f c V */
    uint32_t item_bytes;
    uint32_t rank;
    uint64_t shape[NPY_RANK];
    const uint8_t *data; /* in the bytes that were read */
    uint64_t data_bytes;
};

/* Returns NULL, or what is wrong with the file. */
const char *npy_read(struct npy *npy, const void *bytes, size_t count);
/* The header of version 1.0 for elements "<f4" and the like; 0: it cannot be written. */
int npy_write_header(FILE *file, const char *descr, uint32_t rank, const uint64_t *shape);

#endif

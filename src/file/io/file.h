/* Files as a whole. */
#ifndef BSMI_FILE_H
#define BSMI_FILE_H

#include "blockscale/status.h"

struct bsmi_piece { const void *data; size_t bytes; };

/* Writes the pieces, one after the other, under a temporary name beside path and renames: afterwards path holds all of it,
 * or what it held before.  A link stays a link, also one that points
 * to no file yet, and a file keeps its mode; a device or a pipe is written directly. */
bsm_status bsmi_write_file(const char *path, const struct bsmi_piece *pieces, int count);

/* Opens a regular file for reading.  *descriptor is the caller's to close. */
bsm_status bsmi_open_file(const char *path, int *descriptor, uint64_t *bytes);

/* Reads exactly `bytes` bytes from where the last read ended. */
bsm_status bsmi_read_exactly(int descriptor, const char *path, void *into, size_t bytes);

#endif

/* Files as a whole, read exactly. */
#ifndef BSMI_FILE_H
#define BSMI_FILE_H

#include "blockscale/status.h"

/* "PATH: WHAT: the system's words for errno", as BSM_EIO. */
bsm_status bsmi_fail_with_errno(const char *path, const char *what);

/* One call moves at most this much: Linux stops at 0x7ffff000 bytes, other systems refuse more than INT_MAX. */
enum { BSMI_MOST_AT_ONCE = 1 << 30 };

/* Opens a regular file for reading.  *descriptor is the caller's to close. */
bsm_status bsmi_open_file(const char *path, int *descriptor, uint64_t *bytes);

/* Reads exactly `bytes` bytes from where the last read ended. */
bsm_status bsmi_read_exactly(int descriptor, const char *path, void *into, size_t bytes);

#endif

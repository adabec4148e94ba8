/* Regions of memory, and whether two of them share a byte. */
#ifndef BSMI_MEET_H
#define BSMI_MEET_H

#include <stdbool.h>
#include <stdint.h>

/* batch x rows stretches of row_bytes, batch_stride and row_stride bytes apart; name as the caller knows it:
 * "a->scales". */
struct bsmi_region { const char *name; uintptr_t start; int64_t batch, batch_stride, rows, row_stride, row_bytes; };

/* Exact.  Takes no longer for more rows, nor for more matrices if both regions have the same strides. */
bool bsmi_regions_meet(const struct bsmi_region *x, const struct bsmi_region *y);

#endif

/* The bytes that arguments of a function cover, and whether two of them meet: what is written must not overlap anything
 * else. */
#ifndef BSMI_REGIONS_H
#define BSMI_REGIONS_H

#include "matrix.h"
#include "meet.h"
#include "reals.h"

enum { BSMI_MOST_REGIONS = 20 };
struct bsmi_regions { struct bsmi_region all[BSMI_MOST_REGIONS]; int count; };

/* Empty ones and NULL are not added. */
void bsmi_regions_add(struct bsmi_regions *list, struct bsmi_region region);
void bsmi_regions_add_bytes(struct bsmi_regions *list, const char *name, const void *start, int64_t bytes);
/* Data and scales; the tensor scale is for the caller to add: some read it, some write it. */
void bsmi_regions_add_matrix(struct bsmi_regions *list, const char *data, const char *scales,
                             const struct bsmi_matrix *m);
/* Of a sparse matrix. */
void bsmi_regions_add_metadata(struct bsmi_regions *list, const char *metadata, const struct bsmi_matrix *m);
/* Views with no stride of 1 or -1 count as everything from their first byte to their last. */
void bsmi_regions_add_reals(struct bsmi_regions *list, const char *data, const struct bsmi_reals *r);

/* count numbers of `size` bytes; what an int64_t does not count is more than any memory, and cut. */
int64_t bsmi_region_bytes(int64_t count, int64_t size);

/* Fails, naming both, where something written meets something read or another thing written. */
bsm_status bsmi_regions_check(const struct bsmi_regions *written, const struct bsmi_regions *read);

#endif

/* Random tensors and boxes in them, for the families of tensor copies and tensor maps. */
#ifndef CUDASIM_CALIBRATE_FAMILIES_BOX_H
#define CUDASIM_CALIBRATE_FAMILIES_BOX_H

#include "calibrate/forms/calibrate.h"

#include <stdio.h>

enum { BOX_SHARED_BYTES = 8192, BOX_TENSOR_BYTES = 65536, BOX_TYPES = 13 };

/* In the order of CUtensorMapDataType. */
struct box_type { const char *name; uint32_t bytes; bool is_float; };
extern const struct box_type box_types[BOX_TYPES];
extern const char *const box_swizzles[4];

struct box_draw { uint64_t state; };

struct box {
    struct calibration_map map;
    int32_t start[5];
    uint32_t rows, row_bytes, pitch;      /* in shared memory */
    uint64_t tensor_bytes;
};

/* A tensor of at most BOX_TENSOR_BYTES at offset 0 and a box of at most half of BOX_SHARED_BYTES; loads begin outside
 * of the tensor too. */
struct box box_random(struct box_draw *d, uint32_t type, uint32_t swizzle, uint32_t rank, bool stores);
/* {x, y, ...} */
void box_put_coordinates(FILE *out, const struct box *b);

#endif

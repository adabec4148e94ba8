/* The GEMM instances by numbers: 4 tiles of scaled products, for every pair of elements a kernel of its own, 3 of rows
 * of bf16, and 2 of scaled products with prepacked weights, for some pairs.  What a tile is stands in params/gemm.h. */
#ifndef BSMI_HIP_INSTANCES_H
#define BSMI_HIP_INSTANCES_H

#include "blockscale/format.h"
#include "hip/params/gemm.h"

struct bsmi_hip_instance {
    const char *name;                     /* "hip_mfma_256x256" */
    const char *tile;                     /* "256x256" */
    bool scaled;                          /* multiplies codes with e8m0 scales of blocks of 32; else rows of bf16 */
    bool prepacked;                       /* reads B from prepacked weights alone */
    int rows, columns, threads;
    int dim;                              /* 16 or 32: which layout of scales it reads */
};

enum { BSMI_HIP_ELEMENTS = BSMI_HIP_E2M1 + 1, BSMI_HIP_PAIRS = BSMI_HIP_ELEMENTS * BSMI_HIP_ELEMENTS };
enum { BSMI_HIP_MOST_INSTANCES = 12 };
extern const struct bsmi_hip_instance bsmi_hip_instances[];
extern const int bsmi_hip_instance_count;

/* The element as instructions count it, -1 for those that they do not have. */
int bsmi_hip_element_of(bsm_element element);

/* The code object and the function of an instance for a pair of elements: a * BSMI_HIP_ELEMENTS + b (0 for bf16). */
enum { BSMI_HIP_NAME_BYTES = 64 };
void bsmi_hip_instance_names(int instance, int pair, char *file, char *function);

#endif

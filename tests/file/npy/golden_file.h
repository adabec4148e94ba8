/* Files that NumPy made, for the tests of the .npy reader. */
#ifndef BSM_GOLDEN_FILE_H
#define BSM_GOLDEN_FILE_H

#include "blockscale/npy.h"

struct golden {
    const char *name;
    bsm_npy_type type;
    int rank;
    int64_t shape[BSM_NPY_MAX_RANK];
    bool fortran_order;
    int version;
    size_t bytes;
    const char *file;                     /* `bytes` of it; byte i of the data is 7 i + 3 */
};

#include "golden.h"

enum { GOLDEN_COUNT = sizeof goldens / sizeof goldens[0] };

#endif

/* The kernels that this build carries: fatbins with cubins and PTX, made from the table in CMakeLists.txt. */
#ifndef BSMI_EMBEDDED_H
#define BSMI_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>

struct bsmi_cuda_fatbin {
    const char *file;                     /* the source's name in src/cuda, without its suffix */
    int capability;                       /* that it was built for: 90 is 9.0 */
    bool this_one_alone;                  /* sm_90a: runs on no other */
    const unsigned char *start, *end;
};

/* Ends with a row whose file is NULL. */
extern const struct bsmi_cuda_fatbin bsmi_cuda_fatbins[];
/* Why there are none ("not built: nvcc was not found"); empty when there are. */
extern const char *const bsmi_cuda_not_built;
extern const char *const bsmi_cuda_compiler;  /* "13.0" */

#endif

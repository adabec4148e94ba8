/* The kernels that this build carries: fatbins with cubins and PTX, made from the table in CMakeLists.txt. */
#ifndef BSMI_EMBEDDED_H
#define BSMI_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>

/* Which GPUs run a file that was built for one: sm_90; sm_100f: that major number alone, from this minor one on;
 * sm_90a. */
enum bsmi_cuda_runs_on { BSMI_THIS_AND_LATER, BSMI_THIS_FAMILY, BSMI_THIS_ALONE };

struct bsmi_cuda_fatbin {
    const char *file;                     /* the source's name in src/cuda, without its suffix */
    int capability;                       /* that it was built for: 90 is 9.0 */
    enum bsmi_cuda_runs_on runs_on;
    const unsigned char *start, *end;
};

/* Whether a GPU of this compute capability (90: 9.0) runs the file. */
static inline bool bsmi_cuda_runs_on(const struct bsmi_cuda_fatbin *fatbin, int capability)
{
    switch (fatbin->runs_on) {
    case BSMI_THIS_ALONE: return capability == fatbin->capability;
    case BSMI_THIS_FAMILY: return capability >= fatbin->capability && capability / 10 == fatbin->capability / 10;
    default: return capability >= fatbin->capability;
    }
}

/* Ends with a row whose file is NULL. */
extern const struct bsmi_cuda_fatbin bsmi_cuda_fatbins[];
/* Why there are none ("not built: nvcc was not found"); empty when there are. */
extern const char *const bsmi_cuda_not_built;
extern const char *const bsmi_cuda_compiler;  /* "13.0" */

#endif

/* The kernels that this build carries: fatbins with cubins and PTX, made from the table in CMakeLists.txt. */
#ifndef BSMI_EMBEDDED_H
#define BSMI_EMBEDDED_H

#include <stddef.h>

struct bsmi_cuda_fatbin { const char *file; const unsigned char *start, *end; };

/* Ends with a row whose file is NULL; file is the source's name in src/cuda, without its suffix. */
extern const struct bsmi_cuda_fatbin bsmi_cuda_fatbins[];
/* Why there are none ("not built: nvcc was not found"); empty when there are. */
extern const char *const bsmi_cuda_not_built;

#endif

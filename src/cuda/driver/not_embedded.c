/* For builds without CMake, which have nobody to make kernels: the table of embedded.h, empty.  CMake builds take the
 * table that it makes from embedded.c.in instead of this file. */
#include "embedded.h"

const struct bsmi_cuda_fatbin bsmi_cuda_fatbins[] = { { NULL, 0, BSMI_THIS_AND_LATER, NULL, NULL } };
const char *const bsmi_cuda_not_built = "not built: kernels are made by CMake";
const char *const bsmi_cuda_compiler = "none";

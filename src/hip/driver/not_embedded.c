/* For builds without CMake, which have nobody to make kernels: the table of embedded.h, empty.  CMake builds take the
 * file made from embedded.c.in instead. */
#include "hip/driver/embedded.h"

#include <stddef.h>

const struct bsmi_hip_code_object bsmi_hip_code_objects[] = { { NULL, NULL, NULL } };
const char *const bsmi_hip_not_built = "not built: this library was compiled without CMake";
const char *const bsmi_hip_compiler = "";

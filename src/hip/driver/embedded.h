/* The kernels that this build carries: code objects for gfx950, made from the lists in CMakeLists.txt. */
#ifndef BSMI_HIP_EMBEDDED_H
#define BSMI_HIP_EMBEDDED_H

struct bsmi_hip_code_object {
    const char *file;                     /* "sums": kernels/sums.c */
    const unsigned char *start, *end;
};

/* Ends with a row whose file is NULL. */
extern const struct bsmi_hip_code_object bsmi_hip_code_objects[];
/* Why there are none ("not built: no clang for gfx950 was found"); empty when there are. */
extern const char *const bsmi_hip_not_built;
extern const char *const bsmi_hip_compiler;   /* "clang 22.1.8" */

#endif

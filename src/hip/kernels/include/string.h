/* What kernels use of <string.h>: moving the bits of a number. */
#ifndef BSMI_HIP_STRING_H
#define BSMI_HIP_STRING_H

#define memcpy(to, from, bytes) __builtin_memcpy(to, from, bytes)

#endif

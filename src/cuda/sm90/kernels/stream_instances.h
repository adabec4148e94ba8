/* The instances of the decoding kernels for codes of 6 bits as a stream: columns as in gemm_instances.h. */
#ifndef BSMI_SM90_STREAM_INSTANCES_H
#define BSMI_SM90_STREAM_INSTANCES_H

enum { BSMI_STREAM_BOX_BYTES = 48 };      /* of a row: 64 codes */

#define BSMI_SM90_STREAM(X)                  \
    X(64x64_1x1,    64, 1, 4,  7,  9) \
    X(128x64_1x1,  128, 1, 3,  6,  7) \
    X(256x64_1x1,  256, 1, 3,  4,  5)

#endif

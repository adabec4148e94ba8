/* Kernels of blocks other than 256 rows of B and 128 bytes along K, as the Gluon tutorial tests its steps: those whose
 * scales are not packed with N from 32 and K from 32 to 512, the others with whole blocks of 128x4.
 *
 * Not every format with every block: every two of format, N and K are together once.  N decides how much of B, of its
 * scales and of D there is; K the swizzle, the panels and the groups of scales; the format the instruction and the
 * bytes of a cell.  What depends on all three, how many stages fit, is a number that the host computes again. */
#pragma once

#define LADDER_REGISTER_KERNELS(step) \
    LADDER_KERNEL(step, mxfp8, 32, 32) \
    LADDER_KERNEL(step, mxfp8, 64, 32) \
    LADDER_KERNEL(step, mxfp8, 128, 32) \
    LADDER_KERNEL(step, mxfp8, 256, 32) \
    LADDER_KERNEL(step, nvfp4, 32, 64) \
    LADDER_KERNEL(step, mxfp4, 64, 64) \
    LADDER_KERNEL(step, nvfp4, 128, 64) \
    LADDER_KERNEL(step, mxfp8, 256, 64) \
    LADDER_KERNEL(step, mxfp4, 32, 128) \
    LADDER_KERNEL(step, mixed, 64, 128) \
    LADDER_KERNEL(step, mixed_a, 128, 128) \
    LADDER_KERNEL(step, nvfp4, 256, 128) \
    LADDER_KERNEL(step, mxfp8, 32, 128) \
    LADDER_KERNEL(step, mixed_a, 32, 256) \
    LADDER_KERNEL(step, nvfp4, 64, 256) \
    LADDER_KERNEL(step, mxfp4, 128, 256) \
    LADDER_KERNEL(step, mixed, 256, 256) \
    LADDER_KERNEL(step, mxfp8, 64, 256) \
    LADDER_KERNEL(step, mixed, 32, 512) \
    LADDER_KERNEL(step, mixed_a, 64, 512) \
    LADDER_KERNEL(step, mxfp8, 128, 512) \
    LADDER_KERNEL(step, mxfp4, 256, 512) \
    LADDER_KERNEL(step, nvfp4, 64, 512) \
    LADDER_KERNEL(step, mixed, 128, 128) \
    LADDER_KERNEL(step, mixed_a, 256, 128)

/* Of the default blocks, 256x128 or 256x256, come the pairs that are missing here. */
#define LADDER_KERNELS(step) \
    LADDER_KERNEL(step, mxfp8, 128, 128) \
    LADDER_KERNEL(step, mixed, 128, 128) \
    LADDER_KERNEL(step, mixed_a, 128, 256) \
    LADDER_KERNEL(step, mxfp4, 256, 128) \
    LADDER_KERNEL(step, nvfp4, 128, 128) \
    LADDER_KERNEL(step, mxfp8, 256, 256) \
    LADDER_KERNEL(step, mixed, 256, 256) \
    LADDER_KERNEL(step, mxfp4, 128, 256) \
    LADDER_KERNEL(step, nvfp4, 128, 512) \
    LADDER_KERNEL(step, mxfp4, 256, 512)

/* Of these step 5 has no two stages. */
#define LADDER_ONE_STAGE_KERNELS(step) \
    LADDER_KERNELS(step) \
    LADDER_KERNEL(step, mxfp8, 256, 512) \
    LADDER_KERNEL(step, mixed, 128, 512) \
    LADDER_KERNEL(step, mixed_a, 128, 512)

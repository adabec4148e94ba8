/* What is known of a code object and its kernels. */
#ifndef GFXSIM_IMAGE_KERNEL_H
#define GFXSIM_IMAGE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

enum { MOST_KERNEL_NAME = 1024, MOST_ARGUMENTS = 256 };

enum argument_kind { ARGUMENT_VALUE, ARGUMENT_HIDDEN_ZERO, ARGUMENT_BLOCK_COUNT_X, ARGUMENT_BLOCK_COUNT_Y,
                     ARGUMENT_BLOCK_COUNT_Z, ARGUMENT_GROUP_SIZE_X, ARGUMENT_GROUP_SIZE_Y, ARGUMENT_GROUP_SIZE_Z,
                     ARGUMENT_REMAINDER, ARGUMENT_GRID_DIMS, ARGUMENT_OFFSET_ZERO };
struct argument { uint32_t offset, bytes; enum argument_kind kind; };

struct kernel {
    char *name;                           /* without ".kd" */
    uint64_t entry;                       /* offset in the image */
    uint32_t lds_bytes, private_bytes, kernarg_bytes;
    uint32_t rsrc1, rsrc2, rsrc3;
    uint16_t properties, preload;
    uint32_t most_threads;                /* .max_flat_workgroup_size; 0: not said */
    uint32_t vgprs, agprs;                /* that a wave has, by the descriptor */
    struct argument *argument;            /* by the metadata */
    uint32_t arguments;
};

struct code_object {
    uint8_t *image;                       /* segments as loaded */
    uint64_t bytes;
    uint64_t text, text_bytes;            /* the executable segment in it */
    struct kernel *kernel;
    uint32_t kernels;
};

#endif

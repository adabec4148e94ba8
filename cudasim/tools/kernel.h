/* A kernel with its arguments, as `cudasim run` and `cudasim mutate` take them from the command line. */
#ifndef CUDASIM_TOOLS_KERNEL_H
#define CUDASIM_TOOLS_KERNEL_H

#include "machine/core/machine.h"
#include "machine/mma/tensor_core.h"
#include "tools/command.h"

struct kernel_settings {
    const char *file, *entry, *device, *schedule, *tensor_core, *reports, *rules;
    bool stops; /* every rule stops unless asked for otherwise */
    struct extent grid, block, cluster;
    struct text_list memory, arguments, checks;
    uint64_t shared, seed, schedules, threads, sms, steps, launches;
};

/* The rows that read them: `shared` of a verb whose settings begin with a struct kernel_settings. */
extern const struct option kernel_options[];

#define KERNEL_ARGUMENTS \
    "Each --arg is an argument of the kernel, in order:\n" \
    "  in:FILE.npy               pointer to the array's bytes\n" \
    "  inout:FILE.npy:OUT.npy    the same; what the kernel leaves is written to OUT.npy\n" \
    "  out:FILE.npy:TYPE:SHAPE   pointer to an array of 0xff bytes, written to FILE.npy; SHAPE as 128x64, TYPE one " \
    "of\n" \
    "                            f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bf16 (as u2) e4m3 e5m2 (as u1)\n" \
    "  zero:BYTES                pointer to zeros that nobody reads back\n" \
    "  i32:5 u64:0x10 f32:1.5    a number of that type\n" \
    "  hex:00ff12                these bytes, for a structure passed by value\n" \
    "  tensormap:ARG:TYPE:SHAPE:BOX[:SWIZZLE]   a tensor map over the pointer that is argument number ARG (from 1), " \
    "or over\n" \
    "                            M1, M2, ...: what the first, the second --memory has; SHAPE and BOX as numpy writes " \
    "them,\n" \
    "                            SWIZZLE none, 32B, 64B, 128B; by value, or in memory where the parameter is a " \
    "pointer\n"

enum argument_kind { ARGUMENT_BUFFER, ARGUMENT_VALUE, ARGUMENT_TENSOR_MAP };

struct argument {
    enum argument_kind kind;
    const char *text; /* as given */
    uint8_t *initial; /* the buffer's bytes when the kernel begins, or the value */
    uint64_t bytes;
    uint64_t address;   /* of a buffer, while the machine is open */
    const char *output; /* NULL: not written */
    char descr[8];
    uint32_t rank;
    uint64_t shape[8];
    /* a tensor map */
    uint32_t over; /* index of the buffer in kernel.argument */
    uint32_t type, swizzle, box[8];
};

struct kernel {
    const struct kernel_settings *settings;
    struct module *module;
    const struct function *function;
    const struct device_limits *device;
    struct argument argument[2 * LIST_MOST]; /* those of --memory, then the kernel's own */
    uint32_t memories, arguments;            /* arguments: all of them */
    struct machine_options options;
    struct rule_book rule_book; /* what was reported and went on, over all runs */
    /* between kernel_start and kernel_end */
    struct machine machine;
    struct image image;
    uint8_t *parameters;
    struct launch launch;
};

/* Reads module and arguments and checks all that the driver would.  EXIT_DONE, or EXIT_BAD_INPUT after saying why; call
 * kernel_close in both cases. */
int kernel_open(struct kernel *kernel, const struct kernel_settings *settings);
void kernel_close(struct kernel *kernel);

/* A fresh machine, with the arguments' initial bytes in its memory, always at the same addresses. */
int kernel_start(struct kernel *kernel);
void kernel_end(struct kernel *kernel);
/* As machine_run, so many launches as --launches says. */
bool kernel_run(struct kernel *kernel, struct report *report);
/* The bytes of a buffer now. */
const uint8_t *kernel_bytes(const struct kernel *kernel, const struct argument *argument);
/* Writes all outputs: all complete, or none. */
int kernel_write_outputs(const struct kernel *kernel);

/* argument.c */
int argument_read(struct argument *argument, const char *text, const struct kernel *kernel);

#endif

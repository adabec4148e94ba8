/* The device that the ladder's kernels run on, through libcuda (or what BLOCKSCALE_LIBCUDA names). */
#ifndef LADDER_DEVICE_H
#define LADDER_DEVICE_H

#include "cuda/driver/driver.h"
#include "ladder.h"
#include "problem.h"

struct device {
    const struct bsmi_driver *cu;
    char name[128];
    bool simulated;
    int processors;
    const char *folder;
    CUmodule modules[LADDER_KERNELS]; /* those that were asked for */
};

/* Opens the first device; its kernels are those of step1.fatbin (or .ptx), ... of the folder.  Ends the program, with
 * a sentence, if it cannot. */
void device_open(struct device *device, const char *kernels);

/* The kernel of a step for this format and these blocks, ready to be launched; NULL if the step has none. */
CUfunction device_kernel(struct device *device, int step, const struct problem *problem);

/* A problem on the device, ready for any step. */
enum { LINEAR, TILES, PACKED };
struct loaded {
    struct ladder_parameters parameters;
    const struct problem *problem;
    int64_t d_pitch;
    CUdeviceptr a, b, scales[2][3];       /* scales of A and of B: LINEAR, TILES, PACKED */
    CUdeviceptr memory[9];
    int allocations;
};
void device_load(const struct device *device, const struct problem *problem, struct loaded *loaded);
void device_unload(const struct device *device, struct loaded *loaded);

/* Puts one launch of the kernel of a step, 1 to LADDER_KERNELS, into the default stream; device_wait ends the program
 * if anything went wrong. */
void device_launch(const struct device *device, struct loaded *loaded, int step, CUfunction kernel);
void device_wait(const struct device *device, const char *what);

/* D, d_pitch floats a row (of fp16 D its values); the caller frees it.  Before a launch: what device_clear left there,
 * NaN. */
float *device_result(const struct device *device, const struct loaded *loaded);
void device_clear(const struct device *device, const struct loaded *loaded);

#endif

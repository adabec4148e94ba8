/* What tests ask of the driver themselves: streams, graphs, memory, and the kernels of check.cu. */
#ifndef TESTS_CUDA_CALLS_H
#define TESTS_CUDA_CALLS_H

#include "test.h"

struct calls {
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuDevicePrimaryCtxRelease)(int device);
    int (*cuCtxPushCurrent)(void *context);
    int (*cuCtxPopCurrent)(void **context);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamDestroy)(void *stream);
    int (*cuStreamSynchronize)(void *stream);
    int (*cuStreamBeginCapture)(void *stream, int mode);
    int (*cuStreamEndCapture)(void *stream, void **graph);
    int (*cuGraphInstantiate)(void **exec, void *graph, unsigned long long flags);
    int (*cuGraphLaunch)(void *exec, void *stream);
    int (*cuGraphExecDestroy)(void *exec);
    int (*cuGraphDestroy)(void *graph);
    int (*cuMemsetD8Async)(uint64_t to, unsigned char value, size_t bytes, void *stream);
    int (*cuMemcpyDtoDAsync)(uint64_t to, uint64_t from, size_t bytes, void *stream);
    int (*cuModuleLoad)(void **module, const char *path);
    int (*cuModuleUnload)(void *module);
    int (*cuModuleGetFunction)(void **function, void *module, const char *name);
    int (*cuLaunchKernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **parameters, void **extra);
    void *primary, *module, *fill, *differences, *products;
};

/* The first device's primary context is current afterwards.  kernels: check.cu's too.  False: the test has failed. */
bool calls_open(struct test *t, struct calls *calls, bool kernels);
void calls_close(struct calls *calls);

/* A kernel of check.cu on the whole GPU, into the stream; true if it was taken. */
bool calls_launch(const struct calls *calls, void *function, void *stream, void **parameters);

#endif

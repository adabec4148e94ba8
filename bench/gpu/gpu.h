/* The GPU that is measured: its stream, device memory for operands, cuBLAS if there is one, and what it says of its clocks.
 * Whatever fails ends the program with a sentence: a table of half a run is worth nothing. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "blockscale.h"
#include "cuda/driver/driver.h"

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

/* Functions of libcuda that the library itself has no use for. */
#define GPU_FUNCTIONS(X)                                                                                   \
    X(cuStreamCreate,        "cuStreamCreate",             (CUstream *stream, unsigned flags))              \
    X(cuStreamBeginCapture,  "cuStreamBeginCapture_v2",    (CUstream stream, int mode))                     \
    X(cuStreamEndCapture,    "cuStreamEndCapture",         (CUstream stream, CUgraph *graph))               \
    X(cuGraphInstantiate,    "cuGraphInstantiateWithFlags", (CUgraphExec *exec, CUgraph graph, unsigned long long flags)) \
    X(cuGraphLaunch,         "cuGraphLaunch",              (CUgraphExec exec, CUstream stream))             \
    X(cuGraphExecDestroy,    "cuGraphExecDestroy",         (CUgraphExec exec))                              \
    X(cuGraphDestroy,        "cuGraphDestroy",             (CUgraph graph))                                 \
    X(cuEventElapsedTime,    "cuEventElapsedTime",         (float *milliseconds, CUevent from, CUevent to)) \
    X(cuMemcpyDtoDAsync,     "cuMemcpyDtoDAsync_v2",       (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))

/* cublasGemmEx, out of a library that is opened at run time. */
struct cublas {
    void *handle;                         /* NULL: there is none, and `why` says so */
    char name[64], why[256];
    int (*gemm)(void *handle, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *,
                void *, int, int, int, int);
};

/* NVML: clock and power while something runs. */
struct monitor {
    void *device;                         /* NULL: no NVML */
    char driver[64];
    int (*clock)(void *device, int type, int id, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*reasons)(void *device, unsigned long long *reasons);
};
struct monitor_sample { unsigned mhz, watts; bool power_capped; };

struct gpu {
    const struct bsmi_driver *driver;
#define X(name, symbol, parameters) CUresult (*name) parameters;
    GPU_FUNCTIONS(X)
#undef X
    CUstream stream;
    bsm_context *context, *cpu;
    bsm_device_info info;
    struct cublas cublas;
    struct monitor monitor;
    unsigned char *memory;                /* one allocation: what is taken from it is given back all at once */
    int64_t memory_bytes, memory_used;
    void *pool;                           /* pool_count random normal numbers in bf16, at the start of `memory` */
    int64_t pool_count;
    int64_t cold_bytes;                   /* of all operands that are used in turn, so that L2 holds none of them */
};

__attribute__((noreturn, format(printf, 1, 2))) void gpu_stop(const char *format, ...);
void gpu_must(const struct gpu *gpu, CUresult result, const char *what);
void gpu_library(bsm_status status, const char *what);

/* False, after one line on stderr, where there is no GPU that the library can use.  memory_bytes of it are taken; pool_count
 * numbers are made. */
bool gpu_open(struct gpu *gpu, int64_t memory_bytes, int64_t pool_count, int64_t cold_bytes);
void gpu_close(struct gpu *gpu);

/* Device memory, aligned to 256 bytes; gpu_give_back ends everything that was taken behind `mark` (an earlier memory_used). */
void *gpu_take(struct gpu *gpu, int64_t bytes);
void gpu_give_back(struct gpu *gpu, int64_t mark);
/* How many operands of `bytes` bytes are used in turn. */
enum { GPU_MOST_PLACES = 96 };
int gpu_places(const struct gpu *gpu, int64_t bytes);
void gpu_wait(const struct gpu *gpu);
void gpu_copy(const struct gpu *gpu, void *to, const void *from, int64_t bytes);

void cublas_open(struct gpu *gpu);
/* D = alpha A B', A m x k and B n x k bf16, D m x n bf16 or fp32, sums in fp32. */
void cublas_multiply(const struct gpu *gpu, int64_t m, int64_t n, int64_t k, float alpha, const void *a, const void *b, void *d,
                     bsm_format d_format);

void monitor_open(struct monitor *monitor);
bool monitor_read(const struct monitor *monitor, struct monitor_sample *sample);

/* A function of a library; false, and NULL, if it has none.  ISO C has no cast from dlsym's data pointer: `function` points to
 * where it is written. */
bool gpu_symbol(void *library, const char *name, void *function);

#endif

/* A context: one device with its threads, its allocator and its cached workspace. */
#ifndef BLOCKSCALE_CONTEXT_H
#define BLOCKSCALE_CONTEXT_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bsm_context bsm_context;

/* Where the library gets host memory.  allocate returns memory aligned to `alignment` (a power of two, at most 4096)
 * or NULL; release gets the same pointer and byte count back and is never called with NULL.  Both may be called from
 * any thread that calls the library, never from a thread that the library started. */
typedef struct bsm_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
    void *user;
} bsm_allocator;

/* CPU features that kernels may use.  A context starts from what CPUID and the operating system allow; the mask in
 * bsm_context_options and the environment variable BLOCKSCALE_CPU (a comma-separated list of names, such as "avx2",
 * each of which leaves what its kernels need besides: of "avx2", "fma", too; or "none") can only take features away. */
enum {
    BSM_CPU_FMA = 1u << 0,
    BSM_CPU_AVX2 = 1u << 1,              /* with F16C, which every CPU with AVX2 has */
    BSM_CPU_AVX512 = 1u << 2,            /* AVX-512 F, BW, DQ and VL together */
    BSM_CPU_AVX512_VNNI = 1u << 3,
    BSM_CPU_DOTPROD = 1u << 4,           /* Arm: dot products of bytes, FEAT_DotProd */
    BSM_CPU_I8MM = 1u << 5,              /* Arm: matrix multiplications of bytes, FEAT_I8MM */
    BSM_CPU_AVX512_BF16 = 1u << 6,       /* dot products of pairs of bf16 */
    BSM_CPU_AMX = 1u << 7,               /* tiles of bf16 and int8: AMX-TILE, AMX-BF16 and AMX-INT8 together, and
                                            AVX512_VBMI, which every CPU with them has, where Linux grants the process
                                            the registers; the first context that may use them
                                            asks for all */
    BSM_CPU_BF16 = 1u << 8,              /* Arm: dot products and matrix multiplications of bf16, FEAT_BF16 */
    BSM_CPU_ALL = 0x7fffffff
};

/* Where a context computes. */
typedef enum bsm_backend {
    BSM_BACKEND_CPU,
    BSM_BACKEND_CUDA,                    /* an NVIDIA GPU; creating the context fails, with the reason, where that
                                            cannot be */
    BSM_BACKEND_CUDA_OR_CPU,             /* an NVIDIA GPU if one can be used, else the CPU: bsm_context_backend says
                                            which */
    BSM_BACKEND_HIP,                     /* a GPU of AMD (gfx950: MI350X, MI355X), likewise */
    BSM_BACKEND_HIP_OR_CPU,
    BSM_BACKEND_COUNT
} bsm_backend;

typedef struct bsm_context_options {
    size_t struct_size;                  /* sizeof(bsm_context_options) where the caller was compiled */
    int threads;                         /* 0: as many as the machine (or OMP_NUM_THREADS) gives; else 1..1024 */
    uint32_t cpu_mask;                   /* features that may be used; 0 is read as BSM_CPU_ALL */
    bool portable_only;                  /* true: no CPU feature at all, only portable C kernels */
    const bsm_allocator *allocator;      /* copied; NULL: aligned malloc */
    bsm_backend backend;                 /* 0: the CPU */
    int device;                          /* number of the GPU, as its driver counts; 0 for the CPU */
    void *stream;                        /* CUstream (cudaStream_t) of the GPU's primary context, or hipStream_t, the
                                            caller's; NULL: the default stream */
} bsm_context_options;

/* Creates a context.  options may be NULL for the defaults.  On failure *context is NULL.
 * A context of a GPU first multiplies small matrices on it and compares the bits with known ones; contexts of one GPU
 * share what was loaded for it.  See device.h for what such contexts take and do.
 * Threads: a context may be used by several threads at once; see bsm_multiply for its cached workspace.  Work of
 * several threads runs on the caller's and on threads that the library makes when they are first wanted and all
 * contexts share (or on others: bsm_set_parallel).  They wait asleep, have all signals blocked that are not their own
 * faults, and end when the library is unloaded; where there can be none, callers work alone.
 * A child of fork may go on using a context; it runs on one thread.
 * Errors: BSM_EINVAL, BSM_ENOMEM; BSM_EDEVICE (no driver, no such GPU, kernels that it cannot run, a self-test that
 * fails). */
BSM_API bsm_status bsm_context_create(const bsm_context_options *options, bsm_context **context);

/* Frees the context and its cached workspace.  NULL is allowed.  No call may be using the context. */
BSM_API void bsm_context_destroy(bsm_context *context);

/* BSM_BACKEND_CPU, BSM_BACKEND_CUDA or BSM_BACKEND_HIP; the CPU for NULL. */
BSM_API bsm_backend bsm_context_backend(const bsm_context *context);
BSM_API const char *bsm_backend_name(int backend);       /* "cpu", "cuda", "cuda_or_cpu", "hip", "hip_or_cpu";
                                                          * NULL for numbers not listed */
BSM_API int bsm_backend_from_name(const char *name);     /* -1 when not known */

/* How many threads a product may use, 1..1024; 0 asks for the default again.  Never changes a bit of any result. */
BSM_API bsm_status bsm_context_set_threads(bsm_context *context, int threads);
BSM_API int bsm_context_threads(const bsm_context *context);

/* Threads of somebody else: calls function(argument) on `threads` threads at once, or on fewer, the caller's among
 * them, and returns when all these calls have.  flags is 0.  GOMP_parallel, which GNU's, LLVM's and Intel's OpenMP
 * have, is such a function (libgomp's ABI, GOMP_parallel). */
typedef void bsm_parallel(void (*function)(void *argument), void *argument, unsigned threads, unsigned flags);

/* Whose threads share the work of all contexts of the process from now on: those of `parallel`, or with NULL, as at the
 * beginning, the library's own.  For programs whose own loops run on OpenMP: its threads wait awake for the next loop,
 * and keep other threads from the processors meanwhile.  The function has to stay where it is as long as calls use it.
 * Work within an OpenMP region, and in a child of fork, is done by its caller alone.  Never changes a bit of any
 * result. */
BSM_API void bsm_set_parallel(bsm_parallel *parallel);

/* The CPU features this context uses, as BSM_CPU_ bits, and the name of one feature bit (NULL if there is none). */
BSM_API uint32_t bsm_context_cpu_features(const bsm_context *context);
BSM_API const char *bsm_cpu_feature_name(uint32_t bit);

#ifdef __cplusplus
}
#endif
#endif

/* Libraries, images as nvcc packs them, attributes of kernels, several host threads. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/support/driver_api.h"

#define CALLS(X) \
    X(cuCtxGetCurrent, (CUcontext *)) \
    X(cuCtxSetCurrent, (CUcontext)) X(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice)) \
        X(cuCtxDestroy_v2, (CUcontext)) X(cuCtxSynchronize, (void)) X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) X( \
            cuMemFree_v2, (CUdeviceptr)) X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
            X(cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream)) X(cuMemcpyDtoHAsync_v2, \
                                                                             (void *, CUdeviceptr, size_t, CUstream)) \
                X(cuStreamCreate, (CUstream *, unsigned)) X(cuStreamSynchronize, (CUstream)) \
                    X(cuStreamDestroy_v2, (CUstream)) X(cuModuleLoad, (CUmodule *, const char *)) \
                        X(cuModuleLoadDataEx, (CUmodule *, const void *, unsigned, CUjit_option *, void **)) X( \
                            cuModuleUnload, (CUmodule)) X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
                            X(cuFuncGetName, (const char **, CUfunction)) X(cuFuncGetModule, (CUmodule *, CUfunction)) \
                                X(cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *)) \
                                    X(cuFuncGetAttribute, (int *, int, CUfunction)) X( \
                                        cuLibraryLoadData, (CUlibrary *, const void *, CUjit_option *, void **, \
                                                            unsigned, int *, void **, unsigned)) X(cuLibraryUnload, \
                                                                                                   (CUlibrary)) \
                                        X(cuLibraryGetKernel, (CUkernel *, CUlibrary, const char *)) X( \
                                            cuLibraryGetKernelCount, \
                                            (unsigned *, CUlibrary)) X(cuLibraryGetModule, (CUmodule *, CUlibrary)) \
                                            X(cuLibraryGetGlobal, (CUdeviceptr *, size_t *, CUlibrary, const char *)) \
                                                X(cuKernelGetFunction, (CUfunction *, CUkernel)) \
                                                    X(cuKernelGetAttribute, (int *, int, CUkernel, CUdevice)) \
                                                        X(cuKernelSetAttribute, (int, int, CUkernel, CUdevice)) \
                                                            X(cuLaunchKernel, (CUfunction, unsigned, unsigned, \
                                                                               unsigned, unsigned, unsigned, unsigned, \
                                                                               unsigned, CUstream, void **, void **)) \
                                                                X(cuStreamQuery_ptsz, (CUstream))
DRIVER_CALLS(CALLS)

/* add(c, n, p): g counts launches; *p += n */
static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .u32 g = 5;\n"
    ".visible .entry add(.param .u8 c, .param .u32 n, .param .u64 p)\n{\n.reg .b64 %a; .reg .b32 %v, %n;\n"
    "ld.param.u64 %a, [p];\n"
    "ld.param.u32 %n, [n]; ld.global.u32 %v, [%a]; add.u32 %v, %v, %n; st.global.u32 [%a], %v;\n"
    "ld.global.u32 %v, [g];\n"
    "add.u32 %v, %v, 1; st.global.u32 [g], %v; ret;\n}\n.visible .entry other()\n{\nret;\n}\n";

static void begin(struct test *t)
{
    driver_begin(t);
    if (cuCtxGetCurrent == NULL) find_calls(t);
}

static unsigned word(struct test *t, CUdeviceptr at)
{
    unsigned v = 0;
    OK(t, cuMemcpyDtoH_v2(&v, at, 4));
    return v;
}

static void each_context_has_a_librarys_module(struct test *t)
{
    begin(t);
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    CUcontext primary, own;
    CUdeviceptr p, g, own_g;
    unsigned count, n = 3;
    char c = 0;
    int value;
    OK(t, cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    OK(t, cuLibraryGetKernelCount(&count, library));
    CHECK(t, count == 2);
    OK(t, cuLibraryGetKernel(&kernel, library, "add"));
    GIVES(t, CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nobody"));
    OK(t, cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel, 0));
    OK(t, cuKernelGetFunction(&function, kernel));
    OK(t, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    CHECK(t, value == 100000);
    OK(t, cuMemAlloc_v2(&p, 4));
    OK(t, cuMemsetD32Async(p, 10, 1, NULL));
    OK(t, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 100000, NULL, (void *[]){ &c, &n, &p }, NULL));
    OK(t, cuLaunchKernel((CUfunction)(void *)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &c, &n, &p }, NULL));
    CHECK(t, word(t, p) == 16);
    OK(t, cuLibraryGetGlobal(&g, NULL, library, "g"));
    CHECK(t, word(t, g) == 7);
    OK(t, cuCtxGetCurrent(&primary));
    OK(t, cuCtxCreate_v2(&own, 0, 0));
    OK(t, cuLibraryGetGlobal(&own_g, NULL, library, "g"));
    CHECK(t, word(t, own_g) == 5);
    OK(t, cuCtxDestroy_v2(own));
    OK(t, cuCtxSetCurrent(primary));
    OK(t, cuLibraryUnload(library));
    if (driver_is_simulated())
        GIVES(t, CUDA_ERROR_INVALID_HANDLE,
              cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &c, &n, &p }, NULL));
    if (driver_is_simulated()) GIVES(t, CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
    OK(t, cuMemFree_v2(p));
}

static void what_is_known_of_a_function(struct test *t)
{
    begin(t);
    CUmodule module, of;
    CUfunction f;
    const char *name;
    size_t offset = 0, size = 0;
    char log[200] = "full", info[10] = "full";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                               CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)sizeof log, info, (void *)sizeof info };
    OK(t, cuModuleLoadDataEx(&module, text, 4, options, values));
    CHECK(t, *log == '\0');
    OK(t, cuModuleGetFunction(&f, module, "add"));
    OK(t, cuFuncGetName(&name, f));
    CHECK(t, strcmp(name, "add") == 0);
    OK(t, cuFuncGetModule(&of, f));
    CHECK(t, of == module);
    OK(t, cuFuncGetParamInfo(f, 1, &offset, &size));
    CHECK(t, offset == 4 && size == 4);
    OK(t, cuFuncGetParamInfo(f, 2, &offset, NULL));
    CHECK(t, offset == 8);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(f, 3, &offset, &size));
    OK(t, cuModuleUnload(module));
    values[1] = (void *)sizeof log;
    GIVES(t, CUDA_ERROR_INVALID_PTX,
          cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_90\n.entry k() { wrong.u32 a; }", 2, options, values));
    CHECK(t, strlen(log) > 10);
}

static void loads(struct test *t, const char *fatbin)
{
    CUmodule module;
    CUfunction f;
    OK(t, cuModuleLoad(&module, fatbin));
    OK(t, cuModuleGetFunction(&f, module, "saxpy"));
    OK(t, cuModuleUnload(module));
}

/* Fatbins of this machine's nvcc with two texts and a cubin: plain, packed by LZ4, and by Zstandard.  A cubin alone is
 * refused. */
static void images_of_nvcc(struct test *t)
{
    begin(t);
#ifdef CUDASIM_FATBINS
    static const char *const packed[] = { CUDASIM_FATBINS "/compressed.fatbin", CUDASIM_FATBINS "/size.fatbin" };
    CUmodule module;
    loads(t, CUDASIM_FATBINS "/plain.fatbin");
    for (int i = 0; i < 2; i++) {
#ifdef CUDASIM_ZSTD
        loads(t, packed[i]);
#else
        if (driver_is_simulated()) GIVES(t, CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoad(&module, packed[i]));
#endif
    }
    loads(t, CUDASIM_FATBINS "/lz4.fatbin");
    if (driver_is_simulated())
        GIVES(t, CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoad(&module, CUDASIM_FATBINS "/binary.cubin"));
#else
    test_skip(t, "no nvcc");
#endif
}

/* ---- host threads: each with a stream, memory and modules of its own ---- */

struct job { CUcontext context; unsigned number, errors; };

static void *work(void *user)
{
    struct job *job = user;
    job->errors += cuCtxSetCurrent(job->context) != CUDA_SUCCESS;
    for (unsigned round = 0; round < 25; round++) {
        CUstream s;
        CUdeviceptr p;
        CUmodule module;
        CUfunction f;
        unsigned n = job->number * 1000 + round, got = 0;
        char c = 0;
        job->errors += cuStreamCreate(&s, 1) != CUDA_SUCCESS;
        job->errors += cuMemAlloc_v2(&p, 4) != CUDA_SUCCESS;
        job->errors += cuModuleLoadDataEx(&module, text, 0, NULL, NULL) != CUDA_SUCCESS;
        job->errors += cuModuleGetFunction(&f, module, "add") != CUDA_SUCCESS;
        job->errors += cuMemsetD32Async(p, 1, 1, s) != CUDA_SUCCESS;
        job->errors += cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, (void *[]){ &c, &n, &p }, NULL) != CUDA_SUCCESS;
        job->errors += cuMemcpyDtoHAsync_v2(&got, p, 4, s) != CUDA_SUCCESS;
        job->errors += cuStreamSynchronize(s) != CUDA_SUCCESS || got != n + 1;
        job->errors += cuStreamQuery_ptsz(NULL) != CUDA_SUCCESS;
        job->errors += cuModuleUnload(module) != CUDA_SUCCESS || cuMemFree_v2(p) != CUDA_SUCCESS
                       || cuStreamDestroy_v2(s) != CUDA_SUCCESS;
    }
    return NULL;
}

static void several_host_threads(struct test *t)
{
    begin(t);
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    CUcontext context;
    OK(t, cuCtxGetCurrent(&context));
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){ .context = context, .number = i };
        CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(t, jobs[i].errors == 0);
    }
}

int main(int argc, char **argv)
{
    setenv("CUDASIM_QUIET", "1", 1);
    static const struct test_case cases[] = { TEST(each_context_has_a_librarys_module),
                                              TEST(what_is_known_of_a_function), TEST(images_of_nvcc),
                                              TEST(several_host_threads) };
    return TEST_MAIN(argc, argv, cases);
}

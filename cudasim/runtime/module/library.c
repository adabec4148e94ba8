/* Libraries that a program loads itself. */
#include "runtime/core/runtime.h"

API(cudaLibraryLoadData,
    (cudaLibrary_t * library, const void *image, CUjit_option *options, void **values, unsigned count,
     int *library_options, void **library_values, unsigned library_count))
{
    return IN_CONTEXT(cuLibraryLoadData(library, image, options, values, count, library_options, library_values,
                                        library_count));
}

API(cudaLibraryLoadFromFile,
    (cudaLibrary_t * library, const char *file, CUjit_option *options, void **values, unsigned count,
     int *library_options, void **library_values, unsigned library_count))
{
    return IN_CONTEXT(cuLibraryLoadFromFile(library, file, options, values, count, library_options, library_values,
                                            library_count));
}

API(cudaLibraryUnload, (cudaLibrary_t library)) { return IN_CONTEXT(cuLibraryUnload(library)); }

API(cudaLibraryGetKernel, (cudaKernel_t * kernel, cudaLibrary_t library, const char *name))
{
    return IN_CONTEXT(cuLibraryGetKernel(kernel, library, name));
}

API(cudaLibraryGetKernelCount, (unsigned *count, cudaLibrary_t library))
{
    return IN_CONTEXT(cuLibraryGetKernelCount(count, library));
}

API(cudaLibraryEnumerateKernels, (cudaKernel_t * kernels, unsigned count, cudaLibrary_t library))
{
    return IN_CONTEXT(cuLibraryEnumerateKernels(kernels, count, library));
}

API(cudaLibraryGetGlobal, (void **address, size_t *bytes, cudaLibrary_t library, const char *name))
{
    return IN_CONTEXT(cuLibraryGetGlobal((CUdeviceptr *)(void *)address, bytes, library, name));
}

API(cudaLibraryGetManaged, (void **address, size_t *bytes, cudaLibrary_t library, const char *name))
{
    return IN_CONTEXT(cuLibraryGetManaged((CUdeviceptr *)(void *)address, bytes, library, name));
}

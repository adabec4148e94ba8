/* Variables of a program's device code, and copies to and from them. */
#include "registry.h"
#include "runtime/memory/copy.h"

API(cudaGetSymbolAddress, (void **address, const void *symbol))
{
    CUdeviceptr found = 0;
    size_t bytes;
    if (address == NULL) return runtime_fail(cudaErrorInvalidValue);
    const cudaError_t error = IN_CONTEXT(registry_variable(symbol, &found, &bytes));
    if (error == cudaSuccess) *address = (void *)(uintptr_t)found;
    return error;
}

API(cudaGetSymbolSize, (size_t * bytes, const void *symbol))
{
    CUdeviceptr found;
    if (bytes == NULL) return runtime_fail(cudaErrorInvalidValue);
    return IN_CONTEXT(registry_variable(symbol, &found, bytes));
}

CUresult symbol_bytes(const void *symbol, size_t count, size_t offset, void **address)
{
    CUdeviceptr found;
    size_t bytes;
    const CUresult result = registry_variable(symbol, &found, &bytes);
    if (result != CUDA_SUCCESS) return result;
    if (offset > bytes || count > bytes - offset) return CUDA_ERROR_INVALID_VALUE;
    *address = (void *)(uintptr_t)(found + offset);
    return CUDA_SUCCESS;
}

static CUresult copy_symbol(const void *symbol, void *other, size_t count, size_t offset, int kind, bool to_symbol,
                            struct copy_way way)
{
    void *address;
    const CUresult result = symbol_bytes(symbol, count, offset, &address);
    if (result != CUDA_SUCCESS) return result;
    return to_symbol ? copy_line(address, other, count, kind, way) : copy_line(other, address, count, kind, way);
}

API(cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t count, size_t offset, int kind))
{
    return IN_CONTEXT(copy_symbol(symbol, (void *)(uintptr_t)from, count, offset, kind, true, COPY_NOW));
}

API(cudaMemcpyFromSymbol, (void *to, const void *symbol, size_t count, size_t offset, int kind))
{
    return IN_CONTEXT(copy_symbol(symbol, to, count, offset, kind, false, COPY_NOW));
}

API(cudaMemcpyToSymbolAsync,
    (const void *symbol, const void *from, size_t count, size_t offset, int kind, cudaStream_t stream))
{
    return IN_CONTEXT(copy_symbol(symbol, (void *)(uintptr_t)from, count, offset, kind, true, COPY_IN(stream)));
}

API(cudaMemcpyFromSymbolAsync,
    (void *to, const void *symbol, size_t count, size_t offset, int kind, cudaStream_t stream))
{
    return IN_CONTEXT(copy_symbol(symbol, to, count, offset, kind, false, COPY_IN(stream)));
}

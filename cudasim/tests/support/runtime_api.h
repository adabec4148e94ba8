/* The CUDA runtime API for tests without nvcc: what they call of it, and a program's device code registered as nvcc's
 * host code does. */
#ifndef CUDASIM_TESTS_SUPPORT_RUNTIME_API_H
#define CUDASIM_TESTS_SUPPORT_RUNTIME_API_H

#include "runtime/core/api.h"
#include "test.h"

#define RUNTIME_CALLS(X) \
    X(cudaGetLastError, (void)) X(cudaPeekAtLastError, (void)) \
    X(cudaGetDeviceCount, (int *)) X(cudaGetDevice, (int *)) X(cudaSetDevice, (int)) X(cudaDeviceReset, (void)) \
    X(cudaDeviceSynchronize, (void)) X(cudaDeviceGetAttribute, (int *, int, int)) \
    X(cudaGetDeviceProperties, (cudaDeviceProp *, int)) X(cudaDeviceCanAccessPeer, (int *, int, int)) \
    X(cudaDeviceEnablePeerAccess, (int, unsigned)) X(cudaDeviceSetLimit, (int, size_t)) \
    X(cudaDeviceGetLimit, (size_t *, int)) X(cudaRuntimeGetVersion, (int *)) X(cudaDriverGetVersion, (int *)) \
    X(cudaGetDriverEntryPointByVersion, (const char *, void **, unsigned, unsigned long long, int *)) \
    X(cudaLaunchKernel, (const void *, dim3, dim3, void **, size_t, cudaStream_t)) \
    X(cudaLaunchKernel_ptsz, (const void *, dim3, dim3, void **, size_t, cudaStream_t)) \
    X(cudaLaunchKernelExC, (const cudaLaunchConfig_t *, const void *, void **)) \
    X(cudaLaunchCooperativeKernel, (const void *, dim3, dim3, void **, size_t, cudaStream_t)) \
    X(cudaLaunchHostFunc, (cudaStream_t, CUhostFn *, void *)) \
    X(__cudaPopCallConfiguration, (dim3 *, dim3 *, size_t *, cudaStream_t *)) \
    X(cudaGetKernel, (cudaKernel_t *, const void *)) X(cudaGetFuncBySymbol, (cudaFunction_t *, const void *)) \
    X(cudaFuncGetName, (const char **, const void *)) \
    X(cudaFuncGetAttributes, (cudaFuncAttributes *, const void *)) \
    X(cudaFuncSetAttribute, (const void *, int, int)) \
    X(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *, const void *, int, size_t)) \
    X(cudaOccupancyMaxActiveClusters, (int *, const void *, const cudaLaunchConfig_t *)) \
    X(cudaGetSymbolAddress, (void **, const void *)) X(cudaGetSymbolSize, (size_t *, const void *)) \
    X(cudaMemcpyToSymbol, (const void *, const void *, size_t, size_t, int)) \
    X(cudaMemcpyFromSymbol, (void *, const void *, size_t, size_t, int)) \
    X(cudaMalloc, (void **, size_t)) X(cudaFree, (void *)) X(cudaMallocPitch, (void **, size_t *, size_t, size_t)) \
    X(cudaMalloc3D, (cudaPitchedPtr *, cudaExtent)) X(cudaMallocManaged, (void **, size_t, unsigned)) \
    X(cudaMallocHost, (void **, size_t)) X(cudaHostAlloc, (void **, size_t, unsigned)) X(cudaFreeHost, (void *)) \
    X(cudaHostRegister, (void *, size_t, unsigned)) X(cudaHostUnregister, (void *)) \
    X(cudaHostGetDevicePointer, (void **, void *, unsigned)) X(cudaMemGetInfo, (size_t *, size_t *)) \
    X(cudaPointerGetAttributes, (cudaPointerAttributes *, const void *)) \
    X(cudaMallocAsync, (void **, size_t, cudaStream_t)) X(cudaFreeAsync, (void *, cudaStream_t)) \
    X(cudaMallocArray, (void)) \
    X(cudaMemcpy, (void *, const void *, size_t, int)) \
    X(cudaMemcpyAsync, (void *, const void *, size_t, int, cudaStream_t)) \
    X(cudaMemcpy2D, (void *, size_t, const void *, size_t, size_t, size_t, int)) \
    X(cudaMemcpy3D, (const cudaMemcpy3DParms *)) X(cudaMemcpyPeer, (void *, int, const void *, int, size_t)) \
    X(cudaMemset, (void *, int, size_t)) X(cudaMemsetAsync, (void *, int, size_t, cudaStream_t)) \
    X(cudaMemset3D, (cudaPitchedPtr, int, cudaExtent)) \
    X(cudaStreamCreate, (cudaStream_t *)) X(cudaStreamCreateWithFlags, (cudaStream_t *, unsigned)) \
    X(cudaStreamDestroy, (cudaStream_t)) X(cudaStreamSynchronize, (cudaStream_t)) X(cudaStreamQuery, (cudaStream_t)) \
    X(cudaStreamGetId, (cudaStream_t, unsigned long long *)) \
    X(cudaStreamGetId_ptsz, (cudaStream_t, unsigned long long *)) \
    X(cudaStreamWaitEvent, (cudaStream_t, cudaEvent_t, unsigned)) \
    X(cudaStreamAddCallback, (cudaStream_t, void (*)(CUstream, CUresult, void *), void *, unsigned)) \
    X(cudaStreamBeginCapture, (cudaStream_t, CUstreamCaptureMode)) \
    X(cudaStreamEndCapture, (cudaStream_t, cudaGraph_t *)) \
    X(cudaStreamGetCaptureInfo, (cudaStream_t, CUstreamCaptureStatus *, unsigned long long *, cudaGraph_t *, \
                                 const cudaGraphNode_t **, const CUgraphEdgeData **, size_t *)) \
    X(cudaEventCreate, (cudaEvent_t *)) X(cudaEventDestroy, (cudaEvent_t)) \
    X(cudaEventRecord, (cudaEvent_t, cudaStream_t)) X(cudaEventQuery, (cudaEvent_t)) \
    X(cudaEventSynchronize, (cudaEvent_t)) X(cudaEventElapsedTime, (float *, cudaEvent_t, cudaEvent_t)) \
    X(cudaGraphCreate, (cudaGraph_t *, unsigned)) X(cudaGraphDestroy, (cudaGraph_t)) \
    X(cudaGraphGetNodes, (cudaGraph_t, cudaGraphNode_t *, size_t *)) \
    X(cudaGraphAddKernelNode, \
      (cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t, const cudaKernelNodeParams *)) \
    X(cudaGraphKernelNodeGetParams, (cudaGraphNode_t, cudaKernelNodeParams *)) \
    X(cudaGraphAddMemcpyNode1D, \
      (cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t, void *, const void *, size_t, int)) \
    X(cudaGraphAddMemsetNode, \
      (cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t, const CUDA_MEMSET_NODE_PARAMS *)) \
    X(cudaGraphInstantiate, (cudaGraphExec_t *, cudaGraph_t, unsigned long long)) \
    X(cudaGraphLaunch, (cudaGraphExec_t, cudaStream_t)) X(cudaGraphExecDestroy, (cudaGraphExec_t)) \
    X(cudaGraphExecKernelNodeSetParams, (cudaGraphExec_t, cudaGraphNode_t, const cudaKernelNodeParams *))

#define X(name, parameters) cudaError_t name parameters;
RUNTIME_CALLS(X)
#undef X
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);
char __cudaInitModule(void **handle);

/* The addresses by which the host names what is registered: kernels, which are never called; variables. */
void add_stub(void), double_stub(void), stray_stub(void), absent_stub(void);
extern char counter_host[16], factor_host[4];
extern int *managed_host;                 /* where the managed variable lies, once __cudaInitModule has been called */

/* Registers, as nvcc's host code does before main, a fatbin with kernels
 *     add(p, n)      p[i] += 1 for i < n; the first thread adds 1 to counter[0] and to the managed variable
 *     double(p, n)   p[i] *= factor, a constant variable, 2 at first
 *     stray(p, n)    writes far behind p
 * and, under the name absent_stub, one that is not there.  Gives the fatbin's handle. */
void **program_register(void);
void program_unregister(void **handle);

#define GIVES(t, expected, call) \
    do { \
        const cudaError_t gives_result = (call); \
        if (gives_result != (expected)) FAIL(t, "%s gives %d, not %d", #call, (int)gives_result, (int)(expected)); \
    } while (0)
#define OK(t, call) GIVES(t, cudaSuccess, call)

/* add or double on `count` words. */
cudaError_t run_kernel(void (*stub)(void), int *pointer, unsigned count, cudaStream_t stream);

#endif

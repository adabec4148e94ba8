/* Status codes and device attributes of cuda.h: names and numbers. */
#ifndef CUDASIM_DRIVER_NUMBERS_H
#define CUDASIM_DRIVER_NUMBERS_H

#define CU_RESULTS(X) \
    X(SUCCESS, 0, "no error") \
    X(ERROR_INVALID_VALUE, 1, "invalid argument") \
    X(ERROR_OUT_OF_MEMORY, 2, "out of memory") \
    X(ERROR_NOT_INITIALIZED, 3, "initialization error") \
    X(ERROR_DEINITIALIZED, 4, "driver shutting down") \
    X(ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected") \
    X(ERROR_INVALID_DEVICE, 101, "invalid device ordinal") \
    X(ERROR_INVALID_IMAGE, 200, "device kernel image is invalid") \
    X(ERROR_INVALID_CONTEXT, 201, "invalid device context") \
    X(ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device") \
    X(ERROR_UNSUPPORTED_LIMIT, 215, "limit is not supported on this architecture") \
    X(ERROR_INVALID_PTX, 218, "a PTX JIT compilation failed") \
    X(ERROR_UNSUPPORTED_PTX_VERSION, 222, "the provided PTX was compiled with an unsupported toolchain.") \
    X(ERROR_INVALID_SOURCE, 300, "device kernel image is invalid") \
    X(ERROR_FILE_NOT_FOUND, 301, "file not found") \
    X(ERROR_OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS") \
    X(ERROR_INVALID_HANDLE, 400, "invalid resource handle") \
    X(ERROR_ILLEGAL_STATE, 401, "the operation cannot be performed in the present state") \
    X(ERROR_NOT_FOUND, 500, "named symbol not found") \
    X(ERROR_NOT_READY, 600, "device not ready") \
    X(ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered") \
    X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch") \
    X(ERROR_LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated") \
    X(ERROR_PRIMARY_CONTEXT_ACTIVE, 708, "cannot set while device is active in this process") \
    X(ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed") \
    X(ERROR_ASSERT, 710, "device-side assert triggered") \
    X(ERROR_HARDWARE_STACK_ERROR, 714, "hardware stack error") \
    X(ERROR_ILLEGAL_INSTRUCTION, 715, "an illegal instruction was encountered") \
    X(ERROR_MISALIGNED_ADDRESS, 716, "misaligned address") \
    X(ERROR_INVALID_ADDRESS_SPACE, 717, "operation not supported on global/shared address space") \
    X(ERROR_INVALID_PC, 718, "invalid program counter") \
    X(ERROR_LAUNCH_FAILED, 719, "unspecified launch failure") \
    X(ERROR_NOT_PERMITTED, 800, "operation not permitted") \
    X(ERROR_NOT_SUPPORTED, 801, "operation not supported") \
    X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing") \
    X(ERROR_STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture") \
    X(ERROR_STREAM_CAPTURE_MERGE, 902, "operation would result in a merge of separate capture sequences") \
    X(ERROR_STREAM_CAPTURE_UNMATCHED, 903, "capture was not ended in the same stream as it began") \
    X(ERROR_STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work") \
    X(ERROR_STREAM_CAPTURE_ISOLATION, 905, "dependency created on uncaptured work in another stream") \
    X(ERROR_STREAM_CAPTURE_IMPLICIT, 906, "operation would make the legacy stream depend on a capturing blocking stream") \
    X(ERROR_CAPTURED_EVENT, 907, "operation not permitted on an event last recorded in a capturing stream") \
    X(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908, "attempt to terminate a thread-local capture sequence from another thread") \
    X(ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update") \
    X(ERROR_INVALID_CLUSTER_SIZE, 912, "cluster misconfiguration") \
    X(ERROR_UNKNOWN, 999, "unknown error")

#define CU_LAUNCH_ATTRIBUTES(X) \
    X(IGNORE, 0) X(ACCESS_POLICY_WINDOW, 1) X(COOPERATIVE, 2) X(SYNCHRONIZATION_POLICY, 3) X(CLUSTER_DIMENSION, 4) \
    X(CLUSTER_SCHEDULING_POLICY_PREFERENCE, 5) X(PROGRAMMATIC_STREAM_SERIALIZATION, 6) X(PROGRAMMATIC_EVENT, 7) X(PRIORITY, 8) \
    X(MEM_SYNC_DOMAIN_MAP, 9) X(MEM_SYNC_DOMAIN, 10) X(PREFERRED_CLUSTER_DIMENSION, 11) X(LAUNCH_COMPLETION_EVENT, 12) \
    X(PREFERRED_SHARED_MEMORY_CARVEOUT, 14)

#define CU_DEVICE_ATTRIBUTES(X) \
    X(MAX_THREADS_PER_BLOCK, 1) X(MAX_BLOCK_DIM_X, 2) X(MAX_BLOCK_DIM_Y, 3) X(MAX_BLOCK_DIM_Z, 4) X(MAX_GRID_DIM_X, 5) \
    X(MAX_GRID_DIM_Y, 6) X(MAX_GRID_DIM_Z, 7) X(MAX_SHARED_MEMORY_PER_BLOCK, 8) X(TOTAL_CONSTANT_MEMORY, 9) X(WARP_SIZE, 10) \
    X(MAX_PITCH, 11) X(MAX_REGISTERS_PER_BLOCK, 12) X(CLOCK_RATE, 13) X(TEXTURE_ALIGNMENT, 14) X(GPU_OVERLAP, 15) \
    X(MULTIPROCESSOR_COUNT, 16) X(KERNEL_EXEC_TIMEOUT, 17) X(INTEGRATED, 18) X(CAN_MAP_HOST_MEMORY, 19) X(COMPUTE_MODE, 20) \
    X(CONCURRENT_KERNELS, 31) X(ECC_ENABLED, 32) X(PCI_BUS_ID, 33) X(PCI_DEVICE_ID, 34) X(TCC_DRIVER, 35) \
    X(MEMORY_CLOCK_RATE, 36) X(GLOBAL_MEMORY_BUS_WIDTH, 37) X(L2_CACHE_SIZE, 38) X(MAX_THREADS_PER_MULTIPROCESSOR, 39) \
    X(ASYNC_ENGINE_COUNT, 40) X(UNIFIED_ADDRESSING, 41) X(PCI_DOMAIN_ID, 50) X(COMPUTE_CAPABILITY_MAJOR, 75) \
    X(COMPUTE_CAPABILITY_MINOR, 76) X(STREAM_PRIORITIES_SUPPORTED, 78) X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81) \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, 82) X(MANAGED_MEMORY, 83) X(COOPERATIVE_LAUNCH, 95) X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
    X(MAX_BLOCKS_PER_MULTIPROCESSOR, 106) X(RESERVED_SHARED_MEMORY_PER_BLOCK, 111) X(MEMORY_POOLS_SUPPORTED, 115) \
    X(CLUSTER_LAUNCH, 120)

#endif

/* Errors by name and in words. */
#include "hip.h"

static const struct { hipError_t code; const char *name, *words; } errors[] = {
    { hipSuccess, "hipSuccess", "no error" },
    { hipErrorInvalidValue, "hipErrorInvalidValue", "an argument is wrong" },
    { hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory" },
    { hipErrorNotInitialized, "hipErrorNotInitialized", "not initialised" },
    { hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "a grid or a block that cannot be launched" },
    { hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "no pointer to device memory" },
    { hipErrorInvalidDevice, "hipErrorInvalidDevice", "no such device" },
    { hipErrorInvalidImage, "hipErrorInvalidImage", "no code object" },
    { hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu", "no code for this GPU" },
    { hipErrorInvalidHandle, "hipErrorInvalidHandle", "no such handle" },
    { hipErrorIllegalState, "hipErrorIllegalState", "not in this state" },
    { hipErrorNotFound, "hipErrorNotFound", "not found" },
    { hipErrorNotReady, "hipErrorNotReady", "not ready" },
    { hipErrorIllegalAddress, "hipErrorIllegalAddress", "a kernel touched memory that is not there" },
    { hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources", "a kernel needs more than there is" },
    { hipErrorLaunchTimeOut, "hipErrorLaunchTimeOut", "a kernel took too many steps" },
    { hipErrorLaunchFailure, "hipErrorLaunchFailure", "a kernel failed" },
    { hipErrorNotSupported, "hipErrorNotSupported", "not supported" },
    { hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported", "not while a stream captures" },
    { hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated", "the capture is lost" },
    { hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched", "the stream does not capture" },
};

static size_t find(hipError_t code)
{
    size_t i = 0;
    while (i < sizeof errors / sizeof errors[0] && errors[i].code != code) i++;
    return i;
}

HIP_EXPORT const char *hipGetErrorName(hipError_t code);
const char *hipGetErrorName(hipError_t code)
{
    const size_t i = find(code);
    return i < sizeof errors / sizeof errors[0] ? errors[i].name : "hipErrorUnknown";
}

HIP_EXPORT const char *hipGetErrorString(hipError_t code);
const char *hipGetErrorString(hipError_t code)
{
    const size_t i = find(code);
    return i < sizeof errors / sizeof errors[0] ? errors[i].words : "unknown error";
}

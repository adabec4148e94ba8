/* Names and texts of error codes. */
#include "runtime.h"

CUDASIM_EXPORT const char *cudaGetErrorName(cudaError_t error);
CUDASIM_EXPORT const char *cudaGetErrorString(cudaError_t error);

static const char unknown[] = "unrecognized error code";

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define X(name, value) case cuda##name: return "cuda" #name;
    CUDA_ERRORS(X)
#undef X
    default: return unknown;
    }
}

/* The driver's text where it has one, since the codes are the same. */
const char *cudaGetErrorString(cudaError_t error)
{
    const char *text;
    switch ((int)error) {
#define X(name, words) case cudaError##name: return words;
    CUDA_ERROR_TEXTS(X)
#undef X
    default: return cuGetErrorString((CUresult)error, &text) == CUDA_SUCCESS ? text : cudaGetErrorName(error);
    }
}

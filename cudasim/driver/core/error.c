/* Names and texts of result codes. */
#include "api.h"

CUDASIM_EXPORT CUresult cuGetErrorName(CUresult error, const char **name);
CUDASIM_EXPORT CUresult cuGetErrorString(CUresult error, const char **text);

static const struct { int value; const char *name, *text; } results[] = {
#define X(name, value, text) { value, "CUDA_" #name, text },
    CU_RESULTS(X)
#undef X
};
enum { RESULTS = sizeof results / sizeof results[0] };

static int find(CUresult error)
{
    for (int i = 0; i < RESULTS; i++)
        if (results[i].value == (int)error) return i;
    return -1;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    const int i = find(error);
    if (name == NULL) return CUDA_ERROR_INVALID_VALUE;
    *name = i < 0 ? NULL : results[i].name;
    return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    const int i = find(error);
    if (text == NULL) return CUDA_ERROR_INVALID_VALUE;
    *text = i < 0 ? NULL : results[i].text;
    return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

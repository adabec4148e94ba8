/* cuGetProcAddress: the library's own functions by their names without suffix, as a CUDA version knew them; and what is
 * not served. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

CUDASIM_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                            int *status);
CUDASIM_EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags);
CUDASIM_EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *uuid);

enum { SYMBOL_FOUND = 0, SYMBOL_NOT_FOUND = 1, SYMBOL_VERSION_NOT_SUFFICIENT = 2 };
enum { FIRST_V2 = 3020 };                 /* most _v2 functions came with 64-bit sizes, CUDA 3.2 */

/* Functions whose suffixed form came later than that. */
static const struct { const char *name; int suffix, since;
} later[] = {
    { "cuGetProcAddress", 2, 12000 },
    { "cuCtxCreate", 4, 12050 },
    { "cuEventElapsedTime", 2, 12080 },
    { "cuDevicePrimaryCtxRelease", 2, 11000 },
    { "cuDevicePrimaryCtxReset", 2, 11000 },
    { "cuDevicePrimaryCtxSetFlags", 2, 11000 },
    { "cuDeviceGetUuid", 2, 11040 },
    { "cuCtxDestroy", 2, 4000 },
    { "cuCtxPopCurrent", 2, 4000 },
    { "cuCtxPushCurrent", 2, 4000 },
    { "cuStreamDestroy", 2, 4000 },
    { "cuEventDestroy", 2, 4000 },
    { "cuStreamGetCaptureInfo", 2, 11030 },
    { "cuStreamBeginCapture", 2, 10010 },
    { "cuGraphAddKernelNode", 2, 12000 },
    { "cuGraphKernelNodeGetParams", 2, 12000 },
    { "cuGraphKernelNodeSetParams", 2, 12000 },
    { "cuGraphExecKernelNodeSetParams", 2, 12000 },
    { "cuGraphExecUpdate", 2, 12000 },
    { "cuGraphInstantiate", 2, 11000 },
    { "cuStreamGetCaptureInfo", 3, 12030 },
    { "cuStreamUpdateCaptureDependencies", 2, 12030 },
    { "cuGraphAddDependencies", 2, 12030 },
    { "cuGraphRemoveDependencies", 2, 12030 },
    { "cuGraphGetEdges", 2, 12030 },
    { "cuGraphNodeGetDependencies", 2, 12030 },
    { "cuGraphNodeGetDependentNodes", 2, 12030 },
    { "cuMemPrefetchAsync", 2, 12020 },
    { "cuMemAdvise", 2, 12020 },
    { "cuMemHostRegister", 2, 6050 },
};

static int since_version(const char *name, int suffix)
{
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (later[i].suffix == suffix && strcmp(later[i].name, name) == 0) return later[i].since;
    return suffix == 1 ? 0 : FIRST_V2;
}

static void *open_self(void)
{
    Dl_info info;
    void *address;
    CUresult (*const any)(const void **, const CUuuid *) = cuGetExportTable;
    memcpy(&address, &any, sizeof address);
    return dladdr(address, &info) != 0 ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* A form by its number, where `per_thread` the one for threads' own default streams if there is one. */
static void *form(void *self, const char *symbol, int suffix, bool per_thread)
{
    static const char *const endings[] = { "_ptsz", "_ptds", "" };
    void *found = NULL;
    for (int i = per_thread ? 0 : 2; i < 3 && found == NULL; i++) {
        char name[160];
        const int length = suffix == 1 ? snprintf(name, sizeof name, "%s%s", symbol, endings[i])
                                       : snprintf(name, sizeof name, "%s_v%d%s", symbol, suffix, endings[i]);
        if (length > 0 && (size_t)length < sizeof name) found = dlsym(self, name);
    }
    return found;
}

/* The newest form that `version` knows. */
static void *look_up(void *self, const char *symbol, int version, bool per_thread, int *status)
{
    *status = SYMBOL_NOT_FOUND;
    for (int suffix = 4; suffix >= 1; suffix--) {
        void *found = form(self, symbol, suffix, per_thread);
        if (found == NULL) continue;
        if (version >= since_version(symbol, suffix)) {
            *status = SYMBOL_FOUND;
            return found;
        }
        *status = SYMBOL_VERSION_NOT_SUFFICIENT;
    }
    return NULL;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags, int *status)
{
    enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };
    int found = SYMBOL_NOT_FOUND;
    if (symbol == NULL || function == NULL || flags > PER_THREAD_STREAM) return CUDA_ERROR_INVALID_VALUE;
    void *self = strncmp(symbol, "cu", 2) == 0 ? open_self() : NULL;
    *function = self == NULL ? NULL : look_up(self, symbol, version, flags == PER_THREAD_STREAM, &found);
    if (self != NULL) dlclose(self);
    if (status != NULL) {
        *status = found;
        return CUDA_SUCCESS;
    }
    return found == SYMBOL_FOUND ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

/* NVIDIA's runtime library asks for tables of functions that are not documented; ours (runtime/) does without. */
CUresult cuGetExportTable(const void **table, const CUuuid *uuid)
{
    static bool said;
    (void)uuid;
    if (table != NULL) *table = NULL;
    if (!said)
        driver_say(
            "cudasim: this program brings NVIDIA's CUDA runtime library (cudart), which needs undocumented parts of "
            "the driver that are not here: link it anew with nvcc -cudart shared (the default is static), and let "
            "LD_LIBRARY_PATH begin with cudasim's folder, whose libcudart.so.13 it then uses\n");
    said = true;
    return CUDA_ERROR_NOT_SUPPORTED;
}

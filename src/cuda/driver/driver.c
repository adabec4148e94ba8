/* Opening libcuda, and its errors as sentences. */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* cuLaunchKernelEx came with 11.8, tensor maps with 12.0. */
enum { LEAST_VERSION = 12000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bsmi_driver table;
static bool opened;

bsm_status bsmi_driver_check(const struct bsmi_driver *driver, CUresult result, const char *function,
                             const char *format, ...)
{
    const char *name = NULL, *sentence = NULL;
    char about[256];
    va_list arguments;
    if (result == CUDA_SUCCESS) return BSM_OK;
    va_start(arguments, format);
    vsnprintf(about, sizeof about, format, arguments);
    va_end(arguments);
    if (driver->cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) name = "an error without a name";
    if (driver->cuGetErrorString(result, &sentence) != CUDA_SUCCESS || sentence == NULL) sentence = "no description";
    return bsmi_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? BSM_ENOMEM : BSM_EDEVICE, "%s gave %s, %d (%s): %s", function,
                     name, result, sentence, about);
}

static bsm_status find_functions(void *library, const char *path, struct bsmi_driver *driver)
{
#define X(name, symbol, parameters) \
    *(void **)&driver->name = dlsym(library, symbol); \
    if (driver->name == NULL) \
        return bsmi_fail(BSM_EDEVICE, \
                         "%s lacks %s: the CUDA driver is too old (12.0 is needed), or this is no libcuda", path, \
                         symbol);
    BSMI_DRIVER_FUNCTIONS(X)
#undef X
    return BSM_OK;
}

static bsm_status start(const char *path, struct bsmi_driver *driver)
{
    bsm_status status = BSMI_DRIVER_CALL(driver, cuInit, (0), "%s could not be started", path);
    if (status == BSM_OK)
        status = BSMI_DRIVER_CALL(driver, cuDriverGetVersion, (&driver->version), "the version of %s", path);
    if (status == BSM_OK && driver->version < LEAST_VERSION)
        return bsmi_fail(
            BSM_EDEVICE, "the CUDA driver (%s) is for CUDA %d.%d: %d.%d is needed at least; update the driver", path,
            driver->version / 1000, driver->version % 1000 / 10, LEAST_VERSION / 1000, LEAST_VERSION % 1000 / 10);
    return status;
}

static bsm_status open_library(struct bsmi_driver *driver)
{
    const char *named = getenv("BLOCKSCALE_LIBCUDA"),
               *path = named != NULL && named[0] != '\0' ? named : "libcuda.so.1";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *why = dlerror();
        return bsmi_fail(BSM_EDEVICE, "no CUDA driver: %s%s", why != NULL ? why : path,
                         path == named ? " (named by BLOCKSCALE_LIBCUDA)" : "");
    }
    bsm_status status = find_functions(library, path, driver);
    if (status == BSM_OK) status = start(path, driver);
    if (status != BSM_OK) dlclose(library);
    return status;
}

bsm_status bsmi_driver_open(const struct bsmi_driver **driver)
{
    bsm_status status = BSM_OK;
    pthread_mutex_lock(&lock);
    if (!opened) {
        struct bsmi_driver found = { 0 };
        status = open_library(&found);
        if (status == BSM_OK) table = found, opened = true;
    }
    pthread_mutex_unlock(&lock);
    *driver = status == BSM_OK ? &table : NULL;
    return status;
}

/* Opening libamdhip64, and its errors as sentences. */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* gfx950 came with ROCm 6.5 and 7; what is needed of the interface is older. */
enum { LEAST_VERSION = 60000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bsmi_hip_driver table;
static bool opened;

bsm_status bsmi_hip_check(const struct bsmi_hip_driver *driver, hipError_t result, const char *function,
                          const char *format, ...)
{
    char about[256];
    va_list arguments;
    if (result == hipSuccess) return BSM_OK;
    va_start(arguments, format);
    vsnprintf(about, sizeof about, format, arguments);
    va_end(arguments);
    return bsmi_fail(result == hipErrorOutOfMemory ? BSM_ENOMEM : BSM_EDEVICE, "%s gave %s, %d (%s): %s", function,
                     driver->hipGetErrorName(result), result, driver->hipGetErrorString(result), about);
}

static bool find_function(void *library, const char *path, const char *name, void *function)
{
    *(void **)function = dlsym(library, name);
    if (*(void **)function != NULL) return true;
    (void)bsmi_fail(BSM_EDEVICE, "%s lacks %s: the HIP runtime is too old (6.0 is needed), or this is no libamdhip64",
                    path, name);
    return false;
}

static bsm_status find_functions(void *library, const char *path, struct bsmi_hip_driver *driver)
{
    bool found = find_function(library, path, "hipGetErrorName", &driver->hipGetErrorName)
                 && find_function(library, path, "hipGetErrorString", &driver->hipGetErrorString);
#define X(name, parameters) found = found && find_function(library, path, #name, &driver->name);
    BSMI_HIP_FUNCTIONS(X)
#undef X
    return found ? BSM_OK : BSM_EDEVICE;
}

static bsm_status start(const char *path, struct bsmi_hip_driver *driver)
{
    bsm_status status = BSMI_HIP_CALL(driver, hipInit, (0), "%s could not be started", path);
    if (status == BSM_OK)
        status = BSMI_HIP_CALL(driver, hipRuntimeGetVersion, (&driver->version), "the version of %s", path);
    if (status == BSM_OK && driver->version < LEAST_VERSION)
        return bsmi_fail(BSM_EDEVICE, "the HIP runtime (%s) has version %d: 6.0 (%d) is needed at least; update ROCm",
                         path, driver->version, LEAST_VERSION);
    return status;
}

/* The newest name that is there; named: by BLOCKSCALE_LIBHIP. */
static void *open_any(const char *named, const char **path)
{
    static const char *const names[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so" };
    void *library = NULL;
    *path = named;
    if (named != NULL) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && library == NULL; i++)
        library = dlopen(*path = names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bsm_status open_library(struct bsmi_hip_driver *driver)
{
    const char *given = getenv("BLOCKSCALE_LIBHIP"), *path, *named = given != NULL && given[0] != '\0' ? given : NULL;
    void *library = open_any(named, &path);
    if (library == NULL) {
        const char *why = dlerror();
        return bsmi_fail(BSM_EDEVICE, "no HIP runtime: %s%s", why != NULL ? why : path,
                         named != NULL ? " (named by BLOCKSCALE_LIBHIP)" : "");
    }
    bsm_status status = find_functions(library, path, driver);
    if (status == BSM_OK) status = start(path, driver);
    if (status != BSM_OK) dlclose(library);
    return status;
}

bsm_status bsmi_hip_driver_open(const struct bsmi_hip_driver **driver)
{
    bsm_status status = BSM_OK;
    pthread_mutex_lock(&lock);
    if (!opened) {
        struct bsmi_hip_driver found = { 0 };
        status = open_library(&found);
        if (status == BSM_OK) table = found, opened = true;
    }
    pthread_mutex_unlock(&lock);
    *driver = status == BSM_OK ? &table : NULL;
    return status;
}

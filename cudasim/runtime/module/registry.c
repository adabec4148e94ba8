/* The registry: one list of images, and one table of what lies in them by the address that the host knows it by. */
#include "registry.h"

#include <pthread.h>
#include <stdlib.h>

struct image {
    struct image *next;
    const void *data;
    CUlibrary library;
    bool loaded;
    CUresult result;
};

enum symbol_kind { SYMBOL_FUNCTION, SYMBOL_VARIABLE, SYMBOL_MANAGED };
struct symbol {
    struct symbol *next;
    struct image *image;
    enum symbol_kind kind;
    const void *host;                     /* of a managed variable: where the program keeps its address */
    const char *name;
    CUkernel kernel;                      /* once it has been asked for */
};

enum { BUCKETS = 1024 };
static struct symbol *bucket[BUCKETS];
static struct image *images;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUDASIM_EXPORT void **__cudaRegisterFatBinary(const void *data);
CUDASIM_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
CUDASIM_EXPORT void __cudaUnregisterFatBinary(void **handle);
CUDASIM_EXPORT char __cudaInitModule(void **handle);
CUDASIM_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                                           void *thread, void *block, dim3 *block_size, dim3 *grid_size, int *warp);
CUDASIM_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                                      size_t bytes, int constant, int global);
CUDASIM_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external,
                                             size_t bytes, int constant, int global);

/* ---- by address ---- */

static struct symbol **bucket_of(const void *host)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)host * UINT64_C(0x9e3779b97f4a7c15);
    return &bucket[mixed >> 54];
}

static void add(void **handle, enum symbol_kind kind, const void *host, const char *name)
{
    struct symbol *s = malloc(sizeof *s);
    if (s == NULL) return;
    struct symbol **place = bucket_of(host);
    pthread_mutex_lock(&lock);
    *s = (struct symbol){ *place, (struct image *)(void *)handle, kind, host, name, NULL };
    *place = s;
    pthread_mutex_unlock(&lock);
}

static struct symbol *find(const void *host)
{
    struct symbol *s = *bucket_of(host);
    while (s != NULL && s->host != host) s = s->next;
    return s;
}

/* ---- images ---- */

/* With the lock. */
static CUresult load(struct image *image)
{
    if (!image->loaded)
        image->result = cuLibraryLoadData(&image->library, image->data, NULL, NULL, 0, NULL, NULL, 0);
    image->loaded = true;
    return image->result;
}

void **__cudaRegisterFatBinary(const void *data)
{
    struct image *image = calloc(1, sizeof *image);
    if (image == NULL) return NULL;
    image->data = data;
    pthread_mutex_lock(&lock);
    image->next = images;
    images = image;
    pthread_mutex_unlock(&lock);
    return (void **)(void *)image;
}

void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

static void remove_symbols(const struct image *image)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct symbol **link = &bucket[i], *s; (s = *link) != NULL;) {
            if (s->image != image) {
                link = &s->next;
                continue;
            }
            *link = s->next;
            free(s);
        }
}

/* When the program ends, or a library is closed. */
void __cudaUnregisterFatBinary(void **handle)
{
    struct image *image = (struct image *)(void *)handle, **link = &images;
    if (image == NULL) return;
    pthread_mutex_lock(&lock);
    while (*link != NULL && *link != image) link = &(*link)->next;
    if (*link != NULL) {
        *link = image->next;
        remove_symbols(image);
        if (image->library != NULL) cuLibraryUnload(image->library);
        free(image);
    }
    pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *thread,
                            void *block, dim3 *block_size, dim3 *grid_size, int *warp)
{
    (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp;
    add(handle, SYMBOL_FUNCTION, host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes,
                       int constant, int global)
{
    (void)device, (void)external, (void)bytes, (void)constant, (void)global;
    add(handle, SYMBOL_VARIABLE, host, name);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t bytes,
                              int constant, int global)
{
    (void)device, (void)external, (void)bytes, (void)constant, (void)global;
    add(handle, SYMBOL_MANAGED, host, name);
}

/* ---- managed variables: the program reads their addresses where it has registered them ---- */

static CUresult place_managed(const struct symbol *s)
{
    CUdeviceptr address;
    const CUresult result = cuLibraryGetManaged(&address, NULL, s->image->library, s->name);
    if (result == CUDA_SUCCESS) *(void **)(uintptr_t)s->host = (void *)(uintptr_t)address;
    return result;
}

/* Called before the program touches a managed variable. */
char __cudaInitModule(void **handle)
{
    struct image *image = (struct image *)(void *)handle;
    CUresult result = runtime_begin() ? CUDA_SUCCESS : runtime_why();
    pthread_mutex_lock(&lock);
    if (result == CUDA_SUCCESS) result = load(image);
    for (int i = 0; result == CUDA_SUCCESS && i < BUCKETS; i++)
        for (const struct symbol *s = bucket[i]; result == CUDA_SUCCESS && s != NULL; s = s->next)
            if (s->image == image && s->kind == SYMBOL_MANAGED) result = place_managed(s);
    pthread_mutex_unlock(&lock);
    runtime_end(result);
    return result == CUDA_SUCCESS;
}

/* A program names a managed variable by where it lies. */
static const struct symbol *find_managed(const void *address)
{
    for (int i = 0; i < BUCKETS; i++)
        for (const struct symbol *s = bucket[i]; s != NULL; s = s->next)
            if (s->kind == SYMBOL_MANAGED && *(void *const *)s->host == address) return s;
    return NULL;
}

/* ---- for the other files ---- */

static CUresult kernel_of(struct symbol *s)
{
    CUresult result = load(s->image);
    if (result == CUDA_SUCCESS && s->kernel == NULL) {
        result = cuLibraryGetKernel(&s->kernel, s->image->library, s->name);
        if (result == CUDA_ERROR_NOT_FOUND) result = (CUresult)cudaErrorInvalidDeviceFunction;
    }
    return result;
}

CUresult registry_function(const void *host, CUfunction *function)
{
    const char *name;
    pthread_mutex_lock(&lock);
    struct symbol *s = find(host);
    CUresult result = (CUresult)cudaErrorInvalidDeviceFunction;
    if (s != NULL && s->kind == SYMBOL_FUNCTION) {
        result = kernel_of(s);
        *function = (CUfunction)(void *)s->kernel;
    }
    pthread_mutex_unlock(&lock);
    if (s != NULL) return result;
    *function = (CUfunction)(uintptr_t)host;
    const bool handle = host != NULL
                        && (cuKernelGetName(&name, (CUkernel)(uintptr_t)host) == CUDA_SUCCESS
                            || cuFuncGetName(&name, *function) == CUDA_SUCCESS);
    return handle ? CUDA_SUCCESS : result;
}

void *registry_host_of(CUkernel kernel)
{
    const void *host = kernel;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BUCKETS && host == (const void *)kernel; i++)
        for (const struct symbol *s = bucket[i]; s != NULL; s = s->next)
            if (s->kernel == kernel) host = s->host;
    pthread_mutex_unlock(&lock);
    return (void *)(uintptr_t)host;
}

CUresult registry_variable(const void *host, CUdeviceptr *address, size_t *bytes)
{
    pthread_mutex_lock(&lock);
    const struct symbol *s = find(host);
    if (s == NULL) s = find_managed(host);
    CUresult result = (CUresult)cudaErrorInvalidSymbol;
    if (s != NULL && s->kind != SYMBOL_FUNCTION) {
        result = load(s->image);
        if (result == CUDA_SUCCESS) result = cuLibraryGetGlobal(address, bytes, s->image->library, s->name);
        if (result == CUDA_ERROR_NOT_FOUND) result = (CUresult)cudaErrorInvalidSymbol;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

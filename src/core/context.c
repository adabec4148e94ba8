/* Contexts: allocator, threads, CPU features, cached workspace. */
#include "core.h"
#include "pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MAX_THREADS = BSMI_MOST_THREADS, HUGE_PAGE = 2 << 20 };

struct bsmi_workspace {
    pthread_mutex_t lock;
    void *memory;
    size_t bytes;
};

/* Of huge pages, if there are such: a kernel's panels fill most of a second-level cache, and small pages fall on its
 * sets by chance. */
static void *allocate_huge(size_t bytes)
{
    void *memory = NULL;
    const size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (whole < bytes || posix_memalign(&memory, HUGE_PAGE, whole) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, whole, MADV_HUGEPAGE);      /* refused: pages stay small */
#endif
    return memory;
}

static void *default_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (bytes >= HUGE_PAGE) return allocate_huge(bytes);
    void *memory = NULL;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void default_release(void *user, void *memory, size_t bytes)
{
    (void)user, (void)bytes;
    free(memory);
}

void *bsmi_allocate(const bsm_context *context, size_t bytes)
{
    return bytes == 0 ? NULL : context->allocator.allocate(context->allocator.user, bytes, BSMI_ALIGNMENT);
}

void bsmi_release(const bsm_context *context, void *memory, size_t bytes)
{
    if (memory != NULL) context->allocator.release(context->allocator.user, memory, bytes);
}

static bsm_status check_threads(const char *name, int threads)
{
    if (threads < 0 || threads > MAX_THREADS)
        return bsmi_fail(BSM_EINVAL, "%s=%d: the number of threads is 0 (the machine's) to %d", name, threads,
                         MAX_THREADS);
    return BSM_OK;
}

static bsm_status choose_cpu_features(const bsm_context_options *options, uint32_t *features)
{
    uint32_t wanted = BSM_CPU_ALL;
    if (options->cpu_mask != 0) wanted &= options->cpu_mask;
    if (options->portable_only) wanted = 0;
    const char *list = getenv("BLOCKSCALE_CPU");
    if (list != NULL) {
        uint32_t allowed;
        if (!bsmi_cpu_parse(list, &allowed)) return BSM_EINVAL;
        wanted &= allowed;
    }
    *features = bsmi_cpu_detect(wanted);
    return BSM_OK;
}

bsm_status bsmi_context_make(const bsm_context_options *given, bsm_context **context)
{
    const bsm_context_options options = *given;
    bsm_status status = check_threads("options->threads", options.threads);
    if (status != BSM_OK) return status;
    uint32_t features;
    status = choose_cpu_features(&options, &features);
    if (status != BSM_OK) return status;

    bsm_allocator allocator = { default_allocate, default_release, NULL };
    if (options.allocator != NULL) allocator = *options.allocator;
    if (allocator.allocate == NULL || allocator.release == NULL)
        return bsmi_fail(BSM_EINVAL, "options->allocator->%s is NULL: give both functions",
                         allocator.allocate == NULL ? "allocate" : "release");

    bsm_context *made = allocator.allocate(allocator.user, sizeof *made, BSMI_ALIGNMENT);
    if (made == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a context (%zu bytes)", sizeof *made);
    *made = (bsm_context){ .allocator = allocator, .cpu_features = features, .forced_kernel = -1 };
    made->threads = options.threads != 0 ? options.threads : bsmi_default_threads();
    made->workspace = bsmi_allocate(made, sizeof *made->workspace);
    if (made->workspace == NULL || pthread_mutex_init(&made->workspace->lock, NULL) != 0) {
        bsmi_release(made, made->workspace, sizeof *made->workspace);
        allocator.release(allocator.user, made, sizeof *made);
        return bsmi_fail(BSM_ENOMEM, "no memory for a context's workspace");
    }
    made->workspace->memory = NULL;
    made->workspace->bytes = 0;
    *context = made;
    return BSM_OK;
}

void bsm_context_destroy(bsm_context *context)
{
    if (context == NULL) return;
    if (context->device != NULL) context->device->calls->close(context);
    const bsm_allocator allocator = context->allocator;
    bsmi_release(context, context->workspace->memory, context->workspace->bytes);
    pthread_mutex_destroy(&context->workspace->lock);
    bsmi_release(context, context->workspace, sizeof *context->workspace);
    allocator.release(allocator.user, context, sizeof *context);
}

bsm_status bsm_context_set_threads(bsm_context *context, int threads)
{
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    const bsm_status status = check_threads("threads", threads);
    if (status != BSM_OK) return status;
    context->threads = threads != 0 ? threads : bsmi_default_threads();
    return BSM_OK;
}

int bsm_context_threads(const bsm_context *context) { return context == NULL ? 0 : context->threads; }

uint32_t bsm_context_cpu_features(const bsm_context *context) { return context == NULL ? 0 : context->cpu_features; }

void *bsmi_workspace_lock(bsm_context *context, size_t bytes)
{
    struct bsmi_workspace *workspace = context->workspace;
    if (bytes == 0) bytes = 1;            /* so that NULL always means that the allocator failed */
    pthread_mutex_lock(&workspace->lock);
    if (workspace->bytes < bytes) {
        bsmi_release(context, workspace->memory, workspace->bytes);
        workspace->memory = bsmi_allocate(context, bytes);
        workspace->bytes = workspace->memory == NULL ? 0 : bytes;
    }
    if (workspace->bytes < bytes) {
        pthread_mutex_unlock(&workspace->lock);
        return NULL;
    }
    return workspace->memory;
}

void bsmi_workspace_unlock(bsm_context *context) { pthread_mutex_unlock(&context->workspace->lock); }

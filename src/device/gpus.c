/* GPUs that contexts use, and the workspace that a context keeps. */
#include "gpus.h"

bsm_status bsmi_gpus_acquire(struct bsmi_gpus *gpus, int number)
{
    bsm_status status = BSM_OK;
    if (number >= BSMI_MOST_GPUS)
        return bsmi_fail(BSM_EDEVICE, "device=%d: GPUs are numbered 0 to %d", number, BSMI_MOST_GPUS - 1);
    pthread_mutex_lock(&gpus->lock);
    if (gpus->users[number] == 0) status = gpus->load(number);
    if (status == BSM_OK) gpus->users[number]++;
    pthread_mutex_unlock(&gpus->lock);
    return status;
}

void bsmi_gpus_release(struct bsmi_gpus *gpus, int number)
{
    pthread_mutex_lock(&gpus->lock);
    if (--gpus->users[number] == 0) gpus->unload(number);
    pthread_mutex_unlock(&gpus->lock);
}

/* A stream that is being captured must not depend on work outside its graph, nor may memory be had while it is. */
static bsm_status refuse_capture(const struct bsmi_workspace *w, void *stream)
{
    bool capturing = false;
    const bsm_status status = w->calls->is_capturing(w->gpu, stream, &capturing);
    if (status == BSM_OK && capturing)
        return bsmi_fail(BSM_EINVAL,
                         "the stream is being captured: this call uses a workspace that the context keeps; "
                         "capture bsm_plan_run with a workspace of your own");
    return status;
}

static bsm_status grow(struct bsmi_workspace *w, size_t bytes)
{
    if (w->bytes >= bytes) return BSM_OK;
    void *old = w->memory;
    w->memory = NULL, w->bytes = 0;
    bsm_status status = old == NULL ? BSM_OK : w->calls->release(w->gpu, old);
    if (status == BSM_OK) status = w->calls->allocate(w->gpu, bytes, &w->memory);
    if (status == BSM_OK) w->bytes = bytes;
    else w->memory = NULL;
    return status;
}

bsm_status bsmi_workspace_acquire(struct bsmi_workspace *w, void *stream, size_t bytes, void **memory)
{
    pthread_mutex_lock(&w->lock);
    bsm_status status = refuse_capture(w, stream);
    if (status == BSM_OK) status = grow(w, bytes);
    if (status == BSM_OK) status = w->calls->wait(w->gpu, stream, w->free);
    if (status != BSM_OK) pthread_mutex_unlock(&w->lock);
    else *memory = w->memory;
    return status;
}

/* Marked also after a failure: what was launched before it uses the workspace. */
bsm_status bsmi_workspace_release(struct bsmi_workspace *w, void *stream, bsm_status status)
{
    status = w->calls->record(w->gpu, stream, w->free, status);
    pthread_mutex_unlock(&w->lock);
    return status;
}

/* A bsm_multiply with one fault, for the test of verify: the linker puts it in the place of the library's (--wrap).
 * The fault is named by the environment variable FAULT; only this test program reads it. */
#include "blockscale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bsm_status __real_bsm_supported(bsm_context *context, const bsm_matmul *product);
bsm_status __wrap_bsm_supported(bsm_context *context, const bsm_matmul *product);
bsm_status __real_bsm_multiply(bsm_context *context, const bsm_matmul *product);
bsm_status __wrap_bsm_multiply(bsm_context *context, const bsm_matmul *product);
bsm_status __real_bsm_plan_run(const bsm_plan *plan, const bsm_matmul *product, void *workspace, size_t bytes);
bsm_status __wrap_bsm_plan_run(const bsm_plan *plan, const bsm_matmul *product, void *workspace, size_t bytes);

enum { SUBNORMAL_LIMIT = 0x00800000, INFINITE = 0x7f800000 };

/* The fault in one element of D. */
static uint32_t change(const char *fault, uint32_t bits, bool last)
{
    const uint32_t magnitude = bits & 0x7fffffff;
    if (strcmp(fault, "last bit") == 0 && last && magnitude != 0) return bits ^ 1;
    if (strcmp(fault, "negative zero") == 0 && magnitude == 0) return 0x80000000;
    if (strcmp(fault, "nan sign") == 0 && magnitude > INFINITE) return bits ^ 0x80000000;
    if (strcmp(fault, "nan to zero") == 0 && magnitude > INFINITE) return 0;
    if (strcmp(fault, "saturate") == 0 && magnitude == INFINITE) return bits - 1;
    if (strcmp(fault, "flush") == 0 && magnitude < SUBNORMAL_LIMIT) return 0;
    if (strcmp(fault, "one unit above") == 0 && magnitude > 0 && magnitude < SUBNORMAL_LIMIT) return bits + 1;
    if (strcmp(fault, "double") == 0 && magnitude > 0 && magnitude < INFINITE - SUBNORMAL_LIMIT)
        return bits + SUBNORMAL_LIMIT;
    return bits;
}

static void spoil(const char *fault, const bsm_matrix *d)
{
    const int64_t pitch = d->pitch != 0 ? d->pitch : d->columns;
    uint32_t *data = d->data;
    for (int64_t i = 0; i < d->rows; i++)
        for (int64_t j = 0; j < d->columns; j++)
            data[i * pitch + j] = change(fault, data[i * pitch + j], i == d->rows - 1 && j == d->columns - 1);
    if (strcmp(fault, "behind the row") == 0 && pitch > d->columns) data[d->columns] = 0;
    if (strcmp(fault, "last row missing") == 0 && d->rows > 1)
        memset(data + (d->rows - 1) * pitch, 0xff, (size_t)d->columns * 4);
}

/* D lies in a GPU's memory: a copy of it is spoiled and written back. */
static void spoil_on_gpu(bsm_context *context, const char *fault, const bsm_matrix *d)
{
    bsm_matrix copy = *d;
    const size_t pitch = (size_t)(d->pitch != 0 ? d->pitch : d->columns);
    const size_t bytes = ((size_t)(d->rows - 1) * pitch + (size_t)d->columns) * sizeof(float);
    copy.data = malloc(bytes);
    if (copy.data == NULL || bsm_device_read(context, copy.data, d->data, bytes) != BSM_OK) abort();
    spoil(fault, &copy);
    if (bsm_device_write(context, d->data, copy.data, bytes) != BSM_OK) abort();
    free(copy.data);
}

/* "refuse all": as of a kernel that serves a pair and none of its problems. */
bsm_status __wrap_bsm_supported(bsm_context *context, const bsm_matmul *product)
{
    const char *fault = getenv("FAULT");
    if (fault == NULL || strcmp(fault, "refuse all") != 0) return __real_bsm_supported(context, product);
    bsm_context_set_threads(context, -1);            /* a sentence for bsm_last_error */
    return BSM_EUNSUPPORTED;
}

/* "no processor": as on a machine that does other work. */
static void wait_if_wanted(const char *fault)
{
    if (fault != NULL && strcmp(fault, "no processor") == 0) usleep(20000);
}

bsm_status __wrap_bsm_plan_run(const bsm_plan *plan, const bsm_matmul *product, void *workspace, size_t bytes)
{
    wait_if_wanted(getenv("FAULT"));
    return __real_bsm_plan_run(plan, product, workspace, bytes);
}

bsm_status __wrap_bsm_multiply(bsm_context *context, const bsm_matmul *product)
{
    const char *fault = getenv("FAULT");
    wait_if_wanted(fault);
    const bsm_status status = __real_bsm_multiply(context, product);
    if (fault == NULL || status != BSM_OK) return status;
    if (strcmp(fault, "refuse") == 0 && product->a->rows > 8) {
        bsm_context_set_threads(context, -1);        /* a sentence for bsm_last_error */
        return BSM_EUNSUPPORTED;
    }
    const bool this_pair = product->a->format == BSM_MXFP4 && product->b->format == BSM_NVFP4;
    if (strcmp(fault, "one pair") == 0) fault = this_pair ? "double" : "none";
    if (bsm_context_backend(context) == BSM_BACKEND_CPU) spoil(fault, product->d);
    else spoil_on_gpu(context, fault, product->d);
    return BSM_OK;
}

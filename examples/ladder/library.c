#include "library.h"

#include <stdio.h>
#include <string.h>

static void good(bsm_status status)
{
    if (status != BSM_OK) stop("%s", bsm_last_error());
}

/* The library names a kernel after what it multiplies by and its tile. */
static int kernel_of(const struct ladder_format *format, const char *tile)
{
    const char *kind = format->a != format->b || format->a == BSM_MXFP8_E4M3 ? "mxf8f6f4"
                       : format->a == BSM_MXFP4                              ? "mxf4"
                                                                             : "mxf4nvf4";
    char name[64];
    snprintf(name, sizeof name, "cuda_tcgen05_%s_%s", kind, tile);
    for (int i = 0; bsm_kernel_name(i) != NULL; i++)
        if (strcmp(bsm_kernel_name(i), name) == 0) return i;
    stop("step 6: the library has no kernel %s", name);
}

static bsm_matrix on_device(const struct operand *x, CUdeviceptr data, CUdeviceptr packed)
{
    bsm_matrix m = x->matrix;
    m.data = (void *)(uintptr_t)data, m.scales = (void *)(uintptr_t)packed;
    m.scale_layout = (bsm_scale_layout){ .kind = BSM_LAYOUT_128X4 };
    return m;
}

void library_plan(struct library_product *x, bsm_context *context, const struct loaded *loaded, const char *tile)
{
    const struct problem *p = loaded->problem;
    *x = (struct library_product){ .context = context };
    x->a = on_device(&p->a, loaded->a, loaded->scales[0][PACKED]);
    x->b = on_device(&p->b, loaded->b, loaded->scales[1][PACKED]);
    x->d = (bsm_matrix){ .struct_size = sizeof x->d, .format = p->d_is_half ? BSM_FORMAT_FP16 : BSM_FORMAT_FP32,
                         .rows = p->m, .columns = p->n,
                         .data = loaded->parameters.d, .pitch = loaded->d_pitch };
    x->call = (bsm_matmul){ .struct_size = sizeof x->call, .a = &x->a, .b = &x->b, .d = &x->d };
    good(bsm_context_force_kernel(context, kernel_of(p->format, tile)));
    good(bsm_plan_create(context, &x->call, &x->plan));
    x->workspace_bytes = bsm_plan_workspace_bytes(x->plan);
    good(bsm_device_allocate(context, x->workspace_bytes, &x->workspace));
}

void library_free(struct library_product *x)
{
    good(bsm_device_release(x->context, x->workspace));
    bsm_plan_destroy(x->plan);
}

void library_launch(const struct library_product *x)
{
    good(bsm_plan_run(x->plan, &x->call, x->workspace, x->workspace_bytes));
}

/* Plans: the only place that chooses a kernel, and says why. */
#include "blockscale/matmul.h"
#include "core/core.h"
#include "cpu/multiply.h"

#include <stdio.h>

struct bsm_plan {
    bsm_context *context;
    struct bsmi_product product;          /* its pointers are not used again */
    struct bsmi_cpu_multiply multiply;
    bool forced;
};

/* Choosing -------------------------------------------------------------------------------------------------------------- */

static bool runs_here(const bsm_context *context, const struct bsmi_kernel *kernel)
{
    return (kernel->needs & ~context->cpu_features) == 0;
}

const char *bsm_kernel_name(int index) { return index >= 0 && index < bsmi_kernel_count ? bsmi_kernels[index].name : NULL; }

bool bsm_kernel_serves(const bsm_context *context, int index, bsm_format a, bsm_format b)
{
    if (context == NULL || bsm_kernel_name(index) == NULL || bsm_format_get((int)a) == NULL || bsm_format_get((int)b) == NULL) return false;
    return runs_here(context, &bsmi_kernels[index]) && bsmi_kernels[index].serves(a, b);
}

bsm_status bsm_context_force_kernel(bsm_context *context, int index)
{
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (index < -1 || index >= bsmi_kernel_count)
        return bsmi_fail(BSM_EINVAL, "index=%d: kernels are numbered 0 to %d; -1 lets the library choose", index, bsmi_kernel_count - 1);
    context->forced_kernel = index;
    return BSM_OK;
}

static bsm_status choose_forced(const bsm_context *context, const struct bsmi_product *p, const struct bsmi_kernel **kernel)
{
    *kernel = &bsmi_kernels[context->forced_kernel];
    if (!runs_here(context, *kernel))
        return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but this context lacks a CPU feature that it needs", (*kernel)->name);
    if (!(*kernel)->serves(p->a.format, p->b.format))
        return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but it does not serve %s times %s", (*kernel)->name,
                         bsm_format_get((int)p->a.format)->name, bsm_format_get((int)p->b.format)->name);
    return BSM_OK;
}

/* The table is sorted best first. */
static bsm_status choose_kernel(const bsm_context *context, const struct bsmi_product *p, const struct bsmi_kernel **kernel)
{
    if (context->forced_kernel >= 0) return choose_forced(context, p, kernel);
    for (int i = 0; i < bsmi_kernel_count; i++) {
        *kernel = &bsmi_kernels[i];
        const bool meant = (*kernel)->most_rows == 0 || p->m <= (*kernel)->most_rows;
        if (meant && runs_here(context, *kernel) && (*kernel)->serves(p->a.format, p->b.format)) return BSM_OK;
    }
    return bsmi_fail(BSM_EUNSUPPORTED, "no kernel serves %s times %s", bsm_format_get((int)p->a.format)->name,
                     bsm_format_get((int)p->b.format)->name);
}

static bsm_status make_plan(bsm_context *context, const bsm_matmul *given, struct bsm_plan *plan)
{
    const struct bsmi_kernel *kernel = NULL;
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    plan->context = context;
    plan->forced = context->forced_kernel >= 0;
    bsm_status status = bsmi_product_check(given, &plan->product);
    if (status == BSM_OK) status = choose_kernel(context, &plan->product, &kernel);
    if (status == BSM_OK) status = bsmi_cpu_prepare(&plan->product, kernel, context->threads, &plan->multiply);
    return status;
}

/* The public calls ------------------------------------------------------------------------------------------------------ */

bsm_status bsm_supported(bsm_context *context, const bsm_matmul *product)
{
    struct bsm_plan plan;
    return make_plan(context, product, &plan);
}

bsm_status bsm_multiply(bsm_context *context, const bsm_matmul *product)
{
    struct bsm_plan plan;
    bsm_status status = make_plan(context, product, &plan);
    if (status == BSM_OK) status = bsmi_product_check_data(&plan.product);
    if (status != BSM_OK) return status;
    void *workspace = bsmi_workspace_lock(context, plan.multiply.workspace_bytes);
    if (workspace == NULL)
        return bsmi_fail(BSM_ENOMEM, "no memory for a workspace of %zu bytes", plan.multiply.workspace_bytes);
    bsmi_cpu_run(&plan.multiply, &plan.product, workspace);
    bsmi_workspace_unlock(context);
    return BSM_OK;
}

bsm_status bsm_plan_create(bsm_context *context, const bsm_matmul *product, bsm_plan **plan)
{
    struct bsm_plan made;
    if (plan == NULL) return bsmi_fail(BSM_EINVAL, "plan is NULL");
    *plan = NULL;
    const bsm_status status = make_plan(context, product, &made);
    if (status != BSM_OK) return status;
    struct bsm_plan *kept = bsmi_allocate(context, sizeof *kept);
    if (kept == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a plan (%zu bytes)", sizeof *kept);
    *kept = made;
    *plan = kept;
    return BSM_OK;
}

void bsm_plan_destroy(bsm_plan *plan)
{
    if (plan != NULL) bsmi_release(plan->context, plan, sizeof *plan);
}

size_t bsm_plan_workspace_bytes(const bsm_plan *plan) { return plan == NULL ? 0 : plan->multiply.workspace_bytes; }

bsm_status bsm_plan_run(const bsm_plan *plan, const bsm_matmul *given, void *workspace, size_t workspace_bytes)
{
    struct bsmi_product product;
    if (plan == NULL) return bsmi_fail(BSM_EINVAL, "plan is NULL");
    bsm_status status = bsmi_product_check(given, &product);
    if (status == BSM_OK) status = bsmi_product_same_shape(&plan->product, &product);
    if (status == BSM_OK) status = bsmi_product_check_data(&product);
    if (status != BSM_OK) return status;
    if (workspace == NULL) return bsmi_fail(BSM_EINVAL, "workspace is NULL: the plan needs %zu bytes", plan->multiply.workspace_bytes);
    if (workspace_bytes < plan->multiply.workspace_bytes)
        return bsmi_fail(BSM_EINVAL, "workspace_bytes=%zu: the plan needs %zu", workspace_bytes, plan->multiply.workspace_bytes);
    if ((uintptr_t)workspace % BSMI_ALIGNMENT != 0)
        return bsmi_fail(BSM_EALIGN, "workspace=%p is not aligned to %d bytes", workspace, BSMI_ALIGNMENT);
    status = bsmi_product_check_workspace(&product, workspace, plan->multiply.workspace_bytes);
    if (status != BSM_OK) return status;
    bsmi_cpu_run(&plan->multiply, &product, workspace);
    return BSM_OK;
}

static const char *reason(const struct bsm_plan *plan)
{
    const bool last = plan->multiply.kernel->needs == 0;
    if (plan->forced) return "forced by bsm_context_force_kernel";
    return last ? "portable C: this context has no CPU feature that a better kernel needs" : "the first kernel of the table that this CPU runs";
}

size_t bsm_plan_describe(const bsm_plan *plan, char *text, size_t bytes)
{
    if (plan == NULL) {
        if (bytes > 0) text[0] = '\0';
        return 0;
    }
    const struct bsmi_cpu_multiply *c = &plan->multiply;
    const struct bsmi_product *p = &plan->product;
    const int length = snprintf(text, bytes, "cpu, kernel %s, tiles of %lld x %lld, threads %d, order: %s; chosen for %s x %s: %s",
                                c->kernel->name, (long long)c->tile_rows, (long long)c->tile_columns, c->threads, c->kernel->order,
                                bsm_format_get((int)p->a.format)->name, bsm_format_get((int)p->b.format)->name, reason(plan));
    return length < 0 ? 0 : (size_t)length;
}

/* Names ------------------------------------------------------------------------------------------------------------------ */

static const char *const activations[BSM_ACT_COUNT] = { "none", "relu", "gelu", "gelu_tanh", "silu", "swiglu_clamped" };

const char *bsm_activation_name(int activation)
{
    return activation >= 0 && activation < BSM_ACT_COUNT ? activations[activation] : NULL;
}

int bsm_activation_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_ACT_COUNT; i++)
        if (strcmp(name, activations[i]) == 0) return i;
    return -1;
}

/* Plans: the only place that chooses a kernel, and says why. */
#include "blockscale/matmul.h"
#include "core/core.h"
#include "cpu/multiply.h"
#include "cpu/prepacked.h"
#include "cuda_select.h"
#include "hip_select.h"
#include "matrix/sparsity.h"
#include "product/k_major.h"

#include <stdio.h>

struct bsm_plan {
    bsm_context *context;
    struct bsmi_product product;          /* its pointers are not used again */
    struct bsmi_k_major k_major;          /* copies of MN-major and sparse operands */
    struct bsmi_product read;             /* the product with these, which kernels multiply */
    struct bsmi_cpu_multiply cpu;         /* of a CPU context */
    struct bsmi_hip_multiply hip;         /* of a context with a GPU of AMD */
    struct bsmi_hip_multiply hip_prepacked;   /* the same for products with prepacked weights; without an instance:
                                             `hip` serves them, too */
    struct bsmi_cuda_multiply cuda;       /* of a context with one of NVIDIA */
    struct bsmi_cuda_multiply prepacked;  /* as hip_prepacked */
    const char *gpu_reason;
    bool forced;
};

/* Choosing --------------------------------------------------------------------------------------------------------- */

static bool runs_here(const bsm_context *context, const struct bsmi_kernel *kernel)
{
    return (kernel->needs & ~context->cpu_features) == 0;
}

static bool has_order(const struct bsmi_kernel *kernel, const struct bsmi_product *p)
{
    return p->order != BSM_ORDER_PORTABLE || bsmi_family_is_portable(kernel->family);
}

/* Kernels of the CPU come first, then those of NVIDIA's GPUs, then those of AMD's. */
static int first_hip_kernel(void)
{
    int count = 0;
    while (bsmi_cuda_kernel_name(count) != NULL) count++;
    return bsmi_kernel_count + count;
}

const char *bsm_kernel_name(int index)
{
    if (index < 0) return NULL;
    if (index < bsmi_kernel_count) return bsmi_kernels[index].name;
    const char *of_cuda = bsmi_cuda_kernel_name(index - bsmi_kernel_count);
    return of_cuda != NULL ? of_cuda : bsmi_hip_kernel_name(index - first_hip_kernel());
}

bool bsm_kernel_serves(const bsm_context *context, int index, bsm_format a, bsm_format b)
{
    if (context == NULL || bsm_kernel_name(index) == NULL || bsm_format_get((int)a) == NULL
        || bsm_format_get((int)b) == NULL)
        return false;
    if (index >= first_hip_kernel()) return bsmi_hip_kernel_serves(context, index - first_hip_kernel(), a, b);
    if (index >= bsmi_kernel_count) return bsmi_cuda_kernel_serves(context, index - bsmi_kernel_count, a, b);
    return context->device == NULL && runs_here(context, &bsmi_kernels[index]) && bsmi_kernels[index].serves(a, b);
}

static int kernel_count(void)
{
    int count = bsmi_kernel_count;
    while (bsm_kernel_name(count) != NULL) count++;
    return count;
}

bsm_status bsm_context_force_kernel(bsm_context *context, int index)
{
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (index < -1 || index >= kernel_count())
        return bsmi_fail(BSM_EINVAL, "index=%d: kernels are numbered 0 to %d; -1 lets the library choose", index,
                         kernel_count() - 1);
    context->forced_kernel = index;
    return BSM_OK;
}

static bsm_status choose_forced(const bsm_context *context, const struct bsmi_product *p,
                                const struct bsmi_kernel **kernel)
{
    if (context->forced_kernel >= bsmi_kernel_count)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "kernel %s was forced, but it is one of GPUs and this context one of the CPU",
                         bsm_kernel_name(context->forced_kernel));
    *kernel = &bsmi_kernels[context->forced_kernel];
    if (!runs_here(context, *kernel))
        return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but this context lacks a CPU feature that it needs",
                         (*kernel)->name);
    if (!(*kernel)->serves(p->a.format, p->b.format))
        return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but it does not serve %s times %s", (*kernel)->name,
                         bsm_format_get((int)p->a.format)->name, bsm_format_get((int)p->b.format)->name);
    if (!has_order(*kernel, p))
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "kernel %s was forced, but product->order is BSM_ORDER_PORTABLE, and its order is another one",
                         (*kernel)->name);
    return BSM_OK;
}

/* The table is sorted best first.  Its first row for the pair decides the family, whatever M is: others have other
 * bits. */
static bsm_status choose_kernel(const bsm_context *context, const struct bsmi_product *p,
                                const struct bsmi_kernel **kernel)
{
    if (context->forced_kernel >= 0) return choose_forced(context, p, kernel);
    const struct bsmi_kernel *first = NULL;
    for (int i = 0; i < bsmi_kernel_count; i++) {
        const struct bsmi_kernel *k = *kernel = &bsmi_kernels[i];
        if (!runs_here(context, k) || !k->serves(p->a.format, p->b.format) || !has_order(k, p)) continue;
        if (first == NULL) first = k;
        if (k->family == first->family && (k->most_rows == 0 || p->m <= k->most_rows)) return BSM_OK;
    }
    return bsmi_fail(BSM_EUNSUPPORTED, "no kernel serves %s times %s", bsm_format_get((int)p->a.format)->name,
                     bsm_format_get((int)p->b.format)->name);
}

static bsm_status plan_cpu(const bsm_context *context, struct bsm_plan *plan)
{
    const struct bsmi_kernel *kernel = NULL;
    const bsm_status status = choose_kernel(context, &plan->read, &kernel);
    return status == BSM_OK ? bsmi_cpu_prepare(&plan->read, kernel, context->threads, &plan->cpu) : status;
}

static bsm_status fail_without_codes(const struct bsm_plan *plan)
{
    return bsmi_fail(BSM_EUNSUPPORTED,
                     "kernel %s was forced, but b->data is NULL, and A is %s: it reads B's codes for rows of A whose "
                     "exponents do not fit",
                     bsmi_cuda_kernel_name(plan->cuda.gemm + 1), bsm_format_get((int)plan->product.a.format)->name);
}

static bsm_status plan_cuda(const bsm_context *context, struct bsm_plan *plan)
{
    const int forced = context->forced_kernel;
    if (plan->forced && (forced < bsmi_kernel_count || forced >= first_hip_kernel()))
        return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but it is one of %s and this context has a GPU%s",
                         bsm_kernel_name(forced), forced < bsmi_kernel_count ? "the CPU" : "GPUs of AMD",
                         forced < bsmi_kernel_count ? "" : " of NVIDIA");
    const int number = plan->forced ? forced - bsmi_kernel_count : -1;
    const bsm_status status = bsmi_cuda_choose(context, &plan->read, number, &plan->cuda, &plan->gpu_reason);
    plan->prepacked = (struct bsmi_cuda_multiply){ .gemm = -1 };
    if (status != BSM_OK || plan->k_major.b) return status;
    /* Fallback rows of A would need B's codes. */
    if (plan->product.b_alone && plan->product.a.scale == BSM_E8M0)
        return bsmi_cuda_wants_prepacked(&plan->cuda) ? fail_without_codes(plan) : BSM_OK;
    return bsmi_cuda_choose_prepacked(context, &plan->read, number, &plan->cuda, &plan->prepacked);
}

static bsm_status plan_hip(const bsm_context *context, struct bsm_plan *plan)
{
    const int forced = context->forced_kernel;
    if (plan->forced && forced < first_hip_kernel())
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "kernel %s was forced, but it is none of GPUs of AMD, and this context has such a GPU",
                         bsm_kernel_name(forced));
    const int number = plan->forced ? forced - first_hip_kernel() : -1;
    const bsm_status status = bsmi_hip_choose(context, &plan->read, number, &plan->hip, &plan->gpu_reason);
    plan->hip_prepacked = (struct bsmi_hip_multiply){ .gemm = -1 };
    return status != BSM_OK || plan->k_major.b
               ? status
               : bsmi_hip_choose_prepacked(context, &plan->read, number, &plan->hip, &plan->hip_prepacked);
}

static bool on_device(const struct bsm_plan *plan) { return plan->context->device != NULL; }
static bool on_hip(const struct bsm_plan *plan) { return bsm_context_backend(plan->context) == BSM_BACKEND_HIP; }
static bool on_cuda(const struct bsm_plan *plan) { return bsm_context_backend(plan->context) == BSM_BACKEND_CUDA; }

static size_t workspace_bytes(const struct bsm_plan *plan)
{
    return on_hip(plan)    ? BSMI_MAX(plan->hip.workspace_bytes, plan->hip_prepacked.workspace_bytes)
           : on_cuda(plan) ? BSMI_MAX(plan->cuda.workspace_bytes, plan->prepacked.workspace_bytes)
                           : plan->cpu.workspace_bytes;
}

static const struct bsmi_cuda_multiply *cuda_of(const struct bsm_plan *plan, const struct bsmi_product *product)
{
    return product->b_panels != NULL && plan->prepacked.gemm >= 0 ? &plan->prepacked : &plan->cuda;
}

static const struct bsmi_hip_multiply *hip_of(const struct bsm_plan *plan, const struct bsmi_product *product)
{
    return product->b_panels != NULL && plan->hip_prepacked.gemm >= 0 ? &plan->hip_prepacked : &plan->hip;
}

/* A forced kernel that reads prepacked weights alone has nothing to read without them. */
static bsm_status check_forced_panels(const struct bsm_plan *plan, const struct bsmi_product *product)
{
    const bool wants = on_hip(plan)    ? bsmi_hip_wants_prepacked(&plan->hip)
                       : on_cuda(plan) ? bsmi_cuda_wants_prepacked(&plan->cuda)
                                       : false;
    if (!wants || (product->b_panels != NULL && !plan->k_major.b)) return BSM_OK;
    return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but it reads prepacked weights, and %s",
                     on_hip(plan) ? bsmi_hip_kernel_name(plan->hip.gemm + 1)
                                  : bsmi_cuda_kernel_name(plan->cuda.gemm + 1),
                     plan->k_major.b ? plan->product.b.major == BSM_MAJOR_MN ? "b->major is mn" : "b is sparse"
                                     : "product->b_panels is NULL");
}

/* The operands that kernels read MN-major, or a sparse B, beside which A is K-major. */
static struct bsmi_read_majors read_as_stored(const bsm_context *context, const struct bsm_plan *plan,
                                              const struct bsmi_product *p)
{
    const int forced = plan->forced ? context->forced_kernel - bsmi_kernel_count : -1;
    if (!on_cuda(plan)) return (struct bsmi_read_majors){ false, false };
    if (bsmi_cuda_takes_sparse(context, p, forced)) return (struct bsmi_read_majors){ false, true };
    return bsmi_cuda_read_majors(context, p, forced);
}

/* The kernel, for operands that are K-major by then, or that it reads as they are. */
static bsm_status choose(bsm_context *context, struct bsm_plan *plan)
{
    struct bsmi_product planned = plan->product;
    planned.b_panels = NULL;
    const struct bsmi_read_majors reads = read_as_stored(context, plan, &planned);
    const bsm_status status = bsmi_k_major_prepare(&planned, !reads.a, !reads.b, &plan->k_major);
    if (status != BSM_OK) return status;
    plan->read = bsmi_k_major_product(&plan->k_major, &planned, NULL);
    return on_hip(plan) ? plan_hip(context, plan) : on_cuda(plan) ? plan_cuda(context, plan) : plan_cpu(context, plan);
}

/* What the copies take of the workspace, and where they lie. */
static void tell_backends(struct bsm_plan *plan)
{
    struct bsmi_cuda_multiply *cuda[] = { &plan->cuda, &plan->prepacked };
    struct bsmi_k_major of_prepacked = plan->k_major;     /* where B need not be unpacked */
    if (of_prepacked.unpacks_b) of_prepacked.unpacks_b = false, of_prepacked.workspace_bytes = of_prepacked.b_at;
    struct bsmi_hip_multiply *hip[] = { &plan->hip, &plan->hip_prepacked };
    if (!on_device(plan)) plan->cpu.workspace_bytes += plan->k_major.workspace_bytes;
    for (int i = 0; i < 2; i++)
        if (on_hip(plan)) {
            hip[i]->k_major = plan->k_major;
            hip[i]->workspace_bytes += plan->k_major.workspace_bytes;
        } else if (on_cuda(plan)) {
            cuda[i]->k_major = i == 0 ? plan->k_major : of_prepacked;
            cuda[i]->workspace_bytes += cuda[i]->k_major.workspace_bytes;
        }
}

/* What may be done with prepacked weights and no codes of B. */
static bsm_status check_panels_alone(const struct bsm_plan *plan, const struct bsmi_product *product)
{
    if (!on_cuda(plan))
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "b->data is NULL, and prepacked weights alone are for contexts with a GPU of NVIDIA: give B's "
                         "codes and scales besides product->b_panels");
    const char *rule = bsmi_cuda_rule_of_panels_alone(bsmi_cuda_device_of(plan->context)->gpu, product);
    return rule == NULL ? BSM_OK
                        : bsmi_fail(BSM_EUNSUPPORTED,
                                    "b->data is NULL, but B cannot be its prepacked weights alone: %s", rule);
}

static bsm_status make_plan(bsm_context *context, const bsm_matmul *given, struct bsm_plan *plan)
{
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    plan->context = context;
    plan->forced = context->forced_kernel >= 0;
    bsm_status status = bsmi_product_check(given, on_device(plan), &plan->product);
    if (status == BSM_OK && plan->product.b_alone) status = check_panels_alone(plan, &plan->product);
    if (status != BSM_OK) return status;
    const bsm_status chosen = choose(context, plan);
    if (chosen != BSM_OK) return chosen;
    tell_backends(plan);
    return bsmi_product_check_panels(&plan->product, bsm_plan_b_panels_bytes(plan));
}

/* By the CPU: the copies, and the product. */
static void run_cpu(const struct bsm_plan *plan, const struct bsmi_product *product, void *workspace)
{
    const struct bsmi_k_major *k = &plan->k_major;
    const struct bsmi_product read = bsmi_k_major_product(k, product, workspace);
    if (k->a) bsmi_k_major_copy(&product->a, &read.a, plan->cpu.threads);
    if (bsmi_k_major_copies_b(k, product)) bsmi_k_major_copy(&product->b, &read.b, plan->cpu.threads);
    bsmi_cpu_run(&plan->cpu, &read, bsmi_k_major_behind(k, workspace));
}

/* What the kernel's prepacked weights have to be, of the CPU. */
static bsm_status check_kernel_panels(const struct bsm_plan *plan, const struct bsmi_product *product)
{
    const struct bsmi_product read = bsmi_k_major_product(&plan->k_major, product, NULL);
    return bsmi_prepacked_check(&read);
}

/* The public calls ------------------------------------------------------------------------------------------------- */

bsm_status bsm_supported(bsm_context *context, const bsm_matmul *product)
{
    struct bsm_plan plan;
    const bsm_status status = make_plan(context, product, &plan);
    return status == BSM_OK ? check_forced_panels(&plan, &plan.product) : status;
}

bsm_status bsm_multiply(bsm_context *context, const bsm_matmul *product)
{
    struct bsm_plan plan;
    bsm_status status = make_plan(context, product, &plan);
    if (status == BSM_OK) status = check_forced_panels(&plan, &plan.product);
    if (status == BSM_OK && on_hip(&plan))
        return bsmi_hip_multiply(context, hip_of(&plan, &plan.product), &plan.product);
    if (status == BSM_OK && on_cuda(&plan))
        return bsmi_cuda_multiply(context, cuda_of(&plan, &plan.product), &plan.product);
    if (status == BSM_OK) status = bsmi_product_check_data(&plan.product);
    if (status == BSM_OK) status = check_kernel_panels(&plan, &plan.product);
    if (status != BSM_OK) return status;
    void *workspace = bsmi_workspace_lock(context, plan.cpu.workspace_bytes);
    if (workspace == NULL)
        return bsmi_fail(BSM_ENOMEM, "no memory for a workspace of %zu bytes", plan.cpu.workspace_bytes);
    run_cpu(&plan, &plan.product, workspace);
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

size_t bsm_plan_workspace_bytes(const bsm_plan *plan) { return plan == NULL ? 0 : workspace_bytes(plan); }

static bsm_status check_workspace(const struct bsm_plan *plan, const struct bsmi_product *product, void *workspace,
                                  size_t bytes)
{
    const size_t needed = workspace_bytes(plan), alignment = on_hip(plan)    ? BSMI_HIP_ALIGNMENT
                                                              : on_cuda(plan) ? BSMI_CUDA_ALIGNMENT
                                                                              : BSMI_ALIGNMENT;
    if (needed == 0) return BSM_OK;
    if (workspace == NULL) return bsmi_fail(BSM_EINVAL, "workspace is NULL: the plan needs %zu bytes", needed);
    if (bytes < needed) return bsmi_fail(BSM_EINVAL, "workspace_bytes=%zu: the plan needs %zu", bytes, needed);
    if ((uintptr_t)workspace % alignment != 0)
        return bsmi_fail(BSM_EALIGN, "workspace=%p is not aligned to %zu bytes", workspace, alignment);
    return bsmi_product_check_apart(product, bsm_plan_b_panels_bytes(plan), "workspace", workspace, needed);
}

bsm_status bsm_plan_run(const bsm_plan *plan, const bsm_matmul *given, void *workspace, size_t bytes)
{
    struct bsmi_product product;
    if (plan == NULL) return bsmi_fail(BSM_EINVAL, "plan is NULL");
    bsm_status status = bsmi_product_check(given, on_device(plan), &product);
    if (status == BSM_OK) status = bsmi_product_same_shape(&plan->product, &product);
    if (status == BSM_OK && product.b_alone != plan->product.b_alone)
        status = bsmi_fail(BSM_EINVAL, "b->data=%p, but the plan was made for %s: make another plan",
                           (void *)product.b.data,
                           plan->product.b_alone ? "prepacked weights alone, and NULL" : "codes");
    if (status == BSM_OK) status = bsmi_product_check_panels(&product, bsm_plan_b_panels_bytes(plan));
    if (status == BSM_OK) status = check_forced_panels(plan, &product);
    if (status == BSM_OK && !on_device(plan)) status = bsmi_product_check_data(&product);
    if (status == BSM_OK && !on_device(plan)) status = check_kernel_panels(plan, &product);
    if (status == BSM_OK) status = check_workspace(plan, &product, workspace, bytes);
    if (status != BSM_OK) return status;
    if (on_hip(plan)) return bsmi_hip_run(plan->context, hip_of(plan, &product), &product, workspace);
    if (on_cuda(plan)) return bsmi_cuda_run(plan->context, cuda_of(plan, &product), &product, workspace);
    run_cpu(plan, &product, workspace);
    return BSM_OK;
}

size_t bsm_plan_b_panels_bytes(const bsm_plan *plan)
{
    if (plan == NULL) return 0;
    if (plan->k_major.b) return plan->k_major.b_bytes;
    if (plan->product.b_alone) return bsmi_cuda_nibble_panels_bytes(&plan->product.b);
    return on_hip(plan)    ? bsmi_hip_prepacked_bytes(&plan->hip_prepacked, &plan->read)
           : on_cuda(plan) ? bsmi_cuda_prepacked_bytes(&plan->prepacked, &plan->read)
                           : bsmi_prepacked_bytes(plan->cpu.kernel, &plan->read);
}

/* The copy of an MN-major or sparse B. */
static bsm_status pack_copy(const struct bsm_plan *plan, const struct bsmi_product *product, void *panels)
{
    const struct bsmi_matrix copy = bsmi_k_major_panels(&product->b, panels);
    if (on_hip(plan)) return bsmi_hip_copy_k_major(plan->context, product->stream, &product->b, &copy);
    if (on_cuda(plan)) return bsmi_cuda_copy_k_major(plan->context, product->stream, &product->b, &copy);
    bsmi_k_major_copy(&product->b, &copy, plan->cpu.threads);
    return BSM_OK;
}

static bsm_status pack_b(const struct bsm_plan *plan, const struct bsmi_product *product, void *panels)
{
    if (plan->k_major.b) return pack_copy(plan, product, panels);
    if (on_hip(plan)) return bsmi_hip_pack(plan->context, product, panels);
    if (on_cuda(plan)) return bsmi_cuda_pack(plan->context, &plan->prepacked, product, panels);
    bsmi_cpu_prepack(&plan->cpu, product, panels);
    return BSM_OK;
}

bsm_status bsm_plan_pack_b(const bsm_plan *plan, const bsm_matmul *given, void *panels, size_t bytes)
{
    struct bsmi_product product;
    if (plan == NULL) return bsmi_fail(BSM_EINVAL, "plan is NULL");
    const size_t needed = bsm_plan_b_panels_bytes(plan);
    if (needed == 0)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "the plan's kernel %s reads B as it is stored: it has no prepacked form that could be kept",
                         on_hip(plan)    ? bsmi_hip_kernel_name(plan->hip.gemm + 1)
                         : on_cuda(plan) ? bsmi_cuda_kernel_name(plan->cuda.gemm + 1)
                                         : plan->cpu.kernel->name);
    if (panels == NULL) return bsmi_fail(BSM_EINVAL, "panels is NULL: %zu bytes are written", needed);
    if (bytes < needed) return bsmi_fail(BSM_EINVAL, "bytes=%zu: the panels need %zu", bytes, needed);
    if ((uintptr_t)panels % BSMI_ALIGNMENT != 0)
        return bsmi_fail(BSM_EALIGN, "panels=%p is not aligned to %d bytes", panels, (int)BSMI_ALIGNMENT);
    bsm_status status = bsmi_product_check(given, on_device(plan), &product);
    if (status == BSM_OK) status = bsmi_product_same_shape(&plan->product, &product);
    if (status == BSM_OK && product.b_alone)
        status = bsmi_fail(BSM_EINVAL, "b->data is NULL: panels are made of B's codes and scales");
    if (status == BSM_OK && !on_device(plan)) status = bsmi_metadata_check("b", &product.b);
    if (status == BSM_OK) status = bsmi_product_check_apart(&product, 0, "panels", panels, needed);
    return status == BSM_OK ? pack_b(plan, &product, panels) : status;
}

bsm_status bsm_plan_unpack_b(const bsm_plan *plan, const bsm_matmul *given)
{
    struct bsmi_product product;
    if (plan == NULL) return bsmi_fail(BSM_EINVAL, "plan is NULL");
    bsm_status status = bsmi_product_check(given, on_device(plan), &product);
    if (status == BSM_OK) status = bsmi_product_same_shape(&plan->product, &product);
    if (status != BSM_OK) return status;
    if (!on_cuda(plan))
        return bsmi_fail(BSM_EUNSUPPORTED, "prepacked weights are unpacked by contexts with a GPU of NVIDIA alone");
    const char *rule = bsmi_cuda_rule_of_panels_alone(bsmi_cuda_device_of(plan->context)->gpu, &product);
    if (rule != NULL) return bsmi_fail(BSM_EUNSUPPORTED, "these prepacked weights cannot be unpacked: %s", rule);
    if (product.b_panels == NULL) return bsmi_fail(BSM_EINVAL, "product->b_panels is NULL");
    if (product.b_alone) return bsmi_fail(BSM_EINVAL, "b->data is NULL: B's codes and scales are written there");
    status = bsmi_product_check_unpacked(&product, bsmi_cuda_nibble_panels_bytes(&product.b));
    return status == BSM_OK ? bsmi_cuda_unpack(plan->context, &product) : status;
}

static const char *reason(const struct bsm_plan *plan)
{
    const bool last = plan->cpu.kernel->needs == 0;
    if (plan->forced) return "forced by bsm_context_force_kernel";
    return last ? "portable C: this context has no CPU feature that a better kernel needs"
                : "the first kernel of the table that this CPU runs";
}

static size_t describe_kernel(const bsm_plan *plan, char *text, size_t bytes)
{
    if (on_hip(plan))
        return bsmi_hip_describe_plan(&plan->product, &plan->hip, &plan->hip_prepacked, plan->gpu_reason, text, bytes);
    if (on_cuda(plan))
        return bsmi_cuda_describe_plan(&plan->product, &plan->cuda, &plan->prepacked, plan->gpu_reason, text, bytes);
    const struct bsmi_cpu_multiply *c = &plan->cpu;
    const struct bsmi_product *p = &plan->product;
    const int length =
        snprintf(text, bytes, "cpu, kernel %s, tiles of %lld x %lld, threads %d, order: %s; chosen for %s x %s: %s",
                 c->kernel->name, (long long)c->tile_rows, (long long)c->tile_columns, c->threads,
                 bsmi_family_order(c->kernel->family),
                 bsm_format_get((int)p->a.format)->name, bsm_format_get((int)p->b.format)->name, reason(plan));
    return length < 0 ? 0 : (size_t)length;
}

/* Behind the `length` characters that were wanted so far; how many more. */
static size_t describe_copies(const char *what, bool a, bool b, char *text, size_t bytes, size_t length)
{
    const size_t used = BSMI_MIN(length, bytes);
    if (!a && !b) return 0;
    const int more = snprintf(bytes == 0 ? NULL : text + used, bytes - used, "; %s first: %s%s%s", what, a ? "A" : "",
                              a && b ? ", " : "", b ? "B (once, if it is prepacked)" : "");
    return more < 0 ? 0 : (size_t)more;
}

size_t bsm_plan_describe(const bsm_plan *plan, char *text, size_t bytes)
{
    if (plan == NULL) {
        if (bytes > 0) text[0] = '\0';
        return 0;
    }
    const struct bsmi_product *p = &plan->product;
    size_t length = describe_kernel(plan, text, bytes);
    const struct bsmi_k_major *k = &plan->k_major;
    length += describe_copies("stored MN-major and copied K-major", k->a && p->a.major == BSM_MAJOR_MN,
                              k->b && p->b.major == BSM_MAJOR_MN, text, bytes, length);
    return length + describe_copies("sparse, and copied with their zeros", p->a.sparsity != BSM_SPARSITY_NONE,
                                    plan->k_major.b && p->b.sparsity != BSM_SPARSITY_NONE, text, bytes, length);
}

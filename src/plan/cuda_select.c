/* Which GEMM instance a product gets on a GPU: the one with the least expected time. */
#include "cuda_select.h"
#include "cuda_cost.h"

const char *bsmi_cuda_kernel_name(int number)
{
    if (number == 0) return "cuda_simt";
    return number > 0 && number <= bsmi_gemm_instance_count ? bsmi_gemm_instances[number - 1].name : NULL;
}

static bool is_fast_pair(int gemm, const struct bsmi_product *p)
{
    return bsmi_gemm_instances[gemm].operands == BSMI_OPERANDS_FP8 && bsmi_fp8_serves(p->a.format, p->b.format);
}

/* Kernels of BSM_COMPUTE_FAST serve nothing that is to be exact. */
static bool serves_fast(int gemm, const struct bsmi_product *p)
{
    return p->compute == BSM_COMPUTE_FAST && p->column_groups == 0 && is_fast_pair(gemm, p);
}

/* A sparse B as it is stored: what it leaves out is not looked at, so that only BSM_COMPUTE_FAST permits it. */
static bool serves_sparse(int gemm, const struct bsmi_product *p)
{
    return bsmi_gemm_instances[gemm].sparse && !p->b_alone && p->column_groups == 0 && p->order != BSM_ORDER_PORTABLE
           && bsmi_cuda_tensor_serves(p) && bsmi_sparse_rule(p) == NULL
           && bsmi_cuda_gemm_serves(&bsmi_gemm_instances[gemm], p, NULL);
}

bool bsmi_cuda_takes_sparse(const bsm_context *context, const struct bsmi_product *p, int forced)
{
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    if (forced >= 0)                      /* a rule that is broken is named later */
        return forced > 0 && forced <= bsmi_gemm_instance_count && bsmi_gemm_instances[forced - 1].sparse;
    for (int i = 0; i < bsmi_gemm_instance_count && p->compute == BSM_COMPUTE_FAST; i++)
        if (gpu->gemms[i] != NULL && serves_sparse(i, p)) return true;
    return false;
}

/* bf16 rows are made of anything, fp16 of two terms of them; a kernel that dequantizes B itself knows some formats. */
static bool serves(int gemm, bsm_format a, bsm_format b)
{
    const enum bsmi_gemm_operands kind = bsmi_gemm_instances[gemm].operands;
    const enum bsmi_gemm_codes codes = bsmi_gemm_instances[gemm].codes;
    if (codes != BSMI_CODES_NONE && !bsmi_cuda_dequantizes(codes, b)) return false;
    if (bsmi_gemm_reads_any_scales(&bsmi_gemm_instances[gemm]) && a == BSM_FORMAT_FP16) return false;
    if (kind == BSMI_OPERANDS_INT8) return a == BSM_MXFP4 && b == BSM_MXFP4;
    return kind == BSMI_OPERANDS_BF16 || bsmi_codes_serve(&bsmi_gemm_instances[gemm], a, b);
}

bool bsmi_cuda_kernel_serves(const bsm_context *context, int number, bsm_format a, bsm_format b)
{
    if (bsm_context_backend(context) != BSM_BACKEND_CUDA || bsmi_cuda_kernel_name(number) == NULL) return false;
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    const CUfunction function = number == 0 ? gpu->kernels[BSMI_KERNEL_SUMS] : gpu->gemms[number - 1];
    if (number > 0 && (!serves(number - 1, a, b) || bsmi_gemm_reads_prepacked(&bsmi_gemm_instances[number - 1])))
        return false;
    return a != BSM_FORMAT_FP32 && b != BSM_FORMAT_FP32 && function != NULL;
}

static bool has_tf32(const struct bsmi_cuda_gpu *gpu)
{
    for (int i = 0; i < bsmi_gemm_instance_count; i++)
        if (gpu->gemms[i] != NULL && bsmi_gemm_has_tensor_memory(&bsmi_gemm_instances[i])
            && bsmi_gemm_instances[i].operands == BSMI_OPERANDS_BF16) return true;
    return false;
}

/* Why fp32 operands are not multiplied as tf32; NULL: they are. */
static const char *tf32_rule(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, int forced)
{
    return p->compute != BSM_COMPUTE_TF32 ? "GPUs have no exact fp32 products in their tensor cores"
           : !has_tf32(gpu) ? "BSM_COMPUTE_TF32 is for GPUs of compute capability 10.x"
           : p->a.format != p->b.format ? "BSM_COMPUTE_TF32 is for two operands of fp32"
           : p->order == BSM_ORDER_PORTABLE ? "BSM_COMPUTE_TF32 has not the order of BSM_ORDER_PORTABLE"
           : p->column_groups > 0 ? "BSM_COMPUTE_TF32 is not for groups along K"
           : p->k > 0 && (!bsmi_cuda_tensor_serves(p) || forced == 0)
               ? "cuda_simt, which this product would get, has no tf32"
               : NULL;
}

static bsm_status check_operands(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, int forced)
{
    const bool a_is_fp32 = p->a.format == BSM_FORMAT_FP32, b_is_fp32 = p->b.format == BSM_FORMAT_FP32;
    const char *rule = a_is_fp32 || b_is_fp32 ? tf32_rule(gpu, p, forced) : NULL;
    if (rule == NULL) return BSM_OK;
    return bsmi_fail(BSM_EUNSUPPORTED, "%s->format=fp32: %s; give bf16 or fp16, or use a CPU context",
                     a_is_fp32 ? "a" : "b", rule);
}

/* Whether the pair is multiplied as codes on this GPU, whatever the sizes: the order of sums depends on it. */
static bool takes_codes(const struct bsmi_cuda_gpu *gpu, bsm_format a, bsm_format b)
{
    for (int i = 0; i < bsmi_gemm_instance_count; i++)
        if (gpu->gemms[i] != NULL && bsmi_codes_serve(&bsmi_gemm_instances[i], a, b)) return true;
    return false;
}

/* A function of the operands, not of sizes: tiles of 8 rows, which read no MN-major codes, are passed over. */
struct bsmi_read_majors bsmi_cuda_read_majors(const bsm_context *context, const struct bsmi_product *p, int forced)
{
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    const bool codes = takes_codes(gpu, p->a.format, p->b.format);
    struct bsmi_read_majors reads = { false, false };
    if (p->order == BSM_ORDER_PORTABLE || !bsmi_cuda_tensor_serves(p)) return reads;
    for (int i = 0; i < bsmi_gemm_instance_count && forced != 0; i++) {
        const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[i];
        if (gpu->gemms[i] == NULL || (forced > 0 && i != forced - 1) || !serves(i, p->a.format, p->b.format)
            || (forced < 0 && codes && g->operands == BSMI_OPERANDS_BF16)) continue;
        reads.a = reads.a || (p->a.major == BSM_MAJOR_MN && bsmi_cuda_reads_mn_major(g, p, &p->a, g->a_box_rows));
        reads.b = reads.b || (p->b.major == BSM_MAJOR_MN && bsmi_cuda_reads_mn_major(g, p, &p->b, g->b_box_rows));
    }
    return reads;
}

/* Whether prepacked weights are multiplied in the order BSM_ORDER_SPLIT_K: whatever M and N are. */
static bool splits_k(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p)
{
    if (p->order != BSM_ORDER_SPLIT_K || !bsmi_cuda_has_split_k_order(p)) return false;
    for (int i = 0; i < bsmi_gemm_instance_count; i++)
        if (gpu->gemms[i] != NULL && bsmi_gemm_has_k_parts(&bsmi_gemm_instances[i])
            && serves(i, p->a.format, p->b.format) && bsmi_cuda_gemm_serves(&bsmi_gemm_instances[i], p, NULL))
            return true;
    return false;
}

/* Of those that read prepacked weights, or of the others; -1: none.  One that the table does not know is taken only
 * where it knows none, and one for groups only where it knows what that takes without them. */
static int fastest_gemm(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, bool prepacked, double *least)
{
    const bool k_parts = prepacked && splits_k(gpu, p);
    const bool codes = takes_codes(gpu, p->a.format, p->b.format);
    int chosen = -1;
    *least = 0;
    for (int i = 0; i < bsmi_gemm_instance_count; i++) {
        if (gpu->gemms[i] == NULL || bsmi_gemm_reads_prepacked(&bsmi_gemm_instances[i]) != prepacked
            || !serves(i, p->a.format, p->b.format) || (codes && bsmi_gemm_instances[i].operands == BSMI_OPERANDS_BF16)
            || bsmi_gemm_instances[i].column_groups != (p->column_groups > 0) || bsmi_gemm_instances[i].splits_k
            || bsmi_gemm_has_k_parts(&bsmi_gemm_instances[i]) != k_parts
            || (bsmi_gemm_instances[i].adds_up_groups && p->groups == 0 && bsmi_gemm_instances[i].cost.single == 0)
            || !bsmi_cuda_gemm_serves(&bsmi_gemm_instances[i], p, NULL))
            continue;
        const double time = bsmi_cuda_cost(gpu, i, p);
        if (chosen < 0 || (time > 0 && (*least == 0 || time < *least))) chosen = i, *least = time;
    }
    return chosen;
}

static int fastest_sparse(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p)
{
    int chosen = -1;
    for (int i = 0; i < bsmi_gemm_instance_count; i++)
        if (gpu->gemms[i] != NULL && serves_sparse(i, p)
            && (chosen < 0 || bsmi_cuda_cost(gpu, i, p) < bsmi_cuda_cost(gpu, chosen, p)))
            chosen = i;
    return chosen;
}

/* Number of the GEMM instance, or -1: none has the portable order. */
static int choose_gemm(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, const char **reason)
{
    if (p->order == BSM_ORDER_PORTABLE) {
        *reason = "BSM_ORDER_PORTABLE";
        return -1;
    }
    if (!bsmi_cuda_tensor_serves(p)) {
        *reason = p->k == 0 ? "K is 0: nothing to multiply" : "sizes that 32-bit coordinates cannot tell";
        return -1;
    }
    for (int i = 0; i < bsmi_gemm_instance_count; i++) {
        *reason = "BSM_COMPUTE_FAST";
        if (gpu->gemms[i] != NULL && serves_fast(i, p)) return i;
    }
    if (p->b.sparsity != BSM_SPARSITY_NONE) return fastest_sparse(gpu, p);
    double least;
    const int chosen = fastest_gemm(gpu, p, false, &least);
    *reason = chosen < 0 && p->column_groups > 0 ? "no kernel for this GPU's tensor cores takes these groups along K"
              : chosen < 0 ? "this GPU has no tensor cores that this build has kernels for"
              : least > 0 && bsmi_gemm_is_modelled(&bsmi_gemm_instances[chosen])
                  ? "the least time by a model of its steps"
              : least > 0 ? "the least time by the table of measured steps"
                          : "the first kernel of the table that this GPU runs";
    return chosen;
}

/* For people: what the choice rests on. */
static void expect(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    if (c->gemm < 0) return;
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[c->gemm];
    c->tiles = bsmi_cuda_cost_tiles(g, p) * (c->split_k ? c->parts : 1);
    c->waves = bsmi_ceil_div(c->tiles, BSMI_MAX(1, gpu->gemm_clusters[c->gemm]));
    c->expected_nanoseconds = bsmi_cuda_cost(gpu, c->gemm, p);
}

static bsm_status fail_forced(int forced, const char *rule)
{
    return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but %s", bsmi_cuda_kernel_name(forced), rule);
}

/* The rule of the kernel that the product breaks; NULL: none. */
static const char *broken_rule(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, int gemm)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    const char *rule = NULL;
    if (gpu->gemms[gemm] == NULL || (bsmi_gemm_reads_prepacked(g) && gpu->kernels[BSMI_KERNEL_PREPACK] == NULL))
        return "this build has it not for this GPU";
    if (p->order == BSM_ORDER_PORTABLE) return "product->order is BSM_ORDER_PORTABLE, and its order is another one";
    if (!bsmi_cuda_tensor_serves(p)) return "K is 0 or a size beyond 32 bits";
    if (g->operands == BSMI_OPERANDS_FP8 && p->compute != BSM_COMPUTE_FAST)
        return "it rounds operands, and product->compute is not BSM_COMPUTE_FAST";
    if (g->sparse && p->compute != BSM_COMPUTE_FAST)
        return "it does not look at what B leaves out, and product->compute is not BSM_COMPUTE_FAST";
    if (g->sparse && (rule = bsmi_sparse_rule(p)) != NULL) return rule;
    (void)bsmi_cuda_gemm_serves(g, p, &rule);
    return rule;
}

/* Never another kernel than the forced one. */
static bsm_status check_forced(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, int forced)
{
    if (forced == 0) return BSM_OK;
    if (!serves(forced - 1, p->a.format, p->b.format) && !is_fast_pair(forced - 1, p)
        && !bsmi_gemm_instances[forced - 1].sparse) {
        const char *of_codes = bsmi_codes_rule(&bsmi_gemm_instances[forced - 1], p->a.format, p->b.format);
        return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but it does not serve %s times %s%s%s",
                         bsmi_cuda_kernel_name(forced), bsm_format_get((int)p->a.format)->name,
                         bsm_format_get((int)p->b.format)->name, of_codes == NULL ? "" : ": ",
                         of_codes == NULL ? "" : of_codes);
    }
    const char *rule = broken_rule(gpu, p, forced - 1);
    return rule == NULL ? BSM_OK : fail_forced(forced, rule);
}

bsm_status bsmi_cuda_choose(const bsm_context *context, const struct bsmi_product *p, int forced,
                            struct bsmi_cuda_multiply *c, const char **reason)
{
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    bsm_status status = check_operands(gpu, p, forced);
    if (status == BSM_OK && forced >= 0) status = check_forced(gpu, p, forced);
    if (status != BSM_OK) return status;
    const int gemm = forced >= 0 ? forced - 1 : choose_gemm(gpu, p, reason);
    if (forced >= 0) *reason = "forced by bsm_context_force_kernel";
    status = bsmi_cuda_prepare(gpu, p, gemm, c);
    if (status != BSM_OK) return status;
    expect(gpu, p, c);
    if (!bsmi_cuda_has_kernels(gpu, p, c))
        return bsmi_fail(BSM_EUNSUPPORTED, "%s times %s to %s on this GPU: kernels for it are not in this build",
                         bsm_format_get((int)p->a.format)->name, bsm_format_get((int)p->b.format)->name,
                         bsm_format_get((int)p->d.format)->name);
    return BSM_OK;
}

/* Rows of A for which prepacked weights have been measured faster, unless groups share them. */
enum { MOST_PREPACKED_ROWS = 4096 };

/* Prepacked weights serve where rows of bf16 would, with the same bits; requantized ones are kept as they are made. */
bsm_status bsmi_cuda_choose_prepacked(const bsm_context *context, const struct bsmi_product *p, int forced,
                                      const struct bsmi_cuda_multiply *other, struct bsmi_cuda_multiply *c)
{
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    const bool rows = other->gemm >= 0 && bsmi_gemm_instances[other->gemm].operands == BSMI_OPERANDS_BF16
                      && p->column_groups == 0
                      && (p->groups > 0 || p->m <= MOST_PREPACKED_ROWS || splits_k(gpu, p));
    double least = 0;
    int gemm = -1;
    *c = (struct bsmi_cuda_multiply){ .gemm = -1 };
    if (other->gemm >= 0 && bsmi_gemm_instances[other->gemm].operands == BSMI_OPERANDS_FP8) {
        *c = *other, c->keeps_b = true;
        return BSM_OK;
    }
    if (forced > 0 && bsmi_gemm_reads_prepacked(&bsmi_gemm_instances[forced - 1])) {
        *c = *other;
        return BSM_OK;
    }
    if (forced < 0 && rows) gemm = fastest_gemm(gpu, p, true, &least);
    if (gemm < 0 || gpu->kernels[BSMI_KERNEL_PREPACK] == NULL
        || (forced < 0 && !splits_k(gpu, p) && least > bsmi_cuda_cost(gpu, other->gemm, p)))
        return BSM_OK;
    const bsm_status status = bsmi_cuda_prepare(gpu, p, gemm, c);
    if (status == BSM_OK && !bsmi_cuda_has_kernels(gpu, p, c)) c->gemm = -1;
    return status;
}

/* Which kernel a product gets on a GPU of AMD: the instance with the least expected time. */
#include "hip_select.h"

#include <stdio.h>

const char *bsmi_hip_kernel_name(int number)
{
    if (number == 0) return "hip_simt";
    return number > 0 && number <= bsmi_hip_instance_count ? bsmi_hip_instances[number - 1].name : NULL;
}

bool bsmi_hip_kernel_serves(const bsm_context *context, int number, bsm_format a, bsm_format b)
{
    int pair;
    if (bsm_context_backend(context) != BSM_BACKEND_HIP || bsmi_hip_kernel_name(number) == NULL) return false;
    if (a == BSM_FORMAT_FP32 || b == BSM_FORMAT_FP32) return false;
    return number == 0 || (!bsmi_hip_instances[number - 1].prepacked
                           && bsmi_hip_serves(&bsmi_hip_instances[number - 1], a, b, &pair)
                           && bsmi_hip_has_gemm(number - 1, pair));
}

static bsm_status check_operands(const struct bsmi_product *p)
{
    const struct { const char *name; bsm_format format; } operands[] = { { "a", p->a.format }, { "b", p->b.format } };
    for (int i = 0; i < 2; i++)
        if (operands[i].format == BSM_FORMAT_FP32)
            return bsmi_fail(BSM_EUNSUPPORTED, "%s->format=fp32: GPUs have no exact fp32 products in their matrix "
                                               "cores; give bf16 or fp16, or use a CPU context", operands[i].name);
    return BSM_OK;
}

/* Whether the pair is multiplied as codes, whatever the sizes: the order of sums depends on it. */
static bool takes_codes(const struct bsmi_product *p)
{
    int pair;
    for (int i = 0; i < bsmi_hip_instance_count; i++)
        if (bsmi_hip_instances[i].scaled && bsmi_hip_serves(&bsmi_hip_instances[i], p->a.format, p->b.format, &pair)
            && bsmi_hip_has_gemm(i, pair))
            return true;
    return false;
}

/* Of those that read prepacked weights, or of the others: the one with the least time; -1: none.  Those of 32 x 32 have
 * another order of sums and are only forced. */
static int fastest_gemm(const struct bsmi_hip_gpu *gpu, const struct bsmi_product *p, bool prepacked)
{
    const bool codes = takes_codes(p);
    int chosen = -1, pair;
    double least = 0;
    for (int i = 0; i < bsmi_hip_instance_count; i++) {
        const struct bsmi_hip_instance *instance = &bsmi_hip_instances[i];
        if (instance->scaled != codes || instance->dim != 16 || instance->prepacked != prepacked
            || !bsmi_hip_serves(instance, p->a.format, p->b.format, &pair) || !bsmi_hip_has_gemm(i, pair)
            || !bsmi_hip_can_launch(instance, p))
            continue;
        const double time = bsmi_hip_cost(gpu, i, p);
        if (chosen < 0 || time < least) chosen = i, least = time;
    }
    return chosen;
}

/* Number of the GEMM instance, or -1. */
static int choose_gemm(const struct bsmi_hip_gpu *gpu, const struct bsmi_product *p, const char **reason)
{
    *reason = p->order == BSM_ORDER_PORTABLE ? "BSM_ORDER_PORTABLE"
              : p->column_groups > 0         ? "groups along K, whose sums have the CPU's order"
              : p->k == 0                    ? "K is 0: nothing to multiply"
              : !bsmi_hip_fits(p)            ? "sizes that GEMM kernels cannot count"
                                             : "this build has no GEMM kernel for the pair";
    if (p->order == BSM_ORDER_PORTABLE || p->column_groups > 0 || !bsmi_hip_fits(p)) return -1;
    const int chosen = fastest_gemm(gpu, p, false);
    if (chosen >= 0) *reason = "the least time by a model of its steps";
    return chosen;
}

/* The rule of the kernel that the product breaks; NULL: none. */
static const char *broken_rule(const struct bsmi_product *p, int gemm, int pair)
{
    if (!bsmi_hip_has_gemm(gemm, pair)) return "this build has it not";
    if (p->order == BSM_ORDER_PORTABLE) return "product->order is BSM_ORDER_PORTABLE, and its order is another one";
    if (p->column_groups > 0) return "it takes no groups along K";
    return bsmi_hip_fits(p) && bsmi_hip_can_launch(&bsmi_hip_instances[gemm], p)
               ? NULL
               : "K is 0, or a size is beyond what it counts";
}

/* Never another kernel than the forced one. */
static bsm_status check_forced(const struct bsmi_product *p, int forced)
{
    int pair;
    if (forced == 0) return BSM_OK;
    if (!bsmi_hip_serves(&bsmi_hip_instances[forced - 1], p->a.format, p->b.format, &pair))
        return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but it does not serve %s times %s",
                         bsmi_hip_kernel_name(forced), bsm_format_get((int)p->a.format)->name,
                         bsm_format_get((int)p->b.format)->name);
    const char *rule = broken_rule(p, forced - 1, pair);
    return rule == NULL
               ? BSM_OK
               : bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but %s", bsmi_hip_kernel_name(forced), rule);
}

bsm_status bsmi_hip_choose(const bsm_context *context, const struct bsmi_product *p, int forced,
                           struct bsmi_hip_multiply *c, const char **reason)
{
    struct bsmi_hip_gpu *gpu = bsmi_hip_device_of(context)->gpu;
    bsm_status status = check_operands(p);
    if (status == BSM_OK && forced >= 0) status = check_forced(p, forced);
    if (status != BSM_OK) return status;
    const int gemm = forced >= 0 ? forced - 1 : choose_gemm(gpu, p, reason);
    if (forced >= 0) *reason = "forced by bsm_context_force_kernel";
    status = bsmi_hip_prepare(p, gemm, c);
    if (status != BSM_OK || gemm < 0) return status;
    c->expected_nanoseconds = bsmi_hip_cost(gpu, gemm, p) + bsmi_hip_cost_around(c, p);
    return bsmi_hip_load_gemm(gpu, gemm, c->pair);
}

bsm_status bsmi_hip_choose_prepacked(const bsm_context *context, const struct bsmi_product *p, int forced,
                                     const struct bsmi_hip_multiply *other, struct bsmi_hip_multiply *c)
{
    struct bsmi_hip_gpu *gpu = bsmi_hip_device_of(context)->gpu;
    struct bsmi_hip_multiply found;
    *c = (struct bsmi_hip_multiply){ .gemm = -1 };
    if (bsmi_hip_wants_prepacked(other)) {
        *c = *other;
        return BSM_OK;
    }
    const int gemm = forced >= 0 || other->gemm < 0 ? -1 : fastest_gemm(gpu, p, true);
    if (gemm < 0 || gpu->kernels[BSMI_HIP_KERNEL_PACK_B] == NULL) return BSM_OK;
    const bsm_status status = bsmi_hip_prepare(p, gemm, &found);
    if (status == BSM_EOVERFLOW) return BSM_OK;
    if (status != BSM_OK) return status;
    found.expected_nanoseconds = bsmi_hip_cost(gpu, gemm, p) + bsmi_hip_cost_around(&found, p);
    if (found.expected_nanoseconds > other->expected_nanoseconds) return BSM_OK;
    *c = found;
    return bsmi_hip_load_gemm(gpu, gemm, c->pair);
}

/* Describing ------------------------------------------------------------------------------------------------------- */

static const char *form_text(const struct bsmi_hip_multiply *c, const struct bsmi_hip_operand *o, char *text,
                             size_t bytes)
{
    static const char *const forms[] = { [BSMI_HIP_AS_STORED] = "as stored", [BSMI_HIP_REPACKED] = "repacked",
                                         [BSMI_HIP_DECODED] = "decoded into bf16",
                                         [BSMI_HIP_PREPACKED] = "prepacked" };
    static const char *const scales[] = { [BSMI_HIP_SCALES_AS_THEY_ARE] = " with scales as they are",
                                          [BSMI_HIP_SCALES_CONVERTED] = " with scales converted to lane order",
                                          [BSMI_HIP_SCALES_ONES] = " with scales of 1" };
    snprintf(text, bytes, "%s%s", forms[o->form],
             c->gemm >= 0 && bsmi_hip_instances[c->gemm].scaled && o->form != BSMI_HIP_PREPACKED ? scales[o->scales]
                                                                                                 : "");
    return text;
}

size_t bsmi_hip_describe_plan(const struct bsmi_product *p, const struct bsmi_hip_multiply *c,
                              const struct bsmi_hip_multiply *prepacked, const char *reason, char *text, size_t bytes)
{
    char tile[64] = "an element a thread", expected[64] = "", a[80], b[80];
    if (c->gemm >= 0) {
        const struct bsmi_hip_instance *i = &bsmi_hip_instances[c->gemm];
        snprintf(tile, sizeof tile, "tiles of %d x %d", i->rows, i->columns);
        snprintf(expected, sizeof expected, " (%lld tiles, about %.3g us)", (long long)bsmi_hip_tiles(i, p),
                 c->expected_nanoseconds / 1000);
    }
    const int length = snprintf(
        text, bytes,
        "hip, kernel %s, %s, A (%s) %s, B (%s) %s, %s, workspace %zu bytes, order: %s; chosen because: %s%s%s%s",
        bsmi_hip_kernel_name(c->gemm + 1), tile, bsm_format_get((int)p->a.format)->name,
        form_text(c, &c->a, a, sizeof a), bsm_format_get((int)p->b.format)->name, form_text(c, &c->b, b, sizeof b),
        c->direct ? "D finished by the same kernel" : "D by an epilogue of its own", c->workspace_bytes,
        c->gemm >= 0 ? "matrix cores along K in fp32" : "the portable one", reason, expected,
        prepacked->gemm < 0 ? "" : "; with prepacked B: ",
        prepacked->gemm < 0 ? "" : bsmi_hip_kernel_name(prepacked->gemm + 1));
    return length < 0 ? 0 : (size_t)length;
}

/* D by the GEMM kernel itself, without S in the workspace: where it can be, and what the kernel is told. */
#include "operands.h"

#include "device/matrix.h"
#include "hip/params/kernels.h"

/* Recipes of e8m0 scales as what is added to the bits of a block's largest magnitude before their exponent is taken
 * (quantize/block/scale_code.h has the formulas): FLOOR cuts, CEIL carries unless it is a power of two, RCEIL where it
 * is more than the element's largest value times one, EVEN where it rounds up to one. */
static bool addend_of(const struct bsmi_product *p, int32_t *addend)
{
    enum { FRACTION = 0x7fffff, FRACTION_BITS = 23 };
    const bsm_element_info *element = bsm_element_get(p->d.element);
    const uint32_t largest = bsmi_float_bits((float)element->max_value);
    switch (bsmi_device_recipe_of(p->d_recipe, p->d.scale)) {
    case BSM_RECIPE_FLOOR: *addend = 0; return true;
    case BSM_RECIPE_CEIL: *addend = FRACTION; return true;
    case BSM_RECIPE_RCEIL: *addend = FRACTION - (int32_t)(largest & FRACTION); return true;
    case BSM_RECIPE_EVEN: *addend = 1 << (FRACTION_BITS - 1 - element->mantissa_bits); return true;
    default: return false;
    }
}

/* Pitches of quantized D in whole stores. */
static int64_t store_bytes(const struct bsmi_matrix *d) { return d->bits == 6 ? 8 : 16; }

static bool quantizes(const struct bsmi_product *p)
{
    const struct bsmi_matrix *d = &p->d;
    const bsm_layout kind = d->map.layout.kind;
    int32_t addend;
    return bsmi_hip_element_of(d->element) >= 0 && d->block == 32 && d->scale == BSM_E8M0
           && bsmi_hip_has_kernels_packing(d) && d->columns % 32 == 0 && p->d_nonfinite == BSM_NONFINITE_PROPAGATE
           && (kind == BSM_LAYOUT_LINEAR || kind == BSM_LAYOUT_CDNA4_16 || kind == BSM_LAYOUT_AITER)
           && d->row_bytes % store_bytes(d) == 0 && d->batch_bytes % store_bytes(d) == 0
           && (uintptr_t)d->data % (uintptr_t)store_bytes(d) == 0 && addend_of(p, &addend);
}

bool bsmi_hip_finishes_directly(const struct bsmi_product *p, const struct bsmi_hip_multiply *c)
{
    const bool plain = p->d.element == BSM_FP32 || p->d.element == BSM_BF16 || p->d.element == BSM_FP16;
    return c->gemm >= 0 && !c->a.has_exponents && !c->b.has_exponents && p->gate == BSM_GATE_NONE
           && (p->activation == BSM_ACT_NONE || p->activation == BSM_ACT_RELU) && p->d.tensor_scale == NULL
           && (plain || quantizes(p));
}

int64_t bsmi_hip_factors(const struct bsmi_product *p)
{
    return p->alpha_per == BSM_PER_ROW      ? p->m
           : p->alpha_per == BSM_PER_COLUMN ? p->n
           : p->alpha_per == BSM_PER_BATCH  ? (p->groups > 0 ? p->groups : p->batch)
                                            : 1;
}

bsm_status bsmi_hip_check_direct(const struct bsmi_hip_run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_hip_multiply *c = run->multiply;
    if (!c->direct || bsmi_hip_finishes_directly(p, c)) return BSM_OK;
    if (p->d.block != 0 && (uintptr_t)p->d.data % (uintptr_t)store_bytes(&p->d) != 0)
        return bsmi_hip_fail_alignment("d", "data", p->d.data);
    return bsmi_fail(BSM_EINVAL,
                     "d->tensor_scale is NULL in one and given in the other of the plan's description and this one: on "
                     "a GPU make another plan");
}

static bool has_tensor_scales(const struct bsmi_product *p)
{
    return p->a.tensor_scale != NULL || p->b.tensor_scale != NULL;
}

bsm_status bsmi_hip_make_factors(const struct bsmi_hip_run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_hip_factors_parameters parameters = {
        run->epilogue, p->alpha == NULL ? 1 : bsmi_hip_factors(p),
        (float *)(void *)(run->workspace + run->multiply->factors_at)
    };
    if (!run->multiply->direct || !has_tensor_scales(p)) return BSM_OK;
    return bsmi_hip_launch(&run->queue, BSMI_HIP_KERNEL_FACTORS, bsmi_ceil_div(parameters.count, BSMI_HIP_THREADS),
                           &parameters);
}

static void fill_quantized(const struct bsmi_product *p, struct bsmi_hip_gemm_finish *f)
{
    const struct bsmi_matrix *d = &p->d;
    const bool linear = d->map.layout.kind == BSM_LAYOUT_LINEAR;
    f->d_scales = d->scales;
    f->d_scale_batch_bytes = d->scale_batch_bytes;
    f->d_scale_row_bytes = linear ? d->map.layout.pitch : d->map.padded_columns * 32;
    f->d_scales_in_lane_order = !linear;
    f->d_largest = (float)bsm_element_get(d->element)->max_value;
    f->d_scale_exponent = (int32_t)(bsmi_float_bits(f->d_largest) >> 23) - 127;
    (void)addend_of(p, &f->d_scale_addend);
}

void bsmi_hip_fill_direct(const struct bsmi_hip_run *run, struct bsmi_hip_gemm_finish *f)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_epilogue_parameters *e = &run->epilogue;
    const bool made = has_tensor_scales(p);
    f->direct = 1;
    f->d = p->d.data, f->d_element = (int32_t)p->d.element;
    f->d_row_bytes = p->d.row_bytes, f->d_batch_bytes = p->d.batch_bytes;
    f->factor = made ? (const float *)(const void *)(run->workspace + run->multiply->factors_at) : e->alpha;
    f->factor_per = made && e->alpha == NULL ? BSM_PER_TENSOR : e->alpha_per;
    f->beta = e->beta;
    f->c = e->c, f->c_element = e->c_element, f->c_row_bytes = e->c_row_bytes, f->c_batch_bytes = e->c_batch_bytes;
    f->bias = e->bias, f->bias_per = e->bias_per, f->bias_batch_pitch = e->bias_batch_pitch;
    f->bias_element = e->bias_type == BSM_REAL_BF16 ? BSM_BF16 : e->bias_type == BSM_REAL_FP16 ? BSM_FP16 : BSM_FP32;
    f->relu = p->activation == BSM_ACT_RELU;
    f->amax = e->amax;
    if (p->d.block != 0) fill_quantized(p, f);
}

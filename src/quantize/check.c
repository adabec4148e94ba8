/* What bsm_quantize is asked for: checked once, in the order of the arguments. */
#include "core/core.h"
#include "job.h"
#include "matrix/written.h"
#include "quantize/block/presets.h"
#include "tensor_scale.h"

#include <float.h>

/* Checks ----------------------------------------------------------------------------------------------------------- */

static bsm_status check_choice(const char *field, int value, int count)
{
    if (value < 0 || value >= count)
        return bsmi_fail(BSM_EINVAL, "options->%s=%d: choices are 0 to %d", field, value, count - 1);
    return BSM_OK;
}

/* A preset is a whole recipe: what would change its bits is refused. */
static bsm_status check_preset(const bsm_quantize_options *o, const struct bsmi_matrix *destination)
{
    const char *name = bsm_preset_name((int)o->preset);
    if (o->recipe != BSM_RECIPE_DEFAULT)
        return bsmi_fail(BSM_EINVAL,
                         "options->preset=%s: has a recipe of its own; leave options->recipe at default, not %s", name,
                         bsm_recipe_name((int)o->recipe));
    if (o->rounding != BSM_ROUND_NEAREST_EVEN)
        return bsmi_fail(BSM_EINVAL,
                         "options->preset=%s: rounds as its project does; leave options->rounding at nearest", name);
    if (o->nonfinite != BSM_NONFINITE_PROPAGATE)
        return bsmi_fail(BSM_EINVAL, "options->preset=%s: is for finite numbers; leave options->nonfinite at propagate",
                         name);
    const bool scaled = destination->tensor_scale != NULL;
    return bsmi_preset_choose(o->preset, destination->format, scaled, destination->tensor_scale_use) != NULL
               ? BSM_OK
               : BSM_EINVAL;
}

/* Clamps and the smallest scale are for blocks, and must leave numbers that can be. */
static bsm_status check_policies(const bsm_quantize_options *o, const struct bsmi_matrix *destination)
{
    const char *format = bsm_format_get((int)destination->format)->name;
    const int largest = destination->scale == BSM_E8M0 ? 254 : 0x7e;
    const bool none =
        o->clamp_low >= 0 && o->clamp_low <= 0 && o->clamp_high >= 0 && o->clamp_high <= 0 && o->smallest_scale == 0;
    if (none) return BSM_OK;
    if (destination->scale == BSM_UNSCALED)
        return bsmi_fail(BSM_EINVAL,
                         "options->clamp_low, clamp_high and smallest_scale are for block scales, and %s has none",
                         format);
    if (!(o->clamp_low >= 0 && o->clamp_low <= FLT_MAX))
        return bsmi_fail(BSM_EINVAL, "options->clamp_low=%g: 0, or a finite number above 0", (double)o->clamp_low);
    if (!(o->clamp_high >= 0 && o->clamp_high <= FLT_MAX))
        return bsmi_fail(BSM_EINVAL, "options->clamp_high=%g: 0, or a finite number above 0", (double)o->clamp_high);
    if (o->clamp_high > 0 && o->clamp_low > o->clamp_high)
        return bsmi_fail(BSM_EINVAL, "options->clamp_low=%g is above clamp_high=%g", (double)o->clamp_low,
                         (double)o->clamp_high);
    if (o->smallest_scale > largest)
        return bsmi_fail(BSM_EINVAL, "options->smallest_scale=%d: scale codes of %s that are numbers end at %d",
                         o->smallest_scale, format, largest);
    if (o->preset != BSM_PRESET_NONE)
        return bsmi_fail(BSM_EINVAL,
                         "options->preset=%s: has policies of its own; leave clamp_low, clamp_high and smallest_scale "
                         "at 0",
                         bsm_preset_name((int)o->preset));
    return BSM_OK;
}

static bsm_status read_options(const bsm_quantize_options *given, const struct bsmi_matrix *destination,
                               bsm_quantize_options *options)
{
    *options = (bsm_quantize_options){ .struct_size = sizeof *options };
    if (given == NULL) return BSM_OK;
    bsm_status status = bsmi_read_struct("options", given, options, sizeof *options);
    if (status == BSM_OK) status = check_choice("recipe", (int)options->recipe, BSM_RECIPE_COUNT);
    if (status == BSM_OK) status = check_choice("rounding", (int)options->rounding, BSM_ROUND_STOCHASTIC + 1);
    if (status == BSM_OK) status = check_choice("nonfinite", (int)options->nonfinite, BSM_NONFINITE_SATURATE + 1);
    if (status == BSM_OK)
        status = check_choice("tensor_scale", (int)options->tensor_scale, BSM_TENSOR_SCALE_COMPUTED + 1);
    if (status == BSM_OK) status = check_choice("preset", (int)options->preset, BSM_PRESET_COUNT);
    if (status == BSM_OK && options->preset != BSM_PRESET_NONE) status = check_preset(options, destination);
    if (status == BSM_OK) status = check_policies(options, destination);
    if (status != BSM_OK) return status;
    const char *format = bsm_format_get((int)destination->format)->name;
    const bool unscaled = destination->scale == BSM_UNSCALED;
    if (unscaled && options->recipe != BSM_RECIPE_DEFAULT)
        return bsmi_fail(BSM_EINVAL, "options->recipe=%s: %s has no block scales; leave the recipe at default",
                         bsm_recipe_name((int)options->recipe), format);
    if (options->block_rows != 0 && options->block_rows != 1 && options->block_rows != destination->block)
        return bsmi_fail(BSM_EINVAL, "options->block_rows=%lld: %s takes 0 or 1 (a scale for one row)%s",
                         (long long)options->block_rows, format,
                         destination->block == 16   ? ", or 16"
                         : destination->block == 32 ? ", or 32"
                                                    : "");
    if (options->block_rows > 1 && (options->recipe == BSM_RECIPE_FOUR_OVER_SIX || options->recipe == BSM_RECIPE_MSE))
        return bsmi_fail(BSM_EINVAL, "options->block_rows=%lld: %s chooses a scale by the error of one row",
                         (long long)options->block_rows, bsm_recipe_name((int)options->recipe));
    if (options->no_saturate && !(unscaled && destination->bits == 8))
        return bsmi_fail(BSM_EINVAL, "options->no_saturate is for e4m3 and e5m2 without scales, not for %s: block "
                                     "formats always saturate, and 16- and 32-bit floats never do", format);
    return BSM_OK;
}

/* No project's quantizer is known that computes with fp64. */
static bsm_status check_source(const struct bsmi_reals *source, bsm_preset preset)
{
    if (source->type == BSM_REAL_FP64 && preset != BSM_PRESET_NONE)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "source->type=fp64: options->preset=%s is for fp32, fp16 and bf16; round to fp32 first",
                         bsm_preset_name((int)preset));
    return BSM_OK;
}

bsm_status bsmi_quantize_check(const bsm_context *context, const bsm_real_matrix *source,
                               const bsm_quantize_options *options, const bsm_matrix *destination,
                               struct bsmi_quantize_job *job)
{
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    bsm_status status = bsmi_reals_resolve("source", source, &job->source);
    if (status == BSM_OK) status = bsmi_matrix_resolve("destination", destination, &job->destination);
    if (status == BSM_OK) status = bsmi_matrix_check_written("destination", &job->destination);
    if (status == BSM_OK)
        status = bsmi_shapes_equal(
            (struct bsmi_shape){ job->source.rows, job->source.columns, job->source.batch },
            (struct bsmi_shape){ job->destination.rows, job->destination.columns, job->destination.batch });
    if (status == BSM_OK) status = read_options(options, &job->destination, &job->options);
    if (status == BSM_OK) status = check_source(&job->source, job->options.preset);
    if (status == BSM_OK && job->options.tensor_scale == BSM_TENSOR_SCALE_COMPUTED)
        status = bsmi_tensor_scale_check(&job->destination);
    return status;
}

bsm_status bsmi_quantize_tensor_scale(const bsm_context *context, struct bsmi_quantize_job *job, float *tensor_scale)
{
    const bsm_quantize_options *o = &job->options;
    *tensor_scale = 1;
    if (o->tensor_scale != BSM_TENSOR_SCALE_COMPUTED)
        return bsmi_matrix_tensor_scale("destination", &job->destination, tensor_scale);
    *tensor_scale = bsmi_tensor_scale_compute(context, &job->source, &job->destination, o);
    return BSM_OK;
}

bsm_status bsmi_quantize_prepare(struct bsmi_quantize_job *job, float tensor_scale)
{
    const bsm_quantize_options *o = &job->options;
    const struct bsmi_matrix *m = &job->destination;
    if (m->scale != BSM_UNSCALED) {
        const bsm_status status =
            bsmi_block_quantizer_make("options->recipe", m->format, o->recipe, o->rounding, o->seed, o->nonfinite,
                                      tensor_scale, m->tensor_scale_use, &job->quantizer);
        if (o->preset != BSM_PRESET_NONE)
            job->quantizer.preset =
                bsmi_preset_choose(o->preset, m->format, m->tensor_scale != NULL, m->tensor_scale_use);
        job->quantizer.clamp = (struct bsmi_clamp){ o->clamp_low, o->clamp_high };
        job->quantizer.smallest_scale = o->smallest_scale;
        job->quantizer.source = job->source.type;
        return status;
    }
    job->converter = (struct bsmi_converter){ m->element, o->rounding, o->seed, m->bits <= 8 && !o->no_saturate,
                                              bsmi_widen(tensor_scale), m->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES,
                                              job->source.type == BSM_REAL_FP64 };
    return BSM_OK;
}

/* Presets: what other projects compute, with their roundings.  Every step is an fp32 operation, as there, unless it
 * says otherwise; a logarithm is that of the real number, rounded to fp32.  Sources and known slips:
 * docs/guide/recipes.md. */
#include "presets.h"

#include "core/core.h"
#include "scale_code.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

static const struct { const char *name, *checked;
} presets[BSM_PRESET_COUNT] = {
    [BSM_PRESET_NONE] = { "none", "not a project's: the exact rules of the recipes" },
    [BSM_PRESET_OCP] = { "ocp", "OCP MX v1.0, a specification: nothing to run" },
    [BSM_PRESET_TORCHAO] = { "torchao", "torchao 0.18.0 with PyTorch 2.14.0 on the CPU, run" },
    [BSM_PRESET_TRANSFORMER_ENGINE] = { "transformer_engine",
                                        "nvfp4: its Python reference (d0067d0d) with PyTorch 2.14.0 on the "
                                        "CPU, run; mxfp8: from its source, not run" },
    [BSM_PRESET_MODELOPT] = { "modelopt", "nvidia-modelopt 0.47.0 with PyTorch 2.14.0 on the CPU, run" },
    [BSM_PRESET_COMPRESSED_TENSORS] = { "compressed_tensors",
                                        "compressed-tensors 0.20.0 and llmcompressor 0.14.0 with PyTorch "
                                        "2.14.0 on the CPU, run; weights in fp32, bf16 and fp16" },
    [BSM_PRESET_GGML] = { "ggml", "ggml-quants.c of ggml d99724f2, and gguf 0.19.0, run" },
    [BSM_PRESET_FLASHINFER] = { "flashinfer", "from its source, not run" },
};

/* Scales ----------------------------------------------------------------------------------------------------------- */

/* A number as the project's tensor holds it, which has the source's type. */
static float in_type(bsm_real type, float x)
{
    if (type == BSM_REAL_FP16)
        return bsmi_fp16_to_float((uint16_t)bsm_element_encode(BSM_FP16, (double)x, BSM_ROUND_NEAREST_EVEN, false, 0));
    if (type == BSM_REAL_BF16)
        return bsmi_bf16_to_float((uint16_t)bsm_element_encode(BSM_BF16, (double)x, BSM_ROUND_NEAREST_EVEN, false, 0));
    return x;
}

static float maximum(bsm_element element) { return (float)bsm_element_get((int)element)->max_value; }
static float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
static uint8_t to_e4m3(float x)
{
    return (uint8_t)(bsm_element_encode(BSM_E4M3, (double)x, BSM_ROUND_NEAREST_EVEN, true, 0) & 0x7f);
}

static uint8_t floor_code(const struct bsmi_preset_setting *of, float amax)
{
    return amax > 0 ? bsmi_floor_code(bsm_element_get((int)of->element), (struct bsmi_fraction){ (double)amax, 1 }) : 0;
}

/* The significand of the largest magnitude is rounded half up to `bits` bits, whatever the element has. */
static uint8_t even_code(float amax, int bits, int offset)
{
    const int exponent = (int)((bsmi_float_bits(amax) + (1u << (22 - bits))) >> 23);
    return (uint8_t)(exponent > offset ? exponent - offset : 0);
}
/* In fp16 a subnormal number has no exponent bits: it rounds up to the least normal one, or to 0, whose scale is taken
 * as 1. */
static uint8_t even_code_in_type(const struct bsmi_preset_setting *of, float amax, int bits, int offset)
{
    if (of->type != BSM_REAL_FP16 || amax >= 0x1p-14f) return even_code(amax, bits, offset);
    return amax < 0x1p-14f - ldexpf(0x1p-15f, -bits) ? 127 : even_code(0x1p-14f, bits, offset);
}
static uint8_t even_code_of_e2m1(const struct bsmi_preset_setting *of, float amax)
{
    return even_code_in_type(of, amax, 1, of->element == BSM_E4M3 ? 8 : 2);
}
static uint8_t even_code_of_e2m3(const struct bsmi_preset_setting *of, float amax)
{
    return even_code_in_type(of, amax, 3, 2);
}

/* ceil of a rounded logarithm: one too low where the quotient lies just above a power of two. */
static uint8_t ceil_log2_code(const struct bsmi_preset_setting *of, float amax)
{
    const float quotient = amax / maximum(of->element);
    return bsmi_e8m0_code(quotient > 0 ? (int)ceilf((float)log2((double)quotient)) : -127);
}

/* The conversion of hardware, cvt.rp.satfinite.ue8m0x2.f32, of m times the rounded reciprocal. */
static uint8_t round_up_code(const struct bsmi_preset_setting *of, float amax)
{
    const uint32_t bits = bsmi_float_bits(amax * (1.0f / maximum(of->element)));
    const uint32_t exponent = bits >> 23, fraction = bits & 0x7fffff;
    const bool up = exponent == 0 ? fraction > 0x400000 : fraction > 0 && exponent < 254;
    return (uint8_t)(exponent + up);
}

static uint8_t ggml_mxfp4_code(const struct bsmi_preset_setting *of, float amax)
{
    (void)of;
    return amax > 0 ? (uint8_t)(int)(floorf((float)log2((double)amax)) - 2 + 127) : 0;
}

/* Ties go up; subnormals stop at 7 of 8; from 256 on everything is 448. */
static uint8_t ggml_nvfp4_code(const struct bsmi_preset_setting *of, float amax)
{
    const float x = clamp(amax / 6.0f, 0, 448);
    const uint32_t bits = bsmi_float_bits(x);
    const int exponent = (int)(bits >> 23) - 120;
    (void)of;
    if (exponent <= 0) return (uint8_t)BSMI_MIN((int)(x * 512.0f + 0.5f), 7);
    const uint32_t code = ((uint32_t)exponent << 3) + ((bits >> 20 & 7) + (bits >> 19 & 1));
    return (uint8_t)(code >= 15 << 3 ? 0x7e : code);
}

static uint8_t torchao_nvfp4_code(const struct bsmi_preset_setting *of, float amax)
{
    return to_e4m3(clamp(amax / 6.0f / of->t, 0x1p-6f, 448));
}

static uint8_t modelopt_nvfp4_code(const struct bsmi_preset_setting *of, float amax)
{
    const float scale = amax / (6.0f * of->t);
    return to_e4m3(clamp(scale > 0 ? scale : 1, 0x1p-9f, 448));
}

static uint8_t compressed_tensors_nvfp4_code(const struct bsmi_preset_setting *of, float amax)
{
    const uint8_t code = to_e4m3(of->t * in_type(of->type, amax / 6.0f));
    return code != 0 ? code : to_e4m3(0.125f);
}

static uint8_t transformer_engine_nvfp4_code(const struct bsmi_preset_setting *of, float amax)
{
    return to_e4m3(amax * (of->t * (1.0f / 6.0f)));
}

static uint8_t flashinfer_nvfp4_code(const struct bsmi_preset_setting *of, float amax)
{
    return to_e4m3(of->t * (amax * (1.0f / 6.0f)));
}

/* Tensor scales ---------------------------------------------------------------------------------------------------- */

/* PyTorch divides a number by a tensor as the tensor's reciprocal times the number, here all in the type of the weight;
 * what overflows becomes 1. */
static float compressed_tensors_tensor_scale(bsm_real type, float amax)
{
    const float tiny = type == BSM_REAL_FP16 ? 0x1p-14f : FLT_MIN;
    const float t = in_type(type, in_type(type, 1.0f / (amax < tiny ? tiny : amax)) * 2688.0f);
    return t <= FLT_MAX ? t : 1;
}

/* Quotients -------------------------------------------------------------------------------------------------------- */

static double over_scale(const struct bsmi_preset_setting *of, float x, float scale)
{
    (void)of;
    return (double)(x / scale);
}

/* Powers of two: exact, but for what the type cannot hold. */
static double over_scale_in_type(const struct bsmi_preset_setting *of, float x, float scale)
{
    return (double)in_type(of->type, x / scale);
}

/* Divides by the smallest normal number where the scale is 2^-127. */
static double over_normal_scale(const struct bsmi_preset_setting *of, float x, float scale)
{
    (void)of;
    return (double)(x / (scale < 0x1p-126f ? 0x1p-126f : scale));
}

static double times_reciprocal(const struct bsmi_preset_setting *of, float x, float scale)
{
    (void)of;
    return (double)(x * (1.0f / scale));
}

static double torchao_nvfp4_quotient(const struct bsmi_preset_setting *of, float x, float scale)
{
    return (double)(x * (1.0f / of->t / scale));
}

static double modelopt_nvfp4_quotient(const struct bsmi_preset_setting *of, float x, float scale)
{
    return (double)(x / (scale * of->t));
}

static double compressed_tensors_nvfp4_quotient(const struct bsmi_preset_setting *of, float x, float scale)
{
    return (double)(x / (scale / of->t));
}

static double transformer_engine_nvfp4_quotient(const struct bsmi_preset_setting *of, float x, float scale)
{
    const float factor = 1.0f / (scale * (1.0f / of->t));
    return (double)(x * (factor <= FLT_MAX ? factor : FLT_MAX));
}

/* rcp.approx.ftz is taken for the rounded reciprocal.  Under scale 0 that is infinite, and 0 becomes NaN. */
static double flashinfer_nvfp4_quotient(const struct bsmi_preset_setting *of, float x, float scale)
{
    return (double)(x * (1.0f / (scale * (1.0f / of->t))));
}

/* Rules ------------------------------------------------------------------------------------------------------------ */

enum {
    MXFP8 = 1 << BSM_MXFP8_E4M3 | 1 << BSM_MXFP8_E5M2,
    MXFP6 = 1 << BSM_MXFP6_E3M2 | 1 << BSM_MXFP6_E2M3,
    MXFP4 = 1 << BSM_MXFP4,
    NVFP4 = 1 << BSM_NVFP4
};

/* Of each: preset, formats, whether it has a tensor scale, and divides by it, scale code, quotient; ties, zeros,
 * computed tensor scale. */
static const struct bsmi_preset_rule rules[] = {
    { BSM_PRESET_OCP, MXFP8 | MXFP6 | MXFP4, false, false, floor_code, over_scale, BSMI_TIES_TO_EVEN, BSMI_ZERO_SIGNED,
      NULL },
    { BSM_PRESET_TORCHAO, MXFP8 | MXFP6 | MXFP4, false, false, floor_code, over_normal_scale, BSMI_TIES_TO_EVEN,
      BSMI_ZERO_SIGNED, NULL },
    { BSM_PRESET_TORCHAO, NVFP4, true, false, torchao_nvfp4_code, torchao_nvfp4_quotient, BSMI_TIES_TO_EVEN,
      BSMI_ZERO_SIGNED, NULL },
    { BSM_PRESET_TRANSFORMER_ENGINE, MXFP8, false, false, round_up_code, times_reciprocal, BSMI_TIES_TO_EVEN,
      BSMI_ZERO_SIGNED, NULL },
    { BSM_PRESET_TRANSFORMER_ENGINE, NVFP4, true, true, transformer_engine_nvfp4_code,
      transformer_engine_nvfp4_quotient, BSMI_TIES_TO_EVEN, BSMI_ZERO_POSITIVE, NULL },
    { BSM_PRESET_MODELOPT, 1 << BSM_MXFP8_E4M3, false, false, ceil_log2_code, times_reciprocal, BSMI_TIES_TO_EVEN,
      BSMI_ZERO_SIGNED, NULL },
    { BSM_PRESET_MODELOPT, MXFP4, false, false, ceil_log2_code, over_scale, BSMI_TIES_DOWN, BSMI_ZERO_NEGATIVE, NULL },
    { BSM_PRESET_MODELOPT, NVFP4, true, false, modelopt_nvfp4_code, modelopt_nvfp4_quotient, BSMI_TIES_TO_EVEN,
      BSMI_ZERO_POSITIVE, NULL },
    { BSM_PRESET_COMPRESSED_TENSORS, 1 << BSM_MXFP8_E4M3, false, false, even_code_of_e2m1, over_scale_in_type,
      BSMI_TIES_TO_EVEN, BSMI_ZERO_POSITIVE, NULL },
    { BSM_PRESET_COMPRESSED_TENSORS, MXFP4, false, false, even_code_of_e2m1, over_scale_in_type, BSMI_TIES_TO_EVEN,
      BSMI_ZERO_POSITIVE, NULL },
    { BSM_PRESET_COMPRESSED_TENSORS, 1 << BSM_MXFP6_E2M3, false, false, even_code_of_e2m3, over_scale_in_type,
      BSMI_TIES_TO_EVEN, BSMI_ZERO_SIGNED, NULL },
    { BSM_PRESET_COMPRESSED_TENSORS, NVFP4, true, true, compressed_tensors_nvfp4_code,
      compressed_tensors_nvfp4_quotient, BSMI_TIES_TO_EVEN, BSMI_ZERO_POSITIVE, compressed_tensors_tensor_scale },
    { BSM_PRESET_GGML, MXFP4, false, false, ggml_mxfp4_code, over_scale, BSMI_SMALLEST_ERROR, BSMI_ZERO_SIGNED, NULL },
    { BSM_PRESET_GGML, NVFP4, false, false, ggml_nvfp4_code, over_scale, BSMI_SMALLEST_ERROR, BSMI_ZERO_SIGNED, NULL },
    { BSM_PRESET_FLASHINFER, NVFP4, true, true, flashinfer_nvfp4_code, flashinfer_nvfp4_quotient, BSMI_TIES_TO_EVEN,
      BSMI_ZERO_SIGNED, NULL },
};

static const struct bsmi_preset_rule *find_rule(bsm_preset preset, bsm_format format)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].preset == preset && (rules[i].formats >> format & 1) != 0) return &rules[i];
    return NULL;
}

/* "mxfp4, nvfp4": the formats that a preset has. */
static void list_formats(bsm_preset preset, char *text, size_t bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = BSM_FORMAT_NONE + 1; i < BSM_FORMAT_COUNT; i++) {
        if (find_rule(preset, (bsm_format)i) == NULL) continue;
        const int more =
            snprintf(text + length, bytes - length, "%s%s", length > 0 ? ", " : "", bsm_format_get(i)->name);
        length = BSMI_MIN(length + (size_t)more, bytes - 1);
    }
}

const struct bsmi_preset_rule *bsmi_preset_choose(bsm_preset preset, bsm_format format, bool has_tensor_scale,
                                                  bsm_tensor_scale_use use)
{
    const struct bsmi_preset_rule *rule = find_rule(preset, format);
    const char *name = presets[preset].name, *format_name = bsm_format_get((int)format)->name;
    char fitting[160];
    if (rule == NULL) {
        list_formats(preset, fitting, sizeof fitting);
        bsmi_fail(BSM_EINVAL, "options->preset=%s: has no %s; take one of %s", name, format_name, fitting);
        return NULL;
    }
    if (has_tensor_scale && !rule->has_tensor_scale)
        bsmi_fail(BSM_EINVAL, "options->preset=%s: has no tensor scale for %s; leave destination->tensor_scale NULL",
                  name, format_name);
    else if (has_tensor_scale && rule->divides != (use == BSM_TENSOR_SCALE_DIVIDES))
        bsmi_fail(BSM_EINVAL, "options->preset=%s: its tensor scale %s; set destination->tensor_scale_use to "
                              "BSM_TENSOR_SCALE_%s",
                  name, rule->divides ? "divides" : "multiplies", rule->divides ? "DIVIDES" : "MULTIPLIES");
    else return rule;
    return NULL;
}

/* Blocks ----------------------------------------------------------------------------------------------------------- */

static uint8_t encode_ties_down(double quotient)
{
    static const double bounds[] = { 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5 };
    uint8_t code = 0;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) code = (uint8_t)(code + (fabs(quotient) > bounds[i]));
    return signbit(quotient) != 0 ? code | 8 : code;
}

/* Where x is so large that no code makes a difference, that is code 0. */
static uint8_t encode_smallest_error(float x, float scale)
{
    uint8_t best = 0;
    for (uint8_t code = 1; code < 16; code++) {
        const float here = fabsf(bsm_element_decode(BSM_E2M1, code) * scale - x);
        const float there = fabsf(bsm_element_decode(BSM_E2M1, best) * scale - x);
        if (here < there) best = code;
    }
    return best;
}

/* The sign of a code whose quotient was 0. */
static uint8_t settle_zero(enum bsmi_zero_of_preset zero, uint8_t sign, double quotient, uint8_t code)
{
    if (zero == BSMI_ZERO_SIGNED || quotient > 0 || quotient < 0) return code;
    return zero == BSMI_ZERO_NEGATIVE ? sign : 0;
}

uint8_t bsmi_preset_block(const struct bsmi_preset_rule *rule, const struct bsmi_preset_setting *of, bsm_scale scale,
                          float amax, const float *x, int count, double *quotients, uint8_t *codes)
{
    const uint8_t code = rule->scale_code(of, amax);
    const uint8_t sign = (uint8_t)(1 << (bsm_element_get((int)of->element)->bits - 1));
    const float value = bsm_scale_decode(scale, code);
    for (int i = 0; i < count; i++) quotients[i] = amax > 0 ? rule->quotient(of, x[i], value) : (double)x[i];
    if (rule->rounding == BSMI_TIES_DOWN)
        for (int i = 0; i < count; i++) codes[i] = encode_ties_down(quotients[i]);
    else if (rule->rounding == BSMI_SMALLEST_ERROR)
        for (int i = 0; i < count; i++) codes[i] = encode_smallest_error(x[i], value);
    else bsmi_element_encode_nearest(of->element, quotients, count, codes);
    for (int i = 0; i < count; i++) codes[i] = settle_zero(rule->zero, sign, quotients[i], codes[i]);
    return code;
}

const char *bsm_preset_name(int preset)
{
    return preset >= 0 && preset < BSM_PRESET_COUNT ? presets[preset].name : NULL;
}
const char *bsm_preset_checked(int preset)
{
    return preset >= 0 && preset < BSM_PRESET_COUNT ? presets[preset].checked : NULL;
}

int bsm_preset_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_PRESET_COUNT; i++)
        if (strcasecmp(name, presets[i].name) == 0) return i;
    return -1;
}

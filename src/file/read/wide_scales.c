/* 16-bit scales as fp32, see wide_scales.h. */
#include "wide_scales.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static float from_fp16(uint16_t code)
{
    const int exponent = code >> 10 & 31, mantissa = code & 1023;
    const float magnitude = exponent == 31  ? (mantissa == 0 ? INFINITY : NAN)
                            : exponent == 0 ? ldexpf((float)mantissa, -24)
                                            : ldexpf((float)(mantissa + 1024), exponent - 25);
    return (code & 0x8000) != 0 ? -magnitude : magnitude;
}

static float from_bf16(uint16_t code)
{
    const uint32_t bits = (uint32_t)code << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* X.weight_scale or X.weight_scale_inv of 16-bit numbers, beside X.weight of fp8. */
static bool is_wanted(const bsm_checkpoint *checkpoint, const bsm_tensor *t)
{
    static const char *const endings[] = { ".weight_scale", ".weight_scale_inv" };
    char name[4096];
    const size_t length = strlen(t->name);
    if ((t->type != BSM_TENSOR_BF16 && t->type != BSM_TENSOR_F16) || length >= sizeof name) return false;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t end = strlen(endings[i]);
        if (length <= end || strcmp(t->name + length - end, endings[i]) != 0) continue;
        bsm_tensor codes = { .struct_size = sizeof codes };
        snprintf(name, sizeof name, "%.*s.weight", (int)(length - end), t->name);
        const int64_t index = bsm_checkpoint_find(checkpoint, name);
        return index >= 0 && bsm_checkpoint_tensor(checkpoint, index, &codes) == BSM_OK &&
               (codes.type == BSM_TENSOR_F8_E4M3 || codes.type == BSM_TENSOR_F8_E5M2);
    }
    return false;
}

static void widen(const bsm_tensor *t, float *numbers)
{
    const unsigned char *bytes = t->data; /* of any alignment */
    for (int64_t i = 0; i < t->bytes / 2; i++) {
        uint16_t code;
        memcpy(&code, bytes + 2 * i, sizeof code);
        numbers[i] = t->type == BSM_TENSOR_BF16 ? from_bf16(code) : from_fp16(code);
    }
}

/* Goes through the tensors: counts them, or (numbers != NULL) makes them wider. */
static void gather(const bsm_checkpoint *checkpoint, struct bsmi_wide_scales *wide)
{
    const int64_t tensors = bsm_checkpoint_tensor_count(checkpoint);
    wide->count = wide->number_count = 0;
    for (int64_t i = 0; i < tensors; i++) {
        bsm_tensor t = { .struct_size = sizeof t };
        if (bsm_checkpoint_tensor(checkpoint, i, &t) != BSM_OK || !is_wanted(checkpoint, &t)) continue;
        if (wide->numbers != NULL) {
            wide->tensors[wide->count] = (struct bsmi_wide_tensor){ i, wide->numbers + wide->number_count };
            widen(&t, wide->numbers + wide->number_count);
        }
        wide->count++;
        wide->number_count += t.bytes / 2;
    }
}

static size_t tensor_bytes(const struct bsmi_wide_scales *wide) { return (size_t)wide->count * sizeof *wide->tensors; }
static size_t number_bytes(const struct bsmi_wide_scales *wide)
{
    return ((size_t)wide->number_count + 1) * sizeof *wide->numbers;
}

bsm_status bsmi_wide_scales_make(const bsm_context *context, const bsm_checkpoint *checkpoint,
                                 struct bsmi_wide_scales *wide)
{
    *wide = (struct bsmi_wide_scales){ .count = 0 };
    gather(checkpoint, wide);
    if (wide->count == 0) return BSM_OK;
    wide->tensors = bsmi_allocate(context, tensor_bytes(wide));
    wide->numbers = bsmi_allocate(context, number_bytes(wide));
    if (wide->tensors == NULL || wide->numbers == NULL) {
        const int64_t count = wide->number_count;
        bsmi_wide_scales_free(context, wide);
        return bsmi_fail(BSM_ENOMEM, "no memory for %" PRId64 " scales", count);
    }
    gather(checkpoint, wide);
    return BSM_OK;
}

void bsmi_wide_scales_free(const bsm_context *context, struct bsmi_wide_scales *wide)
{
    bsmi_release(context, wide->tensors, tensor_bytes(wide));
    bsmi_release(context, wide->numbers, number_bytes(wide));
    *wide = (struct bsmi_wide_scales){ .count = 0 };
}

const float *bsmi_wide_scales_find(const struct bsmi_wide_scales *wide, int64_t index)
{
    int64_t low = 0, high = wide->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (wide->tensors[middle].index < index) low = middle + 1;
        else high = middle;
    }
    return low < wide->count && wide->tensors[low].index == index ? wide->tensors[low].numbers : NULL;
}

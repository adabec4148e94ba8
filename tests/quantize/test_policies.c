/* Clamps and the smallest scale: against a block whose largest number is the clamped one, and elements encoded one by
 * one. */
#include "blockscale.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { BLOCKS = 40, LENGTH = 32 };

static const struct policy { bsm_format format; bsm_recipe recipe; float low, high; uint8_t smallest; } policies[] = {
    { BSM_MXFP8_E4M3, BSM_RECIPE_DEFAULT, 0, 1, 0 },     { BSM_MXFP4, BSM_RECIPE_FLOOR, 1e-4f, 0, 0 },
    { BSM_MXFP4, BSM_RECIPE_EVEN, 1e-4f, 0.75f, 0 },     { BSM_MXFP6_E2M3, BSM_RECIPE_CEIL, 0, 0, 120 },
    { BSM_NVFP4, BSM_RECIPE_DEFAULT, 0, 0, 8 },          { BSM_NVFP4, BSM_RECIPE_DEFAULT, 0.5f, 2, 0 },
    { BSM_NVFP4, BSM_RECIPE_FOUR_OVER_SIX, 0, 1, 1 },    { BSM_MXINT8, BSM_RECIPE_DEFAULT, 1, 1, 125 },
};

static bsm_status quantize(bsm_context *context, float *x, int64_t columns, const struct policy *p, bool with,
                           float *tensor_scale, bool computed, uint8_t *codes, uint8_t *scales,
                           bsm_quantize_stats *stats)
{
    const bsm_real_matrix source = { .struct_size = sizeof source, .rows = 1, .columns = columns, .data = x,
                                     .row_stride = columns, .column_stride = 1 };
    const bool wide = p->format == BSM_MXFP8_E4M3 || p->format == BSM_MXINT8;
    const bsm_matrix destination = { .struct_size = sizeof destination, .format = p->format, .rows = 1,
                                     .columns = columns, .data = codes,
                                     .packing = wide ? BSM_PACKING_DEFAULT : BSM_PACKING_BYTES, .scales = scales,
                                     .tensor_scale = tensor_scale };
    bsm_quantize_options options = { .struct_size = sizeof options, .recipe = p->recipe,
                                     .tensor_scale = computed ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN };
    if (with) options.clamp_low = p->low, options.clamp_high = p->high, options.smallest_scale = p->smallest;
    return bsm_quantize(context, &source, &options, &destination, stats);
}

/* The scale code that a block gets whose largest number is the clamped one. */
static uint8_t wanted_scale(struct test *t, bsm_context *context, const struct policy *p, const float *x, int count,
                            float *tensor_scale)
{
    float amax = 0, alone[LENGTH] = { 0 };
    uint8_t codes[LENGTH], code = 0;
    for (int i = 0; i < count; i++) amax = fmaxf(amax, fabsf(x[i]));
    alone[0] = fmaxf(p->high > 0 ? fminf(amax, p->high) : amax, p->low);
    CHECK(t, quantize(context, alone, count, p, false, tensor_scale, false, codes, &code, NULL) == BSM_OK);
    return code > p->smallest ? code : p->smallest;
}

static void every_policy(struct test *t)
{
    bsm_context *context;
    static float x[BLOCKS * LENGTH];
    static uint8_t codes[BLOCKS * LENGTH], scales[2 * BLOCKS];
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (int i = 0; i < BLOCKS * LENGTH; i++) {
        const int block = i / LENGTH;
        x[i] = block % 8 == 7 ? 0 : ldexpf((float)(rnd_below(t, 4001) - 2000) / 1500, block % 8 * -3 + 2);
    }
    for (size_t n = 0; n < sizeof policies / sizeof policies[0]; n++) {
        const struct policy *p = &policies[n];
        const bsm_format_info *info = bsm_format_get((int)p->format);
        float tensor_scale = 1;
        const bool nvfp4 = p->format == BSM_NVFP4;
        bsm_quantize_stats stats = { .struct_size = sizeof stats };
        CHECK(t,
              quantize(context, x, BLOCKS * LENGTH, p, true, nvfp4 ? &tensor_scale : NULL, nvfp4, codes, scales, &stats)
                  == BSM_OK);
        const float largest = p->high > 0 && p->high < (float)stats.amax ? p->high : (float)stats.amax;
        if (nvfp4) CHECK(t, tensor_scale == largest / (p->recipe == BSM_RECIPE_FOUR_OVER_SIX ? 1536.0f : 2688.0f));
        for (int b = 0; b * info->block < BLOCKS * LENGTH; b++) {
            const float *block = x + b * info->block;
            if (p->recipe != BSM_RECIPE_FOUR_OVER_SIX) {
                const uint8_t want = wanted_scale(t, context, p, block, info->block, nvfp4 ? &tensor_scale : NULL);
                if (scales[b] != want) FAIL(t, "policy %zu, block %d: scale %d, not %d", n, b, scales[b], want);
            }
            CHECK(t, scales[b] >= p->smallest);
            const double scale = (double)bsm_scale_decode(info->scale, scales[b]) * (double)tensor_scale;
            for (int i = 0; i < info->block && scale > 0; i++) {
                const uint32_t want =
                    bsm_element_encode(info->element, (double)block[i] / scale, BSM_ROUND_NEAREST_EVEN, true, 0);
                if (codes[b * info->block + i] != want)
                    FAIL(t, "policy %zu, block %d, element %d: %d, not %u", n, b, i, codes[b * info->block + i], want);
            }
        }
    }
    bsm_context_destroy(context);
}

static void refused(struct test *t)
{
    static const struct { struct policy policy; const char *words; } cases[] = {
        { { BSM_MXFP4, BSM_RECIPE_DEFAULT, -1, 0, 0 }, "options->clamp_low=-1" },
        { { BSM_MXFP4, BSM_RECIPE_DEFAULT, 0, -1, 0 }, "options->clamp_high=-1" },
        { { BSM_MXFP4, BSM_RECIPE_DEFAULT, NAN, 0, 0 }, "options->clamp_low=" },
        { { BSM_MXFP4, BSM_RECIPE_DEFAULT, 0, INFINITY, 0 }, "options->clamp_high=inf" },
        { { BSM_MXFP4, BSM_RECIPE_DEFAULT, 2, 1, 0 }, "options->clamp_low=2 is above clamp_high=1" },
        { { BSM_MXFP4, BSM_RECIPE_DEFAULT, 0, 0, 255 },
          "options->smallest_scale=255: scale codes of mxfp4 that are numbers end at 254" },
        { { BSM_NVFP4, BSM_RECIPE_DEFAULT, 0, 0, 0x7f }, "end at 126" },
        { { BSM_FORMAT_E4M3, BSM_RECIPE_DEFAULT, 1, 0, 0 }, "e4m3 has none" },
    };
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float x[LENGTH] = { 1 };
        uint8_t codes[LENGTH] = { 0x77 }, scales[2];
        struct policy p = cases[i].policy;
        CHECK(t, quantize(context, x, LENGTH, &p, true, NULL, false, codes, p.format == BSM_FORMAT_E4M3 ? NULL : scales,
                          NULL)
                     == BSM_EINVAL);
        if (strstr(bsm_last_error(), cases[i].words) == NULL) FAIL(t, "case %zu: %s", i, bsm_last_error());
        CHECK(t, codes[0] == 0x77);
    }
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_policy), TEST(refused) };
    return TEST_MAIN(argc, argv, cases);
}

/* Every kernel that quantizes against block.c, bit for bit: all recipes, tensor scales, packings and numbers of blocks;
 * numbers on and beside every midpoint and every step of a scale, subnormal, infinite and NaN.  Inputs end, and outputs
 * lie, where a page faults. */
#include "core/core.h"
#include "cpu/epilogue/store.h"
#include "quantize/kernels/dequantize_table.h"
#include "core/stream.h"
#include "quantize/kernels/table.h"
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_BLOCKS = 37, MOST_NUMBERS = 32 * MOST_BLOCKS };

struct setting {
    const struct bsmi_quantize_kernel *kernel;
    bsm_format format;
    bsm_packing packing;
    struct bsmi_block_quantizer quantizer;
    struct bsmi_block_coding coding;
};

static int packings_of(bsm_format format, bsm_packing *packings)
{
    const int bits = bsm_element_get((int)bsm_format_get((int)format)->element)->bits;
    int count = 0;
    packings[count++] = bits == 8 ? BSM_PACKING_DEFAULT : BSM_PACKING_BYTES;
    if (bits == 4) packings[count++] = BSM_PACKING_LOW_FIRST, packings[count++] = BSM_PACKING_HIGH_FIRST;
    if (bits == 6) packings[count++] = BSM_PACKING_BIT_STREAM;
    return count;
}

static size_t packed_bytes(bsm_packing packing, int64_t count)
{
    switch (packing) {
    case BSM_PACKING_LOW_FIRST:
    case BSM_PACKING_HIGH_FIRST: return (size_t)count / 2;
    case BSM_PACKING_BIT_STREAM: return (size_t)count / 4 * 3;
    default: return (size_t)count;
    }
}

static int packed_code(bsm_packing packing, const unsigned char *codes, int64_t i)
{
    const int nibble =
        (codes[packing == BSM_PACKING_BIT_STREAM ? 0 : i / 2] >> (i % 2 == (packing == BSM_PACKING_LOW_FIRST) ? 4 : 0))
        & 15;
    if (packing == BSM_PACKING_LOW_FIRST || packing == BSM_PACKING_HIGH_FIRST) return nibble;
    if (packing != BSM_PACKING_BIT_STREAM) return codes[i];
    int code = 0;
    for (int64_t bit = 0; bit < 6; bit++) code |= (codes[(6 * i + bit) / 8] >> (6 * i + bit) % 8 & 1) << bit;
    return code;
}

static float of_16_bits(bsm_real type, uint16_t bits)
{
    return type == BSM_REAL_FP16 ? bsmi_fp16_to_float(bits) : bsmi_bf16_to_float(bits);
}

/* The numbers as a source of that type has them: rounded, in x what they are worth. */
static void *as_source(bsm_real type, const float *numbers, int64_t count, float *x)
{
    uint16_t *source = guarded_at_end((size_t)count * sizeof *source, sizeof *source, 0);
    for (int64_t i = 0; i < count; i++) {
        source[i] = (uint16_t)(bsmi_float_bits(numbers[i]) >> 16);
        if (type == BSM_REAL_FP16)
            source[i] = (uint16_t)bsm_element_encode(BSM_FP16, (double)numbers[i], BSM_ROUND_NEAREST_EVEN, false, 0);
        x[i] = of_16_bits(type, source[i]);
    }
    return source;
}

/* A kernel's blocks, compared one by one; and what it says of them.  Numbers are rounded to the type. */
static void check_blocks_of(struct test *t, const struct setting *s, bsm_real type, const float *numbers,
                            int64_t blocks)
{
    const int block = bsm_format_get((int)s->format)->block;
    const int64_t count = blocks * block;
    float *x = guarded_at_end((size_t)count * sizeof *x, sizeof *x, 0);
    void *source = type == BSM_REAL_FP32 ? NULL : as_source(type, numbers, count, x);
    uint8_t *scales = guarded_at_end((size_t)blocks, 1, 0xa5),
            *codes = guarded_at_end(packed_bytes(s->packing, count), 1, 0xa5);
    if (source == NULL) memcpy(x, numbers, (size_t)count * sizeof *x);
    const struct bsmi_block_row row = { type, source != NULL ? source : x, blocks, scales, codes, s->packing };
    const bool fast = s->kernel->quantize(&s->coding, &row);
    bool all_fast = true;
    for (int64_t b = 0; b < blocks; b++) {
        struct bsmi_block_scan scan = { 0, false };
        uint8_t want[32];
        double wide[32];
        for (int i = 0; i < block; i++) wide[i] = (double)x[b * block + i];
        bsmi_scan_block(wide, block, &scan);
        if (scan.nonfinite || !bsmi_block_takes_fast_path(&s->coding, bsmi_float_bits((float)scan.amax))) {
            all_fast = false;
            continue;
        }
        const int scale = bsmi_quantize_block(&s->quantizer, x + b * block, block, 0, want, NULL);
        if (scales[b] != scale)
            FAIL(t, "%s %s %s, tensor scale %a, amax %a: scale %d, want %d", s->kernel->name,
                 bsm_format_get((int)s->format)->name,
                 s->quantizer.recipe == NULL ? "" : bsm_packing_name((int)s->packing), s->quantizer.tensor_scale,
                 scan.amax, scales[b], scale);
        for (int i = 0; i < block && scales[b] == scale; i++)
            if (packed_code(s->packing, codes, b * block + i) != want[i])
                FAIL(t, "%s %s %s, tensor scale %a, scale %d, x %a: code 0x%x, want 0x%x", s->kernel->name,
                     bsm_format_get((int)s->format)->name, bsm_packing_name((int)s->packing), s->quantizer.tensor_scale,
                     scale, (double)x[b * block + i], (unsigned)packed_code(s->packing, codes, b * block + i), want[i]);
    }
    CHECK(t, fast == all_fast);
    guarded_free(x), guarded_free(scales), guarded_free(codes);
    if (source != NULL) guarded_free(source);
}

static void check_blocks(struct test *t, const struct setting *s, const float *numbers, int64_t blocks)
{
    static const bsm_real types[] = { BSM_REAL_FP32, BSM_REAL_FP32, BSM_REAL_BF16, BSM_REAL_FP16 };
    check_blocks_of(t, s, types[rnd_below(t, 4)], numbers, blocks);
}

/* Numbers ---------------------------------------------------------------------------------------------------------- */

static float any_float(struct test *t) { return bsmi_float_from_bits((uint32_t)rnd(t)); }

static float beside(struct test *t, float x)
{
    const uint32_t bits = bsmi_float_bits(x);
    return (bits & 0x7fffffff) == 0 ? x : bsmi_float_from_bits(bits + (uint32_t)rnd_between(t, -1, 1));
}

/* The magnitude between two neighbouring codes, or a code. */
static double some_midpoint(struct test *t, bsm_element element)
{
    const uint32_t code = (uint32_t)rnd_below(t, (int64_t)bsm_element_get((int)element)->max_code);
    const double low = (double)bsm_element_decode(element, code), high = (double)bsm_element_decode(element, code + 1);
    return rnd_below(t, 8) == 0 ? low : (low + high) / 2;
}

/* A largest magnitude on or beside a step of the scale. */
static float some_amax(struct test *t, const struct setting *s)
{
    const bsm_element_info *info = bsm_element_get((int)s->quantizer.element);
    const double t_scale =
        s->quantizer.tensor_scale_divides ? 1 / s->quantizer.tensor_scale : s->quantizer.tensor_scale;
    if (s->quantizer.scale == BSM_UE4M3) return beside(t, (float)(some_midpoint(t, BSM_E4M3) * 6 * t_scale));
    const double significands[] = { 1, info->max_value, 2 - ldexp(1, -(info->mantissa_bits + 1)), 2 - ldexp(1, -7),
                                    1 + (double)rnd_below(t, 1 << 23) * 0x1p-23 };
    return beside(t, (float)(significands[rnd_below(t, 5)] * t_scale * ldexp(1, (int)rnd_between(t, -150, 127))));
}

/* Elements on and beside the midpoints under the scale that an amax gives: all of them, or a single one, since a kernel
 * may do a block with one of them once more. */
static void fill_with_ties(struct test *t, const struct setting *s, int block, float *x)
{
    uint8_t codes[32];
    const float amax = some_amax(t, s), limit = isfinite(amax) ? fabsf(amax) : FLT_MAX;
    x[0] = limit;
    for (int i = 1; i < block; i++) x[i] = 0;
    const uint8_t scale_code = bsmi_quantize_block(&s->quantizer, x, block, 0, codes, NULL);
    const double scale = (double)bsm_scale_decode(s->quantizer.scale, scale_code);
    const double unit =
        s->quantizer.tensor_scale_divides ? scale / s->quantizer.tensor_scale : scale * s->quantizer.tensor_scale;
    const int64_t single = rnd_below(t, 2) == 0 ? rnd_between(t, 1, block - 1) : 0;
    for (int i = 1; i < block; i++) {
        const float y = beside(t, (float)(some_midpoint(t, s->quantizer.element) * unit));
        x[i] = isfinite(y) && fabsf(y) < limit ? y : limit * 0.25F;
        if (single != 0 && i != single) x[i] = limit * (float)rnd_below(t, 1 << 20) * 0x1p-20F;
        if (rnd_below(t, 2) == 0) x[i] = -x[i];
    }
    const int64_t other = rnd_below(t, block);
    const float first = x[0];
    x[0] = x[other], x[other] = first;
}

static void fill_block(struct test *t, const struct setting *s, int block, float *x)
{
    const int64_t kind = rnd_below(t, 12);
    const float size = (float)ldexp(1, (int)rnd_between(t, -140, 120));
    if (kind < 6) {
        fill_with_ties(t, s, block, x);
        return;
    }
    for (int i = 0; i < block; i++) {
        x[i] = size * (float)rnd_normal(t);
        if (kind == 6) x[i] = any_float(t);
        if (kind == 7) x[i] = bsmi_float_from_bits((uint32_t)rnd(t) & 0x807fffff);
        if (kind == 8) x[i] = rnd_below(t, 2) == 0 ? 0.0F : -0.0F;
        if (kind == 9) x[i] = (float)((double)s->quantizer.tensor_scale * rnd_normal(t));
        if (kind == 10 && !isfinite(x[i])) x[i] = FLT_MAX;
    }
    if (kind == 11) x[rnd_below(t, block)] = rnd_below(t, 2) == 0 ? NAN : -INFINITY;
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

static const float tensor_scales[] = { 1,       0.75F,           3,
                                       0.1F,    0x1.fffffep-9F,  0x1p-96F,
                                       0x1p96F, 0x1.234568p-60F, 0x1.fffffep50F };

typedef void check_setting(struct test *t, const struct setting *s);

static bool make_setting(struct test *t, const struct bsmi_quantize_kernel *kernel, bsm_format format,
                         bsm_recipe recipe, float tensor_scale, bsm_tensor_scale_use use, bsm_packing packing,
                         struct setting *s)
{
    const bsm_format_info *info = bsm_format_get((int)format);
    struct bsmi_matrix m = { .format = format, .element = info->element, .scale = info->scale, .block = info->block,
                             .packing = packing };
    *s = (struct setting){ .kernel = kernel, .format = format, .packing = packing };
    if (bsmi_block_quantizer_make("recipe", format, recipe, BSM_ROUND_NEAREST_EVEN, 0, BSM_NONFINITE_PROPAGATE,
                                  tensor_scale, use, &s->quantizer)
        != BSM_OK)
        return false;
    s->quantizer.source = BSM_REAL_BF16;
    CHECK(t, bsmi_quantize_kernel_choose(kernel->needs, &s->quantizer, &m, &s->coding) == kernel);
    return true;
}

/* Calls check for every kernel this machine runs, format, recipe, tensor scale and packing. */
static void for_every_setting(struct test *t, check_setting *check)
{
    int kernels = 0;
    for (int k = 0; k < bsmi_quantize_kernel_count - 1; k++) {
        const struct bsmi_quantize_kernel *kernel = &bsmi_quantize_kernels[k];
        if ((kernel->needs & bsmi_cpu_detect(BSM_CPU_ALL)) != kernel->needs) continue;
        kernels++;
        for (int format = 0; format < BSM_FORMAT_COUNT; format++) {
            bsm_packing packings[3];
            if (bsm_format_get(format) == NULL || bsm_format_get(format)->block == 0) continue;
            const int packing_count = packings_of((bsm_format)format, packings);
            for (int recipe = BSM_RECIPE_FLOOR; recipe < BSM_RECIPE_COUNT; recipe++)
                for (size_t i = 0; i < 2 * sizeof tensor_scales / sizeof tensor_scales[0]; i++) {
                    struct setting s;
                    /* a tensor scale */
                    const bool e2m1 = bsm_format_get(format)->element == BSM_E2M1, without = i < 2;
                    if (recipe == BSM_RECIPE_FOUR_OVER_SIX || (recipe == BSM_RECIPE_MSE && !(e2m1 && without)))
                        continue;
                    if (make_setting(t, kernel, (bsm_format)format, (bsm_recipe)recipe, tensor_scales[i / 2],
                                     i % 2 == 0 ? BSM_TENSOR_SCALE_MULTIPLIES : BSM_TENSOR_SCALE_DIVIDES,
                                     packings[rnd_below(t, packing_count)], &s))
                        check(t, &s);
                }
        }
    }
    if (kernels == 0) test_skip(t, "this CPU runs no kernel but the portable one");
}

static void check_random_blocks(struct test *t, const struct setting *s)
{
    const int block = bsm_format_get((int)s->format)->block;
    float x[MOST_NUMBERS];
    for (int repeat = 0; repeat < 4; repeat++) {
        const int64_t blocks = rnd_between(t, 1, MOST_BLOCKS);
        for (int64_t b = 0; b < blocks; b++) fill_block(t, s, block, x + b * block);
        check_blocks(t, s, x, blocks);
    }
}

/* Scale steps in every binade, and the largest and smallest numbers: every scale code that fp32 reaches. */
static void check_every_binade(struct test *t, const struct setting *s)
{
    const int block = bsm_format_get((int)s->format)->block;
    const uint32_t step = (uint32_t)((1 << 23) - s->coding.scale_bias) & 0x7fffff;
    float x[MOST_NUMBERS];
    int64_t blocks = 0;
    for (uint32_t binade = 1; binade < 255; binade++) {
        const uint32_t fractions[] = { 0, 0x7fffff, (step - 1) & 0x7fffff, step };
        for (int f = 0; f < 4; f++) {
            for (int i = 0; i < block; i++)
                x[blocks * block + i] = bsmi_float_from_bits((uint32_t)rnd(t) % (binade << 23));
            x[blocks * block + rnd_below(t, block)] = bsmi_float_from_bits(binade << 23 | fractions[f]);
            if (++blocks == MOST_BLOCKS) check_blocks(t, s, x, blocks), blocks = 0;
        }
    }
    check_blocks(t, s, x, blocks);
}

static void random_blocks(struct test *t) { for_every_setting(t, check_random_blocks); }
static void every_binade(struct test *t) { for_every_setting(t, check_every_binade); }

/* Every number of bf16 under every scale that its largest magnitudes give.  Blocks with each of those magnitudes, in
 * order and not; then, for the first of each scale, all magnitudes up to it. */
static void check_every_bf16(struct test *t, const struct setting *s)
{
    enum { MAGNITUDES = 32768, INFINITY_BITS = 0x7f80 };
    const int block = bsm_format_get((int)s->format)->block;
    const int64_t blocks = MAGNITUDES / (block - 1) + 1;
    float *x = calloc((size_t)MAGNITUDES * (size_t)block, sizeof *x);
    const float *const sign = (const float[]){ 1, -1 };
    int last = -1;
    for (uint16_t step = 1; step < 100; step += 98) {
        for (uint32_t b = 0; b < INFINITY_BITS; b++) {
            const uint32_t amax = b * step % INFINITY_BITS;
            for (int i = 0; i < block; i++) {
                const uint32_t less = (uint32_t)rnd_below(t, i % 4 == 0 ? amax + 1 : 1400);
                x[b * (uint32_t)block + (uint32_t)i] =
                    sign[rnd_below(t, 2)] * of_16_bits(BSM_REAL_BF16, (uint16_t)(less < amax ? amax - less : amax));
            }
            x[b * (uint32_t)block + (uint32_t)rnd_below(t, block)] = of_16_bits(BSM_REAL_BF16, (uint16_t)amax);
        }
        check_blocks_of(t, s, BSM_REAL_BF16, x, INFINITY_BITS);
    }
    for (uint32_t amax = 0; amax < INFINITY_BITS; amax++) {
        uint8_t codes[32];
        for (int i = 0; i < block; i++) x[i] = of_16_bits(BSM_REAL_BF16, (uint16_t)amax);
        const int scale = bsmi_quantize_block(&s->quantizer, x, block, 0, codes, NULL);
        if (scale == last && amax != INFINITY_BITS - 1) continue;
        last = scale;
        for (int64_t b = 0, word = 0; b < blocks; b++) {
            for (int i = 1; i < block; i++, word++)
                x[b * block + i] = sign[rnd_below(t, 2)]
                                 * of_16_bits(BSM_REAL_BF16, (uint16_t)(word < amax ? word : (int64_t)amax));
            x[b * block] = of_16_bits(BSM_REAL_BF16, (uint16_t)amax);
            if (word > amax) {
                check_blocks_of(t, s, BSM_REAL_BF16, x, b + 1);
                break;
            }
        }
    }
    free(x);
}

static void every_bf16(struct test *t)
{
    static const struct {
        bsm_format format;
        bsm_recipe recipe;
        float tensor_scale;
        bsm_tensor_scale_use use;
    } cases[] = {
        { BSM_MXFP8_E4M3, BSM_RECIPE_FLOOR, 1, 0 },   { BSM_MXFP8_E4M3, BSM_RECIPE_RCEIL, 1, 0 },
        { BSM_MXFP8_E5M2, BSM_RECIPE_FLOOR, 1, 0 },   { BSM_MXFP8_E5M2, BSM_RECIPE_EVEN, 1, 0 },
        { BSM_MXFP4, BSM_RECIPE_FLOOR, 1, 0 },        { BSM_MXFP4, BSM_RECIPE_EVEN, 1, 0 },
        { BSM_NVFP4, BSM_RECIPE_NEAREST, 1, 0 },      { BSM_NVFP4, BSM_RECIPE_NEAREST, 0.1F, 0 },
        { BSM_NVFP4, BSM_RECIPE_NEAREST, 0.1F, BSM_TENSOR_SCALE_DIVIDES },
        { BSM_NVFP4, BSM_RECIPE_NEAREST, 0x1.fffffep-9F, 0 },
        { BSM_NVFP4, BSM_RECIPE_NEAREST, 0x1p96F, 0 }, { BSM_NVFP4, BSM_RECIPE_NEAREST, 0x1p-96F, 0 },
        { BSM_NVFP4, BSM_RECIPE_NEAREST, 0x1.234568p-60F, BSM_TENSOR_SCALE_DIVIDES },
    };
    const struct bsmi_quantize_kernel *kernel = bsmi_quantize_kernel_of(bsmi_cpu_detect(BSM_CPU_ALL));
    if (kernel->quantize == NULL) {
        test_skip(t, "this CPU runs no kernel but the portable one");
        return;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bsm_packing packings[3];
        struct setting s;
        const int packing = packings_of(cases[i].format, packings) == 1 ? 0 : (int)rnd_between(t, 1, 2);
        CHECK_OR_RETURN(t, make_setting(t, kernel, cases[i].format, cases[i].recipe, cases[i].tensor_scale,
                                        cases[i].use, packings[packing], &s));
        check_every_bf16(t, &s);
    }
}

/* A format's own packing among all, one block to many: every store, and nothing beyond it. */
static void every_packing_and_length(struct test *t)
{
    for (int k = 0; k < bsmi_quantize_kernel_count - 1; k++) {
        const struct bsmi_quantize_kernel *kernel = &bsmi_quantize_kernels[k];
        if ((kernel->needs & bsmi_cpu_detect(BSM_CPU_ALL)) != kernel->needs) continue;
        for (int format = 0; format < BSM_FORMAT_COUNT; format++) {
            bsm_packing packings[3];
            const int block = bsm_format_get(format) == NULL ? 0 : bsm_format_get(format)->block;
            const int packing_count = block == 0 ? 0 : packings_of((bsm_format)format, packings);
            for (int p = 0; p < packing_count; p++)
                for (int64_t blocks = 1; blocks <= MOST_BLOCKS; blocks++) {
                    struct setting s;
                    float x[MOST_NUMBERS];
                    CHECK_OR_RETURN(t, make_setting(t, kernel, (bsm_format)format, BSM_RECIPE_DEFAULT, 1,
                                                    BSM_TENSOR_SCALE_MULTIPLIES, packings[p], &s));
                    for (int64_t i = 0; i < blocks * block; i++) x[i] = (float)rnd_normal(t);
                    check_blocks(t, &s, x, blocks);
                    check_blocks_of(t, &s, BSM_REAL_BF16, x, blocks);
                }
        }
    }
}

/* What kernels must leave to block.c, and what a mask takes away. */
static void what_is_chosen(struct test *t)
{
    const struct bsmi_quantize_kernel *last = &bsmi_quantize_kernels[bsmi_quantize_kernel_count - 1];
    struct bsmi_matrix m = { .format = BSM_NVFP4, .block = 16, .packing = BSM_PACKING_LOW_FIRST };
    struct bsmi_block_quantizer q;
    struct bsmi_block_coding coding;
    const uint32_t every_feature = BSM_CPU_ALL;
    CHECK(t, last->quantize == NULL && last->needs == 0);
    CHECK(t, bsmi_block_quantizer_make("r", BSM_NVFP4, BSM_RECIPE_NEAREST, BSM_ROUND_NEAREST_EVEN, 0, 0, 1, 0, &q)
                 == BSM_OK);
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == bsmi_quantize_kernels);
    CHECK(t, bsmi_quantize_kernel_choose(0, &q, &m, &coding) == last);
    for (int k = 0; k < bsmi_quantize_kernel_count; k++)
        CHECK(t, bsmi_quantize_kernel_choose(bsmi_quantize_kernels[k].needs, &q, &m, &coding)
                     == &bsmi_quantize_kernels[k]);
    q.tensor_scale = 0x1.8p96;
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == last);
    q.tensor_scale = 0x1.8p-97;
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == last);
    q.tensor_scale = 1, q.rounding = BSM_ROUND_STOCHASTIC;
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == last);
    /* only asked whether there is one */
    const struct bsmi_preset_rule *const some_preset = (const struct bsmi_preset_rule *)(const void *)&m;
    q.rounding = BSM_ROUND_NEAREST_EVEN, q.preset = some_preset;
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == last);
    q.preset = NULL, q.clamp.low = 1;
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == last);
    q.clamp.low = 0, q.clamp.high = 1;
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == last);
    q.clamp.high = 0, q.smallest_scale = 1;
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == last);
    q.smallest_scale = 0, m.packing = BSM_PACKING_GGUF;
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == bsmi_quantize_kernels);
    m.packing = BSM_PACKING_LOW_FIRST;
    CHECK(t, bsmi_block_quantizer_make("r", BSM_NVFP4, BSM_RECIPE_FOUR_OVER_SIX, BSM_ROUND_NEAREST_EVEN, 0, 0, 1, 0, &q)
                 == BSM_OK);
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == last);
    m.format = BSM_MXFP4, m.block = 32;
    CHECK(t,
          bsmi_block_quantizer_make("r", BSM_MXFP4, BSM_RECIPE_MSE, BSM_ROUND_NEAREST_EVEN, 0, 0, 1, 0, &q) == BSM_OK);
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == bsmi_quantize_kernels);
    q.tensor_scale = 2;
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == last);
    CHECK(t, bsmi_block_quantizer_make("r", BSM_MXFP8_E4M3, BSM_RECIPE_MSE, BSM_ROUND_NEAREST_EVEN, 0, 0, 1, 0, &q)
                 == BSM_OK);
    CHECK(t, bsmi_quantize_kernel_choose(every_feature, &q, &m, &coding) == last);
}

/* A matrix whose codes an int64_t counts in bytes, but not its numbers in elements. */
static void more_numbers_than_an_int64_counts(struct test *t)
{
    static _Alignas(64) unsigned char byte;
    const bsm_matrix given = { .struct_size = sizeof given, .format = BSM_MXFP4, .rows = (int64_t)1 << 31,
                               .columns = (int64_t)1 << 29, .batch = 12,
                               .data = &byte, .scales = &byte };
    const struct bsmi_reals to = { .type = BSM_REAL_FP16, .column_stride = 1 };
    struct bsmi_matrix m;
    struct bsmi_block_decoding decoding;
    CHECK_OR_RETURN(t, bsmi_matrix_resolve("m", &given, &m) == BSM_OK);
    CHECK(t, bsmi_dequantize_kernel_choose(0, &m, 1, &to, &decoding) != NULL);
    /* on x86-64: past the caches */
    CHECK(t, decoding.streamed == bsmi_is_streamed(1, 1, BSMI_STREAMED_BYTES / 4));
    CHECK(t,
          bsmi_is_stored_past_caches(&m) == decoding.streamed && !bsmi_is_streamed(1, 1, BSMI_STREAMED_BYTES / 4 - 1));
}

/* All numbers of 16 bits, from any place and in any number. */
static void widening(struct test *t)
{
    for (int k = 0; k < bsmi_quantize_kernel_count - 1; k++) {
        const struct bsmi_quantize_kernel *kernel = &bsmi_quantize_kernels[k];
        if ((kernel->needs & bsmi_cpu_detect(BSM_CPU_ALL)) != kernel->needs) continue;
        for (int type = BSM_REAL_FP16; type <= BSM_REAL_BF16; type++)
            for (int64_t first = 0, count; first < 65536; first += count) {
                count = BSMI_MIN(rnd_between(t, 1, 256), 65536 - first);
                uint16_t *from = guarded_at_end((size_t)count * sizeof *from, sizeof *from, 0);
                float *to = guarded_at_end((size_t)count * sizeof *to, sizeof *to, 0);
                for (int64_t i = 0; i < count; i++) from[i] = (uint16_t)(first + i);
                kernel->widen((bsm_real)type, from, count, to);
                for (int64_t i = 0; i < count; i++) {
                    const float want = of_16_bits((bsm_real)type, from[i]);
                    CHECK(t, isnan(want) ? isnan(to[i]) : bsmi_float_bits(want) == bsmi_float_bits(to[i]));
                }
                guarded_free(from), guarded_free(to);
            }
    }
}

/* The largest finite magnitude among numbers of all sizes, many of them not finite, in any number. */
static void largest_finite(struct test *t)
{
    static const uint32_t infinities[] = { 0x7f800000, 0x7c00, 0x7f80 };         /* by bsm_real */
    for (int k = 0; k < bsmi_quantize_kernel_count - 1; k++) {
        const struct bsmi_quantize_kernel *kernel = &bsmi_quantize_kernels[k];
        if ((kernel->needs & bsmi_cpu_detect(BSM_CPU_ALL)) != kernel->needs) continue;
        for (int type = BSM_REAL_FP32; type <= BSM_REAL_BF16; type++)
            for (int64_t count = 0; count <= 700; count++) {
                const size_t bytes = bsm_real_bytes(type);
                const uint32_t sign = bytes == 4 ? 0x80000000 : 0x8000;
                unsigned char *from = guarded_at_end((size_t)count * bytes, bytes, 0);
                const uint32_t below = (uint32_t)rnd_between(t, 1, sign - 1);
                uint32_t want = 0;
                for (int64_t i = 0; i < count; i++) {
                    const int64_t kind = rnd_below(t, 6);
                    const uint32_t magnitude = kind == 0 ? infinities[type] + (uint32_t)rnd_below(t, 3) - 1
                        : kind == 1                      ? (uint32_t)rnd_below(t, sign)
                                                         : (uint32_t)rnd_below(t, below);
                    const uint32_t bits = rnd_below(t, 2) == 0 ? magnitude : magnitude | sign;
                    if (magnitude < infinities[type] && magnitude > want) want = magnitude;
                    memcpy(from + (size_t)i * bytes, &bits, bytes);
                }
                CHECK(t, kernel->largest_finite((bsm_real)type, from, count) == want);
                guarded_free(from);
            }
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(random_blocks),
                                              TEST(every_binade),
                                              TEST(every_bf16),
                                              TEST(every_packing_and_length),
                                              TEST(what_is_chosen),
                                              TEST(more_numbers_than_an_int64_counts),
                                              TEST(widening),
                                              TEST(largest_finite) };
    return TEST_MAIN(argc, argv, cases);
}

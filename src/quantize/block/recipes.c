/* The table of recipes, docs/guide/recipes.md explains each; their arithmetic is in scale_code.h. */
#include "recipes.h"

#include "core/core.h"
#include "scale_code.h"

#include <stdio.h>
#include <strings.h>

/* Of an fp64 source: 53 bits times 24 are no double, but the product rounded to odd compares as the product does with
 * all that recipes compare it with.  Beyond 2^+-400 every scale is the largest or the smallest: no product need
 * overflow. */
static struct bsmi_fraction wide_scaled_amax(double amax, double tensor_scale, bool tensor_scale_divides)
{
    struct bsmi_fraction r = { BSMI_MAX(0x1p-400, BSMI_MIN(amax, 0x1p400)), tensor_scale };
    if (tensor_scale_divides) r.numerator = bsmi_odd_product(r.numerator, tensor_scale), r.denominator = 1;
    return r;
}

static struct bsmi_fraction scaled_amax(const struct bsmi_block_quantizer *quantizer,
                                        const struct bsmi_block_view *block)
{
    if (quantizer->source == BSM_REAL_FP64)
        return wide_scaled_amax(block->amax, quantizer->tensor_scale, quantizer->tensor_scale_divides);
    return bsmi_scaled_amax((float)block->amax, quantizer->tensor_scale, quantizer->tensor_scale_divides);
}

static const bsm_element_info *element(const struct bsmi_block_quantizer *quantizer)
{
    return bsm_element_get((int)quantizer->element);
}

static uint8_t floor_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    return bsmi_floor_code(element(quantizer), scaled_amax(quantizer, block));
}

static uint8_t ceil_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    return bsmi_ceil_code(element(quantizer), scaled_amax(quantizer, block));
}

static uint8_t rceil_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    return bsmi_rceil_code(element(quantizer), scaled_amax(quantizer, block));
}

static uint8_t even_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    return bsmi_even_code(element(quantizer), scaled_amax(quantizer, block));
}

static uint8_t nearest_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    return bsmi_nearest_code(element(quantizer), bsm_element_get(BSM_E4M3), scaled_amax(quantizer, block));
}

/* Sum of (x - decoded)^2 over the finite numbers of a block under a scale, in double, in their order. */
static double squared_error(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block,
                            uint8_t scale_code)
{
    const double scale = (double)bsm_scale_decode(quantizer->scale, scale_code);
    const struct bsmi_division by = bsmi_division_of(scale, quantizer->tensor_scale, quantizer->tensor_scale_divides);
    double sum = 0;
    for (int i = 0; i < block->count; i++) {
        const double x = block->x[i], quotient = x * by.factor / by.divisor;
        uint8_t code;
        if (!isfinite(x)) continue;
        bsmi_element_encode_nearest(quantizer->element, &quotient, 1, &code);
        const double element = (double)bsm_element_decode(quantizer->element, code);
        const double error =
            x - bsmi_scaled_value(element, scale, quantizer->tensor_scale, quantizer->tensor_scale_divides);
        sum += error * error;
    }
    return sum;
}

/* Between 4 and 6, e2m1 has nothing: a block whose numbers lie there is nearer to codes up to 4 under a scale half as
 * large again. */
static uint8_t four_over_six_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    const uint8_t six = nearest_code(quantizer, block);
    const uint8_t four = bsmi_nearest_code_of_4(bsm_element_get(BSM_E4M3), scaled_amax(quantizer, block));
    if (four == six) return six;
    return squared_error(quantizer, block, four) < squared_error(quantizer, block, six) ? four : six;
}

/* Elements nearest to quotients: what their codes stand for. */
static void round_all(bsm_element element, const double *quotients, int count, double *rounded)
{
    uint8_t codes[32];
    bsmi_element_encode_nearest(element, quotients, count, codes);
    for (int i = 0; i < count; i++) rounded[i] = (double)bsm_element_decode(element, codes[i]);
}

/* The squared error under the scale of code `low` less that under the next, in units of the lower scale's square.  Of a
 * number q of such units that becomes a under one and b under the other it is (q - a)^2 - (q - b)^2 = (b - a)(2 q - a -
 * b): 0 for all that a and b agree on.  For e2m1 without a tensor scale the others are multiples of 2^-25 up to 8 (q <
 * 1/4 becomes 0 under both), as are their terms: the sum is exact, in any order.  Elsewhere it is rounded as doubles
 * are, in the order of the block. */
static double more_error_below(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block,
                               uint8_t low)
{
    const double scale = (double)bsm_scale_decode(quantizer->scale, low);
    const struct bsmi_division by = bsmi_division_of(scale, quantizer->tensor_scale, quantizer->tensor_scale_divides);
    double q[32], half[32], a[32], b[32], sum = 0;
    for (int i = 0; i < block->count; i++) {
        q[i] = isfinite(block->x[i]) ? block->x[i] * by.factor / by.divisor : 0;
        half[i] = q[i] / 2;
    }
    round_all(quantizer->element, q, block->count, a);
    round_all(quantizer->element, half, block->count, b);
    for (int i = 0; i < block->count; i++) sum += (2 * b[i] - a[i]) * (2 * q[i] - a[i] - 2 * b[i]);
    return sum;
}

/* FLOOR's scale is RCEIL's, or half of it, under which the largest numbers are cut and the others meet denser codes. */
static uint8_t mse_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    const uint8_t high = rceil_code(quantizer, block), low = floor_code(quantizer, block);
    return low != high && more_error_below(quantizer, block, low) < 0 ? low : high;
}

static const struct bsmi_recipe recipes[BSM_RECIPE_COUNT] = {
    [BSM_RECIPE_DEFAULT] = { "default", BSM_UNSCALED, NULL, false, false },
    [BSM_RECIPE_FLOOR]   = { "floor",   BSM_E8M0,     floor_code, true, false },
    [BSM_RECIPE_RCEIL]   = { "rceil",   BSM_E8M0,     rceil_code, true, false },
    [BSM_RECIPE_CEIL]    = { "ceil",    BSM_E8M0,     ceil_code, true, false },
    [BSM_RECIPE_EVEN]    = { "even",    BSM_E8M0,     even_code, true, false },
    [BSM_RECIPE_NEAREST] = { "nearest", BSM_UE4M3,    nearest_code, true, false },
    [BSM_RECIPE_FOUR_OVER_SIX] = { "four_over_six", BSM_UE4M3, four_over_six_code, false, true },
    [BSM_RECIPE_MSE]     = { "mse",     BSM_E8M0,     mse_code, true, true },
};

static const bsm_recipe defaults[BSM_SCALE_COUNT] = { [BSM_E8M0] = BSM_RECIPE_RCEIL, [BSM_UE4M3] = BSM_RECIPE_NEAREST };

/* "floor, rceil, ceil, even": the recipes that give a scale type. */
static void list_recipes(bsm_scale scale, char *text, size_t bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < BSM_RECIPE_COUNT; i++) {
        if (recipes[i].scale != scale || recipes[i].scale_code == NULL) continue;
        const int more = snprintf(text + length, bytes - length, "%s%s", length > 0 ? ", " : "", recipes[i].name);
        length = BSMI_MIN(length + (size_t)more, bytes - 1);
    }
}

const struct bsmi_recipe *bsmi_recipe_choose(const char *name, bsm_format format, bsm_recipe recipe)
{
    const bsm_format_info *info = bsm_format_get((int)format);
    if (info == NULL || info->scale == BSM_UNSCALED) {
        if (info == NULL) bsmi_fail(BSM_EINVAL, "format=%d is no format: use one of enum bsm_format", (int)format);
        else bsmi_fail(BSM_EINVAL, "%s: %s has no block scales, and so no recipe", name, info->name);
        return NULL;
    }
    if ((int)recipe < 0 || recipe >= BSM_RECIPE_COUNT) {
        bsmi_fail(BSM_EINVAL, "%s=%d: recipes are 0 to %d", name, (int)recipe, BSM_RECIPE_COUNT - 1);
        return NULL;
    }
    const struct bsmi_recipe *row = &recipes[recipe == BSM_RECIPE_DEFAULT ? defaults[info->scale] : recipe];
    if (row->scale == info->scale) return row;
    char fitting[128];
    list_recipes(info->scale, fitting, sizeof fitting);
    bsmi_fail(BSM_EINVAL, "%s=%s gives %s scales, and %s has %s: take %s", name, row->name,
              bsm_scale_name((int)row->scale), info->name, bsm_scale_name((int)info->scale), fitting);
    return NULL;
}

const char *bsm_recipe_name(int recipe)
{
    return recipe >= 0 && recipe < BSM_RECIPE_COUNT ? recipes[recipe].name : NULL;
}

int bsm_recipe_from_name(const char *name)
{
    if (name == NULL) return -1;
    for (int i = 0; i < BSM_RECIPE_COUNT; i++)
        if (strcasecmp(name, recipes[i].name) == 0) return i;
    return -1;
}

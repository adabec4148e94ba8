/* The table of recipes, docs/recipes.md explains each.
 *
 * A recipe works on the real number r = amax / t (or amax * t for a dividing tensor scale), which need not be a double.  It
 * is kept as a fraction of two doubles that are both exact, and only fractions are compared: no logarithm, no quotient
 * that was rounded.  Both parts are normal doubles: they lie between 2^-298 and 2^256. */
#include "recipes.h"

#include "core/core.h"

#include <stdio.h>
#include <strings.h>

struct fraction { double numerator, denominator; };

/* 24 bits over 24 bits, or 48 bits (the product of two floats) over 1: exact. */
static struct fraction scaled_amax(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    if (quantizer->tensor_scale_divides) return (struct fraction){ (double)block->amax * quantizer->tensor_scale, 1 };
    return (struct fraction){ block->amax, quantizer->tensor_scale };
}

static int exponent_of(double normal) { return (int)(bsmi_double_bits(normal) >> 52) - 1023; }
static uint64_t significand_of(double normal) { return bsmi_double_bits(normal) & (((uint64_t)1 << 52) - 1); }

/* n = 2^a u, d = 2^b v with u, v in [1, 2): u / v lies in (1/2, 2), so log2(n / d) is a - b plus less than one. */
static int floor_log2(struct fraction r)
{
    return exponent_of(r.numerator) - exponent_of(r.denominator) - (significand_of(r.numerator) < significand_of(r.denominator));
}

static int ceil_log2(struct fraction r)
{
    return exponent_of(r.numerator) - exponent_of(r.denominator) + (significand_of(r.numerator) > significand_of(r.denominator));
}

static struct fraction divided_by(struct fraction r, double divisor)
{
    r.denominator *= divisor;             /* 24 bits times at most 7: exact */
    return r;
}

/* The e8m0 code of 2^exponent, within the codes that are numbers. */
static uint8_t e8m0_code(int exponent) { return (uint8_t)BSMI_MAX(0, BSMI_MIN(254, exponent + 127)); }

static double max_value(const struct bsmi_block_quantizer *quantizer)
{
    return bsm_element_get((int)quantizer->element)->max_value;
}
static int emax(const struct bsmi_block_quantizer *quantizer) { return exponent_of(max_value(quantizer)); }

static uint8_t floor_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    return e8m0_code(floor_log2(scaled_amax(quantizer, block)) - emax(quantizer));
}

static uint8_t ceil_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    return e8m0_code(ceil_log2(scaled_amax(quantizer, block)) - emax(quantizer));
}

static uint8_t rceil_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    return e8m0_code(ceil_log2(divided_by(scaled_amax(quantizer, block), max_value(quantizer))));
}

/* Rounding half up to `bits` fraction bits carries into the next power of two from 2 - 2^-(bits + 1) on.  On fp32 bits
 * that is adding 1 << (23 - bits - 1), as the implementations do it; said of the real number it also holds for subnormals
 * (where only int8 can tell the difference: the others are clamped to code 0) and up to FLT_MAX.
 * int8 has 6 fraction bits behind the leading bit of its largest binade, [1, 2). */
static uint8_t even_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    const int bits = quantizer->element == BSM_INT8 ? 6 : bsm_element_get((int)quantizer->element)->mantissa_bits;
    const double carries_from = 2 - bsmi_double_power_of_two(-(bits + 1));
    return e8m0_code(floor_log2(divided_by(scaled_amax(quantizer, block), carries_from)) + 1 - emax(quantizer));
}

/* r / max, rounded to nearest even with 4 bits, saturating.
 * The quotient is rounded to a double first, and that does no harm.  A midpoint of ue4m3 is k 2^j with k < 2^5, max is
 * 3 * 2^1 for e2m1.  With r = n / d: n / (max d) is a midpoint, or n differs from 3 k d 2^(j + 1), an integer of at most
 * 2 + 5 + 24 = 31 bits (48 bits of n over d = 1, for a divisor), by at least one unit: relatively by 2^-48 or more.  The
 * double is off by at most 2^-53, so it lies on the same side of every midpoint, and on one only if the quotient does. */
static uint8_t nearest_code(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block)
{
    const struct fraction r = divided_by(scaled_amax(quantizer, block), max_value(quantizer));
    return bsmi_ue4m3_encode(r.numerator / r.denominator);
}

static const struct bsmi_recipe recipes[BSM_RECIPE_COUNT] = {
    [BSM_RECIPE_DEFAULT] = { "default", BSM_UNSCALED, NULL },
    [BSM_RECIPE_FLOOR]   = { "floor",   BSM_E8M0,     floor_code },
    [BSM_RECIPE_RCEIL]   = { "rceil",   BSM_E8M0,     rceil_code },
    [BSM_RECIPE_CEIL]    = { "ceil",    BSM_E8M0,     ceil_code },
    [BSM_RECIPE_EVEN]    = { "even",    BSM_E8M0,     even_code },
    [BSM_RECIPE_NEAREST] = { "nearest", BSM_UE4M3,    nearest_code },
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
    bsmi_fail(BSM_EINVAL, "%s=%s gives %s scales, and %s has %s: take %s", name, row->name, bsm_scale_name((int)row->scale),
              info->name, bsm_scale_name((int)info->scale), fitting);
    return NULL;
}

const char *bsm_recipe_name(int recipe) { return recipe >= 0 && recipe < BSM_RECIPE_COUNT ? recipes[recipe].name : NULL; }

int bsm_recipe_from_name(const char *name)
{
    if (name == NULL) return -1;
    for (int i = 0; i < BSM_RECIPE_COUNT; i++)
        if (strcasecmp(name, recipes[i].name) == 0) return i;
    return -1;
}

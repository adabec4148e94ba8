/* Recipes: how the scale code of a block follows from its values. */
#ifndef BSMI_RECIPES_H
#define BSMI_RECIPES_H

#include "quantizer.h"

/* What a recipe sees of a block.  amax is the largest finite magnitude, and > 0: zero blocks never reach a recipe. */
struct bsmi_block_view {
    const double *x;
    int count;
    double amax;
};

/* One recipe.  To add one: an enumerator before BSM_RECIPE_COUNT in quantize.h, one row in recipes.c, its formula with
 * the source in docs/guide/recipes.md.  scale_code never gives a NaN code. */
struct bsmi_recipe {
    const char *name;                     /* "rceil"; bsm_recipe_from_name reads it back */
    bsm_scale scale;                      /* the scale type it gives; BSM_UNSCALED in the row of BSM_RECIPE_DEFAULT */
    uint8_t (*scale_code)(const struct bsmi_block_quantizer *quantizer, const struct bsmi_block_view *block);
    /* Whether the kernels (kernels/table.h) compute it too: any e8m0 scale that amax alone gives and that doubles with
     * it, r / 6 to nearest, and what is searched for e2m1 without a tensor scale. */
    bool in_kernels;
    bool searches;                        /* it tries scales on the numbers of a row: not for squares, nor for D of a
                                             product */
};

/* The row for blocks of `format`, DEFAULT resolved; NULL with the sentence if the recipe does not fit the format.
 * name is the argument the recipe came from. */
const struct bsmi_recipe *bsmi_recipe_choose(const char *name, bsm_format format, bsm_recipe recipe);

#endif

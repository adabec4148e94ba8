/* The library's enums, by name. */
#include "cli/cli.h"

_Static_assert(sizeof(bsm_format) == sizeof(int) && sizeof(bsm_recipe) == sizeof(int)
                   && sizeof(bsm_packing) == sizeof(int) && sizeof(bsm_activation) == sizeof(int)
                   && sizeof(bsm_gate) == sizeof(int),
               "cli_choice stores an int");

static const char *format_name(int value)
{
    const bsm_format_info *info = bsm_format_get(value);
    return info == NULL ? NULL : info->name;
}
static int format_from_name(const char *name) { return (int)bsm_format_from_name(name); }
const struct cli_choices cli_formats = { format_name, format_from_name, BSM_FORMAT_NONE + 1, BSM_FORMAT_COUNT };

const char *const *cli_choice_aliases(const struct cli_choices *choices)
{
    static const char *const of_formats[] = { "mxfp8", "mxfp6", NULL };
    return choices == &cli_formats ? of_formats : NULL;
}

const struct cli_choices cli_recipes = { bsm_recipe_name, bsm_recipe_from_name, 0, BSM_RECIPE_COUNT };
const struct cli_choices cli_majors = { bsm_major_name, bsm_major_from_name, 0, BSM_MAJOR_COUNT };
const struct cli_choices cli_sparsities = { bsm_sparsity_name, bsm_sparsity_from_name, 0, BSM_SPARSITY_COUNT };
const struct cli_choices cli_packings = { bsm_packing_name, bsm_packing_from_name, 0, BSM_PACKING_COUNT };

/* For --help alone: a layout may carry parameters, and is read by the library. */
static int no_layout_name(const char *name)
{
    (void)name;
    return -1;
}
const struct cli_choices cli_layouts = { bsm_layout_name, no_layout_name, 0, BSM_LAYOUT_COUNT };

const struct cli_choices cli_activations = { bsm_activation_name, bsm_activation_from_name, 0, BSM_ACT_COUNT };

const struct cli_choices cli_computes = { bsm_compute_name, bsm_compute_from_name, 0, BSM_COMPUTE_COUNT };

const struct cli_choices cli_orders = { bsm_order_name, bsm_order_from_name, 0, BSM_ORDER_COUNT };

static const char *const gate_names[] = { "none", "interleaved", "split", NULL };
static const char *gate_name(int value) { return value >= 0 && value < BSM_GATE_COUNT ? gate_names[value] : NULL; }
static int gate_from_name(const char *name) { return cli_name_index(gate_names, name); }
const struct cli_choices cli_gates = { gate_name, gate_from_name, 0, BSM_GATE_COUNT };

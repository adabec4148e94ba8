/* What the host and the kernels of products with groups along K agree on: see kernels.h.
 *
 * Rows of bf16 in the workspace have the columns of each group from a multiple of 64 on, with zeros behind them, so
 * that no step of K has columns of two groups. */
#ifndef BSMI_COLUMN_GROUPS_PARAMETERS_H
#define BSMI_COLUMN_GROUPS_PARAMETERS_H

#include "kernels.h"

/* The columns of A and B that a group has, and its steps of 64 columns of the rows in the workspace. */
struct bsmi_column_group {
    int64_t first, columns;
    int32_t step, steps;
};

enum { BSMI_COLUMN_STEP = 64 };

/* Columns of A and B that a step of the rows in the workspace has: at most 64. */
struct bsmi_column_step { int32_t first, columns; };

/* Kernel bsmi_column_tables, of any grid.  Reads the columns of each group and writes where it begins: all of them keep
 * within 0 .. k and begin at multiples of unit, whatever was given.  exponents: of the rows of A and of B, for each
 * group; cleared. */
enum { BSMI_COLUMN_TABLES_THREADS = 256 };
struct bsmi_column_tables_parameters {
    const int64_t *group_columns;
    int64_t groups, k, unit;
    struct bsmi_column_group *table;      /* [groups + 1]; the last one has the number of steps alone */
    struct bsmi_column_step *steps;       /* k / 64 + groups of them are enough; NULL: not wanted */
    struct { int32_t *first; int64_t count; } exponents[2];
};

/* Kernel bsmi_decode_columns: bsmi_decode of groups along K.  Exponents and fallback rows are those of each group's
 * part of a row, as if it were a row: exponents[group * rows + row], 0 before.  padded_columns: from one term to the
 * next.  A grid of first_ctas CTAs for the rows of A, and others, at least one, for those of B. */
enum { BSMI_DECODE_COLUMNS_THREADS = 256 };
struct bsmi_decode_columns_parameters {
    struct bsmi_decode_operand operands[2];
    const struct bsmi_column_group *table;
    const struct bsmi_column_step *steps;
    int64_t groups;
    int32_t first_ctas;
};

#endif

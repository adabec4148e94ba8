/* Which rows of an MXFP4 operand can be multiplied as int8 on tensor cores. */
#ifndef CLI_INT8_ROWS_H
#define CLI_INT8_ROWS_H

#include <blockscale/matrix.h>
#include <stddef.h>

/* A sentence: how many rows fit, and why the others do not.  The rule is that of docs/design/hopper.md.  True if all
 * fit. */
bool int8_rows_describe(const char *name, const bsm_matrix *matrix, char *text, size_t bytes);

#endif

/* Which rows of an operand of MXFP4 a GPU with tensor cores for 8-bit integers multiplies as such. */
#ifndef BLOCKSCALE_CLI_INTEGER_ROWS_H
#define BLOCKSCALE_CLI_INTEGER_ROWS_H

#include <blockscale/matrix.h>
#include <stddef.h>

/* A sentence: how many rows fit, and why the others do not.  The rule is that of docs/design/hopper.md.  True if all fit. */
bool integer_rows_describe(const char *name, const bsm_matrix *matrix, char *text, size_t bytes);

#endif

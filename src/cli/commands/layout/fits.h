/* blockscale layout --fits: whether an instruction takes scales as they lie. */
#ifndef CLI_LAYOUT_FITS_H
#define CLI_LAYOUT_FITS_H

#include "cli/cli.h"

/* Values of --fits: a bsm_scale_copy, or all of them; not given. */
enum { ALL_COPIES = BSM_SCALE_COPY_COUNT, NO_COPY };
extern const struct cli_choices layout_copies;

/* CLI_DONE; CLI_DIFFERS where one that was asked for does not fit. */
int layout_fits(const struct cli *cli, const bsm_scale_layout *layout, int64_t rows, int64_t columns, int copies);

#endif

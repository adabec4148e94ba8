/* The tensor scale that several weights share. */
#ifndef CLI_SHARED_SCALE_H
#define CLI_SHARED_SCALE_H

#include "cli/cli.h"

/* The tensor scale that bsm_quantize would compute for numbers in tight rows with these options, written to
 * *tensor_scale; 0 where all of them are 0 (any scale will do).  like: the destination's format and use of the tensor
 * scale. */
bsm_status shared_scale_of(struct cli *cli, const bsm_real_matrix *numbers, const bsm_quantize_options *options,
                           const bsm_matrix *like, float *tensor_scale);

/* The one of two that leaves the larger magnitudes room: the larger factor.  0 counts as none. */
float shared_scale_join(float one, float other, bsm_tensor_scale_use use);

/* The next bf16 number, up: the largest magnitude still has room under it. */
float shared_scale_shorten(float multiplier);

#endif

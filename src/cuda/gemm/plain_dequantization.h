/* Jobs of kernel bsmi_decode_plain, where operands lie as it wants them. */
#ifndef BSMI_CUDA_PLAIN_DECODING_H
#define BSMI_CUDA_PLAIN_DECODING_H

#include "cuda/params/plain.h"

#include <stdbool.h>

/* first, second: whether general->operands[..] are there; with loads_scales the second one is general->scales.  False
 * if one of them does not lie plainly.  ctas: of each, no more than there are flags where it sets them. */
bool bsmi_cuda_decode_plainly(const struct bsmi_decode_parameters *general, bool first, bool second,
                              int sm_count, struct bsmi_decode_plain_parameters *plain, int64_t ctas[2]);

#endif

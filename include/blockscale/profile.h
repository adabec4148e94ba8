/* What each kernel of a product takes on a GPU: for people who ask where its time goes. */
#ifndef BLOCKSCALE_PROFILE_H
#define BLOCKSCALE_PROFILE_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BSM_PROFILE_KERNELS 64           /* the most that are told of; others run untold */

typedef struct bsm_kernel_time {
    char kernel[96];                     /* its name: cut, and ended by a zero byte */
    bool multiplies;                     /* a kernel whose work is the product itself: a GEMM instance */
    int threads;                         /* of a CTA */
    int64_t ctas;
    double seconds;                      /* between two events, in front of the kernel and behind it.  A simulated GPU's
                                            are those of the simulator */
} bsm_kernel_time;

/* From begin to end every kernel that products, quantizers and converters of this context launch stands between two
 * events.  So it starts when the one in front of it has ended, which it otherwise would not wait for: the sum of the
 * times is more than the product takes.  One thread uses the context meanwhile, and captures nothing.
 * end waits for the kernels, and writes the first `most` of them to `kernels` in the order of their launches; *count
 * is the number of all, at most BSM_PROFILE_KERNELS.
 * Errors: BSM_EINVAL (begin: it has begun; end: it has not), BSM_EUNSUPPORTED (a context that is not CUDA's),
 * BSM_ENOMEM, BSM_EDEVICE. */
BSM_API bsm_status bsm_profile_begin(bsm_context *context);
BSM_API bsm_status bsm_profile_end(bsm_context *context, bsm_kernel_time *kernels, int most, int *count);

#ifdef __cplusplus
}
#endif
#endif

/* Small products with known bits, when a context is created. */
#ifndef BSMI_HIP_SELF_TEST_H
#define BSMI_HIP_SELF_TEST_H

#include "core/core.h"

/* context is one of a GPU.  Once a GPU for as long as contexts share it.  Fails with BSM_EDEVICE and the difference. */
bsm_status bsmi_hip_self_test(bsm_context *context);

#endif

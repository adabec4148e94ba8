/* A launch as the driver has it. */
#ifndef CUDASIM_RUNTIME_MODULE_LAUNCH_H
#define CUDASIM_RUNTIME_MODULE_LAUNCH_H

#include "runtime/core/runtime.h"

CUlaunchConfig launch_config(const cudaLaunchConfig_t *config);

#endif

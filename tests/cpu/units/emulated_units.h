/* What kernels find in place of their unit's instructions, in the build of the library that tests are linked with. */
#ifndef EMULATED_UNITS_H
#define EMULATED_UNITS_H

#include "dot_products.h"
#include "emulated_tiles.h"

#endif

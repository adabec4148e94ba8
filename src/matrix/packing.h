/* Packings: how the codes of a row lie in its bytes. */
#ifndef BSMI_PACKING_H
#define BSMI_PACKING_H

#include "blockscale/matrix.h"

/* Whether elements of these bits, of this format, may be packed so. */
bool bsmi_packing_fits(bsm_packing packing, bsm_format format, int bits);

/* How many elements make the smallest whole number of bytes. */
struct bsmi_packing_unit { int elements, bytes; };
struct bsmi_packing_unit bsmi_packing_unit_of(bsm_packing packing, bsm_format format, int bits);

#endif

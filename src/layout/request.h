/* What converting scales was asked for, checked: what a device gets in the CPU's place. */
#ifndef BSMI_CONVERT_REQUEST_H
#define BSMI_CONVERT_REQUEST_H

#include "layout.h"

struct bsmi_convert_request { struct bsmi_scale_map from_map, to_map; const unsigned char *from; unsigned char *to; };

#endif

/* The layouts, each defined in the file of its name; for layout.c's table alone. */
#ifndef BSMI_LAYOUTS_H
#define BSMI_LAYOUTS_H

#include "core/core.h"
#include "row.h"

extern const struct bsmi_layout bsmi_layout_linear, bsmi_layout_128x4, bsmi_layout_8x4, bsmi_layout_tiles,
    bsmi_layout_cdna4_16, bsmi_layout_cdna4_32, bsmi_layout_aiter, bsmi_layout_deepgemm, bsmi_layout_gguf_mxfp4,
    bsmi_layout_gguf_nvfp4;

bsmi_scale_offset bsmi_cdna4_16_offset;   /* shared with AITER */

#endif

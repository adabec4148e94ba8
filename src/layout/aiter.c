/* AITER's shuffle_scale: cdna4_16 with rows padded to 256.  AITER leaves that padding uninitialised; we write zeros. */
#include "layouts.h"

const struct bsmi_layout bsmi_layout_aiter = {
    .name = "aiter",
    .about = "cdna4_16 with rows padded to 256: AITER's shuffle_scale",
    .formula = "((r/32)*ceil(S/8) + s/8)*256 + (s%4)*64 + (r%16)*4 + ((s%8)/4)*2 + (r%32)/16",
    .pad_rows = 256, .pad_columns = 8,
    .offset = bsmi_cdna4_16_offset,
};

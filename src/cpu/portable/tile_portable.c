/* Tiles in portable C, for every CPU. */
#define BSMI_TILE(name) name##_portable
#define BSMI_TARGET
#define BSMI_LANES 4
#define BSMI_ROWS 4
#define BSMI_VECTORS 2
#if defined(__aarch64__)
#define BSMI_HARDWARE_FMA 1
#else
#define BSMI_HARDWARE_FMA 0
#endif
#include "tile_template.h"

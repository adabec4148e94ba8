/* The portable tiles, compiled for AVX2 and FMA. */
#if defined(__x86_64__)
#define BSMI_TILE(name) name##_avx2_fma
#define BSMI_TARGET __attribute__((target("avx2,fma")))
#define BSMI_LANES 8
#define BSMI_ROWS 6
#define BSMI_VECTORS 2
#define BSMI_HARDWARE_FMA 1
#include "cpu/portable/tile_template.h"
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

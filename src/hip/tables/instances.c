/* The GEMM instances. */
#include "instances.h"

#include <stdio.h>

#define THREADS(along_m, along_n) BSMI_HIP_GEMM_THREADS(along_m, along_n)
const struct bsmi_hip_instance bsmi_hip_instances[] = {
#define X(tile, rows, columns, along_m, along_n, dim) \
    { "hip_mfma_scale_" #tile, #tile, true, false, rows, columns, THREADS(along_m, along_n), dim },
    BSMI_HIP_GEMM_SCALED(X)
#undef X
#define X(tile, rows, columns, along_m, along_n, dim) \
    { "hip_mfma_bf16_" #tile, #tile, false, false, rows, columns, THREADS(along_m, along_n), dim },
    BSMI_HIP_GEMM_BF16(X)
#undef X
#define X(tile, rows, columns, along_m, along_n, dim) \
    { "hip_mfma_scale_" #tile, #tile, true, true, rows, columns, THREADS(along_m, along_n), dim },
    BSMI_HIP_GEMM_PREPACKED(X)
#undef X
};
const int bsmi_hip_instance_count = sizeof bsmi_hip_instances / sizeof bsmi_hip_instances[0];
_Static_assert(sizeof bsmi_hip_instances / sizeof bsmi_hip_instances[0] <= BSMI_HIP_MOST_INSTANCES, "room in devices");

static const char *const elements[BSMI_HIP_ELEMENTS] = {
    [BSMI_HIP_E4M3] = "e4m3", [BSMI_HIP_E5M2] = "e5m2", [BSMI_HIP_E2M3] = "e2m3", [BSMI_HIP_E3M2] = "e3m2",
    [BSMI_HIP_E2M1] = "e2m1",
};

int bsmi_hip_element_of(bsm_element element)
{
    switch (element) {
    case BSM_E4M3: return BSMI_HIP_E4M3;
    case BSM_E5M2: return BSMI_HIP_E5M2;
    case BSM_E2M3: return BSMI_HIP_E2M3;
    case BSM_E3M2: return BSMI_HIP_E3M2;
    case BSM_E2M1: return BSMI_HIP_E2M1;
    default: return -1;
    }
}

void bsmi_hip_instance_names(int instance, int pair, char *file, char *function)
{
    const struct bsmi_hip_instance *i = &bsmi_hip_instances[instance];
    const char *a = elements[pair / BSMI_HIP_ELEMENTS], *b = elements[pair % BSMI_HIP_ELEMENTS];
    if (!i->scaled) {
        snprintf(file, BSMI_HIP_NAME_BYTES, "gemm_bf16_%s", i->tile);
        snprintf(function, BSMI_HIP_NAME_BYTES, "bsmi_gemm_gfx950_bf16_%s", i->tile);
        return;
    }
    snprintf(file, BSMI_HIP_NAME_BYTES, "gemm_%s_%s_%s", a, b, i->tile);
    snprintf(function, BSMI_HIP_NAME_BYTES, "bsmi_gemm_gfx950_%s_%s_%s", a, b, i->tile);
}

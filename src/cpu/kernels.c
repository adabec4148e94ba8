/* The table of CPU kernels. */
#include "kernels.h"
#include "core/core.h"

bool bsmi_pair_sums_runs(bsm_format a, bsm_format b)
{
    const bsm_format_info *fa = bsm_format_get((int)a), *fb = bsm_format_get((int)b);
    return fa->block != 0 && fb->block != 0 && bsmi_element_integer_bits(fa->element) > 0
        && bsmi_element_integer_bits(fb->element) > 0;
}

bool bsmi_pair_sums_terms(bsm_format a, bsm_format b) { return !bsmi_pair_sums_runs(a, b); }

#define RUNS "runs of min(blockA, blockB) exact, ascending, one fused multiply-add each"
#define TERMS "k ascending, one fused multiply-add each"

const struct bsmi_kernel bsmi_kernels[] = {          /* best first; the last rows serve every pair on every CPU */
#if defined(__x86_64__)
    { "runs_avx2_fma",  BSM_CPU_AVX2 | BSM_CPU_FMA, bsmi_pair_sums_runs,  RUNS,  6, 16, 0, bsmi_tile_scratch_avx2_fma, bsmi_tile_runs_avx2_fma },
    { "terms_avx2_fma", BSM_CPU_AVX2 | BSM_CPU_FMA, bsmi_pair_sums_terms, TERMS, 6, 16, 0, bsmi_tile_scratch_avx2_fma, bsmi_tile_terms_avx2_fma },
#endif
    { "runs_portable",  0,                          bsmi_pair_sums_runs,  RUNS,  4, 8,  0, bsmi_tile_scratch_portable, bsmi_tile_runs_portable },
    { "terms_portable", 0,                          bsmi_pair_sums_terms, TERMS, 4, 8,  0, bsmi_tile_scratch_portable, bsmi_tile_terms_portable },
};
const int bsmi_kernel_count = sizeof bsmi_kernels / sizeof bsmi_kernels[0];

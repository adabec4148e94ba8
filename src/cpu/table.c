/* The table of CPU kernels. */
#include "microkernel.h"
#include "core/core.h"

bool bsmi_pair_sums_runs(bsm_format a, bsm_format b)
{
    const bsm_format_info *fa = bsm_format_get((int)a), *fb = bsm_format_get((int)b);
    return fa->block != 0 && fb->block != 0 && bsmi_element_integer_bits(fa->element) > 0
        && bsmi_element_integer_bits(fb->element) > 0;
}

bool bsmi_pair_sums_terms(bsm_format a, bsm_format b) { return !bsmi_pair_sums_runs(a, b); }

bool bsmi_pair_is_fp4(bsm_format a, bsm_format b)
{
    return bsmi_pair_sums_runs(a, b) && bsm_format_get((int)a)->element == BSM_E2M1 && bsm_format_get((int)b)->element == BSM_E2M1;
}

bool bsmi_pair_sums_terms_of_codes(bsm_format a, bsm_format b)
{
    return bsmi_pair_sums_terms(a, b) && bsm_element_get((int)bsm_format_get((int)b)->element)->bits <= 8;
}

static bool runs_of_32_by(bsm_element of_b, bsm_format a, bsm_format b)
{
    return bsmi_pair_sums_runs(a, b) && bsm_format_get((int)b)->element == of_b && bsm_format_get((int)a)->block == 32;
}

bool bsmi_pair_is_by_int8(bsm_format a, bsm_format b) { return runs_of_32_by(BSM_INT8, a, b); }

bool bsmi_pair_is_by_e2m3(bsm_format a, bsm_format b)
{
    return runs_of_32_by(BSM_E2M3, a, b) && bsm_format_get((int)a)->element != BSM_INT8;
}

#define RUNS "runs of min(blockA, blockB) exact, ascending, one fused multiply-add each"
#define TERMS "k ascending, one fused multiply-add each"
#define RUNS_PAIR bsmi_pair_sums_runs, RUNS
#define TERMS_PAIR bsmi_pair_sums_terms, TERMS
#define CODES_PAIR bsmi_pair_sums_terms_of_codes, TERMS
#define FP4_PAIR bsmi_pair_is_fp4, RUNS
#define INT8_PAIR bsmi_pair_is_by_int8, RUNS
#define E2M3_PAIR bsmi_pair_is_by_e2m3, RUNS
#define AVX2 (BSM_CPU_AVX2 | BSM_CPU_FMA)
#define AVX512 (AVX2 | BSM_CPU_AVX512)
#define VNNI (AVX512 | BSM_CPU_AVX512_VNNI)

#define BY_PANELS(panels) &panels, NULL, NULL
#define BY_TILES(isa, sum) NULL, bsmi_tile_scratch_##isa, bsmi_tile_##sum##_##isa

/* Best first; the last rows serve every pair on every CPU.
 *    name              needs  pairs, order  register   tile at most  rows  how */
const struct bsmi_kernel bsmi_kernels[] = {
#if defined(__x86_64__)
    { "fp4_few_rows_avx2", AVX2, FP4_PAIR,   4, 32,     4, 1024,      4,    BY_PANELS(bsmi_few_fp4_panels_avx2) },
    { "int8_few_rows_avx2", AVX2, INT8_PAIR, 4, 32,     4, 1024,      2,    BY_PANELS(bsmi_few_integers_panels_avx2) },
    { "e2m3_few_rows_avx2", AVX2, E2M3_PAIR, 4, 32,     4, 1024,      4,    BY_PANELS(bsmi_few_integers_panels_avx2) },
    { "integers_vnni",  VNNI,  RUNS_PAIR,    8, 32,     512, 1024,    0,    BY_PANELS(bsmi_integers_panels_vnni) },
    { "fp4_avx2",       AVX2,  FP4_PAIR,     4, 32,     256, 1024,    0,    BY_PANELS(bsmi_fp4_panels_avx2) },
    { "integers_avx2",  AVX2,  RUNS_PAIR,    4, 32,     256, 1024,    0,    BY_PANELS(bsmi_integers_panels_avx2) },
    { "terms_one_row_avx2", AVX2, CODES_PAIR, 8, 32,    8, 1024,      1,    BY_PANELS(bsmi_few_terms_panels_avx2) },
    { "terms_few_rows_avx512", AVX512, CODES_PAIR, 8, 64, 8, 4096,    8,    BY_PANELS(bsmi_few_terms_panels_avx512) },
    { "terms_few_rows_avx2", AVX2, CODES_PAIR, 8, 32,   8, 1024,      8,    BY_PANELS(bsmi_few_terms_panels_avx2) },
    { "terms_avx512",   AVX512, TERMS_PAIR,  14, 32,    350, 1024,    0,    BY_PANELS(bsmi_terms_panels_avx512) },
    { "terms_avx2",     AVX2,  TERMS_PAIR,   6, 16,     258, 1024,    0,    BY_PANELS(bsmi_terms_panels_avx2) },
    { "runs_avx2_fma",  AVX2,  RUNS_PAIR,    6, 16,     192, 256,     0,    BY_TILES(avx2_fma, runs) },
    { "terms_avx2_fma", AVX2,  TERMS_PAIR,   6, 16,     192, 256,     0,    BY_TILES(avx2_fma, terms) },
#elif defined(__aarch64__)
    { "integers_i8mm",  BSM_CPU_I8MM, RUNS_PAIR, 8, 8,  512, 1024,    0,    BY_PANELS(bsmi_integers_panels_i8mm) },
    { "integers_dotprod", BSM_CPU_DOTPROD, RUNS_PAIR, 8, 8, 512, 1024, 0,   BY_PANELS(bsmi_integers_panels_dotprod) },
#endif
    { "runs_portable",  0,     RUNS_PAIR,    4, 8,      192, 256,     0,    BY_TILES(portable, runs) },
    { "terms_portable", 0,     TERMS_PAIR,   4, 8,      192, 256,     0,    BY_TILES(portable, terms) },
};
const int bsmi_kernel_count = sizeof bsmi_kernels / sizeof bsmi_kernels[0];

size_t bsmi_kernel_scratch_bytes(const struct bsmi_kernel *kernel, int64_t rows, int64_t columns)
{
    if (kernel->panels != NULL) return bsmi_panels_scratch_bytes(kernel->panels, rows, columns);
    return kernel->scratch_bytes(rows, columns);
}

void bsmi_kernel_sum(const struct bsmi_kernel *kernel, const struct bsmi_tile *tile, void *scratch)
{
    if (kernel->panels != NULL) bsmi_panels_sum(kernel->panels, tile, scratch);
    else kernel->sum(tile, scratch);
}

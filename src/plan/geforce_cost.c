/* What a product takes on the GEMM instances for compute capability 12.x: modelled, no such GPU was at hand.  Rates are
 * those of a GeForce (docs/design/geforce.md says where each comes from). */
#include "cuda_cost.h"

#include <math.h>

enum {
    PRODUCT_CYCLES = 16,                  /* of a scheduler, for 16 x 8 numbers and 32 bytes of K of codes */
    BF16_PRODUCT_CYCLES = 32,             /* the same bytes of bf16, fp32 sums: GeForce has half the rate of RTX PRO */
    SCHEDULERS = 4,
    L2_BYTES_A_CYCLE = 64,                /* of an SM; assumed */
    TILE_CYCLES = 1500,                   /* until a tile's first stage has come, and its last product is done;
                                             assumed */
    SHARED_BYTES_A_CYCLE = 128,
    SUM_BYTES = 8                         /* of shared memory, that the epilogue writes and reads for a number of D */
};

static const double gigahertz = 2.4, launch_nanoseconds = 3000;

/* DRAM for each SM: 1792 GB/s and 170 SMs (RTX 5090); others have about as much. */
static const double memory_bytes_a_nanosecond = 10.5;

static double step_cycles(const struct bsmi_gemm_instance *g)
{
    const double products = g->tile_rows / 16.0 * (g->tile_columns / 8.0) * (g->step_bytes / 32.0);
    const int cycles = g->operands == BSMI_OPERANDS_BF16 ? BF16_PRODUCT_CYCLES : PRODUCT_CYCLES;
    const double bytes = (double)(g->tile_rows + g->tile_columns) * g->step_bytes;
    return fmax(products * cycles / SCHEDULERS, bytes / L2_BYTES_A_CYCLE);
}

/* Elements of K in a step. */
static double step_columns(const struct bsmi_gemm_instance *g)
{
    switch (g->operands) {
    case BSMI_OPERANDS_BF16: return g->step_bytes / 2.0;
    case BSMI_OPERANDS_MXF8F6F4: return g->step_bytes;
    default: return 2.0 * g->step_bytes;
    }
}

static double bytes_of(const struct bsmi_matrix *m, const struct bsmi_gemm_instance *g)
{
    const double numbers = (double)m->rows * (double)m->columns * (double)m->batch, stored = numbers * m->bits / 8;
    return g->operands == BSMI_OPERANDS_BF16 && m->format != BSM_FORMAT_BF16 ? stored + 4 * numbers : stored;
}

double bsmi_geforce_cost(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    const int64_t parts = g->splits_k ? bsmi_codes_parts(g, p->k) : 1, clusters = gpu->gemm_clusters[gemm];
    const double terms = g->operands == BSMI_OPERANDS_BF16 ? bsmi_cuda_terms(&p->a) * bsmi_cuda_terms(&p->b) : 1;
    const double waves = (double)bsmi_ceil_div(bsmi_cuda_cost_tiles(g, p) * parts, clusters),
                 steps = terms * ceil(ceil((double)p->k / step_columns(g)) / (double)parts),
                 around = TILE_CYCLES + (double)(g->tile_rows * g->tile_columns) * SUM_BYTES / SHARED_BYTES_A_CYCLE;
    /* What is around the steps of a tile passes under the products of another set's. */
    const double cycles = waves * steps * step_cycles(g) + (g->sets > 1 ? 1 : waves) * around,
                 moved = (bytes_of(&p->a, g) + bytes_of(&p->b, g)) / (memory_bytes_a_nanosecond * gpu->sm_count);
    return launch_nanoseconds * (parts > 1 ? 2 : 1) + fmax(cycles / gigahertz, moved);
}

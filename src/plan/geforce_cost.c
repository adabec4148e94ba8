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
    const int warps = g->threads / 32 - 1; /* the smallest tiles have two, which leave schedulers without work */
    return fmax(products * cycles / BSMI_MIN(SCHEDULERS, warps), bytes / L2_BYTES_A_CYCLE);
}

/* Around the steps of a tile: until its first stage has come, and its epilogue. */
static double around_cycles(const struct bsmi_gemm_instance *g)
{
    return TILE_CYCLES + (double)(g->tile_rows * g->tile_columns) * SUM_BYTES / SHARED_BYTES_A_CYCLE;
}

static double bytes_of(const struct bsmi_matrix *m, const struct bsmi_gemm_instance *g)
{
    const double numbers = (double)m->rows * (double)m->columns * (double)m->batch, stored = numbers * m->bits / 8;
    return g->operands == BSMI_OPERANDS_BF16 && m->format != BSM_FORMAT_BF16 ? 2 * numbers : stored;
}

/* Kernels that decode B in registers: warps of 16 rows of it, each decoded once -------------------------------- */

enum {
    PREPACKED_CYCLES = 120,               /* of a warp, for 16 x 64 weights: what a step has besides products, as ptxas
                                             schedules it */
    STORED_CYCLES = 220,                  /* weights as they are stored, whose codes have to be gathered */
    ALONE_CYCLES = 60,                    /* waits for stages and for rows, where a scheduler has no other warp;
                                             assumed */
    SLOT_CYCLES = 16                      /* from one product to the next, as ptxas has them apart */
};

/* A step of 64 columns: the tensor cores' products of all warps, or one warp's instructions, or the bytes that come. */
static double mixed_step_cycles(const struct bsmi_gemm_instance *g)
{
    const double octets = g->tile_rows / 8.0, warps = g->tile_columns / 16.0 / SCHEDULERS, products = 4 * octets;
    const double bytes = g->tile_columns * BSMI_K_STEP / 2.0 + g->tile_rows * BSMI_K_STEP * 2.0;
    const double one_warp =
        (bsmi_gemm_reads_prepacked(g) ? PREPACKED_CYCLES : STORED_CYCLES) + products * SLOT_CYCLES;
    return fmax(fmax(warps * products * BF16_PRODUCT_CYCLES, one_warp) + (warps > 1 ? 0 : ALONE_CYCLES),
                bytes / L2_BYTES_A_CYCLE);
}

/* Codes and scales as they are read; where a kernel in front brings scales to layout 128x4, these three times, and its
 * launch. */
static double mixed_input_nanoseconds(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    const bool loads = !bsmi_gemm_reads_any_scales(g);
    const double numbers = (double)p->b.rows * (double)p->b.columns * (double)p->b.batch,
                 scales = numbers / p->b.block * (loads ? 3 : 1),
                 of_a = (double)p->a.rows * (double)p->a.columns * (double)p->a.batch * 2;
    const double waves = (double)bsmi_ceil_div(bsmi_cuda_cost_tiles(g, p), gpu->gemm_clusters[gemm]),
                 steps = (double)(bsmi_ceil_div(p->k, BSMI_K_STEP) * bsmi_cuda_terms(&p->a));
    const double multiplied = waves * (around_cycles(g) + steps * mixed_step_cycles(g)) / gigahertz,
                 moved = (numbers / 2 + scales + of_a) / (memory_bytes_a_nanosecond * gpu->sm_count);
    return launch_nanoseconds * (loads ? 2 : 1) + fmax(multiplied, moved);
}

/* The launch in front of rows of bf16 that dequantizes B: it reads codes and writes rows.  A is dequantized for all
 * kernels that multiply bf16. */
static double dequantizing_nanoseconds(const struct bsmi_cuda_gpu *gpu, const struct bsmi_gemm_instance *g,
                                       const struct bsmi_matrix *b)
{
    const double numbers = (double)b->rows * (double)b->columns * (double)b->batch;
    if (g->operands != BSMI_OPERANDS_BF16 || b->format == BSM_FORMAT_BF16) return 0;
    return launch_nanoseconds + numbers * (b->bits / 8.0 + 2) / (memory_bytes_a_nanosecond * gpu->sm_count);
}

double bsmi_geforce_cost(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    if (bsmi_gemm_dequantizes(g)) return mixed_input_nanoseconds(gpu, gemm, p);
    const int64_t parts = g->splits_k ? bsmi_codes_parts(g, p->k) : 1, clusters = gpu->gemm_clusters[gemm];
    const double terms = g->operands == BSMI_OPERANDS_BF16 ? bsmi_cuda_terms(&p->a) * bsmi_cuda_terms(&p->b) : 1;
    const double waves = (double)bsmi_ceil_div(bsmi_cuda_cost_tiles(g, p) * parts, clusters),
                 steps = terms * ceil(ceil((double)p->k / (double)bsmi_gemm_step_columns(g)) / (double)parts);
    /* What is around the steps of a tile passes under the products of another set's. */
    const double cycles = waves * steps * step_cycles(g) + (g->sets > 1 ? 1 : waves) * around_cycles(g),
                 moved = (bytes_of(&p->a, g) + bytes_of(&p->b, g)) / (memory_bytes_a_nanosecond * gpu->sm_count);
    return launch_nanoseconds * (parts > 1 ? 2 : 1) + dequantizing_nanoseconds(gpu, g, &p->b)
           + fmax(cycles / gigahertz, moved);
}

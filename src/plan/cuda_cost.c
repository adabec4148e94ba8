/* What a product takes on a GEMM instance: waves of its tiles times its steps of K, and what comes in front.  The sums
 * are the same whichever instance is chosen. */
#include "cuda_cost.h"

#include <math.h>

enum { TILE_NANOSECONDS = 1000, LAUNCH_NANOSECONDS = 3000, EARLY_LAUNCH_NANOSECONDS = 2000,
       GROUP_TABLES_NANOSECONDS = 1500 };

/* What comes before the GEMM kernel, where instances differ in it: an element of B dequantized into the workspace, and
 * the launch that does it (by itself, or with that of A), or a row's scales loaded to where the kernel reads them. */
static const double dequantized_element_nanoseconds = 0.00075, dequantizing_alone_nanoseconds = 1500,
                    dequantizing_with_a_nanoseconds = 600, scales_row_nanoseconds = 0.3,
                    ragged_scales_nanoseconds = 5000, odd_scales_nanoseconds = 15000,
                    int8_element_nanoseconds = 0.00055;

/* An element of a late row, by the three warps of an SM (docs/design/hopper.md). */
static const double late_element_of_sm_nanoseconds = 0.73;

/* Below it, counting rows costs more than is won (K = 512: 142 us for 134 with all rows decoded in front). */
enum { LEAST_LATE_COLUMNS = 1024 };

/* Tiles of so many rows that have at least `least` of them.  How groups share M rows is known to the device alone; they
 * do so unevenly: their numbers of rows are taken to be distributed geometrically. */
static double tiles_with_rows(const struct bsmi_product *p, int64_t tile_rows, int64_t least)
{
    const double mean = (double)p->m / (double)p->groups, more = mean / (1 + mean);
    return (double)p->groups * pow(more, (double)least) / (1 - pow(more, (double)tile_rows));
}

int64_t bsmi_cuda_cost_tiles(const struct bsmi_gemm_instance *g, const struct bsmi_product *p)
{
    const int64_t tile_rows = g->tile_rows * g->cluster_rows,
                  columns = bsmi_ceil_div(p->n, g->tile_columns * g->cluster_columns);
    if (p->groups == 0) return bsmi_ceil_div(p->m, tile_rows) * p->batch * columns;
    return BSMI_MAX(1, (int64_t)ceil(tiles_with_rows(p, tile_rows, 1))) * columns;
}

/* Products of bf16 numbers for one of elements. */
static int terms_of(const struct bsmi_product *p) { return bsmi_cuda_terms(&p->a) * bsmi_cuda_terms(&p->b); }

/* GPUs with tensor memory. */
enum { SHARED_BYTES_A_CYCLE = 128, TENSOR_TILE_CYCLES = 1000,
       DECODED_STEP_CYCLES = 150 /* decoding 128 x 64 numbers */ };
static const double tensor_gigahertz = 1.65, tensor_memory_bytes_a_nanosecond = 7000;

/* A step of K of a CTA on kernels for tensor memory, in cycles: four products, each N / 2 cycles; or what passes the
 * port of its shared memory, 128 bytes a cycle, which reads and writes share: 128 bytes of each row are written once
 * and read once, and the step's blocks of scales, too.  Sparse products take the same time for twice the columns: A has
 * 256 bytes of a row then, and B metadata. */
static double tensor_memory_step(const struct bsmi_gemm_instance *g)
{
    enum { PRODUCTS = 4, ROW_BYTES = 128, SCALE_BLOCK_BYTES = 512, METADATA_ROW_BYTES = 32 };
    static const int scale_blocks[] = { 0, 1, 2, 4 };               /* of 128 rows, in a step */
    const int columns = bsmi_gemm_is_swapped(g) ? g->tile_rows : g->tile_columns;
    const double rows = g->a_box_rows + g->b_box_rows,
                 blocks = scale_blocks[g->operands] * (1 + ceil(columns / 128.0)),
                 beside = g->sparse ? g->a_box_rows * ROW_BYTES + g->b_box_rows * METADATA_ROW_BYTES : 0,
                 shared = 2 * (rows * ROW_BYTES + blocks * SCALE_BLOCK_BYTES + beside) / SHARED_BYTES_A_CYCLE;
    return fmax(PRODUCTS * columns / 2.0, shared);
}

/* Kernels for tensor memory, of whose GPUs none was at hand: modelled from published figures (blackwell.md says by how
 * much it misses them).  Decoding reads and writes each element. */
static double modelled_nanoseconds(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    const bsm_element multiplied = bsmi_cuda_multiplied_element(g, &p->a, &p->b);
    const int terms = multiplied != BSM_BF16 || g->operands != BSMI_OPERANDS_BF16 ? 1 : terms_of(p);
    const double columns = (double)bsmi_gemm_step_columns(g) / (multiplied == BSM_FP32 ? 2 : 1),
                 steps = ceil((double)p->k / columns) * terms;
    const bool split_k = bsmi_cuda_splits_k(g, p, gpu->gemm_clusters[gemm]);
    const int parts = bsmi_codes_parts(g, p->k);
    const double waves =
        (double)bsmi_ceil_div(bsmi_cuda_cost_tiles(g, p) * (split_k ? parts : 1), gpu->gemm_clusters[gemm]);
    const double step = tensor_memory_step(g);
    const double tile =
        split_k ? TENSOR_TILE_CYCLES + ceil(steps / parts) * step : TENSOR_TILE_CYCLES * parts + steps * step;
    const double dequantized =
        g->operands == BSMI_OPERANDS_BF16 ? 3.0 * (double)p->k * (double)(p->m * p->a.batch + p->n * p->b.batch) : 0;
    return LAUNCH_NANOSECONDS * (split_k ? 2 : 1) + waves * tile / tensor_gigahertz
           + dequantized / tensor_memory_bytes_a_nanosecond;
}

/* Kernels that decode B into tensor memory, modelled likewise.  A step of 64 columns takes the longest of its products,
 * of what passes the port of shared memory, and of decoding, by eight warps; nothing is faster than B's codes arrive.
 * The launch in front that dequantizes or loads scales is left out as it is for kernels of rows, and A counts as it
 * does for them. */
static double tensor_mixed_input_nanoseconds(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    const double numbers = (double)p->b.rows * (double)p->b.columns * (double)p->b.batch,
                 scales = numbers / p->b.block * (bsmi_gemm_reads_prepacked(g) ? 1 : 3),
                 rows = 3.0 * (double)p->k * (double)p->m * (double)p->a.batch;
    const double shared = 2 * (g->tile_rows * 128.0 + g->tile_columns * 32.0) / SHARED_BYTES_A_CYCLE,
                 step = fmax(fmax(4 * g->tile_rows / 2.0, shared), DECODED_STEP_CYCLES);
    const double steps = (double)(bsmi_ceil_div(p->k, BSMI_K_STEP) * bsmi_cuda_terms(&p->a)),
                 waves = (double)bsmi_ceil_div(bsmi_cuda_cost_tiles(g, p), gpu->gemm_clusters[gemm]);
    return LAUNCH_NANOSECONDS
           + fmax(waves * (TENSOR_TILE_CYCLES + steps * step) / tensor_gigahertz,
                  (numbers / 2 + scales) / tensor_memory_bytes_a_nanosecond)
           + rows / tensor_memory_bytes_a_nanosecond;
}

/* int8 rows of A and B, and launches that end at once; all others dequantize A, which therefore does not count. */
static double int8_nanoseconds(const struct bsmi_product *p)
{
    const double of_a = (double)p->a.rows * (double)p->a.batch * (double)p->k,
                 of_b = (double)p->n * (double)p->b.batch * (double)p->k;
    return 3 * LAUNCH_NANOSECONDS + int8_element_nanoseconds * (of_a + of_b) - dequantized_element_nanoseconds * of_a;
}

/* What scales take that are not linear, or have no whole tiles of 128 x 4 (with 2880 x 2880, by as much such kernels
 * took longer). */
static double scales_nanoseconds(const struct bsmi_matrix *m)
{
    const bool linear = m->map.layout.kind == BSM_LAYOUT_LINEAR && m->batch == 1;
    if (m->scale == BSM_UE4M3 && m->map.layout.kind == BSM_LAYOUT_128X4) return 0;        /* read as they are */
    return !linear                                       ? odd_scales_nanoseconds
           : m->rows % 128 != 0 || m->columns % 128 != 0 ? ragged_scales_nanoseconds
                                                         : 0;
}

/* Getting B to the GEMM kernel. */
static double operand_nanoseconds(const struct bsmi_gemm_instance *g, const struct bsmi_product *p)
{
    const double rows = (double)p->n * (double)p->b.batch;
    if (bsmi_gemm_reads_any_scales(g)) return 0;
    if (g->operands == BSMI_OPERANDS_INT8) return int8_nanoseconds(p);
    /* another A is dequantized by the same */
    const double launch = p->a.format == BSM_FORMAT_BF16 ? LAUNCH_NANOSECONDS : 0;
    if (bsmi_gemm_dequantizes(g)) return launch + scales_row_nanoseconds * rows + scales_nanoseconds(&p->b);
    const double launched =
        p->a.format == BSM_FORMAT_BF16 ? dequantizing_alone_nanoseconds : dequantizing_with_a_nanoseconds;
    return p->b.format == BSM_FORMAT_BF16 ? 0 : launched + dequantized_element_nanoseconds * rows * (double)p->k;
}

/* A step of K, where tiles that need half their rows or less have shorter products: the mean over all tiles. */
static double step_of_tile(const struct bsmi_gemm_instance *g, const struct bsmi_product *p)
{
    const struct bsmi_gemm_cost *of = &g->cost;
    const bool single = p->groups == 0 && of->single > 0;
    const double step = single ? of->single : of->step, narrow = single ? of->single_narrow : of->narrow;
    const int64_t half = g->tile_rows / 2, last = p->m % g->tile_rows;
    if (narrow == 0) return step;
    const double all = p->groups > 0 ? tiles_with_rows(p, g->tile_rows, 1) : (double)bsmi_ceil_div(p->m, g->tile_rows);
    const double wide = p->groups > 0 ? tiles_with_rows(p, g->tile_rows, half + 1) : all - (last > 0 && last <= half);
    return all > 0 ? narrow + (step - narrow) * wide / all : step;
}

/* Groups together have more weights than the L2 cache: no kernel multiplies them faster than they arrive. */
static double arriving_nanoseconds(const struct bsmi_product *p)
{
    const double bytes_a_nanosecond = 3000, l2_bytes = 40e6,
                 scales = p->b.block > 0 ? 1.0 / p->b.block : 0,
                 bytes = tiles_with_rows(p, p->m, 1) * (double)p->n * (double)p->k * (p->b.bits / 8.0 + scales);
    return bytes > l2_bytes ? bytes / bytes_a_nanosecond : 0;
}

/* Steps of K of a tile: interleaved warpgroups have whole slices of prepacked weights. */
static double mixed_input_steps(const struct bsmi_gemm_instance *g, const struct bsmi_product *p)
{
    const bool slices = bsmi_gemm_reads_prepacked(g) && g->schedule == BSMI_SCHEDULE_K_INTERLEAVED && p->groups > 0;
    if (bsmi_gemm_has_k_parts(g) && !g->k_parts_in_turn)
        return (double)bsmi_ceil_div(bsmi_cuda_prepacked_steps(p->k), g->k_parts);
    return (double)(slices ? bsmi_cuda_prepacked_steps(p->k) : bsmi_ceil_div(p->k, BSMI_K_STEP));
}

/* Without a kernel in front that dequantizes B: waves of tiles in which every CTA has a place, and a last one, whose
 * CTAs may have SMs for themselves. */
static double any_scales_nanoseconds(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    const int64_t clusters = gpu->gemm_clusters[gemm], tiles = bsmi_cuda_cost_tiles(g, p), last = tiles % clusters;
    const double steps = mixed_input_steps(g, p), waves = (double)(tiles / clusters), step = step_of_tile(g, p),
                 tile = TILE_NANOSECONDS + (p->groups > 0 ? g->cost.tile : 0);
    const bool alone = g->cost.alone > 0 && last * g->cluster_columns <= gpu->sm_count;
    /* Behind a kernel that dequantizes A, it takes longer by about what one launch takes; others hide theirs behind
     * what comes in front. */
    double launches = LAUNCH_NANOSECONDS * (p->a.format == BSM_FORMAT_BF16 ? 1 : 2);
    /* Prepacked weights are loaded before the kernel in front ends, where that leaves room: half of the SMs are enough
     * for this one. */
    if (bsmi_gemm_reads_prepacked(g) && 2 * tiles <= gpu->sm_count) launches -= EARLY_LAUNCH_NANOSECONDS;
    const bool halves = p->groups == 0 && bsmi_gemm_tiles_in_halves(g, p->m, tiles, clusters) > 0;
    const double of_last = halves ? g->cost.half : alone ? g->cost.alone : step;
    if (p->groups > 0 && !g->adds_up_groups) launches += GROUP_TABLES_NANOSECONDS;
    const double all = waves * (tile + steps * step) + (last > 0 ? tile + steps * of_last : 0);
    return launches + (p->groups > 0 ? fmax(all, arriving_nanoseconds(p)) : all);
}

/* Steps of K of a tile: of groups along it as many as there are where all have their share. */
static double steps_of(const struct bsmi_product *p)
{
    return (double)(bsmi_ceil_div(p->k, BSMI_K_STEP * BSMI_MAX(1, p->column_groups)) * terms_of(p));
}

static int step_of(const struct bsmi_gemm_cost *of, const struct bsmi_product *p, double waves, bool behind_decoder)
{
    const double l2_bytes = 40e6,
                 bytes = 2.0 * (double)p->k * (double)(p->m * p->a.batch + p->n * p->b.batch) * terms_of(p);
    if (waves > 1 || bytes > l2_bytes || of->in_l2 == 0) return of->step;
    return behind_decoder && of->in_l2_behind > 0 ? of->in_l2_behind : of->in_l2;
}

static double rows_nanoseconds(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    const double steps = steps_of(p), in_front = operand_nanoseconds(g, p),
                 waves = (double)bsmi_ceil_div(bsmi_cuda_cost_tiles(g, p), gpu->gemm_clusters[gemm]);
    return LAUNCH_NANOSECONDS + in_front
           + waves * (TILE_NANOSECONDS + steps * step_of(&g->cost, p, waves, in_front > 0));
}

/* Rows decoded beside the first tiles: less in front, of A, too, where other instances' costs have none of it.  The
 * last round of tiles begins when all of them are there. */
static double late_rows_nanoseconds(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    int64_t first[2];
    if (p->k < LEAST_LATE_COLUMNS || !bsmi_cuda_late_rows(g, gpu->gemm_clusters[gemm], p, first)) return 0;
    const double late = (double)(p->a.rows - first[0] + p->b.rows - first[1]) * (double)p->k,
                 decoding = late_element_of_sm_nanoseconds * late / gpu->sm_count,
                 rounds = (double)bsmi_ceil_div(bsmi_cuda_cost_tiles(g, p), gpu->gemm_clusters[gemm]),
                 round = TILE_NANOSECONDS + steps_of(p) * g->cost.step;
    return rows_nanoseconds(gpu, gemm, p) - dequantized_element_nanoseconds * late
           + fmax(0, decoding - (rounds - 1) * round);
}

double bsmi_cuda_cost(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    if (bsmi_gemm_has_tensor_memory(g)) return modelled_nanoseconds(gpu, gemm, p);
    if (bsmi_gemm_decodes_to_tensor_memory(g)) return tensor_mixed_input_nanoseconds(gpu, gemm, p);
    if (g->main_loop == BSMI_MAIN_LOOP_REGISTERS || g->main_loop == BSMI_MAIN_LOOP_MIXED_INPUT_REGISTERS)
        return bsmi_geforce_cost(gpu, gemm, p);
    if (g->cost.step == 0) return 0;
    if (g->late_rows) return late_rows_nanoseconds(gpu, gemm, p);
    return bsmi_gemm_reads_any_scales(g) ? any_scales_nanoseconds(gpu, gemm, p) : rows_nanoseconds(gpu, gemm, p);
}

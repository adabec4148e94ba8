/* Which way a product takes on a GPU, by a table. */
#include "cuda_select.h"

#include <math.h>
#include <stdio.h>

/* Nanoseconds that a step of 64 columns of K takes when every cluster has a tile: measured on one H200 (docs/design/hopper.md), those of 256 rows and more at the
 * clock that its power limit leaves.  near: in one wave of tiles whose rows of bf16 the L2 cache holds; behind: the same where a kernel in front has
 * decoded B.  0: as the one before.  A product takes its waves of tiles times its steps, and the kernel with the least is chosen; the sums are the same
 * whichever it is. */
static const struct measured_step { const char *kernel; int step, near, behind; } measured[] = {
    { "cuda_wgmma_128x256_2x1", 680, 0, 0 }, { "cuda_wgmma_128x224_2x1", 614, 0, 0 }, { "cuda_wgmma_128x224_1x2", 645, 0, 0 },
    { "cuda_wgmma_128x192_2x1", 525, 0, 0 }, { "cuda_wgmma_128x128_1x1", 366, 340, 0 }, { "cuda_wgmma_128x96_1x1", 330, 235, 0 },
    { "cuda_wgmma_128x64_1x1", 275, 175, 160 }, { "cuda_wgmma_64x128_1x1", 265, 245, 0 }, { "cuda_wgmma_64x96_1x1", 225, 152, 195 },
    { "cuda_wgmma_64x48_1x1", 140, 125, 0 }, { "cuda_wgmma_int8_128x256_2x1", 400, 0, 0 },
    { "cuda_wgmma_mxfp4_128x64_1x1", 330, 0, 0 }, { "cuda_wgmma_mxfp4_256x64_1x2", 485, 520, 0 }, { "cuda_wgmma_mxfp4_256x128_1x1", 880, 0, 0 },
    { "cuda_wgmma_nvfp4_128x64_1x1", 350, 0, 0 }, { "cuda_wgmma_nvfp4_256x64_1x2", 500, 520, 0 }, { "cuda_wgmma_nvfp4_256x128_1x1", 885, 0, 0 },
    { "cuda_wgmma_bytes_64x64_1x1", 280, 0, 0 },
    { "cuda_wgmma_bytes_128x64_1x1", 380, 0, 0 }, { "cuda_wgmma_bytes_256x64_1x2", 470, 0, 0 },
    { "cuda_wgmma_stream_64x64_1x1", 290, 0, 0 }, { "cuda_wgmma_stream_128x64_1x1", 390, 0, 0 }, { "cuda_wgmma_stream_256x64_1x1", 510, 0, 0 },
};
enum { TILE_NANOSECONDS = 1000, LAUNCH_NANOSECONDS = 3000, LESS_BESIDE_NANOSECONDS = 2000 };

/* The same of kernels of which several CTAs share a multiprocessor: a step of all of them, and of one that has it for itself. */
static const struct { const char *kernel; int shared, alone; } measured_registers[] = {
    { "cuda_wgmma_mxfp4_16x64_1x1_interleaved", 140, 140 },        { "cuda_wgmma_mxfp4_32x64_1x1_interleaved", 165, 165 },
    { "cuda_wgmma_nvfp4_16x64_1x1_interleaved", 155, 155 },        { "cuda_wgmma_nvfp4_32x64_1x1_interleaved", 212, 212 },
    { "cuda_wgmma_mxfp4_64x64_1x1_registers", 250, 250 },    { "cuda_wgmma_nvfp4_64x64_1x1_registers", 262, 262 },
    { "cuda_wgmma_mxfp4_16x64_prepacked", 70, 70 },             { "cuda_wgmma_mxfp4_32x64_prepacked", 86, 86 },
    { "cuda_wgmma_nvfp4_16x64_prepacked", 84, 84 },             { "cuda_wgmma_nvfp4_32x64_prepacked", 103, 103 },
    { "cuda_wgmma_mxfp4_64x64_prepacked", 145, 145 },           { "cuda_wgmma_nvfp4_64x64_prepacked", 155, 155 },
    { "cuda_wgmma_mxfp4_64x64_1x1_registers_4k", 420, 385 }, { "cuda_wgmma_nvfp4_64x64_1x1_registers_4k", 450, 390 },
};

/* What comes before the GEMM kernel, where kernels differ in it: an element of B decoded into the workspace, and the launch that does it (by itself, or
 * with the decoding of A), or a row's scales brought to where the kernel reads them. */
static const double decoded_element_nanoseconds = 0.00075, decoding_alone_nanoseconds = 1500, decoding_with_a_nanoseconds = 600,
                    scales_row_nanoseconds = 0.3, ragged_scales_nanoseconds = 5000, odd_scales_nanoseconds = 15000, integer_element_nanoseconds = 0.00055;

const char *bsmi_cuda_kernel_name(int number)
{
    if (number == 0) return "cuda_simt";
    return number > 0 && number <= bsmi_gemm_instance_count ? bsmi_gemm_instances[number - 1].name : NULL;
}

static bool is_fast_pair(int gemm, const struct bsmi_product *p)
{
    return bsmi_gemm_instances[gemm].kind == BSMI_GEMM_FAST && bsmi_fast_serves(p->a.format, p->b.format);
}

/* Kernels of BSM_COMPUTE_FAST serve nothing that is to be exact. */
static bool serves_fast(int gemm, const struct bsmi_product *p) { return p->compute == BSM_COMPUTE_FAST && is_fast_pair(gemm, p); }

/* bf16 rows are made of anything, fp16 of two terms of them; a kernel that decodes B itself knows some formats. */
static bool serves(int gemm, bsm_format a, bsm_format b)
{
    const enum bsmi_gemm_kind kind = bsmi_gemm_instances[gemm].kind;
    const enum bsmi_gemm_decodes decodes = bsmi_gemm_instances[gemm].decodes;
    if (decodes != BSMI_DECODES_NONE && !bsmi_cuda_decodes(decodes, b)) return false;
    if (bsmi_gemm_has_registers(&bsmi_gemm_instances[gemm]) && a == BSM_FORMAT_FP16) return false;
    if (kind == BSMI_GEMM_INTEGERS) return a == BSM_MXFP4 && b == BSM_MXFP4;
    return kind == BSMI_GEMM_BF16 || bsmi_codes_serve(kind, a, b);
}

bool bsmi_cuda_kernel_serves(const bsm_context *context, int number, bsm_format a, bsm_format b)
{
    if (bsm_context_backend(context) != BSM_BACKEND_CUDA || bsmi_cuda_kernel_name(number) == NULL) return false;
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    const CUfunction function = number == 0 ? gpu->kernels[BSMI_KERNEL_SUMS] : gpu->gemms[number - 1];
    if (number > 0 && (!serves(number - 1, a, b) || bsmi_gemm_instances[number - 1].panels)) return false;
    return a != BSM_FORMAT_FP32 && b != BSM_FORMAT_FP32 && function != NULL;
}

static bsm_status check_operands(const struct bsmi_product *p)
{
    const struct { const char *name; bsm_format format; } operands[] = { { "a", p->a.format }, { "b", p->b.format } };
    for (int i = 0; i < 2; i++)
        if (operands[i].format == BSM_FORMAT_FP32)
            return bsmi_fail(BSM_EUNSUPPORTED, "%s->format=fp32: GPUs have no exact fp32 products in their tensor cores; give bf16 or fp16, or "
                                               "use a CPU context", operands[i].name);
    return BSM_OK;
}

static int64_t tiles_of(const struct bsmi_gemm_instance *g, const struct bsmi_product *p)
{
    const int64_t rows = bsmi_ceil_div(p->m, g->tile_rows * g->cluster_rows), columns = bsmi_ceil_div(p->n, g->tile_columns * g->cluster_columns);
    return (p->groups > 0 ? rows + p->groups - 1 : rows * p->batch) * columns;
}

/* Products of bf16 numbers for one of elements. */
static int terms_of(const struct bsmi_product *p) { return bsmi_cuda_terms(&p->a) * bsmi_cuda_terms(&p->b); }

/* Kernels for tensor memory, of whose GPUs none was at hand: modelled from published figures.  A step of 128 bytes is four products, each
 * of which takes a cycle for 128 bytes of A and B that it reads in shared memory, and not less than N / 2 cycles; a step's bytes arrive
 * from L2 at 64 a cycle.  Decoding reads and writes each element. */
static double modelled_nanoseconds(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    enum { PRODUCTS = 4, PRODUCT_BYTES = 32, ROW_BYTES = 128, SHARED_BYTES_A_CYCLE = 128, L2_BYTES_A_CYCLE = 64, TILE_CYCLES = 1000 };
    const double gigahertz = 1.85, memory_bytes_a_nanosecond = 7000, step_columns[] = { 64, 128, 256, 256 };
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    const double rows = g->a_box_rows + g->b_box_rows;
    const double steps = ceil((double)p->k / step_columns[g->kind]) * (g->kind == BSMI_GEMM_BF16 ? terms_of(p) : 1);
    const bool spread = bsmi_cuda_spreads(g, p, gpu->gemm_clusters[gemm]);
    const int parts = bsmi_codes_parts(g->kind, p->k);
    const double waves = (double)bsmi_ceil_div(tiles_of(g, p) * (spread ? parts : 1), gpu->gemm_clusters[gemm]);
    const int columns = bsmi_gemm_is_swapped(g) ? g->tile_rows : g->tile_columns;
    const double product = fmax(columns / 2.0, rows * PRODUCT_BYTES / SHARED_BYTES_A_CYCLE);
    const double step = fmax(PRODUCTS * product, rows * ROW_BYTES / L2_BYTES_A_CYCLE);
    const double tile = spread ? TILE_CYCLES + ceil(steps / parts) * step : TILE_CYCLES * parts + steps * step;
    const double decoded = g->kind == BSMI_GEMM_BF16 ? 3.0 * (double)p->k * (double)(p->m * p->a.batch + p->n * p->b.batch) : 0;
    return LAUNCH_NANOSECONDS * (spread ? 2 : 1) + waves * tile / gigahertz + decoded / memory_bytes_a_nanosecond;
}

/* Rows of integers of A and B, and launches that end at once; all others decode A, which therefore does not count. */
static double integers_nanoseconds(const struct bsmi_product *p)
{
    const double of_a = (double)p->a.rows * (double)p->a.batch * (double)p->k, of_b = (double)p->n * (double)p->b.batch * (double)p->k;
    return 3 * LAUNCH_NANOSECONDS + integer_element_nanoseconds * (of_a + of_b) - decoded_element_nanoseconds * of_a;
}

/* What scales take that are not linear, or have no whole tiles of 128 x 4 (with 2880 x 2880, by as much such kernels took longer). */
static double scales_nanoseconds(const struct bsmi_matrix *m)
{
    const bool linear = m->map.layout.kind == BSM_LAYOUT_LINEAR && m->batch == 1;
    if (m->scale == BSM_UE4M3 && m->map.layout.kind == BSM_LAYOUT_128X4) return 0;        /* read as they are */
    return !linear ? odd_scales_nanoseconds : m->rows % 128 != 0 || m->columns % 128 != 0 ? ragged_scales_nanoseconds : 0;
}

/* Bringing B to the GEMM kernel. */
static double bringing_nanoseconds(const struct bsmi_gemm_instance *g, const struct bsmi_product *p)
{
    const double rows = (double)p->n * (double)p->b.batch;
    if (bsmi_gemm_has_registers(g)) return 0;
    if (g->kind == BSMI_GEMM_INTEGERS) return integers_nanoseconds(p);
    const double launch = p->a.format == BSM_FORMAT_BF16 ? LAUNCH_NANOSECONDS : 0;         /* another A is decoded by the same */
    if (g->decodes != BSMI_DECODES_NONE) return launch + scales_row_nanoseconds * rows + scales_nanoseconds(&p->b);
    const double decoding = p->a.format == BSM_FORMAT_BF16 ? decoding_alone_nanoseconds : decoding_with_a_nanoseconds;
    return p->b.format == BSM_FORMAT_BF16 ? 0 : decoding + decoded_element_nanoseconds * rows * (double)p->k;
}

/* Waves of tiles in which every CTA has a place, and a last one, whose CTAs may have multiprocessors for themselves. */
static double registers_nanoseconds(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    const int64_t clusters = gpu->gemm_clusters[gemm], tiles = tiles_of(g, p), last = tiles % clusters;
    const double steps = (double)bsmi_ceil_div(p->k, BSMI_K_STEP), waves = (double)(tiles / clusters);
    /* Behind a kernel that decodes A, it takes longer by about what one launch takes; others hide theirs behind what comes in front. */
    double launches = LAUNCH_NANOSECONDS * (p->a.format == BSM_FORMAT_BF16 ? 1 : 2);
    /* Panels are loaded before the kernel in front ends, where that leaves room: half of the multiprocessors are enough for this one. */
    if (g->panels && 2 * tiles <= gpu->multiprocessors) launches -= LESS_BESIDE_NANOSECONDS;
    for (size_t r = 0; r < sizeof measured_registers / sizeof measured_registers[0]; r++) {
        if (strcmp(g->name, measured_registers[r].kernel) != 0) continue;
        const int of_last = last * g->cluster_columns <= gpu->multiprocessors ? measured_registers[r].alone : measured_registers[r].shared;
        return launches + waves * (TILE_NANOSECONDS + steps * measured_registers[r].shared) +
               (last > 0 ? TILE_NANOSECONDS + steps * of_last : 0);
    }
    return 0;
}

static int step_of(const struct measured_step *of, const struct bsmi_product *p, double waves, bool behind_decoder)
{
    const double near_bytes = 40e6, bytes = 2.0 * (double)p->k * (double)(p->m * p->a.batch + p->n * p->b.batch) * terms_of(p);
    if (waves > 1 || bytes > near_bytes || of->near == 0) return of->step;
    return behind_decoder && of->behind > 0 ? of->behind : of->near;
}

/* 0 where nothing is known of the kernel. */
static double expected_nanoseconds(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *p)
{
    if (bsmi_gemm_instances[gemm].has_tensor_memory) return modelled_nanoseconds(gpu, gemm, p);
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    if (bsmi_gemm_has_registers(g)) return registers_nanoseconds(gpu, gemm, p);
    const double steps = (double)(bsmi_ceil_div(p->k, BSMI_K_STEP) * terms_of(p)), waves = (double)bsmi_ceil_div(tiles_of(g, p), gpu->gemm_clusters[gemm]);
    for (size_t r = 0; r < sizeof measured / sizeof measured[0]; r++) {
        if (strcmp(g->name, measured[r].kernel) != 0) continue;
        const double bringing = bringing_nanoseconds(g, p);
        return LAUNCH_NANOSECONDS + bringing + waves * (TILE_NANOSECONDS + steps * step_of(&measured[r], p, waves, bringing > 0));
    }
    return 0;
}

/* Whether the pair is multiplied as codes on this GPU, whatever the sizes: the order of sums depends on it. */
static bool takes_codes(const struct bsmi_cuda_gpu *gpu, bsm_format a, bsm_format b)
{
    for (int i = 0; i < bsmi_gemm_instance_count; i++)
        if (gpu->gemms[i] != NULL && bsmi_codes_serve(bsmi_gemm_instances[i].kind, a, b)) return true;
    return false;
}

/* Of those that read panels, or of the others; -1: none.  One that the table does not know is taken only where it knows none. */
static int fastest_gemm(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, bool panels, double *least)
{
    const bool codes = takes_codes(gpu, p->a.format, p->b.format);
    int chosen = -1;
    *least = 0;
    for (int i = 0; i < bsmi_gemm_instance_count; i++) {
        if (gpu->gemms[i] == NULL || bsmi_gemm_instances[i].panels != panels || !serves(i, p->a.format, p->b.format) ||
            (codes && bsmi_gemm_instances[i].kind == BSMI_GEMM_BF16) || !bsmi_cuda_gemm_serves(&bsmi_gemm_instances[i], p, NULL))
            continue;
        const double time = expected_nanoseconds(gpu, i, p);
        if (chosen < 0 || (time > 0 && (*least == 0 || time < *least))) chosen = i, *least = time;
    }
    return chosen;
}

/* Number of the GEMM instance, or -1. */
static int choose_gemm(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, const char **reason)
{
    if (!bsmi_cuda_tensor_serves(p)) {
        *reason = p->k == 0 ? "K is 0: nothing to multiply" : "sizes that 32-bit coordinates cannot tell";
        return -1;
    }
    for (int i = 0; i < bsmi_gemm_instance_count; i++) {
        *reason = "BSM_COMPUTE_FAST";
        if (gpu->gemms[i] != NULL && serves_fast(i, p)) return i;
    }
    double least;
    const int chosen = fastest_gemm(gpu, p, false, &least);
    *reason = chosen < 0 ? "this GPU has no tensor cores that this build has kernels for"
              : least > 0 && bsmi_gemm_instances[chosen].has_tensor_memory ? "the least time by a model of its steps"
              : least > 0 ? "the least time by the table of measured steps" : "the first kernel of the table that this GPU runs";
    return chosen;
}

/* For people: what the choice rests on. */
static void expect(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    if (c->gemm < 0) return;
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[c->gemm];
    c->tiles = tiles_of(g, p) * (c->spread ? c->parts : 1);
    c->waves = bsmi_ceil_div(c->tiles, BSMI_MAX(1, gpu->gemm_clusters[c->gemm]));
    c->expected_nanoseconds = g->kind == BSMI_GEMM_FAST ? 0 : expected_nanoseconds(gpu, c->gemm, p);
}

static bsm_status fail_forced(int forced, const char *rule)
{
    return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but %s", bsmi_cuda_kernel_name(forced), rule);
}

/* The rule of the kernel that the product breaks; NULL: none. */
static const char *broken_rule(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, int gemm)
{
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    const char *rule = NULL;
    if (gpu->gemms[gemm] == NULL || (g->panels && gpu->kernels[BSMI_KERNEL_PACK] == NULL)) return "this build has it not for this GPU";
    if (!bsmi_cuda_tensor_serves(p)) return "K is 0 or a size beyond 32 bits";
    if (g->kind == BSMI_GEMM_FAST && p->compute != BSM_COMPUTE_FAST) return "it rounds operands, and product->compute is not BSM_COMPUTE_FAST";
    (void)bsmi_cuda_gemm_serves(g, p, &rule);
    return rule;
}

/* Never another kernel than the forced one. */
static bsm_status check_forced(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, int forced)
{
    if (forced == 0) return BSM_OK;
    if (!serves(forced - 1, p->a.format, p->b.format) && !is_fast_pair(forced - 1, p))
        return bsmi_fail(BSM_EUNSUPPORTED, "kernel %s was forced, but it does not serve %s times %s", bsmi_cuda_kernel_name(forced),
                         bsm_format_get((int)p->a.format)->name, bsm_format_get((int)p->b.format)->name);
    const char *rule = broken_rule(gpu, p, forced - 1);
    return rule == NULL ? BSM_OK : fail_forced(forced, rule);
}

bsm_status bsmi_cuda_choose(const bsm_context *context, const struct bsmi_product *p, int forced, struct bsmi_cuda_multiply *c, const char **reason)
{
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    bsm_status status = check_operands(p);
    if (status == BSM_OK && forced >= 0) status = check_forced(gpu, p, forced);
    if (status != BSM_OK) return status;
    const int gemm = forced >= 0 ? forced - 1 : choose_gemm(gpu, p, reason);
    if (forced >= 0) *reason = "forced by bsm_context_force_kernel";
    status = bsmi_cuda_prepare(gpu, p, gemm, c);
    if (status != BSM_OK) return status;
    expect(gpu, p, c);
    if (!bsmi_cuda_has_kernels(gpu, p, c))
        return bsmi_fail(BSM_EUNSUPPORTED, "%s times %s to %s on this GPU: kernels for it are not in this build", bsm_format_get((int)p->a.format)->name,
                         bsm_format_get((int)p->b.format)->name, bsm_format_get((int)p->d.format)->name);
    return BSM_OK;
}

/* Rows of A that are few for panels, unless groups share them. */
enum { MOST_PACKED_ROWS = 256 };

/* Panels serve where rows of bf16 would, with the same bits. */
bsm_status bsmi_cuda_choose_packed(const bsm_context *context, const struct bsmi_product *p, int forced, const struct bsmi_cuda_multiply *other,
                                   struct bsmi_cuda_multiply *c)
{
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    const bool rows = other->gemm >= 0 && bsmi_gemm_instances[other->gemm].kind == BSMI_GEMM_BF16 && (p->groups > 0 || p->m <= MOST_PACKED_ROWS);
    double least = 0;
    int gemm = -1;
    *c = (struct bsmi_cuda_multiply){ .gemm = -1 };
    if (forced > 0 && bsmi_gemm_instances[forced - 1].panels) {
        *c = *other;
        return BSM_OK;
    }
    if (forced < 0 && rows) gemm = fastest_gemm(gpu, p, true, &least);
    if (gemm < 0 || gpu->kernels[BSMI_KERNEL_PACK] == NULL || (forced < 0 && least > expected_nanoseconds(gpu, other->gemm, p))) return BSM_OK;
    const bsm_status status = bsmi_cuda_prepare(gpu, p, gemm, c);
    if (status == BSM_OK && !bsmi_cuda_has_kernels(gpu, p, c)) c->gemm = -1;
    return status;
}

/* Describing ------------------------------------------------------------------------------------------------------------------ */

static void describe_order(const struct bsmi_cuda_multiply *c, char *text, size_t bytes)
{
    if (c->road == BSMI_ROAD_SIMT) snprintf(text, bytes, "as on the CPU");
    else if (c->rest >= 0)
        snprintf(text, bytes, "exact in s32 if the scales of every row span 3 powers of two and its sums fit fp32, else tensor cores along K in fp32");
    else if (c->road == BSMI_ROAD_FAST) snprintf(text, bytes, "tensor cores along each 256 columns of K, added in fp32");
    else if (c->parts > 1) snprintf(text, bytes, "tensor cores along each of %d parts of K in fp32, parts ascending%s", c->parts,
                                    c->spread ? " in an epilogue of their own" : "");
    else snprintf(text, bytes, "tensor cores along K%s in fp32", c->a.terms * c->b.terms > 1 ? ", term by term," : "");
}

/* "as it is", "repacked with scales converted to 128x4", ... */
static void describe_way(const struct bsmi_cuda_multiply *c, const struct bsmi_cuda_operand *o, char *text, size_t bytes)
{
    const bool codes = c->road == BSMI_ROAD_CODES;
    if (c->rest >= 0) snprintf(text, bytes, "as integers of 8 bits, else decoded for %s", bsmi_gemm_instances[c->rest].name);
    else snprintf(text, bytes, "%s%s%s", c->road == BSMI_ROAD_SIMT ? "as it is" : bsmi_cuda_way_name(o->way), codes ? " with " : "",
             codes ? bsmi_codes_scales_name(o->codes.scales) : "");
}

size_t bsmi_cuda_describe_plan(const struct bsmi_product *p, const struct bsmi_cuda_multiply *c, const struct bsmi_cuda_multiply *packed,
                               const char *reason, char *text, size_t bytes)
{
    char tile[64] = "an element a thread", expected[96] = "", way_of_a[80], way_of_b[80], order[160];
    describe_order(c, order, sizeof order);
    describe_way(c, &c->a, way_of_a, sizeof way_of_a), describe_way(c, &c->b, way_of_b, sizeof way_of_b);
    if (c->gemm >= 0) {
        const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[c->gemm];
        snprintf(tile, sizeof tile, "tiles of %d x %d, clusters of %d x %d", g->tile_rows, g->tile_columns, g->cluster_rows, g->cluster_columns);
    }
    if (c->expected_nanoseconds > 0)
        snprintf(expected, sizeof expected, " (%lld %s, %lld %s, about %.3g us)", (long long)c->tiles, c->tiles == 1 ? "tile" : "tiles",
                 (long long)c->waves, c->waves == 1 ? "wave" : "waves", c->expected_nanoseconds / 1000);
    const int length = snprintf(text, bytes, "cuda, kernel %s, %s, A (%s) %s, B (%s) %s, %s, workspace %zu bytes, order: %s; chosen because: %s%s%s%s",
                                bsmi_cuda_kernel_name(c->gemm + 1), tile, bsm_format_get((int)p->a.format)->name, way_of_a,
                                bsm_format_get((int)p->b.format)->name, way_of_b,
                                c->direct ? "D finished by the same kernel" : "D by an epilogue of its own", c->workspace_bytes, order, reason, expected,
                                packed->gemm < 0 ? "" : "; with panels of B: ", packed->gemm < 0 ? "" : bsmi_cuda_kernel_name(packed->gemm + 1));
    return length < 0 ? 0 : (size_t)length;
}

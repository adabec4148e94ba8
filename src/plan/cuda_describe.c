/* bsm_plan_describe on a GPU. */
#include "cuda_select.h"

#include <stdio.h>

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

/* How a product goes on a GPU: its lowering, and what lies where in the workspace. */
#include "lowering.h"

bool bsmi_cuda_place(int64_t count, int64_t bytes_each, size_t *at, int64_t *end)
{
    int64_t bytes;
    *at = (size_t)*end;
    if (bsmi_mul_overflows(count, bytes_each, &bytes) || bytes > INT64_MAX / 4) return true;
    return bsmi_add_overflows(*end, bsmi_round_up(bytes, BSMI_CUDA_ALIGNMENT), end);
}

bool bsmi_cuda_finishes_directly(const struct bsmi_product *p, int gemm)
{
    const bool plain = p->d.element == BSM_FP32 || p->d.element == BSM_BF16 || p->d.element == BSM_FP16;
    const bool codes = gemm >= 0 && bsmi_gemm_multiplies_codes(&bsmi_gemm_instances[gemm]);
    const bool quantized = codes && p->d.block != 0 && p->d.packing != BSM_PACKING_GGUF;
    const bool scaled = quantized || (plain && p->d.tensor_scale == NULL);
    const bool activated = p->activation != BSM_ACT_NONE && !(codes && p->activation == BSM_ACT_RELU);
    return scaled && p->gate == BSM_GATE_NONE && !activated && (codes || p->amax == NULL);
}

static bool place_all(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    int64_t end = 0, rows;
    if (c->lowering != NULL && c->lowering->place(p, c, &end)) return true;
    if (p->groups > 0 && bsmi_cuda_place(p->groups + 1, 2 * (int64_t)sizeof(int64_t), &c->tables_at, &end)) return true;
    if (bsmi_cuda_place_column_tables(p, c, &end)) return true;
    if (!c->direct) {
        c->sums_pitch = bsmi_round_up(p->n, 32);
        if (bsmi_mul_overflows(p->m, p->batch, &rows) || bsmi_mul_overflows(rows, c->sums_pitch, &rows)
            || bsmi_mul_overflows(rows, c->split_k ? c->parts : 1, &rows)
            || bsmi_cuda_place(rows, (int64_t)sizeof(float), &c->sums_at, &end)) return true;
    }
    if (bsmi_cuda_place(c->kept, (int64_t)sizeof(float), &c->kept_at, &end)) return true;
    c->workspace_bytes = (size_t)end;
    return false;
}

static void count_tiles(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    if (c->gemm < 0) return;
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[c->gemm];
    c->row_tiles = bsmi_ceil_div(p->m, g->tile_rows * g->cluster_rows);
    c->column_tiles = bsmi_ceil_div(p->n, g->tile_columns * g->cluster_columns);
}

int64_t bsmi_cuda_tiles(const struct bsmi_gemm_instance *g, const struct bsmi_product *p)
{
    const int64_t rows = bsmi_ceil_div(p->m, g->tile_rows * g->cluster_rows),
                  columns = bsmi_ceil_div(p->n, g->tile_columns * g->cluster_columns);
    return (p->groups > 0 ? rows + 2 * p->groups : rows * p->batch) * columns;
}

bool bsmi_cuda_splits_k(const struct bsmi_gemm_instance *g, const struct bsmi_product *p, int64_t clusters)
{
    if (bsmi_codes_parts(g, p->k) <= 1) return false;
    return g->splits_k || (bsmi_gemm_is_swapped(g) && bsmi_cuda_tiles(g, p) < clusters);
}

static void describe_parts(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    c->parts = 1;
    if (!bsmi_cuda_multiplies_codes(c)) return;
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[c->gemm];
    const int64_t clusters = gpu->gemm_clusters[c->gemm], cluster = g->cluster_rows * g->cluster_columns;
    c->parts = bsmi_codes_parts(g, p->k);
    c->split_k = bsmi_cuda_splits_k(g, p, clusters);
    if (c->split_k) c->direct = false;
    else if (c->parts > 1)
        c->kept = BSMI_MIN(bsmi_cuda_tiles(g, p), clusters) * cluster * g->tile_rows * g->tile_columns;
}

/* 32-bit coordinates, and something to sum. */
bool bsmi_cuda_tensor_serves(const struct bsmi_product *p)
{
    const int64_t most = ((int64_t)1 << 31) - 512;
    return p->k > 0 && p->k < most / 2 && p->m < most && p->n < most && p->batch < most && p->b.batch < most;
}

static const struct bsmi_lowering *lowering_of(int gemm)
{
    if (gemm < 0) return NULL;
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[gemm];
    if (bsmi_gemm_multiplies_codes(g)) return &bsmi_lowering_codes;
    if (g->operands == BSMI_OPERANDS_FP8) return &bsmi_lowering_fp8_requantized;
    if (g->operands == BSMI_OPERANDS_INT8) return &bsmi_lowering_int8;
    if (g->column_groups) return &bsmi_lowering_column_groups;
    if (!bsmi_gemm_dequantizes(g)) return &bsmi_lowering_rows;
    if (bsmi_gemm_decodes_to_tensor_memory(g)) return &bsmi_lowering_tensor_mixed_input;
    return bsmi_gemm_reads_any_scales(g) ? &bsmi_lowering_mixed_input : &bsmi_lowering_fused;
}

bsm_status bsmi_cuda_prepare(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, int gemm,
                             struct bsmi_cuda_multiply *c)
{
    memset(c, 0, sizeof *c);
    c->lowering = lowering_of(gemm);
    c->gemm = gemm;
    c->int8_fallback = bsmi_gemm_int8_fallback(gemm);
    c->direct = bsmi_cuda_finishes_directly(p, gemm);
    const bsm_status status = c->lowering == NULL ? BSM_OK : c->lowering->describe(p, c);
    if (status != BSM_OK) return status;
    count_tiles(p, c);
    describe_parts(gpu, p, c);
    bsmi_cuda_describe_late_rows(gpu, p, c);
    if (place_all(p, c))
        return bsmi_fail(BSM_EOVERFLOW,
                         "a product of %lld x %lld x %lld: its workspace has more bytes than an int64_t counts",
                         (long long)p->m, (long long)p->n, (long long)p->k);
    return BSM_OK;
}

bool bsmi_cuda_has_kernels(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p,
                           const struct bsmi_cuda_multiply *c)
{
    const bool codes = bsmi_cuda_multiplies_codes(c), fp8 = c->a.form == BSMI_FORM_REQUANTIZED;
    const bool loads = !codes && (bsmi_cuda_becomes_rows(&c->a) || bsmi_cuda_becomes_rows(&c->b)
                                  || (c->b.form == BSMI_FORM_IN_KERNEL && !c->b.own_scales));
    const struct { enum bsmi_cuda_kernel_id kernel; bool wanted; } kernels[] = {
        { BSMI_KERNEL_REPACK, codes && (c->a.codes.repacked || c->b.codes.repacked || c->b.codes.metadata_copied) },
        { BSMI_KERNEL_CONVERT, codes },
        { BSMI_KERNEL_REQUANTIZE_FP8, fp8 },
        { BSMI_KERNEL_SUMS, true },
        { BSMI_KERNEL_GROUP_TABLES, p->groups > 0 },
        { BSMI_KERNEL_COLUMN_TABLES, p->column_groups > 0 },
        { BSMI_KERNEL_DECODE_COLUMNS, p->column_groups > 0 && loads },
        { BSMI_KERNEL_DECODE, loads },
        { BSMI_KERNEL_DECODE_PLAIN, loads },
        { BSMI_KERNEL_DECODE_EARLY, c->late_rows[0] + c->late_rows[1] > 0 },
        { BSMI_KERNEL_FINISH, !c->direct },
        { BSMI_KERNEL_CLEAR_PADDING, p->d.block != 0 },
        { BSMI_KERNEL_INT8_ROWS, c->int8_fallback >= 0 },
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i].wanted && gpu->kernels[kernels[i].kernel] == NULL) return false;
    return (c->gemm < 0 || gpu->gemms[c->gemm] != NULL)
           && (c->int8_fallback < 0 || gpu->gemms[c->int8_fallback] != NULL);
}

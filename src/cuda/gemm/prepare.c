/* How a product goes on a GPU: in which form its operands come, and where in the workspace they lie. */
#include "multiply.h"
#include "fused_dequantization.h"
#include "int8.h"
#include "plain_dequantization.h"

const char *bsmi_cuda_way_name(enum bsmi_cuda_way way)
{
    static const char *const names[] = { "as it is", "decoded", "repacked", "refolded", "decoded in the kernel" };
    return names[way];
}

int bsmi_cuda_terms(const struct bsmi_matrix *m) { return m->element == BSM_FP16 ? 2 : 1; }

struct bsmi_cuda_rows bsmi_cuda_plain_rows(const struct bsmi_matrix *m)
{
    return (struct bsmi_cuda_rows){ m->data,       CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, m->columns, m->rows, m->batch, m->row_bytes,
                                    m->batch_bytes };
}

static struct bsmi_cuda_operand describe_fast(const struct bsmi_matrix *m)
{
    return (struct bsmi_cuda_operand){ .way = BSMI_WAY_REFOLDED, .terms = 1, .has_exponents = true, .fast = bsmi_fast_describe(m) };
}

static struct bsmi_cuda_operand describe_operand(const struct bsmi_matrix *m)
{
    struct bsmi_cuda_operand o = { .way = BSMI_WAY_DECODED, .terms = bsmi_cuda_terms(m), .has_exponents = m->scale == BSM_E8M0 };
    const struct bsmi_cuda_rows rows = bsmi_cuda_plain_rows(m);
    if (m->format == BSM_FORMAT_BF16) o.way = bsmi_cuda_can_map(&rows) ? BSMI_WAY_AS_IT_IS : BSMI_WAY_REPACKED;
    o.padded_columns = bsmi_round_up(m->columns, BSMI_K_STEP);
    o.pitch = o.padded_columns * o.terms;
    return o;
}

/* Bytes behind *end, aligned; true on overflow. */
static bool place(int64_t count, int64_t bytes_each, size_t *at, int64_t *end)
{
    int64_t bytes;
    *at = (size_t)*end;
    if (bsmi_mul_overflows(count, bytes_each, &bytes) || bytes > INT64_MAX / 4) return true;
    return bsmi_add_overflows(*end, bsmi_round_up(bytes, BSMI_CUDA_ALIGNMENT), end);
}

static bsm_status describe_codes(const char *name, const struct bsmi_matrix *m, int gemm, struct bsmi_cuda_operand *o)
{
    const bsm_status status = bsmi_codes_describe(bsmi_gemm_instances[gemm].operands, name, m, &o->codes);
    *o = (struct bsmi_cuda_operand){ .way = o->codes.repacked ? BSMI_WAY_REPACKED : BSMI_WAY_AS_IT_IS,
                                     .terms = 1,
                                     .codes = o->codes };
    return status;
}

static bool place_codes(const struct bsmi_matrix *m, struct bsmi_codes *codes, int64_t *end)
{
    const int64_t rows = bsmi_codes_rows_bytes(m, codes), scales = bsmi_codes_scales_bytes(m, codes);
    return rows < 0 || scales < 0 || place(rows, 1, &codes->rows_at, end) || place(scales, 1, &codes->scales_at, end);
}

/* Of CTAs that bring the operand: each has a row of it, or several rows of a band of 128. */
static int64_t most_flags(const struct bsmi_matrix *m)
{
    return BSMI_MIN(BSMI_MOST_PLAIN_FLAGS, bsmi_round_up(m->rows, 128) * m->batch);
}

static bool place_fast(const struct bsmi_matrix *m, struct bsmi_cuda_operand *o, int64_t *end)
{
    const int64_t codes = bsmi_fast_codes_bytes(m, &o->fast);
    if (codes < 0 || place(codes, 1, &o->fast.codes_at, end)
        || place(m->rows * m->batch, (int64_t)sizeof(int32_t), &o->exponents_at, end)) return true;
    o->fast.exponents_at = o->exponents_at;
    return false;
}

static bool place_operand(const struct bsmi_matrix *m, struct bsmi_cuda_operand *o, int64_t *end)
{
    int64_t elements;
    if (o->way == BSMI_WAY_AS_IT_IS) return false;
    if (o->way == BSMI_WAY_IN_KERNEL) {
        if (!o->own_scales && place(m->batch, o->scale_batch_bytes, &o->scales_at, end)) return true;
    } else if (bsmi_mul_overflows(m->rows, o->pitch, &o->batch_pitch) || bsmi_mul_overflows(o->batch_pitch, m->batch, &elements)
               || place(elements, 2, &o->rows_at, end)) {
        return true;
    }
    return o->has_exponents && (place(m->rows * m->batch, (int64_t)sizeof(int32_t), &o->exponents_at, end)
                                || place(most_flags(m), (int64_t)sizeof(uint32_t), &o->left_out_at, end));
}

static bool place_integers(const struct bsmi_matrix *m, struct bsmi_integers *integers, int64_t *end)
{
    const int64_t bytes = bsmi_integers_bytes(m, integers);
    return bytes < 0 || place(bytes, 1, &integers->rows_at, end);
}

bool bsmi_cuda_finishes_directly(const struct bsmi_product *p, enum bsmi_cuda_road road)
{
    const bool plain = p->d.element == BSM_FP32 || p->d.element == BSM_BF16 || p->d.element == BSM_FP16;
    const bool codes = road == BSMI_ROAD_CODES, quantized = codes && p->d.block != 0 && p->d.packing != BSM_PACKING_GGUF;
    const bool scaled = quantized || (plain && p->d.tensor_scale == NULL);
    const bool activated = p->activation != BSM_ACT_NONE && !(codes && p->activation == BSM_ACT_RELU);
    return scaled && p->gate == BSM_GATE_NONE && !activated && (codes || p->amax == NULL);
}

static bool place_all(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    int64_t end = 0, rows;
    if (c->road == BSMI_ROAD_TENSOR && (place_operand(&p->a, &c->a, &end) || place_operand(&p->b, &c->b, &end))) return true;
    if (c->rest >= 0 && (place_integers(&p->a, &c->a.integers, &end) || place_integers(&p->b, &c->b.integers, &end)
                         || place(BSMI_MOST_UNFIT_FLAGS, (int64_t)sizeof(uint32_t), &c->unfit_at, &end))) return true;
    if (c->road == BSMI_ROAD_CODES && (place_codes(&p->a, &c->a.codes, &end) || place_codes(&p->b, &c->b.codes, &end))) return true;
    if (c->road == BSMI_ROAD_FAST && (place_fast(&p->a, &c->a, &end) || place_fast(&p->b, &c->b, &end))) return true;
    if (p->groups > 0 && place(p->groups + 1, 2 * (int64_t)sizeof(int64_t), &c->tables_at, &end)) return true;
    if (!c->direct) {
        c->sums_pitch = bsmi_round_up(p->n, 32);
        if (bsmi_mul_overflows(p->m, p->batch, &rows) || bsmi_mul_overflows(rows, c->sums_pitch, &rows) ||
            bsmi_mul_overflows(rows, c->spread ? c->parts : 1, &rows) || place(rows, (int64_t)sizeof(float), &c->sums_at, &end))
            return true;
    }
    if (place(c->kept, (int64_t)sizeof(float), &c->kept_at, &end)) return true;
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

bool bsmi_cuda_spreads(const struct bsmi_gemm_instance *g, const struct bsmi_product *p, int64_t clusters)
{
    return bsmi_gemm_is_swapped(g) && bsmi_codes_parts(g->operands, p->k) > 1 && bsmi_cuda_tiles(g, p) < clusters;
}

static void describe_parts(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    c->parts = 1;
    if (c->road != BSMI_ROAD_CODES) return;
    const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[c->gemm];
    const int64_t clusters = gpu->gemm_clusters[c->gemm], cluster = g->cluster_rows * g->cluster_columns;
    c->parts = bsmi_codes_parts(g->operands, p->k);
    c->spread = bsmi_cuda_spreads(g, p, clusters);
    if (c->spread) c->direct = false;
    else if (c->parts > 1) c->kept = BSMI_MIN(bsmi_cuda_tiles(g, p), clusters) * cluster * g->tile_rows * g->tile_columns;
}

/* 32-bit coordinates, and something to sum. */
bool bsmi_cuda_tensor_serves(const struct bsmi_product *p)
{
    const int64_t most = ((int64_t)1 << 31) - 512;
    return p->k > 0 && p->k < most / 2 && p->m < most && p->n < most && p->a.batch < most && p->b.batch < most;
}

static enum bsmi_cuda_road road_of(int gemm)
{
    if (gemm < 0) return BSMI_ROAD_SIMT;
    const enum bsmi_gemm_operands kind = bsmi_gemm_instances[gemm].operands;
    if (kind == BSMI_OPERANDS_FP8) return BSMI_ROAD_FAST;
    return kind == BSMI_OPERANDS_BF16 || kind == BSMI_OPERANDS_INT8 ? BSMI_ROAD_TENSOR : BSMI_ROAD_CODES;
}

bsm_status bsmi_cuda_prepare(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, int gemm, struct bsmi_cuda_multiply *c)
{
    memset(c, 0, sizeof *c);
    c->road = road_of(gemm);
    c->gemm = gemm;
    c->rest = bsmi_gemm_int8_fallback(gemm);
    c->direct = bsmi_cuda_finishes_directly(p, c->road);
    if (c->road == BSMI_ROAD_CODES) {
        bsm_status status = describe_codes("a", &p->a, gemm, &c->a);
        if (status == BSM_OK) status = describe_codes("b", &p->b, gemm, &c->b);
        if (status != BSM_OK) return status;
    }
    if (c->road == BSMI_ROAD_TENSOR) {
        c->a = describe_operand(&p->a);
        c->b = describe_operand(&p->b);
        if (bsmi_gemm_instances[gemm].codes != BSMI_CODES_NONE)
            bsmi_cuda_describe_codes(&p->b, bsmi_gemm_reads_any_scales(&bsmi_gemm_instances[gemm]), &c->b);
    }
    if (c->road == BSMI_ROAD_FAST) c->a = describe_fast(&p->a), c->b = describe_fast(&p->b);
    count_tiles(p, c);
    describe_parts(gpu, p, c);
    if (place_all(p, c))
        return bsmi_fail(BSM_EOVERFLOW, "a product of %lld x %lld x %lld: its workspace has more bytes than an int64_t counts",
                         (long long)p->m, (long long)p->n, (long long)p->k);
    return BSM_OK;
}

bool bsmi_cuda_has_kernels(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p, const struct bsmi_cuda_multiply *c)
{
    const bool in_kernel = c->road == BSMI_ROAD_TENSOR && c->b.way == BSMI_WAY_IN_KERNEL;
    const bool decodes = c->road == BSMI_ROAD_TENSOR && (bsmi_cuda_goes_into_rows(&c->a) || bsmi_cuda_goes_into_rows(&c->b));
    const bool codes = c->road == BSMI_ROAD_CODES;
    const struct { enum bsmi_cuda_kernel_id kernel; bool wanted; } kernels[] = {
        { BSMI_KERNEL_REPACK, codes && (c->a.codes.repacked || c->b.codes.repacked) },
        { BSMI_KERNEL_CONVERT, codes },
        { BSMI_KERNEL_REFOLD, c->road == BSMI_ROAD_FAST },
        { BSMI_KERNEL_SUMS, true },
        { BSMI_KERNEL_GROUP_TABLES, p->groups > 0 },
        { BSMI_KERNEL_DECODE, decodes || (in_kernel && !c->b.own_scales) },
        { BSMI_KERNEL_DECODE_PLAIN, decodes || (in_kernel && !c->b.own_scales) },
        { BSMI_KERNEL_FINISH, !c->direct },
        { BSMI_KERNEL_CLEAR_PADDING, p->d.block != 0 },
        { BSMI_KERNEL_INTEGERS, c->rest >= 0 },
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i].wanted && gpu->kernels[kernels[i].kernel] == NULL) return false;
    return (c->gemm < 0 || gpu->gemms[c->gemm] != NULL) && (c->rest < 0 || gpu->gemms[c->rest] != NULL);
}

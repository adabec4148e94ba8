/* Every rule of bsm_matmul, checked once. */
#include "product.h"
#include "core/core.h"
#include "matrix/packing.h"
#include "matrix/sparsity.h"
#include "quantize/block/block.h"

#define LL(x) ((long long)(x))

static bsm_status check_choice(const char *field, int value, int count)
{
    if (value < 0 || value >= count)
        return bsmi_fail(BSM_EINVAL, "product->%s=%d: choices are 0 to %d", field, value, count - 1);
    return BSM_OK;
}

static bsm_status check_aligned(const char *field, const void *pointer, size_t alignment)
{
    if ((uintptr_t)pointer % alignment != 0)
        return bsmi_fail(BSM_EALIGN, "product->%s=%p is not aligned to its numbers of %zu bytes", field, pointer,
                         alignment);
    return BSM_OK;
}

static bsm_status check_choices(const bsm_matmul *given)
{
    const struct { const char *field; int value, count;
    } choices[] = {
        { "alpha_per", (int)given->alpha_per, BSM_PER_COUNT },
        { "activation", (int)given->activation, BSM_ACT_COUNT },
        { "gate", (int)given->gate, BSM_GATE_COUNT },
        { "compute", (int)given->compute, BSM_COMPUTE_COUNT },
        { "order", (int)given->order, BSM_ORDER_COUNT },
        { "d_recipe", (int)given->d_recipe, BSM_RECIPE_COUNT },
        { "d_nonfinite", (int)given->d_nonfinite, BSM_NONFINITE_SATURATE + 1 },
    };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        const bsm_status status = check_choice(choices[i].field, choices[i].value, choices[i].count);
        if (status != BSM_OK) return status;
    }
    if (given->activation == BSM_ACT_SWIGLU_CLAMPED && given->gate == BSM_GATE_NONE)
        return bsmi_fail(BSM_EINVAL, "product->activation=swiglu_clamped needs gates and ups: set product->gate to "
                                     "interleaved or split");
    bsm_status status = check_aligned("alpha", given->alpha, sizeof(float));
    if (status == BSM_OK) status = check_aligned("beta", given->beta, sizeof(float));
    if (status == BSM_OK) status = check_aligned("amax", given->amax, sizeof(float));
    return status;
}

/* Whether B has numbers, and no codes: then they are in its prepacked weights. */
static bool has_panels_alone(const bsm_matmul *given)
{
    bsm_sparse_matrix b;
    if (given->b_panels == NULL || bsmi_read_struct("b", given->b, &b, sizeof b) != BSM_OK) return false;
    return b.matrix.data == NULL && b.matrix.scales == NULL && b.matrix.rows > 0 && b.matrix.columns > 0;
}

static bsm_status resolve_operands(const bsm_matmul *given, struct bsmi_product *p)
{
    bsm_status status = bsmi_operand_resolve("a", given->a, &p->a);
    p->b_alone = has_panels_alone(given);
    if (status == BSM_OK)
        status = (p->b_alone ? bsmi_operand_resolve_without_data : bsmi_operand_resolve)("b", given->b, &p->b);
    if (status == BSM_OK) status = bsmi_matrix_resolve("d", given->d, &p->d);
    p->has_c = given->c != NULL;
    if (status == BSM_OK && p->has_c) status = bsmi_matrix_resolve("c", given->c, &p->c);
    return status;
}

static bsm_status check_shapes(const bsm_matmul *given, struct bsmi_product *p)
{
    p->m = p->a.rows, p->n = p->b.rows, p->k = p->a.columns;
    p->gate = given->gate;
    if (p->b.columns != p->k)
        return bsmi_fail(BSM_EINVAL, "a->columns=%lld and b->columns=%lld: A is M x K and B is N x K, with the same K",
                         LL(p->k), LL(p->b.columns));
    if (p->gate != BSM_GATE_NONE && p->n % 2 != 0)
        return bsmi_fail(BSM_EINVAL,
                         "b->rows=%lld: with product->gate half of B's rows are gates and half are ups, so N is even",
                         LL(p->n));
    if (p->d.rows != p->m)
        return bsmi_fail(BSM_EINVAL, "d->rows=%lld: D has the %lld rows of A", LL(p->d.rows), LL(p->m));
    if (p->d.columns != bsmi_product_d_columns(p))
        return bsmi_fail(BSM_EINVAL, "d->columns=%lld: D has %lld columns, %s", LL(p->d.columns),
                         LL(bsmi_product_d_columns(p)),
                         p->gate == BSM_GATE_NONE ? "the rows of B" : "half the rows of B, because it is gated");
    return BSM_OK;
}

/* D and C as those of a batch. */
static bsm_status check_results(const struct bsmi_product *p, const char *because)
{
    if (p->d.batch != p->batch)
        return bsmi_fail(BSM_EINVAL, "d->batch=%lld: D has %s, %lld", LL(p->d.batch), because, LL(p->batch));
    if (p->has_c && p->c.batch != 1 && p->c.batch != p->batch)
        return bsmi_fail(BSM_EINVAL, "c->batch=%lld: C has %s, %lld, or 1 and is broadcast", LL(p->c.batch), because,
                         LL(p->batch));
    return BSM_OK;
}

static bsm_status check_batches(struct bsmi_product *p)
{
    if (p->a.batch != p->b.batch && p->a.batch != 1 && p->b.batch != 1)
        return bsmi_fail(BSM_EINVAL,
                         "a->batch=%lld and b->batch=%lld: they are equal, or one of them is 1 and is broadcast",
                         LL(p->a.batch), LL(p->b.batch));
    p->batch = p->a.batch == 1 ? p->b.batch : p->a.batch;
    return check_results(p, "the batch of the product");
}

static bsm_status check_group_rows(const struct bsmi_product *p)
{
    int64_t rows = 0;
    for (int64_t g = 0; g < p->groups; g++) {
        if (p->group_rows[g] < 0)
            return bsmi_fail(BSM_EINVAL, "product->group_rows[%lld]=%lld is negative", LL(g), LL(p->group_rows[g]));
        if (bsmi_add_overflows(rows, p->group_rows[g], &rows))
            return bsmi_fail(BSM_EOVERFLOW,
                             "the sum of product->group_rows up to number %lld is more than an int64_t counts", LL(g));
    }
    if (rows != p->m)
        return bsmi_fail(BSM_EINVAL, "product->group_rows add up to %lld: they share out the %lld rows of A", LL(rows),
                         LL(p->m));
    return BSM_OK;
}

static bsm_status check_row_groups(const bsm_matmul *given, bool on_device, struct bsmi_product *p)
{
    p->groups = given->groups;
    p->group_rows = given->group_rows;
    p->batch = 1;
    if (p->b.batch != p->groups)
        return bsmi_fail(BSM_EINVAL, "b->batch=%lld: B has one matrix for each of the %lld groups", LL(p->b.batch),
                         LL(p->groups));
    const struct { const char *name; int64_t batch; } single[] = {
        { "a", p->a.batch }, { "d", p->d.batch }, { "c", p->has_c ? p->c.batch : 1 } };
    for (int i = 0; i < 3; i++)
        if (single[i].batch != 1)
            return bsmi_fail(BSM_EINVAL, "%s->batch=%lld: grouped, %s is one matrix with the rows of all groups",
                             single[i].name, LL(single[i].batch), single[i].name);
    return on_device ? check_aligned("group_rows", p->group_rows, sizeof(int64_t)) : check_group_rows(p);
}

int64_t bsmi_product_column_unit(const struct bsmi_product *p)
{
    int64_t unit = 32;
    const struct bsmi_matrix *const operands[] = { &p->a, &p->b };
    for (int i = 0; i < 2; i++) {
        const struct bsmi_matrix *m = operands[i];
        unit = BSMI_MAX(unit, BSMI_MAX(m->block, bsmi_packing_unit_of(m->packing, m->format, m->bits).elements));
    }
    return unit;
}

static bsm_status check_group_columns(const struct bsmi_product *p)
{
    const int64_t unit = bsmi_product_column_unit(p);
    int64_t columns = 0;
    for (int64_t g = 0; g < p->column_groups; g++) {
        const int64_t more = p->group_columns[g];
        if (more < 0) return bsmi_fail(BSM_EINVAL, "product->group_columns[%lld]=%lld is negative", LL(g), LL(more));
        if (more != 0 && columns % unit != 0)
            return bsmi_fail(BSM_EINVAL,
                             "product->group_columns[%lld]=%lld begins behind %lld columns: groups of these operands "
                             "begin at multiples of %lld",
                             LL(g), LL(more), LL(columns), LL(unit));
        if (bsmi_add_overflows(columns, more, &columns))
            return bsmi_fail(BSM_EOVERFLOW,
                             "the sum of product->group_columns up to number %lld is more than an int64_t counts",
                             LL(g));
    }
    if (columns != p->k)
        return bsmi_fail(BSM_EINVAL,
                         "product->group_columns add up to %lld: they share out the %lld columns of A and B",
                         LL(columns), LL(p->k));
    return BSM_OK;
}

static bsm_status check_column_groups(const bsm_matmul *given, bool on_device, struct bsmi_product *p)
{
    p->batch = p->column_groups = given->groups;
    p->group_columns = given->group_columns;
    const struct { const char *name; int64_t batch; } operands[] = { { "a", p->a.batch }, { "b", p->b.batch } };
    for (int i = 0; i < 2; i++)
        if (operands[i].batch != 1)
            return bsmi_fail(BSM_EINVAL,
                             "%s->batch=%lld: with product->group_columns it is one matrix with the columns of all "
                             "groups",
                             operands[i].name, LL(operands[i].batch));
    const bsm_status status = check_results(p, "a matrix for each group");
    if (status != BSM_OK) return status;
    return on_device ? check_aligned("group_columns", p->group_columns, sizeof(int64_t)) : check_group_columns(p);
}

static bsm_status check_groups(const bsm_matmul *given, bool on_device, struct bsmi_product *p)
{
    if (given->groups < 0) return bsmi_fail(BSM_EINVAL, "product->groups=%lld is negative", LL(given->groups));
    if (given->group_rows == NULL && given->group_columns == NULL)
        return bsmi_fail(BSM_EINVAL,
                         "product->group_rows is NULL, but product->groups=%lld: give the rows of each group, or "
                         "group_columns",
                         LL(given->groups));
    if (given->group_rows != NULL && given->group_columns != NULL)
        return bsmi_fail(BSM_EINVAL,
                         "product->group_rows=%p and product->group_columns=%p: groups are along one of both",
                         (const void *)given->group_rows, (const void *)given->group_columns);
    return (given->group_columns != NULL ? check_column_groups : check_row_groups)(given, on_device, p);
}

static bsm_status check_c(const struct bsmi_product *p)
{
    if (!p->has_c) return BSM_OK;
    if (p->c.format != BSM_FORMAT_FP32 && p->c.format != BSM_FORMAT_BF16 && p->c.format != BSM_FORMAT_FP16)
        return bsmi_fail(BSM_EINVAL, "c->format=%s: C is fp32, bf16 or fp16", bsm_format_get((int)p->c.format)->name);
    if (p->c.tensor_scale != NULL)
        return bsmi_fail(BSM_EINVAL, "c->tensor_scale is given: C has none; multiply beta by it");
    if (p->c.rows != p->m || p->c.columns != p->n)
        return bsmi_fail(BSM_EINVAL, "c is %lld x %lld: C is M x N, %lld x %lld%s", LL(p->c.rows), LL(p->c.columns),
                         LL(p->m), LL(p->n), p->gate == BSM_GATE_NONE ? "" : ", N counted before gating");
    return BSM_OK;
}

static bsm_status check_bias(const bsm_matmul *given, struct bsmi_product *p)
{
    p->bias = given->bias;
    if (p->bias == NULL) return BSM_OK;
    p->bias_type = given->bias_type, p->bias_per = given->bias_per, p->bias_batch_pitch = given->bias_batch_pitch;
    const int type = (int)given->bias_type;
    if (type != BSM_REAL_FP32 && type != BSM_REAL_BF16 && type != BSM_REAL_FP16)
        return bsmi_fail(BSM_EINVAL, "product->bias_type=%d: a bias is fp32, bf16 or fp16", type);
    if (p->bias_per != BSM_PER_ROW && p->bias_per != BSM_PER_COLUMN)
        return bsmi_fail(BSM_EINVAL, "product->bias_per=%d: a bias is per row or per column", (int)p->bias_per);
    if (p->bias_batch_pitch < 0)
        return bsmi_fail(BSM_EINVAL, "product->bias_batch_pitch=%lld is negative", LL(p->bias_batch_pitch));
    if (p->groups > 0 && p->bias_per == BSM_PER_ROW && p->bias_batch_pitch != 0)
        return bsmi_fail(BSM_EINVAL, "product->bias_batch_pitch=%lld: grouped, a bias per row is indexed by the row of "
                                     "A; set the pitch to 0",
                         LL(p->bias_batch_pitch));
    int64_t last, bytes;
    const int64_t matrices = p->groups > 0 ? p->groups : p->batch, length = p->bias_per == BSM_PER_ROW ? p->m : p->n;
    if (bsmi_mul_overflows(BSMI_MAX(0, matrices - 1), p->bias_batch_pitch, &last)
        || bsmi_add_overflows(last, length, &last) || bsmi_mul_overflows(last, (int64_t)bsm_real_bytes(type), &bytes))
        return bsmi_fail(BSM_EOVERFLOW,
                         "product->bias_batch_pitch=%lld for %lld matrices reaches beyond what an int64_t counts",
                         LL(p->bias_batch_pitch), LL(matrices));
    return check_aligned("bias", p->bias, bsm_real_bytes(type));
}

static bsm_status check_d(const bsm_matmul *given, struct bsmi_product *p)
{
    p->d_recipe = given->d_recipe;
    p->d_nonfinite = given->d_nonfinite;
    p->d_no_saturate = given->d_no_saturate;
    const char *format = bsm_format_get((int)p->d.format)->name;
    if (p->d.block == 0 && p->d.bits < 8)
        return bsmi_fail(BSM_EUNSUPPORTED, "d->format=%s: D has no codes of 4 and 6 bits without block scales; give it "
                                           "a block format, or quantize it with bsm_quantize", format);
    if (p->d.block == 0 && p->d_recipe != BSM_RECIPE_DEFAULT)
        return bsmi_fail(BSM_EINVAL, "product->d_recipe=%s: %s has no block scales; leave the recipe at default",
                         bsm_recipe_name((int)p->d_recipe), format);
    if (p->d_no_saturate && !(p->d.block == 0 && p->d.bits == 8))
        return bsmi_fail(BSM_EINVAL, "product->d_no_saturate is for e4m3 and e5m2 without scales, not for %s: block "
                                     "formats always saturate, and 16- and 32-bit floats never do", format);
    if (p->d.block == 0) return BSM_OK;
    struct bsmi_block_quantizer quantizer;
    const bsm_status status =
        bsmi_block_quantizer_make("product->d_recipe", p->d.format, p->d_recipe, BSM_ROUND_NEAREST_EVEN, 0,
                                  p->d_nonfinite, 1, p->d.tensor_scale_use, &quantizer);
    if (status == BSM_OK && (p->d_recipe == BSM_RECIPE_FOUR_OVER_SIX || p->d_recipe == BSM_RECIPE_MSE))
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "product->d_recipe=%s: products quantize their results in one pass; give D as "
                         "fp32 and quantize it with bsm_quantize",
                         bsm_recipe_name((int)p->d_recipe));
    return status;
}

bsm_status bsmi_product_check(const bsm_matmul *from, bool on_device, struct bsmi_product *p)
{
    bsm_matmul given;
    memset(p, 0, sizeof *p);
    bsm_status status = bsmi_read_struct("product", from, &given, sizeof given);
    if (status == BSM_OK) status = check_choices(&given);
    if (status == BSM_OK && !on_device && given.stream != NULL)
        return bsmi_fail(BSM_EINVAL, "product->stream=%p: a CPU context has no streams", given.stream);
    if (status == BSM_OK) status = check_aligned("b_panels", given.b_panels, BSMI_ALIGNMENT);
    if (status == BSM_OK) status = resolve_operands(&given, p);
    if (status == BSM_OK) status = check_shapes(&given, p);
    if (status == BSM_OK) status = given.groups != 0 ? check_groups(&given, on_device, p) : check_batches(p);
    if (status == BSM_OK) status = check_c(p);
    if (status == BSM_OK) status = check_bias(&given, p);
    if (status == BSM_OK) status = check_d(&given, p);
    if (status != BSM_OK) return status;
    p->b_panels = given.b_panels;
    p->alpha = given.alpha;
    p->alpha_per = given.alpha_per;
    p->beta = given.beta;
    p->activation = given.activation;
    p->amax = given.amax;
    p->stream = given.stream;
    p->compute = given.compute;
    p->order = given.order;
    return bsmi_product_check_overlap(p);
}

bsm_status bsmi_product_check_data(const struct bsmi_product *p)
{
    float scale;
    bsm_status status = bsmi_matrix_tensor_scale("a", &p->a, &scale);
    if (status == BSM_OK) status = bsmi_matrix_tensor_scale("b", &p->b, &scale);
    if (status == BSM_OK) status = bsmi_matrix_tensor_scale("d", &p->d, &scale);
    if (status == BSM_OK) status = bsmi_metadata_check("a", &p->a);
    if (status == BSM_OK && p->b_panels == NULL) status = bsmi_metadata_check("b", &p->b);
    if (status == BSM_OK && !p->has_c && bsmi_product_reads_c(p))
        return bsmi_fail(BSM_EINVAL, "product->c is NULL, but *product->beta=%g: give C, or leave beta NULL or 0",
                         (double)*p->beta);
    return status;
}

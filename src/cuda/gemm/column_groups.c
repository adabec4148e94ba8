/* Groups along K: both operands become rows of bf16 in the workspace, of any format, in which every group begins with a
 * step of K; the tables that say where are made on the device, which alone knows how many columns each has. */
#include "cuda/driver/matrix.h"
#include "lowering.h"

bool bsmi_cuda_place_column_tables(const struct bsmi_product *p, struct bsmi_cuda_multiply *c, int64_t *end)
{
    return p->column_groups > 0
           && bsmi_cuda_place(p->column_groups + 1, (int64_t)sizeof(struct bsmi_column_group), &c->tables_at, end);
}

/* Columns of a row, at most: each group may fill up a step.  Groups that begin at multiples of it do not. */
static int64_t most_columns(const struct bsmi_product *p)
{
    const int64_t whole = bsmi_round_up(p->k, BSMI_COLUMN_STEP);
    return bsmi_product_column_unit(p) % BSMI_COLUMN_STEP == 0 ? whole
                                                               : whole + p->column_groups * BSMI_COLUMN_STEP;
}

bool bsmi_cuda_column_groups_fit(const struct bsmi_product *p)
{
    const int64_t most = ((int64_t)1 << 30) - 512;
    return p->column_groups < most / BSMI_COLUMN_STEP && most_columns(p) < most;
}

static struct bsmi_cuda_operand describe_operand(const struct bsmi_product *p, const struct bsmi_matrix *m)
{
    struct bsmi_cuda_operand o = bsmi_cuda_describe_rows(m);
    if (o.form == BSMI_FORM_AS_STORED) o.form = BSMI_FORM_REPACKED;
    o.padded_columns = most_columns(p);
    o.pitch = o.padded_columns * o.terms;
    return o;
}

static bsm_status describe(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    if (p->column_groups == 0) return bsmi_lowering_rows.describe(p, c);
    c->a = describe_operand(p, &p->a), c->b = describe_operand(p, &p->b);
    return BSM_OK;
}

/* Exponents are those of rows, for each group. */
static bool place_operand(const struct bsmi_product *p, const struct bsmi_matrix *m, struct bsmi_cuda_operand *o,
                          int64_t *end)
{
    int64_t exponents;
    if (bsmi_mul_overflows(m->rows, o->pitch, &o->batch_pitch) || bsmi_cuda_place(o->batch_pitch, 2, &o->rows_at, end)
        || bsmi_mul_overflows(m->rows, p->column_groups, &exponents)) return true;
    return o->has_exponents
           && (bsmi_cuda_place(exponents, (int64_t)sizeof(int32_t), &o->exponents_at, end)
               || bsmi_cuda_place(BSMI_MOST_FALLBACK_FLAGS, (int64_t)sizeof(uint32_t), &o->fallback_at, end));
}

static bool place(const struct bsmi_product *p, struct bsmi_cuda_multiply *c, int64_t *end)
{
    if (p->column_groups == 0) return bsmi_lowering_rows.place(p, c, end);
    return place_operand(p, &p->a, &c->a, end) || place_operand(p, &p->b, &c->b, end)
           || bsmi_cuda_place(most_columns(p) / BSMI_COLUMN_STEP, (int64_t)sizeof(struct bsmi_column_step),
                              &c->steps_at, end);
}

const struct bsmi_column_group *bsmi_cuda_column_table(const struct bsmi_cuda_run *run)
{
    return run->product->column_groups == 0 ? NULL : bsmi_cuda_at(run, run->multiply->tables_at);
}

bsm_status bsmi_cuda_make_column_tables(struct bsmi_cuda_run *run)
{
    enum { EXPONENTS_OF_CTA = 8 * BSMI_COLUMN_TABLES_THREADS };
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    if (p->column_groups == 0) return BSM_OK;
    struct bsmi_column_tables_parameters parameters = {
        .group_columns = p->group_columns, .groups = p->column_groups, .k = p->k,
        .unit = bsmi_product_column_unit(p), .table = bsmi_cuda_at(run, c->tables_at),
    };
    if (c->lowering != NULL) parameters.steps = bsmi_cuda_at(run, c->steps_at);
    const struct { const struct bsmi_cuda_operand *o; int64_t rows; } operands[] = { { &c->a, p->m }, { &c->b, p->n } };
    int64_t exponents = 0;
    for (int i = 0; i < 2; i++) {
        if (!operands[i].o->has_exponents) continue;
        parameters.exponents[i].first = bsmi_cuda_exponents(run, operands[i].o);
        parameters.exponents[i].count = operands[i].rows * p->column_groups;
        exponents += parameters.exponents[i].count;
    }
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_COLUMN_TABLES, 1 + exponents / EXPONENTS_OF_CTA, &parameters);
}

static struct bsmi_decode_operand decoded_operand(const struct bsmi_cuda_run *run, const struct bsmi_matrix *m,
                                                  const struct bsmi_cuda_operand *o,
                                                  const struct bsmi_cuda_operand *other)
{
    return (struct bsmi_decode_operand){
        .source = bsmi_cuda_matrix(m), .decoded = bsmi_cuda_at(run, o->rows_at), .pitch = o->pitch,
        .padded_columns = o->padded_columns, .only_exponent_zero = bsmi_cuda_is_bf16(other),
        .exponents = bsmi_cuda_exponents(run, o),
        .fallback = o->has_exponents ? bsmi_cuda_at(run, o->fallback_at) : NULL,
    };
}

/* A CTA takes a row at a time; those of A and of B share the GPU as they share the columns, which are the same. */
static bsm_status decode(struct bsmi_cuda_run *run)
{
    enum { MOST_CTAS = 3 };               /* of an SM */
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    const int64_t rows = p->m + p->n,
                  all = BSMI_MIN(BSMI_MIN(rows, (int64_t)run->queue.gpu->sm_count * MOST_CTAS),
                                 (int64_t)BSMI_MOST_FALLBACK_FLAGS),
                  of_a = BSMI_MAX(1, BSMI_MIN(all - 1, p->m * all / rows));
    const struct bsmi_decode_columns_parameters parameters = {
        .operands = { decoded_operand(run, &p->a, &c->a, &c->b), decoded_operand(run, &p->b, &c->b, &c->a) },
        .table = bsmi_cuda_column_table(run), .steps = bsmi_cuda_at(run, c->steps_at), .groups = p->column_groups,
        .first_ctas = (int32_t)of_a,
    };
    run->a_flags = (int32_t)of_a, run->b_flags = (int32_t)(all - of_a);
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_DECODE_COLUMNS, all, &parameters);
}

static bsm_status enqueue(struct bsmi_cuda_run *run)
{
    const struct bsmi_cuda_multiply *c = run->multiply;
    if (run->product->column_groups == 0) return bsmi_cuda_enqueue_rows(run);
    bsm_status status = decode(run);
    if (status == BSM_OK) status = bsmi_cuda_run_gemm(run, c->gemm, c->lowering);
    return status == BSM_OK && (c->a.has_exponents || c->b.has_exponents) ? bsmi_cuda_run_sums(run, true) : status;
}

static bsm_status fill(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g, union bsmi_gemm_launch *to)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    bsmi_cuda_fill_segments(c, &to->gemm);
    to->column_groups.groups = bsmi_cuda_column_table(run);
    const bsm_status status = bsmi_cuda_map_rows(run, "a", &p->a, &c->a, g->a_box_rows, &to->gemm.a);
    return status == BSM_OK ? bsmi_cuda_map_rows(run, "b", &p->b, &c->b, g->b_box_rows, &to->gemm.b) : status;
}

const struct bsmi_lowering bsmi_lowering_column_groups = { describe, place, enqueue, fill };

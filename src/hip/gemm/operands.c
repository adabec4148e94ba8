/* What becomes of A and B before a GEMM kernel. */
#include "operands.h"

#include "device/matrix.h"
#include "hip/params/kernels.h"

enum { CODE_ALIGNMENT = 16, MOST_ROW_BYTES = (1 << 22) - 256 };

bool bsmi_hip_place(int64_t count, int64_t bytes_each, size_t *at, int64_t *end)
{
    int64_t bytes;
    *at = (size_t)*end;
    if (bsmi_mul_overflows(count, bytes_each, &bytes) || bytes > INT64_MAX / 4) return true;
    return bsmi_add_overflows(*end, bsmi_round_up(bytes, BSMI_HIP_ALIGNMENT), end);
}

/* Formats that instructions multiply: codes of theirs, with a scale of e8m0 for 32 of them, or without. */
static bool is_scaled_format(bsm_format format, int *element)
{
    const bsm_format_info *info = bsm_format_get((int)format);
    *element = bsmi_hip_element_of(info->element);
    return *element >= 0 && (info->block == 0 || (info->block == 32 && info->scale == BSM_E8M0));
}

bool bsmi_hip_serves(const struct bsmi_hip_instance *instance, bsm_format a, bsm_format b, int *pair)
{
    int of_a, of_b;
    *pair = 0;
    if (a == BSM_FORMAT_FP32 || b == BSM_FORMAT_FP32) return false;
    if (!instance->scaled) return true;
    if (!is_scaled_format(a, &of_a) || !is_scaled_format(b, &of_b)) return false;
    *pair = of_a * BSMI_HIP_ELEMENTS + of_b;
    return true;
}

/* Describing ------------------------------------------------------------------------------------------------------- */

static int terms_of(const struct bsmi_matrix *m) { return m->element == BSM_FP16 ? 2 : 1; }

bool bsmi_hip_has_kernels_packing(const struct bsmi_matrix *m)
{
    return m->bits == 4 ? m->packing == BSM_PACKING_LOW_FIRST
           : m->bits == 6 ? m->packing == BSM_PACKING_BIT_STREAM
                          : true;
}

/* Rows as the kernel reads them: pitches and the first address in multiples of 16 bytes, and whole words. */
static bool lies_well(const struct bsmi_matrix *m)
{
    return m->columns * m->bits % 32 == 0 && (uintptr_t)m->data % CODE_ALIGNMENT == 0
           && m->row_bytes % CODE_ALIGNMENT == 0 && m->batch_bytes % CODE_ALIGNMENT == 0
           && m->row_bytes <= MOST_ROW_BYTES;
}

static bsm_layout lane_order(const struct bsmi_hip_instance *instance)
{
    return instance->dim == 16 ? BSM_LAYOUT_CDNA4_16 : BSM_LAYOUT_CDNA4_32;
}

/* The caller's scales have the order and lie well. */
static bool has_lane_order(const struct bsmi_matrix *m, bsm_layout order)
{
    const bsm_layout kind = m->map.layout.kind;
    return (kind == order || (kind == BSM_LAYOUT_AITER && order == BSM_LAYOUT_CDNA4_16))
           && (uintptr_t)m->scales % CODE_ALIGNMENT == 0 && m->scale_batch_bytes % CODE_ALIGNMENT == 0;
}

static void use_rows(const struct bsmi_matrix *m, enum bsmi_hip_form form, int64_t row_bytes,
                     struct bsmi_hip_operand *o)
{
    o->form = form;
    o->row_bytes = row_bytes;
    o->batch_bytes = form == BSMI_HIP_AS_STORED ? m->batch_bytes : m->rows * row_bytes;
}

static bsm_status describe_codes(const struct bsmi_hip_instance *instance, const char *name,
                                 const struct bsmi_matrix *m, struct bsmi_hip_operand *o)
{
    const bsm_scale_layout order = { .kind = lane_order(instance) };
    o->padded_columns = bsmi_round_up(m->columns, 128);
    if (bsmi_hip_has_kernels_packing(m) && lies_well(m)) use_rows(m, BSMI_HIP_AS_STORED, m->row_bytes, o);
    else use_rows(m, BSMI_HIP_REPACKED, o->padded_columns * m->bits / 8, o);
    o->scales = m->block == 0 ? BSMI_HIP_SCALES_ONES
                : has_lane_order(m, order.kind) ? BSMI_HIP_SCALES_AS_THEY_ARE
                                                : BSMI_HIP_SCALES_CONVERTED;
    o->nan_words = m->block != 0 ? bsmi_ceil_div(m->rows, 32) : 0;
    return bsmi_scale_map_make(name, &order, m->rows, bsmi_ceil_div(m->columns, 32), &o->scale_map);
}

static bsm_status describe_panels(const struct bsmi_matrix *m, struct bsmi_hip_operand *o)
{
    struct bsmi_hip_panels panels;
    if (bsmi_hip_place_panels(m, &panels))
        return bsmi_fail(BSM_EOVERFLOW, "b: prepacked weights of it have more bytes than an int64_t counts");
    use_rows(m, BSMI_HIP_PREPACKED, panels.row_bytes, o);
    o->batch_bytes = panels.batch_bytes;
    return BSM_OK;
}

/* stretches: of a row, so that each pair of terms of A and B meets once. */
static void describe_rows(const struct bsmi_matrix *m, int stretches, int repeat, struct bsmi_hip_operand *o)
{
    o->padded_columns = bsmi_round_up(m->columns, 64);
    o->stretches = stretches, o->repeat = repeat;
    o->has_exponents = m->scale == BSM_E8M0;
    if (m->element == BSM_BF16 && stretches == 1 && lies_well(m)) use_rows(m, BSMI_HIP_AS_STORED, m->row_bytes, o);
    else use_rows(m, BSMI_HIP_DECODED, o->padded_columns * stretches * (int64_t)sizeof(uint16_t), o);
}

bsm_status bsmi_hip_describe_operands(const struct bsmi_hip_instance *instance, const struct bsmi_product *p,
                                      struct bsmi_hip_multiply *c)
{
    if (instance->scaled) {
        const bsm_status status = describe_codes(instance, "a", &p->a, &c->a);
        c->k = p->k;
        if (status != BSM_OK) return status;
        return instance->prepacked ? describe_panels(&p->b, &c->b) : describe_codes(instance, "b", &p->b, &c->b);
    }
    const int stretches = terms_of(&p->a) * terms_of(&p->b);
    describe_rows(&p->a, stretches, terms_of(&p->b), &c->a);
    describe_rows(&p->b, stretches, 1, &c->b);
    c->k = stretches == 1 ? p->k : stretches * c->a.padded_columns;
    return BSM_OK;
}

bool bsmi_hip_place_operand(const struct bsmi_matrix *m, struct bsmi_hip_operand *o, int64_t *end)
{
    const bool of_workspace = o->form == BSMI_HIP_REPACKED || o->form == BSMI_HIP_DECODED,
               scales = o->form != BSMI_HIP_PREPACKED && o->scales != BSMI_HIP_SCALES_AS_THEY_ARE;
    return bsmi_hip_place(of_workspace ? m->batch : 0, o->batch_bytes, &o->rows_at, end)
           || bsmi_hip_place(scales ? m->batch : 0, o->scale_map.bytes, &o->scales_at, end)
           || bsmi_hip_place(m->batch, o->nan_words * (int64_t)sizeof(uint32_t), &o->nans_at, end)
           || bsmi_hip_place(o->has_exponents ? m->batch : 0, m->rows * (int64_t)sizeof(int32_t), &o->exponents_at,
                             end);
}

/* Making ----------------------------------------------------------------------------------------------------------- */

static void *at(const struct bsmi_hip_run *run, size_t offset) { return run->workspace + offset; }

static bsm_status make_scales(const struct bsmi_hip_run *run, const struct bsmi_matrix *m,
                              const struct bsmi_hip_operand *o)
{
    enum { ONE = 127 };
    const int64_t bytes = o->scale_map.bytes * m->batch;
    const bool own = o->scales == BSMI_HIP_SCALES_AS_THEY_ARE;
    const struct bsmi_hip_nan_scales_parameters nans = {
        .scales = own ? m->scales : at(run, o->scales_at),
        .scale_row_bytes = o->scale_map.padded_columns * 32,
        .scale_batch_bytes = own ? m->scale_batch_bytes : o->scale_map.bytes,
        .columns = o->scale_map.columns,
        .groups = (int32_t)o->nan_words,
        .matrices = (int32_t)m->batch,
        .dim = bsmi_hip_instances[run->multiply->gemm].dim,
        .nans = at(run, o->nans_at),
    };
    const struct bsmi_convert_scales_parameters convert = {
        .from = m->scales,
        .to = at(run, o->scales_at),
        .from_layout = bsmi_device_layout_of(&m->map),
        .to_layout = bsmi_device_layout_of(&o->scale_map),
        .batch = m->batch,
        .from_batch_bytes = m->scale_batch_bytes,
        .to_batch_bytes = o->scale_map.bytes,
        .repeat = 1,
    };
    if (o->scales == BSMI_HIP_SCALES_ONES)
        return bsmi_hip_fill_bytes(&run->queue, at(run, o->scales_at), ONE, bytes, "scales of 1");
    const bsm_status status =
        own ? BSM_OK
            : bsmi_hip_launch(&run->queue, BSMI_HIP_KERNEL_CONVERT, bsmi_ceil_div(bytes, BSMI_HIP_THREADS), &convert);
    if (status != BSM_OK) return status;
    return bsmi_hip_launch(&run->queue, BSMI_HIP_KERNEL_NAN_SCALES, bsmi_ceil_div(o->nan_words * m->batch, 4), &nans);
}

static bsm_status make_codes(const struct bsmi_hip_run *run, const struct bsmi_matrix *m,
                             const struct bsmi_hip_operand *o)
{
    const struct bsmi_hip_repack_parameters repack = { bsmi_device_matrix_of(m), at(run, o->rows_at), o->row_bytes,
                                                       o->batch_bytes, o->padded_columns };
    if (o->form == BSMI_HIP_PREPACKED) return BSM_OK;
    const bsm_status status =
        o->form == BSMI_HIP_AS_STORED
            ? BSM_OK
            : bsmi_hip_launch(&run->queue, BSMI_HIP_KERNEL_REPACK,
                              bsmi_ceil_div(m->rows * m->batch * (o->padded_columns / 8), BSMI_HIP_THREADS), &repack);
    return status == BSM_OK ? make_scales(run, m, o) : status;
}

static bsm_status make_rows(const struct bsmi_hip_run *run, const struct bsmi_matrix *m,
                            const struct bsmi_hip_operand *o, const struct bsmi_matrix *other)
{
    const struct bsmi_hip_decode_parameters decode = {
        .source = bsmi_device_matrix_of(m),
        .decoded = at(run, o->rows_at),
        .row_pitch = o->row_bytes / (int64_t)sizeof(uint16_t),
        .batch_pitch = o->batch_bytes / (int64_t)sizeof(uint16_t),
        .padded_columns = o->padded_columns,
        .stretches = o->stretches,
        .repeat = o->repeat,
        .only_exponent_zero = other->element == BSM_BF16,
        .exponents = o->has_exponents ? at(run, o->exponents_at) : NULL,
    };
    if (o->form == BSMI_HIP_AS_STORED) return BSM_OK;
    return bsmi_hip_launch(&run->queue, BSMI_HIP_KERNEL_DECODE, bsmi_ceil_div(m->rows * m->batch, 4), &decode);
}

bsm_status bsmi_hip_make_operands(const struct bsmi_hip_run *run)
{
    const struct bsmi_hip_multiply *c = run->multiply;
    const struct bsmi_product *p = run->product;
    const bool codes = bsmi_hip_instances[c->gemm].scaled;
    const bsm_status status =
        codes ? make_codes(run, &p->a, &c->a) : make_rows(run, &p->a, &c->a, &p->b);
    if (status != BSM_OK) return status;
    return codes ? make_codes(run, &p->b, &c->b) : make_rows(run, &p->b, &c->b, &p->a);
}

/* Parameters ------------------------------------------------------------------------------------------------------- */

bsm_status bsmi_hip_fail_alignment(const char *name, const char *member, const void *data)
{
    return bsmi_fail(BSM_EALIGN, "%s->%s=%p is not aligned as that of the plan was: make a plan for it", name, member,
                     data);
}

static bsm_status fill_operand(const struct bsmi_hip_run *run, const char *name, const struct bsmi_matrix *m,
                               const struct bsmi_hip_operand *o, struct bsmi_hip_gemm_operand *to)
{
    const bool own = o->form == BSMI_HIP_AS_STORED, scaled = bsmi_hip_instances[run->multiply->gemm].scaled,
               own_scales = scaled && o->scales == BSMI_HIP_SCALES_AS_THEY_ARE;
    if (own && (uintptr_t)m->data % CODE_ALIGNMENT != 0) return bsmi_hip_fail_alignment(name, "data", m->data);
    if (own_scales && (uintptr_t)m->scales % CODE_ALIGNMENT != 0)
        return bsmi_hip_fail_alignment(name, "scales", m->scales);
    *to = (struct bsmi_hip_gemm_operand){
        .codes = own ? m->data : at(run, o->rows_at),
        .scales = !scaled ? NULL : own_scales ? m->scales : at(run, o->scales_at),
        .batch_bytes = m->batch == 1 ? 0 : o->batch_bytes,
        .scale_batch_bytes = m->batch == 1 ? 0 : own_scales ? m->scale_batch_bytes : o->scale_map.bytes,
        .row_bytes = o->row_bytes,
        .scale_row_bytes = scaled ? o->scale_map.padded_columns * 32 : 0,
    };
    return BSM_OK;
}

static void fill_panels(const struct bsmi_hip_run *run, struct bsmi_hip_gemm_parameters *p)
{
    const struct bsmi_matrix *b = &run->product->b;
    const unsigned char *panels = run->product->b_panels;
    struct bsmi_hip_panels at;
    (void)bsmi_hip_place_panels(b, &at);                 /* counted for the plan */
    p->b = (struct bsmi_hip_gemm_operand){
        .codes = panels,
        .scales = panels + at.scales_at,
        .batch_bytes = b->batch == 1 ? 0 : at.batch_bytes,
        .scale_batch_bytes = b->batch == 1 ? 0 : at.scale_batch_bytes,
        .row_bytes = at.row_bytes,
        .scale_row_bytes = at.scale_row_bytes,
    };
    if (at.nan_words > 0) p->finish.b_nans = (const uint32_t *)(const void *)(panels + at.nans_at);
    p->finish.b_nan_words = b->batch == 1 ? 0 : at.nan_words;
}

bsm_status bsmi_hip_fill_operands(const struct bsmi_hip_run *run, struct bsmi_hip_gemm_parameters *p)
{
    const bsm_status status = fill_operand(run, "a", &run->product->a, &run->multiply->a, &p->a);
    const struct bsmi_hip_operand *a = &run->multiply->a, *b = &run->multiply->b;
    struct bsmi_hip_gemm_finish *f = &p->finish;
    if (a->nan_words > 0) f->a_nans = at(run, a->nans_at);
    f->a_nan_words = run->product->a.batch == 1 ? 0 : a->nan_words;
    if (status != BSM_OK) return status;
    if (b->form == BSMI_HIP_PREPACKED) return fill_panels(run, p), BSM_OK;
    if (b->nan_words > 0) f->b_nans = at(run, b->nans_at);
    f->b_nan_words = run->product->b.batch == 1 ? 0 : b->nan_words;
    return fill_operand(run, "b", &run->product->b, b, &p->b);
}

/* Strided real numbers of the caller. */
#include "reals.h"

#include "core/core.h"

static const struct { const char *name; size_t bytes; } reals[BSM_REAL_COUNT] = {
    [BSM_REAL_FP32] = { "fp32", 4 },
    [BSM_REAL_FP16] = { "fp16", 2 },
    [BSM_REAL_BF16] = { "bf16", 2 },
    [BSM_REAL_FP64] = { "fp64", 8 },
};

const char *bsm_real_name(int real) { return real >= 0 && real < BSM_REAL_COUNT ? reals[real].name : NULL; }
size_t bsm_real_bytes(int real) { return real >= 0 && real < BSM_REAL_COUNT ? reals[real].bytes : 0; }

/* Adds (count - 1) * stride to the extent on the side it grows; true on overflow. */
static bool extend(int64_t count, int64_t stride, int64_t *low, int64_t *high)
{
    int64_t reach;
    if (bsmi_mul_overflows(count - 1, stride, &reach)) return true;
    return reach < 0 ? bsmi_add_overflows(*low, reach, low) : bsmi_add_overflows(*high, reach, high);
}

bsm_status bsmi_reals_resolve(const char *name, const bsm_real_matrix *given, struct bsmi_reals *r)
{
    bsm_real_matrix copy;
    const bsm_status status = bsmi_read_struct(name, given, &copy, sizeof copy);
    if (status != BSM_OK) return status;
    if (bsm_real_name((int)copy.type) == NULL)
        return bsmi_fail(BSM_EINVAL, "%s->type=%d is no type of reals: use one of enum bsm_real", name, (int)copy.type);
    *r = (struct bsmi_reals){ .type = copy.type, .rows = copy.rows, .columns = copy.columns,
                              .row_stride = copy.row_stride,
                              .column_stride = copy.column_stride, .batch = copy.batch == 0 ? 1 : copy.batch,
                              .batch_stride = copy.batch_stride, .data = copy.data };
    const struct { const char *field; int64_t value; } counts[] = {
        { "rows", r->rows }, { "columns", r->columns }, { "batch", r->batch } };
    for (int i = 0; i < 3; i++)
        if (counts[i].value < 0)
            return bsmi_fail(BSM_EINVAL, "%s->%s=%lld is negative", name, counts[i].field, (long long)counts[i].value);
    const int64_t size = (int64_t)reals[copy.type].bytes;
    if ((uintptr_t)copy.data % (size_t)size != 0)
        return bsmi_fail(BSM_EALIGN, "%s->data=%p is not aligned to its elements of %d bytes", name, copy.data,
                         (int)size);
    if (r->rows == 0 || r->columns == 0) return BSM_OK;
    if (copy.data == NULL) return bsmi_fail(BSM_EINVAL, "%s->data is NULL", name);
    int64_t low = 0, high = 0;
    if (extend(r->rows, r->row_stride, &low, &high) || extend(r->columns, r->column_stride, &low, &high)
        || extend(r->batch, r->batch_stride, &low, &high) || low < -(INT64_MAX / size) || high > INT64_MAX / size - 1)
        return bsmi_fail(
            BSM_EOVERFLOW, "%s: rows=%lld columns=%lld and strides %lld, %lld reach beyond what an int64_t counts",
            name, (long long)r->rows, (long long)r->columns, (long long)r->row_stride, (long long)r->column_stride);
    return BSM_OK;
}

double bsmi_real_load(bsm_real type, const void *data, int64_t index)
{
    switch (type) {
    case BSM_REAL_FP16: return (double)bsmi_fp16_to_float(((const uint16_t *)data)[index]);
    case BSM_REAL_BF16: return (double)bsmi_bf16_to_float(((const uint16_t *)data)[index]);
    case BSM_REAL_FP64: return ((const double *)data)[index];
    default: return (double)((const float *)data)[index];
    }
}

void bsmi_real_store(bsm_real type, void *data, int64_t index, double value)
{
    switch (type) {
    case BSM_REAL_FP16:
        ((uint16_t *)data)[index] = (uint16_t)bsm_element_encode(BSM_FP16, value, BSM_ROUND_NEAREST_EVEN, false, 0);
        break;
    case BSM_REAL_BF16:
        ((uint16_t *)data)[index] = (uint16_t)bsm_element_encode(BSM_BF16, value, BSM_ROUND_NEAREST_EVEN, false, 0);
        break;
    case BSM_REAL_FP64:
        ((double *)data)[index] = isnan(value) ? bsmi_double_from_bits((uint64_t)0x7ff8 << 48) : value;
        break;
    default: ((float *)data)[index] = isnan(value) ? bsmi_float_from_bits(0x7fc00000) : (float)value; break;
    }
}

void bsmi_reals_row(const struct bsmi_reals *r, int64_t batch, int64_t row, int64_t k, int64_t count, float *values)
{
    const int64_t first = bsmi_real_index(r, batch, row, k);
    if (r->type == BSM_REAL_FP32 && r->column_stride == 1) {
        memcpy(values, (const float *)(const void *)r->data + first, (size_t)count * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)bsmi_real_load(r->type, r->data, first + i * r->column_stride);
}

void bsmi_reals_row_wide(const struct bsmi_reals *r, int64_t batch, int64_t row, int64_t k, int64_t count,
                         double *values)
{
    const int64_t first = bsmi_real_index(r, batch, row, k);
    if (r->type == BSM_REAL_FP64 && r->column_stride == 1) {
        memcpy(values, (const double *)(const void *)r->data + first, (size_t)count * sizeof(double));
        return;
    }
    if (r->type == BSM_REAL_FP32 && r->column_stride == 1) {
        const float *from = (const float *)(const void *)r->data + first;
        for (int64_t i = 0; i < count; i++) values[i] = (double)from[i];
        return;
    }
    for (int64_t i = 0; i < count; i++) values[i] = bsmi_real_load(r->type, r->data, first + i * r->column_stride);
}

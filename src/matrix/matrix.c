/* Descriptions of matrices: every rule of bsm_matrix, checked once, and the sizes that follow from it. */
#include "matrix.h"

#include "core/core.h"
#include "packing.h"

#include <stdio.h>

static struct bsmi_packing_unit packing_unit_of(const struct bsmi_matrix *m)
{
    return bsmi_packing_unit_of(m->packing, m->format, m->bits);
}

static bsm_status resolve_sparsity(const char *name, const bsm_sparse_matrix *given, struct bsmi_matrix *m)
{
    m->sparsity = given->sparsity;
    const char *pattern = bsm_sparsity_name((int)m->sparsity);
    if (pattern == NULL)
        return bsmi_fail(BSM_EINVAL, "%s->sparsity=%d is no pattern: use one of enum bsm_sparsity", name,
                         (int)m->sparsity);
    if (m->sparsity == BSM_SPARSITY_NONE) return BSM_OK;
    if (m->sparsity == BSM_SPARSITY_4_8_PAIRS && m->bits != 4)
        return bsmi_fail(BSM_EINVAL, "%s->sparsity=4:8 is for elements of 4 bits, kept in pairs; %s has %d: use 2:4",
                         name, bsm_format_get((int)m->format)->name, m->bits);
    if (m->packing == BSM_PACKING_GGUF)
        return bsmi_fail(BSM_EINVAL, "%s->sparsity=%s: packing gguf has no metadata; give other codes", name, pattern);
    if (m->major == BSM_MAJOR_MN)
        return bsmi_fail(BSM_EUNSUPPORTED, "%s->sparsity=%s with major mn: sparse matrices are K-major", name, pattern);
    m->block *= 2;
    return BSM_OK;
}

static bsm_status resolve_format(const char *name, const bsm_matrix *given, struct bsmi_matrix *m)
{
    const bsm_format_info *format = bsm_format_get((int)given->format);
    if (format == NULL)
        return bsmi_fail(BSM_EINVAL, "%s->format=%d is no format: use one of enum bsm_format", name,
                         (int)given->format);
    m->format = given->format;
    m->element = format->element;
    m->scale = format->scale;
    m->block = format->block;
    m->bits = bsm_element_get((int)format->element)->bits;
    m->major = given->major;
    if (bsm_major_name((int)m->major) == NULL)
        return bsmi_fail(BSM_EINVAL, "%s->major=%d is neither K nor MN: use one of enum bsm_major", name,
                         (int)m->major);
    m->packing = given->packing;
    if (m->packing == BSM_PACKING_DEFAULT && m->bits < 8)
        m->packing = m->bits == 4 ? BSM_PACKING_LOW_FIRST : BSM_PACKING_BIT_STREAM;
    if (bsm_packing_name((int)m->packing) == NULL)
        return bsmi_fail(BSM_EINVAL, "%s->packing=%d is no packing: use one of enum bsm_packing", name,
                         (int)m->packing);
    if (!bsmi_packing_fits(m->packing, m->format, m->bits))
        return bsmi_fail(BSM_EINVAL, "%s->packing=%s does not go with %s, whose elements have %d bits", name,
                         bsm_packing_name((int)m->packing), format->name, m->bits);
    if (m->packing == BSM_PACKING_GGUF && m->major == BSM_MAJOR_MN)
        return bsmi_fail(BSM_EINVAL, "%s->major=mn: packing gguf has blocks along K; give other codes, or major k",
                         name);
    return BSM_OK;
}

struct bsmi_matrix bsmi_matrix_stored(const struct bsmi_matrix *m)
{
    struct bsmi_matrix stored = *m;
    if (m->major == BSM_MAJOR_MN) stored.rows = m->columns, stored.columns = m->rows, stored.major = BSM_MAJOR_K;
    if (m->sparsity != BSM_SPARSITY_NONE) stored.columns = m->columns / 2, stored.sparsity = BSM_SPARSITY_NONE;
    stored.block = 0, stored.scale = BSM_UNSCALED, stored.scale_columns = 0, stored.scales = NULL;
    return stored;
}

/* A distance between rows or matrices (of what is stored), in elements: at least its columns, and a whole number of
 * bytes. */
static bsm_status check_pitch(const char *name, const char *field, int64_t pitch, const struct bsmi_matrix *m,
                              struct bsmi_packing_unit unit)
{
    const int64_t least = bsmi_matrix_stored(m).columns;
    const char *what = m->major == BSM_MAJOR_MN ? "rows" : least != m->columns ? "columns/2" : "columns";
    if (pitch < least)
        return bsmi_fail(BSM_EINVAL, "%s->%s=%lld: it counts elements and must be >= %s=%lld (or 0 for tight)", name,
                         field, (long long)pitch, what, (long long)least);
    if (pitch % unit.elements != 0)
        return bsmi_fail(BSM_EALIGN,
                         "%s->%s=%lld: with packing %s it must be a multiple of %d elements, so that a %s starts on a "
                         "%s", name,
                         field, (long long)pitch, bsm_packing_name((int)m->packing), unit.elements,
                         m->major == BSM_MAJOR_MN ? "column" : "row",
                         m->packing == BSM_PACKING_GGUF ? "block" : "byte");
    return BSM_OK;
}

static bsm_status fail_overflow(const char *name, const struct bsmi_matrix *m)
{
    return bsmi_fail(BSM_EOVERFLOW, "%s with rows=%lld columns=%lld batch=%lld has more bytes than an int64_t counts",
                     name, (long long)m->rows, (long long)m->columns, (long long)m->batch);
}

/* elements (a multiple of the unit) in bytes; true on overflow. */
static bool to_bytes(int64_t elements, struct bsmi_packing_unit unit, int64_t *bytes)
{
    return bsmi_mul_overflows(elements / unit.elements, unit.bytes, bytes);
}

/* (batch - 1) * batch_bytes + last; true on overflow. */
static bool batch_extent(int64_t batch, int64_t batch_bytes, int64_t last, int64_t *bytes)
{
    int64_t before;
    return bsmi_mul_overflows(batch - 1, batch_bytes, &before) || bsmi_add_overflows(before, last, bytes);
}

static bool is_empty(const struct bsmi_matrix *m) { return m->rows == 0 || m->columns == 0; }

int64_t bsmi_row_used_bytes(const struct bsmi_matrix *m)
{
    const struct bsmi_packing_unit unit = packing_unit_of(m);
    if (m->packing == BSM_PACKING_BIT_STREAM) return m->columns / 4 * 3 + (m->columns % 4 * 6 + 7) / 8;
    return bsmi_ceil_div(m->columns, unit.elements) * unit.bytes;
}

/* Bytes that the codes span, from the first of the first matrix to the last of the last. */
static bool data_extent(const struct bsmi_matrix *m, int64_t *bytes)
{
    const struct bsmi_matrix stored = bsmi_matrix_stored(m);
    int64_t rows_before, matrix;
    *bytes = 0;
    if (is_empty(m)) return false;
    return bsmi_mul_overflows(stored.rows - 1, m->row_bytes, &rows_before) ||
           bsmi_add_overflows(rows_before, bsmi_row_used_bytes(&stored), &matrix) ||
           batch_extent(m->batch, m->batch_bytes, matrix, bytes);
}

static bool scale_extent(const struct bsmi_matrix *m, int64_t *bytes)
{
    *bytes = 0;
    if (m->scale == BSM_UNSCALED || m->packing == BSM_PACKING_GGUF || is_empty(m)) return false;
    return batch_extent(m->batch, m->scale_batch_bytes, m->map.bytes, bytes);
}

static bool metadata_extent(const struct bsmi_matrix *m, int64_t *bytes)
{
    int64_t rows_before, matrix;
    *bytes = 0;
    if (m->sparsity == BSM_SPARSITY_NONE || is_empty(m)) return false;
    return bsmi_mul_overflows(m->rows - 1, m->metadata_row_bytes, &rows_before)
           || bsmi_add_overflows(rows_before, bsmi_metadata_row_bytes(m), &matrix)
           || batch_extent(m->batch, m->metadata_batch_bytes, matrix, bytes);
}

/* Columns, and where a sparse matrix's metadata lie. */
static bsm_status resolve_metadata(const char *name, const bsm_sparse_matrix *given, struct bsmi_matrix *m)
{
    if (m->sparsity == BSM_SPARSITY_NONE) return BSM_OK;
    const int group = bsmi_sparse_columns(m);
    if (m->columns % group != 0)
        return bsmi_fail(BSM_EINVAL, "%s->columns=%lld: with sparsity %s they are a multiple of %d", name,
                         (long long)m->columns, bsm_sparsity_name((int)m->sparsity), group);
    const int64_t tight = bsmi_metadata_row_bytes(m);
    m->metadata_row_bytes = given->metadata_pitch != 0 ? given->metadata_pitch : tight;
    if (m->metadata_row_bytes < tight)
        return bsmi_fail(BSM_EINVAL, "%s->metadata_pitch=%lld: it counts bytes and must be >= %lld (or 0 for tight)",
                         name, (long long)given->metadata_pitch, (long long)tight);
    int64_t extent;
    if (bsmi_mul_overflows(m->rows, m->metadata_row_bytes, &m->metadata_batch_bytes)) return fail_overflow(name, m);
    if (m->batch > 1 && given->metadata_batch_pitch != 0) {
        m->metadata_batch_bytes = given->metadata_batch_pitch;
        if (m->metadata_batch_bytes < tight)
            return bsmi_fail(BSM_EINVAL, "%s->metadata_batch_pitch=%lld: it counts bytes and must be >= %lld (or 0 for "
                                         "tight)",
                             name, (long long)given->metadata_batch_pitch, (long long)tight);
    }
    return metadata_extent(m, &extent) ? fail_overflow(name, m) : BSM_OK;
}

static bsm_status resolve_shape(const char *name, const bsm_matrix *given, struct bsmi_matrix *m)
{
    m->rows = given->rows;
    m->columns = given->columns;
    m->batch = given->batch == 0 ? 1 : given->batch;
    const struct { const char *field; int64_t value; } counts[] = {
        { "rows", m->rows }, { "columns", m->columns }, { "batch", m->batch } };
    for (int i = 0; i < 3; i++)
        if (counts[i].value < 0)
            return bsmi_fail(BSM_EINVAL, "%s->%s=%lld is negative", name, counts[i].field, (long long)counts[i].value);
    const struct bsmi_matrix stored = bsmi_matrix_stored(m);
    if (m->columns > INT64_MAX / 64 || stored.columns > INT64_MAX / 64) return fail_overflow(name, m);

    const struct bsmi_packing_unit unit = packing_unit_of(m);
    m->pitch = given->pitch != 0 ? given->pitch : bsmi_round_up(stored.columns, unit.elements);
    bsm_status status = check_pitch(name, "pitch", m->pitch, m, unit);
    if (status != BSM_OK) return status;
    int64_t batch_pitch;
    if (bsmi_mul_overflows(stored.rows, m->pitch, &batch_pitch)) return fail_overflow(name, m);
    if (m->batch > 1 && given->batch_pitch != 0) {
        batch_pitch = given->batch_pitch;
        status = check_pitch(name, "batch_pitch", batch_pitch, m, unit);
        if (status != BSM_OK) return status;
    }
    int64_t extent;
    if (to_bytes(m->pitch, unit, &m->row_bytes) || to_bytes(batch_pitch, unit, &m->batch_bytes)
        || data_extent(m, &extent))
        return fail_overflow(name, m);
    return BSM_OK;
}

/* GGUF keeps scales inside the blocks of the elements: packing, layout and format go together. */
static bsm_status check_gguf(const char *name, const bsm_matrix *given, const struct bsmi_matrix *m)
{
    const bsm_layout kind = given->scale_layout.kind;
    const bool layout_is_gguf = kind == BSM_LAYOUT_GGUF_MXFP4 || kind == BSM_LAYOUT_GGUF_NVFP4;
    const bool packing_is_gguf = m->packing == BSM_PACKING_GGUF;
    const bsm_layout wanted = m->format == BSM_MXFP4 ? BSM_LAYOUT_GGUF_MXFP4 : BSM_LAYOUT_GGUF_NVFP4;
    if (packing_is_gguf && kind != wanted)
        return bsmi_fail(BSM_EINVAL, "%s->scale_layout is %s: packing gguf of %s goes with layout %s", name,
                         bsm_layout_name((int)kind), bsm_format_get((int)m->format)->name,
                         bsm_layout_name((int)wanted));
    if (layout_is_gguf && !packing_is_gguf)
        return bsmi_fail(BSM_EINVAL, "%s->scale_layout is %s: that layout goes with packing gguf, not %s", name,
                         bsm_layout_name((int)kind), bsm_packing_name((int)m->packing));
    if (packing_is_gguf && given->scale_layout.pitch != 0 && given->scale_layout.pitch != m->row_bytes)
        return bsmi_fail(BSM_EINVAL, "%s->scale_layout.pitch=%lld: rows of the gguf data are %lld bytes apart", name,
                         (long long)given->scale_layout.pitch, (long long)m->row_bytes);
    return BSM_OK;
}

static bsm_status resolve_scales(const char *name, const bsm_matrix *given, struct bsmi_matrix *m)
{
    char layout_name[96];
    if (m->scale == BSM_UNSCALED) return BSM_OK;
    m->scale_columns = bsmi_ceil_div(m->columns, m->block);

    bsm_scale_layout layout = given->scale_layout;
    if (bsm_layout_name((int)layout.kind) == NULL)
        return bsmi_fail(BSM_EINVAL, "%s->scale_layout.kind=%d is no layout: use one of enum bsm_layout", name,
                         (int)layout.kind);
    bsm_status status = check_gguf(name, given, m);
    if (status != BSM_OK) return status;
    if (m->packing == BSM_PACKING_GGUF) layout.pitch = m->row_bytes;
    status = bsmi_scale_map_make("scale_layout", &layout, m->rows, m->scale_columns, &m->map);
    if (status != BSM_OK) {               /* once more, for a sentence with the matrix's name: it is formed for failures
                                             alone */
        snprintf(layout_name, sizeof layout_name, "%s->scale_layout", name);
        return bsmi_scale_map_make(layout_name, &layout, m->rows, m->scale_columns, &m->map);
    }

    m->scale_batch_bytes = m->packing == BSM_PACKING_GGUF ? m->batch_bytes : m->map.bytes;
    if (m->batch > 1 && m->packing != BSM_PACKING_GGUF && given->scale_batch_pitch != 0) {
        /* Linear scales of several matrices may interleave by rows; other layouts are whole buffers. */
        const int64_t least = layout.kind == BSM_LAYOUT_LINEAR ? m->scale_columns : m->map.bytes;
        if (given->scale_batch_pitch < least)
            return bsmi_fail(BSM_EINVAL,
                             "%s->scale_batch_pitch=%lld: it counts bytes and must be >= %lld (or 0 for tight): the "
                             "scales have the batch of their operand",
                             name, (long long)given->scale_batch_pitch, (long long)least);
        m->scale_batch_bytes = given->scale_batch_pitch;
    }
    int64_t extent;
    return scale_extent(m, &extent) ? fail_overflow(name, m) : BSM_OK;
}

static bsm_status check_pointers(const char *name, const bsm_sparse_matrix *sparse, struct bsmi_matrix *m)
{
    const bsm_matrix *given = &sparse->matrix;
    m->data = given->data;
    m->scales = m->packing == BSM_PACKING_GGUF ? given->data : given->scales;
    m->metadata = sparse->metadata;
    m->tensor_scale = given->tensor_scale;
    m->tensor_scale_use = given->tensor_scale_use;
    if (given->tensor_scale_use != BSM_TENSOR_SCALE_MULTIPLIES && given->tensor_scale_use != BSM_TENSOR_SCALE_DIVIDES)
        return bsmi_fail(BSM_EINVAL, "%s->tensor_scale_use=%d is neither MULTIPLIES nor DIVIDES", name,
                         (int)given->tensor_scale_use);
    if ((uintptr_t)m->tensor_scale % sizeof(float) != 0)
        return bsmi_fail(BSM_EALIGN, "%s->tensor_scale=%p is not aligned to 4 bytes", name, (void *)m->tensor_scale);
    if (m->scale == BSM_UNSCALED && given->scales != NULL)
        return bsmi_fail(BSM_EINVAL, "%s->scales is given, but %s has no scales", name,
                         bsm_format_get((int)m->format)->name);
    if (m->packing == BSM_PACKING_GGUF && given->scales != NULL && given->scales != given->data)
        return bsmi_fail(BSM_EINVAL, "%s->scales: with packing gguf the scales lie in the blocks, so scales must be "
                                     "data (or NULL)",
                         name);
    if (m->bits > 8 && (uintptr_t)m->data % (size_t)(m->bits / 8) != 0)
        return bsmi_fail(BSM_EALIGN, "%s->data=%p is not aligned to its elements of %d bytes", name, (void *)m->data,
                         m->bits / 8);
    if (m->sparsity == BSM_SPARSITY_NONE && m->metadata != NULL)
        return bsmi_fail(BSM_EINVAL, "%s->metadata is given, but sparsity is none", name);
    if (is_empty(m)) return BSM_OK;
    if (m->sparsity != BSM_SPARSITY_NONE && m->metadata == NULL)
        return bsmi_fail(BSM_EINVAL, "%s->metadata is NULL, but sparsity is %s", name,
                         bsm_sparsity_name((int)m->sparsity));
    if (m->data == NULL) return bsmi_fail(BSM_EINVAL, "%s->data is NULL", name);
    if (m->scale != BSM_UNSCALED && m->scales == NULL)
        return bsmi_fail(BSM_EINVAL, "%s->scales is NULL, but %s has a scale per %d elements", name,
                         bsm_format_get((int)m->format)->name, bsm_format_get((int)m->format)->block);
    return BSM_OK;
}

/* Everything but the pointers. */
static bsm_status resolve_description(const char *name, const bsm_matrix *given, bsm_sparse_matrix *copy,
                                      struct bsmi_matrix *m)
{
    memset(m, 0, sizeof *m);
    bsm_status status = bsmi_read_struct(name, given, copy, sizeof *copy);
    if (status == BSM_OK) status = resolve_format(name, &copy->matrix, m);
    if (status == BSM_OK) status = resolve_sparsity(name, copy, m);
    if (status == BSM_OK) status = resolve_shape(name, &copy->matrix, m);
    if (status == BSM_OK) status = resolve_metadata(name, copy, m);
    if (status == BSM_OK) status = resolve_scales(name, &copy->matrix, m);
    return status;
}

bsm_status bsmi_operand_resolve(const char *name, const bsm_matrix *given, struct bsmi_matrix *m)
{
    bsm_sparse_matrix copy;
    const bsm_status status = resolve_description(name, given, &copy, m);
    return status == BSM_OK ? check_pointers(name, &copy, m) : status;
}

bsm_status bsmi_operand_resolve_without_data(const char *name, const bsm_matrix *given, struct bsmi_matrix *m)
{
    static _Alignas(16) unsigned char unread[16];
    bsm_sparse_matrix copy;
    bsm_status status = resolve_description(name, given, &copy, m);
    if (status != BSM_OK) return status;
    copy.matrix.data = unread;
    if (m->scale != BSM_UNSCALED && m->packing != BSM_PACKING_GGUF) copy.matrix.scales = unread;
    status = check_pointers(name, &copy, m);
    m->data = m->scales = NULL;
    return status;
}

bsm_status bsmi_sparse_resolve(const char *name, const bsm_matrix *given, struct bsmi_matrix *m)
{
    const bsm_status status = bsmi_operand_resolve(name, given, m);
    if (status == BSM_OK && m->major == BSM_MAJOR_MN)
        return bsmi_fail(BSM_EUNSUPPORTED, "%s->major=mn: only A and B of products may be MN-major", name);
    return status;
}

bsm_status bsmi_matrix_resolve(const char *name, const bsm_matrix *given, struct bsmi_matrix *m)
{
    const bsm_status status = bsmi_sparse_resolve(name, given, m);
    if (status == BSM_OK && m->sparsity != BSM_SPARSITY_NONE)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "%s->sparsity=%s: A and B of products, what bsm_sparsify writes and what bsm_dequantize reads "
                         "may be sparse, nothing else",
                         name, bsm_sparsity_name((int)m->sparsity));
    return status;
}

struct bsmi_matrix bsmi_matrix_columns(const struct bsmi_matrix *m, int64_t first, int64_t columns)
{
    const struct bsmi_packing_unit unit = bsmi_packing_unit_of(m->packing, m->format, m->bits);
    struct bsmi_matrix part = *m;
    if (first > 0) part.data += first / unit.elements * unit.bytes;
    part.columns = columns;
    if (m->block == 0) return part;
    part.first_scale += first / m->block;
    part.scale_columns = bsmi_ceil_div(columns, m->block);
    return part;
}

bsm_status bsmi_matrix_tensor_scale(const char *name, const struct bsmi_matrix *m, float *tensor_scale)
{
    *tensor_scale = m->tensor_scale == NULL ? 1 : *m->tensor_scale;
    const uint32_t bits = bsmi_float_bits(*tensor_scale);
    if (bits == 0 || bits >= 0x7f800000)  /* zero, infinity, NaN, or negative: seen in the bits, whatever the caller's
                                             mode */
        return bsmi_fail(BSM_EINVAL, "*%s->tensor_scale=%g: a tensor scale is finite and > 0", name,
                         (double)*tensor_scale);
    return BSM_OK;
}

bsm_status bsm_matrix_check(const bsm_matrix *matrix)
{
    struct bsmi_matrix m;
    return bsmi_operand_resolve("matrix", matrix, &m);
}

bsm_status bsm_matrix_data_bytes(const bsm_matrix *matrix, int64_t *bytes)
{
    struct bsmi_matrix m;
    bsm_sparse_matrix copy;
    if (bytes == NULL) return bsmi_fail(BSM_EINVAL, "bytes is NULL");
    const bsm_status status = resolve_description("matrix", matrix, &copy, &m);
    if (status == BSM_OK) (void)data_extent(&m, bytes);
    return status;
}

bsm_status bsm_matrix_scale_bytes(const bsm_matrix *matrix, int64_t *bytes)
{
    struct bsmi_matrix m;
    bsm_sparse_matrix copy;
    if (bytes == NULL) return bsmi_fail(BSM_EINVAL, "bytes is NULL");
    const bsm_status status = resolve_description("matrix", matrix, &copy, &m);
    if (status == BSM_OK) (void)scale_extent(&m, bytes);
    return status;
}

bsm_status bsm_matrix_metadata_bytes(const bsm_matrix *matrix, int64_t *bytes)
{
    struct bsmi_matrix m;
    bsm_sparse_matrix copy;
    if (bytes == NULL) return bsmi_fail(BSM_EINVAL, "bytes is NULL");
    const bsm_status status = resolve_description("matrix", matrix, &copy, &m);
    if (status == BSM_OK) (void)metadata_extent(&m, bytes);
    return status;
}

int64_t bsm_matrix_scale_columns(const bsm_matrix *matrix)
{
    bsm_sparse_matrix copy;
    if (bsmi_read_struct("matrix", matrix, &copy, sizeof copy) != BSM_OK || copy.matrix.columns < 0) return 0;
    const bsm_format_info *format = bsm_format_get((int)copy.matrix.format);
    const int64_t stored = copy.sparsity == BSM_SPARSITY_NONE ? copy.matrix.columns : copy.matrix.columns / 2;
    return format == NULL || format->block == 0 ? 0 : bsmi_ceil_div(stored, format->block);
}

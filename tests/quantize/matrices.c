/* Sources and destinations for tests, see matrices.h. */
#include "matrices.h"

#include <stdlib.h>

struct numbers numbers_make(int64_t rows, int64_t columns, int64_t batch)
{
    struct numbers n = { rows, columns, batch, NULL };
    n.values = calloc((size_t)numbers_count(&n) + 1, sizeof(float));
    if (n.values == NULL) abort();
    return n;
}

/* Strides of a lie, and the index of element (0, 0, 0). */
static void set_strides(bsm_real_matrix *m, enum lie lie, int64_t *first, int64_t *elements)
{
    const int64_t pad = lie == LIE_TIGHT ? 0 : 3, row = m->columns + pad, column = m->rows + pad;
    m->column_stride = lie == LIE_TRANSPOSED ? column : 1;
    m->row_stride = lie == LIE_TRANSPOSED ? 1 : row;
    m->batch_stride = (lie == LIE_TRANSPOSED ? m->columns * column : m->rows * row) + pad;
    *elements = m->batch * m->batch_stride;
    *first = 0;
    if (lie == LIE_ROWS_UPWARD || lie == LIE_ALL_BACKWARD)
        *first += (m->rows - 1) * m->row_stride, m->row_stride = -m->row_stride;
    if (lie == LIE_COLUMNS_BACKWARD || lie == LIE_ALL_BACKWARD) *first += m->columns - 1, m->column_stride = -1;
    if (lie == LIE_ALL_BACKWARD) *first += (m->batch - 1) * m->batch_stride, m->batch_stride = -m->batch_stride;
}

static int64_t index_of(const bsm_real_matrix *m, int64_t batch, int64_t row, int64_t column)
{
    return batch * m->batch_stride + row * m->row_stride + column * m->column_stride;
}

/* 0xff is NaN in every type. */
struct strided strided_make(bsm_real type, enum lie lie, struct numbers *n)
{
    struct strided s = {
        .matrix = { .struct_size = sizeof s.matrix, .type = type, .rows = n->rows, .columns = n->columns,
                    .batch = n->batch }
    };
    int64_t first, elements;
    set_strides(&s.matrix, lie, &first, &elements);
    const size_t size = bsm_real_bytes((int)type);
    s.bytes = (size_t)elements * size;
    s.memory = guarded_at_end(s.bytes, size, 0xff);
    s.matrix.data = (unsigned char *)s.memory + (size_t)(numbers_count(n) > 0 ? first : 0) * size;
    for (int64_t b = 0, i = 0; b < n->batch; b++)
        for (int64_t r = 0; r < n->rows; r++)
            for (int64_t c = 0; c < n->columns; c++, i++) {
                bsmi_real_store(type, s.matrix.data, index_of(&s.matrix, b, r, c), (double)n->values[i]);
                n->values[i] = (float)strided_get(&s, b, r, c);
            }
    return s;
}

void strided_free(struct strided *s) { guarded_free(s->memory); }

double strided_get(const struct strided *s, int64_t batch, int64_t row, int64_t column)
{
    return bsmi_real_load(s->matrix.type, s->matrix.data, index_of(&s->matrix, batch, row, column));
}

bool strided_rest_is_poison(const struct strided *s)
{
    const bsm_real_matrix *m = &s->matrix;
    const size_t size = bsm_real_bytes((int)m->type);
    unsigned char *theirs = calloc(s->bytes + 1, 1);
    if (theirs == NULL) abort();
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t r = 0; r < m->rows; r++)
            for (int64_t c = 0; c < m->columns; c++)
                memset(theirs + ((unsigned char *)m->data - (unsigned char *)s->memory)
                           + index_of(m, b, r, c) * (int64_t)size,
                       1, size);
    bool poison = true;
    for (size_t i = 0; i < s->bytes; i++)
        if (!theirs[i] && ((unsigned char *)s->memory)[i] != 0xff) poison = false;
    free(theirs);
    return poison;
}

bool target_make(struct test *t, struct target *target, bsm_matrix description, float scale)
{
    *target = (struct target){ .matrix = description, .tensor_scale = scale };
    bsm_matrix *m = &target->matrix;
    m->struct_size = sizeof *m;
    if (scale != 0) m->tensor_scale = &target->tensor_scale;
    if (bsm_matrix_data_bytes(m, &target->data_bytes) != BSM_OK
        || bsm_matrix_scale_bytes(m, &target->scale_bytes) != BSM_OK) {
        FAIL(t, "%s", bsm_last_error());
        return false;
    }
    m->data = guarded_at_end((size_t)target->data_bytes,
                             (size_t)(bsm_format_get((int)m->format)->bits_per_element >= 32 ? 4 : 2), POISON);
    if (m->packing == BSM_PACKING_GGUF) m->scales = m->data;
    else if (bsm_format_get((int)m->format)->block > 0)
        m->scales = guarded_at_end((size_t)target->scale_bytes, 1, POISON);
    return true;
}

void target_free(struct target *target)
{
    if (target->matrix.scales != target->matrix.data) guarded_free(target->matrix.scales);
    guarded_free(target->matrix.data);
}

static bool all_poison(const unsigned char *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (bytes[i] != POISON) return false;
    return true;
}

bool target_is_untouched(const struct target *target)
{
    return all_poison(target->matrix.data, target->data_bytes)
           && (target->scale_bytes == 0 || all_poison(target->matrix.scales, target->scale_bytes));
}

struct coded coded_make(const bsm_matrix *m)
{
    struct coded coded = { m->rows, m->columns, m->batch == 0 ? 1 : m->batch, bsm_matrix_scale_columns(m), NULL, NULL };
    coded.codes = calloc((size_t)(coded.rows * coded.columns * coded.batch) + 1, sizeof(uint32_t));
    coded.scales = calloc((size_t)(coded.rows * coded.scale_columns * coded.batch) + 1, 1);
    if (coded.codes == NULL || coded.scales == NULL) abort();
    return coded;
}

void coded_free(struct coded *coded)
{
    free(coded->codes);
    free(coded->scales);
}

static void check_codes(struct test *t, const struct target *target, const struct coded *want)
{
    int64_t i = 0, s = 0;
    for (int64_t b = 0; b < want->batch; b++)
        for (int64_t r = 0; r < want->rows; r++) {
            for (int64_t c = 0; c < want->columns; c++, i++) {
                uint32_t code = 0xeeeeeeee;
                CHECK(t, bsm_matrix_get_code(&target->matrix, b, r, c, &code) == BSM_OK);
                if (code != want->codes[i])
                    FAIL(t, "%s batch %" PRId64 " row %" PRId64 " column %" PRId64 ": code 0x%x, want 0x%x",
                         bsm_format_get((int)target->matrix.format)->name, b, r, c, code, want->codes[i]);
            }
            for (int64_t c = 0; c < want->scale_columns; c++, s++) {
                uint8_t code = 0xee;
                CHECK(t, bsm_matrix_get_scale(&target->matrix, b, r, c, &code) == BSM_OK);
                if (code != want->scales[s])
                    FAIL(t, "%s batch %" PRId64 " row %" PRId64 " block %" PRId64 ": scale %d, want %d",
                         bsm_format_get((int)target->matrix.format)->name, b, r, c, code, want->scales[s]);
            }
        }
}

/* Bytes behind the last code of each row are left alone. */
static void check_bytes_between_rows(struct test *t, const struct target *target, const struct bsmi_matrix *m)
{
    if (m->packing == BSM_PACKING_GGUF) return;
    const int64_t used = (m->columns * (m->packing == BSM_PACKING_BYTES ? 8 : m->bits) + 7) / 8;
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t r = 0; r < m->rows; r++) {
            const int64_t start = b * m->batch_bytes + r * m->row_bytes + used;
            const int64_t next = r + 1 < m->rows ? b * m->batch_bytes + (r + 1) * m->row_bytes
                                                 : b + 1 < m->batch ? (b + 1) * m->batch_bytes : target->data_bytes;
            if (next > start) CHECK(t, all_poison((unsigned char *)target->matrix.data + start, next - start));
        }
    const int loose = (int)(m->packing == BSM_PACKING_BYTES ? 0 : m->columns * m->bits % 8);
    for (int64_t r = 0; r < m->rows && loose != 0; r++) {
        const unsigned char last = ((unsigned char *)target->matrix.data)[r * m->row_bytes + used - 1];
        CHECK(t, (m->packing == BSM_PACKING_HIGH_FIRST ? last & 15 : last >> loose) == 0);
    }
}

/* Bytes that no scale lies in: 0 where they are padding of the layout, left alone between the rows of a linear one. */
static void check_scale_padding(struct test *t, const struct target *target, const struct bsmi_matrix *m)
{
    if (m->scale == BSM_UNSCALED || m->packing == BSM_PACKING_GGUF || m->rows == 0 || m->columns == 0) return;
    unsigned char *theirs = calloc((size_t)target->scale_bytes, 1);
    if (theirs == NULL) abort();
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t r = 0; r < m->rows; r++)
            for (int64_t s = 0; s < m->scale_columns; s++) {
                int64_t offset = 0;
                CHECK(t, bsm_scale_offset(&m->map.layout, m->rows, m->scale_columns, r, s, &offset) == BSM_OK);
                theirs[b * m->scale_batch_bytes + offset] = 1;
            }
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t i = 0; i < m->map.bytes; i++) {
            const int want = m->map.layout.kind == BSM_LAYOUT_LINEAR ? POISON : 0;
            const int64_t at = b * m->scale_batch_bytes + i;
            if (!theirs[at] && ((unsigned char *)target->matrix.scales)[at] != want)
                FAIL(t, "padding byte %" PRId64 " of the scales", at);
        }
    free(theirs);
}

void check_target(struct test *t, const struct target *target, const struct coded *want)
{
    struct bsmi_matrix m;
    CHECK_OR_RETURN(t, bsmi_matrix_resolve("target", &target->matrix, &m) == BSM_OK);
    check_codes(t, target, want);
    check_bytes_between_rows(t, target, &m);
    check_scale_padding(t, target, &m);
}

bool goes_together(bsm_format format, bsm_packing packing, bsm_scale_layout layout)
{
    const bsm_matrix m = {
        .struct_size = sizeof m, .format = format, .packing = packing, .scale_layout = layout, .rows = 1, .columns = 64
    };
    int64_t bytes;
    return bsm_matrix_scale_bytes(&m, &bytes) == BSM_OK;
}

/* Single codes and scales, for inspection. */
#include "core/core.h"
#include "rows.h"
#include "sparsity.h"

static bsm_status check_index(const char *name, int64_t index, int64_t count)
{
    if (index < 0 || index >= count)
        return bsmi_fail(BSM_EINVAL, "%s=%lld is outside 0..%lld", name, (long long)index, (long long)count - 1);
    return BSM_OK;
}

/* The code's row starts at bsmi_row; a 6- or 4-bit code is rewritten within its bytes. */
static void store_one(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t column, uint8_t code)
{
    uint8_t codes[64];
    const int64_t start = column / 64 * 64, count = BSMI_MIN(m->columns - start, 64);
    bsmi_row_codes(m, batch, row, start, count, codes);
    codes[column - start] = code;
    bsmi_row_store_codes(m, batch, row, start, count, codes);
}

/* Where the code lies: in *row and *column of the codes as they are stored.  *column -1: it is left out. */
static bsm_status resolve_code(const bsm_matrix *matrix, int64_t batch, int64_t *row, int64_t *column,
                               struct bsmi_matrix *m)
{
    bsm_status status = bsmi_operand_resolve("matrix", matrix, m);
    if (status == BSM_OK) status = check_index("batch", batch, m->batch);
    if (status == BSM_OK) status = check_index("row", *row, m->rows);
    if (status == BSM_OK) status = check_index("column", *column, m->columns);
    if (status != BSM_OK) return status;
    if (m->sparsity != BSM_SPARSITY_NONE) {
        *column = bsmi_kept_column(m, batch, *row, *column);
        *m = bsmi_matrix_stored(m);
    } else if (m->major == BSM_MAJOR_MN) {
        const int64_t stored_row = *column;
        *m = bsmi_matrix_stored(m);
        *column = *row, *row = stored_row;
    }
    return BSM_OK;
}

bsm_status bsm_matrix_get_code(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t column, uint32_t *code)
{
    struct bsmi_matrix m;
    if (code == NULL) return bsmi_fail(BSM_EINVAL, "code is NULL");
    const bsm_status status = resolve_code(matrix, batch, &row, &column, &m);
    if (status != BSM_OK) return status;
    *code = 0;
    if (column < 0) return BSM_OK;
    if (m.bits <= 8) {
        uint8_t small;
        bsmi_row_codes(&m, batch, row, column, 1, &small);
        *code = small;
    } else if (m.bits == 16) {
        *code = ((const uint16_t *)(const void *)bsmi_row(&m, batch, row))[column];
    } else {
        *code = ((const uint32_t *)(const void *)bsmi_row(&m, batch, row))[column];
    }
    return BSM_OK;
}

bsm_status bsm_matrix_set_code(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t column, uint32_t code)
{
    struct bsmi_matrix m;
    const int64_t given = column;
    const bsm_status status = resolve_code(matrix, batch, &row, &column, &m);
    if (status != BSM_OK) return status;
    if (column < 0)
        return bsmi_fail(BSM_EINVAL, "column=%lld of row=%lld is left out by matrix->metadata: its code is 0",
                         (long long)given, (long long)row);
    if (m.bits < 32 && code >> m.bits != 0)
        return bsmi_fail(BSM_EINVAL, "code=0x%x has more than the %d bits of %s", (unsigned)code, m.bits,
                         bsm_element_get((int)m.element)->name);
    if (m.bits <= 8)
        store_one(&m, batch, row, column, (uint8_t)code);
    else if (m.bits == 16)
        ((uint16_t *)(void *)bsmi_row(&m, batch, row))[column] = (uint16_t)code;
    else
        ((uint32_t *)(void *)bsmi_row(&m, batch, row))[column] = code;
    return BSM_OK;
}

static bsm_status resolve_scale(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t scale_column,
                                struct bsmi_matrix *m)
{
    bsm_status status = bsmi_operand_resolve("matrix", matrix, m);
    if (status != BSM_OK) return status;
    if (m->scale == BSM_UNSCALED)
        return bsmi_fail(BSM_EINVAL, "matrix->format=%s has no scales", bsm_format_get((int)m->format)->name);
    status = check_index("batch", batch, m->batch);
    if (status == BSM_OK) status = check_index("row", row, m->rows);
    if (status == BSM_OK) status = check_index("scale_column", scale_column, m->scale_columns);
    return status;
}

bsm_status bsm_matrix_get_scale(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t scale_column,
                                uint8_t *code)
{
    struct bsmi_matrix m;
    if (code == NULL) return bsmi_fail(BSM_EINVAL, "code is NULL");
    const bsm_status status = resolve_scale(matrix, batch, row, scale_column, &m);
    if (status == BSM_OK) *code = *bsmi_scale_pointer(&m, batch, row, scale_column);
    return status;
}

bsm_status bsm_matrix_set_scale(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t scale_column,
                                uint8_t code)
{
    struct bsmi_matrix m;
    const bsm_status status = resolve_scale(matrix, batch, row, scale_column, &m);
    if (status == BSM_OK) *bsmi_scale_pointer(&m, batch, row, scale_column) = code;
    return status;
}

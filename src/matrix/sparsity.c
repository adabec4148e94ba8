/* Sparse matrices: names of patterns, and metadata. */
#include "sparsity.h"

#include "blockscale/sparsity.h"
#include "core/core.h"

#include <strings.h>

static const char *const names[BSM_SPARSITY_COUNT] = { "none", "2:4", "4:8" };

const char *bsm_sparsity_name(int sparsity)
{
    return sparsity >= 0 && sparsity < BSM_SPARSITY_COUNT ? names[sparsity] : NULL;
}

int bsm_sparsity_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_SPARSITY_COUNT; i++)
        if (strcasecmp(name, names[i]) == 0) return i;
    return -1;
}

int64_t bsmi_kept_column(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t column)
{
    const int unit = bsmi_sparse_unit(m), columns = bsmi_sparse_columns(m);
    const int64_t group = column / columns;
    const int bits = bsmi_metadata(m, batch, row, group), place = (int)(column % columns) / unit;
    for (int i = 1; i >= 0; i--)
        if ((bits >> 2 * i & 3) == place) return (group * 2 + i) * unit + column % unit;
    return -1;
}

static bsm_status check_row(const char *name, const struct bsmi_matrix *m, int64_t batch, int64_t row)
{
    const int64_t groups = m->columns / bsmi_sparse_columns(m);
    for (int64_t g = 0; g < groups; g++) {
        const int bits = bsmi_metadata(m, batch, row, g);
        if ((bits & 3) < bits >> 2) continue;
        return bsmi_fail(BSM_EINVAL,
                         "%s->metadata: group %lld of row %lld of matrix %lld is %d, the places %d and %d: they are "
                         "two different ones of 0 to 3, the lower one first (4, 8, 9, 12, 13 or 14)",
                         name, (long long)g, (long long)row, (long long)batch, bits, bits & 3, bits >> 2);
    }
    return BSM_OK;
}

bsm_status bsmi_metadata_check(const char *name, const struct bsmi_matrix *m)
{
    if (m->sparsity == BSM_SPARSITY_NONE || m->columns == 0) return BSM_OK;
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t r = 0; r < m->rows; r++) {
            const bsm_status status = check_row(name, m, b, r);
            if (status != BSM_OK) return status;
        }
    return BSM_OK;
}

bsm_status bsm_matrix_check_metadata(const bsm_matrix *matrix)
{
    struct bsmi_matrix m;
    const bsm_status status = bsmi_operand_resolve("matrix", matrix, &m);
    return status == BSM_OK ? bsmi_metadata_check("matrix", &m) : status;
}

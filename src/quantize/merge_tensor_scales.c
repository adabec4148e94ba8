/* One tensor scale for several matrices that had their own. */
#include "core/core.h"
#include "matrix/matrix.h"
#include "matrix/rows.h"

#include "blockscale/quantize.h"

#include <math.h>

/* What the merging reads and writes; computed in the default floating-point mode. */
struct merge {
    const bsm_matrix *const *parts;
    int64_t count;
    uint8_t *scales;
    float tensor_scale;
    bsm_merge_stats stats;
};

static bsm_status resolve_part(const bsm_matrix *const *parts, int64_t i, struct bsmi_matrix *m, float *tensor_scale)
{
    static const char name[] = "parts[]";
    bsm_status status = bsmi_matrix_resolve(name, parts[i], m);
    if (status != BSM_OK) return status;
    if (m->scale != BSM_UE4M3)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "parts[%lld]->format is %s: tensor scales are merged where block scales are ue4m3",
                         (long long)i, bsm_format_get((int)m->format)->name);
    if (m->batch != 1)
        return bsmi_fail(BSM_EINVAL, "parts[%lld]->batch=%lld: 1 is wanted", (long long)i, (long long)m->batch);
    return bsmi_matrix_tensor_scale(name, m, tensor_scale);
}

static bsm_status check_parts(const bsm_matrix *const *parts, int64_t count)
{
    struct bsmi_matrix first, m;
    float tensor_scale;
    for (int64_t i = 0; i < count; i++) {
        const bsm_status status = resolve_part(parts, i, i == 0 ? &first : &m, &tensor_scale);
        if (status != BSM_OK) return status;
        if (i > 0 && m.columns != first.columns)
            return bsmi_fail(BSM_EINVAL, "parts[%lld]->columns=%lld: parts[0] has %lld", (long long)i,
                             (long long)m.columns, (long long)first.columns);
        if (i > 0 && m.tensor_scale_use != first.tensor_scale_use)
            return bsmi_fail(BSM_EINVAL, "parts[%lld]->tensor_scale_use=%d: parts[0] has %d", (long long)i,
                             (int)m.tensor_scale_use, (int)first.tensor_scale_use);
    }
    return BSM_OK;
}

/* code * factor, where factor <= 1 is numerator / denominator.  A quotient of fp32 numbers times 4 bits comes no nearer
 * to the middle of two ue4m3 numbers than 2^-29 of itself unless it lies there, so the double rounds to the same code
 * as the exact value. */
static uint8_t rescale(uint8_t code, double numerator, double denominator, bsm_merge_stats *stats)
{
    const double value = (double)bsm_scale_decode(BSM_UE4M3, code) * numerator / denominator;
    stats->scales++;
    if (isnan(value)) return code;
    const uint8_t merged = (uint8_t)bsm_element_encode(BSM_E4M3, value, BSM_ROUND_NEAREST_EVEN, true, 0);
    const double got = (double)bsm_scale_decode(BSM_UE4M3, merged), error = value > 0 ? fabs(got - value) / value : 0;
    stats->rounded_scales += got < value || got > value;
    stats->flushed_scales += merged == 0 && value > 0;
    stats->worst_error = BSMI_MAX(stats->worst_error, error);
    return merged;
}

static void merge_rows(const struct bsmi_matrix *m, double numerator, double denominator, uint8_t *scales,
                       bsm_merge_stats *stats)
{
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t s = 0; s < m->scale_columns; s++)
            scales[r * m->scale_columns + s] = rescale(*bsmi_scale_pointer(m, 0, r, s), numerator, denominator, stats);
}

static void merge(void *argument, int64_t index, int worker)
{
    struct merge *all = argument;
    struct bsmi_matrix m;
    uint8_t *scales = all->scales;
    float own;
    (void)index;
    (void)worker;
    const bool divides = all->parts[0]->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES;
    for (int64_t i = 0; i < all->count; i++) {
        resolve_part(all->parts, i, &m, &own);
        if (i == 0 || (divides ? own < all->tensor_scale : own > all->tensor_scale)) all->tensor_scale = own;
    }
    for (int64_t i = 0; i < all->count; i++) {
        resolve_part(all->parts, i, &m, &own);
        merge_rows(&m, (double)(divides ? all->tensor_scale : own), (double)(divides ? own : all->tensor_scale), scales,
                   &all->stats);
        scales += m.rows * m.scale_columns;
    }
}

bsm_status bsm_tensor_scales_merge(const bsm_matrix *const *parts, int64_t count, uint8_t *scales, float *tensor_scale,
                                   bsm_merge_stats *stats)
{
    struct merge all = { parts, count, scales, 1, { .struct_size = sizeof all.stats } };
    if (parts == NULL || scales == NULL || tensor_scale == NULL)
        return bsmi_fail(BSM_EINVAL, "%s is NULL",
                         parts == NULL    ? "parts"
                         : scales == NULL ? "scales"
                                          : "tensor_scale");
    if (count < 1) return bsmi_fail(BSM_EINVAL, "count=%lld: at least one part is wanted", (long long)count);
    if (stats != NULL && (stats->struct_size < sizeof *stats || stats->struct_size > 65536))
        return bsmi_fail(BSM_EINVAL, "stats->struct_size is %zu: set it to sizeof(bsm_merge_stats), %zu",
                         stats->struct_size, sizeof *stats);
    const bsm_status status = check_parts(parts, count);
    if (status != BSM_OK) return status;
    bsmi_parallel_for(1, 1, merge, &all);
    *tensor_scale = all.tensor_scale;
    if (stats == NULL) return BSM_OK;
    all.stats.struct_size = stats->struct_size;
    memset(stats, 0, stats->struct_size);
    memcpy(stats, &all.stats, sizeof all.stats);
    return BSM_OK;
}

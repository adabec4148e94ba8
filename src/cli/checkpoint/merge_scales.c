/* Tensor scales merged, see merge_scales.h. */
#include "merge_scales.h"

#include <stdlib.h>

/* Whether a weight can be a member: its block scales are of NVFP4, and there is one tensor scale. */
static bool has_two_levels(const bsm_weight *weight)
{
    if (weight == NULL) return false;
    const bsm_matrix *m = &weight->matrix;
    return m->format == BSM_NVFP4 && m->tensor_scale != NULL && m->batch <= 1;
}

static bool has_larger_factor(const bsm_matrix *one, const bsm_matrix *other)
{
    return one->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES ? *one->tensor_scale < *other->tensor_scale
                                                             : *one->tensor_scale > *other->tensor_scale;
}

/* The members with the largest factors, by group; and whether they differ from others. */
static void find_largest(const bsm_weight *const *weights, const struct fused_weight *members, int64_t count,
                         const bsm_matrix **largest, bool *differs)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t group = members[i].group;
        if (group < 0) continue;
        const bsm_matrix *m = &weights[i]->matrix;
        if (largest[group] != NULL && *largest[group]->tensor_scale != *m->tensor_scale) differs[group] = true;
        if (largest[group] == NULL || has_larger_factor(m, largest[group])) largest[group] = m;
    }
}

/* Forgets the groups that agree: their weights are left as they are. */
static void keep_those_that_differ(struct fused *fused, const bool *differs)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < fused->count; i++)
        if (differs[i]) fused->groups[kept++] = fused->groups[i];
    fused->count = kept;
}

void merge_scales_find(const struct cli *cli, const bsm_weight *const *weights, int64_t count, const char *rules,
                       struct merge_scales *merge)
{
    struct fused_weight *members = cli_memory(cli, count + 1, sizeof *members);
    *merge = (struct merge_scales){ .largest = cli_memory(cli, count + 1, sizeof *merge->largest) };
    merge->stats.struct_size = sizeof merge->stats;
    for (int64_t i = 0; i < count; i++)
        if (has_two_levels(weights[i]))
            members[i] = (struct fused_weight){ .name = weights[i]->name,
                                                .length = weights[i]->name_length,
                                                .columns = weights[i]->matrix.columns };
    fused_find(cli, rules, members, count, &merge->fused);
    const bsm_matrix **largest = cli_memory(cli, merge->fused.count + 1, sizeof *largest);
    bool *differs = cli_memory(cli, merge->fused.count + 1, sizeof *differs);
    find_largest(weights, members, count, largest, differs);
    for (int64_t i = 0; i < count; i++)
        if (members[i].group >= 0 && differs[members[i].group])
            merge->largest[i] = largest[members[i].group], merge->weights++;
    keep_those_that_differ(&merge->fused, differs);
    free(differs);
    free(largest);
    free(members);
}

void merge_scales_free(struct merge_scales *merge)
{
    fused_free(&merge->fused);
    free(merge->largest);
    merge->largest = NULL;
}

static void add_stats(bsm_merge_stats *sum, const bsm_merge_stats *more)
{
    sum->scales += more->scales;
    sum->rounded_scales += more->rounded_scales;
    sum->flushed_scales += more->flushed_scales;
    if (more->worst_error > sum->worst_error) sum->worst_error = more->worst_error;
}

/* The group's largest member is merged without any rows, for its tensor scale: so each weight is merged by itself, and
 * no more than its own scales are in memory. */
int merge_scales_of(struct cli *cli, struct merge_scales *merge, const struct rewrite *rewrite, int64_t i,
                    uint8_t *scales, float *tensor_scale)
{
    const bsm_weight *weight = &rewrite->items[i].weight;
    bsm_matrix largest = *merge->largest[i];
    largest.rows = 0;
    const bsm_matrix *const parts[] = { &weight->matrix, &largest };
    bsm_merge_stats stats = { .struct_size = sizeof stats };
    const bsm_status status = bsm_tensor_scales_merge(parts, 2, scales, tensor_scale, &stats);
    add_stats(&merge->stats, &stats);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, rewrite_name_of(weight).text, status);
}

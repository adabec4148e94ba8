/* Statistics: adding up tasks, and handing them to the caller. */
#include "stats.h"

#include "core/core.h"

static void add(int64_t *total, int64_t count) { __atomic_fetch_add(total, count, __ATOMIC_RELAXED); }

void bsmi_stats_add(struct bsmi_stats_sum *sum, int64_t task, const struct bsmi_block_stats *counts)
{
    add(&sum->counts.elements, counts->elements);
    add(&sum->counts.blocks, counts->blocks);
    add(&sum->counts.saturated_elements, counts->saturated_elements);
    add(&sum->counts.flushed_blocks, counts->flushed_blocks);
    add(&sum->counts.nan_blocks, counts->nan_blocks);
    for (int code = 0; code < 256; code++)
        if (counts->scale_histogram[code] != 0) add(&sum->counts.scale_histogram[code], counts->scale_histogram[code]);
    sum->tasks[task].signal = counts->signal;
    sum->tasks[task].noise = counts->noise;
    sum->tasks[task].amax = counts->amax;
}

bsm_status bsmi_stats_check(const bsm_quantize_stats *stats)
{
    if (stats->struct_size < sizeof stats->struct_size || stats->struct_size > 65536)
        return bsmi_fail(BSM_EINVAL, "stats->struct_size is %zu: set it to the sizeof of the struct",
                         stats->struct_size);
    return BSM_OK;
}

void bsmi_stats_write(const struct bsmi_stats_sum *sum, int64_t tasks, bsm_quantize_stats *stats)
{
    const struct bsmi_block_stats *counts = &sum->counts;
    const size_t given = stats->struct_size;
    bsm_quantize_stats made = { .elements = counts->elements, .blocks = counts->blocks,
                                .saturated_elements = counts->saturated_elements,
                                .flushed_blocks = counts->flushed_blocks,
                                .nan_blocks = counts->nan_blocks };
    for (int64_t i = 0; i < tasks; i++) {
        made.signal += sum->tasks[i].signal;
        made.noise += sum->tasks[i].noise;
        made.amax = BSMI_MAX(made.amax, sum->tasks[i].amax);
    }
    made.snr_db = made.noise == 0 ? (double)INFINITY : 10 * log10(made.signal / made.noise);
    memcpy(made.scale_histogram, counts->scale_histogram, sizeof made.scale_histogram);

    memset(stats, 0, given);
    memcpy(stats, &made, BSMI_MIN(given, sizeof made));
    stats->struct_size = given;
}

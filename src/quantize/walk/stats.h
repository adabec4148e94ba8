/* Counting what quantizing did: per task, and for the caller. */
#ifndef BSMI_STATS_H
#define BSMI_STATS_H

#include "quantize/block/block.h"
#include "walk.h"

/* What the tasks of a walk counted.  Whole numbers are added in any order; sums of reals are kept per task and added in
 * the order of tasks, so that no bit depends on the threads. */
struct bsmi_stats_sum {
    struct bsmi_block_stats counts;
    struct { double signal, noise, amax; } tasks[BSMI_WALK_TASKS];
};

/* Called by task number `task`, once. */
void bsmi_stats_add(struct bsmi_stats_sum *sum, int64_t task, const struct bsmi_block_stats *counts);

/* Fills the caller's struct as far as it is long; fields that this version does not know become 0.  Default
 * floating-point mode. */
bsm_status bsmi_stats_check(const bsm_quantize_stats *stats);
void bsmi_stats_write(const struct bsmi_stats_sum *sum, int64_t tasks, bsm_quantize_stats *stats);

#endif

/* A call of bsm_quantize, checked: what the walks over rows, squares and both axes work from. */
#ifndef BSMI_QUANTIZE_JOB_H
#define BSMI_QUANTIZE_JOB_H

#include "matrix/reals.h"
#include "quantize/block/block.h"
#include "convert.h"
#include "quantize/walk/stats.h"
#include "quantize/walk/walk.h"

struct bsmi_quantize_job {
    struct bsmi_reals source;
    struct bsmi_matrix destination;
    bsm_quantize_options options;
    struct bsmi_block_quantizer quantizer;                /* block formats */
    struct bsmi_converter converter;                      /* unscaled formats */
    struct bsmi_walk walk;
    bsm_quantize_stats *stats;
    struct bsmi_stats_sum sum;
};

/* Checks everything but overlaps and fills source, destination and options. */
bsm_status bsmi_quantize_check(const bsm_context *context, const bsm_real_matrix *source,
                               const bsm_quantize_options *options, const bsm_matrix *destination,
                               struct bsmi_quantize_job *job);

/* The destination's tensor scale: computed (and written there), or given. */
bsm_status bsmi_quantize_tensor_scale(const bsm_context *context, struct bsmi_quantize_job *job, float *tensor_scale);

/* The quantizer of a block format or the converter of an unscaled one. */
bsm_status bsmi_quantize_prepare(struct bsmi_quantize_job *job, float tensor_scale);

/* The job as a device gets it: checks the recipe, and refuses what GPUs have not. */
struct bsmi_quantize_request;
bsm_status bsmi_quantize_request_make(struct bsmi_quantize_job *job, struct bsmi_quantize_request *request);

/* Quantizes the values x of a piece of at most BSMI_PIECE columns.  scans: of the squares that its blocks belong to;
 * NULL: blocks stand alone.  stats may be NULL. */
void bsmi_quantize_piece(const struct bsmi_quantize_job *job, const struct bsmi_piece *piece, const double *x,
                         const struct bsmi_block_scan *scans, struct bsmi_block_stats *stats);

#endif

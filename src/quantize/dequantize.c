/* bsm_dequantize: the exact value of every element, rounded once. */
#include "blockscale/quantize.h"

#include "block.h"
#include "core/core.h"
#include "matrix/regions.h"
#include "request.h"
#include "stats.h"
#include "walk.h"

struct dequantize_job {
    struct bsmi_matrix source;
    struct bsmi_reals destination;
    float tensor_scale;
    float table[256];                     /* decoded elements of at most 8 bits */
    struct bsmi_walk walk;
};

/* Every value is right before its one rounding.
 * A product of element, scale and tensor scale is exact in a double: at most 8 + 4 + 24 bits, or 24 + 24 for unscaled ones,
 * and no smaller than 2^-149 2^-149.
 * element * scale / tensor scale is at most 24 bits over 24.  Rounding it to a double first does no harm: a midpoint of the
 * destination has at most 25 bits, times the tensor scale 49; a quotient that is no midpoint differs from it by 2^-49
 * relatively, and the double is off by 2^-53.  That holds for subnormals of the destination too, whose midpoints have
 * fewer bits.  (The same through fp32 would not: fp16 and bf16 midpoints are fp32 numbers that the first rounding can hit.) */
static void dequantize_piece(const struct dequantize_job *job, const struct bsmi_piece *piece)
{
    const struct bsmi_matrix *m = &job->source;
    const struct bsmi_reals *d = &job->destination;
    const double tensor_scale = job->tensor_scale;
    const bool divides = m->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES;
    const int64_t block = m->block > 0 ? m->block : BSMI_PIECE;
    float elements[BSMI_PIECE];
    bsmi_row_elements(m, job->table, piece->batch, piece->row, piece->k, piece->count, elements);
    for (int64_t i = 0; i < piece->count; i += block) {
        const int64_t end = BSMI_MIN(i + block, piece->count);
        double scale = 1;
        if (m->block > 0)
            scale = bsm_scale_decode(m->scale, *bsmi_scale_pointer(m, piece->batch, piece->row, (piece->k + i) / block));
        for (int64_t j = i; j < end; j++)
            bsmi_real_store(d->type, d->data, bsmi_real_index(d, piece->batch, piece->row, piece->k + j),
                            bsmi_scaled_value((double)elements[j], scale, tensor_scale, divides));
    }
}

static void dequantize_task(void *argument, int64_t task, int worker)
{
    const struct dequantize_job *job = argument;
    struct bsmi_walk_place place = bsmi_walk_start(&job->walk, task);
    struct bsmi_piece piece;
    (void)worker;
    while (bsmi_walk_next(&job->walk, &place, &piece)) dequantize_piece(job, &piece);
}

static bsm_status check_overlap(const struct dequantize_job *job)
{
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    bsmi_regions_add_reals(&written, "destination->data", &job->destination);
    bsmi_regions_add_matrix(&read, "source->data", "source->scales", &job->source);
    bsmi_regions_add_bytes(&read, "source->tensor_scale", job->source.tensor_scale, (int64_t)sizeof(float));
    return bsmi_regions_check(&written, &read);
}

bsm_status bsm_dequantize(bsm_context *context, const bsm_matrix *source, const bsm_real_matrix *destination)
{
    struct dequantize_job job;
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    bsm_status status = bsmi_matrix_resolve("source", source, &job.source);
    if (status == BSM_OK) status = bsmi_reals_resolve("destination", destination, &job.destination);
    if (status == BSM_OK)
        status = bsmi_shapes_equal((struct bsmi_shape){ job.source.rows, job.source.columns, job.source.batch },
                                   (struct bsmi_shape){ job.destination.rows, job.destination.columns, job.destination.batch });
    if (status == BSM_OK) status = bsmi_reals_check_written("destination", &job.destination);
    if (status == BSM_OK) status = check_overlap(&job);
    if (status == BSM_OK && context->device != NULL) {
        const struct bsmi_dequantize_request request = { job.source, job.destination };
        return context->device->calls->dequantize(context, &request);
    }
    if (status == BSM_OK) status = bsmi_matrix_tensor_scale("source", &job.source, &job.tensor_scale);
    if (status != BSM_OK) return status;
    if (job.source.bits <= 8) bsmi_element_table(job.source.element, job.table);
    job.walk = bsmi_walk_make((struct bsmi_shape){ job.source.rows, job.source.columns, job.source.batch });
    bsmi_parallel_for(context->threads, job.walk.tasks, dequantize_task, &job);
    return BSM_OK;
}

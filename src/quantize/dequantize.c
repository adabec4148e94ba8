/* bsm_dequantize: the exact value of every element, rounded once. */
#include "blockscale/quantize.h"

#include "matrix/reals.h"
#include "matrix/rows.h"
#include "matrix/sparsity.h"
#include "matrix/written.h"
#include "quantize/block/block.h"
#include "core/core.h"
#include "core/stream.h"
#include "quantize/kernels/dequantize_table.h"
#include "matrix/regions.h"
#include "quantize/block/scale_code.h"
#include "request.h"
#include "quantize/walk/walk.h"

struct dequantize_job {
    struct bsmi_matrix source;
    struct bsmi_reals destination;
    float tensor_scale;
    float table[256];                     /* decoded elements of at most 8 bits */
    struct bsmi_walk walk;
    const struct bsmi_dequantize_kernel *kernel;
    struct bsmi_block_decoding decoding;        /* of the kernel */
    float scales[256];                    /* decoded scales, for the kernel */
};

/* Every value is right before its one rounding.
 * A product of element, scale and tensor scale is exact in a double: at most 8 + 4 + 24 bits, or 24 + 24 for unscaled
 * ones, and no smaller than 2^-149 2^-149.
 * element * scale / tensor scale is at most 24 bits over 24.  Rounding it to a double first does no harm: a midpoint of
 * the destination has at most 25 bits, times the tensor scale 49; a quotient that is no midpoint differs from it by
 * 2^-49 relatively, and the double is off by 2^-53.  That holds for subnormals of the destination too, whose midpoints
 * have fewer bits.  (The same through fp32 would not: fp16 and bf16 midpoints are fp32 numbers that the first rounding
 * can hit.) */
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
            scale =
                bsm_scale_decode(m->scale, *bsmi_scale_pointer(m, piece->batch, piece->row, (piece->k + i) / block));
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

/* The codes of a piece as the kernel takes them, filled up with zeros. */
static void copy_codes(const struct dequantize_job *job, const struct bsmi_piece *piece, uint8_t *codes)
{
    const struct bsmi_matrix *m = &job->source;
    memset(codes, 0, BSMI_PIECE);
    if (job->decoding.packing == BSM_PACKING_BYTES)
        bsmi_row_codes(m, piece->batch, piece->row, piece->k, piece->count, codes);
    else memcpy(codes, bsmi_row(m, piece->batch, piece->row) + piece->k / 2, (size_t)(piece->count + 1) / 2);
}

/* Through a kernel: rows one after the other.  What is no multiple of 16 goes through a copy. */
static void dequantize_rows_piece(const struct dequantize_job *job, const struct bsmi_piece *piece)
{
    const struct bsmi_matrix *m = &job->source;
    const struct bsmi_reals *d = &job->destination;
    const int64_t blocks = bsmi_ceil_div(piece->count, m->block), whole = bsmi_round_up(piece->count, 16);
    const int64_t bytes = (int64_t)bsm_real_bytes((int)d->type);
    uint8_t codes[BSMI_PIECE], scale_codes[BSMI_PIECE / 16];
    const uint8_t *from = codes;
    float scales[BSMI_PIECE / 16], copy[BSMI_PIECE];
    const bool own = whole == piece->count && (m->bits == 8 || job->decoding.packing != BSM_PACKING_BYTES);
    if (own) from = bsmi_row(m, piece->batch, piece->row) + piece->k * m->bits / 8;
    else copy_codes(job, piece, codes);
    bsmi_row_scales(m, piece->batch, piece->row, piece->k / m->block, blocks, scale_codes);
    for (int64_t s = 0; s < blocks; s++) scales[s] = job->scales[scale_codes[s]];
    unsigned char *to = d->data + bsmi_real_index(d, piece->batch, piece->row, piece->k) * bytes;
    job->kernel->dequantize(&job->decoding, from, scales, whole, whole == piece->count ? (void *)to : copy);
    if (whole != piece->count) memcpy(to, copy, (size_t)(piece->count * bytes));
}

static void dequantize_rows_task(void *argument, int64_t task, int worker)
{
    const struct dequantize_job *job = argument;
    const struct bsmi_walk_place place = bsmi_walk_start(&job->walk, task);
    (void)worker;
    for (int64_t unit = place.unit; unit < place.end_unit; unit++) {
        const struct bsmi_walk_area area = bsmi_walk_area(&job->walk, unit);
        for (int64_t row = area.row; row < area.row + area.rows; row++)
            for (int64_t k = 0; k < area.columns; k += BSMI_PIECE) {
                const struct bsmi_piece piece = { area.batch, row, area.k + k, BSMI_MIN(BSMI_PIECE, area.columns - k) };
                dequantize_rows_piece(job, &piece);
            }
    }
    if (job->decoding.streamed) bsmi_end_stream();
}

static bsm_status check_overlap(const struct dequantize_job *job)
{
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    bsmi_regions_add_reals(&written, "destination->data", &job->destination);
    bsmi_regions_add_matrix(&read, "source->data", "source->scales", &job->source);
    bsmi_regions_add_metadata(&read, "source->metadata", &job->source);
    bsmi_regions_add_bytes(&read, "source->tensor_scale", job->source.tensor_scale, (int64_t)sizeof(float));
    return bsmi_regions_check(&written, &read);
}

bsm_status bsm_dequantize(bsm_context *context, const bsm_matrix *source, const bsm_real_matrix *destination)
{
    struct dequantize_job job;
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    bsm_status status = bsmi_sparse_resolve("source", source, &job.source);
    const bool sparse = status == BSM_OK && job.source.sparsity != BSM_SPARSITY_NONE;
    if (sparse && context->device != NULL)
        return bsmi_fail(BSM_EUNSUPPORTED, "source->sparsity=%s: sparse matrices are dequantized by CPU contexts",
                         bsm_sparsity_name((int)job.source.sparsity));
    if (status == BSM_OK) status = bsmi_reals_resolve("destination", destination, &job.destination);
    if (status == BSM_OK)
        status = bsmi_shapes_equal(
            (struct bsmi_shape){ job.source.rows, job.source.columns, job.source.batch },
            (struct bsmi_shape){ job.destination.rows, job.destination.columns, job.destination.batch });
    if (status == BSM_OK) status = bsmi_reals_check_written("destination", &job.destination);
    if (status == BSM_OK) status = check_overlap(&job);
    if (status == BSM_OK && context->device != NULL) {
        const struct bsmi_dequantize_request request = { job.source, job.destination };
        return context->device->calls->dequantize(context, &request);
    }
    if (status == BSM_OK) status = bsmi_matrix_tensor_scale("source", &job.source, &job.tensor_scale);
    if (status == BSM_OK) status = bsmi_metadata_check("source", &job.source);
    if (status != BSM_OK) return status;
    if (job.source.bits <= 8) bsmi_element_table(job.source.element, job.table);
    job.walk = bsmi_walk_make((struct bsmi_shape){ job.source.rows, job.source.columns, job.source.batch });
    job.kernel = bsmi_dequantize_kernel_choose(context->cpu_features, &job.source, job.tensor_scale, &job.destination,
                                               &job.decoding);
    for (int code = 0; code < 256; code++) job.scales[code] = bsm_scale_decode(job.source.scale, (uint8_t)code);
    bsmi_parallel_for(context->threads, job.walk.tasks,
                      !sparse && job.kernel->dequantize != NULL ? dequantize_rows_task : dequantize_task, &job);
    return BSM_OK;
}

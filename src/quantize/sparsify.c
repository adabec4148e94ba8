/* bsm_sparsify: which numbers of a group are kept; these are quantized as a matrix of their own. */
#include "blockscale/sparsity.h"

#include "core/core.h"
#include "matrix/regions.h"
#include "matrix/sparsity.h"
#include "matrix/written.h"
#include "walk/walk.h"

#include <math.h>

enum { TASKS = 64, MOST_COLUMNS = 8 };

struct sparsify_job {
    struct bsmi_reals source, kept;
    struct bsmi_matrix destination;       /* its metadata are scratch until all else is written */
    bsm_sparsify_stats counts[TASKS];
};

/* What a unit, an element or a pair, is ordered by. */
static double rank(const double *x, int unit)
{
    const double value = unit == 1 ? fabs(x[0]) : x[0] * x[0] + x[1] * x[1];
    return isnan(value) ? (double)INFINITY : value;
}

/* The metadata of a group: the two units of the highest rank, the lower columns first among equals. */
static int choose(const double *x, int unit)
{
    double ranks[4];
    int best = 0, second = -1;
    for (int i = 0; i < 4; i++) ranks[i] = rank(x + i * unit, unit);
    for (int i = 1; i < 4; i++)
        if (ranks[i] > ranks[best]) best = i;
    for (int i = 0; i < 4; i++)
        if (i != best && (second < 0 || ranks[i] > ranks[second])) second = i;
    return best < second ? best | second << 2 : second | best << 2;
}

static void count_group(const double *x, int columns, int unit, int metadata, bsm_sparsify_stats *counts)
{
    const int64_t before = counts->cut_elements;
    for (int i = 0; i < columns; i++) {
        const int place = i / unit;
        const bool kept = place == (metadata & 3) || place == metadata >> 2;
        const double square = isfinite(x[i]) ? x[i] * x[i] : 0;
        counts->signal += square;
        if (kept) counts->kept += square;
        else counts->cut_elements += x[i] != 0;
    }
    counts->groups++;
    counts->cut_groups += counts->cut_elements != before;
}

static void sparsify_row(struct sparsify_job *job, int64_t batch, int64_t row, bsm_sparsify_stats *counts)
{
    const struct bsmi_matrix *m = &job->destination;
    const int unit = bsmi_sparse_unit(m), columns = bsmi_sparse_columns(m);
    unsigned char *metadata = m->metadata + batch * m->metadata_batch_bytes + row * m->metadata_row_bytes;
    memset(metadata, 0, (size_t)bsmi_metadata_row_bytes(m));
    for (int64_t group = 0; group < m->columns / columns; group++) {
        double x[MOST_COLUMNS];
        bsmi_reals_row_wide(&job->source, batch, row, group * columns, columns, x);
        const int bits = choose(x, unit);
        metadata[group / 2] |= (unsigned char)(bits << 4 * (group % 2));
        for (int i = 0; i < 2 * unit; i++)
            bsmi_real_store(job->kept.type, job->kept.data,
                            bsmi_real_index(&job->kept, batch, row, group * 2 * unit + i),
                            x[(bits >> 2 * (i / unit) & 3) * unit + i % unit]);
        count_group(x, columns, unit, bits, counts);
    }
}

/* Rows dealt out by their number alone, so that no bit of the sums depends on the threads. */
static void sparsify_task(void *argument, int64_t task, int worker)
{
    struct sparsify_job *job = argument;
    const int64_t rows = job->source.batch * job->source.rows;
    (void)worker;
    for (int64_t r = task; r < rows; r += TASKS)
        sparsify_row(job, r / job->source.rows, r % job->source.rows, &job->counts[task]);
}

static void copy_metadata(const struct sparsify_job *job, unsigned char *to, int64_t row_bytes, int64_t batch_bytes)
{
    const struct bsmi_matrix *m = &job->destination;
    for (int64_t r = 0; r < m->batch * m->rows; r++) {
        const int64_t batch = r / m->rows, row = r % m->rows;
        memcpy(to + batch * batch_bytes + row * row_bytes,
               m->metadata + batch * m->metadata_batch_bytes + row * m->metadata_row_bytes,
               (size_t)bsmi_metadata_row_bytes(m));
    }
}

static void write_stats(const struct sparsify_job *job, bsm_sparsify_stats *stats)
{
    bsm_sparsify_stats made = { .struct_size = stats->struct_size };
    for (int i = 0; i < TASKS; i++) {
        made.groups += job->counts[i].groups;
        made.cut_groups += job->counts[i].cut_groups;
        made.cut_elements += job->counts[i].cut_elements;
        made.signal += job->counts[i].signal;
        made.kept += job->counts[i].kept;
    }
    memset(stats, 0, made.struct_size);
    memcpy(stats, &made, BSMI_MIN(made.struct_size, sizeof made));
}

/* What is checked -------------------------------------------------------------------------------------------------- */

static bsm_status check_overlap(const struct sparsify_job *job, const bsm_sparsify_stats *stats,
                                const bsm_quantize_stats *quantized)
{
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    bsmi_regions_add_matrix(&written, "destination->data", "destination->scales", &job->destination);
    bsmi_regions_add_metadata(&written, "destination->metadata", &job->destination);
    bsmi_regions_add_bytes(&written, "destination->tensor_scale", job->destination.tensor_scale,
                           (int64_t)sizeof(float));
    bsmi_regions_add_bytes(&written, "stats", stats, (int64_t)sizeof *stats);
    bsmi_regions_add_bytes(&written, "quantized", quantized, (int64_t)sizeof *quantized);
    bsmi_regions_add_reals(&read, "source->data", &job->source);
    return bsmi_regions_check(&written, &read);
}

static bsm_status check(bsm_context *context, const bsm_real_matrix *source, const bsm_quantize_options *options,
                        const bsm_matrix *destination, struct sparsify_job *job)
{
    bsm_quantize_options read = { .struct_size = 0 };
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (context->device != NULL)
        return bsmi_fail(BSM_EUNSUPPORTED, "bsm_sparsify runs on CPU contexts; this one is %s",
                         bsm_backend_name((int)bsm_context_backend(context)));
    bsm_status status = bsmi_reals_resolve("source", source, &job->source);
    if (status == BSM_OK) status = bsmi_sparse_resolve("destination", destination, &job->destination);
    if (status == BSM_OK && options != NULL) status = bsmi_read_struct("options", options, &read, sizeof read);
    if (status != BSM_OK) return status;
    const struct bsmi_matrix *m = &job->destination;
    if (m->sparsity == BSM_SPARSITY_NONE)
        return bsmi_fail(BSM_EINVAL, "destination->sparsity is none: give 2:4 or 4:8, or call bsm_quantize");
    if (read.block_rows > 1)
        return bsmi_fail(BSM_EUNSUPPORTED, "options->block_rows=%lld: rows of a sparse matrix keep different columns",
                         (long long)read.block_rows);
    status = bsmi_shapes_equal((struct bsmi_shape){ job->source.rows, job->source.columns, job->source.batch },
                               (struct bsmi_shape){ m->rows, m->columns, m->batch });
    return status == BSM_OK ? bsmi_matrix_check_written("destination", m) : status;
}

/* The work --------------------------------------------------------------------------------------------------------- */

/* The kept numbers, tight, at `memory`, and behind them the metadata. */
static size_t lay_out(struct sparsify_job *job, unsigned char *memory)
{
    struct bsmi_matrix *m = &job->destination;
    const int64_t columns = m->columns / 2, size = (int64_t)bsm_real_bytes((int)job->source.type),
                  rows = m->batch * m->rows;              /* no more bytes than the source has */
    job->kept = (struct bsmi_reals){ job->source.type, m->rows, columns, columns, 1, m->batch, m->rows * columns,
                                     memory };
    m->metadata = (unsigned char *)((uintptr_t)memory + (uintptr_t)(rows * columns * size));
    m->metadata_row_bytes = bsmi_metadata_row_bytes(m), m->metadata_batch_bytes = m->rows * m->metadata_row_bytes;
    return (size_t)(rows * (columns * size + m->metadata_row_bytes));
}

static bsm_status quantize_kept(bsm_context *context, const struct sparsify_job *job,
                                const bsm_quantize_options *options, const bsm_matrix *destination,
                                bsm_quantize_stats *quantized)
{
    const struct bsmi_reals *k = &job->kept;
    const bsm_real_matrix kept = { .struct_size = sizeof kept, .type = k->type, .rows = k->rows, .columns = k->columns,
                                   .data = k->data, .row_stride = k->row_stride, .column_stride = 1,
                                   .batch = k->batch, .batch_stride = k->batch_stride };
    bsm_matrix stored = *destination;     /* whole: the caller has fields behind it */
    stored.struct_size = sizeof stored, stored.columns = k->columns;
    return bsm_quantize(context, &kept, options, &stored, quantized);
}

static bsm_status sparsify(bsm_context *context, struct sparsify_job *job, const bsm_quantize_options *options,
                           const bsm_matrix *destination, bsm_sparsify_stats *stats, bsm_quantize_stats *quantized)
{
    const struct bsmi_matrix given = job->destination;
    const size_t bytes = lay_out(job, NULL);
    unsigned char *memory = bytes > 0 ? bsmi_allocate(context, bytes) : NULL;
    if (bytes > 0 && memory == NULL)
        return bsmi_fail(BSM_ENOMEM, "no memory for the kept numbers and their metadata (%zu bytes)", bytes);
    job->destination = given;
    (void)lay_out(job, memory);
    if (bytes > 0) bsmi_parallel_for(context->threads, TASKS, sparsify_task, job);
    const bsm_status status = quantize_kept(context, job, options, destination, quantized);
    if (status == BSM_OK && bytes > 0)
        copy_metadata(job, given.metadata, given.metadata_row_bytes, given.metadata_batch_bytes);
    if (status == BSM_OK && stats != NULL) write_stats(job, stats);
    bsmi_release(context, memory, bytes);
    return status;
}

bsm_status bsm_sparsify(bsm_context *context, const bsm_real_matrix *source, const bsm_quantize_options *options,
                        const bsm_matrix *destination, bsm_sparsify_stats *stats, bsm_quantize_stats *quantized)
{
    struct sparsify_job job = { .counts = { { 0 } } };
    bsm_status status = check(context, source, options, destination, &job);
    if (status == BSM_OK && stats != NULL
        && (stats->struct_size < sizeof stats->struct_size || stats->struct_size > 65536))
        status = bsmi_fail(BSM_EINVAL, "stats->struct_size is %zu: set it to the sizeof of the struct",
                           stats->struct_size);
    if (status == BSM_OK) status = check_overlap(&job, stats, quantized);
    return status == BSM_OK ? sparsify(context, &job, options, destination, stats, quantized) : status;
}

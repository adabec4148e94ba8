/* Hadamard rotation of the blocks of a row. */
#include "blockscale/quantize.h"

#include "core/core.h"
#include "matrix/reals.h"
#include "matrix/regions.h"
#include "matrix/written.h"
#include "quantize/walk/walk.h"

#include <math.h>

enum { SMALLEST = 16, LARGEST = 128 };

struct hadamard_job {
    struct bsmi_reals source, destination;
    int size;
    double signs[LARGEST];
    bool inverse;
    struct bsmi_walk walk;
};

/* H x in place: butterflies of neighbours, then of pairs of neighbours, and so on. */
static void transform(double *x, int size)
{
    for (int half = 1; half < size; half *= 2)
        for (int start = 0; start < size; start += 2 * half)
            for (int i = start; i < start + half; i++) {
                const double a = x[i], b = x[i + half];
                x[i] = a + b;
                x[i + half] = a - b;
            }
}

static void rotate_run(const struct hadamard_job *job, int64_t batch, int64_t row, int64_t k)
{
    const struct bsmi_reals *from = &job->source, *to = &job->destination;
    const double factor = 1 / sqrt((double)job->size);
    double x[LARGEST];
    for (int i = 0; i < job->size; i++) {
        const double value = bsmi_real_load(from->type, from->data, bsmi_real_index(from, batch, row, k + i));
        x[i] = job->inverse ? value : value * job->signs[i];
    }
    transform(x, job->size);
    for (int i = 0; i < job->size; i++) {
        const double value = x[i] * factor;
        bsmi_real_store(to->type, to->data, bsmi_real_index(to, batch, row, k + i),
                        job->inverse ? value * job->signs[i] : value);
    }
}

/* Pieces hold whole blocks: 256 columns, or what is left of a row. */
static void rotate_task(void *argument, int64_t task, int worker)
{
    const struct hadamard_job *job = argument;
    struct bsmi_walk_place place = bsmi_walk_start(&job->walk, task);
    struct bsmi_piece piece;
    (void)worker;
    while (bsmi_walk_next(&job->walk, &place, &piece))
        for (int64_t i = 0; i < piece.count; i += job->size) rotate_run(job, piece.batch, piece.row, piece.k + i);
}
_Static_assert(BSMI_PIECE % LARGEST == 0, "a block lies in one piece");

static bsm_status read_signs(const int8_t *signs, struct hadamard_job *job)
{
    for (int i = 0; i < job->size; i++) {
        if (signs != NULL && signs[i] != 1 && signs[i] != -1)
            return bsmi_fail(BSM_EINVAL, "signs[%d]=%d: a sign is 1 or -1", i, signs[i]);
        job->signs[i] = signs == NULL ? 1 : (double)signs[i];
    }
    return BSM_OK;
}

/* A block is read whole before it is written, so a matrix may be rotated in place. */
static bool is_in_place(const struct bsmi_reals *a, const struct bsmi_reals *b)
{
    return a->data == b->data && a->type == b->type && a->row_stride == b->row_stride
           && a->column_stride == b->column_stride && a->batch_stride == b->batch_stride;
}

static bsm_status check_overlap(const struct hadamard_job *job)
{
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    bsmi_regions_add_reals(&written, "destination->data", &job->destination);
    if (!is_in_place(&job->source, &job->destination)) bsmi_regions_add_reals(&read, "source->data", &job->source);
    return bsmi_regions_check(&written, &read);
}

bsm_status bsm_hadamard(bsm_context *context, const bsm_real_matrix *source, int size, const int8_t *signs,
                        bool inverse, const bsm_real_matrix *destination)
{
    struct hadamard_job job = { .size = size, .inverse = inverse };
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (context->device != NULL)
        return bsmi_fail(BSM_EUNSUPPORTED, "bsm_hadamard runs on CPU contexts; this one is %s",
                         bsm_backend_name((int)bsm_context_backend(context)));
    if (size < SMALLEST || size > LARGEST || (size & (size - 1)) != 0)
        return bsmi_fail(BSM_EINVAL, "size=%d: 16, 32, 64 or 128 is wanted", size);
    bsm_status status = read_signs(signs, &job);
    if (status == BSM_OK) status = bsmi_reals_resolve("source", source, &job.source);
    if (status == BSM_OK) status = bsmi_reals_resolve("destination", destination, &job.destination);
    const struct bsmi_shape shape = { job.source.rows, job.source.columns, job.source.batch };
    if (status == BSM_OK)
        status = bsmi_shapes_equal(
            shape, (struct bsmi_shape){ job.destination.rows, job.destination.columns, job.destination.batch });
    if (status == BSM_OK && shape.columns % size != 0)
        return bsmi_fail(BSM_EINVAL, "source->columns=%lld: blocks of size=%d must fill them", (long long)shape.columns,
                         size);
    if (status == BSM_OK) status = bsmi_reals_check_written("destination", &job.destination);
    if (status == BSM_OK) status = check_overlap(&job);
    if (status != BSM_OK) return status;
    job.walk = bsmi_walk_make(shape);
    bsmi_parallel_for(context->threads, job.walk.tasks, rotate_task, &job);
    return BSM_OK;
}

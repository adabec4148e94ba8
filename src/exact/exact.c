/* bsm_matmul_exact: tiles of accumulators over decoded pieces of rows. */
#include "blockscale/matmul.h"

#include "accumulator.h"
#include "core/core.h"
#include "matrix/reals.h"
#include "matrix/regions.h"
#include "matrix/sparsity.h"
#include "matrix/written.h"
#include "pair.h"

enum {
    TILE = BSMI_EXACT_TILE,
    CHUNK = BSMI_EXACT_CHUNK,
    CHUNKS_BETWEEN_SETTLES = BSMI_TERMS_BETWEEN_SETTLES / BSMI_EXACT_CHUNK
};

/* What a sum with a non-finite operand has met. */
enum { MET_NAN = 1, MET_PLUS_INFINITY = 2, MET_MINUS_INFINITY = 4 };

/* The scratch of one worker; the accumulators of its tile follow it. */
struct scratch {
    struct bsmi_exact_rows a, b;
    uint8_t met[TILE][TILE];
    _Alignas(BSMI_ALIGNMENT) int64_t limbs[];
};

struct job {
    const struct bsmi_exact_pair *pair;
    const struct bsmi_reals *result;
    int64_t depth;                        /* K */
    int64_t tile_columns;
    unsigned char *scratch;
    size_t scratch_bytes;                 /* of one worker */
};

struct tile { int64_t row, column; int rows, columns; };

static struct tile tile_at(const struct job *job, int64_t index)
{
    struct tile tile = { index / job->tile_columns * TILE, index % job->tile_columns * TILE, 0, 0 };
    tile.rows = (int)BSMI_MIN(job->result->rows - tile.row, TILE);
    tile.columns = (int)BSMI_MIN(job->result->columns - tile.column, TILE);
    return tile;
}

static int64_t *limbs_of(const struct job *job, struct scratch *scratch, int i, int j)
{
    return scratch->limbs + (i * TILE + j) * job->pair->limbs;
}

/* NaN times anything and infinity times zero are NaN; another infinity has the sign of the product. */
static uint8_t meet(const uint8_t *a, const uint8_t *b, int count)
{
    uint8_t met = 0;
    for (int k = 0; k < count; k++) {
        const int either = a[k] | b[k];
        if ((either & BSMI_NAN) != 0) met |= MET_NAN;
        else if ((either & BSMI_INFINITE) == 0) continue;
        else if ((either & BSMI_ZERO) != 0) met |= MET_NAN;
        else met |= ((a[k] ^ b[k]) & BSMI_NEGATIVE) != 0 ? MET_MINUS_INFINITY : MET_PLUS_INFINITY;
    }
    return met;
}

static void add_chunk(const struct job *job, struct scratch *scratch, const struct tile *tile, int count)
{
    const struct bsmi_exact_rows *a = &scratch->a, *b = &scratch->b;
    for (int i = 0; i < tile->rows; i++)
        for (int j = 0; j < tile->columns; j++) {
            if ((a->row_class[i] | b->row_class[j]) == 0)
                bsmi_exact_add(job->pair, a, i, b, j, count, limbs_of(job, scratch, i, j));
            else
                scratch->met[i][j] |= meet(a->classes[i], b->classes[j], count);
        }
}

static void settle_tile(const struct job *job, struct scratch *scratch, const struct tile *tile)
{
    for (int i = 0; i < tile->rows; i++)
        for (int j = 0; j < tile->columns; j++) bsmi_limbs_settle(limbs_of(job, scratch, i, j), job->pair->limbs);
}

static uint64_t result_bits(const struct job *job, struct scratch *scratch, int i, int j)
{
    const bsm_real type = job->result->type;
    switch (scratch->met[i][j]) {
    case 0: return bsmi_limbs_round(limbs_of(job, scratch, i, j), job->pair->limbs, job->pair->lowest, type);
    case MET_PLUS_INFINITY: return bsmi_real_infinity_bits(type, false);
    case MET_MINUS_INFINITY: return bsmi_real_infinity_bits(type, true);
    default: return bsmi_real_nan_bits(type);
    }
}

static void store_bits(const struct bsmi_reals *result, int64_t row, int64_t column, uint64_t bits)
{
    const int64_t index = bsmi_real_index(result, 0, row, column);
    switch (bsm_real_bytes((int)result->type)) {
    case 2: ((uint16_t *)(void *)result->data)[index] = (uint16_t)bits; break;
    case 4: ((uint32_t *)(void *)result->data)[index] = (uint32_t)bits; break;
    default: ((uint64_t *)(void *)result->data)[index] = bits; break;
    }
}

static void run_tile(void *argument, int64_t index, int worker)
{
    const struct job *job = argument;
    const struct bsmi_exact_pair *pair = job->pair;
    struct scratch *scratch = (struct scratch *)(void *)(job->scratch + (size_t)worker * job->scratch_bytes);
    const struct tile tile = tile_at(job, index);
    memset(scratch->met, 0, sizeof scratch->met);
    memset(scratch->limbs, 0, sizeof(int64_t) * TILE * (size_t)(tile.rows * pair->limbs));

    int chunks = 0;
    for (int64_t k = 0; k < job->depth; k += CHUNK) {
        const int count = (int)BSMI_MIN(job->depth - k, CHUNK);
        for (int i = 0; i < tile.rows; i++)
            bsmi_exact_decode(&pair->a, tile.row + i, k, count, pair->exact_block, &scratch->a, i);
        for (int j = 0; j < tile.columns; j++)
            bsmi_exact_decode(&pair->b, tile.column + j, k, count, pair->exact_block, &scratch->b, j);
        add_chunk(job, scratch, &tile, count);
        if (++chunks % CHUNKS_BETWEEN_SETTLES == 0) settle_tile(job, scratch, &tile);
    }
    for (int i = 0; i < tile.rows; i++)
        for (int j = 0; j < tile.columns; j++)
            store_bits(job->result, tile.row + i, tile.column + j, result_bits(job, scratch, i, j));
}

/* What is checked -------------------------------------------------------------------------------------------------- */

static bsm_status resolve_operand(const char *name, const bsm_matrix *given, struct bsmi_matrix *matrix)
{
    const bsm_status status = bsmi_operand_resolve(name, given, matrix);
    if (status != BSM_OK) return status;
    if (matrix->batch == 1) return bsmi_metadata_check(name, matrix);
    return bsmi_fail(BSM_EINVAL, "%s->batch=%lld: the exact product takes one matrix at a time", name,
                     (long long)matrix->batch);
}

static bsm_status resolve_result(const char *name, const bsm_real_matrix *given, int64_t rows, int64_t columns,
                                 struct bsmi_reals *result)
{
    const bsm_status status = bsmi_reals_resolve(name, given, result);
    if (status != BSM_OK) return status;
    if (result->batch != 1)
        return bsmi_fail(BSM_EINVAL, "%s->batch=%lld: the exact product takes one matrix at a time", name,
                         (long long)result->batch);
    if (result->rows != rows || result->columns != columns)
        return bsmi_fail(BSM_EINVAL, "%s is %lld x %lld: it must be M x N, the rows of a and of b, here %lld x %lld",
                         name, (long long)result->rows, (long long)result->columns, (long long)rows,
                         (long long)columns);
    return bsmi_reals_check_written(name, result);
}

struct request {
    struct bsmi_matrix a, b;
    struct bsmi_reals sum, magnitude;
    bool wants_magnitude;
};

static bsm_status check_overlap(const struct request *request)
{
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    bsmi_regions_add_reals(&written, "sum->data", &request->sum);
    if (request->wants_magnitude) bsmi_regions_add_reals(&written, "magnitude->data", &request->magnitude);
    bsmi_regions_add_matrix(&read, "a->data", "a->scales", &request->a);
    bsmi_regions_add_matrix(&read, "b->data", "b->scales", &request->b);
    bsmi_regions_add_metadata(&read, "a->metadata", &request->a);
    bsmi_regions_add_metadata(&read, "b->metadata", &request->b);
    return bsmi_regions_check(&written, &read);
}

static bsm_status resolve(bsm_context *context, const bsm_matrix *a, const bsm_matrix *b, const bsm_real_matrix *sum,
                          const bsm_real_matrix *magnitude, struct request *request)
{
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    request->wants_magnitude = magnitude != NULL;
    bsm_status status = resolve_operand("a", a, &request->a);
    if (status == BSM_OK) status = resolve_operand("b", b, &request->b);
    if (status != BSM_OK) return status;
    if (request->a.columns != request->b.columns)
        return bsmi_fail(BSM_EINVAL, "a->columns=%lld and b->columns=%lld: both are K", (long long)request->a.columns,
                         (long long)request->b.columns);
    status = resolve_result("sum", sum, request->a.rows, request->b.rows, &request->sum);
    if (status == BSM_OK && request->wants_magnitude)
        status = resolve_result("magnitude", magnitude, request->a.rows, request->b.rows, &request->magnitude);
    return status == BSM_OK ? check_overlap(request) : status;
}

static void run(const struct request *request, bool magnitude, struct bsmi_exact_pair *pair, struct job *job,
                int workers)
{
    bsmi_exact_pair_make(&request->a, &request->b, magnitude, pair);
    job->result = magnitude ? &request->magnitude : &request->sum;
    bsmi_parallel_for(workers, bsmi_ceil_div(job->result->rows, TILE) * job->tile_columns, run_tile, job);
}

bsm_status bsm_matmul_exact(bsm_context *context, const bsm_matrix *a, const bsm_matrix *b, const bsm_real_matrix *sum,
                            const bsm_real_matrix *magnitude)
{
    struct request request;
    if (context != NULL && context->device != NULL)
        return bsmi_fail(BSM_EUNSUPPORTED,
                         "bsm_matmul_exact runs on the CPU: give it a context of the CPU and host memory");
    const bsm_status status = resolve(context, a, b, sum, magnitude, &request);
    if (status != BSM_OK || request.sum.rows == 0 || request.sum.columns == 0) return status;

    struct bsmi_exact_pair pair;
    bsmi_exact_pair_make(&request.a, &request.b, false, &pair);
    struct job job = { .pair = &pair, .depth = request.a.columns, .tile_columns = bsmi_ceil_div(request.b.rows, TILE) };
    int64_t tiles = 0;
    if (bsmi_mul_overflows(bsmi_ceil_div(request.a.rows, TILE), job.tile_columns, &tiles))
        return bsmi_fail(BSM_EOVERFLOW, "a->rows=%lld times b->rows=%lld is more than an int64_t counts",
                         (long long)request.a.rows, (long long)request.b.rows);
    const int workers = (int)BSMI_MIN(context->threads, tiles);
    job.scratch_bytes = sizeof(struct scratch) + sizeof(int64_t) * TILE * TILE * (size_t)pair.limbs;
    job.scratch = bsmi_allocate(context, (size_t)workers * job.scratch_bytes);
    if (job.scratch == NULL)
        return bsmi_fail(BSM_ENOMEM, "no memory for the accumulators of the exact product (%zu bytes)",
                         (size_t)workers * job.scratch_bytes);
    run(&request, false, &pair, &job, workers);
    if (request.wants_magnitude) run(&request, true, &pair, &job, workers);
    bsmi_release(context, job.scratch, (size_t)workers * job.scratch_bytes);
    return BSM_OK;
}

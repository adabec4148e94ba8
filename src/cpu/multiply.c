/* A product cut into tiles: which tile belongs to which matrix; each goes through the kernel and the epilogue. */
#include "multiply.h"

#include "core/core.h"
#include "epilogue.h"
#include "matrix/rows.h"
#include "prepacked.h"
#include "tile.h"

/* Columns are a multiple of 128, so that pairs of gates, blocks of D and GGUF's blocks of 64 never straddle two
 * tiles; without gates 64 would do, which threads share more evenly where a tile is a single row, read once. */
enum { LEAST_TILE_ROWS = 48, LEAST_TILE_COLUMNS = 128, TILES_PER_THREAD = 3, ONE_ROW_TILE_COLUMNS = 64,
       ONE_ROW_TILES_PER_THREAD = 4 };

struct run {
    const struct bsmi_cpu_multiply *multiply;
    const struct bsmi_product *product;
    struct bsmi_epilogue epilogue;
    int64_t row_tiles, column_tiles;      /* of one matrix of a batch */
    int64_t *group_tiles, *group_starts;  /* grouped: number of the first tile, of the first row; one more than
                                             groups */
    int64_t *column_starts;               /* groups along K: of their first columns; one more than groups */
    unsigned char *threads;               /* thread_bytes each */
    const unsigned char *prepacked_b;     /* of all matrices of B; NULL: B as it is stored */
    size_t b_matrix_bytes;
};

/* The largest magnitude that a thread has seen, and what lies in its scratch, on a cache line of its own. */
struct thread_header { _Alignas(BSMI_ALIGNMENT) uint32_t amax_bits; struct bsmi_kept_row kept; };

static int64_t count_tiles(const struct bsmi_product *p, int64_t rows, int64_t columns)
{
    const int64_t matrices = p->groups > 0 ? 1 : p->batch;
    return bsmi_ceil_div(p->m, rows) * bsmi_ceil_div(p->n, columns) * matrices;
}

/* `length` in the fewest equal pieces of at most `most`, in whole units. */
static int64_t equal_piece(int64_t length, int64_t most, int64_t unit)
{
    const int64_t pieces = BSMI_MAX(1, bsmi_ceil_div(length, most));
    return bsmi_round_up(BSMI_MAX(1, bsmi_ceil_div(length, pieces)), unit);
}

/* Large tiles, since both operands are packed for each; enough of them to keep every thread busy. */
static void choose_tile(const struct bsmi_product *p, struct bsmi_cpu_multiply *c)
{
    const int64_t unit = c->kernel->register_rows;
    c->tile_rows = equal_piece(p->m, c->kernel->tile_rows, unit);
    c->tile_columns = equal_piece(p->n, c->kernel->tile_columns, LEAST_TILE_COLUMNS);
    if (c->threads == 1) return;
    if (c->kernel->tile_rows == 1 && p->gate == BSM_GATE_NONE) {
        while (c->tile_columns > ONE_ROW_TILE_COLUMNS
               && count_tiles(p, 1, c->tile_columns) < (int64_t)c->threads * ONE_ROW_TILES_PER_THREAD)
            c->tile_columns = bsmi_round_up(c->tile_columns / 2, ONE_ROW_TILE_COLUMNS);
        return;
    }
    const int64_t wanted = (int64_t)c->threads * TILES_PER_THREAD;
    const bool even = c->kernel->sums_columns != 0;  /* packing both operands costs about the same there */
    while (count_tiles(p, c->tile_rows, c->tile_columns) < wanted) {
        const bool rows_first = even && c->tile_rows > c->tile_columns;
        if (c->tile_columns > 2 * LEAST_TILE_COLUMNS && !rows_first)
            c->tile_columns = bsmi_round_up(c->tile_columns / 2, LEAST_TILE_COLUMNS);
        else if (c->tile_rows >= 2 * LEAST_TILE_ROWS) c->tile_rows = bsmi_round_up(c->tile_rows / 2, unit);
        else if (c->tile_columns > LEAST_TILE_COLUMNS) c->tile_columns = LEAST_TILE_COLUMNS;
        else break;
    }
}

static size_t sums_bytes(const struct bsmi_cpu_multiply *c)
{
    return (size_t)(bsmi_ceil_div(c->tile_columns, c->sums_columns) * c->sums_apart) * sizeof(float);
}

static size_t aligned(size_t bytes) { return (bytes + BSMI_ALIGNMENT - 1) / BSMI_ALIGNMENT * BSMI_ALIGNMENT; }

static void scale_table(bsm_scale scale, float *table)
{
    for (int code = 0; code < 256; code++)
        table[code] = scale == BSM_E8M0    ? bsmi_e8m0_to_float((uint8_t)code)
                      : scale == BSM_UE4M3 ? bsmi_ue4m3_to_float((uint8_t)code)
                                           : 1;
}

bsm_status bsmi_cpu_prepare(const struct bsmi_product *p, const struct bsmi_kernel *kernel, int threads,
                            struct bsmi_cpu_multiply *c)
{
    memset(c, 0, sizeof *c);
    c->kernel = kernel;
    c->threads = threads;
    choose_tile(p, c);
    c->sums_columns = kernel->sums_columns == 0 ? c->tile_columns : BSMI_MIN(kernel->sums_columns, c->tile_columns);
    c->sums_pitch = c->sums_columns + 16;            /* rows 4 KiB apart would wait for one another's stores */
    c->sums_apart = c->tile_rows * c->sums_pitch;
    if (p->a.bits <= 8) bsmi_element_table(p->a.element, c->a_values);
    if (p->b.bits <= 8) bsmi_element_table(p->b.element, c->b_values);
    scale_table(p->a.scale, c->a_scales);
    scale_table(p->b.scale, c->b_scales);
    const int64_t groups = p->groups + p->column_groups;
    if (groups > INT64_MAX / 64)
        return bsmi_fail(BSM_EOVERFLOW, "groups=%lld: the workspace cannot be counted", (long long)groups);
    c->shared_bytes = groups == 0 ? 0 : aligned((size_t)(groups + 1) * 2 * sizeof(int64_t));
    c->thread_bytes = sizeof(struct thread_header) + aligned(sums_bytes(c)) +
                      aligned(bsmi_kernel_scratch_bytes(kernel, c->tile_rows, c->tile_columns)) +
                      aligned(bsmi_epilogue_scratch_bytes(c->tile_columns));
    c->workspace_bytes = c->shared_bytes + (size_t)threads * c->thread_bytes;
    return BSM_OK;
}

static struct thread_header *thread_memory(const struct run *run, int worker)
{
    return (struct thread_header *)(void *)(run->threads + (size_t)worker * run->multiply->thread_bytes);
}

/* The last group whose first tile is not behind `index`; empty groups have no tile and are never it. */
static int64_t find_group(const struct run *run, int64_t index)
{
    int64_t low = 0, high = run->product->groups;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (run->group_tiles[middle] <= index) low = middle;
        else high = middle;
    }
    return low;
}

/* Which part of which matrix tile `index` is.  Neighbouring tiles share columns. */
static struct bsmi_epilogue_tile locate(const struct run *run, int64_t index)
{
    const struct bsmi_product *p = run->product;
    const int64_t height = run->multiply->tile_rows, width = run->multiply->tile_columns;
    struct bsmi_epilogue_tile tile = { 0 };
    int64_t first = 0, end = p->m, row_tiles = run->row_tiles;
    if (p->groups > 0) {
        tile.matrix = find_group(run, index);
        index -= run->group_tiles[tile.matrix];
        first = run->group_starts[tile.matrix];
        end = run->group_starts[tile.matrix + 1];
        row_tiles = bsmi_ceil_div(end - first, height);
    } else {
        tile.matrix = index / (row_tiles * run->column_tiles);
        index %= row_tiles * run->column_tiles;
    }
    tile.row = first + index % row_tiles * height;
    tile.rows = BSMI_MIN(height, end - tile.row);
    tile.column = index / row_tiles * width;
    tile.columns = BSMI_MIN(width, p->n - tile.column);
    return tile;
}

/* What a tile of one of the groups along K reads of an operand. */
static const struct bsmi_matrix *columns_of_group(const struct run *run, int64_t group, const struct bsmi_matrix *whole,
                                                  struct bsmi_matrix *part)
{
    if (run->column_starts == NULL) return whole;
    const int64_t first = run->column_starts[group];
    *part = bsmi_matrix_columns(whole, first, run->column_starts[group + 1] - first);
    return part;
}

/* A tile's way through the epilogue, whole or some rows at a time. */
struct finishing {
    const struct run *run;
    struct bsmi_epilogue_tile at;         /* of the whole tile */
    void *scratch;
    uint32_t *amax_bits;
};

static void finish_rows(void *argument, int64_t row, int64_t rows, const float *sums)
{
    const struct finishing *f = argument;
    const struct bsmi_cpu_multiply *c = f->run->multiply;
    struct bsmi_epilogue_tile at = f->at;
    at.row += row, at.rows = rows, at.sums = sums;
    for (const int64_t end = at.column + at.columns; at.column < end; at.column += c->sums_columns) {
        at.columns = BSMI_MIN(c->sums_columns, end - at.column);
        bsmi_epilogue_run(&f->run->epilogue, &at, f->scratch, f->amax_bits);
        at.sums += c->sums_apart;
    }
}

static void run_tile(void *argument, int64_t index, int worker)
{
    const struct run *run = argument;
    const struct bsmi_cpu_multiply *c = run->multiply;
    const struct bsmi_product *p = run->product;
    struct thread_header *header = thread_memory(run, worker);
    unsigned char *sums = (unsigned char *)(header + 1), *scratch = sums + aligned(sums_bytes(c));
    const struct bsmi_epilogue_tile at = locate(run, index);
    struct bsmi_matrix a_part, b_part;
    const struct bsmi_matrix *a = columns_of_group(run, at.matrix, &p->a, &a_part),
                             *b = columns_of_group(run, at.matrix, &p->b, &b_part);
    const bool in_parts = c->kernel->sums_columns != 0;
    struct finishing finishing = {
        run, at, scratch + aligned(bsmi_kernel_scratch_bytes(c->kernel, c->tile_rows, c->tile_columns)),
        &header->amax_bits,
    };
    finishing.at.sums_pitch = c->sums_pitch;
    const struct bsmi_tile tile = {
        .a = { a, c->a_values, c->a_scales }, .b = { b, c->b_values, c->b_scales },
        .a_batch = p->groups > 0 || p->a.batch == 1 ? 0 : at.matrix, .b_batch = p->b.batch == 1 ? 0 : at.matrix,
        .row = at.row, .rows = at.rows, .column = at.column, .columns = at.columns,
        .split = p->gate == BSM_GATE_SPLIT ? p->n / 2 : 0, .k = a->columns,
        .prepacked_b = run->prepacked_b == NULL
                           ? NULL
                           : run->prepacked_b + (p->b.batch == 1 ? 0 : (size_t)at.matrix) * run->b_matrix_bytes,
        .sums = (float *)(void *)sums, .sums_pitch = c->sums_pitch,
        .sums_columns = in_parts ? c->sums_columns : 0, .sums_apart = c->sums_apart,
        .finish = in_parts ? finish_rows : NULL, .finish_argument = &finishing,
        .kept = run->column_starts == NULL ? &header->kept : NULL,
    };
    bsmi_kernel_sum(c->kernel, &tile, scratch);
    if (!in_parts) finish_rows(&finishing, 0, at.rows, tile.sums);
}

/* Fills the tables of a grouped product; returns the number of tiles. */
static int64_t start_groups(struct run *run, void *memory)
{
    const struct bsmi_product *p = run->product;
    run->group_tiles = memory;
    run->group_starts = run->group_tiles + p->groups + 1;
    int64_t tiles = 0, row = 0;
    for (int64_t g = 0; g < p->groups; g++) {
        run->group_tiles[g] = tiles;
        run->group_starts[g] = row;
        tiles += bsmi_ceil_div(p->group_rows[g], run->multiply->tile_rows) * run->column_tiles;
        row += p->group_rows[g];
    }
    run->group_tiles[p->groups] = tiles;
    run->group_starts[p->groups] = row;
    return tiles;
}

static void start_column_groups(struct run *run, void *memory)
{
    const struct bsmi_product *p = run->product;
    int64_t column = 0;
    run->column_starts = memory;
    for (int64_t g = 0; g < p->column_groups; column += p->group_columns[g++]) run->column_starts[g] = column;
    run->column_starts[p->column_groups] = column;
}

/* Told by bits: a caller who flushes subnormals gets the same. */
static void finish_amax(const struct run *run)
{
    uint32_t largest = 0;
    for (int i = 0; i < run->multiply->threads; i++) largest = BSMI_MAX(largest, thread_memory(run, i)->amax_bits);
    *run->product->amax = bsmi_float_from_bits(largest > 0x7f800000 ? 0x7fc00000 : largest);
}

void bsmi_cpu_run(const struct bsmi_cpu_multiply *c, const struct bsmi_product *p, void *workspace)
{
    struct run run = { .multiply = c, .product = p, .threads = (unsigned char *)workspace + c->shared_bytes };
    bsmi_epilogue_make(p, c->kernel->needs, &run.epilogue);
    run.prepacked_b = bsmi_prepacked_for(c->kernel, p, &run.b_matrix_bytes);
    run.row_tiles = bsmi_ceil_div(p->m, c->tile_rows);
    run.column_tiles = bsmi_ceil_div(p->n, c->tile_columns);
    if (p->column_groups > 0) start_column_groups(&run, workspace);
    const int64_t tiles = p->groups > 0 ? start_groups(&run, workspace) : run.row_tiles * run.column_tiles * p->batch;
    for (int i = 0; i < c->threads; i++) *thread_memory(&run, i) = (struct thread_header){ 0 };
    bsmi_matrix_clear_scale_padding(&p->d);
    bsmi_parallel_for(c->threads, tiles, run_tile, &run);
    if (p->amax != NULL) finish_amax(&run);
}

void bsmi_cpu_prepack(const struct bsmi_cpu_multiply *c, const struct bsmi_product *p, void *prepacked)
{
    const struct bsmi_operand b = { &p->b, c->b_values, c->b_scales };
    bsmi_prepacked_make(c->kernel, p, &b, c->threads, prepacked);
}

/* S without matrix instructions, one thread an element, in the order of sums of the CPU's kernels and with its bits;
 * and the tables of grouped products.
 *
 *     both elements small integers times a power of two: runs of min(blockA, blockB) sum exactly,
 *     S = fma(run, scales, S); else: k ascending, S = fma(a sA, b sB, S)
 *
 * A workgroup computes tiles of 16 x 16; 32 columns of K at a time are decoded into LDS as doubles, in which every
 * product of two scaled elements is exact. */
#include "functions.h"
#include "hip/params/kernels.h"
#include "numbers.h"

enum { ROWS = BSMI_HIP_SUMS_ROWS, COLUMNS = BSMI_HIP_SUMS_COLUMNS, DEPTH = 32, THREADS = BSMI_HIP_THREADS };
_Static_assert(ROWS * COLUMNS == THREADS && ROWS == COLUMNS, "a thread an element");

/* One operand's part of a tile: elements, scaled already where terms are summed one by one; scales of at most two
 * runs. */
struct panel { double values[ROWS][DEPTH + 1], scales[ROWS][2]; };
typedef __attribute__((address_space(3))) struct panel lds_panel;

static inline bool sums_runs(const struct bsmi_device_matrix *m)
{
    return m->block != 0 && (m->element == BSM_E2M1 || m->element == BSM_E2M3 || m->element == BSM_INT8);
}

/* Elements of a run; 0: terms are summed one by one. */
static inline int run_of(const struct bsmi_device_matrix *a, const struct bsmi_device_matrix *b)
{
    return sums_runs(a) && sums_runs(b) ? (a->block < b->block ? a->block : b->block) : 0;
}

/* s + p rounded once to fp32: by way of a double rounded to odd, whose 53 bits are more than 24 + 2 (Boldo and
 * Melquiond 2008). */
static inline float add_once(float s, double p)
{
    const double a = (double)s, sum = a + p;
    const double of_p = sum - a, tail = (a - (sum - of_p)) + (p - of_p);
    uint64_t bits = bsmi_double_bits(sum);
    if (isfinite(sum) && tail != 0 && (bits & 1) == 0) bits += (tail > 0) == (sum > 0) ? 1 : (uint64_t)-1;
    return (float)bsmi_double_from_bits(bits);
}

/* Columns k .. of 16 lines from `first` on; what lies behind `end` or `k_end` is zeros, with scales of 1. */
static inline void fill_panel(lds_panel *panel, const struct bsmi_device_matrix *m, int64_t batch, int64_t first,
                              int64_t end, int64_t k, int64_t k_end, int run)
{
    for (uint32_t i = thread_number(); i < ROWS * DEPTH + (run == 0 ? 0 : 2 * ROWS); i += THREADS) {
        const bool is_value = i < ROWS * DEPTH;
        const uint32_t number = is_value ? i / DEPTH : (i - ROWS * DEPTH) / 2, at = is_value ? i % DEPTH : i % 2;
        const int64_t line = first + number, column = k + (is_value ? at : at * (uint32_t)run);
        double value = is_value ? 0 : 1;
        if (line < end && column < k_end) {
            if (is_value)
                value = (double)decode_element(m->element, load_code(m, row_of(m, batch, line), column));
            if ((!is_value || run == 0) && m->block != 0)
                value *= (double)decode_scale(m->scale, load_scale(m, batch, line, block_of(m, column)));
        }
        if (is_value) panel->values[number][at] = value;
        else panel->scales[number][at] = value;
    }
}

/* 32 columns of K more.  left: how many of them there are. */
static inline float add_panels(float sum, const lds_panel *a, const lds_panel *b, uint32_t i, uint32_t j, int left,
                               int run)
{
    if (run == 0) {
        for (int k = 0; k < left; k++) sum = add_once(sum, a->values[i][k] * b->values[j][k]);
        return sum;
    }
    for (int first = 0, n = 0; first < left; first += run, n++) {
        double of_run = 0;
        for (int k = first; k < left && k < first + run; k++) of_run += a->values[i][k] * b->values[j][k];
        sum = add_once(sum, of_run * (a->scales[i][n] * b->scales[j][n]));
    }
    return sum;
}

struct tile { int64_t matrix, row, row_end, column; };

/* Tile number `index` of all; rows of groups are found by where the groups begin, a tile a 16th row of each. */
static inline struct tile locate(const struct bsmi_epilogue_parameters *e, int64_t index)
{
    const int64_t column_tiles = divided_up(e->n, COLUMNS), row_tile = quotient(index, column_tiles);
    struct tile t = { 0, 0, e->m, (index - row_tile * column_tiles) * COLUMNS };
    if (!e->grouped) {
        const int64_t row_tiles = divided_up(e->m, ROWS);
        t.matrix = quotient(row_tile, row_tiles);
        t.row = (row_tile - t.matrix * row_tiles) * ROWS;
        return t;
    }
    int64_t before = 0;
    for (; t.matrix < e->matrices; t.matrix++) {
        const int64_t tiles = (e->group_starts[t.matrix + 1] - e->group_starts[t.matrix] + ROWS - 1) / ROWS;
        if (row_tile < before + tiles) break;
        before += tiles;
    }
    t.row = t.row_end = 0;
    if (t.matrix == e->matrices) return t;
    t.row = e->group_starts[t.matrix] + (row_tile - before) * ROWS, t.row_end = e->group_starts[t.matrix + 1];
    return t;
}

static inline bool is_fallback(const int32_t *exponents, int64_t first, int64_t line)
{
    return exponents != NULL && exponents[first + line] == BSMI_ROW_FALLBACK;
}

KERNEL(BSMI_HIP_THREADS) bsmi_sums(struct bsmi_hip_sums_parameters p, uint32_t groups)
{
    LDS struct panel a, b;
    LDS uint32_t wanted[THREADS / WAVE];
    const struct bsmi_epilogue_parameters *e = &p.epilogue;
    const uint32_t i = thread_number() / COLUMNS, j = thread_number() % COLUMNS;
    const int run = run_of(&p.a, &p.b);
    for (int64_t index = group_number(); index < p.tiles; index += groups) {
        const struct tile t = locate(e, index);
        const int64_t row = t.row + i, column = t.column + j;
        bool mine = row < t.row_end && column < e->n;
        if (mine && p.only_fallback)
            mine = is_fallback(e->a_exponents, t.matrix * e->a_exponent_step, row)
                   || is_fallback(e->b_exponents, t.matrix * e->b_exponent_step, column);
        barrier();
        const uint64_t ballot = __builtin_amdgcn_ballot_w64(mine);
        if (thread_number() % WAVE == 0) wanted[thread_number() / WAVE] = ballot != 0;
        barrier();
        if ((wanted[0] | wanted[1] | wanted[2] | wanted[3]) == 0) continue;
        int64_t first = 0, end = p.k;
        if (p.column_groups != NULL) {
            first = p.column_groups[t.matrix].first;
            end = first + p.column_groups[t.matrix].columns;
        }
        float sum = 0;
        for (int64_t k = first; k < end; k += DEPTH) {
            barrier();
            fill_panel((lds_panel *)&a, &p.a, e->grouped ? 0 : t.matrix * p.a_batch_step, t.row, t.row_end, k, end,
                       run);
            fill_panel((lds_panel *)&b, &p.b, t.matrix * p.b_batch_step, t.column, e->n, k, end, run);
            barrier();
            sum = add_panels(sum, (lds_panel *)&a, (lds_panel *)&b, i, j, (int)smaller(DEPTH, end - k), run);
        }
        if (mine) e->sums[(e->grouped ? 0 : t.matrix * e->sums_batch_pitch) + row * e->sums_pitch + column] = sum;
    }
}

/* Groups are few (experts): one thread adds them up. */
KERNEL(BSMI_HIP_THREADS) bsmi_group_tables(struct bsmi_hip_group_tables_parameters p, uint32_t groups)
{
    (void)groups;
    if (thread_number() != 0 || group_number() != 0) return;
    int64_t row = 0, tiles = 0;
    for (int64_t g = 0; g < p.groups; g++) {
        const int64_t rows = smaller(at_least_zero(p.group_rows[g]), p.m - row);
        p.group_starts[g] = row;
        p.group_tiles[g] = tiles;
        row += rows;
        if (rows > 0) tiles += divided_up(row - (row - rows) / 32 * 32, p.tile_rows) * p.column_tiles;
    }
    p.group_starts[p.groups] = row;
    p.group_tiles[p.groups] = tiles;
}

KERNEL(BSMI_HIP_THREADS) bsmi_column_tables(struct bsmi_hip_column_tables_parameters p, uint32_t groups)
{
    (void)groups;
    if (thread_number() != 0 || group_number() != 0) return;
    int64_t first = 0;
    for (int64_t g = 0; g < p.groups; g++) {
        const int64_t begin = smaller(divided_up(first, p.unit) * p.unit, p.k);
        const int64_t columns = smaller(at_least_zero(p.group_columns[g]), p.k - begin);
        p.table[g] = (struct bsmi_hip_column_group){ begin, columns };
        first = begin + columns;
    }
}

/* Every kernel's `sum` against the portable one of its family, or against the model of a matrix unit's order, on tiles:
 * bit for bit at the edges of register tiles, groups, blocks and chunks; operands end where a page faults, scratch and
 * sums are exactly as large as was asked for, and guarded. */
#include "naive_orders.h"
#include "resolved.h"

#include "core/core.h"
#include "cpu/table.h"
#include "cpu/tile.h"

#include <math.h>
#include <stdlib.h>

enum { GUARD = 0x5a, MOST_PITCH_EXTRA = 3 };

/* Where the library's units are emulated (units/CMakeLists.txt), and there alone: this thread's tiles are released.
 * Kernels without units are the other build's to test. */
__attribute__((weak)) bool emulated_tiles_are_released(void);
static bool is_emulated(void) { return emulated_tiles_are_released != NULL; }

/* e8m0 codes of scales; high 0: as operand_fill makes them. */
struct scale_range { int low, high; };

struct tile_case {
    int a_format, b_format;
    int64_t rows, columns, k, first_row, first_column, split;
    int64_t scratch_rows, scratch_columns;           /* what scratch is made for: at least the tile */
    bsm_packing a_packing, b_packing;
    int layout;
    struct scale_range scales;                       /* of B, and of A half of the time */
    bool apart;                                      /* scales are A's and those below B's: of columns of K before
                                                        `late` and from there on */
    struct scale_range a_late, b_scales, b_late;
    int64_t late;
};

/* Whose bits are right: the last row of the table that serves the pair. */
static const struct bsmi_kernel *portable(bsm_format a, bsm_format b)
{
    for (int i = bsmi_kernel_count - 1; i >= 0; i--)
        if (bsmi_kernels[i].serves(a, b)) return &bsmi_kernels[i];
    return NULL;
}

static bool four_bits(bsm_format format)
{
    return bsm_element_get((int)bsm_format_get((int)format)->element)->bits == 4;
}

/* Every 40th is NaN, if that is wanted. */
static void set_scales(struct test *t, struct operand *o, const struct scale_range *first,
                       const struct scale_range *then, int64_t late, bool nans)
{
    const bsm_format_info *info = bsm_format_get((int)o->m.format);
    if (info->scale != BSM_E8M0 || first->high == 0) return;
    for (int64_t r = 0; r < o->m.rows; r++)
        for (int64_t s = 0; s < (o->m.columns + info->block - 1) / info->block; s++) {
            const struct scale_range *range = s * info->block < late ? first : then;
            const uint8_t code = nans && rnd_below(t, 40) == 0 ? 255 : (uint8_t)rnd_between(t, range->low, range->high);
            CHECK(t, bsm_matrix_set_scale(&o->m, 0, r, s, code) == BSM_OK);
        }
}

/* A few NaN among the codes of elements that have one: kernels look for them on their way. */
static void set_nans(struct test *t, struct operand *o)
{
    const bsm_element element = bsm_format_get((int)o->m.format)->element;
    if ((element != BSM_E4M3 && element != BSM_E5M2) || o->m.rows == 0 || o->m.columns == 0 || rnd_below(t, 3) != 0)
        return;
    for (int i = 0; i < 3; i++)
        CHECK(t, bsm_matrix_set_code(&o->m, 0, rnd_below(t, o->m.rows), rnd_below(t, o->m.columns),
                                     rnd_below(t, 2) == 0 ? 0x7f : 0xff) == BSM_OK);
}

/* The half of a row's last byte that is no code. */
static void poison_last_nibbles(struct operand *o)
{
    if (!four_bits(o->m.format) || o->m.columns % 2 == 0 || o->m.packing == BSM_PACKING_BYTES) return;
    const size_t row_bytes = (size_t)(o->m.columns + 1) / 2;
    for (int64_t r = 0; r < o->m.rows; r++)
        ((uint8_t *)o->m.data)[(size_t)r * row_bytes + row_bytes - 1] |=
            o->m.packing == BSM_PACKING_HIGH_FIRST ? 0x0f : 0xf0;
}

static struct operand make_operand(struct test *t, int format, int64_t rows, int64_t k, bsm_packing packing,
                                   const struct tile_case *c)
{
    struct shape shape = { .format = (bsm_format)format, .rows = rows, .columns = k };
    if (four_bits(shape.format)) shape.packing = packing;
    if (bsm_format_get(format)->block != 0) shape.layout.kind = (bsm_layout)c->layout;
    struct operand o = operand_make(&shape, 0xff);
    operand_fill(t, &o, false);
    set_scales(t, &o, &c->scales, c->apart ? &c->a_late : &c->scales, c->apart ? c->late : 0, !c->apart);
    if (!c->apart) set_nans(t, &o);
    if (rows > 0) poison_last_nibbles(&o);
    return o;
}

/* The tile's sums through a kernel, tight: rows x columns. */
static void run_kernel(struct test *t, const struct bsmi_kernel *kernel, struct bsmi_tile tile,
                       const struct tile_case *c, float *out)
{
    const int64_t rows = bsmi_round_up(tile.rows, kernel->register_rows);
    tile.sums_pitch =
        bsmi_round_up(tile.columns, BSMI_MAX(16, kernel->register_columns)) + 16 * rnd_below(t, MOST_PITCH_EXTRA + 1);
    const int64_t whole = bsmi_round_up(tile.columns, kernel->register_columns);
    const size_t scratch_bytes = bsmi_kernel_scratch_bytes(kernel, c->scratch_rows, c->scratch_columns);
    const size_t sums_bytes = (size_t)(rows * tile.sums_pitch) * sizeof(float);
    float *sums = guarded_at_end(sums_bytes, 64, GUARD);
    void *scratch = guarded_at_end(scratch_bytes, 64, 0xff);
    tile.sums = sums;
    bsmi_kernel_sum(kernel, &tile, scratch);
    if (is_emulated()) CHECK(t, emulated_tiles_are_released());
    for (int64_t i = 0; i < tile.rows; i++)
        memcpy(out + i * tile.columns, sums + i * tile.sums_pitch, (size_t)tile.columns * sizeof(float));
    /* Older kernels clear whole rows: what is behind whole register tiles is a kernel's only as far as the pitch. */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = whole; j < tile.sums_pitch; j++) {
            const uint32_t bits = bsmi_float_bits(sums[i * tile.sums_pitch + j]);
            if (bits == 0 || bits == 0x5a5a5a5a) continue;
            FAIL(t, "%s wrote behind its register tiles: sums[%lld][%lld]", kernel->name, (long long)i, (long long)j);
            i = rows;
            break;
        }
    guarded_free(sums);
    guarded_free(scratch);
}

static void compare(struct test *t, const struct bsmi_kernel *kernel, const struct tile_case *c, const float *want,
                    const float *got)
{
    for (int64_t i = 0; i < c->rows * c->columns; i++) {
        if ((isnan(want[i]) && isnan(got[i])) || memcmp(&want[i], &got[i], sizeof(float)) == 0) continue;
        FAIL(t, "%s: %s x %s, tile %lld x %lld x %lld from (%lld, %lld), scales %d..%d: S[%lld, %lld] = %a, wanted %a",
             kernel->name, bsm_format_get(c->a_format)->name, bsm_format_get(c->b_format)->name, (long long)c->rows,
             (long long)c->columns, (long long)c->k, (long long)c->first_row, (long long)c->first_column, c->scales.low,
             c->scales.high, (long long)(i / c->columns), (long long)(i % c->columns), (double)got[i], (double)want[i]);
        return;
    }
}

static enum unit_order order_of(enum bsmi_family family)
{
    return family == BSMI_FAMILY_AMX_BF16      ? UNIT_AMX_BF16
           : family == BSMI_FAMILY_AVX512_BF16 ? UNIT_AVX512_BF16
           : family == BSMI_FAMILY_ARM_BF16    ? UNIT_ARM_BF16
                                               : UNIT_NONE;
}

/* The tile in a unit's order; portable has it in the portable one, which fallback rows keep. */
static void sum_by_model(enum unit_order order, const struct tile_case *c, const bsm_matrix *a, const bsm_matrix *b,
                         const float *portable, float *want)
{
    struct unit_rows x = naive_unit_rows(a, 0, 0, a->rows, b->format),
                     y = naive_unit_rows(b, 0, 0, b->rows, a->format);
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            const int64_t row = c->first_row + i, column = bsmi_source_column(c->first_column + j, c->split);
            want[i * c->columns + j] = unit_falls_back(&x, row, &y, column) ? portable[i * c->columns + j]
                                                                            : unit_sum(order, &x, row, &y, column);
        }
    unit_rows_free(&x), unit_rows_free(&y);
}

static void check_case(struct test *t, const struct tile_case *c)
{
    const int64_t b_rows = c->split != 0 ? 2 * c->split : c->first_column + c->columns;
    struct tile_case of_a = *c, of_b = *c;
    if (c->apart) of_b.scales = c->b_scales, of_b.a_late = c->b_late;
    else if (rnd_below(t, 2) == 0) of_a.scales.low = of_a.scales.high = 0;   /* guards look at each operand */
    struct operand a = make_operand(t, c->a_format, c->first_row + c->rows, c->k, c->a_packing, &of_a);
    struct operand b = make_operand(t, c->b_format, b_rows, c->k, c->b_packing, &of_b);
    struct bsmi_matrix ma, mb;
    struct tables ta, tb;
    const struct bsmi_tile tile = { .a = resolve(t, &a, &ma, &ta), .b = resolve(t, &b, &mb, &tb), .row = c->first_row,
                                    .rows = c->rows,
                                    .column = c->first_column, .columns = c->columns, .split = c->split, .k = c->k };
    const struct bsmi_kernel *judge = portable(ma.format, mb.format);
    const uint32_t here = bsmi_cpu_detect(BSM_CPU_ALL);
    const size_t bytes = (size_t)(c->rows * c->columns) * sizeof(float);
    float *want = malloc(bytes), *got = malloc(bytes), *of_unit = malloc(bytes);
    enum unit_order modelled = UNIT_NONE;            /* whose sums of_unit has */
    run_kernel(t, judge, tile, c, want);
    for (const struct bsmi_kernel *k = bsmi_kernels; k < judge; k++) {
        if ((k->needs & ~here) != 0 || !k->serves(ma.format, mb.format)) continue;
        if (k->most_rows != 0 && c->rows > k->most_rows) continue;
        const enum unit_order order = order_of(k->family);
        if (order == UNIT_NONE && is_emulated()) continue;
        if (order != UNIT_NONE && order != modelled) sum_by_model(modelled = order, c, &a.m, &b.m, want, of_unit);
        run_kernel(t, k, tile, c, got);
        compare(t, k, c, order == UNIT_NONE ? want : of_unit, got);
    }
    free(want), free(got), free(of_unit);
    operand_free(&a), operand_free(&b);
}

static const bsm_packing packings[] = { BSM_PACKING_LOW_FIRST, BSM_PACKING_HIGH_FIRST, BSM_PACKING_BYTES };
static const bsm_layout layouts[] = { BSM_LAYOUT_LINEAR, BSM_LAYOUT_128X4 };

static void random_case(struct test *t, struct tile_case *c)
{
    static const int64_t depths[] = { 0,   1,   2,   3,   4,   5,   7,    8,    15,   16,   17,  31,
                                      32,  33,  47,  48,  49,  63,  64,   65,   100,  255,  256, 257,
                                      300, 511, 512, 513, 529, 769, 1023, 1025, 2049, 2600, 4129 };
    c->rows = rnd_between(t, 1, 33);
    c->columns = rnd_between(t, 1, 80);
    c->k = depths[rnd_below(t, sizeof depths / sizeof depths[0])];
    c->first_row = rnd_below(t, 3);
    c->first_column = rnd_below(t, 4) * 2;
    c->split = rnd_below(t, 4) == 0 ? (c->first_column + c->columns + 1) / 2 + rnd_below(t, 3) : 0;
    c->scratch_rows = c->rows + rnd_below(t, 2) * 5;
    c->scratch_columns = c->columns + rnd_below(t, 2) * 40;
    c->a_packing = packings[rnd_below(t, 3)];
    c->b_packing = packings[rnd_below(t, 3)];
    c->layout = (int)layouts[rnd_below(t, 2)];
    c->scales.low = c->scales.high = 0;
}

static void every_pair(struct test *t)
{
    for (int a = 1; a < BSM_FORMAT_COUNT; a++)
        for (int b = 1; b < BSM_FORMAT_COUNT; b++)
            for (int i = 0; i < 2; i++) {
                struct tile_case c = { .a_format = a, .b_format = b };
                random_case(t, &c);
                check_case(t, &c);
            }
}

/* Pairs that have kernels of their own. */
static const struct { bsm_format a, b;
} chosen[] = {
    { BSM_MXFP4, BSM_MXFP4 },           { BSM_NVFP4, BSM_NVFP4 },           { BSM_MXFP4, BSM_NVFP4 },
    { BSM_MXFP4_BLOCK16, BSM_MXFP4 },   { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_MXFP8_E5M2, BSM_MXFP4 },
    { BSM_MXFP6_E3M2, BSM_MXFP6_E3M2 }, { BSM_FORMAT_BF16, BSM_MXFP4 },     { BSM_FORMAT_FP16, BSM_NVFP4 },
    { BSM_MXFP6_E2M3, BSM_MXFP6_E2M3 }, { BSM_MXINT8, BSM_MXINT8 },         { BSM_MXFP6_E2M3, BSM_MXFP4 },
};
enum { CHOSEN = sizeof chosen / sizeof chosen[0] };

static void edges(struct test *t)
{
    for (int i = 0; i < CHOSEN; i++)
        for (int n = 0; n < (is_emulated() ? 12 : 30); n++) {
            struct tile_case c = { .a_format = (int)chosen[i].a, .b_format = (int)chosen[i].b };
            random_case(t, &c);
            check_case(t, &c);
        }
}

static void every_small_height(struct test *t)
{
    for (int i = 0; i < CHOSEN; i++)
        for (int64_t rows = 1; rows <= 17; rows++) {
            struct tile_case c = { .a_format = (int)chosen[i].a, .b_format = (int)chosen[i].b };
            random_case(t, &c);
            c.rows = c.scratch_rows = rows;
            check_case(t, &c);
        }
}

/* At both ends of fp32's range, and around what the kernels' guards let pass. */
static void extreme_scales(struct test *t)
{
    static const struct {
        int low, high;
    } ranges[] = {
        { 0, 2 }, { 0, 254 }, { 252, 254 }, { 229, 234 }, { 226, 230 }, { 238, 246 }, { 60, 66 }, { 0, 238 }
    };
    for (int i = 0; i < CHOSEN; i++)
        for (size_t r = 0; r < 3 * (sizeof ranges / sizeof ranges[0]); r++) {
            struct tile_case c = { .a_format = (int)chosen[i].a, .b_format = (int)chosen[i].b };
            random_case(t, &c);
            if (r % 3 != 0) c.rows = c.scratch_rows = rnd_between(t, 1, 8);
            c.scales.low = ranges[r / 3].low, c.scales.high = ranges[r / 3].high;
            check_case(t, &c);
        }
}

/* Few rows of fp32 chains may be summed in units of B's factors, where nothing on the way is subnormal or overflows
 * (folding_avx2.h): each of these is right for one operand, or one part of K, and wrong for the other. */
static void factors_folded(struct test *t)
{
    enum { LATE = 2048, LONG = LATE + 96, SHORT = 96 };
    static const struct scale_range usual = { 120, 132 };
    const struct { struct scale_range a, a_late, b, b_late; int64_t k;
    } sizes[] = {
        { { 0, 6 }, usual, { 136, 140 }, usual, SHORT },
        { { 226, 235 }, usual, { 101, 106 }, usual, SHORT },
        { usual, usual, { 0, 6 }, usual, SHORT },
        { usual, usual, { 1, 60 }, usual, SHORT },
        { usual, usual, { 225, 240 }, usual, SHORT },
        { { 178, 186 }, usual, { 178, 186 }, { 101, 106 }, LONG },
        { { 60, 66 }, usual, { 60, 66 }, { 136, 140 }, LONG },
    };
    static const struct {
        bsm_format a, b;
    } pairs[] = { { BSM_MXFP8_E5M2, BSM_MXFP8_E5M2 },
                  { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 },
                  { BSM_MXFP8_E5M2, BSM_MXFP4 },
                  { BSM_MXFP6_E3M2, BSM_MXFP6_E3M2 } };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (size_t w = 0; w < sizeof sizes / sizeof sizes[0]; w++)
            for (int64_t rows = 1; rows <= 8; rows = rows < 4 ? rows + 1 : 2 * rows) {
                struct tile_case c = { .a_format = (int)pairs[i].a, .b_format = (int)pairs[i].b, .rows = rows,
                                       .columns = 64, .k = sizes[w].k,
                                       .scratch_rows = rows, .scratch_columns = 64, .apart = true, .scales = sizes[w].a,
                                       .a_late = sizes[w].a_late, .b_scales = sizes[w].b, .b_late = sizes[w].b_late,
                                       .late = LATE };
                check_case(t, &c);
            }
}

/* Larger than what the guarded path takes at once. */
static void large_tiles(struct test *t)
{
    for (int i = 0; i < CHOSEN; i++)
        for (int guarded = 0; guarded < 2; guarded++) {
            struct tile_case c = { .a_format = (int)chosen[i].a, .b_format = (int)chosen[i].b, .rows = 199,
                                   .columns = 270, .k = 40,
                                   .scratch_rows = 199, .scratch_columns = 270 };
            if (guarded) c.scales.low = 125, c.scales.high = 254;
            check_case(t, &c);
        }
}

/* Kernels for few rows by tiles pack a MiB of A at a time: of 64 rows 8,192 k, of fp16 4,096. */
static void long_sums(struct test *t)
{
    static const struct { bsm_format a, b; int64_t k; } pairs[] = { { BSM_FORMAT_FP16, BSM_MXFP4, 4096 + 33 },
                                                                    { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 8192 + 70 } };
    for (int i = 0; i < 2; i++) {
        struct tile_case c = { .a_format = (int)pairs[i].a, .b_format = (int)pairs[i].b, .rows = 34, .columns = 19,
                               .k = pairs[i].k, .scratch_rows = 64, .scratch_columns = 32 };
        check_case(t, &c);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_pair),     TEST(edges),          TEST(every_small_height),
                                              TEST(extreme_scales), TEST(factors_folded), TEST(large_tiles),
                                              TEST(long_sums) };
    return TEST_MAIN(argc, argv, cases);
}

/* Every layout's offsets against its view, and its sizes. */
#include "formula.h"
#include "shapes.h"
#include "test.h"
#include "views.h"

#ifndef SWEEP_PARTS
#define SWEEP_PARTS 16
#endif

/* The walk visits every scale and padding once, and every byte once, in order: agreement with it is a bijection onto
 * the promised bytes.  Also: an offset is its row's part plus its column's. */
static bool map_agrees(struct test *t, const bsm_scale_layout *layout, int64_t rows, int64_t columns)
{
    struct bsmi_scale_map map;
    struct view view;
    struct place place = { 0 };
    if (bsmi_scale_map_make("layout", layout, rows, columns, &map) != BSM_OK)
        return FAIL(t, "%s", bsm_last_error()), false;
    if (!view_make(layout, rows, columns, &view))
        return FAIL(t, "state layout %s in views.c", bsm_layout_name((int)layout->kind)), false;
    int64_t positions = 0, last = 0;
    do {
        const int64_t offset = bsmi_scale_at(&map, place.row, place.column);
        if (offset != place.byte || place.row >= map.padded_rows || place.column >= map.padded_columns) {
            FAIL(t,
                 "%s, %" PRId64 " x %" PRId64 ": (%" PRId64 ", %" PRId64 ") is at %" PRId64 ", the view says %" PRId64,
                 bsm_layout_name((int)layout->kind), rows, columns, place.row, place.column, offset, place.byte);
            return false;
        }
        positions++;
        last = place.byte;
    } while (view_next(&view, &place));
    const bool sizes = positions == map.padded_rows * map.padded_columns && map.padded_rows >= rows &&
                       map.padded_columns >= columns &&
                       map.bytes == last + 1 + view.dimension[view.count - 1].skip;
    if (!sizes)
        FAIL(t,
             "%s, %" PRId64 " x %" PRId64 ": %" PRId64 " positions, last byte %" PRId64 ", but %" PRId64 " x %" PRId64
             " padded in %" PRId64 " bytes",
             bsm_layout_name((int)layout->kind), rows, columns, positions, last, map.padded_rows, map.padded_columns,
             map.bytes);
    return sizes;
}

/* Rows 1..512 x columns 1..64, every layout.  A run takes a part of the shapes, which one the seed says, and all shapes
 * at the edges of blocks; the command sweep_layout_map takes them all. */
static void offsets_match_the_view_of_every_shape(struct test *t)
{
    const int64_t part = (int64_t)(t->seed % SWEEP_PARTS);
    for (int number = 0; number < BSM_LAYOUT_COUNT; number++)
        for (int64_t rows = 1; rows <= 512; rows++)
            for (int64_t columns = 1; columns <= 64; columns++) {
                const bsm_scale_layout layout = variant(number, columns);
                const bool edge = (rows + 1) % 128 <= 2 && (columns + 1) % 16 <= 2;
                if (!edge && (rows * 7 + columns) % SWEEP_PARTS != part) continue;
                if (!map_agrees(t, &layout, rows, columns)) return;
            }
}

static void offsets_match_the_view_with_parameters(struct test *t)
{
    static const int64_t some_rows[] = { 1, 2, 3, 31, 33, 127, 128, 129, 200, 201, 257 };
    for (int number = BSM_LAYOUT_COUNT; number < VARIANTS; number++)
        for (size_t i = 0; i < sizeof some_rows / sizeof some_rows[0]; i++)
            for (int64_t columns = 1; columns <= 101; columns++) {
                const bsm_scale_layout layout = variant(number, columns);
                if (!map_agrees(t, &layout, some_rows[i], columns)) return;
            }
}

static void offsets_are_sums_of_row_and_column_parts(struct test *t)
{
    for (int number = 0; number < VARIANTS; number++)
        for (int repeat = 0; repeat < 2000; repeat++) {
            const int64_t rows = rnd_between(t, 1, 1000), columns = rnd_between(t, 1, 200);
            const bsm_scale_layout layout = variant(number, columns);
            struct bsmi_scale_map map;
            CHECK_OR_RETURN(t, bsmi_scale_map_make("layout", &layout, rows, columns, &map) == BSM_OK);
            const int64_t row = rnd_below(t, map.padded_rows), column = rnd_below(t, map.padded_columns);
            CHECK_OR_RETURN(t, bsmi_scale_at(&map, 0, 0) == 0);
            CHECK_OR_RETURN(t, bsmi_scale_at(&map, row, column)
                                   == bsmi_scale_at(&map, row, 0) + bsmi_scale_at(&map, 0, column));
        }
}

/* Offsets behind 2^31, 2^32 and up to 2^62, looked up in the view by byte number. */
static void offsets_match_the_view_of_huge_shapes(struct test *t)
{
    static const int64_t shapes[][2] = {
        { 33554435, 90 }, { 90, 33554435 }, { (int64_t)1 << 32, 3 }, { 3, (int64_t)1 << 32 }, { 2147483647, 2147483 },
        { 4294967297, 16777217 }, { ((int64_t)1 << 55) + 1, 5 }, { 5, ((int64_t)1 << 54) + 1 },
    };
    int behind_2_31 = 0, behind_2_32 = 0;
    for (int number = 0; number < VARIANTS; number++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            const bsm_scale_layout layout = variant(number, shapes[i][1]);
            struct view view;
            int64_t bytes;
            CHECK_OR_RETURN(t, view_make(&layout, shapes[i][0], shapes[i][1], &view));
            CHECK_OR_RETURN(t, bsm_scale_bytes(&layout, shapes[i][0], shapes[i][1], &bytes) == BSM_OK);
            for (int repeat = 0; repeat < 1000; repeat++) {
                struct place place;
                int64_t offset = -1;
                const int64_t byte = repeat == 0 ? bytes - 1 : (int64_t)(rnd(t) >> 1) % bytes;
                if (!view_find(&view, byte, &place)) continue;
                const bsm_status status =
                    bsm_scale_offset(&layout, shapes[i][0], shapes[i][1], place.row, place.column, &offset);
                CHECK_OR_RETURN(t, status == BSM_OK);
                if (offset != byte) {
                    FAIL(t,
                         "%s, %" PRId64 " x %" PRId64 ": (%" PRId64 ", %" PRId64 ") is at %" PRId64
                         ", the view says %" PRId64,
                         bsm_layout_name((int)layout.kind), shapes[i][0], shapes[i][1], place.row, place.column, offset,
                         byte);
                    return;
                }
                behind_2_31 += offset > INT32_MAX;
                behind_2_32 += offset > UINT32_MAX;
            }
        }
    CHECK(t, behind_2_31 > VARIANTS * 1000 && behind_2_32 > VARIANTS * 1000);
}

/* The sentence that people read says the same as the code. */
static void formulas_say_what_the_code_does(struct test *t)
{
    for (int number = 0; number < VARIANTS; number++)
        for (int repeat = 0; repeat < 500; repeat++) {
            const int64_t rows = rnd_between(t, 1, 1000), columns = rnd_between(t, 1, 200);
            const bsm_scale_layout layout = variant(number, columns);
            struct bsmi_scale_map map;
            CHECK_OR_RETURN(t, bsmi_scale_map_make("layout", &layout, rows, columns, &map) == BSM_OK);
            const int64_t row = rnd_below(t, map.padded_rows), column = rnd_below(t, map.padded_columns);
            const struct formula_values values = { .r = row, .s = column, .R = rows, .S = columns,
                                                   .pitch = map.layout.pitch,
                                                   .TR = layout.tile_rows, .TC = layout.tile_columns };
            const char *formula = bsm_layout_formula((int)layout.kind);
            int64_t offset;
            if (!formula_evaluate(formula, &values, &offset) || offset != bsmi_scale_at(&map, row, column)) {
                FAIL(t, "%s: \"%s\" is not what the code does", bsm_layout_name((int)layout.kind), formula);
                break;
            }
        }
}

static void sizes_of_known_shapes(struct test *t)
{
    /* K = 2880 of MXFP4: 90 columns, which 128x4 pads to 92 (gpt-oss). */
    static const struct { const char *layout; int64_t rows, columns, padded_rows, padded_columns, bytes; } known[] = {
        { "linear", 33, 90, 33, 90, 2970 },
        { "linear:128", 33, 90, 33, 90, 32 * 128 + 90 },
        { "128x4", 33, 90, 128, 92, 11776 },
        { "128x4", 129, 1, 256, 4, 1024 },
        { "8x4", 33, 90, 40, 92, 3680 },
        { "tiles:32x8", 33, 90, 64, 96, 6144 },
        { "sm120_padded", 33, 90, 33, 90, 32 * 96 + 90 }, { "sm120_padded", 128, 20, 128, 20, 127 * 32 + 20 },
        { "sm120_padded", 3, 16, 3, 16, 48 }, { "sm120_padded", 0, 90, 0, 90, 0 },
        { "cdna4_16", 33, 90, 64, 96, 6144 },
        { "cdna4_32", 33, 90, 64, 96, 6144 },
        { "aiter", 33, 90, 256, 96, 24576 },
        { "deepgemm", 33, 90, 36, 92, 3312 },
        { "gguf_mxfp4", 33, 90, 33, 90, 33 * 90 * 17 },
        { "gguf_nvfp4", 33, 90, 33, 92, 33 * 23 * 36 },
        { "gguf_nvfp4:1000", 33, 90, 33, 92, 32 * 1000 + 23 * 36 },
        { "128x4", 0, 90, 0, 92, 0 }, { "128x4", 33, 0, 128, 0, 0 }, { "linear:128", 0, 90, 0, 90, 0 },
        { "linear:128", 5, 0, 5, 0, 0 }, { "linear", 5, 0, 5, 0, 0 }, { "gguf_nvfp4", 5, 0, 5, 0, 0 },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        bsm_scale_layout layout;
        int64_t padded_rows = -1, padded_columns = -1, bytes = -1;
        CHECK_OR_RETURN(t, bsm_scale_layout_parse(known[i].layout, &layout) == BSM_OK);
        CHECK(t, bsm_scale_padded(&layout, known[i].rows, known[i].columns, &padded_rows, &padded_columns) == BSM_OK);
        CHECK(t, bsm_scale_bytes(&layout, known[i].rows, known[i].columns, &bytes) == BSM_OK);
        if (padded_rows != known[i].padded_rows || padded_columns != known[i].padded_columns || bytes != known[i].bytes)
            FAIL(t, "%s of %" PRId64 " x %" PRId64 ": %" PRId64 " x %" PRId64 " in %" PRId64 " bytes", known[i].layout,
                 known[i].rows, known[i].columns, padded_rows, padded_columns, bytes);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(offsets_match_the_view_of_every_shape), TEST(offsets_match_the_view_with_parameters),
        TEST(offsets_are_sums_of_row_and_column_parts), TEST(offsets_match_the_view_of_huge_shapes),
        TEST(formulas_say_what_the_code_does), TEST(sizes_of_known_shapes),
    };
    return TEST_MAIN(argc, argv, cases);
}

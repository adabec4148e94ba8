/* Names, texts, and every sentence that a wrong argument gets. */
#include "shapes.h"
#include "test.h"

#include <strings.h>

static void expect(struct test *t, int line, bsm_status got, bsm_status wanted, const char *sentence)
{
    if (got != wanted || (wanted != BSM_OK && strcmp(bsm_last_error(), sentence) != 0))
        test_fail(t, __FILE__, line, "status %d, wanted %d; \"%s\", wanted \"%s\"", (int)got, (int)wanted,
                  bsm_last_error(), sentence);
}

#define EXPECT(call, status, sentence) expect(t, __LINE__, call, status, sentence)
#define LAYOUT(...) (&(const bsm_scale_layout)KIND(__VA_ARGS__))

static const char all_names[] =
    "linear, 128x4, 8x4, tiles:ROWSxCOLUMNS, cdna4_16, cdna4_32, aiter, deepgemm, gguf_mxfp4, gguf_nvfp4";

static void names_are_read_back(struct test *t)
{
    for (int kind = 0; kind < BSM_LAYOUT_COUNT; kind++) {
        const char *name = bsm_layout_name(kind);
        if (kind == NO_LAYOUT) continue;
        char text[64];
        bsm_scale_layout layout;
        CHECK_OR_RETURN(t, name != NULL && bsm_layout_about(kind) != NULL && bsm_layout_formula(kind) != NULL);
        CHECK(t, strchr(bsm_layout_about(kind), '\n') == NULL && strlen(bsm_layout_about(kind)) > 20);
        snprintf(text, sizeof text, "%s%s", name, kind == BSM_LAYOUT_TILES ? ":3x70" : "");
        CHECK(t, bsm_scale_layout_parse(text, &layout) == BSM_OK);
        CHECK(t, (int)layout.kind == kind && layout.pitch == 0);
        CHECK(t, layout.tile_rows == (kind == BSM_LAYOUT_TILES ? 3 : 0));
        CHECK(t, layout.tile_columns == (kind == BSM_LAYOUT_TILES ? 70 : 0));
        for (int other = 0; other < kind; other++)
            CHECK(t, other == NO_LAYOUT || strcasecmp(name, bsm_layout_name(other)) != 0);
    }
    for (int i = 0; i < 5; i++) {
        const int none = (int[]){ -1, NO_LAYOUT, BSM_LAYOUT_COUNT, 1000000, -2147483647 }[i];
        CHECK(t, bsm_layout_name(none) == NULL && bsm_layout_about(none) == NULL && bsm_layout_formula(none) == NULL);
    }
}

static void texts_are_read(struct test *t)
{
    static const struct { const char *text; bsm_scale_layout layout; } texts[] = {
        { "linear:9223372036854775807", KIND(LINEAR, .pitch = INT64_MAX) },
          { "row_major:12", KIND(LINEAR, .pitch = 12) },
        { "128X4", KIND(128X4) }, { "32_4_4", KIND(128X4) }, { "SWIZZLE_32_4_4", KIND(128X4) },
        { "packed_block", KIND(128X4) }, { "cublaslt", KIND(128X4) }, { "cutlass", KIND(128X4) },
        { "tcgen05", KIND(128X4) }, { "to_blocked", KIND(128X4) },
        { "trtllm_8x4", KIND(8X4) }, { "swizzle_8x4", KIND(8X4) },
        { "tiles:1x9223372036854775807", KIND(TILES, .tile_rows = 1, .tile_columns = INT64_MAX) },
        { "TILES:32X8", KIND(TILES, .tile_rows = 32, .tile_columns = 8) },
        { "sm120_padded", KIND(LINEAR, .pitch = BSM_PITCH_PADDED_16) },
          { "SM120_pages", KIND(LINEAR, .pitch = BSM_PITCH_PADDED_16) },
        { "gfx950_16", KIND(CDNA4_16) }, { "gfx950_32", KIND(CDNA4_32) }, { "shuffle_scale", KIND(AITER) },
        { "ue8m0_words", KIND(DEEPGEMM) }, { "gguf_mxfp4:34", KIND(GGUF_MXFP4, .pitch = 34) },
        { "ggml_mxfp4", KIND(GGUF_MXFP4) }, { "ggml_nvfp4:72", KIND(GGUF_NVFP4, .pitch = 72) },
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bsm_scale_layout layout;
        memset(&layout, 0xff, sizeof layout);
        if (bsm_scale_layout_parse(texts[i].text, &layout) != BSM_OK) FAIL(t, "%s", bsm_last_error());
        else if (layout.kind != texts[i].layout.kind || layout.pitch != texts[i].layout.pitch ||
                 layout.tile_rows != texts[i].layout.tile_rows || layout.tile_columns != texts[i].layout.tile_columns)
            FAIL(t, "\"%s\" is read as another layout", texts[i].text);
    }
}

static void wrong_texts_are_refused(struct test *t)
{
    bsm_scale_layout layout = KIND(AITER);
    char sentence[512];
    static const char *const unknown[] = { "",   "128x",   "128x44", "linea",    "linearr",
                                           ":5", "128x4 ", " 128x4", "tile:3x4", "pages16" };
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        snprintf(sentence, sizeof sentence, "\"%s\" is no scale layout: choose one of %s", unknown[i], all_names);
        EXPECT(bsm_scale_layout_parse(unknown[i], &layout), BSM_EINVAL, sentence);
    }
    static const char *const tiles[] = {
        "tiles",
        "tiles:",
        "tiles:3",
        "tiles:3x",
        "tiles:x3",
        "tiles:0x3",
        "tiles:3x0",
        "tiles:-3x3",
        "tiles:3x3x",
        "tiles:3x 3",
        "tiles:3,3",
        "tiles:9223372036854775808x1",
        "tiles:1x99999999999999999999",
    };
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        snprintf(sentence, sizeof sentence,
                 "\"%s\": write tiles:ROWSxCOLUMNS with the size of a tile, as in tiles:32x8", tiles[i]);
        EXPECT(bsm_scale_layout_parse(tiles[i], &layout), BSM_EINVAL, sentence);
    }
    static const char *const pitches[] = {
        "linear:",     "linear:0",   "linear:-1",  "linear:+1",
        "linear:1.5",  "linear:12b", "linear:1:2", "linear:9223372036854775808",
        "linear:0x10",
    };
    for (size_t i = 0; i < sizeof pitches / sizeof pitches[0]; i++) {
        snprintf(sentence, sizeof sentence,
                 "\"%s\": write linear:PITCH with the bytes between rows, as in linear:128, or linear "
                 "alone for tight rows",
                 pitches[i]);
        EXPECT(bsm_scale_layout_parse(pitches[i], &layout), BSM_EINVAL, sentence);
    }
    EXPECT(bsm_scale_layout_parse("8x4:3", &layout), BSM_EINVAL,
           "\"8x4:3\": the layout 8x4 has no parameters, write 8x4");
    EXPECT(bsm_scale_layout_parse("cutlass:", &layout), BSM_EINVAL,
           "\"cutlass:\": the layout 128x4 has no parameters, write 128x4");
    EXPECT(bsm_scale_layout_parse("sm120_padded:32", &layout), BSM_EINVAL,
           "\"sm120_padded:32\": the layout sm120_padded has no parameters, write sm120_padded");
    EXPECT(bsm_scale_layout_parse(NULL, &layout), BSM_EINVAL, "the text of a scale layout is NULL");
    EXPECT(bsm_scale_layout_parse("linear", NULL), BSM_EINVAL, "layout is NULL");
    CHECK(t, layout.kind == BSM_LAYOUT_AITER && layout.pitch == 0 && layout.tile_rows == 0);
}

/* Parameters that are missing, and those that a layout does not use. */
static void parameters_are_checked(struct test *t)
{
    int64_t bytes = 77, a = 77, b = 77;
    EXPECT(bsm_scale_bytes(NULL, 1, 1, &bytes), BSM_EINVAL, "layout is NULL");
    EXPECT(bsm_scale_bytes(&(const bsm_scale_layout){ .kind = (bsm_layout)99 }, 1, 1, &bytes), BSM_EINVAL,
           "layout->kind=99: no layout has this number, see bsm_layout");
    EXPECT(bsm_scale_bytes(&(const bsm_scale_layout){ .kind = (bsm_layout)-1 }, 1, 1, &bytes), BSM_EINVAL,
           "layout->kind=-1: no layout has this number, see bsm_layout");
    EXPECT(bsm_scale_bytes(LAYOUT(TILES), 1, 1, &bytes), BSM_EINVAL,
           "layout->tile_rows=0: tiles need tile_rows > 0 and tile_columns > 0");
    EXPECT(bsm_scale_padded(LAYOUT(TILES, .tile_rows = 4, .tile_columns = -1), 1, 1, &a, &b), BSM_EINVAL,
           "layout->tile_columns=-1: tiles need tile_rows > 0 and tile_columns > 0");
    EXPECT(bsm_scale_offset(LAYOUT(LINEAR, .pitch = 4), 2, 5, 0, 0, &a), BSM_EINVAL,
           "layout->pitch=4: 5 columns in layout linear take 5 bytes a row; give at least that, or 0 for tight rows");
    EXPECT(bsm_scale_bytes(LAYOUT(LINEAR, .pitch = -5), 2, 5, &bytes), BSM_EINVAL,
           "layout->pitch=-5: 5 columns in layout linear take 5 bytes a row; give at least that, or 0 for tight rows");
    EXPECT(bsm_scale_bytes(LAYOUT(GGUF_MXFP4, .pitch = BSM_PITCH_PADDED_16), 2, 2, &bytes), BSM_EINVAL,
           "layout->pitch=-16: 2 columns in layout gguf_mxfp4 take 34 bytes a row; "
           "give at least that, or 0 for tight rows");
    EXPECT(bsm_scale_bytes(&(const bsm_scale_layout){ .kind = (bsm_layout)NO_LAYOUT }, 1, 1, &bytes), BSM_EINVAL,
           "layout->kind=4: no layout has this number, see bsm_layout");
    EXPECT(bsm_scale_bytes(LAYOUT(GGUF_MXFP4, .pitch = 33), 2, 2, &bytes), BSM_EINVAL,
           "layout->pitch=33: 2 columns in layout gguf_mxfp4 take 34 bytes a row; give at least that, or 0 for tight "
           "rows");
    EXPECT(bsm_scale_bytes(LAYOUT(GGUF_NVFP4, .pitch = 71), 2, 5, &bytes), BSM_EINVAL,
           "layout->pitch=71: 5 columns in layout gguf_nvfp4 take 72 bytes a row; give at least that, or 0 for tight "
           "rows");
    for (int kind = 0; kind < BSM_LAYOUT_COUNT; kind++) {
        const char *name = bsm_layout_name(kind);
        if (kind == NO_LAYOUT) continue;
        char sentence[256];
        bsm_scale_layout layout = { .kind = (bsm_layout)kind, .tile_rows = 9 };
        snprintf(sentence, sizeof sentence, "layout->tile_rows=9: the layout %s has no tile_rows, set it to 0", name);
        if (kind != BSM_LAYOUT_TILES) EXPECT(bsm_scale_bytes(&layout, 1, 1, &bytes), BSM_EINVAL, sentence);
        layout.tile_rows = 0, layout.tile_columns = 9;
        snprintf(sentence, sizeof sentence, "layout->tile_columns=9: the layout %s has no tile_columns, set it to 0",
                 name);
        if (kind != BSM_LAYOUT_TILES) EXPECT(bsm_scale_bytes(&layout, 1, 1, &bytes), BSM_EINVAL, sentence);
        layout.tile_columns = 0, layout.pitch = 900;
        snprintf(sentence, sizeof sentence, "layout->pitch=900: the layout %s has no pitch, set it to 0", name);
        const bool pitched =
            kind == BSM_LAYOUT_LINEAR || kind == BSM_LAYOUT_GGUF_MXFP4 || kind == BSM_LAYOUT_GGUF_NVFP4;
        if (!pitched) EXPECT(bsm_scale_bytes(&layout, 1, 1, &bytes), BSM_EINVAL, sentence);
        else EXPECT(bsm_scale_bytes(&layout, 1, 1, &b), BSM_OK, "");
    }
    CHECK(t, bytes == 77 && a == 77);
}

static void shapes_and_pointers_are_checked(struct test *t)
{
    int64_t a = 77, b = 77;
    EXPECT(bsm_scale_bytes(LAYOUT(8X4), -1, 1, &a), BSM_EINVAL, "rows=-1 of scales: rows must be >= 0");
    EXPECT(bsm_scale_bytes(LAYOUT(8X4), 1, INT64_MIN, &a), BSM_EINVAL,
           "columns=-9223372036854775808 of scales: columns must be >= 0");
    EXPECT(bsm_scale_bytes(LAYOUT(8X4), 1, 1, NULL), BSM_EINVAL, "bytes is NULL");
    EXPECT(bsm_scale_padded(LAYOUT(8X4), 1, 1, NULL, &b), BSM_EINVAL, "padded_rows is NULL");
    EXPECT(bsm_scale_padded(LAYOUT(8X4), 1, 1, &a, NULL), BSM_EINVAL, "padded_columns is NULL");
    EXPECT(bsm_scale_offset(LAYOUT(8X4), 1, 1, 0, 0, NULL), BSM_EINVAL, "offset is NULL");
    EXPECT(bsm_scale_offset(LAYOUT(8X4), 9, 1, 16, 0, &a), BSM_EINVAL,
           "row=16: must be at least 0 and below 16, the rows of layout 8x4 with its padding");
    EXPECT(bsm_scale_offset(LAYOUT(8X4), 9, 1, -1, 0, &a), BSM_EINVAL,
           "row=-1: must be at least 0 and below 16, the rows of layout 8x4 with its padding");
    EXPECT(bsm_scale_offset(LAYOUT(8X4), 9, 1, 0, 4, &a), BSM_EINVAL,
           "column=4: must be at least 0 and below 4, the columns of layout 8x4 with its padding");
    EXPECT(bsm_scale_offset(LAYOUT(8X4), 9, 1, 0, -1, &a), BSM_EINVAL,
           "column=-1: must be at least 0 and below 4, the columns of layout 8x4 with its padding");
    EXPECT(bsm_scale_offset(LAYOUT(LINEAR), 0, 1, 0, 0, &a), BSM_EINVAL,
           "row=0: must be at least 0 and below 0, the rows of layout linear with its padding");
    CHECK(t, a == 77 && b == 77);
    struct bsmi_scale_map map;
    EXPECT(bsmi_scale_map_make("a->scale_layout", LAYOUT(TILES), 1, 1, &map), BSM_EINVAL,
           "a->scale_layout.tile_rows=0: tiles need tile_rows > 0 and tile_columns > 0");
}

/* The largest sizes that still count, and one more. */
static void sizes_that_do_not_fit_are_refused(struct test *t)
{
    static const struct { bsm_scale_layout layout; int64_t rows, columns; bool fits; } sizes[] = {
        { KIND(LINEAR), INT64_MAX, 1, true }, { KIND(LINEAR), 1, INT64_MAX, true },
        { KIND(LINEAR), INT64_MAX / 2, 2, true }, { KIND(LINEAR), INT64_MAX / 2 + 1, 2, false },
        { KIND(LINEAR, .pitch = INT64_MAX), 1, 5, true }, { KIND(LINEAR, .pitch = INT64_MAX), 2, 1, false },
        { KIND(LINEAR, .pitch = INT64_MAX - 5), 2, 5, true }, { KIND(LINEAR, .pitch = INT64_MAX - 4), 2, 5, false },
        { KIND(LINEAR, .pitch = INT64_MAX), 3, 1, false },
        { KIND(128X4), INT64_MAX, 1, false }, { KIND(128X4), INT64_MAX - 127, 1, false },
        { KIND(128X4), ((int64_t)1 << 61) - 128, 4, true }, { KIND(128X4), ((int64_t)1 << 61) - 127, 1, false },
        { KIND(128X4), 1, ((int64_t)1 << 56) - 4, true }, { KIND(128X4), 1, ((int64_t)1 << 56) - 3, false },
        { KIND(8X4), 1, INT64_MAX, false },
        { KIND(LINEAR, .pitch = BSM_PITCH_PADDED_16), INT64_MAX / 16, 1, true },
        { KIND(LINEAR, .pitch = BSM_PITCH_PADDED_16), INT64_MAX / 16 + 2, 1, false },
        { KIND(LINEAR, .pitch = BSM_PITCH_PADDED_16), 1, INT64_MAX - 15, true },
        { KIND(LINEAR, .pitch = BSM_PITCH_PADDED_16), 1, INT64_MAX - 14, false },
          { KIND(CDNA4_16), INT64_MAX - 31, 1, false },
        { KIND(AITER), ((int64_t)1 << 60) - 256, 8, true }, { KIND(AITER), ((int64_t)1 << 60) - 255, 8, false },
        { KIND(DEEPGEMM), INT64_MAX, 1, false }, { KIND(DEEPGEMM), INT64_MAX - 3, 1, false },
        { KIND(TILES, .tile_rows = INT64_MAX, .tile_columns = 1), INT64_MAX, 1, true },
        { KIND(TILES, .tile_rows = INT64_MAX, .tile_columns = 2), 1, 1, false },
        { KIND(TILES, .tile_rows = INT64_MAX - 1, .tile_columns = 1), INT64_MAX, 1, false },
        { KIND(TILES, .tile_rows = 1, .tile_columns = INT64_MAX), 2, 1, false },
        { KIND(GGUF_MXFP4), 1, INT64_MAX / 17, true }, { KIND(GGUF_MXFP4), 1, INT64_MAX / 17 + 1, false },
        { KIND(GGUF_NVFP4), 1, INT64_MAX / 36 * 4, true }, { KIND(GGUF_NVFP4), 1, INT64_MAX / 36 * 4 + 1, false },
        { KIND(GGUF_NVFP4), 1, INT64_MAX, false },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char sentence[256];
        int64_t bytes = -5, offset = -5, padded_rows = -5, padded_columns = -5;
        const bsm_scale_layout *layout = &sizes[i].layout;
        const bsm_status wanted = sizes[i].fits ? BSM_OK : BSM_EOVERFLOW;
        snprintf(sentence, sizeof sentence,
                 "%" PRId64 " rows x %" PRId64 " columns of scales in layout %s: more than an int64_t counts",
                 sizes[i].rows, sizes[i].columns, bsm_layout_name((int)layout->kind));
        EXPECT(bsm_scale_bytes(layout, sizes[i].rows, sizes[i].columns, &bytes), wanted, sentence);
        EXPECT(bsm_scale_padded(layout, sizes[i].rows, sizes[i].columns, &padded_rows, &padded_columns), wanted,
               sentence);
        EXPECT(
            bsm_scale_offset(layout, sizes[i].rows, sizes[i].columns, sizes[i].rows - 1, sizes[i].columns - 1, &offset),
            wanted, sentence);
        if (sizes[i].fits) CHECK(t, bytes > 0 && offset >= 0 && offset < bytes && padded_rows >= sizes[i].rows);
        else CHECK(t, bytes == -5 && offset == -5 && padded_rows == -5 && padded_columns == -5);
    }
}

static void conversions_are_checked(struct test *t)
{
    unsigned char x[1024] = { 0 }, y[1024];
    memset(y, 0xaa, sizeof y);
    const bsm_scales linear = { x, 3, 5, KIND(LINEAR) }, packed = { y, 3, 5, KIND(8X4) };
    bsm_scales to = packed;
    EXPECT(bsm_scales_convert(NULL, &packed), BSM_EINVAL, "from is NULL");
    EXPECT(bsm_scales_convert(&linear, NULL), BSM_EINVAL, "to is NULL");
    to.data = NULL;
    EXPECT(bsm_scales_convert(&linear, &to), BSM_EINVAL, "to->data is NULL: it must hold 64 bytes");
    EXPECT(bsm_scales_convert(&to, &linear), BSM_EINVAL, "from->data is NULL: it must hold 64 bytes");
    to = packed, to.rows = 4;
    EXPECT(bsm_scales_convert(&linear, &to), BSM_EINVAL,
           "from has 3 rows x 5 columns of scales, to has 4 x 5: they must be equal");
    to = packed, to.columns = 4;
    EXPECT(bsm_scales_convert(&linear, &to), BSM_EINVAL,
           "from has 3 rows x 5 columns of scales, to has 3 x 4: they must be equal");
    to = packed, to.layout.pitch = 5;
    EXPECT(bsm_scales_convert(&linear, &to), BSM_EINVAL,
           "to->layout.pitch=5: the layout 8x4 has no pitch, set it to 0");
    to = packed, to.layout.kind = BSM_LAYOUT_TILES;
    EXPECT(bsm_scales_convert(&to, &linear), BSM_EINVAL,
           "from->layout.tile_rows=0: tiles need tile_rows > 0 and tile_columns > 0");
    to = packed, to.rows = to.columns = (int64_t)1 << 40;
    EXPECT(bsm_scales_convert(&to, &linear), BSM_EOVERFLOW,
           "1099511627776 rows x 1099511627776 columns of scales in layout 8x4: more than an int64_t counts");
    for (int i = 0; i < 1024; i++) CHECK(t, y[i] == 0xaa);
}

/* Swizzling what is swizzled; a tight pitch by name is the same layout as pitch 0. */
static void converting_twice_is_an_error(struct test *t)
{
    unsigned char x[8192], y[8192];
    for (int kind = 0; kind < BSM_LAYOUT_COUNT; kind++) {
        char sentence[256];
        if (kind == NO_LAYOUT) continue;
        bsm_scale_layout layout = { .kind = (bsm_layout)kind };
        if (kind == BSM_LAYOUT_TILES) layout.tile_rows = 4, layout.tile_columns = 4;
        const bsm_scales from = { x, 3, 5, layout }, to = { y, 3, 5, layout };
        snprintf(sentence, sizeof sentence,
                 "from and to are both in layout %s: the scales already are where they should be; copy "
                 "the bytes with memcpy if you need them twice",
                 bsm_layout_name(kind));
        EXPECT(bsm_scales_convert(&from, &to), BSM_EINVAL, sentence);
    }
    const char *tight = "from and to are both in layout linear: the scales already are where they should be; "
                        "copy the bytes with memcpy if you need them twice";
    const bsm_scales from = { x, 3, 5, KIND(LINEAR) };
    bsm_scales to = { y, 3, 5, KIND(LINEAR, .pitch = 5) };
    EXPECT(bsm_scales_convert(&from, &to), BSM_EINVAL, tight);
    to.layout.pitch = 16;
    const bsm_scales padded = { x, 3, 5, KIND(LINEAR, .pitch = BSM_PITCH_PADDED_16) };
    EXPECT(bsm_scales_convert(&padded, &to), BSM_EINVAL, tight);
    to.layout.pitch = 6;
    memset(x, 1, sizeof x);
    EXPECT(bsm_scales_convert(&from, &to), BSM_OK, "");
    const bsm_scales tiles = { x, 3, 5, KIND(TILES, .tile_rows = 4, .tile_columns = 4) };
    const bsm_scales wider = { y, 3, 5, KIND(TILES, .tile_rows = 4, .tile_columns = 5) };
    const bsm_scales taller = { y, 3, 5, KIND(TILES, .tile_rows = 5, .tile_columns = 4) };
    EXPECT(bsm_scales_convert(&tiles, &wider), BSM_OK, "");
    EXPECT(bsm_scales_convert(&tiles, &taller), BSM_OK, "");
}

/* Every distance of two buffers of 15 and 64 bytes: refused when they share a byte, served when they touch. */
static void overlap_is_refused(struct test *t)
{
    unsigned char memory[256] = { 0 };
    for (int from_at = 0; from_at < 180; from_at++) {
        const bsm_scales from = { memory + from_at, 3, 5, KIND(LINEAR) }, to = { memory + 80, 3, 5, KIND(8X4) };
        const bool shared = from_at < 80 + 64 && 80 < from_at + 15;
        CHECK(t, bsm_scales_convert(&from, &to) == (shared ? BSM_EINVAL : BSM_OK));
        CHECK(t, bsm_scales_convert(&to, &from) == (shared ? BSM_EINVAL : BSM_OK));
        CHECK(t, !shared || strncmp(bsm_last_error(), "from and to overlap: from has 64 bytes at ", 42) == 0);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(names_are_read_back), TEST(texts_are_read), TEST(wrong_texts_are_refused), TEST(parameters_are_checked),
        TEST(shapes_and_pointers_are_checked), TEST(sizes_that_do_not_fit_are_refused), TEST(conversions_are_checked),
        TEST(converting_twice_is_an_error), TEST(overlap_is_refused),
    };
    return TEST_MAIN(argc, argv, cases);
}

/* Layouts as nested loops, and what bsm_scale_layout_fits answers without a simulator: the nested loops give every
 * offset; each layout's answers; sentences that name two scales, a rule and its section; what is refused. */
#include "fit_cases.h"

#include <limits.h>

/* "(32, 4, 2)" from *text on: numbers, and *text behind it. */
static int read_numbers(const char **text, int64_t *number)
{
    int count = 0, used = 0;
    while (**text != '(') ++*text;
    do {
        ++*text;
        if (sscanf(*text, "%" SCNd64 "%n", &number[count++], &used) != 1) return -1;
        *text += used;
    } while (**text == ',' && count < 8);
    return count;
}

static int64_t evaluate(const int64_t *extent, const int64_t *stride, int count, int64_t index)
{
    int64_t at = 0;
    for (int i = 0; i < count; index /= extent[i], i++) at += (i + 1 < count ? index % extent[i] : index) * stride[i];
    return at;
}

static void modes_give_every_offset(struct test *t)
{
    static const int64_t shapes[][2] = { { 256, 8 }, { 130, 6 }, { 40, 16 }, { 1, 1 }, { 300, 1 }, { 1, 25 } };
    struct fit_case *c = malloc(sizeof *c);
    if (c == NULL) abort();
    for (int number = 0; number < FIT_LAYOUTS; number++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            char text[512];
            size_t length = 0;
            int64_t extent[2][8], stride[2][8];
            int count[2];
            fit_case_make(t, c, number, shapes[i][0], shapes[i][1], 0, 255);
            if (bsm_scale_layout_modes(&c->layout, c->rows, c->columns, text, sizeof text, &length) != BSM_OK)
                FAIL(t, "%s: %s", c->name, bsm_last_error());
            CHECK(t, length == strlen(text));
            const char *at = text;
            for (int axis = 0; axis < 2; axis++) {
                count[axis] = read_numbers(&at, extent[axis]);
                if (count[axis] < 1 || read_numbers(&at, stride[axis]) != count[axis]) FAIL(t, "%s", text);
            }
            for (int64_t r = 0; r < c->padded_rows; r++)
                for (int64_t s = 0; s < c->padded_columns; s++)
                    if (fit_offset(c, r, s) != evaluate(extent[0], stride[0], count[0], r)
                                                   + evaluate(extent[1], stride[1], count[1], s))
                        FAIL(t, "%s: (%d, %d) by %s", c->name, (int)r, (int)s, text);
        }
    free(c);
}

static void modes_are_written(struct test *t)
{
    char text[64] = "x";
    size_t length = 0;
    const bsm_scale_layout packed = KIND(128X4), linear = KIND(LINEAR), wide = KIND(TILES, .tile_rows = 1000000,
                                                                                    .tile_columns = 3);
    CHECK(t, bsm_scale_layout_modes(&packed, 256, 8, text, sizeof text, &length) == BSM_OK
                 && strcmp(text, "rows (32, 4, 2) : (16, 4, 1024), columns (4, 2) : (1, 512)") == 0 && length == 58);
    CHECK(t, bsm_scale_layout_modes(&packed, 256, 8, text, 5, &length) == BSM_OK && strcmp(text, "rows") == 0
                 && length == 58);
    CHECK(t, bsm_scale_layout_modes(&packed, 256, 8, NULL, 0, NULL) == BSM_OK);
    CHECK(t, bsm_scale_layout_modes(&linear, 1, 1, text, sizeof text, NULL) == BSM_OK
                 && strcmp(text, "rows (1) : (0), columns (1) : (0)") == 0);
    CHECK(t, bsm_scale_layout_modes(&wide, 3000000, 3, text, sizeof text, NULL) == BSM_OK
                 && strcmp(text, "rows (3000000) : (3), columns (3) : (1)") == 0);
    CHECK(t, bsm_scale_layout_modes(&wide, 3000000, 5, text, sizeof text, NULL) == BSM_OK
                 && strcmp(text, "rows (1000000, 3) : (3, 6000000), columns (3, 2) : (1, 3000000)") == 0);
}

/* The answers for a matrix of 2880 x 2880 in blocks of 32: 90 columns. */
static void each_layout_fits_its_own_copy(struct test *t)
{
    static const struct { const char *layout, *fits; } answers[] = {
        { "linear", "" }, { "sm120_padded", "tma ldmatrix " }, { "128x4", "tcgen05.cp tma ldmatrix " },
        { "8x4", "tma " }, { "tiles:32x8", "tma " }, { "tiles:3x5", "" }, { "cdna4_16", "tma mfma_16 " },
        { "cdna4_32", "tma mfma_32 " }, { "aiter", "tma mfma_16 " }, { "deepgemm", "tma " }, { "gguf_mxfp4", "" },
        { "gguf_nvfp4", "" },
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        bsm_scale_layout layout;
        char fits[128] = "";
        CHECK_OR_RETURN(t, bsm_scale_layout_parse(answers[i].layout, &layout) == BSM_OK);
        for (int copy = 0; copy < BSM_SCALE_COPY_COUNT; copy++) {
            bsm_scale_fit fit = { .struct_size = sizeof fit };
            CHECK(t, bsm_scale_layout_fits(&layout, 2880, 90, (bsm_scale_copy)copy, &fit) == BSM_OK);
            if (fit.fits) snprintf(fits + strlen(fits), sizeof fits - strlen(fits), "%s ", bsm_scale_copy_name(copy));
            else if (strstr(fit.text, " ISA") == NULL) FAIL(t, "%s: no section in \"%s\"", answers[i].layout, fit.text);
        }
        if (strcmp(fits, answers[i].fits) != 0) FAIL(t, "%s fits %s", answers[i].layout, fits);
    }
}

static void sentences(struct test *t)
{
    static const struct {
        bsm_scale_layout layout;
        int64_t rows, columns;
        bsm_scale_copy copy;
        const char *text;
    } x[] = {
        { KIND(128X4), 256, 8, BSM_SCALE_COPY_TCGEN05_CP,
          "tcgen05.cp.32x128b.warpx4 by a matrix descriptor without swizzle, stride dimension byte offset 128, for "
          "each tile of 128 rows x 4 columns" },
        { KIND(TILES, .tile_rows = 128, .tile_columns = 4), 256, 8, BSM_SCALE_COPY_TCGEN05_CP,
          "rows 0 and 32 lie at bytes 0 and 128, not 4 apart: a line of 16 bytes goes to four columns of one lane, "
          "which hold rows r, r + 32, r + 64 and r + 96 (PTX ISA 9.7.16.9.2; where scales are read: 9.7.16.10)" },
        { KIND(8X4), 40, 8, BSM_SCALE_COPY_TCGEN05_CP,
          "the layout has 40 rows x 8 columns with its padding: a copy takes whole tiles of 128 rows x 4 columns (PTX "
          "ISA 9.7.16.9.2)" },
        { KIND(LINEAR), 2880, 90, BSM_SCALE_COPY_TMA,
          "the stride of dimension 1 is 90 bytes: strides are multiples of 16 (PTX ISA 5.5, CUDA driver API "
          "cuTensorMapEncodeTiled)" },
        { KIND(LINEAR, .pitch = INT64_C(1) << 40), 3, 16, BSM_SCALE_COPY_TMA,
          "the stride of dimension 1 is 1099511627776 bytes: strides are below 2^40 (PTX ISA 5.5, CUDA driver API "
          "cuTensorMapEncodeTiled)" },
        { KIND(LINEAR, .pitch = 16), INT64_C(5000000000), 16, BSM_SCALE_COPY_TMA,
          "dimension 1 has 5000000000 elements: there are 1 to 2^32 (PTX ISA 5.5, CUDA driver API "
          "cuTensorMapEncodeTiled)" },
        { KIND(TILES, .tile_rows = 16, .tile_columns = 263), 32, 526, BSM_SCALE_COPY_TMA,
          "the smallest box has 263 elements in dimension 1: there are 1 to 256 (PTX ISA 5.5, CUDA driver API "
          "cuTensorMapEncodeTiled)" },
        { KIND(128X4), 256, 8, BSM_SCALE_COPY_TMA,
          "a tensor of bytes, dimensions (256, 2, 2, 2), strides 256, 512, 1024; the smallest box (256, 2, 1, 1) has "
          "128 rows x 4 columns" },
        { KIND(8X4), 64, 8, BSM_SCALE_COPY_LDMATRIX,
          "rows 0 and 1 lie at bytes 0 and 4, in different quarters of 16: a matrix has rows of 16 bytes at multiples "
          "of 16 (PTX ISA 9.7.14.5.15), and its lanes 4 n + t, one t for all n, give mma.sync the scales of row n "
          "(9.7.14.3)" },
        { KIND(CDNA4_16), 64, 8, BSM_SCALE_COPY_LDMATRIX,
          "columns 0 and 1 of row 0 lie at bytes 0 and 64, not 1 apart: a lane gives mma.sync four columns of a row, "
          "from four bytes side by side (PTX ISA 9.7.14.3)" },
        { KIND(CDNA4_16), 64, 8, BSM_SCALE_COPY_MFMA_32,
          "rows 0 and 16 lie at bytes 0 and 1, bytes 0 and 1 of 32 bits: v_mfma_scale of 32 rows x 2 columns takes one "
          "byte of each lane's 32 bits, the same in all lanes (CDNA4 ISA, Matrix Arithmetic Instructions, op_sel)" },
        { KIND(CDNA4_16), 64, 8, BSM_SCALE_COPY_MFMA_16,
          "lane l loads the 32 bits with the scale of row l % 16, column l / 16; for rows 0 to 15 and columns 0 to 3 "
          "it is byte 0 of them (op_sel)" },
    };
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) {
        bsm_scale_fit fit = { .struct_size = sizeof fit };
        if (bsm_scale_layout_fits(&x[i].layout, x[i].rows, x[i].columns, x[i].copy, &fit) != BSM_OK)
            FAIL(t, "%s", bsm_last_error());
        if (strcmp(fit.text, x[i].text) != 0) FAIL(t, "\"%s\", not \"%s\"", fit.text, x[i].text);
    }
}

static void names(struct test *t)
{
    for (int i = 0; i < BSM_SCALE_COPY_COUNT; i++) CHECK(t, bsm_scale_copy_from_name(bsm_scale_copy_name(i)) == i);
    CHECK(t, bsm_scale_copy_name(-1) == NULL && bsm_scale_copy_name(BSM_SCALE_COPY_COUNT) == NULL);
    CHECK(t, bsm_scale_copy_from_name("TMA") == -1 && bsm_scale_copy_from_name("") == -1
                 && bsm_scale_copy_from_name(NULL) == -1);
}

#define REFUSED(call, status, sentence) \
    CHECK(t, (call) == (status) && strcmp(bsm_last_error(), sentence) == 0)

static void what_is_refused(struct test *t)
{
    const bsm_scale_layout packed = KIND(128X4), tiles = KIND(TILES);
    bsm_scale_fit fit = { .struct_size = sizeof fit, .lane = 77 };
    char text[8];
    REFUSED(bsm_scale_layout_fits(&packed, 1, 1, BSM_SCALE_COPY_TMA, NULL), BSM_EINVAL, "fit is NULL");
    REFUSED(bsm_scale_layout_fits(NULL, 1, 1, BSM_SCALE_COPY_TMA, &fit), BSM_EINVAL, "layout is NULL");
    REFUSED(bsm_scale_layout_fits(&packed, 0, 1, BSM_SCALE_COPY_TMA, &fit), BSM_EINVAL,
            "rows=0 of scales: a layout is looked at where it has scales");
    REFUSED(bsm_scale_layout_fits(&packed, 1, 0, BSM_SCALE_COPY_TMA, &fit), BSM_EINVAL,
            "columns=0 of scales: a layout is looked at where it has scales");
    REFUSED(bsm_scale_layout_fits(&packed, -1, 1, BSM_SCALE_COPY_TMA, &fit), BSM_EINVAL,
            "rows=-1 of scales: rows must be >= 0");
    REFUSED(bsm_scale_layout_fits(&packed, 1, 1, (bsm_scale_copy)5, &fit), BSM_EINVAL,
            "copy=5: no copy has this number, see bsm_scale_copy");
    REFUSED(bsm_scale_layout_fits(&tiles, 1, 1, BSM_SCALE_COPY_TMA, &fit), BSM_EINVAL,
            "layout->tile_rows=0: tiles need tile_rows > 0 and tile_columns > 0");
    REFUSED(bsm_scale_layout_fits(&packed, INT64_MAX, 1, BSM_SCALE_COPY_TMA, &fit), BSM_EOVERFLOW,
            "9223372036854775807 rows x 1 columns of scales in layout 128x4: more than an int64_t counts");
    REFUSED(bsm_scale_layout_modes(&packed, 1, 1, NULL, 1, NULL), BSM_EINVAL, "text is NULL, and bytes=1");
    REFUSED(bsm_scale_layout_modes(&packed, 0, 1, text, sizeof text, NULL), BSM_EINVAL,
            "rows=0 of scales: a layout is looked at where it has scales");
    CHECK(t, fit.lane == 77);
    fit.struct_size = 8;
    CHECK(t, bsm_scale_layout_fits(&packed, 1, 1, BSM_SCALE_COPY_TMA, &fit) == BSM_EINVAL
                 && strstr(bsm_last_error(), "fit->struct_size is 8: set it to sizeof(bsm_scale_fit), ") != NULL);
}

/* Sizes near the largest end quickly. */
static void huge_shapes(struct test *t)
{
    for (int number = 0; number < FIT_LAYOUTS; number++)
        for (int copy = 0; copy < BSM_SCALE_COPY_COUNT; copy++) {
            bsm_scale_fit fit = { .struct_size = sizeof fit };
            const bsm_scale_layout layout = fit_layout(number, 1);
            const bsm_status status = bsm_scale_layout_fits(&layout, INT64_C(1) << 48, 1, (bsm_scale_copy)copy, &fit);
            CHECK(t, status == BSM_OK || status == BSM_EOVERFLOW);
        }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(modes_give_every_offset), TEST(modes_are_written), TEST(each_layout_fits_its_own_copy), TEST(sentences),
        TEST(names), TEST(what_is_refused), TEST(huge_shapes),
    };
    return TEST_MAIN(argc, argv, cases);
}

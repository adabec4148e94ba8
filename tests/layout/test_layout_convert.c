/* From any layout to any other: every scale arrives, padding is zero, nothing else is touched. */
#include "shapes.h"
#include "test.h"
#include "views.h"

#include <stdlib.h>

/* One buffer in one layout, in guarded memory. */
struct buffer {
    bsm_scales scales;
    struct view view;
    int64_t bytes;
    unsigned char *data;
};

static bool buffer_make(struct test *t, int number, int64_t rows, int64_t columns, int fill, struct buffer *buffer)
{
    buffer->scales = (bsm_scales){ .rows = rows, .columns = columns, .layout = variant(number, columns) };
    if (!view_make(&buffer->scales.layout, rows, columns, &buffer->view) ||
        bsm_scale_bytes(&buffer->scales.layout, rows, columns, &buffer->bytes) != BSM_OK)
        return FAIL(t, "%s", bsm_last_error()), false;
    buffer->data = guarded_at_end((size_t)buffer->bytes, 1, fill);
    buffer->scales.data = buffer->data;
    return true;
}

/* The code that the tests give to the scale (row, column). */
static unsigned char code_of(int64_t row, int64_t column)
{
    const uint64_t mixed = ((uint64_t)row * 1000003 + (uint64_t)column + 1) * 0x9e3779b97f4a7c15u;
    return (unsigned char)(mixed >> 53);
}

static void write_codes(struct buffer *buffer)
{
    struct place place = { 0 };
    do
        if (place.row < buffer->scales.rows && place.column < buffer->scales.columns)
            buffer->data[place.byte] = code_of(place.row, place.column);
    while (view_next(&buffer->view, &place));
}

/* Every byte of the buffer: codes, `padding` in the padding, and `gap` in what belongs to no scale. */
static bool holds_codes(struct test *t, const struct buffer *buffer, unsigned char padding, unsigned char gap,
                        const char *what)
{
    const char *name = bsm_layout_name((int)buffer->scales.layout.kind);
    unsigned char *wanted = malloc((size_t)buffer->bytes);
    memset(wanted, gap, (size_t)buffer->bytes);
    struct place place = { 0 };
    do {
        const bool inside = place.row < buffer->scales.rows && place.column < buffer->scales.columns;
        wanted[place.byte] = inside ? code_of(place.row, place.column) : padding;
    } while (view_next(&buffer->view, &place));
    int64_t byte = 0;
    while (byte < buffer->bytes && wanted[byte] == buffer->data[byte]) byte++;
    if (byte < buffer->bytes)
        FAIL(t, "%s, %" PRId64 " x %" PRId64 ", %s: byte %" PRId64 " is 0x%02x, not 0x%02x", name, buffer->scales.rows,
             buffer->scales.columns, what, byte, buffer->data[byte], wanted[byte]);
    free(wanted);
    return byte == buffer->bytes;
}

/* Linear rows of one pitch are one layout, and converting is refused. */
static bool same_layout(int from, int to, int64_t columns)
{
    const bsm_scale_layout layouts[2] = { variant(from, columns), variant(to, columns) };
    int64_t pitches[2];
    for (int i = 0; i < 2; i++) {
        const int64_t pitch = layouts[i].pitch;
        pitches[i] = pitch == BSM_PITCH_PADDED_16 ? (columns + 15) / 16 * 16 : pitch != 0 ? pitch : columns;
    }
    return from == to
           || (layouts[0].kind == BSM_LAYOUT_LINEAR && layouts[1].kind == BSM_LAYOUT_LINEAR
               && pitches[0] == pitches[1]);
}

/* There, with 0x00 or 0xff in the padding of both sides, and back into a third buffer. */
static bool round_trip(struct test *t, int from, int to, int64_t rows, int64_t columns, unsigned char poison)
{
    struct buffer first, second, third;
    if (!buffer_make(t, from, rows, columns, poison, &first)) return false;
    if (!buffer_make(t, to, rows, columns, (unsigned char)~poison, &second)) return false;
    if (!buffer_make(t, from, rows, columns, (unsigned char)~poison, &third)) return false;
    write_codes(&first);
    bool good = bsm_scales_convert(&first.scales, &second.scales) == BSM_OK;
    good = good && bsm_scales_convert(&second.scales, &third.scales) == BSM_OK;
    if (!good) FAIL(t, "%s", bsm_last_error());
    good = good && holds_codes(t, &first, poison, poison, "the source");
    good = good && holds_codes(t, &second, 0, (unsigned char)~poison, "converted");
    good = good && holds_codes(t, &third, 0, (unsigned char)~poison, "converted back");
    guarded_free(first.data), guarded_free(second.data), guarded_free(third.data);
    return good;
}

/* K = 2880 gives 90 columns of 32 and 180 of 16; the rows that other libraries got wrong. */
static void any_to_any_and_back(struct test *t)
{
    static const int64_t some_rows[] = { 1, 31, 33, 127, 129 }, some_columns[] = { 1, 2, 3, 5, 8, 17, 90 };
    for (int from = 0; from < VARIANTS; from++)
        for (int to = 0; to < VARIANTS; to++)
            for (size_t i = 0; i < 5; i++)
                for (size_t j = 0; j < 7; j++)
                    for (int poison = 0; poison <= 255 && !same_layout(from, to, some_columns[j]); poison += 255)
                        if (!round_trip(t, from, to, some_rows[i], some_columns[j], (unsigned char)poison)) return;
}

static void random_shapes_there_and_back(struct test *t)
{
    for (int repeat = 0; repeat < 300; repeat++) {
        const int from = (int)rnd_below(t, VARIANTS), step = (int)rnd_between(t, 1, VARIANTS - 1);
        const int64_t rows = rnd_between(t, 1, 600), columns = rnd_between(t, 1, 700);
        if (same_layout(from, (from + step) % VARIANTS, columns)) continue;
        if (!round_trip(t, from, (from + step) % VARIANTS, rows, columns, rnd_below(t, 2) == 0 ? 0 : 0xff)) return;
    }
}

/* The data pointer has no alignment: buffers at both ends of a page give every residue. */
static void buffers_need_no_alignment(struct test *t)
{
    for (int shift = 0; shift < 32; shift++) {
        const bsm_scale_layout linear = KIND(LINEAR), packed = KIND(128X4);
        unsigned char *codes = guarded_at_start((size_t)(33 * 9 + shift), 0);
        unsigned char *blocks = guarded_at_start((size_t)(1536 + shift), 0xff);
        for (int i = 0; i < 33 * 9; i++) codes[shift + i] = (unsigned char)(i + 1);
        const bsm_scales from = { codes + shift, 33, 9, linear }, to = { blocks + shift, 33, 9, packed };
        CHECK_OR_RETURN(t, bsm_scales_convert(&from, &to) == BSM_OK);
        CHECK(t, shift == 0 || blocks[shift - 1] == 0xff);
        CHECK(t, blocks[shift] == 1 && blocks[shift + 512] == 5 && blocks[shift + 16] == 10);
        CHECK(t, blocks[shift + 4] == (32 * 9 + 1) % 256);
        guarded_free(codes), guarded_free(blocks);
    }
}

static void clearing_padding_leaves_scales_and_gaps(struct test *t)
{
    for (int number = 0; number < VARIANTS; number++)
        for (int64_t rows = 1; rows < 300; rows += 43)
            for (int64_t columns = 1; columns < 40; columns += 3) {
                struct buffer buffer;
                struct bsmi_scale_map map;
                CHECK_OR_RETURN(t, buffer_make(t, number, rows, columns, 0xff, &buffer));
                write_codes(&buffer);
                CHECK_OR_RETURN(t, bsmi_scale_map_make("layout", &buffer.scales.layout, rows, columns, &map) == BSM_OK);
                bsmi_scale_clear_padding(&map, buffer.data);
                CHECK_OR_RETURN(t, holds_codes(t, &buffer, 0, 0xff, "cleared"));
                guarded_free(buffer.data);
            }
}

/* Nothing to do is done without touching pointers. */
static void empty_shapes_convert(struct test *t)
{
    for (int from = 0; from < VARIANTS; from++)
        for (int to = 0; to < VARIANTS; to++)
            for (int which = 0; which < 3; which++) {
                const int64_t rows = which == 0 ? 5 : 0, columns = which == 1 ? 5 : 0;
                if (same_layout(from, to, columns)) continue;
                const bsm_scales a = { NULL, rows, columns, variant(from, columns) };
                const bsm_scales b = { NULL, rows, columns, variant(to, columns) };
                if (bsm_scales_convert(&a, &b) != BSM_OK) FAIL(t, "%s", bsm_last_error());
            }
}

/* The bytes of a GGUF file, written down. */
static void gguf_blocks_keep_their_elements(struct test *t)
{
    unsigned char blocks[2 * 36];
    for (int i = 0; i < 72; i++) blocks[i] = (unsigned char)i;
    unsigned char codes[5] = { 0 };
    const bsm_scales nvfp4 = { blocks, 1, 5, KIND(GGUF_NVFP4) }, linear = { codes, 1, 5, KIND(LINEAR) };
    CHECK(t, bsm_scales_convert(&nvfp4, &linear) == BSM_OK);
    CHECK(t, memcmp(codes, (unsigned char[]){ 0, 1, 2, 3, 36 }, 5) == 0);
    memcpy(codes, (unsigned char[]){ 101, 102, 103, 104, 105 }, 5);
    CHECK(t, bsm_scales_convert(&linear, &nvfp4) == BSM_OK);
    for (int i = 0; i < 72; i++) {
        const int in_block = i % 36, column = i / 36 * 4 + in_block;
        CHECK(t, blocks[i] == (in_block >= 4 ? i : column < 5 ? 101 + column : 0));
    }
    unsigned char rows[2 * 40];
    memset(rows, 0xee, sizeof rows);
    const bsm_scales mxfp4 = { rows, 2, 2, KIND(GGUF_MXFP4, .pitch = 40) }, source = { codes, 2, 2, KIND(LINEAR) };
    CHECK(t, bsm_scales_convert(&source, &mxfp4) == BSM_OK);
    for (int i = 0; i < 80; i++)
        CHECK(t, rows[i] == (i == 0 ? 101 : i == 17 ? 102 : i == 40 ? 103 : i == 57 ? 104 : 0xee));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(any_to_any_and_back),       TEST(random_shapes_there_and_back),
        TEST(buffers_need_no_alignment), TEST(clearing_padding_leaves_scales_and_gaps),
        TEST(empty_shapes_convert),      TEST(gguf_blocks_keep_their_elements),
    };
    return TEST_MAIN(argc, argv, cases);
}

/* Scale layouts on the device: every one to every other, against bsm_scales_convert; and the padding alone. */
#include "cuda/harness/device.h"

#include <stdlib.h>

static const struct {
    int64_t rows, columns;
} shapes[] = { { 1, 1 }, { 3, 5 }, { 33, 9 }, { 129, 17 }, { 256, 64 }, { 300, 70 } };

static bsm_scale_layout layout_of(int kind, int64_t columns, bool loose)
{
    if (kind == NO_LAYOUT)
        return (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR, .pitch = loose ? columns + 5 : (columns + 31) / 16 * 16 };
    bsm_scale_layout layout = { .kind = (bsm_layout)kind };
    if (kind == BSM_LAYOUT_TILES) layout.tile_rows = loose ? 24 : 16, layout.tile_columns = loose ? 7 : 8;
    if (kind == BSM_LAYOUT_LINEAR && loose) layout.pitch = columns + 3;
    return layout;
}

static void convert(struct test *t, bsm_scale_layout from_layout, bsm_scale_layout to_layout, int64_t rows,
                    int64_t columns, int offset, int ctas)
{
    struct bsmi_scale_map from_map, to_map;
    if (bsmi_scale_map_make("from", &from_layout, rows, columns, &from_map) != BSM_OK
        || bsmi_scale_map_make("to", &to_layout, rows, columns, &to_map) != BSM_OK) {
        FAIL(t, "%s", bsm_last_error());
        return;
    }
    unsigned char *from = malloc((size_t)from_map.bytes), *want = malloc((size_t)to_map.bytes),
                  *got = malloc((size_t)to_map.bytes);
    for (int64_t i = 0; i < from_map.bytes; i++) from[i] = (unsigned char)rnd(t);
    memset(want, 0xa5, (size_t)to_map.bytes);
    const bsm_scales host_from = { from, rows, columns, from_layout }, host_to = { want, rows, columns, to_layout };
    CHECK(t, bsm_scales_convert(&host_from, &host_to) == BSM_OK);

    const struct bsmi_convert_scales_parameters p = {
        .from = device_copy(t, from, (size_t)from_map.bytes, (size_t)offset),
        .to = device_fill(t, 0xa5, (size_t)to_map.bytes, (size_t)offset),
        .from_layout = bsmi_device_layout_of(&from_map),
        .to_layout = bsmi_device_layout_of(&to_map),
    };
    device_launch(t, "bsmi_convert_scales", ctas, BSMI_CONVERT_THREADS, &p);
    device_read(t, got, p.to, (size_t)to_map.bytes);
    if (memcmp(got, want, (size_t)to_map.bytes) != 0)
        FAIL(t, "%s to %s, %lldx%lld, offset %d: other bytes than on the CPU", bsm_layout_name((int)from_layout.kind),
             bsm_layout_name((int)to_layout.kind), (long long)rows, (long long)columns, offset);
    device_free_all(t);
    free(from), free(want), free(got);
}

static void every_layout_to_every_other(struct test *t)
{
    if (!device_open(t)) return;
    int number = 0;
    for (int from = 0; from < BSM_LAYOUT_COUNT; from++)
        for (int to = 0; to < BSM_LAYOUT_COUNT; to++, number++) {
            const size_t s = (size_t)number % (sizeof shapes / sizeof shapes[0]);
            if (from == to) continue;
            convert(t, layout_of(from, shapes[s].columns, number % 2 != 0),
                    layout_of(to, shapes[s].columns, number % 2 == 0), shapes[s].rows, shapes[s].columns, number % 3,
                    3);
        }
}

/* Columns in sixteens and an address that is aligned: 16 bytes a time, but for the rows behind the last 128. */
static void whole_units(struct test *t)
{
    static const struct {
        int64_t rows, columns;
    } sizes[] = { { 128, 16 }, { 300, 160 }, { 257, 272 } };
    if (!device_open(t)) return;
    for (int from = 0; from < BSM_LAYOUT_COUNT; from++)
        for (int to = 0; to < BSM_LAYOUT_COUNT; to++) {
            if (from == to) continue;
            if (from != BSM_LAYOUT_LINEAR && from != NO_LAYOUT && to != BSM_LAYOUT_LINEAR && to != NO_LAYOUT) continue;
            const size_t s = (size_t)(from + to) % (sizeof sizes / sizeof sizes[0]);
            convert(t, layout_of(from, sizes[s].columns, false), layout_of(to, sizes[s].columns, false), sizes[s].rows,
                    sizes[s].columns, 0, sizes[s].columns > 100 ? 1 : 3);
        }
}

/* One CTA converts four tiles, all without padding, by way of the same shared memory: a tile must not be written there
 * before all warps have read the one before it.  Between layouts of the same order every thread reads what it wrote
 * itself. */
static void tiles_of_one_cta(struct test *t)
{
    static const int kinds[] = { BSM_LAYOUT_128X4, BSM_LAYOUT_8X4, BSM_LAYOUT_DEEPGEMM };
    const int count = (int)(sizeof kinds / sizeof kinds[0]);
    if (!device_open(t)) return;
    for (int from = 0; from < count; from++)
        for (int to = 0; to < count; to++)
            if (from != to)
                convert(t, layout_of(kinds[from], 128, false), layout_of(kinds[to], 128, false), 256, 128, 0, 1);
}

static void one_layout_with_other_parameters(struct test *t)
{
    if (!device_open(t)) return;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t columns = shapes[s].columns;
        convert(t, layout_of(BSM_LAYOUT_LINEAR, columns, false), layout_of(BSM_LAYOUT_LINEAR, columns, true),
                shapes[s].rows, columns, 0, 3);
        convert(t, layout_of(BSM_LAYOUT_TILES, columns, false), layout_of(BSM_LAYOUT_TILES, columns, true),
                shapes[s].rows, columns, 0, 3);
        convert(t, layout_of(BSM_LAYOUT_LINEAR, columns, false), layout_of(BSM_LAYOUT_128X4, columns, false),
                shapes[s].rows, columns, 0, 3);
        convert(t, layout_of(BSM_LAYOUT_128X4, columns, false), layout_of(BSM_LAYOUT_LINEAR, columns, false),
                shapes[s].rows, columns, 0, 3);
    }
}

static void padding_alone(struct test *t)
{
    if (!device_open(t)) return;
    for (int kind = 0; kind < BSM_LAYOUT_COUNT; kind++) {
        const bsm_scale_layout layout = layout_of(kind, 9, true);
        struct bsmi_scale_map map;
        CHECK(t, bsmi_scale_map_make("layout", &layout, 33, 9, &map) == BSM_OK);
        const int64_t batch_bytes = map.bytes + 5, bytes = batch_bytes + map.bytes;
        unsigned char *want = malloc((size_t)bytes), *got = malloc((size_t)bytes);
        memset(want, 0xa5, (size_t)bytes);
        for (int64_t b = 0; b < 2; b++) bsmi_scale_clear_padding(&map, want + b * batch_bytes);
        const struct bsmi_clear_padding_parameters p = { device_fill(t, 0xa5, (size_t)bytes, 0),
                                                         bsmi_device_layout_of(&map), 2, batch_bytes };
        device_launch(t, "bsmi_clear_padding", 2, BSMI_CONVERT_THREADS, &p);
        device_read(t, got, p.scales, (size_t)bytes);
        if (memcmp(got, want, (size_t)bytes) != 0) FAIL(t, "%s: other padding than on the CPU", bsm_layout_name(kind));
        device_free_all(t);
        free(want), free(got);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_layout_to_every_other), TEST(whole_units),
                                              TEST(tiles_of_one_cta), TEST(one_layout_with_other_parameters),
                                              TEST(padding_alone) };
    return TEST_MAIN(argc, argv, cases);
}

/* bsmi_dequantize against bsm_dequantize: the same bytes of every format, packing, layout and destination. */
#include "cuda/harness/device.h"

#include "core/core.h"

#include <stdlib.h>

static bsm_scale_layout layout_of(int kind)
{
    if (kind == NO_LAYOUT) return (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 };
    bsm_scale_layout layout = { .kind = (bsm_layout)kind };
    if (kind == BSM_LAYOUT_TILES) layout.tile_rows = 5, layout.tile_columns = 3;
    return layout;
}

static void case_of(struct test *t, struct twin_wish wish, bsm_real type, bool transposed, int64_t extra)
{
    struct twin twin;
    struct bsmi_reals resolved;
    bsm_context *context = NULL;
    if (!twin_make(t, &wish, &twin)) return;
    CHECK(t, bsm_context_create(NULL, &context) == BSM_OK);
    const int64_t rows = wish.rows, columns = wish.columns, batch = twin.resolved.batch,
                  pitch = (transposed ? rows : columns) + extra;
    const int64_t stride = pitch * (transposed ? columns : rows);
    const size_t bytes = (size_t)(stride * batch) * bsm_real_bytes((int)type);
    unsigned char *want = malloc(bytes), *got = malloc(bytes);
    memset(want, 0xa5, bytes);
    const bsm_real_matrix host = { .struct_size = sizeof host, .type = type, .rows = rows, .columns = columns,
                                   .data = want,
                                   .row_stride = transposed ? 1 : pitch, .column_stride = transposed ? pitch : 1,
                                   .batch = batch,
                                   .batch_stride = stride };
    CHECK(t,
          bsm_dequantize(context, &twin.host, &host) == BSM_OK && bsmi_reals_resolve("d", &host, &resolved) == BSM_OK);
    twin_upload(t, &wish, &twin);
    struct bsmi_dequantize_parameters p = { twin.device, bsmi_device_reals_of(&resolved) };
    p.destination.data = device_fill(t, 0xa5, bytes, 0);
    device_launch(t, "bsmi_dequantize", 2, BSMI_DEQUANTIZE_THREADS, &p);
    device_read(t, got, p.destination.data, bytes);
    if (memcmp(want, got, bytes) != 0)
        FAIL(t, "%s -> %s, transposed %d, pitch + %d: other bytes than on the CPU", wish_text(&wish),
             bsm_real_name((int)type), (int)transposed, (int)extra);
    device_free_all(t);
    free(want), free(got);
    twin_free(&twin);
    bsm_context_destroy(context);
}

static void every_format_packing_and_type(struct test *t)
{
    static const int64_t columns[] = { 1, 7, 31, 64, 65, 100, 192, 333 };
    if (!device_open(t)) return;
    int number = 0;
    for (int format = 1; format < BSM_FORMAT_COUNT; format++)
        for (int packing = 0; packing < BSM_PACKING_COUNT; packing++)
            for (int type = 0; type < BSM_REAL_COUNT; type++, number++) {
                const int bits = bsm_element_get((int)bsm_format_get(format)->element)->bits;
                const bool gguf = packing == BSM_PACKING_GGUF;
                const struct twin_wish wish = {
                    .format = (bsm_format)format,
                    .packing = (bsm_packing)packing,
                    .rows = 2 + number % 3,
                    .columns = columns[number % 8],
                    .batch = 1 + number % 2,
                    .extra_pitch = number % 5 == 0,
                    .offset = bits > 8 ? 4 * (number % 2) : number % 4,
                    .layout = layout_of(!gguf                 ? number % BSM_LAYOUT_GGUF_MXFP4
                                        : format == BSM_MXFP4 ? BSM_LAYOUT_GGUF_MXFP4
                                                              : BSM_LAYOUT_GGUF_NVFP4),
                    .tensor_scale = number / 4 % 2 == 0 ? 0 : 0.37f * (float)(number % 7 + 1),
                    .use = (bsm_tensor_scale_use)(number / 8 % 2),
                };
                case_of(t, wish, (bsm_real)type, number % 3 == 2, number % 4 / 2);
            }
}

/* Every scale with every code, rounded to every type. */
static void every_scale_with_every_code(struct test *t)
{
    static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP4, BSM_MXINT8, BSM_NVFP4 };
    if (!device_open(t)) return;
    for (int i = 0; i < 5; i++)
        for (int type = 0; type < BSM_REAL_FP64; type++)
            case_of(t,
                    (struct twin_wish){
                        .format = formats[i], .rows = 300, .columns = 512, .batch = 1,
                        .tensor_scale = type == 2 ? 3e-5f : 0 },
                    (bsm_real)type, false, 0);
}

/* Aligned rows of every format and packing, so long that codes are copied in advance more than once. */
static void every_fast_path(struct test *t)
{
    if (!device_open(t)) return;
    for (int format = 1; format < BSM_FORMAT_FP32; format++)
        for (int packing = 0; packing < BSM_PACKING_GGUF; packing++)
            case_of(t, (struct twin_wish){ .format = (bsm_format)format, .packing = (bsm_packing)packing, .rows = 3,
                                           .columns = 2048 + 64, .batch = 1 },
                    BSM_REAL_BF16, false, 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_format_packing_and_type), TEST(every_scale_with_every_code),
                                              TEST(every_fast_path) };
    return TEST_MAIN(argc, argv, cases);
}

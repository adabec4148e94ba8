/* Which rows have a tensor map, and what the driver is told of them; of a driver that encodes nothing. */
#include "test.h"
#include "cuda/driver/launch.h"

static struct { uint64_t sizes[3], strides[2]; uint32_t box[3]; int calls; } told;

static CUresult encode(void *map, int type, unsigned rank, void *address, const uint64_t *sizes,
                       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
                       int promotion, int fill)
{
    (void)type, (void)rank, (void)address, (void)steps, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    memcpy(told.sizes, sizes, sizeof told.sizes), memcpy(told.strides, strides, sizeof told.strides),
        memcpy(told.box, box, sizeof told.box);
    told.calls++;
    memset(map, 0xff, sizeof(struct bsmi_tensor_map));
    return CUDA_SUCCESS;
}

static const struct bsmi_driver driver = { .cuTensorMapEncodeTiled = encode };

static struct bsmi_tensor_map map_on(struct test *t, int capability, const struct bsmi_cuda_rows *rows)
{
    const struct bsmi_cuda_gpu gpu = { .driver = &driver, .capability = capability };
    struct bsmi_tensor_map map;
    CHECK(t, bsmi_cuda_can_map(rows));
    CHECK(t, bsmi_cuda_map(&gpu, rows, 64, 128, CU_TENSOR_MAP_SWIZZLE_128B, &map) == BSM_OK);
    return map;
}

/* Bytes of 16 rows and more, `pitch` bytes apart. */
static struct bsmi_cuda_rows bytes(int64_t columns, int64_t rows, int64_t batch, int64_t pitch, int64_t batch_pitch)
{
    return (struct bsmi_cuda_rows){
        (const void *)(uintptr_t)0x10000, CU_TENSOR_MAP_DATA_TYPE_UINT8, columns, rows, batch, pitch, batch_pitch
    };
}

static void one_matrix_is_as_dense_as_its_rows(struct test *t)
{
    const struct bsmi_cuda_rows one = bytes(128, 40, 1, 144, 0), two = bytes(128, 40, 2, 144, 9984),
                                most = bytes(16, 1 << 30, 1, 1 << 20, 0);
    (void)map_on(t, 90, &one);
    CHECK(t, told.strides[0] == 144 && told.strides[1] == 144 * 40 && told.sizes[2] == 1 && told.box[1] == 128);
    (void)map_on(t, 90, &two);
    CHECK(t, told.strides[1] == 9984 && told.sizes[2] == 2);
    (void)map_on(t, 90, &most);                        /* a stride has less than 2^40 bytes */
    CHECK(t, told.strides[0] == 1 << 20 && told.strides[1] == 16 && told.calls == 3);
}

/* Bit 85, and no other, of what has less than 128 KiB from the first byte to the last, on tensor memory's GPUs. */
static void small_maps_for_blackwell(struct test *t)
{
    const struct { int capability; struct bsmi_cuda_rows rows; bool mended;
    } maps[] = {
        { 100, bytes(128, 40, 1, 144, 0), true },
        { 103, bytes(128, 40, 1, 128, 0), true },
        { 90, bytes(128, 40, 1, 144, 0), false },
        { 100, bytes(128, 1024, 1, 128, 0), false },
        { 100, bytes(112, 1024, 1, 128, 0), true },
        { 100, bytes(128, 1, 2, 128, 131072), false },
        { 100, bytes(128, 1, 2, 128, 131072 - 256), true },
        { 100, bytes(128, 1 << 30, 1, 1 << 30, 0), false },
        { 100, bytes(128, 2, 1 << 30, 128, 512), false },
        { 100,
          { (const void *)(uintptr_t)0x10000, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, 2048, 128, 1, 1024, 0 },
          false },
        { 100,
          { (const void *)(uintptr_t)0x10000, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, 1024, 170, 1, 768, 0 },
          true },
    };
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        const struct bsmi_tensor_map map = map_on(t, maps[i].capability, &maps[i].rows);
        for (int at = 0; at < (int)sizeof map.opaque; at++)
            if (map.opaque[at] != (at == 10 && maps[i].mended ? 0xdf : 0xff))
                FAIL(t, "map %d: byte %d is 0x%02x", (int)i, at, map.opaque[at]);
    }
}

static void what_has_no_map(struct test *t)
{
    struct bsmi_cuda_rows rows = bytes(128, 40, 1, 144, 0);
    CHECK(t, bsmi_cuda_can_map(&rows));
    rows.rows = 0;
    CHECK(t, !bsmi_cuda_can_map(&rows));
    rows = bytes(120, 40, 1, 144, 0);                  /* a row's last 16 bytes would have others behind them */
    CHECK(t, !bsmi_cuda_can_map(&rows));
    rows = bytes(128, 40, 1, 136, 0);
    CHECK(t, !bsmi_cuda_can_map(&rows));
    rows = bytes(128, 40, 2, 144, 8);
    CHECK(t, !bsmi_cuda_can_map(&rows));
    rows.data = (const void *)(uintptr_t)0x10008, rows.batch = 1;
    CHECK(t, !bsmi_cuda_can_map(&rows));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(one_matrix_is_as_dense_as_its_rows), TEST(small_maps_for_blackwell),
                                              TEST(what_has_no_map) };
    return TEST_MAIN(argc, argv, cases);
}

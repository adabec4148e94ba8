/* Tensor copies in kernels that nvcc compiled, through libcudasim.so, with maps from cuTensorMapEncodeTiled. */
#include <dlfcn.h>
#include <stdlib.h>

#include "tests/support/kernel_api.h"

enum { TILE = 32, ROWS = 75, COLUMNS = 140, FLOAT32 = 7 };

typedef CUresult encode_tiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dim,
                              const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,
                              int interleave, int swizzle, int promotion, int fill);
struct map {
    _Alignas(64) uint8_t bytes[128];
};

static CUfunction function(struct test *t, const char *name)
{
    static CUmodule module;
    CUfunction f = NULL;
    const struct api *api = api_get(t);
    if (module == NULL) OK(t, api->module_load(&module, CUDASIM_KERNELS "/tensor.ptx"));
    if (module != NULL) OK(t, api->get_function(&f, module, name));
    return f;
}

/* Tiles of 32 x 32 floats, swizzled, over rows of `columns` floats. */
static struct map tiles_of(struct test *t, CUdeviceptr address, uint64_t columns, uint64_t rows, uint64_t stride)
{
    struct map map = { .bytes = { 0 } };
    encode_tiled *encode;
    void *library = dlopen(CUDASIM_LIBRARY, RTLD_NOW | RTLD_LOCAL), *found = dlsym(library, "cuTensorMapEncodeTiled");
    memcpy(&encode, &found, sizeof encode);
    OK(t, encode(&map, FLOAT32, 2, (void *)(uintptr_t)address, (uint64_t[]){ columns, rows }, &stride,
                 (uint32_t[]){ TILE, TILE }, (uint32_t[]){ 1, 1 }, 0, SWIZZLE_128B, 0, 0));
    return map;
}

/* Rows and columns that are no multiple of the tile: elements outside count as zeros, and are not stored. */
static void a_pipeline_of_tiles(struct test *t)
{
    enum { BLOCKS = (ROWS + TILE - 1) / TILE, TILES = (COLUMNS + TILE - 1) / TILE };
    static float in[ROWS * COLUMNS], got[ROWS * COLUMNS], sums[ROWS * TILE];
    const struct api *api = api_get(t);
    for (int i = 0; i < ROWS * COLUMNS; i++) in[i] = (float)rnd_between(t, -50, 50);
    CUdeviceptr din = api_buffer(t, in, sizeof in), dout = api_buffer(t, NULL, sizeof got),
                dsums = api_buffer(t, NULL, sizeof sums);
    struct map maps[3] = { tiles_of(t, din, COLUMNS, ROWS, COLUMNS * 4), tiles_of(t, dout, COLUMNS, ROWS, COLUMNS * 4),
                           tiles_of(t, dsums, TILE, ROWS, TILE * 4) };
    int tiles = TILES;
    OK(t, api->launch(function(t, "scale_and_sum"), BLOCKS, 1, 1, 128, 1, 1, 0, NULL,
                      (void *[]){ &maps[0], &maps[1], &maps[2], &tiles }, NULL));
    OK(t, api->synchronize());
    api_read(t, dout, got, sizeof got);
    api_read(t, dsums, sums, sizeof sums);
    for (int i = 0; i < ROWS * COLUMNS; i++) CHECK(t, got[i] == 2 * in[i] + 1);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < TILE; c++) {
            float want = 0;
            for (int i = c; i < COLUMNS; i += TILE) want += in[r * COLUMNS + i];
            CHECK(t, sums[r * TILE + c] == want);
        }
}

static void a_pair_shares_its_tiles(struct test *t)
{
    float in[64 * TILE], got[128];
    const struct api *api = api_get(t);
    for (int i = 0; i < 64 * TILE; i++) in[i] = (float)rnd_between(t, -50, 50);
    CUdeviceptr din = api_buffer(t, in, sizeof in), dout = api_buffer(t, NULL, sizeof got);
    struct map map = tiles_of(t, din, TILE, 64, TILE * 4);
    OK(t, api->launch(function(t, "share"), 2, 1, 1, 64, 1, 1, 0, NULL, (void *[]){ &map, &dout }, NULL));
    OK(t, api->synchronize());
    api_read(t, dout, got, sizeof got);
    for (int i = 0; i < 128; i++) {
        float want = 0;
        for (int c = i / 64; c < TILE; c += 2) want += in[i % 64 * TILE + c];
        CHECK(t, got[i] == want);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(a_pipeline_of_tiles), TEST(a_pair_shares_its_tiles) };
    return TEST_MAIN(argc, argv, cases);
}

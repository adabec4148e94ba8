/* Kernels that nvcc compiled for sm_100a, whose clusters take over others, run through libcudasim.so under 20 schedules
 * that must agree: every tile is worked on once. */
#include "tests/support/kernel_api.h"

#include <stdlib.h>

enum { TILES = 48, TILE = 64 };

static void check(struct test *t, const char *name)
{
    static float in[TILES * TILE], out[TILES * TILE];
    unsigned counts[TILES] = { 0 };
    const struct api *api = api_get(t);
    CUmodule module = NULL;
    CUfunction f = NULL;
    for (int i = 0; i < TILES * TILE; i++) in[i] = (float)rnd_between(t, -1000, 1000);
    OK(t, api->module_load(&module, CUDASIM_KERNELS "/cluster_launch.ptx"));
    OK(t, api->get_function(&f, module, name));
    CUdeviceptr di = api_buffer(t, in, sizeof in), dout = api_buffer(t, out, sizeof out);
    CUdeviceptr dc = api_buffer(t, counts, sizeof counts);
    OK(t, api->launch(f, TILES, 1, 1, TILE, 1, 1, 0, NULL, (void *[]){ &di, &dout, &dc }, NULL));
    OK(t, api->synchronize());
    api_read(t, dout, out, sizeof out);
    api_read(t, dc, counts, sizeof counts);
    for (int i = 0; i < TILES; i++)
        if (counts[i] != 1) FAIL(t, "tile %d was worked on %u times", i, counts[i]);
    for (int i = 0; i < TILES * TILE; i++)
        if (out[i] != 2 * in[i]) FAIL(t, "number %d is %g, not %g", i, (double)out[i], 2 * (double)in[i]);
    OK(t, api->module_unload(module));
    api->mem_free(di), api->mem_free(dout), api->mem_free(dc);
}

static void single_ctas_take_over(struct test *t) { check(t, "take_over"); }
static void pairs_take_over(struct test *t) { check(t, "take_over_in_pairs"); }

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(single_ctas_take_over), TEST(pairs_take_over) };
    setenv("CUDASIM_DEVICE", "sm_100a", 1);
    setenv("CUDASIM_SCHEDULES", "20", 0);
    return TEST_MAIN(argc, argv, cases);
}

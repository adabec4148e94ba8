/* The persistent, warp-specialized kernels of kernels/blackwell_pipeline.cu, alone and in pairs, on shapes that are no
 * multiples of the tile.
 *
 *     test_cudasim_blackwell_pipeline [--kernel NAME] [--schedules N] [the options of test.h]
 *
 * With --kernel that one alone runs, on one small shape that uses all of it: for `cudasim mutate --program`. */
#include <stdlib.h>
#include <time.h>

#include "tests/support/kernel_api.h"
#include "tests/reference/scaled_product.h"

#ifndef CUDASIM_TESTED_DEVICE
#define CUDASIM_TESTED_DEVICE "sm_100a"
#endif

enum { ROW_BYTES = 128, STAGES = 4, GUARD = 1024, GUARD_BYTE = 0xee };

struct kernel {
    const char *name;
    bool fp4;
    uint32_t ctas, tile_n;
};
struct shape {
    uint32_t m, n, k_tiles, groups;
}; /* groups: CTAs, or pairs, of the grid */

static const struct kernel kernels[] = {
    { "mxfp8", false, 1, 128 },     { "mxfp8_wide", false, 1, 256 }, { "mxfp8_pair", false, 2, 128 },
      { "nvfp4", true, 1, 128 },
    { "nvfp4_wide", true, 1, 256 }, { "nvfp4_pair", true, 2, 128 },  { "nvfp4_pair_wide", true, 2, 256 },
};

struct operand {
    CUdeviceptr at, scales;
    struct api_map map, scale_map;
};

static struct operand operand_of(struct test *t, const struct product *p, bool of_b, uint32_t box)
{
    const uint32_t rows = of_b ? p->n : p->m, pitch = packed_row_bytes(p, of_b),
                   scale_bytes = scale_block_bytes(p, of_b);
    const uint32_t scale_rows = p->kind == KIND_MXF4NVF4 ? 8 : 2; /* a stage's scales of 128 rows */
    struct operand x;
    uint8_t *host = malloc((size_t)rows * pitch), *scales = malloc(scale_bytes);
    product_pack(p, of_b, host, pitch);
    product_pack_scales(p, of_b, scales);
    x.at = api_buffer(t, host, (size_t)rows * pitch), x.scales = api_buffer(t, scales, scale_bytes);
    x.map = api_matrix_map(t, x.at, MAP_UINT8, SWIZZLE_128B, (uint64_t[]){ pitch, rows }, pitch, ROW_BYTES, box);
    x.scale_map = api_matrix_map(t, x.scales, MAP_UINT8, SWIZZLE_NONE, (uint64_t[]){ 256, scale_bytes / 256 }, 256, 256,
                                 scale_rows);
    free(host), free(scales);
    return x;
}

/* Bytes of the ring, as the kernel's config has them. */
static uint32_t ring_bytes(const struct kernel *kernel)
{
    const uint32_t blocks = kernel->fp4 ? 4 : 1, scales = (1 + (kernel->tile_n + 127) / 128) * blocks * 512;
    return STAGES * (((128 + kernel->tile_n / kernel->ctas) * ROW_BYTES + scales + 1023) / 1024 * 1024);
}

/* Returns the seconds of processor time that the launch took. */
static double run(struct test *t, const struct kernel *kernel, const struct product *p, const struct shape *s)
{
    const struct api *api = api_get(t);
    const uint32_t shared = ring_bytes(kernel);
    const size_t d_bytes = (size_t)p->m * p->n * 4;
    struct operand a = operand_of(t, p, false, 128), b = operand_of(t, p, true, kernel->tile_n / kernel->ctas);
    uint8_t *host = malloc(d_bytes + 2 * GUARD);
    CUdeviceptr d = api_buffer(t, NULL, d_bytes + 2 * GUARD), to = d + GUARD;
    int m = (int)p->m, n = (int)p->n, k_tiles = (int)s->k_tiles;
    OK(t, api->memset8(d, GUARD_BYTE, d_bytes + 2 * GUARD));
    CUfunction f = api_function(t, CUDASIM_KERNELS "/blackwell_pipeline.ptx", kernel->name, shared);
    const clock_t begin = clock();
    OK(t, api->launch(f, s->groups * kernel->ctas, 1, 1, 256, 1, 1, shared, NULL,
                      (void *[]){ &a.map, &b.map, &a.scale_map, &b.scale_map, &to, &m, &n, &k_tiles }, NULL));
    OK(t, api->synchronize());
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    api_read(t, d, host, d_bytes + 2 * GUARD);
    bool untouched = true;
    for (size_t i = 0; i < GUARD; i++)
        untouched = untouched && host[i] == GUARD_BYTE && host[GUARD + d_bytes + i] == GUARD_BYTE;
    CHECK(t, untouched);
    product_check(t, p, OUTPUT_F32, host + GUARD, p->n);
    free(host);
    api_free(t, a.at), api_free(t, a.scales), api_free(t, b.at), api_free(t, b.scales), api_free(t, d);
    return seconds;
}

static struct product product_of(const struct kernel *kernel, const struct shape *s, enum product_data data)
{
    return (struct product){ .kind = kernel->fp4 ? KIND_MXF4NVF4 : KIND_MXF8F6F4,
                             .a_type = kernel->fp4 ? E_E2M1 : E_E4M3,
                             .b_type = kernel->fp4 ? E_E2M1 : E_E4M3,
                             .scale = kernel->fp4 ? SCALE_UE4M3 : SCALE_E8M0,
                             .block = kernel->fp4 ? 16 : 32,
                             .m = s->m,
                             .n = s->n,
                             .k = s->k_tiles * (kernel->fp4 ? 256 : 128),
                             .data = data };
}

static void run_shapes(struct test *t, const struct shape *shapes, int count, uint32_t ctas, enum product_data data)
{
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
        for (int i = 0; i < count && kernels[k].ctas == ctas && t->failures == 0; i++) {
            struct product p = product_of(&kernels[k], &shapes[i], data);
            product_make(t, &p);
            run(t, &kernels[k], &p, &shapes[i]);
            if (t->failures != 0) FAIL(t, "%s", kernels[k].name);
            product_free(&p);
        }
}

/* Fewer K tiles than stages, as many, more; more tiles than accumulators, in one CTA. */
static void one_tile(struct test *t)
{
    static const struct shape shapes[] = { { 128, 128, 1, 1 }, { 100, 72, 6, 1 } };
    run_shapes(t, shapes, 2, 1, DATA_WHOLE);
}
static void several_tiles(struct test *t)
{
    static const struct shape shapes[] = { { 130, 264, 3, 1 }, { 300, 136, 2, 2 } };
    run_shapes(t, shapes, 2, 1, DATA_WIDE);
}
static void one_tile_of_a_pair(struct test *t)
{
    static const struct shape shapes[] = { { 256, 128, 1, 1 }, { 200, 72, 6, 1 } };
    run_shapes(t, shapes, 2, 2, DATA_WHOLE);
}
static void several_tiles_of_a_pair(struct test *t)
{
    static const struct shape shapes[] = { { 260, 264, 3, 1 }, { 300, 136, 2, 2 } };
    run_shapes(t, shapes, 2, 2, DATA_WIDE);
}

/* 128 x 256 x 1024, all checks on: the time of one core, printed. */
static void a_tile_takes_less_than_seconds(struct test *t)
{
    const char *schedules = getenv("CUDASIM_SCHEDULES");
    if (schedules != NULL && strcmp(schedules, "1") != 0) {
        test_skip(t, "measured under one schedule");
        return;
    }
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
        if (strstr(kernels[k].name, "_wide") == NULL || kernels[k].ctas != 1) continue;
        const struct shape shape = { 128, 256, kernels[k].fp4 ? 4 : 8, 1 };
        struct product p = product_of(&kernels[k], &shape, DATA_WHOLE);
        product_make(t, &p);
        const double seconds = run(t, &kernels[k], &p, &shape);
        printf("%s: 128 x 256 x 1024 in %.3f s of one core\n", kernels[k].name, seconds);
#ifdef NDEBUG
        CHECK(t, seconds < 3); /* 1 s is the aim on an idle core */
#endif
        product_free(&p);
    }
}

/* More K tiles than stages, more tiles than accumulators. */
static const char *chosen;

static void the_chosen_kernel(struct test *t)
{
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
        if (strcmp(kernels[k].name, chosen) != 0) continue;
        const struct shape shape = { 130 * kernels[k].ctas, kernels[k].tile_n + 8, 5, 1 };
        struct product p = product_of(&kernels[k], &shape, DATA_WHOLE);
        product_make(t, &p);
        run(t, &kernels[k], &p, &shape);
        product_free(&p);
        return;
    }
    FAIL(t, "no kernel has the name %s", chosen);
}

static int take_kernel(int argc, char **argv)
{
    int kept = 1;
    for (int i = 1; i < argc; i++)
        if (i + 1 < argc && strcmp(argv[i], "--kernel") == 0) chosen = argv[++i];
        else argv[kept++] = argv[i];
    return kept;
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(one_tile),
        TEST(several_tiles),
        TEST(one_tile_of_a_pair),
        TEST(several_tiles_of_a_pair),
        TEST(a_tile_takes_less_than_seconds),
    };
    static const struct test_case one[] = { TEST(the_chosen_kernel) };
    const int kept = api_begin(take_kernel(argc, argv), argv, CUDASIM_TESTED_DEVICE);
    return chosen != NULL ? TEST_MAIN(kept, argv, one) : TEST_MAIN(kept, argv, cases);
}

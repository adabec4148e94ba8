/* What Triton's Gluon tutorial of block-scaled products asks of its pipelined and its warp-specialized kernel: five
 * pairs of formats, four shapes of D in fp16, five K that end with a tile and within one; here by the library's kernel
 * of the same tile, 128 x 256, and of pairs with another K than a multiple of 128, too.
 *
 * On a GPU the sizes are the tutorial's.  Simulated they are small ones of the same kind: whole tiles, tiles cut at
 * both edges, less than a tile, more tiles than CTAs (CUDASIM_SMS), and K as they are but for 4096, for which 1280 has
 * more steps than the ring has stages. */
#include "cuda/harness/gpu.h"

struct size { int64_t m, n; };

static struct operand operand_of(struct test *t, bsm_format format, int64_t rows, int64_t columns)
{
    struct operand o = operand_make(&(struct shape){ .format = format, .rows = rows, .columns = columns,
                                                     .layout.kind = bsm_format_get((int)format)->block > 0
                                                                        ? BSM_LAYOUT_128X4 : BSM_LAYOUT_LINEAR }, 0xff);
    fill_whole(t, &o);
    return o;
}

static void check(struct test *t, const struct contexts *c, bsm_format a_format, bsm_format b_format, struct size size,
                  int64_t k)
{
    struct operand a = operand_of(t, a_format, size.m, k), b = operand_of(t, b_format, size.n, k),
                   d = operand_of(t, BSM_FORMAT_FP16, size.m, size.n);
    char what[128];
    snprintf(what, sizeof what, "%s x %s, M=%d N=%d K=%d", bsm_format_get((int)a_format)->name,
             bsm_format_get((int)b_format)->name, (int)size.m, (int)size.n, (int)k);
    const struct run run = { .a = &a, .b = &b, .d = &d, .call.struct_size = sizeof(bsm_matmul) };
    if (run_both(t, c, &run, what) != BSM_OK) FAIL(t, "%s: %s", what, bsm_last_error());
    operand_free(&a), operand_free(&b), operand_free(&d);
}

/* One pair, every shape and K, on the kernel of its tile.  Returns the products. */
static int check_pair(struct test *t, const struct contexts *c, bsm_format a, bsm_format b, const char *kernel)
{
    static const struct size sizes[] = { { 2048, 2048 }, { 500, 600 }, { 128, 128 }, { 8192, 8192 } },
                             small[] = { { 128, 256 }, { 140, 200 }, { 128, 128 }, { 128, 512 } };
    static const int64_t ks[] = { 128, 640, 704, 1152, 4096 };
    const int number = kernel_number(c->gpu, kernel, a, b);
    int products = 0;
    if (number < 0 || bsm_context_force_kernel(c->gpu, number) != BSM_OK) {
        FAIL(t, "%s does not serve its pair", kernel);
        return 0;
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 5; j++, products++)
            check(t, c, a, b, is_simulated() ? small[i] : sizes[i], is_simulated() && ks[j] == 4096 ? 1280 : ks[j]);
    return products;
}

static void four_shapes_five_k_five_pairs(struct test *t)
{
    static const struct { bsm_format a, b; const char *kernel; } pairs[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, "cuda_tcgen05_mxf8f6f4_128x256" },
        { BSM_MXFP8_E4M3, BSM_MXFP4, "cuda_tcgen05_mxf8f6f4_128x256" },
        { BSM_MXFP4, BSM_MXFP8_E4M3, "cuda_tcgen05_mxf8f6f4_128x256" },
        { BSM_MXFP4, BSM_MXFP4, "cuda_tcgen05_mxf4_128x256" },
        { BSM_NVFP4, BSM_NVFP4, "cuda_tcgen05_mxf4nvf4_128x256" },
    };
    struct contexts c;
    int products = 0;
    if (!contexts_open(t, &c)) return;
    if (kernel_number(c.gpu, pairs[0].kernel, pairs[0].a, pairs[0].b) < 0) {
        test_skip(t, "this GPU has no tensor memory");
        contexts_close(&c);
        return;
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        products += check_pair(t, &c, pairs[i].a, pairs[i].b, pairs[i].kernel);
    CHECK(t, products == 4 * 5 * 5);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(four_shapes_five_k_five_pairs) };
    return TEST_MAIN(argc, argv, cases);
}

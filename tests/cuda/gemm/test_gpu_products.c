/* Products on a GPU against the CPU's, byte for byte: integers on every kernel, any numbers on the kernel that keeps
 * the CPU's order. */
#include "cuda/harness/gpu.h"

#include <stdlib.h>

struct pair { bsm_format a, b; };

static const struct pair pairs[] = {
    { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_MXFP4, BSM_MXFP4 }, { BSM_NVFP4, BSM_NVFP4 }, { BSM_NVFP4, BSM_MXFP4 },
    { BSM_MXINT8, BSM_MXINT8 }, { BSM_MXFP6_E2M3, BSM_MXFP6_E2M3 }, { BSM_MXFP6_E3M2, BSM_MXFP8_E5M2 },
    { BSM_FORMAT_BF16, BSM_MXFP4 }, { BSM_MXFP8_E4M3, BSM_NVFP4 }, { BSM_FORMAT_FP16, BSM_FORMAT_E4M3 },
    { BSM_FORMAT_BF16, BSM_FORMAT_BF16 }, { BSM_MXFP4_BLOCK16, BSM_MXINT8 }, { BSM_FORMAT_E5M2, BSM_FORMAT_FP16 },
    { BSM_FORMAT_FP16, BSM_FORMAT_FP16 },
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

static const bsm_scale_layout layouts[] = {
    { .kind = BSM_LAYOUT_LINEAR }, { .kind = BSM_LAYOUT_LINEAR, .pitch = 61 }, { .kind = BSM_LAYOUT_128X4 },
    { .kind = BSM_LAYOUT_8X4 },
    { .kind = BSM_LAYOUT_TILES, .tile_rows = 64, .tile_columns = 2 },
    { .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 }, { .kind = BSM_LAYOUT_CDNA4_16 },
    { .kind = BSM_LAYOUT_CDNA4_32 }, { .kind = BSM_LAYOUT_AITER }, { .kind = BSM_LAYOUT_DEEPGEMM },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static struct operand random_operand(struct test *t, bsm_format format, int64_t rows, int64_t columns, int64_t batch,
                                     bool small)
{
    struct shape s = { .format = format, .rows = rows, .columns = columns, .batch = batch };
    shape_in_any_way(t, &s, layouts, LAYOUTS);
    struct operand o = operand_make(&s, 0xff);
    operand_fill(t, &o, small);
    return o;
}

enum pitch { TIGHT, APART, WHOLE_16_BYTES, PITCHES };          /* of D's rows; the last: they may end within 16 bytes */

static void check_product(struct test *t, const struct contexts *c, int kernel, struct pair f, int64_t m, int64_t n,
                          int64_t k, bool small, enum pitch pitch)
{
    struct operand a = random_operand(t, f.a, m, k, 1, small), b = random_operand(t, f.b, n, k, 1, small);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n,
                                                     .extra_pitch = pitch == TIGHT ? 0 : 64 }, 0xff);
    char what[200];
    if (pitch == WHOLE_16_BYTES) d.m.pitch = (n + 3) / 4 * 4;
    snprintf(what, sizeof what, "%s, %s x %s, M=%d N=%d K=%d, layouts %s %s, packings %s %s", bsm_kernel_name(kernel),
             bsm_format_get((int)f.a)->name, bsm_format_get((int)f.b)->name, (int)m, (int)n, (int)k,
             bsm_layout_name((int)a.m.scale_layout.kind), bsm_layout_name((int)b.m.scale_layout.kind),
             bsm_packing_name((int)a.m.packing), bsm_packing_name((int)b.m.packing));
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    run_both(t, c, &(struct run){ .a = &a, .b = &b, .d = &d, .call = { .struct_size = sizeof(bsm_matmul) } }, what);
    operand_free(&a), operand_free(&b), operand_free(&d);
}

/* The kernel that sums as the CPU does gives the CPU's bits for any numbers. */
static void plain_kernel_has_the_cpus_bits(struct test *t)
{
    static const int64_t shapes[][3] = { { 5, 9, 70 },  { 17, 16, 33 }, { 1, 1, 1 },
                                         { 40, 50, 0 }, { 20, 3, 96 },  { 0, 4, 8 } };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int i = 0; i < PAIRS; i++) {
        const int kernel = kernel_number(c.gpu, simt_kernel(), pairs[i].a, pairs[i].b);
        CHECK_OR_RETURN(t, kernel >= 0);
        for (int j = 0; j < 2; j++) {
            const int64_t *s = shapes[(2 * i + j) % 6];
            check_product(t, &c, kernel, pairs[i], s[0], s[1], s[2], false, (enum pitch)(i % PITCHES));
        }
    }
    contexts_close(&c);
}

/* GEMM kernels of this GPU that are given rows; kernels that decode B refuse some packings and sizes:
 * test_gpu_fused_dequantization's. */
static bool takes_rows(const bsm_context *gpu, int kernel, struct pair f)
{
    return bsm_kernel_serves(gpu, kernel, f.a, f.b) && bsm_kernel_serves(gpu, kernel, BSM_FORMAT_BF16, BSM_FORMAT_BF16);
}

/* On a GPU everything; simulated, where a product takes seconds, every pair on one GEMM kernel and every such kernel
 * with some pair. */
static bool is_due(int pair, int kernel, int kernels)
{
    return getenv("BLOCKSCALE_LIBCUDA") == NULL || (kernel + pair) % kernels == 0;
}

/* Integers: every order of sums gives one result.  M > 128 with scale columns that are no multiple of 4 meets every
 * layout. */
static void every_kernel_is_right_for_integers(struct test *t)
{
    static const int64_t shapes[][3] = {
        { 130, 70, 161 }, { 3, 129, 64 }, { 65, 5, 201 }, { 128, 128, 128 }, { 1, 257, 97 }
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int i = 0; i < PAIRS; i++) {
        const int plain = kernel_number(c.gpu, simt_kernel(), pairs[i].a, pairs[i].b);
        int gemms = 0, served = 0, done = 0;
        CHECK_OR_RETURN(t, plain >= 0);
        for (int g = plain + 1; bsm_kernel_name(g) != NULL; g++) gemms += takes_rows(c.gpu, g, pairs[i]);
        for (int g = plain + 1; bsm_kernel_name(g) != NULL; g++) {
            if (!takes_rows(c.gpu, g, pairs[i]) || !is_due(i, served++, gemms)) continue;
            const int64_t *s = shapes[(i + done) % 5];
            check_product(t, &c, g, pairs[i], s[0], s[1], s[2], true, (enum pitch)((i + done++) % PITCHES));
        }
        const int64_t *s = shapes[i % 5];
        check_product(t, &c, plain, pairs[i], s[0], s[1], s[2], true, (enum pitch)(i % PITCHES));
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(plain_kernel_has_the_cpus_bits),
                                              TEST(every_kernel_is_right_for_integers) };
    return TEST_MAIN(argc, argv, cases);
}

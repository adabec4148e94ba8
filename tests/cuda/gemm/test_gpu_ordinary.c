/* What most users multiply, on the kernels that the library chooses: tight rows, scales in linear order or as 128x4, K
 * a multiple of 64, and experts whose groups of rows begin anywhere.  Scales differ from block to block, and every sum
 * is exact. */
#include "cuda/harness/gpu.h"

static struct operand ordinary(struct test *t, bsm_format format, int64_t rows, int64_t columns, int64_t batch,
                               bsm_layout layout)
{
    const bool scaled = bsm_format_get((int)format)->block != 0;
    struct operand o = operand_make(&(struct shape){ .format = format, .rows = rows, .columns = columns, .batch = batch,
                                                     .layout.kind = scaled ? layout : BSM_LAYOUT_LINEAR }, 0xff);
    fill_whole(t, &o);
    return o;
}

struct product {
    bsm_format a, b;
    int64_t m, n, k;
    bsm_layout layout;
    int64_t groups;
    const int64_t *group_rows;
};

static void check(struct test *t, const struct contexts *c, const struct product *p)
{
    struct operand a = ordinary(t, p->a, p->m, p->k, 1, p->layout),
                   b = ordinary(t, p->b, p->n, p->k, p->groups, p->layout);
    struct operand d = ordinary(t, BSM_FORMAT_FP32, p->m, p->n, 1, BSM_LAYOUT_LINEAR);
    char what[160];
    snprintf(what, sizeof what, "%s x %s, M=%d N=%d K=%d, scales %s, %d groups", bsm_format_get((int)p->a)->name,
             bsm_format_get((int)p->b)->name, (int)p->m, (int)p->n, (int)p->k, bsm_layout_name((int)p->layout),
             (int)p->groups);
    run_both(t, c, &(struct run){ .a = &a, .b = &b, .d = &d,
                                  .call = { .struct_size = sizeof(bsm_matmul), .groups = p->groups,
                                            .group_rows = p->group_rows } }, what);
    operand_free(&a), operand_free(&b), operand_free(&d);
}

/* With itself, and behind bf16 activations. */
static void every_format(struct test *t)
{
    static const bsm_layout layouts[] = { BSM_LAYOUT_LINEAR, BSM_LAYOUT_128X4 };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (int format = 1; format < BSM_FORMAT_COUNT; format++) {
        if (format == BSM_FORMAT_FP32) continue;           /* GPUs refuse it */
        for (int i = 0; i < 4; i++) {
            const bool layout = i % 2 == 1, itself = i / 2 == 1;
            check(t, &c, &(struct product){ .a = itself ? (bsm_format)format : BSM_FORMAT_BF16, .b = (bsm_format)format,
                                            .m = 32, .n = 64, .k = i == 0 || i == 3 ? 128 : 64,
                                            .layout = layouts[layout] });
        }
    }
    contexts_close(&c);
}

/* Rows of experts: in one block of scales, across two, and in a block's last quarter. */
static void groups_that_begin_anywhere(struct test *t)
{
    static const int64_t two[] = { 96, 33 }, six[] = { 20, 20, 20, 20, 20, 40 }, three[] = { 100, 0, 60 };
    static const struct { bsm_format format; int64_t m, k, groups; const int64_t *rows; } products[] = {
        { BSM_MXFP8_E4M3, 129, 128, 2, two }, { BSM_MXFP4, 129, 256, 2, two },      { BSM_NVFP4, 140, 256, 6, six },
        { BSM_NVFP4, 129, 256, 2, two },      { BSM_MXFP8_E4M3, 160, 128, 3, three },
        { BSM_MXFP4_BLOCK16, 140, 128, 6, six },
    };
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        check(t, &c, &(struct product){ .a = products[i].format, .b = products[i].format, .m = products[i].m, .n = 128,
                                        .k = products[i].k,
                                        .layout = BSM_LAYOUT_128X4, .groups = products[i].groups,
                                        .group_rows = products[i].rows });
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_format), TEST(groups_that_begin_anywhere) };
    return TEST_MAIN(argc, argv, cases);
}

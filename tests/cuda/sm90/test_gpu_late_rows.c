/* Rows that the GEMM kernel decodes itself, beside its first tiles: the bits of D with every row decoded in front,
 * whatever the scales; and the plan says which rows these are. */
#include "cuda/harness/gpu.h"

#include <stdlib.h>

static const char *const late_kernel = "cuda_wgmma_late_rows_128x256_2x1";

/* What the first tiles of two SMs leave, and those of a large GPU. */
struct sizes { int64_t m, n, k; };
static struct sizes sizes(void)
{
    return is_simulated() ? (struct sizes){ 260, 388, 256 } : (struct sizes){ 4096 + 8, 2304 + 200, 512 };
}

static struct operand make(struct test *t, bsm_format format, int64_t rows, int64_t columns, enum scales scales)
{
    const bool nibbles = bsm_format_get((int)format)->element == BSM_E2M1;
    struct operand o = operand_make(&(struct shape){ .format = format, .rows = rows, .columns = columns,
                                                     .packing = nibbles ? BSM_PACKING_LOW_FIRST : BSM_PACKING_DEFAULT },
                                    0xff);
    operand_fill(t, &o, false);
    if (bsm_format_get((int)format)->block != 0) set_scales(t, &o, scales);
    return o;
}

/* NaN and infinity among the codes, where the element has them. */
static void set_special_codes(struct test *t, struct operand *o)
{
    const bsm_element element = bsm_format_get((int)o->m.format)->element;
    if (element != BSM_E4M3 && element != BSM_E5M2) return;
    for (int i = 0; i < 4; i++)
        bsm_matrix_set_code(&o->m, 0, (int64_t)rnd_below(t, (uint32_t)o->m.rows),
                            (int64_t)rnd_below(t, (uint32_t)o->m.columns), element == BSM_E4M3 ? 0xff : 0x7c);
}

static void multiply(struct test *t, const struct contexts *c, const bsm_matrix *a, const bsm_matrix *b,
                     const char *name, void *device, uint16_t *d, char *text, size_t bytes)
{
    const bsm_matrix out = { .struct_size = sizeof out, .format = BSM_FORMAT_BF16, .rows = a->rows,
                             .columns = b->rows, .data = device };
    const bsm_matmul call = { .struct_size = sizeof call, .a = a, .b = b, .d = &out };
    bsm_plan *plan = NULL;
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel_number(c->gpu, name, a->format, b->format)) == BSM_OK);
    CHECK_OR_RETURN(t, bsm_plan_create(c->gpu, &call, &plan) == BSM_OK);
    bsm_plan_describe(plan, text, bytes);
    if (bsm_multiply(c->gpu, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, c, d, device, (size_t)(a->rows * b->rows) * sizeof *d);
    bsm_plan_destroy(plan);
}

static void compare(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b,
                    bool late, const char *what)
{
    const size_t count = (size_t)(a->m.rows * b->m.rows);
    struct twin x = twin_make(t, c, a), y = twin_make(t, c, b);
    uint16_t *want = malloc(count * sizeof *want), *got = malloc(count * sizeof *got);
    char text[1024];
    if (!is_simulated()) fprintf(stderr, "  %s\n", what);      /* a kernel that never ends leaves its name */
    memset(want, 0xff, count * sizeof *want);
    void *device = to_device(t, c, want, count * sizeof *want);
    multiply(t, c, &x.m, &y.m, rows_kernel(c->gpu), device, want, text, sizeof text);
    CHECK(t, strstr(text, "late rows") == NULL);
    memset(got, 0xff, count * sizeof *got);
    (void)bsm_device_release(c->gpu, device);
    device = to_device(t, c, got, count * sizeof *got);
    multiply(t, c, &x.m, &y.m, late_kernel, device, got, text, sizeof text);
    if ((strstr(text, "late rows") != NULL) != late) FAIL(t, "%s: %s", what, text);
    for (size_t i = 0; i < count; i++)
        if (want[i] != got[i]) {
            FAIL(t, "%s, row %d, column %d: 0x%04x, not 0x%04x", what, (int)(i / (size_t)b->m.rows),
                 (int)(i % (size_t)b->m.rows), got[i], want[i]);
            break;
        }
    free(want), free(got), (void)bsm_device_release(c->gpu, device);
    twin_free(t, c, &x), twin_free(t, c, &y);
}

static bool open_hopper(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return false;
    if (kernel_number(c->gpu, late_kernel, BSM_MXFP8_E4M3, BSM_MXFP8_E4M3) >= 0) return true;
    test_skip(t, "kernels for Hopper");
    contexts_close(c);
    return false;
}

static void the_same_bits(struct test *t)
{
    static const bsm_format pairs[][2] = { { BSM_NVFP4, BSM_MXFP8_E4M3 },        { BSM_MXFP8_E5M2, BSM_MXFP4 },
                                           { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_FORMAT_BF16, BSM_MXFP8_E4M3 },
                                           { BSM_MXFP4, BSM_FORMAT_BF16 } };
    const struct sizes s = sizes();
    struct contexts c;
    if (!open_hopper(t, &c)) return;
    for (int scales = 0; scales < SCALES_COUNT; scales++)
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
            const bool asked = i < 2 && (scales == SCALES_USUAL || (scales == SCALES_SPANNING && i == 1));
            if (is_simulated() && !asked) continue;
            /* beside fallback rows of A, whose D is computed again, rows of B that have exponents */
            const enum scales of_b = scales == SCALES_SPANNING ? SCALES_NEAR_THE_ENDS : (enum scales)scales;
            struct operand a = make(t, pairs[i][0], s.m, s.k, (enum scales)scales),
                           b = make(t, pairs[i][1], s.n, s.k, of_b);
            char what[64];
            snprintf(what, sizeof what, "pair %d, scales %d", (int)i, scales);
            if (scales == SCALES_USUAL) set_special_codes(t, &a), set_special_codes(t, &b);
            compare(t, &c, &a, &b, true, what);
            operand_free(&a), operand_free(&b);
        }
    contexts_close(&c);
}

/* Rows that the warps cannot decode: the kernel in front has all of them. */
static void without_late_rows(struct test *t)
{
    static const struct { bsm_format a, b; int64_t more_rows, more_columns; } ways[] = {
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 1, 0 }, { BSM_MXFP6_E2M3, BSM_MXFP8_E4M3, 0, 0 },
        { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 0, 32 }, { BSM_FORMAT_BF16, BSM_FORMAT_BF16, 0, 0 } };
    const struct sizes s = sizes();
    struct contexts c;
    if (!open_hopper(t, &c)) return;
    for (size_t i = 0; i < (is_simulated() ? 1 : sizeof ways / sizeof ways[0]); i++) {
        struct operand a = make(t, ways[i].a, s.m + ways[i].more_rows, s.k + ways[i].more_columns, SCALES_USUAL),
                       b = make(t, ways[i].b, s.n, s.k + ways[i].more_columns, SCALES_USUAL);
        char what[64];
        snprintf(what, sizeof what, "way %d", (int)i);
        compare(t, &c, &a, &b, false, what);
        operand_free(&a), operand_free(&b);
    }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(the_same_bits), TEST(without_late_rows) };
    return TEST_MAIN(argc, argv, cases);
}

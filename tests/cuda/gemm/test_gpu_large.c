/* More than 2^31 elements: D, an operand (and so its decoded rows), what is quantized and dequantized, and scales;
 * sampled rows, the last ones among them, against the CPU.  On a GPU with memory for it. */
#include "cuda/harness/calls.h"
#include "cuda/harness/gpu.h"

#include <stdlib.h>

enum { SAMPLES = 6 };

struct machine { struct contexts c; struct calls calls; };

static bool machine_open(struct test *t, struct machine *m)
{
    if (is_simulated()) {
        test_skip(t, "takes a real GPU, with 40 GB of memory");
        return false;
    }
    return contexts_open(t, &m->c) && calls_open(t, &m->calls, true);
}

static void machine_close(struct machine *m)
{
    calls_close(&m->calls);
    contexts_close(&m->c);
}

/* Device memory of random words that have bits of `mask` alone. */
static void *random_memory(struct test *t, struct machine *m, uint64_t bytes, uint32_t mask)
{
    void *memory = NULL;
    uint64_t words = bytes / 4;
    uint32_t seed = (uint32_t)rnd(t);
    if (bsm_device_allocate(m->c.gpu, bytes, &memory) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    void *parameters[] = { &memory, &words, &seed, &mask };
    CHECK(t, calls_launch(&m->calls, m->calls.fill, NULL, parameters) && m->calls.cuStreamSynchronize(NULL) == 0);
    return memory;
}

static int64_t sample_row(int64_t rows, int sample)
{
    const int64_t places[SAMPLES] = { 0, rows - 1, rows - 2, rows / 2 + 1, 65537 % rows, rows / 3 };
    return places[sample];
}

static void compare_bytes(struct test *t, const char *what, int64_t row, const void *want, const void *got,
                          size_t bytes)
{
    const unsigned char *x = want, *y = got;
    for (size_t i = 0; i < bytes; i++)
        if (x[i] != y[i]) {
            FAIL(t, "%s, row %lld: byte %zu is 0x%02x, not 0x%02x", what, (long long)row, i, y[i], x[i]);
            return;
        }
}

/* Random MXFP4 with scales of 1: multiples of a half up to 6, whose sums are exact in fp32 up to K = 65536. */
static bsm_matrix random_mxfp4(struct test *t, struct machine *m, int64_t rows, int64_t columns)
{
    bsm_matrix x = { .struct_size = sizeof x, .format = BSM_MXFP4, .rows = rows, .columns = columns };
    x.data = random_memory(t, m, (uint64_t)(rows * columns / 2), 0xffffffff);
    CHECK(t, bsm_device_allocate(m->c.gpu, (size_t)(rows * columns / 32), &x.scales) == BSM_OK);
    CHECK(t, m->calls.cuMemsetD8Async((uint64_t)(uintptr_t)x.scales, 127, (size_t)(rows * columns / 32), NULL) == 0);
    return x;
}

static void release(struct test *t, struct machine *m, bsm_matrix *x)
{
    CHECK(t, bsm_device_release(m->c.gpu, x->data) == BSM_OK && bsm_device_release(m->c.gpu, x->scales) == BSM_OK);
}

/* The sampled rows of a device matrix, on the host; all rows where there are few. */
static struct operand sampled(struct test *t, struct machine *m, const bsm_matrix *x, bool all)
{
    const int64_t rows = all ? x->rows : SAMPLES, bytes = x->columns / 2;
    struct operand o = operand_make(&(struct shape){ .format = x->format, .rows = rows, .columns = x->columns }, 0);
    for (int64_t i = 0; i < rows; i++)
        from_device(t, &m->c, (char *)o.m.data + i * bytes,
                    (char *)x->data + (all ? i : sample_row(x->rows, (int)i)) * bytes, (size_t)bytes);
    memset(o.m.scales, 127, o.scale_bytes);
    return o;
}

/* D of sampled rows of A with all of B, or of all of A with sampled rows of B, on the CPU. */
static void check_d(struct test *t, struct machine *m, const bsm_matrix *a, const bsm_matrix *b, const bsm_matrix *d,
                    bool by_row, const char *name)
{
    struct operand x = sampled(t, m, a, !by_row), y = sampled(t, m, b, by_row);
    struct operand want = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = x.m.rows,
                                                        .columns = y.m.rows }, 0);
    const bsm_matmul host = { .struct_size = sizeof host, .a = &x.m, .b = &y.m, .d = &want.m };
    float *row = malloc((size_t)d->columns * sizeof *row), *part = malloc((size_t)d->columns * sizeof *part);
    CHECK(t, bsm_multiply(m->c.cpu, &host) == BSM_OK);
    for (int64_t i = 0; i < x.m.rows; i++) {
        const int64_t at = by_row ? sample_row(d->rows, (int)i) : i;
        from_device(t, &m->c, row, (float *)d->data + at * d->columns, (size_t)d->columns * sizeof *row);
        for (int64_t j = 0; j < y.m.rows; j++) part[j] = row[by_row ? j : sample_row(d->columns, (int)j)];
        compare_bytes(t, name, at, (float *)want.m.data + i * y.m.rows, part, (size_t)y.m.rows * sizeof *part);
    }
    free(row), free(part);
    operand_free(&x), operand_free(&y), operand_free(&want);
}

static void large_product(struct test *t, int64_t rows, int64_t columns, int64_t k, bool by_row)
{
    struct machine m;
    if (!machine_open(t, &m)) return;
    bsm_matrix a = random_mxfp4(t, &m, rows, k), b = random_mxfp4(t, &m, columns, k);
    bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = rows, .columns = columns };
    const size_t bytes = (size_t)(rows * columns) * sizeof(float);
    CHECK_OR_RETURN(t, bsm_device_allocate(m.c.gpu, bytes, &d.data) == BSM_OK);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .d = &d };
    int ran = 0;
    for (int i = 0; bsm_kernel_name(i) != NULL; i++) {
        if (!bsm_kernel_serves(m.c.gpu, i, a.format, b.format)) continue;
        CHECK(t, m.calls.cuMemsetD8Async((uint64_t)(uintptr_t)d.data, 0xff, bytes, NULL) == 0
                     && m.calls.cuStreamSynchronize(NULL) == 0);
        CHECK(t, bsm_context_force_kernel(m.c.gpu, i) == BSM_OK);
        if (bsm_supported(m.c.gpu, &call) == BSM_EUNSUPPORTED) continue;       /* more rows or columns than it takes */
        ran++;
        if (bsm_multiply(m.c.gpu, &call) != BSM_OK || bsm_context_synchronize(m.c.gpu) != BSM_OK)
            FAIL(t, "%s: %s", bsm_kernel_name(i), bsm_last_error());
        else check_d(t, &m, &a, &b, &d, by_row, bsm_kernel_name(i));
    }
    CHECK(t, ran > 8);
    release(t, &m, &a), release(t, &m, &b), release(t, &m, &d);
    machine_close(&m);
}

static void large_d(struct test *t) { large_product(t, 70000, 32768, 64, true); }
static void large_operand(struct test *t) { large_product(t, 24, 70000, 32768, false); }

/* bf16 to the format and back; sampled rows as the CPU does them, byte for byte. */
static void quantize_and_back(struct test *t, struct machine *m, bsm_format format, int bits, int block)
{
    const int64_t rows = 70000, columns = 32768, row_bytes = columns * bits / 8, row_scales = columns / block;
    bsm_real_matrix source = { .struct_size = sizeof source, .type = BSM_REAL_BF16, .rows = rows, .columns = columns,
                               .row_stride = columns,
                               .column_stride = 1 };
    bsm_real_matrix back = source;
    bsm_matrix codes = { .struct_size = sizeof codes, .format = format, .rows = rows, .columns = columns };
    source.data = random_memory(t, m, (uint64_t)(rows * columns) * 2, 0xbfffbfff);          /* finite, below 2 */
    CHECK(t, bsm_device_allocate(m->c.gpu, (size_t)(rows * columns) * 2, &back.data) == BSM_OK);
    CHECK(t, bsm_device_allocate(m->c.gpu, (size_t)(rows * row_bytes), &codes.data) == BSM_OK);
    CHECK(t, bsm_device_allocate(m->c.gpu, (size_t)(rows * row_scales), &codes.scales) == BSM_OK);
    if (bsm_quantize(m->c.gpu, &source, NULL, &codes, NULL) != BSM_OK
        || bsm_dequantize(m->c.gpu, &codes, &back) != BSM_OK)
        FAIL(t, "%s", bsm_last_error());
    CHECK(t, bsm_context_synchronize(m->c.gpu) == BSM_OK);
    uint16_t *numbers = malloc((size_t)columns * 2), *want = malloc((size_t)columns * 2),
             *got = malloc((size_t)columns * 2);
    struct operand o = operand_make(&(struct shape){ .format = format, .rows = 1, .columns = columns }, 0);
    for (int i = 0; i < SAMPLES; i++) {
        const int64_t row = sample_row(rows, i);
        const bsm_real_matrix one = { .struct_size = sizeof one, .type = BSM_REAL_BF16, .rows = 1, .columns = columns,
                                      .data = numbers,
                                      .row_stride = columns, .column_stride = 1 };
        bsm_real_matrix one_back = one;
        one_back.data = want;
        from_device(t, &m->c, numbers, (uint16_t *)source.data + row * columns, (size_t)columns * 2);
        CHECK(t, bsm_quantize(m->c.cpu, &one, NULL, &o.m, NULL) == BSM_OK
                     && bsm_dequantize(m->c.cpu, &o.m, &one_back) == BSM_OK);
        from_device(t, &m->c, got, (char *)codes.data + row * row_bytes, (size_t)row_bytes);
        compare_bytes(t, "codes", row, o.m.data, got, (size_t)row_bytes);
        from_device(t, &m->c, got, (char *)codes.scales + row * row_scales, (size_t)row_scales);
        compare_bytes(t, "scales", row, o.m.scales, got, (size_t)row_scales);
        from_device(t, &m->c, got, (uint16_t *)back.data + row * columns, (size_t)columns * 2);
        compare_bytes(t, "dequantized", row, want, got, (size_t)columns * 2);
    }
    free(numbers), free(want), free(got);
    operand_free(&o);
    CHECK(t, bsm_device_release(m->c.gpu, source.data) == BSM_OK && bsm_device_release(m->c.gpu, back.data) == BSM_OK);
    release(t, m, &codes);
}

static void large_quantized(struct test *t)
{
    struct machine m;
    if (!machine_open(t, &m)) return;
    quantize_and_back(t, &m, BSM_MXFP8_E4M3, 8, 32);
    quantize_and_back(t, &m, BSM_MXFP4, 4, 32);
    quantize_and_back(t, &m, BSM_NVFP4, 4, 16);
    machine_close(&m);
}

static void large_scales(struct test *t)
{
    struct machine m;
    if (!machine_open(t, &m)) return;
    bsm_scales from = { .rows = 140000, .columns = 16384, .layout = { .kind = BSM_LAYOUT_LINEAR } }, to = from;
    int64_t bytes;
    to.layout.kind = BSM_LAYOUT_128X4;
    from.data = random_memory(t, &m, (uint64_t)(from.rows * from.columns), 0xffffffff);
    CHECK(t, bsm_scale_bytes(&to.layout, to.rows, to.columns, &bytes) == BSM_OK);
    CHECK_OR_RETURN(t, bsm_device_allocate(m.c.gpu, (size_t)bytes, &to.data) == BSM_OK);
    CHECK(t, bsm_scales_convert_on(m.c.gpu, &from, &to) == BSM_OK && bsm_context_synchronize(m.c.gpu) == BSM_OK);
    for (int i = 0; i < 2000; i++) {
        const int64_t row = i < SAMPLES ? sample_row(from.rows, i) : rnd_below(t, from.rows);
        const int64_t column = i == 1 ? from.columns - 1 : rnd_below(t, from.columns);
        int64_t at;
        unsigned char want, got;
        CHECK(t, bsm_scale_offset(&to.layout, to.rows, to.columns, row, column, &at) == BSM_OK);
        from_device(t, &m.c, &want, (char *)from.data + row * from.columns + column, 1);
        from_device(t, &m.c, &got, (char *)to.data + at, 1);
        if (got != want)
            FAIL(t, "scale (%lld, %lld) is 0x%02x, not 0x%02x", (long long)row, (long long)column, got, want);
    }
    CHECK(t, bsm_device_release(m.c.gpu, from.data) == BSM_OK && bsm_device_release(m.c.gpu, to.data) == BSM_OK);
    machine_close(&m);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(large_d), TEST(large_operand), TEST(large_quantized),
                                              TEST(large_scales) };
    return TEST_MAIN(argc, argv, cases);
}

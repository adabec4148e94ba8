/* Products of one term, which every kernel has exactly: all codes with all scales of one format times all of another's,
 * 2^32 products for most pairs on a GPU, a sample on a simulated one.  A kernel of the test compares them where they
 * lie. */
#include "cuda/harness/calls.h"
#include "cuda/harness/gpu.h"

#include <math.h>
#include <stdlib.h>

enum { SLICE = 16384, SIMULATED = 48 };

/* Rows of one column. */
struct terms { struct operand host; struct twin twin; double *values; void *device_values; int64_t count; };

static int64_t term_count(bsm_format format)
{
    const bsm_format_info *f = bsm_format_get((int)format);
    return ((int64_t)1 << bsm_element_get((int)f->element)->bits) * (f->scale == BSM_UNSCALED ? 1 : 256);
}

/* near: e8m0 scales from 2^-30 to 2^30 alone. */
static void set_term(struct terms *x, int64_t row, int64_t number, bool near)
{
    const bsm_format_info *f = bsm_format_get((int)x->host.m.format);
    const int bits = bsm_element_get((int)f->element)->bits;
    const uint32_t code = (uint32_t)(number & (((int64_t)1 << bits) - 1));
    uint8_t scale = (uint8_t)(number >> bits);
    if (near && f->scale == BSM_E8M0) scale = (uint8_t)(97 + scale % 61);
    bsm_matrix_set_code(&x->host.m, 0, row, 0, code);
    if (f->scale != BSM_UNSCALED) bsm_matrix_set_scale(&x->host.m, 0, row, 0, scale);
    const double scaled_by = f->scale == BSM_UNSCALED ? 1 : (double)bsm_scale_decode(f->scale, scale);
    x->values[row] = (double)bsm_element_decode(f->element, code) * scaled_by;
}

/* Terms first, first + 1, ...; sampled: random ones. */
static struct terms make_terms(struct test *t, const struct contexts *c, bsm_format format, int64_t pitch,
                               int64_t first, int64_t count, bool sampled, bool near)
{
    struct terms x = { .count = count, .values = malloc((size_t)count * sizeof(double)) };
    x.host = operand_make(&(struct shape){ .format = format, .rows = count, .columns = 1, .extra_pitch = pitch }, 0);
    if (pitch > 0) x.host.m.pitch = pitch;
    for (int64_t i = 0; i < count; i++) set_term(&x, i, sampled ? rnd_below(t, term_count(format)) : first + i, near);
    x.twin = twin_make(t, c, &x.host);
    x.device_values = to_device(t, c, x.values, (size_t)count * sizeof(double));
    return x;
}

static void free_terms(struct test *t, const struct contexts *c, struct terms *x)
{
    twin_free(t, c, &x->twin);
    CHECK(t, bsm_device_release(c->gpu, x->device_values) == BSM_OK);
    operand_free(&x->host);
    free(x->values);
}

/* How often a kernel on tensor cores may cut a subnormal product: once for each term of bf16, where an operand is bf16
 * as it is. */
static int cuts_of(int kernel, bsm_format a, bsm_format b)
{
    if (strcmp(bsm_kernel_name(kernel), simt_kernel()) == 0 || (a != BSM_FORMAT_BF16 && b != BSM_FORMAT_BF16)) return 0;
    return a == BSM_FORMAT_FP16 || b == BSM_FORMAT_FP16 ? 2 : 1;
}

static void multiply_and_check(struct test *t, const struct contexts *c, const struct calls *calls, int kernel,
                               struct terms *a, struct terms *b)
{
    unsigned long long found[2] = { 0, 0 };
    bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = a->count, .columns = b->count };
    void *device_found = to_device(t, c, found, sizeof found);
    CHECK_OR_RETURN(t, bsm_device_allocate(c->gpu, (size_t)(a->count * b->count) * sizeof(float), &d.data) == BSM_OK);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a->twin.m, .b = &b->twin.m, .d = &d };
    if (bsm_context_force_kernel(c->gpu, kernel) != BSM_OK || bsm_multiply(c->gpu, &call) != BSM_OK)
        FAIL(t, "%s", bsm_last_error());
    CHECK(t, bsm_context_synchronize(c->gpu) == BSM_OK);
    uint64_t rows = (uint64_t)a->count, columns = (uint64_t)b->count;
    int cuts = cuts_of(kernel, a->host.m.format, b->host.m.format);
    void *parameters[] = { &d.data, &a->device_values, &b->device_values, &rows, &columns, &cuts, &device_found };
    CHECK(t, calls_launch(calls, calls->products, NULL, parameters) && calls->cuStreamSynchronize(NULL) == 0);
    from_device(t, c, found, device_found, sizeof found);
    if (found[0] != 0) {
        const int64_t at = (int64_t)found[1] - 1, i = at / b->count, j = at % b->count;
        float got;
        from_device(t, c, &got, (char *)d.data + at * (int64_t)sizeof got, sizeof got);
        FAIL(t, "%s, %s x %s: %llu of %lld products differ; one is %a * %a, which gave %a", bsm_kernel_name(kernel),
             bsm_format_get((int)a->host.m.format)->name, bsm_format_get((int)b->host.m.format)->name, found[0],
             (long long)(a->count * b->count), a->values[i], b->values[j], (double)got);
    }
    CHECK(t, bsm_device_release(c->gpu, d.data) == BSM_OK && bsm_device_release(c->gpu, device_found) == BSM_OK);
}

/* Columns from one row of B to the next, 0: tight.  Kernels that decode B themselves read rows that begin at multiples
 * of 16 bytes. */
static int64_t pitch_of_b(int kernel)
{
    const char *name = bsm_kernel_name(kernel);
    return strstr(name, "_bytes_") != NULL || strstr(name, "_stream_") != NULL ? 64 : 0;
}

/* Whether the kernel takes the pair's terms: some that serve it want other packings, fewer rows, or more columns than
 * one. */
static bool takes(struct test *t, const struct contexts *c, int kernel, bsm_format fa, bsm_format fb)
{
    char *const somewhere = (char *)((intptr_t)1 << 40);          /* nobody looks */
    const int64_t rows = is_simulated() ? SIMULATED : term_count(fa), columns = is_simulated() ? SIMULATED / 2 : SLICE;
    bsm_matrix m[] = { { .format = fa, .rows = rows, .columns = 1 },
                       { .format = fb, .rows = columns, .columns = 1, .pitch = pitch_of_b(kernel) },
                       { .format = BSM_FORMAT_FP32, .rows = rows, .columns = columns } };
    for (int i = 0; i < 3; i++) {
        m[i].struct_size = sizeof m[i], m[i].data = somewhere + ((int64_t)i << 38);
        if (bsm_format_get((int)m[i].format)->block != 0) m[i].scales = (uint8_t *)m[i].data + ((int64_t)1 << 37);
    }
    const bsm_matmul call = { .struct_size = sizeof call, .a = &m[0], .b = &m[1], .d = &m[2] };
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    const bsm_status status = bsm_supported(c->gpu, &call);
    if (status != BSM_OK && status != BSM_EUNSUPPORTED) FAIL(t, "%s", bsm_last_error());
    return status == BSM_OK;
}

/* share: of B's terms, one in so many slices. */
static void check_pair(struct test *t, const struct contexts *c, const struct calls *calls, int kernel, bsm_format fa,
                       bsm_format fb, int share)
{
    /* Rows whose scales leave the middle of bf16's range are left to cuda_simt beside a bf16 operand; that is slow for
     * so many. */
    const bool near = fa == BSM_FORMAT_BF16 || fb == BSM_FORMAT_BF16, sampled = is_simulated();
    const int64_t rows = sampled ? SIMULATED : term_count(fa), columns = term_count(fb);
    struct terms a = make_terms(t, c, fa, 0, 0, rows, sampled, near);
    for (int64_t first = 0; first < columns && (!sampled || first == 0); first += (int64_t)SLICE * share) {
        const int64_t count = sampled                   ? SIMULATED / 2
                              : columns - first < SLICE ? columns - first
                              : share > 1               ? SLICE / 8
                                                        : SLICE;
        struct terms b = make_terms(t, c, fb, pitch_of_b(kernel), first, count, sampled, near);
        multiply_and_check(t, c, calls, kernel, &a, &b);
        free_terms(t, c, &b);
    }
    free_terms(t, c, &a);
}

static bool is_plain(int kernel) { return strcmp(bsm_kernel_name(kernel), simt_kernel()) == 0; }

/* Kernels on tensor cores take turns with the pairs, so that each has some and every pair has one; bf16 as it is goes
 * to all.  The plain kernel, which computes any element in the same way, gets two pairs, and samples of B. */
static void one_term_is_exact(struct test *t)
{
    struct contexts c;
    struct calls calls;
    int kernels = 0, turn = 0, checked = 0;
    if (!contexts_open(t, &c)) return;
    CHECK_OR_RETURN(t, calls_open(t, &calls, true));
    while (bsm_kernel_name(kernels) != NULL) kernels++;
    for (int a = 1; a < BSM_FORMAT_FP32; a++)
        for (int b = 1; b < BSM_FORMAT_FP32; b++) {
            const bool as_it_is = a == BSM_FORMAT_BF16 && b == BSM_FORMAT_BF16;
            int taken = 0;
            for (int i = 0; i < kernels; i++) {
                const int kernel = (turn + i) % kernels;
                if (is_plain(kernel) || !bsm_kernel_serves(c.gpu, kernel, (bsm_format)a, (bsm_format)b)) continue;
                if (!takes(t, &c, kernel, (bsm_format)a, (bsm_format)b)) continue;
                if (taken++ > 0 && (!as_it_is || is_simulated())) continue;
                if (is_simulated() && (12 * a + b) % 29 != 0 && !as_it_is) continue;
                check_pair(t, &c, &calls, kernel, (bsm_format)a, (bsm_format)b, 1);
                checked++;
            }
            if (taken == 0) FAIL(t, "no kernel takes %s x %s", bsm_format_get(a)->name, bsm_format_get(b)->name);
            turn++;
        }
    for (int kernel = 0; kernel < kernels; kernel++)
        if (bsm_kernel_serves(c.gpu, kernel, BSM_MXFP8_E4M3, BSM_MXFP8_E4M3) && is_plain(kernel)) {
            check_pair(t, &c, &calls, kernel, BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 4);
            check_pair(t, &c, &calls, kernel, BSM_FORMAT_BF16, BSM_FORMAT_BF16, 4);
            checked += 2;
        }
    CHECK(t, checked > 4);
    calls_close(&calls);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(one_term_is_exact) };
    return TEST_MAIN(argc, argv, cases);
}

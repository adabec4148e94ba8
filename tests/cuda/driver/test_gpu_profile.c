/* Times of kernels: every launch of a product once, in order, and D as without them; what is refused. */
#include "cuda/harness/gpu.h"

enum { M = 40, N = 72, K = 160 };

static struct operand make(bsm_format format, int64_t rows, int64_t columns)
{
    return operand_make(&(struct shape){ .format = format, .rows = rows, .columns = columns }, 0);
}

/* Whether one of the kernels' names has this part. */
static int named(const bsm_kernel_time *kernels, int count, const char *part)
{
    int found = 0;
    for (int i = 0; i < count; i++) found += strstr(kernels[i].kernel, part) != NULL;
    return found;
}

static void kernels_are_told_in_order(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    bsm_kernel_time kernels[BSM_PROFILE_KERNELS], first;
    int count = -1, again = -1;
    struct operand a = make(BSM_MXFP4, M, K), b = make(BSM_MXFP4, N, K),
                   d = make(BSM_FORMAT_FP32, M, N);
    fill_whole(t, &a), fill_whole(t, &b);
    const struct run run = { .a = &a, .b = &b, .d = &d, .call.struct_size = sizeof(bsm_matmul) };
    CHECK(t, bsm_profile_begin(c.gpu) == BSM_OK);
    CHECK(t, run_both(t, &c, &run, "timed") == BSM_OK);            /* D is the CPU's */
    CHECK(t, bsm_profile_end(c.gpu, kernels, BSM_PROFILE_KERNELS, &count) == BSM_OK);
    CHECK_OR_RETURN(t, count >= 1 && count < BSM_PROFILE_KERNELS);
    int multiply = 0;
    for (int i = 0; i < count; i++) {
        multiply += kernels[i].multiplies;
        if (strncmp(kernels[i].kernel, "bsmi_", 5) != 0 || kernels[i].ctas < 1 || kernels[i].threads < 32
            || !(kernels[i].seconds >= 0 && kernels[i].seconds < 1000))
            FAIL(t, "kernel %d: %s, %d CTAs of %d threads, %g s", i, kernels[i].kernel, (int)kernels[i].ctas,
                 kernels[i].threads, kernels[i].seconds);
    }
    CHECK(t, multiply == 1 && named(kernels, count, "gemm") == 1);
    CHECK(t, bsm_profile_begin(c.gpu) == BSM_OK);
    CHECK(t, run_both(t, &c, &run, "timed again") == BSM_OK);
    memset(&first, 0x5a, sizeof first);
    CHECK(t, bsm_profile_end(c.gpu, &first, 1, &again) == BSM_OK && again == count);
    CHECK(t, strcmp(first.kernel, kernels[0].kernel) == 0);
    CHECK(t, run_both(t, &c, &run, "untimed") == BSM_OK);
    operand_free(&a), operand_free(&b), operand_free(&d);
    contexts_close(&c);
}

static void more_kernels_than_are_told(struct test *t)
{
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    int count = -1;
    struct operand a = make(BSM_MXFP4, 3, 64), b = make(BSM_MXFP4, 5, 64),
                   d = make(BSM_FORMAT_FP32, 3, 5);
    fill_whole(t, &a), fill_whole(t, &b);
    const struct run run = { .a = &a, .b = &b, .d = &d, .call.struct_size = sizeof(bsm_matmul) };
    CHECK(t, bsm_profile_begin(c.gpu) == BSM_OK);
    for (int i = 0; i < BSM_PROFILE_KERNELS + 2; i++) CHECK(t, run_both(t, &c, &run, "timed") == BSM_OK);
    CHECK(t, bsm_profile_end(c.gpu, NULL, 0, &count) == BSM_OK && count == BSM_PROFILE_KERNELS);
    CHECK(t, bsm_profile_begin(c.gpu) == BSM_OK);                  /* and a context that is destroyed meanwhile */
    CHECK(t, run_both(t, &c, &run, "timed") == BSM_OK);
    operand_free(&a), operand_free(&b), operand_free(&d);
    contexts_close(&c);
}

#define REFUSED(call, status, sentence) \
    CHECK(t, (call) == (status) && strcmp(bsm_last_error(), sentence) == 0)

static void what_is_refused(struct test *t)
{
    struct contexts c;
    bsm_kernel_time kernel;
    int count = 7;
    if (!contexts_open(t, &c)) return;
    REFUSED(bsm_profile_begin(NULL), BSM_EINVAL, "context is NULL");
    REFUSED(bsm_profile_begin(c.cpu), BSM_EUNSUPPORTED,
            "context is one of backend cpu: kernels are timed on backend cuda alone");
    REFUSED(bsm_profile_end(c.gpu, &kernel, 1, &count), BSM_EINVAL, "the context's profile has not begun");
    CHECK(t, count == 0);
    CHECK(t, bsm_profile_begin(c.gpu) == BSM_OK);
    REFUSED(bsm_profile_begin(c.gpu), BSM_EINVAL, "the context's profile has begun already");
    REFUSED(bsm_profile_end(c.gpu, &kernel, 1, NULL), BSM_EINVAL, "count is NULL");
    REFUSED(bsm_profile_end(c.gpu, &kernel, -1, &count), BSM_EINVAL, "most=-1 is negative");
    REFUSED(bsm_profile_end(c.gpu, NULL, 1, &count), BSM_EINVAL, "kernels is NULL, and most=1");
    CHECK(t, bsm_profile_end(c.gpu, &kernel, 1, &count) == BSM_OK && count == 0);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(kernels_are_told_in_order), TEST(more_kernels_than_are_told),
                                              TEST(what_is_refused) };
    return TEST_MAIN(argc, argv, cases);
}

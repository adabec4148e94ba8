/* Contexts of two GPUs in one process: the same bits on both, operands that go from one to the other, threads that use
 * both at a time; a device that is not there, and memory of the wrong one.  With fewer GPUs it says "skipped";
 * simulated, CUDASIM_DEVICES=2 makes two. */
#include "cuda/harness/gpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

enum { DEVICES = 2, M = 33, N = 40, K = 128 };

/* What the test asks of the driver itself. */
static struct {
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*copy_peer)(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes);
} driver;

static bool find_driver(struct test *t)
{
    static const char *const names[] = { "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2",
                                         "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuMemcpyPeer" };
    const char *path = getenv("BLOCKSCALE_LIBCUDA");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = library == NULL ? NULL : dlsym(library, names[i]);
        if (found == NULL) {
            FAIL(t, "the driver lacks %s", names[i]);
            return false;
        }
        memcpy((char *)&driver + i * sizeof found, &found, sizeof found);
    }
    return true;
}

static bsm_status open_gpu(int device, bsm_context **context)
{
    const bsm_context_options options = { .struct_size = sizeof options, .backend = BSM_BACKEND_CUDA,
                                          .device = device };
    return bsm_context_create(&options, context);
}

/* Both with the same CPU, which judges. */
static bool open_both(struct test *t, struct contexts on[DEVICES])
{
    int count = 0;
    if (!contexts_open(t, &on[0])) return false;
    on[1] = on[0];
    if (bsm_device_count(BSM_BACKEND_CUDA, &count) == BSM_OK && count < DEVICES) {
        char why[64];
        snprintf(why, sizeof why, "%d GPU: this test is for two", count);
        test_skip(t, why);
        contexts_close(&on[0]);
        return false;
    }
    if (open_gpu(1, &on[1].gpu) == BSM_OK) return true;
    FAIL(t, "device 1: %s", bsm_last_error());
    contexts_close(&on[0]);
    return false;
}

static void close_both(struct contexts on[DEVICES])
{
    bsm_context_destroy(on[1].gpu);
    contexts_close(&on[0]);
}

static void devices_are_listed(struct test *t)
{
    struct contexts on[DEVICES];
    bsm_context *third = NULL;
    int count = 0;
    if (!open_both(t, on)) return;
    CHECK(t, bsm_device_count(BSM_BACKEND_CUDA, &count) == BSM_OK);
    for (int i = 0; i < count; i++) {
        bsm_device_info info = { .struct_size = sizeof info };
        CHECK(t, bsm_device_describe(BSM_BACKEND_CUDA, i, &info) == BSM_OK && info.multiprocessors > 0);
    }
    char sentence[64];
    snprintf(sentence, sizeof sentence, "device=%d: this machine has %d GPUs, numbered from 0", count, count);
    if (open_gpu(count, &third) != BSM_EDEVICE || third != NULL || strstr(bsm_last_error(), sentence) == NULL)
        FAIL(t, "a device too many: \"%s\"", bsm_last_error());
    close_both(on);
}

static bool are_of_one_kind(void)
{
    bsm_device_info info[DEVICES] = { { .struct_size = sizeof info[0] }, { .struct_size = sizeof info[0] } };
    for (int i = 0; i < DEVICES; i++)
        if (bsm_device_describe(BSM_BACKEND_CUDA, i, &info[i]) != BSM_OK) return false;
    return info[0].major == info[1].major && info[0].minor == info[1].minor;
}

/* Numbers whose sums are rounded: the bits depend on the order of the sums, which is the same on both. */
static void products_have_the_same_bits(struct test *t)
{
    static const bsm_format formats[][2] = { { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_MXFP8_E4M3, BSM_MXFP4 },
                                             { BSM_NVFP4, BSM_NVFP4 }, { BSM_FORMAT_BF16, BSM_MXFP4 } };
    struct contexts on[DEVICES];
    if (!open_both(t, on)) return;
    if (!are_of_one_kind()) {
        test_skip(t, "the GPUs are of different kinds, whose sums have different orders");
        close_both(on);
        return;
    }
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        struct operand a = operand_make(&(struct shape){ .format = formats[f][0], .rows = M, .columns = K }, 0);
        struct operand b = operand_make(&(struct shape){ .format = formats[f][1], .rows = N, .columns = K }, 0);
        struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N }, 0xff);
        operand_fill(t, &a, false), operand_fill(t, &b, false);
        for (int i = 0; i < DEVICES; i++) {
            struct twin ta = twin_make(t, &on[i], &a), tb = twin_make(t, &on[i], &b), td = twin_make(t, &on[i], &d);
            const bsm_matmul call = { .struct_size = sizeof call, .a = &ta.m, .b = &tb.m, .d = &td.m };
            if (bsm_multiply(on[i].gpu, &call) != BSM_OK) FAIL(t, "device %d: %s", i, bsm_last_error());
            if (i == 0) from_device(t, &on[0], d.m.data, td.m.data, d.data_bytes);
            else twin_compare(t, &on[1], &td, "D of device 1 beside device 0's");
            twin_free(t, &on[i], &ta), twin_free(t, &on[i], &tb), twin_free(t, &on[i], &td);
        }
        operand_free(&a), operand_free(&b), operand_free(&d);
    }
    close_both(on);
}

/* Device 0 quantizes; its codes and scales go to device 1, which multiplies them. */
static void operands_go_from_device_to_device(struct test *t)
{
    struct contexts on[DEVICES];
    void *primary[DEVICES], *popped;
    if (!open_both(t, on)) return;
    CHECK_OR_RETURN(t, find_driver(t));
    for (int i = 0; i < DEVICES; i++) CHECK_OR_RETURN(t, driver.retain(&primary[i], i) == 0);
    struct operand x = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = N, .columns = K }, 0);
    struct operand a = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = M, .columns = K }, 0);
    struct operand b = operand_make(&(struct shape){ .format = BSM_MXFP4, .rows = N, .columns = K }, 0);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N }, 0xff);
    for (int64_t i = 0; i < N * K; i++) ((float *)x.m.data)[i] = (float)(i % 7 - 3);
    operand_fill(t, &a, true);
    struct twin source = twin_make(t, &on[0], &x), quantized = twin_make(t, &on[0], &b);
    struct twin ta = twin_make(t, &on[1], &a), tb = twin_make(t, &on[1], &b), td = twin_make(t, &on[1], &d);
    bsm_real_matrix reals = { .struct_size = sizeof reals, .type = BSM_REAL_FP32, .rows = N, .columns = K,
                              .data = source.m.data, .row_stride = K, .column_stride = 1 };
    if (bsm_quantize(on[0].gpu, &reals, NULL, &quantized.m, NULL) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    CHECK(t, bsm_context_synchronize(on[0].gpu) == BSM_OK);
    CHECK_OR_RETURN(t, driver.push(primary[1]) == 0);
    CHECK(t, driver.copy_peer((uintptr_t)tb.m.data, primary[1], (uintptr_t)quantized.m.data, primary[0], b.data_bytes)
                 == 0);
    CHECK(t, driver.copy_peer((uintptr_t)tb.m.scales, primary[1], (uintptr_t)quantized.m.scales, primary[0],
                              b.scale_bytes)
                 == 0);
    CHECK(t, driver.pop(&popped) == 0);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &ta.m, .b = &tb.m, .d = &td.m };
    const bsm_matmul judge = { .struct_size = sizeof judge, .a = &a.m, .b = &b.m, .d = &d.m };
    reals.data = x.m.data;
    CHECK(t, bsm_quantize(on[0].cpu, &reals, NULL, &b.m, NULL) == BSM_OK);
    CHECK(t, bsm_multiply(on[0].cpu, &judge) == BSM_OK);
    if (bsm_multiply(on[1].gpu, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    twin_compare(t, &on[1], &tb, "codes and scales that device 0 made");
    twin_compare(t, &on[1], &td, "D of device 1");
    twin_free(t, &on[0], &source), twin_free(t, &on[0], &quantized);
    twin_free(t, &on[1], &ta), twin_free(t, &on[1], &tb), twin_free(t, &on[1], &td);
    operand_free(&x), operand_free(&a), operand_free(&b), operand_free(&d);
    for (int i = 0; i < DEVICES; i++) CHECK(t, driver.release(i) == 0);
    close_both(on);
}

struct worker { const struct contexts *on; bsm_matmul call; int times; bsm_status status; };

static void *work(void *argument)
{
    struct worker *w = argument;
    for (int i = 0; i < w->times && w->status == BSM_OK; i++) w->status = bsm_multiply(w->on->gpu, &w->call);
    return NULL;
}

static void threads_use_both(struct test *t)
{
    struct contexts on[DEVICES];
    struct worker workers[DEVICES];
    struct twin ta[DEVICES], tb[DEVICES], td[DEVICES];
    pthread_t threads[DEVICES];
    if (!open_both(t, on)) return;
    struct operand a = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = M, .columns = K }, 0);
    struct operand b = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = N, .columns = K }, 0);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = M, .columns = N }, 0xff);
    operand_fill(t, &a, true), operand_fill(t, &b, true);
    const bsm_matmul judge = { .struct_size = sizeof judge, .a = &a.m, .b = &b.m, .d = &d.m };
    for (int i = 0; i < DEVICES; i++) {
        ta[i] = twin_make(t, &on[i], &a), tb[i] = twin_make(t, &on[i], &b), td[i] = twin_make(t, &on[i], &d);
        workers[i] = (struct worker){ .on = &on[i], .times = is_simulated() ? 2 : 100, .status = BSM_OK };
        workers[i].call = (bsm_matmul){ .struct_size = sizeof judge, .a = &ta[i].m, .b = &tb[i].m, .d = &td[i].m };
    }
    CHECK(t, bsm_multiply(on[0].cpu, &judge) == BSM_OK);
    for (int i = 0; i < DEVICES; i++) CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    for (int i = 0; i < DEVICES; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < DEVICES; i++) {
        CHECK(t, workers[i].status == BSM_OK);
        twin_compare(t, &on[i], &td[i], i == 0 ? "device 0" : "device 1");
        twin_free(t, &on[i], &ta[i]), twin_free(t, &on[i], &tb[i]), twin_free(t, &on[i], &td[i]);
    }
    operand_free(&a), operand_free(&b), operand_free(&d);
    close_both(on);
}

/* Runs last: the device is lost to the process.  The other one goes on. */
static void memory_of_the_other_device_is_noticed(struct test *t)
{
    struct contexts on[DEVICES];
    if (!is_simulated()) {
        test_skip(t, "a real device is lost to a process after a fault");
        return;
    }
    if (!open_both(t, on)) return;
    setenv("CUDASIM_QUIET", "1", 1);
    struct operand a = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = M, .columns = K }, 0);
    struct operand b = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = N, .columns = K }, 0);
    struct operand d = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = M, .columns = N }, 0xff);
    operand_fill(t, &a, true), operand_fill(t, &b, true);
    struct twin ta = twin_make(t, &on[1], &a), tb = twin_make(t, &on[0], &b), td = twin_make(t, &on[1], &d);
    const bsm_matmul call = { .struct_size = sizeof call, .a = &ta.m, .b = &tb.m, .d = &td.m };
    bsm_status status = bsm_multiply(on[1].gpu, &call);
    if (status == BSM_OK) status = bsm_context_synchronize(on[1].gpu);
    if (status != BSM_EDEVICE || strstr(bsm_last_error(), "CUDA_ERROR_ILLEGAL_ADDRESS") == NULL)
        FAIL(t, "B in memory of device 0 gives status %d on device 1, \"%s\"", (int)status, bsm_last_error());
    CHECK(t, bsm_context_synchronize(on[0].gpu) == BSM_OK);
    operand_free(&a), operand_free(&b), operand_free(&d);
    close_both(on);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(devices_are_listed), TEST(products_have_the_same_bits),
                                              TEST(operands_go_from_device_to_device), TEST(threads_use_both),
                                              TEST(memory_of_the_other_device_is_noticed) };
    return TEST_MAIN(argc, argv, cases);
}

/* What tests of products on a GPU share. */
#include "gpu.h"

#include <stdlib.h>

/* Loading kernels takes cudasim seconds, and contexts of a GPU share them as long as there is one: this one stays. */
static bsm_context *holds_kernels;

bool is_hip(void)
{
    const char *device = getenv("TEST_DEVICE");
    return device != NULL && strcmp(device, "hip") == 0;
}

static bsm_backend backend(void) { return is_hip() ? BSM_BACKEND_HIP : BSM_BACKEND_CUDA; }

bool is_simulated(void) { return getenv(is_hip() ? "BLOCKSCALE_LIBHIP" : "BLOCKSCALE_LIBCUDA") != NULL; }

bool contexts_open(struct test *t, struct contexts *c)
{
    const bsm_context_options options = { .struct_size = sizeof options, .backend = backend() };
    const uint32_t units = BSM_CPU_AMX | BSM_CPU_AVX512_BF16 | BSM_CPU_BF16;
    const bsm_context_options of_cpu = { .struct_size = sizeof of_cpu, .cpu_mask = BSM_CPU_ALL & ~units };
    int count;
    c->gpu = c->cpu = NULL;
    if (bsm_backend_missing((int)backend())[0] != '\0') {
        test_skip(t, bsm_backend_missing((int)backend()));
        return false;
    }
    if (!is_simulated() && bsm_device_count(backend(), &count) != BSM_OK) {
        test_skip(t, bsm_last_error());
        return false;
    }
    if ((holds_kernels == NULL && bsm_context_create(&options, &holds_kernels) != BSM_OK)
        || bsm_context_create(&options, &c->gpu) != BSM_OK || bsm_context_create(&of_cpu, &c->cpu) != BSM_OK) {
        FAIL(t, "no context: %s", bsm_last_error());
        return false;
    }
    return true;
}

void contexts_close(struct contexts *c)
{
    bsm_context_destroy(c->gpu);
    bsm_context_destroy(c->cpu);
}

bool tensor_memory_open(struct test *t, struct contexts *c)
{
    if (!contexts_open(t, c)) return false;
    if (kernel_number(c->gpu, "cuda_tcgen05_f16_128x128", BSM_FORMAT_BF16, BSM_FORMAT_BF16) >= 0) return true;
    test_skip(t, "no GPU with tensor memory");
    contexts_close(c);
    return false;
}

int kernel_number(const bsm_context *context, const char *name, bsm_format a, bsm_format b)
{
    for (int i = 0; bsm_kernel_name(i) != NULL; i++)
        if (strcmp(bsm_kernel_name(i), name) == 0) return bsm_kernel_serves(context, i, a, b) ? i : -1;
    return -1;
}

const char *simt_kernel(void) { return is_hip() ? "hip_simt" : "cuda_simt"; }

int kernel_with(const char *part, int n)
{
    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++)
        if (strstr(bsm_kernel_name(kernel), part) != NULL && n-- == 0) return kernel;
    return -1;
}

bool one_is_asked_for(void) { return getenv("GEMM_INSTANCE") != NULL; }

static const char *first_of(const bsm_context *gpu, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++)
        if (kernel_number(gpu, names[i], BSM_FORMAT_BF16, BSM_MXFP4) >= 0) return names[i];
    return NULL;
}

const char *rows_kernel(const bsm_context *gpu)
{
    return first_of(gpu, (const char *const[]){ "cuda_wgmma_64x48_1x1", "cuda_mma_sync_bf16_16x64x128",
                                                "cuda_tcgen05_f16_16x128", "hip_mfma_bf16_128x128", NULL });
}

const char *few_rows_kernel(const bsm_context *gpu)
{
    return first_of(gpu, (const char *const[]){ "cuda_wgmma_mxfp4_16x64_1x1_interleaved",
                                                "cuda_mma_sync_mxfp4_16x64_stored",
                                                "cuda_tcgen05_mxfp4_16x128", NULL });
}

bool is_of_gpu(const bsm_context *gpu, int kernel)
{
    const char *rows = rows_kernel(gpu);
    return rows != NULL && strncmp(bsm_kernel_name(kernel), rows, strlen("cuda_wgmma")) == 0;
}

bool has_function(int kernel, const char *function)
{
    static const char *const families[][2] = { { "bsmi_gemm_sm120_", "cuda_mma_sync_" },
                                               { "bsmi_gemm_tensor_", "cuda_tcgen05_" },
                                               { "bsmi_gemm_", "cuda_wgmma_" } };
    int i = 0;
    while (strncmp(function, families[i][0], strlen(families[i][0])) != 0) i++;
    const char *prefix = families[i][1], *name = bsm_kernel_name(kernel), *tile = function + strlen(families[i][0]);
    return strncmp(name, prefix, strlen(prefix)) == 0 && strncmp(name + strlen(prefix), tile, strlen(tile)) == 0;
}

bool is_asked_for(int kernel) { return !one_is_asked_for() || has_function(kernel, getenv("GEMM_INSTANCE")); }

bsm_format nibbles_of_kernel(int kernel)
{
    return strstr(bsm_kernel_name(kernel), "nvfp4") != NULL ? BSM_NVFP4 : BSM_MXFP4;
}

struct operand nibble_operand(bsm_format format, int64_t rows, int64_t columns, int64_t batch, bsm_layout layout)
{
    const struct shape shape = { .format = format,
                                 .rows = rows,
                                 .columns = columns,
                                 .batch = batch,
                                 .layout = { .kind = layout },
                                 .packing = format == BSM_MXFP4 || format == BSM_NVFP4 ? BSM_PACKING_LOW_FIRST
                                                                                       : BSM_PACKING_DEFAULT };
    return operand_make(&shape, 0xff);
}

void set_scales(struct test *t, struct operand *o, enum scales scales)
{
    const bool e8m0 = o->m.format != BSM_NVFP4;
    for (int64_t matrix = 0; matrix < (o->m.batch < 1 ? 1 : o->m.batch); matrix++)
        for (int64_t r = 0; r < o->m.rows; r++)
            for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->m); s++) {
                const uint8_t far = e8m0 ? (uint8_t)(r % 2 == 0 ? 20 + rnd_below(t, 8) : 220 + rnd_below(t, 8))
                                         : (uint8_t)rnd_below(t, 0x7f);
                const uint8_t spanning =
                    e8m0 ? (uint8_t)(rnd_below(t, 2) == 0 ? 60 : 190) : (uint8_t)(0x80 | rnd_below(t, 0x7f));
                const uint8_t large = e8m0 ? (uint8_t)(125 + rnd_below(t, 41)) : (uint8_t)(0x60 + rnd_below(t, 0x1f));
                if (scales == SCALES_NEAR_THE_ENDS && r % 3 != 0) bsm_matrix_set_scale(&o->m, matrix, r, s, far);
                if (scales == SCALES_SPANNING && r % 5 == 0) bsm_matrix_set_scale(&o->m, matrix, r, s, spanning);
                if (scales == SCALES_LARGE) bsm_matrix_set_scale(&o->m, matrix, r, s, large);
                if (scales == SCALES_WITH_NAN && r % 9 == 1 && rnd_below(t, 20) == 0)
                    bsm_matrix_set_scale(&o->m, matrix, r, s, e8m0 ? 255 : 0x7f);
            }
}

void *to_device(struct test *t, const struct contexts *c, const void *bytes, size_t count)
{
    void *memory = NULL;
    if (bytes == NULL || count == 0) return NULL;
    if (bsm_device_allocate(c->gpu, count, &memory) != BSM_OK
        || bsm_device_write(c->gpu, memory, bytes, count) != BSM_OK)
        FAIL(t, "%zu bytes to the device: %s", count, bsm_last_error());
    return memory;
}

void from_device(struct test *t, const struct contexts *c, void *bytes, const void *device, size_t count)
{
    if (device == NULL || count == 0) return;
    if (bsm_device_read(c->gpu, bytes, device, count) != BSM_OK)
        FAIL(t, "%zu bytes from the device: %s", count, bsm_last_error());
}

struct twin twin_make(struct test *t, const struct contexts *c, const struct operand *host)
{
    int64_t metadata_bytes = 0;
    struct twin twin = { .sparse = host->sparse, .host = host };
    twin.m.data = to_device(t, c, host->m.data, host->data_bytes);
    twin.m.scales = host->m.scales == host->m.data ? twin.m.data : to_device(t, c, host->m.scales, host->scale_bytes);
    twin.m.tensor_scale = to_device(t, c, host->m.tensor_scale, sizeof(float));
    if (host->m.struct_size == sizeof host->sparse && host->sparse.metadata != NULL) {
        CHECK(t, bsm_matrix_metadata_bytes(&host->m, &metadata_bytes) == BSM_OK);
        twin.sparse.metadata = to_device(t, c, host->sparse.metadata, (size_t)metadata_bytes);
    }
    return twin;
}

void twin_free(struct test *t, const struct contexts *c, struct twin *twin)
{
    bsm_status status = bsm_device_release(c->gpu, twin->m.data);
    if (status == BSM_OK && twin->m.scales != twin->m.data) status = bsm_device_release(c->gpu, twin->m.scales);
    if (status == BSM_OK) status = bsm_device_release(c->gpu, twin->m.tensor_scale);
    if (status == BSM_OK && twin->m.struct_size == sizeof twin->sparse)
        status = bsm_device_release(c->gpu, twin->sparse.metadata);
    if (status != BSM_OK) FAIL(t, "%s", bsm_last_error());
}

static void compare(struct test *t, const char *what, const char *part, const unsigned char *want,
                    const unsigned char *found, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (want[i] != found[i]) {
            FAIL(t, "%s: byte %zu of %s is 0x%02x on the GPU, 0x%02x on the CPU", what, i, part, found[i], want[i]);
            return;
        }
}

static void compare_buffer(struct test *t, const struct contexts *c, const char *what, const char *part,
                           const void *want, const void *device, size_t bytes)
{
    if (device == NULL || bytes == 0) return;
    unsigned char *found = malloc(bytes);
    from_device(t, c, found, device, bytes);
    compare(t, what, part, want, found, bytes);
    free(found);
}

void fill_whole(struct test *t, struct operand *o)
{
    static const uint8_t e8m0[] = { 126, 127, 128, 129 }, ue4m3[] = { 0x30, 0x38, 0x3c, 0x40, 0x44 };
    const bsm_format_info *f = bsm_format_get((int)o->m.format);
    const int64_t batch = o->m.batch == 0 ? 1 : o->m.batch;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t r = 0; r < o->m.rows; r++) {
            for (int64_t k = 0; k < o->m.columns; k++) {
                const double value = (double)rnd_between(t, -3, 3);
                bsm_matrix_set_code(&o->m, b, r, k,
                                    bsm_element_encode(f->element, value, BSM_ROUND_NEAREST_EVEN, true, 0));
            }
            for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->m); s++)
                bsm_matrix_set_scale(&o->m, b, r, s,
                                     f->scale == BSM_E8M0 ? e8m0[rnd_below(t, 4)] : ue4m3[rnd_below(t, 5)]);
        }
}

void twin_compare(struct test *t, const struct contexts *c, const struct twin *twin, const char *what)
{
    compare_buffer(t, c, what, "data", twin->host->m.data, twin->m.data, twin->host->data_bytes);
    if (twin->m.scales != twin->m.data)
        compare_buffer(t, c, what, "scales", twin->host->m.scales, twin->m.scales, twin->host->scale_bytes);
    compare_buffer(t, c, what, "the tensor scale", twin->host->m.tensor_scale, twin->m.tensor_scale, sizeof(float));
}

bsm_status run_both(struct test *t, const struct contexts *c, const struct run *run, const char *what)
{
    struct twin a = twin_make(t, c, run->a), b = twin_make(t, c, run->b), d = twin_make(t, c, run->d),
                none = { .host = NULL };
    struct twin cc = run->c == run->d ? d : run->c != NULL ? twin_make(t, c, run->c) : none;
    bsm_matmul host = run->call, device = run->call;
    host.a = &run->a->m, host.b = &run->b->m, host.c = run->c != NULL ? &run->c->m : NULL, host.d = &run->d->m;
    device.a = &a.m, device.b = &b.m, device.c = run->c != NULL ? &cc.m : NULL, device.d = &d.m;
    device.alpha = to_device(t, c, host.alpha, (size_t)run->alphas * sizeof(float));
    device.beta = to_device(t, c, host.beta, sizeof(float));
    device.bias = to_device(t, c, host.bias, (size_t)run->biases * bsm_real_bytes((int)host.bias_type));
    device.group_rows = to_device(t, c, host.group_rows, (size_t)host.groups * sizeof(int64_t));
    device.group_columns = to_device(t, c, host.group_columns, (size_t)host.groups * sizeof(int64_t));
    device.amax = to_device(t, c, host.amax, sizeof(float));

    const bsm_status on_cpu = bsm_multiply(c->cpu, &host);
    if (on_cpu != BSM_OK) FAIL(t, "%s: on the CPU: %s", what, bsm_last_error());
    const bsm_status status = bsm_multiply(c->gpu, &device);
    if (status != BSM_OK) FAIL(t, "%s: %s", what, bsm_last_error());
    if (status == BSM_OK && on_cpu == BSM_OK) {
        twin_compare(t, c, &d, what);
        if (host.amax != NULL) compare_buffer(t, c, what, "amax", host.amax, device.amax, sizeof(float));
    }
    const void *arrays[] = { device.alpha, device.beta, device.bias, device.group_rows, device.group_columns,
                             device.amax };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        (void)bsm_device_release(c->gpu, (void *)(uintptr_t)arrays[i]);
    twin_free(t, c, &a);
    twin_free(t, c, &b);
    twin_free(t, c, &d);
    if (run->c != NULL && run->c != run->d) twin_free(t, c, &cc);
    return status;
}

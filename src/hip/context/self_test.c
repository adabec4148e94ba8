/* Small products of integers, whose bits are known whatever the order of sums: by the kernel without matrix
 * instructions and by the smallest instance of each kind, of pairs of elements of 4, 6 and 8 bits and of both. */
#include "self_test.h"

#include "hip/gemm/multiply.h"

enum { M = 5, N = 9, K = 160, MOST_DATA = 16 * K * 2, MOST_SCALES = 16 * K };

struct operand { bsm_matrix matrix; _Alignas(16) unsigned char data[MOST_DATA]; unsigned char scales[MOST_SCALES]; };
struct sample { struct operand a, b; float d[M * N]; };

static const struct { bsm_format a, b; } pairs[] = {
    { BSM_MXFP8_E4M3, BSM_MXFP4 }, { BSM_MXFP4, BSM_MXFP4 }, { BSM_MXFP6_E2M3, BSM_MXFP8_E5M2 },
    { BSM_FORMAT_BF16, BSM_NVFP4 }, { BSM_FORMAT_FP16, BSM_MXFP4_BLOCK16 },
};

/* Elements -2 .. 2 and -3 .. 3. */
static int a_at(int row, int k) { return (row * 3 + k) % 5 - 2; }
static int b_at(int row, int k) { return (row + 2 * k) % 7 - 3; }

static bsm_status fill(struct operand *o, bsm_format format, int rows, int (*value)(int row, int k))
{
    const bsm_format_info *info = bsm_format_get((int)format);
    const int of_scale = info->scale == BSM_E8M0 ? 128 : 0x40;         /* 2 */
    bsm_status status = BSM_OK;
    o->matrix = (bsm_matrix){ .struct_size = sizeof o->matrix, .format = format, .rows = rows, .columns = K,
                              .data = o->data, .scales = info->block != 0 ? o->scales : NULL };
    for (int i = 0; i < rows * K && status == BSM_OK; i++) {
        const int row = i / K, k = i % K;
        const uint32_t code =
            bsm_element_encode(info->element, (double)value(row, k), BSM_ROUND_NEAREST_EVEN, true, 0);
        status = bsm_matrix_set_code(&o->matrix, 0, row, k, code);
        if (status == BSM_OK && info->block != 0 && k % info->block == 0)
            status = bsm_matrix_set_scale(&o->matrix, 0, row, k / info->block, (uint8_t)of_scale);
    }
    return status;
}

static bsm_status compare(const struct bsmi_hip_gpu *gpu, int gemm, bsm_format a, bsm_format b, const float *d)
{
    const int scales = (bsm_format_get((int)a)->block != 0 ? 2 : 1) * (bsm_format_get((int)b)->block != 0 ? 2 : 1);
    for (int i = 0; i < M * N; i++) {
        int want = 0;
        for (int k = 0; k < K; k++) want += a_at(i / N, k) * b_at(i % N, k) * scales;
        if (d[i] != (float)want)
            return bsmi_fail(BSM_EDEVICE,
                             "self-test on GPU %d: kernel %s gave %a for %s times %s in row %d, column %d, where %d is "
                             "right",
                             gpu->number, gemm < 0 ? "bsmi_sums" : bsmi_hip_instances[gemm].name, (double)d[i],
                             bsm_format_get((int)a)->name, bsm_format_get((int)b)->name, i / N, i % N, want);
    }
    return BSM_OK;
}

/* The sample at `device`, the workspace behind it, and then prepacked weights, where the kernel reads them. */
static bsm_status run_sample(bsm_context *context, struct sample *sample, unsigned char *device, size_t workspace_at,
                             const struct bsmi_hip_multiply *multiply)
{
    const struct bsmi_device_calls *calls = context->device->calls;
    bsm_matrix a = sample->a.matrix, b = sample->b.matrix;
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
                           .data = device + offsetof(struct sample, d) };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .d = &d };
    struct bsmi_product product;
    a.data = device + offsetof(struct sample, a.data), b.data = device + offsetof(struct sample, b.data);
    if (a.scales != NULL) a.scales = device + offsetof(struct sample, a.scales);
    if (b.scales != NULL) b.scales = device + offsetof(struct sample, b.scales);
    unsigned char *workspace = device + workspace_at, *panels = workspace + multiply->workspace_bytes;
    bsm_status status = bsmi_product_check(&call, true, &product);
    if (status == BSM_OK) status = calls->write(context, device, sample, sizeof *sample);
    if (status == BSM_OK && bsmi_hip_wants_prepacked(multiply)) {
        status = bsmi_hip_pack(context, &product, panels);
        product.b_panels = panels;
    }
    if (status == BSM_OK) status = bsmi_hip_run(context, multiply, &product, workspace);
    return status == BSM_OK ? calls->read(context, sample->d, d.data, sizeof sample->d) : status;
}

static bsm_status test_pair(bsm_context *context, struct sample *sample, bsm_format fa, bsm_format fb, int gemm)
{
    const struct bsmi_device_calls *calls = context->device->calls;
    struct bsmi_hip_gpu *gpu = bsmi_hip_device_of(context)->gpu;
    const size_t workspace_at = (size_t)bsmi_round_up((int64_t)sizeof *sample, BSMI_HIP_ALIGNMENT);
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
                           .data = sample->d };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &sample->a.matrix, .b = &sample->b.matrix, .d = &d };
    struct bsmi_product product;
    struct bsmi_hip_multiply multiply;
    void *device = NULL;
    memset(sample, 0, sizeof *sample);
    bsm_status status = fill(&sample->a, fa, M, a_at);
    if (status == BSM_OK) status = fill(&sample->b, fb, N, b_at);
    if (status == BSM_OK) status = bsmi_product_check(&call, true, &product);
    if (status == BSM_OK) status = bsmi_hip_prepare(&product, gemm, &multiply);
    if (status == BSM_OK && gemm >= 0) status = bsmi_hip_load_gemm(gpu, gemm, multiply.pair);
    const size_t panels_bytes = status == BSM_OK ? bsmi_hip_prepacked_bytes(&multiply, &product) : 0;
    if (status == BSM_OK)
        status = calls->allocate(context, workspace_at + multiply.workspace_bytes + panels_bytes, &device);
    if (status != BSM_OK) return status;
    status = run_sample(context, sample, device, workspace_at, &multiply);
    const bsm_status released = calls->release(context, device);
    if (status == BSM_OK) status = compare(gpu, gemm, fa, fb, sample->d);
    return status != BSM_OK ? status : released;
}

/* The smallest instance of its kind. */
static bool is_smallest(int gemm)
{
    const struct bsmi_hip_instance *all = bsmi_hip_instances;
    for (int i = 0; i < bsmi_hip_instance_count; i++)
        if (all[i].scaled == all[gemm].scaled && all[i].prepacked == all[gemm].prepacked
            && all[i].rows * all[i].columns < all[gemm].rows * all[gemm].columns)
            return false;
    return true;
}

static bsm_status test_all(bsm_context *context, struct sample *sample)
{
    bsm_status status = test_pair(context, sample, pairs[0].a, pairs[0].b, -1);
    for (int gemm = 0; gemm < bsmi_hip_instance_count; gemm++)
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0] && status == BSM_OK && is_smallest(gemm); i++) {
            const bool codes = bsm_format_get((int)pairs[i].a)->block == 32;
            int pair;
            if (codes == bsmi_hip_instances[gemm].scaled
                && bsmi_hip_serves(&bsmi_hip_instances[gemm], pairs[i].a, pairs[i].b, &pair)
                && bsmi_hip_has_gemm(gemm, pair))
                status = test_pair(context, sample, pairs[i].a, pairs[i].b, gemm);
        }
    return status;
}

bsm_status bsmi_hip_self_test(bsm_context *context)
{
    struct bsmi_hip_gpu *gpu = bsmi_hip_device_of(context)->gpu;
    if (atomic_load(&gpu->tested)) return BSM_OK;
    struct sample *sample = bsmi_allocate(context, sizeof *sample);
    if (sample == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for the self-test (%zu bytes)", sizeof *sample);
    const bsm_status status = test_all(context, sample);
    bsmi_release(context, sample, sizeof *sample);
    if (status == BSM_OK) atomic_store(&gpu->tested, true);
    return status;
}

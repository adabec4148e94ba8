/* Small products of integers, whose bits are known whatever the order of sums: one for each file of kernels that makes
 * sums, and for operands that are read as they are and operands that are decoded. */
#include "self_test.h"
#include "cuda/gemm/multiply.h"

enum { M = 5, N = 9, K = 128, MOST_DATA = 16 * K * 4, MOST_SCALES = 16 * K };

struct operand { bsm_matrix matrix; _Alignas(16) unsigned char data[MOST_DATA]; unsigned char scales[MOST_SCALES]; };
struct sample { struct operand a, b; float d[M * N]; };

static const struct { bsm_format a, b; bool codes; } pairs[] = {
    { BSM_FORMAT_BF16, BSM_FORMAT_BF16, false }, { BSM_MXFP8_E4M3, BSM_NVFP4, false },
      { BSM_FORMAT_FP16, BSM_MXFP4, false },
    { BSM_FORMAT_BF16, BSM_MXFP8_E5M2, false },  { BSM_FORMAT_BF16, BSM_MXFP6_E2M3, false },
    { BSM_MXFP8_E4M3, BSM_MXFP6_E3M2, true },    { BSM_MXFP4, BSM_MXFP4, true },       { BSM_NVFP4, BSM_NVFP4, true },
    { BSM_MXFP4, BSM_MXFP4_BLOCK16, true },
};

/* Whether pair number i is one for instance `gemm`. */
static bool is_for(size_t i, int gemm)
{
    if (gemm < 0 || bsmi_gemm_instances[gemm].operands == BSMI_OPERANDS_BF16) return !pairs[i].codes;
    if (bsmi_gemm_instances[gemm].operands == BSMI_OPERANDS_INT8)
        return pairs[i].a == BSM_MXFP4 && pairs[i].b == BSM_MXFP4;
    if (bsmi_gemm_instances[gemm].operands == BSMI_OPERANDS_FP8)
        return pairs[i].codes && bsmi_fp8_serves(pairs[i].a, pairs[i].b);
    return pairs[i].codes && bsmi_codes_serve(&bsmi_gemm_instances[gemm], pairs[i].a, pairs[i].b);
}

/* Elements -2 .. 2 and -3 .. 3. */
static int a_at(int row, int k) { return (row * 3 + k) % 5 - 2; }
static int b_at(int row, int k) { return (row + 2 * k) % 7 - 3; }

static bsm_status fill(struct operand *o, bsm_format format, int rows, int (*value)(int row, int k))
{
    const bsm_format_info *info = bsm_format_get((int)format);
    o->matrix = (bsm_matrix){ .struct_size = sizeof o->matrix,
                              .format = format,
                              .rows = rows,
                              .columns = K,
                              .pitch = K + 64,
                              .data = o->data,
                              .scales = info->block != 0 ? o->scales : NULL };
    bsm_status status = BSM_OK;
    for (int r = 0; r < rows && status == BSM_OK; r++)
        for (int k = 0; k < K && status == BSM_OK; k++)
            status = bsm_matrix_set_code(
                &o->matrix, 0, r, k,
                bsm_element_encode(info->element, (double)value(r, k), BSM_ROUND_NEAREST_EVEN, true, 0));
    for (int r = 0; r < rows; r++)
        for (int s = 0; info->block != 0 && s < K && s * info->block < K && status == BSM_OK; s++)
            status = bsm_matrix_set_scale(&o->matrix, 0, r, s, info->scale == BSM_E8M0 ? 128 : 0x40);         /* 2 */
    return status;
}

static int expected(int i, int j, bsm_format a, bsm_format b)
{
    int sum = 0;
    for (int k = 0; k < K; k++) sum += a_at(i, k) * b_at(j, k);
    return sum * (bsm_format_get((int)a)->block != 0 ? 2 : 1) * (bsm_format_get((int)b)->block != 0 ? 2 : 1);
}

static bsm_status compare(const struct bsmi_cuda_gpu *gpu, int gemm, bsm_format a, bsm_format b, const float *d)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            const float want = (float)expected(i, j, a, b), found = d[i * N + j];
            if (bsmi_float_bits(want) != bsmi_float_bits(found)
                && (bsmi_float_bits(want) | bsmi_float_bits(found)) != 0)
                return bsmi_fail(
                    BSM_EDEVICE,
                    "self-test on GPU %d: kernel %s gave %a for %s times %s in row %d, column %d, where "
                    "%a is right",
                    gpu->number,
                    gemm < 0 ? bsmi_cuda_kernels[BSMI_KERNEL_SUMS].function : bsmi_gemm_instances[gemm].name,
                    (double)found, bsm_format_get((int)a)->name, bsm_format_get((int)b)->name, i, j, (double)want);
        }
    return BSM_OK;
}

/* The sample lies at `device` on the GPU, the workspace behind it, and then panels, where the kernel reads them. */
static bsm_status run_sample(bsm_context *context, struct sample *sample, unsigned char *device, int gemm,
                             const struct bsmi_cuda_multiply *multiply)
{
    bsm_matrix a = sample->a.matrix, b = sample->b.matrix;
    const bsm_matrix d = {
        .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
        .data = device + offsetof(struct sample, d)
    };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .d = &d };
    a.data = device + offsetof(struct sample, a.data), b.data = device + offsetof(struct sample, b.data);
    if (a.scales != NULL) a.scales = device + offsetof(struct sample, a.scales);
    if (b.scales != NULL) b.scales = device + offsetof(struct sample, b.scales);
    const struct bsmi_device_calls *calls = context->device->calls;
    struct bsmi_product product;
    bsm_status status = bsmi_product_check(&call, true, &product);
    unsigned char *workspace = device + bsmi_round_up(sizeof *sample, BSMI_CUDA_ALIGNMENT);
    if (bsmi_cuda_prepacked_bytes(multiply, &product) > 0) product.b_panels = workspace + multiply->workspace_bytes;
    if (status == BSM_OK) status = calls->write(context, device, sample, sizeof *sample);
    if (status == BSM_OK && product.b_panels != NULL)
        status = bsmi_cuda_pack(context, multiply, &product, workspace + multiply->workspace_bytes);
    if (status == BSM_OK) status = bsmi_cuda_run(context, multiply, &product, workspace);
    if (status == BSM_OK) status = calls->read(context, sample->d, d.data, sizeof sample->d);
    return status == BSM_OK ? compare(bsmi_cuda_device_of(context)->gpu, gemm, a.format, b.format, sample->d) : status;
}

/* Prepares as a product of the same shape would be, runs, and frees the memory. */
static bsm_status test_pair(bsm_context *context, struct sample *sample, bsm_format fa, bsm_format fb, int gemm)
{
    memset(sample, 0, sizeof *sample);
    bsm_status status = fill(&sample->a, fa, M, a_at);
    if (status == BSM_OK) status = fill(&sample->b, fb, N, b_at);
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
                           .data = sample->d };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &sample->a.matrix, .b = &sample->b.matrix, .d = &d };
    struct bsmi_product product;
    struct bsmi_cuda_multiply multiply;
    const struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    if (status == BSM_OK) status = bsmi_product_check(&call, true, &product);
    if (status == BSM_OK && gemm >= 0 && !bsmi_cuda_gemm_serves(&bsmi_gemm_instances[gemm], &product, NULL))
        return BSM_OK;
    if (status == BSM_OK) status = bsmi_cuda_prepare(gpu, &product, gemm, &multiply);
    if (status != BSM_OK || !bsmi_cuda_has_kernels(gpu, &product, &multiply)) return status;
    const struct bsmi_device_calls *calls = context->device->calls;
    void *device = NULL;
    status = calls->allocate(context,
                             (size_t)bsmi_round_up(sizeof *sample, BSMI_CUDA_ALIGNMENT) + multiply.workspace_bytes
                                 + bsmi_cuda_prepacked_bytes(&multiply, &product),
                             &device);
    if (status != BSM_OK) return status;
    status = run_sample(context, sample, device, gemm, &multiply);
    const bsm_status released = calls->release(context, device);
    return status != BSM_OK ? status : released;
}

static int numbers_of(const struct bsmi_gemm_instance *gemm)
{
    return gemm->tile_rows * gemm->tile_columns * gemm->cluster_rows * gemm->cluster_columns;
}

/* Whether instance `gemm` is the smallest of its file that the GPU has: the sample is no larger. */
static bool stands_for_its_file(const struct bsmi_cuda_gpu *gpu, int gemm)
{
    const struct bsmi_gemm_instance *all = bsmi_gemm_instances;
    for (int i = 0; i < bsmi_gemm_instance_count; i++) {
        const int more = numbers_of(&all[i]) - numbers_of(&all[gemm]);
        if (gpu->gemms[i] != NULL && strcmp(all[i].file, all[gemm].file) == 0 && (more < 0 || (more == 0 && i < gemm)))
            return false;
    }
    return gpu->gemms[gemm] != NULL;
}

static bsm_status test_kernel(bsm_context *context, struct sample *sample, int gemm)
{
    bsm_status status = BSM_OK;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0] && status == BSM_OK; i++)
        if (is_for(i, gemm)) status = test_pair(context, sample, pairs[i].a, pairs[i].b, gemm);
    return status;
}

bsm_status bsmi_cuda_self_test(bsm_context *context)
{
    struct bsmi_cuda_gpu *gpu = bsmi_cuda_device_of(context)->gpu;
    if (atomic_load(&gpu->tested)) return BSM_OK;
    struct sample *sample = bsmi_allocate(context, sizeof *sample);
    if (sample == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for the self-test (%zu bytes)", sizeof *sample);
    bsm_status status = test_kernel(context, sample, -1);
    for (int i = 0; i < bsmi_gemm_instance_count && status == BSM_OK; i++)
        if (stands_for_its_file(gpu, i)) status = test_kernel(context, sample, i);
    bsmi_release(context, sample, sizeof *sample);
    if (status == BSM_OK) atomic_store(&gpu->tested, true);
    return status;
}

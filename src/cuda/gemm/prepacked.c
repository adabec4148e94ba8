/* Prepacked weights: how many bytes they are, and the launches that make them, and codes of them again. */
#include "cuda/driver/matrix.h"
#include "lowering.h"
#include "cuda/params/plain.h"
#include "cuda/sm90/operand/prepacked_layout.h"

static int64_t matrix_tiles(const struct bsmi_matrix *b) { return bsmi_ceil_div(b->rows, BSMI_PREPACKED_ROWS); }

/* Exponents of rows, in front of the prepacked weights, and at least one word behind them. */
static int64_t words_used(const struct bsmi_matrix *b) { return b->rows * b->batch; }

static int64_t exponent_bytes(const struct bsmi_matrix *b)
{
    return bsmi_round_up((words_used(b) + 1) * (int64_t)sizeof(int32_t), BSMI_CUDA_ALIGNMENT);
}

bool bsmi_cuda_has_split_k_order(const struct bsmi_product *p)
{
    const bool weights = p->b.format == BSM_MXFP4 || p->b.format == BSM_NVFP4,
               integers = p->a.format == BSM_MXFP4 && p->b.format == BSM_MXFP4;
    return weights && !integers && p->a.element != BSM_FP16 && p->groups == 0 && p->column_groups == 0
           && p->k > BSMI_SPLIT_K_COLUMNS && p->k % 2 == 0;
}

int64_t bsmi_cuda_prepacked_steps(int64_t k) { return bsmi_prepacked_slices(k) * BSMI_PREPACKED_STEPS; }

const unsigned char *bsmi_cuda_kept_codes(const struct bsmi_product *p)
{
    return (const unsigned char *)p->b_panels + exponent_bytes(&p->b);
}

/* Behind all: scales of a row that are NaN. */
static int64_t nan_row_bytes(const struct bsmi_matrix *b)
{
    return bsmi_round_up(bsmi_ceil_div(b->columns, b->block), BSMI_CUDA_ALIGNMENT);
}

/* Of the tiles; true on overflow. */
static bool count_tile_bytes(const struct bsmi_matrix *b, int64_t *bytes)
{
    return bsmi_mul_overflows(matrix_tiles(b) * b->batch,
                              bsmi_prepacked_slices(b->columns) * BSMI_PREPACKED_SLICE_BYTES(b->block), bytes);
}

size_t bsmi_cuda_nibble_panels_bytes(const struct bsmi_matrix *b)
{
    int64_t bytes;
    if (b->rows * b->batch >= (int64_t)1 << 40 || count_tile_bytes(b, &bytes)
        || bsmi_add_overflows(bytes, exponent_bytes(b) + nan_row_bytes(b), &bytes)) return 0;
    return (size_t)bytes;
}

/* Scales alone, for kernels that read codes as they are stored: behind the exponents flags of fallback rows, then B's
 * scales. */
enum { FLAG_BYTES = BSMI_MOST_PLAIN_FLAGS * (int)sizeof(uint32_t) };

static bool packs_scales(const struct bsmi_cuda_multiply *c)
{
    return c->gemm >= 0 && bsmi_gemm_decodes_to_tensor_memory(&bsmi_gemm_instances[c->gemm]);
}

const unsigned char *bsmi_cuda_packed_scales(const struct bsmi_product *p)
{
    return (const unsigned char *)p->b_panels + exponent_bytes(&p->b) + FLAG_BYTES;
}

struct bsmi_fallback bsmi_cuda_packed_flags(const struct bsmi_product *p)
{
    const unsigned char *flags = (const unsigned char *)p->b_panels + exponent_bytes(&p->b);
    return (struct bsmi_fallback){ (const uint32_t *)(const void *)flags,
                                   p->b.scale == BSM_E8M0 ? BSMI_MOST_PLAIN_FLAGS : 0 };
}

size_t bsmi_cuda_prepacked_bytes(const struct bsmi_cuda_multiply *c, const struct bsmi_product *p)
{
    const struct bsmi_matrix *b = &p->b;
    int64_t bytes;
    if (!bsmi_cuda_wants_prepacked(c)) return 0;
    if (!c->keeps_b && !packs_scales(c)) return bsmi_cuda_nibble_panels_bytes(b);
    if (b->rows * b->batch >= (int64_t)1 << 40) return 0;
    if (bsmi_mul_overflows(c->keeps_b ? c->b.fp8.batch_bytes : c->b.scale_batch_bytes, b->batch, &bytes)
        || bsmi_add_overflows(bytes, c->keeps_b ? 0 : FLAG_BYTES, &bytes))
        return 0;
    return bsmi_add_overflows(bytes, exponent_bytes(b), &bytes) ? 0 : (size_t)bytes;
}

/* A bf16 operand is taken as it is: then exponents of the other one's rows would move its numbers. */
static bool leaves_out(const struct bsmi_product *p) { return p->a.format == BSM_FORMAT_BF16; }

static unsigned char *nan_row(const struct bsmi_matrix *b, unsigned char *panels)
{
    return panels + bsmi_cuda_nibble_panels_bytes(b) - nan_row_bytes(b);
}

static bsm_status clear_words(const struct bsmi_cuda_queue *queue, unsigned char *from, int64_t bytes)
{
    return BSMI_DRIVER_CALL(queue->gpu->driver, cuMemsetD32Async,
                            ((CUdeviceptr)(uintptr_t)from, 0, (size_t)bytes / sizeof(int32_t), queue->stream),
                            "zeros of prepacked weights");
}

/* The NaN row, and zeros behind the exponents.  Products read prepacked weights before they wait for what is in
 * front of them, which a kernel launched with programmatic stream serialization may do while the kernel in front
 * still writes; behind anything else it begins when all that has ended. */
static bsm_status end_panels(const struct bsmi_cuda_queue *queue, const struct bsmi_matrix *b, unsigned char *panels)
{
    const int64_t used = words_used(b) * (int64_t)sizeof(int32_t);
    const bsm_status status =
        BSMI_DRIVER_CALL(queue->gpu->driver, cuMemsetD8Async,
                         ((CUdeviceptr)(uintptr_t)nan_row(b, panels), b->scale == BSM_UE4M3 ? 0x7f : 0xff,
                          (size_t)nan_row_bytes(b), queue->stream),
                         "the NaN row behind prepacked weights");
    if (status != BSM_OK) return status;
    return clear_words(queue, panels + used, exponent_bytes(b) - used);
}

/* What a product would load into its workspace of B, A being what it is there. */
static bsm_status pack_scales(struct bsmi_cuda_queue *queue, const struct bsmi_cuda_multiply *c,
                              const struct bsmi_product *p, unsigned char *panels)
{
    const int64_t flags_at = exponent_bytes(&p->b);
    struct bsmi_cuda_multiply loads = *c;
    loads.gemm = -1;
    loads.a.form = leaves_out(p) ? BSMI_FORM_AS_STORED : BSMI_FORM_IN_KERNEL, loads.a.own_scales = true;
    loads.b.own_scales = false;
    loads.b.exponents_at = 0, loads.b.fallback_at = (size_t)flags_at;
    loads.b.scales_at = (size_t)(flags_at + FLAG_BYTES);
    const bsm_status status = clear_words(queue, panels, flags_at + FLAG_BYTES);
    struct bsmi_cuda_run run = { .queue = *queue, .multiply = &loads, .product = p, .workspace = panels };
    return status == BSM_OK ? bsmi_cuda_load_operands(&run) : status;
}

static bsm_status pack(const struct bsmi_cuda_device *device, const struct bsmi_cuda_multiply *c,
                       const struct bsmi_product *p, unsigned char *panels)
{
    struct bsmi_cuda_queue queue = bsmi_cuda_queue_of(device, p->stream != NULL ? p->stream : device->stream);
    if (c->keeps_b)
        return bsmi_cuda_requantize_one(&queue, &p->b, &c->b.fp8, panels + exponent_bytes(&p->b),
                                        (int32_t *)(void *)panels);
    if (packs_scales(c)) return pack_scales(&queue, c, p, panels);
    const struct bsmi_prepack_parameters parameters = {
        .source = bsmi_cuda_matrix(&p->b), .exponents = (int32_t *)(void *)panels,
        .prepacked = panels + exponent_bytes(&p->b),
        .matrix_tiles = matrix_tiles(&p->b), .tile_slices = bsmi_prepacked_slices(p->b.columns),
        .only_exponent_zero = leaves_out(p),
    };
    const bsm_status status =
        bsmi_cuda_launch(&queue, BSMI_KERNEL_PREPACK, parameters.matrix_tiles * p->b.batch, &parameters);
    return status == BSM_OK ? end_panels(&queue, &p->b, panels) : status;
}

bsm_status bsmi_cuda_pack(bsm_context *context, const struct bsmi_cuda_multiply *c, const struct bsmi_product *p,
                          void *panels)
{
    const struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    const bsm_status status = bsmi_cuda_enter(device->gpu);
    return status != BSM_OK ? status : bsmi_cuda_leave(device->gpu, pack(device, c, p, panels));
}

void bsmi_cuda_fill_prepacked(const struct bsmi_product *p, struct bsmi_mixed_input_parameters *m)
{
    m->prepacked = (const unsigned char *)p->b_panels + exponent_bytes(&p->b);
    m->matrix_tiles = matrix_tiles(&p->b), m->tile_slices = bsmi_prepacked_slices(p->b.columns);
}

/* Prepacked weights alone ------------------------------------------------------------------------------------------ */

static bool packs_scales_on(const struct bsmi_cuda_gpu *gpu)
{
    for (int i = 0; i < bsmi_gemm_instance_count; i++)
        if (gpu->gemms[i] != NULL && bsmi_gemm_decodes_to_tensor_memory(&bsmi_gemm_instances[i])) return true;
    return false;
}

const char *bsmi_cuda_rule_of_panels_alone(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *p)
{
    const struct bsmi_matrix *b = &p->b;
    if (b->format != BSM_MXFP4 && b->format != BSM_NVFP4) return "of MXFP4 and NVFP4 alone they have B's codes";
    if (b->major != BSM_MAJOR_K || b->sparsity != BSM_SPARSITY_NONE || b->packing != BSM_PACKING_LOW_FIRST
        || b->columns % 2 != 0)
        return "B's description has to be K-major and dense, two codes a byte, the first in the low half, and K even";
    if (p->compute == BSM_COMPUTE_FAST && bsmi_fp8_serves(p->a.format, b->format))
        return "with BSM_COMPUTE_FAST they are B as it was rounded";
    if (p->column_groups > 0) return "groups along K read B as it is stored";
    if (packs_scales_on(gpu)) return "on this GPU they are B's scales alone";
    if (gpu->kernels[BSMI_KERNEL_UNPACK] == NULL) return "this build has no kernel for this GPU that unpacks them";
    return bsmi_cuda_nibble_panels_bytes(b) == 0 ? "their bytes cannot be counted" : NULL;
}

struct bsmi_matrix bsmi_cuda_without_codes(const struct bsmi_product *p)
{
    struct bsmi_matrix b = p->b;
    b.data = (unsigned char *)(uintptr_t)p->b_panels;     /* any codes: a row has fewer bytes of them than its tile */
    b.scales = nan_row(&p->b, b.data);
    b.row_bytes = b.batch_bytes = b.scale_batch_bytes = 0;
    b.map.layout = (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR };
    return b;
}

bsm_status bsmi_cuda_unpack_to(struct bsmi_cuda_queue *queue, const void *panels, const struct bsmi_matrix *to)
{
    const struct bsmi_unpack_parameters parameters = {
        .to = bsmi_cuda_matrix(to), .exponents = panels,
        .prepacked = (const unsigned char *)panels + exponent_bytes(to),
        .matrix_tiles = matrix_tiles(to), .tile_slices = bsmi_prepacked_slices(to->columns),
    };
    return bsmi_cuda_launch(queue, BSMI_KERNEL_UNPACK, parameters.matrix_tiles * parameters.tile_slices * to->batch,
                            &parameters);
}

bsm_status bsmi_cuda_unpack(bsm_context *context, const struct bsmi_product *p)
{
    const struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    struct bsmi_cuda_queue queue = bsmi_cuda_queue_of(device, p->stream != NULL ? p->stream : device->stream);
    const bsm_status status = bsmi_cuda_enter(device->gpu);
    return status != BSM_OK ? status : bsmi_cuda_leave(device->gpu, bsmi_cuda_unpack_to(&queue, p->b_panels, &p->b));
}

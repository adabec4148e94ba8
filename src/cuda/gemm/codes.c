/* Products of codes: which pairs they serve, and how an operand's codes and scales get to where TMA takes them. */
#include "cuda/driver/matrix.h"
#include "cuda/ptx/descriptors.h"
#include "cuda/ptx/mma_sync_elements.h"
#include "lowering.h"

/* Kinds ------------------------------------------------------------------------------------------------------------ */

/* Elements of one product, and those that share a scale. */
enum { PRODUCT_BYTES = 32 };
static int64_t product_columns(const struct bsmi_gemm_instance *gemm)
{
    return bsmi_gemm_step_columns(gemm) / (gemm->step_bytes / PRODUCT_BYTES);
}
/* Where B is sparse scales of both operands are for twice the columns. */
static int block_of(const struct bsmi_gemm_instance *gemm)
{
    return (gemm->operands == BSMI_OPERANDS_MXF4NVF4 ? 16 : 32) * (gemm->sparse ? 2 : 1);
}

/* Blocks of layout 128x4 that a step has along K, or lies in. */
static int scale_blocks(const struct bsmi_gemm_instance *gemm)
{
    return (int)bsmi_ceil_div(bsmi_gemm_step_columns(gemm), 4 * block_of(gemm));
}

static bool is_mx(const bsm_format_info *f) { return f->scale == BSM_E8M0 && f->block == 32 && f->element != BSM_INT8; }

/* Without scales they count as 1. */
static bool is_plain(const bsm_format_info *f) { return f->block == 0 && f->bits_per_element <= 8; }

static bool is_e2m1(const bsm_format_info *f, bsm_scale scale) { return f->element == BSM_E2M1 && f->scale == scale; }

/* With e8m0 scales of blocks of 32, or without any. */
static bool is_mxf4(const bsm_format_info *f) { return f->element == BSM_E2M1 && (is_mx(f) || is_plain(f)); }

/* Of mma.sync; NULL: none is broken. */
const char *bsmi_codes_rule(const struct bsmi_gemm_instance *gemm, bsm_format a, bsm_format b)
{
    const bsm_format_info *fa = bsm_format_get((int)a), *fb = bsm_format_get((int)b);
    if (gemm->main_loop != BSMI_MAIN_LOOP_REGISTERS) return NULL;
    if (gemm->operands == BSMI_OPERANDS_MXF4NVF4 && !(fa->scale == BSM_UE4M3 && fb->scale == BSM_UE4M3))
        return "mma.sync multiplies 4-bit codes with blocks of 16 by ue4m3 scales (by e8m0 from PTX ISA 9.1 on)";
    if (gemm->operands == BSMI_OPERANDS_MXF8F6F4 && gemm->step_bytes != 128
        && !(bsm_element_get((int)fa->element)->bits == 8 && bsm_element_get((int)fb->element)->bits == 8))
        return "TMA pads codes of 4 and 6 bits 128 at a time, and its steps have fewer";
    return NULL;
}

bool bsmi_codes_serve(const struct bsmi_gemm_instance *gemm, bsm_format a, bsm_format b)
{
    const bsm_format_info *fa = bsm_format_get((int)a), *fb = bsm_format_get((int)b);
    if (gemm->sparse || bsmi_codes_rule(gemm, a, b) != NULL) return false;
    switch (gemm->operands) {
    case BSMI_OPERANDS_MXF4: return is_mxf4(fa) && is_mxf4(fb);
    case BSMI_OPERANDS_MXF4NVF4:
        if (a == BSM_NVFP4 || b == BSM_NVFP4) return a == b;
        return is_e2m1(fa, BSM_E8M0) && is_e2m1(fb, BSM_E8M0) && (fa->block == 16 || fb->block == 16);
    case BSMI_OPERANDS_MXF8F6F4:
        if (is_mxf4(fa) && is_mxf4(fb)) return false;       /* MXF4 has the same sums in half the time */
        return (is_mx(fa) || is_plain(fa)) && (is_mx(fb) || is_plain(fb));
    default: return false;
    }
}

/* A product of tcgen05.mma.sp takes one scale of each row: of 32 kept codes of B, and of the 64 columns of A beside
 * them, for which no format has a block. */
const char *bsmi_sparse_rule(const struct bsmi_product *p)
{
    const bsm_format_info *a = bsm_format_get((int)p->a.format), *b = bsm_format_get((int)p->b.format);
    if (p->b.sparsity != BSM_SPARSITY_2_4 || p->a.sparsity != BSM_SPARSITY_NONE)
        return "it wants a B that is sparse 2:4 and a dense A";
    if (!is_plain(a)) return "it wants an A without block scales, of 4, 6 or 8 bits: no format has a scale for 64";
    if (!is_plain(b) && b->scale != BSM_E8M0) return "it wants a B with a scale of e8m0 for 32 kept codes, or none";
    if (!is_plain(b) && !is_mx(b)) return "it wants a B of MXFP8, MXFP6, MXFP4, or unscaled codes of 4, 6 or 8 bits";
    if (p->k % 8 != 0) return "it wants whole bytes of metadata in a row: K a multiple of 8";
    return NULL;
}

/* Few rows make few tiles: only K can give every SM a share.  Many rows pay for it: a CTA keeps the parts'
 * sums in L2. So parts are long, and the products of middling K that have many rows have one. */
enum { LONGEST_PART = 8192, LONGEST_SPLIT_PART = 2048 };

int32_t bsmi_codes_split(const struct bsmi_gemm_instance *gemm, int64_t k)
{
    if (gemm->operands == BSMI_OPERANDS_BF16 || (!bsmi_gemm_has_tensor_memory(gemm) && !gemm->splits_k)) return 0;
    const int64_t parts = bsmi_ceil_div(k, gemm->splits_k ? LONGEST_SPLIT_PART : LONGEST_PART),
                  steps = bsmi_ceil_div(k, bsmi_gemm_step_columns(gemm));
    return parts <= 1 ? 0 : (int32_t)bsmi_ceil_div(steps, parts);
}

int32_t bsmi_codes_parts(const struct bsmi_gemm_instance *gemm, int64_t k)
{
    const int32_t split = bsmi_codes_split(gemm, k);
    return split == 0 ? 1 : (int32_t)bsmi_ceil_div(bsmi_ceil_div(k, bsmi_gemm_step_columns(gemm)), split);
}

/* The codes that tensor cores are given, and not more: of a sparse matrix those that are kept. */
static struct bsmi_matrix codes_of(const struct bsmi_matrix *m)
{
    return m->sparsity == BSM_SPARSITY_NONE ? *m : bsmi_matrix_stored(m);
}

/* Describing ------------------------------------------------------------------------------------------------------- */

/* The type by which TMA loads codes into the form that the kind wants: for MXF8F6F4 16 codes of any width in 16
 * bytes. */
static int map_type(enum bsmi_gemm_operands kind, const struct bsmi_matrix *m)
{
    if (kind != BSMI_OPERANDS_MXF8F6F4 || m->bits == 8) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    return m->bits == 4 ? CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B : CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

static struct bsmi_cuda_rows rows_of(enum bsmi_gemm_operands kind, const struct bsmi_matrix *m, const void *data,
                                     int64_t columns, int64_t row_bytes, int64_t batch_bytes)
{
    const int type = map_type(kind, m);
    return (struct bsmi_cuda_rows){
        data,       type,     type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? columns * m->bits / 8 : columns,
        m->rows,    m->batch, row_bytes,
        batch_bytes
    };
}

/* Packed as tensor cores have them, and nothing of a row's last bytes belongs to no code. */
static bool are_packed(const struct bsmi_matrix *m)
{
    const bool packed =
        m->bits == 8 || (m->bits == 6 ? m->packing == BSM_PACKING_BIT_STREAM : m->packing == BSM_PACKING_LOW_FIRST);
    return packed && m->columns * m->bits % 8 == 0;
}

static bool can_map_codes(enum bsmi_gemm_operands kind, const struct bsmi_matrix *m)
{
    const struct bsmi_cuda_rows rows = rows_of(kind, m, m->data, m->columns, m->row_bytes, m->batch_bytes);
    if (m->major == BSM_MAJOR_MN) return true;              /* or it would have been copied */
    return are_packed(m) && bsmi_cuda_can_load(&rows);
}

/* Bytes of a copy, where the kernel can make it; only TMA pads codes. */
static int copy_size_of(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m)
{
    const bool copies = are_packed(m) && map_type(gemm->operands, m) == CU_TENSOR_MAP_DATA_TYPE_UINT8;
    return copies && !can_map_codes(gemm->operands, m) ? bsmi_cuda_copy_size(gemm, m) : 0;
}

/* The scales of one matrix as rows of blocks: what a tensor map describes. */
static struct bsmi_cuda_rows scale_rows(const void *scales, const struct bsmi_scale_map *map, int64_t batch,
                                        int64_t batch_bytes)
{
    enum { BLOCK_WORDS = 128 };
    return (struct bsmi_cuda_rows){ scales,      CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                    BLOCK_WORDS, map->bytes / (BLOCK_WORDS * 4),
                                    batch,       BLOCK_WORDS * 4,
                                    batch_bytes };
}

/* Scales behind the last of a row may be any, also NaN: as they are only where no product reads them. */
static bool can_map_scales(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m)
{
    const struct bsmi_cuda_rows rows = scale_rows(m->scales, &m->map, m->batch, m->scale_batch_bytes);
    return m->map.layout.kind == BSM_LAYOUT_128X4 && m->scale_columns * m->block % product_columns(gemm) == 0 &&
           bsmi_cuda_can_map(&rows);
}

/* Linear scales as they are: TMA fills with zeros what is behind a row's last. */
static struct bsmi_cuda_rows linear_rows(const struct bsmi_matrix *m)
{
    return (struct bsmi_cuda_rows){ m->scales, CU_TENSOR_MAP_DATA_TYPE_UINT8, m->scale_columns, m->rows, m->batch,
                                    m->map.layout.pitch, m->scale_batch_bytes };
}

/* Their rows begin at multiples of 16 bytes. */
static bool can_map_linear(const struct bsmi_matrix *m)
{
    struct bsmi_cuda_rows rows = linear_rows(m);
    rows.columns = bsmi_round_up(rows.columns, 16);       /* how many there are does not matter to TMA */
    return m->map.layout.kind == BSM_LAYOUT_LINEAR && bsmi_cuda_can_map(&rows);
}

static enum bsmi_codes_scales scales_of(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m)
{
    if (m->block == 0) return BSMI_SCALES_ONES;
    if (m->block != block_of(gemm)) return BSMI_SCALES_REPEATED;
    if (gemm->main_loop == BSMI_MAIN_LOOP_REGISTERS && can_map_linear(m)) return BSMI_SCALES_LINEAR;
    return can_map_scales(gemm, m) ? BSMI_SCALES_AS_THEY_ARE : BSMI_SCALES_CONVERTED;
}

static bsm_status describe_operand(const struct bsmi_gemm_instance *gemm, const char *name, const struct bsmi_matrix *m,
                                   bool repacked, struct bsmi_codes *codes)
{
    const bsm_scale_layout layout = { .kind = BSM_LAYOUT_128X4 };
    *codes = (struct bsmi_codes){ .repacked = repacked, .scales = scales_of(gemm, m) };
    codes->padded_columns = bsmi_round_up(codes_of(m).columns, 128); /* what the padding types of TMA want */
    codes->row_bytes = codes->padded_columns * m->bits / 8;
    const bsm_status status =
        bsmi_scale_map_make(name, &layout, m->rows, bsmi_ceil_div(m->columns, block_of(gemm)), &codes->scale_map);
    codes->scale_batch_bytes = codes->scale_map.bytes;
    return status;
}

static int64_t product_or_overflow(int64_t a, int64_t b)
{
    int64_t product;
    return bsmi_mul_overflows(a, b, &product) ? -1 : product;
}

static int64_t rows_bytes(const struct bsmi_matrix *m, const struct bsmi_codes *codes)
{
    const int64_t of_matrix = codes->repacked ? product_or_overflow(m->rows, codes->row_bytes) : 0;
    return of_matrix < 0 ? -1 : product_or_overflow(of_matrix, m->batch);
}

static bool reads_callers_scales(const struct bsmi_codes *codes)
{
    return codes->scales == BSMI_SCALES_AS_THEY_ARE || codes->scales == BSMI_SCALES_LINEAR;
}

static int64_t scales_bytes(const struct bsmi_matrix *m, const struct bsmi_codes *codes)
{
    return reads_callers_scales(codes) ? 0 : product_or_overflow(codes->scale_batch_bytes, m->batch);
}

const char *bsmi_codes_scales_name(enum bsmi_codes_scales scales)
{
    static const char *const names[] = { "scales as they are", "linear scales as they are", "scales converted to 128x4",
                                         "scales repeated in 128x4", "scales of 1" };
    return names[scales];
}

/* Preparing -------------------------------------------------------------------------------------------------------- */

static bsm_status repack(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *m, const struct bsmi_codes *codes,
                         unsigned char *to)
{
    const struct bsmi_matrix stored = codes_of(m);
    if (!codes->repacked) return BSM_OK;
    const struct bsmi_repack_parameters p = { bsmi_cuda_matrix(&stored), to, codes->row_bytes,
                                              m->rows * codes->row_bytes, codes->padded_columns };
    return bsmi_cuda_launch(queue, BSMI_KERNEL_REPACK,
                            bsmi_ceil_div(m->rows * m->batch * (codes->padded_columns / 8), BSMI_REPACK_THREADS), &p);
}

static bsm_status make_scales(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *m,
                              const struct bsmi_codes *codes, unsigned char *to)
{
    enum { ONE = 127 };
    const int64_t bytes = codes->scale_batch_bytes * m->batch;
    if (reads_callers_scales(codes)) return BSM_OK;
    if (codes->scales == BSMI_SCALES_ONES)
        return BSMI_DRIVER_CALL(queue->gpu->driver, cuMemsetD8Async,
                                ((CUdeviceptr)(uintptr_t)to, ONE, (size_t)bytes, queue->stream), "%lld scales of 1",
                                (long long)bytes);
    const struct bsmi_convert_scales_parameters p = {
        .from = m->scales,
        .to = to,
        .from_layout = bsmi_cuda_layout(&m->map),
        .to_layout = bsmi_cuda_layout(&codes->scale_map),
        .batch = m->batch,
        .from_batch_bytes = m->scale_batch_bytes,
        .to_batch_bytes = codes->scale_batch_bytes,
        .repeat = codes->scales == BSMI_SCALES_REPEATED ? 2 : 1,
    };
    return bsmi_cuda_launch(queue, BSMI_KERNEL_CONVERT, bsmi_ceil_div(bytes, BSMI_CONVERT_THREADS), &p);
}

/* A sparse operand's metadata as a matrix of bytes. */
static struct bsmi_matrix metadata_of(const struct bsmi_matrix *m)
{
    return (struct bsmi_matrix){ .format = BSM_FORMAT_E4M3, .element = BSM_E4M3, .bits = 8, .rows = m->rows,
                                 .columns = bsmi_metadata_row_bytes(m), .batch = m->batch, .data = m->metadata,
                                 .row_bytes = m->metadata_row_bytes, .batch_bytes = m->metadata_batch_bytes };
}

static struct bsmi_cuda_rows metadata_rows(const struct bsmi_matrix *m)
{
    return (struct bsmi_cuda_rows){ m->metadata, CU_TENSOR_MAP_DATA_TYPE_UINT8, bsmi_metadata_row_bytes(m), m->rows,
                                    m->batch, m->metadata_row_bytes, m->metadata_batch_bytes };
}

static bsm_status copy_metadata(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *m,
                                const struct bsmi_codes *codes, unsigned char *to)
{
    const struct bsmi_matrix metadata = metadata_of(m);
    const struct bsmi_repack_parameters p = { bsmi_cuda_matrix(&metadata), to, codes->metadata_row_bytes,
                                              m->rows * codes->metadata_row_bytes, codes->metadata_row_bytes };
    if (!codes->metadata_copied) return BSM_OK;
    return bsmi_cuda_launch(queue, BSMI_KERNEL_REPACK,
                            bsmi_ceil_div(m->rows * m->batch * (codes->metadata_row_bytes / 8), BSMI_REPACK_THREADS),
                            &p);
}

static bsm_status prepare(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *m, const struct bsmi_codes *codes,
                          unsigned char *workspace)
{
    bsm_status status = repack(queue, m, codes, workspace + codes->rows_at);
    if (status == BSM_OK) status = copy_metadata(queue, m, codes, workspace + codes->metadata_at);
    return status == BSM_OK ? make_scales(queue, m, codes, workspace + codes->scales_at) : status;
}

/* Maps ------------------------------------------------------------------------------------------------------------- */

static bsm_status fail_alignment(const char *name, const char *member, const void *data)
{
    return bsmi_fail(BSM_EALIGN, "%s->%s=%p is not aligned as that of the plan was: make a plan for it", name, member,
                     data);
}

static bsm_status map_or_align(const struct bsmi_cuda_gpu *gpu, const struct bsmi_cuda_rows *rows, const char *name,
                               const char *member, int box_columns, int box_rows, int swizzle,
                               struct bsmi_tensor_map *map)
{
    if (!bsmi_cuda_can_load(rows)) return fail_alignment(name, member, rows->data);
    return bsmi_cuda_map(gpu, rows, box_columns, box_rows, swizzle, map);
}

static bsm_status map_scales(const struct bsmi_cuda_gpu *gpu, const struct bsmi_gemm_instance *gemm, const char *name,
                             const struct bsmi_matrix *m, const struct bsmi_codes *codes, unsigned char *workspace,
                             int tile_rows, struct bsmi_tensor_map *map)
{
    if (codes->scales == BSMI_SCALES_LINEAR) {
        const struct bsmi_cuda_rows rows = linear_rows(m);
        if (!can_map_linear(m)) return fail_alignment(name, "scales", m->scales);
        return bsmi_cuda_map(gpu, &rows, 16, tile_rows, CU_TENSOR_MAP_SWIZZLE_NONE, map);
    }
    const struct bsmi_cuda_rows rows =
        codes->scales == BSMI_SCALES_AS_THEY_ARE
            ? scale_rows(m->scales, &m->map, m->batch, m->scale_batch_bytes)
            : scale_rows(workspace + codes->scales_at, &codes->scale_map, m->batch, codes->scale_batch_bytes);
    return map_or_align(gpu, &rows, name, "scales", (int)rows.columns, scale_blocks(gemm), CU_TENSOR_MAP_SWIZZLE_NONE,
                        map);
}

static bsm_status map_codes(const struct bsmi_cuda_gpu *gpu, const struct bsmi_gemm_instance *gemm, const char *name,
                            const struct bsmi_matrix *given, const struct bsmi_codes *codes, unsigned char *workspace,
                            int box_rows, struct bsmi_tensor_map *map)
{
    const struct bsmi_matrix stored = codes_of(given), *m = &stored;
    const struct bsmi_cuda_rows rows = codes->repacked
                                           ? rows_of(gemm->operands, m, workspace + codes->rows_at,
                                                     codes->padded_columns, codes->row_bytes,
                                                     m->rows * codes->row_bytes)
                                           : rows_of(gemm->operands, m, m->data, m->columns, m->row_bytes,
                                                     m->batch_bytes);
    const int bytes = bsmi_cuda_box_bytes(gemm, m);
    if (m->major == BSM_MAJOR_MN) return bsmi_cuda_map_mn_major(gpu, gemm, name, m, box_rows, map);
    return map_or_align(gpu, &rows, name, "data", bytes, box_rows, bsmi_cuda_map_swizzle(bytes), map);
}

static bsm_status map_metadata(const struct bsmi_cuda_gpu *gpu, const struct bsmi_matrix *m,
                               const struct bsmi_codes *codes, unsigned char *workspace, int box_rows,
                               struct bsmi_tensor_map *map)
{
    enum { BOX_BYTES = 32 };
    struct bsmi_cuda_rows rows = metadata_rows(m);
    if (codes->metadata_copied)
        rows = (struct bsmi_cuda_rows){ workspace + codes->metadata_at, CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                        codes->metadata_row_bytes, m->rows, m->batch, codes->metadata_row_bytes,
                                        m->rows * codes->metadata_row_bytes };
    return map_or_align(gpu, &rows, "b", "metadata", BOX_BYTES, box_rows, CU_TENSOR_MAP_SWIZZLE_32B, map);
}

/* Parameters ------------------------------------------------------------------------------------------------------- */

static enum mma_element element_of(bsm_element element)
{
    switch (element) {
    case BSM_E4M3: return MMA_E4M3;
    case BSM_E5M2: return MMA_E5M2;
    case BSM_E3M2: return MMA_E3M2;
    case BSM_E2M3: return MMA_E2M3;
    case BSM_E2M1: return MMA_E2M1;
    default: return MMA_BF16;
    }
}

static enum mma_kind instruction_kind(enum bsmi_gemm_operands kind)
{
    static const enum mma_kind kinds[] = { MMA_F16, MMA_MXF8F6F4, MMA_MXF4, MMA_MXF4NVF4 };
    return kinds[kind];
}

/* Bytes that TMA counts for a step's bytes of a row in shared memory. */
static int32_t counted_bytes(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m)
{
    const int bytes = bsmi_cuda_box_bytes(gemm, m);
    return gemm->operands == BSMI_OPERANDS_MXF8F6F4 ? bytes * m->bits / 8 : bytes;
}

static enum mma_sync_element mma_sync_element_of(bsm_element element)
{
    switch (element) {
    case BSM_E5M2: return MMA_SYNC_E5M2;
    case BSM_E3M2: return MMA_SYNC_E3M2;
    case BSM_E2M3: return MMA_SYNC_E2M3;
    case BSM_E2M1: return MMA_SYNC_E2M1;
    default: return MMA_SYNC_E4M3;
    }
}

/* As the descriptor of tcgen05's instructions has it. */
static uint32_t instruction_of(const struct bsmi_gemm_instance *instance, const struct bsmi_matrix *a,
                               const struct bsmi_matrix *b)
{
    const enum bsmi_gemm_operands kind = instance->operands;
    const bool rows = kind == BSMI_OPERANDS_BF16, swapped = bsmi_gemm_is_swapped(instance);
    const struct bsmi_matrix *lanes = swapped ? b : a, *columns_of = swapped ? a : b;
    const bsm_element multiplied = bsmi_cuda_multiplied_element(instance, a, b);
    const enum mma_element of_rows = multiplied == BSM_FP16   ? MMA_FP16
                                     : multiplied == BSM_FP32 ? MMA_TF32_ELEMENT
                                                              : MMA_BF16;
    return mma_instruction_descriptor((struct mma_instruction){
        .kind = of_rows == MMA_TF32_ELEMENT ? MMA_TF32 : instruction_kind(kind),
        .a = rows ? of_rows : element_of(lanes->element),
        .b = rows ? of_rows : element_of(columns_of->element),
        .m = (uint32_t)(swapped ? instance->tile_columns : instance->tile_rows * instance->cluster_rows),
        .n = (uint32_t)(swapped ? instance->tile_rows : instance->tile_columns),
        .d = MMA_D_F32,
        .sparse = instance->sparse,
        .scales = kind == BSMI_OPERANDS_MXF4NVF4 && a->scale == BSM_UE4M3 ? MMA_UE4M3 : MMA_UE8M0,
        .a_is_mn_major = lanes->major == BSM_MAJOR_MN,
        .b_is_mn_major = columns_of->major == BSM_MAJOR_MN,
    });
}

void bsmi_codes_fill(const struct bsmi_gemm_instance *instance, const struct bsmi_matrix *a,
                     const struct bsmi_matrix *b, struct bsmi_blackwell_parameters *p)
{
    const enum bsmi_gemm_operands kind = instance->operands;
    if (bsmi_gemm_has_tensor_memory(instance)) {
        p->instruction = instruction_of(instance, a, b);
        p->a_boxes = bsmi_cuda_boxes(instance, a, instance->a_box_rows);
        p->b_boxes = bsmi_cuda_boxes(instance, b, instance->b_box_rows);
    }
    if (kind == BSMI_OPERANDS_BF16) return;
    const int64_t products = bsmi_ceil_div(a->columns, product_columns(instance)),
                  steps = bsmi_ceil_div(a->columns, bsmi_gemm_step_columns(instance)),
                  columns = bsmi_ceil_div(a->columns, block_of(instance)),
                  of_step = instance->step_bytes / PRODUCT_BYTES;
    p->gemm.segments[0].blocks = (int32_t)steps;
    p->gemm.segment_count = 1;
    p->split_blocks = bsmi_codes_split(instance, a->columns), p->parts = bsmi_codes_parts(instance, a->columns);
    if (instance->splits_k && p->split_blocks == 0) p->split_blocks = (int32_t)steps;
    p->last_products = (int32_t)((products - 1) % of_step + 1);
    p->a_row_bytes = counted_bytes(instance, a), p->b_row_bytes = counted_bytes(instance, b);
    p->a_scale_blocks = p->b_scale_blocks = (int32_t)bsmi_ceil_div(columns, 4);
    p->a_element = (int32_t)mma_sync_element_of(a->element), p->b_element = (int32_t)mma_sync_element_of(b->element);
}

/* The lowering ----------------------------------------------------------------------------------------------------- */

static bsm_status describe_one(const char *name, const struct bsmi_matrix *m, int gemm, struct bsmi_cuda_operand *o)
{
    const struct bsmi_gemm_instance *instance = &bsmi_gemm_instances[gemm];
    *o = (struct bsmi_cuda_operand){ .terms = 1, .copy_size = copy_size_of(instance, m) };
    const struct bsmi_matrix stored = codes_of(m);
    const struct bsmi_cuda_rows metadata = metadata_rows(m);
    const bool repacked = o->copy_size == 0 && !can_map_codes(instance->operands, &stored);
    const bsm_status status = describe_operand(instance, name, m, repacked, &o->codes);
    o->form = o->codes.repacked ? BSMI_FORM_REPACKED : BSMI_FORM_AS_STORED;
    if (m->sparsity == BSM_SPARSITY_NONE) return status;
    o->codes.metadata_copied = !bsmi_cuda_can_map(&metadata);
    o->codes.metadata_row_bytes = bsmi_round_up(bsmi_metadata_row_bytes(m), 16);
    return status;
}

static bsm_status describe(const struct bsmi_product *p, struct bsmi_cuda_multiply *c)
{
    const bsm_status status = describe_one("a", &p->a, c->gemm, &c->a);
    return status == BSM_OK ? describe_one("b", &p->b, c->gemm, &c->b) : status;
}

static bool place_one(const struct bsmi_matrix *m, struct bsmi_codes *codes, int64_t *end)
{
    const int64_t rows = rows_bytes(m, codes), scales = scales_bytes(m, codes),
                  metadata = codes->metadata_copied ? product_or_overflow(m->rows * m->batch, codes->metadata_row_bytes)
                                                    : 0;
    return rows < 0 || scales < 0 || metadata < 0 || bsmi_cuda_place(rows, 1, &codes->rows_at, end)
           || bsmi_cuda_place(scales, 1, &codes->scales_at, end)
           || bsmi_cuda_place(metadata, 1, &codes->metadata_at, end);
}

static bool place(const struct bsmi_product *p, struct bsmi_cuda_multiply *c, int64_t *end)
{
    return place_one(&p->a, &c->a.codes, end) || place_one(&p->b, &c->b.codes, end);
}

static bsm_status enqueue(struct bsmi_cuda_run *run)
{
    const struct bsmi_cuda_multiply *c = run->multiply;
    bsm_status status = prepare(&run->queue, &run->product->a, &c->a.codes, run->workspace);
    if (status == BSM_OK) status = prepare(&run->queue, &run->product->b, &c->b.codes, run->workspace);
    return status == BSM_OK ? bsmi_cuda_run_gemm(run, c->gemm, c->lowering) : status;
}

static bsm_status fill(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *g, union bsmi_gemm_launch *to)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    const struct bsmi_cuda_gpu *gpu = run->queue.gpu;
    struct bsmi_blackwell_parameters *t = &to->blackwell;
    t->split_k = c->split_k, t->kept = c->kept > 0 ? bsmi_cuda_at(run, c->kept_at) : NULL;
    bsmi_codes_fill(g, &p->a, &p->b, t);
    t->a_scales_linear = c->a.codes.scales == BSMI_SCALES_LINEAR,
    t->b_scales_linear = c->b.codes.scales == BSMI_SCALES_LINEAR;
    const struct { const char *name; const struct bsmi_matrix *matrix; const struct bsmi_cuda_operand *operand;
                   int box_rows; struct bsmi_tensor_map *map, *scales; struct bsmi_copied_rows *copied;
                   int32_t *row_bytes; } operands[] = {
        { "a", &p->a, &c->a, g->a_box_rows, &t->gemm.a, &t->a_scales, &t->a_copied, &t->a_row_bytes },
        { "b", &p->b, &c->b, g->b_box_rows, &t->gemm.b, &t->b_scales, &t->b_copied, &t->b_row_bytes },
    };
    bsm_status status = BSM_OK;
    for (int i = 0; i < 2 && status == BSM_OK; i++) {
        const struct bsmi_cuda_operand *o = operands[i].operand;
        if (o->copy_size > 0) {
            *operands[i].row_bytes = 0;
            status = bsmi_cuda_fill_copied(operands[i].name, operands[i].matrix, o->copy_size, operands[i].copied);
        } else {
            status = map_codes(gpu, g, operands[i].name, operands[i].matrix, &o->codes, run->workspace,
                               operands[i].box_rows, operands[i].map);
        }
        if (status == BSM_OK)
            status = map_scales(gpu, g, operands[i].name, operands[i].matrix, &o->codes, run->workspace,
                                operands[i].box_rows, operands[i].scales);
    }
    if (status != BSM_OK || !g->sparse) return status;
    return map_metadata(gpu, &p->b, &c->b.codes, run->workspace, g->b_box_rows, &to->sparse.metadata);
}

const struct bsmi_lowering bsmi_lowering_codes = { describe, place, enqueue, fill };

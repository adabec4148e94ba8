/* Operands that tcgen05 reads as they are stored: the boxes by which TMA loads a step of K, K-major and MN-major, and
 * the descriptors by which products find it in shared memory (PTX ISA 9.7.16.4.1). */
#include "cuda/ptx/descriptors.h"
#include "lowering.h"

enum { PRODUCT_BYTES = 32, LEAST_CODES = 16 };

static int bytes_of(const struct bsmi_matrix *m) { return m->bits / 8; }

static bool pads(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m)
{
    return gemm->operands == BSMI_OPERANDS_MXF8F6F4 && m->bits < 8;
}

/* ---- sizes ---- */

/* Products read 32 bytes of K, and none is issued behind K: rows of codes that have one or two products get boxes and
 * swizzles as narrow as these.  TMA pads 128 codes at a time, and rows of bf16 are multiplied by whole steps;
 * beside a sparse operand a step of the other is two boxes. */
int bsmi_cuda_box_bytes(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m)
{
    const int64_t bytes = bsmi_ceil_div(m->columns * m->bits, 8);
    if (!bsmi_gemm_has_tensor_memory(gemm) || !bsmi_gemm_multiplies_codes(gemm) || gemm->sparse || pads(gemm, m)
        || bytes > 64)
        return gemm->step_bytes;
    return bytes <= PRODUCT_BYTES ? PRODUCT_BYTES : 64;
}

/* Of MN: of as many rows of the operand as a swizzle exchanges bytes of, or as a tile has. */
static int line_bytes(const struct bsmi_matrix *m, int tile_rows) { return BSMI_MIN(128, tile_rows * bytes_of(m)); }

static enum shared_swizzle swizzle_of(int bytes)
{
    return bytes == 128  ? SHARED_SWIZZLE_128B
           : bytes == 64 ? SHARED_SWIZZLE_64B
           : bytes == 32 ? SHARED_SWIZZLE_32B
                         : SHARED_SWIZZLE_NONE;
}

int bsmi_cuda_map_swizzle(int bytes)
{
    return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
           : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                         : CU_TENSOR_MAP_SWIZZLE_NONE;
}

/* ---- which kernels read MN-major operands ---- */

static struct bsmi_cuda_rows lines_of(const struct bsmi_matrix *m)
{
    const struct bsmi_matrix stored = bsmi_matrix_stored(m);
    return (struct bsmi_cuda_rows){
        m->data, m->bits == 8 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        stored.columns, stored.rows, stored.batch, stored.row_bytes, stored.batch_bytes };
}

/* Rows of 16 bits as they are: no other operand has rows whose sums another kernel makes, from K-major operands. */
static bool reads_rows(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *p, const struct bsmi_matrix *m)
{
    if (p->a.scale == BSM_E8M0 || p->b.scale == BSM_E8M0) return false;
    return m->format == BSM_FORMAT_BF16 || bsmi_cuda_multiplied_element(gemm, &p->a, &p->b) == BSM_FP16;
}

bool bsmi_cuda_reads_mn_major(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *p,
                              const struct bsmi_matrix *m, int tile_rows)
{
    const bool rows = gemm->operands == BSMI_OPERANDS_BF16;
    if (!bsmi_gemm_has_tensor_memory(gemm) || gemm->sparse || m->sparsity != BSM_SPARSITY_NONE || p->column_groups > 0)
        return false;
    if (rows ? !reads_rows(gemm, p, m) : gemm->operands != BSMI_OPERANDS_MXF8F6F4 || m->bits != 8) return false;
    const struct bsmi_cuda_rows lines = lines_of(m);
    return (rows || tile_rows >= LEAST_CODES) && bsmi_cuda_can_load(&lines);
}

/* ---- parameters ---- */

static struct bsmi_operand_boxes k_major_boxes(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m)
{
    return (struct bsmi_operand_boxes){
        .descriptor = shared_rows_descriptor(0, swizzle_of(bsmi_cuda_box_bytes(gemm, m))),
        .product_bytes = PRODUCT_BYTES,
        .count = 1,
    };
}

/* Without a swizzle a line is one chunk of 16 bytes, so that nothing lies a stride further; what leads is 8 lines. */
static struct bsmi_operand_boxes mn_major_boxes(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m,
                                                int tile_rows)
{
    const int line = line_bytes(m, tile_rows), lines = bsmi_cuda_box_bytes(gemm, m) / bytes_of(m), box = lines * line;
    const enum shared_swizzle swizzle = swizzle_of(line);
    const uint32_t leading = swizzle == SHARED_SWIZZLE_NONE ? 8 * LEAST_CODES : (uint32_t)box;
    return (struct bsmi_operand_boxes){
        .descriptor = shared_lines_descriptor(0, swizzle, leading),
        .product_bytes = PRODUCT_BYTES / bytes_of(m) * line,
        .mn_major = 1,
        .count = tile_rows * bytes_of(m) / line,
        .rows = line / bytes_of(m),
        .bytes = box,
    };
}

struct bsmi_operand_boxes bsmi_cuda_boxes(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *m,
                                          int tile_rows)
{
    return m->major == BSM_MAJOR_MN ? mn_major_boxes(gemm, m, tile_rows) : k_major_boxes(gemm, m);
}

bsm_status bsmi_cuda_map_mn_major(const struct bsmi_cuda_gpu *gpu, const struct bsmi_gemm_instance *gemm,
                                  const char *name, const struct bsmi_matrix *m, int tile_rows,
                                  struct bsmi_tensor_map *map)
{
    const struct bsmi_cuda_rows lines = lines_of(m);
    const int line = line_bytes(m, tile_rows);
    if (!bsmi_cuda_can_load(&lines))
        return bsmi_fail(BSM_EALIGN,
                         "%s->data=%p is not aligned to 16 bytes, as that of the plan was: make a plan for it", name,
                         (void *)m->data);
    return bsmi_cuda_map(gpu, &lines, line / bytes_of(m), bsmi_cuda_box_bytes(gemm, m) / bytes_of(m),
                         bsmi_cuda_map_swizzle(line), map);
}

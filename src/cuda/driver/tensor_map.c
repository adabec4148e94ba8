/* Tensor maps: what TMA is told about a matrix. */
#include "launch.h"

/* Coordinates are 32-bit numbers with a sign. */
static const int64_t most_size = (int64_t)1 << 31, most_stride = (int64_t)1 << 40;

/* Types that make 16 bytes of 16 codes want more alignment than others. */
static bool pads(int type)
{
    return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B || type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}
static int64_t alignment_of(int type) { return pads(type) ? 32 : 16; }

static int64_t bits_of(int type)
{
    if (pads(type)) return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B ? 4 : 6;
    if (type == CU_TENSOR_MAP_DATA_TYPE_UINT8) return 8;
    return type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 || type == CU_TENSOR_MAP_DATA_TYPE_UINT32 ? 32 : 16;
}

static bool has_whole_rows(const struct bsmi_cuda_rows *r)
{
    return pads(r->type) ? r->columns % 128 == 0 : r->columns * bits_of(r->type) % 128 == 0;
}

/* Of one matrix as if another followed it. */
static int64_t batch_stride(const struct bsmi_cuda_rows *r)
{
    if (r->batch > 1) return r->batch_bytes;
    return r->row_bytes < most_stride / r->rows ? r->rows * r->row_bytes : alignment_of(r->type);
}

bool bsmi_cuda_can_map(const struct bsmi_cuda_rows *r)
{
    const int64_t alignment = alignment_of(r->type);
    if (r->columns <= 0 || r->rows <= 0 || r->batch <= 0) return false;
    const bool aligned = (uintptr_t)r->data % (uintptr_t)alignment == 0 && r->row_bytes % alignment == 0
                         && batch_stride(r) % alignment == 0;
    return aligned && has_whole_rows(r) && r->columns < most_size && r->rows < most_size && r->batch < most_size &&
           r->row_bytes < most_stride && batch_stride(r) < most_stride;
}

bool bsmi_cuda_can_load(const struct bsmi_cuda_rows *r)
{
    struct bsmi_cuda_rows whole = *r;
    if (!pads(r->type)) whole.columns = bsmi_round_up(r->columns, 16);
    return bsmi_cuda_can_map(&whole);
}

/* Whether there are fewer bytes from the first to the last. */
static bool spans_less(const struct bsmi_cuda_rows *r, int64_t bytes)
{
    const int64_t rows = r->rows - 1, batch = r->batch - 1;
    if ((rows > 0 && r->row_bytes > bytes / rows) || (batch > 0 && r->batch_bytes > bytes / batch)) return false;
    return r->columns * bits_of(r->type) / 8 + rows * r->row_bytes + batch * batch_stride(r) < bytes;
}

/* Drivers encode maps of small tensors wrongly for Blackwell, if their rows or matrices do not follow each other: an
 * access is illegal now and then.  The release notes of NVIDIA's driver 595.71.05 (known issues) tell to clear bit
 * 85. */
static void mend_small_map(const struct bsmi_cuda_gpu *gpu, const struct bsmi_cuda_rows *r, struct bsmi_tensor_map *map)
{
    enum { SMALL_BYTES = 128 * 1024, WORD = 1, BIT = 21 };
    uint64_t words[sizeof *map / 8];
    if (gpu->capability / 10 < 10 || !spans_less(r, SMALL_BYTES)) return;
    memcpy(words, map, sizeof words);
    words[WORD] &= ~((uint64_t)1 << BIT);
    memcpy(map, words, sizeof words);
}

bsm_status bsmi_cuda_map(const struct bsmi_cuda_gpu *gpu, const struct bsmi_cuda_rows *r, int box_columns, int box_rows,
                         int swizzle, struct bsmi_tensor_map *map)
{
    const uint64_t sizes[] = { (uint64_t)r->columns, (uint64_t)r->rows, (uint64_t)r->batch };
    const uint64_t strides[] = { (uint64_t)r->row_bytes, (uint64_t)batch_stride(r) };
    const uint32_t box[] = { (uint32_t)box_columns, (uint32_t)box_rows, 1 }, steps[] = { 1, 1, 1 };
    const bsm_status status = BSMI_DRIVER_CALL(
        gpu->driver, cuTensorMapEncodeTiled,
        (map, r->type, 3, (void *)(uintptr_t)r->data, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
         swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "a tensor map of %lld x %lld x %lld, rows %lld bytes apart, box %d x %d", (long long)r->batch,
        (long long)r->rows, (long long)r->columns, (long long)r->row_bytes, box_rows, box_columns);
    if (status == BSM_OK) mend_small_map(gpu, r, map);
    return status;
}

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

static int64_t bytes_of(int type)
{
    if (type == CU_TENSOR_MAP_DATA_TYPE_UINT8) return 1;
    return type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 || type == CU_TENSOR_MAP_DATA_TYPE_UINT32 ? 4 : 2;
}

static bool has_whole_rows(const struct bsmi_cuda_rows *r)
{
    return pads(r->type) ? r->columns % 128 == 0 : r->columns * bytes_of(r->type) % 16 == 0;
}

static int64_t batch_stride(const struct bsmi_cuda_rows *r) { return r->batch > 1 ? r->batch_bytes : alignment_of(r->type); }

bool bsmi_cuda_can_map(const struct bsmi_cuda_rows *r)
{
    const int64_t alignment = alignment_of(r->type);
    const bool aligned =
        (uintptr_t)r->data % (uintptr_t)alignment == 0 && r->row_bytes % alignment == 0 && batch_stride(r) % alignment == 0;
    return aligned && has_whole_rows(r) && r->columns > 0 && r->rows > 0 && r->batch > 0 && r->columns < most_size &&
           r->rows < most_size && r->batch < most_size && r->row_bytes < most_stride && batch_stride(r) < most_stride;
}

bsm_status bsmi_cuda_map(const struct bsmi_driver *driver, const struct bsmi_cuda_rows *r, int box_columns, int box_rows,
                         int swizzle, struct bsmi_tensor_map *map)
{
    const uint64_t sizes[] = { (uint64_t)r->columns, (uint64_t)r->rows, (uint64_t)r->batch };
    const uint64_t strides[] = { (uint64_t)r->row_bytes, (uint64_t)batch_stride(r) };
    const uint32_t box[] = { (uint32_t)box_columns, (uint32_t)box_rows, 1 }, steps[] = { 1, 1, 1 };
    return BSMI_DRIVER_CALL(driver, cuTensorMapEncodeTiled,
                            (map, r->type, 3, (void *)(uintptr_t)r->data, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                             swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                            "a tensor map of %lld x %lld x %lld, rows %lld bytes apart, box %d x %d", (long long)r->batch,
                            (long long)r->rows, (long long)r->columns, (long long)r->row_bytes, box_rows, box_columns);
}

/* The table of kernels that are no GEMMs: which code object holds each, and how many workgroups a compute unit gets at
 * most: their workgroups stride over the work, in any grid.  0: a workgroup for each piece.  All have BSMI_HIP_THREADS
 * threads. */
#ifndef BSMI_HIP_KERNELS_H
#define BSMI_HIP_KERNELS_H

/*    id             function               file       most */
#define BSMI_HIP_KERNELS(X) \
    X(SUMS,          "bsmi_sums",           "sums",     8) \
    X(GROUP_TABLES,  "bsmi_group_tables",   "sums",     1) \
    X(COLUMN_TABLES, "bsmi_column_tables",  "sums",     1) \
    X(FINISH,        "bsmi_finish",         "finish",   16) \
    X(QUANTIZE,      "bsmi_quantize",       "quantize", 16) \
    X(TENSOR_SCALE,  "bsmi_tensor_scale",   "quantize", 1) \
    X(AMAX,          "bsmi_amax",           "quantize", 8) \
    X(DEQUANTIZE,    "bsmi_dequantize",     "quantize", 16) \
    X(CONVERT,       "bsmi_convert_scales", "scales",   16) \
    X(CLEAR_PADDING, "bsmi_clear_padding",  "scales",   8) \
    X(NAN_SCALES,    "bsmi_nan_scales_gfx950", "nan_scales", 0) \
    X(DECODE,        "bsmi_decode",         "decode",   8) \
    X(REPACK,        "bsmi_repack",         "decode",   16) \
    X(TRANSPOSE,     "bsmi_transpose",      "transpose", 16) \
    X(EXPAND,        "bsmi_expand",         "expand",   16) \
    X(PACK_B,        "bsmi_pack_b",         "pack_b",   16) \
    X(FACTORS,       "bsmi_factors",        "finish",   1)

enum bsmi_hip_kernel_id {
#define X(id, function, file, most) BSMI_HIP_KERNEL_##id,
    BSMI_HIP_KERNELS(X)
#undef X
    BSMI_HIP_KERNEL_COUNT
};

struct bsmi_hip_kernel { const char *function, *file; int most; };
extern const struct bsmi_hip_kernel bsmi_hip_kernels[BSMI_HIP_KERNEL_COUNT];

#endif

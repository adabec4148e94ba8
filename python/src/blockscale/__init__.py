"""blockscale: block-scaled matrices (MXFP8, MXFP6, MXFP4, MXINT8, NVFP4), quantized and multiplied.

    import blockscale, numpy
    x = numpy.random.default_rng(0).standard_normal((16, 256), dtype="float32")
    w = blockscale.quantize(x, "nvfp4")             # codes, scales and a tensor scale, arrays of x's library
    y = blockscale.matmul(x, w)                     # x w^T: every product exact, sums in fp32

quantize, quantize_both, dequantize, hadamard   real numbers into a Matrix, and back
sparsify                                        half of them, into a sparse Matrix (2:4, 4:8)
merge_tensor_scales                             several NVFP4 matrices under one tensor scale
from_parts, plain                               a Matrix over arrays that exist, without a copy
matmul, exact_matmul                            products
plan, pack, explain                             products whose kernel is chosen once; prepacked weights; why a kernel
mma_scaled                                      products with the shapes of tile languages
convert_scales, layout_fits, scale_bytes, scale_offset, show_layout   scale layouts
open, quantize_checkpoint                       checkpoints: their weights over the mapped files, and new ones
formats, layouts, kernels, devices, version, set_threads   what there is

Arrays are those of NumPy (with ml_dtypes), PyTorch, CuPy, JAX, or of anything with DLPack or
__cuda_array_interface__, on the CPU or an NVIDIA GPU.  Nothing is copied or synchronised behind the
caller's back; the GIL is released in calls.
Failures are blockscale.Error: InvalidError, UnsupportedError, DeviceError, FileError, MemoryError_."""
from __future__ import annotations

from ._context import set_threads, threads
from ._errors import DeviceError, Error, FileError, InvalidError, MemoryError_, UnsupportedError
from ._information import Device, FormatInfo, LayoutInfo, devices, formats, kernels, layouts, version
from .block_products import mma_scaled
from .checkpoint_quantizer import Report, quantize_checkpoint
from .checkpoints import Checkpoint, Tensor, Weight, open
from .matrix import Matrix, from_parts, plain
from .multiplication import exact_matmul, matmul
from .plans import Packed, Plan, explain, pack, plan
from .quantization import MergeStats, Stats, dequantize, hadamard, merge_tensor_scales, quantize, quantize_both
from .scale_layouts import Picture, convert_scales, layout_fits, scale_bytes, scale_offset, show_layout
from .sparsification import SparsifyStats, sparsify

__all__ = ["Checkpoint", "Device", "DeviceError", "Error", "FileError", "FormatInfo", "InvalidError", "LayoutInfo",
           "Matrix", "MemoryError_", "MergeStats", "Packed", "Picture", "Plan", "Report", "SparsifyStats", "Stats",
           "Tensor", "UnsupportedError", "Weight", "convert_scales", "dequantize", "devices", "exact_matmul",
           "explain", "formats", "from_parts", "hadamard", "kernels", "layout_fits", "layouts", "matmul",
           "merge_tensor_scales", "mma_scaled", "open", "pack", "plain", "plan", "quantize", "quantize_both",
           "quantize_checkpoint", "scale_bytes", "scale_offset", "set_threads", "show_layout", "sparsify", "threads",
           "version"]

__version__ = version()

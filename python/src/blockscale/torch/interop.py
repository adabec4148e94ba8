"""Quantized tensors of torchao, PyTorch's types of 4 and 8 bits, and torch.nn.functional.scaled_mm, without copies."""
from __future__ import annotations

from importlib import import_module
from typing import Any, Sequence

import torch
from torch import Tensor

from .. import from_parts
from .._errors import InvalidError, UnsupportedError
from .._library import FORMATS
from ..matrix import Matrix
from . import _tensors

# torchao names 6-bit elements by strings, all others by PyTorch's types.
_MX_OF_ELEMENT: dict[Any, str] = {
    torch.float8_e4m3fn: "mxfp8_e4m3", torch.float8_e5m2: "mxfp8_e5m2", torch.float4_e2m1fn_x2: "mxfp4",
    "fp6_e2m3": "mxfp6_e2m3", "fp6_e3m2": "mxfp6_e3m2"}
_ELEMENT_OF_MX = {form: element for element, form in _MX_OF_ELEMENT.items()}


def typed(codes: Tensor, format: str) -> Tensor:
    """The same codes in PyTorch's type of the format: float8_e4m3fn, float8_e5m2, float4_e2m1fn_x2; others stay
    uint8.  No copy."""
    element = _tensors.format_of(format).element
    dtype = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e2m1": torch.float4_e2m1fn_x2}.get(element)
    return codes if dtype is None else codes.view(dtype)


def typed_scales(scales: Tensor, format: str) -> Tensor:
    """The same scales as float8_e8m0fnu (MX) or float8_e4m3fn (NVFP4).  No copy."""
    form = _tensors.format_of(format)
    if form.block == 0:
        raise InvalidError(f"format={format!r} has no scales of blocks")
    return scales.view(torch.float8_e4m3fn if form.scale == "ue4m3" else torch.float8_e8m0fnu)


# torchao --------------------------------------------------------------------------------------------------------------

def from_torchao(tensor: Any) -> Matrix:
    """The matrix over the codes and scales of torchao's MXTensor or NVFP4Tensor, without a copy.

    tensor: rows x columns, or a batch of such, row-major; a transposed one is refused: its codes are the matrix that it
    is the transpose of.  Swizzled scales are in the layout 128x4.  Errors: InvalidError, UnsupportedError (blocks that
    blockscale does not have, a scale for each expert: blockscale.matmul's alpha takes these)."""
    kind = type(tensor).__name__
    if kind not in ("MXTensor", "NVFP4Tensor"):
        raise InvalidError(f"tensor is a {kind}: use torchao's MXTensor or NVFP4Tensor")
    codes = tensor.qdata
    if codes.stride(-2) < codes.stride(-1):
        raise InvalidError("tensor is transposed: give the tensor that it is the transpose of")
    if kind == "MXTensor":
        form = _MX_OF_ELEMENT.get(tensor.elem_dtype)
        if form is None or (tensor.block_size, form) not in [(FORMATS[name].block, name) for name in FORMATS]:
            raise UnsupportedError(f"tensor has elements {tensor.elem_dtype} in blocks of {tensor.block_size}: "
                                   "blockscale has no such format")
        scale = None
    else:
        form, scale = "nvfp4", tensor.per_tensor_scale
        if scale is not None and scale.numel() != 1:
            raise UnsupportedError(f"tensor has {scale.numel()} tensor scales: a matrix has one")
    layout, scales = "linear", tensor.scale.view(torch.uint8)
    if tensor.is_swizzled_scales:
        if codes.dim() == 3 and codes.shape[1] % 128 != 0:
            raise UnsupportedError(f"tensor has swizzled scales of {codes.shape[0]} matrices of {codes.shape[1]} rows, "
                                   "which share blocks of 128 rows")
        layout, scales = "128x4", scales.reshape((-1,) if codes.dim() == 2 else (codes.shape[0], -1))
    packing = "bytes" if FORMATS[form].bits == 6 else None
    return from_parts(codes.view(torch.uint8), scales, format=form, layout=layout, packing=packing,
                      tensor_scale=None if scale is None else scale.reshape(1))


def to_torchao(matrix: Matrix, dtype: torch.dtype = torch.bfloat16) -> Any:
    """torchao's MXTensor or NVFP4Tensor over the same codes and scales, without a copy.

    matrix: of PyTorch's tensors, in the layout linear or 128x4; MXFP8, MXFP4, NVFP4, and MXFP6 with a code a byte
    (packing "bytes").  dtype: the type that torchao computes in.  Errors: InvalidError, UnsupportedError."""
    if not isinstance(matrix.codes, Tensor):
        raise InvalidError(f"matrix has codes of {type(matrix.codes).__module__}: use PyTorch's tensors")
    if matrix.layout not in ("linear", "128x4"):
        raise UnsupportedError(f"matrix has scales in the layout {matrix.layout}: torchao has linear and 128x4")
    form = FORMATS[matrix.format]
    scales = matrix.scales
    swizzled = matrix.layout == "128x4"
    if swizzled:
        rows, blocks = (matrix.rows + 127) // 128 * 32, (matrix.columns // form.block + 3) // 4 * 16
        scales = scales.reshape((*matrix.codes.shape[:-2], rows, blocks))
    if form.name == "nvfp4":
        if matrix.tensor_scale_divides:
            raise UnsupportedError("matrix has a tensor scale that divides: torchao's multiplies")
        nvfp4: Any = import_module("torchao.prototype.mx_formats.nvfp4_tensor")
        scale = matrix.tensor_scale
        return nvfp4.NVFP4Tensor(matrix.codes.view(torch.uint8), scales.view(torch.float8_e4m3fn), 16, dtype,
                           None if scale is None else scale.reshape(()), None, swizzled)
    element = _ELEMENT_OF_MX.get(form.name)
    if element is None or (form.bits == 6 and matrix.packing != "bytes"):
        raise UnsupportedError(f"matrix is {form.name} in the packing {matrix.packing}: torchao has MXFP8, MXFP4, "
                               "NVFP4 and MXFP6 with a code a byte")
    mx: Any = import_module("torchao.prototype.mx_formats.mx_tensor")
    preference: Any = import_module("torchao.quantization.quantize_.common").KernelPreference
    codes = typed(matrix.codes, form.name) if form.bits == 8 else matrix.codes.view(torch.uint8)
    return mx.MXTensor(codes, scales.view(torch.float8_e8m0fnu), element, 32, dtype, preference.EMULATED, None,
                       swizzled)


# scaled_mm ------------------------------------------------------------------------------------------------------------

# torch.nn.functional.ScalingType and SwizzleType by name: older PyTorch lacks some members.
_TENSOR, _ROW, _BLOCK_16, _BLOCK_32 = "TensorWise", "RowWise", "BlockWise1x16", "BlockWise1x32"
_BLOCK_128, _TILE_128 = "BlockWise1x128", "BlockWise128x128"
_LAYOUT_OF = {"NO_SWIZZLE": "linear", "SWIZZLE_32_4_4": "128x4"}


def _names(value: Any) -> list[str]:
    if value is None:
        return []
    return [each.name for each in (value if isinstance(value, (list, tuple)) else [value])]


class _Operand:
    """One matrix of scaled_mm, K-major, with its scales sorted by what they are."""

    def __init__(self, codes: Tensor, scale: Tensor | list[Tensor], recipe: Any, swizzle: Any, name: str) -> None:
        self.codes, self.name = codes, name
        self.recipe = _names(recipe)
        scales: Sequence[Tensor] = scale if isinstance(scale, (list, tuple)) else [scale]
        swizzles = _names(swizzle)
        if len(self.recipe) != len(scales):
            raise InvalidError(f"scale_{name} has {len(scales)} tensors, scale_recipe_{name} {len(self.recipe)}")
        if codes.dim() != 2 or (codes.shape[1] > 1 and codes.stride(1) != 1):
            raise InvalidError(f"mat_{name} has {codes.dim()} dimensions and strides {tuple(codes.stride())}: mat_a is "
                               "row-major, mat_b column-major")
        self.layout = _LAYOUT_OF.get(swizzles[0] if swizzles else "NO_SWIZZLE", "")
        if not self.layout:
            raise UnsupportedError(f"swizzle_{name}={swizzles[0]}: use one of {', '.join(_LAYOUT_OF)}")
        self.kind, self.scale = self.recipe[0], scales[0]
        self.tensor_scale: Tensor | None = None
        if self.kind == _TENSOR:
            self.tensor_scale = scales[0].reshape(1)
        elif self.recipe == [_BLOCK_16, _TENSOR]:
            self.tensor_scale = scales[1].reshape(1)
        elif len(scales) != 1:
            raise UnsupportedError(f"scale_recipe_{name}={self.recipe}: two levels are BlockWise1x16 and TensorWise")
        self.format = self._format()

    def _format(self) -> str:
        dtype = self.codes.dtype
        if self.kind == _BLOCK_16 and dtype is torch.float4_e2m1fn_x2:
            return "nvfp4"
        if self.kind == _BLOCK_32 and dtype in _MX_OF_ELEMENT:
            return _MX_OF_ELEMENT[dtype]
        if self.kind in (_TENSOR, _ROW, _BLOCK_128, _TILE_128) and dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            return _tensors.PLAIN_FORMATS[dtype]
        raise UnsupportedError(f"mat_{self.name} is of {dtype}, scaled {self.kind}: use float8_e4m3fn or float8_e5m2 "
                               "TensorWise, RowWise, BlockWise1x32, BlockWise1x128 or BlockWise128x128, or "
                               "float4_e2m1fn_x2 BlockWise1x16 or BlockWise1x32")

    @property
    def columns(self) -> int:
        """K."""
        return self.codes.shape[1] * (2 if self.codes.dtype is torch.float4_e2m1fn_x2 else 1)

    def block_scales(self) -> Tensor | None:
        """The scales of blocks as bytes; None where the matrix has none."""
        if self.kind not in (_BLOCK_16, _BLOCK_32):
            return None
        scales = self.scale
        if self.layout == "128x4":
            flat = scales if scales.is_contiguous() else scales.t()
            return flat.contiguous().reshape(-1).view(torch.uint8)
        wanted = (self.codes.shape[0], -(-self.columns // (16 if self.kind == _BLOCK_16 else 32)))
        if tuple(scales.shape) != wanted and tuple(scales.shape) == wanted[::-1]:
            scales = scales.t()
        if scales.dim() == 1 and scales.numel() == wanted[0] * wanted[1]:
            scales = scales.reshape(wanted)
        return scales.view(torch.uint8)

    def tile_scales(self, tile: int) -> Tensor:
        """For tile number `tile` of 128 columns: fp32 factors of the rows, (rows, 1)."""
        rows, tiles = self.codes.shape[0], -(-self.columns // 128)
        if self.kind == _TENSOR:
            return self.scale.reshape(1, 1)
        if self.kind == _ROW:
            return self.scale.reshape(rows, 1)
        if self.kind == _BLOCK_128:
            if tuple(self.scale.shape) != (rows, tiles):
                raise InvalidError(f"scale_{self.name} has the shape {tuple(self.scale.shape)}: BlockWise1x128 of "
                                   f"{rows} x {self.columns} has {(rows, tiles)}")
            return self.scale[:, tile:tile + 1]
        row_tiles = -(-rows // 128)
        if self.scale.dim() != 2 or self.scale.shape[1] != row_tiles or self.scale.shape[0] < tiles:
            raise InvalidError(f"scale_{self.name} has the shape {tuple(self.scale.shape)}: BlockWise128x128 of "
                               f"{rows} x {self.columns} has {(tiles, row_tiles)}, the first rounded up to 4")
        return self.scale[tile].repeat_interleave(128)[:rows].unsqueeze(1)


def scaled_mm(mat_a: Tensor, mat_b: Tensor, scale_a: Tensor | list[Tensor], scale_recipe_a: Any,
              scale_b: Tensor | list[Tensor], scale_recipe_b: Any, swizzle_a: Any = None, swizzle_b: Any = None,
              bias: Tensor | None = None, output_dtype: torch.dtype | None = torch.bfloat16,
              contraction_dim: Sequence[int] = (), use_fast_accum: bool = False) -> Tensor:
    """torch.nn.functional.scaled_mm, also on GPUs and CPUs where PyTorch has no kernel for it.

    mat_a (M, K) row-major, mat_b (K, N) column-major: float8_e4m3fn, float8_e5m2, or float4_e2m1fn_x2 with two columns
    an element.  The scales multiply; their recipes (torch.nn.functional.ScalingType) may differ between the operands:

        TensorWise        fp32 of one element
        RowWise           fp32, (M, 1) and (1, N)
        BlockWise1x32     float8_e8m0fnu: MXFP8, MXFP4; (M, K/32) and (N, K/32), or swizzled 32_4_4
        BlockWise1x16     float8_e4m3fn: NVFP4, with [BlockWise1x16, TensorWise] for two levels
        BlockWise1x128    fp32, (M, K/128) and (N, K/128)
        BlockWise128x128  fp32, (K/128 rounded up to 4 or not, M/128 or N/128)

    Every product is exact and sums are fp32, so use_fast_accum changes nothing.  The scales of rows and of blocks of
    128 columns are multiplied in fp32 behind the sums, those of blocks of 128 one stretch of K after the other.  Scales
    that lie as said are not copied.  Returns (M, N) of output_dtype (None: of mat_a's type)."""
    if tuple(contraction_dim) not in ((), (1, 0), (-1, 0), (1, -2), (-1, -2)):
        raise InvalidError(f"contraction_dim={tuple(contraction_dim)}: it is empty or (1, 0)")
    a = _Operand(mat_a, scale_a, scale_recipe_a, swizzle_a, "a")
    b = _Operand(mat_b.t(), scale_b, scale_recipe_b, swizzle_b, "b")
    if a.columns != b.columns:
        raise InvalidError(f"mat_a has {a.columns} columns, mat_b {b.columns} rows")
    dtype = mat_a.dtype if output_dtype is None else output_dtype
    if {a.kind, b.kind} & {_ROW, _BLOCK_128, _TILE_128}:
        return _scaled_behind(a, b, bias, dtype)
    result: Tensor = torch.ops.blockscale.matmul(
        a.codes, a.block_scales(), b.codes, b.block_scales(), a_format=a.format, b_format=b.format,
        a_tensor_scale=a.tensor_scale, b_tensor_scale=b.tensor_scale, a_layout=a.layout, b_layout=b.layout,
        columns=a.columns, bias=bias, out_dtype=dtype)
    return result


def _scaled_behind(a: _Operand, b: _Operand, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Scales that are no block format's: sums of stretches of K, each times its factors of rows and columns."""
    if (_BLOCK_16 in (a.kind, b.kind)) or (_BLOCK_32 in (a.kind, b.kind)):
        raise UnsupportedError(f"scale_recipe_a={a.recipe}, scale_recipe_b={b.recipe}: block formats are multiplied by "
                               "block formats or by matrices scaled TensorWise")
    width = 128 if {a.kind, b.kind} & {_BLOCK_128, _TILE_128} else max(a.columns, 1)
    total: Tensor | None = None
    for tile in range(max(1, -(-a.columns // width))):
        columns = slice(tile * width, (tile + 1) * width)
        part: Tensor = torch.ops.blockscale.matmul(a.codes[:, columns], None, b.codes[:, columns], None,
                                                   out_dtype=torch.float32)
        part = part * a.tile_scales(tile) * b.tile_scales(tile).t()
        total = part if total is None else total + part
    assert total is not None
    return (total if bias is None else total + bias.to(torch.float32)).to(dtype)

"""Tensors described for the C library: which format they hold, and where their codes and scales lie.

Operators of this package take the parts of a quantized matrix as tensors of their own:

    codes         uint8 of (rows, bytes of a row) or (batch, rows, bytes of a row), as the format packs them: two 4-bit
                  codes a byte, four 6-bit codes in three, one 8-bit code a byte; float8_e4m3fn, float8_e5m2 and
                  float4_e2m1fn_x2 are taken as well.  A matrix that is not quantized is a tensor of fp32, bf16 or fp16.
    scales        one byte a block (uint8, float8_e8m0fnu or float8_e4m3fn): (rows, blocks) where the layout is linear,
                  else the bytes of the layout one behind the other; with the batch in front
    tensor_scale  fp32 of one element, or None; a tensor without elements counts as None

Nothing is copied: pitches come from the tensors' strides, and elements of a row lie one behind the other."""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import torch
from torch import Tensor

from .. import _library
from .._errors import InvalidError, check, number_of
from .._library import FORMATS, LAYOUTS, NULL, PACKINGS, Format, ffi, lib

REAL_FORMATS = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
PLAIN_FORMATS = {**REAL_FORMATS, torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}
PLAIN_DTYPES = {name: dtype for dtype, name in PLAIN_FORMATS.items()}
REALS = {torch.float32: lib.BSM_REAL_FP32, torch.bfloat16: lib.BSM_REAL_BF16, torch.float16: lib.BSM_REAL_FP16,
         torch.float64: lib.BSM_REAL_FP64}
_CODES = {torch.uint8, torch.int8, torch.float8_e4m3fn, torch.float8_e5m2, torch.float4_e2m1fn_x2}
_SCALES = {torch.uint8, torch.float8_e8m0fnu, torch.float8_e4m3fn}


def format_of(name: str, argument: str = "format") -> Format:
    """The format of a name or of one of its aliases ("mxfp8").  InvalidError lists those there are."""
    found = FORMATS.get(name)
    if found is None:
        number = lib.bsm_format_from_name(name.encode())
        if number == lib.BSM_FORMAT_NONE:
            raise InvalidError(f"{argument}={name!r} is not known: use one of {', '.join(FORMATS)}")
        found = _library.FORMAT_OF_NUMBER[number]
    return found


class Parts(NamedTuple):
    """The tensors of one matrix and how they are to be read."""

    codes: Tensor
    scales: Tensor | None
    tensor_scale: Tensor | None
    format: str
    layout: str = "linear"
    packing: str = "default"
    divides: bool = False
    alone: bool = False         # codes and scales are in prepacked weights; these tensors have shapes and types alone


def given(tensor: Tensor | None) -> Tensor | None:
    """None for a tensor without elements: operators cannot return None in a place of a tensor."""
    return None if tensor is None or tensor.numel() == 0 else tensor


def parts(codes: Tensor, scales: Tensor | None, tensor_scale: Tensor | None, form: str, layout: str = "linear",
          packing: str = "default", divides: bool = False, argument: str = "a") -> Parts:
    """Parts whose format is named: by the codes' type where `form` is empty."""
    if not form:
        form = PLAIN_FORMATS.get(codes.dtype, "")
        if not form:
            raise InvalidError(f"{argument}_format is empty, and {argument} is of {codes.dtype}: name the format of "
                               "quantized codes")
    return Parts(codes, given(scales), given(tensor_scale), form, layout, packing, divides)


def row_units(form: Format, packing: str, columns: int) -> int:
    """Elements of a tensor that one row of codes takes."""
    if packing == "bytes" or form.bits >= 8:
        return columns
    return (columns + 1) // 2 if form.bits == 4 else (columns + 3) // 4 * 3


def columns_of(form: Format, packing: str, units: int) -> int:
    """Columns that a row of so many tensor elements holds."""
    if packing == "bytes" or form.bits >= 8:
        return units
    return units * 2 if form.bits == 4 else units // 3 * 4


def _pitch(form: Format, packing: str, units: int, argument: str) -> int:
    """A stride in tensor elements as the library's pitch, in codes."""
    if packing == "bytes" or form.bits >= 8:
        return units
    if form.bits == 6 and units % 3 != 0:
        raise InvalidError(f"{argument} has a stride of {units} bytes: one of packed 6-bit codes is a multiple of 3")
    return units * 2 if form.bits == 4 else units // 3 * 4


def shape_of(tensor: Tensor, argument: str) -> tuple[int, int]:
    """Batch and rows of a tensor of two or three dimensions."""
    if tensor.dim() == 2:
        return 1, tensor.shape[0]
    if tensor.dim() != 3:
        raise InvalidError(f"{argument} has {tensor.dim()} dimensions: matrices have 2, batches of them 3")
    return (1 if tensor.stride(0) == 0 else tensor.shape[0]), tensor.shape[1]


def scale_layout(name: str, target: Any) -> None:
    """Writes the layout of that name ("linear", "128x4", "tiles:32x8" ...) into a bsm_scale_layout."""
    number = LAYOUTS.get(name)
    if number is not None and name != "tiles":
        target.kind, target.pitch, target.tile_rows, target.tile_columns = number, 0, 0, 0
        return
    parsed = ffi.new("bsm_scale_layout *")
    check(lib.bsm_scale_layout_parse(name.encode(), parsed))
    target.kind, target.pitch = parsed.kind, parsed.pitch
    target.tile_rows, target.tile_columns = parsed.tile_rows, parsed.tile_columns


def _check_dtype(p: Parts, form: Format, argument: str) -> None:
    dtype = p.codes.dtype
    wanted = PLAIN_DTYPES.get(form.name)
    if dtype == wanted or (form.bits <= 8 and dtype in _CODES):
        return
    raise InvalidError(f"{argument} is of {dtype}, which does not hold {form.name}: use "
                       + (str(wanted) if wanted is not None else "torch.uint8"))


def _describe_scales(p: Parts, target: Any, argument: str) -> None:
    scales = p.scales
    name = f"{argument}_scales"
    if scales is None:
        raise InvalidError(f"{name} is absent: {argument} is {p.format}, which has scales of blocks")
    if scales.dtype not in _SCALES:
        raise InvalidError(f"{name} is of {scales.dtype}: scales are bytes, of torch.uint8 or an 8-bit float")
    linear = target.scale_layout.kind == lib.BSM_LAYOUT_LINEAR and target.scale_layout.pitch == 0
    blocks = lib.bsm_matrix_scale_columns(target)
    batch = max(1, target.batch)
    if linear and scales.dim() >= 2:
        wanted = (target.rows, blocks) if scales.dim() == 2 else (batch, target.rows, blocks)
        if tuple(scales.shape[-2:]) != (target.rows, blocks) or (batch > 1 and scales.shape[0] != batch):
            raise InvalidError(f"{name} has the shape {tuple(scales.shape)}: {wanted} is that of linear scales for "
                               f"{target.rows} x {target.columns} {p.format}")
        if blocks > 1 and scales.stride(-1) != 1:
            raise InvalidError(f"{name} has a last stride of {scales.stride(-1)}: the scales of a row lie one behind "
                               "the other")
        target.scale_layout.pitch = scales.stride(-2) if target.rows > 1 else 0
        target.scale_batch_pitch = scales.stride(0) if batch > 1 else 0
        return
    if not scales.is_contiguous():
        raise InvalidError(f"{name} has the strides {tuple(scales.stride())}: scales in the layout {p.layout} lie one "
                           "behind the other")
    need = ffi.new("int64_t *")
    check(lib.bsm_matrix_scale_bytes(target, need))
    if scales.numel() != need[0]:
        raise InvalidError(f"{name} has {scales.numel()} bytes: {target.rows} x {target.columns} {p.format} in the "
                           f"layout {p.layout} has {need[0]}")


def describe(p: Parts, target: Any, columns: int, argument: str) -> None:
    """Fills a bsm_matrix, pointers left out: they are set_pointers'.  columns: 0 takes what a row of codes holds."""
    form = format_of(p.format, f"{argument}_format")
    _check_dtype(p, form, argument)
    codes = p.codes
    batch, rows = shape_of(codes, argument)
    units = codes.shape[-1]
    if columns == 0:
        columns = columns_of(form, p.packing, units)
    if row_units(form, p.packing, columns) != units:
        raise InvalidError(f"{argument} has {units} elements a row, which are not {columns} columns of {form.name}")
    if units > 1 and codes.stride(-1) != 1:
        raise InvalidError(f"{argument} has a last stride of {codes.stride(-1)}: the codes of a row lie one behind the "
                           "other")
    target.struct_size = ffi.sizeof("bsm_matrix")
    target.format, target.packing = form.number, number_of(PACKINGS, p.packing, f"{argument}_packing")
    target.rows, target.columns, target.batch = rows, columns, batch
    target.pitch = _pitch(form, p.packing, codes.stride(-2), argument) if rows > 1 else 0
    target.batch_pitch = _pitch(form, p.packing, codes.stride(0), argument) if batch > 1 else 0
    target.tensor_scale_use = lib.BSM_TENSOR_SCALE_DIVIDES if p.divides else lib.BSM_TENSOR_SCALE_MULTIPLIES
    scale_layout(p.layout, target.scale_layout)
    target.scale_batch_pitch = 0
    if form.block > 0:
        _describe_scales(p, target, argument)
    elif p.scales is not None:
        raise InvalidError(f"{argument}_scales is given: {argument} is {form.name}, which has no scales of blocks")
    scale = p.tensor_scale
    if scale is not None and (scale.dtype is not torch.float32 or scale.numel() != 1):
        raise InvalidError(f"{argument}_tensor_scale is of {scale.dtype} and has {scale.numel()} elements: it is one "
                           "torch.float32")


def without_bytes(tensor: Tensor) -> Tensor:
    """A tensor of that shape, type and device, all of whose elements are one byte."""
    return torch.zeros(1, dtype=torch.uint8, device=tensor.device).view(tensor.dtype).expand(tensor.shape)


def has_no_bytes(codes: Tensor) -> bool:
    """Whether codes are such a tensor, in whose place there are prepacked weights."""
    return codes.numel() > 1 and not any(codes.stride())


def alone(p: Parts) -> Parts:
    """The same matrix, given by its prepacked weights alone."""
    scales = None if p.scales is None else torch.empty(p.scales.shape, dtype=p.scales.dtype, device="meta")
    return p._replace(codes=torch.empty(p.codes.shape, dtype=p.codes.dtype, device="meta"), scales=scales, alone=True)


def set_pointers(p: Parts, target: Any) -> None:
    """Where the tensors of p lie now."""
    target.data = NULL if p.alone else ffi.cast("void *", p.codes.data_ptr())
    target.scales = NULL if p.alone or p.scales is None else ffi.cast("void *", p.scales.data_ptr())
    target.tensor_scale = NULL if p.tensor_scale is None else ffi.cast("float *", p.tensor_scale.data_ptr())


def key(p: Parts) -> tuple[Any, ...]:
    """All of p that a plan depends on."""
    codes, scales = p.codes, p.scales
    if p.alone:
        return (codes.shape, codes.dtype, p.format, p.layout, p.packing, p.divides,
                None if p.tensor_scale is None else (p.tensor_scale.dtype, p.tensor_scale.numel()))
    return (codes.shape, codes.stride(), codes.dtype, codes.data_ptr() & 15, p.format, p.layout, p.packing, p.divides,
            None if scales is None else (scales.shape, scales.stride(), scales.dtype, scales.data_ptr() & 15),
            None if p.tensor_scale is None else (p.tensor_scale.dtype, p.tensor_scale.numel()))


def describe_reals(x: Tensor, argument: str) -> Any:
    """A bsm_real_matrix over a tensor of any strides."""
    real = REALS.get(x.dtype)
    if real is None:
        raise InvalidError(f"{argument} is of {x.dtype}: use torch.float32, bfloat16, float16 or float64")
    if x.dim() not in (2, 3):
        raise InvalidError(f"{argument} has {x.dim()} dimensions: matrices have 2, batches of them 3")
    made = ffi.new("bsm_real_matrix *")
    made.struct_size = ffi.sizeof("bsm_real_matrix")
    made.type = real
    made.rows, made.columns = x.shape[-2], x.shape[-1]
    made.row_stride, made.column_stride = x.stride(-2), x.stride(-1)
    made.batch = x.shape[0] if x.dim() == 3 else 1
    made.batch_stride = x.stride(0) if x.dim() == 3 else 0
    made.data = ffi.cast("void *", x.data_ptr())
    return made


def device_of(tensor: Tensor) -> tuple[str, int]:
    """The library's name of a tensor's device."""
    device = tensor.device
    if device.type == "cpu":
        return "cpu", 0
    if device.type == "cuda" and torch.version.hip is None:
        return "cuda", device.index
    raise InvalidError(f"a tensor lies on {device}: blockscale computes on CPUs and NVIDIA GPUs")


def on_gpu(tensor: Tensor) -> bool:
    """Whether the library's kernels for a GPU take the tensor."""
    return tensor.device.type != "meta" and device_of(tensor)[0] != "cpu"


def same_device(tensors: Sequence[tuple[str, Tensor | None]]) -> tuple[str, int]:
    """The device of all tensors, which are named for the error; the first decides."""
    first, reference = tensors[0]
    assert reference is not None
    for name, tensor in tensors[1:]:
        if tensor is not None and tensor.device != reference.device:
            raise InvalidError(f"{name} lies on {tensor.device}, {first} on {reference.device}")
    return device_of(reference)


def on_one_device(*tensors: Tensor | None) -> bool:
    """Whether all tensors lie on the first one's device."""
    device = tensors[0].device if tensors[0] is not None else None
    for tensor in tensors:
        if tensor is not None and tensor.device != device:
            return False
    return True


def stream_of(device: tuple[str, int]) -> int:
    """PyTorch's current stream on a GPU as a number; 0 on the CPU."""
    if device[0] == "cpu":
        return 0
    stream: int = torch._C._cuda_getCurrentRawStream(device[1])
    return stream

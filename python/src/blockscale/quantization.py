"""Real numbers into codes and scales, and back: quantize, quantize_both, dequantize, hadamard."""
from __future__ import annotations

import dataclasses
from typing import Any, Literal, Sequence, overload

import numpy as np

from . import _arrays, _context
from ._arrays import Array, View, where
from ._errors import InvalidError, check, number_of
from ._library import NONFINITES, NULL, PRESETS, REALS, RECIPES, ROUNDINGS, Format, ffi, lib
from .matrix import Matrix, allocate, format_of, tensor_scale_view

# Presets of NVFP4 whose projects divide by the tensor scale, and the one that has none.
_DIVIDING = ("transformer_engine", "compressed_tensors", "flashinfer")
_WITHOUT = ("ggml",)


@dataclasses.dataclass(frozen=True)
class Stats:
    """What quantizing did.  signal and noise are sums of x^2 and (x - decoded)^2 over elements that are finite on both
    sides; snr_db is 10 log10(signal / noise), infinity without noise; saturated_elements were cut to the largest code;
    flushed_blocks have a nonzero number and only zero codes, or a zero scale; nan_blocks got the NaN scale; amax is the
    largest finite magnitude; scale_histogram counts scale codes (int64 array of 256)."""

    elements: int
    blocks: int
    saturated_elements: int
    flushed_blocks: int
    nan_blocks: int
    signal: float
    noise: float
    snr_db: float
    amax: float
    scale_histogram: Any


def _stats(c: Any) -> Stats:
    numbers = {field.name: getattr(c, field.name) for field in dataclasses.fields(Stats)[:-1]}
    return Stats(scale_histogram=np.array(list(c.scale_histogram), np.int64), **numbers)


def real_struct(x: View, name: str, transposed: bool = False) -> Any:
    """A bsm_real_matrix over an array of real numbers, with its last two axes exchanged if transposed."""
    real = _arrays.REAL_OF.get(x.dtype)
    if real is None:
        raise InvalidError(f"{name} has the type {x.dtype}: real numbers are one of {', '.join(_arrays.REAL_OF)}")
    if len(x.shape) not in (2, 3):
        raise InvalidError(f"{name} has {len(x.shape)} dimensions: (rows, columns) or (batch, rows, columns)")
    if x.shape[0] == 0 and len(x.shape) == 3:
        raise InvalidError(f"{name} has the shape {tuple(x.shape)}: a batch has at least 1 matrix")
    row, column = (-1, -2) if transposed else (-2, -1)
    c = ffi.new("bsm_real_matrix *")
    c.struct_size = ffi.sizeof("bsm_real_matrix")
    c.type = REALS[real]
    c.rows, c.columns, c.row_stride, c.column_stride = x.shape[row], x.shape[column], x.strides[row], x.strides[column]
    c.data = ffi.cast("void *", x.pointer)
    c.batch = x.shape[0] if len(x.shape) == 3 else 1
    c.batch_stride = x.strides[0] if len(x.shape) == 3 else 0
    return c


def _context_of(x: View) -> Any:
    """The context of an array's device and of its library's current stream."""
    return _context.context(x.device, _stream_of(x))


def _stream_of(x: View) -> int:
    return 0 if x.device[0] == "cpu" else _context.current_stream(x.library, x.device[1], x.stream)


def _options(recipe: str | None, rounding: str, seed: int, nonfinite: str, computed: bool, saturate: bool,
             block_rows: int, preset: str | None, clamp: tuple[float, float] | None, smallest_scale: int) -> Any:
    c = ffi.new("bsm_quantize_options *")
    c.struct_size = ffi.sizeof("bsm_quantize_options")
    c.recipe = number_of(RECIPES, "default" if recipe is None else recipe, "recipe")
    c.rounding = number_of(ROUNDINGS, rounding, "rounding")
    c.nonfinite = number_of(NONFINITES, nonfinite, "nonfinite")
    c.preset = number_of(PRESETS, "none" if preset is None else preset, "preset")
    if not 0 <= seed < 1 << 64:
        raise InvalidError(f"seed={seed} is not between 0 and 2^64 - 1")
    if not 0 <= smallest_scale <= 255:
        raise InvalidError(f"smallest_scale={smallest_scale} is no code of a scale: 0 to 255")
    c.seed, c.block_rows, c.smallest_scale, c.no_saturate = seed, block_rows, smallest_scale, not saturate
    c.tensor_scale = lib.BSM_TENSOR_SCALE_COMPUTED if computed else lib.BSM_TENSOR_SCALE_GIVEN
    if clamp is not None:
        c.clamp_low, c.clamp_high = clamp
    return c


def _tensor_scale(form: Format, given: Any, preset: str | None, x: View) -> tuple[View | bool, bool]:
    """The tensor scale of a destination (an array, True for one to be computed, False for none), and whether it is
    computed."""
    if given is None:
        given = "compute" if form.name == "nvfp4" and preset not in _WITHOUT else "none"
    if given is False or (isinstance(given, str) and given == "none"):
        return False, False
    if isinstance(given, str):
        if given != "compute":
            raise InvalidError(f'tensor_scale={given!r} is not known: use "compute", "none", a number or an array')
        return True, True
    found = tensor_scale_view(given, x.library, x.device, x.stream)
    assert found is not None
    return found, False


def _divides(form: Format, preset: str | None) -> bool:
    """Whether the preset's project divides by the tensor scale."""
    return form.name == "nvfp4" and preset in _DIVIDING


@overload
def quantize(x: Array, format: str, *, layout: str = ..., recipe: str | None = ..., axis: int = ...,
             tensor_scale: Any = ..., tensor_scale_divides: bool | None = ..., rounding: str = ..., seed: int = ...,
             nonfinite: str = ..., saturate: bool = ..., block_rows: int = ..., preset: str | None = ...,
             clamp: tuple[float, float] | None = ..., smallest_scale: int = ..., packing: str | None = ...,
             stats: Literal[False] = ..., out: Matrix | None = ...) -> Matrix: ...


@overload
def quantize(x: Array, format: str, *, layout: str = ..., recipe: str | None = ..., axis: int = ...,
             tensor_scale: Any = ..., tensor_scale_divides: bool | None = ..., rounding: str = ..., seed: int = ...,
             nonfinite: str = ..., saturate: bool = ..., block_rows: int = ..., preset: str | None = ...,
             clamp: tuple[float, float] | None = ..., smallest_scale: int = ..., packing: str | None = ...,
             stats: Literal[True], out: Matrix | None = ...) -> tuple[Matrix, Stats]: ...


def quantize(x: Array, format: str, *, layout: str = "linear", recipe: str | None = None, axis: int = -1,
             tensor_scale: Any = None, tensor_scale_divides: bool | None = None, rounding: str = "nearest_even",
             seed: int = 0, nonfinite: str = "propagate", saturate: bool = True, block_rows: int = 0,
             preset: str | None = None, clamp: tuple[float, float] | None = None, smallest_scale: int = 0,
             packing: str | None = None, stats: bool = False,
             out: Matrix | None = None) -> Matrix | tuple[Matrix, Stats]:
    """Quantizes an array of real numbers into a Matrix of codes and scales, arrays of x's library on x's device.

    x             (rows, columns) or (batch, rows, columns): float32, float16, bfloat16, float64 (not with a preset, not
                  on a GPU).  Any strides.
    format        "nvfp4", "mxfp4", "mxfp8_e4m3" ... ; formats() lists them.
    layout        where scales lie: "linear", "128x4", "8x4", "tiles:ROWSxCOLUMNS" ... ; layouts() lists them.
    recipe        how a block's scale follows from its largest magnitude: "floor", "rceil" (default of e8m0 scales),
                  "ceil", "even", "mse"; NVFP4: "nearest" (default), "four_over_six".
    axis          the axis that blocks run along, and that a product sums over: -1, the columns; -2, the rows, which
                  gives the Matrix of x transposed: shape (columns, rows).
    tensor_scale  "compute": one fp32 factor, which makes the largest magnitude the largest that the format holds
                  (default of NVFP4); "none" (default of all else); a number, or an fp32 array of one element.
    tensor_scale_divides   numbers are divided by the tensor scale (compressed-tensors' convention) rather than
                  multiplied.  None: what the preset's project does, else False.
    rounding      "nearest_even", or "stochastic": up with the probability of the discarded fraction, drawn by `seed`.
    nonfinite     of NaN and infinity: "propagate" gives their block a NaN scale; "saturate" cuts infinity to the
                  largest code.
    saturate      of unscaled e4m3 and e5m2: False gives NaN or infinity beyond the largest number.
    block_rows    rows that share a scale: 0, or the block's length for squares, whose transpose has the same values.
    preset        another project's bits instead of a recipe: "ocp", "torchao", "transformer_engine", "modelopt",
                  "compressed_tensors", "ggml", "flashinfer".
    clamp         (low, high): a block's largest magnitude is taken as at least and at most this; 0 is no bound.
    smallest_scale   scale codes below it become it.
    packing       of codes: None for the format's own ("low_first", "bit_stream"), "high_first", "bytes", "gguf".
    stats         True returns (Matrix, Stats); CPU only, since it waits for the numbers.
    out           a Matrix of the same shape, format and device to write to; layout, packing and tensor_scale are its
                  own then ("compute" writes to its tensor scale).

    Rounds once from the exact quotient; the same bits on the CPU and on GPUs, and for any number of threads.  On a GPU
    the work goes into the current stream of x's library, and nothing waits for it.
    InvalidError, UnsupportedError and DeviceError say which argument was refused, and by which rule."""
    form = format_of(format)
    of = _arrays.view(x, "x")
    if axis not in (-1, -2, len(of.shape) - 1, len(of.shape) - 2):
        raise InvalidError(f"axis={axis} of an array of {len(of.shape)} dimensions: blocks run along one of the last "
                           "two")
    transposed = axis in (-2, len(of.shape) - 2)
    source = real_struct(of, "x", transposed)
    if out is None:
        scale, computed = _tensor_scale(form, tensor_scale, preset, of)
        if tensor_scale_divides is None:
            tensor_scale_divides = _divides(form, preset)
        shape = (*of.shape[:-2], source.rows, source.columns)
        out = allocate(form, shape, layout, packing, scale, tensor_scale_divides, of.library, of.device,
                       of.stream)
    else:
        computed = _fits(out, form, of, tensor_scale, preset)
    options = _options(recipe, rounding, seed, nonfinite, computed, saturate, block_rows, preset, clamp, smallest_scale)
    found = NULL
    if stats:
        found = ffi.new("bsm_quantize_stats *")
        found.struct_size = ffi.sizeof("bsm_quantize_stats")
    check(lib.bsm_quantize(_context_of(of), source, options, out._c, found))
    _context.settle(of.library, of.device, _stream_of(of))
    return (out, _stats(found)) if stats else out


def _fits(out: Matrix, form: Format, x: View, tensor_scale: Any, preset: str | None) -> bool:
    """Checks a caller's destination; returns whether its tensor scale is computed."""
    if not isinstance(out, Matrix):
        raise InvalidError(f"out is a {type(out).__name__}: use a Matrix")
    if out.format != form.name:
        raise InvalidError(f"out has the format {out.format}, format={form.name}")
    if out.device != x.device:
        raise InvalidError(f"out lies on {where(out.device)}, x on {where(x.device)}")
    if tensor_scale is None:
        return out.tensor_scale is not None and form.name == "nvfp4" and preset not in _WITHOUT
    if isinstance(tensor_scale, str) and tensor_scale == "compute":
        return True
    raise InvalidError('tensor_scale is given with out: the tensor scale is that of out; "compute" writes it')


def quantize_both(x: Array, format: str, column_format: str | None = None, *, layout: str = "linear",
                  column_layout: str | None = None, recipe: str | None = None, tensor_scale: Any = None,
                  tensor_scale_divides: bool | None = None, rounding: str = "nearest_even", seed: int = 0,
                  nonfinite: str = "propagate", preset: str | None = None, clamp: tuple[float, float] | None = None,
                  smallest_scale: int = 0, packing: str | None = None) -> tuple[Matrix, Matrix]:
    """x and its transpose, quantized from one pass over the numbers: (quantize(x, format), quantize(x, column_format,
    axis=-2)), the same bits.  Training needs both of each operand.

    column_format, column_layout   of the transpose; None: as the rows'.
    tensor_scale  "compute", "none", a number or an array, for both; one that is computed is computed for each.
    All other arguments are those of quantize."""
    forms = (format_of(format), format_of(format if column_format is None else column_format, "column_format"))
    of = _arrays.view(x, "x")
    source = real_struct(of, "x")
    shapes = (of.shape, (*of.shape[:-2], of.shape[-1], of.shape[-2]))
    made, computes = [], []
    for form, shape, where in zip(forms, shapes, (layout, layout if column_layout is None else column_layout)):
        scale, computed = _tensor_scale(form, tensor_scale, preset, of)
        divides = _divides(form, preset) if tensor_scale_divides is None else tensor_scale_divides
        made.append(allocate(form, shape, where, packing, scale, divides, of.library, of.device,
                       of.stream))
        computes.append(computed)
    if computes[0] != computes[1]:
        raise InvalidError(f"tensor_scale={tensor_scale!r}: {forms[0].name} and {forms[1].name} differ in whether "
                           'theirs is computed; name "compute", "none" or a number')
    options = _options(recipe, rounding, seed, nonfinite, computes[0], True, 0, preset, clamp, smallest_scale)
    check(lib.bsm_quantize_both(_context_of(of), source, options, made[0]._c, made[1]._c))
    _context.settle(of.library, of.device, _stream_of(of))
    return made[0], made[1]


@dataclasses.dataclass(frozen=True)
class MergeStats:
    """What merging did: block scales in all, those that the merged tensor scale cannot express exactly, those above 0
    that became 0, and the largest relative error of a block's scale (1 for one that became 0)."""

    scales: int
    rounded_scales: int
    flushed_scales: int
    worst_error: float


def merge_tensor_scales(parts: Sequence[Matrix]) -> tuple[Array, Array, MergeStats]:
    """Block scales of several NVFP4 matrices (gate and up projections of a fused layer, say) under one tensor scale.

    parts   Matrix objects of the CPU with equal columns and the same use of their tensor scales; no batches.
    Returns (scales, tensor_scale, stats): uint8 scales of all rows, part by part, (rows, ceil(columns / 16)), linear;
    an fp32 array of one element, which is the tensor scale with the largest factor, so that no block scale overflows.
    Nothing is lost by multiplying part by part instead, or with alpha for the columns."""
    if not parts or not all(isinstance(part, Matrix) and part.device == _arrays.CPU for part in parts):
        raise InvalidError("parts are one or more Matrix objects of the CPU")
    columns = lib.bsm_matrix_scale_columns(parts[0]._c)
    scales = _arrays.empty(parts[0].library, _arrays.CPU, (sum(part.rows for part in parts), columns), "uint8")
    tensor_scale = _arrays.empty(parts[0].library, _arrays.CPU, (1,), "float32")
    found = ffi.new("bsm_merge_stats *")
    found.struct_size = ffi.sizeof("bsm_merge_stats")
    check(lib.bsm_tensor_scales_merge([part._c for part in parts], len(parts),
                                      ffi.cast("uint8_t *", _arrays.view(scales, "scales").pointer),
                                      ffi.cast("float *", _arrays.view(tensor_scale, "tensor_scale").pointer), found))
    return scales, tensor_scale, MergeStats(found.scales, found.rounded_scales, found.flushed_scales,
                                            found.worst_error)


def dequantize(m: Matrix, dtype: Any = "float32", out: Array = None) -> Array:
    """The numbers of a Matrix: code * scale * tensor scale (or / it), exact and rounded once to dtype.

    dtype  "float32", "float16", "bfloat16" or "float64", or NumPy's or PyTorch's own.
    out    an array of m.shape and of any strides to write to; dtype is its own then.
    Returns an array of m's library on m's device.  Numbers beyond dtype's range become infinity."""
    if not isinstance(m, Matrix):
        raise InvalidError(f"m is a {type(m).__name__}: use a Matrix")
    if out is None:
        name = _arrays.dtype_name(dtype)
        if name not in _arrays.REAL_OF:
            raise InvalidError(f"dtype={name}: use one of {', '.join(_arrays.REAL_OF)}")
        out = _arrays.empty(m.library, m.device, m.shape, name, m._stream)
    of = _arrays.view(out, "out")
    _arrays.check_writable(out, "out")
    _destination(of, m.shape, m.device)
    check(lib.bsm_dequantize(_context_of(of), m._c, real_struct(of, "out")))
    return out


def _destination(out: View, shape: tuple[int, ...], device: tuple[str, int]) -> None:
    if out.shape != shape:
        raise InvalidError(f"out has the shape {out.shape}: {shape} is needed")
    if out.device != device:
        raise InvalidError(f"out lies on {where(out.device)}, the numbers on {where(device)}")


def hadamard(x: Array, size: int, signs: Array = None, out: Array = None, *, inverse: bool = False) -> Array:
    """Rotates blocks of `size` numbers along the last axis: y = H (signs * x) / sqrt(size), H the Hadamard matrix of
    Sylvester's order.  Both operands of a product rotated in the same way give the product as it is.

    x        (rows, columns) or (batch, rows, columns): float32, float16, bfloat16 or float64; CPU.
    size     16, 32, 64 or 128; the columns are a multiple of it.
    signs    int8 array of `size` entries, each 1 or -1; None: all 1.
    out      an array of x's shape; it may be x.  None: a new one of x's type.
    inverse  x = signs * (H y) / sqrt(size): back again, but for rounding."""
    of = _arrays.view(x, "x")
    source = real_struct(of, "x")
    if out is None:
        out = _arrays.empty(of.library, of.device, of.shape, of.dtype, of.stream)
    destination = _arrays.view(out, "out")
    _arrays.check_writable(out, "out")
    _destination(destination, of.shape, of.device)
    pointer = NULL
    if signs is not None:
        given = _arrays.view(signs, "signs")
        if given.dtype != "int8" or given.shape != (size,) or given.device != _arrays.CPU or not given.contiguous():
            raise InvalidError(f"signs has the type {given.dtype} and the shape {given.shape}: {size} int8 numbers of "
                               "the CPU, one behind the other")
        pointer = ffi.cast("int8_t *", given.pointer)
    check(lib.bsm_hadamard(_context_of(of), source, size, pointer, inverse, real_struct(destination, "out")))
    return out

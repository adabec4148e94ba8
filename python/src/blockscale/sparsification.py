"""Real numbers into sparse matrices: sparsify."""
from __future__ import annotations

import dataclasses
from typing import Any, Literal, overload

from . import _arrays, _context
from ._arrays import Array
from ._errors import InvalidError, check, number_of
from ._library import NULL, SPARSITIES, ffi, lib
from .matrix import Matrix, allocate, format_of
from .quantization import (Stats, _context_of, _divides, _options, _stats, _stream_of, _tensor_scale,
                           real_struct)


@dataclasses.dataclass(frozen=True)
class SparsifyStats:
    """What leaving half of the elements out did: all groups, those of which a number that is not zero was left out, and
    such numbers; sums of x^2 over finite numbers, of all (signal) and of those that are kept, before these were
    quantized."""

    groups: int
    cut_groups: int
    cut_elements: int
    signal: float
    kept: float


@overload
def sparsify(x: Array, format: str, sparsity: str = ..., *, layout: str = ..., recipe: str | None = ...,
             axis: int = ..., tensor_scale: Any = ..., tensor_scale_divides: bool | None = ..., rounding: str = ...,
             seed: int = ..., nonfinite: str = ..., saturate: bool = ..., preset: str | None = ...,
             clamp: tuple[float, float] | None = ..., smallest_scale: int = ..., packing: str | None = ...,
             stats: Literal[False] = ...) -> Matrix: ...


@overload
def sparsify(x: Array, format: str, sparsity: str = ..., *, layout: str = ..., recipe: str | None = ...,
             axis: int = ..., tensor_scale: Any = ..., tensor_scale_divides: bool | None = ..., rounding: str = ...,
             seed: int = ..., nonfinite: str = ..., saturate: bool = ..., preset: str | None = ...,
             clamp: tuple[float, float] | None = ..., smallest_scale: int = ..., packing: str | None = ...,
             stats: Literal[True]) -> tuple[Matrix, SparsifyStats, Stats]: ...


def sparsify(x: Array, format: str, sparsity: str = "2:4", *, layout: str = "linear", recipe: str | None = None,
             axis: int = -1, tensor_scale: Any = None, tensor_scale_divides: bool | None = None,
             rounding: str = "nearest_even", seed: int = 0, nonfinite: str = "propagate", saturate: bool = True,
             preset: str | None = None, clamp: tuple[float, float] | None = None, smallest_scale: int = 0,
             packing: str | None = None, stats: bool = False) -> Matrix | tuple[Matrix, SparsifyStats, Stats]:
    """Keeps half of each group of columns, and quantizes that, into a sparse Matrix; CPU alone.

    sparsity  "2:4" keeps the two largest magnitudes of every 4 columns, "4:8" (formats of 4 bits) the two pairs 2i,
              2i + 1 of every 8 whose sums of squares are largest; among equals the lower columns.  NaN is as infinity.
    stats     True returns (Matrix, SparsifyStats, Stats), the last one of the kept numbers.
    All other arguments are those of quantize; columns are a multiple of 4 (8).  dequantize gives the numbers with their
    zeros, and products with the Matrix have the bits of those with all its elements."""
    form = format_of(format)
    if number_of(SPARSITIES, sparsity, "sparsity") == lib.BSM_SPARSITY_NONE:
        raise InvalidError('sparsity="none": quantize() keeps all elements')
    of = _arrays.view(x, "x")
    if axis not in (-1, -2, len(of.shape) - 1, len(of.shape) - 2):
        raise InvalidError(f"axis={axis} of an array of {len(of.shape)} dimensions: blocks run along one of the last "
                           "two")
    source = real_struct(of, "x", axis in (-2, len(of.shape) - 2))
    scale, computed = _tensor_scale(form, tensor_scale, preset, of)
    divides = _divides(form, preset) if tensor_scale_divides is None else tensor_scale_divides
    out = allocate(form, (*of.shape[:-2], source.rows, source.columns), layout, packing, scale, divides, of.library,
                   of.device, of.stream, sparsity)
    options = _options(recipe, rounding, seed, nonfinite, computed, saturate, 0, preset, clamp, smallest_scale)
    found, quantized = NULL, NULL
    if stats:
        found, quantized = ffi.new("bsm_sparsify_stats *"), ffi.new("bsm_quantize_stats *")
        found.struct_size, quantized.struct_size = ffi.sizeof("bsm_sparsify_stats"), ffi.sizeof("bsm_quantize_stats")
    check(lib.bsm_sparsify(_context_of(of), source, options, out._c, found, quantized))
    _context.settle(of.library, of.device, _stream_of(of))
    if not stats:
        return out
    counts = {field.name: getattr(found, field.name) for field in dataclasses.fields(SparsifyStats)}
    return out, SparsifyStats(**counts), _stats(quantized)

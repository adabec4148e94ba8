"""mma_scaled: block-scaled products with the shapes that tile languages have, y being K x N."""
from __future__ import annotations

import itertools
from typing import Any

from . import _arrays
from ._arrays import Array
from ._errors import InvalidError
from .matrix import Matrix, from_parts
from .multiplication import matmul

# Type of the codes, type of the scales and elements that a scale serves: the format.
_FORMATS = {("float8_e4m3fn", "e8m0", 32): "mxfp8_e4m3", ("float8_e5m2", "e8m0", 32): "mxfp8_e5m2",
            ("float6_e2m3fn", "e8m0", 32): "mxfp6_e2m3", ("float6_e3m2fn", "e8m0", 32): "mxfp6_e3m2",
            ("float4_e2m1fn", "e8m0", 32): "mxfp4", ("float4_e2m1fn", "e8m0", 16): "mxfp4_block16",
            ("float4_e2m1fn", "ue4m3", 16): "nvfp4", ("int8", "e8m0", 32): "mxint8"}
_SCALES = {"float8_e8m0fnu": "e8m0", "uint8": "e8m0", "float8_e4m3fn": "ue4m3"}


def _bytes(x: Array) -> Array:
    """The same memory as bytes: not every library can move its own 4- and 8-bit types."""
    library = _arrays.torch() if _arrays.is_torch(x) else None
    return x.view(library.uint8 if library is not None else "uint8")


def _rows_of(x: Array, either: bool) -> Array:
    """x with its last two axes exchanged, the last one (or either of them) running without gaps: x itself where it
    lies so, else a copy."""
    turned = x.swapaxes(-1, -2)
    of = _arrays.view(turned, "y")
    if of.strides[-1] == 1 or of.shape[-1] == 1 or (either and of.strides[-2] == 1):
        return turned
    return turned.contiguous() if of.library == "torch" else turned.copy(order="C")


class _Operand:
    """x, or y turned, with leading axes."""

    def __init__(self, codes: Array, scales: Array, names: tuple[str, str], turn: bool) -> None:
        found, of_scales = _arrays.view(codes, names[0]), _arrays.view(scales, names[1])
        if len(found.shape) < 2 or len(of_scales.shape) != len(found.shape):
            raise InvalidError(f"{names[0]} has the shape {found.shape} and {names[1]} {of_scales.shape}: both have "
                               "the same number of dimensions, at least 2")
        per_byte = 2 if found.dtype == "float4_e2m1fn_x2" else 1
        axis = -2 if turn else -1
        k, blocks = found.shape[axis] * per_byte, of_scales.shape[axis]
        self.format = self._format(found.dtype, of_scales.dtype, k, blocks, names)
        self.lead = found.shape[:-2]
        if of_scales.shape[:-2] != self.lead or of_scales.shape[-1 if turn else -2] != found.shape[-1 if turn else -2]:
            raise InvalidError(f"{names[1]} has the shape {of_scales.shape}: that of {names[0]}, {found.shape}, with K "
                               "/ block in the place of K")
        self.codes, self.scales = _bytes(codes), _bytes(scales)
        if turn:
            self.codes, self.scales = _rows_of(self.codes, per_byte == 1), _rows_of(self.scales, False)
        self.packing = "low_first" if per_byte == 2 else "bytes"
        self.rows, self.k = self.codes.shape[-2], k

    @staticmethod
    def _format(dtype: str, scale_dtype: str, k: int, blocks: int, names: tuple[str, str]) -> str:
        element = "float4_e2m1fn" if dtype == "float4_e2m1fn_x2" else dtype
        for block in (32, 16):
            found = _FORMATS.get((element, _SCALES.get(scale_dtype, ""), block))
            if found is not None and -(-k // block) == blocks:
                return found
        raise InvalidError(f"{names[0]} of the type {dtype} with K = {k} and {names[1]} of the type {scale_dtype} with "
                           f"{blocks} scales for it are no format: fp8, fp6, fp4 or int8 codes with an e8m0 scale for "
                           "every 32 (fp4: or 16), or fp4 codes with an e4m3 scale for every 16")

    def matrix(self, index: tuple[int, ...] | None) -> Matrix:
        """The matrix at a place of the leading axes; None: all of them, as a batch or as one."""
        codes, scales = self.codes, self.scales
        if index is not None:
            at = tuple(i if size > 1 else 0 for i, size in zip(index[len(index) - len(self.lead):], self.lead))
            codes, scales = codes[at], scales[at]
        elif len(self.lead) == 1:
            codes, scales = (codes[0], scales[0]) if self.lead[0] == 1 else (codes, scales)
        shape = (*codes.shape[:-1], self.k)
        return from_parts(codes, scales, self.format, packing=self.packing, shape=shape)


def _broadcast(leads: list[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(map(len, leads))
    padded = [(1,) * (rank - len(lead)) + lead for lead in leads]
    result = []
    for sizes in zip(*padded):
        size = max(sizes) if 0 not in sizes else 0
        if any(s not in (1, size) for s in sizes):
            raise InvalidError(f"leading dimensions {', '.join(map(str, leads))} do not broadcast")
        result.append(size)
    return tuple(result)


def mma_scaled(x: Array, x_scale: Array, y: Array, y_scale: Array, acc: Array = None) -> Array:
    """acc + (x * x_scale) @ (y * y_scale), each scale serving V elements along K.

    x        (..., M, K); x_scale (..., M, K / V)
    y        (..., K, N); y_scale (..., K / V, N)
    acc      (..., M, N), fp32; None: 0
    Leading dimensions broadcast, as in NumPy.  Codes: float8_e4m3fn, float8_e5m2, float6_e2m3fn, float6_e3m2fn, int8
    with V = 32 and scales of float8_e8m0fnu (or uint8); float4_e2m1fn (float4_e2m1fn_x2: K / 2 entries along K) with V
    = 32 or 16 and these scales, or V = 16 and scales of float8_e4m3fn (NVFP4).
    Returns a new fp32 array (..., M, N); every product is exact, sums are fp32.
    y is read as it lies where one of its axes runs without gaps: K (a transposed view of weights N x K), or N, which is
    MN-major.  Any other y is copied once, as is float4_e2m1fn_x2 along N, whose bytes hold two codes along K; y_scale
    is copied unless K runs without gaps."""
    of_x, of_y = _Operand(x, x_scale, ("x", "x_scale"), False), _Operand(y, y_scale, ("y", "y_scale"), True)
    if of_x.k != of_y.k:
        raise InvalidError(f"y has K = {of_y.k}, x has K = {of_x.k}")
    leads = [of_x.lead, of_y.lead]
    of_acc = None
    if acc is not None:
        of_acc = _arrays.view(acc, "acc")
        if of_acc.dtype != "float32" or of_acc.shape[-2:] != (of_x.rows, of_y.rows):
            raise InvalidError(f"acc has the type {of_acc.dtype} and the shape {of_acc.shape}: float32 (..., "
                               f"{of_x.rows}, {of_y.rows})")
        leads.append(of_acc.shape[:-2])
    lead = _broadcast(leads)
    first = _arrays.view(of_x.codes, "x")
    out = _arrays.empty(first.library, first.device, (*lead, of_x.rows, of_y.rows), "float32")
    if len(lead) <= 1 and 0 not in lead and all(len(one) == len(lead) for one in leads) and _one_batch(leads):
        matmul(of_x.matrix(None), of_y.matrix(None), out=_squeezed(out, lead), c=_squeezed(acc, lead))
        return out
    for index in itertools.product(*map(range, lead)):
        c: Any = None
        if of_acc is not None:
            of_lead = of_acc.shape[:-2]
            c = acc[tuple(i if size > 1 else 0 for i, size in zip(index[len(index) - len(of_lead):], of_lead))]
        matmul(of_x.matrix(index), of_y.matrix(index), out=out[index], c=c)
    return out


def _one_batch(leads: list[tuple[int, ...]]) -> bool:
    """Whether one product serves: no axis, or one that an operand has."""
    return leads[0] == () or max(leads[0][0], leads[1][0]) == max(lead[0] for lead in leads)


def _squeezed(x: Array, lead: tuple[int, ...]) -> Array:
    """A batch of one as one matrix."""
    return x[0] if x is not None and lead == (1,) else x

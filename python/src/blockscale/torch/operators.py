"""torch.ops.blockscale.*: the library's calls as operators of PyTorch.

They have fake implementations, so torch.compile takes them into one graph and allocates for them; they run in PyTorch's
current stream, take results and workspaces from PyTorch's allocator and wait for nothing, so that CUDA graphs capture
them.  Under torch.autocast a product casts an operand of fp32 numbers to autocast's type.  They have no gradients:
blockscale.torch.training has layers that do.

    quantize(x, format, ...) -> (codes, scales, tensor_scale)
    quantize_both(x, format, column_format, ...) -> rows' three tensors, columns' three tensors
    dequantize(codes, scales, format, ...) -> numbers
    matmul(a, a_scales, b, b_scales, ...) -> D = alpha A B^T + beta C, with bias, activation and gate
    matmul_grouped(a, a_scales, b, b_scales, group_rows, ...) -> D, rows of each group times a matrix of its own
    pack(b, b_scales, ...) -> panels that matmul and matmul_grouped take as b_panels
    unpack(panels, b, b_scales, ...) -> (codes, scales) of panels, in the shapes and types of b and b_scales; GPUs alone
    convert_scales(scales, rows, columns, from_layout, to_layout) -> scales

How codes and scales lie in tensors: blockscale.torch._tensors.  In a place of a tensor that there is none of, operators
return one without elements, and take such a tensor as None.  `out_dtype` absent is the type of A's numbers, or bf16
where A is quantized."""
from __future__ import annotations

import functools
from typing import Any, Callable

import torch
from torch import Tensor

from .._context import context
from .._errors import InvalidError, check, number_of
from .._library import NONFINITES, NULL, PRESETS, RECIPES, ROUNDINGS, Format, ffi, lib
from . import _plans, _tensors, _threads
from ._plans import Epilogue
from ._tensors import given, parts

_Library: Any = torch.library.Library
library = _Library("blockscale", "FRAGMENT")

_MATMUL_ARGUMENTS = (
    '*, str a_format="", str b_format="", Tensor? a_tensor_scale=None, Tensor? b_tensor_scale=None, '
    'str a_layout="linear", str b_layout="linear", str a_packing="default", str b_packing="default", '
    'bool a_divides=False, bool b_divides=False, SymInt columns=0, Tensor? alpha=None, str alpha_per="", '
    'Tensor? beta=None, Tensor? c=None, Tensor? bias=None, str bias_per="column", str activation="none", '
    'str gate="none", ScalarType? out_dtype=None, str compute="exact", Tensor? b_panels=None')

_QUANTIZE_ARGUMENTS = (
    '*, str layout="linear", str recipe="default", Tensor? tensor_scale=None, bool? compute_tensor_scale=None, '
    'bool divides=False, str rounding="nearest_even", int seed=0, str nonfinite="propagate", ')

library.define(f'quantize(Tensor x, str format, {_QUANTIZE_ARGUMENTS}int block_rows=0, str preset="none", '
               'float clamp_low=0, float clamp_high=0, int smallest_scale=0, bool saturate=True) '
               '-> (Tensor, Tensor, Tensor)', tags=(torch.Tag.pt2_compliant_tag,))
library.define(f'quantize_both(Tensor x, str format, str column_format="", {_QUANTIZE_ARGUMENTS[:-2]}) '
               '-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)', tags=(torch.Tag.pt2_compliant_tag,))
library.define('dequantize(Tensor codes, Tensor? scales, str format, *, Tensor? tensor_scale=None, '
               'bool divides=False, str layout="linear", str packing="default", SymInt columns=0, '
               'ScalarType dtype=float) -> Tensor', tags=(torch.Tag.pt2_compliant_tag,))
library.define(f"matmul(Tensor a, Tensor? a_scales, Tensor b, Tensor? b_scales, {_MATMUL_ARGUMENTS}) -> Tensor",
               tags=(torch.Tag.pt2_compliant_tag,))
library.define("matmul_grouped(Tensor a, Tensor? a_scales, Tensor b, Tensor? b_scales, Tensor group_rows, "
               f"{_MATMUL_ARGUMENTS}) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
library.define('pack(Tensor b, Tensor? b_scales, str b_format="", *, str a_format="bf16", int rows=1, '
               'Tensor? b_tensor_scale=None, str b_layout="linear", str b_packing="default", bool b_divides=False, '
               'SymInt columns=0, str gate="none", bool grouped=False) -> Tensor', tags=(torch.Tag.pt2_compliant_tag,))
library.define('unpack(Tensor b_panels, Tensor b, Tensor? b_scales, str b_format="", *, str a_format="bf16", '
               'int rows=1, str gate="none", bool grouped=False) -> (Tensor, Tensor)',
               tags=(torch.Tag.pt2_compliant_tag,))
library.define("convert_scales(Tensor scales, SymInt rows, SymInt columns, str from_layout, str to_layout) -> Tensor",
               tags=(torch.Tag.pt2_compliant_tag,))


def _implement(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        library.impl(name, function, "CPU")
        library.impl(name, function, "CUDA")
        return function
    return register


def _fake(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        torch.library.register_fake(f"blockscale::{name}", function, lib=library)
        return function
    return register


# Quantizing -----------------------------------------------------------------------------------------------------------

def _up(number: Any, multiple: int) -> Any:
    return (number + multiple - 1) // multiple * multiple


def scales_shape(form: Format, layout: str, batch: tuple[Any, ...], rows: Any, columns: Any) -> tuple[Any, ...]:
    """The shape of a tensor of scales: (rows, blocks) where the layout is linear, else (bytes,); the batch in front.
    No scales: (0,).  rows and columns may be symbols where the layout is linear, 128x4 or 8x4."""
    if form.block == 0:
        return (0,)
    blocks = (columns + form.block - 1) // form.block
    if layout == "linear":
        return (*batch, rows, blocks)
    if layout in ("128x4", "8x4"):
        return (*batch, _up(rows, 128 if layout == "128x4" else 8) * _up(blocks, 4))
    target = ffi.new("bsm_scale_layout *")
    _tensors.scale_layout(layout, target)
    size = ffi.new("int64_t *")
    check(lib.bsm_scale_bytes(target, int(rows), int(blocks), size))
    return (*batch, size[0])


def _empty_matrix(x: Tensor, form: Format, layout: str, transposed: bool, tensor_scale: bool) -> list[Tensor]:
    """Tensors for x's codes, scales and tensor scale, or for those of its transpose."""
    rows, columns = (x.shape[-1], x.shape[-2]) if transposed else (x.shape[-2], x.shape[-1])
    batch = tuple(x.shape[:-2])
    dtype = _tensors.PLAIN_DTYPES.get(form.name, torch.uint8)
    codes = x.new_empty((*batch, rows, _tensors.row_units(form, "default", columns)), dtype=dtype)
    scales = x.new_empty(scales_shape(form, layout, batch, rows, columns), dtype=torch.uint8)
    return [codes, scales, x.new_empty((1 if tensor_scale else 0,), dtype=torch.float32)]


def _computes(form: Format, scale: Tensor | None, compute: bool | None) -> bool:
    """NVFP4 has a computed tensor scale unless one is given or refused."""
    if scale is not None and compute:
        raise InvalidError("tensor_scale is given and compute_tensor_scale is true: one of them")
    return (form.scale == "ue4m3" and scale is None) if compute is None else compute


def _destination(made: list[Tensor], form: Format, layout: str, divides: bool, columns: int) -> Any:
    target = ffi.new("bsm_matrix *")
    p = parts(made[0], made[1], made[2], form.name, layout, divides=divides)
    _tensors.describe(p, target, columns, "codes")
    _tensors.set_pointers(p, target)
    return target


def _options(compute: bool, recipe: str, rounding: str, seed: int, nonfinite: str) -> Any:
    options = ffi.new("bsm_quantize_options *")
    options.struct_size = ffi.sizeof("bsm_quantize_options")
    options.recipe = number_of(RECIPES, recipe, "recipe")
    options.rounding = number_of(ROUNDINGS, rounding, "rounding")
    options.seed = seed & 0xffffffffffffffff
    options.nonfinite = number_of(NONFINITES, nonfinite, "nonfinite")
    options.tensor_scale = lib.BSM_TENSOR_SCALE_COMPUTED if compute else lib.BSM_TENSOR_SCALE_GIVEN
    return options


def _context_of(x: Tensor, others: list[tuple[str, Tensor | None]]) -> Any:
    """The context for work in the current stream of x's device."""
    device = _tensors.same_device([("x", x), *others])
    _plans.refuse_first_in_capture(device)
    _threads.follow(device)
    return context(device, _tensors.stream_of(device))


@_implement("quantize")
def _quantize(x: Tensor, form: str, *, layout: str = "linear", recipe: str = "default",
              tensor_scale: Tensor | None = None, compute_tensor_scale: bool | None = None, divides: bool = False,
              rounding: str = "nearest_even", seed: int = 0, nonfinite: str = "propagate", block_rows: int = 0,
              preset: str = "none", clamp_low: float = 0, clamp_high: float = 0, smallest_scale: int = 0,
              saturate: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    f = _tensors.format_of(form)
    tensor_scale = given(tensor_scale)
    compute = _computes(f, tensor_scale, compute_tensor_scale)
    where = _context_of(x, [("tensor_scale", tensor_scale)])
    made = _empty_matrix(x, f, layout, False, compute or tensor_scale is not None)
    if tensor_scale is not None:
        if tensor_scale.numel() != 1:
            raise InvalidError(f"tensor_scale has {tensor_scale.numel()} elements: it is one torch.float32")
        made[2].copy_(tensor_scale.reshape(1))
    options = _options(compute, recipe, rounding, seed, nonfinite)
    options.block_rows, options.preset = block_rows, number_of(PRESETS, preset, "preset")
    options.clamp_low, options.clamp_high = clamp_low, clamp_high
    options.smallest_scale, options.no_saturate = smallest_scale, not saturate
    source = _tensors.describe_reals(x, "x")
    check(lib.bsm_quantize(where, source, options, _destination(made, f, layout, divides, x.shape[-1]), NULL))
    return made[0], made[1], made[2]


@_fake("quantize")
def _quantize_fake(x: Tensor, form: str, *, layout: str = "linear", tensor_scale: Tensor | None = None,
                   compute_tensor_scale: bool | None = None, **_: Any) -> tuple[Tensor, Tensor, Tensor]:
    f = _tensors.format_of(form)
    scaled = _computes(f, tensor_scale, compute_tensor_scale) or tensor_scale is not None
    made = _empty_matrix(x, f, layout, False, scaled)
    return made[0], made[1], made[2]


@_implement("quantize_both")
def _quantize_both(x: Tensor, form: str, column_form: str = "", *, layout: str = "linear", recipe: str = "default",
                   tensor_scale: Tensor | None = None, compute_tensor_scale: bool | None = None, divides: bool = False,
                   rounding: str = "nearest_even", seed: int = 0, nonfinite: str = "propagate"
                   ) -> tuple[Tensor, ...]:
    formats = [_tensors.format_of(form), _tensors.format_of(column_form or form, "column_format")]
    tensor_scale = given(tensor_scale)
    compute = [_computes(f, tensor_scale, compute_tensor_scale) for f in formats]
    if compute[0] != compute[1]:
        raise InvalidError(f"format={form!r} and column_format={column_form!r}: one of them computes a tensor scale, "
                           "the other has none; options go for both")
    where = _context_of(x, [("tensor_scale", tensor_scale)])
    source = _tensors.describe_reals(x, "x")
    made, targets = [], []
    for transposed, f in zip((False, True), formats):
        tensors = _empty_matrix(x, f, layout, transposed, compute[0] or tensor_scale is not None)
        if tensor_scale is not None:
            tensors[2].copy_(tensor_scale.reshape(1))
        targets.append(_destination(tensors, f, layout, divides, x.shape[-2 if transposed else -1]))
        made += tensors
    check(lib.bsm_quantize_both(where, source, _options(compute[0], recipe, rounding, seed, nonfinite), targets[0],
                                targets[1]))
    return tuple(made)


@_fake("quantize_both")
def _quantize_both_fake(x: Tensor, form: str, column_form: str = "", *, layout: str = "linear",
                        tensor_scale: Tensor | None = None, compute_tensor_scale: bool | None = None, **_: Any
                        ) -> tuple[Tensor, ...]:
    made: list[Tensor] = []
    for transposed, name in ((False, form), (True, column_form or form)):
        f = _tensors.format_of(name)
        scaled = _computes(f, tensor_scale, compute_tensor_scale) or tensor_scale is not None
        made += _empty_matrix(x, f, layout, transposed, scaled)
    return tuple(made)


def _dequantized_shape(codes: Tensor, form: str, packing: str, columns: Any) -> tuple[Any, ...]:
    f = _tensors.format_of(form)
    return (*codes.shape[:-1], columns if columns else _tensors.columns_of(f, packing, codes.shape[-1]))


@_implement("dequantize")
def _dequantize(codes: Tensor, scales: Tensor | None, form: str, *, tensor_scale: Tensor | None = None,
                divides: bool = False, layout: str = "linear", packing: str = "default", columns: int = 0,
                dtype: torch.dtype = torch.float32) -> Tensor:
    where = _context_of(codes, [("scales", scales), ("tensor_scale", tensor_scale)])
    p = parts(codes, scales, tensor_scale, form, layout, packing, divides, "codes")
    source = ffi.new("bsm_matrix *")
    _tensors.describe(p, source, columns, "codes")
    _tensors.set_pointers(p, source)
    out = codes.new_empty(_dequantized_shape(codes, form, packing, columns), dtype=dtype)
    check(lib.bsm_dequantize(where, source, _tensors.describe_reals(out, "out")))
    return out


@_fake("dequantize")
def _dequantize_fake(codes: Tensor, scales: Tensor | None, form: str, *, packing: str = "default", columns: int = 0,
                     dtype: torch.dtype = torch.float32, **_: Any) -> Tensor:
    return codes.new_empty(_dequantized_shape(codes, form, packing, columns), dtype=dtype)


# Products -------------------------------------------------------------------------------------------------------------

def _out_dtype(a: Tensor, a_format: str, dtype: torch.dtype | None) -> torch.dtype:
    if dtype is not None:
        return dtype
    return a.dtype if a.dtype in _tensors.REAL_FORMATS and not a_format.startswith(("mx", "nv")) else torch.bfloat16


def _product(a: Tensor, a_scales: Tensor | None, b: Tensor, b_scales: Tensor | None, group_rows: Tensor | None, *,
             a_format: str = "", b_format: str = "", a_tensor_scale: Tensor | None = None,
             b_tensor_scale: Tensor | None = None, a_layout: str = "linear", b_layout: str = "linear",
             a_packing: str = "default", b_packing: str = "default", a_divides: bool = False, b_divides: bool = False,
             columns: int = 0, alpha: Tensor | None = None, alpha_per: str = "", beta: Tensor | None = None,
             c: Tensor | None = None, bias: Tensor | None = None, bias_per: str = "column", activation: str = "none",
             gate: str = "none", out_dtype: torch.dtype | None = None, compute: str = "exact",
             b_panels: Tensor | None = None) -> Tensor:
    left = parts(a, a_scales, a_tensor_scale, a_format, a_layout, a_packing, a_divides, "a")
    right = parts(b, b_scales, b_tensor_scale, b_format, b_layout, b_packing, b_divides, "b")
    e = Epilogue(_out_dtype(a, a_format, out_dtype), given(alpha), given(beta), given(c), given(bias), bias_per,
                 activation, gate, compute, alpha_per)
    panels = given(b_panels)
    if not _tensors.on_one_device(a, b, left.scales, right.scales, left.tensor_scale, right.tensor_scale, e.alpha,
                                  e.beta, e.c, e.bias, panels, group_rows):
        _tensors.same_device([("a", a), ("b", b), ("a_scales", left.scales), ("b_scales", right.scales),
                              ("a_tensor_scale", left.tensor_scale), ("b_tensor_scale", right.tensor_scale),
                              ("alpha", e.alpha), ("beta", e.beta), ("c", e.c), ("bias", e.bias),
                              ("b_panels", panels), ("group_rows", group_rows)])
    device = _tensors.device_of(a)
    if _tensors.has_no_bytes(b):
        if panels is None or not _plans.is_current(panels, b):
            raise InvalidError("b has no codes, and b_panels is absent, or of another weight")
        right = _tensors.alone(right)
    plan = _plans.find(device, left, right, e, columns, 0 if group_rows is None else b.shape[0])
    if right.alone and panels is not None and panels.numel() != plan.panels_bytes:
        raise InvalidError(f"b_panels has {panels.numel()} bytes: of b, which has no codes, there are "
                           f"{plan.panels_bytes}")
    out = torch.empty(_plans.output_shape(a, b, gate, group_rows is not None), dtype=e.out_dtype, device=a.device)
    if panels is not None and (panels.numel() != plan.panels_bytes or not _plans.is_current(panels, b)):
        panels = None
    plan.run(left, right, e, out, group_rows, panels)
    return out


@_implement("matmul")
def _matmul(a: Tensor, a_scales: Tensor | None, b: Tensor, b_scales: Tensor | None, **arguments: Any) -> Tensor:
    return _product(a, a_scales, b, b_scales, None, **arguments)


@_implement("matmul_grouped")
def _matmul_grouped(a: Tensor, a_scales: Tensor | None, b: Tensor, b_scales: Tensor | None, group_rows: Tensor,
                    **arguments: Any) -> Tensor:
    if group_rows.dtype is not torch.int64 or group_rows.dim() != 1 or not group_rows.is_contiguous():
        raise InvalidError(f"group_rows is of {group_rows.dtype} and has {group_rows.dim()} dimensions: it is a "
                           "contiguous vector of torch.int64")
    if a.dim() != 2 or b.dim() != 3 or b.shape[0] != group_rows.shape[0]:
        raise InvalidError(f"a has the shape {tuple(a.shape)}, b {tuple(b.shape)}, group_rows "
                           f"{tuple(group_rows.shape)}: a has the rows of all groups, and b a matrix for each")
    return _product(a, a_scales, b, b_scales, group_rows, **arguments)


@_fake("matmul")
def _matmul_fake(a: Tensor, a_scales: Tensor | None, b: Tensor, b_scales: Tensor | None, *, a_format: str = "",
                 gate: str = "none", out_dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    return a.new_empty(_plans.output_shape(a, b, gate, False), dtype=_out_dtype(a, a_format, out_dtype))


@_fake("matmul_grouped")
def _matmul_grouped_fake(a: Tensor, a_scales: Tensor | None, b: Tensor, b_scales: Tensor | None, group_rows: Tensor, *,
                         a_format: str = "", gate: str = "none", out_dtype: torch.dtype | None = None, **_: Any
                         ) -> Tensor:
    return a.new_empty(_plans.output_shape(a, b, gate, True), dtype=_out_dtype(a, a_format, out_dtype))


@functools.lru_cache(maxsize=None)
def _autocast_keys(kind: str) -> Any:
    key = torch._C.DispatchKey.AutocastCPU if kind == "cpu" else torch._C.DispatchKey.AutocastCUDA
    return torch._C.DispatchKeySet(key)


def _register_autocast(name: str, kind: str) -> None:
    operator: Any = getattr(torch.ops.blockscale, name).default

    def cast(a: Tensor, *rest: Any, **arguments: Any) -> Tensor:
        with torch._C._ExcludeDispatchKeyGuard(_autocast_keys(kind)):
            if a.dtype is torch.float32:
                a = a.to(torch.get_autocast_dtype(kind))
            result: Tensor = operator(a, *rest, **arguments)
            return result

    library.impl(name, cast, f"Autocast{kind.upper()}")


for _name in ("matmul", "matmul_grouped"):
    for _kind in ("cpu", "cuda"):
        _register_autocast(_name, _kind)


# Prepacked weights, layouts -------------------------------------------------------------------------------------------

@_implement("pack")
def _pack(b: Tensor, b_scales: Tensor | None, b_format: str = "", *, a_format: str = "bf16", rows: int = 1,
          b_tensor_scale: Tensor | None = None, b_layout: str = "linear", b_packing: str = "default",
          b_divides: bool = False, columns: int = 0, gate: str = "none", grouped: bool = False) -> Tensor:
    right = parts(b, b_scales, b_tensor_scale, b_format, b_layout, b_packing, b_divides, "b")
    device = _tensors.same_device([("b", b), ("b_scales", right.scales)])
    count = columns or _tensors.columns_of(_tensors.format_of(right.format), b_packing, b.shape[-1])
    a = _template(a_format, rows, count, b, grouped)
    groups = b.shape[0] if grouped else 0
    activation = "silu" if gate != "none" else "none"
    plan = _plans.find(device, a, right, Epilogue(torch.bfloat16, gate=gate, activation=activation), columns, groups)
    panels = torch.zeros(plan.panels_bytes, dtype=torch.uint8, device=b.device)    # gaps between panels, too
    if plan.panels_bytes > 0:
        plan.pack(a, right, panels)
        _plans.remember(panels, b)
    return panels


def _template(a_format: str, rows: int, columns: int, b: Tensor, grouped: bool) -> _tensors.Parts:
    """An A of that format and shape.  Plans and packing read its description alone."""
    form = _tensors.format_of(a_format, "a_format")
    batch = (b.shape[0],) if b.dim() == 3 and not grouped else ()
    dtype = _tensors.PLAIN_DTYPES.get(form.name, torch.uint8)
    codes = torch.empty((*batch, rows, _tensors.row_units(form, "default", columns)), dtype=dtype, device=b.device)
    scales = torch.empty(scales_shape(form, "linear", batch, rows, columns), dtype=torch.uint8, device=b.device)
    return parts(codes, scales, None, form.name)


@_implement("unpack")
def _unpack(b_panels: Tensor, b: Tensor, b_scales: Tensor | None, b_format: str = "", *, a_format: str = "bf16",
            rows: int = 1, gate: str = "none", grouped: bool = False) -> tuple[Tensor, Tensor]:
    device = _tensors.same_device([("b_panels", b_panels), ("b", b)])
    codes = torch.empty(b.shape, dtype=b.dtype, device=b.device)
    if b_scales is None:
        raise InvalidError("b_scales is absent: panels that can be unpacked are of formats with scales of blocks")
    scales = torch.empty(b_scales.shape, dtype=b_scales.dtype, device=b.device)
    made = parts(codes, scales, None, b_format, argument="b")
    a = _template(a_format, rows, _tensors.columns_of(_tensors.format_of(made.format), "default", b.shape[-1]), b,
                  grouped)
    activation = "silu" if gate != "none" else "none"
    plan = _plans.find(device, a, made, Epilogue(torch.bfloat16, gate=gate, activation=activation), 0,
                       b.shape[0] if grouped else 0)
    if plan.panels_bytes not in (0, b_panels.numel()):
        raise InvalidError(f"b_panels has {b_panels.numel()} bytes: of a matrix of b's shape there are "
                           f"{plan.panels_bytes}")
    plan.unpack(a, made, b_panels)
    return codes, scales


@_fake("unpack")
def _unpack_fake(b_panels: Tensor, b: Tensor, b_scales: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
    return b_panels.new_empty(b.shape, dtype=b.dtype), b_panels.new_empty(b_scales.shape, dtype=b_scales.dtype)


@_fake("pack")
def _pack_fake(b: Tensor, *_: Any, **__: Any) -> Tensor:
    return b.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=torch.uint8)


@_implement("convert_scales")
def _convert_scales(scales: Tensor, rows: int, columns: int, from_layout: str, to_layout: str) -> Tensor:
    where = _context_of(scales, [])
    if not scales.is_contiguous():
        raise InvalidError(f"scales has the strides {tuple(scales.stride())}: they lie one behind the other")
    out = _converted(scales, rows, columns, to_layout)
    described = []
    for tensor, name in ((scales, from_layout), (out, to_layout)):
        target = ffi.new("bsm_scales *")
        target.rows, target.columns = rows, columns
        target.data = ffi.cast("void *", tensor.data_ptr())
        _tensors.scale_layout(name, ffi.addressof(target, "layout"))
        size = ffi.new("int64_t *")
        check(lib.bsm_scale_bytes(ffi.addressof(target, "layout"), rows, columns, size))
        if size[0] != tensor.numel():
            raise InvalidError(f"scales has {tensor.numel()} bytes: {rows} x {columns} in the layout {name} has "
                               f"{size[0]}")
        described.append(target)
    check(lib.bsm_scales_convert_on(where, described[0], described[1]))
    return out


def _converted(scales: Tensor, rows: Any, columns: Any, layout: str) -> Tensor:
    if layout == "linear":
        return scales.new_empty((rows, columns), dtype=torch.uint8)
    if layout in ("128x4", "8x4"):
        return scales.new_empty((_up(rows, 128 if layout == "128x4" else 8) * _up(columns, 4),), dtype=torch.uint8)
    target = ffi.new("bsm_scale_layout *")
    _tensors.scale_layout(layout, target)
    size = ffi.new("int64_t *")
    check(lib.bsm_scale_bytes(target, int(rows), int(columns), size))
    return scales.new_empty((size[0],), dtype=torch.uint8)


@_fake("convert_scales")
def _convert_scales_fake(scales: Tensor, rows: int, columns: int, from_layout: str, to_layout: str) -> Tensor:
    return _converted(scales, rows, columns, to_layout)

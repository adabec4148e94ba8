"""A product's description for the C library, made of a caller's arrays: what matmul, plan and explain share."""
from __future__ import annotations

import collections
import threading
from typing import Any

import numpy as np

from . import _arrays, _context
from ._arrays import Array, View, where
from ._errors import InvalidError, number_of
from ._library import (ACTIVATIONS, COMPUTES, FORMATS, GATES, NONFINITES, NULL, ORDERS, PERS, REALS, RECIPES, ffi, lib)
from .matrix import Matrix, allocate, format_of, plain_of_view, tensor_scale_view

_MATRIX_BYTES = ffi.sizeof("bsm_matrix")
_PRODUCT_BYTES = ffi.sizeof("bsm_matmul")


def operand(x: Any, name: str) -> Matrix:
    """A or B: a Matrix as it is, an array as one of plain numbers."""
    if isinstance(x, Matrix):
        return x
    return plain_of_view(_arrays.view(x, name), name)


def capturing(library: str) -> bool:
    """Whether the current stream is being captured into a graph."""
    return library == "torch" and bool(_arrays.torch().cuda.is_current_stream_capturing())


# Numbers like alpha lie in device memory.  Those that were used last are kept, by the stream that wrote them.
_scalars: collections.OrderedDict[tuple[Any, ...], Array] = collections.OrderedDict()
_scalars_lock = threading.Lock()
_MOST_SCALARS = 256


def device_scalar(library: str, device: tuple[str, int], stream: int, value: float) -> Array:
    """An fp32 array of one element on a GPU with this value.  While a graph is captured it is a new one, which the
    graph fills each time."""
    if capturing(library):
        return _arrays.fp32_scalar(library, device, value, stream)
    key = (library, device, stream, np.float32(value).tobytes())
    with _scalars_lock:
        found = _scalars.get(key)
        if found is None:
            found = _scalars[key] = _arrays.fp32_scalar(library, device, value, stream)
            if len(_scalars) > _MOST_SCALARS:
                _scalars.popitem(last=False)
        else:
            _scalars.move_to_end(key)
    return found


def check_device(view: View, device: tuple[str, int], name: str) -> None:
    """All arrays of a product lie on one device."""
    if view.device != device:
        raise InvalidError(f"{name} lies on {where(view.device)}, a on {where(device)}")


class Description:
    """A bsm_matmul with everything that it points to."""

    __slots__ = ("a", "b", "c", "out", "product", "device", "library", "out_type", "out_shape",
                 "stream", "keep", "scalars", "m", "n", "batch", "out_options", "_out_c")

    def __init__(self, a: Any, b: Any) -> None:
        self.a: Any = operand(a, "a")
        self.b: Any = operand(b, "b")
        if self.a.device != self.b.device:
            raise InvalidError(f"b lies on {where(self.b.device)}, a on {where(self.a.device)}")
        if self.a.columns != self.b.columns:
            raise InvalidError(f"b has {self.b.columns} columns, a has {self.a.columns}: both are K, the axis that the "
                               "product sums over (a is M x K, b is N x K)")
        self.device, self.library = self.a.device, self.a.library
        self.stream = 0
        if self.device[0] == "cuda":
            self.stream = _context.current_stream(self.library, self.device[1], self.a._stream)
        self.product = p = ffi.new("bsm_matmul *")
        p.struct_size = _PRODUCT_BYTES
        p.a, p.b = self.a._c, self.b._c
        p.stream = _context.pointer_or_null(self.stream)
        self.m, self.n = self.a.rows, self.b.rows
        self.batch = max(self.a.batch, self.b.batch)
        self.keep: list[object] = []
        self.scalars = ffi.new("float[2]")
        self.c: Matrix | None = None
        self.out: Any = None

    def again(self, product: Any) -> "Description":
        """A description that changes another struct of the same product."""
        it = object.__new__(Description)
        for name in ("a", "b", "c", "device", "library", "stream", "m", "n", "batch", "out_shape",
                     "out_type"):
            setattr(it, name, getattr(self, name))
        it.product, it.keep, it.scalars = product, [], ffi.new("float[2]")
        return it

    def let_go(self) -> None:
        """Keeps no array alive any more: of a plan that is kept for later operands."""
        p = self.product
        self.keep = [ffi.new("bsm_matrix *", x[0]) for x in (p.a, p.b, p.d)]
        p.a, p.b, p.d = self.keep
        self.a = self.b = self.c = self.out = None

    # What a product has besides its operands --------------------------------------------------------------------------

    def set_form(self, activation: str, gate: str, compute: str, order: str) -> None:
        """Everything that is a name."""
        p = self.product
        p.activation = number_of(ACTIVATIONS, activation, "activation")
        p.gate = number_of(GATES, gate, "gate")
        p.compute = number_of(COMPUTES, compute, "compute")
        p.order = number_of(ORDERS, order, "order")

    def set_groups(self, groups: Any, group_columns: Any) -> None:
        """Rows of each group, b having one matrix for each; or columns of each, D having one matrix for each."""
        if group_columns is not None:
            if groups is not None:
                raise InvalidError("groups and group_columns are given: groups are along the rows of a or along K")
            listed = isinstance(group_columns, (list, tuple))
            shape = (len(group_columns),) if listed else _arrays.view(group_columns, "group_columns").shape
            count = _arrays.elements(shape)
            self.product.group_columns = ffi.cast("int64_t *", self.group_sizes(group_columns, "group_columns", count))
            self.product.groups = self.batch = count
            return
        if groups is None:
            if self.a.batch != self.b.batch and 1 not in (self.a.batch, self.b.batch):
                raise InvalidError(f"a has a batch of {self.a.batch}, b of {self.b.batch}: equal, or one of them is 1")
            return
        self.product.groups = self.b.batch
        self.product.group_rows = ffi.cast("int64_t *", self.group_sizes(groups, "groups", self.b.batch))
        self.batch = 1

    def group_sizes(self, groups: Any, name: str, count: int) -> int:
        """The address of the rows, or columns, of each group."""
        if isinstance(groups, (list, tuple)):
            host = np.array(groups, np.int64)
            groups = host
            if self.device[0] == "cuda":
                groups = _int64_on_gpu(self.library, self.device, host, self.stream)
        found = _arrays.view(groups, name)
        check_device(found, self.device, name)
        if found.dtype != "int64" or found.shape != (count,) or not found.contiguous():
            raise InvalidError(f"{name} has the type {found.dtype} and the shape {found.shape}: one int64 number for "
                               f"each of {count} groups, one behind the other")
        self.keep.append(found.owner)
        return found.pointer

    def set_alpha(self, alpha: Any, per: str | None) -> None:
        """The factor of the product: a number, or an fp32 array that broadcasts against the product."""
        if alpha is None:
            return
        p = self.product
        p.alpha = ffi.cast("float *", self.factor(alpha, 0, "alpha", per))

    def factor(self, value: Any, slot: int, name: str, per: str | None = None) -> int:
        """The address of alpha (slot 0) or beta (slot 1)."""
        if isinstance(value, (int, float, np.number)):
            if self.device[0] == "cpu":
                self.scalars[slot] = float(value)
                return int(ffi.cast("uintptr_t", self.scalars)) + 4 * slot
            value = device_scalar(self.library, self.device, self.stream, float(value))
        found = _arrays.view(value, name)
        check_device(found, self.device, name)
        if found.dtype != "float32" or not found.contiguous():
            raise InvalidError(f"{name} has the type {found.dtype} and strides {tuple(found.strides)}: float32 "
                               "numbers, one behind the other")
        if slot == 0:
            self.product.alpha_per = self._per(found.shape, per, name)
        elif _arrays.elements(found.shape) != 1:
            raise InvalidError(f"{name} has the shape {tuple(found.shape)}: one number")
        self.keep.append(found.owner)
        return found.pointer

    def _per(self, shape: tuple[int, ...], per: str | None, name: str) -> int:
        """What a vector is indexed by: named, or read from its shape as NumPy broadcasts."""
        batch = self.product.groups or self.batch
        count = _arrays.elements(shape)
        sizes = {"tensor": 1, "row": self.m, "column": self.n, "batch": batch}
        if per is None:
            if count == 1:
                per = "tensor"
            elif shape in ((self.n,), (1, self.n)):
                per = "column"
            elif shape == (self.m, 1):
                per = "row"
            elif shape == (batch, 1, 1):
                per = "batch"
            else:
                raise InvalidError(f"{name} has the shape {tuple(shape)}: one number, ({self.n},) or (1, {self.n}) for "
                                   f"the columns, ({self.m}, 1) for the rows, or ({batch}, 1, 1) for the batch; or "
                                   f"name {name}_per")
        number = number_of(PERS, per, f"{name}_per")
        if count != sizes[per]:
            raise InvalidError(f"{name} has {count} numbers: {name}_per={per!r} needs {sizes[per]}")
        return number

    def set_c(self, c: Any, beta: Any) -> None:
        """beta C, which is added; without beta it is C."""
        if c is not None:
            self.c = operand(c, "c")
            if self.c.device != self.device:
                raise InvalidError(f"c lies on {where(self.c.device)}, a on {where(self.device)}")
            self.product.c = self.c._c
            if beta is None:
                beta = 1.0
        if beta is not None:
            self.product.beta = ffi.cast("float *", self.factor(beta, 1, "beta"))

    def set_bias(self, bias: Any, per: str | None) -> None:
        """Numbers that are added to each row or column before the activation."""
        if bias is None:
            return
        p = self.product
        p.bias, p.bias_per, p.bias_batch_pitch, p.bias_type = self.bias(bias, per)

    def bias(self, bias: Any, per: str | None) -> tuple[Any, int, int, int]:
        """Pointer, index, pitch and type of a bias."""
        found = _arrays.view(bias, "bias")
        check_device(found, self.device, "bias")
        real = _arrays.REAL_OF.get(found.dtype)
        if real is None or real == "fp64":
            raise InvalidError(f"bias has the type {found.dtype}: use float32, bfloat16 or float16")
        batch = self.product.groups or self.batch
        shape, strides = found.shape, found.strides
        pitch = 0
        row = (self.m,) if per == "row" else (self.n,)
        if len(shape) > 1 and shape[0] == batch and batch > 1 and (len(shape) == 3 or shape[1:] == row):
            pitch, shape, strides = strides[0], shape[1:], strides[1:]
        if per is None:
            if shape in ((self.n,), (1, self.n)):
                per = "column"
            elif shape == (self.m, 1):
                per = "row"
            else:
                raise InvalidError(f"bias has the shape {tuple(found.shape)}: ({self.n},) for the columns or "
                                   f"({self.m}, 1) for the rows, with {batch} of them in front for a batch; or name "
                                   "bias_per")
        if per not in ("row", "column"):
            raise InvalidError(f'bias_per={per!r} is not known: use "row" or "column"')
        want = self.m if per == "row" else self.n
        inner = View(0, shape, strides, found.dtype, found.device, None, "")
        if _arrays.elements(shape) != want or not inner.contiguous():
            raise InvalidError(f"bias has the shape {tuple(found.shape)} and strides {tuple(found.strides)}: "
                               f"bias_per={per!r} needs {want} numbers, one behind the other")
        self.keep.append(found.owner)
        return ffi.cast("void *", found.pointer), PERS[per], pitch, REALS[real]

    def set_amax(self, amax: Any) -> None:
        """Where the largest magnitude of the result is written."""
        if amax is not None:
            self.product.amax = ffi.cast("float *", self.amax(amax))

    def amax(self, amax: Any) -> int:
        """The address of a float32 array of one element."""
        found = _arrays.view(amax, "amax")
        check_device(found, self.device, "amax")
        if found.dtype != "float32" or _arrays.elements(found.shape) != 1:
            raise InvalidError(f"amax has the type {found.dtype} and the shape {found.shape}: one float32 number")
        _arrays.check_writable(amax, "amax")
        self.keep.append(found.owner)
        return found.pointer

    # The result -------------------------------------------------------------------------------------------------------

    def set_out(self, out: Any, out_type: Any, recipe: str | None, layout: str, packing: str | None, tensor_scale: Any,
                saturate: bool, nonfinite: str, make: bool) -> None:
        """D: the caller's, or a new one.  Without `make` a plan gets an address that is never used."""
        p = self.product
        columns = self.n // 2 if p.gate != GATES["none"] else self.n
        if p.group_columns != NULL:
            batched = True
        else:
            batched = p.groups == 0 and (len(self.a.shape) == 3 or len(self.b.shape) == 3)
        self.out_shape = (self.batch, self.m, columns) if batched else (self.m, columns)
        p.d_recipe = number_of(RECIPES, "default" if recipe is None else recipe, "out_recipe")
        p.d_nonfinite = number_of(NONFINITES, nonfinite, "out_nonfinite")
        p.d_no_saturate = not saturate
        if out is None:
            self.out_type = out_type = self.default_type() if out_type is None else out_type
            self.out_options = (layout, packing, tensor_scale)
            out = self.new_out() if make else None
        elif isinstance(out, Matrix):
            self.out_type, self.out_options = out.format, (out.layout, out.packing, out.tensor_scale)
        else:
            self.out_type, self.out_options = _arrays.view(out, "out").dtype, (layout, packing, tensor_scale)
        self.out = out
        p.d = self._out_struct(out)

    def out_type_name(self) -> str:
        """The name of D's type where it is an array of numbers."""
        return _array_type(self.out_type)

    def default_type(self) -> str:
        """What D is made of when nobody says: bfloat16 on GPUs where the library has it, else float32."""
        return "bfloat16" if self.device[0] == "cuda" and self.library in ("torch", "jax") else "float32"

    def new_out(self) -> Any:
        """A new array, or Matrix, for D."""
        block = block_format(self.out_type)
        if block is None:
            return _arrays.empty(self.library, self.device, self.out_shape, _array_type(self.out_type), self.stream)
        layout, packing, tensor_scale = self.out_options
        scale = tensor_scale_view(tensor_scale, self.library, self.device, self.stream)
        return allocate(block, self.out_shape, layout, packing, False if scale is None else scale, False, self.library,
                        self.device, self.stream)

    def _out_struct(self, out: Any) -> Any:
        if out is None:
            return self._unwritten()
        if isinstance(out, Matrix):
            if out.device != self.device:
                raise InvalidError(f"out lies on {where(out.device)}, a on {where(self.device)}")
            if out.shape != self.out_shape:
                raise InvalidError(f"out has the shape {out.shape}: the product has {self.out_shape}")
            return out._c
        found = _arrays.view(out, "out")
        check_device(found, self.device, "out")
        _arrays.check_writable(out, "out")
        if found.shape != self.out_shape:
            raise InvalidError(f"out has the shape {found.shape}: the product has {self.out_shape}")
        d = plain_of_view(found, "out", operand=False)
        self.keep.append(d)
        return d._c

    def _unwritten(self) -> Any:
        """A description of D for a plan: as a new one would be, but at an address where nothing is."""
        block = block_format(self.out_type)
        if block is not None:
            d = self.new_out()           # small beside the product; its layout is the library's to know
            self.keep.append(d)
            return d._c
        c = ffi.new("bsm_matrix *")
        c.struct_size, c.format = _MATRIX_BYTES, FORMATS[_arrays.FORMAT_OF[_array_type(self.out_type)]].number
        c.rows, c.columns = self.out_shape[-2:]
        c.batch = self.out_shape[0] if len(self.out_shape) == 3 else 1
        c.data = ffi.cast("void *", 4096)
        self._out_c = c
        return c


def block_format(out_type: Any) -> Any:
    """The format of D if it is one of codes with scales, or of bytes; None for an array of numbers."""
    if not isinstance(out_type, str):
        return None
    number = lib.bsm_format_from_name(out_type.encode())
    form = None if number == lib.BSM_FORMAT_NONE else format_of(out_type)
    return form if form is not None and form.block else None


def _array_type(out_type: Any) -> str:
    if isinstance(out_type, str) and out_type in ("e4m3", "e5m2"):
        out_type = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}[out_type]
    name = _arrays.dtype_name(out_type, "out_dtype")
    if name not in _arrays.FORMAT_OF:
        raise InvalidError(f"out_dtype={out_type!r}: use one of {', '.join(_arrays.FORMAT_OF)}, or a block format such "
                           "as mxfp8_e4m3")
    return name


def _int64_on_gpu(library: str, device: tuple[str, int], host: Any, stream: int) -> Array:
    if library == "torch":
        return _arrays.torch().tensor(host, device=f"cuda:{device[1]}")
    from ._device_array import DeviceArray
    return DeviceArray.of_numpy(host, device, stream)


def describe(a: Any, b: Any, *, out: Any, out_dtype: Any, alpha: Any, alpha_per: str | None, c: Any, beta: Any,
             bias: Any, bias_per: str | None, activation: str, gate: str, groups: Any, group_columns: Any, amax: Any,
             compute: str, order: str, out_recipe: str | None, out_layout: str, out_packing: str | None,
             out_tensor_scale: Any, out_saturate: bool, out_nonfinite: str, make: bool) -> Description:
    """The description of a product with everything that the caller gave."""
    d = Description(a, b)
    d.set_form(activation, gate, compute, order)
    d.set_groups(groups, group_columns)
    d.set_alpha(alpha, alpha_per)
    d.set_c(c, beta)
    d.set_bias(bias, bias_per)
    d.set_amax(amax)
    d.set_out(out, out_dtype, out_recipe, out_layout, out_packing, out_tensor_scale, out_saturate, out_nonfinite, make)
    return d


def key(d: Description) -> tuple[Any, ...]:
    """Equal for descriptions that one plan serves: shapes, formats and options, which optional parts there are, and
    what operands are aligned to."""
    p = d.product
    parts: list[bytes] = []
    aligned = 0
    flags = []
    for matrix in (p.a, p.b, p.c, p.d):
        if matrix == NULL:
            parts.append(b"")
            continue
        copy = ffi.new("bsm_matrix *", matrix[0])
        aligned = aligned << 1 | (int(ffi.cast("uintptr_t", copy.data)) % 16 == 0)
        aligned = aligned << 1 | (int(ffi.cast("uintptr_t", copy.scales)) % 16 == 0)
        flags.append(copy.tensor_scale != NULL)
        copy.data = copy.scales = copy.tensor_scale = NULL
        parts.append(bytes(ffi.buffer(copy)))
        if copy.struct_size == ffi.sizeof("bsm_sparse_matrix"):
            sparse = ffi.cast("bsm_sparse_matrix *", matrix)
            flags += [sparse.sparsity, sparse.metadata_pitch, sparse.metadata_batch_pitch]
    aligned = aligned << 1 | (int(ffi.cast("uintptr_t", p.bias)) % 16 == 0)
    return (d.device, *parts, aligned, *flags, p.alpha != NULL, p.alpha_per, p.beta != NULL, p.bias != NULL,
            p.bias_type, p.bias_per, p.bias_batch_pitch, p.activation, p.gate, p.d_recipe, p.d_nonfinite,
            p.d_no_saturate, p.amax != NULL, p.groups, p.group_columns != NULL, p.compute, p.order)

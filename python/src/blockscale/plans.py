"""Plans: products whose kernel and workspace are chosen once and run often; prepacked weights; explanations."""
from __future__ import annotations

import collections
import contextlib
import mmap
import threading
from typing import Any

import numpy as np

from . import _arrays, _context, _device_array
from ._arrays import Array, where
from ._errors import InvalidError, MemoryError_, check, fail
from ._library import NULL, PERS, ffi, lib, text
from ._product import Description, describe, key, operand
from .matrix import Matrix, allocate, format_of

_run: Any = lib.bsm_plan_run
_void = ffi.typeof("void *")
_cast = ffi.cast
_from_buffer = ffi.from_buffer
_raw = ffi.new_allocator(should_clear_after_alloc=False)
_PRODUCT_BYTES = ffi.sizeof("bsm_matmul")
_HOST_ALIGNMENT = 64
_HUGE_PAGE = 2 << 20


def _host_memory(size: int) -> Any:
    """Memory of at least `size` bytes, as C has it, and where it begins: aligned, and of huge pages if there are such,
    since small ones fall by chance on the sets of a cache that a kernel's panels fill."""
    if size < _HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        memory, alignment = _raw("char[]", size + _HOST_ALIGNMENT), _HOST_ALIGNMENT
    else:
        whole = (size + _HUGE_PAGE - 1) // _HUGE_PAGE * _HUGE_PAGE
        mapped = mmap.mmap(-1, whole + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):           # refused: pages stay small
            mapped.madvise(mmap.MADV_HUGEPAGE)
        memory, alignment = _from_buffer("char[]", mapped), _HUGE_PAGE
    return memory, memory + -int(_cast("uintptr_t", memory)) % alignment


class _Scratch(threading.local):
    """A workspace of host memory for each thread, which only grows."""

    size = 0
    memory: Any = None
    start: Any = NULL

    def get(self, size: int) -> Any:
        """At least `size` bytes, aligned to 64."""
        if size > self.size:
            try:
                self.memory, self.start = _host_memory(size)
            except (MemoryError, OSError) as error:
                raise MemoryError_(f"no memory for a workspace of {size} bytes") from error
            self.size = size
        return self.start


_scratch = _Scratch()


class _Place:
    """What an array has to be for a plan to take it by its address alone."""

    __slots__ = ("kind", "dtype", "shape", "strides", "device", "view", "name", "buffer", "torch")

    def __init__(self, x: Any, name: str) -> None:
        self.name = name
        self.view = _arrays.view(x, name)
        self.kind = x.__class__          # a parameter is another class than a tensor
        self.dtype, self.shape = getattr(x, "dtype", None), getattr(x, "shape", None)
        self.device = getattr(x, "device", None)
        self.torch = self.view.library == "torch"
        self.strides = x.stride() if self.torch else getattr(x, "strides", None)
        self.buffer = False
        if self.kind is np.ndarray:
            try:
                _from_buffer(x)
                self.buffer = True
            except (ValueError, TypeError, BufferError):
                pass                     # strided, or a type that Python's buffers do not have
        self.view.owner = None           # a plan keeps no array of its caller alive for this

    def address(self, x: Any) -> Any:
        """A C pointer to x's numbers; InvalidError if x is not what the plan was made for."""
        if x.__class__ is self.kind:
            if self.torch:
                if (x.dtype is self.dtype and x.shape == self.shape and x.stride() == self.strides
                        and x.device == self.device):
                    return _cast(_void, x.data_ptr())
            elif self.buffer and x.dtype is self.dtype and x.shape == self.shape and x.strides == self.strides:
                return _from_buffer(x)
        return _cast(_void, self._other(x))

    def _other(self, x: Any) -> int:
        found, meant = _arrays.view(x, self.name), self.view
        if (found.dtype, found.shape, found.device) != (meant.dtype, meant.shape, meant.device):
            raise InvalidError(f"{self.name} is {found.dtype} of the shape {tuple(found.shape)} on "
                               f"{where(found.device)}: the plan was made for {meant.dtype} of {tuple(meant.shape)} on "
                               f"{where(meant.device)}")
        if any(size > 1 and mine != theirs for size, mine, theirs in zip(found.shape, found.strides, meant.strides)):
            raise InvalidError(f"{self.name} has strides {tuple(found.strides)}: the plan was made for "
                               f"{tuple(meant.strides)}")
        return found.pointer


class _Frame:
    """The structs of one run: each thread that runs a plan at the same time has its own."""

    __slots__ = ("product", "a", "b", "d", "keep")

    def __init__(self, d: Description) -> None:
        p = d.product
        self.product = ffi.new("bsm_matmul *", p[0])
        self.a, self.b, self.d = (ffi.new("bsm_matrix *", x[0]) for x in (p.a, p.b, p.d))
        self.keep: Any = None


class Packed:
    """Prepacked weights: B in the order in which a kernel reads it.  Made by Plan.pack or pack(); given to products of
    the same B as panels=.

    panels  uint8 array on B's device; bytes  its size, 0 where the kernel reads B as it is stored."""

    __slots__ = ("panels", "bytes", "device", "_pointer")

    def __init__(self, panels: Array, size: int, device: tuple[str, int], pointer: int) -> None:
        self.panels, self.bytes, self.device = panels, size, device
        self._pointer = _cast(_void, pointer) if size else NULL

    def __repr__(self) -> str:
        return f"<blockscale.Packed of {self.bytes} bytes on {where(self.device)}>"


def _aligned(library: str, device: tuple[str, int], size: int) -> Array:
    """A uint8 array that begins on 64 bytes."""
    if device[0] != "cpu":
        return _arrays.empty(library, device, (size,), "uint8")
    whole = _arrays.empty(library, device, (size + _HOST_ALIGNMENT,), "uint8")
    skip = -_arrays.view(whole, "panels").pointer % _HOST_ALIGNMENT
    return whole[skip:skip + size]


class _Kernel:
    """A plan of the C library, and the workspace for it."""

    __slots__ = ("handle", "context", "workspace_bytes", "device", "library", "cuda", "generation")

    def __init__(self, d: Description) -> None:
        self.device, self.library, self.cuda = d.device, d.library, d.device[0] == "cuda"
        self.context = _context.context(d.device)
        self.generation = _context.generation
        made = ffi.new("bsm_plan **")
        check(lib.bsm_plan_create(self.context, d.product, made))
        self.handle = ffi.gc(made[0], lib.bsm_plan_destroy)
        self.workspace_bytes: int = lib.bsm_plan_workspace_bytes(self.handle)

    def run(self, product: Any, stream: int) -> None:
        """Runs a description.  On a GPU it goes into `stream`, which product has, too."""
        size = self.workspace_bytes
        if size == 0:
            status = _run(self.handle, product, NULL, 0)
        elif not self.cuda:
            status = _run(self.handle, product, _scratch.get(size), size)
        elif self.library in ("torch", "cupy"):
            # Freed at once: the library's allocator gives it out again to later work of the same stream alone, and
            # to a graph that is being captured it gives memory of the graph's own.
            workspace = _arrays.empty(self.library, self.device, (size,), "uint8")
            status = _run(self.handle, product, _cast(_void, _arrays.view(workspace, "workspace").pointer), size)
        else:
            with _device_array.scratch(self.device[1], stream, size) as memory:
                status = _run(self.handle, product, memory, size)
        if status != 0:
            fail(status)

    def describe(self) -> str:
        """The library's line about what was chosen, and why."""
        room = ffi.new("char[]", 1024)
        lib.bsm_plan_describe(self.handle, room, 1024)
        return text(room) or ""


class Plan:
    """A product whose kernel was chosen for given shapes and formats.  Made by plan().

    run() takes other arrays of the same shapes, types, strides and device, allocates nothing but `out` when that is not
    given (and, on a GPU, a workspace from the library of the arrays), waits for nothing, and may be captured into a
    CUDA graph.  Several threads may run one plan at the same time.

    device, out_shape    of the result; workspace_bytes   what the kernel needs beside"""

    __slots__ = ("_kernel", "_description", "_a", "_b", "_d", "_frames", "_cuda", "device", "out_shape", "__weakref__")

    def __init__(self, description: Description, a: Any, b: Any, out: Any) -> None:
        self._description, self._kernel = description, _Kernel(description)
        self.device, self.out_shape = description.device, description.out_shape
        self._cuda = self._kernel.cuda
        self._a = None if isinstance(a, Matrix) else _Place(a, "a")
        self._b = None if isinstance(b, Matrix) else _Place(b, "b")
        self._d = None if out is None or isinstance(out, Matrix) else _Place(out, "out")
        self._frames: list[_Frame] = []

    @property
    def workspace_bytes(self) -> int:
        """Bytes that the kernel works in beside its operands."""
        return self._kernel.workspace_bytes

    def run(self, a: Any, b: Any, out: Any = None, *, alpha: Any = None, c: Any = None, beta: Any = None,
            bias: Any = None, groups: Any = None, group_columns: Any = None, amax: Any = None,
            panels: Packed | None = None) -> Any:
        """The product of a and b, which differ from the plan's in their addresses alone.

        out     an array, or a Matrix, of the plan's result; None: a new one.
        alpha, c, beta, bias, groups, group_columns, amax   replace those that plan() was given; the same shapes
                and types.
        panels  prepacked weights of this b.
        Returns out."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self._description)
        p = frame.product
        p.a = self._operand(a, "a", self._a, frame.a)
        p.b = self._operand(b, "b", self._b, frame.b)
        if out is None:
            out = self._description.new_out()
        if out.__class__ is Matrix:
            p.d = self._operand(out, "out", None, frame.d)
        else:
            place = self._d or self._out_place(out)
            if out.__class__ is np.ndarray and not out.flags.writeable:
                raise InvalidError("out is a read-only array")
            frame.d.data = place.address(out)
            p.d = frame.d
        changed = not (alpha is None and c is None and beta is None and bias is None and groups is None
                       and group_columns is None and amax is None and panels is None)
        if changed:
            self._change(frame, alpha, c, beta, bias, groups, group_columns, amax, panels)
        stream = 0
        if self._cuda:
            stream = self._stream(a)
            p.stream = _cast(_void, stream)
        self._kernel.run(p, stream)
        if self._description.library == "jax":
            _context.settle("jax", self.device, stream)
        if changed:                      # the next run has the plan's own again
            ffi.memmove(p, self._description.product, _PRODUCT_BYTES)
            frame.keep = None
        self._frames.append(frame)
        return out

    def _stream(self, x: Any) -> int:
        """The stream for work with x: its library's current one, or what the array itself names."""
        library, given = self._description.library, 0
        if library not in ("torch", "cupy"):
            given = x._stream if x.__class__ is Matrix else _arrays.view(x, "a").stream
        return _context.current_stream(library, self.device[1], given)

    def _operand(self, x: Any, name: str, place: _Place | None, struct: Any) -> Any:
        if x.__class__ is not Matrix:
            if place is not None:
                struct.data = place.address(x)
                return struct
            x = operand(x, name)         # the plan was made with a Matrix, this is an array of plain numbers
            struct[0] = x._c[0]
            if x.device == self.device:
                return struct
        if x.device != self.device:
            raise InvalidError(f"{name} lies on {where(x.device)}: the plan was made for {where(self.device)}")
        return x._c

    def _out_place(self, out: Any) -> _Place:
        """The first array that is given as out of a plan that was made without one."""
        place = _Place(out, "out")
        want = self._description.out_type_name()
        found = place.view
        if (found.dtype, found.shape, found.device) != (want, self.out_shape, self.device) or not found.contiguous():
            raise InvalidError(f"out is {found.dtype} of the shape {tuple(found.shape)} and strides "
                               f"{tuple(found.strides)} on {where(found.device)}: the plan was made for "
                               f"{want} of {self.out_shape} without gaps on {where(self.device)}")
        self._d = place
        return place

    def _change(self, frame: _Frame, alpha: Any, c: Any, beta: Any, bias: Any, groups: Any,
                group_columns: Any, amax: Any, panels: Packed | None) -> None:
        """Optional parts that this run has instead of the plan's."""
        d = self._description.again(frame.product)
        frame.keep = d
        p = frame.product
        d.set_alpha(alpha, None if p.alpha == NULL else _PER_NAMES[p.alpha_per])
        if c is not None:
            of_c = operand(c, "c")
            if of_c.device != self.device:
                raise InvalidError(f"c lies on {where(of_c.device)}: the plan was made for {where(self.device)}")
            d.c, p.c = of_c, of_c._c
            if p.beta == NULL and beta is None:
                beta = 1.0
        if beta is not None:
            p.beta = ffi.cast("float *", d.factor(beta, 1, "beta"))
        d.set_bias(bias, None if p.bias == NULL else _PER_NAMES[p.bias_per])
        if groups is not None:
            p.group_rows = ffi.cast("int64_t *", d.group_sizes(groups, "groups", p.groups))
        if group_columns is not None:
            p.group_columns = ffi.cast("int64_t *", d.group_sizes(group_columns, "group_columns", p.groups))
        d.set_amax(amax)
        if panels is not None:
            p.b_panels = pointer_of(panels, self.device)

    def describe(self) -> str:
        """One line: the kernel, its tile and threads, the order of its sums, and why it was chosen."""
        return self._kernel.describe()

    def pack(self, b: Any) -> Packed:
        """Prepacks b for this product and every other one with the same b, formats and gate, whatever its rows of a.
        To be made again when b changes.  UnsupportedError where the plan's kernel reads b as it is stored (has_panels
        is False then)."""
        size = self.panels_bytes
        frame = _Frame(self._description)
        frame.product.b = self._operand(b, "b", self._b, frame.b)
        d = self._description
        if self._cuda:
            frame.product.stream = _cast(_void, self._stream(b))
        panels = _aligned(d.library, self.device, size)
        at = _arrays.view(panels, "panels").pointer
        check(lib.bsm_plan_pack_b(self._kernel.handle, frame.product, _cast(_void, at), size))
        return Packed(panels, size, self.device, at)

    @property
    def panels_bytes(self) -> int:
        """Bytes of prepacked weights for this plan; 0 where its kernel reads b as it is stored."""
        size: int = lib.bsm_plan_b_panels_bytes(self._kernel.handle)
        return size

    def __repr__(self) -> str:
        return f"<blockscale.Plan: {self.describe()}>"


_PER_NAMES = {number: name for name, number in PERS.items()}


def pointer_of(panels: Packed, device: tuple[str, int]) -> Any:
    """The address of prepacked weights; NULL where there are none."""
    if not isinstance(panels, Packed):
        raise InvalidError(f"panels is a {type(panels).__name__}: use what Plan.pack() or pack() gives")
    if panels.device != device:
        raise InvalidError(f"panels lie on {where(panels.device)}, a on {where(device)}")
    return panels._pointer


_cache: collections.OrderedDict[tuple[Any, ...], _Kernel] = collections.OrderedDict()
_cache_lock = threading.Lock()
_MOST_PLANS = 256


def cached(d: Description) -> _Kernel:
    """The kernel for a description, from the last 256 that were chosen."""
    of = key(d)
    with _cache_lock:
        found = _cache.get(of)
        if found is not None and found.generation == _context.generation:
            _cache.move_to_end(of)
            return found
    made = _Kernel(d)
    with _cache_lock:
        _cache[of] = made
        if len(_cache) > _MOST_PLANS:
            _cache.popitem(last=False)
    return made


# Plans of matmul without optional parts, by what a, b and the result look like from Python.
_plans: dict[tuple[Any, ...], Plan] = {}


def signature(x: Any) -> Any:
    """Equal for operands that one plan takes; None for those that are looked at by their descriptions.  Kernels of
    GPUs may want the alignment that the plan's operands had."""
    if x.__class__ is Matrix:
        return x.signature()
    if x.__class__ is np.ndarray:
        return (x.dtype, x.shape, x.strides)
    if _arrays.is_torch(x):
        return (x.dtype, x.shape, x.stride(), x.device, x.data_ptr() & 15)
    return None


def remembered(a: Any, b: Any, out: Any, options: tuple[Any, ...]) -> Plan | None:
    """The plan of a product without optional parts, made at its first call; None where that is not to be had.  options:
    out_dtype, activation, gate, compute, order, out_recipe, out_layout, out_packing, out_saturate, out_nonfinite."""
    of_a, of_b, of_out = signature(a), signature(b), None if out is None else signature(out)
    if of_a is None or of_b is None or (out is not None and of_out is None):
        return None
    of = (of_a, of_b, of_out, options)
    try:
        found = _plans.get(of)
    except TypeError:                    # an option that cannot be compared: the description names it
        return None
    if found is not None and found._kernel.generation == _context.generation:
        return found
    out_dtype, activation, gate, compute, order, recipe, layout, packing, saturate, nonfinite = options
    made = plan(a, b, out=out, out_dtype=out_dtype, activation=activation, gate=gate, compute=compute, order=order,
                out_recipe=recipe, out_layout=layout, out_packing=packing, out_saturate=saturate,
                out_nonfinite=nonfinite)
    made._description.let_go()
    with _cache_lock:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        _plans[of] = made
    return made


def plan(a: Any, b: Any, *, out: Any = None, out_dtype: Any = None, alpha: Any = None, alpha_per: str | None = None,
         c: Any = None, beta: Any = None, bias: Any = None, bias_per: str | None = None, activation: str = "none",
         gate: str = "none", groups: Any = None, group_columns: Any = None, amax: Any = None,
         compute: str = "exact", order: str = "k", out_recipe: str | None = None, out_layout: str = "linear",
         out_packing: str | None = None,
         out_tensor_scale: Any = None, out_saturate: bool = True, out_nonfinite: str = "propagate") -> Plan:
    """Chooses the kernel of matmul(a, b, ...) once.  All arguments are those of matmul; a, b, out and the optional
    parts are read for their shapes, types, strides and addresses, not for their numbers.  alpha, c, beta, bias, groups
    and amax are those of each run that is not given others."""
    d = describe(a, b, out=out, out_dtype=out_dtype, alpha=alpha, alpha_per=alpha_per, c=c, beta=beta, bias=bias,
                 bias_per=bias_per, activation=activation, gate=gate, groups=groups, group_columns=group_columns,
                 amax=amax, compute=compute, order=order, out_recipe=out_recipe, out_layout=out_layout,
                 out_packing=out_packing, out_tensor_scale=out_tensor_scale, out_saturate=out_saturate,
                 out_nonfinite=out_nonfinite, make=False)
    return Plan(d, a, b, out)


def explain(a: Any, b: Any, **options: Any) -> str:
    """One line about matmul(a, b, **options): the kernel, its tile and threads, the order of its sums, and the reason.
    The options are those of matmul; nothing is computed."""
    return plan(a, b, **options).describe()


def pack(b: Any, a_format: str = "bf16", rows: int = 1, *, gate: str = "none") -> Packed:
    """Prepacks the weights b for products of `rows` rows of a_format with it: an array on b's device in the order in
    which the kernel reads it, to be given as panels= to matmul and Plan.run.  A second copy of the weights; made once
    after loading, and again when b changes.  gate is that of the products.  Where the kernel reads b as it
    is stored the result has 0 bytes, and products with it read b."""
    of_b = operand(b, "b")
    form = format_of(a_format, "a_format")
    tensor_scale = False
    a = allocate(form, (rows, of_b.columns) if len(of_b.shape) == 2 else (of_b.batch, rows, of_b.columns), "linear",
                 None, tensor_scale, False, of_b.library, of_b.device)
    chosen = plan(a, of_b, gate=gate)
    if chosen.panels_bytes == 0:
        return Packed(_arrays.empty(of_b.library, of_b.device, (0,), "uint8"), 0, of_b.device, 0)
    return chosen.pack(of_b)

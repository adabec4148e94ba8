"""Products of tensors: plans of the C library, made once for each description and thread.

A plan is looked up by shapes, strides, formats, alignment and device, so that a call costs a look-up, an allocation of
the result and one of the workspace, both by PyTorch's allocator, and the library's call in PyTorch's current stream.
Nothing waits for the GPU, and nothing is created while a graph is being captured but plans, which live on the host."""
from __future__ import annotations

import threading
import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from .. import _context
from .._context import context
from .._errors import DeviceError, InvalidError, check, number_of
from .._library import ACTIVATIONS, COMPUTES, GATES, NULL, PERS, ffi, lib
from . import _tensors, _threads
from ._tensors import Parts

_NOWHERE = 1 << 60      # no address of a processor or a GPU
MOST_PLANS = 4096       # of a thread; then all are dropped: shapes that come back are planned again


class Epilogue(NamedTuple):
    """What happens to the sums, and how they are computed; see blockscale.matmul."""

    out_dtype: torch.dtype
    alpha: Tensor | None = None
    beta: Tensor | None = None
    c: Tensor | None = None
    bias: Tensor | None = None
    bias_per: str = "column"
    activation: str = "none"
    gate: str = "none"
    compute: str = "exact"
    alpha_per: str = ""


class _Cache(threading.local):
    def __init__(self) -> None:
        self.plans: dict[tuple[Any, ...], Plan] = {}


_cache = _Cache()


def output_shape(a: Tensor, b: Tensor, gate: str, grouped: bool) -> tuple[int, ...]:
    """The shape of D."""
    rows, columns = a.shape[-2], b.shape[-2]
    if gate != "none":
        columns = columns // 2
    if a.dim() == 2 and (b.dim() == 2 or grouped):
        return rows, columns
    batch = max(a.shape[0] if a.dim() == 3 else 1, b.shape[0] if b.dim() == 3 else 1)
    return batch, rows, columns


def _columns(a: Parts, b: Parts, columns: int) -> int:
    """K: given, or what the operand says whose rows are not packed, or what a row of A's codes holds."""
    if columns:
        return columns
    for p, name in ((a, "a"), (b, "b")):
        form = _tensors.format_of(p.format, f"{name}_format")
        if form.bits >= 8 or p.packing == "bytes":
            return p.codes.shape[-1]
    return _tensors.columns_of(_tensors.format_of(a.format), a.packing, a.codes.shape[-1])


def _check_factor(tensor: Tensor, count: int, name: str, of: str) -> None:
    if tensor.dtype is not torch.float32 or tensor.numel() != count or not tensor.is_contiguous():
        raise InvalidError(f"{name} is of {tensor.dtype} and has the shape {tuple(tensor.shape)}: it is a contiguous "
                           f"torch.float32 of {count} elements, {of}")


class Plan:
    """A plan of the library with the structs that describe it.  Belongs to one thread."""

    def __init__(self, device: tuple[str, int], a: Parts, b: Parts, e: Epilogue, out_shape: tuple[int, ...],
                 columns: int, groups: int) -> None:
        self.device = device
        self.context = context(device)
        self.structs = [ffi.new("bsm_matrix *") for _ in range(4)]
        self.a, self.b, self.c, self.d = self.structs
        self.columns = _columns(a, b, columns)
        _tensors.describe(a, self.a, self.columns, "a")
        _tensors.describe(b, self.b, self.columns, "b")
        p = self.product = ffi.new("bsm_matmul *")
        p.struct_size = ffi.sizeof("bsm_matmul")
        p.a, p.b, p.d = self.a, self.b, self.d
        self._describe_out(e, out_shape)
        self._describe_epilogue(e, max(1, groups or self.d.batch))
        p.groups = groups
        p.activation = number_of(ACTIVATIONS, e.activation, "activation")
        p.gate = number_of(GATES, e.gate, "gate")
        p.compute = number_of(COMPUTES, e.compute, "compute")
        plan = ffi.new("bsm_plan **")
        _tensors.set_pointers(a, self.a)
        _tensors.set_pointers(b, self.b)
        self._set_optional(e)
        self.panels: Any = ffi.cast("void *", 3 * _NOWHERE) if b.alone else NULL
        self.some_rows: Any = None
        if groups:
            self.some_rows = ffi.new("int64_t[]", groups) if device[0] == "cpu" else ffi.cast("int64_t *", _NOWHERE)
        if groups and device[0] == "cpu":
            self.some_rows[0] = self.a.rows
        self._point_nowhere()
        check(lib.bsm_plan_create(self.context, p, plan))
        self.plan = ffi.gc(plan[0], lib.bsm_plan_destroy)
        self.workspace_bytes: int = lib.bsm_plan_workspace_bytes(self.plan)
        self.panels_bytes: int = lib.bsm_plan_b_panels_bytes(self.plan)

    def _describe_out(self, e: Epilogue, shape: tuple[int, ...]) -> None:
        name = _tensors.PLAIN_FORMATS.get(e.out_dtype)
        if name is None:
            raise InvalidError(f"out_dtype={e.out_dtype} is not known: use one of "
                               + ", ".join(str(dtype) for dtype in _tensors.PLAIN_FORMATS))
        d = self.d
        d.struct_size = ffi.sizeof("bsm_matrix")
        d.format = _tensors.format_of(name).number
        d.rows, d.columns = shape[-2], shape[-1]
        d.batch = shape[0] if len(shape) == 3 else 1

    def _describe_epilogue(self, e: Epilogue, batches: int) -> None:
        p = self.product
        if e.alpha is not None:
            per = e.alpha_per or ("tensor" if e.alpha.numel() == 1 else "batch")
            p.alpha_per = number_of(PERS, per, "alpha_per")
            counts = {"tensor": 1, "row": self.a.rows, "column": self.b.rows, "batch": batches}
            _check_factor(e.alpha, counts[per], "alpha", f"for alpha_per={per!r}")
        if e.beta is not None:
            _check_factor(e.beta, 1, "beta", "for the whole product")
        if e.c is not None:
            _tensors.describe(Parts(e.c, None, None, _tensors.PLAIN_FORMATS.get(e.c.dtype, str(e.c.dtype))), self.c, 0,
                              "c")
        if e.bias is not None:
            real = _tensors.REALS.get(e.bias.dtype)
            if real is None or e.bias.dtype is torch.float64:
                raise InvalidError(f"bias is of {e.bias.dtype}: use torch.float32, bfloat16 or float16")
            if e.bias.dim() > 2 or e.bias.stride(-1) != 1:
                raise InvalidError(f"bias has the shape {tuple(e.bias.shape)} and strides {tuple(e.bias.stride())}: it "
                                   "is a vector, or one for each matrix of the batch, without gaps")
            wanted = self.b.rows if e.bias_per == "column" else self.a.rows
            if e.bias.shape[-1] != wanted or (e.bias.dim() == 2 and e.bias.shape[0] != batches):
                raise InvalidError(f"bias has the shape {tuple(e.bias.shape)}: a bias per {e.bias_per} has {wanted} "
                                   f"elements for each of {batches} matrices, or for all")
            p.bias_type, p.bias_per = real, number_of(PERS, e.bias_per, "bias_per")
            p.bias_batch_pitch = e.bias.stride(0) if e.bias.dim() == 2 else 0

    def _set_optional(self, e: Epilogue) -> None:
        p = self.product
        p.alpha = NULL if e.alpha is None else ffi.cast("float *", e.alpha.data_ptr())
        p.beta = NULL if e.beta is None else ffi.cast("float *", e.beta.data_ptr())
        p.bias = NULL if e.bias is None else ffi.cast("void *", e.bias.data_ptr())
        if e.c is None:
            p.c = NULL
        else:
            self.c.data = ffi.cast("void *", e.c.data_ptr())
            p.c = self.c

    def _point_nowhere(self) -> None:
        """For calls that read no result, and no rows of groups but to see that they add up: tensors of an earlier run
        may be gone.  The addresses are as aligned as PyTorch's allocations are, and overlap none."""
        self.d.data = ffi.cast("void *", 2 * _NOWHERE)
        self.product.b_panels = self.panels
        if self.some_rows is not None:
            self.product.group_rows = self.some_rows

    def _point(self, a: Parts, b: Parts, stream: int) -> None:
        _tensors.set_pointers(a, self.a)
        _tensors.set_pointers(b, self.b)
        self.product.stream = ffi.cast("void *", stream)

    def run(self, a: Parts, b: Parts, e: Epilogue, out: Tensor, rows: Tensor | None, panels: Tensor | None) -> None:
        """Puts the product into the current stream (on the CPU: computes it)."""
        p = self.product
        self._point(a, b, _tensors.stream_of(self.device))
        self._set_optional(e)
        self.d.data = ffi.cast("void *", out.data_ptr())
        if rows is not None:
            p.group_rows = ffi.cast("int64_t *", rows.data_ptr())
        p.b_panels = NULL if panels is None else ffi.cast("void *", panels.data_ptr())
        size = self.workspace_bytes
        if size == 0:
            check(lib.bsm_plan_run(self.plan, p, NULL, 0))
            return
        workspace = torch.empty(size, dtype=torch.uint8, device=out.device)
        check(lib.bsm_plan_run(self.plan, p, ffi.cast("void *", workspace.data_ptr()), size))

    def pack(self, a: Parts, b: Parts, panels: Tensor) -> None:
        """Writes B's panels in the current stream."""
        self._point(a, b, _tensors.stream_of(self.device))
        self._point_nowhere()
        check(lib.bsm_plan_pack_b(self.plan, self.product, ffi.cast("void *", panels.data_ptr()), self.panels_bytes))

    def unpack(self, a: Parts, b: Parts, panels: Tensor) -> None:
        """Writes B's codes and scales, of its panels, in the current stream."""
        self._point(a, b, _tensors.stream_of(self.device))
        self._point_nowhere()
        self.product.b_panels = ffi.cast("void *", panels.data_ptr())
        check(lib.bsm_plan_unpack_b(self.plan, self.product))

    def describe(self) -> str:
        """One line about the kernel that was chosen, and why."""
        text = ffi.new("char[]", 1024)
        lib.bsm_plan_describe(self.plan, text, 1024)
        line: str = ffi.string(text).decode()
        return line


def _key_of(tensor: Tensor | None) -> tuple[Any, ...] | None:
    return None if tensor is None else (tensor.shape, tensor.stride(), tensor.dtype, tensor.data_ptr() & 15)


def find(device: tuple[str, int], a: Parts, b: Parts, e: Epilogue, columns: int, groups: int) -> Plan:
    """The plan of a description, made if this thread has none yet."""
    _threads.follow(device)
    key = (device, _tensors.key(a), _tensors.key(b), e.out_dtype, _key_of(e.alpha), _key_of(e.beta), _key_of(e.c),
           _key_of(e.bias), e.bias_per, e.activation, e.gate, e.compute, e.alpha_per, columns, groups,
           _context.generation)
    found = _cache.plans.get(key)
    if found is None:
        refuse_first_in_capture(device)
        if len(_cache.plans) >= MOST_PLANS:
            _cache.plans.clear()
        found = Plan(device, a, b, e, output_shape(a.codes, b.codes, e.gate, groups > 0), columns, groups)
        _cache.plans[key] = found
    return found


_opened: set[tuple[str, int]] = set()


def refuse_first_in_capture(device: tuple[str, int]) -> None:
    """The library loads its kernels and tests itself when a GPU is first used, which a capture would take part in."""
    if device in _opened:
        return
    if device[0] == "cuda" and torch.cuda.is_current_stream_capturing():
        raise DeviceError(f"cuda:{device[1]} is used by blockscale for the first time while a graph is being captured: "
                          "run the operator once before")
    context(device)
    _opened.add(device)


# Prepacked weights ----------------------------------------------------------------------------------------------------

class _Packed(NamedTuple):
    panels: weakref.ref[Tensor]
    storage: StorageWeakRef      # keeps the storage's number from being given to another one
    address: int
    version: int


_packed: dict[int, _Packed] = {}
_weak_storage: Any = StorageWeakRef


def _version(tensor: Tensor) -> int:
    """PyTorch's count of writes; inference tensors have none."""
    return -1 if tensor.is_inference() else tensor._version


def remember(panels: Tensor, codes: Tensor) -> None:
    """Notes of which codes these panels are."""
    number = id(panels)
    _packed[number] = _Packed(weakref.ref(panels, lambda _: _packed.pop(number, None)),
                              _weak_storage(codes.untyped_storage()), codes.data_ptr(), _version(codes))


def is_current(panels: Tensor, codes: Tensor) -> bool:
    """False for panels that were made here of other codes, or of codes that were written since."""
    found = _packed.get(id(panels))
    if found is None or found.panels() is not panels:
        return True
    if found.address != codes.data_ptr() or found.storage.cdata != codes.untyped_storage()._cdata:
        return False
    # Codes without bytes cannot be written.  Compiled code in inference mode gives another tensor of their storage,
    # which has no count of writes.
    return found.version == _version(codes) or _tensors.has_no_bytes(codes)

"""Arrays of the library's own, in GPU memory or in aligned host memory: results for libraries that have no allocator
here, and workspaces."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator

import numpy as np

from . import _arrays, _context, _dlpack
from ._arrays import View
from ._errors import check
from ._library import ffi, lib

_TYPESTR = {"float32": "<f4", "float16": "<f2", "float64": "<f8", "uint8": "|u1", "int8": "|i1", "int64": "<i8",
            "int32": "<i4", "bfloat16": "<V2"}
_HOST_ALIGNMENT = 64


class DeviceArray:
    """An array in a GPU's memory (or, on the CPU, in memory aligned to 64 bytes) without arithmetic, that any library
    takes by __cuda_array_interface__ or DLPack.

    shape, dtype (a name), device (("cuda", number) or ("cpu", 0)), nbytes
    stream   the CUstream, as a number, in which its contents are made; 0: the default stream
    numpy()  a copy in host memory, which waits for the stream"""

    __slots__ = ("shape", "dtype", "device", "nbytes", "stream", "_memory", "_address", "__weakref__")

    def __init__(self, shape: tuple[int, ...], dtype: str, device: tuple[str, int], stream: int = 0) -> None:
        self.shape, self.dtype, self.device, self.stream = tuple(shape), dtype, device, stream
        self.nbytes = _arrays.elements(self.shape) * _arrays.SIZES[dtype]
        self._memory: Any
        if device[0] == "cpu":
            self._memory = np.zeros(self.nbytes + _HOST_ALIGNMENT, np.uint8)
            start = _arrays.numpy_pointer(self._memory)
            self._address = start + -start % _HOST_ALIGNMENT
            return
        context = _context.context(device)
        made = ffi.new("void **")
        check(lib.bsm_device_allocate(context, max(self.nbytes, 1), made))
        self._memory = ffi.gc(made[0], lambda memory: lib.bsm_device_release(context, memory))
        self._address = int(ffi.cast("uintptr_t", made[0]))

    @classmethod
    def of_numpy(cls, x: Any, device: tuple[str, int] = ("cuda", 0), stream: int = 0) -> "DeviceArray":
        """A copy of a NumPy array, which waits until it is there."""
        x = np.ascontiguousarray(x)
        it = cls(x.shape, x.dtype.name, device, stream)
        if it.nbytes:
            check(lib.bsm_device_write(_context.context(device, stream), ffi.cast("void *", it._address),
                                       ffi.cast("void *", _arrays.numpy_pointer(x)), it.nbytes))
        return it

    def numpy(self) -> Any:
        """A copy of the numbers in host memory."""
        made = np.empty(self.shape, _arrays.numpy_dtype(self.dtype))
        if self.nbytes:
            to, source = ffi.cast("void *", _arrays.numpy_pointer(made)), ffi.cast("void *", self._address)
            if self.device[0] == "cpu":
                ffi.memmove(to, source, self.nbytes)
            else:
                check(lib.bsm_device_read(_context.context(self.device, self.stream), to, source, self.nbytes))
        return made

    def as_view(self) -> View:
        """Where the elements lie."""
        return View(self._address, self.shape, _arrays.contiguous_strides(self.shape), self.dtype, self.device, self,
                    "blockscale", self.stream)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.device[0] == "cpu":
            raise AttributeError("an array of the CPU has no __cuda_array_interface__")
        return {"shape": self.shape, "typestr": _TYPESTR.get(self.dtype, "|u1"), "version": 3, "strides": None,
                "data": (self._address, False), "stream": self.stream or 1}

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.device_of(self.device)

    def __dlpack__(self, *, stream: int | None = None, max_version: Any = None, dl_device: Any = None,
                   copy: Any = None) -> Any:
        """A capsule for another library.  Where it names a stream of its own, this waits for the one that the numbers
        are made in."""
        if self.device[0] == "cuda" and stream not in (None, -1, self.stream or 1):
            check(lib.bsm_context_synchronize(_context.context(self.device, self.stream)))
        return _dlpack.write(self._address, self.shape, self.dtype, self.device, self)

    def __repr__(self) -> str:
        return f"<blockscale.DeviceArray {self.dtype} {self.shape} on {_arrays.where(self.device)}>"


class _Workspace:
    """Device memory for the work of one stream.  Growing waits for the GPU, as freeing memory does."""

    def __init__(self, device: int) -> None:
        self.device, self.size, self.lock = device, 0, threading.Lock()
        self.memory: DeviceArray | None = None

    def get(self, size: int) -> Any:
        if self.memory is None or size > self.size:
            self.memory = None
            self.memory, self.size = DeviceArray((size,), "uint8", ("cuda", self.device)), size
        return self.memory._memory


_workspaces: dict[tuple[int, int], _Workspace] = {}
_lock = threading.Lock()


@contextlib.contextmanager
def scratch(device: int, stream: int, size: int) -> Iterator[Any]:
    """A workspace of device memory for one product in a stream; another thread's waits until its work was enqueued."""
    with _lock:
        workspace = _workspaces.setdefault((device, stream), _Workspace(device))
    with workspace.lock:
        yield workspace.get(size)

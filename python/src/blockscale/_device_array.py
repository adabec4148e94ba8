"""Arrays in GPU memory of the library's own: results for libraries without an allocator here, and their workspaces."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator

import numpy as np

from . import _arrays, _context
from ._errors import check
from ._library import ffi, lib

_TYPESTR = {"float32": "<f4", "float16": "<f2", "float64": "<f8", "uint8": "|u1", "int8": "|i1", "int64": "<i8",
            "int32": "<i4"}


class DeviceArray:
    """An array in a GPU's memory, without arithmetic: any library takes it by __cuda_array_interface__.

    shape, dtype (a name); device  the GPU's number; numpy()  a copy in host memory, which waits for the GPU."""

    __slots__ = ("shape", "dtype", "device", "nbytes", "_memory", "_stream", "__weakref__")

    def __init__(self, shape: tuple[int, ...], dtype: str, device: int, stream: int = 0) -> None:
        self.shape, self.dtype, self.device, self._stream = tuple(shape), dtype, device, stream
        self.nbytes = _arrays.elements(self.shape) * _arrays.SIZES[dtype]
        context = _context.context(("cuda", device))
        made = ffi.new("void **")
        check(lib.bsm_device_allocate(context, max(self.nbytes, 1), made))
        self._memory = ffi.gc(made[0], lambda memory: lib.bsm_device_release(context, memory))

    @classmethod
    def of_numpy(cls, x: Any, device: int = 0, stream: int = 0) -> "DeviceArray":
        """A copy of a NumPy array, which waits until it is there."""
        x = np.ascontiguousarray(x)
        it = cls(x.shape, x.dtype.name, device, stream)
        if it.nbytes:
            source = ffi.cast("void *", _arrays.numpy_pointer(x))
            check(lib.bsm_device_write(_context.context(("cuda", device), stream), it._memory, source, it.nbytes))
        return it

    def numpy(self) -> Any:
        """A copy of the numbers in host memory."""
        made = np.empty(self.shape, _arrays.numpy_dtype(self.dtype))
        if self.nbytes:
            context = _context.context(("cuda", self.device), self._stream)
            check(lib.bsm_device_read(context, ffi.cast("void *", _arrays.numpy_pointer(made)), self._memory,
                                      self.nbytes))
        return made

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        typestr = _TYPESTR.get(self.dtype)
        if typestr is None:
            typestr = "|u1" if _arrays.SIZES[self.dtype] == 1 else "<V2"
        return {"shape": self.shape, "typestr": typestr, "version": 3, "strides": None,
                "data": (int(ffi.cast("uintptr_t", self._memory)), False), "stream": self._stream or 1}

    def __repr__(self) -> str:
        return f"<blockscale.DeviceArray {self.dtype} {self.shape} on cuda:{self.device}>"


_workspaces: dict[tuple[int, int], "_Workspace"] = {}
_lock = threading.Lock()


class _Workspace:
    """Device memory for the work of one stream.  Growing waits for the GPU, as freeing memory does."""

    def __init__(self, device: int) -> None:
        self.device, self.size, self.lock = device, 0, threading.Lock()
        self.memory: DeviceArray | None = None

    def get(self, size: int) -> Any:
        if self.memory is None or size > self.size:
            self.memory = None
            self.memory, self.size = DeviceArray((size,), "uint8", self.device), size
        return self.memory._memory


@contextlib.contextmanager
def scratch(device: int, stream: int, size: int) -> Iterator[Any]:
    """A workspace of device memory for one product in a stream; another thread's waits until its work was enqueued."""
    with _lock:
        workspace = _workspaces.setdefault((device, stream), _Workspace(device))
    with workspace.lock:
        yield workspace.get(size)

"""Arrays of other libraries: where their bytes lie, and new ones of the same library and device.

Nothing here copies.  NumPy arrays and PyTorch tensors are read by their own attributes; any other array by
__cuda_array_interface__ or DLPack."""
from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from . import _dlpack
from ._errors import InvalidError

Array = Any     # of NumPy, PyTorch, CuPy, JAX, or of anything with DLPack or __cuda_array_interface__

CPU = ("cpu", 0)

SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "uint8": 1, "int8": 1, "bool": 1, "int16": 2,
         "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1,
         "float8_e8m0fnu": 1, "float4_e2m1fn": 1, "float4_e2m1fn_x2": 1, "float6_e2m3fn": 1, "float6_e3m2fn": 1}
ALIASES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64", "float": "float32",
           "half": "float16", "double": "float64"}
REAL_OF = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}     # the library's names
FORMAT_OF = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}


class View:
    """Where an array's elements lie.  `owner` keeps the memory alive; strides count elements."""

    __slots__ = ("pointer", "shape", "strides", "dtype", "device", "owner", "library", "stream")

    def __init__(self, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str,
                 device: tuple[str, int], owner: object, library: str, stream: int = 0) -> None:
        self.pointer, self.shape, self.strides, self.dtype = pointer, shape, strides, dtype
        self.device, self.owner, self.library, self.stream = device, owner, library, stream

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return SIZES[self.dtype]

    def contiguous(self) -> bool:
        """Whether the elements lie one behind the other, the last index running fastest."""
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides)):
            if size != 1 and stride != step:
                return size == 0 or 0 in self.shape
            step *= size
        return True


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of an array whose last index runs fastest."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


# PyTorch --------------------------------------------------------------------------------------------------------------

_torch_names: dict[Any, str] = {}


def torch() -> Any:
    """The module, if the program has imported it; this package never does by itself."""
    return sys.modules.get("torch")


def torch_names() -> dict[Any, str]:
    """Names of PyTorch's types, filled when they are first wanted."""
    if not _torch_names:
        module = torch()
        _torch_names.update({getattr(module, name): name for name in SIZES if hasattr(module, name)})
    return _torch_names


def where(device: tuple[str, int]) -> str:
    """A device in sentences: "cpu" or "cuda:0"."""
    return "cpu" if device[0] == "cpu" else f"{device[0]}:{device[1]}"


def is_torch(x: object) -> bool:
    """Whether x is a tensor of PyTorch."""
    module = sys.modules.get("torch")
    return module is not None and isinstance(x, module.Tensor)


def _of_torch(x: Any, name: str) -> View:
    dtype = torch_names().get(x.dtype)
    if dtype is None:
        raise InvalidError(f"{name} has the type {x.dtype}: use one of {', '.join(SIZES)}")
    device = x.device
    kind = device.type
    if kind not in ("cpu", "cuda") or x.layout is not torch().strided:
        raise InvalidError(f"{name} is a tensor of the device {device} and the layout {x.layout}: use a strided tensor "
                           "of the CPU or of an NVIDIA GPU")
    place = CPU if kind == "cpu" else ("cuda", device.index)
    return View(x.data_ptr(), tuple(x.shape), x.stride(), dtype, place, x, "torch")


# NumPy ----------------------------------------------------------------------------------------------------------------

def numpy_pointer(x: Any) -> int:
    """The address of a NumPy array's first element."""
    address: int = x.__array_interface__["data"][0]
    return address


def _strides_in_elements(strides: tuple[int, ...], size: int, name: str) -> tuple[int, ...]:
    if any(stride % size for stride in strides):
        raise InvalidError(f"{name} has strides of {strides} bytes, which are no multiples of its elements' {size}")
    return tuple(stride // size for stride in strides)


def _of_numpy(x: Any, name: str) -> View:
    dtype = x.dtype.name
    if dtype not in SIZES:
        raise InvalidError(f"{name} has the type {dtype}: use one of {', '.join(SIZES)}")
    if not x.dtype.isnative:
        raise InvalidError(f"{name} has bytes in the order of another machine ({x.dtype.str}): convert them")
    return View(numpy_pointer(x), x.shape, _strides_in_elements(x.strides, x.itemsize, name), dtype, CPU, x, "numpy")


# Others ---------------------------------------------------------------------------------------------------------------

_TYPESTR = {"f4": "float32", "f2": "float16", "f8": "float64", "u1": "uint8", "i1": "int8", "b1": "bool", "i2": "int16",
            "u2": "uint16", "i4": "int32", "u4": "uint32", "i8": "int64", "u8": "uint64"}


def _library_of(x: object) -> str:
    module = type(x).__module__.partition(".")[0]
    return {"cupy": "cupy", "jax": "jax", "jaxlib": "jax"}.get(module, "other")


def _of_cuda_interface(x: Any, name: str) -> View:
    interface = x.__cuda_array_interface__
    given = interface["typestr"]
    dtype = _TYPESTR.get(given[1:]) if given[0] in "<|" else None
    if dtype is None and given[1:] == "V2" and getattr(getattr(x, "dtype", None), "name", "") == "bfloat16":
        dtype = "bfloat16"
    if dtype is None:
        raise InvalidError(f"{name} has the type {given!r}: use one of {', '.join(_TYPESTR)} in this machine's order "
                           "of bytes, and 8-bit numbers as u1")
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    steps = contiguous_strides(shape) if strides is None else _strides_in_elements(tuple(strides), SIZES[dtype], name)
    pointer = interface["data"][0] or 0
    return View(pointer, shape, steps, dtype, ("cuda", _device_index(x)), x, _library_of(x),
                interface.get("stream") or 0)


def _device_index(x: Any) -> int:
    """The number of the GPU that an array lies on: CuPy's and Numba's arrays say it, others are taken to be on 0."""
    device = getattr(x, "device", None)
    for index in (getattr(device, "id", None), getattr(device, "index", None), device):
        if isinstance(index, int):
            return index
    return 0


def _of_dlpack(x: Any, name: str) -> View:
    found = _dlpack.read(x, name)
    strides = contiguous_strides(found.shape) if found.strides is None else found.strides
    return View(found.pointer, found.shape, strides, found.dtype, found.device, (x, found.owner), _library_of(x))


def view(x: Any, name: str) -> View:
    """Where x's elements lie; `name` is what errors call it."""
    if isinstance(x, np.ndarray):
        return _of_numpy(x, name)
    if is_torch(x):
        return _of_torch(x, name)
    own = getattr(x, "as_view", None)
    if own is not None:
        found: View = own()
        return found
    # JAX's interface of CUDA arrays does not say when the numbers will be there; its DLPack orders them before ours.
    if hasattr(x, "__cuda_array_interface__") and _library_of(x) != "jax":
        return _of_cuda_interface(x, name)
    if hasattr(x, "__dlpack__"):
        return _of_dlpack(x, name)
    raise InvalidError(f"{name} is a {type(x).__name__}: use an array of NumPy, PyTorch, CuPy or JAX, or one with "
                       "DLPack or __cuda_array_interface__")


def check_writable(x: Any, name: str) -> None:
    """Refuses NumPy arrays that must not be written to; other libraries do not say."""
    if isinstance(x, np.ndarray) and not x.flags.writeable:
        raise InvalidError(f"{name} is a read-only array")


def dtype_name(dtype: Any, name: str = "dtype") -> str:
    """The name of a type that is given as a name ("float32", "bf16"), by NumPy or by PyTorch."""
    found: str | None
    if isinstance(dtype, str):
        found = ALIASES.get(dtype, dtype)
    elif torch() is not None and isinstance(dtype, torch().dtype):
        found = torch_names().get(dtype)
    else:
        try:
            found = np.dtype(dtype).name
        except TypeError:
            found = None
    if found not in SIZES:
        raise InvalidError(f"{name}={dtype!r} is not known: use one of {', '.join(SIZES)}")
    return found


# New arrays -----------------------------------------------------------------------------------------------------------

_numpy_types: dict[str, Any] = {}


def numpy_dtype(dtype: str) -> Any:
    """NumPy's type of a name; those that NumPy itself does not have are ml_dtypes'."""
    if not _numpy_types:
        import ml_dtypes
        for name in SIZES:
            if name != "float4_e2m1fn_x2":
                _numpy_types[name] = np.dtype(getattr(ml_dtypes, name, None) or name)
    return _numpy_types[dtype]


def empty(library: str, device: tuple[str, int], shape: tuple[int, ...], dtype: str, stream: int = 0) -> Array:
    """A new array whose elements are not set.  The library's allocator is used, so that its stream order, its caches
    and its captured graphs hold; a library that has none here gets a DeviceArray, for work in `stream`."""
    if library == "torch":
        module = torch()
        where = "cpu" if device[0] == "cpu" else f"cuda:{device[1]}"
        return module.empty(shape, dtype=getattr(module, dtype), device=where)
    if device[0] == "cpu" and library == "jax":
        return _empty_jax(shape, dtype)
    if device[0] == "cpu":
        return np.empty(shape, numpy_dtype(dtype))
    if library == "cupy":
        module = sys.modules["cupy"]
        with module.cuda.Device(device[1]):
            return module.empty(shape, numpy_dtype(dtype))
    from ._device_array import DeviceArray
    return DeviceArray(shape, dtype, device, stream)


def zeros(library: str, device: tuple[str, int], shape: tuple[int, ...], stream: int = 0) -> Array:
    """A new array of zero bytes: for what has gaps that nothing writes."""
    if library == "jax" or (library not in ("torch", "cupy") and device[0] == "cuda"):
        from ._device_array import DeviceArray
        if device[0] == "cuda":
            return DeviceArray.of_numpy(np.zeros(shape, np.uint8), device, stream)
        return _empty_jax(shape, "uint8")            # its host memory begins as zeros
    made = empty(library, device, shape, "uint8", stream)
    made[...] = 0
    return made


def _empty_jax(shape: tuple[int, ...], dtype: str) -> Array:
    """An array of JAX over new memory, which is written before anybody has the array: JAX's own never change."""
    from ._device_array import DeviceArray
    memory = DeviceArray(shape, dtype, CPU)
    made = sys.modules["jax"].dlpack.from_dlpack(memory)
    if elements(shape) and view(made, "out").pointer != memory.as_view().pointer:
        raise InvalidError(f"JAX copied a new array of {dtype}: give an array of NumPy, or out=")
    return made


def empty_like_library_of(x: Array, shape: tuple[int, ...], dtype: str) -> Array:
    """A new array of x's library on x's device."""
    of = view(x, "x")
    return empty(of.library, of.device, shape, dtype, of.stream)


def fp32_scalar(library: str, device: tuple[str, int], value: float, stream: int = 0) -> Array:
    """A new fp32 array of one element.  On a GPU the library fills it in its current stream."""
    if library == "torch":
        module = torch()
        where = "cpu" if device[0] == "cpu" else f"cuda:{device[1]}"
        return module.full((1,), value, dtype=module.float32, device=where)
    if device[0] == "cpu":
        return np.full(1, value, np.float32)
    if library == "cupy":
        module = sys.modules["cupy"]
        with module.cuda.Device(device[1]):
            return module.full(1, value, np.float32)
    from ._device_array import DeviceArray
    return DeviceArray.of_numpy(np.full(1, value, np.float32), device, stream)


def elements(shape: tuple[int, ...]) -> int:
    """How many elements an array of that shape has."""
    return math.prod(shape)

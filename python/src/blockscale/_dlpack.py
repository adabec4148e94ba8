"""DLPack: reads the capsule that another library's __dlpack__ gives, without taking it over.

The structs are those of DLPack's dlpack.h, version 1: ABI numbers that every library agrees on."""
from __future__ import annotations

import ctypes
import threading
from typing import Any

import cffi  # type: ignore[import-untyped]

from ._errors import InvalidError

_ffi: Any = cffi.FFI()
_ffi.cdef("""
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct { void *data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape; int64_t *strides;
                 uint64_t byte_offset; } DLTensor;
typedef struct { DLTensor dl_tensor; void *manager_ctx; void *deleter; } DLManagedTensor;
typedef struct { uint32_t major, minor; void *manager_ctx; void *deleter; uint64_t flags; DLTensor dl_tensor;
               } DLManagedTensorVersioned;
""")

# (code, bits) of a type: its name here.
TYPES = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8", (1, 16): "uint16",
         (1, 32): "uint32", (1, 64): "uint64", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
         (4, 16): "bfloat16", (6, 8): "bool", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2",
         (14, 8): "float8_e8m0fnu"}
CODES = {name: number for number, name in TYPES.items()}
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13

_get = ctypes.pythonapi.PyCapsule_GetPointer
_get.restype, _get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is = ctypes.pythonapi.PyCapsule_IsValid
_is.restype, _is.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


class Found:
    """What a capsule says; the capsule, kept in `owner`, keeps the memory alive."""

    __slots__ = ("pointer", "shape", "strides", "dtype", "device", "owner")

    def __init__(self, tensor: Any, owner: object, name: str) -> None:
        kind = tensor.device.device_type
        if kind in (_CPU, _CUDA_HOST):
            self.device = ("cpu", 0)
        elif kind in (_CUDA, _CUDA_MANAGED):
            self.device = ("cuda", int(tensor.device.device_id))
        else:
            raise InvalidError(f"{name} lies on a device of DLPack's type {kind}: use the CPU or an NVIDIA GPU")
        key = (tensor.dtype.code, tensor.dtype.bits)
        if key not in TYPES or tensor.dtype.lanes != 1:
            raise InvalidError(f"{name} has DLPack's type (code {key[0]}, {key[1]} bits, {tensor.dtype.lanes} lanes): "
                               f"use one of {', '.join(CODES)}")
        rank = tensor.ndim
        self.dtype = TYPES[key]
        self.shape = tuple(tensor.shape[0:rank]) if rank else ()
        self.strides = None if tensor.strides == _ffi.NULL else tuple(tensor.strides[0:rank]) if rank else ()
        self.pointer = int(_ffi.cast("uintptr_t", tensor.data)) + int(tensor.byte_offset)
        self.owner = owner


def device_of(device: tuple[str, int]) -> tuple[int, int]:
    """DLPack's device."""
    return (_CPU, 0) if device[0] == "cpu" else (_CUDA, device[1])


# What was handed out, by the address of its struct, until the consumer calls the deleter.
_handed_out: dict[int, Any] = {}
_lock = threading.Lock()
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _let_go(managed: int) -> None:
    with _lock:
        _handed_out.pop(managed, None)


_delete = _DELETER(_let_go)


# A capsule that nobody took still has its first name: then its destructor ends it.
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


def _end(capsule: int) -> None:
    if _raw_is(capsule, b"dltensor"):
        _let_go(_raw_get(capsule, b"dltensor"))


_destroy = _DESTRUCTOR(_end)
_raw_is = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_raw_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR]
_NAME = ctypes.c_char_p(b"dltensor")     # a capsule keeps the pointer


def write(address: int, shape: tuple[int, ...], dtype: str, device: tuple[str, int], owner: object) -> Any:
    """A capsule for elements without gaps; owner lives until the consumer lets it go."""
    managed = _ffi.new("DLManagedTensor *")
    tensor = managed.dl_tensor
    tensor.data = _ffi.cast("void *", address)
    tensor.device.device_type, tensor.device.device_id = device_of(device)
    tensor.ndim = len(shape)
    tensor.dtype.code, tensor.dtype.bits = CODES[dtype]
    tensor.dtype.lanes = 1
    sizes = _ffi.new("int64_t[]", list(shape))
    steps = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        steps[axis] = steps[axis + 1] * shape[axis + 1]
    strides = _ffi.new("int64_t[]", steps)
    tensor.shape, tensor.strides = sizes, strides
    managed.deleter = _ffi.cast("void *", ctypes.cast(_delete, ctypes.c_void_p).value)
    place = int(_ffi.cast("uintptr_t", managed))
    with _lock:
        _handed_out[place] = (managed, sizes, strides, owner)
    return _new(place, _NAME, _destroy)


def _capsule(x: Any) -> Any:
    """The producer's capsule.  On a GPU the producer orders its work before the legacy default stream, which is where
    arrays of a library without a current stream are used."""
    arguments: dict[str, Any] = {}
    if hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) in (_CUDA, _CUDA_MANAGED):
        arguments["stream"] = 1
    try:
        return x.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:                    # a producer that is older than version 1
        return x.__dlpack__(**arguments)


def read(x: Any, name: str) -> Found:
    """What x's __dlpack__ says."""
    try:
        capsule = _capsule(x)
    except (BufferError, RuntimeError, ValueError) as error:
        raise InvalidError(f"{name} gives no DLPack: {error}") from error
    if _is(capsule, b"dltensor_versioned"):
        return Found(_ffi.cast("DLManagedTensorVersioned *", _get(capsule, b"dltensor_versioned")).dl_tensor, capsule,
                     name)
    if _is(capsule, b"dltensor"):
        return Found(_ffi.cast("DLManagedTensor *", _get(capsule, b"dltensor")).dl_tensor, capsule, name)
    raise InvalidError(f"{name} gives a DLPack capsule that is not one of a tensor")

"""Contexts of the C library, one for the CPU and one for each GPU and stream, and the current streams of other
libraries.

The first context of a GPU loads kernels and tests itself, which takes the GPU and cannot be done while a graph is being
captured.  All later ones of that GPU share what it loaded: one is made for each stream that arrays are quantized or
dequantized in, without any work on the GPU, so that it may happen during a capture.  Products take one context a GPU
and name the stream themselves."""
from __future__ import annotations

import sys
import threading
from typing import Any

from ._errors import InvalidError, check
from ._library import NULL, ffi, lib

_lock = threading.Lock()
_contexts: dict[tuple[str, int, int], Any] = {}
_threads = 0                # as set_threads was told; 0: as many as _default_threads
_default_threads = 0        # 0: as many as the library finds
generation = 0              # changes with what a plan was made for: the number of threads


def _create(device: tuple[str, int], stream: int) -> Any:
    options = ffi.new("bsm_context_options *")
    options.struct_size = ffi.sizeof("bsm_context_options")
    options.threads = (_threads or _default_threads) if device[0] == "cpu" else 0
    options.backend = lib.BSM_BACKEND_CPU if device[0] == "cpu" else lib.BSM_BACKEND_CUDA
    options.device = device[1]
    options.stream = ffi.cast("void *", stream)
    made = ffi.new("bsm_context **")
    check(lib.bsm_context_create(options, made))
    return made[0]


def context(device: tuple[str, int], stream: int = 0) -> Any:
    """The context of a device ("cpu", 0) or ("cuda", i), for work in `stream` (a CUstream as a number; 0: the default
    stream).  Contexts are kept: they are small."""
    key = (device[0], device[1], stream)
    found = _contexts.get(key)
    if found is not None:
        return found
    with _lock:
        if key not in _contexts:
            _contexts[key] = _create(device, stream)
        return _contexts[key]


def _set_threads(threads: int, default: int) -> None:
    global _threads, _default_threads, generation
    with _lock:
        for key, made in _contexts.items():
            if key[0] == "cpu":
                check(lib.bsm_context_set_threads(made, threads or default))
        _threads, _default_threads = threads, default
        generation += 1


def set_threads(threads: int) -> None:
    """How many threads of the CPU a call may use, 1 to 1024; 0: as many as the machine or OMP_NUM_THREADS gives, or
    with blockscale.torch as many as PyTorch uses.  No bit of any result depends on it.  A Plan keeps the number that it
    was made with."""
    if isinstance(threads, bool) or not 0 <= threads <= 1024:
        raise InvalidError(f"threads={threads} is not between 0 and 1024")
    _set_threads(threads, _default_threads)


def set_default_threads(threads: int) -> None:
    """What set_threads(0) means."""
    if threads != _default_threads:
        _set_threads(_threads, threads)


def threads() -> int:
    """How many threads of the CPU a call may use."""
    count: int = lib.bsm_context_threads(context(("cpu", 0)))
    return count


def current_stream(library: str, device: int, given: int = 0) -> int:
    """The stream that a library's next work on a GPU goes into, as a number; `given` is what the array itself says.
    Without either it is the legacy default stream."""
    if library == "torch":
        module: Any = sys.modules["torch"]
        raw = getattr(module._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:
            stream: int = raw(device)
            return stream
        stream = module.cuda.current_stream(device).cuda_stream
        return stream
    if library == "cupy":
        stream = sys.modules["cupy"].cuda.get_current_stream().ptr
        return stream
    return given


def settle(library: str, device: tuple[str, int], stream: int) -> None:
    """Waits, where arrays are JAX's and lie on a GPU: JAX tells nobody its stream, and would give the memory of an
    array that is let go to its own next work while ours still reads it."""
    if library == "jax" and device[0] == "cuda":
        check(lib.bsm_context_synchronize(context(device, stream)))


def pointer_or_null(address: int) -> Any:
    """A C pointer; NULL for 0."""
    return ffi.cast("void *", address) if address else NULL

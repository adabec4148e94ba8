"""CPU work on the threads of PyTorch's own loops.

PyTorch's threads are OpenMP's: after a loop they look out for the next one, awake, and keep other threads from their
processors meanwhile.  So the library's work is given to them (bsm_set_parallel), and uses as many as PyTorch does."""
from __future__ import annotations

import ctypes
import os

import torch

from .. import _context
from .._library import ffi, lib


def share() -> bool:
    """Gives the library the threads of the OpenMP that PyTorch was linked with; False if it has none."""
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    try:
        function = ctypes.CDLL(library).GOMP_parallel
    except (AttributeError, OSError):
        return False
    lib.bsm_set_parallel(ffi.cast("bsm_parallel *", ctypes.cast(function, ctypes.c_void_p).value))
    return True


shared = share()


def follow(device: tuple[str, int]) -> None:
    """Before work on a CPU: uses as many threads as PyTorch now does."""
    if shared and device[0] == "cpu":
        _context.set_default_threads(torch.get_num_threads())

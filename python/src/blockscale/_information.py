"""What there is: version, formats, layouts, devices."""
from __future__ import annotations

import dataclasses

from . import _context
from ._errors import check
from ._library import FORMATS, LAYOUTS, ffi, lib, text
from .matrix import format_of


@dataclasses.dataclass(frozen=True)
class FormatInfo:
    """A format: its element ("e2m1"), bits of a code, scale ("e8m0", "ue4m3", "unscaled"), elements a scale serves
    (0: none), bits of an element with its share of the scale, and the largest number of the element."""

    name: str
    element: str
    bits: int
    scale: str
    block: int
    bits_per_element: float
    max_value: float


@dataclasses.dataclass(frozen=True)
class LayoutInfo:
    """A scale layout: one line about it, and the offset of the scale (r, s) written out for R rows and S columns."""

    name: str
    about: str
    formula: str


@dataclasses.dataclass(frozen=True)
class Device:
    """Where products can be computed: kind "cpu" or "cuda", its number, its name; of a GPU the compute capability, the
    number of multiprocessors and the bytes of its memory."""

    kind: str
    index: int
    name: str
    capability: tuple[int, int] | None = None
    multiprocessors: int = 0
    memory_bytes: int = 0


def version() -> str:
    """The C library's version, "major.minor.patch"."""
    number: int = lib.bsm_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def formats() -> dict[str, FormatInfo]:
    """All formats by name, each with its element, scale and block: FormatInfo."""
    found = {}
    for form in FORMATS.values():
        element = lib.bsm_element_get(lib.bsm_format_get(form.number).element)
        found[form.name] = FormatInfo(form.name, form.element, form.bits, form.scale, form.block, form.bits_per_element,
                                      element.max_value)
    return found


def layouts() -> dict[str, LayoutInfo]:
    """All scale layouts by name, each with a line about it and its formula: LayoutInfo.  show_layout draws one."""
    return {name: LayoutInfo(name, text(lib.bsm_layout_about(number)) or "", text(lib.bsm_layout_formula(number)) or "")
            for name, number in LAYOUTS.items()}


def kernels(a_format: str, b_format: str, device: tuple[str, int] = ("cpu", 0)) -> list[str]:
    """Names of the kernels that run on a device, ("cpu", 0) or ("cuda", number), and serve products of a_format with
    b_format, best first.  explain() says which one a product takes, and why."""
    context = _context.context(device)
    numbers = [format_of(a_format, "a_format").number, format_of(b_format, "b_format").number]
    found, index = [], 0
    while (name := text(lib.bsm_kernel_name(index))) is not None:
        if lib.bsm_kernel_serves(context, index, *numbers):
            found.append(name)
        index += 1
    return found


def missing() -> str:
    """Why there is no GPU for this library; empty if there is one."""
    reason = text(lib.bsm_backend_missing(lib.BSM_BACKEND_CUDA)) or ""
    if reason:
        return reason
    if lib.bsm_device_count(lib.BSM_BACKEND_CUDA, ffi.new("int *")) != 0:
        return text(lib.bsm_last_error()) or ""
    return ""


def devices() -> list[Device]:
    """The CPU, and the NVIDIA GPUs that this build and this machine have."""
    found = [Device("cpu", 0, "CPU")]
    if missing():
        return found
    count = ffi.new("int *")
    check(lib.bsm_device_count(lib.BSM_BACKEND_CUDA, count))
    for index in range(count[0]):
        info = ffi.new("bsm_device_info *")
        info.struct_size = ffi.sizeof("bsm_device_info")
        check(lib.bsm_device_describe(lib.BSM_BACKEND_CUDA, index, info))
        found.append(Device("cuda", index, text(info.name) or "", (info.major, info.minor), info.multiprocessors,
                            info.memory_bytes))
    return found

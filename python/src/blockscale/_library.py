"""Finds and loads the C library, and gives the numbers behind its names.

The library is the first of: the file that the environment variable BLOCKSCALE_LIBRARY names; the one beside this
package (a wheel has it there); build/release/lib of the checkout that this package lies in."""
from __future__ import annotations

import os
from typing import Any

import cffi  # type: ignore[import-untyped]

from ._declarations import CDEF

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "libblockscale.so"

ffi: Any = cffi.FFI()
ffi.cdef(CDEF)


def candidates() -> list[str]:
    """Where the library may lie, in the order in which it is looked for."""
    named = os.environ.get("BLOCKSCALE_LIBRARY")
    if named:
        return [named]
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
    return [os.path.join(HERE, NAME), os.path.join(HERE, "lib", NAME),
            os.path.join(checkout, "build", "release", "lib", NAME)]


def load() -> tuple[Any, str]:
    """The library and its path.  ImportError names every place that was tried, and what is wrong with a library that
    is older or newer than this package."""
    for path in candidates():
        if not os.path.exists(path):
            continue
        try:
            found = ffi.dlopen(path)
        except OSError as error:
            raise ImportError(f"blockscale: {path} cannot be loaded: {error}") from error
        if found.bsm_version() != found.BSM_VERSION:
            raise ImportError(f"blockscale: {path} has version {found.bsm_version()}, this package was made for "
                              f"{found.BSM_VERSION}")
        return found, path
    raise ImportError("blockscale: no C library at " + " or ".join(candidates())
                      + "; build it with make, or name it in the environment variable BLOCKSCALE_LIBRARY")


lib, path = load()
NULL: Any = ffi.NULL


def text(pointer: Any) -> str | None:
    """A C string, None for NULL."""
    return None if pointer == NULL else ffi.string(pointer).decode("utf-8", "replace")


def _names(name_of: Any, count: int) -> dict[str, int]:
    found = ((text(name_of(number)), number) for number in range(count))
    return {name: number for name, number in found if name is not None}


class Format:
    """One row of the library's table of formats."""

    __slots__ = ("name", "number", "element", "bits", "scale", "block", "bits_per_element")

    def __init__(self, number: int) -> None:
        info = lib.bsm_format_get(number)
        element = lib.bsm_element_get(info.element)
        self.name: str = text(info.name) or ""
        self.number = number
        self.element: str = text(element.name) or ""
        self.bits: int = element.bits
        self.scale: str = text(lib.bsm_scale_name(info.scale)) or ""
        self.block: int = info.block
        self.bits_per_element: float = info.bits_per_element


FORMATS = {form.name: form for form in map(Format, range(1, lib.BSM_FORMAT_COUNT))}
FORMAT_OF_NUMBER = {form.number: form for form in FORMATS.values()}
LAYOUTS = _names(lib.bsm_layout_name, lib.BSM_LAYOUT_COUNT)
PACKINGS = _names(lib.bsm_packing_name, lib.BSM_PACKING_COUNT)
MAJORS = _names(lib.bsm_major_name, lib.BSM_MAJOR_COUNT)
SPARSITIES = _names(lib.bsm_sparsity_name, lib.BSM_SPARSITY_COUNT)
REALS = _names(lib.bsm_real_name, lib.BSM_REAL_COUNT)
RECIPES = _names(lib.bsm_recipe_name, lib.BSM_RECIPE_COUNT)
PRESETS = _names(lib.bsm_preset_name, lib.BSM_PRESET_COUNT)
ACTIVATIONS = _names(lib.bsm_activation_name, lib.BSM_ACT_COUNT)
COMPUTES = _names(lib.bsm_compute_name, lib.BSM_COMPUTE_COUNT)
ORDERS = _names(lib.bsm_order_name, lib.BSM_ORDER_COUNT)
# The library has no names for these: theirs are the enumerators' in lower case.
GATES = {"none": lib.BSM_GATE_NONE, "interleaved": lib.BSM_GATE_INTERLEAVED, "split": lib.BSM_GATE_SPLIT}
ROUNDINGS = {"nearest_even": lib.BSM_ROUND_NEAREST_EVEN, "stochastic": lib.BSM_ROUND_STOCHASTIC}
NONFINITES = {"propagate": lib.BSM_NONFINITE_PROPAGATE, "saturate": lib.BSM_NONFINITE_SATURATE}
PERS = {"tensor": lib.BSM_PER_TENSOR, "row": lib.BSM_PER_ROW, "column": lib.BSM_PER_COLUMN,
        "batch": lib.BSM_PER_BATCH}

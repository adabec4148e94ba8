"""Plain statements of what operators compute, for tests: decoded numbers and sums in fp64."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

FORMATS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "mxfp4_block16", "mxint8", "nvfp4")


def quantized(x: Tensor, form: str, **options: Any) -> tuple[Tensor, dict[str, Any], Tensor]:
    """Codes, the arguments that go with them as operand b, and their numbers in fp64."""
    codes, scales, scale = torch.ops.blockscale.quantize(x, form, **options)
    layout, divides = options.get("layout", "linear"), options.get("divides", False)
    numbers = torch.ops.blockscale.dequantize(codes, scales, form, tensor_scale=scale, layout=layout, divides=divides,
                                              columns=x.shape[-1], dtype=torch.float64)
    found = {"scales": scales, "tensor_scale": scale, "format": form, "layout": layout, "divides": divides}
    return codes, found, numbers


def operand(prefix: str, found: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of a product for the operand "a" or "b"."""
    return {f"{prefix}_{name}": value for name, value in found.items() if name != "scales"}


def bound(a: Tensor, b: Tensor) -> Tensor:
    """The most by which an fp32 sum of exact products may be wrong, in any order: K roundings of the sum of |a||b|."""
    k = a.shape[-1]
    return (k + 8) * 2.0 ** -24 * (a.abs().double() @ b.abs().double().mT) + 1e-40


def assert_product(result: Tensor, a: Tensor, b: Tensor, extra: Tensor | float = 0) -> None:
    """result is a b^T + extra within the bound of fp32 sums and one rounding to its own type."""
    exact = a.double() @ b.double().mT + extra
    unit = {torch.float32: 2.0 ** -24, torch.bfloat16: 2.0 ** -8, torch.float16: 2.0 ** -11}[result.dtype]
    allowed = bound(a, b) * (1 + unit) + unit * exact.abs() + (2.0 ** -25 if result.dtype is torch.float16 else 1e-40)
    error = (result.double() - exact).abs()
    worst = int((error - allowed).argmax())
    assert bool((error <= allowed).all()), (
        f"element {worst}: {result.flatten()[worst].item()} beside {exact.flatten()[worst].item()}, "
        f"allowed {allowed.flatten()[worst].item()}")

"""torchao's tensors, PyTorch's types of 4 and 8 bits, and scaled_mm."""
from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import blockscale
import blockscale.torch as bt
from reference import assert_product

functional = torch.nn.functional
T = functional.ScalingType
S = functional.SwizzleType


# torchao --------------------------------------------------------------------------------------------------------------

ELEMENTS = {"mxfp8_e4m3": torch.float8_e4m3fn, "mxfp8_e5m2": torch.float8_e5m2, "mxfp6_e2m3": "fp6_e2m3",
            "mxfp6_e3m2": "fp6_e3m2", "mxfp4": torch.float4_e2m1fn_x2}


@pytest.mark.parametrize("form", (*ELEMENTS, "nvfp4"))
@pytest.mark.parametrize("swizzled", (False, True))
@pytest.mark.parametrize("shape", ((40, 128), (2, 128, 64)))
def test_torchao_there_and_back(form: str, swizzled: bool, shape: tuple[int, ...]) -> None:
    pytest.importorskip("torchao")
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
    x = torch.randn(shape)
    if form == "nvfp4":
        theirs: Any = NVFP4Tensor.to_nvfp4(x, per_tensor_scale=torch.tensor(2.0 ** -7), is_swizzled_scales=swizzled)
    else:
        theirs = MXTensor.to_mx(x, ELEMENTS[form], is_swizzled_scales=swizzled)
    matrix = bt.from_torchao(theirs)
    assert matrix.format == form and matrix.shape == shape and matrix.layout == ("128x4" if swizzled else "linear")
    assert matrix.codes.data_ptr() == theirs.qdata.data_ptr() and matrix.scales.data_ptr() == theirs.scale.data_ptr()
    numbers = matrix.dequantize("float32")
    assert torch.equal(numbers, theirs.dequantize(torch.float32))
    back = bt.to_torchao(matrix)
    assert type(back) is type(theirs) and back.shape == theirs.shape
    assert back.qdata.data_ptr() == theirs.qdata.data_ptr() and back.scale.data_ptr() == theirs.scale.data_ptr()
    assert torch.equal(back.dequantize(torch.float32), numbers)


@pytest.mark.parametrize("form", ("mxfp8_e4m3", "mxfp4", "nvfp4"))
def test_ours_in_torchao(form: str) -> None:
    pytest.importorskip("torchao")
    matrix = blockscale.quantize(torch.randn(48, 128), form, layout="128x4")
    theirs = bt.to_torchao(matrix, torch.float32)
    numbers = matrix.dequantize("float64")                       # torchao rounds scale times tensor scale first
    assert bool(((theirs.dequantize(torch.float32).double() - numbers).abs() <= 2.0 ** -22 * numbers.abs()).all())
    x = torch.randn(5, 128)
    assert_product(blockscale.matmul(x, bt.from_torchao(theirs)), x, numbers)


def test_torchao_refused() -> None:
    pytest.importorskip("torchao")
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    with pytest.raises(blockscale.InvalidError, match="is a Tensor"):
        bt.from_torchao(torch.zeros(4))
    with pytest.raises(blockscale.InvalidError, match="transposed"):
        bt.from_torchao(MXTensor.to_mx(torch.randn(64, 64), torch.float8_e4m3fn).t())
    with pytest.raises(blockscale.UnsupportedError, match="layout 8x4"):
        bt.to_torchao(blockscale.quantize(torch.randn(64, 64), "mxfp4", layout="8x4"))
    with pytest.raises(blockscale.UnsupportedError, match="packing bit_stream"):
        bt.to_torchao(blockscale.quantize(torch.randn(64, 64), "mxfp6_e2m3"))


def test_types_of_pytorch_are_taken_without_a_copy() -> None:
    m = blockscale.quantize(torch.randn(16, 64), "nvfp4")
    codes, scales = bt.typed(m.codes, "nvfp4"), bt.typed_scales(m.scales, "nvfp4")
    assert codes.dtype is torch.float4_e2m1fn_x2 and scales.dtype is torch.float8_e4m3fn
    again = blockscale.from_parts(codes, scales, format="nvfp4", tensor_scale=m.tensor_scale)
    assert again.codes.data_ptr() == m.codes.data_ptr()
    assert torch.equal(again.dequantize("float32"), m.dequantize("float32"))
    e = blockscale.quantize(torch.randn(16, 64), "mxfp8_e5m2")
    assert bt.typed(e.codes, "mxfp8_e5m2").dtype is torch.float8_e5m2
    assert bt.typed_scales(e.scales, "mxfp8_e5m2").dtype is torch.float8_e8m0fnu


# scaled_mm ------------------------------------------------------------------------------------------------------------

def _fp8(rows: int, columns: int, dtype: torch.dtype = torch.float8_e4m3fn) -> Tensor:
    return torch.randn(rows, columns).to(dtype)


@pytest.mark.parametrize("out", (torch.bfloat16, torch.float32))
@pytest.mark.parametrize("kind", ("TensorWise", "RowWise"))
@pytest.mark.parametrize("bias", (False, True))
def test_scaled_mm_beside_pytorch(kind: str, out: torch.dtype, bias: bool) -> None:
    a, b = _fp8(32, 128), _fp8(64, 128)
    scale_a = torch.tensor([0.7]) if kind == "TensorWise" else torch.rand(32, 1)
    scale_b = torch.tensor([1.9]) if kind == "TensorWise" else torch.rand(1, 64)
    arguments = (a, b.t(), scale_a, getattr(T, kind), scale_b, getattr(T, kind))
    named: dict[str, Any] = {"output_dtype": out, "bias": torch.randn(64).to(out) if bias else None}
    try:
        theirs = functional.scaled_mm(*arguments, **named)
    except (RuntimeError, ValueError) as error:
        pytest.skip(f"PyTorch does not serve this here: {error}")
    ours = bt.scaled_mm(*arguments, **named)
    exact = (a.double() * scale_a) @ (b.double() * scale_b.t()).t() + (named["bias"].double() if bias else 0)
    unit = 2.0 ** -8 if out is torch.bfloat16 else 2.0 ** -24
    size = a.double().abs() @ b.double().abs().t() * scale_a * scale_b + exact.abs()
    allowed = unit * exact.abs() + 200 * 2.0 ** -24 * size
    assert ours.dtype is theirs.dtype is out
    assert bool(((ours.double() - exact).abs() <= allowed).all())
    assert bool(((ours.double() - theirs.double()).abs() <= 2 * allowed).all())


@pytest.mark.parametrize("form", ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp4", "nvfp4"))
@pytest.mark.parametrize("swizzle", ("NO_SWIZZLE", "SWIZZLE_32_4_4"))
@pytest.mark.parametrize("bias", (False, True))
def test_scaled_mm_of_block_formats(form: str, swizzle: str, bias: bool) -> None:
    layout = "linear" if swizzle == "NO_SWIZZLE" else "128x4"
    a = blockscale.quantize(torch.randn(48, 96), form, layout=layout)
    b = blockscale.quantize(torch.randn(56, 96), form, layout=layout)
    recipe: Any = [T.BlockWise1x16, T.TensorWise] if form == "nvfp4" else T.BlockWise1x32

    def scale(m: blockscale.Matrix) -> Any:
        blocks = bt.typed_scales(m.scales, form)
        return [blocks, m.tensor_scale] if form == "nvfp4" else blocks

    swizzles: Any = [getattr(S, swizzle), S.NO_SWIZZLE] if form == "nvfp4" else getattr(S, swizzle)
    added = torch.randn(56) if bias else None
    d = bt.scaled_mm(bt.typed(a.codes, form), bt.typed(b.codes, form).t(), scale(a), recipe, scale(b), recipe,
                     swizzles, swizzles, bias=added, output_dtype=torch.float32)
    assert_product(d, a.dequantize("float64"), b.dequantize("float64"), 0 if added is None else added.double())


def test_scaled_mm_of_one_level_nvfp4_and_mixed_recipes() -> None:
    a = blockscale.quantize(torch.randn(32, 64), "nvfp4", tensor_scale=1.0)
    b = _fp8(48, 64)
    d = bt.scaled_mm(bt.typed(a.codes, "nvfp4"), b.t(), bt.typed_scales(a.scales, "nvfp4"), T.BlockWise1x16,
                     torch.tensor(0.5), T.TensorWise, output_dtype=torch.float32)
    assert_product(d, a.dequantize("float64"), b.double() * 0.5)


@pytest.mark.parametrize("kinds", (("BlockWise1x128", "BlockWise1x128"), ("BlockWise1x128", "BlockWise128x128"),
                                   ("BlockWise128x128", "BlockWise1x128"), ("RowWise", "BlockWise128x128")))
def test_scaled_mm_of_blocks_of_128(kinds: tuple[str, str]) -> None:
    rows, columns = (200, 140), 384
    codes = [_fp8(count, columns) for count in rows]
    scales, factors = [], []
    for kind, count in zip(kinds, rows):
        if kind == "RowWise":
            scales.append(torch.rand(count, 1))
            factors.append(scales[-1])
        elif kind == "BlockWise1x128":
            scales.append(torch.rand(3, count).t())
            factors.append(scales[-1].repeat_interleave(128, 1))
        else:
            scales.append(torch.rand((count + 127) // 128, 4).t())          # K / 128 rounded up to 4
            factors.append(scales[-1][:3].t().repeat_interleave(128, 0)[:count].repeat_interleave(128, 1))
    d = bt.scaled_mm(codes[0], codes[1].t(), scales[0], getattr(T, kinds[0]), scales[1], getattr(T, kinds[1]),
                     output_dtype=torch.float32)
    assert_product(d, codes[0].double() * factors[0], codes[1].double() * factors[1])


def test_scaled_mm_compiles() -> None:
    a, b, one = _fp8(16, 64), _fp8(32, 64), torch.tensor(0.5)

    def product(x: Tensor) -> Tensor:
        return bt.scaled_mm(x, b.t(), one, T.TensorWise, one, T.TensorWise)

    assert torch.equal(torch.compile(product, fullgraph=True, backend="aot_eager")(a), product(a))


def test_scaled_mm_refused() -> None:
    a, b, one = _fp8(16, 64), _fp8(32, 64), torch.tensor(0.5)
    with pytest.raises(blockscale.InvalidError, match="column-major"):
        bt.scaled_mm(a, b.t().contiguous(), one, T.TensorWise, one, T.TensorWise)
    with pytest.raises(blockscale.InvalidError, match="mat_a has 64 columns, mat_b 32 rows"):
        bt.scaled_mm(a, b[:, :32].t(), one, T.TensorWise, one, T.TensorWise)
    if hasattr(S, "SWIZZLE_32_8"):
        with pytest.raises(blockscale.UnsupportedError, match="SWIZZLE_32_8"):
            bt.scaled_mm(a, b.t(), one, T.TensorWise, one, T.TensorWise, S.SWIZZLE_32_8)
    with pytest.raises(blockscale.UnsupportedError, match="mat_b is of torch.float32"):
        bt.scaled_mm(a, b.float().t(), one, T.TensorWise, one, T.TensorWise)
    with pytest.raises(blockscale.InvalidError, match="contraction_dim"):
        bt.scaled_mm(a, b.t(), one, T.TensorWise, one, T.TensorWise, contraction_dim=(0, 1))

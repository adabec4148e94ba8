"""torch.ops.blockscale: values, fakes, torch.compile, autocast, what is refused."""
from __future__ import annotations

import threading
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor
from torch.library import opcheck

import blockscale
import blockscale.torch
from blockscale.torch import _plans
from reference import FORMATS, assert_product, operand, quantized

ops = torch.ops.blockscale


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("layout", ("linear", "128x4", "8x4", "tiles:16x2"))
@pytest.mark.parametrize("columns", (64, 112))
def test_matmul_is_the_sum_of_decoded_numbers(form: str, layout: str, columns: int) -> None:
    a = torch.randn(7, columns, dtype=torch.bfloat16)
    codes, found, numbers = quantized(torch.randn(37, columns), form, layout=layout)
    d = ops.matmul(a, None, codes, found["scales"], out_dtype=torch.float32, **operand("b", found))
    assert_product(d, a, numbers)


@pytest.mark.parametrize("a_form", FORMATS)
@pytest.mark.parametrize("b_form", ("mxfp8_e4m3", "mxfp4", "nvfp4"))
def test_both_operands_quantized(a_form: str, b_form: str) -> None:
    a, found_a, a_numbers = quantized(torch.randn(9, 96), a_form)
    b, found_b, b_numbers = quantized(torch.randn(20, 96), b_form)
    d = ops.matmul(a, found_a["scales"], b, found_b["scales"], **operand("a", found_a), **operand("b", found_b))
    assert d.dtype is torch.bfloat16
    assert_product(d, a_numbers, b_numbers)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float16, torch.float64))
@pytest.mark.parametrize("form", FORMATS)
def test_quantize_has_the_bits_of_the_core(form: str, dtype: torch.dtype) -> None:
    x = torch.randn(5, 7, 96, dtype=dtype).transpose(0, 1)
    codes, scales, scale = ops.quantize(x, form)
    core = blockscale.quantize(x, form)
    assert torch.equal(codes, core.codes) and torch.equal(scales, core.scales)
    if core.tensor_scale is None:
        assert scale.numel() == 0
    else:
        assert torch.equal(scale, core.tensor_scale.reshape(1))
    one = numpy.asarray(blockscale.quantize(x[1].float().numpy(), form, tensor_scale=None if scale.numel() == 0 else
                                            float(scale)).codes)
    if dtype is not torch.float64:
        assert numpy.array_equal(codes[1].numpy(), one)


def test_quantize_options() -> None:
    x = torch.randn(32, 64)
    x[0, 0] = float("inf")
    for arguments in ({"recipe": "floor"}, {"recipe": "mse"}, {"rounding": "stochastic", "seed": 7},
                      {"nonfinite": "saturate"}, {"block_rows": 32}, {"clamp_high": 1.0}, {"smallest_scale": 120}):
        codes, scales, _ = ops.quantize(x, "mxfp4", **arguments)
        renamed: dict[str, Any] = {name: value for name, value in arguments.items() if name != "clamp_high"}
        if "clamp_high" in arguments:
            renamed["clamp"] = (0.0, 1.0)
        core = blockscale.quantize(x, "mxfp4", **renamed)
        assert torch.equal(codes, core.codes) and torch.equal(scales, core.scales), arguments
    given = torch.tensor([0.25])
    codes, scales, scale = ops.quantize(x[1:], "nvfp4", tensor_scale=given)
    assert torch.equal(scale, given)
    assert torch.equal(codes, blockscale.quantize(x[1:], "nvfp4", tensor_scale=0.25).codes)
    assert ops.quantize(x[1:], "nvfp4", compute_tensor_scale=False)[2].numel() == 0


def test_quantize_reads_any_strides_without_a_copy() -> None:
    x = torch.randn(64, 48).t()
    assert torch.equal(ops.quantize(x, "mxfp8")[0], ops.quantize(x.contiguous(), "mxfp8")[0])
    y = torch.randn(48, 128)[:, ::2]
    assert torch.equal(ops.quantize(y, "mxfp8")[0], ops.quantize(y.contiguous(), "mxfp8")[0])


@pytest.mark.parametrize("forms", (("mxfp8_e4m3", ""), ("nvfp4", ""), ("mxfp8_e4m3", "mxfp8_e5m2")))
def test_quantize_both(forms: tuple[str, str]) -> None:
    x = torch.randn(96, 160, dtype=torch.bfloat16)
    both = ops.quantize_both(x, *forms)
    for got, wanted in zip(both, (*ops.quantize(x, forms[0]), *ops.quantize(x.t(), forms[1] or forms[0]))):
        assert torch.equal(got, wanted)


def test_epilogue() -> None:
    a = torch.randn(6, 64, dtype=torch.bfloat16)
    codes, found, numbers = quantized(torch.randn(40, 64), "mxfp4")
    c, alpha, beta = torch.randn(6, 40), torch.tensor([0.5]), torch.tensor([-2.0])
    bias = torch.randn(40, dtype=torch.float16)
    d = ops.matmul(a, None, codes, found["scales"], alpha=alpha, beta=beta, c=c, bias=bias, out_dtype=torch.float32,
                   **operand("b", found))
    assert_product(d, a * 0.5, numbers, -2.0 * c.double() + bias.double())
    per_row = torch.rand(6)
    d = ops.matmul(a, None, codes, found["scales"], alpha=per_row, alpha_per="row", out_dtype=torch.float32,
                   **operand("b", found))
    assert_product(d, a.double() * per_row.double()[:, None], numbers)
    s = a.double() @ numbers.T
    gated = ops.matmul(a, None, codes, found["scales"], activation="silu", gate="split", out_dtype=torch.float32,
                       **operand("b", found))
    wanted = torch.nn.functional.silu(s[:, :20]) * s[:, 20:]
    assert torch.allclose(gated.double(), wanted, rtol=1e-5, atol=1e-5)
    clamped = ops.matmul(a, None, codes, found["scales"], activation="swiglu_clamped", gate="interleaved",
                         out_dtype=torch.float32, **operand("b", found))
    g, u = s[:, ::2].clamp(max=7), s[:, 1::2].clamp(-7, 7)
    assert torch.allclose(clamped.double(), g * torch.sigmoid(1.702 * g) * (u + 1), rtol=1e-5, atol=1e-5)


def test_batches_and_groups() -> None:
    weights, found, numbers = quantized(torch.randn(3, 24, 64), "mxfp4")
    a = torch.randn(3, 5, 64, dtype=torch.bfloat16)
    assert_product(ops.matmul(a, None, weights, found["scales"], **operand("b", found)), a, numbers)
    shared = ops.matmul(a[:1].expand(3, 5, 64), None, weights, found["scales"], **operand("b", found))
    assert_product(shared, a[:1].expand(3, 5, 64), numbers)
    rows = torch.tensor([4, 0, 7])
    x = torch.randn(11, 64, dtype=torch.bfloat16)
    bias = torch.randn(3, 24)
    d = ops.matmul_grouped(x, None, weights, found["scales"], rows, bias=bias, out_dtype=torch.float32,
                           **operand("b", found))
    assert_product(d[:4], x[:4], numbers[0], bias[0].double())
    assert_product(d[4:], x[4:], numbers[2], bias[2].double())
    alone = ops.matmul(x[4:], None, weights[2], found["scales"][2], bias=bias[2], out_dtype=torch.float32,
                       **operand("b", found))
    assert torch.equal(d[4:], alone)                     # no bit depends on the group


def test_pitched_and_typed_operands() -> None:
    codes, found, numbers = quantized(torch.randn(16, 64), "nvfp4")
    wide = torch.zeros(16, 50, dtype=torch.uint8)
    wide[:, 8:40] = codes
    pitched = wide[:, 8:40]
    a = torch.randn(4, 128, dtype=torch.bfloat16)[:, 32:96]
    d = ops.matmul(a, None, pitched.view(torch.float4_e2m1fn_x2), found["scales"].view(torch.float8_e4m3fn),
                   **operand("b", found))
    assert_product(d, a, numbers)
    odd = torch.randn(5, 33)
    codes, found, numbers = quantized(odd, "mxfp4")
    assert_product(ops.matmul(odd, None, codes, found["scales"], **operand("b", found)), odd, numbers)


@pytest.mark.parametrize("to", ("128x4", "8x4", "tiles:16x2", "cdna4_16"))
def test_convert_scales(to: str) -> None:
    scales = torch.randint(0, 255, (40, 6), dtype=torch.uint8)
    there = ops.convert_scales(scales, 40, 6, "linear", to)
    assert torch.equal(ops.convert_scales(there, 40, 6, to, "linear"), scales)


def _cases() -> list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]]:
    x, w = torch.randn(6, 64, dtype=torch.bfloat16), torch.randn(40, 64)
    cases: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = []
    cases.append(("quantize e4m3", ops.quantize.default, (w, "e4m3"), {"compute_tensor_scale": True}))
    for form in ("mxfp4", "nvfp4", "mxfp6_e2m3", "mxfp8_e4m3"):    # opcheck cannot compare inputs of 8-bit floats
        for layout in ("linear", "128x4"):
            cases.append((f"quantize {form} {layout}", ops.quantize.default, (w, form), {"layout": layout}))
            codes, scales, scale = ops.quantize(w, form, layout=layout)
            cases.append((f"dequantize {form} {layout}", ops.dequantize.default, (codes, scales, form),
                          {"tensor_scale": scale, "layout": layout}))
            cases.append((f"matmul {form} {layout}", ops.matmul.default, (x, None, codes, scales),
                          {"b_format": form, "b_tensor_scale": scale, "b_layout": layout}))
    codes, scales, scale = ops.quantize(torch.randn(3, 40, 64), "mxfp4")
    cases.append(("batch", ops.matmul.default, (torch.randn(3, 6, 64), None, codes, scales), {"b_format": "mxfp4"}))
    cases.append(("grouped", ops.matmul_grouped.default, (x, None, codes, scales, torch.tensor([1, 2, 3])),
                  {"b_format": "mxfp4", "activation": "silu", "gate": "split"}))
    cases.append(("both", ops.quantize_both.default, (torch.randn(64, 96), "mxfp8_e4m3"), {}))
    cases.append(("convert", ops.convert_scales.default, (scales[0], 40, 2, "linear", "128x4"), {}))
    cases.append(("pack", ops.pack.default, (codes[0], scales[0], "mxfp4"), {"rows": 64}))
    return cases


@pytest.mark.parametrize("name,operator,positional,named", [pytest.param(*case, id=case[0]) for case in _cases()])
def test_opcheck(name: str, operator: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    results = opcheck(operator, positional, named)
    assert set(results.values()) == {"SUCCESS"}, results


@pytest.mark.parametrize("dynamic", (False, True))
def test_compile_has_one_graph_and_the_same_bits(dynamic: bool) -> None:
    codes, scales, scale = ops.quantize(torch.randn(48, 64), "nvfp4")

    def layer(x: Tensor) -> Tensor:
        a, a_scales, a_scale = ops.quantize(x * 2, "mxfp8_e4m3")
        y = ops.matmul(a, a_scales, codes, scales, a_format="mxfp8_e4m3", b_format="nvfp4", b_tensor_scale=scale)
        return torch.relu(y) + ops.matmul(x, None, codes, scales, b_format="nvfp4", b_tensor_scale=scale,
                                          out_dtype=torch.bfloat16)

    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for rows in (3, 5, 8):
        x = torch.randn(rows, 64)
        assert torch.equal(compiled(x), layer(x))


def test_autocast_casts_numbers_and_nothing_else() -> None:
    codes, scales, scale = ops.quantize(torch.randn(16, 64), "nvfp4")
    x = torch.randn(4, 64)
    plain = ops.matmul(x.bfloat16(), None, codes, scales, b_format="nvfp4", b_tensor_scale=scale)
    with torch.autocast("cpu", torch.bfloat16):
        cast = ops.matmul(x, None, codes, scales, b_format="nvfp4", b_tensor_scale=scale)
        kept = ops.matmul(x.half(), None, codes, scales, b_format="nvfp4", b_tensor_scale=scale)
    assert cast.dtype is torch.bfloat16 and torch.equal(cast, plain)
    assert kept.dtype is torch.float16
    assert ops.matmul(x, None, codes, scales, b_format="nvfp4", b_tensor_scale=scale).dtype is torch.float32


def test_plans_are_made_once() -> None:
    codes, scales, _ = ops.quantize(torch.randn(16, 64), "mxfp4")
    x = torch.randn(4, 64)
    ops.matmul(x, None, codes, scales, b_format="mxfp4")
    before = len(_plans._cache.plans)
    for _ in range(3):
        ops.matmul(x, None, codes, scales, b_format="mxfp4")
    assert len(_plans._cache.plans) == before
    ops.matmul(torch.randn(5, 64), None, codes, scales, b_format="mxfp4")
    assert len(_plans._cache.plans) == before + 1


def test_threads() -> None:
    codes, scales, _ = ops.quantize(torch.randn(64, 128), "mxfp4")
    inputs = [torch.randn(16, 128) for _ in range(8)]
    wanted = [ops.matmul(x, None, codes, scales, b_format="mxfp4") for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            if not torch.equal(ops.matmul(inputs[number], None, codes, scales, b_format="mxfp4"), wanted[number]):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


@pytest.mark.parametrize("a_form", ("bf16", "mxfp4", "mxfp8_e4m3"))
def test_prepacked_weights_have_the_same_bits(a_form: str) -> None:
    codes, scales, _ = ops.quantize(torch.randn(64, 1024), "mxfp4")
    x = torch.randn(64, 1024, dtype=torch.bfloat16)
    a, a_scales, _ = (x, None, None) if a_form == "bf16" else ops.quantize(x, a_form)
    panels = ops.pack(codes, scales, "mxfp4", a_format=a_form, rows=64)
    assert panels.numel() > 0
    plain = ops.matmul(a, a_scales, codes, scales, a_format=a_form, b_format="mxfp4")
    packed = ops.matmul(a, a_scales, codes, scales, a_format=a_form, b_format="mxfp4", b_panels=panels)
    assert torch.equal(packed, plain)


def test_weights_are_packed_when_earlier_tensors_are_gone() -> None:
    for _ in range(20):                         # a plan is used again, whose last result's memory others have by now
        codes, scales, _ = ops.quantize(torch.randn(2, 512, 1024), "mxfp4")
        x, rows = torch.randn(64, 1024, dtype=torch.bfloat16), torch.tensor([60, 4])
        panels = ops.pack(codes, scales, "mxfp4", rows=64, grouped=True)
        d = ops.matmul_grouped(x, None, codes, scales, rows, b_format="mxfp4", b_panels=panels)
        one = ops.pack(codes[0], scales[0], "mxfp4", rows=64)
        assert torch.equal(ops.matmul(x, None, codes[0], scales[0], b_format="mxfp4", b_panels=one)[:60], d[:60])


def test_prepacked_weights_are_read_and_noticed_to_be_old() -> None:
    w = torch.randn(64, 1024)
    codes, scales, _ = ops.quantize(w, "mxfp4")
    a, a_scales, _ = ops.quantize(torch.randn(64, 1024), "mxfp4")

    def product(panels: Tensor | None) -> Tensor:
        d: Tensor = ops.matmul(a, a_scales, codes, scales, a_format="mxfp4", b_format="mxfp4", b_panels=panels)
        return d

    panels = ops.pack(codes, scales, "mxfp4", a_format="mxfp4", rows=64)
    poisoned = panels.clone()
    poisoned[256:] = 0
    assert not torch.equal(product(poisoned), product(None))
    codes.copy_(ops.quantize(-w, "mxfp4")[0])
    assert not _plans.is_current(panels, codes)
    assert torch.equal(product(panels), product(None))


def test_panels_of_codes_without_bytes_are_current_for_compiled_code() -> None:
    codes, panels = torch.zeros(1, dtype=torch.uint8).expand(2, 8, 16), torch.zeros(3, dtype=torch.uint8)
    _plans.remember(panels, codes)
    with torch.inference_mode():
        alias: Any = getattr(torch._C, "_dynamo").guards._reinterpret_tensor
        as_compiled = alias(codes, (2, 128), (0, 0), 0)
        assert as_compiled.is_inference() and _plans.is_current(panels, as_compiled)
        assert not _plans.is_current(panels, torch.zeros(1, dtype=torch.uint8).expand(2, 8, 16))


def test_what_is_refused_is_named() -> None:
    codes, scales, _ = ops.quantize(torch.randn(16, 64), "mxfp4")
    x = torch.randn(4, 64)
    wrong: list[tuple[str, Any]] = [
        ("b_format='mxfp5'", lambda: ops.matmul(x, None, codes, scales, b_format="mxfp5")),
        ("b_format is empty", lambda: ops.matmul(x, None, codes, scales)),
        ("b_scales is absent", lambda: ops.matmul(x, None, codes, None, b_format="mxfp4")),
        ("b_scales has the shape", lambda: ops.matmul(x, None, codes, scales[:, :1], b_format="mxfp4")),
        ("b_scales has 32 bytes", lambda: ops.matmul(x, None, codes, scales, b_format="mxfp4", b_layout="128x4")),
        ("32 elements a row", lambda: ops.matmul(x[:, :60], None, codes, scales, b_format="mxfp4")),
        ("a has 4 dimensions", lambda: ops.matmul(x[None, None], None, codes, scales, b_format="mxfp4")),
        ("a has a last stride", lambda: ops.matmul(torch.randn(64, 4).t(), None, codes, scales, b_format="mxfp4")),
        ("bias has the shape", lambda: ops.matmul(x, None, codes, scales, b_format="mxfp4", bias=torch.zeros(15))),
        ("alpha is of", lambda: ops.matmul(x, None, codes, scales, b_format="mxfp4", alpha=torch.ones(3))),
        ("out_dtype=torch.int32", lambda: ops.matmul(x, None, codes, scales, b_format="mxfp4", out_dtype=torch.int32)),
        ("activation='tanh'", lambda: ops.matmul(x, None, codes, scales, b_format="mxfp4", activation="tanh")),
        ("x is of torch.int64", lambda: ops.quantize(torch.ones(4, 32, dtype=torch.int64), "mxfp4")),
        ("recipe='best'", lambda: ops.quantize(x, "mxfp4", recipe="best")),
        ("group_rows is of", lambda: ops.matmul_grouped(x, None, codes[None], scales[None],
                                                        torch.tensor([4], dtype=torch.int32), b_format="mxfp4")),
    ]
    for sentence, call in wrong:
        with pytest.raises(blockscale.InvalidError) as error:
            call()
        assert sentence in str(error.value), (sentence, str(error.value))

"""Linear, Experts, quantize_: values, state, copies, torch.compile, prepacked weights."""
from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import blockscale
import blockscale.torch as bt
from reference import assert_product

WEIGHTS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "mxint8", "nvfp4", "e4m3", "e5m2")


@pytest.mark.parametrize("form", WEIGHTS)
@pytest.mark.parametrize("convention", ("modelopt", "compressed_tensors"))
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float16))
def test_linear_is_the_product_with_the_decoded_weight(form: str, convention: str, dtype: torch.dtype) -> None:
    linear = nn.Linear(128, 96, dtype=dtype)
    layer = bt.Linear.from_float(linear, form, convention=convention)
    x = torch.randn(3, 5, 128, dtype=dtype)
    with torch.no_grad():
        y = layer(x)
    numbers = layer.dequantize(torch.float64)
    assert y.shape == (3, 5, 96) and y.dtype is dtype
    assert_product(y.view(15, 96), x.view(15, 128), numbers, linear.bias.detach().double())
    worst = (numbers - linear.weight.detach().double()).abs().max() / linear.weight.detach().abs().max()
    assert worst < {"e": 0.13, "m": 0.2, "n": 0.2}[form[0]]


@pytest.mark.parametrize("compiled", (False, True))
@pytest.mark.parametrize("form", ("mxfp4", "nvfp4", "e4m3"))
def test_gradients_flow_through_linear(form: str, compiled: bool) -> None:
    layer: Any = bt.Linear.from_float(nn.Linear(64, 48), form)
    function = torch.compile(layer, fullgraph=True, backend="aot_eager") if compiled else layer
    x = torch.randn(3, 5, 64, requires_grad=True)
    y = function(x)
    gradient = torch.randn_like(y)
    y.backward(gradient)
    assert x.grad is not None and torch.allclose(x.grad, gradient @ layer.dequantize(), rtol=1e-5, atol=1e-5)
    assert torch.allclose(layer.bias.grad, gradient.sum((0, 1)), rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        assert torch.equal(layer(x), y)
    with torch.autocast("cpu", torch.bfloat16):
        x.grad = None
        function(x).sum().backward()
        assert x.grad is not None and x.grad.dtype is torch.float32


@pytest.mark.parametrize("activations", ("mxfp8_e4m3", "nvfp4", "mxfp4"))
def test_activations_are_quantized_by_rows(activations: str) -> None:
    layer = bt.Linear.from_float(nn.Linear(64, 48, bias=False), "mxfp4", activations=activations)
    x = torch.randn(7, 64, dtype=torch.bfloat16)
    seen = blockscale.quantize(x, activations).dequantize("float64")
    assert_product(layer(x), seen, layer.dequantize(torch.float64))


def _model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 64, bias=False), nn.Linear(64, 50))


def test_quantize_replaces_what_the_filter_says() -> None:
    model = _model()
    assert bt.quantize_(model, "mxfp4", lambda module, name: name != "3") == ["0", "2"]
    assert [type(module) for module in model] == [bt.Linear, nn.SiLU, bt.Linear, nn.Linear]
    named = nn.ModuleDict({"lm_head": nn.Linear(64, 64), "router": nn.Linear(64, 8), "up": nn.Linear(64, 64),
                           "odd": nn.Linear(33, 64)})
    assert bt.quantize_(named, "nvfp4") == ["up"]
    with pytest.raises(blockscale.InvalidError, match="Linear.from_float"):
        bt.quantize_(nn.Linear(64, 64), "mxfp4")
    with pytest.raises(blockscale.InvalidError, match="in_features=33 is no multiple of 32"):
        bt.Linear.from_float(named["odd"], "mxfp4")      # type: ignore[arg-type]
    with pytest.raises(blockscale.InvalidError, match="format='fp32'"):
        bt.quantize_(_model(), "fp32")


class _Attention(nn.Module):
    """q, k and v of one tensor, or q of another one than k and v."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(64, 96, bias), nn.Linear(64, 32, bias)
        self.v_proj, self.o_proj = nn.Linear(64, 32, bias), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
        other = x if memory is None else memory
        return torch.cat([self.q_proj(x), self.k_proj(other), self.v_proj(other)], -1)


@pytest.mark.parametrize("bias", (False, True))
@pytest.mark.parametrize("form", ("mxfp4", "nvfp4"))
def test_fused_layers_are_one_product_with_the_same_numbers(form: str, bias: bool) -> None:
    torch.manual_seed(4)
    plain = _Attention(bias).bfloat16()
    if form == "nvfp4":
        for layer in (plain.q_proj, plain.k_proj, plain.v_proj):     # then each has the tensor scale of all
            layer.weight.data[0, 0] = 1.0
    fused = copy.deepcopy(plain)
    assert bt.quantize_(plain, form) == ["q_proj", "k_proj", "v_proj", "o_proj"]
    assert bt.quantize_(fused, form, fuse=True) == ["q_proj", "k_proj", "v_proj", "o_proj"]
    joined = fused.q_proj.joined
    assert type(joined) is bt.Linear and joined.weight.shape[0] == 160 and type(fused.o_proj) is bt.Linear
    calls: list[int] = []
    joined.register_forward_hook(lambda *_: calls.append(1))
    x, memory = torch.randn(2, 3, 64).bfloat16(), torch.randn(2, 3, 64).bfloat16()
    assert torch.equal(fused(x), plain(x)) and len(calls) == 1
    assert torch.equal(fused(x), plain(x)) and len(calls) == 2       # nothing is left of the former call
    assert torch.equal(fused(x, memory), plain(x, memory)) and len(calls) == 4
    copied = copy.deepcopy(fused)
    assert torch.equal(copied(x), plain(x)) and copied.q_proj.joined is not joined and len(calls) == 4 + 1
    fused.q_proj(x)
    x.mul_(2)                                                        # written since: not the former result
    assert torch.equal(fused.k_proj(x), plain.k_proj(x))


def test_layers_that_differ_are_not_fused() -> None:
    model = _Attention(False)
    model.k_proj = nn.Linear(32, 32, bias=False)
    bt.quantize_(model, "mxfp4", fuse=True)
    assert all(type(layer) is bt.Linear for layer in model.children())
    model = _Attention(False)
    bt.quantize_(model, "mxfp4", lambda module, name: name != "v_proj", fuse=True)
    assert type(model.q_proj) is bt.Linear and type(model.v_proj) is nn.Linear


@pytest.mark.parametrize("form", ("mxfp4", "nvfp4", "mxfp8_e4m3", "e4m3"))
def test_state_is_saved_copied_and_loaded(form: str, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    model = _model()
    bt.quantize_(model, form, prepack=True)
    x = torch.randn(64, 64)
    with torch.no_grad():
        wanted = model(x)
        assert torch.equal(copy.deepcopy(model)(x), wanted)
        file = io.BytesIO()
        torch.save(model, file)
        assert len(file.getvalue()) < 40000                  # prepacked copies are not saved
        file.seek(0)
        assert torch.equal(torch.load(file, weights_only=False)(x), wanted)
        path = str(tmp_path / "model.safetensors")
        safetensors.save_file(model.state_dict(), path)
        other = _model()
        bt.quantize_(other, form)
        other.load_state_dict(safetensors.load_file(path))
        assert torch.equal(other(x), wanted)
        other.load_state_dict(model.state_dict(), assign=True)
        assert torch.equal(other(x), wanted)
    assert len(_open(path)) == 3


def _open(path: str) -> list[str]:
    """Names of the weights that the library finds in a file."""
    opener = getattr(blockscale, "open", None)
    if opener is None:
        pytest.skip("blockscale.open is not there")
    with opener(path) as checkpoint:
        return [name for name, weight in checkpoint.items() if weight.convention == "modelopt"]


@pytest.mark.parametrize("form", ("mxfp4", "nvfp4", "mxfp8_e4m3"))
def test_casts_leave_codes_and_scales_alone(form: str) -> None:
    model = _model()
    bt.quantize_(model, form)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.to(torch.bfloat16)
    for name, tensor in model.state_dict().items():
        if name.endswith("bias"):
            assert tensor.dtype is torch.bfloat16
        else:
            assert tensor.dtype is before[name].dtype
            assert torch.equal(tensor.reshape(-1).view(torch.uint8), before[name].reshape(-1).view(torch.uint8))
    with torch.no_grad():
        assert model(torch.randn(2, 64, dtype=torch.bfloat16)).dtype is torch.bfloat16
    meta = copy.deepcopy(model).to("meta")
    assert all(tensor.is_meta for tensor in meta.state_dict().values())


def test_prepacked_copies_are_made_once_and_again_after_a_write() -> None:
    layer = bt.Linear.from_float(nn.Linear(1024, 64, bias=False), "mxfp4", prepack=True, activations=None)
    x = torch.randn(64, 1024, dtype=torch.bfloat16)
    first = layer(x)
    kept = layer.panels["weight"][1]
    layer(x)
    assert layer.panels["weight"][1] is kept
    layer.codes.copy_(bt.Linear.from_float(nn.Linear(1024, 64, bias=False), "mxfp4").codes)
    second = layer(x)
    assert layer.panels["weight"][1] is not kept and not torch.equal(first, second)
    plain = bt.Linear(1024, 64, "mxfp4", bias=False, prepack=False)
    plain.load_state_dict(layer.state_dict())
    assert torch.equal(plain(x), second) and plain.panels == {}
    moved = layer.panels["weight"][1]
    layer.to("cpu")
    assert layer.panels == {}
    layer.load_state_dict(plain.state_dict())
    assert torch.equal(layer(x), second) and layer.panels["weight"][1] is not moved
    assert bt.prepack_(nn.Sequential(layer, plain)) == layer.panels["weight"][1].numel() > 0


def test_compile_is_one_graph_with_the_same_bits() -> None:
    model = _model()
    bt.quantize_(model, "mxfp4", prepack=True)
    model.requires_grad_(False)
    bt.prepack_(model, torch.float32)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (2, 9, 40):
        x = torch.randn(rows, 64)
        assert torch.equal(compiled(x), model(x))


# Experts --------------------------------------------------------------------------------------------------------------

def _experts(form: str, **options: Any) -> tuple[bt.Experts, Tensor, Tensor]:
    layer = bt.Experts(5, 64, 96, form, **options)
    gate_up, down = torch.randn(5, 192, 64), torch.randn(5, 64, 96) / 8
    layer.set_weight("gate_up_proj", gate_up)
    layer.set_weight("down_proj", down)
    if layer.gate_up_proj_bias is not None and layer.down_proj_bias is not None:
        nn.init.normal_(layer.gate_up_proj_bias)
        nn.init.normal_(layer.down_proj_bias)
    return layer.requires_grad_(False), gate_up, down


def _reference(layer: bt.Experts, x: Tensor, indices: Tensor, weights: Tensor) -> Tensor:
    """Expert by expert and token by token, in fp64."""
    gate_up, down = layer.dequantize("gate_up_proj").double(), layer.dequantize("down_proj").double()
    result = torch.zeros(x.shape, dtype=torch.float64)
    for token in range(x.shape[0]):
        for place in range(indices.shape[1]):
            e = int(indices[token, place])
            h = gate_up[e] @ x[token].double()
            if layer.gate_up_proj_bias is not None:
                h = h + layer.gate_up_proj_bias[e].double()
            if layer.gate == "interleaved":
                g, u = h[::2].clamp(max=7), h[1::2].clamp(-7, 7)
                h = g * torch.sigmoid(1.702 * g) * (u + 1)
            else:
                half = h.shape[0] // 2
                h = nn.functional.silu(h[:half]) * h[half:]
            y = down[e] @ h
            if layer.down_proj_bias is not None:
                y = y + layer.down_proj_bias[e].double()
            result[token] += weights[token, place].double() * y
    return result


@pytest.mark.parametrize("form", ("mxfp4", "nvfp4", "mxfp8_e4m3", "mxfp6_e2m3"))
@pytest.mark.parametrize("options", ({}, {"activation": "silu", "gate": "split", "bias": False}))
def test_experts(form: str, options: dict[str, Any]) -> None:
    layer, _, _ = _experts(form, **options)
    x = torch.randn(11, 64)
    indices = torch.stack([torch.randperm(5)[:2] for _ in range(11)])
    indices[indices == 3] = 1                                # an expert without tokens, and one twice for a token
    weights = torch.rand(11, 2)
    y = layer(x, indices, weights)
    wanted = _reference(layer, x, indices, weights)
    assert torch.allclose(y.double(), wanted, rtol=2e-5, atol=2e-5 * float(wanted.abs().max()))
    assert torch.equal(layer(x[:4], indices[:4], weights[:4]), y[:4])       # no bit depends on other tokens
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x, indices, weights), y)
    again = bt.Experts(5, 64, 96, form, **options)
    again.load_state_dict(copy.deepcopy(layer).state_dict())
    assert torch.equal(again(x, indices, weights), y)


def test_experts_prepacked_have_the_same_bits() -> None:
    layer, _, _ = _experts("mxfp4", prepack=True)
    x, indices = torch.randn(80, 64), torch.randint(0, 5, (80, 2))
    y = layer(x, indices, torch.rand(80, 2))
    torch.manual_seed(20261123)
    plain, _, _ = _experts("mxfp4", prepack=False)
    x, indices = torch.randn(80, 64), torch.randint(0, 5, (80, 2))
    assert torch.equal(plain(x, indices, torch.rand(80, 2)), y)
    assert plain.panels == {} and (layer.panels or bt.prepack_(layer) >= 0)

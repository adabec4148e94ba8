"""bench/model/accuracy.py: its layers are the products that they stand for, and its table has every row."""
import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest
import torch

import blockscale

BENCH = pathlib.Path(__file__).resolve().parents[3] / "bench"


def load():
    """The script as a module, with bench on the path for what it imports."""
    sys.path.insert(0, str(BENCH))
    try:
        spec = importlib.util.spec_from_file_location("accuracy", BENCH / "model" / "accuracy.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCH))
    return module


accuracy = load()


def numbers(parts, form):
    codes, scales, scale = parts
    return torch.ops.blockscale.dequantize(codes, scales, form, tensor_scale=scale).double()


@pytest.mark.parametrize("rotated", (False, True))
@pytest.mark.parametrize("activations", (False, True))
@pytest.mark.parametrize("form, recipe", accuracy.ROWS)
def test_layer_is_the_product_of_its_numbers(form, recipe, activations, rotated):
    torch.manual_seed(3)
    linear = torch.nn.Linear(64, 48)
    x = torch.randn(5, 64, dtype=torch.bfloat16)
    layer = accuracy.QuantizedLinear(linear, form, recipe, activations, rotated)
    with torch.no_grad():
        y = layer(x).double()
    rows = layer.rotate(x).to(torch.bfloat16)
    a = numbers(layer.quantize(rows), form) if activations else rows.double()
    wanted = a @ numbers(layer.b, form).T + linear.bias.detach().double()
    assert (y - wanted).abs().max() <= 2.0 ** -8 * wanted.abs().max()      # y is rounded to bf16


def test_rotation_changes_codes_but_not_the_product():
    torch.manual_seed(4)
    linear = torch.nn.Linear(64, 48, bias=False)
    x = torch.randn(5, 64, dtype=torch.bfloat16)
    plain, turned = (accuracy.QuantizedLinear(linear, "mxint8", "rceil", True, rotated) for rotated in (False, True))
    with torch.no_grad():
        exact = x.float() @ linear.weight.T
        assert not torch.equal(plain.b[0], turned.b[0])
        assert (turned(x).float() - exact).norm() <= 0.02 * exact.norm()
    q = accuracy.rotation(torch.device("cpu"))
    assert torch.allclose(q @ q.T, torch.eye(accuracy.ROTATED), atol=1e-6)


def test_model_is_whole_again_after_a_row():
    model = accuracy.train_gpt.GPT(1, 64, 2, 32)
    before = {name: id(module) for name, module in model.named_modules()}
    replaced = accuracy.quantized(model, "mxfp4", "mse", True, True)
    assert [name for name, _ in replaced] == ["blocks.0.qkv", "blocks.0.out", "blocks.0.up", "blocks.0.down"]
    assert type(model.blocks[0].up) is accuracy.QuantizedLinear and type(model.head) is torch.nn.Linear
    for name, module in replaced:
        accuracy.put(model, name, module)
    assert {name: id(module) for name, module in model.named_modules()} == before


def test_run_writes_every_row(tmp_path):
    text = tmp_path / "text"
    text.write_bytes(b"a text that says the same again and again, and again. " * 200)
    done = subprocess.run(
        [sys.executable, str(BENCH / "model" / "accuracy.py"), "--text", str(text), "--out", str(tmp_path / "o"),
         "--device", "cpu", "--steps", "30", "--layers", "1", "--width", "64", "--heads", "2", "--length", "32",
         "--batch", "4", "--validation", "2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "o.json").read_text())["rows"]
    assert len(rows) == 1 + 4 * len(accuracy.ROWS)
    assert (tmp_path / "o.md").read_text().count("\n") == 3 + 2 * len(accuracy.ROWS)
    assert (tmp_path / "o.svg").read_text().count("<rect") == 1 + 2 * len(accuracy.ROWS)
    assert set(blockscale.formats()) >= {row["format"] for row in rows[1:]}

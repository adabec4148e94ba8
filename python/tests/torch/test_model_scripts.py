"""bench/model/decode.py and cpu.py, on models so small that they run in a moment."""
import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest
import torch

pytest.importorskip("transformers", reason="transformers is not installed")

MODEL = pathlib.Path(__file__).resolve().parents[3] / "bench" / "model"


def load(name):
    spec = importlib.util.spec_from_file_location(f"bench_model_{name}", MODEL / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


decode, cpu = load("decode"), load("cpu")


def test_window_holds_the_last_tokens():
    place = torch.zeros(1, dtype=torch.int64)
    window = decode.Place(4)
    window.start(torch.zeros(1, 1, 0, 2), place)
    for token in range(7):
        place.fill_(token)
        keys, values = window.update(torch.full((1, 1, 1, 2), float(token)), torch.full((1, 1, 1, 2), -float(token)))
    assert sorted(keys[0, 0, :, 0].tolist()) == [3, 4, 5, 6] and torch.equal(values, -keys)


@torch.inference_mode()
@pytest.mark.parametrize("attention", ("sdpa", "grouped"))
def test_step_decodes_what_the_model_decodes(attention):
    """A step behind a prompt's cache chooses the tokens that a pass over prompt and token chooses."""
    torch.manual_seed(5)
    model = decode.make("tiny-llama", "cpu").float()
    prompt = torch.randint(0, 96, (2, 9))
    decoder = decode.Decoder(model, 2, 8, False)
    decoder.attention = attention
    cache = model(input_ids=prompt[:, :8], use_cache=True).past_key_values
    for layer, full in zip(decoder.cache.layers, cache.layers):
        layer.keys, layer.values = (torch.zeros_like(tensor, dtype=torch.float32)
                                    for tensor in (layer.keys, layer.values))
        layer.keys[:, :, :8], layer.values[:, :, :8] = full.keys, full.values
    decoder.ids.copy_(prompt[:, 8:])
    decoder.step()
    assert torch.equal(decoder.ids, model(input_ids=prompt).logits[:, -1:].argmax(-1))
    assert int(decoder.place) == 9 and model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("model, ways", (("tiny-llama", {"bf16", "nvfp4", "mxfp4", "mxfp8_e4m3"}),
                                         ("tiny-gpt-oss", {"bf16 grouped_mm", "bf16 batched_mm", "mxfp4"})))
def test_every_cell_is_measured(model, ways, tmp_path):
    done = subprocess.run([sys.executable, str(MODEL / "decode.py"), "--model", model, "--device", "cpu", "--out",
                           str(tmp_path / "o"), "--batches", "3", "--prompts", "8,40", "--prefill", "16",
                           "--experts", "4"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    cells = json.loads((tmp_path / "o.json").read_text())["cells"]
    assert {cell["way"] for cell in cells} == ways and len(cells) == (6 + ("oss" in model)) * len(ways)
    memory = {cell["way"]: cell["bytes"] for cell in cells if cell["what"] == "memory"}
    assert all(cell["quantized_here"] == cell["quantized_in_file"] for cell in cells if cell["what"] == "memory")
    assert memory["mxfp4"] < min(size for way, size in memory.items() if way.startswith("bf16"))


@torch.inference_mode()
def test_ways_are_the_model_in_other_formats():
    import transformers
    torch.manual_seed(6)
    model = transformers.BertModel(transformers.BertConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4, vocab_size=96)).eval()
    ids = torch.randint(0, 96, (3, 12))
    exact = cpu.embeddings(model, ids)
    least = {"torch fp32": 0.999999, "torch bf16": 0.999, "mxfp8_e4m3": 0.999, "nvfp4": 0.98, "mxfp4": 0.97}
    models = cpu.ways(model, None, True)
    assert len(models) == 8
    for way, other in models.items():
        cosine = (cpu.embeddings(other, ids) * exact).sum(-1).min()
        assert cosine > least[way.removesuffix(", inputs too")] and (way == "torch fp32" or cosine < 0.9999999)
    sizes = {way: cpu.weight_bytes(other) for way, other in models.items()}
    assert sizes["mxfp4"] < sizes["nvfp4"] < sizes["mxfp8_e4m3"] < sizes["torch bf16"] < sizes["torch fp32"]

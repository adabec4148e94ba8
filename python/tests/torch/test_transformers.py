"""Models of transformers: quantized while they are loaded, saved and loaded again; checkpoints of others."""
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import blockscale  # noqa: E402
import blockscale.torch as bt  # noqa: E402
import blockscale.torch.transformers as bst  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")      # of transformers and of what it imports
SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "vocab_size": 96, "max_position_embeddings": 64}
TOKENS = torch.arange(14).reshape(2, 7) * 5


def _config(kind: str) -> Any:
    if kind == "llama":
        return transformers.LlamaConfig(intermediate_size=96, tie_word_embeddings=False, **SIZES)
    if kind == "mixtral":
        return transformers.MixtralConfig(intermediate_size=32, num_local_experts=4, num_experts_per_tok=2, **SIZES)
    return transformers.GptOssConfig(intermediate_size=32, head_dim=16, num_local_experts=4, num_experts_per_tok=2,
                                     sliding_window=16, **SIZES)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders of small models with random fp32 weights, large enough that experts' gates reach their limits."""
    torch.manual_seed(1)
    folders = {}
    for kind in ("llama", "mixtral", "gpt_oss"):
        model = transformers.AutoModelForCausalLM.from_config(_config(kind), dtype=torch.float32)
        for name, tensor in model.named_parameters():
            if "norm" not in name:
                nn.init.normal_(tensor, std=0.2)
        folders[kind] = str(tmp_path_factory.mktemp(kind))
        model.save_pretrained(folders[kind])
    return folders


def _load(path: str, **arguments: Any) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, **arguments)


def _logits(model: Any) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(TOKENS).logits
        return logits


def _dequantized(kind: str, quantized: Any, original: str) -> Any:
    """transformers' own layers with the numbers of the quantized model's weights."""
    model = _load(original)
    for name, module in quantized.named_modules():
        own = model.get_submodule(name)
        with torch.no_grad():
            if isinstance(module, bt.Linear):
                own.weight.copy_(module.dequantize())
            elif isinstance(module, bt.Experts):
                for projection in ("gate_up_proj", "down_proj"):
                    numbers = module.dequantize(projection)
                    getattr(own, projection).copy_(numbers.mT if kind == "gpt_oss" else numbers)
    return model


def _counts(model: Any) -> tuple[int, int]:
    found = list(model.modules())
    return sum(isinstance(module, bt.Linear) for module in found), sum(
        isinstance(module, bt.Experts) for module in found)


def _same(left: Tensor, right: Tensor) -> bool:
    return bool(torch.allclose(left, right, rtol=1e-4, atol=1e-4 * float(right.abs().max())))


@pytest.mark.parametrize("kind,form", [
    ("llama", "mxfp4"), ("llama", "nvfp4"), ("llama", "mxfp8_e4m3"), ("llama", "mxfp6_e2m3"), ("llama", "mxint8"),
    ("llama", "e4m3"), ("mixtral", "mxfp4"), ("mixtral", "nvfp4"), ("gpt_oss", "mxfp4"), ("gpt_oss", "mxfp8_e4m3")])
def test_quantized_while_loading_saved_and_loaded_again(kind: str, form: str, models: dict[str, str], tmp_path: Path
                                                        ) -> None:
    model = _load(models[kind], quantization_config=bst.BlockscaleConfig(form))
    assert _counts(model) == {"llama": (14, 0), "mixtral": (8, 2), "gpt_oss": (8, 2)}[kind]
    assert isinstance(model.lm_head, nn.Linear)
    assert not any(parameter.is_meta for parameter in model.state_dict().values())
    logits = _logits(model)
    assert _same(logits, _logits(_dequantized(kind, model, models[kind])))
    assert not torch.equal(logits, _logits(_load(models[kind])))
    again = bt.quantize_(plain := _load(models[kind]), form)
    assert len(again) == sum(_counts(model)) and torch.equal(_logits(plain), logits)     # the same bits as quantize_
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    with open(tmp_path / "config.json", encoding="utf-8") as file:
        assert json.load(file)["quantization_config"]["quant_method"] == "blockscale"
    assert torch.equal(_logits(_load(str(tmp_path))), logits)


def test_configuration(models: dict[str, str], tmp_path: Path) -> None:
    config = bst.BlockscaleConfig("nvfp4", ["self_attn", "down_proj"], convention="compressed_tensors")
    assert bst.BlockscaleConfig.from_dict(config.to_dict()).to_dict() == config.to_dict()
    model = _load(models["llama"], quantization_config=config)
    assert _counts(model) == (2 * 2, 0)
    names = set(model.state_dict())
    assert "model.layers.0.mlp.up_proj.weight_global_scale" in names
    assert "model.layers.0.mlp.up_proj.weight_packed" in names
    assert _same(_logits(model), _logits(_dequantized("llama", model, models["llama"])))
    model.save_pretrained(tmp_path)
    assert torch.equal(_logits(_load(str(tmp_path))), _logits(model))
    seen = _load(models["llama"], quantization_config=bst.BlockscaleConfig("mxfp4", activations="mxfp8"))
    assert seen.model.layers[0].mlp.up_proj.activations == "mxfp8_e4m3"
    without = _load(models["gpt_oss"], quantization_config=bst.BlockscaleConfig("mxfp4", experts=False))
    assert _counts(without) == (8, 0)
    with pytest.raises(blockscale.InvalidError, match="format='bf16'"):
        bst.BlockscaleConfig("bf16")
    with pytest.raises(blockscale.InvalidError, match="method='gptq'"):
        bst.take_over("gptq")


# Checkpoints of others ------------------------------------------------------------------------------------------------

def _command(*arguments: str) -> None:
    build = os.environ.get("BLOCKSCALE_BUILD")
    path = os.path.join(build, "bin", "blockscale") if build else ""
    if not os.path.exists(path):
        pytest.skip("the command is not built")
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def taken_over() -> Any:
    from transformers.quantizers import auto
    before = dict(auto.AUTO_QUANTIZATION_CONFIG_MAPPING)
    bst.take_over()
    yield
    auto.AUTO_QUANTIZATION_CONFIG_MAPPING.update(before)


def _decoded(path: str, original: str, kind: str) -> Any:
    """transformers' own layers with the numbers that the library reads from a checkpoint."""
    model = _load(original)
    with blockscale.open(path) as checkpoint, torch.no_grad():
        for name, weight in checkpoint.items():
            if weight.convention == "plain":
                continue
            numbers = torch.tensor(weight.matrix.dequantize("float32"))
            if kind == "gpt_oss":
                own, _, projection = name.rpartition(".")
                getattr(model.get_submodule(own), projection).copy_(numbers.mT)
            else:
                model.get_submodule(name).weight.copy_(numbers)
    return model


@pytest.mark.parametrize("convention,form", [
    ("modelopt", "nvfp4"), ("modelopt", "mxfp4"), ("modelopt", "mxfp8"), ("modelopt", "e4m3"),
    ("compressed_tensors", "nvfp4"), ("compressed_tensors", "mxfp4"), ("compressed_tensors", "mxfp8"),
    ("compressed_tensors", "mxfp6"), ("compressed_tensors", "e4m3"), ("gpt_oss", "mxfp4")])
def test_checkpoints_of_others(convention: str, form: str, models: dict[str, str], tmp_path: Path, taken_over: None
                               ) -> None:
    kind = "gpt_oss" if convention == "gpt_oss" else "llama"
    path, copied = str(tmp_path / "quantized"), str(tmp_path / "copied")
    _command("quantize", models[kind], "-o", path, "--format", form, "--convention", convention)
    model = _load(path)
    assert _counts(model) == ((0, 2) if kind == "gpt_oss" else (14, 0))
    logits = _logits(model)
    assert _same(logits, _logits(_decoded(path, models[kind], kind)))
    model.save_pretrained(copied)
    with open(os.path.join(path, "config.json"), encoding="utf-8") as file:
        wanted = json.load(file)["quantization_config"]
    with open(os.path.join(copied, "config.json"), encoding="utf-8") as file:
        assert json.load(file)["quantization_config"] == wanted
    assert torch.equal(_logits(_load(copied)), logits)
    with blockscale.open(path) as before, blockscale.open(copied) as after:
        for name, weight in before.items():
            assert after[name].convention == weight.convention and after[name].format == weight.format


def test_a_weight_that_the_model_has_not_is_named(models: dict[str, str], tmp_path: Path, taken_over: None) -> None:
    path = str(tmp_path / "quantized")
    _command("quantize", models["llama"], "-o", path, "--format", "mxfp4")
    config = os.path.join(path, "config.json")
    with open(config, encoding="utf-8") as file:
        changed = json.load(file)
    changed["num_hidden_layers"] = 1
    with open(config, "w", encoding="utf-8") as file:
        json.dump(changed, file)
    with pytest.raises(blockscale.UnsupportedError, match="has no module of that name"):
        _load(path)


def test_generate_and_compile(models: dict[str, str]) -> None:
    model = _load(models["gpt_oss"], quantization_config=bst.BlockscaleConfig("mxfp4"))
    told = model.generate(TOKENS, max_new_tokens=5, do_sample=False, pad_token_id=0)
    assert told.shape == (2, 12)
    module = model.model.layers[0].mlp.experts.requires_grad_(False)
    hidden, indices, weights = torch.randn(9, 64), torch.randint(0, 4, (9, 2)), torch.rand(9, 2)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(hidden, indices, weights), module(hidden, indices, weights))

"""vLLM generates with checkpoints of every convention on blockscale's kernels: what its own layers generate with the
same numbers.

Both compute in fp32, where these numbers are exact or rounded once and only sums have another order: log-probabilities
of logits near 20 differ by less than NOISE.  In bf16 such logits are 0.125 apart, and those of the first token are held
to NOISE_OF_16_BITS."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import blockscale.torch
from conftest import TOKENS, Loaded, Work, configure, generate

pytestmark = pytest.mark.filterwarnings("ignore")      # of vLLM and of what it imports
NOISE, NOISE_OF_16_BITS = 1e-4, 0.1


def same(got: Loaded, wanted: Loaded, layers: int = 8) -> None:
    """The same tokens; log-probabilities within NOISE.  All layers are blockscale's on one side, none on the other."""
    assert (got.layers, wanted.layers) == (layers, 0) and got.tokens == wanted.tokens
    worst = max(abs(chance - their[token]) for mine, their in zip(got.chances, wanted.chances)
                for token, chance in mine.items() if token in their)
    assert worst < NOISE, worst


@pytest.mark.parametrize("convention,form", [
    ("modelopt", "nvfp4"), ("modelopt", "mxfp4"), ("modelopt", "mxfp8"), ("modelopt", "e4m3"),
    ("compressed_tensors", "nvfp4"), ("compressed_tensors", "mxfp4"), ("compressed_tensors", "mxfp8"),
    ("compressed_tensors", "mxfp6"), ("compressed_tensors", "e4m3")])
def test_what_the_command_writes(convention: str, form: str, work: Work) -> None:
    folder = work.quantized("llama", form, convention)
    same(generate(folder, "blockscale"), work.dequantized("llama", folder))


def test_biases(work: Work) -> None:
    folder = work.quantized("dense", "nvfp4", "modelopt")
    same(generate(folder, "blockscale"), work.dequantized("dense", folder))


def test_quark(work: Work) -> None:
    """AMD's: ModelOpt's names for MXFP4, and a configuration of its own."""
    source = work.quantized("llama", "mxfp4", "modelopt")
    folder = work.copied(source)
    weight = {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "ch_axis": -1, "is_dynamic": False,
              "scale_format": "e8m0"}
    configure(folder, quantization_config={
        "quant_method": "quark", "exclude": ["lm_head"], "export": {"pack_method": "order", "kv_cache_group": []},
        "global_quant_config": {"weight": weight, "input_tensors": {**weight, "is_dynamic": True}},
        "layer_quant_config": {}, "layer_type_quant_config": {}})
    (folder / "hf_quant_config.json").unlink()
    same(generate(folder, "blockscale"), work.dequantized("llama", source))


def test_codes_of_type_f4(work: Work) -> None:
    """Two codes an element, in PyTorch's type for them; scales in its type for powers of two."""
    source = work.quantized("llama", "mxfp4", "modelopt")
    folder = work.copied(source)
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    for name in [name for name in tensors if name.endswith("weight_scale")]:
        tensors[name] = tensors[name].view(torch.float8_e8m0fnu)
        codes = name.removesuffix("_scale")
        tensors[codes] = tensors[codes].view(torch.float4_e2m1fn_x2)
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    same(generate(folder, "blockscale"), work.dequantized("llama", source))


def of_torchao(source: Path, folder: Path, swizzled: bool) -> None:
    """ModelOpt's checkpoint as torchao has it: tensors of a weight flattened, scales in cuBLAS' blocks or not."""
    tensors, made = safetensors.torch.load_file(source / "model.safetensors"), {}
    for name, tensor in tensors.items():
        stem, _, last = name.rpartition(".")
        if f"{stem}.weight_scale" not in tensors:
            made[name] = tensor
        elif last == "weight":
            made[f"{stem}._weight_qdata"] = tensor
        elif last == "weight_scale_2":
            made[f"{stem}._weight_per_tensor_scale"] = tensor
        else:
            kind = torch.float8_e4m3fn if f"{stem}.weight_scale_2" in tensors else torch.float8_e8m0fnu
            rows, blocks = tensor.shape
            if swizzled:
                tensor = torch.ops.blockscale.convert_scales(tensor.view(torch.uint8), rows, blocks, "linear", "128x4")
                tensor = tensor.view(-(-rows // 128) * 32, -(-blocks // 4) * 16)
            made[f"{stem}._weight_scale"] = tensor.view(kind)
    safetensors.torch.save_file(made, folder / "model.safetensors", {"format": "pt"})
    (folder / "hf_quant_config.json").unlink()
    configure(folder, quantization_config={"quant_method": "torchao", "quant_type": {"default": {
        "_type": "NVFP4WeightOnlyConfig", "_version": 1, "_data": {}}}})


@pytest.mark.parametrize("form,swizzled", [("nvfp4", True), ("nvfp4", False), ("mxfp4", False), ("mxfp8", True)])
def test_torchao(form: str, swizzled: bool, work: Work) -> None:
    source = work.quantized("llama", form, "modelopt")
    folder = work.copied(source)
    of_torchao(source, folder, swizzled)
    same(generate(folder, "blockscale"), work.dequantized("llama", source))


@pytest.mark.parametrize("names", [("weight", "weight_scale"), ("_weight_qdata", "_weight_scale")])
def test_fp8_with_a_scale_for_each_row(names: tuple[str, str], work: Work) -> None:
    """compressed-tensors' and torchao's fp8 by channels."""
    folder = work.copied(work.original("llama"))
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    plain = dict(tensors)
    for name in [name for name in tensors if name.endswith("_proj.weight")]:
        numbers, stem = tensors.pop(name).float(), name.removesuffix(".weight")
        scale = numbers.abs().amax(1, keepdim=True) / 448
        codes = (numbers / scale).to(torch.float8_e4m3fn)
        tensors.update({f"{stem}.{names[0]}": codes, f"{stem}.{names[1]}": scale})
        plain[name] = codes.float() * scale
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    other = work.copied(work.original("llama"))
    safetensors.torch.save_file(plain, other / "model.safetensors", {"format": "pt"})
    same(generate(folder, "blockscale"), generate(other, None))


@pytest.mark.parametrize("convention", ["modelopt", "compressed_tensors"])
def test_joined_weights_keep_their_tensor_scales(convention: str, work: Work) -> None:
    """q, k and v with tensor scales of their own are the numbers that the file has."""
    folder = work.quantized("llama", "nvfp4", convention, "--share-tensor-scales", "none")
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    scales = [float(tensor) for name, tensor in tensors.items()
              if ".0.self_attn." in name and name.endswith(("weight_scale_2", "weight_global_scale"))]
    assert len(set(scales)) > 1
    same(generate(folder, "blockscale"), work.dequantized("llama", folder))


def saved_by_transformers(work: Work, name: str, *words: str, **options: Any) -> tuple[Path, torch.Tensor]:
    """A checkpoint of blockscale.torch.transformers, and the log-probabilities of its model's first token."""
    transformers = pytest.importorskip("transformers")
    import blockscale.torch.transformers as bst
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(
        work.original(name), dtype=torch.float32, quantization_config=bst.BlockscaleConfig(*words, **options))
    folder = work.new()
    model.save_pretrained(folder)
    for file in work.original(name).glob("token*.json"):
        (folder / file.name).write_bytes(file.read_bytes())
    with torch.no_grad():
        return folder, model(torch.tensor([TOKENS])).logits[0, -1].log_softmax(-1)


def near(got: Loaded, chances: torch.Tensor) -> bool:
    """Whether the first token's log-probabilities are these."""
    return max(abs(float(chances[token]) - chance) for token, chance in got.chances[0].items()) < NOISE


@pytest.mark.parametrize("convention", ["modelopt", "compressed_tensors"])
def test_what_transformers_saves(convention: str, work: Work) -> None:
    """Served without being asked for."""
    folder, chances = saved_by_transformers(work, "llama", "nvfp4", convention=convention)
    got = generate(folder, None)
    same(got, work.dequantized("llama", folder))
    assert near(got, chances)


def test_gpt_oss_that_transformers_saves(work: Work) -> None:
    """Attention, too, is MXFP4 there."""
    folder, chances = saved_by_transformers(work, "gpt_oss", "mxfp4")
    got = generate(folder, None)
    assert got.layers == 2 * 3 and near(got, chances)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_inputs_of_16_bits(dtype: str, work: Work) -> None:
    folder = work.quantized("llama", "nvfp4", "modelopt")
    got, wanted = generate(folder, "blockscale", dtype=dtype), work.dequantized("llama", folder)
    assert got.tokens[0] == wanted.tokens[0]
    assert max(abs(chance - wanted.chances[0][token]) for token, chance in got.chances[0].items()
               if token in wanted.chances[0]) < NOISE_OF_16_BITS


def test_gpt_oss(work: Work) -> None:
    """Experts by grouped products; what is beside them is not quantized."""
    folder = work.quantized("gpt_oss", "mxfp4", "gpt_oss")
    same(generate(folder, "blockscale"), work.dequantized("gpt_oss", folder), layers=2)


def test_options_of_the_configuration(work: Work) -> None:
    """Prepacked copies; inputs that are quantized first, as transformers' path does it."""
    folder = work.quantized("llama", "nvfp4", "modelopt")

    prepack = {"quantization_config": {"quant_method": "blockscale", "prepack": True}}
    packed = generate(folder, "blockscale", hf_overrides=prepack)
    same(packed, work.dequantized("llama", folder))
    assert packed.packed > 0 and generate(folder, "blockscale").packed == 0
    experts = work.quantized("gpt_oss", "mxfp4", "gpt_oss")
    packed = generate(experts, "blockscale", hf_overrides=prepack)
    same(packed, work.dequantized("gpt_oss", experts), layers=2)
    assert packed.packed > 0
    saved, chances = saved_by_transformers(work, "llama", "nvfp4", activations="mxfp8")
    got, plain = generate(saved, None), work.dequantized("llama", folder)
    assert near(got, chances)
    assert abs(got.chances[0][plain.tokens[0]] - plain.chances[0][plain.tokens[0]]) > NOISE


def test_compiled(work: Work) -> None:
    """torch.compile takes the layers into one graph."""
    folder = work.quantized("llama", "nvfp4", "modelopt")
    same(generate(folder, "blockscale", enforce_eager=False), work.dequantized("llama", folder))

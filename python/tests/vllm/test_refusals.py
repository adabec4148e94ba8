"""Checkpoints that vLLM's layers cannot have are refused by sentences that name the tensor, its value and the rule."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest
import safetensors.torch
import torch

from conftest import Work, configure, generate

pytestmark = pytest.mark.filterwarnings("ignore")      # of vLLM and of what it imports
LAYER = "model.layers.1"


def changed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The checkpoint with its tensors changed."""
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    change(tensors)
    safetensors.torch.save_file(tensors, path, {"format": "pt"})
    return folder


def refused(folder: Path, words: str) -> None:
    """vLLM stops with that sentence."""
    with pytest.raises(Exception, match=words):
        generate(folder, "blockscale")


@pytest.mark.parametrize("value", ["nan", "-1", "inf"])
def test_a_tensor_scale_that_is_none(value: str, work: Work) -> None:
    folder = changed(work.quantized("llama", "nvfp4", "modelopt"), lambda tensors: tensors[
        f"{LAYER}.self_attn.k_proj.weight_scale_2"].fill_(float(value)))
    refused(folder, rf"{LAYER}.self_attn.k_proj.weight_scale_2 is {value}: a tensor scale is finite and > 0")


@pytest.mark.parametrize("value", ["nan", "-1.0", "inf"])
def test_a_scale_of_a_row_that_is_none(value: str, work: Work) -> None:
    def by_rows(tensors: dict[str, Any]) -> None:
        name = f"{LAYER}.mlp.up_proj.weight"
        tensors[name] = tensors[name].to(torch.float8_e4m3fn)
        tensors[name + "_scale"] = torch.ones(256, 1)
        name = f"{LAYER}.mlp.gate_proj.weight"
        tensors[name] = tensors[name].to(torch.float8_e4m3fn)
        tensors[name + "_scale"] = torch.ones(256, 1)
        tensors[name + "_scale"][3] = float(value)

    refused(changed(work.copied(work.original("llama")), by_rows),
            rf"{LAYER}.mlp.gate_up_proj.weight_scale is {value} in row 3: scales are finite and not negative")


def test_weights_that_are_joined_are_alike(work: Work) -> None:
    other = safetensors.torch.load_file(work.quantized("llama", "mxfp4", "modelopt") / "model.safetensors")
    name = f"{LAYER}.self_attn.v_proj"

    def of_another_format(tensors: dict[str, Any]) -> None:
        for part in ("weight", "weight_scale"):
            tensors[f"{name}.{part}"] = other[f"{name}.{part}"]
        del tensors[f"{name}.weight_scale_2"]

    refused(changed(work.quantized("llama", "nvfp4", "modelopt"), of_another_format),
            rf"{LAYER}.self_attn.q_proj has the format nvfp4 and {name} mxfp4: vLLM joins them into "
            rf"{LAYER}.self_attn.qkv_proj, whose parts are alike")


def test_weights_that_are_joined_are_all_quantized(work: Work) -> None:
    folder = work.quantized("llama", "nvfp4", "modelopt", "--exclude", "*embed*,*lm_head*,*up_proj")
    refused(folder, r"gate_proj is nvfp4 and model.layers.0.mlp.up_proj is not quantized: vLLM joins them into "
            r"model.layers.0.mlp.gate_up_proj, whose parts are all quantized or none")


def test_sizes_of_the_model(work: Work) -> None:
    folder = work.quantized("llama", "nvfp4", "modelopt")
    configure(folder, intermediate_size=512)
    refused(folder, r"model.layers.0.mlp.gate_up_proj is 1024 x 128 in the model, and the file has "
            r"model.layers.0.mlp.gate_proj 256 x 128 and model.layers.0.mlp.up_proj 256 x 128")


def test_scales_that_do_not_fit(work: Work) -> None:
    folder = changed(work.quantized("llama", "nvfp4", "modelopt"), lambda tensors: tensors.update({
        f"{LAYER}.mlp.down_proj.weight_scale": tensors[f"{LAYER}.mlp.down_proj.weight_scale"][:, :7].contiguous()}))
    refused(folder, rf"{LAYER}.mlp.down_proj.weight_scale \(128 x 7\) does not fit")


def test_heads(work: Work) -> None:
    folder = work.quantized("llama", "mxfp4", "modelopt", "--include", "lm_head", "--exclude", "none")
    refused(folder, "lm_head is mxfp4: embeddings and heads are served unquantized")


def test_tiles(work: Work) -> None:
    def tiled(tensors: dict[str, Any]) -> None:
        name = f"{LAYER}.mlp.down_proj.weight"
        tensors[name] = tensors[name].to(torch.float8_e4m3fn)
        tensors[name + "_scale_inv"] = torch.ones(1, 2)

    refused(changed(work.copied(work.original("llama")), tiled),
            rf"{LAYER}.mlp.down_proj has fp32 scales of tiles of 128 x 128: layers take one scale, or one a row")


def test_experts_one_by_one(work: Work) -> None:
    folder = work.quantized("experts", "nvfp4", "modelopt")
    refused(folder, r"experts.0.\w+ is quantized \(nvfp4 of modelopt\): of experts those are loaded that lie together")


def test_nothing_quantized(work: Work) -> None:
    refused(work.original("llama"), "has no weight with block scales, or fp8 with scales")

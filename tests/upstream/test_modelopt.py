#!/usr/bin/env python3
"""The convention modelopt: read by ModelOpt's own tensors and by compressed-tensors' converter; and what ModelOpt
exports, read by us.

test_modelopt.py BLOCKSCALE WORK"""

import upstream  # first: it sets the environment
import contextlib
import io
import json
import os

import modelopt.torch.quantization as mtq
import numpy as np
import torch
import transformers
from compressed_tensors.entrypoints.convert import convert_checkpoint
from compressed_tensors.entrypoints.convert.converters import ModelOptNvfp4Converter
from modelopt.torch.export import export_hf_checkpoint
from modelopt.torch.export.convert_hf_config import convert_hf_quant_config_format
from modelopt.torch.quantization.qtensor import FP8QTensor, MXFP4QTensor, MXFP8QTensor, NVFP4QTensor
from safetensors.torch import load_file

import decode
import script
import torch_models
from script import check
from upstream import named, say

SPELLED = {"nvfp4": "W4A16_NVFP4", "mxfp8_e4m3": "MXFP8", "e4m3": "FP8"}


def own_numbers(folder):
    """{name: fp32 array} of every quantized weight by the classes with which ModelOpt holds them."""
    tensors, result = load_file(os.path.join(folder, "model.safetensors")), {}
    for name in [name for name in tensors if name.endswith(".weight") and name + "_scale" in tensors]:
        codes, scale, second = tensors[name], tensors[name + "_scale"], tensors.get(name + "_scale_2")
        shape = torch.Size((*codes.shape[:-1], codes.shape[-1] * (2 if codes.dtype == torch.uint8 else 1)))
        if second is not None:
            values = NVFP4QTensor(shape, torch.float32, codes).dequantize(
                scale=scale, double_scale=second, block_sizes={-1: 16}
            )
        elif codes.dtype == torch.uint8:
            values = MXFP4QTensor(shape, torch.float32, codes).dequantize(scale=scale, block_sizes={-1: 32})
        elif scale.dtype == torch.uint8:
            values = MXFP8QTensor(shape, torch.float32, codes).dequantize(scale=scale)
        else:
            values = FP8QTensor(shape, torch.float32, codes).dequantize(
                scale=scale.reshape(-1, *([1] * (scale.numel() > 1)))
            )
        result[name] = values.float().numpy().reshape(shape)
    return result


def single(folder, exact):
    """The numbers in ModelOpt's order: the two scales of NVFP4 are multiplied in fp32 before they meet the code."""
    tensors, result = decode.read(folder), {}
    for name, values in exact.items():
        if name + "_scale" not in tensors:
            continue
        result[name] = values.astype(np.float32)
        if name + "_scale_2" in tensors:
            scale = decode.e4m3(tensors[name + "_scale"][1]).astype(np.float32) * tensors[name + "_scale_2"][1].reshape(
                ()
            )
            result[name] = decode.e2m1(tensors[name][1]).astype(np.float32) * np.repeat(scale, 16, axis=-1)
    return result


def read_by_modelopt(name, form):
    folder = upstream.quantized(name, form, "modelopt")
    exact = upstream.both(folder)
    wanted = single(folder, exact)
    check(wanted, "no weight was quantized")
    count = upstream.same(own_numbers(folder), wanted, f"{name} {form}")
    neighbours = sum(decode.different(wanted[n], exact[n].astype(np.float32)) for n in wanted)
    say(
        f"{name} {form}: {count} numbers of ModelOpt's tensors, 0 different; "
        f"{neighbours} are not the exact product's fp32"
    )


def configuration(form):
    """Both files say what ModelOpt's own conversion of the one into the other says."""
    folder = upstream.quantized("llama", form, "modelopt")
    with open(os.path.join(folder, "hf_quant_config.json"), encoding="utf-8") as file:
        first = json.load(file)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        second = json.load(file)["quantization_config"]
    check(
        first["quantization"]["quant_algo"] == SPELLED[form], f"{form} is spelled {first['quantization']['quant_algo']}"
    )
    wanted = convert_hf_quant_config_format(first)
    for key, value in wanted.items():
        check(second.get(key) == value, f"{form}: {key} is {second.get(key)}, and ModelOpt would write {value}")


def export(name, configuration_name):
    """The folder of what ModelOpt writes of a tiny model that it quantized."""
    model = transformers.AutoModelForCausalLM.from_pretrained(upstream.model(name), dtype=torch.bfloat16)
    folder, said = upstream.made(f"exported-{configuration_name}{len(os.listdir(upstream.MADE))}"), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), torch.no_grad():
        mtq.quantize(model, getattr(mtq, configuration_name), lambda it: it(torch_models.TOKENS))
        export_hf_checkpoint(model, dtype=torch.bfloat16, export_dir=folder)
    return folder


def convert(folder):
    out = upstream.made(f"converted{len(os.listdir(upstream.MADE))}")
    with contextlib.redirect_stderr(io.StringIO()):
        convert_checkpoint(
            folder, out, ModelOptNvfp4Converter(targets=["re:.*_proj$"], ignore=["lm_head"]), max_workers=1
        )
    return out


def converted_as_compressed_tensors_does():
    """ModelOpt's W4A4 export by compressed-tensors' converter and by blockscale convert: the same tensors."""
    folder = export("llama", "NVFP4_DEFAULT_CFG")
    out, ours = convert(folder), upstream.made("ours")
    upstream.blockscale("convert", folder, "-o", ours, "--convention", "compressed_tensors")
    theirs, mine = decode.read(out), decode.read(ours)
    check(set(theirs) == set(mine), f"blockscale convert wrote {sorted(set(theirs) ^ set(mine))[:3]}")
    wrong = [
        n
        for n in theirs
        if not np.array_equal(theirs[n][1].reshape(-1).view(np.uint8), mine[n][1].reshape(-1).view(np.uint8))
    ]
    check(not wrong, f"{len(wrong)} tensors are not those that the converter wrote: {wrong[:3]}")
    check(any(name.endswith("input_global_scale") for name in mine), "no input scales came")
    with open(os.path.join(ours, "config.json"), encoding="utf-8") as file:
        group = json.load(file)["quantization_config"]["config_groups"]["group_0"]
    with open(os.path.join(out, "config.json"), encoding="utf-8") as file:
        wanted = next(iter(json.load(file)["quantization_config"]["config_groups"].values()))
    said, wanted = group.get("input_activations") or {}, wanted["input_activations"]
    for key in ("num_bits", "type", "strategy", "group_size", "dynamic"):
        check(said.get(key) == wanted[key], f"input_activations: {key} is {said.get(key)}, not {wanted[key]}")
    say(f"{len(mine)} tensors of blockscale convert are those of ModelOptNvfp4Converter, byte for byte")


def weights_alone_converted():
    """The converter knows NVFP4 of weights and activations alone, and asks ModelOpt's own W4A16_NVFP4 for input scales
    too."""
    for folder in (export("llama", "W4A16_NVFP4_CFG"), upstream.quantized("llama", "nvfp4", "modelopt")):
        try:
            convert(folder)
        except ValueError as error:
            check("input_scale not found" in str(error), str(error))
        else:
            return
    raise script.Skip(
        "compressed-tensors converts no NVFP4 of weights alone, ModelOpt's own neither; blockscale convert does"
    )


def exported(name, configuration_name, form):
    """What ModelOpt writes of a tiny model, read by blockscale."""
    folder = export(name, configuration_name)
    exact = upstream.both(folder)
    wanted = single(folder, exact)
    check(wanted, "ModelOpt quantized nothing")
    count = upstream.same(own_numbers(folder), wanted, configuration_name)
    told = upstream.blockscale("inspect", folder)
    formats = {weight["format"] for weight in told["weights"] if weight["name"] + ".weight" in wanted}
    check(formats == {form}, f"inspect calls it {formats}")
    say(f"{configuration_name}: {count} numbers, 0 different from ModelOpt's own")


if __name__ == "__main__":
    upstream.versions("nvidia-modelopt", "compressed-tensors", "torch", "transformers")
    cases = [
        named(f"{name}_{form}", read_by_modelopt, name, form)
        for name in ("dense", "experts", "minilm")
        for form in ("nvfp4", "mxfp4", "mxfp8_e4m3", "e4m3")
    ]
    cases += [named(f"configuration_{form}", configuration, form) for form in SPELLED]
    cases += [converted_as_compressed_tensors_does, weights_alone_converted]
    cases += [
        named(f"exported_{form}", exported, "llama", how, form)
        for how, form in (
            ("NVFP4_DEFAULT_CFG", "nvfp4"),
            ("W4A16_NVFP4_CFG", "nvfp4"),
            ("MXFP8_DEFAULT_CFG", "mxfp8_e4m3"),
            ("FP8_DEFAULT_CFG", "e4m3"),
            ("FP8_PER_CHANNEL_PER_TOKEN_CFG", "e4m3"),
        )
    ]
    script.cases("upstream_modelopt", cases)

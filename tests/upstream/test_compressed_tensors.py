#!/usr/bin/env python3
"""The convention compressed_tensors, read by compressed-tensors and transformers; and what llmcompressor writes, read
by blockscale.

test_compressed_tensors.py BLOCKSCALE WORK"""

import upstream  # first: it sets the environment
import contextlib
import io
import json
import os

import loguru
import numpy as np
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig
from llmcompressor.entrypoints.model_free import model_free_ptq
from safetensors.torch import load_file
from transformers import CompressedTensorsConfig

import decode
import script
import torch_models
from script import check
from upstream import named, say

FORMATS = ["nvfp4", "mxfp4", "mxfp8_e4m3", "e4m3"]
LEFT = ["lm_head", "re:.*embed.*"]
SCHEMES = {
    "NVFP4A16": "nvfp4",
    "MXFP4A16": "mxfp4",
    "MXFP8A16": "mxfp8_e4m3",
    "MXFP6A16": "mxfp6_e2m3",
    "FP8_DYNAMIC": "e4m3",
    "FP8_BLOCK": "e4m3",
}


def reader_numbers(folder, exact):
    """The numbers in the reader's own order of roundings: NVFP4's block scale over the global scale is an fp32 number
    before it meets the code, a scale of e4m3 is one of the model's type (but for experts, which transformers
    multiplies itself)."""
    tensors, result = decode.read(folder), dict(exact)
    for name in exact:
        stem = name[: -len(".weight")] if name.endswith(".weight") else name
        if stem + ".weight_global_scale" in tensors:
            scale = decode.e4m3(tensors[stem + ".weight_scale"][1]).astype(np.float32)
            scale = scale / tensors[stem + ".weight_global_scale"][1].reshape(()).astype(np.float32)
            codes = decode.e2m1(tensors[stem + ".weight_packed"][1]).astype(np.float32)
            result[name] = codes * np.repeat(scale, 16, axis=-1)
        elif tensors.get(name, ("",))[0] == "F8_E4M3" and tensors[stem + ".weight_scale"][0] == "F32":
            scale = tensors[stem + ".weight_scale"][1]
            result[name] = decode.e4m3(tensors[name][1]) * (
                scale if ".experts." in name else torch_models.rounded(scale)
            )
    return {name: torch_models.rounded(values) for name, values in result.items()}


def hold(folder, original, exact, what, dequantize=False, encoder=False, rounds_inputs=False):
    """The reader's keys and numbers, and its logits unless it rounds activations too; says how many numbers it moves."""
    how = {"quantization_config": CompressedTensorsConfig(dequantize=True)} if dequantize else {}
    model = torch_models.load(folder, encoder=encoder, **how)
    got = torch_models.run(model)  # the first pass decompresses
    wanted = reader_numbers(
        folder, {name: values for name, values in exact.items() if not name.endswith("position_ids")}
    )
    count = upstream.same(merged(torch_models.state(model), wanted), wanted, what)
    neighbours = sum(decode.different(wanted[n], torch_models.rounded(exact[n])) for n in wanted)
    if rounds_inputs:
        check(np.isfinite(got).all(), f"{what}: logits are not all numbers")
    else:
        plain = torch_models.with_numbers(original, wanted, encoder=encoder)
        torch_models.equal_logits(got, torch_models.run(plain), what)
    neighbours = sum(decode.different(wanted[n], torch_models.rounded(exact[n])) for n in wanted)
    say(
        f"{what}: {count} numbers, 0 different, {'activations rounded too' if rounds_inputs else 'logits equal'}; "
        f"{neighbours} are the neighbour of the exact product's bf16, as the reader rounds"
    )


def merged(state, wanted):
    """Experts that transformers keeps in one tensor, as the file's matrices again."""
    for name in [name for name in wanted if name not in state and ".experts." in name]:
        stem, rest = name.split(".experts.")
        expert, what = rest.split(".")[:2]
        tensor = state.get(f"{stem}.experts.{'down_proj' if what == 'down_proj' else 'gate_up_proj'}")
        if tensor is not None:
            half = tensor.shape[1] // 2
            matrix = tensor[int(expert)]
            state[name] = {"gate_proj": matrix[:half], "up_proj": matrix[half:]}.get(what, matrix)
    return state


def read_by_transformers(name, form, **options):
    folder = upstream.quantized(name, form, "compressed_tensors")
    check(
        upstream.claims(folder, "transformers 5.17 with compressed-tensors 0.20"),
        f"quantize says that {upstream.told[folder]['loaded_by']} load it",
    )
    how = "dequantized " if options.get("dequantize") else ""
    hold(folder, name, upstream.both(folder), f"{name} {form} {how}in transformers", **options)


def read_alone(name, form):
    """Every weight by compressed-tensors alone, module by module, with the scheme that config.json gives."""
    folder = upstream.quantized(name, form, "compressed_tensors")
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        configuration = QuantizationConfig.model_validate(json.load(file)["quantization_config"])
    scheme = configuration.config_groups["group_0"]
    compressor = BaseCompressor.get_value_from_registry(configuration.format)
    exact, tensors, got = upstream.both(folder), load_file(os.path.join(folder, "model.safetensors")), {}
    for stem in [name[: -len("_scale")] for name in tensors if name.endswith(".weight_scale")]:
        module = stem[: -len("weight")]
        own = {name[len(module) :]: values for name, values in tensors.items() if name.startswith(module)}
        got[stem] = compressor.decompress(own, scheme)["weight"]
    wanted = reader_numbers(folder, exact)
    if form == "e4m3":  # here the scale keeps its fp32
        wanted = {name: values.astype(np.float32) for name, values in exact.items()}
    check(got, "no weight was quantized")
    count = upstream.same(
        {name: values.float().numpy() for name, values in got.items()}, {name: wanted[name] for name in got}, form
    )
    say(f"{name} {form} in compressed-tensors alone: {count} numbers, 0 different")


def experts_in_transformers(form):
    """transformers 5.17 decompresses experts itself: MXFP4, and fp8 with a scale a matrix or a row, and no others."""
    try:
        read_by_transformers("experts", form, dequantize=True)
    except (AssertionError, RuntimeError, ValueError) as error:
        known = {"nvfp4": "weight_global_scale", "mxfp8_e4m3": "automatic conversion"}
        if form in known and known[form] in str(error):
            raise script.Skip(
                f"transformers does not read {form} of experts, whoever wrote them: {str(error)[:90]}"
            ) from None
        raise


def written_by_llmcompressor(scheme):
    folder = upstream.made(scheme)
    left = LEFT + (["re:.*k_proj", "re:.*v_proj"] if scheme == "FP8_BLOCK" else [])  # 64 rows are no whole block of 128
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        model_free_ptq(upstream.model("llama"), folder, scheme=scheme, ignore=left, device="cpu")
    exact = upstream.both(folder)
    weights = {weight["name"]: weight["format"] for weight in upstream.blockscale("inspect", folder)["weights"]}
    quantized = {form for form in weights.values() if form not in ("bf16", "fp16", "fp32")}
    check(quantized == {SCHEMES[scheme]}, f"inspect sees {sorted(quantized)}")
    hold(folder, "llama", exact, f"llmcompressor's {scheme}", rounds_inputs=scheme.startswith("FP8"))


def groups_of(folder):
    """What must share a tensor scale: {first name: its fellows}, of the fused projections of a layer."""
    names = [name for name in decode.read(folder) if name.endswith("weight_global_scale")]
    for kinds in (("q_proj", "k_proj", "v_proj"), ("query", "key", "value"), ("gate_proj", "up_proj")):
        for name in names:
            if f".{kinds[0]}." in name:
                yield [name.replace(kinds[0], kind) for kind in kinds]


def fused_scales(name):
    """vLLM keeps the largest divisor of fused projections for all, without rescaling: nothing may become worse."""
    folder = upstream.quantized(name, "nvfp4", "compressed_tensors")
    tensors, exact, original = decode.read(folder), upstream.both(folder), decode.numbers(upstream.model(name))
    held = 0
    for group in groups_of(folder):
        largest = max(float(tensors[fellow][1].reshape(())) for fellow in group)
        for fellow in group:
            weight = fellow.replace("_global_scale", "")
            fused = exact[weight] * (float(tensors[fellow][1].reshape(())) / largest)
            before, after = (decibels(original[weight], numbers) for numbers in (exact[weight], fused))
            check(after == before, f"{weight}: {before:.2f} dB alone, {after:.2f} dB fused")
            held += 1
    check(held > 0, f"{name} has no fused projections")
    say(f"{name}: {held} fused projections, each of the same signal to noise with the scale that vLLM keeps")


def decibels(wanted, got):
    return 10 * np.log10(np.sum(wanted**2) / np.sum((wanted - got) ** 2))


if __name__ == "__main__":
    loguru.logger.remove()
    upstream.versions("compressed-tensors", "transformers", "llmcompressor", "torch")
    cases = [
        named(f"{name}_{form}", read_by_transformers, name, form) for name in ("dense", "llama") for form in FORMATS
    ]
    cases += [
        named(f"llama_{form}_dequantized", read_by_transformers, "llama", form, dequantize=True) for form in FORMATS
    ]
    cases += [named(f"minilm_{form}", read_by_transformers, "minilm", form, encoder=True) for form in FORMATS]
    cases += [named(f"experts_{form}_alone", read_alone, "experts", form) for form in FORMATS]
    cases += [named(f"experts_{form}_in_transformers", experts_in_transformers, form) for form in FORMATS]
    cases += [named(f"llmcompressor_{scheme}", written_by_llmcompressor, scheme) for scheme in SCHEMES]
    cases += [named(f"fused_scales_{name}", fused_scales, name) for name in ("llama", "dense", "experts", "minilm")]
    script.cases("upstream_compressed_tensors", cases)

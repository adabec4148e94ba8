#!/usr/bin/env python3
"""The convention gpt_oss, read by transformers; blockscale dequantize gives a file that transformers reads as a plain
model.

test_gpt_oss.py BLOCKSCALE WORK"""

import upstream  # first: it sets the environment
import fnmatch
import json
import os

import numpy as np
import torch
from transformers import Mxfp4Config
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import decode
import script
import torch_models
from script import check
from upstream import say

EXPERTS = ("mlp.experts.gate_up_proj", "mlp.experts.down_proj")
made = {}


def folder():
    if "folder" not in made:
        made["folder"] = upstream.quantized("gpt_oss", "mxfp4", "gpt_oss")
    return made["folder"]


def experts_alone_get_blocks():
    names = decode.read(folder())
    blocks = sorted(name for name in names if name.endswith("_blocks"))
    wanted = sorted(f"model.layers.{layer}.{expert}_blocks" for layer in range(2) for expert in EXPERTS)
    check(blocks == wanted, f"blocks are {blocks}")
    kept = {name for name in decode.read(upstream.model("gpt_oss")) if not name.endswith(EXPERTS)}
    check(kept <= set(names), f"not passed on: {sorted(kept - set(names))[:3]}")


def configuration():
    with open(os.path.join(folder(), "config.json"), encoding="utf-8") as file:
        said = json.load(file)["quantization_config"]
    check(said["quant_method"] == "mxfp4", f"quant_method is {said['quant_method']}")
    check("modules_to_not_convert" in said, "modules_to_not_convert is not there")
    parsed = Mxfp4Config(**{key: value for key, value in said.items() if key != "quant_method"})
    linear = {
        name.removesuffix(".weight")
        for name, (_, values) in decode.read(folder()).items()
        if name.endswith(".weight") and values.ndim == 2
    }
    left = parsed.modules_to_not_convert
    missing = [name for name in sorted(linear) if not any(fnmatch.fnmatch(name, f"{module}*") for module in left)]
    check(not missing, f"not in modules_to_not_convert: {missing[:3]}")


def transposed(exact):
    """Experts as transformers holds them, K before N."""
    return {name: np.swapaxes(values, -1, -2) if name.endswith(EXPERTS) else values for name, values in exact.items()}


def read_by_transformers():
    check(upstream.claims(folder(), "transformers 5.17"), "quantize does not say that transformers loads it")
    exact = transposed(decode.numbers(folder()))
    model = torch_models.load(folder(), quantization_config=Mxfp4Config(dequantize=True))
    wanted = {name: torch_models.rounded(values) for name, values in exact.items()}
    count = upstream.same(torch_models.state(model), wanted, "gpt_oss")
    got, plain = torch_models.run(model), torch_models.run(torch_models.with_numbers("gpt_oss", wanted))
    torch_models.equal_logits(got, plain, "gpt_oss")
    say(f"gpt_oss in transformers: {count} numbers, 0 different, logits equal")


def read_by_its_function():
    """The function with which transformers unpacks blocks, on the bytes themselves."""
    tensors, exact, count = decode.read(folder()), transposed(decode.numbers(folder())), 0
    for name in [name for name in tensors if name.endswith("_blocks")]:
        stem = name.removesuffix("_blocks")
        got = (
            convert_moe_packed_tensors(
                torch.from_numpy(tensors[name][1].copy()),
                torch.from_numpy(tensors[stem + "_scales"][1].copy()),
                dtype=torch.bfloat16,
            )
            .float()
            .numpy()
        )
        count += upstream.same({stem: got}, {stem: torch_models.rounded(exact[stem])}, stem)
    check(count > 0, "no blocks")
    say(f"convert_moe_packed_tensors: {count} numbers, 0 different")


def dequantized_is_a_plain_model():
    """blockscale dequantize: transformers' names and axes, no quantization_config; the same logits."""
    back = upstream.made("back")
    upstream.blockscale("dequantize", folder(), "-o", back, "--type", "bf16")
    upstream.copy_tokenizer(folder(), back)
    with open(os.path.join(back, "config.json"), encoding="utf-8") as file:
        check("quantization_config" not in json.load(file), "config.json still says that it is quantized")
    exact = transposed(decode.numbers(folder()))
    wanted = {name: torch_models.rounded(values) for name, values in exact.items()}
    model = torch_models.load(back)
    count = upstream.same(torch_models.state(model), wanted, "dequantized")
    torch_models.equal_logits(
        torch_models.run(model), torch_models.run(torch_models.with_numbers("gpt_oss", wanted)), "dequantized"
    )
    say(f"dequantized gpt_oss is a plain model: {count} numbers, 0 different, logits equal")


if __name__ == "__main__":
    upstream.versions("transformers", "torch")
    script.cases(
        "upstream_gpt_oss",
        [
            experts_alone_get_blocks,
            configuration,
            read_by_transformers,
            read_by_its_function,
            dequantized_is_a_plain_model,
        ],
    )

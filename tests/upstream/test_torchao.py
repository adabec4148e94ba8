#!/usr/bin/env python3
"""What torchao writes (tensor subclasses flattened into a .safetensors file), read by blockscale or refused by its
name.

test_torchao.py BLOCKSCALE WORK"""

import upstream  # first: it sets the environment
import subprocess

import numpy as np
import torch
from safetensors.torch import save_file
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict

import decode
import script
from script import check
from upstream import named, say

NAME = "layers.0.up_proj.weight"


def numbers():
    values = torch.randn((128, 256), generator=torch.Generator().manual_seed(23))
    values[5, 7] = 9
    return values.to(torch.bfloat16)


def made(form, swizzled):
    values = numbers()
    if form == "nvfp4":
        return NVFP4Tensor.to_nvfp4(
            values, per_tensor_scale=per_tensor_amax_to_scale(values.abs().max()), is_swizzled_scales=swizzled
        )
    element = {"mxfp4": torch.float4_e2m1fn_x2, "mxfp8_e4m3": torch.float8_e4m3fn, "mxfp8_e5m2": torch.float8_e5m2}[
        form
    ]
    return MXTensor.to_mx(values, element, 32, is_swizzled_scales=swizzled)


def written(form, swizzled):
    tensor = made(form, swizzled)
    path = upstream.made(f"{form}{'-swizzled' if swizzled else ''}.safetensors")
    content, metadata = flatten_tensor_state_dict({NAME: tensor, "norm.weight": torch.ones(256)})
    save_file({name: values.contiguous() for name, values in content.items()}, path, metadata=metadata)
    return path, tensor


def nvfp4_numbers():
    """(each number rounded once to fp32, and as torchao has it: the two scales are multiplied in fp32 first)."""
    tensor = made("nvfp4", False)
    codes, scale = decode.e2m1(tensor.qdata.view(torch.uint8).numpy()), tensor.scale.float().numpy()
    whole = tensor.per_tensor_scale.float().numpy()
    exact = codes * np.repeat(scale.astype(np.float64) * float(whole), 16, axis=-1)
    return exact.astype(np.float32), codes.astype(np.float32) * np.repeat(scale * whole, 16, axis=-1)


def read(form, swizzled):
    path, tensor = written(form, swizzled)
    done = subprocess.run([upstream.COMMAND, "inspect", path], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        check("torchao" in done.stderr, f"refused, but not by its name: {done.stderr.strip()[:200]}")
        say(
            f"{form}{' swizzled' if swizzled else ''}: refused by its name: {done.stderr.strip().splitlines()[0][:150]}"
        )
        return
    ours = upstream.dequantized(path)
    wanted = theirs = tensor.dequantize(torch.float32).numpy()
    if form == "nvfp4":
        wanted, rounded = nvfp4_numbers()
        upstream.same({NAME: theirs}, {NAME: rounded}, form)
    count = upstream.same(ours, {NAME: wanted}, form)
    say(f"{form}{' swizzled' if swizzled else ''}: {count} numbers, 0 different from torchao's")


if __name__ == "__main__":
    upstream.versions("torchao", "torch", "safetensors")
    script.cases(
        "upstream_torchao",
        [
            named(f"{form}{'_swizzled' if swizzled else ''}", read, form, swizzled)
            for form in ("nvfp4", "mxfp4", "mxfp8_e4m3", "mxfp8_e5m2")
            for swizzled in (False, True)
        ],
    )

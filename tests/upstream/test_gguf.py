#!/usr/bin/env python3
"""The convention gguf: read by gguf-py and by ggml's own C; and files that gguf-py writes, read by blockscale.

test_gguf.py BLOCKSCALE WORK"""

import upstream  # first: it sets the environment
import ctypes
import glob
import importlib.util
import os

import gguf
import numpy as np

import decode
import script
from script import check
from upstream import named, say

FORMATS = ["nvfp4", "mxfp4"]
TYPES = {"nvfp4": gguf.GGMLQuantizationType.NVFP4, "mxfp4": gguf.GGMLQuantizationType.MXFP4}
SHAPES = {
    "model.layers.0.mlp.up_proj.weight": (64, 128),
    "model.layers.0.mlp.down_proj.weight": (128, 64),
    "norm.weight": (64,),
}


def quantized(name, form):
    path = upstream.made(f"{name}-{form}.gguf")
    if not os.path.exists(path):
        upstream.blockscale("quantize", upstream.model(name), "-o", path, "-f", form, "--convention", "gguf")
    return path


def tensor_scale(tensors, name):
    beside = tensors.get(name.removesuffix(".weight") + ".scale")
    return float(np.asarray(beside.data).reshape(-1)[0]) if beside is not None else 1.0


def every_number(path, form, dequantize):
    """{name: fp64 array} of the quantized tensors by a function from bytes to fp32, times their tensor scale."""
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    found = {name: tensor for name, tensor in tensors.items() if tensor.tensor_type == TYPES[form]}
    check(found, "no tensor was quantized")
    return {
        name: (dequantize(tensor).astype(np.float64) * tensor_scale(tensors, name)) for name, tensor in found.items()
    }


def by_gguf_py(tensor):
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type)


def ggml():
    """ggml's C, as llama-cpp-python brings it."""
    place = importlib.util.find_spec("llama_cpp")
    if place is None:
        raise script.Skip("no ggml: the package llama-cpp-python is not there")
    libraries = sorted(glob.glob(os.path.join(os.path.dirname(place.origin), "lib", "libggml-base.so*")))
    return ctypes.CDLL(libraries[0])


def by_ggml(form):
    function = getattr(ggml(), f"dequantize_row_{form}")
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function.restype = None

    def dequantize(tensor):
        content = np.ascontiguousarray(tensor.data)
        values = np.empty(tuple(int(n) for n in reversed(tensor.shape)), np.float32)
        function(content.ctypes.data, values.ctypes.data, values.size)
        return values

    return dequantize


def read(name, form, by_c):
    path = quantized(name, form)
    theirs = every_number(path, form, by_ggml(form) if by_c else by_gguf_py)
    ours = upstream.dequantized(path)
    count = upstream.same(ours, {n: values.astype(np.float32) for n, values in theirs.items()}, f"{name} {form}")
    say(f"{name} {form} by {'ggml in C' if by_c else 'gguf-py'}: {count} numbers, 0 different")


def written_by_gguf_py(form):
    """A file of gguf-py's: the 4-bit type, Q8_0 beside it, fp16, fp32."""
    path, numbers, kept = upstream.made(f"theirs-{form}.gguf"), np.random.default_rng(23), {}
    writer = gguf.GGUFWriter(path, "llama")
    kinds = [TYPES[form], gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.F32]
    for (name, shape), kind in zip(SHAPES.items(), kinds):
        values = numbers.normal(size=shape).astype(np.float32)
        content = values
        if kind == gguf.GGMLQuantizationType.NVFP4:
            content = numbers.integers(0, 127, size=(shape[0], shape[1] // 64 * 36), dtype=np.uint8)
        elif kind != gguf.GGMLQuantizationType.F32:
            content = gguf.quants.quantize(values, kind)
        writer.add_tensor(name, content, raw_dtype=kind)
        kept[name] = values if kind == gguf.GGMLQuantizationType.F32 else gguf.quants.dequantize(content, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    said = {weight["name"]: weight for weight in upstream.blockscale("inspect", path)["weights"]}
    check(said["model.layers.0.mlp.up_proj"]["format"] == form, f"inspect sees {said}")
    ours = upstream.dequantized(path)
    count = upstream.same(ours, {name: values for name, values in kept.items() if name in ours}, form)
    check(set(kept) - set(ours) == set(), f"dequantize leaves {sorted(set(kept) - set(ours))}")
    say(f"{form} and Q8_0 by gguf-py: {count} numbers, 0 different")


def multiplied(form):
    """A product with the weight as it lies in gguf-py's file is the product with the numbers that gguf-py says."""
    path = upstream.made(f"theirs-{form}.gguf")
    if not os.path.exists(path):
        raise script.Skip("the file was not written")
    wanted = gguf.quants.dequantize(
        next(t for t in gguf.GGUFReader(path).tensors if t.name.endswith("up_proj.weight")).data, TYPES[form]
    )
    np.save(upstream.made("one.npy"), np.eye(wanted.shape[1], dtype=np.float32))
    upstream.blockscale(
        "matmul",
        upstream.made("one.npy"),
        f"{path}:model.layers.0.mlp.up_proj",
        "-o",
        upstream.made("D.npy"),
        "--a-format",
        "fp32",
        "--d-type",
        "fp32",
    )
    count = upstream.same({"D": np.load(upstream.made("D.npy")).T}, {"D": wanted}, form)
    say(f"{form}: {count} numbers of a product with the identity, 0 different")


if __name__ == "__main__":
    upstream.versions("gguf", "llama-cpp-python", "numpy")
    cases = [
        named(f"{name}_{form}_{'ggml' if by_c else 'gguf_py'}", read, name, form, by_c)
        for by_c in (False, True)
        for name in ("llama", "minilm")
        for form in FORMATS
    ]
    cases += [named(f"written_{form}", written_by_gguf_py, form) for form in FORMATS]
    cases += [named(f"multiplied_{form}", multiplied, form) for form in FORMATS]
    script.cases("upstream_gguf", cases)

#!/usr/bin/env python3
"""Writes golden_checkpoints.h: files that safetensors and gguf made, byte by byte.  Run with both and NumPy installed:

    python3 tests/file/checkpoint/make_golden_checkpoints.py > tests/file/checkpoint/golden_checkpoints.h

Byte i of every tensor's data is 7 i + 3 modulo 256."""
import importlib.metadata
import os
import tempfile

import gguf
import numpy as np
import safetensors


def pattern(count):
    return bytes((7 * i + 3) % 256 for i in range(count))


def print_file(name, data):
    print(f"static const char {name}[] =")
    for i in range(0, len(data), 28):
        text = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in data[i:i + 28])
        print('    "' + text + '"')
    print("    ;")


def make_safetensors():
    # name: dtype, shape as the binding takes it, bytes.  Four-bit numbers are given as torch keeps them, two in a byte.
    tensors = [("half", "float16", [3], 6), ("single", "float32", [2, 2], 16), ("brain", "bfloat16", [2], 4),
               ("double", "float64", [1], 8),
               ("bytes", "uint8", [5], 5), ("signed", "int8", [2, 3], 6), ("e4m3", "float8_e4m3fn", [4], 4),
               ("e5m2", "float8_e5m2", [4], 4),
               ("e8m0", "float8_e8m0fnu", [3], 3), ("e2m1", "float4_e2m1fn_x2", [2, 2], 4),
               ("empty", "float32", [0, 7], 0), ("scalar", "float32", [], 4)]
    kept = {name: np.frombuffer(pattern(size), dtype="u1") for name, _, _, size in tensors}
    specs = {name: safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=kept[name].ctypes.data, data_len=size)
             for name, dtype, shape, size in tensors}
    return bytes(safetensors.serialize(specs, {"format": "pt"}))


def make_gguf():
    kinds = gguf.GGMLQuantizationType
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "golden.gguf")
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_uint32("some.number", 7)
        writer.add_array("some.texts", ["one", "two", ""])
        writer.add_array("some.numbers", [1, 2, 3])
        writer.add_bool("some.bool", True)
        writer.add_string("general.name", "golden")
        writer.add_tensor("single", np.frombuffer(pattern(24), dtype="<f4").reshape(2, 3))
        writer.add_tensor("half", np.frombuffer(pattern(10), dtype="<f2"))
        writer.add_tensor("mx", np.frombuffer(pattern(2 * 34), dtype="u1").reshape(2, 34), raw_dtype=kinds.MXFP4)
        writer.add_tensor("nv", np.frombuffer(pattern(3 * 36), dtype="u1").reshape(3, 36), raw_dtype=kinds.NVFP4)
        writer.add_tensor("q8", np.frombuffer(pattern(34), dtype="u1"), raw_dtype=kinds.Q8_0)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        with open(path, "rb") as file:
            return file.read()


versions = " and ".join(f"{name} {importlib.metadata.version(name)}" for name in ("safetensors", "gguf"))
print(f"/* Made by make_golden_checkpoints.py with {versions}. */")
print_file("golden_safetensors", make_safetensors())
print_file("golden_gguf", make_gguf())

#!/usr/bin/env python3
"""Checkpoints as other projects spell them, through the command: fp8 with bf16 scales, MXFP6, torchao, Q8_0 in GGUF;
and inspect of a checkpoint with weights that lie or that nothing here reads."""
import json
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import checkpoint_file as cf
import script
from script import check

command = os.path.abspath(sys.argv[1])
ROWS, COLUMNS = 8, 64


def run(arguments, folder, expect=0, words=""):
    return script.run_in(folder, [command, *arguments], expect, words).stdout


def in_folder(function):
    return script.in_folder(function)


def path_of(folder, name):
    return os.path.join(folder, name)


def codes(count, seed, below=256):
    numbers = random.Random(seed)
    return bytes(numbers.randrange(below) for _ in range(count))


def e4m3_codes(count, seed):
    return bytes(code & 0x80 | (code & 0x7f) % 0x7f for code in codes(count, seed))


def numbers_of(folder, out, name):
    kind, shape, content = cf.read(path_of(folder, out))[name]
    check(kind == "F32", kind)
    return shape, [x for x, in struct.iter_unpack("<f", content)]


@in_folder
def fp8_with_bf16_scales(folder):
    """llm-compressor's FP8_DYNAMIC and FP8_BLOCK: scales in the type of the model."""
    row_scales = cf.bf16([0.5 + i / 8 for i in range(ROWS)])
    row_codes, block_codes = e4m3_codes(ROWS * COLUMNS, 1), e4m3_codes(130 * 140, 2)
    block_scales = cf.bf16([1, 2, 3, 4])
    cf.write(path_of(folder, "x.safetensors"), {
        "r.weight_scale": ("BF16", [ROWS, 1], row_scales), "b.weight_scale": ("BF16", [2, 2], block_scales),
        "r.weight": ("F8_E4M3", [ROWS, COLUMNS], row_codes), "b.weight": ("F8_E4M3", [130, 140], block_codes)})
    run(["dequantize", "x.safetensors", "-o", "d.safetensors", "--type", "fp32"], folder)
    check(sorted(cf.read(path_of(folder, "d.safetensors"))) == ["b.weight", "r.weight"],
          "scales belong to their weights")
    scales = cf.from_bf16(row_scales)
    check(numbers_of(folder, "d.safetensors", "r.weight") == ([ROWS, COLUMNS],
                                                              [cf.e4m3(c) * scales[i // COLUMNS]
                                                               for i, c in enumerate(row_codes)]), "rows")
    want = [cf.e4m3(c) * [1, 2, 3, 4][i // 140 // 128 * 2 + i % 140 // 128] for i, c in enumerate(block_codes)]
    check(numbers_of(folder, "d.safetensors", "b.weight") == ([130, 140], want), "blocks")
    said = json.loads(run(["quantize", "x.safetensors", "-o", "q.safetensors", "-f", "mxfp8", "--include", "r",
                           "--json"], folder))
    check(said["weights"][0]["snr_db"] > 28, said)


@in_folder
def mxfp6_of_compressed_tensors(folder):
    os.mkdir(path_of(folder, "hf"))
    content = cf.random_bf16(ROWS, COLUMNS, 3)
    cf.write(path_of(folder, "hf/model.safetensors"), {"m.weight": ("BF16", [ROWS, COLUMNS], content)})
    said = json.loads(run(["quantize", "hf", "-o", "q", "-f", "mxfp6_e2m3", "--convention", "compressed_tensors",
                           "--json"], folder))
    tensors = cf.read(path_of(folder, "q/model.safetensors"))
    check({name: t[:2] for name, t in tensors.items()} == {"m.weight_packed": ("U8", [ROWS, COLUMNS // 4 * 3]),
                                                           "m.weight_scale": ("U8", [ROWS, COLUMNS // 32])},
          {name: t[:2] for name, t in tensors.items()})
    numbers = [cf.e2m3(code) * cf.e8m0(tensors["m.weight_scale"][2][i // 32])
               for i, code in enumerate(cf.six_bits(tensors["m.weight_packed"][2]))]
    check(abs(cf.signal_to_noise(numbers, cf.from_bf16(content)) - said["weights"][0]["snr_db"]) < 1e-4
          and said["weights"][0]["snr_db"] > 29, said)
    with open(path_of(folder, "q/config.json"), encoding="utf-8") as file:
        config = json.load(file)["quantization_config"]
    weights = config["config_groups"]["group_0"]["weights"]
    check(config["format"] == "mxfp6-pack-quantized" and weights["num_bits"] == 6
          and weights["scale_dtype"] == "torch.uint8", config)
    run(["dequantize", "q", "-o", "d.safetensors", "--type", "fp32"], folder)
    check(numbers_of(folder, "d.safetensors", "m.weight") == ([ROWS, COLUMNS], numbers), "read again")
    run(["convert", "q", "-o", "c.safetensors"], folder)
    check("mxfp6_e2m3" in run(["inspect", "c.safetensors"], folder), "F6_E2M3 of modelopt's names")


def swizzled(row, column, columns):
    """Where cuBLAS has the scale of a row: blocks of 128 x 4."""
    return ((row // 128 * -(-columns // 4) + column // 4) * 512) + row % 32 * 16 + row % 128 // 32 * 4 + column % 4


@in_folder
def torchao_is_converted(folder):
    """Scales in blocks become rows, 6-bit codes in bytes are packed; numbers stay."""
    scales = e4m3_codes(ROWS * 4, 5)
    blocks = bytearray(512)
    for i, scale in enumerate(scales):
        blocks[swizzled(i // 4, i % 4, 4)] = scale & 0x7f
    nvfp4, six, powers = codes(ROWS * COLUMNS // 2, 6), codes(ROWS * COLUMNS, 7, 64), codes(ROWS * 2, 8, 40)
    powers = bytes(100 + x for x in powers)
    metadata = {"s.weight": json.dumps({"_type": "MXTensor", "_data": {"elem_dtype": "fp6_e2m3"}})}
    cf.write(path_of(folder, "t.safetensors"), {
        "n._weight_per_tensor_scale": ("F32", [], struct.pack("<f", 0.5)),
                                                "n._weight_qdata": ("U8", [ROWS, COLUMNS // 2], nvfp4),
        "n._weight_scale": ("F8_E4M3", [32, 16], bytes(blocks)), "s._weight_qdata": ("U8", [ROWS, COLUMNS], six),
        "s._weight_scale": ("F8_E8M0", [ROWS, 2], powers)}, metadata)
    seen = {w["name"]: w for w in json.loads(run(["inspect", "t.safetensors", "--json"], folder))["weights"]}
    check({name: (w["convention"], w["format"]) for name, w in seen.items()} == {"n": ("torchao", "nvfp4"),
                                                                                 "s": ("torchao", "mxfp6_e2m3")}, seen)
    run(["convert", "t.safetensors", "-o", "m.safetensors"], folder)
    want = {"n": [cf.e2m1(c) * cf.e4m3(scales[i // 16] & 0x7f) * 0.5 for i, c in enumerate(cf.nibbles(nvfp4))],
            "s": [cf.e2m3(c) * cf.e8m0(powers[i // 32]) for i, c in enumerate(six)]}
    for source in ("t", "m"):
        run(["dequantize", source + ".safetensors", "-o", "d.safetensors", "--type", "fp32"], folder)
        for name, numbers in want.items():
            check(numbers_of(folder, "d.safetensors", name + ".weight") == ([ROWS, COLUMNS], numbers),
                  f"{source} {name}")
    seen = {w["name"]: w for w in json.loads(run(["inspect", "m.safetensors", "--json"], folder))["weights"]}
    check(all(w["convention"] == "modelopt" for w in seen.values()) and seen["s"]["bits"] == 6.25
          and seen["n"]["bits"] == 4.5, seen)


@in_folder
def q8_0_beside_mxfp4(folder):
    """As gpt-oss is in GGUF files: dequantize reads both, convert says what it cannot carry over."""
    scales = [0.5, 2.0 ** -24, -3.0, 65504.0]
    ints = codes(4 * 32, 9)
    q8 = b"".join(struct.pack("<e", scales[i]) + ints[32 * i:32 * i + 32] for i in range(4))
    mx = b"".join(bytes([120 + i]) + codes(16, i) for i in range(4))
    cf.write_gguf(path_of(folder, "x.gguf"), {"a.weight": (8, [2, 64], q8), "b.weight": (39, [2, 64], mx),
                                              "n.weight": (0, [3], bytes(12))})
    check("a.weight  Q8_0" in run(["inspect", "x.gguf", "--tensors"], folder), "by its name")
    said = json.loads(run(["dequantize", "x.gguf", "-o", "d.safetensors", "--type", "fp32", "--json"], folder))
    check(said["weights"] == 2 and said["passed_on"] == 1, said)
    want = [scales[i // 32] * struct.unpack("b", ints[i:i + 1])[0] for i in range(128)]
    check(numbers_of(folder, "d.safetensors", "a.weight") == ([2, 64], want), "Q8_0")
    run(["convert", "x.gguf", "-o", "c.safetensors"], folder, 3,
        "tensor a.weight: .safetensors files have no type Q8_0")
    run(["convert", "x.gguf", "-o", "c.gguf"], folder)
    check("a.weight  Q8_0" in run(["inspect", "c.gguf", "--tensors"], folder), "passed on")
    cf.write_gguf(path_of(folder, "y.gguf"), {"a.weight": (8, [2, 64], q8)})
    run(["dequantize", "y.gguf", "-o", "e.safetensors", "--type", "fp32"], folder)
    check(numbers_of(folder, "e.safetensors", "a.weight") == ([2, 64], want), "alone")


@in_folder
def inspect_looks_at_all(folder):
    good = {"a.weight": ("BF16", [ROWS, COLUMNS], cf.random_bf16(ROWS, COLUMNS, 10)),
            "c.weight": ("BF16", [ROWS, COLUMNS], cf.random_bf16(ROWS, COLUMNS, 11))}
    int8 = {"b._weight_scale": ("BF16", [2, 1], bytes(4)), "b._weight_qdata": ("U8", [2, 8], bytes(16))}
    cf.write(path_of(folder, "x.safetensors"), {**good, **int8})
    said = json.loads(run(["inspect", "x.safetensors", "--json"], folder,
                          words="b._weight_qdata (U8) with scales b._weight_scale is a tensor of torchao's"))
    check([w["name"] for w in said["weights"]] == ["a", "c"] and (said["wrong"], said["not_read"]) == (0, 1), said)
    check("2 weights shown, 1 of kinds that are not read" in run(["inspect", "x.safetensors"], folder), "text")
    other = {"a.weight": ("BF16", [COLUMNS, ROWS], good["a.weight"][2]), "c.weight": good["c.weight"]}
    cf.write(path_of(folder, "y.safetensors"), other)
    said = json.loads(run(["inspect", "x.safetensors", "--against", "y.safetensors", "--json"], folder, 3,
                          "a: is 8 x 64, in the original 64 x 8"))
    check([w["name"] for w in said["weights"]] == ["a", "c"] and said["wrong"] == 1, said)
    lies = {"l.weight": ("U8", [4, 32], bytes(128)), "l.weight_scale": ("U8", [4, 7], bytes(28))}
    cf.write(path_of(folder, "z.safetensors"), {**good, **lies})
    said = json.loads(run(["inspect", "z.safetensors", "--json"], folder, 3, "l.weight_scale (4 x 7) does not fit"))
    check([w["name"] for w in said["weights"]] == ["a", "c"] and said["wrong"] == 1, said)


script.cases("test_cli_spellings", [fp8_with_bf16_scales, mxfp6_of_compressed_tensors, torchao_is_converted,
                                    q8_0_beside_mxfp4, inspect_looks_at_all])

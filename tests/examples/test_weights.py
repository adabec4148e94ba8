#!/usr/bin/env python3
"""The examples that multiply with weights of checkpoints: test_weights.py COMMAND GPT_OSS GGUF.  What they print is compared with sums
over the bytes of the files."""
import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
import checkpoint_file as cf
import script
from script import check, run

COMMAND, GPT_OSS, GGUF = (os.path.abspath(path) for path in sys.argv[1:4])
EXPERTS, ROWS, COLUMNS = 3, 6, 128


def sums(values):
    return [sum(values[row * COLUMNS:(row + 1) * COLUMNS]) for row in range(ROWS)]


def near(printed, want):
    got = [float(line) for line in printed.split()]
    check(len(got) == len(want) and all(abs(x - y) <= 1e-4 * (1 + abs(y)) for x, y in zip(got, want)), f"{got}, not {want}")


def an_expert_of_gpt_oss():
    numbers = random.Random(9)
    codes = bytes(numbers.randrange(256) for _ in range(EXPERTS * ROWS * COLUMNS // 2))
    scales = bytes(numbers.randrange(120, 130) for _ in range(EXPERTS * ROWS * COLUMNS // 32))
    with tempfile.TemporaryDirectory() as folder:
        cf.write(os.path.join(folder, "model.safetensors"), {
            "layer.mlp.experts.down_proj_blocks": ("U8", [EXPERTS, ROWS, COLUMNS // 32, 16], codes),
            "layer.mlp.experts.down_proj_scales": ("U8", [EXPERTS, ROWS, COLUMNS // 32], scales)})
        values = [cf.e2m1(code) * cf.e8m0(scales[i // 32]) for i, code in enumerate(cf.nibbles(codes))]
        for expert in range(EXPERTS):
            part = values[expert * ROWS * COLUMNS:(expert + 1) * ROWS * COLUMNS]
            near(run([GPT_OSS, folder, "layer.mlp.experts.down_proj", str(expert)]), sums(part))
        run([GPT_OSS, folder, "layer.mlp.experts.down_proj", str(EXPERTS)], expect=1)
        run([GPT_OSS, folder, "absent", "0"], expect=1)


def weights_of_gguf():
    with tempfile.TemporaryDirectory() as folder:
        for form, block in (("mxfp4", 32), ("nvfp4", 16)):
            model, gguf = os.path.join(folder, "m.safetensors"), os.path.join(folder, "m.gguf")
            run([COMMAND, "quantize", f"random:{ROWS}x{COLUMNS}", "-o", model, "-f", form])
            run([COMMAND, "convert", model, "-o", gguf])
            tensors = cf.read(model)
            scales, decode = tensors["matrix.weight_scale"][2], cf.e8m0 if form == "mxfp4" else cf.e4m3
            factor = 1 if form == "mxfp4" else cf.struct.unpack("<f", tensors["matrix.weight_scale_2"][2])[0]
            values = [cf.e2m1(code) * decode(scales[i // block]) * factor for i, code in enumerate(cf.nibbles(tensors["matrix.weight"][2]))]
            near(run([GGUF, gguf, "matrix"]), sums(values))
        run([GGUF, os.path.join(folder, "absent.gguf"), "matrix"], expect=1)


def short_enough():
    """Under 30 lines of C each."""
    for name in ("gpt_oss.c", "gguf.c"):
        with open(os.path.join(HERE, "..", "..", "examples", "weights", name), encoding="utf-8") as file:
            lines = file.read().split("*/\n", 1)[1].splitlines()
        check(len(lines) < 35 and sum(1 for line in lines if line.strip() not in ("", "{", "}")) < 30, f"{name}: {len(lines)} lines")


script.cases("test_weights", [an_expert_of_gpt_oss, weights_of_gguf, short_enough])

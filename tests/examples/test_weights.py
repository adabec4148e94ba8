#!/usr/bin/env python3
"""The examples about weights of checkpoints: test_weights.py COMMAND GPT_OSS GGUF QUANTIZE.  What is multiplied is
compared with sums over the bytes of the files, what is written with what the command writes."""
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

COMMAND, GPT_OSS, GGUF, QUANTIZE = (os.path.abspath(path) for path in sys.argv[1:5])
EXPERTS, ROWS, COLUMNS = 3, 6, 128


def sums(values):
    return [sum(values[row * COLUMNS:(row + 1) * COLUMNS]) for row in range(ROWS)]


def near(printed, want):
    got = [float(line) for line in printed.split()]
    are_near = all(abs(x - y) <= 1e-4 * (1 + abs(y)) for x, y in zip(got, want))
    check(len(got) == len(want) and are_near, f"{got}, not {want}")


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
            codes = cf.nibbles(tensors["matrix.weight"][2])
            values = [cf.e2m1(code) * decode(scales[i // block]) * factor for i, code in enumerate(codes)]
            near(run([GGUF, gguf, "matrix"]), sums(values))
        run([GGUF, os.path.join(folder, "absent.gguf"), "matrix"], expect=1)


def a_model_is_quantized():
    """Every file is the one that the command writes, and nothing is left of what fails."""
    with tempfile.TemporaryDirectory() as folder:
        model, ours, theirs = (os.path.join(folder, name) for name in ("hf", "ours", "theirs"))
        os.mkdir(model)
        shapes = {"a.weight": (8, 64), "b.weight": (3, 96), "odd.weight": (4, 40), "norm.bias": (1, 64)}
        cf.write(os.path.join(model, "model.safetensors"), {
            name: ("BF16", list(shape), cf.random_bf16(*shape, seed))
            for seed, (name, shape) in enumerate(shapes.items())})
        for name, text in (("config.json", '{"model_type": "x", "eps": 1e-5}'), ("tokenizer.json", "{}")):
            with open(os.path.join(model, name), "w", encoding="utf-8") as file:
                file.write(text)
        run([QUANTIZE, model, ours])
        run([COMMAND, "quantize", model, "-o", theirs, "-f", "mxfp4"])
        check(sorted(os.listdir(ours)) == sorted(os.listdir(theirs)) and len(os.listdir(ours)) == 4, os.listdir(ours))
        for name in os.listdir(theirs):
            with open(os.path.join(ours, name), "rb") as one, open(os.path.join(theirs, name), "rb") as other:
                check(one.read() == other.read(), f"{name} is another file than the command's")
        run([QUANTIZE, model, os.path.join(folder, "not", "there")], expect=1)
        run([QUANTIZE, os.path.join(folder, "absent"), os.path.join(folder, "new")], expect=1)
        check(sorted(os.listdir(folder)) == ["hf", "ours", "theirs"], os.listdir(folder))


def short_enough():
    """Under 30 lines of C each."""
    for name in ("gpt_oss.c", "gguf.c"):
        with open(os.path.join(HERE, "..", "..", "examples", "weights", name), encoding="utf-8") as file:
            lines = file.read().split("*/\n", 1)[1].splitlines()
        filled = sum(1 for line in lines if line.strip() not in ("", "{", "}"))
        check(len(lines) < 35 and filled < 30, f"{name}: {len(lines)} lines")


script.cases("test_weights", [an_expert_of_gpt_oss, weights_of_gguf, a_model_is_quantized, short_enough])

#!/usr/bin/env python3
"""Numbers that would pass in silence: NaN, infinity and matrices of zeros are warned of in one line; and two verbs that
count the same say the same."""
import json
import math
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import checkpoint_file as cf
import npy_file
import script
from script import check

command = os.path.abspath(sys.argv[1])
NAN, INF = math.nan, math.inf


def run(arguments, folder, warnings=(), expect=0):
    """warnings: what each line that warns must hold; there is no other."""
    done = script.run_in(folder, [command, *arguments], expect)
    lines = [line for line in done.stderr.splitlines() if "warning: " in line]
    check(len(lines) == len(warnings) and all(words in line for words, line in zip(warnings, lines)),
          f"{arguments}: {lines}, want {warnings}")
    return done.stdout


def in_folder(function):
    return script.in_folder(function)


def numbers(count, **wrong):
    values = [(i * 37 % 101 - 50) / 32 for i in range(count)]
    for at, value in wrong.items():
        values[int(at[1:])] = value
    return values


@in_folder
def matrices(folder):
    npy_file.write(os.path.join(folder, "good.npy"), (4, 64), numbers(256))
    npy_file.write(os.path.join(folder, "nan.npy"), (4, 64), numbers(256, n3=NAN, n70=NAN, n71=INF))
    npy_file.write(os.path.join(folder, "tiny.npy"), (2, 64), [1e-40, -1e-41] * 64)
    npy_file.write(os.path.join(folder, "zero.npy"), (2, 64), [0.0] * 128)
    for form in ("nvfp4", "mxfp4", "e4m3", "bf16", "fp32"):
        for more in ([], ["--json"]):
            run(["quantize", "good.npy", "-o", "q", "-f", form, *more], folder)
            run(["quantize", "zero.npy", "-o", "q", "-f", form, *more], folder)
    for form, blocks in (("nvfp4", "2 of 16 blocks become NaN"), ("mxfp4", "2 of 8 blocks become NaN"),
                         ("e4m3", "which the statistics do not count")):
        run(["quantize", "nan.npy", "-o", "q", "-f", form], folder,
            [f"nan.npy holds 2 NaN and 1 infinite among 256 numbers{'' if form == 'e4m3' else ': ' + blocks}"])
    run(["quantize", "nan.npy", "-o", "q", "-f", "nvfp4", "--nonfinite", "saturate"], folder,
        ["2 NaN and 1 infinite among 256 numbers, which the statistics do not count"])
    run(["quantize", "nan.npy", "-o", "q.safetensors", "-f", "nvfp4"], folder,
        ["1 weight holds NaN or infinity, which the statistics do not count; the first is matrix"])
    run(["quantize", "tiny.npy", "-o", "q", "-f", "mxfp4"], folder,
        ["all numbers of tiny.npy become zero: they are too small for mxfp4"])
    run(["quantize", "tiny.npy", "-o", "q", "-f", "nvfp4", "--tensor-scale", "1"], folder,
        ["all numbers of tiny.npy become zero: they are too small for nvfp4 with this"])
    run(["quantize", "tiny.npy", "-o", "q", "-f", "e4m3"], folder, ["all numbers of tiny.npy become zero"])


@in_folder
def weights(folder):
    tiny = b"".join(b"\1\0" for _ in range(128))            # bf16's smallest number
    good = cf.random_bf16(2, 64, 1)
    cf.write(os.path.join(folder, "x.safetensors"), {
        "a.weight": ("BF16", [2, 64], good), "b.weight": ("BF16", [2, 64], cf.bf16(numbers(128, n5=NAN))),
                                                     "c.weight": ("BF16", [2, 64], tiny),
        "d.weight": ("BF16", [2, 64], cf.bf16(numbers(128, n5=INF, n6=-INF))), "norm": ("BF16", [1], cf.bf16([NAN]))})
    said = json.loads(run(["quantize", "x.safetensors", "-o", "q.safetensors", "-f", "mxfp4", "--json"], folder,
                          ["2 weights hold NaN or infinity, which the statistics do not count; "
                           "the first is b with 1 NaN among 128",
                           "all numbers of 1 weight become zero: they are too small for mxfp4; the first is c"]))
    check([w["nan_blocks"] for w in said["weights"]] == [0, 1, 0, 1], said)
    seen = json.loads(run(["inspect", "q.safetensors", "--against", "x.safetensors", "--json"], folder,
                          ["2 weights hold numbers that are not finite here or in the original, "
                           "which the comparison does not count; the first is b with 32"]))
    check(abs(seen["snr_db"] - said["snr_db"]) < 1e-4, f"{seen['snr_db']} {said['snr_db']}")
    run(["quantize", "x.safetensors", "-o", "e.safetensors", "-f", "mxfp4", "--include", "a"], folder)


@in_folder
def products(folder):
    npy_file.write(os.path.join(folder, "good.npy"), (4, 64), numbers(256))
    npy_file.write(os.path.join(folder, "nan.npy"), (4, 64), numbers(256, n3=NAN))
    npy_file.write(os.path.join(folder, "tiny.npy"), (4, 64), [1e-40] * 256)
    npy_file.write(os.path.join(folder, "huge.npy"), (4, 64), [3e38] * 256)
    run(["quantize", "nan.npy", "-o", "N", "-f", "mxfp4"], folder, ["1 of 8 blocks"])
    for form in ("mxfp4", "nvfp4", "e4m3", "fp32"):
        run(["matmul", "good.npy", "good.npy", "-o", "D.npy", "-f", form], folder)
        run(["matmul", "nan.npy", "good.npy", "-o", "D.npy", "-f", form], folder,
            ["A (nan.npy) holds 1 NaN among 256 numbers", "D holds 4 NaN among 16 numbers"])
        run(["matmul", "good.npy", "nan.npy", "-o", "D.npy", "-f", form], folder,
            ["B (nan.npy) holds 1 NaN among 256 numbers", "D holds 4 NaN among 16 numbers"])
    for d_type in ("bf16", "fp16", "mxfp8", "nvfp4"):
        run(["matmul", "nan.npy", "good.npy", "-o", "D.npy", "-f", "mxfp4", "--d-type", d_type], folder,
            ["A (nan.npy)", "D holds 4 NaN among 16 numbers"])
    run(["matmul", "N.json", "good.npy", "-o", "D.npy", "--b-format", "mxfp4"], folder,
        ["A (N.json) holds 32 NaN among 256 numbers", "D holds 4 NaN"])
    run(["matmul", "N.json", "good.npy", "-o", "D.npy", "--b-format", "mxfp4", "--activation", "relu"], folder,
        ["A (N.json) holds 32 NaN among 256 numbers", "D holds 4 NaN"])
    run(["matmul", "tiny.npy", "good.npy", "-o", "D.npy", "-f", "mxfp4"], folder,
        ["all numbers of A (tiny.npy) become zero"])
    run(["matmul", "huge.npy", "huge.npy", "-o", "D.npy", "-f", "fp32"], folder,
        ["D holds 16 infinite among 16 numbers"])
    said = json.loads(run(["matmul", "nan.npy", "good.npy", "-o", "D.npy", "-f", "mxfp4", "--json"], folder,
                          ["A (nan", "D holds"]))
    check(said["d_nan"] == 4 and said["d_infinite"] == 0, said)


@in_folder
def two_verbs_count_the_same(folder):
    """Weights that stay as they are have a signal and no noise: they are in neither sum."""
    big = cf.random_bf16(64, 64, 1, 5.0)
    exact = cf.bf16([1.0, -0.5, 2.0, 0.0] * 32)
    cf.write(os.path.join(folder, "x.safetensors"), {
        "embed.weight": ("BF16", [64, 64], big), "a.weight": ("BF16", [8, 64], cf.random_bf16(8, 64, 2)),
                                                     "lm_head.weight": ("BF16", [64, 64], big),
        "b.weight": ("BF16", [8, 64], cf.random_bf16(8, 64, 3, 0.5)), "c.weight": ("BF16", [2, 64], exact)})
    for form, ending in (("nvfp4", ".safetensors"), ("mxfp4", ".safetensors"), ("mxfp8", ".safetensors"),
                         ("mxfp4", ".gguf")):
        out = "q" + ending
        text = run(["quantize", "x.safetensors", "-o", out, "-f", form], folder)
        said = json.loads(run(["quantize", "x.safetensors", "-o", out, "-f", form, "--json"], folder))
        seen_text = run(["inspect", out, "--against", "x.safetensors"], folder)
        seen = json.loads(run(["inspect", out, "--against", "x.safetensors", "--json"], folder))
        check(abs(said["snr_db"] - seen["snr_db"]) < 1e-4 and said["changed"] == seen["changed"] == 2, f"{said} {seen}")
        pattern = r"signal to noise of the (\d+) weights that changed (\d+\.\d+) dB"
        check(re.search(pattern, text).groups() == re.search(pattern, seen_text).groups(), f"{text} {seen_text}")
        run(["dequantize", out, "-o", "back.safetensors"], folder)
        back = json.loads(run(["inspect", "back.safetensors", "--against", "x.safetensors", "--json"], folder))
        check(abs(back["snr_db"] - said["snr_db"]) < 0.05, f"dequantized to bf16: {back['snr_db']} {said['snr_db']}")
    check("every number that was compared is exact" in run(["inspect", "x.safetensors", "--against", "x.safetensors"],
                                                           folder), "itself")
    check("every number is exact" in run(["quantize", "x.safetensors", "-o", "e.safetensors", "-f", "mxfp4",
                                          "--include", "c"], folder), "c")


script.cases("test_cli_silent_numbers", [matrices, weights, products, two_verbs_count_the_same])

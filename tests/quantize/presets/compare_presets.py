#!/usr/bin/env python3
"""Presets against the programs they are named after, on much data of many kinds.

    compare_presets.py PRESET_CODES [--transformer-engine FILE] [--codes MILLIONS] [--only REGEX] [--seed N]

Runs in an environment with the packages of upstream_quantizers.py.  PRESET_CODES is the program of this folder.  Prints
one line for each preset, format and type of source: tensors, tensor scales, scales and codes compared, and how many
differ.  Exit status 1 if any does."""
import argparse
import re
import subprocess
import sys

import numpy as np
import torch

import upstream_quantizers

ROWS, COLUMNS = 64, 1024
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
LARGEST = {"fp32": 2.0 ** 126, "bf16": 2.0 ** 126, "fp16": 32768.0}      # beyond, some projects' steps overflow


def blocks_of(random, sizes):
    return np.repeat(np.exp2(random.choice(sizes, (ROWS, COLUMNS // 16))), 16, axis=1)


def signs(random): return random.choice([-1.0, 1.0], (ROWS, COLUMNS))


def normal(random): return random.standard_normal((ROWS, COLUMNS)) * 0.02
def heavy_tails(random): return random.standard_t(2, (ROWS, COLUMNS)) * 0.01
def many_sizes(random):
    return random.standard_normal((ROWS, COLUMNS)) * np.exp2(random.integers(-40, 40, (ROWS, COLUMNS)))
def few_bits(random):
    return signs(random) * random.integers(0, 16, (ROWS, COLUMNS)) * blocks_of(random, np.arange(-8, 4))
def tiny(random): return random.standard_normal((ROWS, COLUMNS)) * np.exp2(random.integers(-150, -120, (ROWS, COLUMNS)))


def zeros(random):
    x = random.standard_normal((ROWS, COLUMNS)) * (random.random((ROWS, COLUMNS)) < 0.1)
    x[:, :COLUMNS // 4] = 0
    return np.copysign(x, signs(random))


def underflowing(random):
    """One number of each 32 is large; quotients of the others are subnormal, or 0."""
    x = random.standard_normal((ROWS, COLUMNS)) * np.exp2(random.integers(-149, -100, (ROWS, COLUMNS)))
    x[:, ::32] = np.exp2(random.integers(-20, 30, (ROWS, COLUMNS // 32)))
    return x


def midpoints(random):
    """Blocks whose largest number is a format's times a power of two, all others on midpoints of e2m1 or e4m3, or one
    bit off."""
    scale = np.repeat(np.exp2(random.integers(-20, 20, (ROWS, COLUMNS // 32))), 32, axis=1)
    x = random.choice([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 4.5, 17, 19, 104, 2.125, 3.875], (ROWS, COLUMNS))
    x[:, ::32] = random.choice([6, 448, 7.5, 28, 7, 4, 256], (ROWS, COLUMNS // 32))
    return signs(random) * x * scale * (1 + random.integers(-1, 2, (ROWS, COLUMNS)) * 2.0 ** -23)


def whole_tensor(random): return random.standard_normal((ROWS, COLUMNS)) * np.exp2(float(random.integers(-90, 90)))


KINDS = [normal, heavy_tails, many_sizes, few_bits, tiny, zeros, underflowing, midpoints, whole_tensor]


def numbers(kind, name, random):
    x = np.clip(kind(random), -LARGEST[name], LARGEST[name])
    return torch.from_numpy(x.astype(np.float32)).to(TYPES[name])


def has_normal_scale(weight):
    """Tensor scales that are no normal number are not compared: some projects divide by 0 there."""
    amax = weight.float().abs().max().item()
    return 2.0 ** -126 * 2688 < amax < 2.0 ** 126


def ours(program, preset, form, name, weight, scale_columns):
    bits = weight.contiguous().view(torch.uint8).numpy().tobytes()
    done = subprocess.run([program, preset, form, name, str(weight.shape[0]), str(weight.shape[1])], input=bits,
                          capture_output=True, check=True)
    out = np.frombuffer(done.stdout, np.uint8)
    scales = weight.shape[0] * scale_columns
    return (out[:4].view(np.float32)[0], out[4:4 + scales].reshape(-1, scale_columns),
            out[4 + scales:].reshape(weight.shape))


class Count:
    def __init__(self):
        self.tensors = self.tensor_scales = self.scales = self.codes = self.different = 0
        self.kinds = set()

    def compare(self, kind, theirs, got):
        different = int((theirs[1] != got[1]).sum() + (theirs[2] != got[2]).sum())
        if theirs[0] is not None:
            self.tensor_scales += 1
            different += np.float32(theirs[0]).view(np.uint32) != np.float32(got[0]).view(np.uint32)
        self.tensors += 1
        self.scales += theirs[1].size
        self.codes += theirs[2].size
        self.different += different
        if different:
            self.kinds.add(kind.__name__)


def compare_row(arguments, preset, form, quantize, name):
    random, count = np.random.default_rng([arguments.seed, len(name), sum(map(ord, preset + form + name))]), Count()
    while count.codes < arguments.codes * 1e6:
        for kind in KINDS:
            weight = numbers(kind, name, random)
            if form == "nvfp4" and not has_normal_scale(weight):
                continue
            theirs = quantize(weight)
            count.compare(kind, theirs, ours(arguments.program, preset, form, name, weight, theirs[1].shape[1]))
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--transformer-engine")
    parser.add_argument("--codes", type=float, default=2.5, help="millions, of each type")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(upstream_quantizers.versions())
    print(f"{'preset':20} {'format':11} {'type':5} {'tensors':>7} {'tensor scales':>13} {'scales':>9} {'codes':>10} "
          f"{'different':>9}")
    different = 0
    for preset, form, quantize in upstream_quantizers.quantizers(arguments.transformer_engine):
        for name in TYPES:
            if not re.search(arguments.only, f"{preset} {form} {name}") or (preset == "torchao" and name == "fp16"):
                continue
            c = compare_row(arguments, preset, form, quantize, name)
            print(f"{preset:20} {form:11} {name:5} {c.tensors:7} {c.tensor_scales:13} {c.scales:9} {c.codes:10} "
                  f"{c.different:9} {' '.join(sorted(c.kinds))}", flush=True)
            different += c.different
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes golden_presets.h: scales and codes that other projects compute.

    make_golden_presets.py GGML_FOLDER TRANSFORMER_ENGINE_FILE tests/quantize/presets/golden_presets.h

Runs in an environment with the packages of upstream_quantizers.py, which says what is run, and gguf 0.19.  GGML_FOLDER
is a checkout of ggml (d99724f2), whose C is compiled and run beside gguf's Python.  Nothing here goes through a GPU."""
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch

import upstream_quantizers

ROWS, COLUMNS, KINDS = 44, 64, 11
MASK = (1 << 64) - 1
TYPES = {"FP32": torch.float32, "BF16": torch.bfloat16, "FP16": torch.float16}


# Inputs: test_presets.c makes the same -------------------------------------------------------------------------------

def random_bits(index):
    x = (index + 1) * 0x9e3779b97f4a7c15 & MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return (x ^ x >> 31) & MASK


def input_bits(row, column):
    bits, kind = random_bits(row * COLUMNS + column), row % KINDS
    sign, fraction, small = bits >> 63 << 31, bits >> 8 & 0x7fffff, bits & 0xff
    if kind == 0:                                       # numbers around 1
        return sign | 124 + small % 6 << 23 | fraction
    if kind == 1:                                       # few bits: ties
        return sign | 124 + small % 4 << 23 | fraction & 0x780000
    if kind == 2:                                       # of many sizes
        return sign | 100 + small % 50 << 23 | fraction
    if kind == 3:                                       # tiny, some subnormal
        return sign | small % 12 << 23 | fraction
    if kind == 4:                                       # huge
        return sign | 239 + small % 15 << 23 | fraction
    if kind == 5:                                       # of each 16 the largest: beside a format's largest times 2^k
        largest = (0x40c00000, 0x43e00000, 0x40f00000, 0x41e00000)[column // 16 % 4]    # 6, 448, 7.5, 28
        if column % 16 == 3:
            return sign | largest + (row * 5 % 60 - 30 << 23) + (column // 16 + row // KINDS) % 5 - 2
        return sign | 98 + row * 5 % 60 - 4 + small % 3 << 23 | fraction
    if kind == 6:                                       # zeros of both signs among a few numbers
        return sign | (120 + small % 8 << 23 | fraction if small % 5 == 0 else 0)
    if kind == 7:                                       # flushed and zero blocks
        return sign | ((128 if column < 16 else 100 + column // 16) << 23 | fraction if column < 48 else 0)
    if kind == 8:                                       # weights: some are small, few are large
        trailing = (small | 0x80) & -(small | 0x80)
        return sign | 114 + trailing.bit_length() << 23 | fraction
    if kind == 9:                                       # quotients that are subnormal, or 0
        return sign | (110 + small % 40 if column % 32 == 0 else small % 28) << 23 | fraction
    # 10: midpoints
    middles = (0x3e800000, 0x3f400000, 0x3fa00000, 0x3fe00000, 0x40200000, 0x40600000, 0x40a00000, 0x41880000)
    if column % 32 == 0:
        return sign | (0x40c00000 if row % 2 == 0 else 0x43e00000)
    return sign | middles[small % 8] + fraction % 3 - 1


def inputs():
    rows = [[input_bits(r, c) for c in range(COLUMNS)] for r in range(ROWS)]
    return torch.from_numpy(np.array(rows, dtype=np.uint64).astype(np.uint32).view(np.float32))


GGML = """#define GGML_COMMON_IMPL_C
#include "ggml-quants.c"
#include <stdio.h>
int main(int argc, char **argv)
{
    (void)argv;
    float x[64];
    block_mxfp4 a[2];
    block_nvfp4 b[1];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        if (argc > 1) quantize_row_nvfp4_ref(x, b, 64), fwrite(b, sizeof b, 1, stdout);
        else quantize_row_mxfp4_ref(x, a, 64), fwrite(a, sizeof a, 1, stdout);
    }
}
"""


def ggml(root):
    build = tempfile.mkdtemp()
    with open(os.path.join(build, "run.c"), "w", encoding="utf-8") as file:
        file.write(GGML)
    program = os.path.join(build, "run")
    includes = [f"-I{root}/{folder}" for folder in ("include", "src", "src/ggml-cpu")]
    subprocess.run(["cc", "-O1", "-w", "-static", "-ffp-contract=off", "-D_GNU_SOURCE", *includes,
                    "-ffunction-sections", "-Wl,--gc-sections",
                    "-Wl,--unresolved-symbols=ignore-all", os.path.join(build, "run.c"), "-o", program, "-lm"],
                   check=True)
    import gguf.quants

    def blocks(weight, *arguments):
        return np.frombuffer(subprocess.run([program, *arguments], input=weight.numpy().tobytes(), capture_output=True,
                                            check=True).stdout, np.uint8)

    def halves(nibbles, half): return np.concatenate([nibbles[..., :half] & 15, nibbles[..., :half] >> 4], axis=-1)

    def mxfp4_row(weight):
        raw = blocks(weight).reshape(2, 17)
        both = weight.numpy().reshape(2, 32)
        if np.max(np.abs(both), axis=-1).min() > 2.0 ** -120:          # below, NumPy's exponents wrap, and not as C's
            assert (gguf.quants.MXFP4.quantize_blocks(both) == raw).all(), "ggml and gguf differ"
        return None, raw[:, 0], halves(raw[:, 1:], 16)

    def nvfp4_row(weight):
        raw = blocks(weight, "nvfp4").reshape(36)
        return None, raw[:4], halves(raw[4:].reshape(4, 8), 8)
    return [("ggml", "mxfp4", mxfp4_row), ("ggml", "nvfp4", nvfp4_row)]


# Rows -----------------------------------------------------------------------------------------------------------------

def is_compared(preset, form, type_name, row, weight):
    """Every row in fp32; other types wherever a project computes in them, and here and there elsewhere."""
    largest = weight.float().abs().max().item()
    if form == "nvfp4" and preset != "ggml" and row % KINDS in (3, 4):
        return False                                   # tensor scales that are no normal number
    if type_name == "FP16":
        return preset == "compressed_tensors" and row < 2 * KINDS and largest < 32768
    return type_name == "FP32" or preset == "compressed_tensors" or (preset != "ggml" and row < KINDS)


def in_hex(codes, digits): return "".join(f"{code:0{digits}x}" for code in codes)


def row_text(preset, form, type_name, number, found):
    scale, scales, codes = found
    bits = 0 if scale is None else int(np.float32(scale).view(np.uint32))
    return (f'{{ BSM_PRESET_{preset.upper()}, BSM_{form.upper()}, BSM_REAL_{type_name}, {number}, 0x{bits:08x}, '
            f'"{in_hex(np.ravel(scales), 2)}", "{in_hex(np.ravel(codes), 1 if form.endswith("fp4") else 2)}" }},')


def main():
    rows = upstream_quantizers.quantizers(sys.argv[2]) + ggml(sys.argv[1])
    lines = [f"/* Made by make_golden_presets.py: {upstream_quantizers.versions()},\n"
             f" * gguf 0.19.0, TransformerEngine d0067d0d and ggml d99724f2, on a CPU. */\n"
             f"enum {{ GOLDEN_ROWS = {ROWS}, GOLDEN_COLUMNS = {COLUMNS}, GOLDEN_KINDS = {KINDS} }};\n\n"
             f"static const struct golden goldens[] = {{"]
    numbers, texts = inputs(), []
    for preset, form, quantize in rows:
        for type_name, kind in TYPES.items():
            for r in range(ROWS):
                weight = numbers[r:r + 1].to(kind)
                if is_compared(preset, form, type_name, r, weight):
                    texts.append(row_text(preset, form, type_name, r, quantize(weight)))
    lines += ["    " + " ".join(texts[i:i + 2]) for i in range(0, len(texts), 2)] + ["};"]
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        print("\n".join(lines), file=file)


if __name__ == "__main__":
    main()

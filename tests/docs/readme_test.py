#!/usr/bin/env python3
"""The commands of README.md's first screen run as they are printed there: readme_test.py BLOCKSCALE"""
import os
import re
import shlex
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import checkpoint_file
import npy_file
import script
from script import check

BLOCKSCALE = os.path.abspath(sys.argv[1])
ROWS, COLUMNS, ACTIVATIONS = 96, 128, 3
WEIGHT = "model.layers.0.mlp.down_proj"


def commands():
    """The lines of the first block of commands; comments are cut off."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        block = re.search(r"^```sh\n(.*?)^```", file.read(), flags=re.S | re.M)
    check(block, "README.md has no block of commands")
    return [shlex.split(line, comments=True) for line in block.group(1).splitlines() if line.strip()]


def make_inputs(folder):
    os.mkdir(os.path.join(folder, "model"))
    weight = checkpoint_file.random_bf16(ROWS, COLUMNS, 1)
    checkpoint_file.write(os.path.join(folder, "model", "model.safetensors"),
                          {WEIGHT + ".weight": ("BF16", [ROWS, COLUMNS], weight)})
    npy_file.write(os.path.join(folder, "X.npy"), (ACTIVATIONS, COLUMNS), [1.0] * ACTIVATIONS * COLUMNS)
    numbers = checkpoint_file.from_bf16(weight)
    return [sum(numbers[row * COLUMNS:(row + 1) * COLUMNS]) for row in range(ROWS)]


def commands_of_blockscale_run():
    mine = [words for words in commands() if words[0] == "blockscale"]
    check(len(mine) >= 3, f"{len(mine)} commands")
    with tempfile.TemporaryDirectory() as folder:
        sums = make_inputs(folder)
        for words in mine:
            script.run([BLOCKSCALE, *words[1:]], cwd=folder)
        shape, _, product = npy_file.read(os.path.join(folder, "D.npy"))
        check(tuple(shape) == (ACTIVATIONS, ROWS), f"D has the shape {shape}")
        # NVFP4 is off by some 10 %: sums of 128 numbers of 0.02 by some 0.02.
        worst = max(abs(product[i] - sums[i % ROWS]) for i in range(ACTIVATIONS * ROWS))
        check(worst < 0.15, f"the product is off by {worst}")


def commands_of_make_are_there():
    with open(os.path.join(SOURCE, "Makefile"), encoding="utf-8") as file:
        makefile = file.read()
    for words in commands():
        check(words[0] in ("make", "blockscale"), f"{words[0]} is not tried")
        if words[0] == "make":
            check(re.search(rf"^{words[1]}:", makefile, flags=re.M), f"make {words[1]} is not in the Makefile")


script.cases("readme", [commands_of_blockscale_run, commands_of_make_are_there])

#!/usr/bin/env python3
"""Every step of the ladder with every format on the simulator, as its users run it.

usage: test_ladder.py LADDER LIBCUDASIM FOLDER_OF_PTX"""
import itertools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import script
from script import check

LADDER, LIBRARY = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
BLOCKS = os.path.join(os.path.abspath(sys.argv[3]), "blocks")
STEPS, FORMATS = 6, ["mxfp8", "mxfp4", "nvfp4", "mxfp8xmxfp4", "mxfp4xmxfp8"]


def ladder(*arguments, expect=0, device="sm_100a"):
    env = dict(os.environ, BLOCKSCALE_LIBCUDA=LIBRARY, CUDASIM_DEVICE=device, CUDASIM_SMS="2", CUDASIM_TENSOR_FENCES="always")
    return script.run([LADDER, *arguments], expect=expect, env=env)


def right(text, data):
    """The products that came out right, as (step, format)."""
    return re.findall(r"^step (\d)  (\S+) .* %s numbers: right$" % data, text, re.M)


def check_all(text, data):
    want = [(str(step), name) for name in FORMATS for step in range(1, STEPS + 1)]
    check(sorted(right(text, data)) == sorted(want), "%s numbers:\n%s" % (data, text))


def less_than_a_tile():
    text = ladder("--m", "16", "--n", "24", "--k", "256")
    check_all(text, "whole")
    check_all(text, "normal")


def edges_of_several_tiles():
    """Two tiles of D for each of two SMs, and stages that are filled more than once."""
    check_all(ladder("--m", "130", "--n", "267", "--k", "768", "--data", "whole"), "whole")


def k_that_ends_within_a_tile():
    """The last tile of K has one instruction's worth, and the last of several."""
    for k, name in ((32, "mxfp8"), (704, "mxfp8"), (160, "mxfp4"), (704, "nvfp4")):
        text = ladder("--m", "130", "--n", "60", "--k", str(k), "--format", name)
        for data in ("whole", "normal"):
            check(sorted(right(text, data)) == [(str(step), name) for step in range(1, STEPS + 1)], text)


def d_in_fp16():
    """Sums that are rounded once, in rows that end within 16 bytes."""
    text = ladder("--m", "20", "--n", "267", "--k", "384", "--d", "fp16", "--format", "mxfp8")
    for data in ("whole", "normal"):
        check(sorted(right(text, data)) == [(str(step), "mxfp8") for step in range(1, STEPS + 1)], text)


def bands_of_tiles():
    """Step 5: a band of eight rows of tiles and one of one row, two columns each, on two SMs."""
    text = ladder("--m", "1030", "--n", "260", "--k", "128", "--format", "mxfp8", "--step", "5", "--data", "whole")
    check(right(text, "whole") == [("5", "mxfp8")], text)


def run_blocks(step, n):
    """All that the step has; (format, rows of B, elements of K) of those that came out right."""
    text = ladder("--kernels", BLOCKS, "--step", str(step), "--block", "all", "--m", "100", "--n", str(n), "--k", "640", "--data", "whole")
    done = re.findall(r"^step %d  (\S+) .* blocks of (\d+) x (\d+), whole numbers: right$" % step, text, re.M)
    return {(name, int(rows), int(k)) for name, rows, k in done}


def check_pairs(done, rows, columns, possible):
    """Every two of format, rows of B and K together, where they can be."""
    want = [block for block in itertools.product(FORMATS, rows, columns) if possible(*block)]
    for left, right_ in ((0, 1), (0, 2), (1, 2)):
        missing = {(block[left], block[right_]) for block in want} - {(block[left], block[right_]) for block in done}
        check(not missing, str(sorted(missing)))
    check(done <= set(want), str(sorted(done - set(want))))


def least_k(name):
    """An instruction of fp4 has K 64, and TMA pads e2m1 to 128 bytes."""
    return {"mxfp8": 32, "mxfp4": 64, "nvfp4": 64}.get(name, 128)


def blocks_through_registers():
    """Steps 1 and 2: 32 to 256 rows of B, K 32 to 512, which 640 is no multiple of."""
    for step in (1, 2):
        check_pairs(run_blocks(step, 130), (32, 64, 128, 256), (32, 64, 128, 256, 512), lambda name, n, k: k >= least_k(name))


def packed_blocks():
    """Steps 3 to 5: whole blocks of 128x4, those that the other cases run counted."""
    default = {(name, 256, 256 if name in ("mxfp4", "nvfp4") else 128) for name in FORMATS}
    for step in (3, 4, 5):
        check_pairs(run_blocks(step, 260) | default, (128, 256), (128, 256, 512),
                    lambda name, n, k: step < 5 or k < 512 or name in ("mxfp4", "nvfp4"))


def two_accumulators_in_bands():
    """Step 5: more tiles than CTAs in a grouped order, and sums in fp16."""
    text = ladder("--kernels", BLOCKS, "--step", "5", "--block", "128x128", "--format", "mxfp8", "--m", "1030", "--n", "260", "--k", "128",
                  "--data", "whole", "--d", "fp16")
    check(len(re.findall(r"^step 5  mxfp8 .* whole numbers: right$", text, re.M)) == 1, text)


def sm_103a():
    text = ladder("--m", "16", "--n", "24", "--k", "256", "--data", "whole", "--step", "5", device="sm_103a")
    check(len(right(text, "whole")) == len(FORMATS), text)


def counts():
    """--bench on the simulator counts, says that it does, and prints no time."""
    mma = {}
    for step, words in ((1, "0 cp, 32 st"), (3, "0 cp, 32 st"), (4, "12 cp, 0 st")):
        text = ladder("--bench", "--step", str(step), "--format", "mxfp4", "--m", "128", "--n", "256", "--k", "512",
                      "--data", "whole")
        check("simulated" in text and "FLOP" not in text and words in text, text)
        mma[step] = int(re.search(r"(\d+) mma", text).group(1))
    check(set(mma.values()) == {8}, str(mma))             # 512 / 64


def listing():
    text = ladder("--list")
    check(len(re.findall("^step ", text, re.M)) == STEPS and all(name in text for name in FORMATS), text)


def wrong_input():
    for arguments, status in ((["--step", "7"], 2), (["--step", "1x"], 2), (["--format", "fp8"], 2), (["--data", "x"], 2), (["--d", "bf16"], 2),
                              (["--block", "64x128"], 2), (["--step", "6", "--block", "64x128"], 2), (["--step", "1", "--block", "64"], 2),
                              (["--step", "3", "--block", "64x128"], 3),
                              (["x"], 2), (["--k", "200"], 3), (["--k", "192", "--format", "mxfp8xmxfp4"], 3), (["--m", "0"], 2), (["--kernels", "/nowhere"], 3)):
        ladder(*arguments, expect=status)
    ladder(expect=3, device="sm_90a")


script.cases("test_ladder", [less_than_a_tile, edges_of_several_tiles, k_that_ends_within_a_tile,
                             d_in_fp16, bands_of_tiles, blocks_through_registers, packed_blocks,
                             two_accumulators_in_bands, sm_103a, counts, listing, wrong_input])

#!/usr/bin/env python3
"""Every step of the ladder with every format on the simulator, as its users run it.

usage: test_ladder.py LADDER LIBCUDASIM"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import script
from script import check

LADDER, LIBRARY = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
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
                              (["x"], 2), (["--k", "200"], 3), (["--k", "192", "--format", "mxfp8xmxfp4"], 3), (["--m", "0"], 2), (["--kernels", "/nowhere"], 3)):
        ladder(*arguments, expect=status)
    ladder(expect=3, device="sm_90a")


script.cases("test_ladder", [less_than_a_tile, edges_of_several_tiles, k_that_ends_within_a_tile,
                             d_in_fp16, bands_of_tiles, sm_103a, counts, listing, wrong_input])

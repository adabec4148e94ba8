#!/usr/bin/env python3
"""Every fence, wait, arrive, commit and barrier of the ladder's kernels is missed when it is taken away, but for two:
bar.warp.sync, which has a warp's lanes together before an .aligned instruction (here they come together there by themselves), and
fence.mbarrier_init, which shows new barriers to the copy engine: the simulator shows them with the barrier of the CTA that follows.

usage: test_ladder_mutants.py LADDER LIBCUDASIM CUDASIM FOLDER_OF_PTX"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import script
from script import check

LADDER, LIBRARY, CUDASIM, FOLDER = (os.path.abspath(argument) for argument in sys.argv[1:5])
NEEDED_ELSEWHERE = ("bar.warp.sync", "fence.mbarrier_init")


def mutate(step, name, block, sizes, least, folder=FOLDER):
    """sizes: M, N, K; on one SM.  The fence for new barriers survives, so mutate ends with 1."""
    env = dict(os.environ, BLOCKSCALE_LIBCUDA=LIBRARY, CUDASIM_DEVICE="sm_100a", CUDASIM_SMS="1", CUDASIM_TENSOR_FENCES="always")
    text = script.run([CUDASIM, "mutate", "%s/step%d.ptx" % (folder, step), "--entry", "step%d_%s_%s" % (step, name, block),
                       "--schedules", "2", "--survivors", "--program", LADDER, "--",
                       "--kernels", folder, "--step", str(step), "--block", block, "--format", name, "--data", "whole",
                       "--m", str(sizes[0]), "--n", str(sizes[1]), "--k", str(sizes[2])], env=env, expect=1)
    survivors = [line for line in re.findall(r"^survives.*$", text, re.M) if not any(word in line for word in NEEDED_ELSEWHERE)]
    counts = re.search(r"^(\d+) taken away in turn: \d+ noticed, \d+ survive; (\d+) more", text, re.M)
    check(not survivors, "\n".join(survivors))
    check(counts is not None and int(counts.group(1)) >= least and counts.group(2) == "0", text)


def step_1(): mutate(1, "mxfp8", "256x128", (130, 20, 384), 15)
def step_2(): mutate(2, "mxfp4", "256x256", (130, 20, 768), 15)
def step_3(): mutate(3, "nvfp4", "256x256", (130, 20, 768), 15)
def step_4(): mutate(4, "nvfp4", "256x256", (130, 20, 768), 11)
def step_5(): mutate(5, "mxfp8", "256x128", (260, 20, 640), 15)


def step_5_two_accumulators():
    """Three tiles: the first accumulator is used again."""
    mutate(5, "mxfp8", "128x128", (260, 20, 640), 15, os.path.join(FOLDER, "blocks"))


script.cases("test_ladder_mutants", [step_1, step_2, step_3, step_4, step_5, step_5_two_accumulators])

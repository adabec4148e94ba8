#!/usr/bin/env python3
"""A test of the ladder's test: the bugs of ladder.bugs, planted one at a time in a copy of the source, are each noticed by the
simulator or by the comparison with the exact product, and without the bug the same run is right.

An entry names the file, why it is a bug, and the run: STEP FORMAT M N K; "-" lines are the old text, found exactly once, "+" lines
the new.

usage: test_ladder_bugs.py LADDER LIBCUDASIM NVCC [--only NAME]"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, ".."))
import script
from script import check

LADDER, LIBRARY, NVCC = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
STEPS = 5
TREES = ("examples/ladder", "src/cuda/ptx")


def read_bugs():
    bugs = []
    for line in open(os.path.join(HERE, "ladder.bugs"), encoding="utf-8").read().splitlines():
        word, _, rest = line.partition(" ")
        if word == "bug":
            bugs.append({"bug": rest.strip(), "old": [], "new": []})
        elif line[:1] in ("-", "+"):
            bugs[-1]["old" if line[0] == "-" else "new"].append(line[1:])
        elif line and not line.startswith("#"):
            bugs[-1][word] = rest.strip()
    return bugs


def plant(bug, tree):
    path = os.path.join(tree, bug["file"])
    text, old, new = open(path, encoding="utf-8").read(), "\n".join(bug["old"]), "\n".join(bug["new"])
    check(text.count(old) == 1, "%s: old text found %d times" % (bug["bug"], text.count(old)))
    open(path, "w", encoding="utf-8").write(text.replace(old, new))


def compile_step(tree, step, folder):
    script.run([NVCC, "-ptx", "-arch=sm_100a", "-std=c++17", "-w", "-I%s/src" % tree, "-o", "%s/step%s.ptx" % (folder, step),
                "%s/examples/ladder/step%s.cu" % (tree, step)])


def ladder(bug, folder):
    """The exit status of the bug's run with the kernels in `folder`: 0 is right."""
    step, name, m, n, k = bug["run"].split()
    env = dict(os.environ, BLOCKSCALE_LIBCUDA=LIBRARY, CUDASIM_DEVICE="sm_100a", CUDASIM_SMS="1", CUDASIM_QUIET="1")
    env.update(CUDASIM_STEPS="2000000", CUDASIM_TENSOR_FENCES="always")
    return subprocess.run([LADDER, "--kernels", folder, "--step", step, "--format", name, "--m", m, "--n", n, "--k", k,
                           "--data", "whole"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, timeout=120, check=False).returncode


def try_bug(bug, clean):
    with tempfile.TemporaryDirectory() as tree:
        for name in TREES:
            shutil.copytree(os.path.join(SOURCE, name), os.path.join(tree, name))
        plant(bug, tree)
        folder = os.path.join(tree, "kernels")
        shutil.copytree(clean, folder)
        compile_step(tree, bug["run"].split()[0], folder)
        if ladder(bug, clean) != 0:
            return "%s: wrong without the bug" % bug["bug"]
        return "%s: not noticed" % bug["bug"] if ladder(bug, folder) == 0 else None


def every_bug_is_noticed():
    only = sys.argv[5] if len(sys.argv) == 6 and sys.argv[4] == "--only" else None
    bugs = [bug for bug in read_bugs() if only in (None, bug["bug"])]
    check(len(bugs) >= (15 if only is None else 1), "%d bugs" % len(bugs))
    with tempfile.TemporaryDirectory() as clean, concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(lambda step: compile_step(SOURCE, step, clean), range(1, STEPS + 1)))
        sentences = [s for s in pool.map(lambda bug: try_bug(bug, clean), bugs) if s is not None]
    check(not sentences, "\n".join(sentences))


script.cases("test_ladder_bugs", [every_bug_is_noticed])

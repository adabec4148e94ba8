#!/usr/bin/env python3
"""A test of the ladder's test: the bugs of ladder.bugs, planted one at a time in a copy of the source, are each noticed by the
simulator or by the comparison with the exact product, and without the bug the same run is right.

An entry (tests/bugs.py) names the file, why it is a bug, and the run: STEP FORMAT M N K [BLOCKS].

usage: test_ladder_bugs.py LADDER LIBCUDASIM NVCC FOLDER_OF_PTX [--only NAME]"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, ".."))
import bugs
import script
from script import check

LADDER, LIBRARY, NVCC, CLEAN = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3], os.path.abspath(sys.argv[4])
TREES = ("examples/ladder", "src/cuda/ptx")


def folder_of(run, kernels):
    """Kernels of other blocks than the default ones lie in a folder of their own."""
    return os.path.join(kernels, "blocks") if len(run.split()) == 6 else kernels


def compile_step(tree, run, kernels):
    step, folder = run.split()[0], folder_of(run, kernels)
    blocks = ["-DLADDER_BLOCKS"] if folder != kernels else []
    script.run([NVCC, "-ptx", "-arch=sm_100a", "-std=c++17", "-w", *blocks, "-I%s/src" % tree, "-o", "%s/step%s.ptx" % (folder, step),
                "%s/examples/ladder/step%s.cu" % (tree, step)])


def ladder(run, kernels):
    """The exit status of a run with the kernels in the folder `kernels`: 0 is right."""
    step, name, m, n, k, *blocks = run.split()
    env = dict(os.environ, BLOCKSCALE_LIBCUDA=LIBRARY, CUDASIM_DEVICE="sm_100a", CUDASIM_SMS="1", CUDASIM_QUIET="1")
    env.update(CUDASIM_STEPS="2000000", CUDASIM_TENSOR_FENCES="always")
    return subprocess.run([LADDER, "--kernels", folder_of(run, kernels), "--step", step, "--format", name, "--m", m, "--n", n, "--k", k,
                           "--data", "whole", *(["--block", *blocks] if blocks else [])],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, check=False).returncode


def try_bug(bug):
    with tempfile.TemporaryDirectory() as tree:
        for name in TREES:
            shutil.copytree(os.path.join(SOURCE, name), os.path.join(tree, name))
        bugs.plant(bug, tree)
        folder = os.path.join(tree, "kernels")
        os.makedirs(os.path.join(folder, "blocks"))
        compile_step(tree, bug["run"], folder)
        return "%s: not noticed" % bug["bug"] if ladder(bug["run"], folder) == 0 else None


def every_bug_is_noticed():
    only = sys.argv[6] if len(sys.argv) == 7 and sys.argv[5] == "--only" else None
    wanted = [bug for bug in bugs.read(os.path.join(HERE, "ladder.bugs")) if only in (None, bug["bug"])]
    check(len(wanted) >= (15 if only is None else 1), "%d bugs" % len(wanted))
    runs = sorted({bug["run"] for bug in wanted})
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        clean = pool.map(lambda run: ladder(run, CLEAN), runs)
        sentences = ["%s: wrong without a bug" % run for run, status in zip(runs, clean) if status != 0]
        sentences += [s for s in pool.map(try_bug, wanted) if s is not None]
    check(not sentences, "\n".join(sentences))


script.cases("test_ladder_bugs", [every_bug_is_noticed])

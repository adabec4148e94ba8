#!/usr/bin/env python3
"""A test of the tests of Blackwell's kernels: the bugs of sm100.bugs, planted one at a time in a copy of src/cuda, are
each noticed by one small product, and without the bug the same product is right.

An entry (tests/bugs.py) names the file, why it is a bug, how many SMs are simulated, and the product: KIND TILE A B M N
K, and D if it is quantized.

usage: test_sm100_bugs.py TEST_GPU_CODES SHIM LIBCUDASIM NVCC [--only REGEX]"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(HERE, "../.."))
import bugs
import script
from script import check

TEST, SHIM, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:4])
NVCC, ONLY = sys.argv[4], sys.argv[6] if len(sys.argv) > 6 else ""


def kernels_of(tree, kind, tile, to):
    """PTX of one instance, as gemm_instances.h has it."""
    instances = open(os.path.join(tree, "src/cuda/sm100/gemm_instances.h"), encoding="utf-8").read()
    table = instances[instances.index("BSMI_SM100_GEMM_%s(X)" % kind.upper()):]
    row = re.search(r"X\((%s,[^)]*)\)" % tile, table).group(1)
    source = os.path.join(tree, "one.cu")
    open(source, "w", encoding="utf-8").write('#include "cuda/sm100/gemm.cuh"\nGEMM_KERNEL(%s, MMA_%s, %s)\n'
                                              % (kind, kind.upper(), row))
    script.run([NVCC, "-ptx", "-arch=compute_100f", "-std=c++17", "-O3", "--fmad=false", "-w", "-I%s/src" % tree,
                "-I%s/src" % SOURCE, "-I%s/include" % SOURCE, "-o", to, source])


def is_right(bug, kernels):
    kind, tile, product = bug["run"].split(" ", 2)
    env = dict(os.environ, BLOCKSCALE_LIBCUDA=SHIM, SHIM_LIBCUDA=LIBRARY, SHIM_KERNELS=kernels,
               CUDASIM_DEVICE="sm_100a", CUDASIM_QUIET="1", CUDASIM_REPORTS="stop",
               CUDASIM_SMS=bug["sms"], CUDASIM_STEPS="3000000",
               PRODUCTS="cuda_tcgen05_%s_%s %s" % (kind, tile, product))
    return subprocess.run([TEST, "--only", "asked_products"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=env, timeout=900, check=False).returncode == 0


def each_is_noticed():
    known = {}
    with tempfile.TemporaryDirectory() as folder:
        tree, kernels = os.path.join(folder, "tree"), os.path.join(folder, "one.ptx")
        shutil.copytree(os.path.join(SOURCE, "src/cuda"), os.path.join(tree, "src/cuda"))
        survivors = []
        for bug in [b for b in bugs.read(os.path.join(HERE, "sm100.bugs")) if re.search(ONLY, b["bug"])]:
            kind, tile = bug["run"].split()[:2]
            if bug["run"] + bug["sms"] not in known:
                kernels_of(tree, kind, tile, kernels)
                known[bug["run"] + bug["sms"]] = is_right(bug, kernels)
            check(known[bug["run"] + bug["sms"]], "%s: wrong without the bug" % bug["bug"])
            text = bugs.plant(bug, tree)
            kernels_of(tree, kind, tile, kernels)
            noticed = not is_right(bug, kernels)
            print("%s: %s" % (bug["bug"], "noticed" if noticed else "NOT NOTICED: " + bug["why"]), flush=True)
            if not noticed:
                survivors.append(bug["bug"])
            with open(os.path.join(tree, bug["file"]), "w", encoding="utf-8") as file:
                file.write(text)
    check(not survivors, "not noticed: %s" % ", ".join(survivors))


script.cases("test_sm100_bugs", [each_is_noticed])

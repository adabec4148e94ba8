#!/usr/bin/env python3
"""A test of the tests of Blackwell's kernels: the bugs of a file, planted one at a time in a copy of src/cuda, are each
noticed by one small product, and without the bug the same product is right.

An entry (tests/bugs.py) names the file, why it is a bug, how many SMs are simulated, and the product: KIND TILE A B M N
K, then D if it is not any plain one, and what else is asked (test_gpu_codes.c).  `always yes`: make test tries it, too.

usage: test_kernel_bugs.py BUGS TEST_GPU_CODES SHIM LIBCUDASIM NVCC [--always | --only REGEX]"""
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
from script import Skip, check

BUGS, TEST, SHIM, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:5])
NVCC, ONLY, ALWAYS = sys.argv[5], sys.argv[7] if len(sys.argv) > 7 else "", "--always" in sys.argv[6:]
NAME = os.path.basename(BUGS).split(".")[0]
FAMILIES = {"sm100": {"device": "sm_100a", "arch": "compute_100f", "kernel": "cuda_tcgen05_%s_%s"},
            "sm120": {"device": "sm_120a", "arch": "compute_120f", "kernel": "cuda_mma_sync_%s_%s"}}
FAMILY = FAMILIES[NAME]


def element_of(name):
    """An operand's element as mma.sync has it."""
    return "MMA_SYNC_" + ("E2M1" if "4" in name and "e4m3" not in name else re.search(r"e\dm\d", name).group(0).upper())


def source_of(bug, tree):
    """One instance, as gemm_instances.h has it."""
    kind, tile, a, b = bug["run"].split()[:4]
    instances = open(os.path.join(tree, "src/cuda/%s/gemm_instances.h" % NAME), encoding="utf-8").read()
    table = {"sm100": kind.upper(), "sm120": "OF_BYTES" if kind == "mxf8f6f4" else "OF_4_BITS"}[NAME]
    rows = instances[instances.index("BSMI_%s_GEMM_%s(X)" % (NAME.upper(), table)):]
    row = re.search(r"X\((%s,[^)]*)\)" % tile, rows).group(1)
    if NAME == "sm100":
        return '#include "cuda/sm100/gemm.cuh"\nGEMM_KERNEL(%s, MMA_%s, %s)\n' % (kind, kind.upper(), row)
    pair = "gemm_pair<%s, %s, %s>" % (element_of(a), element_of(b), "true" if kind == "mxf8f6f4" else "false")
    return ('#include "cuda/sm120/gemm.cuh"\ntemplate <class CONFIG> using sum_of = one_pair<CONFIG, %s>;\n'
            "GEMM_KERNEL(%s, KIND_%s, sum_of, %s)\n" % (pair, kind, kind.upper(), row))


def compile_kernel(bug, tree, to):
    source = os.path.join(tree, "one.cu")
    with open(source, "w", encoding="utf-8") as file:
        file.write(source_of(bug, tree))
    script.run([NVCC, "-ptx", "-arch=" + FAMILY["arch"], "-std=c++17", "-O3", "--fmad=false", "-w", "-I%s/src" % tree,
                "-I%s/src" % SOURCE, "-I%s/include" % SOURCE, "-o", to, source])


def is_right(bug, kernels):
    kind, tile, product = bug["run"].split(" ", 2)
    env = dict(os.environ, BLOCKSCALE_LIBCUDA=SHIM, SHIM_LIBCUDA=LIBRARY, SHIM_KERNELS=kernels,
               CUDASIM_DEVICE=FAMILY["device"], CUDASIM_QUIET="1", CUDASIM_REPORTS="stop",
               CUDASIM_SMS=bug["sms"], CUDASIM_STEPS="3000000", CUDASIM_SCHEDULES=bug.get("schedules", "1"),
               PRODUCTS=";".join(FAMILY["kernel"] % (kind, tile) + " " + one for one in product.split("; ")))
    return subprocess.run([TEST, "--only", "asked_products"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=env, timeout=900, check=False).returncode == 0


def each_is_noticed():
    chosen = [b for b in bugs.read(BUGS) if re.search(ONLY, b["bug"]) and (not ALWAYS or "always" in b)]
    check(chosen, "no such bugs")
    if not shutil.which(NVCC):
        raise Skip("no nvcc")
    known, survivors = {}, []
    with tempfile.TemporaryDirectory() as folder:
        tree, kernels = os.path.join(folder, "tree"), os.path.join(folder, "one.ptx")
        shutil.copytree(os.path.join(SOURCE, "src/cuda"), os.path.join(tree, "src/cuda"))
        for bug in chosen:
            if bug["run"] + bug["sms"] not in known:
                compile_kernel(bug, tree, kernels)
                known[bug["run"] + bug["sms"]] = is_right(bug, kernels)
            check(known[bug["run"] + bug["sms"]], "%s: wrong without the bug" % bug["bug"])
            text = bugs.plant(bug, tree)
            compile_kernel(bug, tree, kernels)
            noticed = not is_right(bug, kernels)
            print("%s: %s" % (bug["bug"], "noticed" if noticed else "NOT NOTICED: " + bug["why"]), flush=True)
            if not noticed:
                survivors.append(bug["bug"])
            with open(os.path.join(tree, bug["file"]), "w", encoding="utf-8") as file:
                file.write(text)
    check(not survivors, "not noticed: %s" % ", ".join(survivors))


script.cases("test_%s_bugs" % NAME, [each_is_noticed])

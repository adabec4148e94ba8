#!/usr/bin/env python3
"""A test of tests of kernels: the bugs of *.bugs beside this file, planted one at a time in a copy of the kernels, are
each noticed on cudasim, and without them the same run passes.  Their form is that of tests/bugs.py, with lines "of
PROGRAM KERNELS".

usage: planted.py BUILD [--only NAME]"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(HERE, "../.."))
import bugs as planted_bugs
import relink

BUILD = os.path.abspath(sys.argv[1])
ONLY = sys.argv[3] if len(sys.argv) == 4 and sys.argv[2] == "--only" else None
FILES = ["column_groups.bugs", "epilogue.bugs", "fp8_requantize.bugs", "fused_dequantization.bugs", "int8.bugs",
         "late_rows.bugs", "memory_bound.bugs", "mixed_input.bugs", "mixed_input_groups.bugs", "mixed_input_rows.bugs",
         "mixed_input_sm120.bugs", "mixed_input_split_k.bugs", "prepacked.bugs", "row_and_column.bugs", "sparse.bugs",
         "tensor_mixed_input.bugs"]
SECONDS = 600


def read_bugs():
    bugs = [bug for name in FILES for bug in planted_bugs.read(os.path.join(HERE, name))]
    for bug in bugs:
        bug["program"], bug["kernels"] = bug["of"]
    return bugs


def compile_kernels(tree, kernels, to):
    arch = {"sm90": "90a", "sm100": "100f", "sm120": "120f"}.get(kernels.split("/", maxsplit=1)[0], "90")
    subprocess.run([os.environ.get("NVCC", "nvcc"), "-fatbin", "-gencode",
                    "arch=compute_%s,code=compute_%s" % (arch, arch),       # what cudasim runs
                    "-std=c++17", "-O3", "-no-compress", "--fmad=false", "-I%s/src" % tree, "-I%s/include" % SOURCE,
                    "-o", to, "%s/src/cuda/%s.cu" % (tree, kernels)], check=True)


def passes(program, run):
    case, *settings = run.split()
    environment = dict(os.environ, BLOCKSCALE_LIBCUDA=os.path.join(BUILD, "lib", "libcudasim.so"), CUDASIM_QUIET="1",
                       CUDASIM_REPORTS="stop", **dict(setting.split("=") for setting in settings))
    try:
        return subprocess.run([program, "--only", case], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=environment, timeout=SECONDS, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def try_bug(bug):
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        shutil.copytree(os.path.join(SOURCE, "src"), os.path.join(tree, "src"))
        planted_bugs.plant(bug, tree)
        fatbin = os.path.join(folder, "kernels.fatbin")
        compile_kernels(tree, bug["kernels"], fatbin)
        program = relink.relink(BUILD, bug["program"], folder,
                                lambda text: relink.fatbin_instead(text, bug["kernels"], fatbin))
        return not passes(program, bug["run"])


def main():
    bugs = [bug for bug in read_bugs() if ONLY in (None, bug["bug"])]
    missed = 0
    for program, run in sorted({(bug["program"], bug["run"]) for bug in bugs}):
        if not passes(os.path.join(BUILD, "tests", program), run):
            sys.exit("%s %s fails without a bug" % (program, run))
    for bug in bugs:
        noticed = try_bug(bug)
        missed += not noticed
        print("%s: %s" % (bug["bug"], "noticed" if noticed else "NOT NOTICED: " + bug["why"]), flush=True)
    print("planted: %d passed, %d failed" % (len(bugs) - missed, missed))
    return missed > 0 or not bugs


if __name__ == "__main__":
    sys.exit(main())

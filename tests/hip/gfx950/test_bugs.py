#!/usr/bin/env python3
"""A test of tests: the bugs of gemm.bugs, planted one at a time in a copy of the kernels of gfx950, are each noticed on
gfxsim by test_gfx950_gemm, and without them it passes.  Their form is that of tests/bugs.py.  With GFXSIM_COUNTS a bug
is noticed by more conflicts of banks in the kernel.

usage: test_bugs.py PROGRAM CLANG [--only NAME]"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(HERE, "../.."))
import bugs as planted_bugs

PROGRAM, CLANG = os.path.abspath(sys.argv[1]), sys.argv[2]
ONLY = sys.argv[4] if len(sys.argv) == 5 and sys.argv[3] == "--only" else None
FLAGS = ("-x c -std=c17 -target amdgcn-amd-amdhsa -mcpu=gfx950 -nogpulib -ffreestanding -O3 -ffp-contract=off "
         "-Wl,-s").split()


def compile_instance(tree, instance, folder):
    words = instance.split("_")
    pair = [] if words[0] == "bf16" else [f"-DA={words[0].upper()}", f"-DB={words[1].upper()}"]
    tile = "_".join(words[1:] if words[0] == "bf16" else words[2:])
    subprocess.run([CLANG, *FLAGS, "-I", os.path.join(tree, "src"), "-I", os.path.join(SOURCE, "include"), *pair,
                    f"-DTILE={tile}", f"-DKERNEL_NAME=bsmi_gemm_gfx950_{instance}", "-o",
                    os.path.join(folder, f"gemm_{instance}.hsaco"), os.path.join(tree, "src/hip/gfx950/gemm.c")],
                   check=True, stderr=subprocess.DEVNULL)


def conflicts(tree, bug):
    """Of banks in all launches of the kernel; None: the test fails."""
    instance, *settings = bug["instance"].split()
    with tempfile.TemporaryDirectory() as folder:
        compile_instance(tree, instance, folder)
        environment = dict(os.environ, GFX950_CODE_OBJECTS=folder, GFX950_INSTANCE=instance, GFXSIM_STEPS="4000000",
                           **dict(setting.split("=") for setting in settings))
        done = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, check=False)
        counts = re.findall(r"kernel bsmi_gemm_gfx950_.*, (\d+) bank conflicts", done.stderr)
        return sum(map(int, counts)) if done.returncode == 0 else None


def main():
    found = [bug for bug in planted_bugs.read(os.path.join(HERE, "gemm.bugs")) if ONLY in (None, bug["bug"])]
    missed, correct = 0, {}
    for bug in found:
        if bug["instance"] not in correct:
            correct[bug["instance"]] = conflicts(SOURCE, bug)
        if correct[bug["instance"]] is None:
            sys.exit(f"{bug['instance']} fails without a bug")
        with tempfile.TemporaryDirectory() as tree:
            shutil.copytree(os.path.join(SOURCE, "src/hip"), os.path.join(tree, "src/hip"))
            planted_bugs.plant(bug, tree)
            count = conflicts(tree, bug)
            noticed = count is None or count > correct[bug["instance"]]
        missed += not noticed
        if not noticed:
            print(f"{bug['bug']}: NOT NOTICED: {bug['why']}", flush=True)
    print(f"test_gfx950_bugs: {len(found) - missed} passed, {missed} failed, 0 skipped")
    return missed > 0 or not found


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The kernels for GeForce's tensor cores have no local memory, so spill nothing, by what ptxas says in their cubins;
and by their machine code, where cuobjdump is found (bench/gpu/sass_loop.py says where), their inner loops hold every
mma's pace: one warp's own schedule is LONGEST of the tensor cores' clocks at most.

usage: test_no_spills.py CUDASIM FOLDER; FOLDER has sm120_*.fatbin"""
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../.."))
import fatbin
import script
from cubin import Cubin, FRAME_BYTES, REGISTERS
from script import check

CUDASIM, FOLDER = sys.argv[1:3]
TOOL = os.path.join(HERE, "../../../bench/gpu/sass_loop.py")
LONGEST = 1.08


def fatbins():
    found = sorted(glob.glob(os.path.join(FOLDER, "sm120_*.fatbin")))
    if not found:
        raise script.Skip("no kernels for sm_120")
    return found


def no_kernel_has_local_memory():
    for path in fatbins():
        cubin = Cubin(fatbin.cubin_of(CUDASIM, path))
        registers, frames = cubin.numbers(REGISTERS), cubin.numbers(FRAME_BYTES)
        check(len(registers) > 0, f"{path}: no kernels")
        for name, count in registers.items():
            check(frames[name] == 0, f"{name}: {frames[name]} bytes of stack, {count} registers")


def inner_loops_keep_pace():
    for path in fatbins():
        done = subprocess.run([sys.executable, TOOL, path, "--json"], capture_output=True, text=True, check=False)
        if "no cuobjdump" in done.stderr:
            raise script.Skip("no cuobjdump")
        check(done.returncode == 0, done.stderr)
        for loop in map(json.loads, done.stdout.splitlines()):
            check(loop["local"] == 0, "%(kernel)s: %(local)d LDL and STL" % loop)
            check(loop["scheduled"] <= LONGEST * loop["tensor"],
                  "%(kernel)s: %(scheduled)d clocks for %(tensor)d of products" % loop)


script.cases("test_no_spills", [no_kernel_has_local_memory, inner_loops_keep_pace])

#!/usr/bin/env python3
"""The kernels for GeForce's tensor cores spill nothing: their stack frames have no more than the arrays that their PTX
declares.  And where cuobjdump is found (bench/gpu/sass_loop.py says where), in the machine code: an inner loop has no
local memory, and one warp's own schedule of a turn exceeds the tensor cores' clocks by MOST_LOST at most.  That is
lost where no other warp of a scheduler multiplies: at the wait for a stage, at the branch, in front of first loads.

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
from cubin import arrays_of, Cubin, FRAME_BYTES, REGISTERS
from script import check

CUDASIM, FOLDER = sys.argv[1:3]
TOOL = os.path.join(HERE, "../../../bench/gpu/sass_loop.py")
MOST_LOST = 90                                         # clocks
CALL_BYTES = 8                                         # what ptxas keeps around a call of a kernel that decodes weights


def is_gemm(path):
    """Both operands go to the tensor cores as they are; the others decode one between products."""
    return "sm120_gemm_" in os.path.basename(path)


def fatbins():
    found = sorted(glob.glob(os.path.join(FOLDER, "sm120_*.fatbin")))
    if not found:
        raise script.Skip("no kernels for sm_120")
    return found


def nothing_is_spilled():
    for path in fatbins():
        cubin = Cubin(fatbin.cubin_of(CUDASIM, path))
        registers, frames = cubin.numbers(REGISTERS), cubin.numbers(FRAME_BYTES)
        arrays = arrays_of(fatbin.ptx_of(CUDASIM, path).decode())
        kernels = [name for name in frames if name in registers and name.startswith("bsmi_gemm_")]
        check(len(kernels) > 0, f"{path}: no kernels")
        for name in kernels:
            most = arrays if is_gemm(path) else arrays + CALL_BYTES
            check(frames[name] <= most, f"{name}: {frames[name]} bytes of stack, where all arrays have {arrays}")


def inner_loops_keep_pace():
    for path in fatbins():
        command = [sys.executable, TOOL, path, "--json", "--card", "pro"]      # the faster one: bf16 has no slack there
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "no cuobjdump" in done.stderr:
            raise script.Skip("no cuobjdump")
        check(done.returncode == 0, done.stderr)
        for loop in map(json.loads, done.stdout.splitlines()):
            spilled = loop["kinds"].get("LDL", 0) + loop["kinds"].get("STL", 0)
            check(spilled == 0, "%s: %d accesses of local memory in a turn" % (loop["kernel"], spilled))
            lost = loop["scheduled"] - loop["tensor"]
            check(not is_gemm(path) or lost <= MOST_LOST, "%s: a turn loses %d clocks" % (loop["kernel"], lost))


script.cases("test_no_spills", [nothing_is_spilled, inner_loops_keep_pace])

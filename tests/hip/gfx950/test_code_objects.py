#!/usr/bin/env python3
"""The code objects of the GEMM kernels of gfx950 by their metadata and machine code: no scratch, no spilled register,
LDS and registers for the workgroups that a CU shall hold; all together, with the other kernels', within 2 MB; and the
inner loops by bench/gpu/mfma_loop.py: shares of the matrix pipe (docs/design/gfx950-kernels.md), no wait for all
loads, no register moved.

usage: test_code_objects.py FOLDER"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../.."))
import script
from script import check

FOLDER = sys.argv[1]
TOOL = os.path.join(HERE, "../../../bench/gpu/mfma_loop.py")
MOST_BYTES = 2_000_000                                 # of all, the kernels beside them, too
LDS_OF_CU, REGISTERS = 160 * 1024, 512
# Workgroups of 4 waves that a CU holds, by tile.
GROUPS = {"256x256": 1, "256x256_32": 1, "128x128": 2, "32x128": 2, "256x256_prepacked": 1,
          "32x128_prepacked": 2}
# Pair and tile: least share of the matrix pipe by the largest of the clocks, and walked in order.
LEAST = {"e2m1_e2m1_256x256": (0.85, 0.85), "e2m1_e2m1_256x256_32": (0.85, 0.85), "e4m3_e4m3_256x256": (0.92, 0.92),
         "e4m3_e4m3_256x256_32": (0.92, 0.92), "e4m3_e2m1_256x256": (0.92, 0.92), "e2m3_e2m3_256x256": (0.85, 0.85),
         "bf16_256x256": (0.92, 0.92), "e2m1_e2m1_256x256_prepacked": (0.85, 0.85),
         "e4m3_e4m3_256x256_prepacked": (0.92, 0.92), "e4m3_e4m3_128x128": (0.85, 0), "e2m1_e2m1_128x128": (0.85, 0)}


def program(name):
    for version in ("-24", "-23", "-22", "-21", "-20", ""):
        if shutil.which(name + version):
            return name + version
    raise script.Skip(f"no {name}")


def instance_of(path):
    return os.path.basename(path)[len("gemm_"):-len(".hsaco")]


def files():
    found = sorted(glob.glob(os.path.join(FOLDER, "gemm_*.hsaco")))
    check(len(found) == 4 * 25 + 3 + 2 * 7, f"{len(found)} code objects")
    return found


def metadata_are_as_wanted():
    readelf = program("llvm-readelf")
    for path in files():
        notes = subprocess.run([readelf, "--notes", path], capture_output=True, text=True, check=True).stdout
        numbers = {key: int(value) for key, value in re.findall(r"\.(\w+):\s+(\d+)$", notes, re.MULTILINE)}
        name = instance_of(path)
        # Spilled SGPRs go to lanes of a VGPR, and come back outside of the inner loop: inner_loops has no such move.
        for key in ("private_segment_fixed_size", "vgpr_spill_count"):
            check(numbers[key] == 0, f"{name}: {key} is {numbers[key]}")
        groups = GROUPS[re.search(r"\d+x\d+(_32|_prepacked)?$", name).group()]
        check(numbers["group_segment_fixed_size"] * groups <= LDS_OF_CU,
              f"{name}: {numbers['group_segment_fixed_size']} bytes of LDS, {groups} workgroups a CU")
        check(numbers["vgpr_count"] * groups <= REGISTERS, f"{name}: {numbers['vgpr_count']} registers")
        check(numbers["max_flat_workgroup_size"] == 256, f"{name}: threads")
        check(f"bsmi_gemm_gfx950_{name}.kd" in notes, f"{name}: the kernel's name")


def all_of_them_are_small():
    found = glob.glob(os.path.join(FOLDER, "*.hsaco"))
    check(len(found) == len(files()) + 9, f"{len(found)} code objects")
    total = sum(os.path.getsize(path) for path in found)
    check(total <= MOST_BYTES, f"{total} bytes of code objects")
    print(f"{len(found)} code objects, {total} bytes")


def inner_loops():
    program("llvm-objdump")
    paths = [os.path.join(FOLDER, f"gemm_{name}.hsaco") for name in LEAST]
    found = json.loads(subprocess.run([sys.executable, TOOL, "--json", *paths], capture_output=True, text=True,
                                      check=True).stdout)
    for one, (name, (roof, in_order)) in zip(found, LEAST.items()):
        check(one["roof"] >= roof, f"{name}: {one['roof']:.2f} of the matrix pipe, not {roof}")
        check(one["in order"] >= in_order, f"{name}: {one['in order']:.2f} in order, not {in_order}")
        check(one["drains"] == 0, f"{name}: {one['drains']} waits for all loads")
        for kind in ("register move", "scratch", "vector", "store"):
            check(kind not in one["instructions"], f"{name}: {kind} in the loop")


script.cases("test_gfx950_code_objects", [metadata_are_as_wanted, all_of_them_are_small, inner_loops])

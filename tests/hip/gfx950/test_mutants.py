#!/usr/bin/env python3
"""Takes waits and barriers out of code objects of the GEMM kernels of gfx950, one at a time, in the machine code, and
runs what the kernel does on gfxsim: does a report or a wrong result notice it?  A wait for two counters is also left
with each of them alone.

usage: test_mutants.py PROGRAM FOLDER INSTANCE... [--loop]

PROGRAM: test_gfx950_gemm; FOLDER: of the code objects; INSTANCE: e2m1_e2m1_256x256 or the like.  --loop: those of the
main loop and of the end of what leads to it; fails if nothing notices one of them.  Without it, all of the kernel:
prints what nothing notices, which outside of the loop is no failure: docs/design/gfx950-kernels.md says why."""
import concurrent.futures
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

LINE = re.compile(r"\s+(\S+)\s*(.*?)\s*// ([0-9A-F]{12}):")
NOP = 0xbf800000
ANY_VM, ANY_LGKM = 0xc00f, 0xf00
SETTINGS = [{"GFXSIM_SCHEDULE": "latest"}, {"GFXSIM_SCHEDULE": "random"}]


def disassembled(path):
    for version in ("-24", "-23", "-22", "-21", "-20", ""):
        program = shutil.which("llvm-objdump" + version)
        if program:
            return subprocess.run([program, "-d", path], capture_output=True, text=True, check=True).stdout
    sys.exit("test_mutants: no llvm-objdump in the PATH")


def text_section(data):
    """Address and place in the file of the executable section."""
    at, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    for i in range(count):
        flags, address, offset = struct.unpack_from("<QQQ", data, at + i * size + 8)
        if flags & 4:
            return address, offset
    raise ValueError("no code")


def relaxed(word):
    """What a wait's word becomes: nothing at all, and each of its counters alone."""
    vm, lgkm = word & ANY_VM, word & ANY_LGKM
    yield NOP, "taken out"
    if vm != ANY_VM and lgkm != ANY_LGKM:
        yield word | ANY_VM, "without vmcnt"
        yield word | ANY_LGKM, "without lgkmcnt"


def mutants_of(path, loop_only):
    """[(place in the file, word, what)]"""
    with open(path, "rb") as file:
        data = file.read()
    address, offset = text_section(data)
    lines = [match.groups() for match in map(LINE.match, disassembled(path).splitlines()) if match]
    products = [i for i, line in enumerate(lines) if line[0].startswith("v_mfma")]
    barriers = [i for i, line in enumerate(lines) if line[0] == "s_barrier"]
    found = []
    for i, (name, operands, at) in enumerate(lines):
        place = int(at, 16) - address + offset
        if loop_only and not barriers[0] - 2 <= i <= max(products[-1], barriers[-1]):
            continue
        if name == "s_barrier":
            found.append((place, NOP, f"0x{at.lstrip('0')}: s_barrier taken out"))
        elif name == "s_waitcnt":
            word = struct.unpack_from("<I", data, place)[0]
            found += [(place, other, f"0x{at.lstrip('0')}: s_waitcnt {operands} {how}") for other, how in relaxed(word)]
    return data, found


def noticed(program, instance, data, place, word):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, f"gemm_{instance}.hsaco"), "wb") as file:
            file.write(data[:place] + struct.pack("<I", word) + data[place + 4:])
        for setting in SETTINGS:
            environment = {**os.environ, **setting, "GFX950_CODE_OBJECTS": folder, "GFX950_INSTANCE": instance,
                           "GFXSIM_STEPS": "4000000"}
            done = subprocess.run([program], env=environment, capture_output=True, check=False)
            if done.returncode != 0:
                return True
    return False


def main():
    arguments = [one for one in sys.argv[1:] if not one.startswith("--")]
    program, folder, instances = arguments[0], arguments[1], arguments[2:]
    loop_only, silent = "--loop" in sys.argv, 0
    for instance in instances:
        path = os.path.join(folder, f"gemm_{instance}.hsaco")
        data, mutants = mutants_of(path, loop_only)
        if noticed(program, instance, data, 0, struct.unpack_from("<I", data, 0)[0]):
            print(f"{instance}: the kernel itself fails")
            return 1
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda one: noticed(program, instance, data, one[0], one[1]), mutants))
        left = [what for (_, _, what), was in zip(mutants, results) if not was]
        silent += len(left)
        print(f"{instance}: {len(mutants)} mutants, {len(mutants) - len(left)} noticed")
        for what in left:
            print(f"  not noticed: {what}")
    failed = 1 if loop_only and silent else 0
    print(f"test_gfx950_mutants: {1 - failed} passed, {failed} failed, 0 skipped")
    return failed


if __name__ == "__main__":
    sys.exit(main())

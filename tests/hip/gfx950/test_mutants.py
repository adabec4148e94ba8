#!/usr/bin/env python3
"""Takes waits and barriers out of code objects of the GEMM kernels of gfx950, one at a time, in the machine code, and
runs what the kernel does on gfxsim: does a report or a wrong result notice it?  A wait for two counters is also left
with each of them alone.  What nothing notices must be superfluous on all paths of the code (waits.py), or be one of
REASONS.

usage: test_mutants.py PROGRAM FOLDER INSTANCE... [--loop] [--log FILE]

PROGRAM: test_gfx950_gemm; FOLDER: of the code objects; INSTANCE: e2m1_e2m1_256x256 or the like.  --loop: those of the
main loop and of the end of what leads to it; without it, all of the kernel.  --log: a line for each mutant that was
tried; the next run with the same file, code object and PROGRAM takes its word.  Fails if a mutant is neither noticed
nor superfluous nor has a reason."""
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

import waits

NOP = 0xbf800000
ANY_VM, ANY_LGKM = 0xc00f, 0xf00
SETTINGS = [{"GFXSIM_SCHEDULE": "latest"}, {"GFXSIM_SCHEDULE": "random"}]
Mutant = collections.namedtuple("Mutant", "place word at left what")

# What waits.py cannot know: instance, what the mutant is, how many there are, why nothing can miss the wait.
REASONS = [
    ("bf16_", r"s_waitcnt vmcnt\(\d+\) lgkmcnt\(0\) without lgkmcnt", 1,
     "in front of the first barrier the last bytes of clear_behind are under way; they are of second halves, which are "
     "read behind the loop's first barrier, and that has a wait of its own"),
    ("bf16_", r"s_waitcnt lgkmcnt\(0\) taken out", 1,
     "in store_tile, for a read of store_few, which has waited on both ways through its loop: a flag excludes the "
     "third"),
]


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


def relaxed(one, word):
    """What a wait's word becomes: nothing at all, and each of its counters alone, with what is left of them."""
    yield NOP, (waits.ANY, waits.ANY), "taken out"
    if one.vm != waits.ANY and one.lgkm != waits.ANY:
        yield word | ANY_VM, (waits.ANY, one.lgkm), "without vmcnt"
        yield word | ANY_LGKM, (one.vm, waits.ANY), "without lgkmcnt"


def mutants_of(data, code, loop_only):
    address, offset = text_section(data)
    products = [i for i, one in enumerate(code) if one.name.startswith("v_mfma")]
    barriers = [i for i, one in enumerate(code) if one.name == "s_barrier"]
    for i, one in enumerate(code):
        place = one.at - address + offset
        if loop_only and not barriers[0] - 2 <= i <= max(products[-1], barriers[-1]):
            continue
        if one.name == "s_barrier":
            yield Mutant(place, NOP, one.at, None, f"0x{one.at:x}: s_barrier taken out")
        elif one.name == "s_waitcnt":
            for word, left, how in relaxed(one, struct.unpack_from("<I", data, place)[0]):
                yield Mutant(place, word, one.at, left, f"0x{one.at:x}: s_waitcnt {one.operands} {how}")


def noticed(program, instance, data, place, word):
    """The kind of the report, or "wrong result"; an empty text: nothing."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, f"gemm_{instance}.hsaco"), "wb") as file:
            file.write(data[:place] + struct.pack("<I", word) + data[place + 4:])
        for setting in SETTINGS:
            environment = {**os.environ, **setting, "GFX950_CODE_OBJECTS": folder, "GFX950_INSTANCE": instance,
                           "GFXSIM_STEPS": "4000000", "GFXSIM_THREADS": "1"}
            done = subprocess.run([program], env=environment, capture_output=True, text=True, errors="replace",
                                  check=False)
            if done.returncode != 0:
                kind = re.search(r"^gfxsim: (.*)$", done.stderr + done.stdout, re.MULTILINE)
                return kind.group(1) if kind else "wrong result"
    return ""


class Log:
    """What earlier runs have found, by code object, program and mutant."""

    def __init__(self, path, program):
        self.path, self.found, self.lock = path, {}, threading.Lock()
        with open(program, "rb") as file:
            self.program = hashlib.sha256(file.read()).hexdigest()[:16]
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.found = dict(json.loads(line) for line in file)

    def key(self, data, mutant):
        return f"{hashlib.sha256(data).hexdigest()[:16]} {self.program} {mutant.place:x} {mutant.word:08x}"

    def noticed(self, program, instance, data, mutant):
        key = self.key(data, mutant)
        if key not in self.found:
            self.found[key] = noticed(program, instance, data, mutant.place, mutant.word)
            if self.path:
                with self.lock, open(self.path, "a", encoding="utf-8") as file:
                    file.write(json.dumps([key, self.found[key]]) + "\n")
        return self.found[key]


def try_instance(program, folder, instance, loop_only, log):
    """How many mutants are neither noticed nor superfluous."""
    path = os.path.join(folder, f"gemm_{instance}.hsaco")
    with open(path, "rb") as file:
        data = file.read()
    code = waits.instructions_of(disassembled(path))
    blocks = waits.blocks_of(code)
    if waits.complaints_without(blocks):
        print(f"{instance}: waits.py finds what is not waited for in the kernel itself")
        return 1
    if noticed(program, instance, data, 0, struct.unpack_from("<I", data, 0)[0]):
        print(f"{instance}: the kernel itself fails")
        return 1
    mutants = list(mutants_of(data, code, loop_only))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda one: log.noticed(program, instance, data, one), mutants))
    kinds = collections.Counter(result for result in results if result)
    left = [one for one, result in zip(mutants, results) if not result]
    missed = {one: waits.complaints_without(blocks, one.at, one.left) if one.left else {(one.at, "barrier", one.at)}
              for one in left}
    superfluous = sum(1 for one in left if not missed[one])
    reasons = [[count, pattern, why] for of, pattern, count, why in REASONS if instance.startswith(of)]
    explained = {}
    for one in left:
        for reason in reasons:
            if missed[one] and one not in explained and reason[0] > 0 and re.search(reason[1], one.what):
                reason[0] -= 1
                explained[one] = reason[2]
    neither = len(left) - superfluous - len(explained)
    print(f"{instance}: {len(mutants)} mutants, {sum(kinds.values())} noticed, {superfluous} superfluous, "
          f"{len(explained)} with a reason, {neither} left")
    print("  noticed by: " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    for one in left:
        if one in explained:
            print(f"  {one.what}: {explained[one]}")
            continue
        if not missed[one]:
            print(f"  {one.what}: superfluous")
        for where, what, source in sorted(missed[one], key=str)[:3]:
            print(f"  not noticed: {one.what}; on a path {what} of 0x{source:x} is wanted at 0x{where:x}")
    return neither


def main():
    arguments = sys.argv[1:]
    path = arguments.pop(arguments.index("--log") + 1) if "--log" in arguments else None
    program, folder, *instances = [one for one in arguments if not one.startswith("--")]
    log = Log(path, program)
    silent = sum(try_instance(program, folder, one, "--loop" in arguments, log) for one in instances)
    print(f"test_gfx950_mutants: {int(silent == 0)} passed, {int(silent != 0)} failed, 0 skipped")
    return int(silent != 0)


if __name__ == "__main__":
    sys.exit(main())

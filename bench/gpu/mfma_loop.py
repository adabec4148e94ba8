#!/usr/bin/env python3
"""What the inner loop of a gfx950 kernel can reach at best, by its machine code: counts the instructions of a turn, and
compares the clocks of the matrix pipe with those of LDS, of loads from L2 and of issue; and walks the turn in order
with assumed latencies.  Nothing runs, and nothing here is a measured speed.  docs/design/gfx950-kernels.md has the
formula and every rate's source.

usage: mfma_loop.py FILE [--waves N] [--groups N] [--lds BYTES] [--latency CLOCKS] [--json]

FILE: a code object, or the text that `llvm-objdump -d` printed.  A turn is one wave's, from the target of the innermost
backward branch around matrix instructions to that branch.  --waves: of a workgroup, if the metadata do not say;
--groups: workgroups that a CU holds (as many as LDS and registers let it).  --lds: bytes of LDS in a clock."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

INSTRUCTION = re.compile(r"\s+([a-z]\w+)(.*?)\s*//\s*([0-9A-F]{12}):((?: [0-9A-F]{8})+)")
MFMA = re.compile(r"v_mfma_(?:scale_)?f32_(\d+)x(\d+)x(\d+)")
SIMDS = 4
L2_BYTES = 64                                          # a clock and CU
ISSUE = 4                                              # clocks of a SIMD for an instruction
LDS_LATENCY, BARRIER = 64, 32                          # clocks, assumed
LDS_OF_CU, REGISTERS_OF_SIMD = 160 * 1024, 512


class Failure(Exception):
    """What is printed, and ends the program."""


class Instruction:
    """One line of the disassembly."""

    def __init__(self, name, operands, at, words, target):
        self.name, self.operands, self.at, self.bytes, self.target = name, operands, at, 4 * words, target
        found = MFMA.match(name)
        self.shape = tuple(map(int, found.groups())) if found else None

    def mfma_clocks(self):
        """4 clocks a pass: 4 passes of 16x16, 8 of 32x32, twice as many where an operand has 8 bits."""
        if not self.shape:
            return 0
        eight = "f8f6f4" in self.name and any(
            int(re.search(field + r":(\d)", self.operands).group(1)) < 2 if field + ":" in self.operands else True
            for field in ("cbsz", "blgp"))
        return (16 if self.shape[0] == 16 else 32) * (2 if eight else 1)

    def width(self):
        """Bytes of a lane."""
        pair = 2 if re.search(r"(read|write)2", self.name) else 1
        for pattern, size in ((r"b128|x4", 16), (r"b96|x3", 12), (r"b64|x2", 8), (r"b16|short|u16", 2),
                              (r"b8|byte|u8", 1)):
            if re.search(pattern, self.name):
                return size * pair
        return 4 * pair

    def kind(self):
        for kind, pattern in (("mfma", r"v_mfma"), ("load to LDS", r"(buffer|global)_load.*"), ("LDS read", r"ds_read"),
                              ("LDS write", r"ds_write"), ("store", r"(buffer|global)_(store|atomic)"),
                              ("scratch", r"scratch"), ("register move", r"v_(mov|accvgpr)"),
                              ("wait", r"s_waitcnt"), ("barrier", r"s_barrier"), ("nop", r"s_nop"), ("vector", r"v_"),
                              ("scalar", r"s_")):
            if re.match(pattern, self.name):
                to_lds = kind == "load to LDS" and re.search(r"\blds\b|_lds_", self.name + self.operands)
                return kind if kind != "load to LDS" or to_lds else "load"
        return "other"


def program(name):
    for version in ("-24", "-23", "-22", "-21", "-20", ""):
        found = shutil.which(name + version)
        if found:
            return found
    raise Failure(f"no {name} in the PATH")


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def read(path):
    """The code and the metadata of a file."""
    with open(path, "rb") as file:
        is_object = file.read(4) == b"\x7fELF"
    if not is_object:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(), {}
    notes = output_of(program("llvm-readelf"), "--notes", path)
    metadata = {key: int(value) for key, value in re.findall(r"\.?(\w+):\s+(\d+)$", notes, re.MULTILINE)}
    return output_of(program("llvm-objdump"), "-d", path), metadata


def instructions_of(text):
    found = []
    for line in text.splitlines():
        match = INSTRUCTION.match(line)
        if match:
            name, operands, at, words = match.groups()
            at, words = int(at, 16), words.split()
            # A branch goes on at the next instruction and the signed low half of its word, in words.
            offset = int(words[0], 16) & 0xffff
            target = at + 4 + 4 * (offset - 0x10000 * (offset >> 15)) if re.match(r"s_c?branch", name) else None
            found.append(Instruction(name, operands, at, len(words), target))
    return found


def turn_of(code):
    """The innermost backward branch around most matrix instructions."""
    loops = []
    for index, one in enumerate(code):
        if one.target is not None and one.target <= one.at:
            turn = [other for other in code[:index + 1] if other.at >= one.target]
            if any(other.shape for other in turn):
                loops.append(turn)
    if not loops:
        raise Failure("no loop around matrix instructions")
    inner = [turn for turn in loops if not any(other is not turn and other[0].at >= turn[0].at
                                               and other[-1].at <= turn[-1].at for other in loops)]
    return max(inner, key=lambda turn: sum(1 for one in turn if one.shape))


def counter(operands, name):
    found = re.search(name + r"\((\d+)\)", operands)
    return int(found.group(1)) if found else None


def in_order(turn, waves_of_cu, lds, latency):
    """Clocks of a turn of one wave of each SIMD, all in step: an instruction issues 4 clocks behind the one before it;
    a matrix instruction when the pipe is free; LDS and L2 serve the waves of the CU, one instruction of each at a
    time."""
    now = pipe = lds_free = fill_free = start = 0
    reads, loads = [], []
    for lap in range(4):
        if lap == 3:
            start = now
        for one in turn:
            kind = one.kind()
            if kind == "mfma":
                now = max(now, pipe)
                pipe = now + one.mfma_clocks()
            elif kind in ("LDS read", "LDS write"):
                lds_free = max(lds_free, now) + 64 * one.width() * waves_of_cu / lds
                reads.append(lds_free + LDS_LATENCY)
            elif kind in ("load to LDS", "load", "store"):
                fill_free = max(fill_free, now) + 64 * one.width() * waves_of_cu / L2_BYTES
                loads.append(max(now + latency, fill_free))
            elif kind == "wait":
                for queue, name in ((reads, "lgkmcnt"), (loads, "vmcnt")):
                    left = counter(one.operands, name)
                    if left is not None and len(queue) > left:
                        now = max(now, queue[len(queue) - left - 1])
                        del queue[:len(queue) - left]
            elif kind == "barrier":
                now += BARRIER
            now += ISSUE * (1 + int(one.operands.split()[0]) if kind == "nop" else 1)
    return now - start


def count(path, options):
    text, metadata = read(path)
    turn = turn_of(instructions_of(text))
    waves = options.waves or metadata.get("max_flat_workgroup_size", 256) // 64
    registers = metadata.get("vgpr_count", 512)
    groups = options.groups or max(1, min(LDS_OF_CU // max(1, metadata.get("group_segment_fixed_size", LDS_OF_CU)),
                                          REGISTERS_OF_SIMD // max(1, (registers + 7) // 8 * 8) * SIMDS // waves))
    of_cu, of_simd = waves * groups, waves * groups / SIMDS
    kinds = {}
    for one in turn:
        kinds[one.kind()] = kinds.get(one.kind(), 0) + 1
    lane_bytes = lambda *names: sum(64 * one.width() for one in turn if one.kind() in names)
    clocks = {
        "matrix": of_simd * sum(one.mfma_clocks() for one in turn),
        "LDS": of_cu * lane_bytes("LDS read", "LDS write", "load to LDS") / options.lds,
        "L2": of_cu * lane_bytes("load to LDS", "load") / L2_BYTES,
        "issue": of_simd * ISSUE * len(turn),
    }
    walked = in_order(turn, waves, options.lds, options.latency)
    flop = sum(2 * one.shape[0] * one.shape[1] * one.shape[2] for one in turn if one.shape)
    return {"file": os.path.basename(path), "waves": waves, "groups": groups, "instructions": kinds,
            "bytes": sum(one.bytes for one in turn), "flop": flop, "clocks": clocks,
            "roof": clocks["matrix"] / max(clocks.values()),
            "in order": sum(one.mfma_clocks() for one in turn) * waves / SIMDS / walked,
            "drains": sum(1 for one in turn if one.kind() == "wait" and counter(one.operands, "vmcnt") == 0)}


def show(found):
    print(f"{found['file']}: {found['waves']} waves, {found['groups']} workgroup(s) a CU, "
          f"a turn of {found['bytes']} bytes")
    print("  instructions  " + ", ".join(f"{n} {kind}" for kind, n in
                                         sorted(found["instructions"].items(), key=lambda item: -item[1])))
    print("  clocks of CU  " + ", ".join(f"{kind} {clocks:.0f}" for kind, clocks in found["clocks"].items()))
    print(f"  matrix pipe   {100 * found['roof']:.0f} % of the largest, "
          f"{100 * found['in order']:.0f} % walked in order; {found['drains']} waits for all loads")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--waves", type=int)
    parser.add_argument("--groups", type=int)
    parser.add_argument("--lds", type=int, default=256)
    parser.add_argument("--latency", type=int, default=800)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        found = [count(path, options) for path in options.files]
    except (Failure, OSError) as error:
        sys.exit(f"mfma_loop.py: {error}")
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for one in found:
            show(one)


if __name__ == "__main__":
    main()

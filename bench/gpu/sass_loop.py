#!/usr/bin/env python3
"""What the inner loop of a kernel on mma instructions can reach at best, by its machine code: counts the instructions
of a turn and compares the clocks that the tensor cores take with those of everything else that the turn needs.
Nothing runs, and nothing here is a measured speed.  docs/design/geforce.md has the formula, and every rate's source.

usage: sass_loop.py FILE [--kernel PATTERN] [--warps 4,8] [--written BYTES] [--lds CLOCKS] [--card geforce|pro]
                    [--k 2048,4096] [--groups N] [--list | --json]

FILE: a cubin, a fatbin or a program that has one; or the text that `cuobjdump -sass` printed.  cuobjdump is CUDA's; it
is CUOBJDUMP, or found in the PATH or beside nvcc.  A turn is one warp's, from the target of the innermost backward
branch around mma instructions to that branch, with what a forward branch may skip; of a kernel whose mma instructions
are in no loop, from the first of them to the last."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

# Lines of `cuobjdump -sass`: an instruction and half of its code, then the other half.
INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;"
                         r"\s*/\* 0x([0-9a-f]{16}) \*/")
SECOND_HALF = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/")
MMA = re.compile(r"([OQHI]MMA|[HQI]GMMA|UTC[A-Z]+MMA)(?:\.|$)")

# Floating-point operations (integer ones of IMMA) an SM does in a clock.  sm_12x: NVIDIA's whitepaper figures, whole
# peaks by SMs and clock; sm_90: likewise.
RATES = {"12": {"OMMA": 4096, "QMMA.SF": 2048, "QMMA": {"geforce": 1024, "pro": 2048}, "IMMA": 2048,
                "HMMA": {"geforce": 512, "pro": 1024}},
         "9": {"HGMMA": 4096, "QGMMA": 8192, "IGMMA": 8192, "HMMA": 4096, "IMMA": 8192}}
SCHEDULERS = 4
SHARED_BYTES = 128                                     # an SM reads or writes in a clock
# Clocks that a warp's instruction takes a scheduler's pipe, where that is more than its issue slot.
HALF_RATE = {"logic": 2, "multiply-add": 2, "fp16": 2}
PIPES = [("uniform", r"U[A-Z]|R2UR|S2UR|LDCU|REDUX|VOTEU|ELECT"),
         ("logic", r"(LOP3?|SHF|SHL|SHR|PRMT|SEL|SGXT|BMSK|PLOP3|FSEL|ISETP|IMNMX|VIMNMX|FLO|POPC|BREV)(\.|$)"),
         ("multiply-add", r"IMAD|IDP"), ("fp16", r"H(FMA2|ADD2|MUL2|SET2|SETP2|MNMX2)"),
         ("add", r"IADD|LEA|VIADD|IABS|MOV|CS2R|LDC|S2R"), ("fp32", r"F(FMA|ADD|MUL|SETP|MNMX)"),
         ("convert", r"F2|I2|MUFU"),
         ("branch", r"BRA|BRX|BSSY|BSYNC|WARPSYNC|EXIT|CALL|RET|YIELD|NANOSLEEP|VOTE|BREAK")]


class Failure(Exception):
    """What is printed, and ends the program."""


class Instruction:
    """One line; what its code says of scheduling besides: the clocks until the warp's next one."""

    def __init__(self, at, guard, name, operands, high):
        self.at, self.guard, self.name, self.operands = at, guard, name, operands
        self.stall = high >> 41 & 15
        to = re.search(r"0x([0-9a-f]+)$", operands) if name.startswith(("BRA", "CALL")) else None
        self.target = int(to.group(1), 16) if to else None
        found = MMA.match(name)
        self.mma = found.group(1) if found else None

    def shape(self):
        """M, N, K of an mma; None: its name does not say.  Of a warpgroup's, the rows that one warp has."""
        group = re.search(r"\.64x(\d+)x(\d+)", self.name)
        if group:
            return 16, int(group.group(1)), int(group.group(2))
        warp = re.search(r"\.(16|8)(8|16)(4|8|16|32|64|128)(?:\.|$)", self.name)
        return tuple(map(int, warp.groups())) if warp else None

    def flop(self):
        m, n, k = self.shape() or (0, 0, 0)
        return 2 * m * n * k

    def depth(self):
        return self.shape()[2]

    def filler(self):
        """Put there by ptxas because a number of clocks to the next instruction has four bits."""
        return self.name == "NOP" or self.guard == "!UPT" and self.operands.startswith("URZ")

    def shared_bytes(self):
        """Of a warp, without conflicts; equal addresses of lanes count as often as they are there."""
        if self.name.startswith("LDSM") or self.name.startswith("STSM"):
            count = re.search(r"\.M\w*\.(\d)", self.name)
            return 128 * (int(count.group(1)) if count else 1)
        if re.match(r"(LDS|STS|ATOMS)(\.|$)", self.name):
            width = re.search(r"\.(64|128)(?:\.|$)", self.name)
            return 4 * int(width.group(1)) if width else 128
        return 0

    def kind(self):
        """The line of the table that it counts for."""
        if self.mma:
            return "mma"
        if self.filler():
            return "filler"
        for name in ("LDSM", "STSM", "LDS", "STS", "ATOMS", "SYNCS", "BAR", "LDL", "STL"):
            if re.match(name + r"(\.|$)", self.name):
                return name
        if re.match(r"(LDG|STG|LD|ST|RED|ATOM|ATOMG|LDGSTS|LDGDEPBAR|DEPBAR|UTMA\w*|UBLK\w*|UTC\w*|LDTM|STTM)(\.|$)",
                    self.name):
            return "other memory"
        for pipe, pattern in PIPES:
            if re.match(pattern, self.name):
                return pipe
        return "other"


def cuobjdump(arguments):
    path = os.environ.get("PATH", "") + ":/usr/local/cuda/bin"
    nvcc = shutil.which("nvcc", path=path)
    if nvcc:
        path += ":" + os.path.dirname(nvcc)
    program = os.environ.get("CUOBJDUMP") or shutil.which("cuobjdump", path=path)
    if program is None:
        raise Failure("no cuobjdump in the PATH or beside nvcc, and CUOBJDUMP is not set")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise Failure(f"{program} {' '.join(arguments)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def kernels_of(text):
    """(target, kernel, instructions) of what cuobjdump -sass printed."""
    target, name, found, pending = "", None, [], None
    for line in text.splitlines():
        if line.lstrip().startswith(("arch =", "code for")):
            target = line.split()[-1]
        elif line.lstrip().startswith("Function :"):
            if name:
                yield target, name, found
            name, found, pending = line.split(":", 1)[1].strip(), [], None
        elif pending is None:
            match = INSTRUCTION.match(line)
            pending = match.groups()[:4] if match else None
        else:
            match = SECOND_HALF.match(line)
            if not match:
                raise Failure(f"{line!r}: not the second half of an instruction's code")
            at, guard, word, operands = pending
            found.append(Instruction(int(at, 16), guard, word, operands, int(match.group(1), 16)))
            pending = None
    if name:
        yield target, name, found


def resources_of(text):
    """{kernel: {"registers", "stack", "shared", "local"}} of what cuobjdump -res-usage printed."""
    found = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", text)
    return {name: dict(zip(("registers", "stack", "shared", "local"), map(int, numbers))) for name, *numbers in found}


def next_of(code):
    """Of each instruction, the places of those that may follow.  An indirect branch's targets are not in its line: they
    are taken to be what nothing else leads to behind it, up to the next such branch, as compilers lay them."""
    place = {one.at: index for index, one in enumerate(code)}
    following, called, last = [], set(), None
    for index, one in enumerate(code):
        to = [place[one.target]] if one.target in place else []
        if one.name.startswith("CALL"):
            called.update(to)
            to = []
        always = one.guard is None and not re.search(r"U?P\d", one.operands)
        ends = re.match(r"(BRA|BRX|BRXU|EXIT|RET|KILL)(\.|$)", one.name) and always
        following.append(([] if ends or index + 1 == len(code) else [index + 1]) + to)
    led_to = {index for indices in following for index in indices} | called
    for index, one in enumerate(code):
        if one.name.startswith("BRX"):
            last = index
        elif index not in led_to and last is not None:
            following[last].append(index)
    return following


def comes_first(following, head, tail):
    """Whether no way from the kernel's entry, or to where nothing is known to lead, gets to tail but by head."""
    led_to = {index for indices in following for index in indices}
    seen, ways = {head}, [0] + [index for index in range(1, len(following)) if index not in led_to]
    while ways:
        index = ways.pop()
        if index not in seen:
            seen.add(index)
            ways += following[index]
    return tail not in seen or tail == head


def loops_of(code):
    """[(turn, tile)]: the innermost loops around mma instructions and what else the loops around those have; without
    a loop the stretch from the first to the last.  A branch back from a place that is also reached otherwise, as from
    that of a wait which lies behind the kernel, closes no loop."""
    place, following = {one.at: index for index, one in enumerate(code)}, next_of(code)
    products = [one.at for one in code if one.mma]
    spans = sorted(((one.target, one.at) for one in code if one.name.startswith("BRA") and one.target is not None
                    and one.target <= one.at),
                   key=lambda span: span[1] - span[0])
    spans = [(first, last) for first, last in spans if any(first <= at <= last for at in products)
             and comes_first(following, place[first], place[last])]
    around = lambda outer, inner: outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]
    turns = [span for span in spans if not any(around(span, other) for other in spans)]
    if not turns and products:
        turns = [(products[0], products[-1])]
    found = []
    for span in sorted(turns):
        tile = next((outer for outer in spans if around(outer, span)), span)
        found.append(([one for one in code if span[0] <= one.at <= span[1]],
                      [one for one in code if tile[0] <= one.at < span[0] or span[1] < one.at <= tile[1]]))
    return found


def rate_of(one, target, card):
    """Operations a clock and SM; None: not known."""
    digits = re.sub(r"\D", "", target)[:-1]
    rates = RATES.get(digits, {})
    rate = rates.get(one.mma + ".SF" if one.name.startswith(one.mma + ".SF") else one.mma, rates.get(one.mma))
    return rate[card] if isinstance(rate, dict) else rate


def counts_of(turn, target, card):
    """Of one warp: instructions by kind, bytes, clocks of its scheduler's pipes."""
    kinds, products, tensor = {}, {}, 0.0
    for one in turn:
        kinds[one.kind()] = kinds.get(one.kind(), 0) + 1
        if one.mma:
            products[one.name] = products.get(one.name, 0) + 1
            rate, flop = rate_of(one, target, card), one.flop()
            tensor = None if tensor is None or not rate or not flop else tensor + flop * SCHEDULERS / rate
    of = lambda *names: sum(one.shared_bytes() for one in turn if one.kind() in names)
    pipe, pipe_name = max((kinds.get(pipe, 0) * clocks, pipe) for pipe, clocks in HALF_RATE.items())
    return {"products": products, "mma": sum(products.values()), "instructions": len(turn), "kinds": kinds,
            "tensor": tensor, "ldsm_bytes": of("LDSM"), "lds_bytes": of("LDS"),
            "other_shared_bytes": of("STS", "STSM", "ATOMS"), "pipe": pipe, "pipe_name": pipe_name,
            "scheduled": sum(one.stall for one in turn)}


def reach(counts, warps, options):
    """What bounds a turn of so many mma warps, and the tensor cores' share of it."""
    each = warps / SCHEDULERS
    shared = counts["ldsm_bytes"] + counts["other_shared_bytes"]
    loads = counts["lds_bytes"] / SHARED_BYTES if options.lds is None else counts["kinds"].get("LDS", 0) * options.lds
    clocks = {"tensor cores": counts["tensor"] * each, "issue": counts["instructions"] * each,
              counts["pipe_name"] + " pipe": counts["pipe"] * each,
              "shared memory": (shared / SHARED_BYTES + loads) * warps + options.written / SHARED_BYTES,
              "one warp's schedule": counts["scheduled"]}
    bound = max(clocks, key=clocks.get)
    return {"warps": warps, "clocks": clocks, "bound": bound, "share": clocks["tensor cores"] / clocks[bound]}


def reach_of_tile(turn, counts, outside, turns_clocks, k, warps, options):
    """Share of a whole tile: in one group the tensor cores wait while all warps do what is around the loop; of several
    groups, each with a tile, one does it under the products of the others."""
    each = warps / SCHEDULERS
    sums = len({one.operands.split(",")[0] for one in turn if one.mma})
    depth = next(one.depth() for one in turn if one.mma)
    turns = (k / depth - outside["mma"] / sums) / (counts["mma"] / sums)
    tensor = each * (turns * counts["tensor"] + outside["tensor"])
    issue, schedule = each * outside["instructions"], outside["scheduled"]
    if options.groups == 1:
        clocks = turns * turns_clocks + max(schedule, issue, each * outside["tensor"])
    else:
        clocks = max(tensor, turns * turns_clocks + each * outside["tensor"], turns * counts["scheduled"] + schedule,
                     each * (turns * counts["instructions"]) + issue)
    return {"k": k, "warps": warps, "turns": turns, "clocks": clocks, "share": tensor / clocks}


def roofs_of(turn, counts, outside, options):
    """Of the turn and of tiles, by mma warps; empty where no rate is known, and of tiles without a loop around."""
    if counts["tensor"] is None:
        return [], []
    roofs = [reach(counts, warps, options) for warps in options.warps]
    tiles = [reach_of_tile(turn, counts, outside, max(roof["clocks"].values()), k, roof["warps"], options)
             for k in options.k for roof in roofs if outside["instructions"]]
    return roofs, [tile for tile in tiles if tile["turns"] > 0]


def print_turn(turn, counts, outside, options):
    count = counts["mma"]
    print("  0x%x to 0x%x: %d instructions, %d of them mma: %s" % (
        turn[0].at, turn[-1].at, counts["instructions"], count,
        ", ".join("%d %s" % (n, name) for name, n in counts["products"].items())))
    print("    others, %.2f per mma: %s" % ((counts["instructions"] - count) / count, ", ".join(
        "%d %s" % (n, kind) for kind, n in sorted(counts["kinds"].items(), key=lambda pair: -pair[1])
        if kind != "mma")))
    print("    shared memory, bytes per mma: %.0f by LDSM, %.0f by LDS, %.0f otherwise" % (
        counts["ldsm_bytes"] / count, counts["lds_bytes"] / count, counts["other_shared_bytes"] / count))
    around = "no loop is around it" if outside["instructions"] == 0 else (
        "a tile has %(instructions)d instructions around it, %(mma)d of them mma, of %(scheduled)d clocks" % outside)
    print("    one warp's schedule: %d clocks; %s" % (counts["scheduled"], around))
    roofs, tiles = roofs_of(turn, counts, outside, options)
    if not roofs:
        print("    no rate is known for these: no share")
    else:
        print("    mma warps   tensor  issue  half-rate  shared  schedule   share of the tensor cores' roof")
    for roof in roofs:
        print("    %9d  %7.0f  %5.0f  %9.0f  %6.0f  %8.0f   %.1f %%, by %s" % (
            roof["warps"], *roof["clocks"].values(), 100 * roof["share"], roof["bound"]))
    for tile in tiles:
        print("    %9d  a tile of K = %d: %.0f clocks at least, %.1f %%" % (
            tile["warps"], tile["k"], tile["clocks"], 100 * tile["share"]))
    if options.list:
        for one in turn:
            guard = "@%s " % one.guard if one.guard else ""
            print("    %6x  %2d  %-12s %s%s %s" % (one.at, one.stall, one.kind(), guard, one.name, one.operands))


def numbers(text):
    return [int(number) for number in text.split(",")]


def read(path):
    """What cuobjdump says of the file, or is in it: machine code, resources."""
    with open(path, "rb") as file:
        begin = file.read(4096)
    if b"Function :" in begin:
        with open(path, encoding="utf-8") as file:
            return file.read(), ""
    return cuobjdump(["-sass", path]), cuobjdump(["-res-usage", path])


def main():
    parser = argparse.ArgumentParser(description="what an inner loop on mma instructions can reach, by machine code")
    parser.add_argument("file", help="a cubin, a fatbin, a program, or what cuobjdump -sass printed of one")
    parser.add_argument("--kernel", default="", help="a regular expression in the kernel's name; all unless given")
    parser.add_argument("--warps", type=numbers, default=[4, 8], help="mma warps on an SM, multiples of 4 (4,8)")
    parser.add_argument("--written", type=int, default=0, help="bytes that TMA writes to shared memory in a turn")
    parser.add_argument("--lds", type=int, help="clocks of an LDS where, by conflicts, its lanes' bytes do not say")
    parser.add_argument("--card", choices=["geforce", "pro"], default="geforce")
    parser.add_argument("--k", type=numbers, default=[], help="K of tiles to say the share of, too")
    parser.add_argument("--groups", type=int, default=1, help="groups of mma warps, each with a tile of its own (1)")
    parser.add_argument("--list", action="store_true", help="the turn's instructions, too, each with its clocks")
    parser.add_argument("--json", action="store_true", help="a line for each loop")
    options = parser.parse_args()
    text, usage = read(options.file)
    resources, none = resources_of(usage), True
    for target, name, code in kernels_of(text):
        loops = loops_of(code) if re.search(options.kernel, name) else []
        local = sum(one.kind() in ("LDL", "STL") for one in code)
        if loops and not options.json:
            print("%s, %s: %s" % (name[:100], target, ", ".join("%s %d" % pair for pair in [
                *resources.get(name, {}).items(), ("LDL and STL", local)])))
        for turn, rest in loops:
            none = False
            counts, outside = counts_of(turn, target, options.card), counts_of(rest, target, options.card)
            if options.json:
                roofs, tiles = roofs_of(turn, counts, outside, options)
                print(json.dumps(dict(counts, kernel=name, target=target, resources=resources.get(name), local=local,
                                      outside=outside, roofs=roofs, tiles=tiles)))
            else:
                print_turn(turn, counts, outside, options)
    if none:
        raise Failure(f"{options.file}: no kernel with mma instructions whose name has {options.kernel!r}")


if __name__ == "__main__":
    try:
        main()
    except (Failure, OSError) as failure:
        sys.exit(f"sass_loop.py: {failure}")

"""Which waits of a gfx950 kernel nothing can miss: follows all paths of its code with what may be under way.

A wait is superfluous if without it no instruction on any path touches a register that a load under way writes, and
whatever it would have completed of LDS is completed by another wait in time: reads, writes and loads to LDS before the
next barrier, loads to LDS before the next read or write, these before the next load to LDS, and loads to LDS before the
wave's end (the rest may be under way there: compilers wait for nothing).  Branches count as free to go either way.
Loads of one counter come in order, scalar loads in any order: while one may be under way only lgkmcnt(0) says anything
(CDNA4 ISA, 4.4)."""
import re
import sys

LINE = re.compile(r"\s+([a-z]\w+)\s*(.*?)\s*// ([0-9A-F]{12}):((?: [0-9A-F]{8})+)")
REGISTER = re.compile(r"(?<![\w.])([vsa])(?:(\d+)\b|\[(\d+):(\d+)\])|\b(vcc_lo|vcc_hi|vcc|exec_lo|exec_hi|exec|m0)\b")
ANY = 63


class Instruction:
    """One line of the disassembly: what it touches, and which counter it counts in."""

    def __init__(self, name, operands, at, words):
        self.name, self.operands, self.at, self.end = name, operands, at, at + 4 * len(words)
        self.touched = frozenset(registers_of(operands))
        self.target = None
        if re.match(r"s_c?branch", name):
            offset = words[0] & 0xffff
            self.target = at + 4 + 4 * (offset - 0x10000 * (offset >> 15))
        self.vm = self.lgkm = ANY                      # of a wait
        if name == "s_waitcnt":
            self.vm = words[0] & 15 | words[0] >> 10 & 0x30
            self.lgkm = words[0] >> 8 & 15
            self.lgkm = ANY if self.lgkm == 15 else self.lgkm
        to_lds = re.search(r"\blds\b|_lds_", name + " " + operands) is not None
        memory = re.match(r"(buffer|global)_(load|store|atomic)", name)
        self.kind = ("load to LDS" if memory and to_lds else "store" if memory and memory.group(2) == "store"
                     else "load" if memory else "DS" if name.startswith("ds_")
                     else "scalar load" if re.match(r"s_(buffer_)?load", name) else "other")
        if name.startswith(("flat_", "scratch_", "s_setpc", "s_swappc", "s_call", "s_cbranch_i", "s_cbranch_g")):
            sys.exit(f"waits.py: {name}: not followed")
        self.written = frozenset()
        if self.kind in ("load", "scalar load") or self.kind == "DS" and "read" in name:
            self.written = frozenset(registers_of(operands.split(",")[0]))


def registers_of(text):
    for kind, one, first, last, name in REGISTER.findall(text):
        if name:
            yield from {"vcc": ("vcc_lo", "vcc_hi"), "exec": ("exec_lo", "exec_hi")}.get(name, (name,))
        elif one:
            yield kind + one
        else:
            yield from (kind + str(i) for i in range(int(first), int(last) + 1))


def instructions_of(disassembly):
    found = [LINE.match(line) for line in disassembly.splitlines()]
    return [Instruction(one.group(1), one.group(2), int(one.group(3), 16),
                        [int(word, 16) for word in one.group(4).split()]) for one in found if one]


def blocks_of(code):
    """Stretches without a branch but at the end: [(instructions, [numbers of those that follow])]"""
    heads = {code[0].at} | {one.target for one in code if one.target is not None}
    heads |= {one.end for one in code if one.target is not None or one.name == "s_endpgm"}
    blocks, number = [], {}
    for one in code:
        if one.at in heads:
            number[one.at] = len(blocks)
            blocks.append([])
        blocks[-1].append(one)
    follow = []
    for block in blocks:
        last, to = block[-1], []
        if last.target is not None:
            to.append(number[last.target])
        if last.name not in ("s_endpgm", "s_branch") and last.end in number:
            to.append(number[last.end])
        follow.append(to)
    return list(zip(blocks, follow))


class Way:
    """What may be under way at a place: {register or instruction of LDS: (least number of younger ones of its counter,
    where it was issued)}; scalar loads by register alone."""

    def __init__(self):
        self.vm, self.lgkm, self.scalar, self.missed = {}, {}, {}, set()

    def copy(self):
        other = Way()
        other.vm, other.lgkm, other.scalar = dict(self.vm), dict(self.lgkm), dict(self.scalar)
        other.missed = set(self.missed)
        return other

    def join(self, other):
        """True: something is new."""
        new = False
        for mine, its in ((self.vm, other.vm), (self.lgkm, other.lgkm), (self.scalar, other.scalar)):
            for key, value in its.items():
                if key not in mine or value < mine[key]:
                    mine[key] = value
                    new = True
        if not other.missed <= self.missed:
            self.missed |= other.missed
            new = True
        return new

    def issue(self, counter, keys, at):
        for key, (age, where) in counter.items():
            counter[key] = (min(age + 1, ANY), where)
        for key in keys:
            counter[key] = (0, at)

    def completed(self, vm, lgkm):
        """Keys that a wait completes."""
        gone = {("vm", key) for key, (age, _) in self.vm.items() if age >= vm} if vm != ANY else set()
        if lgkm == 0:
            gone |= {("lgkm", key) for key in self.lgkm} | {("scalar", key) for key in self.scalar}
        elif lgkm != ANY and not self.scalar:
            gone |= {("lgkm", key) for key, (age, _) in self.lgkm.items() if age >= lgkm}
        return gone

    def wait(self, vm, lgkm):
        for counter, key in self.completed(vm, lgkm):
            del getattr(self, counter)[key]
            self.missed.discard((counter, key))


def step(way, one, without, complaints):
    """`without`: (address of a wait, what of its counters is left)."""
    if one.name == "s_waitcnt":
        vm, lgkm = one.vm, one.lgkm
        if one.at == without[0]:
            vm, lgkm = without[1]
            left = way.completed(one.vm, one.lgkm) - way.completed(vm, lgkm)
            way.missed |= {key for key in left if isinstance(key[1], int)}
        way.wait(vm, lgkm)
        return
    own = {"load": "vm", "DS": "lgkm"}.get(one.kind)    # loads of one counter come in order, to one register, too
    for counter in ("vm", "lgkm", "scalar"):
        touched = one.touched - one.written if counter == own else one.touched
        for key in touched & getattr(way, counter).keys():
            complaints.add((one.at, key, getattr(way, counter)[key][1]))
            del getattr(way, counter)[key]
    wanted = {"s_barrier": ("vm", "lgkm"), "s_endpgm": ("vm",)}.get(
        one.name, {"DS": ("vm",), "load to LDS": ("lgkm",)}.get(one.kind, ()))
    for counter, key in sorted(way.missed):
        if counter in wanted:
            complaints.add((one.at, "LDS", key))
    if one.kind in ("load", "store", "load to LDS"):
        way.issue(way.vm, one.written if one.kind == "load" else {one.at} if one.kind == "load to LDS" else (), one.at)
        if one.kind == "load to LDS":
            way.missed.discard(("vm", one.at))
    elif one.kind == "DS":
        way.issue(way.lgkm, one.written | {one.at}, one.at)
        way.missed.discard(("lgkm", one.at))
    elif one.kind == "scalar load":
        for key in one.written:
            way.scalar[key] = (0, one.at)


def complaints_without(blocks, at=None, left=(ANY, ANY)):
    """{(where, register or LDS, what is under way)} of a kernel without the wait at address `at`, or with what is left
    of its counters; an empty set: nothing can miss it."""
    begin, complaints, todo = {0: Way()}, set(), [0]
    while todo:
        number = todo.pop()
        way = begin[number].copy()
        for one in blocks[number][0]:
            step(way, one, (at, left), complaints)
        for following in blocks[number][1]:
            if following not in begin:
                begin[following] = way.copy()
                todo.append(following)
            elif begin[following].join(way) and following not in todo:
                todo.append(following)
    return complaints

#!/usr/bin/env python3
"""checks.s to words: golden_checks.h.  With --check LLVM_MC: whether it is what LLVM makes of checks.s today."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests"))
import script

SOURCE, GOLDEN = os.path.join(HERE, "checks.s"), os.path.join(HERE, "golden_checks.h")


def cases():
    """The text in front of all cases, and (name, text) of each."""
    with open(SOURCE, encoding="utf-8") as file:
        parts = re.split(r"^// case: (\w+)\n", file.read(), flags=re.M)
    return parts[0], list(zip(parts[1::2], parts[2::2]))


def words(assembler, text):
    """The code of one case."""
    done = subprocess.run([assembler, "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx950", "-filetype=obj"],
                          input=text.encode(), stdout=subprocess.PIPE, check=True)
    data = done.stdout
    section = int.from_bytes(data[40:48], "little")
    size, count, names = (int.from_bytes(data[at:at + 2], "little") for at in (58, 60, 62))

    def field(index, offset, length):
        at = section + size * index + offset
        return int.from_bytes(data[at:at + length], "little")
    for index in range(count):
        start = field(names, 24, 8) + field(index, 0, 4)
        if data[start:data.index(b"\0", start)] == b".text":
            at, length = field(index, 24, 8), field(index, 32, 8)
            return [int.from_bytes(data[k:k + 4], "little") for k in range(at, at + length, 4)]
    raise SystemExit("no .text")


def header(assembler):
    """The whole file."""
    prologue, all_cases = cases()
    lines = ["/* Made by assemble.py from checks.s. */"]
    for name, text in all_cases:
        code = words(assembler, prologue + text)
        lines.append("{ \"%s\", %d, { %s } }," % (name, len(code), ", ".join("0x%08x" % word for word in code)))
    return "\n".join(lines) + "\n"


def golden_words_are_those_of_the_text():
    """What is committed is what LLVM makes of checks.s."""
    if not os.access(sys.argv[2], os.X_OK):
        raise script.Skip("no llvm-mc that knows gfx950")
    with open(GOLDEN, encoding="utf-8") as file:
        script.check(file.read() == header(sys.argv[2]), "run assemble.py again")


if sys.argv[1] == "--check":
    script.cases("gfxsim_golden", [golden_words_are_those_of_the_text])
with open(GOLDEN, "w", encoding="utf-8") as golden:
    golden.write(header(sys.argv[1]))

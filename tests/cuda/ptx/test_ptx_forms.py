#!/usr/bin/env python3
"""What the wrappers of single instructions write (ptx_forms.cu, mma_sync_forms.cu), for sm_100a, sm_103a and sm_120a:
the simulator reads all of it (ptxas did, when it was built), and the forms are those of ptx_forms.txt, words and kinds
of operands.

usage: test_ptx_forms.py CUDASIM LIST PTX...; --list PTX...: prints the list."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import script
from script import check

FAMILIES = ("tcgen05.", "cp.", "mbarrier.", "fence.", "clusterlaunchcontrol.", "createpolicy.", "prefetch.", "mapa.",
            "elect.", "barrier.cluster.", "griddepcontrol.", "setmaxnreg.", "mma.", "ldmatrix.")
KINDS = (("%rd", "l"), ("%rs", "h"), ("%r", "r"), ("%f", "f"), ("%p", "p"))


def operand(match):
    word = match.group(0)
    for prefix, kind in KINDS:
        if re.fullmatch(prefix + r"\d+", word):
            return kind
    return word


def forms(path):
    """Each form once: its words, and its operands as r, l, h (registers of 32, 64, 16 bits), f (fp32), p (a predicate)
    or a number."""
    found = set()
    for line in open(path, encoding="utf-8"):
        for statement in line.split(";"):
            statement = statement.strip()
            if not statement.startswith(FAMILIES):
                continue
            words, _, operands = statement.partition(" ")
            operands = re.sub(r"%\w+", operand, re.sub(r"\s+", " ", operands.strip()))
            operands = re.sub(r"r(, r)+(?=[,}])", lambda m: "r x %d" % (m.group(0).count("r")), operands)
            found.add((words + " " + operands).strip())
    return found


def listed(paths):
    by_form = {}
    for path in paths:
        target = re.search(r"(\d+a)\.ptx$", path).group(1)
        for form in forms(path):
            by_form.setdefault(form, []).append(target)
    return ["%-9s %s" % (" ".join(targets), form) for form, targets in sorted(by_form.items())]


def the_simulator_reads_them():
    for path in sys.argv[3:]:
        check("instructions" in script.run([sys.argv[1], "read", path]), "%s: nothing was read" % path)


def the_forms_are_those_of_the_list():
    want = open(sys.argv[2], encoding="utf-8").read().splitlines()
    got = listed(sys.argv[3:])
    missing, new = [f for f in want if f not in got], [f for f in got if f not in want]
    check(not missing and not new, "not written: %s; not in the list: %s" % (missing[:5], new[:5]))
    check(len(want) > 300, "the list has %d forms" % len(want))


if sys.argv[1] == "--list":
    print("\n".join(listed(sys.argv[2:])))
else:
    script.cases("test_ptx_forms", [the_simulator_reads_them, the_forms_are_those_of_the_list])

#!/usr/bin/env python3
"""Every bug of every *.bugs file can be planted: its file has the old text exactly once, and the new text is another.
Most are planted by commands that make test does not run (make search-planted, planted-cuda, planted-gfxsim,
test-sim-full); there a bug whose line has changed would be found out late."""
import glob
import os
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import bugs
import script


def lost(path):
    """What is wrong with the bugs of a file, a line each."""
    for bug in bugs.read(path):
        where = os.path.join(SOURCE, bug.get("file", ""))
        if not os.path.isfile(where):
            yield f"{bug['bug']}: no file {bug.get('file')}"
            continue
        with open(where, encoding="utf-8") as file:
            count = file.read().count("\n".join(bug["old"]))
        if count != 1:
            yield f"{bug['bug']}: {bug['file']} has its old text {count} times"
        if bug["old"] == bug["new"]:
            yield f"{bug['bug']}: its new text is its old one"


def check(path):
    found = list(lost(path))
    script.check(bugs.read(path) and not found, "\n".join([os.path.relpath(path, SOURCE), *found]))


def case(path):
    def one():
        check(path)
    one.__name__ = os.path.relpath(path, SOURCE).replace("/", "_").replace(".bugs", "")
    return one


PATHS = [path for room in ("tests", "gfxsim")
         for path in sorted(glob.glob(os.path.join(SOURCE, room, "**/*.bugs"), recursive=True))]
script.cases("planted_places", [case(path) for path in PATHS])

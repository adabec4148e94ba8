#!/usr/bin/env python3
"""No line is longer than 120 columns: every file in git but the kinds below, and what is one thing that cannot be
wrapped."""
import os
import re
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import script
from script import check

LIMIT = 120
# Folders, or single files, whose lines are not held yet.  What is done leaves this list; nothing enters it.
NOT_YET = ["CMakeLists.txt", "CMakePresets.json", "Makefile", "bench/gpu/",
           "cmake/", "scripts/need", "tests/CMakeLists.txt",
           "tests/bugs.py", "tests/counted.h", "tests/cuda/simulated/simulated_mutants.py",
           "tests/examples/", "tests/install/", "tests/process.py", "tests/run",
           "tests/runner/", "tests/test.c", "tests/test.h", "tests/upstream/"]
# Not written by a person, or by somebody else.
GENERATED = [r"^third_party/", r"^fuzz/corpus/", r"^cudasim/fuzz/corpus/", r"\.svg$", r"\.ptx$", r"^LICENSE$",
             r"/golden_\w+\.h$", r"^cudasim/calibrate/hardware/", r"^cudasim/docs/instructions\.md$",
             r"^cudasim/tests/kernels/hopper_gemm\.txt$", r"^tests/cuda/ptx/ptx_forms\.txt$"]
# One thing that cannot be wrapped: rows of tables in Markdown, addresses, a source's line that a bug replaces, with its
# sign in front.  What a page shows between ``` is not held.
WHOLE = {".md": r"\s*\||.*https?://\S{60,}|\s*\[[^]]+\]: http", ".bugs": r"-"}


def files():
    listed = subprocess.run(["git", "-C", SOURCE, "ls-files"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, check=False)
    if listed.returncode != 0:
        raise script.Skip("not a checkout of git")
    return [path for path in listed.stdout.splitlines()
            if os.path.isfile(os.path.join(SOURCE, path)) and not any(re.search(kind, path) for kind in GENERATED)]


def long_lines(path):
    """(number, line) of the lines that are too long; blocks of Markdown between ``` are shown as they are."""
    with open(os.path.join(SOURCE, path), "rb") as file:
        data = file.read()
    if b"\0" in data:
        return
    whole, shown = WHOLE.get(os.path.splitext(path)[1]), False
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if path.endswith(".md") and line.lstrip().startswith("```"):
            shown = not shown
        if len(line) > LIMIT and not shown and not (whole and re.match(whole, line)):
            yield number, line


def not_yet(path):
    return any(path == name or (name.endswith("/") and path.startswith(name)) for name in NOT_YET)


def lines_end_at_120_columns():
    wrong, seen = [], 0
    for path in files():
        if not not_yet(path):
            seen += 1
            wrong += [f"{path}:{number}" for number, _ in long_lines(path)]
    check(seen > 5, "hardly any files were read")
    check(not wrong, f"{len(wrong)} lines are longer than {LIMIT} columns (scripts/format): {', '.join(wrong[:20])}")


def what_is_not_held_yet_is_there():
    """A name in the list that has no long line any more leaves it."""
    known = files()
    for name in NOT_YET:
        mine = [path for path in known if path == name or (name.endswith("/") and path.startswith(name))]
        check(any(True for path in mine for _ in long_lines(path)), f"{name} has no long lines: take it out of NOT_YET")


script.cases("lines", [lines_end_at_120_columns, what_is_not_held_yet_is_there])

#!/usr/bin/env python3
"""The rooms of cudasim (cudasim/docs/design.md): which may include which, and that no includes make a circle."""
import glob
import os
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CUDASIM = os.path.join(SOURCE, "cudasim")
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import script
from script import check

MACHINE = ["machine/core", "machine/check", "machine/memory", "machine/profile", "machine/async", "machine/tensor",
           "machine/mma", "machine/run"]
# A room, and those that its files may include beside their own; each stands behind all that it knows.
KNOWS = {
    "ptx": [],
    "machine/core": ["ptx"],
    "image": ["machine/core"],
    "machine/check": ["machine/core"],
    "machine/memory": ["machine/core", "machine/check"],
    "machine/profile": ["machine/core", "machine/memory"],
    "machine/async": ["machine/core", "machine/check", "machine/memory", "machine/profile"],
    "machine/tensor": ["machine/core", "machine/check", "machine/async"],
    "machine/mma": ["machine/core", "machine/check", "machine/memory", "machine/async", "machine/tensor"],
    "machine/run": ["ptx", *MACHINE[:-1]],
    "instructions/table": ["ptx", "machine/core"],
    "instructions/arithmetic": ["ptx", "machine/core", "instructions/table"],
    "instructions/memory": ["ptx", "machine/core", "machine/check", "machine/memory", "instructions/table",
                            "instructions/arithmetic"],
    "instructions/threads": ["ptx", *MACHINE, "instructions/table", "instructions/memory"],
    "instructions/async": ["ptx", "machine/core", "machine/check", "machine/memory", "machine/async",
                           "instructions/table", "instructions/memory"],
    "instructions/mma": ["ptx", "machine/core", "machine/check", "machine/memory", "machine/mma", "instructions/table",
                         "instructions/arithmetic", "instructions/memory"],
    "instructions/tcgen05": ["ptx", *MACHINE[:-1], "instructions/table", "instructions/memory", "instructions/mma"],
    "driver/core": ["ptx", *MACHINE],
    "driver/graph": ["driver/core"],
    "driver/context": ["driver/core", "driver/graph", "machine/run"],
    "driver/module": ["driver/core", "driver/graph", "image", "machine/check", "machine/run"],
    "driver/memory": ["driver/core", "driver/graph", "machine/core", "machine/async"],
    "driver/stream": ["driver/core", "driver/graph"],
    "runtime/core": ["driver/core"],
    "runtime/device": ["runtime/core"],
    "runtime/memory": ["runtime/core"],
    "runtime/module": ["runtime/core", "runtime/memory"],
    "runtime/stream": ["runtime/core"],
    "runtime/graph": ["runtime/core", "runtime/memory", "runtime/module"],
    "calibrate/forms": ["ptx"],
    "calibrate/families": ["ptx", "calibrate/forms"],
    "calibrate/run": ["ptx", "driver/core", "calibrate/forms", "calibrate/families"],
    "tools": ["ptx", "image", *MACHINE, "calibrate/forms", "calibrate/run"],
}
# What cudasim shares with gfxsim; it includes nothing of either.
SHARED = "simulator"
# One thing in several files, which may know one another: a node's work may be a graph, and a captured stream's work
# becomes one.
ONE_THING = [{"driver/graph/work", "driver/graph/graph", "driver/graph/capture"}]
MOST_FILES, MOST_LINES = 25, 650


def sources():
    """Paths in cudasim of all its files of C but the tests and the fuzz targets, which may include everything."""
    found = glob.glob(os.path.join(CUDASIM, "**", "*.[ch]"), recursive=True)
    paths = sorted(os.path.relpath(path, CUDASIM) for path in found)
    return [path for path in paths if not path.startswith(("tests/", "fuzz/"))]


def includes(path):
    """What the file includes in quotes, as the compiler finds it: beside the file, or from cudasim's folder."""
    with open(os.path.join(CUDASIM, path), encoding="utf-8") as file:
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', file.read(), flags=re.M):
            beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
            yield beside if os.path.exists(os.path.join(CUDASIM, beside)) else name


def every_room_is_known():
    rooms = {os.path.dirname(path) for path in sources()}
    check(rooms == set(KNOWS), f"rooms without a rule, or rules without a room: {sorted(rooms ^ set(KNOWS))}")


def rooms_know_only_what_they_may():
    wrong, seen = [], 0
    for path in sources():
        room = os.path.dirname(path)
        for header in includes(path):
            seen += 1
            if os.path.dirname(header) not in (room, SHARED, *KNOWS[room]):
                wrong.append(f"{path} includes {header}")
    check(seen > 500, "hardly any includes were read")
    check(not wrong, "; ".join(wrong))


def arrows_make_no_circle():
    """Every room stands behind those that it knows."""
    above = []
    for room, known in KNOWS.items():
        late = [other for other in known if other not in above]
        check(not late, f"{room} knows {late}, which stand behind it")
        above.append(room)


def files_make_no_circle():
    """A header and its .c file count as one."""
    knows = {}
    for path in sources():
        knows.setdefault(os.path.splitext(path)[0], set()).update(os.path.splitext(name)[0] for name in includes(path))
    done = set()

    def walk(name, below):
        circle = set(below[below.index(name):]) if name in below else None
        check(circle is None or any(circle <= thing for thing in ONE_THING), f"circle: {' > '.join([*below, name])}")
        if circle is None and name not in done:
            for other in sorted(knows.get(name, set()) - {name}):
                walk(other, [*below, name])
            done.add(name)
    for name in sorted(knows):
        walk(name, [])


def folders_and_files_are_short():
    """The tests' folders too."""
    wrong = []
    for folder, _, names in os.walk(CUDASIM):
        if len(names) > MOST_FILES:
            wrong.append(f"{os.path.relpath(folder, SOURCE)} has {len(names)} files")
        for name in names:
            if name.endswith((".c", ".h", ".cu", ".cuh", ".py")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    lines = len(file.readlines())
                if lines > MOST_LINES:
                    wrong.append(f"{os.path.relpath(os.path.join(folder, name), SOURCE)} has {lines} lines")
    check(not wrong, "; ".join(wrong))


script.cases("cudasim_rooms", [every_room_is_known, rooms_know_only_what_they_may, arrows_make_no_circle,
                                  files_make_no_circle, folders_and_files_are_short])

#!/usr/bin/env python3
"""The house: which room knows which (docs/design/house.md).  Reads the #include lines of src/ and include/."""
import glob
import os
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import script
from script import check

PUBLIC = "blockscale"
# Internal headers that a room may include: whole rooms, or single headers.
KNOWS = {
    "core": [],
    "format": ["core"],
    "layout": ["core", "format"],
    "matrix": ["core", "format", "layout"],
    "quantize": ["core", "format", "layout", "matrix"],
    "exact": ["core", "format", "layout", "matrix"],
    "product": ["core", "format", "layout", "matrix", "quantize/block.h"],
    "cpu": ["core", "format", "layout", "matrix", "quantize/block.h", "product"],
    "cuda": ["core", "format", "layout", "matrix", "quantize/block.h", "quantize/clamp.h", "quantize/request.h", "product"],
    "plan": ["core", "format", "layout", "matrix", "product", "cpu/kernels.h", "cpu/multiply.h", "cuda/device.h", "cuda/embedded.h",
             "cuda/multiply.h"],
    "file": ["core"],
    "cli": [],
}
# What must not come into the library: it does not print, exit, or allocate behind the context's back.  FILES may do the named.
FORBIDDEN = r"\b(v?f?printf|puts|putchar|perror|exit|_exit|abort|assert|malloc|calloc|realloc|strdup|alloca|system|signal|setlocale|fesetround)\s*\("
MAY = {"core/context.c": {"free", "posix_memalign"}, "file/map.c": {"mmap"}}


def sources(room):
    return sorted(glob.glob(os.path.join(SOURCE, "src", room, "*.[ch]")))


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def includes(path):
    """(room, header) of every include in quotes; headers of the file's own folder count as of its room."""
    here = os.path.basename(os.path.dirname(path))
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', read(path), flags=re.M):
        room, slash, header = name.partition("/")
        yield (room, header) if slash else (PUBLIC if name == "blockscale.h" else here, name)


def every_room_is_known():
    rooms = {name for name in os.listdir(os.path.join(SOURCE, "src")) if sources(name)}
    check(rooms == set(KNOWS), f"rooms without a rule, or rules without a room: {sorted(rooms ^ set(KNOWS))}")


def rooms_know_only_what_they_may():
    wrong, seen = [], 0
    for room, known in KNOWS.items():
        for path in sources(room):
            for other, header in includes(path):
                seen += 1
                if other not in (PUBLIC, room) and other not in known and f"{other}/{header}" not in known:
                    wrong.append(f"{os.path.relpath(path, SOURCE)} includes {other}/{header}")
    check(seen > 50, "hardly any includes were read")
    check(not wrong, "; ".join(wrong))


def arrows_make_no_circle():
    met = {}
    def height(room, below):
        check(room not in below, f"circle: {' > '.join([*below, room])}")
        if room not in met:
            met[room] = 1 + max((height(known.split("/")[0], [*below, room]) for known in KNOWS[room]), default=0)
        return met[room]
    for room in KNOWS:
        height(room, [])


def public_headers_know_public_headers():
    for path in glob.glob(os.path.join(SOURCE, "include", "**", "*.h"), recursive=True):
        for _, header in includes(path):
            check(os.path.exists(os.path.join(SOURCE, "include", "blockscale", os.path.basename(header))), f"{path} includes {header}")


def library_neither_prints_nor_exits():
    wrong = []
    for room in KNOWS:
        for path in sources(room) if room != "cli" else []:
            for number, line in enumerate(without_comments(read(path)).splitlines(), 1):
                if re.search(FORBIDDEN, line):
                    wrong.append(f"{os.path.relpath(path, SOURCE)}: {line.strip()}")
    check(not wrong, "; ".join(wrong))


def allocation_is_the_contexts():
    for room in KNOWS:
        for path in sources(room) if room != "cli" else []:
            name = os.path.relpath(path, os.path.join(SOURCE, "src"))
            used = set(re.findall(r"\b(malloc|calloc|realloc|posix_memalign|aligned_alloc|free|mmap)\s*\(", without_comments(read(path))))
            check(used <= MAY.get(name, set()), f"{name} uses {sorted(used)}: memory comes from bsmi_allocate")


def sources_are_listed():
    """Every .c file of a room is in its CMakeLists.txt: nothing lies around unbuilt."""
    for room in KNOWS:
        listed = read(os.path.join(SOURCE, "src", room, "CMakeLists.txt"))
        for path in sources(room):
            name = os.path.basename(path)
            check(not name.endswith(".c") or re.search(rf"\b{re.escape(name)}\b", listed), f"src/{room}/{name} is not in its CMakeLists.txt")


def files_are_short():
    for path in [path for room in KNOWS for path in sources(room)] + glob.glob(os.path.join(SOURCE, "tests", "*", "*.[ch]")):
        lines = read(path).splitlines()
        check(len(lines) <= 650, f"{os.path.relpath(path, SOURCE)} has {len(lines)} lines: one file, one purpose")


script.cases("rooms", [every_room_is_known, rooms_know_only_what_they_may, arrows_make_no_circle, public_headers_know_public_headers,
                       library_neither_prints_nor_exits, allocation_is_the_contexts, sources_are_listed, files_are_short])

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
    "product": ["core", "format", "layout", "matrix", "quantize/block/block.h"],
    "cpu": ["core", "format", "layout", "matrix", "quantize/block/block.h", "product"],
    "device": ["core", "format", "layout", "matrix", "product"],
    "cuda": ["core", "format", "layout", "matrix", "quantize/block/block.h", "quantize/block/clamp.h",
             "quantize/request.h", "product", "device"],
    "hip": ["core", "format", "layout", "matrix", "quantize/block/scale_code.h", "quantize/block/clamp.h",
            "quantize/request.h", "product", "device"],
    "plan": ["core", "format", "layout", "matrix", "product", "cpu/table.h", "cpu/multiply.h", "cpu/prepacked.h",
             "cuda/driver/device.h", "cuda/driver/embedded.h", "cuda/driver/profile.h", "cuda/gemm/multiply.h",
             "hip/driver/device.h", "hip/driver/embedded.h", "hip/gemm/multiply.h"],
    "file": ["core"],
    "cli": [],
}
# Within a room: what the files of a folder (".": the room's own) may include beside those of their own folder.
FOLDERS = {
    "quantize": {"block": [], "walk": ["block"], "kernels": ["block", "walk"], ".": ["block", "walk", "kernels"]},
    "file": {"io": [], "npy": ["io"], "tensors": [], "read": ["io", "tensors"], "weights": ["read"],
             "write": ["io", "tensors"]},
    "cpu": {"epilogue": [], ".": ["epilogue"], "portable": ["."], "x86": [".", "portable", "epilogue"],
            "x86/bf16": [".", "x86"], "x86/int8": [".", "x86", "x86/bf16"],
            "x86/one_row": [".", "x86", "x86/bf16"], "arm": ["."]},
    "hip": {"params": [], "tables": ["params"], "driver": ["params", "tables"],
            "gemm": ["params", "tables", "driver"], "quantize": ["params", "driver"],
            "context": ["driver", "gemm", "quantize"],
            "kernels": ["params"], "kernels/include": [], "gfx950": ["params"]},
    "cli": {
        ".": [], "args": ["."], "io": ["."], "plot": [".", "io"], "machine": ["."], "matrices": [".", "io"],
        "checkpoint": [".", "io", "matrices"],
        # No command knows another one.
        "commands/matmul": [".", "machine", "matrices", "checkpoint"],
        "commands/quantize": [".", "io", "plot", "matrices", "checkpoint"],
        "commands/checkpoint": [".", "plot", "matrices", "checkpoint"],
        "commands/layout": [".", "matrices"],
        "commands/verify": [".", "machine", "matrices"],
        "commands/bench": [".", "plot", "machine", "matrices"],
        "commands/demo": [".", "plot", "machine", "matrices"],
        "commands/info": [".", "machine"],
        "commands/manual": ["."],
    },
}
# The same of src/cuda, kernels and their headers among them; folders of `sm90` have its name in front.
CUDA = {
    "params": [], "ptx": [], "scheduler": ["params"], "scales": ["params", "ptx", "dequantize"],
    "dequantize": ["params", "ptx", "scheduler", "scales"],
    "quantize": ["params", "ptx", "scales", "dequantize", "driver"],
    "epilogue": ["ptx", "scheduler", "quantize"], "simt": ["params", "ptx", "scheduler"],
    "sm90/pipeline": ["ptx", "scheduler", "sm90/mainloop"],
    "sm90/operand": ["params", "ptx", "scales", "dequantize", "sm90/mainloop"],
    "sm90/epilogue": ["epilogue", "simt", "sm90/mainloop"],
    "sm90/mainloop": ["ptx", "scheduler", "epilogue", "sm90/pipeline", "sm90/operand", "sm90/epilogue", "sm90/kernels"],
    "sm90/kernels": ["params", "ptx", "scales", "dequantize", "sm90/operand", "sm90/mainloop"],
    "sm100": ["params", "ptx", "scheduler", "quantize", "epilogue", "sm90/operand"],
    "sm120": ["params", "ptx", "scheduler", "quantize", "epilogue", "sm90/pipeline", "sm90/operand", "sm90/epilogue",
              "sm90/mainloop"],
    "tables": ["params", "sm90/kernels", "sm100", "sm120"], "driver": ["params", "tables", "gemm", "quantize"],
    "gemm": ["params", "ptx", "tables", "driver", "sm90/kernels", "sm90/operand"],
}
# Rooms in which some files know one another in a circle.
CIRCLES_LEFT = []
# What must not come into the library: it does not print, exit, or allocate behind the context's back.  MAY: files that
# may do what is named.
FORBIDDEN = (r"\b(v?f?printf|puts|putchar|perror|exit|_exit|abort|assert|malloc|calloc|realloc|strdup|alloca|system|"
             r"signal|setlocale|fesetround)\s*\(")
MAY = {"core/context.c": {"free", "posix_memalign"}, "file/io/map.c": {"mmap"}}


def sources(room):
    return sorted(glob.glob(os.path.join(SOURCE, "src", room, "**", "*.[ch]"), recursive=True))


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def includes(path):
    """What the file includes in quotes: paths from src, or PUBLIC.  A file's own folder comes first."""
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', read(path), flags=re.M):
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if os.path.exists(beside):
            yield os.path.relpath(beside, os.path.join(SOURCE, "src"))
        else:
            yield PUBLIC if name == "blockscale.h" or name.startswith(PUBLIC + "/") else name


def every_room_is_known():
    rooms = {name for name in os.listdir(os.path.join(SOURCE, "src")) if sources(name)}
    check(rooms == set(KNOWS), f"rooms without a rule, or rules without a room: {sorted(rooms ^ set(KNOWS))}")


def rooms_know_only_what_they_may():
    wrong, seen = [], 0
    for room, known in KNOWS.items():
        for path in sources(room):
            for header in includes(path):
                seen += 1
                other = header.split("/")[0]
                if other not in (PUBLIC, room) and other not in known and header not in known:
                    wrong.append(f"{os.path.relpath(path, SOURCE)} includes {header}")
    check(seen > 50, "hardly any includes were read")
    check(not wrong, "; ".join(wrong))


def folders_know_only_what_they_may():
    """The same within the rooms whose folders have rules of their own."""
    wrong = []
    for room, known in FOLDERS.items():
        folders = {os.path.relpath(os.path.dirname(path), os.path.join(SOURCE, "src", room)) for path in sources(room)}
        check(folders == set(known),
              f"src/{room}: folders without a rule, or rules without one: {sorted(folders ^ set(known))}")
        for path in sources(room):
            here = os.path.relpath(os.path.dirname(path), os.path.join(SOURCE, "src", room))
            for header in includes(path):
                folder = os.path.relpath(os.path.dirname(header), room) if header.startswith(room + "/") else here
                if folder != here and folder not in known[here]:
                    wrong.append(f"{os.path.relpath(path, SOURCE)} includes {header}")
    check(not wrong, "; ".join(wrong))


def headers_make_no_circle():
    find_circle({os.path.relpath(path, os.path.join(SOURCE, "src")): list(includes(path)) for room in KNOWS
                 for path in sources(room)})


def files_make_no_circle():
    """A header and its source are one: what one of them includes, both know."""
    knows = {}
    for room in KNOWS:
        for path in sources(room) if room not in CIRCLES_LEFT else []:
            name = stem(os.path.relpath(path, os.path.join(SOURCE, "src")))
            knows.setdefault(name, []).extend(stem(header) for header in includes(path) if stem(header) != name)
    find_circle(knows)


def stem(path):
    return os.path.splitext(path)[0]


def find_circle(knows):
    met = set()
    def walk(name, below):
        check(name not in below, f"circle: {' > '.join([*below, name])}")
        if name not in met:
            for other in knows.get(name, []):
                walk(other, [*below, name])
        met.add(name)
    for name in knows:
        walk(name, [])


def arrows_make_no_circle():
    def walk(rules, room, below):
        check(room not in below, f"circle: {' > '.join([*below, room])}")
        for known in rules[room]:
            walk(rules, known if known in rules else known.split("/")[0], [*below, room])
    for rules in [KNOWS, *FOLDERS.values()]:
        for room in rules:
            walk(rules, room, [])


def public_headers_know_public_headers():
    for path in glob.glob(os.path.join(SOURCE, "include", "**", "*.h"), recursive=True):
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', read(path), flags=re.M):
            check(os.path.exists(os.path.join(SOURCE, "include", "blockscale", os.path.basename(name))),
                  f"{path} includes {name}")


def folders_of_cuda_know_only_what_they_may():
    """Kernels, too; every folder has 25 files at most."""
    wrong, seen, files = [], 0, {}
    for path in sorted(glob.glob(os.path.join(SOURCE, "src", "cuda", "*", "**", "*.*"), recursive=True)):
        here = os.path.relpath(os.path.dirname(path), os.path.join(SOURCE, "src", "cuda"))
        files[here] = files.get(here, 0) + 1
        if not re.search(r"\.(c|h|cu|cuh)$", path):
            continue
        for header in includes(path):
            other = os.path.dirname(header)[len("cuda/"):] if header.startswith("cuda/") else here
            seen += 1
            if other not in (here, *CUDA.get(here, [])):
                wrong.append(f"{os.path.relpath(path, SOURCE)} includes {header}")
    check(seen > 300, f"{seen} includes were read")
    check(set(files) == set(CUDA), f"folders without a rule, or rules without one: {sorted(set(files) ^ set(CUDA))}")
    check(not wrong, "; ".join(wrong))
    check(max(files.values()) <= 25, f"files in a folder: {files}")


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
            used = set(re.findall(r"\b(malloc|calloc|realloc|posix_memalign|aligned_alloc|free|mmap)\s*\(",
                                  without_comments(read(path))))
            check(used <= MAY.get(name, set()), f"{name} uses {sorted(used)}: memory comes from bsmi_allocate")


def sources_are_listed():
    """Every .c file of a room is in its CMakeLists.txt: nothing lies around unbuilt."""
    for room in KNOWS:
        listed = read(os.path.join(SOURCE, "src", room, "CMakeLists.txt"))
        for path in sources(room):
            name = os.path.relpath(path, os.path.join(SOURCE, "src", room))
            check(not name.endswith(".c") or re.search(rf"(?<![\w/]){re.escape(name)}\b", listed),
                  f"src/{room}/{name} is not in its CMakeLists.txt")


def files_are_short():
    tests = glob.glob(os.path.join(SOURCE, "tests", "*", "**", "*.[ch]"), recursive=True)
    for path in [path for room in KNOWS for path in sources(room)] + tests:
        lines = read(path).splitlines()
        check(len(lines) <= 650, f"{os.path.relpath(path, SOURCE)} has {len(lines)} lines: one file, one purpose")


script.cases("rooms", [every_room_is_known, rooms_know_only_what_they_may, folders_know_only_what_they_may,
                       arrows_make_no_circle,
                       headers_make_no_circle, files_make_no_circle, public_headers_know_public_headers,
                       folders_of_cuda_know_only_what_they_may, library_neither_prints_nor_exits,
                       allocation_is_the_contexts, sources_are_listed, files_are_short])

#!/usr/bin/env python3
"""The rooms of cudasim (cudasim/docs/design.md): which may include which, and that no includes make a circle."""
import folder

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
# One thing in several files, which may know one another: a node's work may be a graph, and a captured stream's work
# becomes one.
ONE_THING = [{"driver/graph/work", "driver/graph/graph", "driver/graph/capture"}]

folder.cases("cudasim", KNOWS, 500, ONE_THING)

#!/usr/bin/env python3
"""cudasim-instructions counts, for each kernel, the forms that no hardware was asked about: of kernels whose counts are
known, where nothing was measured, and of the table in docs/.

usage: test_instructions.py PROGRAM INSTRUCTIONS.md KERNEL.ptx..."""
import os
import re
import subprocess
import sys
import tempfile

KERNELS = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry sums(.param .u32 n)
{
    .reg .u32 %r<3>;
    ld.param.u32 %r0, [n];
    add.u32 %r1, %r0, %r0;
    add.u32 %r2, %r1, %r1;
    mul.lo.u32 %r2, %r2, %r1;
    ret;
}
.visible .entry told()
{
    tcgen05.fence::before_thread_sync;
    tcgen05.fence::before_thread_sync;
    ret;
}
"""
WANTED = ["| known.ptx | `sums` | 4 | 4 |", "| known.ptx | `told` | 2 | 2 |",
          "known.ptx: `ld.param.u32`, `add.u32`, `mul.lo.u32`, `ret`, `tcgen05.fence::before_thread_sync`."]


def main():
    program, page_name, kernels = sys.argv[1], sys.argv[2], sys.argv[3:]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        name, kept = os.path.join(folder, "known.ptx"), os.path.join(folder, "kept.txt")
        with open(kept, "w") as file:
            file.write("device nothing\ndriver 13000\ndate 2026-01-01\n")
        with open(name, "w") as file:
            file.write(KERNELS)
        printed = subprocess.run([program, kept, name], capture_output=True, text=True, check=False).stdout.splitlines()
    for line in WANTED:
        if line not in printed:
            failures.append("not printed: " + line)

    page = open(page_name).read()
    lines = re.findall(r"^\| (\S+\.ptx) \| `(\w+)` \| (\d+) \| (\d+) \|$", page, re.M)
    for path in kernels:
        file = os.path.basename(path)
        entries = sorted(re.findall(r"\.entry (\w+)\s*\(", open(path).read()))
        if entries != sorted(line[1] for line in lines if line[0] == file):
            failures.append("the entries of %s are not those of the table" % file)
        listed = re.search(r"^%s: (.*)\.$" % re.escape(file), page, re.M)
        most = len(listed.group(1).split(", ")) if listed else 0
        for line in lines:
            if line[0] == file and not (0 < int(line[2]) and int(line[3]) <= min(most, int(line[2]))):
                failures.append("counts of %s: %s of %s forms, %d are listed" % (line[1], line[3], line[2], most))
    if not any(int(line[3]) < int(line[2]) for line in lines):
        failures.append("no kernel has a form that was measured")
    for failure in failures:
        print(failure)
    print("test_cudasim_instructions: %d passed, %d failed, 0 skipped" % (not failures, bool(failures)))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())

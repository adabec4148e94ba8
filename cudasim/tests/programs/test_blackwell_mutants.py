#!/usr/bin/env python3
"""Every fence, wait, arrive, commit and barrier of Blackwell's kernels is missed when it is taken away, but for
bar.warp.sync, which has a warp's lanes together before an .aligned barrier (PTX ISA 9.7.13.2): here they come together
at that barrier by themselves.

usage: test_blackwell_mutants.py CUDASIM TESTS KERNELS"""
import os
import re
import subprocess
import sys

# file, entry, program, its arguments, at least so many mutants
RUNS = [
    ("blackwell_pipeline.ptx", "mxfp8", "test_cudasim_blackwell_pipeline", ["--kernel", "mxfp8"], 15),
    ("blackwell_pipeline.ptx", "nvfp4_pair", "test_cudasim_blackwell_pipeline", ["--kernel", "nvfp4_pair"], 18),
    ("blackwell_product.ptx", "mxf4_pair_stored", "test_cudasim_blackwell_kernels", ["--only", "mxf4_in_pairs"], 20),
]


def main():
    cudasim, tests, kernels = sys.argv[1:]
    passed = failed = 0
    for file, entry, program, arguments, least in RUNS:
        command = [cudasim, "mutate", os.path.join(kernels, file), "--entry", entry, "--schedules", "3", "--survivors",
                   "--program", os.path.join(tests, program), "--"] + arguments
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        survivors = [line for line in done.stdout.splitlines() if line.startswith("survives")
                     and "bar.warp.sync" not in line]
        counts = re.search(r"^(\d+) taken away in turn: \d+ noticed, \d+ survive; (\d+) more", done.stdout, re.M)
        if counts is None or int(counts.group(1)) < least or counts.group(2) != "0" or survivors:
            print("%s: %s\n%s" % (entry, done.stderr[:2000], done.stdout[:4000]))
            failed += 1
        else:
            passed += 1
    print("test_cudasim_blackwell_mutants: %d passed, %d failed, 0 skipped" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

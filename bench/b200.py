#!/usr/bin/env python3
"""What b200.sh runs: see there.  usage: b200.py BUILD OUT; exit status 0 if everything ran and was right, 1 if not."""
import os
import re
import sys

from commands import keep, machine, objects, run

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
FORMATS = ["mxfp8", "mxfp4", "mxfp8xmxfp4", "nvfp4"]
# What others have published records of, and few rows.
PRODUCTS = [("mxfp4", 8192, 8192, 8192), ("mxfp4", 4096, 4096, 7168), ("nvfp4", 8192, 8192, 8192),
            ("nvfp4", 4096, 4096, 7168), ("mxfp8_e4m3", 8192, 8192, 8192), ("mxfp8_e4m3", 4096, 4096, 7168),
            ("mxfp4", 16, 8192, 8192), ("mxfp4", 64, 7168, 18432), ("nvfp4", 16, 8192, 28672),
            ("mxfp8_e4m3", 128, 7168, 18432)]
SMALL_PRODUCTS = [("mxfp4", 16, 128, 256), ("nvfp4", 130, 256, 256), ("mxfp8_e4m3", 8, 128, 128)]


def ladder(results, program):
    size = ["--m", "256", "--n", "256", "--k", "256"] if SMALL else ["--m", "8192", "--n", "8192", "--k", "8192"]
    for name in FORMATS:
        for tile in ("128x256", "256x256"):
            steps = [str(s) for s in range(1, 7)] if tile == "128x256" else ["6"]
            for step in steps:
                checks = ["--verify", "--data", "normal"]
                command = [program, "--step", step, "--format", name, "--tile", tile, "--bench"] + size + checks
                entry, output = run(results, "ladder", command, step=int(step), format=name, tile=tile)
                found = re.search(r"([\d.]+) us, ([\d.]+) TFLOP/s", output)
                if found:
                    entry.update(microseconds=float(found.group(1)), tflops=float(found.group(2)))


def main():
    build, out = sys.argv[1:]
    program = lambda name: os.path.join(build, "bin", name)
    results = machine("bench/b200.sh", SMALL, program("blockscale"))
    pairs = ["--pair", "mxfp4:mxfp4", "--kernel", "cuda_tcgen05_mxf4_128x32"] if SMALL else []
    quick = ["--quick"] if SMALL or QUICK else []
    verify = [program("blockscale"), "verify", "--device", "cuda", "--json"] + quick + pairs
    entry, output = run(results, "verify", verify)
    entry["output"] = output[-200000:]
    ladder(results, program("ladder"))
    for name, m, n, k in SMALL_PRODUCTS if SMALL else PRODUCTS:
        product = [program("bench_blocks"), name, str(m), str(n), str(k)] + (["1"] if SMALL else [])
        entry, output = run(results, "products", product)
        entry["results"] = objects(output)
    return 1 if keep(results, out) else 0


sys.exit(main())

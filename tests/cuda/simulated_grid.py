#!/usr/bin/env python3
"""The whole grid of Blackwell's kernels for codes, on cudasim: every kernel at the edges of M, N, K, of its ring and of the number of tiles,
every pair of formats at every K; then a smaller grid under 100 schedules each.  Whole numbers, byte for byte against the CPU.

Each answer is appended to LOG with its command, and what stands there is not asked again; hours.  The cases of `covering` come first.

usage: simulated_grid.py BUILD LOG [--covering] [--seconds N] [--only TEXT]     N: ends after so many, to be gone on with later"""
import argparse
import os
import re
import subprocess
import sys
import time

M_N = [(1, 1), (1, 500), (16, 129), (128, 128), (129, 16), (129, 256), (256, 129), (500, 600)]
K = [16, 32, 48, 64, 128, 640, 704, 1152, 2880, 4096]
SMS, BATCH, SCHEDULES = 4, 8, 100
# Kind: pairs, elements of a step of K.
EIGHT = ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "e4m3", "e5m2"]
KINDS = {"mxf8f6f4": ([(a, b) for a in EIGHT for b in EIGHT if (a, b) != ("mxfp4", "mxfp4")], 128),
         "mxf4": ([("mxfp4", "mxfp4")], 256),
         "mxf4nvf4": ([("nvfp4", "nvfp4"), ("mxfp4_block16", "mxfp4_block16"), ("mxfp4_block16", "mxfp4"), ("mxfp4", "mxfp4_block16")], 256)}
INSTANCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/cuda/sm100/gemm_instances.h")


def tiles_of(kind):
    """(rows, columns, CTAs, stages) of the instances, rows and columns of D."""
    text = open(INSTANCES, encoding="utf-8").read()
    text = text[text.index("BSMI_SM100_GEMM_%s(X)" % kind.upper()):]
    for line in text.splitlines()[1:]:
        row = re.match(r" +X\((\d+)x(\d+), +\d+, (\d), (\d+),", line)
        if row is None:
            return
        yield tuple(map(int, row.groups()))


def fits(rows, m):
    return m if rows >= 32 else min(m, rows)


def named(kind, tile, pair, m, n, k):
    return "cuda_tcgen05_%s_%dx%d %s %s %d %d %d" % (kind, *tile[:2], *pair, fits(tile[0], m), n, k)


def covering():
    """Of the grid: every two of kernel, (M, N) and K together, every number of steps and of tiles on a kernel of each kind, every pair."""
    for kind, (pairs, step) in KINDS.items():
        tiles = list(tiles_of(kind))
        for i, tile in enumerate(tiles):
            for j, k in enumerate(K):
                yield named(kind, tile, pairs[0], *M_N[(i + j) % len(M_N)], k)
        for steps in range(1, 2 * max(tile[3] for tile in tiles) + 2):
            deep = [tile for tile in tiles if steps < 2 * tile[3] + 2]
            yield named(kind, deep[steps % len(deep)], pairs[0], 5, 8, step * steps)
        for count in range(1, 2 * SMS + 2):
            alone = [tile for tile in tiles if count < 2 * SMS // tile[2] + 2]
            tile = alone[count % len(alone)]
            yield named(kind, tile, pairs[0], 5, tile[1] * count - 3, 64)
        for i, pair in enumerate(pairs):
            yield named(kind, tiles[(i + i % len(K)) % len(tiles)], pair, 33, 130, K[i % len(K)])


def grid():
    """(schedules, product) of all, each once."""
    for kind, (pairs, step) in KINDS.items():
        a, b = pairs[0]
        for rows, columns, ctas, stages in tiles_of(kind):
            name = "cuda_tcgen05_%s_%dx%d" % (kind, rows, columns)
            shapes = [(fits(rows, m), n, k) for m, n in M_N for k in K]
            shapes += [(fits(rows, 5), 8, step * steps) for steps in range(1, 2 * stages + 2)]
            shapes += [(fits(rows, 5), columns * tiles - 3, 64) for tiles in range(1, 2 * SMS // ctas + 2)]
            for m, n, k in dict.fromkeys(shapes):
                yield 1, "%s %s %s %d %d %d" % (name, a, b, m, n, k)
    for kind, (pairs, step) in KINDS.items():
        tiles = list(tiles_of(kind))
        for i, (a, b) in enumerate(pairs):
            for j, k in enumerate(K):
                rows, columns = tiles[(i + j) % len(tiles)][:2]
                yield 1, "cuda_tcgen05_%s_%dx%d %s %s %d %d %d" % (kind, rows, columns, a, b, fits(rows, 33), 130, k)
    for kind, (pairs, step) in KINDS.items():
        for rows, columns, ctas, stages in tiles_of(kind):
            a, b = pairs[-1]
            yield SCHEDULES, "cuda_tcgen05_%s_%dx%d %s %s %d %d %d" % (kind, rows, columns, a, b, fits(rows, 40), columns + 3, step * 2 + 48)


def run(build, schedules, products):
    """Whether all are right; what the program said."""
    env = dict(os.environ, BLOCKSCALE_LIBCUDA="lib/libcudasim.so", CUDASIM_DEVICE="sm_100a", CUDASIM_SMS=str(SMS),
               CUDASIM_SCHEDULES=str(schedules), PRODUCTS=";".join(products))
    done = subprocess.run(["tests/test_gpu_codes", "--only", "asked_products"], cwd=build, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return done.returncode == 0, done.stdout


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    options.add_argument("build")
    options.add_argument("log")
    options.add_argument("--covering", action="store_true")
    options.add_argument("--seconds", type=float, default=float("inf"))
    options.add_argument("--only", default="")
    given = options.parse_args()
    known, begin = {}, time.time()
    if os.path.exists(given.log):
        known = {line.split("\t")[0]: line.split("\t")[1].strip() for line in open(given.log, encoding="utf-8")}
    first = list(dict.fromkeys(covering()))
    cases = ["%d schedules: %s" % (s, p) if s > 1 else p for s, p in dict.fromkeys(grid())]
    assert set(first) <= set(cases)
    cases = [c for c in first + ([] if given.covering else [c for c in cases if c not in first]) if given.only in c]
    open_cases = [c for c in cases if c not in known]
    while open_cases and time.time() - begin < given.seconds:
        head = re.match(r"(\d+) schedules: ", open_cases[0])
        batch = open_cases[:1] if head else [c for c in open_cases[:BATCH] if " schedules: " not in c]
        products = [c.split(": ")[-1] for c in batch]
        schedules = int(head.group(1)) if head else 1
        right, said = run(given.build, schedules, products)
        with open(given.log, "a", encoding="utf-8") as log:
            for case, product in zip(batch, products):
                fate = "right" if right or run(given.build, schedules, [product])[0] else "WRONG"
                log.write("%s\t%s\n" % (case, fate))
                known[case] = fate
                if fate == "WRONG":
                    print("%s: WRONG\n%s" % (case, said[-2000:]), flush=True)
        open_cases = open_cases[len(batch):]
    right = sum(known.get(c) == "right" for c in cases)
    wrong = sum(known.get(c) == "WRONG" for c in cases)
    print("simulated_grid: %d of %d cases: %d right, %d wrong; %d of them under %d schedules each"
          % (right + wrong, len(cases), right, wrong, sum(c in known and " schedules: " in c for c in cases), SCHEDULES))
    return 1 if wrong else 0


sys.exit(main())

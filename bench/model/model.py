#!/usr/bin/env python3
"""What Blackwell's kernels should reach: a model of a product's time, of what cudasim counts and of published rates.

usage: model.py [--counters FILE]                       the model beside others' figures; what it says of ours
       model.py --count BUILD [--counters FILE]         counts again: runs BUILD/bin/ladder on cudasim, writes FILE

bench/results/b200-model.md says what the model is; nothing here was measured by this project."""
import argparse
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FORMATS = ["mxfp8", "mxfp4", "mxfp8xmxfp4", "nvfp4"]
STEPS = ["1", "2", "3", "4", "5", "6"]
# Rows and columns of D, CTAs.
TILES = {"128x256": (128, 256, 1), "256x256": (256, 256, 2), "128x128": (128, 128, 1), "128x64": (128, 64, 1)}

# Others' figures on a B200 for kernels that take the ladder's steps, 8192 x 8192 x 8192, TFLOP/s.
REPORTED = {
    "1": [33, 67, 35, 71], "2": [663, 1435, 742, 1304], "3": [901, 2082, 1000, 2002],
    "4": [929, 2148, 1036, 2092], "5": [2019, 3917, 2144, 3842], "6": [2378, 4871, 2616, 4847],
}
# The highest that others report: format, M, N, K, TFLOP/s.
RECORDS = [("mxfp4", 8192, 8192, 8192, 5702), ("mxfp4", 4096, 4096, 7168, 5332), ("nvfp4", 8192, 8192, 8192, 4871),
           ("mxfp8", 8192, 8192, 8192, 2671)]

# Published, none of them fitted.
SMS = 148
SHARED_BYTES = 128                      # a cycle: what products read and what copies write
L2_BYTES = 126.5 * 2**20
COMMIT_CYCLES = 264 - 128               # from the last product's end until its commit is seen
ROW_BYTES = 128                         # of a row in shared memory, a step of K: four products of 32 bytes

# The six parameters, and where the fit begins.
PARAMETERS = {
    "clock": (1.65, "GHz, sustained"),
    "latency": (498, "cycles from a load's issue until its first bytes, out of L2"),
    "miss": (455, "cycles more where the operands do not fit into L2"),
    "handing": (74.5, "cycles a step more where threads hand the scales on: wait, fence, barrier"),
    "scattered": (147, "cycles a row of scales takes that lies by itself"),
    "tail": (6850, "cycles that a tile's end takes, where nothing overlaps it"),
}


# ---- counting ----

def profile(build, m, n, k, fmt, step, tile):
    """The last launch's profile."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        env = dict(os.environ, BLOCKSCALE_LIBCUDA=os.path.join(build, "lib/libcudasim.so"), CUDASIM_DEVICE="sm_100a",
                   CUDASIM_SMS="2", CUDASIM_PROFILE=file.name)
        subprocess.run([os.path.join(build, "bin/ladder"), "--step", step, "--format", fmt, "--tile", tile,
                        "--m", str(m), "--n", str(n), "--k", str(k), "--data", "whole"],
                       env=env, check=True, stdout=subprocess.DEVNULL)
        return json.loads(open(file.name, encoding="utf-8").read().splitlines()[-1])


def counts_of(p):
    kinds = {i["name"]: i for i in p["instructions"]}
    moved = {b["engine"]: b for b in p["bytes"]}
    warps = lambda name: sum(i["warps"] for key, i in kinds.items() if key == name or key.startswith(name + "."))
    tma = moved.get("bulk copies (TMA)", {})
    return {"mma": warps("tcgen05.mma"), "cp": warps("tcgen05.cp"), "st": warps("tcgen05.st"),
            "loaded": tma.get("global_read", 0), "by_threads": moved.get("loads and stores", {}).get("global_read", 0)}


def count_kernel(build, fmt, name):
    """Counts of one step of K of one tile: the difference of two lengths of K.  name: "STEP" or "STEP TILE"."""
    step, _, tile = name.partition(" ")
    m, n, _ = TILES[tile or "128x256"]
    step_k = 128 if fmt.startswith("mxfp8") else 256
    few, many = (counts_of(profile(build, m, n, steps * step_k, fmt, step, tile or "128x256")) for steps in (6, 10))
    return {key: (many[key] - few[key]) / 4 for key in few}


def count(build, path):
    kernels = [(fmt, name) for fmt in FORMATS for name in STEPS + ["6 " + tile for tile in TILES if tile != "128x256"]]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        counted = pool.map(lambda kernel: count_kernel(build, *kernel), kernels)
        counters = dict(zip(["%s, step %s" % kernel for kernel in kernels], counted))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(counters, file, indent=1, sort_keys=True)
        file.write("\n")


# ---- the model ----

def bits(fmt):
    return {"mxfp8": (8, 8), "mxfp4": (4, 4), "mxfp8xmxfp4": (8, 4), "nvfp4": (4, 4)}[fmt]


def shared_cycles(c, tile):
    """A CTA's shared memory in one step: what products read, what copies write (padded types: whole rows), scales."""
    rows, columns, ctas = TILES[tile]
    of_cta = rows / ctas + columns / ctas
    scales = c["cp"] * 512
    return (c["mma"] * 32 * of_cta + ROW_BYTES * of_cta + 2 * scales) / SHARED_BYTES


def tensor_cycles(c, tile):
    return c["mma"] * TILES[tile][1] / 2


def seconds(counters, fmt, step, tile, m, n, k, x):
    c = counters["%s, step %s" % (fmt, step if tile == "128x256" else step + " " + tile)]
    rows, columns, ctas = TILES[tile]
    steps = math.ceil(k / (128 if fmt.startswith("mxfp8") else 256))
    waves = math.ceil(math.ceil(m / rows) * math.ceil(n / columns) / (SMS // ctas))
    operands = (m * bits(fmt)[0] + n * bits(fmt)[1]) * k / 8
    arrives = x["latency"] + x["miss"] * min(1, operands / L2_BYTES)
    steady = max(tensor_cycles(c, tile), shared_cycles(c, tile))
    if step in "56":                     # loads, copies and products overlap
        cycles = steps * steady + arrives + (x["tail"] if step == "5" else 0)
    else:                                # one after the other
        of_step = arrives + ROW_BYTES * (rows + columns) / SHARED_BYTES + tensor_cycles(c, tile) + COMMIT_CYCLES
        if c["st"] > 0:                  # scales go through registers
            of_step += x["handing"]
        if c["by_threads"] > 0:          # threads' own loads come before everything else
            of_step += arrives
        if step == "1":
            of_step += x["scattered"] * (rows + columns)
        cycles = steps * of_step + x["tail"]
    return waves * cycles / (x["clock"] * 1e9)


def tflops(counters, fmt, step, tile, m, n, k, x):
    return 2e-12 * m * n * k / seconds(counters, fmt, step, tile, m, n, k, x)


def logs(counters, x, formats=FORMATS):
    return [math.log(tflops(counters, fmt, step, "128x256", 8192, 8192, 8192, x) / REPORTED[step][FORMATS.index(fmt)])
            for step in STEPS for fmt in formats]


def spread(errors):
    return 100 * math.sqrt(sum(e * e for e in errors) / len(errors))


def fit(counters, formats=FORMATS):
    """Least squares of the logarithms, a parameter at a time, in ever smaller strides."""
    x = {name: begin for name, (begin, _) in PARAMETERS.items()}
    best, stride = spread(logs(counters, x, formats)), 0.1
    while stride > 2e-4:
        moved = False
        for name in PARAMETERS:
            for factor in (1 + stride, 1 / (1 + stride)):
                tried = dict(x, **{name: x[name] * factor})
                error = spread(logs(counters, tried, formats))
                if error < best:
                    x, best, moved = tried, error, True
        stride = stride if moved else stride / 2
    return x


# ---- what it says ----

def report(counters):
    x = fit(counters)
    print("| parameter | fitted | what it is |\n|---|---|---|")
    for name, (_, what) in PARAMETERS.items():
        print("| %s | %.3g | %s |" % (name, x[name], what))
    print("\n| step | " + " | ".join(FORMATS) + " |\n|---" + "|---" * len(FORMATS) + "|")
    errors = logs(counters, x)
    for s, step in enumerate(STEPS):
        cells = ["%d for %d (%+.0f %%)" % (round(REPORTED[step][i] * math.exp(errors[4 * s + i])), REPORTED[step][i],
                                           100 * (math.exp(errors[4 * s + i]) - 1)) for i in range(4)]
        print("| %s | %s |" % (step, " | ".join(cells)))
    left_out = [e for fmt in FORMATS for e in logs(counters, fit(counters, [f for f in FORMATS if f != fmt]), [fmt])]
    print("\nerror of the 24: %.1f %% (root mean square), at most %.0f %%; a format by a fit to the others: "
          "%.1f %%, at most %.0f %%" % (spread(errors), 100 * (math.exp(max(map(abs, errors))) - 1), spread(left_out),
                                        100 * (math.exp(max(map(abs, left_out))) - 1)))
    print("\n| kernel | format | cycles: tensor cores | shared memory | bytes a CTA | a cycle and SM "
          "| K of a tile's end |"
          "\n|---|---|---|---|---|---|---|")
    for tile in TILES:
        for fmt in FORMATS:
            c = counters["%s, step 6%s" % (fmt, "" if tile == "128x256" else " " + tile)]
            steady = max(tensor_cycles(c, tile), shared_cycles(c, tile))
            end = x["tail"] * TILES[tile][1] / 256
            print("| %s | %s | %.0f | %.0f | %.0f | %.0f | %.0f |"
                  % (tile, fmt, tensor_cycles(c, tile), shared_cycles(c, tile), c["loaded"] / TILES[tile][2],
                     c["loaded"] / TILES[tile][2] / steady, end / steady * (128 if fmt.startswith("mxfp8") else 256)))
    print("\n| product | others' record | 256x256, a pair | of the record | 128x256 |\n|---|---|---|---|---|")
    for fmt, m, n, k, record in RECORDS:
        pair, one = (tflops(counters, fmt, "6", tile, m, n, k, x) for tile in ("256x256", "128x256"))
        print("| %s %d x %d x %d | %d | %.0f | %.2f | %.0f |" % (fmt, m, n, k, record, pair, pair / record, one))


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    options.add_argument("--counters", default=os.path.join(HERE, "counters.json"))
    options.add_argument("--count", metavar="BUILD")
    given = options.parse_args()
    if given.count:
        count(os.path.abspath(given.count), given.counters)
    with open(given.counters, encoding="utf-8") as file:
        report(json.load(file))
    return 0


if __name__ == "__main__":
    sys.exit(main())

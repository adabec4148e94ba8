#!/usr/bin/env python3
"""blockscale verify --device cuda on a simulated GPU with tensor memory: every pair of formats on every kernel that serves it, all cases
of verify.  Hours; each answer is appended to LOG, and what stands there is not asked again.  The first answers are of each pair once, on
one kernel after the other, codes before decoded rows; then each pair on its next kernel, and so on.

usage: simulated_verify.py BUILD LOG [--device sm_103a] [--seconds N] [--only REGEX]     N: ends after so many, to be gone on with later"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

KINDS = ["mxf8f6f4", "mxf4", "mxf4nvf4"]
EIGHT = ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "e4m3", "e5m2"]
OTHERS = ["nvfp4", "mxfp4_block16", "mxint8", "bf16", "fp16"]


def kind_of(a, b):
    """The kind of codes by which a pair is multiplied, or None."""
    if a == b == "mxfp4":
        return "mxf4"
    if a in EIGHT and b in EIGHT:
        return "mxf8f6f4"
    e2m1 = {"mxfp4", "mxfp4_block16"}
    return "mxf4nvf4" if a == b == "nvfp4" or {a, b} <= e2m1 else None


def asked(names):
    """(kernel, pair) of all: a round has every pair once."""
    pairs = [(a, b) for a in EIGHT + OTHERS for b in EIGHT + OTHERS]
    serving = {pair: [n for n in names if "_%s_" % kind_of(*pair) in n] + [n for n in names if "_f16_" in n or n == "cuda_simt"] for pair in pairs}
    for turn in range(max(map(len, serving.values()))):
        for number, pair in enumerate(pairs):
            kernels = serving[pair]
            first = sum(kind_of(*pair) is not None and "_%s_" % kind_of(*pair) in n for n in kernels) or len(kernels)
            if turn < first:
                yield kernels[(number + turn) % first], pair
            elif turn < len(kernels):
                yield kernels[turn], pair


def answer(build, device, kernel, pair):
    """"agrees" or "DIFFERS", products, worst error; what was said."""
    env = dict(os.environ, BLOCKSCALE_LIBCUDA="lib/libcudasim.so", CUDASIM_DEVICE=device, CUDASIM_QUIET="1")
    done = subprocess.run(["bin/blockscale", "verify", "--device", "cuda", "--pair", "%s:%s" % pair, "--kernel", kernel, "--json"],
                          cwd=build, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode not in (0, 1):
        return "DIFFERS\t0", done.stdout
    found = json.loads(done.stdout[done.stdout.index("{"):])["kernels"][0]["pairs"][0]
    return "%s\t%d" % ("agrees" if done.returncode == 0 else "DIFFERS", found["cases"]), done.stdout


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    options.add_argument("build")
    options.add_argument("log")
    options.add_argument("--device", default="sm_100a")
    options.add_argument("--seconds", type=float, default=float("inf"))
    options.add_argument("--only", default="")
    given = options.parse_args()
    begin, known = time.time(), {}
    info = json.loads(subprocess.run(["bin/blockscale", "info", "--json"], cwd=given.build, stdout=subprocess.PIPE, check=True).stdout)
    names = [k["name"] for k in info["kernels"] if k["name"].startswith("cuda_tcgen05_") or k["name"] == "cuda_simt"]
    if os.path.exists(given.log):
        known = dict(line.rstrip("\n").split("\t", 1) for line in open(given.log, encoding="utf-8"))
    cases = [("%s %s %s:%s" % (given.device, kernel, *pair), kernel, pair) for kernel, pair in asked(names)]
    cases = [case for case in cases if re.search(given.only, case[0])]
    for name, kernel, pair in cases:
        if name in known or time.time() - begin > given.seconds:
            continue
        known[name], said = answer(given.build, given.device, kernel, pair)
        with open(given.log, "a", encoding="utf-8") as log:
            log.write("%s\t%s\n" % (name, known[name]))
        if known[name].startswith("DIFFERS"):
            print("%s:\n%s" % (name, said[-2000:]), flush=True)
    answers = [known[name].split("\t") for name, _, _ in cases if name in known]
    wrong = sum(fate != "agrees" for fate, _ in answers)
    print("simulated_verify: %d of %d pairs on kernels: %d agree, %d differ; %d products"
          % (len(answers), len(cases), len(answers) - wrong, wrong, sum(int(products) for _, products in answers)))
    return 1 if wrong else 0


sys.exit(main())

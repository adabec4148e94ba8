#!/usr/bin/env python3
"""blockscale verify --device hip on gfxsim, every pair of formats on every kernel that serves it, a piece each: what
was answered stands in LOG, a line of JSON each, and is not asked again of the same library and simulator.  Each pair
comes once before any comes twice.

usage: verify_in_pieces.py BUILD LOG [--seconds N] [--jobs N] [--show]

BUILD: a build folder.  --seconds: begins nothing after so many, to be gone on with later.  --show: how far it is."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import process

FORMATS = ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "e4m3", "e5m2", "nvfp4", "mxfp4_block16",
           "mxint8", "bf16", "fp16"]
CODES = FORMATS[:7]                                    # by scaled MFMA
MODELS = ["exact", "fma", "groups"]                    # of rounding, in turn


def pieces(names):
    """[(turn, pair, kernel)]: a pair of codes is verified on kernels of codes, of rows of bf16 and of none."""
    asked = []
    for number, (a, b) in enumerate((a, b) for a in FORMATS for b in FORMATS):
        of_codes = a in CODES and b in CODES
        kernels = [name for name in names if "_prepacked" not in name and (of_codes or "_scale_" not in name)]
        asked += [((i - number) % len(kernels), f"{a}:{b}", kernel) for i, kernel in enumerate(kernels)]
    return sorted(asked)


def of_what(build):
    sums = hashlib.sha256()
    for name in "bin/blockscale", "lib/libgfxsim.so":
        with open(os.path.join(build, name), "rb") as file:
            sums.update(file.read())
    return sums.hexdigest()[:16]


def known(path, of):
    """{(pair, kernel): answer} of this library."""
    found = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in map(json.loads, file):
                if line["of"] == of:
                    found[line["pair"], line["kernel"]] = line
    return found


def ask(build, number, pair, kernel):
    environment = dict(os.environ, BLOCKSCALE_LIBHIP=os.path.abspath(os.path.join(build, "lib/libgfxsim.so")),
                       GFXSIM_ROUNDING=MODELS[number % 3], GFXSIM_THREADS="1", OMP_NUM_THREADS="1")
    began = time.time()
    status, out, err, _ = process.run([os.path.join(build, "bin/blockscale"), "verify", "--device", "hip", "--pair",
                                       pair, "--kernel", kernel, "--json"], 3600, env=environment)
    answer = {"pair": pair, "kernel": kernel, "rounding": MODELS[number % 3], "seconds": round(time.time() - began, 1)}
    if status not in (0, 1):
        return dict(answer, right=False, said=(out + err)[-800:])
    found = json.loads(out[out.index("{"):])["kernels"][0]["pairs"][0]
    right = status == 0 and found["failures"] == 0 and found["cases"] > 0
    return dict(answer, right=right, cases=found["cases"], **({} if right else {"said": out[-800:]}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("log")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    _, out, _, _ = process.run([os.path.join(given.build, "bin/blockscale"), "info", "--json"], 60)
    names = [kernel["name"] for kernel in json.loads(out)["kernels"] if kernel["name"].startswith("hip_")]
    of, wanted, end, lock = of_what(given.build), pieces(names), time.time() + given.seconds, threading.Lock()
    answers = known(given.log, of)

    def piece(number, pair, kernel):
        if time.time() > end:
            return
        answer = dict(ask(given.build, number, pair, kernel), of=of)
        with lock, open(given.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(answer) + "\n")

    if not given.show:
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            left = [(i, pair, kernel) for i, (_, pair, kernel) in enumerate(wanted) if (pair, kernel) not in answers]
            for done in [pool.submit(piece, *one) for one in left]:
                done.result()
        answers = known(given.log, of)
    wrong = [answer for answer in answers.values() if not answer["right"]]
    for answer in wrong:
        print(f"{answer['pair']} on {answer['kernel']}: {answer['said']}")
    print(f"{len(answers)} of {len(wanted)} pieces, {sum(a.get('cases', 0) for a in answers.values())} products, "
          f"{len({pair for pair, _ in answers})} of {len(FORMATS) ** 2} pairs, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

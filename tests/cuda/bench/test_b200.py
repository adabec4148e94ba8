#!/usr/bin/env python3
"""bench/b200.sh, tried with tiny sizes on cudasim and a libcublasLt that computes nothing: test_b200.py BUILD
LIBCUDASIM LIBCUBLASLT"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../.."))
import script
from script import check

BUILD, CUDASIM, CUBLASLT = (os.path.abspath(path) for path in sys.argv[1:4])
B200 = os.path.join(HERE, "../../../bench/b200.sh")


def one_file_holds_everything():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "b200.json")
        env = dict(os.environ, BLOCKSCALE_LIBCUDA=CUDASIM, CUDASIM_DEVICE="sm_100a", BENCH_CUBLASLT=CUBLASLT, SMALL="1",
                   CUDASIM_QUIET="1")
        done = subprocess.run([B200, BUILD, out], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        check(done.returncode == 0, done.stdout[-2000:])
        found = json.load(open(out, encoding="utf-8"))
    check(found["small"] and found["simulated"], "what it was: %s" % {k: found[k] for k in ("small", "simulated")})
    check(len(found["ladder"]) == 4 * 7 and all(e["status"] == 0 for e in found["ladder"]),
          "%d steps of the ladder" % len(found["ladder"]))
    check(found["verify"][0]["status"] == 0, found["verify"])
    for entry in found["products"]:
        own, peer = entry["results"]
        check(own["who"] == "blockscale" and own["microseconds"] > 0 and "cuda_tcgen05" in own["how"], own)
        lacks = "no mxfp4 product" in peer.get("why_not", "")
        check(lacks if own["format"] == "mxfp4" else peer["who"] == "cuBLASLt 13.1.0" and peer["microseconds"] > 0,
              peer)


def what_is_missing_is_named():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([B200, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        check(done.returncode == 2 and "no blockscale in" in done.stderr, done.stderr)


script.cases("test_b200", [what_is_missing_is_named, one_file_holds_everything])

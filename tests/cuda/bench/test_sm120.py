#!/usr/bin/env python3
"""bench/sm120.sh, tried with tiny sizes on cudasim and a libcublasLt that computes nothing: test_sm120.py BUILD
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
SM120 = os.path.join(HERE, "../../../bench/sm120.sh")


def bench(out, build=BUILD, **environment):
    env = dict(os.environ, BLOCKSCALE_LIBCUDA=CUDASIM, CUDASIM_DEVICE="sm_120a", CUDASIM_QUIET="1", SMALL="1",
               BENCH_CUBLASLT=CUBLASLT, BUILD=build)
    env.update(environment)
    return subprocess.run([SM120, out], env=env, capture_output=True, text=True, check=False)


def a_table_and_one_file():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "sm120.json")
        done = bench(out)
        with open(out, encoding="utf-8") as file:
            found = json.load(file)
        if "no CUDA kernels" in json.dumps(found):
            raise script.Skip("this build has no kernels")
        check(done.returncode == 0, (done.stdout + done.stderr)[-2000:])
    check(found["small"] and found["simulated"], "what it was: %s" % {k: found[k] for k in ("small", "simulated")})
    check(found["table"] in done.stdout and "**simulated**: cudasim sm_120a" in found["table"], found["table"])
    rows = [line for line in found["table"].splitlines() if line.startswith("| ")][1:]
    check(len(rows) == len(found["products"]) == 3 and all("| ran |" in line for line in rows), rows)
    check(" us" not in found["table"] and "TFLOP" not in found["table"], "simulated times: %s" % found["table"])
    for entry in found["products"]:
        own, peer = entry["results"]
        check(own["who"] == "blockscale" and own["microseconds"] > 0, own)
        check(("no mxfp8_e4m3 x mxfp4 product" in peer.get("why_not", "")) if ":" in own["format"]
              else peer["who"] == "cuBLASLt 13.1.0" and peer["microseconds"] > 0, peer)


def what_fails_is_recorded():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "sm120.json")
        done = bench(out, BLOCKSCALE_LIBCUDA=os.path.join(folder, "libcuda.so"))
        check(done.returncode == 1, "exit status %d" % done.returncode)
        with open(out, encoding="utf-8") as file:
            found = json.load(file)
    check("verification FAILED" in found["table"] and "failed: status" in found["table"], found["table"])
    check(all(entry["status"] != 0 and entry["said"] for entry in found["verify"] + found["products"]), found)


def what_is_missing_is_named():
    with tempfile.TemporaryDirectory() as folder:
        done = bench(os.path.join(folder, "sm120.json"), build=folder)
        check(done.returncode == 2 and "no blockscale in" in done.stderr, done.stderr)


script.cases("test_sm120", [what_is_missing_is_named, what_fails_is_recorded, a_table_and_one_file])

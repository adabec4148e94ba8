#!/usr/bin/env python3
"""bench_gpu and bench_prepacked, tried with tiny sizes on cudasim and a libcublas that computes nothing:
test_bench_gpu.py BENCH_GPU CUDASIM CUBLAS CUBLASLT BENCH_PREPACKED"""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import script
from script import check

PROGRAM, CUDASIM, CUBLAS, CUBLASLT, PREPACKED = (os.path.abspath(path) for path in sys.argv[1:6])
TINY = ["--divide", "256", "--rounds", "1"]


def bench(arguments, libcuda=CUDASIM, program=PROGRAM):
    environment = dict(os.environ, CUDASIM_QUIET="1", BLOCKSCALE_LIBCUDA=libcuda, BENCH_CUBLAS=CUBLAS,
                       BENCH_CUBLASLT=CUBLASLT)
    return subprocess.run([program] + arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=environment, check=False)


def a_product_and_its_peers():
    with tempfile.TemporaryDirectory() as folder:
        results, drawing = os.path.join(folder, "bench.json"), os.path.join(folder, "bench.svg")
        done = bench(TINY + ["--only", "small bf16 x MXFP4 1x32x32", "--only", "error NVFP4", "--commit", "c0ffee",
                             "--json", results, "--svg", drawing])
        if "no CUDA kernels" in done.stderr:
            raise script.Skip("this build has no kernels")
        check(done.returncode == 0, f"exit status {done.returncode}: {done.stderr}")
        with open(results, encoding="utf-8") as file:
            table = json.load(file)
        xml.etree.ElementTree.parse(drawing)
    rows = {section["title"].split(",")[0]: section["rows"] for section in table["sections"] if section["rows"]}
    check(sorted(rows) == ["few rows", "largest |D - exact| over the sum of |a||b|", "weights packed once"],
          f"sections {sorted(rows)}")
    check(rows["weights packed once"][0]["about"].endswith(", prepacked"), f"row {rows['weights packed once'][0]}")
    row = rows["few rows"][0]
    check(row["served"] and row["ours_seconds"] > 0 and row["ratio"] > 0 and row["about"].startswith("cuda_"),
          f"row {row}")
    error = rows["largest |D - exact| over the sum of |a||b|"][0]
    check(error["ours_error"] < 1e-6, f"an error of {error['ours_error']}")
    check(table["commit"] == "c0ffee" and "cuBLAS 13.1.0" in table["peers"], f"{table['commit']}; {table['peers']}")
    check("PyTorch" in table["lacks"], table["lacks"])
    check("c0ffee" in done.stdout and "few rows" in done.stdout, done.stdout)


def fp8_beside_cublas_lt():
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "bench.json")
        done = bench(TINY + ["--only", "fast MXFP8 32x32x32", "--json", results])
        if "no CUDA kernels" in done.stderr:
            raise script.Skip("this build has no kernels")
        check(done.returncode == 0, f"exit status {done.returncode}: {done.stderr}")
        with open(results, encoding="utf-8") as file:
            table = json.load(file)
    rows = [row for section in table["sections"] for row in section["rows"] if "one scale" in section["title"]]
    check(len(rows) == 2, f"{len(rows)} rows beside cuBLASLt")
    for row in rows:
        check(row["served"] and row["peer"] == "cuBLASLt 13.1.0" and "fp8" in row["about"], f"row {row}")


def prepacked_weights_by_every_kernel():
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "prepacked.json")
        done = bench(["--formats", "nvfp4", "--weights", "64x64", "--rows", "1,20", "--rounds", "1", "--slowest",
                      "1000000", "--json", results], program=PREPACKED)
        if "no CUDA kernels" in done.stderr:
            raise script.Skip("this build has no kernels")
        check(done.returncode == 0, f"exit status {done.returncode}: {done.stderr}")
        with open(results, encoding="utf-8") as file:
            products = json.load(file)["products"]
    check([p["shape"] for p in products] == ["1x64x64", "20x64x64"], f"{products}")
    for product in products:
        forced = product["forced_us"]
        check(product["chosen"] in forced and all("nvfp4" in name for name in forced), f"{product}")
        check(len(forced) >= 7 and min(forced.values()) > 0, f"{forced}")
        check(product["cublas_us"] > 0 and product["stored_us"] > 0 and product["prepacked_us"] > 0, f"{product}")
    check(done.stdout.count("best forced") == 2, done.stdout)
    for arguments in (["--rows", "0"], ["--rows", "4,x"], ["--weights", "64"], ["--rounds"], ["--nonsense", "1"]):
        done = bench(arguments, program=PREPACKED)
        check(done.returncode in (1, 2) and done.stdout == "" and done.stderr != "", f"{arguments}: {done.returncode}")


def without_a_gpu_one_line_says_so():
    done = bench([], libcuda="/nowhere/libcuda.so")
    check(done.returncode == 4 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr)
    check("no GPU to measure" in done.stderr, done.stderr)


def wrong_options_are_refused():
    for arguments in (["--rounds"], ["--rounds", "0"], ["--rounds", "1x"], ["--divide", "257"], ["--nonsense"],
                      ["--json"]):
        done = bench(arguments)
        check(done.returncode in (1, 2) and done.stdout == "" and done.stderr != "", f"{arguments}: {done.returncode}")


script.cases("test_bench_gpu", [without_a_gpu_one_line_says_so, wrong_options_are_refused, a_product_and_its_peers,
                               fp8_beside_cublas_lt, prepacked_weights_by_every_kernel])

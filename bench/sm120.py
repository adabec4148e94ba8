#!/usr/bin/env python3
"""What sm120.sh runs: see there.  usage: sm120.py BUILD OUT; exit status 0 if everything ran and was right, 1 if
not."""
import glob
import os
import site
import sys

from commands import keep, machine, objects, run

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
BYTES = ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4"]
# Every pair at one size; those that cuBLASLt has, at others: large, deep, flat, few rows.
SIDE = 4096
MAIN = ["nvfp4", "mxfp4", "mxfp8_e4m3"]
SIZES = [(8192, 8192, 8192), (4096, 4096, 16384), (8192, 8192, 2048), (16, 8192, 8192), (128, 8192, 8192)]
SMALL_PRODUCTS = [("nvfp4", 16, 128, 128), ("mxfp8_e4m3", 8, 128, 128), ("mxfp8_e4m3:mxfp4", 8, 128, 128)]
# Operations a clock and SM of the tensor cores: docs/design/geforce.md.
FOUR_BITS, BYTE = 4096, 2048


def products():
    if SMALL:
        return SMALL_PRODUCTS
    pairs = MAIN if QUICK else ["nvfp4", "mxfp4_block16", *(f"{a}:{b}" if a != b else a for a in BYTES for b in BYTES)]
    return [(pair, SIDE, SIDE, SIDE) for pair in pairs] + [(pair, *size) for size in SIZES for pair in MAIN]


def find_cublas_lt():
    """That of PyTorch's packages, unless one is named."""
    if "BENCH_CUBLASLT" in os.environ:
        return
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    found = [path for folder in folders for path in sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib",
                                                                                 "libcublasLt.so.*")))]
    if found:
        os.environ["BENCH_CUBLASLT"] = found[-1]


def share(pair, own, multiprocessors):
    """Of the tensor cores at the clock that was read meanwhile, in percent; None: no clock is known."""
    rate = FOUR_BITS if pair in ("nvfp4", "mxfp4", "mxfp4_block16") else BYTE
    if not own.get("mhz") or not multiprocessors:
        return None
    return 100 * own["tflops"] * 1e6 / (rate * multiprocessors * own["mhz"])


def row(entry, multiprocessors, simulated):
    """A line of the table; a simulated time is none, and is not in it."""
    pair, m, n, k = entry["product"]
    own, peer = (entry["results"] + [{}, {}])[:2]
    about = "| %s | %d x %d x %d | " % (pair, m, n, k)
    if "microseconds" not in own:
        return about + "failed: status %s | | | | |" % entry["status"]
    percent, kernel = share(pair, own, multiprocessors), own["how"].partition("kernel ")[2].partition(",")[0]
    if simulated:
        return about + "ran | - | %s | - | %s |" % ("ran" if "microseconds" in peer else "-", kernel)
    beside = ("%.1f us | %.2f" % (peer["microseconds"], peer["microseconds"] / own["microseconds"])
              if "microseconds" in peer else "- | -")
    return about + "%.1f us, %.1f TFLOP/s | %s | %s | %s |" % (
        own["microseconds"], own["tflops"], "-" if percent is None else "%.0f %%" % percent, beside, kernel)


def table(results, gpu):
    """Markdown."""
    peers = {peer["who"] for entry in results["products"] for peer in entry["results"][1:] if "microseconds" in peer}
    return "\n".join([
        "%s%s, compute capability %s, %s SMs; verification %s; %s" % (
            "**simulated**: " if results["simulated"] else "", gpu.get("name", "no GPU"), gpu.get("compute_capability"),
            gpu.get("multiprocessors"), "agrees" if results["verify"][0]["status"] == 0 else "FAILED",
            ", ".join(sorted(peers)) or "no cuBLASLt"), "",
        "| pair | M x N x K | blockscale | of the tensor cores | cuBLASLt | times as fast | kernel |",
        "|---|---|---|---|---|---|---|",
        *[row(entry, gpu.get("multiprocessors"), results["simulated"]) for entry in results["products"]]])


def main():
    build, out = sys.argv[1:]
    program = lambda name: os.path.join(build, "bin", name)
    find_cublas_lt()
    results = machine("bench/sm120.sh", SMALL, program("blockscale"))
    gpus = results["info"][0].get("output", {}).get("gpus", [])
    gpu = gpus[0] if gpus else {}
    verify = [program("blockscale"), "verify", "--device", "cuda", "--json"] + (["--quick"] if SMALL or QUICK else [])
    entry, output = run(results, "verify", verify + (["--pair", "mxfp4:mxfp4"] if SMALL else []))
    entry["output"] = output[-200000:]
    for product in products():
        command = [program("bench_blocks"), *map(str, product)] + (["1"] if SMALL else [])
        entry, output = run(results, "products", command, product=product)
        entry["results"] = objects(output)
    results["table"] = table(results, gpu)
    print("\n" + results["table"] + "\n")
    return 1 if keep(results, out) else 0


sys.exit(main())

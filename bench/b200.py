#!/usr/bin/env python3
"""What b200.sh runs: see there.  usage: b200.py BUILD OUT; exit status 0 if everything ran and was right, 1 if not."""
import json
import os
import platform
import re
import subprocess
import sys
import time

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
FORMATS = ["mxfp8", "mxfp4", "mxfp8xmxfp4", "nvfp4"]
# What others have published records of, and few rows.
PRODUCTS = [("mxfp4", 8192, 8192, 8192), ("mxfp4", 4096, 4096, 7168), ("nvfp4", 8192, 8192, 8192),
            ("nvfp4", 4096, 4096, 7168), ("mxfp8_e4m3", 8192, 8192, 8192), ("mxfp8_e4m3", 4096, 4096, 7168),
            ("mxfp4", 16, 8192, 8192), ("mxfp4", 64, 7168, 18432), ("nvfp4", 16, 8192, 28672),
            ("mxfp8_e4m3", 128, 7168, 18432)]
SMALL_PRODUCTS = [("mxfp4", 16, 128, 256), ("nvfp4", 130, 256, 256), ("mxfp8_e4m3", 8, 128, 128)]
SECONDS = 3600                                        # of one command


def run(results, section, command, **about):
    """Runs it, keeps what it said, prints a line."""
    begin = time.time()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
                              check=False)
        status, output, errors = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        status, output, errors = "timeout", (late.stdout or b"").decode(errors="replace"), "ended after %d s" % SECONDS
    entry = dict(about, command=[os.path.basename(command[0])] + command[1:], status=status,
                 seconds=round(time.time() - begin, 1))
    if status != 0:
        entry["said"] = (output + errors)[-4000:]
    results.setdefault(section, []).append(entry)
    words = " ".join(entry["command"])[:60]
    print("%-8s %-60s %s, %.0f s" % (section, words, "done" if status == 0 else "status %s" % status, entry["seconds"]),
          flush=True)
    return entry, output


def objects(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


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
    results = {"made_by": "bench/b200.sh", "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
               "host": platform.platform(), "small": SMALL,
               "simulated": "cudasim" in os.environ.get("BLOCKSCALE_LIBCUDA", "")}
    entry, output = run(results, "info", [program("blockscale"), "info", "--json"])
    if entry["status"] == 0:
        entry["output"] = json.loads(output)
    try:
        run(results, "info", ["nvidia-smi", "-q", "-d", "CLOCK,POWER,ECC"])[0]
    except FileNotFoundError:
        results.setdefault("info", []).append({"command": ["nvidia-smi"], "status": "not found"})
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
    with open(out, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    ran = [e for section in results.values() if isinstance(section, list) for e in section]
    wrong = [e for e in ran if e["status"] not in (0, "not found")]
    print("%s: %d commands, %d with another status than 0" % (out, len(ran), len(wrong)))
    return 1 if wrong else 0


sys.exit(main())

#!/usr/bin/env python3
"""blockscale bench --device cuda: one table over K, kernels, the chart, and what it refuses.  On cudasim the kernels
have counts, which are the profile's own."""
import json
import os
import re
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import script

command = sys.argv[1]
BENCH = [command, "bench", "--device", "cuda", "-m", "16", "-n", "64", "-r", "1"]
simulated = "BLOCKSCALE_LIBCUDA" in os.environ
SVG = "{http://www.w3.org/2000/svg}"


def a_range_of_k_is_one_table_with_kernels():
    script.needs_a_gpu(command, "cuda")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "chart.svg")
        text = script.run(BENCH + ["--format", "mixed", "--k-range", "64:128:64", "--profile", "--plot", path],
                          env={**os.environ, "TMPDIR": folder})
        script.check(os.listdir(folder) == ["chart.svg"], os.listdir(folder))
        root = xml.etree.ElementTree.parse(path).getroot()
        texts = ["".join(text.itertext()) for text in root.iter(SVG + "text")]
        script.check({"TFLOP/s", "mxfp8_e4m3 x mxfp4", "bf16 x bf16", "64", "128"} <= set(texts), texts)
        script.check(all(len(line.get("points").split()) == 2 for line in root.iter(SVG + "polyline")), "points")
        script.check(any("Simulated" in text for text in texts) == simulated, texts)
    script.check(text.startswith("mxfp8_e4m3 x mxfp4, M = 16, N = 64, D fp32, on "), text)
    table = text.split("A + B + D\n")[1].split("\n\n")[0].splitlines()
    script.check([line.split()[0] for line in table] == ["64", "128"], table)
    kernels = re.findall(r"^(bsmi_\w+) +(\d+) +(\d+) ", text, re.M)
    for k in ("64", "128"):
        script.check(sum("gemm" in name for name, of, _ in kernels if of == k) == 1, kernels)
    script.check(("Simulated counts, no times" in text) == simulated and ("The GPU is simulated" in text) == simulated,
                 text)


def the_json_has_each_kernel():
    script.needs_a_gpu(command, "cuda")
    line = BENCH + ["--a-format", "bf16", "--b-format", "mxfp4", "-k", "128", "--json"]
    value = json.loads(script.run(line + ["--profile"]))
    script.check("kernels" not in value["points"][0]["bf16"], "a profile unasked")
    point, = value["points"]
    script.check((value["a_format"], value["b_format"], value["simulated"], point["k"])
                 == ("bf16", "mxfp4", simulated, 128), value)
    side = point["product"]
    script.check(side["bytes"] == 16 * 128 * 2 + 64 * 128 // 32 * 17 + 16 * 64 * 4, side)
    script.check(abs(side["median_tflops"] - 2e-12 * 16 * 64 * 128 / side["median_seconds"]) < 1e-9, side)
    for kernel in side["kernels"]:
        script.check(kernel["ctas"] > 0 and kernel["threads"] > 0, kernel)
        script.check(kernel["simulated_instructions"] > 0 if simulated else kernel["seconds"] > 0, kernel)
    product, = (kernel for kernel in side["kernels"] if "gemm" in kernel["kernel"])
    if simulated:                              # reads A at least once, and B's codes, and writes D
        script.check(product["simulated_bytes"] >= 16 * 128 * 2 + 64 * 128 // 2 + 16 * 64 * 4, product)
        script.check("seconds" not in product and "tflops" not in product, product)
    else:
        script.check(abs(product["tflops"] - 2e-12 * 16 * 64 * 128 / product["seconds"]) < 1e-9, product)


def what_cannot_be_is_refused():
    script.run([command, "bench", "--profile", "-m", "8"], expect=2)
    script.run([command, "bench", "--format", "mixd"], expect=2)
    script.run(BENCH + ["--explain", "--profile"], expect=2)
    script.run(BENCH + ["--explain", "--plot", "/dev/null"], expect=2)
    script.run(BENCH + ["--profile", "-k", "64"], expect=2, env={**os.environ, "CUDASIM_PROFILE": "mine.json"})
    text = script.run([command, "bench", "--format", "mixed", "-m", "4", "-n", "4", "-k", "32", "-r", "1", "--no-blas"])
    script.check("mxfp8_e4m3 x mxfp4, M = 4" in text, text)
    text = script.run([command, "bench", "--format", "mixed", "--b-format", "nvfp4", "-m", "4", "-n", "4", "-k", "32",
                       "-r", "1", "--no-blas"])
    script.check("mxfp8_e4m3 x nvfp4, M = 4" in text, text)


if __name__ == "__main__":
    script.cases("test_cli_bench_gpu", [a_range_of_k_is_one_table_with_kernels, the_json_has_each_kernel,
                                        what_cannot_be_is_refused])

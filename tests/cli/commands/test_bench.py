#!/usr/bin/env python3
"""blockscale bench: its table, its JSON, its chart, and what it refuses."""
import json
import os
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import script

command = sys.argv[1]
SMALL = [command, "bench", "--m", "24", "--n", "40", "--rounds", "3"]
SVG = "{http://www.w3.org/2000/svg}"


def the_json_is_whole_and_consistent():
    value = json.loads(script.run(SMALL + ["--a-format", "bf16", "--b-format", "mxfp4", "--k-range", "64:192:64",
                                           "--threads", "1", "--json"]))
    asked = [value[key] for key in ("a_format", "b_format", "m", "n", "threads", "rounds")]
    script.check(asked == ["bf16", "mxfp4", 24, 40, 1, 3], value)
    script.check([point["k"] for point in value["points"]] == [64, 128, 192], value)
    for point in value["points"]:
        for name in ("product", "fp32"):
            seconds = point[name]["seconds"]
            flops = 2 * 24 * 40 * point["k"]
            script.check(len(seconds) == 3 and min(seconds) > 0, point)
            script.check(abs(point[name]["best_gflops"] - flops / min(seconds) / 1e9) < 1e-9, point)
            script.check(abs(point[name]["median_gflops"] - flops / sorted(seconds)[1] / 1e9) < 1e-9, point)
        ratio = min(point["fp32"]["seconds"]) / min(point["product"]["seconds"])
        paired = sorted(f / p for f, p in zip(point["fp32"]["seconds"], point["product"]["seconds"]))[1]
        script.check(abs(point["ratio_best"] - ratio) < 1e-9 and abs(point["ratio_paired_median"] - paired) < 1e-9,
                     point)
        script.check(point["a_bytes"] == 24 * point["k"] * 2 and point["b_bytes"] == 40 * point["k"] // 32 * 17, point)
        script.check(point["quantize_a_seconds"] > 0 and point["quantize_b_seconds"] > 0, point)


def every_format_is_measured():
    info = script.run([command, "bench", "--help"])
    formats = ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "mxfp4_block16", "mxint8", "nvfp4",
               "e4m3", "e5m2",
               "bf16", "fp16", "fp32"]
    for name in formats:
        script.check(name in info, f"--help does not list {name}")
        out = script.run([command, "bench", "-f", name, "-m", "5", "-n", "3", "-k", "33", "-r", "1", "--no-blas"])
        script.check(f"{name} x {name}, M = 5, N = 3" in out and "GFLOP/s" in out, out)
        script.check("sgemm best" not in out and "No BLAS library" in out, out)


def a_pipe_gets_no_progress():
    out = script.run([command, "bench", "-m", "8", "-n", "8", "--k-range", "16:32:16", "-r", "1"])
    script.check("\r" not in out and "\033" not in out, out)


def the_chart_is_well_formed():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "chart.svg")
        script.run(SMALL + ["--k-range", "32:320:32", "--plot", path])
        root = xml.etree.ElementTree.parse(path).getroot()
        script.check(root.tag == SVG + "svg" and os.listdir(folder) == ["chart.svg"], os.listdir(folder))
        texts = ["".join(text.itertext()) for text in root.iter(SVG + "text")]
        script.check({"GFLOP/s", "nvfp4 x nvfp4", "fp32 x fp32", "32", "320"} <= set(texts), texts)
        lines = list(root.iter(SVG + "polyline"))
        script.check(len(lines) >= 2 and all(len(line.get("points").split()) == 10 for line in lines), lines)
        width = float(root.get("width"))
        for line in lines:
            xs = [float(point.split(",")[0]) for point in line.get("points").split()]
            script.check(xs == sorted(xs) and 0 < xs[0] and xs[-1] < width, xs)


def built(name):
    path = os.path.join(sys.argv[2] if len(sys.argv) > 2 else "", name)
    if not os.path.exists(path):
        raise script.Skip(f"{name} is not built here")
    return os.path.abspath(path)


def with_blas(library, name, options):
    """bench where the only BLAS library is `library`, under that name."""
    with tempfile.TemporaryDirectory() as folder:
        for other in ("libopenblas.so.0", "libmkl_rt.so.2", "libblis.so.4", "libblas.so.3", "libcblas.so.3"):
            shutil.copy(built("failing_calls.so") if other != name else library, os.path.join(folder, other))
        return script.run(SMALL + ["-k", "64"] + options, env={**os.environ, "LD_LIBRARY_PATH": folder})


def the_reference_blas_is_named_and_not_compared_with():
    text = with_blas(built("reference_blas.so"), "libblas.so.3", [])
    script.check("No BLAS library to compare with: libblas.so.3 is netlib's reference" in text
                 and "sgemm best" not in text, text)
    value = json.loads(with_blas(built("reference_blas.so"), "libblas.so.3", ["--json"]))
    script.check(value["peer"] is None and value["reference_blas"] == "libblas.so.3"
                 and "peer" not in value["points"][0], value)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "chart.svg")
        with_blas(built("reference_blas.so"), "libblas.so.3", ["--plot", path])
        with open(path, encoding="utf-8") as file:
            script.check("sgemm" not in file.read(), "the chart draws the reference")


def a_library_with_a_name_is_compared_with():
    """However slow it is."""
    text = with_blas(built("named_blas.so"), "libopenblas.so.0", [])
    script.check("cblas_sgemm of libopenblas.so.0 (Core)" in text and "sgemm best" in text and "reference" not in text,
                 text)


def products_that_had_no_processor_are_told():
    line = [built("blockscale_faulty"), "bench", "-m", "8", "-n", "8", "-k", "32", "-r", "2", "--no-blas"]
    slow = {**os.environ, "FAULT": "no processor"}
    text, value = script.run(line, env=slow), json.loads(script.run(line + ["--json"], env=slow))
    script.check(re.search(r"^For \d+ % of their time no processor worked on the products", text, re.M), text)
    script.check(0.5 < value["waited_share"] <= 1, value["waited_share"])


def a_failed_run_leaves_no_chart():
    with tempfile.TemporaryDirectory() as folder:
        script.run(SMALL + ["--k-range", "1:1000000", "--plot", os.path.join(folder, "chart.svg")], expect=2)
        script.check(os.listdir(folder) == [], os.listdir(folder))
        script.run(SMALL + ["-k", "32", "--plot", os.path.join(folder, "no", "chart.svg")], expect=3)


def wrong_usage_is_refused():
    for options in (["--k-range", "512:128:64"], ["--k-range", "0:128:64"], ["--k-range", "1:2:0"],
                    ["--k-range", "1:2:3:4"],
                    ["--k-range", "a"], ["--k-range", "1:257:1"], ["--k-range", "1:99999999999999999999"], ["--k", "0"],
                    ["--k", "64", "--k-range", "64:128:64"], ["--m", "-1"], ["--m", "1.5"], ["--n", "0"],
                    ["--rounds", "0"],
                    ["--rounds", "1001"], ["--format", "mxfp5"], ["--format"], ["--plot", ""], ["surplus"],
                    ["--threads", "0.5"]):
        script.run([command, "bench"] + options, expect=2)


script.cases("test_cli_bench", [the_json_is_whole_and_consistent, every_format_is_measured, a_pipe_gets_no_progress,
                                the_chart_is_well_formed, the_reference_blas_is_named_and_not_compared_with,
                                a_library_with_a_name_is_compared_with, products_that_had_no_processor_are_told,
                                a_failed_run_leaves_no_chart, wrong_usage_is_refused])

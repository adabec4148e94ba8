#!/usr/bin/env python3
"""What the command prints for people: lines of at most 100 columns, a first page of info, and all of it with
--verbose."""
import functools
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import checkpoint_file as cf
import script
from script import check

command = os.path.abspath(sys.argv[1])
simulated = [os.path.abspath(path)
             for path in sys.argv[2:]]          # a libcuda that needs no GPU, where the build has one
COLUMNS = 100
VERBS = ["matmul", "quantize", "dequantize", "inspect", "convert", "layout", "verify", "bench", "demo", "info",
         "completion",
         "manual"]


def lines(arguments, folder, **options):
    """What it prints on standard output, held to the width of a page."""
    out = subprocess.run([command, *arguments], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                         check=False,
                         **options)
    check(out.returncode == 0, f"{' '.join(arguments)}: exit status {out.returncode}: {out.stderr}")
    for line in out.stdout.splitlines():
        check(len(line) <= COLUMNS, f"{' '.join(arguments)}: {len(line)} columns: {line}")
    check(out.stdout, f"{' '.join(arguments)}: prints nothing")
    return out.stdout.splitlines()


def in_folder(function):
    return script.in_folder(function)


@functools.lru_cache
def gpu_environment(device):
    """That of a command that finds this GPU, simulated; info says that it does."""
    if not simulated:
        raise script.Skip("this build has no cudasim")
    environment = {**os.environ, "BLOCKSCALE_LIBCUDA": simulated[0], "CUDASIM_DEVICE": device, "CUDASIM_QUIET": "1"}
    printed = lines(["info"], ".", env=environment)
    check(len(printed) <= 25, printed)
    if not re.search(r"^gpu +0: .*: ready$", "\n".join(printed), re.M):
        raise script.Skip(f"this build runs no kernels on {device}")
    return environment


def kernel_line(printed, label):
    found = [i for i, line in enumerate(printed) if line.split()[:1] == [label]]
    check(len(found) == 1, f"{label}: {printed}")
    return printed[found[0]], printed[found[0]:]


@in_folder
def products(folder):
    for words in (["random:256x512", "random:128x512", "--a-format", "mxfp8", "--b-format", "nvfp4"],
                  ["random:1x4096", "random:64x4096", "--a-format", "bf16", "--b-format", "mxfp4", "--d-type", "bf16"],
                  ["random:70x96", "random:33x96", "--format", "mxfp4", "--d-type", "mxfp8", "--cpu", "none"]):
        short, _ = kernel_line(lines(["matmul", *words, "-o", "D"], folder), "kernel")
        whole = json.loads(script.run([command, "matmul", *words, "-o", "D", "--json"], cwd=folder))["kernel"]
        _, verbose = kernel_line(lines(["matmul", *words, "-o", "D", "--verbose"], folder), "kernel")
        name = short.split()[1].strip(",:")
        check(f"kernel {name}," in whole, f"{short!r} names another kernel than {whole!r}")
        check(": " in short and short.split(": ")[-1] in whole, f"{short!r} gives another reason than {whole!r}")
        check(" ".join(" ".join(verbose).split()).startswith("kernel " + whole),
              f"--verbose says less than {whole!r}: {verbose}")


@in_folder
def measurements(folder):
    for words in (["--format", "mxfp4"], ["--a-format", "bf16", "--b-format", "mxfp6"],
                  ["--format", "mxfp8", "--no-blas"]):
        small = [*words, "-m", "8", "-n", "16", "--k-range", "64:128:64", "-r", "1"]
        printed = lines(["bench", *small], folder)
        value = json.loads(script.run([command, "bench", *small, "--json"]))["points"][0]
        verbose = " ".join(" ".join(lines(["bench", *small, "-v"], folder)).split())
        for label, key in (("product", "product"), ("fp32", "fp32")):
            short, _ = kernel_line(printed, label)
            check(f"kernel {short.split()[1].strip(',:')}," in value[key]["plan"], short)
            check(f"{label} {value[key]['plan']}" in verbose, verbose)
        explained = " ".join(" ".join(lines(["bench", *words[:4], "-m", "8", "-n", "16", "-k", "64", "--explain"],
                                            folder)).split())
        check(f"plan {value['product']['plan']}" in explained, explained)
    lines(["demo"], folder)
    lines(["verify", "--quick", "--pair", "mxfp4:nvfp4"], folder)


@in_folder
def products_on_a_gpu(folder):
    """Kernels of GPUs have longer names, and their plans more to say."""
    for device, pairs in (("sm_90a", (("bf16", "nvfp4", ""), ("mxfp8", "mxfp8", "fast"))),
                          ("sm_100a", (("nvfp4", "nvfp4", ""),))):
        environment = gpu_environment(device)
        for a, b, compute in pairs:
            words = ["matmul", "random:4x256", "random:64x256", "--a-format", a, "--b-format", b, "-o", "D", "--device",
                     "cuda", *(["--compute", compute] if compute else [])]
            short, _ = kernel_line(lines(words, folder, env=environment), "kernel")
            whole = json.loads(script.run([command, *words, "--json"], cwd=folder, env=environment))["kernel"]
            check(f"kernel {short.split()[1].strip(',:')}," in whole and short.split()[1].startswith("cuda_"), short)
            check(": " in short and short.split(": ")[-1] in whole, f"{short!r} gives another reason than {whole!r}")
            lines(["bench", "--device", "cuda", "--explain", "-m", "4", "-n", "64", "-k", "256", "--a-format", a,
                   "--b-format", b, *(["--compute", compute] if compute else [])], folder, env=environment)


@in_folder
def rows_that_int8_holds(folder):
    """A product that Hopper multiplies as int8: bench counts the rows of both operands that fit."""
    environment = gpu_environment("sm_90a")
    words = ["bench", "--device", "cuda", "--explain", "-m", "1024", "-n", "1024", "-k", "256", "-f", "mxfp4"]
    printed = " ".join(" ".join(lines(words, folder, env=environment)).split())
    check("rows A: 103 of 1024 rows fit int8" in printed and "rows B: 1024 of 1024 rows fit int8" in printed, printed)


@in_folder
def the_first_page_of_info(folder):
    printed = lines(["info"], folder)
    check(len(printed) <= 25, f"{len(printed)} lines: {printed}")
    kernels = json.loads(script.run([command, "info", "--json"]))["kernels"]
    of_cpus = [kernel for kernel in kernels if not kernel["name"].startswith(("cuda_", "hip_"))]
    here = sum(kernel["pairs_served_here"] > 0 for kernel in of_cpus)
    check(any(line.startswith("kernels") and f" {here} of " in line for line in printed), printed)
    variables = {"BLOCKSCALE_CPU": "avx2", "OMP_NUM_THREADS": "2", "BLOCKSCALE_LIBCUDA": "/nowhere/libcuda.so.1"}
    printed = lines(["info"], folder, env={**os.environ, **variables})
    check(len(printed) <= 25 and all(any(line.startswith(name) for line in printed) for name in variables), printed)
    verbose = lines(["info", "--verbose"], folder)
    check(sum(line.startswith("kernel ") for line in verbose) == len(kernels), "a line for each kernel")


def help_fits_a_page():
    for verb in VERBS:
        printed = lines([verb, "--help"], ".")
        check(len(printed) <= 100, f"{verb} --help: {len(printed)} lines")
    text = "\n".join(lines(["verify", "--help"], "."))
    check("info --verbose" in text and "_avx2" not in text and "cuda_wgmma" not in text, text)
    lines(["help"], ".")


@in_folder
def files(folder):
    lines(["quantize", "random:64x1024", "-o", "W", "--format", "nvfp4"], folder)
    lines(["quantize", "random:64x1024", "-o", "W.safetensors", "--format", "mxfp6"], folder)
    lines(["inspect", "W.safetensors"], folder)
    lines(["dequantize", "W.json", "-o", "R.npy"], folder)
    for layout in ("linear", "128x4", "8x4", "tiles:32x8", "cdna4_16", "deepgemm", "gguf_nvfp4"):
        lines(["layout", layout], folder)
        lines(["layout", layout, "--rows", "5000", "--cols", "129"], folder)


@in_folder
def models(folder):
    """Names as long as those of real models."""
    names = [f"model.language_model.layers.{i}.{part}" for i in (0, 10)
             for part in ("self_attn.q_proj", "self_attn.k_proj", "mlp.shared_expert.gate_proj",
                          "mlp.experts.113.down_proj")]
    os.mkdir(os.path.join(folder, "hf"))
    cf.write(os.path.join(folder, "hf", "model.safetensors"),
             {name + ".weight": ("BF16", [64, 256], cf.random_bf16(64, 256, i)) for i, name in enumerate(names)})
    with open(os.path.join(folder, "hf", "config.json"), "w", encoding="utf-8") as file:
        json.dump({"architectures": ["X"]}, file)
    for format_name, convention in (("nvfp4", "modelopt"), ("mxfp4", "compressed_tensors"), ("mxfp8", "modelopt")):
        out = format_name
        printed = lines(["quantize", "hf", "-o", out, "--format", format_name, "--convention", convention], folder)
        check(all(any(name in line for line in printed) for name in names), printed)
        for words in ([out], [out, "--against", "hf"], [out, "--tensors"]):
            printed = lines(["inspect", *words], folder)
            check(all(any(name in line for line in printed) for name in names), printed)
        lines(["dequantize", out, "-o", out + "-back"], folder)
    lines(["convert", "nvfp4", "-o", "converted", "--convention", "compressed_tensors"], folder)


script.cases("test_cli_page_width", [products, measurements, products_on_a_gpu, rows_that_int8_holds,
                                     the_first_page_of_info, help_fits_a_page, files, models])

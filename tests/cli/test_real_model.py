#!/usr/bin/env python3
"""A model's own checkpoint through quantize, inspect, matmul and dequantize, in every spelling: BLOCKSCALE_MODEL names it (a folder, a
.safetensors file or an index).  Prints what each cost; skipped where it names none."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import script
from script import check

command = os.path.abspath(sys.argv[1])
MODEL = os.environ.get("BLOCKSCALE_MODEL", "")
SPELLINGS = [("nvfp4", "modelopt", ""), ("nvfp4", "modelopt", "four_over_six"), ("nvfp4", "compressed_tensors", ""), ("nvfp4", "gguf", ""),
             ("mxfp4", "modelopt", ""), ("mxfp4", "compressed_tensors", ""), ("mxfp4", "gpt_oss", ""), ("mxfp4", "gguf", ""),
             ("mxfp6_e2m3", "modelopt", ""), ("mxfp8", "modelopt", ""), ("mxfp8", "compressed_tensors", ""), ("e4m3", "modelopt", "")]


def run(folder, *arguments):
    return json.loads(script.run([command, *arguments, "--json"], cwd=folder))


def one(folder, form, convention, recipe):
    out = "q.gguf" if convention == "gguf" else "q.safetensors"
    said = run(folder, "quantize", MODEL, "-o", out, "-f", form, "--convention", convention, *(["--recipe", recipe] if recipe else []))
    chosen = {weight["name"]: weight for weight in said["weights"]}
    seen = {w["name"]: w for w in run(folder, "inspect", out, "--against", MODEL)["weights"] if w["name"] in chosen}
    check(set(seen) == set(chosen), f"{convention} {form}: inspect does not see {sorted(set(chosen) - set(seen))[:3]}")
    for name, weight in chosen.items():
        check(abs(seen[name]["snr_db"] - weight["snr_db"]) < 1e-3, f"{name}: {seen[name]['snr_db']} dB, not {weight['snr_db']}")
    run(folder, "dequantize", out, "-o", "d.safetensors", "--type", "fp32")
    back = {w["name"]: w for w in run(folder, "inspect", "d.safetensors", "--against", MODEL)["weights"] if w["name"] in chosen}
    for name, weight in chosen.items():
        check(abs(back[name]["snr_db"] - weight["snr_db"]) < 1e-3, f"{name}: dequantized it has {back[name]['snr_db']} dB, not {weight['snr_db']}")
    largest = max(chosen.values(), key=lambda weight: weight["rows"] * weight["columns"])
    product = run(folder, "matmul", f"random:8x{largest['columns']}", f"{out}:{largest['name']}", "-o", "D.npy", "--a-format", "bf16", "--check")
    check(product["check"]["sums_beyond_bound"] == 0, product)
    worst = min(chosen.values(), key=lambda weight: weight["snr_db"])
    print(f"  {form:12} {convention:20} {recipe:14} {len(chosen):5} weights, {said['bytes'] / said['bytes_before']:.3f} of the bytes, {said['snr_db']:.2f} dB, "
          f"worst {worst['snr_db']:.2f} dB ({worst['name']})")


def every_spelling():
    global MODEL
    if not MODEL:
        raise script.Skip("BLOCKSCALE_MODEL names no checkpoint")
    MODEL = os.path.abspath(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        for form, convention, recipe in SPELLINGS:
            one(folder, form, convention, recipe)


script.cases("test_cli_real_model", [every_spelling])

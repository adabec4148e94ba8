#!/usr/bin/env python3
"""gpt-oss: experts become blocks, attention stays, config.json says so, and dequantize gives transformers' tensors
again.

transformers keeps an expert's matrix as [K, N] and multiplies x by it; its blocks lie along K: [experts, N, K / 32,
16]."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import checkpoint_file as cf
import script
from script import check

command = os.path.abspath(sys.argv[1])
EXPERTS, HIDDEN, INNER = 3, 64, 32
LAYER = "model.layers.0."
# The second is square: no shape tells how it lies.
SHAPES = {LAYER + "mlp.experts.gate_up_proj": (HIDDEN, 2 * INNER), LAYER + "mlp.experts.down_proj": (INNER, HIDDEN)}
SQUARE = LAYER + "mlp.experts.gate_up_proj"


def run(arguments, folder, expect=0, words=""):
    return script.run_in(folder, [command, *arguments], expect, words).stdout


def model():
    tensors = {LAYER + "self_attn.q_proj.weight": ("BF16", [8, HIDDEN], cf.random_bf16(8, HIDDEN, 1)),
               LAYER + "self_attn.sinks": ("BF16", [8], cf.random_bf16(1, 8, 2)),
               LAYER + "mlp.router.weight": ("BF16", [EXPERTS, HIDDEN], cf.random_bf16(EXPERTS, HIDDEN, 3)),
               LAYER + "mlp.conv.weight": ("BF16", [4, 32, 32], cf.random_bf16(4, 1024, 4)),
               "model.embed_tokens.weight": ("BF16", [8, HIDDEN], cf.random_bf16(8, HIDDEN, 5))}
    for i, (name, (k, n)) in enumerate(SHAPES.items()):
        tensors[name] = ("BF16", [EXPERTS, k, n], cf.random_bf16(EXPERTS * k, n, 6 + i))
        tensors[name + "_bias"] = ("BF16", [EXPERTS, n], cf.random_bf16(EXPERTS, n, 8 + i))
    return tensors


def make_model(folder):
    os.mkdir(os.path.join(folder, "hf"))
    cf.write(os.path.join(folder, "hf", "model.safetensors"), model())
    with open(os.path.join(folder, "hf", "config.json"), "w", encoding="utf-8") as file:
        json.dump({"model_type": "gpt_oss"}, file)


def in_folder(function):
    return script.in_folder(function, make_model)


def contents(folder, out):
    return cf.read(os.path.join(folder, out, "model.safetensors"))


def decoded(tensors, name):
    """Numbers of all experts as [experts, K, N], from the blocks' own definition."""
    k, n = SHAPES[name]
    kind, shape, blocks = tensors[name + "_blocks"]
    check((kind, shape) == ("U8", [EXPERTS, n, k // 32, 16]), (kind, shape))
    kind, shape, scales = tensors[name + "_scales"]
    check((kind, shape) == ("U8", [EXPERTS, n, k // 32]), (kind, shape))
    rows = [cf.e2m1(code) * cf.e8m0(scales[i // 32]) for i, code in enumerate(cf.nibbles(blocks))]
    return [rows[(e * n + j) * k + i] for e in range(EXPERTS) for i in range(k) for j in range(n)]


@in_folder
def experts_become_blocks(folder):
    said = json.loads(run(["quantize", "hf", "-o", "q", "-f", "mxfp4", "--convention", "gpt_oss", "--json"], folder))
    check(sorted(w["name"] for w in said["weights"]) == sorted(SHAPES)
          and all(w["batch"] == EXPERTS for w in said["weights"]), said)
    tensors = contents(folder, "q")
    check(set(tensors) == {name for name in model() if name not in SHAPES}
          | {name + end for name in SHAPES for end in ("_blocks", "_scales")}, sorted(tensors))
    for name, tensor in model().items():
        check(name in SHAPES or tensors[name] == tensor, f"{name} was not passed on as it is")
    for name in SHAPES:
        got = cf.signal_to_noise(decoded(tensors, name), cf.from_bf16(model()[name][2]))
        check(got > 17.5 and abs(got - [w["snr_db"] for w in said["weights"] if w["name"] == name][0]) < 1e-4,
              f"{name}: {got}")
    with open(os.path.join(folder, "q", "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    left = [LAYER + "self_attn.q_proj", LAYER + "mlp.router", "model.embed_tokens", "lm_head"]
    check(config["model_type"] == "gpt_oss" and config["quantization_config"]["quant_method"] == "mxfp4", config)
    check(sorted(config["quantization_config"]["modules_to_not_convert"]) == sorted(left), config)


@in_folder
def numbers_again(folder):
    run(["quantize", "hf", "-o", "q", "-f", "mxfp4", "--convention", "gpt_oss"], folder)
    run(["dequantize", "q", "-o", "d"], folder)
    back = contents(folder, "d")
    check(set(back) == set(model()), set(back) ^ set(model()))
    for name, (kind, shape, content) in model().items():
        want = decoded(contents(folder, "q"), name) if name in SHAPES else cf.from_bf16(content)
        check(back[name][:2] == (kind, shape) and cf.from_bf16(back[name][2]) == want, name)
    seen = json.loads(run(["inspect", "q", "--against", "hf", "--match", "*experts*_proj", "--json"],
                          folder))["weights"]
    for weight in seen:
        want = cf.signal_to_noise(decoded(contents(folder, "q"), weight["name"]),
                                  cf.from_bf16(model()[weight["name"]][2]))
        check(abs(weight["snr_db"] - want) < 1e-4, f"{weight}: {want}")
    check(sorted(weight["name"] for weight in seen) == sorted(SHAPES), seen)
    with open(os.path.join(folder, "d", "config.json"), encoding="utf-8") as file:
        check(json.load(file) == {"model_type": "gpt_oss"}, "config.json")


@in_folder
def openai_keeps_rows(folder):
    """The original's names have a dot, and its numbers the axes of the blocks."""
    tensors = contents(folder, "hf")
    run(["quantize", "hf", "-o", "q", "-f", "mxfp4", "--convention", "gpt_oss"], folder)
    quantized = contents(folder, "q")
    os.mkdir(os.path.join(folder, "o"))
    cf.write(os.path.join(folder, "o", "model.safetensors"),
             {"block.0.mlp.mlp1_weight." + end: quantized[SQUARE + "_" + end] for end in ("blocks", "scales")})
    run(["dequantize", "o", "-o", "d"], folder)
    kind, shape, content = contents(folder, "d")["block.0.mlp.mlp1_weight"]
    k, n = SHAPES[SQUARE]
    numbers, want = cf.from_bf16(content), decoded(quantized, SQUARE)
    check((kind, shape) == ("BF16", [EXPERTS, n, k]), shape)
    check(all(numbers[(e * n + j) * k + i] == want[(e * k + i) * n + j] for e in range(EXPERTS) for i in range(k)
              for j in range(n)), "rows stay")
    check(tensors[SQUARE][1] == [EXPERTS, k, n], "what this test is about")


@in_folder
def nothing_but_experts(folder):
    run(["quantize", "hf", "-o", "q", "-f", "mxfp4", "--convention", "gpt_oss", "--include", "*q_proj,*conv*"], folder,
        3, "experts alone")
    run(["quantize", "hf", "-o", "q", "-f", "mxfp4", "--convention", "gpt_oss", "--include", "*.down_proj"], folder)
    check(SQUARE in contents(folder, "q") and LAYER + "mlp.experts.down_proj_blocks" in contents(folder, "q"),
          "chosen by name")
    cf.write(os.path.join(folder, "hf", "model.safetensors"),
             {"experts.gate_up_proj": ("BF16", [2, 20, 32], struct.pack("<1280H", *range(1280)))})
    run(["quantize", "hf", "-o", "r", "-f", "mxfp4", "--convention", "gpt_oss"], folder, 3,
        "rows of 20 numbers are not whole blocks of 32")


script.cases("test_cli_gpt_oss", [experts_become_blocks, numbers_again, openai_keeps_rows, nothing_but_experts])

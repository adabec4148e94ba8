#!/usr/bin/env python3
"""Tensor scales of NVFP4 weights that serving programs fuse: shared when a checkpoint is quantized, merged when a file
has them apart.

The measure is such a program's own reading: of all members' tensor scales it keeps the largest, and rescales
nothing."""
import json
import math
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import checkpoint_file as cf
import script
from script import check

command = os.path.abspath(sys.argv[1])
ROWS, COLUMNS = 16, 64
GROUPS = {"q_proj+k_proj+v_proj": [["m.0.self_attn.q_proj", "m.0.self_attn.k_proj", "m.0.self_attn.v_proj"]],
          "gate_proj+up_proj": [["m.0.mlp.gate_proj", "m.0.mlp.up_proj"]],
          "w1+w3": [["m.1.experts.0.w1", "m.1.experts.0.w3"], ["m.1.experts.1.w1", "m.1.experts.1.w3"]],
          "query+key+value": [["encoder.0.attention.self.query", "encoder.0.attention.self.key",
                               "encoder.0.attention.self.value"]]}
# Endings that look like members and are none; a member whose partners are not there; one with other columns.
ALONE = ["m.0.mlp.down_proj", "m.0.xq_proj", "m.2.self_attn.q_proj", "m.1.experts.0.w2"]


def run(arguments, folder, expect=0, words=""):
    return script.run_in(folder, [command, *arguments], expect, words).stdout


def all_groups():
    return [members for groups in GROUPS.values() for members in groups]


def model():
    """Members in two types and magnitudes far apart: 1, 1/64, 1/4096."""
    tensors = {}
    for members in all_groups():
        for i, name in enumerate(members):
            content = cf.random_bf16(ROWS, COLUMNS, len(tensors), 0.5 / 64 ** i)
            if i == 1:
                content = b"".join(struct.pack("<f", x) for x in cf.from_bf16(content))
            tensors[name + ".weight"] = ("F32" if i == 1 else "BF16", [ROWS, COLUMNS], content)
    for name in ALONE:
        tensors[name + ".weight"] = ("BF16", [ROWS, COLUMNS], cf.random_bf16(ROWS, COLUMNS, len(tensors)))
    tensors["m.2.self_attn.k_proj.weight"] = ("BF16", [ROWS, 2 * COLUMNS], cf.random_bf16(ROWS, 2 * COLUMNS, 99, 4))
    return tensors


def numbers_of(tensor):
    kind, _, content = tensor
    return cf.from_bf16(content) if kind == "BF16" else [x for x, in struct.iter_unpack("<f", content)]


def write_shards(folder):
    """The members of every group lie in different files."""
    os.mkdir(os.path.join(folder, "hf"))
    shards, places = [{}, {}, {}], {}
    for i, (name, tensor) in enumerate(sorted(model().items(), key=lambda item: item[1][0], reverse=True)):
        shards[i % 3][name] = tensor
        places[name] = f"model-{i % 3}.safetensors"
    for i, shard in enumerate(shards):
        cf.write(os.path.join(folder, "hf", f"model-{i}.safetensors"), shard)
    with open(os.path.join(folder, "hf", "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"weight_map": places}, file)


def in_folder(function):
    return script.in_folder(function, write_shards)


def contents(folder, out):
    return cf.read(os.path.join(folder, out))


def factor_of(tensors, name):
    """What numbers are multiplied by: ModelOpt's scale, or one over compressed-tensors'."""
    if name + ".weight_scale_2" in tensors:
        return struct.unpack("<f", tensors[name + ".weight_scale_2"][2])[0]
    return 1 / struct.unpack("<f", tensors[name + ".weight_global_scale"][2])[0]


def fused_noise(tensors, members):
    """Signal to noise of each member as a program reads it that keeps the largest tensor scale of all."""
    factor = max(factor_of(tensors, name) for name in members)
    result = []
    for name in members:
        codes = tensors.get(name + ".weight_packed", tensors.get(name + ".weight"))[2]
        scales = tensors[name + ".weight_scale"][2]
        got = [cf.e2m1(code) * cf.e4m3(scales[i // 16]) * factor for i, code in enumerate(cf.nibbles(codes))]
        result.append(cf.signal_to_noise(got, numbers_of(model()[name + ".weight"])))
    return result


def float32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def described(groups):
    return sorted((group["members"], group["groups"]) for group in groups)


USUAL = sorted((rule, len(groups)) for rule, groups in GROUPS.items())


@in_folder
def shared_by_default(folder):
    for convention in ("modelopt", "compressed_tensors"):
        said = json.loads(run(["quantize", "hf", "-o", "q.safetensors", "-f", "nvfp4", "--convention", convention,
                               "--json"], folder))
        check(described(said["shared_tensor_scales"]) == USUAL, said["shared_tensor_scales"])
        tensors = contents(folder, "q.safetensors")
        ending = ".weight_scale_2" if convention == "modelopt" else ".weight_global_scale"
        for members in all_groups():
            largest = max(abs(x) for name in members for x in numbers_of(model()[name + ".weight"]))
            want = float32(largest / 2688 if convention == "modelopt" else 2688 / largest)
            check(all(struct.unpack("<f", tensors[name + ending][2])[0] == want for name in members),
                  f"{members}: not {want}")
            # The third is 4096 times smaller: its block scales are among the subnormal ones.
            check(all(got > least for got, least in zip(fused_noise(tensors, members), (19, 19, 9))),
                  fused_noise(tensors, members))
        for name in ALONE + ["m.2.self_attn.k_proj"]:
            largest = max(abs(x) for x in numbers_of(model()[name + ".weight"]))
            check(struct.unpack("<f", tensors[name + ending][2])[0]
                  == float32(largest / 2688 if convention == "modelopt" else 2688 / largest),
                  f"{name} has not its own tensor scale")
    text = run(["quantize", "hf", "-o", "q.safetensors", "-f", "nvfp4"], folder)
    check("tensor scales shared: 1 of q_proj+k_proj+v_proj, 1 of gate_proj+up_proj, 2 of w1+w3, 1 of query+key+value"
          in text, text)


@in_folder
def shared_by_e4m3(folder):
    """So that vLLM need not quantize the members anew; for compressed-tensors' readers, bf16 numbers."""
    for convention in ("modelopt", "compressed_tensors"):
        said = json.loads(run(["quantize", "hf", "-o", "q.safetensors", "-f", "e4m3", "--convention", convention,
                               "--json"], folder))
        check(described(said["shared_tensor_scales"]) == USUAL, said["shared_tensor_scales"])
        tensors = contents(folder, "q.safetensors")
        for members in all_groups() + [[name] for name in ALONE]:
            exact = float32(max(abs(x) for name in members for x in numbers_of(model()[name + ".weight"])) / 448)
            for name in members:
                scale, = struct.unpack("<f", tensors[name + ".weight_scale"][2])
                short = convention == "compressed_tensors"
                check(exact <= scale < exact * (1 + 2 ** -7) and tensors[name + ".weight_scale"][2][:2] == b"\0\0"
                      if short else scale == exact,
                      f"{name}: {scale}, not {exact}")
                got = [cf.e4m3(code) * scale for code in tensors[name + ".weight"][2]]
                check(cf.signal_to_noise(got, numbers_of(model()[name + ".weight"])) > (22 if name == members[-1]
                                                                                        else 28), name)


@in_folder
def shared_as_asked(folder):
    def groups(*more):
        said = json.loads(run(["quantize", "hf", "-o", "q.safetensors", "-f", "nvfp4", "--json", *more], folder))
        return described(said["shared_tensor_scales"])
    check(groups("--share-tensor-scales", "default") == USUAL, "default")
    check(groups("--share-tensor-scales", "q_proj+v_proj,0.w1+0.w2+0.w3") == [("0.w1+0.w2+0.w3", 1),
                                                                              ("q_proj+v_proj", 1)], "own groups")
    check(groups("--share-tensor-scales", "default", "--exclude",
                 "*k_proj,*w3,*key") == [("gate_proj+up_proj", 1), ("q_proj+k_proj+v_proj", 1),
                                                                                         ("query+key+value", 1)],
          "of what is quantized")
    check(groups("--share-tensor-scales", "none") == [], "none")
    tensors = contents(folder, "q.safetensors")
    check(all(len({factor_of(tensors, name) for name in members}) == len(members) for members in all_groups()),
          "each its own")
    check(fused_noise(tensors, GROUPS["q_proj+k_proj+v_proj"][0])[2] < 0, "what this test measures")
    said = json.loads(run(["quantize", "hf", "-o", "q.safetensors", "-f", "mxfp4", "--json"], folder))
    check(said["shared_tensor_scales"] == [], "no tensor scale")
    for wrong in ("q_proj", "q_proj+", "a+b,c", "+", "a++b"):
        run(["quantize", "hf", "-o", "x.safetensors", "-f", "nvfp4", "--share-tensor-scales", wrong], folder, 2,
            "is no group")
    run(["quantize", "random:2x32", "-o", "x.safetensors", "-f", "nvfp4", "--share-tensor-scales", "none"], folder, 2,
        "are for checkpoints")
    check(not os.path.exists(os.path.join(folder, "x.safetensors")), "an output was left")


@in_folder
def shared_by_presets_and_of_zeros(folder):
    """A preset's own rule for the tensor scale, of the group's numbers; members of zeros and NaN do not count."""
    for preset in ("modelopt", "torchao", "compressed_tensors"):
        run(["quantize", "hf", "-o", "q.safetensors", "-f", "nvfp4", "--preset", preset], folder)
        tensors = contents(folder, "q.safetensors")
        for members in all_groups():
            check(len({factor_of(tensors, name) for name in members}) == 1 and fused_noise(tensors, members)[1] > 19,
                  f"{preset} {members}")
    content = cf.random_bf16(4, 32, 1)
    with_nan = b"\xc0\x7f" + b"\x80\xff" + content[4:]
    for others in (bytes(256), with_nan):
        cf.write(os.path.join(folder, "z.safetensors"),
                 {"a.up_proj.weight": ("BF16", [4, 32], others), "a.gate_proj.weight": ("BF16", [4, 32], content)})
        run(["quantize", "z.safetensors", "-o", "q.safetensors", "-f", "nvfp4"], folder)
        tensors = contents(folder, "q.safetensors")
        want = float32(max(abs(x) for x in cf.from_bf16(content + others) if math.isfinite(x)) / 2688)
        check(factor_of(tensors, "a.up_proj") == want == factor_of(tensors, "a.gate_proj"), "the largest finite number")
    cf.write(os.path.join(folder, "z.safetensors"),
             {"a.up_proj.weight": ("BF16", [4, 32], bytes(256)), "a.gate_proj.weight": ("BF16", [4, 32], bytes(256))})
    run(["quantize", "z.safetensors", "-o", "q.safetensors", "-f", "nvfp4"], folder)
    check(factor_of(contents(folder, "q.safetensors"), "a.up_proj") == 1, "of zeros alone")


def nearest_e4m3(x):
    """To nearest even, 0 <= x <= 448."""
    below = max(code for code in range(127) if cf.e4m3(code) <= x)
    if below == 126:
        return below
    low, high = x - cf.e4m3(below), cf.e4m3(below + 1) - x
    return below if low < high or (low == high and below % 2 == 0) else below + 1


@in_folder
def merged_when_converted(folder):
    run(["quantize", "hf", "-o", "apart.safetensors", "-f", "nvfp4", "--share-tensor-scales", "none"], folder)
    before = contents(folder, "apart.safetensors")
    text = run(["convert", "apart.safetensors", "-o", "same.safetensors"], folder)
    check("tensor scales differ in 1 of q_proj+k_proj+v_proj" in text
          and "--merge-tensor-scales default merges them" in text, text)
    check(contents(folder, "same.safetensors") == before, "nothing is merged unless asked")
    text = run(["inspect", "apart.safetensors"], folder)
    check("tensor scales differ in 1 of q_proj+k_proj+v_proj" in text, text)
    check(described(json.loads(run(["inspect", "apart.safetensors", "--json"], folder))["different_tensor_scales"])
          == USUAL, "inspect")
    for convention in ("modelopt", "compressed_tensors"):
        said = json.loads(run(["convert", "apart.safetensors", "-o", "m.safetensors", "--convention", convention,
                               "--merge-tensor-scales", "default",
                               "--json"], folder))
        check(described(said["merged_tensor_scales"]) == USUAL, said)
        tensors, rounded, flushed, worst, scales = contents(folder, "m.safetensors"), 0, 0, 0.0, 0
        for members in all_groups():
            largest = max(factor_of(before, name) for name in members)
            check(all(abs(factor_of(tensors, name) - largest) <= largest * 2 ** -23 for name in members), members)
            check(fused_noise(tensors, members)[1] > 18, fused_noise(tensors, members))
            for name in members:
                check(tensors.get(name + ".weight_packed",
                                  tensors.get(name + ".weight"))[2] == before[name + ".weight"][2], f"{name}: codes")
                was, now = before[name + ".weight_scale"][2], tensors[name + ".weight_scale"][2]
                exact = [cf.e4m3(code) * factor_of(before, name) / largest for code in was]
                check(list(now) == [nearest_e4m3(x) for x in exact], f"{name}: block scales")
                scales += len(was)
                rounded += sum(cf.e4m3(y) != x for x, y in zip(exact, now))
                flushed += sum(y == 0 < x for x, y in zip(exact, now))
                worst = max([worst] + [abs(cf.e4m3(y) - x) / x for x, y in zip(exact, now) if x > 0])
        check((said["merged_scales"], said["rounded_scales"], said["flushed_scales"]) == (scales, rounded, flushed),
              said)
        check(abs(said["worst_error"] - worst) < 1e-12, said)
    text = run(["convert", "m.safetensors", "-o", "again.safetensors", "--merge-tensor-scales", "default"], folder)
    check("tensor scales" not in text.replace("tensor scales became", ""), "merged ones have nothing to merge")
    check("tensor scales differ" not in run(["inspect", "m.safetensors"], folder), "nor has inspect anything to say")
    text = run(["convert", "apart.safetensors", "-o", "m.safetensors", "--merge-tensor-scales", "gate_proj+up_proj"],
               folder)
    check("tensor scales merged: 1 of gate_proj+up_proj; of 128 block scales of 2 weights" in text, text)


@in_folder
def merged_from_and_into_gguf(folder):
    run(["quantize", "hf", "-o", "a.gguf", "-f", "nvfp4", "--share-tensor-scales", "none"], folder)
    run(["convert", "a.gguf", "-o", "apart.safetensors"], folder)
    run(["convert", "apart.safetensors", "-o", "want.safetensors", "--merge-tensor-scales", "default"], folder)
    for steps in ([("a.gguf", "x.safetensors", True)],
                  [("apart.safetensors", "x.gguf", True), ("x.gguf", "x.safetensors", False)],
                  [("a.gguf", "x.gguf", True), ("x.gguf", "x.safetensors", False)]):
        for source, target, merge in steps:
            run(["convert", source, "-o", target, *(["--merge-tensor-scales", "default"] if merge else [])], folder)
        check(contents(folder, "x.safetensors") == contents(folder, "want.safetensors"), steps)
    check("differ" not in run(["convert", "a.gguf", "-o", "b.gguf"], folder) + run(["inspect", "a.gguf"], folder),
          "GGUF keeps every tensor scale")


script.cases("test_cli_fused_scales", [shared_by_default, shared_by_e4m3, shared_as_asked,
                                       shared_by_presets_and_of_zeros, merged_when_converted,
                                       merged_from_and_into_gguf])

#!/usr/bin/env python3
"""quantize and inspect of whole checkpoints: names, bytes and accuracy of what is written, and what is refused."""
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import time
import xml.dom.minidom

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import checkpoint_file as cf
import npy_file
import script
from script import check

command = os.path.abspath(sys.argv[1])
ROWS, COLUMNS = 24, 128


def run(arguments, folder, expect=0, words="", **more):
    done = script.run_in(folder, [command, *arguments], expect, words, **more)
    check(expect == 0 or done.stdout == "", f"{' '.join(arguments)}: printed {done.stdout!r}")
    return done.stdout


def model():
    return {"model.embed_tokens.weight": ("BF16", [8, COLUMNS], cf.random_bf16(8, COLUMNS, 1)),
            "model.layers.0.q.weight": ("BF16", [ROWS, COLUMNS], cf.random_bf16(ROWS, COLUMNS, 2)),
            "model.layers.0.odd.weight": ("BF16", [ROWS, 20], cf.random_bf16(ROWS, 20, 3)),
            "model.layers.0.mlp.gate.weight": ("BF16", [4, COLUMNS], cf.random_bf16(4, COLUMNS, 4)),
            "model.norm.weight": ("BF16", [COLUMNS], cf.random_bf16(1, COLUMNS, 5)),
            "model.layers.1.q.weight": ("F32", [ROWS, COLUMNS],
                                        b"".join(struct.pack("<f", x)
                                                 for x in cf.from_bf16(cf.random_bf16(ROWS, COLUMNS, 6)))),
            "ids": ("I64", [3], bytes(range(24)))}


def make_model(folder):
    os.mkdir(os.path.join(folder, "hf"))
    # The widest first, so that all are aligned.
    tensors = dict(sorted(model().items(), key=lambda item: -cf.SIZES[item[1][0]]))
    cf.write(os.path.join(folder, "hf", "model.safetensors"), tensors, {"format": "pt"})
    with open(os.path.join(folder, "hf", "config.json"), "w", encoding="utf-8") as file:
        json.dump({"architectures": ["X"], "hidden_size": COLUMNS, "quantization_config": {"old": 1}}, file)


def in_folder(function):
    return script.in_folder(function, make_model)


def wanted(name):
    kind, _, content = model()[name + ".weight"]
    return cf.from_bf16(content) if kind == "BF16" else [x for x, in struct.iter_unpack("<f", content)]


def decoded(tensors, name, convention, form):
    """Numbers of a weight, from the bytes and the convention's own definition."""
    if form == "e4m3":
        scale, = struct.unpack("<f", tensors[name + ".weight_scale"][2])
        return [cf.e4m3(code) * scale for code in tensors[name + ".weight"][2]]
    if convention == "gpt_oss":
        codes, scales = cf.nibbles(tensors[name + "_blocks"][2]), tensors[name + "_scales"][2]
        check(tensors[name + "_blocks"][1] == [ROWS, COLUMNS // 32, 16], tensors[name + "_blocks"][1])
        return [cf.e2m1(code) * cf.e8m0(scales[i // 32]) for i, code in enumerate(codes)]
    packed = name + (".weight_packed" if convention == "compressed_tensors" and form != "mxfp8" else ".weight")
    kind, shape, content = tensors[packed]
    scale_kind, scale_shape, scales = tensors[name + ".weight_scale"]
    block = 16 if form == "nvfp4" else 32
    check(scale_shape == [ROWS, COLUMNS // block] and scale_kind == ("F8_E4M3" if form == "nvfp4" else "U8"),
          scale_shape)
    if form == "mxfp8":
        check((kind, shape) == ("F8_E4M3", [ROWS, COLUMNS]), (kind, shape))
        return [cf.e4m3(code) * cf.e8m0(scales[i // 32]) for i, code in enumerate(content)]
    check((kind, shape) == ("U8", [ROWS, COLUMNS // 2]), (kind, shape))
    if form == "mxfp4":
        return [cf.e2m1(code) * cf.e8m0(scales[i // 32]) for i, code in enumerate(cf.nibbles(content))]
    if convention == "modelopt":
        kind, shape, content2 = tensors[name + ".weight_scale_2"]
        factor = struct.unpack("<f", content2)[0]
    else:
        kind, shape, content2 = tensors[name + ".weight_global_scale"]
        factor = 1 / struct.unpack("<f", content2)[0]
    check((kind, shape) == ("F32", [] if convention == "modelopt" else [1]), (kind, shape))
    return [cf.e2m1(code) * cf.e4m3(scales[i // 16]) * factor for i, code in enumerate(cf.nibbles(content))]


SPELLINGS = [("modelopt", "nvfp4", 20), ("modelopt", "mxfp4", 18), ("modelopt", "mxfp8", 30), ("modelopt", "e4m3", 30),
             ("compressed_tensors", "nvfp4", 20), ("compressed_tensors", "mxfp4", 18),
             ("compressed_tensors", "mxfp8", 30)]


@in_folder
def weights_of_every_spelling(folder):
    before = cf.read(os.path.join(folder, "hf", "model.safetensors"))
    for convention, form, least in SPELLINGS:
        out = f"{convention}-{form}"
        said = json.loads(run(["quantize", "hf", "-o", out, "-f", form, "--convention", convention, "--json"], folder))
        chosen = ["model.layers.1.q", "model.layers.0.q"] + (["model.layers.0.odd"] if form == "e4m3" else [])
        check([w["name"] for w in said["weights"]] == chosen, said)
        check(said["passed_on"] == 7 - len(chosen) and said["bytes"] < said["bytes_before"], said)
        after = cf.read(os.path.join(folder, out, "model.safetensors"))
        for name in set(before) - {name + ".weight" for name in chosen}:
            check(after[name] == before[name], f"{name} was not passed on as it is")
        for weight in said["weights"]:
            got = cf.signal_to_noise(decoded(after, weight["name"], convention, form), wanted(weight["name"]))
            check(got > least and abs(got - weight["snr_db"]) < 1e-4, f"{out} {weight}: {got} dB")
        seen = json.loads(run(["inspect", out, "--against", "hf", "--json"], folder))
        by_name = {w["name"]: w for w in seen["weights"]}
        for weight in said["weights"]:
            found = by_name[weight["name"]]
            check(found["convention"] == ("modelopt" if form in ("mxfp8", "e4m3") else convention), found)
            check(found["format"].startswith(form) and found["rows"] == ROWS and found["columns"] == weight["columns"],
                  found)
            check(abs(found["snr_db"] - weight["snr_db"]) < 1e-4, f"{found} {weight}")
        check(by_name["model.embed_tokens"]["convention"] == "plain", by_name)
        check(seen["bytes"] == said["bytes"], f"{seen['bytes']} {said['bytes']}")
        blocks = sum({**seen["e8m0_scales"], **seen["ue4m3_scales"]}.values())
        check(blocks == (0 if form == "e4m3" else 2 * ROWS * COLUMNS // (16 if form == "nvfp4" else 32)), blocks)


@in_folder
def configurations(folder):
    run(["quantize", "hf", "-o", "m", "-f", "nvfp4"], folder,
        words="model.layers.0.odd is left as it is: rows of 20 numbers")
    left = ["model.embed_tokens", "model.layers.0.odd", "model.layers.0.mlp.gate", "lm_head"]
    with open(os.path.join(folder, "m", "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    check(config["architectures"] == ["X"] and config["hidden_size"] == COLUMNS, config)
    asked = config["quantization_config"]
    check(asked["quant_method"] == "modelopt" and asked["quant_algo"] == "W4A16_NVFP4" and "old" not in asked, asked)
    check(sorted(asked["ignore"]) == sorted(left), asked)
    with open(os.path.join(folder, "m", "hf_quant_config.json"), encoding="utf-8") as file:
        asked = json.load(file)["quantization"]
    check(asked["quant_algo"] == "W4A16_NVFP4" and asked["group_size"] == 16
          and sorted(asked["exclude_modules"]) == sorted(left), asked)
    run(["quantize", "hf/model.safetensors", "-o", "c", "-f", "mxfp4", "--convention", "compressed_tensors"], folder)
    with open(os.path.join(folder, "c", "config.json"), encoding="utf-8") as file:
        asked = json.load(file)["quantization_config"]
    check(asked["format"] == "mxfp4-pack-quantized" and asked["quant_method"] == "compressed-tensors"
          and sorted(asked["ignore"]) == sorted(left), asked)
    weights = asked["config_groups"]["group_0"]["weights"]
    check(weights["num_bits"] == 4 and weights["group_size"] == 32 and weights["strategy"] == "group"
          and weights["type"] == "float", weights)
    check(sorted(os.listdir(os.path.join(folder, "c"))) == ["config.json", "model.safetensors"],
          os.listdir(os.path.join(folder, "c")))
    with open(os.path.join(folder, "hf", "config.json"), "w", encoding="utf-8") as file:
        file.write("[1]")
    run(["quantize", "hf", "-o", "n", "-f", "nvfp4"], folder, 3, "config.json: a JSON object is wanted")
    check(not os.path.exists(os.path.join(folder, "n")), "a folder was left")


@in_folder
def patterns(folder):
    def chosen(*arguments):
        return sorted(w["name"] for w in json.loads(run(["quantize", "hf", "-o", "x.safetensors", "-f", "mxfp4",
                                                         "--json", *arguments], folder))["weights"])
    check(chosen("--include", "*layers.0*") == ["model.layers.0.q"], "include")
    check(chosen("--include", "*.1.q,*embed*") == ["model.layers.1.q"], "include and the usual exclude")
    check(chosen("--include", "*.1.q,*embed*", "--exclude", "none") == ["model.embed_tokens", "model.layers.1.q"],
          "exclude")
    check(chosen("--exclude", "*.0.*") == ["model.embed_tokens", "model.layers.1.q"], "exclude alone")
    run(["quantize", "hf", "-o", "y.safetensors", "-f", "mxfp4", "--include", "nothing"], folder, 3,
        "hf: no weight is chosen")
    check(not os.path.exists(os.path.join(folder, "y.safetensors")), "an output was left")


@in_folder
def gguf_and_single_matrices(folder):
    run(["quantize", "hf", "-o", "x.gguf", "-f", "mxfp4", "--exclude", "*.1.q"], folder)
    seen = json.loads(run(["inspect", "x.gguf", "--against", "hf", "--match", "*.0.q*", "--json"], folder))["weights"]
    check(len(seen) == 1 and seen[0]["name"] == "model.layers.0.q" and seen[0]["snr_db"] > 18, seen)
    for form, unit in (("mxfp4", 32), ("nvfp4", 64)):
        run(["quantize", "random:24x128", "-o", "x.gguf", "-f", form], folder)
        run(["quantize", "random:24x128", "-o", "x.safetensors", "-f", form], folder)
        seen = json.loads(run(["inspect", "x.gguf", "--json"], folder))["weights"]
        check(len(seen) == 1 and seen[0]["convention"] == "gguf" and seen[0]["format"] == form, seen)
        same = json.loads(run(["inspect", "x.gguf", "--against", "x.safetensors", "--json"], folder))
        check(same["weights"][0]["snr_db"] is None, "the same codes in GGUF and in .safetensors are the same numbers")
        run(["quantize", "random:2x96" if unit == 64 else "random:2x40", "-o", "y.gguf", "-f", form], folder, 3,
            "not whole blocks")
    text = run(["inspect", "x.gguf", "--tensors"], folder)
    check("matrix.weight  NVFP4  24x128" in text and "matrix.scale   F32         1" in text, text)


@in_folder
def inspect_tells_what_is_wrong(folder):
    run(["inspect", "hf", "--svg", "scales.svg"], folder, 3, "no weight that was shown has block scales")
    check(not os.path.exists(os.path.join(folder, "scales.svg")), "a picture was left")
    run(["quantize", "hf", "-o", "x.safetensors", "-f", "nvfp4"], folder)
    run(["inspect", "x.safetensors", "--svg", "scales.svg"], folder)
    xml.dom.minidom.parse(os.path.join(folder, "scales.svg"))
    tensors = cf.read(os.path.join(folder, "x.safetensors"))
    kind, shape, content = tensors["model.layers.0.q.weight_scale"]
    tensors["model.layers.0.q.weight_scale"] = (kind, [shape[1], shape[0]], content)
    cf.write(os.path.join(folder, "y.safetensors"), tensors)
    done = subprocess.run([command, "inspect", "y.safetensors"], capture_output=True, text=True, cwd=folder,
                          check=False)
    check(done.returncode == 3 and "model.layers.0.q.weight_scale (8 x 24) does not fit" in done.stderr, done.stderr)
    check("model.layers.1.q " in done.stdout and "1 weights are not as they should be" in done.stderr, done)
    run(["inspect", "absent"], folder, 3, "absent: cannot be opened")
    run(["inspect", "x.safetensors", "--against", "absent"], folder, 3, "absent: cannot be opened")
    run(["inspect", "x.safetensors", "--tensors", "--json"], folder, 2, "--tensors: lists tensors as text")
    check("model.norm.weight" in run(["inspect", "hf", "--tensors", "--match", "*norm*"], folder), "--match")
    check("layers.1.q" not in run(["inspect", "hf", "--match", "*layers.0*"], folder), "--match")


def contents(folder, out):
    path = os.path.join(folder, out)
    return cf.read(os.path.join(path, "model.safetensors") if os.path.isdir(path) else path)


@in_folder
def dequantized_again(folder):
    """Numbers of every weight are those that its bytes say, rounded to the type; everything else is as it was."""
    before = contents(folder, "hf")
    for convention, form, _ in SPELLINGS:
        run(["quantize", "hf", "-o", "q", "-f", form, "--convention", convention, "--exclude", "*odd,*embed*,*.gate"],
            folder)
        run(["dequantize", "q", "-o", "d", "--type", "fp32"], folder)
        quantized, back = contents(folder, "q"), contents(folder, "d")
        check(set(back) == set(before), set(back) ^ set(before))
        for name in before:
            if name not in ("model.layers.0.q.weight", "model.layers.1.q.weight"):
                check(back[name] == before[name], name)
                continue
            kind, shape, content = back[name]
            got, want = [x for x, in struct.iter_unpack("<f", content)], decoded(quantized, name[:-len(".weight")],
                                                                                 convention, form)
            check((kind, shape) == ("F32", [ROWS, COLUMNS]), back[name][:2])
            check(all(abs(x - y) <= abs(y) * 2 ** -22 for x, y in zip(got, want)), f"{convention} {form} {name}")
    with open(os.path.join(folder, "d", "config.json"), encoding="utf-8") as file:
        check(json.load(file) == {"architectures": ["X"], "hidden_size": COLUMNS},
              "config.json keeps what is no quantization")
    said = json.loads(run(["dequantize", "q", "-o", "d.safetensors", "--json"], folder))
    check(said["weights"] == 2 and said["type"] == "bf16"
          and contents(folder, "d.safetensors")["model.layers.0.q.weight"][0] == "BF16", said)
    run(["dequantize", "hf", "-o", "e", "--type", "fp32"], folder, 3, "hf: has no quantized weight")
    check(not os.path.exists(os.path.join(folder, "e")), "a folder was left")


def product_is(folder, left, weight, numbers, *more):
    """A.npy times a weight of a checkpoint, over numbers that the test decoded itself."""
    run(["matmul", "A.npy", weight, "-o", "D.npy", "--a-format", "fp32", *more], folder)
    _, _, got = npy_file.read(os.path.join(folder, "D.npy"))
    columns = len(left) // 3
    for i in range(3):
        for j in range(ROWS):
            terms = [left[i * columns + k] * numbers[j * columns + k] for k in range(columns)]
            bound = 2 ** -24 * (columns + 3) * sum(map(abs, terms))
            check(abs(got[i * ROWS + j] - sum(terms)) <= bound, f"{weight} {i} {j}: {got[i * ROWS + j]} {sum(terms)}")


@in_folder
def multiplied(folder):
    """Every spelling as an operand of matmul, as it lies in the file."""
    left = [(7 * i % 11 - 5) / 4 for i in range(3 * COLUMNS)]
    npy_file.write(os.path.join(folder, "A.npy"), [3, COLUMNS], left)
    name = "model.layers.0.q"
    for convention, form, _ in SPELLINGS:
        out = f"{convention}-{form}.safetensors"
        run(["quantize", "hf", "-o", out, "-f", form, "--convention", convention, "--include", "*.q"], folder)
        numbers = decoded(contents(folder, out), name, convention, form)
        product_is(folder, left, f"{out}:{name}", numbers)
        if form == "mxfp4" and convention == "modelopt":
            run(["convert", out, "-o", "x.gguf"], folder)
            product_is(folder, left, f"x.gguf:{name}", numbers)
    product_is(folder, left, f"hf:{name}", wanted(name), "--b-format", "bf16")
    product_is(folder, left, "hf:model.layers.1.q.weight", wanted("model.layers.1.q"), "--b-format", "fp32")
    cf.write(os.path.join(folder, "one.safetensors"),
             {"x.weight": ("BF16", [ROWS, COLUMNS], model()[name + ".weight"][2])})
    product_is(folder, left, "one.safetensors", wanted(name), "--b-format", "bf16")
    said = json.loads(run(["matmul", "A.npy", f"hf:{name}", "-o", "D.npy", "-f", "mxfp8", "--json"], folder))
    check(said["b"]["format"] == "mxfp8_e4m3" and said["b"]["snr_db"] > 30 and said["check"]["product_snr_db"] > 25,
          said)


@in_folder
def multiplied_of_a_batch(folder):
    left = [(7 * i % 11 - 5) / 4 for i in range(3 * COLUMNS)]
    npy_file.write(os.path.join(folder, "A.npy"), [3, COLUMNS], left)
    codes = [bytes((b * 31 + 7 * i) % 256 for i in range(ROWS * COLUMNS // 2)) for b in range(2)]
    scales = [bytes(120 + (b + i) % 9 for i in range(ROWS * COLUMNS // 32)) for b in range(2)]
    cf.write(os.path.join(folder, "x.safetensors"), {"e_blocks": ("U8", [2, ROWS, COLUMNS // 32, 16], b"".join(codes)),
                                                     "e_scales": ("U8", [2, ROWS, COLUMNS // 32], b"".join(scales)),
                                                     "one": ("U8", [4], bytes(4))})
    for b in range(2):
        numbers = [cf.e2m1(code) * cf.e8m0(scales[b][i // 32]) for i, code in enumerate(cf.nibbles(codes[b]))]
        product_is(folder, left, f"x.safetensors:e[{b}]", numbers)
    for weight, words in [("x.safetensors:e", "is a batch of 2 matrices; name one of e[0] to e[1]"),
                          ("x.safetensors:e[2]", "the last is e[1]"),
                          ("x.safetensors:one", "one is no matrix"), ("x.safetensors:two", "no weight called two"),
                          ("absent.gguf:e", "absent.gguf: cannot be opened"),
                          ("hf", "hf: has 5 weights; name one as hf:WEIGHT")]:
        run(["matmul", "A.npy", weight, "-o", "E.npy", "--a-format", "fp32"], folder, 3, words)
    for more in (["--b-format", "mxfp4"], ["--b-type", "bf16"], ["--transpose-b"]):
        run(["matmul", "A.npy", "x.safetensors:e[0]", "-o", "E.npy", "--a-format", "fp32", *more], folder, 2,
            "is a quantized weight, which says")
    run(["matmul", "A.npy", "hf:model.layers.0.q", "-o", "E.npy", "-f", "mxfp4", "--transpose-b"], folder, 2,
        "a checkpoint says its type and shape")
    run(["matmul", "A.npy", "hf:model.layers.0.q", "-o", "E.npy"], folder, 2, "the format of A.npy is missing")
    run(["matmul", "A.npy", "hf:model.layers.0.odd", "-o", "E.npy", "-f", "bf16"], folder, 3,
        "A is 3 x 128 and B is 24 x 20")
    check(not os.path.exists(os.path.join(folder, "E.npy")), "an output was left")


@in_folder
def tiles_are_dequantized(folder):
    """DeepSeek's 128 x 128 scales, and one scale a row."""
    codes = bytes((7 * i + i // 256) % 0x70 for i in range(130 * 200))
    inverse = [0.5, 2.0, 0.25, 3.0]
    rows = [float(1 + i % 5) for i in range(130)]
    cf.write(os.path.join(folder, "x.safetensors"), {
        "a.weight_scale_inv": ("F32", [2, 2], struct.pack("<4f", *inverse)),
                                                     "b.weight_scale": ("F32", [130, 1], struct.pack("<130f", *rows)),
        "a.weight": ("F8_E4M3", [130, 200], codes), "b.weight": ("F8_E4M3", [130, 200], codes)})
    run(["dequantize", "x.safetensors", "-o", "y.safetensors", "--type", "fp32"], folder)
    back = contents(folder, "y.safetensors")
    check(sorted(back) == ["a.weight", "b.weight"], sorted(back))
    for name, scale in (("a", lambda r, c: inverse[r // 128 * 2 + c // 128]), ("b", lambda r, c: rows[r])):
        got = [x for x, in struct.iter_unpack("<f", back[name + ".weight"][2])]
        check(all(got[i] == cf.e4m3(code) * scale(i // 200, i % 200) for i, code in enumerate(codes)), name)
    run(["convert", "x.safetensors", "-o", "z.safetensors"], folder, 3, "has no quantized weight to work on")
    run(["matmul", "random:3x200", "x.safetensors:a", "-o", "E.npy", "--a-format", "fp32"], folder, 2,
        "the format of x.safetensors:a is missing")


@in_folder
def tiles_are_multiplied_and_quantized(folder):
    """DeepSeek's weights as an operand, and as MXFP8: the same numbers where the scales are powers of two."""
    k = 256
    left = [(7 * i % 11 - 5) / 4 for i in range(3 * k)]
    npy_file.write(os.path.join(folder, "A.npy"), [3, k], left)
    codes = bytes((11 * i + i // 256) % 0x7f | (i % 3 == 0) << 7 for i in range(ROWS * k))
    for scales, exact in (([2.0 ** -9, 0.5], True), ([0.0123, 3.7], False)):
        scales = struct.unpack("<2f", struct.pack("<2f", *scales))
        cf.write(os.path.join(folder, "x.safetensors"), {
            "m.a.weight_scale_inv": ("F32", [1, 2], struct.pack("<2f", *scales)),
                                                         "m.norm.weight": ("F32", [2], bytes(8)),
            "m.a.weight": ("F8_E4M3", [ROWS, k], codes)})
        numbers = [cf.e4m3(code) * scales[i % k // 128] for i, code in enumerate(codes)]
        product_is(folder, left, "x.safetensors:m.a", numbers, "--b-format", "fp32")
        said = json.loads(run(["quantize", "x.safetensors", "-o", "y.safetensors", "-f", "mxfp8", "--json"], folder))
        out = contents(folder, "y.safetensors")
        check(sorted(out) == ["m.a.weight", "m.a.weight_scale", "m.norm.weight"], sorted(out))
        got = [cf.e4m3(code) * cf.e8m0(out["m.a.weight_scale"][2][i // 32])
               for i, code in enumerate(out["m.a.weight"][2])]
        check((got == numbers) == exact, f"exact: {got == numbers}")
        said_db = said["weights"][0]["snr_db"]
        check(exact or abs(said_db - cf.signal_to_noise(got, numbers)) < 1e-3 and said_db > 30, said)
        run(["quantize", "x.safetensors", "-o", "z.safetensors", "-f", "mxfp8", "--exclude", "*"], folder, 3,
            "of fp8 with fp32 scales")


@in_folder
def converted_there_and_back(folder):
    for form, ways in (("nvfp4", ("compressed_tensors", "gguf")), ("mxfp4", ("compressed_tensors", "gpt_oss", "gguf"))):
        run(["quantize", "hf", "-o", "m.safetensors", "-f", form, "--include", "*layers.[01].q"], folder)
        first = contents(folder, "m.safetensors")
        numbers = {name: decoded(first, name, "modelopt", form) for name in ("model.layers.0.q", "model.layers.1.q")}
        for way in ways:
            ending = ".gguf" if way == "gguf" else ".safetensors"
            run(["convert", "m.safetensors", "-o", "there" + ending, *([] if way == "gguf" else ["--convention", way])],
                folder)
            if way != "gguf":
                there = contents(folder, "there.safetensors")
                for name, want in numbers.items():
                    got = decoded(there, name, way, form)
                    check(all(abs(x - y) <= abs(y) * 2 ** -22 for x, y in zip(got, want)), f"{form} {way} {name}")
            seen = json.loads(run(["inspect", "there" + ending, "--against", "m.safetensors", "--match", "*.q",
                                   "--json"], folder))
            check(len(seen["weights"]) == 2 and all(w["convention"] == way for w in seen["weights"]), seen)
            check(all(w["snr_db"] is None or w["snr_db"] > 140 for w in seen["weights"]), seen)
            run(["convert", "there" + ending, "-o", "back.safetensors"], folder)
            back = contents(folder, "back.safetensors")
            check(set(back) == set(first), set(back) ^ set(first))
            for name, (kind, shape, content) in first.items():
                if name.endswith("weight_scale_2"):
                    was, now = struct.unpack("<f", content)[0], struct.unpack("<f", back[name][2])[0]
                    check(abs(was - now) <= was * 2 ** -23 and (way != "gguf" or was == now), f"{was} {now}")
                else:
                    check(back[name] == (kind, shape, content), f"{form} {way} {name}")


@in_folder
def conversions_refused_and_configured(folder):
    run(["quantize", "hf", "-o", "m", "-f", "nvfp4"], folder)
    run(["convert", "m", "-o", "x.gguf", "--convention", "modelopt"], folder, 2,
        "goes with an output called X.safetensors")
    run(["convert", "m", "-o", "x", "--convention", "gguf"], folder, 2, "goes with an output called X.gguf")
    run(["convert", "m", "-o", "x", "--convention", "gpt_oss"], folder, 3, "gpt_oss has mxfp4")
    check(sorted(os.listdir(folder)) == ["hf", "m"], os.listdir(folder))
    tensors = contents(folder, "m")
    tensors = {"model.layers.0.q.input_scale": ("F32", [], struct.pack("<f", 4)), **tensors}
    tensors = dict(sorted(tensors.items(), key=lambda item: -cf.SIZES[item[1][0]]))
    cf.write(os.path.join(folder, "m", "model.safetensors"), tensors)
    said = json.loads(run(["convert", "m", "-o", "c", "--convention", "compressed_tensors", "--json"], folder))
    check(said["weights"] == 2 and said["passed_on"] == 5, said)
    check(contents(folder, "c")["model.layers.0.q.input_global_scale"] == ("F32", [1], struct.pack("<f", 0.25)),
          "input scale")
    with open(os.path.join(folder, "c", "config.json"), encoding="utf-8") as file:
        asked = json.load(file)["quantization_config"]
    check(asked["format"] == "nvfp4-pack-quantized", asked)
    check(sorted(asked["ignore"]) == ["lm_head", "model.embed_tokens", "model.layers.0.mlp.gate", "model.layers.0.odd"],
          asked)


@in_folder
def presets(folder):
    """Each project's bits in its own files: a block of zeros tells them apart."""
    content = cf.bf16([0.0] * 32 + [7.0, -1.0] * 16 + [0.01] * 64)
    cf.write(os.path.join(folder, "z.safetensors"), {"z.weight": ("BF16", [1, 128], content)})
    for preset, form, scales in (("modelopt", "nvfp4", [0x38, 0x38]), ("compressed_tensors", "nvfp4", [0x20, 0x20]),
                                 ("ocp", "mxfp4", [0, 127]),
                                 ("modelopt", "mxfp4", [0, 128]), ("torchao", "mxfp8", [0, 121]),
                                 ("compressed_tensors", "mxfp8", [0, 122])):
        run(["quantize", "z.safetensors", "-o", "q.safetensors", "-f", form, "--preset", preset], folder)
        tensors = contents(folder, "q.safetensors")
        check(("z.weight_global_scale" in tensors) == (preset == "compressed_tensors" and form == "nvfp4"),
              sorted(tensors))
        check(list(tensors["z.weight_scale"][2][:2]) == scales,
              f"{preset} {form}: {list(tensors['z.weight_scale'][2][:2])}")
    run(["quantize", "z.safetensors", "-o", "q.safetensors", "-f", "mxfp4", "--clamp-high", "3", "--smallest-scale",
         "120"], folder)
    check(list(contents(folder, "q.safetensors")["z.weight_scale"][2]) == [120, 126, 120, 120],
          contents(folder, "q.safetensors")["z.weight_scale"])
    run(["quantize", "z.safetensors", "-o", "q.safetensors", "-f", "mxfp4", "--clamp-low", "3"], folder)
    check(list(contents(folder, "q.safetensors")["z.weight_scale"][2]) == [126, 128, 126, 126],
          contents(folder, "q.safetensors")["z.weight_scale"])
    run(["quantize", "z.safetensors", "-o", "q.gguf", "-f", "nvfp4", "--preset", "ggml"], folder)
    check("z.scale" not in run(["inspect", "q.gguf", "--tensors"], folder), "ggml's nvfp4 has no tensor scale")
    for preset in ("flashinfer", "transformer_engine"):
        run(["quantize", "z.safetensors", "-o", "r.safetensors", "-f", "nvfp4", "--preset", preset], folder, 3,
            "its tensor scale divides")
        said = json.loads(run(["quantize", "random:4x64", "-o", "Q", "-f", "nvfp4", "--preset", preset, "--json"],
                              folder))
        check(said["recipe"] == preset and said["snr_db"] > 18, said)
    run(["quantize", "z.safetensors", "-o", "r.safetensors", "-f", "mxfp8", "--preset", "ggml"], folder, 3,
        "has no mxfp8_e4m3; take one of mxfp4, nvfp4")


@in_folder
def mxfp4_takes_the_better_of_two_scales(folder):
    """What is written without --recipe, in both kinds of files, and that nothing else changes its recipe."""
    def said(*words):
        return json.loads(run(["quantize", "random:64x256", "-o", "Q", *words, "--json"], folder))
    usual, asked, rceil = said("-f", "mxfp4"), said("-f", "mxfp4", "--recipe",
                                                    "mse"), said("-f", "mxfp4", "--recipe", "rceil")
    check(usual["recipe"] == "mse" and usual == asked, usual)
    check(usual["snr_db"] > rceil["snr_db"] + 0.2, (usual["snr_db"], rceil["snr_db"]))
    check(said("-f", "mxfp4_block16")["recipe"] == "mse", "blocks of 16")
    for words, recipe in (("mxfp8",), "rceil"), (("mxfp6",),
                                                 "rceil"), (("nvfp4",), "nearest"), (("mxfp4", "--squares"), "rceil"), \
                         (("mxfp4", "--preset", "torchao"), "torchao"):
        check(said("-f", *words)["recipe"] == recipe, f"{words}: {recipe}")
    for options, name in ([], "usual"), (["--recipe", "mse"], "asked"), (["--recipe", "rceil"], "rceil"):
        run(["quantize", "hf", "-o", name + ".safetensors", "-f", "mxfp4"] + options, folder)
    check(contents(folder, "usual.safetensors") == contents(folder, "asked.safetensors"), "a checkpoint takes mse")
    check(contents(folder, "usual.safetensors") != contents(folder, "rceil.safetensors"), "and rceil is another")


@in_folder
def squares_share_a_scale(folder):
    run(["quantize", "hf", "-o", "x.safetensors", "-f", "nvfp4", "--squares", "--include", "*.q"], folder)
    scales = contents(folder, "x.safetensors")["model.layers.0.q.weight_scale"][2]
    columns = COLUMNS // 16
    rows = [scales[r * columns:(r + 1) * columns] for r in range(ROWS)]
    check(all(rows[r] == rows[r // 16 * 16] for r in range(ROWS)) and rows[0] != rows[16],
          "every row of a square has its scale")
    run(["quantize", "hf", "-o", "y.safetensors", "-f", "e4m3", "--squares"], folder, 2,
        "--squares: e4m3 has no block scales")
    run(["quantize", "hf", "-o", "y.safetensors", "-f", "nvfp4", "--squares", "--recipe", "four_over_six"], folder, 3,
        "the error of one row")


@in_folder
def options_that_do_not_go_together(folder):
    for more, words in [(["--packed"], "are for .npy files"), (["--layout", "128x4"], "are for .npy files"),
                        (["--divides"], "are for .npy files"),
                        (["--tensor-scale", "1"], "are for .npy files"),
                        (["--transpose"], "--transpose and --type are for .npy"),
                        (["--type", "bf16"], "--transpose and --type are for .npy"),
                        (["--convention", "gguf"], "goes with an output called X.gguf"),
                        (["--convention", "deepseek"], "weights are written as modelopt")]:
        run(["quantize", "hf", "-o", "x", "-f", "nvfp4", *more], folder, 2, words)
    run(["quantize", "hf", "-o", "x.gguf", "-f", "nvfp4", "--convention", "modelopt"], folder, 2,
        "goes with an output called X.safetensors")
    run(["quantize", "hf", "-o", "x.gguf", "-f", "mxfp8"], folder, 2, "gguf has mxfp4 and nvfp4")
    run(["quantize", "hf", "-o", "x", "-f", "bf16"], folder, 2, "--format bf16: modelopt has")
    run(["quantize", "random:4x32", "-o", "x", "-f", "nvfp4", "--include", "*"], folder, 2, "are for checkpoints")
    check(os.listdir(folder) == ["hf"], os.listdir(folder))


@in_folder
def complete_or_absent(folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    for out in ("x.safetensors", "new"):
        run(["quantize", "hf", "-o", out, "-f", "nvfp4"], folder, 3, "File too large", preexec_fn=limit)
        check(os.listdir(folder) == ["hf"], os.listdir(folder))
    run(["quantize", "hf", "-o", "hf/model.safetensors", "-f", "nvfp4"], folder, 3, "is read by this command")
    run(["quantize", "hf", "-o", "hf", "-f", "nvfp4"], folder, 3, "is read by this command")
    check(sorted(os.listdir(os.path.join(folder, "hf"))) == ["config.json", "model.safetensors"],
          os.listdir(os.path.join(folder, "hf")))
    run(["quantize", "hf", "-o", "absent/new", "-f", "nvfp4"], folder, 3, "absent/new: cannot be made")


@in_folder
def killed_in_the_middle(folder):
    big = {"m.weight": ("F32", [2048, 2048], bytes(4 * 2048 * 2048))}
    os.mkdir(os.path.join(folder, "big"))
    cf.write(os.path.join(folder, "big", "model.safetensors"), big)
    for delay in (0.0, 0.01, 0.03, 0.06):
        process = subprocess.Popen([command, "quantize", "big", "-o", "out", "-f", "nvfp4"], cwd=folder,
                                   stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        process.wait()
        names = sorted(os.listdir(folder))
        check(names in (["big", "hf"], ["big", "hf", "out"]), names)
        if "out" in names:           # then it is complete, also where the signal came just before the command's end
            run(["quantize", "big", "-o", "whole", "-f", "nvfp4"], folder)
            same = [open(os.path.join(folder, name, "model.safetensors"), "rb").read() for name in ("out", "whole")]
            check(same[0] == same[1], "an output is there, and it is not whole")
            break


script.cases("test_cli_checkpoints", [weights_of_every_spelling, configurations, patterns, gguf_and_single_matrices,
                                      inspect_tells_what_is_wrong,
                                      dequantized_again, multiplied, multiplied_of_a_batch, tiles_are_dequantized,
                                      tiles_are_multiplied_and_quantized, converted_there_and_back,
                                      conversions_refused_and_configured,
                                      squares_share_a_scale, presets, mxfp4_takes_the_better_of_two_scales,
                                      options_that_do_not_go_together, complete_or_absent, killed_in_the_middle])

#!/usr/bin/env python3
"""Folders of models: the words of config.json for every convention and format, and the other files of a model."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import checkpoint_file as cf
import script
from script import check

command = os.path.abspath(sys.argv[1])
ROWS, COLUMNS = 8, 64
OTHERS = {"tokenizer.json": "{}", "tokenizer_config.json": "{\"a\": 1}", "generation_config.json": "{}",
          "merges.txt": "a b\n",
          "special_tokens_map.json": "{}", "chat_template.jinja": "{{ x }}", "tokenizer.model": "\0\1",
          "modeling_x.py": "", "vocab.txt": "x"}
PASSED = ["pytorch_model.bin", "x.gguf", ".gitattributes", "other.safetensors", "pytorch_model.bin.index.json",
          "hf_quant_config.json"]


def run(arguments, folder, expect=0, words=""):
    return script.run_in(folder, [command, *arguments], expect, words).stdout


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read_json(folder, *path):
    with open(os.path.join(folder, *path), encoding="utf-8") as file:
        return json.load(file)


def make_model(folder):
    os.mkdir(os.path.join(folder, "hf"))
    cf.write(os.path.join(folder, "hf", "model.safetensors"), {
        name: ("BF16", [ROWS, COLUMNS], cf.random_bf16(ROWS, COLUMNS, i))
        for i, name in enumerate(("model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight",
                                  "model.layers.1.mlp.down_proj.weight"))})
    write_text(os.path.join(folder, "hf", "config.json"),
               json.dumps({"architectures": ["X"], "quantization_config": {"old": 1}}))
    for name, text in OTHERS.items():
        write_text(os.path.join(folder, "hf", name), text)
    for name in PASSED:
        write_text(os.path.join(folder, "hf", name), "weights")
    os.mkdir(os.path.join(folder, "hf", "1_Pooling"))


def in_folder(function):
    return script.in_folder(function, make_model)


# Words ---------------------------------------------------------------------------------------------------------------

LEFT = ["model.embed_tokens", "lm_head"]
# Algorithm, size in hf_quant_config.json, config group's (bits, size); as nvidia-modelopt 0.47 exports them.
MODELOPT = {
    "nvfp4": ("W4A16_NVFP4", 16, (4, 16)), "mxfp4": ("mxfp4", None, None), "mxfp8": ("MXFP8", 32, None),
            "e4m3": ("FP8", None, (8, None))}
COMPRESSED = {                # format, bits, size, strategy, scale_dtype; as compressed-tensors 0.20's presets say
    "nvfp4": ("nvfp4-pack-quantized", 4, 16, "tensor_group", "torch.float8_e4m3fn"),
    "mxfp4": ("mxfp4-pack-quantized", 4, 32, "group", "torch.uint8"),
    "mxfp8": ("mxfp8-quantized", 8, 32, "group", "torch.uint8"), "e4m3": ("float-quantized", 8, None, "tensor", None)}


def without_none(**values):
    return {key: value for key, value in values.items() if value is not None}


def modelopt_words(form, algorithm=None, inputs=False):
    usual, size, group = MODELOPT[form]
    want = {"ignore": LEFT, "quant_algo": algorithm or usual, "quant_method": "modelopt"}
    if group is not None:
        numbers = without_none(dynamic=False, num_bits=group[0], type="float", group_size=group[1])
        want["config_groups"] = {"group_0": without_none(input_activations=numbers if inputs else None, weights=numbers,
                                                         targets=["Linear"])}
    file = without_none(quant_algo=algorithm or usual, group_size=size, exclude_modules=LEFT)
    return want, {**file, "kv_cache_quant_algo": None}


def compressed_words(form, inputs=None):
    name, bits, size, strategy, scale = COMPRESSED[form]
    weights = without_none(num_bits=bits, type="float", symmetric=True, group_size=size, strategy=strategy,
                           dynamic=False, scale_dtype=scale)
    group = {"targets": ["Linear"], "weights": weights,
             "input_activations": None if inputs is None else {**weights, "dynamic": inputs},
             "output_activations": None, "format": name}
    return {"config_groups": {"group_0": group}, "quant_method": "compressed-tensors", "kv_cache_scheme": None,
            "format": name,
            "quantization_status": "compressed", "ignore": LEFT}


def check_modelopt(folder, out, want):
    said, file = read_json(folder, out, "config.json"), read_json(folder, out, "hf_quant_config.json")
    check(said["architectures"] == ["X"] and said["quantization_config"].pop("producer")["name"] == "blockscale", said)
    check(said["quantization_config"] == want[0], f"{out}: {said['quantization_config']}, not {want[0]}")
    check(file["producer"]["name"] == "blockscale" and file["quantization"] == want[1], f"{out}: {file}")


def check_compressed(folder, out, want):
    said = read_json(folder, out, "config.json")["quantization_config"]
    check(said == want, f"{out}: {said}, not {want}")
    check(not os.path.exists(os.path.join(folder, out, "hf_quant_config.json")), "that is ModelOpt's")


@in_folder
def words_of_weights_alone(folder):
    for form in MODELOPT:
        run(["quantize", "hf", "-o", "m" + form, "-f", form], folder)
        check_modelopt(folder, "m" + form,
                       modelopt_words(form, inputs=form == "e4m3"))      # ModelOpt's FP8 is of weights and inputs
        run(["quantize", "hf", "-o", "c" + form, "-f", form, "--convention", "compressed_tensors"], folder)
        check_compressed(folder, "c" + form, compressed_words(form))
    for form in ("nvfp4", "mxfp4", "mxfp8"):
        run(["convert", "m" + form, "-o", "to" + form, "--convention", "compressed_tensors"], folder)
        check_compressed(folder, "to" + form, compressed_words(form))
        run(["convert", "c" + form, "-o", "back" + form], folder)
        check_modelopt(folder, "back" + form, modelopt_words(form))
    run(["quantize", "hf", "-o", "e", "-f", "mxfp6", "--include", "*.0.*"], folder,
        words="no config.json is written: modelopt has no words for mxfp6")


@in_folder
def a_head_of_its_own(folder):
    """A head in the file is left or quantized as all modules are; the embedding again is no tensor, and left."""
    tensors = cf.read(os.path.join(folder, "hf", "model.safetensors"))
    cf.write(os.path.join(folder, "hf", "model.safetensors"),
             {**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"]})
    run(["quantize", "hf", "-o", "a", "-f", "mxfp4"], folder)
    check(read_json(folder, "a", "config.json")["quantization_config"]["ignore"] == LEFT, "left")
    run(["quantize", "hf", "-o", "b", "-f", "mxfp4", "--exclude", "*embed*"], folder)
    check(read_json(folder, "b", "config.json")["quantization_config"]["ignore"] == LEFT[:1], "quantized")


def with_input_scales(folder, out, ending, values):
    """Gives quantized weights input scales, as a calibration would."""
    path = os.path.join(folder, out, "model.safetensors")
    scales = {f"model.layers.{i}.mlp.down_proj{ending}": ("F32", [] if ending == ".input_scale" else [1],
                                                          struct.pack("<f", x))
              for i, x in enumerate(values)}
    tensors = cf.read(path)
    cf.write(path, dict(sorted({**scales, **tensors}.items(), key=lambda item: -cf.SIZES[item[1][0]])))


def scale_of(folder, out, name):
    kind, shape, content = cf.read(os.path.join(folder, out,
                                                "model.safetensors"))["model.layers.1.mlp.down_proj" + name]
    return kind, shape, struct.unpack("<f", content)[0]


@in_folder
def words_of_inputs(folder):
    run(["quantize", "hf", "-o", "m", "-f", "nvfp4"], folder)
    with_input_scales(folder, "m", ".input_scale", [4, 0.25])
    text = run(["convert", "m", "-o", "c", "--convention", "compressed_tensors"], folder)
    check("take calibration" not in text, text)
    check_compressed(folder, "c", compressed_words("nvfp4", inputs="local"))
    check(scale_of(folder, "c", ".input_global_scale") == ("F32", [1], 4), "divides")
    run(["convert", "c", "-o", "back"], folder)
    check_modelopt(folder, "back", modelopt_words("nvfp4", "NVFP4", inputs=True))
    check(scale_of(folder, "back", ".input_scale") == ("F32", [], 0.25), "multiplies")
    run(["quantize", "hf", "-o", "e", "-f", "e4m3"], folder)
    with_input_scales(folder, "e", ".input_scale", [2, 3])
    run(["convert", "e", "-o", "f", "--convention", "compressed_tensors"], folder)
    check_compressed(folder, "f", compressed_words("e4m3", inputs=False))
    check(scale_of(folder, "f", ".input_scale") == ("F32", [1], 3), "fp8's input scales multiply, and have one name")
    run(["quantize", "hf", "-o", "p", "-f", "nvfp4"], folder)
    with_input_scales(folder, "p", ".input_scale", [4])
    run(["convert", "p", "-o", "q"], folder)
    check_modelopt(folder, "q", modelopt_words("nvfp4"))


# Files ---------------------------------------------------------------------------------------------------------------

def text_of(folder, out, name):
    with open(os.path.join(folder, out, name), encoding="utf-8") as file:
        return file.read()


def check_copied(folder, out, *more):
    check(sorted(os.listdir(os.path.join(folder, out))) == sorted([*OTHERS, "config.json", "model.safetensors", *more]),
          os.listdir(os.path.join(folder, out)))
    check(all(text_of(folder, out, name) == text for name, text in OTHERS.items()), f"{out}: other contents")


@in_folder
def other_files_are_copied(folder):
    text = run(["quantize", "hf", "-o", "q", "-f", "mxfp4"], folder)
    check("copied: chat_template.jinja, generation_config.json, merges.txt" in text
          and "not copied (folders, or more than 64 MiB): 1_Pooling" in text, text)
    check_copied(folder, "q", "hf_quant_config.json")
    said = json.loads(run(["convert", "q", "-o", "c", "--convention", "compressed_tensors", "--json"], folder))
    check(said["copied"] == sorted(OTHERS), said)
    check_copied(folder, "c")
    run(["dequantize", "c/model.safetensors", "-o", "d"], folder)
    check_copied(folder, "d")
    check(read_json(folder, "d", "config.json") == {"architectures": ["X"]}, "config.json of numbers")
    run(["quantize", "hf", "-o", "q.safetensors", "-f", "mxfp4"], folder)
    check(sorted(os.listdir(folder)) == ["c", "d", "hf", "q", "q.safetensors"], "a file alone")


@in_folder
def other_files_of_other_folders(folder):
    os.mkdir(os.path.join(folder, "old"))
    write_text(os.path.join(folder, "old", "tokenizer.json"), "of another model")
    os.symlink("../hf/merges.txt", os.path.join(folder, "old", "linked.txt"))
    run(["quantize", "hf", "-o", "old", "-f", "mxfp4"], folder)
    check(text_of(folder, "old", "tokenizer.json") == "{}", "outputs replace what was there")
    # Onto itself, and where one of them is read under another name.
    os.rename(os.path.join(folder, "hf", "model.safetensors"), os.path.join(folder, "hf", "bf16.safetensors"))
    run(["quantize", "hf/bf16.safetensors", "-o", "hf", "-f", "mxfp4"], folder, 3,
        "config.json: is read by this command")
    os.mkdir(os.path.join(folder, "in"))
    os.symlink("../hf/vocab.txt", os.path.join(folder, "in", "vocab.txt"))
    run(["quantize", "hf/bf16.safetensors", "-o", "in", "-f", "mxfp4"], folder, 3,
        "in/vocab.txt: is read by this command")
    check(os.listdir(os.path.join(folder, "in")) == ["vocab.txt"], "all or none")
    # A file that lies about, and pipes.
    os.mkdir(os.path.join(folder, "loose"))
    for name in ("bf16.safetensors", "merges.txt"):
        os.link(os.path.join(folder, "hf", name), os.path.join(folder, "loose", name))
    said = json.loads(run(["quantize", "loose/bf16.safetensors", "-o", "l", "-f", "mxfp4", "--json"], folder))
    check(said["copied"] == [] and not os.path.exists(os.path.join(folder, "l", "merges.txt")), "no model's folder")
    write_text(os.path.join(folder, "loose", "config.json"), "{}")
    os.mkfifo(os.path.join(folder, "loose", "tokenizer.json"))
    with open(os.path.join(folder, "loose", "large.json"), "wb") as file:
        file.truncate((64 << 20) + 1)
    text = run(["quantize", "loose/bf16.safetensors", "-o", "l", "-f", "mxfp4"], folder)
    check("copied: merges.txt\n" in text and "large.json" in text and "tokenizer.json" not in text, text)
    for i in range(100):
        write_text(os.path.join(folder, "loose", f"{i}.txt"), "")
    run(["quantize", "loose/bf16.safetensors", "-o", "l", "-f", "mxfp4"], folder,
        words="the 101 other files of loose are not copied: more than 100")


@in_folder
def what_the_result_has(folder):
    for arguments, words in ((["-o", "x.gguf", "-f", "mxfp4"], "has tensors alone"),
                             (["-o", "m", "-f", "nvfp4"], "no scales for inputs, which take calibration"),
                             (["-o", "m", "-f", "e4m3"], "ModelOpt's FP8 wants X.input_scale")):
        text = run(["quantize", "hf", *arguments], folder)
        check(words in text, text)
    run(["quantize", "hf", "-o", "m", "-f", "mxfp4"], folder)
    check("has tensors alone" in run(["convert", "m", "-o", "y.gguf"], folder), "convert")
    check("has tensors alone" in run(["dequantize", "m", "-o", "z.gguf"], folder), "dequantize")
    said = json.loads(run(["quantize", "hf", "-o", "m", "-f", "mxfp6", "--json"], folder))
    check(said["loaded_by"] is None, "nobody was asked")
    said = json.loads(run(["quantize", "hf", "-o", "m", "-f", "mxfp4", "--convention", "compressed_tensors", "--json"],
                          folder))
    check("compressed-tensors" in said["loaded_by"], said)


script.cases("test_cli_model_folder", [words_of_weights_alone, a_head_of_its_own, words_of_inputs,
                                       other_files_are_copied,
                                       other_files_of_other_folders, what_the_result_has])

#!/usr/bin/env python3
"""Files that nobody meant well, or that are many: no input is overwritten, whatever the command is given."""
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import checkpoint_file as cf
import script
from script import check

command = os.path.abspath(sys.argv[1])
DEADLINE = 60                                          # seconds, where something could wait for ever


def run(arguments, folder, expect=0, words="", **more):
    done = subprocess.run([command, *arguments], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, cwd=folder,
                          check=False, timeout=DEADLINE, **more)
    line = " ".join(arguments)
    check(done.returncode == expect, f"{line}: exit status {done.returncode}, not {expect}: {done.stderr}")
    check(words in done.stderr, f"{line}: {done.stderr!r} without {words!r}")
    return done


def in_folder(function):
    def case():
        with tempfile.TemporaryDirectory() as folder:
            function(folder)
    case.__name__ = function.__name__
    return case


def contents(folder):
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(root, name), "rb") as file:
                found[os.path.relpath(os.path.join(root, name), folder)] = file.read()
    return found


def write_text(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def make_shards(folder, name, count):
    """A model of one small weight a shard, with its index and its config.json."""
    inside = os.path.join(folder, name)
    os.mkdir(inside)
    names = [f"m-{i}.safetensors" for i in range(count)]
    for i, shard in enumerate(names):
        cf.write(os.path.join(inside, shard), {f"w{i}.weight": ("BF16", [2, 32], cf.random_bf16(2, 32, i))})
    write_text(inside, "model.safetensors.index.json", json.dumps({"weight_map": {f"w{i}.weight": shard for i, shard in enumerate(names)}}))
    write_text(inside, "config.json", "{\"a\": 1}")
    return names


@in_folder
def no_input_of_many_is_overwritten(folder):
    for count in (2, 34, 40, 130):
        model = f"s{count}"
        shards = make_shards(folder, model, count)
        before = contents(folder)
        for output in [model] + [f"{model}/{shards[i]}" for i in sorted({0, count // 2, count - 2, count - 1})]:
            run(["quantize", model, "-o", output, "-f", "mxfp4"], folder, 3, "is read by this command")
            check(contents(folder) == before, f"{count} shards, {output}: a file has changed")


@in_folder
def an_index_is_an_input(folder):
    make_shards(folder, "s", 2)
    for model in ("s", "s/model.safetensors.index.json"):
        os.symlink("model.safetensors.index.json", os.path.join(folder, "s", "out.safetensors"))
        before = contents(folder)
        run(["quantize", model, "-o", "s/out.safetensors", "-f", "mxfp4"], folder, 3, "is read by this command")
        check(contents(folder) == before, "the index has changed")
        os.unlink(os.path.join(folder, "s", "out.safetensors"))


@in_folder
def an_input_that_is_read_late_is_an_input(folder):
    """The output lies open already when config.json, which it would replace, is read."""
    make_shards(folder, "s", 2)
    os.mkdir(os.path.join(folder, "out"))
    os.symlink("../s/config.json", os.path.join(folder, "out", "model.safetensors"))
    before = contents(folder)
    run(["quantize", "s", "-o", "out", "-f", "mxfp4"], folder, 3, "is read by this command")
    check(contents(folder) == before, "config.json has changed")


def make_model(folder, name="hf"):
    os.mkdir(os.path.join(folder, name))
    cf.write(os.path.join(folder, name, "model.safetensors"), {"x.weight": ("BF16", [2, 64], cf.random_bf16(2, 64, 1))})


def bounded():
    """Memory of a command that reads without end is not the machine's."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


@in_folder
def configurations_that_are_no_files(folder):
    make_model(folder)
    run(["quantize", "hf", "-o", "q", "-f", "nvfp4"], folder)
    config = os.path.join(folder, "hf", "config.json")
    before = sorted(os.listdir(folder))

    def refused(words):
        for arguments in (["quantize", "hf", "-o", "out", "-f", "mxfp4"], ["quantize", "hf/model.safetensors", "-o", "out", "-f", "mxfp4"]):
            run(arguments, folder, 3, words, preexec_fn=bounded)
            check(sorted(os.listdir(folder)) == before, f"{words}: left {sorted(os.listdir(folder))}")
        (os.rmdir if os.path.isdir(config) else os.unlink)(config)
    os.mkfifo(config)
    refused("config.json: is no regular file")
    os.symlink("/dev/zero", config)
    refused("config.json: is no regular file")
    os.mkdir(config)
    refused("config.json: is a directory")
    with open(config, "wb") as file:
        file.truncate(1 << 34)
    refused("a configuration has at most 8388608")
    write_text(folder, "hf/config.json", "")
    refused("config.json: byte 0 is no JSON")
    write_text(folder, "hf/config.json", "{\"a\": 1,}")
    refused("config.json: byte 7 is no JSON")
    os.symlink("nowhere", config)
    run(["quantize", "hf", "-o", "out", "-f", "mxfp4"], folder)
    for verb in (["convert", "q", "-o", "new", "--convention", "compressed_tensors"], ["dequantize", "q", "-o", "new"]):
        os.unlink(os.path.join(folder, "q", "config.json"))
        os.mkfifo(os.path.join(folder, "q", "config.json"))
        run(verb, folder, 3, "config.json: is no regular file")
        check(not os.path.exists(os.path.join(folder, "new")), "an output was left")


@in_folder
def configurations_that_are_deep(folder):
    """Each level is indented where it is written: 40 KB would become 800 MB."""
    make_model(folder)
    for opening, closing in (("[", "]"), ("{\"a\":", "}")):
        for depth, expect in ((31, 0), (32, 3), (20000, 3), (1000000, 3)):
            inner = opening * depth + "1" + closing * depth
            write_text(folder, "hf/config.json", "{\"b\": \"[[[[\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\", \"a\": " + inner + "}")
            run(["quantize", "hf", "-o", f"out{expect}", "-f", "mxfp4"], folder, expect,
                f"config.json: has lists and objects {depth + 1} deep" if expect else "")
    check(sorted(os.listdir(folder)) == ["hf", "out0"], os.listdir(folder))


@in_folder
def pipes_are_not_waited_for(folder):
    """Whatever a verb reads: nobody ever writes into these."""
    make_model(folder)
    os.mkdir(os.path.join(folder, "index"))
    os.mkdir(os.path.join(folder, "one"))
    for name in ("x.json", "x.index.json", "x.npy", "x.safetensors", "x.gguf", "x", "index/model.safetensors.index.json", "one/model.safetensors"):
        os.mkfifo(os.path.join(folder, name))
    before = sorted(os.listdir(folder))
    for name in ("x.json", "x.index.json", "x.npy", "x.safetensors", "x.gguf", "x", "index", "one"):
        form = ["-f", "mxfp4"] if name in ("x.npy", "x") else ["--b-format", "mxfp4"]
        for arguments in (["quantize", name, "-o", "out", "-f", "mxfp4"], ["dequantize", name, "-o", "out.npy"], ["inspect", name],
                          ["matmul", name, "random:4x64", "-o", "out.npy", *form], ["inspect", "hf", "--against", name],
                          ["convert", name, "-o", "out"], ["demo", "--a", name]):
            of_folder = arguments[0] == "demo" and os.path.isdir(os.path.join(folder, name))
            run(arguments, folder, 3, "is a directory" if of_folder else "regular file")
    check(sorted(os.listdir(folder)) == before, "an output was left")


script.cases("test_cli_hostile_files", [
    no_input_of_many_is_overwritten, an_index_is_an_input, an_input_that_is_read_late_is_an_input, configurations_that_are_no_files,
    configurations_that_are_deep, pipes_are_not_waited_for])

#!/usr/bin/env python3
"""Files that nobody meant well, or that are many: no input is overwritten, whatever the command is given."""
import json
import os
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


script.cases("test_cli_hostile_files", [no_input_of_many_is_overwritten, an_index_is_an_input, an_input_that_is_read_late_is_an_input])

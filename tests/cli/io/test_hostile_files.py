#!/usr/bin/env python3
"""Files that nobody meant well, or that are many: no input is overwritten, whatever the command is given."""
import json
import math
import os
import pickle
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import checkpoint_file as cf
import npy_file
import script
from script import check

command = os.path.abspath(sys.argv[1])
DEADLINE = 60                                          # seconds, where something could wait for ever


def run(arguments, folder, expect=0, words="", **more):
    return script.run_in(folder, [command, *arguments], expect, words, timeout=DEADLINE, errors="replace", **more)


def in_folder(function):
    return script.in_folder(function)


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
    write_text(inside, "model.safetensors.index.json",
               json.dumps({"weight_map": {f"w{i}.weight": shard for i, shard in enumerate(names)}}))
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
        for arguments in (["quantize", "hf", "-o", "out", "-f", "mxfp4"],
                          ["quantize", "hf/model.safetensors", "-o", "out", "-f", "mxfp4"]):
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
            write_text(folder, "hf/config.json",
                       "{\"b\": \"[[[[\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\", \"a\": " + inner + "}")
            run(["quantize", "hf", "-o", f"out{expect}", "-f", "mxfp4"], folder, expect,
                f"config.json: has lists and objects {depth + 1} deep" if expect else "")
    check(sorted(os.listdir(folder)) == ["hf", "out0"], os.listdir(folder))


@in_folder
def pipes_are_not_waited_for(folder):
    """Whatever a verb reads: nobody ever writes into these."""
    make_model(folder)
    os.mkdir(os.path.join(folder, "index"))
    os.mkdir(os.path.join(folder, "one"))
    for name in ("x.json", "x.index.json", "x.npy", "x.safetensors", "x.gguf", "x",
                 "index/model.safetensors.index.json", "one/model.safetensors"):
        os.mkfifo(os.path.join(folder, name))
    before = sorted(os.listdir(folder))
    for name in ("x.json", "x.index.json", "x.npy", "x.safetensors", "x.gguf", "x", "index", "one"):
        form = ["-f", "mxfp4"] if name in ("x.npy", "x") else ["--b-format", "mxfp4"]
        for arguments in (["quantize", name, "-o", "out", "-f", "mxfp4"], ["dequantize", name, "-o", "out.npy"],
                          ["inspect", name],
                          ["matmul", name, "random:4x64", "-o", "out.npy", *form], ["inspect", "hf", "--against", name],
                          ["convert", name, "-o", "out"], ["demo", "--a", name]):
            of_folder = arguments[0] == "demo" and os.path.isdir(os.path.join(folder, name))
            run(arguments, folder, 3, "is a directory" if of_folder else "regular file")
    check(sorted(os.listdir(folder)) == before, "an output was left")


# What a terminal would obey: colours, titles, lines of their own, a one-byte CSI, writing from right to left, the end
# of a paragraph.
COMMANDS = "a\x1b[31m\x1b]0;t\x07\n\r\b\x7f\x9b2J\u202eb\u2066\u2029"


def check_plain(text, what):
    """Bytes that a terminal got: lines of UTF-8 without anything that it would obey."""
    words = text.decode("utf-8")
    obeyed = [c for c in words if c != "\n" and (not c.isprintable() and not c.isspace()
                                                 or c in "\r\b\x85\u2028\u2029\u2066\u202e")]
    check(not obeyed, f"{what}: printed {obeyed}")


def run_bytes(arguments, folder, expect, least="?"):
    """least: what shows that the name was printed, masked."""
    done = subprocess.run([command, *arguments], capture_output=True, stdin=subprocess.DEVNULL, cwd=folder, check=False,
                          timeout=DEADLINE)
    check(done.returncode == expect, f"{arguments}: {done}")
    check_plain(done.stdout, arguments)
    check_plain(done.stderr, arguments)
    check(least.encode() in done.stdout + done.stderr, f"{arguments}: {least!r} is not in {done}")
    return done


MASKED = "a?[31m?]0;t??????2J?b??"


@in_folder
def names_of_tensors_are_masked(folder):
    numbers = cf.random_bf16(2, 64, 1)
    cf.write(os.path.join(folder, "x.safetensors"),
             {f"{COMMANDS}.weight": ("BF16", [2, 64], numbers), f"odd{COMMANDS}.weight": ("BF16", [64, 2], numbers),
                                                     f"norm{COMMANDS}": ("BF16", [128], numbers)})
    for arguments in (["quantize", "x.safetensors", "-o", "q.safetensors", "-f", "mxfp4"],
                      ["quantize", "x.safetensors", "-o", "q", "-f", "mxfp4"],
                      ["inspect", "x.safetensors"], ["inspect", "x.safetensors", "--tensors"],
                      ["inspect", "q", "--against", "x.safetensors"]):
        run_bytes(arguments, folder, 0, MASKED)
    run_bytes(["quantize", "x.safetensors", "-o", "e.safetensors", "-f", "e4m3"], folder, 0, MASKED)
    for arguments in (["convert", "e.safetensors", "-o", "c", "--convention", "gpt_oss"],
                      ["convert", "q", "-o", "c.gguf", "--convention", "gguf"]):
        done = subprocess.run([command, *arguments], capture_output=True, cwd=folder, check=False)
        check_plain(done.stdout + done.stderr, arguments)
    for arguments in (["inspect", "x.safetensors", "--json"],
                      ["quantize", "x.safetensors", "-o", "q.safetensors", "-f", "mxfp4", "--json"]):
        said = json.loads(run_bytes(arguments, folder, 0, "\\u001b").stdout)
        check(COMMANDS in [weight["name"] for weight in said["weights"]], said)


@in_folder
def sentences_about_files_are_masked(folder):
    """Errors that quote a tensor, an index, a type, a key and a file's own name."""
    cf.write(os.path.join(folder, "bad.safetensors"),
             {f"{COMMANDS}.weight": ("BF16", [2, 64], bytes(256)), f"{COMMANDS}.weight_scale": ("U8", [3], bytes(3))})
    text = json.dumps({COMMANDS: {"dtype": COMMANDS, "shape": [1], "data_offsets": [0, 1]}}).encode()
    with open(os.path.join(folder, "type.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"x")
    write_text(folder, "a.index.json", json.dumps({"weight_map": {COMMANDS: "../" + COMMANDS}}))
    write_text(folder, "b.index.json", json.dumps({"weight_map": {COMMANDS: COMMANDS + ".safetensors"}}))
    write_text(folder, "note.json", json.dumps({COMMANDS[:20]: [1]}))
    write_text(folder, "text.json", json.dumps({"blockscale_note": 1, "format": COMMANDS}))
    for name, least in (("type.safetensors", MASKED), ("a.index.json", MASKED), ("b.index.json", MASKED)):
        run_bytes(["inspect", name], folder, 3, least)
    done = subprocess.run([command, "inspect", "bad.safetensors"], capture_output=True, cwd=folder, check=False)
    check_plain(done.stdout + done.stderr, "bad.safetensors")
    for name in ("note.json", "text.json"):
        run_bytes(["dequantize", name, "-o", "x.npy"], folder, 3)
    strange = os.path.join(os.fsencode(folder), COMMANDS.encode() + b"\xff.npy")
    with open(strange, "wb") as file:
        file.write(b"x")
    for arguments in (["quantize", strange, "-o", "q", "-f", "mxfp4"],
                      ["quantize", "random:2x64", "-f", "mxfp4", strange], [strange], ["inspect", b"\x1b[31m"]):
        done = subprocess.run([command, *arguments], capture_output=True, cwd=folder, check=False)
        check(done.returncode in (2, 3) and b"?[31m" in done.stderr, done)
        check_plain(done.stderr, arguments)


@in_folder
def progress_is_masked(folder):
    """The bar on a terminal shows names too; what is left is the bar's own."""
    cf.write(os.path.join(folder, "x.safetensors"), {f"{COMMANDS}.weight": ("BF16", [2, 64], cf.random_bf16(2, 64, 1))})
    try:
        ours, theirs = os.openpty()
    except OSError as error:
        raise script.Skip(f"no pseudo-terminal: {error.strerror}") from error
    done = subprocess.run([command, "quantize", "x.safetensors", "-o", "q.safetensors", "-f", "mxfp4"], cwd=folder,
                          stdout=subprocess.DEVNULL,
                          stderr=theirs, check=False, timeout=DEADLINE)
    os.close(theirs)
    shown = os.read(ours, 65536)
    os.close(ours)
    check(done.returncode == 0 and MASKED.encode() in shown, shown)
    check_plain(shown.replace(b"\r\x1b[K", b""), "progress")


@in_folder
def wrong_kinds_are_named(folder):
    """A file of another kind is called by its name, whatever it is called."""
    make_model(folder)
    run(["quantize", "hf", "-o", "m.gguf", "-f", "nvfp4"], folder)
    npy_file.write(os.path.join(folder, "m.npy"), [2, 64], [1.0] * 128)
    with open(os.path.join(folder, "m.gguf"), "rb") as file:
        gguf = file.read()
    with open(os.path.join(folder, "m.npy"), "rb") as file:
        npy = file.read()
    with open(os.path.join(folder, "hf", "model.safetensors"), "rb") as file:
        safetensors = file.read()
    lfs = (b"version https://git-lfs.github.com/spec/v1\n"
           b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")
    kinds = {"an .npy file": npy, "a GGUF file": gguf, "a .safetensors file": safetensors, "a pointer of Git LFS": lfs,
             "a ZIP archive": b"PK\3\4" + bytes(40),
             "a pickle of Python": pickle.dumps({"a": [1] * 9}, 4),
             "JSON text": b"{\"blockscale_note\": 1, \"format\": \"nvfp4\"}",
             "a web page": b"<!DOCTYPE html><html><body>404</body></html>",
             "compressed by gzip": b"\x1f\x8b\x08\x00" + bytes(range(40)),
             "an HDF5 file": b"\x89HDF\r\n\x1a\n" + bytes(40)}
    for kind, content in kinds.items():
        for name in ("wrong.npy", "wrong.safetensors", "wrong.gguf"):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
            if name.endswith(".npy"):
                if kind != "an .npy file":
                    run(["quantize", name, "-o", "out", "-f", "mxfp4"], folder, 3,
                        f"wrong.npy: this is no .npy file: it is {kind}")
            elif kind not in ("a .safetensors file", "a GGUF file"):
                run(["inspect", name], folder, 3, f"{name}: this is {kind}")


@in_folder
def scales_are_called_nan_where_they_are(folder):
    for values, has_nan in (([1.0] * 64, False), ([1.0] * 32 + [math.nan] + [1.0] * 31, True)):
        npy_file.write(os.path.join(folder, "x.npy"), [1, 64], values)
        for form, usual in (("nvfp4", "256 .. 448"), ("mxfp4", "2^-")):
            said = run(["quantize", "x.npy", "-o", "q", "-f", form], folder).stdout.split("\nscales:\n")[1]
            rows = [line.split()[1] for line in said.splitlines()[1:]]
            check(usual in said and ("NaN" in rows) == has_nan and ("NaN" in said) == has_nan, said)
            run(["quantize", "x.npy", "-o", "q.safetensors", "-f", form], folder)
            picture = run(["inspect", "q.safetensors", "--svg", "q.svg"], folder).stdout
            check(("NaN" in picture) == has_nan, picture)


script.cases("test_cli_hostile_files", [
    no_input_of_many_is_overwritten, an_index_is_an_input, an_input_that_is_read_late_is_an_input,
                                        configurations_that_are_no_files,
    configurations_that_are_deep, pipes_are_not_waited_for,
    names_of_tensors_are_masked, sentences_about_files_are_masked, progress_is_masked,
    wrong_kinds_are_named, scales_are_called_nan_where_they_are])

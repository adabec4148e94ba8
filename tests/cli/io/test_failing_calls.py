#!/usr/bin/env python3
"""Every call of the command that takes memory or touches a file fails once, and a signal comes before each: there is a
sentence, no crash, and outputs are complete or absent."""
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import checkpoint_file as cf
import npy_file
import script
from script import check

command, preload = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
QUANTIZE = ["quantize", "hf", "-o", "out", "-f", "nvfp4", "--threads", "1"]
CONVERT = ["convert", "q.safetensors", "-o", "out.gguf", "--threads", "1"]
DEQUANTIZE = ["dequantize", "q.safetensors", "-o", "out.safetensors", "--threads", "1"]
MATMUL = ["matmul", "A.npy", "q.safetensors:x", "-o", "out.npy", "--a-format", "bf16", "--threads", "1", "--no-check"]
MATRIX = ["quantize", "A.npy", "-o", "out", "-f", "nvfp4", "--threads", "1"]


def need_no_sanitizer():
    said = json.loads(script.run([command, "info", "--json"]))
    if said["sanitizers"] != "none":
        raise script.Skip("a sanitizer has the functions that fail here")


def make(folder):
    os.mkdir(os.path.join(folder, "hf"))
    tensors = {"x.weight": ("BF16", [8, 128], cf.random_bf16(8, 128, 1)),
               "y.weight": ("BF16", [4, 64], cf.random_bf16(4, 64, 2)),
               "norm": ("BF16", [64], cf.random_bf16(1, 64, 3))}
    cf.write(os.path.join(folder, "hf", "model.safetensors"), tensors)
    with open(os.path.join(folder, "hf", "config.json"), "w", encoding="utf-8") as file:
        file.write("{\"a\": 1}")
    npy_file.write(os.path.join(folder, "A.npy"), [4, 128], [float(i % 9 - 4) for i in range(512)])
    script.run([command, "quantize", "hf", "-o", "q.safetensors", "-f", "nvfp4"], cwd=folder)


def contents(folder):
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(root, name), "rb") as file:
                found[os.path.relpath(os.path.join(root, name), folder)] = file.read()
        found[os.path.relpath(root, folder)] = b"a folder"
    return found


def remove_outputs(folder, before):
    for path in sorted(contents(folder), reverse=True):
        if path not in before:
            (os.rmdir if os.path.isdir(os.path.join(folder, path)) else os.unlink)(os.path.join(folder, path))


def run(folder, arguments, group, how, at, **more):
    """how: what failing_calls.c knows, or a signal's name."""
    if how.startswith("SIG"):
        how, more["env"] = "signal", {"FAIL_SIGNAL": str(int(signal.Signals[how])), **more.get("env", {})}
    environment = {**os.environ, "LD_PRELOAD": preload, "FAIL_GROUP": group, "FAIL_HOW": how, "FAIL_AT": str(at),
                   **more.pop("env", {})}
    return subprocess.run([command, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, check=False, **more)


def count_calls(folder, arguments, group):
    read, write = os.pipe()
    done = run(folder, arguments, group, "error", 0, pass_fds=[write], env={"FAIL_COUNT": str(write)})
    os.close(write)
    with os.fdopen(read) as file:
        calls = file.read()
    check(done.returncode == 0, f"{arguments}: {done}")
    return int(calls)


def every_call(arguments, group, how, least, **environment):
    need_no_sanitizer()
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        before = contents(folder)
        calls = count_calls(folder, arguments, group)
        complete = contents(folder)
        remove_outputs(folder, before)
        check(calls >= least and len(complete) > len(before), f"{calls} calls, {sorted(complete)}")
        failed = 0
        for at in range(1, calls + 1):
            done = run(folder, arguments, group, how, at, env=environment)
            line = f"{' '.join(arguments)}, {how} at call {at} of {calls} ({group})"
            after = contents(folder)
            if done.returncode == 0:
                check(after == complete, f"{line}: done, but the outputs are {sorted(after)}, or other bytes")
                remove_outputs(folder, before)
                continue
            failed += 1
            check(after == before or how == "signal" and after == complete,
                  f"{line}: left {sorted(set(after) ^ set(before))}")
            remove_outputs(folder, before)
            if how == "signal":                     # one that comes while outputs get their names waits until all have
                check(done.returncode == -signal.SIGTERM, f"{line}: {done}")
            else:
                check(done.returncode == 3 and done.stderr.startswith(b"blockscale"), f"{line}: {done}")
        check(failed >= least // 2, f"{' '.join(arguments)}: only {failed} of {calls} failures were noticed")


SAYS = {"SIGBUS": b"became shorter while it was read, or its disk failed (SIGBUS)",
        "SIGSEGV": b"touched memory that is not there (SIGSEGV)",
        "SIGABRT": b"gave up (SIGABRT)"}


def faults(arguments, group, least):
    """Like a signal, but it cannot be waited out: there is a sentence, and outputs all written get their names."""
    need_no_sanitizer()
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        before = contents(folder)
        calls = count_calls(folder, arguments, group)
        complete = contents(folder)
        remove_outputs(folder, before)
        seen = {True: 0, False: 0}
        for at in range(1, calls + 1):
            for name, words in SAYS.items():
                done = run(folder, arguments, group, name, at)
                line = f"{' '.join(arguments)}, {name} at call {at} of {calls} ({group})"
                check(done.returncode == -signal.Signals[name] and words in done.stderr, f"{line}: {done}")
                after = contents(folder)
                kept = b"the outputs are complete" in done.stderr
                check(kept or b"no output is kept" in done.stderr, f"{line}: {done.stderr}")
                check(after == (complete if kept else before), f"{line}: left {sorted(set(after) ^ set(before))}")
                remove_outputs(folder, before)
                seen[kept] += 1
        check(seen[False] >= least and seen[True] >= 3, f"{seen}")


def an_input_cut_short(arguments, path, least):
    """The checkpoint becomes empty before each call: its mapping ends the command, or a sentence does."""
    need_no_sanitizer()
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        before = contents(folder)
        calls = count_calls(folder, arguments, "files")
        complete = contents(folder)
        remove_outputs(folder, before)
        ended = 0
        for at in range(1, calls + 1):
            done = run(folder, arguments, "files", "truncate", at, env={"FAIL_FILE": os.path.join(folder, path)})
            line = f"{' '.join(arguments)}, {path} cut at call {at} of {calls}"
            with open(os.path.join(folder, path), "wb") as file:
                file.write(before[path])
            after = contents(folder)
            check(after == (complete if done.returncode == 0 else before),
                  f"{line}: {done}, left {sorted(set(after) ^ set(before))}")
            if done.returncode == -signal.SIGBUS:
                check(SAYS["SIGBUS"] in done.stderr and b"no output is kept" in done.stderr, f"{line}: {done}")
                ended += 1
            else:
                check(done.returncode in (0, 3) and (done.returncode == 0 or done.stderr.startswith(b"blockscale ")),
                      f"{line}: {done}")
            remove_outputs(folder, before)
        check(ended >= least, f"{line}: only {ended} of {calls} were ended by SIGBUS")


def faults_in_quantize(): faults(QUANTIZE, "files", 20)
def faults_with_a_matrix(): faults(MATRIX, "files", 10)
def an_input_cut_short_of_quantize(): an_input_cut_short(QUANTIZE, "hf/model.safetensors", 5)
def an_input_cut_short_of_convert(): an_input_cut_short(CONVERT, "q.safetensors", 3)


def files_of_quantize(): every_call(QUANTIZE, "files", "error", 20)
def memory_of_quantize(): every_call(QUANTIZE, "memory", "error", 20)
# The disk is slower than the quantizer, so that memory ends while a thread writes.
def memory_of_quantize_while_it_writes(): every_call(QUANTIZE, "memory", "error", 20, FAIL_SLOW="4000")
def signals_in_quantize(): every_call(QUANTIZE, "files", "signal", 20)
def files_of_convert(): every_call(CONVERT, "files", "error", 10)
def files_of_dequantize(): every_call(DEQUANTIZE, "files", "error", 10)
def files_of_matmul(): every_call(MATMUL, "files", "error", 10)
def memory_of_matmul(): every_call(MATMUL, "memory", "error", 10)
def files_of_a_matrix(): every_call(MATRIX, "files", "error", 10)
def signals_with_a_matrix(): every_call(MATRIX, "files", "signal", 10)


script.cases("test_cli_failing_calls", [files_of_quantize, memory_of_quantize, memory_of_quantize_while_it_writes,
                                        signals_in_quantize, files_of_convert,
                                        files_of_dequantize,
                                        files_of_matmul, memory_of_matmul, files_of_a_matrix, signals_with_a_matrix,
                                        faults_in_quantize,
                                        faults_with_a_matrix, an_input_cut_short_of_quantize,
                                        an_input_cut_short_of_convert])

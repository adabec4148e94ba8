#!/usr/bin/env python3
"""Runs one file of tests of the Python package by pytest, and ends with the line that tests/run reads.

python_test.py NAME FILE BUILD [--torch]: on BUILD's library, with the package from python/src; BLOCKSCALE_BUILD tells
tests where cudasim and the command are.  --torch: by the Python that has PyTorch, which is TORCH_PYTHON or that of
build/torch."""
import os
import re
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORDS = {"passed": 0, "failed": 0, "error": 0, "skipped": 0}


def interpreter(torch):
    """The Python to use, and what it must be able to import."""
    if not torch:
        return sys.executable, "numpy, ml_dtypes, cffi, pytest"
    for path in (os.environ.get("TORCH_PYTHON", ""), os.path.join(SOURCE, "build", "torch", "bin", "python3")):
        if path and os.path.exists(path):
            return path, "torch, numpy, cffi, pytest"
    return None, "torch"


def main():
    name, file, build = sys.argv[1:4]
    python, needs = interpreter("--torch" in sys.argv[4:])
    if python is None or subprocess.run([python, "-c", f"import {needs}"], capture_output=True, check=False).returncode:
        word = "make test-torch installs it" if "torch" in needs else "scripts/need python-tests installs them"
        print(f"  {name}: skipped: {needs}: not there; {word}", file=sys.stderr)
        print(f"{name}: 0 passed, 0 failed, 1 skipped")
        return 0
    environment = dict(os.environ, BLOCKSCALE_BUILD=build,
                       BLOCKSCALE_LIBRARY=os.path.join(build, "lib", "libblockscale.so"),
                       PYTHONPATH=os.path.join(SOURCE, "python", "src"), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--tb=short", "-W", "error",
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

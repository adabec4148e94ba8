"""What tests written as scripts share: cases that are counted, and the last line that tests/run reads."""
import os
import re
import subprocess
import sys
import tempfile
import traceback


class Skip(Exception):
    """Raised by a case that cannot run here; its text says why."""


def cases(name, functions):
    """Runs every function; a case fails by raising anything but Skip.  Ends the program."""
    passed = failed = skipped = 0
    for function in functions:
        try:
            function()
            passed += 1
        except Skip as reason:
            skipped += 1
            print(f"  {function.__name__}: skipped: {reason}", file=sys.stderr)
        except Exception as error:                     # a case may fail in any way; the next ones still run
            failed += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"  FAILED {function.__name__} ({os.path.basename(where.filename)}:{where.lineno}): {error}",
                  file=sys.stderr)
    print(f"{name}: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or passed + skipped == 0 else 0)


def run(command, expect=0, **options):
    """Runs a command and returns its standard output; fails, with what it printed, on another exit status."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", check=False, **options)
    if done.returncode != expect:
        words = command if isinstance(command, str) else " ".join(command)
        raise AssertionError(f"exit status {done.returncode}, not {expect}: {words}\n{done.stdout}{done.stderr}")
    return done.stdout


def run_in(folder, command, expect=0, words="", **options):
    """Runs a command in a folder; fails on another exit status, and where its standard error lacks these words."""
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          **options)
    line = " ".join(command)
    check(done.returncode == expect, f"{line}: exit status {done.returncode}, not {expect}: {done.stderr}")
    check(words in done.stderr, f"{line}: {done.stderr!r} without {words!r}")
    return done


def in_folder(function, prepare=None):
    """The case `function`, run with the path of a new folder, which `prepare` fills first."""
    def case():
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            if prepare is not None:
                prepare(folder)
            function(folder)
    case.__name__ = function.__name__
    return case


def needs_a_gpu(command, backend):
    """Skips where the build has no kernels for a backend, "cuda" or "hip", or where it finds no GPU for them."""
    compiler, gpu, library = {"cuda": ("nvcc", "GPU", "BLOCKSCALE_LIBCUDA"),
                              "hip": ("clang for gfx950", "GPU of AMD", "BLOCKSCALE_LIBHIP")}[backend]
    info = run([command, "info"])
    if re.search(rf"^{backend} .*not built", info, re.M):
        raise Skip(f"no kernels in this build: no {compiler} was found")
    if not re.search(r"^gpu +0: .*HIP" if backend == "hip" else r"^gpu +0", info, re.M):
        raise Skip(f"no {gpu}, and {library} names none")


def check(condition, sentence):
    if not condition:
        raise AssertionError(sentence)

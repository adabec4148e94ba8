#!/usr/bin/env python3
"""A test of tests of kernels: the bugs of *.bugs beside this file, planted one at a time in a copy of the kernels, are each noticed on
cudasim, and without them the same run passes.  Their form is that of tests/bugs.py, with lines "of PROGRAM KERNELS".

usage: planted.py BUILD [--only NAME]"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, ".."))
import bugs as planted_bugs

BUILD = os.path.abspath(sys.argv[1])
ONLY = sys.argv[3] if len(sys.argv) == 4 and sys.argv[2] == "--only" else None
FILES = ["decoding.bugs", "memory.bugs"]
SECONDS = 600


def read_bugs():
    bugs = [bug for name in FILES for bug in planted_bugs.read(os.path.join(HERE, name))]
    for bug in bugs:
        bug["program"], bug["kernels"] = bug["of"]
    return bugs


def compile_kernels(tree, kernels, to):
    arch = "90a" if kernels.startswith("sm90/") else "90"
    subprocess.run([os.environ.get("NVCC", "nvcc"), "-fatbin", "-gencode", "arch=compute_%s,code=[sm_%s,compute_%s]" % (arch, arch, arch),
                    "-std=c++17", "-O3", "-no-compress", "--fmad=false", "-I%s/src" % tree, "-I%s/include" % SOURCE, "-o", to,
                    "%s/src/cuda/%s.cu" % (tree, kernels)], check=True)


def link(bug, fatbin, folder):
    """The test with these kernels: its own command, with another table of what is embedded in front of the library's."""
    with open(os.path.join(BUILD, "src", "cuda", "embedded.c"), encoding="utf-8") as file:
        text, count = re.subn(r'"[^"]*%s\.fatbin"' % re.sub(r"\W", "_", bug["kernels"]), '"%s"' % fatbin, file.read())
    assert count == 1
    source, object_file, program = (os.path.join(folder, name) for name in ("embedded.c", "embedded.o", bug["program"]))
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["cc", "-c", "-I%s/src" % SOURCE, "-o", object_file, source], check=True)
    with open(os.path.join(BUILD, "tests", "cuda", "CMakeFiles", bug["program"] + ".dir", "link.txt"), encoding="utf-8") as file:
        command = shlex.split(file.read())
    at = command.index("-o")
    command[at:at + 2] = [object_file, "-o", program]
    subprocess.run(command, cwd=os.path.join(BUILD, "tests", "cuda"), check=True)
    return program


def passes(program, run):
    case, *settings = run.split()
    environment = dict(os.environ, BLOCKSCALE_LIBCUDA=os.path.join(BUILD, "lib", "libcudasim.so"), CUDASIM_QUIET="1",
                       **dict(setting.split("=") for setting in settings))
    try:
        return subprocess.run([program, "--only", case], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
                              timeout=SECONDS, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def try_bug(bug):
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        shutil.copytree(os.path.join(SOURCE, "src"), os.path.join(tree, "src"))
        planted_bugs.plant(bug, tree)
        fatbin = os.path.join(folder, "kernels.fatbin")
        compile_kernels(tree, bug["kernels"], fatbin)
        return not passes(link(bug, fatbin, folder), bug["run"])


def main():
    bugs = [bug for bug in read_bugs() if ONLY in (None, bug["bug"])]
    missed = 0
    for program, run in sorted({(bug["program"], bug["run"]) for bug in bugs}):
        if not passes(os.path.join(BUILD, "tests", program), run):
            sys.exit("%s %s fails without a bug" % (program, run))
    for bug in bugs:
        noticed = try_bug(bug)
        missed += not noticed
        print("%s: %s" % (bug["bug"], "noticed" if noticed else "NOT NOTICED: " + bug["why"]), flush=True)
    print("planted: %d passed, %d failed" % (len(bugs) - missed, missed))
    return missed > 0 or not bugs


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""A test of gfxsim's tests: the bugs of *.bugs beside this file (their form: tests/bugs.py) are planted one at a time
in a copy of gfxsim; the test program of the line "of" must fail, and pass without them.

usage: planted.py BUILD [--only NAME]"""
import concurrent.futures
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.abspath(os.path.join(HERE, "../../.."))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import bugs as planted_bugs

BUILD = os.path.abspath(sys.argv[1])
ONLY = sys.argv[3] if len(sys.argv) == 4 and sys.argv[2] == "--only" else None
SECONDS = 120


def read_bugs():
    found = [bug for path in sorted(glob.glob(os.path.join(HERE, "*.bugs"))) for bug in planted_bugs.read(path)]
    names = [bug["bug"] for bug in found]
    assert len(names) == len(set(names)), "two bugs have one name"
    return found


def compile_commands():
    """{source below gfxsim: words of the command, its folder} of the simulator's objects."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        return {os.path.relpath(entry["file"], SOURCE): (shlex.split(entry["command"]), entry["directory"])
                for entry in json.load(file) if "/gfxsim_objects.dir/" in entry["command"]}


def depends(command, folder, on):
    """Whether an object was made of this file."""
    with open(os.path.join(folder, command[command.index("-o") + 1] + ".d"), encoding="utf-8") as file:
        words = file.read().replace("\\\n", " ").split()[1:]
    return any(os.path.relpath(os.path.join(folder, word), SOURCE) == on for word in words)


def compile_changed(bug, tree, commands, to):
    """Objects of what depends on the bug's file."""
    objects = []
    for source, (command, folder) in commands.items():
        if not depends(command, folder, bug["file"]):
            continue
        objects.append(os.path.join(to, re.sub(r"\W", "_", source) + ".o"))
        words = [word.replace("-I" + SOURCE, "-I" + tree) for word in command if word not in ("-O3", "-O2", "-Werror")]
        at = words.index("-o")
        del words[at:at + 4]                           # -o OBJECT -c SOURCE
        subprocess.run([*words, "-O1", "-w", "-c", os.path.join(tree, source), "-o", objects[-1]], check=True)
    assert objects, bug["bug"] + ": nothing depends on " + bug["file"]
    return objects


def link(program, objects, to):
    with open(os.path.join(BUILD, "gfxsim/tests/CMakeFiles", program + ".dir/link.txt"), encoding="utf-8") as file:
        command = shlex.split(file.read())
    at = command.index("-o")
    command[at:at + 2] = [*objects, "-o", to]
    subprocess.run(command, cwd=os.path.join(BUILD, "gfxsim/tests"), check=True)


def passes(program, case):
    try:
        return subprocess.run([program, *(["--only", case] if case else [])], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=SECONDS, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def program_is_stale(program, commands):
    """Whether it fails with one object compiled from today's headers: structures that have changed are no bug."""
    with tempfile.TemporaryDirectory() as folder:
        control = {"bug": "control", "file": "gfxsim/machine/grid.c"}
        objects = compile_changed(control, SOURCE, commands, folder)
        path = os.path.join(folder, "program")
        link(program, objects, path)
        return not passes(path, None)


def try_bug(bug, commands):
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        for part in ("gfxsim", "simulator"):
            shutil.copytree(os.path.join(SOURCE, part), os.path.join(tree, part),
                            ignore=shutil.ignore_patterns("tests", "docs", "fuzz"))
        planted_bugs.plant(bug, tree)
        program = os.path.join(folder, "program")
        link(bug["of"][0], compile_changed(bug, tree, commands, folder), program)
        return not passes(program, bug.get("run"))


def main():
    bugs = [bug for bug in read_bugs() if ONLY in (None, bug["bug"])]
    missed = 0
    commands = compile_commands()
    for program in sorted({bug["of"][0] for bug in bugs}):
        for case in sorted({bug.get("run", "") for bug in bugs if bug["of"][0] == program}):
            if not passes(os.path.join(BUILD, "tests", program), case):
                sys.exit("%s %s fails without a bug" % (program, case))
        if program_is_stale(program, commands):
            sys.exit("%s: linked with an object of the sources as they are it fails: build first" % program)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for bug, noticed in zip(bugs, pool.map(lambda bug: try_bug(bug, commands), bugs)):
            missed += not noticed
            if not noticed or ONLY is not None:
                print("%s: %s" % (bug["bug"], "noticed" if noticed else "NOT NOTICED: " + bug["why"]), flush=True)
    print("gfxsim_planted: %d passed, %d failed, 0 skipped" % (len(bugs) - missed, missed))
    return missed > 0 or not bugs


if __name__ == "__main__":
    sys.exit(main())

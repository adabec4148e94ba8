#!/usr/bin/env python3
"""A test of the search: the bugs of search.bugs, planted one at a time in a copy of the library, must each be found
within 20,000 problems.

    planted.py BUILD_FOLDER [--only REGEX] [--seed N] [--jobs N] [--record FILE]

For a bug the objects that depend on its file are compiled again by the build's own commands, kernels by nvcc, and the
shared library is linked anew.  Prints the number of problems that the search needed, and with --record writes the table
tests/search/planted.md."""
import argparse
import concurrent.futures
import json
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
sys.path.insert(0, os.path.join(HERE, "..", "cuda", "planted"))
import bugs as planted_bugs                            # noqa: E402
import relink                                          # noqa: E402

PROBLEMS, SECONDS = 20000, 3600
EMULATED = "emulated"                                  # the CPU, with emulated matrix units
FOUND = re.compile(r"^FAILED problem (\d+) of seed \d+ on \S+: (.*)", re.M)


class Build:
    """The build's objects of a library, what each depends on, and the command that links them.  emulated: the library
    whose matrix units are emulated."""

    def __init__(self, folder, emulated):
        self.folder = os.path.abspath(folder)
        self.place = os.path.join(self.folder, *(("tests", "cpu", "units") if emulated else ()))
        name = "blockscale_emulated" if emulated else "blockscale"
        with open(os.path.join(self.place, "CMakeFiles", name + ".dir", "link.txt"), encoding="utf-8") as file:
            self.link = shlex.split(file.read().splitlines()[0])
        linked = {os.path.normpath(os.path.join(self.place, word)): word for word in self.link if word.endswith(".o")}
        self.compiles = {}                             # by the word of the link command
        with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as file:
            for entry in json.load(file):
                words = shlex.split(entry["command"])
                made = os.path.normpath(os.path.join(entry["directory"], words[words.index("-o") + 1]))
                if made in linked and "_objects.dir/" in made:
                    self.compiles[linked[made]] = (words, entry["directory"])

    def dependents(self, file):
        """Objects that depend on a source."""
        path, found = os.path.join(SOURCE, file), []
        for made in self.compiles:
            with open(os.path.join(self.place, made + ".d"), encoding="utf-8") as lines:
                if path in lines.read().split():
                    found.append(made)
        return found

    def compile(self, made, tree, to):
        words, directory = self.compiles[made]
        words = [word.replace(SOURCE + "/src", tree + "/src").replace(SOURCE + "/include", tree + "/include")
                 for word in words
                 if word != "-Werror"]
        words[words.index("-o") + 1] = to
        subprocess.run(words + ["-w"], cwd=directory, check=True)

    def kernels_of(self, file):
        """Names of the fatbins (epilogue_finish) that are made of a source."""
        kernels = relink.name_of(re.sub(r"^src/cuda/|\.cu$", "", file))
        return [name for name in relink.fatbins(self.folder) if name == kernels]

    def library(self, bug, tree, folder):
        """The shared library with a bug that the tree has."""
        replaced = {}
        for made in self.dependents(bug["file"]):
            replaced[made] = os.path.join(folder, re.sub(r"\W", "_", made) + ".o")
            self.compile(made, tree, replaced[made])
        if bug["file"].endswith(".cu"):
            replaced.update(self._kernels(bug, tree, folder))
        if not replaced:
            raise SystemExit("%s: nothing depends on %s" % (bug["bug"], bug["file"]))
        words = [replaced.get(word, word) for word in self.link]
        words[words.index("-o") + 1] = os.path.join(folder, "libblockscale.so")
        subprocess.run(words, cwd=self.place, check=True)
        shutil.copy(os.path.join(self.folder, "lib", "libcudasim.so"), folder)
        return os.path.join(folder, "libblockscale.so")

    def _kernels(self, bug, tree, folder):
        """The object with the embedded kernels, those of the bug's file compiled again."""
        name, = self.kernels_of(bug["file"])
        fatbin, source, to = (os.path.join(folder, x) for x in (name + ".fatbin", "embedded.c", "embedded.o"))
        subprocess.run([os.environ.get("NVCC", "nvcc"), "-fatbin", "-gencode",
                        "arch=compute_90,code=[sm_90,compute_90]", "-std=c++17", "-O3",
                        "-no-compress", "--fmad=false", "-I%s/src" % tree, "-I%s/include" % SOURCE, "-o", fatbin,
                        os.path.join(tree, bug["file"])], check=True)
        with open(os.path.join(self.folder, "src", "cuda", "embedded.c"), encoding="utf-8") as file:
            text = relink.fatbin_instead(file.read(), name, fatbin)
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run(["cc", "-fPIC", "-w", "-c", "-I%s/src" % SOURCE, "-o", to, source], check=True)
        return {word: to for word in self.link if word.endswith("embedded.c.o")}


def search(library, target, seed):
    """(number of problems needed, what the failure said), or (None, the last line)."""
    command = [sys.executable, os.path.join(HERE, "search.py"), library, "--target",
               "cpu" if target == EMULATED else target, "--seed", str(seed),
               "--problems", str(PROBLEMS), "--seconds", str(SECONDS), "--failures", "1", "--shrink", "0"]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    match = FOUND.search(out)
    return (int(match.group(1)) + 1, match.group(2)) if match else (None, out.strip().splitlines()[-1])


def try_bug(build, bug, seed):
    with tempfile.TemporaryDirectory(prefix="searched-") as folder:
        tree = os.path.join(folder, "tree")
        for part in ("src", "include"):
            shutil.copytree(os.path.join(SOURCE, part), os.path.join(tree, part))
        planted_bugs.plant(bug, tree)
        return search(build.library(bug, tree, folder), bug["of"][0], seed)


def write_table(path, seed, found):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# How soon the random search finds planted bugs\n\n"
                   "Written by `make search-planted`: tests/search/search.bugs, seed %d.\n\n"
                   "| bug | file | target | problems until it was found | what the search said |\n"
                   "|---|---|---|---|---|\n" % seed)
        for bug, (count, said) in found:
            file.write("| %s | %s | %s | %s | %s |\n" % (bug["bug"], bug["file"], bug["of"][0], count or "not found",
                                                        said.replace("|", "\\|")[:90]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record", help="file that gets the table")
    options = parser.parse_args()
    builds = {emulated: Build(options.build, emulated) for emulated in (False, True)}
    chosen = [bug for bug in planted_bugs.read(os.path.join(HERE, "search.bugs"))
              if re.search(options.only, bug["bug"])]
    found = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for bug, result in zip(chosen, pool.map(lambda bug: try_bug(builds[bug["of"][0] == EMULATED], bug,
                                                                       options.seed), chosen)):
            found.append((bug, result))
            print("%s (%s, seed %d): %s" % (bug["bug"], bug["of"][0], options.seed,
                                            "problem %d: %s" % result if result[0] else
                                            "NOT FOUND, %s: %s" % (bug["why"], result[1])), flush=True)
    if options.record:
        write_table(options.record, options.seed, found)
    missed = sum(result[0] is None for _, result in found)
    print("search_planted: %d passed, %d failed" % (len(found) - missed, missed))
    return 1 if missed or not found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""A test of the tests: small bugs, kept as data in *.bugs, are planted one at a time, and the tests must notice each.

    planted_test.py BUILD_FOLDER C_COMPILER [--only REGEX] [--jobs N] [--control] [--named]

The library is built once as a shared library that the test programs load.  For a bug, a copy of the source is changed,
the objects that depend on it are compiled again, and the test case that the bug names runs with the library that
results; it must fail.  Where it does not, every other test program runs; if all pass, the bug survived, and a test is
missing.  A program that cannot run has not failed.  That each case
passes without the bug is what `make test` finds out beside this; --control asks it here too.

Bugs in src/cuda: the build's kernels run on its cudasim, as PTX; those of a file that a bug changes are compiled anew, to PTX.

A .bugs file holds entries of this form; "-" lines are the old text, which must be found exactly once, "+" lines the new:

    bug      e8m0_zero_is_zero
    category value rules
    file     src/format/format.h
    why      code 0 is 2^-127, not zero
    test     test_decode every_e8m0_code
    -return old;
    +return new;
"""
import argparse
import concurrent.futures
import glob
import json
import os
import queue
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
ROOMS = ["core", "format", "layout", "matrix", "quantize", "exact", "product", "cpu", "cuda", "plan", "file"]
# How many bugs of each kind there are at least.
WANTED = {"value rules": 10, "layouts and padding": 10, "tails and strides": 10, "kernels": 15, "plan, files, threads": 15}
KEYS = ["bug", "category", "file", "why", "test"]
CANNOT_RUN = (2, 126, 127)                             # exit status: no such case; no such program, or libraries that do not fit
DEADLINE = 45                                          # seconds for one run of a test program: some bugs make it wait for ever
# Of the build's kernels, those that bugs are caught with; the fewer there are, the sooner a context is made.
KERNELS = ["common/", "simt/", "sm90/gemm_small"]


class Bug:
    def __init__(self):
        self.fields, self.old, self.new = {}, [], []

    def __getattr__(self, key):
        return self.fields[key]

    def plant(self, text):
        """The text with the bug, or a ValueError."""
        old, new = "\n".join(self.old), "\n".join(self.new)
        if text.count(old) != 1:
            raise ValueError(f"old text found {text.count(old)} times in {self.file}, not once")
        if old == new:
            raise ValueError("new text is the old text")
        return text.replace(old, new)


def read_bugs(path):
    bugs = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            word, _, rest = line.partition(" ")
            if not line or line.startswith("#"):
                continue
            if word == "bug":
                bugs.append(Bug())
            if word in KEYS and bugs and not bugs[-1].old:
                bugs[-1].fields[word] = rest.strip()
            elif line[0] == "-" and bugs and not bugs[-1].new:
                bugs[-1].old.append(line[1:])
            elif line[0] == "+" and bugs and bugs[-1].old:
                bugs[-1].new.append(line[1:])
            else:
                raise SystemExit(f"{path}:{number}: not understood: {line}")
    for bug in bugs:
        missing = [key for key in KEYS if not bug.fields.get(key)]
        if missing or not bug.old or not bug.new:
            raise SystemExit(f"{path}: {bug.fields.get('bug')}: lacks {', '.join(missing) or 'old or new text'}")
        if bug.category not in WANTED:
            raise SystemExit(f"{path}: {bug.bug}: no category \"{bug.category}\"")
    return bugs


def call(command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **options)


def has_main(path):
    with open(path, encoding="utf-8") as file:
        return re.search(r"^int main\(", file.read(), flags=re.M) is not None


def must(command):
    done = call(command)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)}\n{done.stdout}")


class Kernels:
    """The kernels of a build as a library of their own, libkernels.so: PTX, as cudasim reads it, in a table like embedded.c's."""

    def __init__(self, build, folder):
        self.build, self.folder, self.table = os.path.abspath(build), folder, None
        self.ptx, self.commands, self.dependencies = {}, {}, {}
        table = os.path.join(build, "src/cuda/embedded.c")
        self.simulator = os.path.join(self.build, "lib/libcudasim.so")
        if not os.path.exists(table) or not os.path.exists(self.simulator):
            return
        with open(table, encoding="utf-8") as file:
            self.table = file.read()
        for name, fatbin in re.findall(r'^EMBED\((\w+), "([^"]+)"\)$', self.table, flags=re.M):
            self.read(name, fatbin)
        if not self.ptx:
            self.table = None
            return
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
            self.nvcc = re.search(r"^NVCC:FILEPATH=(.*)$", file.read(), flags=re.M).group(1)

    def read(self, name, fatbin):
        row = re.search(r'\{ "([^"]+)", (\d+), (\w+), bsmi_fatbin_%s, ' % name, self.table)
        if not row.group(1).startswith(tuple(KERNELS)):
            return
        with open(fatbin, "rb") as file:
            data = file.read()
        begin = data.rindex(b".version")
        self.ptx[name] = os.path.join(self.folder, name + ".ptx")
        with open(self.ptx[name], "wb") as out:
            out.write(data[begin:data.index(b"\0", begin)] + b"\0")
        suffix = {"BSMI_THIS_ALONE": "a", "BSMI_THIS_FAMILY": "f"}.get(row.group(3), "")
        self.commands[name] = (f"src/cuda/{row.group(1)}.cu", f"compute_{row.group(2)}{suffix}")
        with open(fatbin + ".d", encoding="utf-8") as file:
            words = file.read().replace("\\\n", " ").split()[1:]
        self.dependencies[name] = {os.path.relpath(os.path.join(SOURCE, word), SOURCE) for word in words}

    def compile(self, tree, name, to):
        source, architecture = self.commands[name]
        must([self.nvcc, "-ptx", "-arch=" + architecture, "-std=c++17", "-O3", "--fmad=false", f"-I{tree}/src", f"-I{tree}/include",
              "-o", to, os.path.join(tree, source)])
        with open(to, "ab") as out:
            out.write(b"\0")

    def link(self, compiler, folder, changed):
        """libkernels.so in a folder; changed: {name: PTX} instead of the build's."""
        files = {**self.ptx, **changed}
        text = re.sub(r'^EMBED\((\w+), "[^"]+"\)\n',
                      lambda m: f'EMBED({m.group(1)}, "{files[m.group(1)]}")\n' if m.group(1) in files else "", self.table, flags=re.M)
        text = re.sub(r"^.*bsmi_fatbin_end_(\w+) },\n", lambda m: m.group(0) if m.group(1) in files else "", text, flags=re.M)
        path = os.path.join(folder, "embedded.c")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        must([compiler, "-w", "-shared", "-fPIC", f"-I{SOURCE}/src", path, "-o", os.path.join(folder, "libkernels.so")])

    def environment(self):
        return {} if self.table is None else {"BLOCKSCALE_LIBCUDA": self.simulator, "CUDASIM_QUIET": "1"}


class Base:
    """What is built once, without any bug: objects of the library, the library, and the test programs that are asked for."""

    FLAGS = ["-w", "-D_GNU_SOURCE", "-fPIC", "-ffp-contract=off", "-fno-fast-math", "-fno-semantic-interposition"]

    def __init__(self, folder, compiler, build):
        self.folder, self.compiler = folder, compiler
        os.makedirs(folder)
        self.flags = self.FLAGS + self.openmp()
        self.programs, self.helpers = self.read_programs(build)
        self.kernels = Kernels(build, folder)
        with open(os.path.join(build, "tests/list.txt"), encoding="utf-8") as file:
            self.listed = {line.split()[0] for line in file if line.strip()}
        self.sources = [os.path.relpath(path, SOURCE)
                        for room in ROOMS for path in sorted(glob.glob(os.path.join(SOURCE, "src", room, "*.c")))]
        if self.kernels.table is not None:
            self.sources.remove("src/cuda/not_embedded.c")
            self.kernels.link(compiler, folder, {})
        self.dependencies, self.controls, self.locks, self.lock = {}, {}, {}, threading.Lock()

    def openmp(self):
        path = os.path.join(self.folder, "probe.c")
        with open(path, "w", encoding="utf-8") as out:
            out.write("#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n")
        return ["-fopenmp"] if call([self.compiler, "-fopenmp", path, "-o", path + ".out"]).returncode == 0 else []

    @staticmethod
    def read_programs(build):
        """{program: its sources}, and the same of the libraries that programs share, from the commands of the build.  With a
        source come its definitions and include folders."""
        programs, helpers = {}, {}
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            for entry in json.load(file):
                path = os.path.relpath(entry["file"], SOURCE)
                target = re.search(r"CMakeFiles/([\w-]+)\.dir/", entry["command"]).group(1)
                options = [word for word in shlex.split(entry["command"]) if word.startswith(("-D", "-I"))]
                if not path.startswith(("tests/", "src/")):
                    continue
                if target.startswith("test_") and target != "test_harness":
                    programs.setdefault(target, []).append((path, options))
                elif path.startswith("tests/") and not has_main(os.path.join(SOURCE, path)):
                    helpers.setdefault(target, []).append((path, options))
        return programs, helpers

    def path(self, *parts): return os.path.join(self.folder, *parts)

    def compile(self, tree, source, target, options=()):
        """Compiles a file of a tree of sources; returns the files that the object depends on."""
        level = "-O2" if source.startswith("src/cpu/") else "-O1"      # kernels are slow to test otherwise
        moved = [word.replace(SOURCE, tree) for word in options]
        must([self.compiler, level, *self.flags, *moved, f"-I{tree}/include", f"-I{tree}/src", f"-I{tree}/tests",
              f"-I{SOURCE}/third_party", "-MMD", "-MF", target + ".d",
              "-c", os.path.join(tree, source), "-o", target])
        with open(target + ".d", encoding="utf-8") as file:
            words = file.read().replace("\\\n", " ").split()[1:]
        return {os.path.relpath(os.path.realpath(word), os.path.realpath(tree)) for word in words}

    def object(self, source): return self.path(source.replace("/", "-") + ".o")

    def link_library(self, objects, folder):
        kernels = ["-L" + self.folder, "-lkernels"] if self.kernels.table is not None else []
        must([self.compiler, "-shared", *self.flags, *objects, "-o", os.path.join(folder, "libblockscale.so"), *kernels,
              "-lm", "-lpthread", "-ldl"])

    def build_object(self, source): self.dependencies[source] = self.compile(SOURCE, source, self.object(source))

    def build_library(self, pool):
        list(pool.map(self.build_object, self.sources))
        self.link_library([self.object(source) for source in self.sources], self.folder)
        for name, files in self.helpers.items():
            for path, options in files:
                self.compile(SOURCE, path, self.object(path), options)
            must(["ar", "rcs", self.path(name + ".a"), *[self.object(path) for path, _ in files]])

    def build_program(self, tree, name, folder):
        """Builds a test program in `folder`; returns the files it depends on."""
        used, objects = set(), []
        for number, (source, options) in enumerate(self.programs[name]):
            objects.append(os.path.join(folder, f"{name}-{number}.o"))
            used |= self.compile(tree, source, objects[-1], options)
        helper = self.once(("helper", name), lambda: next((h for h in sorted(self.helpers) if self.links(objects, h, os.path.join(folder, name))), None))
        if helper is None or not self.links(objects, helper, os.path.join(folder, name)):
            raise RuntimeError(f"{name} does not link")
        return used

    def links(self, objects, helper, program):
        """A program is linked with the harness and one library of helpers: whichever has what it lacks."""
        kernels = ["-lkernels"] if self.kernels.table is not None else []
        return call([self.compiler, *self.flags, *objects, "-o", program, self.path(helper + ".a"), self.path("test_harness.a"),
                     "-L" + self.folder, "-lblockscale", *kernels, "-lm", "-lpthread", "-ldl"]).returncode == 0

    def once(self, key, make):
        """make(), the first time that it is asked for."""
        with self.lock:
            lock = self.locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self.controls:
                self.controls[key] = make()
            return self.controls[key]

    def program(self, name):
        """The files that a program of the base depends on."""
        return self.once(("program", name), lambda: self.build_program(SOURCE, name, self.folder))

    def passes(self, name, arguments, folder):
        """Whether a program passes with the libraries in `folder`, what it printed, and whether it ran at all."""
        program = os.path.join(folder, name)
        if not os.path.exists(program):
            program = self.path(name)
        try:
            done = call([program, *arguments], cwd=folder, timeout=DEADLINE,
                        env={**os.environ, **self.kernels.environment(), "LD_LIBRARY_PATH": folder + ":" + self.folder,
                             "BLOCKSCALE_TEST_STOP": "1"})
        except subprocess.TimeoutExpired:
            return False, "deadline", True
        return done.returncode == 0, done.stdout, done.returncode not in CANNOT_RUN

    def control(self, name, arguments):
        """The same without a bug."""
        self.program(name)
        return self.once(("control", name, *arguments), lambda: self.passes(name, arguments, self.folder))


class Bench:
    """A copy of the sources in which one bug at a time is planted."""

    def __init__(self, base, folder):
        self.base, self.folder = base, folder
        for part in ("src", "include", "tests", "abi"):
            shutil.copytree(os.path.join(SOURCE, part), os.path.join(folder, part))

    def try_bug(self, bug):
        """"caught", "caught by NAME", "survived", or a sentence about what is wrong with the bug itself."""
        name, *only = bug.test.split()
        arguments = [word for case in only for word in ("--only", case)]
        if name not in self.base.programs:
            return f"no test program {name}"
        self.base.program(name)
        if self.base.asks_control or name not in self.base.listed:
            fine, output, _ = self.base.control(name, arguments)
            if not fine:
                return f"the test fails without the bug: {output}"
        path = os.path.join(self.folder, bug.file)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            changed = bug.plant(text)
        except ValueError as error:
            return str(error)
        folder = tempfile.mkdtemp(dir=self.folder)
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(changed)
            return self.try_planted(bug, name, arguments, folder)
        except RuntimeError as error:
            return f"does not build: {error}"
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            shutil.rmtree(folder)

    def fails(self, bug, name, arguments, folder):
        if bug.file in self.base.program(name):
            self.base.build_program(self.folder, name, folder)
        passed, output, ran = self.base.passes(name, arguments, folder)
        if not ran:
            raise RuntimeError(f"{name} cannot run: {output}")
        return not passed

    def link_planted(self, bug, sources, folder):
        """The library and its kernels with these sources compiled again."""
        base = self.base
        objects = []
        for source in base.sources:
            objects.append(base.object(source))
            again = os.path.join(folder, os.path.basename(objects[-1]))
            if source in sources and not os.path.exists(again):
                base.compile(self.folder, source, again)
            if os.path.exists(again):
                objects[-1] = again
        base.link_library(objects, folder)
        kernels = [name for name in base.kernels.ptx if bug.file in base.kernels.dependencies[name]]
        for kernel in kernels:
            base.kernels.compile(self.folder, kernel, os.path.join(folder, kernel + ".ptx"))
        if kernels:
            base.kernels.link(base.compiler, folder, {kernel: os.path.join(folder, kernel + ".ptx") for kernel in kernels})
        return kernels

    def try_planted(self, bug, name, arguments, folder):
        """A bug in a header that much depends on is tried in its own room first, which is often enough to be noticed."""
        base = self.base
        touched = [source for source in base.sources if bug.file in base.dependencies[source]]
        room = [source for source in touched if os.path.dirname(source) == os.path.dirname(bug.file)]
        if 0 < len(room) < len(touched):
            self.link_planted(bug, room, folder)
            if self.fails(bug, name, arguments, folder):
                return "caught"
        kernels = self.link_planted(bug, touched, folder)
        if not touched and not kernels and bug.file not in base.program(name):
            return f"neither the library, its kernels nor {name} depends on {bug.file}"
        if self.fails(bug, name, arguments, folder):
            return "caught"
        for other in sorted(base.programs) if base.asks_others else []:
            if base.control(other, [])[0] and self.fails(bug, other, [], folder):
                return f"caught by {other}"
        return "survived"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("compiler")
    parser.add_argument("--only", default="", help="regular expression for the names of bugs")
    parser.add_argument("--control", action="store_true", help="each named case must pass without the bug")
    parser.add_argument("--named", action="store_true", help="no other test runs where the named one does not notice")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    everything = [bug for path in sorted(glob.glob(os.path.join(HERE, "*.bugs"))) for bug in read_bugs(path)]
    bugs = [bug for bug in everything if re.search(options.only, bug.bug)]
    names = [bug.bug for bug in everything]
    assert len(names) == len(set(names)), "two bugs have one name"
    started = time.monotonic()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        base = Base(os.path.join(scratch, "base"), options.compiler, options.build)
        base.asks_control, base.asks_others = options.control, not options.named
        base.build_library(pool)
        skipped = [bug for bug in bugs if bug.file.startswith("src/cuda/")] if base.kernels.table is None else []
        if skipped:
            print("skipped: bugs in src/cuda, as this build has no kernels or no cudasim", file=sys.stderr)
            bugs = [bug for bug in bugs if bug not in skipped]
        benches = queue.SimpleQueue()
        for number in range(options.jobs):
            benches.put(Bench(base, os.path.join(scratch, str(number))))

        def work(bug):
            bench = benches.get()
            try:
                return bug, bench.try_bug(bug)
            finally:
                benches.put(bench)

        for done in concurrent.futures.as_completed([pool.submit(work, bug) for bug in bugs]):
            bug, verdict = done.result()
            if verdict.startswith("caught"):
                if verdict != "caught":
                    print(f"  {bug.bug}: {verdict}, not by {bug.test}", flush=True)
            else:
                failed += 1
                print(f"  {bug.bug} ({bug.file}: {bug.why}): {verdict}", flush=True)
    if not options.only:
        for category, wanted in WANTED.items():
            count = sum(bug.category == category for bug in bugs)
            if count < wanted:
                failed += 1
                print(f"  {category}: {count} bugs, at least {wanted} are wanted")
    print(f"{len(bugs)} planted, {len(bugs) - failed} caught, {time.monotonic() - started:.0f} s")
    print(f"planted: {len(bugs) - failed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed or not bugs else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""A test of the tests: small bugs, kept as data in *.bugs, are planted one at a time, and the tests must notice each.

    planted_test.py BUILD_FOLDER [--only REGEX] [--jobs N] [--control] [--named] [--costs]

For a bug, a copy of the source is changed and the objects that depend on it are compiled again, by the build's own
commands; the test program that the bug names is linked with them in front of the build's library, and its case runs; it
must fail.  Where it does not, every other test program runs; if all pass, the bug survived, and a test is missing.  A
program that cannot run has not failed.
That each case passes without the bug is what `make test` finds out beside this; --control asks it here too.

A header is in many objects.  Those that the bug names ("objects") are compiled again first, then those of the header's
own room, which is often enough; then all; last the kernels for a GPU.

Kernels for a GPU run on the build's cudasim, as PTX; those of a file that a bug changes are compiled anew, to PTX.

A .bugs file holds entries of this form ("objects" may be left out); "-" lines are the old text, which must be found
exactly once, "+" lines the new:

    bug      e8m0_zero_is_zero
    category value rules
    file     src/format/format.h
    why      code 0 is 2^-127, not zero
    test     test_decode every_e8m0_code
    objects  src/format/decode.c
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
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, ".."))
import process
from fatbin import ptx_of

# How many bugs of each kind there are at least.
WANTED = {"value rules": 10, "layouts and padding": 10, "tails and strides": 10, "kernels": 15,
          "plan, files, threads": 15}
KEYS = ["bug", "category", "file", "why", "test"]
OPTIONAL = ["objects"]                                 # sources of the library
# Exit status where there is no such case, no such program, or where libraries do not fit.
CANNOT_RUN = (2, 126, 127)
DEADLINE = 45                                # seconds for one run of a test program: some bugs make it wait for ever
PROCESSOR = 20                               # of these on a processor, for some wait at work; no case takes five
LIMIT = 900                                            # seconds for a compiler
# Of the build's kernels, those that bugs are caught with; the fewer there are, the sooner a context is made.
# shared_memory_fp8 has clusters, the last three make, unpack and read prepacked weights.
KERNELS = ["dequantize/", "epilogue/", "quantize/", "scales/", "simt/", "sm90/kernels/shared_memory_small",
           "sm90/kernels/shared_memory_fp8", "sm90/kernels/prepack", "sm90/kernels/unpack",
           "sm90/kernels/mixed_input_prepacked"]


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
            if word in KEYS + OPTIONAL and bugs and not bugs[-1].old:
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


costs = threading.local()                              # of: what the bug at hand costs, in seconds of processor time


def call(command, seconds, what="running", **options):
    try:
        status, out, err, used = process.run(command, seconds, **options)
    except OSError as error:
        return 127, "", str(error)
    if hasattr(costs, "of"):
        costs.of[what] += used
    return status, out, err


def must(command, **options):
    status, out, err = call(command, LIMIT, "compiling", **options)
    if status != 0:
        raise RuntimeError(f"{shlex.join(command)}\n{out}{err}")


class Kernels:
    """The kernels of a build as an object of their own, kernels.o: PTX, as cudasim reads it, in a table like
    embedded.c's."""

    def __init__(self, build, folder):
        self.build, self.folder, self.table = os.path.abspath(build), folder, None
        self.ptx, self.commands, self.dependencies = {}, {}, {}
        self.object = os.path.join(folder, "kernels.o")
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
        self.ptx[name] = os.path.join(self.folder, name + ".ptx")
        with open(self.ptx[name], "wb") as out:
            out.write(ptx_of(os.path.join(self.build, "bin/cudasim"), fatbin) + b"\0")
        suffix = {"BSMI_THIS_ALONE": "a", "BSMI_THIS_FAMILY": "f"}.get(row.group(3), "")
        self.commands[name] = (f"src/cuda/{row.group(1)}.cu", f"compute_{row.group(2)}{suffix}")
        with open(fatbin + ".d", encoding="utf-8") as file:
            words = file.read().replace("\\\n", " ").split()[1:]
        self.dependencies[name] = {os.path.relpath(os.path.join(SOURCE, word), SOURCE) for word in words}

    def compile(self, tree, name, to):
        source, architecture = self.commands[name]
        must([self.nvcc, "-ptx", "-arch=" + architecture, "-std=c++17", "-O3", "--fmad=false", f"-I{tree}/src",
              f"-I{tree}/include", "-o", to, os.path.join(tree, source)])
        with open(to, "ab") as out:
            out.write(b"\0")

    def make_object(self, compiler, target, changed):
        """The object; changed: {name: PTX} instead of the build's."""
        files = {**self.ptx, **changed}
        text = re.sub(r'^EMBED\((\w+), "[^"]+"\)\n',
                      lambda m: f'EMBED({m.group(1)}, "{files[m.group(1)]}")\n' if m.group(1) in files else "",
                      self.table, flags=re.M)
        text = re.sub(r"^.*bsmi_fatbin_end_(\w+) },\n", lambda m: m.group(0) if m.group(1) in files else "", text,
                      flags=re.M)
        path = os.path.splitext(target)[0] + ".c"
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        must([compiler, "-w", "-fPIC", f"-I{SOURCE}/src", "-c", path, "-o", target])

    def environment(self):
        return {} if self.table is None else {"BLOCKSCALE_LIBCUDA": self.simulator, "CUDASIM_QUIET": "1"}


class Build:
    """A build's objects and the commands that made them."""

    def __init__(self, folder, scratch):
        self.folder, self.scratch = os.path.abspath(folder), scratch
        self.compiles = {}                             # object: source, command, folder
        self.library = {}                              # source of the library: its object
        self.emulated = {}                             # the same where the library's matrix units are emulated
        with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as file:
            for entry in json.load(file):
                words = shlex.split(entry["command"])
                made = os.path.join(entry["directory"], words[words.index("-o") + 1])
                self.compiles[made] = (os.path.relpath(entry["file"], SOURCE), words, entry["directory"])
                if "/blockscale_objects.dir/" in made:
                    self.library[os.path.relpath(entry["file"], SOURCE)] = made
                if "/blockscale_emulated_objects.dir/" in made:
                    self.emulated[os.path.relpath(entry["file"], SOURCE)] = made
        self.links = {}                                # program: its folder and the command that links it there
        for path in glob.glob(os.path.join(folder, "tests/**/CMakeFiles/test_*.dir/link.txt"), recursive=True):
            with open(path, encoding="utf-8") as file:
                place, _, target = os.path.dirname(os.path.abspath(path)).rpartition("/CMakeFiles/")
                self.links[target[:-len(".dir")]] = (place, shlex.split(file.read()))
        self.links.pop("test_harness")
        self.compiler = next(iter(self.compiles.values()))[1][0]
        with open(os.path.join(folder, "tests/list.txt"), encoding="utf-8") as file:
            self.listed = {line.split()[0] for line in file if line.strip()}
        self.kernels = Kernels(folder, scratch)
        if self.kernels.table is not None:
            self.kernels.make_object(self.compiler, self.kernels.object, {})
        self.dependencies = {made: self.read_dependencies(made) for made in self.library.values()}
        self.controls, self.lock = {}, threading.Lock()

    def read_dependencies(self, made):
        with open(made + ".d", encoding="utf-8") as file:
            words = file.read().replace("\\\n", " ").split()[1:]
        return {os.path.relpath(os.path.join(self.compiles[made][2], word), SOURCE) for word in words}

    def own_objects(self, name):
        """The objects of a program itself."""
        folder, words = self.links[name]
        return [made for made in (os.path.join(folder, word) for word in words) if made in self.compiles]

    def library_objects(self, name, sources):
        """The library's objects of these sources, as a program is linked with them."""
        emulated = any(word.endswith("/libblockscale_emulated.a") for word in self.links[name][1])
        return [(self.emulated if emulated and source in self.emulated else self.library)[source] for source in sources]

    def compile(self, tree, made, target):
        """Compiles what an object of the build was made of, from a tree of sources.  Kernels are slow to test without
        -O2."""
        source, words, _ = self.compiles[made]
        level = "-O2" if source.startswith("src/cpu/") else "-O1"
        words = [word for word in words if word not in ("-g", "-O2", "-O3", "-Werror")]
        at = words.index("-o")
        del words[at:at + 4]                           # -o OBJECT -c SOURCE
        moved = [re.sub(re.escape(SOURCE) + r"/(include|src|tests)(?=/|$)", rf"{tree}/\1", word) for word in words]
        must([*moved, level, "-w", "-c", os.path.join(tree, source), "-o", target])

    def link(self, name, replaced, kernels, target):
        """Links a program with objects instead of some of its own and of the library's:
        {object of the build: object}."""
        folder, words = self.links[name]
        words = [replaced.get(os.path.join(folder, word), word) for word in words]
        own = self.own_objects(name)
        first = [new for old, new in replaced.items() if old not in own]
        if self.kernels.table is not None:
            first.append(kernels)
        at = words.index("-o")
        must([*words[:at], *first, "-o", target, *words[at + 2:]], cwd=folder)

    def passes(self, program, arguments):
        """Whether a program passes, what it printed, and its exit status (None: it missed its deadline)."""
        limited = ["sh", "-c", f'ulimit -t {PROCESSOR}; exec "$@"', "sh", program, *arguments]
        status, out, err = call(limited, DEADLINE, cwd=os.path.dirname(program),
                                env={**os.environ, **self.kernels.environment(), "BLOCKSCALE_TEST_STOP": "1"})
        return status == 0, out + err, None if status in (-signal.SIGXCPU, -signal.SIGKILL) else status

    def control(self, name, arguments, again=False):
        """The same without a bug; again: now, whatever was found before."""
        with self.lock:
            if again or (name, *arguments) not in self.controls:
                program = os.path.join(self.scratch, name)
                self.link(name, {}, self.kernels.object, program)
                self.controls[name, *arguments] = self.passes(program, arguments)
            return self.controls[name, *arguments]


class Bench:
    """A copy of the sources in which one bug at a time is planted."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        for part in ("src", "include", "tests"):
            shutil.copytree(os.path.join(SOURCE, part), os.path.join(folder, part))

    def try_bug(self, bug):
        """"caught", "caught by NAME", "survived", or a sentence about what is wrong with the bug itself."""
        name, *only = bug.test.split()
        arguments = [word for case in only for word in ("--only", case)]
        if name not in self.build.links:
            return f"no test program {name}"
        if self.build.asks_control or name not in self.build.listed:
            fine, output, _ = self.build.control(name, arguments)
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

    def compile_kernels(self, bug, folder):
        """The object with the kernels, those made of the bug's file compiled again."""
        kernels = self.build.kernels
        changed = {name: os.path.join(folder, name + ".ptx")
                   for name in kernels.ptx if bug.file in kernels.dependencies[name]}
        if not changed:
            return kernels.object
        for name, to in changed.items():
            kernels.compile(self.folder, name, to)
        kernels.make_object(self.build.compiler, os.path.join(folder, "kernels.o"), changed)
        return os.path.join(folder, "kernels.o")

    def fails(self, bug, name, arguments, sources, kernels, folder):
        """Whether the program fails with the bug in these sources of the library, and in its own."""
        build = self.build
        own = [made for made in build.own_objects(name) if bug.file in build.read_dependencies(made)]
        replaced = {}
        for made in build.library_objects(name, sources) + own:
            replaced[made] = os.path.join(folder, re.sub(r"\W", "_", os.path.relpath(made, build.folder)) + ".o")
            if not os.path.exists(replaced[made]):
                build.compile(self.folder, made, replaced[made])
        program = os.path.join(folder, name)
        build.link(name, replaced, kernels, program)
        passed, output, status = build.passes(program, arguments)
        if status in CANNOT_RUN:
            raise RuntimeError(f"{name} cannot run: {output}")
        if status is None:                             # a busy machine is no notice: without the bug it must be in time
            return build.control(name, arguments, again=True)[2] is not None
        return not passed

    def try_planted(self, bug, name, arguments, folder):
        build = self.build
        touched = [source for source, made in build.library.items() if bug.file in build.dependencies[made]]
        own = [made for made in build.own_objects(name) if bug.file in build.read_dependencies(made)]
        named = bug.fields.get("objects", "").split()
        strangers = [source for source in named if source not in touched]
        if strangers:
            return f"{', '.join(strangers)}: no source of the library that depends on {bug.file}"
        room = [source for source in touched if os.path.dirname(source) == os.path.dirname(bug.file)]
        stages = [named, room, touched] if touched else [[]] if own else []
        for at, sources in enumerate(stages):
            if sources in stages[:at] or (touched and not sources):
                continue
            if self.fails(bug, name, arguments, sources, build.kernels.object, folder):
                return "caught"
        kernels = self.compile_kernels(bug, folder)
        if kernels != build.kernels.object and self.fails(bug, name, arguments, touched, kernels, folder):
            return "caught"
        if not touched and not own and kernels == build.kernels.object:
            return f"neither the library, its kernels nor {name} depends on {bug.file}"
        for other in sorted(build.links) if build.asks_others else []:
            if build.control(other, [])[0] and self.fails(bug, other, [], touched, kernels, folder):
                return f"caught by {other}"
        return "survived"


def runs_kernels(bug):
    """Whether the bug is in the CUDA backend, or noticed by its tests alone."""
    return bug.file.startswith("src/cuda/") or bug.test.startswith("test_gpu_")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--only", default="", help="regular expression for the names of bugs")
    parser.add_argument("--control", action="store_true", help="each named case must pass without the bug")
    parser.add_argument("--named", action="store_true", help="no other test runs where the named one does not notice")
    parser.add_argument("--costs", action="store_true", help="seconds of processor time for each bug")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    everything = [bug for path in sorted(glob.glob(os.path.join(HERE, "*.bugs"))) for bug in read_bugs(path)]
    bugs = [bug for bug in everything if re.search(options.only, bug.bug)]
    names = [bug.bug for bug in everything]
    assert len(names) == len(set(names)), "two bugs have one name"
    started = time.monotonic()
    failed = 0
    with (tempfile.TemporaryDirectory(prefix="planted-") as scratch,
          concurrent.futures.ThreadPoolExecutor(options.jobs) as pool):
        build = Build(options.build, scratch)
        build.asks_control, build.asks_others = options.control, not options.named
        skipped = [bug for bug in bugs if runs_kernels(bug)] if build.kernels.table is None else []
        if skipped:
            print("skipped: bugs of the CUDA backend, as this build has no kernels or no cudasim", file=sys.stderr)
            bugs = [bug for bug in bugs if bug not in skipped]
        benches = queue.SimpleQueue()
        for number in range(options.jobs):
            benches.put(Bench(build, os.path.join(scratch, str(number))))

        def work(bug):
            bench = benches.get()
            costs.of = {"compiling": 0, "running": 0}
            try:
                return bug, bench.try_bug(bug), costs.of
            finally:
                benches.put(bench)

        for done in concurrent.futures.as_completed([pool.submit(work, bug) for bug in bugs]):
            bug, verdict, cost = done.result()
            if options.costs:
                print(f"  {bug.bug}: compiling {cost['compiling']:.1f} s, running {cost['running']:.1f} s", flush=True)
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

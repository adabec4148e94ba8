#!/usr/bin/env python3
"""The random differential search: problems that the public headers allow, drawn from a seed, held to numbers computed
here by NumPy alone.

    search.py LIBRARY [--target cpu|python|cudasim:90a|cudasim:100a|cudasim:120a|gfxsim|gpu|hip|all] [--problems N]
              [--seconds S] [--seed N] [--first N] [--jobs N] [--only KIND]

LIBRARY is libblockscale.so.  Target python is the CPU through the Python package: that beside LIBRARY if it lies in
an installed package, else the checkout's.  Problems run in processes of their own: one that crashes or hangs is
reported with its number, as is every wrong result, with the command that repeats it; it is then made smaller.  A
failure ends the search after --failures of them (3). The last line counts problems: those that the library refused as
its headers announce are skipped."""
import argparse
import importlib.util
import json
import os
import queue
import random
import re
import shlex
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.dirname(HERE))

import shrink                                          # noqa: E402

TARGETS = ["cpu", "cudasim:90a", "cudasim:100a", "cudasim:120a", "gfxsim", "gpu", "hip"]
CHUNK = 50                                             # problems that a process is given at a time


def environment(library, target):
    """What a process sees: cudasim instead of a driver, one device of it."""
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
    if target.startswith("cudasim:"):
        simulator = os.path.join(os.path.dirname(os.path.abspath(library)), "libcudasim.so")
        env.update(BLOCKSCALE_LIBCUDA=simulator, CUDASIM_DEVICE="sm_" + target.split(":")[1], CUDASIM_QUIET="1")
        env.setdefault("CUDASIM_REPORTS", "stop")
        env.setdefault("CUDASIM_THREADS", "1")
        env.setdefault("CUDASIM_SMS", "4")
    if target == "gfxsim":
        env.update(BLOCKSCALE_LIBHIP=os.path.join(os.path.dirname(os.path.abspath(library)), "libgfxsim.so"))
        env.setdefault("GFXSIM_THREADS", "1")
    return env


class Crash(Exception):
    """A process that died or did not answer."""


class Missing(Exception):
    """Why a target cannot be had here."""


class Worker:
    """A process that runs problems, one after the other."""

    def __init__(self, options):
        self.options = options
        self.answers, self.process = queue.Queue(), None
        self._start()

    def _start(self):
        command = [sys.executable, os.path.join(HERE, "worker.py"), self.options.library, self.options.target,
                   self.options.only or ""]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=environment(self.options.library, self.options.target))
        self.answers, self.errors = queue.Queue(), []
        for stream, function in ((self.process.stdout, self._read), (self.process.stderr, self._read_errors)):
            threading.Thread(target=function, args=(stream, self.answers, self.errors), daemon=True).start()
        answer = self._next(self.options.start)
        if "missing" in answer:
            raise Missing(answer["missing"])

    @staticmethod
    def _read(stream, answers, _):
        for line in stream:
            answers.put(json.loads(line))
        answers.put(None)

    @staticmethod
    def _read_errors(stream, _, errors):
        for line in stream:
            errors.append(line.rstrip())
            del errors[:-30]

    def _next(self, seconds):
        try:
            answer = self.answers.get(timeout=seconds)
        except queue.Empty:
            self.end()
            raise Crash("no answer after %g s" % seconds) from None
        if answer is None:
            status = self.process.wait()
            time.sleep(0.05)                           # for the last lines of its standard error
            raise Crash("the process ended with status %d%s"
                        % (status, "".join("\n    " + e for e in self.errors[-12:])))
        return answer

    def end(self):
        self.process.kill()
        self.process.wait()

    def _tell(self, **job):
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def run(self, first, count):
        """Answers for problems first, first + 1, ..."""
        index, end = first, first + count
        while index < end:
            self._tell(seed=self.options.seed, first=index, count=end - index)
            try:
                answer = self._next(self.options.hang)
                while "done" not in answer:
                    yield answer
                    index = answer["index"] + 1
                    answer = self._next(self.options.hang)
            except Crash as crash:
                if index < end and self.process.poll() != 3:
                    yield {"index": index, "outcome": "wrong", "sentence": str(crash), "counts": {}, "kind": "crash",
                           "seconds": 0}
                    index += 1
                self._start()

    def ask(self, problem):
        """The answer to one problem; a crash is an answer."""
        if self.process.poll() is not None:
            self._start()
        self._tell(problem=problem)
        try:
            return self._next(self.options.hang)
        except Crash as crash:
            self._start()
            return {"outcome": "wrong", "sentence": str(crash), "counts": {}}


class Tally:
    """What ran, and what it found."""

    def __init__(self, options):
        self.options, self.lock = options, threading.Lock()
        self.ran, self.counts, self.refusals, self.failures = {"ok": 0, "wrong": 0, "refused": 0}, {}, {}, []
        self.began, self.next, self.stop, self.kinds = time.monotonic(), options.first, False, {}

    def chunk(self):
        """The next problems to run, or None."""
        with self.lock:
            late = self.options.seconds and time.monotonic() - self.began > self.options.seconds
            left = self.options.first + self.options.problems - self.next if self.options.problems else CHUNK
            if self.stop or late or left <= 0:
                return None
            first, self.next = self.next, self.next + min(CHUNK, left)
            return first, self.next - first

    def take(self, answer):
        with self.lock:
            self.ran[answer["outcome"]] += 1
            self.kinds[answer["kind"]] = self.kinds.get(answer["kind"], 0) + 1
            for key, value in answer["counts"].items():
                self.counts[key] = self.counts.get(key, 0) + value
            if answer["outcome"] == "refused":
                self.refusals[answer["sentence"]] = self.refusals.get(answer["sentence"], 0) + 1
            if answer["outcome"] == "wrong":
                self.failures.append(answer)
                self.stop = self.stop or len(self.failures) >= self.options.failures
                return True
        return False


def command_of(options, index):
    words = [os.path.relpath(os.path.join(HERE, "search.py")), options.library, "--target", options.target, "--seed",
             str(options.seed), "--first", str(index), "--problems", "1", "--jobs", "1"]
    words += ["--only", options.only] if options.only else []
    return "python3 " + " ".join(shlex.quote(word) for word in words)


def same_kind(one, other):
    """Whether two sentences tell of the same failure, numbers aside."""
    words = [re.split(r"[\d\[:]", sentence, maxsplit=1)[0] for sentence in (one, other)]
    return words[0] == words[1]


def report(options, worker, answer):
    """Prints a failure, with the smallest problem that still fails."""
    import draw
    problem = draw.of_number(options.seed, answer["index"], options.target, options.only)
    lines = ["FAILED problem %d of seed %d on %s: %s" % (answer["index"], options.seed, options.target,
                                                         answer["sentence"]),
             "  again: " + command_of(options, answer["index"]), "  problem: " + json.dumps(problem)]
    print("\n".join(lines), flush=True)
    if not options.shrink or answer["sentence"].startswith("the search itself"):
        return

    def still_fails(it):
        found = worker.ask(it)
        return found["outcome"] == "wrong" and same_kind(found["sentence"], answer["sentence"])

    small = shrink.shrink(problem, still_fails, options.shrink)
    print("  shrunk: %s\n    %s" % (json.dumps(small), worker.ask(small)["sentence"]), flush=True)


def work(options, tally):
    worker = Worker(options)
    try:
        while (chunk := tally.chunk()) is not None:
            for answer in worker.run(*chunk):
                if tally.take(answer):
                    helper = Worker(options)
                    report(options, helper, answer)
                    helper.end()
                if tally.stop:
                    break
    finally:
        worker.end()


def guarded(options, tally):
    try:
        work(options, tally)
    except Crash as crash:
        with tally.lock:
            tally.stop = True
            tally.ran["wrong"] += 1
        print("FAILED: a process did not start: %s" % crash, flush=True)


def search(options):
    """Searches on one target: the numbers of problems that passed, failed, and were skipped."""
    try:
        Worker(options).end()
    except Missing as missing:
        print("%s: skipped: %s" % (options.target, missing), file=sys.stderr)
        return 0, 0, 1
    tally = Tally(options)
    threads = [threading.Thread(target=guarded, args=(options, tally)) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    summary(options, tally, time.monotonic() - tally.began)
    return tally.ran["ok"], tally.ran["wrong"], tally.ran["refused"]


def summary(options, tally, took):
    print("seed %d, target %s: %d problems in %.1f s" % (options.seed, options.target, sum(tally.ran.values()), took))
    print("  kinds: " + ", ".join("%s %d" % item for item in sorted(tally.kinds.items())))
    for key, value in sorted(tally.counts.items()):
        print("  %-60s %d" % (key, value))
    for reason, count in sorted(tally.refusals.items()):
        print("  skipped: %s: %d" % (reason, count))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--problems", type=int, default=0, help="how many (without --seconds: 1000)")
    parser.add_argument("--seconds", type=float, default=0, help="how long, at most")
    parser.add_argument("--seed", type=int, help="without: a fresh one, which is printed")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="one kind of problem")
    parser.add_argument("--failures", type=int, default=3, help="how many end the search")
    parser.add_argument("--shrink", type=int, default=400, help="how many smaller problems are tried for each failure")
    parser.add_argument("--hang", type=float, default=120, help="seconds after which a problem counts as hanging")
    parser.add_argument("--start", type=float, default=300, help="seconds for a process to make its context")
    parser.add_argument("--name", default="search", help="of the last line")
    options = parser.parse_args()
    options.library = os.path.abspath(options.library)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    if not options.problems and not options.seconds:
        options.problems = 1000
    return options


def main():
    options = read_options()
    needed = ["numpy"] + (["cffi", "ml_dtypes"] if options.target == "python" else [])
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        print("%s: skipped: no %s" % (options.name, ", ".join(missing)), file=sys.stderr)
        print("%s: 0 passed, 0 failed, 1 skipped" % options.name)
        return 0
    targets = TARGETS if options.target == "all" else [options.target]
    found = [search(argparse.Namespace(**{**vars(options), "target": target})) for target in targets]
    passed, failed, skipped = (sum(column) for column in zip(*found))
    print("%s: %d passed, %d failed, %d skipped" % (options.name, passed, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

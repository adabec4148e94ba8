#!/usr/bin/env python3
"""Products on the CPU beside what else users have: oneDNN's bf16 product (PyTorch), the same after dequantizing, and
llama.cpp's MXFP4; one row beside reading the weights.  docs/design/measuring.md says how it measures.

    PYTHONPATH=python/src python3 bench/cpu/peers/peers.py [--quick | --goals] [--only WORD+WORD] [--json FILE]

With one thread the clock is its processor time, with several it is the wall's.  Without PyTorch or a wheel with
llama.cpp the rows beside them are skipped, and the output says so."""
import argparse
import datetime
import glob
import os
import statistics
import time
from typing import NamedTuple

import blockscale
from blockscale._library import ORDERS

import contenders
import ggml
import report
from contenders import torch

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(HERE, "..", "..", "..", "build", "release", "lib", "libbench_read.so")
FEW = 64                    # rows of A up to which the weights come from memory: copies of them take turns
PAUSE = 0.01                # seconds in which the threads of the one who ran before fall asleep
OURS, PORTABLE, ONEDNN, DEQUANTIZED, LLAMA, READ = NAMES = (
    "ours", "portable", "oneDNN", "dequantize + oneDNN", "llama.cpp", "read")


class Work(NamedTuple):
    a: str
    b: str
    m: int
    n: int
    k: int
    many: bool = False      # all threads, else one
    goals: tuple[tuple[str, float, float], ...] = ()     # (beside whom, reach, aim)
    quick: bool = False     # part of --quick

    @property
    def name(self):
        return self.a if self.a == self.b else f"{self.a} x {self.b}"

    @property
    def shape(self):
        return f"{self.m}x{self.n}x{self.k}"

    def copies(self, nbytes, cache_bytes):
        """So many that a copy has left the last cache when its turn comes again."""
        return 1 if self.m > FEW else max(2, -(-2 * cache_bytes // nbytes))


class Row(NamedTuple):
    work: Work
    threads: int
    kernels: dict[str, str]
    seconds: dict[str, list[float]]     # of one call, by contender


PAIRS = [("mxfp8_e4m3", "mxfp8_e4m3"), ("mxfp6_e3m2", "mxfp6_e3m2"), ("mxfp6_e2m3", "mxfp6_e2m3"),
         ("mxfp8_e4m3", "mxfp4"), ("bf16", "mxfp4"), ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("mxint8", "mxint8")]
WEIGHTS = [("bf16", "mxfp4"), ("bf16", "nvfp4"), ("bf16", "mxfp8_e4m3"), ("mxfp8_e4m3", "mxfp4")]


def works():
    """The table: what is measured, and what it is to reach."""
    for a, b in PAIRS:
        for size in (1024, 2048, 4096):
            goals = [(ONEDNN, 1.2, 2.0) if a == "mxfp4" else (ONEDNN, 1.0, 1.5)] if a != "mxint8" else []
            if a == "mxfp8_e4m3" == b and size == 2048:
                goals.append((PORTABLE, 7, 12))
            yield Work(a, b, size, size, size, goals=tuple(goals), quick=size == 2048)
    for a, b in WEIGHTS:
        for m in (1, 16, 32, 64):
            goals = [(READ, 0.75, 0.9)] if m == 1 else [(ONEDNN, 1.5, 2.5)] if b != "mxfp8_e4m3" else []
            yield Work(a, b, m, 4096, 4096, goals=tuple(goals), quick=(a, b) == WEIGHTS[0] or m == 1)
            yield Work(a, b, m, 4096, 4096, many=True, goals=tuple(goals if m == 1 else ()),
                       quick=(a, b) == WEIGHTS[0] or m == 1)
    for a, b in PAIRS:
        goals = {"mxfp8_e4m3": [(ONEDNN, 1.0, 1.3)], "mxfp4": [(ONEDNN, 1.2, 1.8)]}.get(a, []) if a == b else []
        for size in (2048, 4096):
            yield Work(a, b, size, size, size, many=True, goals=tuple(goals if size == 4096 else ()),
                       quick=bool(goals) and size == 4096)


def cache_bytes():
    """Of the largest cache that Linux tells of."""
    sizes = [1 << 25]
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
        sizes.append(int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]])
    return max(sizes)


def processor():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else "unknown processor"


def sampled(call, threads):
    """A function of a number of calls: seconds of one of them."""
    clock = time.thread_time if threads == 1 else time.perf_counter

    def sample(calls):
        if threads > 1:
            time.sleep(PAUSE)
            call()
        start = clock()
        for _ in range(calls):
            call()
        return (clock() - start) / calls
    return sample


class Bench:
    def __init__(self, options):
        self.options, self.values, self.cache = options, contenders.Values(), cache_bytes()
        self.reading = self.llama = None
        self.peers, self.used = [], {}
        if torch is None:
            self.peers.append("oneDNN: skipped, no PyTorch")
        try:
            self.llama = ggml.Ggml(options.ggml)
            self.peers.append(f"llama.cpp: {self.llama.name}")
        except OSError as error:
            self.peers.append(f"llama.cpp: skipped, {error}")
        try:
            self.reading = contenders.Reading(options.library, self.cache)
        except OSError as error:
            self.peers.append(f"reading: skipped, {error}")

    def set_threads(self, threads):
        blockscale.set_threads(threads)
        if torch is not None:
            torch.set_num_threads(threads)
        if self.llama is not None:
            self.llama.backend_cpu_set_n_threads(self.llama.backend, threads)

    def ask_onednn(self):
        if torch is not None:
            version, used = contenders.onednn_says(*(contenders.empty_bf16(64, 64).zero_() for _ in range(2)))
            self.peers.append(f"{version}: {used}")

    def row(self, work):
        threads = self.options.threads if work.many else 1
        self.set_threads(threads)
        ours = contenders.Ours(work, self.values, self.cache)
        samples = {OURS: sampled(ours.calls("k"), threads)}
        kernels = {OURS: ours.kernel("k")}
        if "portable" in ORDERS and self.wants_portable(work):
            samples[PORTABLE] = sampled(ours.calls("portable"), threads)
            kernels[PORTABLE] = ours.kernel("portable")
        if torch is not None:
            onednn = contenders.OneDnn(work, self.values, self.cache, ours)
            onednn.check()
            samples[ONEDNN] = sampled(onednn.ready(), threads)
            samples[DEQUANTIZED] = sampled(onednn.after_dequantizing(), threads)
        llama = None
        if self.llama is not None and work.b == "mxfp4" and work.a == "bf16":
            llama = contenders.LlamaCpp(self.llama, work, self.values, self.cache)
            samples[LLAMA] = sampled(llama.calls(), threads)
        if self.reading is not None and work.m == 1:
            samples[READ] = lambda calls: self.reading.seconds(ours.weight_bytes, threads)
        taken = self.alternate(samples)
        if llama is not None:
            llama.free()
        return Row(work, threads, kernels, taken)

    def wants_portable(self, work):
        brief = self.options.quick or self.options.goals
        return not brief or any(goal[0] == PORTABLE for goal in work.goals)

    def alternate(self, samples):
        """Rounds in which each contender has its turn, until the row has had its seconds."""
        calls, spent = {}, 0.0
        for name, sample in samples.items():
            sample(1)
            once = max(sample(1), 1e-7)
            calls[name] = 1 if name == READ else max(1, round(self.options.sample / once))
            spent += once * calls[name] + PAUSE
        rounds = min(self.options.rounds, max(3, int(self.options.seconds / spent)))
        taken = {name: [] for name in samples}
        for _ in range(rounds):
            for name, sample in samples.items():
                taken[name].append(sample(calls[name]))
        return taken


def ratio(row, beside):
    """Best over best, and the median of the rounds' own ratios."""
    ours, theirs = row.seconds[OURS], row.seconds[beside]
    return min(theirs) / min(ours), statistics.median(y / x for x, y in zip(ours, theirs))


def chosen(options):
    words = options.only.split("+") if options.only else []
    for work in works():
        text = f"{work.name} {work.shape} {'all' if work.many else 'one'}"
        if (work.quick or not options.quick) and (work.goals or not options.goals) and all(w in text for w in words):
            if not work.many or options.threads > 1:
                yield work


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer works, under a minute")
    parser.add_argument("--goals", action="store_true",
                        help="works that have a goal, and the portable order where one names it")
    parser.add_argument("--only", default="", help="works whose name, shape and threads (one, all) have these words")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="what all threads are")
    parser.add_argument("--rounds", type=int, default=31, help="rounds at most (31)")
    parser.add_argument("--seconds", type=float, help="for one row, at least three rounds (4, --quick: 0.7)")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which no row begins")
    parser.add_argument("--sample", type=float, default=0.02, help="seconds of one sample (0.02)")
    parser.add_argument("--ggml", help="the folder with a wheel of llama.cpp, if not where Python has its packages")
    parser.add_argument("--library", default=LIBRARY, help="libbench_read.so")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--json", help="a file for everything that was measured")
    parser.add_argument("--svg", help="a file for the picture")
    options = parser.parse_args()
    options.seconds = options.seconds or (0.7 if options.quick else 4.0)
    return options


def main():
    options = arguments()
    bench = Bench(options)
    bench.set_threads(1)
    bench.ask_onednn()
    table = report.Table(machine=processor(), threads=options.threads, cache=bench.cache, commit=options.commit,
                         date=datetime.date.today().isoformat(), load=os.getloadavg()[0], peers=bench.peers)
    print(report.heading(table), flush=True)
    late = time.monotonic() + options.limit
    for work in chosen(options):
        if time.monotonic() > late:
            print(f"| {work.name} | {work.shape} | no time left")
            continue
        row = bench.row(work)
        line = report.Line(work=work.name, shape=work.shape, threads=row.threads, kernels=row.kernels,
                           rounds=len(row.seconds[OURS]), flops=2.0 * work.m * work.n * work.k,
                           best={name: min(taken) for name, taken in row.seconds.items()},
                           ratios={name: ratio(row, name) for name in row.seconds if name != OURS}, goals=work.goals)
        table.lines.append(line)
        print(report.text(line), flush=True)
    print(report.closing(table))
    if options.json:
        report.write(options.json, report.as_json(table))
    if options.svg:
        report.write(options.svg, report.picture(table))


if __name__ == "__main__":
    main()

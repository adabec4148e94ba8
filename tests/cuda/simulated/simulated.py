#!/usr/bin/env python3
"""Evidence for the CUDA kernels, on cudasim, with as many processors as there are: products at every edge
(simulated_grid.py), some under 100 schedules, `blockscale verify` of every pair on every kernel (simulated_verify.py),
and instructions taken out of the kernels one at a time (simulated_mutants.py).  What was answered stands in LOG, a line
of JSON each, and is not asked again while the kernels are the same.

    simulated.py prepare BUILD FOLDER     copies what is asked: the build may change, FOLDER can be carried elsewhere
    simulated.py run FOLDER LOG [--jobs N] [--seconds N]      asks; ends after so many seconds, to be gone on with later
    simulated.py show FOLDER LOG          how far it is, what was wrong, which instructions nothing missed

--parts covering,grid,... and --only REGEX choose among cases.  Wide coverage comes first, long cases before short ones;
what would not end in time is not begun."""
import argparse
import concurrent.futures
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../planted")]
import relink
import simulated_grid
import simulated_mutants
import simulated_verify

SOURCES = [simulated_grid, simulated_verify, simulated_mutants]
GOOD = {"right", "agrees", "noticed", "passes", "not executed"}     # what is none of these is shown


def prepare(build, folder):
    os.makedirs(folder, exist_ok=True)
    for name in "lib/libcudasim.so", "tests/test_gpu_codes", "bin/blockscale":
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copy(os.path.join(build, name), os.path.join(folder, name))
    simulated_mutants.prepare(build, folder)
    kernels = hashlib.sha256()
    for _, path in sorted(relink.fatbins(build).items()):
        with open(path, "rb") as file:
            kernels.update(file.read())
    commit = ""
    if shutil.which("git"):
        commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=HERE, stdout=subprocess.PIPE, text=True,
                                check=False).stdout.strip()
    with open(os.path.join(folder, "of.json"), "w", encoding="utf-8") as file:
        json.dump({"kernels": kernels.hexdigest()[:16], "commit": commit or "unknown"}, file)


class Log:
    """What is known: {(part, case): line}; lines of other kernels do not count."""

    def __init__(self, path, folder):
        with open(os.path.join(folder, "of.json"), encoding="utf-8") as file:
            self.of = json.load(file)
        self.path, self.known, self.runs, self.lock, counts = path, {}, [], threading.Lock(), False
        for line in open(path, encoding="utf-8") if os.path.exists(path) else []:
            line = json.loads(line)
            if "run" in line:
                counts = line["run"]["kernels"] == self.of["kernels"]
                self.runs += [line["run"]] if counts else []
            elif counts:
                self.known[line["part"], line["case"]] = line

    def write(self, lines):
        with self.lock, open(self.path, "a", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps(line) + "\n")
                if "part" in line:
                    self.known[line["part"], line["case"]] = line

    def begin(self, jobs):
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")
        self.runs.append(dict(self.of, date=date, jobs=jobs))
        self.write([{"run": self.runs[-1]}])


def cases_of(folder, parts, only):
    """{(part, case): turn} of all that is chosen."""
    found = {}
    for source in SOURCES:
        for part, case, turn in source.cases(folder):
            if (not parts or part in parts) and re.search(only, case):
                found.setdefault((part, case), turn)
    return found


def jobs_of(folder, log, cases):
    """(turn, seconds, function of the seconds left) of what is not known; what it gives: {(part, case): (fate, said)}
    or None."""
    jobs = []
    for source in SOURCES:
        mine = [(part, case, cases[part, case]) for part, case in cases
                if part in source.PARTS and (part, case) not in log.known]
        jobs += source.jobs(folder, mine)
    return sorted(jobs, key=lambda job: (job[0], -job[1]))


def work(jobs, lock, log, end):
    while True:
        with lock:
            job = next((job for job in jobs if job[1] < end - time.monotonic()), None)
            if job is None:
                return
            jobs.remove(job)
        begin = time.monotonic()
        answers = job[2](end - begin) or {}
        seconds = round((time.monotonic() - begin) / max(1, len(answers)), 1)
        log.write([{"part": part, "case": case, "fate": fate, "said": said, "seconds": seconds}
                   for (part, case), (fate, said) in answers.items()])
        for (part, case), (fate, said) in answers.items():
            if fate not in GOOD:
                print(f"{part}: {case}: {fate}  {said}", flush=True)


def run(folder, log, cases, count, seconds):
    log.begin(count)
    jobs, lock, end = jobs_of(folder, log, cases), threading.Lock(), time.monotonic() + seconds
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(work, jobs, lock, log, end) for _ in range(count)]:
            done.result()


def show(folder, log, cases):
    """True: nothing is wrong.  Instructions that nothing missed are for a reader of the manual to judge."""
    for made in log.runs:
        print(f"run: {made['date']}, commit {made['commit']}, {made['jobs']} jobs")
    parts = {}
    for part, case in cases:
        of, fates = parts.setdefault(part, [0, {}])
        parts[part][0] = of + 1
        if (part, case) in log.known:
            fate = log.known[part, case]["fate"]
            fates[fate] = fates.get(fate, 0) + 1
    for part, (of, fates) in parts.items():
        seconds = sum(log.known[key]["seconds"] for key in cases if key[0] == part and key in log.known)
        said = ", ".join(f"{n} {fate}" for fate, n in sorted(fates.items())) or "none"
        print(f"{part}: {sum(fates.values())} of {of}: {said}; {seconds:.0f} s")
    simulated_mutants.show(folder, {case: log.known.get(("mutants", case))
                                    for part, case in cases if part == "mutants"})
    wrong = [(key, log.known[key]) for key in cases if key in log.known
             and log.known[key]["fate"] not in GOOD | {"survives"}]
    for (part, case), line in wrong:
        print(f"{part}: {case}: {line['fate']}  {line['said']}")
    return not wrong


def main():
    os.environ.setdefault("CUDASIM_REPORTS", "stop")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["prepare", "run", "show"])
    parser.add_argument("first", metavar="BUILD|FOLDER")
    parser.add_argument("second", metavar="FOLDER|LOG")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e8)          # years: a timer takes no infinity
    parser.add_argument("--parts", type=lambda text: text.split(","), default=[])
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    given.first, given.second = os.path.abspath(given.first), os.path.abspath(given.second)
    if given.verb == "prepare":
        prepare(given.first, given.second)
        return 0
    log, cases = Log(given.second, given.first), cases_of(given.first, given.parts, given.only)
    if given.verb == "run":
        run(given.first, log, cases, given.jobs, given.seconds)
    return 0 if show(given.first, log, cases) else 1


if __name__ == "__main__":
    sys.exit(main())

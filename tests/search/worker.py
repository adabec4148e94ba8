"""The process that runs problems: jobs come in as lines of JSON, a line goes out for each problem.  If it dies, the
problem that it had begun is at fault; whoever started it (search.py) says so, and starts another.

    {"seed": S, "first": I, "count": N}    problems of a seed
    {"problem": {...}}                      one that is given"""
import json
import os
import sys
import time
import traceback

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")     # before NumPy is loaded
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np                                     # noqa: E402

import conversions                                     # noqa: E402
import draw                                            # noqa: E402
import library                                         # noqa: E402
import memory                                          # noqa: E402
import products                                        # noqa: E402
import python_products                                 # noqa: E402


class Target:
    """cpu, python (the CPU through the Python package), gpu (NVIDIA's), hip, gfxsim, or cudasim:NAME, whose device the
    environment names (search.py sets it)."""

    def __init__(self, path, name):
        self.name, self.cuda = name, name not in draw.HOST
        hip = name in draw.HIP
        self.lib = library.Library(path)
        self.memory = memory.HipDevice() if hip else memory.Device() if self.cuda else memory.Host()
        self.context = library.Context(self.lib, library.HIP if hip else library.CUDA if self.cuda else library.CPU)
        if name == "python":
            self.runners = {"product": python_products.PythonRunner(self, python_products.package(path))}
            return
        self.runners = {"product": products.Runner(self),
                        **{kind: make(self) for kind, make in conversions.RUNNERS.items()}}

    def run(self, problem):
        """(outcome, sentence, counts): outcome is "ok", "wrong" or "refused"."""
        counts = {}

        def note(key, value=1):
            counts[key] = counts.get(key, 0) + value

        try:
            self.runners[problem["kind"]](problem, note)
        except products.Wrong as wrong:
            return "wrong", str(wrong), counts
        except library.Refused as refused:
            reason = announced(self, problem, refused)
            return ("refused", reason, counts) if reason else ("wrong", str(refused), counts)
        except memory.CudaError as error:
            return "wrong", str(error), counts
        except Exception:                              # a slip of the search's own must not pass for anything else
            return "wrong", "the search itself: " + traceback.format_exc(), counts
        return "ok", "", counts


def announced(target, problem, refused):
    """The sentence of a header that says that a problem is refused, or None."""
    operands = [problem[x]["format"] for x in ("a", "b") if x in problem]
    if refused.status == library.EUNSUPPORTED and target.cuda and "fp32" in operands:
        takes = target.name.startswith("cudasim:10") and problem.get("compute") == "tf32" and set(operands) == {"fp32"}
        if not takes:
            return "matmul.h: on a GPU fp32 operands are refused"
        if problem.get("along_k") or problem.get("order") == "portable":
            return "matmul.h: BSM_COMPUTE_TF32 is not for groups along K, nor in the portable order"
    return None


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def run_one(target, index, problem):
    began = time.monotonic()
    outcome, sentence, counts = target.run(problem)
    say(index=index, outcome=outcome, sentence=sentence, counts=counts, kind=problem["kind"],
        seconds=round(time.monotonic() - began, 4))
    # A GPU that has met an error gives it again for ever.
    if outcome == "wrong" and target.cuda and ("EDEVICE" in sentence or "cu" == sentence[:2]):
        sys.exit(3)


def main():
    path, name, only = sys.argv[1], sys.argv[2], sys.argv[3] or None
    np.seterr(all="ignore")
    backend = library.HIP if name in draw.HIP else library.CUDA
    missing = library.Library(path).missing(backend) if name not in draw.HOST else ""
    if missing:
        say(missing=missing)
        return
    target = Target(path, name)
    say(ready=True)
    for line in sys.stdin:
        job = json.loads(line)
        if "problem" in job:
            run_one(target, 0, job["problem"])
            continue
        for index in range(job["first"], job["first"] + job["count"]):
            run_one(target, index, draw.of_number(job["seed"], index, name, only))
        say(done=True)


if __name__ == "__main__":
    main()

"""What the scripts share that compile a project's kernels and run them under cudasim: deep_gemm.py,
thunder_kittens.py."""
import argparse
import collections
import os
import re
import subprocess
import tempfile

SMS = 2


def read_options(page, *paths):
    """The words of the command line: paths, in this order, and the options that all have."""
    parser = argparse.ArgumentParser(description=page, formatter_class=argparse.RawDescriptionHelpFormatter)
    for path in paths:
        parser.add_argument(path)
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--only", default="", help="kernels with this in their names")
    parser.add_argument("--keep", help="what was compiled, and what the simulator said, stay in this folder")
    return parser.parse_args()


def nvcc(*words):
    """What it said, or None: it has compiled."""
    done = subprocess.run(["nvcc", "-std=c++20", "-O3", "-lineinfo", "-w", "--expt-relaxed-constexpr",
                           "--expt-extended-lambda", *words], capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else None


def simulate(command, device, options, **settings):
    """Exit status and output of a program, on cudasim with every rule at level report."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDASIM_")}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env=dict(clean, CUDASIM_DEVICE=device, CUDASIM_REPORTS="continue", CUDASIM_SMS=str(SMS),
                                   CUDASIM_SCHEDULES=str(options.schedules), **settings))
    return done.returncode, done.stdout + done.stderr


def judge(kernels, options, compile_and_run):
    """A line for each kernel.  compile_and_run(kernel, options, folder) gives a status, 0 being right, a verdict, and
    what was said.  The exit status of the script."""
    chosen = [kernel for kernel in kernels if options.only in kernel.name]
    wrong = 0
    for kernel in chosen:
        with tempfile.TemporaryDirectory() as scratch:
            folder = scratch
            if options.keep is not None:
                folder = os.path.join(os.path.abspath(options.keep), re.sub(r"\W+", "_", kernel.name))
            os.makedirs(folder, exist_ok=True)
            status, verdict, said = compile_and_run(kernel, options, folder)
            with open(os.path.join(folder, "said.txt"), "w", encoding="utf-8") as file:
                file.write(said)
        rules = collections.Counter(re.findall(r"^  rule     (\S+)$", said, re.M))
        lines = ", ".join("%s %d" % rule for rule in sorted(rules.items())) or "none"
        print("%s: %s; rules broken, at how many lines: %s" % (kernel.name, verdict, lines), flush=True)
        if status != 0:
            wrong += 1
            print("".join("    %s\n" % line for line in said.splitlines()[-20:]), end="", flush=True)
    print("%d as docs/strangers.md says, %d not" % (len(chosen) - wrong, wrong))
    return 1 if wrong or not chosen else 0

#!/usr/bin/env python3
"""Kernels of ThunderKittens under cudasim: their sources up to the host code, with an instance and a program on the
driver API behind them (thunder_kittens.cu), are compiled by nvcc and run under many schedules with every rule at level
report, on operands whose product the host knows.  docs/strangers.md has what came of it.

The sources are not in this project: https://github.com/HazyResearch/ThunderKittens, commit 0b55588d.

usage: thunder_kittens.py THUNDERKITTENS BUILD [--schedules N] [--only NAME] [--keep FOLDER]"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
Kernel = collections.namedtuple("Kernel", "name arch source end define shape refused", defaults=("",))
KERNELS = [
    Kernel("sm100 mxfp8, 256 x 256", "sm_100a", "mxfp8_b200/mxfp8_b200_gemm.cu", "#ifndef TORCH_COMPILE",
           ("KERNEL=1", "COLUMNS=256"), (512, 512, 512)),
    Kernel("sm100 mxfp8, 256 x 128", "sm_100a", "mxfp8_b200/mxfp8_b200_gemm.cu", "#ifndef TORCH_COMPILE",
           ("KERNEL=1", "COLUMNS=128"), (512, 512, 640)),
    Kernel("sm100 nvfp4, 256 x 256", "sm_100a", "nvfp4_b200/nvfp4_b200_gemm.cu", "#ifndef TORCH_COMPILE",
           ("KERNEL=2", "COLUMNS=256"), (512, 512, 1280)),
    Kernel("sm90 fp8, a scale a row, 128 x 128", "sm_90a", "fp8_h100_scaled/fp8_h100_gemm_scaled.cu",
           "template<typename mmt>", ("KERNEL=3",), (256, 384, 640),
           refused="has initialised and no mbarrier.inval has ended"),    # by each lane of a warp
    Kernel("sm90 bf16, 128 x 256", "sm_90a", "educational_h100/level_08.cu", "// Launch kernel", ("KERNEL=4",),
           (256, 512, 320)),
]


def compile_kernel(kernel, options, folder):
    """The PTX and the program, or what nvcc said."""
    source = os.path.join(options.thunderkittens, "kernels/gemm", kernel.source)
    with open(source, encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(folder, "kernel.cuh"), "w", encoding="utf-8") as file:
        file.write(text[:text.index(kernel.end)])
    shutil.copy(os.path.join(HERE, "thunder_kittens.cu"), folder)
    family = "KITTENS_HOPPER" if kernel.arch == "sm_90a" else "KITTENS_BLACKWELL"
    virtual = kernel.arch.replace("sm", "compute")
    words = ["nvcc", "-std=c++20", "-O3", "--use_fast_math", "--expt-extended-lambda", "--expt-relaxed-constexpr",
             "-lineinfo", "-w", "-DNDEBUG", *["-D" + define for define in (family, *kernel.define)],
             *["-I" + os.path.join(options.thunderkittens, part) for part in ("include", "prototype")],
             "-I" + os.path.dirname(source), os.path.join(folder, "thunder_kittens.cu")]
    ptx, program = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "program")
    for made in (["-ptx", "-arch=" + kernel.arch, "-o", ptx],
                 ["-gencode", "arch=%s,code=%s" % (virtual, virtual), "-o", program, "-lcuda"]):
        done = subprocess.run([*words, *made], capture_output=True, text=True)
        if done.returncode != 0:
            return None, None, done.stderr
    return ptx, program, ""


def run(kernel, ptx, program, options):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDASIM_")}
    done = subprocess.run([program, ptx, *[str(extent) for extent in kernel.shape]], capture_output=True, text=True,
                          env=dict(clean, CUDASIM_DEVICE=kernel.arch, CUDASIM_REPORTS="continue", CUDASIM_SMS="2",
                                   CUDASIM_SCHEDULES=str(options.schedules),
                                   LD_LIBRARY_PATH=os.path.join(options.build, "lib/cudasim")))
    return done.returncode, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thunderkittens")
    parser.add_argument("build")
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="sources, PTX and what the simulator said stay there")
    options = parser.parse_args()
    chosen = [kernel for kernel in KERNELS if options.only in kernel.name]
    wrong = 0
    for number, kernel in enumerate(chosen):
        with tempfile.TemporaryDirectory() as scratch:
            folder = scratch if options.keep is None else os.path.join(options.keep, str(number))
            os.makedirs(folder, exist_ok=True)
            ptx, program, said = compile_kernel(kernel, options, folder)
            status, verdict = 3, "does not compile"
            if ptx is not None:
                status, said = run(kernel, ptx, program, options)
                verdict = "right" if status == 0 else "wrong"
                if kernel.refused and kernel.refused in said:
                    status, verdict = 0, "refused, as ever"
            with open(os.path.join(folder, "said.txt"), "w", encoding="utf-8") as file:
                file.write(said)
        rules = collections.Counter(re.findall(r"^  rule     (\S+)$", said, re.M))
        lines = ", ".join("%s at %d lines" % rule for rule in sorted(rules.items())) or "none"
        wrong += status != 0
        print("%s: %s; reports: %s" % (kernel.name, verdict, lines), flush=True)
        if status != 0:
            print("".join("    %s\n" % line for line in said.splitlines()[-20:]), end="", flush=True)
    print("thunder_kittens: %d as docs/strangers.md says, %d not" % (len(chosen) - wrong, wrong))
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())

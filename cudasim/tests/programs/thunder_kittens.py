#!/usr/bin/env python3
"""Kernels of ThunderKittens under cudasim: their sources up to the host code, with an instance and a program on the
driver API behind them (thunder_kittens.cu), are compiled by nvcc and run under many schedules with every rule at level
report, on operands whose product the host knows.  docs/strangers.md has what came of it.

The sources are not in this project: https://github.com/HazyResearch/ThunderKittens, commit 0b55588d.

usage: thunder_kittens.py THUNDERKITTENS BUILD [--schedules N] [--only NAME] [--keep FOLDER]"""
import collections
import os
import shutil
import sys

import stranger

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


def compile_and_run(kernel, options, folder):
    source = os.path.join(options.thunderkittens, "kernels/gemm", kernel.source)
    with open(source, encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(folder, "kernel.cuh"), "w", encoding="utf-8") as file:
        file.write(text[:text.index(kernel.end)])
    shutil.copy(os.path.join(HERE, "thunder_kittens.cu"), folder)
    family = "KITTENS_HOPPER" if kernel.arch == "sm_90a" else "KITTENS_BLACKWELL"
    virtual = kernel.arch.replace("sm", "compute")
    words = ["--use_fast_math", "-DNDEBUG", *["-D" + define for define in (family, *kernel.define)],
             *["-I" + os.path.join(options.thunderkittens, part) for part in ("include", "prototype")],
             "-I" + os.path.dirname(source), os.path.join(folder, "thunder_kittens.cu")]
    ptx, program = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "program")
    for made in (["-ptx", "-arch=" + kernel.arch, "-o", ptx],
                 ["-gencode", "arch=%s,code=%s" % (virtual, virtual), "-o", program, "-lcuda"]):
        failed = stranger.nvcc(*words, *made)
        if failed is not None:
            return 3, "does not compile", failed
    status, said = stranger.simulate([program, ptx, *kernel.shape], kernel.arch, options,
                                     LD_LIBRARY_PATH=os.path.join(options.build, "lib/cudasim"))
    if kernel.refused and kernel.refused in said:
        return 0, "refused, as it was", said
    return status, "right" if status == 0 else "wrong", said


if __name__ == "__main__":
    sys.exit(stranger.judge(KERNELS, stranger.read_options(__doc__, "thunderkittens", "build"), compile_and_run))

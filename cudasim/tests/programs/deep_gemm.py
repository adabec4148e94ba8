#!/usr/bin/env python3
"""Kernels of DeepGEMM under cudasim: instances of its templates are compiled to PTX and run, under many schedules with
every rule at level report, on operands whose product the host knows (deep_gemm.c).  docs/strangers.md has what came of
it.

The sources are not in this project: https://github.com/deepseek-ai/DeepGEMM, commit 54e22612, and the headers of
https://github.com/NVIDIA/cutlass, commit 7107b055.  Others may have other template parameters.  It takes nvcc and the
program `deep_gemm` of a build.

usage: deep_gemm.py DEEPGEMM CUTLASS BUILD [--schedules N] [--only NAME] [--keep FOLDER]"""
import os
import sys

import stranger

SMS, BF16 = stranger.SMS, "cutlass::bfloat16_t"
FP8, FP4 = "cutlass::float_e4m3_t", "cutlass::detail::float_e2m1_unpacksmem_t"
IDENTITY, K_MAJOR = "epilogue::transform::EpilogueIdentity", "cute::UMMA::Major::K"


def swizzle(row_bytes):
    return next(s for s in (128, 64, 32, 16) if row_bytes % s == 0)


def up_to(value, multiple):
    return -(-value // multiple) * multiple


class Sm90:
    """1d2d: scales of B by 128 x 128, D in bf16.  1d1d: by 1 x 128, added to D in fp32.  Tiles whose columns do not
    divide a block of scales read a second row of them, there or not; nobody uses it then."""
    def __init__(self, name, kind, m, n, k, block_m, block_n, stages=4, cluster=1, multicast="b"):
        self.name, self.kind, self.arch, self.b = name, kind, "sm_90a", "e4m3"
        self.reads_unwritten = 128 % block_n != 0
        self.cluster, self.multicast, self.granularity = cluster, multicast, 128
        self.shape, self.block, math_threads = (m, n, k), (block_m, block_n), 128 if block_m <= 64 else 256
        self.threads = 128 + math_threads
        added = kind == "1d1d"
        columns = up_to(block_n * 4, 128) if added else 0
        self.shared = (up_to(block_m * block_n * (4 if added else 2), 1024) + 256 + 16
                       + (0 if added else up_to(8 * -(-k // 128), 8))
                       + stages * (128 * (block_m + block_n) + up_to(block_m * 4, 128) + columns))
        blocks = "0, 0, 0, 1, %d, %d, 128" % self.block
        last = "%d, 128, %d, %d, %s, %d, GemmType::Normal" % (stages, math_threads, cluster,
                                                              "true" if multicast == "a" else "false", SMS)
        if added:
            self.instance = "sm90_fp8_gemm_1d1d_impl<%s, 128, 128, %s, float>" % (blocks, last)
        else:
            self.instance = "sm90_fp8_gemm_1d2d_impl<%s, %s, 128, 128, %d, %s, %s, %s>" % (
                K_MAJOR, blocks, swizzle(2 * block_n), last, BF16, IDENTITY)
        self.header = "sm90_fp8_gemm_%s.cuh" % kind


class Sm100:
    """Scales UE8M0 of `granularity` elements of K; D in bf16.  128 scales are taken from shared memory whatever the
    tile is; nobody uses those that were not loaded."""
    def __init__(self, name, m, n, k, block_m, block_n, granularity, b="e4m3", stages=4, cluster=1, swapped=False):
        self.reads_unwritten = block_m % 128 != 0 or block_n % 128 != 0
        self.name, self.kind, self.arch, self.b = name, "mx-swapped" if swapped else "mx", "sm_100a", b
        self.cluster, self.multicast, self.granularity = cluster, "a" if swapped else "b", granularity
        self.shape, self.block, self.threads = (m, n, k), (block_m, block_n), 256
        load_m, load_n = (block_m // cluster, block_n) if swapped else (block_m, block_n // cluster)
        stored = 16 * block_n * 2 if swapped else min(128, block_m) * swizzle(2 * block_n)
        self.shared = (2 * stored + 32 * 8 * 3 + 2 * 8 * 2 + 8 + 4
                       + stages * (128 * (load_m + load_n) + 4 * (up_to(block_m, 128) + up_to(block_n, 128))))
        self.instance = ("sm100_fp8_fp4_gemm_1d1d_impl<%s, %s, %d, %d, %d, 0, 0, 0, %d, %d, 128, 1, 128, 128, %d, %d, "
                         "128, 128, %d, %s, %d, %s, false, GemmType::Normal, false, %s, %s, %s, %s>" % (
                             K_MAJOR, K_MAJOR, granularity, granularity, granularity, block_m, block_n,
                             swizzle(2 * block_n), stages, cluster, "true" if swapped else "false", SMS,
                             "true" if swapped else "false", FP8, FP8 if b == "e4m3" else FP4, BF16, IDENTITY))
        self.header = "sm100_fp8_fp4_gemm_1d1d.cuh"


KERNELS = [
    Sm90("sm90 fp8 1d2d, 128 x 128", "1d2d", 200, 264, 640, 128, 128),
    Sm90("sm90 fp8 1d2d, 64 x 96, two scales of B a tile", "1d2d", 200, 264, 640, 64, 96),
    Sm90("sm90 fp8 1d2d, a cluster of 2 shares A", "1d2d", 200, 512, 640, 128, 128, cluster=2, multicast="a"),
    Sm90("sm90 fp8 1d2d, a cluster of 2 shares B", "1d2d", 256, 264, 640, 128, 128, cluster=2, multicast="b"),
    Sm90("sm90 fp8 1d1d, 128 x 128, D added to", "1d1d", 200, 264, 640, 128, 128, stages=3),
    Sm100("sm100 mxfp8, scales of 32", 200, 264, 640, 128, 128, 32),
    Sm100("sm100 fp8, scales of 128", 200, 264, 640, 128, 128, 128),
    Sm100("sm100 mxfp8 x mxfp4, scales of 32", 200, 264, 640, 128, 128, 32, b="e2m1"),
    Sm100("sm100 mxfp8, CTA pair", 200, 264, 640, 128, 128, 32, cluster=2),
    Sm100("sm100 mxfp8, A and B swapped", 200, 264, 640, 128, 128, 32, swapped=True),
    Sm100("sm100 mxfp8, A and B swapped, CTA pair, 64 x 128", 200, 512, 640, 64, 128, 32, cluster=2, swapped=True),
]


def compile_and_run(kernel, options, folder):
    source, made = os.path.join(folder, "kernel.cu"), os.path.join(folder, "kernel.ptx")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <deep_gemm/impls/%s>\nusing namespace deep_gemm;\nvoid *instance() { return "
                   "reinterpret_cast<void *>(&%s); }\n" % (kernel.header, kernel.instance))
    failed = stranger.nvcc("-ptx", "-arch=" + kernel.arch, "-I" + os.path.join(options.deepgemm, "deep_gemm/include"),
                           "-I" + os.path.join(options.cutlass, "include"), source, "-o", made)
    if failed is not None:
        return 3, "does not compile", failed
    command = [os.path.join(options.build, "tests/deep_gemm"), made, kernel.kind, kernel.b, *kernel.shape,
               *kernel.block, kernel.cluster, kernel.multicast, kernel.threads, kernel.shared, kernel.granularity]
    status, said = stranger.simulate(command, kernel.arch, options,
                                     CUDASIM_CHECK_UNINITIALISED="0" if kernel.reads_unwritten else "1")
    verdict = "wrong" if status != 0 else "right, but for reads of what nothing wrote" if kernel.reads_unwritten \
        else "right"
    return status, verdict, said


if __name__ == "__main__":
    sys.exit(stranger.judge(KERNELS, stranger.read_options(__doc__, "deepgemm", "cutlass", "build"), compile_and_run))

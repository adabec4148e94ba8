#!/usr/bin/env python3
"""CUTLASS's examples, as they are, on cudasim: built by nvcc against the runtime library, run under
CUDASIM_REPORTS=continue, judged by their own verifiers.  Prints a row for each: the size that ran, the verdict, the
reports counted by rule; docs/strangers.md has what it printed.  No GPU takes part, and CUTLASS is not in this project;
what each example printed lies beside its program, in FOLDER.

usage: cutlass.py CUTLASS [--build FOLDER] [--cudasim FOLDER] [--schedules N] [NAME...]

CUTLASS is a checkout of github.com/NVIDIA/cutlass at COMMIT; what is built is kept in FOLDER (some minutes of nvcc for
each, once)."""
import argparse
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
COMMIT = "7107b05535f8977f5ecb9d01ee203205b1fd9bc4"
SMS = 8                                                # the clusters of 48 and 72a have 8 CTAs

# Example, its source, its target, its arguments: the smallest that give every warp work and every ring a second turn.
EXAMPLES = {
    "48": ("48_hopper_warp_specialized_gemm/48_hopper_warp_specialized_gemm.cu", "sm_90a",
           "--m=512 --n=256 --k=256 --beta=1 --iterations=0"),
    "54": ("54_hopper_fp8_warp_specialized_gemm/54_hopper_fp8_warp_specialized_gemm.cu", "sm_90a",
           "--m=256 --n=256 --k=1024 --l=2 --beta=1 --iterations=0"),
    "55": ("55_hopper_mixed_dtype_gemm/55_hopper_mixed_dtype_gemm.cu", "sm_90a",
           "--m=256 --n=256 --k=512 --g=128 --mode=2 --beta=1 --iterations=0 --warmup=0"),
    "57": ("57_hopper_grouped_gemm/57_hopper_grouped_gemm.cu", "sm_90a",
           "--m=256 --n=256 --k=256 --groups=2 --iterations=0"),
    "62": ("62_hopper_sparse_gemm/62_hopper_sparse_gemm.cu", "sm_90a",
           "--m=256 --n=256 --k=512 --beta=1 --iterations=0 --warmup=0"),
    "88": ("88_hopper_fmha/88_hopper_fmha.cu", "sm_90a", "--b=1 --h=1 --q=256 --k=256 --d=64 --iterations=1 --verify"),
    "72a": ("72_blackwell_narrow_precision_gemm/72a_blackwell_nvfp4_bf16_gemm.cu", "sm_100a",
            "--m=512 --n=1024 --k=768 --beta=1 --iterations=0"),
    "72b": ("72_blackwell_narrow_precision_gemm/72b_blackwell_nvfp4_nvfp4_gemm.cu", "sm_100a",
            "--m=256 --n=256 --k=768 --beta=1 --iterations=0"),
    "72c": ("72_blackwell_narrow_precision_gemm/72c_blackwell_mixed_mxfp8_bf16_gemm.cu", "sm_100a",
            "--m=512 --n=512 --k=512 --beta=1 --iterations=0"),
    "73": ("73_blackwell_gemm_preferred_cluster/blackwell_gemm_preferred_cluster.cu", "sm_100a",
           "--m=512 --n=512 --k=512 --beta=1 --iterations=0"),
    "75": ("75_blackwell_grouped_gemm/75_blackwell_grouped_gemm_block_scaled.cu", "sm_100a",
           "--m=256 --n=256 --k=256 --groups=2 --iterations=0"),
    "81": ("81_blackwell_gemm_blockwise/81_blackwell_gemm_blockwise.cu", "sm_100a",
           "--m=256 --n=256 --k=512 --beta=1 --iterations=0"),
    "83": ("83_blackwell_sparse_gemm/83_blackwell_sparse_gemm.cu", "sm_100a",
           "--m=512 --n=256 --k=512 --beta=1 --iterations=0"),
    "84a": ("84_blackwell_narrow_precision_sparse_gemm/84a_blackwell_nvfp4_bf16_sparse_gemm.cu", "sm_100a",
            "--m=512 --n=256 --k=1024 --beta=1 --iterations=0"),
    "cute 01": ("cute/tutorial/blackwell/01_mma_sm100.cu", "sm_100a", "256 512 256"),
    "cute 02": ("cute/tutorial/blackwell/02_mma_tma_sm100.cu", "sm_100a", "256 512 256"),
    "cute 03": ("cute/tutorial/blackwell/03_mma_tma_multicast_sm100.cu", "sm_100a", "512 1024 256"),
    "cute 04": ("cute/tutorial/blackwell/04_mma_tma_2sm_sm100.cu", "sm_100a", "512 1024 256"),
    "cute 05": ("cute/tutorial/blackwell/05_mma_tma_epi_sm100.cu", "sm_100a", "512 1024 256"),
    "79a": ("79_blackwell_geforce_gemm/79a_blackwell_geforce_nvfp4_bf16_gemm.cu", "sm_120a",
            "--m=256 --n=256 --k=1024 --beta=1 --iterations=0"),
    "79b": ("79_blackwell_geforce_gemm/79b_blackwell_geforce_nvfp4_nvfp4_gemm.cu", "sm_120a",
            "--m=256 --n=256 --k=1024 --beta=1 --iterations=0"),
    "79c": ("79_blackwell_geforce_gemm/79c_blackwell_geforce_mixed_mxfp8_mxfp6_bf16_gemm.cu", "sm_120a",
            "--m=256 --n=256 --k=1024 --beta=1 --iterations=0"),
}
RIGHT = r"Disposition: +Passed|Execution is successful|\[OK\]"
WRONG = r"Disposition: +(?!Passed)\S+|Execution is not successful|Failed|\[--\]"


def built(options, name):
    """The path of the example's program, after building it where it is not there; None: it does not build."""
    source, target, _ = EXAMPLES[name]
    program = os.path.join(options.build, name.replace(" ", "_"))
    if os.path.exists(program):
        return program
    os.makedirs(options.build, exist_ok=True)
    examples = os.path.join(options.cutlass, "examples")
    path = os.path.join(examples, source)
    compute = target.replace("sm_", "compute_")
    includes = [os.path.join(options.cutlass, "include"), os.path.join(options.cutlass, "tools", "util", "include"),
                os.path.join(examples, "common"), os.path.dirname(path)]
    command = ["nvcc", "-std=c++17", "-O1", "-w", "--expt-relaxed-constexpr", *[f"-I{folder}" for folder in includes],
               "-gencode", f"arch={compute},code={compute}", "-cudart", "shared", path,
               f"-L{options.cudasim}", "-lcuda", "-o", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return program
    sys.stderr.write(done.stdout + done.stderr)
    return None


def run(options, name, program):
    """Prints the example's row; whether its verifier says that it is right."""
    _, target, arguments = EXAMPLES[name]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("CUDASIM_")}
    settings = dict(clean, LD_LIBRARY_PATH=options.cudasim, CUDASIM_DEVICE=target, CUDASIM_SMS=str(SMS),
                    CUDASIM_REPORTS="continue", CUDASIM_SCHEDULES=str(options.schedules))
    begin = time.monotonic()
    done = subprocess.run([program, *arguments.split()], capture_output=True, text=True, errors="replace", check=False,
                          env=settings)
    seconds = time.monotonic() - begin
    with open(program + ".txt", "w", encoding="utf-8") as file:
        file.write(done.stdout + done.stderr)
    right, wrong = len(re.findall(RIGHT, done.stdout)), len(re.findall(WRONG, done.stdout))
    good = done.returncode == 0 and right > 0 and wrong == 0
    counted = re.findall(r"reported and went on: (.*)", re.sub(r" \(\d+ lines shown[^)]*\)", "", done.stderr))
    verdict = "right" if good else f"exit status {done.returncode}, {right} right, {wrong} wrong"
    print(f"| {name} | {target} | {arguments.replace(' --iterations=0', '').replace(' --warmup=0', '')} | {verdict} | "
          f"{counted[0] if counted else 'none'} | {seconds:.0f} s |", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description="CUTLASS's examples on cudasim")
    parser.add_argument("cutlass", help=f"a checkout of github.com/NVIDIA/cutlass at {COMMIT}")
    parser.add_argument("names", nargs="*", help="which examples; all unless given")
    parser.add_argument("--build", default=os.path.join(PROJECT, "build", "cutlass"), help="where programs are kept")
    parser.add_argument("--cudasim", default=os.path.join(PROJECT, "build", "release", "lib", "cudasim"),
                        help="the folder of libcuda.so.1 and libcudart.so.13")
    parser.add_argument("--schedules", type=int, default=1, help="how many a launch runs under")
    options = parser.parse_intermixed_args()
    unknown = [name for name in options.names if name not in EXAMPLES]
    if unknown:
        parser.error(f"{unknown}: none of {list(EXAMPLES)}")
    if not os.path.exists(os.path.join(options.cudasim, "libcudart.so.13")):
        parser.error(f"--cudasim {options.cudasim}: has no libcudart.so.13")
    print("| example | device | arguments | verdict | reports by rule | time |\n|---|---|---|---|---|---|", flush=True)
    good = []
    for name in options.names or EXAMPLES:
        program = built(options, name)
        good.append(program is not None and run(options, name, program))
    print(f"\n{sum(good)} of {len(good)} right")
    return 0 if all(good) else 1


sys.exit(main())

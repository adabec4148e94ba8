#!/usr/bin/env python3
"""blockscale verify and bench --device hip on gfxsim: pairs of every kind on every kernel, whatever rounding inside the
matrix instructions may be; on a GPU all pairs."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import script

command = sys.argv[1]
simulated = "BLOCKSCALE_LIBHIP" in os.environ
# Of codes: kernels hip_mfma_scale_*; the others decode. A model of rounding each.
PAIRS = (("mxfp8_e4m3:mxfp8_e5m2", "fma"), ("mxfp4:mxfp4", "groups"), ("mxfp6_e2m3:mxfp4", "exact"),
         ("e5m2:mxfp6_e3m2", "groups"), ("nvfp4:bf16", "fma"), ("mxint8:fp16", "groups"),
         ("mxfp4_block16:mxfp8_e4m3", "exact"))


def pairs_agree():
    script.needs_a_gpu(command, "hip")
    if not simulated:
        out = script.run([command, "verify", "--device", "hip"])
        numbers = re.search(r"^(\d+) of (\d+) pairs agree on (\d+) kernels", out, re.M)
        script.check(numbers and numbers.group(1) == numbers.group(2) and int(numbers.group(3)) == 8, out[-500:])
        return
    for pair, rounding in PAIRS:
        out = script.run([command, "verify", "--device", "hip", "--quick", "--pair", pair],
                         env=dict(os.environ, GFXSIM_ROUNDING=rounding))
        numbers = re.search(r"^(\d+) of (\d+) pairs agree on (\d+) kernels", out, re.M)
        script.check(numbers and numbers.group(1) == numbers.group(2) and int(numbers.group(3)) >= 4, pair + out[-500:])


def a_plan_is_explained():
    script.needs_a_gpu(command, "hip")
    out = script.run([command, "bench", "--device", "hip", "--explain", "--format", "mxfp4", "-m", "64", "-n", "64",
                      "-k", "256"])
    script.check("hip_mfma_scale_" in out and "lane order" in out, out)


def prepacked_weights_are_timed():
    script.needs_a_gpu(command, "hip")
    small = ["-m", "8", "-n", "64", "-k", "64", "-r", "1", "--prepacked"]
    out = script.run([command, "bench", "--device", "hip", "--format", "mxfp4", *small])
    script.check("packed B hip_mfma_scale_32x128_prepacked" in out, out)
    script.run_in(".", [command, "bench", "--device", "hip", "--format", "bf16", *small], 3,
                  "no prepacked form that could be kept")
    script.run_in(".", [command, "bench", "--format", "mxfp4", *small], 2, "--prepacked is for --device cuda or hip")


script.cases("test_verify_hip", [pairs_agree, a_plan_is_explained, prepacked_weights_are_timed])

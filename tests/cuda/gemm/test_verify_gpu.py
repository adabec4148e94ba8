#!/usr/bin/env python3
"""blockscale verify --device cuda: a few pairs on a simulated GPU, all of them on a real one; and what its bound lets
through."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import script

command, faulty = sys.argv[1:3]
simulated = "BLOCKSCALE_LIBCUDA" in os.environ
KERNEL = ["--kernel", "cuda_wgmma_64x48_1x1", "--device", "cuda"]


def every_pair_agrees():
    script.needs_a_gpu(command, "cuda")
    if not simulated:
        out = script.run([command, "verify", "--device", "cuda"])
        numbers = re.search(r"^(\d+) of (\d+) pairs agree on (\d+) kernels", out, re.M)
        script.check(numbers and numbers.group(1) == numbers.group(2) and int(numbers.group(3)) > 1, out[-500:])
        return
    for pair in (["bf16:bf16"], ["mxfp8_e5m2:bf16", "--quick"], ["mxfp4_block16:mxint8", "--quick"]):
        script.check("\u2713" in script.run([command, "verify", "--pair"] + pair + KERNEL).split("agrees")[0][:-3],
                     pair)


def every_kernel_runs_what_it_counts():
    """Each kernel that serves the pair runs some of the problems, at least those of every day, and says which it
    refuses."""
    script.needs_a_gpu(command, "cuda")
    out = json.loads(script.run([command, "verify", "--quick", "--pair", "bf16:mxfp4", "--device", "cuda", "--json"]))
    found = {kernel["kernel"]: kernel["pairs"][0] for kernel in out["kernels"]}
    total = {pair["cases"] + pair["refused"] for pair in found.values()}
    script.check(len(found) > 4 and len(total) == 1 and all(pair["cases"] >= 3 for pair in found.values()), found)
    refused = {name: pair["refusal"] for name, pair in found.items() if pair["refused"] > 0}
    script.check(all("kernel %s was forced, but " % name in sentence for name, sentence in refused.items()), refused)
    script.check(len(refused) > 0 or not any("mxfp4" in name for name in found), found)


def a_pair_that_never_runs_is_said():
    script.needs_a_gpu(command, "cuda")
    options = [faulty, "verify", "--quick", "--pair", "bf16:bf16"] + KERNEL[:2] + ["--device", "cuda"]
    out = script.run(options, expect=1, env=dict(os.environ, FAULT="refuse all"))
    script.check("\u25cb" in out and "1 pair never ran, the first: bf16 x bf16: " in out, out)
    script.check(re.search(r"^0 of 1 pairs agree on 1 kernel: 0 products that ran on the kernel named, \d+ refused",
                           out, re.M), out)


def blackwells_kernels_agree():
    """Every pair on a kernel of each kind, with a CTA alone, a pair of CTAs, swapped tiles; on all of them:
    simulated.py.  The pairs that f16 takes are decoded, each format in tight rows too."""
    script.needs_a_gpu(command, "cuda")
    if not simulated:
        raise script.Skip("on a GPU every_pair_agrees has them")
    for kernel, pairs in (("mxf8f6f4_128x64", 96), ("mxf4_32x128", 4), ("mxf4nvf4_256x256", 4), ("f16_16x128", 225)):
        out = script.run([command, "verify", "--device", "cuda", "--quick", "--kernel", "cuda_tcgen05_" + kernel],
                         env=dict(os.environ, CUDASIM_DEVICE="sm_100a"))
        script.check("%d of %d pairs agree on 1 kernel" % (pairs, pairs) in out, out)


def subnormal_sums_may_be_cut_but_no_more():
    script.needs_a_gpu(command, "cuda")
    out = script.run([faulty, "verify", "--pair", "bf16:bf16"] + KERNEL, expect=1,
                     env=dict(os.environ, FAULT="one unit above"))
    script.check(re.search(r"is -?[0-9.]*e-\d\d \(0x.*must be .*the exact sum, rounded to fp32", out), out)


script.cases("test_verify_gpu", [every_pair_agrees, every_kernel_runs_what_it_counts, a_pair_that_never_runs_is_said,
                                 blackwells_kernels_agree, subnormal_sums_may_be_cut_but_no_more])

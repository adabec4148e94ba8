#!/usr/bin/env python3
"""What a call from Python costs beside the same call from C: plan.run and matmul(plan=) of 64 x 64 x 64 on the CPU.

    PYTHONPATH=python/src python3 bench/python_overhead.py [--torch] [--cuda] [--calls N] [--rounds N]

C and Python take turns, round by round, on the same plan, operands and result; C's loop is compiled here by cc and
calls bsm_plan_run by its address.  Printed are medians over the rounds of the processor time of one call, which other
programs disturb less than the clock's, and their difference: the overhead.  The library has one thread, the
caller's.  --cuda: launches on a GPU, of bf16 tensors of PyTorch where it has a GPU, else of arrays of the library's
own; rounds are waited for, and are not to be longer than a GPU's queue: some hundred calls."""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np

import blockscale
from blockscale import _context, plans
from blockscale._device_array import DeviceArray
from blockscale._library import ffi, lib

LOOP = r"""
#include <stddef.h>
#include <time.h>
typedef int run(const void *plan, const void *product, void *workspace, size_t bytes);
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
double seconds(run *f, const void *plan, const void *product, void *workspace, size_t bytes, int calls)
{
    const double start = now();
    for (int i = 0; i < calls; i++) if (f(plan, product, workspace, bytes) != 0) return -1;
    return (now() - start) / calls;
}
"""


def c_loop(folder):
    source, shared = os.path.join(folder, "loop.c"), os.path.join(folder, "loop.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(LOOP)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", shared, source], check=True)
    ffi.cdef("double seconds(void *, void *, void *, void *, size_t, int);", override=True)
    return ffi.dlopen(shared).seconds


def measure(rounds, calls, functions, wait):
    """Medians of the seconds of one call, functions taking turns."""
    taken = [[] for _ in functions]
    for _ in range(rounds):
        for times, function in zip(taken, functions):
            times.append(function(calls))
            wait()
    return [statistics.median(times) for times in taken]


def looped(call):
    def run(calls):
        start = time.thread_time()
        for _ in range(calls):
            call()
        return (time.thread_time() - start) / calls
    return run


def case(name, seconds, a, b, empty, options, wait=lambda: None, device=("cpu", 0)):
    plan = blockscale.plan(a, b, out=empty())
    out = empty()
    plan.run(a, b, out=out)
    frame = plan._frames[0]
    size = plan.workspace_bytes
    workspace = None
    memory = plans._scratch.get(size) if size else ffi.NULL
    if size and device[0] == "cuda":
        workspace = DeviceArray((size,), "uint8", device)
        memory = ffi.cast("void *", workspace.as_view().pointer)
    run = ffi.addressof(lib, "bsm_plan_run")

    def in_c(calls):
        return seconds(ffi.cast("void *", run), plan._kernel.handle, frame.product, memory, size, calls)
    rows = [("plan.run(a, b, out=out)", lambda: plan.run(a, b, out=out)),
            ("plan.run(a, b)", lambda: plan.run(a, b)),
            ("matmul(a, b, out=out, plan=plan)", lambda: blockscale.matmul(a, b, out=out, plan=plan)),
            ("matmul(a, b, out=out)", lambda: blockscale.matmul(a, b, out=out))]
    wait()
    c, *python = measure(options.rounds, options.calls, [in_c] + [looped(call) for _, call in rows], wait)
    print(f"{name}: C {c * 1e6:.2f} us")
    for (text, _), took in zip(rows, python):
        print(f"  {text:34} {took * 1e6:6.2f} us, {(took - c) * 1e6:6.2f} us more than C")


def on_gpu(seconds, x, w, options):
    """Launches: of PyTorch's tensors, or of arrays of the library's own."""
    context = _context.context(("cuda", 0))

    def wait():
        if lib.bsm_context_synchronize(context) != 0:
            raise SystemExit(ffi.string(lib.bsm_last_error()).decode())
    try:
        import torch
        has_torch = torch.cuda.is_available()
    except ImportError:
        has_torch = False
    if has_torch:
        a, b = torch.from_numpy(x).cuda().bfloat16(), blockscale.quantize(torch.from_numpy(w).cuda(), "mxfp4")
        case("bf16 tensor x Matrix (mxfp4), PyTorch on a GPU", seconds, a, b,
             lambda: torch.empty(64, 64, device="cuda"), options, wait, ("cuda", 0))
        return
    a, b = DeviceArray.of_numpy(x.astype(np.float16)), blockscale.quantize(DeviceArray.of_numpy(w), "mxfp4")
    case("fp16 array x Matrix (mxfp4), arrays of the library's own on a GPU", seconds, a, b,
         lambda: DeviceArray((64, 64), "float32", ("cuda", 0)), options, wait, ("cuda", 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", action="store_true", help="tensors of PyTorch, too")
    parser.add_argument("--cuda", action="store_true", help="launches on a GPU, instead")
    parser.add_argument("--calls", type=int, default=2000, help="calls a round (2000)")
    parser.add_argument("--rounds", type=int, default=31, help="rounds (31)")
    options = parser.parse_args()
    blockscale.set_threads(1)
    random = np.random.default_rng(0)
    x, w = (random.standard_normal((64, 64), dtype=np.float32) for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        seconds = c_loop(folder)
        if options.cuda:
            on_gpu(seconds, x, w, options)
            return
        m = blockscale.quantize(w, "mxfp4")
        case("Matrix x Matrix (mxfp4), NumPy", seconds, blockscale.quantize(x, "mxfp4"), m,
             lambda: np.empty((64, 64), np.float32), options)
        case("fp32 array x Matrix (mxfp4), NumPy", seconds, x, m, lambda: np.empty((64, 64), np.float32), options)
        if options.torch:
            import torch
            t = torch.from_numpy(w)
            case("bf16 tensor x Matrix (mxfp4), PyTorch", seconds, torch.from_numpy(x).bfloat16(),
                 blockscale.quantize(t, "mxfp4"), lambda: torch.empty(64, 64), options)


if __name__ == "__main__":
    main()

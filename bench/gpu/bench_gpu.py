#!/usr/bin/env python3
"""bench_gpu with PyTorch's and Triton's ways to do the same: bench_gpu.py LIBRARY OPTION...

LIBRARY is libbench_gpu.so; options are those of bench_gpu.  The library measures; this file brings what it runs beside its own."""
import concurrent.futures
import ctypes
import functools
import multiprocessing
import os
import sys

import triton
from triton.backends.compiler import GPUTarget

import triton_kernels as kernels

MULTIPLY, DEQUANTIZE = 0, 1
POINTERS = ctypes.POINTER(ctypes.c_void_p)
PAIRS = [("mxfp8_e4m3", "mxfp8_e4m3"), ("mxfp4", "mxfp4"), ("mxfp8_e4m3", "mxfp4"), ("bf16", "mxfp4"), ("nvfp4", "nvfp4"),
         ("bf16", "nvfp4")]
TRIALS = 4


class Product(ctypes.Structure):
    """struct guest_product of guest.h."""
    _fields_ = [("m", ctypes.c_int64), ("n", ctypes.c_int64), ("k", ctypes.c_int64), ("places", ctypes.c_int64),
                ("a_format", ctypes.c_char_p), ("b_format", ctypes.c_char_p),
                ("a", POINTERS), ("a_scales", POINTERS), ("b", POINTERS), ("b_scales", POINTERS), ("d", POINTERS),
                ("a_values", ctypes.c_void_p), ("b_values", ctypes.c_void_p), ("stream", ctypes.c_void_p),
                ("alpha", ctypes.c_float), ("quick", ctypes.c_int32)]


PREPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(Product), ctypes.POINTER(ctypes.c_char), ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int64)


class Guest(ctypes.Structure):
    """struct guest of guest.h."""
    _fields_ = [("name", ctypes.c_char_p), ("prepare", PREPARE), ("run", RUN)]


def compile_kernel(source):
    """A kernel for Hopper; Triton keeps it on disk, so that what another process compiled is found."""
    return triton.compile(source[0], target=GPUTarget("cuda", 90, 32), options=source[1])


def compile_quietly(maker, arguments):
    """In a process of its own.  What Triton cannot compile it says on stderr, at length; the reason is kept by who asks for it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    source = maker(*arguments)
    try:
        if source is not None:
            compile_kernel(source)
    except Exception as error:                         # Triton raises what it likes: the pair is not served
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return None if source is not None else "dot_scaled has no such operand"


class Compiled:
    """Kernels by what they are for, compiled side by side while other works are measured."""

    def __init__(self, quick):
        self.tiles = kernels.TILES[:kernels.QUICK_TILES] if quick else kernels.TILES
        processes = max(1, (os.cpu_count() or 2) - 2)
        self.pool = concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("fork"))
        self.pending = {("dequantize", name): self.pool.submit(compile_quietly, kernels.dequantize_source, (name,))
                        for name in kernels.OPERANDS if kernels.dequantize_source(name) is not None}
        for a, b in PAIRS:
            for tile in self.tiles:
                self.pending[a, b, tile] = self.pool.submit(compile_quietly, kernels.product_source, (a, b, tile))

    def get(self, key, source):
        """(kernel, None) or (None, why not)."""
        if key not in self.pending:
            return None, "dot_scaled has no such operand"
        why = self.pending[key].result()
        return (compile_kernel(source), None) if why is None else (None, why)


class State:
    """What is prepared for the work that is being measured."""

    def __init__(self, compiled):
        self.compiled = compiled
        self.product = None                            # a copy, whose arrays are kept too
        self.multiply = self.tile = None
        self.dequantizers = []

    def keep(self, product):
        places = product.places
        self.product = {name: getattr(product, name) for name, _ in Product._fields_}
        for name in ("a", "a_scales", "b", "b_scales", "d"):
            self.product[name] = [getattr(product, name)[i] or 0 for i in range(places)]

    def launch_multiply(self, kernel, tile, place):
        p = self.product
        grid = (p["m"] // tile[0] * (p["n"] // tile[1]), 1, 1)
        operands = [p[name][place] or p[name[0]][place] for name in ("a", "a_scales", "b", "b_scales", "d")]
        kernel[grid](*operands, p["m"], p["n"], p["k"], p["alpha"], *[None] * 10, stream=p["stream"])

    def launch_dequantizers(self, place):
        p = self.product
        for kernel, operand, count in self.dequantizers:
            pointers = p[operand][place], p[operand + "_scales"][place], p[operand + "_values"]
            kernel[(count // kernels.ELEMENTS_OF_A_CTA, 1, 1)](*pointers, *[None] * 3, stream=p["stream"])


def milliseconds(torch, stream, work, places):
    """The least of a few trials: one tile is to be chosen, no figure to be made."""
    best = float("inf")
    for i in range(TRIALS):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record(stream)
        work(i % places)
        events[1].record(stream)
        stream.synchronize()
        best = min(best, events[0].elapsed_time(events[1]))
    return best


def prepare_multiply(torch, state, product):
    """The best tile's name."""
    state.keep(product)
    p = state.product
    a, b = p["a_format"].decode(), p["b_format"].decode()
    stream = torch.cuda.ExternalStream(p["stream"])
    best, why = None, "no tile divides the sizes"
    for tile in state.compiled.tiles:
        if p["m"] % tile[0] or p["n"] % tile[1] or p["k"] % tile[2]:
            continue
        kernel, reason = state.compiled.get((a, b, tile), kernels.product_source(a, b, tile))
        if kernel is None:
            why = reason
            continue
        work = functools.partial(state.launch_multiply, kernel, tile)
        time = milliseconds(torch, stream, work, p["places"])
        if best is None or time < best[0]:
            best = time, kernel, tile
    if best is None:
        return None, f"not served by dot_scaled: {why}"
    _, state.multiply, state.tile = best
    return True, "dot_scaled, tile {}x{}x{}, {} warps, {} stages".format(*state.tile)


def prepare_dequantize(state, product):
    """Both operands, or none."""
    state.keep(product)
    state.dequantizers = []
    for operand, rows in (("a", "m"), ("b", "n")):
        name, count = state.product[operand + "_format"].decode(), state.product[rows] * state.product["k"]
        if name == "bf16":
            continue
        if count % kernels.ELEMENTS_OF_A_CTA:
            return None, "sizes are no multiples of the kernel's"
        kernel, why = state.compiled.get(("dequantize", name), kernels.dequantize_source(name))
        if kernel is None:
            return None, why
        state.dequantizers.append((kernel, operand, count))
    return True, "Triton's dequantizing"


def guest_of(torch, state):
    """The functions that the library calls.  Nothing may be raised through it."""
    def prepare(way, product, text, room):
        try:
            served, words = prepare_multiply(torch, state, product[0]) if way == MULTIPLY else prepare_dequantize(state, product[0])
        except Exception as error:                     # a peer that fails is a peer that does not serve
            served, words = None, f"{type(error).__name__}: {error}"
        words = words.encode()[:room - 1] + b"\0"
        ctypes.memmove(text, words, len(words))
        return 1 if served else 0

    def run(way, place):
        try:
            if way == MULTIPLY:
                state.launch_multiply(state.multiply, state.tile, place)
            else:
                state.launch_dequantizers(place)
            return 0
        except Exception as error:                     # as above; the library ends the program
            print(f"bench_gpu.py: {error}", file=sys.stderr)
            return 1

    return Guest(f"PyTorch {torch.__version__}, Triton {triton.__version__}".encode(), PREPARE(prepare), RUN(run))


def main():
    """Kernels are compiled by processes that start before this one touches the GPU."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    compiled = Compiled("--quick" in sys.argv)
    import torch                                       # pylint: disable=import-outside-toplevel
    torch.cuda.init()
    guest = guest_of(torch, State(compiled))
    library = ctypes.CDLL(sys.argv[1])
    words = [b"bench_gpu"] + [word.encode() for word in sys.argv[2:]]
    return library.bench_gpu(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None), ctypes.byref(guest))


if __name__ == "__main__":
    sys.exit(main())

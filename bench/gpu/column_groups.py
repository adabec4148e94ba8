#!/usr/bin/env python3
"""Gradients of experts' weights on a GPU: one product with groups along K beside a product for each group alone, by
this library, and beside PyTorch's grouped product and batched product of bf16.

    column_groups.py LIBRARY [--rounds N] [--formats NAME,...] [--shapes N]

Needs PyTorch with a GPU.  Every D of the product with groups is compared with the products of the groups' columns
alone, byte for byte; one that differs makes the exit status 1.  Times are medians of replayed graphs on events of the
GPU, in microseconds; quantizing is in none of them."""
import argparse
import ctypes
import os
import statistics
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/search"))
from library import Context, Library, Matmul, Matrix, Plan, QuantizeOptions, RealMatrix, new   # noqa: E402

# M, N, K (tokens of all experts together) and how many experts.
SHAPES = [("8 experts", 4096, 4096, 16384, 8), ("Mixtral's first", 4096, 14336, 8192, 8),
          ("gpt-oss' first, 32 experts", 5760, 2880, 16384, 32), ("Qwen3-30B's, 128 experts", 1536, 2048, 32768, 128),
          ("128 small experts", 768, 2048, 16384, 128)]
BITS = {"mxfp8_e4m3": 8, "mxfp8_e5m2": 8, "nvfp4": 4, "mxfp4": 4, "bf16": 16}
BLOCK = {"mxfp8_e4m3": 32, "mxfp8_e5m2": 32, "nvfp4": 16, "mxfp4": 32}


class Operand:
    """A matrix of rows x K in device memory: codes as bytes, linear scales."""

    def __init__(self, lib, name, codes, scales):
        self.lib, self.name, self.codes, self.scales = lib, name, codes, scales
        self.columns = codes.shape[1] * 8 // BITS[name]
        self.struct = new(Matrix, format=lib.formats[name], rows=codes.shape[0], columns=self.columns, batch=1,
                          data=codes.data_ptr())
        if BITS[name] == 4:
            self.struct.packing = lib.packings["low_first"]
        if scales is not None:
            self.struct.scales = scales.data_ptr()

    def stretch(self, first, end):
        """Columns of one group, as a matrix of its own."""
        bits = BITS[self.name]
        codes = self.codes[:, first * bits // 8 : end * bits // 8].contiguous()
        scales = None if self.scales is None else self.scales[:, first // BLOCK[self.name] :
                                                              end // BLOCK[self.name]].contiguous()
        return Operand(self.lib, self.name, codes, scales)


def quantized(context, name, numbers):
    """numbers: bf16, rows x K."""
    lib, (rows, columns) = context.library, numbers.shape
    if name == "bf16":
        return Operand(lib, name, numbers.view(torch.uint8), None)
    codes = torch.empty(rows, columns * BITS[name] // 8, dtype=torch.uint8, device="cuda")
    scales = torch.empty(rows, columns // BLOCK[name], dtype=torch.uint8, device="cuda")
    it = Operand(lib, name, codes, scales)
    source = new(RealMatrix, type=lib.reals["bf16"], rows=rows, columns=columns, data=numbers.data_ptr(),
                 row_stride=columns, column_stride=1, batch=1)
    torch.cuda.synchronize()
    lib.call("bsm_quantize", context.handle, ctypes.byref(source), ctypes.byref(new(QuantizeOptions)),
             ctypes.byref(it.struct), None)
    context.synchronize()
    return it


class Product:
    """A product with a plan and a workspace of its own; D is bf16."""

    def __init__(self, context, a, b, stream, columns=None):
        lib, matrices = context.library, 1 if columns is None else len(columns)
        self.a, self.b = a, b
        self.d = torch.full((matrices, a.struct.rows, b.struct.rows), float("nan"), dtype=torch.bfloat16,
                            device="cuda")
        self.d_struct = new(Matrix, format=lib.formats["bf16"], rows=a.struct.rows, columns=b.struct.rows,
                            batch=matrices, data=self.d.data_ptr())
        self.product = new(Matmul, a=ctypes.pointer(a.struct), b=ctypes.pointer(b.struct),
                           d=ctypes.pointer(self.d_struct), stream=stream)
        if columns is not None:
            self.columns = torch.tensor(columns, dtype=torch.int64, device="cuda")
            self.product.groups, self.product.group_columns = matrices, self.columns.data_ptr()
        self.plan = Plan(context, self.product)
        size = self.plan.workspace_bytes()
        self.workspace = torch.empty(max(256, size), dtype=torch.uint8, device="cuda")

    def run(self):
        self.plan.run(self.product, self.workspace.data_ptr(), self.workspace.numel())


def median(launches, rounds):
    """Microseconds of the work that `launches` puts into the current stream, captured once."""
    launches()                                         # what is only done the first time
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        launches()
    work = graph.replay
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def drawn_columns(k, groups, generator):
    """Multiples of 32, one of them 0, some several times as large as others."""
    share = torch.rand(groups, generator=generator) ** 2 + 0.02
    share[groups // 2] = 0
    columns = (share / share.sum() * (k // 32)).floor().to(torch.int64) * 32
    columns[0] += k - columns.sum()
    return columns.tolist()


def torch_times(x, y, columns, rounds):
    """bf16: PyTorch's grouped product, and a batched one of equal groups."""
    found = {}
    offsets = torch.tensor(columns, device="cuda").cumsum(0).to(torch.int32)
    grouped = getattr(torch.nn.functional, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)
    try:
        found["grouped"] = median(lambda: grouped(x, y.t(), offs=offsets), rounds)
    except Exception as error:                         # its rules change from version to version
        print("  torch's grouped product: %s" % str(error).splitlines()[0])
    each = x.shape[1] // len(columns)
    xs = x[:, : each * len(columns)].reshape(x.shape[0], len(columns), each).transpose(0, 1).contiguous()
    ys = y[:, : each * len(columns)].reshape(y.shape[0], len(columns), each).transpose(0, 1).contiguous()
    found["bmm"] = median(lambda: torch.bmm(xs, ys.transpose(1, 2)), rounds)
    return found


def compare(context, name, shape, rounds, stream):
    """True if all bits are the same."""
    title, m, n, k, groups = shape
    generator = torch.Generator().manual_seed(m + n + k + groups)
    columns = drawn_columns(k, groups, generator)
    torch.manual_seed(groups)
    x, y = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    a, b = quantized(context, name, x), quantized(context, name, y)
    together = Product(context, a, b, stream, columns)
    ends = [sum(columns[: i + 1]) for i in range(groups)]
    alone = [Product(context, a.stretch(end - count, end), b.stretch(end - count, end), stream) if count else None
             for count, end in zip(columns, ends)]
    run_alone = lambda: [product.run() for product in alone if product]
    together.run()
    run_alone()
    torch.cuda.synchronize()
    wrong = 0
    for group, product in enumerate(alone):
        want = product.d[0] if product else torch.zeros_like(together.d[0])
        wrong += not torch.equal(together.d[group].view(torch.int16), want.view(torch.int16))
    times = {"groups": median(together.run, rounds), "one by one": median(run_alone, rounds)}
    if name == "bf16":
        times.update(torch_times(x, y, columns, rounds))
    flops = 2.0 * m * n * k
    print("%-12s %-28s M=%d N=%d K=%d, %d groups of %d to %d columns: %s" % (
        name, title, m, n, k, groups, min(columns), max(columns),
        "all bits as alone" if wrong == 0 else "%d GROUPS DIFFER" % wrong))
    print("  " + ", ".join("%s %.1f us (%.0f TFLOPS)" % (key, time, flops / time * 1e-6)
                           for key, time in times.items()))
    print("  " + together.plan.describe(), flush=True)
    return wrong == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--formats", default="bf16,mxfp8_e4m3,nvfp4")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="only the first so many")
    options = parser.parse_args()
    context = Context(Library(options.library), True)
    stream = torch.cuda.Stream()
    print("PyTorch %s, %s" % (torch.__version__, torch.cuda.get_device_name()))
    with torch.cuda.stream(stream):
        fine = [compare(context, name, shape, options.rounds, stream.cuda_stream)
                for shape in SHAPES[: options.shapes] for name in options.formats.split(",")]
    print("column_groups: %d passed, %d failed" % (sum(fine), len(fine) - sum(fine)))
    return not all(fine)


if __name__ == "__main__":
    sys.exit(main())

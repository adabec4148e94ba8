#!/usr/bin/env python3
"""Products of experts on a GPU: bf16 rows, grouped by expert, times 4-bit weights, as stored and prepacked, beside
PyTorch's grouped product of bf16, and beside humming's grouped kernels where they can be imported.

    grouped.py LIBRARY [--format NAME] [--layers NAME,...] [--tokens N,...] [--rounds N] [--force KERNEL,...]

Needs PyTorch with a GPU.  Tokens choose experts unevenly.  Weights come from memory: 320 MB and more pass before an
expert's come again, and calls differ in which experts have how many rows.  Contenders take turns; times are medians of
replayed graphs, in microseconds.  D by prepacked weights is compared with D by stored ones, byte for byte: one that
differs makes the exit status 1.  Errors are relative, |D - reference| over |reference|, both in the norm of fp32."""
import argparse
import ctypes
import json
import math
import os
import statistics
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/search"))
from library import Context, Library, Matmul, Matrix, Plan, QuantizeOptions, RealMatrix, new   # noqa: E402

# N, K, experts, experts of a token.
LAYERS = {"gpt-oss-20b-up": (5760, 2880, 32, 4), "gpt-oss-20b-down": (2880, 2880, 32, 4),
          "gpt-oss-120b-up": (5760, 2880, 128, 4), "gpt-oss-120b-down": (2880, 2880, 128, 4),
          "deepseek-v3-up": (4096, 7168, 256, 8), "deepseek-v3-down": (7168, 2048, 256, 8)}
BLOCK = {"mxfp4": 32, "nvfp4": 16}
COLD_BYTES = 320 << 20
ROUTINGS, DIFFERENT_EXPERTS = 8, 8


def routings(tokens, experts, top):
    """Rows of each expert, some calls' worth: an expert is as popular as exp(0.8 normal); between calls the same
    numbers go to other experts."""
    generator = torch.Generator().manual_seed(tokens + experts)
    popular = 0.8 * torch.randn(experts, generator=generator)
    drawn = torch.rand(tokens, experts, generator=generator).clamp(1e-9, 1 - 1e-7)
    rows = torch.bincount((popular - torch.log(-torch.log(drawn))).topk(top, 1).indices.flatten(), minlength=experts)
    return [torch.roll(rows, i * max(1, experts // ROUTINGS)).to("cuda") for i in range(ROUTINGS)]


class Weights:
    """Of all experts: codes, linear scales, and the bf16 numbers of the few experts that all others are copies of."""

    def __init__(self, context, name, n, k, experts):
        lib, few = context.library, min(experts, DIFFERENT_EXPERTS)
        numbers = torch.randn(few * n, k, device="cuda", dtype=torch.bfloat16)
        codes = torch.empty(few * n, k // 2, dtype=torch.uint8, device="cuda")
        scales = torch.empty(few * n, k // BLOCK[name], dtype=torch.uint8, device="cuda")
        self.context, self.name, self.n, self.k, self.experts = context, name, n, k, experts
        real = new(RealMatrix, type=lib.reals["bf16"], rows=few * n, columns=k, data=numbers.data_ptr(), row_stride=k,
                   column_stride=1, batch=1)
        coded = self.matrix(codes, scales, few * n, 1)
        torch.cuda.synchronize()
        lib.call("bsm_quantize", context.handle, ctypes.byref(real), ctypes.byref(new(QuantizeOptions)),
                 ctypes.byref(coded), None)
        back = new(RealMatrix, type=lib.reals["bf16"], rows=few * n, columns=k, data=numbers.data_ptr(), row_stride=k,
                   column_stride=1, batch=1)
        lib.call("bsm_dequantize", context.handle, ctypes.byref(coded), ctypes.byref(back))
        context.synchronize()
        self.values = numbers.view(few, n, k)
        copies = experts // few
        codes, scales = (x.view(few, n, -1).repeat(copies, 1, 1) for x in (codes, scales))
        self.places = max(1, math.ceil(COLD_BYTES / (codes.numel() + scales.numel())))
        self.coded = [(codes, scales)] + [(codes.clone(), scales.clone()) for _ in range(self.places - 1)]

    def matrix(self, codes, scales, rows, batch):
        lib = self.context.library
        return new(Matrix, format=lib.formats[self.name], rows=rows, columns=self.k, batch=batch,
                   data=codes.data_ptr(), scales=scales.data_ptr(), packing=lib.packings["low_first"])

    def reference(self, x, rows):
        """fp32 products of the dequantized numbers."""
        d, first = torch.empty(x.shape[0], self.n, device="cuda"), 0
        for expert, count in enumerate(rows.tolist()):
            of = self.values[expert % len(self.values)].float()
            d[first : first + count] = x[first : first + count].float() @ of.t()
            first += count
        return d


class Ours:
    """The library's grouped product; kernel: a name to force, which reads prepacked weights."""

    def __init__(self, weights, m, prepacked, kernel=None):
        context, self.weights, self.prepacked = weights.context, weights, prepacked
        lib = self.lib = context.library
        self.x = torch.randn(m, weights.k, device="cuda").to(torch.bfloat16)
        self.d = torch.zeros(m, weights.n, device="cuda", dtype=torch.bfloat16)
        self.rows = torch.zeros(weights.experts, dtype=torch.int64, device="cuda")
        context.force(lib.kernels[kernel] if kernel else -1)
        self.plan = Plan(context, self.product(self.x, self.d, self.rows, 0))
        context.force(-1)
        self.workspace = torch.empty(max(256, self.plan.workspace_bytes()), dtype=torch.uint8, device="cuda")
        size = self.plan.panels_bytes() if prepacked else 0
        if prepacked and size == 0:
            raise RuntimeError("no kernel for prepacked weights")
        if prepacked and not hasattr(weights, "panels"):
            weights.panels = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(weights.places)]
            for place, panels in enumerate(weights.panels):
                self.plan.pack(self.product(self.x, self.d, self.rows, place), panels.data_ptr(), size)
            torch.cuda.synchronize()

    def product(self, x, d, rows, place, panels=None):
        lib, of = self.lib, self.weights
        codes, scales = of.coded[place % of.places]
        a = new(Matrix, format=lib.formats["bf16"], rows=x.shape[0], columns=of.k, batch=1, data=x.data_ptr())
        b = of.matrix(codes, scales, of.n, of.experts)
        to = new(Matrix, format=lib.formats["bf16"], rows=x.shape[0], columns=of.n, batch=1, data=d.data_ptr())
        return new(Matmul, a=ctypes.pointer(a), b=ctypes.pointer(b), d=ctypes.pointer(to), groups=of.experts,
                   group_rows=rows.data_ptr(), stream=torch.cuda.current_stream().cuda_stream,
                   b_panels=None if panels is None else panels.data_ptr())

    def __call__(self, x, d, rows, place):
        panels = self.weights.panels[place % self.weights.places] if self.prepacked else None
        self.plan.run(self.product(x, d, rows, place, panels), self.workspace.data_ptr(), self.workspace.numel())
        return d


def pytorch(weights):
    values = weights.values.repeat(weights.experts // len(weights.values), 1, 1)
    grouped = getattr(torch.nn.functional, "grouped_mm", None) or getattr(torch, "_grouped_mm")

    def for_routings(routed):                          # offsets are not timed
        offsets = [rows.cumsum(0).to(torch.int32) for rows in routed]
        return lambda x, d, rows, i: grouped(x, values.transpose(-2, -1), offs=offsets[i % len(offsets)])

    return for_routings


def humming(weights):
    from humming.forward import humming_forward
    from humming.layer import HummingLayer
    nvfp4 = weights.name == "nvfp4"
    kind = {"quant_method": "humming", "b_dtype": "float4e2m1", "bs_dtype": "float8e4m3", "weight_scale_group_size": 16,
            "weight_scale_2_type": "tensor"} if nvfp4 else {"quant_method": "mxfp4"}
    places, layer = [], None
    for codes, scales in weights.coded:
        layer = HummingLayer(shape_n=weights.n, shape_k=weights.k, weight_config=dict(kind),
                             num_experts=weights.experts, torch_dtype=torch.bfloat16, pad_n_to_multiple=128,
                             pad_k_to_multiple=128).cuda()
        given = {"weight": codes.view(torch.int32), "weight_scale": scales.view(torch.float8_e4m3fn),
                 "weight_scale_2": torch.ones(weights.experts, device="cuda")}
        layer.load_from_tensors(given if nvfp4 else {"weight": codes, "weight_scale": scales})
        layer.transform()
        places.append((layer.weight.data, layer.weight_scale.data))

    def for_routings(routed):
        begins = [torch.nn.functional.pad(rows.cumsum(0), (1, 0)).long() for rows in routed]

        def run(x, d, _, i):
            codes, scales = places[i % len(places)]
            humming_forward(layer.humming_config, inputs=x, weight=codes, weight_scale=scales, outputs=d,
                            weight_scale_2=getattr(layer, "weight_scale_2", None), locks=layer.locks,
                            expert_layout=begins[i % len(begins)],
                            compute_config=json.dumps({"gemm_type": "grouped_contiguous"}))
            return d

        return run

    return for_routings


class Way:
    """A contender with its graph of calls."""

    def __init__(self, name, call, x, d, routed, count):
        self.name, self.times, self.calls, self.graph = name, [], count, None
        self.step = lambda i: call(x, d, routed[i % len(routed)], i)

    def capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.step(0)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for i in range(self.calls):
                self.step(i)


def in_turn(ways, rounds):
    for way in ways:
        way.graph.replay()
        way.graph.replay()
    torch.cuda.synchronize()
    for _ in range(rounds):
        for way in ways:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            way.graph.replay()
            end.record()
            end.synchronize()
            way.times.append(begin.elapsed_time(end) * 1e3 / way.calls)


def contenders(weights, m, forced):
    yield "as stored", lambda: Ours(weights, m, False)
    yield "prepacked", lambda: Ours(weights, m, True)
    for kernel in forced:
        yield kernel, lambda kernel=kernel: Ours(weights, m, True, kernel)


def compare(weights, title, tokens, top, peers, options):
    """True if prepacked and stored weights give the same D."""
    routed, m = routings(tokens, weights.experts, top), tokens * top
    x = torch.randn(m, weights.k, device="cuda").to(torch.bfloat16)
    want, ways, errors, found = weights.reference(x, routed[0]), [], {}, {}
    makers = list(contenders(weights, m, options.force)) + [
        (name, lambda peer=peer: peer(routed)) for name, peer in peers]
    for name, make in makers:
        try:
            d = torch.zeros(m, weights.n, device="cuda", dtype=torch.bfloat16)
            way = Way(name, make(), x, d, routed, max(ROUTINGS, weights.places))
            found[name] = way.step(0).reshape(m, weights.n).clone()
            errors[name] = float((found[name].float() - want).norm() / want.norm())
            way.capture()
            ways.append(way)
        except Exception as error:                     # what a peer lacks differs from version to version
            print("  %s: %s" % (name, str(error).splitlines()[0][:160]))
    in_turn(ways, options.rounds)
    same = "prepacked" not in found or torch.equal(found["prepacked"].view(torch.int16),
                                                   found["as stored"].view(torch.int16))
    filled = routed[0][routed[0] > 0]
    print("%s %s, %d tokens, %d groups of %d to %d rows: %s" % (
        weights.name, title, tokens, len(filled), filled.min(), filled.max(),
        ", ".join("%s %.1f (%.2e)" % (way.name, statistics.median(way.times), errors[way.name]) for way in ways)))
    if not same:
        print("  PREPACKED WEIGHTS GIVE ANOTHER D")
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--format", default="mxfp4", choices=sorted(BLOCK))
    parser.add_argument("--layers", default=",".join(LAYERS))
    parser.add_argument("--tokens", default="1,4,16,64,256,1024,4096")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--force", default=[], type=lambda names: names.split(","),
                        help="kernels for prepacked weights")
    options = parser.parse_args()
    context = Context(Library(options.library), True)
    print("PyTorch %s, %s; microseconds, and the relative error" % (torch.__version__, torch.cuda.get_device_name()))
    same = []
    for title in options.layers.split(","):
        n, k, experts, top = LAYERS[title]
        torch.manual_seed(1)
        weights, peers = Weights(context, options.format, n, k, experts), []
        for name, make in ("PyTorch, bf16", pytorch), ("humming", humming):
            try:
                peers.append((name, make(weights)))
            except Exception as error:
                print("  %s: %s" % (name, str(error).splitlines()[0][:160] if str(error) else type(error).__name__))
        same += [compare(weights, title, tokens, top, peers, options) for tokens in map(int, options.tokens.split(","))]
        del weights, peers
        torch.cuda.empty_cache()
    print("grouped: %d passed, %d failed" % (sum(same), len(same) - sum(same)))
    return not all(same)


if __name__ == "__main__":
    sys.exit(main())

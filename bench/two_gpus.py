#!/usr/bin/env python3
"""Column- and row-parallel layers over the GPUs of a host, with quantized all-gathers, beside DTensor's in bf16.

    PYTHONPATH=python/src BLOCKSCALE_LIBRARY=build/release/lib/libblockscale.so \\
        torchrun --nproc-per-node 2 bench/two_gpus.py --out build/two_gpus.json

Tokens are shared among ranks between layers (Shard(0)).  "Column" is all-gather and product with W (28672 x 8192),
"row" product with W (8192 x 28672) and reduce-scatter in bf16, "both" one after the other; quantizing is included.  All
rounds go through all variants in turn; a time is the median of rounds of the slowest rank's mean.  First each layer's
result is compared with one GPU's: column-parallel bit for bit, row-parallel within the bound of its roundings.

--alone 2, without torchrun, times one of two ranks on one GPU with collectives that do nothing and take no time: what a
rank computes, and so the ratio where links cost nothing.  Results are not compared then, for there are none."""

import argparse
import functools
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")      # multicast over NVLink is not there on every host

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import blockscale
from blockscale.torch import distributed

# weights, inputs, compute, overlap
VARIANTS = {
    "MXFP8": ("mxfp8_e4m3", "mxfp8_e4m3", "exact", False),
    "MXFP8, fast": ("mxfp8_e4m3", "mxfp8_e4m3", "fast", False),
    "MXFP8, fast, overlapped": ("mxfp8_e4m3", "mxfp8_e4m3", "fast", True),
    "MXFP8 x MXFP4, fast": ("mxfp4", "mxfp8_e4m3", "fast", False),
    "MXFP4": ("mxfp4", "mxfp4", "exact", False),
    "NVFP4": ("nvfp4", "nvfp4", "exact", False),
}
PARTS = ("column", "row", "both")


class Layers(nn.Module):
    """One layer up and one down."""

    def __init__(self, up: nn.Module, down: nn.Module) -> None:
        super().__init__()
        self.up, self.down = up, down

    def part(self, name: str, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        if name == "column":
            return self.up(x)
        return self.down(h if name == "row" else self.up(x))


class ByHand(nn.Module):
    """bf16 with the same collectives, called without DTensor."""

    def __init__(self, up: torch.Tensor, down: torch.Tensor) -> None:
        super().__init__()
        self.up_weight, self.down_weight = up, down

    def up(self, x: torch.Tensor) -> torch.Tensor:
        whole = x.new_empty(x.shape[0] * dist.get_world_size(), x.shape[1])
        dist.all_gather_into_tensor(whole, x)
        return nn.functional.linear(whole, self.up_weight)

    def down(self, h: torch.Tensor) -> torch.Tensor:
        return distributed.reduce_scatter_rows(nn.functional.linear(h, self.down_weight))

    part = Layers.part


def layer(rows: int, columns: int, seed: int, device: torch.device) -> nn.Linear:
    """The same whole layer on every rank."""
    generator = torch.Generator(device).manual_seed(seed)
    made = nn.Linear(columns, rows, bias=False, device="meta", dtype=torch.bfloat16)
    weight = torch.randn(rows, columns, generator=generator, device=device, dtype=torch.bfloat16)
    made.weight = nn.Parameter(weight.mul_(columns ** -0.5), requires_grad=False)
    return made


def compare(name: str, layers: Layers, up: nn.Linear, down: nn.Linear, tokens: int) -> str:
    """One rank's results beside those of one GPU for all; says what agreed, raises AssertionError where it does not."""
    weights, inputs, compute, _ = VARIANTS[name]
    rank, ranks = dist.get_rank(), dist.get_world_size()
    device = up.weight.device
    generator = torch.Generator(device).manual_seed(5)
    x = torch.randn(tokens, up.in_features, generator=generator, device=device, dtype=torch.bfloat16)
    got = layers.up(x.chunk(ranks)[rank].contiguous())
    whole = torch.empty(tokens, up.out_features, device=device, dtype=torch.bfloat16)
    blockscale.matmul(blockscale.quantize(x, inputs), blockscale.quantize(up.weight, weights), out=whole,
                      compute=compute)
    assert torch.equal(got, whole.chunk(ranks, 1)[rank]), f"{name}: column-parallel differs from one GPU"
    h = whole.chunk(ranks, 1)[rank].contiguous()
    got = layers.down(h)
    single = torch.empty(tokens, down.out_features, device=device, dtype=torch.float32)
    blockscale.matmul(blockscale.quantize(whole, inputs), blockscale.quantize(down.weight, weights), out=single,
                      compute=compute)
    # Sums of ranks in bf16: one rounding of each, and of each addition.  Requantized sums keep 13 bits: fast has more.
    error = (got.float() - single.chunk(ranks)[rank]).norm() / single.norm() * ranks ** 0.5
    limit = 2.0 ** -8 * ranks if compute == "exact" else 2.0 ** -6
    assert error < limit, f"{name}: row-parallel is {error:.2e} from one GPU, {limit:.2e} is allowed"
    return f"column-parallel bits equal, row-parallel {error:.1e} of the norm away"


def measure(call: Callable[[], object], iterations: int, device: torch.device) -> float:
    """Mean milliseconds of a call, the slowest rank's."""
    dist.barrier()
    wait(device)
    began = time.perf_counter()
    for _ in range(iterations):
        call()
    wait(device)
    slowest = torch.tensor([1e3 * (time.perf_counter() - began) / iterations], device=device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/two_gpus.json"))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: with gloo, to try the program")
    parser.add_argument("--alone", type=int, default=0, help="one rank of so many, without the others")
    parser.add_argument("--tokens", default="2048,4096,8192", help="numbers of tokens, with commas between them")
    parser.add_argument("--hidden", type=int, default=8192)
    parser.add_argument("--intermediate", type=int, default=28672)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--iterations", type=int, default=20, help="calls of a round")
    parser.add_argument("--variants", default=";".join(VARIANTS), help="which, with semicolons between them")
    options = parser.parse_args()
    device = torch.device("cpu")
    machine, nccl = "CPU", "gloo"
    if options.alone:
        from torch.testing._internal.distributed.fake_pg import FakeStore
        device = torch.device(options.device)
        machine = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
        nccl = f"one rank of {options.alone}, collectives left out"
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=options.alone)
    elif options.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        machine, nccl = torch.cuda.get_device_name(), "NCCL " + ".".join(map(str, torch.cuda.nccl.version()))
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh(options.device, (ranks,))
    say = print if rank == 0 else lambda *_, **__: None

    up = layer(options.intermediate, options.hidden, 1, device)
    down = layer(options.hidden, options.intermediate, 2, device)
    variants: dict[str, nn.Module] = {}
    checks = {}
    with torch.no_grad():
        for name in options.variants.split(";"):
            weights, inputs, compute, overlap = VARIANTS[name]
            variants[name] = Layers(
                distributed.ColumnParallelLinear.from_float(up, weights, input_format=inputs, compute=compute,
                                                            overlap=overlap),
                distributed.RowParallelLinear.from_float(down, weights, input_format=inputs, compute=compute))
            if not options.alone:
                checks[name] = compare(name, variants[name], up, down, 256 * ranks)
                say(f"{name}: {checks[name]}", flush=True)
        variants["bf16, by hand"] = ByHand(up.weight.chunk(ranks)[rank].contiguous(),
                                           down.weight.chunk(ranks, 1)[rank].contiguous())
        variants["bf16, DTensor"] = parallelize_module(Layers(up, down), mesh, {
            "up": ColwiseParallel(input_layouts=Shard(0)), "down": RowwiseParallel(output_layouts=Shard(0))})
        results = []
        say(f"\n{1 if options.alone else ranks} x {machine}, PyTorch {torch.__version__}, {nccl}, {options.hidden} and "
            f"{options.intermediate} features\n")
        say("| tokens | layers | column, ms | ratio | row, ms | ratio | both, ms | ratio |")
        say("|---|---|---|---|---|---|---|---|")
        for tokens in map(int, options.tokens.split(",")):
            x = torch.randn(tokens // ranks, options.hidden, device=device, dtype=torch.bfloat16)
            h = torch.randn(tokens, options.intermediate // ranks, device=device, dtype=torch.bfloat16)
            times: dict[str, dict[str, list[float]]] = {name: {part: [] for part in PARTS} for name in variants}
            for each in range(-1, options.rounds):      # one round to warm up
                for part in PARTS:
                    for name, layers in variants.items():
                        count = 3 if each < 0 else options.iterations
                        took = measure(functools.partial(layers.part, part, x, h), count, device)
                        if each >= 0:
                            times[name][part].append(took)
            peer = {part: statistics.median(times["bf16, DTensor"][part]) for part in PARTS}
            for name in variants:
                medians = {part: statistics.median(times[name][part]) for part in PARTS}
                say(f"| {tokens} | {name} | " + " | ".join(f"{medians[part]:.3f} | {peer[part] / medians[part]:.2f}"
                                                           for part in PARTS) + " |", flush=True)
                results.append({"tokens": tokens, "layers": name, "ms": times[name], "median_ms": medians,
                                "ratio": {part: peer[part] / medians[part] for part in PARTS}})
    if rank == 0:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({
            "device": machine, "ranks": ranks, "torch": torch.__version__,
            "collectives": nccl, "options": {name: str(value) for name, value in vars(options).items()},
            "checks": checks, "results": results}, indent=1) + "\n")
        best = max(result["ratio"]["both"] for result in results if result["layers"] in VARIANTS)
        print(f"\n{options.out}; the best pair of layers is {best:.2f} times as fast as DTensor in bf16"
              + (", without what collectives cost" if options.alone else ""))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())

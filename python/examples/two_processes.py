#!/usr/bin/env python3
"""A feed-forward part over two processes: activations travel as MXFP8, codes and scales.

    torchrun --nproc-per-node 2 two_processes.py        GPUs and NCCL where there are enough, else the CPU and gloo
    python3 two_processes.py                            starts two processes by itself

More hosts are the same program: torchrun says by --nnodes and --rdzv-endpoint where they are."""
import os
import subprocess
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

from blockscale.torch.distributed import ColwiseParallel, RowwiseParallel


class FeedForward(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.nn.functional.gelu(self.up(x)))


def main() -> None:
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    kind = "cuda" if torch.cuda.device_count() >= ranks else "cpu"
    if kind == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    mesh = init_device_mesh(kind, (ranks,))

    torch.manual_seed(0)                                    # the same model and tokens in every process
    model = FeedForward(256).to(kind, torch.bfloat16)
    x = torch.randn(128, 256).to(kind, torch.bfloat16)
    with torch.no_grad():
        expected = model(x).chunk(ranks)[rank]
        parallelize_module(model, mesh, {"up": ColwiseParallel("mxfp8_e4m3"), "down": RowwiseParallel("mxfp8_e4m3")})
        y = model(x.chunk(ranks)[rank])                     # this process' tokens in, this process' tokens out
    error = ((y - expected).float().norm() / expected.float().norm()).item()
    print(f"rank {rank} of {ranks} on {kind}: {tuple(y.shape)} tokens x features, {100 * error:.1f} % from bf16")
    dist.destroy_process_group()
    if not 0 < error < 0.1:
        sys.exit(f"rank {rank}: the result is {error:.3f} from bf16")


if __name__ == "__main__":
    if "RANK" in os.environ:
        main()
    else:
        sys.exit(subprocess.call([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", __file__]))

"""Collectives that carry codes and scales: what blockscale.torch.distributed is made of.

A matrix whose rows lie on several ranks is gathered as codes and as scales, bytes that torch.distributed moves as they
are: an MXFP8 number is 1.03 bytes of them, NVFP4 0.56, MXFP4 0.53, bf16 2.  All ranks have the same shapes; the group
may be of NCCL or of gloo, on one host or many."""
from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

import blockscale
from blockscale import Matrix

Group = Any     # a torch.distributed.ProcessGroup, or None for the default one


def shared_tensor_scale(x: torch.Tensor, format: str, group: Group = None) -> torch.Tensor | None:
    """The tensor scale that the shards of all ranks share: that of the whole matrix, so that codes and scales are those
    that one rank would make of it.  An fp32 tensor of one element; None for formats without a computed one.

    It costs a reduction of one number.  Infinity or NaN in any shard gives a tensor scale of 1; blocks that hold them
    are NaN then as always, and the others' precision is lost."""
    if format != "nvfp4":
        return None
    largest = x.detach().abs().amax().float().reshape(1, 1) if x.numel() else x.new_zeros(1, 1, dtype=torch.float32)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)
    # One number is quantized for its tensor scale alone: the rule stays the library's.
    scale: torch.Tensor = blockscale.quantize(largest, "nvfp4").tensor_scale
    return scale


def quantize_shard(x: torch.Tensor, format: str, group: Group = None, **options: Any) -> Matrix:
    """Quantizes this rank's part of a matrix, with the tensor scale of the whole; options as of blockscale.quantize.

    The codes are those of the whole matrix where parts begin with a block: always for parts of rows."""
    matrix: Matrix = blockscale.quantize(x, format, tensor_scale=shared_tensor_scale(x, format, group), **options)
    return matrix


class Gather:
    """An all-gather that is under way: `wait()` gives the matrix.  Work that needs no other rank's rows may be put in
    between."""

    def __init__(self, local: Matrix, group: Group, columns: bool) -> None:
        if local.layout != "linear" or local.ndim != 2:
            raise ValueError(f"a matrix of the shape {local.shape} with scales in {local.layout} is gathered: two "
                             "dimensions and linear scales, whose rows follow one another")
        self.local, self.ranks, self.columns = local, dist.get_world_size(group), columns
        if columns and self.ranks > 1 and local.columns % 32:
            raise ValueError(f"a matrix of {local.columns} columns is gathered along them: a multiple of 32, so that a "
                             "rank begins with a block")
        self.parts: list[torch.Tensor | None] = []
        self.works: list[Any] = []
        for part in (local.codes, local.scales):
            if part is None or self.ranks == 1:
                self.parts.append(part)
                continue
            part = part.contiguous().view(torch.uint8) if part.element_size() == 1 else part.contiguous()
            whole = torch.empty((self.ranks * part.shape[0], *part.shape[1:]), dtype=part.dtype, device=part.device)
            self.works.append(dist.all_gather_into_tensor(whole, part, group=group, async_op=True))
            self.parts.append(whole)

    def wait(self) -> Matrix:
        """The whole matrix, once it is there."""
        for work in self.works:
            work.wait()
        local, parts = self.local, self.parts
        shape = (self.ranks * local.rows, local.columns)
        if self.columns and self.ranks > 1:
            # Ranks lie one behind the other, each with all rows: rows are put together again, bytes beside bytes.
            parts = [None if part is None else
                     part.view(self.ranks, local.rows, -1).transpose(0, 1).reshape(local.rows, -1).contiguous()
                     for part in parts]
            shape = (local.rows, self.ranks * local.columns)
        matrix: Matrix = blockscale.from_parts(parts[0], parts[1], local.format, tensor_scale=local.tensor_scale,
                                               tensor_scale_divides=local.tensor_scale_divides, packing=local.packing,
                                               shape=shape)
        return matrix


def gather_rows(local: Matrix, group: Group = None) -> Gather:
    """Gathers a matrix whose rows are shared among ranks, rank 0's first.  Its tensor scale, if any, is the same on all
    ranks (quantize_shard)."""
    return Gather(local, group, False)


def gather_columns(local: Matrix, group: Group = None) -> Gather:
    """Gathers a matrix whose columns are shared among ranks, a multiple of 32 each."""
    return Gather(local, group, True)


def reduce_scatter_rows(partial: torch.Tensor, group: Group = None) -> torch.Tensor:
    """Adds the ranks' matrices in their own type, fp32 or bf16, and gives each rank its part of the rows, which are a
    multiple of the ranks."""
    ranks = dist.get_world_size(group)
    if ranks == 1:
        return partial
    if partial.shape[0] % ranks:
        raise ValueError(f"{partial.shape[0]} rows are scattered among {ranks} ranks: a multiple of them")
    part = torch.empty((partial.shape[0] // ranks, *partial.shape[1:]), dtype=partial.dtype, device=partial.device)
    dist.reduce_scatter_tensor(part, partial.contiguous(), group=group)
    return part

"""Several GPUs, several hosts: tensor-parallel layers on torch.distributed whose collectives carry codes and scales.

    torchrun --nproc-per-node 2 program.py

    mesh = torch.distributed.device_mesh.init_device_mesh("cuda", (2,))
    parallelize_module(model, mesh, {"up": ColwiseParallel("mxfp8_e4m3"), "down": RowwiseParallel("mxfp8_e4m3")})

Everything goes by rank and world size, so more hosts are the same program.  Between layers tokens are shared among
ranks (sequence parallelism), as Shard(0) of DTensor's own styles: a column-parallel layer quantizes its tokens, gathers
codes and scales, and multiplies with its rows of W; a row-parallel layer multiplies its columns, and the sums are added
and scattered in bf16 or fp32.

Column-parallel results have the same bits for any number of ranks.  Row-parallel ones add the ranks' sums of K / ranks
terms each, rounded to reduce_dtype: |Y - exact| grows by at most one rounding of each rank's sum and of each addition.
Weights and inputs have the codes that one rank would make, NVFP4's tensor scales included: K / ranks is a multiple of
the block."""
from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Placement, Replicate, Shard
from torch.distributed.tensor.parallel import ParallelStyle

import blockscale
from blockscale import Matrix

from . import parallel_training, training
from .collectives import (Gather, Group, gather_columns, gather_rows, quantize_shard, reduce_scatter_rows,
                          shared_tensor_scale)

__all__ = ["ColumnParallelLinear", "ColwiseParallel", "Gather", "ParallelExperts", "RowParallelLinear",
           "RowwiseParallel", "gather_columns", "gather_rows", "quantize_shard", "reduce_scatter_rows",
           "shared_tensor_scale"]


def part(count: int, group: Group, unit: int, what: str) -> slice:
    """This rank's part of `count` things, in units.  Raises ValueError where they cannot be shared equally."""
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    if count % (ranks * unit):
        raise ValueError(f"{count} {what} are shared among {ranks} ranks: a multiple of {ranks} x {unit} is needed")
    return slice(rank * count // ranks, (rank + 1) * count // ranks)


def block_of(format: str) -> int:
    """Numbers that share a scale, 1 for formats without; a unit of columns that also ends on a byte."""
    return 16 if format in ("nvfp4", "mxfp4_block16") else 32 if format.startswith("mx") else 1


class _Weight(nn.Module):
    """A quantized weight in buffers, which move, save and load as any others."""

    codes: torch.Tensor
    scales: torch.Tensor | None
    tensor_scale: torch.Tensor | None
    bias: torch.Tensor | None

    def _keep(self, matrix: Matrix, bias: torch.Tensor | None) -> None:
        self.format, self.shape, self.packing = matrix.format, matrix.shape, matrix.packing
        self.register_buffer("codes", matrix.codes)
        self.register_buffer("scales", matrix.scales)
        self.register_buffer("tensor_scale", matrix.tensor_scale)
        self.register_buffer("bias", None if bias is None else bias.detach().clone())

    def matrix(self) -> Matrix:
        """The weight, over the buffers themselves."""
        made: Matrix = blockscale.from_parts(self.codes, self.scales, self.format, tensor_scale=self.tensor_scale,
                                             packing=self.packing, shape=self.shape)
        return made


def _rows_of(matrix: Matrix, rows: slice) -> Matrix:
    """Some rows of a quantized matrix (of each of a batch), copied."""
    scales = None if matrix.scales is None else matrix.scales[..., rows, :].contiguous()
    shape = (*matrix.shape[:-2], rows.stop - rows.start, matrix.columns)
    made: Matrix = blockscale.from_parts(matrix.codes[..., rows, :].contiguous(), scales, matrix.format,
                                         tensor_scale=matrix.tensor_scale, packing=matrix.packing, shape=shape)
    return made


def _columns_of(matrix: Matrix, columns: slice) -> Matrix:
    """Some columns of a quantized matrix, copied; they begin and end with blocks."""
    per_row = matrix.codes.shape[-1]
    codes = matrix.codes[..., columns.start * per_row // matrix.columns:columns.stop * per_row // matrix.columns]
    scales = matrix.scales
    if scales is not None:
        block = block_of(matrix.format)
        scales = scales[..., columns.start // block:columns.stop // block].contiguous()
    shape = (*matrix.shape[:-1], columns.stop - columns.start)
    made: Matrix = blockscale.from_parts(codes.contiguous(), scales, matrix.format, tensor_scale=matrix.tensor_scale,
                                         packing=matrix.packing, shape=shape)
    return made


class ColumnParallelLinear(_Weight):
    """A linear layer whose output features are shared among ranks.  Made by from_float.

    forward(x): x is (tokens / ranks, input features), this rank's tokens (gather=False: all tokens, on every rank).
    Returns (tokens, output features / ranks) in x's type, all tokens: the same bits for any number of ranks."""

    group: Group
    input_format: str | None
    gather: bool
    compute: str
    overlap: bool

    @classmethod
    def from_float(cls, linear: nn.Linear, format: str, *, input_format: str | None = None, group: Group = None,
                   gather: bool = True, compute: str = "exact", overlap: bool = False) -> ColumnParallelLinear:
        """This rank's part of a layer whose whole weight every rank has.

        format        of the weight; input_format of what is gathered, "bf16" for none; None: the weight's
        compute       "fast" permits rounding to FP8 of one scale a row, on GPUs where that is faster
        overlap       this rank's own tokens are multiplied while the others' are gathered: for slow links"""
        made = cls()
        made._become(linear, format, input_format, group, gather, compute, overlap)
        return made

    def _become(self, linear: nn.Linear, format: str, input_format: str | None, group: Group, gather: bool,
                compute: str, overlap: bool = False) -> None:
        rows = part(linear.out_features, group, 1, "output features")
        whole = blockscale.quantize(linear.weight.detach(), format)
        self._keep(_rows_of(whole, rows), None if linear.bias is None else linear.bias[rows])
        self.group, self.gather, self.compute, self.overlap = group, gather, compute, overlap
        self.input_format = format if input_format is None else input_format

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        weight = self.matrix()
        if self.input_format == "bf16":
            local = blockscale.plain(tokens.to(torch.bfloat16))
        elif self.gather:
            local = quantize_shard(tokens, self.input_format or self.format, self.group)
        else:
            local = blockscale.quantize(tokens, self.input_format or self.format)
        if not self.gather or dist.get_world_size(self.group) == 1:
            y = self._product(local, weight, x, None)
            return y.view(*x.shape[:-1], y.shape[-1])
        gathered = gather_rows(local, self.group)
        if not self.overlap:
            return self._product(gathered.wait(), weight, x, None)
        ranks, rank, rows = dist.get_world_size(self.group), dist.get_rank(self.group), local.rows
        y = torch.empty(ranks * rows, weight.rows, dtype=x.dtype, device=x.device)
        self._product(local, weight, x, y[rank * rows:(rank + 1) * rows])
        whole = gathered.wait()
        for first, last in ((0, rank * rows), ((rank + 1) * rows, ranks * rows)):
            if first < last:
                self._product(_rows_of(whole, slice(first, last)), weight, x, y[first:last])
        return y

    def _product(self, a: Matrix, weight: Matrix, x: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
        if out is None:
            out = torch.empty(a.rows, weight.rows, dtype=x.dtype, device=x.device)
        blockscale.matmul(a, weight, out=out, bias=self.bias, compute=self.compute)
        return out


class RowParallelLinear(_Weight):
    """A linear layer whose input features are shared among ranks.  Made by from_float.

    forward(x): x is (tokens, input features / ranks), all tokens.  Returns (tokens / ranks, output features), this
    rank's tokens, in x's type (scatter=False: all tokens, on every rank)."""

    group: Group
    input_format: str | None
    scatter: bool
    compute: str
    reduce_dtype: torch.dtype

    @classmethod
    def from_float(cls, linear: nn.Linear, format: str, *, input_format: str | None = None, group: Group = None,
                   scatter: bool = True, compute: str = "exact",
                   reduce_dtype: torch.dtype = torch.bfloat16) -> RowParallelLinear:
        """This rank's part of a layer whose whole weight every rank has.  reduce_dtype: of the sums that ranks add,
        bf16 or fp32; the rest as of ColumnParallelLinear."""
        made = cls()
        made._become(linear, format, input_format, group, scatter, compute, reduce_dtype)
        return made

    def _become(self, linear: nn.Linear, format: str, input_format: str | None, group: Group, scatter: bool,
                compute: str, reduce_dtype: torch.dtype = torch.bfloat16) -> None:
        columns = part(linear.in_features, group, block_of(format), "input features")
        self._keep(_columns_of(blockscale.quantize(linear.weight.detach(), format), columns), linear.bias)
        self.group, self.scatter, self.compute, self.reduce_dtype = group, scatter, compute, reduce_dtype
        self.input_format = format if input_format is None else input_format

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        if self.input_format == "bf16":
            local = blockscale.plain(tokens.to(torch.bfloat16))
        else:
            local = quantize_shard(tokens, self.input_format or self.format, self.group)
        weight = self.matrix()
        partial = torch.empty(local.rows, weight.rows, dtype=self.reduce_dtype, device=x.device)
        blockscale.matmul(local, weight, out=partial, compute=self.compute)
        if self.scatter:
            y = reduce_scatter_rows(partial, self.group)
        else:
            dist.all_reduce(partial, group=self.group)
            y = partial.view(*x.shape[:-1], weight.rows)
        if self.bias is not None:
            y = y + self.bias.to(y.dtype)
        return y.to(x.dtype)


class ParallelExperts(nn.Module):
    """A mixture's experts, each shared among all ranks: rows of gate and up, columns of down.

    gate_up  (experts, 2 intermediate, hidden), gates first;  down  (experts, hidden, intermediate): whole, every rank
    forward(x, indices, weights): this rank's tokens, x (tokens / ranks, hidden), each token's experts (tokens / ranks,
    k), int64, and what their results are multiplied by.  Tokens travel as codes and scales, and are sorted by expert as
    such.  Returns (tokens / ranks, hidden)."""

    def __init__(self, gate_up: torch.Tensor, down: torch.Tensor, format: str, *, input_format: str | None = None,
                 group: Group = None, compute: str = "exact", reduce_dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        self.group, self.compute, self.reduce_dtype = group, compute, reduce_dtype
        self.input_format = format if input_format is None else input_format
        self.experts, intermediate = gate_up.shape[0], gate_up.shape[1] // 2
        mine = part(intermediate, group, block_of(format), "intermediate features")
        whole = blockscale.quantize(gate_up.detach(), format)
        gates, ups = _rows_of(whole, mine), _rows_of(whole, slice(mine.start + intermediate, mine.stop + intermediate))
        self.gate_up, self.down = _Weight(), _Weight()
        scales = None if gates.scales is None else torch.cat((gates.scales, ups.scales), 1)
        self.gate_up._keep(blockscale.from_parts(
            torch.cat((gates.codes, ups.codes), 1), scales, format, tensor_scale=whole.tensor_scale,
            packing=whole.packing, shape=(self.experts, 2 * gates.rows, whole.columns)), None)
        self.down._keep(_columns_of(blockscale.quantize(down.detach(), format), mine), None)

    def forward(self, x: torch.Tensor, indices: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        arriving = gather_rows(quantize_shard(x, self.input_format, self.group), self.group)
        indices, weights = self._gathered(indices), self._gathered(weights)
        tokens, chosen = indices.shape
        expert = indices.reshape(-1)
        order = expert.argsort(stable=True)
        counts = (expert[:, None] == torch.arange(self.experts, device=expert.device)).sum(0)
        whole = arriving.wait()
        rows = order // chosen
        a = blockscale.from_parts(whole.codes[rows], None if whole.scales is None else whole.scales[rows], whole.format,
                                  tensor_scale=whole.tensor_scale, packing=whole.packing,
                                  shape=(tokens * chosen, whole.columns))
        gate_up, down = self.gate_up.matrix(), self.down.matrix()
        h = torch.empty(a.rows, gate_up.rows // 2, dtype=x.dtype, device=x.device)
        blockscale.matmul(a, gate_up, out=h, groups=counts, activation="silu", gate="split", compute=self.compute)
        y = torch.empty(a.rows, down.rows, dtype=self.reduce_dtype, device=x.device)
        blockscale.matmul(quantize_shard(h, self.input_format, self.group), down, out=y, groups=counts,
                          compute=self.compute)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.shape[0], device=order.device)
        sums = (y[back].view(tokens, chosen, -1) * weights[:, :, None].to(y.dtype)).sum(1)
        return reduce_scatter_rows(sums, self.group).to(x.dtype)

    def _gathered(self, local: torch.Tensor) -> torch.Tensor:
        whole = local.new_empty(local.shape[0] * dist.get_world_size(self.group), *local.shape[1:])
        dist.all_gather_into_tensor(whole, local.contiguous(), group=self.group)
        return whole


# DTensor's styles -----------------------------------------------------------------------------------------------------

def _layout(given: Placement | None, default: Placement, allowed: tuple[Placement, ...], name: str) -> Placement:
    given = default if given is None else given
    if given not in allowed:
        raise ValueError(f"{name}={given}: use {' or '.join(map(str, allowed))}")
    return given


class _Style(ParallelStyle):
    """What both styles have: a torch.nn.Linear becomes a quantized layer, a training.Linear one that trains."""

    def __init__(self, format: str | None, input_format: str | None, compute: str) -> None:
        super().__init__()
        self.format, self.input_format, self.compute = format, input_format, compute

    def _linear(self, module: nn.Module, mesh: DeviceMesh) -> nn.Linear:
        name = type(self).__name__
        if not isinstance(module, nn.Linear):
            raise NotImplementedError(f"{name} is applied to a {type(module).__name__}: use torch.nn.Linear or "
                                      "blockscale.torch.training.Linear")
        if mesh.ndim != 1:
            raise ValueError(f"{name} is applied to a mesh of {mesh.ndim} dimensions: use one of them, mesh[\"tp\"]")
        if not isinstance(module, training.Linear) and self.format is None:
            raise ValueError(f"{name}: format is None: name the weight's, or convert the layer for training first")
        if self.src_data_rank is not None and not isinstance(module, training.Linear):
            for parameter in module.parameters():       # as DTensor's styles: one rank's parameters are everybody's
                dist.broadcast(parameter.data, group=mesh.get_group(), group_src=self.src_data_rank)
        return module


def _turn(module: nn.Linear, cls: type[_Weight], *arguments: Any) -> nn.Module:
    """The module itself becomes a layer of another class: its owner keeps it where it is."""
    source = nn.Linear(1, 1, bias=False, device="meta")
    source.in_features, source.out_features = module.in_features, module.out_features
    source.weight, source.bias = module.weight, module.bias
    for name in ("weight", "bias"):
        if name in module._parameters:
            del module._parameters[name]
    module.__class__ = cls      # type: ignore[assignment]
    module._become(source, *arguments)      # type: ignore[operator]
    return module


class ColwiseParallel(_Style):
    """Shares a linear layer's output features among ranks, as torch's style of this name.

    format, input_format  the weight's, and the gathered tokens'; None for a training.Linear, whose recipe says
    input_layouts         Shard(0): tokens are gathered (default); Replicate(): every rank has all
    output_layouts        Shard(-1)"""

    def __init__(self, format: str | None = None, *, input_format: str | None = None, compute: str = "exact",
                 input_layouts: Placement | None = None, output_layouts: Placement | None = None) -> None:
        super().__init__(format, input_format, compute)
        self.input_layouts = _layout(input_layouts, Shard(0), (Shard(0), Replicate()), "input_layouts")
        self.output_layouts = _layout(output_layouts, Shard(-1), (Shard(-1),), "output_layouts")

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        linear = self._linear(module, device_mesh)
        gather = self.input_layouts == Shard(0)
        if isinstance(linear, training.Linear):
            return parallel_training.share(linear, device_mesh, "column", gather, self.src_data_rank, torch.bfloat16)
        return _turn(linear, ColumnParallelLinear, self.format, self.input_format, device_mesh.get_group(), gather,
                     self.compute)


class RowwiseParallel(_Style):
    """Shares a linear layer's input features among ranks, as torch's style of this name.

    format, input_format  the weight's, and its input's; None for a training.Linear, whose recipe says
    input_layouts         Shard(-1)
    output_layouts        Shard(0): sums are added and scattered (default); Replicate(): every rank has all
    reduce_dtype          in which ranks' sums are added"""

    def __init__(self, format: str | None = None, *, input_format: str | None = None, compute: str = "exact",
                 input_layouts: Placement | None = None, output_layouts: Placement | None = None,
                 reduce_dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__(format, input_format, compute)
        self.input_layouts = _layout(input_layouts, Shard(-1), (Shard(-1),), "input_layouts")
        self.output_layouts = _layout(output_layouts, Shard(0), (Shard(0), Replicate()), "output_layouts")
        self.reduce_dtype = reduce_dtype

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        linear = self._linear(module, device_mesh)
        scatter = self.output_layouts == Shard(0)
        if isinstance(linear, training.Linear):
            return parallel_training.share(linear, device_mesh, "row", scatter, self.src_data_rank, self.reduce_dtype)
        return _turn(linear, RowParallelLinear, self.format, self.input_format, device_mesh.get_group(), scatter,
                     self.compute, self.reduce_dtype)

"""Tensor-parallel layers that train: the three products of blockscale.torch.training over several ranks.

Tokens are shared among ranks between layers.  A column-parallel layer gathers X in rows for Y, and X in columns for dW
when the backward pass wants it; a row-parallel layer gathers both copies of dY: codes and scales each time.  Parameters
are DTensors, Shard(0) or Shard(1), so optimizers, clipping and checkpoints know them.  Stochastic rounding draws
different bits on each rank; everything else is quantized as one rank would."""
from __future__ import annotations

import functools
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import blockscale

from .collectives import Group, gather_columns, gather_rows, reduce_scatter_rows, shared_tensor_scale
from .recipes import Recipe, quantize_copies
from .training import Linear, compute_type, describe_pass, new_seed, save_matrices, saved_matrices


def _empty(shape: tuple[int, ...], dtype: torch.dtype, like: torch.Tensor) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=like.device)


class _Column(torch.autograd.Function):
    """Y = X W^T + bias for this rank's rows of W; X is this rank's tokens, Y has all."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, recipe: Recipe,
                group: Group, seed: int) -> torch.Tensor:
        want_x, want_weight = ctx.needs_input_grad[:2]
        shared = functools.partial(shared_tensor_scale, group=group)
        inputs = quantize_copies(x, recipe.input, recipe.signs, columns=want_weight, seed=seed, scale_of=shared)
        assert inputs.rows is not None
        arriving = gather_rows(inputs.rows, group)
        weights = quantize_copies(weight, recipe.weight, columns=want_x, seed=seed + 2, scale_of=shared)
        whole = arriving.wait()
        y = _empty((whole.rows, weight.shape[0]), x.dtype, x)
        blockscale.matmul(whole, weights.rows, out=y, bias=bias, compute=recipe.compute)
        save_matrices(ctx, [inputs.columns, weights.columns], [])
        describe_pass(ctx, x, weight, bias, recipe, seed)
        ctx.group = group
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        recipe: Recipe = ctx.recipe
        want_x, want_weight, want_bias = ctx.needs_input_grad[:3]
        (x_columns, weight_columns), _ = saved_matrices(ctx)
        x_type, weight_type, bias_type = ctx.types
        x_shape, weight_shape = ctx.shapes
        dx = dweight = dbias = None
        arriving = None
        if want_weight:
            assert x_columns is not None
            arriving = gather_columns(x_columns, ctx.group)
        gradient = quantize_copies(dy, recipe.gradient, recipe.signs, rows=want_x, columns=want_weight,
                                   seed=ctx.seed + 4, scale_of=functools.partial(shared_tensor_scale, group=ctx.group))
        if want_x:
            partial = _empty((dy.shape[0], x_shape[1]), x_type, dy)
            blockscale.matmul(gradient.rows, weight_columns, out=partial, compute=recipe.compute)
            dx = reduce_scatter_rows(partial, ctx.group)
        if arriving is not None:
            dweight = _empty(weight_shape, weight_type, dy)
            blockscale.matmul(gradient.columns, arriving.wait(), out=dweight, compute=recipe.compute)
        if want_bias:
            dbias = dy.sum(0, dtype=torch.float32).to(bias_type)
        return dx, dweight, dbias, None, None, None


class _Row(torch.autograd.Function):
    """Y = X W^T for this rank's columns of W and X; X has all tokens, Y this rank's."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, recipe: Recipe, group: Group, seed: int,
                reduce_dtype: torch.dtype) -> torch.Tensor:
        want_x, want_weight = ctx.needs_input_grad[:2]
        shared = functools.partial(shared_tensor_scale, group=group)
        inputs = quantize_copies(x, recipe.input, recipe.signs, columns=want_weight, seed=seed, scale_of=shared)
        weights = quantize_copies(weight, recipe.weight, columns=want_x, seed=seed + 2, scale_of=shared)
        partial = _empty((x.shape[0], weight.shape[0]), reduce_dtype, x)
        blockscale.matmul(inputs.rows, weights.rows, out=partial, compute=recipe.compute)
        save_matrices(ctx, [inputs.columns, weights.columns], [])
        describe_pass(ctx, x, weight, None, recipe, seed)
        ctx.group = group
        return reduce_scatter_rows(partial, group).to(x.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        recipe: Recipe = ctx.recipe
        want_x, want_weight = ctx.needs_input_grad[:2]
        (x_columns, weight_columns), _ = saved_matrices(ctx)
        dx = dweight = None
        gradient = quantize_copies(dy, recipe.gradient, recipe.signs, rows=want_x, columns=want_weight,
                                   seed=ctx.seed + 4, scale_of=functools.partial(shared_tensor_scale, group=ctx.group))
        rows = gather_rows(gradient.rows, ctx.group) if gradient.rows is not None else None
        columns = gather_columns(gradient.columns, ctx.group) if gradient.columns is not None else None
        if rows is not None:
            dx = _empty(ctx.shapes[0], ctx.types[0], dy)
            blockscale.matmul(rows.wait(), weight_columns, out=dx, compute=recipe.compute)
        if columns is not None:
            dweight = _empty(ctx.shapes[1], ctx.types[1], dy)
            blockscale.matmul(columns.wait(), x_columns, out=dweight, compute=recipe.compute)
        return dx, dweight, None, None, None, None


class ParallelLinear(Linear):
    """A training.Linear of which this rank has a part; made by blockscale.torch.distributed's styles."""

    mesh: DeviceMesh
    kind: str
    reduce_dtype: torch.dtype

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        group = self.mesh.get_group()
        dtype = compute_type(input)
        x = input.reshape(-1, input.shape[-1]).to(dtype)
        weight, bias = _local(self.weight), None if self.bias is None else _local(self.bias)
        seed = new_seed(self.recipe)
        if seed:        # ranks whose generators are in the same state round independently
            seed = (seed + 0x9e3779b97f4a7c15 * (1 + dist.get_rank(group))) % 2 ** 62
        if self.kind == "column":
            return _Column.apply(x, weight, bias, self.recipe, group, seed)     # type: ignore[no-any-return]
        y: torch.Tensor = _Row.apply(x, weight, self.recipe, group, seed, self.reduce_dtype)
        if bias is None:
            return y
        return y + _Summed.apply(bias, group).to(y.dtype)     # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.kind}s over {self.mesh.size()} ranks"


class _Summed(torch.autograd.Function):
    """A parameter that every rank has: itself, and its gradient the sum over ranks, which have different tokens."""

    @staticmethod
    def forward(ctx: Any, parameter: torch.Tensor, group: Group) -> torch.Tensor:
        ctx.group = group
        return parameter.view_as(parameter)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        gradient = gradient.contiguous().clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


def _local(parameter: torch.Tensor) -> torch.Tensor:
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter


def share(linear: Linear, mesh: DeviceMesh, kind: str, sharded_tokens: bool, source: int | None,
          reduce_dtype: torch.dtype) -> nn.Module:
    """Turns a layer, in place, into this rank's part of it; kind is "column" or "row"."""
    if not sharded_tokens:
        raise ValueError("a layer that trains has its tokens shared among ranks between layers: use Shard(0) as "
                         "input_layouts of ColwiseParallel and output_layouts of RowwiseParallel")
    split, features = (0, linear.out_features) if kind == "column" else (1, linear.in_features)
    unit = max(linear.recipe.weight.block, linear.recipe.gradient.block)
    if features % (mesh.size() * unit):
        raise ValueError(f"{features} features are shared among {mesh.size()} ranks: a multiple of {mesh.size()} x "
                         f"{unit} is needed, whole blocks for each")

    def shared(parameter: torch.Tensor, placement: Any) -> nn.Parameter:
        made = distribute_tensor(parameter.detach(), mesh, [placement], src_data_rank=source)
        return nn.Parameter(made, requires_grad=parameter.requires_grad)

    linear.weight = shared(linear.weight, Shard(split))
    if linear.bias is not None:
        linear.bias = shared(linear.bias, Shard(0) if kind == "column" else Replicate())
    linear.__class__ = ParallelLinear
    assert isinstance(linear, ParallelLinear)
    linear.mesh, linear.kind, linear.reduce_dtype = mesh, kind, reduce_dtype
    return linear

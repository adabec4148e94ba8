"""Training mixtures of experts: a linear layer for each expert, all in one product, and its gradients.

Tokens lie sorted by expert.  The forward pass and dX are grouped products (groups of rows); the gradients of the
weights are one product whose groups lie along the summed dimension, the tokens (groups of columns).  In front of these
products each expert's tokens are filled up with zeros to a multiple of 32, so that a block never holds tokens of two
experts.  How many tokens an expert has stays on the device: nothing waits for it."""
from __future__ import annotations

from typing import Any

import torch

import blockscale

from .recipes import Recipe, quantize_copies, recipe_named
from .training import compute_type, describe_pass, new_seed, save_matrices, saved_matrices

__all__ = ["Experts", "GroupedLinear", "grouped_linear"]

RUN = 32        # tokens that a group is filled up to a multiple of: the longest block


def filled(counts: torch.Tensor, tokens: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Where tokens lie once every group is filled up to a multiple of 32.

    counts  tokens of each group, int64; their sum is tokens
    Returns the new row of each token, the filled groups' sizes, whose last one takes all rows that remain, and how many
    rows there are: a number that depends on shapes alone, so that nothing is read from the device."""
    groups = counts.shape[0]
    total = (tokens + RUN - 1) // RUN * RUN + RUN * (groups - 1)
    sizes = (counts + RUN - 1) // RUN * RUN
    ends = counts.cumsum(0)
    group = torch.searchsorted(ends, torch.arange(tokens, device=counts.device), right=True).clamp_(max=groups - 1)
    shift = (sizes.cumsum(0) - sizes) - (ends - counts)
    rows = torch.arange(tokens, device=counts.device) + shift[group]
    sizes = torch.cat((sizes[:-1], total - sizes[:-1].sum(0, keepdim=True)))
    return rows, sizes, total


class _GroupedLinear(torch.autograd.Function):
    """Y = X W_g^T for the rows of each group g.  X is tokens x input features in filled groups."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, sizes: torch.Tensor,
                recipe: Recipe, dtype: torch.dtype, seed: int) -> torch.Tensor:
        want_x, want_weight = ctx.needs_input_grad[:2]
        inputs = quantize_copies(x, recipe.input, recipe.signs, columns=want_weight, seed=seed)
        weights = quantize_copies(weight, recipe.weight, columns=want_x, seed=seed + 2)
        y = torch.empty(x.shape[0], weight.shape[1], dtype=dtype, device=x.device)
        blockscale.matmul(inputs.rows, weights.rows, out=y, bias=bias, groups=sizes, compute=recipe.compute)
        save_matrices(ctx, [inputs.columns, weights.columns], [sizes])
        describe_pass(ctx, x, weight, bias, recipe, seed)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        recipe: Recipe = ctx.recipe
        want_x, want_weight, want_bias = ctx.needs_input_grad[:3]
        (x_columns, weight_columns), (sizes,) = saved_matrices(ctx)
        x_type, weight_type, bias_type = ctx.types
        x_shape, weight_shape = ctx.shapes
        dx = dweight = dbias = None
        if want_x or want_weight:
            gradient = quantize_copies(dy, recipe.gradient, recipe.signs, rows=want_x, columns=want_weight,
                                       seed=ctx.seed + 4)
        if want_x:
            dx = torch.empty(x_shape, dtype=x_type, device=dy.device)
            blockscale.matmul(gradient.rows, weight_columns, out=dx, groups=sizes, compute=recipe.compute)
        if want_weight:
            dweight = torch.empty(weight_shape, dtype=weight_type, device=dy.device)
            blockscale.matmul(gradient.columns, x_columns, out=dweight, group_columns=sizes, compute=recipe.compute)
        if want_bias:
            assert sizes is not None
            group = torch.searchsorted(sizes.cumsum(0), torch.arange(dy.shape[0], device=dy.device), right=True)
            sums = torch.zeros(weight_shape[:2], dtype=torch.float32, device=dy.device)
            dbias = sums.index_add_(0, group, dy.float()).to(bias_type)
        return dx, dweight, dbias, None, None, None, None


def grouped_linear(x: torch.Tensor, weight: torch.Tensor, counts: torch.Tensor, bias: torch.Tensor | None = None,
                   recipe: str | Recipe = "MXFP8BlockScaling") -> torch.Tensor:
    """x W_g^T + bias_g for the rows of each group g, with block-scaled products, forward and backward.

    x       (tokens, input features), sorted by group; fp32, bf16 or fp16
    weight  (groups, output features, input features)
    counts  (groups), int64 on x's device: tokens of each group, their sum is the number of tokens
    bias    (groups, output features), or None

    Returns (tokens, output features) in x's type, or autocast's.  Raises ValueError for other types and shapes; on a
    GPU counts are not read by the host, and counts with another sum give rows that mean nothing."""
    recipe = recipe_named(recipe)
    dtype = compute_type(x)
    if x.dim() != 2 or weight.dim() != 3 or x.shape[1] != weight.shape[2]:
        raise ValueError(f"x has the shape {tuple(x.shape)} and weight {tuple(weight.shape)}: use tokens x features, "
                         "and groups x output features x features")
    if counts.shape != (weight.shape[0],) or counts.dtype != torch.int64 or counts.device != x.device:
        raise ValueError(f"counts are {counts.dtype} of the shape {tuple(counts.shape)} on {counts.device}: use int64, "
                         f"one for each of the {weight.shape[0]} groups, on {x.device}")
    if x.device.type == "cpu" and (int(counts.sum()) != x.shape[0] or int(counts.min()) < 0):
        raise ValueError(f"counts are {counts.tolist()}: none is negative, and their sum is the {x.shape[0]} tokens")
    if weight.shape[0] == 0 or x.shape[0] == 0:
        return x.new_zeros(x.shape[0], weight.shape[1], dtype=dtype) + 0 * (x.sum() + weight.sum()).to(dtype)
    rows, sizes, total = filled(counts, x.shape[0])
    spread = x.new_zeros(total, x.shape[1], dtype=dtype).index_copy(0, rows, x.to(dtype))
    y: torch.Tensor = _GroupedLinear.apply(spread, weight, bias, sizes, recipe, dtype,
                                           new_seed(recipe))
    return y.index_select(0, rows)


class GroupedLinear(torch.nn.Module):
    """A linear layer for each of several groups of tokens; grouped_linear has shapes.

    Parameters: weight (groups, out_features, in_features), bias (groups, out_features) or None."""

    def __init__(self, groups: int, in_features: int, out_features: int, bias: bool = False,
                 recipe: str | Recipe = "MXFP8BlockScaling", device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.recipe = recipe_named(recipe)
        self.weight = torch.nn.Parameter(torch.empty(groups, out_features, in_features, device=device, dtype=dtype))
        self.bias = torch.nn.Parameter(torch.empty(groups, out_features, device=device, dtype=dtype)) if bias else None
        bound = in_features ** -0.5
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -bound, bound)

    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        return grouped_linear(x, self.weight, counts, self.bias, self.recipe)

    def extra_repr(self) -> str:
        groups, out_features, in_features = self.weight.shape
        return f"{groups} groups, {in_features} -> {out_features}, recipe={self.recipe.name}"


class Experts(torch.nn.Module):
    """The experts of a mixture: down(silu(gate(x)) up(x)) of each token's experts, weighed and added.

    hidden, intermediate  features of a token, and within an expert
    forward(x, indices, weights): x (tokens, hidden); indices (tokens, k), int64, each token's experts; weights
    (tokens, k), what each expert's result is multiplied by.  Returns (tokens, hidden)."""

    def __init__(self, experts: int, hidden: int, intermediate: int, recipe: str | Recipe = "MXFP8BlockScaling",
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.experts = experts
        self.gate_up = GroupedLinear(experts, hidden, 2 * intermediate, recipe=recipe, device=device, dtype=dtype)
        self.down = GroupedLinear(experts, intermediate, hidden, recipe=recipe, device=device, dtype=dtype)

    def forward(self, x: torch.Tensor, indices: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        tokens, chosen = indices.shape
        expert = indices.reshape(-1)
        order = expert.argsort(stable=True)
        back = torch.empty_like(order)
        back[order] = torch.arange(tokens * chosen, device=order.device)
        # A sum of comparisons: torch.bincount would wait for the device.
        counts = (expert[:, None] == torch.arange(self.experts, device=expert.device)).sum(0)
        # A permutation of repeated rows, whose gradient has no two terms for one row: the same bits each time.
        repeated = x[:, None].expand(tokens, chosen, x.shape[1]).reshape(tokens * chosen, x.shape[1])
        gate, up = self.gate_up(repeated[order], counts).chunk(2, dim=1)
        y = self.down(torch.nn.functional.silu(gate) * up, counts)[back]
        total: torch.Tensor = (y.view(tokens, chosen, -1) * weights[:, :, None].to(y.dtype)).sum(1)
        return total

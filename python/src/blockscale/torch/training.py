"""Training with block-scaled products: an autograd Linear, and models whose linear layers become such.

    import blockscale.torch.training as training
    training.convert_(model, "MXFP8BlockScaling", filter=lambda module, name: "head" not in name)

Parameters stay what they are, fp32 or bf16, and so do optimizers and checkpoints: only the three products of a layer,
Y = X W^T, dX = dY W and dW = dY^T X, take operands of codes and scales, made anew in each pass.  What a recipe does is
in blockscale.torch.recipes.

Stochastic rounding takes its seeds from PyTorch's generator of the CPU: torch.manual_seed repeats a run, and
torch.utils.checkpoint recomputes with the same seeds.  On one device equal seeds give equal bits."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import blockscale
from blockscale import Matrix

from .recipes import (Copies, MXFP8BlockScaling, NVFP4BlockScaling, Recipe, Role, quantize_copies, recipe_named)

__all__ = ["Linear", "MXFP8BlockScaling", "NVFP4BlockScaling", "Recipe", "Role", "convert_", "linear"]

REALS = (torch.float32, torch.bfloat16, torch.float16)


def new_seed(recipe: Recipe) -> int:
    """A seed for one layer's pass, drawn from the CPU's generator if the recipe rounds stochastically."""
    if "stochastic" not in (recipe.input.rounding, recipe.weight.rounding, recipe.gradient.rounding):
        return 0
    return int(torch.randint(0, 2 ** 62, (), dtype=torch.int64, device="cpu").item())


def compute_type(x: torch.Tensor) -> torch.dtype:
    """The type of a layer's result: x's, or autocast's where that is on.  Raises ValueError for fp64 and integers."""
    kind = x.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
    if dtype not in REALS or x.dtype not in REALS:
        raise ValueError(f"x has the type {x.dtype}: use float32, bfloat16 or float16")
    return dtype


# Matrices between a forward and a backward pass -----------------------------------------------------------------------

def save_matrices(ctx: Any, matrices: list[Matrix | None], tensors: list[torch.Tensor | None]) -> None:
    """Saves matrices and tensors for a backward pass: as tensors, which hooks of saved tensors see."""
    parts: list[torch.Tensor | None] = []
    ctx.descriptions = []
    for matrix in matrices:
        if matrix is None:
            ctx.descriptions.append(None)
            continue
        parts += [matrix.codes, matrix.scales, matrix.tensor_scale]
        ctx.descriptions.append((matrix.format, matrix.shape, matrix.layout, matrix.packing,
                                 matrix.tensor_scale_divides))
    ctx.save_for_backward(*parts, *tensors)


def saved_matrices(ctx: Any) -> tuple[list[Matrix | None], tuple[torch.Tensor | None, ...]]:
    """What save_matrices saved, the matrices over the tensors themselves."""
    parts = ctx.saved_tensors
    matrices: list[Matrix | None] = []
    at = 0
    for description in ctx.descriptions:
        if description is None:
            matrices.append(None)
            continue
        name, shape, layout, packing, divides = description
        codes, scales, tensor_scale = parts[at:at + 3]
        at += 3
        matrices.append(blockscale.from_parts(codes, scales, name, layout=layout, tensor_scale=tensor_scale,
                                              tensor_scale_divides=divides, packing=packing, shape=shape))
    return matrices, parts[at:]


def describe_pass(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, recipe: Recipe,
                  seed: int) -> None:
    """What a backward pass asks besides: ctx.recipe, seed, and types and shapes of what gets gradients."""
    ctx.recipe, ctx.seed = recipe, seed
    ctx.types = x.dtype, weight.dtype, None if bias is None else bias.dtype
    ctx.shapes = x.shape, weight.shape


def weight_copies(weight: torch.Tensor, recipe: Recipe, *, rows: bool, columns: bool, seed: int) -> Copies:
    """A weight's copies: those that it brings along (a gathered one of blockscale.torch.fsdp), or new ones."""
    brought = getattr(weight, "blockscale_copies", None)
    if brought is not None:
        copies: Copies = brought(recipe, rows, columns)
        return copies
    return quantize_copies(weight, recipe.weight, rows=rows, columns=columns, seed=seed)


# The layer ------------------------------------------------------------------------------------------------------------

class _Linear(torch.autograd.Function):
    """Y = X W^T + bias, and its gradients.  X is (..., input features), W output x input features."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, recipe: Recipe,
                dtype: torch.dtype, seed: int) -> torch.Tensor:
        want_x, want_weight = ctx.needs_input_grad[:2]
        late = hasattr(weight, "blockscale_copies")     # its columns are gathered for the backward pass alone
        tokens = x.reshape(-1, x.shape[-1])
        inputs = quantize_copies(tokens, recipe.input, recipe.signs, columns=want_weight, seed=seed)
        weights = weight_copies(weight, recipe, rows=True, columns=want_x and not late, seed=seed + 2)
        y = torch.empty(*x.shape[:-1], weight.shape[0], dtype=dtype, device=x.device)
        blockscale.matmul(inputs.rows, weights.rows, out=y.view(-1, y.shape[-1]), bias=bias, compute=recipe.compute)
        save_matrices(ctx, [inputs.columns, weights.columns], [weight if late and want_x else None])
        describe_pass(ctx, x, weight, bias, recipe, seed)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        recipe: Recipe = ctx.recipe
        want_x, want_weight, want_bias = ctx.needs_input_grad[:3]
        (x_columns, weight_columns), (weight,) = saved_matrices(ctx)
        x_type, weight_type, bias_type = ctx.types
        x_shape, weight_shape = ctx.shapes
        dx = dweight = dbias = None
        dy = dy.reshape(-1, dy.shape[-1])
        if want_x or want_weight:
            gradient = quantize_copies(dy, recipe.gradient, recipe.signs, rows=want_x, columns=want_weight,
                                       seed=ctx.seed + 4)
        if want_x:
            if weight is not None:
                weight_columns = weight_copies(weight, recipe, rows=False, columns=True, seed=ctx.seed + 2).columns
            dx = torch.empty(x_shape, dtype=x_type, device=dy.device)
            blockscale.matmul(gradient.rows, weight_columns, out=dx.view(-1, x_shape[-1]), compute=recipe.compute)
        if want_weight:
            dweight = torch.empty(weight_shape, dtype=weight_type, device=dy.device)
            blockscale.matmul(gradient.columns, x_columns, out=dweight, compute=recipe.compute)
        if want_bias:
            dbias = dy.sum(0, dtype=torch.float32).to(bias_type)
        return dx, dweight, dbias, None, None, None


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
           recipe: str | Recipe = "MXFP8BlockScaling") -> torch.Tensor:
    """x W^T + bias with block-scaled products, forward and backward.

    x       (..., input features), fp32, bf16 or fp16
    weight  (output features, input features), fp32, bf16 or fp16
    bias    (output features), or None
    recipe  a Recipe or the name of one

    Returns (..., output features) in x's type, or autocast's.  dX has x's type and dW the weight's; the gradient of
    the bias is a sum in fp32.  Second derivatives are refused.  Raises ValueError for other types and shapes."""
    recipe = recipe_named(recipe)
    dtype = compute_type(x)
    if weight.dim() != 2 or x.dim() == 0 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"x has the shape {tuple(x.shape)} and weight {tuple(weight.shape)}: x's last dimension is "
                         "weight's second one")
    y: torch.Tensor = _Linear.apply(x.to(dtype), weight, bias, recipe, dtype, new_seed(recipe))
    return y


class Linear(torch.nn.Linear):
    """torch.nn.Linear whose three products are block-scaled.  Parameters, names and state_dict are its."""

    recipe: Recipe

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 recipe: str | Recipe = "MXFP8BlockScaling", device: Any = None, dtype: Any = None) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self.recipe = recipe_named(recipe)

    @classmethod
    def from_float(cls, module: torch.nn.Linear, recipe: str | Recipe = "MXFP8BlockScaling") -> Linear:
        """A layer over the same parameters."""
        made = cls(module.in_features, module.out_features, module.bias is not None, recipe, device="meta")
        made.weight, made.bias = module.weight, module.bias
        made.training = module.training
        return made

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return linear(input, self.weight, self.bias, self.recipe)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, recipe={self.recipe.name}"


def convert_(model: torch.nn.Module, recipe: str | Recipe = "MXFP8BlockScaling",
             filter: Callable[[torch.nn.Module, str], bool] | None = None) -> torch.nn.Module:
    """Replaces each torch.nn.Linear of a model, in place, by a Linear over the same parameters; returns the model.

    filter(module, name) says whether a layer is to be replaced; None: all are.  The output layer and what is small
    usually stay as they are: NVFP4's authors also keep some of the last blocks.  The model itself may be a layer: use
    what is returned."""
    recipe = recipe_named(recipe)

    def wanted(module: torch.nn.Module, name: str) -> bool:
        return type(module) is torch.nn.Linear and (filter is None or filter(module, name))

    if wanted(model, ""):
        assert isinstance(model, torch.nn.Linear)
        return Linear.from_float(model, recipe)
    for name, module in list(model.named_modules()):
        for child_name, child in list(module.named_children()):
            if wanted(child, f"{name}.{child_name}" if name else child_name):
                assert isinstance(child, torch.nn.Linear)
                setattr(module, child_name, Linear.from_float(child, recipe))
    return model

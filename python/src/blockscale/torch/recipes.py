"""How the operands of a layer's three products become codes and scales while a model is trained.

A linear layer has three operands and three products, and each product wants its operands in blocks along the dimension
that it sums over:

    Y  = X W^T     sums over input features:   X in rows,     W in rows
    dX = dY W      sums over output features:  dY in rows,    W in columns
    dW = dY^T X    sums over tokens:           dY in columns, X in columns

so each operand is quantized twice, in rows and in columns.  A Recipe says how.  The names are TransformerEngine's, and
so is what they stand for; scales follow the library's own rules (docs/guide/recipes.md)."""
from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable
from typing import Any

import torch

import blockscale
from blockscale import Matrix

ROTATION = 16       # numbers that a Hadamard rotation mixes: a block of NVFP4


@dataclasses.dataclass(frozen=True)
class Role:
    """How one operand is quantized.

    format    a block format, as `blockscale.quantize` names it
    rounding  "nearest_even" or "stochastic", of elements
    squares   one scale for block x block numbers, so that both copies stand for the same numbers
    rotated   the copy in columns is rotated along tokens, in runs of 16, before it is quantized"""

    format: str
    rounding: str = "nearest_even"
    squares: bool = False
    rotated: bool = False

    @property
    def block(self) -> int:
        """Numbers that share a scale."""
        return 16 if self.format in ("nvfp4", "mxfp4_block16") else 32


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How the three operands of a layer are quantized: see this module's text, MXFP8BlockScaling, NVFP4BlockScaling.

    signs    of the rotation, 16 numbers 1 or -1
    compute  "exact", or "fast": the library may then requantize MXFP8 to FP8 with one scale a row where that is faster
             (blockscale/matmul.h has the bound)"""

    name: str
    input: Role
    weight: Role
    gradient: Role
    signs: tuple[int, ...] = (1,) * ROTATION
    compute: str = "exact"

    def __post_init__(self) -> None:
        if self.input.rotated != self.gradient.rotated:
            raise ValueError("input and gradient meet in the weight gradient: both are rotated, or neither")
        if self.weight.rotated:
            raise ValueError("weight is rotated: it has no part in the weight gradient, which alone is rotated")
        if len(self.signs) != ROTATION or any(sign not in (1, -1) for sign in self.signs):
            raise ValueError(f"signs are {self.signs}: use {ROTATION} numbers that are 1 or -1")


def MXFP8BlockScaling(*, gradient_format: str = "mxfp8_e4m3", compute: str = "exact") -> Recipe:
    """MXFP8, blocks of 32 with e8m0 scales, all of e4m3; gradient_format="mxfp8_e5m2" has TransformerEngine's HYBRID.

    Both copies of each operand come from one pass over its numbers (`blockscale.quantize_both`)."""
    forward = Role("mxfp8_e4m3")
    return Recipe("MXFP8BlockScaling", forward, forward, Role(gradient_format), compute=compute)


def NVFP4BlockScaling(*, disable_rht: bool = False, disable_stochastic_rounding: bool = False,
                      disable_2d_quantization: bool = False, hadamard_seed: int = 0) -> Recipe:
    """NVFP4, blocks of 16 with ue4m3 scales and an fp32 tensor scale, after arXiv 2509.25149.

    Weights have one scale for 16 x 16 numbers (disable_2d_quantization: for 16), gradients are rounded stochastically
    (disable_stochastic_rounding), and both operands of the weight gradient are rotated along tokens in runs of 16 with
    random signs, drawn once from hadamard_seed (disable_rht)."""
    drawn = random.Random(hadamard_seed)
    signs = tuple(drawn.choice((1, -1)) for _ in range(ROTATION))
    rotated = not disable_rht
    return Recipe("NVFP4BlockScaling",
                  Role("nvfp4", rotated=rotated),
                  Role("nvfp4", squares=not disable_2d_quantization),
                  Role("nvfp4", rounding="nearest_even" if disable_stochastic_rounding else "stochastic",
                       rotated=rotated),
                  signs=signs)


RECIPES: dict[str, Callable[[], Recipe]] = {"MXFP8BlockScaling": MXFP8BlockScaling,
                                            "NVFP4BlockScaling": NVFP4BlockScaling}


def recipe_named(recipe: str | Recipe) -> Recipe:
    """The recipe itself, or the one that a name stands for.  Raises ValueError for other names."""
    if isinstance(recipe, Recipe):
        return recipe
    if recipe not in RECIPES:
        raise ValueError(f"recipe is {recipe!r}: use {' or '.join(RECIPES)}, or a Recipe")
    return RECIPES[recipe]()


# Rotation -------------------------------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=64)
def _rotation(signs: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """H diag(signs) / 4, 16 x 16.  Its numbers are quarters: exact in every type."""
    rows = [[(-1) ** (i & j).bit_count() * sign / 4 for j, sign in enumerate(signs)] for i in range(ROTATION)]
    return torch.tensor(rows, dtype=dtype, device=device)


def rotate_tokens(x: torch.Tensor, signs: tuple[int, ...]) -> torch.Tensor:
    """x, tokens x features, rotated along tokens in runs of 16; features x tokens is returned.  Tokens are a multiple
    of 16.  The library rotates on CPUs alone; on a GPU it is a product with a 16 x 16 matrix, of tensor cores."""
    if x.shape[0] % ROTATION:
        raise ValueError(f"x has {x.shape[0]} tokens: a rotation wants a multiple of {ROTATION}")
    if x.device.type == "cpu":
        signs_array = torch.tensor(signs, dtype=torch.int8)
        rotated: torch.Tensor = blockscale.hadamard(x.t().contiguous(), ROTATION, signs=signs_array)
        return rotated
    runs = x.reshape(x.shape[0] // ROTATION, ROTATION, x.shape[1])
    return torch.matmul(_rotation(signs, x.dtype, x.device), runs).view(x.shape).t()


# Both copies ----------------------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Copies:
    """An operand's copy with blocks along features (`rows`) and the one with blocks along tokens, or for a weight along
    output features (`columns`, the transpose); None where nobody asked."""

    rows: Matrix | None
    columns: Matrix | None


ScaleOf = Callable[[torch.Tensor, str], "torch.Tensor | None"]


def _quantize(x: torch.Tensor, role: Role, seed: int, scale_of: ScaleOf | None, axis: int = -1) -> Matrix:
    options: dict[str, Any] = {"axis": axis}
    if scale_of is not None:
        options["tensor_scale"] = scale_of(x, role.format)
    if role.squares:
        options["block_rows"] = role.block
    if role.rounding != "nearest_even":
        options.update(rounding=role.rounding, seed=seed)
    matrix: Matrix = blockscale.quantize(x, role.format, **options)
    return matrix


def quantize_copies(x: torch.Tensor, role: Role, signs: tuple[int, ...] = (1,) * ROTATION, *, rows: bool = True,
                    columns: bool = True, seed: int = 0, scale_of: ScaleOf | None = None) -> Copies:
    """Quantizes an operand as its role says.

    x        tokens x features (a weight: output x input features, or a batch of these), fp32, bf16 or fp16
    rows     whether the copy with blocks along the last dimension is wanted; its shape is that of x
    columns  whether the copy with blocks along the dimension before it is; its shape is that of x transposed
    seed     of stochastic rounding: the copies take seed and seed + 1
    scale_of gives the tensor scale of numbers and a format, where x is a shard of what shares one; None: x's own

    Tokens of a rotated operand are padded to a multiple of 16 with zeros, which add nothing to a sum over tokens."""
    x = x.detach()
    if rows and columns and not role.squares and not role.rotated and role.rounding == "nearest_even":
        scale = None if scale_of is None else scale_of(x, role.format)
        return Copies(*blockscale.quantize_both(x, role.format, tensor_scale=scale))
    in_rows = _quantize(x, role, seed, scale_of) if rows else None
    in_columns = None
    if columns:
        if role.rotated:
            short = -x.shape[0] % ROTATION
            padded = torch.nn.functional.pad(x, (0, 0, 0, short)) if short else x
            in_columns = _quantize(rotate_tokens(padded, signs), role, seed + 1, scale_of)
        else:
            in_columns = _quantize(x, role, seed + 1, scale_of, axis=-2)
    return Copies(in_rows, in_columns)

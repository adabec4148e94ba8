"""FSDP2 with weights that travel as codes and scales.

    training.convert_(model, "MXFP8BlockScaling")
    fsdp.quantize_gathers_(model)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)

Each rank keeps its rows of a weight in fp32 or bf16, as FSDP2 does, and quantizes them before they are gathered: the
forward pass gathers the copy in rows and the backward pass the one in columns, 1.03 bytes a number each in MXFP8 and
0.56 in NVFP4 beside 2 of bf16.  Layers take what was gathered instead of quantizing again, with the bits that one rank
would have; gradients are reduced as always.  Parameters are DTensors over a tensor subclass, whose numbers optimizers
and checkpoints see as usual."""
from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils import _pytree as pytree

import blockscale
from blockscale import Matrix

from .collectives import shared_tensor_scale
from .recipes import Copies, Recipe, quantize_copies
from .training import Linear

__all__ = ["GatheredWeight", "ShardedWeight", "quantize_gathers_"]

aten = torch.ops.aten
# What FSDP2 and DTensor do to a parameter before they gather it; its result is a weight again.
_KEPT = {aten.detach.default, aten.empty_like.default, aten.new_zeros.default, aten.slice.Tensor, aten.copy_.default,
         aten.view.default, aten.as_strided.default, aten._to_copy.default, aten._pin_memory.default,
         aten.split.Tensor, aten.clone.default}


def _wrapper(cls: Any, like: torch.Tensor, shape: Any, dtype: torch.dtype) -> Any:
    return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device=like.device)


class ShardedWeight(torch.Tensor):
    """A rank's part of a weight: numbers as they are, and how they are quantized where FSDP2 gathers them.

    both  the gather of a pass brings both copies: for weights that stay gathered between forward and backward
          (reshard_after_forward=False), and for layers that are recomputed in the backward pass"""

    _numbers: torch.Tensor
    _recipe: Recipe
    _both: bool

    @staticmethod
    def __new__(cls, numbers: torch.Tensor, recipe: Recipe, both: bool = False) -> ShardedWeight:
        made: ShardedWeight = torch.Tensor._make_wrapper_subclass(
            cls, numbers.shape, strides=numbers.stride(), storage_offset=numbers.storage_offset(), dtype=numbers.dtype,
            layout=numbers.layout, device=numbers.device, requires_grad=numbers.requires_grad)
        return made

    def __init__(self, numbers: torch.Tensor, recipe: Recipe, both: bool = False) -> None:
        self._numbers, self._recipe, self._both = numbers, recipe, both

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any,     # type: ignore[override]
                           args: Any = (), kwargs: Any = None) -> Any:
        one: ShardedWeight | None = None

        def numbers(x: Any) -> Any:
            nonlocal one
            if isinstance(x, ShardedWeight):
                one = x if one is None else one
                return x._numbers
            return x

        args, kwargs = pytree.tree_map(numbers, (args, kwargs or {}))
        out = func(*args, **kwargs)
        if func not in _KEPT or one is None:
            return out
        first = one
        return pytree.tree_map(lambda x: ShardedWeight(x, first._recipe, first._both)
                               if isinstance(x, torch.Tensor) else x, out)

    def __tensor_flatten__(self) -> tuple[list[str], tuple[Recipe, bool]]:
        return ["_numbers"], (self._recipe, self._both)

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, torch.Tensor], meta: tuple[Recipe, bool], size: Any,
                             stride: Any) -> ShardedWeight:
        return ShardedWeight(inner["_numbers"], *meta)

    def __repr__(self, *, tensor_contents: Any = None) -> str:    # type: ignore[override]
        return f"ShardedWeight({self._numbers}, recipe={self._recipe.name})"

    def fsdp_pre_all_gather(self, mesh: Any, outer_size: torch.Size, outer_stride: tuple[int, ...], module: nn.Module,
                            mp_policy: Any) -> tuple[tuple[torch.Tensor, ...], Any]:
        """What FSDP2 gathers: bytes of codes and scales of the copy that the pass wants."""
        group = mesh.get_group()
        ranks = dist.get_world_size(group)
        # Every rank sees the whole size, so that all refuse together and none waits for the others.
        if outer_size[0] % (32 * ranks):
            raise ValueError(f"a weight of {outer_size[0]} rows is shared among {ranks} ranks: quantized gathers need "
                             f"a multiple of {32 * ranks}, whole blocks for each")
        backward = torch._C._current_graph_task_id() != -1
        copies = quantize_copies(self._numbers, self._recipe.weight, rows=self._both or not backward,
                                 columns=self._both or backward,
                                 scale_of=lambda x, format: shared_tensor_scale(x, format, group))
        parts: list[torch.Tensor] = []
        described: list[Any] = []
        for matrix in (copies.rows, copies.columns):
            described.append(None if matrix is None else (matrix.format, matrix.packing, matrix.tensor_scale))
            if matrix is not None:
                parts += [matrix.codes, matrix.scales]
        return tuple(parts), (ranks, tuple(outer_size), described)

    def fsdp_post_all_gather(self, all_gather_outputs: tuple[torch.Tensor, ...], metadata: Any,
                             param_dtype: torch.dtype, *,
                             out: torch.Tensor | None = None) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]] | None:
        """The whole weight over what was gathered."""
        if out is not None:
            assert isinstance(out, GatheredWeight)
            out.fill(all_gather_outputs, metadata)
            return None
        return GatheredWeight(all_gather_outputs, metadata, param_dtype), all_gather_outputs


class GatheredWeight(torch.Tensor):
    """A whole weight as codes and scales, while FSDP2 has it gathered: what a training.Linear multiplies with.  It has
    no numbers: nothing else can be done with it."""

    _held: dict[str, Any]

    @staticmethod
    def __new__(cls, parts: tuple[torch.Tensor, ...], metadata: Any, dtype: torch.dtype,
                held: dict[str, Any] | None = None) -> GatheredWeight:
        made: GatheredWeight = _wrapper(cls, parts[0], metadata[1], dtype)
        return made

    def __init__(self, parts: tuple[torch.Tensor, ...], metadata: Any, dtype: torch.dtype,
                 held: dict[str, Any] | None = None) -> None:
        # Shared with what detach() makes of it: the parameter is one of these, and FSDP2 fills it again.
        self._held = {} if held is None else held
        if held is None:
            self.fill(parts, metadata)

    def fill(self, parts: tuple[torch.Tensor, ...], metadata: Any) -> None:
        """Takes what a new gather brought."""
        self._held.update(parts=parts, metadata=metadata)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any,     # type: ignore[override]
                           args: Any = (), kwargs: Any = None) -> Any:
        it = args[0]
        if func is aten.detach.default or func is aten.as_strided.default and tuple(args[1]) == tuple(it.shape):
            return GatheredWeight(it._held["parts"], it._held["metadata"], it.dtype, it._held)
        raise NotImplementedError(f"{func} of a gathered weight: it is codes and scales, for blockscale's own layers")

    def __repr__(self, *, tensor_contents: Any = None) -> str:    # type: ignore[override]
        return f"GatheredWeight{tuple(self.shape)}"

    def blockscale_copies(self, recipe: Recipe, rows: bool, columns: bool) -> Copies:
        """The copies that a pass wants, of those that were gathered."""
        ranks, (count, features), described = self._held["metadata"]
        parts = list(self._held["parts"])
        made: list[Matrix | None] = []
        for along_columns, wanted, one in zip((False, True), (rows, columns), described):
            if one is None:
                if wanted:
                    raise RuntimeError(f"a gathered weight has no copy in {'columns' if along_columns else 'rows'}: "
                                       "use quantize_gathers_(model, both=True) where weights stay gathered between "
                                       "the passes, or layers are recomputed")
                made.append(None)
                continue
            (format, packing, tensor_scale), (codes, scales) = one, parts[:2]
            del parts[:2]
            if not wanted:
                made.append(None)
                continue
            shape = (count, features)
            if along_columns:
                # Ranks lie one behind the other, each with all rows: rows are put together again.
                codes, scales = (x.view(ranks, features, -1).transpose(0, 1).reshape(features, -1).contiguous()
                                 for x in (codes, scales))
                shape = (features, count)
            made.append(blockscale.from_parts(codes.view(shape[0], -1), scales.view(shape[0], -1), format,
                                              tensor_scale=tensor_scale, packing=packing, shape=shape))
        return Copies(*made)


def quantize_gathers_(model: nn.Module, both: bool = False) -> nn.Module:
    """Makes the weights of a model's training.Linear layers such that fully_shard, called after this, gathers codes and
    scales; returns the model.  both: see ShardedWeight.  Raises ValueError if there is no such layer, or if a weight is
    sharded already."""
    layers = [module for module in model.modules() if isinstance(module, Linear)]
    if not layers:
        raise ValueError("model has no blockscale.torch.training.Linear: convert it first")
    for layer in layers:
        weight = layer.weight
        if type(weight.data) is not torch.Tensor:
            raise ValueError(f"a weight is a {type(weight.data).__name__}: call quantize_gathers_ before fully_shard")
        layer.weight = nn.Parameter(ShardedWeight(weight.detach(), layer.recipe, both), weight.requires_grad)
    return model

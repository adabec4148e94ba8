"""Linear layers of vLLM whose weights are blockscale's."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from vllm.model_executor.layers.linear import LinearMethodBase, register_weight_loader_v2_supported_method
from vllm.model_executor.parameter import (BasevLLMParameter, ChannelQuantScaleParameter, ModelWeightParameter,
                                           PerTensorScaleParameter)

from .. import torch as bt
from .._errors import InvalidError
from .._library import FORMATS
from ..torch import _tensors
from ..torch._weights import PREPACKED_ROWS
from .stored import Options, Part, Stored

TYPES = {"U8": torch.uint8, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
         "F8_E8M0": torch.float8_e8m0fnu, "F4": torch.float4_e2m1fn_x2, "F32": torch.float32}
_SHARDS = {"q": 0, "k": 1, "v": 2}


class ScalesIn128x4(ModelWeightParameter):
    """Scales of blocks that the file has in blocks of 128 x 4, taken row by row, so that they can be joined and cut."""

    def __init__(self, members: list[Stored], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.members = members

    def _linear(self, loaded: Tensor, shard: Any = 0) -> Tensor:
        member = self.members[_SHARDS.get(shard, shard)]
        rows, blocks = member.shape[0], -(-member.shape[1] // FORMATS[member.format].block)
        linear: Tensor = torch.ops.blockscale.convert_scales(
            loaded.reshape(-1).view(torch.uint8), rows, blocks, member.layout, "linear")
        return linear.view(self.data.dtype)

    def load_column_parallel_weight(self, loaded_weight: Tensor) -> None:
        """A layer's scales."""
        super().load_column_parallel_weight(self._linear(loaded_weight))

    def load_row_parallel_weight(self, loaded_weight: Tensor) -> None:
        """A layer's scales, of some columns."""
        super().load_row_parallel_weight(self._linear(loaded_weight))

    def load_merged_column_weight(self, loaded_weight: Tensor, **arguments: Any) -> None:
        """Those of one of the weights that are joined."""
        super().load_merged_column_weight(self._linear(loaded_weight, arguments["shard_id"]), **arguments)

    def load_qkv_weight(self, loaded_weight: Tensor, **arguments: Any) -> None:
        """Those of q, k or v."""
        super().load_qkv_weight(self._linear(loaded_weight, arguments["shard_id"]), **arguments)


def _nothing(*_: Any, **__: Any) -> None:
    """Loads what the product does not need."""


@register_weight_loader_v2_supported_method
class BlockscaleLinearMethod(LinearMethodBase):
    """y = x W^T + bias for the weights that a layer is joined from."""

    def __init__(self, name: str, members: list[Stored], options: Options) -> None:
        self.name, self.members, self.first, self.options = name, members, members[0], options
        self.form = FORMATS[self.first.format]

    def create_weights(self, layer: Any, input_size_per_partition: int, output_partition_sizes: list[int],
                       input_size: int, output_size: int, params_dtype: torch.dtype, **extra_weight_attrs: Any) -> None:
        """Parameters with the names and types that the file has."""
        first, loader = self.first, extra_weight_attrs["weight_loader"]
        rows, columns, block = sum(output_partition_sizes), input_size_per_partition, max(1, self.form.block)
        # Where k and v are repeated, since there are more processes than heads of theirs, the model has more rows.
        if getattr(layer, "num_kv_head_replicas", 1) == 1:
            self._check_sizes(input_size, output_size)
        if columns % block != 0:
            raise InvalidError(f"{self.name} has {columns} columns in each of {input_size // columns} parts, no "
                               f"multiple of {block}, the block of {self.form.name}: use fewer parts")

        def register(part: Part | None, kind: Any, shape: tuple[int, ...], fill: float | None = None,
                     **arguments: Any) -> None:
            if part is None:
                return
            data = torch.empty(shape, dtype=TYPES[part.type])
            if fill is not None:
                data.fill_(fill)
            layer.register_parameter(part.suffix, kind(data=data, weight_loader=loader, **arguments))

        both: dict[str, Any] = {"input_dim": 1, "output_dim": 0}
        codes = _tensors.row_units(self.form, first.packing, columns)
        if TYPES[first.codes.type] is torch.float4_e2m1fn_x2:
            codes = columns // 2
        register(first.codes, ModelWeightParameter, (rows, codes), **both)
        if first.layout == "linear":
            register(first.scales, ModelWeightParameter, (rows, columns // block), **both)
        elif first.scales is not None:
            if rows != output_size or columns != input_size:
                raise InvalidError(f"{self.name}.{first.scales.suffix} is in the layout {first.layout}: layers that "
                                   "are split over processes have linear scales")
            if not hasattr(layer, "weight_loader_v2") or len(output_partition_sizes) != len(self.members):
                raise InvalidError(f"{self.name}.{first.scales.suffix} is in the layout {first.layout}: layers of type "
                                   f"{type(layer).__name__}, and those that the file has joined, have linear scales")
            register(first.scales, ScalesIn128x4, (rows, columns // block), members=self.members, **both)
        if first.tensor_scale is not None:
            if first.per_row:
                register(first.tensor_scale, ChannelQuantScaleParameter, (rows, *first.tensor_scale.shape[1:]),
                         float("nan"), output_dim=0)
            else:
                register(first.tensor_scale, PerTensorScaleParameter, (len(self.members),), float("nan"))
        for part in first.unread:
            layer.register_parameter(part.suffix, BasevLLMParameter(data=torch.empty(0), weight_loader=_nothing))
        layer.blockscale_rows = list(output_partition_sizes)

    def _check_sizes(self, input_size: int, output_size: int) -> None:
        rows = sum(member.shape[0] for member in self.members)
        if self.first.shape[-1] != input_size or rows != output_size:
            have = " and ".join(f"{member.name} {member.shape[0]} x {member.shape[1]}" for member in self.members)
            raise InvalidError(f"{self.name} is {output_size} x {input_size} in the model, and the file has {have}")

    def process_weights_after_loading(self, layer: Any) -> None:
        """The parameters as operands of products, and their prepacked copy where there is to be one."""
        first = self.first
        codes = getattr(layer, first.codes.suffix).data
        scales = None if first.scales is None else getattr(layer, first.scales.suffix).data
        tensor_scale, alpha = self._factors(layer)
        for part in (first.codes, first.scales, first.tensor_scale, *first.unread):
            if part is not None:
                delattr(layer, part.suffix)
        for name, tensor in (("weight_codes", codes), ("weight_scales", scales),
                             ("weight_tensor_scale", tensor_scale), ("weight_row_scales", alpha)):
            layer.register_parameter(name, None if tensor is None else nn.Parameter(
                tensor if tensor.dtype is torch.float32 else tensor.view(torch.uint8), requires_grad=False))
        layer.register_buffer("weight_panels", self._panels(layer), persistent=False)

    def _panels(self, layer: Any) -> Tensor | None:
        """As blockscale.torch.Linear has them."""
        codes, form = layer.weight_codes, _tensors.PLAIN_FORMATS.get(layer.params_dtype)
        wanted = self.options.prepack
        if wanted is None:
            wanted = codes.is_cuda and self.form.bits == 4
        if not wanted or self.options.activations is not None or (codes.is_cuda and form == "fp32"):
            return None
        panels: Tensor = torch.ops.blockscale.pack(
            codes, layer.weight_scales, self.form.name, a_format=form, rows=PREPACKED_ROWS[codes.device.type],
            b_tensor_scale=layer.weight_tensor_scale, b_packing=self.first.packing, b_divides=self.first.divides)
        return panels

    def _factors(self, layer: Any) -> tuple[Tensor | None, Tensor | None]:
        """One tensor scale for the whole, or a factor for each row where those of joined weights differ."""
        part = self.first.tensor_scale
        if part is None:
            return None, None
        values = getattr(layer, part.suffix).data.float().reshape(-1)
        wrong = ~torch.isfinite(values) | (values < 0)
        if bool(wrong.any()):       # of one scale a matrix the reader of checkpoints has said it
            number = int(wrong.nonzero()[0])
            name, row = (self.name, f" in row {number}") if self.first.per_row else (self.members[number].name, "")
            raise InvalidError(f"{name}.{part.suffix} is {float(values[number])}{row}: scales are finite and not "
                               "negative")
        if self.first.per_row:
            return None, values.contiguous()
        if bool((values == values[0]).all()):
            return values[:1].clone(), None
        sizes = torch.tensor(layer.blockscale_rows, device=values.device)
        factors = 1 / values if self.first.divides else values
        return None, factors.repeat_interleave(sizes)

    def apply(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """x (..., columns) to (..., rows), in x's type."""
        rows: Tensor = x.reshape(-1, x.shape[-1])
        scales = tensor_scale = None
        if self.options.activations is not None:
            rows, scales, tensor_scale = torch.ops.blockscale.quantize(rows, self.options.activations)
        alpha = layer.weight_row_scales
        y: Tensor = torch.ops.blockscale.matmul(
            rows, scales, layer.weight_codes, layer.weight_scales, a_format=self.options.activations or "",
            b_format=self.form.name, a_tensor_scale=tensor_scale, b_tensor_scale=layer.weight_tensor_scale,
            b_divides=self.first.divides, b_packing=self.first.packing, columns=x.shape[-1], alpha=alpha,
            alpha_per="" if alpha is None else "column", bias=bias, out_dtype=x.dtype, b_panels=layer.weight_panels)
        return y.view(*x.shape[:-1], y.shape[-1])


assert bt.operators.library is not None     # the operators are registered

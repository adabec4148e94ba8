"""Mixture-of-experts layers with quantized weights: two grouped products, one matrix for each expert."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .._errors import InvalidError
from . import _tensors, _weights
from ._weights import QuantizedModule

PROJECTIONS = ("gate_up_proj", "down_proj")


class Experts(QuantizedModule):
    """y = sum over a token's experts e of weight_e (act(gate_e(x)) up_e(x)) down_e, with biases.

    format       of both weights, as of Linear
    activation   "swiglu_clamped" (gpt-oss': factor 1.702, limit 7), "silu", "gelu", "gelu_tanh", "relu"
    gate         "interleaved": rows 2j of gate_up are gates, rows 2j + 1 ups (gpt-oss); "split": gates first, then ups
    prepack      as of Linear

    For inference: no gradients flow through these layers.
    Buffers of a projection P ("gate_up_proj", "down_proj"), E experts of N rows and K columns: P_blocks (E, N, K/block,
    bytes of a block), P_scales (E, N, K/block) and for NVFP4 P_tensor_scale, one fp32 that multiplies; for MXFP4 these
    are the names and shapes of gpt-oss' checkpoints.  Parameters: gate_up_proj_bias (E, 2 intermediate_size),
    down_proj_bias (E, hidden_size)."""

    quantized = tuple(f"{name}_{part}" for name in PROJECTIONS for part in ("blocks", "scales", "tensor_scale"))
    gate_up_proj_bias: Tensor | None
    down_proj_bias: Tensor | None

    def __init__(self, num_experts: int, hidden_size: int, intermediate_size: int, format: str = "mxfp4", *,
                 activation: str = "swiglu_clamped", gate: str = "interleaved", bias: bool = True,
                 prepack: bool | str | None = None, device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__(prepack, PROJECTIONS)
        form = self.form = _weights.weight_format(format)
        if form.block == 0:
            raise InvalidError(f"format={format!r}: experts take one of {', '.join(_weights.BLOCK_FORMATS)}")
        _weights.check_columns(form, hidden_size, "hidden_size")
        _weights.check_columns(form, intermediate_size, "intermediate_size")
        self.num_experts, self.hidden_size, self.intermediate_size = num_experts, hidden_size, intermediate_size
        self.format, self.activation, self.gate = form.name, activation, gate
        for name, rows, columns in ((PROJECTIONS[0], 2 * intermediate_size, hidden_size),
                                    (PROJECTIONS[1], hidden_size, intermediate_size)):
            blocks = columns // form.block
            size = _tensors.row_units(form, "default", columns) // blocks
            self.register_buffer(f"{name}_blocks", torch.zeros(
                (num_experts, rows, blocks, size), dtype=torch.uint8, device=device))
            self.register_buffer(f"{name}_scales", torch.zeros(
                (num_experts, rows, blocks), dtype=torch.uint8, device=device))
            scaled = _weights.has_tensor_scale(form)
            self.register_buffer(f"{name}_tensor_scale", torch.ones(
                (), dtype=torch.float32, device=device) if scaled else None)
            self.register_parameter(f"{name}_bias", nn.Parameter(
                torch.zeros((num_experts, rows), device=device, dtype=dtype)) if bias else None)

    def set_weight(self, name: str, weight: Tensor, recipe: str = "default") -> None:
        """Quantizes a projection's weight of (experts, rows, columns), with any strides, into its buffers."""
        for part, tensor in self.quantize_weight(name, weight, recipe).items():
            setattr(self, part, tensor)
        self.drop_prepacked()

    def quantize_weight(self, name: str, weight: Tensor, recipe: str = "default") -> dict[str, Tensor]:
        """The buffers of a projection ("gate_up_proj", "down_proj") for a weight of (experts, rows, columns)."""
        codes, scales, scale = _weights.quantize(weight, self.form, recipe)
        assert scales is not None
        made = {f"{name}_blocks": codes.view(torch.uint8).view(*scales.shape, -1),
                f"{name}_scales": scales.view(torch.uint8)}
        if scale is not None:
            made[f"{name}_tensor_scale"] = scale
        return made

    def _weight(self, name: str) -> tuple[Tensor, Tensor, Tensor | None]:
        blocks: Tensor = getattr(self, f"{name}_blocks")
        return blocks.flatten(2), getattr(self, f"{name}_scales"), getattr(self, f"{name}_tensor_scale")

    def weights(self) -> dict[str, tuple[Tensor, Tensor | None, Tensor | None, str]]:
        """Both projections' parts."""
        return {name: (*self._weight(name), self.gate if name == PROJECTIONS[0] else "none") for name in PROJECTIONS}

    def _stored_names(self, name: str) -> tuple[str, str]:
        return f"{name}_blocks", f"{name}_scales"

    def _project(self, name: str, x: Tensor, group_rows: Tensor, gated: bool) -> Tensor:
        gate = self.gate if gated else "none"
        panels = self._panels_of(name, x)
        codes, scales, scale = self._weight(name)
        y: Tensor = torch.ops.blockscale.matmul_grouped(
            x, None, codes, scales, group_rows, b_format=self.format, b_tensor_scale=scale,
            bias=getattr(self, f"{name}_bias"), activation=self.activation if gated else "none", gate=gate,
            b_panels=panels)
        return y

    def forward(self, hidden_states: Tensor, router_indices: Tensor, routing_weights: Tensor) -> Tensor:
        """hidden_states (tokens, hidden_size); router_indices and routing_weights (tokens, experts of a token).
        Returns (tokens, hidden_size).  The sum over a token's experts has the order of router_indices, so the same
        tokens give the same bits in any batch.  Nothing waits for a GPU."""
        tokens, chosen = router_indices.shape
        experts = router_indices.reshape(-1).to(torch.int64)
        order = torch.argsort(experts, stable=True)
        group_rows = torch.zeros(self.num_experts, dtype=torch.int64, device=experts.device).scatter_add_(
            0, experts, torch.ones_like(experts))
        x = hidden_states[order // chosen]
        x = self._project(PROJECTIONS[0], x, group_rows, True)
        x = self._project(PROJECTIONS[1], x, group_rows, False)
        y = torch.empty_like(x).index_copy_(0, order, x).view(tokens, chosen, self.hidden_size)
        weighted = (y * routing_weights.to(y.dtype).unsqueeze(-1)).sum(1)
        return weighted.to(hidden_states.dtype)

    def dequantize(self, name: str, dtype: torch.dtype = torch.float32) -> Tensor:
        """A projection's weight as numbers, (experts, rows, columns)."""
        scale = self._weight(name)[2]
        codes, scales = self._whole(name)
        numbers: Tensor = torch.ops.blockscale.dequantize(codes, scales, self.format, tensor_scale=scale, dtype=dtype)
        return numbers

    def extra_repr(self) -> str:
        """What print(model) shows of the layer."""
        return (f"experts={self.num_experts}, hidden_size={self.hidden_size}, "
                f"intermediate_size={self.intermediate_size}, format={self.format}, activation={self.activation}, "
                f"gate={self.gate}")

"""Mixture-of-experts layers of vLLM whose weights lie together as gpt-oss' do."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from vllm.config import get_current_vllm_config
from vllm.model_executor.layers.fused_moe import FusedMoEMethodBase

from .. import torch as bt
from .._errors import InvalidError, UnsupportedError
from .stored import Options, Stored

_ACTIVATION = "swigluoai"       # gates and ups alternate, factor 1.702, limit 7
# vLLM's parameters beside those of blockscale.torch.Experts.
_BUFFERS = {"w13_weight": "gate_up_proj_blocks", "w13_weight_scale": "gate_up_proj_scales",
            "w2_weight": "down_proj_blocks", "w2_weight_scale": "down_proj_scales"}


def _load(parameter: nn.Parameter, loaded: Tensor, *_: Any, weight_name: str = "", **__: Any) -> bool:
    """Copies all experts' part of this process; vLLM has cut it.  Rows and columns that the file has not stay zero."""
    if loaded.dim() != parameter.dim() or any(a > b for a, b in zip(loaded.shape, parameter.shape)):
        raise InvalidError(f"{weight_name} has the shape {tuple(loaded.shape)} in the file: the model's experts have "
                           f"{tuple(parameter.shape)}")
    parameter.data[tuple(slice(0, size) for size in loaded.shape)].copy_(loaded)
    return True


def _announce() -> None:
    """vLLM's gpt-oss reads MXFP4 experts only where config.json names their method, which is not what a checkpoint of
    blockscale.torch.transformers or a user's hf_overrides call it.  Nothing else reads that name any more."""
    config = get_current_vllm_config().model_config.hf_config
    config.quantization_config = {**(getattr(config, "quantization_config", None) or {}), "quant_method": "mxfp4"}


class BlockscaleExpertsMethod(FusedMoEMethodBase):
    """Two grouped products, by blockscale.torch.Experts."""

    weight_dtype = "gpt_oss_mxfp4"      # what vLLM's gpt-oss takes parts of experts by

    def __init__(self, moe: Any, name: str, gate_up: Stored, down: Stored, options: Options) -> None:
        super().__init__(moe)
        self.name, self.options = name, options
        for weight in (gate_up, down):
            if weight.convention != "gpt_oss" or weight.format != "mxfp4":
                raise UnsupportedError(f"{weight.name} is {weight.format} of {weight.convention}: experts are MXFP4 of "
                                       "gpt-oss'")
        if moe.moe_parallel_config.use_ep:
            raise UnsupportedError(f"{name}: enable_expert_parallel is set, and experts are split by their columns")

    def create_weights(self, layer: Any, num_experts: int, hidden_size: int, intermediate_size_per_partition: int,
                       params_dtype: torch.dtype, **extra_weight_attrs: Any) -> None:
        """Parameters with vLLM's names for experts."""
        if getattr(layer.activation, "value", layer.activation) != _ACTIVATION or layer.apply_router_weight_on_input:
            raise UnsupportedError(f"{self.name} has the activation {layer.activation}: MXFP4 experts of gpt-oss' have "
                                   f"{_ACTIVATION}, and weights of the router on their outputs")
        inner = intermediate_size_per_partition
        if inner % 32 != 0:
            raise InvalidError(f"{self.name} has {inner} columns in each part, no multiple of 32, the block of mxfp4: "
                               "use fewer parts")
        shapes = {"w13_weight": (2 * inner, hidden_size // 2), "w13_weight_scale": (2 * inner, hidden_size // 32),
                  "w2_weight": (hidden_size, inner // 2), "w2_weight_scale": (hidden_size, inner // 32)}
        shapes_of_biases = {"w13_bias": (2 * inner,), "w2_bias": (hidden_size,)} if self.moe.has_bias else {}
        for names, dtype in ((shapes, torch.uint8), (shapes_of_biases, params_dtype)):
            for name, shape in names.items():
                made = nn.Parameter(torch.zeros((num_experts, *shape), dtype=dtype), requires_grad=False)
                made.weight_loader = _load      # type: ignore[attr-defined]
                layer.register_parameter(name, made)
        self.sizes = (num_experts, hidden_size, inner)
        _announce()

    def process_weights_after_loading(self, layer: Any) -> None:
        """The parameters as those of blockscale.torch.Experts."""
        experts, hidden, inner = self.sizes
        made = bt.Experts(experts, hidden, inner, "mxfp4", bias=self.moe.has_bias, device="meta",
                          dtype=layer.params_dtype, prepack=self.options.prepack)
        for name, buffer in _BUFFERS.items():
            tensor = getattr(layer, name).data
            setattr(made, buffer, tensor if name.endswith("scale") else tensor.unflatten(2, (-1, 16)))
            delattr(layer, name)
        if self.moe.has_bias:
            made.gate_up_proj_bias, made.down_proj_bias = layer.w13_bias, layer.w2_bias
            del layer.w13_bias, layer.w2_bias
        made.prepack_now(layer.params_dtype)
        layer.blockscale_experts = made

    def get_fused_moe_quant_config(self, layer: Any) -> None:
        """None: vLLM's own kernels are not used."""

    def apply(self, layer: Any, x: Tensor, topk_weights: Tensor, topk_ids: Tensor, *_: Any, **__: Any) -> Tensor:
        """x (tokens, hidden_size) through the experts that the router has chosen."""
        y: Tensor = layer.blockscale_experts(x, topk_ids, topk_weights)
        return y

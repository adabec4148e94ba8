"""Quantizing the layers of a model in place."""
from __future__ import annotations

import re
from typing import Any, Callable

import torch
from torch import Tensor, nn

from .._errors import InvalidError
from . import _weights
from ._weights import QuantizedModule
from .experts import PROJECTIONS, Experts
from .joined import groups_of, join
from .linear import Linear

Filter = Callable[[nn.Module, str], bool]

# As the command's default: heads and routers stay as they are.
EXCLUDED = re.compile(r"(^|\.)(lm_head|output|score|classifier|router|gate|embed_out|shared_expert_gate)$")


def default_filter(module: nn.Module, name: str) -> bool:
    """Every layer but heads and routers, by their names."""
    return EXCLUDED.search(name) is None


def expert_options(module: nn.Module) -> dict[str, Any] | None:
    """How Experts computes what `module` does: its activation, its order of gates and ups, whether it has biases; None
    if it is no such layer, or one with another activation.

    Such layers are those of transformers: parameters gate_up_proj and down_proj of three dimensions, called with
    (hidden_states, router_indices, routing_weights)."""
    weights = [getattr(module, name, None) for name in PROJECTIONS]
    if not all(isinstance(weight, Tensor) and weight.dim() == 3 for weight in weights):
        return None
    if not getattr(module, "has_gate", True) or getattr(module, "has_post_expert_norm", False):
        return None
    bias = getattr(module, "gate_up_proj_bias", None) is not None
    if not getattr(module, "is_concatenated", True):
        gpt_oss = getattr(module, "alpha", None) == 1.702 and getattr(module, "limit", None) == 7.0
        return {"activation": "swiglu_clamped", "gate": "interleaved", "bias": bias} if gpt_oss else None
    activation = _activation_name(getattr(module, "act_fn", None))
    if activation is None or not _has_plain_gate(module):
        return None
    return {"activation": activation, "gate": "split", "bias": bias}


def _activation_name(function: object) -> str | None:
    name = type(function).__name__
    if isinstance(function, nn.GELU):
        return "gelu" if function.approximate == "none" else "gelu_tanh"
    return {"SiLU": "silu", "SiLUActivation": "silu", "ReLU": "relu", "GELUActivation": "gelu",
            "GELUTanh": "gelu_tanh", "PytorchGELUTanh": "gelu_tanh"}.get(name)


def _has_plain_gate(module: nn.Module) -> bool:
    gate = getattr(type(module), "_apply_gate", None)
    return gate is None or gate.__name__ == "_default_apply_gate"


def experts_like(module: nn.Module, format: str, **options: Any) -> Experts | None:
    """Experts of the same sizes, biases and device as `module`, with weights that are not set; None where
    expert_options is None."""
    found = expert_options(module)
    if found is None:
        return None
    gate_up: Tensor = getattr(module, PROJECTIONS[0])
    experts, rows, columns = gate_up.shape
    if getattr(module, "is_transposed", False):
        rows, columns = columns, rows
    made = Experts(experts, columns, rows // 2, format, device=gate_up.device, dtype=gate_up.dtype, **found, **options)
    made.training = module.training
    if found["bias"]:
        for name in PROJECTIONS:
            setattr(made, f"{name}_bias", getattr(module, f"{name}_bias"))
    return made


def _quantized_experts(module: nn.Module, format: str, recipe: str, prepack: bool | str | None) -> Experts | None:
    options = expert_options(module)
    if options is None:
        return None
    transposed = getattr(module, "is_transposed", False)
    made = experts_like(module, format, prepack=prepack)
    assert made is not None
    for name in PROJECTIONS:
        weight: Tensor = getattr(module, name).detach()
        made.set_weight(name, weight.transpose(1, 2) if transposed else weight, recipe)
    return made


def fits(module: nn.Linear, format: str) -> bool:
    """Whether the rows of a layer's weight are whole blocks."""
    block = _weights.weight_format(format).block
    return block == 0 or module.in_features % block == 0


def replace(model: nn.Module, name: str, module: nn.Module) -> None:
    """Puts a module into a model in the place of that name."""
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def _quantize_joined(model: nn.Module, format: str, chosen: Filter, options: dict[str, Any]) -> list[str]:
    replaced = []
    for above, module in list(model.named_modules()):
        front = f"{above}." if above else ""
        names = {name for name, child in module.named_children()
                 if type(child) is nn.Linear and fits(child, format) and chosen(child, front + name)}
        for group in groups_of(module, names):
            for name, part in zip(group, join([getattr(module, name) for name in group], format, **options)):
                setattr(module, name, part)
                replaced.append(front + name)
    return replaced


def quantize_(model: nn.Module, format: str, filter: Filter | None = None, *, activations: str | None = None,
              recipe: str = "default", experts: bool = True, prepack: bool | str | None = None, fuse: bool = False
              ) -> list[str]:
    """Replaces linear layers (and, with experts=True, mixture-of-experts layers) of a model by quantized ones.

    format       of the weights: "mxfp4", "nvfp4", "mxfp8_e4m3", ...
    filter       function of (module, name) that says which layers are quantized; None: all but heads and routers.
                 Layers whose rows are not whole blocks are left as they are
    activations  as of Linear; experts multiply their inputs as they are
    recipe       as of blockscale.quantize;  prepack  as of Linear
    fuse         True: q_proj, k_proj and v_proj beside one another become one product, gate_proj and up_proj another:
                 fewer and larger products with the same bits, but that NVFP4's then share a tensor scale.  For
                 inference: state_dict has the joined weights, under names that no other program reads
    Returns the names of the layers that were replaced.  Tensors that a layer shares with another one are quantized for
    each of them.  Errors: InvalidError for a model that is itself a layer: use Linear.from_float."""
    chosen = filter or default_filter
    if isinstance(model, nn.Linear):
        raise InvalidError("model is a torch.nn.Linear, which cannot be replaced in place: use Linear.from_float")
    options: dict[str, Any] = {"activations": activations, "recipe": recipe, "prepack": prepack}
    replaced = _quantize_joined(model, format, chosen, options) if fuse else []
    for name, module in list(model.named_modules()):
        made: nn.Module | None = None
        if type(module) is nn.Linear and fits(module, format) and chosen(module, name):
            made = Linear.from_float(module, format, **options)
        elif experts and name and chosen(module, name):
            made = _quantized_experts(module, format, recipe, prepack)
        if made is not None:
            replace(model, name, made)
            replaced.append(name)
    return replaced


def prepack_(model: nn.Module, dtype: torch.dtype = torch.bfloat16) -> int:
    """Makes the prepacked copies of all quantized layers now, for inputs of dtype, and returns their bytes.

    Without it they are made at a layer's first call; inside torch.compile and CUDA graphs none are made, so call this
    before.  Layers with prepack=False, and weights that no kernel of the device reads prepacked, have none."""
    total = 0
    for module in model.modules():
        if isinstance(module, QuantizedModule):
            total += module.prepack_now(dtype)
    return total

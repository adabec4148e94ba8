"""Linear layers that multiply the same input, as one product: q, k and v of an attention, gate and up of an MLP."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .linear import Linear

# Names of layers beside one another; models call them one after the other with the same tensor.
GROUPS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))


class Shared:
    """What the parts of one product share: the layer, and its result until every part had its columns.

    A part that is called with another tensor than the part before it, or with one that was written since, multiplies
    anew: what comes out is right in any order, and one product where models call the parts with the same tensor."""

    def __init__(self, layer: Linear, parts: int) -> None:
        self.layer, self.parts = layer, parts
        self.x: Tensor | None = None
        self.y: Tensor | None = None
        self.version, self.had = 0, 0

    def product(self, x: Tensor) -> Tensor:
        """The result for x, made at the first of the parts' calls."""
        version = 0 if torch.compiler.is_compiling() or x.is_inference() else x._version
        y = self.y
        if y is None or self.x is not x or self.version != version:
            y = self.layer(x)
            self.x, self.y, self.version, self.had = x, y, version, 0
        self.had += 1
        if self.had == self.parts:
            self.x = self.y = None
        return y

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "x": None, "y": None, "had": 0}


class Part(nn.Module):
    """Some columns of a product, in the place of the layer that had them.  The first part has the layer, `joined`, and
    its buffers in state_dict."""

    def __init__(self, shared: Shared, first: int, columns: int, bias: bool) -> None:
        super().__init__()
        if first == 0:
            self.joined = shared.layer
        self.shared, self.first = shared, first
        self.in_features, self.out_features, self.has_bias = shared.layer.in_features, columns, bias

    def forward(self, x: Tensor) -> Tensor:
        """x (..., in_features) to (..., out_features): a view."""
        return self.shared.product(x)[..., self.first:self.first + self.out_features]

    def extra_repr(self) -> str:
        """What print(model) shows of the layer."""
        return (f"in_features={self.in_features}, out_features={self.out_features}, bias={self.has_bias}, "
                f"first={self.first}")


def join(layers: list[nn.Linear], format: str, **options: Any) -> list[Part]:
    """The parts that replace these layers, which have equal in_features, and all or none of them a bias."""
    biased = layers[0].bias is not None
    whole = nn.Linear(layers[0].in_features, sum(layer.out_features for layer in layers), biased, device="meta")
    whole.training = layers[0].training
    whole.weight = nn.Parameter(torch.cat([layer.weight.detach() for layer in layers]), requires_grad=False)
    if biased:
        whole.bias = nn.Parameter(torch.cat([layer.bias.detach() for layer in layers]),
                                  requires_grad=layers[0].bias.requires_grad)
    shared = Shared(Linear.from_float(whole, format, **options), len(layers))
    parts, first = [], 0
    for layer in layers:
        parts.append(Part(shared, first, layer.out_features, biased))
        first += layer.out_features
    return parts


def groups_of(module: nn.Module, chosen: set[str]) -> list[list[str]]:
    """The groups among a module's children that can be joined: linear layers, all of them chosen."""
    found = []
    for names in GROUPS:
        layers = [getattr(module, name, None) for name in names]
        if not all(type(layer) is nn.Linear and name in chosen for layer, name in zip(layers, names)):
            continue
        facts = {(layer.in_features, layer.bias is None, layer.weight.dtype, layer.weight.device)
                 for layer in layers if isinstance(layer, nn.Linear)}
        if len(facts) == 1:
            found.append(list(names))
    return found

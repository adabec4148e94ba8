"""A linear layer with a quantized weight."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .._errors import InvalidError
from . import _tensors, _weights
from ._weights import QuantizedModule


# What a convention calls codes, scales of blocks and the fp32 scale of the whole tensor, and that one's shape.
_NAMES = {"modelopt": ("weight", "weight_scale", "weight_scale_2", ()),
          "compressed_tensors": ("weight_packed", "weight_scale", "weight_global_scale", (1,))}


class _Product(torch.autograd.Function):
    """The product with its gradients to x and the bias.  The weight is constant, and its numbers meet the gradient in
    the gradient's type."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, bias: Tensor | None, codes: Tensor, scales: Tensor | None,
                tensor_scale: Tensor | None, panels: Tensor | None, format: str, divides: bool) -> Tensor:
        """rows (M, K) to (M, N)."""
        ctx.save_for_backward(codes, scales, tensor_scale, panels if _tensors.has_no_bytes(codes) else None)
        ctx.format, ctx.divides, ctx.types = format, divides, (rows.dtype, None if bias is None else bias.dtype)
        y: Tensor = torch.ops.blockscale.matmul(
            rows, None, codes, scales, b_format=format, b_tensor_scale=tensor_scale, b_divides=divides, bias=bias,
            b_panels=panels)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of rows and bias."""
        (gradient,) = gradients
        codes, scales, tensor_scale, panels = ctx.saved_tensors
        to_rows = to_bias = None
        if ctx.needs_input_grad[0]:
            if panels is not None:
                codes, scales = torch.ops.blockscale.unpack(
                    panels, codes, scales, ctx.format, a_format=_tensors.PLAIN_FORMATS[ctx.types[0]])
            numbers = torch.ops.blockscale.dequantize(
                codes, scales, ctx.format, tensor_scale=tensor_scale, divides=ctx.divides, dtype=gradient.dtype)
            to_rows = (gradient @ numbers).to(ctx.types[0])
        if ctx.needs_input_grad[1]:
            to_bias = gradient.sum(0, dtype=torch.float32).to(ctx.types[1])
        return to_rows, to_bias, None, None, None, None, None, None


class Linear(QuantizedModule):
    """y = x W^T + bias, W quantized: torch.nn.Linear for inference.

    format       of the weight: "mxfp4", "nvfp4", "mxfp8_e4m3", ... or "e4m3", "e5m2" with one scale
    activations  None: x is multiplied as it is, exactly, without rounding.  A format: x is quantized to it first, each
                 row by its own blocks (NVFP4: by a tensor scale of the whole x, too)
    prepack      True: keep a prepacked copy of the weight, which is faster and takes as many bytes again, on CPUs more;
                 False: none; None: on GPUs for 4-bit weights; "alone": on GPUs for 4-bit weights, in place of the
                 codes, so that the device holds about the bytes of the file
    convention   whose names and shapes the buffers have, and so state_dict: "modelopt" (weight, weight_scale,
                 weight_scale_2) or "compressed_tensors" (weight_packed for 4 and 6 bits, weight_scale,
                 weight_global_scale, which divides).  The scale of e4m3 and e5m2 is weight_scale in both

    x is (..., in_features) of bf16 or fp16, on CPUs of fp32 as well; y has x's type.  torch.autocast casts fp32.
    Gradients flow to x and the bias, not to the weight (with activations: to neither); to train the weight, use
    blockscale.torch.training.Linear.  A new layer's buffers are zeros, its scales ones."""

    def __init__(self, in_features: int, out_features: int, format: str, bias: bool = True, *,
                 activations: str | None = None, prepack: bool | str | None = None, convention: str = "modelopt",
                 device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__(prepack, ("weight",))
        form = self.form = _weights.weight_format(format)
        _weights.check_columns(form, in_features, "in_features")
        if convention not in _NAMES:
            raise InvalidError(f"convention={convention!r} is not known: use one of {', '.join(_NAMES)}")
        codes, scales, scale, shape = _NAMES[convention]
        if form.bits == 8:
            codes = "weight"
        self.in_features, self.out_features, self.format = in_features, out_features, form.name
        self.activations = None if activations is None else _tensors.format_of(activations, "activations").name
        self.convention = convention
        self.divides = convention == "compressed_tensors" and form.block > 0
        self.names = (codes, scales if form.block > 0 else None,
                      None if not _weights.has_tensor_scale(form) else scale if form.block > 0 else scales)
        self.quantized = tuple(name for name in self.names if name is not None)
        self.register_buffer(codes, torch.zeros(
            (out_features, _tensors.row_units(form, "default", in_features)), dtype=torch.uint8, device=device
        ).view(_weights.codes_dtype(form)))
        if form.block > 0:
            self.register_buffer(scales, torch.zeros(
                (out_features, in_features // form.block), dtype=torch.uint8, device=device
            ).view(_weights.scales_dtype(form)))
        if self.names[2] is not None:
            self.register_buffer(self.names[2], torch.ones(shape, dtype=torch.float32, device=device))
        self.bias = nn.Parameter(torch.zeros(out_features, device=device, dtype=dtype)) if bias else None

    @property
    def codes(self) -> Tensor:
        """The weight's codes."""
        codes: Tensor = getattr(self, self.names[0])
        return codes

    @property
    def scales(self) -> Tensor | None:
        """The scales of the weight's blocks."""
        return None if self.names[1] is None else getattr(self, self.names[1])

    @property
    def tensor_scale(self) -> Tensor | None:
        """The fp32 scale of the whole weight."""
        return None if self.names[2] is None else getattr(self, self.names[2])

    def quantize_weight(self, weight: Tensor, recipe: str = "default") -> dict[str, Tensor]:
        """The buffers for a weight of (out_features, in_features), by their names."""
        parts = _weights.quantize(weight, self.form, recipe, self.divides)
        made = {name: part for name, part in zip(self.names, parts) if name is not None and part is not None}
        if self.names[2] is not None:
            made[self.names[2]] = made[self.names[2]].reshape(_NAMES[self.convention][3])
        return made

    @classmethod
    def from_float(cls, linear: nn.Linear, format: str, *, recipe: str = "default", **options: Any) -> Linear:
        """The quantized layer of a torch.nn.Linear, with its bias (the same tensor).  recipe: as in
        blockscale.quantize; options: as of Linear."""
        made = cls(linear.in_features, linear.out_features, format, linear.bias is not None, device="meta", **options)
        for name, tensor in made.quantize_weight(linear.weight, recipe).items():
            setattr(made, name, tensor)
        made.bias = linear.bias
        made.training = linear.training
        return made

    def weights(self) -> dict[str, tuple[Tensor, Tensor | None, Tensor | None, str]]:
        """The weight's parts."""
        if self.activations is not None:
            return {}
        return {"weight": (self.codes, self.scales, self.tensor_scale, "none")}

    def _stored_names(self, name: str) -> tuple[str, str]:
        assert self.names[1] is not None
        return self.names[0], self.names[1]

    def forward(self, x: Tensor) -> Tensor:
        """x (..., in_features) to (..., out_features)."""
        rows = x.reshape(-1, self.in_features)
        if self.activations is not None:
            return self._quantized(x, rows)
        panels = self._panels_of("weight", rows)
        weight, scales, tensor_scale = self.codes, self.scales, self.tensor_scale
        bias = self.bias
        y: Tensor
        if torch.is_grad_enabled() and (rows.requires_grad or (bias is not None and bias.requires_grad)):
            y = _Product.apply(rows, bias, weight, scales, tensor_scale, panels, self.format, self.divides)
        else:
            y = torch.ops.blockscale.matmul(
                rows, None, weight, scales, b_format=self.format, b_tensor_scale=tensor_scale,
                b_divides=self.divides, bias=bias, b_panels=panels)
        return y.view(*x.shape[:-1], self.out_features)

    def _quantized(self, x: Tensor, rows: Tensor) -> Tensor:
        assert self.activations is not None
        codes, scales, scale = torch.ops.blockscale.quantize(rows, self.activations)
        dtype = torch.get_autocast_dtype(x.device.type) if (
            x.dtype is torch.float32 and torch.is_autocast_enabled(x.device.type)) else x.dtype
        y: Tensor = torch.ops.blockscale.matmul(
            codes, scales, self.codes, self.scales, a_format=self.activations, a_tensor_scale=scale,
            b_format=self.format, b_tensor_scale=self.tensor_scale, b_divides=self.divides, bias=self.bias,
            out_dtype=dtype)
        return y.view(*x.shape[:-1], self.out_features)

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The weight as numbers, (out_features, in_features): exact, rounded once to dtype."""
        codes, scales = (self.codes, self.scales) if self.activations is not None else self._whole("weight")
        numbers: Tensor = torch.ops.blockscale.dequantize(
            codes, scales, self.format, tensor_scale=self.tensor_scale, divides=self.divides, dtype=dtype)
        return numbers

    def extra_repr(self) -> str:
        """What print(model) shows of the layer."""
        activations = "" if self.activations is None else f", activations={self.activations}"
        return (f"in_features={self.in_features}, out_features={self.out_features}, format={self.format}, "
                f"bias={self.bias is not None}{activations}")

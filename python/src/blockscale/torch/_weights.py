"""Quantized weights in modules: their tensors, what state_dict, .to() and copies do with them, and prepacked copies.

A layer's buffers have the names, types and shapes of a convention of checkpoints (docs/guide/checkpoints.md), so that a
saved state_dict is such a checkpoint: codes are float8_e4m3fn or float8_e5m2 where the elements are of 8 bits, else
packed uint8; scales of blocks float8_e4m3fn (NVFP4) or uint8 (powers of two), row by row; tensor scales fp32."""
from __future__ import annotations

from typing import Any, Callable

import torch
from torch import Tensor, nn

from .._errors import InvalidError
from .._library import FORMATS, Format
from . import _plans, _tensors, operators

BLOCK_FORMATS = tuple(name for name, form in FORMATS.items() if form.block > 0)
_ELEMENT_DTYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
PREPACKED_ROWS = {"cpu": 64, "cuda": 1}     # rows of A of the plan that says how weights are packed


def weight_format(name: str) -> Format:
    """The format of a weight: one with block scales, or e4m3 and e5m2 with one scale."""
    form = _tensors.format_of(name)
    if form.block == 0 and form.name not in _ELEMENT_DTYPES:
        raise InvalidError(f"format={name!r}: weights are quantized to one of {', '.join(BLOCK_FORMATS)}, e4m3, e5m2")
    return form


def codes_dtype(form: Format) -> torch.dtype:
    """The type of a buffer of codes."""
    return _ELEMENT_DTYPES.get(form.element, torch.uint8)


def scales_dtype(form: Format) -> torch.dtype:
    """The type of a buffer of scales of blocks."""
    return torch.float8_e4m3fn if form.scale == "ue4m3" else torch.uint8


def has_tensor_scale(form: Format) -> bool:
    """Whether weights of this format have an fp32 scale for the whole tensor."""
    return form.scale == "ue4m3" or form.block == 0


def quantize(weight: Tensor, form: Format, recipe: str = "default", divides: bool = False
             ) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Codes, scales and tensor scale of a weight (rows, columns) or of a batch of them, in the types above."""
    codes, scales, scale = torch.ops.blockscale.quantize(
        weight.detach(), form.name, recipe=recipe, compute_tensor_scale=has_tensor_scale(form), divides=divides)
    return (codes.view(codes_dtype(form)), scales.view(scales_dtype(form)) if form.block > 0 else None,
            scale.reshape(()) if scale.numel() > 0 else None)


def check_columns(form: Format, columns: int, name: str) -> None:
    """Rows of a weight are whole blocks, as in checkpoints."""
    if form.block > 0 and columns % form.block != 0:
        raise InvalidError(f"{name}={columns} is no multiple of {form.block}, the block of {form.name}")


class QuantizedModule(nn.Module):
    """What modules with quantized weights share.

    .to(dtype), .half() and the like leave codes and scales as they are, and cast the other tensors.  Prepacked copies
    (`prepack`: True, False, or None for GPUs alone) are made at the first call that can use them, again after the
    weights were written or moved, and are neither copied nor saved.  Writing through `.data` is not noticed: call
    `drop_prepacked`.

    With prepack="alone" prepacked weights take the place of codes and scales, where a GPU's kernels read such and give
    back every byte of them; a tensor of the same shape without bytes is left.  state_dict, copies, .to() and
    dequantize have codes and scales again, unpacked for them; they cannot be written in place."""

    quantized: tuple[str, ...] = ()     # names of the buffers that casts leave alone
    form: Format

    def __init__(self, prepack: bool | str | None, names: tuple[str, ...]) -> None:
        """names: of the weights that have prepacked copies.  These are buffers, so that torch.compile takes their
        addresses to be constant, but no part of the state."""
        super().__init__()
        if prepack not in (None, True, False, "alone"):
            raise InvalidError(f"prepack={prepack!r}: it is True, False, None or 'alone'")
        self.prepack = prepack
        self.packed_names = names
        self.packed_formats: dict[str, str] = {}
        for name in names:
            self.register_buffer(f"{name}_panels", None, persistent=False)

    @property
    def panels(self) -> dict[str, tuple[str, Tensor]]:
        """The prepacked copies that there are, by their weight's name: the format of A that they are for, and bytes."""
        return {name: (form, getattr(self, f"{name}_panels")) for name, form in self.packed_formats.items()}

    def drop_prepacked(self) -> None:
        """Forgets the prepacked copies; the next call makes new ones.  Weights that were these alone are unpacked."""
        self._restore()
        self.packed_formats = {}
        for name in self.packed_names:
            setattr(self, f"{name}_panels", None)

    def _stored(self, name: str) -> tuple[Tensor, Tensor | None, Tensor | None, str]:
        """Codes, scales, tensor scale and gate of a weight by its name, which may have no bytes."""
        return self.weights()[name]

    def _stored_names(self, name: str) -> tuple[str, str]:
        """The buffers of a weight's codes and scales."""
        raise NotImplementedError

    def _whole(self, name: str) -> tuple[Tensor, Tensor | None]:
        """A weight's codes and scales, unpacked where there are prepacked weights in their place."""
        codes, scales, _, gate = self._stored(name)
        if not _tensors.has_no_bytes(codes):
            return codes, scales
        made: tuple[Tensor, Tensor] = torch.ops.blockscale.unpack(
            getattr(self, f"{name}_panels"), codes, scales, self.form.name, a_format=self.packed_formats[name],
            rows=PREPACKED_ROWS[codes.device.type], gate=gate, grouped=codes.dim() == 3)
        return made

    def _whole_buffers(self) -> dict[str, Tensor]:
        """The buffers of all weights that are prepacked alone, unpacked, by their names."""
        found: dict[str, Tensor] = {}
        for name in self.packed_formats:
            if _tensors.has_no_bytes(self._stored(name)[0]):
                for buffer, tensor in zip(self._stored_names(name), self._whole(name)):
                    assert tensor is not None
                    found[buffer] = tensor.view(getattr(self, buffer).shape)
        return found

    def _restore(self) -> None:
        for name, tensor in self._whole_buffers().items():
            setattr(self, name, tensor)

    def _drop_stored(self, name: str, panels: Tensor) -> None:
        """Leaves prepacked weights alone, if they have every byte."""
        codes, scales, _, gate = self._stored(name)
        assert scales is not None
        of_codes, of_scales = torch.ops.blockscale.unpack(
            panels, codes, scales, self.form.name, a_format=self.packed_formats[name],
            rows=PREPACKED_ROWS[codes.device.type], gate=gate, grouped=codes.dim() == 3)
        for tensor, other in ((codes, of_codes), (scales, of_scales)):
            if not torch.equal(tensor.view(torch.uint8), other.view(torch.uint8)):
                return
        for buffer in self._stored_names(name):
            setattr(self, buffer, _tensors.without_bytes(getattr(self, buffer)))
        _plans.remember(panels, self._stored(name)[0])

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        save: Any = super()._save_to_state_dict
        save(destination, prefix, keep_vars)
        for name, tensor in self._whole_buffers().items():
            destination[prefix + name] = tensor

    def _load_from_state_dict(self, *arguments: Any, **named: Any) -> None:
        self.drop_prepacked()
        load: Any = super()._load_from_state_dict
        load(*arguments, **named)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        self._restore()
        own = {id(self._buffers[name]): self._buffers[name] for name in self.quantized
               if self._buffers.get(name) is not None}

        def move(tensor: Tensor) -> Tensor:
            if id(tensor) not in own:
                return fn(tensor)
            moved = fn(tensor.reshape(-1).view(torch.uint8))
            return moved.view(tensor.dtype).reshape(tensor.shape)

        self.drop_prepacked()
        applied: Any = super()._apply
        return applied(move, recurse)

    def __getstate__(self) -> dict[str, Any]:
        buffers = {name: None if name.removesuffix("_panels") in self.packed_names and name.endswith("_panels")
                   else tensor for name, tensor in {**self._buffers, **self._whole_buffers()}.items()}
        return {**self.__dict__, "_buffers": buffers, "packed_formats": {}}

    def weights(self) -> dict[str, tuple[Tensor, Tensor | None, Tensor | None, str]]:
        """Codes, scales, tensor scale and gate of each weight, by its name among the prepacked copies."""
        raise NotImplementedError

    def prepack_now(self, dtype: torch.dtype) -> int:
        """Makes the prepacked copies for inputs of dtype, where the module wants them; returns their bytes."""
        total = 0
        for name, (codes, _, _, _) in self.weights().items():
            panels = self._panels_of(name, torch.empty((0,), dtype=dtype, device=codes.device))
            total += 0 if panels is None else panels.numel()
        return total

    def _wants_panels(self, codes: Tensor, form: Format) -> bool:
        if isinstance(self.prepack, bool):
            return self.prepack
        return _tensors.on_gpu(codes) and form.bits == 4

    def _panels_of(self, name: str, a: Tensor) -> Tensor | None:
        """The prepacked copy of one weight for products with A's numbers; None where there is none.  What the weight
        has in buffers may be other tensors behind this call."""
        a_format = _tensors.PLAIN_FORMATS.get(a.dtype)
        kept: Tensor | None = getattr(self, f"{name}_panels") if self.packed_formats.get(name) == a_format else None
        if torch.compiler.is_compiling():
            return kept
        codes, scales, tensor_scale, gate = self._stored(name)
        if kept is not None and _plans.is_current(kept, codes):
            return kept
        form = self.form
        capturing = codes.is_cuda and torch.cuda.is_current_stream_capturing()
        if _tensors.has_no_bytes(codes):
            if capturing:
                raise InvalidError(f"{name} is kept as prepacked weights for {self.packed_formats[name]} alone, and a "
                                   f"graph is being captured for x of {a.dtype}: call the layer with such an x before")
            self.drop_prepacked()
            codes, scales, tensor_scale, gate = self._stored(name)
        if a_format is None or not self._wants_panels(codes, form) or capturing:
            return None
        if codes.is_cuda and a_format == "fp32":
            return None
        made: Tensor = torch.ops.blockscale.pack(
            codes, scales, form.name, a_format=a_format, rows=PREPACKED_ROWS[codes.device.type],
            b_tensor_scale=tensor_scale, b_divides=getattr(self, "divides", False), gate=gate, grouped=codes.dim() == 3)
        setattr(self, f"{name}_panels", made)
        self.packed_formats[name] = a_format
        if self.prepack == "alone" and made.numel() > 0 and _tensors.on_gpu(codes) and form.bits == 4:
            self._drop_stored(name, made)
        return made


assert operators.library is not None     # the operators are registered

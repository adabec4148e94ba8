"""What a checkpoint has for a layer of vLLM: the tensors' names, types and shapes, without their numbers.

vLLM joins layers that multiply the same input (q, k and v; gate and up), and its loaders put a tensor X.PART of the
file into the parameter PART of the layer that X is joined into.  So a layer is told by the weights it is joined from,
and its parameters by the parts that these have in the file.  Nothing here needs vLLM or PyTorch."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .._errors import InvalidError, UnsupportedError
from ..checkpoints import Checkpoint, Weight

# Tensors beside a weight that say something about inputs and outputs, or repeat what is known.
_UNREAD = ("input_scale", "input_global_scale", "output_scale", "weight_shape")
# Types of codes and scales that PyTorch's reader of .safetensors files has.
_LOADABLE = ("U8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "F32")
# Where a model does not say what it joins.
_JOINED: Mapping[str, Sequence[str]] = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


class Options(NamedTuple):
    """How layers multiply; see BlockscaleConfig."""

    prepack: bool | None = None
    activations: str | None = None


class Part(NamedTuple):
    """A tensor of a weight: its name behind the weight's and a point, type and shape in the file."""

    suffix: str
    type: str
    shape: tuple[int, ...]


class Stored(NamedTuple):
    """A quantized weight of a checkpoint.

    layout   of its scales;  per_row  whether each row has an fp32 scale of its own;  divides  whether the tensor scale
    divides;  unread  parts that the product does not need"""

    name: str
    convention: str
    format: str
    shape: tuple[int, ...]
    layout: str
    packing: str
    codes: Part
    scales: Part | None
    tensor_scale: Part | None
    per_row: bool
    divides: bool
    unread: tuple[Part, ...]


def _part(checkpoint: Checkpoint, name: str, tensor: str | None) -> Part | None:
    if tensor is None:
        return None
    found = checkpoint.tensors[tensor]
    if found.type not in _LOADABLE:
        raise UnsupportedError(f"{tensor} is of type {found.type}: PyTorch's reader of .safetensors files has only "
                               f"{', '.join(_LOADABLE)} of those that codes and scales have")
    return Part(tensor.removeprefix(name).removeprefix("."), found.type, found.shape)


def _stored(checkpoint: Checkpoint, weight: Weight) -> Stored:
    name, rows, tensors = weight.name, weight.shape[-2], weight.tensors
    whole = weight.tile_rows == 0
    per_row = weight.tile_rows == 1 and weight.tile_columns >= weight.shape[-1]
    if not whole and not per_row:
        raise UnsupportedError(f"{name} has fp32 scales of tiles of {weight.tile_rows} x {weight.tile_columns}: layers "
                               "take one scale, or one a row; `blockscale quantize` makes MXFP8 of such a checkpoint")
    matrix = weight.matrix if whole else None
    codes = _part(checkpoint, name, tensors["codes"])
    scale = _part(checkpoint, name, tensors.get("tensor_scale") or (tensors.get("scales") if per_row else None))
    assert codes is not None
    if per_row and scale is not None and scale.shape not in ((rows,), (rows, 1)):
        raise UnsupportedError(f"{name}.{scale.suffix} has the shape {scale.shape}: one scale a row is {(rows, 1)}")
    unread = [part for part in (_part_if_there(checkpoint, name, suffix) for suffix in _UNREAD) if part is not None]
    return Stored(name, weight.convention, weight.format, weight.shape, "linear" if matrix is None else matrix.layout,
                  "default" if matrix is None else matrix.packing, codes,
                  None if per_row else _part(checkpoint, name, tensors.get("scales")), scale, per_row,
                  matrix is not None and matrix.tensor_scale_divides, tuple(unread))


def _part_if_there(checkpoint: Checkpoint, name: str, suffix: str) -> Part | None:
    try:
        found = checkpoint.tensors[f"{name}.{suffix}"]
    except KeyError:
        return None
    return Part(suffix, found.type, found.shape)


def read(path: str | os.PathLike[str]) -> dict[str, Stored]:
    """The quantized weights of a checkpoint by their names.  Errors: FileError for a file that is wrong,
    UnsupportedError for weights that layers cannot have, InvalidError where none is quantized."""
    with Checkpoint(path) as checkpoint:
        if checkpoint.kind != "safetensors":
            raise UnsupportedError(f"{path} is a {checkpoint.kind} file: vLLM's layers are loaded from .safetensors "
                                   "files; `blockscale convert` makes one of it")
        found = {name: _stored(checkpoint, weight) for name, weight in checkpoint.items()
                 if weight.convention != "plain"}
    if not found:
        raise InvalidError(f"{path} has no weight with block scales, or fp8 with scales: make one by `blockscale "
                           "quantize`")
    return found


def renamed(stored: Mapping[str, Stored], rename: Callable[[str], str | None]) -> dict[str, Stored]:
    """The same weights under the names that a model of vLLM has for them; those without a name there are dropped."""
    found = {}
    for name, weight in stored.items():
        new = rename(name)
        if new is not None:
            found[new] = weight
    return found


def members(stored: Mapping[str, Stored], layer: str, joined: Mapping[str, Sequence[str]]) -> list[Stored]:
    """The weights that a linear layer of that name is made of, in order: itself, where the file has it whole, or those
    that the model joins into it (`joined`: names by the joined one's).  Empty where they are not quantized.

    Errors: UnsupportedError where only some are quantized, or not all alike."""
    if layer in stored:
        return [stored[layer]]
    parent, _, last = layer.rpartition(".")
    names = [f"{parent}.{name}" if parent else name for name in joined.get(last) or _JOINED.get(last) or ()]
    there = [name for name in names if name in stored]
    if not there:
        return []
    if len(there) < len(names):
        missing = next(name for name in names if name not in stored)
        raise UnsupportedError(f"{there[0]} is {stored[there[0]].format} and {missing} is not quantized: vLLM joins "
                               f"them into {layer}, whose parts are all quantized or none")
    first = stored[there[0]]
    for name in there[1:]:
        other = stored[name]
        for what, mine, its in (("format", first.format, other.format), ("layout", first.layout, other.layout),
                                ("columns", first.shape[-1], other.shape[-1]), ("codes", first.codes.type,
                                                                                other.codes.type),
                                ("convention", first.convention, other.convention)):
            if mine != its:
                raise UnsupportedError(f"{there[0]} has the {what} {mine} and {name} {its}: vLLM joins them into "
                                       f"{layer}, whose parts are alike")
    return [stored[name] for name in there]


def experts(stored: Mapping[str, Stored], layer: str) -> tuple[Stored, Stored] | None:
    """gate_up_proj and down_proj of the experts of that name; None where they are not quantized.

    Errors: UnsupportedError for experts that are not stored as gpt-oss' are."""
    there = [(key, weight) for key, weight in stored.items() if key.startswith(layer + ".")]
    if not there:
        return None
    # vLLM has names of its own for these two: theirs in the file tell them.
    both = {weight.name.rpartition(".")[2]: weight for _, weight in there if len(weight.shape) == 3}
    if "gate_up_proj" not in both or "down_proj" not in both:
        first = there[0][1]
        raise UnsupportedError(f"{first.name} is quantized ({first.format} of {first.convention}): of experts those "
                               f"are loaded that lie together as gpt-oss' do, {layer}.gate_up_proj_blocks and "
                               f"{layer}.down_proj_blocks")
    return both["gate_up_proj"], both["down_proj"]

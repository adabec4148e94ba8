"""quantize_checkpoint: a checkpoint of real numbers into one of codes and scales, as the command `blockscale quantize`
writes it, weight by weight with the memory of the largest one."""
from __future__ import annotations

import dataclasses
import fnmatch
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _arrays, _context
from ._errors import InvalidError, check
from ._library import NULL, Format, ffi, lib, text
from .checkpoints import Checkpoint, Tensor, Weight
from .matrix import format_of
from .quantization import _options, real_struct

# Embeddings, heads and routers, as ModelOpt leaves them.
USUAL_EXCLUDE = "*embed*,*lm_head*,*router*,*.gate,*output_layer*"
# Weights that serving programs join, and of which they keep one tensor scale.
USUAL_GROUPS = ("q_proj+k_proj+v_proj,gate_proj+up_proj,w1+w3,query+key+value,q+k+v,wq+wk+wv,"
                "q_a_proj+kv_a_proj_with_mqa,wq_a+wkv_a_with_mqa,in_proj_qkv+in_proj_z,in_proj_b+in_proj_a")
_REALS = ("fp32", "fp16", "bf16")
_CHUNK = 1 << 20

Progress = Callable[[str, int, int], object]


@dataclasses.dataclass(frozen=True)
class Report:
    """What quantize_checkpoint wrote.

    path          of the file with the weights; bytes_before, bytes_after   of all tensors
    snr_db        signal to noise of each weight that was quantized, by its name
    left          weights that the patterns chose, but whose rows are no whole blocks: they are as they were
    copied        files of the model's folder that were copied; not_copied   those that were not
    notes         sentences about what was omitted"""

    path: str
    bytes_before: int
    bytes_after: int
    snr_db: dict[str, float]
    left: list[str]
    copied: list[str]
    not_copied: list[str]
    notes: list[str]


class _Item:
    """A tensor that is passed on, or a weight that is quantized."""

    __slots__ = ("tensor", "weight", "expert", "number", "matrix", "scale")

    def __init__(self, tensor: Tensor, weight: Weight | None, expert: bool) -> None:
        self.tensor, self.weight, self.expert = tensor, weight, expert
        self.number = ffi.new("int64_t *")
        self.matrix = ffi.new("bsm_matrix *")
        self.matrix.struct_size = ffi.sizeof("bsm_matrix")
        self.scale = 0.0                                 # the tensor scale that it shares, or 0

    @property
    def columns(self) -> int:
        """Of the matrix that is quantized."""
        assert self.weight is not None
        return self.weight.shape[-2] if self.expert else self.weight.shape[-1]

    @property
    def rows(self) -> int:
        """Of the matrix that is quantized."""
        assert self.weight is not None
        return self.weight.shape[-1] if self.expert else self.weight.shape[-2]

    def numbers(self) -> Any:
        """The array of real numbers, as the checkpoint has them."""
        assert self.weight is not None
        return self.weight.dequantize() if self.weight.tile_rows else self.weight.matrix.codes


class _Job:
    """One checkpoint that becomes another one."""

    def __init__(self, source: str, destination: str, form: Format, convention: str | None, options: Any,
                 preset: str | None, chooses: Callable[[str, bool], bool], groups: str) -> None:
        self.form, self.chooses, self.groups = form, chooses, groups
        self.options = options
        self.has_tensor_scale = form.scale != "e8m0" and preset != "ggml"
        self.convention = _convention(convention, destination, preset)
        check(lib.bsm_writer_check_format(self.convention, form.number))
        self.checkpoint = Checkpoint(source)
        self.context = _context.context(_arrays.CPU)
        settings = ffi.new("bsm_writer_options *")
        settings.struct_size = ffi.sizeof("bsm_writer_options")
        model = ffi.new("char[]", os.fsencode(source))
        settings.model = model
        made = ffi.new("bsm_writer **")
        check(lib.bsm_writer_create(self.context, os.fsencode(destination), settings, made))
        self.writer = made[0]
        self.items: list[_Item] = []
        self.left: list[str] = []
        self.snr_db: dict[str, float] = {}
        self.bytes_before = 0

    def end(self) -> None:
        """Removes what was not finished."""
        lib.bsm_writer_destroy(self.writer)
        self.checkpoint.close()

    # Choosing ---------------------------------------------------------------------------------------------------------

    def choose(self) -> None:
        """Announces every tensor and weight of the output."""
        used: set[str] = set()
        for index in range(len(self.checkpoint.tensors)):
            tensor = Tensor(self.checkpoint._file, index)
            self.bytes_before += tensor.nbytes
            weight, expert = self._chosen(index, tensor)
            if weight is not None:
                used.update(name for part, name in weight.tensors.items() if part != "codes")
            self.items.append(_Item(tensor, weight, expert))
        self.items = [item for item in self.items if item.weight is not None or item.tensor.name not in used]
        if all(item.weight is None for item in self.items):
            raise InvalidError(f"{self.checkpoint.path}: no weight is chosen: matrices called X.weight of fp32, fp16 "
                               "or bf16 numbers are, and of fp8 with fp32 scales of tiles or rows (gpt-oss: experts' "
                               "tensors of three dimensions); include, exclude and filter choose among them")
        for item in self.items:
            self._announce(item)

    def _chosen(self, index: int, tensor: Tensor) -> tuple[Weight | None, bool]:
        weight = self.checkpoint._weight(index)
        if weight is None:
            return None, False
        oss = self.convention == lib.BSM_CONVENTION_GPT_OSS
        rank, suffix = len(tensor.shape), len(tensor.name.encode()) - len(weight.name.encode())
        plain = weight.convention == "plain"
        expert = oss and plain and rank == 3 and suffix == 0
        matrix = not oss and len(weight.shape) == 2 and rank == 2 and suffix == len(".weight")
        real = plain and weight.format in _REALS or weight.tile_rows > 0
        if not (real and (expert or matrix) and self.chooses(weight.name, expert)):
            return None, False
        if (weight.shape[-2] if expert else weight.shape[-1]) % self._row_unit():
            self.left.append(weight.name)
            return None, False
        return weight, expert

    def _row_unit(self) -> int:
        """Numbers of a row that a format needs whole: other readers know no short blocks."""
        if self.convention == lib.BSM_CONVENTION_GGUF:
            return 64 if self.form.name == "nvfp4" else 32
        return self.form.block or 1

    def _announce(self, item: _Item) -> None:
        if item.weight is None:
            c = ffi.new("bsm_tensor *")
            c.struct_size = ffi.sizeof("bsm_tensor")
            tensors = self.checkpoint._file.handle
            check(lib.bsm_checkpoint_tensor(tensors, lib.bsm_checkpoint_find(tensors, item.tensor.name.encode()), c))
            check(lib.bsm_writer_add_tensor(self.writer, c, item.number))
            return
        c = ffi.new("bsm_writer_weight *")
        c.struct_size = ffi.sizeof("bsm_writer_weight")
        name = ffi.new("char[]", item.weight.name.encode())
        c.name, c.convention, c.format = name, self.convention, self.form.number
        c.batch = item.weight.shape[0] if len(item.weight.shape) == 3 else 1
        c.rows, c.columns, c.tensor_scale = item.rows, item.columns, self.has_tensor_scale
        check(lib.bsm_writer_add_weight(self.writer, c, item.number, item.matrix))

    # Tensor scales that weights share ---------------------------------------------------------------------------------

    def share_scales(self) -> None:
        """Every member of a group gets the scale of its largest number."""
        if not self.has_tensor_scale:
            return
        # Readers of compressed-tensors round the scale of e4m3 to the type of the model: a bf16 number stays as it is.
        short = self.convention == lib.BSM_CONVENTION_COMPRESSED_TENSORS and self.form.name == "e4m3"
        chosen = [item for item in self.items if item.weight is not None]
        for members in _grouped(chosen, self.groups, short):
            scales = [self._own_scale(item) for item in members]
            divides = members[0].matrix.tensor_scale_use == lib.BSM_TENSOR_SCALE_DIVIDES
            some = [scale for scale in scales if scale != 0]
            joined = (min(some) if divides else max(some)) if some else 0.0
            for item in members:
                item.scale = _shortened(joined) if short else joined

    def _own_scale(self, item: _Item) -> float:
        """The tensor scale of a weight alone: that of its largest number, 0 if all are 0."""
        numbers = item.numbers()
        largest = _largest(numbers)
        if largest[0, 0] == 0:
            return 0.0
        one = ffi.new("bsm_matrix *", item.matrix[0])
        one.rows = one.columns = one.batch = 1
        one.pitch = one.batch_pitch = one.scale_batch_pitch = 0
        one.packing = lib.BSM_PACKING_DEFAULT
        one.scale_layout = ffi.new("bsm_scale_layout *", {"kind": lib.BSM_LAYOUT_LINEAR})[0]
        room, scale = ffi.new("char[128]"), ffi.new("float *")
        one.data, one.tensor_scale = room, scale
        one.scales = NULL if self.form.scale == "none" or not self.form.block else room + 64
        how = ffi.new("bsm_quantize_options *", self.options[0])
        how.tensor_scale = lib.BSM_TENSOR_SCALE_COMPUTED
        check(lib.bsm_quantize(self.context, real_struct(_arrays.view(largest, "x"), "x"), how, one, NULL))
        return float(scale[0])

    # Writing ----------------------------------------------------------------------------------------------------------

    def write(self, progress: Progress) -> None:
        """Puts every item, then gives the files their names."""
        total, done = int(lib.bsm_writer_bytes(self.writer)), 0
        for item in self.items:
            size = item.tensor.nbytes if item.weight is None else self._bytes(item)
            progress(item.tensor.name if item.weight is None else item.weight.name, done, total)
            if item.weight is None:
                check(lib.bsm_writer_put(self.writer, item.number[0], item.tensor._data, item.tensor.nbytes))
            else:
                self._quantize(item, item.weight)
            done += size
        check(lib.bsm_writer_finish(self.writer))
        progress("", total, total)

    @staticmethod
    def _bytes(item: _Item) -> int:
        count = ffi.new("int64_t *")
        check(lib.bsm_matrix_data_bytes(item.matrix, count))
        return int(count[0])

    def _quantize(self, item: _Item, weight: Weight) -> None:
        count = ffi.new("int64_t *")
        check(lib.bsm_matrix_scale_bytes(item.matrix, count))
        codes, scales = np.empty(self._bytes(item), np.uint8), np.empty(int(count[0]), np.uint8)
        m, how = ffi.new("bsm_matrix *", item.matrix[0]), ffi.new("bsm_quantize_options *", self.options[0])
        m.data = ffi.cast("void *", _arrays.numpy_pointer(codes))
        m.scales = ffi.cast("void *", _arrays.numpy_pointer(scales)) if len(scales) else NULL
        if m.packing == lib.BSM_PACKING_GGUF:
            m.scales = m.data
        scale = ffi.new("float *", item.scale or 1.0)
        if self.has_tensor_scale:
            m.tensor_scale = scale
            how.tensor_scale = lib.BSM_TENSOR_SCALE_GIVEN if item.scale > 0 else lib.BSM_TENSOR_SCALE_COMPUTED
        stats = ffi.new("bsm_quantize_stats *")
        stats.struct_size = ffi.sizeof("bsm_quantize_stats")
        numbers = item.numbers()
        check(lib.bsm_quantize(self.context, real_struct(_arrays.view(numbers, "x"), "x", item.expert), how, m, stats))
        check(lib.bsm_writer_put_weight(self.writer, item.number[0], m, NULL))
        self.snr_db[weight.name] = float(stats.snr_db)

    def report(self) -> Report:
        """What was written."""
        return Report(os.fsdecode(ffi.string(lib.bsm_writer_path(self.writer))), self.bytes_before,
                      int(lib.bsm_writer_bytes(self.writer)), self.snr_db, self.left,
                      list(_texts(lib.bsm_writer_copied, self.writer)),
                      list(_texts(lib.bsm_writer_not_copied, self.writer)),
                      list(_texts(lib.bsm_writer_note, self.writer)))


def _texts(function: Any, writer: Any) -> Iterator[str]:
    index = 0
    while (found := text(function(writer, index))) is not None:
        yield found
        index += 1


def _convention(name: str | None, destination: str, preset: str | None) -> int:
    gguf = destination.endswith(".gguf")
    if name is None:
        name = "gguf" if gguf else "compressed_tensors" if preset == "compressed_tensors" else "modelopt"
    number: int = lib.bsm_convention_from_name(name.encode()) if isinstance(name, str) else -1
    if number < 0 or number == lib.BSM_CONVENTION_NONE:
        names = (text(lib.bsm_convention_name(i)) for i in range(1, lib.BSM_CONVENTION_COUNT))
        raise InvalidError(f"convention={name!r} is not known: use one of {', '.join(filter(None, names))}")
    if (number == lib.BSM_CONVENTION_GGUF) != gguf:
        wanted = "X.gguf" if number == lib.BSM_CONVENTION_GGUF else "X.safetensors, or a folder"
        raise InvalidError(f"destination={destination!r}: convention {name} goes with an output called {wanted}")
    return number


def _matches(patterns: str, name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split(",") if pattern)


def _grouped(items: list[_Item], rules: str, alone: bool) -> Iterator[list[_Item]]:
    """Items of one rule whose names are the same in front of its members and whose columns are as many; with `alone`
    also each item that is in no group, by itself."""
    found: dict[tuple[Any, ...], list[_Item]] = {}
    for item in items:
        assert item.weight is not None
        found.setdefault(_group_of(item.weight.name, rules) + (item.columns,), []).append(item)
    for key, members in found.items():
        if key[0] and len(members) > 1:
            yield members
        elif alone:
            yield from ([item] for item in members)


def _group_of(name: str, rules: str) -> tuple[str, str]:
    """The first rule with a member that the name ends with, at a dot, and what is in front; or two empty texts."""
    for rule in rules.split(","):
        for member in rule.split("+"):
            front = name[:len(name) - len(member)]
            if member and name.endswith(member) and (not front or front.endswith(".")):
                return rule, front
    return "", ""


def _largest(numbers: Any) -> Any:
    """The largest finite magnitude, as an array (1, 1) of the same type.  Codes of floating-point numbers without their
    sign are ordered as the numbers are."""
    bits: Any
    bits, infinity = {"float32": (np.uint32, 0x7f800000), "bfloat16": (np.uint16, 0x7f80),
                      "float16": (np.uint16, 0x7c00)}[numbers.dtype.name]
    codes, most = numbers.reshape(-1).view(bits), 0
    for start in range(0, codes.size, _CHUNK):
        part = codes[start:start + _CHUNK] & bits(np.iinfo(bits).max >> 1)
        most = max(most, int(part[part < infinity].max(initial=0)))
    return np.full((1, 1), most, bits).view(numbers.dtype)


def _shortened(scale: float) -> float:
    """The next bf16 number that is not smaller."""
    bits = int(np.float32(scale).view(np.uint32)) + 0xffff & 0xffff0000
    return float(np.uint32(bits).view(np.float32))


class _Bar:
    """A progress bar of tqdm, or nothing where that is not installed."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.make: Any = None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self.make = tqdm

    def __call__(self, name: str, done: int, total: int) -> None:
        if self.bar is None and self.make is not None:
            self.bar = self.make(total=total, unit="B", unit_scale=True, unit_divisor=1024)
        if self.bar is not None:
            self.bar.set_postfix_str(name, refresh=False)
            self.bar.update(done - self.bar.n)

    def end(self) -> None:
        """Leaves the bar as it is."""
        if self.bar is not None:
            self.bar.close()


def quantize_checkpoint(source: str | os.PathLike[str], destination: str | os.PathLike[str], format: str, *,
                        convention: str | None = None, recipe: str | None = None, preset: str | None = None,
                        include: str | None = None, exclude: str | None = None,
                        filter: Callable[[str], bool] | None = None, share_tensor_scales: str = "default",
                        rounding: str = "nearest_even", seed: int = 0, nonfinite: str = "propagate",
                        progress: bool | Progress = True) -> Report:
    """Quantizes the weights of a checkpoint and writes a new one, complete or not at all.  All other tensors are passed
    on; into a folder go config.json in the convention's words and the model's other files.

    source        as open() takes it; destination   a folder, X.safetensors or X.gguf
    format        "nvfp4", "mxfp4", "mxfp8_e4m3" ... : what the convention has
    convention    whose names and types: "modelopt" (default), "compressed_tensors", "gpt_oss", "gguf" (default of
                  X.gguf)
    recipe, preset, rounding, seed, nonfinite   as in quantize(); mxfp4 without recipe and preset: "mse"
    include, exclude   shell patterns of weights' names (without ".weight"), commas between them; None: all matrices but
                  embeddings, heads and routers (gpt-oss: experts)
    filter        a function of a weight's name that says whether to quantize it, after the patterns
    share_tensor_scales   weights that get one tensor scale, since programs that fuse them keep one: "default", "none",
                  or endings of names, as "q_proj+k_proj+v_proj,gate_proj+up_proj"
    progress      True: a bar of tqdm, where that is installed; or a function of (name, bytes done, bytes in all)

    Memory is that of the largest weight.  The bytes are those that the command `blockscale quantize` writes.
    InvalidError, UnsupportedError (a format that the convention does not have), FileError."""
    form = format_of(format)
    if recipe is None and preset is None and form.name in ("mxfp4", "mxfp4_block16"):
        recipe = "mse"
    options = _options(recipe, rounding, seed, nonfinite, False, True, 0, preset, None, 0)
    groups = {"default": USUAL_GROUPS, "none": ""}.get(share_tensor_scales, share_tensor_scales)
    for rule in groups.split(",") if groups else []:
        if len(rule.split("+")) < 2 or "" in rule.split("+"):
            raise InvalidError(f"share_tensor_scales={share_tensor_scales!r}: {rule!r} is no group: names with + "
                               "between them are wanted, and commas between groups")

    def chooses(name: str, expert: bool) -> bool:
        included = _matches(include if include is not None else "*experts*" if expert else "*", name)
        excluded = _matches(exclude if exclude is not None else USUAL_EXCLUDE, name)
        return included and not excluded and (filter is None or filter(name))

    job = _Job(os.fspath(source), os.fspath(destination), form, convention, options, preset, chooses, groups)
    bar = _Bar() if progress is True else None
    try:
        job.choose()
        check(lib.bsm_writer_begin(job.writer))
        job.share_scales()
        job.write(progress if callable(progress) else bar or (lambda name, done, total: None))
        return job.report()
    finally:
        if bar is not None:
            bar.end()
        job.end()

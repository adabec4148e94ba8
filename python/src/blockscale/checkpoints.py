"""Checkpoints: the tensors of .safetensors and GGUF files, and the weights among them, over the mapped files.

    with blockscale.open("model") as checkpoint:        # a folder, a file, or an index of shards
        for name, weight in checkpoint.items():
            print(name, weight.format, weight.shape, weight.convention)
        y = blockscale.matmul(x, checkpoint["model.layers.0.mlp.down_proj"].matrix)

Nothing is copied: arrays lie in the mapping, are read-only, and keep the files open as long as one of them is there."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from . import _arrays, _context
from ._errors import InvalidError, check
from ._library import FORMAT_OF_NUMBER, NULL, ffi, lib, text
from .matrix import Matrix, layout_struct, make, packing_number, row_codes

# NumPy's (or ml_dtypes') types of tensors whose numbers are whole bytes; others are shown as bytes.
_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
          "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
          "F8_E5M2FNUZ": "float8_e5m2fnuz", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
          "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "C64": "complex64"}
_HALVES = {"gate": lib.BSM_WEIGHT_GATE, "up": lib.BSM_WEIGHT_UP}


class _File:
    """An open checkpoint of the C library, closed when nothing refers to it any more."""

    __slots__ = ("handle", "__weakref__")

    def __init__(self, path: str) -> None:
        made = ffi.new("bsm_checkpoint **")
        check(lib.bsm_checkpoint_open(_context.context(_arrays.CPU), os.fsencode(path), made))
        self.handle = ffi.gc(made[0], lib.bsm_checkpoint_close)


class _Mapped:
    """Bytes of an open checkpoint for NumPy, whose arrays keep it, and it the file."""

    __slots__ = ("__array_interface__", "_file")

    def __init__(self, file: _File, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
        self._file = file
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "data": (address, True), "shape": shape,
                                    "strides": strides}


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def _array(file: _File, pointer: Any, shape: tuple[int, ...], dtype: str,
           strides: tuple[int, ...] | None = None) -> Any:
    """A read-only NumPy array over mapped memory.  strides count bytes; None: no gaps."""
    kind = np.dtype("complex64") if dtype == "complex64" else _numpy_type(dtype)
    if 0 in shape or pointer == NULL:
        empty = np.empty(shape, kind)
        empty.flags.writeable = False
        return empty
    steps = strides or tuple(step * kind.itemsize for step in _arrays.contiguous_strides(shape))
    if not shape:
        return np.asarray(_Mapped(file, _address(pointer), (kind.itemsize,), None)).view(kind)[0:1].reshape(())
    reach = sum((size - 1) * step for size, step in zip(shape, steps)) + kind.itemsize
    whole = np.asarray(_Mapped(file, _address(pointer), (reach,), None))
    array: Any = np.ndarray(shape, kind, whole, 0, steps)
    return array


def _numpy_type(dtype: str) -> Any:
    if dtype in _arrays.SIZES:
        return _arrays.numpy_dtype(dtype)
    import ml_dtypes
    return np.dtype(getattr(ml_dtypes, dtype))


class Tensor:
    """One tensor of a checkpoint as it is stored.

    name     of the tensor; type  the file's own word ("BF16", "F8_E4M3", "U8", GGUF: "Q8_0" ...)
    shape    in numbers, the last index running fastest
    nbytes   of the file; file  the path of the file that it lies in"""

    __slots__ = ("name", "type", "shape", "nbytes", "file", "_data", "_file")

    def __init__(self, file: _File, index: int) -> None:
        c = ffi.new("bsm_tensor *")
        c.struct_size = ffi.sizeof("bsm_tensor")
        check(lib.bsm_checkpoint_tensor(file.handle, index, c))
        self._file, self._data = file, c.data
        self.name = text(c.name) or ""
        self.type = text(lib.bsm_tensor_type_name(c.type)) or text(lib.bsm_gguf_type_name(c.gguf_type)) or "?"
        self.shape: tuple[int, ...] = tuple(c.shape[i] for i in range(c.rank))
        self.nbytes: int = c.bytes
        self.file = os.fsdecode(ffi.string(lib.bsm_checkpoint_file_path(file.handle, c.file)))

    @property
    def array(self) -> Any:
        """A read-only NumPy array over the mapped file: of the tensor's shape, with the types of ml_dtypes where NumPy
        has none; of types whose numbers are no whole bytes (F4, F6, GGUF's blocks) all bytes, uint8 of (nbytes,)."""
        dtype = _TYPES.get(self.type)
        if dtype is None:
            return _array(self._file, self._data, (self.nbytes,), "uint8")
        return _array(self._file, self._data, self.shape, dtype)

    def __repr__(self) -> str:
        return f"<blockscale.Tensor {self.name} {self.type} {' x '.join(map(str, self.shape))}>"


class Weight:
    """One matrix (or batch of them, such as experts) of a checkpoint.

    name         as the checkpoint's convention has it ("model.layers.0.mlp.down_proj")
    convention   whose names and layout it has: "plain", "gpt_oss", "modelopt", "compressed_tensors", "deepseek",
                 "gguf", "torchao"
    format       of its codes: "nvfp4", "mxfp4", "bf16" ...
    shape        (rows, columns) or (batch, rows, columns): rows are outputs, blocks run along the columns
    tile_rows, tile_columns   above 0 where fp32 scales belong to tiles of that size: then there is no matrix, but
                 tile(), tile_scales and dequantize()
    gate_up_interleaved       even rows are gates and odd rows ups (gpt-oss): part("gate"), part("up"), or
                 matmul(..., gate="interleaved") with the whole
    tensors      names of the tensors it is made of: codes, scales, tensor_scale, input_scale, where there are such"""

    __slots__ = ("name", "convention", "format", "shape", "tile_rows", "tile_columns", "gate_up_interleaved", "tensors",
                 "_c", "_file", "_matrix")

    def __init__(self, file: _File, c: Any) -> None:
        self._file, self._c = file, c
        self._matrix: Matrix | None = None
        self.name: str = ffi.string(c.name, c.name_length).decode("utf-8", "replace")
        self.convention = text(lib.bsm_convention_name(c.convention)) or ""
        self.format = FORMAT_OF_NUMBER[c.matrix.format].name
        self.shape = _shape(c.matrix)
        self.tile_rows: int = c.tile_rows
        self.tile_columns: int = c.tile_columns
        self.gate_up_interleaved = bool(c.gate_up_interleaved)
        parts = {"codes": c.codes, "scales": c.scales, "tensor_scale": c.tensor_scale, "input_scale": c.input_scale}
        self.tensors = {part: Tensor(file, index).name for part, index in parts.items() if index >= 0}

    @property
    def matrix(self) -> Matrix:
        """The whole weight, whose arrays lie in the mapped file.  InvalidError where tiles have scales of their own."""
        if self.tile_rows > 0:
            raise InvalidError(f"{self.name} has fp32 scales of tiles of {self.tile_rows} x {self.tile_columns}, so it "
                               "is no one matrix: use tile(), or quantize dequantize()")
        if self._matrix is None:
            self._matrix = _matrix(self._file, ffi.addressof(self._c, "matrix"))
        return self._matrix

    def part(self, half: str) -> Matrix:
        """The gates ("gate") or the ups ("up") of a weight whose rows interleave: a Matrix of half the rows over the
        same bytes.  UnsupportedError where they do not."""
        if half not in _HALVES:
            raise InvalidError(f'half={half!r} is not known: use "gate" or "up"')
        c = ffi.new("bsm_matrix *")
        check(lib.bsm_weight_part(self._c, _HALVES[half], c))
        return _matrix(self._file, c)

    def tile(self, row: int, column: int, batch: int = 0) -> Matrix:
        """Tile (row, column), counted in tiles, with its own tensor scale; (0, 0) of a weight without tiles is one
        matrix of the batch."""
        c = ffi.new("bsm_matrix *")
        check(lib.bsm_weight_tile(self._c, batch, row, column, c))
        return _matrix(self._file, c)

    @property
    def tile_scales(self) -> Any:
        """fp32 array of (batch, tiles down, tiles across): each multiplies its tile.  None without tiles."""
        c = self._c
        if c.tile_rows <= 0:
            return None
        m = c.matrix
        shape = (max(m.batch, 1), -(-m.rows // c.tile_rows), -(-m.columns // c.tile_columns))
        strides = (4 * c.tile_batch_pitch, 4 * c.tile_row_pitch, 4)
        return _array(self._file, c.tile_scales, shape, "float32", strides)

    def dequantize(self, dtype: Any = "float32") -> Any:
        """The numbers, of the weight's shape, in a new NumPy array: float32, bfloat16, float16 or float64."""
        from .quantization import dequantize
        if self.tile_rows == 0:
            return dequantize(self.matrix, dtype)
        out = np.empty(self.shape, _arrays.numpy_dtype(_arrays.dtype_name(dtype)))
        whole = out.reshape((-1, *self.shape[-2:]))
        high, wide = self.tile_rows, self.tile_columns
        for batch, numbers in enumerate(whole):
            for row in range(0, numbers.shape[0], high):
                for column in range(0, numbers.shape[1], wide):
                    dequantize(self.tile(row // high, column // wide, batch), dtype,
                               out=numbers[row:row + high, column:column + wide])
        return out

    def __repr__(self) -> str:
        tiles = f" of tiles of {self.tile_rows} x {self.tile_columns}" if self.tile_rows else ""
        return (f"<blockscale.Weight {self.name} {self.format}{tiles} {' x '.join(map(str, self.shape))}, "
                f"{self.convention}>")


def _shape(m: Any) -> tuple[int, ...]:
    return (m.batch, m.rows, m.columns) if m.batch > 1 else (m.rows, m.columns)


def _layout_name(layout: Any) -> str:
    name = text(lib.bsm_layout_name(layout.kind)) or ""
    return f"{name}:{layout.tile_rows}x{layout.tile_columns}" if layout.tile_rows else name


def _matrix(file: _File, m: Any) -> Matrix:
    """The Matrix of a bsm_matrix (a pointer to it) whose pointers lie in the mapping."""
    form = FORMAT_OF_NUMBER[m.format]
    packing = text(lib.bsm_packing_name(m.packing)) or ""
    if packing == "default":
        packing = {4: "low_first", 6: "bit_stream"}.get(form.bits, "bytes")
    shape = _shape(m)
    dtype = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "e4m3": "float8_e4m3fn",
             "e5m2": "float8_e5m2"}.get(form.name, "uint8")
    size = _arrays.SIZES[dtype]
    row = row_codes(form, packing, m.columns) * size
    apart = row_codes(form, packing, m.pitch) * size if m.pitch else row
    batch_apart = row_codes(form, packing, m.batch_pitch) * size if m.batch_pitch else apart * m.rows
    steps = (apart, size) if len(shape) == 2 else (batch_apart, apart, size)
    codes = _array(file, m.data, (*shape[:-1], row // size), dtype, steps)
    scales = tensor_scale = None
    if form.block and packing != "gguf":
        scales = _arrays.view(_scales(file, m, shape), "scales")
    if m.tensor_scale != NULL:
        tensor_scale = _arrays.view(_array(file, m.tensor_scale, (1,), "float32"), "tensor_scale")
    layout = _layout_name(m.scale_layout)
    number = packing_number(form, packing)
    return make(form, shape, number, layout, layout_struct(layout), _arrays.view(codes, "codes"), scales, tensor_scale,
                m.tensor_scale_use == lib.BSM_TENSOR_SCALE_DIVIDES)


def _scales(file: _File, m: Any, shape: tuple[int, ...]) -> Any:
    columns = lib.bsm_matrix_scale_columns(m)
    count = ffi.new("int64_t *")
    of_one: tuple[int, ...]
    steps: tuple[int, ...]
    if m.scale_layout.kind == lib.BSM_LAYOUT_LINEAR:
        apart = m.scale_layout.pitch or columns
        of_one, steps = (m.rows, columns), (apart, 1)
    else:
        check(lib.bsm_scale_bytes(ffi.addressof(m, "scale_layout"), m.rows, columns, count))
        apart = 0
        of_one, steps = (int(count[0]),), (1,)
    if len(shape) == 2:
        return _array(file, m.scales, of_one, "uint8", steps)
    batch_apart = m.scale_batch_pitch or (apart * m.rows if apart else of_one[0])
    return _array(file, m.scales, (shape[0], *of_one), "uint8", (batch_apart, *steps))


class Tensors(Mapping[str, Tensor]):
    """All tensors of a checkpoint by their names, in the order of the file."""

    def __init__(self, file: _File) -> None:
        self._file = file

    def __len__(self) -> int:
        count: int = lib.bsm_checkpoint_tensor_count(self._file.handle)
        return count

    def __iter__(self) -> Iterator[str]:
        return (Tensor(self._file, index).name for index in range(len(self)))

    def __getitem__(self, name: str) -> Tensor:
        index = lib.bsm_checkpoint_find(self._file.handle, name.encode()) if isinstance(name, str) else -1
        if index < 0:
            raise KeyError(name)
        return Tensor(self._file, index)


class Checkpoint(Mapping[str, Weight]):
    """An open checkpoint: a mapping of names to its weights, in the order of the file.  Made by open().

    tensors    all tensors, those that are no weights or only parts of one among them
    metadata   texts of the file: safetensors' __metadata__, or GGUF's keys whose value is a string
    kind       "safetensors" or "gguf"; files  their paths

    Listing the weights raises FileError for one whose parts do not fit together; the others can be asked for by name.
    close(), or the end of `with`, drops the checkpoint's own hold on the files; they are unmapped when no array of
    theirs is left.  The files must not be changed while they are open."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._open: _File | None = _File(os.fspath(path))
        self.path = os.fspath(path)

    @property
    def _file(self) -> _File:
        if self._open is None:
            raise InvalidError(f"the checkpoint {self.path} is closed")
        return self._open

    def close(self) -> None:
        """No more weights or tensors can be asked for; arrays that exist stay."""
        self._open = None

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def kind(self) -> str:
        """"safetensors" or "gguf"."""
        return text(lib.bsm_checkpoint_kind_name(lib.bsm_checkpoint_get_kind(self._file.handle))) or ""

    @property
    def files(self) -> list[str]:
        """Paths, in the order of their names."""
        handle = self._file.handle
        paths = [lib.bsm_checkpoint_file_path(handle, i) for i in range(lib.bsm_checkpoint_file_count(handle))]
        return [os.fsdecode(ffi.string(path)) for path in paths]

    @property
    def metadata(self) -> dict[str, str]:
        """Texts by their keys."""
        handle = self._file.handle
        found = {}
        for index in range(lib.bsm_checkpoint_metadata_count(handle)):
            key = lib.bsm_checkpoint_metadata_key(handle, index)
            found[text(key) or ""] = text(lib.bsm_checkpoint_metadata(handle, key)) or ""
        return found

    @property
    def tensors(self) -> Tensors:
        """All tensors by their names."""
        return Tensors(self._file)

    def _weight(self, index: int) -> Weight | None:
        c = ffi.new("bsm_weight *")
        c.struct_size = ffi.sizeof("bsm_weight")
        check(lib.bsm_checkpoint_weight(self._file.handle, index, c))
        return None if c.convention == lib.BSM_CONVENTION_NONE else Weight(self._file, c)

    def __iter__(self) -> Iterator[str]:
        for index in range(len(self.tensors)):
            weight = self._weight(index)
            if weight is not None:
                yield weight.name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> Weight:
        """By the weight's name, or that of its codes.  KeyError if there is none."""
        if not isinstance(name, str):
            raise KeyError(name)
        c = ffi.new("bsm_weight *")
        c.struct_size = ffi.sizeof("bsm_weight")
        status = lib.bsm_checkpoint_find_weight(self._file.handle, name.encode(), c)
        if status == lib.BSM_EINVAL:
            raise KeyError(name)
        check(status)
        return Weight(self._file, c)

    def __repr__(self) -> str:
        state = "closed" if self._open is None else f"{self.kind}, {len(self.tensors)} tensors"
        return f"<blockscale.Checkpoint {self.path}: {state}>"


def open(path: str | os.PathLike[str]) -> Checkpoint:
    """Opens the .safetensors or GGUF file at path, an index of shards (X.json), or a folder with one of them, and maps
    it.

    Everything but the numbers is checked: FileError names what is wrong and where, or that there is no such file;
    UnsupportedError a legal file that is too new."""
    return Checkpoint(path)

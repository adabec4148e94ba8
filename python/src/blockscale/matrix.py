"""Matrix: block-scaled or plain codes in arrays of another library, with the scales that belong to them."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays
from ._arrays import Array, View, where
from ._errors import InvalidError, check, number_of
from ._library import FORMAT_OF_NUMBER, FORMATS, LAYOUTS, MAJORS, PACKINGS, SPARSITIES, Format, ffi, lib, text

_DEFAULT_PACKING = {4: "low_first", 6: "bit_stream", 8: "bytes", 16: "bytes", 32: "bytes"}
_SCALE_TYPES = ("uint8", "int8", "float8_e8m0fnu", "float8_e4m3fn", "int32", "uint32")
_GROUPS = {"2:4": 4, "4:8": 8}                      # columns of which half are kept
_LAYOUT_NAMES = {number: name for name, number in LAYOUTS.items()}


def format_of(name: Any, argument: str = "format") -> Format:
    """The format of a name ("nvfp4"), or of an alias that the library knows ("mxfp8", "bfloat16")."""
    if isinstance(name, Format):
        return name
    if isinstance(name, str):
        found = FORMATS.get(name)
        if found is not None:
            return found
        number = lib.bsm_format_from_name(name.encode())
        if number != lib.BSM_FORMAT_NONE:
            return FORMAT_OF_NUMBER[number]
    raise InvalidError(f"{argument}={name!r} is not known: use one of {', '.join(FORMATS)}")


def layout_struct(name: str) -> Any:
    """A bsm_scale_layout of a text such as "128x4", "linear:64" or "tiles:32x4"."""
    layout = ffi.new("bsm_scale_layout *")
    if not isinstance(name, str):
        raise InvalidError(f"layout={name!r} is no text: use one of {', '.join(LAYOUTS)}")
    check(lib.bsm_scale_layout_parse(name.encode(), layout))
    return layout


def packing_number(form: Format, packing: str | None) -> int:
    """The number of a packing; None is what the format's elements have by default."""
    if packing is None or packing == "default":
        packing = _DEFAULT_PACKING[form.bits]
    if form.bits >= 8 and packing == "bytes":
        return int(lib.BSM_PACKING_DEFAULT)         # 8, 16 and 32 bits have no other one but GGUF's
    return number_of(PACKINGS, packing, "packing")


def row_codes(form: Format, packing: str, columns: int) -> int:
    """How many entries of the array of codes a row takes."""
    if packing == "gguf":
        return -(-columns // 32) * 17 if form.name == "mxfp4" else -(-columns // 64) * 36
    if form.bits == 4 and packing != "bytes":
        return -(-columns // 2)
    if form.bits == 6 and packing == "bit_stream":
        return -(-columns // 4) * 3
    return columns


def _elements_of_codes(form: Format, packing: str, count: int) -> int:
    """Elements in `count` entries of an array of codes: the other way round."""
    if packing == "gguf":
        return count // 17 * 32 if form.name == "mxfp4" else count // 36 * 64
    if form.bits == 4 and packing != "bytes":
        return count * 2
    if form.bits == 6 and packing == "bit_stream":
        return count // 3 * 4
    return count


class Matrix:
    """Codes and scales that are one matrix (or a batch of them) with numbers code * scale * tensor scale.

    Made by quantize(), sparsify(), from_parts() and plain(); it never changes.  Products read it as it lies: blocks run
    along the last axis (columns), which is the axis that a product sums over.

    format        name of the format: "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "mxfp4_block16",
                  "mxint8", "nvfp4", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "bf16", "fp16", "fp32" (formats()
                  describes them)
    shape         (rows, columns) or (batch, rows, columns), in elements
    codes         the array of codes, as packed: uint8 of shape (..., rows, columns / 2) for two 4-bit codes a byte,
                  (..., rows, 3 columns / 4) for 6 bits, (..., rows, columns) for one a byte; numbers themselves for
                  bf16, fp16, fp32.  MN-major: of shape (..., columns, rows), (..., columns, rows / 2) ...
    scales        array of scale codes (bytes; e8m0, nvfp4: ue4m3), None for formats without.  Layout "linear": shape
                  (..., rows, ceil(columns / block)); any other: (bytes,) or (batch, bytes) in the layout's own order
    tensor_scale  fp32 array of one element on the same device, or None
    tensor_scale_divides   False: numbers are multiplied by it; True: divided
    layout, packing        names; device   ("cpu", 0) or ("cuda", number)
    major         "k": the codes of a row lie one behind the other; "mn": those of a column do.  Products read either;
                  whatever else takes a Matrix wants "k"
    sparsity      "none"; "2:4", "4:8": half of the elements are kept, and codes and scales are those of a matrix of
                  half the columns.  Products read these; on the CPU dequantize does, and sparsify() makes them
    metadata      of a sparse one, where they were: uint8 of shape (..., rows, bytes), 4 bits for each group; else None
    """

    __slots__ = ("_c", "_keep", "_format", "codes", "scales", "tensor_scale", "tensor_scale_divides", "layout",
                 "packing", "major", "sparsity", "metadata", "device", "shape", "rows", "columns", "batch", "library",
                 "_stream", "_signature", "__weakref__")

    _c: Any
    _keep: list[object]
    _format: Format
    _stream: int
    _signature: Any
    codes: Array
    scales: Array
    tensor_scale: Array
    tensor_scale_divides: bool
    layout: str
    packing: str
    major: str
    sparsity: str
    metadata: Array
    device: tuple[str, int]
    shape: tuple[int, ...]
    rows: int
    columns: int
    batch: int
    library: str

    def __init__(self) -> None:
        raise TypeError("Matrix is made by quantize(), sparsify(), from_parts() or plain()")

    @property
    def format(self) -> str:
        """Name of the format."""
        return self._format.name

    def signature(self) -> Any:
        """Equal for matrices that differ in their addresses alone; None for libraries whose streams the arrays name,
        and for sparse ones."""
        if self._signature is None and self.sparsity == "none" and self.library in ("numpy", "torch", "cupy"):
            c = ffi.new("bsm_matrix *", self._c[0])
            aligned = [int(ffi.cast("uintptr_t", pointer)) & 15 for pointer in (c.data, c.scales)]
            c.data = c.scales = c.tensor_scale = ffi.NULL
            self._signature = (bytes(ffi.buffer(c)), self.tensor_scale is None, self.library, self.device, *aligned)
        return self._signature

    @property
    def ndim(self) -> int:
        """2, or 3 for a batch."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales, metadata and tensor scale, padding included."""
        count, total = ffi.new("int64_t *"), 0 if self.tensor_scale is None else 4
        for bytes_of in (lib.bsm_matrix_data_bytes, lib.bsm_matrix_scale_bytes, lib.bsm_matrix_metadata_bytes):
            check(bytes_of(self._c, count))
            total += int(count[0])
        return total

    def dequantize(self, dtype: Any = "float32", out: Array = None) -> Array:
        """The numbers: see blockscale.dequantize."""
        from .quantization import dequantize
        return dequantize(self, dtype, out)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle, copy.deepcopy and torch.save: the arrays and what says how they lie."""
        return _again, (self.codes, self.scales, self.format, self.layout, self.tensor_scale, self.tensor_scale_divides,
                        self.packing, self.shape, self.major, self.sparsity, self.metadata)

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.shape))
        place = "" if self.device[0] == "cpu" else f", {where(self.device)}"
        scales = "" if self.scales is None else f", scales {self.layout}"
        major = "" if self.major == "k" else ", MN-major"
        sparse = "" if self.sparsity == "none" else f", sparse {self.sparsity}"
        return f"<blockscale.Matrix {self.format} {size}, {self.packing}{major}{sparse}{scales}, {self.library}{place}>"


def make(form: Format, shape: tuple[int, ...], packing: int, layout: str, layout_c: Any, codes: View,
         scales: View | None, tensor_scale: View | None, divides: bool, major: str = "k", sparsity: str = "none",
         metadata: View | None = None) -> Matrix:
    """A Matrix over arrays; what the library's own check refuses is raised with its sentence.  codes: as they are
    stored, or one to an entry with columns that run without gaps, which are MN-major."""
    it = object.__new__(Matrix)
    keep: list[object] = [codes.owner]
    sparse = None
    if sparsity == "none":
        c = ffi.new("bsm_matrix *")
        c.struct_size = ffi.sizeof("bsm_matrix")
    else:
        sparse = ffi.new("bsm_sparse_matrix *")
        sparse.sparsity = number_of(SPARSITIES, sparsity, "sparsity")
        c = ffi.addressof(sparse, "matrix")
        c.struct_size = ffi.sizeof("bsm_sparse_matrix")
        keep.append(sparse)
    c.format, c.packing = form.number, packing
    turned = major == "k" and row_codes(form, text(lib.bsm_packing_name(packing)) or "", 4) == 4 and _is_turned(codes)
    if turned:
        major = "mn"
    c.major = number_of(MAJORS, major, "major")
    c.rows, c.columns = shape[-2], shape[-1]
    c.batch = shape[0] if len(shape) == 3 else 1
    c.scale_layout = layout_c[0]
    it._c, it._format, it.shape, it.rows, it.columns = c, form, shape, shape[-2], shape[-1]
    it.batch = shape[0] if len(shape) == 3 else 1
    it.layout, it.device, it.library = layout, codes.device, codes.library
    it._stream, it._signature = codes.stream, None
    it.packing = text(lib.bsm_packing_name(packing)) or ""
    if it.packing == "default":
        it.packing = "bytes"
    it.tensor_scale_divides, it.major = divides, major
    it.sparsity = sparsity
    _set_codes(c, it, _exchanged(codes) if turned else codes)
    it.codes = codes.owner[0] if isinstance(codes.owner, tuple) else codes.owner
    if turned:
        it.codes = it.codes.swapaxes(-1, -2)
    it.scales = it.tensor_scale = it.metadata = None
    if metadata is not None:
        _set_metadata(sparse, metadata, it)
        keep.append(metadata.owner)
        it.metadata = metadata.owner[0] if isinstance(metadata.owner, tuple) else metadata.owner
    if it.packing == "gguf":
        c.scales, it.scales = c.data, it.codes
    elif scales is not None:
        _set_scales(c, scales, it)
        keep.append(scales.owner)
        it.scales = scales.owner[0] if isinstance(scales.owner, tuple) else scales.owner
    if tensor_scale is not None:
        _same_device(tensor_scale, it, "tensor_scale")
        if tensor_scale.dtype != "float32" or _arrays.elements(tensor_scale.shape) != 1:
            raise InvalidError(f"tensor_scale has the type {tensor_scale.dtype} and the shape {tensor_scale.shape}: it "
                               "is one float32 number")
        c.tensor_scale = ffi.cast("float *", tensor_scale.pointer)
        c.tensor_scale_use = lib.BSM_TENSOR_SCALE_DIVIDES if divides else lib.BSM_TENSOR_SCALE_MULTIPLIES
        keep.append(tensor_scale.owner)
        it.tensor_scale = tensor_scale.owner[0] if isinstance(tensor_scale.owner, tuple) else tensor_scale.owner
    it._keep = keep
    if it.batch == 0:                    # the C library reads 0 as 1; a product with an empty batch writes nothing
        raise InvalidError(f"shape {shape} has a batch of 0 matrices: at least 1")
    check(lib.bsm_matrix_check(c))
    return it


def _same_device(view: View, it: Matrix, name: str) -> None:
    if view.device != it.device:
        raise InvalidError(f"{name} lies on {where(view.device)}, the codes on {where(it.device)}")


def _is_turned(codes: View) -> bool:
    """Whether columns run without gaps, and rows do not."""
    shape, strides = codes.shape, codes.strides
    if len(shape) < 2 or 0 in shape or shape[-1] == 1 or strides[-1] == 1 or strides[-1] < shape[-2]:
        return False
    return strides[-2] == 1 or shape[-2] == 1


def _exchanged(codes: View) -> View:
    """The view with its last two axes exchanged."""
    shape, strides = ((*sizes[:-2], sizes[-1], sizes[-2]) for sizes in (codes.shape, codes.strides))
    return View(codes.pointer, shape, strides, codes.dtype, codes.device, codes.owner, codes.library, codes.stream)


def _set_codes(c: Any, it: Matrix, codes: View) -> None:
    """codes: as they are stored."""
    form, packing = it._format, it.packing
    shape, strides = codes.shape, codes.strides
    k_major = c.major == lib.BSM_MAJOR_K
    columns = c.columns if it.sparsity == "none" else c.columns // 2
    one, lines, width = ("row", c.rows, columns) if k_major else ("column", columns, c.rows)
    per_line = row_codes(form, packing, width)
    want = (lines, per_line) if len(shape) == 2 else (c.batch, lines, per_line)
    if tuple(shape) != want:
        raise InvalidError(f"codes has the shape {tuple(shape)}: {form.name} of {c.rows} x {c.columns} packed as "
                           f"{packing}{'' if k_major else ', MN-major,'}"
                           f"{'' if it.sparsity == 'none' else ', sparse ' + it.sparsity + ','} needs {want}")
    if 0 not in shape and shape[-1] > 1 and strides[-1] != 1:
        raise InvalidError(f"codes has strides {tuple(strides)}: the elements of a {one} lie one behind the other (the "
                           "last stride is 1)")
    c.data = ffi.cast("void *", codes.pointer)
    if lines > 1 and 0 not in shape:
        c.pitch = _pitch(form, packing, strides[-2], one)
    if c.batch > 1 and 0 not in shape:
        c.batch_pitch = _pitch(form, packing, strides[0], "batch")


def _pitch(form: Format, packing: str, stride: int, what: str) -> int:
    elements = _elements_of_codes(form, packing, stride)
    if stride <= 0 or row_codes(form, packing, elements) != stride:
        raise InvalidError(f"codes has a {what} stride of {stride}: a {what} begins on a whole byte or block, behind "
                           "the one before")
    return elements


def _set_metadata(sparse: Any, metadata: View, it: Matrix) -> None:
    _same_device(metadata, it, "metadata")
    want = metadata_shape(it.shape, it.sparsity)
    if metadata.dtype != "uint8" or tuple(metadata.shape) != want:
        raise InvalidError(f"metadata has the type {metadata.dtype} and the shape {tuple(metadata.shape)}: those of "
                           f"{it.rows} x {it.columns}, sparse {it.sparsity}, are uint8 of the shape {want}")
    strides = metadata.strides
    if 0 in want:
        return
    if (want[-1] > 1 and strides[-1] != 1) or (it.rows > 1 and strides[-2] < want[-1]) or (
            it.batch > 1 and strides[0] <= 0):
        raise InvalidError(f"metadata has strides {tuple(strides)}: the bytes of a row lie one behind the other (the "
                           "last stride is 1), and rows and matrices behind the ones before")
    sparse.metadata = ffi.cast("void *", metadata.pointer)
    sparse.metadata_pitch = strides[-2] if it.rows > 1 else 0
    sparse.metadata_batch_pitch = strides[0] if it.batch > 1 else 0


def metadata_shape(shape: tuple[int, ...], sparsity: str) -> tuple[int, ...]:
    """The shape of the array of metadata: half a byte for each group."""
    return (*shape[:-1], -(-(shape[-1] // _GROUPS[sparsity]) // 2))


def _set_strided_scales(c: Any, scales: View, it: Matrix) -> bool:
    """Linear scales: refuses rows of another length, and takes strided ones, then True."""
    columns, size = lib.bsm_matrix_scale_columns(c), scales.itemsize
    if len(scales.shape) > 1 and size == 1 and 0 not in scales.shape and scales.shape[-1] != columns:
        of_batch = len(scales.shape) == 2 and scales.shape[0] == c.batch and scales.shape[1] >= c.rows * columns
        if not of_batch:                 # as bytes one behind the other they would be scales of other blocks
            raise InvalidError(f"scales has the shape {tuple(scales.shape)}: linear scales of {c.rows} x {c.columns} "
                               f"{it._format.name} have {columns} a row")
    if scales.contiguous():
        return False
    want = (c.rows, columns) if len(scales.shape) == 2 else (c.batch, c.rows, columns)
    if tuple(scales.shape) != want or size != 1 or (columns > 1 and scales.strides[-1] != 1):
        raise InvalidError(f"scales has the shape {tuple(scales.shape)} and strides {tuple(scales.strides)}: "
                           f"strided linear scales have the shape {want} and a last stride of 1")
    c.scale_layout.pitch = max(scales.strides[-2], 0)
    if c.batch > 1 and 0 not in scales.shape:
        c.scale_batch_pitch = scales.strides[0]
    return True


def _set_scales(c: Any, scales: View, it: Matrix) -> None:
    _same_device(scales, it, "scales")
    if scales.dtype not in _SCALE_TYPES:
        raise InvalidError(f"scales has the type {scales.dtype}: use one of {', '.join(_SCALE_TYPES)}")
    c.scales = ffi.cast("void *", scales.pointer)
    size = scales.itemsize
    linear = c.scale_layout.kind == lib.BSM_LAYOUT_LINEAR and c.scale_layout.pitch == 0
    if linear and _set_strided_scales(c, scales, it):
        return
    inner = View(0, scales.shape[1:], scales.strides[1:], scales.dtype, scales.device, None, "")
    if c.batch > 1 and scales.shape[:1] == (c.batch,) and inner.contiguous():
        if 0 not in scales.shape:
            c.scale_batch_pitch = scales.strides[0] * size
        have = _arrays.elements(inner.shape) * size
        c.batch, batch = 1, c.batch
        needed = _scale_bytes(c)
        c.batch = batch
    elif scales.contiguous():
        have, needed = _arrays.elements(scales.shape) * size, _scale_bytes(c)
    else:
        raise InvalidError(f"scales has the shape {tuple(scales.shape)} and strides {tuple(scales.strides)}: scales of "
                           f"the layout {it.layout} lie without gaps")
    if have < needed:
        raise InvalidError(f"scales has {have} bytes: {it.layout} scales of {c.rows} x {c.columns} "
                           f"{it._format.name} need {needed}")


def _scale_bytes(c: Any) -> int:
    count = ffi.new("int64_t *")
    check(lib.bsm_matrix_scale_bytes(c, count))
    return int(count[0])


def scale_shape(form: Format, layout_c: Any, layout: str, rows: int, columns: int) -> tuple[int, ...]:
    """The shape of the array of scales of one matrix."""
    blocks = -(-columns // form.block)
    if layout == "linear":
        return (rows, blocks)
    count = ffi.new("int64_t *")
    check(lib.bsm_scale_bytes(layout_c, rows, blocks, count))
    return (int(count[0]),)


def allocate(form: Format, shape: tuple[int, ...], layout: str, packing: str | None, tensor_scale: View | bool,
             divides: bool, library: str, device: tuple[str, int], stream: int = 0, sparsity: str = "none") -> Matrix:
    """A Matrix with new arrays whose bytes are not set.  tensor_scale True makes one, to be written."""
    stored = shape[-1] if sparsity == "none" else shape[-1] // 2
    number = packing_number(form, packing)
    name = text(lib.bsm_packing_name(number)) or ""
    if name == "gguf":
        layout = "gguf_mxfp4" if form.name == "mxfp4" else "gguf_nvfp4"
    layout_c = layout_struct(layout)
    lead = shape[:-2]
    dtype = "uint8"
    if form.bits > 8:
        dtype = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[form.name]
    codes_shape = (*lead, shape[-2], row_codes(form, name, stored))
    if form.bits == 6 and name == "bit_stream" and stored % 4:        # rows end in bytes that belong to no code
        codes = _arrays.zeros(library, device, codes_shape, stream)
    else:
        codes = _arrays.empty(library, device, codes_shape, dtype, stream)
    scales = None
    if form.block and name != "gguf":
        of_one = scale_shape(form, layout_c, layout, shape[-2], stored)
        if layout_c.pitch:               # bytes between the rows are left alone
            made = _arrays.zeros(library, device, (*lead, *of_one), stream)
        else:
            made = _arrays.empty(library, device, (*lead, *of_one), "uint8", stream)
        scales = _arrays.view(made, "scales")
    scale: View | None
    if isinstance(tensor_scale, View):
        scale = tensor_scale
    else:
        scale = None
        if tensor_scale:
            scale = _arrays.view(_arrays.empty(library, device, (1,), "float32", stream), "tensor_scale")
    metadata = None
    if sparsity != "none":
        number_of(SPARSITIES, sparsity, "sparsity")
        made = _arrays.empty(library, device, metadata_shape(shape, sparsity), "uint8", stream)
        metadata = _arrays.view(made, "metadata")
    return make(form, shape, number, layout, layout_c, _arrays.view(codes, "codes"), scales, scale, divides, "k",
                sparsity, metadata)


_PACKING_OF_TYPE = {"float4_e2m1fn_x2": "low_first", "float4_e2m1fn": "bytes", "float6_e2m3fn": "bytes",
                    "float6_e3m2fn": "bytes"}


def from_parts(codes: Array, scales: Array = None, format: str = "", *, layout: str = "linear",
               tensor_scale: Array | float | None = None, tensor_scale_divides: bool = False,
               packing: str | None = None, shape: tuple[int, ...] | None = None, major: str = "k",
               sparsity: str = "none", metadata: Array = None) -> Matrix:
    """A Matrix over codes and scales that lie in arrays already.  Nothing is copied; the Matrix keeps the arrays alive.

    codes         (rows, entries) or (batch, rows, entries), the last stride 1, any row and batch stride that packing
                  allows.  Bytes of any type (uint8, float8_e4m3fn, float4_e2m1fn_x2 ...), or bf16, fp16, fp32 numbers.
                  Element types of ml_dtypes with one code a byte (float4_e2m1fn, float6_*) say their packing.
    scales        bytes (uint8, float8_e8m0fnu, float8_e4m3fn, int32 words of DeepGEMM) in `layout`, as Matrix.scales.
    format        its name: "nvfp4", "mxfp4" ...; formats() lists them
    layout        "linear", "128x4", "8x4", "tiles:ROWSxCOLUMNS", "cdna4_16", "cdna4_32", "aiter", "deepgemm",
                  "linear:PITCH" (bytes between rows) ...
    tensor_scale  one fp32 number: a float, or an array of one element on the codes' device; tensor_scale_divides
                  says that numbers are divided by it rather than multiplied.
    packing       "low_first" (default of 4 bits: element 2i in the low bits), "high_first", "bit_stream" (default of 6
                  bits), "bytes", "gguf" (codes hold the scales, too).
    shape         needed when the columns (MN-major: the rows) are odd or do not fill the last byte; in elements.
    major         "mn": codes holds columns as rows, (columns, entries) or (batch, columns, entries): weights stored K x
                  N, two 4-bit codes of a byte being neighbours along N.  Scales stay (rows, blocks).  An array with a
                  code an entry whose columns run without gaps (codes.T) is taken for MN-major by itself.
    sparsity      "2:4": of every 4 columns 2 are kept; "4:8": of every 8 two pairs 2i, 2i + 1 (4-bit elements).  codes
                  and scales are those of the kept ones, half the columns, and shape counts all.
    metadata      uint8 (..., rows, ceil(groups / 2)): the places of a group's kept ones, the lower in bits 0-1, the
                  higher in bits 2-3, the even group in the low half.  Whoever reads the Matrix checks them.
    InvalidError names what does not fit."""
    form = format_of(format)
    number_of(SPARSITIES, sparsity, "sparsity")
    if (sparsity == "none") != (metadata is None):
        raise InvalidError(f"metadata is {'None' if metadata is None else 'given'} and sparsity={sparsity!r}: they say "
                           "which elements of a sparse matrix are kept")
    of_codes = _arrays.view(codes, "codes")
    if packing is None:
        packing = _PACKING_OF_TYPE.get(of_codes.dtype)
    number = packing_number(form, packing)
    name = text(lib.bsm_packing_name(number)) or ""
    _check_code_type(form, of_codes)
    if len(of_codes.shape) not in (2, 3):
        raise InvalidError(f"codes has {len(of_codes.shape)} dimensions: 2, or 3 for a batch")
    number_of(MAJORS, major, "major")
    if shape is None:
        width = _elements_of_codes(form, name, of_codes.shape[-1]) * (1 if sparsity == "none" else 2)
        lead, lines = of_codes.shape[:-2], of_codes.shape[-2]
        shape = (*lead, lines, width) if major == "k" else (*lead, width, lines)
    if len(shape) != len(of_codes.shape):
        raise InvalidError(f"shape={shape} has {len(shape)} dimensions, codes has {len(of_codes.shape)}")
    if name == "gguf":
        layout = "gguf_mxfp4" if form.name == "mxfp4" else "gguf_nvfp4"
    if form.block and name != "gguf" and scales is None:
        raise InvalidError(f"scales is None: {form.name} has one for every {form.block} elements of a row")
    if not form.block and scales is not None:
        raise InvalidError(f"scales is given: {form.name} has none")
    of_scales = None if scales is None or name == "gguf" else _arrays.view(scales, "scales")
    of_tensor = tensor_scale_view(tensor_scale, of_codes.library, of_codes.device, of_codes.stream)
    return make(form, tuple(shape), number, layout, layout_struct(layout), of_codes, of_scales, of_tensor,
                tensor_scale_divides, major, sparsity, None if metadata is None else _arrays.view(metadata, "metadata"))


def _again(codes: Array, scales: Array, form: str, layout: str, tensor_scale: Array, divides: bool, packing: str,
           shape: tuple[int, ...], major: str, sparsity: str = "none", metadata: Array = None) -> Matrix:
    return from_parts(codes, scales, form, layout=layout, tensor_scale=tensor_scale, tensor_scale_divides=divides,
                      packing=packing, shape=shape, major=major, sparsity=sparsity, metadata=metadata)


def _check_code_type(form: Format, codes: View) -> None:
    if form.bits > 8:
        fits = _arrays.FORMAT_OF.get(codes.dtype) == form.name
    else:
        fits = codes.itemsize == 1 and codes.dtype != "bool"
    if not fits:
        raise InvalidError(f"codes has the type {codes.dtype}, which holds no codes of {form.name}")


def tensor_scale_view(given: Any, library: str, device: tuple[str, int], stream: int = 0) -> View | None:
    """A tensor scale as an array: a number becomes a new one."""
    if given is None:
        return None
    if isinstance(given, (int, float, np.number)):
        given = _arrays.fp32_scalar(library, device, float(given), stream)
    return _arrays.view(given, "tensor_scale")


def plain(x: Array) -> Matrix:
    """A Matrix over an array of bf16, fp16, fp32, float8_e4m3fn or float8_e5m2 numbers, without any scale and without
    a copy.  x: (rows, columns) or (batch, rows, columns); rows run without gaps, or columns do (x.T: MN-major).
    matmul() does this with arrays by itself."""
    return plain_of_view(_arrays.view(x, "x"), "x")


def plain_of_view(x: View, name: str, operand: bool = True) -> Matrix:
    """plain(), for an array that was looked at already.  operand: it may be MN-major."""
    form = FORMATS.get(_arrays.FORMAT_OF.get(x.dtype, ""))
    if form is None:
        raise InvalidError(f"{name} has the type {x.dtype}: numbers without scales are one of "
                           f"{', '.join(_arrays.FORMAT_OF)}; codes with scales are made a Matrix by from_parts()")
    if len(x.shape) not in (2, 3):
        raise InvalidError(f"{name} has {len(x.shape)} dimensions: (rows, columns) or (batch, rows, columns)")
    if 0 not in x.shape and x.shape[-1] > 1 and x.strides[-1] != 1 and not (operand and _is_turned(x)):
        raise InvalidError(f"{name} has strides {tuple(x.strides)}: the numbers of a row lie one behind the other (the "
                           "last stride is 1); nothing is copied here")
    return make(form, x.shape, 0, "linear", layout_struct("linear"), x, None, None, False)

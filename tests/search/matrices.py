"""Matrices of codes and scales: what they hold (Content), how they are stored (a dictionary), and where they lie in an
image (Placed).

A storage is a dictionary, all of whose keys may be missing:
    major ("mn": columns lie as rows do else), packing, pitch (units of the packing between the end of a row and the
    next), aligned (the pitch is a multiple of 16 elements), misalign (bytes)
    layout (kind, tile_rows, tile_columns, gap: bytes between rows of a linear one), scale_misalign
    sparsity ("2:4", "4:8": what is said of columns here is said of those kept), metadata_gap (bytes between rows)
    batch_gap (units), interleave (matrices of a batch row by row), scale_batch_gap (bytes)"""
import ctypes

import numpy as np

import layouts
from formats import FORMATS, Packing
from library import Matrix, ScaleLayout, SparseMatrix, new

ALIGNED = 16


class Content:
    """codes (batch, rows, columns), scales (batch, rows, scale columns) or None, and a tensor scale or None."""

    def __init__(self, format_name, codes, scales=None, tensor_scale=None, divides=False):
        self.format, self.codes, self.scales = FORMATS[format_name], codes, scales
        self.tensor_scale, self.divides = tensor_scale, divides
        self.kept = self.metadata = None               # of a sparse one (sparse.py): both of half the columns
        self._values = None

    @property
    def values(self):
        """element * scale as fp64, without the tensor scale."""
        if self._values is None:
            self._values = self.format.values(self.codes, self.scales)
        return self._values

    def part(self, batch=slice(None), rows=slice(None)):
        scales = None if self.scales is None else self.scales[batch][:, rows]
        return Content(self.format.name, self.codes[batch][:, rows], scales, self.tensor_scale, self.divides)

    def stretch(self, first, end):
        """Columns from `first`, with which a block begins, up to `end`."""
        scales, block = self.scales, self.format.block
        if scales is not None:
            scales = scales[..., first // block : -(-end // block) if end > first else first // block]
        return Content(self.format.name, self.codes[..., first:end], scales, self.tensor_scale, self.divides)


class Placed:
    """A matrix in an image, and its bsm_matrix."""

    def __init__(self, image, lib, format_name, shape, storage):
        self.image, self.lib, self.storage = image, lib, storage
        self.format = FORMATS[format_name]
        self.batch, self.rows, self.columns = shape
        self.sparse = None
        if storage.get("sparsity"):
            self.sparse = SparseMatrix(sparsity=lib.sparsities[storage["sparsity"]])
            self.sparse.matrix.struct_size = ctypes.sizeof(SparseMatrix)
            self.columns //= 2                         # what data and scales hold
        self.packing = Packing(format_name, storage.get("packing", "default"))
        self.gguf = self.packing.name == "gguf"
        self.turned = storage.get("major") == "mn"
        self.lines, self.width = (self.columns, self.rows) if self.turned else (self.rows, self.columns)
        self.struct = self.sparse.matrix if self.sparse else new(Matrix)
        self.struct.format = lib.formats[format_name]
        self.struct.packing = lib.packings[storage.get("packing", "default")]
        self.struct.rows, self.struct.columns, self.struct.batch = shape[1], shape[2], shape[0]
        self.struct.major = int(self.turned)
        self._place_data()
        if self.format.block:
            self._place_scales()

    def _place_data(self):
        packing, extra = self.packing, self.storage.get("pitch", 0)
        to_bytes = lambda elements: elements // packing.unit * packing.unit_bytes
        pitch = packing.tight(self.width) + extra * packing.unit
        if self.storage.get("aligned"):
            pitch = -(-pitch // ALIGNED) * ALIGNED
        apart = pitch * max(1, self.lines) + self.storage.get("batch_gap", 0) * packing.unit
        if self.storage.get("interleave") and self.batch > 1:
            pitch, apart = pitch * self.batch, pitch
        self.row_bytes = packing.row_bytes(self.width)
        self.strides = (to_bytes(apart), to_bytes(pitch), 1)
        self.shape = (self.batch, self.lines, self.row_bytes)
        self.data_size = self._reach(self.shape, self.strides)
        size = max(1, packing.unit_bytes) if packing.name == "plain" else 1
        misalign = self.storage.get("misalign", 0) // size * size
        self.data = self.image.place(self.data_size, 256, misalign)
        self.struct.data = self.image.address(self.data)
        tight = not self.storage.get("interleave") and pitch == packing.tight(self.width)
        self.struct.pitch = 0 if tight and not self.storage.get("say_pitch") else pitch
        unsaid = tight and not self.storage.get("batch_gap") and not self.storage.get("say_pitch")
        self.struct.batch_pitch = 0 if unsaid else apart

    @staticmethod
    def _reach(shape, strides):
        return 0 if 0 in shape else sum((n - 1) * s for n, s in zip(shape, strides)) + 1

    def _place_scales(self):
        self.scale_columns = self.format.scale_columns(self.columns)
        if self.gguf:
            self.struct.scales = self.struct.data
            self.struct.scale_layout = ScaleLayout(self.lib.layouts["gguf_" + self.format.name])
            self.scales = self.data
            blocks = np.arange(self.scale_columns)
            at = blocks * 17 if self.format.name == "mxfp4" else blocks // 4 * 36 + blocks % 4
            self.scale_at = (np.arange(self.rows) * self.strides[1])[:, None] + at
            self.scale_all, self.scale_apart = self.scale_at, self.strides[0]
            return
        layout, said = dict(self.storage.get("layout") or {"kind": "linear"}), 0
        if layout["kind"] == "linear" and layout.get("gap"):
            said, layout["pitch"] = layouts.linear_pitches(self.scale_columns, layout["gap"])
        size = layouts.size(layout, self.rows, self.scale_columns)
        self.scale_all = layouts.offsets(layout, self.rows, self.scale_columns)
        self.scale_at = self.scale_all[: self.rows, : self.scale_columns]
        self.scale_apart = size + self.storage.get("scale_batch_gap", 0)
        total = 0 if size == 0 else (self.batch - 1) * self.scale_apart + size
        self.scales = self.image.place(total, 256, self.storage.get("scale_misalign", 0))
        self.struct.scales = self.image.address(self.scales)
        self.struct.scale_layout = ScaleLayout(self.lib.layouts[layout["kind"]], said, layout.get("tile_rows", 0),
                                               layout.get("tile_columns", 0))
        self.struct.scale_batch_pitch = self.scale_apart if self.storage.get("scale_batch_gap") and size else 0

    def pointer(self):
        return ctypes.pointer(self.struct)

    def tensor_scale(self, value, divides):
        """Puts a tensor scale into the image; its offset."""
        at = self.image.put(np.array([value], np.float32), 16)
        self.struct.tensor_scale = self.image.address(at)
        self.struct.tensor_scale_use = int(divides)
        return at

    def _fill_metadata(self, content):
        """Rows lie as far apart as the storage says, and matrices one behind the other."""
        rows = packed_metadata(content.metadata, self.image.pattern)
        gap = self.storage.get("metadata_gap", 0)
        pitch = rows.shape[-1] + gap
        strides = (pitch * self.rows + gap, pitch, 1)
        size = self._reach(rows.shape, strides)
        at = self.image.place(size, 256, self.storage.get("misalign", 0))
        if size:
            self.image.strided(self.image.memory.staging, at, rows.shape, strides)[...] = rows
        self.metadata, self.metadata_shape, self.metadata_strides = at, rows.shape, strides
        self.sparse.metadata = self.image.address(at)
        if gap:
            self.sparse.metadata_pitch, self.sparse.metadata_batch_pitch = strides[1], strides[0]

    def fill(self, content):
        """Writes codes and scales; padding keeps the image's pattern."""
        staging = self.image.memory.staging
        if self.sparse:
            self._fill_metadata(content)
            content = content.kept
        if self.data_size:
            view = self.image.strided(staging, self.data, self.shape, self.strides)
            packed = self.packing.pack(content.codes.swapaxes(1, 2) if self.turned else content.codes)
            if self.packing.name in ("low_first", "high_first", "bit_stream") and packed.size:
                packed[..., -1] |= self._unused_bits()
            elif self.packing.name == "bytes":
                packed = packed | self.image.pattern << self.packing.bits & 255
            view[...] = packed
        if self.format.block and content.scales is not None:
            at = self.scales + self._batches() + self.scale_at
            staging[at.reshape(-1)] = content.scales.reshape(-1)
        if content.tensor_scale is not None:
            self.tensor_scale(content.tensor_scale, content.divides)
        return self

    def _unused_bits(self):
        """The pattern in the bits behind the last code of a row."""
        used = self.width * self.packing.bits % 8
        if used == 0:
            return 0
        if self.packing.name == "high_first":
            return self.image.pattern & 15
        return self.image.pattern << used & 255

    def _batches(self):
        return (np.arange(self.batch) * self.scale_apart)[:, None, None]

    def will_write(self):
        """Tells the image which bytes a call writes: rows, padding bits, scales and their padding."""
        if self.data_size:
            at = sum(np.arange(n).reshape([-1 if i == j else 1 for j in range(3)]) * s
                     for i, (n, s) in enumerate(zip(self.shape, self.strides)))
            self.image.will_write(self.data + at)
        if self.format.block and not self.gguf:
            self.image.will_write(self.scales + self._batches() + self.scale_all)

    def read(self):
        """Codes and scales (or None) of the image as it came back, and a sentence about padding that is not zero, or
        None."""
        after, wrong, scales = self.image.after, None, None
        packed = np.zeros(self.shape, np.uint8)
        if self.data_size:
            packed = np.array(self.image.strided(after, self.data, self.shape, self.strides))
        codes = self.packing.unpack(packed, self.columns)
        if self.format.block:
            scales = after[(self.scales + self._batches() + self.scale_at).reshape(-1)].reshape(
                (self.batch, self.rows, self.scale_columns))
            if not self.gguf:
                padding = after[(self.scales + self._batches() + self.scale_all).reshape(-1)].astype(np.int64).sum()
                if padding != scales.astype(np.int64).sum():
                    wrong = "padding scales are not zero"
        if not self.gguf and not np.array_equal(self.packing.pack(codes), packed):
            wrong = "padding bits of a row's last byte are not zero"
        return codes, scales, wrong


def packed_metadata(metadata, pattern):
    """Bytes of metadata (batch, rows, groups); the half of a byte that belongs to no group has the pattern's bits."""
    if metadata.shape[-1] % 2:
        metadata = np.concatenate([metadata, np.full(metadata.shape[:-1] + (1,), pattern & 15)], -1)
    return (metadata[..., 0::2] | metadata[..., 1::2] << 4).astype(np.uint8)


def place(image, lib, content, storage):
    return Placed(image, lib, content.format.name, content.codes.shape, storage).fill(content)

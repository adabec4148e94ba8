"""Scale layouts: where each scale lies, scales from one layout into another, and pictures of them."""
from __future__ import annotations

import html
from typing import Any

from . import _arrays, _context
from ._arrays import Array, View
from ._errors import InvalidError, check
from ._library import LAYOUTS, ffi, lib, text
from .matrix import layout_struct

_MOST_CELLS = 1 << 16                    # of a picture: more would help nobody, and fill a notebook


def _sizes(rows: int, columns: int) -> None:
    if rows < 0 or columns < 0:
        raise InvalidError(f"rows={rows}, columns={columns}: neither is negative")


def scale_bytes(layout: str, rows: int, columns: int) -> int:
    """Bytes of a buffer of scales in a layout, padding included: `rows` of the matrix, `columns` = ceil(K / block)."""
    _sizes(rows, columns)
    count = ffi.new("int64_t *")
    check(lib.bsm_scale_bytes(layout_struct(layout), rows, columns, count))
    return int(count[0])


def scale_offset(layout: str, rows: int, columns: int, row: int, column: int) -> int:
    """The byte where the scale (row, column) lies in a buffer for rows x columns in a layout."""
    place = ffi.new("int64_t *")
    check(lib.bsm_scale_offset(layout_struct(layout), rows, columns, row, column, place))
    return int(place[0])


def layout_fits(layout: str, rows: int, columns: int, copy: str) -> tuple[bool, str]:
    """Whether an instruction takes scales of rows x columns as a layout has them; how it is told of them, or the rule
    that breaks and the manual's section.

    copy  "tcgen05.cp", "tma", "ldmatrix", "mfma_16" or "mfma_32": docs/guide/layouts.md"""
    _sizes(rows, columns)
    number = lib.bsm_scale_copy_from_name(copy.encode())
    if number < 0:
        names = ", ".join(str(text(lib.bsm_scale_copy_name(i))) for i in range(lib.BSM_SCALE_COPY_COUNT))
        raise InvalidError(f"copy={copy!r}: choose one of {names}")
    fit = ffi.new("bsm_scale_fit *")
    fit.struct_size = ffi.sizeof("bsm_scale_fit")
    check(lib.bsm_scale_layout_fits(layout_struct(layout), rows, columns, number, fit))
    return bool(fit.fits), text(fit.text) or ""


def convert_scales(scales: Array, rows: int, columns: int, from_layout: str, to_layout: str,
                   out: Array = None) -> Array:
    """Scales of one matrix from one layout into another.

    scales    array of bytes in from_layout, without gaps: scale_bytes(from_layout, rows, columns) of them.
    rows      of the matrix; columns   scales of a row, ceil(K / block).
    from_layout, to_layout   their names: see layouts(), with parameters where they have some ("linear:64")
    out       array of bytes to write to; None: a new uint8 array of scales' library and device, (rows, columns) for
              "linear", else (bytes,).
    Padding is written as zeros.  Equal layouts are refused: the scales are in that layout already.  On a GPU the work
    goes into the current stream of scales' library."""
    _sizes(rows, columns)
    of = _arrays.view(scales, "scales")
    if out is None:
        shape = (rows, columns) if to_layout == "linear" else (scale_bytes(to_layout, rows, columns),)
        if layout_struct(to_layout).pitch:           # bytes between the rows are left alone
            out = _arrays.zeros(of.library, of.device, shape, of.stream)
        else:
            out = _arrays.empty(of.library, of.device, shape, "uint8", of.stream)
    to = _arrays.view(out, "out")
    _arrays.check_writable(out, "out")
    if to.device != of.device:
        raise InvalidError(f"out lies on {_arrays.where(to.device)}, scales on {_arrays.where(of.device)}")
    stream = _context.current_stream(of.library, of.device[1], of.stream) if of.device[0] == "cuda" else 0
    check(lib.bsm_scales_convert_on(_context.context(of.device, stream),
                                    _scales(of, "scales", rows, columns, from_layout),
                                    _scales(to, "out", rows, columns, to_layout)))
    _context.settle(of.library, of.device, stream)
    return out


def _scales(x: View, name: str, rows: int, columns: int, layout: str) -> Any:
    needed = scale_bytes(layout, rows, columns)
    have = _arrays.elements(x.shape) * x.itemsize
    if not x.contiguous() or have < needed:
        raise InvalidError(f"{name} has {have} bytes and strides {tuple(x.strides)}: scales of {rows} x {columns} in "
                           f"the layout {layout} are {needed} bytes without gaps")
    c = ffi.new("bsm_scales *")
    c.data, c.rows, c.columns, c.layout = ffi.cast("void *", x.pointer), rows, columns, layout_struct(layout)[0]
    return c


class Picture:
    """Where each scale lies, as text (print it) and in notebooks in colour.

    offsets  a list of rows, each a list of byte offsets; padded rows and columns stand behind the others
    rows, columns, bytes, layout   what it was drawn for"""

    def __init__(self, layout: str, rows: int, columns: int) -> None:
        _sizes(rows, columns)
        self.layout, self.rows, self.columns = layout, rows, columns
        struct = layout_struct(layout)
        self._kind: int = struct.kind
        padded = ffi.new("int64_t[2]")
        check(lib.bsm_scale_padded(struct, rows, columns, padded, padded + 1))
        self.padded_rows, self.padded_columns = int(padded[0]), int(padded[1])
        if self.padded_rows * self.padded_columns > _MOST_CELLS:
            raise InvalidError(f"rows={rows}, columns={columns}: a picture of {self.padded_rows} x "
                               f"{self.padded_columns} scales; at most {_MOST_CELLS} are drawn")
        self.bytes = scale_bytes(layout, rows, columns)
        place = ffi.new("int64_t *")
        self.offsets: list[list[int]] = []
        for row in range(self.padded_rows):
            line = []
            for column in range(self.padded_columns):
                check(lib.bsm_scale_offset(struct, rows, columns, row, column, place))
                line.append(int(place[0]))
            self.offsets.append(line)

    def _title(self) -> str:
        padding = ""
        if (self.padded_rows, self.padded_columns) != (self.rows, self.columns):
            padding = f", padded to {self.padded_rows} x {self.padded_columns}"
        return f"{self.layout}: {self.rows} x {self.columns} scales{padding}, {self.bytes} bytes"

    def _is_padding(self, row: int, column: int) -> bool:
        return row >= self.rows or column >= self.columns

    def __str__(self) -> str:
        about, formula = text(lib.bsm_layout_about(self._kind)), text(lib.bsm_layout_formula(self._kind))
        width = max(len(str(self.bytes)) + 3, 5)
        lines = [self._title(), f"  {about}", f"  offset of (r, s) = {formula}", "",
                 " " * 6 + "".join(f"{'s=' + str(s):>{width}}" for s in range(self.padded_columns))]
        for row, line in enumerate(self.offsets):
            cells = (f"({x})" if self._is_padding(row, s) else str(x) for s, x in enumerate(line))
            lines.append(f"{'r=' + str(row):<6}" + "".join(f"{cell:>{width}}" for cell in cells))
        if any(self._is_padding(row, s) for row, line in enumerate(self.offsets) for s in range(len(line))):
            lines.append("(in parentheses: padding)")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table for notebooks: the hue goes with the offset, padding is hatched."""
        rows = []
        for row, line in enumerate(self.offsets):
            cells = "".join(self._cell(row, column, x) for column, x in enumerate(line))
            rows.append(f"<tr><th>r={row}</th>{cells}</tr>")
        head = "".join(f"<th>s={s}</th>" for s in range(self.padded_columns))
        formula = html.escape(text(lib.bsm_layout_formula(self._kind)) or "")
        return (f"<div><b>{html.escape(self._title())}</b><br><code>offset of (r, s) = {formula}</code>"
                '<div style="max-height:40em;overflow:auto"><table style="font-family:monospace">'
                f"<tr><th></th>{head}</tr>{''.join(rows)}</table></div></div>")

    def _cell(self, row: int, column: int, offset: int) -> str:
        hue = 300 * offset // max(self.bytes, 1)
        colour = f"hsl({hue},70%,80%)"
        if self._is_padding(row, column):
            colour = f"repeating-linear-gradient(45deg,#ddd,#ddd 3px,{colour} 3px,{colour} 6px)"
        return f'<td style="background:{colour};color:#000;text-align:right;padding:0 4px">{offset}</td>'


def show_layout(name: str, rows: int = 32, columns: int = 8) -> Picture:
    """A picture of a scale layout: the byte offset of every scale of `rows` rows and `columns` scale columns.
    print(show_layout("128x4")) in a terminal; in a notebook it draws itself.  name: one of layouts(), with parameters
    where it has some ("linear:16", "tiles:8x4")."""
    if not isinstance(name, str):
        raise InvalidError(f"name={name!r} is no text: use one of {', '.join(LAYOUTS)}")
    return Picture(name, rows, columns)

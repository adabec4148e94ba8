"""Where scales lie, written from the views that other projects document (docs/guide/layouts.md names them); nothing
here comes from the library.

A layout is described by a dictionary: kind, and where the kind has them pitch, tile_rows, tile_columns."""
import numpy as np

KINDS = ["linear", "128x4", "8x4", "tiles", "cdna4_16", "cdna4_32", "aiter", "deepgemm"]


PADDED_16 = -16                                        # BSM_PITCH_PADDED_16


def _up(number, multiple):
    return -(-number // multiple) * multiple


def linear_pitches(columns, gap):
    """What the description says of rows that are further apart, and how far apart they are: some are padded to 16
    bytes, by name."""
    return (PADDED_16, _up(columns, 16)) if gap % 8 == 7 else (columns + gap, columns + gap)


def padded(layout, rows, columns):
    """Rows and columns after padding."""
    down, across = {"128x4": (128, 4), "8x4": (8, 4), "tiles": (layout.get("tile_rows"), layout.get("tile_columns")),
                    "cdna4_16": (32, 8),
                    "cdna4_32": (32, 8), "aiter": (256, 8), "deepgemm": (4, 4)}.get(layout["kind"], (1, 1))
    return _up(rows, down), _up(columns, across)


def offsets(layout, rows, columns):
    """Bytes of all scales, (padded rows, padded columns); those of a linear layout without the gaps between rows."""
    kind = layout["kind"]
    all_rows, all_columns = padded(layout, rows, columns)
    r, s = np.arange(all_rows)[:, None], np.arange(all_columns)[None, :]
    if kind == "linear":
        return r * (layout.get("pitch") or columns) + s
    if kind == "128x4":
        return (r // 128 * (all_columns // 4) + s // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + s % 4
    if kind == "8x4":
        return (r // 8 * (all_columns // 4) + s // 4) * 32 + r % 8 * 4 + s % 4
    if kind == "tiles":
        high, wide = layout["tile_rows"], layout["tile_columns"]
        return (r // high * (all_columns // wide) + s // wide) * high * wide + r % high * wide + s % wide
    if kind in ("cdna4_16", "aiter"):
        return r // 32 * 32 * all_columns + s // 8 * 256 + s % 4 * 64 + r % 16 * 4 + s % 8 // 4 * 2 + r % 32 // 16
    if kind == "cdna4_32":
        return r // 32 * 32 * all_columns + s // 8 * 256 + s % 2 * 128 + r % 32 * 4 + s % 8 // 2
    if kind == "deepgemm":
        return (s // 4 * all_rows + r) * 4 + s % 4
    raise ValueError(kind)


def size(layout, rows, columns):
    """Bytes of the whole buffer."""
    if rows == 0 or columns == 0:
        return 0
    if layout["kind"] == "linear":
        return (rows - 1) * (layout.get("pitch") or columns) + columns
    all_rows, all_columns = padded(layout, rows, columns)
    return all_rows * all_columns

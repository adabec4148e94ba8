"""What tests compare with: numbers of codes and scales by ml_dtypes, layouts as reshapes, products in fp64.

Nothing of blockscale is used here but the arrays that it gave."""
import math

import ml_dtypes
import numpy as np

ELEMENTS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e3m2": ml_dtypes.float6_e3m2fn,
            "e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn}
# format: element, bits, scale, block
FORMATS = {"mxfp8_e4m3": ("e4m3", 8, "e8m0", 32), "mxfp8_e5m2": ("e5m2", 8, "e8m0", 32),
           "mxfp6_e3m2": ("e3m2", 6, "e8m0", 32), "mxfp6_e2m3": ("e2m3", 6, "e8m0", 32),
           "mxfp4": ("e2m1", 4, "e8m0", 32), "mxfp4_block16": ("e2m1", 4, "e8m0", 16),
           "mxint8": ("int8", 8, "e8m0", 32), "nvfp4": ("e2m1", 4, "ue4m3", 16)}
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "e3m2": 28.0, "e2m3": 7.5, "e2m1": 6.0, "int8": 127 / 64}
PACKINGS = {4: ("low_first", "high_first", "bytes"), 6: ("bit_stream", "bytes"), 8: (None,)}
LAYOUTS = ("linear", "128x4", "8x4", "tiles:16x2", "cdna4_16", "cdna4_32", "aiter", "deepgemm", "linear:40")


def elements(codes, element):
    """Numbers (fp64) of an array of codes, one a byte."""
    codes = np.ascontiguousarray(codes, np.uint8)
    if element == "int8":
        return codes.view(np.int8).astype(np.float64) / 64
    return codes.view(ELEMENTS[element]).astype(np.float64)


def unpacked(codes, bits, packing, columns):
    """Codes one a byte, of rows packed as `packing`."""
    codes = np.asarray(codes)
    if bits == 8 or packing == "bytes":
        return codes[..., :columns] & (0xff >> (8 - bits) if bits < 8 else 0xff)
    if bits == 4:
        low, high = codes & 15, codes >> 4
        first, second = (low, high) if packing == "low_first" else (high, low)
        return np.stack([first, second], -1).reshape(*codes.shape[:-1], -1)[..., :columns]
    stream = np.unpackbits(codes, axis=-1, bitorder="little").reshape(*codes.shape[:-1], -1, 6)
    return np.packbits(stream, axis=-1, bitorder="little")[..., 0][..., :columns]


def rounded_up(number, multiple):
    return -(-number // multiple) * multiple


def linear_scales(buffer, layout, rows, columns):
    """Scales (rows, columns) of a buffer of bytes in a layout, by the reshape that states it."""
    flat = np.asarray(buffer).reshape(-1).view(np.uint8)
    if layout == "linear":
        return flat[:rows * columns].reshape(rows, columns)
    if layout.startswith("linear:"):
        pitch = int(layout[7:])
        return np.stack([flat[r * pitch:r * pitch + columns] for r in range(rows)])
    if layout.startswith("tiles:"):
        tile_rows, tile_columns = map(int, layout[6:].split("x"))
        grid = (rounded_up(rows, tile_rows), rounded_up(columns, tile_columns))
        tiles = flat[:grid[0] * grid[1]].reshape(grid[0] // tile_rows, grid[1] // tile_columns, tile_rows, tile_columns)
        return tiles.transpose(0, 2, 1, 3).reshape(grid)[:rows, :columns]
    if layout == "128x4":
        grid = (rounded_up(rows, 128), rounded_up(columns, 4))
        blocks = flat[:grid[0] * grid[1]].reshape(grid[0] // 128, grid[1] // 4, 32, 4, 4)
        return blocks.transpose(0, 3, 2, 1, 4).reshape(grid)[:rows, :columns]
    if layout == "8x4":
        grid = (rounded_up(rows, 8), rounded_up(columns, 4))
        return flat[:grid[0] * grid[1]].reshape(grid[0] // 8, grid[1] // 4, 8, 4).transpose(0, 2, 1, 3).reshape(
            grid)[:rows, :columns]
    if layout == "deepgemm":
        padded = rounded_up(rows, 4)
        words = rounded_up(columns, 4) // 4
        return flat[:words * padded * 4].reshape(words, padded, 4).transpose(1, 0, 2).reshape(
            padded, words * 4)[:rows, :columns]
    grid = (rounded_up(rows, 256 if layout == "aiter" else 32), rounded_up(columns, 8))
    blocks = flat[:grid[0] * grid[1]]
    if layout == "cdna4_32":             # a block is [columns of two][rows][which of four]: s = 2 * fast + slow
        blocks = blocks.reshape(grid[0] // 32, grid[1] // 8, 2, 32, 4)
        return blocks.transpose(0, 3, 1, 4, 2).reshape(grid)[:rows, :columns]
    blocks = blocks.reshape(grid[0] // 32, grid[1] // 8, 4, 16, 2, 2)     # s % 4, r % 16, s / 4, r / 16
    return blocks.transpose(0, 5, 3, 1, 4, 2).reshape(grid)[:rows, :columns]


def scale_values(scales, kind):
    """Numbers (fp64) of scale codes."""
    scales = np.ascontiguousarray(scales, np.uint8)
    if kind == "e8m0":
        return scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    return (scales & 0x7f).view(ml_dtypes.float8_e4m3fn).astype(np.float64)


def as_numpy(x):
    """An array of any library that tests use, as NumPy's."""
    if x is None or isinstance(x, np.ndarray):
        return x
    numpy = x.numpy() if hasattr(x, "numpy") else np.from_dlpack(x)
    return numpy


def values(m):
    """The numbers (fp64) of a Matrix, without its tensor scale, and the tensor scale as a factor."""
    codes, scales = as_numpy(m.codes), as_numpy(m.scales)
    factor = 1.0
    if m.tensor_scale is not None:
        factor = float(as_numpy(m.tensor_scale).reshape(-1)[0])
        factor = 1 / factor if m.tensor_scale_divides else factor
    if m.format in ("bf16", "fp16", "fp32"):
        return codes.astype(np.float64), factor
    if m.format in ("e4m3", "e5m2"):
        return elements(codes, m.format), factor
    element, bits, kind, block = FORMATS[m.format]
    columns = -(-m.columns // block)
    numbers = elements(unpacked(codes, bits, m.packing, m.columns), element).reshape(-1, m.rows, m.columns)
    # Scales of a batch lie one behind the other, each matrix with the padding of its own.
    parts = np.asarray(scales).view(np.uint8).reshape(m.batch, -1) if m.rows and columns else np.zeros((m.batch, 0))
    of = [scale_values(linear_scales(part, m.layout, m.rows, columns), kind) for part in parts]
    whole = np.stack([n * np.repeat(s, block, -1)[:, :m.columns] for n, s in zip(numbers, of)])
    return whole.reshape(m.shape), factor


def power_scale(largest, element):
    """The code of the least power of two under which `largest` is a number of the element: RCEIL, exactly."""
    if largest == 0:
        return 0
    fraction, exponent = math.frexp(largest / LARGEST[element]) if largest else (0, 0)
    # frexp's fraction is in [1/2, 1): the quotient is a power of two where it is exactly 1/2.
    if math.ldexp(LARGEST[element], exponent - 1) >= largest:
        exponent -= 1
    return min(max(exponent + 127, 0), 254)


def encoded(numbers, element):
    """Codes of numbers (fp64) that are in the element's range, rounded to nearest even by ml_dtypes."""
    if element == "int8":
        return np.clip(np.rint(numbers * 64), -127, 127).astype(np.int8).view(np.uint8)
    return numbers.astype(ELEMENTS[element]).view(np.uint8)


def quantized(x, name):
    """Codes (one a byte) and scale codes of a matrix in an e8m0 format, by the recipe RCEIL."""
    element, _, _, block = FORMATS[name]
    x = np.asarray(x, np.float64)
    rows, columns = x.shape
    blocks = -(-columns // block)
    padded = np.zeros((rows, blocks * block))
    padded[:, :columns] = x
    parts = padded.reshape(rows, blocks, block)
    scales = np.array([[power_scale(np.abs(part).max(), element) for part in row] for row in parts], np.uint8)
    scales = scales.reshape(rows, blocks)
    codes = encoded(parts / np.exp2(scales.astype(np.float64) - 127)[..., None], element)
    return codes.reshape(rows, -1)[:, :columns], scales

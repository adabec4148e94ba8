"""Codes and scales by style.

    integers    small integers under one scale: every sum is exact, whatever its order
    steps       small integers, scales of a few steps within a row and of many between rows: every sum is exact too
    normal      normally distributed numbers, quantized here in the simplest manner
    codes       any finite codes, scales within some powers of two
    wide        any finite codes under any scales that are numbers
    sparse      as codes, but most blocks are zeros, some of them under scales that are far larger than the others
    special     as codes, with NaN, infinity, -0 and NaN scales here and there
    edges       where matrix units change: rows at both ends of what bf16 holds for them, with exponents of their own or
                too wide for one; bf16 around 2^-126, some subnormal; neighbours that cancel.  Drawn apart
    narrow      where sums of small integers are exact: any codes, scales of a row within a few binades or just not,
                some blocks of zeros under any scales.  Drawn apart
    largest     as narrow, most codes the largest: where sums are just not exact.  Drawn apart"""
import numpy as np

from formats import E8M0, FORMATS, SCALE_NAN, SCALES, UE4M3
from matrices import Content

STYLES = ["integers", "steps", "normal", "codes", "wide", "sparse", "special"]
EXACT_STYLES = ["integers", "steps"]
POWER_OF_TWO_UE4M3 = 7 << 3                            # the code of 1; a step of 8 doubles it


def generator(seed, *part):
    return np.random.default_rng([seed, *part])


def _integers(format_, rng, shape):
    element = format_.element
    most = 3 if element.bits <= 6 else 4
    unit = 1 / 64 if element.name == "int8" else 1.0
    return element.encode(rng.integers(-most, most + 1, shape) * unit, True)


def _finite(format_, rng, shape):
    element = format_.element
    if element.bits > 16:
        return element.encode(np.ldexp(rng.standard_normal(shape), rng.integers(-20, 20, shape)), True)
    codes = np.flatnonzero(np.isfinite(element.values)).astype(np.uint32)
    return codes[rng.integers(0, len(codes), shape)]


def _one_scale(format_, rng, shape):
    if format_.scale == "e8m0":
        code = 127 + int(rng.integers(-8, 9))
    else:
        code = POWER_OF_TWO_UE4M3 + 8 * int(rng.integers(-2, 3))
    return np.full(shape, code, np.uint8)


def _step_scales(format_, rng, shape):
    if format_.scale == "ue4m3":
        return rng.integers(POWER_OF_TWO_UE4M3, POWER_OF_TWO_UE4M3 + 16, shape).astype(np.uint8)
    rows = rng.integers(-30, 31, shape[:-1] + (1,)) if rng.random() < 0.5 else 0
    return (127 + rows + rng.integers(0, 4, shape)).astype(np.uint8)


def _near_scales(format_, rng, shape):
    if format_.scale == "ue4m3":
        return rng.integers(8, 0x7f, shape).astype(np.uint8)
    spread = int(rng.choice([1, 4, 12]))
    return (127 + int(rng.integers(-20, 21)) + rng.integers(-spread, spread + 1, shape)).astype(np.uint8)


def _wide_scales(format_, rng, shape):
    if format_.scale == "ue4m3":
        return np.where(rng.random(shape) < 0.5, rng.integers(0, 0x7f, shape),
                        rng.integers(0x80, 0xff, shape)).astype(np.uint8)
    if rng.random() < 0.3:
        return rng.integers(0, 255, shape).astype(np.uint8)
    rows = rng.integers(0, 255, shape[:-1] + (1,))
    return np.clip(rows + rng.integers(-6, 7, shape), 0, 254).astype(np.uint8)


def _quantized(format_, rng, shape):
    numbers = rng.standard_normal(shape) * float(rng.choice([1 / 64, 1.0, 8.0]))
    if not format_.block:
        return format_.element.encode(numbers, True), None
    columns = format_.scale_columns(shape[-1])
    padded = np.zeros(shape[:-1] + (columns * format_.block,))
    padded[..., : shape[-1]] = numbers
    largest = np.abs(padded.reshape(shape[:-1] + (columns, format_.block))).max(-1) / format_.element.max
    table = E8M0[:255] if format_.scale == "e8m0" else UE4M3[:0x7f]
    scales = np.clip(np.searchsorted(table, largest), 0, len(table) - 1).astype(np.uint8)
    divisors = np.repeat(SCALES[format_.scale][scales], format_.block, -1)[..., : shape[-1]]
    return format_.element.encode(numbers / np.where(divisors == 0, 1, divisors), True), scales


def _sparse(format_, rng, shape):
    codes = _finite(format_, rng, shape)
    block = format_.block or 16
    columns = -(-shape[-1] // block)
    zero = rng.random(shape[:-1] + (columns,)) < 0.6
    codes[np.repeat(zero, block, -1)[..., : shape[-1]]] = 0
    if not format_.block:
        return codes, None
    scales = _near_scales(format_, rng, zero.shape)
    far = zero & (rng.random(zero.shape) < 0.5)
    scales[far] = _wide_scales(format_, rng, zero.shape)[far]
    return codes, scales


# Rows of the style "edges": the exponents of their least and largest numbers, less those that the element has.  A row
# has the exponent 0 within -40 .. 40, and one of its own where it spans 80 at most.
def _row_range(rng, span_of_element):
    kind, slip = rng.integers(5), rng.integers(-1, 2, 2)
    if kind == 0:
        return -40 + slip[0], 40 + slip[1]
    if kind == 1:
        low = int(rng.integers(-140, 60))
        return low, low + 80 + slip[0]
    low = int(rng.integers(-130, 120) if kind == 2 else rng.integers(-45, -35) if kind == 3 else rng.integers(-10, 10))
    return low, low + span_of_element + int(rng.integers(0, 4))


def _edge_scales(format_, rng, shape):
    if format_.scale == "ue4m3":
        return _wide_scales(format_, rng, shape)
    sizes = np.abs(format_.element.values[format_.element.values != 0])
    sizes = sizes[np.isfinite(sizes)]
    least, most = int(np.frexp(sizes.min())[1]) - 1, int(np.frexp(sizes.max())[1]) - 1
    scales = np.empty(shape, np.int64)
    for row in scales.reshape(-1, shape[-1]) if scales.size else ():
        low, high = _row_range(rng, most - least)
        low, high = low - least, max(low - least, high - most)
        row[:] = rng.integers(low, high + 1, len(row)) if rng.random() < 0.5 else rng.choice([low, high], len(row))
        row[rng.integers(len(row))] = low
        row[rng.integers(len(row))] = high
    scales = np.clip(scales + 127, 0, 254).astype(np.uint8)
    scales[rng.random(shape) < 0.01] = 255
    return scales


def _edge_bf16(rng, shape):
    exponents = rng.choice([1, 20, 62, 64, 90, 127, 160], shape[:-1] + (1,)) + rng.integers(0, 10, shape)
    codes = (rng.integers(0, 2, shape) << 15 | exponents << 7 | rng.integers(0, 128, shape)).astype(np.uint32)
    codes[rng.random(shape) < 0.05] = 0
    rows = rng.random(shape[:-1] + (1,)) < 0.15
    return np.where(rows & (rng.random(shape) < 0.1), codes & 0x807f, codes).astype(np.uint32)


def _edges(format_, rng, shape):
    codes = _edge_bf16(rng, shape) if format_.name == "bf16" else _finite(format_, rng, shape)
    sign = np.uint32(1 << (format_.element.bits - 1) if rng.random() < 0.5 and format_.element.name != "int8" else 0)
    apart = int(rng.choice([1, 2]))
    for k in range(apart, shape[-1]):                  # with the other operand's alike: products that cancel
        alike = rng.random(shape[:-1]) < 0.3
        codes[..., k] = np.where(alike, codes[..., k - apart] ^ sign, codes[..., k])
    if not format_.block:
        return codes, None
    columns = format_.scale_columns(shape[-1])
    zero = rng.random(shape[:-1] + (columns,)) < 0.1
    codes[np.repeat(zero, format_.block, -1)[..., : shape[-1]]] = 0
    return codes, _edge_scales(format_, rng, shape[:-1] + (columns,))


def _narrow(format_, rng, shape, largest_codes):
    codes = _finite(format_, rng, shape)
    if largest_codes and format_.element.values is not None:
        sizes = np.abs(np.where(np.isfinite(format_.element.values), format_.element.values, 0))
        largest = np.flatnonzero(sizes == sizes.max()).astype(np.uint32)
        codes = np.where(rng.random(shape) < 0.97, rng.choice(largest), codes).astype(np.uint32)
    if not format_.block:
        return codes, None
    columns = format_.scale_columns(shape[-1])
    if format_.scale == "ue4m3":
        return codes, _near_scales(format_, rng, shape[:-1] + (columns,))
    span = {"e2m1": 3, "e2m3": 1}.get(format_.element.name, 0) + int(rng.random() < 0.1)
    far = rng.random() < 0.3
    bases = rng.integers(0, 250, shape[:-1] + (1,)) if far else 124 + rng.integers(-8, 9, shape[:-1] + (1,))
    scales = (bases + rng.integers(0, span + 1, shape[:-1] + (columns,))).astype(np.uint8)
    zero = rng.random(scales.shape) < (0.1 if rng.random() < 0.3 else 0)
    codes[np.repeat(zero, format_.block, -1)[..., : shape[-1]]] = 0
    scales[zero] = _wide_scales(format_, rng, scales.shape)[zero]
    return codes, scales


def _sprinkle(format_, rng, codes, scales):
    """NaN, infinity and -0 at some elements, NaN at some scales."""
    element = format_.element

    def some(array):
        count = int(rng.integers(1, 4))
        return tuple(rng.integers(0, n, count) for n in array.shape)

    if element.name != "int8":
        special = [1 << (element.bits - 1)]
        if element.nan_code > (element.max_code if element.values is not None else 0x7f7fffff):
            special += [element.nan_code, element.nan_code | 1 << (element.bits - 1)]
        if element.has_infinity:
            infinity = (element.max_code if element.values is not None else 0x7f7fffff) + 1
            special += [infinity, infinity | 1 << (element.bits - 1)]
        at = some(codes)
        codes[at] = rng.choice(special, len(at[0]))
    if scales is not None and rng.random() < 0.5:
        scales[some(scales)] = SCALE_NAN[format_.scale] | (0x80 if format_.scale == "ue4m3" and rng.random() < 0.5
                                                           else 0)


def make(format_name, style, shape, rng, tensor_scale=None, divides=False):
    """A Content of shape (batch, rows, columns)."""
    format_ = FORMATS[format_name]
    of_scales = shape[:-1] + (format_.scale_columns(shape[-1]),)
    scales = None
    if style == "normal" or (style in ("codes", "sparse", "special") and format_.element.bits >= 16
                             and rng.random() < 0.7):
        codes, scales = _quantized(format_, rng, shape)
    elif style == "edges":
        codes, scales = _edges(format_, rng, shape)
    elif style in ("narrow", "largest"):
        codes, scales = _narrow(format_, rng, shape, style == "largest")
    elif style == "sparse":
        codes, scales = _sparse(format_, rng, shape)
    else:
        codes = _integers(format_, rng, shape) if style in EXACT_STYLES else _finite(format_, rng, shape)
        if format_.block:
            kind = {"integers": _one_scale, "steps": _step_scales, "wide": _wide_scales}.get(style, _near_scales)
            scales = kind(format_, rng, of_scales)
    if style == "special" and codes.size:
        _sprinkle(format_, rng, codes, scales)
    return Content(format_name, codes, scales, tensor_scale, divides)

"""Real numbers into codes and scales by the rules of include/blockscale/quantize.h and docs/recipes.md, with exact comparisons.

Numbers are those of fp32 or shorter (bf16, fp16), or products of two, so that every product below is exact in fp64, and no quotient lies so
near to a middle between two codes that its rounding to fp64 could reach it."""
import numpy as np

from formats import ELEMENTS, SCALE_NAN, SCALES

RECIPE_OF_SCALE = {"e8m0": "rceil", "ue4m3": "nearest"}
FLT_MAX = float(np.finfo(np.float32).max)


def effective(numbers, tensor_scale, divides):
    """The numbers over the tensor scale, as a numerator and a denominator."""
    if tensor_scale is None:
        return numbers, 1.0
    scale = float(np.float32(tensor_scale))
    return (numbers * scale, 1.0) if divides else (numbers, scale)


def scale_codes(format_, largest, recipe, tensor_scale=None, divides=False):
    """Scale codes for the largest magnitudes of blocks, finite and >= 0."""
    if recipe == "default":
        recipe = RECIPE_OF_SCALE[format_.scale]
    top, bottom = effective(largest, tensor_scale, divides)
    element = format_.element
    if recipe == "nearest":
        return ELEMENTS["e4m3"].encode(top / (element.max * bottom), True).astype(np.uint8)
    if recipe == "rceil":
        bottom = bottom * element.max
    top_part, top_power = np.frexp(top)
    bottom_part, bottom_power = np.frexp(bottom)
    power = top_power - bottom_power                   # top / bottom is above 2^(power - 1) and below 2^(power + 1)
    floor = power - (top_part < bottom_part)
    if recipe in ("rceil", "ceil"):
        exponent = power + (top_part > bottom_part)
    elif recipe == "even":
        mantissa = np.where(top_part < bottom_part, 2 * top_part, top_part)
        exponent = floor + (mantissa >= bottom_part * (2 - 2.0 ** -(element.mantissa + 1)))
    else:
        exponent = floor
    if recipe != "rceil":
        exponent = exponent - element.emax
    return np.where(top == 0, 0, np.clip(exponent + 127, 0, 254)).astype(np.uint8)


def quotients(format_, numbers, scales, tensor_scale=None, divides=False):
    """numbers / (scale * tensor scale), for scale codes repeated to the numbers; finite ones are +-0 under a scale of 0."""
    top, bottom = effective(numbers, tensor_scale, divides)
    factor = SCALES[format_.scale][scales] * bottom
    with np.errstate(all="ignore"):
        return np.where((factor == 0) & np.isfinite(top), np.copysign(0.0, top), top / np.where(factor == 0, 1, factor))


def blocks_of(format_, numbers, fill=0.0):
    """(..., K) as (..., blocks, block), filled up."""
    columns = format_.scale_columns(numbers.shape[-1])
    padded = np.full(numbers.shape[:-1] + (columns * format_.block,), fill, numbers.dtype)
    padded[..., : numbers.shape[-1]] = numbers
    return padded.reshape(numbers.shape[:-1] + (columns, format_.block))


def block_codes(format_, numbers, scales, tensor_scale=None, divides=False):
    """Element codes of numbers (..., K) under scale codes (..., blocks)."""
    repeated = np.repeat(scales, format_.block, -1)[..., : numbers.shape[-1]]
    return format_.element.encode(quotients(format_, numbers, repeated, tensor_scale, divides), True)


def quantize(format_, numbers, recipe="default", nonfinite="propagate", tensor_scale=None, divides=False):
    """Codes and scales of numbers (..., K) in a block format."""
    finite = np.isfinite(numbers)
    largest = blocks_of(format_, np.where(finite, np.abs(numbers), 0)).max(-1, initial=0)
    scales = scale_codes(format_, largest, recipe, tensor_scale, divides)
    bad = ~blocks_of(format_, finite, True).all(-1)
    if nonfinite == "propagate":
        scales = np.where(bad, SCALE_NAN[format_.scale], scales).astype(np.uint8)
    codes = block_codes(format_, numbers, scales, tensor_scale, divides)
    if nonfinite == "propagate":
        codes[np.repeat(bad, format_.block, -1)[..., : numbers.shape[-1]]] = 0
    return codes, scales

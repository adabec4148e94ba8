"""Real numbers into codes and scales by the rules of include/blockscale/quantize.h and docs/guide/recipes.md, with
exact comparisons.

Numbers are those of fp32 or shorter (bf16, fp16), or products of two, so that every product below is exact in fp64, and
no quotient lies so near to a middle between two codes that its rounding to fp64 could reach it."""
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
    """numbers / (scale * tensor scale), for scale codes repeated to the numbers; finite ones are +-0 under a scale of
    0."""
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


class Policy:
    """What bsm_quantize_options asks for."""

    def __init__(self, recipe="default", nonfinite="propagate", block_rows=1, clamp_low=0.0, clamp_high=0.0,
                 smallest_scale=0):
        self.recipe, self.nonfinite, self.block_rows = recipe, nonfinite, block_rows
        self.clamp_low, self.clamp_high, self.smallest_scale = clamp_low, clamp_high, smallest_scale

    def clamp(self, largest):
        low, high = float(np.float32(self.clamp_low)), float(np.float32(self.clamp_high))
        largest = np.maximum(largest, low)
        return np.minimum(largest, high) if high > 0 else largest

    def share(self, of_rows):
        """The largest of each square, (batch, rows, blocks)."""
        if self.block_rows <= 1 or of_rows.shape[1] == 0:
            return of_rows
        starts = np.arange(0, of_rows.shape[1], self.block_rows)
        return np.repeat(np.maximum.reduceat(of_rows, starts, 1), self.block_rows, 1)[:, : of_rows.shape[1]]


# Recipes that try two scales and take the one with less error, and what they take on a tie.
BY_ERROR = {"four_over_six": "nearest", "mse": "rceil"}


def scales_of(format_, numbers, policy, tensor_scale, divides):
    """Scale codes (batch, rows, blocks) and which of them are for blocks that are not finite."""
    finite = np.isfinite(numbers)
    largest = policy.share(blocks_of(format_, np.where(finite, np.abs(numbers), 0)).max(-1, initial=0))
    recipe = BY_ERROR.get(policy.recipe, policy.recipe)
    scales = np.maximum(scale_codes(format_, policy.clamp(largest), recipe, tensor_scale, divides),
                        policy.smallest_scale)
    bad = policy.share((~blocks_of(format_, finite, True).all(-1)).astype(np.uint8)) != 0
    if policy.nonfinite == "propagate":
        return np.where(bad, SCALE_NAN[format_.scale], scales).astype(np.uint8), bad
    return scales.astype(np.uint8), np.zeros_like(bad)


def quantize(format_, numbers, policy, tensor_scale=None, divides=False):
    """Codes and scales of numbers (batch, rows, K) in a block format."""
    scales, bad = scales_of(format_, numbers, policy, tensor_scale, divides)
    if policy.recipe in BY_ERROR:
        other = other_scales(format_, numbers, policy, tensor_scale, divides)
        errors = [squared_error(format_, numbers, s, tensor_scale, divides) for s in (scales, other)]
        scales = np.where((errors[1] < errors[0]) & ~bad, other, scales).astype(np.uint8)
    codes = block_codes(format_, numbers, scales, tensor_scale, divides)
    codes[np.repeat(bad, format_.block, -1)[..., : numbers.shape[-1]]] = 0
    return codes, scales


def other_scales(format_, numbers, policy, tensor_scale, divides):
    """The second of two scales: floor's, or m / (4 t), which is what `nearest` gives for half as much again."""
    largest = blocks_of(format_, np.where(np.isfinite(numbers), np.abs(numbers), 0)).max(-1, initial=0)
    if policy.recipe == "mse":
        return scale_codes(format_, largest, "floor", tensor_scale, divides)
    return scale_codes(format_, largest * 1.5, "nearest", tensor_scale, divides)


def squared_error(format_, numbers, scales, tensor_scale, divides):
    decoded = dequantized(format_, block_codes(format_, numbers, scales, tensor_scale, divides), scales, tensor_scale,
                          divides)
    return np.add.accumulate(blocks_of(format_, (numbers - decoded) ** 2),
                             -1)[..., -1] if numbers.size else np.zeros(scales.shape)


def dequantized(format_, codes, scales, tensor_scale, divides):
    values = format_.values(codes, scales)
    if tensor_scale is None:
        return values
    scale = float(np.float32(tensor_scale))
    return values / scale if divides else values * scale


def computed_tensor_scale(format_, numbers, policy, divides):
    """The tensor scale that makes the largest magnitude the largest that the format holds, as fp32."""
    largest = policy.clamp(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))
    if largest == 0:
        return np.float32(1)
    most = format_.element.max
    if format_.scale == "ue4m3":
        most *= 256 if policy.recipe == "four_over_six" else 448
    with np.errstate(over="ignore"):
        return np.float32(np.clip(np.float32(most / largest if divides else largest / most), np.float32(2.0 ** -126),
                                  np.float32(FLT_MAX)))

"""The orders of sums of matrix units (docs/guide/numerics.md), modelled with arrays: which order a plan has, operands
as rows of bf16, and the sums."""
import numpy as np

from rounding import add_to_odd, f32

SLICE = 32                                             # columns of K; the last slice is filled up with zeros
LEAST, MOST = -40, 40                                  # exponents of the numbers of a row that has the exponent 0
LEAST_NORMAL = 2.0 ** -126
INTEGER_GRIDS = ("e2m1", "e2m3", "int8")
UNITS = ("amx_bf16", "avx512_bf16", "arm_bf16")
BEGINNINGS = {"AMX's": "amx_bf16", "AVX512_BF16's": "avx512_bf16", "Arm's BFMMLA": "arm_bf16",
              "exact sums of": "portable", "k ascending": "portable", "the portable one": "portable"}


def sums_exact_blocks(a, b):
    """Whether the portable order adds whole blocks of this pair of formats."""
    return bool(a.block and b.block and a.element.name in INTEGER_GRIDS and b.element.name in INTEGER_GRIDS)


def order_of(described):
    """The order of a plan by what it says; of kernels on tensor cores "gpu"."""
    text = described.split("order: ", 1)[1] if "order: " in described else ""
    for beginning, order in BEGINNINGS.items():
        if text.startswith(beginning):
            return order
    if described.startswith(("cuda", "hip")):
        return "gpu"
    raise ValueError("an order that is not known: " + described)


def order_here(features, kernels, a, b):
    """The order that a CPU with these features has for a pair of formats, in a build with these kernels."""
    has = lambda needs, name: needs <= features and any(name in kernel for kernel in kernels)
    if "fp32" in (a.name, b.name):
        return "portable"
    if has({"amx", "avx512"}, "_amx"):
        return "amx_bf16"
    if sums_exact_blocks(a, b) or "fp16" in (a.name, b.name):
        return "portable"
    if has({"avx512_bf16", "avx512"}, "bf16_dot_"):
        return "avx512_bf16"
    return "arm_bf16" if has({"bf16"}, "bf16_mmla") else "portable"


# Operands -------------------------------------------------------------------------------------------------------------

def terms(format_):
    return 2 if format_.name == "fp16" else 1


def _split(numbers):
    """fp16 as two terms of bf16: cut off, and the rest; two halves where there is no rest."""
    whole = numbers.astype(np.float32)
    high = (whole.view(np.uint32) & np.uint32(0xffff0000)).view(np.float32).astype(np.float64)
    even = (high == numbers) | np.isnan(numbers)
    with np.errstate(invalid="ignore"):
        return np.stack([np.where(even, numbers / 2, high), np.where(even, numbers / 2, numbers - high)])


def _element_exponents(element):
    sizes = np.abs(element.values[np.isfinite(element.values) & (element.values != 0)])
    return int(np.frexp(sizes.min())[1]) - 1, int(np.frexp(sizes.max())[1]) - 1


def _exponents(format_, codes, scales, beside_bf16):
    """Of each row the exponent, and whether it falls back: blocks of zeros and of NaN scales have no part in it."""
    least, most = _element_exponents(format_.element)
    counts = np.zeros(scales.shape, bool)
    nonzero = np.pad(format_.element.decode(codes) != 0,
                     ((0, 0), (0, scales.shape[1] * format_.block - codes.shape[1])))
    if scales.size:
        counts = nonzero.reshape(scales.shape + (format_.block,)).any(-1) & (scales != 255)
    powers = scales.astype(np.int64) - 127
    low = np.where(counts, powers, 1000).min(-1, initial=1000) + least
    high = np.where(counts, powers, -1000).max(-1, initial=-1000) + most
    middle = (low < LEAST) & counts.any(-1) | (high > MOST) & counts.any(-1)
    fallback = middle & (beside_bf16 | (high - low > MOST - LEAST))
    return np.where(middle & ~fallback, (low + high) >> 1, 0), fallback


class Rows:
    """Some rows of one matrix: numbers (terms, rows, slices, 32) as fp64, exponents and fallback by row."""

    def __init__(self, content, batch, rows, first, end, other):
        format_, codes = content.format, content.codes[batch][rows][:, first:end]
        self.exponents, self.fallback = np.zeros(len(codes), np.int64), np.zeros(len(codes), bool)
        scales = None
        if format_.block:
            scales = content.scales[batch][rows][:, first // format_.block : -(-end // format_.block)]
            scales = scales[:, : -(-(end - first) // format_.block)]
        values = format_.values(codes, scales)
        if format_.scale == "e8m0" and format_.element.name == "e2m1":
            values = values + 0.0                        # x86's panels hold MXFP4's -0 as +0
        if format_.scale == "e8m0":
            self.exponents, self.fallback = _exponents(format_, codes, scales, other.name == "bf16")
        if format_.name == "bf16":
            self.fallback = ((values != 0) & (np.abs(values) < LEAST_NORMAL)).any(-1)
        if format_.name == "fp32":
            self.fallback[:] = True
        values = np.where(self.fallback[:, None], 0, np.ldexp(values, -self.exponents[:, None]))
        numbers = _split(values) if terms(format_) == 2 else values[None]
        numbers = np.pad(numbers, ((0, 0), (0, 0), (0, -numbers.shape[-1] % SLICE)))
        self.numbers = numbers.reshape(numbers.shape[:2] + (-1, SLICE))


# Steps: arrays of fp64 that hold fp32 numbers -------------------------------------------------------------------------

def _nearest(exact_to_odd):
    """To nearest even; what has less than 2^-126 when it was rounded to 24 bits is a zero of its sign."""
    small = np.abs(exact_to_odd) < LEAST_NORMAL - 2.0 ** -151
    return np.where(small, np.copysign(0.0, exact_to_odd), f32(exact_to_odd).astype(np.float64))


def _fused(product, total):
    with np.errstate(invalid="ignore", over="ignore"):
        return _nearest(add_to_odd(total, product))


def _odd(exact_to_odd):
    """To odd in 24 bits; below 2^-126 a zero of its sign."""
    bits = np.array(exact_to_odd, np.float64).view(np.int64)
    low = bits & ((1 << 29) - 1)
    cut = (np.where(low != 0, bits | 1 << 29, bits) & ~((1 << 29) - 1)).view(np.float64)
    cut = np.where(np.abs(exact_to_odd) >= 2.0 ** 128, np.copysign(np.inf, exact_to_odd), cut)
    cut = np.where(np.abs(exact_to_odd) < LEAST_NORMAL, np.copysign(0.0, exact_to_odd), cut)
    return np.where(np.isnan(exact_to_odd), np.nan, cut)


def _products(a, b, x, y):
    """(rows of a, rows of b, slices, 32) of term x of a and term y of b."""
    with np.errstate(invalid="ignore"):
        return a.numbers[x][:, None] * b.numbers[y][None]


def _amx(products, totals):
    """Of each slice even and odd k in chains of their own from +0, their sum is added."""
    steps = [p.reshape(p.shape[:-1] + (SLICE // 2, 2)) for p in products]
    slices = []
    for p in steps:
        chains = np.zeros(p.shape[:-2] + (2,))
        for k in range(SLICE // 2):
            chains = _fused(p[..., k, :], chains)
        slices.append(_fused(chains[..., 0], chains[..., 1]))
    for s in range(products[0].shape[2]):
        for of_slice in slices:
            totals = _fused(of_slice[:, :, s], totals)
    return totals


def _avx512(products, totals):
    """Pairs of k ascending, of a pair the second first."""
    for s in range(products[0].shape[2]):
        for p in products:
            for k in range(0, SLICE, 2):
                totals = _fused(p[:, :, s, k], _fused(p[:, :, s, k + 1], totals))
    return totals


def _arm(products, totals):
    """Pairs of k ascending: products, their sum, and its addition, each rounded to odd."""
    with np.errstate(invalid="ignore", over="ignore"):
        pairs = [_odd(add_to_odd(_odd(p[..., 0::2]), _odd(p[..., 1::2]))) for p in products]
        for s in range(products[0].shape[2]):
            for of_term in pairs:
                for pair in range(SLICE // 2):
                    totals = _odd(add_to_odd(totals, of_term[:, :, s, pair]))
    return totals


ORDERS = {"amx_bf16": _amx, "avx512_bf16": _avx512, "arm_bf16": _arm}


def in_order(order, a, b):
    """S (fp32) of Rows a and b; where a row falls back it means nothing."""
    products = [_products(a, b, x, y) for x in range(len(a.numbers)) for y in range(len(b.numbers))]
    totals = ORDERS[order](products, np.zeros(products[0].shape[:2]))
    return f32(np.ldexp(totals, a.exponents[:, None] + b.exponents[None, :]))


# Bounds ---------------------------------------------------------------------------------------------------------------

def roundings(order, a, b, k):
    """The n of gamma_n, but for fallback rows."""
    products = terms(a) * terms(b)
    return {"amx_bf16": 16 + -(-k // SLICE) * products, "avx512_bf16": 1 + k * products,
            "arm_bf16": 1 + 2 * -(-k // 2) * products}[order]


def flushed(order, a, b, k):
    """F: what zeros in place of sums and products below 2^-126 may take, which only bf16 has."""
    if "bf16" not in (a.name, b.name):
        return 0
    steps = {"amx_bf16": 34 * -(-k // SLICE), "avx512_bf16": k, "arm_bf16": 4 * -(-k // 2)}[order]
    return terms(a) * terms(b) * steps * LEAST_NORMAL

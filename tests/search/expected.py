"""What a product must give: for every element of D an interval that the documented bound leaves, of a single number
where sums are exact.

Everything behind the sum is monotonous in it, or nearly, so the interval is carried through the epilogue by its ends,
in the library's documented arithmetic (docs/guide/numerics.md): fused multiply-adds in fp32, activations in fp64.
`free` marks what no bound holds for: sums that may leave fp32's range on the way."""
import math

import numpy as np

import units
from formats import SCALES
from matrices import Content
from rounding import add_to_odd, f32

U, TINY = 2.0 ** -24, 2.0 ** -149


def fma32(x, y, z):
    """x * y + z rounded once to fp32; x * y has no more than 53 bits."""
    with np.errstate(invalid="ignore", over="ignore"):
        return f32(add_to_odd(np.asarray(x, np.float64) * np.asarray(y, np.float64), np.asarray(z, np.float64)))


class Sums:
    """lo and hi (fp32) of the sums S, and free."""

    def __init__(self, lo, hi, free):
        self.lo, self.hi, self.free = lo, hi, free

    def pin(self, where, values):
        """Elements whose bits are known."""
        self.lo[where] = self.hi[where] = values
        self.free[where] = False


def stacked(parts):
    """Matrices of a batch."""
    return Sums(*(np.concatenate([getattr(part, ends) for part in parts]) for ends in ("lo", "hi", "free")))


# Sums -----------------------------------------------------------------------------------------------------------------

def _multiply(a, b):
    """a (batch, M, K) and b (batch, N, K), one of them perhaps broadcast."""
    with np.errstate(invalid="ignore"):
        return np.matmul(a, np.swapaxes(b, -1, -2))


def by_parts(function, groups, *operands):
    """function(a, b) for batches, or for each group's rows of a and matrix of b; the results one behind the other along
    the rows."""
    if groups is None:
        return function(*operands)
    half, rows, start = len(operands) // 2, [], 0
    for group, count in enumerate(groups):
        of_a = [x[:, start : start + count] for x in operands[:half]]
        of_b = [x[group : group + 1] for x in operands[half:]]
        rows.append(function(*of_a, *of_b))
        start += count
    return np.concatenate(rows, 1)


def _last_bits(values):
    """The exponent of the lowest bit that any finite number of a row has; large for rows of zeros."""
    usable = np.isfinite(values) & (values != 0)
    fraction, exponent = np.frexp(np.where(usable, values, 1.0))
    whole = (np.abs(fraction) * 2.0 ** 53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(usable, exponent - 53 + lowest, 4096).min(-1, initial=4096)


LEAST_NORMAL = {"bf16": 2.0 ** -126, "fp16": 2.0 ** -14, "fp32": 2.0 ** -126}


def _magnitudes(content, as_they_are):
    """as_they_are: formats that tensor cores multiply so.  Their subnormal numbers align as the least normal one."""
    size = np.abs(np.where(np.isfinite(content.values), content.values, 0))
    if content.format.name in as_they_are:
        least = LEAST_NORMAL[content.format.name]
        size = np.where((size != 0) & (size < least), least, size)
    return size


def _terms(a, b, fp16):
    """How often tensor cores go along K; fp16: they multiply this pair of fp16 as it is."""
    return 1 if fp16 else units.terms(a.format) * units.terms(b.format)


def runs_of(a, b):
    """Columns of K whose sum is exact, or 1: the portable order of sums."""
    return min(a.block, b.block) if units.sums_exact_blocks(a, b) else 1


def tf32(content):
    """fp32 whose low 13 bits are cleared."""
    return Content("fp32", content.codes & 0xffffe000, None, content.tensor_scale, content.divides)


def steps(a, b, k, order, fp16=False, tf32=False):
    """The n of gamma_n."""
    if tf32:
        return 6 * -(-k // 8)
    portable = -(-k // runs_of(a.format, b.format))
    if order == "portable":
        return portable
    if order in units.UNITS:
        return max(portable, units.roundings(order, a.format, b.format, k))
    return max(10 * -(-k // 16) * _terms(a, b, fp16), k)


def gamma(n):
    return n * U / (1 - n * U)


def underflow(a, b, k, order, tf32=False):
    """What sums that are subnormal may lose."""
    if order in units.UNITS:
        return (k + 1) * TINY / 2 + (1 + 2.0 ** -10) * units.flushed(order, a.format, b.format, k)
    if tf32:
        return (k + 1 + -(-k // 8)) * TINY
    bf16 = order == "gpu" and "bf16" in (a.format.name, b.format.name)
    return (k + 1) * TINY / 2 + (-(-k // 16) * TINY * units.terms(a.format) * units.terms(b.format) if bf16 else 0)


def _scales_by_16(content):
    """Of every row the scale of each 16 columns, the last ones included, 1 without scales; 0 where it is NaN, for then
    the sum is, too."""
    if not content.format.block:
        return np.ones(content.codes.shape[:-1] + (-(-content.codes.shape[-1] // 16),))
    scales = SCALES[content.format.scale][content.scales]
    each = np.repeat(scales, content.format.block // 16, -1)[..., : -(-content.codes.shape[-1] // 16)]
    return np.where(np.isnan(each), 0, each)


def taken_by_scales(a, b, groups):
    """Blackwell's tensor cores cut sums of 4-bit codes behind 2^-35 of the largest product of two scales: 2^-32 of
    their sum is allowed."""
    return 2.0 ** -32 * by_parts(_multiply, groups, _scales_by_16(a), _scales_by_16(b))


def sums(a, b, groups, order, any_order=False, scales_take=False, fp16=False, tf32=False):
    """The interval of S for contents a and b, in an order of units.py.  fp16, tf32: the kernel multiplies them as they
    are."""
    k, as_they_are = a.codes.shape[-1], (["bf16"] if order == "gpu" else []) + ["fp16"] * fp16 + ["fp32"] * tf32
    exact = by_parts(_multiply, groups, a.values, b.values)
    size = by_parts(_multiply, groups, _magnitudes(a, as_they_are), _magnitudes(b, as_they_are))
    bound = (gamma(steps(a, b, k, order, fp16, tf32)) + (8 * U if any_order else 0)) * size
    bound = bound + underflow(a, b, k, order, tf32)
    with np.errstate(invalid="ignore"):
        taken = taken_by_scales(a, b, groups) if scales_take else 0
        # fp64's own error, and but for the portable order one further rounding where a row has an exponent of its own.
        bound = bound + taken + k * 2.0 ** -52 * size
        if order != "portable":
            bound = bound + U * np.abs(np.where(np.isfinite(exact), exact, 0))
        lowest = by_parts(lambda x, y: x[..., :, None] + y[..., None, :], groups, _last_bits(a.values),
                          _last_bits(b.values))
        # fp16 as two bf16 terms, which can be halves.
        halves = (order != "portable" and not fp16) * ((a.format.name == "fp16") + (b.format.name == "fp16"))
        on_grid = (size * 2.0 ** halves <= np.ldexp(1.0, np.minimum(lowest, 900) + 24)) & (
            lowest >= (-149 if order == "portable" else -120))
        # 2^-35 of a product of scales is no more than 2^-3 of what they may take, and cuts no bit from there on.
        on_grid = on_grid & (taken / 8 <= np.ldexp(1.0, np.minimum(lowest, 900)))
    found = _interval(exact, bound, size)
    np.copyto(found.lo, f32(exact + 0.0), where=on_grid & ~found.free)
    np.copyto(found.hi, f32(exact + 0.0), where=on_grid & ~found.free)
    return found


def _interval(exact, bound, size):
    finite = np.isfinite(exact)
    with np.errstate(invalid="ignore"):
        lo, hi = f32(np.where(finite, exact - bound, exact)), f32(np.where(finite, exact + bound, exact))
    # What scales may take of a sum can be more than there are numbers: then all numbers are right.
    return Sums(lo, hi, (size * (1 + 2.0 ** -10) >= 2.0 ** 127) | finite & np.isinf(lo) & np.isinf(hi))


def in_order(a, b, run):
    """S of rows a (M, K) and b (N, K), as values, in the order of sums of the CPU: bit for bit.

    Each run of `run` columns is one term; a product of two operands is exact in fp64, and so is the sum of a run."""
    k = a.shape[-1]
    with np.errstate(invalid="ignore", over="ignore"):
        terms = a[:, None, :] * b[None, :, :]
        if run > 1 and k:
            terms = np.add.reduceat(terms, np.arange(0, k, run), -1)
    total = np.zeros(terms.shape[:-1], np.float32)
    for term in np.moveaxis(terms, -1, 0):
        total = f32(add_to_odd(np.array(total, np.float64), term))
    return total


# Fast sums ------------------------------------------------------------------------------------------------------------

FAST_SHIFT = {"e4m3": 0, "e5m2": 7, "e2m3": -5, "e3m2": -4, "e2m1": -6}


def refolded(content, e4m3):
    """Operands as BSM_COMPUTE_FAST may round them: e4m3 numbers times one power of two for a row."""
    from formats import E8M0
    scales = E8M0[content.scales]
    largest = np.where(np.isnan(scales), 0, scales).max(-1, keepdims=True, initial=0)
    power = np.where(largest > 0, largest, 1) * 2.0 ** FAST_SHIFT[content.format.element.name]
    with np.errstate(invalid="ignore"):
        numbers = e4m3.decode(e4m3.encode(content.values / power, True)) * power
    return np.where(np.isinf(content.values), np.nan, numbers)


def fast_sums(a, b, groups, e4m3):
    """The interval of S under BSM_COMPUTE_FAST on Hopper."""
    folded_a, folded_b = refolded(a, e4m3), refolded(b, e4m3)
    clean = lambda x: np.where(np.isfinite(x), x, 0)
    infinite = lambda c: np.where(np.isinf(c.values), np.nan, c.values)
    exact = by_parts(_multiply, groups, infinite(a), infinite(b))
    fa, fb, va, vb = clean(folded_a), clean(folded_b), clean(a.values), clean(b.values)
    size = by_parts(_multiply, groups, np.abs(fa), np.abs(fb))

    def moved(fa_, va_, fb_, vb_):
        """sum |a'b' - ab|"""
        rows = [np.abs(fa_[..., i, None, :] * fb_ - va_[..., i, None, :] * vb_).sum(-1) for i in range(fa_.shape[-2])]
        batch = max(fa_.shape[0], fb_.shape[0])
        return np.stack(rows, -2) if rows else np.zeros((batch, 0, fb_.shape[-2]))

    shift = by_parts(moved, groups, fa, va, fb, vb)
    chunks = -(-a.codes.shape[-1] // 256)
    bound = (shift + (2.0 ** -4.9 + chunks * 2.0 ** -23) * size) * (1 + 2.0 ** -23) + TINY
    with np.errstate(invalid="ignore"):
        bound = bound + 2 * U * np.abs(np.where(np.isfinite(exact), exact, 0))
    return _interval(exact, bound, np.maximum(size, by_parts(_multiply, groups, np.abs(va), np.abs(vb))))


# Epilogue -------------------------------------------------------------------------------------------------------------

def ordered(x, y):
    """The lesser and the greater; -0 lies below +0.  Where one is NaN they stay as they are."""
    with np.errstate(invalid="ignore"):
        swap = (y < x) | ((y == x) & np.signbit(y))
    return np.where(swap, y, x), np.where(swap, x, y)


class Interval:
    """lo and hi of t (fp32), and free; NaN at both ends is NaN."""

    def __init__(self, lo, hi, free):
        self.lo, self.hi = ordered(lo, hi)
        self.free = free | (np.isnan(lo) != np.isnan(hi))

    @property
    def single(self):
        """Whether one number is left."""
        same = self.lo.astype(np.float32).view(np.int32) == self.hi.astype(np.float32).view(np.int32)
        return (same | (np.isnan(self.lo) & np.isnan(self.hi))) & ~self.free


def before_activation(found, factor, rest):
    """f * S + rest, the last of which may be None; factor is fp32 or None, which is 1."""
    def end(s):
        if factor is None:
            return s.copy() if rest is None else fma32(1.0, s, rest)
        with np.errstate(invalid="ignore", over="ignore"):
            return f32(np.asarray(factor, np.float64) * s) if rest is None else fma32(factor, s, rest)
    free = found.free.copy()
    if factor is not None:
        free |= ~np.isfinite(factor) & (found.lo != found.hi) & ~(np.isnan(found.lo) & np.isnan(found.hi))
    return Interval(end(found.lo), end(found.hi), free)


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _silu(x, slope=1.0):
    return x / (1 + np.exp(-slope * x))


ACTIVATIONS = {
    "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)),
    "gelu": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))) / 2,
    "silu": _silu,
    "swiglu_clamped": lambda x: _silu(np.where(np.isnan(x), x, np.minimum(x, 7)), 1.702),
}


def _lowest(function):
    x = np.linspace(-3, 0, 30001)
    return float(x[np.argmin(function(x))])


LOWEST = {name: _lowest(ACTIVATIONS[name]) for name in ("gelu", "gelu_tanh", "silu", "swiglu_clamped")}


def _activate(t, name):
    """The ends of act(t) in fp64, with the errors that evaluating it in fp64 may have."""
    if name in (None, "none"):
        return t.lo.astype(np.float64), t.hi.astype(np.float64)
    with np.errstate(all="ignore"):
        function = ACTIVATIONS[name]
        lo, hi = t.lo.astype(np.float64), t.hi.astype(np.float64)
        at_lo, at_hi = function(lo), function(hi)
        least, most = ordered(at_lo, at_hi)
        if name in LOWEST:
            dips = (lo < LOWEST[name]) & (hi > LOWEST[name])
            least = np.where(dips, np.minimum(least, function(np.array(LOWEST[name])) - 1e-8), least)
            wide = np.where(np.isfinite(lo) & np.isfinite(hi), np.maximum(np.abs(lo), np.abs(hi)) * 2.0 ** -50, 0)
            least, most = np.where(wide > 0, least - wide, least), np.where(wide > 0, most + wide, most)
    return least, most


def activated(t, activation, gate):
    """t behind activation and gate."""
    if gate in (None, "none"):
        if activation in (None, "none"):
            return t
        lo, hi = _activate(t, activation)
        return Interval(f32(lo), f32(hi), t.free)
    half = t.lo.shape[-1] // 2
    pick = (slice(0, None, 2), slice(1, None, 2)) if gate == "interleaved" else (slice(0, half), slice(half, None))
    gates, ups = (Interval(t.lo[..., p], t.hi[..., p], t.free[..., p]) for p in pick)
    with np.errstate(all="ignore"):
        glo, ghi = _activate(gates, activation)
        ulo, uhi = ups.lo.astype(np.float64), ups.hi.astype(np.float64)
        if activation == "swiglu_clamped":
            ulo, uhi = (np.where(np.isnan(u), u, np.clip(u, -7, 7)) + 1 for u in (ulo, uhi))
        corners = np.stack([glo * ulo, glo * uhi, ghi * ulo, ghi * uhi])
        nan = np.isnan(corners)
        zero, minus = corners == 0, np.signbit(corners)
        lo, hi = np.fmin.reduce(corners), np.fmax.reduce(corners)
        # Infinity at an end, times zero in between, is NaN.
        some = nan.any(0) & ~nan.all(0) | np.isinf(corners).any(0) & (lo != hi)
        lo = np.where((lo == 0) & (zero & minus).any(0), -0.0, lo)
        hi = np.where((hi == 0) & (zero & ~minus).any(0), 0.0, hi)
        if activation not in (None, "none", "relu"):
            lo, hi = lo - np.abs(lo) * 2.0 ** -50, hi + np.abs(hi) * 2.0 ** -50
    return Interval(f32(lo), f32(hi), gates.free | ups.free | some)

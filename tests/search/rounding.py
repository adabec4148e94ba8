"""Rounding once: to fp32, of sums that fp64 does not hold either."""
import numpy as np


def f32(numbers):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(numbers, np.float64).astype(np.float32)


def add_to_odd(x, y):
    """x + y in fp64 with the last bit set where it is not exact: rounded to fp32 afterwards, it is rounded once."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = x + y
        part = total - x
        error = (x - (total - part)) + (y - part)
        inexact = (error != 0) & np.isfinite(total)
    if not inexact.any():
        return total
    bits = np.array(total).view(np.int64)
    even = inexact & (bits & 1 == 0)
    # The exact sum lies between two neighbours, of which the odd one is meant.
    away = (error > 0) == (total > 0)
    bits = np.where(even, np.where(away, bits + 1, bits - 1), bits)
    return bits.view(np.float64)

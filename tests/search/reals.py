"""Strided matrices of real numbers: what they hold, and where they lie in an image.

A storage is a dictionary: type, order ("rows" or "columns": which index is the faster one), step (elements between
neighbours), gap (elements behind a row), flip (indices that run backward: some of "r" and "c"), repeat (every row is
the same, a stride of 0), batch_gap, misalign."""
import ctypes

import numpy as np

from formats import ELEMENTS
from library import RealMatrix, new

SIZES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp64": 8}


def rounded(numbers, real):
    """Numbers as the nearest ones of a type."""
    if real == "fp64":
        return np.asarray(numbers, np.float64)
    element = ELEMENTS[real]
    return element.decode(element.encode(numbers, False))


def to_words(numbers, real):
    if real == "fp64":
        return np.ascontiguousarray(numbers, np.float64).view(np.uint64)
    return ELEMENTS[real].encode(numbers, False).astype("<u%d" % SIZES[real])


class Reals:
    def __init__(self, image, lib, shape, storage):
        self.image, self.shape, self.real = image, shape, storage["type"]
        batch, rows, columns = shape
        step, gap = storage.get("step", 1), storage.get("gap", 0)
        if storage.get("order") == "columns":
            row, column = step, rows * step + gap
        else:
            row, column = columns * step + gap, step
        if storage.get("repeat"):
            row = 0
        whole = max(1, (rows - 1) * row + (columns - 1) * column + 1) if rows and columns else 1
        apart = whole + storage.get("batch_gap", 0)
        size = SIZES[self.real]
        self.at = image.place(((batch - 1) * apart + whole) * size if batch else 0, 256,
                              storage.get("misalign", 0) // size * size)
        flip = storage.get("flip", "")
        first = (max(0, rows - 1) * row if "r" in flip else 0) + (max(0, columns - 1) * column if "c" in flip else 0)
        row, column = -row if "r" in flip else row, -column if "c" in flip else column
        self.offset = self.at + first * size
        self.strides = (apart * size, row * size, column * size)
        self.struct = new(RealMatrix, type=lib.reals[self.real], rows=rows, columns=columns,
                          data=image.address(self.offset), row_stride=row,
                          column_stride=column, batch=batch, batch_stride=apart)

    def pointer(self):
        return ctypes.byref(self.struct)

    def _view(self, data):
        words = data[self.at % SIZES[self.real] :]
        words = words[: len(words) // SIZES[self.real] * SIZES[self.real]].view("<u%d" % SIZES[self.real])
        return np.lib.stride_tricks.as_strided(words[(self.offset - self.at % SIZES[self.real]) // SIZES[self.real] :],
                                               self.shape, self.strides)

    def fill(self, numbers):
        if 0 not in self.shape:
            self._view(self.image.memory.staging)[...] = to_words(numbers, self.real)
        return self

    def will_write(self):
        at = self.offset + sum(np.arange(n).reshape([-1 if i == j else 1 for j in range(3)]) * s
                               for i, (n, s) in enumerate(zip(self.shape, self.strides)))
        if 0 not in self.shape:
            self.image.will_write((at[..., None] + np.arange(SIZES[self.real])))

    def read(self):
        if 0 in self.shape:
            return np.zeros(self.shape)
        words = np.array(self._view(self.image.after))
        return words.view(np.float64) if self.real == "fp64" else ELEMENTS[self.real].decode(words)


def make(style, shape, real, rng, element):
    """Numbers of a type for quantizing into an element, by style."""
    if style == "normal":
        numbers = rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 7)
    elif style == "wide":
        numbers = np.ldexp(rng.standard_normal(shape), rng.integers(-140, 120, shape[:-1] + (1,))
                           + rng.integers(-10, 8, shape))
    elif style == "integers":
        numbers = rng.integers(-9, 10, shape) * 2.0 ** rng.integers(-3, 4)
    # Middles between two codes, and the codes, under scales that are powers of two.
    elif style == "ties":
        middles = element.middles if element.values is not None and element.name != "int8" else np.arange(256) / 128
        middles = np.append(middles, middles * 2)
        numbers = rng.choice(middles, shape) * rng.choice([-1.0, 1.0], shape)
        numbers = numbers * 2.0 ** rng.integers(-4, 5, shape[:-1] + (1,))
        numbers = np.where(rng.random(shape) < 0.3,
                           np.nextafter(numbers.astype(np.float32), np.float32(rng.choice([-9, 9]))), numbers)
    else:
        numbers = rng.standard_normal(shape)
        for value in (np.nan, np.inf, -np.inf, -0.0, 1e-45, 1e-40, 3e38):
            numbers = np.where(rng.random(shape) < rng.choice([0, 0.01, 0.1]), value, numbers)
        if rng.random() < 0.5:
            numbers = np.where(rng.random(shape[:-1] + (1,)) < 0.4, 0.0, numbers)
    return rounded(numbers, real)


STYLES = ["normal", "normal", "wide", "integers", "ties", "special"]

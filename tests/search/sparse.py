"""Sparse operands: which columns are kept, and the same numbers with their zeros, from the rules of matrix.h."""
import numpy as np

from matrices import Content

# Columns of a group, and those that lie and stay together.
PATTERNS = {"2:4": (4, 1), "4:8": (8, 2)}
PLACES = np.array([(first, second) for second in range(4) for first in range(second)])


def permitted(format_, storage, k, along_k):
    """The patterns that an operand of products may have."""
    if storage.get("packing") == "gguf" or storage.get("major") == "mn" or k == 0:
        return []
    stretch = 2 * format_.block or 8                   # where groups along K may begin
    starts = [sum(along_k[:group]) for group in range(len(along_k or []))]
    if any(start % stretch for start in starts):
        return []
    return [name for name, (columns, pair) in PATTERNS.items()
            if k % columns == 0 and (pair == 1 or format_.element.bits == 4)]


def make(kept, sparsity, rng):
    """The Content with zeros of one that holds what is kept; it says what that was, and where."""
    group, pair = PATTERNS[sparsity]
    batch, rows, half = kept.codes.shape
    places = PLACES[rng.integers(0, len(PLACES), (batch, rows, 2 * half // group))]
    columns = (places[..., None] * pair + np.arange(pair)).reshape(batch, rows, 2 * half // group, group // 2)
    columns = (columns + group * np.arange(columns.shape[2])[:, None]).reshape(batch, rows, half)
    codes = np.zeros((batch, rows, 2 * half), kept.codes.dtype)
    np.put_along_axis(codes, columns, kept.codes, -1)
    scales = kept.scales
    if scales is not None:
        scales = np.repeat(scales, 2, -1)[..., : kept.format.scale_columns(2 * half)]
    it = Content(kept.format.name, codes, scales, kept.tensor_scale, kept.divides)
    it.kept, it.metadata = kept, places[..., 0] | places[..., 1] << 2
    return it

"""sparsify, and sparse operands from parts: what is kept, metadata, products with the bits of all elements."""
import copy
import pickle

import numpy as np
import pytest

import blockscale

RANDOM = np.random.default_rng(24)
PLACES = {4: (0, 1), 8: (0, 2), 9: (1, 2), 12: (0, 3), 13: (1, 3), 14: (2, 3)}
KINDS = [("mxfp8_e4m3", "2:4", "linear"), ("nvfp4", "4:8", "128x4"), ("mxfp4", "2:4", "linear"),
         ("mxfp6_e2m3", "2:4", "128x4"), ("bf16", "2:4", "linear")]


def kept_columns(metadata, columns, sparsity):
    """(rows, columns / 2) of the columns that metadata (rows, bytes) keep."""
    group, pair = {"2:4": (4, 1), "4:8": (8, 2)}[sparsity]
    codes = np.stack([metadata & 15, metadata >> 4], -1).reshape(len(metadata), -1)[:, : columns // group]
    return np.array([[g * group + place * pair + i for g, code in enumerate(row) for place in PLACES[int(code)]
                      for i in range(pair)] for row in codes])


def largest(x, sparsity):
    """The columns that are to be kept: the largest sums of squares, of equals the lower ones."""
    group, pair = {"2:4": (4, 1), "4:8": (8, 2)}[sparsity]
    sizes = (x.astype(np.float64) ** 2).reshape(len(x), -1, 4, pair).sum(-1)
    places = np.sort(np.argsort(-sizes, axis=-1, kind="stable")[..., :2], -1)
    found = places[..., None] * pair + np.arange(pair)
    return (found.reshape(*found.shape[:2], -1) + group * np.arange(found.shape[1])[:, None]).reshape(len(x), -1)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind))
def test_the_largest_are_kept_and_quantized(kind):
    name, sparsity, layout = kind
    x = RANDOM.standard_normal((9, 168)).astype(np.float32)
    x[3, 8:16], x[4, 8:16] = 0, 1
    m, stats, quantized = blockscale.sparsify(x, name, sparsity, layout=layout, stats=True)
    columns = kept_columns(m.metadata, 168, sparsity)
    assert np.array_equal(columns, largest(x, sparsity))
    kept = np.take_along_axis(x, columns, 1)
    stored = blockscale.quantize(kept, name, layout=layout)
    assert np.array_equal(m.codes, stored.codes) and (m.scales is None or np.array_equal(m.scales, stored.scales))
    assert (m.shape, m.sparsity, m.nbytes) == ((9, 168), sparsity, stored.nbytes + m.metadata.size)
    assert f"sparse {sparsity}" in repr(m) and stored.sparsity == "none" and stored.metadata is None
    dense = np.zeros_like(x)
    np.put_along_axis(dense, columns, stored.dequantize(), 1)
    assert np.array_equal(m.dequantize(), dense)
    assert stats.groups == 9 * 168 // int(sparsity[2]) and 0 < stats.cut_groups < stats.groups
    assert stats.cut_elements == np.count_nonzero(x) - np.count_nonzero(kept)
    assert np.isclose(stats.kept, (kept.astype(np.float64) ** 2).sum()) and quantized.elements == kept.size
    assert np.isclose(stats.signal, (x.astype(np.float64) ** 2).sum())
    turned = blockscale.sparsify(np.ascontiguousarray(x.T), name, sparsity, layout=layout, axis=-2)
    assert np.array_equal(turned.metadata, m.metadata) and np.array_equal(turned.codes, m.codes)


def with_zeros(x, name, sparsity, tensor_scale):
    """A Matrix of all elements with the numbers of a sparse one: one code to an entry, and each scale twice."""
    given = "none" if tensor_scale is None else tensor_scale
    m = blockscale.sparsify(x, name, sparsity, packing=None if name == "bf16" else "bytes", tensor_scale=given)
    codes = np.zeros(x.shape, m.codes.dtype)
    np.put_along_axis(codes, kept_columns(m.metadata, x.shape[1], sparsity), m.codes, 1)
    scales = m.scales
    if scales is not None:
        block = 16 if name == "nvfp4" else 32
        scales = np.ascontiguousarray(np.repeat(scales, 2, 1)[:, : -(-x.shape[1] // block)])
    return blockscale.from_parts(codes, scales, name, packing=m.packing, tensor_scale=tensor_scale)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind))
def test_products_have_the_bits_of_all_elements(kind):
    name, sparsity, layout = kind
    x = RANDOM.standard_normal((2, 14, 160)).astype(np.float32)
    a = blockscale.quantize(x[0, :5], "mxfp8_e4m3")
    m = blockscale.sparsify(x, name, sparsity, layout=layout)
    part = blockscale.from_parts(m.codes[0], None if m.scales is None else m.scales[0], name, layout=layout,
                                 tensor_scale=m.tensor_scale, sparsity=sparsity, metadata=m.metadata[0])
    assert part.shape == (14, 160)
    dense = with_zeros(x[0], name, sparsity, m.tensor_scale)
    got = blockscale.matmul(a, part)
    assert np.array_equal(got, blockscale.matmul(a, dense))
    assert np.array_equal(blockscale.exact_matmul(a, part), blockscale.exact_matmul(a, dense))
    assert "sparse, and copied with their zeros first: B" in blockscale.explain(a, part)
    a_batch = blockscale.quantize(np.stack([x[0, :5]] * 2), "mxfp8_e4m3")
    assert np.array_equal(blockscale.matmul(a_batch, m)[0], got)
    for again in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part)):
        assert again.sparsity == sparsity and np.array_equal(blockscale.matmul(a, again), got)
    plan = blockscale.plan(a, part)
    assert np.array_equal(plan.run(a, part), got) and np.array_equal(plan.run(a, part, panels=plan.pack(part)), got)
    with pytest.raises(blockscale.InvalidError):       # not as the plan has it
        plan.run(a, dense)


def test_patterns_and_pitches_have_plans_of_their_own():
    """The same codes and scales under other metadata, other patterns, and rows of metadata further apart."""
    x = RANDOM.standard_normal((8, 64)).astype(np.float32)
    a = RANDOM.integers(-4, 5, (4, 64)).astype(np.float32)
    m = blockscale.sparsify(x, "mxfp4", "2:4")
    wide = np.full((8, 24), 0xff, np.uint8)
    wide[:, :8] = m.metadata
    apart = blockscale.from_parts(m.codes, m.scales, "mxfp4", sparsity="2:4", metadata=wide[:, :8])
    others = np.full_like(m.metadata, 0xee)
    moved = blockscale.from_parts(m.codes, m.scales, "mxfp4", sparsity="2:4", metadata=others)
    pairs = blockscale.from_parts(m.codes, m.scales, "mxfp4", sparsity="4:8", metadata=others[:, :4].copy())
    kept = blockscale.from_parts(m.codes, m.scales, "mxfp4")
    for _ in range(2):
        for b in (m, apart, moved, pairs):
            want = a.astype(np.float64) @ b.dequantize("float64").T
            assert np.array_equal(blockscale.matmul(a, b), want.astype(np.float32))
        assert np.array_equal(blockscale.matmul(a, m), blockscale.matmul(a, apart))
        blockscale.matmul(a[:, :32].copy(), kept)


def test_what_is_refused():
    x = RANDOM.standard_normal((8, 64)).astype(np.float32)
    m = blockscale.sparsify(x, "mxfp8_e4m3")
    of = lambda metadata, sparsity="2:4", **more: blockscale.from_parts(m.codes, m.scales, "mxfp8_e4m3",
                                                                        sparsity=sparsity, metadata=metadata, **more)
    for wrong, words in ((m.metadata[:, :7], r"metadata has the type uint8 and the shape \(8, 7\)"),
                         (m.metadata.astype(np.int32), "metadata has the type int32"),
                         (np.asfortranarray(m.metadata), "metadata has strides"),
                         (None, "metadata is None and sparsity='2:4'")):
        with pytest.raises(blockscale.InvalidError, match=words):
            of(wrong)
    for sparsity, words in (("none", "metadata is given"), ("1:4", "sparsity='1:4' is not known"),
                            (24, "sparsity=24 is not known")):
        with pytest.raises(blockscale.InvalidError, match=words):
            of(m.metadata, sparsity)
    with pytest.raises(blockscale.Error, match="sparsity=4:8"):
        of(m.metadata[:, :4].copy(), "4:8")
    bad = m.metadata.copy()
    bad[2, 1] = 0x46
    with pytest.raises(blockscale.InvalidError, match="b->metadata: group 2 of row 2 of matrix 0 is 6"):
        blockscale.matmul(x, of(bad))
    with pytest.raises(blockscale.InvalidError, match="group 2 of row 2"):
        of(bad).dequantize()
    with pytest.raises(blockscale.Error, match="sparsity=2:4"):
        blockscale.quantize(x, "mxfp8_e4m3", out=m)
    with pytest.raises(blockscale.Error, match="sparsity=2:4"):
        blockscale.merge_tensor_scales([blockscale.sparsify(x, "nvfp4")])
    for call, words in ((lambda: blockscale.sparsify(x, "mxfp8_e4m3", "none"), "quantize\\(\\) keeps all"),
                        (lambda: blockscale.sparsify(x, "mxfp8_e4m3", "4:8"), "sparsity=4:8"),
                        (lambda: blockscale.sparsify(x[:, :62], "mxfp8_e4m3"), "columns=62"),
                        (lambda: blockscale.sparsify(x, "mxfp4", packing="gguf"), "gguf"),
                        (lambda: blockscale.sparsify(x, "nvfp4", axis=3), "axis=3")):
        with pytest.raises(blockscale.Error, match=words):
            call()

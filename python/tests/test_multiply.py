"""matmul, plans and exact sums against fp64 products of codes that ml_dtypes decodes."""
import itertools
import math
import pickle

import ml_dtypes
import numpy as np
import pytest

import blockscale
from blockscale import plans
import oracle

RANDOM = np.random.default_rng(25)
PLAIN = {"fp32": np.float32, "bf16": ml_dtypes.bfloat16, "fp16": np.float16, "e4m3": ml_dtypes.float8_e4m3fn,
         "e5m2": ml_dtypes.float8_e5m2}
KINDS = [*oracle.FORMATS, *PLAIN]


def operand(name, shape, whole=False):
    """An operand of a format in a random layout and packing (or an array of plain numbers), and its numbers.  whole:
    small whole numbers under scales of 1, whose sums are exact in fp32."""
    x = RANDOM.integers(-3, 4, shape).astype(np.float64) if whole else RANDOM.standard_normal(shape)
    if name in PLAIN:
        array = x.astype(PLAIN[name])
        return array, array.astype(np.float64)
    _, bits, kind, block = oracle.FORMATS[name]
    packing = RANDOM.choice([str(p) for p in oracle.PACKINGS[bits]])
    layout = str(RANDOM.choice([name for name in oracle.LAYOUTS if name != "linear:40" or shape[-1] <= 640]))
    m = blockscale.quantize(x.astype(np.float32), name, layout=layout, packing=None if packing == "None" else packing)
    if not whole:
        numbers, factor = oracle.values(m)
        return m, numbers * factor
    if m.format == "mxint8":
        x = np.clip(x, -1, 1)            # its numbers are below 2
    one = 127 if kind == "e8m0" else 0x38
    codes = oracle.encoded(x, oracle.FORMATS[name][0])
    scales = np.full((*shape[:-1], -(-shape[-1] // block)), one, np.uint8)
    return blockscale.from_parts(codes, scales, name, packing="bytes" if bits < 8 else None), x


def bound(a, b, k):
    """matmul.h's: gamma_k of the sum of |a||b|, and a rounding of the factor and one of the result."""
    magnitude = np.abs(a) @ np.abs(b).swapaxes(-1, -2)
    return (k + 3) * 2.0 ** -24 / (1 - k * 2.0 ** -24) * magnitude + 2.0 ** -149


@pytest.mark.parametrize("pair", list(itertools.product(KINDS, KINDS)), ids="-".join)
def test_every_pair_of_formats(pair):
    for _ in range(2):
        m, n, k = (int(RANDOM.integers(1, limit)) for limit in (40, 40, 300))
        (a, x), (b, y) = operand(pair[0], (m, k)), operand(pair[1], (n, k))
        d = blockscale.matmul(a, b)
        assert d.dtype == np.float32 and d.shape == (m, n)
        assert (np.abs(d - x @ y.T) <= bound(x, y, k)).all(), (m, n, k)
    (a, x), (b, y) = operand(pair[0], (9, 160), True), operand(pair[1], (11, 160), True)
    assert np.array_equal(blockscale.matmul(a, b), (x @ y.T).astype(np.float32))
    assert np.array_equal(blockscale.exact_matmul(a, b), (x @ y.T).astype(np.float32))


@pytest.mark.parametrize("pair", [("mxfp4", "mxfp8_e4m3"), ("nvfp4", "bf16"), ("fp32", "mxint8")])
def test_exact_sums_are_rounded_once(pair):
    (a, x), (b, y) = operand(pair[0], (5, 70)), operand(pair[1], (6, 70))
    for matrix in (a, b):                # tensor scales have no part in exact sums
        if isinstance(matrix, blockscale.Matrix):
            numbers, _ = oracle.values(matrix)
            x, y = (numbers, y) if matrix is a else (x, numbers)
    exact = np.array([[math.fsum(p * q for p, q in zip(row, column)) for column in y] for row in x])
    for dtype in (np.float64, np.float32, ml_dtypes.bfloat16):
        sums, magnitude = blockscale.exact_matmul(a, b, dtype, magnitude=True)
        assert np.array_equal(sums, exact.astype(dtype)) and sums.dtype == dtype
        assert np.allclose(magnitude.astype(np.float64), np.abs(x) @ np.abs(y).T, rtol=2.0 ** -8)


@pytest.mark.parametrize("dtype, name", [(np.float32, "float32"), (ml_dtypes.bfloat16, "bf16"), (np.float16, "fp16"),
                                         (ml_dtypes.float8_e4m3fn, "e4m3"), (ml_dtypes.float8_e5m2, "float8_e5m2")])
def test_types_of_the_result(dtype, name):
    (a, x), (b, y) = operand("mxfp4", (9, 96), True), operand("mxfp8_e4m3", (7, 96), True)
    expected = (x @ y.T).astype(np.float32)
    with np.errstate(over="ignore"):
        rounded = np.clip(expected, -448, 448).astype(dtype) if name == "e4m3" else expected.astype(dtype)
    for given in (dtype, name):
        d = blockscale.matmul(a, b, out_dtype=given)
        assert d.dtype == dtype and np.array_equal(d, rounded)
    out = np.empty((12, 7), dtype)[:9]
    assert blockscale.matmul(a, b, out=out) is out and np.array_equal(out, rounded)


@pytest.mark.parametrize("name", oracle.FORMATS)
def test_results_in_block_formats(name):
    (a, x), (b, y) = operand("mxfp4", (9, 96), True), operand("mxfp8_e4m3", (64, 96), True)
    d = blockscale.matmul(a, b, out_dtype=name, out_layout="128x4")
    plain = blockscale.quantize((x @ y.T).astype(np.float32), name, layout="128x4", tensor_scale="none")
    assert isinstance(d, blockscale.Matrix) and d.layout == "128x4" and d.shape == (9, 64)
    assert np.array_equal(d.codes, plain.codes) and np.array_equal(d.scales, plain.scales)
    again = blockscale.matmul(a, b, out=d, alpha=2.0)
    assert again is d and np.array_equal(d.dequantize(), blockscale.quantize(2 * (x @ y.T).astype(np.float32), name,
                                                                           tensor_scale="none").dequantize())


def f32(x):
    return np.asarray(x, np.float64).astype(np.float32)


def test_epilogue():
    (a, x), (b, y) = operand("mxfp4", (10, 64), True), operand("mxfp8_e5m2", (14, 64), True)
    s = x @ y.T
    c = RANDOM.integers(-9, 9, (10, 14)).astype(np.float32)
    row, column = RANDOM.integers(-4, 5, (10, 1)).astype(np.float32), RANDOM.integers(-4, 5, 14).astype(np.float32)
    assert np.array_equal(blockscale.matmul(a, b, alpha=0.5, c=c, beta=2.0), f32(0.5 * s + 2 * c))
    assert np.array_equal(blockscale.matmul(a, b, c=c), f32(s + c))
    assert np.array_equal(blockscale.matmul(a, b, alpha=row), f32(row * s))
    assert np.array_equal(blockscale.matmul(a, b, alpha=column), f32(column * s))
    assert np.array_equal(blockscale.matmul(a, b, alpha=row.ravel(), alpha_per="row"), f32(row * s))
    assert np.array_equal(blockscale.matmul(a, b, alpha=np.array([3], np.float32)), f32(3 * s))
    assert np.array_equal(blockscale.matmul(a, b, bias=column), f32(s + column))
    assert np.array_equal(blockscale.matmul(a, b, bias=row), f32(s + row))
    assert np.array_equal(blockscale.matmul(a, b, bias=row.ravel().astype(ml_dtypes.bfloat16), bias_per="row"),
                          f32(s + row))
    assert np.array_equal(blockscale.matmul(a, b, bias=column, activation="relu"), f32(np.maximum(s + column, 0)))
    (a2, x2), (b1, y1) = operand("mxfp4", (2, 2, 64), True), operand("mxfp8_e5m2", (1, 64), True)
    both = np.array([[3], [-5]], np.float32)          # as many matrices as rows, and one column: bias_per decides
    assert np.array_equal(blockscale.matmul(a2, b1, bias=both, bias_per="row"), f32(x2 @ y1.T + both))
    assert np.array_equal(blockscale.matmul(a2, b1, bias=both, bias_per="column"), f32(x2 @ y1.T + both[:, None]))
    amax = np.zeros(1, np.float32)
    blockscale.matmul(a, b, amax=amax)
    assert amax[0] == np.abs(s).max()
    same = c.copy()
    assert blockscale.matmul(a, b, c=same, beta=1.0, out=same) is same and np.array_equal(same, f32(s + c))


# The formulas without the cancellation of 1 + erf and 1 + tanh for negative numbers.
def gelu(t):
    return t * np.vectorize(math.erfc)(-t / math.sqrt(2)) / 2


def gelu_tanh(t):
    return t / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (t + 0.044715 * t ** 3)))


ACTIVATIONS = {"none": lambda t: t, "relu": lambda t: np.maximum(t, 0), "gelu": gelu,
               "gelu_tanh": gelu_tanh, "silu": lambda t: t / (1 + np.exp(-t))}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("gate", ["none", "interleaved", "split"])
def test_activations_and_gates(activation, gate):
    (a, x), (b, y) = operand("mxfp4", (6, 32), True), operand("nvfp4", (16, 32), True)
    t = f32(x @ y.T / 8).astype(np.float64)
    d = blockscale.matmul(a, b, alpha=0.125, activation=activation, gate=gate)
    if gate == "none":
        expected = ACTIVATIONS[activation](t)
    else:
        gates, ups = (t[:, ::2], t[:, 1::2]) if gate == "interleaved" else (t[:, :8], t[:, 8:])
        expected = f32(ACTIVATIONS[activation](gates)).astype(np.float64) * ups
    assert d.shape == expected.shape
    assert np.allclose(d, expected, rtol=2.0 ** -22, atol=2.0 ** -60)


def test_the_gate_of_gpt_oss():
    (a, x), (b, y) = operand("bf16", (5, 64), True), operand("mxfp4", (12, 64), True)
    t = x @ y.T
    g, u = np.minimum(t[:, ::2], 7), np.clip(t[:, 1::2], -7, 7)
    expected = g / (1 + np.exp(-1.702 * g)) * (u + 1)
    d = blockscale.matmul(a, b, activation="swiglu_clamped", gate="interleaved")
    assert np.allclose(d, expected, rtol=2.0 ** -22, atol=1e-30)


def test_batches_broadcast():
    (a, x), (b, y) = operand("mxfp4", (3, 6, 64), True), operand("mxfp8_e4m3", (3, 10, 64), True)
    expected = f32(x @ y.swapaxes(1, 2))
    assert np.array_equal(blockscale.matmul(a, b), expected)
    (one, z), (plain, w) = operand("nvfp4", (10, 64), True), operand("bf16", (3, 6, 64), True)
    assert np.array_equal(blockscale.matmul(plain, one), f32(w @ z.T))
    (left, v), alpha = operand("bf16", (6, 64), True), np.array([1, 2, 4], np.float32).reshape(3, 1, 1)
    assert np.array_equal(blockscale.matmul(left, b, alpha=alpha), f32(alpha * (v @ y.swapaxes(1, 2))))
    bias = RANDOM.integers(-5, 5, (3, 10)).astype(np.float32)
    assert np.array_equal(blockscale.matmul(a, b, bias=bias), expected + bias[:, None])
    assert np.array_equal(blockscale.matmul(a, b, bias=bias[:, None]), expected + bias[:, None])
    rows = RANDOM.integers(-5, 5, (3, 6, 1)).astype(np.float32)
    assert np.array_equal(blockscale.matmul(a, b, bias=rows), expected + rows)
    c = RANDOM.integers(-5, 5, (6, 10)).astype(np.float32)
    assert np.array_equal(blockscale.matmul(a, b, c=c), expected + c)
    strided = np.zeros((6, 3, 70), ml_dtypes.bfloat16)[:, :, 3:67].swapaxes(0, 1)
    strided[...] = w
    assert np.array_equal(blockscale.matmul(strided, one), f32(w @ z.T))


def test_groups_of_rows_and_of_columns():
    (a, x), (b, y) = operand("mxfp8_e4m3", (20, 64), True), operand("mxfp4", (4, 9, 64), True)
    rows, start, expected = [7, 0, 12, 1], 0, []
    for group, count in enumerate(rows):
        expected.append(x[start:start + count] @ y[group].T)
        start += count
    expected = f32(np.concatenate(expected))
    for given in (rows, tuple(rows), np.array(rows)):
        assert np.array_equal(blockscale.matmul(a, b, groups=given), expected)
    bias = RANDOM.integers(-5, 5, (4, 9)).astype(np.float32)
    assert np.array_equal(blockscale.matmul(a, b, groups=rows, bias=bias), expected + np.repeat(bias, rows, 0))
    (a, x), (b, y) = operand("mxfp8_e4m3", (6, 160), True), operand("mxfp4", (9, 160), True)
    columns, edges = [64, 0, 96], [0, 64, 64, 160]
    expected = np.stack([f32(x[:, i:j] @ y[:, i:j].T) for i, j in zip(edges, edges[1:])])
    for given in (columns, np.array(columns)):
        assert np.array_equal(blockscale.matmul(a, b, group_columns=given), expected)
    plan = blockscale.plan(a, b, group_columns=columns)
    assert plan.out_shape == (3, 6, 9) and np.array_equal(plan.run(a, b), expected)
    other = plan.run(a, b, group_columns=[0, 160, 0])
    assert np.array_equal(other[1], f32(x @ y.T)) and not other[0].any() and not other[2].any()


def test_no_bit_depends_on_threads_rows_or_neighbours():
    (a, _), (b, _) = operand("mxfp4", (64, 500)), operand("mxfp8_e4m3", (50, 500))
    before = blockscale.threads()
    found = []
    for count in (1, 2, 5):
        blockscale.set_threads(count)
        assert blockscale.threads() == count
        found.append(blockscale.matmul(a, b))
    blockscale.set_threads(0)
    assert blockscale.threads() == before
    assert all(np.array_equal(one, found[0]) for one in found)
    x = RANDOM.standard_normal((7, 500)).astype(ml_dtypes.bfloat16)
    whole = blockscale.matmul(x, b)
    assert np.array_equal(np.concatenate([blockscale.matmul(x[i:i + 1], b) for i in range(7)]), whole)


def test_kernels_are_listed():
    found = blockscale.kernels("mxfp4", "bf16")
    (a, _), (b, _) = operand("mxfp4", (64, 64)), operand("bf16", (64, 64))
    assert len(found) >= 1 and any(f"kernel {name}," in blockscale.explain(a, b) for name in found)
    with pytest.raises(blockscale.InvalidError, match="a_format='mx'"):
        blockscale.kernels("mx", "bf16")


def test_remembered_plans_have_the_threads_of_now():
    (a, _), (b, _) = operand("bf16", (64, 64)), operand("mxfp4", (64, 64))
    options = (None, "none", "none", "exact", "k", None, "linear", None, True, "propagate")
    try:
        for count in (1, 2, 1):
            blockscale.set_threads(count)
            blockscale.matmul(a, b)
            assert f"threads {count}," in plans.remembered(a, b, None, options).describe()
            assert plans.remembered(a, b, None, options) is plans.remembered(a, b, None, options)
    finally:
        blockscale.set_threads(0)


def test_plans():
    for pair in itertools.product(("mxfp4", "bf16", "nvfp4"), ("mxfp4", "fp32")):
        (a, x), (b, y) = operand(pair[0], (20, 64), True), operand(pair[1], (30, 64), True)
        plan = blockscale.plan(a, b)
        expected = f32(x @ y.T)
        out = np.empty((20, 30), np.float32)
        for _ in range(2):
            assert np.array_equal(plan.run(a, b), expected)
            assert plan.run(a, b, out=out) is out and np.array_equal(out, expected)
            assert np.array_equal(blockscale.matmul(a, b, plan=plan), expected)
        assert "cpu, kernel" in plan.describe() and plan.describe() == blockscale.explain(a, b)
        assert plan.out_shape == (20, 30) and plan.workspace_bytes >= 0
        (other, z) = operand(pair[0], (20, 64), True)
        assert np.array_equal(plan.run(other, b), f32(z @ y.T)) or isinstance(other, blockscale.Matrix)


def test_a_plan_takes_other_optional_parts_and_gives_them_back():
    (a, x), (b, y) = operand("bf16", (6, 64), True), operand("mxfp4", (8, 64), True)
    s = x @ y.T
    one, two = np.arange(8, dtype=np.float32), np.arange(8, 16).astype(np.float32)
    c = np.ones((6, 8), np.float32)
    plan = blockscale.plan(a, b, bias=one, alpha=2.0)
    assert np.array_equal(plan.run(a, b), f32(2 * s + one))
    assert np.array_equal(plan.run(a, b, bias=two), f32(2 * s + two))
    assert np.array_equal(plan.run(a, b, alpha=4.0), f32(4 * s + one))
    assert np.array_equal(plan.run(a, b, c=c), f32(2 * s + c + one))
    assert np.array_equal(plan.run(a, b, c=c, beta=3.0), f32(2 * s + 3 * c + one))
    assert np.array_equal(plan.run(a, b), f32(2 * s + one))
    plain = blockscale.plan(a, b)
    assert np.array_equal(plain.run(a, b, bias=two), f32(s + two)) and np.array_equal(plain.run(a, b), f32(s))


def test_a_plan_refuses_what_it_was_not_made_for():
    (a, _), (b, _) = operand("bf16", (6, 64)), operand("mxfp4", (8, 64))
    plan = blockscale.plan(a, b)
    for wrong, words in ((a[:5], "a is bfloat16 of the shape"), (a.astype(np.float32), "a is float32"),
                         (np.asfortranarray(a), "a has strides"), (blockscale.quantize(a, "mxfp4"), "format")):
        with pytest.raises(blockscale.InvalidError, match=words):
            plan.run(wrong, b)
    for out, words in ((np.empty((6, 9), np.float32), "out is float32 of the shape"),
                       (np.empty((6, 8), np.float64), "out is float64"),
                       (np.empty((6, 16), np.float32)[:, ::2], "strides|gaps")):
        with pytest.raises(blockscale.InvalidError, match=words):
            plan.run(a, b, out=out)
    frozen = np.zeros((6, 8), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(blockscale.InvalidError, match="read-only"):
        plan.run(a, b, out=frozen)
    assert not frozen.any() and plan.run(a, b).shape == (6, 8)


def test_prepacked_weights_have_the_same_bits():
    (a, _), (b, _) = operand("bf16", (32, 256)), operand("mxfp4", (64, 256))
    plan = blockscale.plan(a, b)
    packed = blockscale.pack(b, "bf16", 32)
    assert packed.bytes == plan.panels_bytes
    assert np.array_equal(blockscale.matmul(a, b, panels=packed), blockscale.matmul(a, b))
    if packed.bytes:
        assert np.array_equal(plan.run(a, b, panels=plan.pack(b)), plan.run(a, b))
        with pytest.raises(blockscale.InvalidError):
            damaged = plan.pack(b)
            damaged.panels[:64] = 0
            plan.run(a, b, panels=damaged)


MN_KINDS = [("mxfp4", "low_first"), ("nvfp4", "high_first"), ("mxfp4", "bytes"), ("mxfp6_e2m3", "bit_stream"),
            ("mxfp8_e4m3", None)]


def along_n(codes, bits, packing):
    """(rows, columns) of codes, one to an entry, as bytes of columns."""
    codes = np.ascontiguousarray(codes.T)
    if bits == 8 or packing == "bytes":
        return codes
    padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % (2 if bits == 4 else 4))))
    if bits == 4:
        even, odd = padded[:, ::2], padded[:, 1::2]
        return np.ascontiguousarray(even | odd << 4 if packing == "low_first" else even << 4 | odd)
    fours = padded.reshape(len(padded), -1, 4).astype(np.uint32)
    words = fours[..., 0] | fours[..., 1] << 6 | fours[..., 2] << 12 | fours[..., 3] << 18
    return np.stack([words >> shift & 255 for shift in (0, 8, 16)], -1).astype(np.uint8).reshape(len(padded), -1)


@pytest.mark.parametrize("kind", MN_KINDS, ids=lambda kind: "-".join(map(str, kind)))
def test_weights_stored_k_by_n(kind):
    name, packing = kind
    bits = {"mxfp4": 4, "nvfp4": 4, "mxfp6_e2m3": 6, "mxfp8_e4m3": 8}[name]
    (a, _), w = operand("bf16", (5, 96)), RANDOM.standard_normal((14, 96)).astype(np.float32)
    one_each = blockscale.quantize(w, name, packing="bytes" if bits < 8 else None)
    want = blockscale.matmul(a, one_each)
    stored = along_n(one_each.codes, bits, packing)
    b = blockscale.from_parts(stored, one_each.scales, name, packing=packing, shape=(14, 96), major="mn",
                              tensor_scale=one_each.tensor_scale)
    assert b.major == "mn" and b.shape == (14, 96) and b.codes is stored and "MN-major" in repr(b)
    assert np.array_equal(blockscale.matmul(a, b), want)
    assert np.array_equal(blockscale.exact_matmul(a, b), blockscale.exact_matmul(a, one_each))
    assert "copied K-major first: B" in blockscale.explain(a, b)
    assert np.array_equal(blockscale.matmul(a, pickle.loads(pickle.dumps(b))), want)
    plan = blockscale.plan(a, b)
    assert np.array_equal(plan.run(a, b, panels=plan.pack(b)), want)
    with pytest.raises(blockscale.UnsupportedError, match="only A and B of products may be MN-major"):
        b.dequantize()


def test_columns_without_gaps_are_mn_major():
    (a, _), (w, _) = operand("bf16", (6, 64)), operand("bf16", (8, 64))
    k_by_n = np.ascontiguousarray(w.T)
    b = blockscale.plain(k_by_n.T)
    assert b.major == "mn" and blockscale.plain(w).major == "k" and b.codes.shape == (64, 8)
    assert np.array_equal(blockscale.matmul(a, k_by_n.T), blockscale.matmul(a, w))
    assert np.array_equal(blockscale.matmul(np.asfortranarray(a), k_by_n.T), blockscale.matmul(a, w))
    batch = np.stack([k_by_n, 2 * k_by_n]).swapaxes(-1, -2)
    assert np.array_equal(blockscale.matmul(np.stack([a, a]), batch)[1], 2 * blockscale.matmul(a, w))
    m = blockscale.quantize(w, "mxfp8_e4m3")
    turned = blockscale.from_parts(np.asfortranarray(m.codes), m.scales, "mxfp8_e4m3")
    assert turned.major == "mn" and np.array_equal(blockscale.matmul(a, turned), blockscale.matmul(a, m))
    for wrong, words in ((k_by_n[:, ::2].T, "strides"), (k_by_n.T[:, ::-1], "strides")):
        with pytest.raises(blockscale.InvalidError, match=words):
            blockscale.plain(wrong)
    with pytest.raises(blockscale.InvalidError, match="out has strides"):
        blockscale.matmul(a, w, out=np.empty((8, 6), np.float32).T)
    with pytest.raises(blockscale.InvalidError, match="major='n'"):
        blockscale.from_parts(m.codes, m.scales, "mxfp8_e4m3", major="n")
    with pytest.raises(blockscale.InvalidError, match="MN-major, needs"):
        blockscale.from_parts(m.codes, m.scales, "mxfp8_e4m3", major="mn", shape=m.shape)


def test_merged_shapes_of_nothing():
    d = blockscale.matmul(np.zeros((0, 64), np.float32), np.zeros((5, 64), np.float32))
    assert d.shape == (0, 5)
    d = blockscale.matmul(np.zeros((3, 0), np.float32), np.zeros((5, 0), np.float32))
    assert d.shape == (3, 5) and not d.any()


A, B = np.ones((4, 64), np.float32), np.ones((6, 64), np.float32)


@pytest.mark.parametrize("options, words", [
    ({"b": B[:, :32]}, "b has 32 columns, a has 64"),
    ({"b": B.astype(np.float64)}, "b has the type float64"),
    ({"a": A[:, ::-1]}, "a has strides"),
    ({"a": A[0]}, "a has 1 dimensions"),
    ({"a": "text"}, "a is a str"),
    ({"activation": "tanh"}, "activation='tanh' is not known: use one of none, relu"),
    ({"gate": "half"}, "gate='half'"),
    ({"compute": "quick"}, "compute='quick'"),
    ({"order": "z"}, "order='z'"),
    ({"alpha": np.ones(3, np.float32)}, r"alpha has the shape \(3,\)"),
    ({"alpha": np.ones(6)}, "alpha has the type float64"),
    ({"alpha": np.ones(6, np.float32), "alpha_per": "row"}, "alpha_per='row' needs 4"),
    ({"beta": np.ones(2, np.float32), "c": np.ones((4, 6), np.float32)}, "beta has the shape"),
    ({"bias": np.ones(4, np.float32)}, r"bias has the shape \(4,\)"),
    ({"bias": np.ones(6)}, "bias has the type float64"),
    ({"bias": np.ones(6, np.float32), "bias_per": "tensor"}, "bias_per='tensor'"),
    ({"c": np.ones((4, 5), np.float32)}, "c"),
    ({"out": np.ones((4, 5), np.float32)}, "out has the shape"),
    ({"out": np.ones((4, 6))}, "out has the type float64"),
    ({"out_dtype": "int8"}, "out_dtype='int8'"),
    ({"amax": np.ones(2, np.float32)}, "amax has the type float32"),
    ({"groups": [4]}, "batch|groups"),
    ({"b": np.ones((2, 6, 64), np.float32), "groups": [1, 2]}, "group_rows"),
    ({"b": np.ones((2, 6, 64), np.float32), "groups": [1, 2, 1]}, "groups has the type int64"),
    ({"groups": [4], "group_columns": [64]}, "groups and group_columns"),
    ({"group_columns": [60, 4]}, "group_columns"),
    ({"b": np.ones((2, 6, 64), np.float32), "a": np.ones((3, 4, 64), np.float32)}, "batch of 3"),
    ({"panels": np.ones(64, np.uint8)}, "panels is a ndarray"),
    ({"out_dtype": "mxfp4", "out_layout": "9x9"}, "9x9"),
    ({"out_dtype": "mxfp4", "out_recipe": "mse"}, "recipe"),
])
def test_what_is_refused_is_named(options, words):
    if options.get("groups") == [4] and "group_columns" not in options:
        assert blockscale.matmul(A, B, groups=[4]).shape == (4, 6)       # one group, and b is one matrix
        return
    a, b = options.pop("a", A), options.pop("b", B)
    with pytest.raises((blockscale.InvalidError, blockscale.UnsupportedError), match=words):
        blockscale.matmul(a, b, **options)

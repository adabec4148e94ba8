"""quantize, quantize_both, dequantize, hadamard, from_parts: every format, layout and packing against ml_dtypes."""
import itertools

import ml_dtypes
import numpy as np
import pytest

import blockscale
from blockscale import _arrays
import oracle

RANDOM = np.random.default_rng(20)
POWERS = [name for name, row in oracle.FORMATS.items() if row[2] == "e8m0"]


def sample(*shape, dtype=np.float32):
    x = RANDOM.standard_normal(shape) * np.exp2(RANDOM.integers(-20, 20, (*shape[:-1], 1)))
    return x.astype(dtype)


def shapes(count):
    drawn = [(int(RANDOM.integers(1, 40)), int(RANDOM.integers(1, 200))) for _ in range(count)]
    return drawn + [(1, 1), (3, 32), (130, 64)]


@pytest.mark.parametrize("name", POWERS)
def test_codes_and_scales_are_the_recipes(name):
    _, bits, _, block = oracle.FORMATS[name]
    for (rows, columns), dtype in itertools.product(shapes(3), (np.float32, np.float64, ml_dtypes.bfloat16,
                                                                np.float16)):
        x = np.clip(sample(rows, columns), -6e4, 6e4).astype(dtype)
        x[0, 0] = 0
        m = blockscale.quantize(x, name)
        codes, scales = oracle.quantized(x, name)
        assert m.shape == (rows, columns) and m.format == name and m.device == ("cpu", 0)
        assert np.array_equal(m.scales, scales), (rows, columns, dtype)
        assert np.array_equal(oracle.unpacked(m.codes, bits, m.packing, columns), codes), (rows, columns, dtype)


@pytest.mark.parametrize("name", oracle.FORMATS)
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_layouts_hold_the_same_scales(name, layout):
    rows, columns = int(RANDOM.integers(1, 300)), int(RANDOM.integers(1, 400))
    x = sample(rows, columns)
    straight, m = blockscale.quantize(x, name), blockscale.quantize(x, name, layout=layout)
    blocks = -(-columns // oracle.FORMATS[name][3])
    assert m.layout == layout and np.array_equal(m.codes, straight.codes)
    assert np.array_equal(oracle.linear_scales(m.scales, layout, rows, blocks), straight.scales)


@pytest.mark.parametrize("name", oracle.FORMATS)
def test_packings_hold_the_same_codes(name):
    bits = oracle.FORMATS[name][1]
    for rows, columns in shapes(2):
        x = sample(rows, columns)
        found = [blockscale.quantize(x, name, packing=packing) for packing in oracle.PACKINGS[bits]]
        codes = [oracle.unpacked(m.codes, bits, m.packing, columns) for m in found]
        for m, other in zip(found, codes):
            assert np.array_equal(other, codes[0]) and np.array_equal(m.dequantize(), found[0].dequantize())


@pytest.mark.parametrize("name", oracle.FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_dequantize_is_the_exact_value_rounded_once(name, dtype):
    x = sample(17, 100) if dtype != np.float16 else RANDOM.standard_normal((17, 100)).astype(np.float32)
    m = blockscale.quantize(x, name, layout="128x4")
    numbers, factor = oracle.values(m)
    with np.errstate(over="ignore"):
        expected = (numbers * factor).astype(dtype)      # exact in fp64: 4 + 4 + 24 bits
    assert np.array_equal(m.dequantize(dtype), expected)
    out = np.empty((100, 17), dtype).T
    assert blockscale.dequantize(m, out=out) is out and np.array_equal(out, expected)


def test_nvfp4_has_two_levels():
    x = sample(9, 80)
    m = blockscale.quantize(x, "nvfp4")
    t = float(m.tensor_scale[0])
    assert t == np.float32(np.abs(x).max() / (448 * 6.0))
    largest = np.abs(x.astype(np.float64)).reshape(9, 5, 16).max(-1)
    assert np.array_equal(oracle.scale_values(m.scales, "ue4m3"),
                          (largest / (6.0 * t)).astype(ml_dtypes.float8_e4m3fn).astype(np.float64))
    none = blockscale.quantize(x, "nvfp4", tensor_scale="none")
    given = blockscale.quantize(x, "nvfp4", tensor_scale=t)
    array = blockscale.quantize(x, "nvfp4", tensor_scale=np.array([t], np.float32))
    assert none.tensor_scale is None
    assert np.array_equal(given.scales, m.scales) and np.array_equal(array.codes, m.codes)
    divided = blockscale.quantize(x, "nvfp4", tensor_scale_divides=True)
    assert divided.tensor_scale_divides and abs(float(divided.tensor_scale[0]) * t - 1) < 1e-6
    assert blockscale.quantize(x, "nvfp4", preset="flashinfer").tensor_scale_divides
    assert blockscale.quantize(x, "nvfp4", preset="ggml").tensor_scale is None


def test_axis_batch_strides_and_squares():
    x = sample(3, 40, 96)
    both = blockscale.quantize_both(x, "mxfp8_e4m3", "mxfp4", layout="128x4")
    rows, columns = blockscale.quantize(x, "mxfp8_e4m3", layout="128x4"), blockscale.quantize(x, "mxfp4", axis=-2,
                                                                                             layout="128x4")
    assert rows.shape == (3, 40, 96) and columns.shape == (3, 96, 40) and columns.batch == 3
    for got, expected in zip(both, (rows, columns)):
        assert np.array_equal(got.codes, expected.codes) and np.array_equal(got.scales, expected.scales)
    turned = blockscale.quantize(np.ascontiguousarray(x.swapaxes(1, 2)), "mxfp4", layout="128x4")
    assert np.array_equal(turned.codes, columns.codes) and np.array_equal(turned.scales, columns.scales)
    strided = blockscale.quantize(x[::2, ::-1, ::3], "mxfp4")
    assert np.array_equal(strided.codes, blockscale.quantize(x[::2, ::-1, ::3].copy(), "mxfp4").codes)
    one = blockscale.quantize(x[1], "mxfp8_e4m3", layout="128x4")
    assert np.array_equal(rows.codes[1], one.codes) and np.array_equal(rows.scales[1], one.scales)
    squares = blockscale.quantize(x[0], "mxfp4", block_rows=32)
    other = blockscale.quantize(x[0].T, "mxfp4", block_rows=32)
    assert np.array_equal(squares.dequantize(), other.dequantize().T)


def test_options_reach_the_library():
    x = sample(8, 64)
    seeds = [blockscale.quantize(x, "mxfp4", rounding="stochastic", seed=seed).codes for seed in (1, 1, 2)]
    assert np.array_equal(seeds[0], seeds[1]) and not np.array_equal(seeds[0], seeds[2])
    floor = blockscale.quantize(x, "mxfp4", recipe="floor").scales
    largest = np.abs(x).reshape(8, 2, 32).max(-1)
    assert np.array_equal(floor, (np.floor(np.log2(largest)) - 2 + 127).astype(np.uint8))
    wrong = x.copy()
    wrong[0, 0], wrong[1, 0] = np.nan, np.inf
    assert blockscale.quantize(wrong, "mxfp4").scales[:2, 0].tolist() == [255, 255]
    saturated = blockscale.quantize(wrong, "mxfp4", nonfinite="saturate")
    assert saturated.scales.max() < 255 and np.isfinite(saturated.dequantize()).all()
    assert blockscale.quantize(x, "mxfp4", smallest_scale=140).scales.min() >= 140
    assert blockscale.quantize(x, "mxfp4", clamp=(0.0, 1.0)).scales.max() == 125       # 1 / 6 under 2^-2
    assert np.isnan(blockscale.quantize(x * 0 + 1e9, "e4m3", saturate=False).dequantize()).all()


def test_merged_tensor_scales():
    parts = [blockscale.quantize(sample(rows, 48) * size, "nvfp4", layout=layout)
             for rows, size, layout in ((5, 1.0, "linear"), (9, 0.3, "128x4"))]
    scales, tensor_scale, stats = blockscale.merge_tensor_scales(parts)
    factors = [float(part.tensor_scale[0]) for part in parts]
    assert tensor_scale[0] == np.float32(max(factors)) and scales.shape == (14, 3) and stats.scales == 42
    of = [oracle.scale_values(oracle.linear_scales(part.scales, part.layout, part.rows, 3), "ue4m3") for part in parts]
    exact = np.concatenate([values * factor for values, factor in zip(of, factors)]) / max(factors)
    assert np.array_equal(scales, exact.astype(ml_dtypes.float8_e4m3fn).view(np.uint8))
    error = np.abs(oracle.scale_values(scales, "ue4m3") - exact)[exact > 0] / exact[exact > 0]
    assert np.isclose(stats.worst_error, error.max(), rtol=1e-9) and stats.rounded_scales == np.count_nonzero(error)
    for wrong in ([], [np.zeros(3)], [parts[0], blockscale.quantize(sample(4, 48), "mxfp4")]):
        with pytest.raises(blockscale.Error):
            blockscale.merge_tensor_scales(wrong)


def test_stats_are_those_of_the_numbers():
    x = sample(16, 64)
    m, stats = blockscale.quantize(x, "mxfp4", stats=True)
    exact = x.astype(np.float64)
    noise = np.sum((exact - m.dequantize("float64")) ** 2)
    assert stats.elements == 1024 and stats.blocks == 32 and stats.amax == np.abs(exact).max()
    assert np.isclose(stats.signal, np.sum(exact ** 2), rtol=1e-12) and np.isclose(stats.noise, noise, rtol=1e-12)
    assert np.isclose(stats.snr_db, 10 * np.log10(np.sum(exact ** 2) / noise))
    assert np.array_equal(stats.scale_histogram, np.bincount(m.scales.ravel(), minlength=256))


def test_out_is_written_in_place():
    x, y = sample(8, 64), sample(8, 64)
    m = blockscale.quantize(x, "nvfp4", layout="128x4", packing="high_first")
    codes = m.codes
    assert blockscale.quantize(y, "nvfp4", out=m) is m and m.codes is codes
    again = blockscale.quantize(y, "nvfp4", layout="128x4", packing="high_first")
    assert np.array_equal(codes, again.codes) and np.array_equal(m.tensor_scale, again.tensor_scale)
    with pytest.raises(ValueError, match="out has the format nvfp4"):
        blockscale.quantize(y, "mxfp4", out=m)


def test_hadamard_is_the_matrix():
    x = sample(5, 64, dtype=np.float64)
    signs = RANDOM.choice([-1, 1], 32).astype(np.int8)
    h = np.array([[(-1) ** bin(i & j).count("1") for j in range(32)] for i in range(32)]) / np.sqrt(32)
    expected = ((x.reshape(5, 2, 32) * signs) @ h.T).reshape(5, 64)
    turned = blockscale.hadamard(x, 32, signs)
    assert np.allclose(turned, expected, rtol=1e-12, atol=1e-300 + np.abs(expected).max() * 1e-14)
    assert np.allclose(blockscale.hadamard(turned, 32, signs, inverse=True), x, rtol=1e-9, atol=np.abs(x).max() * 1e-12)
    same = x.copy()
    assert blockscale.hadamard(same, 32, signs, out=same) is same and np.array_equal(same, turned)


@pytest.mark.parametrize("name", oracle.FORMATS)
def test_from_parts_takes_what_ml_dtypes_wrote(name):
    element, bits, kind, block = oracle.FORMATS[name]
    dtype = np.int8 if element == "int8" else oracle.ELEMENTS[element]
    codes = RANDOM.integers(0, 1 << bits, (6, 96)).astype(np.uint8).view(dtype)
    scales = RANDOM.integers(100, 120, (6, 96 // block)).astype(np.uint8)
    scales = scales.view(ml_dtypes.float8_e8m0fnu if kind == "e8m0" else ml_dtypes.float8_e4m3fn)
    m = blockscale.from_parts(codes, scales, name, packing="bytes")
    assert m.codes is codes and m.scales is scales and m.shape == (6, 96)
    numbers = codes.astype(np.float64) / (64 if element == "int8" else 1)
    expected = numbers * np.repeat(scales.astype(np.float64), block, 1)
    assert np.array_equal(m.dequantize("float64"), expected, equal_nan=True)


def test_from_parts_reads_pitches_and_batches():
    x = sample(4, 6, 64)
    m = blockscale.quantize(x, "mxfp4")
    wide_codes, wide_scales = np.zeros((4, 9, 40), np.uint8), np.zeros((4, 9, 5), np.uint8)
    wide_codes[:, :6, :32], wide_scales[:, :6, :2] = m.codes, m.scales
    inner = blockscale.from_parts(wide_codes[:, :6, :32], wide_scales[:, :6, :2], "mxfp4")
    assert np.array_equal(inner.dequantize(), m.dequantize())
    every_other = blockscale.from_parts(m.codes[::2], m.scales[::2], "mxfp4")
    assert np.array_equal(every_other.dequantize(), m.dequantize()[::2])
    odd = blockscale.quantize(x[0, :, :33], "mxfp4")
    assert np.array_equal(blockscale.from_parts(odd.codes, odd.scales, "mxfp4", shape=(6, 33)).dequantize(),
                          odd.dequantize())
    turned = blockscale.quantize(x, "mxfp4", layout="128x4")
    assert np.array_equal(blockscale.from_parts(turned.codes, turned.scales, "mxfp4", layout="128x4").dequantize(),
                          m.dequantize())


@pytest.mark.parametrize("name", oracle.FORMATS)
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_bytes_that_belong_to_nothing_are_zeros(name, layout, monkeypatch):
    def dirty(*arguments):
        made = empty(*arguments)
        made.view(np.uint8)[...] = 0xa5
        return made
    empty = _arrays.empty
    x = sample(9, 83)
    m = blockscale.quantize(x, name, layout=layout)
    monkeypatch.setattr(_arrays, "empty", dirty)
    again = blockscale.quantize(x, name, layout=layout)
    monkeypatch.undo()
    assert again.codes.tobytes() == m.codes.tobytes() and again.scales.tobytes() == m.scales.tobytes()
    used = oracle.linear_scales(m.scales, layout, 9, -(-83 // oracle.FORMATS[name][3]))
    assert np.count_nonzero(again.scales) == np.count_nonzero(used)


def test_gguf_blocks():
    for name, entries in (("mxfp4", 2 * 17), ("nvfp4", 36)):
        x = sample(5, 64)
        m = blockscale.quantize(x, name, packing="gguf", tensor_scale="none")
        plain = blockscale.quantize(x, name, tensor_scale="none")
        assert m.codes.shape == (5, entries) and np.array_equal(m.dequantize(), plain.dequantize())
        assert np.array_equal(blockscale.from_parts(m.codes, format=name, packing="gguf").dequantize(),
                              plain.dequantize())


@pytest.mark.parametrize("call, words", [
    (lambda x: blockscale.quantize(x, "mxfp5"), "format='mxfp5'"),
    (lambda x: blockscale.quantize(x, "mxfp4", layout="9x9"), "9x9"),
    (lambda x: blockscale.quantize(x, "mxfp4", recipe="best"), "recipe='best'"),
    (lambda x: blockscale.quantize(x, "mxfp4", packing="bit_stream"), "packing"),
    (lambda x: blockscale.quantize(x, "mxfp4", axis=0 - 3), "axis=-3"),
    (lambda x: blockscale.quantize(x, "mxfp4", tensor_scale="compute"), "tensor_scale"),
    (lambda x: blockscale.quantize(x, "mxfp4", tensor_scale="large"), "tensor_scale='large'"),
    (lambda x: blockscale.quantize(x, "nvfp4", tensor_scale=-1.0), "tensor_scale"),
    (lambda x: blockscale.quantize(x, "mxfp4", seed=-1), "seed=-1"),
    (lambda x: blockscale.quantize(x, "mxfp4", smallest_scale=256), "smallest_scale=256"),
    (lambda x: blockscale.quantize(x, "mxfp4", block_rows=7), "block_rows"),
    (lambda x: blockscale.quantize(x[0], "mxfp4"), "x has 1 dimensions"),
    (lambda x: blockscale.quantize(x.astype(np.int32), "mxfp4"), "x has the type int32"),
    (lambda x: blockscale.quantize(x.tolist(), "mxfp4"), "x is a list"),
    (lambda x: blockscale.quantize(x.astype(">f4"), "mxfp4"), "another machine"),
    (lambda x: blockscale.dequantize(x), "m is a ndarray"),
    (lambda x: blockscale.quantize(x, "mxfp4").dequantize("int8"), "dtype=int8"),
    (lambda x: blockscale.quantize(x, "mxfp4").dequantize(out=np.zeros((4, 63), np.float32)), "out has the shape"),
    (lambda x: blockscale.hadamard(x, 48), "size"),
    (lambda x: blockscale.hadamard(x, 16, np.ones(15, np.int8)), "signs has the type int8 and the shape"),
    (lambda x: blockscale.from_parts(np.zeros((4, 32), np.uint8), None, "mxfp4"), "scales is None"),
    (lambda x: blockscale.from_parts(np.zeros((4, 32), np.uint8), np.zeros((4, 1), np.uint8), "mxfp4"), "have 2 a row"),
    (lambda x: blockscale.from_parts(np.zeros((4, 32), np.uint8), np.zeros((4, 3), np.uint8), "mxfp4"), "have 2 a row"),
    (lambda x: blockscale.from_parts(np.zeros((4, 32), np.uint8), np.zeros((2, 4), np.uint8), "mxfp4"), "have 2 a row"),
    (lambda x: blockscale.from_parts(np.zeros((4, 32), np.uint8), np.zeros(4, np.uint8), "mxfp4"), "4 bytes"),
    (lambda x: blockscale.from_parts(np.zeros((4, 32), np.uint8), np.zeros((4, 2), np.float32), "mxfp4"), "float32"),
    (lambda x: blockscale.from_parts(np.zeros((4, 64), np.float32), np.zeros((4, 2), np.uint8), "mxfp4"), "float32"),
    (lambda x: blockscale.from_parts(np.zeros((4, 64), np.uint8)[:, ::2], np.zeros((4, 2), np.uint8), "mxfp4"),
     "strides"),
    (lambda x: blockscale.Matrix(), "quantize"),
])
def test_what_is_refused_is_named(call, words):
    with pytest.raises((blockscale.Error, TypeError), match=words.replace("(", r"\(")):
        call(sample(4, 64))


def test_read_only_results_are_refused():
    m = blockscale.quantize(sample(4, 64), "mxfp4")
    out = np.zeros((4, 64), np.float32)
    out.flags.writeable = False
    with pytest.raises(blockscale.InvalidError, match="read-only"):
        m.dequantize(out=out)
    assert not out.any()


def test_empty_matrices():
    for shape in ((0, 64), (4, 0), (0, 0)):
        m = blockscale.quantize(np.zeros(shape, np.float32), "mxfp4", layout="128x4")
        assert m.dequantize().shape == shape

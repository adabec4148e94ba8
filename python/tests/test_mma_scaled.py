"""mma_scaled with the shapes of tile languages, against fp64."""
import ml_dtypes
import numpy as np
import pytest

import blockscale

RANDOM = np.random.default_rng(3)
E8M0, E4M3 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn
# type of the codes, type of the scales, elements of a scale
KINDS = [(ml_dtypes.float8_e4m3fn, E8M0, 32), (ml_dtypes.float8_e5m2, E8M0, 32), (ml_dtypes.float6_e2m3fn, E8M0, 32),
         (ml_dtypes.float6_e3m2fn, E8M0, 32), (ml_dtypes.float4_e2m1fn, E8M0, 32), (ml_dtypes.float4_e2m1fn, E8M0, 16),
         (ml_dtypes.float4_e2m1fn, E4M3, 16), (np.int8, E8M0, 32)]


def codes(shape, dtype):
    if dtype is np.int8:
        return RANDOM.integers(-127, 128, shape).astype(np.int8)
    return (RANDOM.integers(-3, 4, shape) / 2).astype(dtype)


def scales(shape, dtype):
    if dtype is E8M0:
        return RANDOM.integers(125, 130, shape).astype(np.uint8).view(E8M0)
    return RANDOM.choice([0.5, 1.0, 1.5, 2.0], shape).astype(E4M3)


def numbers(x, s, block, axis):
    x = x.astype(np.float64) / (64 if x.dtype == np.int8 else 1)
    return x * np.repeat(s.astype(np.float64), block, axis)


@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize("other", range(len(KINDS)))
def test_every_pair(kind, other):
    (dx, sx, vx), (dy, sy, vy) = KINDS[kind], KINDS[other]
    m, n, k = 5, 7, 96
    x, x_scale = codes((m, k), dx), scales((m, k // vx), sx)
    y, y_scale = codes((k, n), dy), scales((k // vy, n), sy)
    acc = RANDOM.integers(-9, 9, (m, n)).astype(np.float32)
    product = numbers(x, x_scale, vx, -1) @ numbers(y, y_scale, vy, -2)
    found = blockscale.mma_scaled(x, x_scale, y, y_scale, acc)
    magnitude = np.abs(numbers(x, x_scale, vx, -1)) @ np.abs(numbers(y, y_scale, vy, -2)) + np.abs(acc)
    assert found.dtype == np.float32
    assert (np.abs(found - (product + acc)) <= magnitude * (k + 2) * 2.0 ** -24).all()
    turned = np.ascontiguousarray(y.T).T, np.ascontiguousarray(y_scale.T).T
    assert np.array_equal(blockscale.mma_scaled(x, x_scale, *turned, acc), found)


@pytest.mark.parametrize("leads", [((), (), ()), ((2,), (2,), (2,)), ((2,), (), None), ((), (3,), (3,)),
                                   ((1,), (3,), (1,)), ((2, 1), (3,), (1, 1)), ((), (), (2,)), ((1,), (1,), (1,)),
                                   ((2, 3), (2, 3), (2, 3)), ((0,), (), None)])
def test_leading_dimensions_broadcast(leads):
    lead_x, lead_y, lead_acc = leads
    x, x_scale = codes((*lead_x, 4, 64), E4M3), scales((*lead_x, 4, 2), E8M0)
    y, y_scale = codes((*lead_y, 64, 6), ml_dtypes.float4_e2m1fn), scales((*lead_y, 4, 6), E4M3)
    expected = numbers(x, x_scale, 32, -1) @ numbers(y, y_scale, 16, -2)
    acc = None
    if lead_acc is not None:
        acc = RANDOM.integers(-9, 9, (*lead_acc, 4, 6)).astype(np.float32)
        expected = expected + acc
    found = blockscale.mma_scaled(x, x_scale, y, y_scale, acc)
    assert found.shape == expected.shape and np.array_equal(found, expected.astype(np.float32))     # whole sums


def test_what_is_refused_is_named():
    x, x_scale = codes((4, 64), E4M3), scales((4, 2), E8M0)
    y, y_scale = codes((64, 6), E4M3), scales((2, 6), E8M0)
    for arguments, words in (((x, x_scale[:, :1], y, y_scale), "no format"),
                             ((x, x_scale[:3], y, y_scale), "x_scale has the shape"),
                             ((x[:, :32], x_scale[:, :1], y, y_scale), "y has K = 64, x has K = 32"),
                             ((x.astype(np.float32), x_scale, y, y_scale), "no format"),
                             ((x, x_scale, y, y_scale, np.zeros((4, 5), np.float32)), "acc has the type"),
                             ((x[None][[0, 0]], x_scale[None][[0, 0]], y[None][[0] * 3], y_scale[None][[0] * 3]),
                              "do not broadcast")):
        with pytest.raises(blockscale.InvalidError, match=words):
            blockscale.mma_scaled(*arguments)

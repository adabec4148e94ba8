"""Arrays of JAX on the CPU: taken where they lie, given back as JAX's.  Where JAX is installed."""
import gc

import numpy as np
import pytest

import blockscale
from blockscale import _arrays, _dlpack
import oracle

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

pytestmark = pytest.mark.skipif(jax is None, reason="JAX is not installed")

RANDOM = np.random.default_rng(9)


def whole(*shape):
    return RANDOM.integers(-3, 4, shape).astype(np.float32)


@pytest.mark.parametrize("name", oracle.FORMATS)
def test_quantize_and_multiply(name):
    x, w = whole(12, 70), whole(9, 70)
    m, expected = blockscale.quantize(jnp.asarray(w), name), blockscale.quantize(w, name)
    assert isinstance(m.codes, jax.Array) and isinstance(m.scales, jax.Array)
    assert np.array_equal(np.asarray(m.codes), expected.codes) and np.array_equal(np.asarray(m.scales), expected.scales)
    back = m.dequantize()
    assert isinstance(back, jax.Array) and np.array_equal(np.asarray(back), expected.dequantize())
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float16):
        d = blockscale.matmul(jnp.asarray(x, dtype), m)
        assert isinstance(d, jax.Array) and np.array_equal(np.asarray(d), blockscale.matmul(x, expected))
    d = blockscale.matmul(jnp.asarray(x), m, out_dtype="bfloat16", bias=jnp.ones(9))
    assert d.dtype == jnp.bfloat16 and jnp.isfinite(d + 1).all()


def test_nothing_is_copied_or_kept():
    x = jnp.asarray(whole(4, 64))
    assert _arrays.view(x, "x").pointer == x.unsafe_buffer_pointer()
    m = blockscale.quantize(x, "mxfp4")
    made = blockscale.from_parts(m.codes, m.scales, "mxfp4")
    assert made.codes is m.codes and np.array_equal(np.asarray(made.dequantize()), np.asarray(m.dequantize()))
    del m, made
    gc.collect()
    assert not _dlpack._handed_out

"""Arrays of CuPy and JAX on a GPU: taken where they lie, in their stream.  Where there is a GPU, and one of the two."""
import os

import numpy as np
import pytest

import blockscale
from blockscale._device_array import DeviceArray
import oracle

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")     # JAX would take most of the GPU's memory

try:
    import cupy
    HAS_CUPY = cupy.cuda.runtime.getDeviceCount() > 0
except Exception:                         # absent, or without a driver: CuPy has errors of its own for that
    HAS_CUPY = False

try:
    import jax
    JAX_GPUS = [device for device in jax.devices() if device.platform == "gpu"]
except Exception:                         # absent, or without a backend
    JAX_GPUS = []

WITH_CUPY = pytest.mark.skipif(not HAS_CUPY, reason="no CuPy with a GPU")
WITH_JAX = pytest.mark.skipif(not JAX_GPUS, reason="no JAX with a GPU")
RANDOM = np.random.default_rng(11)


def whole(*shape):
    return RANDOM.integers(-3, 4, shape).astype(np.float32)


def quantize(x, name):
    """Of whole numbers: a tensor scale would make them others, and sums depend on their order."""
    return blockscale.quantize(x, name, tensor_scale="none")


def host(array):
    """In host memory, whoever made it."""
    if isinstance(array, DeviceArray):
        return array.numpy()
    return array.get() if hasattr(array, "get") else np.asarray(array)


@WITH_CUPY
@pytest.mark.parametrize("name", oracle.FORMATS)
def test_cupy(name):
    x, w = whole(12, 96), whole(40, 96)
    m, expected = quantize(cupy.asarray(w), name), quantize(w, name)
    assert isinstance(m.codes, cupy.ndarray) and np.array_equal(host(m.codes), expected.codes)
    assert np.array_equal(host(m.scales), expected.scales)
    assert np.array_equal(host(m.dequantize()), expected.dequantize())
    d = blockscale.matmul(cupy.asarray(x, cupy.float16), m)
    assert isinstance(d, cupy.ndarray) and np.array_equal(host(d), blockscale.matmul(x, expected))
    out = cupy.full((12, 40), cupy.nan, cupy.float32)
    assert blockscale.matmul(cupy.asarray(x, cupy.float16), m, out=out) is out
    assert np.array_equal(host(out), host(d))


@WITH_CUPY
def test_cupys_stream_is_honoured():
    x, w = whole(64, 4096), whole(64, 4096)
    m = blockscale.quantize(cupy.asarray(w), "mxfp8_e4m3")
    expected = blockscale.matmul(x, blockscale.quantize(w, "mxfp8_e4m3"))
    stream = cupy.cuda.Stream(non_blocking=True)
    numbers = cupy.zeros((64, 4096), cupy.float16)
    later = cupy.asarray(x, cupy.float16)
    big = cupy.ones((8192, 8192), cupy.float32)
    cupy.cuda.Device().synchronize()
    with stream:
        for _ in range(3):
            big = big @ big * np.float32(1 / 8192)   # keeps the stream at work while what follows is asked for
        numbers[...] = later
        d = blockscale.matmul(numbers, m, out_dtype="float32")
    stream.synchronize()
    assert np.array_equal(host(d), expected)


@WITH_JAX
@pytest.mark.parametrize("name", oracle.FORMATS)
def test_jax(name):
    x, w = whole(12, 96), whole(40, 96)
    on_gpu = jax.device_put(w, JAX_GPUS[0])
    m, expected = quantize(on_gpu, name), quantize(w, name)
    assert np.array_equal(host(m.codes), expected.codes) and np.array_equal(host(m.scales), expected.scales)
    numbers = jax.device_put(x, JAX_GPUS[0]).astype(jax.numpy.bfloat16) * 2      # JAX may still be at it
    d = blockscale.matmul(numbers, m, out_dtype="float32")
    assert np.array_equal(host(d), 2 * blockscale.matmul(x, expected))
    back = jax.dlpack.from_dlpack(d)
    assert np.array_equal(np.asarray(back), host(d))

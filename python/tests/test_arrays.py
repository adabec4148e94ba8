"""Arrays of other libraries: what is taken, by which address, and what is refused."""
import copy
import ctypes
import gc
import pickle

import ml_dtypes
import numpy as np
import pytest

import blockscale
from blockscale import _arrays, _dlpack
from blockscale._device_array import DeviceArray


def test_numpy_arrays_are_read_where_they_lie():
    for dtype in (np.float32, np.float16, np.float64, np.uint8, np.int8, np.int64, ml_dtypes.bfloat16,
                  ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn,
                  ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn):
        x = np.zeros((4, 6, 8), dtype)[1:, ::2, ::-1]
        found = _arrays.view(x, "x")
        assert found.pointer == x.ctypes.data and found.shape == x.shape and found.dtype == np.dtype(dtype).name
        assert found.strides == (48, 16, -1) and found.device == ("cpu", 0) and found.owner is x
        assert found.itemsize == x.itemsize and not found.contiguous()
        assert _arrays.view(np.ascontiguousarray(x), "x").contiguous()


class OnlyDlpack:
    """An array that NumPy alone could not see: DLPack of a version, and nothing else."""

    def __init__(self, x, old=False):
        self._x, self._old = x, old

    def __dlpack__(self, **options):
        if self._old and "max_version" in options:
            raise TypeError("no max_version in those days")
        return self._x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._x.__dlpack_device__()


@pytest.mark.parametrize("old", [False, True])
def test_dlpack_is_read_where_it_lies(old):
    for dtype in (np.float32, np.float16, np.float64, np.uint8, np.int8, np.int32, np.int64):
        x = np.zeros((3, 4, 5), dtype)[:, ::2]
        found = _arrays.view(OnlyDlpack(x, old), "x")
        assert found.pointer == x.ctypes.data and found.shape == x.shape and found.dtype == np.dtype(dtype).name
        assert found.strides == (20, 10, 1) and found.device == ("cpu", 0)
    x = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    m = blockscale.quantize(OnlyDlpack(x, old), "mxfp4")
    assert np.array_equal(m.codes, blockscale.quantize(x, "mxfp4").codes)
    y = blockscale.matmul(OnlyDlpack(x, old), m)
    assert np.array_equal(y, blockscale.matmul(x, m))


def test_dlpack_keeps_the_memory_alive():
    x = np.full((4, 64), 2, np.uint8)
    m = blockscale.from_parts(OnlyDlpack(x), np.full((4, 2), 127, np.uint8), "mxfp8_e5m2", shape=(4, 64))
    before = m.dequantize().copy()
    del x
    gc.collect()
    assert np.array_equal(m.dequantize(), before)


def test_arrays_of_our_own_are_handed_out_and_taken_back():
    for dtype in ("float32", "uint8", "bfloat16", "float64"):
        mine = DeviceArray((3, 5), dtype, ("cpu", 0))
        assert mine.as_view().pointer % 64 == 0 and mine.numpy().shape == (3, 5)
        found = _arrays.view(OnlyDlpack(mine), "x")
        assert found.pointer == mine.as_view().pointer and found.dtype == dtype and found.strides == (5, 1)
        assert len(_dlpack._handed_out) == 1
        del found                        # a capsule that nobody took
        assert not _dlpack._handed_out
    mine = DeviceArray((3, 5), "float32", ("cpu", 0))
    address = mine.as_view().pointer
    ctypes.memset(address, 0, 60)
    taken = np.from_dlpack(mine)
    del mine
    gc.collect()
    assert taken.ctypes.data == address and not taken.any() and len(_dlpack._handed_out) == 1
    del taken
    gc.collect()
    assert not _dlpack._handed_out


def test_dlpack_offsets_count():
    mine = DeviceArray((2, 5), "float32", ("cpu", 0))
    capsule = mine.__dlpack__()
    managed = next(iter(_dlpack._handed_out.values()))[0]
    managed.dl_tensor.byte_offset, managed.dl_tensor.shape[0] = 20, 1

    class Shifted:
        def __dlpack__(self, **options):
            return capsule
    assert _arrays.view(Shifted(), "x").pointer == mine.as_view().pointer + 20


@pytest.mark.parametrize("x, words", [
    ([1.0, 2.0], "x is a list"), (3.0, "x is a float"), (None, "x is a NoneType"),
    (np.zeros(3, np.complex64), "x has the type complex64"), (np.zeros(3, ">f4"), "another machine"),
    (np.zeros(4, np.uint8)[1:].view([("a", "u1"), ("b", "<u2")]), "x has the type"),
    (OnlyDlpack(np.zeros(3, np.complex64)), "DLPack's type"),
    (np.zeros(2, [("a", "u1"), ("b", "<f4")])["b"], "strides of"),
])
def test_what_is_refused_is_named(x, words):
    with pytest.raises(blockscale.InvalidError, match=words):
        _arrays.view(x, "x")


def test_types_have_many_names():
    for given in ("float32", "fp32", np.float32, np.dtype(np.float32)):
        assert _arrays.dtype_name(given) == "float32"
    assert _arrays.dtype_name(ml_dtypes.bfloat16) == _arrays.dtype_name("bf16") == "bfloat16"
    for wrong in ("float31", 7, object):
        with pytest.raises(blockscale.InvalidError, match="dtype="):
            _arrays.dtype_name(wrong)


def test_a_matrix_can_be_copied_and_pickled():
    x = np.random.default_rng(1).standard_normal((2, 5, 70)).astype(np.float32)
    for name, options in (("nvfp4", {"layout": "128x4"}), ("mxfp6_e2m3", {}), ("mxfp4", {"packing": "high_first"}),
                          ("bf16", {}), ("e4m3", {}), ("nvfp4", {"tensor_scale_divides": True})):
        m = blockscale.quantize(x, name, **options)
        for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            assert repr(other) == repr(m) and other.codes is not m.codes
            assert other.tensor_scale_divides == m.tensor_scale_divides
            assert np.array_equal(other.dequantize(), m.dequantize())


def test_a_matrix_says_what_it_is():
    m = blockscale.quantize(np.ones((2, 3, 64), np.float32), "nvfp4", layout="128x4")
    assert "nvfp4 2 x 3 x 64" in repr(m) and "128x4" in repr(m) and (m.rows, m.columns, m.batch) == (3, 64, 2)
    assert m.ndim == 3 and m.packing == "low_first" and m.nbytes == 2 * 3 * 32 + 2 * 512 + 4
    with pytest.raises(AttributeError):
        m.rank = 2

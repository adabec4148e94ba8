"""The .npy reader and writer against NumPy and ml_dtypes: every flipped bit of a head that we accept, NumPy accepts as
well and reads the same from; and NumPy reads what we write.  Argument: the shared library."""
import ctypes
import io
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from script import Skip, cases, check                  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

LIBRARY = sys.argv[1]
TYPES = ["<f2", "<f4", "<f8", "|i1", "|u1", "|V1", "|V2", "<u2"]       # in the order of bsm_npy_type


class Npy(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("type", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.c_int64 * 8),
                ("fortran_order", ctypes.c_bool), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t),
                ("descr", ctypes.c_char * 16)]


def library():
    lib = ctypes.CDLL(LIBRARY)
    context = ctypes.c_void_p()
    check(lib.bsm_context_create(None, ctypes.byref(context)) == 0, "no context")
    return lib, context


def parse(lib, context, data):
    """The array that we read, or None."""
    array = Npy(struct_size=ctypes.sizeof(Npy))
    if lib.bsm_npy_parse(context, data, ctypes.c_size_t(len(data)), ctypes.byref(array)) != 0:
        return None
    raw = ctypes.string_at(array.data, array.bytes) if array.bytes else b""
    order = "F" if array.fortran_order else "C"
    result = np.frombuffer(raw, dtype=TYPES[array.type]).reshape(tuple(array.shape[:array.rank]), order=order)
    lib.bsm_npy_release(context, ctypes.byref(array))
    return result


def saved(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def need(module, name):
    if module is None:
        raise Skip(f"{name} is not installed")


def same(ours, theirs):
    same_kind = ours.shape == theirs.shape and ours.dtype.itemsize == theirs.dtype.itemsize
    return same_kind and ours.tobytes() == theirs.tobytes()


def numpy_reads_what_we_accept():
    need(np, "NumPy")
    lib, context = library()
    accepted = 0
    rng = np.random.default_rng(1)
    for descr in ["<f4", "<f2", "<f8", "|i1", "|u1", "<u2", "|V1", "|V2"]:
        for shape, order, version in [((2, 3), "C", (1, 0)), ((3, 2), "F", (1, 0)), ((12,), "C", (2, 0)),
                                      ((), "C", (3, 0))]:
            random_bytes = rng.bytes(int(np.prod(shape)) * np.dtype(descr).itemsize)
            values = np.frombuffer(random_bytes, descr).reshape(shape, order=order)
            data = saved(values, version)
            check(same(parse(lib, context, data), values), f"{descr} {shape} reads differently")
            for bit in range(8 * (len(data) - values.nbytes)):
                damaged = bytearray(data)
                damaged[bit // 8] ^= 1 << bit % 8
                ours = parse(lib, context, bytes(damaged))
                if ours is None:
                    continue
                accepted += 1
                head = bytes(damaged)
                if b"f1'" in head[:40]:
                    continue                           # NumPy does not know ml_dtypes' '<f1'
                theirs = np.lib.format.read_array(io.BytesIO(head))
                check(same(ours, theirs),
                      f"{descr} {shape}, bit {bit}: {ours.shape} {ours.dtype}, NumPy {theirs.shape} {theirs.dtype}")
    check(accepted > 20, f"only {accepted} flips were accepted: nothing was compared")


def numpy_reads_what_we_write():
    need(np, "NumPy")
    lib, _ = library()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.npy")
        for kind, descr in enumerate(TYPES):
            for shape in [(), (0,), (5,), (2, 3), (3, 0, 2), (1, 2, 1, 2, 1, 2, 1, 2), (123456, 1)]:
                count = int(np.prod(shape)) * np.dtype(descr).itemsize
                data = (np.arange(count) % 251).astype(np.uint8).view(descr).reshape(shape)
                dimensions = (ctypes.c_int64 * 8)(*shape)
                status = lib.bsm_npy_write(path.encode(), kind, len(shape), dimensions,
                                           ctypes.c_void_p(data.ctypes.data))
                check(status == 0, f"{descr} {shape}: status {status}")
                with open(path, "rb") as file:
                    check(file.read() == saved(data, (1, 0)), f"{descr} {shape}: other bytes than NumPy's")
                check(same(np.load(path), data), f"{descr} {shape}: NumPy reads something else")


def views_as_ml_dtypes():
    need(np, "NumPy")
    need(ml_dtypes, "ml_dtypes")
    lib, context = library()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.npy")
        for kind, name in [(5, "float4_e2m1fn"), (5, "float6_e2m3fn"), (5, "float6_e3m2fn"), (5, "float8_e4m3fn"),
                           (5, "float8_e5m2"),
                           (5, "float8_e8m0fnu"), (6, "bfloat16")]:
            dtype = np.dtype(getattr(ml_dtypes, name))
            count = {"float4_e2m1fn": 16, "float6_e2m3fn": 64, "float6_e3m2fn": 64}.get(name, 256)
            codes = np.arange(count, dtype=np.uint8 if dtype.itemsize == 1 else np.uint16)
            values = codes.view(dtype)
            read = parse(lib, context, saved(values))
            check(read.tobytes() == codes.tobytes(), f"{name}: other codes than ml_dtypes'")
            dimensions = (ctypes.c_int64 * 1)(count)
            status = lib.bsm_npy_write(path.encode(), kind, 1, dimensions, ctypes.c_void_p(codes.ctypes.data))
            check(status == 0, f"{name}: not written")
            ours, theirs = np.load(path).view(dtype).astype(np.float32), values.astype(np.float32)
            check(ours.tobytes() == theirs.tobytes(), f"{name}: other values")


cases("test_npy_numpy", [numpy_reads_what_we_accept, numpy_reads_what_we_write, views_as_ml_dtypes])

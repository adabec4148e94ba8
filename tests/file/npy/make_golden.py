#!/usr/bin/env python3
"""Writes golden.h: files that NumPy and ml_dtypes made, byte by byte.  Run with both installed:

    python3 tests/file/npy/make_golden.py > tests/file/npy/golden.h

Byte i of every array's data is 7 i + 3 modulo 256, in the order of the file."""
import io
import sys

import ml_dtypes
import numpy as np

TYPES = [("FP16", "<f2"), ("FP32", "<f4"), ("FP64", "<f8"), ("INT8", "|i1"), ("UINT8", "|u1"), ("UINT16", "<u2"),
         ("BYTES", "|V1"),
         ("WORDS", "|V2"), ("BYTES", ml_dtypes.float4_e2m1fn), ("BYTES", ml_dtypes.float6_e2m3fn),
         ("BYTES", ml_dtypes.float6_e3m2fn),
         ("BYTES", ml_dtypes.float8_e4m3fn), ("BYTES", ml_dtypes.float8_e5m2), ("BYTES", ml_dtypes.float8_e8m0fnu),
         ("WORDS", ml_dtypes.bfloat16)]
SHAPES = [(), (0,), (5,), (2, 3), (3, 0, 2), (1, 2, 1, 3), (1, 1, 1, 1, 1, 1, 1, 2), (1234567, 0)]


def array(dtype, shape, order):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    data = bytes((7 * i + 3) % 256 for i in range(count * dtype.itemsize))
    flat = np.frombuffer(data, dtype=f"V{dtype.itemsize}").view(dtype)
    return flat.reshape(shape, order=order)


def print_row(name, kind, values, version):
    out = io.BytesIO()
    np.lib.format.write_array(out, values, version=version)
    fortran = values.flags.f_contiguous and not values.flags.c_contiguous
    bytes_ = out.getvalue()
    shape = ", ".join(str(n) for n in values.shape) or "0"
    print(f'    {{ "{name}", BSM_NPY_{kind}, {values.ndim}, {{ {shape} }}, {str(fortran).lower()}, '
          f'{version[0]}, {len(bytes_)},')
    for i in range(0, len(bytes_), 28):
        piece = bytes_[i:i + 28]
        text = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in piece)
        print('      "' + text + '"')
    print("    },")


print(f"/* Made by make_golden.py with NumPy {np.__version__} and ml_dtypes {ml_dtypes.__version__}. */")
print("static const struct golden goldens[] = {")
for kind, dtype in TYPES:
    name = np.dtype(dtype).name
    print_row(f"{name} 2x3", kind, array(dtype, (2, 3), "C"), (1, 0))
for shape in SHAPES:
    print_row("float32 " + "x".join(map(str, shape)), "FP32", array("<f4", shape, "C"), (1, 0))
for shape in [(2, 3), (3, 1, 2)]:
    print_row("fortran " + "x".join(map(str, shape)), "FP16", array("<f2", shape, "F"), (1, 0))
for version in [(2, 0), (3, 0)]:
    print_row(f"version {version[0]}", "FP64", array("<f8", (2, 2), "C"), version)
print("};")
sys.stdout.flush()

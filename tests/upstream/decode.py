"""What a checkpoint's bytes are worth, by NumPy alone: the second opinion beside blockscale and the upstream programs.

Nothing here comes from blockscale.  numbers(path) gives {name of the weight: fp64 array}: every product of an
element, a block scale and a tensor scale of these formats is exact in fp64."""

import glob
import json
import os
import struct

import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
PLAIN = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "U8": np.uint8,
    "I8": np.int8,
    "I32": np.int32,
    "I64": np.int64,
    "BOOL": np.bool_,
}


def minifloat(codes, exponent_bits, mantissa_bits, bias, nan=(), infinity=()):
    """What codes of 1 + exponent_bits + mantissa_bits bits are worth."""
    table = np.zeros(1 << (1 + exponent_bits + mantissa_bits))
    for code in range(len(table) // 2):
        exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        fraction = mantissa / (1 << mantissa_bits)
        table[code] = (fraction if exponent == 0 else 1 + fraction) * 2.0 ** (max(exponent, 1) - bias)
        table[code] = np.nan if code in nan else np.inf if code in infinity else table[code]
        table[code + len(table) // 2] = -table[code]
    return table[codes]


def e4m3(codes):
    return minifloat(codes, 4, 3, 7, nan=(127,))


def e5m2(codes):
    return minifloat(codes, 5, 2, 15, nan=(125, 126, 127), infinity=(124,))


def e8m0(codes):
    return np.where(codes == 255, np.nan, np.ldexp(1.0, codes.astype(np.int32) - 127))


def e2m1(packed):
    """Two to a byte, the low half first, along the last axis."""
    return E2M1[np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)]


def fp6(packed, exponent_bits, mantissa_bits, bias):
    """Four to three bytes, the first lowest, along the last axis."""
    b = packed.reshape(*packed.shape[:-1], -1, 3).astype(np.uint32)
    word = b[..., 0] | b[..., 1] << 8 | b[..., 2] << 16
    codes = np.stack([word >> shift & 63 for shift in (0, 6, 12, 18)], axis=-1)
    return minifloat(codes, exponent_bits, mantissa_bits, bias).reshape(*packed.shape[:-1], -1)


def tensor(kind, shape, content):
    if kind == "BF16":
        return (np.frombuffer(content, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return np.frombuffer(content, PLAIN.get(kind, np.uint8)).reshape(shape if kind[:2] not in ("F4", "F6") else -1)


def read_file(path):
    """{name: (type, array)} of one .safetensors file; codes come as bytes."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    return {
        name: (t["dtype"], tensor(t["dtype"], t["shape"], data[slice(*t["data_offsets"])]))
        for name, t in header.items()
    }


def read(path):
    """The same of a file or of all files of a folder."""
    files = sorted(glob.glob(os.path.join(path, "*.safetensors"))) if os.path.isdir(path) else [path]
    return {name: value for file in files for name, value in read_file(file).items()}


def spread(scales, shape):
    """One scale for so many rows and columns as there are: repeated to the shape of the numbers."""
    scales = scales.reshape(scales.shape + (1,) * (len(shape) - scales.ndim)) if scales.ndim < len(shape) else scales
    for axis, size in enumerate(shape):
        if scales.shape[axis] != size:
            scales = np.repeat(scales, -(-size // scales.shape[axis]), axis=axis)
            scales = np.take(scales, range(size), axis=axis)
    return scales


def block_scales(kind, scales):
    return (
        e8m0(scales) if kind in ("U8", "F8_E8M0") else e4m3(scales) if kind == "F8_E4M3" else scales.astype(np.float64)
    )


def codes_of(kind, codes, scale):
    """What codes are worth; rows of packed fp6 are told from fp4 by the number of scales."""
    if kind == "F8_E4M3":
        return e4m3(codes)
    if kind == "F8_E5M2":
        return e5m2(codes)
    if kind == "U8" and scale is not None and scale.shape[-1] * 24 == codes.shape[-1]:
        return fp6(codes, 2, 3, 1)  # compressed-tensors' are e2m3
    return e2m1(codes)


def fp6_rows(kind, codes, scale):
    rows = codes.reshape(*scale.shape[:-1], -1)
    return fp6(rows, 2, 3, 1) if kind == "F6_E2M3" else fp6(rows, 3, 2, 3)


def one_weight(tensors, name, kind, codes):
    """(name of the weight, numbers) if the tensor holds codes, else None."""

    def beside(ending):
        return tensors.get(stem + ending, (None, None))

    for ending, scale_ending in (
        ("_blocks", "_scales"),
        (".weight_packed", ".weight_scale"),
        (".weight", ".weight_scale"),
        (".weight", ".weight_scale_inv"),
    ):
        stem = name[: -len(ending)]
        if not name.endswith(ending) or stem + scale_ending not in tensors:
            continue
        scale_kind, scale = beside(scale_ending)
        if ending == "_blocks":
            return stem, (e2m1(codes) * e8m0(scale)[..., None]).reshape(*scale.shape[:-1], -1)
        values = fp6_rows(kind, codes, scale) if kind[:2] == "F6" else codes_of(kind, codes, scale)
        values = values * spread(block_scales(scale_kind, scale), values.shape)
        if stem + ".weight_scale_2" in tensors:
            values = values * float(beside(".weight_scale_2")[1].reshape(()))
        if stem + ".weight_global_scale" in tensors:
            values = values / float(beside(".weight_global_scale")[1].reshape(()))
        return stem + ".weight", values
    return None


SCALES = (
    "_scales",
    ".weight_scale",
    ".weight_scale_2",
    ".weight_global_scale",
    ".weight_scale_inv",
    ".input_scale",
    ".input_global_scale",
    ".weight_shape",
)


def numbers(path):
    """{name: fp64 array} of every weight and every other tensor that is not a scale."""
    tensors, result = read(path), {}
    for name, (kind, values) in tensors.items():
        weight = one_weight(tensors, name, kind, values)
        if weight is not None:
            result[weight[0]] = weight[1]
        elif not name.endswith(SCALES):
            result[name] = values.astype(np.float64)
    return result


def different(got, wanted):
    """How many numbers are not the same; -0 and 0 are."""
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    if got.shape != wanted.shape:
        raise AssertionError(f"shape {got.shape}, not {wanted.shape}")
    return int(np.count_nonzero((got != wanted) & ~(np.isnan(got) & np.isnan(wanted))))

#!/usr/bin/env python3
"""Writes golden_presets.h: scales and codes that other projects compute.

    make_golden_presets.py FOLDER >tests/quantize/golden_presets.h

FOLDER holds torchao/, modelopt/, compressed_tensors/ and gguf/ (wheels torchao 0.18.0, nvidia-modelopt 0.47.0, compressed-tensors
0.20.0, gguf 0.19.0, unpacked), transformer_engine.py (TransformerEngine d0067d0d, pytorch/custom_recipes/reference_nvfp4.py) and
ggml/ (a checkout, d99724f2).  NumPy, ml_dtypes and a C compiler are needed.

ggml's C is compiled and run, gguf's NumPy code too.  The others are written for PyTorch: their functions are taken out of their files
as they are and run over NumPy arrays in the place of tensors.  Both are IEEE fp32 operations, one by one; logarithms are those of
doubles, rounded.  Nothing here goes through a GPU."""
import ast
import os
import subprocess
import sys
import tempfile
import types

import ml_dtypes
import numpy as np

np.seterr(all="ignore")
ROWS, COLUMNS, KINDS = 40, 64, 8
MASK = (1 << 64) - 1


# Inputs: test_presets.c makes the same -------------------------------------------------------------------------------

def random_bits(index):
    x = (index + 1) * 0x9e3779b97f4a7c15 & MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return (x ^ x >> 31) & MASK


def input_bits(row, column):
    bits, kind = random_bits(row * COLUMNS + column), row % KINDS
    sign, fraction, small = bits >> 63 << 31, bits >> 8 & 0x7fffff, bits & 0xff
    if kind == 0:                                       # numbers around 1
        return sign | 124 + small % 6 << 23 | fraction
    if kind == 1:                                       # few bits: ties
        return sign | 124 + small % 4 << 23 | fraction & 0x780000
    if kind == 2:                                       # of many sizes
        return sign | 100 + small % 50 << 23 | fraction
    if kind == 3:                                       # tiny, some subnormal
        return sign | small % 12 << 23 | fraction
    if kind == 4:                                       # huge
        return sign | 239 + small % 15 << 23 | fraction
    if kind == 5:                                       # the largest of each 16: beside a format's largest number times 2^k
        largest = (0x40c00000, 0x43e00000, 0x40f00000, 0x41e00000)[column // 16 % 4]    # 6, 448, 7.5, 28
        if column % 16 == 3:
            return sign | largest + (row * 5 % 60 - 30 << 23) + (column // 16 + row // KINDS) % 5 - 2
        return sign | 98 + row * 5 % 60 - 4 + small % 3 << 23 | fraction
    if kind == 6:                                       # zeros of both signs among a few numbers
        return sign | (120 + small % 8 << 23 | fraction if small % 5 == 0 else 0)
    return sign | ((128 if column < 16 else 100 + column // 16) << 23 | fraction if column < 48 else 0)     # flushed and zero blocks


def inputs():
    return np.array([[input_bits(r, c) for c in range(COLUMNS)] for r in range(ROWS)], dtype=np.uint64).astype(np.uint32).view(np.float32)


# NumPy in the place of PyTorch ---------------------------------------------------------------------------------------

E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)


class Tensor(np.ndarray):
    def view(self, *shape):
        return np.ndarray.view(self, shape[0]) if isinstance(shape[0], (np.dtype, type)) else self.reshape(*shape)

    def to(self, kind):
        return self.astype(kind) if isinstance(kind, np.dtype) else self

    def size(self, axis): return self.shape[axis]
    def float(self): return self.astype(np.float32)
    def abs(self): return np.abs(self)
    def abs_(self): return np.abs(self)
    def clamp(self, min=None, max=None): return clamp(self, min, max)
    def clamp_(self, min=None, max=None): return clamp(self, min, max)
    def mul_(self, other): return self * other
    def clone(self): return self.copy()
    def unsqueeze(self, axis): return np.expand_dims(self, axis)
    def is_contiguous(self): return True
    def numel(self): return int(np.prod(self.shape))

    def max(self, dim=None, keepdim=False, **more):
        if dim is None:
            return np.ndarray.max(self, **more)
        return types.SimpleNamespace(values=np.ndarray.max(self, axis=dim, keepdims=keepdim))

    def __and__(self, other):
        return np.ndarray.__and__(self, other - (1 << 32) if isinstance(other, int) and other >= 1 << 31 else other)

    device = "cpu"


def tensor(value, dtype=None, device=None):
    if dtype is None and not isinstance(value, np.ndarray):
        dtype = np.float32                              # PyTorch's default
    return np.asarray(value, dtype=dtype).view(Tensor)


def clamp(x, min=None, max=None):
    low = x if min is None else np.where(x < min, tensor(min, x.dtype), x)
    return (low if max is None else np.where(low > max, tensor(max, x.dtype), low)).view(Tensor)


def where(condition, x, y):
    kind = next((v.dtype for v in (x, y) if isinstance(v, np.ndarray)), np.float32)
    return np.where(condition, tensor(x, kind), tensor(y, kind)).view(Tensor)


def amax(x, dim=None, axis=None, keepdim=False): return np.amax(x, axis=dim, keepdims=keepdim)
def log2(x): return np.log2(x.astype(np.float64)).astype(np.float32)
def exp2(x): return np.ldexp(np.float32(1), x.astype(np.int32)).astype(np.float32).view(Tensor)     # of whole numbers alone
def finfo(kind): return ml_dtypes.finfo(kind)


torch = types.SimpleNamespace(
    Tensor=Tensor, float32=np.dtype(np.float32), float=np.dtype(np.float32), bfloat16=np.dtype(ml_dtypes.bfloat16), float16=np.dtype(np.float16),
    float64=np.dtype(np.float64), uint8=np.dtype(np.uint8), int32=np.dtype(np.int32), int64=np.dtype(np.int64), uint16=np.dtype(np.uint16),
    uint32=np.dtype(np.uint32), uint64=np.dtype(np.uint64), float8_e4m3fn=E4M3, float8_e5m2=E5M2, float8_e8m0fnu=np.dtype(np.uint8),
    float4_e2m1fn_x2="float4", dtype=np.dtype, long=np.dtype(np.int64), tensor=tensor, clamp=clamp, where=where, log2=log2, exp2=exp2, finfo=finfo,
    amax=lambda x, dim=None, keepdim=False: np.amax(x, axis=dim, keepdims=keepdim), abs=np.abs, isnan=np.isnan, isinf=np.isinf, ceil=np.ceil,
    floor=np.floor, sign=np.sign, maximum=np.maximum, min=np.minimum, round=np.round, copysign=np.copysign, div=np.divide,
    max=lambda x, *other: np.maximum(x, *other) if other else np.max(x), reciprocal=lambda x: np.float32(1) / x,
    sum=lambda x, dim: np.sum(x, axis=dim), any=lambda x, dim: np.any(x, axis=dim), logical_and=np.logical_and, logical_or=np.logical_or,
    logical_not=np.logical_not, bitwise_and=lambda x, mask: x & mask, bitwise_left_shift=np.left_shift, bitwise_right_shift=np.right_shift,
    full_like=lambda x, value, dtype: np.full_like(x, value, dtype=dtype), zeros=lambda shape, dtype, device: np.zeros(shape, dtype).view(Tensor), zeros_like=lambda x, dtype=None, device=None: np.zeros_like(x, dtype=dtype),
    searchsorted=lambda bounds, x, out_int32: np.searchsorted(bounds, x).astype(np.int32).view(Tensor), is_floating_point=lambda x: x.dtype.kind == "f",
    nan_to_num=lambda x, nan, posinf, neginf: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    _dynamo=types.SimpleNamespace(is_compiling=lambda: False), compiler=types.SimpleNamespace(is_compiling=lambda: False))


def taken(path, names, **more):
    """Functions, classes and constants of a file by their names, run as they are but for decorators and annotations."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    kept = []
    for node in tree.body:
        name = getattr(node, "name", None)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        if name in names:
            if isinstance(node, ast.FunctionDef):
                node.decorator_list = []
            kept.append(node)
    scope = {"torch": torch, "Tensor": Tensor, "__name__": "taken", **more}
    future = ast.ImportFrom(module="__future__", names=[ast.alias(name="annotations")], level=0)
    code = ast.fix_missing_locations(ast.Module(body=[future, *kept], type_ignores=[]))
    exec(compile(code, path, "exec"), scope)
    found = types.SimpleNamespace(**scope)
    missing = [name for name in names if not hasattr(found, name)]
    assert not missing, f"{path} has no {missing}"
    return found


# Projects: each gives (tensor scale or None, scale codes, element codes one per byte) of a row -----------------------

def unpacked(packed):
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def bytes_of(x): return np.ascontiguousarray(np.asarray(x)).view(np.uint8)


def torchao(folder):
    mx = os.path.join(folder, "torchao", "prototype")
    names = ["DTYPE_FP6_E2M3", "DTYPE_FP6_E3M2", "F8E4M3_MAX", "F8E5M2_MAX", "F8E4M3_MAX_POW2", "F8E5M2_MAX_POW2", "F6_E2M3_MAX_POW2",
             "F6_E3M2_MAX_POW2", "F4_E2M1_MAX_POW2", "E8M0_EXPONENT_BIAS", "E8M0_EXPONENT_NAN_VAL", "F32_EXP_BIAS", "F32_MIN_NORMAL", "F6_E2M3_MAX",
             "F6_E3M2_MAX", "F4_E2M1_MAX"]
    found = taken(os.path.join(mx, "mx_formats", "constants.py"), names)
    constants = {name: getattr(found, name) for name in names}
    bits = {"MBITS_F32": 23, "EBITS_F32": 8, "SBITS": 1, "MBITS_F8_E4M3": 3, "MBITS_F8_E5M2": 2, "MBITS_F4_E2M1": 1, "EBITS_F4_E2M1": 2,
            "EBITS_F6_E2M3": 2, "MBITS_F6_E2M3": 3, "EBITS_F6_E3M2": 3, "MBITS_F6_E3M2": 2, "F32_EXP_BIAS": 127, "_n_ones": lambda n: (1 << n) - 1}
    cast = taken(os.path.join(mx, "custom_fp_utils.py"), ["_f32_to_floatx_unpacked"], **bits)
    kernels = taken(os.path.join(mx, "mx_formats", "kernels.py"), ["f32_to_f4_unpacked", "f32_to_f6_e2m3_unpacked", "f32_to_f6_e3m2_unpacked"],
                    _f32_to_floatx_unpacked=cast._f32_to_floatx_unpacked, **bits)
    modes = types.SimpleNamespace(FLOOR=0, RCEIL=1, CEIL=2, EVEN=3)
    casts = {name: getattr(kernels, name) for name in ("f32_to_f4_unpacked", "f32_to_f6_e2m3_unpacked", "f32_to_f6_e3m2_unpacked")}
    elements = {"mxfp8_e4m3": E4M3, "mxfp8_e5m2": E5M2, "mxfp6_e3m2": constants["DTYPE_FP6_E3M2"], "mxfp6_e2m3": constants["DTYPE_FP6_E2M3"],
                "mxfp4": "float4"}
    to_mx = taken(os.path.join(mx, "mx_formats", "mx_tensor.py"), ["to_mx"], ScaleCalculationMode=modes, pack_uint4=lambda x: x,
                  SUPPORTED_ELEM_DTYPES=list(elements.values()), **{**constants, **bits, **casts}).to_mx
    nvfp4 = taken(os.path.join(mx, "mx_formats", "nvfp4_tensor.py"), ["E4M3_EPS", "nvfp4_quantize", "per_tensor_amax_to_scale"],
                  pack_uint4=lambda x: x, **{**constants, **casts})

    def mx_row(element):
        def row(x):
            scales, data = to_mx(x.reshape(1, -1), element, 32)
            return None, bytes_of(scales), bytes_of(data)
        return row

    def nvfp4_row(x):
        t = nvfp4.per_tensor_amax_to_scale(np.max(np.abs(x)).view(Tensor))
        scales, data = nvfp4.nvfp4_quantize(x.reshape(1, -1), 16, tensor(t).reshape(()))
        return t, bytes_of(scales), bytes_of(data)
    return [("TORCHAO", name, mx_row(element)) for name, element in elements.items()] + [("TORCHAO", "nvfp4", nvfp4_row)]


def modelopt(folder):
    path = os.path.join(folder, "modelopt", "torch", "quantization", "qtensor")

    class Base:
        def __init__(self, shape, dtype, data): self.data = data

    def block_amax(x, block_sizes): return np.max(np.abs(x).reshape(*x.shape[:-1], -1, block_sizes[-1]), axis=-1)
    helpers = {"BaseQuantizedTensor": Base, "reduce_block_amax": block_amax, "reduce_amax": lambda x: np.max(np.abs(x)).view(Tensor),
               "reduce_block_padding": lambda x, block_sizes: x, "E2M1_MAX": 6.0, "E4M3_MAX": 448.0}
    mxfp4 = taken(os.path.join(path, "mxfp4_tensor.py"), ["MXFP4QTensor"], **helpers).MXFP4QTensor
    mxfp8 = taken(os.path.join(path, "mxfp8_tensor.py"), ["MXFP8QTensor"], **helpers).MXFP8QTensor
    nvfp4 = taken(os.path.join(path, "nvfp4_tensor.py"), ["e2m1_bounds", "e2m1_values", "_cast_per_block_scale_to_fp8", "NVFP4QTensor"], **helpers).NVFP4QTensor

    def mxfp4_row(x):
        quantized, scales = mxfp4.quantize(x.reshape(1, -1), 32)
        return None, bytes_of(scales), unpacked(quantized.data)

    def mxfp8_row(x):
        quantized, scales = mxfp8.quantize(x.reshape(1, -1))
        return None, bytes_of(scales), bytes_of(quantized.data)

    def nvfp4_row(x):
        quantized, scales, t = nvfp4.quantize(x.reshape(1, -1).copy(), 16)
        return t, bytes_of(scales), unpacked(quantized.data.astype(np.uint8))
    return [("MODELOPT", "mxfp8_e4m3", mxfp8_row), ("MODELOPT", "mxfp4", mxfp4_row), ("MODELOPT", "nvfp4", nvfp4_row)]


def compressed_tensors(folder):
    path = os.path.join(folder, "compressed_tensors", "quantization")
    fp4 = taken(os.path.join(path, "utils", "fp4_utils.py"), ["cast_to_fp4"]).cast_to_fp4
    fp6 = taken(os.path.join(path, "utils", "fp6_utils.py"), ["cast_to_fp6"]).cast_to_fp6
    classes = taken(os.path.join(path, "quant_args.py"), ["FloatArgs", "FP4_E2M1_DATA", "FP6_E2M3_DATA", "FP8_E4M3_DATA", "BFLOAT16_DATA",
                                                          "FLOAT16_DATA", "FLOAT32_DATA", "FLOAT64_DATA"])
    classes.FP4_E2M1_DATA.cast_to_fp4, classes.FP6_E2M3_DATA.cast_to_fp6 = staticmethod(fp4), staticmethod(fp6)
    kinds = types.SimpleNamespace(FLOAT=types.SimpleNamespace(value="float"), INT=types.SimpleNamespace(value="int"))
    known = {**{k: v for k, v in vars(classes).items() if k.endswith("_DATA")}, "QuantizationType": kinds, "math": __import__("math")}
    rounding = taken(os.path.join(path, "quant_args.py"), ["round_to_quantized_type_dtype", "round_to_quantized_type_args"], **known)
    mx = taken(os.path.join(path, "utils", "mxfp_utils.py"), ["_MX_ELEM_OFFSET", "should_generate_mx_scales", "maybe_convert_from_mx_exp", "round_to_power_2",
                                                             "generate_mx_scales"], **known)
    rounding.round_to_quantized_type_dtype.__globals__["torch"] = types.SimpleNamespace(**{**vars(torch), "is_floating_point": lambda x: x.dtype.kind == "f" or x.dtype in (E4M3,),
        "finfo": lambda k: types.SimpleNamespace(min=float(finfo(k).min), max=float(finfo(k).max)), "iinfo": np.iinfo})
    helpers = taken(os.path.join(path, "utils", "helpers.py"), ["calculate_qparams", "generate_gparam", "_get_dtype_eps"],
                    calculate_range=lambda args, device: ranges[args.num_bits], should_generate_mx_scales=mx.should_generate_mx_scales,
                    generate_mx_scales=mx.generate_mx_scales, maybe_convert_from_mx_exp=mx.maybe_convert_from_mx_exp,
                    round_to_quantized_type_dtype=rounding.round_to_quantized_type_dtype, **known)
    compress = taken(os.path.join(folder, "compressed_tensors", "compressors", "mx_utils.py"), ["compress_mx_scale"]).compress_mx_scale
    ranges = {4: (tensor(-6.0), tensor(6.0)), 6: (tensor(-7.5), tensor(7.5)), 8: (tensor(-448.0), tensor(448.0))}

    def quantize(x, bits, block, scale_dtype, nvfp4):
        args = types.SimpleNamespace(num_bits=bits, type="float", group_size=block, scale_dtype=scale_dtype, symmetric=True, zp_dtype=E4M3)
        blocks = x.reshape(-1, block)
        low, high = np.min(blocks, axis=-1), np.max(blocks, axis=-1)
        t = helpers.generate_gparam(tensor([np.min(low)], np.float32), tensor([np.max(high)], np.float32)) if nvfp4 else None
        scales = helpers.calculate_qparams(low, high, args, t)[0]
        by = (scales / t if nvfp4 else scales).reshape(-1, 1)
        args.type = kinds.FLOAT                            # as the enumeration compares
        rounded = rounding.round_to_quantized_type_args(blocks / by, args, ranges[bits][0], ranges[bits][1])
        return t, scales, rounded.reshape(-1)

    def coded(rounded, element):
        return bytes_of(rounded.astype(element))

    def mx_row(bits, element):
        def row(x):
            _, scales, rounded = quantize(x, bits, 32, torch.uint8, False)
            return None, compress(scales, torch.uint8), coded(rounded, element)
        return row

    def nvfp4_row(x):
        t, scales, rounded = quantize(x, 4, 16, E4M3, True)
        return t, bytes_of(scales.astype(E4M3)), coded(rounded, ml_dtypes.float4_e2m1fn)
    return [("COMPRESSED_TENSORS", "mxfp8_e4m3", mx_row(8, E4M3)), ("COMPRESSED_TENSORS", "mxfp6_e2m3", mx_row(6, ml_dtypes.float6_e2m3fn)),
            ("COMPRESSED_TENSORS", "mxfp4", mx_row(4, ml_dtypes.float4_e2m1fn)), ("COMPRESSED_TENSORS", "nvfp4", nvfp4_row)]


def transformer_engine(folder):
    path = os.path.join(folder, "transformer_engine.py")
    reference = taken(path, ["cast_to_fp4x2", "cast_to_e8", "NVFP4QuantizerRef"], Quantizer=object, utils=None,
                      gemm=types.SimpleNamespace(GEMMType=types.SimpleNamespace(FPROP=0)), quantization=types.SimpleNamespace(GEMMType=types.SimpleNamespace(FPROP=0)))
    quantizer = reference.NVFP4QuantizerRef

    def nvfp4_row(x):
        amax_all = np.max(np.abs(x))
        packed, scales = quantizer._quantize_blockwise_reference(x.reshape(1, -1), tensor(amax_all).reshape(1), 16, 1, pow_2_scales=False, eps=0.0)
        return np.minimum(np.float32(2688) / np.float32(amax_all), np.finfo(np.float32).max), bytes_of(scales), unpacked(packed)
    return [("TRANSFORMER_ENGINE", "nvfp4", nvfp4_row)]


GGML = """#define GGML_COMMON_IMPL_C
#include "ggml-quants.c"
#include <stdio.h>
int main(int argc, char **argv)
{
    (void)argv;
    float x[64];
    block_mxfp4 a[2];
    block_nvfp4 b[1];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        if (argc > 1) quantize_row_nvfp4_ref(x, b, 64), fwrite(b, sizeof b, 1, stdout);
        else quantize_row_mxfp4_ref(x, a, 64), fwrite(a, sizeof a, 1, stdout);
    }
}
"""


def ggml(folder):
    build = tempfile.mkdtemp()
    with open(os.path.join(build, "run.c"), "w", encoding="utf-8") as file:
        file.write(GGML)
    program, root = os.path.join(build, "run"), os.path.join(folder, "ggml")
    subprocess.run(["cc", "-O1", "-w", "-static", "-ffp-contract=off", "-D_GNU_SOURCE", f"-I{root}/include", f"-I{root}/src", f"-I{root}/src/ggml-cpu", "-ffunction-sections",
                    "-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all", os.path.join(build, "run.c"), "-o", program, "-lm"], check=True)
    sys.path.insert(0, folder)
    import gguf.quants

    def blocks(x, *arguments):
        return np.frombuffer(subprocess.run([program, *arguments], input=x.tobytes(), capture_output=True, check=True).stdout, np.uint8)

    def halves(nibbles, half): return np.concatenate([nibbles[..., :half] & 15, nibbles[..., :half] >> 4], axis=-1)

    def mxfp4_row(x):
        raw = blocks(x).reshape(2, 17)
        both = np.asarray(x).reshape(2, 32)
        if np.max(np.abs(both), axis=-1).min() > 2.0 ** -120:          # below, NumPy's exponents wrap in another way than C's
            assert (gguf.quants.MXFP4.quantize_blocks(both) == raw).all(), "ggml and gguf differ"
        return None, raw[:, 0], halves(raw[:, 1:], 16)

    def nvfp4_row(x):
        raw = blocks(x, "nvfp4").reshape(36)
        return None, raw[:4], halves(raw[4:].reshape(4, 8), 8)
    return [("GGML", "mxfp4", mxfp4_row), ("GGML", "nvfp4", nvfp4_row)]


def main():
    folder, x = sys.argv[1], inputs().view(Tensor)
    print(f"/* Made by make_golden_presets.py: torchao 0.18.0, nvidia-modelopt 0.47.0, compressed-tensors 0.20.0, gguf 0.19.0,\n"
          f" * TransformerEngine d0067d0d and ggml d99724f2; NumPy {np.__version__}, ml_dtypes {ml_dtypes.__version__}. */\n"
          f"enum {{ GOLDEN_ROWS = {ROWS}, GOLDEN_COLUMNS = {COLUMNS}, GOLDEN_KINDS = {KINDS} }};\n\nstatic const struct golden goldens[] = {{")
    for project in (torchao, transformer_engine, modelopt, compressed_tensors, ggml):
        for preset, form, row in project(folder):
            for r in range(ROWS):
                if form == "nvfp4" and preset != "GGML" and r % KINDS in (3, 4):
                    continue                               # tensor scales that are no normal number
                t, scales, codes = row(x[r].copy())
                t_bits = 0 if t is None else int(np.asarray(t, np.float32).reshape(1).view(np.uint32)[0])
                name = {"mxfp8_e4m3": "MXFP8_E4M3", "mxfp8_e5m2": "MXFP8_E5M2"}.get(form, form.upper())
                print(f'    {{ BSM_PRESET_{preset}, BSM_{name}, {r}, 0x{t_bits:08x}, "{bytes(np.asarray(scales).ravel()).hex()}", '
                      f'"{bytes(np.asarray(codes, dtype=np.uint8).ravel()).hex()}" }},')
    print("};")


if __name__ == "__main__":
    main()

"""The quantizers of other projects as their programs run them, with PyTorch on the CPU: what make_golden_presets.py
writes down and compare_presets.py compares with.

Packages: torch 2.14, torchao 0.18, nvidia-modelopt 0.47, compressed-tensors 0.20 and llmcompressor 0.14.
TransformerEngine has no build for CPUs: `transformer_engine` is its file pytorch/custom_recipes/reference_nvfp4.py
(d0067d0d), whose quantizer is PyTorch alone.

Every quantizer takes a weight (a matrix of torch.float32, bfloat16 or float16) and gives its tensor scale (or None),
its scale codes and its element codes, one code a byte."""
import ast
import importlib.metadata
import types

import numpy as np
import torch

PACKAGES = ["torch", "torchao", "nvidia-modelopt", "compressed-tensors", "llmcompressor"]


def versions():
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)


def raw(tensor):
    return tensor.detach().contiguous().view(torch.uint8).numpy()


def low_first(packed):
    """Codes of 4 bits, one a byte."""
    bytes_ = raw(packed)
    return np.stack([bytes_ & 15, bytes_ >> 4], axis=-1).reshape(bytes_.shape[0], -1)


# torchao -------------------------------------------------------------------------------------------------------------

def torchao():
    from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
    from torchao.prototype.mx_formats.mx_tensor import to_mx
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale

    def mx(element, packed=False):
        def quantize(weight):
            scales, data = to_mx(weight, element, 32)
            return None, raw(scales), low_first(data) if packed else raw(data)
        return quantize

    def nvfp4(weight):
        scale = per_tensor_amax_to_scale(torch.max(torch.abs(weight)))
        scales, data = nvfp4_quantize(weight, 16, scale)
        return scale.item(), raw(scales), low_first(data)
    elements = {"mxfp8_e4m3": torch.float8_e4m3fn, "mxfp8_e5m2": torch.float8_e5m2, "mxfp6_e3m2": DTYPE_FP6_E3M2,
                "mxfp6_e2m3": DTYPE_FP6_E2M3}
    rows = [("torchao", name, mx(element)) for name, element in elements.items()]
    return rows + [("torchao", "mxfp4", mx(torch.float4_e2m1fn_x2, True)), ("torchao", "nvfp4", nvfp4)]


# ModelOpt -------------------------------------------------------------------------------------------------------------

def modelopt():
    from modelopt.torch.quantization.qtensor import MXFP4QTensor, NVFP4QTensor
    from modelopt.torch.quantization.qtensor.mxfp8_tensor import MXFP8QTensor

    def mxfp8(weight):
        data, scales = MXFP8QTensor.quantize(weight)
        return None, raw(scales), raw(data._quantized_data)

    def mxfp4(weight):
        data, scales = MXFP4QTensor.quantize(weight, 32)
        return None, raw(scales).reshape(weight.shape[0], -1), low_first(data._quantized_data)

    def nvfp4(weight):
        data, scales, scale = NVFP4QTensor.quantize(weight.clone(), 16)
        return scale.item(), raw(scales), low_first(data._quantized_data)
    return [("modelopt", "mxfp8_e4m3", mxfp8), ("modelopt", "mxfp4", mxfp4), ("modelopt", "nvfp4", nvfp4)]


# compressed-tensors, with llmcompressor's observers: a linear layer goes all the way ----------------------------------

def sixes(packed, columns):
    """Codes of 6 bits in a stream of little-endian bits, one a byte."""
    bits = np.unpackbits(raw(packed), axis=-1, bitorder="little").reshape(packed.shape[0], columns, 6)
    return np.packbits(bits, axis=-1, bitorder="little")[..., 0]


def compressed_tensors():
    from compressed_tensors.compressors import compress_module
    from compressed_tensors.quantization import preset_name_to_scheme
    from compressed_tensors.quantization.lifecycle import initialize_module_for_quantization
    from llmcompressor.modifiers.quantization.calibration import initialize_observer, observe, update_qparams

    def layer(name, weight):
        module = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
        module.weight = torch.nn.Parameter(weight.clone(), requires_grad=False)
        initialize_module_for_quantization(module, preset_name_to_scheme(name, ["Linear"]))
        initialize_observer(module, "weight")
        observe(module, "weight")
        update_qparams(module, "weight")
        compress_module(module)
        return dict(module.named_parameters()) | dict(module.named_buffers())

    def mxfp8(weight):
        done = layer("MXFP8A16", weight)
        return None, raw(done["weight_scale"]), raw(done["weight"])

    def mxfp6(weight):
        done = layer("MXFP6A16", weight)
        return None, raw(done["weight_scale"]), sixes(done["weight_packed"], weight.shape[1])

    def mxfp4(weight):
        done = layer("MXFP4A16", weight)
        return None, raw(done["weight_scale"]), low_first(done["weight_packed"])

    def nvfp4(weight):
        done = layer("NVFP4A16", weight)
        return done["weight_global_scale"].item(), raw(done["weight_scale"]), low_first(done["weight_packed"])
    return [("compressed_tensors", "mxfp8_e4m3", mxfp8), ("compressed_tensors", "mxfp6_e2m3", mxfp6),
            ("compressed_tensors", "mxfp4", mxfp4),
            ("compressed_tensors", "nvfp4", nvfp4)]


# TransformerEngine ----------------------------------------------------------------------------------------------------

def taken(path, names, **scope):
    """Functions and classes of a file by their names, run as they are."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    kept = [node for node in tree.body if getattr(node, "name", None) in names]
    future = ast.ImportFrom(module="__future__", names=[ast.alias(name="annotations")], level=0)
    scope = {"torch": torch, "__name__": "taken", **scope}
    exec(compile(ast.fix_missing_locations(ast.Module(body=[future, *kept], type_ignores=[])), path, "exec"), scope)
    return types.SimpleNamespace(**{name: scope[name] for name in names})


def transformer_engine(path):
    reference = taken(path, ["cast_to_fp4x2", "cast_to_e8", "NVFP4QuantizerRef"], Quantizer=object,
                      reference_utils=None,
                      gemm=types.SimpleNamespace(GEMMType=types.SimpleNamespace(FPROP=0))).NVFP4QuantizerRef

    def nvfp4(weight):
        amax = torch.max(torch.abs(weight)).to(torch.float32).view(1)
        packed, scales = reference._quantize_blockwise_reference(weight, amax, 16, 1, pow_2_scales=False, eps=0.0)
        scale = torch.min(torch.div(torch.tensor(2688.0), amax), torch.tensor(torch.finfo(torch.float32).max))
        return scale.item(), raw(scales), low_first(packed)
    return [("transformer_engine", "nvfp4", nvfp4)]


def quantizers(transformer_engine_file=None):
    rows = torchao() + modelopt() + compressed_tensors()
    return rows + (transformer_engine(transformer_engine_file) if transformer_engine_file else [])

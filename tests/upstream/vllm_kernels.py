"""Kernels for vLLM's CPU build, which has none for block-scaled weights: plain ones, entered where vLLM looks for its
own.

vLLM's parsers, loaders, fused projections and scales are its own; here weights become numbers, by vLLM's functions
where it has them for the CPU, and torch multiplies them.  `decoded` keeps the numbers by the layer's name, for the
test to compare."""

import contextlib
from unittest import mock

import torch
import torch.nn.functional as functional
import vllm.model_executor.kernels.linear as linear
import vllm.model_executor.layers.fused_moe.experts.cpu_moe as experts
from vllm.model_executor.layers.quantization.utils.mxfp8_utils import dequant_mxfp8_to_bf16
from vllm.model_executor.layers.quantization.utils.nvfp4_emulation_utils import break_fp4_bytes, dequantize_to_dtype
from vllm.platforms import PlatformEnum

decoded = {}


class Decoding:
    """A weight is decoded when it is loaded; activations are never rounded."""

    @classmethod
    def is_supported(cls, compute_capability=None):
        return True, None

    @classmethod
    def can_implement(cls, config):
        return True, None

    def process_weights_after_loading(self, layer):
        layer.numbers = self.numbers(layer).float()
        decoded[layer.prefix] = layer.numbers.numpy()

    def apply_weights(self, layer, x, bias=None):
        return functional.linear(x, layer.numbers.to(x.dtype), bias)


class Nvfp4(Decoding, linear.NvFp4LinearKernel):
    def numbers(self, layer):
        return dequantize_to_dtype(
            layer.weight.data, layer.weight_scale.data, layer.weight_global_scale.data, torch.float32, swizzle=False
        )


def mxfp4_numbers(codes, scales):
    """vLLM decodes MXFP4 by a package of a GPU's maker; here by powers of two."""
    values = break_fp4_bytes(codes.reshape(-1, codes.shape[-1]), torch.float32).reshape(*codes.shape[:-1], -1, 32)
    return (values * torch.exp2(scales.float() - 127)[..., None]).reshape(*codes.shape[:-1], -1)


class Mxfp4(Decoding, linear.MxFp4LinearKernel):
    def numbers(self, layer):
        return mxfp4_numbers(layer.weight.data, layer.weight_scale.data)


class Mxfp8(Decoding, linear.Mxfp8LinearKernel):
    def numbers(self, layer):
        return dequant_mxfp8_to_bf16(layer.weight.data.contiguous(), layer.weight_scale.data)


class Fp8(Decoding, linear.FP8ScaledMMLinearKernel):
    def numbers(self, layer):
        return layer.weight.data.t().float() * layer.weight_scale.data.reshape(-1, 1)

    def apply_scaled_mm(self, **_):
        raise NotImplementedError


def experts_of_mxfp4(
    output, states, w1, w2, weights, ids, method, w1_scale, w2_scale, _1, _2, _3, w1_bias, w2_bias, alpha, limit, _4
):
    """gpt-oss's experts, gates and ups interleaved: what the kernel for AMX computes, in fp32."""
    first, second = mxfp4_numbers(w1, w1_scale), mxfp4_numbers(w2, w2_scale)
    output.zero_()
    for row in range(states.shape[0]):
        for expert, weight in zip(ids[row].tolist(), weights[row].tolist()):
            both = first[expert] @ states[row].float() + w1_bias[expert]
            gate, up = both[::2].clamp(max=limit), both[1::2].clamp(-limit, limit)
            inner = (up + 1) * gate * torch.sigmoid(alpha * gate)
            output[row] += (weight * (second[expert] @ inner.to(states.dtype).float() + w2_bias[expert])).to(
                output.dtype
            )


@contextlib.contextmanager
def entered():
    """Puts them where vLLM looks on a CPU, and takes them away again."""
    cpu = PlatformEnum.CPU
    tables = [
        (linear._POSSIBLE_MXFP4_KERNELS, Mxfp4),
        (linear._POSSIBLE_MXFP8_KERNELS, Mxfp8),
        (linear._POSSIBLE_WFP8A16_KERNELS, Fp8),
    ]
    with contextlib.ExitStack() as stack:
        for table, kernel in tables:
            stack.enter_context(mock.patch.dict(table, {cpu: [kernel]}))
        stack.enter_context(
            mock.patch.object(linear, "MarlinNvFp4LinearKernel", Nvfp4)
        )  # of weights alone: no other is asked
        stack.enter_context(
            mock.patch.object(experts.CPUExpertsMxfp4, "_supports_current_device", staticmethod(lambda: True))
        )
        stack.enter_context(mock.patch.object(experts, "prepare_mxfp4_moe_layer_for_cpu", lambda *weights: weights))
        stack.enter_context(mock.patch.object(experts, "fused_experts_cpu", experts_of_mxfp4))
        decoded.clear()
        yield

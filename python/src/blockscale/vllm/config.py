"""vLLM's quantization method "blockscale": which layer gets which weights."""
from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn
from vllm.model_executor.layers.fused_moe import RoutedExperts
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig, QuantizeMethodBase
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

from .._errors import InvalidError, UnsupportedError
from ..matrix import format_of
from . import METHOD, stored
from .experts import BlockscaleExpertsMethod
from .linear import BlockscaleLinearMethod
from .stored import Options, Stored


def _options(config: dict[str, Any]) -> Options:
    prepack, activations = config.get("prepack"), config.get("activations")
    if prepack not in (None, True, False):
        raise InvalidError(f"quantization_config has prepack={prepack!r}: it is true, false or null")
    if activations is None or config.get("quant_method") != METHOD:
        return Options(prepack, None)
    return Options(prepack, format_of(activations, "quantization_config's activations").name)


def _folder(model: str, revision: str | None) -> str:
    """Where the checkpoint lies: the folder itself, or the snapshot of a repository."""
    if os.path.isdir(model):
        return model
    from huggingface_hub import constants, snapshot_download
    path: str = snapshot_download(model, revision=revision, allow_patterns=["*.safetensors", "*.json"],
                                  local_files_only=constants.HF_HUB_OFFLINE)
    return path


class BlockscaleConfig(QuantizationConfig):
    """Layers as the checkpoint's tensors have them.

    Of config.json's quantization_config, which hf_overrides of vLLM may replace, two words count, both as of
    blockscale.torch.Linear: "prepack" (true, false; absent: on GPUs for 4-bit weights) and "activations" (a format that
    inputs are quantized to; absent: none)."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.options = _options(config or {})
        self.stored: dict[str, Stored] | None = None

    def get_name(self) -> Any:
        """The method's name."""
        return METHOD

    def get_supported_act_dtypes(self) -> list[torch.dtype]:
        """Types of inputs: as of blockscale.torch.Linear."""
        types = [torch.bfloat16, torch.float16]
        return types if torch.cuda.is_available() else [*types, torch.float32]

    @classmethod
    def get_min_capability(cls) -> int:
        """The oldest GPU that the library has kernels for."""
        return 80

    @staticmethod
    def get_config_filenames() -> list[str]:
        """None: what there is to know stands in the tensors."""
        return []

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> BlockscaleConfig:
        """Of config.json's quantization_config, whatever its method."""
        return cls(config)

    @classmethod
    def override_quantization_method(cls, hf_quant_cfg: dict[str, Any] | None, user_quant: str | None,
                                     hf_config: Any = None) -> Any:
        """Takes any checkpoint that the user asks for by quantization="blockscale"."""
        return METHOD if user_quant == METHOD else None

    def maybe_update_config(self, model_name: str, hf_config: Any = None, revision: str | None = None) -> None:
        """Reads the names of the checkpoint, before the model is made."""
        self.stored = stored.read(_folder(model_name, revision))

    def apply_vllm_mapper(self, hf_to_vllm_mapper: Any) -> None:
        """Takes over the names that a model of vLLM has for the file's."""
        if self.stored is not None:
            self.stored = stored.renamed(
                self.stored, lambda name: next(iter(hf_to_vllm_mapper.apply_list([name])), None))

    def get_quant_method(self, layer: nn.Module, prefix: str) -> QuantizeMethodBase | None:
        """What multiplies by the weights of a layer."""
        if self.stored is None:
            raise InvalidError("the checkpoint was not read: vLLM is too old to name it (maybe_update_config)")
        if isinstance(layer, LinearBase):
            found = stored.members(self.stored, prefix, self.packed_modules_mapping)
            return BlockscaleLinearMethod(prefix, found, self.options) if found else UnquantizedLinearMethod()
        if isinstance(layer, RoutedExperts):
            both = stored.experts(self.stored, prefix)
            return None if both is None else BlockscaleExpertsMethod(
                layer.moe_config, prefix, *both, self.options)
        if isinstance(layer, VocabParallelEmbedding) and prefix in self.stored:
            raise UnsupportedError(f"{prefix} is {self.stored[prefix].format}: embeddings and heads are served "
                                   "unquantized; `blockscale quantize` leaves them out")
        return None

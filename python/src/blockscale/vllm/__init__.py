"""A plugin of vLLM: serves checkpoints of every convention that blockscale reads, on blockscale's kernels.

    vllm serve model-nvfp4 --quantization blockscale

`pip install blockscale` registers it (entry point "blockscale" of the group vllm.general_plugins), and vLLM calls
register() in each of its processes.  Formats and names come from the tensors in the file, not from the words of its
configuration: compressed-tensors, ModelOpt, Quark, torchao, gpt-oss, and what blockscale.torch.transformers saves.
Inputs are multiplied as they are: the scales that a file has for them are not used.

Importing this module imports neither vLLM nor PyTorch; register() needs both."""
from __future__ import annotations

METHOD = "blockscale"       # the name in --quantization, and the quant_method of checkpoints of our own


def register() -> None:
    """Registers the quantization method; more than once in a process does no harm."""
    from vllm.model_executor.layers import quantization

    from .config import BlockscaleConfig

    registered = getattr(quantization, "_CUSTOMIZED_METHOD_TO_QUANT_CONFIG", {})
    if registered.get(METHOD) is not BlockscaleConfig:
        quantization.register_quantization_config(METHOD)(BlockscaleConfig)


__all__ = ["METHOD", "register"]

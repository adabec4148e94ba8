"""blockscale for PyTorch: operators (torch.ops.blockscale), quantized layers, and the tensors of other libraries.

    quantize_(model, "mxfp4")      replaces linear and mixture-of-experts layers by quantized ones
    Linear, Experts                these layers
    scaled_mm                      torch.nn.functional.scaled_mm on every device that blockscale computes on
    to_torchao, from_torchao       MXTensor and NVFP4Tensor, without copies
    blockscale.torch.transformers  quantizes while a model of transformers is loaded (imported by its own name)
    blockscale.torch.training, blockscale.torch.distributed    gradients; several GPUs (imported by their own names)"""
from . import operators
from .experts import Experts
from .interop import from_torchao, scaled_mm, to_torchao, typed, typed_scales
from .linear import Linear
from .models import default_filter, prepack_, quantize_

__all__ = ["Experts", "Linear", "default_filter", "from_torchao", "operators", "prepack_", "quantize_", "scaled_mm",
           "to_torchao", "typed", "typed_scales"]

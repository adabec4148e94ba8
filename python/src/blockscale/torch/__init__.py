"""blockscale for PyTorch: operators (torch.ops.blockscale)."""
from . import operators

__all__ = ["operators"]

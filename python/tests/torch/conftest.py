"""What the tests of blockscale.torch share."""
from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(20261123)

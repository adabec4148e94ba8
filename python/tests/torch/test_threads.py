"""CPU work is done by the threads of PyTorch's own loops."""
from __future__ import annotations

import os

import pytest
import torch

import blockscale
import blockscale.torch as bt
from blockscale.torch import _threads


def _threads_of_this_process() -> int:
    return len(os.listdir("/proc/self/task"))


def _layer() -> torch.nn.Module:
    model = torch.nn.Sequential(torch.nn.Linear(512, 512, dtype=torch.bfloat16))
    bt.quantize_(model, "mxfp4")
    return model


@pytest.mark.skipif(not _threads.shared, reason="PyTorch was built without OpenMP")
def test_no_threads_beside_pytorchs() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        x = torch.randn(512, 512)
        torch.nn.functional.gelu(x)                        # PyTorch's own team
        model, there = _layer(), _threads_of_this_process()
        many = model(x.bfloat16())
        assert blockscale.threads() == 3
        assert _threads_of_this_process() == there
        torch.set_num_threads(1)
        assert torch.equal(model(x.bfloat16()), many)
        assert blockscale.threads() == 1
    finally:
        torch.set_num_threads(before)


def test_a_number_that_was_set_stays() -> None:
    before = torch.get_num_threads()
    try:
        blockscale.set_threads(2)
        torch.set_num_threads(1)
        _layer()(torch.randn(4, 512, dtype=torch.bfloat16))
        assert blockscale.threads() == 2
        blockscale.set_threads(0)
        assert blockscale.threads() == (1 if _threads.shared else os.cpu_count())
    finally:
        blockscale.set_threads(0)
        torch.set_num_threads(before)

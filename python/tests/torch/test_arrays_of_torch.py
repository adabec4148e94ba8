"""Tensors in blockscale's own functions: nothing but new tensors is asked of PyTorch, on the CPU and on a GPU, where
the current stream is honoured, nothing waits and graphs can be captured."""
import warnings

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import blockscale

RANDOM = np.random.default_rng(5)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")      # a build of PyTorch for GPUs says that it found no driver
    HAS_GPU = torch.cuda.is_available()
GPU = pytest.mark.skipif(not HAS_GPU, reason="no GPU for PyTorch")
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]


class Asked(TorchDispatchMode):
    """The names of everything that PyTorch is asked to do."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.names.append(function.name())
        return function(*arguments, **(options or {}))


def whole(*shape, device="cpu", dtype=torch.bfloat16):
    return torch.from_numpy(RANDOM.integers(-3, 4, shape).astype(np.float32)).to(device, dtype)


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_but_new_tensors_is_asked_for(device):
    x, w = whole(32, 128, device=device), whole(48, 128, device=device)
    m = blockscale.quantize(w, "mxfp4")
    plan = blockscale.plan(x, m)
    blockscale.matmul(x, m, alpha=2.0)   # a number on a GPU is written once
    with Asked() as asked:
        blockscale.quantize(x, "nvfp4", layout="128x4")
        blockscale.quantize(x.t(), "mxfp8_e4m3")
        blockscale.matmul(x, m)
        blockscale.matmul(x[::2], m, alpha=2.0)
        plan.run(x, m)
        m.dequantize("bfloat16")
        blockscale.from_parts(m.codes, m.scales, "mxfp4")
    allowed = {"aten::empty.memory_format", "aten::t", "aten::slice.Tensor"}
    assert set(asked.names) <= allowed, set(asked.names) - allowed
    out = plan.run(x, m)
    with Asked() as asked:
        plan.run(x, m, out=out)
        blockscale.quantize(w, "mxfp4", out=m)
    assert len(asked.names) <= (1 if plan.workspace_bytes and device == "cuda" else 0), asked.names


def test_the_mode_sees_copies():
    x = whole(4, 64)
    with Asked() as asked:
        x.t().contiguous()
    assert "aten::clone" in asked.names or "aten::copy_" in asked.names


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "mxint8", "nvfp4"])
def test_results_are_numpys(device, name):
    x, w = whole(32, 128, device=device), whole(48, 128, device=device)
    plain_x, plain_w = x.float().cpu().numpy().astype(ml_dtypes.bfloat16), w.float().cpu().numpy()
    m, expected = blockscale.quantize(w, name, layout="128x4"), blockscale.quantize(plain_w, name, layout="128x4")
    assert m.codes.device.type == device and m.codes.dtype == torch.uint8
    assert np.array_equal(m.codes.cpu().numpy(), expected.codes)
    assert np.array_equal(m.scales.cpu().numpy(), expected.scales)
    if name == "nvfp4":
        assert m.tensor_scale.cpu().numpy() == expected.tensor_scale
        m = blockscale.quantize(w, name, tensor_scale="none")
        expected = blockscale.quantize(plain_w, name, tensor_scale="none")
    d = blockscale.matmul(x, m, out_dtype=torch.float32)
    exact = plain_x.astype(np.float64) @ expected.dequantize("float64").T
    assert d.dtype == torch.float32 and np.array_equal(d.cpu().numpy(), exact.astype(np.float32))
    assert blockscale.matmul(x, m).dtype == (torch.bfloat16 if device == "cuda" else torch.float32)
    bias, c = whole(48, device=device), whole(32, 48, device=device)
    d = blockscale.matmul(x, m, bias=bias, c=c, alpha=2.0, out_dtype="float32")
    both = 2 * exact + c.double().cpu().numpy() + bias.double().cpu().numpy()
    assert np.array_equal(d.cpu().numpy(), both.astype(np.float32))


def test_tensors_are_read_where_they_lie():
    from blockscale import _arrays
    x = torch.zeros(6, 8, 10)[1:, ::2]
    found = _arrays.view(x, "x")
    assert found.pointer == x.data_ptr() and found.shape == (5, 4, 10) and found.strides == (80, 20, 1)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn_x2", "bfloat16"):
        if hasattr(torch, name):
            assert _arrays.view(torch.empty(4, dtype=getattr(torch, name)), "x").dtype == name
    codes = torch.zeros(4, 32, dtype=torch.uint8)
    scales = torch.full((4, 2), 127, dtype=torch.uint8).view(torch.float8_e8m0fnu)
    m = blockscale.from_parts(codes.view(torch.float4_e2m1fn_x2), scales, "mxfp4")
    assert m.shape == (4, 64) and m.scales is scales and not m.dequantize().any()
    codes[0, 0] = 0x22
    assert m.dequantize()[0, :2].tolist() == [1.0, 1.0]
    parameter = torch.nn.Parameter(torch.ones(4, 64))
    assert blockscale.matmul(parameter, m).shape == (4, 4)
    with pytest.raises(blockscale.InvalidError, match="meta"):
        blockscale.quantize(torch.empty(4, 64, device="meta"), "mxfp4")
    with pytest.raises(blockscale.InvalidError, match="complex64"):
        blockscale.quantize(torch.empty(4, 64, dtype=torch.complex64), "mxfp4")


def test_plans_look_at_tensors():
    x, m = whole(8, 64), blockscale.quantize(whole(16, 64), "mxfp4")
    plan = blockscale.plan(x, m)
    expected = blockscale.matmul(x, m)
    out = torch.empty(8, 16)
    assert plan.run(x, m, out=out) is out and torch.equal(out, expected)
    for wrong, words in ((x[:4], "shape"), (x.float(), "a is float32"), (x.t().contiguous().t(), "strides")):
        with pytest.raises(blockscale.InvalidError, match=words):
            plan.run(wrong, m)
    with pytest.raises(blockscale.InvalidError, match="out is"):
        plan.run(x, m, out=torch.empty(8, 17))


@GPU
def test_streams_and_no_waiting():
    x, w = whole(64, 256, device="cuda"), whole(96, 256, device="cuda")
    expected = (x.double() @ w.double().T).float()
    m = blockscale.quantize(w, "mxfp4")
    plan = blockscale.plan(x, m, out_dtype="float32")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):      # PyTorch loads its kernels when they are first wanted, and waits for that
        blockscale.matmul(x * 1, blockscale.quantize(w, "mxfp4"), out_dtype="float32", alpha=0.5)
        plan.run(x, m)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)                             # some tenth of a second in front
            late = whole_on_gpu = x * 1
            copy = blockscale.quantize(w, "mxfp4")
            d = plan.run(late, copy)
            e = blockscale.matmul(whole_on_gpu, copy, out_dtype="float32", alpha=0.5)
            assert not stream.query()                                   # nothing waited
    finally:
        torch.cuda.set_sync_debug_mode("default")
    stream.synchronize()
    assert torch.equal(d, expected) and torch.equal(e, expected / 2)


@GPU
def test_graphs():
    x, w = whole(64, 256, device="cuda"), whole(96, 256, device="cuda")
    m = blockscale.quantize(w, "nvfp4", tensor_scale="none")
    plan = blockscale.plan(x, m, out_dtype="float32")
    plan.run(x, m)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        q = blockscale.quantize(x, "mxfp8_e4m3")
        first = plan.run(x, m)
        second = blockscale.matmul(q, m, out_dtype="float32", alpha=2.0)
    for _ in range(3):
        x.copy_(whole(64, 256, device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        expected = (x.double() @ m.dequantize("float32").double().T).float()
        assert torch.equal(first, expected) and torch.equal(second, 2 * expected)


@GPU
def test_devices_are_not_mixed():
    x, m = whole(8, 64, device="cuda"), blockscale.quantize(whole(16, 64), "mxfp4")
    with pytest.raises(blockscale.InvalidError, match="b lies on cpu, a on cuda:0"):
        blockscale.matmul(x, m)

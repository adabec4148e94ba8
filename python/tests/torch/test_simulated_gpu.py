"""The operators' way to a GPU, on cudasim: what is launched, in which stream, and the same bits as on the CPU.

PyTorch has no tensors on a simulated GPU.  Here tensors lie in one block of host memory whose image lies on the GPU, at
another address: `data_ptr` gives the GPU's, the block is copied there before a call and back behind it."""
from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import simulated  # type: ignore[import-not-found]  # noqa: E402

import blockscale  # noqa: E402,F401
import blockscale.torch as bt  # noqa: E402
from blockscale.torch import _plans, _tensors  # noqa: E402

MISSING = simulated.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)
BYTES = 8 << 20
ops = torch.ops.blockscale


class Gpu:
    """The block, its image, and PyTorch's allocations in it."""

    def __init__(self) -> None:
        self.driver = simulated.Driver()
        image = ctypes.c_uint64()
        self.driver.call("cuMemAlloc_v2", ctypes.byref(image), ctypes.c_size_t(BYTES))
        self.image = image.value
        self.block = torch.zeros(BYTES, dtype=torch.uint8)
        self.address = self.block.data_ptr()
        self.used, self.stream, self.active = 0, 0, False

    def allocate(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """A tensor in the block, aligned as PyTorch's on a GPU."""
        size = torch.Size(shape).numel() * dtype.itemsize
        start, self.used = self.used, self.used + (size + 511) // 512 * 512
        assert self.used <= BYTES
        return self.block[start:start + size].view(dtype).view(shape)

    def put(self, x: Tensor) -> Tensor:
        """A copy of x in the block."""
        return self.allocate(tuple(x.shape), x.dtype).copy_(x)

    def __call__(self, function: Callable[[], Any]) -> Any:
        """What a call gives on the GPU; self.watch has what it asked the driver for."""
        self.push()
        self.active = True
        try:
            with simulated.Watch() as self.watch:
                result = function()
        finally:
            self.active = False
        self.pull()
        return result

    def push(self) -> None:
        """The block to the GPU."""
        self.driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.image), ctypes.c_void_p(self.address),
                         ctypes.c_size_t(BYTES))

    def pull(self) -> None:
        """The block from the GPU, when all is done there."""
        self.driver.call("cuCtxSynchronize")
        self.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(self.address), ctypes.c_uint64(self.image),
                         ctypes.c_size_t(BYTES))

    def capture(self, function: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        """A graph of what a call puts into a stream that the library has not seen before, and the call's tensors."""
        results: list[Any] = []
        self.stream, self.active = self.driver.stream(), True
        try:
            launch = self.driver.capture(self.stream, lambda: results.append(function()))
        finally:
            self.active = False

        def replay() -> None:
            self.push()
            launch()
            self.pull()

        return replay, results[0]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    made = Gpu()
    data_ptr, empty, new_empty, zeros = Tensor.data_ptr, torch.empty, Tensor.new_empty, torch.zeros

    def address(tensor: Tensor) -> int:
        found = data_ptr(tensor)
        inside = made.address <= found < made.address + BYTES
        assert inside or not made.active or tensor.numel() == 0, "a tensor that lies on the host came to the library"
        return made.image + found - made.address if made.active and inside else found

    def sized(*shape: Any) -> tuple[int, ...]:
        return tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape

    monkeypatch.setattr(Tensor, "data_ptr", address)
    monkeypatch.setattr(torch, "empty", lambda *shape, dtype=torch.float32, device=None: made.allocate(
        sized(*shape), dtype) if made.active else empty(*shape, dtype=dtype))
    monkeypatch.setattr(torch, "zeros", lambda *shape, dtype=torch.float32, device=None: made.allocate(
        sized(*shape), dtype) if made.active else zeros(*shape, dtype=dtype))
    monkeypatch.setattr(Tensor, "new_empty", lambda self, *shape, dtype=None, **_: made.allocate(
        sized(*shape), dtype or self.dtype) if made.active else new_empty(self, *shape, dtype=dtype))
    real = _tensors.device_of
    monkeypatch.setattr(_tensors, "device_of", lambda tensor: ("cuda", 0) if made.active else real(tensor))
    monkeypatch.setattr(_tensors, "stream_of", lambda device: made.stream if device[0] == "cuda" else 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    _plans._cache.plans.clear()
    yield made
    _plans._cache.plans.clear()


def same(gpu: Gpu, function: Callable[..., Any], *tensors: Any) -> None:
    """A call gives on the GPU what it gives on the CPU, the second time without copies, waiting or memory."""
    there = [gpu.put(x) if isinstance(x, Tensor) else x for x in tensors]
    gpu(lambda: function(*there))
    got, wanted = gpu(lambda: function(*there)), function(*tensors)
    assert gpu.watch.quiet() and gpu.watch.launches > 0, vars(gpu.watch)
    if isinstance(got, Tensor):
        got, wanted = (got,), (wanted,)
    assert all(torch.equal(left, right) for left, right in zip(got, wanted))


@pytest.mark.parametrize("form", ("mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "nvfp4"))
@pytest.mark.parametrize("layout", ("linear", "128x4"))
def test_quantize_and_dequantize(gpu: Gpu, form: str, layout: str) -> None:
    x = torch.randn(24, 64)
    same(gpu, lambda x: ops.quantize(x, form, layout=layout), x)
    same(gpu, lambda x: ops.quantize(x, form, layout=layout), x.t().contiguous().t())
    codes, scales, scale = ops.quantize(x, form, layout=layout)
    same(gpu, lambda c, s, t: ops.dequantize(c, s, form, tensor_scale=t, layout=layout), codes, scales, scale)


def test_quantize_both_and_convert(gpu: Gpu) -> None:
    same(gpu, lambda x: ops.quantize_both(x, "mxfp8_e4m3"), torch.randn(64, 96))
    scales = torch.randint(0, 255, (40, 6), dtype=torch.uint8)
    same(gpu, lambda s: ops.convert_scales(s, 40, 6, "linear", "128x4"), scales)


def _whole(*shape: int) -> Tensor:
    """Whole numbers: their sums are exact in any order, so a GPU's bits are the CPU's."""
    return torch.randint(-4, 5, shape).to(torch.bfloat16)


@pytest.mark.parametrize("form", ("mxfp4", "nvfp4", "mxfp8_e4m3"))
@pytest.mark.parametrize("rows", (1, 20))
def test_matmul(gpu: Gpu, form: str, rows: int) -> None:
    codes, scales, _ = ops.quantize(_whole(48, 128), form, compute_tensor_scale=False)
    bias = torch.randint(-9, 9, (48,)).float()
    same(gpu, lambda x, c, s, b: ops.matmul(x, None, c, s, b_format=form, bias=b), _whole(rows, 128), codes, scales,
         bias)


def test_matmul_grouped(gpu: Gpu) -> None:
    codes, scales, _ = ops.quantize(_whole(3, 32, 64), "mxfp4")
    rows = torch.tensor([5, 0, 6])
    same(gpu, lambda x, c, s, r: ops.matmul_grouped(x, None, c, s, r, b_format="mxfp4"), _whole(11, 64), codes, scales,
         rows)


def test_the_current_stream(gpu: Gpu) -> None:
    codes, scales, _ = ops.quantize(_whole(48, 64), "mxfp4")
    gpu.stream = gpu.driver.stream()
    same(gpu, lambda x, c, s: ops.matmul(x, None, c, s, b_format="mxfp4"), _whole(4, 64), codes, scales)
    assert gpu.watch.stream == gpu.stream
    same(gpu, lambda x: ops.quantize(x, "nvfp4"), torch.randn(8, 64))
    assert gpu.watch.stream == gpu.stream


def test_a_captured_graph(gpu: Gpu) -> None:
    w, x = gpu.put(torch.randn(48, 64)), gpu.put(_whole(4, 64))
    rows = gpu.put(torch.tensor([1, 3]))

    def work(w: Tensor, x: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
        codes, scales, scale = ops.quantize(w, "nvfp4")
        one = ops.matmul(x, None, codes, scales, b_format="nvfp4", b_tensor_scale=scale)
        halves = ops.quantize(w.view(2, 24, 64), "mxfp4")
        return codes, scales, one, ops.matmul_grouped(x, None, halves[0], halves[1], rows, b_format="mxfp4")

    gpu(lambda: work(w, x, rows))
    replay, results = gpu.capture(lambda: work(w, x, rows))
    for numbers in ([4, 0], [0, 4], [2, 2]):
        w.copy_(torch.randn(48, 64))
        x.copy_(_whole(4, 64))
        rows.copy_(torch.tensor(numbers))
        replay()
        for number, (got, wanted) in enumerate(zip(results, work(w, x, rows))):
            if number < 2:
                assert torch.equal(got, wanted)
            else:
                assert torch.allclose(got.float(), wanted.float(), rtol=0.01, atol=0.05), (numbers, number)


@pytest.mark.parametrize("form", ("mxfp4", "nvfp4"))
def test_prepacked_weights(gpu: Gpu, form: str) -> None:
    weight = torch.randint(-4, 5, (64, 256)).float()
    layer = bt.Linear(256, 64, form, bias=False, prepack=True)
    for name, tensor in layer.quantize_weight(weight).items():
        setattr(layer, name, gpu.put(tensor))
    x = gpu.put(_whole(2, 256))
    first, second = gpu(lambda: layer(x)), gpu(lambda: layer(x))
    assert gpu.watch.quiet() and layer.panels["weight"][1].numel() > 0
    layer.prepack = False
    layer.drop_prepacked()
    plain = gpu(lambda: layer(x))
    assert torch.equal(first, plain) and torch.equal(second, plain)


@pytest.fixture
def pulled(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """A GPU whose results so far comparisons within a call see."""
    equal = torch.equal

    def compare(a: Tensor, b: Tensor) -> bool:
        if gpu.active:
            gpu.pull()
        return equal(a, b)

    monkeypatch.setattr(torch, "equal", compare)
    return gpu


def _bytes_of(module: torch.nn.Module) -> int:
    return sum(tensor.untyped_storage().nbytes() if tensor.untyped_storage().nbytes() < BYTES else
               tensor.nbytes if any(tensor.stride()) else 1 for tensor in module.buffers())


@pytest.mark.parametrize("form", ("mxfp4", "nvfp4"))
def test_prepacked_weights_alone(pulled: Gpu, form: str) -> None:
    gpu = pulled
    weight = torch.randint(-4, 5, (64, 384)).float()
    weight[3, :32] = 0                                           # a block of zeros
    layer, plain = (bt.Linear(384, 64, form, bias=False, prepack=prepack) for prepack in ("alone", False))
    for name, tensor in layer.quantize_weight(weight).items():
        setattr(layer, name, gpu.put(tensor))
        setattr(plain, name, gpu.put(tensor))
    stored = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    x, many = gpu.put(_whole(2, 384)), gpu.put(_whole(4100, 384))
    first, second, of_many = gpu(lambda: layer(x)), gpu(lambda: layer(x)), gpu(lambda: layer(many))
    assert _tensors.has_no_bytes(layer.codes) and layer.codes.shape == plain.codes.shape
    assert _bytes_of(layer) <= layer.panels["weight"][1].numel() + 16       # a tensor scale, and two of one byte
    for got, given in ((first, x), (second, x), (of_many, many)):
        assert torch.equal(got, gpu(lambda: plain(given)))
    state = gpu(layer.state_dict)
    assert state.keys() == stored.keys()
    assert all(torch.equal(state[name].view(torch.uint8), stored[name].view(torch.uint8)) for name in stored
               if stored[name].dtype is not torch.float32)
    assert torch.equal(gpu(layer.dequantize), gpu(plain.dequantize))
    with pytest.raises(RuntimeError, match="memory location"):
        layer.codes.copy_(plain.codes)
    panels = layer.panels["weight"][1]
    with pytest.raises(blockscale.Error, match="b has no codes"):
        gpu(lambda: ops.matmul(x, None, layer.codes, layer.scales, b_format=form))
    with pytest.raises(blockscale.Error, match="b_panels has 64 bytes"):
        gpu(lambda: ops.matmul(x, None, layer.codes, layer.scales, b_format=form, b_panels=gpu.allocate(
            (64,), torch.uint8)))
    assert layer.panels["weight"][1] is panels
    gpu(layer.drop_prepacked)
    assert torch.equal(layer.codes, plain.codes) and torch.equal(gpu(lambda: layer(x)), first)
    gpu(lambda: layer(x))
    gpu(lambda: layer.load_state_dict(stored))                   # over weights without bytes
    assert torch.equal(layer.codes, plain.codes) and layer.panels == {}


def test_weights_that_prepacked_weights_have_not_whole_are_kept(pulled: Gpu) -> None:
    gpu = pulled
    layer, plain = (bt.Linear(64, 16, "mxfp4", bias=False, prepack=prepack) for prepack in ("alone", False))
    made = layer.quantize_weight(torch.randn(16, 64))
    made["weight_scale"][5, 1] = 60                              # 2^-67: a fallback row
    for name, tensor in made.items():
        setattr(layer, name, gpu.put(tensor))
        setattr(plain, name, gpu.put(tensor))
    x = gpu.put(_whole(2, 64))
    assert torch.equal(gpu(lambda: layer(x)), gpu(lambda: plain(x)))
    assert not _tensors.has_no_bytes(layer.codes) and layer.panels["weight"][1].numel() > 0


def test_experts_prepacked_alone(pulled: Gpu) -> None:
    gpu = pulled
    layer, plain = (bt.Experts(3, 64, 32, "mxfp4", bias=False, prepack=prepack) for prepack in ("alone", False))
    for name, rows, columns in (("gate_up_proj", 64, 64), ("down_proj", 64, 32)):
        for part, tensor in layer.quantize_weight(name, torch.randn(3, rows, columns)).items():
            setattr(layer, part, gpu.put(tensor))
            setattr(plain, part, gpu.put(tensor))
    x, rows = gpu.put(_whole(7, 64)), gpu.put(torch.tensor([2, 5, 0]))
    for _ in range(2):
        got = gpu(lambda: layer._project("gate_up_proj", x, rows, True))
        assert torch.equal(got, gpu(lambda: plain._project("gate_up_proj", x, rows, True)))
    assert _tensors.has_no_bytes(layer.gate_up_proj_blocks)
    state = gpu(layer.state_dict)
    assert all(torch.equal(tensor, plain.state_dict()[name]) for name, tensor in state.items())


def test_experts(gpu: Gpu) -> None:
    layer = bt.Experts(3, 64, 32, "mxfp4", bias=False, prepack=False)
    for name, rows, columns in (("gate_up_proj", 64, 64), ("down_proj", 64, 32)):
        for part, tensor in layer.quantize_weight(name, torch.randn(3, rows, columns)).items():
            setattr(layer, part, gpu.put(tensor))
    x, rows = gpu.put(_whole(7, 64)), gpu.put(torch.tensor([2, 5, 0]))
    wanted = layer._project("gate_up_proj", x, rows, True)
    got = gpu(lambda: layer._project("gate_up_proj", x, rows, True))
    assert torch.allclose(got.float(), wanted.float(), rtol=0.02, atol=0.02 * float(wanted.float().abs().max()))


def test_fp32_operands_are_refused_by_name(gpu: Gpu) -> None:
    codes, scales, _ = ops.quantize(torch.randn(16, 64), "mxfp4")
    there = [gpu.put(tensor) for tensor in (torch.randn(4, 64), codes, scales)]
    with pytest.raises(blockscale.Error, match="fp32"):
        gpu(lambda: ops.matmul(there[0], None, there[1], there[2], b_format="mxfp4"))

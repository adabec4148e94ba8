#!/usr/bin/env python3
"""blockscale.torch on a GPU: values, kernels that are launched, CUDA graphs, streams, torch.compile, models.

    PYTHONPATH=python/src BLOCKSCALE_LIBRARY=build/release/lib/libblockscale.so python3 python/tests/torch/gpu_check.py
        [--only WORD] [--out FILE.json] [--cpu]

Needs PyTorch 2.11 or later, NumPy and cffi; checks of models need transformers, and say so without it.  Ends with
"gpu_check: N passed, N failed, N skipped" and the exit status; --out gets what was measured.  --cpu runs what needs no
GPU, to see that this program itself is sound."""
from __future__ import annotations

import argparse
import collections
import json
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).parent))

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import blockscale  # noqa: E402
import blockscale.torch as bt  # noqa: E402
from blockscale.torch import _plans, _tensors  # noqa: E402
from reference import FORMATS, assert_product, operand, quantized  # noqa: E402

ops = torch.ops.blockscale
DEVICE = torch.device("cuda")
FIGURES: dict[str, Any] = {}
CHECKS: list[tuple[str, Callable[[], None], bool]] = []


class Skipped(Exception):
    """What a check needs is not there."""


def check(needs_gpu: bool = True) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Adds a function to the checks."""
    def add(function: Callable[[], None]) -> Callable[[], None]:
        CHECKS.append((function.__name__, function, needs_gpu))
        return function
    return add


def numbers(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Normally distributed numbers on the device."""
    return torch.randn(*shape, dtype=torch.float32).to(DEVICE, dtype)


# Values ---------------------------------------------------------------------------------------------------------------

@check(False)
def values() -> None:
    """Every format and layout, few rows and many, against decoded numbers."""
    for form in FORMATS:
        for layout in ("linear", "128x4"):
            for rows in (1, 16, 200):
                a = numbers(rows, 256)
                codes, found, decoded = quantized(numbers(72, 256).cpu().float(), form, layout=layout)
                b, scales = codes.to(DEVICE), found["scales"].to(DEVICE)
                found["tensor_scale"] = found["tensor_scale"].to(DEVICE)
                again = ops.quantize(numbers(72, 256), form, layout=layout)
                assert again[0].device.type == again[1].device.type == DEVICE.type
                d = ops.matmul(a, None, b, scales, out_dtype=torch.float32, **operand("b", found))
                bound_product(d, a, decoded)


def bound_product(d: Tensor, a: Tensor, decoded: Tensor) -> None:
    """A GPU's sums: 10 roundings for each 16 columns at most (blockscale/matmul.h)."""
    exact = a.cpu().double() @ decoded.T
    size = a.cpu().double().abs() @ decoded.abs().T
    allowed = max(10 * (a.shape[1] + 15) // 16, a.shape[1]) * 2.0 ** -23 * size + 2.0 ** -23 * exact.abs() + 1e-38
    assert bool(((d.cpu().double() - exact).abs() <= allowed).all()), float(((d.cpu().double() - exact).abs()
                                                                             / allowed).max())


@check(False)
def quantized_bits_are_the_cpus() -> None:
    """quantize and quantize_both on the device and on the CPU, for every format."""
    x = torch.randn(96, 192)
    for form in FORMATS:
        for layout in ("linear", "128x4"):
            for here, there in zip(ops.quantize(x, form, layout=layout), ops.quantize(x.to(DEVICE), form,
                                                                                      layout=layout)):
                assert torch.equal(here, there.cpu()), (form, layout)
    for here, there in zip(ops.quantize_both(x, "nvfp4"), ops.quantize_both(x.to(DEVICE), "nvfp4")):
        assert torch.equal(here, there.cpu())


@check(False)
def opcheck() -> None:
    """PyTorch's own check of operators."""
    x, w = numbers(6, 64), numbers(40, 64)
    codes, scales, scale = ops.quantize(w, "nvfp4", layout="128x4")
    named = {"b_format": "nvfp4", "b_layout": "128x4", "b_tensor_scale": scale}
    batch = ops.quantize(numbers(3, 40, 64), "mxfp4")
    rows = torch.tensor([1, 2, 3], device=DEVICE)
    for operator, positional, arguments in (
            (ops.quantize.default, (w, "mxfp4"), {}), (ops.matmul.default, (x, None, codes, scales), named),
            (ops.dequantize.default, (codes, scales, "nvfp4"), {"layout": "128x4", "tensor_scale": scale}),
            (ops.matmul_grouped.default, (x, None, batch[0], batch[1], rows), {"b_format": "mxfp4"})):
        results = torch.library.opcheck(operator, positional, arguments)
        assert set(results.values()) == {"SUCCESS"}, (operator, results)


@check(False)
def torchs_own_scaled_mm() -> None:
    """scaled_mm beside PyTorch's where that serves the recipe."""
    functional = torch.nn.functional
    if not hasattr(functional, "scaled_mm"):
        raise Skipped("torch.nn.functional.scaled_mm is not there")
    kinds = functional.ScalingType
    a, b = numbers(64, 256).to(torch.float8_e4m3fn), numbers(128, 256).to(torch.float8_e4m3fn)
    served = []
    for name, scale_a, scale_b in (
            ("TensorWise", torch.tensor(0.5, device=DEVICE), torch.tensor(1.5, device=DEVICE)),
            ("RowWise", numbers(64, 1, dtype=torch.float32).abs(), numbers(1, 128, dtype=torch.float32).abs()),
            ("BlockWise1x128", numbers(2, 64, dtype=torch.float32).abs().t(),
             numbers(2, 128, dtype=torch.float32).abs().t())):
        kind = getattr(kinds, name)
        ours = bt.scaled_mm(a, b.t(), scale_a, kind, scale_b, kind)
        try:
            theirs = functional.scaled_mm(a, b.t(), scale_a, kind, scale_b, kind)
        except (RuntimeError, ValueError):
            continue
        served.append(name)
        assert torch.allclose(ours.float(), theirs.float(), rtol=2e-2, atol=2e-2 * float(theirs.float().abs().max()))
    FIGURES["scaled_mm compared with PyTorch"] = served
    if not served:
        raise Skipped("PyTorch serves none of the recipes here")


@check(False)
def autocast() -> None:
    """fp32 inputs are cast, as by PyTorch's own products."""
    layer = bt.Linear.from_float(nn.Linear(128, 64, device=DEVICE), "mxfp4")
    x = numbers(5, 128, dtype=torch.float32)
    with torch.no_grad(), torch.autocast(DEVICE.type, torch.bfloat16):
        y = layer(x)
    with torch.no_grad():
        assert y.dtype is torch.bfloat16 and torch.equal(y, layer(x.bfloat16()))


@check(False)
def prepacked_weights_have_the_same_bits() -> None:
    """Few rows and many; panels are made once, and again after a write."""
    linear = nn.Linear(1024, 512, bias=False, device=DEVICE)
    for form in ("mxfp4", "nvfp4"):
        packed, plain = (bt.Linear.from_float(linear, form, prepack=prepack) for prepack in (True, False))
        for rows in (1, 16, 64, 128, 300):
            x = numbers(rows, 1024)
            assert torch.equal(packed(x), plain(x)), (form, rows)
        first = packed.panels["weight"][1]
        assert first.numel() > 0 and not plain.panels
        packed.codes.copy_(bt.Linear.from_float(nn.Linear(1024, 512, device=DEVICE), form).codes)
        x = numbers(3, 1024)
        plain.load_state_dict(packed.state_dict())
        assert torch.equal(packed(x), plain(x)) and packed.panels["weight"][1] is not first


# What is launched -----------------------------------------------------------------------------------------------------

def launched(function: Callable[[], Any]) -> tuple[collections.Counter[str], collections.Counter[str]]:
    """Work that a warm call puts on the GPU, by name, and the calls of CUDA that wait or allocate."""
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU,
                                            torch.profiler.ProfilerActivity.CUDA]) as profile:
        function()
    torch.cuda.synchronize()
    work: collections.Counter[str] = collections.Counter()
    waits: collections.Counter[str] = collections.Counter()
    on_host = {event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CPU}
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            # In a replayed graph the profiler does not know whose memory a memset sets.
            if event.name not in on_host:            # else it marks a stretch of the host's work, and is no kernel
                work["Memset" if event.name.startswith("Memset") else event.name] += 1
        elif any(word in event.name for word in ("Synchronize", "Malloc", "MemAlloc")):
            waits[event.name] += 1
    waits.pop("cudaDeviceSynchronize", None)         # the profiler's own, at its end
    return work, waits


def c_call(a: Tensor, codes: Tensor, scales: Tensor, form: str, out: Tensor) -> Callable[[], None]:
    """The library's call alone, on a plan and a workspace that are there."""
    left, right = _tensors.parts(a, None, None, ""), _tensors.parts(codes, scales, None, form)
    epilogue = _plans.Epilogue(torch.bfloat16)
    plan = _plans.find(_tensors.device_of(a), left, right, epilogue, 0, 0)
    return lambda: plan.run(left, right, epilogue, out, None, None)


@check()
def no_kernel_copy_or_wait_beside_the_c_call() -> None:
    """The operator, a Linear, and both under torch.compile launch what the C call launches."""
    for rows in (1, 512):
        a, (codes, scales, _) = numbers(rows, 1024), ops.quantize(numbers(512, 1024), "mxfp4")
        layer = bt.Linear(1024, 512, "mxfp4", bias=False, prepack=False, device=DEVICE)
        layer.weight, layer.weight_scale = codes, scales

        def product(x: Tensor) -> Tensor:
            return ops.matmul(x, None, codes, scales, b_format="mxfp4")     # noqa: B023

        compiled, compiled_layer = torch.compile(product, fullgraph=True), torch.compile(layer, fullgraph=True)
        wanted, _ = launched(c_call(a, codes, scales, "mxfp4", torch.empty(rows, 512, dtype=torch.bfloat16,
                                                                           device=DEVICE)))
        assert sum(wanted.values()) > 0, "the profiler sees no kernels"
        FIGURES[f"kernels of a product of {rows} rows"] = dict(wanted)
        with torch.no_grad():
            for name, function in (("operator", product), ("layer", layer), ("compiled", compiled),
                                   ("compiled layer", compiled_layer)):
                work, waits = launched(lambda: function(a))                  # noqa: B023
                assert work == wanted, (rows, name, work, wanted)
                assert not waits, (rows, name, waits)
            assert torch.equal(compiled(a), product(a)) and torch.equal(compiled_layer(a), product(a))
        quantizing, waits = launched(lambda: ops.quantize(a, "mxfp8_e4m3"))  # noqa: B023
        FIGURES[f"kernels of quantizing {rows} rows"] = dict(quantizing)
        assert sum(quantizing.values()) == 1 and not waits, (quantizing, waits)


@check()
def calls_return_while_the_stream_is_busy() -> None:
    """In a stream of its own, behind work that takes long: nothing waits, and the result is right in the end."""
    stream = torch.cuda.Stream()
    x, w = numbers(64, 1024), numbers(256, 1024)
    experts, arguments = _experts()

    def work() -> tuple[Tensor, Tensor]:
        codes, scales, scale = ops.quantize(w, "nvfp4")
        y = ops.matmul(x, None, codes, scales, b_format="nvfp4", b_tensor_scale=scale)
        return y, experts(*arguments)

    with torch.no_grad():
        wanted = work()
        torch.cuda.synchronize()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
            torch.cuda.synchronize()
            torch.cuda._sleep(400_000_000)
            start = time.perf_counter()
            got = work()
            host = time.perf_counter() - start
            assert not stream.query(), f"the stream was done after {host} s: something waited for it"
        assert torch.cuda.default_stream().query(), "work went into the default stream"
        stream.synchronize()
    assert all(torch.equal(left, right) for left, right in zip(got, wanted))
    FIGURES["seconds of host behind a busy stream"] = host


@check(False)
def prepacked_weights_alone() -> None:
    """In place of codes and scales: the same bits, rows beyond those of prepacked kernels, gradients, state, graphs."""
    if DEVICE.type == "cpu":
        return
    linear = nn.Linear(1024, 512, device=DEVICE, dtype=torch.bfloat16)
    for form in ("mxfp4", "nvfp4"):
        alone, plain = (bt.Linear.from_float(linear, form, prepack=prepack) for prepack in ("alone", False))
        for rows in (1, 40, 5000):
            x = numbers(rows, 1024)
            assert torch.equal(alone(x), plain(x)), (form, rows)
        assert alone.codes.untyped_storage().nbytes() == 1 and alone.codes.shape == plain.codes.shape
        for name, tensor in plain.state_dict().items():
            one, other = (x.reshape(-1).view(torch.uint8) for x in (alone.state_dict()[name], tensor))
            assert torch.equal(one, other), (form, name)
        with torch.enable_grad():
            gradients = []
            for layer in (alone, plain):
                given = torch.ones(7, 1024, dtype=torch.bfloat16, device=DEVICE, requires_grad=True)
                layer(given).sum().backward()
                gradients.append(given.grad)
        assert torch.equal(*gradients)
        x = numbers(3, 1024)
        assert torch.equal(torch.compile(alone)(x), plain(x))
        alone.load_state_dict(plain.state_dict())
        assert torch.equal(alone(x), plain(x))
        half = alone.to("cpu").to(DEVICE)
        assert torch.equal(half.codes, plain.codes) and torch.equal(half(x), plain(x))


def _experts(prepack: bool | None = None) -> tuple[bt.Experts, tuple[Tensor, Tensor, Tensor]]:
    layer = bt.Experts(8, 512, 256, "mxfp4", device=DEVICE, dtype=torch.bfloat16, prepack=prepack).requires_grad_(False)
    for name, rows, columns in (("gate_up_proj", 512, 512), ("down_proj", 512, 256)):
        layer.set_weight(name, numbers(8, rows, columns) / 16)
    indices = torch.stack([torch.randperm(8)[:2] for _ in range(24)]).to(DEVICE)
    return layer, (numbers(24, 512), indices, torch.rand(24, 2).to(DEVICE, torch.bfloat16))


@check(False)
def experts_wait_for_nothing_and_do_not_see_each_other() -> None:
    """Experts beside decoded weights, token by token; prepacked; PyTorch's own watch for synchronisations."""
    layer, (x, indices, weights) = _experts(False)
    if DEVICE.type == "cuda":
        layer(x, indices, weights)
        torch.cuda.set_sync_debug_mode("error")
    try:
        y = layer(x, indices, weights)
        part = layer(x[:3], indices[:3], weights[:3])
    finally:
        if DEVICE.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(y[:3], part)
    gate_up, down = layer.dequantize("gate_up_proj").double(), layer.dequantize("down_proj").double()
    for token in range(x.shape[0]):
        wanted = torch.zeros(512, dtype=torch.float64, device=DEVICE)
        for place in range(2):
            e = int(indices[token, place])
            h = gate_up[e] @ x[token].double()
            g, u = h[::2].clamp(max=7), h[1::2].clamp(-7, 7)
            wanted += weights[token, place].double() * (down[e] @ (g * torch.sigmoid(1.702 * g) * (u + 1)))
        assert torch.allclose(y[token].double(), wanted, rtol=0.03, atol=0.03 * float(wanted.abs().max())), token
    layer.prepack = True
    layer.drop_prepacked()
    assert torch.equal(layer(x, indices, weights), y)
    assert layer.panels["gate_up_proj"][1].numel() > 0 or DEVICE.type == "cpu"


# Graphs ---------------------------------------------------------------------------------------------------------------

def captured(function: Callable[[], Any]) -> tuple[torch.cuda.CUDAGraph, Any]:
    """A CUDA graph of the function, run before as PyTorch asks for it, and the results that replays write."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph, result


@check()
def graphs_have_the_same_bits() -> None:
    """Capture and replay of products, quantizing, layers and experts, with new inputs, many times."""
    x, w = numbers(16, 1024), numbers(512, 1024)
    layer = bt.Linear.from_float(nn.Linear(1024, 512, device=DEVICE, dtype=torch.bfloat16), "nvfp4", prepack=True)
    experts, (tokens, indices, weights) = _experts(True)

    def work() -> list[Tensor]:
        codes, scales, scale = ops.quantize(w, "nvfp4", layout="128x4")
        a, a_scales, _ = ops.quantize(x, "mxfp8_e4m3")
        return [ops.matmul(a, a_scales, codes, scales, a_format="mxfp8_e4m3", b_format="nvfp4", b_layout="128x4",
                           b_tensor_scale=scale), layer(x), experts(tokens, indices, weights),
                *ops.quantize_both(w, "mxfp8_e4m3")[:5:3]]

    with torch.no_grad():
        graph, results = captured(work)
        for seed in range(5):
            torch.manual_seed(seed)
            for tensor in (x, w, tokens):
                tensor.copy_(torch.randn(tensor.shape))
            indices.copy_(torch.stack([torch.randperm(8)[:2] for _ in range(24)]))
            graph.replay()
            graph.replay()
            torch.cuda.synchronize()
            for number, (replayed, eager) in enumerate(zip(results, work())):
                assert torch.equal(replayed, eager), (seed, number)
        replayed_work, waits = launched(graph.replay)
        eager_work, _ = launched(work)
        FIGURES["kernels of the graph"] = sum(replayed_work.values())
        extra = replayed_work - eager_work
        assert not extra and not waits, (extra, waits)


@check()
def compiled_with_graphs() -> None:
    """torch.compile in the mode that makes CUDA graphs by itself."""
    model = nn.Sequential(nn.Linear(256, 512), nn.SiLU(), nn.Linear(512, 256)).to(DEVICE, torch.bfloat16)
    bt.quantize_(model, "mxfp4")
    model.requires_grad_(False)
    FIGURES["bytes prepacked"] = bt.prepack_(model)
    compiled = torch.compile(model, fullgraph=True, mode="reduce-overhead")
    for rows in (4, 4, 4, 32, 32, 32):
        x = numbers(rows, 256)
        with torch.no_grad():
            y = compiled(x).clone()
            first = model[0](x)
            # The activation in between may be rounded elsewhere by the compiler, so products are compared by a bound.
            wanted = model[2](nn.functional.silu(first))
        assert torch.allclose(y.float(), wanted.float(), rtol=0.02, atol=0.02 * float(wanted.float().abs().max()))
    single = torch.compile(model[0], fullgraph=True, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(4):
            x = numbers(8, 256)
            assert torch.equal(single(x).clone(), model[0](x))


# Time -----------------------------------------------------------------------------------------------------------------

@check()
def what_a_call_costs_the_host() -> None:
    """Microseconds of the host for one launch: the library's call alone, the operator, the layer, PyTorch's linear."""
    a, (codes, scales, _) = numbers(1, 1024), ops.quantize(numbers(1024, 1024), "mxfp4")
    layer = bt.Linear(1024, 1024, "mxfp4", bias=False, prepack=False, device=DEVICE)
    layer.weight, layer.weight_scale = codes, scales
    dense = nn.Linear(1024, 1024, bias=False, device=DEVICE, dtype=torch.bfloat16)
    calls: dict[str, Callable[[], Any]] = {
        "C call": c_call(a, codes, scales, "mxfp4", torch.empty(1, 1024, dtype=torch.bfloat16, device=DEVICE)),
        "operator": lambda: ops.matmul(a, None, codes, scales, b_format="mxfp4"), "layer": lambda: layer(a),
        "torch.nn.Linear": lambda: dense(a)}
    times: dict[str, list[float]] = {name: [] for name in calls}
    with torch.inference_mode():
        for _ in range(30):
            for name, call in calls.items():
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(100):
                    call()
                times[name].append((time.perf_counter() - start) * 1e4)
    FIGURES["microseconds of the host for a launch"] = {name: round(sorted(each)[15], 2) for name, each in
                                                        times.items()}


# Models ---------------------------------------------------------------------------------------------------------------

@check(False)
def models() -> None:
    """Small models of transformers on the device: quantized, generated from, compared with decoded weights."""
    try:
        import transformers

        import blockscale.torch.transformers as bst
    except ImportError as error:
        raise Skipped(str(error)) from error
    import tempfile
    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "vocab_size": 96, "max_position_embeddings": 64}
    configs = [transformers.LlamaConfig(intermediate_size=256, tie_word_embeddings=False, **sizes),
               transformers.GptOssConfig(intermediate_size=64, head_dim=32, num_local_experts=4,
                                         num_experts_per_tok=2, sliding_window=16, **sizes)]
    for config in configs:
        with tempfile.TemporaryDirectory() as folder:
            transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
            model = transformers.AutoModelForCausalLM.from_pretrained(
                folder, quantization_config=bst.BlockscaleConfig("mxfp4"), dtype=torch.bfloat16).to(DEVICE)
            plain = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to(DEVICE)
        count = 0
        for name, module in model.named_modules():
            own = plain.get_submodule(name)
            with torch.no_grad():
                if isinstance(module, bt.Linear):
                    own.weight.copy_(module.dequantize())
                    count += 1
                elif isinstance(module, bt.Experts):
                    for projection in ("gate_up_proj", "down_proj"):
                        getattr(own, projection).copy_(module.dequantize(projection).mT)
                    count += 1
        assert count >= 10, count
        tokens = torch.arange(12, device=DEVICE).reshape(2, 6)
        with torch.no_grad():
            logits, wanted = model(tokens).logits.float(), plain(tokens).logits.float()
        assert torch.allclose(logits, wanted, rtol=0.05, atol=0.05 * float(wanted.abs().max()))
        told = model.generate(tokens, max_new_tokens=4, do_sample=False, pad_token_id=0)
        assert told.shape == (2, 10)


def main() -> int:
    """Runs the checks."""
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default="")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if options.cpu:
        DEVICE = torch.device("cpu")
    elif not torch.cuda.is_available():
        print("gpu_check: PyTorch sees no GPU")
        return 1
    FIGURES.update(python=platform.python_version(), torch=torch.__version__, blockscale=blockscale.version(),
                   device=torch.cuda.get_device_name() if DEVICE.type == "cuda" else platform.machine())
    counts: collections.Counter[str] = collections.Counter()
    for name, function, needs_gpu in CHECKS:
        if options.only not in name:
            continue
        torch.manual_seed(20261123)
        start, result = time.perf_counter(), "passed"
        try:
            if needs_gpu and DEVICE.type == "cpu":
                raise Skipped("it needs a GPU")
            function()
        except Skipped as reason:
            result = "skipped"
            print(f"  {name}: skipped: {reason}")
        except Exception:       # noqa: BLE001
            result = "failed"
            traceback.print_exc()
        counts[result] += 1
        print(f"{name}: {result}, {time.perf_counter() - start:.1f} s", flush=True)
    print(json.dumps(FIGURES, indent=1))
    if options.out:
        Path(options.out).write_text(json.dumps(FIGURES, indent=1) + "\n", encoding="utf-8")
    print(f"gpu_check: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

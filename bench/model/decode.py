#!/usr/bin/env python3
"""Decoding and prefill of whole models of transformers on a GPU: bf16 beside weights in this library's formats.

    PYTHONPATH=python/src python3 bench/model/decode.py --model llama-3-8b --out build/llama
    PYTHONPATH=python/src python3 bench/model/decode.py --model gpt-oss-20b --out build/gpt-oss

Models have the named configuration and random weights.  One process measures every way one after the other: a step of
decoding is a CUDA graph of the whole model with a static cache that holds a prompt, each replay makes one token for
every sequence; time to first token is the prompt's pass without a graph.  gpt-oss has only its experts in MXFP4, as the
released model does, and is multiplied by the faster of transformers' two implementations in bf16.  With
--triton-kernels FOLDER its experts are multiplied by triton_kernels as well, from the same codes.  Writes OUT.json
after each cell, and goes on where an earlier call stopped at its --seconds."""

import argparse
import gc
import json
import pathlib
import statistics
import sys
import time

import torch
import torch.nn as nn
import transformers
from transformers.cache_utils import StaticLayer

import blockscale.torch as bt

CONFIGURATIONS = {
    "llama-3-8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                       num_key_value_heads=8, vocab_size=128256, max_position_embeddings=32768, rope_theta=500000.0),
    "gpt-oss-20b": dict(hidden_size=2880, intermediate_size=2880, num_hidden_layers=24, num_attention_heads=64,
                        num_key_value_heads=8, head_dim=64, num_local_experts=32, num_experts_per_tok=4,
                        vocab_size=201088, sliding_window=128, max_position_embeddings=32768),
    "tiny-llama": dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, vocab_size=96),
    "tiny-gpt-oss": dict(hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, head_dim=16, num_local_experts=4, num_experts_per_tok=2,
                         vocab_size=96, sliding_window=16),
}


def make(name: str, device: str) -> nn.Module:
    """The model with random weights, made where it is to lie."""
    gpt_oss = "gpt-oss" in name
    config = (transformers.GptOssConfig if gpt_oss else transformers.LlamaConfig)(**CONFIGURATIONS[name])
    config._attn_implementation = "eager" if gpt_oss else "sdpa"
    kind = transformers.GptOssForCausalLM if gpt_oss else transformers.LlamaForCausalLM
    previous = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model = kind(config)
    finally:
        torch.set_default_dtype(previous)
    return model.eval().requires_grad_(False)


def device_bytes(model: nn.Module) -> int:
    """Bytes of all tensors of the model, prepacked copies among them, each once."""
    return sum({tensor.data_ptr(): min(tensor.nbytes, tensor.untyped_storage().nbytes()) for tensor in
                [*model.parameters(), *model.buffers()]}.values())


class Place(StaticLayer):
    """The cache of a layer for steps of one token, written at a place that all layers share: transformers' own keeps
    and counts one for each, three small kernels more.  Of a layer that attends to the last tokens alone it is a ring:
    transformers' shifts all of it with each token, by a copy from the host that no graph captures."""

    def start(self, like: torch.Tensor, place: torch.Tensor) -> None:
        self.lazy_initialization(like, like)
        # Other tensors than those that torch.compile takes to lie where they lie for ever, and compiles anew for.
        self.keys, self.values = torch.randn_like(self.keys), torch.randn_like(self.values)
        self.place = place

    def update(self, keys: torch.Tensor, values: torch.Tensor, *_: object, **__: object
               ) -> tuple[torch.Tensor, torch.Tensor]:
        place = self.place % self.max_cache_len
        self.keys.index_copy_(2, place, keys)
        self.values.index_copy_(2, place, values)
        return self.keys, self.values


class Alone:
    """What a layer sees of the cache when it is compiled: its own part, so that every layer is the same code."""

    def __init__(self, layer: Place) -> None:
        self.layer = layer

    def update(self, keys: torch.Tensor, values: torch.Tensor, *_: object, **__: object
               ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.layer.update(keys, values)


def call(layer: nn.Module, hidden: torch.Tensor, *rest: object, **named: object) -> torch.Tensor:
    return layer(hidden, *rest, **named)


class Compiled(nn.Module):
    """A layer of a decoder, by code that is compiled once for all of them."""

    def __init__(self, layer: nn.Module, cache: Place, compiled: object) -> None:
        super().__init__()
        self.layer, self.cache, self.compiled = layer, Alone(cache), compiled
        self.attention_type = getattr(layer, "attention_type", None)

    def forward(self, hidden: torch.Tensor, *rest: object, **named: object) -> torch.Tensor:
        attention = self.layer.self_attn
        number, attention.layer_idx = attention.layer_idx, 0
        try:
            return self.compiled(self.layer, hidden, *rest, **{**named, "cache": self.cache})
        finally:
            attention.layer_idx = number


def grouped_attention(module: nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                      attention_mask: torch.Tensor, scaling: float, **_: object) -> tuple[torch.Tensor, None]:
    """Attention of one token for each sequence: the heads that share keys are the rows of one product."""
    batch, heads, _, size = query.shape
    rows = query.reshape(batch, key.shape[1], -1, size)
    weights = torch.softmax((rows @ key.transpose(2, 3)).float() * scaling + attention_mask, -1).to(value.dtype)
    return (weights @ value).view(batch, 1, heads, size), None


class Decoder:
    """One step of decoding for a batch of sequences whose caches hold a prompt, as a graph."""

    def __init__(self, model: nn.Module, batch: int, prompt: int, compiled: bool, room: int = 64) -> None:
        device = next(model.parameters()).device
        self.model, self.room = model, room
        config = model.config
        length = prompt + room
        self.cache = transformers.StaticCache(config=config, max_cache_len=length)
        heads, size = config.num_key_value_heads, getattr(config, "head_dim", None) or (
            config.hidden_size // config.num_attention_heads)
        empty = torch.empty(batch, heads, 0, size, dtype=torch.bfloat16, device=device)
        self.ids = torch.randint(0, config.vocab_size, (batch, 1), device=device)
        self.place = torch.full((1, 1), prompt, device=device)
        self.places = torch.arange(length, device=device)
        self.cache.layers = [Place(layer.max_cache_len) for layer in self.cache.layers]
        for layer in self.cache.layers:
            layer.start(empty, self.place.view(1))
        self.layers = self.given = model.model.layers
        self.attention = config._attn_implementation
        if compiled:
            torch._dynamo.reset()
            code = torch.compile(call, dynamic=False)
            self.layers = nn.ModuleList(Compiled(layer, cache, code)
                                        for layer, cache in zip(self.given, self.cache.layers))
            self.attention = "grouped" if config.model_type == "llama" else self.attention
        self.graph = None

    def masks(self) -> dict | torch.Tensor:
        behind = self.places[None, None, None, :] > self.place[0, 0]
        # Filled, not chosen by torch.where, which copies its two numbers to the GPU: no graph captures that.
        full = torch.zeros_like(behind, dtype=self.cache.layers[0].keys.dtype).masked_fill_(behind, float("-inf"))
        if self.model.config.model_type != "gpt_oss":
            return full
        window = min(self.model.config.sliding_window, self.places.shape[0])
        return {"full_attention": full, "sliding_attention": full.new_zeros(1, 1, 1, window)}

    def step(self) -> None:
        """One token for each sequence; all that the next step reads is written in place."""
        config = self.model.config
        usual, config._attn_implementation = config._attn_implementation, self.attention
        self.model.model.layers = self.layers
        try:
            logits = self.model(input_ids=self.ids, attention_mask=self.masks(), position_ids=self.place,
                                cache=self.cache, use_cache=True).logits
        finally:
            self.model.model.layers, config._attn_implementation = self.given, usual
        self.ids.copy_(logits[:, -1:].argmax(-1))
        self.place.add_(1)

    def capture(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self.step()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.step()

    def seconds(self, steps: int = 20) -> float:
        """The median time of a step."""
        if not self.ids.is_cuda:
            began = time.perf_counter()
            for _ in range(3):
                self.step()
            return (time.perf_counter() - began) / 3
        self.capture()
        for _ in range(3):
            self.graph.replay()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
        events[0].record()
        for event in events[1:]:
            self.graph.replay()
            event.record()
        torch.cuda.synchronize()
        return statistics.median(a.elapsed_time(b) for a, b in zip(events, events[1:])) / 1e3


def prefill_seconds(model: nn.Module, batch: int, prompt: int) -> float:
    """The shorter of two passes over a prompt that end with the first token's logits, after one that warms up."""
    device = next(model.parameters()).device
    ids = torch.randint(0, model.config.vocab_size, (batch, prompt), device=device)
    best = float("inf")
    for turn in range(3):
        if device.type == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        model(input_ids=ids, use_cache=True, logits_to_keep=1).logits.argmax(-1).cpu()
        if turn > 0:
            best = min(best, time.perf_counter() - began)
    return best


def experts_seconds(model: nn.Module, tokens: int) -> float:
    """The least of five calls of the first layer's router and experts alone, after two that warm up."""
    layer, like = model.model.layers[0].mlp, next(model.parameters())
    hidden = torch.randn(1, tokens, model.config.hidden_size, device=like.device, dtype=like.dtype)
    best = float("inf")
    for turn in range(7):
        if like.is_cuda:
            torch.cuda.synchronize()
        began = time.perf_counter()
        layer(hidden)
        if like.is_cuda:
            torch.cuda.synchronize()
        if turn > 1:
            best = min(best, time.perf_counter() - began)
    return best


class TritonExperts(nn.Module):
    """gpt-oss' router and experts by triton_kernels, in place of transformers' layer; codes are those of bt.Experts."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        from triton_kernels.matmul_ogs import FlexCtx, PrecisionConfig
        from triton_kernels.numerics import InFlexData
        from triton_kernels.tensor import FP4, convert_layout, wrap_torch_tensor
        from triton_kernels.tensor_details import layout
        self.router, experts = layer.router, layer.experts
        experts.drop_prepacked()
        self.weights, self.kept = [], []
        for name in ("gate_up_proj", "down_proj"):
            codes = getattr(experts, f"{name}_blocks").flatten(2).transpose(-1, -2)
            scales = getattr(experts, f"{name}_scales")
            scales = nn.functional.pad(scales, (0, -scales.shape[-1] % 4)).transpose(-1, -2)
            of_codes, codes_options = layout.make_default_matmul_mxfp4_w_layout(mx_axis=1)
            of_scales, scales_options = layout.make_default_matmul_mxfp4_w_scale_layout(mx_axis=1, num_warps=8)
            w = convert_layout(wrap_torch_tensor(codes, dtype=FP4), of_codes, **codes_options)
            s = convert_layout(wrap_torch_tensor(scales), of_scales, **scales_options)
            self.weights.append((w, getattr(experts, f"{name}_bias").detach().float(), PrecisionConfig(
                weight_scale=s, flex_ctx=FlexCtx(rhs_data=InFlexData()))))
            self.kept += [w.storage.data, s.storage.data]

    @torch.compiler.disable
    def forward(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        from triton_kernels.matmul_ogs import FnSpecs, FusedActivation, matmul_ogs
        from triton_kernels.routing import routing
        from triton_kernels.swiglu import swiglu_fn
        rows = hidden.reshape(-1, hidden.shape[-1])
        logits = nn.functional.linear(rows, self.router.weight, self.router.bias)
        routed, gather, scatter = routing(logits, self.router.top_k)
        act = FusedActivation(FnSpecs("swiglu", swiglu_fn, ("alpha", "limit")), (1.702, 7.0), 2)
        (w1, b1, p1), (w2, b2, p2) = self.weights
        y = matmul_ogs(rows, w1, b1, routed, gather_indx=gather, precision_config=p1, fused_activation=act)
        y = matmul_ogs(y, w2, b2, routed, scatter_indx=scatter, precision_config=p2, gammas=routed.gate_scal)
        return y.view(hidden.shape), logits


class Report:
    """Cells that are written as they are measured; those that an earlier call measured are kept."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.path = options.out.with_suffix(".json")
        self.end = time.time() + options.seconds
        self.cells = json.loads(self.path.read_text())["cells"] if self.path.exists() else []
        self.head = {"model": options.model, "torch": torch.__version__, "transformers": transformers.__version__,
                     "device": torch.cuda.get_device_name() if options.device == "cuda" else "CPU"}

    def measure(self, key: dict, function) -> None:
        if time.time() > self.end or any(key.items() <= cell.items() for cell in self.cells):
            return
        try:
            cell = {**key, **function()}
        except Exception as error:                          # what one way cannot do does not end the others
            cell = {**key, "failed": f"{type(error).__name__}: {str(error)[:300]}"}
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.cells.append(cell)
        print(cell, flush=True)
        self.path.write_text(json.dumps({**self.head, "cells": self.cells}, indent=1) + "\n")


def memory(model: nn.Module) -> dict:
    """Bytes on the device: of all tensors, and of the quantized layers as a file has them and as they lie here."""
    layers = [module for module in model.modules() if isinstance(module, bt.Linear | bt.Experts)]
    parts = [getattr(layer, name) for layer in layers for name in layer.quantized if getattr(layer, name) is not None]
    stored = sum(part.nbytes for part in parts)
    held = sum(min(part.nbytes, part.untyped_storage().nbytes()) for part in parts)
    panels = sum(tensor.nbytes for layer in layers for _, tensor in layer.panels.values())
    kept = sum(tensor.nbytes for module in model.modules() for tensor in getattr(module, "kept", []))
    cell = {"bytes": device_bytes(model) + kept, "quantized_in_file": stored, "quantized_here": held + panels}
    if torch.cuda.is_available():
        gc.collect()
        cell["allocated"] = torch.cuda.memory_allocated()
    return cell


@torch.inference_mode()
def measure(way: str, model: nn.Module, options: argparse.Namespace, report: Report) -> None:
    """All cells of one way."""
    report.measure({"way": way, "what": "memory"}, lambda: memory(model))
    for prompt in options.prompts:
        for batch in options.batches:
            key = {"way": way, "batch": batch, "prompt": prompt}

            def decode() -> dict:
                seconds = Decoder(model, batch, prompt, options.compile).seconds()
                return {"step_ms": 1e3 * seconds, "tokens_per_second": batch / seconds}

            report.measure({**key, "what": "decode"}, decode)
            if batch * prompt <= options.most:
                report.measure({**key, "what": "first"}, lambda: {"ms": 1e3 * prefill_seconds(model, batch, prompt)})
    for tokens in options.experts if "gpt-oss" in options.model else []:
        report.measure({"way": way, "what": "experts", "tokens": tokens}, lambda: {
            "ms": 1e3 * experts_seconds(model, tokens)})
    for tokens in options.prefill:
        report.measure({"way": way, "what": "prefill", "tokens": tokens}, lambda: {
            "ms": 1e3 * prefill_seconds(model, 1, tokens)})


def put(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def run_llama(model: nn.Module, options: argparse.Namespace, report: Report) -> None:
    measure("bf16", model, options, report)
    originals = [(name, module) for name, module in model.named_modules() if type(module) is nn.Linear]
    for form in options.formats:
        for head in (False, True) if options.head else (False,):
            with torch.no_grad():
                bt.quantize_(model, form, (lambda *_: True) if head else None, fuse=options.fuse,
                             prepack="alone" if options.alone else None)
                if options.device == "cuda":
                    bt.prepack_(model)
            way = form + (", fused" if options.fuse else "") + (", head too" if head else "")
            measure(way, model, options, report)
            layers = [module for module in model.modules() if isinstance(module, bt.Linear) and module.panels]
            for layer in layers:                            # the same codes without the prepacked copy
                layer.prepack = False
                layer.drop_prepacked()
            if layers and options.stored:
                measure(f"{way}, as stored", model, argparse.Namespace(**{**vars(options), "prefill": []}), report)
            for name, module in originals:
                put(model, name, module)
            gc.collect()


def run_gpt_oss(model: nn.Module, options: argparse.Namespace, report: Report) -> None:
    for implementation in ("grouped_mm",) if options.compile else ("grouped_mm", "batched_mm"):
        model.config._experts_implementation = implementation
        measure(f"bf16 {implementation}", model, options, report)
    with torch.no_grad():
        bt.quantize_(model, "mxfp4", lambda module, name: name.endswith(".experts"),
                     prepack="alone" if options.alone else None)
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()
            bt.prepack_(model)
    measure("mxfp4", model, options, report)
    if options.triton_kernels:
        sys.path.insert(0, options.triton_kernels)
        try:
            for name, module in list(model.named_modules()):
                if name.endswith(".mlp"):
                    put(model, name, TritonExperts(module))
            gc.collect()
        except Exception as error:
            print(f"triton_kernels: {type(error).__name__}: {error}", flush=True)
            return
        measure("triton_kernels mxfp4", model, options, report)


transformers.AttentionInterface.register("grouped", grouped_attention)


def main() -> int:
    def numbers(text: str) -> list[int]:
        return [int(number) for number in text.split(",") if number]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, choices=CONFIGURATIONS)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="OUT.json")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--formats", default="nvfp4,mxfp4,mxfp8_e4m3", type=lambda text: text.split(","))
    parser.add_argument("--batches", default="1,8,32", type=numbers)
    parser.add_argument("--prompts", default="128,2048", type=numbers)
    parser.add_argument("--prefill", default="2048,4096,8192,16384", type=numbers, help="tokens of one sequence")
    parser.add_argument("--experts", default="1,32,2048,16384", type=numbers,
                        help="tokens of one layer's experts alone (gpt-oss)")
    parser.add_argument("--stored", action="store_true", help="4-bit weights without prepacked copies as well (Llama)")
    parser.add_argument("--alone", action="store_true", help="4-bit weights as prepacked weights alone")
    parser.add_argument("--fuse", action="store_true", help="quantize_(fuse=True) (Llama)")
    parser.add_argument("--head", action="store_true", help="the output layer in the format, too (Llama)")
    parser.add_argument("--compile", action="store_true", help="torch.compile of each layer, in every way")
    parser.add_argument("--most", default=16384, type=int, help="tokens of all prompts whose first token is timed")
    parser.add_argument("--triton-kernels", default="", help="a folder that has the package triton_kernels")
    parser.add_argument("--seconds", default=120, type=int, help="no cell begins later")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    report = Report(options)
    torch.manual_seed(1)
    model = make(options.model, options.device)
    print(f"{options.model}: {device_bytes(model) / 1e9:.2f} GB in bf16", flush=True)
    (run_gpt_oss if "gpt-oss" in options.model else run_llama)(model, options, report)
    return 0 if report.cells and not any("failed" in cell for cell in report.cells) else 1


if __name__ == "__main__":
    sys.exit(main())

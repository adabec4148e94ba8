#!/usr/bin/env python3
"""A small GPT trained in bf16 and with block-scaled products, from the same start and over the same batches.

    python3 bench/debian_text.py --out build/debian.txt
    PYTHONPATH=python/src BLOCKSCALE_LIBRARY=build/release/lib/libblockscale.so \\
        python3 bench/train_gpt.py --text build/debian.txt --out build/train

Writes OUT.json (every loss of every run) and OUT.svg (curves), and prints a table.  Every run has fp32 parameters,
autocast to bf16 and the same AdamW; a recipe replaces the products of the four linear layers of each block, while
embeddings, attention and the output layer stay in bf16, as is usual.  "Final" is the mean training loss of the last 50
steps, "validation" the mean over text that no step saw."""

import argparse
import json
import math
import pathlib
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import curves

RUNS = ("bf16", "MXFP8BlockScaling", "NVFP4BlockScaling")
REACH = {"MXFP8BlockScaling": (1.0, 0.5), "NVFP4BlockScaling": (3.0, 1.5)}      # percent: reach, aim


class Block(nn.Module):
    """Attention and a feed-forward part, each behind a norm and beside the residual stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Bytes in, logits of the next byte out."""

    def __init__(self, layers: int, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                deep = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if deep else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.tokens(text) + self.places.weight[:text.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def batches(data: torch.Tensor, count: int, size: int, length: int, seed: int) -> torch.Tensor:
    """Where the pieces of each batch begin: count x size, drawn from a seed, the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, data.shape[0] - length - 1, (count, size), generator=generator)


def pieces(data: torch.Tensor, starts: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pieces of text and, one byte on, what is to be predicted."""
    rows = data[starts[:, None] + torch.arange(length + 1, device=data.device)].long()
    return rows[:, :-1], rows[:, 1:]


def train(run: str, options: argparse.Namespace, data: torch.Tensor, held: torch.Tensor) -> dict[str, object]:
    """One run: losses of all steps, the validation loss, and the seconds of a step."""
    device = data.device
    torch.manual_seed(options.seed)
    model = GPT(options.layers, options.width, options.heads, options.length).to(device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if run != "bf16":
        import blockscale.torch.training as training
        recipe = getattr(training, run)(**({"compute": options.compute} if run.startswith("MX") else {}))
        training.convert_(model, recipe, filter=lambda layer, name: name.startswith("blocks."))
    decayed = [parameter for parameter in model.parameters() if parameter.dim() == 2]
    others = [parameter for parameter in model.parameters() if parameter.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=options.rate, betas=(0.9, 0.95), fused=device.type == "cuda")
    warm = max(1, options.steps // 20)

    def rate(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - warm) / max(1, options.steps - warm)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    starts = batches(data, options.steps, options.batch, options.length, options.seed + 1).to(device)

    def loss_of(text: torch.Tensor, next_bytes: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(text)
        return F.cross_entropy(logits.float().flatten(0, 1), next_bytes.flatten())

    torch.manual_seed(options.seed + 2)     # seeds of stochastic rounding
    losses, began, step_began = [], time.perf_counter(), 0.0
    for step in range(options.steps):
        if step == min(10, options.steps - 1):
            if device.type == "cuda":
                torch.cuda.synchronize()
            step_began = time.perf_counter()
        loss = loss_of(*pieces(data, starts[step], options.length))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        losses.append(loss.detach())
        if (step + 1) % 100 == 0 or step + 1 == options.steps:
            print(f"  {run}: step {step + 1}, loss {losses[-1].item():.4f}, {time.perf_counter() - began:.1f} s",
                  flush=True)
    seconds = (time.perf_counter() - step_began) / max(1, options.steps - min(10, options.steps - 1))
    numbers = [float(number) for number in torch.stack(losses).cpu()]
    where = batches(held, options.validation, options.batch, options.length, options.seed + 3).to(device)
    with torch.no_grad():
        checks = [loss_of(*pieces(held, start, options.length)) for start in where]
    return {"run": run, "parameters": parameters, "losses": numbers, "final": statistics.mean(numbers[-50:]),
            "validation": float(torch.stack(checks).mean()), "step_ms": 1e3 * seconds}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True, help="the text, any file of bytes")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/train"), help="OUT.json and OUT.svg")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--runs", default=",".join(RUNS), help="which, with commas between them")
    parser.add_argument("--compute", default="exact", choices=("exact", "fast"), help="of MXFP8's products")
    for name, default in (("steps", 1000), ("layers", 4), ("width", 512), ("heads", 8), ("length", 256), ("batch", 32),
                          ("validation", 50), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    parser.add_argument("--rate", type=float, default=1e-3, help="the highest learning rate, default 0.001")
    options = parser.parse_args()
    runs = options.runs.split(",")
    if not set(runs) <= set(RUNS):
        parser.error(f"--runs {options.runs}: use {', '.join(RUNS)}")
    text = torch.frombuffer(bytearray(options.text.read_bytes()), dtype=torch.uint8).to(options.device)
    split = text.shape[0] * 19 // 20
    if text.shape[0] - split <= options.length + 1:
        parser.error(f"--text {options.text} has {text.shape[0]} bytes: too few to hold any back for validation")
    device = torch.cuda.get_device_name() if options.device.startswith("cuda") else "CPU"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results = []
    for run in runs:
        results.append(train(run, options, text[:split], text[split:]))
        options.out.with_suffix(".json").write_text(json.dumps(     # after each run: what is done is not lost
            {"device": device, "torch": torch.__version__, "text_bytes": text.shape[0],
             "options": {name: str(value) for name, value in vars(options).items()}, "results": results}, indent=1)
            + "\n")
    title = f"{results[0]['parameters'] / 1e6:.1f} million parameters, {options.steps} steps of " \
            f"{options.batch} x {options.length} bytes, {device}"
    print(f"\n{title}, PyTorch {torch.__version__}\n\n"
          "| run | final | beside bf16 | validation | beside bf16 | step, ms |\n|---|---|---|---|---|---|")
    base = next((result for result in results if result["run"] == "bf16"), None)
    reached = True
    drawn = []
    for result in results:
        beside = {}
        for name in ("final", "validation"):
            beside[name] = "" if base in (None, result) else f"{100 * (result[name] / base[name] - 1):+.2f} %"
        print(f"| {result['run']} | {result['final']:.4f} | {beside['final']} | {result['validation']:.4f} | "
              f"{beside['validation']} | {result['step_ms']:.1f} |")
        drawn.append((result["run"], curves.smooth(result["losses"], 20),
                      f"final {result['final']:.4f} {beside['final']}"))
        if base is not None and result["run"] in REACH:
            worse = 100 * max(result[name] / base[name] - 1 for name in ("final", "validation"))
            reached &= worse <= REACH[result["run"]][0]
    low = min(min(curve[1]) for curve in drawn)
    options.out.with_suffix(".svg").write_text(
        curves.draw(f"Training loss, means of 20 steps: {title}", "step", "loss, nats a byte", drawn, low - 0.05,
                    min(low + 2.0, max(max(curve[1]) for curve in drawn))))
    print(f"\n{options.out.with_suffix('.json')}, {options.out.with_suffix('.svg')}"
          + ("" if base is None or reached else "\na loss is beyond what was to be reached"))
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

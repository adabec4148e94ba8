#!/usr/bin/env python3
"""What each format and recipe costs in accuracy: a byte-level GPT is trained, then its linear layers are quantized.

    python3 bench/debian_text.py --out build/debian.txt --megabytes 24
    PYTHONPATH=python/src python3 bench/model/accuracy.py --text build/debian.txt --out build/accuracy

Writes OUT.json, after each row, and OUT.md and OUT.svg: how much the loss on held-back text grows.  Weights are
quantized by the library, and multiplied by it, in the four linear layers of each block; "weights" has inputs of bf16,
"weights and activations" quantizes each input to the same format, too, by the same recipe.  "Rotated" is a Hadamard
rotation of 32 columns of both operands before that.  Embeddings, attention and the output layer stay in bf16.  Every
row sees the same text, so differences are those of the formats; the last column is their standard error over batches.
The trained model is kept in OUT.pt, and a second call goes on from there."""

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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import train_gpt                                            # noqa: E402

import blockscale                                           # noqa: E402
import blockscale.torch                                     # noqa: E402, F401  (registers the operators)

ROTATED = 32
# Format, recipe of weights and of activations.
ROWS = (("mxfp8_e4m3", "rceil"), ("mxfp8_e4m3", "floor"), ("mxfp8_e5m2", "rceil"), ("mxint8", "rceil"),
        ("mxfp6_e2m3", "rceil"), ("mxfp6_e3m2", "rceil"),
        ("nvfp4", "nearest"), ("nvfp4", "four_over_six"),
        ("mxfp4", "rceil"), ("mxfp4", "floor"), ("mxfp4", "ceil"), ("mxfp4", "even"), ("mxfp4", "mse"),
        ("e4m3", "default"))


def rotation(device: torch.device) -> torch.Tensor:
    """The library's Hadamard rotation as a matrix, to multiply rows by from the right."""
    return torch.from_numpy(blockscale.hadamard(torch.eye(ROTATED).numpy(), ROTATED)).to(device)


class QuantizedLinear(nn.Module):
    """A linear layer as one row of the table has it."""

    def __init__(self, linear: nn.Linear, form: str, recipe: str, activations: bool, rotated: bool) -> None:
        super().__init__()
        self.form, self.recipe, self.activations = form, "default" if recipe == "nearest" else recipe, activations
        self.turn = rotation(linear.weight.device) if rotated else None
        self.bias = linear.bias
        self.b = self.quantize(self.rotate(linear.weight.detach().float()))

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        if self.turn is None:
            return x
        return (x.float().view(*x.shape[:-1], -1, ROTATED) @ self.turn).view(x.shape)

    def quantize(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        scaled = self.form in ("nvfp4", "e4m3")
        return torch.ops.blockscale.quantize(x, self.form, recipe=self.recipe, compute_tensor_scale=scaled)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.rotate(x.reshape(-1, x.shape[-1])).to(torch.bfloat16)
        codes, scales, scale = self.quantize(rows) if self.activations else (rows, None, None)
        y = torch.ops.blockscale.matmul(
            codes, scales, self.b[0], self.b[1], a_format=self.form if self.activations else "bf16",
            a_tensor_scale=scale, b_format=self.form, b_tensor_scale=self.b[2], bias=self.bias,
            out_dtype=torch.bfloat16)
        return y.view(*x.shape[:-1], -1)


def quantized(model: nn.Module, *how: object) -> list[tuple[str, nn.Module]]:
    """Replaces the linear layers of the model's blocks; returns those that were there, with their names."""
    found = [(name, module) for name, module in model.named_modules()
             if type(module) is nn.Linear and name.startswith("blocks.")]
    for name, module in found:
        put(model, name, QuantizedLinear(module, *how))
    return found


def put(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def loss_of(model: nn.Module, text: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    with torch.autocast(text.device.type, torch.bfloat16):
        logits = model(text)
    return F.cross_entropy(logits.float().flatten(0, 1), following.flatten())


def train(model: nn.Module, data: torch.Tensor, options: argparse.Namespace) -> None:
    """AdamW with a warm-up and a cosine to a tenth of the rate, until the steps or the seconds are over."""
    decayed = [parameter for parameter in model.parameters() if parameter.dim() == 2]
    others = [parameter for parameter in model.parameters() if parameter.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=options.rate, betas=(0.9, 0.95), fused=data.is_cuda)
    starts = train_gpt.batches(data, options.steps, options.batch, options.length, 2).to(data.device)
    began, warm = time.time(), max(1, options.steps // 20)
    for step in range(options.steps):
        part = max(step / options.steps, (time.time() - began) / options.seconds)
        if part >= 1:
            break
        factor = min((step + 1) / warm, 0.1 + 0.45 * (1 + math.cos(math.pi * part)))
        for group in optimizer.param_groups:
            group["lr"] = options.rate * factor
        loss = loss_of(model, *train_gpt.pieces(data, starts[step], options.length))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}, {time.time() - began:.0f} s", flush=True)
    print(f"{step + 1} steps, {time.time() - began:.0f} s", flush=True)


def table(found: dict) -> str:
    """The rows as Markdown."""
    base = found["rows"][0]
    lines = ["| format | recipe | bits | rotated | perplexity, weights | loss | perplexity, weights and activations "
             "| loss | standard error |", "|---|---|---|---|---|---|---|---|---|",
             f"| bf16 | - | 16 | - | {math.exp(base['loss']):.4f} | {base['loss']:.4f} "
             f"| {math.exp(base['loss']):.4f} | {base['loss']:.4f} | |"]
    cells = {(row["format"], row["recipe"], row["rotated"], row["activations"]): row for row in found["rows"][1:]}
    for form, recipe in ROWS:
        for rotated in (False, True):
            pair = [cells.get((form, recipe, rotated, activations)) for activations in (False, True)]
            if all(row is None for row in pair):
                continue
            words = []
            for row in pair:
                words += ["-", "-"] if row is None or "loss" not in row else [
                    f"{math.exp(row['loss']):.4f}", f"{100 * (row['loss'] / base['loss'] - 1):+.2f} %"]
            bits = next(row["bits"] for row in pair if row is not None)
            errors = [row["error"] for row in pair if row is not None and "error" in row]
            lines.append(f"| {form} | {recipe} | {bits:g} | {'yes' if rotated else 'no'} | " + " | ".join(words)
                         + f" | {100 * max(errors, default=0) / base['loss']:.2f} % |")
    return "\n".join(lines) + "\n"


def picture(found: dict) -> str:
    """Bars: how much the loss grows by each format and recipe without rotation, as SVG."""
    base = found["rows"][0]["loss"]
    rows = {(row["format"], row["recipe"], row["activations"]): 100 * (row["loss"] / base - 1)
            for row in found["rows"][1:] if not row["rotated"] and "loss" in row}
    named = [(f"{form}, {recipe}", [rows.get((form, recipe, both), 0.0) for both in (False, True)])
             for form, recipe in ROWS if (form, recipe, True) in rows]
    most = max(max(values) for _, values in named)
    left, width, height = 200, 440, 26
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{60 + height * len(named)}" '
             'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="10" y="20">Loss beside bf16, percent more: {found["parameters"] / 1e6:.1f} million parameters, '
             f'loss {base:.3f} nats a byte</text>', '<text x="10" y="38" fill="#4477aa">weights alone</text>',
             '<text x="110" y="38" fill="#cc6644">weights and activations</text>']
    for place, (name, values) in enumerate(named):
        y = 50 + height * place
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{name}</text>')
        for number, (value, colour) in enumerate(zip(values, ("#4477aa", "#cc6644"))):
            bar = max(1.0, width * max(value, 0.0) / most)
            parts.append(f'<rect x="{left}" y="{y + 10 * number}" width="{bar:.1f}" height="9" fill="{colour}"/>')
            parts.append(f'<text x="{left + bar + 5:.1f}" y="{y + 9 + 10 * number}" font-size="10">{value:+.2f}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True, help="any file of bytes")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/accuracy"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, default in (("steps", 2500), ("seconds", 100), ("layers", 8), ("width", 512), ("heads", 8),
                          ("length", 256), ("batch", 64), ("validation", 24)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--draw", action="store_true", help="only draw OUT.md and OUT.svg anew from OUT.json")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.draw:
        found = json.loads(options.out.with_suffix(".json").read_text())
        options.out.with_suffix(".md").write_text(table(found))
        options.out.with_suffix(".svg").write_text(picture(found))
        return 0
    text = torch.frombuffer(bytearray(options.text.read_bytes()), dtype=torch.uint8).to(options.device)
    split = text.shape[0] * 19 // 20
    data, held = text[:split], text[split:]
    torch.manual_seed(1)
    model = train_gpt.GPT(options.layers, options.width, options.heads, options.length).to(options.device)
    kept = options.out.with_suffix(".pt")
    if kept.exists():
        model.load_state_dict(torch.load(kept, map_location=options.device))
    else:
        train(model, data, options)
        torch.save(model.state_dict(), kept)
    where = train_gpt.batches(held, options.validation, options.batch, options.length, 4).to(options.device)

    @torch.inference_mode()
    def losses() -> list[float]:
        return [float(loss_of(model, *train_gpt.pieces(held, start, options.length))) for start in where]

    base = losses()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    found = {"device": torch.cuda.get_device_name() if text.is_cuda else "CPU", "torch": torch.__version__,
             "parameters": parameters, "bytes": text.shape[0], "options": {k: str(v) for k, v in vars(options).items()},
             "rows": [{"format": "bf16", "loss": statistics.mean(base), "losses": base}]}
    print(f"{parameters / 1e6:.1f} million parameters, bf16: loss {statistics.mean(base):.4f}", flush=True)
    for form, recipe in ROWS:
        bits = blockscale.formats()[form].bits_per_element
        for rotated in (False, True):
            for activations in (False, True):
                row = {"format": form, "recipe": recipe, "rotated": rotated, "activations": activations, "bits": bits}
                found["rows"].append(row)
                replaced: list[tuple[str, nn.Module]] = []
                try:
                    replaced = quantized(model, form, recipe, activations, rotated)
                    got = losses()
                    apart = [a - b for a, b in zip(got, base)]
                    row["loss"] = statistics.mean(got)
                    row["error"] = statistics.stdev(apart) / len(apart) ** 0.5
                except (ValueError, NotImplementedError, RuntimeError) as error:
                    row["failed"] = str(error)[:300]
                finally:
                    for name, module in replaced:
                        put(model, name, module)
                print(row, flush=True)
                options.out.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
                options.out.with_suffix(".md").write_text(table(found))
    options.out.with_suffix(".svg").write_text(picture(found))
    print(table(found))
    return 0 if all("loss" in row for row in found["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())

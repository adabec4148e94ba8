#!/usr/bin/env python3
"""Models of transformers on a CPU: torch in fp32 and bf16 beside weights in this library's formats.

    taskset -c 0,1 python3 bench/model/cpu.py --model MINILM --text build/debian.txt --out build/minilm
    taskset -c 0,1 python3 bench/model/cpu.py --model llama-200m --out build/llama-200m

A folder is a sentence encoder with its weights (all-MiniLM-L6-v2), and its last column is the cosine of each sentence's
embedding to that of fp32, the mean and the smallest; llama-200m and bert-minilm have random weights.  Ways are measured
in turns, so that a noisy machine is noisy for all of them; a cell is the least of --rounds.  Inputs are bf16 but for
fp32's own row.  Writes OUT.json and OUT.md."""

import argparse
import copy
import json
import pathlib
import sys
import time

import torch
import torch.nn as nn
import transformers

import blockscale
import blockscale.torch as bt

LLAMA = dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16,
             num_key_value_heads=8, vocab_size=32000)
MINILM = dict(hidden_size=384, intermediate_size=1536, num_hidden_layers=6, num_attention_heads=12, vocab_size=30522)
FORMATS = {"mxfp8_e4m3": "default", "mxfp4": "mse", "nvfp4": "four_over_six"}      # with the recipe of the weights


def load(name: str) -> nn.Module:
    """The model in fp32."""
    torch.manual_seed(1)
    if name == "llama-200m":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).eval()
    if name == "bert-minilm":
        return transformers.BertModel(transformers.BertConfig(**MINILM)).eval()
    return transformers.AutoModel.from_pretrained(name, dtype=torch.float32).eval()


def ways(model: nn.Module, prepack: bool | None, activations: bool) -> dict[str, nn.Module]:
    """The model in every form; quantized ones are of bf16 with the same weights rounded from fp32."""
    made = {"torch fp32": model, "torch bf16": copy.deepcopy(model).bfloat16()}
    for form, recipe in FORMATS.items():
        for inputs in (None, form) if activations else (None,):
            quantized = copy.deepcopy(model)
            bt.quantize_(quantized, form, activations=inputs, recipe=recipe, prepack=None if inputs else prepack)
            made[form if inputs is None else f"{form}, inputs too"] = quantized.bfloat16()
    return made


def weight_bytes(model: nn.Module) -> int:
    """Bytes of the linear layers' tensors, prepacked copies among them."""
    layers = [module for module in model.modules() if isinstance(module, (nn.Linear, bt.Linear))]
    tensors = [tensor for layer in layers for tensor in [*layer.parameters(), *layer.buffers()]]
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors}.values())


def embeddings(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """Means of the last hidden states, of length one."""
    return nn.functional.normalize(model(input_ids=ids).last_hidden_state.float().mean(1), dim=-1)


def inputs(model: nn.Module, options: argparse.Namespace) -> torch.Tensor:
    """batch x length tokens: of the text where there is one, else drawn at random."""
    count = options.batch * options.length
    if options.text is None:
        return torch.randint(5, model.config.vocab_size, (options.batch, options.length))
    text = options.text.read_text("ascii", "ignore")[1000:1000 + 8 * count]
    ids = transformers.AutoTokenizer.from_pretrained(options.model)(text, add_special_tokens=False)["input_ids"]
    return torch.tensor(ids[:count]).view(options.batch, options.length)


class Steps:
    """Decoding by a Llama: one token for each sequence behind a prompt in the cache."""

    def __init__(self, model: nn.Module, batch: int, prompt: int) -> None:
        self.model = model
        self.ids = torch.randint(0, model.config.vocab_size, (batch, prompt))
        self.cache = transformers.DynamicCache(config=model.config)
        self.next = model(input_ids=self.ids, cache=self.cache, logits_to_keep=1).logits.argmax(-1)

    def __call__(self) -> None:
        self.next = self.model(input_ids=self.next, cache=self.cache, logits_to_keep=1).logits.argmax(-1)


def cells(name: str, models: dict[str, nn.Module], options: argparse.Namespace) -> list[tuple[str, int, dict]]:
    """What is measured: a title, how many sentences or tokens a call makes, and a call for each way."""
    ids = inputs(models["torch fp32"], options)
    if name == "llama-200m":
        found = [(f"decoding, batch {batch}, tokens a second", batch,
                  {way: Steps(model, batch, 32) for way, model in models.items()}) for batch in (1, 8)]
        run = {way: lambda model=model: model(input_ids=ids[:1], logits_to_keep=1) for way, model in models.items()}
        return found + [(f"prompt of {options.length}, tokens a second", options.length, run)]
    return [(f"batch {batch} of {options.length} tokens, sentences a second", batch,
             {way: lambda model=model, batch=batch: embeddings(model, ids[:batch]) for way, model in models.items()})
            for batch in (1, options.batch)]


def write(table: dict, options: argparse.Namespace) -> None:
    """The files, after each column."""
    options.out.with_suffix(".json").write_text(json.dumps(
        {"torch": torch.__version__, "options": {k: str(v) for k, v in vars(options).items()}, "ways": table},
        indent=1) + "\n")
    options.out.with_suffix(".md").write_text(markdown(table))


@torch.inference_mode()
def run(options: argparse.Namespace) -> dict:
    model = load(options.model)
    models = ways(model, True if options.prepack else None, options.activations)
    table: dict = {way: {"weight_bytes": 0} for way in models}
    for title, count, calls in cells(options.model, models, options):
        best = dict.fromkeys(calls, float("inf"))
        for turn in range(options.rounds + 1):
            for way, call in calls.items():
                began = time.perf_counter()
                call()
                if turn > 0:
                    best[way] = min(best[way], time.perf_counter() - began)
        for way, seconds in best.items():
            table[way][title] = count / seconds
        write(table, options)
    if options.model != "llama-200m":
        ids = inputs(model, options)
        exact = embeddings(model, ids)
        for way, other in models.items():
            cosines = (embeddings(other, ids) * exact).sum(-1)
            table[way]["cosine, mean"], table[way]["cosine, smallest"] = float(cosines.mean()), float(cosines.min())
    for way, other in models.items():
        table[way]["weight_bytes"] = weight_bytes(other)
    return table


def markdown(table: dict) -> str:
    titles = list(dict.fromkeys(title for row in table.values() for title in row))
    lines = ["| way | " + " | ".join("weights, MB" if title == "weight_bytes" else title for title in titles) + " |",
             "|---" * (len(titles) + 1) + "|"]
    for way, row in table.items():
        words = [f"{row[title] / 1e6:.1f}" if title == "weight_bytes" else
                 f"{row[title]:.5f}" if "cosine" in title else f"{row[title]:.1f}" for title in titles]
        lines.append(f"| {way} | " + " | ".join(words) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a folder, llama-200m or bert-minilm")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--text", type=pathlib.Path, help="sentences: pieces of it, for a model with a tokenizer")
    parser.add_argument("--no-prepack", dest="prepack", action="store_false", help="weights as they are stored")
    parser.add_argument("--no-activations", dest="activations", action="store_false", help="inputs of bf16 alone")
    for name, default in (("threads", 2), ("rounds", 7), ("batch", 32), ("length", 128)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    blockscale.set_threads(options.threads)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    table = run(options)
    write(table, options)
    print(markdown(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())

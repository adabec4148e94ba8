"""A model: trained in fp32, its layers quantized to each format, and what that costs in bytes and in accuracy.

    python3 model.py [MODEL]     with transformers, a folder of a causal language model is loaded as MXFP4 and asked"""
import copy
import sys

import torch
from torch import nn

import blockscale.torch as bt


def ask(path: str) -> None:
    """Loads a model of transformers, quantized while it is read, and lets it write 20 tokens."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from blockscale.torch.transformers import BlockscaleConfig
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(path, quantization_config=BlockscaleConfig("mxfp4"), device_map=device)
    tokenizer = AutoTokenizer.from_pretrained(path)
    tokens = tokenizer("The capital of France is", return_tensors="pt").to(device)
    print(tokenizer.decode(model.generate(**tokens, max_new_tokens=20)[0]))


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    """A hundred steps of Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def small_model() -> None:
    """Which of 16 sums of its inputs is the largest?"""
    torch.manual_seed(0)
    question = torch.randn(64, 16)
    x = torch.randn(4096, 64)
    y = (x @ question).argmax(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 16))
    train(model, x[:2048], y[:2048])
    for form in (None, "mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "nvfp4"):
        quantized = copy.deepcopy(model)
        if form is not None:
            bt.quantize_(quantized, form, lambda module, name: name != "4")     # the last layer stays as it is
        with torch.no_grad():
            right = (quantized(x[2048:]).argmax(1) == y[2048:]).float().mean()
        size = sum(tensor.numel() * tensor.element_size() for tensor in quantized.state_dict().values())
        print(f"{form or 'fp32'}: {size} bytes, {100 * right:.1f} % right")


if len(sys.argv) > 1:
    ask(sys.argv[1])
else:
    small_model()

"""Models in PyTorch: loading a checkpoint as transformers does, and what must hold of one that blockscale wrote."""

import contextlib
import io
import os

import numpy as np
import safetensors.torch
import torch
import transformers

import upstream
from script import check

transformers.logging.set_verbosity_error()
TOKENS = torch.arange(2, 66)[None]
FAULTS = ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs", "conversion_errors")


def load(folder, kind=torch.bfloat16, encoder=False, **options):
    """The model, after checking that no key was missing, unexpected or of another shape."""
    maker = transformers.AutoModel if encoder else transformers.AutoModelForCausalLM
    with contextlib.redirect_stderr(io.StringIO()):
        model, told = maker.from_pretrained(folder, dtype=kind, output_loading_info=True, **options)
    for fault in FAULTS:
        names = sorted(map(str, told.get(fault) or []))
        check(not names, f"{fault}: {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}")
    return model.eval()


def run(model):
    """Logits, or the last hidden state of an encoder."""
    with torch.no_grad(), contextlib.redirect_stderr(io.StringIO()):
        out = model(TOKENS)
    return (out.logits if hasattr(out, "logits") else out.last_hidden_state).float().numpy()


def state(model):
    return {name: values.float().numpy() for name, values in model.state_dict().items()}


def rounded(values, kind=torch.bfloat16):
    """fp64 numbers rounded once to a type, as fp32."""
    values = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    if kind == torch.float32:
        return single
    # Cut off to fp32, what is lost kept in the last bit: rounding that to a narrower type rounds once.
    toward = np.where(np.abs(single) > np.abs(values), np.nextafter(single, np.float32(0)), single)
    bits = toward.view(np.uint32) | ((toward != values).astype(np.uint32))
    return torch.from_numpy(bits.view(np.float32).copy()).to(kind).float().numpy()


def with_numbers(original, numbers, kind=torch.bfloat16, encoder=False):
    """The model that was quantized, unquantized, holding these numbers: its own file with them in it, loaded again."""
    folder = upstream.made(f"plain{len(os.listdir(upstream.MADE))}")
    os.makedirs(folder)
    upstream.copy_tokenizer(upstream.model(original), folder)
    tensors = safetensors.torch.load_file(os.path.join(upstream.model(original), "model.safetensors"))
    for name, values in numbers.items():
        check(name in tensors, f"{original} has no {name}")
        if tensors[name].is_floating_point():
            tensors[name] = torch.from_numpy(rounded(values, kind).copy()).to(kind)
    safetensors.torch.save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    return load(folder, kind, encoder)


def equal_logits(got, wanted, what):
    check(np.isfinite(got).all(), f"{what}: logits are not all numbers")
    check(np.abs(got).max() > 0, f"{what}: logits are all zero")
    check(
        np.array_equal(got, wanted),
        f"{what}: logits are up to {np.abs(got - wanted).max():.3g} off, of {np.abs(wanted).max():.3g}",
    )

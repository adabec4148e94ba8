#!/usr/bin/env python3
"""llama.cpp, by its Python bindings, runs tiny models whose matrices lie as blockscale wrote them.

    test_llama_cpp.py BLOCKSCALE WORK

A GGUF file of blockscale's holds tensors alone; what a model needs besides (sizes, norms under llama.cpp's names)
is put around them here, by gguf-py, the quantized rows byte for byte.  (llama.cpp multiplies with the tensor
scales X.scale in graphs of some architectures: Llama's is one, of Qwen2's the feed-forward part is not.)  llama.cpp
rounds activations to Q8_0 before it multiplies them with 4-bit weights, so that logits are held to a signal to
noise, against the same model with the numbers of `blockscale dequantize` in fp32."""

import upstream  # first: it sets the environment
import json
import os

import gguf
import llama_cpp
import numpy as np

import decode
import script
from script import check
from upstream import named, say

ENDINGS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
WHOLE = {"model.embed_tokens": "token_embd", "lm_head": "output", "model.norm": "output_norm"}
TOKENS, MORE = list(range(2, 26)), 8
LEAST_DB = {"nvfp4": 30, "mxfp4": 30}  # Q8_0's own: 35 to 45 was measured


def their_name(name):
    """llama.cpp's name of a tensor of transformers'."""
    stem, ending = name.rsplit(".", 1)
    if stem in WHOLE:
        return f"{WHOLE[stem]}.{ending}"
    layer, rest = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{ENDINGS[rest]}.{ending}"


def rotated(name, content, sizes):
    """llama.cpp's Llama rotates neighbouring rows of queries and keys where transformers rotates halves of a head: rows
    change places."""
    heads = {"q_proj": sizes["num_attention_heads"], "k_proj": sizes["num_key_value_heads"]}.get(name.split(".")[-2])
    if heads is None or content.ndim != 2:
        return content
    return content.reshape(heads, 2, content.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(content.shape)


def whole_model(path, tensors):
    """A GGUF file that llama.cpp can run: (contents, type or None) under transformers' names."""
    with open(os.path.join(upstream.model("llama"), "config.json"), encoding="utf-8") as file:
        sizes = json.load(file)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(sizes["num_hidden_layers"])
    writer.add_context_length(sizes["max_position_embeddings"])
    writer.add_embedding_length(sizes["hidden_size"])
    writer.add_feed_forward_length(sizes["intermediate_size"])
    writer.add_head_count(sizes["num_attention_heads"])
    writer.add_head_count_kv(sizes["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(sizes["rms_norm_eps"])
    writer.add_rope_dimension_count(sizes["head_dim"])
    writer.add_rope_freq_base(sizes["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(sizes["vocab_size"])
    writer.add_tokenizer_model("none")
    for name, (content, kind) in tensors.items():
        writer.add_tensor(their_name(name), np.ascontiguousarray(rotated(name, content, sizes)), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def as_written(path):
    """The tensors of blockscale's file: those of blocks byte for byte, everything else as fp32."""
    quantized = (gguf.GGMLQuantizationType.NVFP4, gguf.GGMLQuantizationType.MXFP4)
    found = {}
    for tensor in gguf.GGUFReader(path).tensors:
        kept = tensor.tensor_type in quantized
        values = tensor.data if kept else gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        found[tensor.name] = (values, tensor.tensor_type if kept else None)
    return found


class Engine:
    """A model in llama.cpp, by the C functions that its bindings name."""

    def __init__(self, path):
        options = llama_cpp.llama_model_default_params()
        options.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), options)
        check(self.model, f"llama.cpp does not load {os.path.basename(path)}")
        options = llama_cpp.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_threads, options.n_threads_batch = 128, 128, 2, 2
        self.context = llama_cpp.llama_init_from_model(self.model, options)
        check(self.context, "llama.cpp makes no context")
        self.count = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def logits(self, tokens):
        """Of the last of these tokens, which come behind those given before."""
        content = (llama_cpp.llama_token * len(tokens))(*tokens)  # a batch points into it
        status = llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(content, len(tokens)))
        check(status == 0, f"llama_decode says {status}")
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self.context, -1), (self.count,)).astype(np.float64)

    def generate(self, tokens):
        """(logits behind the prompt, the tokens that follow)."""
        first = logits = self.logits(tokens)
        said = []
        for _ in range(MORE):
            said.append(int(np.argmax(logits)))
            logits = self.logits(said[-1:])
        return first, said

    def close(self):
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)


def run(path):
    engine = Engine(path)
    result = engine.generate(TOKENS)
    engine.close()
    return result


def decibels(wanted, got):
    return 10 * np.log10(np.sum(wanted**2) / np.sum((wanted - got) ** 2))


def generates(form):
    path = upstream.made(f"{form}.gguf")
    upstream.blockscale("quantize", upstream.model("llama"), "-o", path, "-f", form, "--convention", "gguf")
    tensors = as_written(path)
    kept = sum(kind is not None for _, kind in tensors.values())
    check(kept > 0, "no tensor was quantized")
    numbers = {name: (values, None) for name, values in upstream.dequantized(path).items()}
    logits, said = run(whole_model(upstream.made(f"{form}-whole.gguf"), tensors))
    wanted, would_say = run(whole_model(upstream.made(f"{form}-fp32.gguf"), numbers))
    check(np.isfinite(logits).all(), "logits are not all numbers")
    level = decibels(wanted, logits)
    check(
        level > LEAST_DB[form],
        f"logits are {level:.1f} dB from those of the fp32 numbers, of which {LEAST_DB[form]} is held",
    )
    check(said[0] == would_say[0], f"the first token is {said[0]}, not {would_say[0]}")
    say(
        f"{form}: {kept} tensors of blocks as they lie; generates {said}, the fp32 numbers {would_say}; "
        f"logits {level:.1f} dB"
    )


def a_dropped_scale_is_seen():
    """The measure itself: without the tensor scales of one kind of matrix the logits are far off."""
    path = upstream.made("nvfp4.gguf")
    if not os.path.exists(path):
        raise script.Skip("nvfp4 was not written")
    tensors = {name: value for name, value in as_written(path).items() if not name.endswith("up_proj.scale")}
    logits, _ = run(whole_model(upstream.made("dropped.gguf"), tensors))
    numbers = {name: (values, None) for name, values in upstream.dequantized(path).items()}
    wanted, _ = run(whole_model(upstream.made("wanted.gguf"), numbers))
    level = decibels(wanted, logits)
    check(np.isfinite(wanted).all() and (not np.isfinite(level) or level < 10), f"{level:.1f} dB without scales")


if __name__ == "__main__":
    upstream.versions("llama-cpp-python", "gguf", "numpy")
    quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(quiet, None)
    llama_cpp.llama_backend_init()
    cases = [named(f"generates_{form}", generates, form) for form in ("nvfp4", "mxfp4")]
    script.cases("upstream_llama_cpp", cases + [a_dropped_scale_is_seen])

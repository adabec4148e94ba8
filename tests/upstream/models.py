"""Tiny models with random weights, made by transformers and saved as it saves them, with a tokenizer of one token per
byte.

    models.py FOLDER

FOLDER/dense (Qwen2: three biases, heads of keys for two heads), FOLDER/llama, FOLDER/experts (Qwen2-MoE),
FOLDER/gpt_oss.  Weights are normally distributed with a few large ones, so that fused projections differ in their
largest number."""

import json
import os
import sys

import torch
import transformers

VOCABULARY = 320  # 256 bytes, and some that never come
SMALL = dict(
    vocab_size=VOCABULARY,
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    tie_word_embeddings=False,
    bos_token_id=0,
    eos_token_id=1,
    pad_token_id=1,
)


def configurations():
    heads = dict(head_dim=32)
    experts = dict(
        num_local_experts=4,
        num_experts_per_tok=2,
        intermediate_size=128,
        head_dim=64,
        num_attention_heads=2,
        num_key_value_heads=1,
        sliding_window=64,
    )
    return {
        "dense": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config(**SMALL)),
        "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**SMALL, **heads)),
        "experts": (
            transformers.Qwen2MoeForCausalLM,
            transformers.Qwen2MoeConfig(
                **SMALL,
                num_experts=4,
                num_experts_per_tok=2,
                moe_intermediate_size=64,
                shared_expert_intermediate_size=128,
            ),
        ),
        "gpt_oss": (transformers.GptOssForCausalLM, transformers.GptOssConfig(**{**SMALL, **experts})),
    }


def tokenizer(folder):
    """A token for every byte, <s> and </s> first: nothing is trained, nothing is fetched."""
    import tokenizers
    from tokenizers import decoders, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {"<s>": 0, "</s>": 1, **{letter: 2 + i for i, letter in enumerate(letters)}}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=words, merges=[]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    ).save_pretrained(folder)


def fill(model):
    """Numbers that a trained model could have: unlike spreads, a few large ones; norms near one."""
    numbers = torch.Generator().manual_seed(23)
    for name, parameter in model.named_parameters():
        spread = 0.4 if "embed" in name or "lm_head" in name else 0.02 * 3 ** torch.rand(1, generator=numbers).item()
        values = torch.randn(parameter.shape, generator=numbers) * spread
        if parameter.dim() >= 2 and "embed" not in name:
            values.view(-1)[torch.randint(values.numel(), (3,), generator=numbers)] *= 3 + 5 * torch.rand(
                1, generator=numbers
            )
        if "norm" in name:
            values = 1 + values
        with torch.no_grad():
            parameter.copy_(values)


def make(folder, model, configuration):
    torch.manual_seed(23)
    configuration.dtype = torch.bfloat16
    made = model(configuration).to(torch.bfloat16)
    fill(made)
    made.save_pretrained(folder)
    tokenizer(folder)


def main(folder):
    for name, (model, configuration) in configurations().items():
        place = os.path.join(folder, name)
        if not os.path.exists(os.path.join(place, "model.safetensors")):
            make(place, model, configuration)
        with open(os.path.join(place, "config.json"), encoding="utf-8") as file:
            print(f"  {name}: {json.load(file)['architectures'][0]}")


if __name__ == "__main__":
    main(sys.argv[1])

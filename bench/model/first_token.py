#!/usr/bin/env python3
"""From an interpreter that has imported nothing to the first token of a quantized Llama, on a CPU.

    time python3 bench/model/first_token.py [FORMAT]

The model is made with random weights (207 million numbers, bf16). Prints when each step was over, on the clock and in
processor time of all threads."""

import sys
import time

BEGUN = time.perf_counter(), time.process_time()
LLAMA = dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16,
             num_key_value_heads=8, vocab_size=32000)


def over(what: str) -> None:
    print(f"{what}: {time.perf_counter() - BEGUN[0]:.2f} s, {time.process_time() - BEGUN[1]:.2f} s of processor time",
          flush=True)


def main() -> None:
    import torch
    over("torch imported")
    import blockscale.torch as bt
    over("blockscale imported")
    import transformers
    over("transformers imported")
    torch.manual_seed(1)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).eval().bfloat16()
    over(f"a model of {sum(p.numel() for p in model.parameters()) / 1e6:.0f} million numbers")
    bt.quantize_(model, sys.argv[1] if len(sys.argv) > 1 else "mxfp4")
    over("quantized")
    with torch.inference_mode():
        model.generate(torch.arange(1, 9)[None], max_new_tokens=1, do_sample=False)
    over("first token")


if __name__ == "__main__":
    main()

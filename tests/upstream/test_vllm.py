#!/usr/bin/env python3
"""vLLM's CPU build runs tiny models that blockscale quantized.

    test_vllm.py BLOCKSCALE WORK

Each is first given to the build as it is.  Where that has no kernel for the CPU the case says so, in vLLM's words,
and goes on with the plain kernels of vllm_kernels.py: what is held then is vLLM's parser, loader, fusing of
projections and scales, and its generation."""

import upstream  # first: it sets the environment
import contextlib
import gc
import io
import os

os.environ.update(
    {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
    }
)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from vllm import LLM, SamplingParams  # noqa: E402
from vllm.distributed import cleanup_dist_env_and_memory  # noqa: E402

import decode  # noqa: E402
import script  # noqa: E402
import vllm_kernels  # noqa: E402
from script import check  # noqa: E402
from upstream import named, say  # noqa: E402

TOKENS, MORE = list(range(2, 26)), 8
NO_KERNEL = ("Failed to find a kernel", "Marlin FP4 not available", "No MXFP4 MoE backend supports")
FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
# Of a log-probability; 0.000 was measured, and logits near 20 are 0.125 apart in bf16.
NOISE = 0.1


def run(folder):
    """(tokens, their log-probabilities) by vLLM."""
    engine = None
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            engine = LLM(
                model=folder,
                dtype="bfloat16",
                enforce_eager=True,
                max_model_len=64,
                max_num_seqs=1,
                max_num_batched_tokens=64,
            )
            out = engine.generate(
                [{"prompt_token_ids": TOKENS}],
                SamplingParams(max_tokens=MORE, temperature=0, ignore_eos=True, logprobs=5),
                use_tqdm=False,
            )[0].outputs[0]
        return list(out.token_ids), [{token: entry.logprob for token, entry in step.items()} for step in out.logprobs]
    finally:
        del engine
        gc.collect()
        cleanup_dist_env_and_memory()


def plain(name, folder):
    """The original's configuration with the numbers that blockscale says: vLLM's own bf16 model."""
    back = upstream.made(f"plain{len(os.listdir(upstream.MADE))}")
    upstream.blockscale("dequantize", folder, "-o", back, "--type", "bf16")
    upstream.copy_tokenizer(upstream.model(name), back)
    return run(back)


def as_it_is(folder):
    """None where the build has no kernel, after saying so; else what it generates."""
    try:
        return run(folder)
    except (ValueError, NotImplementedError) as error:
        reason = next((words for words in NO_KERNEL if words in str(error)), None)
        if reason is None:
            raise
        say(f"  the CPU build stops, after it has read the configuration: {str(error).splitlines()[0][:110]}")
        return None


def close(got, wanted, what):
    """The first token is the same, and what both give for it; later ones are said."""
    (tokens, chances), (others, their_chances) = got, wanted
    check(tokens[0] == others[0], f"{what}: the first token is {tokens[0]}, of the plain model {others[0]}")
    worst = max(
        abs(chance - their_chances[0][token]) for token, chance in chances[0].items() if token in their_chances[0]
    )
    check(worst < NOISE, f"{what}: log-probabilities are {worst:.3f} off")
    say(
        f"{what}: generates {tokens}, the bf16 model of the same numbers {others}; log-probabilities within {worst:.3f}"
    )


def reader_numbers(folder):
    """{layer of vLLM's: numbers} in vLLM's order: the largest tensor scale of fused projections, block scale times it
    in fp32, code."""
    tensors, exact, result = decode.read(folder), upstream.both(folder), {}

    def single(stem, fellows):
        if stem + ".weight_global_scale" in tensors:
            scale = np.float32(1) / max(tensors[f + ".weight_global_scale"][1].reshape(()) for f in fellows)
        elif stem + ".weight_scale_2" in tensors:
            scale = max(tensors[f + ".weight_scale_2"][1].reshape(()) for f in fellows)
        else:
            return exact[stem + ".weight"].astype(np.float32)
        codes = tensors.get(stem + ".weight_packed", tensors.get(stem + ".weight"))[1]
        blocks = decode.e4m3(tensors[stem + ".weight_scale"][1]).astype(np.float32) * np.float32(scale)
        return decode.e2m1(codes).astype(np.float32) * np.repeat(blocks, 16, axis=-1)

    for stem in [name.removesuffix(".weight_scale") for name in tensors if name.endswith(".weight_scale")]:
        parent, last = stem.rsplit(".", 1)
        layer, parts = next(((layer, parts) for layer, parts in FUSED.items() if last in parts), (last, (last,)))
        result[f"{parent}.{layer}"] = np.concatenate(
            [single(f"{parent}.{part}", [f"{parent}.{p}" for p in parts]) for part in parts]
        )
    return result


def generates(name, form, convention):
    folder = upstream.quantized(name, form, convention)
    check(upstream.claims(folder, "vLLM 0.32"), f"quantize says that {upstream.told[folder]['loaded_by']} load it")
    wanted = plain(name, folder)
    got = as_it_is(folder)
    if got is not None:
        close(got, wanted, f"{convention} {form}, the build as it is")
        return
    with vllm_kernels.entered():
        got = run(folder)
    if convention != "gpt_oss":
        numbers = reader_numbers(folder)
        count = upstream.same(vllm_kernels.decoded, numbers, f"{convention} {form}")
        say(f"{convention} {form}: {count} numbers that vLLM loaded, 0 different")
    close(got, wanted, f"{convention} {form}, plain kernels")


def refused(form, words):
    """vLLM has no spelling for it in ModelOpt's convention: it says so and does not generate from wrong numbers."""
    folder = upstream.quantized("llama", form, "modelopt")
    check(not upstream.claims(folder, "vLLM"), "quantize says that vLLM loads it")
    try:
        run(folder)
    except Exception as error:  # of any class of vLLM's or of what checks its configuration
        check(words in str(error), str(error)[:300])
        raise script.Skip(f"vLLM does not read {form} of modelopt: {words}") from None
    raise AssertionError("it was taken")


def wants_input_scales():
    """ModelOpt's FP8 rounds activations with a scale from the file; where that is absent vLLM has no number for it."""
    folder = upstream.quantized("llama", "e4m3", "modelopt")
    check(not upstream.claims(folder, "vLLM"), "quantize says that vLLM loads it")
    check("X.input_scale" in upstream.told[folder]["has"], f"quantize says {upstream.told[folder]['has']}")
    raise script.Skip(
        "vLLM wants X.input_scale with e4m3 of modelopt; quantize says so, and names compressed_tensors instead"
    )


def fused_scales_are_kept():
    """What sharing is for: with the scales apart, as another writer's file may have them, vLLM's numbers are worse."""
    levels = {}
    for how in ("shared", "apart"):
        folder = upstream.quantized(
            "llama", "nvfp4", "modelopt", *([] if how == "shared" else ["--share-tensor-scales", "none"])
        )
        with vllm_kernels.entered():
            run(folder)
        original = decode.numbers(upstream.model("llama"))
        name = "model.layers.0.self_attn"
        wanted = np.concatenate([original[f"{name}.{part}.weight"] for part in FUSED["qkv_proj"]])
        got = vllm_kernels.decoded[f"{name}.qkv_proj"]
        starts = np.cumsum([0] + [original[f"{name}.{part}.weight"].shape[0] for part in FUSED["qkv_proj"]])
        levels[how] = [
            10 * np.log10(np.sum(wanted[a:b] ** 2) / np.sum((wanted[a:b] - got[a:b]) ** 2))
            for a, b in zip(starts, starts[1:])
        ]
    check(min(levels["shared"]) > 19, f"q, k and v are {levels['shared']} dB in vLLM")
    check(min(levels["apart"]) < min(levels["shared"]) - 3, f"scales apart give {levels['apart']} dB")
    say(
        "in vLLM q, k, v have "
        + ", ".join(f"{x:.1f}" for x in levels["shared"])
        + " dB; with scales apart "
        + ", ".join(f"{x:.1f}" for x in levels["apart"])
    )


if __name__ == "__main__":
    upstream.versions("vllm-cpu", "torch", "transformers", "compressed-tensors")
    torch.set_num_threads(2)
    cases = [
        named(f"{convention}_{form}", generates, "llama", form, convention)
        for convention, form in (
            ("compressed_tensors", "nvfp4"),
            ("compressed_tensors", "mxfp4"),
            ("compressed_tensors", "mxfp8_e4m3"),
            ("compressed_tensors", "e4m3"),
            ("modelopt", "nvfp4"),
            ("modelopt", "mxfp8_e4m3"),
        )
    ]
    cases += [named("gpt_oss_mxfp4", generates, "gpt_oss", "mxfp4", "gpt_oss")]
    cases += [named("modelopt_mxfp4", refused, "mxfp4", "ModelOpt currently only supports")]
    script.cases("upstream_vllm", cases + [named("modelopt_e4m3", wants_input_scales), fused_scales_are_kept])

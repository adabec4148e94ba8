"""What the tests of blockscale.vllm share: models, quantized by the command, and vLLM in this process.

vLLM finds the plugin by itself, as that of an installed package: by an entry point, which is pyproject.toml's."""
from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
os.environ.update({
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": ""})
ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "upstream"), str(ROOT / "python" / "tests")]
import command  # noqa: E402
import models  # noqa: E402

TOKENS, MORE = list(range(2, 26)), 8


class Loaded:
    """What one model gives: tokens, and the log-probabilities of the most likely ones; its layers on blockscale, and
    the bytes of their prepacked copies."""

    def __init__(self, tokens: list[int], chances: list[dict[int, float]], layers: int, packed: int) -> None:
        self.tokens, self.chances, self.layers, self.packed = tokens, chances, layers, packed


def _layers(model: Any) -> tuple[int, int]:
    found = [one for one in model.modules() if hasattr(one, "weight_codes") or hasattr(one, "blockscale_experts")]
    packed = [buffer for one in found for name, buffer in one.named_buffers() if name.endswith("_panels")]
    return len(found), sum(panels.numel() for panels in packed)


def generate(folder: Path | str, quantization: str | None, **options: Any) -> Loaded:
    """Greedy tokens by vLLM."""
    from vllm import LLM, SamplingParams
    from vllm.distributed import cleanup_dist_env_and_memory
    engine = None
    try:
        engine = LLM(model=str(folder), quantization=quantization, max_model_len=64, max_num_seqs=1,
                     max_num_batched_tokens=64, **{"dtype": "float32", "enforce_eager": True, **options})
        out = engine.generate([{"prompt_token_ids": TOKENS}], SamplingParams(
            max_tokens=MORE, temperature=0, ignore_eos=True, logprobs=5), use_tqdm=False)[0].outputs[0]
        return Loaded(list(out.token_ids), [{token: one.logprob for token, one in step.items()}
                                            for step in out.logprobs], *engine.apply_model(_layers)[0])
    finally:
        del engine
        gc.collect()
        cleanup_dist_env_and_memory()


class Work:
    """Folders of models, made once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.made, self.wanted = folder, 0, dict[Any, Loaded]()
        models.main(str(folder / "models"))

    def original(self, name: str) -> Path:
        """A model with bf16 weights."""
        return self.folder / "models" / name

    def new(self) -> Path:
        """A path that is not there."""
        self.made += 1
        return self.folder / f"made{self.made}"

    def quantized(self, name: str, form: str, convention: str, *options: str) -> Path:
        """By the command."""
        path = self.new()
        command.run("quantize", self.original(name), "-o", path, "-f", form, "--convention", convention, *options)
        return path

    def copied(self, source: Path) -> Path:
        """A copy that may be changed."""
        path = self.new()
        shutil.copytree(source, path)
        return path

    def dequantized(self, name: str, source: Path) -> Loaded:
        """What vLLM's own layers give with the numbers of a checkpoint's weights in fp32."""
        if source not in self.wanted:
            path = self.new()
            command.run("dequantize", source, "-o", path, "--type", "fp32")
            for file in self.original(name).glob("*.json"):
                if not (path / file.name).exists():
                    shutil.copyfile(file, path / file.name)
            self.wanted[source] = generate(path, None)
        return self.wanted[source]


def configure(folder: Path, **changes: Any) -> None:
    """Changes a model's config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


@pytest.fixture(scope="session", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The package's entry point, where importlib.metadata sees it: the folder for that."""
    text = (ROOT / "python" / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'\[project\.entry-points\."vllm\.general_plugins"\]\n(.+)', text)
    assert found is not None
    site = tmp_path_factory.mktemp("site")
    folder = site / "blockscale-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: blockscale\nVersion: 0.1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text(
        "[vllm.general_plugins]\n" + found[1].replace('"', "") + "\n", encoding="utf-8")
    sys.path.insert(0, str(site))
    assert "blockscale" in {one.name for one in importlib.metadata.entry_points(group="vllm.general_plugins")}
    yield str(site)
    sys.path.remove(str(site))


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """The folders of this run."""
    if not os.path.exists(command.path()):
        pytest.skip("the command is not built")
    return Work(tmp_path_factory.mktemp("work"))

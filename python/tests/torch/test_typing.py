"""blockscale.torch and blockscale.vllm are typed: mypy, at its strictest, finds nothing in them.  What is vLLM's counts
as any type."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = Path(__file__).resolve().parents[2]


def test_mypy_finds_nothing(tmp_path: Path) -> None:
    for needed in ("mypy", "torch", "transformers"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    folders = [str(PYTHON / "src" / "blockscale" / name) for name in ("torch", "vllm")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(PYTHON / "pyproject.toml"), "--cache-dir", str(tmp_path),
         *folders], capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0 and "Success" in done.stdout, done.stdout + done.stderr

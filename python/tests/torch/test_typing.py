"""blockscale.torch is typed: mypy, at its strictest, finds nothing in it."""
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
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(PYTHON / "pyproject.toml"), "--cache-dir", str(tmp_path),
         str(PYTHON / "src" / "blockscale" / "torch")], capture_output=True, text=True, check=False,
        env=dict(os.environ))
    assert done.returncode == 0 and "Success" in done.stdout, done.stdout + done.stderr

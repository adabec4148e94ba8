"""The example with a model, and the Python of the page about PyTorch, run as they stand there."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def _run(program: Path, folder: Path) -> str:
    done = subprocess.run([sys.executable, str(program)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_says_what_quantizing_costs(tmp_path: Path) -> None:
    said = _run(ROOT / "python" / "examples" / "model.py", tmp_path)
    right = {line.partition(":")[0]: float(line.split()[-3]) for line in said.splitlines()}
    assert set(right) == {"fp32", "mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "nvfp4"}
    assert right["fp32"] > 60 and all(abs(each - right["fp32"]) < 3 for each in right.values()), said


def test_the_page_runs(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    page = (ROOT / "docs" / "guide" / "pytorch.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.S | re.M)
    assert len(blocks) == 3
    program = tmp_path / "page.py"
    program.write_text("".join(blocks), encoding="utf-8")
    _run(program, tmp_path)

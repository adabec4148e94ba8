"""The examples and the Python of the documents run as they stand there."""
import glob
import os
import re
import subprocess
import sys

import pytest

import command

HERE = os.path.join(command.ROOT, "python", "examples")
# What each says last.
SAYS = {"quantize_and_multiply.py": r"kernel \w+", "checkpoint.py": r"down_proj: nvfp4 \(128, 256\), [\d.]+ dB",
        "model.py": r"nvfp4: \d+ bytes, [67]\d\.\d % right"}
PAGES = ["README.md", "python/README.md", "docs/guide/python.md"]


def run(words, folder):
    done = subprocess.run([sys.executable, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", sorted(glob.glob(os.path.join(HERE, "*.py"))), ids=os.path.basename)
def test_an_example_runs(path, tmp_path):
    name = os.path.basename(path)
    with open(path, encoding="utf-8") as file:
        if "import torch" in file.read() and not command.has_torch():
            pytest.skip("PyTorch is not installed: make test-torch runs it")
    said = run([path], tmp_path)
    assert re.search(SAYS.get(name, "."), said), said


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(page, tmp_path):
    """All of a page's blocks, one after the other as one program; those that import PyTorch where that is installed."""
    with open(os.path.join(command.ROOT, page), encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```", file.read(), flags=re.S | re.M)
    if page == "README.md" and not blocks:
        pytest.skip("README.md has no Python yet")
    assert blocks, f"{page} has no Python"
    if not command.has_torch():
        blocks = [block for block in blocks if "import torch" not in block]
    program = tmp_path / "page.py"
    program.write_text("".join(blocks), encoding="utf-8")
    run([str(program)], tmp_path)

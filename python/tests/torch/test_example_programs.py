"""The examples and the documents' Python, those that need PyTorch among them."""
import glob
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


@pytest.mark.parametrize("path", sorted(glob.glob(os.path.join(ROOT, "python", "examples", "*.py"))),
                         ids=os.path.basename)
def test_an_example_runs(path, tmp_path):
    done = subprocess.run([sys.executable, path], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=600)
    assert done.returncode == 0 and done.stdout.strip(), done.stdout + done.stderr

"""The package is typed: mypy, at its strictest, finds nothing in it."""
import os
import subprocess
import sys

import pytest

import command


def test_mypy_finds_nothing(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    python = os.path.join(command.ROOT, "python")
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", os.path.join(python, "pyproject.toml"),
                           "--exclude", "/(torch|vllm)/", "--cache-dir", str(tmp_path),
                           os.path.join(python, "src", "blockscale")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Success" in done.stdout, done.stdout + done.stderr


def test_a_program_that_uses_it_is_checked(tmp_path):
    """py.typed is there: what a caller does wrong is noticed."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text("import blockscale\n"
                       "m: blockscale.Matrix = blockscale.quantize(object(), 'nvfp4')\n"
                       "rows: str = m.rows\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir",
                           str(tmp_path), str(program)],
                          capture_output=True, text=True, check=False, env=dict(
                              os.environ, MYPYPATH=os.path.join(command.ROOT, "python", "src")))
    assert done.returncode == 1 and done.stdout.count("error") == 2 and "program.py:3" in done.stdout, done.stdout

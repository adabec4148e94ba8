"""Where the command `blockscale` and the checkout are, for tests."""
import importlib.util
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def path():
    """The command of the installed package, or of the build that is tested."""
    installed = os.environ.get("BLOCKSCALE_INSTALLED")
    if installed:
        return os.path.join(installed, "blockscale", "blockscale")
    build = os.environ.get("BLOCKSCALE_BUILD") or os.path.join(ROOT, "build", "release")
    return os.path.join(build, "bin", "blockscale")


def has_torch():
    """Whether PyTorch is installed.  The folder of its tests, which is no package, does not count."""
    spec = importlib.util.find_spec("torch")
    return spec is not None and spec.origin is not None


def run(*words):
    """Runs the command; fails with what it said unless it succeeds."""
    done = subprocess.run([path(), *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, f"blockscale {' '.join(map(str, words))}: {done.stderr}"
    return done.stdout

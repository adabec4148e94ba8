"""The package and PyTorch in one process: two sets of threads that do each other no harm."""
import os
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import numpy as np                                     # noqa: E402

import blockscale                                      # noqa: E402

M, N, K = 96, 160, 512


def run(program, **environment):
    """The output of a Python program in a process of its own."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=240,
                          env=dict(os.environ, **environment))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def operands(seed):
    rng = np.random.default_rng(seed)
    x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in ((M, K), (N, K)))
    return torch.from_numpy(x), blockscale.quantize(torch.from_numpy(w), "mxfp4")


def both(x, w):
    """A product by each: PyTorch's of the decoded weights, and ours."""
    return x @ w.dequantize().T, blockscale.matmul(x, w)


@pytest.mark.parametrize("first, second", [("torch", "blockscale"), ("blockscale", "torch")])
def test_either_may_be_imported_first(first, second):
    said = run(f"import {first}, {second}\n"
               "x = torch.arange(64.).reshape(1, 64)\n"
               "w = blockscale.quantize(torch.ones(2, 64), 'mxfp8_e4m3')\n"
               "y = torch.ones(300, 300) @ torch.ones(300, 300)\n"
               "print(blockscale.matmul(x, w).tolist(), float(y[0, 0]))\n")
    assert said.strip() == "[[2016.0, 2016.0]] 300.0"


def test_no_openmp_runtime_comes_with_the_package():
    said = run("def runtimes():\n"
               "    lines = open('/proc/self/maps').read().split('\\n')\n"
               "    names = ('gomp', 'iomp', 'libomp')\n"
               "    return {line.split('/')[-1] for line in lines if any(name in line for name in names)}\n"
               "import numpy, ml_dtypes, cffi\n"
               "before = runtimes()\n"
               "import blockscale\n"
               "x = numpy.ones((64, 64), 'float32')\n"
               "blockscale.set_threads(4)\n"
               "blockscale.matmul(x, blockscale.quantize(x, 'mxfp4'))\n"
               "print(sorted(runtimes() - before))\n")
    assert said.strip() == "[]"


def test_products_in_turn_keep_their_bits():
    x, w = operands(1)
    theirs, ours = both(x, w)
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        blockscale.set_threads(threads)
        for _ in range(20):
            again = both(x, w)
            assert torch.equal(again[1], ours) and torch.allclose(again[0], theirs, rtol=1e-4, atol=1e-3)
            assert torch.allclose(again[0], again[1], rtol=1e-3, atol=1e-2)
    blockscale.set_threads(0)


def test_products_at_the_same_time_keep_their_bits():
    blockscale.set_threads(3)
    pairs = [operands(seed) for seed in range(4)]
    wanted = [blockscale.matmul(x, w) for x, w in pairs]
    wrong = []

    def work(index):
        x, w = pairs[index]
        for _ in range(15):
            theirs, ours = both(x, w)
            if not torch.equal(ours, wanted[index]) or not torch.allclose(theirs, ours, rtol=1e-3, atol=1e-2):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    blockscale.set_threads(0)
    assert not wrong


def test_a_forked_child_of_both_computes():
    """DataLoader's workers are forked after both have started their threads."""
    said = run("import os, warnings, torch, blockscale\n"
               "torch.set_num_threads(4); blockscale.set_threads(4)\n"
               "x = torch.randn(96, 512, generator=torch.Generator().manual_seed(1))\n"
               "w = blockscale.quantize(torch.ones(160, 512), 'nvfp4')\n"
               "before, theirs = blockscale.matmul(x, w), x @ x.T\n"
               "child = os.fork()\n"
               "if child == 0:\n"
               "    torch.set_num_threads(1)\n"               # its own threads do not survive a fork
               "    same = torch.equal(blockscale.matmul(x, w), before)\n"
               "    close = torch.allclose(x @ x.T, theirs, rtol=1e-4, atol=1e-3)\n"
               "    os._exit(0 if same and close else 1)\n"
               "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
               "assert torch.equal(blockscale.matmul(x, w), before)\n"
               "print('both')\n")
    assert said.strip() == "both"


def test_workers_of_a_data_loader_quantize():
    class Rows(torch.utils.data.Dataset):
        """Rows that are quantized where they are loaded."""

        def __len__(self):
            return 8

        def __getitem__(self, index):
            return blockscale.quantize(torch.full((1, 64), float(index)), "mxfp8_e4m3").dequantize()

    blockscale.matmul(*operands(2))
    loader = torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    found = torch.cat(list(loader)).reshape(8, 64)
    assert torch.equal(found, torch.arange(8.0)[:, None].expand(8, 64))

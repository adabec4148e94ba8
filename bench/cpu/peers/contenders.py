"""Who takes part: ours, oneDNN's bf16 product through PyTorch, llama.cpp's, and reading memory.

A contender makes its operands for one work, as many copies of the weights as asked for, and runs calls that take the
copies in turn."""
import copy
import ctypes
import os
import re
import tempfile
import time

import numpy as np

import blockscale
import ggml

try:
    import torch
except ImportError:
    torch = None

NORMALS = 4096


class Values:
    """Random normal numbers, as blockscale's matrices, and as the bf16 numbers that these are worth."""

    def __init__(self):
        self.random = np.random.default_rng(26)
        self.pools = {}
        self.operands = {}

    def normals(self, which, rows, columns):
        if which not in self.pools:
            self.pools[which] = self.random.standard_normal((NORMALS, NORMALS), dtype=np.float32)
        return self.pools[which][:rows, :columns]

    def operand(self, which, form, rows, columns):
        """A Matrix, or for bf16 an array: operand `which` of a product."""
        key = (which, form, rows, columns)
        if key not in self.operands:
            self.operands = {old: made for old, made in self.operands.items() if old[0] != which}
            x = np.ascontiguousarray(self.normals(which, rows, columns))
            self.operands[key] = bf16(x) if form == "bf16" else blockscale.quantize(x, form)
        return self.operands[key]


def empty_bf16(rows, columns):
    """Of PyTorch where it is there.  The memory is NumPy's, which asks for huge pages for all alike."""
    if torch is None:
        import ml_dtypes
        return np.empty((rows, columns), ml_dtypes.bfloat16)
    return torch.from_numpy(np.empty((rows, columns), np.int16)).view(torch.bfloat16)


def bf16(x):
    made = empty_bf16(*x.shape)
    if torch is None:
        made[...] = x
    else:
        made.copy_(torch.from_numpy(x))
    return made


def in_bf16(x):
    """The numbers of an operand in bf16; bf16 is itself."""
    if isinstance(x, blockscale.Matrix):
        return blockscale.dequantize(x, out=empty_bf16(*x.shape))
    return x


def without_tensor_scale(x):
    """The same codes and scales: every number is a bf16 number then, as a tensor scale's products are not."""
    if not isinstance(x, blockscale.Matrix) or x.tensor_scale is None:
        return x
    return blockscale.from_parts(x.codes, x.scales, x.format)


def another(x):
    """A copy of an operand in memory of its own."""
    if isinstance(x, blockscale.Matrix):
        return copy.deepcopy(x)
    made = empty_bf16(*x.shape)
    made[...] = x
    return made


def stored_bytes(x):
    return x.nbytes


class Turns:
    """Copies of something, one after the other."""

    def __init__(self, copies):
        self.copies, self.at = copies, 0

    def next(self):
        self.at = (self.at + 1) % len(self.copies)
        return self.copies[self.at]


class Ours:
    """blockscale's plan; bf16 as it is, and D in bf16 as oneDNN's."""

    def __init__(self, work, values, cache_bytes):
        self.a = values.operand("a", work.a, work.m, work.k)
        b = values.operand("b", work.b, work.n, work.k)
        self.weight_bytes = stored_bytes(b)
        self.d = empty_bf16(work.m, work.n)
        self.turns = Turns([b] + [another(b) for _ in range(work.copies(self.weight_bytes, cache_bytes) - 1)])

    def calls(self, order):
        plan = blockscale.plan(self.a, self.turns.next(), out=self.d, order=order)
        run, a, d, turns = plan.run, self.a, self.d, self.turns
        return lambda: run(a, turns.next(), out=d)

    def kernel(self, order):
        text = blockscale.explain(self.a, self.turns.next(), out=self.d, order=order)
        found = re.search(r"kernel ([\w.]+)", text)
        return found.group(1) if found else text


class OneDnn:
    """torch.mm of bf16: weights [N, K] as a model has them."""

    name = "oneDNN"

    def __init__(self, work, values, cache_bytes, ours):
        self.ours, self.a = ours, in_bf16(ours.a)
        b = in_bf16(ours.turns.next())
        self.d = empty_bf16(work.m, work.n)
        self.turns = Turns([b] + [another(b) for _ in range(work.copies(stored_bytes(b), cache_bytes) - 1)])

    def ready(self):
        mm, a, d, turns = torch.mm, self.a, self.d, self.turns
        return lambda: mm(a, turns.next().t(), out=d)

    def check(self):
        """Ready operands give what ours does, but for the rounding of D (and of tensor scales)."""
        self.ours.calls("k")()
        self.ready()()
        ours, theirs = (np.asarray(d[:4].float()) for d in (self.ours.d, self.d))
        worst = float(np.abs(ours - theirs).max() / ours.std())
        if not worst < 0.05:
            raise ValueError(f"oneDNN's product differs from ours by {worst:.3f} of its spread")

    def after_dequantizing(self):
        """What is not bf16 already is dequantized in the call; tensor scales are left to whatever reads D."""
        mm, d, a = torch.mm, self.d, without_tensor_scale(self.ours.a)
        turns = Turns([without_tensor_scale(b) for b in self.ours.turns.copies])
        a_bf16, b_bf16 = empty_bf16(*self.a.shape), empty_bf16(*self.turns.next().shape)
        dequantize = blockscale.dequantize

        def call():
            left = a if a is self.a else dequantize(a, out=a_bf16)
            mm(left, dequantize(turns.next(), out=b_bf16).t(), out=d)
        return call


def onednn_says(a, b):
    """(version, instruction set and kernel) of one product, from oneDNN's own words."""
    found = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
                torch.mm(a, b.t())
            ctypes.CDLL(None).fflush(None)
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        lines = file.read().decode("utf-8", "replace").splitlines()
    fields = [line.split(",") for line in lines if ",exec,cpu," in line]
    kernels = [row[row.index("cpu") + 1:row.index("cpu") + 3] for row in fields]
    used = " ".join(kernels[-1]) if kernels else "not used by torch.mm"
    return f"oneDNN {found.group(1) if found else '?'} of PyTorch {torch.__version__}", used


class LlamaCpp:
    """llama.cpp's product of the same mxfp4 weights; activations in fp32."""

    name = "llama.cpp"

    def __init__(self, library, work, values, cache_bytes):
        b = values.operand("b", "mxfp4", work.n, work.k)
        blocks = ggml.blocks_of(b.codes, b.scales, work.n, work.k)
        x = values.normals("a", work.m, work.k)
        self.turns = Turns([library.product(blocks, x) for _ in range(work.copies(blocks.nbytes, cache_bytes))])
        first = self.turns.next()
        first.run()
        self.check(first.numbers(), x, b, work)

    @staticmethod
    def check(d, x, b, work):
        """It does compute this product: activations of 8 bits cost it some percent of D's spread."""
        rows = min(work.m, 4)
        expected = x[:rows] @ blockscale.dequantize(b).T
        worst = float(np.abs(d[:rows] - expected).max() / expected.std())
        if not worst < 0.2:
            raise OSError(f"llama.cpp's product differs by {worst:.2f} of its spread: not the same weights")

    def calls(self):
        turns = self.turns
        return lambda: turns.next().run()

    def free(self):
        for product in self.turns.copies:
            product.free()


class Reading:
    """Reading memory with some threads: seconds for as many bytes as the weights of a work have."""

    def __init__(self, library, cache_bytes):
        self.library = ctypes.CDLL(library)
        self.library.read_seconds.restype = ctypes.c_double
        self.library.read_seconds.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.memory = np.ones(max(2 * cache_bytes, 1 << 28), np.uint8)

    def seconds(self, weight_bytes, threads):
        start = time.thread_time()
        taken = self.library.read_seconds(self.memory.ctypes.data, self.memory.nbytes, threads)
        if threads == 1:
            taken = time.thread_time() - start       # as all others with one thread
        return taken * weight_bytes / self.memory.nbytes

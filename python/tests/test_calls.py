"""What a call does besides its work: no hidden copy, the GIL released, threads apart, errors as exceptions."""
import ctypes
import inspect
import pydoc
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest

import blockscale
from blockscale import _library, plans
from blockscale._library import ffi, lib

RANDOM = np.random.default_rng(31)


def sample(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def memory(call):
    """Bytes that a call has at most beside what there was before: NumPy's arrays and cffi's structs are counted."""
    call()                               # workspaces and plans that are kept
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


SMALL = 16384                            # descriptions and Python's own objects


def test_the_measure_sees_a_copy():
    x = sample(256, 512)
    assert memory(lambda: x.copy()) >= x.nbytes and memory(lambda: None) < SMALL


def test_nothing_is_copied():
    x, w = sample(256, 512), sample(384, 512)
    strided = sample(512, 600)[::2, 40:552]
    m, left = blockscale.quantize(w, "nvfp4", layout="128x4"), blockscale.quantize(x, "mxfp4")
    out, numbers = np.empty((256, 384), np.float32), np.empty((384, 512), np.float32)
    plan, other = blockscale.plan(left, m), blockscale.plan(x, m)
    bias, c = sample(384), sample(256, 384)
    assert memory(lambda: plan.run(left, m, out=out)) < SMALL
    assert memory(lambda: other.run(x, m, out=out)) < SMALL
    assert memory(lambda: blockscale.matmul(left, m, out=out, bias=bias, c=c)) < SMALL
    assert memory(lambda: blockscale.matmul(strided, m, out=out)) < SMALL
    assert memory(lambda: m.dequantize(out=numbers)) < SMALL
    assert memory(lambda: blockscale.quantize(w, "nvfp4", out=m)) < SMALL
    assert memory(lambda: blockscale.quantize(w.T, "mxfp4", axis=-2)) < 384 * (256 + 16) + SMALL
    assert memory(lambda: blockscale.matmul(left, m)) < out.nbytes + SMALL
    codes = np.empty((4096, 256), np.uint8)
    scales = np.empty((4096, 16), np.uint8)
    assert memory(lambda: blockscale.from_parts(codes, scales, "mxfp4")) < SMALL
    assert memory(lambda: blockscale.plain(x)) < SMALL
    y = sample(384, 512).astype(np.int8)
    s = np.full((384, 16), 127, np.uint8)
    xs = np.full((256, 16), 127, np.uint8)
    assert memory(lambda: blockscale.mma_scaled(x.astype(np.int8), xs, y.T, s.T)) < out.nbytes + 256 * 512 + SMALL


def progress_beside(call):
    """How often this thread's loop runs while another thread is in `call`.  Threads are not made to take turns: this
    one goes on when the other one lets it, which a call with the GIL does not."""
    inside, done, seen = threading.Event(), threading.Event(), 0

    def work():
        inside.set()
        call()
        done.set()
    thread = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100.0)
    try:
        thread.start()
        inside.wait()
        while not done.is_set():
            seen += 1
            time.sleep(0.001)
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    return seen


def test_other_threads_run_meanwhile():
    x = sample(1024, 2048)
    m = blockscale.quantize(sample(2048, 2048), "mxfp8_e4m3")
    blockscale.set_threads(1)
    try:
        plan = blockscale.plan(x, m)
        out = plan.run(x, m)
        frame = plan._frames[0]
        size = plan.workspace_bytes
        workspace = ffi.new("char[]", size + 64)
        aligned = int(ffi.cast("uintptr_t", workspace)) + 63 & ~63
        number = [int(ffi.cast("uintptr_t", pointer)) for pointer in (plan._kernel.handle, frame.product)]
        holding = ctypes.PyDLL(_library.path).bsm_plan_run           # a call that keeps the GIL
        holding.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t]
        # A busy machine may keep this thread from running: the most of some tries says what is possible.
        kept = max(progress_beside(lambda: holding(*number, aligned, size)) for _ in range(3))
        released = max(progress_beside(lambda: plan.run(x, m, out=out)) for _ in range(6))
    finally:
        blockscale.set_threads(0)
    assert kept <= 2 and released >= 5, (kept, released)


def test_threads_may_share_a_plan_and_a_matrix():
    m = blockscale.quantize(RANDOM.integers(-3, 4, (48, 128)).astype(np.float32), "mxfp4", tensor_scale="none")
    numbers = m.dequantize()
    inputs = [RANDOM.integers(-3, 4, (20, 128)).astype(np.float32) for _ in range(4)]
    plan = blockscale.plan(inputs[0], m)
    wrong = []

    def work(x):
        for turn in range(60):
            bias = np.full(48, turn, np.float32) if turn % 3 == 0 else None
            expected = x @ numbers.T + (turn if bias is not None else 0)
            if not np.array_equal(plan.run(x, m, bias=bias), expected):
                wrong.append(turn)
            if not np.array_equal(blockscale.matmul(x, m, alpha=float(turn)), turn * (x @ numbers.T)):
                wrong.append(-turn)
    threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
    assert len(set(map(id, plan._frames))) == len(plan._frames) <= len(inputs)       # no two threads had one


def test_errors_are_what_python_programs_expect():
    classes = {blockscale.InvalidError: ValueError, blockscale.UnsupportedError: NotImplementedError,
               blockscale.DeviceError: RuntimeError, blockscale.FileError: OSError,
               blockscale.MemoryError_: MemoryError}
    for mine, builtin in classes.items():
        assert issubclass(mine, blockscale.Error) and issubclass(mine, builtin)
    from blockscale._errors import _CLASSES
    statuses = [getattr(lib, name) for name in dir(lib) if name.startswith("BSM_E")
                and name.removeprefix("BSM_E") in ("INVAL", "ALIGN", "OVERFLOW", "UNSUPPORTED", "NOMEM", "DEVICE", "IO",
                                                   "FILE")]
    assert set(statuses) == set(_CLASSES) and len(statuses) == 8
    with pytest.raises(blockscale.InvalidError) as caught:
        blockscale.quantize(sample(4, 64), "mxfp4", block_rows=5)
    assert str(caught.value) == _library.text(lib.bsm_last_error())
    for threads in (-1, 1025, True):
        with pytest.raises(blockscale.InvalidError, match="threads="):
            blockscale.set_threads(threads)


def public():
    return [getattr(blockscale, name) for name in blockscale.__all__]


def test_everything_public_has_a_manual():
    for it in public():
        text = inspect.getdoc(it)
        assert text and len(text) > 20, it
        if inspect.isfunction(it):
            elsewhere = "are those of" in text             # of quantize and matmul, which this test reads, too
            for name in inspect.signature(it).parameters:
                assert name.removesuffix("_per") in text or elsewhere, f"{it.__name__}: {name} is not explained"
    manual = pydoc.plain(pydoc.render_doc(blockscale.matmul))
    for words in ("M x K", "N x K", "Returns D", "InvalidError", "UnsupportedError", "current stream"):
        assert words in manual
    for method in ("run", "pack", "describe"):
        assert inspect.getdoc(getattr(blockscale.Plan, method))


def test_workspaces_are_aligned_and_whole():
    for size in (1, 1000, (2 << 20) - 1, 2 << 20, (6 << 20) + 1):
        # pylint: disable=protected-access
        whole, start = plans._host_memory(size)
        first, begin = (int(ffi.cast("uintptr_t", at)) for at in (whole, start))
        assert begin % 64 == 0 and first <= begin and begin + size <= first + ffi.sizeof(whole)
        ffi.memmove(start, bytes(size), size)


def test_help_gives_the_first_example():
    example = [line.strip() for line in blockscale.__doc__.splitlines() if line.startswith("    ")][:5]
    scope = {}
    for line in example:
        exec(line, scope)                # pylint: disable=exec-used
    assert scope["y"].shape == (16, 16)


def test_what_there_is():
    assert blockscale.version() == blockscale.__version__ and blockscale.version().count(".") == 2
    formats = blockscale.formats()
    assert formats["nvfp4"].block == 16 and formats["nvfp4"].scale == "ue4m3" and formats["nvfp4"].bits == 4
    assert formats["mxfp8_e5m2"].max_value == 57344 and formats["bf16"].block == 0
    assert blockscale.devices()[0].kind == "cpu"

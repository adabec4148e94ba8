"""GPU arrays, on a simulated GPU: the CPU's bits, streams, graphs; no copy, no waiting, no memory behind the back."""
import threading

import numpy as np
import pytest

import simulated

REASON = simulated.missing()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON or "there is one")

import blockscale                                          # noqa: E402
from blockscale._device_array import DeviceArray           # noqa: E402
import oracle                                              # noqa: E402

RANDOM = np.random.default_rng(11)


@pytest.fixture(scope="module")
def driver():
    blockscale.quantize(DeviceArray.of_numpy(np.ones((1, 32), np.float32)), "mxfp4")     # loads kernels, tests itself
    return simulated.Driver()


def sample(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def on_gpu(m):
    """A Matrix of the CPU in device memory."""
    scales = None if m.scales is None else DeviceArray.of_numpy(m.scales)
    scale = None if m.tensor_scale is None else DeviceArray.of_numpy(m.tensor_scale)
    return blockscale.from_parts(DeviceArray.of_numpy(m.codes), scales, m.format, layout=m.layout, packing=m.packing,
                                 shape=None if m.sparsity != "none" else m.shape, tensor_scale=scale,
                                 tensor_scale_divides=m.tensor_scale_divides, sparsity=m.sparsity,
                                 metadata=None if m.metadata is None else DeviceArray.of_numpy(m.metadata))


def same(gpu, cpu):
    assert np.array_equal(gpu.codes.numpy(), cpu.codes)
    assert gpu.scales is None or np.array_equal(gpu.scales.numpy(), cpu.scales)
    assert (gpu.tensor_scale is None) == (cpu.tensor_scale is None)
    if gpu.tensor_scale is not None:
        assert np.array_equal(gpu.tensor_scale.numpy(), cpu.tensor_scale)


def test_the_devices_are_listed(driver):
    found = [device for device in blockscale.devices() if device.kind == "cuda"]
    assert len(found) == 2
    for device in found:
        assert device.capability[0] >= 9 and device.multiprocessors > 0


@pytest.mark.parametrize("name", [*oracle.FORMATS, "e4m3", "e5m2"])
def test_quantizing_has_the_bits_of_the_cpu(driver, name):
    x = sample(2, 9, 80)
    for layout in ("linear", "128x4"):
        gpu = blockscale.quantize(simulated.GpuArray(driver, x), name, layout=layout)
        cpu = blockscale.quantize(x, name, layout=layout)
        assert gpu.device == ("cuda", 0) and isinstance(gpu.codes, DeviceArray)
        same(gpu, cpu)
        assert np.array_equal(gpu.dequantize().numpy(), cpu.dequantize())
    ragged = blockscale.quantize(DeviceArray.of_numpy(x[0, :, :35]), name)
    same(ragged, blockscale.quantize(x[0, :, :35], name))


def test_quantize_both_and_conversions(driver):
    x = sample(32, 64)
    for gpu, cpu in zip(blockscale.quantize_both(DeviceArray.of_numpy(x), "mxfp8_e4m3", "mxfp4", layout="128x4"),
                        blockscale.quantize_both(x, "mxfp8_e4m3", "mxfp4", layout="128x4")):
        same(gpu, cpu)
        blocks = -(-cpu.columns // 32)
        linear = blockscale.convert_scales(gpu.scales, gpu.rows, blocks, "128x4", "linear")
        assert np.array_equal(linear.numpy(), blockscale.convert_scales(cpu.scales, cpu.rows, blocks, "128x4",
                                                                        "linear"))


@pytest.mark.parametrize("pair", [("mxfp4", "mxfp4"), ("nvfp4", "mxfp8_e4m3"), ("fp16", "mxfp4"), ("mxint8", "nvfp4"),
                                  ("mxfp6_e2m3", "mxfp8_e5m2")], ids="-".join)
def test_products_of_whole_numbers_are_the_cpus(driver, pair):
    x, y = (RANDOM.integers(-1, 2, shape).astype(np.float32) for shape in ((18, 64), (32, 64)))
    a = x.astype(np.float16) if pair[0] == "fp16" else blockscale.quantize(x, pair[0], tensor_scale="none")
    b = blockscale.quantize(y, pair[1], tensor_scale="none")
    gpu_a = DeviceArray.of_numpy(a) if pair[0] == "fp16" else on_gpu(a)
    bias = np.arange(32, dtype=np.float32)
    expected = blockscale.matmul(a, b)
    assert np.array_equal(blockscale.matmul(gpu_a, on_gpu(b)).numpy(), expected)
    options = {"alpha": 0.5, "activation": "relu"}
    gpu = blockscale.matmul(gpu_a, on_gpu(b), bias=DeviceArray.of_numpy(bias), **options)
    assert np.array_equal(gpu.numpy(), blockscale.matmul(a, b, bias=bias, **options))
    amax = DeviceArray.of_numpy(np.zeros(1, np.float32))
    gpu = blockscale.matmul(gpu_a, on_gpu(b), out_dtype="mxfp8_e4m3", amax=amax)
    same(gpu, blockscale.matmul(a, b, out_dtype="mxfp8_e4m3"))
    assert amax.numpy()[0] == np.abs(expected).max()


@pytest.mark.parametrize("kind", [("nvfp4", "4:8"), ("mxfp8_e4m3", "2:4"), ("bf16", "2:4")], ids="-".join)
def test_sparse_weights(driver, kind):
    x, y = (RANDOM.integers(-1, 2, shape).astype(np.float32) for shape in ((18, 96), (32, 96)))
    b = blockscale.sparsify(y, *kind, tensor_scale="none")
    want = blockscale.matmul(x, b, out_dtype="float32")
    a = blockscale.quantize(DeviceArray.of_numpy(x), "mxfp8_e4m3")
    assert np.array_equal(blockscale.matmul(a, on_gpu(b), out_dtype="float32").numpy(), want)


def test_groups(driver):
    x, y = (RANDOM.integers(-2, 3, shape).astype(np.float32) for shape in ((20, 64), (3, 16, 64)))
    a, b = (blockscale.quantize(z, "mxfp4", tensor_scale="none") for z in (x, y))
    expected = blockscale.matmul(a, b, groups=[5, 0, 15])
    given = DeviceArray.of_numpy(np.array([5, 0, 15]))
    for groups in ([5, 0, 15], given):
        assert np.array_equal(blockscale.matmul(on_gpu(a), on_gpu(b), groups=groups).numpy(), expected)


def test_prepacked_weights(driver):
    x, y = sample(4, 128).astype(np.float16), sample(64, 128)
    b = on_gpu(blockscale.quantize(y, "mxfp4"))
    packed = blockscale.pack(b, "fp16", 4)
    assert packed.device == ("cuda", 0)
    a = DeviceArray.of_numpy(x)
    assert np.array_equal(blockscale.matmul(a, b, panels=packed).numpy(), blockscale.matmul(a, b).numpy())


def test_work_goes_into_the_arrays_stream_and_nothing_waits(driver):
    stream = driver.stream()
    x, y = sample(16, 64), sample(32, 64)
    a, w = simulated.GpuArray(driver, x, stream), simulated.GpuArray(driver, y, stream)
    m = blockscale.quantize(w, "mxfp4")
    left = blockscale.quantize(a, "mxfp4")
    out = simulated.GpuArray(driver, np.zeros((16, 32), np.float32), stream)
    plan = blockscale.plan(left, m)
    alpha = simulated.GpuArray(driver, np.array([2], np.float32), stream)
    plan.run(left, m, out=out)           # the workspace of this stream is made
    with simulated.Watch() as watch:
        blockscale.quantize(w, "mxfp4", out=m)
    assert watch.launches >= 1 and watch.stream == stream and watch.quiet()
    with simulated.Watch() as watch:
        plan.run(left, m, out=out)
    assert watch.launches >= 1 and watch.stream == stream and watch.quiet()
    with simulated.Watch() as watch:
        plan.run(left, m, out=out, alpha=alpha)
    assert watch.stream == stream and watch.quiet()
    with simulated.Watch() as watch:
        blockscale.matmul(left, m, out=out)
    assert watch.stream == stream and watch.quiet()
    with simulated.Watch() as watch:
        blockscale.dequantize(m, out=w)
    assert watch.launches >= 1 and watch.stream == stream and watch.quiet()
    with simulated.Watch() as watch:     # a new result is memory, and nothing else
        blockscale.quantize(w, "mxfp4")
    assert (watch.copies, watch.waits) == (0, 0) and watch.allocations == 2
    expected = blockscale.matmul(blockscale.quantize(x, "mxfp4"), blockscale.quantize(y, "mxfp4"))
    assert np.allclose(out.get(), expected, rtol=1e-5, atol=1e-4)


def test_a_plan_runs_in_the_stream_of_each_runs_arrays(driver):
    x, y = (RANDOM.integers(-2, 3, shape).astype(np.float16) for shape in ((16, 64), (32, 64)))
    b = on_gpu(blockscale.quantize(y.astype(np.float32), "mxfp4"))
    plan, streams = None, [driver.stream() for _ in range(2)]
    for stream in streams:
        a = simulated.GpuArray(driver, x, stream)
        out = simulated.GpuArray(driver, np.zeros((16, 32), np.float32), stream)
        plan = plan or blockscale.plan(a, b)
        for run in (lambda: plan.run(a, b, out=out), lambda: blockscale.matmul(a, b, out=out)):
            with simulated.Watch() as watch:
                run()
            assert watch.launches >= 1 and watch.stream == stream
        assert np.array_equal(out.get(), x.astype(np.float32) @ y.T.astype(np.float32))


def test_a_watch_notices_copies_and_waiting(driver):
    with simulated.Watch() as watch:
        DeviceArray.of_numpy(np.zeros(4, np.float32)).numpy()
    assert not watch.quiet() and watch.copies == 2 and watch.waits == 2 and watch.allocations == 1


def test_graphs_replay_what_was_captured(driver):
    stream = driver.stream()
    x, y = (RANDOM.integers(-2, 3, shape).astype(np.float32) for shape in ((16, 64), (32, 64)))
    a = simulated.GpuArray(driver, x, stream)
    b = on_gpu(blockscale.quantize(y, "mxfp4"))
    left = blockscale.quantize(a, "mxfp8_e4m3")
    out = simulated.GpuArray(driver, np.zeros((16, 32), np.float32), stream)
    plan = blockscale.plan(left, b)
    plan.run(left, b, out=out)           # the workspace of this stream is made outside

    def work():
        with simulated.Watch() as watch:
            blockscale.quantize(a, "mxfp8_e4m3", out=left)
            plan.run(left, b, out=out)
        assert watch.quiet() and watch.launches >= 2 and watch.stream == stream
    launch = driver.capture(stream, work)
    for _ in range(2):
        x = RANDOM.integers(-2, 3, (16, 64)).astype(np.float32)
        driver.write(a.pointer, x)
        launch()
        assert np.array_equal(out.get(), x @ y.T)


def test_the_first_work_in_a_stream_may_be_captured(driver):
    stream = driver.stream()             # no context was made for it yet
    x = sample(8, 64)
    a = simulated.GpuArray(driver, x, stream)
    m = on_gpu(blockscale.quantize(np.zeros((8, 64), np.float32), "mxfp4"))

    def work():
        blockscale.quantize(a, "mxfp4", out=m)
    driver.capture(stream, work)()
    same(m, blockscale.quantize(x, "mxfp4"))


def test_threads_with_streams(driver):
    x, y = (RANDOM.integers(-2, 3, shape).astype(np.float32) for shape in ((16, 64), (32, 64)))
    b = on_gpu(blockscale.quantize(y, "mxfp4"))
    left = on_gpu(blockscale.quantize(x, "mxfp8_e4m3"))
    plan = blockscale.plan(left, b)
    wrong = []

    def work(stream):
        for _ in range(4):
            out = simulated.GpuArray(driver, np.zeros((16, 32), np.float32), stream)
            plan.run(left, b, out=out)
            if not np.array_equal(out.get(), x @ y.T):
                wrong.append(stream)
    streams = [driver.stream() for _ in range(3)]
    threads = [threading.Thread(target=lambda s=s: (driver.call("cuCtxSetCurrent", primary(driver)), work(s)))
               for s in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def primary(driver):
    import ctypes
    context = ctypes.c_void_p()
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    return context


def test_dlpack_and_the_interface_go_both_ways(driver):
    x = sample(3, 5)
    mine = DeviceArray.of_numpy(x)

    class OnlyDlpack:
        def __dlpack__(self, **options):
            return mine.__dlpack__(**options)

        def __dlpack_device__(self):
            return mine.__dlpack_device__()
    from blockscale import _arrays, _dlpack
    for given in (mine, OnlyDlpack()):
        found = _arrays.view(given, "x")
        assert found.pointer == mine.as_view().pointer and found.shape == (3, 5) and found.strides == (5, 1)
        assert found.device == ("cuda", 0) and found.dtype == "float32"
    del found, given
    assert not _dlpack._handed_out


def test_two_devices_have_the_same_bits(driver):
    x, w = sample(5, 96), sample(7, 96)
    made = []
    for number in range(2):
        place = ("cuda", number)
        a, b = (blockscale.quantize(DeviceArray.of_numpy(y, place), "mxfp8") for y in (x, w))
        d = blockscale.matmul(a, b)
        assert a.device == place and d.device == place
        made.append((a, b, d))
    for first, second in zip(*made):
        if isinstance(first, DeviceArray):
            assert np.array_equal(first.numpy(), second.numpy())
        else:
            assert np.array_equal(first.codes.numpy(), second.codes.numpy())
            assert np.array_equal(first.scales.numpy(), second.scales.numpy())
    with pytest.raises(blockscale.Error, match="b lies on cuda:1, a on cuda:0"):
        blockscale.matmul(made[0][0], made[1][1])
    with pytest.raises(blockscale.Error, match="device=2: this machine has 2 GPUs"):
        DeviceArray.of_numpy(x, ("cuda", 2))


def test_what_is_refused_is_named(driver):
    x = sample(4, 64)
    gpu, m = DeviceArray.of_numpy(x), blockscale.quantize(x, "mxfp4")
    for call, words in ((lambda: blockscale.matmul(gpu, m), "b lies on cpu, a on cuda:0"),
                        (lambda: blockscale.matmul(gpu, on_gpu(m)), "fp32"),
                        (lambda: blockscale.quantize(gpu, "mxfp4", stats=True), "stats"),
                        (lambda: blockscale.exact_matmul(on_gpu(m), on_gpu(m)), "GPU"),
                        (lambda: blockscale.matmul(on_gpu(m), on_gpu(m), bias=np.ones(4, np.float32)),
                         "bias lies on cpu"),
                        (lambda: blockscale.plan(on_gpu(m), on_gpu(m)).run(m, on_gpu(m)), "a lies on cpu"),
                        (lambda: blockscale.matmul(on_gpu(m), on_gpu(m), out=np.ones((4, 4), np.float32)),
                         "out lies on cpu")):
        with pytest.raises(blockscale.Error, match=words):
            call()

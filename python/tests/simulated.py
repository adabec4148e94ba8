"""A GPU for tests: cudasim behind the libcuda that counts calls, and CUDA streams and graphs by ctypes.

Imported before anything asks blockscale for a GPU: that is when the driver is loaded."""
import ctypes
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BLOCKSCALE_BUILD") or os.path.join(HERE, "..", "..", "build", "release")
SIMULATOR = os.path.abspath(os.path.join(BUILD, "lib", "libcudasim.so"))
COUNTER = os.path.abspath(os.path.join(BUILD, "lib", "libfailing_libcuda.so"))


class Counts(ctypes.Structure):
    """tests/cuda/driver/shim.h."""

    _fields_ = [(name, ctypes.c_long) for name in ("calls", "fail_at", "live")] + [("failed", ctypes.c_char * 64)] + [
        (name, ctypes.c_long) for name in ("launches", "copies", "waits", "allocations", "releases")] + [
        ("stream", ctypes.c_void_p)]


def missing():
    """Why there is no simulated GPU; empty if there is one."""
    import blockscale._information as information
    from blockscale._library import lib, text
    reason = text(lib.bsm_backend_missing(lib.BSM_BACKEND_CUDA))
    if reason:
        return f"the library has no kernels: {reason}"
    for path in (SIMULATOR, COUNTER):
        if not os.path.exists(path):
            return f"{path} is not built"
    os.environ.update(BLOCKSCALE_LIBCUDA=COUNTER, SHIM_LIBCUDA=SIMULATOR, CUDASIM_QUIET="1")
    os.environ.setdefault("CUDASIM_DEVICE", "sm_90a")
    os.environ.setdefault("CUDASIM_DEVICES", "2")
    os.environ.setdefault("CUDASIM_REPORTS", "stop")
    return information.missing()


def counts():
    """The counter's struct: it changes with every call of the driver."""
    state = ctypes.CDLL(COUNTER).shim_state
    state.restype = ctypes.POINTER(Counts)
    return state().contents


class Watch:
    """What the driver was asked for within a with block."""

    NAMES = ("launches", "copies", "waits", "allocations", "releases")

    def __enter__(self):
        self._before = {name: getattr(counts(), name) for name in self.NAMES}
        return self

    def __exit__(self, *_):
        for name, before in self._before.items():
            setattr(self, name, getattr(counts(), name) - before)
        self.stream = counts().stream or 0

    def quiet(self):
        """No copy, no waiting, no memory."""
        return (self.copies, self.waits, self.allocations, self.releases) == (0, 0, 0, 0)


class Driver:
    """Streams and graphs of the simulator, in the primary context that the library uses."""

    def __init__(self):
        self.cuda = ctypes.CDLL(SIMULATOR)
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        assert result == 0, f"{name} gave {result}"

    def stream(self):
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), 1)
        return made.value

    def synchronize(self, stream):
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def write(self, pointer, array):
        array = np.ascontiguousarray(array)
        self.call("cuMemcpyHtoD_v2", ctypes.c_void_p(pointer), ctypes.c_void_p(array.ctypes.data),
                  ctypes.c_size_t(array.nbytes))

    def capture(self, stream, work):
        """A graph of what `work` puts into the stream; a function that launches it."""
        self.call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), 0)
        graph, runnable = ctypes.c_void_p(), ctypes.c_void_p()
        try:
            work()
        finally:
            self.call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(runnable), graph, ctypes.c_ulonglong(0))

        def launch():
            self.call("cuGraphLaunch", runnable, ctypes.c_void_p(stream))
            self.synchronize(stream)
        return launch


class GpuArray:
    """An array of "another library": device memory with a stream of its own, known by __cuda_array_interface__."""

    TYPES = {"float32": "<f4", "float16": "<f2", "uint8": "|u1", "int8": "|i1", "int64": "<i8"}

    def __init__(self, driver, array, stream=0):
        self.host, self.stream = np.ascontiguousarray(array), stream
        self.driver = driver
        memory = ctypes.c_void_p()
        driver.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(max(self.host.nbytes, 1)))
        self.pointer = memory.value
        driver.write(self.pointer, self.host)

    def get(self):
        """The numbers, when the stream is done."""
        self.driver.synchronize(self.stream)
        made = np.empty_like(self.host)
        self.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(made.ctypes.data), ctypes.c_void_p(self.pointer),
                         ctypes.c_size_t(made.nbytes))
        return made

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.host.shape, "typestr": self.TYPES[self.host.dtype.name], "version": 3, "strides": None,
                "data": (self.pointer, False), "stream": self.stream or 1}

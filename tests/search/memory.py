"""Where problems lie: an image of all their buffers in the host's memory or, through libcuda, in a GPU's.

Buffers lie one behind the other with bytes of a pattern between them.  After the calls the image is compared with what
it was, but for the bytes that were to be written: whatever else a function writes is found, on either side of every
buffer and between the rows of D."""
import ctypes
import os

import numpy as np

ARENA, GAP = 48 << 20, 64


class Host:
    """Memory of a CPU context."""
    is_device = False

    def __init__(self):
        self._keep = np.zeros(ARENA + 4096, np.uint8)
        start = -self._keep.ctypes.data % 4096
        self.staging = self._keep[start : start + ARENA]
        self.base = self.staging.ctypes.data
        self._scratch = np.zeros(0, np.uint8)

    def upload(self, size):
        pass

    def download(self, size):
        return self.staging[:size]

    def scratch(self, size):
        """Memory for workspaces and panels, of which nobody looks at what it holds; valid until the next call."""
        if len(self._scratch) < size + 256:
            self._scratch = np.full(2 * size + 4096, 0xff, np.uint8)
        address = self._scratch.ctypes.data
        return address + -address % 256


class CudaError(Exception):
    pass


class Device:
    """Memory of a GPU, or of a simulated one."""
    is_device = True

    def __init__(self):
        self.cuda = ctypes.CDLL(os.environ.get("BLOCKSCALE_LIBCUDA") or "libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self._host = np.zeros(ARENA, np.uint8)
        self._back = np.zeros(ARENA, np.uint8)
        self.staging, self.base = self._host, self._allocate(ARENA)
        self._scratch, self._scratch_size = 0, 0

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            raise CudaError("%s gave %d" % (name, status))

    def _allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def upload(self, size):
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.base), ctypes.c_void_p(self.staging.ctypes.data),
                  ctypes.c_size_t(size))

    def download(self, size):
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(self._back.ctypes.data), ctypes.c_uint64(self.base),
                  ctypes.c_size_t(size))
        return self._back[:size]

    def scratch(self, size):
        if self._scratch_size < size:
            if self._scratch:
                self.call("cuMemFree_v2", ctypes.c_uint64(self._scratch))
            self._scratch_size = max(2 * size, 1 << 20)
            self._scratch = self._allocate(self._scratch_size)
            self.call("cuMemsetD8_v2", ctypes.c_uint64(self._scratch), ctypes.c_ubyte(0xff),
                      ctypes.c_size_t(self._scratch_size))
        return self._scratch

    def stream(self):
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 0)
        return stream

    def launch_captured(self, stream, work, times):
        """Captures what work() puts into the stream, and launches the graph."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", stream, 1)
        try:
            work()
        finally:
            self.call("cuStreamEndCapture", stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))
        for _ in range(times):
            self.call("cuGraphLaunch", executable, stream)
        self.call("cuStreamSynchronize", stream)
        self.call("cuGraphExecDestroy", executable)
        self.call("cuGraphDestroy", graph)

    def release(self, stream):
        self.call("cuStreamDestroy_v2", stream)


class HipDevice(Device):
    """The same of a GPU of AMD, or of gfxsim."""

    def __init__(self):
        self.cuda = ctypes.CDLL(os.environ.get("BLOCKSCALE_LIBHIP") or "libamdhip64.so")
        self.call("hipInit", 0)
        self._host = np.zeros(ARENA, np.uint8)
        self._back = np.zeros(ARENA, np.uint8)
        self.staging, self.base = self._host, self._allocate(ARENA)
        self._scratch, self._scratch_size = 0, 0

    def _allocate(self, size):
        address = ctypes.c_void_p()
        self.call("hipMalloc", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def _copy(self, to, start, size, kind):
        self.call("hipMemcpy", ctypes.c_void_p(to), ctypes.c_void_p(start), ctypes.c_size_t(size), kind)

    def upload(self, size):
        self._copy(self.base, self.staging.ctypes.data, size, 1)

    def download(self, size):
        self._copy(self._back.ctypes.data, self.base, size, 2)
        return self._back[:size]

    def scratch(self, size):
        if self._scratch_size < size:
            if self._scratch:
                self.call("hipFree", ctypes.c_void_p(self._scratch))
            self._scratch_size = max(2 * size, 1 << 20)
            self._scratch = self._allocate(self._scratch_size)
            filled = np.full(self._scratch_size, 0xff, np.uint8)
            self._copy(self._scratch, filled.ctypes.data, self._scratch_size, 1)
        return self._scratch

    def stream(self):
        stream = ctypes.c_void_p()
        self.call("hipStreamCreateWithFlags", ctypes.byref(stream), 1)
        return stream

    def launch_captured(self, stream, work, times):
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("hipStreamBeginCapture", stream, 1)
        try:
            work()
        finally:
            self.call("hipStreamEndCapture", stream, ctypes.byref(graph))
        self.call("hipGraphInstantiate", ctypes.byref(executable), graph, None, None, ctypes.c_size_t(0))
        for _ in range(times):
            self.call("hipGraphLaunch", executable, stream)
        self.call("hipStreamSynchronize", stream)
        self.call("hipGraphExecDestroy", executable)
        self.call("hipGraphDestroy", graph)

    def release(self, stream):
        self.call("hipStreamDestroy", stream)


class Image:
    """The buffers of one problem."""

    def __init__(self, memory, pattern):
        self.memory, self.pattern, self.used, self.written = memory, pattern, 0, []
        self.before = self.after = None

    def place(self, size, alignment=256, misalign=0):
        """The offset of a new buffer of `size` bytes, at `misalign` bytes behind a multiple of `alignment`; it holds
        the pattern."""
        offset = -(-(self.used + GAP) // alignment) * alignment + misalign
        end = offset + size + GAP
        if end > ARENA:
            raise MemoryError("problem is too large for the arena")
        self.memory.staging[self.used : end] = self.pattern
        self.used = end
        return offset

    def put(self, data, alignment=256, misalign=0):
        data = np.ascontiguousarray(data)
        data = data.reshape(-1).view(np.uint8) if data.size else np.zeros(0, np.uint8)
        offset = self.place(len(data), alignment, misalign)
        self.memory.staging[offset : offset + len(data)] = data
        return offset

    def address(self, offset):
        return self.memory.base + offset

    def strided(self, data, offset, shape, strides):
        return np.lib.stride_tricks.as_strided(data[offset:], shape, strides)

    def will_write(self, offsets):
        """Bytes, by their offsets, that the calls are to write."""
        self.written.append(np.asarray(offsets).reshape(-1))

    def upload(self):
        self.before = self.memory.staging[: self.used].copy()
        self.memory.upload(self.used)

    def download(self):
        self.after = self.memory.download(self.used)

    def stray(self):
        """The first byte that was written and should not have been, or None."""
        changed = self.after != self.before
        for offsets in self.written:
            changed[offsets] = False
        return int(np.argmax(changed)) if changed.any() else None

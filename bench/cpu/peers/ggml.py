"""llama.cpp's CPU kernels for MXFP4, called by ctypes out of a wheel that brings them: xllamacpp, or pywhispercpp.

Weights are laid out as llama.cpp does when it loads a model (its CPU_REPACK buffer where there is one), activations are
fp32, which it quantizes to 8 bits in the call."""
import ctypes
import glob
import os
import sysconfig

import numpy as np

POINTER, INT, LONG, SIZE, TEXT = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_size_t, ctypes.c_char_p)
F32, MXFP4, BLOCK = 0, 39, 32                            # of enum ggml_type
# Files of a wheel in the order in which they need one another.
WHEELS = {"xllamacpp": ["xllamacpp/xllamacpp*.so"],
          "pywhispercpp": ["pywhispercpp.libs/libgomp*", "pywhispercpp.libs/libggml-base*",
                           "pywhispercpp.libs/libggml-cpu*"]}


class Parameters(ctypes.Structure):
    """struct ggml_init_params."""
    _fields_ = [("bytes", SIZE), ("memory", POINTER), ("no_alloc", ctypes.c_bool)]


class Feature(ctypes.Structure):
    """struct ggml_backend_feature."""
    _fields_ = [("name", TEXT), ("value", TEXT)]


FUNCTIONS = {
    "ggml_init": (POINTER, Parameters), "ggml_free": (None, POINTER), "ggml_version": (TEXT,),
    "ggml_log_set": (None, POINTER, POINTER),
    "ggml_new_tensor_2d": (POINTER, POINTER, INT, LONG, LONG), "ggml_mul_mat": (POINTER, POINTER, POINTER, POINTER),
    "ggml_new_graph": (POINTER, POINTER), "ggml_build_forward_expand": (None, POINTER, POINTER),
    "ggml_backend_cpu_init": (POINTER,), "ggml_backend_cpu_set_n_threads": (None, POINTER, INT),
    "ggml_backend_cpu_buffer_type": (POINTER,), "ggml_backend_buffer_free": (None, POINTER),
    "ggml_backend_alloc_ctx_tensors_from_buft": (POINTER, POINTER, POINTER),
    "ggml_backend_tensor_set": (None, POINTER, POINTER, SIZE, SIZE),
    "ggml_backend_tensor_get": (None, POINTER, POINTER, SIZE, SIZE),
    "ggml_backend_graph_compute": (INT, POINTER, POINTER), "ggml_backend_get_device": (POINTER, POINTER),
    "ggml_backend_dev_backend_reg": (POINTER, POINTER),
    "ggml_backend_reg_get_proc_address": (POINTER, POINTER, TEXT),
}
QUIET = ctypes.CFUNCTYPE(None, INT, TEXT, POINTER)(lambda level, text, data: None)


def blocks_of(codes, scales, rows, columns):
    """Codes (low half of a byte first) and scales of an mxfp4 matrix as blocks of 17 bytes: the scale, then 32 codes of
    which number i and i + 16 share a byte."""
    pairs = np.asarray(codes).reshape(rows, columns // BLOCK, BLOCK // 2)
    one = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(rows, columns // BLOCK, BLOCK)
    blocks = np.empty((rows, columns // BLOCK, 1 + BLOCK // 2), np.uint8)
    blocks[..., 0] = np.asarray(scales).reshape(rows, columns // BLOCK)
    blocks[..., 1:] = one[..., :BLOCK // 2] | one[..., BLOCK // 2:] << 4
    return blocks


def wheel_files(folders):
    """(wheel, its files) of the first wheel whose files are all there."""
    for name, patterns in WHEELS.items():
        for folder in folders:
            files = [sorted(glob.glob(os.path.join(folder, pattern))) for pattern in patterns]
            if all(files):
                return name, [found[0] for found in files]
    return None, []


class Ggml:
    """The library of a wheel, and one CPU backend.  OSError says what is missing."""

    def __init__(self, folder=None):
        folders = [folder] if folder else [sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]
        wheel, files = wheel_files(folders)
        if wheel is None:
            raise OSError("no wheel with llama.cpp's kernels: pip install xllamacpp")
        libraries = [ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in files]
        for name, (result, *arguments) in FUNCTIONS.items():
            found = [getattr(library, name) for library in libraries if hasattr(library, name)]
            if not found:
                raise OSError(f"{wheel} has no function {name}")
            found[0].restype, found[0].argtypes = result, arguments
            setattr(self, name[5:], found[0])
        self.log_set(QUIET, None)
        self.backend = self.backend_cpu_init()
        device = self.backend_get_device(self.backend)
        self.buffers = self._buffer_types(device)
        features = ", ".join(self._features(device))
        self.name = f"ggml {self.version().decode()} of {wheel} ({features})"

    def _procedure(self, device, name, result, argument):
        address = self.backend_reg_get_proc_address(self.backend_dev_backend_reg(device), name)
        return ctypes.CFUNCTYPE(result, POINTER)(address)(argument) if address else None

    def _buffer_types(self, device):
        """Where weights may lie, the one for repacked weights first."""
        extra = self._procedure(device, b"ggml_backend_dev_get_extra_bufts", ctypes.POINTER(POINTER), device)
        found = []
        while extra and extra[len(found)]:
            found.append(extra[len(found)])
        return found + [self.backend_cpu_buffer_type()]

    def _features(self, device):
        registry = self.backend_dev_backend_reg(device)
        features = self._procedure(device, b"ggml_backend_get_features", ctypes.POINTER(Feature), registry)
        index = 0
        while features and features[index].name:
            yield features[index].name.decode()
            index += 1

    def product(self, blocks, activations):
        return Product(self, blocks, activations)


class Product:
    """activations (M x K, fp32) times the transpose of weights (blocks_of); run() computes it."""

    def __init__(self, ggml, blocks, activations):
        self.ggml = ggml
        rows, self.columns = activations.shape[0], blocks.shape[0]
        self.contexts = [ggml.init(Parameters(1 << 18, None, True)) for _ in range(2)]
        weights = ggml.new_tensor_2d(self.contexts[0], MXFP4, activations.shape[1], self.columns)
        buffers = (ggml.backend_alloc_ctx_tensors_from_buft(self.contexts[0], kind) for kind in ggml.buffers)
        self.buffers = [next(buffer for buffer in buffers if buffer)]
        given = ggml.new_tensor_2d(self.contexts[1], F32, activations.shape[1], rows)
        self.result = ggml.mul_mat(self.contexts[1], weights, given)
        self.graph = ggml.new_graph(self.contexts[1])
        ggml.build_forward_expand(self.graph, self.result)
        self.buffers.append(ggml.backend_alloc_ctx_tensors_from_buft(self.contexts[1], ggml.backend_cpu_buffer_type()))
        self.rows = rows
        for tensor, array in ((weights, blocks), (given, np.ascontiguousarray(activations, np.float32))):
            ggml.backend_tensor_set(tensor, array.ctypes.data, 0, array.nbytes)

    def run(self):
        if self.ggml.backend_graph_compute(self.ggml.backend, self.graph) != 0:
            raise OSError("ggml_backend_graph_compute failed")

    def numbers(self):
        d = np.empty((self.rows, self.columns), np.float32)
        self.ggml.backend_tensor_get(self.result, d.ctypes.data, 0, d.nbytes)
        return d

    def free(self):
        for buffer in self.buffers:
            self.ggml.backend_buffer_free(buffer)
        for context in self.contexts:
            self.ggml.free(context)

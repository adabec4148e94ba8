"""The library's public headers in ctypes: its structs, and calls that give a status and a sentence."""
import ctypes
from ctypes import (POINTER, Structure, c_bool, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint8,
                    c_uint32, c_uint64, c_void_p)


class ScaleLayout(Structure):
    _fields_ = [("kind", c_int), ("pitch", c_int64), ("tile_rows", c_int64), ("tile_columns", c_int64)]


class Matrix(Structure):
    _fields_ = [("struct_size", c_size_t), ("format", c_int), ("packing", c_int), ("rows", c_int64),
                ("columns", c_int64), ("data", c_void_p),
                ("pitch", c_int64), ("scales", c_void_p), ("scale_layout", ScaleLayout), ("tensor_scale", c_void_p),
                ("tensor_scale_use", c_int), ("major", c_int), ("batch", c_int64), ("batch_pitch", c_int64),
                ("scale_batch_pitch", c_int64)]


class SparseMatrix(Structure):
    _fields_ = [("matrix", Matrix), ("sparsity", c_int), ("metadata", c_void_p), ("metadata_pitch", c_int64),
                ("metadata_batch_pitch", c_int64)]


class RealMatrix(Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("rows", c_int64), ("columns", c_int64), ("data", c_void_p),
                ("row_stride", c_int64), ("column_stride", c_int64), ("batch", c_int64), ("batch_stride", c_int64)]


class Matmul(Structure):
    _fields_ = [("struct_size", c_size_t), ("a", POINTER(Matrix)), ("b", POINTER(Matrix)), ("alpha", c_void_p),
                ("alpha_per", c_int),
                ("beta", c_void_p), ("c", POINTER(Matrix)), ("bias", c_void_p), ("bias_type", c_int),
                ("bias_per", c_int),
                ("bias_batch_pitch", c_int64), ("activation", c_int), ("gate", c_int), ("d", POINTER(Matrix)),
                ("d_recipe", c_int),
                ("d_nonfinite", c_int), ("d_no_saturate", c_bool), ("amax", c_void_p), ("groups", c_int64),
                ("group_rows", c_void_p),
                ("stream", c_void_p), ("b_panels", c_void_p), ("compute", c_int), ("order", c_int),
                ("group_columns", c_void_p)]


class ContextOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("threads", c_int), ("cpu_mask", c_uint32), ("portable_only", c_bool),
                ("allocator", c_void_p), ("backend", c_int), ("device", c_int), ("stream", c_void_p)]


class QuantizeOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("recipe", c_int), ("rounding", c_int), ("seed", c_uint64),
                ("nonfinite", c_int),
                ("tensor_scale", c_int), ("no_saturate", c_bool), ("block_rows", c_int64), ("preset", c_int),
                ("clamp_low", c_float), ("clamp_high", c_float), ("smallest_scale", c_uint8)]


class QuantizeStats(Structure):
    _fields_ = [("struct_size", c_size_t), ("elements", c_int64), ("blocks", c_int64), ("saturated_elements", c_int64),
                ("flushed_blocks", c_int64), ("nan_blocks", c_int64), ("signal", c_double), ("noise", c_double),
                ("snr_db", c_double), ("amax", c_double), ("scale_histogram", c_int64 * 256)]


class Scales(Structure):
    _fields_ = [("data", c_void_p), ("rows", c_int64), ("columns", c_int64), ("layout", ScaleLayout)]


class FormatInfo(Structure):
    _fields_ = [("name", c_char_p)]


class DeviceInfo(Structure):
    _fields_ = [("struct_size", c_size_t), ("name", ctypes.c_char * 128), ("major", c_int), ("minor", c_int),
                ("multiprocessors", c_int), ("driver_version", c_int), ("memory_bytes", c_int64)]


STRUCTS = {"bsm_scale_layout": ScaleLayout, "bsm_matrix": Matrix,
           "bsm_sparse_matrix": SparseMatrix, "bsm_real_matrix": RealMatrix, "bsm_matmul": Matmul,
           "bsm_context_options": ContextOptions, "bsm_quantize_options": QuantizeOptions,
           "bsm_quantize_stats": QuantizeStats, "bsm_scales": Scales, "bsm_device_info": DeviceInfo}

# Enumerators without names of their own in the library; the others are looked up by name.
COMPUTES = {"exact": 0, "fast": 1, "tf32": 2}
PER = {"tensor": 0, "row": 1, "column": 2, "batch": 3}
GATES = {"none": 0, "interleaved": 1, "split": 2}
NONFINITE = {"propagate": 0, "saturate": 1}
CPU, CUDA, HIP = 0, 1, 3
OK, EINVAL, EALIGN, EOVERFLOW, EUNSUPPORTED, ENOMEM, EDEVICE = range(7)
STATUS = ["OK", "EINVAL", "EALIGN", "EOVERFLOW", "EUNSUPPORTED", "ENOMEM", "EDEVICE", "EIO", "EFILE"]


def new(kind, **fields):
    """A struct of zeros that says its own size."""
    it = kind(**fields)
    if hasattr(it, "struct_size"):
        it.struct_size = ctypes.sizeof(kind)
    return it


class Refused(Exception):
    """A call that did not give BSM_OK."""

    def __init__(self, call, status, sentence):
        super().__init__("%s: %s: %s" % (call, STATUS[status] if status < len(STATUS) else status, sentence))
        self.call, self.status, self.sentence = call, status, sentence


class Library:
    def __init__(self, path):
        self.dll = ctypes.CDLL(path)
        for name in ("bsm_last_error", "bsm_kernel_name", "bsm_layout_name", "bsm_packing_name", "bsm_real_name",
                     "bsm_sparsity_name", "bsm_activation_name", "bsm_recipe_name", "bsm_backend_missing",
                     "bsm_order_name", "bsm_cpu_feature_name"):
            getattr(self.dll, name).restype = c_char_p
        for name in ("bsm_plan_workspace_bytes", "bsm_plan_b_panels_bytes", "bsm_plan_describe"):
            getattr(self.dll, name).restype = c_size_t
        self.dll.bsm_format_get.restype = POINTER(FormatInfo)
        self.dll.bsm_kernel_serves.restype = c_bool
        self.layouts = self._names(self.dll.bsm_layout_name)
        self.packings = self._names(self.dll.bsm_packing_name)
        self.sparsities = self._names(self.dll.bsm_sparsity_name)
        self.reals = self._names(self.dll.bsm_real_name)
        self.activations = self._names(self.dll.bsm_activation_name)
        self.recipes = self._names(self.dll.bsm_recipe_name)
        self.kernels = self._names(self.dll.bsm_kernel_name)
        self.orders = self._names(self.dll.bsm_order_name)
        self.formats = self._names(lambda i: self.dll.bsm_format_get(i).contents.name if i > 0
                                   and self.dll.bsm_format_get(i) else None, 1)

    @staticmethod
    def _names(name_of, first=0):
        """Numbers by name.  Numbers that are no longer used have none."""
        return {name_of(number).decode(): number for number in range(first, 400) if name_of(number)}

    def call(self, name, *arguments):
        status = getattr(self.dll, name)(*arguments)
        if status != OK:
            raise Refused(name, status, self.dll.bsm_last_error().decode(errors="replace"))

    def missing(self, backend):
        """Why there is no GPU for this build, or an empty string."""
        reason = self.dll.bsm_backend_missing(backend).decode()
        if reason:
            return reason
        try:
            self.call("bsm_device_count", backend, ctypes.byref(c_int()))
        except Refused as refused:
            return refused.sentence
        return ""

    def device(self, backend):
        info = new(DeviceInfo)
        self.call("bsm_device_describe", backend, 0, ctypes.byref(info))
        return info


class Context:
    def __init__(self, library, backend, threads=1):
        self.library = library
        self.handle, self.forced = c_void_p(), -1
        options = new(ContextOptions, backend=backend, threads=threads)
        library.call("bsm_context_create", ctypes.byref(options), ctypes.byref(self.handle))

    def force(self, kernel):
        if kernel != self.forced:
            self.library.call("bsm_context_force_kernel", self.handle, kernel)
            self.forced = kernel

    def serving(self, a, b):
        """Names of the kernels that serve a pair of formats."""
        lib = self.library
        return [name for name, i in lib.kernels.items()
                if lib.dll.bsm_kernel_serves(self.handle, i, lib.formats[a], lib.formats[b])]

    def features(self):
        """Names of the CPU features that it uses."""
        dll = self.library.dll
        mask = dll.bsm_context_cpu_features(self.handle)
        return {dll.bsm_cpu_feature_name(1 << i).decode() for i in range(31) if mask >> i & 1}

    def set_threads(self, threads):
        self.library.call("bsm_context_set_threads", self.handle, threads)

    def synchronize(self):
        self.library.call("bsm_context_synchronize", self.handle)


class Plan:
    def __init__(self, context, product):
        self.library, self.handle = context.library, c_void_p()
        self.library.call("bsm_plan_create", context.handle, ctypes.byref(product), ctypes.byref(self.handle))

    def describe(self):
        text = ctypes.create_string_buffer(1024)
        self.library.dll.bsm_plan_describe(self.handle, text, c_size_t(1024))
        return text.value.decode()

    def workspace_bytes(self):
        return self.library.dll.bsm_plan_workspace_bytes(self.handle)

    def panels_bytes(self):
        return self.library.dll.bsm_plan_b_panels_bytes(self.handle)

    def run(self, product, workspace, size):
        self.library.call("bsm_plan_run", self.handle, ctypes.byref(product), c_void_p(workspace), c_size_t(size))

    def pack(self, product, panels, size):
        self.library.call("bsm_plan_pack_b", self.handle, ctypes.byref(product), c_void_p(panels), c_size_t(size))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.dll.bsm_plan_destroy(self.handle)

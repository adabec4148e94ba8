"""Products through the Python package: the same problems, buffers and expected numbers as products.py, but the operands
are NumPy's arrays over the image, and blockscale.matmul or a blockscale.Plan computes D.

What a caller of the package may choose is drawn for each problem: two dimensions or three, the types of ml_dtypes or
bytes, DLPack, vectors by their shape or by name, numbers or arrays, D of one's own or a new one."""
import os
import sys

import numpy as np

import data
import layouts
import library
from memory import Image
from products import Call, Data, Runner, Wrong, kernel_of

PLAIN = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
# Types of ml_dtypes that codes of one a byte may have beside uint8.
CODES = {"e2m1": "float4_e2m1fn", "e2m3": "float6_e2m3fn", "e3m2": "float6_e3m2fn", "e4m3": "float8_e4m3fn",
         "e5m2": "float8_e5m2"}
SCALES = {"e8m0": "float8_e8m0fnu", "ue4m3": "float8_e4m3fn"}


class ByDlpack:
    """An array that shows nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def package(path):
    """The package `blockscale`, on the library at `path`: beside it in a wheel, else the checkout's."""
    beside = os.path.dirname(os.path.abspath(path))
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    inside = os.path.exists(os.path.join(beside, "__init__.py"))
    sys.path.insert(0, os.path.dirname(beside) if inside else os.path.join(root, "python", "src"))
    os.environ["BLOCKSCALE_LIBRARY"] = os.path.abspath(path)
    import blockscale
    return blockscale


class Choices:
    """What the caller of one problem chooses."""

    def __init__(self, rng):
        self.rng = rng

    def one_of(self, *values):
        return values[int(self.rng.integers(len(values)))]


class Shown:
    """Arrays of NumPy over a matrix in the image, and the blockscale.Matrix of them."""

    def __init__(self, blockscale, placed, content, choices):
        import ml_dtypes
        self.blockscale, self.placed, self.content, self.choices = blockscale, placed, content, choices
        self.types = lambda name: np.dtype(getattr(ml_dtypes, name, None) or name)
        self.format, self.packing = placed.format, placed.packing.name
        self.show(placed.batch == 1 and choices.one_of(True, True, False))

    def show(self, flat):
        """In two dimensions, or in three."""
        self.flat = flat
        self.codes = self._codes()

    def _array(self, at, shape, dtype, strides):
        """Bytes of the image as an array: strides count bytes, and the first of three dimensions is the batch."""
        array = np.ndarray(shape, dtype, self.placed.image.memory.staging, at, strides)
        return array[0] if self.flat else array

    def _codes(self):
        placed, bits = self.placed, self.format.element.bits
        dtype, size = np.dtype("uint8"), 1
        entries = {"low_first": -(-placed.width // 2), "high_first": -(-placed.width // 2),
                   "bit_stream": -(-placed.width // 4) * 3}.get(self.packing, placed.shape[2])
        if self.packing == "plain" and bits > 8 or self.format.name in PLAIN:
            dtype = self.types(PLAIN[self.format.name])
            size, entries = dtype.itemsize, placed.width
        elif self.packing in ("plain", "bytes") and self.format.element.name in CODES:
            dtype = self.types(self.choices.one_of("uint8", CODES[self.format.element.name]))
        shape = (placed.batch, placed.lines, entries)
        array = self._array(placed.data, shape, dtype, (placed.strides[0], placed.strides[1], size))
        self.numbers = array                             # what it is called where no Matrix is needed
        by_dlpack = dtype.name in ("uint8", "float32", "float16") and array.flags.aligned
        if by_dlpack and self.choices.one_of(True, False, False, False):
            return ByDlpack(array)
        return array

    def _scales(self):
        """The array of scales and the name of its layout."""
        placed = self.placed
        if not self.format.block or placed.gguf:
            return None, "linear"
        layout = dict(placed.storage.get("layout") or {"kind": "linear"})
        dtype = self.types(self.choices.one_of("uint8", SCALES[self.format.scale]))
        if layout["kind"] == "linear":
            pitch = placed.scale_columns
            if layout.get("gap"):
                pitch = layouts.linear_pitches(placed.scale_columns, layout["gap"])[1]
            apart = placed.batch > 1 and placed.scale_apart != pitch * placed.rows
            # Else only three dimensions say where the scales of a batch begin.
            flat = not apart or pitch != placed.scale_columns
            if not flat or self.choices.one_of(True, True, False) or placed.rows == 0 or placed.columns == 0:
                shape = (placed.batch, placed.rows, placed.scale_columns)
                return self._array(placed.scales, shape, dtype, (placed.scale_apart, pitch, 1)), "linear"
            name = "linear:%d" % pitch if pitch != placed.scale_columns else "linear"
            layout["pitch"] = pitch
        else:
            name = layout["kind"]
            if name == "tiles":
                name += ":%dx%d" % (layout["tile_rows"], layout["tile_columns"])
        size = layouts.size(layout, placed.rows, placed.scale_columns)
        return self._array(placed.scales, (placed.batch, size), dtype, (placed.scale_apart, 1)), name

    def matrix(self, with_scale=True):
        """A blockscale.Matrix."""
        scales, layout = self._scales()
        scale = self.content.tensor_scale if with_scale else None
        if scale is not None and self.choices.one_of(True, False):
            scale = np.full(self.choices.one_of((), (1,)), scale, np.float32)
        packing = {"plain": None}.get(self.packing, self.packing)
        if self.packing in ("low_first", "bit_stream") and self.choices.one_of(True, False):
            packing = None                               # the default
        shape = (self.placed.batch, self.placed.rows, self.content.codes.shape[-1] if self.placed.sparse
                 else self.placed.columns)
        sparse = {}
        if self.placed.sparse:
            metadata = self._array(self.placed.metadata, self.placed.metadata_shape, np.dtype("uint8"),
                                   self.placed.metadata_strides)
            sparse = {"sparsity": self.placed.storage["sparsity"], "metadata": metadata}
        return self.blockscale.from_parts(
            self.codes, scales, self.format.name, layout=layout, tensor_scale=scale,
            tensor_scale_divides=bool(self.content.divides), packing=packing, shape=shape[1:] if self.flat else shape,
            major="mn" if self.placed.turned else "k", **sparse)

    def operand(self):
        """A Matrix, or an array of plain numbers where nothing else belongs to it."""
        plain = self.format.name in PLAIN and self.content.tensor_scale is None and not self.placed.sparse
        if plain and self.choices.one_of(True, False):
            return self.numbers.swapaxes(-1, -2) if self.placed.turned else self.codes
        return self.matrix()


class Scaled:
    """What Shown asks of a content, for D."""

    def __init__(self, tensor_scale, divides):
        self.tensor_scale, self.divides = tensor_scale, divides


class PythonRunner(Runner):
    """Runs product problems through the package, on the CPU."""

    def __init__(self, target, blockscale):
        super().__init__(target)
        self.blockscale = blockscale

    def __call__(self, problem, note):
        numbers = Data(problem)
        image = Image(self.target.memory, problem["pattern"])
        storages = {x: (problem.get(x) or {}).get("storage", {}) for x in ("a", "b", "c", "d")}
        is_d = bool((problem.get("c") or {}).get("is_d"))
        main = Call(image, self.lib, numbers, storages, is_d, problem.get("amax", False))
        relation = self._relation(image, problem, numbers, main, storages)
        # A plan is made with other arrays than it is run with.
        planned = problem["via"] in ("plan", "panels") and not is_d
        twin = Call(image, self.lib, numbers, storages, False, problem.get("amax", False)) if planned else None
        image.upload()
        self.blockscale.set_threads(problem.get("threads", 1))
        try:
            described = self._product(problem, main, twin, is_d, note)
            if relation:
                self._product(dict(problem, via="multiply"), relation[0], None, False, lambda *_: None)
        except self.blockscale.Error as error:
            raise Wrong("%s: %s" % (type(error).__name__, error)) from error
        image.download()
        self._check(problem, numbers, main, relation, described, note)
        if twin:
            self._compare_twin(main, twin, described, note)

    # A product of the package -----------------------------------------------------------------------------------------

    def _product(self, problem, call, twin, is_d, note):
        """Computes D in the image; what explain() or the plan says."""
        choices = Choices(data.generator(problem["data_seed"], 8))
        a, b, d, out, asked, form = self._arguments(problem, call, is_d, choices)
        once = 1 if is_d else problem.get("repeats", 1)
        if problem["via"] == "multiply" or is_d:
            if not is_d and choices.one_of(True, False):
                self._another(a, b, out, asked, form, choices)
                note("another product of the same operands before", 1)
            new = out is d.numbers and not is_d and choices.one_of(True, False)
            for _ in range(once):
                if new:
                    out_dtype = PLAIN[d.format.name]
                    d.numbers[...] = self._same_kind(
                        self.blockscale.matmul(a, b, out_dtype=out_dtype, **asked, **form), d.numbers, note)
                elif self.blockscale.matmul(a, b, out=out, **asked, **form) is not out:
                    raise Wrong("matmul gives something else than out")
            note("calls of matmul", 1)
            return self.blockscale.explain(a, b, out=out, **asked, **form)
        other = self._arguments(problem, twin, is_d, Choices(data.generator(problem["data_seed"], 8)))
        plan = self.blockscale.plan(*other[:2], out=other[3], **other[4], **form)
        panels = None
        if problem["via"] == "panels" and plan.panels_bytes:
            panels = plan.pack(b)
            note("panels", 1)
        vectors = {name: value for name, value in asked.items() if not name.endswith("_per")}
        for _ in range(once):
            if choices.one_of(True, False):
                plan.run(a, b, out, panels=panels, **vectors)
            else:
                self.blockscale.matmul(a, b, out=out, plan=plan, panels=panels, **vectors)
        plan.run(*other[:2], other[3])
        note("plans", 1)
        return plan.describe()

    def _another(self, a, b, out, asked, form, choices):
        """A product of the same operands and the same D, which differs in one argument: if the package took what it
        kept of it for the product that follows, D would be wrong."""
        other, names = dict(asked), [name for name in asked if name in ("alpha", "bias", "amax", "c")]
        if names and choices.one_of(True, True, False):
            name = choices.one_of(*names)
            for key in (name, name + "_per") + (("beta",) if name == "c" else ()):
                other.pop(key, None)
        else:
            other["alpha"] = 2.0
            other.pop("alpha_per", None)
        kept = dict(form, activation="none") if "gate" not in form and choices.one_of(True, False) else form
        if asked.get("amax") is not None and "amax" in other:
            other["amax"] = np.zeros(1, np.float32)
        self.blockscale.matmul(a, b, out=out, **other, **kept)

    def _arguments(self, problem, call, is_d, choices):
        """What the caller gives: a, b, D as it is shown, out, and the other arguments, vectors and names apart."""
        numbers = call.numbers
        a = Shown(self.blockscale, call.a, numbers.a, choices)
        b = Shown(self.blockscale, call.b, numbers.b, choices)
        if numbers.along_k:
            a.show(True)
        if numbers.along_k or numbers.groups:
            b.show(bool(numbers.along_k))
        a, b = a.operand(), b.operand()
        batched = bool(numbers.along_k) or not numbers.groups and 3 in (self._rank(a), self._rank(b))
        d = Shown(self.blockscale, call.d, Scaled(numbers.d_scale, numbers.d_divides), choices)
        d.show(not batched)
        plain_d = not d.format.block and numbers.d_scale is None
        out = d.numbers if plain_d and choices.one_of(True, False) else d.matrix()
        asked = self._asked(call, is_d, d, choices)
        form = dict(activation=numbers.activation, gate=numbers.gate, out_recipe=numbers.recipe,
                    out_saturate=numbers.saturate, out_nonfinite=numbers.nonfinite,
                    compute=problem.get("compute", "exact"),
                    order=problem.get("order", "k"))
        form = {key: value for key, value in form.items() if choices.one_of(True, False) or value not in
                ("none", "default", True, "propagate", "exact", "k")}
        return a, b, d, out, asked, form

    @staticmethod
    def _rank(x):
        return len(x.shape) if hasattr(x, "shape") else x.array.ndim

    @staticmethod
    def _same_kind(found, wanted, note):
        if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
            raise Wrong("a new D is %s %s, expected %s %s" % (found.dtype, found.shape, wanted.dtype, wanted.shape))
        note("new arrays for D", 1)
        return found

    def _asked(self, call, is_d, d, choices):
        """Arguments for everything but the operands and D."""
        numbers, image, asked = call.numbers, call.image, {}
        if numbers.alpha is not None:
            self._alpha(asked, numbers, choices)
        if numbers.beta is not None:
            asked["beta"] = choices.one_of(float(numbers.beta), np.float32(numbers.beta),
                                           np.full(1, numbers.beta, np.float32))
        if numbers.c is not None:
            shown = Shown(self.blockscale, call.c, Scaled(None, False), choices)
            shown.show(d.flat or shown.flat)
            asked["c"] = d.matrix(False) if is_d else choices.one_of(shown.numbers, shown.matrix())
            if numbers.beta == 1 and choices.one_of(True, False):
                del asked["beta"]
        if numbers.bias is not None:
            self._bias(asked, numbers, choices)
        for name, groups in (("groups", numbers.groups), ("group_columns", numbers.along_k)):
            if groups:
                asked[name] = choices.one_of(np.array(groups, np.int64), list(groups), tuple(groups))
        if call.amax is not None:
            asked["amax"] = np.ndarray((1,), np.float32, image.memory.staging, call.amax)
        return asked

    @staticmethod
    def _alpha(asked, numbers, choices):
        alpha, per = numbers.alpha, numbers.alpha_per
        shape = {"tensor": (1,), "row": (-1, 1), "column": (-1,), "batch": (-1, 1, 1)}[per]
        if per == "tensor":
            asked["alpha"] = choices.one_of(float(alpha[0]), alpha)
        elif len(alpha) > 1 and choices.one_of(True, False) and not PythonRunner._unclear(numbers, per):
            asked["alpha"] = alpha.reshape(shape)
        else:
            asked.update(alpha=alpha, alpha_per=per)

    @staticmethod
    def _unclear(numbers, per):
        """Where the shape of a vector says nothing of what it is indexed by."""
        return 0 in (numbers.m, numbers.n) or per == "column" and numbers.n == 1

    def _bias(self, asked, numbers, choices):
        import ml_dtypes
        dtype = np.dtype(getattr(ml_dtypes, PLAIN[numbers.bias_type], None) or PLAIN[numbers.bias_type])
        bits = np.ascontiguousarray(numbers.bias.astype("<u%d" % dtype.itemsize)).view(dtype)
        length = numbers.m if numbers.bias_per == "row" else numbers.n
        if numbers.bias_pitch:
            shape = (numbers.matrices, length)
            bits = np.lib.stride_tricks.as_strided(bits, shape, (numbers.bias_pitch * dtype.itemsize, dtype.itemsize))
            bits = bits[:, None, :] if numbers.bias_per == "column" else bits[:, :, None]
        elif numbers.bias_per == "row":
            bits = bits.reshape(-1, 1)
        asked["bias"] = bits
        if length < 2 or 0 in (numbers.m, numbers.n) or choices.one_of(True, False):
            asked["bias_per"] = numbers.bias_per

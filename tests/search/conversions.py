"""Quantizing, dequantizing, conversion of scale layouts, exact products, rotations and merged tensor scales, on
problems that are dictionaries (draw.py)."""
import ctypes
import math

import numpy as np

import data
import expected
import layouts
import matrices
import quantizer
import reals
from formats import FORMATS, NARROW, SCALES, UE4M3
from library import NONFINITE, QuantizeOptions, QuantizeStats, ScaleLayout, Scales, new
from matrices import Placed
from memory import Image
from products import Wrong, check_codes


def compare(got, want, what):
    """Bits, but any NaN for NaN."""
    same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    if not same.all():
        where = np.unravel_index(int(np.argmin(same)), same.shape)
        raise Wrong("%s: %d of %d differ, %s is %r, expected %r"
                    % (what, (~same).sum(), same.size, [int(i) for i in where],
                                                                     float(got[where]), float(want[where])))


class Runner:
    """What all kinds share: an image that goes to the device, the call, what came back, and stray bytes."""

    def __init__(self, target):
        self.target, self.lib, self.context = target, target.lib, target.context

    def image(self, problem):
        return Image(self.target.memory, problem["pattern"])

    def call(self, image, problem, name, *arguments):
        if not self.target.cuda:
            self.context.set_threads(problem.get("threads", 1))
        image.upload()
        self.lib.call(name, *arguments)
        if self.target.cuda:
            self.context.synchronize()
        image.download()
        stray = image.stray()
        if stray is not None:
            raise Wrong("byte %d of the image was written" % stray)


def check_matrix(placed, codes, scales, what):
    got_codes, got_scales, padding = placed.read()
    if padding:
        raise Wrong("%s: %s" % (what, padding))
    for name, got, want in (("scale", got_scales, scales), ("code", got_codes, codes)):
        if want is not None and not np.array_equal(got, want):
            where = np.unravel_index(int(np.argmax(got != want)), got.shape)
            raise Wrong("%s: %d of %d %ss differ, %s is 0x%x, expected 0x%x"
                        % (what, (got != want).sum(), got.size, name, [int(i) for i in where], got[where],
                           want[where]))


class Destination:
    """A matrix that is quantized into."""

    def __init__(self, image, lib, shape, to):
        self.to, self.format = to, FORMATS[to["format"]]
        self.placed = Placed(image, lib, to["format"], shape, to["storage"])
        self.placed.will_write()
        self.scale, self.divides = to.get("tensor_scale"), to.get("divides", False)
        self.scale_at = None
        if self.scale is not None or to.get("computed"):
            self.scale_at = self.placed.tensor_scale(self.scale if self.scale is not None else 777.0, self.divides)
            if to.get("computed"):
                image.will_write(np.arange(4) + self.scale_at)

    def tensor_scale(self, image, numbers, policy):
        """The tensor scale to expect; one that is computed is compared."""
        if not self.to.get("computed"):
            return self.scale
        want = quantizer.computed_tensor_scale(self.format, numbers, policy, self.divides)
        got = image.after[self.scale_at : self.scale_at + 4].view(np.float32)[0]
        if got != want:
            raise Wrong("computed tensor scale is %r, expected %r" % (float(got), float(want)))
        return float(want)

    def check(self, image, numbers, policy, options, what):
        scale = self.tensor_scale(image, numbers, policy)
        stochastic = options.get("rounding")
        if self.format.block:
            codes, scales = quantizer.quantize(self.format, numbers, policy, scale, self.divides)
            if policy.recipe in quantizer.BY_ERROR:
                return self._check_two(numbers, policy, scale, what)
        else:
            top, bottom = quantizer.effective(numbers, scale, self.divides)
            saturate = self.to["format"] in NARROW and not options.get("no_saturate")
            codes, scales = self.format.element.encode(top / bottom, saturate), None
        check_matrix(self.placed, None if stochastic else codes, scales, what)
        if stochastic:
            self._check_neighbours(numbers, scales, scale, what)

    def _check_two(self, numbers, policy, scale, what):
        codes, scales, padding = self.placed.read()
        if padding:
            raise Wrong("%s: %s" % (what, padding))
        by_error = quantizer.Policy(quantizer.BY_ERROR[policy.recipe], policy.nonfinite)
        first = quantizer.quantize(self.format, numbers, by_error, scale, self.divides)[1]
        best = quantizer.quantize(self.format, numbers, policy, scale, self.divides)[1]
        errors = [quantizer.squared_error(self.format, numbers, s, scale, self.divides) for s in (best, scales)]
        about = np.abs(errors[1] - errors[0]) <= 1e-12 * errors[0]         # sums may be rounded otherwise
        other = quantizer.other_scales(self.format, numbers, policy, scale, self.divides)
        finite = quantizer.blocks_of(self.format, np.isfinite(numbers), True).all(-1)
        fine = (scales == best) | ((scales == first) | (scales == other)) & (about | ~finite)
        if not fine.all():
            raise Wrong("%s: %s took a scale that is neither of the two, or the worse" % (what, policy.recipe))
        want = quantizer.block_codes(self.format, numbers, scales, scale, self.divides)
        nan = np.isnan(SCALES[self.format.scale][scales])
        want[np.repeat(nan, self.format.block, -1)[..., : numbers.shape[-1]]] = 0
        check_matrix(self.placed, want, None, what)

    def _check_neighbours(self, numbers, scales, scale, what):
        """Rounded stochastically, a number is one of the two codes beside it."""
        element, codes = self.format.element, self.placed.read()[0]
        if self.format.block:
            of_columns = np.repeat(scales, self.format.block, -1)[..., : numbers.shape[-1]]
            exact = quantizer.quotients(self.format, numbers, of_columns, scale, self.divides)
        else:
            exact = np.divide(*quantizer.effective(numbers, scale, self.divides))
        finite = np.isfinite(exact) & (np.abs(exact) <= element.max)
        got = element.decode(codes)
        if element.name == "int8":
            below, above = np.floor(exact * 64) / 64, np.ceil(exact * 64) / 64
        else:
            size = np.where(finite, np.abs(exact), 0)
            high = np.minimum(np.searchsorted(element.positive, size, side="left"), element.max_code)
            low = np.where(element.positive[high] == size, high, np.maximum(high - 1, 0))
            below, above = np.sign(exact) * element.positive[low], np.sign(exact) * element.positive[high]
        wrong = finite & (got != below) & (got != above)
        if wrong.any():
            where = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            raise Wrong("%s: stochastic rounding of %r gave %r" % (what, float(exact[where]), float(got[where])))


def policy_of(options):
    keys = ("recipe", "nonfinite", "block_rows", "clamp_low", "clamp_high", "smallest_scale")
    return quantizer.Policy(**{key: options[key] for key in keys if key in options})


class Quantize(Runner):
    """bsm_quantize, and bsm_quantize_both where the problem has columns_to."""

    def __call__(self, problem, note):
        shape = (problem["batch"], problem["rows"], problem["columns"])
        options, source = problem["options"], problem["source"]
        image = self.image(problem)
        numbers = self._numbers(problem, shape)
        placed = reals.Reals(image, self.lib, shape, source["storage"]).fill(numbers)
        rows = Destination(image, self.lib, shape, problem["rows_to"])
        settings = self._settings(options, problem["rows_to"])
        both = problem.get("columns_to")
        if both:
            columns = Destination(image, self.lib, (shape[0], shape[2], shape[1]), both)
            self.call(image, problem, "bsm_quantize_both", self.context.handle, placed.pointer(),
                      ctypes.byref(settings), rows.placed.pointer(), columns.placed.pointer())
        else:
            stats = new(QuantizeStats) if problem.get("stats") else None
            self.call(image, problem, "bsm_quantize", self.context.handle, placed.pointer(), ctypes.byref(settings),
                      rows.placed.pointer(), ctypes.byref(stats) if stats else None)
        policy = policy_of(options)
        rows.check(image, numbers, policy, options, "rows" if both else "destination")
        if both:
            columns.check(image, np.swapaxes(numbers, 1, 2), policy, options, "columns")
        elif stats:
            self._check_stats(stats, rows, numbers, policy, image)
        note("numbers", int(numbers.size))

    @staticmethod
    def _numbers(problem, shape):
        source = problem["source"]
        rng, element = data.generator(problem["data_seed"], 0), FORMATS[problem["rows_to"]["format"]].element
        if not source["storage"].get("repeat"):
            return reals.make(source["data"], shape, source["storage"]["type"], rng, element)
        one = reals.make(source["data"], (shape[0], 1, shape[2]), source["storage"]["type"], rng, element)
        return np.repeat(one, shape[1], 1)

    def _settings(self, options, to):
        settings = new(QuantizeOptions, recipe=self.lib.recipes[options.get("recipe", "default")],
                       rounding=int(options.get("rounding", 0)),
                       seed=options.get("seed", 0), nonfinite=NONFINITE[options.get("nonfinite", "propagate")],
                       tensor_scale=int(bool(to.get("computed"))), no_saturate=bool(options.get("no_saturate")))
        settings.block_rows = options.get("block_rows", 0)
        settings.clamp_low, settings.clamp_high = options.get("clamp_low", 0.0), options.get("clamp_high", 0.0)
        settings.smallest_scale = options.get("smallest_scale", 0)
        return settings

    @staticmethod
    def _check_stats(stats, to, numbers, policy, image):
        scale = to.tensor_scale(image, numbers, policy)
        codes, scales, _ = to.placed.read()
        finite = np.isfinite(numbers)
        decoded = quantizer.dequantized(to.format, codes, scales, scale, to.divides)
        both = finite & np.isfinite(decoded)
        signal, noise = (numbers[both] ** 2).sum(), ((numbers[both] - decoded[both]) ** 2).sum()
        want = {"elements": numbers.size, "blocks": scales.size if scales is not None else 0,
                "amax": np.abs(numbers[finite]).max(initial=0)}
        if scales is not None:
            nan = np.isnan(SCALES[to.format.scale][scales])
            blocks = quantizer.blocks_of(to.format, np.where(np.isfinite(numbers), numbers, 1) != 0, False).any(-1)
            kept = np.where(np.isnan(decoded), 1, decoded) != 0
            flushed = blocks & ~quantizer.blocks_of(to.format, kept, False).any(-1)
            want.update(nan_blocks=int(nan.sum()), flushed_blocks=int(flushed.sum()))
            histogram = np.bincount(scales.reshape(-1), minlength=256)
            if list(stats.scale_histogram) != histogram.tolist():
                raise Wrong("stats.scale_histogram differs")
        for name, value in want.items():
            if getattr(stats, name) != value:
                raise Wrong("stats.%s is %r, expected %r" % (name, getattr(stats, name), value))
        for name, value in (("signal", signal), ("noise", noise)):
            if not abs(getattr(stats, name) - value) <= 1e-9 * abs(value) and np.isfinite(value):
                raise Wrong("stats.%s is %r, expected about %r" % (name, getattr(stats, name), float(value)))


class Dequantize(Runner):
    def __call__(self, problem, note):
        source = problem["source"]
        shape = (problem["batch"], problem["rows"], problem["columns"])
        image = self.image(problem)
        content = data.make(source["format"], source["data"], shape, data.generator(problem["data_seed"], 0),
                            source.get("tensor_scale"), source.get("divides", False))
        placed = matrices.place(image, self.lib, content, source["storage"])
        to = reals.Reals(image, self.lib, shape, problem["to"])
        to.will_write()
        self.call(image, problem, "bsm_dequantize", self.context.handle, placed.pointer(), to.pointer())
        want = quantizer.dequantized(content.format, content.codes, content.scales, content.tensor_scale,
                                     content.divides)
        compare(to.read(), reals.rounded(want, problem["to"]["type"]), "destination")
        note("numbers", int(want.size))


class Convert(Runner):
    """bsm_scales_convert_on."""

    def __call__(self, problem, note):
        rows, columns = problem["rows"], problem["columns"]
        image = self.image(problem)
        codes = data.generator(problem["data_seed"], 0).integers(0, 256, (rows, columns)).astype(np.uint8)
        sides = [self._side(image, problem[key], rows, columns) for key in ("from", "to")]
        (at_from, offsets, source), (at_to, all_offsets, to) = sides
        image.memory.staging[(at_from + offsets[:rows, :columns]).reshape(-1)] = codes.reshape(-1)
        image.will_write(at_to + all_offsets)
        self.call(image, problem, "bsm_scales_convert_on", self.context.handle, ctypes.byref(source), ctypes.byref(to))
        got = image.after[(at_to + all_offsets).reshape(-1)].reshape(all_offsets.shape)
        want = np.zeros(all_offsets.shape, np.uint8)
        want[:rows, :columns] = codes
        if not np.array_equal(got, want):
            where = np.unravel_index(int(np.argmax(got != want)), got.shape)
            raise Wrong("scale %s is %d, expected %d" % ([int(i) for i in where], got[where], want[where]))
        note("scales", int(codes.size))

    def _side(self, image, layout, rows, columns):
        it, said = dict(layout), 0
        if it["kind"] == "linear" and it.get("gap"):
            said, it["pitch"] = layouts.linear_pitches(columns, it["gap"])
        offsets = layouts.offsets(it, rows, columns)
        size = layouts.size(it, rows, columns)
        at = image.place(size, 256, layout.get("misalign", 0))
        struct = Scales(image.address(at), rows, columns,
                        ScaleLayout(self.lib.layouts[it["kind"]], said, it.get("tile_rows", 0),
                                    it.get("tile_columns", 0)))
        return at, offsets, struct


class Exact(Runner):
    """bsm_matmul_exact: sampled elements by sums of any length."""

    def __call__(self, problem, note):
        image, seed, k = self.image(problem), problem["data_seed"], problem["k"]
        shapes = {"a": (1, problem["m"], k), "b": (1, problem["n"], k)}
        contents = {x: data.make(problem[x]["format"], problem[x]["data"], shapes[x], data.generator(seed, i))
                    for i, x in enumerate("ab")}
        placed = {x: matrices.place(image, self.lib, contents[x], problem[x]["storage"]) for x in "ab"}
        shape = (1, problem["m"], problem["n"])
        outputs = [reals.Reals(image, self.lib, shape, problem[key]) for key in ("sum", "magnitude")
                   if problem.get(key)]
        for output in outputs:
            output.will_write()
        pointers = [output.pointer() for output in outputs] + [None] * (2 - len(outputs))
        self.call(image, problem, "bsm_matmul_exact", self.context.handle, placed["a"].pointer(), placed["b"].pointer(),
                  *pointers)
        rng = data.generator(seed, 2)
        if 0 in shape:
            return
        for _ in range(40):
            i, j = int(rng.integers(shape[1])), int(rng.integers(shape[2]))
            terms = contents["a"].values[0, i] * contents["b"].values[0, j]
            for output, of in zip(outputs, (terms, np.abs(terms))):
                want = reals.rounded(np.array(exact_sum(of, output.real)), output.real)
                compare(output.read()[0, i, j], want,
                        "%s of row %d and %d" % ("sum" if of is terms else "magnitude", i, j))
        note("exact sums", 40 * len(outputs))


def exact_sum(terms, real):
    """The sum of doubles as a double; for a shorter type with its last bit set where it is not exact, so that it is
    rounded once."""
    if not np.isfinite(terms).all():
        return float(terms.sum())
    total = math.fsum(terms)
    rest = math.fsum(list(terms) + [-total])
    if rest == 0 or real == "fp64":
        return total + 0.0
    return float(expected.add_to_odd(np.array(total), np.array(math.copysign(abs(total) * 2.0 ** -60 or 5e-324, rest))))


class Hadamard(Runner):
    def __call__(self, problem, note):
        shape = (problem["batch"], problem["rows"], problem["runs"] * problem["size"])
        image, rng = self.image(problem), data.generator(problem["data_seed"], 0)
        source = problem["source"]
        numbers = reals.make("normal", shape, source["type"], rng, FORMATS["fp32"].element)
        size = problem["size"]
        signs = rng.choice([-1, 1], size).astype(np.int8) if problem.get("signs") else np.ones(size, np.int8)
        placed = reals.Reals(image, self.lib, shape, source).fill(numbers)
        to = reals.Reals(image, self.lib, shape, problem["to"])
        to.will_write()
        self.call(image, problem, "bsm_hadamard", self.context.handle, placed.pointer(), problem["size"],
                  signs.ctypes.data_as(ctypes.c_void_p) if problem.get("signs") else None,
                  ctypes.c_bool(bool(problem.get("inverse"))), to.pointer())
        runs = numbers.reshape(shape[:2] + (-1, problem["size"]))
        want = rotated(runs if problem.get("inverse") else runs * signs) / math.sqrt(1)
        want = want * (1 / math.sqrt(problem["size"]))
        want = want * signs if problem.get("inverse") else want
        compare(to.read(), reals.rounded(want.reshape(shape), problem["to"]["type"]), "destination")
        note("numbers", int(numbers.size))


def rotated(runs):
    """The transform of the last axis, neighbours first."""
    size, width = runs.shape[-1], 1
    while width < size:
        pairs = runs.reshape(runs.shape[:-1] + (-1, 2, width))
        sums, differences = pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]
        runs = np.stack([sums, differences], -2).reshape(runs.shape)
        width *= 2
    return runs


class Merge(Runner):
    """bsm_tensor_scales_merge; all in host memory."""

    def __call__(self, problem, note):
        image, rng = self.image(problem), data.generator(problem["data_seed"], 0)
        columns, divides = problem["columns"], problem["divides"]
        parts, contents = [], []
        for part in problem["parts"]:
            scales = rng.integers(0, 256, (1, part["rows"], -(-columns // 16))).astype(np.uint8)
            content = matrices.Content("nvfp4", np.zeros((1, part["rows"], columns), np.uint32), scales,
                                       part.get("tensor_scale"), divides)
            placed = matrices.place(image, self.lib, content, part["storage"])
            placed.struct.tensor_scale_use = int(divides)
            parts.append(placed)
            contents.append(content)
        total = sum(content.scales.size for content in contents)
        at, scale_at = image.place(total, 16, 3), image.place(4, 16)
        image.will_write(at + np.arange(total))
        image.will_write(scale_at + np.arange(4))
        pointers = (ctypes.c_void_p * len(parts))(*[ctypes.addressof(part.struct) for part in parts])
        self.call(image, problem, "bsm_tensor_scales_merge", pointers, ctypes.c_int64(len(parts)),
                  ctypes.c_void_p(image.address(at)), ctypes.c_void_p(image.address(scale_at)), None)
        own = [float(np.float32(1 if c.tensor_scale is None else c.tensor_scale)) for c in contents]
        merged = min(own) if divides else max(own)
        if image.after[scale_at : scale_at + 4].view(np.float32)[0] != merged:
            raise Wrong("the merged tensor scale is not %r" % merged)
        values = [UE4M3[c.scales.reshape(-1)] * (merged if divides else scale) / (scale if divides else merged)
                  for c, scale in zip(contents, own)]
        element = FORMATS["e4m3"].element
        values = np.concatenate(values) if values else np.zeros(0)
        got = image.after[at : at + total]
        known = ~np.isnan(values)
        if (got[~known] & 0x7f != 0x7f).any():
            raise Wrong("a NaN scale did not stay")
        check_codes(element, got[known], values[known], values[known], np.zeros(known.sum(), bool), True,
                    np.ones(known.sum(), bool), "scales")
        note("scales", total)


RUNNERS = {"quantize": Quantize, "both": Quantize, "dequantize": Dequantize, "scales": Convert, "exact": Exact,
           "hadamard": Hadamard, "merge": Merge}

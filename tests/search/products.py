"""Products: bsm_multiply, plans, panels and captured graphs on a problem that is a dictionary (draw.py)."""
import ctypes

import numpy as np

import data
import expected
import quantizer
import sparse
import units
from formats import ELEMENTS, FORMATS
from library import COMPUTES, EUNSUPPORTED, GATES, NONFINITE, PER, Matmul, Plan, Refused, new
from matrices import Content, Placed, place
from memory import Image

REAL_ELEMENTS = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16"}


class Wrong(Exception):
    """What a check found."""


def number(value):
    """A factor of a problem: JSON has no infinity and no NaN."""
    return float(value)


class Data:
    """All numbers of a problem.  Vectors are arrays that broadcast to (batch, M, N); None: absent."""

    def __init__(self, problem):
        self.m, self.n, self.k, self.groups = problem["m"], problem["n"], problem["k"], problem.get("groups")
        self.gate, self.activation = problem.get("gate", "none"), problem.get("activation", "none")
        self.a = self._operand(problem, "a", self.m, 0)
        self.b = self._operand(problem, "b", self.n, 1)
        a, b, seed = problem["a"], problem["b"], problem["data_seed"]
        self.along_k = problem.get("along_k")          # columns of each group, or None
        self.batch = len(self.along_k) if self.along_k else 1 if self.groups else max(a["batch"], b["batch"])
        self.matrices = len(self.groups) if self.groups else self.batch
        self.exact = a["data"] in data.EXACT_STYLES and b["data"] in data.EXACT_STYLES
        self._draw_alpha(problem.get("alpha"), data.generator(seed, 2))
        self.beta = None if problem.get("beta") is None else np.float32(number(problem["beta"]))
        self._draw_c(problem.get("c"), data.generator(seed, 3))
        self._draw_bias(problem.get("bias"), data.generator(seed, 4))
        d = problem["d"]
        self.d_format, self.d_scale, self.d_divides = d["format"], d.get("tensor_scale"), d.get("divides", False)
        self.recipe, self.nonfinite = d.get("recipe", "default"), d.get("nonfinite", "propagate")
        self.saturate = not d.get("no_saturate")

    def _operand(self, problem, key, rows, part):
        it, rng = problem[key], data.generator(problem["data_seed"], part)
        sparsity = it.get("storage", {}).get("sparsity")
        columns = self.k // 2 if sparsity else self.k
        content = data.make(it["format"], it["data"], (it["batch"], rows, columns), rng, it.get("tensor_scale"),
                            it.get("divides", False))
        # What is left out beside NaN and infinities differs then: a test in C has it (test_gpu_sparse).
        if key == "a" and problem.get("compute") == "fast" and problem["b"].get("storage", {}).get("sparsity"):
            with np.errstate(invalid="ignore"):
                content.codes[~np.isfinite(content.format.values(content.codes, None))] = 0
        return sparse.make(content, sparsity, rng) if sparsity else content

    def _draw_alpha(self, alpha, rng):
        self.alpha, self.alpha_per = None, "tensor"
        if alpha is not None:
            self.alpha_per = alpha["per"]
            length = {"tensor": 1, "row": self.m, "column": self.n, "batch": self.matrices}[alpha["per"]]
            factors = rng.choice([1.0, 2.0, -0.5, 0.25]) if self.exact else 1.0
            self.alpha = (number(alpha["value"]) * factors * 2.0 ** rng.integers(-2, 3, length)).astype(np.float32)

    def _draw_c(self, c, rng):
        self.c = None
        if c is not None:
            shape = (c["batch"], self.m, self.n)
            style = "special" if self.beta == 0 else "integers" if self.exact else "normal"
            self.c = data.make(c["format"], style, shape, rng)

    def _draw_bias(self, bias, rng):
        self.bias, self.bias_per, self.bias_pitch, self.bias_type = None, None, 0, "fp32"
        if bias is not None:
            self.bias_per, self.bias_type = bias["per"], bias["type"]
            length = self.m if bias["per"] == "row" else self.n
            self.bias_pitch = length + bias["gap"] if "gap" in bias else 0
            total = (self.matrices - 1) * self.bias_pitch + length
            numbers = rng.integers(-4, 5, total) if self.exact else rng.standard_normal(total)
            self.bias = ELEMENTS[bias["type"]].encode(numbers, True)

    # What each element of D has as its own ----------------------------------------------------------------------------

    def matrix_of_rows(self):
        """The group of each row."""
        return np.repeat(np.arange(len(self.groups)), self.groups)

    def factor(self):
        """f, as an fp32 array that broadcasts to (batch, M, N), or None for 1."""
        scales = [(c.tensor_scale, c.divides) for c in (self.a, self.b) if c.tensor_scale is not None]
        if self.alpha is None and not scales:
            return None
        f = np.float64(1.0) if self.alpha is None else self.alpha.astype(np.float64)
        with np.errstate(all="ignore"):
            for scale, divides in scales:
                f = f if divides else f * np.float64(np.float32(scale))
            f = expected.f32(f / np.prod([np.float64(np.float32(scale)) for scale, divides in scales if divides]))
        if self.alpha is None or self.alpha_per == "tensor":
            return f.reshape(-1)[0]
        if self.alpha_per == "row":
            return f[None, :, None]
        if self.alpha_per == "column":
            return f[None, None, :]
        return f[self.matrix_of_rows()][None, :, None] if self.groups else f[:, None, None]

    def bias_values(self):
        numbers = ELEMENTS[self.bias_type].decode(self.bias)
        if self.bias_per == "row" and self.groups:
            return numbers[None, :, None]
        length = self.m if self.bias_per == "row" else self.n
        each = np.lib.stride_tricks.as_strided(numbers, (self.matrices, length),
                                               (numbers.strides[0] * self.bias_pitch, numbers.strides[0]))
        if self.bias_per == "row":
            return each[:, :, None]
        return each[self.matrix_of_rows()][None] if self.groups else each[:, None, :]

    def rest(self):
        """beta * C + bias in fp32, or None where both are absent."""
        c = self.c.values if self.beta is not None and self.beta != 0 else None
        if c is None:
            return None if self.bias is None else expected.f32(self.bias_values())
        if self.bias is None:
            return expected.f32(np.float64(self.beta) * c)
        return expected.fma32(self.beta, c, self.bias_values())

    # Parts ------------------------------------------------------------------------------------------------------------

    def stretch_of(self, batch):
        """The first column of K of a matrix of D, and the one behind its last."""
        if not self.along_k:
            return 0, self.k
        first = sum(self.along_k[:batch])
        return first, first + self.along_k[batch]

    def part(self, batch, rows, columns):
        """The same problem of some rows and columns of one matrix of the batch (or one group, whose rows they then
        are)."""
        it = object.__new__(Data)
        it.__dict__.update(self.__dict__)
        group = batch
        at = 0 if self.groups else batch
        pick = lambda c: slice(at, at + 1) if c.codes.shape[0] > 1 else slice(0, 1)
        it.a = self.a.part(pick(self.a), rows)
        it.b = self.b.part(slice(group, group + 1) if self.groups else pick(self.b), columns)
        it.m, it.n = it.a.codes.shape[1], it.b.codes.shape[1]
        if self.along_k:
            first, end = self.stretch_of(batch)
            it.a, it.b, it.k, it.along_k = it.a.stretch(first, end), it.b.stretch(first, end), end - first, None
        it.groups, it.batch, it.matrices = None, 1, 1
        if self.alpha is not None:
            it.alpha = {"row": lambda: self.alpha[rows], "column": lambda: self.alpha[columns],
                        "tensor": lambda: self.alpha, "batch": lambda: self.alpha[group : group + 1]}[self.alpha_per]()
        if self.c is not None:
            it.c = Content(self.c.format.name, self.c.codes[pick(self.c)][:, rows][:, :, columns])
        if self.bias is not None:
            start = 0 if self.groups and self.bias_per == "row" else group * self.bias_pitch
            it.bias = self.bias[start:][rows if self.bias_per == "row" else columns]
            it.bias_pitch = 0
        return it


class Call:
    """One product in the image: its operands, D and bsm_matmul."""

    def __init__(self, image, lib, numbers, storages, is_d=False, amax=False, shared=None):
        self.image, self.lib, self.numbers = image, lib, numbers
        self.a = shared.a if shared else place(image, lib, numbers.a, storages["a"])
        self.b = shared.b if shared else place(image, lib, numbers.b, storages["b"])
        columns = numbers.n // 2 if numbers.gate != "none" else numbers.n
        self.d = Placed(image, lib, numbers.d_format, (numbers.batch, numbers.m, columns), storages["d"])
        self.d.will_write()
        if numbers.d_scale is not None:
            self.d.tensor_scale(numbers.d_scale, numbers.d_divides)
        self.product = new(Matmul, a=self.a.pointer(), b=self.b.pointer(), d=self.d.pointer(),
                           activation=lib.activations[numbers.activation],
                           gate=GATES[numbers.gate], d_recipe=lib.recipes[numbers.recipe],
                           d_nonfinite=NONFINITE[numbers.nonfinite], d_no_saturate=not numbers.saturate)
        self._place_vectors()
        self._place_c(storages.get("c"), is_d)
        self.amax = None
        if amax:
            self.amax = image.place(4, 16)
            image.will_write(np.arange(4) + self.amax)
            self.product.amax = image.address(self.amax)

    def _place_vectors(self):
        n, image, product = self.numbers, self.image, self.product
        put = lambda array: image.address(image.put(array, 16))
        if n.alpha is not None:
            product.alpha, product.alpha_per = put(n.alpha), PER[n.alpha_per]
        if n.beta is not None:
            product.beta = put(np.array([n.beta], np.float32))
        if n.bias is not None:
            size = ELEMENTS[n.bias_type].bits // 8
            product.bias = put(n.bias.astype("<u%d" % size))
            product.bias_type, product.bias_per = self.lib.reals[n.bias_type], PER[n.bias_per]
            product.bias_batch_pitch = n.bias_pitch
        if n.groups:
            product.groups, product.group_rows = len(n.groups), put(np.array(n.groups, np.int64))
        if n.along_k:
            product.groups, product.group_columns = len(n.along_k), put(np.array(n.along_k, np.int64))

    def _place_c(self, storage, is_d):
        if self.numbers.c is None:
            return
        if is_d:
            content = self.numbers.c
            self.d.fill(Content(content.format.name, content.codes))
            self.c = self.d
        else:
            self.c = place(self.image, self.lib, self.numbers.c, storage or {})
        if is_d:
            matrix = type(self.d.struct).from_buffer_copy(self.d.struct)
            matrix.tensor_scale = None
            self._c_struct = matrix
            self.product.c = ctypes.pointer(matrix)
        else:
            self.product.c = self.c.pointer()

    def result(self):
        return self.d.read()


# Expected -------------------------------------------------------------------------------------------------------------

def expected_sums(numbers, problem, described, note):
    """The interval of S, and of the orders of CPUs the very bits of some elements."""
    kernel, order = kernel_of(described), units.order_of(described)
    bounds = "gpu" if kernel.startswith(("cuda", "hip")) else order
    fast = problem.get("compute") == "fast" and kernel.startswith("cuda_wgmma_fp8_requantized")
    if fast:
        return expected.fast_sums(numbers.a, numbers.b, numbers.groups, ELEMENTS["e4m3"])
    any_order = bounds == "gpu" and problem.get("order") == "any"
    scales_take = kernel.startswith(("cuda_tcgen05_mxf4", "cuda_mma_sync_mxf4"))
    rows = kernel.startswith("cuda_tcgen05_f16")
    fp16 = rows and numbers.a.format.name == numbers.b.format.name == "fp16"
    permitted = (any_order, scales_take, fp16)
    if rows and numbers.a.format.name == numbers.b.format.name == "fp32":
        note("products of tf32", 1)
        return expected.sums(expected.tf32(numbers.a), expected.tf32(numbers.b), numbers.groups, bounds, any_order,
                             tf32=True)
    if numbers.along_k:
        stretches = [numbers.stretch_of(matrix) for matrix in range(numbers.batch)]
        found = expected.stacked([expected.sums(numbers.a.stretch(*ends), numbers.b.stretch(*ends), None, bounds,
                                                *permitted) for ends in stretches])
    else:
        found = expected.sums(numbers.a, numbers.b, numbers.groups, bounds, *permitted)
    if order != "gpu":
        _pin_some(found, numbers, order, data.generator(problem["data_seed"], 5), note)
    return found


PINNED_TERMS = 1 << 14


def _in_order(numbers, order, of_a, of_b, first, end, note):
    """S of some rows (batch, rows) of A and of B; fallback rows of units have the portable order."""
    a = numbers.a.values[of_a[0]][of_a[1]][:, first:end]
    b = numbers.b.values[of_b[0]][of_b[1]][:, first:end]
    portable = lambda: expected.in_order(a, b, expected.runs_of(numbers.a.format, numbers.b.format))
    if order not in units.UNITS:
        return portable()
    rows = units.Rows(numbers.a, *of_a, first, end, numbers.b.format)
    columns = units.Rows(numbers.b, *of_b, first, end, numbers.a.format)
    fallback = rows.fallback[:, None] | columns.fallback[None, :]
    sums = units.in_order(order, rows, columns)
    note("sums by units", int((~fallback).sum()))
    note("sums of fallback rows", int(fallback.sum()))
    moved = (rows.exponents[:, None] != 0) | (columns.exponents[None, :] != 0)
    note("sums of rows with exponents of their own", int((moved & ~fallback).sum()))
    return np.where(fallback, portable(), sums) if fallback.any() else sums


def _pin_some(found, numbers, order, rng, note):
    """A few rows and columns in the order that the plan says."""
    if 0 in found.lo.shape:
        return
    batch, m, n = found.lo.shape
    which = int(rng.integers(batch))
    rows = np.sort(rng.permutation(m)[:4])
    columns = np.sort(rng.permutation(n)[: max(1, min(8, PINNED_TERMS // max(1, numbers.k * len(rows))))])
    matrix_of = numbers.matrix_of_rows()[rows] if numbers.groups else np.full(len(rows), which)
    first, end = numbers.stretch_of(which)
    for row, matrix in zip(rows, matrix_of):
        of_a = 0 if numbers.groups or numbers.a.codes.shape[0] == 1 else which, slice(row, row + 1)
        of_b = matrix if numbers.b.codes.shape[0] > 1 else 0, columns
        found.pin((which, row, columns), _in_order(numbers, order, of_a, of_b, first, end, note)[0])


def expected_t(numbers, found):
    t = expected.before_activation(found, numbers.factor(), numbers.rest())
    return expected.activated(t, numbers.activation, numbers.gate)


# Comparing ------------------------------------------------------------------------------------------------------------

def _show(where, got, lo, hi):
    return "D%s is %r, expected %s" % (list(int(i) for i in where), got,
                                       repr(lo) if lo == hi or lo != lo else "%r to %r" % (lo, hi))


def _worst(bad, got, lo, hi):
    with np.errstate(all="ignore"):
        far = np.where(bad, np.maximum(np.maximum(lo - got, got - hi), 0) / (np.abs(lo) + np.abs(hi) + 1e-300), -1)
        far = np.where(bad & ~np.isfinite(far), np.inf, far)
    where = np.unravel_index(int(np.argmax(far)), bad.shape)
    return "%d of %d elements; the worst: %s" % (bad.sum(), bad.size,
                                                 _show(where, float(got[where]), float(lo[where]), float(hi[where])))


def check_codes(element, codes, lo, hi, free, saturate, single, what):
    """Codes must lie between those of lo and hi; where one number is left, they are its code."""
    with np.errstate(all="ignore"):
        code_lo, code_hi = element.encode(lo, saturate), element.encode(hi, saturate)
        got, least, most = element.decode(codes), element.decode(code_lo), element.decode(code_hi)
        overflow = np.isnan(least) & ~np.isnan(lo) | np.isnan(most) & ~np.isnan(hi)
        inside = (least <= got) & (got <= most)
    fine = free | np.where(single, codes == code_lo, inside | overflow & ~single)
    fine |= np.isnan(lo) & (codes == element.nan_code)
    if not fine.all():
        raise Wrong("%s: %s" % (what, _worst(~fine, got, least, most)))


def check_d(numbers, t, codes, scales):
    format_ = FORMATS[numbers.d_format]
    single = t.single
    lo, hi = t.lo.astype(np.float64), t.hi.astype(np.float64)
    if not format_.block:
        with np.errstate(all="ignore"):
            ends = [x / y for x, y in (quantizer.effective(end, numbers.d_scale, numbers.d_divides)
                                       for end in (lo, hi))]
        saturate = numbers.saturate and numbers.d_format in ("e4m3", "e5m2")
        return check_codes(format_.element, codes, *ends, t.free, saturate, single, "D")
    return _check_blocks(format_, numbers, lo, hi, t.free, single, codes, scales)


def _check_blocks(format_, numbers, lo, hi, free, single, codes, scales):
    blocks = lambda x, fill: quantizer.blocks_of(format_, x, fill)
    finite = np.isfinite(lo) & np.isfinite(hi)
    bad = ~np.isfinite(lo) & (single | np.isnan(lo))   # surely not finite
    unsure = free | ~finite & ~bad
    skip = blocks(unsure, False).any(-1)
    spans = (lo <= 0) & (hi >= 0)
    least = np.where(finite & ~spans, np.minimum(np.abs(lo), np.abs(hi)), 0)
    most = np.where(finite, np.maximum(np.abs(lo), np.abs(hi)), 0)
    code = lambda x: quantizer.scale_codes(format_, blocks(x, 0.0).max(-1), numbers.recipe, numbers.d_scale,
                                           numbers.d_divides)
    scale_lo, scale_hi = code(least), code(most)
    if numbers.nonfinite == "propagate":
        has_bad = blocks(bad, False).any(-1)
        nan_code = quantizer.SCALE_NAN[format_.scale]
        scale_lo, scale_hi = np.where(has_bad, nan_code, scale_lo), np.where(has_bad, nan_code, scale_hi)
    wrong = ~skip & ~((scale_lo <= scales) & (scales <= scale_hi))
    if wrong.any():
        where = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        raise Wrong("scale %s of D is %d, expected %d to %d"
                    % ([int(i) for i in where], scales[where], scale_lo[where], scale_hi[where]))
    spread = lambda x: np.repeat(x, format_.block, -1)[..., : codes.shape[-1]]
    under = lambda x: quantizer.quotients(format_, x, spread(scales), numbers.d_scale, numbers.d_divides)
    skip = spread(skip)
    ends = [under(np.where(skip, 0, end)) for end in (lo, hi)]
    if numbers.nonfinite == "propagate":
        zero = spread(has_bad)
        ends = [np.where(zero, 0.0, end) for end in ends]
        single = single | zero
    check_codes(format_.element, codes, *ends, skip, True, single & ~skip, "D")


def check_amax(t, got):
    if t.lo.size == 0:
        if got != 0 or np.signbit(got):
            raise Wrong("amax of an empty D is %r" % float(got))
        return
    if (np.isnan(t.lo) & np.isnan(t.hi) & ~t.free).any():
        if not np.isnan(got):
            raise Wrong("amax is %r, but some t is NaN" % float(got))
        return
    if t.free.any():                      # of these, perhaps one that overflows and is NaN behind its activation
        return
    spans = (t.lo <= 0) & (t.hi >= 0)
    least = np.where(spans, 0, np.minimum(np.abs(t.lo), np.abs(t.hi))).max()
    most = np.maximum(np.abs(t.lo), np.abs(t.hi)).max()
    if not least <= got <= most:
        raise Wrong("amax is %r, expected %r to %r" % (float(got), float(least), float(most)))


# Running --------------------------------------------------------------------------------------------------------------

def kernel_of(description):
    return description.split("kernel ", 1)[1].split(",", 1)[0] if "kernel " in description else "?"


class Runner:
    """Runs product problems on one target."""

    def __init__(self, target):
        self.target, self.lib, self.context = target, target.lib, target.context

    def __call__(self, problem, note):
        """Raises Wrong, or Refused.  note(key, value) counts what ran."""
        numbers = Data(problem)
        image = Image(self.target.memory, problem["pattern"])
        storages = {x: (problem.get(x) or {}).get("storage", {}) for x in ("a", "b", "c", "d")}
        is_d = bool((problem.get("c") or {}).get("is_d"))
        main = Call(image, self.lib, numbers, storages, is_d, problem.get("amax", False))
        relation = self._relation(image, problem, numbers, main, storages)
        # The same product elsewhere, by the same plan.
        planned = problem["via"] in ("plan", "panels") and not is_d and not problem.get("relation")
        twin = Call(image, self.lib, numbers, storages, False, problem.get("amax", False)) if planned else None
        for call in (main,) + ((relation[0],) if relation else ()) + ((twin,) if twin else ()):
            call.product.compute = COMPUTES[problem.get("compute", "exact")]
            call.product.order = self.lib.orders[problem.get("order", "k")]
        if relation and numbers.along_k:               # BSM_COMPUTE_FAST is not for them
            relation[0].product.compute = 0
        image.upload()
        self._choose_kernel(problem)
        if not self.target.cuda:
            self.context.set_threads(problem.get("threads", 1))
        try:
            described = self._run(problem, main, twin, note)
            if relation and numbers.along_k and kernel_of(described).endswith("_simt"):
                self.context.force(self.lib.kernels[kernel_of(described)])      # matmul.h: its order is the CPU's
            if kernel_of(described).startswith("cuda_tcgen05_sparse"):
                relation = None                        # which is dense, and has sums of its own
            if relation and not self._run_relation(problem, relation[0].product, note):
                relation = None
        finally:
            self.context.force(-1)
        image.download()
        self._check(problem, numbers, main, relation, described, note)
        if twin:
            self._compare_twin(main, twin, described, note)

    @staticmethod
    def _compare_twin(main, twin, described, note):
        note("plans with other pointers", 1)
        for mine, other, what in zip(main.result(), twin.result(), ("codes", "scales", "padding")):
            if (mine is None) != (other is None) or mine is not None and not np.array_equal(mine, other):
                raise Wrong("the plan with other pointers gives other %s of D\n    ran: %s" % (what, described))
        if main.amax is not None:
            mine, other = (call.image.after[call.amax : call.amax + 4].tobytes() for call in (main, twin))
            if mine != other:
                raise Wrong("the plan with other pointers gives another amax\n    ran: %s" % described)

    def _choose_kernel(self, problem):
        if "kernel" not in problem:
            return
        serving = self.context.serving(problem["a"]["format"], problem["b"]["format"])
        if serving:
            self.context.force(self.lib.kernels[serving[problem["kernel"] % len(serving)]])

    def _run(self, problem, main, twin, note):
        """Runs the product as it says; gives what bsm_plan_describe said."""
        product, once = main.product, 1 if (problem.get("c") or {}).get("is_d") else problem.get("repeats", 1)
        try:
            plan = Plan(self.context, product)
        except Refused as refused:
            if self.context.forced < 0 or refused.status != EUNSUPPORTED:
                raise
            note("refused: the forced kernel does not serve the problem", 1)
            self.context.force(-1)
            plan = Plan(self.context, product)
        with plan:
            described = plan.describe()
            self._check_forced(described)
            self._check_order(problem, described)
            note("order " + units.order_of(described), 1)
            note("operands MN-major", sum(problem[x]["storage"].get("major") == "mn" for x in "ab"))
            note("operands MN-major, by the descriptor", described.count("MN-major, by the descriptor"))
            note("operands sparse", sum("sparsity" in problem[x].get("storage", {}) for x in "ab"))
            note("forced and run" if self.context.forced >= 0 else "chosen", 1)
            note("kernel " + kernel_of(described), 1)
            if problem["via"] == "multiply":
                for _ in range(once):
                    self.lib.call("bsm_multiply", self.context.handle, ctypes.byref(product))
            else:
                self._run_plan(problem["via"], plan, product, twin, once, note)
        return described

    def _check_order(self, problem, described):
        """The order is that which the machine has for the pair, unless a kernel was forced."""
        order, asked = units.order_of(described), problem.get("order")
        if asked == "portable" and order != "portable":
            raise Wrong("order portable was asked for: %s" % described)
        if self.target.cuda or asked == "portable" or self.context.forced >= 0:
            return
        a, b = (FORMATS[problem[x]["format"]] for x in ("a", "b"))
        wanted = units.order_here(self.context.features(), self.lib.kernels, a, b)
        if order != wanted:
            raise Wrong("the machine's order for the pair is %s: %s" % (wanted, described))

    def _check_forced(self, described):
        """Forced, that kernel runs or none: matmul.h."""
        name = [name for name, number in self.lib.kernels.items() if number == self.context.forced]
        if name and kernel_of(described) != name[0]:
            raise Wrong("%s was forced, and another kernel was planned: %s" % (name[0], described))

    def _run_relation(self, problem, product, note):
        """Whether it ran; under a forced kernel, by that kernel, for kernels on a GPU may have orders of their own.
        In the order split_k with prepacked weights, too."""
        if self.context.forced >= 0:
            try:
                with Plan(self.context, product) as plan:
                    self._check_forced(plan.describe())
            except Refused as refused:
                if refused.status != EUNSUPPORTED:
                    raise
                note("refused: the forced kernel does not serve the part", 1)
                return False
        if problem.get("order") == "split_k" and problem["via"] == "panels":
            with Plan(self.context, product) as plan:
                note("products in two parts of K", int("_split_k" in plan.describe()))
                self._run_plan("panels", plan, product, None, 1, note)
            return True
        self.lib.call("bsm_multiply", self.context.handle, ctypes.byref(product))
        return True

    def _run_plan(self, via, plan, product, twin, once, note):
        memory, size, panels = self.target.memory, plan.workspace_bytes(), 0
        if via == "panels":
            panels = plan.panels_bytes()
            note("panels" if panels else "no panels", 1)
        workspace = memory.scratch(size + panels + 256)
        if panels:
            at = workspace + -(-size // 256) * 256
            plan.pack(product, at, panels)
            product.b_panels = at
            if twin:
                twin.product.b_panels = at
        if via == "graph":
            stream = memory.stream()
            product.stream = stream
            memory.launch_captured(stream, lambda: plan.run(product, workspace, size), once)
            product.stream = None
            memory.release(stream)
            note("graphs", 1)
            return
        for _ in range(once):
            plan.run(product, workspace, size)
        if twin:
            plan.run(twin.product, workspace, size)

    # Relations: the same numbers asked for otherwise have the same bits -----------------------------------------------

    def _relation(self, image, problem, numbers, main, storages):
        """(call, batch, rows, columns) of a second product whose D must be a part of the first, or None."""
        kind = problem.get("relation")
        if kind is None or 0 in (numbers.m, numbers.n) or problem.get("order") == "any":
            return None
        of_b = problem["b"]["storage"]
        if problem.get("order") == "split_k" and (kind == "storage" or of_b.get("major") == "mn"
                                                  or of_b.get("packing", "default") not in ("default", "low_first")):
            return None                                # others are not divided, and the part is stored plainly
        rng = data.generator(problem["data_seed"], 6)
        batch, rows, columns = int(rng.integers(numbers.matrices)), slice(0, numbers.m), slice(0, numbers.n)
        if numbers.groups:
            start = sum(numbers.groups[:batch])
            rows = slice(start, start + numbers.groups[batch])
        if rows.start == rows.stop:
            return None
        if kind == "row":
            row = int(rng.integers(rows.start, rows.stop))
            rows = slice(row, row + 1)
        elif kind == "rows":
            rows = slice(*sorted((int(rng.integers(rows.start, rows.stop)), rows.stop)))
        elif kind == "columns" and numbers.gate == "none" and not FORMATS[numbers.d_format].block:
            columns = slice(int(rng.integers(numbers.n)), numbers.n)
        elif kind == "storage":
            storages = self._other_storages(numbers, rng)
        plain = {x: ({} if kind != "storage" else storages[x]) for x in storages}
        call = Call(image, self.lib, numbers.part(batch, rows, columns), plain)
        return call, batch, rows, columns

    @staticmethod
    def _other_storages(numbers, rng):
        import random
        import draw
        drawn = random.Random(int(rng.integers(1 << 30)))
        names = {"a": numbers.a.format.name, "b": numbers.b.format.name, "d": numbers.d_format}
        if numbers.c is not None:
            names["c"] = numbers.c.format.name
        return {key: draw.storage(drawn, name, 1, True) for key, name in names.items()}

    def _check(self, problem, numbers, main, relation, described, note):
        codes, scales, padding = main.result()
        try:
            self._compare(problem, numbers, main, relation, described, codes, scales, padding, note)
        except Wrong as wrong:
            raise Wrong("%s\n    ran: %s" % (wrong, described))

    def _compare(self, problem, numbers, main, relation, described, codes, scales, padding, note):
        t = expected_t(numbers, expected_sums(numbers, problem, described, note))
        note("elements", t.lo.size)
        note("groups along K", len(numbers.along_k or []))
        note("elements of which every bit is known", int(t.single.sum()))
        note("elements without a bound", int(t.free.sum()))
        check_d(numbers, t, codes, scales)
        if main.amax is not None:
            check_amax(t, main.image.after[main.amax : main.amax + 4].view(np.float32)[0])
        if padding:
            raise Wrong("D: " + padding)
        if relation:
            self._compare_relation(problem, numbers, relation, codes, scales, note)
        stray = main.image.stray()
        if stray is not None:
            raise Wrong("byte %d of the image was written, which lies %s" % (stray, where_is(main, stray)))

    @staticmethod
    def _compare_relation(problem, numbers, relation, codes, scales, note):
        call, batch, rows, columns = relation
        at = 0 if numbers.groups else batch
        other_codes, other_scales, padding = call.result()
        if padding:
            raise Wrong("D of the %s alone: %s" % (problem["relation"], padding))
        mine = codes[at, rows] if numbers.gate != "none" else codes[at, rows, columns]
        note("relation " + problem["relation"], 1)
        if not np.array_equal(mine, other_codes[0]):
            differ = mine != other_codes[0]
            where = np.unravel_index(int(np.argmax(differ)), differ.shape)
            raise Wrong("relation %s: %d of %d codes of D differ, code %s (from row %d) is 0x%x, and 0x%x "
                        "in a product of its own" % (
                problem["relation"], differ.sum(), differ.size, [int(i) for i in where], rows.start, mine[where],
                other_codes[0][where]))
        if scales is not None and not np.array_equal(scales[at, rows], other_scales[0]):
            raise Wrong("relation %s: scales of D differ" % problem["relation"])


def where_is(call, offset):
    """For people: which buffer a byte of the image is nearest to."""
    near = [("D's data", call.d.data, call.d.data_size), ("A's data", call.a.data, call.a.data_size),
            ("B's data", call.b.data, call.b.data_size)]
    if call.d.format.block:
        near.append(("D's scales", call.d.scales, 0))
    name, start, size = min(near, key=lambda x: min(abs(offset - x[1]), abs(offset - x[1] - x[2])))
    return "%d bytes behind the beginning of %s (%d bytes)" % (offset - start, name, size)

"""What is tried: problems as dictionaries that JSON can hold, drawn from a seed and a number.

Three of four shapes and storages are ordinary: sizes that models have, tight rows, linear and 128x4 scales.  The others
are corners."""
import random

import layouts
import sparse
from data import STYLES
from formats import FORMATS, NARROW, SCALED, packings_of

ORDINARY_M = [1, 1, 1, 1, 2, 3, 4, 5, 8, 16, 16, 32, 48, 64, 64, 96, 128, 128, 192, 256]
ORDINARY_N = [16, 32, 32, 48, 64, 64, 64, 96, 128, 128, 128, 160, 192, 256, 256, 384]
ORDINARY_K = [32, 32, 64, 64, 64, 96, 128, 128, 128, 192, 256, 256, 320, 512]
LARGE = 2880
HIP = ("hip", "gfxsim")
HOST = ("cpu", "python")                              # targets on the host: python is the CPU through the package
RECIPES = {"e8m0": ["default", "default", "floor", "rceil", "ceil", "even"], "ue4m3": ["default", "nearest"]}


class Limits:
    """What a target bears: the most products of two numbers in most problems, and in some."""

    def __init__(self, target):
        self.cuda = target not in HOST
        self.simulated = target.startswith(("cudasim", "gfxsim"))
        self.terms, self.most_terms = (1 << 18, 1 << 22) if self.simulated else (1 << 21, 1 << 23)
        self.large = 0.005 if self.simulated else 0.02
        self.tf32 = 0.04 if target.startswith("cudasim:10") else 0.002      # the others refuse it


def of_number(seed, number, target, only=None):
    """Problem `number` of a seed, as a dictionary."""
    rng = random.Random(seed * 1000003 + number)
    kinds = {"product": 1} if target == "python" else KINDS_CPU if target in HOST else KINDS_CUDA
    if only:
        kinds = {only: 1}
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    problem = DRAWERS[kind](rng, Limits(target))
    problem.update(kind=kind, data_seed=rng.randrange(1 << 30), pattern=rng.choice([0xff, 0xff, 0x7f, 0, 0x55]))
    return problem


def _chance(rng, probability):
    return rng.random() < probability


def _shape(rng, limits):
    if _chance(rng, 0.75):
        m, n, k = rng.choice(ORDINARY_M), rng.choice(ORDINARY_N), rng.choice(ORDINARY_K)
        if _chance(rng, limits.large):
            m, (n, k) = rng.choice([1, 2, 4, 8]), rng.choice([(LARGE, 64), (64, LARGE), (128, LARGE)])
    else:
        m, n, k = (0 if _chance(rng, 0.02) else rng.randrange(1, top) for top in (150, 150, 300))
        if _chance(rng, 0.3):
            m = rng.randrange(1, 6)
        if _chance(rng, 0.3):                          # beside what kernels take at a time
            k = rng.choice([32, 64, 128, 256, 512, 1024]) + rng.choice([-1, 1, 16])
    most = limits.most_terms if _chance(rng, 0.08) else limits.terms
    while m * n * k > most:
        if m > 16:
            m = (m + 1) // 2
        elif k > 64:
            k = k // 2
        else:
            n = n // 2
    return m, n, k


def _grouped_shape(rng, limits):
    """Enough rows that groups begin within tiles and blocks of scales."""
    m, n, k = rng.randrange(64, 220), rng.choice([32, 64, 128, 128]), rng.choice([32, 64, 128, 128, 256])
    while m * n * k > limits.most_terms:
        n //= 2
    return m, n, k


def _format(rng, limits):
    names = list(SCALED) * 4 + [name for name in FORMATS if name not in SCALED]
    if limits.cuda and not _chance(rng, 0.01):
        names.remove("fp32")
    return rng.choice(names)


def _pair(rng, limits):
    a = _format(rng, limits)
    if _chance(rng, 0.4):
        return a, a
    if _chance(rng, 0.4):
        return rng.choice(["bf16", "bf16", "fp16", "mxfp8_e4m3", "mxfp8_e4m3"]), rng.choice(SCALED)
    return a, _format(rng, limits)


def layout(rng, corner):
    if not corner:
        return {"kind": rng.choice(["linear", "128x4"])}
    it = {"kind": rng.choice(layouts.KINDS)}
    if it["kind"] == "tiles":
        it.update(tile_rows=rng.randrange(1, 40), tile_columns=rng.randrange(1, 10))
    if it["kind"] == "linear" and _chance(rng, 0.7):
        it["gap"] = rng.randrange(1, 40)
    return it


def storage(rng, format_name, batch, corner):
    it = {"packing": "default"}
    if corner:
        it["packing"] = rng.choice(packings_of(format_name))
        if _chance(rng, 0.5):
            it["pitch"] = rng.choice([1, 2, 3, 8, 16, rng.randrange(1, 70)])
        it["misalign"] = rng.choice([0, 0, 1, 2, 4, 8, 16, rng.randrange(64)])
        it["scale_misalign"] = rng.choice([0, 0, 0, 1, 4, rng.randrange(64)])
    elif FORMATS[format_name].element.bits == 6 and _chance(rng, 0.5):
        it["packing"] = "bytes"
    if FORMATS[format_name].block and it["packing"] != "gguf":
        it["layout"] = layout(rng, corner if _chance(rng, 0.5) else _chance(rng, 0.25))
    if batch > 1 and _chance(rng, 0.4):
        it["interleave"] = _chance(rng, 0.3)
        if not it["interleave"]:
            it["batch_gap"] = rng.randrange(1, 80)
        if "layout" in it:
            it["scale_batch_gap"] = rng.choice([0, 1, 16, rng.randrange(1, 100)])
    it["say_pitch"] = _chance(rng, 0.3)
    return it


def tensor_scale(rng):
    if _chance(rng, 0.7):
        return None
    return rng.choice([0.5, 2.0, 0.0625, 0.1, 3.0, 1e-3, 2.0 ** rng.randrange(-40, 40)])


def _factor(rng):
    ordinary = _chance(rng, 0.9)
    return rng.choice([1.0, -1.0, 0.5, 2.0, 0.75, 0.1, -3.1, 1e-3] if ordinary else
                      [0.0, -0.0, 1e30, 1e-40, "inf", "nan"])


def _operand(rng, format_name, batch, style):
    it = {"format": format_name, "batch": batch, "data": style,
          "storage": storage(rng, format_name, batch, _chance(rng, 0.25))}
    scale = tensor_scale(rng)
    if scale is not None:
        it.update(tensor_scale=scale, divides=_chance(rng, 0.5))
    return it


def _operand_of_product(rng, format_name, batch, style):
    """An operand, of which some are MN-major, as only those of products may be."""
    it = _operand(rng, format_name, batch, style)
    # Drawn from what was drawn, so that problems are otherwise those that they were before operands had majors.
    drawn = random.Random(repr(sorted(it.items())))
    whole = FORMATS[format_name].element.bits >= 8     # what tensor cores read so
    if it["storage"]["packing"] != "gguf" and drawn.random() < (0.4 if whole else 0.15):
        it["storage"]["major"] = "mn"
        if drawn.random() < 0.8:                       # as TMA describes it, but for the rare address
            it["storage"]["aligned"] = True
    return it


def _make_sparse(problem):
    """Makes some operands of a product sparse, drawn from what they are, so that other problems stay as they were."""
    for key in "ab":
        it = problem[key]
        patterns = sparse.permitted(FORMATS[it["format"]], it["storage"], problem["k"], problem.get("along_k"))
        own = random.Random(key + repr(sorted(it.items())))
        if own.random() < 0.05 and patterns:
            it["storage"]["sparsity"] = own.choice(patterns)
            it["storage"]["metadata_gap"] = own.choice([0, 0, 1, 7])
            if key == "b" and own.random() < 0.5:
                problem["compute"] = "fast"            # which permits sparse tensor cores


def _styles(rng):
    """Both operands in one style, mostly."""
    style = rng.choices(STYLES, [5, 5, 6, 3, 2, 1, 1])[0]
    return (style, style) if _chance(rng, 0.8) else (style, rng.choice(STYLES))


def _sharing(rng, m):
    """(batch of A, batch of B, group rows or None)"""
    roll = rng.random()
    if roll < 0.15:
        batch = rng.choice([2, 2, 3, 4])
        return rng.choice([(batch, batch), (batch, 1), (1, batch)]) + (None,)
    if roll < 0.32 and m > 0 or m > 96 and roll < 0.5:
        groups = rng.choice([1, 2, 2, 3, 4, 6])
        cuts = sorted(rng.choice([rng.randrange(m + 1), rng.randrange(m + 1), m // 2, m // 4 * 3 // 32 * 32])
                      for _ in range(groups - 1))
        return 1, groups, [b - a for a, b in zip([0] + cuts, cuts + [m])]
    return 1, 1, None


def _d(rng, gate):
    name = rng.choices(["fp32", "bf16", "fp16", "e4m3", "e5m2", rng.choice(SCALED)], [6, 6, 2, 1, 1, 4])[0]
    return name


def _groups_along_k(rng, problem):
    """Makes groups along K of a product of single matrices."""
    gguf = any(problem[x]["format"] == "nvfp4" and problem[x]["storage"]["packing"] == "gguf" for x in "ab")
    unit, k = 64 if gguf else 32, problem["k"]
    cuts = sorted(rng.randrange(k // unit + 1) * unit for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 5])))
    problem["along_k"] = [b - a for a, b in zip([0] + cuts, cuts + [k])] + [0] * rng.choice([0, 0, 0, 1])
    matrices = len(problem["along_k"])
    d, c, bias = problem["d"], problem.get("c"), problem.get("bias")
    d["storage"] = storage(rng, d["format"], matrices, _chance(rng, 0.25))
    if c:
        c["batch"] = matrices if c.get("is_d") else rng.choice([1, matrices])
        if not c.get("is_d"):
            c["storage"] = storage(rng, c["format"], c["batch"], _chance(rng, 0.25))
    if bias and matrices > 1 and _chance(rng, 0.5):
        bias["gap"] = rng.randrange(0, 5)


def _narrow(rng, problem):
    """Sums of small integers, as kernels of int8 take them: of a pair that they serve the second one is such."""
    style = "narrow" if problem["groups"] or "along_k" in problem or _chance(rng, 0.5) else "largest"
    for operand in "ab":
        problem[operand]["data"] = style
    if style == "largest":                             # sums reach 2^24
        problem.update(m=rng.randrange(1, 20), n=2 * rng.randrange(1, 9),
                       k=rng.choice([1024, 1040, 1792, 2048, 2080, 4640, 4672, 4800]))
    if style == "largest" or _chance(rng, 0.5):
        problem["kernel"] = 1


def product(rng, limits):
    m, n, k = _grouped_shape(rng, limits) if _chance(rng, 0.08) else _shape(rng, limits)
    a_batch, b_batch, groups = _sharing(rng, m)
    batch = 1 if groups else max(a_batch, b_batch)
    a, b = _pair(rng, limits)
    style_a, style_b = _styles(rng)
    problem = {"m": m, "n": n, "k": k, "groups": groups, "a": _operand_of_product(rng, a, a_batch, style_a),
               "b": _operand_of_product(rng, b, b_batch, style_b)}
    gate = "none"
    if _chance(rng, 0.12):
        gate, problem["n"] = rng.choice(["interleaved", "split"]), n + n % 2
        problem["gate"] = gate
    if _chance(rng, 0.2):
        problem["activation"] = rng.choice(["relu", "gelu", "gelu_tanh", "silu"]
                                           + (["swiglu_clamped"] * 3 if gate != "none" else []))
    d = _d(rng, gate)
    problem["d"] = {"format": d, "storage": storage(rng, d, batch, _chance(rng, 0.25))}
    _draw_d(rng, problem["d"], d)
    if _chance(rng, 0.5):
        _draw_epilogue(rng, problem, batch, gate)
    if _chance(rng, 0.1):
        problem["amax"] = True
    problem["via"] = rng.choices(["multiply", "plan", "panels", "graph"], [5, 3, 2, 1 if limits.cuda else 0])[0]
    problem["repeats"] = rng.choice([1, 1, 1, 2])
    if _chance(rng, 0.12):
        problem["compute"] = "fast"
    if _chance(rng, 0.12):
        problem["order"] = "any"
    if _chance(rng, 0.4 if limits.cuda else 0.25):
        problem["kernel"] = rng.randrange(1 << 20)
    if not limits.cuda:
        problem["threads"] = rng.choice([1, 1, 1, 2, 3])
    problem["relation"] = rng.choice([None, "row", "row", "rows", "storage", "storage", "columns", "part", "part"])
    own = random.Random()
    own.setstate(rng.getstate())                       # so that other problems are as they were
    if not groups and a_batch == b_batch == 1 and _chance(own, 0.08):
        _groups_along_k(own, problem)
    if _chance(own, 0.02 if limits.cuda else 0.12):
        problem["order"] = "portable"
    if limits.cuda and not groups and problem["via"] == "panels" and b in ("mxfp4", "nvfp4") and _chance(own, 0.3):
        _split_k(own, problem)
    elif limits.cuda and _chance(own, limits.tf32):
        problem.update(compute="tf32", a=_operand_of_product(own, "fp32", a_batch, style_a),
                       b=_operand_of_product(own, "fp32", b_batch, style_b))
    if not limits.cuda and _chance(own, 0.2):
        for operand in own.choice(["ab", "ab", "a", "b"]):
            problem[operand]["data"] = "edges"
    elif not limits.cuda and _chance(own, 0.25):
        _narrow(own, problem)
    if not limits.cuda and _chance(own, 0.05):         # CPUs need no permission for any pair
        problem["compute"] = "tf32"
    _make_sparse(problem)
    return problem


def _split_k(rng, problem):
    """K in two parts, where it is long enough."""
    problem["order"] = "split_k"
    if problem["m"] * problem["n"] <= 1 << 14 and "column_groups" not in problem:
        problem["k"] = 2 * rng.randrange(380, 800)


def _draw_d(rng, d, name):
    format_ = FORMATS[name]
    if format_.block:
        d["recipe"] = rng.choice(RECIPES[format_.scale])
        d["nonfinite"] = rng.choice(["propagate", "propagate", "saturate"])
    if name in ("e4m3", "e5m2"):
        d["no_saturate"] = _chance(rng, 0.3)
    if _chance(rng, 0.3):
        d.update(tensor_scale=rng.choice([0.5, 4.0, 0.1, 300.0]), divides=_chance(rng, 0.5))


def _draw_epilogue(rng, problem, batch, gate):
    matrices = len(problem["groups"]) if problem["groups"] else batch
    if _chance(rng, 0.6):
        problem["alpha"] = {"per": rng.choice(["tensor", "tensor", "row", "column", "batch"]), "value": _factor(rng)}
    if _chance(rng, 0.5):
        problem["beta"] = rng.choice([0.0, 1.0, 1.0, _factor(rng)])
        c_batch = rng.choice([1, batch])
        name = rng.choice(["fp32", "bf16", "fp16"])
        problem["c"] = {"format": name, "batch": c_batch, "storage": storage(rng, name, c_batch, _chance(rng, 0.25))}
        d = problem["d"]
        if gate == "none" and d["format"] in ("fp32", "bf16", "fp16") and _chance(rng, 0.4):
            problem["c"] = {"format": d["format"], "batch": batch, "is_d": True}
    if _chance(rng, 0.5):
        problem["bias"] = {"type": rng.choice(["fp32", "bf16", "fp16"]), "per": rng.choice(["row", "column", "column"])}
        if matrices > 1 and _chance(rng, 0.5) and not (problem["groups"] and problem["bias"]["per"] == "row"):
            problem["bias"]["gap"] = rng.randrange(0, 5)


# Conversions ----------------------------------------------------------------------------------------------------------

def _matrix_shape(rng, limits):
    most = 6000 if limits.simulated else 40000
    rows, columns = rng.choice([1, 2, 8, 16, 32, 64, 128]), rng.choice([32, 64, 128, 256, 512, 1024, LARGE])
    if _chance(rng, 0.3):
        rows = rng.randrange(0 if _chance(rng, 0.1) else 1, 140)
        columns = rng.randrange(0 if _chance(rng, 0.1) else 1, 300)
    while rows * columns > most:
        if rows > 1:
            rows //= 2
        else:
            columns //= 2
    return rows, columns, rng.choice([1, 1, 1, 2, 3])


def _reals(rng, types, source, corner):
    it = {"type": rng.choice(types)}
    if corner:
        it.update(order=rng.choice(["rows", "columns"]), step=rng.choice([1, 1, 1, 2, 3]),
                  gap=rng.choice([0, 1, 8, rng.randrange(40)]),
                  flip=rng.choice(["", "", "", "r", "c", "rc"]), batch_gap=rng.choice([0, 0, 5]),
                  misalign=rng.choice([0, 0, 8, 4, 2]))
        if source and it["order"] == "rows" and _chance(rng, 0.05):
            it["repeat"] = True
    elif _chance(rng, 0.1):
        it["order"] = "columns"
    return it


def _destination(rng, name, batch):
    to = {"format": name, "storage": storage(rng, name, batch, _chance(rng, 0.25))}
    format_ = FORMATS[name]
    scalable = format_.scale == "ue4m3" or name in NARROW
    if scalable and _chance(rng, 0.4):
        to.update(computed=True, divides=_chance(rng, 0.5))
    elif _chance(rng, 0.25):
        to.update(tensor_scale=rng.choice([0.5, 4.0, 0.1, 300.0, 1e-3]), divides=_chance(rng, 0.5))
    return to


def _policy(rng, options, format_, limits, square):
    if _chance(rng, 0.15):
        options["clamp_low"] = rng.choice([1e-4, 0.5, 2.0 ** -20])
    if _chance(rng, 0.15):
        options["clamp_high"] = rng.choice([1.0, 3.0, 100.0])
    if _chance(rng, 0.15):
        options["smallest_scale"] = rng.choice([1, 8, 100])
    if square and _chance(rng, 0.2):
        options["block_rows"] = format_.block


def quantize(rng, limits, both=False):
    from reals import STYLES as NUMBERS
    rows, columns, batch = _matrix_shape(rng, limits)
    name = rng.choice(SCALED * 3 + ["e4m3", "e5m2", "bf16", "fp16", "fp32"]
                      + ([] if limits.cuda else ["e3m2", "e2m3", "e2m1"]))
    format_, options = FORMATS[name], {}
    to = _destination(rng, name, batch)
    types = ["fp32", "bf16", "bf16", "fp16"] + ([] if limits.cuda else ["fp64"])
    problem = {"rows": rows, "columns": columns, "batch": batch, "options": options, "rows_to": to,
               "source": {"data": rng.choice(NUMBERS), "storage": _reals(rng, types, True, _chance(rng, 0.3))}}
    other = None
    if both:
        if _chance(rng, 0.4):                          # as the kernel for both is made for
            problem.update(rows=64, columns=rng.choice([128, 256]), batch=1)
            problem["source"]["storage"] = {"type": "bf16"}
        other = name if _chance(rng, 0.6) else rng.choice([x for x in SCALED if FORMATS[x].scale == format_.scale]
                                                          if format_.block
                                                          else ["bf16", "e4m3"])
        problem["columns_to"] = {"format": other, "storage": storage(rng, other, batch, _chance(rng, 0.25))}
        if to.get("computed"):
            if FORMATS[other].scale == "ue4m3" or other in NARROW:
                problem["columns_to"].update(computed=True, divides=to["divides"])
            else:
                del to["computed"]
    if format_.block:
        recipes = RECIPES[format_.scale] + (["four_over_six"] if format_.scale == "ue4m3" else [] if limits.cuda
                                            else ["mse"])
        options.update(recipe=rng.choice(recipes), nonfinite=rng.choice(["propagate", "propagate", "saturate"]))
        if options["recipe"] not in ("four_over_six", "mse"):
            _policy(rng, options, format_, limits, not both)
            if _chance(rng, 0.1):
                options.update(rounding=1, seed=rng.randrange(1 << 40))
    elif name in ("e4m3", "e5m2") and other in (None, "e4m3", "e5m2"):
        options["no_saturate"] = _chance(rng, 0.3)
    if not limits.cuda:
        problem["threads"] = rng.choice([1, 1, 2, 3])
        if not both and not options.get("rounding"):
            problem["stats"] = _chance(rng, 0.2)
    return problem


def both(rng, limits):
    return quantize(rng, limits, True)


def dequantize(rng, limits):
    rows, columns, batch = _matrix_shape(rng, limits)
    name = rng.choice(SCALED * 3 + [name for name in FORMATS if name not in SCALED])
    source = _operand(rng, name, batch, rng.choice(STYLES))
    types = ["fp32", "bf16", "fp16", "fp64"]
    return {"rows": rows, "columns": columns, "batch": batch, "source": source,
            "to": _reals(rng, types, False, _chance(rng, 0.3)), "threads": rng.choice([1, 1, 2])}


def scales(rng, limits):
    rows = rng.choice([1, 7, 31, 32, 33, 64, 127, 128, 129, 200])
    columns = rng.choice([1, 2, 3, 4, 5, 8, 16, 17, 90, 92, 180])
    while True:
        pair = [layout(rng, True) for _ in range(2)]
        if pair[0]["kind"] != pair[1]["kind"]:
            break
    for side in pair:
        side["misalign"] = rng.choice([0, 0, 1, 4, 7])
    return {"rows": rows, "columns": columns, "from": pair[0], "to": pair[1]}


def exact(rng, limits):
    m, n = rng.choice([1, 3, 16, 33]), rng.choice([1, 5, 16, 40])
    problem = {"m": m, "n": n, "k": rng.choice([0, 1, 2, 15, 16, 32, 33, 100, 256, 257, 300, 512, 513, 1000, 1025]),
               "threads": rng.choice([1, 2])}
    for operand in "ab":
        name = rng.choice(list(FORMATS))
        problem[operand] = {"format": name, "data": rng.choice(STYLES),
                            "storage": storage(rng, name, 1, _chance(rng, 0.4))}
    for key in ("sum", "magnitude"):
        problem[key] = _reals(rng, ["fp32", "fp64", "bf16", "fp16"], False, _chance(rng, 0.4))
    if _chance(rng, 0.4):
        problem["magnitude"] = None
    return problem


def hadamard(rng, limits):
    return {"batch": rng.choice([1, 2]), "rows": rng.randrange(1, 9), "runs": rng.randrange(1, 4),
            "size": rng.choice([16, 32, 64, 128]),
            "signs": _chance(rng, 0.5), "inverse": _chance(rng, 0.3),
            "source": _reals(rng, ["fp32", "bf16", "fp16", "fp64"], True, False),
            "to": _reals(rng, ["fp32", "bf16", "fp16", "fp64"], False, _chance(rng, 0.3))}


def merge(rng, limits):
    parts = []
    for _ in range(rng.randrange(1, 4)):
        part = {"rows": rng.randrange(1, 40), "storage": storage(rng, "nvfp4", 1, _chance(rng, 0.5))}
        if _chance(rng, 0.8):
            part["tensor_scale"] = rng.choice([1.0, 0.5, 0.1, 2.0 ** -9, 3e-3, 40.0])
        parts.append(part)
    return {"columns": rng.choice([16, 64, 100, 256]), "divides": _chance(rng, 0.5), "parts": parts}


DRAWERS = {"product": product, "quantize": quantize, "both": both, "dequantize": dequantize, "scales": scales,
           "exact": exact, "hadamard": hadamard, "merge": merge}
KINDS_CPU = {"product": 70, "quantize": 13, "both": 3, "dequantize": 5, "scales": 4, "exact": 3, "hadamard": 1,
             "merge": 1}
KINDS_CUDA = {"product": 78, "quantize": 10, "both": 3, "dequantize": 5, "scales": 4}

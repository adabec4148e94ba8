"""What is tried: problems as dictionaries that JSON can hold, drawn from a seed and a number.

Three of four shapes and storages are ordinary: sizes that models have, tight rows, linear and 128x4 scales.  The others are corners."""
import random

import layouts
from data import STYLES
from formats import FORMATS, SCALED, packings_of

ORDINARY_M = [1, 1, 1, 1, 2, 3, 4, 5, 8, 16, 16, 32, 48, 64, 64, 96, 128, 128, 192, 256]
ORDINARY_N = [16, 32, 32, 48, 64, 64, 64, 96, 128, 128, 128, 160, 192, 256, 256, 384]
ORDINARY_K = [32, 32, 64, 64, 64, 96, 128, 128, 128, 192, 256, 256, 320, 512]
LARGE = 2880
RECIPES = {"e8m0": ["default", "default", "floor", "rceil", "ceil", "even"], "ue4m3": ["default", "nearest"]}


class Limits:
    """What a target bears: the most products of two numbers in a problem, and what it refuses."""

    def __init__(self, target):
        self.cuda = target != "cpu"
        self.simulated = target.startswith("cudasim")
        self.terms = 1 << 18 if self.simulated else 1 << 21
        self.large = 0.0 if self.simulated else 0.02


def of_number(seed, number, target, only=None):
    """Problem `number` of a seed, as a dictionary."""
    rng = random.Random(seed * 1000003 + number)
    kinds = KINDS_CUDA if target != "cpu" else KINDS_CPU
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
    while m * n * k > limits.terms:
        if m > 16:
            m = (m + 1) // 2
        elif k > 64:
            k = k // 2
        else:
            n = n // 2
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
        it["layout"] = layout(rng, corner)
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
    return rng.choice([1.0, -1.0, 0.5, 2.0, 0.75, 0.1, -3.1, 1e-3]) if _chance(rng, 0.9) else rng.choice([0.0, -0.0, 1e30, 1e-40, "inf", "nan"])


def _operand(rng, format_name, batch, style):
    it = {"format": format_name, "batch": batch, "data": style, "storage": storage(rng, format_name, batch, _chance(rng, 0.25))}
    scale = tensor_scale(rng)
    if scale is not None:
        it.update(tensor_scale=scale, divides=_chance(rng, 0.5))
    return it


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
    if roll < 0.32 and m > 0:
        groups = rng.choice([1, 2, 2, 3, 4, 6])
        cuts = sorted(rng.choice([rng.randrange(m + 1), rng.randrange(m + 1), m // 2, m // 4 * 3 // 32 * 32]) for _ in range(groups - 1))
        return 1, groups, [b - a for a, b in zip([0] + cuts, cuts + [m])]
    return 1, 1, None


def _d(rng, gate):
    name = rng.choices(["fp32", "bf16", "fp16", "e4m3", "e5m2", rng.choice(SCALED)], [6, 6, 2, 1, 1, 4])[0]
    return name


def product(rng, limits):
    m, n, k = _shape(rng, limits)
    a_batch, b_batch, groups = _sharing(rng, m)
    batch = 1 if groups else max(a_batch, b_batch)
    a, b = _pair(rng, limits)
    style_a, style_b = _styles(rng)
    problem = {"m": m, "n": n, "k": k, "groups": groups, "a": _operand(rng, a, a_batch, style_a), "b": _operand(rng, b, b_batch, style_b)}
    gate = "none"
    if _chance(rng, 0.12):
        gate, problem["n"] = rng.choice(["interleaved", "split"]), n + n % 2
        problem["gate"] = gate
    if _chance(rng, 0.2):
        problem["activation"] = rng.choice(["relu", "gelu", "gelu_tanh", "silu"] + (["swiglu_clamped"] * 3 if gate != "none" else []))
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
    return problem


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


DRAWERS = {"product": product}
KINDS_CPU = {"product": 1}
KINDS_CUDA = {"product": 1}

#!/usr/bin/env python3
"""The exact product against Python's integers.

Usage: check_exact.py EXACT_CASES [SEED].  This file decodes codes by the formats' definitions, adds integers, rounds
once, and compares every bit with what exact_cases prints; it shares nothing with the library but the names of the
formats."""
import functools
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from script import cases, check  # noqa: E402

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "tests/exact_cases"
SEED = int(sys.argv[2], 0) if len(sys.argv) > 2 else 1
RANDOM = random.Random(SEED)

# bits, exponent bits, fraction bits, bias, what the highest exponent holds
ELEMENTS = {
    "e4m3": (8, 4, 3, 7, "nan at the top"), "e5m2": (8, 5, 2, 15, "ieee"), "e3m2": (6, 3, 2, 3, "numbers"),
    "e2m3": (6, 2, 3, 1, "numbers"), "e2m1": (4, 2, 1, 1, "numbers"), "int8": (8, 0, 7, 0, "two's complement"),
    "bf16": (16, 8, 7, 127, "ieee"), "fp16": (16, 5, 10, 15, "ieee"), "fp32": (32, 8, 23, 127, "ieee"),
}
FORMATS = {                                            # element, scale, block
    "mxfp8_e4m3": ("e4m3", "e8m0", 32), "mxfp8_e5m2": ("e5m2", "e8m0", 32), "mxfp6_e3m2": ("e3m2", "e8m0", 32),
    "mxfp6_e2m3": ("e2m3", "e8m0", 32), "mxfp4": ("e2m1", "e8m0", 32), "mxfp4_block16": ("e2m1", "e8m0", 16),
    "mxint8": ("int8", "e8m0", 32), "nvfp4": ("e2m1", "ue4m3", 16), "e4m3": ("e4m3", None, 0),
    "e5m2": ("e5m2", None, 0),
    "bf16": ("bf16", None, 0), "fp16": ("fp16", None, 0), "fp32": ("fp32", None, 0),
    "e3m2": ("e3m2", None, 0), "e2m3": ("e2m3", None, 0), "e2m1": ("e2m1", None, 0),
}
# fraction bits, bias, bits
TYPES = {"fp64": (52, 1023, 64), "fp32": (23, 127, 32), "fp16": (10, 15, 16), "bf16": (7, 127, 16)}
PACKINGS = {4: ["low_first", "high_first", "bytes"], 6: ["bit_stream", "bytes"], 8: ["default", "bytes"],
            16: ["default"],
            32: ["default"]}
LAYOUTS = ["linear", "128x4", "8x4", "tiles:3x2", "sm120_padded", "cdna4_16", "cdna4_32", "aiter", "deepgemm"]

# A value is (kind, integer, exponent): finite ones are integer * 2^exponent, an infinity has its sign in the integer.
FINITE, INFINITE, NAN = 0, 1, 2


@functools.lru_cache(maxsize=None)
def decode_element(element, code):
    bits, exponent_bits, fraction_bits, bias, top = ELEMENTS[element]
    if element == "int8":
        return FINITE, code - 256 if code > 127 else code, -6
    sign = -1 if code >> (bits - 1) else 1
    exponent, fraction = divmod(code % (1 << (bits - 1)), 1 << fraction_bits)
    if top == "ieee" and exponent == (1 << exponent_bits) - 1:
        return (NAN, 0, 0) if fraction else (INFINITE, sign, 0)
    if top == "nan at the top" and code % 128 == 127:
        return NAN, 0, 0
    if exponent == 0:
        return FINITE, sign * fraction, 1 - bias - fraction_bits
    return FINITE, sign * (fraction + (1 << fraction_bits)), exponent - bias - fraction_bits


def decode_scale(scale, code):
    if scale is None:
        return FINITE, 1, 0
    if scale == "e8m0":
        return (NAN, 0, 0) if code == 255 else (FINITE, 1, code - 127)
    return decode_element("e4m3", code & 127)


def times(x, y):
    if x[0] == NAN or y[0] == NAN:
        return NAN, 0, 0
    if x[0] == INFINITE or y[0] == INFINITE:
        sign = x[1] * y[1]
        return (NAN, 0, 0) if sign == 0 else (INFINITE, 1 if sign > 0 else -1, 0)
    return FINITE, x[1] * y[1], x[2] + y[2]


BASE = 640                                             # sums count units of 2^-BASE


def add(terms):
    """The sum of values, as (kind, integer in units of 2^-BASE)."""
    total, infinities = 0, 0
    for kind, integer, exponent in terms:
        if kind == FINITE:
            if integer:
                total += integer << (exponent + BASE)
        elif kind == NAN or infinities == -integer:
            return NAN, 0
        else:
            infinities = integer
    return (INFINITE, infinities) if infinities else (FINITE, total)


@functools.lru_cache(maxsize=None)
def round_to(kind, total, name):
    """The bits of a sum in a type: nearest, ties to even."""
    fraction_bits, bias, bits = TYPES[name]
    infinity = (2 * bias + 1) << fraction_bits
    if kind == NAN:
        return infinity | 1 << (fraction_bits - 1)
    sign = 1 << (bits - 1) if total < 0 else 0
    if kind == INFINITE:
        return sign | infinity
    magnitude = abs(total)
    if magnitude == 0:
        return 0
    # position of the last place
    last = max(magnitude.bit_length() - 1 - fraction_bits, 1 - bias - fraction_bits + BASE)
    quotient, rest = divmod(magnitude, 1 << last) if last > 0 else (magnitude << -last, 0)
    if last > 0 and (2 * rest > 1 << last or (2 * rest == 1 << last and quotient & 1)):
        quotient += 1
    if quotient >= 2 << fraction_bits:
        quotient, last = quotient >> 1, last + 1
    if quotient < 1 << fraction_bits:
        return sign | quotient
    exponent = last - BASE + fraction_bits
    return (sign | infinity if exponent > bias
            else sign | (exponent + bias) << fraction_bits | (quotient - (1 << fraction_bits)))


class Operand:
    """Codes by row, scales by row; storage is how they will lie in memory."""
    def __init__(self, name, codes, scales=None, storage=("default", "linear")):
        self.name, self.codes, self.storage = name, codes, storage
        self.element, self.scale, self.block = FORMATS[name]
        count = -(-len(codes[0]) // self.block) if self.block else 0
        one = 127 if self.scale == "e8m0" else 0x38
        self.scales = [[one] * count for _ in codes] if scales is None else scales

    def values(self, row):
        codes = self.codes[row]
        if not self.block:
            return [decode_element(self.element, code) for code in codes]
        scales = [decode_scale(self.scale, code) for code in self.scales[row]]
        return [times(decode_element(self.element, code), scales[k // self.block]) for k, code in enumerate(codes)]

    def words(self):
        digits = max(2, ELEMENTS[self.element][0] // 4)
        codes = "".join(f"{code:0{digits}x}" for row in self.codes for code in row)
        scales = "".join(f"{code:02x}" for row in self.scales for code in row)
        return codes or "-", scales or "-"


def expected(a, b, name):
    """Bits of sums and magnitudes, as exact_cases prints them."""
    rows_a, rows_b = [a.values(i) for i in range(len(a.codes))], [b.values(j) for j in range(len(b.codes))]
    digits, sign = TYPES[name][2] // 4, 1 << (TYPES[name][2] - 1)
    sums, magnitudes = [], []
    for x in rows_a:
        for y in rows_b:
            terms = [times(u, v) for u, v in zip(x, y)]
            sums.append(round_to(*add(terms), name))
            if len(terms) == 1:
                magnitudes.append(sums[-1] & ~sign)
            else:
                magnitudes.append(round_to(*add([(kind, abs(n), e) for kind, n, e in terms]), name))
    return " ".join("".join([f"{bits:0{digits}x}" for bits in results]) for results in (sums, magnitudes))


def line(a, b, name):
    codes_a, scales_a = a.words()
    codes_b, scales_b = b.words()
    return " ".join([a.name, b.name, str(len(a.codes)), str(len(b.codes)), str(len(a.codes[0])), name, *a.storage,
                     *b.storage,
                     codes_a, scales_a, codes_b, scales_b])


def compare(lines, wanted):
    done = subprocess.run([PROGRAM], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True,
                          check=False)
    check(done.returncode == 0, f"exit status {done.returncode}: {done.stderr}")
    got = done.stdout.splitlines()
    check(len(got) == len(wanted), f"{len(got)} answers to {len(wanted)} lines")
    check(lines, "no cases")
    wrong = [i for i, (answer, want) in enumerate(zip(got, wanted)) if answer != want]
    if wrong:
        i = wrong[0]
        raise AssertionError(f"{len(wrong)} of {len(lines)} lines are wrong (seed {SEED}); the first:\n"
                             f"{lines[i][:2000]}\n"
                             f"got    {got[i][:400]}\nwanted {wanted[i][:400]}")


def judge(products):
    compare([line(*product) for product in products], [expected(*product) for product in products])


# One term -------------------------------------------------------------------------------------------------------------

def interesting_codes(element):
    bits, exponent_bits, fraction_bits, _, _ = ELEMENTS[element]
    if bits <= 8:
        return list(range(1 << bits))
    codes = set()
    for exponent in {0, 1, (1 << exponent_bits) // 2, (1 << exponent_bits) - 2, (1 << exponent_bits) - 1}:
        for fraction in {0, 1, (1 << fraction_bits) // 2, (1 << fraction_bits) - 1}:
            codes.add(exponent << fraction_bits | fraction)
    codes |= {RANDOM.randrange(1 << (bits - 1)) for _ in range(12)}
    return sorted(codes) + sorted(code | 1 << (bits - 1) for code in codes)


def every_pair_of_element_codes():
    """K = 1, all scales 1, every pair of formats; fp32."""
    codes = {element: interesting_codes(element) for element in ELEMENTS}
    answers = {}
    lines, wanted = [], []
    for name_a, (element_a, _, _) in FORMATS.items():
        for name_b, (element_b, _, _) in FORMATS.items():
            a, b = Operand(name_a, [[c] for c in codes[element_a]]), Operand(name_b, [[c] for c in codes[element_b]])
            if (element_a, element_b) not in answers:
                answers[element_a, element_b] = expected(a, b, "fp32")
            lines.append(line(a, b, "fp32"))
            wanted.append(answers[element_a, element_b])
    compare(lines, wanted)


def every_pair_of_scales():
    """K = 1, all elements 1, every pair of block-scaled formats; fp32."""
    ones = {"e4m3": 0x38, "e5m2": 0x3c, "e3m2": 0x0c, "e2m3": 0x08, "e2m1": 2, "int8": 64}
    answers = {}
    lines, wanted = [], []
    scaled = [name for name, (_, scale, _) in FORMATS.items() if scale]
    for name_a in scaled:
        for name_b in scaled:
            a, b = (Operand(name, [[ones[FORMATS[name][0]]]] * 256, [[s] for s in range(256)])
                    for name in (name_a, name_b))
            key = a.scale, b.scale
            if key not in answers:
                answers[key] = expected(a, b, "fp32")
            lines.append(line(a, b, "fp32"))
            wanted.append(answers[key])
    compare(lines, wanted)


# Sums -----------------------------------------------------------------------------------------------------------------

def random_storage(name):
    element, scale, _ = FORMATS[name]
    if name in ("mxfp4", "nvfp4") and RANDOM.random() < 0.2:
        return "gguf", "gguf_" + name
    return RANDOM.choice(PACKINGS[ELEMENTS[element][0]]), RANDOM.choice(LAYOUTS) if scale else "linear"


def random_operand(name, rows, depth, finite, spread):
    element, scale, block = FORMATS[name]
    bits = ELEMENTS[element][0]

    def code():
        while True:
            pick = RANDOM.randrange(1 << bits)
            if not finite or decode_element(element, pick)[0] == FINITE:
                return pick

    def scale_code():
        top = 254 if scale == "e8m0" else 126
        if not finite and RANDOM.random() < 0.02:
            return 255
        if spread == "extreme":
            return RANDOM.choice([0, 0, 1, top, top - 1, RANDOM.randrange(top + 1)])
        middle = 127 if scale == "e8m0" else 0x38
        return RANDOM.randrange(middle - 6, middle + 7)

    count = -(-depth // block) if block else 0
    return Operand(name, [[code() for _ in range(depth)] for _ in range(rows)],
                   [[scale_code() for _ in range(count)] for _ in range(rows)], random_storage(name))


def random_products():
    """Every pair of formats and every type; ragged K, random storage."""
    products = []
    for a in FORMATS:
        for b in FORMATS:
            for name in TYPES:
                spread = RANDOM.choice(["near", "extreme"])
                depth = RANDOM.choice([1, 2, 5, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 96, 100, 127, 129])
                products.append((random_operand(a, RANDOM.randint(1, 3), depth, True, spread),
                                 random_operand(b, RANDOM.randint(1, 3), depth, True, spread), name))
    judge(products)


def random_products_with_nan_and_infinity():
    products = []
    for a in FORMATS:
        for b in FORMATS:
            for _ in range(3):
                depth = RANDOM.randint(1, 8)
                products.append((random_operand(a, 4, depth, False, "near"),
                                 random_operand(b, 4, depth, False, "extreme"),
                                 RANDOM.choice(list(TYPES))))
    judge(products)


def deep_products():
    """K of several thousand, over many decoded pieces."""
    products = []
    for a in FORMATS:
        b = RANDOM.choice(list(FORMATS))
        for spread in ("near", "extreme"):
            depth = RANDOM.randint(2000, 6000)
            products.append((random_operand(a, 1, depth, True, spread), random_operand(b, 2, depth, True, spread),
                             RANDOM.choice(list(TYPES))))
    judge(products)


# Composed sums: a wanted integer, one power of two per term -----------------------------------------------------------

def powers(name):
    """exponent -> (code, negative code, scale code) of +-2^exponent."""
    element, scale, _ = FORMATS[name]
    bits = ELEMENTS[element][0]
    if bits <= 16:
        codes = range(1 << bits)
    else:
        codes = [c | s for c in [e << 23 for e in range(1, 255)] + [1 << i for i in range(23)] for s in (0, 1 << 31)]
    signed = {}
    for code in codes:
        kind, n, e = decode_element(element, code)
        if kind == FINITE and n != 0 and abs(n) & (abs(n) - 1) == 0:
            signed[n > 0, e + abs(n).bit_length() - 1] = code
    found = {}
    for code in range(256 if scale else 1):
        kind, n, e = decode_scale(scale, code)
        if kind == FINITE and n > 0 and n & (n - 1) == 0:
            for positive, exponent in list(signed):
                if positive and (False, exponent) in signed:
                    found.setdefault(exponent + e + n.bit_length() - 1, []).append(
                        (signed[True, exponent], signed[False, exponent], code))
    return found


class Composer:
    """Builds operands whose sum is a wanted integer times a power of two."""
    def __init__(self, name_a, name_b, tables):
        self.names, self.tables = (name_a, name_b), (tables[name_a], tables[name_b])
        lows, highs = [min(t) for t in self.tables], [max(t) for t in self.tables]
        self.low, self.high = sum(lows), sum(highs)
        self.step = max(FORMATS[name_a][2], FORMATS[name_b][2]) or 1         # one term per block

    def split(self, exponent):
        a, b = self.tables
        while True:
            first = RANDOM.choice(list(a))
            if exponent - first in b:
                return first, exponent - first

    def operands(self, signed_exponents):
        """One term sign * 2^exponent each, in random order, at random places of their blocks."""
        terms = list(signed_exponents)
        RANDOM.shuffle(terms)
        depth = len(terms) * self.step
        codes, scales = [[0] * depth, [0] * depth], [[], []]
        for side in range(2):
            block = FORMATS[self.names[side]][2]
            scales[side] = [127 if FORMATS[self.names[side]][1] == "e8m0" else 0x38] * (depth // block if block else 0)
        for t, (sign, exponent) in enumerate(terms):
            k = t * self.step + RANDOM.randrange(self.step)
            for side, part in enumerate(self.split(exponent)):
                code, negative, scale = RANDOM.choice(self.tables[side][part])
                codes[side][k] = negative if side == 0 and sign < 0 else code
                block = FORMATS[self.names[side]][2]
                if block:
                    scales[side][k // block] = scale
        return [Operand(self.names[side], [codes[side]], [scales[side]]) for side in range(2)]


def bits_of(integer, exponent):
    return [(1, exponent + i) for i in range(integer.bit_length()) if integer >> i & 1]


def tie_case(composer, name, where):
    """A number of the type, a midpoint, or a midpoint and one tiny term; None where the pair cannot reach it.  The
    wanted bits follow from how the sum was made, without rounding anything."""
    fraction_bits, bias, bits = TYPES[name]
    least, most = 1 - bias - fraction_bits, bias - fraction_bits             # exponents of the last place
    if where == "subnormal":
        last, quotient = least, RANDOM.choice([1, 2, 3, (1 << fraction_bits) - 1,
                                               RANDOM.randrange(1, 1 << fraction_bits)])
    elif where == "overflow":
        last, quotient = most, (2 << fraction_bits) - 1
    else:
        last = RANDOM.randint(max(least, composer.low + 2),
                              max(least, composer.low + 2, min(most, composer.high - fraction_bits)))
        quotient = (1 << fraction_bits) + RANDOM.choice([0, 1, (1 << fraction_bits) - 1,
                                                         RANDOM.randrange(1 << fraction_bits)])
    if last - 2 < composer.low or last + fraction_bits > composer.high:
        return None
    terms = bits_of(quotient, last)
    kind = RANDOM.choice(["number", "tie", "below", "above"])
    hair = RANDOM.randint(max(composer.low, last - 200), last - 2)
    if kind != "number":
        terms.append((1, last - 1))
    if kind == "below":
        terms.append((-1, hair))
    if kind == "above":
        terms.append((1, hair))
    if RANDOM.random() < 0.5:                                                  # something huge that cancels
        huge = RANDOM.randint(max(composer.low, composer.high - 20), composer.high)
        terms += [(1, huge), (-1, huge)]
    sign = RANDOM.choice([1, -1])
    up = kind == "above" or (kind == "tie" and quotient & 1)
    # Subnormals are their quotient; a normal number's code is one exponent step per 2^fraction_bits of quotient and
    # place.
    code = quotient + up + ((last - least) << fraction_bits)
    return composer.operands([(sign * s, e) for s, e in terms]), code | (1 << (bits - 1) if sign < 0 else 0)


def ties_subnormals_and_overflow():
    tables = {name: powers(name) for name in FORMATS}
    products, made, reached = [], [], set()
    for name_a in FORMATS:
        for name_b in FORMATS:
            composer = Composer(name_a, name_b, tables)
            for name in TYPES:
                for where in ("anywhere", "subnormal", "overflow"):
                    case = tie_case(composer, name, where)
                    if case is not None:
                        products.append((*case[0], name))
                        made.append(case[1])
                        reached.add((name, where))
    want = [expected(*product) for product in products]
    for product, code, answer in zip(products, made, want):
        check(int(answer.split()[0], 16) == code, f"the judge itself: {line(*product)[:300]}: {answer} and {code:x}")
    check(len(reached) == 10, f"only {sorted(reached)}")       # fp64's subnormals and overflow lie beyond all products
    compare([line(*product) for product in products], want)


def cancellation():
    """Sums that are zero, or one tiny term, after terms of every size have cancelled."""
    tables = {name: powers(name) for name in FORMATS}
    products = []
    for name_a in FORMATS:
        for name_b in FORMATS:
            composer = Composer(name_a, name_b, tables)
            spread = [composer.low + (composer.high - composer.low) * i // 20 for i in range(21)]
            terms = [(sign, e) for e in spread for sign in (1, -1)]
            for tiny in ([], [(1, composer.low)], [(-1, composer.low)]):
                products.append((*composer.operands(terms + tiny), RANDOM.choice(list(TYPES))))
    judge(products)


cases("exact_integers", [every_pair_of_element_codes, every_pair_of_scales, random_products,
                         random_products_with_nan_and_infinity,
                         deep_products, ties_subnormals_and_overflow, cancellation])

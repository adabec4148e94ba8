#!/usr/bin/env python3
"""Results of quantize, dequantize and matmul against a second model of the formats, written here in exact fractions;
and against ml_dtypes' own types where they are installed."""
from fractions import Fraction
import json
import math
import os
import random
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import npy_file
import script

try:
    import ml_dtypes
    import numpy
except ImportError:
    ml_dtypes = numpy = None

command = os.path.abspath(sys.argv[1])
ELEMENTS = {"mxfp8_e4m3": (8, 4, 3), "mxfp8_e5m2": (8, 5, 2), "mxfp6_e3m2": (6, 3, 2), "mxfp6_e2m3": (6, 2, 3),
            "mxfp4": (4, 2, 1),
            "mxfp4_block16": (4, 2, 1), "nvfp4": (4, 2, 1), "mxint8": (8, 0, 7), "e4m3": (8, 4, 3), "e5m2": (8, 5, 2)}
BLOCKS = {"mxfp4_block16": 16, "nvfp4": 16, "e4m3": 0, "e5m2": 0}
LAYOUTS = ["linear", "linear:19", "128x4", "8x4", "tiles:4x2", "sm120_padded", "cdna4_16", "cdna4_32", "aiter",
           "deepgemm"]


def minifloat(code, bits, exponent_bits, mantissa_bits):
    """The exact value of a code without NaN or infinity."""
    sign = -1 if code >> (bits - 1) & 1 else 1
    exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
    fraction = code & (1 << mantissa_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    if exponent == 0:
        return sign * Fraction(fraction) * Fraction(2) ** (1 - bias - mantissa_bits)
    return sign * Fraction((1 << mantissa_bits) + fraction) * Fraction(2) ** (exponent - bias - mantissa_bits)


def element(format, code):
    bits, exponent_bits, mantissa_bits = ELEMENTS[format]
    if exponent_bits == 0:
        return Fraction(code - 256 if code > 127 else code, 64)
    return minifloat(code, bits, exponent_bits, mantissa_bits)


def scale(format, code):
    return minifloat(code & 127, 8, 4, 3) if format == "nvfp4" else Fraction(2) ** (code - 127)


def as_float(value):
    """The fp32 number nearest to a fraction, ties to even; by way of an integer, so that nothing is rounded twice."""
    if value == 0:
        return 0.0
    exponent = max(math.floor(math.log2(abs(value))) - 23, -149)
    while abs(value) >= Fraction(2) ** (exponent + 24):
        exponent += 1
    while exponent > -149 and abs(value) < Fraction(2) ** (exponent + 23):
        exponent -= 1
    return float(round(value / Fraction(2) ** exponent)) * 2.0 ** exponent


def quantize(folder, name, format, *more):
    return script.run([command, "quantize", name + ".npy", "-o", name, "-f", format, "--json", *more], cwd=folder)


def decode(folder, name, format):
    """Rows of exact values from files in the linear layout with one code per byte."""
    (rows, columns), descr, codes = npy_file.read(os.path.join(folder, name + ".codes.npy"))
    script.check(descr == ("|i1" if format == "mxint8" else "|V1"), f"{format}: codes are {descr}")
    codes = [code & 255 for code in codes]
    block = BLOCKS.get(format, 32)
    tensor = Fraction(1)
    path = os.path.join(folder, name + ".tensor_scale.npy")
    if os.path.exists(path):
        tensor = Fraction(npy_file.read(path)[2][0])
        with open(os.path.join(folder, name + ".json"), encoding="utf-8") as note:
            if json.load(note)["tensor_scale_use"] == "divides":
                tensor = 1 / tensor
    if block == 0:
        return [[element(format, codes[r * columns + k]) * tensor for k in range(columns)] for r in range(rows)]
    shape, descr, scales = npy_file.read(os.path.join(folder, name + ".scales.npy"))
    script.check(shape == (rows, -(-columns // block)) and descr == "|u1", f"{format}: scales are {shape} {descr}")
    factors = [scale(format, code) * tensor for code in scales]
    return [[element(format, codes[r * columns + k]) * factors[r * shape[1] + k // block] for k in range(columns)]
            for r in range(rows)]


def sample(folder, name, rows, columns, seed=1, descr="<f4", spread=1.0):
    rng = random.Random(seed)
    values = [rng.gauss(0, 1) * math.exp(spread * rng.gauss(0, 1)) for _ in range(rows * columns)]
    if descr != "<f8":
        code = {"<f4": "f", "<f2": "e"}[descr]
        values = list(struct.unpack(f"<{len(values)}{code}", struct.pack(f"<{len(values)}{code}", *values)))
    npy_file.write(os.path.join(folder, name + ".npy"), (rows, columns), values, descr)
    return [values[r * columns:(r + 1) * columns] for r in range(rows)]


def with_folder(function):
    def case():
        with tempfile.TemporaryDirectory() as folder:
            function(folder)
    case.__name__ = function.__name__
    return case


def codes_mean_what_was_put_in(folder):
    """Decoded codes lie near the numbers, and the statistics are those of the decoded codes."""
    values = sample(folder, "x", 5, 70)
    for format in ELEMENTS:
        said = json.loads(quantize(folder, "x", format,
                                   *(["--tensor-scale", "computed"] if format in ("e4m3", "e5m2") else [])))
        decoded = decode(folder, "x", format)
        signal = sum(Fraction(x) ** 2 for row in values for x in row)
        noise = sum((Fraction(x) - y) ** 2 for row, other in zip(values, decoded) for x, y in zip(row, other))
        snr = 10 * math.log10(signal / noise)
        script.check(abs(said["snr_db"] - snr) < 1e-6 and snr > 14, f"{format}: {said['snr_db']} dB, not {snr}")
        script.check(said["elements"] == 350, said)
        for name in os.listdir(folder):
            if name != "x.npy":
                os.remove(os.path.join(folder, name))


def dequantize_is_exact(folder):
    sample(folder, "x", 5, 70)
    for format in ELEMENTS:
        quantize(folder, "x", format)
        script.run([command, "dequantize", "x.json", "-o", "y.npy"], cwd=folder)
        shape, descr, got = npy_file.read(os.path.join(folder, "y.npy"))
        wanted = [as_float(value) for row in decode(folder, "x", format) for value in row]
        script.check(shape == (5, 70) and descr == "<f4" and got == wanted, f"{format}: other values")
        for name in ["x.scales.npy", "x.tensor_scale.npy"]:
            if os.path.exists(os.path.join(folder, name)):
                os.remove(os.path.join(folder, name))


def a_divisor_divides(folder):
    sample(folder, "x", 5, 70)
    said = json.loads(quantize(folder, "x", "nvfp4", "--divides"))
    script.run([command, "dequantize", "x.json", "-o", "y.npy"], cwd=folder)
    wanted = [as_float(value) for row in decode(folder, "x", "nvfp4") for value in row]
    script.check(said["tensor_scale"] > 1 and npy_file.read(os.path.join(folder, "y.npy"))[2] == wanted, "other values")


def layouts_and_packings_change_nothing(folder):
    """The same numbers come back from every layout and packing, and every product of them is the same file."""
    sample(folder, "x", 37, 200)
    for format in ["nvfp4", "mxfp6_e2m3", "mxfp8_e4m3"]:
        results = set()
        ways = [["--layout", layout] for layout in LAYOUTS]
        bits = ELEMENTS[format][0]
        ways += [["--packed"], ["--packed", "--layout", "128x4"]]
        ways += [["--packing", "low_first"], ["--packing", "high_first"]] if bits == 4 else []
        ways += [["--packing", "gguf"], ["--layout", "gguf_nvfp4"]] if format == "nvfp4" else []
        for way in ways:
            if format == "nvfp4" and "deepgemm" in way:
                continue                               # words of e8m0 scales only
            quantize(folder, "x", format, *way)
            script.run([command, "dequantize", "x.json", "-o", "y.npy"], cwd=folder)
            script.run([command, "matmul", "x.json", "x.json", "-o", "d.npy", "--no-check"], cwd=folder)
            with open(os.path.join(folder, "y.npy"), "rb") as y, open(os.path.join(folder, "d.npy"), "rb") as d:
                results.add((y.read(), d.read()))
            script.check(len(results) == 1, f"{format} {way}: other numbers")
            os.remove(os.path.join(folder, "x.json"))


def majors_change_nothing(folder):
    """Codes along N, of a note and of --a-major and --b-major: the file that is a transpose, and the same product."""
    sample(folder, "x", 37, 200)
    sample(folder, "w", 11, 200)
    for format, packing in [("nvfp4", "low_first"), ("mxfp6_e2m3", "bit_stream"), ("mxfp8_e4m3", None),
                            ("mxfp4", "bytes"), ("bf16", None)]:
        way = ["--packing", packing] if packing else []
        quantize(folder, "w", format, *way)
        script.run([command, "matmul", "x.npy", "w.json", "-o", "k.npy", "--a-format", "bf16"], cwd=folder)
        shape, _, codes = npy_file.read(os.path.join(folder, "w.codes.npy"))
        quantize(folder, "w", format, *way, "--major", "mn")
        turned, _, moved = npy_file.read(os.path.join(folder, "w.codes.npy"))
        if packing in (None, "bytes"):
            script.check(shape == (11, 200) and turned == (200, 11)
                         and moved == [codes[r * 200 + k] for k in range(200) for r in range(11)], f"{format}: codes")
        else:
            script.check(turned == (200, 6 if packing == "low_first" else 9), f"{format}: {turned}")
        said = script.run([command, "matmul", "x.npy", "w.json", "-o", "mn.npy", "--a-format", "bf16", "--a-major",
                           "mn", "--verbose", "--check"], cwd=folder)
        script.check("copied K-major first: A, B" in said, said)
        options = ["--b-format", format, "--recipe", "mse"] if format == "mxfp4" else ["--b-format", format]
        script.run([command, "matmul", "x.npy", "w.npy", "-o", "own.npy", "--a-format", "bf16", *options, "--b-major",
                    "mn"], cwd=folder)
        results = [open(os.path.join(folder, name), "rb").read() for name in ("k.npy", "mn.npy", "own.npy")]
        script.check(results[0] == results[1] == results[2], f"{format}: other products")
    for status, wrong, words in [
            (3, ["dequantize", "w.json", "-o", "y.npy"], "only A and B of products may be MN-major"),
            (2, ["matmul", "w.json", "w.json", "-o", "d.npy", "--b-major", "mn"], "--b-major"),
            (3, ["quantize", "w.npy", "-o", "g", "-f", "nvfp4", "--packing", "gguf", "--major", "mn"],
             "major=mn: packing gguf")]:
        script.run_in(folder, [command, *wrong], status, words)
    with open(os.path.join(folder, "w.json"), encoding="utf-8") as note:
        text = note.read()
    with open(os.path.join(folder, "bad.json"), "w", encoding="utf-8") as note:
        note.write(text.replace('"mn"', '"n"'))
    script.run_in(folder, [command, "matmul", "w.json", "bad.json", "-o", "d.npy"], 3, "is neither k nor mn")


def sparse_changes_nothing(folder):
    """Half of the numbers, and the product of what dequantize makes of them; what notes and metadata may not say."""
    sample(folder, "x", 37, 200)
    sample(folder, "w", 11, 200)
    for format, sparsity, way in [("nvfp4", "4:8", ["--packed", "--layout", "128x4"]), ("mxfp8_e4m3", "2:4", []),
                                  ("mxfp4", "2:4", []), ("bf16", "2:4", [])]:
        said = json.loads(quantize(folder, "w", format, "--sparsity", sparsity, *way))
        group = int(sparsity[2])
        script.check(said["groups"] == 11 * 200 // group >= said["cut_groups"] > 0 and said["elements"] == 1100
                     and 0.5 < said["kept_squares"] < 1, f"{format}: {said}")
        shape, descr, metadata = npy_file.read(os.path.join(folder, "w.metadata.npy"))
        script.check(shape == (11, -(-200 // group // 2)) and descr == "|u1", f"{format}: {shape}, {descr}")
        codes, _, _ = npy_file.read(os.path.join(folder, "w.codes.npy"))
        script.check(codes == (11, 50 if format == "nvfp4" else 100), f"{format}: {codes}")
        said = script.run([command, "matmul", "x.npy", "w.json", "-o", "d.npy", "--a-format", "bf16", "--verbose",
                           "--check"], cwd=folder)
        script.check("sparse, and copied with their zeros first: B" in said, said)
        script.run([command, "dequantize", "w.json", "-o", "full.npy"], cwd=folder)
        _, _, numbers = npy_file.read(os.path.join(folder, "full.npy"))
        script.check(all(numbers[i:i + group].count(0) >= group // 2 for i in range(0, 2200, group)),
                     f"{format}: more than half is left")
    # Of bf16 the numbers with their zeros are an operand of the same kernels.
    script.run([command, "matmul", "x.npy", "full.npy", "-o", "own.npy", "-f", "bf16"], cwd=folder)
    results = [open(os.path.join(folder, name), "rb").read() for name in ("d.npy", "own.npy")]
    script.check(results[0] == results[1], "other products")
    with open(os.path.join(folder, "w.json"), encoding="utf-8") as note:
        text = note.read()
    simulated = os.path.join(os.path.dirname(command), "..", "lib", "libcudasim.so")
    if os.path.exists(simulated):
        variables = {**os.environ, "BLOCKSCALE_LIBCUDA": simulated, "CUDASIM_DEVICE": "sm_100a", "CUDASIM_QUIET": "1"}
        said = script.run([command, "matmul", "x.npy", "w.json", "-o", "gpu.npy", "--a-format", "bf16", "--device",
                           "cuda", "--verbose", "--check"], cwd=folder, env=variables)
        script.check("sparse, and copied with their zeros first: B" in said, said)
    metadata[3] = 0x46
    npy_file.write(os.path.join(folder, "bad.metadata.npy"), shape, metadata, "|u1")
    npy_file.write(os.path.join(folder, "flat.metadata.npy"), (len(metadata),), metadata, "|u1")
    for change, words in [(("w.metadata", "bad.metadata"), "group 6 of row 0 of matrix 0 is 6"),
                          (("w.metadata", "flat.metadata"), "\"metadata\": an array of 11 x 25 bytes is wanted"),
                          (("w.metadata", "w.codes"), "bytes, but the note's shape and format need 275"),
                          (('"2:4"', '"1:4"'), "is none of none, 2:4 and 4:8"),
                          (('"2:4"', '"4:8"'), "sparsity=4:8"),
                          (('"metadata"', '"other"'), "\"metadata\" must name a file")]:
        with open(os.path.join(folder, "bad.json"), "w", encoding="utf-8") as note:
            note.write(text.replace(*change))
        script.run_in(folder, [command, "dequantize", "bad.json", "-o", "y.npy"], 3, words)
    for status, wrong, words in [
            (2, ["w.npy", "-o", "g", "-f", "mxfp4", "--sparsity", "2:4", "--major", "mn"], "stored row by row"),
            (2, ["w.npy", "-o", "g.safetensors", "-f", "mxfp4", "--sparsity", "2:4"], "are for .npy files"),
            (3, ["w.npy", "-o", "g", "-f", "mxint8", "--sparsity", "4:8"], "sparsity=4:8"),
            (3, ["random:4x30", "-o", "g", "-f", "mxfp4", "--sparsity", "2:4"], "columns=30")]:
        script.run_in(folder, [command, "quantize", *wrong], status, words)


def scales_lie_where_the_layout_says(folder):
    """128x4 by its own formula, for A and for D."""
    sample(folder, "x", 137, 200)
    sample(folder, "i", 200, 200)
    for run in [lambda layout: quantize(folder, "x", "mxfp4", "--layout", layout),
                lambda layout: script.run([command, "matmul", "x.npy", "i.npy", "-o", "x", "-f", "fp32", "--d-type",
                                           "mxfp4",
                                           "--d-layout", layout], cwd=folder)]:
        run("linear")
        (rows, columns), _, linear = npy_file.read(os.path.join(folder, "x.scales.npy"))
        run("128x4")
        shape, _, tiled = npy_file.read(os.path.join(folder, "x.scales.npy"))
        wide = -(-columns // 4)
        script.check(rows == 137 and columns == 7 and shape == (2 * wide * 512,), f"{rows} x {columns}, {shape}")
        for r in range(rows):
            for s in range(columns):
                at = (r // 128 * wide + s // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + s % 4
                script.check(tiled[at] == linear[r * columns + s], f"scale ({r}, {s})")


def recipes(folder):
    """The largest number of a block is 7: floor gives 1, the others 2."""
    npy_file.write(os.path.join(folder, "x.npy"), (1, 32), [7.0] * 32)
    npy_file.write(os.path.join(folder, "e.npy"), (32, 32), [float(i % 33 == 0) for i in range(1024)])
    for more, code in [([], 128), (["floor"], 127), (["rceil"], 128), (["ceil"], 128)]:
        quantize(folder, "x", "mxfp4", *(["--recipe"] + more if more else []))
        script.check(npy_file.read(os.path.join(folder, "x.scales.npy"))[2] == [code], f"{more}")
        script.run([command, "matmul", "x.npy", "e.npy", "-o", "d", "-f", "fp32", "--d-type", "mxfp4"] +
                   (["--d-recipe"] + more if more else []), cwd=folder)
        script.check(npy_file.read(os.path.join(folder, "d.scales.npy"))[2] == [code], f"{more} of D")
        said = json.loads(script.run([command, "matmul", "x.npy", "x.npy", "-o", "e", "-f", "mxfp4", "--json"] +
                                     (["--recipe"] + more if more else []), cwd=folder))
        script.check(said["a"]["saturated_elements"] == (32 if code == 127 else 0), f"{more} of A")


def types_of_dequantized_numbers(folder):
    npy_file.write(os.path.join(folder, "x.npy"), (1, 2), [1.0, -3.0])
    quantize(folder, "x", "mxfp8")
    for name, wanted in [("fp32", ("<f4", [1.0, -3.0])), ("fp16", ("<f2", [1.0, -3.0])), ("fp64", ("<f8", [1.0, -3.0])),
                         ("bf16", ("|V2", [0x3f80, 0xc040]))]:
        script.run([command, "dequantize", "x.json", "-o", "y.npy", "--type", name], cwd=folder)
        script.check(npy_file.read(os.path.join(folder, "y.npy"))[1:] == wanted, name)


def packed_codes(folder):
    sample(folder, "x", 3, 34)
    quantize(folder, "x", "mxfp4")
    plain = [code & 15 for code in npy_file.read(os.path.join(folder, "x.codes.npy"))[2]]
    quantize(folder, "x", "mxfp4", "--packed")
    shape, descr, packed = npy_file.read(os.path.join(folder, "x.codes.npy"))
    wanted = [plain[i] | plain[i + 1] << 4 for i in range(0, len(plain), 2)]
    script.check(shape == (3, 17) and descr == "|u1" and packed == wanted, "low nibble first")


def products(folder):
    """Multiples of 3 up to 6, which every format holds: sums are exact."""
    rng = random.Random(3)
    for a, b in [("mxfp4", "mxfp4"), ("nvfp4", "mxfp8_e4m3"), ("mxint8", "mxfp6_e2m3"), ("mxfp6_e3m2", "bf16"),
                 ("e5m2", "nvfp4")]:
        m, n, k = rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 70)
        x, y = [[[float(rng.choice([-6, -3, 0, 3, 6])) for _ in range(k)] for _ in range(rows)] for rows in (m, n)]
        npy_file.write(os.path.join(folder, "a.npy"), (m, k), sum(x, []))
        npy_file.write(os.path.join(folder, "b.npy"), (n, k), sum(y, []))
        npy_file.write(os.path.join(folder, "t.npy"), (n, k), [row[j] for j in range(k) for row in y][:n * k],
                       fortran=True)
        npy_file.write(os.path.join(folder, "u.npy"), (k, n), [row[j] for j in range(k) for row in y])
        formats = ["--a-format", a, "--b-format", b, "--tensor-scale", "none"]
        wanted = [float(sum(p * q for p, q in zip(row, column))) for row in x for column in y]
        for name, more in [("b.npy", []), ("t.npy", []), ("u.npy", ["--transpose-b"])]:
            line = [command, "matmul", "a.npy", name, "-o", "d.npy", "--json"] + formats + more
            said = json.loads(script.run(line, cwd=folder))
            shape, descr, got = npy_file.read(os.path.join(folder, "d.npy"))
            script.check(shape == (m, n) and descr == "<f4" and got == wanted,
                         f"{a} x {b}, {name}: {got[:4]}, not {wanted[:4]}")
            script.check(said["check"]["sums_beyond_bound"] == 0 and said["a"]["exact"], said)


def epilogues(folder):
    """alpha, beta C, bias, activation and gate, on integers, where all of it is exact."""
    npy_file.write(os.path.join(folder, "a.npy"), (2, 4), [1, 2, -1, 0, 2, 0, 1, 1])
    npy_file.write(os.path.join(folder, "b.npy"), (4, 4), [1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1, -1, -1, -2, 0])
    npy_file.write(os.path.join(folder, "c.npy"), (2, 4), [1, 2, 3, 4, 5, 6, 7, 8])
    npy_file.write(os.path.join(folder, "n.npy"), (4,), [10, 20, 30, 40])
    npy_file.write(os.path.join(folder, "m.npy"), (2,), [100, -100])
    npy_file.write(os.path.join(folder, "halves.npy"), (2,), [100, -100], "<f2")
    sums = [1, 2, 2, -1, 2, 0, 4, -4]
    for more, wanted in [
            ([], sums),
            (["--alpha", "-2"], [-2 * s for s in sums]),
            (["--beta", "3", "--c", "c.npy"], [s + 3 * (i + 1) for i, s in enumerate(sums)]),
            (["--bias", "n.npy"], [s + 10 * (i % 4 + 1) for i, s in enumerate(sums)]),
            (["--bias", "m.npy", "--bias-per", "row"], [s + (100 if i < 4 else -100) for i, s in enumerate(sums)]),
            (["--bias", "halves.npy", "--bias-per", "row"], [s + (100 if i < 4 else -100) for i, s in enumerate(sums)]),
            (["--activation", "relu"], [max(s, 0) for s in sums]),
            (["--gate", "interleaved"], [2, -2, 0, -16]),
            (["--gate", "split"], [2, -2, 8, 0]),
            (["--gate", "split", "--activation", "relu", "--alpha", "2"], [8, -8, 32, 0])]:
        script.run([command, "matmul", "a.npy", "b.npy", "-o", "d.npy", "-f", "mxfp8", *more], cwd=folder)
        got = npy_file.read(os.path.join(folder, "d.npy"))[2]
        script.check([x + 0.0 for x in got] == [float(x) + 0.0 for x in wanted], f"{more}: {got}, not {wanted}")


def output_types(folder):
    npy_file.write(os.path.join(folder, "a.npy"), (2, 2), [3, 6, 6, 3])
    npy_file.write(os.path.join(folder, "b.npy"), (2, 2), [1, 0, 0, -1])
    codes = {"fp32": ("<f4", [3.0, -6.0, 6.0, -3.0]), "fp16": ("<f2", [3.0, -6.0, 6.0, -3.0]),
             "bf16": ("|V2", [0x4040, 0xc0c0, 0x40c0, 0xc040]), "e4m3": ("|V1", [0x44, 0xcc, 0x4c, 0xc4]),
             "e5m2": ("|V1", [0x42, 0xc6, 0x46, 0xc2])}
    for format, (descr, wanted) in codes.items():
        script.run([command, "matmul", "a.npy", "b.npy", "-o", "d.npy", "-f", "mxfp4", "--d-type", format], cwd=folder)
        script.check(npy_file.read(os.path.join(folder, "d.npy")) == ((2, 2), descr, wanted), f"{format}: other codes")
    for format in ["mxfp4", "nvfp4", "mxfp8_e5m2", "mxint8"]:
        more = ["--d-tensor-scale", "0.25"] if format == "nvfp4" else []
        line = [command, "matmul", "a.npy", "b.npy", "-o", "q.npy", "-f", "mxfp4", "--d-type", format, "--d-layout",
                "8x4"]
        script.run(line + more, cwd=folder)
        script.run([command, "dequantize", "q.json", "-o", "d.npy", "--type", "fp64"], cwd=folder)
        got = npy_file.read(os.path.join(folder, "d.npy"))
        script.check(got == ((2, 2), "<f8", [3.0, -6.0, 6.0, -3.0]), f"{format}: {got}")
        if os.path.exists(os.path.join(folder, "q.tensor_scale.npy")):
            os.remove(os.path.join(folder, "q.tensor_scale.npy"))


def input_types(folder):
    values = [[float(i % 5 - 2) for i in range(40)]]
    npy_file.write(os.path.join(folder, "f4.npy"), (1, 40), values[0])
    npy_file.write(os.path.join(folder, "f2.npy"), (1, 40), values[0], "<f2")
    npy_file.write(os.path.join(folder, "f8.npy"), (1, 40), values[0], "<f8")
    bits = [struct.unpack("<I", struct.pack("<f", x))[0] >> 16 for x in values[0]]
    npy_file.write(os.path.join(folder, "v2.npy"), (1, 40), bits, "|V2")
    npy_file.write(os.path.join(folder, "u2.npy"), (1, 40), bits, "<u2")
    results = set()
    for name, more in [("f4", []), ("f2", []), ("f8", ["--type", "fp64"]), ("v2", []), ("v2", ["--type", "bf16"]),
                       ("u2", ["--type", "bf16"])]:
        quantize(folder, name, "mxfp8", *more)
        results.add(str(decode(folder, name, "mxfp8_e4m3")))
    script.check(len(results) == 1, "one type reads differently")


def threads_and_seeds(folder):
    """--threads never changes a bit; --seed alone decides random matrices and stochastic rounding."""
    sample(folder, "x", 9, 96)

    def files(*more):
        script.run([command, "matmul", "random:33x96", "random:65x96", "-o", "d.npy", "-f", "nvfp4", *more], cwd=folder)
        script.run([command, "quantize", "x.npy", "-o", "w", "-f", "mxfp4", "--rounding", "stochastic", *more],
                   cwd=folder)
        return [open(os.path.join(folder, name), "rb").read() for name in ["d.npy", "w.codes.npy"]]
    first = files()
    for more in [["--threads", "1"], ["--threads", "7"], ["--cpu", "none"], ["--seed", "1"]]:
        script.check(files(*more) == first, f"{more}: other bits")
    other = files("--seed", "2")
    script.check(other[0] != first[0] and other[1] != first[1], "the seed changes nothing")


def the_check_says_the_truth(folder):
    """Its figures are those of the numbers in the files."""
    sample(folder, "a", 3, 64, 5)
    sample(folder, "b", 4, 64, 6)
    line = [command, "matmul", "a.npy", "b.npy", "-o", "d.npy", "-f", "mxfp4", "--json"]
    said = json.loads(script.run(line + ["--check"], cwd=folder))
    a, b = npy_file.read(os.path.join(folder, "a.npy"))[2], npy_file.read(os.path.join(folder, "b.npy"))[2]
    d = npy_file.read(os.path.join(folder, "d.npy"))[2]
    exact = [sum(Fraction(a[64 * i + k]) * Fraction(b[64 * j + k]) for k in range(64)) for i in range(3)
             for j in range(4)]
    noise = sum((Fraction(x) - y) ** 2 for x, y in zip(d, exact))
    snr = 10 * math.log10(sum(y * y for y in exact) / noise)
    script.check(abs(said["check"]["product_snr_db"] - snr) < 1e-6, f"{said['check']}, not {snr}")
    script.check("check" not in json.loads(script.run(line + ["--no-check"], cwd=folder)), "--no-check")


def a_wrong_product_is_noticed(folder):
    """Exit status 1, and the files are written: the command with a wrong bsm_multiply, which --alpha makes it call."""
    if len(sys.argv) < 3 or not os.path.exists(sys.argv[2]):
        raise script.Skip("there is no command with a wrong bsm_multiply here")
    line = [os.path.abspath(sys.argv[2]), "matmul", "random:5x64", "random:7x64", "-o", "d.npy", "-f", "mxfp6",
            "--alpha", "2",
            "--json"]
    for fault, status in [("none", 0), ("double", 1), ("last row missing", 1)]:
        said = json.loads(script.run(line, expect=status, cwd=folder, env={**os.environ, "FAULT": fault}))
        beyond = said["check"]["sums_beyond_bound"]
        script.check(beyond == 0 if status == 0 else beyond >= 7, f"{fault}: {beyond} sums")
        script.check(npy_file.read(os.path.join(folder, "d.npy"))[0] == (5, 7), "d.npy")
    text = script.run(line[:-1], expect=1, cwd=folder, env={**os.environ, "FAULT": "double"})
    script.check("WRONG" in text, text)


def a_product_that_had_no_processor_is_told(folder):
    if len(sys.argv) < 3 or not os.path.exists(sys.argv[2]):
        raise script.Skip("there is no command with a slow bsm_plan_run here")
    line = [os.path.abspath(sys.argv[2]), "matmul", "random:5x64", "random:7x64", "-o", "d.npy", "-f", "mxfp6"]
    text = script.run(line, cwd=folder, env={**os.environ, "FAULT": "no processor"})
    script.check(re.search(r"^waited   for a processor most of that time, it had one for \d+\.\d{3} ms", text, re.M),
                 text)
    said = json.loads(script.run(line + ["--json"], cwd=folder, env={**os.environ, "FAULT": "no processor"}))
    script.check(said["seconds"] > 0.02 > 2 * said["processor_seconds"] > 0, said)


def empty_matrices(folder):
    npy_file.write(os.path.join(folder, "none.npy"), (0, 64), [])
    npy_file.write(os.path.join(folder, "thin.npy"), (4, 0), [])
    npy_file.write(os.path.join(folder, "some.npy"), (8, 64), [1.0] * 512)
    for format in ["mxfp4", "nvfp4", "bf16"]:
        for a, b, shape in [("none", "some", (0, 8)), ("some", "none", (8, 0)), ("none", "none", (0, 0)),
                            ("thin", "thin", (4, 4))]:
            json.loads(script.run([command, "matmul", a + ".npy", b + ".npy", "-o", "d.npy", "-f", format, "--json"],
                                  cwd=folder))
            got = npy_file.read(os.path.join(folder, "d.npy"))
            script.check(got == (shape, "<f4", [0.0] * (shape[0] * shape[1])), f"{format} {a} {b}: {got}")
        for name, shape in [("none", (0, 64)), ("thin", (4, 0))]:
            quantize(folder, name, format)
            script.run([command, "dequantize", name + ".json", "-o", "y.npy"], cwd=folder)
            script.check(npy_file.read(os.path.join(folder, "y.npy"))[0] == shape, f"{format} {name}")


def nan_and_statistics(folder):
    values = [0.0] * 32 + [1.0] * 31 + [float("nan")] + [1e-40] * 16 + [448.0] * 16
    npy_file.write(os.path.join(folder, "x.npy"), (1, 96), values)
    said = json.loads(quantize(folder, "x", "mxfp4"))
    script.check(said["blocks"] == 3 and said["nan_blocks"] == 1 and said["amax"] == 448, said)
    histogram = said["scale_histogram"]
    script.check(sum(histogram.values()) == 3 and histogram["255"] == 1 and histogram["0"] == 1, said)
    text = script.run([command, "quantize", "x.npy", "-o", "x", "-f", "mxfp4"], cwd=folder)
    script.check("NaN" in text and "2^-127" in text and "\u2588" in text, text)
    said = json.loads(quantize(folder, "x", "mxfp4", "--nonfinite", "saturate"))
    script.check(said["nan_blocks"] == 0, said)


def as_ml_dtypes_has_them(folder):
    if ml_dtypes is None:
        raise script.Skip("NumPy and ml_dtypes are not installed")
    rng = numpy.random.default_rng(1)
    x = rng.standard_normal((6, 96)).astype(numpy.float32)
    numpy.save(os.path.join(folder, "x.npy"), x)
    for format, name in [("mxfp8_e4m3", "float8_e4m3fn"), ("mxfp8_e5m2", "float8_e5m2"),
                         ("mxfp6_e3m2", "float6_e3m2fn"),
                         ("mxfp6_e2m3", "float6_e2m3fn"), ("mxfp4", "float4_e2m1fn"), ("nvfp4", "float4_e2m1fn")]:
        quantize(folder, "x", format)
        codes = numpy.load(os.path.join(folder, "x.codes.npy")).view(getattr(ml_dtypes, name)).astype(numpy.float64)
        kind = ml_dtypes.float8_e4m3fn if format == "nvfp4" else ml_dtypes.float8_e8m0fnu
        scales = numpy.load(os.path.join(folder, "x.scales.npy")).view(kind).astype(numpy.float64)
        block = BLOCKS.get(format, 32)
        t = numpy.load(os.path.join(folder, "x.tensor_scale.npy")).astype(numpy.float64) if format == "nvfp4" else 1.0
        wanted = (codes * numpy.repeat(scales, block, axis=1) * t).astype(numpy.float32)
        script.run([command, "dequantize", "x.json", "-o", "y.npy"], cwd=folder)
        script.check((numpy.load(os.path.join(folder, "y.npy")) == wanted).all(), f"{format}: other values")
        cast = numpy.asarray(x / numpy.repeat(scales * t, block, axis=1), dtype=numpy.float64)
        largest = float(ml_dtypes.finfo(getattr(ml_dtypes, name)).max)
        cast = numpy.clip(cast, -largest, largest).astype(getattr(ml_dtypes, name)).astype(numpy.float64)
        script.check((cast == codes).all(), f"{format}: other elements than ml_dtypes' rounding")
    bf16 = x.astype(ml_dtypes.bfloat16)
    numpy.save(os.path.join(folder, "h.npy"), bf16)
    script.run([command, "matmul", "h.npy", "h.npy", "-o", "d.npy", "-f", "bf16", "--d-type", "bf16"], cwd=folder)
    d = numpy.load(os.path.join(folder, "d.npy")).view(ml_dtypes.bfloat16).astype(numpy.float64)
    exact = bf16.astype(numpy.float64) @ bf16.astype(numpy.float64).T
    script.check(d.shape == (6, 6) and (abs(d - exact) <= 2.0 ** -8 * abs(exact) + 1e-5).all(), "bf16 x bf16")


script.cases("test_cli_matmul", [with_folder(case) for case in [
    codes_mean_what_was_put_in, dequantize_is_exact, a_divisor_divides, layouts_and_packings_change_nothing,
    majors_change_nothing, sparse_changes_nothing,
    scales_lie_where_the_layout_says, recipes, types_of_dequantized_numbers, packed_codes, products, epilogues,
                                                                output_types,
    input_types, threads_and_seeds, the_check_says_the_truth, a_wrong_product_is_noticed,
    a_product_that_had_no_processor_is_told, empty_matrices, nan_and_statistics,
    as_ml_dtypes_has_them]])

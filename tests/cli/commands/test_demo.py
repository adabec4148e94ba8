#!/usr/bin/env python3
"""blockscale demo: figures that must hold whatever the machine, the user's own files, and the picture."""
import json
import os
import struct
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import script

command = sys.argv[1]
SMALL = [command, "demo", "--m", "24", "--n", "40", "--k", "256", "--rounds", "1"]
SVG = "{http://www.w3.org/2000/svg}"


def write_npy(path, shape, values, descr="<f4", fortran=False):
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s,), }" % (descr, fortran, ", ".join(map(str, shape)))
    header = header.ljust(117) + "\n"
    code = {"<f4": "f", "<f8": "d", "<f2": "e", "|u1": "B", "|V2": "H"}[descr]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{code}", *values))


def rows_of(value):
    return {(row["a_format"], row["b_format"]): row for row in value["formats"]}


def figures(value):
    keys = ("a_format", "b_format", "bits_per_element", "snr_a_db", "snr_b_db", "product_error", "worst_eps",
            "within_bound")
    return [[row[key] for key in keys] for row in value["formats"]]


def the_figures_make_sense():
    value = json.loads(script.run(SMALL + ["--json"]))
    rows = rows_of(value)
    script.check(len([1 for a, b in rows if a == b]) == 13, list(rows))
    script.check(("bf16", "mxfp4") in rows and ("mxfp8_e4m3", "mxfp4") in rows, list(rows))
    for row in rows.values():
        script.check(row["within_bound"] and row["worst_eps"] <= row["allowed_eps"] and row["gflops"] > 0, row)
    error = {a: row["product_error"] for (a, b), row in rows.items() if a == b}
    script.check(error["fp32"] < 1e-6 < error["fp16"] < error["bf16"] < error["mxint8"] < error["mxfp8_e4m3"], error)
    script.check(error["mxfp8_e4m3"] < error["mxfp8_e5m2"], error)
    script.check(error["mxfp6_e2m3"] < error["nvfp4"] < error["mxfp4"] < 0.3, error)
    script.check(error["mxfp4"] * 0.5 < rows["bf16", "mxfp4"]["product_error"] < error["mxfp4"], error)
    script.check(rows["fp32", "fp32"]["snr_a_db"] is None and rows["fp32", "fp32"]["ratio_to_fp32"] == 1,
                 rows["fp32", "fp32"])
    script.check(rows["nvfp4", "nvfp4"]["bits_per_element"] == 4.5
                 and rows["bf16", "mxfp4"]["bits_per_element"] == 10.125, rows)
    for (a, b), row in rows.items():
        script.check(a == "fp32" or 10 < row["snr_a_db"] < 90, (a, row))


def the_seed_decides():
    one = [figures(json.loads(script.run(SMALL + ["--json", "--seed", seed, "--threads", threads])))
           for seed, threads in (("1", "1"), ("1", "2"), ("2", "1"))]
    script.check(one[0] == one[1] and one[0] != one[2], "figures do not follow the seed alone")


def the_table_has_every_row():
    out = script.run(SMALL)
    for name in ("mxfp8_e4m3", "mxfp4_block16", "nvfp4", "fp32", "bf16 x mxfp4"):
        script.check(any(line.startswith(name + " ") for line in out.splitlines()), f"no row {name} in {out}")
    script.check("--svg" in out and "✗" not in out, out)


def own_matrices_are_used():
    with tempfile.TemporaryDirectory() as folder:
        a, b = os.path.join(folder, "a.npy"), os.path.join(folder, "b<&>.npy")
        values = [((i * 7919) % 101 - 50) / 8 for i in range(6 * 48)]
        transposed = [values[r * 48 + c] for c in range(48) for r in range(6)]
        results = []
        for descr, fortran in (("<f4", False), ("<f8", False), ("<f2", False), ("<f4", True)):
            write_npy(a, (6, 48), transposed if fortran else values, descr, fortran)
            write_npy(b, (9, 48), [((i * 31) % 17) - 8 for i in range(9 * 48)])
            svg = os.path.join(folder, "p.svg")
            value = json.loads(script.run([command, "demo", "--a", a, "--b", b, "--rounds", "1", "--json", "--svg",
                                           svg]))
            script.check((value["a"]["rows"], value["b"]["rows"], value["b"]["columns"]) == (6, 9, 48), value)
            results.append(figures(value))
        script.check(all(result == results[0] for result in results), "the file's type or order changes the figures")
        script.check(rows_of(value)["fp16", "fp16"]["product_error"] < 1e-12, "these numbers are exact in fp16")
        xml.etree.ElementTree.parse(svg)
        write_npy(a, (2, 3), [0x3f80, 0xc000, 0x4040, 0, 0x3f00, 0x4080], "|V2")     # bf16
        script.run([command, "demo", "--a", a, "--rounds", "1"])
        script.run([command, "demo", "--b", a, "--rounds", "1"])


def tiny_numbers_get_a_tensor_scale():
    with tempfile.TemporaryDirectory() as folder:
        a = os.path.join(folder, "a.npy")
        write_npy(a, (8, 64), [(((i * 7919) % 101) - 50) * 1e-9 for i in range(512)])
        rows = rows_of(json.loads(script.run([command, "demo", "--a", a, "--rounds", "1", "--json"])))
        for name, most in (("nvfp4", 0.2), ("e4m3", 0.06), ("e5m2", 0.12)):
            script.check(rows[name, name]["product_error"] < most, rows[name, name])


def large_files_are_shortened():
    with tempfile.TemporaryDirectory() as folder:
        a = os.path.join(folder, "a.npy")
        write_npy(a, (700000, 2), [1.0] * 1400000)
        value = json.loads(script.run([command, "demo", "--a", a, "--rounds", "1", "--json"]))
        script.check(value["a"]["file_rows"] == 700000 and 0 < value["a"]["rows"] < 700000, value["a"])


def zeros_are_no_error():
    with tempfile.TemporaryDirectory() as folder:
        a = os.path.join(folder, "a.npy")
        write_npy(a, (3, 32), [0.0] * 96)
        svg = os.path.join(folder, "p.svg")
        out = script.run([command, "demo", "--a", a, "--rounds", "1", "--svg", svg])
        script.check("nan" not in out, out)
        xml.etree.ElementTree.parse(svg)
        script.check("nan" not in open(svg, encoding="utf-8").read(), "nan in the picture")


def bad_files_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        path, other, svg = (os.path.join(folder, name) for name in ("a.npy", "b.npy", "p.svg"))
        write_npy(other, (5, 32), [1.0] * 160)
        cases = [((4, 31), [1.0] * 124, "<f4"), ((128,), [1.0] * 128, "<f4"), ((2, 2, 32), [1.0] * 128, "<f4"),
                 ((0, 32), [], "<f4"), ((4, 32), [1.0] * 127 + [float("nan")], "<f4"),
                 ((4, 32), [1.0] * 127 + [float("inf")], "<f2"),
                 ((4, 32), [1.0] * 127 + [1e300], "<f8"), ((4, 32), [1] * 128, "|u1")]
        for shape, values, descr in cases:
            write_npy(path, shape, values, descr)
            script.run([command, "demo", "--a", path, "--b", other, "--svg", svg, "--rounds", "1"], expect=3)
            script.check(sorted(os.listdir(folder)) == ["a.npy", "b.npy"], os.listdir(folder))
        script.run([command, "demo", "--a", os.path.join(folder, "none.npy")], expect=3)
        write_npy(path, (32, 5), [1.0] * 160)
        done = script.run([command, "demo", "--a", other, "--b", path, "--rounds", "1"], expect=3)
        script.check(done == "", done)


def wrong_usage_is_refused():
    for options in (["--m", "0"], ["--k", "x"], ["--rounds", "0"], ["--a"], ["--a", ""], ["x.npy"], ["--svg", ""]):
        script.run([command, "demo"] + options, expect=2)


def the_picture_is_well_laid_out():
    """Well-formed, all of it on the page, and no two texts on top of each other."""
    for seed in ("1", "2", "3"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "picture.svg")
            script.run(SMALL + ["--svg", path, "--seed", seed])
            root = xml.etree.ElementTree.parse(path).getroot()
        width, height = float(root.get("width")), float(root.get("height"))
        boxes = []
        for text in root.iter(SVG + "text"):
            words = "".join(text.itertext())
            size, x, y = (float(text.get(key)) for key in ("font-size", "x", "y"))
            length = 0.5 * size * len(words)
            left = x - {"middle": length / 2, "end": length}.get(text.get("text-anchor"), 0)
            if "transform" in text.attrib:
                continue
            script.check(0 <= left and left + length <= width and size < y <= height, f"{words!r} leaves the page")
            boxes.append((left, y - 0.7 * size, left + length, y, words))
        for i, a in enumerate(boxes):
            for b in boxes[:i]:
                apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
                script.check(apart, f"seed {seed}: {a[4]!r} lies on {b[4]!r}")
        names = {box[4] for box in boxes}
        script.check({"nvfp4", "mxfp4", "bf16 x mxfp4", "GFLOP/s"} <= names, names)


script.cases("test_cli_demo", [the_figures_make_sense, the_seed_decides, the_table_has_every_row, own_matrices_are_used,
                               tiny_numbers_get_a_tensor_scale,
                               large_files_are_shortened, zeros_are_no_error, bad_files_are_refused,
                               wrong_usage_is_refused,
                               the_picture_is_well_laid_out])

"""blockscale layout: the table, the JSON and the picture say where each scale lies, and say the same."""
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import script

BLOCKSCALE = os.path.abspath(sys.argv[1])
LAYOUTS = ["linear", "linear:11", "128x4", "8x4", "tiles:3x5", "tiles:32x8", "sm120_padded", "cdna4_16", "cdna4_32",
           "aiter", "deepgemm",
           "gguf_mxfp4", "gguf_nvfp4", "gguf_nvfp4:120"]
SHAPES = [(1, 1), (33, 9), (130, 6), (40, 10)]


def layout(name, rows, columns, *options, expect=0):
    return script.run([BLOCKSCALE, "layout", name, "--rows", str(rows), "--cols", str(columns), *options],
                      expect=expect)


def read(name, rows, columns):
    return json.loads(layout(name, rows, columns, "--json"))


def kind(name):
    """The name of the layout, which names from elsewhere stand for."""
    return "linear" if name == "sm120_padded" else name.split(":")[0]


def evaluate(told, row, column):
    """The formula, computed by Python."""
    pitch = told["pitch"] or told["columns"]
    if not told["pitch"] and told["layout"] == "gguf_mxfp4":
        pitch = 17 * told["columns"]
    if not told["pitch"] and told["layout"] == "gguf_nvfp4":
        pitch = 36 * -(-told["columns"] // 4)
    text = re.sub(r"ceil\((\w+)/(\w+)\)", r"(-(-\1//\2))", told["formula"].split(",")[0])
    text = re.sub(r"(?<!/)/(?!/)", "//", text)
    return eval(text, {"r": row, "s": column, "R": told["rows"], "S": told["columns"], "pitch": pitch,
                       "TR": told["tile_rows"],
                       "TC": told["tile_columns"]})


def shapes_of(name):
    for rows, columns in SHAPES:
        if not (name.startswith("linear:") and columns > 11):
            yield rows, columns


def json_holds_the_byte_of_every_scale():
    for name in LAYOUTS:
        for rows, columns in shapes_of(name):
            told = read(name, rows, columns)
            offsets = told["offsets"]
            script.check(kind(name) == told["layout"] and (told["rows"], told["columns"]) == (rows, columns),
                         f"{name}: header")
            script.check(len(offsets) == rows and all(len(row) == columns for row in offsets),
                         f"{name}: size of offsets")
            for row in range(rows):
                for column in range(columns):
                    where = f"{name} {rows} x {columns}: ({row}, {column})"
                    script.check(offsets[row][column] == evaluate(told, row, column), where)
            flat = [offset for row in offsets for offset in row]
            script.check(len(set(flat)) == len(flat) and min(flat) == 0 and max(flat) < told["bytes"], f"{name}: bytes")


def table_cells(text):
    """(row, column): (byte, padding) of the table of offsets, whose columns stand below one another where there are
    many."""
    cells, columns = {}, []
    for line in text.split("The byte of each scale")[1].split("What lies in memory")[0].splitlines()[1:]:
        words = line.split()
        if not words or words[0] == "⋮":
            continue
        if words[0] == "row":
            columns = [word.replace("s=", "") for word in words[1:]]
            continue
        script.check(len(words) == len(columns) + 1,
                     f"a line of {len(words)} words under {len(columns) + 1} titles: {line}")
        for column, word in zip(columns, words[1:]):
            if column != "…":
                cells[int(words[0]), int(column)] = (int(word.strip("()")), word.startswith("("))
    return cells


def memory_cells(text):
    """byte: (row, column, padding), from the lines of memory."""
    cells = {}
    for line in text.split("What lies in memory")[1].split("\n\n")[1].splitlines()[1:]:
        if line.strip() == "⋮":
            continue
        if line.split()[0].isdigit():         # else the line before goes on
            byte = int(line.split()[0])
        for item in re.findall(r"\[\d+ bytes [a-z ]+\]|\(?r\d+ s[\d,-]+\)?", line):
            if item.startswith("["):
                byte += int(item[1:].split()[0])
                continue
            row, columns = re.match(r"\(?r(\d+) s([\d,-]+)", item).groups()
            for span in columns.split(","):
                first, last = int(span.split("-")[0]), int(span.split("-")[-1])
                for column in range(first, last + 1):
                    cells[byte] = (int(row), column, item.startswith("("))
                    byte += 1
    return cells


def the_table_and_memory_agree_with_json():
    for name in LAYOUTS:
        for rows, columns in shapes_of(name):
            told, text = read(name, rows, columns), layout(name, rows, columns, "--all")
            cells, memory = table_cells(text), memory_cells(text)
            positions = told["padded_rows"] * told["padded_columns"]
            script.check(len(cells) == len(memory) == positions,
                         f"{name} {rows} x {columns}: {len(cells)}, {len(memory)}")
            for (row, column), (byte, padding) in cells.items():
                script.check(padding == (row >= rows or column >= columns), f"{name}: padding at ({row}, {column})")
                script.check(padding or byte == told["offsets"][row][column], f"{name}: byte of ({row}, {column})")
                script.check(memory[byte] == (row, column, padding), f"{name}: what lies at {byte}")


def what_is_left_out_is_counted_right():
    """Without --all the same numbers, fewer of them; the picture says how many rows it left out."""
    for name in LAYOUTS:
        for rows, columns in [(300, 40), (33, 90)]:
            if name in ("linear:11", "gguf_nvfp4:120"):
                continue
            told, text = read(name, rows, columns), layout(name, rows, columns)
            cells, memory = table_cells(text), memory_cells(text)
            script.check(0 < len(cells) < 40 * 17 and len({row for row, _ in cells}) <= 40,
                         f"{name}: {len(cells)} cells")
            for (row, column), (byte, padding) in cells.items():
                script.check(padding or byte == told["offsets"][row][column], f"{name}: byte of ({row}, {column})")
            for byte, (row, column, padding) in memory.items():
                script.check(padding == (row >= rows or column >= columns), f"{name}: padding at byte {byte}")
                script.check(padding or byte == told["offsets"][row][column], f"{name}: byte {byte}")
            last = told["padded_rows"] - 1, told["padded_columns"] - 1
            script.check((0, 0) in cells and last in cells, f"{name}: first and last scale are shown")
            with tempfile.TemporaryDirectory() as folder:
                drawing = draw(folder, name, rows, columns)
            shown = len({row for row, _ in cells})
            left_out = sum(int(n) for n in re.findall(r"(\d+) more rows?<", drawing))
            script.check(shown + left_out == told["padded_rows"], f"{name}: {shown} rows and {left_out} left out")


def draw(folder, name, rows, columns, *options):
    path = os.path.join(folder, "map.svg")
    layout(name, rows, columns, "--svg", path, *options)
    with open(path, encoding="utf-8") as file:
        return file.read()


def the_picture_agrees_with_json():
    space = "{http://www.w3.org/2000/svg}"
    with tempfile.TemporaryDirectory() as folder:
        for name in LAYOUTS:
            for rows, columns in shapes_of(name):
                told = read(name, rows, columns)
                root = xml.etree.ElementTree.fromstring(draw(folder, name, rows, columns, "--all"))
                seen = {}
                for cell in root.iter(space + "g"):
                    title, label = cell.find(space + "title").text, cell.find(space + "text").text
                    row, column, byte = map(int, re.match(r"row (\d+), column (\d+): byte (\d+)", title).groups())
                    padding = row >= rows or column >= columns
                    script.check(padding or byte == told["offsets"][row][column], f"{name}: {title}")
                    script.check(title.endswith(", padding") == padding
                                 and len(cell.findall(space + "rect")) == 1 + padding,
                                 f"{name}: padding of {title}")
                    seen.setdefault(byte, set()).add(label)
                    script.check(label in (str(byte), f"{row},{column}"), f"{name}: label {label} of {title}")
                script.check(len(seen) == told["padded_rows"] * told["padded_columns"],
                             f"{name}: {len(seen)} bytes drawn")
                script.check(all(len(labels) == 2 for labels in seen.values()),
                             f"{name}: not every byte is drawn on both sides")
                width, height = float(root.get("width")), float(root.get("height"))
                for rect in root.iter(space + "rect"):
                    right, bottom = (float(rect.get(a, 0)) + float(rect.get(b))
                                     for a, b in (("x", "width"), ("y", "height")))
                    script.check(right <= width and bottom <= height, f"{name}: a cell off the page")


def rows_padded_to_16_bytes_are_those_of_quack():
    """QuACK's pages of sm_120: (M, padded columns, 1), rows of 16 ceil(S/16) bytes."""
    told = read("sm120_padded", 128, 20)
    script.check(told["offsets"][1][16] == 48 and told["pitch"] == 32,
                 f"(row 1, column 16) at {told['offsets'][1][16]}")
    script.check(read("SM120_PAGES", 128, 20)["offsets"] == told["offsets"], "sm120_pages is another layout")
    script.check("layout    sm120_padded" in layout("sm120_padded", 128, 20), "the name is not printed")


def large_shapes_are_quick_and_right():
    text = layout("128x4", 2**33 + 1, 90)
    cells = table_cells(text)
    script.check(cells[2**33 + 127, 0] == ((2**26 * 23) * 512 + 31 * 16 + 12, True), "the last row of 2^33")
    script.check(f"size      {(2**33 + 128) * 92} bytes" in text, "size of 2^33 rows")
    layout("sm120_padded", 2**40, 2**20, "--svg", "/dev/null")
    layout("tiles:1000000x3", 5, 2**40)


def what_cannot_be_is_refused():
    layout("128x5", 1, 1, expect=2)
    layout("128x4", 0, 1, expect=2)
    layout("128x4", 1, -1, expect=2)
    layout("linear:3", 2, 4, expect=3)
    layout("128x4", 2**62, 8, expect=3)
    layout("128x4", 2, 4, "--svg", "/no/such/folder/map.svg", expect=3)
    script.run([BLOCKSCALE, "layout"], expect=2)


def told_bytes(path):
    with open(path, encoding="utf-8") as file:
        return re.findall(r"<title>(.*?)</title>", file.read())


def the_page_of_layouts_is_true():
    """docs/guide/layouts.md: every formula, every printed map, and the pictures are what the command gives."""
    docs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "guide")
    with open(os.path.join(docs, "layouts.md"), encoding="utf-8") as file:
        page = file.read()
    for name in {kind(layout) for layout in LAYOUTS}:
        told = read("tiles:3x5" if name == "tiles" else name, 1, 1)
        formula = told["formula"].split(",")
        script.check(f"| [{name}](#{name}) |" in page and f"\n## {name}\n" in page, f"{name} is missing")
        script.check("`" + formula[0] + "`" + ",".join([""] + formula[1:]) in page, f"{name}: another formula")
    blocks = re.findall(r"^    \$ (blockscale layout .*)\n((?:    .*\n|\n(?=    ))*)", page, re.M)
    script.check(len(blocks) >= 10, f"{len(blocks)} commands")
    with tempfile.TemporaryDirectory() as folder:
        for command, printed in blocks:
            words = command.split()[1:]
            picture = os.path.basename(words[-1]) if "--svg" in words else None
            if picture:
                words[-1] = os.path.join(folder, picture)
            output = script.run([BLOCKSCALE, *words], expect=1 if "does not fit" in printed else 0)
            wanted = re.sub(r"^    ", "", printed, flags=re.M)
            script.check(wanted in output, f"another output: {command}")
            if picture:
                script.check(told_bytes(words[-1]) == told_bytes(os.path.join(docs, picture)),
                             f"another picture: {picture}")


COPIES = ["tcgen05.cp", "tma", "ldmatrix", "mfma_16", "mfma_32"]


def fits_answers_in_words_and_as_json():
    for name in LAYOUTS:
        for rows, columns in [(130, 6)]:
            fits = {}
            for copy in COPIES:
                command = [BLOCKSCALE, "layout", name, "--rows", str(rows), "--cols", str(columns)]
                done = subprocess.run([*command, "--fits", copy, "--json"], capture_output=True, text=True,
                                      check=False)
                fits[copy], = json.loads(done.stdout)["copies"]
                script.check(done.returncode == (0 if fits[copy]["fits"] else 1), f"{name} {copy}: {done}")
            status = 0 if all(fit["fits"] for fit in fits.values()) else 1
            told = json.loads(layout(name, rows, columns, "--fits", "all", "--json", expect=status))
            script.check({copy["copy"]: copy for copy in told["copies"]} == fits, f"{name}: all is not each")
            plain = " ".join(layout(name, rows, columns, "--fits", "all", expect=status).split())
            script.check(told["modes"] in plain, f"{name}: modes")
            for copy, fit in fits.items():
                answer = "fits: " + fit["how"] if fit["fits"] else "does not fit: " + fit["rule"]
                script.check(f"{copy} {answer}" in plain, f"{name}: {copy} {answer}")
    told = json.loads(layout("128x4", 256, 8, "--fits", "tma", "--json"))["copies"][0]
    script.check((told["dimensions"], told["strides"], told["box"], told["rows"], told["columns"])
                 == ([256, 2, 2, 2], [256, 512, 1024], [256, 2, 1, 1], 128, 4), f"{told}")
    layout("128x4", 256, 8, "--fits", "wgmma", expect=2)
    layout("128x4", 256, 8, "--fits", "tma", "--all", expect=2)
    layout("128x4", 256, 8, "--fits", "tma", "--svg", "/dev/null", expect=2)
    layout("linear:3", 2, 4, "--fits", "tma", expect=3)


if __name__ == "__main__":
    script.cases("test_layout_verb", [
        json_holds_the_byte_of_every_scale, the_table_and_memory_agree_with_json, what_is_left_out_is_counted_right,
        rows_padded_to_16_bytes_are_those_of_quack,
        the_picture_agrees_with_json, large_shapes_are_quick_and_right, the_page_of_layouts_is_true,
        what_cannot_be_is_refused, fits_answers_in_words_and_as_json])

#!/usr/bin/env python3
"""What the instructions of each kernel were checked against: a row for each kernel of the PTX in FATBIN..., from
cudasim's table of instructions: forms in the kernel, those of them that ran on hardware, those that compilers' kernels
have, and those that rest on the manual alone, by name.

usage: manual_forms.py FATBIN..."""
import os
import re
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../cudasim/docs/instructions.md")
PIECES = {"{": "(?:", "}": ")?", "(": "(?:", ")": ")", "|": "|"}


def pattern_of(form, types):
    """`{.a|.b}` may be left out, `(.a|.b)` may not, `$1` is a type, `#` a number."""
    words = re.findall(r"\$\d|[{}()|#]|[^{}()|#$]+", form)
    types = "(?:%s)" % "|".join(map(re.escape, types))
    return re.compile("".join(PIECES.get(w) or (types if w[0] == "$" else r"\d+" if w == "#" else re.escape(w))
                              for w in words) + "$")


def table():
    with open(TABLE, encoding="utf-8") as lines:
        for line in lines:
            row = re.match(r"\| `(.*?)` \| (.*?) \| .* \| (.*?) \|$", line)
            if row:
                yield pattern_of(row.group(1).replace("\\|", "|"), row.group(2).split()), row.group(3)


def kernels_of(path):
    """(name, forms)"""
    with open(path, "rb") as file:
        content = file.read()
    text = content[content.index(b".version"):].split(b"\0")[0].decode()
    parts = re.split(r"\.visible \.entry (\w+)\(", text)
    for name, body in zip(parts[1::2], parts[2::2]):
        statements = (statement for line in body.splitlines() for statement in line.split(";"))
        found = (re.match(r"\s*(?:\{\s*)?(?:@!?%?\w+\s+)?([a-z][\w.:]*)", statement) for statement in statements)
        yield name, {match.group(1) for match in found if match}


def main():
    rows = list(table())
    print("| kernel | forms | on hardware | in compilers' kernels | manual alone |\n|---|---|---|---|---|")
    for path in sys.argv[1:]:
        for name, forms in kernels_of(path):
            said = {form: " ".join(checked for pattern, checked in rows if pattern.match(form)) for form in forms}
            known = {form for form in forms if said[form]}
            hardware = {form for form in known if "hardware" in said[form]}
            alone = sorted(form for form in known - hardware if "compilers" not in said[form])
            print("| %s | %d | %d | %d | %d: %s |" % (name, len(known), len(hardware),
                                                      len(known) - len(hardware) - len(alone), len(alone),
                                                      ", ".join(alone)))


main()

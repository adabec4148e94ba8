#!/usr/bin/env python3
"""Makes src/blockscale/_declarations.py from the public headers: what cffi reads to call the C library.

    declarations.py            writes the file
    declarations.py --check    exit status 1 if the file is not what the headers give now

cffi reads C without a preprocessor, so comments, conditionals and BSM_API are taken out; numbers that the headers
define stay.  Nothing is typed by hand: whoever changes a header runs this."""
from __future__ import annotations

import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = os.path.join(os.path.dirname(HERE), "include")
RESULT = os.path.join(HERE, "src", "blockscale", "_declarations.py")

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
NUMBER = re.compile(r"#define\s+(BSM_\w+)\s+\(?(-?\w+)\)?\s*$")


def headers() -> list[str]:
    """The small headers, in the order in which blockscale.h includes them and they include one another."""
    order: list[str] = []

    def take(path: str) -> None:
        if path in order:
            return
        with open(path, encoding="utf-8") as file:
            included = re.findall(r'#include "([^"]+)"', file.read())
        for name in included:
            take(os.path.join(os.path.dirname(path), name))
        order.append(path)

    take(os.path.join(HEADERS, "blockscale.h"))
    return order[:-1]


def declarations(path: str) -> str:
    """The declarations of one header as cffi takes them."""
    with open(path, encoding="utf-8") as file:
        text = COMMENT.sub("", file.read())
    lines: list[str] = []
    in_cplusplus = False
    for line in text.splitlines():
        if line.startswith("#ifdef __cplusplus"):
            in_cplusplus = True
        elif in_cplusplus:
            in_cplusplus = not line.startswith("#endif")
        elif line.startswith("#"):
            number = NUMBER.match(line)
            if number:
                lines.append(f"#define {number.group(1)} {number.group(2)}")
        elif line.strip():
            lines.append(line.rstrip().replace("BSM_API ", ""))
    return "\n".join(lines) + "\n"


def module() -> str:
    """The text of _declarations.py."""
    parts = [f"/* {os.path.basename(path)} */\n{declarations(path)}" for path in headers()]
    return ('"""The C library\'s declarations.  Made by python/declarations.py from include/blockscale: not edited.'
            '"""\n\n'
            'CDEF = """\n' + "\n".join(parts) + '"""\n')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    made = module()
    if options.check:
        with open(RESULT, encoding="utf-8") as file:
            current = file.read() == made
        if not current:
            print(f"{RESULT} is not what the headers give: run python/declarations.py", file=sys.stderr)
        return 0 if current else 1
    with open(RESULT, "w", encoding="utf-8") as file:
        file.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())

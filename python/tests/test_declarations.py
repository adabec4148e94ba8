"""The declarations that cffi reads: current, complete, and of the same sizes as a C compiler's."""
import os
import re
import shutil
import subprocess
import sys

import pytest

from blockscale._library import ffi, lib

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
HEADERS = os.path.join(SOURCE, "include", "blockscale")
sys.path.insert(0, os.path.dirname(HERE))
import declarations                                        # noqa: E402


def header_text():
    parts = []
    for name in sorted(os.listdir(HEADERS)):
        with open(os.path.join(HEADERS, name), encoding="utf-8") as file:
            parts.append(re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL))
    return "\n".join(parts)


def test_the_result_is_current():
    with open(declarations.RESULT, encoding="utf-8") as file:
        assert file.read() == declarations.module(), "run python/declarations.py"


def test_a_changed_result_is_noticed(tmp_path):
    changed = tmp_path / "declarations.py"
    shutil.copy(declarations.RESULT, changed)
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    declarations_result, declarations.RESULT = declarations.RESULT, str(changed)
    try:
        sys.argv[1:] = ["--check"]
        assert declarations.main() == 1
    finally:
        declarations.RESULT = declarations_result


def test_every_function_is_declared_and_there():
    functions = re.findall(r"BSM_API\s[^;(]*?(bsm_\w+)\s*\(", header_text())
    assert len(functions) > 100
    for name in functions:
        assert ffi.typeof(getattr(lib, name)).kind == "function", name


def test_functions_are_those_of_the_list_of_symbols():
    with open(os.path.join(SOURCE, "abi", "symbols.txt"), encoding="utf-8") as file:
        symbols = {line.strip() for line in file if line.startswith("bsm_")}
    declared = set(re.findall(r"BSM_API\s[^;(]*?(bsm_\w+)\s*\(", header_text()))
    assert declared == symbols


def structs():
    """Name and fields of every struct with fields."""
    found = []
    for name in ffi.list_types()[0]:
        kind = ffi.typeof(name + " *")                     # a function has a type by its pointer alone
        kind = kind.item if kind.kind == "pointer" else kind
        if kind.kind == "struct" and kind.fields:
            found.append((name, [field for field, _ in kind.fields]))
    return found


def enumerators():
    text = header_text()
    names = []
    for body in re.findall(r"enum\s*\w*\s*\{(.*?)\}", text, flags=re.DOTALL):
        names += re.findall(r"\b(BSM_\w+)\b(?=\s*(?:=|,|$|\s))", re.sub(r"=[^,]*", "", body))
    return sorted(set(names))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: cc")
def test_sizes_offsets_and_enumerators_are_the_compilers(tmp_path):
    lines, expected = [], []
    for name, fields in structs():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {ffi.sizeof(name)}")
        for field in fields:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
                         f'sizeof((({name} *)0)->{field}));')
            kind = dict(ffi.typeof(name).fields)[field]
            expected.append(f"{name}.{field} {kind.offset} {ffi.sizeof(kind.type)}")
    for name in enumerators():
        lines.append(f'printf("{name} %lld\\n", (long long){name});')
        expected.append(f"{name} {getattr(lib, name)}")
    source = tmp_path / "sizes.c"
    source.write_text("#include <blockscale.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n"
                      + "\n".join(lines) + "\n}\n", encoding="utf-8")
    subprocess.run(["cc", "-I" + os.path.dirname(HEADERS), "-o", str(tmp_path / "sizes"), str(source)], check=True)
    printed = subprocess.run([str(tmp_path / "sizes")], check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(structs()) >= 20 and len(enumerators()) > 100
    assert printed == expected

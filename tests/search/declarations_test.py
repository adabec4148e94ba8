#!/usr/bin/env python3
"""The structs of library.py against the public headers, by a C program made here: sizes, and every field's place.

    declarations_test.py COMPILER"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import library                                         # noqa: E402

HEADERS = ["device.h", "matmul.h", "matrix.h", "quantize.h", "scale_layout.h"]
ENUMERATORS = {"BSM_PER_TENSOR": library.PER["tensor"], "BSM_PER_ROW": library.PER["row"],
               "BSM_PER_COLUMN": library.PER["column"],
               "BSM_PER_BATCH": library.PER["batch"], "BSM_GATE_NONE": library.GATES["none"],
               "BSM_GATE_INTERLEAVED": library.GATES["interleaved"], "BSM_GATE_SPLIT": library.GATES["split"],
               "BSM_NONFINITE_PROPAGATE": library.NONFINITE["propagate"],
               "BSM_NONFINITE_SATURATE": library.NONFINITE["saturate"],
               "BSM_BACKEND_CPU": library.CPU, "BSM_BACKEND_CUDA": library.CUDA,
               "BSM_EUNSUPPORTED": library.EUNSUPPORTED,
               "BSM_EDEVICE": library.EDEVICE, "BSM_EINVAL": library.EINVAL,
               "BSM_COMPUTE_FAST": library.COMPUTES["fast"],
               "BSM_COMPUTE_TF32": library.COMPUTES["tf32"],
               "BSM_ORDER_ANY": 1, "BSM_ORDER_PORTABLE": 2,
               "BSM_TENSOR_SCALE_DIVIDES": 1, "BSM_TENSOR_SCALE_COMPUTED": 1, "BSM_ROUND_STOCHASTIC": 1}


def expected():
    """Lines that the program must print."""
    lines = []
    for name, struct in library.STRUCTS.items():
        lines.append("%s %d" % (name, library.ctypes.sizeof(struct)))
        for field in struct._fields_:
            place = getattr(struct, field[0])
            lines.append("%s.%s %d %d" % (name, field[0], place.offset, place.size))
    return lines + ["%s %d" % item for item in ENUMERATORS.items()]


def program():
    text = "#include <stdio.h>\n#include <stddef.h>\n"
    text += "".join('#include "blockscale/%s"\n' % name for name in HEADERS)
    text += "int main(void)\n{\n"
    for name, struct in library.STRUCTS.items():
        text += '    printf("%s %%zu\\n", sizeof(%s));\n' % (name, name)
        for field in struct._fields_:
            text += '    printf("%s.%s %%zu %%zu\\n", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n' % (
                name, field[0], name, field[0], name, field[0])
    for name in ENUMERATORS:
        text += '    printf("%s %%d\\n", (int)%s);\n' % (name, name)
    return text + "    return 0;\n}\n"


def main():
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "sizes.c"), os.path.join(folder, "sizes")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program())
        subprocess.run([sys.argv[1], "-I" + os.path.join(SOURCE, "include"), "-o", binary, source], check=True)
        got = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()
    wrong = [(want, have) for want, have in zip(expected(), got) if want != have]
    for want, have in wrong:
        print("library.py has \"%s\", the headers have \"%s\"" % (want, have), file=sys.stderr)
    failed = len(wrong) + (len(got) != len(expected()))
    print("search_declarations: %d passed, %d failed" % (len(got) - len(wrong), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

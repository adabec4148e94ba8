#!/usr/bin/env python3
"""docs/newcomer.md says what happens: its commands are run, and what they print is what the page shows.

usage: test_newcomer.py CUDASIM DOCS [--write]     --write puts what the commands print into the page
"""
import os
import re
import struct
import subprocess
import sys
import tempfile


def numbers_file(path, values, kind="f"):
    header = "{'descr': '<%s', 'fortran_order': False, 'shape': (%d,), }" % ({"f": "f4", "e": "f2"}[kind], len(values))
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%d%s" % (len(values), kind), *values))


def run(command, folder, docs):
    """A line of the page, with /tmp/ replaced by a folder of this test's own."""
    command = command.replace("/tmp/", folder + "/")
    done = subprocess.run(["bash", "-c", command], cwd=docs, capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).replace(folder + "/", "/tmp/")


def block(page, name):
    return re.search(r"```%s\n(.*?)```" % name, page, re.S)


def main():
    cudasim, docs = os.path.abspath(sys.argv[1]), sys.argv[2]
    write = sys.argv[3:] == ["--write"]
    path = os.path.join(docs, "newcomer.md")
    page = open(path).read()
    commands = [line for shell in re.findall(r"```sh\n(.*?)```", page, re.S) for line in shell.splitlines()]
    assert len(commands) == 9 and commands[0].startswith("python3") and commands[5].startswith("python3"), commands
    failures = []

    def check(ok, what):
        if not ok:
            failures.append(what)

    for name, kernel in (("ptx", "scale.ptx"), ("ptx-product", "product.ptx")):
        check(block(page, name).group(1) in open(os.path.join(docs, kernel)).read(),
              "the kernel shown is not in " + kernel)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/bin")
        os.symlink(cudasim, folder + "/bin/cudasim")
        os.environ["PATH"] = folder + "/bin:" + os.environ["PATH"]
        # what the first command makes, without numpy
        numbers_file(folder + "/x.npy", [float(i) for i in range(128)])
        numbers_file(folder + "/a.npy", [float(i % 7) for i in range(2048)], "e")     # the sixth command
        numbers_file(folder + "/b.npy", [float(i % 5) for i in range(128)], "e")
        for command, name, wanted in ((1, "report", 1), (2, None, 0), (3, None, 0), (4, "mutants", 0),
                                      (6, "report-product", 1),
                                      (7, None, 0), (8, None, 0)):
            status, text = run(commands[command], folder, docs)
            check(status == wanted, "%s: exit status %d instead of %d\n%s" % (commands[command], status, wanted, text))
            for number, file in ((1, "y.npy"), (6, "d.npy")):
                check(command != number or not os.path.exists(os.path.join(folder, file)),
                      file + " is written in spite of the report")
            if name is not None and write:
                page = page.replace(block(page, name).group(0), "```%s\n%s```" % (name, text))
            elif name is not None:
                check(block(page, name).group(1) == text, "the page does not show what is printed:\n%s" % text)
        numbers = struct.unpack("<128f", open(folder + "/y.npy", "rb").read()[-512:])
        check(numbers == tuple(2.0 * i for i in range(128)), "y.npy: %r" % (numbers,))
        products = struct.unpack("<1024f", open(folder + "/d.npy", "rb").read()[-4096:])
        for i in range(1024):
            exact = sum((i // 8 * 16 + k) % 7 * ((i % 8 * 16 + k) % 5) for k in range(16))
            check(products[i] == exact, "d.npy: %g is number %d, not %d" % (products[i], i, exact))
    if write:
        open(path, "w").write(page)
    for failure in failures:
        print(failure)
    print("test_cudasim_newcomer: %d passed, %d failed, 0 skipped" % (not failures, bool(failures)))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())

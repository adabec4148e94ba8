#!/usr/bin/env python3
"""The kernels for tensor memory spill nothing, and have no more registers and stack than is written here; what they multiply by is in
their PTX.

usage: test_registers.py PTXAS FATBIN..."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import script
from script import check

MOST_REGISTERS = 200                                   # of 255 that 256 threads may have
MOST_STACK = {True: 64, False: 0}                      # products of codes: two arrays of quantizing D where no quick way decides
KINDS = {"f16": "kind::f16", "mxf8f6f4": "kind::mxf8f6f4.block_scale.block32", "mxf4": "kind::mxf4.block_scale.block32",
         "mxf4nvf4": "kind::mxf4nvf4.block_scale.block16"}
KERNEL = re.compile(r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
                    r".*?Used (\d+) registers", re.S)


def ptx_of(path):
    """The text in a fatbin that was not compressed."""
    content = open(path, "rb").read()
    begin = content.index(b".version")
    return content[begin:content.index(b"\0", begin)].decode()


def what_ptxas_says(path):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "kernels.ptx")
        with open(source, "w", encoding="utf-8") as file:
            file.write(ptx_of(path))
        done = subprocess.run([sys.argv[1], "-v", "-arch", "sm_100f", "--fmad", "false", "-o", os.path.join(folder, "cubin"), source],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(done.returncode == 0, done.stdout)
    return done.stdout


def nothing_is_spilled():
    for path in sys.argv[2:]:
        kernels = KERNEL.findall(what_ptxas_says(path))
        check(len(kernels) >= 4, "%s: %d kernels" % (path, len(kernels)))
        for name, stack, stores, loads, registers in kernels:
            check(stores == loads == "0" and int(stack) <= MOST_STACK["_f16_" not in name],
                  "%s: stack %s, spills %s and %s bytes" % (name, stack, stores, loads))
            check(int(registers) <= MOST_REGISTERS, "%s: %s registers, not at most %d" % (name, registers, MOST_REGISTERS))


def each_kernel_has_products_of_its_kind():
    for path in sys.argv[2:]:
        for part in re.split(r"\.visible \.entry bsmi_gemm_", ptx_of(path))[1:]:
            kind, tile = re.match(r"(\w+?)_(\d+x\d+)\(", part).groups()
            group = "cta_group::2" if tile.startswith("256") else "cta_group::1"
            products = re.findall(r"tcgen05\.mma\.(cta_group::\d)\.(kind::[\w.]+(?:::\w+)?)", part)
            check(len(products) == 4, "%s: %d products" % (tile, len(products)))
            for found, words in products:
                check(found == group and words.startswith(KINDS[kind] + ".collector"), "%s_%s: %s.%s" % (kind, tile, found, words))
            check(("tcgen05.cp." in part) == (kind != "f16"), "%s_%s: copies of scales" % (kind, tile))


script.cases("test_registers", [nothing_is_spilled, each_kernel_has_products_of_its_kind])

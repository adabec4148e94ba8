#!/usr/bin/env python3
"""The kernels for tensor memory spill nothing, and have no more registers and stack than is written here; what they multiply by is in
their PTX.

What ptxas made of them is read in their cubins: section .nv.info has records of a format, an attribute, a size and, of these two, the
number of a symbol and a number.  NVIDIA does not document them; for nvcc 13.0's they are what ptxas -v says.  Whatever is spilled has a
place in the stack frame, which is then larger than the arrays that the PTX declares.

usage: test_registers.py FATBIN..."""
import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import script
from script import check

MOST_REGISTERS = 208                                   # of 255 that 256 threads may have
MOST_STACK = {True: 64, False: 0}                      # products of codes: two arrays of quantizing D where no quick way decides
KINDS = {"f16": "kind::f16", "mxf8f6f4": "kind::mxf8f6f4.block_scale.block32", "mxf4": "kind::mxf4.block_scale.block32",
         "mxf4nvf4": "kind::mxf4nvf4.block_scale.block16"}
OF_A_SYMBOL, FRAME_BYTES, REGISTERS = 4, 0x11, 0x2f


def ptx_of(path):
    """The text in a fatbin that was not compressed."""
    content = open(path, "rb").read()
    begin = content.index(b".version")
    return content[begin:content.index(b"\0", begin)].decode()


class Cubin:
    """The ELF file in a fatbin."""

    def __init__(self, path):
        content = open(path, "rb").read()
        self.bytes = content[content.index(b"\x7fELF"):]
        begin, = struct.unpack_from("<Q", self.bytes, 40)
        count, names = struct.unpack_from("<HH", self.bytes, 60)
        headers = [struct.unpack_from("<IIQQQQ", self.bytes, begin + 64 * i) for i in range(count)]
        self.sections = {self.text(headers[names][4] + header[0]): header[4:] for header in headers}

    def text(self, at): return self.bytes[at:self.bytes.index(b"\0", at)].decode()

    def symbol(self, number):
        name, = struct.unpack_from("<I", self.bytes, self.sections[".symtab"][0] + 24 * number)
        return self.text(self.sections[".strtab"][0] + name)

    def numbers(self, wanted):
        """{symbol: number} of an attribute."""
        found = {}
        at, size = self.sections[".nv.info"]
        end = at + size
        while at < end:
            kind, attribute, length = struct.unpack_from("<BBH", self.bytes, at)
            if (kind, attribute) == (OF_A_SYMBOL, wanted):
                symbol, number = struct.unpack_from("<II", self.bytes, at + 4)
                found[self.symbol(symbol)] = number
            at += 4 + (length if kind == OF_A_SYMBOL else 0)
        return found


def nothing_is_spilled():
    for path in sys.argv[1:]:
        cubin = Cubin(path)
        registers, frames = cubin.numbers(REGISTERS), cubin.numbers(FRAME_BYTES)
        text = ptx_of(path)
        arrays = sum(int(count) for count in re.findall(r"\.local [^;]*\.b8\s+\w+\[(\d+)\];", text))
        kernels = re.findall(r"\.visible \.entry (\w+)\(", text)
        check(len(kernels) >= 4, "%s: %d kernels" % (path, len(kernels)))
        for name in kernels:
            check(frames[name] <= min(arrays, MOST_STACK["_f16_" not in name]),
                  "%s: %d bytes of stack, where all arrays have %d" % (name, frames[name], arrays))
            check(0 < registers[name] <= MOST_REGISTERS, "%s: %d registers, not at most %d" % (name, registers[name], MOST_REGISTERS))


def each_kernel_has_products_of_its_kind():
    for path in sys.argv[1:]:
        for part in re.split(r"\.visible \.entry bsmi_gemm_", ptx_of(path))[1:]:
            kind, tile = re.match(r"(\w+?)_(\d+x\d+)\(", part).groups()
            group = "cta_group::2" if tile.startswith("256") else "cta_group::1"
            products = re.findall(r"tcgen05\.mma\.(cta_group::\d)\.(kind::[\w.]+(?:::\w+)?)", part)
            check(len(products) == 4, "%s: %d products" % (tile, len(products)))
            for found, words in products:
                check(found == group and words.startswith(KINDS[kind] + ".collector"), "%s_%s: %s.%s" % (kind, tile, found, words))
            check(("tcgen05.cp." in part) == (kind != "f16"), "%s_%s: copies of scales" % (kind, tile))


script.cases("test_registers", [nothing_is_spilled, each_kernel_has_products_of_its_kind])

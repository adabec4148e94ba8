"""What ptxas says of kernels, read in a cubin: section .nv.info has records of a format, an attribute, a size and, of
these two attributes, the number of a symbol and a number.  NVIDIA does not document them; for nvcc 13.0's they are
what ptxas -v says.  Whatever is spilled has a place in the stack frame."""
import re
import struct

OF_A_SYMBOL, FRAME_BYTES, REGISTERS = 4, 0x11, 0x2f


class Cubin:
    """An ELF file."""

    def __init__(self, data):
        self.bytes = data
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


def arrays_of(ptx):
    """Bytes of all local arrays that a text of PTX declares: a frame without anything spilled has at most these."""
    return sum(int(count) for count in re.findall(r"\.local [^;]*\.b8\s+\w+\[(\d+)\];", ptx))

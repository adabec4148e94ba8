"""Little .npy files, read and written without NumPy."""
import ast
import struct

CODES = {"<f4": "f", "<f8": "d", "<f2": "e", "|u1": "B", "|i1": "b", "|V1": "B", "<V1": "B", "|V2": "H", "<V2": "H",
         "<u2": "H",
         "<i4": "i"}


def write(path, shape, values, descr="<f4", fortran=False):
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (descr, fortran,
                                                                        "".join(f"{n}, " for n in shape))
    header = header.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{CODES[descr]}", *values))


def read(path):
    """(shape, descr, values)"""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", f"{path}: {data[:8]}"
    (length,) = struct.unpack("<H", data[8:10])
    header = ast.literal_eval(data[10:10 + length].decode("ascii"))
    assert not header["fortran_order"] and (10 + length) % 64 == 0, header
    code = CODES[header["descr"]]
    values = data[10 + length:]
    return header["shape"], header["descr"], list(struct.unpack(f"<{len(values) // struct.calcsize('<' + code)}{code}",
                                                                values))

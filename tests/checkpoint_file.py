"""Checkpoints for tests, without any package: .safetensors files as dictionaries, and what their codes are worth."""
import json
import math
import random
import struct

SIZES = {"F32": 4, "BF16": 2, "F16": 2, "U8": 1, "I64": 8, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F6_E2M3": 0.75}
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def write(path, tensors, metadata=None):
    """tensors: {name: (type, shape, bytes)}, laid out in this order."""
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (kind, shape, content) in tensors.items():
        assert len(content) == math.prod(shape) * SIZES[kind], name
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    with open(path, "rb") as file:
        whole = file.read()
    length = struct.unpack("<Q", whole[:8])[0]
    header, data = json.loads(whole[8:8 + length]), whole[8 + length:]
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[t["data_offsets"][0]:t["data_offsets"][1]])
            for name, t in header.items()}


def bf16(values):
    """Truncated: the numbers that the file then holds are these."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def from_bf16(content):
    return [struct.unpack("<f", b"\0\0" + content[i:i + 2])[0] for i in range(0, len(content), 2)]


def random_bf16(rows, columns, seed, deviation=0.02):
    numbers = random.Random(seed)
    return bf16([numbers.gauss(0, deviation) for _ in range(rows * columns)])


def e2m3(code):
    exponent, mantissa = code >> 3 & 3, code & 7
    return (-1 if code & 32 else 1) * (mantissa / 8 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 1))


def six_bits(content):
    """Codes of 6 bits, four in three bytes, the first in the low bits."""
    words = [int.from_bytes(content[i:i + 3], "little") for i in range(0, len(content), 3)]
    return [word >> 6 * i & 63 for word in words for i in range(4)]


def e2m1(code):
    return -E2M1[code & 7] if code & 8 else E2M1[code & 7]


def e4m3(code):
    sign, exponent, mantissa = -1 if code & 128 else 1, code >> 3 & 15, code & 7
    if code & 127 == 127:
        return math.nan
    return sign * (mantissa / 8 * 2.0 ** -6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


def e8m0(code):
    return 2.0 ** (code - 127)


def nibbles(content):
    return [nibble for byte in content for nibble in (byte & 15, byte >> 4)]


def signal_to_noise(got, want):
    return 10 * math.log10(sum(x * x for x in want) / sum((x - y) ** 2 for x, y in zip(want, got)))


def write_gguf(path, tensors):
    """tensors: {name: (ggml's number of the type, shape, bytes)}; no keys."""
    head, data = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), 0), b""
    for name, (kind, shape, content) in tensors.items():
        head += struct.pack("<Q", len(name)) + name.encode() + struct.pack(f"<I{len(shape)}QIQ", len(shape),
                                                                           *reversed(shape), kind, len(data))
        data += content + bytes(-len(content) % 32)
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + data)

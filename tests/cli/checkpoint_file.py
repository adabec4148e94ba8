"""Checkpoints for tests, without any package: .safetensors files as dictionaries, and what their codes are worth."""
import json
import math
import random
import struct

SIZES = {"F32": 4, "BF16": 2, "F16": 2, "U8": 1, "I64": 8, "F8_E4M3": 1, "F8_E5M2": 1}
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
    return {name: (t["dtype"], t["shape"], data[t["data_offsets"][0]:t["data_offsets"][1]]) for name, t in header.items()}


def bf16(values):
    """Truncated: the numbers that the file then holds are these."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def from_bf16(content):
    return [struct.unpack("<f", b"\0\0" + content[i:i + 2])[0] for i in range(0, len(content), 2)]


def random_bf16(rows, columns, seed, deviation=0.02):
    numbers = random.Random(seed)
    return bf16([numbers.gauss(0, deviation) for _ in range(rows * columns)])


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

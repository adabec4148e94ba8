"""What codes are worth and how codes lie in bytes, written from the definitions of the formats; nothing here comes from
the library.

Sources: OCP Microscaling Formats (MX) v1.0, OCP 8-bit floating point v1.0, NVIDIA's NVFP4, ggml's block types 39 and
40, and the rules that include/blockscale/format.h and matrix.h add to them."""
import numpy as np


class Element:
    """A stored number.  Codes of up to 16 bits are decoded by a table; `positive` are the finite numbers >= 0 in the
    order of their codes."""

    def __init__(self, name, bits, values, nan_code, has_infinity, mantissa, emax):
        self.name, self.bits, self.values = name, bits, values
        self.nan_code, self.has_infinity, self.mantissa, self.emax = nan_code, has_infinity, mantissa, emax
        if values is None or name == "int8":
            self.max = 127 / 64 if name == "int8" else float(np.finfo(np.float32).max)
            return
        half = values[: 1 << (bits - 1)]
        self.positive = half[np.isfinite(half)]
        self.max_code, self.max = len(self.positive) - 1, float(self.positive[-1])
        # What would follow the largest number decides where rounding to it ends.
        beyond = np.append(self.positive, 2 * self.positive[-1] - self.positive[-2])
        self.middles = (beyond[1:] + beyond[:-1]) / 2

    def decode(self, codes):
        if self.values is None:
            return codes.astype(np.uint32).view(np.float32).astype(np.float64)
        return self.values[codes]

    def encode(self, numbers, saturate):
        """Nearest codes, ties to even."""
        numbers = np.asarray(numbers, np.float64)
        nan = np.isnan(numbers)
        if self.name == "int8":
            codes = np.clip(np.rint(np.where(nan, 0, numbers) * 64), -127, 127).astype(np.int64) & 255
        elif self.values is None:
            with np.errstate(over="ignore"):
                codes = numbers.astype(np.float32).view(np.uint32)
        else:
            codes = self._encode_magnitude(np.abs(np.where(nan, 0, numbers)), saturate)
            has_sign = (codes <= self.max_code) | self.has_infinity
            codes = np.where(np.signbit(numbers) & has_sign, codes | 1 << (self.bits - 1), codes)
        return np.where(nan, self.nan_code, codes).astype(np.uint32)

    def _encode_magnitude(self, magnitudes, saturate):
        below = np.searchsorted(self.middles, magnitudes, side="left")
        tie = (below < len(self.middles)) & (self.middles[np.minimum(below, len(self.middles) - 1)] == magnitudes)
        codes = np.where(tie & (below % 2 == 1), below + 1, below)
        return np.where(codes > self.max_code, self._overflow(saturate), codes)

    def _overflow(self, saturate):
        """The code for what is larger than the largest number: infinity, else NaN, else the largest number."""
        if saturate:
            return self.max_code
        return self.max_code + 1 if self.has_infinity else self.nan_code


def _small_float(bits, exponent_bits, mantissa_bits, bias, top):
    """Numbers of all codes.  top: "ieee" (the largest exponent is infinity and NaN), "fn" (only its last code is NaN)
    or "finite"."""
    codes = np.arange(1 << bits)
    fraction = codes & ((1 << mantissa_bits) - 1)
    exponent = codes >> mantissa_bits & ((1 << exponent_bits) - 1)
    magnitude = np.where(exponent == 0, np.ldexp(fraction, 1 - bias - mantissa_bits),
                         np.ldexp(fraction + (1 << mantissa_bits), exponent - bias - mantissa_bits)).astype(np.float64)
    last = (1 << exponent_bits) - 1
    if top == "ieee":
        magnitude[exponent == last] = np.nan
        magnitude[(exponent == last) & (fraction == 0)] = np.inf
    elif top == "fn":
        magnitude[(exponent == last) & (fraction == (1 << mantissa_bits) - 1)] = np.nan
    return np.where(codes >> (bits - 1) == 1, -magnitude, magnitude)


ELEMENTS = {e.name: e for e in (
    Element("e4m3", 8, _small_float(8, 4, 3, 7, "fn"), 0x7f, False, 3, 8),
    Element("e5m2", 8, _small_float(8, 5, 2, 15, "ieee"), 0x7f, True, 2, 15),
    Element("e3m2", 6, _small_float(6, 3, 2, 3, "finite"), 0x1f, False, 2, 4),
    Element("e2m3", 6, _small_float(6, 2, 3, 1, "finite"), 0x1f, False, 3, 2),
    Element("e2m1", 4, _small_float(4, 2, 1, 1, "finite"), 0x07, False, 1, 2),
    Element("int8", 8, (np.arange(256) + 128) % 256 / 64.0 - 2, 0, False, 6, 0),
    Element("bf16", 16, _small_float(16, 8, 7, 127, "ieee"), 0x7fc0, True, 7, 127),
    Element("fp16", 16, _small_float(16, 5, 10, 15, "ieee"), 0x7e00, True, 10, 15),
    Element("fp32", 32, None, 0x7fc00000, True, 23, 127),
)}


# Scale codes: powers of two without zero and sign; e4m3 without a sign.
E8M0 = np.append(np.ldexp(1.0, np.arange(255) - 127), np.nan)
UE4M3 = np.abs(ELEMENTS["e4m3"].values)
SCALES = {"e8m0": E8M0, "ue4m3": UE4M3}
SCALE_NAN = {"e8m0": 255, "ue4m3": 0x7f}


class Format:
    def __init__(self, name, element, scale=None, block=0):
        self.name, self.element, self.scale, self.block = name, ELEMENTS[element], scale, block

    def scale_columns(self, columns):
        return -(-columns // self.block) if self.block else 0

    def values(self, codes, scales):
        """element * scale, exact in fp64; codes (..., K), scales (..., ceil(K / block)) or None."""
        numbers = self.element.decode(codes)
        if not self.block:
            return numbers
        with np.errstate(invalid="ignore"):
            return numbers * np.repeat(SCALES[self.scale][scales], self.block, axis=-1)[..., : codes.shape[-1]]


FORMATS = {f.name: f for f in (
    Format("mxfp8_e4m3", "e4m3", "e8m0", 32), Format("mxfp8_e5m2", "e5m2", "e8m0", 32),
    Format("mxfp6_e3m2", "e3m2", "e8m0", 32), Format("mxfp6_e2m3", "e2m3", "e8m0", 32),
    Format("mxfp4", "e2m1", "e8m0", 32), Format("mxfp4_block16", "e2m1", "e8m0", 16),
    Format("mxint8", "int8", "e8m0", 32), Format("nvfp4", "e2m1", "ue4m3", 16),
    Format("e4m3", "e4m3"), Format("e5m2", "e5m2"), Format("bf16", "bf16"), Format("fp16", "fp16"),
    Format("fp32", "fp32"), Format("e3m2", "e3m2"), Format("e2m3", "e2m3"), Format("e2m1", "e2m1"),
)}
SCALED = [name for name, f in FORMATS.items() if f.block]
NARROW = [name for name, f in FORMATS.items() if not f.block and f.element.bits <= 8]


def packings_of(name):
    """The packings that a format may have, the default first."""
    bits = FORMATS[name].element.bits
    if bits == 4:
        return ["default", "low_first", "high_first", "bytes"] + (["gguf"] if name in ("mxfp4", "nvfp4") else [])
    return ["default", "bit_stream", "bytes"] if bits == 6 else ["default"]


class Packing:
    """Rows of codes in bytes.  unit: the elements of which a row's pitch is a multiple, unit_bytes what they take."""

    def __init__(self, format_name, name):
        self.format, bits = FORMATS[format_name], FORMATS[format_name].element.bits
        if name == "default":
            name = {4: "low_first", 6: "bit_stream"}.get(bits, "plain")
        self.name, self.bits = name, bits
        if name == "gguf":
            self.unit, self.unit_bytes = (32, 17) if format_name == "mxfp4" else (64, 36)
        else:
            self.unit, self.unit_bytes = {"low_first": (2, 1), "high_first": (2, 1), "bit_stream": (4, 3),
                                          "bytes": (1, 1)}.get(
                name, (1, bits // 8))

    def row_bytes(self, columns):
        """Bytes that a row has, the last code's included."""
        if self.name == "gguf":
            return -(-columns // self.unit) * self.unit_bytes
        in_bits = self.name in ("low_first", "high_first", "bit_stream")
        return -(-columns * self.bits // 8) if in_bits else columns * self.unit_bytes

    def tight(self, columns):
        """The pitch in elements that 0 stands for."""
        return -(-columns // self.unit) * self.unit

    def pack(self, codes):
        """Bytes (..., row_bytes) of codes (..., columns); bits behind the last code are zeros.  Of gguf rows the scales
        stay zero."""
        columns, lead = codes.shape[-1], codes.shape[:-1]
        if codes.size == 0:
            return np.zeros(lead + (self.row_bytes(columns),), np.uint8)
        if self.name == "bytes" or (self.name == "plain" and self.bits == 8):
            return codes.astype(np.uint8)
        if self.name == "plain":
            kind = np.dtype("<u%d" % (self.bits // 8))
            return np.ascontiguousarray(codes.astype(kind)).view(np.uint8).reshape(lead + (columns * kind.itemsize,))
        padded = np.zeros(lead + (self.tight(columns),), np.uint8)
        padded[..., :columns] = codes
        if self.name in ("low_first", "high_first"):
            low, high = (0, 1) if self.name == "low_first" else (1, 0)
            packed = padded[..., low::2] | padded[..., high::2] << 4
        elif self.name == "bit_stream":
            words = padded.reshape(lead + (-1, 4)).astype(np.uint32)
            stream = words[..., 0] | words[..., 1] << 6 | words[..., 2] << 12 | words[..., 3] << 18
            packed = np.stack([stream >> shift & 255 for shift in (0, 8, 16)], -1).reshape(lead + (-1,))
        else:
            packed = self._pack_gguf(padded)
        return packed[..., : self.row_bytes(columns)].astype(np.uint8)

    def unpack(self, data, columns):
        """Codes (..., columns) of bytes (..., row_bytes)."""
        lead = data.shape[:-1]
        if data.size == 0:
            return np.zeros(lead + (columns,), np.uint32)
        if self.name == "bytes":
            return (data & ((1 << self.bits) - 1)).astype(np.uint32)
        if self.name == "plain":
            return np.ascontiguousarray(data).view("<u%d" % (self.bits // 8)).astype(np.uint32)
        if self.name in ("low_first", "high_first"):
            halves = (data & 15, data >> 4) if self.name == "low_first" else (data >> 4, data & 15)
            codes = np.stack(halves, -1).reshape(lead + (-1,))
        elif self.name == "bit_stream":
            padded = np.zeros(lead + (self.tight(columns) // 4 * 3,), np.uint32)
            padded[..., : data.shape[-1]] = data
            groups = padded.reshape(lead + (-1, 3))
            stream = groups[..., 0] | groups[..., 1] << 8 | groups[..., 2] << 16
            codes = np.stack([stream >> shift & 63 for shift in (0, 6, 12, 18)], -1).reshape(lead + (-1,))
        else:
            codes = self._unpack_gguf(data)
        return codes[..., :columns].astype(np.uint32)

    def _halves(self):
        """(scale bytes of a block, sub-blocks, elements of half a sub-block)"""
        return (1, 1, 16) if self.unit == 32 else (4, 4, 8)

    def _pack_gguf(self, padded):
        scales, parts, half = self._halves()
        blocks = padded.reshape(padded.shape[:-1] + (-1, parts, 2, half))
        out = np.zeros(blocks.shape[:-3] + (self.unit_bytes,), np.uint8)
        out[..., scales:] = (blocks[..., 0, :] | blocks[..., 1, :] << 4).reshape(blocks.shape[:-3] + (-1,))
        return out.reshape(padded.shape[:-1] + (-1,))

    def _unpack_gguf(self, data):
        scales, parts, half = self._halves()
        blocks = data.reshape(data.shape[:-1] + (-1, self.unit_bytes))[..., scales:]
        blocks = blocks.reshape(blocks.shape[:-1] + (parts, half))
        return np.stack((blocks & 15, blocks >> 4), -2).reshape(data.shape[:-1] + (-1,))

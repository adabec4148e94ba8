#!/usr/bin/env python3
"""The kernels for tensor memory spill nothing, and have no more registers and stack than is written here; what they
multiply by is in their PTX, and in their machine code where a disassembler is found (NVDISASM, or nvdisasm in the PATH
or beside CUDA's compiler).

What ptxas made of them is read in their cubins (cubin.py).  A stack frame with something spilled is larger than the
arrays that the PTX declares.

usage: test_registers.py CUDASIM FATBIN..."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import fatbin
import script
from cubin import arrays_of, Cubin, FRAME_BYTES, REGISTERS
from script import check

CUDASIM = sys.argv[1]

# Of 255 that 256 threads may have.
MOST_REGISTERS = {"256x256": 176, "128x256": 176, "128x128": 176, "128x64": 208, "128x32": 160,
                  "64x128": 152, "32x128": 152, "16x128": 104, "8x128": 96}
# Sums on the general way; of products of codes also two arrays of quantizing D where no fast path decides.
MOST_STACK = {True: 192, False: 128}
KINDS = {"f16": "kind::f16", "mxf8f6f4": "kind::mxf8f6f4.block_scale.block32", "mxf4": "kind::mxf4.block_scale.block32",
         "mxf4nvf4": "kind::mxf4nvf4.block_scale.block16"}
# Machine code: of a pair of CTAs .2CTA stands behind the first word.  tf32 has the word of f16.
PRODUCTS = {"f16": "UTCHMMA", "mxf8f6f4": "UTCQMMA", "mxf4": "UTCOMMA", "mxf4nvf4": "UTCOMMA.4X"}
BLOCKS = {"f16": 0, "mxf8f6f4": 1, "mxf4": 2, "mxf4nvf4": 4}                # of scales, of 128 rows, in a step of K
# Products from registers, Hopper's, copies to shared memory by threads.
NOT_THESE = r"(?:[BDHIOQ]MMA|[HIQ]GMMA|LDGSTS)"


def ptx_of(path): return fatbin.ptx_of(CUDASIM, path).decode()


def cubin_of(path): return Cubin(fatbin.cubin_of(CUDASIM, path))


def nothing_is_spilled():
    for path in sys.argv[2:]:
        cubin = cubin_of(path)
        registers, frames = cubin.numbers(REGISTERS), cubin.numbers(FRAME_BYTES)
        text = ptx_of(path)
        arrays = arrays_of(text)
        kernels = re.findall(r"\.visible \.entry (\w+)\(", text)
        check(len(kernels) >= 4, "%s: %d kernels" % (path, len(kernels)))
        for name in kernels:
            check(frames[name] <= min(arrays, MOST_STACK["_f16_" not in name]),
                  "%s: %d bytes of stack, where all arrays have %d" % (name, frames[name], arrays))
            most = MOST_REGISTERS[name.rpartition("_")[2]]
            check(0 < registers[name] <= most, "%s: %d registers, not at most %d" % (name, registers[name], most))


def each_kernel_has_products_of_its_kind():
    for path in sys.argv[2:]:
        for part in re.split(r"\.visible \.entry bsmi_gemm_", ptx_of(path))[1:]:
            kind, tile = re.match(r"(\w+?)_(\d+x\d+)\(", part).groups()
            group = "cta_group::2" if tile.startswith("256") else "cta_group::1"
            products = re.findall(r"tcgen05\.mma\.(cta_group::\d)\.(kind::[\w.]+(?:::\w+)?)", part)
            expected = 4 * ([KINDS[kind], "kind::tf32"] if kind == "f16" else [KINDS[kind]])
            check(sorted(words.partition(".collector")[0] for _, words in products) == sorted(expected),
                  "%s_%s: %s" % (kind, tile, products))
            check({found for found, _ in products} == {group}, "%s_%s: %s" % (kind, tile, products))
            check(("tcgen05.cp." in part) == (kind != "f16"), "%s_%s: copies of scales" % (kind, tile))


def machine_code_of(path, disassembler):
    """(kind, tile, instructions) of the kernels in a fatbin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin_of(path).bytes)
        file.flush()
        text = subprocess.run([disassembler, file.name], stdout=subprocess.PIPE, text=True, check=True).stdout
    for part in re.split(r"(?m)^\.text\.bsmi_gemm_", text)[1:]:
        kind, tile = re.match(r"(\w+?)_(\d+x\d+):", part).groups()
        body = part[:part.index("\n\t.section")] if "\n\t.section" in part else part
        yield kind, tile, re.findall(r"(?m)^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+ +)?([A-Z][\w.]*)", body)


def the_machine_code_has_them():
    disassembler = os.environ.get("NVDISASM") or shutil.which(
        "nvdisasm", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    if disassembler is None:
        raise script.Skip("no nvdisasm")
    for path in sys.argv[2:]:
        kernels = 0
        for kind, tile, instructions in machine_code_of(path, disassembler):
            rows, columns = map(int, tile.split("x"))
            pair = ".2CTA" if rows == 256 else ""
            first, dot, rest = PRODUCTS[kind].partition(".")
            products = [word for word in instructions if re.match("UTC[A-Z]MMA", word)]
            count = 8 if kind == "f16" else 4
            check(products == [first + pair + dot + rest] * count, "%s_%s: %s" % (kind, tile, products))
            copies = [word for word in instructions if word.startswith("UTCCP")]
            wanted = BLOCKS[kind] * (1 + ((rows if rows < 128 else columns) + 127) // 128)
            check(copies == ["UTCCP.T.S%s.4x32dp128bit" % pair] * wanted, "%s_%s: %s" % (kind, tile, copies))
            loads = "UTMALDG.3D" + pair in instructions and any(word.startswith("LDTM") for word in instructions)
            check(loads, "%s_%s: loads" % (kind, tile))
            wrong = [word for word in instructions if re.match(NOT_THESE, word)]
            check(not wrong, "%s_%s: %s" % (kind, tile, wrong))
            kernels += 1
        check(kernels >= 8, "%s: machine code of %d kernels" % (path, kernels))


script.cases("test_registers", [nothing_is_spilled, each_kernel_has_products_of_its_kind, the_machine_code_has_them])

#!/usr/bin/env python3
"""Hopper's kernels, and those that dequantize in front of products, have no bank of constants: launches of a kernel
that has one overlap less with the kernel in front, which cost one row of prepacked weights 1.2 microseconds of 5.6.

usage: test_kernel_constants.py CUDASIM FOLDER, where the fatbins are"""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import fatbin
import script
from script import check

WITHOUT = ("sm90_kernels_*", "dequantize_decode*", "dequantize_int8_rows", "quantize_fp8_requantize")
WITH = "quantize_quantize"                             # the table of elements: shows that a bank is noticed
LEAST_FILES = 12


def has_constants(path):
    return any(line.lstrip().startswith(b".const") for line in fatbin.ptx_of(sys.argv[1], path).splitlines())


def kernels_of_products_have_no_constants():
    paths = [path for name in WITHOUT for path in glob.glob(os.path.join(sys.argv[2], name + ".fatbin"))]
    check(len(paths) >= LEAST_FILES, "%d fatbins, not at least %d" % (len(paths), LEAST_FILES))
    for path in paths:
        check(not has_constants(path), "%s has a bank of constants" % os.path.basename(path))


def a_bank_of_constants_is_noticed():
    check(has_constants(os.path.join(sys.argv[2], WITH + ".fatbin")), "%s has none" % WITH)


script.cases("test_kernel_constants", [kernels_of_products_have_no_constants, a_bank_of_constants_is_noticed])

#!/usr/bin/env python3
"""All kernels together add less than 7.5 MB to the library: nvcc packs PTX and machine code.

usage: test_kernel_sizes.py FOLDER, where the fatbins are"""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import script
from script import check

MOST_BYTES, LEAST_FILES = 7_500_000, 15


def kernels_are_under_7_5_megabytes():
    sizes = {os.path.basename(path): os.path.getsize(path) for path in glob.glob(os.path.join(sys.argv[1], "*.fatbin"))}
    check(len(sizes) >= LEAST_FILES, "%d fatbins, not at least %d" % (len(sizes), LEAST_FILES))
    largest = sorted(sizes, key=sizes.get)[-4:]
    check(sum(sizes.values()) < MOST_BYTES, "%d bytes; the largest: %s" % (sum(sizes.values()), ", ".join(largest)))


script.cases("test_kernel_sizes", [kernels_are_under_7_5_megabytes])

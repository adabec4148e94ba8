#!/usr/bin/env python3
"""What the kernels by mma.sync consist of, read in the PTX that is shipped: each kind's products and no others, packed
codes by ordinary ldmatrix, padded ones by those that unpack, and nothing that a GeForce has not or should not do.

usage: test_instructions.py CUDASIM FOLDER, where the fatbins are"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../.."), os.path.join(HERE, "../simulated")]
import fatbin
import script
import simulated_grid_sm120 as sm120
from script import check

PACKED = {"mxf4": "kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
          "mxf4nvf4": "kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"}
ELEMENTS = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"]
PLAIN = "m8n8.x4.shared.b16"
OF_4_BITS, OF_6_BITS = "m8n16.x4.shared.b8x16.b4x16_p64", "m8n16.x4.shared.b8x16.b6x16_p32"
# Clusters, and copies to several CTAs; fence.mbarrier_init has its scope in its name.
NOT_THESE = (r"multicast|shared::cluster|\.reqnctapercluster|\.explicitcluster|barrier\.cluster|\bmapa\b|%cluster|"
             r"tcgen05|wgmma")


def ptx_of(kind):
    return fatbin.ptx_of(sys.argv[1], os.path.join(sys.argv[2], "sm120_gemm_%s.fatbin" % kind)).decode()


def names(text, what):
    """The instructions of this name, without operands: {the rest of the name}."""
    return set(re.findall(r"\b%s\.sync\.aligned\.(\S+)" % what, text))


def bodies(text):
    """Texts of functions that multiply."""
    functions = re.split(r"^(?:\.visible |\.weak )?\.(?:entry|func)\b", text, flags=re.M)
    return [body for body in functions if "mma.sync" in body]


def packed_codes_come_by_ordinary_ldmatrix():
    for kind, form in PACKED.items():
        text = ptx_of(kind)
        tiles = list(sm120.tiles_of(kind))
        check(names(text, "mma") == {"m16n8k64.row.col." + form}, names(text, "mma"))
        check(names(text, "ldmatrix") == {PLAIN}, names(text, "ldmatrix"))
        check(len(bodies(text)) == len(tiles), "%s: %d functions multiply" % (kind, len(bodies(text))))
        check(all("ldmatrix" in body for body in bodies(text)), "a kernel without ldmatrix")


def codes_of_bytes_have_all_pairs():
    text = ptx_of("mxf8f6f4")
    wanted = {"m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.%s.%s.f32.ue8m0" % (a, b)
              for a in ELEMENTS for b in ELEMENTS if (a, b) != ("e2m1", "e2m1")}
    check(names(text, "mma") == wanted, names(text, "mma") ^ wanted)
    check(names(text, "ldmatrix") == {PLAIN, OF_4_BITS, OF_6_BITS}, names(text, "ldmatrix"))


def rows_are_multiplied_as_bf16():
    text = ptx_of("bf16")
    check(names(text, "mma") == {"m16n8k16.row.col.f32.bf16.bf16.f32"}, names(text, "mma"))
    check(names(text, "ldmatrix") == {PLAIN}, names(text, "ldmatrix"))


def every_instance_is_there():
    for kind in sm120.KINDS:
        text = ptx_of(kind)
        wanted = {"bsmi_gemm_sm120_%s_%s" % (kind, tile.name) for tile in sm120.tiles_of(kind)}
        found = set(re.findall(r"\.entry (\w+)\(", text))
        check(found == wanted, found ^ wanted)
        check(re.search(r"^\.target sm_120f\b", text, re.M), "%s is not of the family" % kind)


def no_clusters_and_no_multicast():
    for kind in sm120.KINDS:
        found = re.search(NOT_THESE, ptx_of(kind))
        check(not found, "%s has %s" % (kind, found and found.group(0)))


script.cases("test_instructions", [packed_codes_come_by_ordinary_ldmatrix, codes_of_bytes_have_all_pairs,
                                   rows_are_multiplied_as_bf16, every_instance_is_there, no_clusters_and_no_multicast])

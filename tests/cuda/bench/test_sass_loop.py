#!/usr/bin/env python3
"""bench/gpu/sass_loop.py counts what is in a loop and says what bounds it: on the listing of a small kernel that lies
here, on listings made up, and on the kernel itself where nvcc and cuobjdump are found.
test_sass_loop.py NVCC (none: "-")"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../.."))
import script
from script import check

NVCC = sys.argv[1] if len(sys.argv) > 1 else "-"
TOOL = os.path.join(HERE, "../../../bench/gpu/sass_loop.py")
LISTING = os.path.join(HERE, "inner_loop.sass")
MMA = "OMMA.SF.16864.F32.E2M1.E2M1.E8 R%d, R40, R48, R%d, R3, R4, URZ"


def loops(path, *arguments):
    return [json.loads(line) for line in script.run([sys.executable, TOOL, path, "--json", *arguments]).splitlines()]


def listing(target, lines):
    """Lines as cuobjdump -sass prints them, 16 bytes apart: (text, clocks to the next one)."""
    text = f"\tcode for {target}\n\t\tFunction : made_up\n"
    for place, (line, clocks) in enumerate(lines):
        text += f"        /*{16 * place:04x}*/    {line} ;   /* 0x0123456789abcdef */\n"
        text += f"                                   /* 0x{clocks << 41:016x} */\n"
    return text


def loops_of(target, lines, *arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".sass") as file:
        file.write(listing(target, lines))
        file.flush()
        return loops(file.name, *arguments)


def is_inner_loop(found):
    """A turn of inner_loop.cu: 2 x 4 products of 16 x 8 x 64, each operand loaded once."""
    check(found["kernel"] == "inner_loop" and found["mma"] == 8, "%(kernel)s: %(mma)d mma" % found)
    check(found["products"] == {"OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X": 8}, found["products"])
    check(found["ldsm_bytes"] == 4 * 4 * 128 and found["lds_bytes"] == 2 * 128, "%(ldsm_bytes)d, %(lds_bytes)d" % found)
    check(found["kinds"]["LDSM"] == 4 and found["kinds"]["LDS"] == 2, found["kinds"])
    check(sum(found["kinds"].values()) == found["instructions"], found["kinds"])
    check(found["tensor"] == 8 * 16 and found["local"] == 0, "%(tensor)d clocks, %(local)d local" % found)
    check(found["outside"]["mma"] == 0 and found["outside"]["kinds"]["other memory"] == 32, found["outside"])


def a_listing_is_counted():
    found, = loops(LISTING, "--warps", "4,8", "--k", "512")
    is_inner_loop(found)
    check((found["instructions"], found["scheduled"]) == (29, 171), "%(instructions)d, %(scheduled)d" % found)
    check((found["outside"]["instructions"], found["outside"]["scheduled"]) == (80, 212), found["outside"])
    one, two = found["roofs"]
    check(one["bound"] == "one warp's schedule" and abs(one["share"] - 128 / 171) < 1e-9, one)
    check(two["bound"] == "tensor cores" and two["share"] == 1, two)
    check(two["clocks"]["shared memory"] == 8 * (2048 + 256) / 128 and two["clocks"]["issue"] == 2 * 29, two)
    tile = found["tiles"][1]
    check((tile["warps"], tile["turns"]) == (8, 512 / 64), tile)
    check(tile["clocks"] == 8 * 256 + 212 and abs(tile["share"] - 2048 / 2260) < 1e-9, tile)


def options_move_the_bound():
    roof, = loops(LISTING, "--warps", "8", "--lds", "16", "--written", "1280")[0]["roofs"]
    check(roof["clocks"]["shared memory"] == 8 * (16 + 2 * 16) + 10, roof)
    check(roof["bound"] == "shared memory" and roof["share"] < 0.66, roof)
    tile, = loops(LISTING, "--warps", "8", "--k", "512", "--groups", "2")[0]["tiles"]
    check(tile["clocks"] == 8 * 256 and tile["share"] == 1, tile)
    tile, = loops(LISTING, "--warps", "8", "--k", "64", "--groups", "2")[0]["tiles"]
    check(tile["clocks"] == 171 + 212, tile)


def rates_are_those_of_kind_and_card():
    loop = lambda word: [(word + " R%d, R40, R48, R%d" % (4 * i, 4 * i), 1) for i in range(4)] + [("BRA 0x0", 5)]
    for target, word, card, clocks in (
            ("sm_120a", "QMMA.SF.16832.F32.E4M3.E4M3.E8", "geforce", 16),
            ("sm_121a", "QMMA.16832.F32.E4M3.E4M3", "pro", 16),
            ("sm_120a", "QMMA.16832.F32.E4M3.E4M3", "geforce", 32), ("sm_120a", "HMMA.16816.F32.BF16", "geforce", 32),
            ("sm_120a", "HMMA.16816.F32.BF16", "pro", 16), ("sm_90a", "HGMMA.64x256x16.F32.BF16", "geforce", 128)):
        found, = loops_of(target, loop(word), "--card", card)
        check(found["tensor"] == 4 * clocks, "%s: %s clocks" % (word, found["tensor"]))
    found, = loops_of("sm_100a", loop("UTCOMMA"))
    check(found["tensor"] is None and found["roofs"] == [], "sm_100a: %s" % found["roofs"])


def kinds_and_widths():
    lines = [(MMA % (0, 0), 11), ("@!UPT UIADD3 URZ, UPT, UPT, URZ, URZ, URZ", 5), ("NOP", 1),
             ("LDSM.16.M88 R9, [R1]", 1), ("LDSM.16.MT88.2 R9, [R1]", 1), ("LDS.64 R9, [R1]", 1),
             ("LDS.U8 R9, [R1]", 1), ("STS.128 [R1], R8", 1), ("STL [R1], R8", 1), ("SHF.L.U32 R1, R2, 0x1, RZ", 1),
             ("USHF.L.U32 UR1, UR2, 0x1, URZ", 1),
             ("@P0 BRA 0x0", 15)]
    found, = loops_of("sm_120a", lines)
    check(found["ldsm_bytes"] == 128 + 256 and found["lds_bytes"] == 256 + 128, found)
    check(found["other_shared_bytes"] == 512 and found["local"] == 1, found)
    kinds = found["kinds"]
    check((kinds["filler"], kinds["logic"], kinds["uniform"]) == (2, 1, 1), kinds)
    check(found["scheduled"] == 11 + 5 + 9 + 15 and found["pipe"] == 2, found)


def a_wait_behind_the_kernel_closes_no_loop():
    lines = [(MMA % (0, 0), 15), ("@!P0 BRA 0x50", 1), (MMA % (4, 4), 15), ("@P1 BRA 0x0", 1), ("EXIT", 1),
             ("NOP", 1), ("@!P0 BRA 0x50", 1), ("BRA 0x20", 1)]
    found = loops_of("sm_120a", lines)
    check([(one["mma"], one["instructions"]) for one in found] == [(2, 4)], found)


def without_a_loop_it_is_a_stretch():
    found, = loops_of("sm_120a", [("MOV R1, R2", 1), (MMA % (0, 0), 15), ("MOV R1, R2", 2), (MMA % (4, 4), 15),
                                  ("EXIT", 1)], "--k", "64")
    check((found["mma"], found["instructions"], found["scheduled"], found["tiles"]) == (2, 3, 32, []), found)


def a_peeled_turn_counts_for_the_tile():
    lines = [("MOV R1, R2", 1), (MMA % (0, 0), 11), ("@P0 BRA 0x10", 9), (MMA % (0, 0), 15), ("@P1 BRA 0x0", 9),
             ("EXIT", 1)]
    found, = loops_of("sm_120a", lines, "--warps", "4", "--k", "256")
    tile, = found["tiles"]
    check(tile["turns"] == 256 / 64 - 1 and found["outside"]["mma"] == 1, tile)
    check(tile["clocks"] == 3 * 20 + 25 and abs(tile["share"] - 64 / 85) < 1e-9, tile)


def what_it_cannot_read_is_named():
    for path, words in ((HERE + "/no_such_file", "no_such_file"), (LISTING, "no kernel with mma")):
        done = subprocess.run([sys.executable, TOOL, path, "--kernel", "nothing"], capture_output=True, text=True,
                              check=False)
        check(done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr, done.stderr)


def the_kernel_is_counted():
    if NVCC == "-":
        raise script.Skip("no nvcc")
    path = os.environ.get("PATH", "") + ":" + os.path.dirname(NVCC)
    if not os.environ.get("CUOBJDUMP") and not shutil.which("cuobjdump", path=path):
        raise script.Skip("no cuobjdump")
    with tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, "inner_loop.cubin")
        done = subprocess.run([NVCC, "-std=c++17", "-O3", "-arch=sm_120a", "-cubin", "-o", cubin,
                               os.path.join(HERE, "inner_loop.cu")], capture_output=True, text=True, check=False)
        if "sm_120a" in done.stderr:
            raise script.Skip("an nvcc that does not know sm_120a")
        check(done.returncode == 0, done.stderr)
        found, = loops(cubin)
    is_inner_loop(found)
    check(found["resources"]["registers"] > 40 and found["resources"]["stack"] == 0, found["resources"])


script.cases("test_sass_loop", [a_listing_is_counted, options_move_the_bound, rates_are_those_of_kind_and_card,
                                kinds_and_widths, a_wait_behind_the_kernel_closes_no_loop,
                                without_a_loop_it_is_a_stretch, a_peeled_turn_counts_for_the_tile,
                                what_it_cannot_read_is_named, the_kernel_is_counted])

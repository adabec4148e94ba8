#!/usr/bin/env python3
"""blockscale verify: exit codes, its table, its JSON; and that it notices every fault of a library that was made
faulty."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import script

command, faulty = sys.argv[1:3]

FAULTS = {                                             # fault -> (pair, a pattern that must be printed)
    "last bit": ("mxfp4:nvfp4", "must be"),
    "negative zero": ("mxfp8:mxfp8", r"-0 \(0x80000000\) and must be 0 \(0x00000000\)"),
    "nan sign": ("mxfp8:bf16", "nan"),
    "nan to zero": ("nvfp4:e5m2", "nan"),
    "saturate": ("mxfp8_e5m2:mxfp4", "and must be -?inf"),
    "flush": ("mxint8:mxfp6_e2m3", r"0 \(0x00000000\) and must be"),
    "double": ("fp16:fp32", "the exact sum"),
    "behind the row": ("e4m3:bf16", "between the rows of D"),
    "last row missing": ("mxfp6_e3m2:mxfp4_block16", "must be"),
    "refuse": ("mxfp4:mxfp4", "the product was refused"),
}


def with_fault(fault):
    return dict(os.environ, FAULT=fault)


def every_pair_agrees_quickly():
    out = script.run([command, "verify", "--quick"])
    script.check("✗ " not in out.split("agrees")[0].rsplit("\n", 1)[0], out)
    numbers = re.search(r"^(\d+) of (\d+) pairs agree on (\d+) kernels?: (\d+) products", out, re.M)
    script.check(numbers and numbers.group(1) == numbers.group(2) and int(numbers.group(2)) >= 169, out[-300:])
    script.check("\033" not in out, "escape sequences in a pipe")


def one_pair_in_full():
    for pair in ("nvfp4:mxfp6", "fp32:fp32", "bf16"):
        script.check("✓" in script.run([command, "verify", "--pair", pair]), pair)


def the_json_is_whole():
    value = json.loads(script.run([command, "verify", "--quick", "--pair", "mxfp4:bf16", "--seed", "7", "--json"]))
    script.check(value["agrees"] is True and value["seed"] == 7 and value["quick"] is True, value)
    pairs = [pair for kernel in value["kernels"] for pair in kernel["pairs"]]
    script.check(pairs and all(p["served"] and p["cases"] > 0 and p["failures"] == 0 for p in pairs), value)


def every_fault_is_noticed():
    for fault, (pair, words) in FAULTS.items():
        script.run([faulty, "verify", "--pair", pair])                 # without the fault it agrees
        out = script.run([faulty, "verify", "--pair", pair], expect=1, env=with_fault(fault))
        script.check("first difference" in out and "✗" in out, f"{fault}: {out}")
        script.check(re.search(words, out), f"{fault}: no {words!r} in {out}")


def one_pair_of_all_is_marked():
    out = script.run([faulty, "verify", "--quick"], expect=1, env=with_fault("one pair"))
    for table in re.split("^kernel ", out, flags=re.M)[1:]:
        lines = [line.split() for line in table.splitlines()]
        marks = [words[2:] for words in lines if len(words) == 18 and re.match(r"[a-z]+\d", words[1])]
        wrong = [(a, b) for a, row in enumerate(marks) for b, mark in enumerate(row) if mark == "✗"]
        served = [(a, b) for a, row in enumerate(marks) for b, mark in enumerate(row) if mark != "·"]
        script.check(len(marks) == 16 and all(len(row) == 16 for row in marks), table)
        script.check(wrong == ([(4, 7)] if (4, 7) in served else []),
                     wrong)       # rows mxfp4 (5th), column nvfp4 (8th)


def the_first_difference_is_the_first():
    for pair in ("mxfp4:nvfp4", "fp16:bf16"):
        value = json.loads(script.run([faulty, "verify", "--pair", pair, "--json"], expect=1, env=with_fault("double")))
        first = value["kernels"][0]["pairs"][0]["first_difference"]
        script.check([first["case"], first["m"], first["n"], first["k"]] == ["integers", 5, 24, 64], first)
        script.check(first["got"] == 2 * first["want"] != 0 and 0 < first["elements_that_differ"] <= 5 * 24, first)


def the_first_difference_repeats():
    out = script.run([faulty, "verify", "--pair", "mxfp4:nvfp4", "--seed", "5"], expect=1, env=with_fault("last bit"))
    place = re.search(r"D\[\d+,\d+\] is .*", out).group(0)
    again = re.search(r"again: blockscale (.*)", out).group(1).replace("'", "").split()
    script.check(["--seed", "5"] == again[again.index("--seed"):][:2], again)
    script.check(place in script.run([faulty] + again, expect=1, env=with_fault("last bit")), "another difference")


def a_fault_shows_in_json():
    out = script.run([faulty, "verify", "--pair", "mxfp4:nvfp4", "--json"], expect=1, env=with_fault("last bit"))
    value = json.loads(out)
    pairs = [pair for kernel in value["kernels"] for pair in kernel["pairs"]]
    first = pairs[0]["first_difference"]
    script.check(value["agrees"] is False and pairs[0]["failures"] > 0, value)
    script.check(first["got_bits"] != first["want_bits"] and first["i"] < first["m"] and first["j"] < first["n"], first)


def one_kernel_at_a_time():
    value = json.loads(script.run([command, "verify", "--quick", "--pair", "mxfp4:mxfp4", "--json"]))
    for kernel in value["kernels"]:
        one = json.loads(script.run([command, "verify", "--quick", "--pair", "mxfp4", "--kernel", kernel["kernel"],
                                     "--json"]))
        script.check([k["kernel"] for k in one["kernels"]] == [kernel["kernel"]], one)


def every_kernel_is_known():
    """Also those behind the CPU's: a list that ends too early would leave kernels unverified and not say so."""
    words = script.run([command, "completion", "bash"]).replace('"', " ").split()
    missing = [k["name"] for k in json.loads(script.run([command, "info", "--json"]))["kernels"]
               if k["name"] not in words]
    script.check(not missing, missing)


def wrong_usage_is_refused():
    for options in (["--pair", "mxfp4:"], ["--pair", ":"], ["--pair", "mxfp4:nvfp4:bf16"], ["--pair", "x" * 200],
                    ["--pair"],
                    ["--kernel", "no such kernel"], ["--quick=1"], ["surplus"]):
        script.run([command, "verify"] + options, expect=2)


def nothing_compared_is_no_success():
    kernels = [k["kernel"]
               for k in json.loads(script.run([command, "verify", "--quick", "--pair", "fp32", "--json"]))["kernels"]]
    others = [k["kernel"]
              for k in json.loads(script.run([command, "verify", "--quick", "--pair", "mxfp4", "--json"]))["kernels"]]
    for kernel in set(kernels) - set(others):
        script.run([command, "verify", "--pair", "mxfp4", "--kernel", kernel], expect=4)


script.cases("test_cli_verify", [every_pair_agrees_quickly, one_pair_in_full, the_json_is_whole, every_fault_is_noticed,
                                 one_pair_of_all_is_marked, the_first_difference_is_the_first,
                                 the_first_difference_repeats, a_fault_shows_in_json, one_kernel_at_a_time,
                                 every_kernel_is_known, wrong_usage_is_refused, nothing_compared_is_no_success])

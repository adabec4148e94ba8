#!/usr/bin/env python3
"""The part of the grid of Blackwell's kernels for codes that has every two of kernel, sizes and K together, every
number of steps and of tiles on a kernel of each kind, and every pair (simulated_grid.py); of the kernels by mma.sync
some products under eight schedules, too.

usage: test_covering.py BUILD [sm_100a|sm_120a]"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../..")]
import script
import simulated_grid
import simulated_verify
from script import check

BUILD, DEVICE, SECONDS = os.path.abspath(sys.argv[1]), (sys.argv[2:] or ["sm_100a"])[0], 1800
ON_SM120 = DEVICE == simulated_grid.sm120.DEVICE
SCHEDULES = 8


def ask(part, products, at_once, **how):
    end = time.monotonic() + SECONDS
    for at in range(0, len(products), at_once):
        answers = simulated_grid.ask(BUILD, part, products[at:at + at_once], max(1, end - time.monotonic()), **how)
        check(answers is not None, "no time left behind %d products" % at)
        wrong = [(product, said) for (_, product), (fate, said) in answers.items() if fate != "right"]
        check(not wrong, wrong)


def every_product_is_right():
    source = simulated_grid.sm120 if ON_SM120 else simulated_grid
    products = list(dict.fromkeys(source.covering()))
    check(len(products) > (200 if ON_SM120 else 400), "%d products" % len(products))
    ask("covering", products, 64 if ON_SM120 else simulated_grid.BATCH)


def another_minor_version_runs_the_same_kernels():
    products = list(simulated_grid.sm120.other_minor())
    check(len(products) >= 9, products)
    ask("covering", products, len(products))


def schedules():
    products = list(simulated_grid.sm120.few_schedules())
    check(len(products) >= 5, products)
    ask("schedules", products, len(products), schedules_each=SCHEDULES)


def verify_knows_these_kernels():
    """The last of all kernels, and one whose products are cut and whose scales take from zeros."""
    for kernel, pair in (("bf16_16x64x128", "mxint8:nvfp4"), ("mxf4nvf4_16x64x128", "nvfp4:nvfp4")):
        case = "%s cuda_mma_sync_%s %s" % (DEVICE, kernel, pair)
        (fate, said), = simulated_verify.ask(BUILD, case, SECONDS).values()
        check(fate == "agrees", "%s: %s" % (case, said))


script.cases("test_covering_" + DEVICE if ON_SM120 else "test_covering",
             [every_product_is_right] + ([another_minor_version_runs_the_same_kernels, schedules,
                                        verify_knows_these_kernels] if ON_SM120 else []))

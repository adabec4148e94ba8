#!/usr/bin/env python3
"""The part of the grid of Blackwell's kernels for codes that has every two of kernel, sizes and K together, every
number of steps and of tiles on a kernel of each kind, and every pair (simulated_grid.py): test_covering.py BUILD"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../..")]
import script
import simulated_grid
from script import check

BUILD, SECONDS = os.path.abspath(sys.argv[1]), 1800


def every_product_is_right():
    products, end = list(dict.fromkeys(simulated_grid.covering())), time.monotonic() + SECONDS
    check(len(products) > 400, "%d products" % len(products))
    for at in range(0, len(products), simulated_grid.BATCH):
        answers = simulated_grid.ask(BUILD, "covering", products[at:at + simulated_grid.BATCH],
                                     max(1, end - time.monotonic()))
        check(answers is not None, "no time left behind %d products" % at)
        wrong = [(product, said) for (_, product), (fate, said) in answers.items() if fate != "right"]
        check(not wrong, wrong)


script.cases("test_covering", [every_product_is_right])

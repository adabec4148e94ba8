#!/usr/bin/env python3
"""bench/results/b200-model.md has what bench/model/model.py prints, and what was counted for it is what the kernels do:
test_model.py BUILD"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "../../..")
sys.path[:0] = [os.path.join(TOP, "tests"), os.path.join(TOP, "bench/model")]
import model
import script
from script import check

BUILD = os.path.abspath(sys.argv[1])
MOST_PARAMETERS, MOST_ERROR = 6, 5.0                   # of the 24 figures, in percent


def counters():
    with open(os.path.join(TOP, "bench/model/counters.json"), encoding="utf-8") as file:
        return json.load(file)


def near(line, other):
    """The same words, and numbers that differ by a unit or by one in 100 at most: a fit ends a little elsewhere with
    another libm."""
    number = r"\d+(?:\.\d+)?(?:e\+\d+)?"
    pairs = zip(re.findall(number, line), re.findall(number, other))
    return re.split(number, line) == re.split(number, other) and all(abs(float(x) - float(y)) <= max(1, 0.01 * float(y))
                                                                     for x, y in pairs)


def the_page_has_every_line_of_the_model():
    said = script.run([sys.executable, os.path.join(TOP, "bench/model/model.py")]).splitlines()
    with open(os.path.join(TOP, "bench/results/b200-model.md"), encoding="utf-8") as file:
        page = file.read().splitlines()
    check(len(said) > 40, "%d lines" % len(said))
    missing = [line for line in said if not any(near(line, other) for other in page)]
    check(not missing, "bench/results/b200-model.md has not: %s" % missing[:3])


def few_parameters_explain_the_24_figures():
    errors = model.logs(counters(), model.fit(counters()))
    check(len(model.PARAMETERS) <= MOST_PARAMETERS and len(errors) == 24,
          "%d parameters for %d figures" % (len(model.PARAMETERS), len(errors)))
    check(model.spread(errors) <= MOST_ERROR, "an error of %.2f %%" % model.spread(errors))


def counts_are_those_of_the_kernels():
    for fmt, name in ("nvfp4", "3"), ("mxfp8xmxfp4", "4"), ("mxfp4", "6 128x64"), ("nvfp4", "6 256x256"):
        found, kept = model.count_kernel(BUILD, fmt, name), counters()["%s, step %s" % (fmt, name)]
        check(found == kept, "%s, step %s: %s, not %s" % (fmt, name, found, kept))


script.cases("test_model", [the_page_has_every_line_of_the_model, few_parameters_explain_the_24_figures,
                            counts_are_those_of_the_kernels])

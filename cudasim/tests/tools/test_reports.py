#!/usr/bin/env python3
"""What the simulator says to a user: reports of kernels with long names, calls that fail for want of SMs.

usage: test_reports.py CUDASIM LIBRARY"""
import os
import re
import subprocess
import sys

import test_tools as tools


def a_report_is_whole_however_long_the_name_is(folder):
    name = "begin_" + "x" * 4000 + "_end"
    kernel = tools.ptx(folder + "/k.ptx", "", ".shared .align 4 .b32 s[4]; mov.u32 %r1, s;\nld.shared.u32 %r2, [%r1];",
                       entry=name)
    status, _, err = tools.cudasim("run", kernel, "--block", 32, "--schedules", 2)
    tools.check(status == 1 and "kernel begin_xxx" in err and "_end, CTA (0,0,0), warp 0" in err, err)
    whole = r"  PTX      line \d+: ld.shared.u32 %r2, \[%r1\];\n  manual   PTX ISA, .* ld\n  repeat "
    tools.check(re.search(whole, err), err)
    kernel = tools.ptx(folder + "/k.ptx", "", "bar.sync 0, 64;", entry=name)
    status, _, err = tools.cudasim("run", kernel, "--block", 32)
    whole = "_end, cluster of CTA (0,0,0)\n  CTA (0,0,0) warp 0 lanes 0xffffffff wait for"
    tools.check(status == 1 and whole in err, err)


def too_few_sms_are_named(folder):
    kernel = tools.reverse(folder, "")
    program = [sys.executable, tools.HERE + "/launch_program.py", tools.LIBRARY, kernel, "reverse"]

    def launch(*what):
        done = subprocess.run(program + [str(w) for w in what], capture_output=True, text=True,
                              env=dict(os.environ, CUDASIM_SMS="4"))
        return done.stdout.strip(), done.stderr
    code, said = launch("cluster", 8, 0)
    tools.check(code == "1" and "clusters have 8 CTAs, and the device has 4 SMs: CUDASIM_SMS=8" in said, code + said)
    code, said = launch("cluster", 2, 0)
    tools.check(code == "1" and said == "", code + said)
    code, said = launch("cooperative", 1, 1000)
    whole = "cooperative grid of 1000 CTAs" in said and "on 4 SMs (CUDASIM_SMS)" in said
    tools.check(code == "720" and whole, code + said)


def a_mutant_is_found_however_long_the_name_is(folder):
    program = [sys.executable, tools.HERE + "/library_program.py", tools.LIBRARY]
    name = "reverse_" + "x" * 3000
    kernel = tools.reverse(folder, "", name)
    status, out, err = tools.cudasim("mutate", kernel, "--program", program[0], "--schedules", 3, "--",
                                     *program[1:], kernel, name)
    tools.check(status == 0 and "1 taken away in turn: 1 noticed, 0 survive; 1 more are not executed" in out, out + err)


if __name__ == "__main__":
    sys.exit(tools.run_tests("test_cudasim_reports", [a_report_is_whole_however_long_the_name_is,
                                                      a_mutant_is_found_however_long_the_name_is,
                                                      too_few_sms_are_named]))

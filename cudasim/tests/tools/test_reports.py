#!/usr/bin/env python3
"""What the simulator says to a user: reports of kernels with long names, levels of rules, calls that fail for want of
SMs.

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


REREAD = ("ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; "
          "add.u64 %rd1, %rd1, %rd3; shl.b32 %r3, %r1, 2; mov.u32 %r4, s; add.u32 %r5, %r4, %r3; mov.u32 %r6, bar;\n"
          "setp.ne.u32 %p1, %r1, 0; st.shared.u32 [%r5], %r1; @!%p1 mbarrier.init.shared.b64 [%r6], 1;\n"
          "fence.proxy.async; bar.sync 0; ld.shared.u32 %r7, [%r5]; bar.sync 0; @%p1 bra W;\n"
          "mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r6], 256;\n"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd2], 256, [%r6];\n"
          "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 0; @!%p2 bra W;\n"
          "xor.b32 %r3, %r3, 252; add.u32 %r5, %r4, %r3; ld.shared.u32 %r2, [%r5]; st.global.u32 [%rd1], %r2;")


def rules_have_levels(folder):
    """TMA overwrites what threads have read, with no proxy fence between: read-proxy-fence."""
    kernel = tools.ptx(folder + "/k.ptx", ".param .u64 a, .param .u64 b",
                       ".shared .align 16 .b8 s[256]; .shared .align 8 .b64 bar;\n" + REREAD)
    counted = "cudasim: reported and went on: read-proxy-fence 1\n"

    def program(**settings):
        env = {name: value for name, value in os.environ.items() if not name.startswith("CUDASIM_")}
        done = subprocess.run([sys.executable, tools.HERE + "/library_program.py", tools.LIBRARY, kernel, "k"],
                              capture_output=True, text=True, env=dict(env, **settings))
        return done.returncode, done.stderr
    status, said = program()
    tools.check(status == 0 and said.count("  rule     read-proxy-fence\n") == 1 and said.endswith(counted), said)
    status, said = program(CUDASIM_REPORTS="continue", CUDASIM_SCHEDULES="3")
    tools.check(status == 0 and said.count("  rule ") == 1 and said.endswith("read-proxy-fence 3\n"), said)
    status, said = program(CUDASIM_REPORTS="stop")
    tools.check(status == 2 and "  rule     read-proxy-fence\n" in said and "went on" not in said, said)
    status, said = program(CUDASIM_REPORTS="stop", CUDASIM_RULES="race:stop,read-proxy-fence:off")
    tools.check(status == 0 and said == "", said)
    status, said = program(CUDASIM_REPORTS="stop", CUDASIM_CHECK_RACES="0")
    tools.check(status == 0 and said == "", said)
    status, said = program(CUDASIM_RULES="read-proxy-fence:stop")
    tools.check(status == 2 and "went on" not in said, said)
    status, said = program(CUDASIM_RULES="read-fence:off")
    tools.check(status == 2 and 'CUDASIM_RULES: "read-fence:off" is no NAME:LEVEL' in said and "one of race," in said,
                said)
    status, said = program(CUDASIM_REPORTS="on")
    tools.check(status == 2 and "CUDASIM_REPORTS=on is none of stop, continue" in said, said)

    def run(*options):
        tools.npy(folder + "/i.npy", "<u4", [64], tools.words(*range(64)))
        status, _, said = tools.cudasim("run", kernel, "--block", 64, "--arg", "out:%s/o.npy:u32:64" % folder, "--arg",
                                        "in:%s/i.npy" % folder, *options)
        return status, said
    status, said = run()
    tools.check(status == 0 and said.endswith(counted), said)
    tools.check(tools.read_npy(folder + "/o.npy")[1] == tools.words(*range(63, -1, -1)), "other numbers")
    tools.check(run("--reports", "stop")[0] == 1 and run("--rules", "read-proxy-fence:stop")[0] == 1, "not stopped")
    tools.check(run("--rules", "read-proxy-fence:off") == (0, ""), "not off")
    status, said = run("--rules", "race")
    tools.check(status == 2 and '"race" is no NAME:LEVEL' in said, said)
    status, said = run("--reports", "off")
    tools.check(status == 2 and "--reports off: must be stop or continue" in said, said)


def every_rule_is_in_the_docs():
    page = open(os.path.join(tools.HERE, "../../docs/rules.md")).read()
    header = open(os.path.join(tools.HERE, "../../machine/core/rules.h")).read()
    rules = re.findall(r'X\(\w+, "([a-z-]+)", \w+, RULE_(\w+)\)', header)
    tools.check(len(rules) == 17 and rules == [(name, level.upper()) for name, level in
                                               re.findall(r"^\| ([a-z-]+) \| (stop|report|off) \|", page, re.M)], rules)


def what_never_ends_is_ended(folder):
    kernel = tools.ptx(folder + "/k.ptx", "", "L:\nbra L;")
    status, _, said = tools.cudasim("run", kernel, "--block", 32, "--steps", 10000)
    tools.check(status == 1 and said.startswith("cudasim: too many steps\n  what     the cluster has not ended after "
                                                "10000 steps, the limit (--steps N, CUDASIM_STEPS; 0: none)\n"), said)
    tools.check("wait for nothing: they run without end at PTX line 8" in said, said)
    kernel = tools.ptx(folder + "/k.ptx", "", "")
    status, _, said = tools.cudasim("run", kernel, "--block", 32, "--grid", 2147483647, "--steps", 100000)
    tools.check(status == 1 and re.search(r"what     \d+ of 2147483647 clusters have taken more than 1000000 steps "
                                          r"together, 1000 added for each", said), said)
    status, _, said = tools.cudasim("run", kernel, "--block", 32, "--grid", 3000, "--steps", 100000)
    tools.check(status == 1, said)
    status, _, said = tools.cudasim("run", kernel, "--block", 32, "--grid", 3000, "--steps", 0)
    tools.check(status == 0, said)
    status, _, said = tools.cudasim("run", kernel, "--block", 32, "--grid", 3000)
    tools.check(status == 0, said)
    kernel = tools.ptx(folder + "/k.ptx", ".param .u64 a", "")
    status, _, said = tools.cudasim("run", kernel, "--block", 32, "--arg", "in:/dev/zero")
    tools.check(status == 2 and "/dev/zero: no ordinary file, and longer than 256 MiB" in said, said)


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
                                                      rules_have_levels, every_rule_is_in_the_docs,
                                                      what_never_ends_is_ended, too_few_sms_are_named]))

#!/usr/bin/env python3
"""The command cudasim, as its users run it: files in, files out, what it prints, how it ends.

usage: test_tools.py CUDASIM LIBRARY"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

CUDASIM, LIBRARY = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
HERE = os.path.dirname(os.path.abspath(__file__))
failures = []


def check(ok, what):
    if not ok:
        failures.append("line %d: %s" % (sys._getframe(1).f_lineno, what))


def cudasim(*arguments, env=None):
    done = subprocess.run([CUDASIM] + [str(a) for a in arguments], capture_output=True, text=True,
                          env=dict(os.environ, **(env or {})))
    return done.returncode, done.stdout, done.stderr


def npy(path, descr, shape, data, version=1, order="False", header=None, head=b"\x93NUMPY"):
    text = header or "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (descr, order,
                                                                                "".join("%d," % n for n in shape))
    text += " " * (-(12 + len(text) + 1) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    with open(path, "wb") as file:
        file.write(head + bytes([version, 0]) + length + text.encode() + data)
    return path


def read_npy(path):
    data = open(path, "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    assert data[:8] == b"\x93NUMPY\x01\x00" and (10 + length) % 64 == 0, data[:64]
    return eval(data[10:10 + length].decode()), data[10 + length:]


def ptx(path, parameters, body, version="8.4", target="sm_90a", entry="k"):
    with open(path, "w") as file:
        file.write(".version %s\n.target %s\n.address_size 64\n.visible .entry %s(%s)\n{\n.reg .b32 %%r<40>; "
                   ".reg .b64 %%rd<20>; .reg .f32 %%f<40>; .reg .pred %%p<8>; .reg .b64 %%t<4>;\n%s\nret;\n}\n" %
                   (version, target, entry, parameters, body))
    return path


def words(*values):
    return struct.pack("<%dI" % len(values), *values)


# ---- help ----

def every_verb_has_help():
    status, out, _ = cudasim("--help")
    check(status == 0, "cudasim --help")
    verbs = re.findall(r"^  ([a-z]+) ", out, re.M)
    check(verbs == ["run", "mutate", "read", "devices", "table", "bench", "unpack"], verbs)
    for verb in verbs:
        status, out, err = cudasim(verb, "--help")
        check(status == 0 and err == "" and out.startswith("usage: cudasim " + verb), verb)
        check(max(len(line) for line in out.splitlines()) <= 132, verb + ": long lines")
    check("--trace-lane N" in cudasim("run", "--help")[1], "run --help")
    check(cudasim()[0] == 2 and cudasim("walk")[0] == 2, "no verb")


# ---- arguments ----

def results_come_back(folder):
    kernel = ptx(folder + "/sum.ptx", ".param .u64 a, .param .u64 b, .param .u64 c, .param .s32 i, .param .f32 f, "
                                      ".param .u64 z",
                 "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.s32 %r1, [i]; "
                 "ld.param.f32 %f1, [f];\nld.param.u64 %rd4, [z]; mov.u32 %r2, %tid.x; mul.wide.u32 %rd5, %r2, 4; "
                 "add.u64 %rd1, %rd1, %rd5;\n"
                 "add.u64 %rd2, %rd2, %rd5; add.u64 %rd3, %rd3, %rd5; add.u64 %rd4, %rd4, %rd5; "
                 "ld.global.s32 %r3, [%rd1]; ld.global.s32 %r4, [%rd4];\nadd.s32 %r3, %r3, %r1; add.s32 %r3, %r3, %r4; "
                 "st.global.s32 [%rd2], %r3; ld.global.f32 "
                 "%f2, [%rd3]; mul.f32 %f2, %f2, %f1; st.global.f32 [%rd3], %f2;")
    values = list(range(-4, 28))
    for version in (1, 2, 3):
        npy(folder + "/a.npy", "<i4", [4, 8], struct.pack("<32i", *values), version)
        npy(folder + "/c.npy", "<f4", [32], struct.pack("<32f", *values), version)
        status, out, err = cudasim("run", kernel, "--block", 32, "--arg", "in:%s/a.npy" % folder, "--arg",
                                   "out:%s/b.npy:i32:2x16" %
                                   folder, "--arg", "inout:%s/c.npy:%s/d.npy" % (folder, folder), "--arg", "i32:-5",
                                   "--arg",
                                   "f32:1.5", "--arg", "zero:128")
        check((status, out, err) == (0, "", ""), err)
        header, data = read_npy(folder + "/b.npy")
        check(header == {"descr": "<i4", "fortran_order": False, "shape": (2, 16)}, header)
        check(data == struct.pack("<32i", *[v - 5 for v in values]), "b.npy")
        header, data = read_npy(folder + "/d.npy")
        check(header == {"descr": "<f4", "fortran_order": False, "shape": (32,)}, header)
        check(data == struct.pack("<32f", *[1.5 * v for v in values]), "d.npy")
    check(sorted(os.listdir(folder)) == ["a.npy", "b.npy", "c.npy", "d.npy", "sum.ptx"], os.listdir(folder))


def an_array_that_nothing_writes_is_seen(folder):
    kernel = ptx(folder + "/k.ptx", ".param .u64 a", "")
    for descr, name, item in (("<i2", "i16", 2), ("|u1", "e4m3", 1), ("<u2", "bf16", 2), ("<f8", "f64", 8)):
        check(cudasim("run", kernel, "--block", 1, "--arg", "out:%s/o.npy:%s:3" % (folder, name))[0] == 0, name)
        header, data = read_npy(folder + "/o.npy")
        check(header["descr"] == descr and data == b"\xff" * 3 * item, name)


def structures_pass_by_value(folder):
    kernel = ptx(folder + "/k.ptx", ".param .u64 a, .param .align 4 .b8 s[12]",
                 "ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [s+4]; st.global.u32 [%rd1], %r1;")
    check(cudasim("run", kernel, "--block", 1, "--arg", "out:%s/o.npy:u32:1" % folder, "--arg",
                  "hex:000000004433221100000000")[0] == 0,
          "hex")
    check(read_npy(folder + "/o.npy")[1] == words(0x11223344), "hex")


TENSOR = ("ld.param.u64 %rd1, [o]; mov.b64 %rd2, m; cvta.param.u64 %rd2, %rd2; mov.u32 %r1, s; mov.u32 %r2, bar; "
          "mov.u32 %r3, %tid.x;\n"
          "setp.ne.u32 %p1, %r3, 0; @%p1 bra READY; mbarrier.init.shared.b64 [%r2], 1; "
          "fence.mbarrier_init.release.cluster; READY: bar.sync 0;\n@%p1 bra WAIT; "
          "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128; mov.u32 %r4, 4; mov.u32 %r5, 4;\n"
          "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, {%r4, %r5}], "
          "[%r2];\n"
          "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT; shl.b32 %r6, %r3, 2; "
          "add.u32 %r7, %r1, %r6;\n"
          "ld.shared.u32 %r8, [%r7]; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd1, %rd1, %rd3; st.global.u32 [%rd1], %r8;")


def tensor_maps_are_arguments(folder):
    kernel = ptx(folder + "/k.ptx", ".param .u64 o, .param .u64 a, .param .align 64 .b8 m[128]",
                 ".shared .align 128 .b8 s[128]; .shared .align 8 .b64 bar;\n" + TENSOR)
    npy(folder + "/a.npy", "<u4", [16, 8], words(*range(128)))
    arguments = ["run", kernel, "--block", 32, "--arg", "out:%s/o.npy:u32:8x4" % folder, "--arg",
                 "in:%s/a.npy" % folder, "--arg"]
    status, _, err = cudasim(*arguments, "tensormap:2:u32:16x8:8x4", "--schedules", 5)
    check(status == 0, err)
    check(read_npy(folder + "/o.npy")[1] == words(*[8 * (4 + i // 4) + 4 + i % 4 for i in range(32)]), "tensor map")
    for text, sentence in (("tensormap:3:u32:16x8:8x4", "neither the number of an argument before it"),
                           ("tensormap:2:u99:16x8:8x4", "no type of tensor maps"),
                           ("tensormap:2:u32:16x8:8", "the same number of dimensions"),
                           ("tensormap:2:u32:16x9:8x4", "the tensor has 576 bytes"),
                           ("tensormap:2:u32:16x8:8x3", "no multiple of 16"),
                           ("tensormap:2:u32:16x8:8x4:33B", "33B")):
        status, _, err = cudasim(*arguments, text)
        check(status == 2 and sentence in err and err.count("\n") == 1, text + ": " + err)


# ---- bad input ----

def bad_input_is_named(folder):
    kernel = ptx(folder + "/k.ptx", ".param .u64 a, .param .u32 n", "")
    good = npy(folder + "/good.npy", "<f4", [2], b"\0" * 8)
    two = ["--arg", "in:" + good, "--arg", "u32:1"]
    cases = [
        (["run"], "KERNEL.ptx is missing"), (["run", folder + "/none.ptx", "--block", 1], "No such file"),
        (["run", kernel] + two, "--block X[,Y,Z] is missing"),
        (["run", kernel, "--block", "0"] + two, "--block 0: must be X"),
        (["run", kernel, "--block", "1,2,3,4"] + two, "must be X"),
        (["run", kernel, "--block", "64,32"] + two, "allows 1024 threads"),
        (["run", kernel, "--block", 1, "--grid", "3", "--cluster", 2] + two, "must be a multiple of the cluster"),
        (["run", kernel, "--block", 1, "--cluster", 17] + two, "--cluster 17: must be"),
        (["run", kernel, "--block", 1, "--shared", 300000] + two,
         "--shared 300000: with 0 static bytes more than the 232448"),
        (["run", kernel, "--block", 1, "--entry", "q"] + two, "has no such kernel"),
        (["run", kernel, "--block", 1, "--device", "sm_80"] + two, "no such device"),
        (["run", kernel, "--block", 1, "--device", "sm_100a"] + two, "does not run on sm_100a"),
        (["run", kernel, "--block", 1, "--check", "races=on"] + two, "must be races=off"),
        (["run", kernel, "--block", 1, "--seed", "x"] + two, "--seed x: must be a number"),
        (["run", kernel, "--block", 1, "--seed"] + two[:0], "needs a value"),
        (["run", kernel, "--block", 1, "--block", 1] + two, "given twice"),
        (["run", kernel, "--block", 1, "--walk"] + two, "no option of `cudasim run`"),
        (["run", kernel, "--block", 1, "--trace-lane", 32] + two, '"32": must be'),
        (["run", kernel, "--block", 1, "--profile=xml"] + two, "must be --profile"),
        (["run", kernel, "--block", 1], "0 --arg, but k has 2 parameters"),
        (["run", kernel, "--block", 1] + two + two, "4 --arg, but k has 2 parameters"),
        (["run", kernel, "--block", 1, "--arg", "in:" + good, "--arg", "u64:1"],
         "a value of 8 bytes, but parameter 2 of k has 4"),
        (["run", kernel, "--block", 1, "--arg", "u32:1", "--arg", "u32:1"], "parameter 1 of k has 8"),
        (["run", kernel, "--block", 1] + two[:3] + ["u32:-1"], "no number of type u32"),
        (["run", kernel, "--block", 1] + two[:3] + ["i32:2147483648"], "no number of type i32"),
        (["run", kernel, "--block", 1] + two[:3] + ["f32:1.5x"], "no number of type f32"),
        (["run", kernel, "--block", 1] + two[:3] + ["seven:7"], "no kind of argument"),
        (["run", kernel, "--block", 1, "--arg", "out:o.npy:f33:4", "--arg", "u32:1"], '"f33" is no type'),
        (["run", kernel, "--block", 1, "--arg", "out:o.npy:f32:4y4", "--arg", "u32:1"], '"4y4" is no shape'),
        (["run", kernel, "--block", 1, "--arg", "out:/dev/null:f32:4", "--arg", "u32:1"], "no regular file"),
        (["run", kernel, "--block", 1, "--arg", "out:%s/no/o.npy:f32:4" % folder, "--arg", "u32:1"], "No such file"),
        (["mutate", kernel, "--block", 1], "0 --arg"),
        (["read"], "FILE.ptx... is missing"), (["devices", "all"], "one argument too many"),
    ]
    for arguments, sentence in cases:
        status, out, err = cudasim(*arguments)
        check(status == 2 and sentence in err and out == "", "%s: %d %s" % (arguments, status, err))
        check(err.startswith("cudasim: ") and err.count("\n") == 1, err)


def wrong_arrays_are_refused(folder):
    kernel, path, data = ptx(folder + "/k.ptx", ".param .u64 a", ""), folder + "/a.npy", b"\0" * 24
    good = dict(descr="<f4", shape=[2, 3], data=data)
    cases = [
        (dict(good, head=b"\x93NUMPZ"), "no .npy file"), (dict(good, version=4), "version"),
        (dict(good, descr=">f4"), "big endian"),
        (dict(good, order="True"), "Fortran order"), (dict(good, order="Maybe"), "neither True nor False"),
        (dict(good, data=data[:-1]), "ends before its last element"), (dict(good, data=data + b"\0"), "bytes behind"),
        (dict(good, descr="<O8"), "type that is not read"), (dict(good, shape=[1] * 9), "more than 8 dimensions"),
        (dict(good, header="{'descr': '<f4', 'shape': (2, 3), }"), "lacks"),
        (dict(good, header="{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1, }"), "unknown key"),
        (dict(good, header="{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"), "one twice"),
        (dict(good, header="{'descr': '<f4', 'fortran_order': False, 'shape': (6), }"), "no tuple"),
        (dict(good, header="{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"),
         "ends before"),
        (dict(good, header="['descr']"), "no dictionary"),
    ]
    for case, sentence in cases:
        npy(path, **case)
        status, _, err = cudasim("run", kernel, "--block", 1, "--arg", "in:" + path)
        check(status == 2 and sentence in err, "%s: %s" % (case, err))
    whole = open(npy(path, **good), "rb").read()
    check(cudasim("run", kernel, "--block", 1, "--arg", "in:" + path)[0] == 0, "the good array")
    for length in range(0, len(whole)):
        open(path, "wb").write(whole[:length])
        check(cudasim("run", kernel, "--block", 1, "--arg", "in:" + path)[0] == 2, "cut to %d" % length)


# ---- reports ----

def a_report_leaves_files_alone(folder):
    kernel = ptx(folder + "/k.ptx", ".param .u64 a",
                 "ld.param.u64 %rd1, [a]; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1;\n"
                 "st.global.u32 [%rd1+4], %r1;")
    open(folder + "/o.npy", "w").write("before")
    status, out, err = cudasim("run", kernel, "--block", 1, "--arg", "out:%s/o.npy:u32:1" % folder)
    check(status == 1 and out == "" and err.startswith("cudasim: out-of-bounds access\n"), err)
    check("line 8: st.global.u32 [%rd1+4], %r1;" in err, err)
    check(open(folder + "/o.npy").read() == "before" and sorted(os.listdir(folder)) == ["k.ptx", "o.npy"],
          os.listdir(folder))


def schedules_that_differ_are_reported(folder):
    kernel = ptx(folder + "/k.ptx", ".param .u64 a, .param .u64 b",
                 "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; "
                 "atom.global.add.u32 %r2, [%rd2], 1; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3; "
                 "st.global.u32 [%rd1], %r2;")
    arguments = ["run", kernel, "--block", 256, "--arg", "out:%s/o.npy:u32:256" % folder, "--arg", "zero:4"]
    status, _, err = cudasim(*arguments, "--schedules", 20)
    check(status == 1 and "cudasim: schedules disagree" in err and not os.path.exists(folder + "/o.npy"), err)
    runs = re.findall(r"CUDASIM_SCHEDULE=(\w+) CUDASIM_SEED=(\d+)", err)
    check(len(runs) == 2, err)
    differ = re.search(r"; from offset (\d+): ([0-9a-f ]+) \((\w+)\), ([0-9a-f ]+) \((\w+)\)", err)
    offset, one, first, other, second = differ.groups()
    for (schedule, seed), wanted in zip(runs, (one, other)):
        check(cudasim(*arguments, "--schedule", schedule, "--seed", seed)[0] == 0, "one schedule")
        data = read_npy(folder + "/o.npy")[1][int(offset):int(offset) + 4]
        check(data.hex(" ") == wanted, "%s %s: %s instead of %s" % (schedule, seed, data.hex(" "), wanted))


def checks_can_be_left_out(folder):
    race = ptx(folder + "/race.ptx", "", ".shared .align 4 .b32 s[2]; mov.u32 %r1, %tid.x; st.shared.u32 [s], %r1;")
    unwritten = ptx(folder + "/unwritten.ptx", "", ".shared .align 4 .b32 s[2]; ld.shared.u32 %r1, [s];")
    for kernel, name, kind in ((race, "races", "race"), (unwritten, "uninitialised", "uninitialised read")):
        status, _, err = cudasim("run", kernel, "--block", 64)
        check(status == 1 and err.startswith("cudasim: %s\n" % kind), err)
        check(cudasim("run", kernel, "--block", 64, "--check", name + "=off")[0] == 0, name)


# The kernel adds 3 to a word behind its wait, and keeps what it read before that in another.
def programmatic_launches_overlap(folder):
    save = "ld.global.u32 %r2, [%rd1]; griddepcontrol.launch_dependents; mov.u32 %r3, 0; L: add.u32 %r3, %r3, 1; " \
           "setp.lt.u32 %p1, %r3, 900; @%p1 bra L; griddepcontrol.wait; ld.global.u32 %r1, [%rd1]; " \
           "add.u32 %r1, %r1, 3; st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2;"
    kernel = ptx(folder + "/k.ptx", ".param .u64 p", "ld.param.u64 %rd1, [p]; " + save)
    npy(folder + "/x.npy", "<u4", [2], words(0, 0))
    arguments = ["run", kernel, "--block", 1, "--arg", "inout:%s/x.npy:%s/y.npy" % (folder, folder), "--launches", 2]
    status, _, err = cudasim(*arguments)
    check(status == 1 and "rule     dependent-grid" in err, err)
    for overlap, wanted in ((True, (6, 0)), (False, (6, 3))):
        off = [] if overlap else ["--check", "overlap=off"]
        status, _, err = cudasim(*arguments, "--rules", "dependent-grid:off", "--schedule", "earliest", *off)
        check(status == 0, err)
        data = struct.unpack("<2I", read_npy(folder + "/y.npy")[1])
        check(data == wanted, data)
    check(cudasim(*arguments[:-1], 17)[0] == 2, "too many launches")


# ---- mutations ----

REVERSE = ("ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; "
           "add.u64 %rd1, %rd1, %rd3;\nadd.u64 %rd2, %rd2, %rd3; ld.global.u32 %r2, [%rd2]; shl.b32 %r3, %r1, 2; "
           "mov.u32 %r4, s; add.u32 %r5, %r4, %r3;\n"
           "st.shared.u32 [%r5], %r2;\nbar.sync 0;{}\nxor.b32 %r3, %r3, 252; add.u32 %r5, %r4, %r3; "
           "ld.shared.u32 %r2, [%r5]; st.global.u32 [%rd1], %r2;\nret;\n.loc 1 1 1\nbar.sync 2;\n")


def reverse(folder, more, entry="reverse"):
    return ptx(folder + "/reverse.ptx", ".param .u64 a, .param .u64 b",
               ".shared .align 4 .b32 s[64];\n" + REVERSE.format(more).replace(
        ".loc 1 1 1\n", ""), entry=entry)


def reverse_arguments(folder):
    npy(folder + "/i.npy", "<u4", [64], words(*range(64)))
    return ["--block", 64, "--arg", "out:%s/o.npy:u32:64" % folder, "--arg", "in:%s/i.npy" % folder]


def mutants_are_noticed(folder):
    arguments = reverse_arguments(folder)
    status, out, err = cudasim("mutate", reverse(folder, ""), *arguments)
    check(status == 0 and "noticed      line    11: bar.sync 0  (PTX ISA, 9.7.13.1 bar)  by " in out, out + err)
    check("not executed line    14: bar.sync 2" in out
          and "1 taken away in turn: 1 noticed, 0 survive; 1 more are not executed" in out, out)
    check(not os.path.exists(folder + "/o.npy"), "mutate writes outputs")
    status, out, _ = cudasim("mutate", reverse(folder, " fence.acq_rel.gpu;"), *arguments, "--survivors")
    check(status == 1 and re.findall(r"^survives .*: (.*?)  \(", out, re.M) == ["fence.acq_rel.gpu"], out)
    status, out, _ = cudasim("mutate", reverse(folder, " trap;"), *arguments)
    check(status == 1 and "taken away" not in out, out)


def waits_and_arrivals_are_mutated(folder):
    kernel = ptx(folder + "/k.ptx", ".param .u64 o, .param .u64 a, .param .align 64 .b8 m[128]",
                 ".shared .align 128 .b8 s[128]; .shared .align 8 .b64 bar;\n" + TENSOR)
    npy(folder + "/a.npy", "<u4", [16, 8], words(*range(128)))
    status, out, err = cudasim("mutate", kernel, "--block", 32, "--arg", "out:%s/o.npy:u32:8x4" % folder, "--arg",
                               "in:%s/a.npy" % folder,
                               "--arg", "tensormap:2:u32:16x8:8x4")
    fates = dict((name, fate) for fate, name in re.findall(r"^(\w+) +line +\d+: ([\w.:]+)", out, re.M))
    for name in ("mbarrier.arrive.expect_tx.shared.b64", "mbarrier.try_wait.parity.shared.b64"):
        check(fates.get(name) == "noticed", out + err)


def a_program_is_run_for_each_mutant(folder):
    program = [sys.executable, HERE + "/library_program.py", LIBRARY]
    kernel = reverse(folder, " fence.acq_rel.gpu;")
    status, out, err = cudasim("mutate", kernel, "--program", program[0], "--schedules", 3, "--", *program[1:], kernel,
                               "reverse")
    check(status == 1, out + err)
    fates = re.findall(r"^(noticed|survives|not executed) +line +(\d+): (.*?)  \(", out, re.M)
    check(fates == [("noticed", "11", "bar.sync 0"), ("survives", "11", "fence.acq_rel.gpu"),
                    ("not executed", "14", "bar.sync 2")],
          out)
    status, out, err = cudasim("mutate", kernel, "--program", "/bin/false", "--")
    check(status == 2 and "fails before anything is taken away" in err, err)
    status, out, err = cudasim("mutate", kernel, "--program", "/bin/true", "--")
    check(status == 0 and "3 more are not executed" in out, out)


def the_library_writes_traces_and_profiles(folder):
    kernel, trace, profile = reverse(folder, ""), folder + "/trace", folder + "/profile.json"

    def run(**env):
        return subprocess.run([sys.executable, HERE + "/library_program.py", LIBRARY, kernel, "reverse"],
                              capture_output=True,
                              text=True,
                              env=dict(os.environ, **env))
    done = run(CUDASIM_TRACE=trace, CUDASIM_TRACE_WARP="1", CUDASIM_PROFILE=profile, CUDASIM_SCHEDULES="7")
    check(done.returncode == 0 and done.stderr == "", done)
    lines = open(trace).read().splitlines()
    check(lines[0].startswith("# launch 1, kernel reverse.") and lines[-1] == "# launch 1 ends", lines)
    check(all(line.split()[2] == "1" for line in lines[1:-1]) and len(lines) == 2 + 17, len(lines))
    p = json.loads(open(profile).read())
    check(p["kernel"] == "reverse" and {k["name"]: k["threads"] for k in p["instructions"]}["xor"] == 64, p)
    done = run(CUDASIM_MUTATE="reverse:11")
    check(done.returncode == 2 and "CUDASIM_MUTATE took away reverse:11: bar.sync 0" in done.stderr
          and "threads came to" in done.stderr and "cudasim: " in done.stderr,
          done)
    done = run(CUDASIM_TRACE=folder + "/no/trace", CUDASIM_MUTATE="reverse:12")
    check(done.returncode == 0 and done.stderr.count("\n") == 1 and "/no/trace" in done.stderr, done.stderr)
    done = run(CUDASIM_SCHEDULES="many")
    check(done.returncode == 2 and "CUDASIM_SCHEDULES=many" in done.stderr, done.stderr)


# ---- a kernel as they are written for Hopper: TMA in a ring of stages, wgmma, two CTAs that share what they load ----

def gemm_arguments(folder):
    def bf16(value):
        return struct.pack("<f", value)[2:]

    m, n, k = 256, 128, 256
    a = [[(7 * i + 3 * j) % 9 - 4 for j in range(k)] for i in range(m)]
    b = [[(5 * i + 11 * j) % 7 - 3 for j in range(k)] for i in range(n)]
    npy(folder + "/a.npy", "<u2", [m, k], b"".join(bf16(x) for row in a for x in row))
    npy(folder + "/b.npy", "<u2", [n, k], b"".join(bf16(x) for row in b for x in row))
    arguments = [os.path.dirname(HERE) + "/kernels/hopper_gemm.ptx", "--entry", "gemm_bf16_cluster", "--grid", "1,2",
                 "--block", 384, "--shared",
                 163840]
    for memory in ("in:%s/a.npy" % folder, "in:%s/b.npy" % folder, "out:%s/c.npy:f32:256x128" % folder):
        arguments += ["--memory", memory]
    for argument in ("tensormap:M1:bf16:256x256:64x64:128B", "tensormap:M2:bf16:128x256:64x64:128B",
                     "tensormap:M3:f32:256x128:64x32:128B", "i32:4"):
        arguments += ["--arg", argument]
    return arguments, a, b


def a_product_of_two_ctas(folder):
    arguments, a, b = gemm_arguments(folder)
    status, out, err = cudasim("run", *arguments, "--profile=json")
    check(status == 0, err)
    c = struct.unpack("<32768f", read_npy(folder + "/c.npy")[1])
    check(all(c[128 * i + j] == sum(x * y for x, y in zip(a[i], b[j])) for i in range(0, 256, 15)
              for j in range(0, 128, 9)), "C")
    p = json.loads(out)
    check(p["matrix_products"][0]["operations"] == 2 * 256 * 128 * 256, p["matrix_products"])
    bulk = [e for e in p["bytes"] if e["engine"].startswith("bulk")][0]
    read = 2 * (256 * 256 + 128 * 256)        # each half of B goes to both CTAs and is read once
    check((bulk["global_read"], bulk["global_written"]) == (read, 4 * 256 * 128), bulk)
    check(bulk["shared_written"] == 2 * (256 * 256 + 2 * 128 * 256), bulk)


def every_wait_of_the_product_is_needed(folder):
    status, out, err = cudasim("mutate", *gemm_arguments(folder)[0], "--survivors")
    check(re.search(r"^\d+ taken away in turn: 1\d noticed", out, re.M), out + err)
    survivors = set(re.findall(r"^survives .*: ([\w.:]+)", out, re.M))
    check(survivors <= {"bar.warp.sync"}, out)        # the compiler's own: it orders nothing


# ---- other verbs ----

def other_verbs(folder):
    good, bad = ptx(folder + "/good.ptx", "", ""), ptx(folder + "/bad.ptx", "", "walk.u32 %r1;")
    status, out, err = cudasim("read", good)
    check(status == 0 and out == "%s: 1 functions, 2 instructions\n" % good, out)
    status, out, err = cudasim("read", good, bad)
    check(status == 1 and "bad.ptx:7:1: error: " in err and "^" in err, err)
    check(cudasim("read", folder + "/none.ptx")[0] == 2, "read")
    status, out, _ = cudasim("devices")
    names = [line.split()[0] for line in out.splitlines()[1:]]
    check(status == 0 and names == ["sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"], out)
    status, out, _ = cudasim("table")
    check(status == 0 and "`add.$1`" in out and out.count("\n| `") > 300, out[:2000])
    status, out, err = cudasim("bench", "--loops", 3)
    check(status == 0 and len(re.findall(r"^\w+ +[\d.]+ million thread-instructions a second of one core$", out,
                                         re.M)) == 6,
          out + err)


# ---- fatbins ----

def entry_of(kind, flags, payload, packed=0, content=0):
    payload += bytes(-len(payload) % 8)
    return struct.pack("<HHIQII HHIII QQQ", kind, 0x101, 64, len(payload), packed, 0, 0, 9, 90, 0, 0, flags, 0,
                       content) + payload


def fatbin(path, *entries):
    data = b"".join(entries)
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(data)) + data)
    return path


def fatbins_are_unpacked(folder):
    first, last, machine = b"\n.version 7.0\n", b"\n\n.version 8.4\n.target sm_90a\n", b"\x7fELF machine code"
    path = fatbin(os.path.join(folder, "two.fatbin"), entry_of(2, 0x11, machine), entry_of(1, 0x11, first),
                  entry_of(1, 0x11, last))
    done = subprocess.run([CUDASIM, "unpack", path], capture_output=True, check=False)
    check((done.returncode, done.stdout, done.stderr) == (0, last, b""), done)
    done = subprocess.run([CUDASIM, "unpack", path, "--cubin"], capture_output=True, check=False)
    check(done.returncode == 0 and done.stdout.rstrip(b"\0") == machine, done)
    whole = open(path, "rb").read()
    lies = {"text.fatbin": b".version 8.4", "short.fatbin": whole[:-8], "empty.fatbin": b"",
            "header.fatbin": whole[:16],
            "entry.fatbin": whole[:24] + b"\xff" * 8 + whole[32:]}
    for name, content in lies.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
        status, out, err = cudasim("unpack", os.path.join(folder, name))
        check(status == 2 and out == "" and name in err and "fatbin" in err, (name, status, err))
    packed = fatbin(os.path.join(folder, "packed.fatbin"), entry_of(1, 0x8011, b"no frame of Zstandard"))
    status, out, err = cudasim("unpack", packed)
    check(status == 2 and out == "" and "Zstandard" in err, err)
    only = fatbin(os.path.join(folder, "only.fatbin"), entry_of(2, 0x11, machine))
    check("has no PTX" in cudasim("unpack", only)[2], cudasim("unpack", only))


# A block that uses what its format has: lengths that go on in further bytes, a match over its own bytes, one that ends
# where literals alone do not.  LZ4 Block Format Description.
BLOCK = b"\xff\x03" + b"\n.version 8.4\n.tar" + b"\x01\x00" + b"\x0a" + b"\x16t" + b"\x05\x00" + b"\x50" + b"tail."
CONTENT = b"\n.version 8.4\n.tar" + b"r" * 29 + b"t" + b"rrrrt" * 2 + b"tail."


def blocks_of_lz4_are_unpacked(folder):
    path = os.path.join(folder, "lz4.fatbin")

    def unpacked(block, content, packed=None):
        fatbin(path, entry_of(2, 0x2011, block, len(block) if packed is None else packed, content))
        done = subprocess.run([CUDASIM, "unpack", path, "--cubin"], capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr.decode()

    check(unpacked(BLOCK, len(CONTENT)) == (0, CONTENT, ""), (unpacked(BLOCK, len(CONTENT)), len(CONTENT)))
    for length in range(len(BLOCK)):                   # a block that ends too early
        check(unpacked(BLOCK[:length], len(CONTENT))[0] == 2, length)
    for content in (0, 1, len(CONTENT) - 1, len(CONTENT) + 1, 1 << 40):
        check(unpacked(BLOCK, content)[0] == 2, content)
    check(unpacked(BLOCK, len(CONTENT), packed=1 << 20)[0] == 2, "packed bytes behind the entry")
    check(unpacked(b"\x10A\x02\x00\x10B", 6)[0] == 2, "a match in front of the first byte")
    check(unpacked(b"\x10A\x00\x00\x10B", 6)[0] == 2, "a match at distance 0")


def run_tests(name, tests):
    failed = 0
    for test in tests:
        del failures[:]
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(*([folder] if test.__code__.co_argcount else []))
            except (OSError, ValueError, LookupError, AttributeError) as error:
                failures.append("%s: %s" % (type(error).__name__, error))
        for failure in failures[:10]:
            print("%s: %s" % (test.__name__, failure))
        failed += bool(failures)
    print("%s: %d passed, %d failed, 0 skipped" % (name, len(tests) - failed, failed))
    return failed != 0


def main():
    tests = [every_verb_has_help, results_come_back, an_array_that_nothing_writes_is_seen, structures_pass_by_value,
             tensor_maps_are_arguments, bad_input_is_named, wrong_arrays_are_refused, a_report_leaves_files_alone,
             schedules_that_differ_are_reported, checks_can_be_left_out, programmatic_launches_overlap,
             mutants_are_noticed, waits_and_arrivals_are_mutated, a_program_is_run_for_each_mutant,
             a_product_of_two_ctas,
             every_wait_of_the_product_is_needed, the_library_writes_traces_and_profiles, other_verbs,
             fatbins_are_unpacked, blocks_of_lz4_are_unpacked]
    return run_tests("test_cudasim_tools", tests)


if __name__ == "__main__":
    sys.exit(main())

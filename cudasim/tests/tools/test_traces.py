#!/usr/bin/env python3
"""What the command cudasim shows of a run: traces and profiles.

usage: test_traces.py CUDASIM LIBRARY"""
import json
import re
import sys

from test_tools import TENSOR, check, cudasim, npy, ptx, run_tests, words


# ---- trace ----

def a_trace_has_each_step(folder):
    kernel = ptx(folder + "/k.ptx", "", "mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 3;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 "
                 "mov.f32 %f1, 0f3FC00000;\nbar.sync 0;")
    status, out, _ = cudasim("run", kernel, "--block", 40, "--grid", 2, "--trace", "--schedule", "earliest",
                             "--trace-lane", 4)
    check(status == 0, out)
    lines = [line.split(None, 5) for line in out.splitlines() if not line.startswith("#")]
    # warp 1 has no lane below 5 but one that waits more: its threads are 32 to 39
    check(len(lines) == 2 * 2 * 6 - 2 + 2, out)
    first = [line[5] for line in lines if line[1] == "(1,0,0)" and line[2] == "0"]
    check(first == ["mov.u32 %r1, %tid.x -> 0x4", "add.u32 %r2, %r1, 3 -> 0x7", "setp.lt.u32 %p1, %r1, 5 -> 0x1",
                    "@%p1 mov.f32 %f1, 0f3FC00000 -> 0x3fc00000(1.5)", "bar.sync 0  waits for barrier", "bar.sync 0",
                    "ret"], first)
    masks = [line[3] for line in lines if line[1] == "(0,0,0)" and line[5].startswith("@")]
    check(masks == ["0000001f"], masks)
    check(sorted(set(line[4] for line in lines)) == ["10", "11", "7", "8", "9"], lines)
    traced = ["run", kernel, "--block", 40, "--grid", 2, "--trace=%s/t" % folder]
    check(cudasim(*traced, "--trace-cta", "1", "--trace-warp", "1", "--trace-lines", "8-9")[:2] == (0, ""), "filters")
    rest = [line.split(None, 5) for line in open(folder + "/t") if not line.startswith("#")]
    check([line[1:3] + line[4:5] for line in rest] == [["(1,0,0)", "1", "8"]], rest)


def a_trace_has_operations(folder):
    kernel = ptx(folder + "/k.ptx", ".param .u64 o, .param .u64 a, .param .align 64 .b8 m[128]",
                 ".shared .align 128 .b8 s[128]; .shared .align 8 .b64 bar;\n" + TENSOR)
    npy(folder + "/a.npy", "<u4", [16, 8], words(*range(128)))
    status, out, err = cudasim("run", kernel, "--block", 32, "--arg", "out:%s/o.npy:u32:8x4" % folder, "--arg",
                               "in:%s/a.npy" % folder,
                               "--arg", "tensormap:2:u32:16x8:8x4", "--trace")
    issued = re.search(r"^ +(\d+) \(0,0,0\) .*operation 0 \(.*\) issued(?:, is due at step \d+)?$", out, re.M)
    completed = re.search(r"^ +(\d+) \(0,0,0\) .*operation 0 \(.*\) completes$", out, re.M)
    # one that is due at once says no step; one that somebody waits for may be forced before its own
    check(issued and completed and int(issued.group(1)) <= int(completed.group(1)), out)


# ---- profile ----

def profile_of(kernel, *arguments):
    status, out, err = cudasim("run", kernel, *arguments, "--profile=json", "--schedule", "earliest")
    check(status == 0, err)
    return json.loads(out)


def a_profile_counts(folder):
    kernel = ptx(folder + "/k.ptx", ".param .u64 a",
                 "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 8;\n"
                 "add.u64 %rd1, %rd1, %rd2; setp.lt.u32 %p1, %r1, 40; @%p1 st.global.u64 [%rd1], %rd2; bar.sync 0;")
    p = profile_of(kernel, "--block", 64, "--grid", 3, "--arg", "out:%s/o.npy:u64:64" % folder)
    counts = {k["name"]: (k["warps"], k["threads"]) for k in p["instructions"]}
    check(counts["st"] == (6, 120) and counts["bar.sync"] == (6, 192) and counts["mov"] == (6, 192), counts)
    check(p["thread_instructions"] == sum(c[1] for c in counts.values()) == 3 * (7 * 64 + 40), p["thread_instructions"])
    check([b for b in p["bytes"]][0]["global_written"] == 3 * 320, p["bytes"])
    waits = [(line["waits"], line["text"]) for line in p["lines"]]
    check(waits == [(3, "bar.sync 0")] and p["lines"][0]["steps_waited"] > 0, p["lines"])
    check(p["grid"] == [3, 1, 1] and p["kernel"] == "k" and p["device"] == "sm_90a" and not p["reported"], p)


def bank_conflicts_are_counted(folder):
    # address of lane l, bytes, wavefronts, wavefronts without conflicts
    cases = [("shl.b32 %r2, %r1, 2;", "u32", 4, 1, 1), ("shl.b32 %r2, %r1, 3;", "u32", 4, 2, 1),
             ("shl.b32 %r2, %r1, 7;", "u32", 4, 32, 1), ("mov.u32 %r2, 0;", "u32", 4, 1, 1),
             ("shl.b32 %r2, %r1, 3;", "u64", 8, 2, 2), ("shl.b32 %r2, %r1, 4;", "u64", 8, 4, 2),
             ("shl.b32 %r2, %r1, 4;", "v4.u32", 16, 4, 4), ("shl.b32 %r2, %r1, 5;", "v4.u32", 16, 8, 4),
             ("and.b32 %r2, %r1, 15; shl.b32 %r2, %r2, 7;", "u32", 4, 16, 1), ("shl.b32 %r2, %r1, 1;", "u16", 2, 1, 1)]
    for address, kind, size, wavefronts, ideal in cases:
        value = {"u64": "%rd1", "v4.u32": "{%r4, %r5, %r6, %r7}", "u16": "%rs1"}.get(kind, "%r4")
        kernel = ptx(folder + "/k.ptx", "", ".reg .b16 %%rs<2>; .shared .align 16 .b8 s[4096]; mov.u32 %%r1, %%tid.x; "
                                            "mov.u64 %%rd1, 0; "
                     "mov.u32 %%r3, s; %s add.u32 %%r3, %%r3, %%r2;\nmov.u16 %%rs1, 0; mov.u32 %%r4, 0; "
                     "mov.u32 %%r5, 0; mov.u32 %%r6, 0; "
                     "mov.u32 %%r7, 0; st.shared.%s [%%r3], %s;" % (address, kind, value))
        p = profile_of(kernel, "--block", 32, "--check", "races=off")
        check((p["wavefronts"], p["wavefronts_without_conflicts"]) == (wavefronts, ideal),
              "%s %s: %d, %d" % (address, kind, p["wavefronts"], p["wavefronts_without_conflicts"]))
        check(p["bytes"][0]["shared_written"] == 32 * size, p["bytes"])


def matrices_are_counted(folder):
    # form, registers, bytes that the addresses of the lanes stand for
    cases = [("sm_90a", "m8n8.x1.shared.b16", 1, 128), ("sm_90a", "m8n8.x4.trans.shared.b16", 4, 512),
             ("sm_120a", "m8n16.x2.shared.b8x16.b4x16_p64", 2, 256), ("sm_120a", "m16n16.x1.trans.shared.b8", 2, 256),
             ("sm_120a", "m16n16.x2.trans.shared.b8", 4, 512)]
    for target, form, registers, size in cases:
        kernel = ptx(folder + "/k.ptx", "", ".shared .align 16 .b8 s[512]; mov.u32 %%r1, %%tid.x; shl.b32 %%r1, %%r1, "
                     "4; mov.u32 %%r2, s; add.u32 %%r1, %%r1, %%r2; mov.u32 %%r2, 0; "
                     "st.shared.v4.b32 [%%r1], {%%r2, %%r2, %%r2, %%r2}; bar.sync 0;\n"
                     "ldmatrix.sync.aligned.%s {%s}, [%%r1];" % (form,
                                                                 ", ".join("%%r%d" % (4 + i)
                                                                           for i in range(registers))),
                     version="8.8", target=target)
        p = profile_of(kernel, "--block", 32)
        matrix = [b for b in p["bytes"] if "matrix" in b["engine"]]
        check(len(matrix) == 1 and matrix[0]["shared_read"] == size, "%s: %s" % (form, p["bytes"]))


def engines_are_counted(folder):
    kernel = ptx(folder + "/k.ptx", ".param .u64 o, .param .u64 a, .param .align 64 .b8 m[128]",
                 ".shared .align 128 .b8 s[128]; .shared .align 8 .b64 bar;\n" + TENSOR)
    npy(folder + "/a.npy", "<u4", [16, 8], words(*range(128)))
    p = profile_of(kernel, "--block", 32, "--arg", "out:%s/o.npy:u32:8x4" % folder, "--arg", "in:%s/a.npy" % folder,
                   "--arg",
                   "tensormap:2:u32:16x8:8x4")
    bulk = [b for b in p["bytes"] if b["engine"].startswith("bulk")]
    check(len(bulk) == 1 and bulk[0]["global_read"] == 128 and bulk[0]["shared_written"] == 128, p["bytes"])
    product = ptx(folder + "/m.ptx", "", ".shared .align 1024 .b8 s[4096]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 5; "
                                         "mov.u32 %r3, s;\n"
                  "add.u32 %r2, %r2, %r3; mov.u32 %r4, 0; st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4}; "
                  "st.shared.v4.b32 [%r2+16], {%r4, %r4, %r4, %r4};\nfence.proxy.async; bar.sync 0; "
                  "cvt.u64.u32 %rd1, %r3; shr.u64 %rd1, %rd1, 4; mov.b64 %rd2, "
                  "0x0000001000080000; or.b64 %rd1, %rd1, %rd2;\nwgmma.fence.sync.aligned; "
                  "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16."
                  "bf16 {%f1, %f2, %f3, %f4}, %rd1, %rd1, 0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned; "
                  "wgmma.wait_group.sync.aligned 0;")
    p = profile_of(product, "--block", 128)
    check(p["matrix_products"] == [{"name": "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", "type": "bf16",
                                    "instructions": 1,
                                    "operations": 2 * 64 * 8 * 16}], p["matrix_products"])
    tensor = [e for e in p["estimate"] if e["engine"] == "tensor cores"]
    check(len(tensor) == 1 and abs(tensor[0]["estimated_cycles"] - 2 * 64 * 8 * 16 / 4096) < 1e-6, p["estimate"])


def a_profile_is_readable(folder):
    kernel = ptx(folder + "/k.ptx", "", ".shared .align 4 .b8 s[4096]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 7; "
                 "mov.u32 %r3, s; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1;")
    status, out, _ = cudasim("run", kernel, "--block", 32, "--profile")
    check(status == 0 and "estimate of the time that each engine would need" in out and "(32.00 times)" in out, out)
    check("Nothing of this was measured" in out, out)
    status, out, _ = cudasim("run", ptx(folder + "/b.ptx", "", "", version="8.8", target="sm_120a"), "--block", 32,
                             "--profile")
    check(status == 0 and "no estimate of times" in out, out)


def main():
    tests = [a_trace_has_each_step, a_trace_has_operations, a_profile_counts, bank_conflicts_are_counted,
             matrices_are_counted, engines_are_counted, a_profile_is_readable]
    return run_tests("test_cudasim_traces", tests)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Programs that nvcc has built against -lcudart (programs/), on cudasim: by LD_LIBRARY_PATH alone, and by the command.

usage: test_programs.py CUDASIM LIBRARIES PROGRAMS   PROGRAMS: their folder; where it is not there, nvcc was not"""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests"))
import script
from script import Skip, check, in_folder

CUDASIM, LIBRARIES, PROGRAMS = (os.path.abspath(path) for path in sys.argv[1:4])
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("CUDASIM_", "LD_"))}


def program(name):
    path = os.path.join(PROGRAMS, name)
    if not os.path.exists(path):
        raise Skip("nvcc was not there when this was built")
    return path


def run(command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(CLEAN, **settings))
    return done.returncode, done.stdout, done.stderr


def alone(name, *arguments, **settings):
    """The program without the command: LD_LIBRARY_PATH names the folder, and nothing else is set."""
    return run([program(name), *arguments], LD_LIBRARY_PATH=LIBRARIES, **settings)


def exports(path):
    """Names by version, of what the library shows."""
    lines = script.run(["nm", "-D", "--defined-only", path]).splitlines()
    return dict(line.split()[-1].split("@@") for line in lines if "@@" in line)


# Of the toolkit's library these may be absent: what belongs to other APIs, and what only NVIDIA's own libraries call.
OTHERS = re.compile("EGL|Egl|GL[A-Z]|cudaGL|VDPAU|Graphics|NvSci|SubResource|^cudaCreateChannelDesc$"
                    "|^__cudaGetProcAddress$|^__cudaRegister(HostVar|UnifiedTable)$")


def its_name_and_what_it_exports():
    if shutil.which("nm") is None or shutil.which("readelf") is None:
        raise Skip("no nm, no readelf")
    library = os.path.join(LIBRARIES, "libcudart.so.13")
    check("[libcudart.so.13]" in script.run(["readelf", "-d", library]), "SONAME")
    ours = exports(library)
    check(set(ours.values()) == {"libcudart.so.13"} and len(ours) > 300, f"versions {set(ours.values())}")
    nvcc = shutil.which("nvcc")
    theirs = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "lib64", "libcudart.so.13") \
        if nvcc else ""
    if not os.path.exists(theirs):
        theirs = theirs.replace("lib64", "lib")
    if not os.path.exists(theirs):
        raise Skip("no toolkit whose library this one's could be compared with")
    theirs = set(exports(theirs))
    check(set(ours) <= theirs, f"exported, and not CUDA's: {sorted(set(ours) - theirs)}")
    absent = sorted(name for name in theirs - set(ours) if OTHERS.search(name) is None)
    check(not absent, f"not exported: {absent}")


def an_ordinary_program_runs():
    status, out, err = alone("ordinary")
    check(status == 0 and err == "", (status, out, err))
    check(out.splitlines()[1:] in (["block 0 says 5", "block 1 says 5"], ["block 1 says 5", "block 0 says 5"]), out)


def it_runs_on_every_device():
    """Its PTX is for sm_90: what comes later runs it too."""
    for device in ("sm_100a", "sm_103a", "sm_120a", "sm_121a"):
        status, out, err = alone("ordinary", CUDASIM_DEVICE=device)
        # 3 blocks of 64 KiB are for SMs of 228 KiB; those of sm_120a have 100 KiB
        right = 1 if device in ("sm_120a", "sm_121a") else 0
        check(status == right and err == "", (device, status, out, err))


def fatbins_are_read_packed_or_not():
    for packing in ("none", "speed", "size"):
        status, out, err = alone("ordinary_" + packing)
        if "without Zstandard" in err:
            raise Skip("this cudasim was built without Zstandard")
        check(status == 0 and err == "", (packing, status, out, err))


def host_threads_have_their_own_streams():
    for schedule in ("earliest", "latest"):
        check(alone("threads", CUDASIM_SCHEDULE=schedule) == (0, "", ""), schedule)


def a_wrong_kernel_is_reported_through_the_runtime():
    status, out, err = alone("wrong", "far")
    check(out.split() == ["cudaSuccess", "cudaErrorIllegalAddress", "cudaErrorIllegalAddress", "0"], out)
    check(status == 0 and "cudasim: out-of-bounds access" in err and "kernel _Z3far" in err, err)
    _, out, err = alone("wrong", "racing")
    check(out.split()[1:3] == ["cudaErrorLaunchFailure"] * 2 and "cudasim: race" in err, (out, err))
    _, out, err = alone("wrong", "racing", CUDASIM_REPORTS="continue")
    check(out.split()[:3] == ["cudaSuccess"] * 3 and "reported and went on: race" in err, (out, err))
    _, out, err = alone("wrong", "block")
    check(out.split()[:2] == ["cudaErrorInvalidConfiguration", "cudaSuccess"] and err == "", (out, err))
    check(alone("wrong", "none")[1:] == ("cudaSuccess cudaSuccess cudaSuccess 5\n", ""), "the right kernel")


def a_static_runtime_is_told_what_helps():
    status, _, err = alone("static")
    check(status != 0 and err.count("\n") == 1 and "nvcc -cudart shared" in err, err)


# ---- the command ----

def the_command_runs_programs(folder):
    check(run([CUDASIM, "run", program("ordinary")])[0] == 0, "cudasim run PROGRAM")
    out = run([CUDASIM, "run", "wrong", "far"], PATH=PROGRAMS)[1]
    check(out.startswith("cudaSuccess cudaErrorIllegalAddress"), out)
    _, out, err = run([CUDASIM, "run", "--reports", "continue", "--schedules", "2", program("wrong"), "racing"])
    check("reported and went on: race" in err, (out, err))
    _, out, err = run([CUDASIM, "run", "--rules", "race:off", program("wrong"), "racing"])
    check(out.startswith("cudaSuccess") and err == "", (out, err))
    _, out, err = run([CUDASIM, "run", "--check", "races=off", program("wrong"), "racing"])
    check(out.startswith("cudaSuccess") and err == "", (out, err))
    _, out, err = run([CUDASIM, "run", "--steps", "3", program("wrong"), "none"])
    check("cudaErrorLaunchTimeout" in out and "too many steps" in err, (out, err))
    out = run([CUDASIM, "run", "--device", "sm_100a", "--sms", "7", program("ordinary")])[1]
    check(out != run([CUDASIM, "run", program("ordinary")])[1], "the device's name is the same")
    trace, profile = os.path.join(folder, "trace"), os.path.join(folder, "profile.json")
    check(run([CUDASIM, "run", "--trace=" + trace, "--profile=" + profile, program("wrong"), "none"])[0] == 0, "trace")
    check("ordered" in open(profile, encoding="utf-8").read() and os.path.getsize(trace) > 0, "trace and profile")


def arguments_behind_the_program_are_its_own(folder):
    shell = os.path.join(folder, "say")
    with open(shell, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\necho "$# $1 $2 $CUDASIM_SEED $CUDASIM_STEPS $LD_LIBRARY_PATH"; exit 7\n')
    os.chmod(shell, 0o755)
    status, out, err = run([CUDASIM, "run", "--seed", "9", shell, "--help", "--seed"])
    check((status, err) == (7, "") and out.split()[:4] == ["2", "--help", "--seed", "9"], (status, out, err))
    check(os.path.realpath(out.split()[5]) == os.path.realpath(LIBRARIES), out)
    out = run([CUDASIM, "run", shell], CUDASIM_SEED="4", CUDASIM_STEPS="5", LD_LIBRARY_PATH="/elsewhere")[1].split()
    check(out[1:3] == ["4", "5"] and out[3].endswith(":/elsewhere"), out)


def what_is_not_for_programs_is_refused(folder):
    shell = shutil.which("true")
    for option in (["--grid", "3"], ["--entry", "k"], ["--arg", "i32:5"], ["--shared", "4"], ["--check", "x"],
                   ["--trace"], ["--profile"]):
        status, out, err = run([CUDASIM, "run", *option, shell])
        check(status == 2 and out == "" and option[0] in err and err.count("\n") == 1, (option, err))
    alone_folder = os.path.join(folder, "bin")
    os.mkdir(alone_folder)
    shutil.copy(CUDASIM, alone_folder)
    status, _, err = run([os.path.join(alone_folder, "cudasim"), "run", shell])
    check(status == 2 and "libcudart.so.13" in err, (status, err))


script.cases("test_cudasim_programs", [
    its_name_and_what_it_exports, an_ordinary_program_runs, it_runs_on_every_device, fatbins_are_read_packed_or_not,
    host_threads_have_their_own_streams, a_wrong_kernel_is_reported_through_the_runtime,
    a_static_runtime_is_told_what_helps, in_folder(the_command_runs_programs),
    in_folder(arguments_behind_the_program_are_its_own), in_folder(what_is_not_for_programs_is_refused)])

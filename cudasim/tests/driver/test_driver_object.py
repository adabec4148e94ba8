#!/usr/bin/env python3
"""The shared object: its name and what it exports, the environment that it reads, the devices that it can be.

usage: test_driver_object.py LIBRARY"""
import os
import shutil
import subprocess
import sys

LIBRARY = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
failures = []


def check(ok, what):
    if not ok:
        failures.append("line %d: %s" % (sys._getframe(1).f_lineno, what))


def output(*command): return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def its_name_and_what_it_exports():
    if shutil.which("nm") is None or shutil.which("readelf") is None:
        return
    check("SONAME" in output("readelf", "-d", LIBRARY) and "[libcuda.so.1]" in output("readelf", "-d", LIBRARY),
          "SONAME")
    exported = sorted(line.split()[-1].split("@")[0]
                      for line in output("nm", "-D", "--defined-only", LIBRARY).splitlines())
    listed = open(os.path.join(HERE, "driver_exports.txt")).read().split()
    check(exported == listed, "exports differ from driver_exports.txt: %s" % sorted(set(exported) ^ set(listed)))


def init(**settings):
    """What cuInit gives in a process of its own, and what it says."""
    program = "import ctypes,sys; sys.exit(ctypes.CDLL(%r).cuInit(0))" % LIBRARY
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDASIM_")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=dict(clean, **settings))
    return done.returncode, done.stderr


def wrong_settings_are_errors():
    check(init() == (0, ""), "no settings")
    right = dict(CUDASIM_DEVICE="sm_120a", CUDASIM_SMS="132", CUDASIM_SEED="0x10", CUDASIM_SCHEDULE="latest",
                 CUDASIM_TENSOR_CORE="fp32")
    check(init(**right) == (0, ""), "good settings")
    for name, value in [("DEVICE", "sm_91"), ("SMS", "0"), ("SMS", "four"), ("SMS", "1025"), ("THREADS", "65"),
                        ("SEED", "-1"), ("SEED", "1x"),
                        ("SEED", "99999999999999999999"), ("SCHEDULE", "soon"), ("SCHEDULES", "0"), ("STEPS", " 3"),
                        ("CHECK_RACES", "2"),
                        ("CHECK_UNINITIALISED", "no"), ("TENSOR_CORE", "fp16")]:
        code, said = init(**{"CUDASIM_" + name: value})
        check(code == (100 if name == "DEVICE" else 1), "CUDASIM_%s=%s gives %d" % (name, value, code))
        check(said.startswith("cudasim: CUDASIM_%s=%s is no" % (name, value)) and said.count("\n") == 1,
              "says %r" % said)


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": threads and CTAs of an SM, shared
# memory of an SM and of a CTA that asks for it, registers of an SM and of a CTA, compute capability.
ATTRIBUTES = {"threads per CTA": 1, "threads": 39, "CTAs": 106, "shared": 81, "shared of a CTA": 97,
              "shared unless asked": 8, "registers": 82,
              "registers of a CTA": 12, "major": 75, "minor": 76, "warp": 10, "clusters": 120, "reserved": 111}
KB = 1024
DEVICES = {"sm_90a": (1024, 2048, 32, 228 * KB, 227 * KB, 48 * KB, 65536, 65536, 9, 0, 32, 1, KB),
           "sm_100a": (1024, 2048, 32, 228 * KB, 227 * KB, 48 * KB, 65536, 65536, 10, 0, 32, 1, KB),
           "sm_103a": (1024, 2048, 32, 228 * KB, 227 * KB, 48 * KB, 65536, 65536, 10, 3, 32, 1, KB),
           "sm_120a": (1024, 1536, 24, 100 * KB, 99 * KB, 48 * KB, 65536, 65536, 12, 0, 32, 1, KB),
           "sm_121a": (1024, 1536, 24, 100 * KB, 99 * KB, 48 * KB, 65536, 65536, 12, 1, 32, 1, KB)}


def devices_have_their_limits():
    program = ("import ctypes\nl = ctypes.CDLL(%r)\nl.cuInit(0)\nv = ctypes.c_int()\n"
               "for a in %r:\n    print(v.value if l.cuDeviceGetAttribute(ctypes.byref(v), a, 0) == 0 else -1)"
               ) % (LIBRARY, list(ATTRIBUTES.values()))
    for name, limits in DEVICES.items():
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env=dict(os.environ, CUDASIM_DEVICE=name))
        check(tuple(int(v) for v in done.stdout.split()) == limits,
              "%s: %s" % (name, dict(zip(ATTRIBUTES, done.stdout.split()))))


tests = [its_name_and_what_it_exports, wrong_settings_are_errors, devices_have_their_limits]
for test in tests:
    test()
for failure in failures:
    print(failure)
print("test_cudasim_driver_object: %d passed, %d failed, 0 skipped" % (len(tests) - len(failures), len(failures)))
sys.exit(1 if failures else 0)

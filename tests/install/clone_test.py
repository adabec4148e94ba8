#!/usr/bin/env python3
"""What somebody gets who clones and installs: clone_test.py BUILD_FOLDER C_COMPILER.  `make install` and `make install-cudasim` in a copy
of the tree that was never built, without CUDA.  Objects come from BUILD_FOLDER (kept_object.sh), so that this takes seconds; what is
linked and installed is the copy's own."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import script
from script import check, run

BUILD, CC = os.path.abspath(sys.argv[1]), sys.argv[2]
SCRATCH = tempfile.TemporaryDirectory()
CLONE, PREFIX = os.path.join(SCRATCH.name, "clone"), os.path.join(SCRATCH.name, "prefix")
COMPILED = os.path.join(SCRATCH.name, "compiled")


def tracked_files():
    """What git would clone, with changes that are not committed yet; without git everything but build/."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=SOURCE, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, check=False)
    if listed.returncode == 0:
        return [name for name in listed.stdout.decode().split("\0") if name and os.path.exists(os.path.join(SOURCE, name))]
    return [os.path.relpath(os.path.join(root, name), SOURCE) for root, _, files in os.walk(SOURCE) for name in files
            if os.path.relpath(root, SOURCE).split(os.sep)[0] not in ("build", ".git")]


def copy_tree():
    for name in tracked_files():
        os.makedirs(os.path.dirname(os.path.join(CLONE, name)), exist_ok=True)
        shutil.copy2(os.path.join(SOURCE, name), os.path.join(CLONE, name), follow_symlinks=False)


def make(*words):
    environment = {**os.environ, "CC": CC, "BLOCKSCALE_INSTALL": "no", "KEPT_FROM": BUILD, "KEPT_COMPILED": COMPILED,
                   "KEPT_INTO": os.path.join(CLONE, "build", "release"),
                   "CMAKE_C_COMPILER_LAUNCHER": os.path.join(HERE, "kept_object.sh")}
    environment.pop("DESTDIR", None)
    return run(["make", "-C", CLONE, "JOBS=1", "kernels=OFF", f"PREFIX={PREFIX}", *words], env=environment)


def installed():
    return sorted(os.path.relpath(os.path.join(root, name), PREFIX) for root, _, files in os.walk(PREFIX) for name in files)


def make_install():
    """The library and the command, from nothing; cudasim is neither needed nor installed."""
    copy_tree()
    check(not os.path.exists(os.path.join(CLONE, "build")), "the copy has a build folder")
    make("install")
    names = [os.path.basename(path) for path in installed()]
    for name in ("blockscale", "libblockscale.so.0", "libblockscale.a", "blockscale.h", "blockscale-config.cmake", "blockscale.pc", "blockscale.1"):
        check(name in names, f"make install leaves {name} out")
    check(not [name for name in names if "cudasim" in name or "libcuda" in name], f"make install installs cudasim: {names}")
    said = run([os.path.join(PREFIX, "bin", "blockscale"), "info"])
    check("BLOCKSCALE_CUDA=OFF" in said or "not built" in said, f"the command was not built in the copy:\n{said}")


def objects_were_kept():
    """This test would take minutes if they were not."""
    compiled = open(COMPILED, encoding="utf-8").read().split() if os.path.exists(COMPILED) else []
    check(not compiled, f"{len(compiled)} objects were compiled again: {compiled[:3]}")


def make_install_cudasim():
    before = installed()
    make("install-cudasim")
    new = sorted(set(installed()) - set(before))
    check([os.path.basename(path) for path in new] == ["cudasim", "libcuda.so", "libcuda.so.1", "libcudart.so",
                                                       "libcudart.so.13", "libcudasim.so"], f"installed: {new}")
    check("cudasim" in run([os.path.join(PREFIX, "bin", "cudasim"), "--help"]), "cudasim --help prints something else")


def make_install_gfxsim():
    before = installed()
    make("install-gfxsim")
    new = sorted(set(installed()) - set(before))
    check([os.path.basename(path) for path in new] == ["libamdhip64.so.6", "libgfxsim.so", "README.md"],
          f"installed: {new}")
    library = os.path.join(PREFIX, new[0])
    program = f"import ctypes; h = ctypes.CDLL({library!r}); n = ctypes.c_int(); " \
              "assert h.hipGetDeviceCount(ctypes.byref(n)) == 0; print(n.value, 'device')"
    check("1 device" in run([sys.executable, "-c", program]), "the installed library has no device")


script.cases("install_clone", [make_install, objects_were_kept, make_install_cudasim, make_install_gfxsim])

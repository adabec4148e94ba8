#!/usr/bin/env python3
"""A wheel of the Python package: wheel_test.py WHEEL.  What it needs of glibc and of other libraries, what it has and
how large it is; the command in it; and the tests of the package (python/tests) on it instead of on the checkout."""
import glob
import os
import platform
import re
import subprocess
import sys
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import script
from script import check

WHEEL = os.path.abspath(sys.argv[1])
GLIBC = (2, 28)
MOST_BYTES = 35_000_000
# Parts of glibc, which every Linux that the wheel's tag names has.
ALLOWED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
           "libblockscale.so"}
BINARIES = ("blockscale/libblockscale.so", "blockscale/blockscale")
PYTHON = os.path.join(SOURCE, "build", "python", "bin", "python3")


def names():
    with zipfile.ZipFile(WHEEL) as wheel:
        return wheel.namelist()


def unpacked(folder):
    """The wheel as pip installs it, without what it needs: build/python has that."""
    script.run([PYTHON, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check",
                "--target", folder, WHEEL])


def read_elf(path, option):
    return script.run(["objdump", option, path])


def symbols_are_in_every_glibc_of_the_tag(folder):
    unpacked(folder)
    for name in BINARIES:
        text = read_elf(os.path.join(folder, name), "-T")
        versions = {tuple(map(int, found.split("."))) for found in re.findall(r"\bGLIBC_([\d.]+)", text)}
        check(len(versions) > 2, f"{name}: {len(versions)} versions of glibc's symbols")
        late = [version for version in versions if version > GLIBC]
        check(not late, f"{name} needs glibc {max(late, default='')}")
        check("GLIBCXX" not in text and "GLIBC_PRIVATE" not in text, f"{name} needs more than glibc's public symbols")


def no_other_libraries_are_needed(folder):
    """No OpenMP runtime either: the library has threads of its own."""
    unpacked(folder)
    for name in BINARIES:
        needed = set(re.findall(r"NEEDED\s+(\S+)", read_elf(os.path.join(folder, name), "-p")))
        check("libc.so.6" in needed and needed <= ALLOWED, f"{name} needs {sorted(needed - ALLOWED)}")


def the_tag_says_what_it_is():
    tag = f"py3-none-manylinux_{GLIBC[0]}_{GLIBC[1]}_{platform.machine()}"
    check(os.path.basename(WHEEL).endswith(f"-{tag}.whl"), os.path.basename(WHEEL))
    with zipfile.ZipFile(WHEEL) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/WHEEL"))
        text = wheel.read(name).decode()
    check(f"Tag: {tag}\n" in text and "Root-Is-Purelib: false" in text, text)


def it_is_small_and_has_no_path_of_this_machine():
    size = os.path.getsize(WHEEL)
    check(size < MOST_BYTES, f"{size} bytes")
    with zipfile.ZipFile(WHEEL) as wheel:
        wrong = [name for name in wheel.namelist() if SOURCE.encode() in wheel.read(name)]
    check(not wrong, f"{SOURCE} is in {wrong}")


def it_has_every_module_and_the_licences():
    package = os.path.join(SOURCE, "python", "src")
    sources = [os.path.relpath(path, package) for path in glob.glob(f"{package}/blockscale/**/*", recursive=True)
               if path.endswith((".py", ".typed"))]
    check(len(sources) > 5, f"{len(sources)} modules")
    missing = set(sources) - set(names())
    check(not missing, f"not in the wheel: {sorted(missing)}")
    others = [name for name in names() if name.endswith("LICENSE") or name.endswith("LICENSE.yyjson")]
    check(len(others) == 2, f"licences: {others}")


def versions_agree():
    with open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8") as file:
        version = re.search(r"project\(blockscale VERSION (\S+)", file.read()).group(1)
    check(os.path.basename(WHEEL).startswith(f"blockscale-{version}-"), f"{WHEEL} is not of version {version}")


def the_command_has_the_kernels_of_this_processor(folder):
    """A compiler's own question for the processor's features may have no answer in another compiler's library."""
    unpacked(folder)
    done = script.run([PYTHON, os.path.join(folder, "bin", "blockscale"), "info"],
                      env=dict(os.environ, PYTHONPATH=folder))
    features = set(re.search(r"cpu_features +(\S+)", done).group(1).split(",")) - {"none"}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = set(re.search(r"^(?:flags|Features)\s*: (.*)$", file.read(), flags=re.M).group(1).split())
    want = {"fma": {"fma"}, "avx2": {"avx2", "f16c"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
            "avx512_vnni": {"avx512_vnni"}, "dotprod": {"asimddp"}, "i8mm": {"i8mm"},
            "avx512_bf16": {"avx512_bf16"}, "amx": {"amx_tile", "amx_bf16", "amx_int8"}, "bf16": {"bf16"}}
    expected = {name for name, needs in want.items() if needs <= flags}
    check(features == expected, f"the command says {sorted(features)}, the system {sorted(expected)}")


def the_tests_of_the_package_pass_on_it(folder):
    unpacked(folder)
    environment = {name: value for name, value in os.environ.items() if name != "BLOCKSCALE_LIBRARY"}
    environment.update(PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1", BLOCKSCALE_INSTALLED=folder)
    environment.setdefault("BLOCKSCALE_BUILD", os.path.join(SOURCE, "build", "release"))     # cudasim, if it is built
    said = script.run([PYTHON, "-c", "import blockscale, sys; print(blockscale._library.path)"], env=environment)
    check(said.strip() == os.path.join(folder, "blockscale", "libblockscale.so"), f"the library is {said.strip()}")
    files = sorted(glob.glob(os.path.join(SOURCE, "python", "tests", "test_*.py")))
    check(len(files) > 5, f"{len(files)} files of tests")
    for file in files:                                   # each in a process of its own, as in make test
        done = subprocess.run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", file], check=False,
                              env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        last = done.stdout.rstrip().splitlines()[-1]
        print(f"  {os.path.basename(file)} on the wheel: {last.strip('= ')}", file=sys.stderr)
        check(done.returncode == 0 and re.search("passed|skipped", last), done.stdout)


script.cases("wheel", [script.in_folder(symbols_are_in_every_glibc_of_the_tag),
                       script.in_folder(no_other_libraries_are_needed), the_tag_says_what_it_is,
                       it_is_small_and_has_no_path_of_this_machine, it_has_every_module_and_the_licences,
                       versions_agree, script.in_folder(the_command_has_the_kernels_of_this_processor),
                       script.in_folder(the_tests_of_the_package_pass_on_it)])

#!/usr/bin/env python3
"""What a user gets: install_test.py BUILD_FOLDER C_COMPILER.  Installs, moves the tree, and builds programs with it."""
import glob
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import script
from script import check, run

BUILD, CC = os.path.abspath(sys.argv[1]), sys.argv[2]
CXX = next(filter(shutil.which, [os.environ.get("CXX", ""), "clang++" if "clang" in CC else "g++", "c++", "g++", "clang++"]), None)
SCRATCH = tempfile.TemporaryDirectory()
PREFIX = os.path.join(SCRATCH.name, "moved", "here")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
CONSUMER = os.path.join(HERE, "consumer", "consumer.c")


def scratch(name): return os.path.join(SCRATCH.name, name)


def need(program):
    if program is None or shutil.which(program) is None:
        raise script.Skip(f"no {program or 'C++ compiler'}")


def libdir():
    return os.path.dirname(glob.glob(os.path.join(PREFIX, "lib*", "**", "libblockscale.a"), recursive=True)[0])


def runs(program, **environment):
    check(run([program], env={**os.environ, **environment}).strip() == "64", f"{program} printed something else")


def builds_and_runs(compiler, flags, libraries, name, **environment):
    run([compiler, *STRICT, *flags, f"-I{PREFIX}/include", CONSUMER, "-o", scratch(name), *libraries])
    runs(scratch(name), **environment)


# Installed -----------------------------------------------------------------------------------------------------------

def installs_and_moves():
    first = scratch("first")
    run(["cmake", "--install", BUILD, "--prefix", first])
    os.makedirs(os.path.dirname(PREFIX))
    os.rename(first, PREFIX)
    for path in ("include/blockscale.h", "include/blockscale/matmul.h", "bin/blockscale"):
        check(os.path.exists(os.path.join(PREFIX, path)), f"{path} is not installed")
    check(not glob.glob(os.path.join(PREFIX, "include", "**", "core.h"), recursive=True), "an internal header is installed")


def installed_command_runs():
    check("0.1.0" in run([os.path.join(PREFIX, "bin", "blockscale"), "info"]), "info does not print the version")


def manual_and_completions_are_the_command_s():
    command = os.path.join(PREFIX, "bin", "blockscale")
    for path, words in (("man/man1/blockscale.1", ["manual"]), ("bash-completion/completions/blockscale", ["completion", "bash"]),
                        ("zsh/site-functions/_blockscale", ["completion", "zsh"]),
                        ("fish/vendor_completions.d/blockscale.fish", ["completion", "fish"])):
        with open(os.path.join(PREFIX, "share", path), encoding="utf-8") as file:
            check(file.read() == run([command, *words]), f"{path} is not what {' '.join(words)} prints")


def find_package():
    for cxx in ["OFF", "ON"] if CXX else ["OFF"]:
        folder = scratch("consumer-" + cxx)
        compilers = [f"-DCMAKE_C_COMPILER={CC}"] + ([f"-DCMAKE_CXX_COMPILER={CXX}"] if CXX else [])
        run(["cmake", "-S", os.path.dirname(CONSUMER), "-B", folder, f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DWITH_CXX={cxx}", *compilers])
        run(["cmake", "--build", folder])
        for kind in ["shared_c", "static_c"] + (["shared_cxx", "static_cxx"] if cxx == "ON" else []):
            runs(os.path.join(folder, kind))


def pkg_config():
    need("pkg-config")
    environment = {**os.environ, "PKG_CONFIG_PATH": os.path.join(libdir(), "pkgconfig")}
    def flags(*options): return run(["pkg-config", *options, "blockscale"], env=environment).split()
    check(flags("--modversion") == ["0.1.0"], "pkg-config has another version")
    run([CC, *flags("--cflags"), CONSUMER, "-o", scratch("pc"), *flags("--libs")])
    runs(scratch("pc"), LD_LIBRARY_PATH=libdir())
    static = [word for word in flags("--libs", "--static") if word != "-lblockscale"]
    run([CC, *flags("--cflags"), CONSUMER, os.path.join(libdir(), "libblockscale.a"), "-o", scratch("pcs"), *static])
    runs(scratch("pcs"))


def plain_compiler(): builds_and_runs(CC, [], [f"-L{libdir()}", "-lblockscale", f"-Wl,-rpath,{libdir()}"], "plain")
def c99(): builds_and_runs(CC, ["-std=c99"], [f"-L{libdir()}", "-lblockscale"], "c99", LD_LIBRARY_PATH=libdir())
def c11(): builds_and_runs(CC, ["-std=c11"], [f"-L{libdir()}", "-lblockscale"], "c11", LD_LIBRARY_PATH=libdir())


def cxx17():
    need(CXX)
    builds_and_runs(CXX, ["-std=c++17", "-xc++"], [f"-L{libdir()}", "-lblockscale"], "cxx17", LD_LIBRARY_PATH=libdir())


def readme_blocks():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        return re.findall(r"^```c\n(.*?)^```", file.read(), flags=re.S | re.M)


def readme_prints(program):
    """x = i % 7 - 3 and w = i % 5 - 2 are e2m1 numbers: D is exact."""
    with open(scratch("readme.c"), "w", encoding="utf-8") as out:
        out.write(program)
    run([CC, *STRICT, f"-I{PREFIX}/include", scratch("readme.c"), "-o", scratch("readme"), f"-L{libdir()}",
         "-lblockscale"])
    printed = run([scratch("readme")], env={**os.environ, "LD_LIBRARY_PATH": libdir()}).split()
    want = [sum((i % 7 - 3) * ((j * 64 + i) % 5 - 2) for i in range(64)) for j in range(3)]
    check([float(word) for word in printed] == want, f"README.md's program prints {printed}, not {want}")


def readme_program():
    """The C program of README.md, as it is printed there."""
    programs = [block for block in readme_blocks() if "int main(" in block]
    check(len(programs) == 1, f"README.md has {len(programs)} C programs")
    readme_prints(programs[0])


README_LINES = """#include <blockscale.h>
#include <stdio.h>
#include <string.h>

static uint16_t bf16(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint16_t)(bits >> 16);
}

int main(void)
{
    enum { m = 4, n = 3, k = 64 };
    uint16_t x[m * k];
    float w[n * k], y[m * n];
    unsigned char codes[n * k / 2], s[n * k / 32];
    for (int i = 0; i < m * k; i++) x[i] = bf16((float)(i % 7) - 3);
    for (int i = 0; i < n * k; i++) w[i] = (float)(i % 5) - 2;
    bsm_real_matrix weights = { .struct_size = sizeof weights, .rows = n, .columns = k, .data = w,
                                .row_stride = k, .column_stride = 1 };
    bsm_context *context;
    if (bsm_context_create(NULL, &context) != BSM_OK) return 1;
LINES
    printf("%g %g %g\\n", y[0], y[1], y[2]);
    bsm_context_destroy(context);
    return status != BSM_OK;
}
"""


def readme_lines():
    """The lines of C on README.md's first screen, in a program around them."""
    lines = [block for block in readme_blocks() if "int main(" not in block]
    check(len(lines) == 1, f"README.md has {len(lines)} pieces of C")
    readme_prints(README_LINES.replace("LINES", lines[0]))


def loads_and_unloads():
    run([CC, "-D_GNU_SOURCE", f"-I{PREFIX}/include", os.path.join(HERE, "reload.c"), "-o", scratch("reload"), "-ldl"])
    run([scratch("reload"), os.path.join(libdir(), "libblockscale.so")])


def a_handler_may_end_the_process():
    run([CC, "-D_GNU_SOURCE", f"-I{PREFIX}/include", os.path.join(HERE, "handler.c"), "-o", scratch("handler"), f"-L{libdir()}", "-lblockscale"])
    for _ in range(30):
        run([scratch("handler")], expect=7, env={**os.environ, "LD_LIBRARY_PATH": libdir()}, timeout=60)


def no_path_of_the_builder():
    for root, _, files in os.walk(PREFIX):
        for name in files:
            with open(os.path.join(root, name), "rb") as file:
                check(SOURCE.encode() not in file.read(), f"{name} holds the path of the source tree")


# Headers and sources -------------------------------------------------------------------------------------------------

def headers_compile_alone(compiler, language, standards):
    headers = [os.path.join(SOURCE, "include", "blockscale.h"), *glob.glob(os.path.join(SOURCE, "include", "blockscale", "*.h"))]
    check(len(headers) >= 9, "headers are missing")
    for header in headers:
        for standard in standards:
            compile_text(compiler, language, standard, f'#include "{header}"\n')


def compile_text(compiler, language, standard, text):
    source = scratch("text." + ("c" if language == "c" else "cc"))
    with open(source, "w", encoding="utf-8") as out:
        out.write(text)
    run([compiler, f"-x{language}", f"-std={standard}", "-fsyntax-only", *STRICT, f"-I{SOURCE}/include", f"-I{SOURCE}", source])


def headers_in_c(): headers_compile_alone(CC, "c", ["c99", "c11"])


def headers_in_cxx():
    need(CXX)
    headers_compile_alone(CXX, "c++", ["c++17"])


def sizes_in_cxx():
    need(CXX)
    compile_text(CXX, "c++", "c++17", '#include "blockscale.h"\n'
                 '#define ABI_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type);\n'
                 '#define ABI_OFFSET(type, field, bytes) static_assert(offsetof(type, field) == (bytes), #field);\n'
                 '#include "abi/sizes.h"\n')


def bare_compiler_builds_the_library():
    """As README says: every .c file below src but those of the folders that it names."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        said = re.search(r"over every \.c file below `src/` but those of (.*?) gives a working", " ".join(file.read().split()))
    without = tuple(os.path.join(SOURCE, folder, "") for folder in re.findall(r"`([^`]+)`", said.group(1)))
    sources = [file for file in sorted(glob.glob(os.path.join(SOURCE, "src", "**", "*.c"), recursive=True))
               if not file.startswith(without)]
    run([CC, "-O0", f"-I{SOURCE}/include", f"-I{SOURCE}/src", f"-I{SOURCE}/third_party", CONSUMER, *sources,
         "-o", scratch("bare"), "-lm", "-lpthread"])
    runs(scratch("bare"))


# Symbols -------------------------------------------------------------------------------------------------------------

def symbols(path, *options):
    return sorted(line.split()[-1] for line in run(["nm", *options, "--defined-only", path]).splitlines() if len(line.split()) == 3)


def exported_symbols_are_the_list():
    need("nm")
    with open(os.path.join(SOURCE, "abi", "symbols.txt"), encoding="utf-8") as file:
        listed = file.read().split()
    check(listed == sorted(set(listed)), "abi/symbols.txt is not sorted")
    exported = symbols(os.path.join(libdir(), "libblockscale.so"), "-D")
    check(exported == listed, f"only exported: {sorted(set(exported) - set(listed))}; only listed: {sorted(set(listed) - set(exported))}")


def listed_symbols_are_declared():
    with open(os.path.join(SOURCE, "abi", "symbols.txt"), encoding="utf-8") as file:
        listed = file.read().split()
    declared = set()
    for header in glob.glob(os.path.join(SOURCE, "include", "blockscale", "*.h")):
        with open(header, encoding="utf-8") as file:
            declared.update(re.findall(r"BSM_API[^;]*?\b(bsm_\w+)\(", file.read()))
    check(declared == set(listed), f"declared and listed differ: {sorted(declared ^ set(listed))}")


def static_library_keeps_to_its_prefixes():
    need("nm")
    wrong = [name for name in symbols(os.path.join(libdir(), "libblockscale.a"), "-g") if not re.match("bsmi?_", name)]
    check(not wrong, f"global symbols without bsm_ or bsmi_: {wrong}")


# Hardening -----------------------------------------------------------------------------------------------------------

def readelf(*options): return run(["readelf", "-W", *options])


def linked_files(): return [os.path.realpath(os.path.join(libdir(), "libblockscale.so")), os.path.join(PREFIX, "bin", "blockscale")]


def hardened_files():
    need("readelf")
    for path in linked_files():
        segments, dynamic, used = readelf("-l", path), readelf("-d", path), readelf("--dyn-syms", path)
        check("GNU_RELRO" in segments and re.search(r"BIND_NOW|FLAGS.*\bNOW\b", dynamic), f"{path}: not relro and bound at start")
        check(re.search(r"GNU_STACK.* RW +0x", segments), f"{path}: the stack is executable")
        check("TEXTREL" not in dynamic, f"{path}: relocations in code")
        check("__stack_chk_fail" in used, f"{path}: no stack protector")
        check(re.search(r"__\w+_chk@", used), f"{path}: no fortified calls")
        check("RPATH" not in dynamic and "RUNPATH" not in dynamic, f"{path}: has a search path")
    check(re.search(r"FLAGS_1.*PIE", readelf("-d", linked_files()[1])), "the command is not position independent")


def control_flow_protection():
    need("readelf")
    if "X86-64" not in readelf("-h", linked_files()[0]):
        raise script.Skip("not x86-64")
    check("-fcf-protection" in flags_of_the_build(), "-fcf-protection is off")
    archive = os.path.join(libdir(), "libblockscale.a")
    members = run(["ar", "t", archive]).split()
    notes = readelf("-n", archive)
    marked = len(re.findall(r"x86 feature: IBT, SHSTK", notes))
    check(marked == len(members) > 0, f"{marked} of {len(members)} objects are marked IBT, SHSTK")


def flags_of_the_build():
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        return file.read()


def flags():
    commands = [line for line in flags_of_the_build().splitlines() if '"command"' in line and "/src/" in line]
    check(len(commands) > 10, "no compile commands")
    for flag in ["-O[23]", "-D_FORTIFY_SOURCE=3", "-fstack-clash-protection", "-fstack-protector-strong", "-fno-fast-math",
                 "-ffp-contract=off", "-fvisibility=hidden"]:
        missing = [line for line in commands if not re.search(" " + flag + " ", line)]
        check(not missing, f"{flag} is missing in {len(missing)} of {len(commands)} commands: {missing[:1]}")
    check(not re.search(r"-Ofast|-ffast-math|-funsafe-math|-march=", "".join(commands)), "a flag that changes results or needs a newer CPU")


script.cases("install", [
    installs_and_moves, installed_command_runs, manual_and_completions_are_the_command_s, find_package, pkg_config, plain_compiler, c99, c11, cxx17, readme_program, readme_lines, loads_and_unloads,
    a_handler_may_end_the_process,
    no_path_of_the_builder, headers_in_c, headers_in_cxx, sizes_in_cxx, bare_compiler_builds_the_library,
    exported_symbols_are_the_list, listed_symbols_are_declared, static_library_keeps_to_its_prefixes, hardened_files,
    control_flow_protection, flags])

#!/usr/bin/env python3
"""Takes fences, waits, arrives, commits and barriers out of the CUDA kernels, one at a time, and runs tests on cudasim: does a report or
a wrong result notice it?  Each answer is appended to LOG, and what stands there is not asked again; the last lines count.

usage: mutate.py BUILD LOG [--every N] [--only REGEX] [ENTRY...]

--every N: of the instructions of one name in one kernel, the first and every N-th behind it; --only: instructions that match."""
import argparse
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import relink

# entry: fatbin, tests in the order in which they are tried: the quick ones first
GEMM = ["test_gemm --only factors", "test_gemm --only exponents", "test_gemm --only boxes_of_the_tile_before", "test_gemm --only groups",
        "test_gemm --only edges", "test_gpu_epilogues --only special_numbers"]
KERNELS = {
    "bsmi_gemm_64x48_1x1": ("sm90_gemm_small", GEMM),
    "bsmi_gemm_128x48_2x1": ("sm90_gemm_small", GEMM),
    "bsmi_decode": ("common_decode", ["test_device_decode --only spans", "test_gpu_contract --only factors_and_addends",
                                      "test_device_decode --only every_format_and_packing", "test_device_decode --only every_layout",
                                      "test_gpu_decoding --only scales_and_codes_of_any_size"]),
    "bsmi_decode_plain": ("common_decode_plain", ["test_device_decode --only plain_operands", "test_gpu_decoding --only far_scales_in_few_places",
                                                  "test_gpu_decoding --only scales_and_codes_of_any_size", "test_gpu_decoding --only operands_of_every_kind"]),
    "bsmi_quantize": ("common_quantize", ["test_device_quantize --only quick_ways", "test_device_quantize --only every_scale_of_an_amax",
                                          "test_gpu_contract --only quantizing_and_back",
                                          "test_device_quantize --only every_recipe_and_option"]),
    "bsmi_quantize_policies": ("common_quantize_policies", ["test_device_quantize --only policies"]),
    "bsmi_amax": ("common_quantize", ["test_gpu_contract --only quantizing_and_back"]),
    "bsmi_convert_scales": ("common_scales", ["test_device_scales --only whole_units", "test_gpu_contract --only scales_from_layout_to_layout",
                                              "test_device_scales --only every_layout_to_every_other"]),
    "bsmi_clear_padding": ("common_scales", ["test_gpu_contract --only quantized_outputs"]),
    "bsmi_dequantize": ("common_dequantize", ["test_device_dequantize --only every_scale_with_every_code",
                                              "test_gpu_contract --only quantizing_and_back",
                                              "test_device_dequantize --only every_format_packing_and_type"]),
    "bsmi_finish": ("common_finish", ["test_gpu_epilogues"]),
    "bsmi_sums": ("simt_sums", ["test_gpu_contract --only extreme_scales", "test_gpu_contract --only batches_and_groups",
                                "test_gpu_products --only plain_kernel_has_the_cpus_bits"]),
    "bsmi_group_tables": ("simt_sums", ["test_gpu_contract --only batches_and_groups"]),
}
for file, codes in (("bytes", ["bytes"]), ("nibbles", ["mxfp4", "nvfp4"])):
    for code in codes:
        for shape in "16x64_1x1", "32x64_1x1", "64x64_1x2", "128x64_1x2", "256x64_1x2":
            KERNELS[f"bsmi_gemm_{code}_{shape}"] = (f"sm90_decoding_{file}", ["test_gpu_decoding --only every_format",
                                                                                   "test_gpu_decoding --only edges"])
for shape in "64x64_1x2", "128x64_1x2", "256x64_1x2":
    KERNELS[f"bsmi_gemm_stream_{shape}"] = ("sm90_decoding_stream", ["test_gpu_decoding --only streams", "test_gpu_decoding --only edges"])
for code in "mxfp4", "nvfp4":
    KERNELS[f"bsmi_gemm_{code}_256x128_1x2"] = ("sm90_decoding_nibbles", ["test_gpu_decoding --only every_format", "test_gpu_decoding --only edges"])
# Blackwell's, on as few SMs as a cluster has, so that it makes all tiles: more steps than stages, more tiles than accumulators, parts of K,
# D by boxes, from registers, and quantized.  Settings stand before a test.
TYPES = ["20 200 64 " + d for d in ("fp32", "bf16", "fp16", "mxfp8_e4m3")]
SM100 = {"256x256": ("2", ["20 20 3000", "300 520 608"] + TYPES), "128x256": ("1", ["20 20 3000", "140 600 608"] + TYPES),
         "128x32": ("1", ["20 20 3000", "40 200 608"] + TYPES),
         "8x128": ("1", ["3 100 3000", "5 700 608", "3 100 8256", "3 100 256 mxfp8_e4m3"])}
for kind, formats in (("mxf8f6f4", "mxfp8_e4m3 mxfp4"), ("mxf4", "mxfp4 mxfp4"), ("mxf4nvf4", "nvfp4 nvfp4")):
    for tile, (sms, products) in SM100.items():
        KERNELS[f"bsmi_gemm_{kind}_{tile}"] = (f"sm100_gemm_{kind}", [
            f"CUDASIM_DEVICE=sm_100a CUDASIM_SMS={sms} PRODUCTS='cuda_tcgen05_{kind}_{tile} {formats} {product}' "
            "test_gpu_codes --only asked_products" for product in products])
SPARED = ["sm90/decoding_bytes", "sm90/decoding_nibbles", "sm90/decoding_stream", "sm90/gemm_large",       # from the tests: reading them takes longer than a test
          "sm100/gemm_f16", "sm100/gemm_mxf4", "sm100/gemm_mxf4nvf4", "sm100/gemm_mxf8f6f4"]
WANTED = {"common_decode": "sm90_decoding_nibbles", "common_decode_plain": "sm90_decoding_nibbles"}                            # but by these
SMS = {"1x1": "1", "2x1": "2", "1x2": "2"}               # one cluster or multiprocessor, which then does all of the work
SECONDS = 100                            # of the processor, of one test: mutants that hang are told of by cudasim itself, long before


def ptx_of(fatbin):
    """The text with the line numbers that the library's loader counts: up to the zero byte behind it."""
    with open(fatbin, "rb") as file:
        data = file.read()
    begin = data.rindex(b".version")
    while data[begin - 1:begin] == b"\n":
        begin -= 1
    return data[begin:data.index(b"\0", begin)]


def mutants_of(entry, text):
    """(name for CUDASIM_MUTATE, the instruction) of all, as cudasim lists them."""
    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(["bin/cudasim", "mutate", file.name, "--entry", entry, "--program", "/bin/true"], stdout=subprocess.PIPE,
                              text=True, check=True)
    found = re.findall(r"^not executed +line +(\d+): (.*)$", done.stdout, re.M)
    lines = [line for line, _ in found]
    seen = {}
    for line, instruction in found:
        seen[line] = seen.get(line, 0) + 1
        yield f"{entry}:{line}" + (f".{seen[line]}" if lines.count(line) > 1 else ""), instruction


def settings_and_command(test):
    """({name: value}, words)"""
    words, settings = shlex.split(test), {}
    while "=" in words[0]:
        name, _, settings[name] = words.pop(0).partition("=")
    return settings, words


def link_tests(build, fatbin, tests, folder):
    """The programs of the tests, in the folder, with no more kernels than they need."""
    def change(text):
        for kernels in SPARED:
            wanted = relink.name_of(kernels) in (fatbin, WANTED.get(fatbin))
            text = text if wanted else relink.without(text, kernels)
        return text
    os.makedirs(folder, exist_ok=True)
    for program in {settings_and_command(test)[1][0] for test in tests}:
        if not os.path.exists(os.path.join(folder, program)):
            relink.relink(build, program, folder, change)


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))


def run(entry, mutant, folder, tests):
    """What became of it: "noticed by ...", "survives", "not executed"."""
    taken = False
    for test in tests:
        environment = dict(os.environ, BLOCKSCALE_LIBCUDA=os.path.join(folder, "..", "libcudasim.so"), CUDASIM_DEVICE="sm_90a")
        environment["CUDASIM_SMS"] = SMS.get(entry[-3:], "1")
        if "gemm" in entry:
            environment["GEMM_INSTANCE"] = entry
        if mutant is not None:
            environment["CUDASIM_MUTATE"] = mutant
        settings, words = settings_and_command(test)
        environment.update(settings)
        done = subprocess.run([os.path.join(folder, words[0])] + words[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", preexec_fn=limit, env=environment, check=False)
        if done.returncode == -signal.SIGXCPU:
            return f"noticed by time: {test}"
        taken |= "CUDASIM_MUTATE took away" in done.stdout
        if done.returncode != 0:
            report = re.search(r"^cudasim: (?!CUDASIM_MUTATE)(.*)", done.stdout, re.M)
            return f"noticed by {test}: {report.group(1)[:160] if report else 'wrong result'}"
    return "survives" if taken else "not executed"


def chosen(mutants, every, only):
    """Of each kind of instruction that matches the first and every N-th behind it."""
    seen = {}
    for mutant, instruction in mutants:
        kind = re.search(r"[a-z][\w.:]*", re.sub(r"^@\S+ ", "", instruction)).group(0)
        if not re.search(only, instruction):
            continue
        if seen.setdefault(kind, 0) % every == 0:
            yield mutant, instruction
        seen[kind] += 1


def known(log):
    if not os.path.exists(log):
        return {}
    with open(log, encoding="utf-8") as lines:
        return dict(line.rstrip("\n").split("\t", 1) for line in lines)


def mutate(entry, mutants, folder, tests, done, log):
    """Asks what is not known yet, and counts."""
    counts = {}
    for mutant, instruction in mutants:
        if mutant not in done:
            if not counts and run(entry, None, folder, tests) != "not executed":
                sys.exit(f"{entry}: fails before anything is taken away")
            done[mutant] = f"{run(entry, mutant, folder, tests)}\t{instruction}"
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{mutant}\t{done[mutant]}\n")
        fate = re.match("noticed|survives|not executed", done[mutant]).group(0)
        counts[fate] = counts.get(fate, 0) + 1
        if fate == "survives":
            print(f"{mutant}: {done[mutant]}", flush=True)
    print(f"{entry}: " + ", ".join(f"{count} {fate}" for fate, count in counts.items()), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("log")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("entries", nargs="*")
    options = parser.parse_intermixed_args()
    log, entries = os.path.abspath(options.log), options.entries or list(KERNELS)
    os.chdir(options.build)
    done = known(log)
    with tempfile.TemporaryDirectory() as folder:
        texts = {}
        shutil.copy("lib/libcudasim.so", folder)                            # and all else at first: the build may change meanwhile
        for fatbin, tests in (KERNELS[entry] for entry in entries):
            texts[fatbin] = ptx_of(f"src/cuda/{fatbin}.fatbin")
            link_tests(os.getcwd(), fatbin, tests, os.path.join(folder, fatbin))
        for entry in entries:
            fatbin, tests = KERNELS[entry]
            mutants = chosen(mutants_of(entry, texts[fatbin]), options.every, options.only)
            mutate(entry, mutants, os.path.join(folder, fatbin), tests, done, log)


main()

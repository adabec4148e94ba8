"""Takes fences, waits, arrives, commits and barriers out of the CUDA kernels, one at a time, and runs tests on cudasim: does a report or
a wrong result notice it?"""
import concurrent.futures
import functools
import json
import glob
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../planted"), os.path.join(HERE, "../..")]
import process
import relink
import simulated_grid
import simulated_grid_sm120 as sm120
from fatbin import ptx_of

PARTS = ["mutants"]
# entry: fatbin, tests in the order in which they are tried: the quick ones first
GEMM = ["test_gemm --only factors", "test_gemm --only exponents", "test_gemm --only boxes_of_the_tile_before", "test_gemm --only groups",
        "test_gemm --only edges", "test_gpu_epilogues --only special_numbers", "test_gpu_fused_dequantization --only fallback_by_the_kernel"]
KERNELS = {
    "bsmi_decode": ("dequantize_decode", ["test_device_decode --only every_fast_path", "test_device_decode --only spans", "test_gpu_contract --only factors_and_addends",
                                      "test_device_decode --only every_format_and_packing", "test_device_decode --only every_layout",
                                      "test_gpu_fused_dequantization --only scales_and_codes_of_any_size"]),
    "bsmi_decode_plain": ("dequantize_decode_plain", ["test_device_decode --only plain_operands", "test_gpu_fused_dequantization --only far_scales_in_few_places",
                                                  "test_gpu_fused_dequantization --only scales_and_codes_of_any_size",
                                                  "test_gpu_fused_dequantization --only operands_of_every_kind",
                                                  "test_gpu_prepacked --only bits_are_the_same"]),
    "bsmi_quantize": ("quantize_quantize", ["test_device_quantize --only fast_paths", "test_device_quantize --only every_scale_of_an_amax",
                                          "test_gpu_contract --only quantizing_and_back",
                                          "test_device_quantize --only every_recipe_and_option"]),
    "bsmi_quantize_policies": ("quantize_policies", ["test_device_quantize --only policies"]),
    "bsmi_quantize_row_and_column": ("quantize_row_and_column", ["test_device_row_and_column --only " + case for case in ("chunks", "bands", "every_format_with_every_other",
                                                                                                           "tensor_scales_of_an_amax")]),
    "bsmi_quantize_row_and_column_powers": ("quantize_row_and_column", ["test_device_row_and_column --only powers"]),
    "bsmi_quantize_row_and_column_quotients": ("quantize_row_and_column", ["test_device_row_and_column --only quotients"]),
    "bsmi_order_scales": ("quantize_row_and_column", ["CUDASIM_SMS=4 test_device_row_and_column --only " + case for case in ("powers", "quotients")]),
    "bsmi_amax": ("quantize_quantize", ["test_gpu_contract --only quantizing_and_back"]),
    "bsmi_convert_scales": ("scales_scales", ["test_device_scales --only whole_units", "test_gpu_contract --only scales_from_layout_to_layout",
                                              "test_device_scales --only every_layout_to_every_other"]),
    "bsmi_clear_padding": ("scales_scales", ["test_gpu_contract --only quantized_outputs"]),
    "bsmi_dequantize": ("dequantize_dequantize", ["test_device_dequantize --only every_fast_path", "test_device_dequantize --only every_scale_with_every_code",
                                              "test_gpu_contract --only quantizing_and_back",
                                              "test_device_dequantize --only every_format_packing_and_type"]),
    "bsmi_finish": ("epilogue_finish", ["test_gpu_epilogues"]),
    "bsmi_sums": ("simt_sums", ["test_gpu_contract --only extreme_scales", "test_gpu_contract --only batches_and_groups",
                                "test_gpu_products --only plain_kernel_has_the_cpus_bits"]),
    "bsmi_group_tables": ("simt_sums", ["test_gpu_contract --only batches_and_groups", "test_gpu_contract --only many_groups"]),
}
INSTANCES = ""
for header in sorted(glob.glob(os.path.join(HERE, "../../../src/cuda/sm90/kernels/*_instances.h"))):
    with open(header, encoding="utf-8") as text:
        INSTANCES += text.read()


def names_in(table):
    """The instances of a table of src/cuda/sm90/kernels."""
    rows = re.search(r"BSMI_SM90_%s\(X\)((?:[ \\\n]+X\(.*)+)" % table, INSTANCES).group(1)
    return re.findall(r"X\((\w+),", rows)


for table in "LARGE", "SMALL":
    for name in names_in("GEMM_" + table):
        KERNELS[f"bsmi_gemm_{name}"] = (f"sm90_kernels_shared_memory_{table.lower()}", GEMM)
DECODING = ["test_gpu_fused_dequantization --only " + case for case in ("every_format", "long_rows", "whole_tiles", "edges", "scales_and_codes_of_any_size",
                                                            "operands_of_every_kind", "wide_tiles")]
for code, file in ("bytes", "bytes"), ("mxfp4", "nibbles"), ("nvfp4", "nibbles"):
    for name in names_in("DECODING") + (names_in("DECODING_BYTES") if file == "bytes" else []):
        KERNELS[f"bsmi_gemm_{code}_{name}"] = (f"sm90_kernels_fused_{file}", DECODING)
for name in names_in("GEMM_INTEGERS"):
    for rows in "int8", "int8_fallback":
        KERNELS[f"bsmi_gemm_{rows}_{name}"] = ("sm90_kernels_shared_memory_int8", ["test_gpu_int8 --only " + case for case in (
            "which_rows_fit", "edges", "stored_by_boxes", "operands_of_every_kind", "epilogues")])
for name in names_in("STREAM"):
    KERNELS[f"bsmi_gemm_stream_{name}"] = ("sm90_kernels_fused_stream", ["test_gpu_fused_dequantization --only streams", "test_gpu_fused_dequantization --only edges"])
for code in "mxfp4", "nvfp4":
    for name in names_in("MIXED_INPUT_SCALES_128X4"):
        KERNELS[f"bsmi_gemm_{code}_{name}"] = (f"sm90_kernels_mixed_input_{code}", DECODING)
    for name in names_in("MIXED_INPUT_AS_STORED"):
        KERNELS[f"bsmi_gemm_{code}_{name}"] = (f"sm90_kernels_mixed_input_{code}", ["test_gpu_fused_dequantization --only " + case for case in (
            "every_format", "long_rows", "wide_tiles", "decoded_in_registers", "whole_tiles", "operands_of_every_kind", "edges", "epilogues")])
    for name in names_in("MIXED_INPUT_PREPACKED") + names_in("MIXED_INPUT_ROWS"):
        KERNELS[f"bsmi_gemm_{code}_{name}"] = (f"sm90_kernels_mixed_input_prepacked_{code}", ["test_gpu_prepacked --only " + case for case in (
            "schedules", "bits_are_the_same", "contract")])
    for name in names_in("MIXED_INPUT_PARTS_IN_TURN") + names_in("MIXED_INPUT_SPLIT_K"):
        KERNELS[f"bsmi_gemm_{code}_{name}"] = (f"sm90_kernels_mixed_input_split_k_{code}", ["CUDASIM_SMS=4 test_gpu_split_k --only " + case for case in (
            "schedules", "parts_add_up")])
    for name in names_in("MIXED_INPUT_GROUPS"):
        KERNELS[f"bsmi_gemm_{code}_{name}"] = (f"sm90_kernels_mixed_input_groups_{code}", ["test_gpu_prepacked --only " + case for case in (
            "schedules", "bits_are_the_same")])
KERNELS["bsmi_prepack"] = ("sm90_kernels_prepack", ["GEMM_INSTANCE=bsmi_gemm_mxfp4_16x64_prepacked test_gpu_prepacked --only bits_are_the_same"])
for name in names_in("FAST"):
    KERNELS[f"bsmi_gemm_fp8_requantized_{name}"] = ("sm90_kernels_shared_memory_fp8", ["test_gpu_fp8_requantized --only " + case for case in (
        "scales_of_any_size", "stored_by_boxes", "whole_numbers_are_exact", "error_is_within_the_bound", "same_bits_for_every_m")])
KERNELS["bsmi_requantize_fp8"] = ("quantize_fp8_requantize", ["test_device_fp8_requantize --only " + case for case in (
    "every_code_at_every_distance", "every_layout", "long_rows", "every_format_and_packing")] + ["test_gpu_fp8_requantized --only whole_numbers_are_exact"])
KERNELS["bsmi_int8_rows"] = ("dequantize_int8_rows", ["CUDASIM_SMS=2 test_gpu_int8 --only " + case for case in ("which_rows_fit", "edges")])
# Blackwell's, on as few SMs as a cluster has, so that it makes all tiles: more steps than stages, more tiles than accumulators, parts of K,
# D by boxes, from registers, and quantized, tables of columns, rows of groups behind whole tiles.  Settings stand before a test.
BLACKWELL = "CUDASIM_DEVICE=sm_100a CUDASIM_SMS=%d "


def products_of(rows, columns):
    if rows < 128:
        return ["3 100 3000", "5 700 608", "3 100 8256", "3 100 256 mxfp8_e4m3"]
    tiles = "300 520 608" if rows == 256 else "140 %d 608" % (2 * columns + 88)
    return (["20 20 3000", tiles] + ["20 200 64 " + d for d in ("fp32", "bf16", "fp16", "mxfp8_e4m3")]
            + ["140 600 64 any columns", "300 %d 64 fp32 groups" % columns])


def tests_of(kind, formats, rows, columns, ctas):
    asked = "PRODUCTS='cuda_tcgen05_%s_%dx%d %s %s' test_gpu_codes --only asked_products"
    if kind != "f16":
        return [BLACKWELL % ctas + asked % (kind, rows, columns, formats, product) for product in products_of(rows, columns)]
    return [BLACKWELL % ctas + test for test in GEMM if test.startswith("test_gemm")] + [
        BLACKWELL % ctas + asked % (kind, rows, columns, formats, "16 200 64")]          # behind the grid that decodes


for kind, formats in ("mxf8f6f4", "mxfp8_e4m3 mxfp4"), ("mxf4", "mxfp4 mxfp4"), ("mxf4nvf4", "nvfp4 nvfp4"), ("f16", "mxint8 mxint8"):
    for rows, columns, ctas, _ in simulated_grid.tiles_of(kind):
        KERNELS[f"bsmi_gemm_{kind}_{rows}x{columns}"] = (f"sm100_gemm_{kind}", tests_of(kind, formats, rows, columns, ctas))


# Weights decoded into tensor memory: one kernel a format makes all tiles.
for code in "mxfp4", "nvfp4":
    KERNELS[f"bsmi_gemm_tensor_{code}"] = (f"sm100_mixed_input_{code}", [
        BLACKWELL % 1 + f"GEMM_INSTANCE=bsmi_gemm_tensor_{code}_{tile} test_gpu_prepacked --only schedules"
        for tile in ("16x128_prepacked", "128x128_prepacked")] + [
        BLACKWELL % 2 + f"GEMM_INSTANCE=bsmi_gemm_tensor_{code}_{tile} test_gpu_fused_dequantization --only {case}"
        for tile, case in (("32x128", "wide_tiles"), ("64x128", "scales_and_codes_of_any_size"), ("32x128", "operands_of_every_kind"),
                           ("16x128", "edges"), ("64x128", "epilogues"))])


def tests_of_mma_sync(kind, tile):
    """More steps than stages, more tiles than CTAs, parts of K; D from registers and quantized, tables of columns, groups."""
    pairs, step = sm120.pairs_of(kind, tile), sm120.step_of(kind, tile)
    formats = "%s %s" % pairs[min(1, len(pairs) - 1)]    # with scales, which a grid in front converts where K is no multiple of a block
    asked = "CUDASIM_DEVICE=sm_120a CUDASIM_SMS=1 PRODUCTS='cuda_mma_sync_%s_%s %s %s' test_gpu_codes --only asked_products"
    copied = asked % (kind, tile.name, "%s %s" % sm120.COPIED[kind], "%s 20 %d any fours" % (3 * tile.rows, step * (tile.stages + 1)))
    products = ["17 20 %d" % (step * (2 * tile.stages + 1) + 48), "5 %d %d" % (3 * tile.columns, step * (tile.stages + 1)), "20 70 64 fp32 columns"]
    if tile.schedule == "SPLIT_K":
        products = ["5 20 %d" % (2048 + step * tile.stages)] + products
    if kind != "bf16":
        products += ["40 70 64 mxfp8_e4m3", "300 70 64 fp32 groups", "20 70 64 fp32 relu"]
    else:
        products += ["16 200 64"]         # behind the grid that dequantizes
    return [asked % (kind, tile.name, formats, product) for product in products] + [copied]


# A kernel of mxf8f6f4 has a loop for each pair, the same but for the types of an instruction.  One of them is executed, and that of
# the self-test's pair, with a single step: what is not missed there is missed in the other.
for kind in sm120.KINDS:
    for tile in sm120.tiles_of(kind):
        if kind == "mxf8f6f4" and tile.name in ("128x64x128", "64x128x128", "64x64x128", "32x128x128"):
            continue                      # these have what others of them have
        KERNELS[f"bsmi_gemm_sm120_{kind}_{tile.name}"] = (f"sm120_gemm_{kind}", tests_of_mma_sync(kind, tile))
# Left out of the tests' programs: to read them takes longer than a test.
SPARED = ["sm90/kernels/fused_bytes", "sm90/kernels/fused_nibbles", "sm90/kernels/fused_stream", "sm90/kernels/shared_memory_fp8", "sm90/kernels/shared_memory_int8", "sm90/kernels/shared_memory_large",
          "sm90/kernels/mixed_input_mxfp4", "sm90/kernels/mixed_input_nvfp4", "sm90/kernels/mixed_input_prepacked_mxfp4", "sm90/kernels/mixed_input_prepacked_nvfp4",
          "sm100/mixed_input_mxfp4", "sm100/mixed_input_nvfp4", "sm100/gemm_f16", "sm100/gemm_mxf4", "sm100/gemm_mxf4nvf4", "sm100/gemm_mxf8f6f4",
          "sm120/gemm_bf16", "sm120/gemm_mxf4", "sm120/gemm_mxf4nvf4", "sm120/gemm_mxf8f6f4"]
# But by these.  Without mxf4, test_gpu_codes is skipped; tests of panels ask the kernels of both formats.
WANTED = {"dequantize_decode": ["sm90_kernels_fused_nibbles"],
          "dequantize_decode_plain": ["sm90_kernels_fused_nibbles", "sm90_kernels_fused_bytes", "sm90_kernels_mixed_input_prepacked_mxfp4", "sm90_kernels_mixed_input_prepacked_nvfp4"],
          "dequantize_int8_rows": ["sm90_kernels_shared_memory_int8"], "quantize_fp8_requantize": ["sm90_kernels_shared_memory_fp8"], "sm100_gemm_f16": ["sm100_gemm_mxf4"],
          "sm100_gemm_mxf8f6f4": ["sm100_gemm_mxf4"], "sm100_gemm_mxf4nvf4": ["sm100_gemm_mxf4"],
          "sm120_gemm_bf16": ["sm120_gemm_mxf4"], "sm120_gemm_mxf8f6f4": ["sm120_gemm_mxf4"], "sm120_gemm_mxf4nvf4": ["sm120_gemm_mxf4"]}
both = ["sm90_kernels_mixed_input_prepacked_mxfp4", "sm90_kernels_mixed_input_prepacked_nvfp4"]
WANTED.update((f"sm100_mixed_input_{code}", ["sm100_gemm_f16", "sm100_mixed_input_mxfp4", "sm100_mixed_input_nvfp4"]) for code in ("mxfp4", "nvfp4"))
WANTED.update((file, both) for file in both + ["sm90_kernels_mixed_input_groups_mxfp4", "sm90_kernels_mixed_input_groups_nvfp4"])
WANTED["sm90_kernels_prepack"] = WANTED["sm90_kernels_mixed_input_prepacked_mxfp4"]
# (kernels, place and instruction, places of a kernel at most, why it stays although no test misses it)
ROWS, GROUPS = r"_rows_prepacked$", r"_groups_prepacked$"
REASONS = [
    (r"^bsmi_gemm_tensor_", r"bar\.warp\.sync", 2,
     "before the last barrier it keeps a warp together for a barrier that is .aligned; behind tcgen05.wait::st, which all"
     " lanes pass together, it has the other lanes' fence in front of the arrival of one"),
    (r"_prepacked$|^bsmi_gemm_sm120_|^bsmi_gemm_tensor_", r"fence\.mbarrier_init", 1,
     "the manual (9.7.13.4) wants it between a barrier's initialization and TMA; in a cluster of one CTA a barrier of"
     " the CTA follows, which is all that cudasim's order needs"),
    (GROUPS, r"wgmma\.(commit_group|wait_group\S* 0)", 30,
     "between two steps of one stage of A: PTX has other registers for the next step, whose wait covers both; ptxas needs"
     " this one to give the next step the same registers"),
    (ROWS + "|" + GROUPS, r"fence\.proxy\.async", 1,
     "of the loader of slices, where the ring is filled first: nobody has read there before; the same function goes on"
     " behind reads"),
    (ROWS + "|" + GROUPS, r"mbarrier\.try_wait", 1,
     "of the loader of slices, where the ring is filled first: its stages are empty, and the wait ends at once"),
    (ROWS + "|" + GROUPS, r"^[^:]*:\d+ bar\.sync", 2,
     "fill_tables' first barrier, behind the vote on whether D is plain, and the one in front of compute_fallback, which"
     " itself begins with a vote before it writes: the same function has both without a vote in front, elsewhere"),
    (r"32x256" + GROUPS, r"fence\.proxy\.async", 1,
     "behind the clearing of rows, which ldmatrix reads; the loader has a fence of its own in front of each stage, and"
     " with wgmma this one is missed"),
    (GROUPS, r"griddepcontrol\.wait", 1,
     "in front of the table of groups: a kernel of the caller may be what writes group_rows; no kernel of the library"
     " does"),
    (r"_prepacked$", r"compute_fallback\S* bar\.sync", 1,
     "at the end: a barrier of the warpgroup comes before the next tile's sums or tables are written, that of fill_tables"
     " or the one in front of plain sums; the function is there for callers without one, too"),
]
SPEED = "griddepcontrol.launch_dependents"      # is for speed alone: no test can miss it, and none is asked to
SCHEDULES = 8                            # that a test is asked under whether a wait is missed: what it waits for must come late once
LIMIT = 100                              # seconds of the processor, of one test under one schedule: mutants that hang are told of by cudasim itself, long before
SECONDS = 8                              # what a mutant takes, roughly


def functions_of(text):
    """(line, name) of every function's head, in the order of lines."""
    heads = re.finditer(rb"^(?:\.\w+ )*\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)", text, re.M)
    return [(text.count(b"\n", 0, head.start()) + 1, head.group(1).decode()) for head in heads]


def called_by(text, entry):
    """The kernel and all functions that it calls, itself or by others; the text with the others' bodies empty, its lines where they
    were."""
    lines, heads, bodies = text.split(b"\n"), functions_of(text), {}
    for (line, name), (end, _) in zip(heads, heads[1:] + [(len(lines) + 1, "")]):
        braces = [i for i in range(line - 1, end - 1) if lines[i] in (b"{", b"}")]
        if braces:                        # else a declaration
            bodies[name] = range(braces[0] + 1, braces[-1])
    called, asked = {entry}, [entry]
    while asked:
        body = bodies[asked.pop()]
        more = set(re.findall(r"[\w$]+", b"\n".join(lines[body.start:body.stop]).decode())) & set(bodies) - called
        called |= more
        asked += more
    for name, body in bodies.items():
        if name not in called:
            lines[body.start:body.stop] = [b""] * len(body)
    return called, b"\n".join(lines)


def mutants_of(build, entry, text):
    """(KERNEL:LINE or, where that is in a function that the kernel calls, KERNEL:FUNCTION:LINE; the instruction) of all."""
    called, alone = called_by(text, entry)
    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        file.write(alone)
        file.flush()
        done = subprocess.run([os.path.join(build, "bin/cudasim"), "mutate", file.name, "--entry", entry, "--program", "/bin/true"],
                              stdout=subprocess.PIPE, text=True, check=True)
    found = re.findall(r"^not executed +line +(\d+): (.*)$", done.stdout, re.M)
    lines = [line for line, _ in found]
    heads, seen = functions_of(text), {}
    for line, instruction in found:
        seen[line] = seen.get(line, 0) + 1
        if SPEED in instruction:
            continue
        function = [name for head, name in heads if head <= int(line)][-1]
        yield (entry if function == entry else f"{entry}:{function}") + f":{line}" + (f".{seen[line]}" if lines.count(line) > 1 else ""), instruction


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
            wanted = relink.name_of(kernels) in [fatbin] + WANTED.get(fatbin, [])
            text = text if wanted else relink.without(text, kernels)
        return text
    os.makedirs(folder, exist_ok=True)
    for program in {settings_and_command(test)[1][0] for test in tests}:
        if not os.path.exists(os.path.join(folder, program)):
            relink.relink(build, program, folder, change)


def prepare_file(build, folder, fatbin):
    """Programs of the tests for one file of kernels; [mutant, instruction, the how manyth of its kind in its kernel] of its kernels."""
    text = ptx_of(os.path.join(build, "bin/cudasim"), relink.fatbins(build)[fatbin])
    entries = [entry for entry, (file, _) in KERNELS.items() if file == fatbin]
    link_tests(build, fatbin, [test for entry in entries for test in KERNELS[entry][1]], os.path.join(folder, "mutants", fatbin))
    found = []
    for entry in entries:
        seen = {}
        for mutant, instruction in mutants_of(build, entry, text):
            kind = re.search(r"[a-z][\w.:]*", re.sub(r"^@\S+ ", "", instruction)).group(0)
            seen[kind] = seen.get(kind, 0) + 1
            found.append([mutant, instruction, seen[kind]])
    return found


def prepare(build, folder):
    files = list(dict.fromkeys(fatbin for fatbin, _ in KERNELS.values()))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(functools.partial(prepare_file, os.path.abspath(build), folder), files))
    with open(os.path.join(folder, "mutants.json"), "w", encoding="utf-8") as file:
        json.dump([mutant for mutants in found for mutant in mutants], file)


@functools.lru_cache
def listed(folder):
    """{mutant: (instruction, the how manyth of its kind in its kernel)}"""
    with open(os.path.join(folder, "mutants.json"), encoding="utf-8") as file:
        return {mutant: (instruction, number) for mutant, instruction, number in json.load(file)}


def cases(folder):
    """(part, case, turn): each kernel as it is, the first instruction of each kind in it, the second ...; Blackwell's before others."""
    for entry in KERNELS:
        yield "mutants", entry, 0
    for mutant, (_, number) in listed(folder).items():
        yield "mutants", mutant, number + (0 if "sm1" in KERNELS[mutant.split(":")[0]][0] else 1)


def cluster_of(entry):
    """As many SMs as a cluster has CTAs: it then does all of the work."""
    shape = re.search(r"_(\d)x(\d)(_registers.*)?$", entry)
    return str(int(shape.group(1)) * int(shape.group(2))) if shape else "1"


def ask_test(folder, entry, mutant, test, left):
    """Exit status (None: no time), what was said."""
    env = dict(os.environ, BLOCKSCALE_LIBCUDA=os.path.abspath(os.path.join(folder, "lib/libcudasim.so")), CUDASIM_DEVICE="sm_90a",
               CUDASIM_SMS=cluster_of(entry), CUDASIM_THREADS="1", OMP_NUM_THREADS="1")
    if "gemm" in entry:
        env["GEMM_INSTANCE"] = entry
    if mutant is not None:
        env["CUDASIM_MUTATE"] = mutant
    settings, words = settings_and_command(test)
    env.update(settings)
    program = os.path.join(folder, "mutants", KERNELS[entry][0], words[0])
    limit = LIMIT * int(settings.get("CUDASIM_SCHEDULES", 1))
    status, out, err, _ = process.run(["sh", "-c", "ulimit -S -t %d; exec \"$@\"" % limit, "sh", program] + words[1:], left, env=env)
    return status, out + err


def ask(folder, case, left):
    """What became of a mutant, or of a kernel as it is; None: no time."""
    entry, _, place = case.partition(":")
    mutant, taken = (place if ":" in place else case) if place else None, False
    tests, waits = list(KERNELS[entry][1]), place and "wait" in listed(folder)[case][0]
    for test in tests:                    # grows: those that came to a wait are asked once more, and the first, which may come
                                          # to it in another order of the warps
        status, said = ask_test(folder, entry, mutant, test, left)
        if status is None:
            return None
        reached = "CUDASIM_MUTATE: threads came to it" in said
        taken |= reached
        if waits and "CUDASIM_SCHEDULES" not in test and (reached or test == KERNELS[entry][1][0]):
            tests.append("CUDASIM_SCHEDULES=%d " % SCHEDULES + test)
        ran = re.search(r": [1-9]\d* passed, 0 failed", said)
        if status == 0 and not ran or status > 0 and not reached:
            return {("mutants", case): ("FAILS", f"{test}: {said[-400:]}")}
        if status == -signal.SIGXCPU:
            return {("mutants", case): ("noticed", f"by time: {test}")}
        if status != 0:
            report = re.search(r"^cudasim: (?!CUDASIM_MUTATE)(.*)", said, re.M)
            return {("mutants", case): ("noticed", f"by {test}: {report.group(1)[:120] if report else 'wrong result'}")}
    return {("mutants", case): ("passes" if mutant is None else "survives" if taken else "not executed", "")}


def jobs(folder, wanted):
    for _, case, turn in wanted:
        yield turn, SECONDS, functools.partial(ask, folder, case)


def place_of(case):
    """Functions that kernels of a file call are asked of with each of these: what one of them misses is missed."""
    entry, _, place = case.partition(":")
    return (KERNELS[entry][0], place) if ":" in place else case


def has_reason(case, instruction, given):
    """Whether one of REASONS holds that has not been given for as many places of the kernel; given: {(kernel, number):
    places}, which grows."""
    entry = case.split(":")[0]
    for number, (kernels, pattern, places, _) in enumerate(REASONS):
        if re.search(kernels, entry) and re.search(pattern, f"{case} {instruction}") and given.get((entry, number), 0) < places:
            given[entry, number] = given.get((entry, number), 0) + 1
            return True
    return False


def show(folder, answers):
    """answers: {case: line of the log or None}.  A row for each kernel; what nothing missed, together over the kernels."""
    rows, survivors, given = {}, {}, {}
    elsewhere = {place_of(case) for case, line in answers.items() if line and line["fate"] == "noticed"}
    for case, line in answers.items():
        entry, _, mutant = case.partition(":")
        counts = rows.setdefault(entry, {"of": 0})
        if not mutant:
            continue
        counts["of"] += 1
        fate = line["fate"] if line else "open"
        counts[fate] = counts.get(fate, 0) + 1
        if fate == "survives" and has_reason(case, listed(folder)[case][0], given):
            counts["with a reason"] = counts.get("with a reason", 0) + 1
        elif fate in ("survives", "not executed") and place_of(case) not in elsewhere:
            same = re.sub(r"%?\b[a-z]+\d+\b", "_", re.sub(r"^@\S+ ", "", listed(folder)[case][0]))
            survivors.setdefault((fate, same), []).append(case)
    for entry, counts in rows.items():
        print(f"  {entry}: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    for (fate, instruction), where in sorted(survivors.items()):
        print(f"  {fate}: {instruction}  {' '.join(where)}")

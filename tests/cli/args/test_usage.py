#!/usr/bin/env python3
"""The command line from outside: help, every option of every verb used wrongly, exit codes, and a standard output that
takes nothing."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import script

command = os.path.abspath(sys.argv[1])
LITTLE = {"layout": ["128x4"], "info": []}               # verbs that say something without files, and quickly


def verbs():
    found = re.findall(r"^  ([a-z]+) ", script.run([command, "help"]), re.M)
    script.check({"matmul", "quantize", "dequantize", "info", "help"} <= set(found), found)
    return [verb for verb in found if verb != "help"]


def options_of(verb):
    """[(name, takes a value, choices)], read from --help."""
    text = script.run([command, verb, "--help"])
    entries = re.findall(r"^  (?:-(\w), )?(--[a-z0-9-]+)( [A-Za-z][\w.]*)?(?:  |\n)", text, re.M)
    script.check(len(entries) >= 5, f"{verb}: {entries}")
    return [(name, letter, bool(value)) for letter, name, value in entries]


def refused(arguments, words="", status=2, **more):
    done = subprocess.run([command] + arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
                          **more)
    line = " ".join(arguments)
    script.check(done.returncode == status, f"{line}: exit status {done.returncode}, not {status}: {done.stderr}")
    script.check(done.stdout == "", f"{line}: printed {done.stdout!r}")
    script.check(done.stderr.startswith("blockscale") and words in done.stderr,
                 f"{line}: said {done.stderr!r}, without {words!r}")
    return done.stderr


def help_everywhere():
    overview = script.run([command, "help"])
    script.check(overview == script.run([command, "--help"]) == script.run([command, "-h"]), "help differs from --help")
    for verb in verbs():
        text = script.run([command, verb, "--help"])
        script.check(text == script.run([command, "help", verb]) == script.run([command, verb, "-h"]), verb)
        script.check(text.startswith(f"blockscale {verb}: ") and f"\nusage: blockscale {verb} " in text, text)
        script.check(f"\nexample:\n  blockscale {verb}" in text or "\nexample:\n  blockscale" in text,
                     f"{verb}: no example")
        about = text.split("\nexample:")[0]
        script.check(max(map(len, about.splitlines()[3:])) <= 100, f"{verb}: a line of more than 100 columns")
    script.check(script.run([command, "--version"]).startswith("blockscale 0."), "version")


def version_everywhere():
    line = script.run([command, "--version"])
    script.check(re.fullmatch(r"blockscale \d+\.\d+\.\d+\n", line), line)
    for words in (["-V"], ["version"], ["info", "--version"], ["matmul", "-V"],
                  ["quantize", "a", "-o", "b", "--version"]):
        script.check(script.run([command, *words]) == line, words)


def mistyped_values_are_suggested():
    quantize = ["quantize", "random:4x64", "-o", "Q"]
    for more, near in ((["-f", "mxpf4"], "mxfp4"), (["-f", "nvpf4"], "nvfp4"), (["-f", "mxpf8"], "mxfp8"),
                       (["-f", "mxfp4", "--recipe", "flor"], "floor"),
                       (["-f", "nvfp4", "--preset", "modelop"], "modelopt"),
                       (["-f", "mxfp4", "--packing", "lowfirst"], "low_first"),
                       (["-f", "mxfp4", "--layout", "lineer"], "linear"),
                       (["-f", "mxfp4", "--layout", "tile:4x4"], "tiles"),
                       (["-f", "mxfp4", "--rounding", "neerest"], "nearest"),
                       (["-f", "mxfp4", "--convention", "model_opt"], "modelopt")):
        refused(quantize + more, f"did you mean {near}?")
    refused(["matmul", "--activation", "gelu_tanj"], "did you mean gelu_tanh?")
    script.check("did you mean" not in refused(quantize + ["-f", "zzzzz"], "one of these is wanted"),
                 "zzzzz is near nothing")


def aliases_are_told():
    for text in (script.run([command, "quantize", "--help"]),
                 refused(["quantize", "x", "-o", "y", "-f", "what"], "wanted"), script.run([command, "manual"])):
        flat = " ".join(text.split())
        script.check("mxfp8 is mxfp8_e4m3, mxfp6 is mxfp6_e2m3" in flat, flat[:2000])


def no_verb_and_wrong_verbs():
    done = subprocess.run([command], capture_output=True, text=True, check=False)
    script.check(done.returncode == 2 and done.stdout == "" and "usage: blockscale VERB" in done.stderr, done)
    refused(["matmull"], "did you mean matmul?")
    refused(["nothing"], "no such verb")
    refused([""], "no such verb")
    refused(["help", "nothing"], "no such verb")
    refused(["help", "matmul", "quantize"], "help takes one verb")
    refused(["--version", "now"], "--version takes no argument")


def every_option_used_wrongly():
    count = 0
    for verb in verbs():
        for name, letter, valued in options_of(verb):
            if name in ("--help", "--version"):
                continue
            if not valued:
                refused([verb, f"{name}=1"], "takes no value")
                refused([verb, name, name], "given twice")
            else:
                refused([verb, name], "needs a value")
                refused([verb, name, "--seed"], "needs a value")
                refused([verb, name, ""], name)
                refused([verb, f"{name}="], name)
                if letter:
                    refused([verb, f"-{letter}"], "needs a value")
            refused([verb, name + "x"], "no such option")
            count += 1
    script.check(count > 60, f"only {count} options were tried")


def numbers_and_names_used_wrongly():
    """An option whose help names its values refuses others and lists them; one of numbers refuses what is none."""
    numbers = names = 0
    for verb in verbs():
        text = script.run([command, verb, "--help"])
        for name, _, valued in options_of(verb):
            entry = re.search(rf"^  (?:-\w, )?{name} (.*?)(?=\n  -|\n\n)", text, re.M | re.S).group(1)
            if not valued:
                continue
            listed = re.search(r"\n +one of (\S+)", entry)
            if listed:
                first = listed.group(1)
                said = refused([verb, name, "nonsense"], name)
                script.check(first in said, f"{verb} {name}: {said}")
                names += 1
            elif entry.startswith(("N ", "NUMBER ")):
                for wrong in ["x", "1x", "0x10", "99999999999999999999999999999999999999999999", "1 "]:
                    if entry.startswith("NUMBER ") and wrong == "0x10":
                        continue                       # strtof reads hexadecimal floats
                    refused([verb, name, wrong], name)
                numbers += 1
    script.check(numbers >= 10 and names >= 10, f"{numbers} and {names}")


def the_manual_has_everything():
    """Every verb and option, with the help's own words; and nothing that a formatter warns of."""
    page = script.run([command, "manual"])
    plain = " ".join(re.sub(r"\\f[BRI]|\\&|^\.\w+$", "", page,
                            flags=re.M).replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\").split())
    for verb in verbs():
        script.check(f'.SS "blockscale {verb}' in page, f"{verb} is not in the manual")
        text = script.run([command, verb, "--help"])
        for name, letter, _ in options_of(verb):
            entry = re.search(rf"^  (?:-\w, )?{name} (.*?)(?=\n  -|\n\n)", text, re.M | re.S).group(1)
            words = " ".join(f"{'-' + letter + ', ' if letter else ''}{name} {entry}".replace("\nwith every verb:",
                                                                                              "").split())
            script.check(words in plain, f"{verb}: {words!r} is not in the manual")
    script.check(json.loads(script.run([command, "manual", "--json"])) == {"manual": page}, "manual --json")
    for tool in (["mandoc", "-Tlint", "-Werror"], ["groff", "-man", "-ww", "-Tutf8", "-z"]):
        if shutil.which(tool[0]):
            done = subprocess.run(tool, input=page, capture_output=True, text=True, check=False)
            script.check(done.returncode == 0 and done.stdout + done.stderr == "", f"{tool}: {done}")


def completed_by_bash(lines, *words):
    """What the script offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in ["blockscale", *words])
    done = script.run(["bash", "-c",
                       f'eval "$1"; COMP_WORDS=({line}) COMP_CWORD={len(words)}; _blockscale; echo "${{COMPREPLY[@]}}"',
                       "bash", lines])
    return done.split()


def completions_know_every_option():
    scripts = {shell: script.run([command, "completion", shell]) for shell in ("bash", "zsh", "fish")}
    for verb in verbs():
        bash = completed_by_bash(scripts["bash"], verb, "-")
        for name, letter, valued in options_of(verb):
            script.check(name in bash, f"{verb} {name}: bash offers {bash}")
            zsh = name + ("=" if valued else "") + ("}" if letter else "[")
            part = re.search(rf"^        {verb}\) _arguments.*?;;$", scripts["zsh"], re.M | re.S).group(0)
            script.check(zsh in part, f"{verb}: {zsh} is not in zsh's script")
            fish = (rf"^complete -c blockscale -n '__fish_seen_subcommand_from {verb}' -l {name[2:]}"
                    rf"{' -s ' + letter if letter else ''} ")
            script.check(re.search(fish, scripts["fish"], re.M), f"{verb}: no line like {fish} in fish's script")
    for words, offered in [(["mat"], ["matmul"]), (["help", "inf"], ["info"]),
                           (["matmul", "--recipe", "flo"], ["floor"]),
                           (["matmul", "-f", "nv"], ["nvfp4"]), (["matmul", "--format", "=", "nv"], ["nvfp4"]),
                           (["matmul", "x", ""], []),
                           (["completion", ""], ["bash", "zsh", "fish"]),
                           (["quantize", "--rounding", "="], ["nearest", "stochastic"])]:
        got = completed_by_bash(scripts["bash"], *words)
        script.check(got == offered, f"{words}: bash offers {got}, not {offered}")
    for shell, text in scripts.items():
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            if shutil.which(shell):
                script.run([shell, "-n", file.name])
        script.check(json.loads(script.run([command, "completion", shell, "--json"])) == {"script": text}, shell)


def closed_and_full_standard_output():
    for verb, arguments in LITTLE.items():
        for more in [[], ["--json"]]:
            line = f"{command} {verb} {' '.join(arguments + more)}"
            done = subprocess.run(["sh", "-c", line + " >&-"], capture_output=True, text=True, check=False)
            script.check(done.returncode == 3 and "standard output" in done.stderr, f"{line} >&-: {done}")
            if os.path.exists("/dev/full"):
                done = subprocess.run(["sh", "-c", line + " >/dev/full"], capture_output=True, text=True, check=False)
                script.check(done.returncode == 3 and "No space left" in done.stderr, f"{line} >/dev/full: {done}")
    for line in ["--help", "--version", "help info", "info --help"]:
        done = subprocess.run(["sh", "-c", f"{command} {line} >&-"], capture_output=True, text=True, check=False)
        script.check(done.returncode == 3, f"{line}: {done}")


def closed_standard_error_and_input():
    for line in ["info 2>&-", "info <&-", "info <&- 2>&-"]:
        done = subprocess.run(["sh", "-c", f"{command} {line}"], capture_output=True, text=True, check=False)
        script.check(done.returncode == 0 and "version" in done.stdout, f"{line}: {done}")
    done = subprocess.run(["sh", "-c", f"{command} nothing 2>&-"], capture_output=True, text=True, check=False)
    script.check(done.returncode == 2, done)


def a_reader_that_goes_away():
    for _ in range(3):
        read, write = os.pipe()
        os.close(read)
        process = subprocess.Popen([command, "layout", "128x4", "--rows", "256"], stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        process.communicate()
        script.check(process.returncode == -signal.SIGPIPE, process.returncode)


def the_environment():
    refused(["info"], "BLOCKSCALE_CPU", env={**os.environ, "BLOCKSCALE_CPU": "sse9"})
    text = script.run([command, "info"], env={**os.environ, "BLOCKSCALE_CPU": "none"})
    script.check(re.search(r"^cpu_features +none$", text, re.M), text)
    script.check(re.search(r"^cpu_features +none$", script.run([command, "info", "--cpu", "none"]), re.M), "--cpu none")
    refused(["info", "--cpu", "sse9"], "known are none")
    refused(["info", "--cpu", "none,"], "is no feature")


def is_of_gpus(kernel):
    return kernel["name"].startswith(("cuda_", "hip_"))


def info_says_everything():
    text = script.run([command, "info"])
    value = json.loads(script.run([command, "info", "--json", "--threads", "3"]))
    for key in ["version", "compiler", "cuda", "system", "cpu", "cpu_features", "threads", "allocation"]:
        script.check(re.search(rf"^{key} ", text, re.M) and key in value, key)
    script.check(value["cuda"] and value["threads"] == 3 and ("no_gpu" in value) == (value["gpus"] == []), value)
    kernels = value["kernels"]
    cpu_kernels = [kernel for kernel in kernels if not is_of_gpus(kernel)]
    script.check(cpu_kernels and cpu_kernels[-1]["pairs_served_here"] > 0, kernels)
    verbose = script.run([command, "info", "--verbose"])
    script.check(all(f"{kernel['name']}: " in verbose for kernel in kernels), verbose)
    bare = json.loads(script.run([command, "info", "--json", "--cpu", "none"]))["kernels"]
    script.check(sum(kernel["pairs_served_here"] for kernel in bare if not is_of_gpus(kernel)) == 256, bare)


def examples_work_as_printed():
    for verb in ["matmul", "quantize", "dequantize", "inspect", "convert", "layout", "info", "completion", "manual"]:
        lines = script.run([command, verb, "--help"]).split("\nexample:\n")[1].splitlines()
        with tempfile.TemporaryDirectory() as folder:
            for line in lines:
                script.check(line.startswith("  blockscale "), line)
                path = f"{os.path.dirname(command)}:{os.environ.get('PATH', '')}"
                out = script.run(["sh", "-c", line.strip()], cwd=folder, env={**os.environ, "PATH": path})
                script.check(out != "", line)


script.cases("test_cli_usage", [help_everywhere, version_everywhere, mistyped_values_are_suggested, aliases_are_told,
                                no_verb_and_wrong_verbs, every_option_used_wrongly, numbers_and_names_used_wrongly,
                                closed_and_full_standard_output, closed_standard_error_and_input,
                                a_reader_that_goes_away,
                                the_environment, info_says_everything, the_manual_has_everything,
                                completions_know_every_option, examples_work_as_printed])

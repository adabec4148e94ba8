"""What the tests against other programs share: the command, the folders, and comparing numbers.

A test program is run as  test_NAME.py BLOCKSCALE WORK  by the Python of the environment that has its packages. 
WORK/models holds the tiny models; what a case writes goes to WORK/made, which is removed when it was made by an
earlier run."""

import importlib.metadata
import json
import os
import shutil
import sys
import warnings

os.environ.update(
    {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TQDM_DISABLE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
)
warnings.filterwarnings("ignore")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import numpy as np  # noqa: E402

import decode  # noqa: E402
import script  # noqa: E402
from script import check  # noqa: E402

COMMAND, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MODELS = os.path.join(WORK, "models")
MADE = os.path.join(WORK, "made", os.path.splitext(os.path.basename(sys.argv[0]))[0])
shutil.rmtree(MADE, ignore_errors=True)
os.makedirs(MADE)


def versions(*packages):
    """Prints which versions were run against."""
    found = []
    for package in packages:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{package} is not there")
    print("  with " + ", ".join(found))


def made(*names):
    return os.path.join(MADE, *names)


def model(name):
    place = os.path.join(MODELS, name)
    if not os.path.isdir(place):
        raise script.Skip(f"no model {name}: it was not made")
    return place


def blockscale(*words):
    """What the command says, as JSON."""
    return json.loads(script.run([COMMAND, *words, "--json"], cwd=MADE))


told = {}  # of folders, what quantize said


def claims(folder, program):
    """Whether quantize said that the program loads such files."""
    return program in (told[folder]["loaded_by"] or "")


def quantized(name, form, convention, *options):
    """The folder of a tiny model that the command quantized."""
    folder = made(f"{name}-{convention}-{form}{len(os.listdir(MADE))}")
    told[folder] = blockscale("quantize", model(name), "-o", folder, "-f", form, "--convention", convention, *options)
    copy_tokenizer(model(name), folder)
    return folder


def named(name, function, *arguments, **options):
    """A case: the function with these arguments, under a name of its own."""

    def case():
        function(*arguments, **options)

    case.__name__ = name
    return case


def copy_tokenizer(source, folder):
    """The files that a program needs beside weights, where the command has not brought them itself."""
    for name in os.listdir(source):
        if (
            name.endswith((".json", ".txt"))
            and name != "model.safetensors.index.json"
            and not os.path.exists(os.path.join(folder, name))
        ):
            shutil.copyfile(os.path.join(source, name), os.path.join(folder, name))


def dequantized(source):
    """{name: fp32 array}: what blockscale says that a checkpoint's numbers are."""
    out = made(f"back{len(os.listdir(MADE))}.safetensors")
    blockscale("dequantize", source, "-o", out, "--type", "fp32")
    result = {name: values for name, (_, values) in decode.read_file(out).items()}
    os.remove(out)
    return result


def both(source):
    """The exact numbers of a checkpoint by NumPy alone; blockscale's are these, rounded once to fp32."""
    exact, ours = decode.numbers(source), dequantized(source)
    check(set(exact) == set(ours), f"blockscale and NumPy see other tensors: {sorted(set(exact) ^ set(ours))[:4]}")
    for name, values in exact.items():
        with np.errstate(over="ignore"):
            count = decode.different(ours[name], values.astype(np.float32))
        check(count == 0, f"{name}: {count} of {values.size} numbers of blockscale's are not NumPy's")
    return exact


def same(got, wanted, what):
    """Both are {name: array}; every number of wanted is there, and the same.  Returns how many were compared."""
    missing = sorted(set(wanted) - set(got))
    check(not missing, f"{what}: no {missing[0] if missing else ''}")
    wrong = {name: decode.different(got[name], values) for name, values in wanted.items()}
    numbers, bad = sum(values.size for values in wanted.values()), sum(wrong.values())
    worst = max(wrong, key=wrong.get)
    check(bad == 0, f"{what}: {bad} of {numbers} numbers are different, {wrong[worst]} of them in {worst}")
    return numbers


def say(text):
    print("  " + text, flush=True)

#!/usr/bin/env python3
"""Files of the command: what cannot be read or written, and that outputs are complete or absent, whatever happens."""
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import npy_file
import script

command = os.path.abspath(sys.argv[1])
OLD = b"what was there before"
MATMUL = ["matmul", "random:4x64", "random:8x64", "-f", "mxfp4", "-o"]
QUANTIZE = ["quantize", "random:4x64", "-f", "nvfp4", "-o"]
BLOCKS = MATMUL[:-1] + ["--d-type", "mxfp4", "-o"]
PARTS = [".codes.npy", ".scales.npy", ".tensor_scale.npy", ".json"]
DEADLINE = 600                                         # seconds, where something waits for ever


def run(arguments, folder, expect, words="", **more):
    done = subprocess.run([command] + arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=folder,
                          check=False,
                          **more)
    line = " ".join(arguments)
    script.check(done.returncode == expect, f"{line}: exit status {done.returncode}, not {expect}: {done.stderr}")
    script.check(words in done.stderr, f"{line}: {done.stderr!r} without {words!r}")
    script.check(expect == 0 or done.stdout == "", f"{line}: printed {done.stdout!r}")
    return done


def put(folder, name, data=OLD):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def content(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def only(folder, *names):
    script.check(sorted(os.listdir(folder)) == sorted(names), f"{sorted(os.listdir(folder))}, not {sorted(names)}")


def in_folder(function):
    def case():
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            function(folder)
    case.__name__ = function.__name__
    return case


def unprivileged():
    """Root reads and writes everything: such cases run as somebody else, who may not reach the command where root
    built it, and gets a copy."""
    if os.geteuid() != 0:
        return {}
    copy = os.path.join(copies, "blockscale")
    if not os.path.exists(copy):
        shutil.copy(command, copy)
        os.chmod(copies, 0o755)
    return {"user": 65534, "executable": copy}


def bad_inputs(folder):
    npy_file.write(os.path.join(folder, "good.npy"), (4, 64), [0.5] * 256)
    npy_file.write(os.path.join(folder, "wide.npy"), (4, 64), [0.5] * 256, "<f8")
    npy_file.write(os.path.join(folder, "three.npy"), (2, 2, 64), [0.5] * 256)
    npy_file.write(os.path.join(folder, "one.npy"), (64,), [0.5] * 64)
    npy_file.write(os.path.join(folder, "bytes.npy"), (4, 64), [1] * 256, "|u1")
    npy_file.write(os.path.join(folder, "bits.npy"), (4, 64), [0x3f80] * 256, "<u2")
    npy_file.write(os.path.join(folder, "int.npy"), (4, 64), [1] * 256, "<i4")
    npy_file.write(os.path.join(folder, "other.npy"), (4, 96), [0.5] * 384)
    put(folder, "empty.npy", b"")
    put(folder, "cut.npy", content(folder, "good.npy")[:-1])
    put(folder, "long.npy", content(folder, "good.npy") + b"x")
    put(folder, "secret.npy", content(folder, "good.npy"))
    os.chmod(os.path.join(folder, "secret.npy"), 0)
    os.mkfifo(os.path.join(folder, "pipe.npy"))
    names = sorted(os.listdir(folder))
    for name, words in [("missing.npy", "missing.npy: cannot be opened: No such file"), (".", "is a directory"),
                        ("empty.npy", "is empty"), ("cut.npy", "cut off"), ("long.npy", "1 bytes stand behind"),
                        ("pipe.npy", "no regular file"), ("wide.npy", "holds fp64; say type fp64"),
                        ("three.npy", "has 3 dimensions"), ("one.npy", "has 1 dimension;"), ("bytes.npy", "'|u1'"),
                        ("bits.npy", "say type bf16"), ("int.npy", "'<i4'"), ("/dev/null", "no regular file")]:
        run(["quantize", name, "-o", "out", "-f", "mxfp4"], folder, 3, words)
        run(["matmul", name, "good.npy", "-o", "out.npy", "-f", "mxfp4"], folder, 3, words)
        run(["matmul", "good.npy", name, "-o", "out.npy", "-f", "mxfp4"], folder, 3, words)
        only(folder, *names)
    run(["quantize", "secret.npy", "-o", "out", "-f", "mxfp4"], folder, 3, "Permission denied", **unprivileged())
    run(["matmul", "good.npy", "other.npy", "-o", "out.npy", "-f", "mxfp4"], folder, 3, "with the same K")
    run(["quantize", "good.npy", "-o", "out", "-f", "mxfp4", "--type", "fp16"], folder, 3,
        "holds fp32 ('<f4'), not fp16")
    run(["quantize", "random:0x4", "-o", "out", "-f", "mxfp4"], folder, 2, "random:ROWSxCOLUMNS")
    only(folder, *names)
    run(["quantize", "wide.npy", "-o", "out", "-f", "mxfp4", "--type", "fp64"], folder, 0)
    run(["quantize", "bits.npy", "-o", "out", "-f", "mxfp4", "--type", "bf16"], folder, 0)
    npy_file.write(os.path.join(folder, "huge.npy"), (4, 64), [0.5] * 77 + [-1e300] + [0.5] * 178, "<f8")
    run(["quantize", "huge.npy", "-o", "out", "-f", "mxfp4", "--type", "fp64"], folder, 3,
        "number 77 is -1e+300, beyond the range of fp32")
    npy_file.write(os.path.join(folder, "infinite.npy"), (4, 64), [float("inf")] * 256, "<f8")
    run(["quantize", "infinite.npy", "-o", "out", "-f", "mxfp4", "--type", "fp64"], folder, 0)


def outputs_that_are_inputs(folder):
    npy_file.write(os.path.join(folder, "a.npy"), (4, 64), [0.5] * 256)
    before = content(folder, "a.npy")
    os.symlink("a.npy", os.path.join(folder, "link.npy"))
    for output in ["a.npy", "./a.npy", "link.npy"]:
        run(["matmul", "a.npy", "random:8x64", "-o", output, "-f", "mxfp4"], folder, 3, "is read by this command")
    run(["quantize", "a.npy", "-o", "q", "-f", "mxfp4"], folder, 0)
    files = {name: content(folder, name) for name in os.listdir(folder)}
    for name in files:
        if name.startswith("q") and name.endswith(".npy"):
            run(["dequantize", "q.json", "-o", name], folder, 3, "is read by this command")
    run(["dequantize", "q.json", "-o", "q.json"], folder, 3, "is read by this command")
    script.check({name: content(folder, name) for name in os.listdir(folder)} == files, "a file has changed")
    script.check(content(folder, "a.npy") == before, "a.npy has changed")


def contradictions(folder):
    npy_file.write(os.path.join(folder, "c.npy"), (4, 8), [1.0] * 32)
    npy_file.write(os.path.join(folder, "bias.npy"), (7,), [1.0] * 7)
    run(MATMUL + ["D.npy", "--check", "--no-check"], folder, 2, "give one of them")
    run(MATMUL + ["D.npy", "--a-format", "mxfp4", "--b-format", "mxfp4"], folder, 2, "leave one out")
    run(["matmul", "random:4x64", "random:8x64", "-o", "D.npy"], folder, 2, "the format of random:4x64 is missing")
    run(["matmul", "random:4x64", "random:8x64", "-o", "D.npy", "--a-format", "mxfp4"], folder, 2,
        "the format of random:8x64 is missing")
    run(MATMUL + ["D.npy", "--c", "c.npy"], folder, 2, "--c without --beta")
    run(MATMUL + ["D.npy", "--beta", "2"], folder, 2, "--beta without --c")
    run(MATMUL + ["D.npy", "--beta", "nan"], folder, 2, "--beta without --c")
    run(MATMUL + ["D.npy", "--bias", "bias.npy"], folder, 3, "has 7 numbers; one for each of the 8 rows of B")
    run(MATMUL + ["D.npy", "--bias", "bias.npy", "--bias-per", "row"], folder, 3, "one for each of the 4 rows of A")
    run(MATMUL + ["D.npy", "--bias-per", "row"], folder, 2, "--bias-per without --bias")
    run(MATMUL + ["D.npy", "--d-layout", "128x4"], folder, 2, "fp32 has no block scales")
    run(["quantize", "random:4x64", "-o", "q", "-f", "bf16", "--layout", "128x4"], folder, 2,
        "bf16 has no block scales")
    run(["quantize", "random:4x64", "-o", "q", "-f", "mxfp4", "--divides"], folder, 2, "no tensor scale")
    run(MATMUL + ["D.npy", "--d-tensor-scale", "0"], folder, 2, "above 0")
    run(MATMUL + ["D.npy", "--activation", "swiglu_clamped"], folder, 3, "gate")
    run(MATMUL + ["D.npy", "--tensor-scale", "computed"], folder, 3, "tensor scale")
    run(MATMUL + ["D.npy", "--tensor-scale", "0"], folder, 2, "finite number above 0")
    run(MATMUL + ["D.npy", "--tensor-scale", "inf"], folder, 2, "finite number above 0")
    run(["matmul", "random:4x64", "random:7x64", "-o", "D.npy", "-f", "mxfp4", "--gate", "split"], folder, 3,
        "N is even")
    run(QUANTIZE + ["W", "--packed", "--packing", "bytes"], folder, 2, "give one of them")
    run(QUANTIZE + ["W", "--packing", "bit_stream"], folder, 3, "bit_stream")
    run(QUANTIZE + ["W", "--recipe", "floor"], folder, 3, "floor")
    run(QUANTIZE + ["W", "--layout", "gguf_mxfp4"], folder, 3, "gguf")
    run(QUANTIZE + ["sub/"], folder, 2, "a name is wanted behind the folder")
    run(QUANTIZE + ["n" * 240], folder, 3, "too long a name")
    only(folder, "c.npy", "bias.npy")


def targets_that_cannot_be_written(folder):
    os.mkdir(os.path.join(folder, "D.npy"))
    run(MATMUL + ["D.npy"], folder, 3, "D.npy: cannot be written: Is a directory")
    run(MATMUL + ["no/D.npy"], folder, 3, "No such file or directory")
    put(folder, "file")
    run(MATMUL + ["file/D.npy"], folder, 3, "Not a directory")
    run(MATMUL + ["x" * 5000], folder, 3, "File name too long")
    if os.path.exists("/dev/full"):
        run(MATMUL + ["/dev/full"], folder, 3, "/dev/full: could not be written: No space left on device")
        run(MATMUL + ["/dev/null"], folder, 0)
        script.check(all(stat.S_ISCHR(os.stat(f"/dev/{name}").st_mode) for name in ["full", "null"]),
                     "a device became a file")
    only(folder, "D.npy", "file")
    put(folder, "old.npy")
    os.chmod(os.path.join(folder, "old.npy"), 0o444)
    run(MATMUL + ["new.npy"], folder, 3 if os.geteuid() == 0 else 0, "", **unprivileged())
    os.chmod(folder, 0o777)                            # renaming would do
    run(MATMUL + ["old.npy"], folder, 3, "Permission denied", **unprivileged())
    script.check(content(folder, "old.npy") == OLD, "old.npy has changed")


def outputs_are_all_or_none(folder):
    for i, missing in enumerate(PARTS):
        for part in PARTS:
            put(folder, "W" + part)
        os.remove(os.path.join(folder, "W" + missing))
        os.mkdir(os.path.join(folder, "W" + missing))
        run(QUANTIZE + ["W"], folder, 3, f"W{missing}: cannot be written: Is a directory")
        only(folder, *["W" + part for part in PARTS])
        script.check(all(content(folder, "W" + part) == OLD for part in PARTS if part != missing),
                     f"{i}: an old file has changed")
        os.rmdir(os.path.join(folder, "W" + missing))
        put(folder, "W" + missing)
    run(QUANTIZE + ["W"], folder, 0)
    only(folder, *["W" + part for part in PARTS])
    script.check(all(content(folder, "W" + part) != OLD for part in PARTS), "not all were written")


def nothing_is_written_when_standard_output_fails(folder):
    put(folder, "D.npy")
    for target in [">&-"] + ([">/dev/full"] if os.path.exists("/dev/full") else []):
        for arguments in [MATMUL + ["D.npy"], MATMUL + ["E.npy", "--json"], QUANTIZE + ["W"], BLOCKS + ["F"]]:
            line = " ".join([command] + arguments) + " " + target
            done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=folder, check=False)
            script.check(done.returncode == 3 and "standard output" in done.stderr, f"{line}: {done}")
            only(folder, "D.npy")
    script.check(content(folder, "D.npy") == OLD, "D.npy has changed")


def a_disk_that_fills_up(folder):
    put(folder, "D.npy")
    full = os.path.getsize(os.path.join(folder, "D.npy"))
    for limit in [0, 1, 100, 128, 200, 255]:
        def tighten(limit=limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        run(MATMUL + ["D.npy"], folder, 3, "D.npy: could not be written: File too large", preexec_fn=tighten)
        run(QUANTIZE + ["W"], folder, 3, "File too large", preexec_fn=tighten)
        only(folder, "D.npy")
    script.check(content(folder, "D.npy") == OLD and full == len(OLD), "D.npy has changed")
    run(MATMUL + ["D.npy"], folder, 0)


def blocked(arguments, folder, pipe, **more):
    """A run that waits, in the middle of writing, for a reader of the pipe."""
    process = subprocess.Popen([command] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                               **more)
    deadline = time.monotonic() + DEADLINE
    while not any(name.endswith(".tmp") for name in os.listdir(folder)) and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.05)
    script.check(process.poll() is None and any(name.endswith(".tmp") for name in os.listdir(folder)),
                 f"{pipe}: it does not wait")
    return process


def a_signal_in_the_middle(folder):
    os.mkfifo(os.path.join(folder, "W.json"))
    for part in PARTS[:-1]:
        put(folder, "W" + part)
    for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]:
        for arguments in [QUANTIZE + ["W"], BLOCKS + ["W"]]:
            process = blocked(arguments, folder, "W.json",
                              preexec_fn=lambda number=number: signal.signal(number, signal.SIG_DFL))
            process.send_signal(number)
            out, _ = process.communicate(timeout=DEADLINE)
            script.check(process.returncode == -number and out == b"", f"{number}: {process.returncode}")
            only(folder, *["W" + part for part in PARTS])
            script.check(all(content(folder, "W" + part) == OLD for part in PARTS[:-1]), "an old file has changed")


def an_ignored_signal_stays_ignored(folder):
    os.mkfifo(os.path.join(folder, "W.json"))
    process = blocked(QUANTIZE + ["W"], folder, "W.json",
                      preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    note = content(folder, "W.json")
    process.communicate(timeout=DEADLINE)
    script.check(process.returncode == 0 and b'"format": "nvfp4"' in note, f"{process.returncode}, {note!r}")
    only(folder, *["W" + part for part in PARTS])


def a_reader_that_goes_away(folder):
    put(folder, "D.npy")
    for arguments in [MATMUL + ["D.npy"], QUANTIZE + ["W"]]:
        read, write = os.pipe()
        os.close(read)
        process = subprocess.Popen([command] + arguments, stdout=write, stderr=subprocess.PIPE, cwd=folder)
        os.close(write)
        process.communicate(timeout=DEADLINE)
        script.check(process.returncode == -signal.SIGPIPE, process.returncode)
        only(folder, "D.npy")
    script.check(content(folder, "D.npy") == OLD, "D.npy has changed")


def what_a_target_keeps(folder):
    put(folder, "real.npy")
    os.chmod(os.path.join(folder, "real.npy"), 0o640)
    os.symlink("real.npy", os.path.join(folder, "link.npy"))
    longest = "n" * 255
    run(MATMUL + ["link.npy"], folder, 0)
    run(MATMUL + [longest], folder, 0, umask=0o027)
    script.check(os.path.islink(os.path.join(folder, "link.npy")) and content(folder, "real.npy")[:6] == b"\x93NUMPY",
                 "the link")
    script.check(stat.S_IMODE(os.stat(os.path.join(folder, "real.npy")).st_mode) == 0o640, "the mode of an old file")
    script.check(stat.S_IMODE(os.stat(os.path.join(folder, longest)).st_mode) == 0o640, "the mode of a new file")
    only(folder, "real.npy", "link.npy", longest)


def links_to_no_file_stay_links(folder):
    for name in ("sub", "far"):
        os.mkdir(os.path.join(folder, name))
    links = {"link.npy": "new.npy", "sub/up.npy": "../far/away.npy", "chain.npy": "sub/first.npy",
             "sub/first.npy": "second.npy",
             "absolute.npy": os.path.join(folder, "far", "there.npy"), "lost.npy": "nowhere/x.npy",
             "loop.npy": "loop.npy"}
    for name, to in links.items():
        os.symlink(to, os.path.join(folder, name))
    for name, target in (("link.npy", "new.npy"), ("sub/up.npy", "far/away.npy"), ("chain.npy", "sub/second.npy"),
                         ("absolute.npy", "far/there.npy")):
        script.check(not os.path.exists(os.path.join(folder, target)), target)
        run(MATMUL + [name], folder, 0)
        script.check(content(folder, target)[:6] == b"\x93NUMPY", target)
    run(MATMUL + ["lost.npy"], folder, 3, "lost.npy: cannot be written: No such file or directory")
    run(MATMUL + ["loop.npy"], folder, 3, "loop.npy: cannot be written: Too many levels of symbolic links")
    for name, to in links.items():
        script.check(os.path.islink(os.path.join(folder, name)) and os.readlink(os.path.join(folder, name)) == to,
                     f"{name} is no link now")
    os.symlink("W.new", os.path.join(folder, "W.codes.npy"))
    os.symlink("./sub/../W.new", os.path.join(folder, "W.scales.npy"))
    run(QUANTIZE + ["W"], folder, 3, "give each its own file")
    script.check(not os.path.exists(os.path.join(folder, "W.new")), "one output replaced the other")


def two_outputs_on_one_file(folder):
    """Links make two names of one file: refused, and nothing is written."""
    put(folder, "W.codes.npy")
    os.symlink("W.codes.npy", os.path.join(folder, "W.scales.npy"))
    run(QUANTIZE + ["W"], folder, 3, "give each its own file")
    script.check(content(folder, "W.codes.npy") == OLD, "W.codes.npy has changed")
    only(folder, "W.codes.npy", "W.scales.npy")


def packed_codes_come_back(folder):
    """Whatever K is, a file of packed codes has all rows: they are the numbers of one code a byte."""
    for form, packing in [("mxfp4", "low_first"), ("nvfp4", "high_first"), ("mxfp6", "bit_stream"),
                          ("mxfp6_e3m2", "bit_stream")]:
        for shape in ["7x1", "2x2", "5x3", "3x4", "1x5", "7x33", "4x34", "3x35", "2x64"]:
            numbers = []
            for words in ["bytes", packing]:
                run(["quantize", f"random:{shape}", "-o", "W", "--format", form, "--packing", words], folder, 0)
                run(["dequantize", "W.json", "-o", "X.npy"], folder, 0)
                numbers.append(content(folder, "X.npy"))
            script.check(numbers[0] == numbers[1], f"{form}, {shape}, {packing}: other numbers")
    run(["matmul", "random:3x32", "random:5x32", "-o", "D", "-f", "bf16", "--d-type", "mxfp6"], folder, 0)
    run(["dequantize", "D.json", "-o", "X.npy"], folder, 0)


def notes_that_lie(folder):
    run(QUANTIZE + ["W", "--layout", "128x4"], folder, 0)
    note = content(folder, "W.json").decode()
    names = os.listdir(folder)
    lies = [("\"blockscale_note\": 1", "\"blockscale_note\": 2", "is no note"), ("nvfp4", "nvfp5", "is no format"),
            ("nvfp4", "bf16", "packing"), ("\"rows\": 4", "\"rows\": 5", "the note's shape and format need"),
            ("\"rows\": 4", "\"rows\": -4", "must be whole numbers"),
            ("\"rows\": 4", "\"rows\": \"4\"", "must be whole numbers"),
            ("\"rows\": 4", "\"rows\": 9223372036854775807", ""),
            ("\"rows\": 4", "\"rows\": 99999999999999999999", "must be whole numbers"),
            ("\"rows\": 4,\n  \"columns\": 64", "\"rows\": 2,\n  \"columns\": 128", "an array of 2 x 128"),
            ("\"bytes\"", "\"bites\"", "is no packing"),
            ("\"bytes\"", "\"low_first\"", "the note's shape and format need"),
            ("128x4", "129x4", "is no scale layout"), ("128x4", "linear", "the note's shape and format need"),
            ("W.codes.npy", "V.codes.npy", "No such file"), ("W.codes.npy", "../W.codes.npy", "in the same folder"),
            ("W.codes.npy", "", "in the same folder"),
            ("W.codes.npy", "W.scales.npy", "the note's shape and format need"),
            ("\"codes\"", "\"odes\"", "must name a file"), ("W.tensor_scale.npy", "W.scales.npy", "need 4"),
            ("\"multiplies\"", "\"adds\"", "neither multiplies nor divides"), ("{", "", "is no JSON"),
            ("}", "", "is no JSON")]
    for old, new, words in lies:
        script.check(old in note, old)
        put(folder, "lie.json", note.replace(old, new, 1).encode())
        try:
            run(["dequantize", "lie.json", "-o", "X.npy"], folder, 3, words)
        except AssertionError as error:
            raise AssertionError(f"{old} -> {new}: {error}") from error
        run(["matmul", "lie.json", "lie.json", "-o", "X.npy"], folder, 3, words)
        only(folder, "lie.json", *names)
    npy_file.write(os.path.join(folder, "W.tensor_scale.npy"), (), [float("nan")])
    run(["dequantize", "W.json", "-o", "X.npy"], folder, 3, "tensor_scale")
    npy_file.write(os.path.join(folder, "W.tensor_scale.npy"), (), [-1.0])
    run(["dequantize", "W.json", "-o", "X.npy"], folder, 3, "tensor_scale")
    run(["matmul", "W.json", "W.json", "-o", "X.npy", "--a-format", "nvfp4"], folder, 2,
        "is a note, which says its format")
    run(["matmul", "random:4x64", "W.json", "-o", "X.npy", "-f", "nvfp4", "--transpose-b"], folder, 2,
        "is a note, which says its format")


with tempfile.TemporaryDirectory() as copies:
    script.cases("test_cli_files", [in_folder(case) for case in [
        bad_inputs, contradictions, targets_that_cannot_be_written, outputs_are_all_or_none,
        nothing_is_written_when_standard_output_fails, a_disk_that_fills_up, a_signal_in_the_middle,
        an_ignored_signal_stays_ignored, a_reader_that_goes_away, what_a_target_keeps, outputs_that_are_inputs,
        two_outputs_on_one_file, links_to_no_file_stay_links, packed_codes_come_back, notes_that_lie]])

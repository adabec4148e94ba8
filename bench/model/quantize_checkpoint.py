#!/usr/bin/env python3
"""`blockscale quantize` of a checkpoint beside a program that only reads and writes the same bytes.

    python3 bench/model/quantize_checkpoint.py --command build/release/bin/blockscale --folder build/checkpoint
    python3 bench/model/quantize_checkpoint.py ... --layers 4 --vocabulary 16032 --rounds 5

Makes shards of bf16 of Llama-3-8B's shapes with random numbers (16.1 GB) in FOLDER/model, unless they are there.  Then
in turns: the command, and the peer, which reads the shards in pieces of 8 MiB and writes as many bytes as the command
wrote, a part behind each piece.  "Disk": the shards are dropped from the page cache before; "cache": they are left
there.  A time ends when the output lies on the disk (fsync).  Memory: the most that was resident, of it the pages that
are not the mapped shards, sampled each 10 ms.  Writes FOLDER/report.json, and removes outputs; --remove the shards,
too."""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import time

HIDDEN, INTERMEDIATE, KEYS = 4096, 14336, 1024
SHARD_BYTES = 5_000_000_000
PIECE = 8 << 20


def tensors(layers: int, vocabulary: int) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the model's tensors."""
    listed = [("model.embed_tokens.weight", (vocabulary, HIDDEN))]
    for layer in range(layers):
        for name, shape in (
                ("self_attn.q_proj", (HIDDEN, HIDDEN)), ("self_attn.k_proj", (KEYS, HIDDEN)),
                ("self_attn.v_proj", (KEYS, HIDDEN)), ("self_attn.o_proj", (HIDDEN, HIDDEN)),
                ("mlp.gate_proj", (INTERMEDIATE, HIDDEN)), ("mlp.up_proj", (INTERMEDIATE, HIDDEN)),
                ("mlp.down_proj", (HIDDEN, INTERMEDIATE)), ("input_layernorm", (HIDDEN,)),
                ("post_attention_layernorm", (HIDDEN,))):
            listed.append((f"model.layers.{layer}.{name}.weight", shape))
    return [*listed, ("model.norm.weight", (HIDDEN,)), ("lm_head.weight", (vocabulary, HIDDEN))]


def bytes_of(shape: tuple[int, ...]) -> int:
    return 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)


def numbers() -> bytes:
    """16 MiB of normal bf16 numbers of deviation 0.02; tensors are pieces of it that begin anywhere."""
    draw = random.Random(1).gauss
    some = b"".join(struct.pack("<f", draw(0.0, 0.02))[2:] for _ in range(1 << 20))
    return some * 8


def make(folder: pathlib.Path, layers: int, vocabulary: int) -> None:
    """The shards, with their index and a config.json."""
    folder.mkdir(parents=True)
    shards: list[list[tuple[str, tuple[int, ...]]]] = [[]]
    size = 0
    for name, shape in tensors(layers, vocabulary):
        if size + bytes_of(shape) > SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append((name, shape))
        size += bytes_of(shape)
    pool, begin, where = memoryview(numbers()), random.Random(2), {}
    for number, shard in enumerate(shards):
        file = folder / f"model-{number + 1:05d}-of-{len(shards):05d}.safetensors"
        header, at = {}, 0
        for name, shape in shard:
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + bytes_of(shape)]}
            at += bytes_of(shape)
            where[name] = file.name
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with file.open("wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            for _, shape in shard:
                left, offset = bytes_of(shape), 2 * begin.randrange(len(pool) // 4)
                while left:
                    count = min(left, len(pool) - offset)
                    out.write(pool[offset:offset + count])
                    left, offset = left - count, 0
            os.fsync(out.fileno())
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "dtype": "bfloat16",
        "intermediate_size": INTERMEDIATE, "num_hidden_layers": layers, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": vocabulary}))


def drop(folder: pathlib.Path) -> None:
    """The shards leave the page cache."""
    for file in folder.glob("*.safetensors"):
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def sync(file: pathlib.Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def resident(process: int) -> tuple[int, int]:
    """Bytes of a process in memory: all, and those that belong to no file."""
    try:
        lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    found = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith(("VmHWM", "RssAnon"))}
    return found.get("VmHWM", 0), found.get("RssAnon", 0)


def run_command(options: argparse.Namespace) -> dict:
    """The command, its memory, and the bytes of its output."""
    out = options.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    began, before = time.perf_counter(), os.times()
    with (options.folder / "command.txt").open("w") as text:
        running = subprocess.Popen([options.command, "quantize", options.folder / "model", "-o", out, "--format",
                                    options.format], stdout=text, stderr=text)
        most = own = 0
        while running.poll() is None:
            now = resident(running.pid)
            most, own = max(most, now[0]), max(own, now[1])
            time.sleep(0.01)
    after = os.times()
    if running.returncode != 0:
        raise SystemExit((options.folder / "command.txt").read_text())
    returned = time.perf_counter() - began
    sync(out / "model.safetensors")
    seconds = time.perf_counter() - began
    written = sum(file.stat().st_size for file in out.iterdir())
    shutil.rmtree(out)
    return {"seconds": seconds, "returned": returned, "written": written, "resident": most, "own": own,
            "processor": after.children_user + after.children_system - before.children_user - before.children_system}


def run_peer(options: argparse.Namespace, written: int) -> dict:
    """Reading the shards and writing as many bytes as the command did."""
    files = sorted((options.folder / "model").glob("*.safetensors"))
    to_read = sum(file.stat().st_size for file in files)
    piece, copied, put = bytearray(PIECE), 0, 0
    view, out = memoryview(piece), options.folder / "peer"
    began, before = time.perf_counter(), time.process_time()
    with out.open("wb", buffering=0) as to:
        for file in files:
            with file.open("rb", buffering=0) as source:
                while count := source.readinto(piece):
                    copied += count
                    while put < written * copied // to_read:
                        put += to.write(view[:min(PIECE, written * copied // to_read - put)])
        returned = time.perf_counter() - began
        os.fsync(to.fileno())
    seconds = time.perf_counter() - began
    out.unlink()
    return {"seconds": seconds, "returned": returned, "processor": time.process_time() - before}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True, help="the program blockscale")
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--format", default="nvfp4")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--vocabulary", type=int, default=128256)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--from", dest="sources", default="disk,cache", type=lambda text: text.split(","))
    parser.add_argument("--remove", action="store_true", help="the shards, too, at the end")
    options = parser.parse_args()
    model = options.folder / "model"
    if not model.exists():
        make(model, options.layers, options.vocabulary)
    read = sum(file.stat().st_size for file in model.glob("*.safetensors"))
    report: dict = {"read": read, "format": options.format, "runs": []}
    for source in options.sources:
        for _ in range(options.rounds):
            pair = {"from": source}
            for who in ("command", "peer"):
                if source == "disk":
                    drop(model)
                pair[who] = run_command(options) if who == "command" else run_peer(
                    options, pair["command"]["written"])
            report["runs"].append(pair)
            print(json.dumps(pair), flush=True)
            (options.folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    for source in options.sources:
        runs = [pair for pair in report["runs"] if pair["from"] == source]
        least = {who: min(pair[who]["seconds"] for pair in runs) for who in ("command", "peer")}
        ratios = sorted(pair["peer"]["seconds"] / pair["command"]["seconds"] for pair in runs)
        first = runs[0]["command"]
        print(f"{source}: {read / 1e9:.2f} GB to {first['written'] / 1e9:.2f} GB of {options.format}: the command "
              f"{least['command']:.2f} s, the peer {least['peer']:.2f} s, of its speed {statistics.median(ratios):.2f} "
              f"({ratios[0]:.2f} to {ratios[-1]:.2f}); {first['resident'] / 1e6:.0f} MB resident, "
              f"{max(pair['command']['own'] for pair in runs) / 1e6:.0f} MB of them no mapped file")
    if options.remove:
        shutil.rmtree(model)
    return 0


if __name__ == "__main__":
    sys.exit(main())

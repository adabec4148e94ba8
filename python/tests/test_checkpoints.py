"""Checkpoints through the package: what it reads against safetensors' own reader and plain arithmetic, what it writes
against the bytes of the command."""
import gc
import json
import os
import re
import sys

import ml_dtypes
import numpy as np
import pytest
import safetensors

import blockscale
import command

sys.path.insert(0, os.path.join(command.ROOT, "tests"))
import checkpoint_file                                 # noqa: E402

# In the order of their sizes, so that each lies aligned in a file.
TYPES = {"I64": np.int64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "U8": np.uint8,
         "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E8M0": ml_dtypes.float8_e8m0fnu}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def of_safetensors(path):
    """{name: (type, shape, bytes)} by safetensors' own reader."""
    with open(path, "rb") as file:
        return {name: (one["dtype"], tuple(one["shape"]), bytes(one["data"]))
                for name, one in safetensors.deserialize(file.read())}


def random_bytes(kind, shape, seed):
    """Finite numbers of a type."""
    rng = np.random.default_rng(seed)
    if kind in ("U8", "I64"):
        return rng.integers(0, 200, shape).astype(TYPES[kind]).tobytes()
    if kind == "F8_E8M0":
        return rng.integers(120, 130, shape).astype(np.uint8).tobytes()
    return (rng.standard_normal(shape) * 0.05).astype(TYPES[kind]).tobytes()


def model(folder, seed=0, kind="BF16", hidden=64):
    """A small model of the usual names, in a folder."""
    os.makedirs(folder)
    shapes = {"model.embed_tokens.weight": (40, hidden), "model.norm.weight": (hidden,), "lm_head.weight": (40, hidden)}
    for layer in range(2):
        at = f"model.layers.{layer}."
        shapes.update({at + f"self_attn.{name}_proj.weight": (rows, hidden)
                       for name, rows in (("q", 96), ("k", 32), ("v", 32), ("o", 64))})
        shapes.update({at + "mlp.gate_proj.weight": (128, hidden), at + "mlp.up_proj.weight": (128, hidden),
                       at + "mlp.down_proj.weight": (hidden, 128), at + "input_layernorm.weight": (hidden,)})
    shapes["model.odd.weight"] = (8, 50)                 # rows are no whole blocks
    tensors = {name: (kind, list(shape), random_bytes(kind, shape, seed + i))
               for i, (name, shape) in enumerate(sorted(shapes.items()))}
    checkpoint_file.write(os.path.join(folder, "model.safetensors"), tensors, {"format": "pt"})
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"architectures": ["LlamaForCausalLM"], "hidden_size": hidden, "torch_dtype": "bfloat16"}, file)
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as file:
        file.write("{}")
    return folder


def experts(folder):
    """A model as transformers keeps gpt-oss: experts as [experts, K, N]."""
    os.makedirs(folder)
    tensors = {"model.layers.0.mlp.experts.gate_up_proj": ("BF16", [2, 64, 48], random_bytes("BF16", (2, 64, 48), 1)),
               "model.layers.0.mlp.experts.down_proj": ("BF16", [2, 32, 64], random_bytes("BF16", (2, 32, 64), 2)),
               "model.layers.0.self_attn.q_proj.weight": ("BF16", [64, 64], random_bytes("BF16", (64, 64), 3))}
    checkpoint_file.write(os.path.join(folder, "model.safetensors"), tensors)
    return folder


def tiled(folder):
    """e4m3 weights with fp32 scales of tiles, as DeepSeek has them."""
    os.makedirs(folder)
    rows, columns = 200, 288
    scales = np.random.default_rng(5).uniform(0.001, 0.01, (2, 3)).astype(np.float32)
    tensors = {"a.weight_scale_inv": ("F32", [2, 3], scales.tobytes()),
               "a.weight": ("F8_E4M3", [rows, columns],
                            (np.random.default_rng(6).standard_normal((rows, columns)) * 50).astype(
                                ml_dtypes.float8_e4m3fn).tobytes())}
    checkpoint_file.write(os.path.join(folder, "model.safetensors"), tensors)
    return folder


def all_files(folder):
    """{path: bytes} of a folder, or of one file."""
    if os.path.isfile(folder):
        with open(folder, "rb") as file:
            return {"": file.read()}
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


def mapped(path):
    """Whether this process has the file mapped."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        return any(line.rstrip().endswith(os.path.realpath(path)) for line in file)


# Reading --------------------------------------------------------------------------------------------------------------

def test_every_tensor_is_what_safetensors_reads(tmp_path):
    path = tmp_path / "x.safetensors"
    each = [(kind, shape) for kind in TYPES for shape in ((3, 5), (7,), (2, 0), ())]
    tensors = {f"t{i}.{kind}": (kind, list(shape), random_bytes(kind, shape, i))
               for i, (kind, shape) in enumerate(each)}
    checkpoint_file.write(path, tensors, {"who": "the tests"})
    wanted = of_safetensors(path)
    with blockscale.open(path) as checkpoint:
        assert checkpoint.metadata == {"who": "the tests"} and checkpoint.kind == "safetensors"
        assert checkpoint.files == [str(path)]
        assert set(checkpoint.tensors) == set(wanted) and len(checkpoint.tensors) == len(wanted)
        for name, tensor in checkpoint.tensors.items():
            kind, shape, data = wanted[name]
            array = tensor.array
            assert (tensor.type, tensor.shape, tensor.nbytes) == (tensors[name][0], shape, len(data))
            assert array.dtype == TYPES[tensors[name][0]] and array.shape == shape and not array.flags.writeable
            assert array.tobytes() == data == tensors[name][2]
        with pytest.raises(KeyError):
            checkpoint.tensors["none"]


def test_arrays_lie_in_the_mapped_file_and_keep_it(tmp_path):
    path = model(str(tmp_path / "m")) + "/model.safetensors"
    wanted = of_safetensors(path)["model.layers.0.mlp.up_proj.weight"][2]
    checkpoint = blockscale.open(path)
    matrix = checkpoint["model.layers.0.mlp.up_proj"].matrix
    array = checkpoint.tensors["model.layers.0.mlp.up_proj.weight"].array
    assert matrix.codes.ctypes.data == array.ctypes.data         # nothing was copied
    checkpoint.close()
    del checkpoint
    gc.collect()
    assert mapped(path) and array.tobytes() == wanted
    del array
    gc.collect()
    assert mapped(path) and matrix.codes.tobytes() == wanted
    del matrix
    gc.collect()
    assert not mapped(path)


def test_a_checkpoint_is_a_mapping_of_its_weights(tmp_path):
    checkpoint = blockscale.open(model(str(tmp_path / "m")))
    names = list(checkpoint)
    assert len(checkpoint) == len(names) == len(set(names)) and "model.layers.1.mlp.down_proj" in checkpoint
    assert "model.norm" not in names and "model.norm.weight" in checkpoint.tensors      # a vector is no weight
    weight = checkpoint["model.layers.0.self_attn.q_proj"]
    assert (weight.format, weight.shape, weight.convention) == ("bf16", (96, 64), "plain")
    assert weight.tensors == {"codes": "model.layers.0.self_attn.q_proj.weight"}
    assert checkpoint["model.layers.0.self_attn.q_proj.weight"].name == weight.name
    with pytest.raises(KeyError):
        checkpoint["model.layers.9"]
    assert "nothing" not in checkpoint and checkpoint.get("nothing") is None
    checkpoint.close()
    with pytest.raises(blockscale.InvalidError, match="is closed"):
        list(checkpoint)


def test_quantized_weights_decode_as_their_convention_says(tmp_path):
    """MXFP4 as ModelOpt has it: two codes a byte, e8m0 scales, decoded here by NumPy."""
    blockscale.quantize_checkpoint(model(str(tmp_path / "m")), tmp_path / "q", "mxfp4", progress=False)
    raw = of_safetensors(tmp_path / "q" / "model.safetensors")
    name = "model.layers.1.mlp.down_proj"
    codes = np.frombuffer(raw[name + ".weight"][2], np.uint8).reshape(64, 64)
    scales = np.frombuffer(raw[name + ".weight_scale"][2], np.uint8).reshape(64, 4)
    numbers = np.stack([E2M1[codes & 15], E2M1[codes >> 4]], -1).reshape(64, 128)
    numbers = numbers * np.repeat(np.exp2(scales.astype(np.float32) - 127), 32, 1)
    with blockscale.open(tmp_path / "q") as checkpoint:
        weight = checkpoint[name]
        assert (weight.format, weight.convention) == ("mxfp4", "modelopt")
        assert np.array_equal(weight.dequantize(), numbers)
        x = np.random.default_rng(1).integers(-3, 4, (5, 128)).astype(np.float32)
        got = blockscale.matmul(x, weight.matrix)
        assert np.array_equal(got, blockscale.matmul(x, blockscale.from_parts(codes, scales, "mxfp4")))
        assert np.allclose(got, x @ numbers.T, rtol=1e-5, atol=1e-5)


def test_every_convention_gives_the_same_matrix(tmp_path):
    """Batches, tensor scales that multiply and divide, GGUF's blocks: the product by the mapped weight is that of its
    numbers, decoded by the command."""
    source = model(str(tmp_path / "m"), kind="F32")
    for form, convention, name in (("nvfp4", "modelopt", "a"), ("nvfp4", "compressed_tensors", "b"),
                                   ("mxfp4", "gguf", "c.gguf"), ("nvfp4", "gguf", "d.gguf"),
                                   ("mxfp6_e2m3", "modelopt", "e"), ("e4m3", "modelopt", "f")):
        blockscale.quantize_checkpoint(source, tmp_path / name, form, convention=convention, progress=False)
        command.run("dequantize", tmp_path / name, "-o", tmp_path / f"{name}.safetensors", "--type", "fp32")
        numbers, quantized = blockscale.open(tmp_path / f"{name}.safetensors"), blockscale.open(tmp_path / name)
        for key in quantized:
            weight = quantized[key]
            if weight.convention == "plain" and weight.format != "e4m3":
                continue
            plain = numbers[key].matrix.codes
            assert np.array_equal(weight.dequantize(), plain), key
            x = np.random.default_rng(2).integers(-2, 3, (3, plain.shape[1])).astype(np.float32)
            assert np.allclose(blockscale.matmul(x, weight.matrix), x @ plain.T, rtol=1e-4, atol=1e-5), key


def test_experts_interleave_gates_and_ups(tmp_path):
    blockscale.quantize_checkpoint(experts(str(tmp_path / "m")), tmp_path / "q", "mxfp4", convention="gpt_oss",
                                   progress=False)
    with blockscale.open(tmp_path / "q") as checkpoint:
        weight = checkpoint["model.layers.0.mlp.experts.gate_up_proj"]
        assert weight.gate_up_interleaved and weight.shape == (2, 48, 64) and weight.convention == "gpt_oss"
        whole, gate, up = weight.dequantize(), weight.part("gate"), weight.part("up")
        assert np.array_equal(gate.dequantize(), whole[:, 0::2]) and np.array_equal(up.dequantize(), whole[:, 1::2])
        assert gate.codes.ctypes.data == weight.matrix.codes.ctypes.data
        down = checkpoint["model.layers.0.mlp.experts.down_proj"]
        assert down.shape == (2, 64, 32)
        with pytest.raises(blockscale.UnsupportedError):
            down.part("gate")
        with pytest.raises(blockscale.InvalidError, match='half="left"|half=\'left\''):
            weight.part("left")


def test_tiles_have_scales_of_their_own(tmp_path):
    raw = of_safetensors(tiled(str(tmp_path / "t")) + "/model.safetensors")
    codes = np.frombuffer(raw["a.weight"][2], ml_dtypes.float8_e4m3fn).reshape(200, 288).astype(np.float32)
    scales = np.frombuffer(raw["a.weight_scale_inv"][2], np.float32).reshape(2, 3)
    numbers = codes * np.repeat(np.repeat(scales, 128, 0)[:200], 128, 1)[:, :288]
    with blockscale.open(tmp_path / "t") as checkpoint:
        weight = checkpoint["a"]
        assert (weight.tile_rows, weight.tile_columns, weight.convention) == (128, 128, "deepseek")
        assert np.array_equal(weight.tile_scales, scales[None])
        assert np.array_equal(weight.dequantize(), numbers)
        assert np.array_equal(weight.tile(1, 2).dequantize(), numbers[128:, 256:])
        with pytest.raises(blockscale.InvalidError, match="tiles of 128 x 128"):
            weight.matrix


def test_what_is_wrong_with_a_file_is_said(tmp_path):
    with pytest.raises(blockscale.FileError, match="nothing.safetensors"):
        blockscale.open(tmp_path / "nothing.safetensors")
    with pytest.raises(OSError):                          # of Python's own kind, too
        blockscale.open(tmp_path)
    (tmp_path / "x.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(blockscale.FileError):
        blockscale.open(tmp_path / "x.safetensors")


# Writing --------------------------------------------------------------------------------------------------------------

CASES = [("nvfp4", "modelopt", {}), ("mxfp4", "modelopt", {}), ("mxfp6_e2m3", "modelopt", {}),
         ("mxfp8_e4m3", "modelopt", {}), ("e4m3", "modelopt", {}), ("nvfp4", "compressed_tensors", {}),
         ("mxfp4", "compressed_tensors", {}), ("e4m3", "compressed_tensors", {}),
         ("nvfp4", "modelopt", {"share_tensor_scales": "none"}), ("nvfp4", "modelopt", {"recipe": "four_over_six"}),
         ("nvfp4", "modelopt", {"share_tensor_scales": "o_proj+q_proj,down_proj+up_proj"}),
         ("mxfp4", "modelopt", {"recipe": "ceil", "exclude": "*mlp*"}),
         ("nvfp4", None, {"preset": "compressed_tensors"}),
         ("mxfp4", "modelopt", {"include": "*.0.*,lm_head", "exclude": "*v_proj"}),
         ("mxfp8_e4m3", "modelopt", {"rounding": "stochastic", "seed": 7})]


def words_of(options):
    words = []
    for key, value in options.items():
        words += ["--" + key.replace("_", "-"), {"stochastic": "stochastic"}.get(value, value)]
    return words


@pytest.mark.parametrize("form, convention, options", CASES)
def test_bytes_are_those_of_the_command(tmp_path, form, convention, options):
    source = model(str(tmp_path / "m"), kind="F16" if form == "mxfp6_e2m3" else "BF16")
    report = blockscale.quantize_checkpoint(source, tmp_path / "ours", form, convention=convention, progress=False,
                                            **options)
    named = ["--convention", convention] if convention else []
    command.run("quantize", source, "-o", tmp_path / "theirs", "--format", form, *named, *words_of(options))
    ours, theirs = all_files(tmp_path / "ours"), all_files(tmp_path / "theirs")
    assert list(ours) == list(theirs) and len(ours) >= 2
    for name in ours:
        assert ours[name] == theirs[name], name
    assert report.path == str(tmp_path / "ours" / "model.safetensors") and report.copied == ["tokenizer.json"]
    assert ("config.json" in ours) == (form != "mxfp6_e2m3") != bool(report.notes)     # no word for it there
    assert report.snr_db and all(snr > 5 for snr in report.snr_db.values())
    assert ("model.odd" in report.left) == ("include" not in options and form != "e4m3")


@pytest.mark.parametrize("form", ["nvfp4", "mxfp4"])
def test_gguf_is_that_of_the_command(tmp_path, form):
    source = model(str(tmp_path / "m"), kind="F32")
    blockscale.quantize_checkpoint(source, tmp_path / "ours.gguf", form, progress=False)
    command.run("quantize", source, "-o", tmp_path / "theirs.gguf", "--format", form)
    assert all_files(tmp_path / "ours.gguf") == all_files(tmp_path / "theirs.gguf")


def test_experts_and_tiles_are_those_of_the_command(tmp_path):
    for name, source, form, convention in (("e", experts(str(tmp_path / "m")), "mxfp4", "gpt_oss"),
                                           ("t", tiled(str(tmp_path / "t")), "nvfp4", "modelopt")):
        blockscale.quantize_checkpoint(source, tmp_path / f"{name}1", form, convention=convention, progress=False)
        command.run("quantize", source, "-o", tmp_path / f"{name}2", "--format", form, "--convention", convention)
        assert all_files(tmp_path / f"{name}1") == all_files(tmp_path / f"{name}2")


def test_what_is_chosen_by_default_is_what_the_command_chooses():
    for file, pattern, value in (("commands/quantize/choose.c", r'usual_exclude\[\] = "([^"]*)"', "USUAL_EXCLUDE"),
                                 ("checkpoint/fused.c", r'fused_usual\[\] = ((?:\s*"[^"]*")+)', "USUAL_GROUPS")):
        with open(os.path.join(command.ROOT, "src", "cli", file), encoding="utf-8") as source:
            found = re.search(pattern, source.read()).group(1)
        text = "".join(re.findall(r'"([^"]*)"', found)) if '"' in found else found
        assert getattr(blockscale.checkpoint_quantizer, value) == text


def test_a_filter_chooses_and_progress_is_told(tmp_path):
    said = []
    report = blockscale.quantize_checkpoint(model(str(tmp_path / "m")), tmp_path / "q", "mxfp8_e4m3",
                                            filter=lambda name: name.endswith("up_proj"),
                                            progress=lambda *what: said.append(what))
    assert sorted(report.snr_db) == ["model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj"]
    done = [what[1] for what in said]
    assert done == sorted(done) and done[0] == 0 and said[-1][1] == said[-1][2] == report.bytes_after
    assert {what[0] for what in said} >= set(report.snr_db) and report.bytes_before > report.bytes_after


def test_a_bar_is_drawn_by_tqdm(tmp_path, capfd):
    blockscale.quantize_checkpoint(model(str(tmp_path / "m")), tmp_path / "q", "mxfp8_e4m3")
    drawn = capfd.readouterr().err
    assert "100%" in drawn and "B/s" in drawn


def test_nothing_is_left_of_what_fails(tmp_path):
    source = model(str(tmp_path / "m"))

    def stops(name, done, total):
        if done > 0:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        blockscale.quantize_checkpoint(source, tmp_path / "q", "nvfp4", progress=stops)
    for options, words in (({"include": "nothing"}, "no weight is chosen"),
                           ({"convention": "torch"}, "convention='torch'"),
                           ({"convention": "gguf"}, "X.gguf"), ({"share_tensor_scales": "q_proj"}, "is no group")):
        with pytest.raises(blockscale.InvalidError, match=words):
            blockscale.quantize_checkpoint(source, tmp_path / "q", "nvfp4", progress=False, **options)
    with pytest.raises(blockscale.UnsupportedError):
        blockscale.quantize_checkpoint(source, tmp_path / "q", "mxint8", progress=False)
    assert os.listdir(tmp_path) == ["m"]

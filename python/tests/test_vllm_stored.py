"""What blockscale.vllm takes a checkpoint's weights for, without vLLM: names, parts, and what is joined."""
import os
import re
import subprocess
import sys

import pytest

import blockscale
import command
from blockscale.vllm import stored

sys.path.insert(0, os.path.join(command.ROOT, "tests"))
import checkpoint_file                                 # noqa: E402

JOINED = {"qkv_proj": ["q_proj", "k_proj", "v_proj"], "gate_up_proj": ["gate_proj", "up_proj"]}
BYTES = {"U8": 1, "F8_E4M3": 1, "F8_E8M0": 1, "F32": 4, "BF16": 2, "I64": 8, "F6_E2M3": 0.75}


def tensor(kind, *shape):
    """A tensor of ones of its kind, near enough."""
    count = 1
    for size in shape:
        count *= size
    one = {"F32": b"\0\0\x80\x3f", "BF16": b"\x80\x3f"}.get(kind)
    return kind, list(shape), one * count if one else bytes([0x38]) * int(count * BYTES[kind])


def nvfp4(name, rows, columns=64):
    """ModelOpt's."""
    return {f"{name}.weight": tensor("U8", rows, columns // 2), f"{name}.weight_scale": tensor(
        "F8_E4M3", rows, columns // 16), f"{name}.weight_scale_2": tensor("F32")}


def mxfp4(name, rows, columns=64):
    """ModelOpt's and Quark's."""
    return {f"{name}.weight": tensor("U8", rows, columns // 2), f"{name}.weight_scale": tensor(
        "U8", rows, columns // 32)}


def read(folder, tensors):
    """What stored.read says of a file with these tensors."""
    path = os.path.join(str(folder), "model.safetensors")
    order = sorted(tensors, key=lambda name: (-BYTES[tensors[name][0]], name))
    checkpoint_file.write(path, {name: tensors[name] for name in order})
    return stored.read(str(folder))


def test_parts_have_the_names_and_types_of_the_file(tmp_path):
    found = read(tmp_path, {
        **nvfp4("m.a", 8), "m.a.input_scale": tensor("F32"), "m.norm.weight": tensor("BF16", 64),
        "m.head.weight": tensor("BF16", 8, 64),
        "m.b.weight_packed": tensor("U8", 8, 32), "m.b.weight_scale": tensor("F8_E4M3", 8, 4),
        "m.b.weight_global_scale": tensor("F32", 1), "m.b.weight_shape": tensor("I64", 2),
        "m.c._weight_qdata": tensor("U8", 8, 32), "m.c._weight_scale": tensor("F8_E4M3", 32, 16),
        "m.c._weight_per_tensor_scale": tensor("F32"),
        "m.d._weight_qdata": tensor("F8_E4M3", 8, 64), "m.d._weight_scale": tensor("F32", 8, 1)})
    assert list(found) == ["m.a", "m.b", "m.c", "m.d"]
    a, b, c, d = found.values()
    assert (a.codes, a.scales, a.tensor_scale) == (
        ("weight", "U8", (8, 32)), ("weight_scale", "F8_E4M3", (8, 4)), ("weight_scale_2", "F32", ()))
    assert [part.suffix for part in a.unread] == ["input_scale"] and not a.divides and a.layout == "linear"
    assert (b.codes.suffix, b.scales.suffix, b.tensor_scale.suffix) == (
        "weight_packed", "weight_scale", "weight_global_scale")
    assert b.divides and [part.suffix for part in b.unread] == ["weight_shape"]
    assert (c.convention, c.layout, c.tensor_scale.suffix) == ("torchao", "128x4", "_weight_per_tensor_scale")
    assert d.per_row and d.format == "e4m3" and d.scales is None and d.tensor_scale == ("_weight_scale", "F32", (8, 1))


def test_joined_layers(tmp_path):
    found = read(tmp_path, {**nvfp4("m.q_proj", 16), **nvfp4("m.k_proj", 8), **nvfp4("m.v_proj", 8),
                            **nvfp4("m.up_proj", 32), **nvfp4("x.gate_up_proj", 32), **nvfp4("y.up_proj", 8),
                            **mxfp4("y.gate_proj", 8), **nvfp4("z.a", 8), **nvfp4("z.b", 8, 96), **nvfp4("last", 8)})
    assert [one.name for one in stored.members(found, "m.qkv_proj", JOINED)] == ["m.q_proj", "m.k_proj", "m.v_proj"]
    assert [one.name for one in stored.members(found, "m.qkv_proj", {})] == ["m.q_proj", "m.k_proj", "m.v_proj"]
    assert [one.name for one in stored.members(found, "x.gate_up_proj", JOINED)] == ["x.gate_up_proj"]
    assert [one.name for one in stored.members(found, "last", JOINED)] == ["last"]
    assert stored.members(found, "m.o_proj", JOINED) == []
    with pytest.raises(blockscale.UnsupportedError, match="m.up_proj is nvfp4 and m.gate_proj is not quantized: vLLM "
                       "joins them into m.gate_up_proj"):
        stored.members(found, "m.gate_up_proj", JOINED)
    with pytest.raises(blockscale.UnsupportedError, match="y.gate_proj has the format mxfp4 and y.up_proj nvfp4"):
        stored.members(found, "y.gate_up_proj", JOINED)
    with pytest.raises(blockscale.UnsupportedError, match="z.a has the columns 64 and z.b 96"):
        stored.members(found, "z.ab", {"ab": ["a", "b"]})
    renamed = stored.renamed(found, lambda name: None if name == "last" else name.replace("m.", "model.", 1))
    assert "last" not in renamed and renamed["model.q_proj"].name == "m.q_proj"


def test_experts(tmp_path):
    def of_gpt_oss(name):
        return {f"{name}_blocks": tensor("U8", 2, 32, 2, 16), f"{name}_scales": tensor("U8", 2, 32, 2)}

    found = read(tmp_path, {**of_gpt_oss("m.experts.gate_up_proj"), **of_gpt_oss("m.experts.down_proj"),
                            **nvfp4("n.experts.0.w1", 8)})
    both = stored.experts(found, "m.experts")
    assert [(one.name, one.format, one.shape) for one in both] == [
        ("m.experts.gate_up_proj", "mxfp4", (2, 32, 64)), ("m.experts.down_proj", "mxfp4", (2, 32, 64))]
    names = {"gate_up_proj": "w13_weight", "down_proj": "w2_weight"}
    renamed = stored.renamed(found, lambda name: ".".join(names.get(one, one) for one in name.split(".")))
    assert stored.experts(renamed, "m.experts") == both
    assert stored.experts(found, "o.experts") is None
    with pytest.raises(blockscale.UnsupportedError, match=r"n.experts.0.w1 is quantized \(nvfp4 of modelopt\)"):
        stored.experts(found, "n.experts")


def test_what_layers_cannot_have(tmp_path):
    with pytest.raises(blockscale.InvalidError, match="has no weight with block scales"):
        read(tmp_path, {"a.weight": tensor("BF16", 8, 64)})
    with pytest.raises(blockscale.UnsupportedError, match="a has fp32 scales of tiles of 128 x 128"):
        read(tmp_path, {"a.weight": tensor("F8_E4M3", 256, 256), "a.weight_scale_inv": tensor("F32", 2, 2)})
    with pytest.raises(blockscale.UnsupportedError, match="a.weight is of type F6_E2M3"):
        read(tmp_path, {"a.weight": tensor("F6_E2M3", 8, 64), "a.weight_scale": tensor("U8", 8, 2)})
    with pytest.raises(blockscale.FileError, match=r"a.weight_scale \(8 x 3\) does not fit"):
        read(tmp_path, {**nvfp4("a", 8), "a.weight_scale": tensor("F8_E4M3", 8, 3)})
    checkpoint_file.write_gguf(str(tmp_path / "a.gguf"), {"a.weight": (39, [2, 64], bytes(68))})
    with pytest.raises(blockscale.UnsupportedError, match="a.gguf is a gguf file"):
        stored.read(str(tmp_path / "a.gguf"))


def test_the_entry_point_is_there_and_imports_no_vllm():
    with open(os.path.join(command.ROOT, "python", "pyproject.toml"), encoding="utf-8") as file:
        found = re.search(r'\[project.entry-points."vllm.general_plugins"\]\nblockscale = "([\w.]+):(\w+)"\n',
                          file.read())
    module, function = found.groups()
    program = (f"import sys, {module} as plugin\n"
               f"assert callable(plugin.{function})\n"
               "assert not {'vllm', 'torch'} & set(sys.modules), sorted(sys.modules)\n")
    subprocess.run([sys.executable, "-c", program], check=True)

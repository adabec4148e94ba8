"""A checkpoint: bf16 weights become NVFP4, are listed as they lie in the new file, and multiplied from there.

    python3 checkpoint.py [MODEL [OUTPUT]]     a folder or a .safetensors file; without one, a small model is made"""
import json
import pathlib
import struct
import sys
import tempfile

import numpy as np

import blockscale


def make_model(path: pathlib.Path) -> None:
    """A .safetensors file with four bf16 matrices: 8 bytes of length, a JSON header, the numbers."""
    import ml_dtypes
    rng, header, data = np.random.default_rng(0), {}, b""
    shapes = {"q_proj": (64, 128), "k_proj": (32, 128), "up_proj": (256, 128), "down_proj": (128, 256)}
    for name, shape in shapes.items():
        numbers = (rng.standard_normal(shape) / 16).astype(ml_dtypes.bfloat16).tobytes()
        header[f"layers.0.{name}.weight"] = {"dtype": "BF16", "shape": shape,
                                             "data_offsets": (len(data), len(data) + len(numbers))}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)                                       # so that the numbers lie aligned
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


with tempfile.TemporaryDirectory() as folder:
    model = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/model.safetensors")
    output = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else f"{folder}/quantized")
    if len(sys.argv) <= 1:
        make_model(model)

    report = blockscale.quantize_checkpoint(model, output, "nvfp4")       # ModelOpt's names, unless told otherwise
    print(f"{report.bytes_before} bytes became {report.bytes_after}")
    with blockscale.open(model) as before, blockscale.open(output) as after:
        for name, weight in after.items():
            if name not in report.snr_db:
                continue                                                  # left as it was
            # Nothing is copied: codes and scales lie in the mapped file.
            x = np.ones((1, weight.shape[-1]), np.float32)
            y = blockscale.matmul(x, weight.matrix)
            off = np.linalg.norm(y - blockscale.matmul(x, before[name].dequantize())) / np.linalg.norm(y)
            print(f"{name}: {weight.format} {weight.shape}, {report.snr_db[name]:.1f} dB; "
                  f"a product is off by {off:.1%}")

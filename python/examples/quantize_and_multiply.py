"""Weights in NVFP4 and activations in MXFP8, multiplied: what it costs in accuracy, and a product planned once.

    python3 quantize_and_multiply.py"""
import numpy as np

import blockscale

rng = np.random.default_rng(0)
x = rng.standard_normal((16, 1024), dtype=np.float32)                # activations: 16 rows, K = 1024
w = rng.standard_normal((256, 1024), dtype=np.float32) / 32          # weights: 256 outputs, one row each

weights, stats = blockscale.quantize(w, "nvfp4", layout="128x4", stats=True)
activations = blockscale.quantize(x, "mxfp8_e4m3")
print(weights)
print(f"  {8 * weights.nbytes / w.size:.2f} bits a number, {stats.snr_db:.1f} dB")

# Every product of operands is exact, and the sums are fp32: what is left is what quantizing did.
y = blockscale.matmul(activations, weights)                          # 16 x 256, fp32
exact = blockscale.exact_matmul(activations, weights) * weights.tensor_scale
reference = x @ w.T
off = np.linalg.norm(y - reference) / np.linalg.norm(reference)
print(f"off the exact product of the codes by {np.abs(y - exact).max() / np.abs(exact).max():.1e} of its largest")
print(f"off the product before quantizing by {off:.1%}")

# Scales, bias and an activation belong to the same call, and so do activations that are not quantized.
bias = rng.standard_normal(256, dtype=np.float32)
z = blockscale.matmul(x, weights, alpha=0.5, bias=bias, activation="silu")

# The same shapes again and again: a plan looks at addresses alone, and prepacked weights lie as its kernel reads them.
plan = blockscale.plan(x, weights)
out = np.empty((16, 256), np.float32)
plan.run(x, weights, out)
assert np.array_equal(out, blockscale.matmul(x, weights))            # the same bits
print(plan.describe())

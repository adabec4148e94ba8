"""blockscale verify --device cuda on a simulated GPU with tensor memory, and on one whose tensor cores multiply codes
by mma.sync: every pair of formats on every kernel that serves it, all cases of verify.  Each pair once, on one kernel
after the other, codes before decoded rows; then each pair on its next kernel, and so on.  As sm_103a and sm_121a, for
which the kernels are the same, each pair once."""
import functools
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import process
import simulated_grid_sm120 as sm120

PARTS = ["verify"]
EIGHT = ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "e4m3", "e5m2"]
OTHERS = ["nvfp4", "mxfp4_block16", "mxint8", "bf16", "fp16"]
SECONDS = 5                                            # what a pair on a kernel takes, roughly


def kind_of(a, b):
    """The kind of codes by which a pair is multiplied, or None."""
    if a == b == "mxfp4":
        return "mxf4"
    if a in EIGHT and b in EIGHT:
        return "mxf8f6f4"
    e2m1 = {"mxfp4", "mxfp4_block16"}
    return "mxf4nvf4" if a == b == "nvfp4" or {a, b} <= e2m1 else None


def multiplies_codes(name, pair):
    """Whether the kernel has the pair's kind; of mma.sync, none has e8m0 for blocks of 16."""
    kind = kind_of(*pair)
    if kind is None or "_%s_" % kind not in name:
        return False
    if "_mma_sync_" not in name:
        return True
    tile = next(tile for tile in sm120.tiles_of(kind) if name.endswith("_%s_%s" % (kind, tile.name)))
    return pair in sm120.pairs_of(kind, tile)


def asked(names):
    """(turn, kernel, pair) of all: a turn has every pair once."""
    pairs = [(a, b) for a in EIGHT + OTHERS for b in EIGHT + OTHERS]
    serving = {pair: [n for n in names if multiplies_codes(n, pair)]
               + [n for n in names if "_f16_" in n or "_bf16_" in n or n == "cuda_simt"] for pair in pairs}
    for turn in range(max(map(len, serving.values()))):
        for number, pair in enumerate(pairs):
            kernels = serving[pair]
            first = sum(multiplies_codes(n, pair) for n in kernels) or len(kernels)
            if turn < first:
                yield turn, kernels[(number + turn) % first], pair
            elif turn < len(kernels):
                yield turn, kernels[first + (number + turn) % (len(kernels) - first)], pair


def cases(folder):
    """(part, case, turn) of all."""
    info = json.loads(subprocess.run([os.path.join(folder, "bin/blockscale"), "info", "--json"], stdout=subprocess.PIPE,
                                     check=True).stdout)
    names = [k["name"] for k in info["kernels"]]
    for prefix, device, other in (("cuda_tcgen05_", "sm_100a", "sm_103a"),
                                  ("cuda_mma_sync_", sm120.DEVICE, sm120.OTHER_MINOR)):
        for turn, kernel, pair in asked([n for n in names if n.startswith(prefix) or n == "cuda_simt"]):
            yield "verify", "%s %s %s:%s" % (device, kernel, *pair), 1 + turn
            if turn == 0:
                yield "verify", "%s %s %s:%s" % (other, kernel, *pair), 2


def ask(folder, case, left):
    """agrees or DIFFERS, and how many products; None: no time."""
    device, kernel, pair = case.split(" ")
    env = dict(os.environ, BLOCKSCALE_LIBCUDA=os.path.abspath(os.path.join(folder, "lib/libcudasim.so")),
               CUDASIM_DEVICE=device, CUDASIM_QUIET="1", CUDASIM_THREADS="1", OMP_NUM_THREADS="1")
    status, out, err, _ = process.run([os.path.join(folder, "bin/blockscale"), "verify", "--device", "cuda", "--pair",
                                       pair, "--kernel", kernel, "--json"], left, env=env)
    if status is None:
        return None
    if status not in (0, 1):
        return {("verify", case): ("DIFFERS", (out + err)[-600:])}
    found = json.loads(out[out.index("{"):])["kernels"][0]["pairs"][0]
    agrees = status == 0 and found["failures"] == 0 and found["cases"] > 0
    return {("verify", case): ("agrees" if agrees else "DIFFERS",
                               "%d products" % found["cases"] if agrees else out[-600:])}


def jobs(folder, wanted):
    for _, case, turn in wanted:
        yield turn, SECONDS, functools.partial(ask, folder, case)

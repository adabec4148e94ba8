"""The grid of Blackwell's kernels for codes: every kernel at the edges of M, N, K, of its ring and of the number of
tiles, every pair of formats at every K; then a product of every kernel under 100 schedules.  Whole numbers, byte for
byte against the CPU.  Of the kernels for tensor memory here, of those by mma.sync in simulated_grid_sm120.py; a case is
a product as test_gpu_codes is asked for it, with the simulated GPU in front where that is not the usual one."""
import functools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import process
import simulated_grid_sm120 as sm120

PARTS = ["covering", "schedules", "grid"]
M_N = [(1, 1), (1, 500), (16, 129), (128, 128), (129, 16), (129, 256), (256, 129), (500, 600)]
K = [16, 32, 48, 64, 128, 640, 704, 1152, 2880, 4096]
SMS, BATCH, SCHEDULES, SLICES = 4, 8, 100, 12
# Kind: pairs, elements of a step of K.
EIGHT = ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "e4m3", "e5m2"]
KINDS = {"mxf8f6f4": ([(a, b) for a in EIGHT for b in EIGHT if (a, b) != ("mxfp4", "mxfp4")], 128),
         "mxf4": ([("mxfp4", "mxfp4")], 256),
         "mxf4nvf4": ([("nvfp4", "nvfp4"), ("mxfp4_block16", "mxfp4_block16"), ("mxfp4_block16", "mxfp4"),
                       ("mxfp4", "mxfp4_block16")], 256)}
INSTANCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../src/cuda/sm100/gemm_instances.h")


def tiles_of(kind):
    """(rows, columns, CTAs, stages) of the instances, rows and columns of D."""
    with open(INSTANCES, encoding="utf-8") as file:
        text = file.read()
    text = text[text.index("BSMI_SM100_GEMM_%s(X)" % kind.upper()):]
    for line in text.splitlines()[1:]:
        row = re.match(r" +X\((\d+)x(\d+), +\d+, (\d), (\d+),", line)
        if row is None:
            return
        yield tuple(map(int, row.groups()))


def fits(rows, m):
    return m if rows >= 32 else min(m, rows)


def named(kind, tile, pair, m, n, k):
    return "cuda_tcgen05_%s_%dx%d %s %s %d %d %d" % (kind, *tile[:2], *pair, fits(tile[0], m), n, k)


def covering():
    """Of the grid: every two of kernel, (M, N) and K together, every number of steps and of tiles on a kernel of each
    kind, every pair."""
    for kind, (pairs, step) in KINDS.items():
        tiles = list(tiles_of(kind))
        for i, tile in enumerate(tiles):
            for j, k in enumerate(K):
                yield named(kind, tile, pairs[0], *M_N[(i + j) % len(M_N)], k)
        for steps in range(1, 2 * max(tile[3] for tile in tiles) + 2):
            deep = [tile for tile in tiles if steps < 2 * tile[3] + 2]
            yield named(kind, deep[steps % len(deep)], pairs[0], 5, 8, step * steps)
        for count in range(1, 2 * SMS + 2):
            alone = [tile for tile in tiles if count < 2 * SMS // tile[2] + 2]
            tile = alone[count % len(alone)]
            yield named(kind, tile, pairs[0], 5, tile[1] * count - 3, 64)
        for i, pair in enumerate(pairs):
            yield named(kind, tiles[(i + i % len(K)) % len(tiles)], pair, 33, 130, K[i % len(K)])


def grid():
    for kind, (pairs, step) in KINDS.items():
        for tile in tiles_of(kind):
            shapes = [(m, n, k) for m, n in M_N for k in K]
            shapes += [(5, 8, step * steps) for steps in range(1, 2 * tile[3] + 2)]
            shapes += [(5, tile[1] * tiles - 3, 64) for tiles in range(1, 2 * SMS // tile[2] + 2)]
            for shape in shapes:
                yield named(kind, tile, pairs[0], *shape)
    for kind, (pairs, step) in KINDS.items():
        tiles = list(tiles_of(kind))
        for i, pair in enumerate(pairs):
            for j, k in enumerate(K):
                yield named(kind, tiles[(i + j) % len(tiles)], pair, 33, 130, k)


def schedules():
    for kind, (pairs, step) in KINDS.items():
        for tile in tiles_of(kind):
            yield named(kind, tile, pairs[-1], 40, tile[1] + 3, step * 2 + 48)


def cases(folder):
    """(part, case, turn) of all, each once."""
    del folder
    first = dict.fromkeys([*covering(), *sm120.covering(), *sm120.other_minor()])
    for product in first:
        yield "covering", product, 0
    for product in [*schedules(), *sm120.schedules()]:
        yield "schedules", product, 0
    rest = [product for product in dict.fromkeys([*grid(), *sm120.grid()]) if product not in first]
    for i, product in enumerate(rest):
        yield "grid", product, 1 + i % SLICES


def seconds_of(product, schedules_each):
    """What it takes, roughly: a tile's elements, with those of whole instructions."""
    if "mma_sync" in product:
        return schedules_each * sm120.seconds_of(product)
    tile, m, n, k = re.match(r"\S+_(\d+x\d+) \S+ \S+ (\d+) (\d+) (\d+)", product).groups()
    rows, columns = map(int, tile.split("x"))
    tiles = -(-int(m) // rows) * -(-int(n) // columns)
    return schedules_each * (0.05 + 5e-9 * tiles * max(rows, 128 if rows < 128 else rows) * columns * int(k))


def device_of(case):
    if case.startswith("sm_"):
        return case.split()[0]
    return sm120.DEVICE if "mma_sync" in case else "sm_100a"


def ask(folder, part, products, left, schedules_each=SCHEDULES):
    """{(part, product): (fate, said)} of products on the same GPU; None: no time."""
    asked = [re.sub(r"^sm_\w+ ", "", product) for product in products]
    env = dict(os.environ, BLOCKSCALE_LIBCUDA=os.path.abspath(os.path.join(folder, "lib/libcudasim.so")),
               CUDASIM_DEVICE=device_of(products[0]), CUDASIM_SMS=str(SMS), CUDASIM_THREADS="1", OMP_NUM_THREADS="1",
               CUDASIM_SCHEDULES=str(schedules_each if part == "schedules" else 1), PRODUCTS=";".join(asked))
    status, out, err, _ = process.run([os.path.join(folder, "tests/test_gpu_codes"), "--only", "asked_products"], left,
                                      env=env)
    if status is None:
        return None
    if status == 0 and " 1 passed, 0 failed, 0 skipped" in out:
        return {(part, product): ("right", "") for product in products}
    if len(products) == 1:
        return {(part, products[0]): ("WRONG", (out + err)[-600:])}
    alone = [ask(folder, part, [product], left, schedules_each) for product in products]
    return {key: answer for answers in alone if answers for key, answer in answers.items()}


def jobs(folder, wanted):
    """Several products of a turn and about one length at a time: to read the kernels takes as long as a small
    product."""
    wanted = sorted(wanted, key=lambda case: (case[0], case[2], device_of(case[1]), seconds_of(case[1], 1)))
    while wanted:
        part, first, turn = wanted[0]
        batch = [case for case in wanted[:1 if part == "schedules" else BATCH]
                 if case[0] == part and case[2] == turn and device_of(case[1]) == device_of(first)]
        products = [case[1] for case in batch]
        seconds = 1 + sum(seconds_of(product, SCHEDULES if part == "schedules" else 1) for product in products)
        yield turn, seconds, functools.partial(ask, folder, part, products)
        wanted = wanted[len(batch):]

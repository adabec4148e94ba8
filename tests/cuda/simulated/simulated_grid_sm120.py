"""The grid of the kernels by mma.sync (compute capability 12.x): every kernel at the edges of M and N, at every number
of products in the last step of K, around the length of its ring and around the number of CTAs; every pair of formats.
What runs it is simulated_grid.py."""
import collections
import os
import re

EIGHT = ["mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "e4m3", "e5m2"]
M_N = [(1, 1), (1, 300), (16, 65), (17, 129), (64, 128), (65, 64), (129, 130), (257, 33)]
SMS, DEVICE, OTHER_MINOR = 4, "sm_120a", "sm_121a"
INSTANCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../src/cuda/sm120/gemm_instances.h")
# Kind: tables of instances, pairs, elements of a product's K.
KINDS = {"mxf8f6f4": (["OF_BYTES", "OF_8_BITS"],
                      [(a, b) for a in EIGHT for b in EIGHT if (a, b) != ("mxfp4", "mxfp4")], 32),
         "mxf4": (["OF_4_BITS"], [("mxfp4", "mxfp4")], 64),
         "mxf4nvf4": (["OF_4_BITS"], [("nvfp4", "nvfp4")], 64),
         "bf16": (["BF16"], [("mxfp4_block16", "mxfp4_block16"), ("mxfp4_block16", "mxfp4"),
                             ("mxfp4", "mxfp4_block16"), ("nvfp4", "mxfp4"), ("mxint8", "nvfp4")], 16)}

Tile = collections.namedtuple("Tile", "name rows columns step along_m along_n schedule stages")


def tiles_of(kind):
    """The instances of a kind."""
    with open(INSTANCES, encoding="utf-8") as file:
        text = file.read()
    for table in KINDS[kind][0]:
        rows = text[text.index("BSMI_SM120_GEMM_%s(X)" % table):].split("\n\n")[0]
        for row in re.findall(r" X\(([^)]*)\)", rows):
            name, *numbers, schedule, stages = (word.strip() for word in row.split(","))
            yield Tile(name, *map(int, numbers), schedule.replace("BSMI_SM120_", ""), int(stages))


def pairs_of(kind, tile):
    """Steps of fewer than 128 bytes have no codes that TMA pads."""
    pairs = KINDS[kind][1]
    if kind != "mxf8f6f4" or tile.step == 128:
        return pairs
    return [(a, b) for a, b in pairs if {a, b} <= {"mxfp8_e4m3", "mxfp8_e5m2", "e4m3", "e5m2"}]


def named(kind, tile, pair, m, n, k, more=""):
    return "cuda_mma_sync_%s_%s %s %s %d %d %d" % (kind, tile.name, *pair, m, n, k) + (" any " + more if more else "")


# Rows that begin at multiples of 8 and of 4 bytes, of both operands or of one, which a kernel copies itself; pairs that
# it can.
PITCHES = ["eights", "fours", "aeights", "bfours"]
COPIED = {"mxf8f6f4": ("mxfp8_e4m3", "mxfp8_e5m2"), "mxf4": ("mxfp4", "mxfp4"), "mxf4nvf4": ("nvfp4", "nvfp4"),
          "bf16": ("bf16", "bf16")}


def copied(kind, tile, turn):
    """At edges of M, N and K, and around its ring."""
    step, product = step_of(kind, tile), KINDS[kind][2]
    ks = [step * (tile.stages + 1) + product + 16, step + product // 2, product, step * (2 * tile.stages + 1)]
    return named(kind, tile, COPIED[kind], *M_N[turn % len(M_N)], ks[turn % len(ks)], PITCHES[turn // 2 % 4])


def step_of(kind, tile):
    """Elements of a step of K."""
    return KINDS[kind][2] * tile.step // 32


def last_steps(kind, tile):
    """K: a part of a product alone, every number of products, and a part of one behind whole steps."""
    product, step = KINDS[kind][2], step_of(kind, tile)
    return [16] + list(range(product, step + 1, product)) + [step * (tile.stages + 1) + product + 16]


def rings(kind, tile):
    """K: around the length of the ring, and of two."""
    return [step_of(kind, tile) * steps for steps in (tile.stages - 1, tile.stages, tile.stages + 1,
                                                      2 * tile.stages + 1) if steps > 0]


def parts(kind, tile):
    """K that split_k cuts, the last part shorter than the others or not."""
    return [2048 + step_of(kind, tile), 4096, 4112] if tile.schedule == "SPLIT_K" else []


def several(kind, tile, tiles):
    """So many tiles; where two sets of warps take them in turn, of more steps than stages, fewer, or as many: a set
    that did not wait for its turn would take an old phase of a stage for its own."""
    long = step_of(kind, tile) * (tile.stages + 1 - tiles % 3)
    return 5, tile.columns * tiles - 3, long if tile.schedule == "PING_PONG" else KINDS[kind][2] * 2


def covering():
    """Of the grid: of a kernel's K each second or third, its neighbours in the table having those between, with every
    (M, N) in turn; and every pair."""
    for number, kind in enumerate(KINDS):
        tiles = list(tiles_of(kind))
        for i, tile in enumerate(tiles):
            pairs, turn = pairs_of(kind, tile), i + number
            for j, k in enumerate(last_steps(kind, tile)):
                if (turn + j) % 3 == 0:
                    yield named(kind, tile, pairs[i % len(pairs)], *M_N[(turn + j) // 3 % len(M_N)], k)
            for j, k in enumerate(rings(kind, tile)):
                if (turn + j) % 2 == 0:
                    yield named(kind, tile, pairs[-1], *[(1, 9), (17, 5), (5, 33)][(turn + j) // 2 % 3], k)
            for k in parts(kind, tile)[:2]:
                yield named(kind, tile, pairs[-1], 3, 70, k)
            for count in [SMS - 1, SMS + 1, 2 * SMS + 1] if tile.schedule == "PING_PONG" else [SMS + 1] * (i % 3 == 0):
                yield named(kind, tile, pairs[0], *several(kind, tile, count))
            yield copied(kind, tile, 3 * i + number)
        for i, pair in enumerate(KINDS[kind][1]):
            serving = [tile for tile in tiles if pair in pairs_of(kind, tile)]
            yield named(kind, serving[i % len(serving)], pair, 18, 34, KINDS[kind][2] * (i % 5) + 16 + 48 * (i % 2))


def grid():
    for kind in KINDS:
        for tile in tiles_of(kind):
            pairs, step = pairs_of(kind, tile), step_of(kind, tile)
            ks = last_steps(kind, tile) + rings(kind, tile) + parts(kind, tile) + [704, 2880]
            for i, shape in enumerate((m, n, k) for m, n in M_N for k in ks):
                yield named(kind, tile, pairs[i % len(pairs)], *shape)
            for steps in range(1, 2 * tile.stages + 2):
                yield named(kind, tile, pairs[-1], 5, 8, step * steps)
            for count in range(1, 2 * SMS + 2):
                yield named(kind, tile, pairs[0], *several(kind, tile, count))
            for i, pair in enumerate(pairs):
                for k in (16, 48, 96, 160, 704) if i % 2 else (32, 80, 128, 640, 1152):
                    yield named(kind, tile, pair, 33, 70, k)
            for turn in range(32):
                yield copied(kind, tile, turn)


def schedules():
    """Each kernel with a tile more than CTAs, and two steps and a part of one; and where it copies rows."""
    for kind in KINDS:
        for i, tile in enumerate(tiles_of(kind)):
            size = (5, tile.columns * (SMS + 1) - 3,
                    (2100 if tile.schedule == "SPLIT_K" else 0) + step_of(kind, tile) * 2 + 48)
            yield named(kind, tile, pairs_of(kind, tile)[-1], *size)
            yield named(kind, tile, COPIED[kind], *size, PITCHES[i % 4])


def other_minor():
    """On a GPU of another minor version, for which the kernels are the same: one of each kind and schedule."""
    seen = set()
    for kind in KINDS:
        for tile in tiles_of(kind):
            if (kind, tile.schedule) not in seen:
                seen.add((kind, tile.schedule))
                yield "%s %s" % (OTHER_MINOR, named(kind, tile, pairs_of(kind, tile)[-1], 40, 130, 352))


def few_schedules():
    """Of schedules(), what `make test` asks: the least kernel of each schedule, the kinds in turn."""
    for kind, schedule in (("mxf8f6f4", "PING_PONG"), ("mxf4", "SPLIT_K"), ("mxf4nvf4", "COOPERATIVE"),
                           ("mxf4", "PING_PONG"), ("bf16", "COOPERATIVE")):
        least = min((tile for tile in tiles_of(kind) if tile.schedule == schedule), key=lambda t: t.rows * t.columns)
        yield next(product for product in schedules() if "_%s_%s " % (kind, least.name) in product)
    yield next(p for p in schedules() if "_mxf4nvf4_16x64x128 " in p and p.endswith(" any eights"))


def seconds_of(product):
    """What it takes, roughly: a tile's elements, with those of whole instructions."""
    rows, columns, m, n, k = map(int, re.search(r"_(\d+)x(\d+)x\S+ \S+ \S+ (\d+) (\d+) (\d+)", product).groups())
    return 0.02 + 5e-9 * -(-m // rows) * -(-n // columns) * rows * columns * (k + 128)

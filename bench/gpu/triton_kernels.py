"""Triton kernels that blockscale is measured against: products by dot_scaled, and dequantizing, of rows as it keeps them."""
import triton
import triton.language as tl
from triton.compiler import ASTSource


@triton.jit
def scaled_product(a, a_scales, b, b_scales, d, m, n, k, alpha,
                   a_format: tl.constexpr, b_format: tl.constexpr, a_pack: tl.constexpr, b_pack: tl.constexpr,
                   a_block: tl.constexpr, b_block: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr, step: tl.constexpr,
                   band: tl.constexpr):
    """D = alpha A B': a CTA a tile of rows x columns, tiles in bands of `band` rows of tiles.  pack: elements in a byte; block: of
    a scale, 0 for none.  Sizes are multiples of the tile."""
    tiles_m = tl.cdiv(m, rows)
    tiles_n = tl.cdiv(n, columns)
    tile = tl.program_id(0)
    in_band = band * tiles_n
    first = tile // in_band * band
    height = min(tiles_m - first, band)
    tile_m = first + tile % in_band % height
    tile_n = tile % in_band // height
    row = tile_m * rows + tl.arange(0, rows)
    column = tile_n * columns + tl.arange(0, columns)
    a_at = a + row.to(tl.int64)[:, None] * (k // a_pack) + tl.arange(0, step // a_pack)[None, :]
    b_at = b + column.to(tl.int64)[None, :] * (k // b_pack) + tl.arange(0, step // b_pack)[:, None]
    if a_block > 0:
        a_scale_at = a_scales + row[:, None] * (k // a_block) + tl.arange(0, step // a_block)[None, :]
    if b_block > 0:
        b_scale_at = b_scales + column[:, None] * (k // b_block) + tl.arange(0, step // b_block)[None, :]
    sums = tl.zeros((rows, columns), dtype=tl.float32)
    for _ in range(0, tl.cdiv(k, step)):
        a_tile = tl.load(a_at)
        b_tile = tl.load(b_at)
        a_scale = None
        b_scale = None
        if a_block > 0:
            a_scale = tl.load(a_scale_at)
            a_scale_at += step // a_block
        if b_block > 0:
            b_scale = tl.load(b_scale_at)
            b_scale_at += step // b_block
        sums = tl.dot_scaled(a_tile, a_scale, a_format, b_tile, b_scale, b_format, sums)
        a_at += step // a_pack
        b_at += step // b_pack
    d_at = d + row.to(tl.int64)[:, None] * n + column[None, :]
    tl.store(d_at, (sums * alpha).to(tl.bfloat16))


@triton.jit
def dequantize(codes, scales, values, element: tl.constexpr, block: tl.constexpr, count: tl.constexpr):
    """`count` elements a CTA, of rows without gaps; element: "e4m3" or "e2m1"; block: elements of a scale, 32 for e8m0,
    16 for ue4m3."""
    first = tl.program_id(0).to(tl.int64) * count
    scale = tl.load(scales + first // block + tl.arange(0, count // block))
    if block == 32:
        scale = tl.where(scale == 0, 0x40, scale.to(tl.int16) << 7).to(tl.bfloat16, bitcast=True).to(tl.float32)
    else:
        scale = scale.to(tl.float32)
    if element == "e4m3":
        value = tl.load(codes + first + tl.arange(0, count)).to(tl.float8e4nv, bitcast=True).to(tl.float32)
    else:
        pair = tl.load(codes + first // 2 + tl.arange(0, count // 2)).to(tl.int16)
        # Sign, exponent and mantissa where bf16 has them: the value times 2^-126.
        low = ((pair & 8) << 12) | ((pair & 7) << 6)
        high = ((pair & 0x80) << 8) | ((pair & 0x70) << 2)
        value = tl.interleave(low, high).to(tl.bfloat16, bitcast=True).to(tl.float32) * 8.507059173023462e37    # 2^126
    value = tl.reshape(value, (count // block, block)) * scale[:, None]
    tl.store(values + first + tl.arange(0, count), tl.reshape(value, (count,)).to(tl.bfloat16))


# (rows, columns, step, warps, stages), the likeliest first.
TILES = [(128, 128, 64, 4, 4), (128, 128, 128, 8, 3), (128, 256, 64, 8, 3), (256, 128, 64, 8, 3), (128, 256, 128, 8, 2),
         (64, 128, 128, 4, 4), (128, 128, 128, 4, 3)]
QUICK_TILES = 3
BAND = 8

# By the library's name: dot_scaled's name, elements in a byte, elements of a scale, its type in memory and that of its scales.
OPERANDS = {"mxfp8_e4m3": ("e4m3", 1, 32, "*u8", "*u8"), "mxfp4": ("e2m1", 2, 32, "*u8", "*u8"),
            "nvfp4": ("e2m1", 2, 16, "*u8", "*fp8e4nv"), "bf16": ("bf16", 1, 0, "*bf16", "*u8")}


ELEMENTS_OF_A_CTA = 4096


def product_source(a, b, tile):
    """(source, options) that triton.compile takes; None where dot_scaled has no name for an operand."""
    if a not in OPERANDS or b not in OPERANDS:
        return None
    rows, columns, step, warps, stages = tile
    constants = dict(a_format=OPERANDS[a][0], b_format=OPERANDS[b][0], a_pack=OPERANDS[a][1], b_pack=OPERANDS[b][1],
                     a_block=OPERANDS[a][2], b_block=OPERANDS[b][2], rows=rows, columns=columns, step=step, band=BAND)
    kinds = [OPERANDS[o][i] for o in (a, b) for i in (3, 4)] + ["*bf16", "i32", "i32", "i32", "fp32"]
    return source(scaled_product, kinds, 8, constants), {"num_warps": warps, "num_stages": stages}


def dequantize_source(name):
    """The same for dequantizing a format; None where the kernel does not know it."""
    if name not in OPERANDS or OPERANDS[name][2] == 0:
        return None
    constants = dict(element=OPERANDS[name][0], block=OPERANDS[name][2], count=ELEMENTS_OF_A_CTA)
    return source(dequantize, ["*u8", OPERANDS[name][4], "*bf16"], 3, constants), {"num_warps": 8}


def source(kernel, kinds, aligned, constants):
    """Pointers and sizes, the first `aligned` arguments, are multiples of 16."""
    signature = dict(zip(kernel.arg_names, kinds)) | {name: "constexpr" for name in constants}
    attributes = {(i,): [["tt.divisibility", 16]] for i in range(aligned)}
    return ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)

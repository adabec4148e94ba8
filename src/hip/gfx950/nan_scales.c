/* Rows that have a NaN among their scales, for kernels that do not rest on what an MFMA makes of scale byte 255. */
#include "../params/gemm.h"
#include "device.h"

/* Bit 8 i: scale number i of a word is NaN. */
INLINE uint32_t nans_of(uint32_t word)
{
    word &= word >> 1;
    word &= word >> 2;
    return word & word >> 4 & 0x01010101;
}

/* The bytes of a lane's word that are scales of columns in front of `left`, of a block of eight. */
INLINE uint32_t bytes_in_front(int32_t dim, int32_t lane, int64_t left)
{
    uint32_t bytes = 0;
    UNROLL for (int32_t byte = 0; byte < 4; byte++) {
        const int32_t column = dim == 16 ? byte / 2 * 4 + lane / 16 : byte * 2 + lane / 32;
        bytes |= column < left ? 1u << 8 * byte : 0;
    }
    return bytes;
}

KERNEL(BSMI_NAN_SCALES_THREADS, 1) void bsmi_nan_scales_gfx950(const struct bsmi_hip_nan_scales_parameters p)
{
    const int32_t thread = __builtin_amdgcn_workitem_id_x(), lane = thread % 64;
    const int64_t number = (int64_t)__builtin_amdgcn_workgroup_id_x() * 4 + uniform(thread / 64);
    if (number >= (int64_t)p.groups * p.matrices) return;
    const uint32_t matrix = (uint32_t)number / (uint32_t)p.groups, group = (uint32_t)number % (uint32_t)p.groups;
    GLOBAL const uint32_t *from = (GLOBAL const uint32_t *)(p.scales + matrix * p.scale_batch_bytes
                                                            + group * p.scale_row_bytes) + lane;
    uint32_t nans = 0;
    for (int64_t left = p.columns; left > 0; left -= 8, from += 64)
        nans |= nans_of(*from) & bytes_in_front(p.dim, lane, left);
    /* Dim 16: bytes 0 and 2 are scales of the first 16 rows, 1 and 3 of those behind them. */
    const uint32_t lower = p.dim == 16 ? nans & 0x00010001 : nans, upper = nans & 0x01000100;
    const uint64_t lows = __builtin_amdgcn_ballot_w64(lower != 0), highs = __builtin_amdgcn_ballot_w64(upper != 0);
    uint32_t rows = (uint32_t)lows | (uint32_t)(lows >> 32);
    if (p.dim == 16) {
        const uint32_t behind = (uint32_t)highs | (uint32_t)(highs >> 32);
        rows = ((rows | rows >> 16) & 0xffff) | (behind | behind >> 16) << 16;
    }
    if (lane == 0) ((GLOBAL uint32_t *)p.nans)[number] = rows;
}

/* What a kernel does that may have begun before the kernels in front of it have ended, whoever launched them: nothing may be
 * read yet that they may write, but what will be read may be brought to the L2 cache, where their writes arrive, too. */
#pragma once

#include "cuda/ptx/bulk_copy.cuh"
#include "cuda/sm90/operand/register_scales.cuh"

/* Codes of the first `turns` turns of the tile, 128 bytes a row each, and scales of its rows if they lie linearly.  One thread. */
template <class CONFIG>
__device__ static inline void prefetch_tile(const bsmi_mixed_input_parameters &p, const gemm_tile &tile, int32_t turns)
{
    const bsmi_device_matrix &m = p.b_source;
    const int32_t matrix = tile.matrix * p.b_batch_step;
    for (int32_t turn = 0; turn < turns; turn++) {
        const int32_t at[3] = { turn * 128, tile.column, matrix };
        cp_async_bulk_prefetch_tensor(&p.b, at);
    }
    if (m.layout.kind != BSM_LAYOUT_LINEAR) return;
    const uint64_t begin = (uint64_t)m.scales + matrix * m.scale_batch_bytes + tile.column * m.layout.pitch;
    const int64_t rows = min((int64_t)CONFIG::COLUMNS, m.rows - tile.column),
                  count = (m.columns + CONFIG::BLOCK - 1) / CONFIG::BLOCK;
    const uint64_t from = (begin + 15) & ~(uint64_t)15, to = (begin + (rows - 1) * m.layout.pitch + count) & ~(uint64_t)15;
    if (to > from && to - from <= 1 << 18) cp_async_bulk_prefetch((const void *)from, (uint32_t)(to - from));
}

/* Codes in any packing, one behind another as tensor cores and TMA take them. */
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/dequantize/octets.cuh"

__device__ static inline void store_packed(unsigned char *row, int64_t number, int bits, octet o)
{
    if (bits == 8) {
        *(uint2 *)(row + number * 8) = make_uint2(o.low, o.high);
    } else if (bits == 6) {
        const octet stream = gather_stream(o);
        uint16_t *to = (uint16_t *)(row + number * 6);
        to[0] = (uint16_t)stream.low, to[1] = (uint16_t)(stream.low >> 16), to[2] = (uint16_t)stream.high;
    } else {
        *(uint32_t *)(row + number * 4) = gather_nibbles(o, false);
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_REPACK_THREADS)
    bsmi_repack(const __grid_constant__ bsmi_repack_parameters p)
{
    ptx_griddepcontrol_wait();
    const bsmi_device_matrix &m = p.source;
    const int64_t octets = p.padded_columns / 8, all = m.rows * m.batch * octets,
                  step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t row = i / octets, number = i - row * octets, matrix = row / m.rows, r = row - matrix * m.rows;
        const int64_t left = m.columns - number * 8;
        octet o = { 0, 0 };
        if (left > 0)
            o = load_octet(m, m.data + matrix * m.batch_bytes + r * m.row_bytes, number, (int)(left < 8 ? left : 8));
        store_packed(p.to + matrix * p.batch_bytes + r * p.row_bytes, number, m.bits, o);
    }
}

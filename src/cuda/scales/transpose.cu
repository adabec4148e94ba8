/* Codes of MN-major operands, K-major: squares of codes, one per byte, halfword or word, are turned in
 * shared memory. */
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/dequantize/octets.cuh"

enum { SIDE = BSMI_TRANSPOSE_SIDE, OCTETS = SIDE / 8, THREADS = BSMI_TRANSPOSE_THREADS };

/* Stored row k0 + i, element r0 + r, of `rows` x `columns` elements that the square has. */
struct square { int64_t batch, r0, k0; int rows, columns; };

/* Rows of the square in shared memory, a word longer than they need, so that columns lie in other banks. */
struct code_square { unsigned char at[SIDE][SIDE + 4]; };
struct half_square { uint16_t at[SIDE][SIDE + 2]; };
struct word_square { uint32_t at[SIDE][SIDE + 1]; };

__device__ static inline unsigned char *row_of(const bsmi_device_matrix &m, int64_t batch, int64_t row)
{
    return m.data + batch * m.batch_bytes + row * m.row_bytes;
}

__device__ static inline int octet_count(int count, int octet)
{
    const int left = count - octet * 8;
    return left < 8 ? left : 8;
}

/* 4, 6 and 8 bits. */
__device__ static void turn_codes(const bsmi_transpose_parameters &p, const square &s, code_square &turned)
{
    for (int i = threadIdx.x; i < SIDE * OCTETS; i += THREADS) {
        const int k = i / OCTETS, number = i % OCTETS, count = octet_count(s.rows, number);
        if (k >= s.columns || count <= 0) continue;
        const octet o = load_octet(p.stored, row_of(p.stored, s.batch, s.k0 + k), s.r0 / 8 + number, count);
        uint32_t *to = (uint32_t *)&turned.at[k][number * 8];
        to[0] = o.low, to[1] = o.high;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SIDE * OCTETS; i += THREADS) {
        const int r = i / OCTETS, number = i % OCTETS, count = octet_count(s.columns, number);
        if (r >= s.rows || count <= 0) continue;
        octet o = { 0, 0 };
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const uint32_t code = j < count ? (uint32_t)turned.at[number * 8 + j][r] << 8 * (j & 3) : 0;
            if (j < 4) o.low |= code;
            else o.high |= code;
        }
        store_octet(p.to, row_of(p.to, s.batch, s.r0 + r), s.k0 / 8 + number, o, count);
    }
    __syncthreads();
}

/* 16 and 32 bits. */
template <class NUMBER, class SQUARE>
__device__ static void turn_numbers(const bsmi_transpose_parameters &p, const square &s, SQUARE &turned)
{
    for (int i = threadIdx.x; i < SIDE * SIDE; i += THREADS) {
        const int k = i / SIDE, r = i % SIDE;
        if (k < s.columns && r < s.rows)
            turned.at[k][r] = __ldg((const NUMBER *)row_of(p.stored, s.batch, s.k0 + k) + s.r0 + r);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SIDE * SIDE; i += THREADS) {
        const int r = i / SIDE, k = i % SIDE;
        if (k < s.columns && r < s.rows)
            *((NUMBER *)row_of(p.to, s.batch, s.r0 + r) + s.k0 + k) = turned.at[k][r];
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(BSMI_TRANSPOSE_THREADS)
    bsmi_transpose(const __grid_constant__ bsmi_transpose_parameters p)
{
    __shared__ union { code_square codes; half_square halves; word_square words; } turned;
    ptx_griddepcontrol_wait();
    const int64_t across = (p.to.columns + SIDE - 1) / SIDE, down = (p.to.rows + SIDE - 1) / SIDE;
    for (int64_t i = blockIdx.x; i < p.to.batch * down * across; i += gridDim.x) {
        const int64_t band = i / across, batch = band / down;
        square s = { batch, (band - batch * down) * SIDE, (i - band * across) * SIDE, SIDE, SIDE };
        if (p.to.rows - s.r0 < SIDE) s.rows = (int)(p.to.rows - s.r0);
        if (p.to.columns - s.k0 < SIDE) s.columns = (int)(p.to.columns - s.k0);
        if (p.to.bits <= 8) turn_codes(p, s, turned.codes);
        else if (p.to.bits == 16) turn_numbers<uint16_t>(p, s, turned.halves);
        else turn_numbers<uint32_t>(p, s, turned.words);
    }
}

/* Codes of sparse operands with their zeros: a thread takes eight kept ones, neighbours neighbouring eights, and writes
 * sixteen. */
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/dequantize/octets.cuh"

/* Kept codes, two of each group, and the four bits of up to four groups from the lowest on. */
struct kept { octet codes; uint32_t places; };

/* Of 2:4: two codes, a byte or a halfword each, to the places of their group. */
__device__ static inline uint32_t four_codes(uint32_t first, uint32_t second, uint32_t places)
{
    return first << 8 * (places & 3) | second << 8 * (places >> 2 & 3);
}
__device__ static inline uint64_t four_halves(uint32_t first, uint32_t second, uint32_t places)
{
    return (uint64_t)first << 16 * (places & 3) | (uint64_t)second << 16 * (places >> 2 & 3);
}

/* Octet `number`, 0 or 1, of the sixteen. */
__device__ static inline octet expanded(const kept &k, int unit, int number)
{
    const uint32_t codes = number == 0 ? k.codes.low : k.codes.high;
    if (unit == 2) {
        const uint64_t pairs = four_halves(codes & 0xffff, codes >> 16, k.places >> 4 * number);
        return { (uint32_t)pairs, (uint32_t)(pairs >> 32) };
    }
    const uint32_t places = k.places >> 8 * number;
    return { four_codes(codes & 0xff, codes >> 8 & 0xff, places),
             four_codes(codes >> 16 & 0xff, codes >> 24, places >> 4) };
}

__device__ static inline void expand_codes(const bsmi_expand_parameters &p, const unsigned char *from,
                                           unsigned char *to, int64_t i, int count, uint32_t places)
{
    const kept k = { load_octet(p.stored, from, i, count), places };
#pragma unroll
    for (int number = 0; number < 2; number++) {
        const int left = 2 * count - 8 * number;
        if (left > 0) store_octet(p.to, to, 2 * i + number, expanded(k, p.unit, number), left < 8 ? left : 8);
    }
}

/* Elements of 16 bits, of 2:4 alone; rows of `to` are aligned. */
__device__ static inline void expand_halves(const unsigned char *from, unsigned char *to, int64_t i, int count,
                                            uint32_t places)
{
    const uint16_t *halves = (const uint16_t *)from + i * 8;
#pragma unroll
    for (int group = 0; group < 4; group++) {
        if (2 * group >= count) break;
        const uint64_t four = four_halves(__ldg(halves + 2 * group), __ldg(halves + 2 * group + 1),
                                          places >> 4 * group);
        *(uint2 *)(to + (i * 4 + group) * 8) = make_uint2((uint32_t)four, (uint32_t)(four >> 32));
    }
}

/* The same of 32 bits. */
__device__ static inline void expand_words(const unsigned char *from, unsigned char *to, int64_t i, int count,
                                           uint32_t places)
{
    const uint32_t *words = (const uint32_t *)from + i * 8;
#pragma unroll
    for (int group = 0; group < 4; group++) {
        if (2 * group >= count) break;
        const uint32_t first = __ldg(words + 2 * group), second = __ldg(words + 2 * group + 1),
                       at_first = places >> 4 * group & 3, at_second = places >> (4 * group + 2) & 3;
        uint32_t four[4];
#pragma unroll
        for (uint32_t j = 0; j < 4; j++) four[j] = j == at_first ? first : j == at_second ? second : 0;
        *(uint4 *)(to + (i * 4 + group) * 16) = make_uint4(four[0], four[1], four[2], four[3]);
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_EXPAND_THREADS)
    bsmi_expand(const __grid_constant__ bsmi_expand_parameters p)
{
    ptx_griddepcontrol_wait();
    const int64_t eights = (p.stored.columns + 7) / 8, rows = p.to.rows * p.to.batch,
                  step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < rows * eights; at += step) {
        const int64_t line = at / eights, i = at - line * eights, batch = line / p.to.rows,
                      row = line - batch * p.to.rows, left = p.stored.columns - i * 8;
        const int count = (int)(left < 8 ? left : 8);
        const unsigned char *from = p.stored.data + batch * p.stored.batch_bytes + row * p.stored.row_bytes;
        const unsigned char *metadata = p.metadata + batch * p.metadata_batch_bytes + row * p.metadata_row_bytes;
        unsigned char *to = p.to.data + batch * p.to.batch_bytes + row * p.to.row_bytes;
        uint32_t places;                  /* a byte for four kept codes; where they are pairs, for eight */
        if (p.unit == 2) places = __ldg(metadata + i);
        else places = __ldg(metadata + 2 * i) | (count > 4 ? (uint32_t)__ldg(metadata + 2 * i + 1) << 8 : 0);
        if (p.to.bits <= 8) expand_codes(p, from, to, i, count, places);
        else if (p.to.bits == 16) expand_halves(from, to, i, count, places);
        else expand_words(from, to, i, count, places);
    }
}

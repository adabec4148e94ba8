/* From codes of e2m1 as they are stored, in shared memory, to the first operand of wgmma in registers.
 *
 * Of each 16 columns of a row a thread needs four codes, 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 (c is its lane modulo 4): a
 * byte of each of two words. */
#pragma once

#include "cuda/sm90/mainloop/mixed_input_config.cuh"
#include "e2m1_numbers.cuh"

/* Codes ------------------------------------------------------------------------------------------------------------ */

/* How a thread reads codes, the same all the time. */
struct e2m1_reader {
    uint32_t codes;                       /* address of its first row's codes in stage 0 */
    uint32_t place;                       /* of its first row's codes of step 0 in 128 bytes, as the swizzle has them;
                                             the second row's differ by 16 */
    uint32_t select;                      /* its bytes of two words, for prmt */
};

/* Row 2 g + e of a warp's 16 is row g + 8 e of wgmma's, so that a thread has sums of neighbouring columns of D.  codes:
 * address of the warpgroup's rows in stage 0.  Numbers of threads come by way of shfl, so that ptxas does not read
 * special registers again wherever they are wanted. */
__device__ static inline e2m1_reader e2m1_reader_of(uint32_t codes)
{
    const uint32_t lane = __shfl_sync(0xffffffff, threadIdx.x % 32, threadIdx.x % 32);
    const uint32_t row = __shfl_sync(0xffffffff, threadIdx.x % 128 / 32 * 16, 0) + lane / 4 * 2, c = lane % 4;
    return { codes + row * 128, row % 8 * 16, c * 0x1111 + 0x4040 };
}

/* What a thread reads of a step: 64 codes of either of two neighbouring rows. */
struct e2m1_rows { uint4 v[2][2]; };

/* number: of the step in its stage. */
template <class CONFIG>
__device__ static inline e2m1_rows read_rows(const e2m1_reader &reader, uint32_t number, uint32_t stage)
{
    const uint32_t first = reader.codes + stage * CONFIG::CODE_BYTES, place = reader.place ^ number * 32;
    const uint32_t near = first + place, far = first + (place ^ 16);
    return { { { load_shared_v4(near), load_shared_v4(far) },
               { load_shared_v4(far + 128), load_shared_v4(near + 128) } } };
}

/* Four codes of a row: those of 16 columns, which are one product. */
__device__ static inline uint32_t four_codes(const e2m1_reader &reader, const e2m1_rows &rows, int row, int product)
{
    const uint4 &v = rows.v[row][product / 2];
    return ptx_prmt(product % 2 == 0 ? v.x : v.z, product % 2 == 0 ? v.y : v.w, reader.select);
}

/* The same in a quarter of the registers: a word for each product, the first row's in its low half. */
struct e2m1_words { uint32_t of[4]; };

__device__ static inline e2m1_words gather_words(const e2m1_reader &reader, const e2m1_rows &rows)
{
    e2m1_words words;
#pragma unroll
    for (int i = 0; i < 4; i++)
        words.of[i] = ptx_prmt(four_codes(reader, rows, 0, i), four_codes(reader, rows, 1, i), 0x5410);
    return words;
}

__device__ static inline uint32_t four_codes(const e2m1_reader &, const e2m1_words &words, int row, int product)
{
    return row == 0 ? words.of[product] : words.of[product] >> 16;
}

/* The first operand of a step, which is four products, and of a K slice. */
using step_operand = uint32_t[16];
template <class CONFIG> using slice_operand = step_operand[CONFIG::STEPS];

/* codes: e2m1_rows or e2m1_words. */
template <class CODES, class STEP_CODES>
__device__ static inline void decode_step(const e2m1_reader &reader, const STEP_CODES &codes,
                                          const scale_halves<CODES> &halves, step_operand &operand)
{
#pragma unroll
    for (int row = 0; row < 2; row++)
#pragma unroll
        for (int product = 0; product < 4; product++) {
            const int word = CODES::MICRO ? product % 2 : 0;
            decode_four(four_codes(reader, codes, row, product), twice_of_half(halves.of[row][word], product / 2),
                        twice_of_half(halves.offset[row][word], product / 2), operand[4 * product + row],
                        operand[4 * product + 2 + row]);
        }
}

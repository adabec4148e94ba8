/* What a wave multiplies at one time: halves of its rows of A and of its columns of B, from LDS, and their scales. */
#ifndef BSMI_GFX950_GEMM_FRAGMENTS_H
#define BSMI_GFX950_GEMM_FRAGMENTS_H

#include "gemm_config.h"
#include "gemm_loads.h"

#define OVERLOADED static inline __attribute__((always_inline, overloadable))

/* A lane's elements of one MFMA: 32 of 8, 6 or 4 bits, or 8 of bf16. */
#define FRAGMENT_OF(bits) \
    __typeof__(__builtin_choose_expr((bits) == 8, (words8){}, \
                                     __builtin_choose_expr((bits) == 6, (words6){}, (words4){})))
typedef FRAGMENT_OF(A_BITS) a_fragment;
typedef FRAGMENT_OF(B_BITS) b_fragment;

/* Groups of 32 rows, of which a lane has one word of scales each, in a half of `parts` parts. */
#define GROUPS_OF(parts) ((parts) * DIM > 32 ? (parts) * DIM / 32 : 1)
enum { A_GROUPS = GROUPS_OF(HALF_ROWS), B_GROUPS = GROUPS_OF(HALF_COLUMNS) };
struct a_half { a_fragment part[HALF_ROWS][PRODUCTS]; int32_t scales[A_GROUPS]; };
struct b_half { b_fragment part[HALF_COLUMNS][PRODUCTS]; int32_t scales[B_GROUPS]; };

/* A lane's bytes of a step lie in pieces: of 16 bytes with 8 bits (an MFMA has two, half of its K apart), 4 and 16 bits
 * (one), of 8 with 6 bits (three behind each other). */
#define PIECES_OF(bits) (PRODUCTS * ((bits) == 8 ? 2 : (bits) == 6 ? 3 : 1))
enum { A_PIECES = PIECES_OF(A_BITS), B_PIECES = PIECES_OF(B_BITS), MOST_PIECES = 6 };

/* Places in LDS of the lane's pieces of the first part of stage 0's first half, and of its first words of scales. */
struct gemm_reader { int32_t a[MOST_PIECES], b[MOST_PIECES], a_scales, b_scales; };

INLINE int32_t piece_at(int32_t row, int32_t row_bytes, int32_t bits, int32_t piece, int32_t k_lane)
{
    if (bits != 6) return row * row_bytes + swizzled(row_bytes, row, piece * LANES_K + k_lane) * 16;
    const int32_t eighth = (piece / 3 * LANES_K + k_lane) * 3 + piece % 3;
    return row * row_bytes + swizzled(row_bytes, row, eighth / 2) * 16 + eighth % 2 * 8;
}

/* The compiler takes x for a number that it knows nothing of: it stays in its register, and constants in offsets. */
INLINE int32_t kept(int32_t x)
{
    __asm__("" : "+v"(x));
    return x;
}

INLINE struct gemm_reader reader_of(int32_t wave)
{
    struct gemm_reader reader;
    const int32_t lane = __builtin_amdgcn_workitem_id_x() % 64, row = lane % DIM, k_lane = lane / DIM;
    const int32_t first_row = wave / ALONG_N * WAVE_ROWS, first_column = wave % ALONG_N * WAVE_COLUMNS;
    UNROLL for (int32_t i = 0; i < A_PIECES; i++)
        reader.a[i] = kept(first_row / 2 * A_ROW_BYTES + piece_at(row, A_ROW_BYTES, A_BITS, i, k_lane));
    UNROLL for (int32_t i = 0; i < B_PIECES; i++)
        reader.b[i] = kept(AT_B + first_column / 2 * B_ROW_BYTES + piece_at(row, B_ROW_BYTES, B_BITS, i, k_lane));
    reader.a_scales = kept(AT_SCALES + first_row / 32 * 256 + lane * 4);
    reader.b_scales = kept(AT_SCALES + A_UNITS * 1024 + first_column / 32 * 256 + lane * 4);
    return reader;
}

OVERLOADED void read_fragment(words4 *f, const int32_t *at, int32_t product, LDS const unsigned char *from)
{
    *f = *(LDS const words4 *)(from + at[product]);
}
OVERLOADED void read_fragment(words6 *f, const int32_t *at, int32_t product, LDS const unsigned char *from)
{
    const words2 x = *(LDS const words2 *)(from + at[3 * product]),
                 y = *(LDS const words2 *)(from + at[3 * product + 1]),
                 z = *(LDS const words2 *)(from + at[3 * product + 2]);
    *f = (words6){ x[0], x[1], y[0], y[1], z[0], z[1] };
}
OVERLOADED void read_fragment(words8 *f, const int32_t *at, int32_t product, LDS const unsigned char *from)
{
    const words4 x = *(LDS const words4 *)(from + at[2 * product]),
                 y = *(LDS const words4 *)(from + at[2 * product + 1]);
    *f = __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* Reads of a half, numbered: words of scales, which the next quarter's first product wants, then fragments. */
enum {
    A_SCALES = SCALED * A_GROUPS, A_READS = A_SCALES + HALF_ROWS * PRODUCTS,
    B_SCALES = SCALED * B_GROUPS, B_READS = B_SCALES + HALF_COLUMNS * PRODUCTS,
};

INLINE int32_t read_scales(int32_t at, int32_t stage, int32_t row)
{
    return *(LDS const int32_t *)(memory + at + stage * LOADED + row / 32 * 256);
}

INLINE void read_a(const struct gemm_reader *reader, int32_t stage, int32_t half, int32_t i, struct a_half *a)
{
    const int32_t number = i - A_SCALES, part = number % HALF_ROWS, product = number / HALF_ROWS;
    if (i < A_SCALES) a->scales[i] = read_scales(reader->a_scales, stage, half * WAVE_ROWS / 2 + i * 32);
    else read_fragment(&a->part[part][product], reader->a, product,
                       memory + (2 * stage + half) * A_HALF_BYTES + part * DIM * A_ROW_BYTES);
}
INLINE void read_b(const struct gemm_reader *reader, int32_t stage, int32_t half, int32_t i, struct b_half *b)
{
    const int32_t number = i - B_SCALES, part = number % HALF_COLUMNS, product = number / HALF_COLUMNS;
    if (i < B_SCALES) b->scales[i] = read_scales(reader->b_scales, stage, half * WAVE_COLUMNS / 2 + i * 32);
    else read_fragment(&b->part[part][product], reader->b, product,
                       memory + (2 * stage + half) * B_HALF_BYTES + part * DIM * B_ROW_BYTES);
}

/* ---- products ---- */

#define SUMS_TYPE __typeof__(__builtin_choose_expr(DIM == 16, (floats4){}, (floats16){}))
typedef SUMS_TYPE gemm_part_sums;
typedef gemm_part_sums gemm_sums[ROW_PARTS][COLUMN_PARTS];

/* Sums of a part: a lane has one row of D, and runs of four neighbouring columns, since B is the instruction's first
 * operand.
 *
 * By assembly for two reasons.  256 sums must be AGPRs and stay the same ones ("+a"): the compiler spreads them over
 * both halves of the register file, and moves them about.  And volatile instructions keep their places among reads and
 * loads: the schedule is the one that gemm.c writes.  The compiler knows the registers, and so waits for reads; of wait
 * states it knows nothing: sums_are_ready. */
#define SCALED_MFMA(shape, registers) \
    __asm__ volatile("v_mfma_scale_f32_" shape "_f8f6f4 %0, %1, %2, %0, %3, %4 op_sel:[%5,%6,0] op_sel_hi:[%7,%8,0] " \
                     "cbsz:%9 blgp:%10" \
                     : "+" registers(*sum) \
                     : "v"(b), "v"(a), "v"(b_scales), "v"(a_scales), "i"(b_byte & 1), "i"(a_byte & 1), \
                       "i"(b_byte >> 1), "i"(a_byte >> 1), "i"(B_ELEMENT), "i"(A_ELEMENT))
#define BF16_MFMA(registers) \
    __asm__ volatile("v_mfma_f32_16x16x32_bf16 %0, %1, %2, %0" : "+" registers(*sum) : "v"(b), "v"(a))

INLINE void mfma(gemm_part_sums *sum, b_fragment b, a_fragment a, int32_t b_byte, int32_t b_scales, int32_t a_byte,
                 int32_t a_scales)
{
    if (SCALED && DIM == 16 && MANY_SUMS) SCALED_MFMA("16x16x128", "a");
    else if (SCALED && DIM == 16) SCALED_MFMA("16x16x128", "v");
    else if (SCALED && MANY_SUMS) SCALED_MFMA("32x32x64", "a");
    else if (SCALED) SCALED_MFMA("32x32x64", "v");
    else if (MANY_SUMS) BF16_MFMA("a");
    else BF16_MFMA("v");
}

/* Zeros by a product of zeros: were they constants, the compiler would hold one more sum to copy from, and with 256
 * there is no room for it. */
INLINE gemm_part_sums no_sum(words4 zeros)
{
    gemm_part_sums sum;
    if (!MANY_SUMS) return (gemm_part_sums){};
    if (DIM == 16) __asm__ volatile("v_mfma_f32_16x16x32_bf16 %0, %1, %1, 0" : "=a"(sum) : "v"(zeros));
    else __asm__ volatile("v_mfma_f32_32x32x16_bf16 %0, %1, %1, 0" : "=a"(sum) : "v"(zeros));
    return sum;
}

/* Instructions other than MFMA may read sums: 19 wait states behind the last MFMA of 16 passes. */
INLINE void sums_are_ready(void) { __asm__ volatile("s_nop 15\n\ts_nop 3" ::: "memory"); }

/* The byte of a word of scales for part number `part` of a wave, and product `product` of a step; odd: of the second
 * step of a block of scales. */
INLINE int32_t scale_byte(int32_t part, int32_t product, int32_t odd)
{
    const int32_t k = (STEP == 128 ? odd * PRODUCTS : 0) + product;
    return DIM == 16 ? 2 * k + part % 2 : k;
}

/* Product number i of a quarter: half of A with half of B. */
enum { QUARTER_PRODUCTS = HALF_ROWS * HALF_COLUMNS * PRODUCTS };

INLINE void multiply(gemm_sums sums, const struct a_half *a, int32_t a_half, const struct b_half *b, int32_t b_half,
                     int32_t odd, int32_t i)
{
    const int32_t product = i / (HALF_ROWS * HALF_COLUMNS), of_rows = i / HALF_COLUMNS % HALF_ROWS,
                  of_columns = i % HALF_COLUMNS;
    const int32_t row = a_half * HALF_ROWS + of_rows, column = b_half * HALF_COLUMNS + of_columns;
    mfma(&sums[row][column], b->part[of_columns][product], a->part[of_rows][product],
         scale_byte(column, product, odd), b->scales[of_columns * DIM / 32], scale_byte(row, product, odd),
         a->scales[of_rows * DIM / 32]);
}

#endif

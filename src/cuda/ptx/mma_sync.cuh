/* Products of a warp, operands and sums in its registers (PTX ISA 9.7.14.5): ldmatrix, and mma.sync with the scales of
 * blocks (9.7.14.3, sm_120a, sm_121a and their family).
 *
 * As bytes, all shapes below have the same fragments.  With g = lane / 4 and c = lane % 4 a row has 32 bytes of K:
 *   a[0], a[1]   rows g and g + 8, bytes 4 c .. 4 c + 3
 *   a[2], a[3]   the same rows, 16 bytes further
 *   b[0], b[1]   column g, bytes 4 c .. and 16 bytes further
 *   d[0], d[1]   row g, columns 2 c and 2 c + 1;   d[2], d[3]   row g + 8 */
#pragma once

#include <stdint.h>

#include "mma_sync_elements.h"

template <mma_sync_element E> struct mma_sync_words;
template <> struct mma_sync_words<MMA_SYNC_E4M3> { static constexpr char text[] = "e4m3"; };
template <> struct mma_sync_words<MMA_SYNC_E5M2> { static constexpr char text[] = "e5m2"; };
template <> struct mma_sync_words<MMA_SYNC_E3M2> { static constexpr char text[] = "e3m2"; };
template <> struct mma_sync_words<MMA_SYNC_E2M3> { static constexpr char text[] = "e2m3"; };
template <> struct mma_sync_words<MMA_SYNC_E2M1> { static constexpr char text[] = "e2m1"; };

/* Four matrices of 8 rows of 16 bytes (9.7.14.5.15): lane l gives the address of row l % 8 of matrix l / 8; word i of
 * lane l is bytes 4 (l % 4) .. of row l / 4 of matrix i. */
__device__ static inline void ldmatrix_x4(uint32_t (&words)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}
/* The same of rows whose 16 bytes begin with 16 codes of 4 bits, the rest being padding: each becomes a byte, in its
 * low bits. */
__device__ static inline void ldmatrix_x4_of_4_bits(uint32_t (&words)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}
__device__ static inline void ldmatrix_x4_of_6_bits(uint32_t (&words)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}

#define MMA_SYNC_D "{%0, %1, %2, %3}"
#define MMA_SYNC_OPERANDS MMA_SYNC_D ", {%4, %5, %6, %7}, {%8, %9}, " MMA_SYNC_D
#define MMA_SYNC_SUMS "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define MMA_SYNC_GIVEN "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])

/* d += a b (9.7.14.5.14). */
__device__ static inline void mma_sync_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " MMA_SYNC_OPERANDS ";" : MMA_SYNC_SUMS : MMA_SYNC_GIVEN);
}

/* d += (a with scales) (b with scales).  Row m has its scales in the word of lane 4 (m % 8) + 2 A_THREAD + m / 8,
 * column n in that of lane 4 n + B_THREAD; they begin with byte BYTE: one e8m0 of the row's 32 elements; two, of 32 of
 * its 64; four ue4m3, of 16 of its 64.  Selectors are constants: in registers they cost instructions. */
template <mma_sync_element A, mma_sync_element B, int BYTE, int A_THREAD, int B_THREAD>
__device__ static inline void mma_sync_mxf8f6f4(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                                uint32_t a_scales, uint32_t b_scales)
{
    asm("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.%12.%13.f32.ue8m0 "
        MMA_SYNC_OPERANDS ", %10, {%14, %15}, %11, {%14, %16};"
        : MMA_SYNC_SUMS
        : MMA_SYNC_GIVEN, "r"(a_scales), "r"(b_scales), "C"(mma_sync_words<A>::text), "C"(mma_sync_words<B>::text),
          "n"(BYTE), "n"(A_THREAD), "n"(B_THREAD));
}
template <int BYTE, int A_THREAD, int B_THREAD>
__device__ static inline void mma_sync_mxf4(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                            uint32_t a_scales, uint32_t b_scales)
{
    asm("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 "
        MMA_SYNC_OPERANDS ", %10, {%12, %13}, %11, {%12, %14};"
        : MMA_SYNC_SUMS
        : MMA_SYNC_GIVEN, "r"(a_scales), "r"(b_scales), "n"(BYTE), "n"(A_THREAD), "n"(B_THREAD));
}
template <int A_THREAD, int B_THREAD>
__device__ static inline void mma_sync_mxf4nvf4(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                                uint32_t a_scales, uint32_t b_scales)
{
    asm("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
        MMA_SYNC_OPERANDS ", %10, {0, %12}, %11, {0, %13};"
        : MMA_SYNC_SUMS
        : MMA_SYNC_GIVEN, "r"(a_scales), "r"(b_scales), "n"(A_THREAD), "n"(B_THREAD));
}

#undef MMA_SYNC_D
#undef MMA_SYNC_OPERANDS
#undef MMA_SYNC_SUMS
#undef MMA_SYNC_GIVEN

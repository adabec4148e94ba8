/* tcgen05.mma: D[M x N] = A[M x K] B[N x K]^T + (adds ? D : 0) (PTX ISA 9.7.16.10).  One thread issues for the CTA, or for the pair
 * (CTAS 2: then D, A, scales and metadata lie at the same places of both).  Asynchronous, until the same thread's tcgen05_commit.
 *
 * d, scales, metadata: addresses of tensor memory; a, b: shared_matrix_descriptor; instruction: mma_instruction_descriptor.  A lies
 * in shared memory, in the functions that end in _a_tensor in tensor memory.  Tests: tests/cuda/ptx_forms.cu. */
#pragma once

#include "cuda/ptx/descriptors.h"

/* What becomes of the buffer that holds A (.ws: B) between instructions: a hint that changes no result. */
enum mma_collector { COLLECTOR_DISCARD, COLLECTOR_FILL, COLLECTOR_USE, COLLECTOR_LASTUSE };

/* How many scales a row has in one instruction, or for how many elements (which sm_100f wants): 9.7.16.10.7. */
enum mma_scale_vector { SCALE_VEC_1X, SCALE_VEC_2X, SCALE_VEC_4X, BLOCK_16, BLOCK_32 };

// clang-format off
template <mma_kind KIND> struct mma_kind_words;
template <> struct mma_kind_words<MMA_TF32>     { static constexpr char text[] = "tf32"; };
template <> struct mma_kind_words<MMA_F16>      { static constexpr char text[] = "f16"; };
template <> struct mma_kind_words<MMA_I8>       { static constexpr char text[] = "i8"; };
template <> struct mma_kind_words<MMA_F8F6F4>   { static constexpr char text[] = "f8f6f4"; };
template <> struct mma_kind_words<MMA_MXF8F6F4> { static constexpr char text[] = "mxf8f6f4.block_scale"; };
template <> struct mma_kind_words<MMA_MXF4>     { static constexpr char text[] = "mxf4.block_scale"; };
template <> struct mma_kind_words<MMA_MXF4NVF4> { static constexpr char text[] = "mxf4nvf4.block_scale"; };

template <mma_scale_vector VECTOR> struct mma_scale_vector_words;
template <> struct mma_scale_vector_words<SCALE_VEC_1X> { static constexpr char text[] = "scale_vec::1X"; };
template <> struct mma_scale_vector_words<SCALE_VEC_2X> { static constexpr char text[] = "scale_vec::2X"; };
template <> struct mma_scale_vector_words<SCALE_VEC_4X> { static constexpr char text[] = "scale_vec::4X"; };
template <> struct mma_scale_vector_words<BLOCK_16>     { static constexpr char text[] = "block16"; };
template <> struct mma_scale_vector_words<BLOCK_32>     { static constexpr char text[] = "block32"; };

template <mma_collector COLLECTOR> struct mma_collector_words;
template <> struct mma_collector_words<COLLECTOR_DISCARD> { static constexpr char text[] = "discard"; };
template <> struct mma_collector_words<COLLECTOR_FILL>    { static constexpr char text[] = "fill"; };
template <> struct mma_collector_words<COLLECTOR_USE>     { static constexpr char text[] = "use"; };
template <> struct mma_collector_words<COLLECTOR_LASTUSE> { static constexpr char text[] = "lastuse"; };
// clang-format on

/* The text of every form: `words` and operands 0 d, 1 a, 2 b, 3 instruction, 4 adds (as the predicate p). */
#define MMA_TEXT(words, operands)  "{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\ntcgen05.mma" words " [%0], " operands ";\n}"
#define MMA_OPERANDS(a_constraint) "r"(d), a_constraint(a), "l"(b), "r"(instruction), "r"((uint32_t)adds)

/* ---- without scales (9.7.16.10.9.1): tf32, f16, i8, f8f6f4 ---- */

template <mma_kind KIND, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::%5.kind::%6.collector::a::%7", "%1, %2, %3, p")::MMA_OPERANDS("l"), "n"(CTAS),
                 "C"(mma_kind_words<KIND>::text), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction, bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::%5.kind::%6.collector::a::%7", "[%1], %2, %3, p")::MMA_OPERANDS("r"), "n"(CTAS),
                 "C"(mma_kind_words<KIND>::text), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}

/* .ashift: rows of A one row further down, all but the last. */
template <mma_kind KIND, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_ashift_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction, bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::%5.kind::%6.ashift.collector::a::%7", "[%1], %2, %3, p")::MMA_OPERANDS("r"), "n"(CTAS),
                 "C"(mma_kind_words<KIND>::text), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}

/* A B^T + D 2^-SHIFT, SHIFT 0 to 15: tf32 and f16. */
template <mma_kind KIND, int CTAS, int SHIFT>
__device__ static inline void tcgen05_mma_scale_d(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::%5.kind::%6", "%1, %2, %3, p, %7")::MMA_OPERANDS("l"), "n"(CTAS),
                 "C"(mma_kind_words<KIND>::text), "n"(SHIFT)
                 : "memory");
}
template <mma_kind KIND, int CTAS, int SHIFT>
__device__ static inline void tcgen05_mma_scale_d_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction, bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::%5.kind::%6", "[%1], %2, %3, p, %7")::MMA_OPERANDS("r"), "n"(CTAS),
                 "C"(mma_kind_words<KIND>::text), "n"(SHIFT)
                 : "memory");
}

/* D keeps the lanes whose bits are set in `kept`: 4 words for a CTA, 8 for a pair. */
template <mma_kind KIND>
__device__ static inline void tcgen05_mma_keep_lanes(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                                     const uint32_t (&kept)[4], bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::1.kind::%9", "%1, %2, %3, {%5, %6, %7, %8}, p")::MMA_OPERANDS("l"), "r"(kept[0]),
                 "r"(kept[1]), "r"(kept[2]), "r"(kept[3]), "C"(mma_kind_words<KIND>::text)
                 : "memory");
}
template <mma_kind KIND>
__device__ static inline void tcgen05_mma_keep_lanes(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                                     const uint32_t (&kept)[8], bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::2.kind::%13", "%1, %2, %3, {%5, %6, %7, %8, %9, %10, %11, %12}, p")::MMA_OPERANDS("l"),
                 "r"(kept[0]), "r"(kept[1]), "r"(kept[2]), "r"(kept[3]), "r"(kept[4]), "r"(kept[5]), "r"(kept[6]), "r"(kept[7]),
                 "C"(mma_kind_words<KIND>::text)
                 : "memory");
}
template <mma_kind KIND>
__device__ static inline void tcgen05_mma_keep_lanes_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction,
                                                              const uint32_t (&kept)[4], bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::1.kind::%9", "[%1], %2, %3, {%5, %6, %7, %8}, p")::MMA_OPERANDS("r"), "r"(kept[0]),
                 "r"(kept[1]), "r"(kept[2]), "r"(kept[3]), "C"(mma_kind_words<KIND>::text)
                 : "memory");
}
template <mma_kind KIND>
__device__ static inline void tcgen05_mma_keep_lanes_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction,
                                                              const uint32_t (&kept)[8], bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::2.kind::%13", "[%1], %2, %3, {%5, %6, %7, %8, %9, %10, %11, %12}, p")::MMA_OPERANDS("r"),
                 "r"(kept[0]), "r"(kept[1]), "r"(kept[2]), "r"(kept[3]), "r"(kept[4]), "r"(kept[5]), "r"(kept[6]), "r"(kept[7]),
                 "C"(mma_kind_words<KIND>::text)
                 : "memory");
}

/* ---- with scales (9.7.16.10.9.1): mxf8f6f4 1X; mxf4 2X; mxf4nvf4 2X and 4X ---- */

/* Scales lie in columns from a_scales, b_scales on, the same in each quarter of the lanes (9.7.16.10.7). */
template <mma_kind KIND, mma_scale_vector VECTOR, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_block_scale(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, uint32_t a_scales,
                                                      uint32_t b_scales, bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::%7.kind::%8.%9.collector::a::%10", "%1, %2, %3, [%5], [%6], p")::MMA_OPERANDS("l"),
                 "r"(a_scales), "r"(b_scales), "n"(CTAS), "C"(mma_kind_words<KIND>::text),
                 "C"(mma_scale_vector_words<VECTOR>::text), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, mma_scale_vector VECTOR, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_block_scale_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction,
                                                               uint32_t a_scales, uint32_t b_scales, bool adds)
{
    asm volatile(MMA_TEXT(".cta_group::%7.kind::%8.%9.collector::a::%10", "[%1], %2, %3, [%5], [%6], p")::MMA_OPERANDS("r"),
                 "r"(a_scales), "r"(b_scales), "n"(CTAS), "C"(mma_kind_words<KIND>::text),
                 "C"(mma_scale_vector_words<VECTOR>::text), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}

/* ---- sparse A (9.7.16.10.9.2): metadata says which elements of K the stored ones are ---- */

template <mma_kind KIND, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_sp(uint32_t d, uint64_t a, uint64_t b, uint32_t metadata, uint32_t instruction, bool adds)
{
    asm volatile(MMA_TEXT(".sp.cta_group::%6.kind::%7.collector::a::%8", "%1, %2, [%5], %3, p")::MMA_OPERANDS("l"), "r"(metadata),
                 "n"(CTAS), "C"(mma_kind_words<KIND>::text), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_sp_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t metadata, uint32_t instruction,
                                                      bool adds)
{
    asm volatile(MMA_TEXT(".sp.cta_group::%6.kind::%7.collector::a::%8", "[%1], %2, [%5], %3, p")::MMA_OPERANDS("r"), "r"(metadata),
                 "n"(CTAS), "C"(mma_kind_words<KIND>::text), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, mma_scale_vector VECTOR, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_sp_block_scale(uint32_t d, uint64_t a, uint64_t b, uint32_t metadata,
                                                         uint32_t instruction, uint32_t a_scales, uint32_t b_scales, bool adds)
{
    asm volatile(MMA_TEXT(".sp.cta_group::%8.kind::%9.%10.collector::a::%11", "%1, %2, [%7], %3, [%5], [%6], p")::MMA_OPERANDS("l"),
                 "r"(a_scales), "r"(b_scales), "r"(metadata), "n"(CTAS), "C"(mma_kind_words<KIND>::text),
                 "C"(mma_scale_vector_words<VECTOR>::text), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, mma_scale_vector VECTOR, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_sp_block_scale_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t metadata,
                                                                  uint32_t instruction, uint32_t a_scales, uint32_t b_scales,
                                                                  bool adds)
{
    asm volatile(
        MMA_TEXT(".sp.cta_group::%8.kind::%9.%10.collector::a::%11", "[%1], %2, [%7], %3, [%5], [%6], p")::MMA_OPERANDS("r"),
        "r"(a_scales), "r"(b_scales), "r"(metadata), "n"(CTAS), "C"(mma_kind_words<KIND>::text),
        "C"(mma_scale_vector_words<VECTOR>::text), "C"(mma_collector_words<COLLECTOR>::text)
        : "memory");
}

/* As without sparsity: .ashift, D 2^-SHIFT, and lanes of D that are kept. */
template <mma_kind KIND, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_sp_ashift_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t metadata, uint32_t instruction,
                                                             bool adds)
{
    asm volatile(MMA_TEXT(".sp.cta_group::%6.kind::%7.ashift.collector::a::%8", "[%1], %2, [%5], %3, p")::MMA_OPERANDS("r"), "r"(metadata),
                 "n"(CTAS), "C"(mma_kind_words<KIND>::text), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, int CTAS, int SHIFT>
__device__ static inline void tcgen05_mma_sp_scale_d(uint32_t d, uint64_t a, uint64_t b, uint32_t metadata, uint32_t instruction, bool adds)
{
    asm volatile(MMA_TEXT(".sp.cta_group::%6.kind::%7", "%1, %2, [%5], %3, p, %8")::MMA_OPERANDS("l"), "r"(metadata), "n"(CTAS),
                 "C"(mma_kind_words<KIND>::text), "n"(SHIFT)
                 : "memory");
}
template <mma_kind KIND, int CTAS, int SHIFT>
__device__ static inline void tcgen05_mma_sp_scale_d_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t metadata, uint32_t instruction,
                                                              bool adds)
{
    asm volatile(MMA_TEXT(".sp.cta_group::%6.kind::%7", "[%1], %2, [%5], %3, p, %8")::MMA_OPERANDS("r"), "r"(metadata), "n"(CTAS),
                 "C"(mma_kind_words<KIND>::text), "n"(SHIFT)
                 : "memory");
}
template <mma_kind KIND>
__device__ static inline void tcgen05_mma_sp_keep_lanes(uint32_t d, uint64_t a, uint64_t b, uint32_t metadata, uint32_t instruction,
                                                        const uint32_t (&kept)[4], bool adds)
{
    asm volatile(MMA_TEXT(".sp.cta_group::1.kind::%10", "%1, %2, [%9], %3, {%5, %6, %7, %8}, p")::MMA_OPERANDS("l"), "r"(kept[0]),
                 "r"(kept[1]), "r"(kept[2]), "r"(kept[3]), "r"(metadata), "C"(mma_kind_words<KIND>::text)
                 : "memory");
}
template <mma_kind KIND>
__device__ static inline void tcgen05_mma_sp_keep_lanes(uint32_t d, uint64_t a, uint64_t b, uint32_t metadata, uint32_t instruction,
                                                        const uint32_t (&kept)[8], bool adds)
{
    asm volatile(MMA_TEXT(".sp.cta_group::2.kind::%14", "%1, %2, [%13], %3, {%5, %6, %7, %8, %9, %10, %11, %12}, p")::MMA_OPERANDS("l"),
                 "r"(kept[0]), "r"(kept[1]), "r"(kept[2]), "r"(kept[3]), "r"(kept[4]), "r"(kept[5]), "r"(kept[6]), "r"(kept[7]),
                 "r"(metadata), "C"(mma_kind_words<KIND>::text)
                 : "memory");
}
template <mma_kind KIND>
__device__ static inline void tcgen05_mma_sp_keep_lanes_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t metadata, uint32_t instruction,
                                                                 const uint32_t (&kept)[4], bool adds)
{
    asm volatile(MMA_TEXT(".sp.cta_group::1.kind::%10", "[%1], %2, [%9], %3, {%5, %6, %7, %8}, p")::MMA_OPERANDS("r"), "r"(kept[0]),
                 "r"(kept[1]), "r"(kept[2]), "r"(kept[3]), "r"(metadata), "C"(mma_kind_words<KIND>::text)
                 : "memory");
}
template <mma_kind KIND>
__device__ static inline void tcgen05_mma_sp_keep_lanes_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t metadata, uint32_t instruction,
                                                                 const uint32_t (&kept)[8], bool adds)
{
    asm volatile(MMA_TEXT(".sp.cta_group::2.kind::%14", "[%1], %2, [%13], %3, {%5, %6, %7, %8, %9, %10, %11, %12}, p")::MMA_OPERANDS("r"),
                 "r"(kept[0]), "r"(kept[1]), "r"(kept[2]), "r"(kept[3]), "r"(kept[4]), "r"(kept[5]), "r"(kept[6]), "r"(kept[7]),
                 "r"(metadata), "C"(mma_kind_words<KIND>::text)
                 : "memory");
}

/* ---- weight-stationary (9.7.16.10.9.3, sparse .4): one CTA, no scales; B stays in collector BUFFER, 0 to 3 ---- */

template <mma_kind KIND, int BUFFER = 0, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_ws(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, bool adds)
{
    asm volatile(MMA_TEXT(".ws.cta_group::1.kind::%5.collector::b%6::%7", "%1, %2, %3, p")::MMA_OPERANDS("l"),
                 "C"(mma_kind_words<KIND>::text), "n"(BUFFER), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, int BUFFER = 0, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_ws_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction, bool adds)
{
    asm volatile(MMA_TEXT(".ws.cta_group::1.kind::%5.collector::b%6::%7", "[%1], %2, %3, p")::MMA_OPERANDS("r"),
                 "C"(mma_kind_words<KIND>::text), "n"(BUFFER), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}

/* zero_columns: which columns of B count as zeros (9.7.16.4.3). */
template <mma_kind KIND, int BUFFER = 0, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_ws_zero_columns(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                                          uint64_t zero_columns, bool adds)
{
    asm volatile(MMA_TEXT(".ws.cta_group::1.kind::%6.collector::b%7::%8", "%1, %2, %3, p, %5")::MMA_OPERANDS("l"),
                 "l"(zero_columns), "C"(mma_kind_words<KIND>::text), "n"(BUFFER), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, int BUFFER = 0, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_ws_zero_columns_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction,
                                                                   uint64_t zero_columns, bool adds)
{
    asm volatile(MMA_TEXT(".ws.cta_group::1.kind::%6.collector::b%7::%8", "[%1], %2, %3, p, %5")::MMA_OPERANDS("r"),
                 "l"(zero_columns), "C"(mma_kind_words<KIND>::text), "n"(BUFFER), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, int BUFFER = 0, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_ws_sp(uint32_t d, uint64_t a, uint64_t b, uint32_t metadata, uint32_t instruction,
                                                bool adds)
{
    asm volatile(MMA_TEXT(".ws.sp.cta_group::1.kind::%6.collector::b%7::%8", "%1, %2, [%5], %3, p")::MMA_OPERANDS("l"),
                 "r"(metadata), "C"(mma_kind_words<KIND>::text), "n"(BUFFER), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, int BUFFER = 0, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_ws_sp_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t metadata,
                                                         uint32_t instruction, bool adds)
{
    asm volatile(MMA_TEXT(".ws.sp.cta_group::1.kind::%6.collector::b%7::%8", "[%1], %2, [%5], %3, p")::MMA_OPERANDS("r"),
                 "r"(metadata), "C"(mma_kind_words<KIND>::text), "n"(BUFFER), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, int BUFFER = 0, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_ws_sp_zero_columns(uint32_t d, uint64_t a, uint64_t b, uint32_t metadata, uint32_t instruction,
                                                             uint64_t zero_columns, bool adds)
{
    asm volatile(MMA_TEXT(".ws.sp.cta_group::1.kind::%7.collector::b%8::%9", "%1, %2, [%6], %3, p, %5")::MMA_OPERANDS("l"),
                 "l"(zero_columns), "r"(metadata), "C"(mma_kind_words<KIND>::text), "n"(BUFFER), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}
template <mma_kind KIND, int BUFFER = 0, mma_collector COLLECTOR = COLLECTOR_DISCARD>
__device__ static inline void tcgen05_mma_ws_sp_zero_columns_a_tensor(uint32_t d, uint32_t a, uint64_t b, uint32_t metadata,
                                                                      uint32_t instruction, uint64_t zero_columns, bool adds)
{
    asm volatile(MMA_TEXT(".ws.sp.cta_group::1.kind::%7.collector::b%8::%9", "[%1], %2, [%6], %3, p, %5")::MMA_OPERANDS("r"),
                 "l"(zero_columns), "r"(metadata), "C"(mma_kind_words<KIND>::text), "n"(BUFFER), "C"(mma_collector_words<COLLECTOR>::text)
                 : "memory");
}

#undef MMA_TEXT
#undef MMA_OPERANDS

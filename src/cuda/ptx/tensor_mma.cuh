/* tcgen05.mma: D[M x N] = A[M x K] B[N x K]^T + (adds ? D : 0) (PTX ISA 9.7.16.10).  One thread issues for the CTA, or
 * for the pair (CTAS 2: then D, A, scales and metadata lie at the same places of both).  Asynchronous, until the same
 * thread's tcgen05_commit.
 *
 * d, scales, metadata: addresses of tensor memory; a, b: shared_matrix_descriptor; instruction:
 * mma_instruction_descriptor.  A lies in shared memory, in the functions that end in _a_tensor in tensor memory.
 * Tests: tests/cuda/ptx/ptx_forms.cu. */
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
#define MMA_TEXT(words, operands) "{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\ntcgen05.mma" words " [%0], " operands ";\n}"

/* MMA_FORMS(name, (parameters of the template), (of the function, behind d, a and b), words, operands behind a,
 * operands from 5 on): the function `name` and its twin that ends in _a_tensor. */
#define MMA_ALL(...) __VA_ARGS__
#define MMA_FORM(name, a_type, a_constraint, a_text, template_parameters, parameters, words, operands, ...) \
    template <MMA_ALL template_parameters> \
    __device__ static inline void name(uint32_t d, a_type a, uint64_t b, MMA_ALL parameters) \
    { \
        asm volatile(MMA_TEXT(words, a_text ", " operands)::"r"(d), a_constraint(a), "l"(b), "r"(instruction), \
                     "r"((uint32_t)adds), __VA_ARGS__ \
                     : "memory"); \
    }
#define MMA_FORM_A_TENSOR(name, ...) MMA_FORM(name##_a_tensor, uint32_t, "r", "[%1]", __VA_ARGS__)
#define MMA_FORMS(name, ...) MMA_FORM(name, uint64_t, "l", "%1", __VA_ARGS__) MMA_FORM_A_TENSOR(name, __VA_ARGS__)

#define MMA_COLLECTED (mma_kind KIND, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD)
#define MMA_SCALED    (mma_kind KIND, mma_scale_vector VECTOR, int CTAS, mma_collector COLLECTOR = COLLECTOR_DISCARD)
#define MMA_STATIONARY (mma_kind KIND, int BUFFER = 0, mma_collector COLLECTOR = COLLECTOR_DISCARD)
#define MMA_KIND      "C"(mma_kind_words<KIND>::text)
#define MMA_VECTOR    "C"(mma_scale_vector_words<VECTOR>::text)
#define MMA_COLLECTOR "C"(mma_collector_words<COLLECTOR>::text)
#define MMA_KEPT_4    "r"(kept[0]), "r"(kept[1]), "r"(kept[2]), "r"(kept[3])
#define MMA_KEPT_8    MMA_KEPT_4, "r"(kept[4]), "r"(kept[5]), "r"(kept[6]), "r"(kept[7])

/* ---- without scales (9.7.16.10.9.1): tf32, f16, i8, f8f6f4 ---- */

MMA_FORMS(tcgen05_mma, MMA_COLLECTED, (uint32_t instruction, bool adds),
          ".cta_group::%5.kind::%6.collector::a::%7", "%2, %3, p", "n"(CTAS), MMA_KIND, MMA_COLLECTOR)

/* .ashift: rows of A one row further down, all but the last. */
MMA_FORM_A_TENSOR(tcgen05_mma_ashift, MMA_COLLECTED, (uint32_t instruction, bool adds),
                  ".cta_group::%5.kind::%6.ashift.collector::a::%7", "%2, %3, p", "n"(CTAS), MMA_KIND, MMA_COLLECTOR)

/* A B^T + D 2^-SHIFT, SHIFT 0 to 15: tf32 and f16. */
MMA_FORMS(tcgen05_mma_scale_d, (mma_kind KIND, int CTAS, int SHIFT), (uint32_t instruction, bool adds),
          ".cta_group::%5.kind::%6", "%2, %3, p, %7", "n"(CTAS), MMA_KIND, "n"(SHIFT))

/* D keeps the lanes whose bits are set in `kept`: 4 words for a CTA, 8 for a pair. */
MMA_FORMS(tcgen05_mma_keep_lanes, (mma_kind KIND), (uint32_t instruction, const uint32_t (&kept)[4], bool adds),
          ".cta_group::1.kind::%9", "%2, %3, {%5, %6, %7, %8}, p", MMA_KEPT_4, MMA_KIND)
MMA_FORMS(tcgen05_mma_keep_lanes, (mma_kind KIND), (uint32_t instruction, const uint32_t (&kept)[8], bool adds),
          ".cta_group::2.kind::%13", "%2, %3, {%5, %6, %7, %8, %9, %10, %11, %12}, p", MMA_KEPT_8, MMA_KIND)

/* ---- with scales (9.7.16.10.9.1): mxf8f6f4 1X; mxf4 2X; mxf4nvf4 2X and 4X ---- */

/* Scales lie in columns from a_scales, b_scales on, the same in each quarter of the lanes (9.7.16.10.7). */
MMA_FORMS(tcgen05_mma_block_scale, MMA_SCALED, (uint32_t instruction, uint32_t a_scales, uint32_t b_scales, bool adds),
          ".cta_group::%7.kind::%8.%9.collector::a::%10", "%2, %3, [%5], [%6], p",
          "r"(a_scales), "r"(b_scales), "n"(CTAS), MMA_KIND, MMA_VECTOR, MMA_COLLECTOR)

/* ---- sparse A (9.7.16.10.9.2): metadata says which elements of K the stored ones are ---- */

MMA_FORMS(tcgen05_mma_sp, MMA_COLLECTED, (uint32_t metadata, uint32_t instruction, bool adds),
          ".sp.cta_group::%6.kind::%7.collector::a::%8", "%2, [%5], %3, p", "r"(metadata), "n"(CTAS), MMA_KIND,
          MMA_COLLECTOR)
MMA_FORMS(tcgen05_mma_sp_block_scale, MMA_SCALED,
          (uint32_t metadata, uint32_t instruction, uint32_t a_scales, uint32_t b_scales, bool adds),
          ".sp.cta_group::%8.kind::%9.%10.collector::a::%11", "%2, [%7], %3, [%5], [%6], p",
          "r"(a_scales), "r"(b_scales), "r"(metadata), "n"(CTAS), MMA_KIND, MMA_VECTOR, MMA_COLLECTOR)

/* As without sparsity: .ashift, D 2^-SHIFT, and lanes of D that are kept. */
MMA_FORM_A_TENSOR(tcgen05_mma_sp_ashift, MMA_COLLECTED, (uint32_t metadata, uint32_t instruction, bool adds),
                  ".sp.cta_group::%6.kind::%7.ashift.collector::a::%8", "%2, [%5], %3, p",
                  "r"(metadata), "n"(CTAS), MMA_KIND, MMA_COLLECTOR)
MMA_FORMS(tcgen05_mma_sp_scale_d, (mma_kind KIND, int CTAS, int SHIFT),
          (uint32_t metadata, uint32_t instruction, bool adds), ".sp.cta_group::%6.kind::%7", "%2, [%5], %3, p, %8",
          "r"(metadata), "n"(CTAS), MMA_KIND, "n"(SHIFT))
MMA_FORMS(tcgen05_mma_sp_keep_lanes, (mma_kind KIND),
          (uint32_t metadata, uint32_t instruction, const uint32_t (&kept)[4], bool adds),
          ".sp.cta_group::1.kind::%10", "%2, [%9], %3, {%5, %6, %7, %8}, p", MMA_KEPT_4, "r"(metadata), MMA_KIND)
MMA_FORMS(tcgen05_mma_sp_keep_lanes, (mma_kind KIND),
          (uint32_t metadata, uint32_t instruction, const uint32_t (&kept)[8], bool adds),
          ".sp.cta_group::2.kind::%14", "%2, [%13], %3, {%5, %6, %7, %8, %9, %10, %11, %12}, p",
          MMA_KEPT_8, "r"(metadata), MMA_KIND)

/* ---- weight-stationary (9.7.16.10.9.3, sparse .4): one CTA, no scales; B stays in collector BUFFER, 0 to 3 ---- */

MMA_FORMS(tcgen05_mma_ws, MMA_STATIONARY, (uint32_t instruction, bool adds),
          ".ws.cta_group::1.kind::%5.collector::b%6::%7", "%2, %3, p", MMA_KIND, "n"(BUFFER), MMA_COLLECTOR)
MMA_FORMS(tcgen05_mma_ws_sp, MMA_STATIONARY, (uint32_t metadata, uint32_t instruction, bool adds),
          ".ws.sp.cta_group::1.kind::%6.collector::b%7::%8", "%2, [%5], %3, p",
          "r"(metadata), MMA_KIND, "n"(BUFFER), MMA_COLLECTOR)

/* zero_columns: which columns of B count as zeros (9.7.16.4.3). */
MMA_FORMS(tcgen05_mma_ws_zero_columns, MMA_STATIONARY, (uint32_t instruction, uint64_t zero_columns, bool adds),
          ".ws.cta_group::1.kind::%6.collector::b%7::%8", "%2, %3, p, %5",
          "l"(zero_columns), MMA_KIND, "n"(BUFFER), MMA_COLLECTOR)
MMA_FORMS(tcgen05_mma_ws_sp_zero_columns, MMA_STATIONARY,
          (uint32_t metadata, uint32_t instruction, uint64_t zero_columns, bool adds),
          ".ws.sp.cta_group::1.kind::%7.collector::b%8::%9", "%2, [%6], %3, p, %5",
          "l"(zero_columns), "r"(metadata), MMA_KIND, "n"(BUFFER), MMA_COLLECTOR)

#undef MMA_TEXT
#undef MMA_ALL
#undef MMA_FORM
#undef MMA_FORM_A_TENSOR
#undef MMA_FORMS
#undef MMA_COLLECTED
#undef MMA_SCALED
#undef MMA_STATIONARY
#undef MMA_KIND
#undef MMA_VECTOR
#undef MMA_COLLECTOR
#undef MMA_KEPT_4
#undef MMA_KEPT_8

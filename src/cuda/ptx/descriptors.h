/* The two descriptors of tcgen05, built from named fields: where a matrix lies in shared memory (PTX ISA 9.7.16.4.1),
 * and what an instruction multiplies (9.7.16.4.2).  Plain functions for host and device:
 * tests/cuda/ptx/test_descriptors.c holds them to the manual's examples.  Nothing is checked here; illegal values give
 * illegal descriptors. */
#ifndef BSMI_PTX_DESCRIPTORS_H
#define BSMI_PTX_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PTX_FUNCTION __host__ __device__ static constexpr inline
#else
#define PTX_FUNCTION static inline
#endif

/* ---- matrices in shared memory (9.7.16.4.1) ---- */

/* Numbers as in bits 63-61.  A swizzle exchanges chunks of 16 bytes (SHARED_SWIZZLE_128B_ATOM_32B: of 32) inside rows
 * of so many bytes, by bits of the absolute address. */
enum shared_swizzle {
    SHARED_SWIZZLE_NONE = 0,
    SHARED_SWIZZLE_128B_ATOM_32B = 1,
    SHARED_SWIZZLE_128B = 2,
    SHARED_SWIZZLE_64B = 4,
    SHARED_SWIZZLE_32B = 6
};

/* Bytes, multiples of 16 below 2^18.  S: bytes of the swizzle; "row": a row of A, a column of B.
 *
 *   major    leading: from one ... to the next             stride: from one ... to the next
 *   K        no swizzle: 16 bytes of K; else unused        8 rows
 *   MN       no swizzle: 8 lines of K                      no swizzle: 16 bytes of MN
 *            else: S bytes of MN                           else: 8 lines of K (4 with SHARED_SWIZZLE_128B_ATOM_32B)
 */
struct shared_matrix {
    uint32_t address;
    uint32_t leading, stride;
    enum shared_swizzle swizzle;
    uint32_t base_offset;    /* address / 128 % 8 of where the pattern begins: 0 where that is a multiple of 8 S */
    bool leading_is_address; /* sm_103a with K = 96: `leading` is an address */
};

PTX_FUNCTION uint64_t shared_field(uint32_t bytes) { return (bytes & 0x3ffff) >> 4; }

PTX_FUNCTION uint64_t shared_matrix_descriptor(struct shared_matrix m)
{
    return shared_field(m.address) | shared_field(m.leading) << 16 | shared_field(m.stride) << 32 | (uint64_t)1 << 46 |
           (uint64_t)m.base_offset << 49 | (uint64_t)m.leading_is_address << 52 | (uint64_t)m.swizzle << 61;
}

/* The same matrix, `bytes` further: the next step along K inside a swizzled row, for instance.  Only the address
 * changes. */
PTX_FUNCTION uint64_t shared_matrix_advance(uint64_t descriptor, uint32_t bytes) { return descriptor + (bytes >> 4); }

/* Bytes of a row of the swizzle; 16 without one. */
PTX_FUNCTION uint32_t shared_swizzle_bytes(enum shared_swizzle swizzle)
{
    return swizzle == SHARED_SWIZZLE_NONE  ? 16
           : swizzle == SHARED_SWIZZLE_32B ? 32
           : swizzle == SHARED_SWIZZLE_64B ? 64
                                           : 128;
}

/* K-major, in rows of as many bytes as the swizzle has, one behind another, as TMA writes them. */
PTX_FUNCTION uint64_t shared_rows_descriptor(uint32_t address, enum shared_swizzle swizzle)
{
    struct shared_matrix m = { address, 16, 8 * shared_swizzle_bytes(swizzle), swizzle, 0, false };
    return shared_matrix_descriptor(m);
}

/* MN-major, in lines (of constant k) of as many bytes as the swizzle has, 8 lines a pattern, patterns along K one
 * behind another; leading: bytes to the lines with the next numbers of MN. */
PTX_FUNCTION uint64_t shared_lines_descriptor(uint32_t address, enum shared_swizzle swizzle, uint32_t leading)
{
    struct shared_matrix m = { address, leading, 8 * shared_swizzle_bytes(swizzle), swizzle, 0, false };
    return shared_matrix_descriptor(m);
}

/* Scales of 128 rows, 4 each, as 32 rows of 16 bytes: what tcgen05.cp.32x128b reads. */
PTX_FUNCTION uint64_t shared_scales_descriptor(uint32_t address)
{
    return shared_rows_descriptor(address, SHARED_SWIZZLE_NONE);
}

/* ---- instructions (9.7.16.4.2) ---- */

enum mma_kind { MMA_TF32, MMA_F16, MMA_I8, MMA_F8F6F4, MMA_MXF8F6F4, MMA_MXF4, MMA_MXF4NVF4 };

/* Elements of A and B; of D: MMA_D_... */
enum mma_element { MMA_E4M3, MMA_E5M2, MMA_E2M3, MMA_E3M2, MMA_E2M1, MMA_FP16, MMA_BF16, MMA_TF32_ELEMENT, MMA_U8,
                   MMA_S8 };
enum mma_output { MMA_D_F16 = 0, MMA_D_F32 = 1, MMA_D_S32 = 2 };
enum mma_scale_type { MMA_UE4M3 = 0, MMA_UE8M0 = 1 };

struct mma_instruction {
    enum mma_kind kind;
    enum mma_element a, b;
    uint32_t m, n;                   /* of the whole instruction: of both CTAs of a pair */
    enum mma_output d;               /* kinds without scales; the others give f32 */
    enum mma_scale_type scales;      /* kinds with scales */
    uint32_t a_scale_id, b_scale_id; /* the byte of a cell of tensor memory with the first scale: see 9.7.16.10.7 */
    bool a_is_negated, b_is_negated, a_is_mn_major, b_is_mn_major;
    bool sparse;                /* A: tcgen05.mma.sp */
    uint32_t sparsity_selector; /* sparse f16 and tf32: the part of a cell that holds the metadata */
    bool saturates;             /* i8 */
    uint32_t b_shift;           /* .ws: 0, 8, 16 or 32: the most that B is shifted for reuse */
    bool k_96;                  /* sm_103a, mxf4 and mxf4nvf4 */
};

PTX_FUNCTION bool mma_has_scales(enum mma_kind kind) { return kind >= MMA_MXF8F6F4; }

PTX_FUNCTION uint32_t mma_element_code(enum mma_kind kind, enum mma_element element)
{
    const bool packed = kind == MMA_MXF4 || kind == MMA_MXF4NVF4;
    switch (element) {
    case MMA_E4M3:
    case MMA_FP16:
    case MMA_U8: return 0;
    case MMA_E5M2:
    case MMA_BF16:
    case MMA_S8: return 1;
    case MMA_TF32_ELEMENT: return 2;
    case MMA_E2M3: return 3;
    case MMA_E3M2: return 4;
    default: return packed ? 1 : 5; /* e2m1: kinds with packed elements have a code of their own */
    }
}

/* The fields that all kinds have in the same place. */
PTX_FUNCTION uint32_t mma_shared_fields(struct mma_instruction x)
{
    return (uint32_t)x.sparse << 2 | mma_element_code(x.kind, x.a) << 7 | mma_element_code(x.kind, x.b) << 10 |
           (uint32_t)x.a_is_negated << 13 | (uint32_t)x.b_is_negated << 14 | (uint32_t)x.a_is_mn_major << 15 |
           (uint32_t)x.b_is_mn_major << 16 | x.n >> 3 << 17;
}

PTX_FUNCTION uint32_t mma_instruction_descriptor(struct mma_instruction x)
{
    const uint32_t shared = mma_shared_fields(x);
    if (mma_has_scales(x.kind))
        return shared | x.b_scale_id << 4 | (uint32_t)x.scales << 23 | x.m >> 7 << 27 | x.a_scale_id << 29
               | (uint32_t)x.k_96 << 31;
    const uint32_t shift = x.b_shift == 0 ? 0 : x.b_shift == 8 ? 1 : x.b_shift == 16 ? 2 : 3;
    return shared | x.sparsity_selector | (uint32_t)x.saturates << 3 | (uint32_t)x.d << 4 | x.m >> 4 << 24
           | shift << 30;
}

/* Whether it was made for kind tf32, among descriptors of kinds f16 and tf32: the kind itself is part of the opcode. */
PTX_FUNCTION bool mma_is_tf32(uint32_t descriptor) { return (descriptor >> 7 & 7) == 2; }

/* The same instruction, its scales from these bytes of their cells on; `descriptor` was made with 0 and 0. */
PTX_FUNCTION uint32_t mma_with_scale_ids(uint32_t descriptor, uint32_t a_scale_id, uint32_t b_scale_id)
{
    return descriptor | a_scale_id << 29 | b_scale_id << 4;
}

#endif

/* What a warp multiplies at one time: fragments of its rows of A and its columns of B, and words of their scales. */
#pragma once

#include "cuda/ptx/mma_sync.cuh"
#include "cuda/ptx/swizzle.cuh"
#include "cuda/ptx/threads.cuh"
#include "gemm_config.cuh"

/* Types of the elements, known to the compiler; OF_BYTES: shared memory has a byte for each. */
template <mma_sync_element A_, mma_sync_element B_, bool OF_BYTES_> struct gemm_pair {
    static constexpr mma_sync_element A = A_, B = B_;
    static constexpr bool OF_BYTES = OF_BYTES_;
};

/* Of one product: 32 bytes of K.  A pair of eight columns lies in four words. */
template <class CONFIG> struct gemm_fragments {
    uint32_t a[CONFIG::ROW_PARTS][4], b[CONFIG::OCTETS / 2][4];
    uint32_t a_scales[CONFIG::A_GROUPS], b_scales[CONFIG::B_GROUPS];
};

/* The same number, which ptxas does not compute anew from the lane's in every step of K. */
__device__ static inline uint32_t kept(uint32_t number) { return __shfl_sync(0xffffffff, number, threadIdx.x % 32); }

/* Where the lane finds scales of one operand in a stage. */
struct gemm_scale_places {
    uint32_t at;                          /* of the lane's first row, in the first word of a step that begins with
                                             one */
    uint32_t group_pitch, word_pitch;     /* 32 rows further; four scales further */
    uint32_t inside;                      /* a step may begin within so many bytes: less 1 */
};

/* Of `rows` rows from `first` on of the tile's: lane 4 i + j has row 8 j + i, so that by ldmatrix's and mma.sync's
 * order of lanes (mma_sync.cuh) A_THREAD t selects rows 16 t .. of 32, and B_THREAD t columns 8 t ..  Lanes that have
 * no row repeat those of others. */
__device__ static inline gemm_scale_places scale_places_of(const gemm_side &side, bool linear, int32_t first, int rows,
                                                           int blocks)
{
    const uint32_t lane = threadIdx.x % 32, row = (uint32_t)first + lane % 4 % (uint32_t)(rows / 8) * 8 + lane / 4;
    if (linear)
        return { kept(row * BSMI_SM120_LINEAR_BYTES), 32 * BSMI_SM120_LINEAR_BYTES, 4, BSMI_SM120_LINEAR_BYTES - 1 };
    const uint32_t in_blocks = row + (uint32_t)side.row % 128;
    return { kept(in_blocks / 128 * (uint32_t)blocks * BSMI_SM120_BLOCK_BYTES + in_blocks % 32 * 16
                  + in_blocks % 128 / 32 * 4),
             4, BSMI_SM120_BLOCK_BYTES, 3 };
}

/* What a lane needs to find its fragments and scales: the same for all steps of a tile. */
template <class CONFIG> struct gemm_reader {
    uint32_t a[CONFIG::PRODUCTS], b[CONFIG::PRODUCTS]; /* of each product, in a stage's tiles of codes */
    gemm_scale_places a_scales, b_scales;
};

template <class CONFIG>
__device__ static inline gemm_reader<CONFIG> reader_of(const bsmi_blackwell_parameters &p, const gemm_tile &tile,
                                               uint32_t warp)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t first_row = warp % CONFIG::ALONG_M * CONFIG::WARP_ROWS,
                   first_column = warp / CONFIG::ALONG_M * CONFIG::WARP_COLUMNS;
    gemm_reader<CONFIG> reader = {};
    /* A: matrices of eight rows are rows 0 and 8, then both 16 bytes further; B: 16 bytes further, then eight rows. */
#pragma unroll
    for (uint32_t i = 0; i < CONFIG::PRODUCTS; i++) {
        const uint32_t a = (first_row + lane % 16) * CONFIG::STEP + i * 32 + lane / 16 * 16;
        const uint32_t b = (first_column + lane / 16 * 8 + lane % 8) * CONFIG::STEP + i * 32 + lane / 8 % 2 * 16;
        reader.a[i] = kept(swizzled(a, CONFIG::STEP)), reader.b[i] = kept(swizzled(b, CONFIG::STEP));
    }
    if constexpr (CONFIG::SCALED) {
        reader.a_scales = scale_places_of(gemm_side_a(p, tile), p.a_scales_linear, (int32_t)first_row,
                                          min(CONFIG::WARP_ROWS, 32), CONFIG::BLOCKS);
        reader.b_scales =
            scale_places_of(gemm_side_b(p, tile), p.b_scales_linear, (int32_t)first_column, 32, CONFIG::BLOCKS);
    }
    return reader;
}

/* Codes of an operand, four matrices; of 4 bits in bytes they come in the low bits, and the product wants e2m1 two bits
 * higher (PTX ISA 9.7.14.5.14, packing of sub-byte elements). */
template <class CONFIG, mma_sync_element ELEMENT, bool OF_BYTES>
__device__ __forceinline__ static void load_matrices(uint32_t (&words)[4], uint32_t address)
{
    if constexpr (OF_BYTES && ELEMENT == MMA_SYNC_E2M1) {
        ldmatrix_x4_of_4_bits(words, address);
#pragma unroll
        for (int i = 0; i < 4; i++) words[i] <<= 2;
    } else if constexpr (OF_BYTES && (ELEMENT == MMA_SYNC_E2M3 || ELEMENT == MMA_SYNC_E3M2)) {
        ldmatrix_x4_of_6_bits(words, address);
    } else {
        ldmatrix_x4(words, address);
    }
}

/* A word that holds the scales of product PRODUCT; in steps of fewer than four scales half of one. */
template <class CONFIG, int PRODUCT, int GROUPS>
__device__ __forceinline__ static void load_scale_words(uint32_t (&words)[GROUPS], const gemm_scale_places &places,
                                               uint32_t scales, uint32_t in_step)
{
    constexpr int WORD = PRODUCT * CONFIG::PRODUCT_SCALES / 4;
    const uint32_t at = scales + places.at + (in_step & places.inside) + WORD * places.word_pitch;
#pragma unroll
    for (int i = 0; i < GROUPS; i++)
        words[i] = CONFIG::STEP_SCALES < 4 ? load_shared_u16(at + i * places.group_pitch)
                                           : load_shared(at + i * places.group_pitch);
}

/* The stage that fragments come from. */
struct gemm_stage {
    uint32_t a, b, a_scales, b_scales;    /* addresses */
    uint32_t in_step;                     /* the step's first scale in a row */
};

template <class CONFIG>
__device__ __forceinline__ static gemm_stage stage_of(uint32_t shared, uint32_t stage, int32_t step)
{
    return { shared + CONFIG::OF_A + stage * CONFIG::A_BYTES, shared + CONFIG::OF_B + stage * CONFIG::B_BYTES,
             shared + CONFIG::OF_A_SCALES + stage * CONFIG::A_SCALE_BYTES,
             shared + CONFIG::OF_B_SCALES + stage * CONFIG::B_SCALE_BYTES, (uint32_t)step * CONFIG::STEP_SCALES };
}

/* Product PRODUCT of a stage; `before`: the fragments of the product before it, which may share words of scales. */
template <class CONFIG, class PAIR, int PRODUCT>
__device__ __forceinline__ static void load_fragments(gemm_fragments<CONFIG> &f, const gemm_fragments<CONFIG> &before,
                                             const gemm_reader<CONFIG> &reader, const gemm_stage &stage)
{
    const uint32_t a = stage.a + reader.a[PRODUCT], b = stage.b + reader.b[PRODUCT];
#pragma unroll
    for (int i = 0; i < CONFIG::ROW_PARTS; i++)
        load_matrices<CONFIG, PAIR::A, PAIR::OF_BYTES>(f.a[i], a + i * 16 * CONFIG::STEP);
#pragma unroll
    for (int i = 0; i < CONFIG::OCTETS / 2; i++)
        load_matrices<CONFIG, PAIR::B, PAIR::OF_BYTES>(f.b[i], b + i * 16 * CONFIG::STEP);
    if constexpr (CONFIG::SCALED && PRODUCT * CONFIG::PRODUCT_SCALES % 4 == 0) {
        load_scale_words<CONFIG, PRODUCT>(f.a_scales, reader.a_scales, stage.a_scales, stage.in_step);
        load_scale_words<CONFIG, PRODUCT>(f.b_scales, reader.b_scales, stage.b_scales, stage.in_step);
    } else if constexpr (CONFIG::SCALED) {
#pragma unroll
        for (int i = 0; i < CONFIG::A_GROUPS; i++) f.a_scales[i] = before.a_scales[i];
#pragma unroll
        for (int i = 0; i < CONFIG::B_GROUPS; i++) f.b_scales[i] = before.b_scales[i];
    }
}

/* Behind K codes are zeros, and scales may be any, also NaN. */
template <class CONFIG> __device__ __forceinline__ static void clear_scales(gemm_fragments<CONFIG> &f)
{
#pragma unroll
    for (int i = 0; i < CONFIG::A_GROUPS; i++) f.a_scales[i] = 0;
#pragma unroll
    for (int i = 0; i < CONFIG::B_GROUPS; i++) f.b_scales[i] = 0;
}

template <class CONFIG> using gemm_sums = float[CONFIG::ROW_PARTS][CONFIG::OCTETS][4];

/* Octet OCTET of columns with 16 rows, number PART. */
template <class CONFIG, class PAIR, int PRODUCT, int PART, int OCTET>
__device__ __forceinline__ static void multiply_one(gemm_sums<CONFIG> &sums, const gemm_fragments<CONFIG> &f)
{
    constexpr int BYTE = PRODUCT * CONFIG::PRODUCT_SCALES % 4;
    float(&d)[4] = sums[PART][OCTET];
    const uint32_t b[2] = { f.b[OCTET / 2][OCTET % 2 * 2], f.b[OCTET / 2][OCTET % 2 * 2 + 1] };
    if constexpr (CONFIG::KIND == KIND_BF16) {
        mma_sync_bf16(d, f.a[PART], b);
    } else {
        const uint32_t a_scales = f.a_scales[PART / 2], b_scales = f.b_scales[OCTET / 4];
        if constexpr (CONFIG::KIND == KIND_MXF8F6F4)
            mma_sync_mxf8f6f4<PAIR::A, PAIR::B, BYTE, PART % 2, OCTET % 4>(d, f.a[PART], b, a_scales, b_scales);
        else if constexpr (CONFIG::KIND == KIND_MXF4)
            mma_sync_mxf4<BYTE, PART % 2, OCTET % 4>(d, f.a[PART], b, a_scales, b_scales);
        else mma_sync_mxf4nvf4<PART % 2, OCTET % 4>(d, f.a[PART], b, a_scales, b_scales);
    }
}

template <class CONFIG, class PAIR, int PRODUCT, int NUMBER = 0>
__device__ __forceinline__ static void multiply(gemm_sums<CONFIG> &sums, const gemm_fragments<CONFIG> &f)
{
    if constexpr (NUMBER < CONFIG::ROW_PARTS * CONFIG::OCTETS) {
        multiply_one<CONFIG, PAIR, PRODUCT, NUMBER % CONFIG::ROW_PARTS, NUMBER / CONFIG::ROW_PARTS>(sums, f);
        multiply<CONFIG, PAIR, PRODUCT, NUMBER + 1>(sums, f);
    }
}

/* The table of CPU kernels: which pairs each serves, and in which order it sums. */
#include "table.h"

#include "bf16_sums.h"
#include "core/core.h"
#include "kernels.h"
#include "row_exponents.h"

/* Every pair but those of exact blocks (microkernel.h). */
static bool sums_fp32_chains(bsm_format a, bsm_format b) { return !bsmi_sums_exact_blocks(a, b); }

#if defined(__x86_64__) || defined(__aarch64__)
/* Numbers that bf16 holds, a term each: fp16 would be two, which is no faster than fp32. */
static bool sums_bf16_pairs(bsm_format a, bsm_format b)
{
    return sums_fp32_chains(a, b) && bsmi_bf16_terms(bsm_format_get((int)a)->element) == 1
           && bsmi_bf16_terms(bsm_format_get((int)b)->element) == 1;
}
#endif

#if defined(__x86_64__)
static bool is_fp4(bsm_format a, bsm_format b)
{
    return bsmi_sums_exact_blocks(a, b) && bsm_format_get((int)a)->element == BSM_E2M1
           && bsm_format_get((int)b)->element == BSM_E2M1;
}

/* bf16 holds the numbers of both, in one term or two. */
static bool sums_bf16(bsm_format a, bsm_format b)
{
    return bsmi_bf16_terms(bsm_format_get((int)a)->element) > 0 && bsmi_bf16_terms(bsm_format_get((int)b)->element) > 0;
}

/* A's numbers are one term each; B is of one of the formats that one row has kernels for. */
static bool is_one_term(bsm_format a) { return bsmi_bf16_terms(bsm_format_get((int)a)->element) == 1; }
static bool sums_bf16_by_mxfp4(bsm_format a, bsm_format b) { return b == BSM_MXFP4 && is_one_term(a); }
static bool sums_bf16_by_nvfp4(bsm_format a, bsm_format b) { return b == BSM_NVFP4 && is_one_term(a); }
static bool sums_bf16_by_mxfp8(bsm_format a, bsm_format b)
{
    return (b == BSM_MXFP8_E4M3 || b == BSM_MXFP8_E5M2) && is_one_term(a);
}

/* Both are blocks of small integers with scales that are powers of two. */
static bool sums_shifted_integers(bsm_format a, bsm_format b)
{
    return bsmi_sums_exact_blocks(a, b) && bsm_format_get((int)a)->scale == BSM_E8M0
           && bsm_format_get((int)b)->scale == BSM_E8M0;
}

/* B's elements have at most 8 bits. */
static bool sums_fp32_chains_of_codes(bsm_format a, bsm_format b)
{
    return sums_fp32_chains(a, b) && bsm_element_get((int)bsm_format_get((int)b)->element)->bits <= 8;
}

/* B's elements are of_b, and exact blocks have 32. */
static bool exact_blocks_of_32_by(bsm_element of_b, bsm_format a, bsm_format b)
{
    return bsmi_sums_exact_blocks(a, b) && bsm_format_get((int)b)->element == of_b
        && bsm_format_get((int)a)->block == 32;
}

static bool is_by_int8(bsm_format a, bsm_format b) { return exact_blocks_of_32_by(BSM_INT8, a, b); }

static bool is_by_e2m3(bsm_format a, bsm_format b)
{
    return exact_blocks_of_32_by(BSM_E2M3, a, b) && bsm_format_get((int)a)->element != BSM_INT8;
}
#endif

const char *bsmi_family_order(enum bsmi_family family)
{
    static const char *const orders[BSMI_FAMILY_COUNT] = {
        [BSMI_FAMILY_EXACT_BLOCKS] =
            "exact sums of min(blockA, blockB) products, ascending, one fused multiply-add each",
        [BSMI_FAMILY_FP32_CHAINS] = "k ascending, one fused multiply-add each",
        [BSMI_FAMILY_AMX_BF16] = "AMX's, even and odd k of 32 columns of K in chains of their own",
        [BSMI_FAMILY_AVX512_BF16] = "AVX512_BF16's, pairs of k ascending",
        [BSMI_FAMILY_ARM_BF16] = "Arm's BFMMLA, four k at a time",
    };
    return orders[family];
}

#define BLOCK_PAIR bsmi_sums_exact_blocks, BSMI_FAMILY_EXACT_BLOCKS
#define CHAIN_PAIR sums_fp32_chains, BSMI_FAMILY_FP32_CHAINS
#define CODE_PAIR sums_fp32_chains_of_codes, BSMI_FAMILY_FP32_CHAINS
#define FP4_PAIR is_fp4, BSMI_FAMILY_EXACT_BLOCKS
#define INT8_PAIR is_by_int8, BSMI_FAMILY_EXACT_BLOCKS
#define E2M3_PAIR is_by_e2m3, BSMI_FAMILY_EXACT_BLOCKS
#define BF16_PAIR sums_bf16_pairs, BSMI_FAMILY_AVX512_BF16
#define MMLA_PAIR sums_bf16_pairs, BSMI_FAMILY_ARM_BF16
#define AMX_PAIR sums_bf16, BSMI_FAMILY_AMX_BF16
#define AMX_FP4_PAIR sums_bf16_by_mxfp4, BSMI_FAMILY_AMX_BF16
#define AMX_FP8_PAIR sums_bf16_by_mxfp8, BSMI_FAMILY_AMX_BF16
#define AMX_NVFP4_PAIR sums_bf16_by_nvfp4, BSMI_FAMILY_AMX_BF16
#define AMX_INT8_PAIR sums_shifted_integers, BSMI_FAMILY_AMX_BF16
#define AVX2 (BSM_CPU_AVX2 | BSM_CPU_FMA)
#define AVX512 (AVX2 | BSM_CPU_AVX512)
#define VNNI (AVX512 | BSM_CPU_AVX512_VNNI)
#define BF16 (VNNI | BSM_CPU_AVX512_BF16)
#define AMX (VNNI | BSM_CPU_AMX)
#define AMX_BF16 (BF16 | BSM_CPU_AMX)
#define I8MM BSM_CPU_I8MM
#define BFMMLA BSM_CPU_BF16
#define DOTPROD BSM_CPU_DOTPROD

#define MICROKERNEL(name) &name, NULL, NULL, 0, NULL
#define UNIT(name, sums_columns) NULL, bsmi_##name##_scratch_bytes, bsmi_##name, sums_columns, NULL
#define ONE_ROW(name, panels) NULL, bsmi_##name##_scratch_bytes, bsmi_##name, 0, &bsmi_##panels##_panels
#define TILES(isa, sum) NULL, bsmi_tile_scratch_##isa, bsmi_tile_##sum##_##isa, 0, NULL

/* Best first; the last rows serve every pair on every CPU.
 *    name                           needs    pairs       register  tile at     rows
 *                                            and family            most           how */
const struct bsmi_kernel bsmi_kernels[] = {
#if defined(__x86_64__)
    { "fp4_one_row_vnni",            AMX,    AMX_FP4_PAIR, 1, 32,   1, 2048,  1, ONE_ROW(fp4_one_row_vnni, fp4) },
    { "bf16_dot_one_row_avx512",     AMX_BF16, AMX_FP8_PAIR, 1, 32, 1, 2048,  1,
      ONE_ROW(bf16_dot_one_row_avx512, fp8) },
    { "nvfp4_one_row_avx512",        AMX,    AMX_NVFP4_PAIR, 1, 32, 1, 2048,  1, ONE_ROW(nvfp4_one_row_avx512, nvfp4) },
    { "bf16_few_rows_amx",           AMX,    AMX_PAIR,   16, 32,   64, 2048, 64, UNIT(bf16_few_rows_amx, 0) },
    { "int8_tiles_amx",              AMX,    AMX_INT8_PAIR, 16, 32, 1024, 512, 0, UNIT(int8_tiles_amx, 256) },
    { "bf16_tiles_amx",              AMX,    AMX_PAIR,   16, 32, 1024,  512,  0, UNIT(bf16_tiles_amx, 256) },
    { "fp4_few_rows_avx2",           AVX2,   FP4_PAIR,    4, 32,    4, 1024,  4, MICROKERNEL(bsmi_fp4_few_rows_avx2) },
    { "int8_few_rows_avx2",          AVX2,   INT8_PAIR,   4, 32,    4, 1024,  2,
      MICROKERNEL(bsmi_int8_dot_few_rows_avx2) },
    { "e2m3_few_rows_avx2",          AVX2,   E2M3_PAIR,   4, 32,    4, 1024,  4,
      MICROKERNEL(bsmi_int8_dot_few_rows_avx2) },
    { "int8_dot_vnni",               VNNI,   BLOCK_PAIR,  8, 32,  512, 1024,  0, MICROKERNEL(bsmi_int8_dot_vnni) },
    { "fp4_avx2",                    AVX2,   FP4_PAIR,    4, 32,  256, 1024,  0, MICROKERNEL(bsmi_fp4_avx2) },
    { "int8_dot_avx2",               AVX2,   BLOCK_PAIR,  4, 32,  256, 1024,  0, MICROKERNEL(bsmi_int8_dot_avx2) },
    { "bf16_dot_few_rows_avx512",    BF16,   BF16_PAIR,  16, 128,  16, 4096, 16,
      MICROKERNEL(bsmi_bf16_dot_few_rows_avx512) },
    { "bf16_dot_avx512",             BF16,   BF16_PAIR,  16, 32,  512, 1024,  0, MICROKERNEL(bsmi_bf16_dot_avx512) },
    { "fp32_chains_one_row_avx2",    AVX2,   CODE_PAIR,   8, 32,    8, 1024,  1,
      MICROKERNEL(bsmi_fp32_chains_few_rows_avx2) },
    { "fp32_chains_few_rows_avx512", AVX512, CODE_PAIR,   8, 64,    8, 4096,  8,
      MICROKERNEL(bsmi_fp32_chains_few_rows_avx512) },
    { "fp32_chains_few_rows_avx2",   AVX2,   CODE_PAIR,   8, 32,    8, 1024,  8,
      MICROKERNEL(bsmi_fp32_chains_few_rows_avx2) },
    { "fp32_chains_avx512",          AVX512, CHAIN_PAIR, 14, 32,  350, 1024,  0, MICROKERNEL(bsmi_fp32_chains_avx512) },
    { "fp32_chains_avx2",            AVX2,   CHAIN_PAIR,  6, 16,  258, 1024,  0, MICROKERNEL(bsmi_fp32_chains_avx2) },
    { "exact_blocks_avx2_fma",       AVX2,   BLOCK_PAIR,  6, 16,  192,  256,  0, TILES(avx2_fma, exact_blocks) },
    { "fp32_chains_avx2_fma",        AVX2,   CHAIN_PAIR,  6, 16,  192,  256,  0, TILES(avx2_fma, fp32_chains) },
#elif defined(__aarch64__)
    { "int8_dot_i8mm",               I8MM,   BLOCK_PAIR,  8,  8,  512, 1024,  0, MICROKERNEL(bsmi_int8_dot_i8mm) },
    { "int8_dot_dotprod",            DOTPROD, BLOCK_PAIR, 8,  8,  512, 1024,  0, MICROKERNEL(bsmi_int8_dot_dotprod) },
    { "bf16_mmla",                   BFMMLA, MMLA_PAIR,   8,  8,  512, 1024,  0, MICROKERNEL(bsmi_bf16_mmla) },
#endif
    { "exact_blocks_portable",       0,      BLOCK_PAIR,  4,  8,  192,  256,  0, TILES(portable, exact_blocks) },
    { "fp32_chains_portable",        0,      CHAIN_PAIR,  4,  8,  192,  256,  0, TILES(portable, fp32_chains) },
};
const int bsmi_kernel_count = sizeof bsmi_kernels / sizeof bsmi_kernels[0];

size_t bsmi_kernel_scratch_bytes(const struct bsmi_kernel *kernel, int64_t rows, int64_t columns)
{
    const struct bsmi_microkernel *const micro = kernel->microkernel;
    if (micro == NULL) return kernel->scratch_bytes(rows, columns);
    return micro->row_exponents ? bsmi_bf16_microkernel_scratch_bytes(micro, rows, columns)
                                : bsmi_microkernel_scratch_bytes(micro, rows, columns);
}

void bsmi_kernel_sum(const struct bsmi_kernel *kernel, const struct bsmi_tile *tile, void *scratch)
{
    const struct bsmi_microkernel *const micro = kernel->microkernel;
    if (micro == NULL) kernel->sum(tile, scratch);
    else if (micro->row_exponents) bsmi_bf16_microkernel_sum(micro, tile, scratch);
    else bsmi_microkernel_sum(micro, tile, scratch);
}

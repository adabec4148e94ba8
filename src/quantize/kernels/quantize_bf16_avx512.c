/* Quantizing bf16 with AVX-512, GROUP blocks at a time as words of 16 bits; what these do not serve goes to the kernel
 * for numbers of 32 bits. */
#if defined(__x86_64__)
#include "table.h"

#include "core/core.h"

#include <immintrin.h>
#include <string.h>

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#include "bf16_words_avx512.h"

#include "bf16_to_fp8_avx512.h"

#include "bf16_to_e2m1_avx512.h"

enum kind { NONE, TO_E4M3, TO_E5M2, TO_E2M1, TO_E2M1_HIGH_FIRST, TO_NVFP4, TO_NVFP4_HIGH_FIRST };

static const struct fp8 e4m3 = { 3, 7, 0x7e }, e5m2 = { 2, 15, 0x7b };

static enum kind kind_of(const struct bsmi_block_coding *c, const struct bsmi_block_row *row)
{
    const bool high_first = row->packing == BSM_PACKING_HIGH_FIRST;
    const bool pairs = high_first || row->packing == BSM_PACKING_LOW_FIRST;
    if (row->type != BSM_REAL_BF16) return NONE;
    if (c->ue4m3) return !pairs || c->bf16_steps.bases[0] == 0 ? NONE : high_first ? TO_NVFP4_HIGH_FIRST : TO_NVFP4;
    if (c->searches || c->tensor_scale != 1 || c->block != 32) return NONE;
    if (c->element.bits == 4 && pairs) return high_first ? TO_E2M1_HIGH_FIRST : TO_E2M1;
    if (c->element.bits == 8 && !c->complement) return c->element.shift == 20 ? TO_E4M3 : TO_E5M2;
    return NONE;
}

union group { struct fp8_group fp8; struct e2m1_group e2m1; struct ue4m3_group ue4m3; };

AVX512 bool group_scales(enum kind kind, const struct bsmi_block_coding *c, const uint16_t *x, uint8_t *scales,
                         union group *group)
{
    switch (kind) {
    case TO_E4M3: fp8_scales(e4m3, c, x, scales, &group->fp8); return group->fp8.roomy;
    case TO_E5M2: fp8_scales(e5m2, c, x, scales, &group->fp8); return group->fp8.roomy;
    case TO_E2M1:
    case TO_E2M1_HIGH_FIRST: e2m1_scales(c, x, scales, &group->e2m1); return group->e2m1.roomy;
    default: ue4m3_scales(&c->bf16_steps, x, scales, &group->ue4m3); return group->ue4m3.roomy;
    }
}

AVX512 void group_codes(enum kind kind, const struct bsmi_block_coding *c, const uint16_t *x, const union group *group,
                        unsigned char *to)
{
    switch (kind) {
    case TO_E4M3: fp8_codes(e4m3, x, &group->fp8, to); return;
    case TO_E5M2: fp8_codes(e5m2, x, &group->fp8, to); return;
    case TO_E2M1:
    case TO_E2M1_HIGH_FIRST: e2m1_codes(kind == TO_E2M1_HIGH_FIRST, x, &group->e2m1, to); return;
    default: ue4m3_group_codes(&c->bf16_steps, kind == TO_NVFP4_HIGH_FIRST, x, &group->ue4m3, to); return;
    }
}

/* count groups, one after the other, each one's scales before the codes of the one before: they are a long chain of
 * instructions, which runs beside those codes.  false if some block does not take the fast path. */
AVX512 bool quantize_groups(enum kind kind, const struct bsmi_block_coding *c, const struct bsmi_block_row *row,
                            int64_t count)
{
    const int numbers = GROUP * (kind >= TO_NVFP4 ? 16 : 32), bytes = kind >= TO_E2M1 ? numbers / 2 : numbers;
    const uint16_t *x = row->x;
    uint8_t *scales = row->scales;
    unsigned char *codes = row->codes;
    bool fast = true, roomy[2];
    union group groups[2];
    if (count > 0) roomy[0] = group_scales(kind, c, x, scales, &groups[0]);
    for (int64_t g = 0; g < count; g++) {
        if (g + 1 < count)
            roomy[(g + 1) % 2] = group_scales(kind, c, x + numbers, scales + GROUP, &groups[(g + 1) % 2]);
        if (roomy[g % 2]) {
            group_codes(kind, c, x, &groups[g % 2], codes);
        } else {
            const struct bsmi_block_row part = { row->type, x, GROUP, scales, codes, row->packing };
            fast &= bsmi_quantize_blocks_avx512(c, &part);
        }
        x += numbers, scales += GROUP, codes += bytes;
    }
    return fast;
}

/* One inner loop for each kind. */
#define ROAD(name, kind) \
    TARGET static bool name(const struct bsmi_block_coding *c, const struct bsmi_block_row *row, int64_t groups) \
    { \
        return quantize_groups(kind, c, row, groups); \
    }
ROAD(to_e4m3, TO_E4M3)
ROAD(to_e5m2, TO_E5M2)
ROAD(to_e2m1, TO_E2M1)
ROAD(to_e2m1_high_first, TO_E2M1_HIGH_FIRST)
ROAD(to_nvfp4, TO_NVFP4)
ROAD(to_nvfp4_high_first, TO_NVFP4_HIGH_FIRST)

typedef bool quantize_row(const struct bsmi_block_coding *c, const struct bsmi_block_row *row, int64_t groups);
static quantize_row *const roads[] = {
    [TO_E4M3] = to_e4m3,
    [TO_E5M2] = to_e5m2,
    [TO_E2M1] = to_e2m1,
    [TO_E2M1_HIGH_FIRST] = to_e2m1_high_first,
    [TO_NVFP4] = to_nvfp4,
    [TO_NVFP4_HIGH_FIRST] = to_nvfp4_high_first,
};

/* Too few blocks for a group, filled up with zeros. */
static bool quantize_short_row(enum kind kind, const struct bsmi_block_coding *c, const struct bsmi_block_row *row)
{
    const size_t numbers = (size_t)(row->blocks * c->block), bytes = numbers * (size_t)c->element.bits / 8;
    uint16_t x[GROUP * 32];
    uint8_t scales[GROUP];
    unsigned char codes[GROUP * 32];
    const struct bsmi_block_row group = { row->type, x, GROUP, scales, codes, row->packing };
    memcpy(x, row->x, numbers * sizeof *x);
    memset(x + numbers, 0, sizeof x - numbers * sizeof *x);
    const bool fast = roads[kind](c, &group, 1);
    memcpy(row->scales, scales, (size_t)row->blocks);
    memcpy(row->codes, codes, bytes);
    return fast;
}

/* The last GROUP blocks of a row, some of them once more. */
static bool quantize_last(enum kind kind, const struct bsmi_block_coding *c, const struct bsmi_block_row *row)
{
    const int64_t first = row->blocks - GROUP;
    const struct bsmi_block_row last = { row->type, (const uint16_t *)row->x + first * c->block, GROUP,
                                         row->scales + first, row->codes + first * c->block * c->element.bits / 8,
                                         row->packing };
    return roads[kind](c, &last, 1);
}

bool bsmi_quantize_rows_avx512(const struct bsmi_block_coding *c, const struct bsmi_block_row *row)
{
    enum { FEWEST = 24 };                 /* blocks that are quantized sooner as a group than a few numbers at a time */
    const enum kind kind = kind_of(c, row);
    if (kind == NONE || row->blocks < FEWEST) return bsmi_quantize_blocks_avx512(c, row);
    if (row->blocks < GROUP) return quantize_short_row(kind, c, row);
    const bool fast = roads[kind](c, row, row->blocks / GROUP);
    return (row->blocks % GROUP == 0 || quantize_last(kind, c, row)) & fast;
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif

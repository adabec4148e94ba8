/* bf16 into e2m1, packed in pairs, 32 numbers at a time as words.  Included in quantize_bf16_avx512.c.
 *
 * Codes are looked up in cells (bf16_steps.h): of e8m0 scales all blocks have the same, and the scale is subtracted as
 * an exponent; under ue4m3 scales each block has a base and a row. */

/* 64 numbers' codes from sums of cells' entries and words, of which bits 6 to 8 are the code.  What lies beyond the
 * cells has sums of 1024 or more, whatever entry it finds, and becomes the largest code by saturation. */
AVX512 __m512i packed_codes(bool high_first, const __m512i x[2], const __m512i sums[2])
{
    const __m512i bytes = _mm512_packus_epi16(_mm512_srli_epi16(sums[0], 2), _mm512_srli_epi16(sums[1], 2));
    const __m512i codes = chosen(_mm512_set1_epi8((char)0x80), _mm512_packs_epi16(x[0], x[1]), bytes);
    if (high_first) return chosen(every(0x00f0), codes, _mm512_srli_epi16(codes, 12));
    return chosen(every(0x000f), _mm512_srli_epi16(codes, 4), _mm512_srli_epi16(codes, 8));
}

AVX512 void store_e2m1(bool high_first, const __m512i x[4], const __m512i sums[4], unsigned char *to)
{
    const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i all = _mm512_packus_epi16(packed_codes(high_first, x, sums),
                                            packed_codes(high_first, x + 2, sums + 2));
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, all));
}

/* upper: what is added to the cells of a vector's upper half. */
AVX512 __m512i looked_up(__m512i cells, __m512i m, __m512i upper)
{
    const __m512i cell = _mm512_or_si512(_mm512_srli_epi16(m, BSMI_CELL_BITS), upper);
    return _mm512_add_epi16(_mm512_permutexvar_epi16(cell, cells), m);
}

AVX512 void prefetch_128(const uint16_t *x)
{
    UNROLL for (int i = 0; i < 128; i += 32) prefetch(x + i);
}

/* e8m0 scales ------------------------------------------------------------------------------------------------------ */

enum { E2M1_BELOW = 3 };                  /* half a step, 1/4, is in binade 1 above what is subtracted */

struct e2m1_group { struct block_words exponents; bool roomy; };

AVX512 void e2m1_scales(const struct bsmi_block_coding *c, const uint16_t *x, uint8_t *scales, struct e2m1_group *group)
{
    const __m512i amax = maxima_of_32(x), codes = e8m0_codes(c, amax);
    store_scales(codes, scales);
    store_block_words(exponents_of(codes, E2M1_BELOW, amax, &group->roomy), &group->exponents);
}

/* Steps beyond 1, at 3, beyond 5, at 7, beyond 10, at 14 and beyond 20 quarters, in halves of binades. */
#define CELL(cell, code, step) (uint16_t)(((code) - (cell)) * 64 + 64 - (step))
static const uint16_t e2m1_cells[32] = {
    CELL(0, 0, 64), CELL(1, 0, 64), CELL(2, 0, 1),  CELL(3, 1, 64), CELL(4, 1, 64),  CELL(5, 1, 0),
    CELL(6, 2, 33), CELL(7, 3, 32), CELL(8, 4, 33), CELL(9, 5, 32), CELL(10, 6, 33), CELL(11, 7, 64)
};
#undef CELL

AVX512 void e2m1_codes(bool high_first, const uint16_t *x, const struct e2m1_group *group, unsigned char *to)
{
    const __m512i cells = load(e2m1_cells);
    UNROLL for (int b = 0; b < GROUP; b += 4) {
        __m512i v[4], sums[4];
        prefetch_128(x + 32 * b);
        UNROLL for (int i = 0; i < 4; i++) {
            v[i] = load(x + 32 * (b + i));
            const __m512i exponent = _mm512_set1_epi32(block_word(&group->exponents, b + i));
            sums[i] = looked_up(cells, _mm512_subs_epu16(magnitudes(v[i]), exponent), every(0));
        }
        store_e2m1(high_first, v, sums, to + 16 * b);
    }
}

/* ue4m3 scales ----------------------------------------------------------------------------------------------------- */

struct ue4m3_group {
    struct block_words bases;
    _Alignas(64) uint16_t rows[GROUP];    /* bytes from the first row of cells */
    bool roomy;
};

/* Codes up to 8 have their steps one by one: below 8, and from there, they do not double. */
TARGET __attribute__((noinline)) static __m512i small_ue4m3_codes(const struct bsmi_bf16_steps *s, __m512i amax)
{
    __m512i codes = every(0);
    for (int code = 1; code < 9; code++)
        codes = _mm512_sub_epi16(codes, _mm512_movm_epi16(_mm512_cmpge_epu16_mask(amax, every(s->scales[code]))));
    return codes;
}

/* The cells have two binades, of 16 codes; code 9 begins the first. */
AVX512 __m512i ue4m3_codes(const struct bsmi_bf16_steps *s, __m512i amax)
{
    const __m512i m = _mm512_sub_epi16(amax, every(s->scales[9]));
    const __m512i cell = _mm512_srli_epi16(m, BSMI_SCALE_CELL_BITS);
    const __m512i sum = _mm512_add_epi16(_mm512_permutexvar_epi16(cell, load(s->scale_cells)), m);
    const __m512i twice = _mm512_andnot_si512(every(15), _mm512_srli_epi16(m, 4));
    const __m512i codes = _mm512_min_epu16(_mm512_sub_epi16(_mm512_srli_epi16(sum, BSMI_SCALE_CELL_BITS), twice),
                                           every(126));
    const __mmask32 small = _mm512_cmplt_epu16_mask(amax, every(s->scales[9]));
    return small == 0 ? codes : _mm512_mask_mov_epi16(codes, small, small_ue4m3_codes(s, amax));
}

/* Only the largest scale has numbers beyond the cells. */
AVX512 void ue4m3_scales(const struct bsmi_bf16_steps *s, const uint16_t *x, uint8_t *scales, struct ue4m3_group *group)
{
    const __m512i amax = maxima_of_16(x), codes = ue4m3_codes(s, amax);
    const __m512i row = _mm512_min_epu16(codes, _mm512_ternarylogic_epi32(codes, every(7), every(8), 0xea));
    const __m512i binade = _mm512_andnot_si512(every(7), codes);                         /* code / 8, times 8 */
    const __m512i bases = _mm512_add_epi16(_mm512_permutexvar_epi16(row, load(s->bases)), _mm512_slli_epi16(binade, 4));
    store_scales(codes, scales);
    store_block_words(bases, &group->bases);
    _mm512_store_si512(group->rows, _mm512_slli_epi16(row, 5));
    group->roomy = _mm512_cmpge_epu16_mask(amax, every(BF16_INFINITY)) == 0;
}

/* Of two blocks, each a half of the vector. */
AVX512 __m512i ue4m3_sums(const struct bsmi_bf16_steps *s, __m512i x, const struct ue4m3_group *group, int b)
{
    const char *const rows = (const char *)s->cells;
    const __m512i upper = _mm512_inserti64x4(every(0), _mm256_set1_epi16(BSMI_CELLS), 1);
    const __m512i bases = _mm512_mask_set1_epi32(_mm512_set1_epi32(block_word(&group->bases, b)), 0xff00,
                                                 block_word(&group->bases, b + 1));
    const __m256i first = _mm256_loadu_si256((const void *)(rows + group->rows[b]));
    const __m256i second = _mm256_loadu_si256((const void *)(rows + group->rows[b + 1]));
    const __m512i cells = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
    return looked_up(cells, _mm512_subs_epu16(magnitudes(x), bases), upper);
}

AVX512 void ue4m3_group_codes(const struct bsmi_bf16_steps *s, bool high_first, const uint16_t *x,
                              const struct ue4m3_group *group, unsigned char *to)
{
    UNROLL for (int b = 0; b < GROUP; b += 8) {
        __m512i v[4], sums[4];
        prefetch_128(x + 16 * b);
        UNROLL for (int i = 0; i < 4; i++) {
            v[i] = load(x + 16 * b + 32 * i);
            sums[i] = ue4m3_sums(s, v[i], group, b + 2 * i);
        }
        store_e2m1(high_first, v, sums, to + 8 * b);
    }
}

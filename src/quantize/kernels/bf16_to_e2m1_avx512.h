/* bf16 into e2m1 with e8m0 scales, packed in pairs, 32 numbers at a time as words: included behind quantize_template.h
 * in quantize_avx512.c, whose vectors it uses.
 *
 * From a number's magnitude the scale is subtracted as an exponent, so that 1/4 begins binade 1; zero stays zero by
 * saturation.  Of what is left, a word, the upper bits (three of the exponent, two of the mantissa) decide, once the
 * midpoints that round down, whose bit 6 is clear, are one less. */

AVX512 __m512i bf16_magnitudes(const uint16_t *from)
{
    return _mm512_and_si512(_mm512_loadu_si512(from), _mm512_set1_epi16(0x7fff));
}

/* The largest of two numbers of each word, in its upper half. */
AVX512 words bf16_pair_maxima(const uint16_t *from)
{
    const __m512i m = bf16_magnitudes(from);
    return (words)_mm512_max_epu32(m, _mm512_slli_epi32(m, 16));
}

/* One block; exponent: what is subtracted, twice. */
AVX512 void bf16_block_to_e2m1(const uint16_t *from, int32_t exponent, __m512i places, unsigned char *to)
{
    const __m512i table = _mm512_set_epi16(7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 5, 5, 4,
                                           4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
    const __m512i m = _mm512_subs_epu16(bf16_magnitudes(from), _mm512_set1_epi32(exponent));
    const __mmask32 down = _mm512_testn_epi16_mask(m, _mm512_set1_epi16(0x40));
    const __m512i index = _mm512_srli_epi16(_mm512_mask_subs_epu16(m, down, m, _mm512_set1_epi16(1)), 5);
    const __m512i signs = _mm512_srli_epi16(_mm512_loadu_si512(from), 12);
    const __m512i codes = _mm512_ternarylogic_epi32(_mm512_permutexvar_epi16(index, table), signs,
                                                    _mm512_set1_epi16(8), 0xf8);      /* code | (sign & 8) */
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8(_mm512_madd_epi16(codes, places)));
}

enum { E2M1_BELOW = 3 };                  /* how far the binade of 1/4 lies below that of the scale, and one more */

/* The scales of LANES blocks, and what is subtracted; false where a scale leaves no room for that. */
AVX512 bool bf16_group_scales(const struct bsmi_block_coding *c, const uint16_t *x, uint8_t *scales,
                              int32_t exponents[LANES])
{
    words maxima[LANES];
    UNROLL for (int b = 0; b < LANES; b++) maxima[b] = bf16_pair_maxima(x + 32 * b);
    const words amax = block_maxima(maxima) & (int32_t)0xffff0000, codes = e8m0_codes(c, amax);
    const words exponent = ((codes - E2M1_BELOW) << 7) & 0xffff, twice = exponent | exponent << 16;
    const bytes scale_bytes = narrow(&codes);
    memcpy(scales, &scale_bytes, sizeof scale_bytes);
    memcpy(exponents, &twice, sizeof twice);
    return !any(((amax >= 0x7f800000) | (codes < E2M1_BELOW)) & (amax > 0));
}

AVX512 void bf16_group_codes(const uint16_t *x, const int32_t exponents[LANES], __m512i places, unsigned char *to)
{
    UNROLL for (int b = 0; b < LANES; b++) {
        __builtin_prefetch((const char *)(x + 32 * b) + AHEAD);
        bf16_block_to_e2m1(x + 32 * b, exponents[b], places, to + 16 * b);
    }
}

/* What these serve; the template has all others. */
static bool serves_bf16_to_e2m1(const struct bsmi_block_coding *c, const struct bsmi_block_row *row)
{
    const bool plain = !c->ue4m3 && !c->searches && c->tensor_scale == 1 && c->block == 32;
    const bool pairs = row->packing == BSM_PACKING_LOW_FIRST || row->packing == BSM_PACKING_HIGH_FIRST;
    return plain && pairs && c->element.bits == 4 && row->type == BSM_REAL_BF16;
}

static struct bsmi_block_row part_of(const struct bsmi_block_row *row, int64_t first, int64_t blocks)
{
    return (struct bsmi_block_row){ row->type, (const uint16_t *)row->x + 32 * first, blocks, row->scales + first,
                                    row->codes + 16 * first, row->packing };
}

BSMI_TARGET static bool quantize_bf16_to_e2m1(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row)
{
    const struct bsmi_block_coding c = *coding;
    const uint16_t *x = row->x;
    const __m512i places = _mm512_set1_epi32(row->packing == BSM_PACKING_HIGH_FIRST ? 0x00010010 : 0x00100001);
    const int64_t whole = row->blocks / LANES;
    int32_t exponents[GROUPS][LANES];
    bool fast = true, roomy[GROUPS];
    for (int64_t first = 0; first < whole; first += GROUPS) {
        const int groups = (int)BSMI_MIN(whole - first, GROUPS);
        for (int g = 0; g < groups; g++)
            roomy[g] = bf16_group_scales(&c, x + 32 * LANES * (first + g), row->scales + LANES * (first + g),
                                         exponents[g]);
        for (int g = 0; g < groups; g++) {
            const struct bsmi_block_row group = part_of(row, LANES * (first + g), LANES);
            if (roomy[g]) bf16_group_codes(group.x, exponents[g], places, group.codes);
            else fast &= bsmi_quantize_blocks_avx512(coding, &group);
        }
    }
    const struct bsmi_block_row rest = part_of(row, LANES * whole, row->blocks - LANES * whole);
    return fast & bsmi_quantize_blocks_avx512(coding, &rest);
}

bool bsmi_quantize_rows_avx512(const struct bsmi_block_coding *coding, const struct bsmi_block_row *row)
{
    return (serves_bf16_to_e2m1(coding, row) ? quantize_bf16_to_e2m1 : bsmi_quantize_blocks_avx512)(coding, row);
}

/* bf16 into e4m3 and e5m2 with e8m0 scales, 32 numbers at a time as words.  Included in quantize_bf16_avx512.c.
 *
 * From a number's word the scale is subtracted as an exponent, so that the smallest normal element's binade is
 * `mantissa` + 1 and that of half the smallest element 0.  What is smaller ends as exactly that half, by saturation: a
 * tie, which goes to 0.  The word is then brought to where the code will be its upper byte: a normal one by a shift,
 * less the binades' difference; of a subnormal one, the significand by as many bits as its binade says.  Adding just
 * less than half a code rounds, and one more where the code is odd sends ties to the even one. */
struct fp8 { int mantissa, bias, largest; };

AVX512 __m512i fp8_words(struct fp8 f, __m512i x, __m512i exponent)
{
    const int below = f.mantissa << (8 + f.mantissa);
    const __m512i m = _mm512_subs_epu16(magnitudes(x), exponent);
    const __mmask32 normal = _mm512_cmpge_epu16_mask(m, every((f.mantissa + 1) << 7));
    const __m512i significand = _mm512_ternarylogic_epi32(m, every(0x7f), every(0x80), 0xea);     /* m & 0x7f | 0x80 */
    const __m512i subnormal = _mm512_sllv_epi16(significand, _mm512_srli_epi16(m, 7));
    const __m512i nearly = _mm512_add_epi16(subnormal, every(0x7f));
    const __m512i higher = f.mantissa == 3 ? _mm512_slli_epi16(m, 4) : _mm512_slli_epi16(m, 3);
    const __m512i sum = _mm512_mask_add_epi16(nearly, normal, higher, every(0x7f - below));
    const __m512i odd = _mm512_mask_add_epi16(sum, _mm512_test_epi16_mask(sum, every(0x100)), sum, every(1));
    return _mm512_srli_epi16(odd, 8);
}

/* Two blocks. */
AVX512 void bf16_blocks_to_fp8(struct fp8 f, const uint16_t *x, int32_t first, int32_t second, unsigned char *to)
{
    const __m512i a = load(x), b = load(x + 32);
    const __m512i codes = _mm512_packus_epi16(fp8_words(f, a, _mm512_set1_epi32(first)),
                                              fp8_words(f, b, _mm512_set1_epi32(second)));
    const __m512i bounded = _mm512_min_epu8(codes, _mm512_set1_epi8((char)f.largest));
    const __m512i all = chosen(_mm512_set1_epi8((char)0x80), _mm512_packs_epi16(a, b), bounded);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), all));
}

struct fp8_group { struct block_words exponents; bool roomy; };

AVX512 void fp8_scales(struct fp8 f, const struct bsmi_block_coding *c, const uint16_t *x, uint8_t *scales,
                       struct fp8_group *group)
{
    const __m512i amax = maxima_of_32(x), codes = e8m0_codes(c, amax);
    store_scales(codes, scales);
    store_block_words(exponents_of(codes, f.bias + f.mantissa, amax, &group->roomy), &group->exponents);
}

AVX512 void fp8_codes(struct fp8 f, const uint16_t *x, const struct fp8_group *group, unsigned char *to)
{
    UNROLL for (int b = 0; b < GROUP; b += 2) {
        prefetch(x + 32 * b), prefetch(x + 32 * b + 32);
        bf16_blocks_to_fp8(f, x + 32 * b, block_word(&group->exponents, b), block_word(&group->exponents, b + 1),
                           to + 32 * b);
    }
}

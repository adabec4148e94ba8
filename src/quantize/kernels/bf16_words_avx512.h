/* bf16 numbers as words, 32 in a vector: the largest magnitudes of GROUP blocks, and what goes to their blocks one by
 * one.  Included in quantize_bf16_avx512.c.
 *
 * A magnitude's word is its 15 bits: an exponent above BF16_BINADE's 7.  Words grow with magnitudes. */
#define TARGET __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl")))
#define AVX512 TARGET __attribute__((always_inline)) static inline

enum {
    GROUP = 32,                           /* blocks, a word for each */
    AHEAD = 8192,                         /* bytes: asked for while earlier ones are computed */
    BF16_INFINITY = 0x7f80
};

AVX512 __m512i every(int word) { return _mm512_set1_epi16((int16_t)word); }
AVX512 __m512i load(const uint16_t *from) { return _mm512_loadu_si512(from); }
AVX512 void prefetch(const uint16_t *x) { __builtin_prefetch((const void *)((uintptr_t)x + AHEAD)); }
AVX512 __m512i magnitudes(__m512i x) { return _mm512_and_si512(x, every(0x7fff)); }
AVX512 __m512i larger(__m512i a, __m512i b) { return _mm512_max_epu16(a, b); }

/* Where `where` has ones a's bits, else b's. */
AVX512 __m512i chosen(__m512i where, __m512i a, __m512i b) { return _mm512_ternarylogic_epi32(where, a, b, 0xca); }

AVX512 __m512i joined_words(__m512i a, __m512i b)
{
    return larger(_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b));
}

AVX512 __m512i joined_pairs(__m512i a, __m512i b)
{
    return larger(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

/* Of eight vectors' quarters: word i of each quarter is the largest of vector i's quarter. */
AVX512 __m512i quarter_maxima(const uint16_t *from)
{
    __m512i v[8], two[4];
    for (int i = 0; i < 8; i++) v[i] = magnitudes(load(from + 32 * i));
    for (int i = 0; i < 4; i++) two[i] = joined_words(v[2 * i], v[2 * i + 1]);
    const __m512i low = joined_pairs(two[0], two[1]), high = joined_pairs(two[2], two[3]);
    return larger(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
}

/* The quarters' maxima by twos, those of a below those of b. */
AVX512 __m512i joined_quarters(__m512i a, __m512i b)
{
    return larger(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

/* Of GROUP blocks of 32 numbers, in their order. */
AVX512 __m512i maxima_of_32(const uint16_t *x)
{
    const __m512i low = joined_quarters(quarter_maxima(x), quarter_maxima(x + 8 * 32));
    return joined_quarters(low, joined_quarters(quarter_maxima(x + 16 * 32), quarter_maxima(x + 24 * 32)));
}

/* Of GROUP blocks of 16 numbers, in their order; a quarter of eight vectors has the even or the odd ones. */
AVX512 __m512i maxima_of_16(const uint16_t *x)
{
    const __m512i order = _mm512_set_epi16(31, 23, 30, 22, 29, 21, 28, 20, 27, 19, 26, 18, 25, 17, 24, 16,
                                           15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0);
    return _mm512_permutexvar_epi16(order, joined_quarters(quarter_maxima(x), quarter_maxima(x + 8 * 32)));
}

/* A word for each block of a group, twice: memory gives 32 bits to all lanes, and 16 only by way of a shuffle. */
struct block_words { _Alignas(64) int32_t twice[GROUP]; };

AVX512 void store_block_words(__m512i words, struct block_words *to)
{
    _mm512_store_si512(to->twice, _mm512_unpacklo_epi16(words, words));
    _mm512_store_si512(to->twice + GROUP / 2, _mm512_unpackhi_epi16(words, words));
}

/* Of block b, in the order of the stores above. */
AVX512 int32_t block_word(const struct block_words *from, int b)
{
    return from->twice[b / 8 * 4 + b % 4 + (b % 8 >= 4 ? GROUP / 2 : 0)];
}

AVX512 void store_scales(__m512i codes, uint8_t *to)
{
    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi16_epi8(codes));
}

/* The e8m0 codes of GROUP blocks. */
AVX512 __m512i e8m0_codes(const struct bsmi_block_coding *c, __m512i amax)
{
    const __m512i steps = _mm512_srli_epi16(_mm512_add_epi16(amax, every(c->scale_bias >> 16)), 7);
    const __m512i codes = _mm512_max_epi16(_mm512_add_epi16(steps, every(c->scale_offset)), every(0));
    return _mm512_maskz_min_epi16(_mm512_test_epi16_mask(amax, amax), codes, every(254));
}

/* What is subtracted from magnitudes' words for a scale's exponent, `below` binades less.  roomy: whether nothing
 * subnormal is left, and no block is one of those that kernels do not do. */
AVX512 __m512i exponents_of(__m512i codes, int below, __m512i amax, bool *roomy)
{
    const __mmask32 some = _mm512_test_epi16_mask(amax, amax);
    const __mmask32 low = _mm512_mask_cmple_epi16_mask(some, codes, every(below));
    *roomy = (low | _mm512_cmpge_epi16_mask(amax, every(BF16_INFINITY))) == 0;
    return _mm512_maskz_slli_epi16(some, _mm512_sub_epi16(codes, every(below)), 7);
}

/* Codes of 8 rows, transposed and made the 16-bit words that decode_eight takes: what packs B's panels and what
 * multiplies a few rows of A share.  Include in files of x86-64 alone.
 *
 * A group is 64 of K.  Of each row 32 codes become one vector of bytes, those of 6 bits one of words that have two
 * each; 8 such vectors are transposed as words.  Shifts and multiplications then put every element where fp16 has
 * it. */
#ifndef BSMI_WORDS_AVX2_H
#define BSMI_WORDS_AVX2_H

#include "halves_avx2.h"

enum { BSMI_WORD_GROUP = 64, BSMI_ROWS_AHEAD = 64 /* bytes of a row that are prefetched */ };

/* Rows of codes as they are stored, or copies of the same form: two in a byte, four in three bytes, or bytes. */
struct bsmi_element_rows {
    union { struct bsmi_nibble_rows nibbles; struct bsmi_byte_rows bytes; } of;
    int bits;
};

static inline void bsmi_element_rows(const struct bsmi_part *part, int width, struct bsmi_element_rows *rows)
{
    rows->bits = part->operand.matrix->bits;
    if (rows->bits == 4) bsmi_nibble_rows(part, width, &rows->of.nibbles);
    else if (rows->bits == 6) bsmi_stream_rows(part, width, &rows->of.bytes);
    else bsmi_byte_rows(part, width, &rows->of.bytes);
}

static inline const uint8_t *const *bsmi_row_pointers(const struct bsmi_element_rows *rows)
{
    return rows->bits == 4 ? rows->of.nibbles.rows : rows->of.bytes.rows;
}

AVX2_INLINE int bits_of(bsm_element element)
{
    return element == BSM_E2M1 ? 4 : element == BSM_E2M3 || element == BSM_E3M2 ? 6 : 8;
}

/* 32 of K for 8 rows: [place][half of a vector][row]. */
typedef uint16_t bsmi_words[16][2][8];

/* Words of k = 16 q. */
AVX2_INLINE const uint16_t *words_of_sixteen(bsm_element element, bsmi_words words, int64_t q)
{
    return bits_of(element) == 4 ? words[8 * q][0] : words[0][q];
}

/* From those of k to those of k + 1, of the same sixteen. */
enum { BSMI_WORDS_TO_NEXT_PLACE = 16 };
AVX2_INLINE int64_t words_to_next(bsm_element element) { return bits_of(element) == 4 ? 8 : BSMI_WORDS_TO_NEXT_PLACE; }

/* 32 codes of 4 bits as upper bytes of fp16: those of even k in the lower half. */
AVX2_INLINE __m256i load_nibbles(const uint8_t *row)
{
    const __m256i pairs = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)row));
    const __m256i low = _mm256_srlv_epi32(pairs, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    return upper_bytes_of_e2m1(_mm256_and_si256(low, _mm256_set1_epi8(15)));
}

/* 32 codes of 6 bits, out of 24 bytes: four codes are three bytes b0, b1, b2, of which the words b0 | b1 << 8 and b1 |
 * b2 << 8 have two codes each. */
AVX2_INLINE __m256i load_stream(const uint8_t *row)
{
    const __m256i places = _mm256_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11,
                                            4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15);
    return _mm256_shuffle_epi8(load_two(row, row + 8), places);
}

AVX2_INLINE __m256i load_codes(bsm_element element, const uint8_t *row, int64_t k)
{
    if (bits_of(element) == 4) return load_nibbles(row + k / 2);
    if (bits_of(element) == 6) return load_stream(row + k / 4 * 3);
    return _mm256_loadu_si256((const __m256i *)(const void *)(row + k));
}

/* A code of 6 bits that ends at bit `end` of its word, where fp16 has it. */
AVX2_INLINE __m256i place_six_bits(bsm_element element, int end, __m256i word)
{
    const __m256i top = end == 16 ? word : _mm256_slli_epi16(word, 16 - end);
    if (element == BSM_E3M2) return _mm256_and_si256(_mm256_srai_epi16(top, 2), _mm256_set1_epi16((short)0x9f00));
    return _mm256_and_si256(_mm256_srai_epi16(top, 3), _mm256_set1_epi16((short)0x8f80));
}

/* The lower or the upper byte of a word, times `factor`, signed. */
AVX2_INLINE __m256i multiply_byte(bool upper, int factor, __m256i word)
{
    return _mm256_maddubs_epi16(_mm256_set1_epi16((short)(upper ? factor << 8 : factor)), word);
}

/* The lower or the upper byte of a word into place. */
AVX2_INLINE __m256i place_byte(bsm_element element, bool upper, __m256i word)
{
    switch (element) {
    case BSM_E4M3: return _mm256_and_si256(multiply_byte(upper, 128, word), _mm256_set1_epi16((short)0xbf80));
    case BSM_INT8: return multiply_byte(upper, 1, word);
    default: return upper ? _mm256_and_si256(word, _mm256_set1_epi16((short)0xff00)) : _mm256_slli_epi16(word, 8);
    }
}

AVX2_INLINE void store_words(bsm_element element, const __m256i v[8], bsmi_words words)
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const bool six = bits_of(element) == 6;
        const __m256i even =
            six ? place_six_bits(element, i % 2 == 0 ? 6 : 10, v[i]) : place_byte(element, false, v[i]);
        const __m256i odd = six ? place_six_bits(element, i % 2 == 0 ? 12 : 16, v[i]) : place_byte(element, true, v[i]);
        _mm256_store_si256((__m256i *)(void *)words[2 * i], even);
        _mm256_store_si256((__m256i *)(void *)words[2 * i + 1], odd);
    }
}

/* 480 becomes NaN. */
void bsmi_mark_nans(bsmi_words words);

/* e4m3 alone has a NaN that is no fp16 NaN when it is moved: seldom there, and looked for as bytes. */
AVX2_INLINE bool any_nan(const __m256i v[8])
{
    const __m256i sign = _mm256_set1_epi8((char)0x80);
    __m256i largest = sign;
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) largest = _mm256_max_epu8(largest, _mm256_or_si256(v[i], sign));
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(largest, _mm256_set1_epi8(-1))) != 0;
}

/* 32 of K of 8 rows. */
AVX2_INLINE void transpose_words(bsm_element element, const uint8_t *const *rows, int64_t k, bsmi_words words)
{
    __m256i v[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) v[r] = load_codes(element, rows[r], k);
    const bool nans = element == BSM_E4M3 && any_nan(v);
    transpose_eight(v);                   /* vector i then has the codes of places 2 i and 2 i + 1 */
    store_words(element, v, words);
    if (nans) bsmi_mark_nans(words);
}

/* 64 of K of 8 rows, from k on; what comes BSMI_ROWS_AHEAD bytes later is asked for. */
void bsmi_transpose_group(bsm_element element, const uint8_t *const *rows, int64_t k, bsmi_words words[2]);

/* What reads words knows three kinds of element: fp16 out of pairs in a byte, fp16, and integers. */
#define BSMI_BY_WORDS(element, function, ...) \
    switch (element) { \
    case BSM_E2M1: function(BSM_E2M1, __VA_ARGS__); break; \
    case BSM_INT8: function(BSM_INT8, __VA_ARGS__); break; \
    default: function(BSM_E5M2, __VA_ARGS__); break; \
    }

#endif
